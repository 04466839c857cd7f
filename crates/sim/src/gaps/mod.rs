//! Waits, idle-clock readings and run sizes, collected from a fleet as sorted samples.

pub mod counted;
pub mod curve;
pub mod drift;
pub mod figures;
pub mod findings;
pub mod sample;

use std::collections::BTreeMap;

use policysim_policy::{Policy, SilenceEnd};
use rayon::prelude::*;

use crate::ledger::ledger;
use crate::run::{EventFlags, Fleet, RecordedEnd, Run, RunEvent, RunStatus, WaitKind};
use crate::silence::{self, Gap, without_limits};
use crate::stats::quantile::quantile_type7;
use crate::stats::{self, Level, Prob, QuantileEstimate};
use crate::strata::StratumKey;
use crate::sweep::sized_runs;

pub use figures::{Figures, Line, LineFigures, Questions, figures};
pub use findings::{Finding, Setting};
pub use sample::{Cut, GapQuantile, Method, SessionKey, Silences};

/// What samples can be grouped by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GapKey {
    /// A property of the run.
    Stratum(StratumKey),
    /// The tool that was waited for.
    Tool,
}

impl GapKey {
    /// The key's name in options, files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stratum(key) => key.name(),
            Self::Tool => "tool",
        }
    }
}

/// Reasons why a wait is left out of sizing, as flags of its event; any of them can be put back.
pub const LEFT_OUT: [(EventFlags, &str); 4] = [
    (EventFlags::AMBIGUOUS_APPROVAL, "may hold an approval"),
    (EventFlags::SUSPECTED_SUSPEND, "may hold a host suspend"),
    (EventFlags::RATE_LIMITED, "waits for a usage limit"),
    (EventFlags::SPANS_UNDATED, "spans undated records"),
];

/// Whether a wait of an event with those flags is left out.
pub(crate) fn is_left_out(flags: EventFlags) -> bool {
    LEFT_OUT.iter().any(|(flag, _)| flags.has(*flag))
}

/// The waits of one kind in one group.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WaitSamples {
    /// All recorded waits, as `DEFINITIONS.md` counts them.
    pub n: u64,
    /// Their sum, ms.
    pub sum_ms: u64,
    /// The longest, ms; 0 if there are none.
    pub max_ms: u64,
    /// Those that sizing uses, ms, ascending.
    pub sized_ms: Vec<u64>,
    /// Waits left out of sizing, by the first reason of [`LEFT_OUT`] that holds.
    pub left_out: [u64; LEFT_OUT.len()],
    /// Sized waits that are upper bounds of a silence.
    pub upper_bounds: u64,
    /// Sized waits whose true end was not observed.
    pub censored: u64,
    /// What quantiles are taken of: the sized waits by session; those of [`WaitKind::Censored`] are all cut.
    pub silences: Silences,
    /// When the run of each sized wait of a dated run started, by the wait's length: the earliest, ms since the epoch.
    pub first_seen_ms: BTreeMap<u64, i64>,
}

impl WaitSamples {
    /// Whether the wait is sized.
    fn add(&mut self, ms: u64, flags: EventFlags, put_back: EventFlags) -> bool {
        self.n += 1;
        // A damaged table may hold any number; its sum stops at the largest there is.
        self.sum_ms = self.sum_ms.saturating_add(ms);
        self.max_ms = self.max_ms.max(ms);
        let reason = LEFT_OUT
            .iter()
            .position(|(flag, _)| flags.has(*flag) && !put_back.has(*flag));
        if let Some(reason) = reason {
            self.left_out[reason] += 1;
            return false;
        }
        self.sized_ms.push(ms);
        self.upper_bounds += u64::from(flags.has(EventFlags::UPPER_BOUND));
        self.censored += u64::from(flags.has(EventFlags::CENSORED));
        true
    }

    fn add_silence(&mut self, run: &Run, session: Option<&SessionKey>, ms: u64, cut: Option<Cut>) {
        self.silences.add(session, ms, cut);
        if run.started_at_ms != 0 {
            let first = self.first_seen_ms.entry(ms).or_insert(run.started_at_ms);
            *first = run.started_at_ms.min(*first);
        }
    }
}

