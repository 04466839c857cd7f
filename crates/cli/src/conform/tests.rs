//! Every file of the reference folder, and what `conform` does with files that are wrong.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::timeline::{Runs, Timeline, Variant};
use super::*;
use crate::policy_file::parse_document;

/// The reference folder, if there is one.
fn shared() -> Option<PathBuf> {
    let root = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: no corpus at {}", root.display());
    None
}

fn text(report: &Report) -> String {
    let mut out = Vec::new();
    report.write_text(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_vector_and_scenario_of_the_reference_conforms() {
    let Some(shared) = shared() else {
        return;
    };
    let report = run(&[shared.join("vectors"), shared.join("scenarios")]).unwrap();
    let text = text(&report);
    println!("{}", text.lines().last().unwrap());
    assert_eq!(report.status(), ExitStatus::Success, "{text}");
}

/// One row of the table of intended documents.
struct Row {
    scenario: String,
    variant: String,
    document: String,
    /// Verdict and time by agent; the empty agent is the only one.
    expected: Vec<(String, String, Option<u64>)>,
}

/// The rows of the table in `scenarios/POLICIES.md`: scenario, for, document, verdict.
fn rows(markdown: &str) -> Vec<Row> {
    markdown
        .lines()
        .filter(|line| line.starts_with("| BR-"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [scenario, variant, document, verdict] = cells[..] else {
                panic!("not four cells: {line}");
            };
            let spans = document
                .split("<br>")
                .map(|span| span.trim().trim_matches('`'));
            Row {
                scenario: scenario.to_owned(),
                variant: variant.to_owned(),
                document: spans.collect::<Vec<_>>().join("\n"),
                expected: verdict.split(", ").map(expected).collect(),
            }
        })
        .collect()
}

fn expected(cell: &str) -> (String, String, Option<u64>) {
    let (agent, verdict) = cell.split_once(": ").unwrap_or(("", cell));
    let (name, at) = match verdict.split_once(' ') {
        Some((name, at)) => (name, Some(at.parse().unwrap())),
        None => (verdict, None),
    };
    (agent.to_owned(), name.to_owned(), at)
}

/// The one file whose name begins with the scenario's id.
fn scenario_file(dir: &Path, id: &str) -> PathBuf {
    let mut found = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    found
        .find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(&format!("{id}-")) && path.extension().is_some_and(|e| e == "json")
        })
        .unwrap_or_else(|| panic!("no file of {id}"))
}

fn check_row(dir: &Path, row: &Row) {
    let name = format!("{} {}", row.scenario, row.variant);
    let text = fs::read_to_string(scenario_file(dir, &row.scenario)).unwrap();
    let mut scenario: Json = serde_json::from_str(&text).unwrap();
    // The documents in the file are not this row's.
    scenario.as_object_mut().unwrap().remove("policies");
    let document = parse_document(&row.document).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let mut timeline = Timeline::read(&scenario).unwrap();
    if let Some(variant) = row.variant.split(' ').next().and_then(Variant::find) {
        (variant.timeline)(&mut timeline);
    }
    let runs: Runs<'_> = timeline.replay(&document).unwrap();
    for (agent, verdict, at) in &row.expected {
        let run = match agent.as_str() {
            "" => {
                assert_eq!(runs.len(), 1, "{name}: more than one agent");
                runs.values().next()
            }
            agent => runs.get(agent),
        };
        let got = &run
            .unwrap_or_else(|| panic!("{name}: no agent {agent}"))
            .verdict;
        assert_eq!(got.cause.name(), verdict, "{name} at {}", got.at);
        if let Some(at) = at {
            assert_eq!(got.at.as_u64(), *at, "{name}");
        }
    }
}

#[test]
fn every_document_of_the_scenarios_gives_its_verdict() {
    let Some(shared) = shared() else {
        return;
    };
    let scenarios = shared.join("scenarios");
    let rows = rows(&fs::read_to_string(scenarios.join("POLICIES.md")).unwrap());
    for row in &rows {
        check_row(&scenarios, row);
    }
    println!("{} documents of POLICIES.md", rows.len());
    assert!(!rows.is_empty());
}

