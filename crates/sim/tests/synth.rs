//! The committed models and the runs made from them.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use policysim_policy::{Cause, Kind, Millis, Outcome, presets};
use policysim_sim::judgement::Judgement;
use policysim_sim::replay::replay;
use policysim_sim::run::{
    EventFlags, Measured, RecordedEnd, Resolution, Run, RunEvent, RunStatus, WaitKind,
};
use policysim_sim::synth::{
    Generator, Knot, Model, Options, Quantiles, RunFigure, Sampling, SourceResolution,
};

const DEMO_RUNS: u64 = 8000;
const DEMO_SEED: u64 = 0;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn model_text(name: &str) -> String {
    std::fs::read_to_string(repository().join("data/models").join(name)).unwrap()
}

fn model(name: &str) -> Model {
    toml::from_str(&model_text(name)).unwrap()
}

fn options(runs: u64, sampling: Sampling) -> Options {
    Options {
        seed: DEMO_SEED,
        runs,
        sampling,
    }
}

fn demo(model: &Model) -> Vec<Run> {
    let generator = Generator::new(model, None, options(DEMO_RUNS, Sampling::Stratified)).unwrap();
    generator.runs(0..DEMO_RUNS)
}

fn waits(runs: &[Run], kind: WaitKind) -> Vec<u64> {
    let waits = runs
        .iter()
        .flat_map(|run| &run.events)
        .filter_map(|event| event.wait);
    let mut all: Vec<u64> = waits
        .filter(|wait| wait.kind == kind)
        .map(|wait| wait.ms)
        .collect();
    all.sort_unstable();
    all
}

/// The ceil(p n)-th smallest, p in millionths.
fn nearest_rank(sorted: &[u64], p_ppm: u64) -> u64 {
    let rank = (p_ppm * sorted.len() as u64).div_ceil(1_000_000).max(1);
    sorted[rank as usize - 1]
}

#[track_caller]
fn within_two_percent(what: &str, got: u64, expected: u64) {
    assert!(
        got.abs_diff(expected) * 50 <= expected,
        "{what}: {got} ms, expected {expected} ms"
    );
}

#[test]
fn demo_pre_token_waits_are_those_of_the_adr() {
    let runs = demo(&model("adr-0129.toml"));
    let sorted = waits(&runs, WaitKind::PreToken);
    assert!(sorted.len() > 50_000, "{}", sorted.len());
    // The figures that ADR 0129 publishes.
    for (p_ppm, ms) in [
        (500_000, 5600),
        (900_000, 13_400),
        (990_000, 55_000),
        (999_000, 174_000),
    ] {
        within_two_percent(&format!("{p_ppm} ppm"), nearest_rank(&sorted, p_ppm), ms);
    }
    assert!(*sorted.first().unwrap() >= 800 && *sorted.last().unwrap() <= 430_000);
    assert!(
        sorted.last().unwrap() > &400_000,
        "the top stratum is there"
    );
}

#[test]
fn demo_waits_are_in_no_order() {
    let runs = demo(&model("adr-0129.toml"));
    let in_order: Vec<u64> = runs
        .iter()
        .flat_map(|run| &run.events)
        .filter_map(|event| event.wait)
        .filter(|wait| wait.kind == WaitKind::PreToken)
        .map(|wait| wait.ms)
        .collect();
    let above: Vec<bool> = in_order.iter().map(|&ms| ms > 5600).collect();
    let n = above.len();
    let changes = above.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // Half of the neighbours of a fair shuffle differ; the standard deviation is sqrt(n) / 2.
    let tolerance = 2 * (n as u64).isqrt() as usize;
    assert!(changes.abs_diff(n / 2) < tolerance, "{changes} of {n}");
    // The halves of the fleet are alike as well.
    for half in [&in_order[..n / 2], &in_order[n / 2..]] {
        let mut half = half.to_vec();
        half.sort_unstable();
        let median = nearest_rank(&half, 500_000);
        assert!(median.abs_diff(5600) < 168, "{median}");
    }
}

#[test]
fn independent_draws_follow_the_model_too() {
    let model = model("adr-0129.toml");
    let options = options(3000, Sampling::Independent);
    let runs = Generator::new(&model, None, options).unwrap().runs(0..3000);
    let sorted = waits(&runs, WaitKind::PreToken);
    // By the binomial law of the counts, over four standard deviations wide.
    let n = sorted.len() as f64;
    for (share, ms) in [(0.5, 5600), (0.9, 13_400), (0.99, 55_000)] {
        let below = sorted.partition_point(|&wait| wait <= ms) as f64;
        let tolerance = 4.5 * (n * share * (1.0 - share)).sqrt();
        assert!(
            (below - n * share).abs() < tolerance,
            "{below} of {n} up to {ms} ms"
        );
    }
}

