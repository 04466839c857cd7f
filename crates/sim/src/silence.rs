//! The readings of the idle clock, as the core itself takes them.
//!
//! A gap depends on a policy's structure (what re-arms, what pauses), never on its numbers (design
//! section 2), so runs are read under the same structure with every limit out of reach.

use policysim_policy::{ClockClass, First, Millis, Output, Policy, SilenceEnd, Trace};

use crate::replay::{arm, drive};
use crate::run::{Run, Symbols};

/// One gap: what the idle clock read when it was re-armed, paused or switched, or when the record stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// When the clock began to run, ms since the run's start.
    pub from_ms: u64,
    /// When it was read.
    pub to_ms: u64,
    /// The silence it read, ms.
    pub ms: u64,
    /// Its end was not observed: the record stops inside it.
    pub censored: bool,
    /// Why the clock was read.
    pub end: SilenceEnd,
}

/// `policy` with its structure kept and no limit that could end a run.
#[must_use]
pub fn without_limits(policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    policy.idle.window = Some(Millis::MAX);
    policy.idle.first = First::SameAsWindow;
    policy.idle.ceiling = None;
    policy.idle.startup = None;
    policy.idle.grace_cycles = 0;
    policy.idle.adaptive = None;
    policy.pause.tool_limit = policysim_policy::ToolLimit::default();
    policy.pause.compaction_limit = None;
    policy.pause.backoff_budget = None;
    policy.total.budget = None;
    policy.turns.cap = None;
    policy.turns.by_role = policysim_policy::ByName::default();
    policy.kill.result_grace = None;
    policy
}

/// The gaps of `run` under the structure of `policy`, in time order.
///
/// `policy` is best passed through [`without_limits`] once for all runs; a limit that fires ends the list.
pub fn gaps(policy: &Policy, run: &Run, symbols: &Symbols) -> Vec<Gap> {
    let mut found = Vec::new();
    let mut dog = arm(policy, run, Trace::Silences);
    drive(&mut dog, run, symbols, |dog, _| {
        while let Some(output) = dog.poll_output() {
            if let Output::Silence(silence) = output
                && silence.clock == ClockClass::Idle
            {
                found.push(Gap {
                    from_ms: silence.from.as_u64(),
                    to_ms: silence.to.as_u64(),
                    ms: silence.reading.as_u64(),
                    censored: silence.end == SilenceEnd::Cut,
                    end: silence.end,
                });
            }
        }
    });
    found
}
