//! What can be wrong with a model.

use thiserror::Error;

/// Why a model cannot be used; the text completes "cannot use the model: …".
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ModelError {
    /// A key of a quantile table is not a quantile.
    #[error(
        "unknown quantile {0:?}, expected min, max or pN with N between 0 and 100, as \"p99.9\""
    )]
    QuantileLabel(String),
    /// One quantile stands both among the published and the assumed ones.
    #[error("quantile {0} is given twice, expected it once: published or assumed")]
    QuantileTwice(String),
    /// A table without both of its ends.
    #[error("quantile table has no {0}, expected both min and max, published or assumed")]
    QuantileEnd(&'static str),
    /// Values fall while quantiles rise.
    #[error(
        "{higher} is {higher_value}, below {lower} with {lower_value}, expected values that never fall"
    )]
    QuantileOrder {
        /// Label of the lower quantile.
        lower: String,
        /// Its value.
        lower_value: u64,
        /// Label of the higher quantile.
        higher: String,
        /// Its value.
        higher_value: u64,
    },
    /// A number so large that a run's length might not be exact, or the run not fit in memory.
    #[error("{name} is {value}, expected at most {limit}")]
    Limit {
        /// What is too large.
        name: String,
        /// The value given.
        value: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// A table in a unit that its place does not take.
    #[error("{place} is in {given}, expected {expected}")]
    UnitMismatch {
        /// Where the table stands.
        place: String,
        /// Its unit.
        given: &'static str,
        /// The unit of that place.
        expected: &'static str,
    },
    /// A key of the `wait` table is not a wait kind.
    #[error(
        "unknown wait kind {0:?}, expected one such as pre_token, tool, human, retry, censored"
    )]
    WaitKind(String),
    /// A part of the model needs a table that is not there.
    #[error("{part} needs {table}, which is missing")]
    MissingTable {
        /// What needs it.
        part: String,
        /// The table's place.
        table: String,
    },
    /// A list to pick from that holds nothing with a weight.
    #[error("{0} has no entry with a weight above 0, expected at least one")]
    NothingToPick(String),
    /// A distribution given in more than one form.
    #[error("a distribution is given in two forms, expected one of quantiles, mixture or samples")]
    TwoForms,
    /// A component of a mixture whose parameters make no distribution.
    #[error("{0} is no distribution, expected positive parameters and from below to")]
    Component(String),
    /// A share above the whole.
    #[error("share {0} is above 1000000, expected parts per million")]
    Share(u64),
    /// The ways to end badly make up more than all runs.
    #[error("the shares of ends add up to {0} parts per million, expected at most 1000000")]
    EndShares(u64),
    /// A number that must not be zero is.
    #[error("{0} is 0, expected at least 1")]
    Zero(&'static str),
    /// A wait kind that a tool call cannot end with.
    #[error("tool {tool:?} has wait {given:?}, expected tool, tool_escalated, subagent or human")]
    ToolWait {
        /// The tool's name.
        tool: String,
        /// The kind given.
        given: &'static str,
    },
    /// A document made for another version of this format.
    #[error("model has schema_version {0}, expected 1; a newer policysim may read it")]
    SchemaVersion(u32),
    /// No population of that name.
    #[error("model has no population {given:?}, expected one of: {known}")]
    UnknownPopulation {
        /// The name asked for.
        given: String,
        /// The names there are.
        known: String,
    },
    /// Several populations and none chosen.
    #[error("model holds several populations, expected one to be chosen: {0}")]
    ChoosePopulation(String),
    /// A model without any population.
    #[error("model holds no population, expected at least one table [population.NAME]")]
    NoPopulation,
}

impl ModelError {
    /// Largest weight or count, so that sums stay exact.
    pub(super) const WEIGHT_LIMIT: u64 = 1_000_000_000_000;
}
