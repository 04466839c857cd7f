//! `policysim watch` over real processes.
//!
//! Times are read from the record (the monotonic clock of `watch` itself); the wall clock bounds nothing but a hang.
//! Every command bears a mark in its environment, and no process with that mark may be left at the end.

mod ends;
mod evidence;
mod exits;
mod left_behind;
mod records;
mod sessions;
mod streams;
mod terminals;

use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::{Done, Place, wait};

/// Silence of a second kills, with a second of grace.
const ONE_SECOND: &str = "idle = \"1s\"\n[kill]\ngrace = \"1s\"\n";

/// A mark that no other test's processes bear.
struct Mark(String);

impl Mark {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("WATCH_TEST_MARK=m{}x{number}x", std::process::id()))
    }

    fn put(&self, command: &mut Command) {
        let (name, value) = self.0.split_once('=').unwrap();
        command.env(name, value);
    }

    /// The ids of the living processes that bear it.
    fn bearers(&self) -> Vec<String> {
        let mark = self.0.as_bytes();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let bears = environment.split(|byte| *byte == 0).any(|var| var == mark);
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let ended = stat
                .rsplit_once(')')
                .is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
            if bears && !ended {
                found.push(id);
            }
        }
        found
    }

    #[track_caller]
    fn is_gone(&self) {
        // A killed process may take a moment to leave the table.
        for _ in 0..100 {
            if self.bearers().is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("left behind: {:?}", self.bearers());
    }

    /// Ends what a command left behind by design.
    fn sweep(&self) {
        for id in self.bearers() {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
        self.is_gone();
    }
}

/// A watched command, with its record.
struct Watched {
    done: Done,
    record: Vec<Value>,
}

impl Watched {
    /// The notes of that name.
    fn notes<'r>(&'r self, name: &str) -> Vec<&'r Value> {
        self.record
            .iter()
            .filter(|line| line["note"] == name)
            .collect()
    }

    /// The only note of that name.
    #[track_caller]
    fn note(&self, name: &str) -> &Value {
        match self.notes(name)[..] {
            [note] => note,
            ref notes => panic!("{name}: {notes:?}\n{:#?}", self.record),
        }
    }

    /// The observations: kinds with times.
    fn events(&self) -> Vec<(&str, u64)> {
        self.record
            .iter()
            .filter_map(|line| Some((line["event"].as_str()?, line["t_ms"].as_u64()?)))
            .collect()
    }

    /// When the first observation of that kind was made.
    #[track_caller]
    fn first(&self, kind: &str) -> u64 {
        let found = self.events().into_iter().find(|(event, _)| *event == kind);
        found
            .unwrap_or_else(|| panic!("no {kind}: {:?}", self.events()))
            .1
    }

    fn outcome(&self) -> &str {
        self.note("outcome")["outcome"].as_str().unwrap()
    }

    /// The status, and what the record calls it.
    fn ended(&self) -> (Option<i32>, &str) {
        (self.done.code, self.outcome())
    }
}

/// A `watch` that runs.
struct Running {
    child: Child,
    mark: Mark,
    record: std::path::PathBuf,
}

impl Running {
    /// Sends `watch` itself a signal.
    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// What the record holds by now.
    fn record(&self) -> Vec<Value> {
        lines(&fs::read_to_string(&self.record).unwrap_or_default())
    }

    /// Waits until the record holds a line like that.
    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&Value) -> bool) {
        for _ in 0..3_000 {
            if self.record().iter().any(&is) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("never {what}: {:#?}", self.record());
    }

    /// Waits for the end. Nobody may be left.
    #[track_caller]
    fn end(self) -> Watched {
        let watched = self.end_with_others();
        watched.1.is_gone();
        watched.0
    }

    /// Waits for the end of `watch`; others may live on.
    fn end_with_others(self) -> (Watched, Mark) {
        let done = wait(self.child, "watch");
        let text = fs::read_to_string(&self.record).unwrap_or_default();
        let record = lines(&text);
        (Watched { done, record }, self.mark)
    }
}

/// The whole JSON lines of a text.
fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Starts `policysim watch OPTIONS --record record.jsonl -- COMMAND`.
fn begin(place: &Place, options: &str, command: &[&str]) -> Running {
    begin_as(place, options, command, "record.jsonl")
}

/// What `env` is told so that the suite's own way of being started (`nohup`, a job of a script) does not make commands deaf.
const HEEDED: &str = "--default-signal=HUP,INT,QUIT";

fn begin_as(place: &Place, options: &str, command: &[&str], record: &str) -> Running {
    let mark = Mark::new();
    // Of the run before in the same place.
    let _ = fs::remove_file(place.path(record));
    let mut watch = place.command("env");
    mark.put(&mut watch);
    watch
        .args([HEEDED, crate::POLICYSIM, "watch"])
        .args(options.split_whitespace())
        .args(["--record", record, "--"])
        .args(command);
    Running {
        child: watch.spawn().unwrap(),
        mark,
        record: place.path(record),
    }
}

/// Watches a command to its end. Nobody may be left.
#[track_caller]
fn watch(place: &Place, options: &str, command: &[&str]) -> Watched {
    begin(place, options, command).end()
}

/// Watches a shell script under a policy of one second.
#[track_caller]
fn script(options: &str, text: &str) -> Watched {
    let place = Place::new();
    place.write("p.toml", ONE_SECOND);
    let options = format!("--policy p.toml {options}");
    watch(&place, &options, &["sh", "-c", text])
}

/// A number in a line of the record.
#[track_caller]
fn ms(line: &Value, key: &str) -> u64 {
    line[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key}: {line}"))
}
