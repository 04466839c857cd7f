//! One run under one policy as a picture needs it: clocks, pauses, waits, and the firing.

use policysim_policy::{ClockClass, Kind, Output, Policy, Stopped};

use crate::judgement::Judgement;
use crate::ledger::{Account, ledger, spans};
use crate::replay::{Replayed, transcript};
use crate::run::{Run, Symbols};

/// A stretch over which a clock ran.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stretch {
    /// When it began, ms since the run's start.
    pub from_ms: u64,
    /// When it was read.
    pub to_ms: u64,
    /// What it read then, ms.
    pub reading_ms: u64,
}

/// A run under a policy, over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// What became of it.
    pub replayed: Replayed,
    /// The idle clock.
    pub clock: Vec<Stretch>,
    /// The total clock; empty where there is no budget.
    pub total: Vec<Stretch>,
    /// When the idle clock was paused: from, to, ms since the run's start.
    pub pauses: Vec<(u64, u64)>,
    /// Where the time of the whole record went, neighbours of one account joined.
    pub waits: Vec<(Account, u64, u64)>,
    /// Events that re-armed the idle clock, ms since the run's start.
    pub rearmed_ms: Vec<u64>,
    /// The first event that the watchdog did not see: when, and its kind.
    pub next: Option<(u64, Kind)>,
    /// Active time up to the firing, ms; 0 without one.
    pub lost_ms: u64,
}

impl Timeline {
    /// Replays `run` under `policy` and keeps what a picture shows.
    pub fn new(policy: &Policy, run: &Run, symbols: &Symbols) -> Self {
        let (mut clock, mut total) = (Vec::new(), Vec::new());
        let (mut pauses, mut rearmed_ms) = (Vec::new(), Vec::new());
        let mut paused_ms: Option<u64> = None;
        let replayed = transcript(policy, run, symbols, |_, output| match output {
            Output::Silence(silence) => {
                let stretch = Stretch {
                    from_ms: silence.from.as_u64(),
                    to_ms: silence.to.as_u64(),
                    reading_ms: silence.reading.as_u64(),
                };
                match silence.clock {
                    ClockClass::Idle => clock.push(stretch),
                    ClockClass::Total => total.push(stretch),
                    _ => {}
                }
            }
            Output::Rearmed { at, .. } => rearmed_ms.push(at.as_u64()),
            Output::Paused { at, clocks, .. } if clocks != Stopped::Hard => {
                paused_ms.get_or_insert(at.as_u64());
            }
            Output::Resumed { at, clocks, .. } if clocks != Stopped::Hard => {
                pauses.extend(paused_ms.take().map(|from| (from, at.as_u64())));
            }
            _ => {}
        });
        let at_ms = replayed.verdict.at.as_u64();
        pauses.extend(paused_ms.map(|from| (from, at_ms)));
        let mut waits: Vec<(Account, u64, u64)> = Vec::new();
        spans(run, run.end_ms, |account, from_ms, to_ms| {
            if from_ms == to_ms {
                return;
            }
            match waits.last_mut() {
                Some((of, _, end)) if *of == account && *end == from_ms => *end = to_ms,
                _ => waits.push((account, from_ms, to_ms)),
            }
        });
        Self {
            next: run
                .events
                .get(replayed.unseen)
                .map(|event| (event.t_ms, event.kind)),
            lost_ms: if replayed.is_kill() {
                ledger(run, at_ms).active_ms()
            } else {
                0
            },
            replayed,
            clock,
            total,
            pauses,
            waits,
            rearmed_ms,
        }
    }

    /// Whether the record shows that the run was alive when it was killed.
    pub fn is_false_kill(&self) -> bool {
        self.replayed.is_kill() && self.replayed.judgement == Judgement::FalseKill
    }
}
