//! Step 1 at an instant: the timers seen by it, in their order.

use super::Watchdog;
use crate::clock::Clock;
use crate::detect::seen;
use crate::{Cause, Millis, OpenClass, SilenceEnd, Warning};

/// What can be due, in the order in which things due together are handled.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Timer {
    Deadline,
    ResultGrace,
    Total,
    Ceiling,
    Limit(usize),
    Backoff,
    Startup,
    Idle,
    AnnouncedEnd(usize),
}

/// A timer that runs: when it is seen, which one it is, when it was due.
pub(super) type Pending = (Millis, Timer, Millis);

impl Watchdog {
    /// The timer seen first, of those seen together the one that ranks first.
    pub(super) fn next_timer(&self) -> Option<Pending> {
        let state = &self.state;
        if !state.segment.armed && !state.segment.is_open {
            // between segments only the total is alive, and nothing replaces it there
            return self.pending(Timer::Total, state.total);
        }
        let mut first = None;
        let mut consider = |pending: Option<Pending>| {
            if let Some(pending) = pending
                && first.is_none_or(|first| pending < first)
            {
                first = Some(pending);
            }
        };
        consider(self.pending(Timer::Deadline, state.deadline));
        if state.segment.armed {
            consider(self.pending(Timer::ResultGrace, state.result_grace));
            consider(self.pending(Timer::Total, state.total));
            consider(self.pending(Timer::Ceiling, state.ceiling));
            consider(self.pending(Timer::Backoff, state.backoff));
            consider(self.pending(Timer::Startup, state.startup));
            consider(self.pending(Timer::Idle, state.idle));
        }
        for (i, item) in state.open.items().enumerate() {
            consider(self.pending(Timer::Limit(i), item.limit));
            consider(self.pending(Timer::AnnouncedEnd(i), Clock::Running(item.closes_at)));
        }
        first
    }

    pub(super) fn pending(&self, timer: Timer, clock: Clock) -> Option<Pending> {
        let due = clock.due();
        if due == Millis::MAX {
            return None;
        }
        let period = match timer {
            Timer::Deadline | Timer::AnnouncedEnd(_) => None,
            _ => self.rules.poll.period(self.state.segment.window),
        };
        // what became due out of sight is seen from now on, not earlier
        let due_here = due.max(self.state.now);
        let seen = seen(due_here, self.state.segment.origin, period);
        Some((seen, timer, due))
    }

    pub(super) fn run_timers(&mut self, until: Millis) {
        while let Some((seen, timer, due)) = self.next_timer() {
            if seen > until {
                break;
            }
            self.state.now = seen;
            match timer {
                Timer::AnnouncedEnd(i) => self.announced_end(i),
                Timer::Idle if self.state.phase.use_spare() => {
                    self.note(Warning::SpareWindowUsed);
                    self.restart_idle(SilenceEnd::Spared);
                    self.record.spare(None);
                }
                _ => {
                    self.fire(self.cause_of(timer), due);
                    return;
                }
            }
        }
        self.settle_bound();
    }

    pub(super) fn cause_of(&self, timer: Timer) -> Cause {
        match timer {
            Timer::Deadline => Cause::CallerDeadline,
            Timer::ResultGrace => Cause::CleanupForced,
            Timer::Total => Cause::TotalTimeout,
            Timer::Ceiling => Cause::CeilingTimeout,
            Timer::Limit(i) | Timer::AnnouncedEnd(i) => match self.state.open.item(i) {
                Some(item) if item.class == OpenClass::Compaction => Cause::CompactionTimeout,
                _ => Cause::ToolTimeout,
            },
            Timer::Backoff => Cause::BackoffTimeout,
            Timer::Startup => Cause::StartupTimeout,
            Timer::Idle if self.state.idle_is_first => Cause::FirstTimeout,
            Timer::Idle => Cause::IdleTimeout,
        }
    }

    /// Makes the bound on the hard clocks exact.
    pub(super) fn settle_bound(&mut self) {
        let state = &self.state;
        let fixed = [
            state.ceiling,
            state.startup,
            state.total,
            state.backoff,
            state.deadline,
            state.result_grace,
        ];
        let items = state
            .open
            .items()
            .map(|item| item.limit.due().min(item.closes_at));
        self.hard_due = fixed
            .into_iter()
            .map(Clock::due)
            .chain(items)
            .fold(Millis::MAX, Millis::min);
    }
}
