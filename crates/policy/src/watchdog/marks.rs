//! Step 6: marks that an event leaves, and the phases they end and begin.

use super::Watchdog;
use crate::{ClockClass, Event, Kind, Output, Reason, SilenceEnd, Stopped};

impl Watchdog {
    pub(super) fn marks(&mut self, event: &Event<'_>) {
        match event.kind {
            Kind::MessageEnd if self.rules.per_call() && self.state.phase.active => self.end_call(),
            Kind::Result if self.state.segment.armed && !self.state.result_grace.is_running() => {
                self.start(ClockClass::ResultGrace, self.rules.result_grace);
                self.settle_bound();
            }
            _ => {}
        }
        if event.suspends && self.rules.heeds_suspend() && self.state.idle.is_running() {
            self.stop_idle(SilenceEnd::Paused);
            let at = self.state.now;
            self.record.note(|| Output::Paused {
                at,
                clocks: Stopped::Idle,
                reason: Reason::SuspendFlag,
            });
        }
    }

    /// The model call is over before its segment is.
    pub(super) fn end_call(&mut self) {
        self.state.phase.end();
        self.stop(ClockClass::Ceiling, SilenceEnd::Switched);
    }

    /// A phase begins: first window, ceiling, throttle, no spare windows.
    pub(super) fn begin_phase(&mut self) {
        self.state.phase.begin();
        if self.rules.throttle.is_some() {
            self.state.throttle.begin(self.state.now);
        }
        self.restart_idle(SilenceEnd::Switched);
        // a stretch that this ended was read while the spare window was still held
        self.record.spare(None);
        self.start_ceiling();
    }

    pub(super) fn grant_spare(&mut self) {
        if self.rules.grace_cycles > 0 {
            self.state.phase.spare = self.rules.grace_cycles;
            self.record.spare(Some(self.state.now));
        }
    }
}
