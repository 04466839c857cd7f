//! Figures against their bounds: on the figure itself, or on its change since the baseline.

use crate::certify::TieRule;
use crate::stats::Level;

use super::amount::{Context, amount, quantile};
use super::check::{Code, Figure, Verdict};
use super::counted::counted;
use super::detector::detector;
use super::metric::{Metric, Source};
use super::rate::{Judged, RateBound, rate};
use super::rules::{Bound, FigureRule};
use super::settled::settled;

/// A figure of now, of the baseline and their change, judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounded {
    pub(super) now: Judged,
    pub(super) baseline: Option<Figure>,
    pub(super) change: Option<Figure>,
}

fn is_rate(metric: Metric) -> bool {
    metric.takes_strata() || metric == Metric::FalseKillsPerHour
}

/// Judges a figure that is bounded by itself.
pub(super) fn absolute(rule: &FigureRule, context: Context<'_>) -> Judged {
    if is_rate(rule.metric) {
        let window_ms = context
            .policy
            .idle
            .window
            .map(policysim_policy::Millis::as_u64);
        return rate(rule, context.figures, window_ms, context.level);
    }
    by_limits_of(rule, measured(rule, context))
}

/// A figure with its limits; judged already where it is a share of something counted.
fn measured(rule: &FigureRule, context: Context<'_>) -> Judged {
    match rule.metric.source() {
        Source::Settlement => settled(rule, context),
        Source::Detector => detector(rule, context),
        _ if rule.metric.takes_quantile() => quantile(rule, context),
        _ => amount(rule, context),
    }
}

/// Holds a figure by its limits against its bound, where it is not judged already.
pub(super) fn by_limits_of(rule: &FigureRule, mut judged: Judged) -> Judged {
    if judged.verdict.is_none() {
        let (verdict, code) = by_limits(
            judged.figure.lower,
            judged.figure.upper,
            rule.amount,
            rule.bound.is_upper(),
        );
        judged.verdict = Some(verdict);
        judged.code = match verdict {
            Verdict::Inconclusive => judged.code.or(code),
            _ => code,
        };
        if verdict == Verdict::Fail && is_about_telemetry(rule.metric) {
            // data that are too thin or too doubtful accuse no policy: they cannot decide
            judged.verdict = Some(Verdict::Inconclusive);
        }
    }
    judged
}

/// Whether a metric says how good the telemetry is, not what the policy does.
const fn is_about_telemetry(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::FlaggedShare
            | Metric::HungRuns
            | Metric::MalformedShare
            | Metric::Runs
            | Metric::Sessions
            | Metric::Ties
            | Metric::UnresolvedShare
    )
}

/// What limits say of a bound: shown to hold, shown to be broken, or neither.
fn by_limits(
    lower: Option<f64>,
    upper: Option<f64>,
    amount: f64,
    is_upper: bool,
) -> (Verdict, Option<Code>) {
    let (holds, broken) = if is_upper {
        (
            upper.is_some_and(|upper| upper <= amount),
            lower.is_some_and(|lower| lower > amount),
        )
    } else {
        (
            lower.is_some_and(|lower| lower >= amount),
            upper.is_some_and(|upper| upper < amount),
        )
    };
    if broken {
        (Verdict::Fail, Some(Code::BoundBroken))
    } else if holds {
        (Verdict::Pass, None)
    } else {
        (Verdict::Inconclusive, Some(Code::TooFew))
    }
}

/// The figure with one-sided limits at `context.level`, without holding it against anything.
fn figure(rule: &FigureRule, context: Context<'_>) -> Judged {
    // any bound will do: only the limits are taken
    let plain = FigureRule {
        bound: Bound::Max,
        ..rule.clone()
    };
    let mut judged = match (&context.figures.swept, is_rate(rule.metric)) {
        (Some(swept), true) if rule.metric == Metric::FalseKillsPerHour => {
            swept.per_hour(rule, context.level)
        }
        (_, true) => {
            let bound = RateBound::new(&plain, context.level);
            let pool = counted(rule, context.figures)
                .and_then(|counted| counted.pool(&plain, bound, TieRule::TimerFirst));
            match pool {
                Ok(pool) => bound.judge_pool(&pool, rule.cluster),
                Err(lacking) => return lacking.into(),
            }
        }
        (_, false) => measured(&plain, context),
    };
    judged.verdict = judged.verdict.filter(|verdict| *verdict == Verdict::NoData);
    judged.code = judged.code.filter(|_| judged.verdict.is_some());
    (judged.figure.needed, judged.figure.needed_at_best) = (None, None);
    if rule.metric.takes_quantile() {
        judged.figure.hits = None;
    }
    judged
}

