//! Rates of rare kills: binomial tails, Clopper-Pearson limits, and how many runs a claim needs.
//!
//! Clopper & Pearson (1934): the limits of `x` kills in `n` runs are beta quantiles,
//! `BetaInv(a/2; x, n-x+1)` and `BetaInv(1-a/2; x+1, n-x)`. Limits shown to people are two-sided, gates use one side;
//! the functions say which in their names.

use std::collections::HashMap;

use super::beta::{self, Point, not_positive};
use super::estimate::{Estimate, Interval, Reason};
use super::prob::{Level, Prob};

/// `P(B <= k)` for `B ~ Bin(n, p)`; `None` only where the beta function does not converge.
pub fn binomial_cdf(k: u64, n: u64, p: Prob) -> Option<f64> {
    let at = Point {
        x: p.to_f64(),
        y: p.complement().to_f64(),
    };
    cdf_at(k, n, at)
}

/// `P(B >= k)` for `B ~ Bin(n, p)`.
pub fn binomial_upper(k: u64, n: u64, p: Prob) -> Option<f64> {
    let at = Point {
        x: p.to_f64(),
        y: p.complement().to_f64(),
    };
    if k == 0 {
        return Some(1.0);
    }
    if k > n {
        return Some(0.0);
    }
    beta::tails(k as f64, (n - k) as f64 + 1.0, at)
        .ok()
        .map(|tails| tails.lower)
}

fn cdf_at(k: u64, n: u64, at: Point) -> Option<f64> {
    if k >= n {
        return Some(1.0);
    }
    // P(B <= k) = 1 - I_p(k+1, n-k)
    beta::tails(k as f64 + 1.0, (n - k) as f64, at)
        .ok()
        .map(|tails| tails.upper)
}

/// Lower and upper limit, each with error probability `tail`, of `x` in `n`; both may be fractional (effective counts).
fn limits(x: f64, n: f64, tail: f64) -> Interval {
    Interval {
        lo: lower_side(x, n, tail),
        up: upper_side(x, n, tail),
    }
}

fn lower_side(x: f64, n: f64, tail: f64) -> Option<f64> {
    let x = x.clamp(0.0, n.max(0.0));
    if not_positive(n) || x == 0.0 {
        Some(0.0)
    } else {
        lower_limit(x, n, tail)
    }
}

fn upper_side(x: f64, n: f64, tail: f64) -> Option<f64> {
    if not_positive(n) || x >= n {
        Some(1.0)
    } else {
        upper_limit(x.max(0.0), n, tail)
    }
}

fn lower_limit(x: f64, n: f64, tail: f64) -> Option<f64> {
    if x >= n {
        // all killed: the closed form of BetaInv(tail; n, 1)
        return Some(libm::exp(libm::log(tail) / n));
    }
    beta::quantile(x, n - x + 1.0, tail)
        .ok()
        .map(|point| point.x)
}

fn upper_limit(x: f64, n: f64, tail: f64) -> Option<f64> {
    if x == 0.0 {
        // no kill: 1 - tail^(1/n)
        return Some(-libm::expm1(libm::log(tail) / n));
    }
    beta::quantile_upper(x + 1.0, n - x, tail)
        .ok()
        .map(|point| point.x)
}

/// Two-sided Clopper-Pearson interval of `x` kills in `n` runs; `[0, 1]` for no run. `x` above `n` is read as `n`.
///
/// A side is `None` only where the beta quantile does not converge (not seen below 1e9 runs).
pub fn clopper_pearson(x: u64, n: u64, level: Level) -> Interval {
    clopper_pearson_effective(x as f64, n as f64, level)
}

/// [`clopper_pearson`] for effective counts, which a design effect makes fractional.
pub fn clopper_pearson_effective(x: f64, n: f64, level: Level) -> Interval {
    limits(x, n, level.alpha(2))
}

