//! What counts as a sign of life, and what the command's bytes look like on the other side (BR-82).

use std::io::Read;
use std::process::Stdio;

use super::{Mark, ONE_SECOND, begin, ms, script, watch};
use crate::Place;

/// Every byte arrives, on the pipe that it was written to.
#[test]
fn bytes_pass_unchanged() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let mut state = 7_u64;
    let bytes: Vec<u8> = (0..700_001)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    place.write("bytes", &bytes);
    for stream in ["auto", "none", "pi"] {
        let mark = Mark::new();
        let mut command = place.command(crate::POLICYSIM);
        mark.put(&mut command);
        command.args([
            "watch", "--policy", "p.toml", "--stream", stream, "--quiet", "--",
        ]);
        command.args(["sh", "-c", "cat bytes; cat bytes >&2; cat"]);
        command.stdin(std::fs::File::open(place.path("bytes")).unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(
            output.stdout == [&bytes[..], &bytes[..]].concat(),
            "{stream}"
        );
        assert!(output.stderr == bytes, "{stream}");
        mark.is_gone();
    }
}

/// A prompt without a line feed is there before the command goes on.
#[test]
fn nothing_is_held_back() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let mark = Mark::new();
    let mut command = place.command(crate::POLICYSIM);
    mark.put(&mut command);
    command.args(["watch", "--policy", "p.toml", "--"]);
    command.args([
        "sh",
        "-c",
        "printf 'name? '; read name; echo \"hello $name\"",
    ]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut prompt = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut prompt)
        .unwrap();
    assert_eq!(&prompt, b"name? ");
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"you\n").unwrap();
    assert_eq!(crate::wait(child, "watch").exits(0).stdout, "hello you\n");
    mark.is_gone();
}

#[test]
fn the_environment_is_not_touched() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let env = ["sh", "-c", "env | sort"];
    let running = begin(&place, "--policy p.toml", &env);
    let (name, value) = running.mark.0.split_once('=').unwrap();
    let mut plain = place.command("sh");
    plain.args(&env[1..]).env(name, value);
    let plain = crate::finish(&mut plain).ok();
    assert!(plain.contains(&running.mark.0), "{plain}");
    assert_eq!(running.end().done.stdout, plain);
}

/// A reader that goes away ends the command as it would without watch.
#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let mark = Mark::new();
    let mut command = place.command("sh");
    mark.put(&mut command);
    let line = format!(
        "'{}' watch --policy p.toml --record r.jsonl -- sh -c 'while :; do echo y; done' | head -n 1",
        crate::POLICYSIM
    );
    assert_eq!(crate::finish(command.args(["-c", &line])).ok(), "y\n");
    mark.is_gone();
    let record = super::lines(&std::fs::read_to_string(place.path("r.jsonl")).unwrap());
    let outcome = record
        .iter()
        .find(|line| line["note"] == "outcome")
        .unwrap();
    assert_eq!(outcome["child"]["signal"], 13, "{outcome}");
}

/// BR-82: a pipe makes a program hold its lines back. The kill says so; with a terminal nothing is held back.
#[test]
fn silence_made_by_the_pipe_is_told_and_a_terminal_remedies_it() {
    let ticks = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo tick $i; sleep 0.3; done | grep tick";
    let silent = script("--set idle.window=2s", ticks);
    assert_eq!(silent.ended(), (Some(124), "idle_timeout"));
    let kill = silent.note("kill");
    assert_eq!(
        (&kill["stdout"], ms(kill, "stdout_bytes")),
        (&"pipe".into(), 0)
    );
    assert!(kill["used_cpu_ms"].is_u64());
    let told = &silent.done.stderr;
    assert!(
        told.contains("gave 0 bytes") && told.contains("--pty"),
        "{told}"
    );

    let lively = script("--set idle.window=2s --pty", ticks);
    assert_eq!(lively.ended(), (Some(0), "exited"));
    assert_eq!(lively.done.stdout.lines().count(), 12);
    assert!(!lively.done.stdout.contains('\r'));
}

#[test]
fn only_the_counted_pipe_is_a_sign_of_life() {
    let both = "for i in 1 2 3 4 5 6 7 8; do echo e >&2; sleep 0.3; done";
    assert_eq!(script("--count stderr", both).ended(), (Some(0), "exited"));
    assert_eq!(script("", both).ended(), (Some(0), "exited"));
    let watched = script("--count stdout", both);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert_eq!(
        ms(watched.note("kill"), "deadline_ms"),
        watched.first("process_start") + 1_000
    );
}