/// The policy scenarios that a policy document must be able to express.
#[test]
fn every_policy_scenario_is_run() {
    let Some(shared) = shared() else {
        return;
    };
    let report = run(&[shared.join("scenarios")]).unwrap();
    let asked = [
        1, 2, 4, 5, 6, 7, 9, 12, 13, 14, 16, 17, 20, 22, 25, 29, 31, 33, 36, 37, 38, 41, 44, 97, 99,
    ];
    for number in asked {
        let id = format!("BR-{number:02}-");
        let line = report.lines.iter().find(|line| line.name.starts_with(&id));
        let Some(line) = line else {
            println!("{id} is not in this folder");
            continue;
        };
        assert!(
            matches!(&line.judged, Ok(Judged::Compared(compared)) if compared.differences.is_empty()),
            "{id} {:?}",
            line.judged
        );
    }
}

/// Runs one file of that content.
fn run_text(name: &str, content: &str) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    run(&[path]).unwrap()
}

fn vector(at_ms: u64, kind: &str) -> String {
    json!([{
        "name": "v1",
        "preset": "pi-desktop-0129",
        "events": [{ "t_ms": 1000, "kind": kind }],
        "horizon_ms": 900_000,
        "expect": { "outcome": "timed_out", "at_ms": at_ms, "code": "SUBAGENT_IDLE_TIMEOUT" },
    }])
    .to_string()
}

#[test]
fn a_vector_that_agrees_is_ok() {
    let report = run_text("a.json", &vector(301_000, "message_update"));
    assert_eq!(
        text(&report),
        "ok        v1\n1 ok, 0 mismatched, 0 not yet, 0 errors\n"
    );
    assert_eq!(report.status(), ExitStatus::Success);
}

#[test]
fn a_mismatch_names_key_expected_and_got() {
    let report = run_text("a.json", &vector(300_000, "message_update"));
    let text = text(&report);
    assert!(text.starts_with("MISMATCH  v1  "), "{text}");
    assert!(
        text.contains("          at_ms: expected 300000, got 301000\n"),
        "{text}"
    );
    assert_eq!(report.status(), ExitStatus::Finding);
    assert_eq!(report.to_json()["vectors"][0]["result"], "mismatch");
}

#[track_caller]
fn is_error(name: &str, content: &str, expected: &str) {
    let report = run_text(name, content);
    assert_eq!(report.status(), ExitStatus::Error);
    let text = text(&report);
    assert!(text.contains(expected), "{text}");
}

#[test]
fn what_is_not_known_is_an_error_never_a_skip() {
    is_error(
        "a.json",
        &vector(1, "mesage_update"),
        "unknown event kind mesage_update",
    );
    is_error(
        "a.json",
        r#"[{"name": "x", "kind": "dream", "expect": {}}]"#,
        "unknown kind dream",
    );
    is_error(
        "a.json",
        r#"{"format": "dream/1"}"#,
        "unknown format dream/1",
    );
    is_error("a.json", "{}", "neither a list of vectors nor a scenario");
    is_error("a.json", "[", "not JSON");
    is_error("a.txt", "", "unknown kind of file");
    is_error(
        "a.json",
        r#"[{"name": "x", "kind": "task_start", "running": 3, "expect": {"queued": true}}]"#,
        "nothing of expect can be compared: queued",
    );
    is_error(
        "a.json",
        r#"[{"name": "x", "kind": "task_start", "runing": 3, "expect": {"accepted": true}}]"#,
        "unknown key runing",
    );
    let preset = vector(1, "stdout").replace("pi-desktop-0129", "pi-desktop-9999");
    is_error("a.json", &preset, "unknown preset pi-desktop-9999");
}

/// A scenario may carry remarks; an unknown length of time is no remark.
#[test]
fn remarks_of_a_scenario_are_named() {
    let scenario = |extra: &str| {
        json!({
            "format": "neutral-timeline/1",
            "policy": { "idle_ms": 1000 },
            "observe_until_ms": 5000,
            "events": [{ "t_ms": 0, "kind": "run_start", "agent": "a", (extra): 7 }],
            "expect": { "verdict": "idle_timeout", "fire_at_ms": 1000, "mood": "calm" },
        })
        .to_string()
    };
    let report = run_text("a.json", &scenario("colour"));
    assert_eq!(
        text(&report),
        "ok        a\nnot asserted: input colour (1), mood (1)\n1 ok, 0 mismatched, 0 not yet, 0 errors\n"
    );
    is_error("a.json", &scenario("pause_ms"), "unknown key pause_ms");
}

#[test]
fn nothing_to_run_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(&[dir.path().to_owned()]).is_err());
    assert!(run(&[dir.path().join("missing.json")]).is_err());
}
