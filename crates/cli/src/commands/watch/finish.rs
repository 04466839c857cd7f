//! How a watched run comes to its end: by itself, by the policy, by a signal to `watch`; and what is done then.

use policysim_policy::{Kind, LateSuccess, Outcome as End};
use rustix::process::{
    Signal, getpgid, getpgrp, getppid, getsid, kill_current_process_group, kill_process_group,
};
use serde_json::{Value, json};

use super::child::Exit;
use super::live::{LATE_BYTES_MS, Live};
use super::observation::Observed;
use super::outcome::Outcome;
use super::pipes::Intake;
use super::stop::Scope;
use super::tell;

/// How long an empty pipe that somebody else holds open is read after the command's end.
const IDLE_PIPE_MS: u64 = 1_000;
/// How long a pipe is read into which somebody else goes on writing, and how long a reader of ours that takes nothing
/// is waited for after a kill.
const BUSY_PIPE_MS: u64 = 5_000;
/// The name of a suspend that was none of the host but of the job.
const STOPPED_JOB: &str = "stopped_job";
/// The grace after a signal to `watch` under a policy that gives none.
const INTERRUPT_GRACE_MS: u64 = 3_000;

impl Live {
    /// Ends the command because `watch` was told to end.
    pub(super) fn interrupt(&mut self, signal: u8) -> Outcome {
        let now_ms = self.clock.now_ms();
        self.observe(now_ms, &Observed::new(Kind::RunEnd).ending(End::Aborted));
        self.record
            .note("interrupted", now_ms, json!({ "signal": signal }));
        self.end_observation(now_ms, None);
        let first = Signal::from_named_raw(i32::from(signal)).unwrap_or(Signal::TERM);
        let grace_ms = match self.guards[0].policy.kill.grace.as_u64() {
            0 => INTERRUPT_GRACE_MS,
            grace_ms => grace_ms,
        };
        let living = self.tree.living();
        let stopped = self.stop(first, grace_ms, Scope::Tree, &living);
        tell::survivors(self, &stopped);
        Outcome::Interrupted {
            signal,
            exit: stopped.exit,
        }
    }

    /// The command has ended by itself.
    pub(super) fn command_ended(&mut self, exit: Exit, at_ms: u64) -> Outcome {
        // What it wrote before is still to be read.
        let until_ms = self.clock.now_ms().saturating_add(LATE_BYTES_MS);
        while (self.stdout.holds_untold() || self.stderr.holds_untold())
            && self.clock.now_ms() < until_ms
        {
            self.take_within(1);
        }
        self.take_waiting();
        self.stream_ended(at_ms);
        self.observe(at_ms, &Observed::new(Kind::ProcessExit));
        let fired = self.guards[0]
            .firing()
            .filter(|_| self.signal_ms().is_some())
            .cloned();
        let end = match exit {
            Exit::Code(0) => End::Completed,
            Exit::Signal(signal) if i32::from(signal) == Signal::INT.as_raw() => End::Aborted,
            _ => End::Failed,
        };
        self.observe(at_ms, &Observed::new(Kind::RunEnd).ending(end));
        self.end_observation(at_ms, None);
        let accepts = self.guards[0].policy.kill.late_success == LateSuccess::Accept;
        match fired {
            // It ended between the decision and the signal.
            Some(firing) if !(accepts && exit == Exit::Code(0)) => {
                tell::ended_first(self, &firing);
                Outcome::Killed {
                    cause: firing.verdict.cause,
                    exit: Some(exit),
                    succeeded: self.seen.succeeded(),
                    survived: self.stop_those_left_behind(),
                }
            }
            _ => Outcome::Ended(exit),
        }
    }

    /// The command has ended between the decision and the signal: what it left behind gets that signal. Whether some
    /// process survived.
    fn stop_those_left_behind(&mut self) -> bool {
        let living = self.tree.living();
        if living.is_empty() {
            return false;
        }
        let kill = self.guards[0].policy.kill;
        let scope = Scope::from(kill.scope);
        let stopped = self.stop(Signal::TERM, kill.grace.as_u64(), scope, &living);
        tell::survivors(self, &stopped);
        !stopped.survivors.is_empty()
    }

