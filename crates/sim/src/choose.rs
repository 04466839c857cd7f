//! From counts to figures, the Pareto front and one recommended cell.

use std::collections::HashMap;

use policysim_policy::Millis;

use crate::certify::{Evidence, Judge, Plan, Tested, Tests, TieRule, Verdict, shared_level, test};
use crate::stats::detector::MS_PER_HOUR;
use crate::stats::paired::{self, Discordant, PairedDifference};
use crate::stats::verdict::Decision;
use crate::stats::{Estimate, Interval, Level, Prob, QuantileEstimate, RankTable, rates};
use crate::sweep::{Candidate, settling_lag};
use crate::tally::{CellCounts, Part};

/// What can be said of one cell, with its uncertainty.
#[derive(Clone, Debug, PartialEq)]
pub struct CellFigures {
    /// False kills per run, two-sided Clopper-Pearson; the denominator leaves out runs labelled as hung.
    pub false_kill_rate: Estimate,
    /// False kills and unresolved runs per run: what the rate may be at most on this record.
    pub unresolved_rate_up: Option<f64>,
    /// The rate of all runs held against the acceptable one: its one-sided 95 % upper limit counts unresolved runs
    /// as kills, and days or sessions where those share their fate.
    pub verdict: Verdict,
    /// Kills of the base minus kills of this candidate, per run, unresolved ones included.
    pub base_minus_this: PairedDifference,
    /// The candidate differs from the base in nothing but a longer or shorter window, so that the sign is known.
    pub nested_in_base: bool,
    /// False kills per hour of active agent time, over the unkilled record.
    pub false_kills_per_hour: Option<f64>,
    /// Its 95 % interval: that of the rate per run, at the hours of agent time there are.
    pub false_kills_per_hour_limits: Interval,
    /// Time from the last activity of a hung run to the firing.
    pub detection: Detection,
    /// What hangs cost, for comparing cells, ms: the slot time that the record's hung runs lose in all,
    /// or the window where none is known; `None` when a hang is never noticed.
    pub hang_cost_ms: Option<u128>,
    /// Share of hangs that settle inside the TaskWait in which they begin, start uniform in the wait.
    pub settle_share: Option<f64>,
    /// Whether a hang that begins with a wait settles inside it.
    pub settles_within_wait: bool,
}

/// How soon a hang is noticed.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // one per cell, and a record has hung runs or has none
pub enum Detection {
    /// Measured on hung runs: median and p99 over those detected, and how many were not.
    Measured {
        /// Median, ms.
        p50: QuantileEstimate,
        /// p99, ms.
        p99: QuantileEstimate,
        /// Hung runs that were never killed within their record.
        missed: u64,
    },
    /// No hung run in the record: the idle window itself, for a hang outside an open tool.
    ClosedForm(Millis),
    /// No hung run, and no idle window.
    Never,
}

/// Works out the figures of every cell over all runs, remembering intervals that cells share.
pub fn figures(
    candidates: &[Candidate],
    cells: &[CellCounts],
    context: &Context<'_>,
) -> Vec<CellFigures> {
    let max = context.constraints.max_false_kill.map_or(1.0, Prob::to_f64);
    let mut remembered = Remembered {
        judge: Judge::new(&context.evidence.units, max, Level::P95),
        pairs: HashMap::new(),
        ranks: RankTable::new(Level::P95),
    };
    candidates
        .iter()
        .zip(cells)
        .map(|(candidate, cell)| figure(candidate, cell, context, &mut remembered))
        .collect()
}

/// What the figures and the choice of a sweep are made with.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The policy that candidates start from and are paired with.
    pub base: &'a policysim_policy::Policy,
    /// Active time of all runs, ms.
    pub active_ms: u128,
    /// Length of the parent's TaskWait.
    pub task_wait: Millis,
    /// What a recommended cell must meet.
    pub constraints: Constraints,
    /// The declared order of tests.
    pub plan: &'a Plan,
    /// The runs that verdicts are given on.
    pub evidence: &'a Evidence,
    /// The idle limit under which the runs were recorded, ms: nothing is known beyond it.
    pub recorded_idle_ms: Option<u64>,
    /// Gaps that the recorded limit cut seem to be missing.
    pub kills_missing: bool,
}

/// Intervals that cells share, by the counts that they hang on.
struct Remembered<'a> {
    judge: Judge<'a>,
    /// By the runs on which a cell and the base differ, and whether their windows are nested.
    pairs: HashMap<(Discordant, bool), PairedDifference>,
    ranks: RankTable,
}

