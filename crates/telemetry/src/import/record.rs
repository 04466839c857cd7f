//! Records of `policysim watch`: observations of a live command, as they were fed to the watchdog core.
//!
//! One JSON line each, told apart by a key of its own: `record` heads a run, `event` is an observation, `end` says how
//! long there was observation; `fact` (what the core decided) and `note` (what `watch` did) say nothing that a replay
//! needs. The events of a record are taken as they are: replayed under the recorded policy they meet the same verdict
//! at the same millisecond.
//!
//! A record that ends without `end` (`watch` itself was killed) is observed up to its last line. A kill that came
//! late because `watch` was not running is known by `late_ms`: the run's record is cut at the kill's own deadline,
//! where a `host_suspend` says how late it was, so that the lateness passes for no tolerated silence.
//! A run whose clean-up was forced after its result ended as that result says.

use std::io::{self, BufRead};
use std::sync::Arc;

use policysim_policy::{CallId, Cause, Kind, Outcome};
use policysim_sim::run::{EventFlags, RecordedEnd, Run, RunEvent, RunStatus, Symbols};
use serde::Deserialize;

use super::lines::Lines;
use super::names::bounded;
use super::report::BadReason;

/// The name of the format, in the head of a record.
const FORMAT: &str = "policysim-watch";

/// What a late kill's `host_suspend` is called.
const NOT_SCHEDULED: &str = "watcher_not_scheduled";

/// What a result is called that tells of a failure.
const FAILED_RESULT: &str = "error";

/// A line of a record: the fields of every kind of line.
#[derive(Debug, Default, Deserialize)]
struct Line {
    record: Option<String>,
    event: Option<String>,
    end: Option<String>,
    fact: Option<String>,
    note: Option<String>,
    #[serde(default)]
    t_ms: Option<u64>,
    #[serde(default)]
    call_id: String,
    #[serde(default)]
    name: String,
    announced_ms: Option<u64>,
    outcome: Option<String>,
    verdict: Option<String>,
    #[serde(default)]
    may_ask: bool,
    late_ms: Option<u64>,
    #[serde(default)]
    started_at_ms: i64,
    #[serde(default)]
    role: String,
}

/// What became of one line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineFate {
    /// An observation, or the head.
    Imported,
    /// Nothing that a replay needs.
    Ignored,
    /// A line of no kind that is known.
    Unrecognised,
    /// No line of a record, and why.
    Malformed(&'static str),
}

/// A line with its place, for the accounting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineAt {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// Offset of its first byte.
    pub(crate) offset: u64,
    /// What became of it.
    pub(crate) fate: LineFate,
}

/// A run under construction.
#[derive(Default)]
struct Building {
    started_at_ms: i64,
    role: String,
    events: Vec<RunEvent>,
    /// The latest time of any line.
    last_ms: u64,
    /// When observation ended, and by how much the kill there was late.
    end: Option<(u64, Option<u64>)>,
    killed: bool,
    /// Its clean-up was forced after its result: no kill of a run that goes on.
    cleaned_up: bool,
}

/// Whether the first JSON line has the keys of a record's head.
pub(crate) fn is_record(columns: &[String]) -> bool {
    let has = |name: &str| columns.iter().any(|column| column == name);
    has("record") && has("schema_version") && has("started_at_ms")
}

/// Takes what records hold.
pub(crate) trait Take {
    /// Why a run cannot be taken, or the records not be read.
    type Error: From<io::Error>;

    /// Told of every line.
    fn line(&mut self, line: LineAt);

    /// Takes a run, whose recorded kill was so late, ms.
    fn run(
        &mut self,
        run: &Run,
        symbols: &Symbols,
        late_ms: Option<u64>,
    ) -> Result<(), Self::Error>;
}

/// Reads records from `reader`, one run per head, into `to`.
///
/// # Errors
/// What the reader or `to` answered.
pub(crate) fn read<T: Take>(
    source: &str,
    reader: &mut dyn BufRead,
    symbols: &mut Symbols,
    to: &mut T,
) -> Result<(), T::Error> {
    let mut lines = Lines::new(reader);
    let mut building: Option<Building> = None;
    let mut n_runs = 0;
    let mut finish = |building: Option<Building>, symbols: &mut Symbols, to: &mut T| match building
    {
        Some(building) if !building.events.is_empty() => {
            n_runs += 1;
            let late_ms = building.end.and_then(|(_, late_ms)| late_ms);
            to.run(&building.finish(source, n_runs, symbols), symbols, late_ms)
        }
        _ => Ok(()),
    };
    while let Some(text) = lines.next_line()? {
        let (number, offset) = (text.number, text.offset);
        let fate = if text.is_blank() {
            LineFate::Ignored
        } else {
            match serde_json::from_str::<Line>(text.text.trim()) {
                Ok(read) if read.record.is_some() => {
                    finish(building.take(), symbols, to)?;
                    let (begun, fate) = begin(&read);
                    building = begun;
                    fate
                }
                Ok(read) => match &mut building {
                    Some(building) => building.take(&read, symbols),
                    None => LineFate::Malformed("no head of a record stands before it"),
                },
                Err(_) if !text.ended => LineFate::Malformed(BadReason::TruncatedTail.name()),
                Err(_) => LineFate::Malformed("no line of a record"),
            }
        };
        to.line(LineAt {
            number,
            offset,
            fate,
        });
    }
    finish(building, symbols, to)
}

