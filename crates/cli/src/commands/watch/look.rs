//! What nobody tells and has to be looked at: the clocks, the session log, ended orphans, the size of the
//! terminal, whether a status line is due.

use policysim_policy::Kind;
use rustix::process::{Signal, kill_process_group};
use serde_json::json;

use super::clock::Reading;
use super::live::Live;
use super::observation::Observed;
use super::tell;
use super::terminal::Window;

/// How long ended orphans may lie about.
const BURIAL_MS: u64 = 1_000;

/// When to take the status of ended processes that nobody else waits for.
#[derive(Default)]
pub(super) struct Burials {
    are_due: bool,
    last_ms: u64,
}

impl Burials {
    /// Some process has ended.
    pub(super) const fn are_due(&mut self) {
        self.are_due = true;
    }

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
pub(super) struct Status {
    every_ms: u64,
    next_ms: u64,
}

impl Status {
    /// Every so many milliseconds.
    pub(super) const fn every(every_ms: u64) -> Self {
        Self {
            every_ms,
            next_ms: every_ms,
        }
    }

    /// When next, ms since the start.
    pub(super) const fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// Whether it is time. From now on: lines that were missed are not made up for.
    fn begin(&mut self, now_ms: u64) -> bool {
        let begins = self.next_ms <= now_ms;
        if begins {
            self.next_ms = now_ms.saturating_add(self.every_ms);
        }
        begins
    }
}

impl Live {
    /// Looks at what nobody tells: the clocks, the session log, whether a status line is due.
    pub(super) fn look_around(&mut self) {
        let now_ms = self.clock.now_ms();
        if let Some(slept_ms) = self.suspends.look(Reading::now()) {
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
        let looks = |window: &Window| window.next_ms().is_some_and(|next| next <= now_ms);
        if self.window.as_ref().is_some_and(looks) {
            self.look_at_window();
        }
        if self
            .status
            .as_mut()
            .is_some_and(|status| status.begin(now_ms))
        {
            tell::status(self, now_ms);
        }
    }

    /// Passes a new size of our terminal on to the command's, and tells the command.
    pub(super) fn look_at_window(&mut self) {
        let now_ms = self.clock.now_ms();
        let changed = self
            .window
            .as_mut()
            .and_then(|window| window.changed(now_ms));
        if let Some(size) = changed {
            self.stdout.resize(size);
            let _ = kill_process_group(self.pid, Signal::WINCH);
        }
    }

    pub(super) fn look_at_session(&mut self) {
        let now_ms = self.clock.now_ms();
        let look = self.session.look(now_ms, self.stream.session());
        if let Some(change) = look.change {
            self.note_session(change.state, change.reason);
        }
        if look.advanced {
            self.observe(now_ms, &Observed::new(Kind::SessionAdvance));
            self.tell_outer(Kind::SessionAdvance);
        }
    }

    pub(super) fn note_session(&mut self, state: &str, reason: &str) {
        let now_ms = self.clock.now_ms();
        self.record.note(
            "session",
            now_ms,
            json!({ "state": state, "reason": reason }),
        );
    }
}
