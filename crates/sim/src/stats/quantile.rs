//! Quantiles by the nearest rank, with order-statistic intervals.
//!
//! Definition: Hyndman & Fan (1996) type 1, the inverse of the empirical distribution: `x_(k)` with
//! `k = max(1, ceil(n p))` in exact arithmetic. The quantile is an observed value. Interval: ranks `l`, `u` from the
//! binomial distribution (Scheffe & Tukey 1945; Conover 1999), conservative with ties.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::estimate::{Interval, Reason, Status, json, text};
use super::prob::{Level, Prob};
use super::rates::{binomial_cdf, binomial_upper};

/// How often each value, in ms, was seen; parts merge without loss.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    by_ms: BTreeMap<u64, u64>,
    total: u64,
}

impl Counts {
    /// Counts `times` more samples of `ms`.
    pub fn add(&mut self, ms: u64, times: u64) {
        if times > 0 {
            let count = self.by_ms.entry(ms).or_insert(0);
            *count = count.saturating_add(times);
            self.total = self.total.saturating_add(times);
        }
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (ms, times) in other.iter() {
            self.add(ms, times);
        }
    }

    /// All samples counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// How many different values were seen.
    pub fn distinct(&self) -> usize {
        self.by_ms.len()
    }

    /// Samples of at least `ms`: the kills of an idle window of that length.
    pub fn at_least(&self, ms: u64) -> u64 {
        self.by_ms.range(ms..).map(|(_, times)| times).sum()
    }

    /// Samples of exactly `ms`: the ties at a window of that length.
    pub fn at(&self, ms: u64) -> u64 {
        self.by_ms.get(&ms).copied().unwrap_or(0)
    }

    /// The `rank`-th longest, from 1.
    pub fn longest(&self, rank: u64) -> Option<u64> {
        let mut longer = 0;
        let at = self.by_ms.iter().rev().find(|(_, times)| {
            longer += **times;
            longer >= rank
        });
        at.map(|(&ms, _)| ms)
    }

    /// (value, count), by rising value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_ms.iter().map(|(&ms, &times)| (ms, times))
    }
}

impl FromIterator<u64> for Counts {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut counts = Self::default();
        for ms in values {
            counts.add(ms, 1);
        }
        counts
    }
}

impl FromIterator<(u64, u64)> for Counts {
    /// Built at once, the map takes half the memory that it grows to value by value.
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(pairs: I) -> Self {
        let counted = pairs.into_iter().filter(|&(_, times)| times > 0);
        let mut pairs: Vec<(u64, u64)> = counted.collect();
        pairs.sort_unstable();
        pairs.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        let all = pairs.iter().map(|pair| pair.1);
        Self {
            total: all.fold(0, u64::saturating_add),
            by_ms: pairs.into_iter().collect(),
        }
    }
}

/// The counts of samples at least as long, for many questions about the same [`Counts`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Exceedances {
    /// (value, samples of at least that value), by rising value.
    steps: Vec<(u64, u64)>,
}

impl Exceedances {
    /// Adds up `counts` once.
    pub fn new(counts: &Counts) -> Self {
        let mut left = counts.total();
        let steps = counts.iter().map(|(ms, times)| {
            let step = (ms, left);
            left = left.saturating_sub(times);
            step
        });
        Self {
            steps: steps.collect(),
        }
    }

    /// Samples of at least `ms`.
    pub fn at_least(&self, ms: u64) -> u64 {
        let first = self.steps.partition_point(|&(value, _)| value < ms);
        self.steps.get(first).map_or(0, |&(_, count)| count)
    }
}

/// Samples that can be asked for their k-th smallest.
trait Ranked {
    fn n(&self) -> u64;
    /// The `rank`-th smallest sample, from 1.
    fn at_rank(&self, rank: u64) -> Option<u64>;
}

impl Ranked for [u64] {
    fn n(&self) -> u64 {
        self.len() as u64
    }

    fn at_rank(&self, rank: u64) -> Option<u64> {
        self.get(usize::try_from(rank.checked_sub(1)?).ok()?)
            .copied()
    }
}

impl Ranked for Counts {
    fn n(&self) -> u64 {
        self.total
    }

    fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        self.iter().find_map(|(ms, times)| {
            seen += times;
            (rank > 0 && seen >= rank).then_some(ms)
        })
    }
}

/// The ranks of an order-statistic interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// Rank of the lower limit; `None`: there is none.
    pub lower: Option<u64>,
    /// Rank of the upper limit; `None`: no finite one.
    pub upper: Option<u64>,
    /// The coverage that these ranks achieve, at least the level.
    pub coverage: f64,
}

