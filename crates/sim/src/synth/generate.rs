//! Runs from a model.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::ModelError;
use super::inversion::Inversion;
use super::model::{Model, Population};
use super::plan::{Fate, Plan};
use super::writer::{Writer, Written};
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

/// Makes the runs of one population, each by its number and in any order.
#[derive(Clone, Debug)]
pub struct Generator<'m> {
    model: &'m Model,
    population: &'m Population,
    options: Options,
    inversion: Option<Inversion>,
    symbols: Symbols,
    tool_names: Vec<Symbol>,
    source: Arc<str>,
    harness: Arc<str>,
    roles: Vec<Arc<str>>,
    models: Vec<Arc<str>>,
}

impl<'m> Generator<'m> {
    /// Prepares the runs of `population` of `model`, of its only one without a name. Stratified
    /// sampling counts the waits of all runs here (8 bytes per run).
    ///
    /// # Errors
    /// As [`Model::population`].
    pub fn new(
        model: &'m Model,
        population: Option<&str>,
        options: Options,
    ) -> Result<Self, ModelError> {
        let (name, population) = model.population(population)?;
        let inversion = match options.sampling {
            Sampling::Independent => None,
            Sampling::Stratified => {
                let plan = |run| Plan::new(population, options.seed, run);
                let waits: Vec<u64> = (0..options.runs)
                    .into_par_iter()
                    .map(|run| plan(run).pre_token_waits())
                    .collect();
                Some(Inversion::new(options.seed, &waits))
            }
        };
        let mut symbols = Symbols::default();
        let tools = population.tools().map_or(&[][..], |tools| &tools.list);
        let tool_names = tools
            .iter()
            .map(|tool| symbols.intern(&tool.name))
            .collect();
        let roles = &population.roles().list;
        let models = &population.models().list;
        Ok(Self {
            model,
            population,
            options,
            inversion,
            symbols,
            tool_names,
            source: format!("{}/{name}", model.name()).into(),
            harness: "synthetic".into(),
            roles: roles.iter().map(|role| role.name.as_str().into()).collect(),
            models: models
                .iter()
                .map(|model| model.name.as_str().into())
                .collect(),
        })
    }

    /// The names that the events of every run refer to.
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The population that the runs come from.
    pub const fn population(&self) -> &Population {
        self.population
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
        let plan = Plan::new(self.population, seed, number);
        let writer = Writer::new(
            self.population,
            &self.tool_names,
            self.inversion.as_ref(),
            seed,
            number,
        );
        let Written {
            events,
            measured,
            end_ms,
        } = writer.write(&plan);
        let calendar = self.model.calendar();
        let since_epoch_ms = number.saturating_mul(calendar.start_every_ms);
        Run {
            name: format!("{}#{}", self.source, number + 1).into(),
            source: Arc::clone(&self.source),
            session: format!("session-{}", number / calendar.runs_per_session + 1).into(),
            parent: Arc::default(),
            harness: Arc::clone(&self.harness),
            model: Arc::clone(&self.models[plan.model]),
            role: Arc::clone(&self.roles[plan.role]),
            started_at_ms: calendar.epoch_ms.saturating_add_unsigned(since_epoch_ms),
            resolution: self.population.resolution().into(),
            status: RunStatus::Run,
            end: recorded_end(plan.fate),
            end_ms,
            measured,
            events,
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
