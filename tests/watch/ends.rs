//! Who is ended, by which signals, and when (BR-40, 42, 77, 78, 81).

use std::thread;
use std::time::Duration;

use super::{ONE_SECOND, Watched, begin, begin_as, ms, script, watch};
use crate::Place;

/// How long it took from the deadline to the first signal, and from that to the last, ms.
fn signals(watched: &Watched) -> Vec<(String, u64)> {
    let sent = watched.note("stopped")["signals"].as_array().unwrap();
    sent.iter()
        .map(|signal| {
            let name = signal["signal"].as_str().unwrap().to_owned();
            (name, ms(signal, "t_ms"))
        })
        .collect()
}

const BUSY_GRANDCHILD: &str = "sh -c 'while :; do sleep 0.01; done' & echo started; sleep 60";

/// BR-77: whoever the command started is ended with it.
#[test]
fn the_whole_group_is_ended() {
    let watched = script("", BUSY_GRANDCHILD);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let started = watched.first("stdout");
    let kill = watched.note("kill");
    assert_eq!(ms(kill, "deadline_ms"), started + 1_000);
    let stopped = watched.note("stopped");
    assert_eq!(stopped["child"]["signal"], 15);
    assert!(stopped["group"].is_u64());
    // Three seconds after it started, read from the record; ten times that on a busy machine.
    assert!(ms(stopped, "t_ms") < started + 30_000);
}

/// BR-77: the same when `watch` itself is told to end.
#[test]
fn nobody_survives_the_end_of_watch() {
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        let place = Place::new();
        place.write("p.toml", "idle = \"60s\"\n[kill]\ngrace = \"1s\"\n");
        let running = begin(&place, "--policy p.toml", &["sh", "-c", BUSY_GRANDCHILD]);
        running.until("output", |line| line["event"] == "stdout");
        running.signal(signal);
        let watched = running.end();
        assert_eq!(
            watched.ended(),
            (Some(128 + number), "interrupted"),
            "{signal}"
        );
        assert_eq!(watched.note("interrupted")["signal"], number);
        let end = watched
            .record
            .iter()
            .find(|line| line["event"] == "run_end");
        assert_eq!(end.unwrap()["outcome"], "aborted");
    }
}

/// Whoever tells `watch` twice to end does not wait for the grace.
#[test]
fn a_second_signal_ends_the_grace() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n[kill]\ngrace = \"1h\"\n");
    let stubborn = "trap '' TERM; echo up; while :; do sleep 0.2; done";
    let running = begin(&place, "--policy p.toml", &["sh", "-c", stubborn]);
    running.until("output", |line| line["event"] == "stdout");
    running.signal("-TERM");
    running.until("a signal", |line| line["note"] == "signal");
    running.signal("-TERM");
    let watched = running.end();
    assert_eq!(watched.ended(), (Some(143), "interrupted"));
    assert_eq!(watched.note("stopped")["escalated"], true);
    assert_eq!(watched.note("outcome")["child"]["signal"], 9);
}

/// BR-78: a descendant with a session of its own is found before the first signal, and ended too.
#[test]
fn whoever_left_the_group_is_found() {
    let watched = script(
        "",
        "setsid sh -c 'sleep 300' & sleep 0.2; echo started; sleep 60",
    );
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let stopped = watched.note("stopped");
    let escaped = stopped["escaped"].as_array().unwrap();
    assert!(!escaped.is_empty(), "{stopped}");
    for process in escaped {
        assert_ne!(process["group"], stopped["group"], "{process}");
        assert!(process["pid"].is_u64() && process["started_ticks"].is_u64());
    }
    assert_eq!(stopped["survivors"].as_array().unwrap().len(), 0);
}

/// BR-78: also when its parents are gone, so that nothing but the reaper of orphans ties it to the command.
#[test]
fn an_orphan_in_a_session_of_its_own_is_found() {
    let twice = "(setsid sh -c '(sleep 300 &) ; sleep 300' &) ; sleep 0.3; echo started; sleep 60";
    let watched = script("", twice);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let escaped = watched.note("stopped")["escaped"].as_array().unwrap().len();
    assert!(escaped >= 2, "{}", watched.note("stopped"));
}