/// [`clopper_pearson`] at `1 - a/claims` instead of `1 - a` (Bonferroni over `claims` statements).
pub fn clopper_pearson_shared(x: u64, n: u64, level: Level, claims: u64) -> Interval {
    limits(
        x as f64,
        n as f64,
        level.alpha(1) / claims.max(1) as f64 / 2.0,
    )
}

/// One-sided upper limit of `x` kills in `n` runs; 1 for no run.
pub fn upper_one_sided(x: u64, n: u64, level: Level) -> Option<f64> {
    upper_side(x as f64, n as f64, level.alpha(1))
}

/// One-sided lower limit of `x` kills in `n` runs; 0 for no run.
pub fn lower_one_sided(x: u64, n: u64, level: Level) -> Option<f64> {
    lower_one_sided_shared(x, n, level, 1)
}

/// One-sided lower limit at error `a/claims`, for "some stratum exceeds" over `claims` strata.
pub fn lower_one_sided_shared(x: u64, n: u64, level: Level, claims: u64) -> Option<f64> {
    lower_side(x as f64, n as f64, level.alpha(claims))
}

/// Whether the one-sided upper limit of `kills` in `runs` is at most `max_rate`, decided forward:
/// `U <= r` iff `P(Bin(n, r) <= x) <= a`. False where it cannot be decided, so that it never certifies by accident.
pub fn certifies(kills: u64, runs: u64, max_rate: f64, level: Level) -> bool {
    if runs == 0 || max_rate.is_nan() {
        return false;
    }
    if max_rate >= 1.0 {
        return true;
    }
    if kills >= runs || max_rate <= 0.0 {
        return false;
    }
    let alpha = level.alpha(1);
    if kills == 0 {
        return runs as f64 * libm::log1p(-max_rate) <= libm::log(alpha);
    }
    cdf_at(kills, runs, Point::new(max_rate)).is_some_and(|chance| chance <= alpha)
}

/// Whether the one-sided lower limit of `kills` in `runs`, at error `a/claims`, exceeds `max_rate`, decided forward:
/// `L > r` iff `P(Bin(n, r) >= x) < a`. False where it cannot be decided, so that it never accuses by accident.
pub fn exceeds(kills: u64, runs: u64, max_rate: f64, level: Level, claims: u64) -> bool {
    if runs == 0 || kills == 0 || max_rate.is_nan() || max_rate >= 1.0 {
        return false;
    }
    if max_rate <= 0.0 {
        return true;
    }
    let kills = kills.min(runs);
    let shapes = (kills as f64, (runs - kills) as f64 + 1.0);
    beta::tails(shapes.0, shapes.1, Point::new(max_rate))
        .is_ok_and(|tails| tails.lower < level.alpha(claims))
}

/// The least number of runs with `kills` kills whose one-sided upper limit is at most `max_rate`.
///
/// `None` when no number is enough (`max_rate` is 0 or less, or not a number) or it exceeds `2^53`.
pub fn runs_needed(kills: u64, max_rate: f64, level: Level) -> Option<u64> {
    if not_positive(max_rate) {
        return None;
    }
    if max_rate >= 1.0 {
        return Some(kills.max(1));
    }
    // The chance of at most `kills` falls with every run added, so double, then bisect.
    let mut enough = kills.checked_add(1)?;
    while !certifies(kills, enough, max_rate, level) {
        enough = enough.checked_mul(2).filter(|&runs| runs <= 1 << 53)?;
    }
    let mut short = enough / 2;
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if certifies(kills, middle, max_rate, level) {
            enough = middle;
        } else {
            short = middle;
        }
    }
    Some(enough)
}

/// The largest number of kills in `runs` that still certifies `max_rate`; `None` when not even 0 does.
pub fn max_kills(runs: u64, max_rate: f64, level: Level) -> Option<u64> {
    if !certifies(0, runs, max_rate, level) {
        return None;
    }
    let (mut fits, mut excess) = (0, runs.saturating_add(1));
    while excess - fits > 1 {
        let middle = fits + (excess - fits) / 2;
        if certifies(middle, runs, max_rate, level) {
            fits = middle;
        } else {
            excess = middle;
        }
    }
    Some(fits)
}