fn figure(
    candidate: &Candidate,
    cell: &CellCounts,
    context: &Context<'_>,
    remembered: &mut Remembered<'_>,
) -> CellFigures {
    let tally = &cell.all.tally;
    let (lag, window) = (
        settling_lag(&candidate.policy),
        candidate.policy.idle.window,
    );
    let settled = window.map(|window| window.plus(lag));
    let per_run = |count: u64| (tally.runs > 0).then(|| count as f64 / tally.runs as f64);
    let nested_in_base = differs_in_window_only(&candidate.policy, context.base)
        && (cell.against_base.only_first == 0 || cell.against_base.only_second == 0);
    let false_kill_rate = remembered.judge.rate(tally.false_kills, tally.runs);
    let active_hours = context.active_ms as f64 / MS_PER_HOUR;
    let per_hour = |rate: f64| rate * tally.runs as f64 / active_hours;
    CellFigures {
        false_kill_rate,
        unresolved_rate_up: per_run(tally.worst_kills()),
        verdict: remembered.judge.verdict(&cell.all, TieRule::TimerFirst),
        base_minus_this: *remembered
            .pairs
            .entry((cell.against_base, nested_in_base))
            .or_insert_with(|| compare(cell.against_base, nested_in_base)),
        nested_in_base,
        false_kills_per_hour: (context.active_ms > 0)
            .then(|| tally.false_kills as f64 / active_hours),
        false_kills_per_hour_limits: if context.active_ms > 0 {
            Interval {
                lo: false_kill_rate.interval.lo.map(per_hour),
                up: false_kill_rate.interval.up.map(per_hour),
            }
        } else {
            Interval::none()
        },
        detection: detection(cell, window, &mut remembered.ranks),
        hang_cost_ms: part_hang_cost(candidate, &cell.all),
        settle_share: settled.map(|settled| share_settled(settled, context.task_wait)),
        settles_within_wait: settled.is_some_and(|settled| settled < context.task_wait),
    }
}

/// Whether two policies differ in nothing but a fixed idle window, so that the shorter one kills whatever the longer one does.
pub(crate) fn differs_in_window_only(
    candidate: &policysim_policy::Policy,
    base: &policysim_policy::Policy,
) -> bool {
    let mut policy = candidate.clone();
    policy.idle.window = base.idle.window;
    policy == *base && base.idle.adaptive.is_none() && base.idle.grace_cycles == 0
}

/// The paired difference; of nested windows its size only, signed.
pub(crate) fn compare(pairs: Discordant, nested: bool) -> PairedDifference {
    if !nested {
        return paired::difference(pairs, Level::P95);
    }
    let shorter_kills_more = pairs.only_first.max(pairs.only_second);
    let mut found = paired::nested_difference(pairs.runs, shorter_kills_more, Level::P95);
    if pairs.only_second > 0 {
        let negative = |limit: Option<f64>| limit.map(|limit| -limit);
        found.difference = negative(found.difference);
        (found.interval.lo, found.interval.up) =
            (negative(found.interval.up), negative(found.interval.lo));
    }
    found
}

/// What hangs cost in a part of the runs, for comparing cells, ms.
fn part_hang_cost(candidate: &Candidate, part: &Part) -> Option<u128> {
    if part.hung > 0 {
        return Some(part.slot_lost_ms);
    }
    let window = candidate.policy.idle.window;
    window.map(|window| u128::from(window.as_u64()))
}

fn detection(cell: &CellCounts, window: Option<Millis>, ranks: &mut RankTable) -> Detection {
    if cell.all.hung == 0 {
        return window.map_or(Detection::Never, Detection::ClosedForm);
    }
    let times = cell.detections.counts();
    let mut quantile = |p| ranks.quantile_of_counts(&times, p);
    Detection::Measured {
        p50: quantile(Prob::P50),
        p99: quantile(Prob::P99),
        missed: cell.hung_missed,
    }
}

/// `max(0, 1 - W/TW)`: a hang that starts `x` into a wait settles inside it iff `x + W <= TW`, for `x`
/// uniform in the wait (statistics section 10).
pub fn share_settled(settled: Millis, task_wait: Millis) -> f64 {
    if task_wait == Millis::ZERO {
        return 0.0;
    }
    task_wait.since(settled).as_u64() as f64 / task_wait.as_u64() as f64
}

