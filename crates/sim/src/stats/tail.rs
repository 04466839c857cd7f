//! Extrapolation of a tail: peaks over a threshold with a generalised Pareto distribution (GPD).
//!
//! Pickands (1975); Davison & Smith (1990); Coles (2001). Excess `y = g - u`, `S(y) = (1 + xi y / s)^(-1/xi)`. Fit by the
//! one-dimensional profile of the likelihood in `xi / s` (Grimshaw 1993); right-censored excesses only add their
//! survival. Threshold by ordered goodness-of-fit tests (in the spirit of Choulakian & Stephens 2001; Bader, Yan & Zhang
//! 2018). Intervals by profile likelihood, widened by the design effect of exceedance. What comes out of here is marked
//! `extrapolated` and never enough for a gate to pass.

use std::fmt;

use rayon::prelude::*;

use super::bootstrap::Indices;
use super::clusters::{SessionCounts, proportion};
use super::estimate::{Estimate, Interval, Reason, Status, text};
use super::kaplan_meier::{Gap, KaplanMeier};
use super::normal::chi2_1_quantile;
use super::prob::{Level, Prob};
use super::quantile::{Counts, quantile_of_counts};

/// Smallest shape searched; below it the likelihood has no regular maximum.
const MIN_SHAPE: f64 = -0.5;
/// Largest shape searched in profiles.
const MAX_SHAPE: f64 = 5.0;
/// Below this the shape counts as 0 and logarithms take the place of powers.
const ZERO_SHAPE: f64 = 1e-8;
/// How thoroughly a maximum is searched: grid points on the heavy and the light side, then golden-section steps, each of
/// which shrinks the bracket by 0.62.
#[derive(Clone, Copy, Debug)]
struct Search {
    heavy: usize,
    light: usize,
    steps: usize,
}
/// For fits that are reported: the bracket shrinks below 1e-9 of its width.
const FINE: Search = Search {
    heavy: 43,
    light: 61,
    steps: 45,
};
/// For the hundreds of refits of a goodness-of-fit test.
const COARSE: Search = Search {
    heavy: 16,
    light: 22,
    steps: 26,
};
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Candidate thresholds, as quantiles in thousandths.
const THRESHOLDS: [u64; 6] = [800, 850, 900, 925, 950, 975];
const MIN_EXCESSES: usize = 50;
const MIN_SESSIONS: usize = 20;
const REJECTED: f64 = 0.10;
const TEST_REPLICATES: u64 = 199;
/// The upper profile limit must lie below this multiple of the largest gap.
const MAX_REACH: f64 = 100.0;

/// Scale and shape of a GPD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpd {
    /// `s > 0`, in ms.
    pub scale: f64,
    /// `xi`; above 0 the tail is heavy, below 0 it ends.
    pub shape: f64,
}

impl Gpd {
    /// `ln S(y)`; minus infinity beyond the end of the distribution.
    fn ln_survival(self, y: f64) -> f64 {
        if self.shape.abs() < ZERO_SHAPE {
            return -y / self.scale;
        }
        let base = self.shape * y / self.scale;
        if base <= -1.0 {
            f64::NEG_INFINITY
        } else {
            -libm::log1p(base) / self.shape
        }
    }

    /// The excess that is exceeded with probability `1 / factor`, `factor >= 1`.
    fn excess_at(self, factor: f64) -> f64 {
        let ln = libm::log(factor);
        if self.shape.abs() < ZERO_SHAPE {
            return self.scale * ln;
        }
        self.scale / self.shape * libm::expm1(self.shape * ln)
    }

    /// The gap exceeded with probability `1 - p` when the threshold is with probability `zeta`, in ms.
    pub fn level(self, threshold_ms: f64, zeta: f64, p: Prob) -> f64 {
        threshold_ms + self.excess_at(zeta / p.complement().to_f64())
    }
}

/// Excesses over a threshold, in ms; the ends of some were not observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Excesses {
    ended: Vec<f64>,
    cut: Vec<f64>,
}

impl Excesses {
    /// The positive, finite excesses among (length in ms, whether the end was observed).
    pub fn new(excesses: impl IntoIterator<Item = (f64, bool)>) -> Self {
        let mut new = Self::default();
        for (excess, observed) in excesses {
            if excess > 0.0 && excess.is_finite() {
                if observed {
                    new.ended.push(excess);
                } else {
                    new.cut.push(excess);
                }
            }
        }
        // sums run by rising length, whatever the input's order
        new.ended.sort_unstable_by(f64::total_cmp);
        new.cut.sort_unstable_by(f64::total_cmp);
        new
    }

