//! The model as data: what a population of runs is like.
//!
//! The types read any serde format; unknown keys are errors. A quantile table tells published from
//! assumed figures itself; every other table says with `assumed` whether its figures were measured.

mod check;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ModelError;
use super::quantiles::{Quantiles, Unit};
use crate::run::{Resolution, WaitKind};

/// A share in parts per million, at most the whole.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(try_from = "u64")]
pub struct Ppm(u32);

impl Ppm {
    /// Parts per million that make the whole.
    pub const WHOLE: u64 = 1_000_000;

    /// The share in parts per million.
    pub const fn as_u64(self) -> u64 {
        self.0 as u64
    }
}

impl TryFrom<u64> for Ppm {
    type Error = ModelError;

    fn try_from(ppm: u64) -> Result<Self, ModelError> {
        match u32::try_from(ppm) {
            Ok(small) if ppm <= Self::WHOLE => Ok(Self(small)),
            _ => Err(ModelError::Share(ppm)),
        }
    }
}

/// A model: one or several populations of runs, each with its distributions.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "ModelDocument")]
pub struct Model {
    name: String,
    about: String,
    source: String,
    calendar: Calendar,
    populations: BTreeMap<String, Population>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelDocument {
    schema_version: u32,
    name: String,
    about: String,
    source: String,
    calendar: Calendar,
    population: BTreeMap<String, Population>,
}

impl TryFrom<ModelDocument> for Model {
    type Error = ModelError;

    fn try_from(document: ModelDocument) -> Result<Self, ModelError> {
        if document.schema_version != 1 {
            return Err(ModelError::SchemaVersion(document.schema_version));
        }
        if document.population.is_empty() {
            return Err(ModelError::NoPopulation);
        }
        if document.calendar.runs_per_session == 0 {
            return Err(ModelError::Zero("calendar.runs_per_session"));
        }
        Ok(Self {
            name: document.name,
            about: document.about,
            source: document.source,
            calendar: document.calendar,
            populations: document.population,
        })
    }
}

impl Model {
    /// The model's name; the source of its runs is `NAME/POPULATION`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One paragraph on what the model stands for.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Where its published figures come from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How runs are dated and grouped.
    pub const fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// The populations by name, in name order.
    pub fn populations(&self) -> impl Iterator<Item = (&str, &Population)> {
        self.populations
            .iter()
            .map(|(name, population)| (name.as_str(), population))
    }

    /// The population of that name with its name; without a name, the only one.
    ///
    /// # Errors
    /// [`ModelError::UnknownPopulation`] for a name the model does not hold,
    /// [`ModelError::ChoosePopulation`] without a name where there are several.
    pub fn population(&self, name: Option<&str>) -> Result<(&str, &Population), ModelError> {
        let mut all = self.populations();
        let known = || {
            let names: Vec<&str> = self.populations().map(|(name, _)| name).collect();
            names.join(", ")
        };
        match (name, self.populations.len()) {
            (Some(name), _) => {
                all.find(|(own, _)| *own == name)
                    .ok_or_else(|| ModelError::UnknownPopulation {
                        given: name.to_owned(),
                        known: known(),
                    })
            }
            (None, 1) => all.next().ok_or(ModelError::NoPopulation),
            (None, _) => Err(ModelError::ChoosePopulation(known())),
        }
    }
}

/// How runs are dated and grouped; dates never drive a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Calendar {
    /// Whether the figures of this table were assumed.
    pub assumed: bool,
    /// Start of run 0, ms since the Unix epoch.
    pub epoch_ms: i64,
    /// From the start of one run to that of the next, ms.
    pub start_every_ms: u64,
    /// So many runs in a row belong to one session.
    pub runs_per_session: u64,
}

/// How finely the telemetry behind a population stamps output.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum SourceResolution {
    /// One stamp per finished block: runs get one `message_end` per block, waits are upper bounds.
    Message,
    /// Output is stamped where it begins: runs get `message_start`, updates and `message_end`.
    Stream,
}

