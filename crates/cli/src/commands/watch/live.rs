//! The main loop: what happens is observed, recorded and fed to the policies; what they decide is carried out.
//!
//! One thread per pipe, one for the command's end, one for signals; all tell this one, which alone holds the
//! watchdogs. It sleeps until the next message or the next instant at which a policy may have something to say.
//! An observation bears the instant at which it was read, but never one before the time that the watchdogs have
//! already been brought to: so a replay of the record meets the same order.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};
use policysim_policy::Kind;
use rustix::process::{Pid, Signal, kill_process_group};

use super::args::Count;
use super::child::{Exit, News, Started};
use super::clock::{Clock, Suspends};
use super::guard::Guard;
use super::look::{Burials, Status};
use super::observation::Observed;
use super::outcome::Outcome;
use super::pipes::{Intake, Pipe};
use super::record::Recorder;
use super::seen::Seen;
use super::session::SessionWatcher;
use super::signals::Continued;
use super::stream::Stream;
use super::terminal::{Lent, Window};
use super::tree::{Process, Tree};
use super::{child, nested, pipes, signals};

/// What the other threads tell.
#[derive(Debug)]
pub(super) enum Message {
    /// Bytes were read, and are being passed on.
    Bytes {
        pipe: Pipe,
        at_ms: u64,
        n_bytes: u64,
        /// The bytes themselves, where somebody looks into them.
        bytes: Vec<u8>,
    },
    /// The pipe is at its end, or nobody reads what is passed on.
    Closed {
        pipe: Pipe,
        /// Bytes of the last millisecond that were not told yet.
        untold_bytes: u64,
    },
    /// Something became of the command.
    Child { at_ms: u64, news: News },
    /// A signal to `watch`.
    Signal(i32),
}

/// Messages that may wait. A reader that is faster than the main loop waits instead of filling the memory.
const WAITING_MESSAGES: usize = 256;
/// How many messages are taken before time is looked at again.
const MESSAGES_AT_ONCE: usize = 1_024;
/// How long bytes that the command has written before are waited for: before a signal, and after its end.
pub(super) const LATE_BYTES_MS: u64 = 200;

/// How the other threads tell.
pub(super) struct Channel {
    pub(super) send: SyncSender<Message>,
    receive: Receiver<Message>,
    continued: Continued,
}

impl Channel {
    /// Opens it, and has signals told from now on: a command that is started after that never outlives a `watch` that
    /// is told to end.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    pub(super) fn open() -> Result<Self> {
        let (send, receive) = sync_channel(WAITING_MESSAGES);
        let continued = signals::heed(send.clone()).context("cannot wait for signals")?;
        Ok(Self {
            send,
            receive,
            continued,
        })
    }
}

/// What a run is watched with.
pub(super) struct Setup {
    pub(super) channel: Channel,
    pub(super) clock: Clock,
    pub(super) guards: Vec<Guard>,
    pub(super) record: Recorder,
    pub(super) session: SessionWatcher,
    /// The `watch` above whose clock is shared.
    pub(super) outer: Option<Process>,
    pub(super) stream: Stream,
    pub(super) tree: Tree,
    pub(super) count: Count,
    pub(super) deadline_ms: Option<u64>,
    pub(super) status_ms: Option<u64>,
    pub(super) pty: bool,
    pub(super) quiet: bool,
}

/// A watched run.
pub(super) struct Live {
    pub(super) clock: Clock,
    receive: Receiver<Message>,
    pub(super) continued: Continued,
    pub(super) guards: Vec<Guard>,
    pub(super) record: Recorder,
    pub(super) session: SessionWatcher,
    pub(super) outer: Option<Process>,
    pub(super) stream: Stream,
    pub(super) stdout: Intake,
    pub(super) stderr: Intake,
    pub(super) count: Count,
    pub(super) tree: Tree,
    pub(super) pid: Pid,
    pub(super) lent: Option<Lent>,
    /// Our terminal's size, where the command has a terminal that follows it.
    pub(super) window: Option<Window>,
    pub(super) suspends: Suspends,
    pub(super) status: Option<Status>,
    pub(super) quiet: bool,
    pub(super) pty: bool,
    pub(super) seen: Seen,
    /// The latest time that the watchdogs were brought to.
    pub(super) fed_ms: u64,
    /// Bytes that were seen and not yet fed: those of one instant are one observation.
    pub(super) unfed: Option<(u64, bool, u64)>,
    /// How the command ended, and when that was noticed.
    pub(super) ended: Option<(Exit, u64)>,
    pub(super) burials: Burials,
    /// The signal that `watch` is to end for.
    pub(super) interrupted: Option<u8>,
    /// Nothing is observed any more.
    pub(super) over: bool,
}

