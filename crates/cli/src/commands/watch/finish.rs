//! How a watched run comes to its end: by itself, by the policy, by a signal to `watch`; and what is done then.

use std::time::Duration;

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
use super::tree::{Process, used_ms};

/// From this lateness on, `watch` itself did not run when it should have.
const NOT_SCHEDULED_MS: u64 = 250;
/// How long an empty pipe that somebody else holds open is read after the command's end.
const IDLE_PIPE_MS: u64 = 1_000;
/// How long a pipe is read into which somebody else goes on writing.
const BUSY_PIPE_MS: u64 = 5_000;
/// The grace after a signal to `watch` under a policy that gives none.
const INTERRUPT_GRACE_MS: u64 = 3_000;

impl Live {
    /// Ends the command, whose processes are these, for the enforced policy's firing.
    pub(super) fn kill(&mut self, living: &[Process]) -> Outcome {
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
        while !(self.stdout.closed && self.stderr.closed)
            && (self.stdout.holds_bytes() || self.stderr.holds_bytes())
            && self.clock.now_ms() < until_ms
        {
            self.take_within(1);
        }
        self.take_waiting();
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
                    survived: false,
                }
            }
            _ => Outcome::Ended(exit),
        }
    }

    /// Nothing is observed any more: what follows is our own doing.
    fn end_observation(&mut self, at_ms: u64, late_ms: Option<u64>) {
        let mut line = json!({ "end": "observed", "t_ms": at_ms.max(self.fed_ms) });
        if let Some(late_ms) = late_ms {
            line["late_ms"] = json!(late_ms);
        }
        self.record.line(&line);
        self.record.flush();
        self.over = true;
    }

    /// Passes on what the command has written, to the last byte. Somebody else who holds the pipes open (a process
    /// that the command left behind) is waited for a moment only.
    pub(super) fn drain(&mut self) {
        let begun_ms = self.clock.now_ms();
        let mut busy_ms = begun_ms;
        while !(self.stdout.closed && self.stderr.closed) {
            let now_ms = self.clock.now_ms();
            let has_bytes = |intake: &Intake| intake.holds_bytes() || intake.is_blocked();
            if has_bytes(&self.stdout) || has_bytes(&self.stderr) {
                busy_ms = now_ms;
                let is_long = now_ms.saturating_sub(begun_ms) >= BUSY_PIPE_MS;
                if is_long && !self.tree.living().is_empty() {
                    break;
                }
            } else if now_ms.saturating_sub(busy_ms) >= IDLE_PIPE_MS {
                break;
            }
            let interrupts = self.interrupted;
            self.take_within(20);
            if self.interrupted.is_some() && self.interrupted != interrupts {
                break;
            }
        }
    }

    /// Stops with the command, as a job of a shell does, and goes on with it. Meanwhile a human has it.
    pub(super) fn pause_job(&mut self) {
        let now_ms = self.clock.now_ms();
        self.observe(now_ms, &Observed::new(Kind::HumanWaitStart).about("job"));
        self.record.flush();
        if is_a_job() {
            // Continues when the shell says so.
            let _ = kill_current_process_group(Signal::STOP);
            // The stop reaches the other threads first, now and then.
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(lent) = &self.lent {
            lent.again();
        }
        let _ = kill_process_group(self.pid, Signal::CONT);
        let now_ms = self.clock.now_ms();
        self.observe(now_ms, &Observed::new(Kind::HumanWaitEnd).about("job"));
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