    /// All excesses.
    pub fn len(&self) -> usize {
        self.ended.len() + self.cut.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sum(&self) -> f64 {
        self.ended.iter().sum::<f64>() + self.cut.iter().sum::<f64>()
    }

    fn max(&self) -> f64 {
        let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
        last(&self.ended).max(last(&self.cut))
    }

    fn scaled(&self, unit: f64) -> Self {
        let scale = |values: &[f64]| values.iter().map(|value| value / unit).collect();
        Self {
            ended: scale(&self.ended),
            cut: scale(&self.cut),
        }
    }

    /// `sum ln(1 + th y)` over the ended and over all excesses; `None` where one lies beyond the end.
    fn log_sums(&self, th: f64) -> Option<(f64, f64)> {
        if 1.0 + th * self.max() <= 0.0 {
            return None;
        }
        let sum = |values: &[f64]| {
            values
                .iter()
                .map(|value| libm::log1p(th * value))
                .sum::<f64>()
        };
        let ended = sum(&self.ended);
        Some((ended, ended + sum(&self.cut)))
    }

    /// Log-likelihood of a GPD.
    fn log_likelihood(&self, gpd: Gpd) -> f64 {
        if gpd.scale <= 0.0 || gpd.scale.is_nan() {
            return f64::NEG_INFINITY;
        }
        let d = self.ended.len() as f64;
        if gpd.shape.abs() < ZERO_SHAPE {
            return -d * libm::log(gpd.scale) - self.sum() / gpd.scale;
        }
        match self.log_sums(gpd.shape / gpd.scale) {
            Some((ended, all)) => -d * libm::log(gpd.scale) - ended - all / gpd.shape,
            None => f64::NEG_INFINITY,
        }
    }
}

/// A maximum-likelihood fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub gpd: Gpd,
    /// Its log-likelihood, in ms units.
    pub log_likelihood: f64,
}

/// The maximum over `[low, high]`: the best of `points` grid points, then golden section between its neighbours.
fn maximise(
    (low, high): (f64, f64),
    points: usize,
    steps: usize,
    value: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let step = (high - low) / (points.max(2) - 1) as f64;
    let at = |index: usize| low + step * index as f64;
    let mut best = (0, f64::NEG_INFINITY);
    for index in 0..points.max(2) {
        let found = value(at(index));
        if found > best.1 {
            best = (index, found);
        }
    }
    let (mut left, mut right) = (
        at(best.0.saturating_sub(1)),
        at((best.0 + 1).min(points.max(2) - 1)),
    );
    let mut inner = (
        right - GOLDEN * (right - left),
        left + GOLDEN * (right - left),
    );
    let mut found = (value(inner.0), value(inner.1));
    for _ in 0..steps {
        if found.0 < found.1 {
            left = inner.0;
            inner = (inner.1, left + GOLDEN * (right - left));
            found = (found.1, value(inner.1));
        } else {
            right = inner.1;
            inner = (right - GOLDEN * (right - left), inner.0);
            found = (value(inner.0), found.0);
        }
    }
    let candidates = [(at(best.0), best.1), (inner.0, found.0), (inner.1, found.1)];
    candidates
        .into_iter()
        .fold((at(best.0), f64::NEG_INFINITY), |best, next| {
            if next.1 > best.1 { next } else { best }
        })
}

/// Fits a GPD by maximum likelihood; `None` without an excess whose end was observed.
pub fn fit(excesses: &Excesses) -> Option<Fit> {
    fit_by(excesses, FINE)
}