/// The waits of `fleet` by group and kind, groups sorted by name, kinds in table order.
///
/// Without a key there is one group with an empty name. `put_back` names the flags whose waits are
/// sized all the same. Waits of unanswered prompts and outside runs count, as in `DEFINITIONS.md`.
pub fn waits(
    fleet: &Fleet,
    key: Option<GapKey>,
    put_back: EventFlags,
) -> BTreeMap<(String, WaitKind), WaitSamples> {
    let mut found: BTreeMap<(String, WaitKind), WaitSamples> = BTreeMap::new();
    for run in &fleet.runs {
        let session = SessionKey::of(run);
        for event in &run.events {
            let Some(wait) = event.wait else { continue };
            let group = match key {
                None => "",
                Some(GapKey::Stratum(key)) => key.group(run),
                Some(GapKey::Tool) => match fleet.symbols.name(event.name) {
                    "" => continue,
                    name => name,
                },
            };
            let samples = found.entry((group.to_owned(), wait.kind)).or_default();
            if !samples.add(wait.ms, event.flags, put_back) {
                continue;
            }
            let cut = match wait.kind {
                WaitKind::Censored => Some(Cut::Abort),
                _ if event.flags.has(EventFlags::CENSORED) => Some(Cut::Unknown),
                _ => None,
            };
            samples.add_silence(run, session.as_ref(), wait.ms, cut);
        }
    }
    for samples in found.values_mut() {
        samples.sized_ms.sort_unstable();
    }
    found
}

/// The quantiles that tables of gaps show.
pub const QUANTILES: [&str; 5] = ["0.5", "0.9", "0.95", "0.99", "0.999"];

/// The [`QUANTILES`] of samples in ascending order, each with its order-statistic interval.
///
/// # Panics
/// Never: the probabilities are literals.
pub fn quantiles(sorted: &[u64]) -> [QuantileEstimate; QUANTILES.len()] {
    QUANTILES.map(|p| {
        let p: Prob = p.parse().expect("a literal probability");
        stats::quantile(sorted, p)
    })
}

/// The [`QUANTILES`] of samples in ascending order by Hyndman & Fan's type 7, the default of spreadsheets and numpy.
pub fn type7(sorted: &[u64]) -> [Option<f64>; QUANTILES.len()] {
    asked().map(|p| quantile_type7(sorted, p))
}

/// The [`QUANTILES`] as probabilities.
///
/// # Panics
/// Never: they are literals.
pub fn asked() -> [Prob; QUANTILES.len()] {
    QUANTILES.map(|p| p.parse().expect("a literal probability"))
}

/// The [`QUANTILES`] of silences, some of them cut, at 95 %.
pub fn latent_quantiles(silences: &Silences) -> Vec<GapQuantile> {
    silences.quantiles(&asked(), Level::P95)
}

/// The idle clock's readings of one group under one policy.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IdleReadings {
    /// Gaps whose end was observed, ms, ascending.
    pub observed_ms: Vec<u64>,
    /// Readings at which the record stopped, ms, ascending: the gap is longer.
    pub censored_ms: Vec<u64>,
    /// The longest observed gap of each run but the hung ones, ms, ascending: what a false kill per run depends on.
    pub longest_ms: Vec<u64>,
    /// Runs that were read.
    pub runs: u64,
    /// The readings by session, with what cut them; without those of a hang, which is no silence of a living run.
    pub silences: Silences,
    /// Readings of runs labelled as hung that their record or end cut.
    pub hangs: u64,
    /// The longest of those of each run but the hung ones, cut if the cut one is the longest.
    pub longest: Silences,
    /// Runs that the record says a watchdog killed.
    pub killed_runs: u64,
    /// Events within the runs that are flagged as a suspected host suspend.
    pub suspends: u64,
    /// When the run of each reading that ended started, by its length: the earliest, ms since the epoch.
    pub first_seen_ms: BTreeMap<u64, i64>,
}

impl Cut {
    /// What cut the reading of a clock that was read at `to_ms` because of `ended`, in a run that ended as `end` at
    /// `end_ms`; `None` when it ended by itself.
    pub(crate) fn of(end: RecordedEnd, end_ms: u64, to_ms: u64, ended: SilenceEnd) -> Option<Self> {
        let stopped = match end {
            RecordedEnd::Aborted => Self::Abort,
            RecordedEnd::Hung => Self::Hang,
            RecordedEnd::Killed => Self::Kill,
            _ => Self::LogEnd,
        };
        // The event that tells of a stop is no sign of life. One without an outcome only closes the run's last segment.
        let by_stop = stopped != Self::LogEnd
            && to_ms >= end_ms
            && matches!(ended, SilenceEnd::Ended | SilenceEnd::Switched);
        (ended == SilenceEnd::Cut || by_stop).then_some(stopped)
    }
}

/// The idle clock's readings of the sized runs of `fleet` under the structure of `policy`, by group.
///
/// Runs labelled as hung are read too: their last reading is cut by the end of the record. Readings of
/// 0 ms, between events of one stamp, are no gaps.
pub fn idle_readings(
    fleet: &Fleet,
    policy: &Policy,
    key: Option<StratumKey>,
) -> BTreeMap<String, IdleReadings> {
    let structure = without_limits(policy);
    let runs: Vec<&Run> = sized_runs(fleet).collect();
    let gaps: Vec<Vec<Gap>> = runs
        .par_iter()
        .map(|run| silence::gaps(&structure, run, &fleet.symbols))
        .collect();
    let mut found: BTreeMap<String, IdleReadings> = BTreeMap::new();
    for (run, gaps) in runs.iter().zip(gaps) {
        let group = key.map_or("", |key| key.group(run));
        let readings = found.entry(group.to_owned()).or_default();
        readings.add(run, &gaps);
    }
    for readings in found.values_mut() {
        readings.observed_ms.sort_unstable();
        readings.censored_ms.sort_unstable();
        readings.longest_ms.sort_unstable();
    }
    found
}

