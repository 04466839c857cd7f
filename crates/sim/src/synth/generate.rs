//! Runs from a model.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::ModelError;
use super::model::{Model, Population};
use super::pace::Pace;
use super::plan::{Fate, Plan, Shape};
use super::sessions::{Place, Sessions};
use super::spread::{BLOCK, Counted, Draws, Laws, Spread, Stage, Sums};
use super::suspend::suspended;
use super::writer::{Setting, Writer, Written};
use crate::run::{Fleet, RecordedEnd, Run, RunStatus, Symbol, Symbols};

/// How values are drawn from their laws.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sampling {
    /// Each by itself: adding runs never changes earlier ones.
    Independent,
    /// One in each of as many equal strata of probability as the fleet has draws of a law, in an order
    /// shuffled by the seed: the fleet's quantiles are the model's up to one stratum, whether a law is
    /// drawn often or seldom. Adding runs changes waits and numbers of turns of earlier runs, but neither
    /// their role nor their model. Laws that hold for some roles or models have strata of their own.
    Stratified,
}

/// What to generate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Seed of every draw.
    pub seed: u64,
    /// Number of runs.
    pub runs: u64,
    /// How values are drawn from their laws.
    pub sampling: Sampling,
}

/// Makes the runs of a model, each by its number and in any order.
#[derive(Clone, Debug)]
pub struct Generator<'m> {
    model: &'m Model,
    cast: Vec<Prepared<'m>>,
    sessions: Sessions<'m>,
    options: Options,
    spread: Option<Spread>,
    symbols: Symbols,
    harness: Arc<str>,
}

/// One population with its names.
#[derive(Clone, Debug)]
struct Prepared<'m> {
    population: &'m Population,
    tool_names: Vec<Symbol>,
    source: Arc<str>,
    roles: Vec<Arc<str>>,
    models: Vec<Arc<str>>,
}

impl<'m> Generator<'m> {
    /// Prepares the runs of `population` of `model`; without a name, of its only one, or of all where the model mixes
    /// them. Stratified sampling counts the draws of all runs here, and keeps 8 bytes for each law and 64 runs.
    ///
    /// # Errors
    /// As [`Model::population`].
    pub fn new(
        model: &'m Model,
        population: Option<&str>,
        options: Options,
    ) -> Result<Self, ModelError> {
        let chosen: Vec<(&str, &Population)> = if population.is_none() && model.is_mixed() {
            model.populations().collect()
        } else {
            vec![model.population(population)?]
        };
        if chosen
            .iter()
            .all(|(_, population)| population.weight() == 0)
        {
            return Err(ModelError::NothingToPick("population".to_owned()));
        }
        let mut symbols = Symbols::default();
        let cast: Vec<Prepared<'_>> = chosen
            .into_iter()
            .map(|(name, population)| Prepared::new(model, name, population, &mut symbols))
            .collect();
        let populations = cast.iter().map(|prepared| prepared.population).collect();
        let mut generator = Self {
            model,
            sessions: Sessions::new(model, populations, options.sampling == Sampling::Stratified),
            cast,
            options,
            spread: None,
            symbols,
            harness: "synthetic".into(),
        };
        if options.sampling == Sampling::Stratified {
            generator.spread = Some(generator.spread());
        }
        Ok(generator)
    }

    /// Counts every draw of the fleet.
    fn spread(&self) -> Spread {
        let runs = self.options.runs;
        let laws = self.cast.iter().map(|one| Laws::new(one.population));
        let mut spread = Spread::new(self.options.seed, runs, laws.collect());
        for stage in [Stage::Shapes, Stage::Plans, Stage::Gaps] {
            spread.add(runs, |spread, before, run| {
                self.counted(spread, before, run, stage)
            });
        }
        spread
    }

    /// The draws of a run up to a stage, given those before it.
    fn counted(&self, spread: &Spread, before: &Sums, run: u64, stage: Stage) -> Counted {
        let seed = self.options.seed;
        let (place, shape) = self.shape(run);
        let population = self.cast[place.population].population;
        let of = (shape.role, shape.model);
        let mut counted = Counted::new(spread, place.population, of);
        counted.add_shape(population, &shape);
        if stage >= Stage::Plans {
            let spread = Some((spread, before));
            let (_, plan, mut draws) = self.plan(run, place, shape, spread);
            counted.add_plan(population, &plan, seed, run);
            if stage == Stage::Gaps {
                counted.add_gaps(population, &plan, &mut draws, seed, run);
            }
        }
        counted
    }

    /// Where a run belongs, and its shape.
    fn shape(&self, run: u64) -> (Place, Shape) {
        let seed = self.options.seed;
        let place = self.sessions.place(seed, run);
        let population = self.cast[place.population].population;
        (place, Shape::new(population, seed, run, place.session))
    }

