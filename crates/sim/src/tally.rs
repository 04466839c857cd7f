//! What candidates do to runs, as counts: everything here is an integer, so that parts add up in any order.

use std::sync::Arc;

use policysim_policy::Cause;

use crate::detections::Detections;
use crate::stats::paired::Discordant;
use crate::stats::verdict::RunCounts;

/// Runs of one group under one candidate, as counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Runs that are not labelled as hung: the rate's denominator.
    pub runs: u64,
    /// Of those, killed though alive.
    pub false_kills: u64,
    /// Of those, killed where the record cannot tell whether rightly.
    pub unresolved_kills: u64,
    /// Of those, not killed within a record that ends before the run does.
    pub unresolved_survivals: u64,
    /// Of the false and unresolved kills, those that would be none if an event at the deadline came first.
    pub ties: u64,
}

impl Tally {
    /// Runs about which the record cannot tell.
    pub const fn unresolved(&self) -> u64 {
        self.unresolved_kills + self.unresolved_survivals
    }

    /// Kills if every unresolved run is one: the count behind upper limits.
    pub const fn worst_kills(&self) -> u64 {
        self.false_kills + self.unresolved()
    }

    /// The counts as a verdict takes them.
    pub const fn counts(&self) -> RunCounts {
        RunCounts {
            kills: self.false_kills,
            unresolved: self.unresolved(),
            runs: self.runs,
        }
    }

    fn less(&self, part: &Self) -> Self {
        Self {
            runs: self.runs - part.runs,
            false_kills: self.false_kills - part.false_kills,
            unresolved_kills: self.unresolved_kills - part.unresolved_kills,
            unresolved_survivals: self.unresolved_survivals - part.unresolved_survivals,
            ties: self.ties - part.ties,
        }
    }
}

/// Tallies by [independent unit](crate::cluster::Cluster::unit), by rising key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Units(Arc<[(i64, Tally)]>);

impl Units {
    /// The tally of that unit, where there is one.
    pub fn get(&self, unit: i64) -> Option<&Tally> {
        let place = self.0.binary_search_by_key(&unit, |(unit, _)| *unit).ok()?;
        Some(&self.0[place].1)
    }

    /// Units with their tallies.
    pub fn iter(&self) -> impl Iterator<Item = &(i64, Tally)> {
        self.0.iter()
    }
}

impl FromIterator<(i64, Tally)> for Units {
    /// Each unit comes once.
    fn from_iter<I: IntoIterator<Item = (i64, Tally)>>(units: I) -> Self {
        let mut units: Vec<(i64, Tally)> = units.into_iter().collect();
        units.sort_by_key(|(unit, _)| *unit);
        Self(units.into())
    }
}

/// What one candidate does to a part of the runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Part {
    /// Runs that are not labelled as hung.
    pub tally: Tally,
    /// Runs labelled as hung.
    pub hung: u64,
    /// Last activity to settling over all hung runs, ms; a missed one counts to the end of its record.
    pub slot_lost_ms: u128,
    /// Active time up to the firing over all false kills, ms.
    pub work_lost_ms: u128,
    /// Active time of unresolved runs up to the firing or the end of their record, ms: lost if they were alive.
    pub doubtful_work_ms: u128,
    /// Tallies by stratum, in the order of [`Strata::groups`](crate::strata::Strata::groups).
    pub strata: Arc<[Tally]>,
    /// False kills, unresolved runs and ties by independent unit; units without any are left out, and so are the
    /// units' runs, which are the same for every candidate.
    pub units: Units,
}

impl Part {
    /// This part without `other`, which lies inside it. Strata and units are left out.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        Self {
            tally: self.tally.less(&other.tally),
            hung: self.hung - other.hung,
            slot_lost_ms: self.slot_lost_ms - other.slot_lost_ms,
            work_lost_ms: self.work_lost_ms - other.work_lost_ms,
            doubtful_work_ms: self.doubtful_work_ms - other.doubtful_work_ms,
            ..Self::default()
        }
    }
}

/// What one candidate does to all runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CellCounts {
    /// Over all runs.
    pub all: Part,
    /// Over the runs that verdicts are given on: the certifying half, or all runs where they are not split.
    pub certify: Part,
    /// Kills of all runs, hung ones included, by cause in the order of [`Cause::ALL`].
    pub kills: [u64; Cause::ALL.len()],
    /// Of the runs not labelled as hung, kills that the record confirms (it failed anyway).
    pub true_kills: u64,
    /// Of the hung runs, killed before they hung.
    pub hung_killed_early: u64,
    /// Of the hung runs, never killed within the record.
    pub hung_missed: u64,
    /// Last activity to firing of each hung run that was detected.
    pub detections: Detections,
    /// Runs killed falsely or in doubt by the base only (first) and by the candidate only (second).
    pub against_base: Discordant,
}

impl CellCounts {
    /// All kills, hung runs included.
    pub fn killed(&self) -> u64 {
        self.kills.iter().sum()
    }
}