/// Ranks of the two-sided order-statistic interval of the `p` quantile among `n` samples:
/// the largest `l` with `P(B <= l-1) <= a/2` and the smallest `u` with `P(B >= u) <= a/2`, `B ~ Bin(n, p)`.
pub fn ranks(n: u64, p: Prob, level: Level) -> Ranks {
    let tail = level.alpha(2);
    // bisection: both conditions are monotone in the rank; what does not converge counts as not fulfilled
    let past = n.saturating_add(1);
    let (mut lower, mut above) = (0, past);
    while above - lower > 1 {
        let rank = lower + (above - lower) / 2;
        let fits = binomial_cdf(rank - 1, n, p).is_some_and(|chance| chance <= tail);
        if fits { lower = rank } else { above = rank }
    }
    let (mut below, mut upper) = (0, past);
    while upper - below > 1 {
        let rank = below + (upper - below) / 2;
        let fits = binomial_upper(rank, n, p).is_some_and(|chance| chance <= tail);
        if fits { upper = rank } else { below = rank }
    }
    // P(l <= B <= u-1), with a missing side counted as covering
    let missed_below = if lower == 0 {
        Some(0.0)
    } else {
        binomial_cdf(lower - 1, n, p)
    };
    let missed_above = if upper > n {
        Some(0.0)
    } else {
        binomial_upper(upper, n, p)
    };
    let coverage = 1.0 - missed_below.unwrap_or(0.0) - missed_above.unwrap_or(0.0);
    Ranks {
        lower: (lower > 0).then_some(lower),
        upper: (upper <= n).then_some(upper),
        coverage,
    }
}

/// The least number of samples with which the `p` quantile has a finite upper limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SamplesNeeded {
    /// For a two-sided interval: `p^n <= a/2`. `None` for `p = 1`.
    pub two_sided: Option<u64>,
    /// For a one-sided upper limit: `p^n <= a`; also the n with which the maximum bounds the quantile.
    pub one_sided: Option<u64>,
}

/// How many samples the `p` quantile needs before it has an upper limit.
pub fn samples_needed(p: Prob, level: Level) -> SamplesNeeded {
    SamplesNeeded {
        two_sided: least_power(p, level.alpha(2)),
        one_sided: least_power(p, level.alpha(1)),
    }
}

/// The least `n >= 1` with `p^n <= tail`.
fn least_power(p: Prob, tail: f64) -> Option<u64> {
    let q = p.complement().to_f64();
    if q == 0.0 {
        return None;
    }
    if q >= 1.0 {
        return Some(1);
    }
    let (ln_tail, ln_p) = (libm::log(tail), libm::log1p(-q));
    let n = libm::ceil(ln_tail / ln_p).max(1.0);
    // the quotient may round across an integer: take the smaller neighbour if it already fits
    let n = if n > 1.0 && (n - 1.0) * ln_p <= ln_tail {
        n - 1.0
    } else {
        n
    };
    (n < 9e15).then_some(n as u64)
}

/// A type-1 quantile with its order-statistic interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// Which quantile.
    pub p: Prob,
    /// Samples.
    pub n: u64,
    /// The nearest rank, `max(1, ceil(n p))`; 0 without samples.
    pub rank: u64,
    /// The sample at that rank, in ms. When [`Status::NotEstimable`] it is only the sample maximum: see [`Self::point`].
    pub value: Option<u64>,
    /// Smallest and largest sample, in ms.
    pub range: Interval<u64>,
    /// Limits, in ms.
    pub interval: Interval<u64>,
    /// The ranks of the limits and the coverage they achieve.
    pub ranks: Ranks,
    /// `n (1 - p)`: samples expected above the quantile.
    pub expected_above: f64,
    /// `not_estimable` when less than one sample is expected above, `one_sided` when there is no upper limit.
    pub status: Status,
    /// What is missing, and how many samples are needed.
    pub reason: Option<Reason>,
}

impl QuantileEstimate {
    /// The quantile, in ms, unless the data cannot carry it.
    pub fn point(&self) -> Option<u64> {
        self.value.filter(|_| self.status != Status::NotEstimable)
    }

    /// The largest sample, in ms.
    pub const fn max(&self) -> Option<u64> {
        self.range.up
    }
}

impl fmt::Display for QuantileEstimate {
    /// `p99 = 56617 ms [47110, 89400], n=800, 8 above`; a maximum that is no quantile is called one.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.p.percentile_label())?;
        match (self.point(), self.max()) {
            (Some(point), _) => write!(out, " = {point} ms")?,
            (None, Some(max)) => write!(out, " not estimable (max {max} ms)")?,
            (None, None) => write!(out, " not estimable")?,
        }
        write!(
            out,
            " {}, n={}, {} above",
            self.interval,
            self.n,
            text(self.expected_above)
        )?;
        self.reason
            .map_or(Ok(()), |reason| write!(out, ", {reason}"))
    }
}

