//! Survival under right censoring: the product-limit estimate with beta-product limits.
//!
//! Kaplan & Meier (1958) with Greenwood's variance. Limits: the beta product (BPCP, method of moments) of Fay, Brittain
//! & Proschan (2013), which without censoring is exactly Clopper-Pearson; for comparison the log-log Greenwood limits
//! (Kalbfleisch & Prentice 1980; Borgan & Liestol 1990). Quantile limits invert them (Brookmeyer & Crowley 1982).
//! `S(t) = P(G > t)`; a gap censored at `c` means `G > c`; at a tied time events come before censorings.

use std::fmt;

use super::beta::{self, Point};
use super::estimate::{Estimate, Interval, Reason, Status};
use super::normal;
use super::prob::{Level, Prob};
use super::quantile::{Counts, samples_needed};

/// Absorbs the rounding of products where a survival is compared with `1 - p`.
const SLACK: f64 = 1e-9;

/// One recorded gap.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Gap {
    /// Length so far, in ms.
    pub ms: u64,
    /// Whether its end was observed; otherwise it is right-censored.
    pub observed: bool,
}

/// The estimate at one distinct time at which a gap ended or was censored.
#[derive(Clone, Copy, Debug)]
struct Step {
    ms: u64,
    /// Gaps ended here.
    events: u64,
    /// Gaps censored here.
    censored: u64,
    /// Gaps at least this long.
    at_risk: u64,
    /// `S` from here on.
    survival: f64,
    /// `sum d / (Y (Y - d))` so far; infinite once `S` is 0.
    greenwood: f64,
    /// The product of betas so far.
    product: BetaProduct,
    /// Whether nothing was censored before this time, so that `deaths / n` is exact.
    exact: bool,
    /// Gaps ended so far.
    deaths: u64,
}

/// A product of independent beta variables by its first two moments, kept as logarithms.
#[derive(Clone, Copy, Debug, Default)]
struct BetaProduct {
    /// `ln E`.
    ln_mean: f64,
    /// `ln (E[W^2] / E[W]^2)`, summed term by term so that nothing cancels.
    ln_spread: f64,
}

impl BetaProduct {
    /// The product with one more factor `Beta(a, b)`.
    fn times(self, a: f64, b: f64) -> Self {
        Self {
            ln_mean: self.ln_mean + libm::log1p(-b / (a + b)),
            ln_spread: self.ln_spread + libm::log1p(b / (a * (a + b + 1.0))),
        }
    }

    /// The shapes of the beta distribution with the same two moments; `None` for the constant 1.
    fn shapes(self) -> Option<(f64, f64)> {
        let (mean, missing) = (libm::exp(self.ln_mean), -libm::expm1(self.ln_mean));
        let variance = mean * mean * libm::expm1(self.ln_spread);
        if variance <= 0.0 || missing <= 0.0 {
            return None;
        }
        let size = mean * missing / variance - 1.0;
        Some((size * mean, size * missing))
    }
}

/// A survival curve with everything needed for its limits.
#[derive(Clone, Debug)]
pub struct KaplanMeier {
    steps: Vec<Step>,
    n: u64,
    events: u64,
}

/// What the curve says at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survival {
    /// `S(t) = P(G > t)`.
    pub survival: f64,
    /// Greenwood's variance; `None` where `S` is 0.
    pub greenwood_variance: Option<f64>,
    /// Gaps known to exceed `t`: those longer, and those censored at `t`.
    pub known_to_exceed: u64,
    /// Two-sided beta-product limits.
    pub limits: Interval,
    /// One-sided beta-product upper limit.
    pub upper_one_sided: Option<f64>,
    /// Two-sided log-log Greenwood limits, for comparison; missing where `S` is 0 or 1.
    pub loglog: Interval,
}

/// A quantile of censored gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CensoredQuantile {
    /// Which quantile.
    pub p: Prob,
    /// Gaps, censored ones included.
    pub n: u64,
    /// First time with `S(t) <= 1 - p`, in ms. When [`Status::NotEstimable`] it is only the sample maximum.
    pub value: Option<u64>,
    /// Beta-product limits, in ms.
    pub limits: Interval<u64>,
    /// Log-log Greenwood limits, in ms, for comparison.
    pub loglog: Interval<u64>,
    /// How far it can be trusted.
    pub status: Status,
    /// What is missing.
    pub reason: Option<Reason>,
}

