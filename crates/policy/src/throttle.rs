//! The leading-edge throttle: which of the held-back kinds count.

use crate::Millis;

/// When a throttled event last counted, and whether the phase's first progress is still free.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Throttle {
    last: Millis,
    first_free: bool,
}

impl Throttle {
    /// A phase begins: a period counts from here, and the first progress passes.
    pub(crate) const fn begin(&mut self, now: Millis) {
        self.last = now;
        self.first_free = true;
    }

    /// Until when, and of which kinds, events leave no trace: all, or all but progress while that is still free.
    pub(crate) const fn closed(&self, period: Millis) -> (Millis, bool) {
        (self.last.plus(period), self.first_free)
    }

    /// Whether an event counts; one that does not leaves no trace.
    pub(crate) fn passes(&mut self, now: Millis, period: Millis, progress: bool) -> bool {
        let passes = (progress && self.first_free) || now.since(self.last) >= period;
        if passes {
            self.last = now;
            self.first_free &= !progress;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[(u64, bool)], expected: &[bool]) {
        let mut throttle = Throttle::default();
        throttle.begin(Millis::new(100));
        let counted: alloc::vec::Vec<bool> = events
            .iter()
            .map(|&(at, progress)| throttle.passes(Millis::new(at), Millis::new(30), progress))
            .collect();
        assert_eq!(counted, expected);
    }

    #[test]
    fn first_progress_is_free_then_a_period_must_pass() {
        check(
            &[
                (110, true),
                (139, true),
                (140, true),
                (169, false),
                (170, false),
            ],
            &[true, false, true, false, true],
        );
    }

    #[test]
    fn without_progress_a_period_counts_from_the_phase() {
        check(
            &[(129, false), (130, false), (131, true), (132, true)],
            &[false, true, true, false],
        );
    }
}