impl Serialize for QuantileEstimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("QuantileEstimate", 11)?;
        fields.serialize_field("p", &self.p.to_string())?;
        fields.serialize_field("n", &self.n)?;
        fields.serialize_field("rank", &self.rank)?;
        fields.serialize_field("point_ms", &self.point())?;
        fields.serialize_field("max_ms", &self.max())?;
        fields.serialize_field("interval_ms", &self.interval)?;
        fields.serialize_field(
            "interval_ranks",
            &Interval {
                lo: self.ranks.lower,
                up: self.ranks.upper,
            },
        )?;
        fields.serialize_field("coverage", &json(self.ranks.coverage))?;
        fields.serialize_field("expected_above", &json(self.expected_above))?;
        fields.serialize_field("status", &self.status)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.end()
    }
}

/// The `p` quantile of samples sorted by rising value, in ms, with a 95 % interval.
pub fn quantile(sorted: &[u64], p: Prob) -> QuantileEstimate {
    quantile_at(sorted, p, Level::P95)
}

/// [`quantile`] with an interval at `level`.
pub fn quantile_at(sorted: &[u64], p: Prob, level: Level) -> QuantileEstimate {
    estimate(sorted, p, level)
}

/// [`quantile_at`] of counted samples.
pub fn quantile_of_counts(counts: &Counts, p: Prob, level: Level) -> QuantileEstimate {
    estimate(counts, p, level)
}

fn estimate<R: Ranked + ?Sized>(samples: &R, p: Prob, level: Level) -> QuantileEstimate {
    estimate_between(samples, p, level, ranks(samples.n(), p, level))
}

/// Quantiles of many samples at one level: the ranks of their intervals hang on the number of samples alone.
#[derive(Clone, Debug)]
pub struct RankTable {
    level: Level,
    known: HashMap<(u64, Prob), Ranks>,
}

impl RankTable {
    /// An empty table for intervals at `level`.
    pub fn new(level: Level) -> Self {
        Self {
            level,
            known: HashMap::new(),
        }
    }

    /// [`quantile_at`] at the table's level.
    pub fn quantile(&mut self, sorted: &[u64], p: Prob) -> QuantileEstimate {
        self.estimate(sorted, p)
    }

    /// [`quantile_of_counts`] at the table's level.
    pub fn quantile_of_counts(&mut self, counts: &Counts, p: Prob) -> QuantileEstimate {
        self.estimate(counts, p)
    }

    fn estimate<R: Ranked + ?Sized>(&mut self, samples: &R, p: Prob) -> QuantileEstimate {
        let (n, level) = (samples.n(), self.level);
        let found = self.known.entry((n, p));
        let ranks = *found.or_insert_with(|| ranks(n, p, level));
        estimate_between(samples, p, level, ranks)
    }
}

fn estimate_between<R: Ranked + ?Sized>(
    samples: &R,
    p: Prob,
    level: Level,
    ranks: Ranks,
) -> QuantileEstimate {
    let n = samples.n();
    let rank = p.rank(n);
    let at = |rank: Option<u64>| rank.and_then(|rank| samples.at_rank(rank));
    let need = || {
        samples_needed(p, level)
            .two_sided
            .map_or(Reason::RefusedExtrapolation, |need| Reason::NTooSmall {
                have: n,
                need,
            })
    };
    let (status, reason) = if n == 0 {
        (Status::NotEstimable, Some(Reason::NoData))
    } else if !p.reaches_above(n) {
        (Status::NotEstimable, Some(need()))
    } else if ranks.upper.is_none() {
        (Status::OneSided, Some(need()))
    } else if ranks.lower.is_none() {
        // few samples and a low quantile: the mirror image of the rule above
        let need = samples_needed(p.complement(), level).two_sided;
        (
            Status::OneSided,
            need.map(|need| Reason::NTooSmall { have: n, need }),
        )
    } else {
        (Status::Ok, None)
    };
    QuantileEstimate {
        p,
        n,
        rank,
        value: samples.at_rank(rank),
        range: Interval {
            lo: samples.at_rank(1),
            up: samples.at_rank(n),
        },
        interval: Interval {
            lo: at(ranks.lower),
            up: at(ranks.upper),
        },
        ranks,
        expected_above: p.expected_above(n),
        status,
        reason,
    }
}