    /// Nothing is observed any more: what follows is our own doing.
    pub(super) fn end_observation(&mut self, at_ms: u64, late_ms: Option<u64>) {
        let mut line = json!({ "end": "observed", "t_ms": at_ms.max(self.fed_ms) });
        if let Some(late_ms) = late_ms {
            line["late_ms"] = json!(late_ms);
        }
        self.record.line(&line);
        self.record.flush();
        self.over = true;
    }

    /// Passes on what the command has written, to the last byte. Somebody else who holds the pipes open (a process
    /// that the command left behind, or one to which it gave them) is waited for a moment only. A reader of ours that
    /// takes nothing is waited for as the command itself would have waited; after a kill, a moment only. The outcome,
    /// which is another one when a signal cut this short.
    pub(super) fn drain(&mut self, outcome: Outcome) -> Outcome {
        let was_ended_by_us = !matches!(outcome, Outcome::Ended(_));
        let due = |intake: &Intake| intake.taken().saturating_add(intake.waiting());
        let (stdout_due, stderr_due) = (due(&self.stdout), due(&self.stderr));
        let begun_ms = self.clock.now_ms();
        let (mut busy_ms, mut moved_ms, mut moved) = (begun_ms, begun_ms, 0);
        while !(self.stdout.closed && self.stderr.closed) {
            let now_ms = self.clock.now_ms();
            let taken = self.stdout.taken().saturating_add(self.stderr.taken());
            if std::mem::replace(&mut moved, taken) != taken {
                moved_ms = now_ms;
            }
            let is_busy = |intake: &Intake| intake.holds_untold() || intake.is_blocked();
            if is_busy(&self.stdout) || is_busy(&self.stderr) {
                busy_ms = now_ms;
            }
            let all_passed =
                self.stdout.has_passed(stdout_due) && self.stderr.has_passed(stderr_due);
            let is_over = |since_ms: u64, limit_ms| now_ms.saturating_sub(since_ms) >= limit_ms;
            if is_over(busy_ms, IDLE_PIPE_MS)
                || all_passed && is_over(begun_ms, BUSY_PIPE_MS)
                || was_ended_by_us && is_over(moved_ms, BUSY_PIPE_MS)
            {
                break;
            }
            let interrupts = self.interrupted;
            self.take_within(20);
            match (self.interrupted, outcome) {
                (Some(signal), Outcome::Ended(exit)) => {
                    let exit = Some(exit);
                    return Outcome::Interrupted { signal, exit };
                }
                (interrupted, _) if interrupted != interrupts => break,
                _ => {}
            }
        }
        outcome
    }

    /// Stops with the command, as a job of a shell does, and goes on with it. Meanwhile the clock stands still, as it
    /// does while the host sleeps: no policy counts that as silence.
    pub(super) fn pause_job(&mut self) {
        let stopped_ms = self.clock.stand_still(|| {
            if is_a_job() {
                let before = self.continued.count();
                let _ = kill_current_process_group(Signal::STOP);
                // Whichever thread of ours comes to stop for it, the others run until then; it is over when the shell
                // has continued us.
                self.continued.wait(before);
            }
        });
        if let Some(lent) = &self.lent {
            lent.again();
        }
        let now_ms = self.clock.now_ms();
        let stopped = Observed::new(Kind::HostSuspend).named(STOPPED_JOB);
        self.observe(now_ms, &stopped.announced(Some(stopped_ms)));
        self.observe(now_ms, &Observed::new(Kind::HostResume).named(STOPPED_JOB));
        let _ = kill_process_group(self.pid, Signal::CONT);
    }

    /// Writes how it all ended.
    pub(super) fn conclude(&mut self, outcome: Outcome, status: u8) {
        let now_ms = self.clock.now_ms();
        let mut details = json!({ "outcome": outcome.name(), "status": status });
        details["child"] = outcome.exit().map_or(Value::Null, exit_fields);
        self.record.note("outcome", now_ms, details);
        self.record.flush();
    }
}

/// How a process ended, for the record.
pub(super) fn exit_fields(exit: Exit) -> Value {
    match exit {
        Exit::Code(code) => json!({ "code": code }),
        Exit::Signal(signal) => json!({ "signal": signal }),
        Exit::Unknown => Value::Null,
    }
}

/// Whether a shell of our session can continue us: our group is a job, and not the shell's own group.
fn is_a_job() -> bool {
    getppid().is_some_and(|parent| {
        getsid(Some(parent)).ok() == getsid(None).ok()
            && getpgid(Some(parent)).is_ok_and(|group| group != getpgrp())
    })
}
