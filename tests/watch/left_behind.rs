//! Who lives on after the command, and who holds its pipes open: it is told, and nothing hangs on it.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::{Mark, ONE_SECOND, Running, Watched, begin, ms, script};
use crate::Place;

/// The processes that the record names as survivors.
fn survivors(watched: &Watched) -> BTreeSet<String> {
    let survivors = watched.note("stopped")["survivors"].as_array().unwrap();
    survivors
        .iter()
        .map(|process| ms(process, "pid").to_string())
        .collect()
}

/// They are those that really live, and standard error names each.
#[track_caller]
fn survivors_are_told(watched: &Watched, mark: &Mark, n: usize) {
    let named = survivors(watched);
    let living: BTreeSet<String> = mark.bearers().into_iter().collect();
    assert_eq!(named, living, "{}", watched.note("stopped"));
    assert_eq!(named.len(), n, "{}", watched.note("stopped"));
    let told = &watched.done.stderr;
    let line = told
        .lines()
        .find(|line| line.contains("still alive: "))
        .unwrap_or_else(|| panic!("{told}"));
    for pid in named {
        assert!(line.contains(&format!("{pid} (sleep)")), "{told}");
    }
}

fn child_scope(options: &str, text: &str) -> (Watched, Mark) {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    let options = format!("--policy p.toml --set kill.scope=child {options}");
    begin(&place, &options, &["sh", "-c", text]).end_with_others()
}

