//! Figures from histograms, whose buckets are intervals of ms.
//!
//! An HDR histogram with three digits has buckets of 1 unit up to 2,047 and then of a relative width below 1/1,024. The
//! kills of a window inside a bucket are known only within bounds. A histogram has lost sessions and censoring:
//! everything from it assumes independent gaps and can never pass a gate.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::estimate::Interval;
use super::prob::Prob;

/// Counts by bucket `[lowest, highest]`, in ms.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Buckets {
    by_range: BTreeMap<(u64, u64), u64>,
    total: u64,
}

impl Buckets {
    /// Counts `times` gaps somewhere in `[lowest_ms, highest_ms]`, in either order.
    pub fn add(&mut self, lowest_ms: u64, highest_ms: u64, times: u64) {
        if times > 0 {
            let range = (lowest_ms.min(highest_ms), lowest_ms.max(highest_ms));
            *self.by_range.entry(range).or_insert(0) += times;
            self.total += times;
        }
    }

    /// The recorded buckets of an HDR histogram of ms.
    pub fn from_hdr(histogram: &Histogram<u64>) -> Self {
        let mut buckets = Self::default();
        for value in histogram.iter_recorded() {
            let at = value.value_iterated_to();
            let (lowest, highest) = equivalent(histogram, at);
            buckets.add(lowest, highest, value.count_at_value());
        }
        buckets
    }

    /// All gaps counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Bounds of the number of gaps of at least `window_ms`: buckets entirely above, and those that straddle it too.
    pub fn kills(&self, window_ms: u64) -> (u64, u64) {
        let count = |at_least: fn((u64, u64)) -> u64| {
            self.by_range
                .iter()
                .filter(|&(&range, _)| at_least(range) >= window_ms)
                .map(|(_, times)| times)
                .sum()
        };
        (count(|range| range.0), count(|range| range.1))
    }

    /// Bounds of the type-1 `p` quantile, in ms.
    pub fn quantile(&self, p: Prob) -> Interval<u64> {
        let rank = p.rank(self.total);
        let at = |mut ends: Vec<(u64, u64)>| {
            ends.sort_unstable();
            let mut seen = 0;
            ends.into_iter().find_map(|(end, times)| {
                seen += times;
                (rank > 0 && seen >= rank).then_some(end)
            })
        };
        let side = |end: fn((u64, u64)) -> u64| {
            at(self
                .by_range
                .iter()
                .map(|(&range, &times)| (end(range), times))
                .collect())
        };
        Interval {
            lo: side(|range| range.0),
            up: side(|range| range.1),
        }
    }
}

/// The smallest and largest value that share the bucket of `value`.
pub fn equivalent(histogram: &Histogram<u64>, value: u64) -> (u64, u64) {
    (
        histogram.lowest_equivalent(value),
        histogram.highest_equivalent(value),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::quantile::Counts;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_hold_the_truth(values in prop::collection::vec(1_u64..3_600_000, 1..80), window in 1_u64..3_600_000, percent in 1_u64..100) {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000, 3).unwrap();
            for &value in &values {
                histogram.record(value).unwrap();
            }
            let buckets = Buckets::from_hdr(&histogram);
            let exact: Counts = values.iter().copied().collect();
            let (least, most) = buckets.kills(window);
            prop_assert!(least <= exact.at_least(window) && exact.at_least(window) <= most);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let p = Prob::from_ratio(percent, 100).unwrap();
            let truth = sorted[p.rank(sorted.len() as u64) as usize - 1];
            let bounds = buckets.quantile(p);
            prop_assert!(bounds.lo.unwrap() <= truth && truth <= bounds.up.unwrap());
            prop_assert!(bounds.up.unwrap() - bounds.lo.unwrap() <= truth / 1_000);
        }
    }

    #[test]
    fn nothing_recorded() {
        let buckets = Buckets::default();
        assert_eq!(
            (buckets.kills(5), buckets.quantile(Prob::P99)),
            ((0, 0), Interval::none())
        );
    }
}