fn fit_by(excesses: &Excesses, search: Search) -> Option<Fit> {
    let d = excesses.ended.len() as f64;
    if excesses.ended.is_empty() {
        return None;
    }
    let unit = excesses.sum() / excesses.len() as f64;
    let scaled = excesses.scaled(unit);
    // the profile over th = xi / s: xi = A / d, l = -d ln s - B - d
    let shaped = |th: f64| -> Option<(Gpd, f64)> {
        let (ended, all) = scaled.log_sums(th)?;
        let shape = all / d;
        let scale = shape / th;
        (shape > MIN_SHAPE && scale > 0.0 && shape.abs() >= ZERO_SHAPE)
            .then(|| (Gpd { scale, shape }, -d * libm::log(scale) - ended - d))
    };
    let value = |th: f64| shaped(th).map_or(f64::NEG_INFINITY, |(_, value)| value);
    let max = scaled.max();
    let heavy = |u: f64| libm::exp(u);
    // between 0 and -1/max, dense at both ends
    let light = |u: f64| -1.0 / (max * (1.0 + libm::exp(-u)));
    let candidates = [
        shaped(heavy(
            maximise((-14.0, 7.0), search.heavy, search.steps, |u| {
                value(heavy(u))
            })
            .0,
        )),
        shaped(light(
            maximise((-14.0, 16.0), search.light, search.steps, |u| {
                value(light(u))
            })
            .0,
        )),
    ];
    // th -> 0 is the exponential distribution
    let exponential = Gpd {
        scale: scaled.sum() / d,
        shape: 0.0,
    };
    let start = (exponential, -d * libm::log(exponential.scale) - d);
    let (gpd, value) =
        candidates.into_iter().flatten().fold(
            start,
            |best, next| if next.1 > best.1 { next } else { best },
        );
    Some(Fit {
        gpd: Gpd {
            scale: gpd.scale * unit,
            shape: gpd.shape,
        },
        log_likelihood: value - d * libm::log(unit),
    })
}

/// Fits a GPD by probability-weighted moments (Hosking & Wallis 1987), the cross-check for uncensored excesses;
/// `None` with censored ones or fewer than two.
pub fn fit_moments(excesses: &Excesses) -> Option<Gpd> {
    let n = excesses.ended.len() as f64;
    if !excesses.cut.is_empty() || excesses.ended.len() < 2 {
        return None;
    }
    let first = excesses.sum() / n;
    let weighted: f64 = excesses
        .ended
        .iter()
        .enumerate()
        .map(|(index, value)| (n - 1.0 - index as f64) / (n - 1.0) * value)
        .sum();
    let second = weighted / n;
    let spread = first - 2.0 * second;
    (spread > 0.0).then(|| Gpd {
        scale: 2.0 * first * second / spread,
        shape: 2.0 - first / spread,
    })
}

/// Anderson-Darling statistic of uncensored excesses against a GPD; `None` with censored ones or none.
pub fn anderson_darling(excesses: &Excesses, gpd: Gpd) -> Option<f64> {
    let n = excesses.ended.len();
    if !excesses.cut.is_empty() || n == 0 {
        return None;
    }
    let sum: f64 = excesses
        .ended
        .iter()
        .zip(excesses.ended.iter().rev())
        .enumerate()
        .map(|(index, (&low, &high))| {
            let below = libm::log(-libm::expm1(gpd.ln_survival(low)));
            (2 * index + 1) as f64 * (below + gpd.ln_survival(high))
        })
        .sum();
    Some(-(n as f64) - sum / n as f64)
}

/// Largest distance between the Kaplan-Meier curve and a GPD over the times at which excesses ended.
fn survival_distance(excesses: &Excesses, gpd: Gpd) -> f64 {
    let mut at_risk = excesses.len() as f64;
    let (mut survival, mut distance) = (1.0, 0.0_f64);
    let mut cut = excesses.cut.iter().peekable();
    for &time in &excesses.ended {
        while cut.next_if(|&&censored| censored < time).is_some() {
            at_risk -= 1.0;
        }
        let fitted = libm::exp(gpd.ln_survival(time));
        let after = survival * (1.0 - 1.0 / at_risk);
        distance = distance
            .max((survival - fitted).abs())
            .max((after - fitted).abs());
        survival = after;
        at_risk -= 1.0;
    }
    distance
}

/// What is compared between the data and samples of the fit.
fn misfit(excesses: &Excesses, gpd: Gpd) -> f64 {
    anderson_darling(excesses, gpd).unwrap_or_else(|| survival_distance(excesses, gpd))
}

