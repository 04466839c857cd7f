//! What limits cost: those of 10,000 cells computed one by one and remembered by (kills, runs), all intervals and
//! verdicts of a sweep of 10,000 windows, and what only resampling gives, apart.
//!
//! The telemetry crate's bench `limits` holds the sweep's against decoding the events that it reads.
#![allow(clippy::unwrap_used)]

#[path = "common/choice.rs"]
mod choice;
#[allow(dead_code)]
#[path = "common/workload.rs"]
mod workload;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use policysim_policy::Millis;
use policysim_sim::resampled::session_costs;
use policysim_sim::run::{Fleet, Symbols};
use policysim_sim::scan::{Batch, InMemory};
use policysim_sim::stats::bootstrap::Resampling;
use policysim_sim::stats::{Level, RateTable, clopper_pearson};

const CELLS: u64 = 10_000;
const EVENTS: usize = 10_000_000;

fn main() {
    divan::main();
}

/// Kills of the cells of a sweep over 5,000 runs: many cells, few different counts.
fn kills(cell: u64) -> u64 {
    (cell * 7_919) % 400
}

#[divan::bench]
fn remembered() -> f64 {
    let mut table = RateTable::new(Level::P95);
    (0..CELLS)
        .filter_map(|cell| table.limits(kills(cell), 5_000).upper)
        .sum()
}

#[divan::bench(sample_count = 10)]
fn one_by_one() -> f64 {
    (0..CELLS)
        .filter_map(|cell| clopper_pearson(kills(cell), 5_000, Level::P95).up)
        .sum()
}

#[divan::bench(sample_count = 10)]
fn intervals(bencher: Bencher<'_, '_>) {
    let symbols = Symbols::default();
    let batches = workload::batches(1, EVENTS, 1 << 16);
    let cells = choice::Cells::of(&InMemory::of_batches(&symbols, batches));
    bencher
        .counter(ItemsCount::new(cells.cells.len()))
        .bench_local(|| black_box(cells.intervals()));
}

/// The interval of one cell's cost, 2,000 draws of all sessions; what they cost is summed before.
#[divan::bench(sample_count = 3)]
fn bootstrap(bencher: Bencher<'_, '_>) {
    let batches = workload::batches(1, EVENTS / 10, 1 << 16);
    let runs = batches.iter().flat_map(Batch::runs);
    let fleet = Fleet {
        runs: runs.map(|run| run.to_run()).collect(),
        symbols: Symbols::default(),
    };
    let policy = policysim_policy::presets::find("pi-desktop-0129").unwrap();
    let costs = session_costs(&fleet, &policy, Millis::ZERO, &|_| true);
    bencher
        .counter(ItemsCount::new(costs.len()))
        .bench_local(|| black_box(costs.interval(0.01, Resampling::default())));
}
