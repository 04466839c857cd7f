//! Whether two datasets differ: distance, tail, and the size of the effect.
//!
//! Kolmogorov-Smirnov distance (Hodges 1958) and the k-sample Anderson-Darling statistic with midranks (Scholz &
//! Stephens 1987), both judged by permuting whole sessions, because gaps of one session are not independent. Fisher's
//! exact test for the runs in the tail. A significant difference alone never means that something moved: the ratio of
//! tail probabilities has to leave the indifference zone as well.

use rayon::prelude::*;
use serde::Serialize;

use super::bootstrap::{Bootstrap, Indices, Resampling, resample};
use super::estimate::{Interval, Reason};
use super::normal::kolmogorov_upper;
use super::prob::{Level, Prob};
use super::quantile::quantile_at;

/// All splits are enumerated up to this number of them.
const MAX_SPLITS: u64 = 5_000;
/// Otherwise so many random ones are drawn.
const RANDOM_SPLITS: u64 = 999;
/// A p-value below this is a difference.
const SIGNIFICANT: f64 = 0.01;
/// A tail ratio outside this zone is worth acting on.
const INDIFFERENT: (f64, f64) = (0.8, 1.25);
/// A tail ratio surely inside this zone is stable.
const STABLE: (f64, f64) = (0.5, 2.0);
/// Floating-point statistics this close to the observed one count as equal to it, so that a rearranged sum is no
/// smaller.
const SAME: f64 = 1e-9;

/// The largest vertical distance between two empirical distributions, as an exact fraction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KsDistance {
    /// `|i m - j n|`
    num: u128,
    /// `n m`
    den: u128,
}

impl KsDistance {
    /// The distance, in `[0, 1]`.
    pub fn to_f64(self) -> f64 {
        if self.den == 0 {
            0.0
        } else {
            self.num as f64 / self.den as f64
        }
    }

    fn at_least(self, other: Self) -> bool {
        // sizes are counts of gaps, far below 2^32, so that the products fit
        self.num * other.den >= other.num * self.den
    }
}

/// Pooled samples of two groups: distinct value by distinct value, how many each group has.
fn tally(pooled: &[(u64, usize)], in_first: &[bool]) -> Vec<(u64, u64)> {
    let mut tally: Vec<(u64, u64)> = Vec::new();
    let mut last = None;
    for &(value, session) in pooled {
        if last != Some(value) {
            tally.push((0, 0));
            last = Some(value);
        }
        if let Some((first, second)) = tally.last_mut() {
            if in_first[session] {
                *first += 1;
            } else {
                *second += 1;
            }
        }
    }
    tally
}

fn sizes(tally: &[(u64, u64)]) -> (u64, u64) {
    tally
        .iter()
        .fold((0, 0), |(first, second), (a, b)| (first + a, second + b))
}

fn ks(tally: &[(u64, u64)]) -> KsDistance {
    let (n, m) = sizes(tally);
    let (mut i, mut j, mut num) = (0_u64, 0_u64, 0);
    for (a, b) in tally {
        i += a;
        j += b;
        num = num.max((u128::from(i) * u128::from(m)).abs_diff(u128::from(j) * u128::from(n)));
    }
    KsDistance {
        num,
        den: u128::from(n) * u128::from(m),
    }
}

/// The unstandardised midrank statistic `A2_akN` of two samples; `None` below two distinct values or an empty sample.
fn anderson_darling_raw(tally: &[(u64, u64)]) -> Option<f64> {
    let (n, m) = sizes(tally);
    if tally.len() < 2 || n == 0 || m == 0 {
        return None;
    }
    let all = (n + m) as f64;
    let (mut below, mut first_below) = (0.0, 0.0);
    let (mut first_sum, mut second_sum) = (0.0, 0.0);
    for &(a, b) in tally {
        let (a, ties) = (a as f64, (a + b) as f64);
        // midranks: values below, plus half of the ties
        let pooled = below + ties / 2.0;
        let (first, second) = (first_below + a / 2.0, pooled - (first_below + a / 2.0));
        let weight = ties / all / (pooled * (all - pooled) - all * ties / 4.0);
        let square = |count: f64, size: u64| {
            let distance = all * count - pooled * size as f64;
            distance * distance
        };
        first_sum += weight * square(first, n);
        second_sum += weight * square(second, m);
        below += ties;
        first_below += a;
    }
    Some((all - 1.0) / all * (first_sum / n as f64 + second_sum / m as f64))
}

