//! What a policy loses per run: work, slots, and both at a stated hang rate (statistics section 11).

use policysim_policy::{Millis, Policy};

use crate::stats::bootstrap::{Resampling, bootstrap};
use crate::stats::{Level, upper_one_sided};
use crate::sweep::settling_lag;

use super::amount::{Context, two_sided};
use super::check::{Code, Figure};
use super::metric::Metric;
use super::outcome::{Fate, Outcome, Outcomes};
use super::rate::{Judged, nothing};
use super::rules::FigureRule;

/// Fewer runs that lose something than this say nothing of how the loss is spread (statistics section 3).
pub(super) const LEAST_LOSSES: u64 = 5;
/// And so do losses in fewer sessions.
const LEAST_SESSIONS: usize = 3;

/// A loss per run: which runs it is over, what is surely lost, and what may be.
struct Loss<'a> {
    counts: fn(&Outcome) -> bool,
    surely: &'a dyn Fn(&Outcome) -> u64,
    at_most: &'a dyn Fn(&Outcome) -> u64,
    /// Of a run, whether more may be lost than is recorded.
    unbounded: fn(&Outcome) -> bool,
    /// What one run can lose beyond what the total budget lets it work.
    beside_ms: u64,
}

fn missed(run: &Outcome) -> bool {
    matches!(run.fate, Fate::HangMissed { .. })
}

/// Active time thrown away by kills of living runs, and a restart for each.
fn work(outcomes: &Outcomes, context: Context<'_>, restart: Millis) -> Judged {
    let restart_ms = restart.as_u64();
    let at_most = |run: &Outcome| match run.fate {
        Fate::FalseKill(_) | Fate::UnresolvedKill(_) | Fate::UnresolvedSurvival => {
            run.work_ms.saturating_add(restart_ms)
        }
        _ => 0,
    };
    let loss = Loss {
        counts: |run| !run.fate.is_hung(),
        surely: &|run| match run.fate {
            Fate::FalseKill(_) => at_most(run),
            _ => 0,
        },
        at_most: &at_most,
        unbounded: |_| false,
        beside_ms: restart_ms,
    };
    mean(outcomes, context, &loss)
}

fn slots(outcomes: &Outcomes, context: Context<'_>) -> Judged {
    let loss = Loss {
        counts: |run| run.fate.is_hung(),
        surely: &|run| run.slot_ms,
        at_most: &|run| run.slot_ms,
        unbounded: missed,
        beside_ms: 0,
    };
    mean(outcomes, context, &loss)
}

fn detection(outcomes: &Outcomes, context: Context<'_>) -> Judged {
    let after = |run: &Outcome| match run.fate {
        Fate::HangDetected { after_ms, .. } => after_ms,
        Fate::HangMissed { silent_ms } => silent_ms,
        _ => 0,
    };
    let loss = Loss {
        // one that was killed before it hung was not there to be detected
        counts: |run| run.fate.is_hung() && !matches!(run.fate, Fate::HangKilledEarly(_)),
        surely: &after,
        at_most: &after,
        unbounded: missed,
        beside_ms: 0,
    };
    mean(outcomes, context, &loss)
}

/// A mean loss, with one-sided limits at the level of `context`.
pub(super) fn lost(rule: &FigureRule, outcomes: &Outcomes, context: Context<'_>) -> Judged {
    match rule.metric {
        Metric::WorkLost => work(outcomes, context, Millis::ZERO),
        Metric::SlotTimeLost => slots(outcomes, context),
        Metric::MeanDetectionTime => detection(outcomes, context),
        Metric::CostPerHang | Metric::CostPerRun => cost(rule, outcomes, context),
        _ => Judged::without(Code::NotInSource),
    }
}

/// `(1 - h) kills + h hangs` per run, or that per run that hangs. Each part takes half of the error, so that their sum
/// holds at the whole of it.
fn cost(rule: &FigureRule, outcomes: &Outcomes, context: Context<'_>) -> Judged {
    let Some(hang_rate) = rule.hang_rate.map(crate::stats::Prob::to_f64) else {
        return Judged::without(Code::NotInSource);
    };
    let level = context.level.shared(2).unwrap_or(context.level);
    let half = Context { level, ..context };
    let kills = work(outcomes, half, rule.restart);
    if kills.verdict.is_some() {
        return kills;
    }
    let hangs = slots(outcomes, half);
    let hung = hangs.figure.n.is_some_and(|n| n > 0);
    let hangs = if hung {
        hangs.figure
    } else {
        unseen_hang(context.policy)
    };
    let unit = if rule.metric == Metric::CostPerHang {
        hang_rate
    } else {
        1.0
    };
    let sum = |kills: Option<f64>, hangs: Option<f64>| {
        Some(((1.0 - hang_rate) * kills? + hang_rate * hangs?) / unit)
    };
    let upper = sum(kills.figure.upper, hangs.upper);
    Judged {
        code: upper.is_none().then_some(Code::FewKills),
        figure: Figure {
            point: sum(kills.figure.point, hangs.point),
            // what kills cost is at least nothing, where too few tell how they are spread
            lower: sum(kills.figure.lower.or(Some(0.0)), hangs.lower.or(Some(0.0))),
            upper,
            ..kills.figure
        },
        ..Judged::default()
    }
}

/// What a hang costs where no run is labelled as one: the window and what follows it, or no end.
fn unseen_hang(policy: &Policy) -> Figure {
    let window = policy.idle.window;
    let settled = window.map(|window| window.plus(settling_lag(policy)).as_u64() as f64);
    let limit = Some(settled.unwrap_or(f64::INFINITY));
    Figure {
        point: settled,
        lower: limit,
        upper: limit,
        ..Figure::default()
    }
}

/// What one session loses.
#[derive(Clone, Copy, Debug, Default)]
struct Session {
    runs: u64,
    surely_ms: u64,
    at_most_ms: u64,
}

/// The upper limit of a loss per run where too few runs lose anything: that of their rate times what one can lose.
pub(super) fn few_losses(
    losing: u64,
    runs: u64,
    policy: &Policy,
    beside_ms: u64,
    level: Level,
) -> Option<f64> {
    let most = policy.total.budget?.as_u64().saturating_add(beside_ms);
    Some(upper_one_sided(losing, runs, level)? * most as f64)
}

/// A mean loss with limits by resampling sessions; where too few runs lose anything for that, the upper limit is that
/// of their rate times what the total budget lets a run lose at most.
fn mean(outcomes: &Outcomes, context: Context<'_>, loss: &Loss<'_>) -> Judged {
    let mut sessions = vec![Session::default(); outcomes.sessions as usize];
    let (mut runs, mut losing, mut unbounded) = (0_u64, 0_u64, false);
    for run in outcomes.runs.iter().filter(|run| (loss.counts)(run)) {
        let session = &mut sessions[run.session as usize];
        let at_most_ms = (loss.at_most)(run);
        session.runs += 1;
        session.surely_ms = session.surely_ms.saturating_add((loss.surely)(run));
        session.at_most_ms = session.at_most_ms.saturating_add(at_most_ms);
        runs += 1;
        losing += u64::from(at_most_ms > 0);
        unbounded |= (loss.unbounded)(run);
    }
    sessions.retain(|session| session.runs > 0);
    if runs == 0 {
        return nothing();
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
        figure.upper = few_losses(losing, runs, context.policy, loss.beside_ms, context.level);
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
