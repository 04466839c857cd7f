//! The figures that a rule can bound, by name.

use std::borrow::Cow;

use policysim_policy::nearest;

use crate::gaps::Line;
use crate::run::WaitKind;

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// A whole number.
    Count,
    /// A number per hour of active agent time.
    PerHour,
    /// A number per run.
    PerRun,
    /// A share of runs, hangs or waits, from 0 to 1.
    Share,
    /// A time, in ms.
    Span,
}

impl Unit {
    /// What completes "expected …" where a value does not read.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Count => "a whole number such as 300",
            Self::PerHour | Self::PerRun => "a number such as 0.5",
            Self::Share => "a share such as \"1%\" or 0.01",
            Self::Span => "a duration such as \"300s\"",
        }
    }

    /// The end of a name that says the unit in JSON.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::PerHour => "per_hour",
            Self::PerRun => "per_run",
            Self::Share => "share",
            Self::Span => "ms",
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// The policy alone.
    Policy,
    /// What the policy does to the recorded runs.
    Replay,
    /// Simulated parents that wait for the recorded runs.
    Settlement,
    /// Recorded waits and the readings of the policy's idle clock.
    Silences,
    /// The dataset's own counts.
    Telemetry,
}

/// One figure.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Metric {
    /// Share of parents' time spent in waits.
    BlockedShare,
    /// Share of hung runs killed within their record.
    DetectedShare,
    /// Last activity to firing, of runs that hung.
    DetectionTime,
    /// Expired waits per run.
    ExpiriesPerRun,
    /// Runs killed though alive.
    FalseKillRate,
    /// The same per hour of active agent time.
    FalseKillsPerHour,
    /// Share of waits that sizing leaves out.
    FlaggedShare,
    /// Runs labelled as hung.
    HungRuns,
    /// All kills per run, rightly or not.
    KillRate,
    /// Share of hangs that the parent knows of within the wait they begin in, or the next.
    KnownInWait,
    /// Share of input lines that could not be read.
    MalformedShare,
    /// Healthy runs that a parent took for failed when a wait expired.
    MisreadRate,
    /// Runs not labelled as hung.
    Runs,
    /// Sessions that the runs come from.
    Sessions,
    /// Share of hangs beginning inside a wait that settle before it is over (simulated).
    SettledInWait,
    /// Share of hangs that settle in the wait they begin in (closed form).
    SettlesInWait,
    /// Share of slot time that hung runs hold.
    SlotsHeldShare,
    /// Last activity to settling, per hung run.
    SlotTimeLost,
    /// Readings of the idle clock, or waits of a kind, or the longest reading of each run.
    Silence(Line),
    /// False and unresolved kills that are none if an event at the deadline comes first.
    Ties,
    /// Share of runs about which the record cannot tell.
    UnresolvedShare,
    /// Active time thrown away by false kills, per run.
    WorkLost,
}

