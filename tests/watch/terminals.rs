//! A terminal on standard input: the command reads the keys and gets Ctrl-C, and the terminal is given back.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use super::{Mark, lines};
use crate::Place;

/// A shell with a terminal of its own, in which `policysim` can be called.
struct Terminal {
    place: Place,
    keys: File,
    shell: std::process::Child,
    mark: Mark,
}

impl Terminal {
    fn run(script: &str) -> Self {
        let place = Place::new();
        place.write("p.toml", "idle = \"60s\"\n[kill]\ngrace = \"1s\"\n");
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        let mark = Mark::new();
        let mut shell = place.command("setsid");
        mark.put(&mut shell);
        shell
            .args(["--ctty", "--wait", "sh", "-c", script])
            .env("POLICYSIM", crate::POLICYSIM)
            .stdin(Stdio::from(theirs));
        let shell = shell.spawn().unwrap();
        Self {
            place,
            keys: File::from(ours),
            shell,
            mark,
        }
    }

    fn until(&self, words: &str) {
        for _ in 0..3_000 {
            let text = fs::read_to_string(self.place.path("r.jsonl")).unwrap_or_default();
            if text.contains(words) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("never {words}");
    }

    fn end(self) -> (String, Vec<serde_json::Value>) {
        let done = crate::wait(self.shell, "setsid");
        let text = fs::read_to_string(self.place.path("r.jsonl")).unwrap_or_default();
        self.mark.is_gone();
        (done.stdout, lines(&text))
    }
}

const WATCH: &str = "\"$POLICYSIM\" watch --quiet --policy p.toml --record r.jsonl --";

/// The command reads what is typed; afterwards the shell does.
#[test]
fn the_command_reads_keys_and_gives_the_terminal_back() {
    let script = format!(
        "{WATCH} sh -c 'echo ready; read name; echo \"hello $name\"'; read rest; echo \"then $rest\""
    );
    let mut terminal = Terminal::run(&script);
    terminal.until("\"stdout\"");
    terminal.keys.write_all(b"you\n").unwrap();
    terminal.until("run_end");
    terminal.keys.write_all(b"me\n").unwrap();
    let (stdout, _) = terminal.end();
    assert_eq!(stdout, "ready\nhello you\nthen me\n");
}

/// Ctrl-C reaches the command, which may do with it what it likes; watch is not interrupted.
#[test]
fn ctrl_c_reaches_the_command() {
    let child = "trap \"echo caught; exit 9\" INT; echo ready; while :; do sleep 0.05; done";
    let mut terminal = Terminal::run(&format!("{WATCH} sh -c '{child}'; echo \"status $?\""));
    terminal.until("\"stdout\"");
    terminal.keys.write_all(&[3]).unwrap();
    let (stdout, record) = terminal.end();
    assert_eq!(stdout, "ready\ncaught\nstatus 9\n");
    let outcome = record
        .iter()
        .find(|line| line["note"] == "outcome")
        .unwrap();
    assert_eq!(outcome["outcome"], "exited");
}

/// Ctrl-Z stops the command, and the time until it is continued is a human's. Without a shell that could continue the
/// job, it is continued at once.
#[test]
fn ctrl_z_reaches_the_command() {
    let child = "echo ready; read name; echo \"hello $name\"";
    let mut terminal = Terminal::run(&format!("{WATCH} sh -c '{child}'"));
    terminal.until("\"stdout\"");
    terminal.keys.write_all(&[26]).unwrap();
    terminal.until("human_wait_end");
    terminal.keys.write_all(b"you\n").unwrap();
    let (stdout, record) = terminal.end();
    assert_eq!(stdout, "ready\nhello you\n");
    let kinds: Vec<&str> = record
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert!(kinds.contains(&"human_wait_start"), "{kinds:?}");
}

/// A kill gives the terminal back as well.
#[test]
fn a_kill_gives_the_terminal_back() {
    let script = format!(
        "{} sh -c 'echo ready; cat'; echo \"status $?\"; read rest; echo \"then $rest\"",
        WATCH.replace("p.toml", "p.toml --set idle.window=500ms")
    );
    let mut terminal = Terminal::run(&script);
    terminal.until("\"outcome\"");
    terminal.keys.write_all(b"me\n").unwrap();
    let (stdout, _) = terminal.end();
    assert_eq!(stdout, "ready\nstatus 124\nthen me\n");
}

/// A terminal as standard output is one in the size of ours, and its bytes are not changed.
#[test]
fn a_terminal_for_output_changes_no_byte() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let mut command: Command = place.command(crate::POLICYSIM);
    command.args(["watch", "--policy", "p.toml", "--pty", "--"]);
    command.args(["sh", "-c", "test -t 1 && printf 'a\\nb\\r\\nc\\t'"]);
    let mut child = command.spawn().unwrap();
    let mut bytes = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(bytes, b"a\nb\r\nc\t");
}
