//! What is replayed is what was measured: the core's idle clock over the replayed events reads the
//! silences and durations that the wait definitions measured on the raw stamps.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use policysim_policy::document::Value;
use policysim_policy::{Kind, Policy};
use policysim_sim::gaps::is_activity;
use policysim_sim::ledger::ledger;
use policysim_sim::run::{Run, RunStatus};
use policysim_sim::silence;
use policysim_telemetry::{Dataset, ImportRequest, Inputs, Silent};

/// Every kind that carries activity, and no other: nothing pauses, nothing else re-arms.
fn activity_only() -> Policy {
    let mut policy = Policy::default();
    let kinds = [
        "turn_start",
        "message_start",
        "message_end",
        "tool_start",
        "tool_end",
        "retry_start",
        "compaction_end",
        "other:steer",
    ];
    policy.set("idle.rearm", &Value::texts(kinds)).unwrap();
    for class in ["tool", "human", "child", "compaction", "backoff"] {
        policy
            .set(&format!("pause.{class}"), &Value::text("none"))
            .unwrap();
    }
    // A model call that begins when a backoff closes would restart the clock as well.
    policy.set("idle.phase", &Value::text("run")).unwrap();
    silence::without_limits(&policy)
}

/// A run that goes on after an abort or task end, or has an unreadable line inside, measures its
/// silence anew there.
fn measures_anew(run: &Run, names: &policysim_sim::run::Symbols) -> bool {
    let ends = |kind: Kind| kind == Kind::RunEnd;
    let last = run.events.len() - 1;
    run.measured.aborted
        || run.events.iter().enumerate().any(|(index, event)| {
            ends(event.kind) && index < last
                || event.kind == Kind::Resume
                || event.kind == Kind::Other && names.name(event.name) == "gap_mark"
        })
}

/// The whole corpus and its folder, where there is one.
fn corpus() -> Option<(Dataset, PathBuf)> {
    let shared = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let corpus = shared.join("corpus");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus");
        return None;
    }
    let folders: Vec<PathBuf> = ["claude", "codex", "copilot", "gemini", "opencode", "pi"]
        .iter()
        .map(|format| corpus.join(format))
        .filter(|folder| folder.is_dir())
        .collect();
    let request = ImportRequest {
        inputs: Inputs::Paths(folders),
        ..ImportRequest::default()
    };
    let dataset = Dataset::from_logs(&request, &Silent, &AtomicBool::new(false)).unwrap();
    Some((dataset, corpus))
}

#[test]
fn the_idle_clock_reads_the_measured_silence_of_every_run() {
    let Some((dataset, _)) = corpus() else {
        return;
    };
    let policy = activity_only();
    let (mut compared, mut anew) = (0, 0);
    for run in dataset.fleet().unwrap() {
        if run.status != RunStatus::Run {
            continue;
        }
        if measures_anew(&run, dataset.symbols()) {
            anew += 1;
            continue;
        }
        let last_activity = run.events.iter().rfind(|event| is_activity(event));
        assert_eq!(
            last_activity.map_or(0, |event| event.t_ms),
            run.measured.duration_ms,
            "duration of {}",
            run.name
        );
        // After the last activity the clock reads on to the task's end or the record's: no silence
        // between two activities.
        let longest = silence::gaps(&policy, &run, dataset.symbols())
            .iter()
            .filter(|gap| gap.to_ms <= run.measured.duration_ms)
            .map(|gap| gap.ms)
            .max();
        assert_eq!(
            longest.unwrap_or(0),
            run.measured.silence_ms,
            "silence of {}",
            run.name
        );
        compared += 1;
    }
    eprintln!("{compared} runs compared, {anew} measured anew inside");
    assert!(compared > anew, "most runs are comparable");
}

/// A log tells only that a compaction has finished and how long it was waited for: that time is in its account.
#[test]
fn the_ledger_holds_the_compactions_that_were_waited_for() {
    let Some((dataset, folder)) = corpus() else {
        return;
    };
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let waited: u64 = expected
        .as_object()
        .unwrap()
        .values()
        .filter_map(|fields| fields["sum_compact_ms"].as_u64())
        .sum();
    let spent: u64 = dataset
        .fleet()
        .unwrap()
        .into_iter()
        .map(|run| ledger(&run, run.end_ms).compaction_ms)
        .sum();
    assert!(waited > 0);
    assert_eq!(spent, waited);
}
