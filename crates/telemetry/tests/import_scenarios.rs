//! The importer scenarios made from public bug reports, one test each; the expectations are those of their `.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod import_support;

use import_support::{Imported, check_run, import, import_with, shared, waits_on_events};
use policysim_policy::{Kind, Outcome};
use policysim_sim::run::{EventFlags, RecordedEnd, Run, RunEvent, RunStatus, WaitKind};
use policysim_telemetry::import::{BadReason, Format, ImportOptions, Sniffed, SourceReport, sniff};

/// The log of a scenario as bytes, by the beginning of its file name; none without the reference data.
fn log(beginning: &str) -> Option<Vec<u8>> {
    let Some(shared) = shared() else {
        println!("skipped: no corpus");
        return None;
    };
    let mut found = None;
    for file in std::fs::read_dir(shared.join("scenarios")).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(beginning) && file.extension().is_some_and(|ending| ending == "jsonl") {
            assert!(found.is_none(), "several logs begin with {beginning}");
            found = Some(std::fs::read(&file).unwrap());
        }
    }
    Some(found.unwrap_or_else(|| panic!("no log begins with {beginning}")))
}

/// The scenario as imported, sniffed first; what holds for every source is checked on the way.
fn scenario(beginning: &str, format: Format) -> Option<Imported> {
    let bytes = log(beginning)?;
    assert_eq!(sniff(&bytes), Sniffed::Format(format));
    Some(checked(import("log.jsonl", format, &bytes)))
}

fn checked(imported: Imported) -> Imported {
    let report = &imported.report;
    assert_eq!(report.lines.total(), report.counts.n_lines);
    assert_eq!(waits_on_events(&imported.runs), report.waits);
    for run in &imported.runs {
        check_run(run, &imported.symbols);
    }
    imported
}

/// The waits of a kind, in order, over all rows.
fn waits(imported: &Imported, kind: WaitKind) -> Vec<u64> {
    events_with(imported, kind)
        .map(|event| event.wait.unwrap().ms)
        .collect()
}

fn events_with(imported: &Imported, kind: WaitKind) -> impl Iterator<Item = &RunEvent> {
    let events = imported.runs.iter().flat_map(|run| &run.events);
    events.filter(move |event| event.wait.is_some_and(|wait| wait.kind == kind))
}

fn rows(report: &SourceReport) -> Vec<[u64; 6]> {
    report
        .runs
        .iter()
        .map(policysim_telemetry::import::RunRow::values)
        .collect()
}

fn times(run: &Run, kind: Kind) -> Vec<u64> {
    run.events
        .iter()
        .filter(|event| event.kind == kind)
        .map(|event| event.t_ms)
        .collect()
}

/// Idle kills of a fixed window with nothing paused and everything re-arming.
fn idle_kills(runs: &[Run], window_ms: u64) -> usize {
    let killed = |run: &&Run| {
        run.events
            .windows(2)
            .any(|pair| pair[1].t_ms - pair[0].t_ms >= window_ms)
    };
    runs.iter().filter(killed).count()
}

#[test]
fn br19_a_usage_limit_wait_is_not_a_stall() {
    let Some(imported) = scenario("BR-19", Format::Claude) else {
        return;
    };
    let [limited, run] = imported.runs.as_slice() else {
        panic!("two rows expected")
    };
    assert_eq!(
        (limited.status, limited.end),
        (RunStatus::Unanswered, RecordedEnd::Failed)
    );
    let end = limited.events.last().unwrap();
    assert_eq!(
        (end.kind, end.t_ms, end.outcome),
        (Kind::RunEnd, 800, Some(Outcome::Failed))
    );
    assert!(end.flags.has(EventFlags::RATE_LIMITED));
    assert_eq!(limited.end_ms, 800, "the three hours belong to no run");
    assert_eq!(run.started_at_ms - limited.started_at_ms, 10_860_000);
    assert_eq!(waits(&imported, WaitKind::ErrorWait), [800]);
    assert_eq!(waits(&imported, WaitKind::PreToken), [6_000, 4_600]);
    assert_eq!(waits(&imported, WaitKind::Tool), [400]);
    assert_eq!(idle_kills(&imported.runs, 300_000), 0);
}

