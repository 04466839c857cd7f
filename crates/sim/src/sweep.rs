//! Candidates times runs: what each candidate policy does to every recorded run, as exact counts.
//!
//! Everything here is an integer, so merging any split of the runs in run order gives the same cell.

use std::sync::Arc;

use policysim_policy::{ByName, First, Millis, Policy, PolicyError, document::Value};
use rayon::prelude::*;

use crate::certify::Evidence;
use crate::cluster::{Cluster, session_key};
use crate::gaps::counted::Counted;
use crate::grid;
use crate::partial::SweepPartial;
use crate::pass::Scratch;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::readings::{self, Detector, Recorded};
use crate::run::{Fleet, Run, RunStatus};
use crate::scan::{Batch, InMemory, RunView, Scan};
use crate::stats::Counts;
use crate::stats::choice::{Half, half};
use crate::strata::{Strata, StratumKey};
use crate::stretches::Stretches;
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
    sized_runs(fleet).map(|run| half_of(run, seed)).collect()
}

/// The half of one run.
pub fn half_of(run: &Run, seed: u64) -> Half {
    half(session_key(run).as_bytes(), seed)
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
    /// What is taken as independent.
    pub cluster: Cluster,
}

/// Every sized run under every candidate.
///
/// Returns a cell per candidate, in the same order, whatever the number of threads. `progress` is told
/// each number of finished runs as it grows.
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
    // halves are given by the number of the run among all that are sized
    let mut firsts = Vec::with_capacity(source.batches());
    let mut first = 0;
    for batch in source.all() {
        firsts.push(first);
        first += batch.runs().filter(is_sized).count();
    }
    let certifies = |batch: usize, run: usize, _: &Run| {
        grouping.halves.get(firsts[batch] + run) != Some(&Half::Select)
    };
    let plan = Plan::new(grouping.base, candidates);
    let Ok(partial) = scan_runs(
        &source,
        &plan,
        (&keys, grouping.cluster),
        &certifies,
        progress,
    );
    partial.cells(&plan, !grouping.halves.is_empty())
}

/// What a sweep over runs that need not lie in memory asks.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The policy that candidates are paired with.
    pub base: &'a Policy,
    /// The candidates.
    pub candidates: &'a [Candidate],
    /// What runs are grouped by.
    pub keys: &'a [StratumKey],
    /// The seed by which sessions are halved.
    pub seed: u64,
    /// What is taken as independent.
    pub cluster: Cluster,
}

/// The answer to a [`Question`], or to it over a part of the runs.
#[derive(Clone, Debug)]
pub struct Swept {
    plan: Arc<Plan>,
    partial: SweepPartial,
}

impl Swept {
    pub(crate) fn new(plan: Plan, partial: SweepPartial) -> Self {
        Self {
            plan: Arc::new(plan),
            partial,
        }
    }
    /// Takes in the answer to the same question over other runs.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            plan: self.plan,
            partial: self.partial.merge(other.partial),
        }
    }

    /// A cell per candidate, in their order. With `split`, verdicts are given on the certifying half alone.
    pub fn cells(&self, split: bool) -> Vec<CellCounts> {
        self.partial.cells(&self.plan, split)
    }

    /// The counts.
    pub const fn partial(&self) -> &SweepPartial {
        &self.partial
    }

    /// What keeps the choice among the candidates from being luck; its halves are not listed by run.
    pub fn evidence(&self, max_rate: Option<f64>) -> Evidence {
        let [units, certify_units] = self.partial.units();
        Evidence::of_units(units, certify_units, self.plan.candidates, max_rate)
    }

    /// Each of `candidates`, those of the question, as a failure detector; `None` for a window that is off.
    pub fn detectors(&self, candidates: &[Candidate]) -> Vec<Option<Detector>> {
        let stretches = |structure: usize| &self.partial.stretches[structure];
        readings::detectors_of(candidates, stretches, &self.plan.gaps)
    }

    /// What was in force when the runs were recorded, on the idle clock of the base; `given` is what the user says.
    pub fn recorded(&self, given: Option<Millis>) -> Recorded {
        readings::recorded_of(&self.partial.stretches[self.plan.base_gaps], given)
    }

    /// The readings of the idle clock of the base: what [`findings::of_counted`](crate::gaps::findings::of_counted) looks at.
    pub fn counted(&self) -> Counted {
        let stretches = &self.partial.stretches[self.plan.base_gaps];
        self.partial.readings.counted(stretches)
    }

    /// Gaps of candidate `index` by length, of runs not labelled as hung.
    pub(crate) fn gaps_of(&self, index: usize) -> Counts {
        self.partial.stretches[self.plan.gaps[index]].healthy()
    }

    /// Whether lengths of gaps and detection times were counted exactly; otherwise in buckets of 0.1 %.
    pub fn is_exact(&self) -> bool {
        self.partial.stretches.iter().all(Stretches::is_exact)
            && self.partial.boards.iter().all(|board| !board.is_coarse())
            && !self.partial.direct.is_coarse()
    }

    /// How many candidates are replayed run by run because their numbers decide what is read.
    pub fn direct(&self) -> usize {
        self.plan.direct.len()
    }
}

/// Every sized run of `source` under every candidate, in one scan; memory follows the cells and the batches, not the
/// runs. The answer is the same for any number of threads.
///
/// # Errors
/// When a batch cannot be read.
pub fn sweep_scan<S: Scan>(
    source: &S,
    question: &Question<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Swept, S::Error> {
    let plan = Plan::new(question.base, question.candidates);
    let certifies = |_: usize, _: usize, run: &Run| half_of(run, question.seed) == Half::Certify;
    let partial = scan_runs(
        source,
        &plan,
        (question.keys, question.cluster),
        &certifies,
        progress,
    )?;
    Ok(Swept::new(plan, partial))
}

/// Which half a sized run is in, by its batch, its number among the sized runs of the batch, and itself.
type Certifies<'a> = &'a (dyn Fn(usize, usize, &Run) -> bool + Sync);

fn is_sized(run: &RunView<'_>) -> bool {
    run.head.status == RunStatus::Run
}

/// Counts every sized run of `source`, batches in parallel.
fn scan_runs<S: Scan>(
    source: &S,
    plan: &Plan,
    (keys, cluster): (&[StratumKey], Cluster),
    certifies: Certifies<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SweepPartial, S::Error> {
    struct Worker {
        partial: SweepPartial,
        scratch: Scratch,
        batch: Batch,
    }
    let pool = Pool::new(|| Worker {
        partial: SweepPartial::new(plan, keys, cluster),
        scratch: Scratch::default(),
        batch: Batch::default(),
    });
    (0..source.batches())
        .into_par_iter()
        .try_for_each(|index| {
            pool.with(|worker| {
                let batch = source.read(index, &mut worker.batch)?;
                let mut runs = 0;
                for (number, run) in batch.runs().filter(is_sized).enumerate() {
                    let part = usize::from(certifies(index, number, run.head));
                    let (partial, scratch) = (&mut worker.partial, &mut worker.scratch);
                    plan.count(&run, source.symbols(), part, partial, scratch);
                    runs += 1;
                }
                progress(runs);
                Ok(())
            })
        })?;
    let partials = pool.into_all().map(|worker| worker.partial);
    let merged = partials.reduce(SweepPartial::merge);
    Ok(merged.unwrap_or_else(|| SweepPartial::new(plan, keys, cluster)))
}