impl CensoredQuantile {
    /// The quantile, in ms, unless the data cannot carry it.
    pub fn point(&self) -> Option<u64> {
        self.value.filter(|_| self.status != Status::NotEstimable)
    }

    /// The time that the quantile is known to exceed, where there is no point: "p99.9 > 60000".
    pub fn exceeds_ms(&self) -> Option<u64> {
        match self.reason {
            Some(Reason::BeyondLastEvent { at_ms }) => Some(at_ms),
            _ => None,
        }
    }
}

impl fmt::Display for CensoredQuantile {
    /// `p97 = 58000 ms [..], n=1000`, or `p99 > 60000 ms` where the curve ends above it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.p.percentile_label())?;
        match (self.point(), self.exceeds_ms(), self.value) {
            (Some(point), _, _) => write!(out, " = {point} ms")?,
            (None, Some(at_ms), _) => write!(out, " > {at_ms} ms (censored)")?,
            (None, None, Some(max)) => write!(out, " not estimable (max {max} ms)")?,
            (None, None, None) => write!(out, " not estimable")?,
        }
        write!(out, " {}, n={}", self.limits, self.n)?;
        self.reason
            .map_or(Ok(()), |reason| write!(out, ", {reason}"))
    }
}

impl KaplanMeier {
    /// The curve of `ended` (gaps whose end was observed) and `censored` ones.
    pub fn new(ended: &Counts, censored: &Counts) -> Self {
        let n = ended.total().saturating_add(censored.total());
        let mut times: Vec<u64> = ended
            .iter()
            .chain(censored.iter())
            .map(|(ms, _)| ms)
            .collect();
        times.sort_unstable();
        times.dedup();
        let mut steps = Vec::with_capacity(times.len());
        let (mut at_risk, mut deaths, mut exact) = (n, 0, true);
        let (mut survival, mut greenwood, mut product) = (1.0, 0.0, BetaProduct::default());
        for ms in times {
            let (d, c) = (ended.at(ms), censored.at(ms));
            if d > 0 {
                deaths += d;
                let left = at_risk.saturating_sub(d);
                survival = if exact {
                    (n - deaths) as f64 / n as f64
                } else {
                    survival * (left as f64 / at_risk as f64)
                };
                greenwood += d as f64 / at_risk as f64 / left as f64;
                product = product.times(left as f64 + 1.0, d as f64);
            }
            steps.push(Step {
                ms,
                events: d,
                censored: c,
                at_risk,
                survival,
                greenwood,
                product,
                exact,
                deaths,
            });
            exact &= c == 0;
            at_risk = at_risk.saturating_sub(d).saturating_sub(c);
        }
        Self {
            steps,
            n,
            events: deaths,
        }
    }