#[test]
fn br24_the_recorded_execution_stands_beside_the_gap() {
    let Some(imported) = scenario("BR-24", Format::Claude) else {
        return;
    };
    assert_eq!(waits(&imported, WaitKind::Tool), [95_000]);
    let end = events_with(&imported, WaitKind::Tool).next().unwrap();
    assert!(end.flags.has(EventFlags::NATIVE_DURATION));
    assert_eq!(end.announced_ms, Some(850));
    assert_eq!(end.wait.unwrap().ms - end.announced_ms.unwrap(), 94_150);
    assert!(end.flags.has(EventFlags::AMBIGUOUS_APPROVAL));
    assert_eq!(
        end.as_event(&imported.symbols).announced,
        None,
        "no announced pause for the core"
    );
}

#[test]
fn br50_time_that_steps_back() {
    let Some(imported) = scenario("BR-50", Format::Claude) else {
        return;
    };
    let report = &imported.report;
    assert_eq!(
        (report.clock_steps, report.largest_clock_step_ms),
        (2, 2_000)
    );
    assert_eq!(report.counts.n_negative, 2);
    let waits: Vec<u64> = imported.runs[0]
        .events
        .iter()
        .filter_map(|event| Some(event.wait?.ms))
        .collect();
    assert_eq!(waits, [5_000, 6_000]);
    let run = &imported.runs[0];
    let output: Vec<_> = run
        .events
        .iter()
        .filter(|event| event.kind == Kind::MessageEnd)
        .collect();
    assert_eq!(
        output.iter().map(|event| event.t_ms).collect::<Vec<_>>(),
        [5_000, 5_000, 9_000, 9_000]
    );
    let clamped: Vec<bool> = output
        .iter()
        .map(|event| event.flags.has(EventFlags::CLOCK_STEP))
        .collect();
    assert_eq!(clamped, [false, true, false, true]);
    assert!(
        output[1].wait.is_none() && output[3].wait.is_none(),
        "clamped zeros are no samples"
    );
    assert_eq!(run.end_ms, 9_000);
}

#[test]
fn br51_a_tool_that_ends_before_it_starts() {
    // The scenario is a neutral timeline; this is the same story in the shape of a log.
    let log = br#"{"type":"user.message","data":{},"id":"1","timestamp":"2026-03-02T09:00:00.000Z"}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"bash"},"id":"2","timestamp":"2026-03-02T09:00:10.000Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1"},"id":"3","timestamp":"2026-03-02T09:00:09.400Z"}
{"type":"assistant.message","data":{"messageId":"m"},"id":"4","timestamp":"2026-03-02T09:00:12.000Z"}
"#;
    let imported = checked(import("log.jsonl", Format::Copilot, log));
    let run = &imported.runs[0];
    assert_eq!(times(run, Kind::ToolStart), times(run, Kind::ToolEnd));
    let end = run
        .events
        .iter()
        .find(|event| event.kind == Kind::ToolEnd)
        .unwrap();
    assert!(end.flags.has(EventFlags::CLOCK_STEP) && end.wait.is_none());
    assert_eq!(imported.report.clock_steps, 1);
    assert_eq!(imported.report.counts.n_negative, 1);
    assert_eq!(run.measured.tools, 1, "the call still counts as finished");
}

#[test]
fn br53_a_torn_append() {
    let Some(imported) = scenario("BR-53", Format::Claude) else {
        return;
    };
    let report = &imported.report;
    assert_eq!((report.counts.n_lines, report.counts.n_bad_lines), (4, 1));
    let [bad] = report.bad_lines.as_slice() else {
        panic!("one bad line expected")
    };
    let bytes = log("BR-53").unwrap();
    let offset = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(2)
        .map(<[u8]>::len)
        .sum::<usize>() as u64;
    assert_eq!(
        (bad.line, bad.offset, bad.reason),
        (3, offset, BadReason::InvalidJson)
    );
    assert_eq!(report.counts.n_orphan_calls, 1);
    assert_eq!(waits(&imported, WaitKind::Tool), Vec::<u64>::new());
    let run = &imported.runs[0];
    assert_eq!(
        run.end,
        RecordedEnd::Completed,
        "the call must not be still running"
    );
    assert_eq!(run.end_ms, 9_000);
}

