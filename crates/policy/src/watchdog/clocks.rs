//! The clocks of a watchdog, each with its line in the record.

use super::Watchdog;
use crate::clock::Clock;
use crate::{CallId, ClockClass, Millis, Output, SilenceEnd, Warning};

impl Watchdog {
    pub(super) fn start(&mut self, class: ClockClass, window: Option<Millis>) {
        let now = self.state.now;
        if self.record.tells_silences() {
            if window.is_some() {
                self.record
                    .start(class, CallId::NONE, now, SilenceEnd::Rearmed);
            } else {
                self.record
                    .stop(class, CallId::NONE, now, SilenceEnd::Switched);
            }
        }
        self.clock(class).start(now, window);
    }

    pub(super) fn stop(&mut self, class: ClockClass, end: SilenceEnd) {
        let now = self.state.now;
        self.clock(class).stop();
        self.record.stop(class, CallId::NONE, now, end);
    }

    pub(super) fn stop_idle(&mut self, end: SilenceEnd) {
        let class = if self.state.idle_is_first {
            ClockClass::First
        } else {
            ClockClass::Idle
        };
        self.stop(class, end);
        if let Some(gaps) = &mut self.state.gaps {
            gaps.forget();
        }
    }

    pub(super) fn start_ceiling(&mut self) {
        if self.state.segment.armed {
            self.start(ClockClass::Ceiling, self.rules.ceiling);
        }
    }

    pub(super) fn hold_total(&mut self, held: bool) {
        let now = self.state.now;
        self.state.total.hold(held, now);
        if held {
            self.record.freeze(ClockClass::Total, CallId::NONE, now);
        } else {
            self.record.thaw(ClockClass::Total, CallId::NONE, now);
        }
    }

    pub(super) fn hold_backoff(&mut self, held: bool) {
        let now = self.state.now;
        self.state.backoff.hold(held, now);
        if held {
            self.record.freeze(ClockClass::Backoff, CallId::NONE, now);
        } else {
            self.record.thaw(ClockClass::Backoff, CallId::NONE, now);
        }
    }

    pub(super) fn clock(&mut self, class: ClockClass) -> &mut Clock {
        let state = &mut self.state;
        match class {
            ClockClass::Backoff => &mut state.backoff,
            ClockClass::Ceiling => &mut state.ceiling,
            ClockClass::Deadline => &mut state.deadline,
            ClockClass::ResultGrace => &mut state.result_grace,
            ClockClass::Startup => &mut state.startup,
            ClockClass::Total => &mut state.total,
            // limits of open things live with them and never come here
            ClockClass::First | ClockClass::Idle | ClockClass::Tool | ClockClass::Compaction => {
                &mut state.idle
            }
        }
    }

    pub(super) fn note(&mut self, warning: Warning) {
        let at = self.state.now;
        self.record.note(|| Output::Warned { at, warning });
    }
}
