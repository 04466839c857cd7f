//! What a simulation counts. Every field is a whole number, so that parts merge to the same whole in any order.

use policysim_policy::Millis;

use crate::stats::Counts;

/// Numbers of waits that are told apart; more count as one.
pub const WAITS_TOLD: usize = 16;

/// Different times that are told apart to the millisecond; beyond, they are rounded up to three digits or so.
const EXACT_TIMES: usize = 16_384;

/// Times of which there may be very many, in memory that has a bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    counts: Counts,
    rounded: bool,
}

impl Times {
    pub(super) fn add(&mut self, span: Millis) {
        let ms = span.as_u64();
        self.counts
            .add(if self.rounded { rounded(ms) } else { ms }, 1);
        self.hold();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.rounded && !self.rounded {
            self.round();
        }
        if self.rounded && !other.rounded {
            let mut other = other.clone();
            other.round();
            self.counts.merge(&other.counts);
        } else {
            self.counts.merge(&other.counts);
        }
        self.hold();
    }

    /// The union of exact times is too large, or is not, whatever order it was made in.
    fn hold(&mut self) {
        if !self.rounded && self.counts.distinct() > EXACT_TIMES {
            self.round();
        }
    }

    fn round(&mut self) {
        let mut coarse = Counts::default();
        for (ms, times) in self.counts.iter() {
            coarse.add(rounded(ms), times);
        }
        self.counts = coarse;
        self.rounded = true;
    }

    /// The times in ms and how often each came.
    pub(super) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether they were rounded up, by less than 0.1 %.
    pub(super) const fn are_rounded(&self) -> bool {
        self.rounded
    }
}

/// The largest number with the same leading 11 bits.
const fn rounded(ms: u64) -> u64 {
    let bits = u64::BITS - ms.leading_zeros();
    let dropped = bits.saturating_sub(11);
    ms | ((1 << dropped) - 1)
}

/// Sums over parents of a numerator, its denominator and their products: what the error of a ratio needs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Moments {
    pub(super) parents: u64,
    pub(super) x: u128,
    pub(super) n: u128,
    pub(super) xx: u128,
    pub(super) xn: u128,
    pub(super) nn: u128,
}

impl Moments {
    /// One parent.
    pub(super) const fn of(x: u64, n: u64) -> Self {
        let (x, n) = (x as u128, n as u128);
        Self {
            parents: 1,
            x,
            n,
            xx: x * x,
            xn: x * n,
            nn: n * n,
        }
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            parents: self.parents + other.parents,
            x: self.x + other.x,
            n: self.n + other.n,
            xx: self.xx + other.xx,
            xn: self.xn + other.xn,
            nn: self.nn + other.nn,
        }
    }
}

/// Whole numbers of one parent or of many.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Numbers {
    /// Parents.
    pub parents: u64,
    /// Tasks, each with its first run.
    pub runs: u64,
    /// Of those, runs that do not hang.
    pub healthy: u64,
    /// Waits that returned, expired ones included.
    pub waits: u64,
    /// Waits that expired.
    pub expiries: u64,
    /// Runs that began to hang and had not been stopped before.
    pub hangs: u64,
    /// Hangs of runs that the parent had taken for failed before they hung; in none of the others.
    pub hangs_given_up_before: u64,
    /// Of the hangs, inside a wait of their parent.
    pub hangs_in_wait: u64,
    /// Of those, settled before that wait was over.
    pub settled_in_wait: u64,
    /// Hangs that had not settled when the observation ended.
    pub hangs_unsettled: u64,
    /// Hangs by the number of waits until the parent knew, the one in which they began (or the next) included;
    /// the last place holds more.
    pub known_after: [u64; WAITS_TOLD],
    /// Hangs that the parent never knew of.
    pub never_known: u64,
    /// Of those known: because it took an expiry for a failure, stopped the run or closed its turn.
    pub given_up: u64,
    /// Over the hangs: from the hang to the parent's knowledge, or to the end of the observation, ms.
    pub unaware_ms: u128,
    /// Runs that their watchdog killed though they were alive, as a replay judges it; none of those that hang later.
    pub false_kills: u64,
    /// Runs that their watchdog killed and that failed anyway.
    pub true_kills: u64,
    /// Runs that their watchdog killed where the record cannot tell whether rightly.
    pub unresolved_kills: u64,
    /// Runs that hang later and that their watchdog killed before: in no rate of false kills.
    pub hung_killed_early: u64,
    /// Healthy runs that a parent took for failed at an expiry.
    pub misread: u64,
    /// Healthy runs that a parent stopped.
    pub stopped: u64,
    /// Healthy runs that the end of a parent's turn killed.
    pub closed: u64,
    /// Runs started a second time though the first was healthy.
    pub duplicates: u64,
    /// Slot time of those, ms.
    pub duplicate_ms: u128,
    /// Runs started again after a firing, as the policy's `on_timeout.retry` says.
    pub retries: u64,
    /// Of those, attempts that their watchdog killed after the very time it had killed the one before: a retry
    /// cannot help.
    pub retries_alike: u64,
    /// Spawns refused because as many ran as may.
    pub refused: u64,
    /// Tasks whose work was delivered.
    pub delivered: u64,
    /// Time in waits, ms.
    pub blocked_ms: u128,
    /// From a parent's start to its last delivery, ms.
    pub parent_ms: u128,
    /// Slot time of all delegates, ms.
    pub slot_ms: u128,
    /// Slot time of hung ones from the hang on, ms.
    pub slot_hung_ms: u128,
}

/// Everything that is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Whole numbers.
    pub(super) numbers: Numbers,
    /// From the hang to the parent's knowledge.
    pub(super) knowledge: Times,
    /// The same summed, those that it never knew of up to the end of the observation, by hangs.
    pub(super) unaware: Moments,
    /// Expiries by runs.
    pub(super) expiries: Moments,
    /// Waits by runs.
    pub(super) waits: Moments,
    /// Blocked time by parents' time.
    pub(super) blocked: Moments,
    /// Hung slot time by slot time.
    pub(super) held: Moments,
    /// Healthy runs falsely killed by their watchdog, by healthy runs; so are the next three.
    pub(super) false_kills: Moments,
    /// Taken for failed.
    pub(super) misread: Moments,
    /// Stopped by the parent.
    pub(super) stopped: Moments,
    /// Killed with the parent's turn.
    pub(super) closed: Moments,
    /// Second runs of healthy ones, by runs.
    pub(super) duplicates: Moments,
}

impl Tally {
    /// This and `other` together.
    #[must_use]
    pub(super) fn merge(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    /// Adds `other` to this.
    pub(super) fn add(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.numbers, &other.numbers);
        macro_rules! add {
            ($($field:ident)*) => { $( mine.$field += theirs.$field; )* };
        }
        add!(parents runs healthy waits expiries hangs hangs_given_up_before hangs_in_wait settled_in_wait hangs_unsettled never_known
            given_up unaware_ms false_kills true_kills unresolved_kills hung_killed_early misread stopped closed duplicates duplicate_ms retries retries_alike refused delivered
            blocked_ms parent_ms slot_ms slot_hung_ms);
        for (mine, theirs) in mine.known_after.iter_mut().zip(theirs.known_after) {
            *mine += theirs;
        }
        self.knowledge.merge(&other.knowledge);
        macro_rules! plus {
            ($($field:ident)*) => { $( self.$field = self.$field.plus(other.$field); )* };
        }
        plus!(unaware expiries waits blocked held false_kills misread stopped closed duplicates);
    }
}
