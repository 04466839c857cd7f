//! The cell that a sweep is about (the recommended one, else the nearest) with the intervals that only resampling gives.

use policysim_policy::Policy;

use crate::certify::Evidence;
use crate::hang_cost::{HangCost, Unaware};
use crate::look::{Asked, Gaps, LEVELS, Seen, Totals, look, look_at_summary};
use crate::resampled::{
    DetectorLimits, SessionCost, SessionCosts, detector_limits_of, unseen_hang_ms,
};
use crate::scan::Scan;
use crate::stats::bootstrap::{Bootstrap, Resampling};
use crate::stats::choice::Half;
use crate::stats::clusters::proxy_levels;
use crate::stats::traps::Heap;
use crate::summary::{NeedsEvents, Summary};
use crate::sweep::{Question, Swept};

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

/// What a sweep has found before its runs are looked at by session.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// What windows cost, and the focus cell.
    pub cost: &'a HangCost,
    /// How long a hang goes on until the parent knows, where that was simulated.
    pub unaware: &'a Unaware,
    /// The runs that verdicts are given on.
    pub evidence: &'a Evidence,
}

/// What only a second scan of the runs can say, by session.
#[derive(Clone, Debug)]
pub struct SecondLook {
    /// The focus cell's intervals; `None` where a sweep has no focus.
    pub focus: Option<Focus>,
    /// By heap: when the first run with a reading in it started, ms since the epoch.
    pub first_seen_ms: Vec<Option<i64>>,
    /// Whether every session was a unit of its own; otherwise groups of whole sessions were.
    pub exact: bool,
}

/// Reads the runs of `source` once more: for the focus cell of `cost`, which is resampled by session, and for when the
/// readings of `heaps` began. Without both there is nothing to read for.
///
/// `how` draws with the seed by which sessions are halved. Rivals are the base, and the cell that is the cheapest where
/// that is another.
///
/// # Errors
/// When a batch cannot be read.
pub fn second_look<S: Scan>(
    source: &S,
    question: &Question<'_>,
    swept: &Swept,
    found: Found<'_>,
    heaps: &[Heap],
    how: Resampling,
) -> Result<SecondLook, S::Error> {
    let eyes = |asked: &Asked<'_>| look(source, asked);
    with(eyes, true, question, swept, found, heaps, how)
}

/// The same of a summary: without figures of the focus cell as a failure detector, which need the gaps of each session.
///
/// # Errors
/// When the focus cell, or a rival, is not answered from the summary.
pub fn second_look_at_summary(
    summary: &Summary,
    question: &Question<'_>,
    swept: &Swept,
    found: Found<'_>,
    how: Resampling,
) -> Result<SecondLook, NeedsEvents> {
    let eyes = |asked: &Asked<'_>| look_at_summary(summary, asked);
    with(eyes, false, question, swept, found, &[], how)
}

fn with<E>(
    eyes: impl FnOnce(&Asked<'_>) -> Result<Seen, E>,
    sees_gaps: bool,
    question: &Question<'_>,
    swept: &Swept,
    found: Found<'_>,
    heaps: &[Heap],
    how: Resampling,
) -> Result<SecondLook, E> {
    let cost = found.cost;
    let cell = cost.focus.map(|focus| focus.cell);
    if cell.is_none() && heaps.is_empty() {
        return Ok(SecondLook {
            focus: None,
            first_seen_ms: Vec::new(),
            exact: true,
        });
    }
    let policy = |cell: usize| &question.candidates[cell].policy;
    let mut rivals = vec![(Rival::Base, question.base)];
    if let Ok(cheapest) = cost.cheapest
        && Some(cheapest.cell) != cell
    {
        rivals.push((Rival::Cell(cheapest.cell), policy(cheapest.cell)));
    }
    let asked = Asked {
        base: question.base,
        policies: cell
            .map(|cell| {
                let rivals = rivals.iter().map(|(_, policy)| *policy);
                std::iter::once(policy(cell)).chain(rivals).collect()
            })
            .unwrap_or_default(),
        restart: cost.options.restart,
        seed: how.seed,
        levels: cell.map_or([None; LEVELS], |cell| proxy_levels(&swept.gaps_of(cell))),
        ranges: heaps
            .iter()
            .map(|heap| (heap.min_ms, heap.max_ms))
            .collect(),
    };
    let seen = eyes(&asked)?;
    let mut focus = resampled(&asked, &seen, found, &rivals, how);
    if let Some(focus) = focus.as_mut().filter(|_| !sees_gaps) {
        focus.detector = None;
    }
    Ok(SecondLook {
        focus,
        exact: seen.sessions.is_exact(),
        first_seen_ms: seen.first_ms,
    })
}

fn resampled(
    asked: &Asked<'_>,
    seen: &Seen,
    found: Found<'_>,
    rivals: &[(Rival, &Policy)],
    how: Resampling,
) -> Option<Focus> {
    let evidence = found.evidence;
    let (cell, hang_rate) = found
        .cost
        .focus
        .map(|focus| (focus.cell, focus.hang_rate))?;
    let policy = *asked.policies.first()?;
    let costs = |index: usize, half: Option<Half>| {
        let sessions = seen.sessions.iter();
        let sessions = sessions.filter(|(of, _)| half.is_none_or(|half| half == *of));
        let price = |(_, totals): (Half, &Totals)| SessionCost {
            runs: totals.runs,
            false_kill_cost_ms: totals.costs[index].false_kill_ms,
            hung: totals.hung,
            slot_lost_ms: totals.costs[index].slot_lost_ms,
        };
        let unseen_ms = unseen_hang_ms(asked.policies[index]);
        let hang_ms = match index.checked_sub(1).map(|rival| rivals[rival].0) {
            None => found.unaware.of_cell(cell),
            Some(Rival::Base) => found.unaware.of_base(),
            Some(Rival::Cell(cell)) => found.unaware.of_cell(cell),
        };
        SessionCosts::new(sessions.map(price).collect(), unseen_ms).with_hangs_of(hang_ms)
    };
    let sampled = |costs: &SessionCosts| {
        Some(Sampled {
            point_ms: costs.per_run_ms(hang_rate)?,
            spread: costs.interval(hang_rate, how),
            sessions: costs.len(),
        })
    };
    let (ranked, certify, judged_half) = if evidence.is_split() {
        let certify = costs(0, Some(Half::Certify));
        (
            costs(0, Some(Half::Select)),
            Some(certify),
            Some(Half::Certify),
        )
    } else {
        (costs(0, None), None, None)
    };
    let judged = certify.as_ref().unwrap_or(&ranked);
    let against = rivals
        .iter()
        .enumerate()
        .filter(|(_, (_, rival))| *rival != policy)
        .filter_map(|(index, (rival, _))| {
            let other = costs(index + 1, judged_half);
            let sampled = Sampled {
                point_ms: judged.per_run_ms(hang_rate)? - other.per_run_ms(hang_rate)?,
                spread: judged.difference(&other, hang_rate, how),
                sessions: judged.len(),
            };
            Some((*rival, sampled))
        })
        .collect();
    let detector = policy.idle.window.map(|_| {
        let gaps = seen.sessions.iter().map(|(_, totals)| totals.gaps);
        let gaps: Vec<Gaps> = gaps.filter(|gaps| gaps.n > 0).collect();
        detector_limits_of(&gaps, asked.levels.map(|level| level.is_some()), how)
    });
    Some(Focus {
        cell,
        hang_rate,
        ranked: sampled(&ranked),
        certify: certify.as_ref().and_then(sampled),
        against,
        detector,
    })
}
