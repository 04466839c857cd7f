//! What a window costs, and which is best for which hang rate.
//!
//! Per gap, with hang probability `h`: `J(W; h) = (1-h) S(W) c_f + h W c_w`, where `S(W) c_f` is what false kills cost
//! and `W c_w` what a hang wastes. `J` is linear in `h`, so the best window as a function of `h` is the lower envelope
//! of lines, with exact switch points; regret is convex in `h`, so only the ends of an interval count. All comparisons
//! are integer arithmetic; ties go to the smallest window.

use super::beta;
use super::error::StatsError;
use super::estimate::{Estimate, Interval, Reason, Status};
use super::kaplan_meier::KaplanMeier;
use super::prob::{Level, Prob};
use super::quantile::{Counts, Exceedances};
use super::rates::{clopper_pearson, upper_one_sided};

/// Costs are compared as products of three integers; below this the products fit 128 bits.
const MAX_COST: u128 = 1 << 62;

/// A kill rate that is no ratio of counts is taken in steps of one billionth.
const RATE_STEPS: u64 = 1_000_000_000;

/// One window with what it costs if runs are healthy and if one hangs. Units of cost are the caller's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The window, in ms.
    pub window_ms: u64,
    /// Cost of all its false kills over the recorded gaps.
    pub false_kill_cost: u64,
    /// Cost of one hang: the window, or the expected settlement time, times the cost of a wasted unit.
    pub hang_cost: u64,
    /// Whether the false kills are an upper bound, because the window lies beyond what was observed.
    pub upper_bound: bool,
}

/// The costs of a set of candidates over one number of recorded gaps.
#[derive(Clone, Debug)]
pub struct CostModel {
    gaps: u64,
    candidates: Vec<Candidate>,
}

/// A window with its expected cost per gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The window, in ms.
    pub window_ms: u64,
    /// Its expected cost per gap (or its regret, where that was asked for).
    pub cost: f64,
    /// Whether the cost is an upper bound.
    pub upper_bound: bool,
}

/// From this hang rate on, the shorter window is best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchPoint {
    /// Best just below, in ms.
    pub from_ms: u64,
    /// Best from here on, in ms.
    pub to_ms: u64,
    /// The hang rate at which both cost the same.
    pub hang_rate: f64,
}

/// A hang rate as a ratio of integers.
#[derive(Clone, Copy, Debug)]
struct Rate {
    num: u128,
    den: u128,
}

impl Rate {
    fn of(p: Prob) -> Self {
        let (num, den) = p.parts();
        Self {
            num: u128::from(num),
            den: u128::from(den),
        }
    }

    /// Both rates over the larger of their denominators, which are powers of ten.
    fn common(one: Prob, other: Prob) -> (Self, Self) {
        let (one, other) = (Self::of(one), Self::of(other));
        let den = one.den.max(other.den);
        let over = |rate: Self| Self {
            num: rate.num * (den / rate.den),
            den,
        };
        (over(one), over(other))
    }
}

impl CostModel {
    /// The model of `candidates` whose false kills were counted over `gaps` recorded gaps.
    ///
    /// # Errors
    /// [`StatsError::Range`] without candidates or gaps, or for costs above `2^62` in total.
    pub fn new(gaps: u64, mut candidates: Vec<Candidate>) -> Result<Self, StatsError> {
        let wrong = |what, value: String, expected| StatsError::Range {
            what,
            value,
            expected,
        };
        if candidates.is_empty() {
            return Err(wrong(
                "number of candidate windows",
                "0".to_owned(),
                "at least one",
            ));
        }
        if gaps == 0 || gaps >= 1 << 48 {
            return Err(wrong(
                "number of gaps",
                gaps.to_string(),
                "between 1 and 2^48",
            ));
        }
        for candidate in &candidates {
            let largest = u128::from(candidate.false_kill_cost)
                .max(u128::from(candidate.hang_cost) * u128::from(gaps));
            if largest >= MAX_COST {
                return Err(wrong(
                    "total cost of a window",
                    largest.to_string(),
                    "below 2^62; use a coarser unit",
                ));
            }
        }
        candidates.sort_unstable_by_key(|candidate| {
            (
                candidate.window_ms,
                candidate.false_kill_cost,
                candidate.hang_cost,
            )
        });
        Ok(Self { gaps, candidates })
    }