#[test]
fn threads_change_nothing() {
    let model = model("adr-0129.toml");
    let made = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let options = options(400, Sampling::Stratified);
            format!(
                "{:?}",
                Generator::new(&model, None, options).unwrap().runs(0..400)
            )
        })
    };
    assert_eq!(made(1), made(2));
}

#[test]
fn a_run_is_the_same_however_it_is_asked_for() {
    let model = model("adr-0129.toml");
    let generator = Generator::new(&model, None, options(50, Sampling::Stratified)).unwrap();
    let all = generator.runs(0..1000);
    assert_eq!(all.len(), 50);
    assert_eq!(generator.runs(30..40), all[30..40]);
    assert_eq!(generator.run(17).as_ref(), all.get(17));
    assert_eq!(generator.run(50), None);
    let other = Options {
        seed: 1,
        ..options(50, Sampling::Stratified)
    };
    assert_ne!(
        Generator::new(&model, None, other).unwrap().runs(0..50),
        all
    );
}

#[test]
fn adding_runs_changes_only_what_is_documented() {
    let model = model("adr-0129.toml");
    let made = |runs, sampling| {
        Generator::new(&model, None, options(runs, sampling))
            .unwrap()
            .runs(0..100)
    };
    let independent = |runs| made(runs, Sampling::Independent);
    assert_eq!(independent(100), independent(200));

    let (few, many) = (
        made(100, Sampling::Stratified),
        made(200, Sampling::Stratified),
    );
    assert_ne!(few, many);
    for (one, other) in few.iter().zip(&many) {
        let kept = |run: &Run| (run.name.clone(), run.role.clone(), run.model.clone());
        assert_eq!(kept(one), kept(other));
    }
}

/// Ranks of values, from 0 up; equal ones in the order they come.
fn ranks(values: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&index| values[index]);
    let mut ranks = vec![0; values.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index] = rank;
    }
    ranks
}

/// A figure of a run, where it has it.
type Figure<'f> = Box<dyn Fn(&Run) -> Option<u64> + 'f>;

/// Draws for different purposes in one run, and two for the same, have nothing to do with each other: no
/// correlation of ranks, and the pairs fill the plane as chance would have them.
#[test]
fn strata_bind_no_two_draws_of_a_run() {
    let model = model("adr-0129.toml");
    let runs = demo(&model);
    let generator = Generator::new(&model, None, options(1, Sampling::Independent)).unwrap();
    let name = |event: &RunEvent| generator.symbols().name(event.name).to_owned();
    let of_kind = |run: &Run, kind, nth| {
        let waits = run.events.iter().filter_map(|event| event.wait);
        let mut of_kind = waits.filter(|wait| wait.kind == kind);
        of_kind.nth(nth).map(|wait| wait.ms)
    };
    let call = |run: &Run, tool: &str| {
        let mut ends = run
            .events
            .iter()
            .filter(|event| event.kind == Kind::ToolEnd);
        let end = ends.find(|&event| name(event) == tool)?;
        Some(end.wait?.ms)
    };
    let first_gap = |run: &Run| {
        let start = run
            .events
            .iter()
            .position(|event| event.kind == Kind::MessageStart)?;
        Some(run.events.get(start + 1)?.t_ms - run.events[start].t_ms)
    };
    let first = || -> Figure<'_> { Box::new(move |run| of_kind(run, WaitKind::PreToken, 0)) };
    let pairs: [(&str, Figure<'_>, Figure<'_>); 5] = [
        ("bash", first(), Box::new(|run| call(run, "bash"))),
        ("read", first(), Box::new(|run| call(run, "read"))),
        ("gap", first(), Box::new(first_gap)),
        (
            "second",
            first(),
            Box::new(|run| of_kind(run, WaitKind::PreToken, 1)),
        ),
        (
            "next",
            Box::new(first_gap),
            Box::new(|run| call(run, "bash")),
        ),
    ];
    for (what, one, other) in pairs {
        let found: (Vec<u64>, Vec<u64>) = runs
            .iter()
            .filter_map(|run| Some((one(run)?, other(run)?)))
            .unzip();
        let n = found.0.len();
        assert!(n > 3_000, "{what}: {n}");
        let (xs, ys) = (ranks(&found.0), ranks(&found.1));
        let middle = (n - 1) as f64 / 2.0;
        let products = xs
            .iter()
            .zip(&ys)
            .map(|(&x, &y)| (x as f64 - middle) * (y as f64 - middle));
        let correlation = 12.0 * products.sum::<f64>() / (n as f64).powi(3);
        // four standard deviations of 1 / sqrt(n)
        let tolerance = 4.0 / (n as f64).sqrt();
        assert!(correlation.abs() < tolerance, "{what}: {correlation}");
        let mut boxes = [0_u32; 100];
        for (x, y) in xs.into_iter().zip(ys) {
            boxes[10 * (10 * x / n) + 10 * y / n] += 1;
        }
        let expected = n as f64 / 100.0;
        let chi_squared: f64 = boxes
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        println!("{what}: n {n}, correlation {correlation:.4}, chi-squared {chi_squared:.1}");
        // 81 degrees of freedom, the margins being even: standard deviation 12.7
        assert!(
            (30.0..132.0).contains(&chi_squared),
            "{what}: {chi_squared}"
        );
    }
}