/// Marks the cells that no other cell beats: fewer runs killed wrongly or doubtfully, or hangs that cost less.
pub fn pareto(cells: &[CellCounts], figures: &[CellFigures]) -> Vec<bool> {
    let points: Vec<(u64, u128)> = cells
        .iter()
        .zip(figures)
        .map(|(cell, figures)| {
            (
                cell.all.tally.false_kills + cell.all.tally.unresolved_kills,
                figures.hang_cost_ms.unwrap_or(u128::MAX),
            )
        })
        .collect();
    // Walk by rising kills, then cost: a point is beaten iff an earlier, different one costs no more.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| points[index]);
    let mut front = vec![false; points.len()];
    let mut best: Option<(u64, u128)> = None;
    for index in order {
        let point = points[index];
        let beaten = best.is_some_and(|best| best != point && best.1 <= point.1);
        if !beaten {
            front[index] = true;
            best = Some(point);
        }
    }
    front
}

/// What a cell must meet to be recommended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraints {
    /// Largest acceptable false-kill rate per run, met by the one-sided 95 % upper limit.
    pub max_false_kill: Option<Prob>,
    /// The window and its lags must be below the TaskWait.
    pub settle_within_wait: bool,
}

/// Why a cell was not chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rejection {
    /// The window lies beyond the limit under which the runs were recorded: only a bound of its rate is known.
    BeyondRecorded {
        /// That limit, ms.
        limit_ms: u64,
    },
    /// It meets the constraints, but hangs cost more.
    CostlierHangs,
    /// It would be chosen, if gaps that the recorded limit cut did not seem to be missing.
    KillsMissing,
    /// A hang could not settle inside one wait.
    NotBelowWait,
    /// The fixed sequence stopped at a larger window.
    NotReached {
        /// The cell at which it stopped.
        stopped_at: usize,
    },
    /// The selecting half preferred other settings, and only those are tested.
    NotSelected,
    /// Its upper limit exceeds the acceptable rate; with as many kills, that many runs would do.
    RateNotCertified {
        /// Runs needed in all; `None` when no number is enough.
        needed: Option<u64>,
    },
}

/// The choice among the cells of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The recommended cell.
    pub recommended: Option<usize>,
    /// How many cells meet the constraints.
    pub qualifying: usize,
    /// Where none does: the cell with the fewest kills, and why it does not qualify.
    pub nearest: Option<(usize, Rejection)>,
    /// The cells next to the recommended one by what hangs cost, below and above, and why they were not chosen.
    pub neighbours: Vec<(usize, Rejection)>,
    /// Every cell's verdict on the certifying runs, at the level of the tests.
    pub verdicts: Vec<Verdict>,
    /// Which cells were tested, and how.
    pub tests: Tests,
    /// What would be recommended if gaps equal to a window were no kills, where that is another cell (or none).
    pub other_tie_rule: Option<Option<usize>>,
}

impl Choice {
    /// The recommended cell, or else the nearest one.
    pub fn focus(&self) -> Option<usize> {
        self.recommended.or(self.nearest.map(|(index, _)| index))
    }
}

/// Chooses the cell in which hangs cost least among those that are certified and meet the constraints.
///
/// Costs are those of the selecting half where runs are split, verdicts those of the certifying half. Ties go to
/// fewer kills, then to the smaller window, budget and cap (statistics section 8).
pub fn choose(
    candidates: &[Candidate],
    cells: &[CellCounts],
    figures: &[CellFigures],
    context: &Context<'_>,
) -> Choice {
    let chooser = Chooser {
        candidates,
        figures,
        context,
        ranked: cells
            .iter()
            .map(|cell| {
                if context.evidence.is_split() {
                    cell.all.less(&cell.certify)
                } else {
                    cell.all.clone()
                }
            })
            .collect(),
    };
    let mut choice = chooser.choose(cells, TieRule::TimerFirst);
    if cells.iter().any(|cell| cell.certify.tally.ties > 0) {
        let other = chooser.choose(cells, TieRule::EventFirst).recommended;
        choice.other_tie_rule = (other != choice.recommended).then_some(other);
    }
    choice
}

/// By rising cost of hangs, then kills, then size of the limits.
type Rank = (u128, u64, Millis, Millis, u64, usize);

struct Chooser<'a> {
    candidates: &'a [Candidate],
    figures: &'a [CellFigures],
    context: &'a Context<'a>,
    /// The runs that cells are ranked by.
    ranked: Vec<Part>,
}

