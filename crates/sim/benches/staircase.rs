//! The goals of a sweep in memory, as ratios of what is printed here.
//!
//! `bare_columns` against `pass` (a quarter at least), `windows` of many against one (1.3 and 2 times at most), `grid`
//! of 100 x 10 x 10 against `windows` of one (8 times at most) and against 10,000 times `replay`.
#![allow(clippy::unwrap_used)]

#[path = "common/workload.rs"]
mod workload;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use policysim_policy::document::Value;
use policysim_policy::{Policy, presets};
use policysim_sim::cluster::Cluster;
use policysim_sim::grid;
use policysim_sim::replay::verdict;
use policysim_sim::run::Symbols;
use policysim_sim::scan::{Batch, InMemory};
use policysim_sim::staircase::{Crossings, Structure, shape};
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::{Axis, Candidate, Question, candidates, sweep_scan};

const EVENTS: usize = 1_000_000;

fn main() {
    divan::main();
}

fn data() -> (Vec<Batch>, Symbols, ItemsCount) {
    let batches = workload::batches(1, EVENTS, 1 << 16);
    let events: usize = batches.iter().map(|batch| batch.events().len()).sum();
    (batches, Symbols::default(), ItemsCount::new(events))
}

fn policy() -> Policy {
    presets::find("pi-desktop-0129").unwrap()
}

/// The least that reads what a pass reads.
#[divan::bench(sample_count = 30)]
fn bare_columns(bencher: Bencher<'_, '_>) {
    let (batches, _, count) = data();
    bencher.counter(count).bench_local(|| {
        let mut sum = 0_u64;
        for batch in black_box(&batches) {
            for run in batch.runs() {
                for (&t_ms, &kind) in run.t_ms().iter().zip(run.kinds()) {
                    sum = sum.wrapping_add(t_ms).wrapping_add(kind as u64);
                }
            }
        }
        sum
    });
}

#[divan::bench(sample_count = 30, args = ["pi-desktop-0129", "pi-ext-adr0010", "netclaw-subagent", "no-mistakes-silence"])]
fn pass(bencher: Bencher<'_, '_>, preset: &str) {
    let (batches, symbols, count) = data();
    let policy = presets::find(preset).unwrap();
    let mut structure = Structure::new(shape(&policy).unwrap());
    structure.admit(&policy);
    let mut found = Crossings::default();
    bencher.counter(count).bench_local(|| {
        for batch in black_box(&batches) {
            for run in batch.runs() {
                structure.read(&run, &symbols, &mut found, |_| {}, |_| {});
                black_box(&found);
            }
        }
    });
}

/// One policy over every run, as an embedder drives the core.
#[divan::bench(sample_count = 30)]
fn replay(bencher: Bencher<'_, '_>) {
    let (batches, symbols, count) = data();
    let policy = policy();
    let source = InMemory::of_batches(&symbols, batches);
    bencher.counter(count).bench_local(|| {
        let mut kills = 0;
        for batch in black_box(source.all()) {
            for run in batch.runs() {
                kills += u64::from(verdict(&policy, &run, &symbols).cause.is_firing());
            }
        }
        kills
    });
}

fn axis(key: &str, values: Vec<Value>) -> Axis {
    Axis {
        key: key.to_owned(),
        values,
    }
}

fn windows_of(count: u64) -> Axis {
    // 5 s to an hour; one window is the preset's own
    let step = (3_595_000 / count).max(1);
    let text = if count == 1 {
        "300s".to_owned()
    } else {
        format!("5000ms..{}ms/{step}ms", 5000 + step * (count - 1))
    };
    axis("idle.window", grid::parse(&text).unwrap())
}

fn ask(bencher: Bencher<'_, '_>, candidates: &[Candidate]) {
    let (batches, symbols, _) = data();
    let source = InMemory::of_batches(&symbols, batches);
    let base = policy();
    let question = Question {
        base: &base,
        candidates,
        keys: &[StratumKey::Harness, StratumKey::Model],
        seed: 0,
        cluster: Cluster::Day,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    bencher
        .counter(ItemsCount::new(candidates.len()))
        .bench_local(|| {
            pool.install(|| {
                let swept = sweep_scan(black_box(&source), &question, &|_| {}).unwrap();
                swept.cells(false)
            })
        });
}

#[divan::bench(sample_count = 15, args = [1, 100, 10_000, 100_000])]
fn windows(bencher: Bencher<'_, '_>, count: u64) {
    ask(
        bencher,
        &candidates(&policy(), &[windows_of(count)]).unwrap(),
    );
}

#[divan::bench(sample_count = 15)]
fn grid_of_10_000(bencher: Bencher<'_, '_>) {
    let axes = [
        windows_of(100),
        axis("total.budget", grid::parse("10m..100m/10m").unwrap()),
        axis("turns.cap", grid::parse("10..100/10").unwrap()),
    ];
    ask(bencher, &candidates(&policy(), &axes).unwrap());
}

/// Four structures in one scan.
#[divan::bench(sample_count = 15)]
fn structures_of_4(bencher: Bencher<'_, '_>) {
    let rearm = axis(
        "idle.rearm",
        grid::parse("all,deltas,output,substantive").unwrap(),
    );
    ask(
        bencher,
        &candidates(&policy(), &[windows_of(100), rearm]).unwrap(),
    );
}
