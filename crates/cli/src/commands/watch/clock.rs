//! Time as `watch` measures it: whole milliseconds of the monotonic clock since the command's start.
//!
//! On Linux the monotonic clock stands still while the host sleeps and the boot-time clock does not, so a suspend is
//! what the second has gained on the first.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const NS_PER_MS: u64 = 1_000_000;

/// The shortest gain of the boot-time clock that is told as a suspend, ms.
const SHORTEST_SUSPEND_MS: u64 = 1_000;

/// Nanoseconds that a clock shows.
fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// The wall clock, ms since the Unix epoch: it dates a record and drives nothing.
pub(super) fn wall_ms() -> i64 {
    i64::try_from(nanoseconds(ClockId::Realtime) / NS_PER_MS).unwrap_or(i64::MAX)
}

/// The monotonic clock since a start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Starts now.
    pub(super) fn start() -> Self {
        Self {
            start_ns: nanoseconds(ClockId::Monotonic),
        }
    }

    /// Whole milliseconds since the start.
    pub(super) fn now_ms(self) -> u64 {
        nanoseconds(ClockId::Monotonic).saturating_sub(self.start_ns) / NS_PER_MS
    }

    /// How long it is until `at_ms` since the start; zero when it has passed.
    pub(super) fn until(self, at_ms: u64) -> Duration {
        let at_ns = self
            .start_ns
            .saturating_add(at_ms.saturating_mul(NS_PER_MS));
        Duration::from_nanos(at_ns.saturating_sub(nanoseconds(ClockId::Monotonic)))
    }
}

/// Notices that the host has slept.
#[derive(Debug)]
pub(super) struct Suspends {
    /// By how much the boot-time clock was ahead at the last look, ns.
    ahead_ns: u64,
}

impl Suspends {
    /// Takes the first look.
    pub(super) fn new() -> Self {
        Self {
            ahead_ns: boot_time_ahead_ns(),
        }
    }

    /// How long the host slept since the last look, ms; none when it did not.
    pub(super) fn look(&mut self) -> Option<u64> {
        self.compare(boot_time_ahead_ns())
    }

    fn compare(&mut self, ahead_ns: u64) -> Option<u64> {
        let slept_ms = ahead_ns.saturating_sub(self.ahead_ns) / NS_PER_MS;
        if slept_ms < SHORTEST_SUSPEND_MS {
            return None;
        }
        self.ahead_ns = ahead_ns;
        Some(slept_ms)
    }
}

fn boot_time_ahead_ns() -> u64 {
    let monotonic = nanoseconds(ClockId::Monotonic);
    nanoseconds(ClockId::Boottime).saturating_sub(monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes of sleep are told once; jitter between the two readings never is.
    #[test]
    fn a_suspend_is_what_the_boot_clock_gains() {
        let mut suspends = Suspends { ahead_ns: 5_000 };
        assert_eq!(suspends.compare(9_000), None);
        assert_eq!(suspends.compare(999_000_000), None);
        assert_eq!(suspends.compare(600_000_005_000), Some(600_000));
        assert_eq!(suspends.compare(600_000_009_000), None);
        assert_eq!(suspends.compare(0), None);
    }

    #[test]
    fn a_passed_instant_is_no_time_away() {
        let clock = Clock::start();
        assert_eq!(clock.until(0), Duration::ZERO);
        assert!(clock.until(60_000) > Duration::from_secs(30));
    }
}
