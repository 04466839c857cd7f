//! Figures of the settlement simulation against their bounds.

use crate::cluster::Cluster;
use crate::settle::Settlement;
use crate::stats::verdict::RunCounts;
use crate::stats::{Estimate, Level, Prob, Reason};

use super::amount::{Context, exact};
use super::check::{Code, Figure};
use super::figures::Simulated;
use super::metric::Metric;
use super::rate::{Judged, RateBound};
use super::rules::FigureRule;

/// The most that a one-sided limit can be trusted when it is one side of a two-sided 95 % interval.
const SIDE: &str = "0.975";

/// A figure of `settle`; `None` where it is no estimate.
fn estimate(metric: Metric, settled: &Settlement) -> Option<Estimate> {
    Some(match metric {
        Metric::BlockedShare => settled.blocked,
        Metric::ClosedRate => settled.closed,
        Metric::DuplicatesPerRun => settled.duplicates,
        Metric::ExpiriesPerRun => settled.expiries_per_run,
        Metric::KnownInWait => settled.known_within[0],
        Metric::KnownWithin2Waits => settled.known_within[1],
        Metric::KnownWithin3Waits => settled.known_within[2],
        Metric::MisreadRate => settled.misread,
        Metric::MeanHangToKnowledge => settled.mean_knowledge,
        Metric::SettledInWait => settled.settled_in_wait,
        Metric::SimulatedFalseKillRate => settled.false_kills,
        Metric::SlotsHeldShare => settled.slots_held,
        Metric::StoppedRate => settled.stopped,
        Metric::WaitsPerRun => settled.waits_per_run,
        _ => return None,
    })
}

/// Whether a figure is a share of hangs, each for itself, so that its limits follow from counts at any level.
const fn is_share_of_hangs(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::KnownInWait
            | Metric::KnownWithin2Waits
            | Metric::KnownWithin3Waits
            | Metric::SettledInWait
    )
}

/// A figure of the simulation with one-sided limits, judged where it is a share of hangs.
pub(super) fn settled(rule: &FigureRule, context: Context<'_>) -> Judged {
    let unknown = |settled: &Settlement| settled.numbers.never_known > 0;
    let mut at_least = false;
    let found = match (
        &context.figures.swept,
        context.figures.settled(&rule.parents),
    ) {
        (Some(_), _) if rule.metric == Metric::MeanHangToKnowledge => {
            return Judged::lacking(
                "a sweep's result does not tell whether the parents come to know of every hang",
            );
        }
        (Some(swept), _) => match swept.settled(rule, context.policy) {
            Ok(found) => found,
            Err(lacking) => return lacking.into(),
        },
        (None, None) => return Judged::without(Code::NotInSource),
        (None, Some(simulated)) if rule.metric == Metric::HangToKnowledge => {
            return knowledge(rule, simulated, context.level);
        }
        (None, Some(simulated)) if matches!(rule.metric, Metric::Simulated(_)) => {
            return number(rule.metric, &simulated.settled);
        }
        (None, Some(simulated)) => {
            let settled = &simulated.settled;
            // a hang that it never comes to know of counts up to the end of the observation
            at_least = rule.metric == Metric::MeanHangToKnowledge && unknown(settled);
            let missing = || Estimate::missing(0, Reason::NoData);
            estimate(rule.metric, settled).unwrap_or_else(missing)
        }
    };
    if is_share_of_hangs(rule.metric) {
        // the point is the ratio of two counts, which it gives back
        let hits = found.point.map_or(0.0, |point| point * found.n as f64);
        let counts = RunCounts {
            kills: hits.round() as u64,
            unresolved: 0,
            runs: found.n,
        };
        return RateBound::new(rule, context.level).judge(&[counts], Cluster::Run);
    }
    if found.n == 0 {
        return Judged::without(Code::NoData);
    }
    // parents are the units of these intervals, two-sided at 95 %: each side errs in one case of forty
    let enough = within(context.level);
    Judged {
        code: match found.reason {
            _ if !enough => Some(Code::LevelTooHigh),
            _ if at_least => Some(Code::Unended),
            Some(Reason::ZeroVariance) => Some(Code::NoSpread),
            _ => None,
        },
        figure: Figure {
            point: found.point,
            lower: found.interval.lo.filter(|_| enough),
            upper: found.interval.up.filter(|_| enough && !at_least),
            n: Some(found.n),
            ..Figure::default()
        },
        ..Judged::default()
    }
}

/// A number of the simulation.
fn number(metric: Metric, settled: &Settlement) -> Judged {
    let runs = settled.numbers.runs;
    let Metric::Simulated(place) = metric else {
        return Judged::without(Code::NotInSource);
    };
    let named = settled.numbers.named();
    let found = named.get(usize::from(place)).filter(|_| runs > 0);
    exact(found.map(|(_, number)| *number as f64), Some(runs))
}

/// From the hang to the parent's knowledge, of the hangs that it comes to know of.
fn knowledge(rule: &FigureRule, simulated: &Simulated, level: Level) -> Judged {
    let Some(found) = simulated
        .knowledge
        .iter()
        .find(|found| Some(found.p) == rule.quantile)
    else {
        return Judged::without(Code::NotInSource);
    };
    if found.n == 0 {
        return Judged::without(Code::NoData);
    }
    let enough = within(level);
    let ms = |limit: Option<u64>| limit.map(|ms| ms as f64);
    Judged {
        code: (!enough).then_some(Code::LevelTooHigh),
        figure: Figure {
            point: ms(found.point()),
            lower: ms(found.interval.lo).filter(|_| enough),
            upper: ms(found.interval.up).filter(|_| enough),
            n: Some(found.n),
            ..Figure::default()
        },
        ..Judged::default()
    }
}

/// Whether one side of a two-sided 95 % interval is a limit at `level`.
pub(super) fn within(level: Level) -> bool {
    let side = SIDE.parse::<Prob>().unwrap_or(Prob::P95);
    level.confidence().to_f64() <= side.to_f64()
}
