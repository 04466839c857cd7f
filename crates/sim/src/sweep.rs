//! Candidates times runs: what each candidate policy does to every recorded run, as exact counts.
//!
//! Everything here is an integer, so merging any split of the runs in run order gives the same cell.

use policysim_policy::{ByName, First, Millis, Policy, PolicyError, document::Value};
use rayon::prelude::*;

use crate::grid;
use crate::judgement::Judgement;
use crate::ledger::ledger;
use crate::replay::{Replayed, hang_onset_ms, replay};
use crate::run::{Fleet, RecordedEnd, Run, RunStatus, Symbols};
use crate::stats::choice::{Half, half};
use crate::strata::Strata;
use crate::tally::{CellCounts, Part, Tally};

/// One axis of a sweep: a policy key and the values it takes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Axis {
    /// The policy key, `idle.window` for example.
    pub key: String,
    /// Its values, in the order written.
    pub values: Vec<Value>,
}

/// One policy of a sweep.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The whole policy.
    pub policy: Policy,
    /// What sets it apart from the base, a value per axis.
    pub settings: Vec<(String, Value)>,
}

impl Candidate {
    /// The settings as text: `idle.window=300s,turns.cap=60`.
    pub fn label(&self) -> String {
        let mut label = String::new();
        for (key, value) in &self.settings {
            if !label.is_empty() {
                label.push(',');
            }
            label.push_str(key);
            label.push('=');
            label.push_str(&grid::plain(value));
        }
        label
    }
}

/// Every combination of the axes' values over `base`, the last axis varying fastest.
///
/// # Errors
/// When a key does not exist or a value does not fit it.
pub fn candidates(base: &Policy, axes: &[Axis]) -> Result<Vec<Candidate>, PolicyError> {
    let mut found = vec![Candidate {
        policy: base.clone(),
        settings: Vec::new(),
    }];
    for axis in axes {
        let mut next = Vec::with_capacity(found.len() * axis.values.len());
        for candidate in &found {
            for value in &axis.values {
                let mut wider = candidate.clone();
                wider.policy.set(&axis.key, value)?;
                if axis.key == "turns.cap" {
                    // A swept cap is the cap of every role; entries by role would shadow it.
                    wider.policy.turns.by_role = ByName::default();
                }
                wider.settings.push((axis.key.clone(), value.clone()));
                next.push(wider);
            }
        }
        found = next;
    }
    Ok(found)
}

/// From a firing to the outcome reaching the parent, at worst: the driver's delay and its grace.
pub const fn settling_lag(policy: &Policy) -> Millis {
    policy.kill.delay.plus(policy.kill.grace)
}

/// `policy` with every window and budget one millisecond longer: kills as if an event at a deadline came
/// before its timer. Limits by tool, of compactions and backoffs keep their length.
#[must_use]
pub fn event_first(policy: &Policy) -> Policy {
    let longer = |limit: Option<Millis>| limit.map(|limit| limit.plus(Millis::new(1)));
    let mut policy = policy.clone();
    policy.idle.window = longer(policy.idle.window);
    if let First::After(window) = policy.idle.first {
        policy.idle.first = First::After(window.plus(Millis::new(1)));
    }
    policy.idle.ceiling = longer(policy.idle.ceiling);
    policy.idle.startup = longer(policy.idle.startup);
    policy.total.budget = longer(policy.total.budget);
    policy
}

/// The runs that a sweep is about: everything but unanswered prompts and waits outside runs.
pub fn sized_runs(fleet: &Fleet) -> impl Iterator<Item = &Run> {
    fleet.runs.iter().filter(|run| run.status == RunStatus::Run)
}

/// Calendar day (UTC) of a run's start, in days since 1970; undated runs share day 0.
pub const fn day(run: &Run) -> i64 {
    run.started_at_ms.div_euclid(MS_PER_DAY)
}

const MS_PER_DAY: i64 = 86_400_000;

/// The half of each sized run of `fleet`, by the key of its session, or its own name where it has none.
///
/// A session keeps its half when others are added (statistics section 8).
pub fn halves(fleet: &Fleet, seed: u64) -> Vec<Half> {
    sized_runs(fleet)
        .map(|run| {
            let key = if run.session.is_empty() {
                &run.name
            } else {
                &run.session
            };
            half(key.as_bytes(), seed)
        })
        .collect()
}

/// How the runs of a sweep are grouped, and what candidates are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Grouping<'a> {
    /// The policy that candidates are paired with.
    pub base: &'a Policy,
    /// The strata that every cell is counted by.
    pub strata: &'a Strata,
    /// The half of every sized run; empty where verdicts are given on all of them.
    pub halves: &'a [Half],
}