/// What the variance of the Anderson-Darling statistic needs of the pooled size alone.
#[derive(Clone, Copy, Debug)]
struct AdMoments {
    all: f64,
    /// `sum_{i<N} 1/i`
    h: f64,
    /// `sum_{i<j<N} 1/((N-i) j)`
    g: f64,
}

impl AdMoments {
    /// `None` below four values, where the variance does not exist.
    fn new(n: u64) -> Option<Self> {
        if n < 4 {
            return None;
        }
        let all = n as f64;
        let (mut h, mut g, mut partial) = (1.0, 0.0, 0.0);
        for step in 2..n {
            let step = step as f64;
            h += 1.0 / step;
            partial += 1.0 / (all - step + 1.0);
            g += partial / step;
        }
        Some(Self { all, h, g })
    }

    /// The statistic of two samples of sizes `n` and `m`, less its mean, over its standard deviation.
    fn standardise(self, raw: f64, n: u64, m: u64) -> Option<f64> {
        const K: f64 = 2.0;
        let Self { all, h, g } = self;
        let inverse_sizes = 1.0 / n as f64 + 1.0 / m as f64;
        let a = (4.0 * g - 6.0) * (K - 1.0) + (10.0 - 6.0 * g) * inverse_sizes;
        let b = (2.0 * g - 4.0) * K * K + 8.0 * h * K + (2.0 * g - 14.0 * h - 4.0) * inverse_sizes
            - 8.0 * h
            + 4.0 * g
            - 6.0;
        let c = (6.0 * h + 2.0 * g - 2.0) * K * K
            + (4.0 * h - 4.0 * g + 6.0) * K
            + (2.0 * h - 6.0) * inverse_sizes
            + 4.0 * h;
        let d = (2.0 * h + 6.0) * K * K - 4.0 * h * K;
        let cubic = ((a * all + b) * all + c) * all + d;
        let variance = cubic / ((all - 1.0) * (all - 2.0) * (all - 3.0));
        (variance > 0.0).then(|| (raw - (K - 1.0)) / variance.sqrt())
    }
}

/// The standardised midrank statistic of two samples; `None` where it does not exist.
fn anderson_darling(tally: &[(u64, u64)], moments: Option<AdMoments>) -> Option<f64> {
    let (n, m) = sizes(tally);
    moments?.standardise(anderson_darling_raw(tally)?, n, m)
}

/// Two samples compared as if their values were independent; for display, as gaps of a session are not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSample {
    /// Kolmogorov-Smirnov distance.
    pub distance: KsDistance,
    /// Its limiting p-value, `Q(sqrt(nm/(n+m)) D)`.
    pub p_limit: f64,
    /// Standardised Anderson-Darling statistic; `None` where it does not exist.
    pub anderson_darling: Option<f64>,
}

/// Compares two samples, in any order; without a value on either side the distance is 0.
pub fn two_sample(first: &[u64], second: &[u64]) -> TwoSample {
    let mut pooled: Vec<(u64, usize)> = first.iter().map(|&value| (value, 0)).collect();
    pooled.extend(second.iter().map(|&value| (value, 1)));
    pooled.sort_unstable();
    let tally = tally(&pooled, &[true, false]);
    let distance = ks(&tally);
    let (n, m) = (first.len() as u64, second.len() as u64);
    let size = (n as f64 * m as f64 / (n + m).max(1) as f64).sqrt();
    TwoSample {
        distance,
        p_limit: kolmogorov_upper(size * distance.to_f64()),
        anderson_darling: anderson_darling(&tally, AdMoments::new(n + m)),
    }
}

/// A p-value by reassigning sessions to the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Permutation {
    /// Splits looked at, the observed one included.
    pub splits: u64,
    /// Those at least as extreme as the observed one, itself included.
    pub at_least_as_extreme: u64,
    /// Whether all splits were enumerated.
    pub exhaustive: bool,
}

