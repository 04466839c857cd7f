//! Imports logs into a dataset and says what it took: `import_folder OUT PATH...`.
#![allow(
    clippy::disallowed_methods,
    reason = "it measures how long an import takes"
)]
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use policysim_telemetry::{ImportRequest, Inputs, Silent, TelemetryError, import_to_dataset};

fn main() -> Result<(), TelemetryError> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let out = arguments.next().unwrap_or_else(|| PathBuf::from("dataset"));
    let request = ImportRequest {
        inputs: Inputs::Paths(arguments.collect()),
        ..ImportRequest::default()
    };
    let start = Instant::now();
    let dataset = import_to_dataset(&request, &out, &Silent, &AtomicBool::new(false))?;
    let totals = &dataset.manifest().totals;
    println!(
        "{} sources, {} bytes, {} lines, {} runs, {} events in {} ms",
        totals.n_sources,
        totals.n_bytes,
        totals.n_lines,
        totals.n_runs,
        totals.n_events,
        start.elapsed().as_millis(),
    );
    let read = Instant::now();
    let mut events = 0;
    for run in dataset.runs() {
        events += run?.events.len();
    }
    println!(
        "read back {events} events in {} ms",
        read.elapsed().as_millis()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak memory {}", peak.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}
