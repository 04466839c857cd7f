//! End-to-end tests: they spawn `policysim` as a user does and link none of its code.
//!
//! Every command is bounded in time and runs inside a folder of its own, with an empty environment. The reference
//! data are looked for as every test of the workspace does: `POLICYSIM_SHARED`, else `../shared`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod browser;
mod certified;
mod conform;
mod corpus;
mod demo;
mod determinism;
mod errors;
mod fleet;
mod formats;
mod gaps;
mod gate;
mod help;
mod hostile;
mod interrupt;
mod local;
mod privacy;
mod regression;
mod report;
mod scenarios;
mod settle;
mod snapshots;
mod summary;
mod synth;
mod transcripts;
#[cfg(target_os = "linux")]
mod watch;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The program under test.
const POLICYSIM: &str = env!("CARGO_BIN_EXE_policysim");
/// Longer than any command takes on a loaded machine; a command that hangs fails its test.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a command printed and how it ended.
struct Done {
    command: String,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Done {
    /// Its standard output, after it succeeded.
    #[track_caller]
    fn ok(self) -> String {
        self.exits(0).stdout
    }

    #[track_caller]
    fn exits(self, code: i32) -> Self {
        let Self {
            command, stderr, ..
        } = &self;
        assert_eq!(self.code, Some(code), "{command}\n{stderr}");
        self
    }

    /// The one line that it failed with.
    #[track_caller]
    fn error(self) -> String {
        let done = self.exits(2);
        let line = done.stderr.trim_end_matches('\n');
        assert!(line.starts_with("error: "), "{}\n{line}", done.command);
        assert!(!line.contains('\n'), "{}\n{line}", done.command);
        assert_eq!(done.stdout, "", "{}", done.command);
        line.to_owned()
    }
}

/// A folder in which commands run; removed at the end.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn json(&self, name: &str) -> serde_json::Value {
        json(&String::from_utf8(self.read(name)).unwrap())
    }

    /// Runs `policysim` with the words of `line`.
    fn run(&self, line: &str) -> Done {
        self.run_args(line.split_whitespace())
    }

    fn run_args<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        let mut command = self.command(POLICYSIM);
        command.args(args);
        finish(&mut command)
    }

    /// A program in this folder, without the environment of the tests.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Runs a command to its end.
fn finish(command: &mut Command) -> Done {
    let child = command.spawn().unwrap();
    wait(child, &format!("{command:?}"))
}

/// Waits for a process that somebody else feeds.
fn wait(mut child: Child, command: &str) -> Done {
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let mut text = |from: &mpsc::Receiver<Vec<u8>>| {
        let Ok(bytes) = from.recv_timeout(PATIENCE) else {
            child.kill().unwrap();
            panic!("{command} did not end within {PATIENCE:?}")
        };
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    Done {
        command: command.to_owned(),
        code: child.wait().unwrap().code(),
        stdout,
        stderr,
    }
}

fn drain(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.map(|mut from| from.read_to_end(&mut bytes));
        send.send(bytes)
    });
    receive
}

/// Whether a file has this ending, written in small letters.
fn ends_in(path: impl AsRef<Path>, ending: &str) -> bool {
    path.as_ref()
        .extension()
        .is_some_and(|found| found == ending)
}

/// The root of the repository.
fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A folder of the reference data; none where they are not at hand.
fn shared(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("POLICYSIM_SHARED")
        .map_or_else(|| repository().join("../shared"), PathBuf::from);
    let path = root.join(folder);
    if !path.is_dir() {
        eprintln!("skipped: no {folder}");
        return None;
    }
    Some(fs::canonicalize(path).unwrap())
}

/// The files directly in a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (name(&path), fs::read(&path).unwrap()))
        .collect()
}

/// The names of everything directly in a folder, hidden things as well.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| name(&entry.unwrap().path()))
        .collect();
    names.sort();
    names
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON: {error}\n{text}"))
}

/// A result without what may differ between two places and versions: paths, version, digests of files.
fn filtered(text: &str, place: &Place) -> String {
    let text = text
        .replace(&*place.0.path().to_string_lossy(), "[PLACE]")
        .replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let manifest = place.json("telemetry/manifest.json");
    text.replace(manifest["digest"].as_str().unwrap(), "[DIGEST]")
}
