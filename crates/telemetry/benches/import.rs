//! How fast logs are read: MB/s per format, on logs in memory that repeat the session of the test fixtures, beside
//! looking at every token (`tokens`), which takes four fifths of the time of a `simd-json` tape of the same lines.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use policysim_sim::run::{Run, Symbols};
use policysim_telemetry::import::{
    Format, ImportOptions, SinkError, SourceInput, import_source, sniff,
};

/// At least so long is a log.
const LOG_BYTES: usize = 1 << 20;

fn main() {
    divan::main();
}

#[divan::bench(args = Format::ALL, sample_count = 20)]
fn import(bencher: Bencher<'_, '_>, format: Format) {
    let log = log(format);
    bencher
        .counter(BytesCount::of_slice(&log))
        .bench_local(|| n_runs(&log, format));
}

/// The least that a reader of every token does: lines split, each checked by `serde_json` without being kept.
#[divan::bench(args = Format::ALL, sample_count = 20)]
fn tokens(bencher: Bencher<'_, '_>, format: Format) {
    let log = log(format);
    bencher.counter(BytesCount::of_slice(&log)).bench_local(|| {
        let lines = black_box(log.as_slice()).split(|&byte| byte == b'\n');
        lines
            .filter(|line| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok())
            .count()
    });
}

#[divan::bench(args = Format::ALL)]
fn recognise(bencher: Bencher<'_, '_>, format: Format) {
    let log = log(format);
    bencher.bench_local(|| sniff(black_box(&log[..1 << 16])));
}

fn n_runs(log: &[u8], format: Format) -> u64 {
    let mut runs = 0;
    let mut sink = |_: Run, _: &Symbols| -> Result<(), SinkError> {
        runs += 1;
        Ok(())
    };
    let input = SourceInput {
        name: "log",
        reader: &mut black_box(log),
    };
    import_source(
        input,
        format,
        &ImportOptions::default(),
        &mut Symbols::default(),
        &mut sink,
    )
    .unwrap();
    runs
}

/// The fixture of a format, again and again; in a document its messages are.
fn log(format: Format) -> Vec<u8> {
    let ending = if format.is_document() {
        "json"
    } else {
        "jsonl"
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/logs")
        .join(format!("{}.{ending}", format.name()));
    let fixture = std::fs::read(path).unwrap();
    let times = LOG_BYTES.div_ceil(fixture.len());
    if !format.is_document() {
        // A record that is there again by its id would be passed over.
        let again = |n: usize| {
            let text = String::from_utf8_lossy(&fixture);
            text.replace("\"uuid\":\"0000-", &format!("\"uuid\":\"{n:04}-"))
        };
        return (0..times).map(again).collect::<String>().into_bytes();
    }
    let mut document: serde_json::Value = serde_json::from_slice(&fixture).unwrap();
    let messages = document["messages"].as_array_mut().unwrap();
    *messages = std::iter::repeat_n(messages.clone(), times)
        .flatten()
        .collect();
    serde_json::to_vec(&document).unwrap()
}
