//! Signals that reach `watch` itself.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

use super::live::Message;

/// Those that end the command, those that stop a job and continue it, and those that tell of ended processes, of a
/// terminal's new size, and of what an inner `watch` has seen.
const HEEDED: [i32; 10] = [
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
];
/// How often is looked whether we were continued.
const LOOK: Duration = Duration::from_millis(1);
/// After so many looks nobody has stopped us: two seconds, in which a stopped process makes none.
const LOOKS: u32 = 2_000;

/// How often we were continued after a stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Continued(Arc<AtomicU64>);

impl Continued {
    /// So often until now.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until that is more than `before`.
    pub(super) fn wait(&self, before: u64) {
        for _ in 0..LOOKS {
            if self.count() > before {
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Starts the thread that tells of them. What our own parent made us ignore (`nohup`) stays ignored.
pub(super) fn heed(send: SyncSender<Message>) -> io::Result<Continued> {
    let ignored = ignored_signals();
    let heeded = HEEDED
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heeded)?;
    let continued = Continued::default();
    let counter = continued.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in &mut signals {
                if signal == SIGCONT {
                    counter.0.fetch_add(1, Ordering::SeqCst);
                } else if send.send(Message::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
    Ok(continued)
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