/// Goodness of fit by parametric bootstrap: the chance that samples of the fitted distribution, refitted, fit no better.
/// Samples of censored data are censored at the largest censoring time.
fn fit_p_value(excesses: &Excesses, fitted: Gpd, seed: u64) -> f64 {
    let observed = misfit(excesses, fitted);
    let limit = excesses.cut.last().copied().unwrap_or(f64::INFINITY);
    let worse: u64 = (0..TEST_REPLICATES)
        .into_par_iter()
        .map(|replicate| {
            let mut random = Indices::new(seed, replicate);
            let sample = Excesses::new((0..excesses.len()).map(|_| {
                let excess = fitted.excess_at(1.0 / random.unit());
                if excess < limit {
                    (excess, true)
                } else {
                    (limit, false)
                }
            }));
            fit_by(&sample, COARSE)
                .is_some_and(|refitted| misfit(&sample, refitted.gpd) >= observed)
        })
        .map(u64::from)
        .sum();
    (1 + worse) as f64 / (1 + TEST_REPLICATES) as f64
}

/// What a level is asked of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelQuestion {
    /// The threshold, in ms.
    pub threshold_ms: f64,
    /// Share of all gaps above the threshold, treated as known.
    pub zeta: f64,
    /// Which quantile of all gaps.
    pub p: Prob,
}

impl LevelQuestion {
    fn factor(self) -> f64 {
        self.zeta / self.p.complement().to_f64()
    }
}

/// A fit in units of the mean excess, and the log-likelihood down to which its limits reach.
struct Profiled {
    unit: f64,
    scaled: Excesses,
    gpd: Gpd,
    target: f64,
}

impl Profiled {
    /// `excesses` must not be empty. The usual drop is taken `deff` times, never less than once.
    fn new(excesses: &Excesses, fitted: Fit, deff: f64, level: Level) -> Self {
        let unit = excesses.sum() / excesses.len() as f64;
        let scaled = excesses.scaled(unit);
        let gpd = Gpd {
            scale: fitted.gpd.scale / unit,
            shape: fitted.gpd.shape,
        };
        let drop = deff.max(1.0) * chi2_1_quantile(level.confidence().to_f64()) / 2.0;
        let target = scaled.log_likelihood(gpd) - drop;
        Self {
            unit,
            scaled,
            gpd,
            target,
        }
    }
}

/// Profile-likelihood limits of the `p` quantile, in ms, cut at `deff` times the usual drop.
///
/// A side is `None` where it is not found between the threshold and 100 times the largest gap.
pub fn level_limits(
    excesses: &Excesses,
    fitted: Fit,
    ask: LevelQuestion,
    deff: f64,
    level: Level,
) -> Interval {
    let factor = ask.factor();
    // the quantile must lie above the threshold
    if excesses.is_empty() || factor.is_nan() || factor <= 1.0 {
        return Interval::none();
    }
    let ln_factor = libm::log(factor);
    let Profiled {
        unit,
        scaled,
        gpd,
        target,
    } = Profiled::new(excesses, fitted, deff, level);
    let profile = |ln_excess: f64| {
        let excess = libm::exp(ln_excess);
        let scale = |shape: f64| {
            if shape.abs() < ZERO_SHAPE {
                excess / ln_factor
            } else {
                excess * shape / libm::expm1(shape * ln_factor)
            }
        };
        let value = |shape: f64| {
            scaled.log_likelihood(Gpd {
                scale: scale(shape),
                shape,
            })
        };
        maximise((MIN_SHAPE, MAX_SHAPE), 34, FINE.steps, value).1
    };
    let point = libm::log(gpd.excess_at(factor));
    let top = libm::log(
        (MAX_REACH * (ask.threshold_ms + excesses.max()) - ask.threshold_ms).max(1.0) / unit,
    );
    let limit =
        |side: f64, end: f64| crossing(point, side, end, |at| profile(at) >= target).map(libm::exp);
    let shift = |excess: f64| ask.threshold_ms + excess * unit;
    Interval {
        lo: limit(-0.05, point - 12.0).map(shift),
        up: limit(0.05, top).map(shift),
    }
}

