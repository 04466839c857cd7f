//! One timer. Every timer of the watchdog is one of these.

use crate::Millis;

/// A timer: off, due at an instant, or frozen with what is left of its window.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) enum Clock {
    /// Not armed.
    #[default]
    Off,
    /// Due at that instant; at [`Millis::MAX`] never.
    Running(Millis),
    /// Stopped with that much left.
    Frozen(Millis),
}

impl Clock {
    /// Starts afresh. A window that is off starts nothing.
    pub(crate) const fn start(&mut self, now: Millis, window: Option<Millis>) {
        *self = match window {
            Some(window) => Self::Running(now.plus(window)),
            None => Self::Off,
        };
    }

    /// Stops and forgets.
    pub(crate) const fn stop(&mut self) {
        *self = Self::Off;
    }

    /// Stops and keeps what is left; an overdue clock keeps nothing.
    pub(crate) const fn freeze(&mut self, now: Millis) {
        if let Self::Running(due) = *self {
            *self = Self::Frozen(due.since(now));
        }
    }

    /// Goes on with what was left.
    pub(crate) const fn thaw(&mut self, now: Millis) {
        if let Self::Frozen(left) = *self {
            *self = Self::Running(now.plus(left));
        }
    }

    /// Freezes or thaws.
    pub(crate) const fn hold(&mut self, held: bool, now: Millis) {
        if held {
            self.freeze(now);
        } else {
            self.thaw(now);
        }
    }

    /// Whether it runs.
    pub(crate) const fn is_running(self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// When it is due; [`Millis::MAX`] for never.
    pub(crate) const fn due(self) -> Millis {
        match self {
            Self::Running(due) => due,
            Self::Off | Self::Frozen(_) => Millis::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Millis {
        Millis::new(ms)
    }

    #[test]
    fn a_frozen_clock_keeps_its_remainder() {
        let mut clock = Clock::Off;
        clock.start(ms(10), Some(ms(100)));
        clock.freeze(ms(40));
        assert_eq!(clock, Clock::Frozen(ms(70)));
        clock.freeze(ms(60));
        clock.thaw(ms(1000));
        assert_eq!(clock.due(), ms(1070));
        clock.thaw(ms(2000));
        assert_eq!(clock.due(), ms(1070));
    }

    #[test]
    fn an_overdue_clock_freezes_with_nothing_left() {
        let mut clock = Clock::Running(ms(5));
        clock.hold(true, ms(9));
        assert_eq!(clock, Clock::Frozen(Millis::ZERO));
        clock.hold(false, ms(20));
        assert_eq!(clock.due(), ms(20));
    }

    #[test]
    fn off_stays_off_and_forever_stays_forever() {
        let mut clock = Clock::Off;
        clock.start(ms(1), None);
        clock.freeze(ms(2));
        clock.thaw(ms(3));
        assert_eq!(clock, Clock::Off);
        clock.start(ms(1), Some(Millis::MAX));
        clock.freeze(ms(50));
        clock.thaw(ms(60));
        assert_eq!(clock.due(), Millis::MAX);
    }
}
