//! The figures that a rule can bound, by name: one table that reading, output, schema and README go by.

use std::borrow::Cow;

use policysim_policy::nearest;

use crate::gaps::Line;
use crate::run::WaitKind;
use crate::settle::Numbers;

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
    /// The readings of the idle clock against the window: the watchdog as a failure detector.
    Detector,
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
#[allow(missing_docs)] // each has its sentence in the table below
pub enum Metric {
    BlockedShare,
    ClosedRate,
    CompoundedRunRate,
    CostPerHang,
    CostPerRun,
    DetectedShare,
    DetectionBound,
    DetectionTime,
    DuplicatesPerRun,
    ExpiriesPerRun,
    FalseKillRate,
    FalseKillsPerHour,
    FlaggedShare,
    HangToKnowledge,
    HungRuns,
    KillRate,
    KilledEarlyShare,
    KnownInWait,
    KnownWithin2Waits,
    KnownWithin3Waits,
    MalformedShare,
    MeanDetectionTime,
    MeanHangToKnowledge,
    MisreadRate,
    MissedShare,
    MistakeRecurrence,
    Mistakes,
    MistakesPerActiveHour,
    NewlyKilled,
    NewlyKilledRate,
    NewlySpared,
    NewlySparedRate,
    ObservedRunRate,
    PerGapRate,
    QueryAccuracy,
    Runs,
    Sessions,
    SettledInWait,
    SettlesInWait,
    /// Readings of the idle clock, or waits of a kind, or the longest reading of each run.
    Silence(Line),
    /// A number of the simulation by its place in [`Numbers::named`].
    Simulated(u8),
    SimulatedFalseKillRate,
    SlotTimeLost,
    SlotsHeldShare,
    StoppedRate,
    Ties,
    TrueKillRate,
    UnresolvedShare,
    WaitsPerRun,
    WorkLost,
}

/// What the table says of a metric.
struct Row {
    metric: Metric,
    name: &'static str,
    unit: Unit,
    source: Source,
    /// What it is counted over.
    noun: &'static str,
    doc: &'static str,
}