/// Where `holds` turns false, walking from `start` by doubling `step`s and then bisecting; `None` if it still holds at
/// `end`.
fn crossing(start: f64, step: f64, end: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    let beyond = |at: f64| if step > 0.0 { at >= end } else { at <= end };
    let (mut inside, mut reach) = (start, step);
    let mut outside = loop {
        let next = inside + reach;
        if beyond(next) {
            if holds(end) {
                return None;
            }
            break end;
        }
        if !holds(next) {
            break next;
        }
        inside = next;
        reach *= 2.0;
    };
    for _ in 0..40 {
        let middle = inside + (outside - inside) / 2.0;
        if holds(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    Some(inside + (outside - inside) / 2.0)
}

/// Profile-likelihood limits of the shape; a side beyond the range searched is `None`.
pub fn shape_limits(excesses: &Excesses, fitted: Fit, deff: f64, level: Level) -> Interval {
    if excesses.is_empty() {
        return Interval::none();
    }
    let Profiled {
        scaled,
        gpd,
        target,
        ..
    } = Profiled::new(excesses, fitted, deff, level);
    let profile = |shape: f64| {
        let value = |ln_scale: f64| {
            scaled.log_likelihood(Gpd {
                scale: libm::exp(ln_scale),
                shape,
            })
        };
        let centre = libm::log(gpd.scale);
        maximise((centre - 4.0, centre + 4.0), 25, FINE.steps, value).1
    };
    let holds = |shape: f64| profile(shape) >= target;
    Interval {
        lo: crossing(gpd.shape, -0.02, MIN_SHAPE, holds),
        up: crossing(gpd.shape, 0.02, MAX_SHAPE, holds),
    }
}

/// Why a tail is not extrapolated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// More than 30 % of the excesses are censored.
    Censored {
        /// Their share.
        share: f64,
    },
    /// Less than a tenth of a gap is expected above the quantile.
    FarBeyond {
        /// `n (1 - p)`.
        expected_above: f64,
    },
    /// One value holds more than 10 % of the excesses: an atom such as a retry backoff, not a tail.
    Heaped {
        /// Its share.
        share: f64,
    },
    /// No candidate threshold has 50 excesses.
    FewExcesses {
        /// The most that one has.
        have: usize,
    },
    /// The excesses come from fewer than 20 sessions.
    FewSessions {
        /// How many.
        have: usize,
    },
    /// The fit is rejected at the highest threshold already.
    NoThreshold,
    /// The upper limit lies beyond 100 times the largest gap.
    NoUpperLimit,
    /// The quantile lies within the data: extrapolation is not called for.
    WithinData,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Censored { share } => {
                write!(
                    out,
                    "{} of the excesses are censored, at most 0.3 may be",
                    text(share)
                )
            }
            Self::FarBeyond { expected_above } => {
                write!(
                    out,
                    "{} gaps are expected above the quantile, at least 0.1 must be",
                    text(expected_above)
                )
            }
            Self::FewExcesses { have } => {
                write!(
                    out,
                    "{have} gaps lie above the best threshold, at least {MIN_EXCESSES} must"
                )
            }
            Self::FewSessions { have } => {
                write!(
                    out,
                    "the excesses come from {have} sessions, at least {MIN_SESSIONS} are needed"
                )
            }
            Self::Heaped { share } => {
                write!(
                    out,
                    "one value holds {} of the excesses: an atom such as a retry backoff, not a tail",
                    text(share)
                )
            }
            Self::NoThreshold => write!(out, "no generalised Pareto tail fits above any threshold"),
            Self::NoUpperLimit => write!(
                out,
                "the upper limit lies beyond {MAX_REACH} times the largest gap"
            ),
            Self::WithinData => write!(
                out,
                "the quantile lies below the threshold: no extrapolation is needed"
            ),
        }
    }
}

/// One candidate threshold; all of them are printed, as the sensitivity is part of the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdFit {
    /// The threshold, in ms.
    pub threshold_ms: u64,
    /// Excesses above it.
    pub excesses: usize,
    /// The fit.
    pub gpd: Gpd,
    /// The level that it gives, in ms; `None` when the quantile lies below the threshold.
    pub level_ms: Option<f64>,
    /// Goodness of fit; `None` once a higher threshold was rejected.
    pub p_value: Option<f64>,
}

/// An extrapolated quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct TailEstimate {
    /// Level and limits in ms, `extrapolated`, or refused.
    pub estimate: Estimate,
    /// Index of the threshold used.
    pub chosen: Option<usize>,
    /// Limits of the shape at that threshold.
    pub shape: Interval,
    /// Whether the shape may reach 1, where the mean is infinite.
    pub infinite_mean_possible: bool,
    /// Design effect of exceedance by which the interval was widened.
    pub deff: f64,
    /// Every candidate threshold, by rising threshold.
    pub thresholds: Vec<ThresholdFit>,
    /// Why there is no level.
    pub refusal: Option<Refusal>,
}

