//! The cell that a sweep is about (the recommended one, else the nearest) with the intervals that only resampling gives.

use policysim_policy::Policy;

use crate::certify::Evidence;
use crate::hang_cost::{HangCost, Unaware};
use crate::resampled::{
    DetectorLimits, SessionCosts, detector_limits, session_costs, session_silences,
};
use crate::run::{Fleet, Run};
use crate::stats::bootstrap::{Bootstrap, Resampling};
use crate::stats::choice::Half;
use crate::sweep::{Candidate, half_of};

/// What the focus cell is compared with on cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rival {
    /// The base policy as it stands.
    Base,
    /// Another cell.
    Cell(usize),
}

/// A cost on a part of the runs with its spread over resampled sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled {
    /// Cost, or difference of costs, ms per run.
    pub point_ms: f64,
    /// Its spread over resampled sessions.
    pub spread: Bootstrap,
    /// Sessions.
    pub sessions: usize,
}

/// The focus cell's intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Focus {
    /// The cell.
    pub cell: usize,
    /// Hang rate at which costs are taken.
    pub hang_rate: f64,
    /// Cost on the runs that ranked the cells, ms per run.
    pub ranked: Option<Sampled>,
    /// Cost on the certifying half, ms per run; `None` without a split.
    pub certify: Option<Sampled>,
    /// How much more it costs per run than its rivals, on the runs that verdicts are given on.
    pub against: Vec<(Rival, Sampled)>,
    /// Its figures as a failure detector, over all runs; `None` where its window is off.
    pub detector: Option<DetectorLimits>,
}

/// Resamples the focus cell of `cost`; `None` where a sweep has none.
///
/// `how` draws with the seed by which sessions are halved. Rivals are the base, and the cell that is the cheapest where that is another.
pub fn focus(
    fleet: &Fleet,
    base: &Policy,
    candidates: &[Candidate],
    (cost, unaware): (&HangCost, &Unaware),
    evidence: &Evidence,
    how: Resampling,
) -> Option<Focus> {
    let (cell, hang_rate) = cost.focus.map(|focus| (focus.cell, focus.hang_rate))?;
    let policy = &candidates[cell].policy;
    let half = |half: Half| move |run: &Run| half_of(run, how.seed) == half;
    let everyone = |_: &Run| true;
    let on = |policy: &Policy, hang_ms: Option<u64>, keep: &(dyn Fn(&Run) -> bool + Sync)| {
        session_costs(fleet, policy, cost.options.restart, keep).with_hangs_of(hang_ms)
    };
    let own_ms = unaware.of_cell(cell);
    let sampled = |costs: &SessionCosts| {
        Some(Sampled {
            point_ms: costs.per_run_ms(hang_rate)?,
            spread: costs.interval(hang_rate, how),
            sessions: costs.len(),
        })
    };
    let (ranked, certify) = if evidence.is_split() {
        (
            on(policy, own_ms, &half(Half::Select)),
            Some(on(policy, own_ms, &half(Half::Certify))),
        )
    } else {
        (on(policy, own_ms, &everyone), None)
    };
    let mut rivals = vec![(Rival::Base, base)];
    if let Ok(cheapest) = cost.cheapest
        && cheapest.cell != cell
    {
        rivals.push((
            Rival::Cell(cheapest.cell),
            &candidates[cheapest.cell].policy,
        ));
    }
    let judged = certify.as_ref().unwrap_or(&ranked);
    let against = rivals
        .into_iter()
        .filter(|(_, rival)| *rival != policy)
        .filter_map(|(rival, other)| {
            let hang_ms = match rival {
                Rival::Base => unaware.of_base(),
                Rival::Cell(cell) => unaware.of_cell(cell),
            };
            let other = if evidence.is_split() {
                on(other, hang_ms, &half(Half::Certify))
            } else {
                on(other, hang_ms, &everyone)
            };
            let sampled = Sampled {
                point_ms: judged.per_run_ms(hang_rate)? - other.per_run_ms(hang_rate)?,
                spread: judged.difference(&other, hang_rate, how),
                sessions: judged.len(),
            };
            Some((rival, sampled))
        })
        .collect();
    Some(Focus {
        cell,
        hang_rate,
        ranked: sampled(&ranked),
        certify: certify.as_ref().and_then(sampled),
        against,
        detector: policy
            .idle
            .window
            .map(|window| detector_limits(&session_silences(fleet, policy), window.as_u64(), how)),
    })
}