impl Chooser<'_> {
    fn rank(&self, index: usize) -> Rank {
        let (part, candidate) = (&self.ranked[index], &self.candidates[index]);
        let policy = &candidate.policy;
        let or_never = |limit: Option<Millis>| limit.unwrap_or(Millis::MAX);
        (
            part_hang_cost(candidate, part).unwrap_or(u128::MAX),
            part.tally.worst_kills(),
            or_never(policy.idle.window),
            or_never(policy.total.budget),
            policy.turns.cap.map_or(u64::MAX, u64::from),
            index,
        )
    }

    /// The sequence that the selecting half names; `None` where all are tested.
    fn selected(&self) -> Option<usize> {
        let (evidence, plan) = (self.context.evidence, self.context.plan);
        if !evidence.is_split() {
            return None;
        }
        let promising = |&index: &usize| {
            let tally = self.ranked[index].tally;
            self.context.constraints.max_false_kill.is_none_or(|max| {
                rates::certifies(tally.worst_kills(), tally.runs, max.to_f64(), Level::P95)
            }) && self.structural(index).is_none()
        };
        let all = 0..self.candidates.len();
        let best = all
            .clone()
            .filter(promising)
            .min_by_key(|&index| self.rank(index))
            .or_else(|| all.min_by_key(|&index| (self.rank(index).1, self.rank(index))));
        best.map(|index| plan.sequence_of(index))
    }

    /// Why a cell is out of the question whatever its kills.
    fn structural(&self, index: usize) -> Option<Rejection> {
        let window = self.candidates[index].policy.idle.window;
        let window_ms = window.map_or(u64::MAX, Millis::as_u64);
        match self.context.recorded_idle_ms {
            Some(limit_ms) if window_ms > limit_ms => Some(Rejection::BeyondRecorded { limit_ms }),
            _ if self.context.constraints.settle_within_wait
                && !self.figures[index].settles_within_wait =>
            {
                Some(Rejection::NotBelowWait)
            }
            _ => None,
        }
    }

    fn reject(&self, index: usize, verdict: &Verdict, place: Tested) -> Option<Rejection> {
        if self.context.constraints.max_false_kill.is_some() {
            if verdict.decision != Decision::Pass {
                return Some(Rejection::RateNotCertified {
                    needed: verdict.needed,
                });
            }
            match place {
                Tested::NotReached { stopped_at } => {
                    return Some(Rejection::NotReached { stopped_at });
                }
                Tested::NotSelected => return Some(Rejection::NotSelected),
                Tested::Certified | Tested::Failed => {}
            }
        }
        self.structural(index)
    }

    fn choose(&self, cells: &[CellCounts], rule: TieRule) -> Choice {
        let selected = self.selected();
        let (context, count) = (self.context, self.candidates.len());
        let max = context.constraints.max_false_kill;
        let claims = match selected {
            Some(_) => 1,
            None => context.plan.sequences().len() as u64,
        };
        let mut judge = Judge::new(
            &context.evidence.certify_units,
            max.map_or(1.0, Prob::to_f64),
            shared_level(claims),
        );
        let verdicts: Vec<Verdict> = cells
            .iter()
            .map(|cell| judge.verdict(&cell.certify, rule))
            .collect();
        let tests = test(context.plan, count, selected, |index, _| {
            max.is_none() || verdicts[index].decision == Decision::Pass
        });
        let rejections: Vec<Option<Rejection>> = (0..count)
            .map(|index| self.reject(index, &verdicts[index], tests.cells[index]))
            .collect();
        let qualifying = || (0..count).filter(|&index| rejections[index].is_none());
        let best = qualifying().min_by_key(|&index| self.rank(index));
        let recommended = best.filter(|_| !context.kills_missing);
        let nearest = match (recommended, best) {
            (Some(_), _) => None,
            (None, Some(best)) => Some((best, Rejection::KillsMissing)),
            (None, None) => (0..count)
                .min_by_key(|&index| {
                    (
                        verdicts[index].counts.worst_kills(),
                        matches!(rejections[index], Some(Rejection::BeyondRecorded { .. })),
                        self.rank(index),
                    )
                })
                .and_then(|index| rejections[index].map(|why| (index, why))),
        };
        Choice {
            recommended,
            qualifying: qualifying().count(),
            nearest,
            neighbours: recommended
                .map_or_else(Vec::new, |chosen| self.neighbours(chosen, &rejections)),
            verdicts,
            tests,
            other_tie_rule: None,
        }
    }

    fn neighbours(
        &self,
        chosen: usize,
        rejections: &[Option<Rejection>],
    ) -> Vec<(usize, Rejection)> {
        let all = 0..self.candidates.len();
        let cost = |index: usize| self.rank(index).0;
        let cheaper = all
            .clone()
            .filter(|&index| cost(index) < cost(chosen))
            .max_by_key(|&index| (cost(index), std::cmp::Reverse(self.rank(index))));
        let costlier = all
            .filter(|&index| cost(index) > cost(chosen))
            .min_by_key(|&index| self.rank(index));
        [cheaper, costlier]
            .into_iter()
            .flatten()
            .map(|index| (index, rejections[index].unwrap_or(Rejection::CostlierHangs)))
            .collect()
    }
}
