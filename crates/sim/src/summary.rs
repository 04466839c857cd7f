//! Runs as a sweep reads them: what can cross a limit under some structures, so that later sweeps of the same
//! structures need no events.
//!
//! A summary answers any windows, budgets, caps and limits of its structures with the very cells that the events give.
//! What needs a replay (adaptive windows, spare windows, limits of 0) it answers for the very policies that it was made
//! with: every run is replayed under them, and how it ended is kept. Then, and under polled detection, every event's
//! time is kept, as a firing or a look may fall on any.

use policysim_policy::{ClockClass, Millis, Policy, document};
use rayon::prelude::*;
use thiserror::Error;

use crate::gaps::counted::Readings;
use crate::gaps::is_left_out;
use crate::life::Life;
use crate::partial::SweepPartial;
use crate::pass::{Once, Outcome, Scratch};
use crate::plan::Plan;
use crate::pool::Pool;
use crate::readings::{Recorded, recorded_of};
use crate::run::{Measured, Resolution, Run, RunStatus};
use crate::scan::{Batch, RunView, Scan};
use crate::staircase::{Crossings, Structure, shape};
use crate::stats::choice::Half;
use crate::stretches::Stretches;
use crate::sweep::{Candidate, Question, Swept, event_first, half_of};
use crate::tally::CellCounts;

mod bytes;
#[cfg(test)]
mod forged;
mod needs;

pub use bytes::DamagedSummary;
pub use needs::NeedsEvents;

/// Runs under some structures.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    structures: Vec<Known>,
    /// The gaps of all runs, by structure.
    stretches: Vec<Stretches>,
    /// What is counted beside under the structure of the base, and which that is.
    readings: Readings,
    base: usize,
    /// The policies under which every run was replayed, as documents.
    replayed: Vec<String>,
    waits: WaitCounts,
    /// By name, so that the order of merging leaves no trace.
    runs: Vec<Summarised>,
}

/// The waits of every row, runs or not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WaitCounts {
    /// All of them.
    pub n: u64,
    /// Of those, flagged so that sizing leaves them out.
    pub left_out: u64,
}

impl WaitCounts {
    fn of(run: &RunView<'_>) -> Self {
        let mut found = Self::default();
        for (row, _) in run.events.wait.within(run.first..run.end) {
            found.n += 1;
            found.left_out += u64::from(is_left_out(run.events.flags.of(row)));
        }
        found
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            n: self.n.saturating_add(other.n),
            left_out: self.left_out.saturating_add(other.left_out),
        }
    }
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
    /// How it ends under the policies that were replayed.
    pub(crate) replayed: Vec<Outcome>,
}

/// A question put in order, and where the summary holds what answers it.
pub(crate) struct Asked {
    pub(crate) plan: Plan,
    /// Which of the summary's structures each of the plan's is.
    pub(crate) places: Vec<usize>,
    /// The policies of the plan that were replayed, and which of the summary's each is.
    replayed: Vec<(Policy, usize)>,
}

impl Asked {
    /// What is still asked of a run of the summary.
    pub(crate) fn once<'r>(&'r self, run: &'r Summarised) -> Once<'r> {
        Once::without_events(&run.head.role, &run.times, (&self.replayed, &run.replayed))
    }

    /// What was found in a run, by structure of the plan.
    pub(crate) fn found(&self, run: &Summarised) -> Vec<Crossings> {
        let places = self.places.iter();
        places.map(|&place| run.found[place].clone()).collect()
    }

    /// Counts a run of the summary in `partial`.
    fn tally(
        &self,
        run: &Summarised,
        seed: u64,
        partial: &mut SweepPartial,
        scratch: &mut Scratch,
    ) -> Result<(), NeedsEvents> {
        scratch.active.restore(&run.active);
        scratch.found = self.found(run);
        let part = usize::from(half_of(&run.head, seed) == Half::Certify);
        let (plan, once) = (&self.plan, self.once(run));
        if plan.tally(&run.head, &run.life, once, part, partial, scratch) {
            Ok(())
        } else {
            Err(NeedsEvents::Replayed(run.head.name.to_string()))
        }
    }
}

