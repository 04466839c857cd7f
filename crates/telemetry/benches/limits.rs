//! What certainty costs: every interval of a sweep of 10,000 cells, remembered by the counts that they hang on, beside
//! decoding the events that the sweep reads.
//!
//! `LIMITS_EVENTS=1e6` takes fewer events than the medium workload's ten millions. What only resampling gives is timed
//! by the bench `stats` of the simulation.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../sim/benches/common/choice.rs"]
mod choice;
#[allow(dead_code)]
#[path = "../../sim/benches/common/workload.rs"]
mod workload;

use std::sync::OnceLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use policysim_sim::run::Symbols;
use policysim_sim::scan::{Batch, Scan};
use policysim_telemetry::{Dataset, DatasetWriter, Manifest};

fn main() {
    divan::main();
}

/// A dataset in a folder that lasts as long as the first value.
fn dataset() -> &'static (tempfile::TempDir, Dataset) {
    static MADE: OnceLock<(tempfile::TempDir, Dataset)> = OnceLock::new();
    MADE.get_or_init(|| {
        let given = std::env::var("LIMITS_EVENTS").ok();
        let events = given.map_or(10_000_000, |text| text.parse::<f64>().unwrap() as u64);
        let folder = tempfile::tempdir().unwrap();
        let mut writer = DatasetWriter::in_folder(&folder.path().join("data")).unwrap();
        let symbols = Symbols::default();
        let (mut written, mut number) = (0, 0);
        let mut batch = Batch::default();
        while written < events {
            batch.clear();
            workload::run(1, number, &mut batch);
            let run = batch.runs().next().unwrap().to_run();
            written += run.events.len() as u64;
            writer.push(&run, &symbols).unwrap();
            number += 1;
        }
        (folder, writer.finish(Manifest::default()).unwrap())
    })
}

/// Every column that the sweep reads.
#[divan::bench(sample_count = 10)]
fn decode(bencher: Bencher<'_, '_>) {
    let (_, dataset) = dataset();
    let mut scratch = Batch::default();
    bencher
        .counter(ItemsCount::new(dataset.manifest().totals.n_events))
        .bench_local(|| {
            for index in 0..dataset.batches() {
                black_box(dataset.read(index, &mut scratch).unwrap());
            }
        });
}

/// Rates, verdicts, paired differences and detection times of all cells, and the choice among them.
#[divan::bench(sample_count = 10)]
fn intervals(bencher: Bencher<'_, '_>) {
    let cells = choice::Cells::of(&dataset().1);
    bencher
        .counter(ItemsCount::new(cells.cells.len()))
        .bench_local(|| black_box(cells.intervals()));
}