/// BR-81: TERM at the deadline, KILL after the grace, both in the record.
#[test]
fn who_ignores_term_is_killed_after_the_grace() {
    let stubborn = "trap '' TERM; echo up; while :; do sleep 0.2; done";
    let watched = script("--set kill.grace=2s", stubborn);
    let up = watched.first("stdout");
    assert_eq!(ms(watched.note("kill"), "deadline_ms"), up + 1_000);
    let sent = signals(&watched);
    let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["TERM", "KILL"]);
    let grace_ms = sent[1].1 - sent[0].1;
    assert!((2_000..20_000).contains(&grace_ms), "{grace_ms}");
    assert_eq!(watched.note("stopped")["escalated"], true);
    assert_eq!(watched.note("stopped")["child"]["signal"], 9);
}

#[test]
fn a_grace_of_zero_kills_at_once() {
    let watched = script("--set kill.grace=0s", "trap '' TERM; echo up; sleep 60");
    let names: Vec<String> = signals(&watched)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["KILL"]);
}

/// BR-81: a window below a second is exact, whatever the times at which others look.
#[test]
fn deadlines_are_exact() {
    for window_ms in [250, 333] {
        let options = format!("--set idle.window={window_ms}ms");
        let watched = script(&options, "echo up; sleep 60");
        let kill = watched.note("kill");
        assert_eq!(ms(kill, "deadline_ms"), watched.first("stdout") + window_ms);
        assert!(ms(kill, "acted_ms") >= ms(kill, "deadline_ms"));
    }
}

/// A policy that looks from time to time fires at a tick, counted from the start.
#[test]
fn a_polled_policy_fires_at_a_tick() {
    let watched = script("--set detect.poll=400ms", "sleep 0.1; echo up; sleep 60");
    let up = watched.first("stdout");
    let fired = watched
        .record
        .iter()
        .find(|line| line["fact"] == "fired")
        .unwrap();
    assert_eq!(ms(fired, "t_ms"), (up + 1_000).div_ceil(400) * 400);
}

/// BR-40: a watch that did not run says so, and the lateness passes for no tolerated silence.
#[test]
fn a_late_kill_says_how_late_it_was() {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    let running = begin(
        &place,
        "--policy p.toml",
        &["sh", "-c", "echo up; sleep 60"],
    );
    running.until("output", |line| line["event"] == "stdout");
    running.signal("-STOP");
    thread::sleep(Duration::from_secs(4));
    running.signal("-CONT");
    let watched = running.end();
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let kill = watched.note("kill");
    let deadline_ms = watched.first("stdout") + 1_000;
    assert_eq!(ms(kill, "deadline_ms"), deadline_ms);
    assert_eq!(kill["reason"], "watcher_not_scheduled");
    let lateness_ms = ms(kill, "lateness_ms");
    assert!(lateness_ms >= 2_000, "{kill}");
    assert_eq!(ms(kill, "acted_ms"), deadline_ms + lateness_ms);
    assert!(ms(kill, "decided_ms") >= deadline_ms + 2_000, "{kill}");
    assert!(watched.done.stderr.contains("watch itself did not run"));
    // In a replay it is told, and the silence of the record is that of the deadline.
    let replayed = place
        .run("replay record.jsonl --run #1 --policy p.toml")
        .ok();
    assert!(
        replayed.contains("watcher_not_scheduled (announced"),
        "{replayed}"
    );
    let longer = place
        .run("replay record.jsonl --run #1 --policy p.toml --set idle.window=2s --format json")
        .ok();
    let longer = crate::json(&longer);
    assert_eq!(longer["verdict"], "running", "{longer}");
    assert_eq!(ms(&longer, "record_end_ms"), deadline_ms);
}

/// BR-40: what the command printed while watch did not run is read before anything is done.
#[test]
fn output_that_arrived_meanwhile_takes_a_late_kill_back() {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    let child = "echo up; read _ < go; echo more; exit 5";
    std::process::Command::new("mkfifo")
        .arg(place.path("go"))
        .status()
        .unwrap();
    let running = begin(&place, "--policy p.toml", &["sh", "-c", child]);
    running.until("output", |line| line["event"] == "stdout");
    running.signal("-STOP");
    thread::sleep(Duration::from_secs(2));
    place.write("go", "\n");
    thread::sleep(Duration::from_millis(500));
    running.signal("-CONT");
    let watched = running.end();
    assert_eq!(watched.done.stdout, "up\nmore\n");
    assert_eq!(watched.ended(), (Some(5), "exited"));
    assert!(watched.notes("signal").is_empty());
}