impl From<SourceResolution> for Resolution {
    fn from(resolution: SourceResolution) -> Self {
        match resolution {
            SourceResolution::Message => Self::Message,
            SourceResolution::Stream => Self::Stream,
        }
    }
}

/// A figure of whole runs, beside the waits in them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum RunFigure {
    /// Latest activity minus start; quoted, not drawn.
    Duration,
    /// Longest wait for the model to begin an output; quoted, not drawn.
    MaxModelGap,
    /// Longest time between two activities; quoted, not drawn.
    MaxSilence,
    /// Model turns; drawn, unless a role brings its own.
    Turns,
}

impl RunFigure {
    const fn unit(self) -> Unit {
        match self {
            Self::Turns => Unit::Turns,
            Self::Duration | Self::MaxModelGap | Self::MaxSilence => Unit::Ms,
        }
    }
}

/// One population of runs: its distributions and what it is subject to.
///
/// Drawn are the waits `pre_token`, `tool`, `tool_escalated`, `subagent`, `human`, `approval`,
/// `error_wait`, `censored` and the gap between pieces (`inter_token` where output is streamed,
/// `stream_gap` where it is stamped by block). Other kinds may stand here as quoted figures.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "PopulationDocument")]
pub struct Population {
    about: String,
    resolution: SourceResolution,
    approvals_in_tools: bool,
    caveats: Vec<String>,
    waits: BTreeMap<WaitKind, Quantiles>,
    figures: BTreeMap<RunFigure, Quantiles>,
    pre_token: Quantiles,
    roles: RoleList,
    models: WeightedList,
    tools: Option<Tools>,
    streaming: Option<Streaming>,
    retry: Option<Retry>,
    ends: Ends,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PopulationDocument {
    about: String,
    resolution: SourceResolution,
    approvals_in_tools: bool,
    #[serde(default)]
    caveats: Vec<String>,
    wait: BTreeMap<String, Quantiles>,
    #[serde(default)]
    run: BTreeMap<RunFigure, Quantiles>,
    roles: RoleList,
    models: WeightedList,
    tools: Option<Tools>,
    streaming: Option<Streaming>,
    retry: Option<Retry>,
    ends: Ends,
}

/// Roles of runs with their turns.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RoleList {
    /// Whether the weights were assumed.
    pub assumed: bool,
    /// The roles.
    pub list: Vec<Role>,
}

/// A role (subagent type).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Its name; empty for a main agent.
    pub name: String,
    /// How common it is, relative to the other roles.
    pub weight: u32,
    /// Its number of turns; without it the population's.
    pub turns: Option<Quantiles>,
}

/// Names to pick from.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WeightedList {
    /// Whether names and weights were assumed.
    pub assumed: bool,
    /// The names.
    pub list: Vec<Weighted>,
}

/// A name with its weight.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// The name.
    pub name: String,
    /// How common it is, relative to the others.
    pub weight: u32,
}

/// Tool calls.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Whether the shares and weights were assumed.
    pub assumed: bool,
    /// Turns with calls, of those that are not the last; the others go on without one.
    pub turn_share_ppm: Ppm,
    /// Weights of 1, 2, 3, … calls in such a turn.
    pub calls_weights: Vec<u32>,
    /// Turns whose calls run at once, of those with several calls.
    pub parallel_ppm: Ppm,
    /// Calls that wait for an approval first (wait `approval`), of those that wait as `tool`.
    #[serde(default)]
    pub approval_ppm: Ppm,
    /// The tools.
    pub list: Vec<Tool>,
}

/// One tool.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// How common its calls are, relative to the other tools.
    pub weight: u32,
    /// Name of the kind its wait is recorded as.
    pub wait: Option<String>,
    /// How long a call takes; without it the population's wait of that kind.
    pub duration: Option<Quantiles>,
    /// A running call reports so often, ms; without it never.
    pub update_every_ms: Option<u64>,
}