impl fmt::Display for TailEstimate {
    /// `164398 [120000, 310000] extrapolated (GPD, u=18424 ms, k=80, xi=0.31 [0.1, 0.62])`, or why not.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refusal) = self.refusal {
            return write!(out, "not extrapolated: {refusal}");
        }
        let Some((point, at)) = self
            .estimate
            .point
            .zip(self.chosen.and_then(|index| self.thresholds.get(index)))
        else {
            return write!(out, "not extrapolated: no data");
        };
        let ThresholdFit {
            threshold_ms,
            excesses,
            gpd,
            ..
        } = at;
        write!(
            out,
            "{} ms {} extrapolated",
            text(point),
            self.estimate.interval
        )?;
        write!(
            out,
            " (GPD, u={threshold_ms} ms, k={excesses}, xi={} {}",
            text(gpd.shape),
            self.shape
        )?;
        if self.infinite_mean_possible {
            write!(out, ", infinite mean not excluded")?;
        }
        write!(out, ")")
    }
}

/// The `p` quantile of gaps in `sessions`, extrapolated beyond the data or refused.
pub fn extrapolate<S: AsRef<[Gap]>>(
    sessions: &[S],
    p: Prob,
    level: Level,
    seed: u64,
) -> TailEstimate {
    let gaps: Vec<Gap> = sessions
        .iter()
        .flat_map(std::convert::AsRef::as_ref)
        .copied()
        .collect();
    let n = gaps.len() as u64;
    let mut result = TailEstimate {
        estimate: Estimate::missing(n, Reason::RefusedExtrapolation),
        chosen: None,
        shape: Interval::none(),
        infinite_mean_possible: false,
        deff: 1.0,
        thresholds: Vec::new(),
        refusal: None,
    };
    if n == 0 {
        result.estimate = Estimate::missing(0, Reason::NoData);
        result.refusal = Some(Refusal::FewExcesses { have: 0 });
        return result;
    }
    let curve = KaplanMeier::of_gaps(&gaps);
    let candidates = candidates(&gaps);
    let ask = |threshold_ms: u64| LevelQuestion {
        threshold_ms: threshold_ms as f64,
        zeta: curve.survival(threshold_ms),
        p,
    };
    for (threshold_ms, excesses) in &candidates {
        if let Some(fit) = fit(excesses) {
            let ask = ask(*threshold_ms);
            result.thresholds.push(ThresholdFit {
                threshold_ms: *threshold_ms,
                excesses: excesses.len(),
                gpd: fit.gpd,
                level_ms: (ask.factor() > 1.0)
                    .then(|| fit.gpd.level(ask.threshold_ms, ask.zeta, p)),
                p_value: None,
            });
        }
    }
    let expected_above = p.expected_above(n);
    if expected_above < 0.1 {
        result.refusal = Some(Refusal::FarBeyond { expected_above });
        return result;
    }
    if result.thresholds.len() < candidates.len() || candidates.is_empty() {
        let have = candidates
            .iter()
            .map(|(_, excesses)| excesses.len())
            .max()
            .unwrap_or(0);
        result.refusal = Some(Refusal::FewExcesses { have });
        return result;
    }
    // from the highest down: a threshold counts only while all above it fit as well
    for (index, (_, excesses)) in candidates.iter().enumerate().rev() {
        let p_value = fit_p_value(excesses, result.thresholds[index].gpd, seed);
        result.thresholds[index].p_value = Some(p_value);
        if p_value <= REJECTED {
            break;
        }
        result.chosen = Some(index);
    }
    let Some(chosen) = result.chosen else {
        // an atom is the more telling reason for a fit that fails
        let heaped = candidates.last().and_then(|(_, excesses)| heaped(excesses));
        result.refusal = heaped.or(Some(Refusal::NoThreshold));
        return result;
    };
    let (threshold_ms, excesses) = &candidates[chosen];
    finish(
        &mut result,
        sessions,
        *threshold_ms,
        excesses,
        ask(*threshold_ms),
        level,
    );
    result
}

