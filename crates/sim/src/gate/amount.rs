//! Figures that are no rates: quantiles, means, counts, and what follows from the policy alone.

use policysim_policy::Policy;

use crate::certify::TieRule;
use crate::choose::share_settled;
use crate::gaps::Line;
use crate::stats::bootstrap::{Resampling, bootstrap};
use crate::stats::verdict::RunCounts;
use crate::stats::{Interval, Level, Prob, quantile_at, upper_one_sided};
use crate::sweep::settling_lag;

use super::check::{Code, Figure, Verdict};
use super::figures::Figures;
use super::hits::{by_unit, of_silences};
use super::metric::Metric;
use super::outcome::{Fate, Outcome, Outcomes};
use super::rate::{Judged, RateBound};
use super::rules::FigureRule;

/// Fewer runs that lose something than this say nothing of how the loss is spread (statistics section 3).
const LEAST_LOSSES: u64 = 5;
/// And so do losses in fewer sessions.
const LEAST_SESSIONS: usize = 3;
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
    let (units, limits) = match rule.metric {
        Metric::DetectionTime => {
            let Some(outcomes) = &context.figures.outcomes else {
                return Judged::without(Code::NotInSource);
            };
            (
                by_unit(rule, outcomes, TieRule::TimerFirst),
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

/// A figure without a bound of its own, with limits at one-sided `level`.
pub(super) fn amount(rule: &FigureRule, context: Context<'_>) -> Judged {
    let exact = |value: Option<f64>, n: Option<u64>| {
        let figure = Figure {
            point: value,
            lower: value,
            upper: value,
            n,
            ..Figure::default()
        };
        Judged {
            verdict: value.is_none().then_some(Verdict::NoData),
            code: value.is_none().then_some(Code::NoData),
            figure,
            ..Judged::default()
        }
    };
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    match rule.metric {
        Metric::SettlesInWait => return exact(Some(settles(context.policy)), None),
        Metric::FlaggedShare | Metric::MalformedShare => {
            let Some(telemetry) = &context.figures.telemetry else {
                return Judged::without(Code::NotInSource);
            };
            let (part, whole) = match rule.metric {
                Metric::FlaggedShare => (telemetry.flagged, telemetry.waits),
                _ => (telemetry.malformed, telemetry.lines),
            };
            return exact(share(part, whole), Some(whole));
        }
        _ => {}
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
        Metric::UnresolvedShare => {
            let unresolved =
                count(|run| matches!(run.fate, Fate::UnresolvedKill(_) | Fate::UnresolvedSurvival));
            exact(share(unresolved, healthy), Some(healthy))
        }
        Metric::WorkLost => mean(outcomes, context, &WORK),
        Metric::SlotTimeLost => mean(outcomes, context, &SLOTS),
        _ => Judged::without(Code::NotInSource),
    }
}

/// The share of hangs that settle in the wait they begin in, for a start uniform in the wait; none without a window.
fn settles(policy: &Policy) -> f64 {
    policy.idle.window.map_or(0.0, |window| {
        let settled = window.plus(settling_lag(policy));
        share_settled(settled, policy.task_wait.timeout)
    })
}

/// A loss per run: which runs it is over, what is surely lost, and what may be.
struct Loss {
    counts: fn(&Outcome) -> bool,
    surely: fn(&Outcome) -> u64,
    at_most: fn(&Outcome) -> u64,
    /// Of a run, whether more may be lost than is recorded.
    unbounded: fn(&Outcome) -> bool,
}

const WORK: Loss = Loss {
    counts: |run| !run.fate.is_hung(),
    surely: |run| match run.fate {
        Fate::FalseKill(_) => run.work_ms,
        _ => 0,
    },
    at_most: |run| run.work_ms,
    unbounded: |_| false,
};

const SLOTS: Loss = Loss {
    counts: |run| run.fate.is_hung(),
    surely: |run| run.slot_ms,
    at_most: |run| run.slot_ms,
    unbounded: |run| matches!(run.fate, Fate::HangMissed { .. }),
};

/// What one session loses.
#[derive(Clone, Copy, Debug, Default)]
struct Session {
    runs: u64,
    surely_ms: u64,
    at_most_ms: u64,
}

/// A mean loss with limits by resampling sessions; where too few runs lose anything for that, the upper limit is that
/// of their rate times what the total budget lets a run lose at most.
fn mean(outcomes: &Outcomes, context: Context<'_>, loss: &Loss) -> Judged {
    let mut sessions = vec![Session::default(); outcomes.sessions as usize];
    let (mut runs, mut losing, mut unbounded) = (0_u64, 0_u64, false);
    for run in outcomes.runs.iter().filter(|run| (loss.counts)(run)) {
        let session = &mut sessions[run.session as usize];
        session.runs += 1;
        session.surely_ms = session.surely_ms.saturating_add((loss.surely)(run));
        session.at_most_ms = session.at_most_ms.saturating_add((loss.at_most)(run));
        runs += 1;
        losing += u64::from((loss.at_most)(run) > 0);
        unbounded |= (loss.unbounded)(run);
    }
    sessions.retain(|session| session.runs > 0);
    if runs == 0 {
        return Judged {
            figure: Figure {
                n: Some(0),
                ..Figure::default()
            },
            ..Judged::without(Code::NoData)
        };
    }
    let sum = |of: fn(&Session) -> u64| {
        sessions
            .iter()
            .map(|session| u128::from(of(session)))
            .sum::<u128>() as f64
    };
    let mut figure = Figure {
        point: Some(sum(|session| session.surely_ms) / runs as f64),
        n: Some(runs),
        hits: Some(losing),
        ..Figure::default()
    };
    let places = sessions
        .iter()
        .filter(|session| session.at_most_ms > 0)
        .count();
    if losing < LEAST_LOSSES || places < LEAST_SESSIONS {
        figure.upper = context.policy.total.budget.and_then(|budget| {
            let rate = upper_one_sided(losing, runs, context.level)?;
            Some(rate * budget.as_u64() as f64)
        });
    } else {
        let how = Resampling {
            seed: context.seed,
            level: two_sided(context.level),
            ..Resampling::default()
        };
        let limits = |of: fn(&Session) -> u64| {
            bootstrap(sessions.len(), how, |draw| {
                let (mut lost, mut drawn) = (0_u128, 0_u64);
                for &index in draw {
                    lost += u128::from(of(&sessions[index]));
                    drawn += sessions[index].runs;
                }
                (drawn > 0).then(|| lost as f64 / drawn as f64)
            })
            .interval
        };
        figure.lower = limits(|session| session.surely_ms).lo;
        figure.upper = limits(|session| session.at_most_ms).up;
    }
    if unbounded {
        figure.upper = None;
    }
    Judged {
        code: figure.upper.is_none().then_some(Code::FewKills),
        figure,
        ..Judged::default()
    }
}

/// The counts of a rate or quantile, for its limits without a bound.
pub(super) fn units(rule: &FigureRule, figures: &Figures) -> Option<Vec<RunCounts>> {
    let outcomes = figures.outcomes.as_ref()?;
    Some(by_unit(rule, outcomes, TieRule::TimerFirst))
}