impl Tool {
    /// The kind its wait is recorded as: `tool` unless it says otherwise.
    pub fn wait_kind(&self) -> WaitKind {
        let named = self.wait.as_deref().and_then(WaitKind::from_name);
        named.unwrap_or(WaitKind::Tool)
    }
}

/// Pieces of an answer after its first.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// Whether the number of pieces was assumed.
    pub assumed: bool,
    /// Pieces after the first: updates where output is streamed, blocks where it is not.
    pub pieces: Quantiles,
}

/// Failed provider calls and what follows them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Whether the shares and the schedule were assumed.
    pub assumed: bool,
    /// Turns whose first provider call fails.
    pub turn_share_ppm: Ppm,
    /// Failed calls after which the next one fails too.
    pub again_ppm: Ppm,
    /// So many failed calls in one turn end the run as failed.
    pub failures_max: u32,
    /// Announced delay after the first, second, … failed call, ms; the last one stays.
    pub schedule_ms: Vec<u64>,
}

/// How runs end when they do not complete; each share is of all runs.
///
/// A run that is cut before any output would be no run (`DEFINITIONS.md` section 5), so endings
/// while the model is awaited come in the second turn at the earliest.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Whether the shares were assumed.
    pub assumed: bool,
    /// Hangs while the model is awaited.
    #[serde(default)]
    pub hung_before_output_ppm: Ppm,
    /// Hangs in the middle of an answer.
    #[serde(default)]
    pub hung_mid_stream_ppm: Ppm,
    /// Hangs in a tool call.
    #[serde(default)]
    pub hung_in_tool_ppm: Ppm,
    /// Is aborted by a human while the model is awaited (wait `censored`).
    #[serde(default)]
    pub aborted_ppm: Ppm,
    /// The record stops while the model is awaited (after a wait `censored`).
    #[serde(default)]
    pub open_in_model_ppm: Ppm,
    /// The record stops in a tool call (after a wait `censored`).
    #[serde(default)]
    pub open_in_tool_ppm: Ppm,
    /// Does turn after turn to no end, `looped_turns` of them, and ends as failed.
    #[serde(default)]
    pub looped_ppm: Ppm,
    /// The number of turns of a run that loops.
    pub looped_turns: Option<Quantiles>,
    /// How long the record of a hung run goes on after its last activity.
    pub record_after_hang: Option<Quantiles>,
}

impl Ends {
    /// Share of runs that hang, in parts per million.
    pub const fn hang_ppm(&self) -> u64 {
        self.hung_before_output_ppm.as_u64()
            + self.hung_mid_stream_ppm.as_u64()
            + self.hung_in_tool_ppm.as_u64()
    }

    /// The shares of runs that end badly, in the order of the fields, in parts per million.
    pub(super) fn shares(&self) -> [u64; 7] {
        [
            self.hung_before_output_ppm,
            self.hung_mid_stream_ppm,
            self.hung_in_tool_ppm,
            self.aborted_ppm,
            self.open_in_model_ppm,
            self.open_in_tool_ppm,
            self.looped_ppm,
        ]
        .map(Ppm::as_u64)
    }
}

impl Population {
    /// One line on what the population is.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// How finely the telemetry behind it stamps output.
    pub const fn resolution(&self) -> SourceResolution {
        self.resolution
    }

    /// Its tool waits hold approvals that no record tells apart.
    pub const fn approvals_in_tools(&self) -> bool {
        self.approvals_in_tools
    }

    /// What to know before its figures are compared with others.
    pub fn caveats(&self) -> &[String] {
        &self.caveats
    }

    /// The waits by kind, quoted ones included.
    pub const fn waits(&self) -> &BTreeMap<WaitKind, Quantiles> {
        &self.waits
    }

    /// The figures of whole runs.
    pub const fn figures(&self) -> &BTreeMap<RunFigure, Quantiles> {
        &self.figures
    }