#[test]
fn br54_everything_after_a_bad_line_still_counts() {
    let Some(imported) = scenario("BR-54", Format::Claude) else {
        return;
    };
    assert_eq!(imported.report.counts.n_bad_lines, 1);
    assert_eq!(imported.report.lines.imported, 4);
    let [first, second] = imported.runs.as_slice() else {
        panic!("two runs expected")
    };
    assert_eq!(
        second.started_at_ms + second.end_ms as i64 - first.started_at_ms,
        172_804_000
    );
    assert_eq!(first.end_ms, 3_000, "two days of a human are in no run");
    assert_eq!(idle_kills(&imported.runs, 60_000), 0);
}

#[test]
fn br56_only_a_line_feed_ends_a_record() {
    let Some(imported) = scenario("BR-56", Format::Claude) else {
        return;
    };
    assert_eq!(imported.report.counts.n_lines, 4);
    assert_eq!(imported.report.lines.imported, 4);
    assert_eq!(imported.report.counts.n_bad_lines, 0);
    assert_eq!(waits(&imported, WaitKind::Tool), [400]);
}

#[test]
fn br58_bom_crlf_a_broken_byte_and_a_torn_tail() {
    let Some(imported) = scenario("BR-58", Format::Claude) else {
        return;
    };
    let report = &imported.report;
    assert_eq!(report.lines.imported, 3);
    assert_eq!(
        report.invalid_utf8_lines, 1,
        "the tail is cut in a character, but it is not read"
    );
    assert_eq!(report.counts.n_bad_lines, 1);
    assert_eq!(
        (report.bad_lines[0].line, report.bad_lines[0].reason),
        (4, BadReason::TruncatedTail)
    );
    assert_eq!(waits(&imported, WaitKind::PreToken), [2_000]);
    let all: Vec<u64> = imported.runs[0]
        .events
        .iter()
        .filter_map(|event| Some(event.wait?.ms))
        .collect();
    assert_eq!(all, [2_000, 3_000]);
}

#[test]
fn br59_replayed_records_count_once() {
    let Some(imported) = scenario("BR-59", Format::Claude) else {
        return;
    };
    let report = &imported.report;
    assert_eq!(report.records.duplicate, 3);
    assert_eq!(report.lines.duplicate, 3);
    assert_eq!(waits(&imported, WaitKind::Tool), [30_000]);
    assert_eq!(report.clock_steps, 0);
    assert_eq!(report.counts.n_turns, 4);
    assert_eq!(report.counts.n_compactions, 1);
}

#[test]
fn br63_a_renamed_vocabulary() {
    let Some(imported) = scenario("BR-63", Format::Codex) else {
        return;
    };
    let report = &imported.report;
    assert_eq!(report.counts.n_prompts, 1);
    let run = &imported.runs[0];
    // Reasoning, the command's call and the answer are outputs.
    assert_eq!(times(run, Kind::MessageEnd), [8_950, 9_050, 75_000 - 50]);
    assert_eq!(waits(&imported, WaitKind::Tool), [60_000]);
    assert_eq!(report.unknown_types.get("world_state"), Some(&1));
    assert_eq!(report.unknown_types.len(), 1);
    let other = run
        .events
        .iter()
        .find(|event| imported.symbols.name(event.name) == "world_state")
        .unwrap();
    assert_eq!(
        (other.kind, other.flags.has(EventFlags::ACTIVITY)),
        (Kind::Other, false)
    );
    assert_eq!(report.client_version.as_deref(), Some("0.153.4"));
    assert_eq!(run.end, RecordedEnd::Completed);
}