/// Strata make a fleet's figures less scattered, and not others.
#[test]
fn strata_move_no_rate_of_false_kills() {
    let model = model("adr-0129.toml");
    let policies = [30_000, 60_000, 120_000].map(|window_ms| {
        let mut policy = presets::find("pi-desktop-0129").unwrap();
        policy.idle.window = Some(Millis::new(window_ms));
        policy
    });
    let seeds = 50;
    let rates = |sampling| -> Vec<[f64; 3]> {
        let of_seed = |seed| {
            let options = Options {
                seed,
                ..options(300, sampling)
            };
            let fleet = Generator::new(&model, None, options).unwrap().fleet();
            policies.each_ref().map(|policy| {
                let killed = fleet.runs.iter().filter(|run| {
                    replay(policy, run, &fleet.symbols).judgement == Judgement::FalseKill
                });
                killed.count() as f64 / 300.0
            })
        };
        (0..seeds).map(of_seed).collect()
    };
    let (spread, apart) = (rates(Sampling::Stratified), rates(Sampling::Independent));
    let moments = |rates: &[[f64; 3]], policy: usize| {
        let n = rates.len() as f64;
        let mean = rates.iter().map(|rate| rate[policy]).sum::<f64>() / n;
        let squares = rates.iter().map(|rate| (rate[policy] - mean).powi(2));
        (mean, squares.sum::<f64>() / (n - 1.0))
    };
    for policy in 0..policies.len() {
        let ((one, one_var), (other, other_var)) =
            (moments(&spread, policy), moments(&apart, policy));
        let error = ((one_var + other_var) / seeds as f64).sqrt();
        println!(
            "window {policy}: {one:.5} (sd {:.5}) in strata, {other:.5} (sd {:.5}) apart, standard error {error:.5}",
            one_var.sqrt(),
            other_var.sqrt(),
        );
        assert!(
            other > 0.005 && (one - other).abs() < 3.5 * error,
            "{one} {other}"
        );
        assert!(one_var <= other_var, "{one_var} {other_var}");
    }
}

/// One law behind two tools, one for each model, and a fleet whose populations are mixed: every stratum of every law
/// holds one draw.
#[test]
fn a_law_that_several_share_is_filled_once() {
    let document = r#"{
      "schema_version": 1, "name": "shared", "about": "-", "source": "none", "mixed": true,
      "calendar": {"assumed": true, "epoch_ms": 0, "start_every_ms": 1000, "runs_per_session": 3},
      "population": {"a": POPULATION, "b": POPULATION}}"#;
    let population = r#"{
      "about": "-", "resolution": "message", "approvals_in_tools": false,
      "wait": {
        "pre_token": {"unit": "ms", "quantiles": {"min": 0, "max": 0}},
        "tool": {"unit": "ms", "mixture": [{"kind": "uniform", "weight": 1, "from": 0, "to": 1000000}], "assumed": true}
      },
      "by": [{"model": "large", "wait": {
        "tool": {"unit": "ms", "mixture": [{"kind": "uniform", "weight": 1, "from": 2000000, "to": 3000000}], "assumed": true}
      }}],
      "run": {"turns": {"unit": "turns", "quantiles": {"min": 1, "max": 9}}},
      "roles": {"assumed": true, "list": [{"name": "worker", "weight": 1}]},
      "models": {"assumed": true, "list": [{"name": "large", "weight": 1}, {"name": "small", "weight": 1}]},
      "tools": {"assumed": true, "turn_share_ppm": 900000, "calls_weights": [1, 1], "parallel_ppm": 500000,
        "list": [{"name": "one", "weight": 1}, {"name": "other", "weight": 2}]},
      "ends": {"assumed": true}}"#;
    let model: Model = serde_json::from_str(&document.replace("POPULATION", population)).unwrap();
    let generator = Generator::new(&model, None, options(333, Sampling::Stratified)).unwrap();
    let runs = generator.runs(0..333);
    for source in ["shared/a", "shared/b"] {
        for (name, from_ms) in [("large", 2_000_000), ("small", 0)] {
            let of = |run: &&Run| &*run.source == source && &*run.model == name;
            let of: Vec<Run> = runs.iter().filter(of).cloned().collect();
            let drawn = waits(&of, WaitKind::Tool);
            let n = drawn.len() as u64;
            assert!(n > 200, "{source} {name}: {n}");
            for (stratum, ms) in (0..).zip(drawn) {
                // up to 1 ms of rounding, which finds the first whole millisecond
                let ms = ms - from_ms;
                let within =
                    ms + 1 >= stratum * 1_000_000 / n && ms <= (stratum + 1) * 1_000_000 / n + 1;
                assert!(within, "{source} {name}: {ms} in {stratum} of {n}");
            }
        }
    }
    // A run is the same out of its block.
    for run in [0, 63, 64, 200, 332] {
        assert_eq!(generator.make(run), runs[run as usize]);
    }
    assert_eq!(generator.runs(60..70), runs[60..70]);
    assert_eq!(generator.runs(330..400), runs[330..]);
    assert_eq!(generator.runs(333..400), []);
}