fn begin(head: &Line) -> (Option<Building>, LineFate) {
    if head.record.as_deref() != Some(FORMAT) {
        return (None, LineFate::Malformed("a record of another format"));
    }
    let building = Building {
        started_at_ms: head.started_at_ms,
        role: bounded(&head.role).into_owned(),
        ..Building::default()
    };
    (Some(building), LineFate::Imported)
}

impl Building {
    fn take(&mut self, line: &Line, symbols: &mut Symbols) -> LineFate {
        if line.event.is_some() && line.t_ms.is_none() {
            return LineFate::Malformed("t_ms is missing");
        }
        let t_ms = line.t_ms.unwrap_or(self.last_ms);
        self.last_ms = self.last_ms.max(t_ms);
        if let Some(kind) = &line.event {
            return match event(t_ms, kind, line, symbols) {
                Ok(event) => {
                    self.push(event);
                    LineFate::Imported
                }
                Err(reason) => LineFate::Malformed(reason),
            };
        }
        if line.end.is_some() {
            self.end = Some((t_ms, line.late_ms));
            return LineFate::Imported;
        }
        let cause = |name: &Option<String>| name.as_deref().and_then(Cause::from_name);
        let by = match line.note.as_deref() {
            Some("kill") => cause(&line.verdict).or(Some(Cause::Running)),
            Some("outcome") => cause(&line.outcome).filter(|cause| cause.is_firing()),
            _ => None,
        };
        match by {
            Some(Cause::CleanupForced) => self.cleaned_up = true,
            Some(_) => self.killed = true,
            None => {}
        }
        if line.note.is_some() || line.fact.is_some() {
            LineFate::Ignored
        } else {
            LineFate::Unrecognised
        }
    }

    fn push(&mut self, mut event: RunEvent) {
        if let Some(last) = self.events.last()
            && event.t_ms < last.t_ms
        {
            event.t_ms = last.t_ms;
            event.flags = event.flags.with(EventFlags::CLOCK_STEP);
        }
        self.events.push(event);
    }

    fn finish(mut self, source: &str, number: u64, symbols: &mut Symbols) -> Run {
        let last_ms = self.events.last().map_or(0, |event| event.t_ms);
        let end_ms = match self.end {
            Some((t_ms, Some(late_ms))) => {
                let deadline_ms = t_ms.saturating_sub(late_ms).max(last_ms);
                let mut late = RunEvent::new(deadline_ms, Kind::HostSuspend);
                late.name = symbols.intern(NOT_SCHEDULED);
                late.announced_ms = Some(late_ms);
                self.events.push(late);
                deadline_ms
            }
            Some((t_ms, None)) => t_ms.max(last_ms),
            None => self.last_ms,
        };
        let summary = crate::tables::derive(&mut self.events, symbols);
        let results = self.events.iter().rev();
        let result = results
            .map(|event| (event.kind, event.name))
            .find(|(kind, _)| *kind == Kind::Result)
            .map(|(_, name)| symbols.name(name) != FAILED_RESULT);
        Run {
            name: Arc::from(format!("{source}#{number}")),
            source: Arc::from(source),
            harness: Arc::from("policysim"),
            role: Arc::from(self.role),
            started_at_ms: self.started_at_ms,
            resolution: summary.resolution,
            status: RunStatus::Run,
            end: match result {
                _ if self.killed => RecordedEnd::Killed,
                Some(succeeded) if self.cleaned_up => {
                    if succeeded {
                        RecordedEnd::Completed
                    } else {
                        RecordedEnd::Failed
                    }
                }
                _ => summary.end,
            },
            end_ms,
            measured: summary.measured,
            events: self.events,
            ..Run::default()
        }
    }
}

