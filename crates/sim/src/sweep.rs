//! Candidates times runs: what each candidate policy does to every recorded run, as exact counts.
//!
//! Everything here is an integer, so merging any split of the runs in run order gives the same cell.

use policysim_policy::{ByName, First, Millis, Policy, PolicyError, document::Value};
use rayon::prelude::*;

use crate::grid;
use crate::partial::SweepPartial;
use crate::pass::Scratch;
use crate::plan::Plan;
use crate::run::{Fleet, Run, RunStatus};
use crate::scan::{Batch, InMemory, Scan};
use crate::stats::choice::{Half, half};
use crate::strata::{Strata, StratumKey};
use crate::tally::CellCounts;

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

/// Every sized run under every candidate.
///
/// Returns a cell per candidate, in the same order, whatever the number of threads. `progress` is told
/// each number of finished runs as it grows.
///
/// # Panics
/// Never: runs in memory can always be read.
pub fn sweep(
    fleet: &Fleet,
    candidates: &[Candidate],
    grouping: Grouping<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<CellCounts> {
    let mut keys: Vec<StratumKey> = grouping
        .strata
        .groups()
        .iter()
        .map(|(key, _)| *key)
        .collect();
    keys.dedup();
    let source = InMemory::new(fleet);
    let mut firsts = Vec::with_capacity(source.batches());
    let mut first = 0;
    for batch in source.all() {
        firsts.push(first);
        first += batch
            .runs()
            .filter(|run| run.head.status == RunStatus::Run)
            .count();
    }
    let plan = Plan::new(grouping.base, candidates);
    let certifies = |batch: usize, run: usize, _: &Run| {
        grouping.halves.get(firsts[batch] + run) != Some(&Half::Select)
    };
    let partial = scan_runs(&source, &plan, &keys, &certifies, progress);
    let partial = partial.unwrap_or_else(|never| match never {});
    partial.cells(&plan, !grouping.halves.is_empty())
}

/// Which half a sized run is in, by its batch, its number among the sized runs of the batch, and itself.
type Certifies<'a> = &'a (dyn Fn(usize, usize, &Run) -> bool + Sync);

/// Counts every sized run of `source`, batches in parallel.
fn scan_runs<S: Scan>(
    source: &S,
    plan: &Plan,
    keys: &[StratumKey],
    certifies: Certifies<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SweepPartial, S::Error> {
    struct Worker {
        partial: SweepPartial,
        scratch: Scratch,
        batch: Batch,
    }
    let worker = || Worker {
        partial: SweepPartial::new(plan, keys),
        scratch: Scratch::default(),
        batch: Batch::default(),
    };
    (0..source.batches())
        .into_par_iter()
        .try_fold(worker, |mut worker, index| {
            let batch = source.read(index, &mut worker.batch)?;
            let sized = batch.runs().filter(|run| run.head.status == RunStatus::Run);
            for (number, run) in sized.enumerate() {
                let part = usize::from(certifies(index, number, run.head));
                plan.count(
                    &run,
                    source.symbols(),
                    part,
                    &mut worker.partial,
                    &mut worker.scratch,
                );
                progress(1);
            }
            Ok(worker)
        })
        .map(|worker| worker.map(|worker| worker.partial))
        .try_reduce(
            || SweepPartial::new(plan, keys),
            |left, right| Ok(left.merge(right)),
        )
}
