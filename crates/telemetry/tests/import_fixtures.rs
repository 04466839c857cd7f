//! One small log of our own per format, with numbers worked out by hand, and a marker in every free-text field.
#![allow(clippy::unwrap_used)]

mod import_support;

use std::io::{self, BufRead, Read};

use import_support::{Imported, check_run, fixtures, import, waits_on_events};
use policysim_policy::Kind;
use policysim_sim::run::{EventFlags, RecordedEnd, Run, RunStatus, Symbols};
use policysim_telemetry::import::{
    Format, ImportError, ImportOptions, Sniffed, SourceInput, Tally, import_source, sniff,
};
use serde_json::Value;

const MARKER: &str = "PRIVATE";

fn fixture(format: Format) -> Vec<u8> {
    let ending = if format.is_document() {
        "json"
    } else {
        "jsonl"
    };
    std::fs::read(fixtures().join(format!("{}.{ending}", format.name()))).unwrap()
}

/// Imports a fixture and compares the accounting: the fields given, all others zero.
fn check(format: Format, expected: &[(&str, u64)], rows: &[[u64; 6]], lines: Tally) -> Imported {
    let bytes = fixture(format);
    assert_eq!(sniff(&bytes), Sniffed::Format(format));
    let imported = import("log", format, &bytes);
    let report = &imported.report;
    let derived = [
        "sum_run_ms",
        "max_run_ms",
        "max_silence_ms",
        "max_model_gap_ms",
        "n_runs_aborted",
        "n_runs",
    ];
    for (name, value) in report.fields() {
        if derived.contains(&name.as_str()) {
            continue;
        }
        let wanted = expected
            .iter()
            .find(|(field, _)| *field == name)
            .map_or(0, |(_, value)| *value);
        assert_eq!(value, wanted, "{name}");
    }
    for (name, _) in expected {
        assert!(
            report.fields().iter().any(|(field, _)| field == name),
            "no field {name}"
        );
    }
    let found: Vec<[u64; 6]> = report
        .runs
        .iter()
        .map(policysim_telemetry::import::RunRow::values)
        .collect();
    assert_eq!(found, rows);
    assert_eq!(report.lines, lines);
    assert_eq!(report.lines.total(), report.counts.n_lines);
    assert_eq!(waits_on_events(&imported.runs), report.waits);
    for run in &imported.runs {
        check_run(run, &imported.symbols);
        assert_eq!(run.harness.as_ref(), format.name());
        assert_eq!(run.resolution, format.resolution());
    }
    imported
}

/// Kinds (with names of tools and others) and times of a run's events.
fn story(run: &Run, symbols: &Symbols) -> Vec<String> {
    run.events
        .iter()
        .map(|event| {
            format!("{} {} {}", event.t_ms, event.kind, symbols.name(event.name))
                .trim_end()
                .to_owned()
        })
        .collect()
}

