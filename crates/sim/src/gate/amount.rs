//! Figures that are no rates: quantiles, means, counts, and what follows from the policy alone.

use policysim_policy::Policy;

use crate::certify::TieRule;
use crate::choose::share_settled;
use crate::gaps::Line;
use crate::stats::{Interval, Level, Prob, quantile_at};
use crate::sweep::settling_lag;

use super::check::{Code, Figure, Verdict};
use super::cost::lost;
use super::counted::counted;
use super::figures::Figures;
use super::hits::{by_unit, of_silences};
use super::metric::Metric;
use super::outcome::{Fate, Outcome, Outcomes};
use super::rate::{Judged, RateBound};
use super::rules::FigureRule;

/// A reading at which nothing is known to have ended.
const NEVER: u64 = u64::MAX;

/// What a figure is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) policy: &'a Policy,
    pub(super) figures: &'a Figures,
    pub(super) level: Level,
    pub(super) seed: u64,
}

/// A quantile against its bound: at most a share `1 - p` may be longer than it, at most `p` shorter.
pub(super) fn quantile(rule: &FigureRule, context: Context<'_>) -> Judged {
    let p = rule.quantile.unwrap_or(Prob::P99);
    if let Some(swept) = &context.figures.swept {
        return swept.quantile(rule, p, context.level);
    }
    let (units, limits) = match rule.metric {
        Metric::DetectionTime => {
            let Some(outcomes) = &context.figures.outcomes else {
                return Judged::without(Code::NotInSource);
            };
            (
                by_unit(rule, outcomes, None, TieRule::TimerFirst),
                detection(outcomes, p, context.level),
            )
        }
        Metric::Silence(line) => {
            let Some(silences) = &context.figures.silences else {
                return Judged::without(Code::NotInSource);
            };
            match silences.get(&line) {
                Some(silences) => (
                    of_silences(rule, silences),
                    silence_limits(context, line, p),
                ),
                None => (Vec::new(), (None, Interval::none())),
            }
        }
        _ => return Judged::without(Code::NotInSource),
    };
    let share = if rule.bound.is_upper() {
        p.complement()
    } else {
        p
    };
    let bound = RateBound {
        max_rate: share.to_f64(),
        flipped: false,
        scale: 1.0,
        level: context.level,
    };
    let mut judged = bound.judge(&units, rule.cluster);
    let ms = |limit: Option<u64>| limit.map(|ms| ms as f64);
    judged.figure.point = ms(limits.0);
    (judged.figure.lower, judged.figure.upper) = (ms(limits.1.lo), ms(limits.1.up));
    judged
}

/// The quantile of the time from last activity to firing over hung runs, with one-sided limits; a hang that was not
/// told within its record is longer than all.
fn detection(outcomes: &Outcomes, p: Prob, level: Level) -> (Option<u64>, Interval<u64>) {
    let mut times: Vec<u64> = outcomes
        .runs
        .iter()
        .filter_map(|run| match run.fate {
            Fate::HangDetected { after_ms, .. } => Some(after_ms),
            Fate::HangMissed { .. } => Some(NEVER),
            _ => None,
        })
        .collect();
    times.sort_unstable();
    let found = quantile_at(&times, p, two_sided(level));
    let told = |ms: Option<u64>| ms.filter(|ms| *ms != NEVER);
    let limits = Interval {
        lo: told(found.interval.lo),
        up: told(found.interval.up),
    };
    (told(found.point()), limits)
}

/// The quantile of a line of silences, with one-sided limits.
fn silence_limits(context: Context<'_>, line: Line, p: Prob) -> (Option<u64>, Interval<u64>) {
    let silences = context.figures.silences.as_ref();
    let found = silences
        .and_then(|silences| silences.get(&line))
        .map(|silences| silences.quantiles(&[p], two_sided(context.level)));
    match found.as_deref() {
        Some([found]) => (found.point(), found.interval()),
        _ => (None, Interval::none()),
    }
}

/// The level whose two-sided limits are one-sided ones at `level`.
pub(super) fn two_sided(level: Level) -> Level {
    level.doubled().unwrap_or(level)
}

