//! What a delegate does while nobody stops it: the events of a run, and whether it ends or hangs.

use policysim_policy::Outcome;

use crate::replay::hang_onset_ms;
use crate::run::{RecordedEnd, Run, Symbols};

/// The course of one delegate. Times count from its spawn.
#[derive(Clone, Copy, Debug)]
pub struct Course<'r> {
    pub(super) run: &'r Run,
    pub(super) symbols: &'r Symbols,
    /// The first event that happens.
    pub(super) first: usize,
    /// One past the last event that happens.
    pub(super) last: usize,
    /// Time of the run at which the delegate is spawned.
    pub(super) origin_ms: u64,
    pub(super) end: End,
    pub(super) asks: Option<Asks<'r>>,
}

/// How a course ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// By itself, at this time of the run.
    At(u64),
    /// Never: nothing is heard any more from this time of the run on.
    HangsFrom(u64),
}

/// A delegate that delegates in turn, and waits for its own child.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asks<'r> {
    /// Before this event.
    pub(super) before: usize,
    pub(super) child: &'r Course<'r>,
}

impl<'r> Course<'r> {
    /// The course of `run` as recorded. A run that the record says hung goes on being silent for ever, whatever the
    /// length of its record.
    pub fn of(run: &'r Run, symbols: &'r Symbols) -> Self {
        Self {
            run,
            symbols,
            first: 0,
            last: run.events.len(),
            origin_ms: 0,
            end: match run.end {
                RecordedEnd::Hung => End::HangsFrom(hang_onset_ms(run)),
                _ => End::At(run.end_ms),
            },
            asks: None,
        }
    }

    /// The same course, hung from `onset_ms` of the run on: nothing that comes later happens.
    #[must_use]
    pub fn hung_from(mut self, onset_ms: u64) -> Self {
        let later = |event: &crate::run::RunEvent| event.t_ms <= onset_ms;
        self.last = self.run.events.partition_point(later);
        self.end = End::HangsFrom(onset_ms);
        self.asks = self.asks.filter(|asks| asks.before < self.last);
        self
    }

    /// The same course with a child of its own, spawned and waited for just before event number `before`.
    #[must_use]
    pub fn asking(mut self, before: usize, child: &'r Self) -> Self {
        self.asks = (before < self.last).then_some(Asks { before, child });
        self
    }

    /// What is left of the course once `seen` of its events have happened and `at_ms` since its spawn have passed.
    #[must_use]
    pub(super) fn resumed(mut self, seen: usize, at_ms: u64) -> Self {
        self.first = seen.min(self.last);
        self.origin_ms += at_ms;
        self.asks = self.asks.filter(|asks| asks.before >= self.first);
        self
    }

    /// Whether it hangs, when nobody stops it before.
    pub const fn hangs(&self) -> bool {
        matches!(self.end, End::HangsFrom(_))
    }

    /// Of one that hangs: since when, counted from its spawn, ms.
    pub(super) const fn onset_ms(&self) -> Option<u64> {
        match self.end {
            End::HangsFrom(ms) => Some(ms.saturating_sub(self.origin_ms)),
            End::At(_) => None,
        }
    }

    /// How the run ended by itself.
    pub(super) fn outcome(&self) -> Outcome {
        let last = self.run.events[self.first..self.last].iter().rev();
        let outcome = last.into_iter().find_map(|event| event.outcome);
        outcome.unwrap_or(match self.run.end {
            RecordedEnd::Aborted => Outcome::Aborted,
            RecordedEnd::Failed => Outcome::Failed,
            _ => Outcome::Completed,
        })
    }
}