/// Judges the change of a figure since the baseline. Both sides' limits take half of the error each, so that their
/// difference and their ratio hold at the whole of it.
pub(super) fn relative(rule: &FigureRule, context: Context<'_>, baseline: Context<'_>) -> Bounded {
    let half = |level: Level| level.shared(2).unwrap_or(level);
    let at = |context: Context<'_>| {
        let level = half(context.level);
        figure(rule, Context { level, ..context })
    };
    let (mut now, base) = (at(context), at(baseline));
    let change = change(rule.bound, &now.figure, &base.figure);
    let missing = now.verdict.or(base.verdict);
    (now.verdict, now.code) = if missing.is_some() {
        now.reason = now.reason.or(base.reason);
        (missing, now.code.or(base.code))
    } else {
        let (verdict, code) = judge(rule, &now.figure, &base.figure, &change);
        (Some(verdict), code)
    };
    if now.verdict == Some(Verdict::Fail)
        && (is_about_telemetry(rule.metric) || rule.metric.source() == Source::Telemetry)
    {
        now.verdict = Some(Verdict::Inconclusive);
    }
    Bounded {
        now,
        baseline: Some(base.figure),
        change: Some(change),
    }
}

/// `f(now, base)` where both are known.
fn both(now: Option<f64>, base: Option<f64>, f: impl Fn(f64, f64) -> f64) -> Option<f64> {
    Some(f(now?, base?))
}

/// The change of a figure, with limits.
fn change(bound: Bound, now: &Figure, base: &Figure) -> Figure {
    let ratio = |now: f64, base: f64| now / base;
    let rise = |now: f64, base: f64| now - base;
    let fall = |now: f64, base: f64| base - now;
    let above_0 = |limit: Option<f64>| limit.filter(|limit| *limit > 0.0);
    let (point, lower, upper) = match bound {
        Bound::MaxDecrease => (
            both(now.point, base.point, fall),
            both(now.upper, base.lower, fall),
            both(now.lower, base.upper, fall),
        ),
        Bound::MaxRatio | Bound::MinRatio => (
            both(now.point, above_0(base.point), ratio),
            both(now.lower, above_0(base.upper), ratio),
            both(now.upper, above_0(base.lower), ratio),
        ),
        Bound::Max | Bound::Min | Bound::MaxIncrease => (
            both(now.point, base.point, rise),
            both(now.lower, base.upper, rise),
            both(now.upper, base.lower, rise),
        ),
    };
    Figure {
        point,
        lower,
        upper,
        ..Figure::default()
    }
}

fn judge(
    rule: &FigureRule,
    now: &Figure,
    base: &Figure,
    change: &Figure,
) -> (Verdict, Option<Code>) {
    if !rule.bound.is_ratio() {
        // a rise and a fall are both bounded from above
        return by_limits(change.lower, change.upper, rule.amount, true);
    }
    // multiplied out, so that a baseline of 0 is no division
    let times = |limit: Option<f64>| limit.map(|limit| limit * rule.amount);
    let at_most = |left: Option<f64>, right: Option<f64>| {
        left.zip(right).is_some_and(|(left, right)| left <= right)
    };
    let below = |left: Option<f64>, right: Option<f64>| {
        left.zip(right).is_some_and(|(left, right)| left < right)
    };
    let (holds, broken) = if rule.bound.is_upper() {
        (
            at_most(now.upper, times(base.lower)),
            below(times(base.upper), now.lower),
        )
    } else {
        (
            at_most(times(base.upper), now.lower),
            below(now.upper, times(base.lower)),
        )
    };
    match (holds, broken) {
        (_, true) => (Verdict::Fail, Some(Code::BoundBroken)),
        (true, false) => (Verdict::Pass, None),
        (false, false) => (Verdict::Inconclusive, Some(Code::TooFew)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_on_the_bound_hold() {
        let check = |lower, upper, is_upper, expected| {
            let found = by_limits(Some(lower), Some(upper), 1.0, is_upper).0;
            assert_eq!(found, expected, "[{lower}, {upper}]");
        };
        check(0.5, 1.0, true, Verdict::Pass);
        check(1.0, 2.0, true, Verdict::Inconclusive);
        check(1.5, 2.0, true, Verdict::Fail);
        check(1.0, 2.0, false, Verdict::Pass);
        check(0.5, 1.0, false, Verdict::Inconclusive);
        check(0.5, 0.9, false, Verdict::Fail);
        assert_eq!(by_limits(None, None, 1.0, true).0, Verdict::Inconclusive);
    }
}