/// The chance that a policy with `true_rate` certifies `max_rate` over `runs` runs.
pub fn pass_chance(true_rate: f64, max_rate: f64, runs: u64, level: Level) -> Option<f64> {
    pass_chance_beside(0, true_rate, max_rate, runs, level)
}

/// The same where `unresolved` of the runs count as kills whatever they are, so that the others alone decide.
pub fn pass_chance_beside(
    unresolved: u64,
    true_rate: f64,
    max_rate: f64,
    runs: u64,
    level: Level,
) -> Option<f64> {
    let allowed = max_kills(runs, max_rate, level).and_then(|most| most.checked_sub(unresolved));
    match allowed {
        None => Some(0.0),
        Some(kills) => cdf_at(
            kills,
            runs.saturating_sub(unresolved),
            Point::new(true_rate),
        ),
    }
}

/// "3 / n", the well-known hint for a 95 % upper limit after no kill in `n` runs (Hanley & Lippman-Hand 1983).
/// For display beside the exact limit, never instead of it.
pub fn rule_of_three(n: u64) -> Option<f64> {
    (n > 0).then(|| 3.0 / n as f64)
}

/// `x` kills in `n` runs with the two-sided Clopper-Pearson interval.
///
/// Without runs there is no point and the interval is `[0, 1]`, with reason `no_data`.
pub fn rate(x: u64, n: u64, level: Level) -> Estimate {
    rate_within(x, n, clopper_pearson(x, n, level))
}

fn rate_within(x: u64, n: u64, interval: Interval) -> Estimate {
    if n == 0 {
        return Estimate {
            interval,
            ..Estimate::missing(0, Reason::NoData)
        };
    }
    Estimate::with_interval(n, x.min(n) as f64 / n as f64, interval)
}

/// The limits of one pair of counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimits {
    /// Two-sided interval, for people.
    pub two_sided: Interval,
    /// One-sided lower limit, for a gate that fails.
    pub lower: Option<f64>,
    /// One-sided upper limit, for a gate that passes.
    pub upper: Option<f64>,
}

/// Limits remembered by (kills, runs): the thousands of cells of a sweep share few different pairs.
#[derive(Clone, Debug)]
pub struct RateTable {
    level: Level,
    two_sided: HashMap<(u64, u64), Interval>,
    lower: HashMap<(u64, u64), Option<f64>>,
    upper: HashMap<(u64, u64), Option<f64>>,
}

impl RateTable {
    /// An empty table for limits at `level`.
    pub fn new(level: Level) -> Self {
        Self {
            level,
            two_sided: HashMap::new(),
            lower: HashMap::new(),
            upper: HashMap::new(),
        }
    }

    /// [`rate`] of `kills` in `runs`.
    pub fn rate(&mut self, kills: u64, runs: u64) -> Estimate {
        let interval = self.two_sided(kills, runs);
        rate_within(kills, runs, interval)
    }

    fn two_sided(&mut self, kills: u64, runs: u64) -> Interval {
        let level = self.level;
        let found = self.two_sided.entry((kills, runs));
        *found.or_insert_with(|| clopper_pearson(kills, runs, level))
    }

    /// [`upper_one_sided`] of `kills` in `runs`.
    pub fn upper(&mut self, kills: u64, runs: u64) -> Option<f64> {
        let level = self.level;
        let found = self.upper.entry((kills, runs));
        *found.or_insert_with(|| upper_one_sided(kills, runs, level))
    }

