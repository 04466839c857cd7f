//! How parents behave: what they spawn, how they wait, and what they make of a wait that expires.

use policysim_policy::{Decimal, Millis, OnExpiry, Policy, WaitMode, task_wait};

/// What a parent does when a wait expires with delegates unsettled.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reaction {
    /// It takes them as still running and waits again.
    WaitAgain,
    /// It takes them as failed, leaves them alone, and starts each task once more.
    ReadAsFailure,
    /// It ends its turn, which kills everything that runs.
    CloseTurn,
    /// It stops them and gives their tasks up.
    Stop,
    /// It judges by what it is shown (ADR 0166): a delegate whose heartbeat (turns, tool calls, last tool) has not
    /// changed over so many expiries is stopped, the others go on.
    Judge {
        /// Expiries in a row without a change; at least 1.
        unchanged: u32,
    },
}

impl Reaction {
    /// The reaction's name in options and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WaitAgain => "wait_again",
            Self::ReadAsFailure => "read_as_failure",
            Self::CloseTurn => "close_turn",
            Self::Stop => "stop",
            Self::Judge { .. } => "judge",
        }
    }
}

/// How parents behave; the same for all of them. What is left open comes from the policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Habits {
    /// Tasks of one parent, each a run.
    pub tasks: u32,
    /// From one spawn to the next.
    pub spawn_every: Millis,
    /// Mean time that a parent works before it waits, and between two waits; uniform from none to twice this.
    pub think: Millis,
    /// Delegates that may run at once; a further one is refused and tried again later.
    pub cap: u32,
    /// Length of a wait, held to the contract; without it the policy's.
    pub wait: Option<Millis>,
    /// All delegates or some; without it the policy's.
    pub mode: Option<WaitMode>,
    /// Of [`WaitMode::Any`]: how many.
    pub min_completed: u32,
    /// What an expiry makes it do; without it the policy's reading.
    pub on_expiry: Option<Reaction>,
    /// What a delegate takes to unwind, beyond the policy's kill delay and, where it hangs, its grace.
    pub unwinding: Millis,
    /// When the observation of a parent ends, whatever still runs.
    pub horizon: Millis,
}

impl Default for Habits {
    /// Four delegates spawned at once; 30 s of work around each wait; ten slots; two days.
    fn default() -> Self {
        Self {
            tasks: 4,
            spawn_every: Millis::ZERO,
            think: Millis::from_secs(30),
            cap: task_wait::MAX_RUNNING as u32,
            wait: None,
            mode: None,
            min_completed: 1,
            on_expiry: None,
            unwinding: Millis::ZERO,
            horizon: Millis::from_secs(48 * 3600),
        }
    }
}

impl Habits {
    /// The length of a wait under `policy`: floored to whole seconds and held between 1 s and the contract's longest.
    pub fn window(&self, policy: &Policy) -> Millis {
        let seconds = self.wait.map(|wait| {
            let seconds = i64::try_from(wait.as_u64() / 1000).unwrap_or(i64::MAX);
            Decimal::whole(seconds)
        });
        task_wait::window(seconds, &policy.task_wait)
    }

    /// The mode of its waits under `policy`.
    pub fn mode(&self, policy: &Policy) -> WaitMode {
        self.mode.unwrap_or(policy.task_wait.mode)
    }

    /// What it makes of an expiry under `policy`.
    pub fn reaction(&self, policy: &Policy) -> Reaction {
        self.on_expiry.unwrap_or(match policy.task_wait.on_expiry {
            OnExpiry::Failed => Reaction::ReadAsFailure,
            OnExpiry::StillRunning => Reaction::WaitAgain,
        })
    }
}
