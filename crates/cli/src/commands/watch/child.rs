//! The command as a process: how it is started, and what becomes of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::clock::Clock;
use super::live::Message;
use super::terminal;

/// How the command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Exit {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
    /// Somebody else has taken its status.
    Unknown,
}

impl Exit {
    /// The exit status a shell gives for it.
    pub(super) const fn status(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_u8.saturating_add(signal),
            Self::Unknown => super::outcome::WATCH_FAILED,
        }
    }
}

/// News of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// It ended; its process id stays taken until `watch` ends, so the group's id cannot be another's.
    Ended(Exit),
    /// It was stopped.
    Stopped,
}

/// A started command.
pub(super) struct Started {
    /// Its process, and the group that it leads.
    pub(super) pid: Pid,
    /// What it writes.
    pub(super) stdout: OwnedFd,
    /// What it complains of.
    pub(super) stderr: OwnedFd,
}

/// Starts the command as the leader of a group of its own, with our environment and standard input.
///
/// # Errors
/// What the system answered.
pub(super) fn start(command: &[OsString], pty: bool) -> io::Result<Started> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let mut starting = Command::new(program);
    starting
        .args(arguments)
        .process_group(0)
        .stderr(Stdio::piped());
    let terminal = if pty {
        let (ours, theirs) = terminal::open_pty()?;
        starting.stdout(theirs);
        Some(ours)
    } else {
        starting.stdout(Stdio::piped());
        None
    };
    let mut child = starting.spawn()?;
    // The builder holds the command's side of the terminal, whose end would never be seen.
    drop(starting);
    let taken = || io::Error::other("the output of the command is not there");
    let stdout = match terminal {
        Some(ours) => ours,
        None => OwnedFd::from(child.stdout.take().ok_or_else(taken)?),
    };
    Ok(Started {
        pid: Pid::from_child(&child),
        stdout,
        stderr: OwnedFd::from(child.stderr.take().ok_or_else(taken)?),
    })
}

/// Starts the thread that waits for the command.
pub(super) fn wait_for(pid: Pid, clock: Clock, send: SyncSender<Message>) -> io::Result<()> {
    let tell = move |news| {
        let at_ms = clock.now_ms();
        send.send(Message::Child { at_ms, news }).is_ok()
    };
    thread::Builder::new()
        .name("command".to_owned())
        .spawn(move || {
            loop {
                match next_state(pid) {
                    State::Ended(exit) => {
                        tell(News::Ended(exit));
                        return;
                    }
                    State::Stopped => {
                        if !tell(News::Stopped) {
                            return;
                        }
                    }
                    State::Other => {}
                }
            }
        })?;
    Ok(())
}

enum State {
    Ended(Exit),
    Stopped,
    Other,
}

/// Waits for the next change of the command's state. Its end is only looked at: the process stays to be reaped.
fn next_state(pid: Pid) -> State {
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    let status = match waitid(WaitId::Pid(pid), any) {
        Ok(Some(status)) => status,
        Ok(None) | Err(Errno::INTR) => return State::Other,
        Err(_) => return State::Ended(Exit::Unknown),
    };
    let small = |number: Option<i32>| number.and_then(|number| u8::try_from(number).ok());
    if status.exited() {
        return State::Ended(small(status.exit_status()).map_or(Exit::Unknown, Exit::Code));
    }
    if status.killed() || status.dumped() {
        let signal = small(status.terminating_signal());
        return State::Ended(signal.map_or(Exit::Unknown, Exit::Signal));
    }
    // A stop is taken, or the next look would find it again.
    let taken = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::STOPPED | WaitIdOptions::NOHANG,
    );
    match taken {
        Ok(_) => State::Stopped,
        Err(_) => State::Other,
    }
}
