//! Makes `reports/validation.md` from a folder of logs: `validation LOGS... > reports/validation.md`.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use policysim_sim::run::Fleet;
use policysim_sim::synth::validate::{Study, validate};
use policysim_telemetry::{Dataset, ImportRequest, Inputs, Silent};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let request = ImportRequest {
        inputs: Inputs::Paths(paths),
        ..ImportRequest::default()
    };
    let dataset = Dataset::from_logs(&request, &Silent, &AtomicBool::new(false))?;
    let fleet = Fleet {
        runs: dataset.fleet()?,
        symbols: dataset.symbols().clone(),
    };
    let full = validate(&fleet, Study::FULL)?;
    let reduced = validate(&fleet, Study::REDUCED)?;
    print!(
        "{}",
        full.report(&reduced, &fleet, &dataset.manifest().digest)
    );
    Ok(())
}