/// The run's row, recomputed from its events by `DEFINITIONS.md` section 5 with nothing shared.
fn recomputed(run: &Run) -> Measured {
    let activity: Vec<u64> = run
        .events
        .iter()
        .filter(|event| event.flags.has(EventFlags::ACTIVITY))
        .map(|event| event.t_ms)
        .collect();
    let gap = run
        .events
        .iter()
        .filter_map(|event| event.wait)
        .filter(|wait| {
            ["pre_token", "pre_token_err", "compact", "censored"].contains(&wait.kind.name())
        });
    let output = |kind| matches!(kind, Kind::MessageStart | Kind::MessageEnd);
    let mut turns = 0;
    let mut waiting = false;
    for event in &run.events {
        waiting |= event.kind == Kind::TurnStart;
        if waiting && output(event.kind) {
            turns += 1;
            waiting = false;
        }
    }
    Measured {
        duration_ms: activity.iter().max().unwrap() - activity[0],
        turns,
        tools: run
            .events
            .iter()
            .filter(|event| event.kind == Kind::ToolEnd)
            .count() as u32,
        silence_ms: activity
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap_or(0),
        gap_ms: gap.map(|wait| wait.ms).max().unwrap_or(0),
        aborted: run
            .events
            .iter()
            .any(|event| event.outcome == Some(Outcome::Aborted)),
    }
}

/// Every wait, measured again between the two events that it lies between.
fn check_waits(run: &Run) {
    let mut handed_off = 0;
    let mut failed = None;
    let mut last_output = None;
    let mut begun = BTreeMap::new();
    let mut asked = BTreeMap::new();
    for event in &run.events {
        let since = match event.kind {
            Kind::TurnStart => {
                (handed_off, failed, last_output) = (event.t_ms, None, None);
                None
            }
            Kind::RetryStart => {
                let first = failed.is_none().then_some(handed_off);
                failed = Some(event.t_ms);
                first.map(|from| (WaitKind::ErrorWait, from))
            }
            Kind::RetryEnd => failed.map(|from| (WaitKind::Retry, from)),
            Kind::MessageStart | Kind::MessageEnd => {
                let kind = match failed {
                    Some(_) => WaitKind::PreTokenErr,
                    None => WaitKind::PreToken,
                };
                let ended = match last_output {
                    None => Some((kind, handed_off)),
                    Some(from) => (run.resolution == Resolution::Message)
                        .then_some((WaitKind::StreamGap, from)),
                };
                last_output = Some(event.t_ms);
                ended
            }
            Kind::ToolStart => {
                begun.insert(event.id, event.t_ms);
                None
            }
            Kind::ToolEnd => {
                let from = begun
                    .remove(&event.id)
                    .expect("a call ends once, after its start");
                event
                    .wait
                    .filter(|wait| wait.kind != WaitKind::Human)
                    .map(|wait| (wait.kind, from))
            }
            Kind::ApprovalStart | Kind::HumanWaitStart => {
                asked.insert(event.id, event.t_ms);
                None
            }
            Kind::ApprovalEnd => asked
                .remove(&event.id)
                .map(|from| (WaitKind::Approval, from)),
            Kind::HumanWaitEnd => asked.remove(&event.id).map(|from| (WaitKind::Human, from)),
            Kind::RunEnd => match event.outcome.unwrap() {
                Outcome::Completed => None,
                Outcome::Aborted => Some((WaitKind::Censored, handed_off)),
                Outcome::Failed => (failed.is_none() && last_output.is_none())
                    .then_some((WaitKind::ErrorWait, handed_off)),
            },
            _ => None,
        };
        let expected = since.map(|(kind, from)| (kind, event.t_ms - from));
        let found = event.wait.map(|wait| (wait.kind, wait.ms));
        assert_eq!(found, expected, "{} {event:?}", run.name);
    }
    assert!(asked.is_empty(), "{}", run.name);
    let open = usize::from(run.events.last().unwrap().kind == Kind::ToolStart);
    assert_eq!(begun.len(), open, "{}", run.name);
}

