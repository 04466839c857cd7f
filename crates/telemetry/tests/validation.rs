//! The committed validation report: its reduced remake is made again, and its claim is read.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use policysim_sim::run::Fleet;
use policysim_sim::synth::validate::{Study, validate};
use policysim_telemetry::{Dataset, ImportRequest, Inputs, Silent};

fn corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let corpus = shared.join("corpus");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus");
        return None;
    }
    Some(corpus)
}

fn report() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports/validation.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_reduced_remake_is_what_the_report_says() {
    let Some(corpus) = corpus() else { return };
    let harnesses = ["claude", "codex", "copilot", "gemini", "opencode", "pi"];
    let request = ImportRequest {
        inputs: Inputs::Paths(harnesses.map(|name| corpus.join(name)).to_vec()),
        ..ImportRequest::default()
    };
    let dataset = Dataset::from_logs(&request, &Silent, &AtomicBool::new(false)).unwrap();
    let fleet = Fleet {
        runs: dataset.fleet().unwrap(),
        symbols: dataset.symbols().clone(),
    };
    let reduced = validate(&fleet, Study::REDUCED).unwrap();
    let report = report();
    assert!(
        report.contains(&reduced.table()),
        "the report does not hold\n{}",
        reduced.table()
    );
    assert!(report.contains(&dataset.manifest().digest));
}

/// Issue 6: the 90 % interval covers in at least 80 % of the (split, policy) pairs.
#[test]
fn the_report_covers_as_many_pairs_as_it_must() {
    let report = report();
    let line = report
        .lines()
        .find(|line| line.starts_with("Covered: "))
        .unwrap();
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let (covered, pairs) = (numbers[0], numbers[1]);
    assert_eq!(pairs, 20 * 12);
    assert!(covered * 100 >= pairs * 80, "{line}");
}
