//! The conformance vectors of the delegation registry, through the engine.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::PathBuf;

use policysim_policy::task_wait::Call;
use policysim_policy::{Decimal, Kind, Millis, Outcome, Policy, TaskWait, WaitMode};
use policysim_sim::run::{RecordedEnd, Run, RunEvent, Symbols};
use policysim_sim::settle::{Course, Happening, Session};
use serde_json::Value as Json;

fn vectors() -> Option<Vec<Json>> {
    let root = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join("vectors/taskwait.json");
    if !path.is_file() {
        eprintln!("skipped: no vectors");
        return None;
    }
    let text = std::fs::read_to_string(path).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// A run that completes then, or that never does.
fn run(settles_ms: Option<u64>) -> Run {
    let mut events = vec![RunEvent::new(0, Kind::RunStart)];
    if let Some(t_ms) = settles_ms {
        let mut over = RunEvent::new(t_ms, Kind::RunEnd);
        over.outcome = Some(Outcome::Completed);
        events.push(over);
    }
    Run {
        end: settles_ms.map_or(RecordedEnd::Hung, |_| RecordedEnd::Completed),
        end_ms: settles_ms.unwrap_or(0),
        events,
        ..Run::default()
    }
}

const WAIT: u32 = 1;
const ABORT: u32 = 2;

fn number(json: &Json) -> Option<Decimal> {
    json.as_number()
        .and_then(|number| Decimal::parse(&number.to_string()))
}

/// What the engine's wait returns with, in the keys of `expect`.
fn waits(vector: &Json) -> Json {
    let policy = Policy::default();
    let symbols = Symbols::default();
    let delegations = vector["delegations"].as_array().unwrap();
    let ids: Vec<&str> = delegations
        .iter()
        .map(|d| d["id"].as_str().unwrap())
        .collect();
    let runs: Vec<Run> = delegations
        .iter()
        .map(|d| run(d["settles_ms"].as_u64()))
        .collect();
    let mut session = Session::new(&policy, 10, Millis::ZERO);
    for run in &runs {
        session.spawn(Course::of(run, &symbols)).unwrap();
    }
    let params = &vector["params"];
    let asked: Option<Vec<&str>> = params["delegationIds"]
        .as_array()
        .map(|ids| ids.iter().map(|id| id.as_str().unwrap()).collect());
    let call = Call {
        ids: asked.as_deref(),
        mode: match params["mode"].as_str() {
            Some("any") => WaitMode::Any,
            _ => WaitMode::All,
        },
        min_completed: number(&params["minCompleted"]),
        timeout_seconds: number(&params["timeoutSeconds"]),
    };
    session.wake_at(Millis::new(vector["wait_at_ms"].as_u64().unwrap()), WAIT);
    if let Some(at) = vector["abort_ms"].as_u64() {
        session.wake_at(Millis::new(at), ABORT);
    }
    let mut wait = None;
    while let Some(happening) = session.next(Millis::MAX) {
        match happening {
            Happening::Woken(WAIT) => {
                wait = Some(session.call(&call, &TaskWait::default(), &ids));
            }
            Happening::Woken(_) => session.abort_wait(wait.unwrap()),
            Happening::Returned(returned) => {
                assert_eq!(Some(returned.wait), wait);
                return serde_json::json!({
                    "returns_at_ms": session.now().as_u64(),
                    "timed_out": returned.expired,
                    "finished": returned.finished,
                    "total": returned.total,
                });
            }
            Happening::Settled { .. } | Happening::Told { .. } => {}
        }
    }
    panic!("the wait never returned")
}

/// Whether one more is accepted beside so many.
fn starts(vector: &Json) -> Json {
    let policy = Policy::default();
    let symbols = Symbols::default();
    let hung = run(None);
    let mut session = Session::new(&policy, 10, Millis::ZERO);
    for _ in 0..vector["running"].as_u64().unwrap() {
        session.spawn(Course::of(&hung, &symbols)).unwrap();
    }
    serde_json::json!({ "accepted": session.spawn(Course::of(&hung, &symbols)).is_some() })
}

#[test]
fn every_vector_passes_through_the_engine() {
    let Some(vectors) = vectors() else { return };
    let mut seen = 0;
    for vector in &vectors {
        let got = match vector["kind"].as_str().unwrap() {
            "taskwait" => waits(vector),
            "task_start" => starts(vector),
            kind => panic!("unknown kind {kind}"),
        };
        assert_eq!(got, vector["expect"], "{}", vector["name"]);
        seen += 1;
    }
    assert!(seen >= 15, "{seen} vectors");
}