fn check_run(run: &Run) {
    assert_eq!(run.measured, recomputed(run), "{}", run.name);
    check_waits(run);
    assert!(
        run.measured.turns > 0 && run.status == RunStatus::Run,
        "{}",
        run.name
    );
    assert!(
        run.events
            .windows(2)
            .all(|pair| pair[0].t_ms <= pair[1].t_ms),
        "{}",
        run.name
    );
    assert_eq!(run.events[0].kind, Kind::RunStart);
    let last = run.events.last().unwrap();
    let outcome = match run.end {
        RecordedEnd::Completed => Some(Outcome::Completed),
        RecordedEnd::Failed => Some(Outcome::Failed),
        RecordedEnd::Aborted => Some(Outcome::Aborted),
        _ => None,
    };
    assert_eq!(last.outcome, outcome, "{}", run.name);
    assert_eq!(last.kind == Kind::RunEnd, outcome.is_some(), "{}", run.name);
    // Every turn but one that was cut has its end, after its calls.
    let of = |kind| run.events.iter().filter(|event| event.kind == kind).count();
    let cut = run
        .events
        .iter()
        .rposition(|event| event.kind == Kind::TurnStart)
        > run
            .events
            .iter()
            .rposition(|event| event.kind == Kind::TurnEnd);
    assert_eq!(
        of(Kind::TurnStart),
        of(Kind::TurnEnd) + usize::from(cut),
        "{}",
        run.name
    );
    assert!(!(cut && run.end == RecordedEnd::Completed), "{}", run.name);
    let ends = run
        .events
        .iter()
        .filter(|event| event.kind == Kind::RunEnd)
        .count();
    assert_eq!(ends, usize::from(outcome.is_some()), "{}", run.name);
    match run.end {
        // Longer than any total budget of ADR 0129.
        RecordedEnd::Hung => assert!(run.end_ms - last.t_ms >= 7 * 3_600_000, "{}", run.name),
        RecordedEnd::OpenInModel | RecordedEnd::OpenInTool => assert!(run.end_ms >= last.t_ms),
        _ => assert_eq!(run.end_ms, last.t_ms, "{}", run.name),
    }
}

#[test]
fn demo_runs_are_whole_and_measured_right() {
    let runs = demo(&model("adr-0129.toml"));
    runs.iter().for_each(check_run);
    let names: BTreeSet<&str> = runs.iter().map(|run| &*run.name).collect();
    assert_eq!(names.len(), runs.len());
    assert_eq!(&*runs[0].name, "adr-0129/delegates#1");
    assert!(runs.iter().all(|run| run.resolution == Resolution::Stream));
    assert!(
        runs.iter()
            .all(|run| &*run.harness == "synthetic" && run.source.starts_with("adr-0129/"))
    );
    // 2026-01-05T08:00:00Z and 90 s for each run.
    assert_eq!(runs[2].started_at_ms, 1_767_600_180_000);
    assert_eq!(
        runs.iter()
            .map(|run| &run.session)
            .collect::<BTreeSet<_>>()
            .len(),
        1000
    );
}

#[test]
fn demo_holds_every_kind_of_ending_about_as_often_as_the_model_says() {
    let runs = demo(&model("adr-0129.toml"));
    let last_kind = |run: &Run| run.events.last().unwrap().kind;
    let count = |test: &dyn Fn(&Run) -> bool| runs.iter().filter(|run| test(run)).count() as f64;
    let hung = |kinds: &'static [Kind]| {
        move |run: &Run| run.end == RecordedEnd::Hung && kinds.contains(&last_kind(run))
    };
    let ended = |end| move |run: &Run| run.end == end;
    let n = runs.len() as f64;
    // Shares as they stand in the model's file; a run may fail before the ending it was to have.
    for (what, found, share) in [
        (
            "before output",
            count(&hung(&[Kind::TurnStart, Kind::RetryEnd])),
            0.007,
        ),
        (
            "mid-stream",
            count(&hung(&[Kind::MessageStart, Kind::MessageUpdate])),
            0.005,
        ),
        ("in a tool", count(&hung(&[Kind::ToolStart])), 0.002),
        ("aborted", count(&ended(RecordedEnd::Aborted)), 0.02),
        (
            "open in model",
            count(&ended(RecordedEnd::OpenInModel)),
            0.000_125,
        ),
        (
            "open in tool",
            count(&ended(RecordedEnd::OpenInTool)),
            0.000_125,
        ),
    ] {
        let tolerance = 4.0 * (n * share).sqrt();
        assert!(
            (found - n * share).abs() < tolerance,
            "{what}: {found} of {n}"
        );
    }
    for end in RecordedEnd::ALL {
        let expected = !matches!(end, RecordedEnd::Killed | RecordedEnd::Unknown);
        assert_eq!(count(&ended(end)) > 0.0, expected, "{end:?}");
    }
    let hangs = count(&ended(RecordedEnd::Hung));
    assert!((0.01 * n..0.02 * n).contains(&hangs), "{hangs}");
    assert!(count(&ended(RecordedEnd::Completed)) > 0.95 * n);
}

