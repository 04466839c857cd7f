//! Ctrl-C in the middle of an import leaves nothing half-written.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{Done, PATIENCE, Place, files, fleet, names, repository, wait};

/// A pipe holds less than this, so whoever has written this much has been read from.
const MORE_THAN_A_PIPE: usize = 1 << 20;
/// Written at most after the interrupt.
const PATIENCE_BYTES: usize = 256 << 20;

/// A log that never ends is imported into `out` and interrupted by `signal` while it is being read.
fn interrupted(place: &Place, out: &str, signal: &str) -> Done {
    let fifo = place.path("endless.jsonl");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let mut command = place.command(crate::POLICYSIM);
    command.args(["import", "endless.jsonl", "--format", "pi", "--out", out]);
    let child = command.spawn().unwrap();
    let id = child.id().to_string();
    // Should it hang, it is ended after a while and the log has no reader any more.
    let ended = thread::spawn(move || wait(child, "import endless.jsonl"));
    // Opening waits for the reader.
    let (send, opened) = mpsc::channel();
    let path = fifo.clone();
    thread::spawn(move || send.send(File::options().write(true).open(path)));
    let mut log = opened.recv_timeout(PATIENCE).unwrap().unwrap();
    let mut line = 0_u64;
    let mut feed = |n_bytes: usize| -> std::io::Result<()> {
        let mut written = 0;
        while written < n_bytes {
            let turn = turn(line);
            log.write_all(turn.as_bytes())?;
            written += turn.len();
            line += 1;
        }
        Ok(())
    };
    feed(MORE_THAN_A_PIPE).unwrap();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
    // It may be waiting for the next bytes; then it has to notice when they come.
    let gone = feed(PATIENCE_BYTES).unwrap_err();
    assert_eq!(gone.kind(), std::io::ErrorKind::BrokenPipe);
    let done = ended.join().unwrap();
    fs::remove_file(&fifo).unwrap();
    done
}

/// A prompt and an answer of a run of their own.
fn turn(n: u64) -> String {
    let stamp = |ms: u64| {
        let seconds = ms / 1_000;
        format!(
            "2026-03-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            1 + seconds / 86_400 % 28,
            seconds / 3_600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            ms % 1_000
        )
    };
    format!(
        "{{\"type\":\"message\",\"id\":\"u{n}\",\"timestamp\":\"{}\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}\n\
         {{\"type\":\"message\",\"id\":\"a{n}\",\"timestamp\":\"{}\",\"message\":{{\"role\":\"assistant\",\"content\":[],\"provider\":\"p\",\"model\":\"m\",\"stopReason\":\"stop\"}}}}\n",
        stamp(2_000 * n),
        stamp(2_000 * n + 1_500),
    )
}

#[test]
fn an_interrupted_import_leaves_no_dataset_and_no_temporary_folder() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let error = interrupted(&place, "dataset", signal).error();
        assert!(error.contains("interrupted"), "{error}");
        assert!(
            names(place.0.path()).is_empty(),
            "{:?}",
            names(place.0.path())
        );
    }
}

#[test]
fn interrupted_draws_leave_no_dataset_and_no_temporary_folder() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let model = repository().join("data/models/adr-0129.toml");
        fs::copy(model, place.path("model.toml")).unwrap();
        let mut command = place.command(crate::POLICYSIM);
        command.args("synth run model.toml --runs 20000000 --out drawn".split(' '));
        let child = command.spawn().unwrap();
        let id = child.id().to_string();
        let ended = thread::spawn(move || wait(child, "synth run"));
        let written = (0..6_000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            names(place.0.path()).len() == 2
        });
        assert!(written, "nothing is written");
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        let error = ended.join().unwrap().error();
        assert!(error.contains("interrupted"), "{error}");
        assert_eq!(names(place.0.path()), ["model.toml"]);
    }
}

/// Once the data are open nobody looks at a flag any more: the first interrupt ends the command.
#[test]
fn an_interrupt_ends_a_command_on_a_dataset() {
    for signal in ["-INT", "-TERM"] {
        let place = fleet::place();
        let line = "sweep telemetry --idle 1ms..100s/1ms --verify 100000000 --quiet";
        let mut command = place.command(crate::POLICYSIM);
        command.args(line.split(' '));
        let mut child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        let told = std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(told.success());
        let status = child.wait().unwrap();
        assert!(!status.success(), "{signal}: {status}");
    }
}

/// A log cannot be made again: nothing is written where the command reads.
#[test]
fn no_command_writes_over_what_it_reads() {
    let place = fleet::place();
    place.write("p.toml", "idle = \"60s\"\n");
    place.write("r.toml", "[[rule]]\ncheck = \"all\"\n");
    place.write("report.md", "{{ title }}\n");
    let before = files(place.0.path());
    for line in [
        "gate summarise fleet.csv --policy p.toml --out fleet.csv",
        "gate summarise fleet.csv --policy p.toml --out p.toml",
        "gate fleet.csv --policy p.toml --rules r.toml --format junit=r.toml",
        "gate fleet.csv --policy p.toml --rules r.toml --format json=./fleet.csv",
        "report fleet.csv --policy p.toml --template report.md --out .",
    ] {
        let error = place.run(line).error();
        assert!(
            error.contains("the command reads that file"),
            "{line}: {error}"
        );
    }
    assert!(files(place.0.path()) == before);
}

#[test]
fn an_interrupted_import_leaves_the_dataset_that_it_was_to_replace() {
    let place = fleet::place();
    let before = files(&place.path("telemetry"));
    interrupted(&place, "telemetry", "-INT").error();
    assert!(files(&place.path("telemetry")) == before);
    assert_eq!(names(place.0.path()), ["fleet.csv", "telemetry"]);
}