impl Permutation {
    /// The p-value: never 0, because the observed split counts.
    pub fn p_value(self) -> f64 {
        self.at_least_as_extreme as f64 / self.splits as f64
    }
}

/// Both distances with their permutation tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionTest {
    /// Kolmogorov-Smirnov distance of the gaps.
    pub distance: KsDistance,
    /// Its permutation test.
    pub ks: Permutation,
    /// Standardised Anderson-Darling statistic.
    pub anderson_darling: Option<f64>,
    /// Its permutation test.
    pub ad: Option<Permutation>,
}

/// Tests whether the gaps of `before` and `after` come from one distribution, by permuting session labels: every split
/// when there are at most 5,000, else 999 random ones, numbered streams of `seed`. `None` when a side has no session.
pub fn session_test<S: AsRef<[u64]>>(before: &[S], after: &[S], seed: u64) -> Option<SessionTest> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let sessions = before.len() + after.len();
    let mut pooled: Vec<(u64, usize)> = before
        .iter()
        .chain(after)
        .enumerate()
        .flat_map(|(session, gaps)| gaps.as_ref().iter().map(move |&gap| (gap, session)))
        .collect();
    pooled.sort_unstable();

    let observed_labels: Vec<bool> = (0..sessions)
        .map(|session| session < before.len())
        .collect();
    let observed = tally(&pooled, &observed_labels);
    let moments = AdMoments::new(pooled.len() as u64);
    let (distance, statistic) = (ks(&observed), anderson_darling(&observed, moments));
    let reference = Reference {
        distance,
        statistic,
        moments,
    };
    let exhaustive = binomial_at_most(sessions as u64, before.len() as u64, MAX_SPLITS);
    let judge = |labels: &[bool]| reference.judge(&tally(&pooled, labels));
    let counts = if exhaustive {
        Combinations::new(sessions, before.len())
            .map(|labels| judge(&labels))
            .fold(Extreme::default(), Extreme::plus)
    } else {
        // integer sums, so that the order in which threads finish does not matter
        (0..RANDOM_SPLITS)
            .into_par_iter()
            .map(|split| {
                let mut labels = observed_labels.clone();
                Indices::new(seed, split).shuffle(&mut labels);
                judge(&labels)
            })
            .reduce(Extreme::default, Extreme::plus)
            .plus(judge(&observed_labels))
    };
    let permutation = |at_least_as_extreme| Permutation {
        splits: counts.splits,
        at_least_as_extreme,
        exhaustive,
    };
    Some(SessionTest {
        distance,
        ks: permutation(counts.ks),
        anderson_darling: statistic,
        ad: statistic.map(|_| permutation(counts.ad)),
    })
}

/// How many splits were at least as extreme as the observed one.
#[derive(Clone, Copy, Debug, Default)]
struct Extreme {
    splits: u64,
    ks: u64,
    ad: u64,
}

impl Extreme {
    const fn plus(self, other: Self) -> Self {
        Self {
            splits: self.splits + other.splits,
            ks: self.ks + other.ks,
            ad: self.ad + other.ad,
        }
    }
}

/// The observed statistics.
struct Reference {
    distance: KsDistance,
    statistic: Option<f64>,
    moments: Option<AdMoments>,
}

impl Reference {
    fn judge(&self, tally: &[(u64, u64)]) -> Extreme {
        // sizes differ from split to split, so the standardised statistics are what compares
        let ad = self
            .statistic
            .zip(anderson_darling(tally, self.moments))
            .is_some_and(|(observed, found)| found >= observed - SAME * observed.abs().max(1.0));
        Extreme {
            splits: 1,
            ks: u64::from(ks(tally).at_least(self.distance)),
            ad: u64::from(ad),
        }
    }
}

/// Whether `C(n, k) <= most`, without overflow.
fn binomial_at_most(n: u64, k: u64, most: u64) -> bool {
    let k = k.min(n - k);
    let mut ways: u128 = 1;
    for step in 1..=k {
        ways = ways * u128::from(n - k + step) / u128::from(step);
        if ways > u128::from(most) {
            return false;
        }
    }
    true
}

