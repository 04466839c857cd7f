//! The record of a watched run: JSON lines, written as things happen.
//!
//! | line with the key | holds |
//! |---|---|
//! | `record` | the head: format, version, policies, when it began |
//! | `event` | an observation: its kind, `t_ms` since the start, and what it says; a replay is fed these |
//! | `fact` | what a policy's core decided on them |
//! | `note` | what `watch` did and noticed: the session log bound, signals sent, how it ended |
//! | `end` | the observation is over at `t_ms` |
//!
//! A record that stops without an `end` (`watch` was killed) is a run whose record ends there.

use std::io::{self, BufWriter, Write};

use policysim_policy::{Output, Reason, Stopped, Verdict, Warning};
use serde_json::{Map, Value, json};

use super::observation::Observed;
use super::record_file::RecordFile;

/// The format's name in the head of a record.
pub(super) const FORMAT: &str = "policysim-watch";
/// The version of the format.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// Where a record goes; without a file nowhere.
#[derive(Debug)]
pub(super) struct Recorder {
    file: Option<BufWriter<RecordFile>>,
    /// Why it could not be written any more.
    failure: Option<io::Error>,
}

impl Recorder {
    /// Writes into that file, if there is one.
    pub(super) fn new(file: Option<RecordFile>) -> Self {
        Self {
            file: file.map(BufWriter::new),
            failure: None,
        }
    }

    /// Whether anything is kept.
    pub(super) const fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: &Value) {
        if let Some(file) = &mut self.file
            && let Err(error) = serde_json::to_writer(&mut *file, line)
                .map_err(io::Error::from)
                .and_then(|()| file.write_all(b"\n"))
        {
            self.fail(error);
        }
    }

    /// Writes an observation.
    pub(super) fn event(&mut self, at_ms: u64, observed: &Observed) {
        if !self.is_on() {
            return;
        }
        let mut line = Map::new();
        line.insert("event".to_owned(), json!(observed.kind.name()));
        line.insert("t_ms".to_owned(), json!(at_ms));
        if observed.n_bytes > 0 {
            line.insert("n_bytes".to_owned(), json!(observed.n_bytes));
        }
        for (key, text) in [("call_id", &observed.id), ("name", &observed.name)] {
            if !text.is_empty() {
                line.insert(key.to_owned(), json!(text));
            }
        }
        if let Some(ms) = observed.announced_ms {
            line.insert("announced_ms".to_owned(), json!(ms));
        }
        if let Some(outcome) = observed.outcome {
            line.insert("outcome".to_owned(), json!(outcome.name()));
        }
        if observed.may_ask {
            line.insert("may_ask".to_owned(), json!(true));
        }
        self.line(&Value::Object(line));
    }

    /// Writes a fact that the core of policy number `policy` told, with what `watch` adds to a firing.
    pub(super) fn fact(&mut self, policy: usize, output: &Output, decided_ms: u64) {
        if !self.is_on() {
            return;
        }
        let mut line = fact(output);
        if let Output::Fired(_) = output {
            line["decided_ms"] = json!(decided_ms);
        }
        line["policy"] = json!(policy);
        self.line(&line);
    }

    /// Writes what `watch` did or noticed.
    pub(super) fn note(&mut self, name: &str, at_ms: u64, mut details: Value) {
        details["note"] = json!(name);
        details["t_ms"] = json!(at_ms);
        self.line(&details);
    }

    /// Hands what was written to the system, so that it outlives `watch`.
    pub(super) fn flush(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush()
        {
            self.fail(error);
        }
    }

    /// Why the record is not whole, if it is not.
    pub(super) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// The command goes on; the record is lost, and that is told at the end.
    fn fail(&mut self, error: io::Error) {
        if let Some(file) = self.file.take() {
            // What is left in it would be tried again.
            let _ = file.into_parts();
        }
        self.failure.get_or_insert(error);
    }
}

/// A verdict's fields.
pub(super) fn verdict_fields(verdict: &Verdict) -> Value {
    let evidence: Vec<Value> = verdict
        .evidence
        .iter()
        .map(|activity| {
            json!({
                "kind": activity.kind.name(),
                "age_ms": activity.age.as_u64(),
                "rearms": activity.rearms,
            })
        })
        .collect();
    json!({
        "verdict": verdict.cause.name(),
        "t_ms": verdict.at.as_u64(),
        "deadline_ms": verdict.due.as_u64(),
        "phase": verdict.phase.name(),
        "outcome": verdict.outcome,
        "code": verdict.code,
        "evidence": evidence,
    })
}

fn fact(output: &Output) -> Value {
    let named = |name: &str, mut fields: Value| {
        fields["fact"] = json!(name);
        fields
    };
    match output {
        Output::Spawned { at } => named("spawned", json!({ "t_ms": at.as_u64() })),
        Output::SegmentStarted { at, reopens } => named(
            "segment_started",
            json!({ "t_ms": at.as_u64(), "reopens": reopens }),
        ),
        Output::SegmentEnded { at } => named("segment_ended", json!({ "t_ms": at.as_u64() })),
        Output::Rearmed { at, by, due } => named(
            "rearmed",
            json!({ "t_ms": at.as_u64(), "by": by.name(), "deadline_ms": due.map(policysim_policy::Millis::as_u64) }),
        ),
        Output::Paused { at, clocks, reason } => named("paused", pause(*at, *clocks, *reason)),
        Output::Resumed { at, clocks, reason } => named("resumed", pause(*at, *clocks, *reason)),
        Output::Warned { at, warning } => named(
            "warned",
            json!({ "t_ms": at.as_u64(), "warning": warning_name(*warning) }),
        ),
        Output::Silence(silence) => named(
            "silence",
            json!({
                "t_ms": silence.to.as_u64(),
                "clock": silence.clock.name(),
                "from_ms": silence.from.as_u64(),
                "reading_ms": silence.reading.as_u64(),
                "end": silence.end.name(),
            }),
        ),
        Output::TurnStop { at, cap } => {
            named("turn_stop", json!({ "t_ms": at.as_u64(), "cap": cap }))
        }
        Output::Fired(verdict) => named("fired", verdict_fields(verdict)),
        Output::Ended(verdict) => named("ended", verdict_fields(verdict)),
    }
}

fn pause(at: policysim_policy::Millis, clocks: Stopped, reason: Reason) -> Value {
    let clocks = match clocks {
        Stopped::Idle => "idle",
        Stopped::Hard => "hard",
        Stopped::All => "all",
    };
    let reason = match reason {
        Reason::Open { class, .. } => class.name(),
        Reason::SuspendFlag => "suspend_flag",
    };
    json!({ "t_ms": at.as_u64(), "clocks": clocks, "for": reason })
}

const fn warning_name(warning: Warning) -> &'static str {
    match warning {
        Warning::SpareWindowUsed => "spare_window_used",
        Warning::TurnCapReached { .. } => "turn_cap_reached",
        Warning::RepeatedStart { .. } => "repeated_start",
        Warning::RefusedOverlap { .. } => "refused_overlap",
        Warning::UnmatchedEnd { .. } => "unmatched_end",
        Warning::LostEnd { .. } => "lost_end",
        Warning::AnnouncedEnd { .. } => "announced_end",
        Warning::TooManyOpen { .. } => "too_many_open",
    }
}