#[test]
fn br63_a_file_with_both_vocabularies_counts_once() {
    let log = br#"{"timestamp":"2026-03-02T09:00:00.000Z","type":"event_msg","payload":{"type":"user_message"}}
{"timestamp":"2026-03-02T09:00:00.001Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","id":"i"}}}
{"timestamp":"2026-03-02T09:00:05.000Z","type":"response_item","payload":{"type":"message","role":"assistant"}}
{"timestamp":"2026-03-02T09:00:05.001Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"j"}}}
"#;
    let imported = checked(import("log.jsonl", Format::Codex, log));
    assert_eq!(rows(&imported.report), [[5_000, 1, 0, 5_000, 5_000, 0]]);
    assert_eq!(imported.report.counts.n_prompts, 1);
}

#[test]
fn br65_two_stamps_per_entry() {
    let Some(imported) = scenario("BR-65", Format::Pi) else {
        return;
    };
    assert_eq!(waits(&imported, WaitKind::PreToken), [19_995, 10_000]);
    for event in events_with(&imported, WaitKind::PreToken) {
        assert!(event.flags.has(EventFlags::UPPER_BOUND));
    }
    // Run time starts with the prompt's entry, 5 ms after the session line.
    let run = &imported.runs[0];
    let began: Vec<u64> = run
        .events
        .iter()
        .filter(|event| imported.symbols.name(event.name) == "message_began")
        .map(|event| event.t_ms + 5)
        .collect();
    assert_eq!(began, [5_000, 80_100]);
    assert_eq!(
        times(run, Kind::MessageEnd),
        [19_995, 89_995],
        "streaming: 15000 and 9900 ms"
    );
    assert_eq!(waits(&imported, WaitKind::Tool), [60_000]);
}

#[test]
fn br67_days_between_two_sittings() {
    let Some(imported) = scenario("BR-67", Format::Claude) else {
        return;
    };
    assert_eq!(waits(&imported, WaitKind::PreToken), [6_000, 5_000, 8_000]);
    let ends: Vec<u64> = imported.runs.iter().map(|run| run.end_ms).collect();
    assert_eq!(ends, [31_000, 8_000], "active 39000 ms");
    let [first, last] = [&imported.runs[0], &imported.runs[1]];
    assert_eq!(
        last.started_at_ms + last.end_ms as i64 - first.started_at_ms,
        259_239_000
    );
    assert!(
        imported
            .runs
            .iter()
            .all(|run| run.end == RecordedEnd::Completed)
    );
    assert_eq!(idle_kills(&imported.runs, 60_000), 0);
}

#[test]
fn br68_a_call_open_at_the_end_is_censored() {
    let Some(imported) = scenario("BR-68", Format::Claude) else {
        return;
    };
    assert_eq!(waits(&imported, WaitKind::Tool), [1_000]);
    let run = &imported.runs[0];
    assert_eq!((run.end, run.end_ms), (RecordedEnd::OpenInTool, 9_000));
    assert!(times(run, Kind::RunEnd).is_empty());
    let options = ImportOptions {
        observed_until_ms: Some(run.started_at_ms + 600_000),
    };
    let watched = checked(import_with(
        "log.jsonl",
        Format::Claude,
        &log("BR-68").unwrap(),
        &options,
    ));
    assert_eq!(watched.runs[0].end_ms, 600_000);
    let open = times(&watched.runs[0], Kind::ToolStart)[1];
    assert_eq!(
        watched.runs[0].end_ms - open,
        591_000,
        "the open call lasted longer than this"
    );
    assert_eq!(
        watched.report.waits, imported.report.waits,
        "what is not observed is no wait"
    );
}

#[test]
fn br70_one_bad_stamp_spoils_one_record() {
    let Some(imported) = scenario("BR-70", Format::Claude) else {
        return;
    };
    let report = &imported.report;
    assert_eq!((report.lines.imported, report.lines.undated), (6, 3));
    assert_eq!(report.epoch_second_stamps, 1);
    let run = &imported.runs[0];
    let found: Vec<(u64, bool)> = run
        .events
        .iter()
        .filter_map(|event| Some((event.wait?.ms, event.flags.has(EventFlags::SPANS_UNDATED))))
        .collect();
    assert_eq!(
        found,
        [
            (4_000, true),
            (6_000, true),
            (2_000, false),
            (2_000, false),
            (2_000, false)
        ]
    );
    assert_eq!(
        times(run, Kind::MessageEnd),
        [4_000, 10_000, 12_000, 14_000, 16_000]
    );
}