    /// The curve of single gaps, in any order.
    pub fn of_gaps<'a>(gaps: impl IntoIterator<Item = &'a Gap>) -> Self {
        let (mut ended, mut censored) = (Counts::default(), Counts::default());
        for gap in gaps {
            let counts = if gap.observed {
                &mut ended
            } else {
                &mut censored
            };
            counts.add(gap.ms, 1);
        }
        Self::new(&ended, &censored)
    }

    /// All gaps.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Gaps whose end was observed.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The largest time at which an end was observed, in ms.
    pub fn last_event_ms(&self) -> Option<u64> {
        self.steps
            .iter()
            .rev()
            .find(|step| step.events > 0)
            .map(|step| step.ms)
    }

    /// The largest recorded time, in ms.
    pub fn max_ms(&self) -> Option<u64> {
        self.steps.last().map(|step| step.ms)
    }

    /// The last step at or before `ms`.
    fn step_at(&self, ms: u64) -> Option<&Step> {
        self.steps[..self.steps.partition_point(|step| step.ms <= ms)].last()
    }

    /// Gaps known to exceed `ms`.
    fn known_to_exceed(&self, ms: u64) -> u64 {
        match self.step_at(ms) {
            None => self.n,
            Some(step) if step.ms == ms => step.at_risk - step.events,
            Some(step) => step.at_risk - step.events - step.censored,
        }
    }

    /// `S(t)`.
    pub fn survival(&self, ms: u64) -> f64 {
        self.step_at(ms).map_or(1.0, |step| step.survival)
    }

    /// The curve at `ms` with limits at `level`.
    pub fn at(&self, ms: u64, level: Level) -> Survival {
        let step = self.step_at(ms);
        let survival = step.map_or(1.0, |step| step.survival);
        let greenwood = step.map_or(0.0, |step| step.greenwood);
        let product = step.map_or_else(BetaProduct::default, |step| step.product);
        let known_to_exceed = self.known_to_exceed(ms);
        Survival {
            survival,
            greenwood_variance: greenwood
                .is_finite()
                .then_some(survival * survival * greenwood),
            known_to_exceed,
            limits: Interval {
                lo: lower(product, known_to_exceed as f64, level.alpha(2)),
                up: upper(product, level.alpha(2)),
            },
            upper_one_sided: upper(product, level.alpha(1)),
            loglog: loglog(survival, greenwood, level),
        }
    }

    /// Two-sided beta-product limits of `S(t)` when correlation divides every count by `deff` (at least 1).
    pub fn limits_with_deff(&self, ms: u64, deff: f64, level: Level) -> Interval {
        let deff = deff.max(1.0);
        let product = self.product_with_deff(ms, deff);
        let known = self.known_to_exceed(ms) as f64 / deff;
        Interval {
            lo: lower(product, known, level.alpha(2)),
            up: upper(product, level.alpha(2)),
        }
    }

    fn product_with_deff(&self, ms: u64, deff: f64) -> BetaProduct {
        self.steps
            .iter()
            .take_while(|step| step.ms <= ms)
            .filter(|step| step.events > 0)
            .fold(BetaProduct::default(), |product, step| {
                let left = (step.at_risk - step.events) as f64;
                product.times(left / deff + 1.0, step.events as f64 / deff)
            })
    }

    /// The kill rate of an idle window: `P(G >= window) = S(window - 1)`.
    ///
    /// Beyond the longest recorded gap, with part of the gaps cut short, only the upper limit is known
    /// (`one_sided`, `beyond_last_event`) and there is no point.
    pub fn kill_rate(&self, window_ms: u64, level: Level) -> Estimate {
        let (Some(max_ms), Some(before)) = (self.max_ms(), window_ms.checked_sub(1)) else {
            return Estimate::missing(self.n, Reason::NoData);
        };
        let at = self.at(before, level);
        // Nothing recorded reached the window: a gap cut at L says `G >= L` (timer first), not `G >= L + 1`.
        if window_ms > max_ms && at.survival > 0.0 {
            return Estimate {
                n: self.n,
                point: None,
                interval: Interval {
                    lo: None,
                    up: at.limits.up,
                },
                status: Status::OneSided,
                reason: Some(Reason::BeyondLastEvent { at_ms: max_ms }),
            };
        }
        Estimate::with_interval(self.n, at.survival, at.limits)
    }

    /// The `p` quantile of the gap length with limits at `level`.
    pub fn quantile(&self, p: Prob, level: Level) -> CensoredQuantile {
        let value = self.quantile_value(p);
        let limits = self.quantile_limits(p, level);
        let loglog = self.quantile_loglog(p, level);
        let (status, reason) = self.quantile_status(p, value, limits, level);
        CensoredQuantile {
            p,
            n: self.n,
            value,
            limits,
            loglog,
            status,
            reason,
        }
    }

    fn quantile_value(&self, p: Prob) -> Option<u64> {
        let above = p.complement().to_f64() * (1.0 + SLACK);
        let rank = p.rank(self.n);
        self.steps
            .iter()
            .find(|step| {
                let reached = if step.exact {
                    step.deaths >= rank
                } else {
                    step.survival <= above
                };
                step.events > 0 && reached
            })
            .map(|step| step.ms)
    }

    fn quantile_status(
        &self,
        p: Prob,
        value: Option<u64>,
        limits: Interval<u64>,
        level: Level,
    ) -> (Status, Option<Reason>) {
        let need = |p: Prob| {
            samples_needed(p, level)
                .two_sided
                .map(|need| Reason::NTooSmall { have: self.n, need })
        };
        match (self.max_ms(), value) {
            (None, _) => (Status::NotEstimable, Some(Reason::NoData)),
            (Some(_), None) if self.events == 0 => {
                (Status::NotEstimable, Some(Reason::AllCensored))
            }
            (Some(at_ms), None) => (
                Status::NotEstimable,
                Some(Reason::BeyondLastEvent { at_ms }),
            ),
            _ if !p.reaches_above(self.n) => (
                Status::NotEstimable,
                need(p).or(Some(Reason::RefusedExtrapolation)),
            ),
            // under censoring the n needed is the one without it: a lower bound of the truth
            _ if limits.up.is_none() => (Status::OneSided, need(p)),
            _ if limits.lo.is_none() => (Status::OneSided, need(p.complement())),
            _ => (Status::Ok, None),
        }
    }

    /// Limits decided forward: `S_lo(t) <= 1-p` iff the beta has at least `a/2` below `1-p`. Both are monotone in t.
    fn quantile_limits(&self, p: Prob, level: Level) -> Interval<u64> {
        let at = Point {
            x: p.complement().to_f64(),
            y: p.to_f64(),
        };
        let tail = level.alpha(2);
        let low = |product: BetaProduct, known: u64| {
            known == 0
                || lower_product(product, known as f64)
                    .shapes()
                    .and_then(|(a, b)| beta::tails(a, b, at).ok())
                    .is_some_and(|tails| tails.lower >= tail)
        };
        // just after each recorded time: what is censored there is no longer known to exceed
        let first = self
            .steps
            .partition_point(|step| !low(step.product, step.at_risk - step.events - step.censored));
        // already low before the first recorded time: no lower limit
        let lo = if low(BetaProduct::default(), self.n) {
            None
        } else {
            self.steps.get(first).map(|step| step.ms)
        };
        let first = self.steps.partition_point(|step| {
            !step
                .product
                .shapes()
                .and_then(|(a, b)| beta::tails(a, b, at).ok())
                .is_some_and(|tails| tails.upper <= tail)
        });
        Interval {
            lo,
            up: self.steps.get(first).map(|step| step.ms),
        }
    }

    fn quantile_loglog(&self, p: Prob, level: Level) -> Interval<u64> {
        let target = p.complement().to_f64();
        let first = |side: fn(Interval) -> Option<f64>| {
            self.steps
                .iter()
                // at S = 0 the limits carry forward, so no new time can be the first
                .filter(|step| step.events > 0 && step.survival > 0.0)
                .find(|step| {
                    side(loglog(step.survival, step.greenwood, level))
                        .is_some_and(|limit| limit <= target)
                })
                .map(|step| step.ms)
        };
        Interval {
            lo: first(|limits| limits.lo),
            up: first(|limits| limits.up),
        }
    }

    /// Infinitesimal-jackknife variance of `S(t)` by session (Williams 1995), for gaps that are correlated within one.
    ///
    /// `sessions` are the very gaps of this curve, grouped. `None` where `S(t)` is 0 or there are fewer than two
    /// sessions.
    pub fn cluster_variance<S: AsRef<[Gap]>>(
        &self,
        sessions: &[S],
        ms: u64,
    ) -> Option<ClusterVariance> {
        let at = self.step_at(ms);
        let survival = at.map_or(1.0, |step| step.survival);
        let greenwood = at.map_or(0.0, |step| step.greenwood);
        if sessions.len() < 2 || !greenwood.is_finite() {
            return None;
        }
        let influence = |gap: &Gap| {
            let (seen, ended) = if gap.ms <= ms {
                (gap.ms, gap.observed)
            } else {
                (ms, false)
            };
            let Some(step) = self.step_at(seen) else {
                return 0.0;
            };
            let own = if ended {
                1.0 / (step.at_risk - step.events) as f64
            } else {
                0.0
            };
            own - step.greenwood
        };
        let sum: f64 = sessions
            .iter()
            .map(|gaps| survival * gaps.as_ref().iter().map(influence).sum::<f64>())
            .map(|influence| influence * influence)
            .sum();
        let m = sessions.len() as f64;
        let variance = m / (m - 1.0) * sum;
        let greenwood_variance = survival * survival * greenwood;
        Some(ClusterVariance {
            survival,
            greenwood_variance,
            unadjusted: sum,
            variance,
            deff: (greenwood_variance > 0.0).then(|| variance / greenwood_variance),
        })
    }
}