    /// The model of `windows_ms` over recorded gaps at a constant cost of `false_kill_cost` per false kill and
    /// `wasted_cost_per_ms` per millisecond that a hang wastes.
    ///
    /// # Errors
    /// As [`CostModel::new`].
    pub fn constant(
        gaps: &Counts,
        windows_ms: &[u64],
        false_kill_cost: u64,
        wasted_cost_per_ms: u64,
    ) -> Result<Self, StatsError> {
        let longer = Exceedances::new(gaps);
        let candidate = |&window_ms: &u64| Candidate {
            window_ms,
            false_kill_cost: longer.at_least(window_ms).saturating_mul(false_kill_cost),
            hang_cost: window_ms.saturating_mul(wasted_cost_per_ms),
            upper_bound: false,
        };
        Self::new(gaps.total(), windows_ms.iter().map(candidate).collect())
    }

    /// The model of `windows_ms` over a censored curve, at constant costs as in [`CostModel::constant`].
    ///
    /// Beyond the last record the upper limit of the kill rate at `level` stands in, marked `upper_bound`. Kill rates
    /// are taken to nine decimals.
    ///
    /// # Errors
    /// As [`CostModel::new`].
    pub fn censored(
        curve: &KaplanMeier,
        windows_ms: &[u64],
        false_kill_cost: u64,
        wasted_cost_per_ms: u64,
        level: Level,
    ) -> Result<Self, StatsError> {
        let candidate = |&window_ms: &u64| {
            let rate = curve.kill_rate(window_ms, level);
            let upper_bound = rate.point.is_none();
            let share = rate.point.or(rate.interval.up).unwrap_or(1.0);
            let kills = libm::round(share * RATE_STEPS as f64) as u64;
            Candidate {
                window_ms,
                false_kill_cost: kills.saturating_mul(false_kill_cost),
                hang_cost: window_ms.saturating_mul(wasted_cost_per_ms),
                upper_bound,
            }
        };
        Self::new(RATE_STEPS, windows_ms.iter().map(candidate).collect())
    }

    /// The windows worth looking at: one unit above each distinct gap, since deadlines are inclusive.
    pub fn natural_windows(gaps: &Counts) -> Vec<u64> {
        gaps.iter()
            .filter_map(|(ms, _)| ms.checked_add(1))
            .collect()
    }

    /// `gaps * den * J`, exact.
    fn scaled(&self, candidate: &Candidate, rate: Rate) -> u128 {
        (rate.den - rate.num) * u128::from(candidate.false_kill_cost)
            + rate.num * u128::from(candidate.hang_cost) * u128::from(self.gaps)
    }

    fn unscale(&self, scaled: u128, rate: Rate) -> f64 {
        scaled as f64 / (rate.den as f64 * self.gaps as f64)
    }

    /// The candidate with the least `cost`, the smallest window of several.
    fn least(&self, cost: impl Fn(&Candidate) -> u128) -> (Candidate, u128) {
        let mut candidates = self.candidates.iter();
        // never empty, by construction
        let first = candidates.next().copied().unwrap_or(Candidate {
            window_ms: 0,
            false_kill_cost: 0,
            hang_cost: 0,
            upper_bound: true,
        });
        candidates.fold((first, cost(&first)), |best, candidate| {
            let cost = cost(candidate);
            if cost < best.1 {
                (*candidate, cost)
            } else {
                best
            }
        })
    }

    fn best_of(&self, (candidate, scaled): (Candidate, u128), rate: Rate) -> Best {
        Best {
            window_ms: candidate.window_ms,
            cost: self.unscale(scaled, rate),
            upper_bound: candidate.upper_bound,
        }
    }

    /// The best window when a share `hang_rate` of gaps are hangs.
    pub fn best_at(&self, hang_rate: Prob) -> Best {
        self.best_at_rate(Rate::of(hang_rate))
    }

    fn best_at_rate(&self, rate: Rate) -> Best {
        self.best_of(self.least(|candidate| self.scaled(candidate, rate)), rate)
    }

    /// The best window at the posterior mean of the hang rate, `(hangs + 1/2) / (gaps + 1)` under Jeffreys' prior:
    /// by linearity only the mean matters.
    pub fn bayes(&self, hangs: u64, gaps_observed: u64) -> Best {
        let rate = Rate {
            num: 2 * u128::from(hangs) + 1,
            den: 2 * u128::from(gaps_observed.max(hangs)) + 2,
        };
        self.best_at_rate(rate)
    }

