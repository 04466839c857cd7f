//! How runs begin, end and keep time, each rule on a log of a few lines.
#![allow(clippy::unwrap_used)]

mod import_support;

use std::cell::Cell;
use std::io::{self, BufReader, Read};

use import_support::{Imported, check_run, import_with, waits_on_events};
use policysim_policy::Kind;
use policysim_sim::run::{EventFlags, RecordedEnd, Run, RunStatus, Symbols, WaitKind};
use policysim_telemetry::import::{Format, ImportOptions, SourceInput, import_source};

/// A Copilot event: the format that says most with least text.
fn event(t_ms: u64, kind: &str, data: &str) -> String {
    let (s, ms) = (t_ms / 1000, t_ms % 1000);
    let stamp = format!(
        "2026-03-02T{:02}:{:02}:{:02}.{ms:03}Z",
        9 + s / 3600,
        s / 60 % 60,
        s % 60
    );
    format!(r#"{{"type":"{kind}","id":"i{t_ms}","timestamp":"{stamp}","data":{{{data}}}}}"#)
}

fn prompt(t_ms: u64) -> String {
    event(t_ms, "user.message", "")
}

fn answer(t_ms: u64) -> String {
    event(
        t_ms,
        "assistant.message",
        &format!(r#""messageId":"m{t_ms}""#),
    )
}

fn start(t_ms: u64, id: &str) -> String {
    event(
        t_ms,
        "tool.execution_start",
        &format!(r#""toolCallId":"{id}","toolName":"bash""#),
    )
}

fn end(t_ms: u64, id: &str) -> String {
    event(
        t_ms,
        "tool.execution_complete",
        &format!(r#""toolCallId":"{id}""#),
    )
}

fn failure(t_ms: u64) -> String {
    event(t_ms, "session.error", "")
}

fn abort(t_ms: u64) -> String {
    event(t_ms, "abort", "")
}

fn bookkeeping(t_ms: u64) -> String {
    event(t_ms, "hook.start", "")
}

fn read(format: Format, lines: &[String], options: &ImportOptions) -> Imported {
    let imported = import_with("s", format, lines.join("\n").as_bytes(), options);
    assert_eq!(waits_on_events(&imported.runs), imported.report.waits);
    for run in &imported.runs {
        check_run(run, &imported.symbols);
    }
    imported
}

fn copilot(lines: &[String]) -> Imported {
    read(Format::Copilot, lines, &ImportOptions::default())
}

/// Status, end and end time of every row.
fn ends(imported: &Imported) -> Vec<(RunStatus, RecordedEnd, u64)> {
    imported
        .runs
        .iter()
        .map(|run| (run.status, run.end, run.end_ms))
        .collect()
}

fn kinds(run: &Run) -> Vec<(u64, Kind)> {
    run.events
        .iter()
        .map(|event| (event.t_ms, event.kind))
        .collect()
}

#[test]
fn a_run_ends_with_its_last_activity() {
    let imported = copilot(&[
        prompt(0),
        answer(1_000),
        bookkeeping(9_000),
        prompt(20_000),
        answer(21_000),
    ]);
    let run = RunStatus::Run;
    assert_eq!(
        ends(&imported),
        [
            (run, RecordedEnd::Completed, 1_000),
            (run, RecordedEnd::Completed, 1_000)
        ]
    );
    assert_eq!(
        kinds(&imported.runs[0]).last(),
        Some(&(1_000, Kind::RunEnd))
    );
}

#[test]
fn a_log_that_ends_in_the_model_stays_open() {
    let lines = [
        prompt(0),
        answer(1_000),
        start(1_000, "a"),
        end(2_000, "a"),
        bookkeeping(7_000),
    ];
    let imported = copilot(&lines);
    assert_eq!(
        ends(&imported),
        [(RunStatus::Run, RecordedEnd::OpenInModel, 7_000)]
    );
    assert_eq!(
        kinds(&imported.runs[0]).last(),
        Some(&(7_000, Kind::Status)),
        "bookkeeping stays"
    );

    let observed = |later_ms: i64| ImportOptions {
        observed_until_ms: Some(imported.runs[0].started_at_ms + later_ms),
    };
    assert_eq!(
        read(Format::Copilot, &lines, &observed(60_000)).runs[0].end_ms,
        60_000
    );
    assert_eq!(
        read(Format::Copilot, &lines, &observed(-5)).runs[0].end_ms,
        7_000,
        "never before what was seen"
    );
}

#[test]
fn a_prompt_that_replaces_an_open_run_says_nothing_about_its_end() {
    let imported = copilot(&[
        prompt(0),
        answer(1_000),
        start(1_000, "a"),
        prompt(5_000),
        answer(6_000),
    ]);
    assert_eq!(
        ends(&imported)[0],
        (RunStatus::Run, RecordedEnd::Unknown, 1_000)
    );
    assert!(
        !kinds(&imported.runs[0])
            .iter()
            .any(|(_, kind)| matches!(kind, Kind::RunEnd | Kind::TurnEnd))
    );
    assert_eq!(imported.report.counts.n_orphan_calls, 1);
}

#[test]
fn a_prompt_is_understood_from_what_comes_later() {
    // Two calls are open at the prompts; only one of them ever returns, far behind the second prompt.
    let open = [
        prompt(0),
        answer(1_000),
        start(1_000, "a"),
        start(1_000, "b"),
    ];
    let later = [
        prompt(2_000),
        answer(3_000),
        prompt(4_000),
        answer(5_000),
        end(9_000, "b"),
    ];
    let imported = copilot(&[open.as_slice(), later.as_slice()].concat());
    assert_eq!(
        (
            imported.report.counts.n_steer,
            imported.report.counts.n_runs
        ),
        (2, 1)
    );
    assert_eq!(imported.runs[0].measured.duration_ms, 9_000);

    let imported = copilot(&[open.as_slice(), &later[..4]].concat());
    assert_eq!(
        (
            imported.report.counts.n_steer,
            imported.report.counts.n_runs
        ),
        (0, 3)
    );
    assert_eq!(imported.report.counts.n_orphan_calls, 2);

    // The first prompt starts a run; in it a call returns across the second.
    let nested = [
        prompt(2_000),
        answer(3_000),
        start(3_000, "c"),
        prompt(4_000),
        end(5_000, "c"),
    ];
    let imported = copilot(&[open.as_slice(), nested.as_slice()].concat());
    assert_eq!(
        (
            imported.report.counts.n_steer,
            imported.report.counts.n_runs
        ),
        (1, 2)
    );
}

#[test]
fn activity_after_an_abort_resumes() {
    let imported = copilot(&[prompt(0), answer(1_000), abort(3_000), answer(50_000)]);
    assert_eq!(
        ends(&imported),
        [(RunStatus::Run, RecordedEnd::Completed, 50_000)]
    );
    let story: Vec<Kind> = imported.runs[0]
        .events
        .iter()
        .map(|event| event.kind)
        .collect();
    let expected = [
        Kind::RunStart,
        Kind::TurnStart,
        Kind::MessageEnd,
        Kind::RunEnd,
        Kind::Resume,
        Kind::TurnStart,
        Kind::MessageEnd,
        Kind::TurnEnd,
        Kind::RunEnd,
    ];
    assert_eq!(story, expected);
    assert!(imported.runs[0].measured.aborted);
    assert_eq!(
        imported.runs[0].measured.silence_ms, 2_000,
        "measured anew after the abort"
    );

    let imported = copilot(&[prompt(0), answer(1_000), abort(3_000), bookkeeping(4_000)]);
    assert_eq!(
        ends(&imported),
        [(RunStatus::Run, RecordedEnd::Aborted, 3_000)]
    );
}

#[test]
fn a_failed_call_at_the_end_is_a_failed_run() {
    let imported = copilot(&[
        prompt(0),
        answer(1_000),
        start(1_000, "a"),
        end(2_000, "a"),
        failure(8_000),
    ]);
    assert_eq!(
        ends(&imported),
        [(RunStatus::Run, RecordedEnd::Failed, 8_000)]
    );
    assert_eq!(
        imported.report.counts.n_open_at_end, 1,
        "though control was still with the model"
    );

    // Codex tries again after a broken stream: the log ends in that attempt.
    let line = |t: u64, kind: &str| {
        format!(
            r#"{{"timestamp":"2026-03-02T09:00:{t:02}Z","type":"event_msg","payload":{{"type":"{kind}"}}}}"#
        )
    };
    let lines = [line(0, "user_message"), line(5, "stream_error")];
    let imported = read(Format::Codex, &lines, &ImportOptions::default());
    assert_eq!(
        ends(&imported),
        [(RunStatus::Unanswered, RecordedEnd::OpenInModel, 5_000)]
    );
    let lines = [line(0, "user_message"), line(5, "error")];
    let imported = read(Format::Codex, &lines, &ImportOptions::default());
    assert_eq!(
        ends(&imported),
        [(RunStatus::Unanswered, RecordedEnd::Failed, 5_000)]
    );
}

#[test]
fn waits_before_any_run_have_a_row_of_their_own() {
    let dialog = r#""requestId":"r""#;
    let imported = copilot(&[
        failure(0),
        failure(2_000),
        event(3_000, "permission.requested", dialog),
        event(7_000, "permission.completed", dialog),
        prompt(10_000),
        answer(11_000),
    ]);
    let [outside, run] = imported.runs.as_slice() else {
        panic!("two rows expected")
    };
    assert_eq!(
        (outside.status, outside.name.as_ref(), run.name.as_ref()),
        (RunStatus::Outside, "s#1", "s#2")
    );
    let waits: Vec<(u64, WaitKind, u64)> = outside
        .events
        .iter()
        .map(|event| (event.t_ms, event.wait.unwrap().kind, event.wait.unwrap().ms))
        .collect();
    assert_eq!(
        waits,
        [
            (0, WaitKind::Retry, 2_000),
            (5_000, WaitKind::Approval, 4_000)
        ]
    );
    assert_eq!(imported.report.runs.len(), 1);
}

#[test]
fn a_dialog_told_end_first_is_told_whole_at_its_second_record() {
    let dialog = r#""requestId":"r""#;
    let imported = copilot(&[
        prompt(0),
        event(5_000, "permission.completed", dialog),
        event(2_000, "permission.requested", dialog),
        answer(9_000),
    ]);
    assert_eq!(imported.report.waits.of(WaitKind::Approval).sum_ms, 3_000);
    let run = &imported.runs[0];
    let dialog: Vec<Kind> = run
        .events
        .iter()
        .map(|event| event.kind)
        .filter(|kind| matches!(kind, Kind::ApprovalStart | Kind::ApprovalEnd))
        .collect();
    assert_eq!(dialog, [Kind::ApprovalStart, Kind::ApprovalEnd]);
}

#[test]
fn bookkeeping_gives_way_to_activity() {
    let imported = copilot(&[
        prompt(0),
        bookkeeping(9_000),
        answer(4_000),
        bookkeeping(1_000),
        start(5_000, "a"),
        end(6_000, "a"),
        answer(7_000),
    ]);
    let run = &imported.runs[0];
    let status: Vec<(u64, bool)> = run
        .events
        .iter()
        .filter(|event| event.kind == Kind::Status)
        .map(|event| (event.t_ms, event.flags.has(EventFlags::CLOCK_STEP)))
        .collect();
    assert_eq!(status, [(4_000, true), (4_000, false)]);
    assert_eq!(run.measured.silence_ms, 4_000);
    assert_eq!(
        imported.report.clock_steps, 0,
        "activity never stepped back"
    );
}

#[test]
fn unknown_types_and_long_names_are_bounded() {
    let mut lines = vec![prompt(0), answer(1_000)];
    lines.extend((0..100).map(|n| event(1_000, &format!("{n}-{}", "x".repeat(300)), "")));
    lines.push(start(2_000, "a"));
    lines.push(event(
        3_000,
        "tool.execution_start",
        &format!(r#""toolCallId":"b","toolName":"{}""#, "y".repeat(300)),
    ));
    let imported = copilot(&lines);
    assert_eq!(imported.report.unknown_types.len(), 65);
    assert_eq!(imported.report.unknown_types.get("(more)"), Some(&36));
    assert!(
        imported
            .report
            .unknown_types
            .keys()
            .all(|name| name.len() <= 128)
    );
    let longest = imported.runs[0]
        .events
        .iter()
        .map(|event| imported.symbols.name(event.name).len())
        .max();
    assert_eq!(longest, Some(128));
}

#[test]
fn a_pre_token_wait_of_nothing_is_a_collapsed_stamp() {
    let imported = copilot(&[prompt(5_000), answer(5_000)]);
    let event = imported.runs[0]
        .events
        .iter()
        .find(|event| event.wait.is_some())
        .unwrap();
    assert!(
        event
            .flags
            .has(EventFlags::COLLAPSED_STAMPS.with(EventFlags::UPPER_BOUND))
    );
}

/// Writes sessions as long as they are read, and counts what it has written.
struct Endless<'a> {
    pending: Vec<u8>,
    sessions_left: u64,
    written: &'a Cell<u64>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.pending.is_empty() && self.sessions_left > 0 {
            self.sessions_left -= 1;
            let t = (1_000 - self.sessions_left) * 10_000;
            let text = [
                prompt(t),
                answer(t + 1_000),
                start(t + 1_000, "a"),
                end(t + 2_000, "a"),
                answer(t + 3_000),
            ];
            self.pending = (text.join("\n") + "\n").into_bytes();
        }
        let n = self.pending.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.pending[..n]);
        self.pending.drain(..n);
        self.written.set(self.written.get() + n as u64);
        Ok(n)
    }
}

#[test]
fn runs_are_given_away_as_soon_as_they_are_over() {
    let written = Cell::new(0);
    let endless = Endless {
        pending: Vec::new(),
        sessions_left: 1_000,
        written: &written,
    };
    let mut reader = BufReader::with_capacity(4_096, endless);
    let mut given = Vec::new();
    let input = SourceInput {
        name: "s",
        reader: &mut reader,
    };
    let options = ImportOptions::default();
    let mut symbols = Symbols::default();
    let report = import_source(
        input,
        Format::Copilot,
        &options,
        &mut symbols,
        &mut |run: Run, _: &Symbols| {
            given.push((run.events.len(), written.get()));
            Ok(())
        },
    )
    .unwrap();
    assert_eq!((report.counts.n_runs, given.len()), (1_000, 1_000));
    let total = written.get();
    for (n, (n_events, read)) in given.iter().enumerate() {
        assert_eq!(*n_events, 10);
        // A run is over when the next prompt is read, which lies within the next buffer.
        assert!(
            *read <= total * (n as u64 + 2) / 1_000 + 2 * 4_096,
            "run {n} was held back"
        );
    }
}