/// A curve together with the sessions that its gaps come from, for limits that respect their correlation.
///
/// Every count is divided by the design effect at the time asked for. Where fewer than 5 gaps are known to be longer,
/// the design effect is itself unreliable: the largest one at the times exceeded by 20, 50 and 100 gaps is used, and
/// without such times complete dependence within sessions (Kish 1965).
#[derive(Clone, Debug)]
pub struct ClusteredCurve<'a, S> {
    curve: &'a KaplanMeier,
    sessions: &'a [S],
    influences: Vec<Influences>,
}

/// What the gaps of one session contribute to the jackknife, summed once for every time that may be asked for.
#[derive(Clone, Debug)]
struct Influences {
    /// The lengths of the gaps, rising.
    ms: Vec<u64>,
    /// `sum (1/(Y-d) of ended gaps - sum d/(Y(Y-d)))` over the first gaps, one entry more than gaps.
    ended: Vec<f64>,
}

impl Influences {
    fn new(curve: &KaplanMeier, gaps: &[Gap]) -> Self {
        let mut gaps = gaps.to_vec();
        gaps.sort_unstable();
        let mut sum = 0.0;
        let mut ended = vec![sum];
        for gap in &gaps {
            if let Some(step) = curve.step_at(gap.ms) {
                let own = if gap.observed {
                    1.0 / (step.at_risk - step.events) as f64
                } else {
                    0.0
                };
                sum += own - step.greenwood;
            }
            ended.push(sum);
        }
        Self {
            ms: gaps.iter().map(|gap| gap.ms).collect(),
            ended,
        }
    }

