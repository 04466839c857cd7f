//! Runs as a sweep reads them: what can cross a limit under some structures, so that later sweeps of the same
//! structures need no events.
//!
//! A summary answers any windows, budgets, caps and limits of its structures with the very cells that the events give.
//! It does not answer what needs a replay: adaptive windows, spare windows, limits of 0; there it says so. Under polled
//! detection every event's time is kept, as a look may fall on any.

use policysim_policy::{ClockClass, Policy, document};
use rayon::prelude::*;
use thiserror::Error;

use crate::ledger::ActiveTime;
use crate::life::Life;
use crate::partial::SweepPartial;
use crate::pass::{Once, Scratch};
use crate::plan::Plan;
use crate::run::{Measured, Resolution, Run, RunStatus};
use crate::scan::{Batch, Scan};
use crate::staircase::{Crossings, Structure};
use crate::stats::choice::Half;
use crate::stretches::Stretches;
use crate::sweep::{Question, Swept, half_of};
use crate::tally::CellCounts;

mod bytes;

pub use bytes::DamagedSummary;

/// Runs under some structures.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    structures: Vec<Known>,
    /// By name, so that the order of merging leaves no trace.
    runs: Vec<Summarised>,
}

/// A structure, by what it was asked to read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Known {
    /// Its shape as a policy document.
    pub(crate) shape: String,
    /// The clocks that are read beside the idle clock.
    pub(crate) clocks: Vec<ClockClass>,
    pub(crate) caps: bool,
    /// Named tools, where calls have limits.
    pub(crate) tools: Vec<String>,
    pub(crate) floor_ms: u64,
    pub(crate) slack_ms: u64,
}

/// One run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Summarised {
    pub(crate) head: Run,
    pub(crate) life: Life,
    /// From when, and whether, time is active; the first from the start.
    pub(crate) active: Vec<(u64, bool)>,
    /// Instants of events that may fall on a firing.
    pub(crate) times: Vec<u64>,
    /// By structure.
    pub(crate) found: Vec<Crossings>,
}

/// Why a summary does not answer a question.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NeedsEvents {
    /// A candidate, or the base, has a structure, a clock or a shorter window that was not read.
    #[error("the summary does not hold what {0} is answered from: sweep the events")]
    NotRead(String),
    /// A candidate is answered by replays.
    #[error("{0} is answered by replays, and a summary holds no events: sweep the events")]
    Replayed(String),
}

/// Summaries of different structures.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the summaries are of different structures, expected parts of one sweep")]
pub struct OtherStructures;

/// Reads every sized run of `source` under the structures of `question`.
///
/// # Errors
/// When a batch cannot be read.
pub fn summarise<S: Scan>(source: &S, question: &Question<'_>) -> Result<Summary, S::Error> {
    let plan = Plan::new(question.base, question.candidates);
    let structures = plan
        .structures
        .iter()
        .map(|lines| Known::of(&lines.structure));
    let structures: Vec<Known> = structures.collect();
    let runs = (0..source.batches())
        .into_par_iter()
        .try_fold(Vec::new, |mut runs, index| {
            let (mut batch, mut scratch) = (Batch::default(), Scratch::default());
            // the readings of gaps are for percentiles, which a summary does not answer
            let mut stretches = vec![Stretches::default(); plan.structures.len()];
            let batch = source.read(index, &mut batch)?;
            for run in batch.runs().filter(|run| run.head.status == RunStatus::Run) {
                let life = plan.read(&run, source.symbols(), &mut scratch, &mut stretches);
                runs.push(Summarised {
                    head: Run {
                        measured: Measured::default(),
                        resolution: Resolution::default(),
                        ..run.head.clone()
                    },
                    life,
                    active: scratch.active.changes().collect(),
                    times: times(&structures, &scratch.found, &life, run.t_ms()),
                    found: scratch.found.clone(),
                });
            }
            Ok(runs)
        })
        .try_reduce(Vec::new, |mut left, right| {
            left.extend(right);
            Ok(left)
        })?;
    let mut summary = Summary { structures, runs };
    summary.sort();
    Ok(summary)
}

