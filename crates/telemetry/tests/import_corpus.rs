//! Every session of the reference corpus gives exactly the numbers that stand beside it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod import_support;

use std::collections::BTreeMap;
use std::path::Path;

use import_support::{check_run, import, is_interrupted, longest_silence, shared, waits_on_events};
use policysim_sim::run::RunStatus;
use policysim_telemetry::import::{Format, LOG_WAITS, Sniffed, sniff};
use serde_json::Value;

type Expected = BTreeMap<String, Value>;

fn check_folder(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let mut expected: Expected = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    let mut proved = 0;
    for format in Format::ALL {
        let Ok(files) = std::fs::read_dir(folder.join(format.name())) else {
            continue;
        };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let key = format!(
                "{}/{}",
                format.name(),
                file.file_name().unwrap().to_str().unwrap()
            );
            let entry = expected
                .remove(&key)
                .unwrap_or_else(|| panic!("{key} is not in expected.json"));
            proved += check_file(&key, format, &std::fs::read(&file).unwrap(), &entry);
            checked += 1;
        }
    }
    let missing: Vec<_> = expected.keys().collect();
    assert!(
        missing.is_empty(),
        "expected.json names files that are not there: {missing:?}"
    );
    println!("{checked} sessions, {proved} runs whose events read the same silence");
    checked
}

/// Compares one file; gives the number of runs whose silence the events were shown to have.
fn check_file(key: &str, format: Format, bytes: &[u8], expected: &Value) -> usize {
    let imported = import(key, format, bytes);
    let found = serde_json::to_value(imported.report.accounting()).unwrap();
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(found.get(field), Some(value), "{key}: {field}");
    }
    assert_eq!(&found, expected, "{key}");
    assert_eq!(
        imported.report.lines.total(),
        imported.report.counts.n_lines,
        "{key}: lines do not add up"
    );
    let on_events = waits_on_events(&imported.runs);
    for kind in LOG_WAITS {
        assert_eq!(
            on_events.of(kind),
            imported.report.waits.of(kind),
            "{key}: {} on events",
            kind.name()
        );
    }
    let rows: Vec<_> = imported
        .runs
        .iter()
        .filter(|run| run.status == RunStatus::Run)
        .collect();
    assert_eq!(rows.len(), imported.report.runs.len());
    let mut proved = 0;
    for run in &imported.runs {
        check_run(run, &imported.symbols);
        if run.status == RunStatus::Run && !is_interrupted(run, &imported.symbols) {
            assert_eq!(
                longest_silence(run),
                (run.measured.silence_ms, run.measured.duration_ms)
            );
            proved += 1;
        }
    }
    if !bytes.is_empty() && !key.contains("truncated.json") {
        assert_eq!(sniff(bytes), Sniffed::Format(format), "{key}");
    }
    proved
}

#[test]
fn corpus() {
    let Some(shared) = shared() else {
        println!("skipped: no corpus");
        return;
    };
    assert!(check_folder(&shared.join("corpus")) > 0);
}

#[test]
fn derived() {
    let Some(shared) = shared() else {
        println!("skipped: no corpus");
        return;
    };
    assert!(check_folder(&shared.join("corpus/derived")) > 0);
}