    /// The session's influence on `ln S(t)` up to the sign, given Greenwood's sum there.
    fn at(&self, ms: u64, greenwood: f64) -> f64 {
        let below = self.ms.partition_point(|&gap| gap <= ms);
        self.ended[below] - (self.ms.len() - below) as f64 * greenwood
    }
}

impl<'a, S: AsRef<[Gap]>> ClusteredCurve<'a, S> {
    /// `curve` with the very gaps it was made of, grouped by session.
    pub fn new(curve: &'a KaplanMeier, sessions: &'a [S]) -> Self {
        Self {
            curve,
            sessions,
            influences: sessions
                .iter()
                .map(|gaps| Influences::new(curve, gaps.as_ref()))
                .collect(),
        }
    }

    /// The ratio of [`KaplanMeier::cluster_variance`] to Greenwood's variance.
    fn raw_deff(&self, ms: u64) -> Option<f64> {
        let greenwood = self.curve.step_at(ms).map_or(0.0, |step| step.greenwood);
        if self.sessions.len() < 2 || !greenwood.is_finite() || greenwood <= 0.0 {
            return None;
        }
        let squares: f64 = self
            .influences
            .iter()
            .map(|session| session.at(ms, greenwood))
            .map(|influence| influence * influence)
            .sum();
        let m = self.sessions.len() as f64;
        Some(m / (m - 1.0) * squares / greenwood)
    }

    /// The design effect used at `ms`, at least 1.
    pub fn deff(&self, ms: u64) -> f64 {
        if self.curve.known_to_exceed(ms) >= 5
            && let Some(deff) = self.raw_deff(ms)
        {
            return deff.max(1.0);
        }
        [20, 50, 100]
            .into_iter()
            .filter_map(|exceedances| {
                // the last time that so many gaps are known to exceed
                let after = self
                    .curve
                    .steps
                    .partition_point(|step| step.at_risk - step.events >= exceedances);
                self.raw_deff(self.curve.steps.get(after.checked_sub(1)?)?.ms)
            })
            .max_by(f64::total_cmp)
            .unwrap_or_else(|| self.complete_dependence())
            .max(1.0)
    }

