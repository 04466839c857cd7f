//! The scenarios made from public reports that concern figures: what the library must say about their samples.
//!
//! They are read from `scenarios` of the folder that `POLICYSIM_SHARED` names (default: `shared` beside the workspace).
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use policysim_sim::stats::kaplan_meier::KaplanMeier;
use policysim_sim::stats::quantile::{quantile_type7, samples_needed};
use policysim_sim::stats::verdict::{
    Decision, RunCounts, check_quantile, check_rate, check_strata,
};
use policysim_sim::stats::{
    Counts, Interval, Level, Prob, Reason, Status, quantile, quantile_of_counts, rates, traps,
    upper_one_sided,
};
use serde_json::Value;

/// The scenario file, or `None` (with a line that says so) where the shared folder is absent.
fn scenario(file: &str) -> Option<Value> {
    let shared = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("scenarios").join(file);
    if !path.is_file() {
        println!("skipped: no corpus at {}", path.display());
        return None;
    }
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

fn integer(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no integer"))
}

/// Samples as plain values or as (value, count).
fn samples(value: &Value) -> Counts {
    let mut counts = Counts::default();
    for item in value.as_array().unwrap() {
        match item.as_u64() {
            Some(ms) => counts.add(ms, 1),
            None => counts.add(integer(&item["value"]), integer(&item["count"])),
        }
    }
    counts
}

fn merged(parts: &[&Counts]) -> Counts {
    let mut whole = Counts::default();
    for part in parts {
        whole.merge(part);
    }
    whole
}

fn value(counts: &Counts, label: &str) -> u64 {
    quantile_of_counts(counts, Prob::from_percentile(label).unwrap(), Level::P95)
        .value
        .unwrap()
}

#[test]
fn br_11_the_pool_hides_the_slow_model() {
    let Some(scenario) = scenario("BR-11-two-model-classes.json") else {
        return;
    };
    let classes =
        ["model-a", "model-b"].map(|class| (class, samples(&scenario["samples_ms"][class])));
    let pooled = merged(&[&classes[0].1, &classes[1].1]);
    let expect = &scenario["expect"];
    assert_eq!(pooled.total(), integer(&expect["pooled"]["n"]));
    for label in ["p98", "p99"] {
        assert_eq!(value(&pooled, label), integer(&expect["pooled"][label]));
    }
    assert_eq!(
        (value(&classes[0].1, "p99"), value(&classes[1].1, "p99")),
        (5_000, 304_500)
    );
    for (window, kills) in expect["false_kills"].as_object().unwrap() {
        let window: u64 = window.parse().unwrap();
        for (class, counts) in &classes {
            assert_eq!(
                counts.at_least(window),
                integer(&kills[*class]),
                "{class} at {window}"
            );
        }
    }
    // 35 s passes a 3 % bound pooled, yet the slow model alone cannot: the worst stratum says which class pays
    let strata = classes.map(|(class, counts)| {
        let counts = RunCounts {
            kills: counts.at_least(35_000),
            unresolved: 0,
            runs: counts.total(),
        };
        (class.to_owned(), counts)
    });
    let found = check_strata(&strata, 0.03, Level::P95, true);
    assert_eq!(found.pooled.decision, Decision::Pass);
    assert_eq!(
        (found.decision, found.worst),
        (Decision::Inconclusive, Some(1))
    );
}

#[test]
fn br_60_nine_equal_gaps_are_no_tail() {
    let Some(scenario) = scenario("BR-60-constant-gap.json") else {
        return;
    };
    let before = samples(&scenario["gaps_ms"]["before_2026_08_03"]);
    let since = samples(&scenario["gaps_ms"]["since"]);
    let pooled = merged(&[&before, &since]);
    let expect = &scenario["expect"];
    let found = traps::heaps(&pooled);
    let [heap] = found[..] else {
        panic!("{found:?}")
    };
    let cluster = &expect["cluster"];
    assert_eq!(heap.n, integer(&cluster["n"]));
    assert_eq!(
        (heap.min_ms, heap.max_ms),
        (integer(&cluster["min_ms"]), integer(&cluster["max_ms"]))
    );
    assert!((heap.mean_ms - cluster["mean_ms"].as_f64().unwrap()).abs() < 0.5);
    assert_eq!(value(&pooled, "p99"), integer(&expect["pooled_p99_ms"]));
    for (window, kills) in expect["false_kills"].as_object().unwrap() {
        assert_eq!(pooled.at_least(window.parse().unwrap()), integer(kills));
    }
    assert!(traps::heaps(&before).is_empty());
}

#[test]
fn br_88_a_p95_of_five_is_their_maximum() {
    let Some(scenario) = scenario("BR-88-p95-of-five.json") else {
        return;
    };
    let counts = samples(&scenario["samples_ms"]);
    let expect = &scenario["expect"];
    let found = quantile_of_counts(&counts, Prob::P95, Level::P95);
    assert_eq!(
        (found.rank, found.value, found.point()),
        (5, Some(501), None)
    );
    assert_eq!(found.status, Status::NotEstimable);
    assert_eq!(found.reason, Some(Reason::NTooSmall { have: 5, need: 72 }));
    let gate = check_quantile(
        &counts,
        Prob::P95,
        integer(&scenario["gate"]["p95_max_ms"]),
        Level::P95,
    );
    assert_eq!(gate.decision.name(), expect["verdict"].as_str().unwrap());
    assert!(
        matches!(gate.reason, Some(Reason::NTooSmall { have: 5, .. })),
        "{gate}"
    );
    for (label, n) in expect["nearest_rank_equals_max_up_to_n"]
        .as_object()
        .unwrap()
    {
        let (p, n) = (Prob::from_percentile(label).unwrap(), integer(n));
        assert_eq!((p.rank(n), p.rank(n + 1)), (n, n), "{label}");
    }
    let needed = expect["n_for_95pct_confidence_that_max_bounds_the_quantile"]
        .as_object()
        .unwrap();
    for (label, n) in needed {
        let p = Prob::from_percentile(label).unwrap();
        assert_eq!(
            samples_needed(p, Level::P95).one_sided,
            Some(integer(n)),
            "{label}"
        );
    }
}

#[test]
fn br_90_no_sample_is_no_pass() {
    let Some(scenario) = scenario("BR-90-threshold-without-data.json") else {
        return;
    };
    let (runs, kills) = (
        integer(&scenario["corpus"]["runs"]),
        integer(&scenario["corpus"]["idle_kills"]),
    );
    let rate = check_rate(
        RunCounts {
            kills,
            unresolved: 0,
            runs,
        },
        0.01,
        Level::P95,
    );
    // the exact limit and the rule of three of the report: 22.1 % and 25 %
    assert!((upper_one_sided(kills, runs, Level::P95).unwrap() - 0.221).abs() < 5e-4);
    assert!((rates::rule_of_three(runs).unwrap() - 0.25).abs() < 1e-12);
    let tool = check_quantile(&Counts::default(), Prob::P99, 600_000, Level::P95);
    let detection = check_quantile(&Counts::default(), Prob::P90, 300_000, Level::P95);
    let verdicts = [rate, tool, detection].map(|check| match check.reason {
        Some(Reason::NoData) => "no_data",
        _ => check.decision.name(),
    });
    let expected: Vec<&str> = scenario["expect"]["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| verdict.as_str().unwrap())
        .collect();
    assert_eq!(verdicts.to_vec(), expected);
    let all = Decision::over([rate, tool, detection].map(|check| check.decision));
    assert_eq!(all, Decision::Inconclusive);
}

#[test]
fn br_93_parts_are_merged_before_the_quantile() {
    let Some(scenario) = scenario("BR-93-merge-not-average.json") else {
        return;
    };
    let (fast, slow) = (
        samples(&scenario["series_ms"]["fast"]),
        samples(&scenario["series_ms"]["slow"]),
    );
    let expect = &scenario["expect"];
    let whole = merged(&[&slow, &fast]);
    assert_eq!(whole.total(), integer(&expect["n"]));
    for label in ["p95", "p99", "p99.5"] {
        assert_eq!(value(&whole, label), integer(&expect[label]), "{label}");
    }
    let gate = check_quantile(
        &whole,
        Prob::P95,
        integer(&scenario["gate"]["p95_max_ms"]),
        Level::P95,
    );
    assert_eq!(gate.decision.name(), expect["verdict"].as_str().unwrap());
}

#[test]
fn br_95_the_definition_is_the_nearest_rank() {
    let Some(scenario) = scenario("BR-95-which-percentile.json") else {
        return;
    };
    let counts = samples(&scenario["samples_ms"]);
    let sorted: Vec<u64> = counts.iter().map(|(ms, _)| ms).collect();
    let expect = &scenario["expect"];
    for label in ["p90", "p99"] {
        assert_eq!(
            value(&counts, label),
            integer(&expect["nearest_rank"][label])
        );
        let linear = quantile_type7(&sorted, Prob::from_percentile(label).unwrap()).unwrap();
        assert!(
            (linear - expect["linear"][label].as_f64().unwrap()).abs() < 1e-9,
            "{label}: {linear}"
        );
    }
    let mut second = vec![1_u64; 1_000];
    second.push(10_000_000);
    let found = quantile(&second, Prob::P99);
    assert_eq!(found.n, integer(&expect["second"]["n"]));
    assert_eq!(found.value, Some(integer(&expect["second"]["p99"])));
    assert_eq!(found.max(), Some(integer(&expect["second"]["max"])));
}

#[test]
fn br_96_the_old_limit_hides_the_tail() {
    let Some(scenario) = scenario("BR-96-censored-by-the-current-limit.json") else {
        return;
    };
    let (ended, censored) = (
        samples(&scenario["samples_ms"]),
        samples(&scenario["censored_ms"]),
    );
    let limit = integer(&scenario["policy_recorded"]["idle_ms"]);
    let expect = &scenario["expect"];
    let curve = KaplanMeier::new(&ended, &censored);
    let p97 = curve.quantile("0.97".parse().unwrap(), Level::P95);
    assert_eq!(p97.point(), Some(integer(&expect["p97"])));
    let p99 = curve.quantile(Prob::P99, Level::P95);
    assert_eq!((p99.point(), p99.status), (None, Status::NotEstimable));
    assert_eq!(
        format!(">{}", p99.exceeds_ms().unwrap()),
        expect["p99"].as_str().unwrap()
    );
    // what the two naive readings would have said
    assert_eq!(value(&ended, "p99"), integer(&expect["naive"]["dropped"]));
    assert_eq!(
        value(&merged(&[&ended, &censored]), "p99"),
        integer(&expect["naive"]["as_observed"])
    );
    // at most the share that was cut: no label says which of them were hangs
    let at_limit = curve.kill_rate(limit, Level::P95);
    assert!(
        (at_limit.point.unwrap() - expect["false_kill_rate_bounds"][1].as_f64().unwrap()).abs()
            < 1e-12
    );
    // a longer window is not identified: only an upper limit, no point, no lower limit
    let longer = curve.kill_rate(limit + 1, Level::P95);
    assert_eq!((longer.point, longer.status), (None, Status::OneSided));
    assert_eq!(
        longer.interval,
        Interval {
            lo: None,
            up: at_limit.interval.up
        }
    );
    assert_eq!(
        longer.reason,
        Some(Reason::BeyondLastEvent { at_ms: limit })
    );
}