#[test]
fn br71_the_format_is_not_on_the_first_line() {
    let Some(imported) = scenario("BR-71", Format::Claude) else {
        return;
    };
    let report = &imported.report;
    assert_eq!(report.counts.n_turns, 1);
    assert_eq!(waits(&imported, WaitKind::PreToken), [3_000]);
    assert_eq!((report.lines.ignored, report.lines.malformed), (5, 0));
    assert_eq!(report.lines.unrecognised, 0);
}

#[test]
fn br71_an_unknown_file_is_described() {
    let unknown = b"{\"type\":\"alpha\"}\n{\"type\":\"beta\"}\n";
    assert_eq!(
        sniff(unknown),
        Sniffed::Unknown("JSON lines of type alpha, beta".to_owned())
    );
    let imported = import("log.jsonl", Format::Pi, unknown);
    assert!(!imported.report.is_recognised());
    assert_eq!(imported.report.lines.unrecognised, 2);
}

#[test]
fn br74_a_child_has_runs_of_its_own() {
    let (Some(parent), Some(child)) = (
        scenario("BR-74-parent", Format::Claude),
        scenario("BR-74-child", Format::Claude),
    ) else {
        return;
    };
    let run = &child.runs[0];
    assert_eq!(waits(&child, WaitKind::PreToken), [15_800, 179_000, 43_000]);
    assert_eq!(waits(&child, WaitKind::Tool), [1_000, 420_000]);
    assert_eq!(run.measured.gap_ms, 179_000);
    assert_eq!(run.events[0].t_ms, 0);
    assert_eq!(waits(&parent, WaitKind::PreToken), [4_000, 6_000]);
    assert_eq!(waits(&parent, WaitKind::Subagent), [660_000]);
    assert_eq!(waits(&parent, WaitKind::Tool), Vec::<u64>::new());
    assert_eq!(
        parent.report.session, child.report.session,
        "the child repeats its parent's session"
    );

    let [delegation] = parent.report.delegations.as_slice() else {
        panic!("one delegation expected")
    };
    assert_eq!(
        (delegation.agent.as_str(), delegation.role.as_str()),
        ("ab12cd34", "explorer")
    );
    assert_eq!(delegation.run, parent.runs[0].name);
    assert_eq!(parent.report.absent_children().count(), 1);
    let [agent] = child.report.agents.as_slice() else {
        panic!("one agent expected")
    };
    assert_eq!(agent.agent, "ab12cd34");
    assert_eq!(agent.runs, [std::sync::Arc::clone(&run.name)]);
}

#[test]
fn br74_the_result_text_names_the_child_too() {
    let Some(bytes) = log("BR-74-parent") else {
        return;
    };
    let text = String::from_utf8(bytes)
        .unwrap()
        .replace("\"toolUseResult\"", "\"unknownField\"");
    let parent = import("log.jsonl", Format::Claude, text.as_bytes());
    assert_eq!(parent.report.delegations[0].agent, "ab12cd34");
    let text = text.replace("agentId: ab12cd34", "agentId: SomeBody2 says");
    let parent = import("log.jsonl", Format::Claude, text.as_bytes());
    assert_eq!(parent.report.delegations[0].agent, "", "words are no id");
}

#[test]
fn br74_parent_and_child_in_one_file_stay_apart() {
    let (Some(mut bytes), Some(child)) = (log("BR-74-parent"), log("BR-74-child")) else {
        return;
    };
    bytes.extend(child);
    let imported = checked(import("log.jsonl", Format::Claude, &bytes));
    assert_eq!(imported.report.counts.n_streams, 2);
    let names: Vec<&str> = imported.runs.iter().map(|run| run.name.as_ref()).collect();
    assert_eq!(names, ["log.jsonl#1", "log.jsonl#2.1"]);
    assert_eq!(imported.report.absent_children().count(), 0);
}