    /// Gaps over `(sum n_i)^2 / sum n_i^2`.
    fn complete_dependence(&self) -> f64 {
        let sizes = self.sessions.iter().map(|gaps| gaps.as_ref().len() as f64);
        let (sum, squares) = sizes.fold((0.0, 0.0), |(sum, squares), size| {
            (sum + size, squares + size * size)
        });
        if sum > 0.0 { squares / sum } else { 1.0 }
    }

    /// Two-sided limits of `S(t)`.
    pub fn limits(&self, ms: u64, level: Level) -> Interval {
        self.curve.limits_with_deff(ms, self.deff(ms), level)
    }

    /// [`KaplanMeier::kill_rate`] with limits that respect sessions; below two sessions there is no interval.
    pub fn kill_rate(&self, window_ms: u64, level: Level) -> Estimate {
        let plain = self.curve.kill_rate(window_ms, level);
        let Some(before) = window_ms
            .checked_sub(1)
            .filter(|_| plain.status != Status::NotEstimable)
        else {
            return plain;
        };
        if self.sessions.len() < 2 {
            let reason = Reason::FewSessions {
                have: self.sessions.len() as u64,
                need: 2,
            };
            return Estimate {
                point: plain.point,
                ..Estimate::missing(plain.n, reason)
            };
        }
        let limits = self.limits(before, level);
        // a side that the plain curve cannot give does not appear through correlation either
        let lo = limits.lo.filter(|_| plain.interval.lo.is_some());
        Estimate {
            interval: Interval { lo, up: limits.up },
            ..plain
        }
    }

    /// Quantile limits by inverting the limits of `S` (Woodruff 1952), in ms; both missing below two sessions.
    pub fn quantile_limits(&self, p: Prob, level: Level) -> Interval<u64> {
        let steps = &self.curve.steps;
        if self.sessions.len() < 2 {
            return Interval::none();
        }
        let target = p.complement().to_f64();
        let just_after = |step: &Step| {
            let deff = self.deff(step.ms);
            let known = (step.at_risk - step.events - step.censored) as f64 / deff;
            lower(
                self.curve.product_with_deff(step.ms, deff),
                known,
                level.alpha(2),
            )
        };
        // with everything still at risk the lower limit may be below the target already
        let before = lower(
            BetaProduct::default(),
            self.curve.n as f64 / self.deff(0),
            level.alpha(2),
        );
        let lo = if before.is_none_or(|limit| limit <= target) {
            None
        } else {
            let first =
                steps.partition_point(|step| just_after(step).is_some_and(|limit| limit > target));
            steps.get(first).map(|step| step.ms)
        };
        let first = steps.partition_point(|step| {
            self.limits(step.ms, level)
                .up
                .is_none_or(|limit| limit > target)
        });
        Interval {
            lo,
            up: steps.get(first).map(|step| step.ms),
        }
    }
}

/// The variance of a survival with whole sessions as units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterVariance {
    /// `S(t)`.
    pub survival: f64,
    /// Greenwood's variance, which treats gaps as independent.
    pub greenwood_variance: f64,
    /// Infinitesimal jackknife without the small-sample factor.
    pub unadjusted: f64,
    /// Infinitesimal jackknife times `m / (m - 1)`.
    pub variance: f64,
    /// Its ratio to Greenwood's; `None` where that is 0.
    pub deff: Option<f64>,
}

fn lower_product(product: BetaProduct, known: f64) -> BetaProduct {
    product.times(known, 1.0)
}

fn lower(product: BetaProduct, known: f64, tail: f64) -> Option<f64> {
    if known <= 0.0 {
        return Some(0.0);
    }
    let (a, b) = lower_product(product, known).shapes()?;
    beta::quantile(a, b, tail).ok().map(|point| point.x)
}

fn upper(product: BetaProduct, tail: f64) -> Option<f64> {
    match product.shapes() {
        None => Some(1.0),
        Some((a, b)) => beta::quantile_upper(a, b, tail).ok().map(|point| point.x),
    }
}

