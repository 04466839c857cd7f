//! Figures of the settlement simulation against their bounds.

use crate::cluster::Cluster;
use crate::settle::Settlement;
use crate::stats::verdict::RunCounts;
use crate::stats::{Estimate, Level, Prob};

use super::amount::Context;
use super::check::{Code, Figure};
use super::metric::Metric;
use super::rate::{Judged, RateBound};
use super::rules::FigureRule;

/// The most that a one-sided limit can be trusted when it is one side of a two-sided 95 % interval.
const SIDE: &str = "0.975";

/// Hangs that settle in time, of how many.
fn share(metric: Metric, settled: &Settlement) -> Option<RunCounts> {
    let numbers = &settled.numbers;
    let (kills, runs) = match metric {
        Metric::SettledInWait => (numbers.settled_in_wait, numbers.hangs_in_wait),
        Metric::KnownInWait => (numbers.known_after[0], numbers.hangs),
        _ => return None,
    };
    Some(RunCounts {
        kills,
        unresolved: 0,
        runs,
    })
}

fn mean(metric: Metric, settled: &Settlement) -> Option<Estimate> {
    match metric {
        Metric::BlockedShare => Some(settled.blocked),
        Metric::ExpiriesPerRun => Some(settled.expiries_per_run),
        Metric::MisreadRate => Some(settled.misread),
        Metric::SlotsHeldShare => Some(settled.slots_held),
        _ => None,
    }
}

/// A figure of the simulation with one-sided limits, judged where it is a share of hangs.
pub(super) fn settled(rule: &FigureRule, context: Context<'_>) -> Judged {
    let Some(settled) = &context.figures.settlement else {
        return Judged::without(Code::NotInSource);
    };
    if let Some(counts) = share(rule.metric, settled) {
        return RateBound::new(rule, context.level).judge(&[counts], Cluster::Run);
    }
    let Some(found) = mean(rule.metric, settled) else {
        return Judged::without(Code::NotInSource);
    };
    if found.n == 0 {
        return Judged::without(Code::NoData);
    }
    // parents are the units of these intervals, two-sided at 95 %: each side errs in one case of forty
    let enough = within(context.level);
    Judged {
        code: (!enough).then_some(Code::TooFew),
        figure: Figure {
            point: found.point,
            lower: found.interval.lo.filter(|_| enough),
            upper: found.interval.up.filter(|_| enough),
            n: Some(found.n),
            ..Figure::default()
        },
        ..Judged::default()
    }
}

/// Whether one side of a two-sided 95 % interval is a limit at `level`.
fn within(level: Level) -> bool {
    let side = SIDE.parse::<Prob>().unwrap_or(Prob::P95);
    level.confidence().to_f64() <= side.to_f64()
}
