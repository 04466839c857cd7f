//! Runs from a model.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::ModelError;
use super::inversion::Inversion;
use super::model::{Model, Population};
use super::pace::Pace;
use super::plan::{Fate, Plan};
use super::sessions::{Place, Sessions};
use super::suspend::suspended;
use super::writer::{Setting, Writer, Written};
use crate::run::{Fleet, RecordedEnd, Run, RunStatus, Symbol, Symbols};

/// How pre-token waits are drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sampling {
    /// Each by itself: adding runs never changes earlier ones.
    Independent,
    /// One in each of as many equal strata of probability as the fleet has waits, in an order
    /// shuffled by the seed: the fleet's quantiles are the model's up to one stratum. Adding runs
    /// changes the lengths of earlier pre-token waits (and shifts what follows them in time);
    /// nothing else of earlier runs.
    Stratified,
}

/// What to generate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Seed of every draw.
    pub seed: u64,
    /// Number of runs.
    pub runs: u64,
    /// How pre-token waits are drawn.
    pub sampling: Sampling,
}

/// Makes the runs of a model, each by its number and in any order.
#[derive(Clone, Debug)]
pub struct Generator<'m> {
    model: &'m Model,
    cast: Vec<Prepared<'m>>,
    sessions: Sessions<'m>,
    options: Options,
    inversion: Option<Inversion>,
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
    /// them. Stratified sampling counts the waits of all runs here (8 bytes per run).
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
            inversion: None,
            symbols,
            harness: "synthetic".into(),
        };
        if options.sampling == Sampling::Stratified {
            let waits: Vec<u64> = (0..options.runs)
                .into_par_iter()
                .map(|run| generator.plan(run).2.pre_token_waits())
                .collect();
            generator.inversion = Some(Inversion::new(options.seed, &waits));
        }
        Ok(generator)
    }

    /// Where a run belongs, its pace and its plan.
    fn plan(&self, run: u64) -> (Place, Pace, Plan) {
        let seed = self.options.seed;
        let place = self.sessions.place(seed, run);
        let population = self.cast[place.population].population;
        let pace = Pace::new(population.likeness(), seed, place.session, run);
        let plan = Plan::new(population, &pace, seed, run, place.session);
        (place, pace, plan)
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
        (run < self.options.runs).then(|| self.made(run))
    }

    /// Run number `run`, whatever the number of runs: without strata nothing depends on that.
    ///
    /// # Panics
    /// When waits are stratified and `run` is none of the runs.
    pub fn make(&self, run: u64) -> Run {
        self.made(run)
    }

    /// The runs of that range, in order; those from the number of runs up are left out. Uses the
    /// threads of the current rayon pool, whose number changes nothing.
    pub fn runs(&self, range: Range<u64>) -> Vec<Run> {
        let end = range.end.min(self.options.runs);
        (range.start..end)
            .into_par_iter()
            .map(|run| self.made(run))
            .collect()
    }

    /// All runs, in order, with their names.
    pub fn fleet(&self) -> Fleet {
        Fleet {
            runs: self.runs(0..self.options.runs),
            symbols: self.symbols.clone(),
        }
    }

    fn made(&self, number: u64) -> Run {
        let seed = self.options.seed;
        let (place, pace, plan) = self.plan(number);
        let prepared = &self.cast[place.population];
        let population = prepared.population;
        let calendar = self.model.calendar();
        let since_epoch_ms = number.saturating_mul(calendar.start_every_ms);
        let started_at_ms = calendar.epoch_ms.saturating_add_unsigned(since_epoch_ms);
        let setting = Setting {
            population,
            tool_names: &prepared.tool_names,
            inversion: self.inversion.as_ref(),
            pace,
            seed,
            number,
            started_at_ms,
        };
        let written = Writer::new(&setting, &plan).write(&plan);
        let Written {
            events,
            measured,
            end_ms,
        } = suspended(written, population.suspends(), seed, number);
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
