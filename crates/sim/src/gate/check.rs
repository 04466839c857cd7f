//! What a gate found: one check per claim, and the verdict over all.

use std::fmt;

use policysim_policy::check::Finding;

use crate::gaps::drift::Compared;

use super::explain::Characteristics;
use super::metric::Unit;
use super::rules::{Bound, Mapping};

/// The verdict on one check, or over several; by rising precedence.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// Shown to hold.
    Pass,
    /// Nothing to decide it with: no sample, no baseline.
    NoData,
    /// The data decide neither way.
    Inconclusive,
    /// Shown not to hold.
    Fail,
}

impl Verdict {
    /// Every verdict, the best first.
    pub const ALL: [Self; 4] = [Self::Pass, Self::NoData, Self::Inconclusive, Self::Fail];

    /// The verdict's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::NoData => "no_data",
            Self::Pass => "pass",
        }
    }

    /// The worst of several; without any there is no data.
    pub fn over(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().max().unwrap_or(Self::NoData)
    }

    /// What it counts as. Nothing that could not run becomes a pass.
    #[must_use]
    pub const fn mapped(self, mapping: Mapping) -> Self {
        match (self, mapping) {
            (Self::Inconclusive | Self::NoData, Mapping::Fail) => Self::Fail,
            (Self::Inconclusive, Mapping::Pass) => Self::Pass,
            (other, _) => other,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Why a check did not simply pass; a stable code for programs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Code {
    /// The limits of the figure break the bound.
    BoundBroken,
    /// Too few kills for a spread over sessions, and nothing else bounds the loss.
    FewKills,
    /// A contradiction between limits that is not known.
    FindingNew,
    /// A known contradiction is gone.
    FindingVanished,
    /// Kills are seen to come together: too few independent units.
    FewUnits,
    /// Gaps that the recorded limit cut seem to be missing.
    KillsMissing,
    /// Limits are known at 95 % two-sided alone, and the rule asks for more.
    LevelTooHigh,
    /// Silences have moved since the baseline.
    Moved,
    /// Silences may have moved since the baseline.
    MoveUndecided,
    /// No baseline was given.
    NoBaseline,
    /// Nothing to count.
    NoData,
    /// The units do not differ in the figure, so that no limit can be worked out.
    NoSpread,
    /// The data source does not hold what the figure is made of.
    NotInSource,
    /// The policy's window is none of those declared.
    NotInSequence,
    /// The policy differs.
    PolicyDiffers,
    /// A larger window of the sequence is not shown to be safe.
    SequenceStopped,
    /// A stratum is not shown to hold.
    StratumUndecided,
    /// The verdict hangs on whether a gap of exactly the window is a kill.
    TieRule,
    /// More samples would decide it.
    TooFew,
    /// Some of what is averaged had no end within the observation.
    Unended,
}

impl Code {
    /// The code in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BoundBroken => "bound_broken",
            Self::FewKills => "few_kills",
            Self::FewUnits => "few_units",
            Self::FindingNew => "finding_new",
            Self::FindingVanished => "finding_vanished",
            Self::KillsMissing => "kills_missing",
            Self::LevelTooHigh => "level_too_high",
            Self::MoveUndecided => "move_undecided",
            Self::Moved => "moved",
            Self::NoBaseline => "no_baseline",
            Self::NoData => "no_data",
            Self::NoSpread => "no_spread",
            Self::NotInSequence => "not_in_sequence",
            Self::NotInSource => "not_in_source",
            Self::PolicyDiffers => "policy_differs",
            Self::SequenceStopped => "sequence_stopped",
            Self::StratumUndecided => "stratum_undecided",
            Self::TieRule => "tie_rule",
            Self::TooFew => "n_too_small",
            Self::Unended => "unended",
        }
    }
}

/// A figure with what it rests on, in its base unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    /// The figure; `None` where the data carry none.
    pub point: Option<f64>,
    /// One-sided lower limit.
    pub lower: Option<f64>,
    /// One-sided upper limit; what the record cannot tell is counted against it.
    pub upper: Option<f64>,
    /// Runs, hangs or waits that it is about; `None` where it follows from the policy alone.
    pub n: Option<u64>,
    /// How many of them count.
    pub hits: Option<u64>,
    /// Of how many the record cannot tell whether they do.
    pub unresolved: u64,
    /// Samples that would show the bound to hold with as many hits; `None` where no number is known.
    pub needed: Option<u64>,
    /// The same without any hit.
    pub needed_at_best: Option<u64>,
    /// Whether days or sessions replaced the run as the unit.
    pub by_unit: bool,
    /// Design effect over them.
    pub deff: Option<f64>,
}