#[test]
#[allow(clippy::too_many_lines)] // one log, told in full
fn claude() {
    let imported = check(
        Format::Claude,
        &[
            ("n_lines", 25),
            ("n_bad_lines", 1),
            ("n_turns", 6),
            ("n_prompts", 3),
            ("n_errors", 1),
            ("n_aborted", 1),
            ("n_compactions", 1),
            ("n_no_handoff", 1),
            ("n_progress", 1),
            ("n_streams", 2),
            ("announced_retry_ms", 500),
            ("n_pre_token", 4),
            ("sum_pre_token_ms", 15_000),
            ("max_pre_token_ms", 5_000),
            ("n_pre_token_err", 1),
            ("sum_pre_token_err_ms", 6_000),
            ("max_pre_token_err_ms", 6_000),
            ("n_retry", 1),
            ("sum_retry_ms", 4_000),
            ("max_retry_ms", 4_000),
            ("n_error_wait", 1),
            ("sum_error_wait_ms", 2_000),
            ("max_error_wait_ms", 2_000),
            ("n_stream_gap", 1),
            ("sum_stream_gap_ms", 1_500),
            ("max_stream_gap_ms", 1_500),
            ("n_tool", 1),
            ("sum_tool_ms", 4_500),
            ("max_tool_ms", 4_500),
            ("n_human", 2),
            ("sum_human_ms", 62_000),
            ("max_human_ms", 60_000),
            ("n_subagent", 1),
            ("sum_subagent_ms", 5_000),
            ("max_subagent_ms", 5_000),
            ("n_compact", 1),
            ("sum_compact_ms", 10_000),
            ("max_compact_ms", 10_000),
            ("n_censored", 1),
            ("sum_censored_ms", 100),
            ("max_censored_ms", 100),
        ],
        &[
            [100_200, 4, 4, 60_000, 10_000, 1],
            [4_000, 1, 0, 0, 0, 0],
            [4_000, 1, 0, 4_000, 4_000, 0],
        ],
        Tally {
            imported: 18,
            ignored: 4,
            unrecognised: 1,
            malformed: 1,
            undated: 1,
            duplicate: 0,
        },
    );
    let by_name = |name: &str| {
        imported
            .runs
            .iter()
            .find(|run| run.name.as_ref() == name)
            .unwrap()
    };
    let first = by_name("log#1");
    assert_eq!(
        story(first, &imported.symbols),
        [
            "0 run_start",
            "500 progress",
            "2000 retry_start",
            "6000 retry_end",
            "6000 turn_start",
            "6000 message_end",
            "7500 message_end",
            "7500 tool_start Bash",
            "12000 tool_end Bash",
            "12000 turn_end",
            "15000 turn_start",
            "15000 message_end",
            "15000 tool_start AskUserQuestion",
            "75000 tool_end AskUserQuestion",
            "75000 turn_end",
            "80000 turn_start",
            "80000 message_end",
            "80000 tool_start Task",
            "85000 tool_end Task",
            "85000 turn_end",
            "95000 compaction_end",
            "95100 other hand_off",
            "98100 turn_start",
            "98100 message_end",
            "98100 tool_start Edit",
            "100100 tool_end Edit",
            "100200 run_end",
        ]
    );
    assert_eq!(first.end, RecordedEnd::Aborted);
    assert_eq!(first.model.as_ref(), "model-a");
    let announced: Vec<u64> = first
        .events
        .iter()
        .filter_map(|event| event.announced_ms)
        .collect();
    assert_eq!(
        announced,
        [500, 4_000, 4_900],
        "the backoff, and two stated executions"
    );
    let refused = first
        .events
        .iter()
        .rfind(|event| event.kind == Kind::ToolEnd)
        .unwrap();
    assert!(refused.flags.has(EventFlags::NOT_EXECUTED));
    assert!(
        !first.events[8].flags.has(EventFlags::AMBIGUOUS_APPROVAL),
        "half a second is no answer"
    );
    assert_eq!(by_name("log#2").end, RecordedEnd::Completed);
    assert_eq!(imported.report.absent_children().count(), 0);
    assert_eq!(imported.report.delegations[0].run, first.name);
    assert_eq!(imported.report.delegations[0].role, "reviewer");
    assert_eq!(
        imported.report.agents[0].runs,
        [std::sync::Arc::clone(&by_name("log#2.1").name)]
    );
    assert_eq!(imported.report.unknown_types.get("hologram"), Some(&1));
    assert_eq!(imported.report.client_version.as_deref(), Some("2.1.99"));
}

#[test]
fn codex() {
    let imported = check(
        Format::Codex,
        &[
            ("n_lines", 19),
            ("n_turns", 2),
            ("n_prompts", 3),
            ("n_steer", 1),
            ("n_unanswered", 1),
            ("n_errors", 1),
            ("n_aborted", 1),
            ("n_compactions", 1),
            ("n_streams", 1),
            ("n_pre_token", 2),
            ("sum_pre_token_ms", 6_000),
            ("max_pre_token_ms", 3_000),
            ("n_stream_gap", 3),
            ("sum_stream_gap_ms", 3_100),
            ("max_stream_gap_ms", 2_500),
            ("n_tool", 1),
            ("sum_tool_ms", 1_400),
            ("max_tool_ms", 1_400),
            ("n_tool_escalated", 1),
            ("sum_tool_escalated_ms", 5_000),
            ("max_tool_escalated_ms", 5_000),
            ("n_censored", 1),
            ("sum_censored_ms", 3_000),
            ("max_censored_ms", 3_000),
            ("n_reported_ttft", 1),
            ("sum_reported_ttft_ms", 2_900),
            ("max_reported_ttft_ms", 2_900),
        ],
        &[[14_000, 2, 2, 3_500, 3_000, 0]],
        Tally {
            imported: 14,
            ignored: 5,
            ..Tally::default()
        },
    );
    let [run, unanswered] = imported.runs.as_slice() else {
        panic!("two rows expected")
    };
    assert_eq!(
        story(run, &imported.symbols),
        [
            "0 run_start",
            "0 status",
            "3000 turn_start",
            "3000 message_end",
            "3500 message_end",
            "3500 tool_start shell",
            "3600 message_end",
            "3600 tool_start exec_command",
            "5000 tool_end exec_command",
            "5100 status",
            "8500 tool_end shell",
            "8500 turn_end",
            "9000 other steer",
            "11500 turn_start",
            "11500 message_end",
            "12000 retry_start",
            "14000 retry_end",
            "14000 message_end",
            "14000 turn_end",
            "14500 other compaction",
            "15000 status",
            "15000 run_end",
        ]
    );
    assert_eq!(run.end, RecordedEnd::Completed);
    assert_eq!(run.role.as_ref(), "explorer");
    assert_eq!(run.events[8].announced_ms, Some(1_250), "stated execution");
    assert!(
        !run.events[8].flags.has(EventFlags::AMBIGUOUS_APPROVAL),
        "only escalated calls ask"
    );
    assert_eq!(
        (unanswered.status, unanswered.end),
        (RunStatus::Unanswered, RecordedEnd::Aborted)
    );
    assert!(!imported.report.parent_session.is_empty());
}

