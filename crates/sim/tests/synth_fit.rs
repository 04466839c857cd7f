//! Models: forms of distributions, what runs share, and models fitted to runs and samples.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use policysim_policy::Kind;
use policysim_sim::run::{EventFlags, Fleet, Run, RunEvent, RunStatus, Symbols, Wait, WaitKind};
use policysim_sim::stats::{Counts, Level, Prob, quantile_of_counts};
use policysim_sim::synth::fit::{fit, fit_samples};
use policysim_sim::synth::{Generator, Model, Options, Sampling};

fn model(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../data/models")
        .join(name);
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn options(runs: u64, sampling: Sampling) -> Options {
    Options {
        seed: 0,
        runs,
        sampling,
    }
}

fn counts(runs: &[Run]) -> BTreeMap<WaitKind, Counts> {
    let mut counts: BTreeMap<WaitKind, Counts> = BTreeMap::new();
    for wait in runs
        .iter()
        .flat_map(|run| &run.events)
        .filter_map(|event| event.wait)
    {
        counts.entry(wait.kind).or_default().add(wait.ms, 1);
    }
    counts
}

fn at(counts: &Counts, p: Prob) -> u64 {
    quantile_of_counts(counts, p, Level::P95).value.unwrap()
}

/// Within `percent`, or where the source's own quantile lies `slack` to either side.
fn agrees(source: &Counts, got: &Counts, p: Prob, percent: u64) -> bool {
    let (expected, found) = (at(source, p), at(got, p));
    let off = |points: i64| {
        let (num, den) = p.parts();
        let millionths = (num * 1_000_000 / den).cast_signed() + points;
        Prob::from_ratio(millionths.clamp(1, 999_999).cast_unsigned(), 1_000_000).unwrap()
    };
    let band = at(source, off(-3_000))..=at(source, off(3_000));
    found.abs_diff(expected) * 100 <= expected * percent || band.contains(&found)
}

/// A model fitted to the demo's runs draws runs like them, and holds none of their sequences.
#[test]
fn a_fitted_model_draws_runs_like_those_it_saw() {
    let source = model("adr-0129.toml");
    let seen = Generator::new(&source, None, options(8_000, Sampling::Stratified))
        .unwrap()
        .fleet();
    let fitted = fit(&seen, "again", "a test").unwrap();
    let text = toml::to_string(&fitted).unwrap();
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let again: Model = toml::from_str(&text).unwrap();
    assert_eq!(again, fitted.to_model().unwrap());
    let drawn = Generator::new(&again, None, options(8_000, Sampling::Stratified))
        .unwrap()
        .fleet();
    let (old, new) = (counts(&seen.runs), counts(&drawn.runs));
    let mut compared = 0;
    for (kind, source) in old.iter().filter(|(_, counts)| counts.total() >= 1_000) {
        for p in [Prob::P50, Prob::P90, Prob::P99] {
            // Retries end at the resend in both, so their lengths are the schedule's.
            assert!(
                agrees(source, &new[kind], p, 5),
                "{} {}: {} from {}",
                kind.name(),
                p.percentile_label(),
                at(&new[kind], p),
                at(source, p)
            );
            compared += 1;
        }
    }
    assert!(compared >= 6, "{compared}");
    let turns = |fleet: &Fleet| -> Counts {
        fleet
            .runs
            .iter()
            .map(|run| u64::from(run.measured.turns))
            .collect()
    };
    for p in [Prob::P50, Prob::P90, Prob::P99] {
        assert!(
            agrees(&turns(&seen), &turns(&drawn), p, 5),
            "turns {}",
            p.percentile_label()
        );
    }
    let hung = |fleet: &Fleet| {
        fleet
            .runs
            .iter()
            .filter(|run| run.end == policysim_sim::run::RecordedEnd::Hung)
            .count()
    };
    // 1.4 % of 8,000: 112 expected, standard deviation 10.5.
    assert!(
        hung(&drawn).abs_diff(hung(&seen)) < 45,
        "{} {}",
        hung(&drawn),
        hung(&seen)
    );
    no_sequence(&text, &seen);
}

/// No five waits of a run stand in their order in the model.
fn no_sequence(text: &str, fleet: &Fleet) {
    let numbers: Vec<u64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let windows: std::collections::BTreeSet<&[u64]> = numbers.windows(5).collect();
    for run in &fleet.runs {
        let waits: Vec<u64> = run
            .events
            .iter()
            .filter_map(|event| event.wait)
            .map(|wait| wait.ms)
            .collect();
        for five in waits.windows(5) {
            let varied = five.windows(2).filter(|pair| pair[0] != pair[1]).count() > 2;
            assert!(
                !varied || !windows.contains(five),
                "{five:?} of {} in the model",
                run.name
            );
        }
    }
}

/// The issue's forms: waits by model, a mixture, samples, outages, compaction, suspends, in one model.
const EVERYTHING: &str = r#"
schema_version = 1
name = "everything"
about = "each form once"
source = "none"
mixed = true
[calendar]
assumed = true
epoch_ms = 0
start_every_ms = 60_000
runs_per_session = 2
[population.a]
about = "a"
resolution = "stream"
approvals_in_tools = false
weight = 2
runs_per_session = { unit = "runs", samples = [[1, 1], [3, 1]] }
[population.a.wait]
pre_token = { unit = "ms", assumed = true, max = 200_000, mixture = [{ kind = "log_normal", weight = 9, median = 5_000, sigma_ppm = 500_000 }, { kind = "pareto", weight = 1, from = 20_000, alpha_ppm = 2_000_000 }] }
error_wait = { unit = "ms", samples = [[100, 1], [300, 3]] }
compact = { unit = "ms", samples = [[60_000, 1]] }
[population.a.run]
turns = { unit = "turns", samples = [[3, 1], [9, 1]] }
[population.a.roles]
assumed = true
list = [{ name = "worker", weight = 1 }]
[population.a.models]
assumed = true
list = [{ name = "slow", weight = 1 }, { name = "fast", weight = 1 }]
[[population.a.by]]
model = "fast"
wait.pre_token = { unit = "ms", samples = [[7, 1]] }
[population.a.likeness]
assumed = true
model_session_ppm = 200_000
turns_session_ppm = 100_000
[population.a.compaction]
assumed = true
turn_share_ppm = 100_000
start_seen = true
[population.a.suspends]
assumed = true
run_share_ppm = 50_000
length = { unit = "ms", samples = [[3_600_000, 1]] }
[population.a.retry]
assumed = true
turn_share_ppm = 1_000
again_ppm = 0
failures_max = 6
backoff = { first_delay_ms = 2_000, factor = 2, jitter_up_percent = 25, cap_ms = 30_000 }
outages = { assumed = true, every_ms = 3_600_000, length = { unit = "ms", samples = [[600_000, 1]] }, fail_ppm = 900_000 }
[population.a.ends]
assumed = true
[population.b]
about = "b"
resolution = "message"
approvals_in_tools = false
[population.b.wait]
pre_token = { unit = "ms", samples = [[1_000, 1]] }
[population.b.run]
turns = { unit = "turns", samples = [[1, 1]] }
[population.b.roles]
assumed = true
list = [{ name = "", weight = 1 }]
[population.b.models]
assumed = true
list = [{ name = "", weight = 1 }]
[population.b.ends]
assumed = true
"#;

#[test]
fn every_form_is_drawn() {
    let model: Model = toml::from_str(EVERYTHING).unwrap();
    let generator = Generator::new(&model, None, options(4_000, Sampling::Independent)).unwrap();
    let fleet = generator.fleet();
    let of = |population: &str| -> Vec<&Run> {
        fleet
            .runs
            .iter()
            .filter(|run| run.source.ends_with(population))
            .collect()
    };
    let (a, b) = (of("/a"), of("/b"));
    // Two sessions of a, of 1 or 3 runs, to one of b with 2: 2 of 3 runs.
    let share = a.len() as f64 / fleet.runs.len() as f64;
    assert!((0.62..0.71).contains(&share), "{share}");
    assert_eq!(a.len() + b.len(), 4_000);
    for run in &a {
        let fast = &*run.model == "fast";
        for event in &run.events {
            let Some(wait) = event.wait else { continue };
            let asleep = event.flags.has(EventFlags::SUSPECTED_SUSPEND);
            match wait.kind {
                WaitKind::PreToken if !asleep => {
                    assert_eq!(fast, wait.ms == 7, "{}", run.name);
                    assert!(wait.ms <= 200_000);
                }
                WaitKind::Compact if !asleep => assert_eq!(wait.ms, 60_000),
                _ => {}
            }
        }
    }
    let count = |kind: Kind| {
        let events = fleet.runs.iter().flat_map(|run| &run.events);
        events.filter(|event| event.kind == kind).count()
    };
    assert!(count(Kind::CompactionStart) > 100 && count(Kind::HostSuspend) > 50);
    assert_eq!(count(Kind::HostSuspend), count(Kind::HostResume));
    // One outage of 10 min in each hour: failures come together.
    let failed = |run: &&Run| {
        run.events
            .iter()
            .any(|event| event.kind == Kind::RetryStart)
    };
    let hit = fleet.runs.iter().filter(failed).count();
    assert!((100..1_500).contains(&hit), "{hit}");
    let delays = fleet.runs.iter().flat_map(|run| &run.events);
    let first = delays
        .filter(|event| event.kind == Kind::RetryStart)
        .filter_map(|event| event.announced_ms);
    assert!(first.clone().all(|ms| (2_000..=30_000).contains(&ms)));
    // The session's model is that of all its runs.
    let mut models: BTreeMap<&str, &str> = BTreeMap::new();
    for run in &a {
        let known = models.entry(&run.session).or_insert(&run.model);
        assert_eq!(*known, &*run.model, "{}", run.name);
    }
    // Adding runs never changes earlier ones, and a run is the same however it is asked for.
    let more = Generator::new(&model, None, options(9_000, Sampling::Independent)).unwrap();
    assert_eq!(more.runs(0..4_000), fleet.runs);
    assert_eq!(more.run(1_234), Some(fleet.runs[1_234].clone()));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(pool.install(|| generator.fleet()).runs, fleet.runs);
}

/// Runs that ask at the same time fail together: that is what an outage is.
#[test]
fn outages_hit_runs_together() {
    let model: Model = toml::from_str(EVERYTHING).unwrap();
    let generator =
        Generator::new(&model, Some("a"), options(3_000, Sampling::Independent)).unwrap();
    let hit: Vec<bool> = generator
        .runs(0..3_000)
        .iter()
        .map(|run| {
            run.events
                .iter()
                .any(|event| event.kind == Kind::RetryStart)
        })
        .collect();
    let share = hit.iter().filter(|hit| **hit).count() as f64 / hit.len() as f64;
    let pairs =
        hit.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / (hit.len() - 1) as f64;
    assert!(
        pairs > 2.0 * share * share,
        "{pairs} of pairs, {share} of runs"
    );
}

fn samples(named: bool) -> Fleet {
    let mut symbols = Symbols::default();
    let bash = symbols.intern("bash");
    let mut runs = Vec::new();
    for run in 0..300_u64 {
        for turn in 0..=run % 5 {
            for (kind, ms) in [
                (WaitKind::PreToken, 1_000 + run * 10 + turn),
                (WaitKind::Tool, 50 + run),
            ] {
                let mut event = RunEvent::new(0, Kind::Status);
                event.name = bash;
                event.wait = Some(Wait { kind, ms });
                let name = if named {
                    format!("run-{run}")
                } else {
                    String::new()
                };
                runs.push(Run {
                    name: Arc::from(name),
                    status: RunStatus::Outside,
                    events: vec![event],
                    ..Run::default()
                });
            }
        }
    }
    Fleet { runs, symbols }
}

#[test]
fn samples_make_as_many_runs_as_they_name() {
    let named = fit_samples(&samples(true), "s", "test").unwrap();
    assert_eq!((named.runs, named.assumed_turns), (300, false));
    let model = named.fitted.to_model().unwrap();
    let fleet = Generator::new(&model, None, options(300, Sampling::Stratified))
        .unwrap()
        .fleet();
    let waits = counts(&fleet.runs);
    // 900 waits between 1,000 and 3,994 ms, evenly spread.
    let median = at(&waits[&WaitKind::PreToken], Prob::P50);
    assert!((2_350..2_650).contains(&median), "{median}");
    assert!((750..1_050).contains(&waits[&WaitKind::PreToken].total()));

    // Without names: 900 waits at 96 / 11 assumed turns per run.
    let unnamed = fit_samples(&samples(false), "s", "test").unwrap();
    assert_eq!((unnamed.runs, unnamed.assumed_turns), (103, true));

    let mut only_tools = samples(true);
    only_tools
        .runs
        .retain(|run| run.events[0].wait.unwrap().kind == WaitKind::Tool);
    let error = fit_samples(&only_tools, "s", "test")
        .unwrap_err()
        .to_string();
    assert!(error.contains("samples of the kind pre_token"), "{error}");
}

#[test]
fn faults_of_distributions_are_named() {
    let check = |from: &str, to: &str, part: &str| {
        let error = toml::from_str::<Model>(&EVERYTHING.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error} does not name {part}");
    };
    check(
        "median = 5_000, sigma_ppm = 500_000",
        "median = 0, sigma_ppm = 500_000",
        "is no distribution",
    );
    check(
        "samples = [[100, 1], [300, 3]]",
        "samples = [[100, 0]]",
        "count of a sample is 0",
    );
    check(
        "samples = [[100, 1], [300, 3]]",
        "samples = [[100, 1]], quantiles = { min = 1, max = 2 }",
        "two forms",
    );
    check(
        "model_session_ppm = 200_000",
        "model_session_ppm = 995_000",
        "expected at most 990000",
    );
    check("model = \"fast\"\n", "", "model or role");
    check("every_ms = 3_600_000", "every_ms = 0", "every_ms is 0");
    check(
        "backoff = { first_delay_ms = 2_000, factor = 2, jitter_up_percent = 25, cap_ms = 30_000 }\n",
        "",
        "retry.schedule_ms or retry.backoff",
    );
    check(
        "compact = { unit = \"ms\", samples = [[60_000, 1]] }\n",
        "",
        "wait.compact",
    );
}
