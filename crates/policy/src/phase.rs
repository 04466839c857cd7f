//! The phase of a segment: the stretch over which the first window, the ceiling and the throttle count.

/// Where the segment is in its phase.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct PhaseState {
    /// Whether the phase goes on; a model call ends before its segment does.
    pub(crate) active: bool,
    /// Whether its first progress is still to come.
    pub(crate) in_first: bool,
    /// Spare windows that idle expiries may use.
    pub(crate) spare: u8,
}

impl PhaseState {
    /// A phase begins, without spare windows.
    pub(crate) const fn begin(&mut self) {
        *self = Self {
            active: true,
            in_first: true,
            spare: 0,
        };
    }

    /// The phase is over; spare windows stay.
    pub(crate) const fn end(&mut self) {
        self.active = false;
        self.in_first = false;
    }

    /// Uses a spare window, if there is one.
    pub(crate) const fn use_spare(&mut self) -> bool {
        let had = self.spare > 0;
        self.spare = self.spare.saturating_sub(1);
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_windows_outlive_a_phase_but_not_the_next_ones_start() {
        let mut phase = PhaseState::default();
        phase.begin();
        phase.spare = 1;
        phase.end();
        assert!(phase.use_spare() && !phase.use_spare());
        phase.spare = 1;
        phase.begin();
        assert!(!phase.use_spare() && phase.in_first);
    }
}
