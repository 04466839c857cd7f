//! How fast a dataset is read: events per second as columns and as data frames, and a sweep over them.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../sim/benches/common/workload.rs"]
mod workload;

use std::fs::File;
use std::path::Path;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use polars::prelude::{ParallelStrategy, ParquetReader, SerReader};
use policysim_policy::presets;
use policysim_sim::cluster::Cluster;
use policysim_sim::run::Symbols;
use policysim_sim::scan::{Batch, Scan};
use policysim_sim::sweep::{Question, candidates, sweep_scan};
use policysim_telemetry::{Dataset, DatasetWriter, Manifest};

const EVENTS: usize = 1_000_000;

fn main() {
    divan::main();
}

/// A dataset in a folder that lasts as long as the first value.
fn dataset() -> (tempfile::TempDir, Dataset, ItemsCount) {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::in_folder(&folder.path().join("data")).unwrap();
    let symbols = Symbols::default();
    for batch in workload::batches(1, EVENTS, 1 << 16) {
        for run in batch.runs() {
            writer.push(&run.to_run(), &symbols).unwrap();
        }
    }
    let dataset = writer.finish(Manifest::default()).unwrap();
    let events = dataset.manifest().totals.n_events;
    (folder, dataset, ItemsCount::new(events))
}

/// Every column that a sweep reads.
#[divan::bench(sample_count = 20)]
fn decode(bencher: Bencher<'_, '_>) {
    let (_folder, dataset, count) = dataset();
    let mut scratch = Batch::default();
    bencher.counter(count).bench_local(|| {
        for index in 0..dataset.batches() {
            black_box(dataset.read(index, &mut scratch).unwrap());
        }
    });
}

/// The same columns as data frames.
#[divan::bench(sample_count = 20)]
fn frames(bencher: Bencher<'_, '_>) {
    let (folder, _, count) = dataset();
    let columns = [
        "t_ms",
        "kind",
        "call_id",
        "name",
        "flags",
        "announced_ms",
        "outcome",
        "wait_kind",
        "wait_ms",
    ];
    let read = |path: &Path| {
        ParquetReader::new(File::open(path).unwrap())
            .with_columns(Some(columns.map(str::to_owned).to_vec()))
            .read_parallel(ParallelStrategy::None)
            .finish()
            .unwrap()
    };
    let path = folder.path().join("data/events.parquet");
    bencher
        .counter(count)
        .bench_local(|| read(black_box(&path)).height());
}

/// One policy over the dataset: the decoding, and one pass.
#[divan::bench(sample_count = 20)]
fn sweep(bencher: Bencher<'_, '_>) {
    let (_folder, dataset, count) = dataset();
    let base = presets::find("pi-desktop-0129").unwrap();
    let candidates = candidates(&base, &[]).unwrap();
    let question = Question {
        base: &base,
        candidates: &candidates,
        keys: &[],
        seed: 0,
        cluster: Cluster::Day,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    bencher.counter(count).bench_local(|| {
        pool.install(|| {
            sweep_scan(black_box(&dataset), &question, &|_| {})
                .unwrap()
                .cells(false)
        })
    });
}