    /// The pace of a run, its plan, and the draws that are left to it.
    fn plan<'g>(
        &self,
        run: u64,
        place: Place,
        shape: Shape,
        spread: Option<(&'g Spread, &'g Sums)>,
    ) -> (Pace, Plan, Draws<'g>) {
        let seed = self.options.seed;
        let population = self.cast[place.population].population;
        let pace = Pace::new(population.likeness(), seed, place.session, run);
        let mut draws = Draws::new(spread, place.population, (shape.role, shape.model));
        let plan = Plan::new(population, &pace, shape, seed, run, &mut draws);
        (pace, plan, draws)
    }

    /// The names that the events of every run refer to.
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The populations that the runs come from.
    pub fn populations(&self) -> impl Iterator<Item = &'m Population> + '_ {
        self.cast.iter().map(|prepared| prepared.population)
    }

    /// Run number `run`, counted from 0; none from the number of runs up.
    pub fn run(&self, run: u64) -> Option<Run> {
        (run < self.options.runs).then(|| self.make(run))
    }

    /// Run number `run`, whatever the number of runs: without strata nothing depends on that.
    ///
    /// # Panics
    /// When draws are stratified and `run` is none of the runs.
    pub fn make(&self, run: u64) -> Run {
        assert!(
            self.spread.is_none() || run < self.options.runs,
            "run {run} of {} stratified ones",
            self.options.runs
        );
        self.made(run..run + 1).swap_remove(0)
    }

    /// The runs of that range, in order; those from the number of runs up are left out. Uses the
    /// threads of the current rayon pool, whose number changes nothing.
    pub fn runs(&self, range: Range<u64>) -> Vec<Run> {
        let end = range.end.min(self.options.runs);
        if range.start >= end {
            return Vec::new();
        }
        (range.start / BLOCK..end.div_ceil(BLOCK))
            .into_par_iter()
            .flat_map_iter(|block| {
                let first = range.start.max(block * BLOCK);
                self.made(first..end.min((block + 1) * BLOCK))
            })
            .collect()
    }

    /// All runs, in order, with their names.
    pub fn fleet(&self) -> Fleet {
        Fleet {
            runs: self.runs(0..self.options.runs),
            symbols: self.symbols.clone(),
        }
    }

    /// The runs of a range within one block.
    fn made(&self, range: Range<u64>) -> Vec<Run> {
        let Some(spread) = &self.spread else {
            return range.map(|run| self.written(run, None)).collect();
        };
        let (before, first) = spread.block_of(range.start);
        let mut before = before.clone();
        let mut made = Vec::new();
        for run in first..range.end {
            if run >= range.start {
                made.push(self.written(run, Some((spread, &before))));
            }
            if run + 1 < range.end {
                let counted = self.counted(spread, &before, run, Stage::Gaps);
                spread.count(&mut before, &counted);
            }
        }
        made
    }

    fn written(&self, number: u64, spread: Option<(&Spread, &Sums)>) -> Run {
        let seed = self.options.seed;
        let (place, shape) = self.shape(number);
        let (pace, plan, mut draws) = self.plan(number, place, shape, spread);
        let prepared = &self.cast[place.population];
        let population = prepared.population;
        let calendar = self.model.calendar();
        let since_epoch_ms = number.saturating_mul(calendar.start_every_ms);
        let started_at_ms = calendar.epoch_ms.saturating_add_unsigned(since_epoch_ms);
        let setting = Setting {
            population,
            tool_names: &prepared.tool_names,
            pace,
            seed,
            number,
            started_at_ms,
        };
        let written = Writer::new(&setting, &plan, &mut draws).write(&plan);
        let Written {
            events,
            measured,
            end_ms,
        } = suspended(written, population.suspends(), seed, number, &mut draws);
        Run {
            name: format!("{}#{}", prepared.source, number + 1).into(),
            source: Arc::clone(&prepared.source),
            session: format!("session-{}", place.session + 1).into(),
            parent: Arc::default(),
            harness: Arc::clone(&self.harness),
            model: Arc::clone(&prepared.models[plan.model]),
            role: Arc::clone(&prepared.roles[plan.role]),
            started_at_ms,
            resolution: population.resolution().into(),
            status: RunStatus::Run,
            end: recorded_end(plan.fate),
            end_ms,
            measured,
            events,
        }
    }
}

impl<'m> Prepared<'m> {
    fn new(model: &Model, name: &str, population: &'m Population, symbols: &mut Symbols) -> Self {
        let tools = population.tools().map_or(&[][..], |tools| &tools.list);
        let roles = &population.roles().list;
        let models = &population.models().list;
        Self {
            population,
            tool_names: tools
                .iter()
                .map(|tool| symbols.intern(&tool.name))
                .collect(),
            source: format!("{}/{name}", model.name()).into(),
            roles: roles.iter().map(|role| role.name.as_str().into()).collect(),
            models: models
                .iter()
                .map(|model| model.name.as_str().into())
                .collect(),
        }
    }
}

const fn recorded_end(fate: Fate) -> RecordedEnd {
    match fate {
        Fate::Completed => RecordedEnd::Completed,
        Fate::Failed | Fate::Looped => RecordedEnd::Failed,
        Fate::HungBeforeOutput | Fate::HungMidStream | Fate::HungInTool => RecordedEnd::Hung,
        Fate::Aborted => RecordedEnd::Aborted,
        Fate::OpenInModel => RecordedEnd::OpenInModel,
        Fate::OpenInTool => RecordedEnd::OpenInTool,
    }
}