/// BR-42: a verdict that output has made stale is not carried out. Fifty times, with silences of 95 % of the window
/// and the action delayed by a second.
#[test]
fn a_stale_verdict_kills_nobody() {
    let child = "echo a; sleep 0.95; for i in 1 2 3 4 5; do echo b; sleep 0.1; done";
    let place = Place::new();
    place.write("p.toml", "idle = \"1s\"\n[kill]\ndelay = \"10s\"\n");
    for batch in 0..5 {
        let running: Vec<_> = (0..10)
            .map(|n| {
                let record = format!("r{batch}-{n}.jsonl");
                begin_as(&place, "--policy p.toml", &["sh", "-c", child], &record)
            })
            .collect();
        for one in running {
            let watched = one.end();
            assert_eq!(watched.ended(), (Some(0), "exited"));
            assert!(watched.notes("kill").is_empty());
            // On a busy machine it may have fired: then it was taken back, and the record has both times.
            for cancelled in watched.notes("kill_cancelled") {
                assert!(ms(cancelled, "activity_ms") >= ms(cancelled, "decided_ms"));
            }
        }
    }
}

/// A firing is final in the core. Activity before the signal starts a new watchdog; a replay meets both verdicts.
#[test]
fn a_kill_that_was_taken_back_is_replayed_with_its_successor() {
    let place = Place::new();
    place.write(
        "p.toml",
        "idle = \"500ms\"\n[kill]\ndelay = \"3s\"\ngrace = \"1s\"\n",
    );
    let child = "echo a; sleep 1.5; echo b; sleep 60";
    let watched = watch(&place, "--policy p.toml", &["sh", "-c", child]);
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    let cancelled = watched.note("kill_cancelled");
    let activity_ms = ms(cancelled, "activity_ms");
    let stdout: Vec<u64> = watched
        .events()
        .into_iter()
        .filter(|(kind, _)| *kind == "stdout")
        .map(|(_, at_ms)| at_ms)
        .collect();
    assert_eq!(stdout.len(), 2);
    assert_eq!(ms(cancelled, "deadline_ms"), stdout[0] + 500);
    assert_eq!(activity_ms, stdout[1]);
    let kill = watched.note("kill");
    assert_eq!(ms(kill, "deadline_ms"), stdout[1] + 500);
    assert!(ms(kill, "acted_ms") >= ms(kill, "decided_ms") + 3_000);
    let fired: Vec<u64> = watched
        .record
        .iter()
        .filter(|line| line["fact"] == "fired")
        .map(|line| ms(line, "t_ms"))
        .collect();
    assert_eq!(fired, [stdout[0] + 500, stdout[1] + 500]);
    let replayed = crate::json(
        &place
            .run("replay record.jsonl --run #1 --policy p.toml --format json")
            .ok(),
    );
    assert_eq!(
        (&replayed["verdict"], ms(&replayed, "at_ms")),
        (&"idle_timeout".into(), fired[0])
    );
    assert_eq!(replayed["judgement"], "false_kill");
    let successors = replayed["successors"].as_array().unwrap();
    assert_eq!(successors.len(), 1, "{replayed}");
    let second = &successors[0];
    assert_eq!(second["verdict"], "idle_timeout");
    assert_eq!(ms(second, "from_ms") + ms(second, "at_ms"), fired[1]);
    let told = place
        .run("replay record.jsonl --run #1 --policy p.toml")
        .ok();
    assert!(told.contains("took the kill back"), "{told}");
    assert_eq!(told.matches("FIRED").count(), 2, "{told}");
}

/// A pipe that somebody else holds open is waited for a moment, not for ever.
#[test]
fn a_pipe_held_by_a_left_behind_process_does_not_hang() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let (watched, mark) = begin(
        &place,
        "--policy p.toml",
        &["sh", "-c", "sleep 300 & echo hi; exit 3"],
    )
    .end_with_others();
    assert_eq!(watched.ended(), (Some(3), "exited"));
    assert_eq!(watched.done.stdout, "hi\n");
    mark.sweep();
}