    /// Every hang rate at which the best window changes, by rising rate.
    ///
    /// The lower envelope of the lines `J(W; .)` over `[0, 1]`; a window that is best at a single rate only, where it
    /// ties with its neighbours, is not listed.
    pub fn switch_points(&self) -> Vec<SwitchPoint> {
        // a line by its values at h = 0 and h = 1, over the common denominator
        let point = |candidate: &Candidate| {
            (
                u128::from(candidate.false_kill_cost),
                u128::from(candidate.hang_cost) * u128::from(self.gaps),
            )
        };
        let mut lines: Vec<(u128, u128, u64)> = self
            .candidates
            .iter()
            .map(|candidate| (point(candidate).0, point(candidate).1, candidate.window_ms))
            .collect();
        lines.sort_unstable();
        // by rising value at 0, only those that are cheaper at 1 than all before can ever be best
        let mut hull: Vec<(u128, u128, u64)> = Vec::new();
        for line in lines {
            if hull.last().is_some_and(|last| line.1 >= last.1) {
                continue;
            }
            // drop the middle one while it does not lie below the chord of its neighbours
            while let [.., left, middle] = hull[..] {
                let chord = (middle.0 - left.0) * (middle.1 - line.1)
                    >= (line.0 - middle.0) * (left.1 - middle.1);
                if !chord {
                    break;
                }
                hull.pop();
            }
            hull.push(line);
        }
        hull.windows(2)
            .map(|pair| {
                let (rise, fall) = (
                    (pair[1].0 - pair[0].0) as f64,
                    (pair[0].1 - pair[1].1) as f64,
                );
                SwitchPoint {
                    from_ms: pair[0].2,
                    to_ms: pair[1].2,
                    hang_rate: rise / (rise + fall),
                }
            })
            .collect()
    }

    /// The window whose largest regret over hang rates in `[low, high]` is least, with that regret.
    pub fn minimax_regret(&self, low: Prob, high: Prob) -> Best {
        let (low, high) = Rate::common(low, high);
        let least = |rate| self.least(|candidate| self.scaled(candidate, rate)).1;
        let (least_low, least_high) = (least(low), least(high));
        let regret = |candidate: &Candidate| {
            (self.scaled(candidate, low) - least_low).max(self.scaled(candidate, high) - least_high)
        };
        self.best_of(self.least(regret), low)
    }

    /// The window whose largest cost over hang rates in `[low, high]` is least, with that cost.
    pub fn minimax_cost(&self, low: Prob, high: Prob) -> Best {
        let (low, high) = Rate::common(low, high);
        let worst = |candidate: &Candidate| {
            self.scaled(candidate, low)
                .max(self.scaled(candidate, high))
        };
        self.best_of(self.least(worst), low)
    }

    /// The default recommendation: minimax regret over the hang rates that the labels allow.
    ///
    /// `None` when no hang can be assumed at all (`high` is 0): cost alone would always prefer the largest window.
    pub fn recommend(&self, low: Prob, high: Prob) -> Option<Best> {
        (high.to_f64() > 0.0).then(|| self.minimax_regret(low, high))
    }
}

/// The hang rates that labelled gaps allow: Clopper-Pearson, or `[0, 1 - a^(1/n)]` when none is labelled a hang.
pub fn hang_interval(hangs: u64, gaps: u64, level: Level) -> Interval {
    if hangs == 0 {
        return Interval {
            lo: Some(0.0),
            up: upper_one_sided(0, gaps, level),
        };
    }
    clopper_pearson(hangs, gaps, level)
}