/// Whether some run may have to be replayed under `policy`.
pub(crate) fn is_replayed(policy: &Policy) -> bool {
    shape(policy).is_none() || policy.idle.grace_cycles > 0
}

/// The policies that runs are replayed under to answer for `policy`, where there are any.
fn replays_of(policy: &Policy) -> Vec<Policy> {
    if is_replayed(policy) {
        vec![policy.clone(), event_first(policy)]
    } else {
        Vec::new()
    }
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
    waits: WaitCounts,
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
    let mut replayed: Vec<Policy> = Vec::new();
    let asked = question.candidates.iter().map(|one| &one.policy);
    for policy in std::iter::once(question.base)
        .chain(asked)
        .flat_map(replays_of)
    {
        if !replayed.contains(&policy) {
            replayed.push(policy);
        }
    }
    let pool = Pool::new(|| Part {
        runs: Vec::new(),
        stretches: vec![Stretches::default(); plan.structures.len()],
        readings: Readings::default(),
        waits: WaitCounts::default(),
        scratch: Scratch::default(),
        batch: Batch::default(),
    });
    (0..source.batches())
        .into_par_iter()
        .try_for_each(|index| {
            pool.with(|part| {
                let batch = source.read(index, &mut part.batch)?;
                for run in batch.runs() {
                    part.waits = part.waits.plus(WaitCounts::of(&run));
                    if run.head.status != RunStatus::Run {
                        continue;
                    }
                    let (scratch, symbols) = (&mut part.scratch, source.symbols());
                    let life = plan.read(&run, symbols, scratch, &mut part.stretches, |of_run| {
                        let suspends = run.suspected_suspends();
                        part.readings.add(run.head, of_run, suspends)
                    });
                    let mut once = Once::of(&run, symbols);
                    let ends = replayed
                        .iter()
                        .map(|policy| once.replay(policy, policy.idle.window));
                    let ends: Vec<Outcome> = ends.collect();
                    part.runs.push(Summarised {
                        head: Run {
                            measured: Measured::default(),
                            resolution: Resolution::default(),
                            ..run.head.clone()
                        },
                        active: scratch.active.changes().collect(),
                        times: if ends.is_empty() {
                            times(&structures, &scratch.found, &life.0, run.t_ms())
                        } else {
                            run.t_ms().to_vec()
                        },
                        found: scratch.found.clone(),
                        life: life.0,
                        readings: life.1,
                        replayed: ends,
                    });
                }
                Ok(())
            })
        })?;
    let empty = Summary {
        stretches: vec![Stretches::default(); structures.len()],
        readings: Readings::default(),
        base: plan.base_gaps,
        replayed: replayed.iter().map(written).collect(),
        waits: WaitCounts::default(),
        runs: Vec::new(),
        structures,
    };
    let mut summary = pool.into_all().fold(empty, |mut all, part| {
        all.take(&part.stretches, part.readings, part.waits, part.runs);
        all
    });
    summary.sort();
    Ok(summary)
}

