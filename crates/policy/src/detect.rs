//! When a due time is seen: at once, or at the next tick of a driver that looks from time to time.

use crate::{Millis, Poll};

impl Poll {
    /// The interval between two looks under that idle window; `None` when a due time is seen at once.
    pub fn period(self, idle_window: Option<Millis>) -> Option<Millis> {
        match self {
            Self::Exact => None,
            Self::Every(period) => Some(period),
            Self::Tenth => idle_window.map(|window| {
                Millis::new(window.as_u64() / 10).clamp(Millis::new(2), Millis::from_secs(10))
            }),
        }
    }
}

/// When something due at `due` is seen: the first tick at or after it, ticks being the multiples of `period`
/// from `origin`; without a period at `due` itself.
pub fn seen(due: Millis, origin: Millis, period: Option<Millis>) -> Millis {
    match period {
        Some(period) if period > Millis::ZERO => {
            let ticks = due.since(origin).as_u64().div_ceil(period.as_u64());
            origin.plus(Millis::new(ticks.saturating_mul(period.as_u64())))
        }
        _ => due,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(due: u64, origin: u64, period: Option<u64>, expected: u64) {
        let seen = seen(
            Millis::new(due),
            Millis::new(origin),
            period.map(Millis::new),
        );
        assert_eq!(seen, Millis::new(expected));
    }

    #[test]
    fn ticks_count_from_the_origin() {
        check(179_999, 0, Some(1000), 180_000);
        check(180_000, 0, Some(1000), 180_000);
        check(26, 7, Some(10), 27);
        check(5, 7, Some(10), 7);
        check(1234, 7, None, 1234);
        check(1234, 7, Some(0), 1234);
        check(u64::MAX, 0, Some(1000), u64::MAX);
    }

    #[test]
    fn a_tenth_has_bounds() {
        for (window, period) in [(10, 2), (20_000, 2000), (1_800_000, 10_000)] {
            assert_eq!(
                Poll::Tenth.period(Some(Millis::new(window))),
                Some(Millis::new(period))
            );
        }
        assert_eq!(Poll::Tenth.period(None), None);
    }
}