/// Fills in the level at the chosen threshold, or why there is none.
fn finish<S: AsRef<[Gap]>>(
    result: &mut TailEstimate,
    sessions: &[S],
    threshold_ms: u64,
    excesses: &Excesses,
    ask: LevelQuestion,
    level: Level,
) {
    let counts: Vec<SessionCounts> = sessions
        .iter()
        .map(|gaps| SessionCounts {
            gaps: gaps.as_ref().len() as u64,
            kills: gaps
                .as_ref()
                .iter()
                .filter(|gap| gap.ms > threshold_ms)
                .count() as u64,
        })
        .collect();
    result.refusal = refusal(&counts, excesses);
    if let (Some(refusal), Some(fit)) = (result.refusal, fit(excesses)) {
        if matches!(refusal, Refusal::Heaped { .. }) {
            result.estimate.reason = Some(Reason::Heaped);
        }
        result.shape = shape_limits(excesses, fit, 1.0, level);
        return;
    }
    let Some(fit) = fit(excesses) else { return };
    if ask.factor() <= 1.0 {
        result.refusal = Some(Refusal::WithinData);
        return;
    }
    result.deff = proportion(&counts, level).deff.unwrap_or(1.0).max(1.0);
    result.shape = shape_limits(excesses, fit, result.deff, level);
    result.infinite_mean_possible = result.shape.up.is_none_or(|up| up >= 1.0);
    let interval = level_limits(excesses, fit, ask, result.deff, level);
    if interval.up.is_none() {
        result.refusal = Some(Refusal::NoUpperLimit);
        return;
    }
    result.estimate = Estimate {
        n: result.estimate.n,
        point: Some(fit.gpd.level(ask.threshold_ms, ask.zeta, ask.p)),
        interval,
        status: Status::Extrapolated,
        reason: None,
    };
}

/// The candidate thresholds with at least 50 excesses, and their excesses; equal thresholds once.
fn candidates(gaps: &[Gap]) -> Vec<(u64, Excesses)> {
    let counts: Counts = gaps.iter().map(|gap| gap.ms).collect();
    let mut thresholds: Vec<u64> = THRESHOLDS
        .iter()
        .filter_map(|&thousandths| Prob::from_ratio(thousandths, 1_000).ok())
        .filter_map(|p| quantile_of_counts(&counts, p, Level::P95).value)
        .collect();
    thresholds.dedup();
    thresholds
        .into_iter()
        .map(|threshold_ms| {
            let above = gaps.iter().filter(|gap| gap.ms > threshold_ms);
            (
                threshold_ms,
                Excesses::new(above.map(|gap| ((gap.ms - threshold_ms) as f64, gap.observed))),
            )
        })
        .filter(|(_, excesses)| excesses.len() >= MIN_EXCESSES)
        .collect()
}

fn refusal(counts: &[SessionCounts], excesses: &Excesses) -> Option<Refusal> {
    let have = counts.iter().filter(|session| session.kills > 0).count();
    if have < MIN_SESSIONS {
        return Some(Refusal::FewSessions { have });
    }
    let all = excesses.len() as f64;
    let censored = excesses.cut.len() as f64 / all;
    if censored > 0.3 {
        return Some(Refusal::Censored { share: censored });
    }
    heaped(excesses)
}