/// Every choice of `chosen` of `n` labels, in lexicographic order.
struct Combinations {
    labels: Option<Vec<bool>>,
}

impl Combinations {
    fn new(n: usize, chosen: usize) -> Self {
        Self {
            labels: Some((0..n).map(|index| index < chosen).collect()),
        }
    }
}

impl Iterator for Combinations {
    type Item = Vec<bool>;

    fn next(&mut self) -> Option<Vec<bool>> {
        let current = self.labels.take()?;
        // move the last label that has room one to the right, and pack the later ones behind it
        let movable = (1..current.len())
            .rev()
            .find(|&index| current[index - 1] && !current[index]);
        if let Some(index) = movable {
            let mut next = current.clone();
            next[index - 1] = false;
            next[index] = true;
            let behind = next[index + 1..].iter().filter(|&&label| label).count();
            for (offset, label) in next[index + 1..].iter_mut().enumerate() {
                *label = offset < behind;
            }
            self.labels = Some(next);
        }
        Some(current)
    }
}

/// Fisher's exact two-sided p-value of `k1` of `n1` against `k2` of `n2`: the chance, margins fixed, of a table no
/// likelier than the observed one. 1 without information.
pub fn fisher_exact(k1: u64, n1: u64, k2: u64, n2: u64) -> f64 {
    let (k1, k2) = (k1.min(n1), k2.min(n2));
    let drawn = k1 + k2;
    let (least, most) = (drawn.saturating_sub(n2), drawn.min(n1));
    // weights relative to the mode, by the ratio of neighbours: no factorial, nothing overflows
    let ratio = |k: u64| {
        (n1 - k) as f64 / (k + 1) as f64 * (drawn - k) as f64 / ((n2 + k + 1) - drawn) as f64
    };
    let mode = ((n1 as f64 + 1.0) * (drawn as f64 + 1.0) / ((n1 + n2) as f64 + 2.0)) as u64;
    let mode = mode.clamp(least, most);
    let mut weights = vec![0.0; (most - least + 1) as usize];
    let slot = |k: u64| (k - least) as usize;
    weights[slot(mode)] = 1.0;
    for k in mode..most {
        weights[slot(k + 1)] = weights[slot(k)] * ratio(k);
    }
    for k in (least..mode).rev() {
        weights[slot(k)] = weights[slot(k + 1)] / ratio(k);
    }
    let observed = weights[slot(k1)];
    // tables as likely as the observed one differ from it by rounding only
    let extreme: f64 = weights
        .iter()
        .filter(|&&weight| weight <= observed * (1.0 + 1e-7))
        .sum();
    (extreme / weights.iter().sum::<f64>()).min(1.0)
}

/// The size of a change in the tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailRatio {
    /// The baseline's quantile, in ms.
    pub level_ms: Option<u64>,
    /// Exceedance of that level now over that of the baseline; of its being reached, where nothing in the baseline is longer.
    pub ratio: Option<f64>,
    /// Session-bootstrap interval.
    pub interval: Interval,
}

