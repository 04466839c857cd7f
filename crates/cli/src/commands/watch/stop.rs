//! Ends the command and everything it has started: a signal, a grace, KILL, and the list of what is left.

use policysim_policy::KillScope;
use rustix::process::{Signal, kill_process_group};
use serde_json::{Value, json};

use super::child::Exit;
use super::finish::exit_fields;
use super::live::Live;
use super::tree::Process;

/// How long killed processes may take to vanish.
const VANISHING_MS: u64 = 2_000;
/// Between two looks at who still lives: often at first, as most end at once.
const FIRST_LOOK_MS: u64 = 5;
const LAST_LOOK_MS: u64 = 100;
/// How long those whom nobody signalled may take to end with the command.
const LEAVING_MS: u64 = 1_000;
/// How long the news of the command's end may take when it is seen to be gone.
const NEWS_MS: u64 = 1_000;

/// Who is signalled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scope {
    /// The command alone.
    Child,
    /// The command and everything below it.
    Tree,
}

impl From<KillScope> for Scope {
    fn from(scope: KillScope) -> Self {
        match scope {
            KillScope::Child => Self::Child,
            KillScope::Tree => Self::Tree,
        }
    }
}

impl Scope {
    /// The scope's name in the record.
    const fn name(self) -> &'static str {
        match self {
            Self::Child => "child",
            Self::Tree => "tree",
        }
    }

    /// Those of the command's processes that are meant.
    fn of(self, live: &Live, mut processes: Vec<Process>) -> Vec<Process> {
        if self == Self::Child {
            let command = live.pid.as_raw_pid();
            processes.retain(|process| process.pid == command);
        }
        processes
    }
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stopped {
    /// How the command ended; none when it lives.
    pub(super) exit: Option<Exit>,
    /// Who was meant.
    pub(super) scope: Option<Scope>,
    /// Processes that live on: in spite of KILL, or because the command alone was meant.
    pub(super) survivors: Vec<Process>,
    /// Processes that had left the command's group.
    escaped: Vec<Process>,
    /// The signals, with when they were sent.
    sent: Vec<(&'static str, u64)>,
}

impl Live {
    /// Ends the command, whose processes are `living`, with `first`, and with KILL what lives after the grace. A grace
    /// of zero is KILL at once.
    pub(super) fn stop(
        &mut self,
        first: Signal,
        grace_ms: u64,
        scope: Scope,
        living: &[Process],
    ) -> Stopped {
        let mut stopped = Stopped {
            scope: Some(scope),
            ..Stopped::default()
        };
        let begun_ms = self.clock.now_ms();
        let mut living = scope.of(self, living.to_vec());
        if grace_ms > 0 && !living.is_empty() {
            self.send(first, scope, &living, &mut stopped);
            self.wait_until_gone(begun_ms.saturating_add(grace_ms), scope);
            living = self.living(scope);
        }
        if !living.is_empty() {
            let until_ms = self.clock.now_ms().saturating_add(VANISHING_MS);
            self.send(Signal::KILL, scope, &living, &mut stopped);
            loop {
                self.wait_until_gone(self.clock.now_ms().saturating_add(LAST_LOOK_MS), scope);
                living = self.living(scope);
                if living.is_empty() || self.clock.now_ms() >= until_ms {
                    break;
                }
                // Whoever was being started while the others were killed.
                for process in &living {
                    process.signal(Signal::KILL);
                }
            }
        }
        let command = self.pid.as_raw_pid();
        if !living.iter().any(|process| process.pid == command) {
            let until_ms = self.clock.now_ms().saturating_add(NEWS_MS);
            while self.ended.is_none() && self.clock.now_ms() < until_ms {
                self.take_within(FIRST_LOOK_MS);
            }
        }
        if scope == Scope::Child {
            let until_ms = self.clock.now_ms().saturating_add(LEAVING_MS);
            self.wait_until_gone(until_ms, Scope::Tree);
        }
        stopped.survivors = self.tree.living();
        stopped.exit = self.ended.map(|(exit, _)| exit);
        self.note_stopped(&stopped);
        stopped
    }

    /// Signals the group, and each of the living that has left it. They were looked up before: afterwards parents are
    /// gone, and with them who belonged to whom.
    fn send(&mut self, signal: Signal, scope: Scope, living: &[Process], stopped: &mut Stopped) {
        let group = self.pid.as_raw_pid();
        match scope {
            Scope::Child => {
                for process in living {
                    process.signal(signal);
                    process.signal(Signal::CONT);
                }
            }
            Scope::Tree => {
                // The leader is not reaped yet, so this group can be nobody else's.
                let _ = kill_process_group(self.pid, signal);
                let _ = kill_process_group(self.pid, Signal::CONT);
                for process in living.iter().filter(|process| process.group != group) {
                    process.signal(signal);
                    process.signal(Signal::CONT);
                    if !stopped.escaped.iter().any(|known| known.is(process)) {
                        stopped.escaped.push(process.clone());
                    }
                }
            }
        }
        let at_ms = self.clock.now_ms();
        stopped.sent.push((signal_name(signal), at_ms));
        let members: Vec<Value> = living.iter().map(|process| json!(process.pid)).collect();
        let details =
            json!({ "signal": signal_name(signal), "group": group, "processes": members });
        self.record.note("signal", at_ms, details);
        self.record.flush();
    }

    /// Goes on passing bytes until nobody lives, it is `until_ms`, or another signal says that it shall not last.
    fn wait_until_gone(&mut self, until_ms: u64, scope: Scope) {
        let told = self.interrupted.take();
        let mut look_ms = FIRST_LOOK_MS;
        while self.clock.now_ms() < until_ms
            && self.interrupted.is_none()
            && !self.living(scope).is_empty()
        {
            let left_ms = until_ms.saturating_sub(self.clock.now_ms());
            self.take_within(left_ms.clamp(1, look_ms));
            self.tree.reap_orphans(self.pid);
            look_ms = (look_ms * 2).min(LAST_LOOK_MS);
        }
        self.interrupted = self.interrupted.or(told);
    }

    fn living(&self, scope: Scope) -> Vec<Process> {
        scope.of(self, self.tree.living())
    }

    fn note_stopped(&mut self, stopped: &Stopped) {
        let now_ms = self.clock.now_ms();
        let list = |processes: &[Process]| -> Vec<Value> {
            processes
                .iter()
                .map(|process| {
                    json!({
                        "pid": process.pid,
                        "started_ticks": process.started,
                        "group": process.group,
                        "session": process.session,
                        "name": process.name,
                    })
                })
                .collect()
        };
        let sent: Vec<Value> = stopped
            .sent
            .iter()
            .map(|(signal, at_ms)| json!({ "signal": signal, "t_ms": at_ms }))
            .collect();
        let details = json!({
            "scope": stopped.scope.map(Scope::name),
            "group": self.pid.as_raw_pid(),
            "signals": sent,
            "escalated": stopped.sent.len() > 1,
            "escaped": list(&stopped.escaped),
            "survivors": list(&stopped.survivors),
            "child": stopped.exit.map_or(Value::Null, exit_fields),
        });
        self.record.note("stopped", now_ms, details);
        self.record.flush();
    }
}

fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::HUP => "HUP",
        Signal::INT => "INT",
        Signal::KILL => "KILL",
        Signal::QUIT => "QUIT",
        _ => "TERM",
    }
}