#[test]
fn demo_turn_caps_spare_healthy_runs_and_stop_loops() {
    let runs = demo(&model("adr-0129.toml"));
    // The caps of ADR 0129.
    let caps = [
        ("explorer", 60),
        ("code-reviewer", 50),
        ("test-runner", 40),
        ("fixer", 80),
    ];
    for (role, cap) in caps {
        let of_role = runs.iter().filter(|run| &*run.role == role);
        let (mut healthy, mut over_half, mut over, mut looped) = (0, 0, 0, 0);
        for run in of_role {
            if run.end == RecordedEnd::Completed {
                healthy += 1;
                over_half += u32::from(run.measured.turns > cap / 2);
                over += u32::from(run.measured.turns > cap);
            }
            // 85 turns or more: those that fail on their provider are never so long.
            looped += u32::from(run.end == RecordedEnd::Failed && run.measured.turns >= 85);
        }
        let found = format!("{role}: {over_half} and {over} of {healthy}, {looped} loop");
        assert!(healthy > 1000 && looped > 0, "{found}");
        // The cap spares healthy runs and stops loops; half of it costs 0.5 % of them or more.
        assert!(
            over * 500 <= healthy && over_half * 200 >= healthy,
            "{found}"
        );
    }
    let roles: BTreeSet<&str> = runs.iter().map(|run| &*run.role).collect();
    assert_eq!(roles, caps.map(|(role, _)| role).into_iter().collect());
}

/// Whether a silence outside tool calls reaches `window_ms` before the last event: what an idle
/// window that every event re-arms and tools pause cuts short.
fn is_silent_for(run: &Run, window_ms: u64) -> bool {
    let (mut open_calls, mut last_ms, mut reached) = (0, 0, false);
    for event in &run.events {
        reached |= open_calls == 0 && event.t_ms - last_ms >= window_ms;
        match event.kind {
            Kind::ToolStart => open_calls += 1,
            Kind::ToolEnd => open_calls -= 1,
            _ => {}
        }
        last_ms = event.t_ms;
    }
    reached
}

#[test]
fn demo_shows_the_price_of_an_idle_window() {
    let model = model("adr-0129.toml");
    let generator = Generator::new(&model, None, options(DEMO_RUNS, Sampling::Stratified)).unwrap();
    let fleet = generator.fleet();
    let healthy: Vec<&Run> = fleet
        .runs
        .iter()
        .filter(|run| run.end == RecordedEnd::Completed)
        .collect();
    let mut policy = presets::find("pi-desktop-0129").unwrap();
    policy.total.budget = None;
    policy.turns.cap = None;
    policy.turns.by_role = policysim_policy::ByName::default();
    // Several percent at 60 s, few at 300 s, none from the largest wait on.
    for (window_ms, at_least, at_most) in [
        (60_000, 300, 700),
        (120_000, 80, 200),
        (300_000, 5, 35),
        (450_000, 0, 0),
    ] {
        policy.idle.window = Some(Millis::new(window_ms));
        let killed: Vec<&str> = healthy
            .iter()
            .filter(|run| replay(&policy, run, &fleet.symbols).judgement == Judgement::FalseKill)
            .map(|run| &*run.name)
            .collect();
        let silent: Vec<&str> = healthy
            .iter()
            .filter(|run| is_silent_for(run, window_ms))
            .map(|run| &*run.name)
            .collect();
        assert_eq!(killed, silent, "{window_ms} ms");
        assert!(
            (at_least..=at_most).contains(&killed.len()),
            "{window_ms} ms: {}",
            killed.len()
        );
    }
}

#[test]
fn demo_hangs_and_loops_meet_the_limit_that_is_there_for_them() {
    let model = model("adr-0129.toml");
    let generator = Generator::new(&model, None, options(DEMO_RUNS, Sampling::Stratified)).unwrap();
    let fleet = generator.fleet();
    let policy = presets::find("pi-desktop-0129").unwrap();
    let mut causes = BTreeMap::new();
    for run in &fleet.runs {
        let replayed = replay(&policy, run, &fleet.symbols);
        if replayed.judgement == Judgement::TrueKill {
            let in_tool = run.events.last().unwrap().kind == Kind::ToolStart;
            let key = (run.end.name(), in_tool, replayed.verdict.cause.name());
            *causes.entry(key).or_insert(0) += 1;
        }
        assert_ne!(replayed.judgement, Judgement::MissedHang, "{}", run.name);
    }
    // Tools pause the idle clock of ADR 0129, so only the total budget ends a hang in one.
    let expected = [
        ("failed", false, Cause::TurnLimit.name()),
        ("hung", false, Cause::IdleTimeout.name()),
        ("hung", true, Cause::TotalTimeout.name()),
    ];
    assert_eq!(
        causes.keys().copied().collect::<Vec<_>>(),
        expected,
        "{causes:?}"
    );
    assert!(causes.values().all(|&runs| runs >= 10), "{causes:?}");
}

#[test]
fn demo_stays_small() {
    let runs = demo(&model("adr-0129.toml"));
    let events: usize = runs.iter().map(|run| run.events.len()).sum();
    assert!(
        (30..=60).contains(&(events / runs.len())),
        "{events} events"
    );
}

