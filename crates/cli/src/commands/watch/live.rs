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
use policysim_sim::replay::{KILL_CANCELLED, KILL_WITHHELD};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use super::args::Count;
use super::child::{Exit, News, Started};
use super::clock::{Clock, Suspends};
use super::guard::{Guard, Power};
use super::observation::Observed;
use super::outcome::Outcome;
use super::pipes::{Intake, Pipe};
use super::record::Recorder;
use super::seen::Seen;
use super::session::SessionWatcher;
use super::stream::Stream;
use super::terminal::Lent;
use super::tree::Tree;
use super::{child, pipes, signals, tell};

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

/// How long ended orphans may lie about.
const BURIAL_MS: u64 = 1_000;

/// How the other threads tell.
pub(super) struct Channel {
    pub(super) send: SyncSender<Message>,
    receive: Receiver<Message>,
}

impl Channel {
    /// Opens it, and has signals told from now on: a command that is started after that never outlives a `watch` that
    /// is told to end.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    pub(super) fn open() -> Result<Self> {
        let (send, receive) = sync_channel(WAITING_MESSAGES);
        signals::heed(send.clone()).context("cannot wait for signals")?;
        Ok(Self { send, receive })
    }
}

/// What a run is watched with.
pub(super) struct Setup {
    pub(super) channel: Channel,
    pub(super) clock: Clock,
    pub(super) guards: Vec<Guard>,
    pub(super) record: Recorder,
    pub(super) session: SessionWatcher,
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
    pub(super) guards: Vec<Guard>,
    pub(super) record: Recorder,
    session: SessionWatcher,
    stream: Stream,
    pub(super) stdout: Intake,
    pub(super) stderr: Intake,
    count: Count,
    pub(super) tree: Tree,
    pub(super) pid: Pid,
    pub(super) lent: Option<Lent>,
    suspends: Suspends,
    status: Option<Status>,
    pub(super) quiet: bool,
    pub(super) pty: bool,
    pub(super) seen: Seen,
    /// The latest time that the watchdogs were brought to.
    pub(super) fed_ms: u64,
    /// Bytes that were seen and not yet fed: those of one instant are one observation.
    unfed: Option<(u64, bool, u64)>,
    /// How the command ended, and when that was noticed.
    pub(super) ended: Option<(Exit, u64)>,
    burials: Burials,
    /// The signal that `watch` is to end for.
    pub(super) interrupted: Option<u8>,
    /// Nothing is observed any more.
    pub(super) over: bool,
}

/// When to take the status of ended processes that nobody else waits for.
#[derive(Default)]
struct Burials {
    are_due: bool,
    last_ms: u64,
}

impl Burials {
    /// Whether it is time. Rarely: looking through all processes takes a while.
    fn begin(&mut self, now_ms: u64) -> bool {
        let begins = self.are_due && now_ms.saturating_sub(self.last_ms) >= BURIAL_MS;
        if begins {
            (self.are_due, self.last_ms) = (false, now_ms);
        }
        begins
    }
}

/// When to say how long ago the last activity was.
struct Status {
    every_ms: u64,
    next_ms: u64,
}

