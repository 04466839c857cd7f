//! `reports/adr-0129-reading.md` says nothing in figures that is not computed here.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use policysim_sim::stats::compounding::{gap_rate_for, run_rate};
use policysim_sim::stats::detector::{settled_in_wait, waits_until_settled};
use policysim_sim::stats::quantile::{ranks, samples_needed};
use policysim_sim::stats::{Level, Prob, rates};

const READING: &str = include_str!("../../../reports/adr-0129-reading.md");

/// What the ADR states and what this reading assumes; not computed.
const GIVEN: [&str; 23] = [
    // the ADR's name, and the percentiles and settings that it publishes, in seconds
    "0129", "50", "90", "99", "99.9", "5.6", "13.4", "55", "174", "300", "600",
    // samples, runs and windows that the reading asks about
    "800", "10,000", "60", "200", "100", "301", "360", "900", "180", "400",
    // confidence, and the smallest rate asked about
    "95", "0.1",
];

fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let split = digits.len().saturating_sub(3);
    match &digits[..split] {
        "" => digits,
        thousands => format!("{thousands},{}", &digits[split..]),
    }
}

/// Sentences with every computed number in its place.
fn computed() -> Vec<String> {
    let p999 = Prob::from_percentile("99.9").unwrap();
    let needed = samples_needed(p999, Level::P95);
    let (both, one) = (needed.two_sided.unwrap(), needed.one_sided.unwrap());
    let largest_maximum = (1..2_000).filter(|&n| p999.rank(n) == n).max().unwrap();
    assert_eq!(p999.rank(800), 800);
    assert_eq!(ranks(both - 1, p999, Level::P95).upper, None);
    assert_eq!(ranks(both, p999, Level::P95).upper, Some(both));
    let of_many = ranks(10_000, p999, Level::P95);
    let per_gap = gap_rate_for(0.01, 60).unwrap();
    let runs = |kills: u64, max: f64| grouped(rates::runs_needed(kills, max, Level::P95).unwrap());
    let share = |window_s: u64| settled_in_wait(window_s * 1_000, 600_000).unwrap() * 100.0;
    let waits = |into_s: u64| waits_until_settled(into_s * 1_000, 300_000, 600_000).unwrap();
    assert_eq!((waits(0), waits(300)), (1, 1));
    let most = (0..=600).map(waits).max().unwrap();
    vec![
        format!(
            "longest of them: {:.1} waits are expected above",
            p999.expected_above(800)
        ),
        format!(
            "Up to {} waits it stays the maximum",
            grouped(largest_maximum)
        ),
        format!(
            "only from {} waits on, and there that end is again the longest",
            grouped(both)
        ),
        format!("A one-sided upper limit asks for {}.", grouped(one)),
        format!(
            "the p99.9 has rank {} in ascending order, and its interval runs from rank {} to rank {}",
            grouped(p999.rank(10_000)),
            grouped(of_many.lower.unwrap()),
            grouped(of_many.upper.unwrap())
        ),
        format!("Below {} waits the honest entry", grouped(both)),
        format!(
            "{:.1} % of runs are killed while they are alive",
            run_rate(1e-4, 60) * 100.0
        ),
        format!("it would be {:.1} % of runs", run_rate(1e-3, 60) * 100.0),
        format!(
            "at most {:.1} waits in 10,000 may reach the window: that is the p{:.3}",
            per_gap * 1e4,
            (1.0 - per_gap) * 100.0
        ),
        format!(
            "For runs of 200 turns it is {:.2} waits in 10,000",
            gap_rate_for(0.01, 200).unwrap() * 1e4
        ),
        format!(
            "at most 1 % is shown at 95 % by {} runs without a kill, or {} with one",
            runs(0, 0.01),
            runs(1, 0.01)
        ),
        format!("at most 0.1 % takes {} runs without a kill", runs(0, 0.001)),
        format!(
            "No kill in 100 runs only shows that the rate is at most {:.1} %",
            rates::upper_one_sided(0, 100, Level::P95).unwrap() * 100.0
        ),
        format!("silent chain of retries of {} s make 300 s", 300 - 174),
        format!("settles inside that wait, with {} s to spare", 600 - 300),
        format!("it takes {} waits", waits(301)),
        format!("1 − 300/600, which is {:.0} %", share(300)),
        format!(
            "A window of 360 s leaves {:.0} %, one of 60 s {:.0} %, and one of 600 s none",
            share(360),
            share(60)
        ),
        format!("it bounds the waits at {most}, and does not make them 1"),
    ]
}

/// The numbers of a text: digits with points and commas between them.
fn numbers(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
        .map(|word| word.trim_matches([',', '.']).to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn every_number_of_the_reading_is_computed_or_given() {
    let sentences = computed();
    for sentence in &sentences {
        assert!(
            READING.contains(sentence.as_str()),
            "the reading does not say: {sentence}"
        );
    }
    assert!((run_rate(1e-4, 60) - 0.006).abs() < 5e-5);
    assert_eq!(settled_in_wait(600_000, 600_000), Some(0.0));
    let mut known: BTreeSet<String> = GIVEN.iter().map(|number| (*number).to_owned()).collect();
    known.extend(sentences.iter().flat_map(|sentence| numbers(sentence)));
    for number in numbers(READING) {
        assert!(
            known.contains(&number),
            "{number} is neither computed nor given"
        );
    }
}

#[test]
fn the_reading_has_one_sentence_per_line() {
    for line in READING.lines() {
        let inner = line.trim_end_matches(['.', '?']);
        let ends = inner.matches(". ").count() + inner.matches("? ").count();
        assert_eq!(ends, 0, "{line}");
    }
}
