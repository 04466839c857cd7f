//! Exit statuses: what each can and cannot mean (BR-84).

use super::{ONE_SECOND, script, watch};
use crate::{Place, repository};

/// BR-84: the status alone does not tell a timeout from a command that exits 124; the record does.
#[test]
fn a_status_is_told_from_what_watch_did() {
    let short = "--set idle.window=300ms --set kill.grace=500ms";
    let cases = [
        ("exit 0", "", 0, "exited"),
        ("exit 124", "", 124, "exited"),
        ("exit 137", "", 137, "exited"),
        ("kill -KILL $$", "", 137, "signalled"),
        ("sleep 60", short, 124, "idle_timeout"),
        (
            "trap 'exit 0' TERM; while :; do sleep 0.05; done",
            short,
            124,
            "idle_timeout",
        ),
        (
            "trap '' TERM; while :; do sleep 0.05; done",
            short,
            124,
            "idle_timeout",
        ),
    ];
    for (text, options, status, outcome) in cases {
        let watched = script(options, text);
        assert_eq!(watched.ended(), (Some(status), outcome), "{text}");
        assert_eq!(
            watched.notes("signal").is_empty(),
            options.is_empty(),
            "{text}"
        );
    }
    let trapped = script(short, "trap 'exit 0' TERM; while :; do sleep 0.05; done");
    let stopped = trapped.note("stopped");
    assert_eq!(
        (&stopped["child"]["code"], &stopped["escalated"]),
        (&0.into(), &false.into())
    );
    let stubborn = script(short, "trap '' TERM; while :; do sleep 0.05; done");
    let stopped = stubborn.note("stopped");
    assert_eq!(
        (&stopped["child"]["signal"], &stopped["escalated"]),
        (&9.into(), &true.into())
    );
}

#[test]
fn what_cannot_be_started_is_told_by_126_and_127() {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    place.write("plain", "no program\n");
    for (command, status) in [("./nosuch", 127), ("nosuch", 127), ("./plain", 126)] {
        let watched = watch(&place, "--policy p.toml", &[command]);
        assert_eq!(watched.ended(), (Some(status), "not_started"), "{command}");
        let told = watched.done.stderr;
        assert!(
            told.starts_with(&format!("error: cannot run {command}: ")),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn the_commands_own_status_can_be_preserved() {
    let options = "--set idle.window=300ms --preserve-status";
    assert_eq!(
        script(options, "sleep 60").ended(),
        (Some(143), "idle_timeout")
    );
    let traps = "trap 'exit 7' TERM; while :; do sleep 0.05; done";
    assert_eq!(script(options, traps).ended(), (Some(7), "idle_timeout"));
}

/// A wrapper's own faults must not look like those of what it wraps.
#[test]
fn wrong_usage_is_125_in_one_line() {
    let place = Place::new();
    for line in [
        "watch",
        "watch --policy pi-desktop-0129",
        "watch --policy nosuch -- true",
        "watch --policy pi-desktop-0129 --set idle -- true",
        "watch --policy pi-desktop-0129 --sesion none -- true",
        "watch --policy pi-desktop-0129 --session cluade-code -- true",
        "watch --policy pi-desktop-0129 --deadline soon -- true",
        "watch --policy pi-desktop-0129 --record no/such/r.jsonl -- true",
        "--seed 7 watch --policy pi-desktop-0129 --status 0 -- true",
    ] {
        let done = place.run(line).exits(125);
        assert!(
            done.stderr.starts_with("error: "),
            "{line}\n{}",
            done.stderr
        );
        assert_eq!(done.stderr.lines().count(), 1, "{line}\n{}", done.stderr);
        assert_eq!(done.stdout, "", "{line}");
    }
    place.run("replay --polcy x").exits(2);
}

/// The table of the README names every status.
#[test]
fn the_readme_lists_every_status_of_watch() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    for status in ["123", "124", "125", "126", "127", "128+n"] {
        let row = format!("| {status} |");
        assert!(readme.contains(&row), "{row}");
    }
}