#[test]
fn copilot() {
    let imported = check(
        Format::Copilot,
        &[
            ("n_lines", 15),
            ("n_turns", 2),
            ("n_prompts", 2),
            ("n_steer", 1),
            ("n_errors", 1),
            ("n_aborted", 1),
            ("n_streams", 1),
            ("n_pre_token", 2),
            ("sum_pre_token_ms", 4_000),
            ("max_pre_token_ms", 2_000),
            ("n_approval", 1),
            ("sum_approval_ms", 5_000),
            ("max_approval_ms", 5_000),
            ("n_tool", 1),
            ("sum_tool_ms", 6_000),
            ("max_tool_ms", 6_000),
            ("n_human", 1),
            ("sum_human_ms", 10_000),
            ("max_human_ms", 10_000),
            ("n_error_wait", 1),
            ("sum_error_wait_ms", 4_000),
            ("max_error_wait_ms", 4_000),
            ("n_censored", 1),
            ("sum_censored_ms", 9_000),
            ("max_censored_ms", 9_000),
        ],
        &[[29_300, 2, 2, 9_000, 9_000, 1]],
        Tally {
            imported: 12,
            ignored: 3,
            ..Tally::default()
        },
    );
    assert_eq!(
        story(&imported.runs[0], &imported.symbols),
        [
            "0 run_start",
            "100 status",
            "2000 turn_start",
            "2000 message_end",
            "2100 tool_start bash",
            "2200 approval_start",
            "7200 approval_end",
            "8100 tool_end bash",
            "8100 turn_end",
            "10100 turn_start",
            "10100 message_end",
            "10200 status",
            "10300 tool_start ask_user",
            "11300 other steer",
            "20300 tool_end ask_user",
            "24300 retry_start",
            "29300 run_end",
        ]
    );
}

#[test]
fn gemini() {
    let imported = check(
        Format::Gemini,
        &[
            ("n_lines", 14),
            ("n_turns", 2),
            ("n_prompts", 1),
            ("n_errors", 1),
            ("n_streams", 1),
            ("n_pre_token", 2),
            ("sum_pre_token_ms", 8_000),
            ("max_pre_token_ms", 5_000),
            ("n_tool", 2),
            ("sum_tool_ms", 2_500),
            ("max_tool_ms", 2_000),
        ],
        &[[20_000, 2, 2, 8_000, 5_000, 0]],
        Tally {
            imported: 14,
            ..Tally::default()
        },
    );
    assert_eq!(imported.report.records.undated, 1);
    let run = &imported.runs[0];
    assert_eq!(
        story(run, &imported.symbols),
        [
            "0 run_start",
            "3000 turn_start",
            "3000 message_start",
            "4000 thinking_update",
            "5000 tool_start read_file",
            "7000 tool_end read_file",
            "7000 tool_start run_shell_command",
            "7000 tool_end run_shell_command",
            "7000 turn_end",
            "9500 status",
            "12000 turn_start",
            "12000 message_start",
            "12000 turn_end",
            "20000 retry_start",
            "20000 run_end",
        ]
    );
    assert_eq!(run.end, RecordedEnd::Failed);
    assert_eq!(run.model.as_ref(), "model-i");
}

