//! A terminal on standard input: the command reads the keys and gets Ctrl-C, and the terminal is given back.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{HEEDED, Mark, lines};
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
        tcsetwinsize(&ours, size(24, 80)).unwrap();
        let mark = Mark::new();
        let mut shell = place.command("env");
        mark.put(&mut shell);
        shell
            .args([HEEDED, "setsid", "--ctty", "--wait", "sh", "-c", script])
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

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
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

/// Ctrl-Z stops the command. Without a shell that could continue the job, it is continued at once.
#[test]
fn ctrl_z_reaches_the_command() {
    let child = "echo ready; read name; echo \"hello $name\"";
    let mut terminal = Terminal::run(&format!("{WATCH} sh -c '{child}'"));
    terminal.until("\"stdout\"");
    terminal.keys.write_all(&[26]).unwrap();
    terminal.until("host_resume");
    terminal.keys.write_all(b"you\n").unwrap();
    let (stdout, record) = terminal.end();
    assert_eq!(stdout, "ready\nhello you\n");
    let kinds: Vec<&str> = record
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert!(kinds.contains(&"host_suspend"), "{kinds:?}");
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

/// What tells its terminal's size at the start and whenever it is told of another one, until that is 40 x 100.
const TELLS_ITS_SIZE: &str = "exec 3>&1; stty size <&3; \
     trap 's=$(stty size <&3); echo $s; test \"$s\" = \"40 100\" && exit 0' WINCH; \
     : > armed; while :; do sleep 0.05; done";

/// The command's own terminal has the size of ours, also when that changes.
#[test]
fn a_terminal_for_output_follows_the_size_of_ours() {
    // With our terminal as its input the command has been lent it, and the system tells the command alone of a change;
    // without, watch alone.
    for input in ["", "2>&0 < /dev/null"] {
        let watch = WATCH.replace("--quiet", "--quiet --pty");
        let script = format!("{watch} sh -c \"$CHILD\" {input}; echo \"status $?\"");
        let script = format!(
            "CHILD='{}'; {script}",
            TELLS_ITS_SIZE.replace('\'', r"'\''")
        );
        let terminal = Terminal::run(&script);
        terminal.until("\"stdout\"");
        while !terminal.place.path("armed").exists() {
            thread::sleep(Duration::from_millis(20));
        }
        tcsetwinsize(&terminal.keys, size(40, 100)).unwrap();
        let (stdout, _) = terminal.end();
        assert!(stdout.starts_with("24 80\n"), "{input}: {stdout}");
        assert!(stdout.ends_with("40 100\nstatus 0\n"), "{input}: {stdout}");
    }
}

/// Under a shell with jobs Ctrl-Z stops the job, `watch` and the command together, until the shell continues it. That
/// is silence under no policy, not even one that pauses for nothing.
#[test]
fn ctrl_z_stops_the_job_and_the_shell_continues_it() {
    let child = "echo ready; read name; echo \"hello $name\"";
    let policy = "--policy no-mistakes-silence --set idle.window=3s";
    let watch = WATCH.replace("--policy p.toml", policy);
    let script = format!(
        "set -m; {watch} sh -c '{child}'; test $? -gt 128 && echo stopped; sleep 6; fg > /dev/null; echo \"status $?\""
    );
    let mut terminal = Terminal::run(&script);
    terminal.until("\"stdout\"");
    terminal.keys.write_all(&[26]).unwrap();
    terminal.until("host_resume");
    terminal.keys.write_all(b"you\n").unwrap();
    let (stdout, record) = terminal.end();
    assert_eq!(stdout, "ready\nstopped\nhello you\nstatus 0\n");
    let event = |kind: &str| record.iter().find(|line| line["event"] == kind).unwrap();
    let stopped = event("host_suspend");
    assert_eq!(stopped["name"], "stopped_job");
    assert!(super::ms(stopped, "announced_ms") >= 5_500, "{stopped}");
    // The time in which it was stopped is no time of the run.
    assert!(super::ms(event("run_end"), "t_ms") < 6_000, "{record:#?}");
    assert!(
        record.iter().all(|line| line["fact"] != "fired"),
        "{record:#?}"
    );
}