const fn row(
    metric: Metric,
    name: &'static str,
    (unit, source, noun): (Unit, Source, &'static str),
    doc: &'static str,
) -> Row {
    Row {
        metric,
        name,
        unit,
        source,
        noun,
        doc,
    }
}

use Source::{Detector, Policy, Replay, Settlement, Telemetry};
use Unit::{Count, PerHour, PerRun, Share, Span};

/// Every metric but the lines of silences, in the order in which they are listed.
#[rustfmt::skip]
const ROWS: [Row; 48] = [
    row(Metric::FalseKillRate, "false_kill_rate", (Share, Replay, "runs"), "runs killed though alive, per run not labelled as hung"),
    row(Metric::FalseKillsPerHour, "false_kills_per_hour", (PerHour, Replay, "active seconds"), "false kills per hour of active agent time"),
    row(Metric::KillRate, "kill_rate", (Share, Replay, "runs"), "kills per run, rightly or not"),
    row(Metric::TrueKillRate, "true_kill_rate", (Share, Replay, "runs"), "kills that the record confirms, per run not labelled as hung"),
    row(Metric::NewlyKilledRate, "newly_killed_rate", (Share, Replay, "runs"), "runs that this policy kills falsely or in doubt and the one named by against does not, per run"),
    row(Metric::NewlySparedRate, "newly_spared_rate", (Share, Replay, "runs"), "runs that the policy named by against kills falsely or in doubt and this one does not, per run"),
    row(Metric::NewlyKilled, "newly_killed", (Count, Replay, "runs"), "the number of newly killed runs in this very window"),
    row(Metric::NewlySpared, "newly_spared", (Count, Replay, "runs"), "the number of newly spared runs in this very window"),
    row(Metric::DetectedShare, "detected_share", (Share, Replay, "hangs"), "share of hung runs killed within their record"),
    row(Metric::MissedShare, "missed_share", (Share, Replay, "hangs"), "share of hung runs not killed within their record"),
    row(Metric::KilledEarlyShare, "killed_early_share", (Share, Replay, "hangs"), "share of hung runs killed before they hung"),
    row(Metric::DetectionTime, "detection_time", (Span, Replay, "hangs"), "last activity to firing, of hung runs; a quantile"),
    row(Metric::MeanDetectionTime, "mean_detection_time", (Span, Replay, "hangs"), "last activity to firing, mean per hung run"),
    row(Metric::DetectionBound, "detection_bound", (Span, Policy, "hangs"), "longest time from the last activity to the firing: the idle window (no data; a poll adds its period)"),
    row(Metric::PerGapRate, "per_gap_rate", (Share, Detector, "silences"), "mistakes per silence: ended silences of at least the window"),
    row(Metric::Mistakes, "mistakes", (Count, Detector, "silences"), "the number of mistakes"),
    row(Metric::MistakesPerActiveHour, "mistakes_per_active_hour", (PerHour, Detector, "silences"), "mistakes per hour of active time"),
    row(Metric::MistakeRecurrence, "mistake_recurrence", (Span, Detector, "silences"), "mean active time between mistakes"),
    row(Metric::QueryAccuracy, "query_accuracy", (Share, Detector, "silences"), "share of active time at which a run is not suspected"),
    row(Metric::ObservedRunRate, "observed_run_rate", (Share, Detector, "runs"), "runs with a mistake, per run"),
    row(Metric::CompoundedRunRate, "compounded_run_rate", (Share, Detector, "silences"), "what the rate per silence would do to runs if silences were independent"),
    row(Metric::SettlesInWait, "settles_in_wait", (Share, Policy, "hangs"), "share of hangs that settle in the wait they begin in (closed form, no data)"),
    row(Metric::SettledInWait, "settled_in_wait", (Share, Settlement, "hangs"), "share of hangs beginning inside a wait that settle before it is over (simulated)"),
    row(Metric::KnownInWait, "known_in_wait", (Share, Settlement, "hangs"), "share of hangs that the parent knows of within the first wait (simulated)"),
    row(Metric::KnownWithin2Waits, "known_within_2_waits", (Share, Settlement, "hangs"), "the same within two waits (simulated)"),
    row(Metric::KnownWithin3Waits, "known_within_3_waits", (Share, Settlement, "hangs"), "the same within three waits (simulated)"),
    row(Metric::HangToKnowledge, "hang_to_knowledge", (Span, Settlement, "hangs"), "from the hang to the parent's knowledge, of the hangs it comes to know of; a quantile (simulated)"),
    row(Metric::MeanHangToKnowledge, "mean_hang_to_knowledge", (Span, Settlement, "hangs"), "the same on average, of all hangs (simulated)"),
    row(Metric::MisreadRate, "misread_rate", (Share, Settlement, "runs"), "healthy runs taken for failed when a wait expired (simulated)"),
    row(Metric::StoppedRate, "stopped_rate", (Share, Settlement, "runs"), "healthy runs that a parent stopped (simulated)"),
    row(Metric::ClosedRate, "closed_rate", (Share, Settlement, "runs"), "healthy runs killed with the parent's turn (simulated)"),
    row(Metric::SimulatedFalseKillRate, "simulated_false_kill_rate", (Share, Settlement, "runs"), "healthy runs killed by their watchdog (simulated)"),
    row(Metric::ExpiriesPerRun, "expiries_per_run", (PerRun, Settlement, "runs"), "expired waits per run (simulated)"),
    row(Metric::WaitsPerRun, "waits_per_run", (PerRun, Settlement, "runs"), "waits per run (simulated)"),
    row(Metric::DuplicatesPerRun, "duplicates_per_run", (PerRun, Settlement, "runs"), "runs started twice because of a misreading, per run (simulated)"),
    row(Metric::BlockedShare, "blocked_share", (Share, Settlement, "ms"), "share of parents' time spent in waits (simulated)"),
    row(Metric::SlotsHeldShare, "slots_held_share", (Share, Settlement, "ms"), "share of slot time that hung runs hold (simulated)"),
    row(Metric::SlotTimeLost, "slot_time_lost", (Span, Replay, "hangs"), "last activity to settling, mean per hung run"),
    row(Metric::WorkLost, "work_lost", (Span, Replay, "runs"), "active time thrown away by false kills, mean per run"),
    row(Metric::CostPerRun, "cost_per_run", (Span, Replay, "runs"), "work lost, restarts and slot time lost per run, at hang_rate"),
    row(Metric::CostPerHang, "cost_per_hang", (Span, Replay, "runs"), "the same per run that hangs"),
    row(Metric::Ties, "ties", (Count, Replay, "runs"), "kills that are none if an event at the deadline comes first"),
    row(Metric::Runs, "runs", (Count, Replay, "runs"), "runs not labelled as hung"),
    row(Metric::HungRuns, "hung_runs", (Count, Replay, "runs"), "runs labelled as hung"),
    row(Metric::Sessions, "sessions", (Count, Replay, "runs"), "sessions that the runs come from"),
    row(Metric::UnresolvedShare, "unresolved_share", (Share, Replay, "runs"), "share of runs about which the record cannot tell"),
    row(Metric::FlaggedShare, "flagged_share", (Share, Telemetry, "waits"), "share of waits flagged so that sizing leaves them out"),
    row(Metric::MalformedShare, "malformed_share", (Share, Telemetry, "lines"), "share of input lines that could not be read"),
];

impl Metric {
    /// Every metric, in the order in which they are listed.
    pub fn all() -> Vec<Self> {
        let lines = [Line::Idle, Line::Longest].into_iter();
        let lines = lines
            .chain(WaitKind::ALL.map(Line::Wait))
            .map(Self::Silence);
        let numbers =
            (0..Numbers::default().named().len()).map(|place| Self::Simulated(place as u8));
        let rows = ROWS.iter().map(|row| row.metric);
        rows.chain(lines).chain(numbers).collect()
    }

    /// The name that a number of the simulation has in `settle`.
    fn number(self) -> Option<&'static str> {
        let Self::Simulated(place) = self else {
            return None;
        };
        let named = Numbers::default().named();
        named.get(usize::from(place)).map(|(name, _)| *name)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.metric == self)
    }

    /// The metric's name in rules and output.
    pub fn name(self) -> Cow<'static, str> {
        if let Some(name) = self.number() {
            return Cow::Owned(format!("simulated.{name}"));
        }
        Cow::Borrowed(match (self, self.row()) {
            (_, Some(row)) => row.name,
            (Self::Silence(Line::Idle), None) => "idle_gap",
            (Self::Silence(Line::Longest), None) => "longest_idle_gap",
            (Self::Silence(Line::Wait(kind)), None) => {
                return Cow::Owned(format!("wait.{}", kind.name()));
            }
            // the hand-offs that an abort cut are no line of their own in a rule
            (_, None) => "wait.hand_off",
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
    pub fn unit(self) -> Unit {
        match (self.row(), self.number()) {
            (Some(row), _) => row.unit,
            (None, Some(name)) if !name.ends_with("_ms") => Unit::Count,
            (None, _) => Unit::Span,
        }
    }

    /// Where it comes from.
    pub fn source(self) -> Source {
        match (self.row(), self) {
            (Some(row), _) => row.source,
            (None, Self::Simulated(_)) => Source::Settlement,
            (None, _) => Source::Silences,
        }
    }

    /// Whether a rule must say which quantile is meant.
    pub const fn takes_quantile(self) -> bool {
        matches!(
            self,
            Self::DetectionTime | Self::HangToKnowledge | Self::Silence(_)
        )
    }

    /// Whether a rule may be about kills of one cause.
    pub const fn takes_cause(self) -> bool {
        matches!(
            self,
            Self::FalseKillRate | Self::FalseKillsPerHour | Self::KillRate
        )
    }

    /// Whether a rule may be about one stratum, or every stratum of a key: it is a share of runs or hangs.
    pub const fn takes_strata(self) -> bool {
        matches!(
            self,
            Self::DetectedShare
                | Self::FalseKillRate
                | Self::KillRate
                | Self::KilledEarlyShare
                | Self::MissedShare
                | Self::NewlyKilledRate
                | Self::NewlySparedRate
                | Self::TrueKillRate
        )
    }

    /// Whether a rule must name the policy that it is compared with.
    pub const fn takes_against(self) -> bool {
        matches!(
            self,
            Self::NewlyKilled | Self::NewlyKilledRate | Self::NewlySpared | Self::NewlySparedRate
        )
    }

    /// Whether a rule must say which share of runs hangs.
    pub const fn takes_hang_rate(self) -> bool {
        matches!(self, Self::CostPerHang | Self::CostPerRun)
    }

    /// Whether no number of runs shows that it is nothing, or everything.
    pub fn is_estimated(self) -> bool {
        let never_exact = matches!(self.source(), Source::Settlement | Source::Detector);
        let counted = self.unit() == Unit::Count || matches!(self, Self::Simulated(_));
        self.takes_strata() || self.takes_cause() || never_exact && !counted
    }

    /// Its name in the JSON of `settle` and of a sweep with `--settle`, where it is one of their figures.
    pub const fn in_settle(self) -> Option<&'static str> {
        Some(match self {
            Self::BlockedShare => "blocked_share",
            Self::ClosedRate => "closed_rate",
            Self::DuplicatesPerRun => "duplicates_per_run",
            Self::ExpiriesPerRun => "expiries_per_run",
            Self::KnownInWait => "known_within_1_wait",
            Self::KnownWithin2Waits => "known_within_2_waits",
            Self::KnownWithin3Waits => "known_within_3_waits",
            Self::MeanHangToKnowledge => "hang_to_knowledge_mean_ms",
            Self::MisreadRate => "misread_rate",
            Self::SettledInWait => "settled_in_wait",
            Self::SimulatedFalseKillRate => "false_kill_rate",
            Self::SlotsHeldShare => "slot_time_held_by_hung_share",
            Self::StoppedRate => "stopped_rate",
            Self::WaitsPerRun => "waits_per_run",
            _ => return None,
        })
    }

    /// The policy keys that decide it, the first the one to look at first.
    pub fn keys(self) -> &'static [&'static str] {
        match (self, self.source()) {
            (Self::HungRuns | Self::Runs | Self::Sessions, _)
            | (_, Source::Silences | Source::Telemetry) => &[],
            (Self::DetectionBound, _) | (_, Source::Detector) => &["idle.window", "idle.rearm"],
            (_, Source::Settlement | Source::Policy) => &[
                "idle.window",
                "task_wait.timeout",
                "kill.delay",
                "kill.grace",
            ],
            (_, Source::Replay) => &["idle.window", "total.budget", "turns.cap"],
        }
    }

    /// What it is counted over.
    pub fn noun(self) -> &'static str {
        match (self, self.row()) {
            (_, Some(row)) => row.noun,
            (Self::Silence(Line::Idle | Line::Longest), None) => "readings",
            (Self::Simulated(_), None) => "runs",
            (_, None) => "waits",
        }
    }

    /// What it says, in a few words.
    pub fn doc(self) -> Cow<'static, str> {
        if let Some(name) = self.number() {
            return Cow::Owned(format!(
                "the number {name} of settle, exact for these runs, parents and seed"
            ));
        }
        Cow::Borrowed(match (self, self.row()) {
            (_, Some(row)) => row.doc,
            (Self::Silence(Line::Idle), None) => "readings of the policy's idle clock; a quantile",
            (Self::Silence(Line::Longest), None) => {
                "longest reading of the idle clock of each run; a quantile"
            }
            (Self::Silence(Line::Wait(kind)), None) => {
                return Cow::Owned(format!("waits of kind {}; a quantile", kind.name()));
            }
            (_, None) => "hand-offs, cut ones included; a quantile",
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
        // a metric that is missing in the table would be taken for a line of silences
        assert!(all.iter().all(|metric| matches!(
            metric,
            Metric::Silence(_) | Metric::Simulated(_)
        ) != metric.row().is_some()));
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
        check("simulated.retrys", Some("simulated.retries"));
        check("zzz", None);
    }
}