/// The posterior of the hang rate under the prior `Beta(prior.0, prior.1)`: mean and equal-tailed interval.
/// Jeffreys' prior is `(0.5, 0.5)`.
pub fn hang_posterior(hangs: u64, gaps: u64, prior: (f64, f64), level: Level) -> Estimate {
    let (a, b) = (
        hangs as f64 + prior.0,
        gaps.saturating_sub(hangs) as f64 + prior.1,
    );
    let lo = beta::quantile(a, b, level.alpha(2))
        .ok()
        .map(|point| point.x);
    let up = beta::quantile_upper(a, b, level.alpha(2))
        .ok()
        .map(|point| point.x);
    let interval = Interval { lo, up };
    let reason = (gaps == 0).then_some(Reason::NoData);
    let status = if gaps == 0 {
        Status::NotEstimable
    } else {
        interval.status()
    };
    Estimate {
        n: gaps,
        point: Some(a / (a + b)),
        interval,
        status,
        reason,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refusals() {
        assert!(CostModel::new(5, Vec::new()).is_err());
        assert!(CostModel::constant(&Counts::default(), &[5], 1, 1).is_err());
        let gaps: Counts = [1_u64, 2, 3].into_iter().collect();
        assert!(CostModel::constant(&gaps, &[u64::MAX], 1, 1).is_err());
        let model = CostModel::constant(&gaps, &[2, 4], 60, 1).unwrap();
        let none = Prob::P50.complement().half();
        assert!(
            model
                .recommend("0".parse().unwrap(), "0".parse().unwrap())
                .is_none()
        );
        assert!(model.recommend("0".parse().unwrap(), none).is_some());
        assert_eq!(hang_interval(0, 0, Level::P95), Interval::new(0.0, 1.0));
    }

    #[test]
    fn without_censoring_both_models_agree_and_beyond_the_limit_costs_are_bounds() {
        let gaps: Counts = [1_000_u64, 2_000, 3_000, 50_000].into_iter().collect();
        let windows = CostModel::natural_windows(&gaps);
        let exact = CostModel::constant(&gaps, &windows, 60_000, 1).unwrap();
        let curve = KaplanMeier::new(&gaps, &Counts::default());
        let by_curve = CostModel::censored(&curve, &windows, 60_000, 1, Level::P95).unwrap();
        assert_eq!(exact.switch_points().len(), by_curve.switch_points().len());
        for (one, other) in exact.switch_points().iter().zip(by_curve.switch_points()) {
            assert_eq!((one.from_ms, one.to_ms), (other.from_ms, other.to_ms));
            assert!((one.hang_rate - other.hang_rate).abs() < 1e-8);
        }
        let cut = KaplanMeier::new(&gaps, &[(60_000, 1)].into_iter().collect());
        let model = CostModel::censored(&cut, &[60_000, 90_000], 60_000, 1, Level::P95).unwrap();
        assert_eq!(
            model
                .candidates
                .iter()
                .map(|candidate| candidate.upper_bound)
                .collect::<Vec<_>>(),
            [false, true]
        );
    }

    fn model() -> impl Strategy<Value = CostModel> {
        (
            prop::collection::vec(1_u64..200, 1..40),
            1_u64..300,
            1_u64..5,
        )
            .prop_map(|(gaps, false_kill, wasted)| {
                let gaps: Counts = gaps.into_iter().collect();
                CostModel::constant(
                    &gaps,
                    &CostModel::natural_windows(&gaps),
                    false_kill,
                    wasted,
                )
                .unwrap()
            })
    }

    proptest! {
        #[test]
        fn switch_points_separate_the_best_windows(model in model(), thousandths in 0_u64..=1000) {
            let rate = Prob::from_ratio(thousandths, 1000).unwrap();
            let best = model.best_at(rate);
            let points = model.switch_points();
            prop_assert!(points.windows(2).all(|pair| pair[0].hang_rate < pair[1].hang_rate && pair[0].to_ms == pair[1].from_ms));
            // between two switch points the envelope names one window; its cost must be the least
            let passed = points.iter().take_while(|point| point.hang_rate <= rate.to_f64()).last();
            let window = passed.map(|point| point.to_ms).or(points.first().map(|point| point.from_ms));
            if let Some(window) = window {
                let candidate = model.candidates.iter().find(|candidate| candidate.window_ms == window).unwrap();
                let cost = model.unscale(model.scaled(candidate, Rate::of(rate)), Rate::of(rate));
                prop_assert!((cost - best.cost).abs() <= 1e-9 * best.cost.max(1.0), "{} {:?}", window, best);
            }
        }

        #[test]
        fn regret_is_largest_at_the_ends(model in model(), low in 0_u64..500, width in 0_u64..500) {
            let at = |thousandths| Prob::from_ratio(thousandths, 1000).unwrap();
            let chosen = model.minimax_regret(at(low), at(low + width));
            let candidate = *model.candidates.iter().find(|candidate| candidate.window_ms == chosen.window_ms).unwrap();
            for thousandths in low..=low + width {
                let rate = Rate::of(at(thousandths));
                let cost = model.unscale(model.scaled(&candidate, rate), rate);
                prop_assert!(cost - model.best_at(at(thousandths)).cost <= chosen.cost + 1e-9);
            }
        }
    }
}
