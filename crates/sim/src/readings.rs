//! What the idle clock's readings say beside the replay: the watchdog as a failure detector, how kills per gap
//! add up over a run, and what the limit in force at recording hides (statistics sections 2, 4 and 10).

use std::collections::BTreeMap;

use policysim_policy::{Millis, Policy};
use rayon::prelude::*;

use crate::run::{Fleet, RecordedEnd, Run, Symbols};
use crate::silence::{gaps, without_limits};
use crate::stats::compounding::{Compounding, mean_run_rate, mean_run_rate_of};
use crate::stats::detector::{Qos, QosTable, qos};
use crate::stats::traps::{AbortEnvelope, Truncation, abort_envelope_of, is_near, missing_kills};
use crate::stats::{Counts, Exceedances, Level};
use crate::stretches::Stretches;
use crate::sweep::{Candidate, sized_runs};

/// The readings of all runs that are not labelled as hung, under one structure.
#[derive(Clone, Debug, Default)]
struct Readings {
    /// Gaps whose end was observed.
    ended: Counts,
    /// Gaps of each run, in the order of the runs.
    gaps_per_run: Vec<u64>,
    /// The longest gap of each run that has one.
    longest: Counts,
}

/// One window as a failure detector, and its kills per gap beside those per run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detector {
    /// Mistake rate, recurrence, query accuracy.
    pub qos: Qos,
    /// What independent gaps would do to runs, and what happened; `None` without gaps.
    pub compounding: Option<Compounding>,
}

/// The detector of every candidate, in their order; `None` for a window that is off.
///
/// Runs are read once per structure (what re-arms, what pauses), not once per candidate.
pub fn detectors(fleet: &Fleet, candidates: &[Candidate]) -> Vec<Option<Detector>> {
    let mut structures: Vec<Policy> = Vec::new();
    let of_candidate: Vec<usize> = candidates
        .iter()
        .map(|candidate| {
            let structure = without_limits(&candidate.policy);
            let known = structures.iter().position(|known| *known == structure);
            known.unwrap_or_else(|| {
                structures.push(structure);
                structures.len() - 1
            })
        })
        .collect();
    let readings: Vec<Readings> = structures
        .iter()
        .map(|structure| read(fleet, structure))
        .collect();
    let mut known: BTreeMap<(usize, u64), Detector> = BTreeMap::new();
    candidates
        .iter()
        .zip(of_candidate)
        .map(|(candidate, structure)| {
            let window_ms = candidate.policy.idle.window?.as_u64();
            let detector = known
                .entry((structure, window_ms))
                .or_insert_with(|| detector(&readings[structure], window_ms));
            Some(*detector)
        })
        .collect()
}

fn detector(readings: &Readings, window_ms: u64) -> Detector {
    let qos = qos(&readings.ended, window_ms);
    let runs = readings.gaps_per_run.len() as u64;
    let compounding = qos.per_gap_rate.and_then(|per_gap| {
        let compounded = mean_run_rate(per_gap, &readings.gaps_per_run)?;
        let observed = readings.longest.at_least(window_ms) as f64 / runs as f64;
        Some(Compounding {
            per_gap,
            compounded,
            observed,
            ratio: (observed > 0.0).then(|| compounded / observed),
        })
    });
    Detector { qos, compounding }
}

fn read(fleet: &Fleet, structure: &Policy) -> Readings {
    let runs: Vec<&Run> = sized_runs(fleet)
        .filter(|run| run.end != RecordedEnd::Hung)
        .collect();
    let of_runs: Vec<Vec<u64>> = runs
        .par_iter()
        .map(|run| observed(structure, run, &fleet.symbols).0)
        .collect();
    let mut readings = Readings::default();
    for gaps in of_runs {
        readings.gaps_per_run.push(gaps.len() as u64);
        if let Some(&longest) = gaps.iter().max() {
            readings.longest.add(longest, 1);
        }
        for ms in gaps {
            readings.ended.add(ms, 1);
        }
    }
    readings
}

/// The gaps of a run whose end was observed, and the silence in which its record ends, ms; gaps of 0 ms are none.
///
/// The gap before a recorded kill or abort was ended by that, not by the run.
pub(crate) fn observed(structure: &Policy, run: &Run, symbols: &Symbols) -> (Vec<u64>, u64) {
    let cut = matches!(
        run.end,
        RecordedEnd::Aborted | RecordedEnd::Hung | RecordedEnd::Killed
    );
    let all = gaps(structure, run, symbols);
    let last = all.len().saturating_sub(1);
    let mut ended = Vec::with_capacity(all.len());
    let mut open_ms = 0;
    for (index, gap) in all.iter().enumerate() {
        if gap.censored || (cut && index == last && gap.to_ms >= run.end_ms) {
            open_ms = gap.ms;
        } else if gap.ms > 0 {
            ended.push(gap.ms);
        }
    }
    (ended, open_ms)
}

/// The detector of every candidate from counted readings; see [`detectors`].
pub(crate) fn detectors_of<'s>(
    candidates: &[Candidate],
    stretches: impl Fn(usize) -> &'s Stretches,
    of_candidate: &[usize],
) -> Vec<Option<Detector>> {
    let mut tables: BTreeMap<usize, Table> = BTreeMap::new();
    let mut known: BTreeMap<(usize, u64), Detector> = BTreeMap::new();
    let mut found = Vec::with_capacity(candidates.len());
    for (candidate, &structure) in candidates.iter().zip(of_candidate) {
        let detector = candidate.policy.idle.window.map(|window| {
            let table = tables
                .entry(structure)
                .or_insert_with(|| Table::new(stretches(structure)));
            let window_ms = window.as_u64();
            *known
                .entry((structure, window_ms))
                .or_insert_with(|| table.detector(window_ms))
        });
        found.push(detector);
    }
    found
}

