//! The session log as a sign of life, and the failure classes of the silence budget.

use std::fs;
use std::path::PathBuf;

use super::{Mark, Watched, begin, begin_as, ms, script, watch};
use crate::{Place, shared};

/// The silence budget of no-mistakes, a second long; looked at ten times per budget.
const BUDGET: &str = "--policy no-mistakes-silence --set idle.window=1s --set kill.grace=1s";

/// Writes into the log that stands for a session's every 0.2 s, then gives its result.
fn grows(times: u32) -> String {
    format!("i=0; while [ $i -lt {times} ]; do echo x >> log.jsonl; i=$((i+1)); sleep 0.2; done; ")
}

fn place() -> Place {
    let place = Place::new();
    place.write("log.jsonl", "");
    place
}

/// When the last sign of life under the budget was seen.
fn last_activity(watched: &Watched) -> u64 {
    let activity = watched
        .events()
        .into_iter()
        .filter(|(kind, _)| matches!(*kind, "stdout" | "process_start" | "session_advance"));
    activity.map(|(_, at_ms)| at_ms).max().unwrap()
}

/// The first tick at which the silence is a budget long; ticks are a tenth of it, from the start.
fn tick(last_ms: u64) -> u64 {
    (last_ms + 1_000).div_ceil(100) * 100
}

fn deadline(watched: &Watched) -> u64 {
    ms(watched.note("kill"), "deadline_ms")
}

/// First failure class: silent on stdout, its log keeps growing for more than two budgets, then the result.
#[test]
fn a_growing_log_keeps_a_silent_command_alive() {
    let place = place();
    let child = format!("{}echo result", grows(15));
    let options = format!("{BUDGET} --session log.jsonl");
    let watched = watch(&place, &options, &["sh", "-c", &child]);
    assert_eq!(watched.ended(), (Some(0), "exited"));
    assert_eq!(watched.done.stdout, "result\n");
    assert!(watched.first("stdout") > 2_500);
    let bound: Vec<_> = watched.notes("session");
    assert_eq!(
        (&bound[0]["state"], &bound[1]["state"]),
        (&"unbound".into(), &"bound".into())
    );
    assert!(bound[1]["reason"].is_string());
}

