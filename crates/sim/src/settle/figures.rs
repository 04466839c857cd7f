//! From counts to figures: each with its number of samples and its interval.

use policysim_policy::{Millis, Policy, WaitMode};

use super::habits::{Habits, Reaction};
use super::tally::{Moments, Numbers, Tally};
use crate::stats::detector::settled_in_wait;
use crate::stats::rates::clopper_pearson_effective;
use crate::stats::{
    Estimate, Interval, Level, Prob, QuantileEstimate, Reason, normal, quantile_of_counts, rate,
};
use crate::sweep::settling_lag;

/// So many waits are told of in [`Settlement::known_within`].
pub const WITHIN: usize = 3;

/// What one policy does to parents that wait, and to their runs.
///
/// Shares of hangs have Clopper-Pearson intervals. Rates and means per run take parents as the independent units
/// (ratio estimator, statistics section 3); a rate of 0 has the exact interval of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// The length of a wait.
    pub wait: Millis,
    /// Whether it waits for all or some.
    pub mode: WaitMode,
    /// What an expiry makes a parent do.
    pub on_expiry: Reaction,
    /// Whole numbers behind the figures.
    pub numbers: Numbers,
    /// Of the hangs that begin inside a wait: the watchdog's kill settles before that wait is over.
    pub settled_in_wait: Estimate,
    /// The same by the closed form, for starts uniform in the wait: `max(0, 1 - (window + lag) / wait)`. `None` where the idle
    /// window is off. The lag is that of a hung run, with [`Habits::unwinding`].
    pub closed_form: Option<f64>,
    /// Of all hangs: the parent knows within 1, 2, 3 waits, that in which they begin (or the next) included.
    pub known_within: [Estimate; WITHIN],
    /// From the hang to the parent's knowledge, p50 and p99 of the hangs it comes to know of, ms.
    pub knowledge: [QuantileEstimate; 2],
    /// From the hang to the parent's knowledge on average, ms: at least so long where it never comes to know of some,
    /// which count up to the end of the observation.
    pub mean_knowledge: Estimate,
    /// Whether those times were rounded up, by less than 0.1 %, because there are very many.
    pub knowledge_is_rounded: bool,
    /// Expired waits per run.
    pub expiries_per_run: Estimate,
    /// Waits per run.
    pub waits_per_run: Estimate,
    /// Healthy runs falsely killed by their watchdog, of all healthy runs, as a replay judges them.
    pub false_kills: Estimate,
    /// Healthy runs that a parent took for failed at an expiry.
    pub misread: Estimate,
    /// Healthy runs that a parent stopped.
    pub stopped: Estimate,
    /// Healthy runs killed with the parent's turn.
    pub closed: Estimate,
    /// Runs started twice because of a misreading, per run.
    pub duplicates: Estimate,
    /// Share of a parent's time that it spends in waits.
    pub blocked: Estimate,
    /// Share of the slot time of all delegates in which a hung run holds the slot.
    pub slots_held: Estimate,
}

impl Settlement {
    pub(super) fn new(policy: &Policy, habits: &Habits, tally: &Tally) -> Self {
        let numbers = tally.numbers;
        let wait = habits.window(policy);
        let share = |x, n| rate(x, n, Level::P95);
        let lag = settling_lag(policy).plus(habits.unwinding);
        let closed_form = policy
            .idle
            .window
            .and_then(|window| settled_in_wait(window.plus(lag).as_u64(), wait.as_u64()));
        let within = |waits: usize| numbers.known_after[..=waits].iter().sum();
        let quantile = |p| quantile_of_counts(tally.knowledge.counts(), p, Level::P95);
        Self {
            wait,
            mode: habits.mode(policy),
            on_expiry: habits.reaction(policy),
            numbers,
            settled_in_wait: share(numbers.settled_in_wait, numbers.hangs_in_wait),
            closed_form,
            known_within: std::array::from_fn(|waits| share(within(waits), numbers.hangs)),
            knowledge: [quantile(Prob::P50), quantile(Prob::P99)],
            mean_knowledge: tally.unaware.mean(),
            knowledge_is_rounded: tally.knowledge.are_rounded(),
            expiries_per_run: tally.expiries.mean(),
            waits_per_run: tally.waits.mean(),
            false_kills: tally.false_kills.rate(),
            misread: tally.misread.rate(),
            stopped: tally.stopped.rate(),
            closed: tally.closed.rate(),
            duplicates: tally.duplicates.rate(),
            blocked: tally.blocked.mean(),
            slots_held: tally.held.mean(),
        }
    }
}

impl Moments {
    /// The ratio and its linearised variance (Cochran 1977).
    fn ratio(&self) -> Option<(f64, f64)> {
        if self.n == 0 {
            return None;
        }
        let (x, n) = (self.x as f64, self.n as f64);
        let q = x / n;
        let m = self.parents as f64;
        let squares = self.xx as f64 - 2.0 * q * self.xn as f64 + q * q * self.nn as f64;
        let variance = m / (m - 1.0) * squares.max(0.0) / (n * n);
        Some((q, variance))
    }

    /// A mean per unit of the denominator, with a t interval over parents.
    fn mean(&self) -> Estimate {
        let Some((q, variance)) = self.ratio() else {
            return Estimate::missing(0, Reason::NoData);
        };
        let n = self.units();
        let bare = |reason| Estimate {
            point: Some(q),
            ..Estimate::missing(n, reason)
        };
        if self.parents < 2 {
            let (have, need) = (self.parents, 2);
            return bare(Reason::FewSessions { have, need });
        }
        if variance <= 0.0 {
            return bare(Reason::ZeroVariance);
        }
        let Ok(t) = normal::t_upper(self.parents as f64 - 1.0, Level::P95.alpha(2)) else {
            return bare(Reason::ZeroVariance);
        };
        let half = t * variance.sqrt();
        Estimate::with_interval(n, q, Interval::new((q - half).max(0.0), q + half))
    }

    /// A share, with the exact interval of as many independent units as the parents' spread leaves
    /// (Korn & Graubard 1998; a design effect below 1 counts as 1).
    fn rate(&self) -> Estimate {
        let n = self.units();
        let x = u64::try_from(self.x).unwrap_or(u64::MAX);
        let exact = rate(x, n, Level::P95);
        let Some((q, variance)) = self.ratio().filter(|_| self.parents > 1 && x > 0 && x < n)
        else {
            return exact;
        };
        let deff = (variance / (q * (1.0 - q) / n as f64)).max(1.0);
        let t = |df: f64| normal::t_upper(df, Level::P95.alpha(2)).unwrap_or(f64::INFINITY);
        let shrink = t(n as f64 - 1.0) / t(self.parents as f64 - 1.0);
        let effective = (n as f64 / deff * shrink * shrink).max(1.0);
        let interval = clopper_pearson_effective(q * effective, effective, Level::P95);
        Estimate::with_interval(n, q, interval)
    }

    fn units(&self) -> u64 {
        u64::try_from(self.n).unwrap_or(u64::MAX)
    }
}
