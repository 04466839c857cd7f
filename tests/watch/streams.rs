//! JSON event streams: a stand-in agent speaks Pi's, so that pauses, questions, retries and results are told apart from
//! silence (BR-80).

use super::{Watched, ms, watch};
use crate::{Place, json, repository};

/// Idle half a second; everything that Pi's events can open pauses it.
const POLICY: &str = "\
idle = \"600ms\"
[pause]
tool = \"idle\"
human = \"idle\"
backoff = \"idle\"
compaction = \"idle\"
[kill]
grace = \"1s\"
result_grace = \"500ms\"
";

const HEAD: &str = r#"{"type":"session","version":3,"id":"u1","timestamp":"t","cwd":"/"}
{"type":"agent_start"}
{"type":"turn_start"}"#;
const TOOL: &str =
    r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{}}"#;
const TOOL_END: &str = r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{},"isError":false}"#;
const QUESTION: &str =
    r#"{"type":"extension_ui_request","id":"q1","method":"confirm","title":"go?"}"#;
const RETRY: &str =
    r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":1500,"errorMessage":"x"}"#;
const ANSWER: &str = r#"{"type":"message_start","message":{"role":"assistant"}}
{"type":"message_update","message":{},"assistantMessageEvent":{"type":"text_delta","delta":"x"}}
{"type":"message_end","message":{"role":"assistant","stopReason":"stop"}}"#;
const END: &str = r#"{"type":"turn_end","message":{},"toolResults":[]}
{"type":"agent_end","messages":[{"role":"assistant","stopReason":"stop"}]}"#;

/// A stand-in agent that prints these and sleeps in between.
fn agent(options: &str, steps: &[&str]) -> Watched {
    let place = Place::new();
    place.write("p.toml", POLICY);
    let mut script = String::new();
    for step in steps {
        match step.strip_prefix("sleep ") {
            Some(seconds) => script.push_str(&format!("sleep {seconds}\n")),
            None => script.push_str(&format!("cat <<'LINES'\n{step}\nLINES\n")),
        }
    }
    let options = format!("--policy p.toml {options}");
    watch(&place, &options, &["sh", "-c", &script])
}

/// The observations that are no bytes.
fn said(watched: &Watched) -> Vec<&str> {
    let kinds = watched.events().into_iter().map(|(kind, _)| kind);
    kinds.filter(|kind| *kind != "stdout").collect()
}

#[test]
fn a_tool_pauses_the_clock() {
    let watched = agent("", &[HEAD, TOOL, "sleep 1.8", TOOL_END, ANSWER, END]);
    assert_eq!(watched.ended(), (Some(0), "exited"));
    assert_eq!(watched.note("stream")["format"], "pi");
    assert_eq!(
        said(&watched)[5..],
        [
            "tool_start",
            "tool_end",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "result",
            "process_exit",
            "run_end"
        ]
    );
    let paused = watched.record.iter().find(|line| line["fact"] == "paused");
    assert_eq!(paused.unwrap()["for"], "tool");
    // The same lines as bytes alone are silence.
    let bytes = agent(
        "--stream none",
        &[HEAD, TOOL, "sleep 1.8", TOOL_END, ANSWER, END],
    );
    assert_eq!(bytes.ended(), (Some(124), "idle_timeout"));
}

#[test]
fn a_question_parks_the_run() {
    let ask = [HEAD, TOOL, QUESTION, "sleep 1.8", TOOL_END, ANSWER, END];
    let watched = agent("--set pause.tool=none", &ask);
    assert_eq!(watched.ended(), (Some(0), "exited"));
    let paused = watched.record.iter().find(|line| line["fact"] == "paused");
    assert_eq!(paused.unwrap()["for"], "human");
    let unparked = agent("--set pause.tool=none --set pause.human=none", &ask);
    assert_eq!(unparked.ended(), (Some(124), "idle_timeout"));
}

#[test]
fn an_announced_retry_pauses_the_clock_where_the_policy_says_so() {
    let retry = [HEAD, RETRY, "sleep 1.5", ANSWER, END];
    assert_eq!(agent("", &retry).ended(), (Some(0), "exited"));
    let silent = agent("--set pause.backoff=none", &retry);
    assert_eq!(silent.ended(), (Some(124), "idle_timeout"));
    let kill = silent.note("kill");
    assert_eq!(ms(kill, "deadline_ms"), silent.first("retry_start") + 600);
}