/// The same one frozen is killed after one full budget, and the evidence is named.
#[test]
fn a_frozen_log_is_killed_after_one_full_budget() {
    let place = place();
    let child = format!("{}sleep 60", grows(7));
    let options = format!("{BUDGET} --session log.jsonl");
    let watched = watch(&place, &options, &["sh", "-c", &child]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let last = last_activity(&watched);
    assert!(last > 1_000, "{last}");
    assert_eq!(deadline(&watched), tick(last));
    assert!(
        watched.done.stderr.contains("session_advance 1"),
        "{}",
        watched.done.stderr
    );
}

/// Without a session the silence on stdout is all there is.
#[test]
fn without_a_session_a_silent_command_is_killed_at_the_budget() {
    let place = place();
    let child = format!("{}echo result", grows(15));
    let watched = watch(&place, BUDGET, &["sh", "-c", &child]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert_eq!(deadline(&watched), tick(watched.first("process_start")));
    assert_eq!(watched.note("session")["state"], "off");
}

/// Second failure class: what comes later does not inherit the silence of what came before.
#[test]
fn every_invocation_has_a_full_budget() {
    for _ in 0..2 {
        let place = place();
        let watched = watch(
            &place,
            BUDGET,
            &["sh", "-c", "sleep 0.6; echo a; sleep 0.6"],
        );
        assert_eq!(watched.ended(), (Some(0), "exited"));
    }
    let place = place();
    let line = format!(
        "'{0}' watch {BUDGET} --record a.jsonl -- sleep 0.7; '{0}' watch {BUDGET} --record b.jsonl -- sleep 60",
        crate::POLICYSIM
    );
    let mark = Mark::new();
    let mut both = place.command("sh");
    mark.put(&mut both);
    let done = crate::finish(both.args(["-c", &line]));
    assert_eq!(done.code, Some(124));
    mark.is_gone();
    let text = fs::read_to_string(place.path("b.jsonl")).unwrap();
    let kill = super::lines(&text)
        .into_iter()
        .find(|line| line["note"] == "kill")
        .unwrap();
    assert!((1_000..2_000).contains(&ms(&kill, "deadline_ms")), "{kill}");
}

/// A nested invocation shares the outer clock: its own, shorter budget is not applied.
#[test]
fn nested_invocations_share_one_clock() {
    let place = place();
    let inner = [
        crate::POLICYSIM,
        "watch",
        "--quiet",
        "--policy",
        "no-mistakes-silence",
        "--set",
        "idle.window=200ms",
        "--record",
        "inner.jsonl",
        "--",
        "sh",
        "-c",
        "sleep 60",
    ];
    // Long enough for the inner one to start on a busy machine.
    let budget = BUDGET.replace("idle.window=1s", "idle.window=5s");
    let watched = watch(&place, &budget, &inner);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let due_ms = last_activity(&watched) + 5_000;
    assert_eq!(deadline(&watched), due_ms.div_ceil(500) * 500);
    let text = fs::read_to_string(place.path("inner.jsonl")).unwrap();
    let inner_record = super::lines(&text);
    assert_eq!(inner_record[0]["policies"][0]["power"], "shares");
    assert!(inner_record.iter().all(|line| line["note"] != "kill"));

    let mut own = inner.to_vec();
    own.splice(2..2, ["--own-clock", "--record-force"]);
    let budget = BUDGET.replace("idle.window=1s", "idle.window=30s");
    let watched = watch(&place, &budget, &own);
    assert_eq!(watched.ended(), (Some(124), "exited"));
}

/// The clock that a nested invocation shares is fed what that one sees: here its log alone shows signs of life.
#[test]
fn a_nested_invocation_keeps_the_shared_clock_alive() {
    let grows = grows(35);
    let inner = |session: &'static str| {
        let options =
            "watch --quiet --record-force --policy no-mistakes-silence --set idle.window=1s";
        let mut words = vec![crate::POLICYSIM];
        words.extend(options.split(' '));
        words.extend([
            "--session",
            session,
            "--record",
            "inner.jsonl",
            "--",
            "sh",
            "-c",
        ]);
        words
    };
    let budget = BUDGET.replace("idle.window=1s", "idle.window=3s");
    let place = place();
    let alive = watch(
        &place,
        &budget,
        &[&inner("log.jsonl")[..], &[&grows]].concat(),
    );
    assert_eq!(alive.ended(), (Some(0), "exited"));
    let named = |kind: &str| {
        let of_kind = alive.record.iter().filter(|line| line["event"] == kind);
        of_kind.filter(|line| line["name"] == "nested").count()
    };
    assert_eq!(named("process_start"), 1);
    assert!(named("session_advance") >= 3, "{:?}", alive.events());
    assert!(alive.events().iter().all(|(kind, _)| *kind != "stdout"));
    // The outer record alone says it all.
    let line = "replay record.jsonl --run #1 --policy no-mistakes-silence --set idle.window=3s --format json";
    assert_eq!(crate::json(&place.run(line).ok())["verdict"], "ended");
    let silent = watch(&place, &budget, &[&inner("none")[..], &[&grows]].concat());
    assert_eq!(silent.ended(), (Some(124), "idle_timeout"));
}

/// A caller's hard deadline replaces the silence budget: no kill before it, no reprieve after it.
#[test]
fn a_callers_deadline_is_honoured() {
    let place = place();
    let options = format!("{BUDGET} --deadline 1500ms");
    let silent = watch(&place, &options, &["sh", "-c", "sleep 60"]);
    assert_eq!(silent.ended(), (Some(124), "caller_deadline"));
    assert_eq!(deadline(&silent), 1_500);
    let busy = "while :; do echo y; sleep 0.1; done";
    let busy = watch(&place, &options, &["sh", "-c", busy]);
    assert_eq!(busy.ended(), (Some(124), "caller_deadline"));
    assert_eq!(deadline(&busy), 1_500);
    // Replayed, the deadline is that of the record.
    let replayed = place.run(
        "replay record.jsonl --run #1 --policy no-mistakes-silence --set idle.window=1s --format json",
    );
    let replayed = crate::json(&replayed.ok());
    assert_eq!(
        (&replayed["verdict"], ms(&replayed, "at_ms")),
        (&"caller_deadline".into(), 1_500)
    );
}

/// A stand-in for an agent, by whose name its log is looked for, which does what `$CHILD` says.
fn stand_in(name: &str) -> Place {
    let place = Place::new();
    let program = place.write(name, "#!/bin/sh\nexec sh -c \"$CHILD\"\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(program, executable).unwrap();
    place
}

/// A stand-in for Pi that keeps its session where Pi does.
fn pi_place() -> (Place, PathBuf) {
    let place = stand_in("pi");
    let folder = fs::canonicalize(place.path("")).unwrap();
    let name = folder.to_str().unwrap()[1..].replace('/', "-");
    let sessions = place.path(&format!("home/.pi/agent/sessions/--{name}--"));
    fs::create_dir_all(&sessions).unwrap();
    fs::write(sessions.join("2026-01-01T00-00-00Z_old.jsonl"), "{}\n").unwrap();
    (place, sessions)
}

/// Runs the stand-in with a script in which `$S` is the folder of sessions.
fn run(
    place: &Place,
    name: &str,
    sessions: &std::path::Path,
    script: &str,
    arguments: &[&str],
) -> Watched {
    let child = script.replace("$S", sessions.to_str().unwrap());
    let mark = Mark::new();
    let mut command = place.command(crate::POLICYSIM);
    mark.put(&mut command);
    command
        .arg("watch")
        .args(BUDGET.split(' '))
        .args(["--record", "agent.jsonl", "--", &format!("./{name}")])
        .args(arguments)
        .env("CHILD", child);
    let done = crate::finish(&mut command);
    mark.is_gone();
    let record = super::lines(&fs::read_to_string(place.path("agent.jsonl")).unwrap());
    Watched { done, record }
}

fn pi(place: &Place, sessions: &std::path::Path, script: &str, arguments: &[&str]) -> Watched {
    run(place, "pi", sessions, script, arguments)
}

fn states(watched: &Watched) -> Vec<String> {
    watched
        .notes("session")
        .iter()
        .map(|note| note["state"].as_str().unwrap().to_owned())
        .collect()
}

/// Pi's log is found by itself, and by the rules that fail closed.
#[test]
fn pis_session_is_found_and_bound_by_the_rules() {
    let grow =
        "for i in 1 2 3 4 5 6 7 8 9; do echo x >> $S/t_new.jsonl; sleep 0.2; done; echo done";
    let (place, sessions) = pi_place();
    let watched = pi(&place, &sessions, grow, &[]);
    assert_eq!(
        (watched.ended(), states(&watched)),
        ((Some(0), "exited"), vec!["unbound".into(), "bound".into()])
    );
    // No path and no content is in the record.
    let text = fs::read_to_string(place.path("agent.jsonl")).unwrap();
    assert!(
        !text.contains("t_new") && !text.contains("sessions/"),
        "{text}"
    );

    // Two new logs: none is meant, for good.
    let (place, sessions) = pi_place();
    let two = format!(
        "touch $S/t_a.jsonl $S/t_b.jsonl; {}",
        grow.replace("t_new", "t_a")
    );
    let watched = pi(&place, &sessions, &two, &[]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert_eq!(states(&watched), ["unbound", "disabled"]);
    let reason = watched.notes("session")[1]["reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(reason.contains("several"), "{reason}");

    // Another session's log is not ours, and a run that keeps none has none.
    for (arguments, state) in [
        (&["--no-session"][..], "off"),
        (&["--session-dir", "x"], "off"),
    ] {
        let (place, sessions) = pi_place();
        let watched = pi(&place, &sessions, grow, arguments);
        assert_eq!(
            watched.ended(),
            (Some(124), "idle_timeout"),
            "{arguments:?}"
        );
        assert_eq!(states(&watched), [state], "{arguments:?}");
    }
    let (place, sessions) = pi_place();
    let watched = pi(
        &place,
        &sessions,
        &grow.replace("t_new", "t_u9"),
        &["--session", "u9"],
    );
    assert_eq!(states(&watched), ["unbound", "bound"]);
    let (place, sessions) = pi_place();
    let watched = pi(&place, &sessions, grow, &["--session", "u9"]);
    assert_eq!(
        (watched.done.code, states(&watched)),
        (Some(124), vec!["unbound".into()])
    );
}

/// The logs of Claude Code and Codex are found where those keep them, and bound by the same rules.
#[test]
fn the_sessions_of_the_other_agents_are_found() {
    let id = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000";
    for (name, log) in [
        ("claude", format!("{id}.jsonl")),
        ("codex", format!("rollout-2026-06-02T03-04-05-{id}.jsonl")),
    ] {
        let place = stand_in(name);
        let sessions = if name == "claude" {
            let folder = fs::canonicalize(place.path("")).unwrap();
            let folder = folder.to_str().unwrap();
            let folder = folder.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            place.path(&format!("home/.claude/projects/{folder}"))
        } else {
            place.path("home/.codex/sessions/2026/06/02")
        };
        fs::create_dir_all(&sessions).unwrap();
        let old = log.replace("0199aaaa", "0188aaaa");
        fs::write(sessions.join(&old), "{}\n").unwrap();
        let grows = |log: &str| {
            format!("for i in 1 2 3 4 5 6 7 8 9; do echo x >> $S/{log}; sleep 0.2; done")
        };
        let alive = run(&place, name, &sessions, &grows(&log), &[]);
        assert_eq!(alive.ended(), (Some(0), "exited"), "{name}");
        assert_eq!(states(&alive), ["unbound", "bound"], "{name}");
        // A log that was there before the start is another run's.
        fs::remove_file(place.path("agent.jsonl")).unwrap();
        let dead = run(&place, name, &sessions, &grows(&old), &[]);
        assert_eq!(dead.ended(), (Some(124), "idle_timeout"), "{name}");
        assert_eq!(states(&dead), ["unbound"], "{name}");
    }
}

/// The session that the command's own stream names wins over what lies in the folder.
#[test]
fn a_header_that_names_another_session_unbinds() {
    let (place, sessions) = pi_place();
    let header = r#"{"type":"session","id":"other","cwd":"/"}"#;
    let child = format!(
        "for i in 1 2 3; do echo x >> $S/t_new.jsonl; sleep 0.2; done; echo '{header}'; \
         for i in 1 2 3 4 5 6 7 8 9; do echo x >> $S/t_new.jsonl; sleep 0.2; done"
    );
    let watched = pi(&place, &sessions, &child, &[]);
    assert_eq!(states(&watched), ["unbound", "bound", "disabled"]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert_eq!(
        watched.notes("session")[2]["reason"],
        "the command names another session"
    );
}

/// All vectors of the binding pass through the code that a live run binds with.
#[test]
fn the_binding_vectors_pass() {
    let Some(vectors) = shared("vectors") else {
        return;
    };
    let place = Place::new();
    let file = vectors.join("pi_session_binding.json");
    let args = ["policy".as_ref(), "conform".as_ref(), file.as_os_str()];
    let printed = place.run_args(args).ok();
    let passed = printed
        .lines()
        .filter(|line| line.starts_with("ok"))
        .count();
    let content: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(passed, content.as_array().unwrap().len(), "{printed}");
}

/// Several run at once, as a harness runs its delegates: each has its own clock.
#[test]
fn runs_beside_each_other_do_not_disturb() {
    let place = place();
    let lively = "for i in 1 2 3 4 5 6 7 8; do echo y; sleep 0.2; done";
    let alive = begin_as(&place, BUDGET, &["sh", "-c", lively], "a.jsonl");
    let silent = begin(&place, BUDGET, &["sh", "-c", "sleep 60"]);
    assert_eq!(silent.end().ended(), (Some(124), "idle_timeout"));
    assert_eq!(alive.end().ended(), (Some(0), "exited"));
    assert_eq!(script("", "echo z").ended(), (Some(0), "exited"));
}