/// Whether one value holds too many excesses. Those censored at one limit are no atom of the tail.
fn heaped(excesses: &Excesses) -> Option<Refusal> {
    let same = |left: &f64, right: &f64| left.to_bits() == right.to_bits();
    let largest = excesses.ended.chunk_by(same).map(<[f64]>::len).max()?;
    let share = largest as f64 / excesses.len() as f64;
    (share > 0.1).then_some(Refusal::Heaped { share })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn sample(seed: u64, n: usize, gpd: Gpd) -> Excesses {
        let mut random = Indices::new(seed, 0);
        Excesses::new((0..n).map(|_| (gpd.excess_at(1.0 / random.unit()), true)))
    }

    /// Log-normal gaps with median 5 s, ten to a session.
    fn sessions(seed: u64, count: usize) -> Vec<Vec<Gap>> {
        let mut random = Indices::new(seed, 0);
        let mut gap = || {
            let z = super::super::normal::quantile(random.unit());
            Gap {
                ms: libm::exp(8.5 + z) as u64,
                observed: true,
            }
        };
        (0..count)
            .map(|_| (0..10).map(|_| gap()).collect())
            .collect()
    }

    #[test]
    fn a_large_sample_gives_its_parameters_back() {
        for (seed, shape) in [(1, -0.3), (2, 0.0), (3, 0.2), (4, 0.8)] {
            let truth = Gpd {
                scale: 5_000.0,
                shape,
            };
            let found = fit(&sample(seed, 20_000, truth)).unwrap().gpd;
            // the asymptotic standard error of the shape is (1 + xi) / sqrt(n)
            let error = (1.0 + shape) / 20_000_f64.sqrt();
            assert!((found.shape - shape).abs() < 4.0 * error, "{found:?}");
            assert!((found.scale / truth.scale - 1.0).abs() < 0.06, "{found:?}");
        }
    }

    #[test]
    fn the_fit_does_not_depend_on_order_or_unit() {
        let one = sample(
            5,
            200,
            Gpd {
                scale: 3.0,
                shape: 0.3,
            },
        );
        let turned = Excesses::new(one.ended.iter().rev().map(|&excess| (excess, true)));
        assert_eq!(fit(&one), fit(&turned));
        let coarse = Excesses::new(one.ended.iter().map(|&excess| (excess * 1_024.0, true)));
        let (fine, coarse) = (fit(&one).unwrap().gpd, fit(&coarse).unwrap().gpd);
        assert!((fine.shape - coarse.shape).abs() < 1e-9);
        assert!((fine.scale * 1_024.0 / coarse.scale - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_coarse_search_finds_the_same_maximum() {
        for (seed, shape) in [(1, -0.3), (2, 0.0), (3, 0.3), (4, 0.9)] {
            let sample = sample(
                seed,
                300,
                Gpd {
                    scale: 5_000.0,
                    shape,
                },
            );
            let (fine, coarse) = (fit(&sample).unwrap(), fit_by(&sample, COARSE).unwrap());
            assert!(
                (fine.gpd.shape - coarse.gpd.shape).abs() < 1e-3,
                "{fine:?} {coarse:?}"
            );
            assert!(fine.log_likelihood - coarse.log_likelihood < 1e-4);
        }
    }

    #[test]
    fn refusals_name_their_reason() {
        let refused =
            |sessions: &[Vec<Gap>], p: Prob| extrapolate(sessions, p, Level::P95, 0).refusal;
        assert_eq!(
            refused(&[], Prob::P999),
            Some(Refusal::FewExcesses { have: 0 })
        );
        let sample = sessions(1, 10);
        assert_eq!(
            refused(&sample, Prob::P999),
            Some(Refusal::FewExcesses { have: 0 })
        );
        let sample = sessions(1, 40);
        let far = "0.9999".parse().unwrap();
        assert!(matches!(
            refused(&sample, far),
            Some(Refusal::FarBeyond { .. })
        ));
        let one_session = [sessions(2, 100).concat()];
        assert_eq!(
            refused(&one_session, Prob::P999),
            Some(Refusal::FewSessions { have: 1 })
        );
        assert!(fit(&Excesses::default()).is_none());
        assert!(fit(&Excesses::new([(5.0, false)])).is_none());
        assert!(fit_moments(&Excesses::default()).is_none());
    }

    #[test]
    fn an_extrapolated_level_is_marked_and_holds_the_truth() {
        let found = extrapolate(&sessions(3, 150), Prob::P999, Level::P95, 0);
        assert_eq!(found.refusal, None);
        assert_eq!(found.estimate.status, Status::Extrapolated);
        let shown = found.to_string();
        assert!(
            shown.contains("] extrapolated (GPD, u=") && shown.contains(", xi="),
            "{shown}"
        );
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        assert_eq!(
            pool.install(|| extrapolate(&sessions(3, 150), Prob::P999, Level::P95, 0)),
            found
        );
        // exp(8.5 + 3.0902) is the true p99.9
        let truth = libm::exp(8.5 + 3.090_232_306_167_813_6);
        let Interval {
            lo: Some(lo),
            up: Some(up),
        } = found.estimate.interval
        else {
            panic!("{found:?}")
        };
        assert!(lo < truth && truth < up, "{lo} {up} {truth}");
        // 1500 gaps leave 75 above p95 and 37 above p97.5
        assert_eq!(found.thresholds.len(), 5);
    }

    #[test]
    fn atoms_are_refused() {
        let mut heaped = sessions(4, 100);
        for session in heaped.iter_mut().take(60) {
            session.push(Gap {
                ms: 64_000,
                observed: true,
            });
        }
        let found = extrapolate(&heaped, Prob::P999, Level::P95, 0);
        assert!(found.estimate.point.is_none());
        assert!(
            matches!(found.refusal, Some(Refusal::Heaped { .. })),
            "{:?}",
            found.refusal
        );
    }
}