impl Live {
    /// Begins to watch a command that was just started.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn begin(setup: Setup, started: Started) -> Result<Self> {
        let Channel {
            send,
            receive,
            continued,
        } = setup.channel;
        let clock = setup.clock;
        let lent = Lent::to(started.pid);
        if lent.is_some() {
            // It may have tried to read before the terminal was its own.
            let _ = kill_process_group(started.pid, Signal::CONT);
        }
        let reader = |source: OwnedFd, pipe, parse, send: &SyncSender<Message>| {
            pipes::pass_through(source, pipe, parse, clock.clone(), send.clone())
                .context("cannot start a thread")
        };
        let parse = setup.stream.is_read();
        let stdout = reader(started.stdout, Pipe::Stdout, parse, &send)?;
        let stderr = reader(started.stderr, Pipe::Stderr, false, &send)?;
        child::wait_for(started.pid, clock.clone(), send).context("cannot start a thread")?;
        let mut live = Self {
            clock,
            receive,
            continued,
            guards: setup.guards,
            record: setup.record,
            session: setup.session,
            outer: setup.outer,
            stream: setup.stream,
            stdout,
            stderr,
            count: setup.count,
            tree: setup.tree,
            pid: started.pid,
            window: Window::ours(lent.is_some()).filter(|_| setup.pty),
            lent,
            suspends: Suspends::new(),
            status: setup.status_ms.map(Status::every),
            quiet: setup.quiet,
            pty: setup.pty,
            seen: Seen::default(),
            fed_ms: 0,
            unfed: None,
            ended: None,
            burials: Burials::default(),
            interrupted: None,
            over: false,
        };
        live.observe(
            0,
            &Observed::new(Kind::RunStart).announced(setup.deadline_ms),
        );
        live.observe(live.clock.now_ms(), &Observed::new(Kind::ProcessStart));
        live.tell_outer(Kind::ProcessStart);
        let first = live.session.first();
        live.note_session(first.state, first.reason);
        live.record.flush();
        Ok(live)
    }

    /// Watches until the command has ended or was ended.
    pub(super) fn watch(&mut self) -> Outcome {
        let outcome = loop {
            self.wait();
            if let Some(signal) = self.interrupted {
                break self.interrupt(signal);
            }
            if let Some((exit, at_ms)) = self.ended {
                break self.command_ended(exit, at_ms);
            }
            self.look_around();
            self.let_time_pass();
            if let Some(outcome) = self.act() {
                break outcome;
            }
            self.record.flush();
        };
        let outcome = self.drain(outcome);
        if let Some(lent) = &self.lent {
            lent.give_back();
        }
        outcome
    }

    /// Sleeps until something happens or is due, and takes what has happened.
    fn wait(&mut self) {
        let message = match self.wake_ms() {
            Some(at_ms) => self.receive.recv_timeout(self.clock.until(at_ms)),
            None => self
                .receive
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        if let Ok(message) = message {
            self.take(message);
        }
        self.take_waiting();
    }

    /// Takes one message, waiting for it at most so long.
    pub(super) fn take_within(&mut self, wait_ms: u64) {
        if let Ok(message) = self.receive.recv_timeout(Duration::from_millis(wait_ms)) {
            self.take(message);
        }
        self.take_waiting();
    }

    /// Takes the messages that wait.
    pub(super) fn take_waiting(&mut self) {
        for _ in 0..MESSAGES_AT_ONCE {
            let Ok(message) = self.receive.try_recv() else {
                break;
            };
            self.take(message);
        }
        self.feed_bytes();
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Bytes {
                pipe,
                at_ms,
                n_bytes,
                bytes,
            } => self.bytes(pipe, at_ms, n_bytes, &bytes),
            Message::Closed { pipe, untold_bytes } => {
                let is_stderr = pipe == Pipe::Stderr;
                self.seen.bytes(is_stderr, untold_bytes);
                let intake = if is_stderr {
                    &mut self.stderr
                } else {
                    &mut self.stdout
                };
                intake.closed = true;
                if !is_stderr {
                    self.stream_ended(self.clock.now_ms());
                }
            }
            Message::Child {
                at_ms,
                news: News::Ended(exit),
            } => self.ended = Some((exit, at_ms)),
            Message::Child {
                news: News::Stopped,
                ..
            } => {
                if self.lent.is_some() {
                    self.pause_job();
                }
            }
            Message::Signal(signal) if signal == Signal::TSTP.as_raw() => {
                let _ = kill_process_group(self.pid, Signal::TSTP);
                self.pause_job();
            }
            Message::Signal(signal) if signal == Signal::CHILD.as_raw() => {
                self.burials.are_due();
            }
            Message::Signal(signal) if signal == Signal::WINCH.as_raw() => self.look_at_window(),
            Message::Signal(signal) => match nested::told_by(signal) {
                Some(kind) => {
                    self.observe(self.clock.now_ms(), &Observed::new(kind).named("nested"));
                    self.tell_outer(kind);
                }
                None => self.interrupted = u8::try_from(signal).ok(),
            },
        }
    }

    /// The next instant at which there is something to do without a message.
    fn wake_ms(&self) -> Option<u64> {
        let policies = self.guards.iter().filter_map(Guard::wake_ms);
        let others = [
            self.signal_ms(),
            self.session.next_ms(),
            self.status.as_ref().map(Status::next_ms),
            self.window.as_ref().and_then(Window::next_ms),
        ];
        policies.chain(others.into_iter().flatten()).min()
    }
}