/// A policy that ends the command alone leaves survivors, whether they are of its group or have left it.
#[test]
fn whoever_the_policy_does_not_mean_is_a_survivor() {
    let leaves = "sleep 300 & setsid sh -c ': > left; exec sleep 301' & \
                  while [ ! -e left ]; do echo y; sleep 0.1; done; echo started; exec sleep 302";
    let (watched, mark) = child_scope("", leaves);
    assert_eq!(watched.ended(), (Some(123), "idle_timeout"));
    survivors_are_told(&watched, &mark, 2);
    let stopped = watched.note("stopped");
    assert_eq!(
        (&stopped["scope"], &stopped["child"]["signal"]),
        (&"child".into(), &15.into())
    );
    let groups: Vec<bool> = stopped["survivors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["group"] == stopped["group"])
        .collect();
    assert_eq!(groups.iter().filter(|is_same| **is_same).count(), 1);
    assert!(watched.done.stderr.contains("--set kill.scope=tree"));
    mark.sweep();
    // The command's own status says nothing of them.
    let (watched, mark) = child_scope("--preserve-status", leaves);
    assert_eq!(watched.ended(), (Some(143), "idle_timeout"));
    assert_eq!(survivors(&watched).len(), 2);
    mark.sweep();
}

/// A command that takes its own with it leaves none.
#[test]
fn whoever_ends_with_the_command_is_no_survivor() {
    let tidy = "trap 'kill $!; exit 0' TERM; sleep 300 & echo up; wait";
    let (watched, mark) = child_scope("", tidy);
    mark.is_gone();
    assert_eq!(watched.ended(), (Some(124), "idle_timeout"));
    assert!(survivors(&watched).is_empty());
    assert_eq!(watched.note("stopped")["child"]["code"], 0);
}

/// A command that ends between the decision and the signal has timed out, and what it left behind gets the signal.
#[test]
fn what_a_command_leaves_behind_before_the_signal_is_ended() {
    let leaves = "sleep 300 & echo up; sleep 1; exit 5";
    let options = "--set idle.window=60s --set total.budget=500ms --set kill.delay=60s";
    let watched = script(options, leaves);
    assert_eq!(watched.ended(), (Some(124), "total_timeout"));
    assert_eq!(watched.note("outcome")["child"]["code"], 5);
    assert!(watched.notes("kill").is_empty());
    assert_eq!(watched.note("signal")["signal"], "TERM");
    let (watched, mark) = child_scope(options, leaves);
    assert_eq!(watched.ended(), (Some(123), "total_timeout"));
    assert!(watched.notes("signal").is_empty());
    survivors_are_told(&watched, &mark, 1);
    mark.sweep();
}

/// Starts `watch` as a user without rights, in a place where a program that raises itself to root can be called.
fn begin_unprivileged(text: &str) -> Option<(Place, Running)> {
    let place = Place::new();
    let as_nobody = |command: &mut Command| {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    };
    let mode = |path: &str, mode| {
        fs::set_permissions(place.path(path), Permissions::from_mode(mode)).unwrap();
    };
    mode("", 0o777);
    let found = crate::finish(place.command("sh").args(["-c", "command -v setpriv"]));
    let is_there = fs::copy(found.stdout.trim(), place.path("raise")).is_ok();
    if is_there {
        mode("raise", 0o4755);
    }
    let mut probe = place.command("setpriv");
    as_nobody(&mut probe);
    probe.args(["./raise", "--reuid", "0", "id", "-ru"]);
    let raises = is_there && probe.output().is_ok_and(|output| output.stdout == b"0\n");
    if !raises {
        eprintln!("skipped: only root can make a process that others cannot end");
        return None;
    }
    if fs::hard_link(crate::POLICYSIM, place.path("policysim")).is_err() {
        fs::copy(crate::POLICYSIM, place.path("policysim")).unwrap();
    }
    place.write("p.toml", ONE_SECOND);
    let mark = Mark::new();
    let mut watch = place.command("setpriv");
    mark.put(&mut watch);
    as_nobody(&mut watch);
    watch.args(["./policysim", "watch", "--policy", "p.toml"]);
    watch.args(["--record", "record.jsonl", "--", "sh", "-c", text]);
    let running = Running {
        child: watch.spawn().unwrap(),
        mark,
        record: place.path("record.jsonl"),
    };
    Some((place, running))
}

/// A process that nobody here may signal survives TERM and KILL, holds the pipes open, and is told.
#[test]
fn a_process_that_cannot_be_ended_is_a_survivor() {
    let raises = "./raise --reuid 0 sh -c ': > raised; exec sleep 300' & \
                  while [ ! -e raised ]; do echo y; sleep 0.1; done; echo started; ";
    let silent = format!("{raises} exec sleep 302");
    let Some((_place, running)) = begin_unprivileged(&silent) else {
        return;
    };
    let (watched, mark) = running.end_with_others();
    assert_eq!(watched.ended(), (Some(123), "idle_timeout"));
    survivors_are_told(&watched, &mark, 1);
    let stopped = watched.note("stopped");
    assert_eq!(
        (&stopped["scope"], &stopped["escalated"]),
        (&"tree".into(), &true.into())
    );
    mark.sweep();
    // The same when watch is told to end; the status is that of the signal.
    let busy = format!("{raises} : > ready; while :; do echo y; sleep 0.1; done");
    let Some((place, running)) = begin_unprivileged(&busy) else {
        return;
    };
    running.until("output", |_| place.path("ready").exists());
    thread::sleep(Duration::from_millis(500));
    running.signal("-TERM");
    let (watched, mark) = running.end_with_others();
    assert_eq!(watched.ended(), (Some(143), "interrupted"));
    survivors_are_told(&watched, &mark, 1);
    mark.sweep();
}

/// A command that goes on until it is told to go, whose output somebody outside its tree holds open from then on.
fn held_open(options: &str, then: &str, writes: bool, act: impl Fn(&Running)) -> Watched {
    let place = Place::new();
    place.write("p.toml", "idle = \"3s\"\n[kill]\ngrace = \"1s\"\n");
    let text =
        format!("echo $$ > pid; while [ ! -e go ]; do echo y; sleep 0.1; done; echo last; {then}");
    let options = format!("--policy p.toml {options}");
    let running = begin(&place, &options, &["sh", "-c", &text]);
    running.until("output", |line| line["event"] == "stdout");
    let pid = String::from_utf8(place.read("pid")).unwrap();
    let theirs = format!("/proc/{}/fd/1", pid.trim());
    let mut holder = File::options().write(true).open(theirs).unwrap();
    let writer = writes.then(|| {
        let mut holder = holder.try_clone().unwrap();
        // Until nobody reads it any more.
        thread::spawn(move || while holder.write_all(b"z\n").is_ok() {})
    });
    place.write("go", "");
    act(&running);
    let watched = running.end();
    // It was held open all the time.
    assert!(holder.write_all(b"z").is_err());
    if let Some(writer) = writer {
        writer.join().unwrap();
    }
    let stdout = &watched.done.stdout;
    let is_whole = stdout.ends_with("y\nlast\n");
    assert!(
        writes || is_whole || watched.outcome() == "interrupted",
        "{stdout}"
    );
    watched
}

/// A pipe that somebody holds open, or goes on writing into, hangs nobody: not after an end, a kill, or a signal.
#[test]
fn a_pipe_held_open_by_somebody_else_does_not_hang() {
    let nothing = |_: &Running| {};
    for writes in [false, true] {
        let ended = held_open("", "exit 3", writes, nothing);
        assert_eq!(ended.ended(), (Some(3), "exited"));
    }
    let killed = held_open("", "exec sleep 60", false, nothing);
    assert_eq!(killed.ended(), (Some(124), "idle_timeout"));
    // One that goes on writing is a sign of life like any other byte; a budget ends that.
    let killed = held_open("--set total.budget=10s", "exec sleep 60", true, nothing);
    assert_eq!(killed.ended(), (Some(124), "total_timeout"));
    for writes in [false, true] {
        let interrupted = held_open("--set idle=off", "exec sleep 60", writes, |running| {
            running.signal("-TERM");
        });
        assert_eq!(interrupted.ended(), (Some(143), "interrupted"));
    }
}

/// A reader that takes nothing does not keep a killed command's watch.
#[test]
fn a_reader_that_takes_nothing_does_not_hang_a_kill() {
    let place = Place::new();
    place.write(
        "p.toml",
        "idle = \"off\"\ntotal = \"1s\"\n[kill]\ngrace = \"1s\"\n",
    );
    let running = begin(&place, "--policy p.toml", &["sh", "-c", "yes"]);
    let Running {
        mut child, mark, ..
    } = running;
    let ended = (0..3_000).find_map(|_| {
        thread::sleep(Duration::from_millis(20));
        child.try_wait().unwrap()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(124));
    mark.is_gone();
    drop(child);
}

/// A command that has ended waits for its reader as it would without watch: no byte is lost to a slow one.
#[test]
fn a_slow_reader_gets_every_byte() {
    const N: usize = 100_000;
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let text = format!("head -c {N} /dev/zero");
    let mut running = begin(&place, "--policy p.toml", &["sh", "-c", &text]);
    running.until("the end", |line| line["event"] == "run_end");
    thread::sleep(Duration::from_secs(7));
    let mut bytes = Vec::new();
    let mut stdout = running.child.stdout.take().unwrap();
    stdout.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), N);
    assert_eq!(running.end().ended(), (Some(0), "exited"));
}

/// Whoever does not want to wait for that reader can end it; the status tells that bytes may be missing.
#[test]
fn a_wait_for_the_reader_can_be_interrupted() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let running = begin(
        &place,
        "--policy p.toml",
        &["sh", "-c", "head -c 100000 /dev/zero"],
    );
    running.until("the end", |line| line["event"] == "run_end");
    thread::sleep(Duration::from_millis(500));
    running.signal("-TERM");
    let Running {
        mut child,
        mark,
        record,
    } = running;
    let ended = (0..3_000).find_map(|_| {
        thread::sleep(Duration::from_millis(20));
        child.try_wait().unwrap()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(143));
    mark.is_gone();
    let record = super::lines(&fs::read_to_string(record).unwrap());
    let outcome = record.last().unwrap();
    assert_eq!(
        (&outcome["outcome"], &outcome["child"]["code"]),
        (&"interrupted".into(), &0.into())
    );
}