/// A policy as the document that tells it from every other.
fn written(policy: &Policy) -> String {
    document::print(policy, None)
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

    /// The waits of the telemetry.
    pub const fn waits(&self) -> WaitCounts {
        self.waits
    }

    /// What the telemetry shows of the idle limit under which it was recorded; `given` is one that is known.
    ///
    /// # Errors
    /// When the silences that the idle clock reads under `base` are not in it.
    pub fn recorded(&self, base: &Policy, given: Option<Millis>) -> Result<Recorded, NeedsEvents> {
        let asked = self.plan(base, &[])?;
        let place = asked.places.get(asked.plan.base_gaps);
        let stretches = place.and_then(|&place| self.stretches.get(place));
        Ok(stretches.map_or_else(Recorded::default, |read| recorded_of(read, given)))
    }

    /// Takes in a summary of other runs under the same structures.
    ///
    /// # Errors
    /// When the structures differ.
    pub fn merge(mut self, other: Self) -> Result<Self, OtherStructures> {
        let alike = self.structures == other.structures && self.replayed == other.replayed;
        if !alike || self.base != other.base {
            return Err(OtherStructures);
        }
        self.take(&other.stretches, other.readings, other.waits, other.runs);
        self.sort();
        Ok(self)
    }

    fn take(
        &mut self,
        stretches: &[Stretches],
        readings: Readings,
        waits: WaitCounts,
        runs: Vec<Summarised>,
    ) {
        self.waits = self.waits.plus(waits);
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
        let asked = self.plan(question.base, question.candidates)?;
        self.runs
            .par_iter()
            .map(|run| {
                let mut partial = SweepPartial::new(&asked.plan, question.keys, question.cluster);
                let mut scratch = Scratch::default();
                asked.tally(run, question.seed, &mut partial, &mut scratch)?;
                let active_ms = scratch.active.until(run.head.end_ms);
                let alone = Swept::new(asked.plan.clone(), partial);
                let cell = alone.cells(false).into_iter().next();
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
        let asked = self.plan(question.base, question.candidates)?;
        let partial = self.runs.par_chunks(256).map(|runs| {
            let mut partial = SweepPartial::new(&asked.plan, question.keys, question.cluster);
            let mut scratch = Scratch::default();
            for run in runs {
                asked.tally(run, question.seed, &mut partial, &mut scratch)?;
            }
            Ok(partial)
        });
        let mut partial = partial.try_reduce(
            || SweepPartial::new(&asked.plan, question.keys, question.cluster),
            |left, right| Ok(left.merge(right)),
        )?;
        for (stretches, &place) in partial.stretches.iter_mut().zip(&asked.places) {
            if let Some(known) = self.stretches.get(place) {
                stretches.clone_from(known);
            }
        }
        // of another structure than that of the base nothing was read for findings
        if asked.places.get(asked.plan.base_gaps) == Some(&self.base) {
            partial.readings = self.readings.clone();
        }
        Ok(Swept::new(asked.plan, partial))
    }

    /// Whether what is found in the readings of the idle clock under `base` is in it.
    pub fn has_readings_of(&self, base: &Policy) -> bool {
        let known = self.plan(base, &[]);
        known.is_ok_and(|asked| asked.places.get(asked.plan.base_gaps) == Some(&self.base))
    }

    /// What answers for a base and candidates, and where the summary holds it.
    pub(crate) fn plan(
        &self,
        base: &Policy,
        candidates: &[Candidate],
    ) -> Result<Asked, NeedsEvents> {
        let mut plan = Plan::new(base, candidates);
        let mut replayed = Vec::new();
        let each = candidates.iter().map(|one| (&one.policy, one.label()));
        for (policy, label) in std::iter::once((base, String::new())).chain(each) {
            for policy in replays_of(policy) {
                let text = written(&policy);
                let place = self.replayed.iter().position(|known| *known == text);
                let place = place.ok_or_else(|| NeedsEvents::Replayed(named(&label)))?;
                replayed.push((policy, place));
            }
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
                let label = first.map(|asked| candidates[asked.1].label());
                let of = named(&label.unwrap_or_default());
                return Err(needs::not_read(of, &self.structures, &asked));
            };
            lines.structure.tell_apart(&self.structures[known].tools);
            places.push(known);
        }
        Ok(Asked {
            plan,
            places,
            replayed,
        })
    }
}

/// A candidate by its label; one without settings is the base, or stands alone.
fn named(label: &str) -> String {
    if label.is_empty() {
        "the policy".to_owned()
    } else {
        label.to_owned()
    }
}