/// The `p` quantile of Hyndman & Fan's type 7 (linear interpolation over `n - 1` steps), the default of spreadsheets
/// and numpy, for people who compare tools; everything else here is type 1. In ms.
pub fn quantile_type7(sorted: &[u64], p: Prob) -> Option<f64> {
    let steps = sorted.len().checked_sub(1)? as f64;
    let position = steps * p.to_f64();
    let below = libm::floor(position);
    let left = *sorted.get(below as usize)?;
    let right = sorted.get(below as usize + 1).copied().unwrap_or(left);
    Some(left as f64 + (position - below) * (right - left) as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn p(text: &str) -> Prob {
        text.parse().unwrap()
    }

    #[test]
    fn remembered_ranks_are_the_same() {
        let mut table = RankTable::new(Level::P95);
        for n in [0, 1, 40, 40, 400, 1] {
            let sorted: Vec<u64> = (0..n).map(|ms| ms * ms).collect();
            for p in [p("0.5"), p("0.99")] {
                let found = table.quantile(&sorted, p);
                assert_eq!(found, quantile_at(&sorted, p, Level::P95));
            }
        }
        assert_eq!(table.known.len(), 8);
    }

    #[test]
    fn p999_of_800_is_only_the_maximum() {
        // the worked example of the method: rank 800, lower rank 797, no upper limit, 3688 samples needed
        let sorted: Vec<u64> = (1..=800).collect();
        let found = quantile(&sorted, p("0.999"));
        assert_eq!(
            (found.rank, found.value, found.point()),
            (800, Some(800), None)
        );
        assert_eq!(
            found.interval,
            Interval {
                lo: Some(797),
                up: None
            }
        );
        assert_eq!(found.status, Status::NotEstimable);
        assert_eq!(
            found.reason,
            Some(Reason::NTooSmall {
                have: 800,
                need: 3_688
            })
        );
        assert_eq!(
            found.to_string(),
            "p99.9 not estimable (max 800 ms) [797, -], n=800, 0.8 above, \
             n_too_small(need=3688, 2888 more)"
        );
    }

    #[test]
    fn without_samples_and_with_one() {
        let none = quantile(&[], p("0.5"));
        assert_eq!(
            (none.rank, none.value, none.reason),
            (0, None, Some(Reason::NoData))
        );
        let one = quantile(&[7], p("0.5"));
        assert_eq!((one.value, one.interval), (Some(7), Interval::none()));
        let lowest = quantile(&[7, 9], p("0"));
        assert_eq!(lowest.value, Some(7));
        let highest = quantile(&[7, 9], p("1"));
        assert_eq!((highest.value, highest.point()), (Some(9), None));
        assert_eq!(quantile_type7(&[], p("0.5")), None);
    }

    #[test]
    fn equal_values_have_a_degenerate_interval() {
        let found = quantile(&[600_000; 20], p("0.5"));
        assert_eq!(found.interval, Interval::new(600_000, 600_000));
        assert_eq!((found.point(), found.status), (Some(600_000), Status::Ok));
    }

    proptest! {
        #[test]
        fn counted_and_sorted_samples_agree(mut values in prop::collection::vec(0_u64..50, 0..200), thousandths in 0_u64..=1000) {
            let p = Prob::from_ratio(thousandths, 1000).unwrap();
            let counts: Counts = values.iter().copied().collect();
            values.sort_unstable();
            prop_assert_eq!(quantile_at(&values, p, Level::P95), quantile_of_counts(&counts, p, Level::P95));
            let exceedances = Exceedances::new(&counts);
            for ms in 0..52 {
                prop_assert_eq!(exceedances.at_least(ms), counts.at_least(ms));
            }
        }

        #[test]
        fn shards_merge_to_the_whole(parts in prop::collection::vec(prop::collection::vec(0_u64..1000, 0..40), 0..6)) {
            let whole: Counts = parts.iter().flatten().copied().collect();
            let mut merged = Counts::default();
            for part in parts.iter().rev() {
                merged.merge(&part.iter().copied().collect());
            }
            prop_assert_eq!(merged, whole);
        }

        #[test]
        fn stretching_time_stretches_quantiles(mut values in prop::collection::vec(0_u64..10_000, 1..100), factor in 1_u64..1000) {
            values.sort_unstable();
            let stretched: Vec<u64> = values.iter().map(|value| value * factor).collect();
            let (one, other) = (quantile(&values, p("0.9")), quantile(&stretched, p("0.9")));
            let scale = |limit: Option<u64>| limit.map(|limit| limit * factor);
            prop_assert_eq!(scale(one.value), other.value);
            prop_assert_eq!((scale(one.interval.lo), scale(one.interval.up)), (other.interval.lo, other.interval.up));
        }
    }
}