impl Live {
    /// Begins to watch a command that was just started.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn begin(setup: Setup, started: Started) -> Result<Self> {
        let Channel { send, receive } = setup.channel;
        let clock = setup.clock;
        let lent = Lent::to(started.pid);
        if lent.is_some() {
            // It may have tried to read before the terminal was its own.
            let _ = kill_process_group(started.pid, Signal::CONT);
        }
        let reader = |source: OwnedFd, pipe, parse, send: &SyncSender<Message>| {
            pipes::pass_through(source, pipe, parse, clock, send.clone())
                .context("cannot start a thread")
        };
        let parse = setup.stream.is_read();
        let stdout = reader(started.stdout, Pipe::Stdout, parse, &send)?;
        let stderr = reader(started.stderr, Pipe::Stderr, false, &send)?;
        child::wait_for(started.pid, clock, send).context("cannot start a thread")?;
        let mut live = Self {
            clock,
            receive,
            guards: setup.guards,
            record: setup.record,
            session: setup.session,
            stream: setup.stream,
            stdout,
            stderr,
            count: setup.count,
            tree: setup.tree,
            pid: started.pid,
            lent,
            suspends: Suspends::new(),
            status: setup.status_ms.map(|every_ms| Status {
                every_ms,
                next_ms: every_ms,
            }),
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
        live.observe(clock.now_ms(), &Observed::new(Kind::ProcessStart));
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
        self.drain();
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
                self.burials.are_due = true;
            }
            Message::Signal(signal) => {
                self.interrupted = u8::try_from(signal).ok();
            }
        }
    }

    fn bytes(&mut self, pipe: Pipe, at_ms: u64, n_bytes: u64, bytes: &[u8]) {
        let is_stderr = pipe == Pipe::Stderr;
        self.seen.bytes(is_stderr, n_bytes);
        let counts = match self.count {
            Count::Both => true,
            Count::Stdout => !is_stderr,
            Count::Stderr => is_stderr,
        };
        if counts {
            match &mut self.unfed {
                Some((at, of_stderr, n)) if (*at, *of_stderr) == (at_ms, is_stderr) => {
                    *n = n.saturating_add(n_bytes);
                }
                _ => {
                    self.feed_bytes();
                    self.unfed = Some((at_ms, is_stderr, n_bytes));
                }
            }
        }
        if bytes.is_empty() || is_stderr {
            return;
        }
        let known = self.stream.format();
        let said = self.stream.take(bytes);
        if !self.stream.is_read() {
            self.stdout.only_count();
        }
        if let Some(format) = self.stream.format().filter(|_| known.is_none()) {
            self.record
                .note("stream", at_ms, json!({ "format": format }));
        }
        for observed in &said {
            self.observe(at_ms, observed);
        }
    }

    fn feed_bytes(&mut self) {
        if let Some((at_ms, is_stderr, n_bytes)) = self.unfed.take() {
            self.observe_now(at_ms, &Observed::bytes(n_bytes, is_stderr));
        }
    }

    /// Records and feeds what happened at `at_ms`, after what happened before.
    pub(super) fn observe(&mut self, at_ms: u64, observed: &Observed) {
        self.feed_bytes();
        self.observe_now(at_ms, observed);
    }

    fn observe_now(&mut self, at_ms: u64, observed: &Observed) {
        if self.over {
            return;
        }
        // After its end the command has written nothing: what is read then was written before.
        let latest = self.ended.map_or(u64::MAX, |(_, at_ms)| at_ms);
        let at_ms = at_ms.min(latest).max(self.fed_ms);
        self.fed_ms = at_ms;
        self.seen.event(at_ms, observed);
        self.pass(at_ms, at_ms);
        let event = observed.event();
        let first = &self.guards[0];
        if first.is_revived_by(&event) {
            let name = match first.power {
                Power::Enforces => KILL_CANCELLED,
                _ => KILL_WITHHELD,
            };
            self.begin_again(at_ms, name, observed);
        } else {
            self.record.event(at_ms, observed);
            self.guards[0].feed(at_ms, &event);
        }
        for guard in &mut self.guards[1..] {
            guard.feed(at_ms, &event);
        }
        self.tell_facts(at_ms);
    }

    /// Activity takes back the first policy's firing: that is marked, and a new watchdog starts from the activity.
    fn begin_again(&mut self, at_ms: u64, name: &str, activity: &Observed) {
        let mark = Observed::other(name);
        self.record.event(at_ms, &mark);
        for guard in &mut self.guards[1..] {
            guard.feed(at_ms, &mark.event());
        }
        self.record.event(at_ms, activity);
        let guard = &mut self.guards[0];
        if let Some(firing) = guard.firing() {
            let details = json!({
                "deadline_ms": firing.verdict.at.as_u64(),
                "decided_ms": firing.decided_ms,
                "activity_ms": at_ms,
                "by": activity.kind.name(),
            });
            self.record.note(name, at_ms, details);
        }
        guard.begin_again(at_ms, &activity.event());
    }

    /// Brings every policy to `until_ms`.
    fn pass(&mut self, until_ms: u64, now_ms: u64) {
        for guard in &mut self.guards {
            guard.pass(until_ms, now_ms);
        }
        self.tell_facts(now_ms);
    }

    fn tell_facts(&mut self, now_ms: u64) {
        for (number, guard) in self.guards.iter_mut().enumerate() {
            while let Some(fact) = guard.fact() {
                self.record.fact(number, &fact, now_ms);
            }
        }
    }

    /// Brings the policies to this instant, if one of them has something due.
    fn let_time_pass(&mut self) {
        let now_ms = self.clock.now_ms();
        let due = self.guards.iter().filter_map(Guard::wake_ms).min();
        if due.is_some_and(|due| due <= now_ms) {
            self.fed_ms = self.fed_ms.max(now_ms);
            self.pass(now_ms, now_ms);
        }
    }

    /// The next instant at which there is something to do without a message.
    fn wake_ms(&self) -> Option<u64> {
        let policies = self.guards.iter().filter_map(Guard::wake_ms);
        let others = [
            self.signal_ms(),
            self.session.next_ms(),
            self.status.as_ref().map(|status| status.next_ms),
        ];
        policies.chain(others.into_iter().flatten()).min()
    }

    /// When the enforced policy's firing is to be carried out.
    pub(super) fn signal_ms(&self) -> Option<u64> {
        let guard = &self.guards[0];
        let firing = guard.firing().filter(|_| guard.power == Power::Enforces)?;
        let delay_ms = guard.policy.kill.delay.as_u64();
        Some(firing.decided_ms.saturating_add(delay_ms))
    }

    /// Looks at what nobody tells: the clocks, the session log, whether a status line is due.
    fn look_around(&mut self) {
        let now_ms = self.clock.now_ms();
        if let Some(slept_ms) = self.suspends.look() {
            let slept = Observed::new(Kind::HostSuspend).announced(Some(slept_ms));
            self.observe(now_ms, &slept);
            self.observe(now_ms, &Observed::new(Kind::HostResume));
        }
        if self.session.next_ms().is_some_and(|next| next <= now_ms) {
            self.look_at_session();
        }
        if self.burials.begin(now_ms) {
            self.tree.reap_orphans(self.pid);
        }
        if let Some(status) = &mut self.status
            && status.next_ms <= now_ms
        {
            // From now on: lines that were missed are not made up for.
            status.next_ms = now_ms.saturating_add(status.every_ms);
            tell::status(self, now_ms);
        }
    }

    fn look_at_session(&mut self) {
        let now_ms = self.clock.now_ms();
        let look = self.session.look(now_ms, self.stream.session());
        if let Some(change) = look.change {
            self.note_session(change.state, change.reason);
        }
        if look.advanced {
            self.observe(now_ms, &Observed::new(Kind::SessionAdvance));
        }
    }

    fn note_session(&mut self, state: &str, reason: &str) {
        let now_ms = self.clock.now_ms();
        self.record.note(
            "session",
            now_ms,
            json!({ "state": state, "reason": reason }),
        );
    }

    /// Carries out what the policies have decided; the outcome, if that ends the run.
    fn act(&mut self) -> Option<Outcome> {
        let now_ms = self.clock.now_ms();
        for number in 0..self.guards.len() {
            if self.guards[number].power != Power::Enforces && self.guards[number].tell_once() {
                tell::would_have_killed(self, number, now_ms);
            }
        }
        if self.signal_ms()? > now_ms {
            return None;
        }
        // Looked up first, as that takes a while: nothing shall lie between the last look and the signal.
        let living = self.tree.living();
        if self.is_taken_back() {
            return None;
        }
        Some(self.kill(&living))
    }

    /// Looks once more, just before the signal, for activity that arrived meanwhile.
    fn is_taken_back(&mut self) -> bool {
        let until_ms = self.clock.now_ms().saturating_add(LATE_BYTES_MS);
        self.look_at_session();
        loop {
            self.take_waiting();
            if self.signal_ms().is_none() || self.ended.is_some() || self.interrupted.is_some() {
                return true;
            }
            let waits = |intake: &Intake| intake.holds_bytes() && !intake.is_blocked();
            let unread = waits(&self.stdout) || waits(&self.stderr);
            if self.clock.now_ms() >= until_ms {
                return false;
            }
            // Also what was read and is about to be told.
            self.take_within(1);
            if !unread {
                return self.signal_ms().is_none();
            }
        }
    }
}