    /// The limits of `kills` in `runs`.
    pub fn limits(&mut self, kills: u64, runs: u64) -> RateLimits {
        let level = self.level;
        let lower = self.lower.entry((kills, runs));
        RateLimits {
            lower: *lower.or_insert_with(|| lower_one_sided(kills, runs, level)),
            two_sided: self.two_sided(kills, runs),
            upper: self.upper(kills, runs),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn the_binomial_agrees_with_statrs() {
        for (n, p) in [
            (20, "0.5"),
            (300, "0.01"),
            (3_688, "0.999"),
            (5_000, "0.37"),
        ] {
            let p: Prob = p.parse().unwrap();
            let peer = Binomial::new(p.to_f64(), n).unwrap();
            let mean = n as f64 * p.to_f64();
            for k in [0, 1, (mean * 0.9) as u64, mean as u64, n - 1, n] {
                let found = binomial_cdf(k, n, p).unwrap();
                assert!((found - peer.cdf(k)).abs() < 1e-9, "{n} {p} {k}");
                assert!(
                    (binomial_upper(k + 1, n, p).unwrap() - peer.sf(k)).abs() < 1e-9,
                    "{n} {p} {k}"
                );
            }
        }
    }

    #[test]
    fn no_data_claims_nothing() {
        assert_eq!(clopper_pearson(0, 0, Level::P95), Interval::new(0.0, 1.0));
        assert!(!certifies(0, 0, 1.0, Level::P95));
        assert_eq!(rate(0, 0, Level::P95).reason, Some(Reason::NoData));
        assert_eq!(rate(0, 0, Level::P95).point, None);
        assert_eq!(rule_of_three(0), None);
        assert_eq!(max_kills(0, 0.01, Level::P95), None);
        assert_eq!(runs_needed(0, 0.0, Level::P95), None);
        assert_eq!(runs_needed(0, f64::NAN, Level::P95), None);
        assert_eq!(runs_needed(4, 1.0, Level::P95), Some(4));
    }

    #[test]
    fn the_forward_decision_is_the_inverse_one() {
        for kills in 0..6 {
            for max_rate in [0.2, 0.01, 0.003] {
                let need = runs_needed(kills, max_rate, Level::P95).unwrap();
                assert!(upper_one_sided(kills, need, Level::P95).unwrap() <= max_rate);
                assert!(upper_one_sided(kills, need - 1, Level::P95).unwrap() > max_rate);
                assert_eq!(max_kills(need, max_rate, Level::P95), Some(kills));
            }
        }
    }

    proptest! {
        #[test]
        fn limits_move_with_confidence_kills_and_runs(x in 0_u64..200, extra in 0_u64..5_000) {
            let n = x + extra;
            let sides = |x, n, level| {
                let found = clopper_pearson(x, n, level);
                (found.lo.unwrap(), found.up.unwrap())
            };
            let (lo, up) = sides(x, n, Level::P95);
            let wider = sides(x, n, Level::P99);
            prop_assert!(wider.0 <= lo && wider.1 >= up);
            let killed = sides(x + 1, n + 1, Level::P95);
            prop_assert!(killed.0 >= lo - 1e-12 && killed.1 >= up - 1e-12);
            let survived = sides(x, n + 1, Level::P95);
            prop_assert!(survived.0 <= lo + 1e-12 && survived.1 <= up + 1e-12);
            if n > 0 {
                let rate = x as f64 / n as f64;
                prop_assert!(lo <= rate && rate <= up);
                // the mirror image: survivors instead of kills
                let mirrored = sides(n - x, n, Level::P95);
                prop_assert!((1.0 - mirrored.1 - lo).abs() < 1e-10 && (1.0 - mirrored.0 - up).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn the_table_remembers_what_it_computed() {
        let mut table = RateTable::new(Level::P95);
        let first = table.limits(3, 1_000);
        assert_eq!(first, table.limits(3, 1_000));
        assert_eq!((table.two_sided.len(), table.lower.len()), (1, 1));
        assert_eq!(first.two_sided, clopper_pearson(3, 1_000, Level::P95));
        assert_eq!(first.upper, upper_one_sided(3, 1_000, Level::P95));
        for (kills, runs) in [(3, 1_000), (0, 0), (7, 7)] {
            assert_eq!(table.rate(kills, runs), rate(kills, runs, Level::P95));
        }
    }
}