/// Observed policies tell every time, and nobody is killed.
#[test]
fn observing_kills_nobody_and_tells_every_time() {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    place.write("short.toml", "idle = \"300ms\"\n");
    place.write("budget.toml", "total = \"2s\"\n");
    let options = "--policy p.toml --observe --shadow short.toml --shadow budget.toml";
    let child = "echo a; sleep 1.4; echo b; sleep 1.4; exit 6";
    let watched = watch(&place, options, &["sh", "-c", child]);
    assert_eq!(watched.ended(), (Some(6), "exited"));
    assert!(watched.notes("signal").is_empty());
    let stdout: Vec<u64> = watched
        .events()
        .into_iter()
        .filter(|(kind, _)| *kind == "stdout")
        .map(|(_, at_ms)| at_ms)
        .collect();
    for (policy, window_ms) in [(0, 1_000), (1, 300)] {
        let told: Vec<u64> = watched
            .notes("would_kill")
            .into_iter()
            .filter(|note| note["policy"] == policy)
            .map(|note| ms(note, "deadline_ms"))
            .collect();
        assert_eq!(told, [stdout[0] + window_ms, stdout[1] + window_ms]);
    }
    let budget: Vec<&serde_json::Value> = watched
        .notes("would_kill")
        .into_iter()
        .filter(|note| note["policy"] == 2)
        .collect();
    assert_eq!(budget.len(), 1);
    assert_eq!(
        (&budget[0]["verdict"], ms(budget[0], "deadline_ms")),
        (&"total_timeout".into(), 2_000)
    );
    assert_eq!(watched.done.stderr.matches("would have killed").count(), 5);
}

#[test]
fn a_shadow_does_not_kill_and_does_not_keep_alive() {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    place.write("long.toml", "idle = \"60s\"\n");
    let options = "--policy p.toml --shadow long.toml";
    let watched = watch(&place, options, &["sh", "-c", "echo a; sleep 60"]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert!(watched.notes("would_kill").is_empty());
}

#[test]
fn the_status_line_says_how_long_ago_the_last_activity_was() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let watched = watch(
        &place,
        "--policy p.toml --status 1",
        &["sh", "-c", "echo a; sleep 2.5"],
    );
    let told = &watched.done.stderr;
    assert!(told.contains("last activity"), "{told}");
    assert!(
        told.lines()
            .all(|line| line.contains("s ago (stdout), next limit in")),
        "{told}"
    );
    let quiet = place
        .run("watch --quiet --policy p.toml --status 1 -- sleep 1.5")
        .exits(0);
    assert_eq!(quiet.stderr, "");
}

/// What is said of a kill: which limit, where it was, how old each sign of life, and how to allow more.
#[test]
fn a_kill_is_explained() {
    let watched = script("", "echo a; sleep 60");
    let told = &watched.done.stderr;
    for words in [
        "killed: idle_timeout at",
        "idle.window 1s, phase streaming",
        "last activity: stdout 1 s ago",
        "--set idle.window=2s",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
}

/// A killed watch leaves a record that reads, up to its last line.
#[test]
fn a_record_outlives_watch() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let running = begin(
        &place,
        "--policy p.toml",
        &["sh", "-c", "echo a; exec sleep 300"],
    );
    running.until("output", |line| line["event"] == "stdout");
    running.signal("-KILL");
    let (watched, mark) = running.end_with_others();
    assert_eq!(watched.done.code, None);
    assert!(watched.notes("outcome").is_empty());
    mark.sweep();
    let replayed = place
        .run("replay record.jsonl --run #1 --policy p.toml --format json")
        .ok();
    assert_eq!(crate::json(&replayed)["verdict"], "running");
}

/// While nothing happens, watch does nothing: neither for a limit, nor for the session log that it looks at.
#[test]
fn an_idle_watch_uses_no_processor_time() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\ntotal = \"1h\"\n");
    place.write("log.jsonl", "");
    let options = "--policy p.toml --session log.jsonl";
    let running = begin(&place, options, &["sleep", "60"]);
    running.until("a start", |line| line["event"] == "process_start");
    let used_ns = || -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", running.child.id())).unwrap();
        let of_task = |task: std::fs::DirEntry| {
            let line = std::fs::read_to_string(task.path().join("schedstat")).unwrap();
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        tasks.filter_map(|task| of_task(task.unwrap())).sum()
    };
    std::thread::sleep(std::time::Duration::from_secs(1));
    let before_ns = used_ns();
    std::thread::sleep(std::time::Duration::from_secs(5));
    // A loop that polls every millisecond takes ten times that.
    let used_ms = (used_ns() - before_ns) / 1_000_000;
    assert!(used_ms < 20, "{used_ms} ms of 5 s");
    running.signal("-TERM");
    assert_eq!(running.end().ended(), (Some(143), "interrupted"));
}

/// What was missed while watch did not run is not made up for.
#[test]
fn wake_ups_do_not_come_in_bursts() {
    const STOPPED_MS: u64 = 6_000;
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let child = "echo a; while [ ! -e go ]; do sleep 0.1; done";
    let options = "--policy p.toml --status 1";
    let running = begin(&place, options, &["sh", "-c", child]);
    running.until("output", |line| line["event"] == "stdout");
    running.signal("-STOP");
    std::thread::sleep(std::time::Duration::from_millis(STOPPED_MS));
    running.signal("-CONT");
    std::thread::sleep(std::time::Duration::from_millis(300));
    place.write("go", "");
    let watched = running.end();
    assert_eq!(watched.ended(), (Some(0), "exited"));
    let told = watched.done.stderr.matches("last activity").count() as u64;
    // One for each second in which watch ran, and one for all the others.
    let ran_ms = ms(watched.note("outcome"), "t_ms") - STOPPED_MS;
    assert!((1..=ran_ms / 1_000 + 1).contains(&told), "{told} {ran_ms}");
}