/// A figure that is known exactly; `None` where there is nothing to count.
pub(super) fn exact(value: Option<f64>, n: Option<u64>) -> Judged {
    between(value, value, n)
}

/// A number that is known but for what the record cannot tell.
pub(super) fn between(surely: Option<f64>, at_most: Option<f64>, n: Option<u64>) -> Judged {
    Judged {
        verdict: surely.is_none().then_some(Verdict::NoData),
        code: surely.is_none().then_some(Code::NoData),
        figure: Figure {
            point: surely,
            lower: surely,
            upper: at_most,
            n,
            ..Figure::default()
        },
        ..Judged::default()
    }
}

pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A figure without a bound of its own, with limits at one-sided `level`.
pub(super) fn amount(rule: &FigureRule, context: Context<'_>) -> Judged {
    match rule.metric {
        Metric::SettlesInWait => return exact(Some(settles(context.policy)), None),
        Metric::DetectionBound => return detection_bound(context.policy),
        Metric::MalformedShare => {
            let Some(telemetry) = &context.figures.telemetry else {
                return Judged::without(Code::NotInSource);
            };
            let lines = telemetry.lines;
            return exact(share(telemetry.malformed, lines), Some(lines));
        }
        _ => {}
    }
    if let Some(swept) = &context.figures.swept {
        return swept.amount(rule, context);
    }
    if rule.metric == Metric::FlaggedShare {
        let Some(telemetry) = &context.figures.telemetry else {
            return Judged::without(Code::NotInSource);
        };
        let waits = telemetry.waits;
        return exact(share(telemetry.flagged, waits), Some(waits));
    }
    let Some(outcomes) = &context.figures.outcomes else {
        return Judged::without(Code::NotInSource);
    };
    let hung = outcomes
        .runs
        .iter()
        .filter(|run| run.fate.is_hung())
        .count() as u64;
    let healthy = outcomes.runs.len() as u64 - hung;
    let some = |count: u64| (!outcomes.runs.is_empty()).then_some(count as f64);
    let count =
        |is: fn(&Outcome) -> bool| outcomes.runs.iter().filter(|run| is(run)).count() as u64;
    match rule.metric {
        Metric::Runs => exact(some(healthy), Some(healthy)),
        Metric::HungRuns => exact(some(hung), Some(hung + healthy)),
        Metric::Sessions => exact(some(u64::from(outcomes.sessions)), Some(hung + healthy)),
        Metric::Ties => exact(some(count(|run| run.tied)), Some(healthy)),
        Metric::NewlyKilled | Metric::NewlySpared => match counted(rule, context.figures) {
            Err(lacking) => lacking.into(),
            Ok(counted) => {
                let found = counted.total(rule);
                let known = |count: u64| (found.runs > 0).then_some(count as f64);
                between(
                    known(found.kills),
                    known(found.worst_kills()),
                    Some(found.runs),
                )
            }
        },
        Metric::UnresolvedShare => {
            let unresolved =
                count(|run| matches!(run.fate, Fate::UnresolvedKill(_) | Fate::UnresolvedSurvival));
            exact(share(unresolved, healthy), Some(healthy))
        }
        _ => lost(rule, outcomes, context),
    }
}

/// The idle window: the longest time from the last activity to the firing. Without one a hang is never noticed.
fn detection_bound(policy: &Policy) -> Judged {
    let window = policy.idle.window.map(|window| window.as_u64() as f64);
    let limit = Some(window.unwrap_or(f64::INFINITY));
    Judged {
        figure: Figure {
            point: window,
            lower: limit,
            upper: limit,
            ..Figure::default()
        },
        ..Judged::default()
    }
}

/// The share of hangs that settle in the wait they begin in, for a start uniform in the wait; none without a window.
fn settles(policy: &Policy) -> f64 {
    policy.idle.window.map_or(0.0, |window| {
        let settled = window.plus(settling_lag(policy));
        share_settled(settled, policy.task_wait.timeout)
    })
}