/// The kill names the phase, and the tool that was last heard of.
#[test]
fn a_hang_after_a_tool_is_killed_and_explained() {
    let watched = agent("", &[HEAD, TOOL, TOOL_END, "sleep 60"]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert_eq!(
        ms(watched.note("kill"), "deadline_ms"),
        watched.first("tool_end") + 600
    );
    let told = &watched.done.stderr;
    assert!(told.contains("last tool: bash, ended"), "{told}");
    let limited = agent("--set pause.tool_limit=700ms", &[HEAD, TOOL, "sleep 60"]);
    assert_eq!(limited.ended(), (Some(124), "tool_timeout"));
    assert_eq!(
        ms(limited.note("kill"), "deadline_ms"),
        limited.first("tool_start") + 700
    );
    let told = &limited.done.stderr;
    assert!(
        told.contains("phase in_tool") && told.contains("last tool: bash, still running"),
        "{told}"
    );
}

/// BR-80: the task succeeded, the process stays: success with a forced clean-up, not a stall.
#[test]
fn a_result_without_an_end_is_a_success_with_a_forced_clean_up() {
    let watched = agent("", &[HEAD, ANSWER, END, "sleep 60"]);
    assert_eq!(watched.ended(), (Some(0), "cleanup_forced"));
    let kill = watched.note("kill");
    assert_eq!(ms(kill, "deadline_ms"), watched.first("result") + 500);
    assert_eq!(watched.note("stopped")["child"]["signal"], 15);
    // and so says a replay of its record
    let place = Place::new();
    place.write("p.toml", POLICY);
    let lines: Vec<String> = watched.record.iter().map(ToString::to_string).collect();
    place.write("r.jsonl", lines.join("\n"));
    let line = "replay r.jsonl --run #1 --policy p.toml --format json";
    let replayed = json(&place.run(line).ok());
    assert_eq!(replayed["verdict"], "cleanup_forced");
    assert_eq!(replayed["judgement"], "ended");
    // Without the grace it is filed as a stall.
    let stalled = agent(
        "--set kill.result_grace=off",
        &[HEAD, ANSWER, END, "sleep 60"],
    );
    assert_eq!(stalled.ended(), (Some(124), "idle_timeout"));
}

/// A retry is no end: the grace of a result does not run while the agent tries again.
#[test]
fn work_after_a_result_goes_on() {
    let goes_on = [
        HEAD,
        ANSWER,
        END,
        r#"{"type":"agent_start"}"#,
        TOOL,
        "sleep 1.2",
        TOOL_END,
        END,
    ];
    let watched = agent("", &goes_on);
    assert_eq!(watched.ended(), (Some(0), "exited"));
    assert!(said(&watched).contains(&"resume"));
}

/// A turn cap counts the turns of the stream.
#[test]
fn turns_are_counted() {
    let turn = r#"{"type":"turn_start"}"#;
    let watched = agent(
        "--set turns.cap=2",
        &[HEAD, turn, "sleep 0.1", turn, "sleep 60"],
    );
    assert_eq!(watched.ended(), (Some(124), "turn_limit"));
}

#[test]
fn the_other_streams_are_recognised() {
    let claude = r#"{"type":"system","subtype":"init","session_id":"u1"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"session_id":"u1"}"#;
    let claude_end = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},"session_id":"u1"}
{"type":"result","subtype":"success","is_error":false,"session_id":"u1"}"#;
    let codex = r#"{"type":"thread.started","thread_id":"u1"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"x","status":"in_progress"}}"#;
    let codex_end = r#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","exit_code":0}}
{"type":"turn.completed","usage":{}}"#;
    for (format, begin, end) in [
        ("claude-code", claude, claude_end),
        ("codex", codex, codex_end),
    ] {
        let watched = agent("", &[begin, "sleep 1.2", end]);
        assert_eq!(watched.ended(), (Some(0), "exited"), "{format}");
        assert_eq!(watched.note("stream")["format"], format);
        for kind in ["tool_start", "tool_end", "result"] {
            assert!(said(&watched).contains(&kind), "{format}: {kind}");
        }
    }
}

/// A permission that a human is asked for pauses the clock from the request to the work that follows it.
#[test]
fn an_approval_parks_the_run() {
    let ask = r#"{"type":"system","subtype":"init","session_id":"u1"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"session_id":"u1"}
{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#;
    let end = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},"session_id":"u1"}
{"type":"result","subtype":"success","is_error":false,"session_id":"u1"}"#;
    let steps = [ask, "sleep 1.8", end];
    let parked = agent("--set pause.tool=none", &steps);
    assert_eq!(parked.ended(), (Some(0), "exited"));
    assert!(said(&parked).contains(&"approval_start") && said(&parked).contains(&"approval_end"));
    let unparked = agent("--set pause.tool=none --set pause.human=none", &steps);
    assert_eq!(unparked.ended(), (Some(124), "idle_timeout"));
}

/// The stand-in of the README: what it says that it waits for is waited for, what it does not say is a hang.
#[test]
fn the_stand_in_of_the_examples_does_what_the_readme_says() {
    let examples = repository().join("data/examples");
    let agent = examples.join("stand-in-agent.sh");
    let policy = examples.join("policy-watch.toml");
    let run = |steps: &[&str]| {
        let place = Place::new();
        let command = [&["sh", agent.to_str().unwrap()], steps].concat();
        watch(&place, &format!("--policy {}", policy.display()), &command)
    };
    let hangs = run(&["tool:1.5", "question:1.5", "retry:1.5", "answer", "hang"]);
    assert_eq!(hangs.ended(), (Some(124), "idle_timeout"));
    assert_eq!(
        ms(hangs.note("kill"), "deadline_ms"),
        hangs.first("message_end") + 1_000
    );
    let paused: Vec<&str> = hangs
        .record
        .iter()
        .filter(|line| line["fact"] == "paused")
        .map(|line| line["for"].as_str().unwrap())
        .collect();
    assert_eq!(paused, ["tool", "human", "backoff"]);
    assert_eq!(
        run(&["tool:1.5", "answer", "done"]).ended(),
        (Some(0), "exited")
    );
    assert_eq!(run(&["think:3"]).ended(), (Some(124), "idle_timeout"));
    assert_eq!(
        run(&["answer", "done", "hang"]).ended(),
        (Some(0), "cleanup_forced")
    );
}

/// What was set on top of a policy is part of its name in the record.
#[test]
fn a_record_tells_what_was_set_on_top_of_the_policy() {
    let place = Place::new();
    let policy = place.write("p.toml", POLICY);
    let options = format!(
        "--policy {} --set idle.window=2s --set kill.grace=0s --shadow pi-desktop-0129",
        policy.display()
    );
    let watched = watch(&place, &options, &["echo", "done"]);
    let names: Vec<&str> = watched.record[0]["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "p.toml with idle.window=2s, kill.grace=0s",
            "pi-desktop-0129"
        ]
    );
}