/// The instants of events that matter if they fall on a firing: ends of stretches, stops and signs of life, as between
/// them the next millisecond fires alike; all of them where the driver looks from time to time, and where a run may be
/// cleaned up in between.
fn times(structures: &[Known], found: &[Crossings], life: &Life, times: &[u64]) -> Vec<u64> {
    let any = |known: &Known| known.slack_ms > 0 || known.clocks.contains(&ClockClass::ResultGrace);
    if structures.iter().any(any) {
        return times.to_vec();
    }
    let marks = [life.alive, life.completed];
    let mut kept: Vec<u64> = marks.into_iter().flatten().map(|mark| mark.t_ms).collect();
    for found in found {
        kept.extend(found.ends().filter(|end| times.binary_search(end).is_ok()));
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

impl Known {
    fn of(structure: &Structure) -> Self {
        let (clocks, caps, tools) = structure.reads();
        Self {
            shape: document::print(structure.shape(), None),
            clocks,
            caps,
            tools,
            floor_ms: structure.floor().as_u64(),
            slack_ms: structure.slack().as_u64(),
        }
    }

    /// Whether what was read answers what `asked` reads.
    fn covers(&self, asked: &Self) -> bool {
        self.shape == asked.shape
            && asked.clocks.iter().all(|clock| self.clocks.contains(clock))
            && (self.caps || !asked.caps)
            && asked.tools.iter().all(|tool| self.tools.contains(tool))
            && self.floor_ms <= asked.floor_ms
            && self.slack_ms >= asked.slack_ms
    }
}

impl Summary {
    /// How many runs it holds.
    pub const fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Takes in a summary of other runs under the same structures.
    ///
    /// # Errors
    /// When the structures differ.
    pub fn merge(mut self, other: Self) -> Result<Self, OtherStructures> {
        if self.structures != other.structures {
            return Err(OtherStructures);
        }
        self.runs.extend(other.runs);
        self.sort();
        Ok(self)
    }

    /// The answer to `question` for every run by itself, by name: the run without its events, its active time in ms, and
    /// its cell under the first candidate.
    ///
    /// # Errors
    /// As [`Summary::sweep`].
    pub fn each(
        &self,
        question: &Question<'_>,
    ) -> Result<Vec<(&Run, u64, CellCounts)>, NeedsEvents> {
        self.runs
            .par_iter()
            .map(|run| {
                let alone = Self {
                    structures: self.structures.clone(),
                    runs: vec![run.clone()],
                };
                let cell = alone.sweep(question)?.cells(false).into_iter().next();
                let mut active = ActiveTime::default();
                active.restore(&run.active);
                let active_ms = active.until(run.head.end_ms);
                Ok((&run.head, active_ms, cell.unwrap_or_default()))
            })
            .collect()
    }

    fn sort(&mut self) {
        self.runs.sort_by(|a, b| a.head.name.cmp(&b.head.name));
    }

    /// The answer to `question` over these runs: the same cells as from their events.
    ///
    /// # Errors
    /// When something asked for was not read, or is answered by replays.
    pub fn sweep(&self, question: &Question<'_>) -> Result<Swept, NeedsEvents> {
        let mut plan = Plan::new(question.base, question.candidates);
        let label = |candidate: usize| question.candidates[candidate].label();
        if let Some(direct) = plan.direct.first() {
            return Err(NeedsEvents::Replayed(label(direct.candidate)));
        }
        let spared = |policy: &Policy| policy.idle.grace_cycles > 0;
        if plan.base_lines.is_none() || spared(question.base) {
            return Err(NeedsEvents::Replayed("the base policy".to_owned()));
        }
        if let Some(candidate) = question
            .candidates
            .iter()
            .position(|one| spared(&one.policy))
        {
            return Err(NeedsEvents::Replayed(label(candidate)));
        }
        let mut places = Vec::with_capacity(plan.structures.len());
        for lines in &mut plan.structures {
            let asked = Known::of(&lines.structure);
            let known = self
                .structures
                .iter()
                .position(|known| known.covers(&asked));
            let Some(known) = known else {
                let first = lines.lines.first().and_then(|line| line.asked.first());
                return Err(NeedsEvents::NotRead(first.map_or_else(
                    || "the base policy".to_owned(),
                    |asked| label(asked.1),
                )));
            };
            lines.structure.tell_apart(&self.structures[known].tools);
            places.push(known);
        }
        let partial = self.runs.par_chunks(256).map(|runs| {
            let mut partial = SweepPartial::new(&plan, question.keys, question.cluster);
            let mut scratch = Scratch::default();
            for run in runs {
                scratch.active.restore(&run.active);
                scratch.found = places
                    .iter()
                    .map(|&place| run.found[place].clone())
                    .collect();
                let once = Once {
                    role: &run.head.role,
                    times: &run.times,
                    events: None,
                    whole: None,
                    replays: 0,
                    is_stuck: false,
                };
                let part = usize::from(half_of(&run.head, question.seed) == Half::Certify);
                if !plan.tally(&run.head, &run.life, once, part, &mut partial, &mut scratch) {
                    return Err(NeedsEvents::Replayed(run.head.name.to_string()));
                }
            }
            Ok(partial)
        });
        let partial = partial.try_reduce(
            || SweepPartial::new(&plan, question.keys, question.cluster),
            |left, right| Ok(left.merge(right)),
        )?;
        Ok(Swept::new(plan, partial))
    }
}
