//! Time as `watch` measures it: whole milliseconds of the monotonic clock since the command's start.
//!
//! On Linux the monotonic clock stands still while the host sleeps and the boot-time clock does not, so a suspend is
//! what the second has gained on the first. While a shell has stopped the job that `watch` is part of, its own clock
//! stands still too: nobody can show a sign of life then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const NS_PER_MS: u64 = 1_000_000;

/// The shortest gain of the boot-time clock that is told as a suspend, ms.
const SHORTEST_SUSPEND_MS: u64 = 1_000;
/// What may lie between the looks of one reading, ms.
const LONGEST_READING_MS: u64 = 10;

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

/// The monotonic clock since a start, without the stretches in which it was made to stand still. Its clones are one
/// clock.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// What the monotonic clock shows when this one shows zero.
    zero_ns: Arc<AtomicU64>,
}

impl Clock {
    /// Starts now.
    pub(super) fn start() -> Self {
        Self {
            zero_ns: Arc::new(AtomicU64::new(nanoseconds(ClockId::Monotonic))),
        }
    }

    /// Whole milliseconds since the start.
    pub(super) fn now_ms(&self) -> u64 {
        let zero_ns = self.zero_ns.load(Ordering::SeqCst);
        nanoseconds(ClockId::Monotonic).saturating_sub(zero_ns) / NS_PER_MS
    }

    /// How long it is until `at_ms` since the start; zero when it has passed.
    pub(super) fn until(&self, at_ms: u64) -> Duration {
        let zero_ns = self.zero_ns.load(Ordering::SeqCst);
        let at_ns = zero_ns.saturating_add(at_ms.saturating_mul(NS_PER_MS));
        Duration::from_nanos(at_ns.saturating_sub(nanoseconds(ClockId::Monotonic)))
    }

    /// Stands still while that is done; how long it took, ms.
    pub(super) fn stand_still(&self, done: impl FnOnce()) -> u64 {
        let begun_ns = nanoseconds(ClockId::Monotonic);
        done();
        let took_ns = nanoseconds(ClockId::Monotonic).saturating_sub(begun_ns);
        self.zero_ns.fetch_add(took_ns, Ordering::SeqCst);
        took_ns / NS_PER_MS
    }
}

/// Both clocks, read at one instant: the boot-time clock between two looks at the monotonic one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    before_ns: u64,
    boot_time_ns: u64,
    after_ns: u64,
}

impl Reading {
    /// Reads them now.
    pub(super) fn now() -> Self {
        Self {
            before_ns: nanoseconds(ClockId::Monotonic),
            boot_time_ns: nanoseconds(ClockId::Boottime),
            after_ns: nanoseconds(ClockId::Monotonic),
        }
    }

    /// By how much the boot-time clock is ahead; none when too long lay between the looks to tell.
    fn ahead_ns(self) -> Option<u64> {
        let between_ns = self.after_ns.saturating_sub(self.before_ns);
        let is_one_instant = between_ns < LONGEST_READING_MS * NS_PER_MS;
        is_one_instant.then(|| self.boot_time_ns.saturating_sub(self.after_ns))
    }
}

/// Notices that the host has slept.
#[derive(Debug, Default)]
pub(super) struct Suspends {
    /// By how much the boot-time clock was ahead at the last look that told, ns.
    ahead_ns: Option<u64>,
}

impl Suspends {
    /// Takes the first look.
    pub(super) fn new() -> Self {
        let mut suspends = Self::default();
        suspends.look(Reading::now());
        suspends
    }

    /// How long the host slept between the last look and this one, ms; none when it did not.
    pub(super) fn look(&mut self, reading: Reading) -> Option<u64> {
        let ahead_ns = reading.ahead_ns()?;
        let before_ns = *self.ahead_ns.get_or_insert(ahead_ns);
        let slept_ms = ahead_ns.saturating_sub(before_ns) / NS_PER_MS;
        if slept_ms < SHORTEST_SUSPEND_MS {
            return None;
        }
        self.ahead_ns = Some(ahead_ns);
        Some(slept_ms)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const MS: u64 = NS_PER_MS;

    /// What is told of these pairs of the monotonic and the boot-time clock, ms.
    fn told(pairs: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut suspends = Suspends::default();
        pairs
            .iter()
            .map(|(monotonic_ms, boot_time_ms)| {
                suspends.look(Reading {
                    before_ns: (monotonic_ms * MS).saturating_sub(80),
                    boot_time_ns: boot_time_ms * MS,
                    after_ns: monotonic_ms * MS,
                })
            })
            .collect()
    }

    /// The pairs of scenario BR-44: a lid closed for 45 minutes in mid-turn. It is told once, and the monotonic clock,
    /// which drives the policies, has moved by four seconds.
    #[test]
    fn a_suspend_is_what_the_boot_clock_gains() {
        let pairs = [
            (0, 0),
            (300_000, 300_000),
            (304_000, 3_004_000),
            (400_000, 3_100_000),
            (900_000, 3_600_000),
        ];
        assert_eq!(told(&pairs), [None, None, Some(2_700_000), None, None]);
    }

    /// A host that slept before the start, short naps and jitter are none of its business; two sleeps are two.
    #[test]
    fn only_a_gain_since_the_last_look_is_a_suspend() {
        let pairs = [(5, 9_000_005), (900, 9_000_901), (1_000, 9_001_999)];
        assert_eq!(told(&pairs), [None, None, None]);
        let pairs = [(0, 0), (10, 2_010), (20, 2_020), (30, 3_330)];
        assert_eq!(told(&pairs), [None, Some(2_000), None, Some(1_300)]);
        // Should the clocks ever come nearer to each other, nothing is made of it.
        assert_eq!(told(&[(0, 5_000), (10, 10)]), [None, None]);
    }

    /// Whoever is not scheduled between two looks at the clocks has not slept.
    #[test]
    fn a_reading_that_took_long_tells_nothing() {
        let mut suspends = Suspends::default();
        assert_eq!(suspends.look(Reading::now()), None);
        let now = Reading::now();
        let stopped = Reading {
            before_ns: now.before_ns,
            boot_time_ns: now.boot_time_ns + 4_000 * MS,
            after_ns: now.after_ns + 4_000 * MS,
        };
        assert_eq!(suspends.look(stopped), None);
        assert_eq!(suspends.look(Reading::now()), None);
    }

    /// What happens meanwhile takes no time on this clock, on none of its clones.
    #[test]
    fn a_clock_can_stand_still() {
        let clock = Clock::start();
        let clone = clock.clone();
        let took_ms = clock.stand_still(|| std::thread::sleep(Duration::from_secs(2)));
        assert!(took_ms >= 2_000);
        // The machine may be busy: less than the stretch, not nothing.
        assert!(clone.now_ms() < 2_000 && clock.until(3_000) > Duration::from_secs(1));
    }

    #[test]
    fn a_passed_instant_is_no_time_away() {
        let clock = Clock::start();
        assert_eq!(clock.until(0), Duration::ZERO);
        assert!(clock.until(60_000) > Duration::from_secs(30));
    }
}
