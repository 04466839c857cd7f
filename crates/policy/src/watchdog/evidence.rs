//! Steps 3 and 4: evidence restarts the idle clock; turns are counted.

use super::Watchdog;
use crate::{CallId, Cause, ClockClass, Event, First, Millis, Output, SilenceEnd, Warning};

impl Watchdog {
    pub(super) fn evidence(&mut self, event: &Event<'_>) {
        let (rules, state) = (&self.rules, &mut self.state);
        if state.open.classes().meets(rules.stops_idle)
            || !rules.rearm.holds(event.kind, event.name)
        {
            return;
        }
        let progress = rules.progress.holds(event.kind, event.name);
        if let Some(period) = rules.throttle
            && rules.throttled.holds(event.kind, event.name)
            && !state.throttle.passes(state.now, period, progress)
        {
            return;
        }
        if let Some(adaptive) = &rules.adaptive
            && let Some(gaps) = &mut state.gaps
        {
            gaps.sample(state.now, adaptive.estimator);
        }
        if progress {
            state.phase.in_first = false;
            if state.ceiling.is_running() {
                self.start(ClockClass::Ceiling, self.rules.ceiling);
            }
        }
        self.restart_idle(SilenceEnd::Rearmed);
        if self.record.tells_all() {
            let at = self.state.now;
            let due = Some(self.state.idle.due()).filter(|&due| due != Millis::MAX);
            self.record.note(|| Output::Rearmed {
                at,
                by: event.kind,
                due,
            });
        }
    }

    /// The idle clock starts afresh with the window in force.
    pub(super) fn restart_idle(&mut self, end: SilenceEnd) {
        let state = &mut self.state;
        if !state.segment.armed {
            return;
        }
        let mut window = state.segment.window;
        if let (Some(adaptive), Some(gaps)) = (&self.rules.adaptive, &mut state.gaps) {
            gaps.begin(state.now);
            if window == self.rules.window {
                window = gaps.window(adaptive).or(window);
            }
        }
        let mut is_first = false;
        if state.phase.in_first {
            match self.rules.first {
                First::SameAsWindow => {}
                First::Off => window = None,
                First::After(first) => {
                    window = Some(first);
                    is_first = true;
                }
            }
        }
        if self.record.tells_silences() {
            let (at, none) = (state.now, CallId::NONE);
            let now = if is_first {
                ClockClass::First
            } else {
                ClockClass::Idle
            };
            let before = if state.idle_is_first {
                ClockClass::First
            } else {
                ClockClass::Idle
            };
            if before != now || window.is_none() {
                self.record.stop(before, none, at, end);
            }
            if window.is_some() {
                self.record.start(now, none, at, end);
            }
        }
        state.idle.start(state.now, window);
        state.idle_is_first = is_first;
    }
}

impl Watchdog {
    /// Counts the event; whether the run is stopped by it.
    pub(super) fn count_turns(&mut self, event: &Event<'_>, cap: u32) -> bool {
        let turns = &mut self.state.turns;
        let reached = turns.reached;
        let stops = turns.count(event.kind, event.executed, self.rules.turn_stop);
        let turns = turns.turns;
        if self.state.turns.meets(cap) && reached.is_none_or(|reached| reached < cap) {
            self.note(Warning::TurnCapReached { turns });
        }
        // under a deadline that replaces every limit the cap is none
        let Some(stopped) = stops.filter(|_| self.state.segment.armed) else {
            return false;
        };
        self.record.turn_stop(self.state.now, stopped);
        if cap <= stopped {
            self.fire(Cause::TurnLimit, self.state.now);
        }
        cap <= stopped
    }

    /// Whether a completion counts as a stop at the cap, because an executed call met it.
    pub(super) fn is_marked(&mut self) -> bool {
        let (Some(cap), Some(reached)) = (self.rules.cap, self.state.turns.reached) else {
            return false;
        };
        self.record.turn_stop(self.state.now, reached);
        cap <= reached
    }
}
