//! What the policies have decided is carried out, after a last look at whether it still holds.

use rustix::process::Signal;
use serde_json::json;

use super::child::Exit;
use super::guard::Power;
use super::live::{LATE_BYTES_MS, Live};
use super::outcome::Outcome;
use super::pipes::Intake;
use super::stop::Scope;
use super::tell;
use super::tree::{Process, used_ms};

/// From this lateness on, `watch` itself did not run when it should have.
const NOT_SCHEDULED_MS: u64 = 250;

impl Live {
    /// When the enforced policy's firing is to be carried out.
    pub(super) fn signal_ms(&self) -> Option<u64> {
        let guard = &self.guards[0];
        let firing = guard.firing().filter(|_| guard.power == Power::Enforces)?;
        let delay_ms = guard.policy.kill.delay.as_u64();
        Some(firing.decided_ms.saturating_add(delay_ms))
    }

    /// Carries out what the policies have decided; the outcome, if that ends the run.
    pub(super) fn act(&mut self) -> Option<Outcome> {
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
            if self.is_off() {
                return true;
            }
            let waits = |intake: &Intake| intake.holds_untold() && !intake.is_blocked();
            let untold = waits(&self.stdout) || waits(&self.stderr);
            if self.clock.now_ms() >= until_ms {
                return false;
            }
            if !untold {
                // Told since the last look, if at all.
                self.take_waiting();
                return self.is_off();
            }
            self.take_within(1);
        }
    }

    /// Whether there is no reason for a signal any more.
    fn is_off(&self) -> bool {
        self.signal_ms().is_none() || self.ended.is_some() || self.interrupted.is_some()
    }

    /// Ends the command, whose processes are these, for the enforced policy's firing.
    fn kill(&mut self, living: &[Process]) -> Outcome {
        let acted_ms = self.clock.now_ms();
        let kill = self.guards[0].policy.kill;
        let Some(firing) = self.guards[0].firing().cloned() else {
            return Outcome::Ended(Exit::Unknown);
        };
        let due_ms = firing.verdict.at.plus(kill.delay).as_u64();
        let lateness_ms = acted_ms.saturating_sub(due_ms);
        let late_ms = (lateness_ms >= NOT_SCHEDULED_MS).then_some(lateness_ms);
        let used_ms = used_ms(living);
        let mut details = json!({
            "verdict": firing.verdict.cause.name(),
            "deadline_ms": firing.verdict.at.as_u64(),
            "decided_ms": firing.decided_ms,
            "acted_ms": acted_ms,
            "lateness_ms": lateness_ms,
            "stdout": if self.pty { "terminal" } else { "pipe" },
            "stdout_bytes": self.seen.stdout_bytes(),
            "stderr_bytes": self.seen.stderr_bytes(),
            "used_cpu_ms": used_ms,
        });
        if late_ms.is_some() {
            details["reason"] = json!("watcher_not_scheduled");
        }
        self.record.note("kill", acted_ms, details);
        self.end_observation(acted_ms, late_ms);
        let scope = Scope::from(kill.scope);
        let stopped = self.stop(Signal::TERM, kill.grace.as_u64(), scope, living);
        tell::killed(self, &firing, used_ms, &stopped);
        Outcome::Killed {
            cause: firing.verdict.cause,
            exit: stopped.exit,
            succeeded: self.seen.succeeded(),
            survived: !stopped.survivors.is_empty(),
        }
    }
}