/// One stratum, or one window of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The stratum, or the window.
    pub name: String,
    /// Its figure.
    pub figure: Figure,
    /// What it says alone.
    pub verdict: Verdict,
    /// The limit with which a stratum accuses, at the error that all of them share: the lower one under a maximum, the
    /// upper one under a minimum.
    pub accuses: Option<f64>,
}

/// What the parts of a figure are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Parts {
    /// Groups of runs.
    #[default]
    Strata,
    /// Windows of a sequence, ms, from the largest down to the first that is not shown to hold.
    Windows,
}

/// A key on which two policies differ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Difference {
    /// The key.
    pub key: String,
    /// Its value in the policy that is gated.
    pub ours: String,
    /// Its value in the other.
    pub theirs: String,
}

/// What a check looked at.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // a handful per gate
pub enum Detail {
    /// A line of silences against the baseline.
    Drift(Option<Compared>),
    /// A figure against its bound.
    Figure {
        /// Of now.
        now: Figure,
        /// Of the baseline, where the bound is on a change.
        baseline: Option<Figure>,
        /// The change, where it is: a difference or a ratio.
        change: Option<Figure>,
        /// The unit of the figure.
        unit: Unit,
        /// What it is counted over: `runs`, `hangs`, `waits`.
        noun: &'static str,
        /// Which way the bound goes.
        bound: Bound,
        /// The bound.
        amount: f64,
        /// What its parts are.
        parts_are: Parts,
        /// They.
        parts: Vec<Part>,
    },
    /// A contradiction between limits.
    Finding {
        /// What was found under that id.
        found: Vec<Finding>,
        /// Whether it is known.
        known: bool,
    },
    /// One key of the policy.
    Key {
        /// Its value.
        value: String,
        /// What it is compared with.
        other: String,
        /// The sign between them.
        sign: &'static str,
    },
    /// Another policy.
    Same {
        /// What it is called.
        name: String,
        /// Where the two differ.
        differs: Vec<Difference>,
    },
}

/// One claim, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Index of its rule.
    pub rule: usize,
    /// Line of the rules document on which that begins.
    pub line: usize,
    /// What it claims.
    pub name: String,
    /// What it is about: a metric, a finding's id, a key, a line of silences.
    pub subject: String,
    /// The kind of rule: `metric`, `check`, `key`, `same_as`, `drift`.
    pub kind: &'static str,
    /// The verdict of the data.
    pub verdict: Verdict,
    /// What it counts as.
    pub counts_as: Verdict,
    /// Why it is not a pass.
    pub code: Option<Code>,
    /// Why the source does not answer it, where there is more to say than the code does.
    pub reason: Option<String>,
    /// Whether it could run: there was something to look at.
    pub ran: bool,
    /// What it looked at.
    pub detail: Detail,
    /// Policy keys to look at when it does not pass, the first first.
    pub keys: Vec<String>,
    /// How often such a check is wrong, where it is a rate.
    pub characteristics: Option<Characteristics>,
}

/// Everything that a gate found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    /// The checks, in the order of the rules.
    pub checks: Vec<Check>,
}

impl Gate {
    /// The verdict over all checks, as they count.
    pub fn verdict(&self) -> Verdict {
        Verdict::over(self.checks.iter().map(|check| check.counts_as))
    }

    /// How many checks count as `verdict`.
    pub fn count(&self, verdict: Verdict) -> usize {
        let counts = self.checks.iter().map(|check| check.counts_as);
        counts.filter(|found| *found == verdict).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence() {
        use Verdict::{Fail, Inconclusive, NoData, Pass};
        assert_eq!(Verdict::over([Pass, Fail, Inconclusive, NoData]), Fail);
        assert_eq!(Verdict::over([Pass, Inconclusive, NoData]), Inconclusive);
        assert_eq!(Verdict::over([Pass, NoData]), NoData);
        assert_eq!(Verdict::over([Pass]), Pass);
        assert_eq!(Verdict::over([]), NoData, "nothing that ran is no pass");
    }

    #[test]
    fn no_mapping_turns_missing_data_or_a_failure_into_a_pass() {
        for verdict in [Verdict::NoData, Verdict::Fail] {
            for mapping in Mapping::ALL {
                assert_ne!(verdict.mapped(mapping), Verdict::Pass);
            }
        }
        assert_eq!(Verdict::Inconclusive.mapped(Mapping::Pass), Verdict::Pass);
        assert_eq!(
            Verdict::Inconclusive.mapped(Mapping::Report),
            Verdict::Inconclusive
        );
        assert_eq!(Verdict::NoData.mapped(Mapping::Fail), Verdict::Fail);
    }
}
