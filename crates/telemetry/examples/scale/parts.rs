//! What one process does and measures of itself.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use policysim_policy::{Policy, presets};
use policysim_sim::cluster::Cluster;
use policysim_sim::grid;
use policysim_sim::replay::verdict;
use policysim_sim::run::{Run, RunStatus, Symbols};
use policysim_sim::scan::{Batch, Scan};
use policysim_sim::sweep::{Axis, Candidate, Question, candidates, sweep_scan};
use policysim_telemetry::import::{Format, ImportOptions, SinkError, SourceInput, import_source};
use policysim_telemetry::{
    Dataset, DatasetWriter, ImportRequest, Inputs, Manifest, Silent, import_to_dataset,
};

use crate::workload;

/// What a part cost.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) peak_mib: f64,
    /// A fingerprint of its answer.
    pub(crate) answer: u64,
}

impl Cost {
    pub(crate) fn read(line: &str) -> Self {
        let numbers: Vec<f64> = line.split(' ').map(|n| n.trim().parse().unwrap()).collect();
        Self {
            wall_s: numbers[0],
            cpu_s: numbers[1],
            peak_mib: numbers[2],
            answer: numbers[3] as u64,
        }
    }

    /// The median of each figure.
    pub(crate) fn median(costs: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| crate::median(costs.iter().map(figure).collect());
        Self {
            wall_s: of(|cost| cost.wall_s),
            cpu_s: of(|cost| cost.cpu_s),
            peak_mib: of(|cost| cost.peak_mib),
            answer: costs[0].answer,
        }
    }
}

/// Does the part, and prints what it cost.
pub(crate) fn run(name: &str, data: &Path, threads: usize) {
    let begun = Instant::now();
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .unwrap();
    let answer = match name {
        "decode" => decode(data),
        "frames" => frames(data),
        "replay" => replay(data),
        "import" => import(data),
        "read-log" => read_log(data),
        "tokens" => tokens(data),
        _ => {
            let windows = name.strip_prefix("sweep-").unwrap().parse().unwrap();
            sweep(data, windows)
        }
    };
    // 32 bits of it, which a float holds exactly.
    let answer = answer as u32 ^ (answer >> 32) as u32;
    println!(
        "{} {} {} {answer}",
        begun.elapsed().as_secs_f64(),
        cpu_s(),
        peak_mib()
    );
}

/// CPU time of this process' threads, to the nanosecond.
pub(crate) fn cpu_s() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<f64>().ok()
    };
    let ns: f64 = tasks.filter_map(|task| of(task.ok()?)).sum();
    ns / 1e9
}

fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<f64>().unwrap() / 1024.0
}

/// Writes a dataset of that many events.
pub(crate) fn generate(out: &Path, events: u64) -> u64 {
    let mut writer = DatasetWriter::in_folder(out).unwrap();
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
    writer.finish(Manifest::default()).unwrap();
    number
}

pub(crate) fn policy() -> Policy {
    presets::find("pi-desktop-0129").unwrap()
}

/// So many idle windows, from 5 s to an hour.
pub(crate) fn windows(count: u64) -> Vec<Candidate> {
    let step = (3_595_000 / count).max(1);
    let last = 5000 + step * (count - 1);
    let axis = Axis {
        key: "idle.window".to_owned(),
        values: grid::parse(&format!("5000ms..{last}ms/{step}ms")).unwrap(),
    };
    candidates(&policy(), &[axis]).unwrap()
}

fn sweep(data: &Path, count: u64) -> u64 {
    let dataset = Dataset::open(data).unwrap();
    let (base, candidates) = (policy(), windows(count));
    let question = Question {
        base: &base,
        candidates: &candidates,
        keys: &[],
        seed: 0,
        cluster: Cluster::Day,
    };
    let swept = sweep_scan(&dataset, &question, &|_| {}).unwrap();
    let cells = swept.cells(false);
    // Every figure of some cells, one figure of every cell.
    let some: Vec<_> = cells.iter().step_by(cells.len().div_ceil(16)).collect();
    let mut all = format!("{some:?}").into_bytes();
    all.extend(cells.iter().flat_map(|cell| cell.killed().to_le_bytes()));
    xxhash_rust::xxh3::xxh3_64(&all)
}

/// Every run of the dataset.
fn each(data: &Path, mut look: impl FnMut(&Batch, &Symbols)) {
    let dataset = Dataset::open(data).unwrap();
    let mut scratch = Batch::default();
    for index in 0..dataset.batches() {
        look(
            dataset.read(index, &mut scratch).unwrap(),
            Scan::symbols(&dataset),
        );
    }
}

fn decode(data: &Path) -> u64 {
    let mut rows = 0;
    each(data, |batch, _| {
        rows += std::hint::black_box(batch).events().len() as u64;
    });
    rows
}

/// The same columns as data frames of polars, a slice of the rows at a time.
fn frames(data: &Path) -> u64 {
    use polars::prelude::*;
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
    let open = || ParquetReader::new(fs::File::open(data.join("events.parquet")).unwrap());
    let metadata = open().get_metadata().unwrap().clone();
    let (mut first, mut rows) = (0, 0);
    for group in &metadata.row_groups {
        let mut reader = open();
        reader.set_metadata(metadata.clone());
        let frame = reader
            .with_slice(Some((first, group.num_rows())))
            .with_columns(Some(columns.map(str::to_owned).to_vec()))
            .read_parallel(ParallelStrategy::RowGroups)
            .finish()
            .unwrap();
        first += group.num_rows();
        rows += std::hint::black_box(frame).height() as u64;
    }
    rows
}

fn replay(data: &Path) -> u64 {
    let policy = policy();
    let mut sum = 0;
    each(data, |batch, symbols| {
        for run in batch.runs().filter(|run| run.head.status == RunStatus::Run) {
            let verdict = verdict(&policy, &run, symbols);
            sum += u64::from(verdict.cause.is_firing());
        }
    });
    sum
}

fn import(log: &Path) -> u64 {
    let folder = tempfile::tempdir_in(log.parent().unwrap()).unwrap();
    let request = ImportRequest {
        inputs: Inputs::Paths(vec![log.to_owned()]),
        ..ImportRequest::default()
    };
    let out = folder.path().join("dataset");
    let dataset = import_to_dataset(&request, &out, &Silent, &AtomicBool::new(false)).unwrap();
    dataset.manifest().totals.n_events
}

/// From the log to runs of events, which are counted and dropped.
fn read_log(log: &Path) -> u64 {
    let mut reader = std::io::BufReader::with_capacity(1 << 18, fs::File::open(log).unwrap());
    let mut events = 0;
    let mut sink = |run: Run, _: &Symbols| -> Result<(), SinkError> {
        events += run.events.len() as u64;
        Ok::<(), Infallible>(()).map_err(Into::into)
    };
    let input = SourceInput {
        name: "log",
        reader: &mut reader,
    };
    let options = ImportOptions::default();
    import_source(
        input,
        Format::Claude,
        &options,
        &mut Symbols::default(),
        &mut sink,
    )
    .unwrap();
    events
}

/// What any reader does at least: finds the lines and looks at every token.
fn tokens(log: &Path) -> u64 {
    use std::io::BufRead;
    let reader = std::io::BufReader::with_capacity(1 << 18, fs::File::open(log).unwrap());
    let lines = reader.split(b'\n').map(Result::unwrap);
    let whole = |line: &Vec<u8>| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    lines.filter(whole).count() as u64
}