impl Metric {
    /// Every metric, in the order in which they are listed.
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::FalseKillRate,
            Self::FalseKillsPerHour,
            Self::KillRate,
            Self::DetectedShare,
            Self::DetectionTime,
            Self::SettlesInWait,
            Self::SettledInWait,
            Self::KnownInWait,
            Self::MisreadRate,
            Self::ExpiriesPerRun,
            Self::BlockedShare,
            Self::SlotsHeldShare,
            Self::SlotTimeLost,
            Self::WorkLost,
            Self::Ties,
            Self::Runs,
            Self::HungRuns,
            Self::Sessions,
            Self::UnresolvedShare,
            Self::FlaggedShare,
            Self::MalformedShare,
            Self::Silence(Line::Idle),
            Self::Silence(Line::Longest),
        ];
        all.extend(WaitKind::ALL.map(|kind| Self::Silence(Line::Wait(kind))));
        all
    }

    /// The metric's name in rules and output.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::BlockedShare => "blocked_share",
            Self::DetectedShare => "detected_share",
            Self::DetectionTime => "detection_time",
            Self::ExpiriesPerRun => "expiries_per_run",
            Self::FalseKillRate => "false_kill_rate",
            Self::FalseKillsPerHour => "false_kills_per_hour",
            Self::FlaggedShare => "flagged_share",
            Self::HungRuns => "hung_runs",
            Self::KillRate => "kill_rate",
            Self::KnownInWait => "known_in_wait",
            Self::MalformedShare => "malformed_share",
            Self::MisreadRate => "misread_rate",
            Self::Runs => "runs",
            Self::Sessions => "sessions",
            Self::SettledInWait => "settled_in_wait",
            Self::SettlesInWait => "settles_in_wait",
            Self::SlotsHeldShare => "slots_held_share",
            Self::SlotTimeLost => "slot_time_lost",
            Self::Silence(Line::Idle) => "idle_gap",
            Self::Silence(Line::Longest) => "longest_idle_gap",
            Self::Silence(Line::Wait(kind)) => return Cow::Owned(format!("wait.{}", kind.name())),
            // the hand-offs that an abort cut are no line of their own in a rule
            Self::Silence(Line::HandOff) => "wait.hand_off",
            Self::Ties => "ties",
            Self::UnresolvedShare => "unresolved_share",
            Self::WorkLost => "work_lost",
        })
    }

    /// The metric of that name.
    ///
    /// # Errors
    /// The nearest name, where one is near.
    pub fn find(name: &str) -> Result<Self, Option<String>> {
        let all = Self::all();
        if let Some(found) = all.iter().find(|metric| metric.name() == name) {
            return Ok(*found);
        }
        let names: Vec<String> = all
            .iter()
            .map(|metric| metric.name().into_owned())
            .collect();
        Err(nearest(name, names.iter().map(String::as_str)).map(ToOwned::to_owned))
    }

    /// What it is counted in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::BlockedShare
            | Self::DetectedShare
            | Self::FalseKillRate
            | Self::FlaggedShare
            | Self::KillRate
            | Self::KnownInWait
            | Self::MalformedShare
            | Self::MisreadRate
            | Self::SettledInWait
            | Self::SettlesInWait
            | Self::SlotsHeldShare
            | Self::UnresolvedShare => Unit::Share,
            Self::DetectionTime | Self::Silence(_) | Self::SlotTimeLost | Self::WorkLost => {
                Unit::Span
            }
            Self::ExpiriesPerRun => Unit::PerRun,
            Self::FalseKillsPerHour => Unit::PerHour,
            Self::HungRuns | Self::Runs | Self::Sessions | Self::Ties => Unit::Count,
        }
    }

    /// Where it comes from.
    pub const fn source(self) -> Source {
        match self {
            Self::SettlesInWait => Source::Policy,
            Self::BlockedShare
            | Self::ExpiriesPerRun
            | Self::KnownInWait
            | Self::MisreadRate
            | Self::SettledInWait
            | Self::SlotsHeldShare => Source::Settlement,
            Self::Silence(_) => Source::Silences,
            Self::FlaggedShare | Self::MalformedShare => Source::Telemetry,
            _ => Source::Replay,
        }
    }

    /// Whether a rule must say which quantile is meant.
    pub const fn takes_quantile(self) -> bool {
        matches!(self, Self::DetectionTime | Self::Silence(_))
    }

    /// Whether a rule may be about kills of one cause.
    pub const fn takes_cause(self) -> bool {
        matches!(
            self,
            Self::FalseKillRate | Self::FalseKillsPerHour | Self::KillRate
        )
    }

    /// Whether a rule may be about one stratum, or every stratum of a key.
    pub const fn takes_strata(self) -> bool {
        matches!(
            self,
            Self::DetectedShare | Self::FalseKillRate | Self::KillRate
        )
    }

    /// The policy keys that decide it, the first the one to look at first.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::BlockedShare
            | Self::ExpiriesPerRun
            | Self::KnownInWait
            | Self::MisreadRate
            | Self::SettledInWait
            | Self::SettlesInWait
            | Self::SlotsHeldShare => &[
                "idle.window",
                "task_wait.timeout",
                "kill.delay",
                "kill.grace",
            ],
            Self::DetectedShare
            | Self::DetectionTime
            | Self::FalseKillRate
            | Self::FalseKillsPerHour
            | Self::KillRate
            | Self::SlotTimeLost
            | Self::Ties
            | Self::UnresolvedShare
            | Self::WorkLost => &["idle.window", "total.budget", "turns.cap"],
            Self::FlaggedShare
            | Self::HungRuns
            | Self::MalformedShare
            | Self::Runs
            | Self::Sessions
            | Self::Silence(_) => &[],
        }
    }

    /// What it is counted over.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::DetectedShare
            | Self::DetectionTime
            | Self::KnownInWait
            | Self::SettledInWait
            | Self::SlotTimeLost => "hangs",
            Self::FalseKillsPerHour => "active seconds",
            Self::FlaggedShare | Self::Silence(Line::HandOff | Line::Wait(_)) => "waits",
            Self::MalformedShare => "lines",
            Self::Silence(Line::Idle | Line::Longest) => "readings",
            _ => "runs",
        }
    }

    /// What it says, in a few words.
    pub fn doc(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::BlockedShare => "share of parents' time spent in waits (simulated)",
            Self::DetectedShare => "share of hung runs killed within their record",
            Self::DetectionTime => "last activity to firing, of hung runs; a quantile",
            Self::ExpiriesPerRun => "expired waits per run (simulated)",
            Self::FalseKillRate => "runs killed though alive, per run not labelled as hung",
            Self::FalseKillsPerHour => "false kills per hour of active agent time",
            Self::FlaggedShare => "share of waits flagged so that sizing leaves them out",
            Self::HungRuns => "runs labelled as hung",
            Self::KillRate => "kills per run, rightly or not",
            Self::KnownInWait => {
                "share of hangs that the parent knows of within the first wait (simulated)"
            }
            Self::MisreadRate => "healthy runs taken for failed when a wait expired (simulated)",
            Self::MalformedShare => "share of input lines that could not be read",
            Self::Runs => "runs not labelled as hung",
            Self::Sessions => "sessions that the runs come from",
            Self::SettledInWait => {
                "share of hangs beginning inside a wait that settle before it is over (simulated)"
            }
            Self::SlotsHeldShare => "share of slot time that hung runs hold (simulated)",
            Self::SettlesInWait => {
                "share of hangs that settle in the wait they begin in (closed form, no data)"
            }
            Self::SlotTimeLost => "last activity to settling, mean per hung run",
            Self::Silence(Line::Idle) => "readings of the policy's idle clock; a quantile",
            Self::Silence(Line::Longest) => {
                "longest reading of the idle clock of each run; a quantile"
            }
            Self::Silence(Line::HandOff) => "hand-offs, cut ones included; a quantile",
            Self::Silence(Line::Wait(kind)) => {
                return Cow::Owned(format!("waits of kind {}; a quantile", kind.name()));
            }
            Self::Ties => "kills that are none if an event at the deadline comes first",
            Self::UnresolvedShare => "share of runs about which the record cannot tell",
            Self::WorkLost => "active time thrown away by false kills, mean per run",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        let all = Metric::all();
        for metric in &all {
            assert_eq!(Metric::find(&metric.name()), Ok(*metric));
            assert!(!metric.doc().is_empty());
        }
        let mut names: Vec<_> = all.iter().map(|metric| metric.name()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn a_mistyped_name_has_a_nearest_one() {
        let check = |name: &str, near: Option<&str>| {
            assert_eq!(
                Metric::find(name),
                Err(near.map(ToOwned::to_owned)),
                "{name}"
            );
        };
        check("false_kil_rate", Some("false_kill_rate"));
        check("wait.tol", Some("wait.tool"));
        check("detection", Some("detection_time"));
        check("zzz", None);
    }
}
