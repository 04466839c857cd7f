//! What an import costs in memory, whatever the size of the log.
//!
//! `POLICYSIM_BIG_LOG_MB=3072` imports three gigabytes, and a line of 200 MB, instead of the small sizes.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod big_log;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use big_log::{GAP_MS, write_log};
use policysim_sim::run::RecordedEnd;
use policysim_telemetry::{Dataset, ImportRequest, Inputs, Silent, import_to_dataset};

const MIB: u64 = 1 << 20;

/// The largest resident set since [`forget_peak`].
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn import(log: &Path, out: &Path) -> Dataset {
    let request = ImportRequest {
        inputs: Inputs::Paths(vec![log.to_owned()]),
        ..ImportRequest::default()
    };
    import_to_dataset(&request, out, &Silent, &AtomicBool::new(false)).unwrap()
}

/// Imports a log of one run of so many records and so many bytes each, and says how much memory that took.
fn one_run(folder: &Path, n_records: u64, result_bytes: usize) -> u64 {
    let log = folder.join("log.jsonl");
    let mut file = BufWriter::new(File::create(&log).unwrap());
    let n_lines = write_log(&mut file, n_records, result_bytes).unwrap();
    file.into_inner().unwrap().sync_all().unwrap();
    forget_peak();
    let before = peak();
    let dataset = import(&log, &folder.join("dataset"));
    let taken = peak() - before;
    let totals = &dataset.manifest().totals;
    assert_eq!(totals.n_bytes, fs::metadata(&log).unwrap().len());
    assert_eq!((totals.n_lines, totals.lines.imported), (n_lines, n_lines));
    let runs = dataset.run_rows().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].end, RecordedEnd::OpenInTool);
    assert_eq!(runs[0].measured.silence_ms, GAP_MS);
    assert_eq!(u64::from(runs[0].measured.tools), n_lines / 2 - 1);
    println!(
        "{} MiB in {n_lines} lines: {} MiB more than before, {} MiB in all",
        totals.n_bytes / MIB,
        taken / MIB,
        peak() / MIB
    );
    taken
}

#[test]
fn memory_does_not_follow_the_size_of_a_log_or_cost_a_long_line_thrice() {
    let mb: u64 = std::env::var("POLICYSIM_BIG_LOG_MB").map_or(48, |mb| mb.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    one_run(folder.path(), 100, 10_000);
    // Records of 10 kB, as many as make the size.
    let n_records = mb * 1_000_000 / 10_000;
    one_run(folder.path(), n_records, 20_000 - 1_000);
    let bound = if mb < 1000 { 100 * MIB } else { 300 * MIB };
    assert!(peak() < bound, "{} MiB", peak() / MIB);

    let long = if mb < 1000 { 20_000_000 } else { 200_000_000 };
    let taken = one_run(folder.path(), 6, long);
    assert!(taken < 3 * long as u64, "{} MiB", taken / MIB);
    let (size, taken) = tiny_values(folder.path());
    assert!(taken < 3 * size, "{} MiB of {}", taken / MIB, size / MIB);
}

/// The size of a log with a line of very many values, and how much memory its import took.
fn tiny_values(folder: &Path) -> (u64, u64) {
    let log = folder.join("log.jsonl");
    let mut file = BufWriter::new(File::create(&log).unwrap());
    write_log(&mut file, 4, 100).unwrap();
    writeln!(
        file,
        "{{\"type\":\"user\",\"many\":[{}0]}}",
        "[0],".repeat(5_000_000)
    )
    .unwrap();
    file.into_inner().unwrap().sync_all().unwrap();
    forget_peak();
    let before = peak();
    let dataset = import(&log, &folder.join("dataset"));
    let lines = dataset.manifest().totals.lines;
    assert_eq!((lines.imported, lines.undated), (4, 1));
    (fs::metadata(&log).unwrap().len(), peak() - before)
}