#[test]
fn only_the_four_published_figures_are_not_assumed() {
    let model = model("adr-0129.toml");
    let (_, population) = model.population(None).unwrap();
    assert!(model.calendar().assumed);
    assert!(population.roles().assumed && population.models().assumed && population.ends().assumed);
    assert!(population.tools().unwrap().assumed && population.retry().unwrap().assumed);
    assert!(population.streaming().unwrap().assumed);
    let mut tables: Vec<(&str, &Quantiles)> = population
        .waits()
        .iter()
        .map(|(kind, table)| (kind.name(), table))
        .collect();
    tables.extend(
        population
            .roles()
            .list
            .iter()
            .map(|role| (&*role.name, role.turns.as_ref().unwrap())),
    );
    let tools = population.tools().unwrap().list.iter();
    tables.extend(tools.filter_map(|tool| Some((&*tool.name, tool.duration.as_ref()?))));
    tables.push(("pieces", &population.streaming().unwrap().pieces));
    tables.push((
        "after hang",
        population.ends().record_after_hang.as_ref().unwrap(),
    ));
    tables.push(("looped", population.ends().looped_turns.as_ref().unwrap()));
    assert!(population.figures().is_empty());
    let published: Vec<(&str, String, u64)> = tables
        .iter()
        .flat_map(|(name, table)| table.knots().iter().map(move |knot| (*name, knot)))
        .filter(|(_, knot)| !knot.assumed)
        .map(|(name, knot)| (name, knot.label(), knot.value))
        .collect();
    let expected = [
        ("p50", 5600),
        ("p90", 13_400),
        ("p99", 55_000),
        ("p99.9", 174_000),
    ]
    .map(|(label, ms)| ("pre_token", label.to_owned(), ms));
    assert_eq!(published, expected);
    let shown = population.assumptions();
    assert!(
        shown
            .iter()
            .any(|place| place.starts_with("wait.pre_token (min, p1,")),
        "{shown:?}"
    );
    assert!(shown.contains(&"ends".to_owned()) && shown.contains(&"turns of fixer".to_owned()));
}

#[test]
fn every_public_population_generates_runs() {
    let model = model("public-2026.toml");
    let names: Vec<&str> = model.populations().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["claude", "codex", "copilot", "gemini", "opencode", "pi"]
    );
    for (name, population) in model.populations() {
        let options = options(500, Sampling::Stratified);
        let runs = Generator::new(&model, Some(name), options)
            .unwrap()
            .runs(0..500);
        assert_eq!(runs.len(), 500);
        runs.iter().for_each(check_run);
        let stream = population.resolution() == SourceResolution::Stream;
        assert_eq!(stream, ["gemini", "opencode"].contains(&name), "{name}");
        assert!(population.caveats().len() >= 2, "{name}");
        let upper_bound = |run: &Run| {
            let mut waits = run.events.iter().filter(|event| {
                event
                    .wait
                    .is_some_and(|wait| wait.kind == WaitKind::PreToken)
            });
            waits.all(|event| event.flags.has(EventFlags::UPPER_BOUND) != stream)
        };
        assert!(runs.iter().all(upper_bound), "{name}");
        let sorted = waits(&runs, WaitKind::PreToken);
        for p_ppm in [500_000, 900_000, 990_000] {
            let knot = population
                .pre_token()
                .knots()
                .iter()
                .find(|knot| knot.p_ppm == p_ppm);
            within_two_percent(
                name,
                nearest_rank(&sorted, u64::from(p_ppm)),
                knot.unwrap().value,
            );
        }
    }
}

#[test]
fn public_figures_are_those_of_the_corpus() {
    let shared = std::env::var_os("POLICYSIM_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| repository().join("../shared"));
    let Ok(csv) = std::fs::read_to_string(shared.join("corpus/quantiles.csv")) else {
        println!("skipped: no corpus");
        return;
    };
    let model = model("public-2026.toml");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut rows = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        if fields[0] != "population" || fields[1] == "all" {
            continue;
        }
        rows += 1;
        let (_, population) = model.population(Some(fields[1])).unwrap();
        let table = match fields[2] {
            "run_duration" => &population.figures()[&RunFigure::Duration],
            "run_max_silence" => &population.figures()[&RunFigure::MaxSilence],
            "run_max_model_gap" => &population.figures()[&RunFigure::MaxModelGap],
            "run_turns" => &population.figures()[&RunFigure::Turns],
            kind => &population.waits()[&WaitKind::from_name(kind).unwrap()],
        };
        assert_eq!(table.n(), fields[3].parse().ok(), "{line}");
        assert_eq!(table.unit().name(), fields[4], "{line}");
        let mut published: BTreeMap<String, u64> = table
            .knots()
            .iter()
            .filter(|knot| !knot.assumed)
            .map(|knot: &Knot| (knot.label(), knot.value))
            .collect();
        // The ceil(0.01 n)-th smallest of at most 100 values is the smallest.
        if let Some(min) = published.remove("min") {
            assert!(
                table.n().unwrap() <= 100 && fields[5] == min.to_string(),
                "{line}"
            );
        }
        let columns = header.iter().zip(&fields).skip(5);
        let expected: BTreeMap<String, u64> = columns
            .map(|(label, value)| (label.replacen('q', "p", 1), value.parse().unwrap()))
            .collect();
        assert_eq!(published, expected, "{line}");
    }
    let tables = model
        .populations()
        .map(|(_, p)| p.waits().len() + p.figures().len());
    assert_eq!(tables.sum::<usize>(), rows, "no table without a row");
    assert!(rows > 0);
}