/// `S_after(q) / S_before(q)` at the baseline's `p` quantile `q`, sessions resampled on both sides.
pub fn tail_ratio<S: AsRef<[u64]> + Sync>(
    before: &[S],
    after: &[S],
    p: Prob,
    how: Resampling,
) -> TailRatio {
    let mut pooled: Vec<u64> = before
        .iter()
        .flat_map(std::convert::AsRef::as_ref)
        .copied()
        .collect();
    pooled.sort_unstable();
    let level_ms = quantile_at(&pooled, p, Level::P95).value;
    let Some(level) = level_ms else {
        return TailRatio {
            level_ms,
            ratio: None,
            interval: Interval::none(),
        };
    };
    // Where the quantile is the longest gap of the baseline (the last step of a retry schedule), nothing exceeds it and
    // the share that reaches it is compared.
    let reached = pooled.last() == Some(&level);
    let count = |gaps: &S| {
        let beyond = |&&gap: &&u64| gap > level || (reached && gap == level);
        let above = gaps.as_ref().iter().filter(beyond).count() as u64;
        (above, gaps.as_ref().len() as u64)
    };
    let counts: Vec<(u64, u64)> = before.iter().chain(after).map(count).collect();
    let share = |indices: &mut dyn Iterator<Item = usize>| {
        let (above, all) = indices.fold((0, 0), |(above, all), index| {
            (above + counts[index].0, all + counts[index].1)
        });
        (all > 0).then(|| above as f64 / all as f64)
    };
    let split = before.len();
    let ratio = |one: Option<f64>, other: Option<f64>| match (one?, other?) {
        (_, 0.0) => Some(f64::INFINITY),
        (before, after) => Some(before / after),
    };
    let observed = ratio(share(&mut (split..counts.len())), share(&mut (0..split)));
    // Each side keeps its number of sessions, drawn from its own.
    let Bootstrap { interval, .. } = if before.len() < 2 || after.len() < 2 {
        Bootstrap::missing(Reason::FewSessions {
            have: before.len().min(after.len()) as u64,
            need: 2,
        })
    } else {
        resample(how, |indices| {
            let mut draw = |sessions: usize, first: usize| -> Vec<usize> {
                (0..sessions)
                    .map(|_| first + indices.below(sessions as u64) as usize)
                    .collect()
            };
            let (base, now) = (draw(split, 0), draw(counts.len() - split, split));
            ratio(share(&mut now.into_iter()), share(&mut base.into_iter()))
        })
    };
    TailRatio {
        level_ms,
        ratio: observed.filter(|ratio| ratio.is_finite()),
        interval,
    }
}

/// The conclusion of a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftVerdict {
    /// Neither shown.
    Inconclusive,
    /// The tail is significantly and materially different.
    Moved,
    /// The tail ratio surely lies within a factor of two.
    Stable,
}

/// A comparison of two datasets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Distances, tested by sessions.
    pub test: Option<SessionTest>,
    /// Fisher's p-value for the runs above the reference window.
    pub tail_p: f64,
    /// The effect at the baseline's p99.
    pub effect: TailRatio,
    /// The conclusion.
    pub verdict: DriftVerdict,
}

/// Compares `after` with the baseline `before`, runs as sessions of gaps in ms, with `window_ms` as the reference.
pub fn drift<S: AsRef<[u64]> + Sync>(
    before: &[S],
    after: &[S],
    window_ms: u64,
    how: Resampling,
) -> Drift {
    let runs_over = |runs: &[S]| {
        runs.iter()
            .filter(|gaps| gaps.as_ref().iter().any(|&gap| gap >= window_ms))
            .count() as u64
    };
    let tail_p = fisher_exact(
        runs_over(before),
        before.len() as u64,
        runs_over(after),
        after.len() as u64,
    );
    let test = session_test(before, after, how.seed);
    let effect = tail_ratio(before, after, Prob::P99, how);
    let ad_p = test
        .and_then(|test| test.ad)
        .map_or(1.0, Permutation::p_value);
    let verdict = conclude(tail_p.min(ad_p), effect.interval);
    Drift {
        test,
        tail_p,
        effect,
        verdict,
    }
}

