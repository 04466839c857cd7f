//! Terminals: who reads the keys, and a terminal for the command's output.
//!
//! With a terminal as standard input the command's group becomes the terminal's foreground group, so that the command
//! reads keys and gets Ctrl-C and Ctrl-Z itself; at the end the terminal is given back. Only a process of the
//! foreground group may hand it over without being stopped, so at the end a helper inside that group does: `watch`
//! itself, started with `--hand-terminal`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, getpgrp};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Winsize, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
    tcsetpgrp, tcsetwinsize,
};

/// Between two looks at the size of a terminal that the command has been lent: it alone is told of a change.
const SIZE_LOOK_MS: u64 = 250;

/// A pseudo-terminal for the command's output: our side and the command's. It changes no byte.
pub(super) fn open_pty() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(
        &ours,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    let mut modes = tcgetattr(&theirs)?;
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    if let Some(size) = our_size() {
        tcsetwinsize(&ours, size)?;
    }
    Ok((ours, theirs))
}

/// The size of the terminal that we are shown on, if any.
fn our_size() -> Option<Winsize> {
    tcgetwinsize(io::stdout())
        .or_else(|_| tcgetwinsize(io::stderr()))
        .or_else(|_| tcgetwinsize(io::stdin()))
        .ok()
}

/// The size of our terminal, which the command's terminal follows.
#[derive(Debug)]
pub(super) struct Window {
    size: Winsize,
    /// When to look, where nobody tells.
    next_ms: Option<u64>,
}

impl Window {
    /// Our terminal, if there is one. While it `is_lent` a change is told to the command and not to us.
    pub(super) fn ours(is_lent: bool) -> Option<Self> {
        Some(Self {
            size: our_size()?,
            next_ms: is_lent.then_some(SIZE_LOOK_MS),
        })
    }

    /// When to look next, ms since the start; none where a signal tells of a change.
    pub(super) const fn next_ms(&self) -> Option<u64> {
        self.next_ms
    }

    /// The size, if it is another one than at the last look.
    pub(super) fn changed(&mut self, now_ms: u64) -> Option<Winsize> {
        if let Some(next_ms) = &mut self.next_ms {
            *next_ms = now_ms.saturating_add(SIZE_LOOK_MS);
        }
        let size = our_size()?;
        let is_same = (size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel)
            == (
                self.size.ws_row,
                self.size.ws_col,
                self.size.ws_xpixel,
                self.size.ws_ypixel,
            );
        self.size = size;
        (!is_same).then_some(size)
    }
}

/// The terminal that the command has been lent.
#[derive(Debug)]
pub(super) struct Lent {
    /// The command's group.
    group: Pid,
}

impl Lent {
    /// Lends the terminal on standard input to the command's group, if there is one and it is ours to lend.
    pub(super) fn to(group: Pid) -> Option<Self> {
        let input = io::stdin();
        if !isatty(&input) || tcgetpgrp(&input).ok()? != getpgrp() {
            return None;
        }
        tcsetpgrp(&input, group).ok()?;
        Some(Self { group })
    }

    /// Lends it again after a stop, if the shell has given it back to us.
    pub(super) fn again(&self) {
        let input = io::stdin();
        if tcgetpgrp(&input).is_ok_and(|group| group == getpgrp()) {
            let _ = tcsetpgrp(&input, self.group);
        }
    }

    /// Takes it back, if the command's group still has it.
    pub(super) fn give_back(&self) {
        if tcgetpgrp(io::stdin()).is_ok_and(|group| group == self.group)
            && let Ok(helper) = std::env::current_exe()
        {
            // The command's leader is not reaped yet, so its group can still be joined.
            let _ = Command::new(helper)
                .args(["watch", "--hand-terminal"])
                .arg(getpgrp().as_raw_pid().to_string())
                .process_group(self.group.as_raw_pid())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// What the helper does: makes that group the terminal's foreground group.
pub(super) fn hand_over(group: i32) -> io::Result<()> {
    let group = Pid::from_raw(group)
        .ok_or_else(|| io::Error::other(format!("{group} is no process group")))?;
    tcsetpgrp(io::stdin(), group)?;
    Ok(())
}