#[test]
fn opencode() {
    let imported = check(
        Format::Opencode,
        &[
            ("n_lines", 8),
            ("n_turns", 2),
            ("n_prompts", 1),
            ("n_aborted", 1),
            ("n_streams", 1),
            ("n_pre_token", 2),
            ("sum_pre_token_ms", 5_000),
            ("max_pre_token_ms", 3_000),
            ("n_tool", 1),
            ("sum_tool_ms", 2_000),
            ("max_tool_ms", 2_000),
            ("n_subagent", 1),
            ("sum_subagent_ms", 4_500),
            ("max_subagent_ms", 4_500),
        ],
        &[[14_000, 2, 2, 3_000, 3_000, 1]],
        Tally {
            imported: 8,
            ..Tally::default()
        },
    );
    let run = &imported.runs[0];
    assert_eq!(
        story(run, &imported.symbols),
        [
            "0 run_start",
            "2000 turn_start",
            "2000 message_start",
            "3000 thinking_update",
            "4000 tool_start bash",
            "6000 tool_end bash",
            "6000 tool_start task",
            "9000 tool_end task",
            "9000 turn_end",
            "10000 status",
            "12000 turn_start",
            "12000 message_start",
            "13000 message_update",
            "14000 run_end",
        ]
    );
    assert_eq!(run.role.as_ref(), "general");
    assert_eq!(imported.report.delegations[0].role, "explore");
    assert_eq!(
        imported.report.absent_children().count(),
        1,
        "the child's export is another source"
    );
}

#[test]
fn pi() {
    let imported = check(
        Format::Pi,
        &[
            ("n_lines", 12),
            ("n_bad_lines", 1),
            ("n_joined_lines", 1),
            ("n_turns", 3),
            ("n_prompts", 2),
            ("n_errors", 1),
            ("n_aborted", 1),
            ("n_compactions", 1),
            ("n_streams", 1),
            ("n_pre_token", 2),
            ("sum_pre_token_ms", 7_000),
            ("max_pre_token_ms", 4_000),
            ("n_pre_token_err", 1),
            ("sum_pre_token_err_ms", 6_000),
            ("max_pre_token_err_ms", 6_000),
            ("n_tool", 1),
            ("sum_tool_ms", 3_000),
            ("max_tool_ms", 3_000),
            ("n_error_wait", 1),
            ("sum_error_wait_ms", 4_000),
            ("max_error_wait_ms", 4_000),
            ("n_retry", 1),
            ("sum_retry_ms", 2_000),
            ("max_retry_ms", 2_000),
        ],
        &[
            [13_000, 2, 1, 4_000, 6_000, 0],
            [3_000, 1, 0, 3_000, 3_000, 1],
        ],
        Tally {
            imported: 8,
            ignored: 3,
            malformed: 1,
            ..Tally::default()
        },
    );
    assert_eq!(
        story(&imported.runs[0], &imported.symbols),
        [
            "0 run_start",
            "2000 other message_began",
            "4000 turn_start",
            "4000 message_end",
            "4000 tool_start bash",
            "7000 tool_end bash",
            "7000 turn_end",
            "11000 retry_start",
            "13000 retry_end",
            "13000 turn_start",
            "13000 message_end",
            "13000 turn_end",
            "13000 run_end",
        ]
    );
    assert_eq!(imported.runs[1].end, RecordedEnd::Aborted);
}

/// Keys whose strings are structure: types, ids, stamps, names of tools, models, roles, versions, outcome classes.
const STRUCTURE: [&str; 56] = [
    "agent",
    "agentId",
    "agent_role",
    "api",
    "approval_policy",
    "callID",
    "call_id",
    "cli_version",
    "copilotVersion",
    "errorType",
    "firstKeptEntryId",
    "id",
    "kind",
    "lastUpdated",
    "leafUuid",
    "messageID",
    "messageId",
    "model",
    "modelID",
    "modelId",
    "name",
    "originator",
    "parentID",
    "parentId",
    "parent_thread_id",
    "permissionMode",
    "producer",
    "projectID",
    "provider",
    "providerID",
    "reason",
    "requestId",
    "role",
    "selectedModel",
    "sessionID",
    "sessionId",
    "source",
    "startTime",
    "status",
    "stopReason",
    "subagent_type",
    "subtype",
    "thinkingLevel",
    "timestamp",
    "tool",
    "toolCallId",
    "toolName",
    "toolUseID",
    "tool_use_id",
    "trigger",
    "turnId",
    "turn_id",
    "type",
    "userType",
    "uuid",
    "version",
];

