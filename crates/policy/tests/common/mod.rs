//! What the tests of this crate share: the reference folder, and its timelines as events.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    dead_code,
    reason = "each test binary uses a part of this"
)]

use std::path::{Path, PathBuf};

use policysim_policy::spelling::{Spelled, Spelling, spelled, status};
use policysim_policy::{CallId, Event, First, Millis, Policy, Watchdog, Word, settle};
use serde_json::Value;

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

/// That file or folder of the reference, if it is there: another folder may hold a part of it.
pub(crate) fn part(path: &str) -> Option<PathBuf> {
    let part = shared()?.join(path);
    if part.exists() {
        return Some(part);
    }
    println!("skipped: no {}", part.display());
    None
}

/// The `*.json` files of a folder, by name.
pub(crate) fn json_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    files.sort();
    files
}

/// One event of a vector or scenario, with the words that its spelling brings.
pub(crate) struct Line<'a> {
    pub(crate) at: Millis,
    pub(crate) event: Event<'a>,
    pub(crate) word: Option<Word>,
    /// A completion by a child that ignored its cancellation.
    pub(crate) ignores_cancel: bool,
}

/// Every field that an event of the reference carries, whether or not the core asks for it.
const FIELDS: [&str; 27] = [
    "t_ms",
    "mono_ms",
    "kind",
    "id",
    "name",
    "type",
    "error",
    "executed",
    "suspends",
    "approval_capable",
    "budget_ms",
    "deadline_ms",
    "delay_ms",
    "duration_ms",
    "status",
    "agent",
    "ignores_cancel",
    "by",
    "decision",
    "gen",
    "host",
    "limit_ms",
    "parent",
    "reported",
    "success",
    "targets",
    "window_ms",
];

/// Reads one event; anything unknown is a failure, never a skip. `None` ends the record.
pub(crate) fn line(value: &Value) -> Option<Line<'_>> {
    let fields = value.as_object().unwrap();
    for field in fields.keys() {
        let known = FIELDS.contains(&field.as_str());
        assert!(known, "unknown field {field} in {value}");
    }
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or("");
    let number = |field: &str| {
        fields
            .get(field)
            .map(|n| Millis::new(n.as_u64().unwrap_or_else(|| panic!("{field} in {value}"))))
    };
    let flag = |field: &str, default: bool| {
        fields
            .get(field)
            .map_or(default, |flag| flag.as_bool().unwrap())
    };
    let spelling: Spelling = match spelled(text("kind")) {
        Some(Spelled::Event(spelling)) => spelling,
        Some(Spelled::RecordEnd) => return None,
        None => panic!("unknown kind in {value}"),
    };
    let name = if spelling.kind == policysim_policy::Kind::Other {
        if text("type").is_empty() {
            text("kind")
        } else {
            text("type")
        }
    } else {
        text("name")
    };
    let mut event = spelling.event(name);
    event.id = CallId::from_text(text("id"));
    event.announced = number("delay_ms").or_else(|| number("duration_ms"));
    event.budget = number("budget_ms");
    event.deadline = number("deadline_ms");
    event.executed = flag("executed", true);
    event.may_ask = flag("approval_capable", false);
    event.suspends = flag("suspends", false);
    if text("kind") == "run_end" {
        event.outcome = Some(status(text("status")).unwrap_or_else(|| panic!("status in {value}")));
    }
    Some(Line {
        at: number("t_ms").unwrap(),
        event,
        word: spelling.word,
        ignores_cancel: flag("ignores_cancel", false),
    })
}

/// Sets the axes of a vector; `null` and 0 are off.
pub(crate) fn set_axes(policy: &mut Policy, axes: &Value) {
    for (key, value) in axes.as_object().into_iter().flatten() {
        assert!(value.is_null() || value.is_u64(), "{key} = {value}");
        let limit = value.as_u64().filter(|ms| *ms > 0).map(Millis::new);
        match key.as_str() {
            "idle_ms" => policy.idle.window = limit,
            "first_ms" => policy.idle.first = limit.map_or(First::Off, First::After),
            "total_ms" => policy.total.budget = limit,
            "no_progress_ms" => policy.idle.ceiling = limit,
            "max_turns" => {
                policy.turns.cap = limit.map(|n| u32::try_from(n.as_u64()).unwrap());
            }
            _ => panic!("unknown axis {key}"),
        }
    }
}

/// The first terminal thing that happens, settled: outcome, time, code.
pub(crate) fn run(
    policy: &Policy,
    lines: &[Line<'_>],
    horizon: Millis,
) -> (String, u64, Option<String>) {
    let mut dog = Watchdog::new(policy, Millis::ZERO);
    let mut named = None;
    for line in lines {
        let was_over = dog.verdict().is_some();
        dog.handle_event(line.at, &line.event);
        if !was_over && dog.verdict().is_some_and(|v| !v.cause.is_firing()) {
            named = line.word;
        }
    }
    dog.finish(horizon);
    let late = lines
        .iter()
        .find(|line| line.ignores_cancel)
        .and_then(|line| Some((line.at, line.event.outcome?)));
    let settled = settle(dog.verdict().unwrap(), late, policy.kill.late_success);
    let word = named.unwrap_or(settled.word);
    (
        word.outcome.to_owned(),
        settled.at.as_u64(),
        word.code.map(str::to_owned),
    )
}
