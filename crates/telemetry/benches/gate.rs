//! How long a gate takes on a prepared dataset of 100,000 runs, beside reading its file.
//!
//! `cargo bench -p policysim-telemetry --bench gate`: the dataset is drawn from `data/models/adr-0129.toml` first (about
//! 58 events a run, as a log with one stamp per message has), then read, decided, and both; the ratio is told last.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement over real time that prints what it found"
)]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Instant;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use policysim_policy::{Millis, presets};
use policysim_sim::cluster::Cluster;
use policysim_sim::gate::{
    Bound, Evidence, FigureRule, Gate, Metric, Origin, Parents, Rule, Rules, Scope, Subject,
    Verdict, evaluate, figures_of,
};
use policysim_sim::run::Fleet;
use policysim_sim::stats::Prob;
use policysim_sim::strata::StratumKey;
use policysim_sim::synth::{Generator, Model, Options, Sampling};
use policysim_telemetry::{Dataset, DatasetWriter, Manifest};

const RUNS: u64 = 100_000;
/// How often the ratio is measured; the median counts.
const ROUNDS: usize = 5;

/// The dataset, in a folder that lasts as long as the process.
static DATA: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let model: Model = toml::from_str(include_str!("../../../data/models/adr-0129.toml")).unwrap();
    let options = Options {
        seed: 0,
        runs: RUNS,
        sampling: Sampling::Independent,
    };
    let fleet = Generator::new(&model, None, options).unwrap().fleet();
    let mut writer = DatasetWriter::in_folder(&path).unwrap();
    for run in &fleet.runs {
        writer.push(run, &fleet.symbols).unwrap();
    }
    writer.finish(Manifest::default()).unwrap();
    (folder, path)
});

fn main() {
    divan::main();
    if std::env::args().any(|arg| arg == "--test" || arg == "--list") {
        return;
    }
    let path = &DATA.1;
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        black_box(read(path));
        let reading = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        black_box(decide(&read(path)));
        ratios.push((begun.elapsed().as_secs_f64(), reading));
    }
    ratios.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (gate, reading) = ratios[ROUNDS / 2];
    println!(
        "gate on {RUNS} runs: {gate:.2} s, {:.2} times reading the file ({reading:.2} s)",
        gate / reading
    );
}

fn read(path: &Path) -> Fleet {
    let dataset = Dataset::open(path).unwrap();
    Fleet {
        runs: dataset.fleet().unwrap(),
        symbols: dataset.symbols().clone(),
    }
}

fn rule(metric: Metric, bound: Bound, amount: f64) -> FigureRule {
    FigureRule {
        metric,
        quantile: metric.takes_quantile().then_some(Prob::P50),
        cause: None,
        scope: Scope::All,
        every: true,
        cluster: Cluster::default(),
        sequence: Vec::new(),
        against: None,
        hang_rate: None,
        restart: Millis::ZERO,
        parents: Parents::default(),
        habits: String::new(),
        bound,
        amount,
        written: String::new(),
    }
}

/// The figures that the demo's own gate holds, but for the sequence of windows.
fn rules() -> Rules {
    let rate = |scope| FigureRule {
        scope,
        ..rule(Metric::FalseKillRate, Bound::Max, 0.01)
    };
    let figures = [
        rate(Scope::All),
        rate(Scope::Every(StratumKey::Role)),
        rate(Scope::Every(StratumKey::Model)),
        rule(Metric::DetectedShare, Bound::Min, 0.95),
        rule(Metric::DetectionTime, Bound::Max, 300_000.0),
        rule(Metric::SettlesInWait, Bound::Min, 0.5),
        rule(Metric::WorkLost, Bound::Max, 5_000.0),
        rule(Metric::Runs, Bound::Min, 2_995.0),
        rule(Metric::UnresolvedShare, Bound::Max, 0.001),
        rule(Metric::FlaggedShare, Bound::Max, 0.01),
    ];
    Rules {
        rules: figures
            .map(|figure| Rule {
                name: None,
                line: 1,
                level: None,
                inconclusive: None,
                subject: Subject::Figure(figure),
            })
            .into(),
        ..Rules::default()
    }
}

fn decide(fleet: &Fleet) -> Gate {
    let policy = presets::find("pi-desktop-0129").unwrap();
    let rules = rules();
    let figures = figures_of(fleet, &policy, &rules.needs(), Origin::default());
    let evidence = Evidence {
        policy: &policy,
        now: &figures,
        baseline: None,
        seed: 0,
    };
    let gate = evaluate(&rules, evidence);
    assert_eq!(gate.verdict(), Verdict::Pass);
    gate
}

/// Reading the dataset's file into memory.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn reading(bencher: Bencher<'_, '_>) {
    let path = &DATA.1;
    bencher
        .counter(ItemsCount::new(RUNS))
        .bench_local(|| read(black_box(path)));
}

/// Deciding the rules on runs in memory.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn deciding(bencher: Bencher<'_, '_>) {
    let fleet = read(&DATA.1);
    bencher
        .counter(ItemsCount::new(RUNS))
        .bench_local(|| decide(black_box(&fleet)));
}

/// The gate: both.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn gate(bencher: Bencher<'_, '_>) {
    let path = &DATA.1;
    bencher
        .counter(ItemsCount::new(RUNS))
        .bench_local(|| decide(&read(black_box(path))));
}