    /// Hand-off to first output.
    pub const fn pre_token(&self) -> &Quantiles {
        &self.pre_token
    }

    /// Roles with their weights and turns.
    pub const fn roles(&self) -> &RoleList {
        &self.roles
    }

    /// Models with their weights.
    pub const fn models(&self) -> &WeightedList {
        &self.models
    }

    /// Tool calls, where there are any.
    pub const fn tools(&self) -> Option<&Tools> {
        self.tools.as_ref()
    }

    /// Pieces of an answer, where an answer has more than one.
    pub const fn streaming(&self) -> Option<&Streaming> {
        self.streaming.as_ref()
    }

    /// Failed provider calls, where there are any.
    pub const fn retry(&self) -> Option<&Retry> {
        self.retry.as_ref()
    }

    /// How runs end when they do not complete.
    pub const fn ends(&self) -> &Ends {
        &self.ends
    }

    /// The gap between two pieces of an answer: `inter_token` or `stream_gap`, by resolution.
    pub(super) const fn piece_gap(&self) -> WaitKind {
        match self.resolution {
            SourceResolution::Message => WaitKind::StreamGap,
            SourceResolution::Stream => WaitKind::InterToken,
        }
    }

    /// The number of turns of a role.
    pub(super) fn turns_of<'a>(&'a self, role: &'a Role) -> Option<&'a Quantiles> {
        role.turns
            .as_ref()
            .or_else(|| self.figures.get(&RunFigure::Turns))
    }

    /// How long a call of a tool takes.
    pub(super) fn duration_of<'a>(&'a self, tool: &'a Tool) -> Option<&'a Quantiles> {
        tool.duration
            .as_ref()
            .or_else(|| self.waits.get(&tool.wait_kind()))
    }

    /// What nobody published, one place per entry with the quantiles meant where it is a table: to
    /// be shown wherever figures built on the population are.
    pub fn assumptions(&self) -> Vec<String> {
        let mut places = Vec::new();
        let mut add_table = |place: String, table: &Quantiles| {
            let labels: Vec<String> = table
                .knots()
                .iter()
                .filter(|knot| knot.assumed)
                .map(super::Knot::label)
                .collect();
            if labels.len() == table.knots().len() {
                places.push(place);
            } else if !labels.is_empty() {
                places.push(format!("{place} ({})", labels.join(", ")));
            }
        };
        for (kind, table) in &self.waits {
            add_table(format!("wait.{}", kind.name()), table);
        }
        for (figure, table) in &self.figures {
            add_table(format!("run.{figure:?}").to_lowercase(), table);
        }
        for role in &self.roles.list {
            if let Some(turns) = &role.turns {
                add_table(format!("turns of {}", role.name), turns);
            }
        }
        for tool in self.tools.iter().flat_map(|tools| &tools.list) {
            if let Some(duration) = &tool.duration {
                add_table(format!("duration of {}", tool.name), duration);
            }
        }
        if let Some(streaming) = &self.streaming {
            add_table("streaming.pieces".to_owned(), &streaming.pieces);
        }
        if let Some(after) = &self.ends.record_after_hang {
            add_table("ends.record_after_hang".to_owned(), after);
        }
        if let Some(turns) = &self.ends.looped_turns {
            add_table("ends.looped_turns".to_owned(), turns);
        }
        let tables = [
            ("roles", self.roles.assumed),
            ("models", self.models.assumed),
            (
                "tools",
                self.tools.as_ref().is_some_and(|tools| tools.assumed),
            ),
            (
                "streaming",
                self.streaming
                    .as_ref()
                    .is_some_and(|streaming| streaming.assumed),
            ),
            (
                "retry",
                self.retry.as_ref().is_some_and(|retry| retry.assumed),
            ),
            ("ends", self.ends.assumed),
        ];
        let assumed = tables.into_iter().filter(|(_, assumed)| *assumed);
        places.extend(assumed.map(|(place, _)| place.to_owned()));
        places
    }
}