/// `S^exp(+-z sqrt(sum d/(Y(Y-d))) / |ln S|)`.
fn loglog(survival: f64, greenwood: f64, level: Level) -> Interval {
    if survival <= 0.0 || survival >= 1.0 {
        return Interval::none();
    }
    let ln = libm::log(survival);
    let z = -normal::quantile(level.alpha(2));
    let reach = z * greenwood.sqrt() / -ln;
    Interval::new(
        libm::exp(ln * libm::exp(reach)),
        libm::exp(ln * libm::exp(-reach)),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::quantile::quantile_at;
    use super::super::rates::clopper_pearson;
    use super::*;
    use proptest::prelude::*;

    fn curve(values: &[u64]) -> KaplanMeier {
        KaplanMeier::new(&values.iter().copied().collect(), &Counts::default())
    }

    fn gaps() -> impl Strategy<Value = Vec<Gap>> {
        prop::collection::vec((0_u64..40, prop::bool::weighted(0.8)), 1..120).prop_map(|gaps| {
            gaps.into_iter()
                .map(|(ms, observed)| Gap { ms, observed })
                .collect()
        })
    }

    #[test]
    fn nothing_recorded() {
        let curve = KaplanMeier::of_gaps(&[]);
        assert_eq!(
            (curve.n(), curve.max_ms(), curve.last_event_ms()),
            (0, None, None)
        );
        let found = curve.quantile("0.5".parse().unwrap(), Level::P95);
        assert_eq!((found.value, found.reason), (None, Some(Reason::NoData)));
        assert_eq!(
            curve.kill_rate(1_000, Level::P95).reason,
            Some(Reason::NoData)
        );
        assert!(curve.cluster_variance::<Vec<Gap>>(&[], 5).is_none());
    }

    #[test]
    fn beyond_the_limit_only_an_upper_bound_is_known() {
        let mut gaps = vec![
            Gap {
                ms: 5_000,
                observed: true
            };
            97
        ];
        gaps.extend(
            [Gap {
                ms: 60_000,
                observed: false,
            }; 3],
        );
        let curve = KaplanMeier::of_gaps(&gaps);
        let at_limit = curve.kill_rate(60_000, Level::P95);
        assert_eq!((at_limit.point, at_limit.status), (Some(0.03), Status::Ok));
        let beyond = curve.kill_rate(90_000, Level::P95);
        assert_eq!(
            (beyond.point, beyond.interval.lo, beyond.status),
            (None, None, Status::OneSided)
        );
        assert_eq!(beyond.interval.up, at_limit.interval.up);
        assert_eq!(
            beyond.reason,
            Some(Reason::BeyondLastEvent { at_ms: 60_000 })
        );
        let p99 = curve.quantile(Prob::P99, Level::P95);
        assert_eq!(
            p99.to_string(),
            "p99 > 60000 ms (censored) [5000, -], n=100, beyond_last_event(at=60000)"
        );
    }

    #[test]
    fn copies_within_sessions_widen_the_limits() {
        // 40 sessions of 5 equal gaps know as much as 40 gaps
        let sessions: Vec<Vec<Gap>> = (1..=40)
            .map(|ms| vec![Gap { ms, observed: true }; 5])
            .collect();
        let curve = KaplanMeier::of_gaps(sessions.iter().flatten());
        let clustered = ClusteredCurve::new(&curve, &sessions);
        let deff = clustered.deff(20);
        assert!((deff - 5.0 * 40.0 / 39.0).abs() < 1e-9, "{deff}");
        let (plain, wide) = (
            curve.at(20, Level::P95).limits,
            clustered.limits(20, Level::P95),
        );
        assert!(wide.lo.unwrap() < plain.lo.unwrap() && wide.up.unwrap() > plain.up.unwrap());
        let single: Vec<Gap> = (1..=40).map(|ms| Gap { ms, observed: true }).collect();
        let expected = KaplanMeier::of_gaps(&single)
            .quantile(Prob::P50, Level::P95)
            .limits;
        let found = clustered.quantile_limits(Prob::P50, Level::P95);
        // the small-sample factor 40/39 may cost one more rank
        assert!(
            found.lo.unwrap().abs_diff(expected.lo.unwrap()) <= 1,
            "{found:?} {expected:?}"
        );
        assert!(
            found.up.unwrap().abs_diff(expected.up.unwrap()) <= 1,
            "{found:?} {expected:?}"
        );
        let one = ClusteredCurve::new(&curve, &sessions[..1]);
        assert_eq!(one.quantile_limits(Prob::P50, Level::P95), Interval::none());
        assert_eq!(
            one.kill_rate(20, Level::P95).reason,
            Some(Reason::FewSessions { have: 1, need: 2 })
        );
    }

    proptest! {
        #[test]
        fn without_censoring_it_is_clopper_pearson(values in prop::collection::vec(0_u64..60, 1..150), at in 0_u64..60) {
            let found = curve(&values).at(at, Level::P95);
            let longer = values.iter().filter(|&&value| value > at).count() as u64;
            let expected = clopper_pearson(longer, values.len() as u64, Level::P95);
            prop_assert!((found.limits.lo.unwrap() - expected.lo.unwrap()).abs() < 1e-10);
            prop_assert!((found.limits.up.unwrap() - expected.up.unwrap()).abs() < 1e-10);
            prop_assert_eq!(found.known_to_exceed, longer);
        }

        #[test]
        fn without_censoring_its_inversion_is_the_order_statistic_interval(
            mut values in prop::collection::vec(0_u64..500, 1..200), percent in 1_u64..100,
        ) {
            values.sort_unstable();
            let p = Prob::from_ratio(percent, 100).unwrap();
            let by_rank = quantile_at(&values, p, Level::P95);
            let by_curve = curve(&values).quantile(p, Level::P95);
            prop_assert_eq!(by_curve.value, by_rank.value);
            prop_assert_eq!(by_curve.limits, by_rank.interval);
            prop_assert_eq!(by_curve.status, by_rank.status);
        }

        #[test]
        fn survival_and_its_limits_never_rise(gaps in gaps()) {
            let curve = KaplanMeier::of_gaps(&gaps);
            let all: Vec<Survival> = (0..42).map(|ms| curve.at(ms, Level::P95)).collect();
            for pair in all.windows(2) {
                prop_assert!(pair[1].survival <= pair[0].survival);
                prop_assert!(pair[1].limits.up.unwrap() <= pair[0].limits.up.unwrap() + 1e-9);
                prop_assert!(pair[1].limits.lo.unwrap() <= pair[0].limits.lo.unwrap() + 1e-9);
            }
        }

        #[test]
        fn more_confidence_is_never_narrower(gaps in gaps(), at in 0_u64..40) {
            let curve = KaplanMeier::of_gaps(&gaps);
            let (one, other) = (curve.at(at, Level::P95), curve.at(at, Level::P99));
            prop_assert!(other.limits.lo.unwrap() <= one.limits.lo.unwrap() + 1e-12);
            prop_assert!(other.limits.up.unwrap() >= one.limits.up.unwrap() - 1e-12);
            prop_assert!(one.limits.lo.unwrap() <= one.survival + 1e-12);
            prop_assert!(one.limits.up.unwrap() >= one.survival - 1e-12);
        }

        #[test]
        fn order_does_not_matter(gaps in gaps(), at in 0_u64..40) {
            let mut turned = gaps.clone();
            turned.reverse();
            let (one, other) = (KaplanMeier::of_gaps(&gaps), KaplanMeier::of_gaps(&turned));
            prop_assert_eq!(one.at(at, Level::P95), other.at(at, Level::P95));
        }

        #[test]
        fn one_gap_per_session_is_close_to_greenwood(values in prop::collection::vec(0_u64..60, 2..150), at in 0_u64..60) {
            // without censoring the jackknife by single gaps is Greenwood's variance, algebraically
            let sessions: Vec<[Gap; 1]> = values.iter().map(|&ms| [Gap { ms, observed: true }]).collect();
            if let Some(found) = curve(&values).cluster_variance(&sessions, at) {
                prop_assert!((found.unadjusted - found.greenwood_variance).abs() < 1e-12);
            }
        }
    }
}