/// The readings under one structure, added up for many windows.
struct Table {
    gaps: QosTable,
    gaps_per_run: Counts,
    longest: Exceedances,
    /// By number of mistakes, which decides it: what independent gaps would do to runs.
    compounded: BTreeMap<u64, Option<f64>>,
}

impl Table {
    fn new(read: &Stretches) -> Self {
        Self {
            gaps: QosTable::new(&read.healthy()),
            gaps_per_run: read.gaps_per_run(),
            longest: Exceedances::new(&read.longest()),
            compounded: BTreeMap::new(),
        }
    }

    fn detector(&mut self, window_ms: u64) -> Detector {
        let qos = self.gaps.qos(window_ms);
        let compounding = qos.per_gap_rate.and_then(|per_gap| {
            let compounded = *self
                .compounded
                .entry(qos.mistakes)
                .or_insert_with(|| mean_run_rate_of(per_gap, &self.gaps_per_run));
            let compounded = compounded?;
            let runs = self.gaps_per_run.total();
            let observed = self.longest.at_least(window_ms) as f64 / runs as f64;
            Some(Compounding {
                per_gap,
                compounded,
                observed,
                ratio: (observed > 0.0).then(|| compounded / observed),
            })
        });
        Detector { qos, compounding }
    }
}

/// Where the limit in force at recording is known from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitSource {
    /// The silences before recorded kills.
    RecordedKills,
    /// The user.
    Given,
}

impl LimitSource {
    /// The source's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RecordedKills => "recorded_kills",
            Self::Given => "given",
        }
    }
}

/// What the limits in force at recording may hide.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The idle limit, ms, and how it is known.
    pub limit: Option<(u64, LimitSource)>,
    /// Runs that the record says were killed.
    pub kills: u64,
    /// Signs that gaps cut by the limit are missing.
    pub truncation: Option<Truncation>,
    /// Silences in which runs were aborted.
    aborted_ms: Counts,
    /// All other gaps of runs that live: ended, and cut. A hang is no gap.
    ended: Counts,
    cut: Counts,
}

/// Reads what was in force when `fleet` was recorded, on the idle clock of `policy`; `given` is what the user says.
///
/// A limit is found where recorded kills follow silences of one length and no run was silent for longer.
pub fn recorded(fleet: &Fleet, policy: &Policy, given: Option<Millis>) -> Recorded {
    let structure = without_limits(policy);
    let runs: Vec<&Run> = sized_runs(fleet).collect();
    let of_runs: Vec<(Vec<u64>, u64)> = runs
        .par_iter()
        .map(|run| observed(&structure, run, &fleet.symbols))
        .collect();
    let (mut killed_ms, mut found) = (Counts::default(), Recorded::default());
    for (run, (gaps, open_ms)) in runs.iter().zip(of_runs) {
        for ms in gaps {
            found.ended.add(ms, 1);
        }
        match run.end {
            RecordedEnd::Killed => killed_ms.add(open_ms, 1),
            RecordedEnd::Aborted if open_ms > 0 => found.aborted_ms.add(open_ms, 1),
            _ => {}
        }
        if open_ms > 0 && !matches!(run.end, RecordedEnd::Aborted | RecordedEnd::Hung) {
            found.cut.add(open_ms, 1);
        }
    }
    found.find_limit(&killed_ms, given);
    found
}

/// The same from counted readings.
pub(crate) fn recorded_of(read: &Stretches, given: Option<Millis>) -> Recorded {
    let mut found = Recorded {
        aborted_ms: read.aborted_ms(),
        ended: read.all(),
        cut: read.open_ms(),
        ..Recorded::default()
    };
    found.find_limit(&read.killed_ms(), given);
    found
}

impl Recorded {
    fn find_limit(&mut self, killed_ms: &Counts, given: Option<Millis>) {
        self.kills = killed_ms.total();
        let ended = &self.ended;
        let longest_ms = ended.iter().last().map_or(0, |(ms, _)| ms);
        self.limit = match given {
            Some(limit) => Some((limit.as_u64(), LimitSource::Given)),
            None => one_limit(killed_ms)
                .filter(|&limit_ms| longest_ms <= limit_ms)
                .map(|limit_ms| (limit_ms, LimitSource::RecordedKills)),
        };
        let limit_ms = self.limit.map(|(limit_ms, _)| limit_ms);
        self.truncation = missing_kills(ended, killed_ms, &Counts::default(), limit_ms);
    }

    /// Bounds of the kill rate per gap of a window over what aborted gaps might have become; `None` without any.
    pub fn abort_envelope(&self, window: Millis) -> Option<(u64, AbortEnvelope)> {
        let aborts = self.aborted_ms.total();
        (aborts > 0).then(|| {
            let (window_ms, level) = (window.as_u64(), Level::P95);
            let found =
                abort_envelope_of(&self.ended, &self.cut, &self.aborted_ms, window_ms, level);
            (aborts, found)
        })
    }
}

/// The shortest of the silences before kills that lie near their median, where they are the most.
pub(crate) fn one_limit(killed_ms: &Counts) -> Option<u64> {
    let silences: Counts = killed_ms.iter().filter(|&(ms, _)| ms > 0).collect();
    let mut before = 0;
    let (median, _) = silences.iter().find(|&(_, runs)| {
        before += runs;
        before > silences.total() / 2
    })?;
    let near: Counts = silences
        .iter()
        .filter(|&(ms, _)| is_near(ms, median))
        .collect();
    (2 * near.total() > silences.total())
        .then(|| near.iter().next().map(|(ms, _)| ms))
        .flatten()
}