/// The demo's model with one edit, as TOML.
fn edited(from: &str, to: &str) -> Result<Model, String> {
    let text = model_text("adr-0129.toml");
    assert_eq!(
        text.matches(from).count(),
        1,
        "{from:?} stands once in the file"
    );
    toml::from_str(&text.replace(from, to)).map_err(|error| error.to_string())
}

/// What is replaced in the demo's model, by what, and what the error then names.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "schema_version = 1",
        "schema_version = 2",
        "schema_version 2, expected 1",
    ),
    (
        "name = \"adr-0129\"",
        "name = \"x\"\nseed = 3",
        "unknown field `seed`",
    ),
    (
        "start_every_ms",
        "start_each_ms",
        "unknown field `start_each_ms`",
    ),
    (
        "turn_share_ppm = 950_000",
        "turn_share = 0.95",
        "unknown field `turn_share`",
    ),
    (
        "turn_share_ppm = 950_000",
        "turn_share_ppm = 1_000_001",
        "share 1000001",
    ),
    (
        "aborted_ppm = 20_000",
        "aborted_ppm = 990_000",
        "add up to 1008250",
    ),
    (
        "wait.inter_token]",
        "wait.inter_tokens]",
        "unknown wait kind \"inter_tokens\"",
    ),
    (
        "wait.inter_token]",
        "wait.stream_gap]",
        "streaming needs wait.inter_token",
    ),
    (
        "wait.error_wait]",
        "wait.compact]",
        "retry needs wait.error_wait",
    ),
    (
        "wait.approval]",
        "wait.compact]",
        "tools.approval_ppm needs wait.approval",
    ),
    (
        "wait.human]",
        "wait.compact]",
        "needs wait.human or its own duration",
    ),
    (
        "wait.censored]",
        "wait.compact]",
        "ends needs wait.censored",
    ),
    (
        "wait.pre_token]\nunit",
        "wait.compact]\nunit",
        "needs wait.pre_token",
    ),
    ("p50 = 5_600", "q50 = 5_600", "unknown quantile \"q50\""),
    (
        "p90 = 13_400",
        "p90 = 5_000",
        "expected values that never fall",
    ),
    (
        "p90 = 13_400",
        "p90 = 13_400.0",
        "invalid type: floating point",
    ),
    (
        "looped_turns = {",
        "looped_turn = {",
        "unknown field `looped_turn`",
    ),
    (
        "runs_per_session = 8",
        "runs_per_session = 0",
        "runs_per_session is 0",
    ),
    ("failures_max = 5", "failures_max = 0", "failures_max is 0"),
    (
        "failures_max = 5",
        "failures_max = 1001",
        "expected at most 1000",
    ),
    (
        "calls_weights = [80, 15, 5]",
        "calls_weights = [0]",
        "calls_weights has no entry",
    ),
    (
        "update_every_ms = 15_000",
        "update_every_ms = 0",
        "update_every_ms is 0",
    ),
    (
        "wait = \"human\"",
        "wait = \"retry\"",
        "expected tool, tool_escalated, subagent or human",
    ),
    (
        "pieces = { unit = \"pieces\"",
        "pieces = { unit = \"ms\"",
        "is in ms, expected pieces",
    ),
    (
        "resolution = \"stream\"",
        "resolution = \"token\"",
        "unknown variant `token`",
    ),
    (
        "record_after_hang = {",
        "record_after = {",
        "unknown field `record_after`",
    ),
];

#[test]
fn unknown_keys_and_wrong_figures_are_refused_by_name() {
    for (from, to, part) in WRONG {
        let error = edited(from, to).unwrap_err();
        assert!(error.contains(part), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_population_is_chosen_by_name() {
    let public = model("public-2026.toml");
    let message = |name| public.population(name).unwrap_err().to_string();
    let known = "claude, codex, copilot, gemini, opencode, pi";
    assert!(message(None).ends_with(known), "{}", message(None));
    let unknown = message(Some("all"));
    assert!(
        unknown.contains("\"all\"") && unknown.ends_with(known),
        "{unknown}"
    );
    let demo = model("adr-0129.toml");
    assert_eq!(demo.population(None).unwrap().0, "delegates");
}