fn event(
    t_ms: u64,
    kind: &str,
    line: &Line,
    symbols: &mut Symbols,
) -> Result<RunEvent, &'static str> {
    let kind = Kind::from_name(kind).ok_or("event is no known kind")?;
    let mut event = RunEvent::new(t_ms, kind);
    event.id = CallId::from_text(&line.call_id);
    event.name = symbols.intern(&bounded(&line.name));
    event.announced_ms = line.announced_ms;
    event.outcome = match line.outcome.as_deref() {
        None => None,
        Some("aborted") => Some(Outcome::Aborted),
        Some("completed") => Some(Outcome::Completed),
        Some("failed") => Some(Outcome::Failed),
        Some(_) => return Err("outcome is no known name"),
    };
    if line.may_ask {
        event.flags = event.flags.with(EventFlags::MAY_ASK);
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HEAD: &str =
        r#"{"record":"policysim-watch","schema_version":1,"started_at_ms":7,"role":"r"}"#;

    #[derive(Default)]
    struct Found {
        runs: Vec<Run>,
        late: Vec<Option<u64>>,
        fates: Vec<LineFate>,
        symbols: Symbols,
    }

    impl Take for Found {
        type Error = io::Error;

        fn line(&mut self, line: LineAt) {
            self.fates.push(line.fate);
        }

        fn run(&mut self, run: &Run, _: &Symbols, late_ms: Option<u64>) -> io::Result<()> {
            self.runs.push(run.clone());
            self.late.push(late_ms);
            Ok(())
        }
    }

    fn found(lines: &[&str]) -> Found {
        let text = lines.join("\n");
        let mut found = Found::default();
        let mut symbols = Symbols::default();
        read("r.jsonl", &mut text.as_bytes(), &mut symbols, &mut found).unwrap();
        found.symbols = symbols;
        found
    }

    #[test]
    fn events_are_taken_as_they_are() {
        let found = found(&[
            HEAD,
            r#"{"event":"run_start","t_ms":0,"announced_ms":9000}"#,
            r#"{"fact":"segment_started","policy":0,"t_ms":0}"#,
            r#"{"event":"tool_start","t_ms":5,"call_id":"c1","name":"bash","may_ask":true}"#,
            r#"{"event":"run_end","t_ms":9,"outcome":"completed"}"#,
            r#"{"end":"observed","t_ms":9}"#,
            r#"{"note":"outcome","outcome":"exited","status":0,"t_ms":20}"#,
            r#"{"event":"sneeze","t_ms":9}"#,
            r#"{"event":"stdout"}"#,
            r#"{"event":"stdo"#,
        ]);
        let run = &found.runs[0];
        assert_eq!((&*run.name, &*run.harness), ("r.jsonl#1", "policysim"));
        assert_eq!((&*run.role, run.started_at_ms), ("r", 7));
        assert_eq!((run.end, run.end_ms), (RecordedEnd::Completed, 9));
        let event = run.events[1].as_event(&found.symbols);
        assert_eq!((event.id, event.name), (CallId::from_text("c1"), "bash"));
        assert!(event.may_ask);
        assert_eq!(run.events[0].announced_ms, Some(9_000));
        let malformed: Vec<&str> = found
            .fates
            .iter()
            .filter_map(|fate| match fate {
                LineFate::Malformed(reason) => Some(*reason),
                _ => None,
            })
            .collect();
        assert_eq!(
            malformed,
            [
                "event is no known kind",
                "t_ms is missing",
                "truncated_tail"
            ]
        );
    }

    /// BR-80: what was cleaned up after its result ended as that says; its signal is no kill of a run.
    #[test]
    fn a_forced_clean_up_ends_as_its_result_says() {
        for (name, end) in [
            ("success", RecordedEnd::Completed),
            ("error", RecordedEnd::Failed),
        ] {
            let result = format!(r#"{{"event":"result","t_ms":40,"name":"{name}"}}"#);
            let kill = r#"{"note":"kill","t_ms":540,"verdict":"cleanup_forced"}"#;
            let outcome = r#"{"note":"outcome","t_ms":560,"outcome":"cleanup_forced"}"#;
            // a watch that was killed itself tells no outcome
            for lines in [&[HEAD, &result, kill][..], &[HEAD, &result, kill, outcome]] {
                assert_eq!(found(lines).runs[0].end, end, "{name}");
            }
            let idle = r#"{"note":"kill","t_ms":540,"verdict":"idle_timeout"}"#;
            assert_eq!(
                found(&[HEAD, &result, idle]).runs[0].end,
                RecordedEnd::Killed
            );
        }
    }

    /// A watch that was killed itself leaves a record that ends with its last line.
    #[test]
    fn a_record_without_an_end_ends_with_its_last_line() {
        let found = found(&[
            HEAD,
            r#"{"event":"stdout","t_ms":40,"n_bytes":2}"#,
            r#"{"fact":"fired","policy":0,"t_ms":140}"#,
            HEAD,
            HEAD,
            r#"{"event":"stdout","t_ms":40,"n_bytes":2}"#,
        ]);
        let ends: Vec<u64> = found.runs.iter().map(|run| run.end_ms).collect();
        assert_eq!(ends, [140, 40]);
        assert_eq!(&*found.runs[1].name, "r.jsonl#2");
    }

    /// Twenty seconds in which watch did not run are no silence that the policy tolerated.
    #[test]
    fn a_late_kill_is_cut_at_its_deadline() {
        let found = found(&[
            HEAD,
            r#"{"event":"stdout","t_ms":40}"#,
            r#"{"note":"kill","t_ms":21040}"#,
            r#"{"end":"observed","t_ms":21040,"late_ms":19000}"#,
        ]);
        let run = &found.runs[0];
        assert_eq!((run.end, run.end_ms), (RecordedEnd::Killed, 2_040));
        let last = run.events.last().unwrap();
        assert_eq!((last.kind, last.t_ms), (Kind::HostSuspend, 2_040));
        assert_eq!(last.announced_ms, Some(19_000));
        assert_eq!(found.symbols.name(last.name), NOT_SCHEDULED);
        assert_eq!(found.late, [Some(19_000)]);
    }
}
