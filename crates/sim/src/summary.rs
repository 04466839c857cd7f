//! Runs as a sweep reads them: what can cross a limit under some structures, so that later sweeps of the same
//! structures need no events.
//!
//! A summary answers any windows, budgets, caps and limits of its structures with the very cells that the events give.
//! It does not answer what needs a replay: adaptive windows, spare windows, limits of 0; there it says so. Under polled
//! detection every event's time is kept, as a look may fall on any.

use policysim_policy::{ClockClass, Policy, document};
use rayon::prelude::*;
use thiserror::Error;

use crate::gaps::counted::Readings;
use crate::ledger::ActiveTime;
use crate::life::Life;
use crate::partial::SweepPartial;
use crate::pass::{Once, Scratch};
use crate::plan::Plan;
use crate::pool::Pool;
use crate::run::{Measured, Resolution, Run, RunStatus};
use crate::scan::{Batch, Scan};
use crate::staircase::{Crossings, Structure};
use crate::stats::choice::Half;
use crate::stretches::Stretches;
use crate::sweep::{Candidate, Question, Swept, half_of};
use crate::tally::CellCounts;

mod bytes;

pub use bytes::DamagedSummary;

/// Runs under some structures.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    structures: Vec<Known>,
    /// The gaps of all runs, by structure.
    stretches: Vec<Stretches>,
    /// What is counted beside under the structure of the base, and which that is.
    readings: Readings,
    base: usize,
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
    /// How often the idle clock was read under the structure of the base.
    pub(crate) readings: u64,
}

/// Why a summary does not answer a question.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NeedsEvents {
    /// A candidate, or the base, has a structure, a clock or a shorter window that was not read.
    #[error(
        "it does not hold what {} is answered from (other things re-arm or pause, a limit that it was not made with, or a shorter window): name as the base the policy that it was made under, or ask the events",
        if .0.is_empty() { "the policy" } else { .0.as_str() }
    )]
    NotRead(String),
    /// A candidate is answered by replays.
    #[error("{0} is answered by replays, and it holds no events: ask the events")]
    Replayed(String),
}

/// Summaries of different structures.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the summaries are of different structures, expected parts of one sweep")]
pub struct OtherStructures;

/// What one thread reads.
struct Part {
    runs: Vec<Summarised>,
    stretches: Vec<Stretches>,
    readings: Readings,
    scratch: Scratch,
    batch: Batch,
}

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
    let pool = Pool::new(|| Part {
        runs: Vec::new(),
        stretches: vec![Stretches::default(); plan.structures.len()],
        readings: Readings::default(),
        scratch: Scratch::default(),
        batch: Batch::default(),
    });
    (0..source.batches())
        .into_par_iter()
        .try_for_each(|index| {
            pool.with(|part| {
                let batch = source.read(index, &mut part.batch)?;
                for run in batch.runs().filter(|run| run.head.status == RunStatus::Run) {
                    let (scratch, symbols) = (&mut part.scratch, source.symbols());
                    let life = plan.read(&run, symbols, scratch, &mut part.stretches, |of_run| {
                        let suspends = run.suspected_suspends();
                        part.readings.add(run.head, of_run, suspends)
                    });
                    part.runs.push(Summarised {
                        head: Run {
                            measured: Measured::default(),
                            resolution: Resolution::default(),
                            ..run.head.clone()
                        },
                        active: scratch.active.changes().collect(),
                        times: times(&structures, &scratch.found, &life.0, run.t_ms()),
                        found: scratch.found.clone(),
                        life: life.0,
                        readings: life.1,
                    });
                }
                Ok(())
            })
        })?;
    let empty = Summary {
        stretches: vec![Stretches::default(); structures.len()],
        readings: Readings::default(),
        base: plan.base_gaps,
        runs: Vec::new(),
        structures,
    };
    let mut summary = pool.into_all().fold(empty, |mut all, part| {
        all.take(&part.stretches, part.readings, part.runs);
        all
    });
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
        if self.structures != other.structures || self.base != other.base {
            return Err(OtherStructures);
        }
        self.take(&other.stretches, other.readings, other.runs);
        self.sort();
        Ok(self)
    }

    fn take(&mut self, stretches: &[Stretches], readings: Readings, runs: Vec<Summarised>) {
        for (mine, theirs) in self.stretches.iter_mut().zip(stretches) {
            mine.merge(theirs);
        }
        self.readings.merge(readings);
        self.runs.extend(runs);
    }

    /// Its runs.
    pub(crate) fn each_run(&self) -> impl Iterator<Item = &Summarised> {
        self.runs.iter()
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
                    ..Self::default()
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
        let (plan, places) = self.plan(question.base, question.candidates)?;
        let partial = self.runs.par_chunks(256).map(|runs| {
            let mut partial = SweepPartial::new(&plan, question.keys, question.cluster);
            let mut scratch = Scratch::default();
            for run in runs {
                scratch.active.restore(&run.active);
                scratch.found = places
                    .iter()
                    .map(|&place| run.found[place].clone())
                    .collect();
                let once = Once::without_events(&run.head.role, &run.times);
                let part = usize::from(half_of(&run.head, question.seed) == Half::Certify);
                if !plan.tally(&run.head, &run.life, once, part, &mut partial, &mut scratch) {
                    return Err(NeedsEvents::Replayed(run.head.name.to_string()));
                }
            }
            Ok(partial)
        });
        let mut partial = partial.try_reduce(
            || SweepPartial::new(&plan, question.keys, question.cluster),
            |left, right| Ok(left.merge(right)),
        )?;
        for (stretches, &place) in partial.stretches.iter_mut().zip(&places) {
            if let Some(known) = self.stretches.get(place) {
                stretches.clone_from(known);
            }
        }
        // of another structure than that of the base nothing was read for findings
        if places.get(plan.base_gaps) == Some(&self.base) {
            partial.readings = self.readings.clone();
        }
        Ok(Swept::new(plan, partial))
    }

    /// Whether what is found in the readings of the idle clock under `base` is in it.
    pub fn has_readings_of(&self, base: &Policy) -> bool {
        let known = self.plan(base, &[]);
        known.is_ok_and(|(plan, places)| places.get(plan.base_gaps) == Some(&self.base))
    }

    /// What answers for a base and candidates, and which of the summary's structures each of the plan's is.
    pub(crate) fn plan(
        &self,
        base: &Policy,
        candidates: &[Candidate],
    ) -> Result<(Plan, Vec<usize>), NeedsEvents> {
        let mut plan = Plan::new(base, candidates);
        let label = |candidate: usize| candidates[candidate].label();
        if let Some(direct) = plan.direct.first() {
            return Err(NeedsEvents::Replayed(label(direct.candidate)));
        }
        let spared = |policy: &Policy| policy.idle.grace_cycles > 0;
        if plan.base_lines.is_none() || spared(base) {
            return Err(NeedsEvents::Replayed("the base policy".to_owned()));
        }
        if let Some(candidate) = candidates.iter().position(|one| spared(&one.policy)) {
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
        Ok((plan, places))
    }
}
