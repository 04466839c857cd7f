//! Signals that reach `watch` itself.

use std::fs;
use std::io;
use std::sync::mpsc::SyncSender;
use std::thread;

use signal_hook::consts::{
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

use super::live::Message;

/// Those that end the command, the one that a terminal stops a job with, and those that tell of ended processes, of a
/// terminal's new size, and of what an inner `watch` has seen.
const HEEDED: [i32; 9] = [
    SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
];

/// Starts the thread that tells of them. What our own parent made us ignore (`nohup`) stays ignored.
pub(super) fn heed(send: SyncSender<Message>) -> io::Result<()> {
    let ignored = ignored_signals();
    let heeded = HEEDED
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heeded)?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in &mut signals {
                if send.send(Message::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
    Ok(())
}

/// The set of ignored signals, a bit each, from the first.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