impl IdleReadings {
    fn add(&mut self, run: &Run, gaps: &[Gap]) {
        let session = SessionKey::of(run);
        self.runs += 1;
        self.killed_runs += u64::from(run.end == RecordedEnd::Killed);
        let suspended = |event: &&RunEvent| event.flags.has(EventFlags::SUSPECTED_SUSPEND);
        self.suspends += run.events.iter().filter(suspended).count() as u64;
        let mut longest: Option<(u64, Option<Cut>)> = None;
        let mut longest_ended = None;
        for gap in gaps {
            let cut = Cut::of(run.end, run.end_ms, gap.to_ms, gap.end);
            if cut.is_none() {
                longest_ended = longest_ended.max(Some(gap.ms));
            }
            if gap.ms == 0 {
                continue;
            }
            if cut == Some(Cut::Hang) {
                self.hangs += 1;
                self.censored_ms.push(gap.ms);
                continue;
            }
            self.silences.add(session.as_ref(), gap.ms, cut);
            // of equals the cut one: it is the longer
            if longest.is_none_or(|(ms, _)| gap.ms > ms || gap.ms == ms && cut.is_some()) {
                longest = Some((gap.ms, cut));
            }
            if cut.is_some() {
                self.censored_ms.push(gap.ms);
                continue;
            }
            self.observed_ms.push(gap.ms);
            if run.started_at_ms != 0 {
                let first = self
                    .first_seen_ms
                    .entry(gap.ms)
                    .or_insert(run.started_at_ms);
                *first = run.started_at_ms.min(*first);
            }
        }
        if run.end == RecordedEnd::Hung {
            return;
        }
        self.longest_ms.extend(longest_ended);
        if let Some((ms, cut)) = longest.or(longest_ended.map(|ms| (ms, None))) {
            self.longest.add(session.as_ref(), ms, cut);
        }
    }
}

/// How large the runs of one group are: the figures that size budgets and caps.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunSizes {
    /// Span of the record, ms, ascending.
    pub wall_ms: Vec<u64>,
    /// Span without what waited for humans, slept or lay between segments, ms, ascending.
    pub active_ms: Vec<u64>,
    /// Model turns, ascending.
    pub turns: Vec<u64>,
    /// Finished tool calls, ascending.
    pub tools: Vec<u64>,
}

/// The sizes of the runs of `fleet` by group of `key`, sorted by name; one group without a key.
///
/// Runs labelled as hung are left out: budgets and caps are sized on what healthy runs need.
pub fn run_sizes(fleet: &Fleet, key: Option<StratumKey>) -> BTreeMap<String, RunSizes> {
    let mut found: BTreeMap<String, RunSizes> = BTreeMap::new();
    for run in sized_runs(fleet).filter(|run| run.end != RecordedEnd::Hung) {
        let group = key.map_or("", |key| key.group(run));
        let sizes = found.entry(group.to_owned()).or_default();
        sizes.wall_ms.push(run.end_ms);
        sizes.active_ms.push(ledger(run, run.end_ms).active_ms());
        sizes.turns.push(u64::from(run.measured.turns));
        sizes.tools.push(u64::from(run.measured.tools));
    }
    for sizes in found.values_mut() {
        sizes.wall_ms.sort_unstable();
        sizes.active_ms.sort_unstable();
        sizes.turns.sort_unstable();
        sizes.tools.sort_unstable();
    }
    found
}

/// The number of rows of `fleet` with that status.
pub fn count_status(fleet: &Fleet, status: RunStatus) -> u64 {
    fleet.runs.iter().filter(|run| run.status == status).count() as u64
}

/// Whether an event is activity by `DEFINITIONS.md`.
pub fn is_activity(event: &RunEvent) -> bool {
    event.flags.has(EventFlags::ACTIVITY)
}

/// The instants of the first and last run's start, ms since the Unix epoch; `None` without a dated run.
pub fn window(fleet: &Fleet) -> Option<(i64, i64)> {
    let mut starts = sized_runs(fleet)
        .map(|run: &Run| run.started_at_ms)
        .filter(|&ms| ms != 0);
    let first = starts.next()?;
    Some(starts.fold((first, first), |(low, high), ms| {
        (low.min(ms), high.max(ms))
    }))
}