/// Every string that is no structure, with the key it stands under.
fn free_texts<'a>(key: &str, value: &'a Value, found: &mut Vec<(String, &'a str)>) {
    match value {
        Value::String(text) if !STRUCTURE.contains(&key) => {
            found.push((key.to_owned(), text));
        }
        Value::Array(items) => items.iter().for_each(|item| free_texts(key, item, found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| free_texts(key, value, found)),
        _ => {}
    }
}

#[test]
fn no_free_text_is_kept() {
    for format in Format::ALL {
        let bytes = fixture(format);
        let text = std::str::from_utf8(&bytes).unwrap();
        let records: Vec<Value> = if format.is_document() {
            vec![serde_json::from_str(text).unwrap()]
        } else {
            text.lines()
                .flat_map(|line| serde_json::Deserializer::from_str(line).into_iter::<Value>())
                .filter_map(Result::ok)
                .collect()
        };
        let mut texts = Vec::new();
        for record in &records {
            free_texts("", record, &mut texts);
        }
        assert!(texts.len() >= 10, "{}: too little planted", format.name());
        for (key, text) in &texts {
            assert!(
                text.contains(MARKER),
                "{}: {key} is free text without a marker: {text}",
                format.name()
            );
        }

        let imported = import("log", format, &bytes);
        let names: Vec<&str> = (0..)
            .map(|n| imported.symbols.name(policysim_sim::run::Symbol(n)))
            .take(1_000)
            .collect();
        let accounting = serde_json::to_string(&imported.report.accounting()).unwrap();
        let kept = format!(
            "{:?}{:?}{names:?}{accounting}",
            imported.runs, imported.report
        );
        assert!(!kept.contains(MARKER), "{}: {kept}", format.name());

        // Read as another format, the same bytes keep nothing either.
        for other in Format::ALL {
            let imported = import("log", other, &bytes);
            assert!(!format!("{:?}{:?}", imported.runs, imported.report).contains(MARKER));
        }
        let Sniffed::Format(_) = sniff(&bytes) else {
            panic!("{} is not recognised", format.name())
        };
        assert!(
            !format!(
                "{:?}",
                sniff(format!("{{\"type\":\"{MARKER} x\"}}").as_bytes())
            )
            .contains(MARKER)
        );
    }
}

/// A reader that fails after some bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Failing<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.0.is_empty() {
            Err(io::Error::other("bad sector"))
        } else {
            Ok(self.0)
        }
    }

    fn consume(&mut self, n: usize) {
        self.0 = &self.0[n..];
    }
}

#[test]
fn a_reader_or_a_sink_that_fails_is_named() {
    for format in Format::ALL {
        let bytes = fixture(format);
        let options = ImportOptions::default();
        let mut reader = Failing(&bytes);
        let input = SourceInput {
            name: "some/log",
            reader: &mut reader,
        };
        let error = import_source(
            input,
            format,
            &options,
            &mut Symbols::default(),
            &mut |_, _: &Symbols| Ok(()),
        )
        .unwrap_err();
        assert!(
            matches!(&error, ImportError::Read { source, .. } if source.to_string() == "bad sector")
        );
        assert!(
            error
                .to_string()
                .starts_with("cannot read some/log after byte "),
            "{error}"
        );

        let mut reader = bytes.as_slice();
        let input = SourceInput {
            name: "some/log",
            reader: &mut reader,
        };
        let mut refuse = |_, _: &Symbols| Err("disk full".into());
        let error = import_source(
            input,
            format,
            &options,
            &mut Symbols::default(),
            &mut refuse,
        )
        .unwrap_err();
        assert!(
            matches!(&error, ImportError::Sink { source, .. } if source.to_string() == "disk full")
        );
        assert_eq!(error.to_string(), "cannot store a run of some/log");
    }
}

#[test]
fn empty_sources_and_cut_documents_keep_their_line_counts() {
    for format in Format::ALL {
        let report = import("log", format, b"").report;
        assert_eq!(report.counts.n_lines, 0);
        assert_eq!(report.counts.n_streams, u64::from(format != Format::Claude));
        assert_eq!(report.counts.n_bad_lines, u64::from(format.is_document()));
        assert!(!report.is_recognised());
        if format.is_document() {
            let bytes = fixture(format);
            let report = import("log", format, &bytes[..bytes.len() / 2]).report;
            assert_eq!(report.counts.n_bad_lines, 1);
            assert_eq!(report.lines.malformed, report.counts.n_lines);
            assert!(report.counts.n_lines > 1);
        }
    }
}
