//! Lengths of time counted in bounded memory: exactly as long as there are few different ones, then in the buckets of
//! an HDR histogram.

use std::sync::LazyLock;

use hdrhistogram::Histogram;

use crate::stats::Counts;

/// Up to so many different lengths are counted exactly.
pub const EXACT_LENGTHS: usize = 1 << 15;

/// Significant digits beyond that: a length is told at most 0.1 % too long.
const DIGITS: u8 = 3;

/// How often each length was met, in ms.
///
/// What is held is a function of all that was counted, whatever the order and however it was split: a part that has
/// too many different lengths makes the whole have too many.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths(State);

#[derive(Clone, Debug, PartialEq)]
enum State {
    Exact(Counts),
    Coarse(Box<Histogram<u64>>),
}

impl Default for Lengths {
    fn default() -> Self {
        Self(State::Exact(Counts::default()))
    }
}

impl Eq for Lengths {}

impl Lengths {
    /// Counts `times` more of `ms`.
    pub fn add(&mut self, ms: u64, times: u64) {
        self.add_within(ms, times, EXACT_LENGTHS);
    }

    /// The same with up to `exact` different lengths counted exactly.
    fn add_within(&mut self, ms: u64, times: u64, exact: usize) {
        if times == 0 {
            return;
        }
        match &mut self.0 {
            State::Exact(counts) => {
                counts.add(ms, times);
                if counts.distinct() > exact {
                    let mut coarse = histogram();
                    for (ms, times) in counts.iter() {
                        record(&mut coarse, ms, times);
                    }
                    self.0 = State::Coarse(Box::new(coarse));
                }
            }
            State::Coarse(histogram) => record(histogram, ms, times),
        }
    }

    /// Takes in what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.merge_within(other, EXACT_LENGTHS);
    }

    fn merge_within(&mut self, other: &Self, exact: usize) {
        if let (State::Exact(_), State::Coarse(theirs)) = (&self.0, &other.0) {
            // of two the coarse one takes in the other
            let mut merged = Self(State::Coarse(theirs.clone()));
            merged.merge_within(self, exact);
            *self = merged;
            return;
        }
        match &other.0 {
            State::Exact(counts) => {
                for (ms, times) in counts.iter() {
                    self.add_within(ms, times, exact);
                }
            }
            State::Coarse(theirs) => {
                for bucket in theirs.iter_recorded() {
                    let ms = bucket.value_iterated_to();
                    self.add_within(ms, bucket.count_at_value(), exact);
                }
            }
        }
    }

    /// Whether every length is told as it was; otherwise none is told shorter, and none more than 0.1 % longer.
    pub const fn is_exact(&self) -> bool {
        matches!(self.0, State::Exact(_))
    }

    /// What was told by [`Lengths::counts`] and [`Lengths::is_exact`].
    pub(crate) fn restore(counts: Counts, exact: bool) -> Self {
        if exact {
            return Self(State::Exact(counts));
        }
        let mut coarse = Self(State::Coarse(Box::new(histogram())));
        coarse.merge(&Self(State::Exact(counts)));
        coarse
    }

    /// All that were counted.
    pub fn total(&self) -> u64 {
        match &self.0 {
            State::Exact(counts) => counts.total(),
            State::Coarse(histogram) => histogram.len(),
        }
    }

    /// Lengths with how often each was met, by rising length; beyond [`EXACT_LENGTHS`] the longest of each bucket.
    pub fn counts(&self) -> Counts {
        match &self.0 {
            State::Exact(counts) => counts.clone(),
            State::Coarse(_) => self.pairs(|pairs| pairs.collect()),
        }
    }

    /// The same as pairs, handed to `take`.
    pub(crate) fn pairs<T>(
        &self,
        take: impl FnOnce(&mut dyn Iterator<Item = (u64, u64)>) -> T,
    ) -> T {
        match &self.0 {
            State::Exact(counts) => take(&mut counts.iter()),
            State::Coarse(histogram) => take(&mut histogram.iter_recorded().map(|bucket| {
                let ms = histogram.highest_equivalent(bucket.value_iterated_to());
                (ms, bucket.count_at_value())
            })),
        }
    }
}

/// The longest length that shares a bucket with `ms`.
pub(crate) fn rounded(ms: u64) -> u64 {
    static BUCKETS: LazyLock<Histogram<u64>> = LazyLock::new(histogram);
    BUCKETS.highest_equivalent(ms)
}

fn record(histogram: &mut Histogram<u64>, ms: u64, times: u64) {
    // it grows with what it is given, and there is a bucket for every length
    if histogram.record_n(ms, times).is_err() {
        histogram.saturating_record_n(ms, times);
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("three digits are within its bounds")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn counted(values: &[u64], exact: usize) -> Lengths {
        let mut found = Lengths::default();
        for &ms in values {
            found.add_within(ms, 1, exact);
        }
        found
    }

    proptest! {
        #[test]
        fn any_split_in_any_order_counts_the_same(
            mut values in prop::collection::vec(0_u64..400_000_000, 1..60),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            turn in any::<prop::sample::Index>(),
            exact in 1_usize..80,
        ) {
            let whole = counted(&values, exact);
            let by = turn.index(values.len());
            values.rotate_left(by);
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(values.len())).collect();
            ends.push(values.len());
            ends.sort_unstable();
            let (mut left, mut right, mut from) = (Lengths::default(), Lengths::default(), 0);
            for end in ends {
                let part = counted(&values[from..end], exact);
                left.merge_within(&part, exact);
                let mut first = part;
                first.merge_within(&right, exact);
                right = first;
                from = end;
            }
            prop_assert_eq!(&left, &whole);
            prop_assert_eq!(&right, &whole);
            let mut distinct = values.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(whole.is_exact(), distinct.len() <= exact);
            prop_assert_eq!(whole.total(), values.len() as u64);
        }

        #[test]
        fn a_coarse_length_is_at_most_a_thousandth_too_long(values in prop::collection::vec(0_u64..400_000_000, 2..60)) {
            let mut exact: Vec<u64> = values.clone();
            exact.sort_unstable();
            let coarse = counted(&values, 0);
            let told = coarse.counts();
            let told = told.iter().flat_map(|(ms, times)| std::iter::repeat_n(ms, times as usize));
            for (told, exact) in told.zip(exact) {
                prop_assert!(told >= exact && told - exact <= exact / 1_000, "{told} for {exact}");
            }
        }
    }

    #[test]
    fn the_longest_length_there_is_has_a_bucket() {
        // stored times are signed
        let longest = i64::MAX.unsigned_abs();
        let found = counted(&[longest, 5, longest], 0);
        assert_eq!(found.total(), 3);
        let told: Vec<(u64, u64)> = found.counts().iter().collect();
        assert_eq!(told, [(5, 1), (rounded(longest), 2)]);
        assert!(rounded(longest) >= longest && rounded(longest) - longest <= longest / 1_000);
        assert_eq!(rounded(1_000), 1_000);
    }
}
