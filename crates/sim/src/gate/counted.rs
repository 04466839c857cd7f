//! Where the counts behind a rate come from: runs one by one, or the totals that a sweep's result holds.

use crate::certify::TieRule;
use crate::stats::verdict::RunCounts;
use crate::strata::StratumKey;

use super::figures::Figures;
use super::hits::{by_group, by_unit};
use super::outcome::Outcomes;
use super::rate::{Lacking, RateBound};
use super::rules::FigureRule;
use super::swept::{Swept, SweptCell};

/// What a rate is counted from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted<'a> {
    /// The runs under the policy, and under the one that it is compared with.
    Runs(&'a Outcomes, Option<&'a Outcomes>),
    /// One cell of a sweep.
    Swept(&'a Swept, &'a SweptCell),
}

/// Counts over all runs that a rule is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pool {
    /// By independent unit.
    Units(Vec<RunCounts>),
    /// The sum, with the upper limit that somebody with the units worked out.
    Limited(RunCounts, Option<f64>),
}

/// What `rule` is counted from.
///
/// # Errors
/// Why it cannot be.
pub(super) fn counted<'a>(rule: &FigureRule, figures: &'a Figures) -> Result<Counted<'a>, Lacking> {
    if let Some(swept) = &figures.swept {
        return Ok(Counted::Swept(swept, &swept.cell));
    }
    let Some(outcomes) = &figures.outcomes else {
        return Err(Lacking::all());
    };
    let Some(against) = &rule.against else {
        return Ok(Counted::Runs(outcomes, None));
    };
    match figures.under(&against.policy) {
        Some(other) => Ok(Counted::Runs(outcomes, Some(other))),
        None => Err(Lacking::because(format!(
            "the data do not hold what {} is answered from",
            against.name
        ))),
    }
}

impl Counted<'_> {
    /// Whether some kill hangs on which of two comes first at one instant.
    pub(super) fn has_ties(self) -> bool {
        match self {
            Self::Runs(outcomes, _) => outcomes.runs.iter().any(|run| run.tied),
            Self::Swept(_, cell) => cell.ties > 0,
        }
    }

    /// All runs that the rule is about.
    pub(super) fn pool(
        self,
        rule: &FigureRule,
        bound: RateBound,
        ties: TieRule,
    ) -> Result<Pool, Lacking> {
        match self {
            Self::Runs(outcomes, other) => Ok(Pool::Units(by_unit(rule, outcomes, other, ties))),
            Self::Swept(swept, cell) => swept.pool(cell, rule, bound, ties),
        }
    }

    /// Their sum.
    pub(super) fn total(self, rule: &FigureRule) -> RunCounts {
        let Self::Runs(outcomes, other) = self else {
            return RunCounts::default();
        };
        let units = by_unit(rule, outcomes, other, TieRule::TimerFirst);
        units
            .into_iter()
            .fold(RunCounts::default(), RunCounts::plus)
    }

    /// Each group of `key`, by name.
    pub(super) fn groups(
        self,
        rule: &FigureRule,
        key: StratumKey,
        ties: TieRule,
    ) -> Result<Vec<(String, RunCounts)>, Lacking> {
        match self {
            Self::Runs(outcomes, other) => Ok(by_group(rule, key, outcomes, other, ties)),
            Self::Swept(_, cell) => cell.groups(rule, key, ties),
        }
    }
}
