//! The committed validation report: its reduced remake is made again, and its claim is read.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use policysim_sim::run::{Fleet, Run, RunStatus, WaitKind};
use policysim_sim::stats::{Counts, Level, Prob, quantile_of_counts};
use policysim_sim::synth::fit::{SMALL, fit};
use policysim_sim::synth::validate::{Study, validate};
use policysim_sim::synth::{Generator, Options, Sampling};
use policysim_telemetry::{Dataset, ImportRequest, Inputs, Silent};

fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let corpus = shared.join("corpus");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus");
        return None;
    }
    Some(corpus)
}

fn report() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports/validation.md");
    std::fs::read_to_string(path).unwrap()
}

/// The corpus' runs with the digest of their dataset.
fn fleet() -> Option<(Fleet, String)> {
    let corpus = corpus()?;
    let harnesses = ["claude", "codex", "copilot", "gemini", "opencode", "pi"];
    let request = ImportRequest {
        inputs: Inputs::Paths(harnesses.map(|name| corpus.join(name)).to_vec()),
        ..ImportRequest::default()
    };
    let dataset = Dataset::from_logs(&request, &Silent, &AtomicBool::new(false)).unwrap();
    let fleet = Fleet {
        runs: dataset.fleet().unwrap(),
        symbols: dataset.symbols().clone(),
    };
    Some((fleet, dataset.manifest().digest.clone()))
}

#[test]
fn the_reduced_remake_is_what_the_report_says() {
    let Some((fleet, digest)) = fleet() else {
        return;
    };
    let reduced = validate(&fleet, Study::REDUCED).unwrap();
    let report = report();
    assert!(
        report.contains(&reduced.table()),
        "the report does not hold\n{}",
        reduced.table()
    );
    assert!(report.contains(&digest));
}

/// Issue 6: the 90 % interval covers in at least 80 % of the (split, policy) pairs.
#[test]
fn the_report_covers_as_many_pairs_as_it_must() {
    let report = report();
    let line = report
        .lines()
        .find(|line| line.starts_with("Covered: "))
        .unwrap();
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let (covered, pairs) = (numbers[0], numbers[1]);
    assert_eq!(pairs, 20 * 12);
    assert!(covered * 100 >= pairs * 80, "{line}");
}

fn waits(runs: &[Run], kind: WaitKind) -> Counts {
    let waits = runs
        .iter()
        .flat_map(|run| &run.events)
        .filter_map(|event| event.wait);
    waits
        .filter(|wait| wait.kind == kind)
        .map(|wait| wait.ms)
        .collect()
}

fn turns(runs: &[Run]) -> Counts {
    let whole = runs.iter().filter(|run| run.status == RunStatus::Run);
    whole.map(|run| u64::from(run.measured.turns)).collect()
}

/// Issue 6: within 5 %, or between the source's quantiles at p +- 0.3 points.
fn check(what: &str, source: &Counts, drawn: &Counts) {
    for p_ppm in [500_000_u64, 900_000, 990_000] {
        let at = |counts: &Counts, p_ppm: u64| {
            let p = Prob::from_ratio(p_ppm, 1_000_000).unwrap();
            quantile_of_counts(counts, p, Level::P95).value.unwrap()
        };
        let (expected, found) = (at(source, p_ppm), at(drawn, p_ppm));
        let band = at(source, p_ppm - 3_000)..=at(source, p_ppm + 3_000);
        let near = found.abs_diff(expected) * 20 <= expected;
        assert!(
            near || band.contains(&found),
            "{what} {p_ppm}: {found} drawn, {expected} recorded, {band:?}"
        );
    }
}

/// A model fitted to the corpus draws runs like it.
#[test]
fn runs_drawn_from_a_model_of_the_corpus_are_like_it() {
    let Some((fleet, _)) = fleet() else { return };
    let fitted = fit(&fleet, "corpus", "a test").unwrap();
    let model = fitted.to_model().unwrap();
    let options = Options {
        seed: 0,
        runs: 60_000,
        sampling: Sampling::Stratified,
    };
    let generator = Generator::new(&model, None, options).unwrap();
    let mut drawn: BTreeMap<WaitKind, Counts> = BTreeMap::new();
    let mut drawn_turns = Counts::default();
    for from in (0..options.runs).step_by(5_000) {
        let runs = generator.runs(from..from + 5_000);
        for kind in WaitKind::ALL {
            drawn.entry(kind).or_default().merge(&waits(&runs, kind));
        }
        drawn_turns.merge(&turns(&runs));
    }
    let mut compared = Vec::new();
    for kind in WaitKind::ALL {
        let source = waits(&fleet.runs, kind);
        if source.total() >= SMALL {
            check(kind.name(), &source, &drawn[&kind]);
            compared.push(kind);
        }
    }
    assert_eq!(
        compared,
        [WaitKind::PreToken, WaitKind::StreamGap, WaitKind::Tool]
    );
    check("turns", &turns(&fleet.runs), &drawn_turns);
    let listed = fitted.waits().iter().filter(|wait| wait.n < SMALL).count();
    assert!(listed > 10, "small kinds are listed with their n");
}

/// Issue 6: under 200 kB, and no run's sequence in it; nor anything that says where its runs came from.
#[test]
fn the_model_of_the_corpus_is_small_and_holds_no_run() {
    let Some((fleet, _)) = fleet() else { return };
    let fitted = fit(&fleet, "corpus", "a test").unwrap();
    let text = toml::to_string(&fitted).unwrap();
    assert!(text.len() < 200_000, "{} bytes", text.len());

    let numbers: Vec<u64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let told: BTreeSet<&[u64]> = numbers.windows(4).collect();
    let mut looked_for = 0;
    for run in &fleet.runs {
        let waits: Vec<_> = run.events.iter().filter_map(|event| event.wait).collect();
        let mut sequences = vec![waits.clone()];
        for kind in WaitKind::ALL {
            let of_kind = waits.iter().filter(|wait| wait.kind == kind);
            sequences.push(of_kind.copied().collect());
        }
        for sequence in sequences {
            let ms: Vec<u64> = sequence.iter().map(|wait| wait.ms).collect();
            for four in ms.windows(4) {
                // a few ms each meet a list of weights by chance: 30,000 tuples of ten digits do not
                let digits: usize = four.iter().map(|ms| ms.to_string().len()).sum();
                let telling = digits >= 10;
                assert!(
                    !telling || !told.contains(four),
                    "{four:?} of {} stands in the model",
                    run.name
                );
                looked_for += u64::from(telling);
            }
        }
    }
    assert!(looked_for > 10_000, "{looked_for}");

    for run in &fleet.runs {
        for origin in [&run.source, &run.session, &run.name] {
            let origin: &str = origin;
            assert!(origin.is_empty() || !text.contains(origin), "{origin}");
        }
    }
    // what stands in quotes is a word of the model, or the name of a tool, a model, a role or a harness
    let mut names = BTreeSet::new();
    for run in &fleet.runs {
        names.extend(
            run.events
                .iter()
                .map(|event| fleet.symbols.name(event.name)),
        );
        names.extend([&*run.model, &*run.role, &*run.harness]);
    }
    for word in text.split('"').skip(1).step_by(2) {
        let is_path = word.starts_with(['/', '~', '\\']) || word.contains(".jsonl");
        assert!(!is_path || names.contains(word), "{word}");
        assert!(word.len() < 200, "{word}");
    }
}
