//! Writes the events of a run and measures it while they come.

use crate::run::{EventFlags, Measured, RunEvent, Wait, WaitKind};

/// The events of a run so far, with its row by the rules of `DEFINITIONS.md` section 5.
#[derive(Debug, Default)]
pub(super) struct Record {
    events: Vec<RunEvent>,
    measured: Measured,
}

impl Record {
    /// Adds an event; its time is not before that of the one added last.
    pub(super) fn push(&mut self, event: RunEvent) {
        debug_assert!(
            self.events
                .last()
                .is_none_or(|last| last.t_ms <= event.t_ms)
        );
        if event.flags.has(EventFlags::ACTIVITY) {
            // The run starts at 0 with activity, so the duration is the time of the latest one.
            let silence_ms = event.t_ms.saturating_sub(self.measured.duration_ms);
            self.measured.silence_ms = self.measured.silence_ms.max(silence_ms);
            self.measured.duration_ms = event.t_ms;
        }
        if let Some(Wait { kind, ms }) = event.wait {
            let model = matches!(
                kind,
                WaitKind::PreToken | WaitKind::PreTokenErr | WaitKind::Compact | WaitKind::Censored
            );
            if model {
                self.measured.gap_ms = self.measured.gap_ms.max(ms);
            }
        }
        self.events.push(event);
    }

    /// Counts a turn that reached an output.
    pub(super) fn count_turn(&mut self) {
        self.measured.turns += 1;
    }

    /// Counts a finished tool call.
    pub(super) fn count_tool(&mut self) {
        self.measured.tools += 1;
    }

    /// Marks the run as aborted by a human.
    pub(super) fn mark_aborted(&mut self) {
        self.measured.aborted = true;
    }

    /// The time of the event added last.
    pub(super) fn now_ms(&self) -> u64 {
        self.events.last().map_or(0, |event| event.t_ms)
    }

    /// The events and the run's row.
    pub(super) fn finish(self) -> (Vec<RunEvent>, Measured) {
        (self.events, self.measured)
    }
}