/// Moved needs significance and size; stable needs a narrow interval; a missing limit is never narrow nor far away.
fn conclude(p_value: f64, ratio: Interval) -> DriftVerdict {
    let above = ratio.lo.is_some_and(|lo| lo > INDIFFERENT.1);
    let below = ratio.up.is_some_and(|up| up < INDIFFERENT.0);
    if p_value < SIGNIFICANT && (above || below) {
        return DriftVerdict::Moved;
    }
    match (ratio.lo, ratio.up) {
        (Some(lo), Some(up)) if lo >= STABLE.0 && up <= STABLE.1 => DriftVerdict::Stable,
        _ => DriftVerdict::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sessions(seed: u64, count: usize, scale: f64) -> Vec<Vec<u64>> {
        let mut random = Indices::new(seed, 0);
        let mut gap = || (-libm::log(random.unit()) * scale) as u64 + 1;
        (0..count)
            .map(|_| (0..20).map(|_| gap()).collect())
            .collect()
    }

    /// A schedule's last step is its p99 and its longest: that it is as common as before can be told.
    #[test]
    fn a_schedule_that_did_not_change_is_stable() {
        // one in fourteen reaches the last step
        let schedule: Vec<Vec<u64>> = (0..400)
            .map(|_| [vec![2_000; 8], vec![4_000; 5], vec![8_000; 1]].concat())
            .collect();
        let how = Resampling {
            replicates: 200,
            seed: 1,
            level: Level::P95,
        };
        let found = tail_ratio(&schedule, &schedule, Prob::P99, how);
        assert_eq!((found.level_ms, found.ratio), (Some(8_000), Some(1.0)));
        assert_eq!(found.interval, Interval::new(1.0, 1.0));
        let often: Vec<Vec<u64>> = (0..400)
            .map(|_| [vec![2_000; 8], vec![4_000; 3], vec![8_000; 3]].concat())
            .collect();
        let found = tail_ratio(&schedule, &often, Prob::P99, how);
        assert_eq!(found.ratio, Some(3.0));
    }

    #[test]
    fn nothing_to_compare() {
        let none: [Vec<u64>; 0] = [];
        assert!(session_test(&none, &[vec![1]], 0).is_none());
        let found = drift(&none, &none, 5, Resampling::default());
        assert_eq!(
            (found.verdict, found.effect.ratio),
            (DriftVerdict::Inconclusive, None)
        );
        assert!((two_sample(&[], &[1]).distance.to_f64()).abs() < 1e-18);
        assert!((fisher_exact(0, 0, 0, 0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn same_moved_and_too_few() {
        let baseline = sessions(1, 150, 10_000.0);
        let how = Resampling {
            replicates: 400,
            ..Resampling::default()
        };
        let same = drift(&baseline, &sessions(2, 150, 10_000.0), 30_000, how);
        assert_eq!(same.verdict, DriftVerdict::Stable, "{same:?}");
        let moved = drift(&baseline, &sessions(3, 150, 16_000.0), 30_000, how);
        assert_eq!(moved.verdict, DriftVerdict::Moved, "{moved:?}");
        let few = drift(&baseline, &sessions(4, 3, 10_000.0), 30_000, how);
        assert_eq!(few.verdict, DriftVerdict::Inconclusive, "{few:?}");
    }

    #[test]
    fn every_combination_once() {
        let all: std::collections::BTreeSet<Vec<bool>> = Combinations::new(6, 3).collect();
        assert_eq!((all.len(), Combinations::new(6, 3).count()), (20, 20));
        assert_eq!(Combinations::new(4, 4).count(), 1);
        assert!(binomial_at_most(8, 4, 70) && !binomial_at_most(8, 4, 69));
        assert!(!binomial_at_most(10_000, 5_000, MAX_SPLITS));
    }

    #[test]
    fn a_missing_limit_is_never_stable() {
        assert_eq!(
            conclude(
                0.0,
                Interval {
                    lo: Some(2.0),
                    up: None
                }
            ),
            DriftVerdict::Moved
        );
        assert_eq!(
            conclude(
                1.0,
                Interval {
                    lo: Some(0.9),
                    up: None
                }
            ),
            DriftVerdict::Inconclusive
        );
        assert_eq!(conclude(0.0, Interval::new(0.9, 1.1)), DriftVerdict::Stable);
    }

    proptest! {
        #[test]
        fn order_of_values_and_sides_does_not_matter(first in prop::collection::vec(0_u64..20, 1..30), second in prop::collection::vec(0_u64..20, 1..30)) {
            let one = two_sample(&first, &second);
            let turned: Vec<u64> = first.iter().rev().copied().collect();
            prop_assert_eq!(one, two_sample(&turned, &second));
            let swapped = two_sample(&second, &first);
            prop_assert_eq!(one.distance, swapped.distance);
        }

        #[test]
        fn fisher_sums_to_one_over_the_tables(n1 in 1_u64..40, n2 in 1_u64..40, k1 in 0_u64..40, k2 in 0_u64..40) {
            let (k1, k2) = (k1.min(n1), k2.min(n2));
            let p = fisher_exact(k1, n1, k2, n2);
            prop_assert!(p > 0.0 && p <= 1.0);
            prop_assert!((p - fisher_exact(k2, n2, k1, n1)).abs() < 1e-9);
        }
    }
}