/// Replays every run under every candidate.
///
/// Returns a cell per candidate, in the same order, whatever the number of threads. `progress` is told
/// each number of finished runs as it grows.
pub fn sweep(
    fleet: &Fleet,
    candidates: &[Candidate],
    grouping: Grouping<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<CellCounts> {
    let runs: Vec<&Run> = sized_runs(fleet).collect();
    let strata = grouping.strata;
    let empty = || vec![CellCounts::empty(strata.groups().len()); candidates.len()];
    let later: Vec<Policy> = candidates
        .iter()
        .map(|candidate| event_first(&candidate.policy))
        .collect();
    let mut cells = runs
        .par_iter()
        .enumerate()
        .fold(empty, |mut cells, (index, run)| {
            let of_base = replay(grouping.base, run, &fleet.symbols);
            let seen = Seen {
                run,
                symbols: &fleet.symbols,
                groups: strata.of_run(index),
                certifies: grouping.halves.get(index) != Some(&Half::Select),
                base_kills: wrongly_killed(&of_base),
            };
            for ((cell, candidate), later) in cells.iter_mut().zip(candidates).zip(&later) {
                count(cell, &candidate.policy, later, &seen);
            }
            progress(1);
            cells
        })
        .reduce(empty, |left, right| {
            left.into_iter()
                .zip(right)
                .map(|(left, right)| left.merge(right))
                .collect()
        });
    for cell in &mut cells {
        cell.detection_ms.sort_unstable();
    }
    cells
}

/// One run, as every candidate meets it.
struct Seen<'a> {
    run: &'a Run,
    symbols: &'a Symbols,
    groups: &'a [usize],
    certifies: bool,
    base_kills: bool,
}

/// Killed, and the record does not say that this was right.
pub(crate) fn wrongly_killed(replayed: &Replayed) -> bool {
    replayed.is_kill() && replayed.judgement != Judgement::TrueKill
}

/// A run that is not labelled as hung, as a tally of one.
fn tally(replayed: &Replayed) -> Tally {
    let mut tally = Tally {
        runs: 1,
        ..Tally::default()
    };
    match (replayed.is_kill(), replayed.judgement) {
        (true, Judgement::FalseKill) => tally.false_kills = 1,
        (true, Judgement::TrueKill) => {}
        (true, _) => tally.unresolved_kills = 1,
        (false, Judgement::Unresolved) => tally.unresolved_survivals = 1,
        (false, _) => {}
    }
    tally
}

fn count(cell: &mut CellCounts, policy: &Policy, later: &Policy, seen: &Seen<'_>) {
    let run = seen.run;
    let replayed = replay(policy, run, seen.symbols);
    let killed = replayed.is_kill();
    let at_ms = replayed.verdict.at.as_u64();
    if killed {
        cell.kills[replayed.verdict.cause as usize] += 1;
    }
    if run.end == RecordedEnd::Hung {
        count_hung(cell, policy, seen, killed.then_some(at_ms));
        return;
    }
    let mut tally = tally(&replayed);
    // Only an event at the very instant of the firing can have lost to the timer.
    let tied = run.events.get(replayed.unseen).map(|event| event.t_ms) == Some(at_ms);
    if killed && tied && tally.worst_kills() > 0 {
        let under_other_rule = self::tally(&replay(later, run, seen.symbols));
        tally.ties = u64::from(under_other_rule.worst_kills() == 0);
    }
    cell.true_kills += u64::from(killed && replayed.judgement == Judgement::TrueKill);
    let wrongly = wrongly_killed(&replayed);
    cell.against_base.runs += 1;
    cell.against_base.only_first += u64::from(seen.base_kills && !wrongly);
    cell.against_base.only_second += u64::from(wrongly && !seen.base_kills);
    let work_ms = if tally.worst_kills() > 0 {
        let until_ms = if killed { at_ms } else { run.end_ms };
        u128::from(ledger(run, until_ms).active_ms())
    } else {
        0
    };
    let by_day = Tally { runs: 0, ..tally };
    for part in parts(cell, seen.certifies) {
        part.tally.add(&tally);
        for &group in seen.groups {
            part.strata[group].add(&tally);
        }
        if tally.false_kills > 0 {
            part.work_lost_ms += work_ms;
        } else {
            part.doubtful_work_ms += work_ms;
        }
        if by_day != Tally::default() {
            part.days.entry(day(run)).or_default().add(&by_day);
        }
    }
}

/// The parts of a cell that a run counts in.
fn parts(cell: &mut CellCounts, certifies: bool) -> impl Iterator<Item = &mut Part> {
    std::iter::once(&mut cell.all).chain(certifies.then_some(&mut cell.certify))
}

fn count_hung(cell: &mut CellCounts, policy: &Policy, seen: &Seen<'_>, fired_ms: Option<u64>) {
    let onset_ms = hang_onset_ms(seen.run);
    let lost_ms = match fired_ms {
        Some(at_ms) if at_ms < onset_ms => {
            cell.hung_killed_early += 1;
            0
        }
        Some(at_ms) => {
            cell.detection_ms.push(at_ms - onset_ms);
            at_ms + settling_lag(policy).as_u64() - onset_ms
        }
        None => {
            cell.hung_missed += 1;
            seen.run.end_ms.saturating_sub(onset_ms)
        }
    };
    for part in parts(cell, seen.certifies) {
        part.hung += 1;
        part.slot_lost_ms += u128::from(lost_ms);
    }
}
