//! A sweep as its JSON tells it: what `sweep.json` holds, read back.
//!
//! A report takes every figure of a sweep from here, so that a sweep just made and one read from a result set say the
//! same, and a report cannot say anything that `policysim sweep` does not.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::SCHEMA_VERSION;
use crate::header::DataHeader;
use crate::units::{counted, grouped};

/// Limits of a figure; a missing one is not known.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
pub struct Limits {
    /// Lower.
    pub lo: Option<f64>,
    /// Upper.
    pub up: Option<f64>,
}

/// An estimate with what it stands on.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Figure {
    /// Samples.
    pub n: u64,
    /// The figure; `None` when it is not estimable.
    pub point: Option<f64>,
    /// Its 95 % limits.
    pub interval: Limits,
    /// How far it can be trusted.
    pub status: String,
    /// Why it, or a side of its limits, is missing.
    pub reason: Option<Because>,
}

/// Why something is missing.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Because {
    /// The reason's name.
    pub code: String,
}

/// What a recommended cell must meet.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Asked {
    /// Largest acceptable false-kill rate.
    pub max_false_kill_rate: Option<f64>,
    /// Whether a hang must settle inside one wait.
    pub settle_within_wait: bool,
}

/// The cell that comes nearest where none is recommended.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Nearest {
    /// The cell, from 1.
    pub cell: usize,
    /// Why it is not recommended.
    pub reason: String,
    /// Runs that would decide it.
    pub runs_needed: Option<u64>,
}

/// What protects the choice from luck.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Protected {
    /// The method's name.
    pub method: String,
    /// Seed of the split.
    pub seed: u64,
    /// Runs that ranked the cells.
    pub select_runs: u64,
    /// Runs that verdicts are given on.
    pub certify_runs: u64,
    /// The ranking saw the runs that verdicts are given on.
    pub in_sample: bool,
    /// Sequences of windows that share the error of 5 %; sweeps of before did not tell it.
    #[serde(default)]
    pub sequences: u64,
}

impl Protected {
    /// Whether other runs gave verdicts than ranked the cells.
    pub(crate) fn is_split(&self) -> bool {
        self.method == "split_and_fixed_sequence"
    }

    /// What the limits that verdicts take stand on, as the end of a sentence that begins with them.
    pub(crate) fn limits_words(&self) -> String {
        let runs = if self.is_split() {
            format!("the {} held back", grouped(self.certify_runs))
        } else {
            counted(self.certify_runs, "run")
        };
        match self.sequences {
            0 | 1 => format!("at 95 % on {runs}"),
            shared => format!(
                "on {runs}, {} sharing the error of 5 %",
                counted(shared, "sequence")
            ),
        }
    }
}

impl Cost {
    /// How many runs ranked the cells, where they are a part of the runs.
    pub(crate) fn ranked(&self) -> Option<u64> {
        let all = self.runs.saturating_sub(self.hangs);
        self.ranked_runs.filter(|ranked| (1..all).contains(ranked))
    }

    /// The same as the end of a sentence.
    pub(crate) fn ranked_words(&self) -> String {
        self.ranked().map_or_else(String::new, |ranked| {
            let ranked = counted(ranked, "run");
            format!(", with the costs of the {ranked} that ranked cells")
        })
    }
}

/// A cell and the hang rates for which it is the cheapest.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct CheapestFor {
    /// The cell, from 1.
    pub cell: usize,
    /// Lowest hang rate.
    pub hang_rate_from: f64,
    /// Highest.
    pub hang_rate_to: f64,
}

/// What windows cost.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Cost {
    /// A restart, ms.
    pub restart_ms: u64,
    /// Runs, hung ones included.
    pub runs: u64,
    /// Of those, hung.
    pub hangs: u64,
    /// Runs whose costs are compared; sets of before did not tell it.
    #[serde(default)]
    pub ranked_runs: Option<u64>,
    /// Hang rates that the record allows.
    pub hang_rates: Limits,
    /// Where they come from.
    pub hang_rates_source: String,
    /// What a hang is charged for; empty in sets that do not say, which is its slot.
    #[serde(default)]
    pub hang_time: String,
    /// The cheapest cell.
    pub cheapest_cell: Option<usize>,
    /// Its cost or regret, ms per run.
    pub value_ms: Option<f64>,
    /// Why there is none.
    pub refused: Option<String>,
    /// Each cell that is ever the cheapest, from the largest window down.
    pub best_for: Vec<CheapestFor>,
}

/// What the limits in force at recording hide.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedUnder {
    /// The idle limit, ms.
    pub idle_limit_ms: Option<u64>,
    /// Signs that killed gaps are missing.
    pub kills_missing: Option<String>,
    /// Runs aborted in a silence.
    pub aborts_in_silence: u64,
}

/// The verdict on one cell.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Certificate {
    /// Where the tests of the cell ended.
    pub place: String,
    /// Runs it was judged on.
    pub runs: u64,
    /// Of those, false kills.
    pub false_kills: u64,
    /// Of those, unresolved.
    pub unresolved: u64,
    /// One-sided 95 % upper limit of the rate.
    pub false_kill_rate_up_one_sided: Option<f64>,
    /// Pass, fail or inconclusive.
    pub decision: String,
    /// Runs that would decide it.
    pub runs_needed: Option<u64>,
}

/// How soon hangs are noticed.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Noticed {
    /// `measured`, `closed_form` or `none`.
    pub source: String,
    /// Hung runs detected.
    pub n: u64,
    /// Median, ms.
    pub p50_ms: Option<u64>,
    /// p99, ms.
    pub p99_ms: Option<u64>,
    /// The median with its limits; sweeps of before did not tell it.
    #[serde(default)]
    pub p50: Option<NoticedAt>,
    /// The same of p99.
    #[serde(default)]
    pub p99: Option<NoticedAt>,
}

/// A quantile of the time until hangs are noticed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct NoticedAt {
    /// Its 95 % limits, ms.
    pub interval_ms: Limits,
}

/// The watchdog as a failure detector.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Detector {
    /// Ended silences.
    pub gaps: u64,
    /// Of at least the window.
    pub mistakes: u64,
    /// Per hour of active time.
    pub mistakes_per_active_hour: Option<f64>,
    /// Mean active time between mistakes, ms.
    pub mistake_recurrence_ms: Option<f64>,
    /// Share of active time at which a run is not suspected.
    pub query_accuracy: Option<f64>,
    /// Mistakes per silence.
    pub per_gap_rate: Option<f64>,
}

/// Limits of the focus cell as a failure detector.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct DetectorLimits {
    /// Mistakes per silence.
    pub per_gap_rate: Figure,
    /// Mistakes per hour of active time.
    pub mistakes_per_active_hour_interval: Limits,
    /// Mean active time between mistakes, ms.
    pub mistake_recurrence_interval_ms: Limits,
    /// Share of active time at which a run is not suspected.
    pub query_accuracy_interval: Limits,
}

/// The cell that a sweep is about, with the intervals that only resampling gives.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct FocusCell {
    /// The cell, from 1.
    pub cell: usize,
    /// As a failure detector; `None` where its window is off.
    pub detector: Option<DetectorLimits>,
}

/// One stratum of a cell.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Stratum {
    /// What the strata are.
    pub key: String,
    /// Which one.
    pub group: String,
    /// Runs.
    pub runs: u64,
    /// Of those, false kills.
    pub false_kills: u64,
    /// Of those, unresolved.
    pub unresolved: u64,
    /// One-sided 95 % upper limit of the rate over all runs.
    pub false_kill_rate_up_one_sided: Option<f64>,
    /// Runs it was judged on.
    pub certify_runs: u64,
    /// The same limit on those.
    pub certify_upper: Option<f64>,
    /// Pass, fail, inconclusive or `no_data`.
    pub decision: String,
    /// Runs that would decide it.
    pub runs_needed: Option<u64>,
}

/// Runs on which a cell and the base disagree.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct AgainstBase {
    /// Killed by the cell only.
    pub newly_killed: u64,
    /// Killed by the base only.
    pub newly_spared: u64,
}

/// The largest whole number that every reader of JSON holds exactly, 2^53.
const EXACT_IN_JSON: u128 = 1 << 53;

/// One cell.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Cell {
    /// Its number, from 1.
    pub cell: usize,
    /// Its settings in one word.
    pub label: String,
    /// Its settings by key.
    pub settings: BTreeMap<String, String>,
    /// Runs not labelled as hung.
    pub runs: u64,
    /// Kills, hung runs included.
    pub killed: u64,
    /// Kills by cause.
    pub kills: BTreeMap<String, u64>,
    /// Runs killed though alive.
    pub false_kills: u64,
    /// Kills that the record confirms.
    #[serde(default)]
    pub true_kills: u64,
    /// False and unresolved kills that are none if an event at the deadline comes first.
    #[serde(default, rename = "ties_at_W")]
    pub ties: u64,
    /// Kills that the record cannot judge.
    pub unresolved_kills: u64,
    /// Survivals beyond the record.
    pub unresolved_survivals: u64,
    /// False kills per run.
    pub false_kill_rate: Figure,
    /// The same with every unresolved run as a kill: the upper end.
    pub false_kill_rate_bounds: Limits,
    /// One-sided 95 % upper limit over all runs, unresolved runs counted as kills.
    pub false_kill_rate_up_one_sided: Option<f64>,
    /// Whether that limit counts independent units other than runs.
    #[serde(default, alias = "limit_by_day")]
    pub limit_by_unit: bool,
    /// False kills per hour of active agent time.
    #[serde(default)]
    pub false_kills_per_hour: Option<f64>,
    /// Their 95 % limits; unresolved runs are not counted.
    #[serde(default)]
    pub false_kills_per_hour_interval: Limits,
    /// The verdict.
    pub certify: Certificate,
    /// Against the policy that candidates start from.
    pub against_base: AgainstBase,
    /// The watchdog as a failure detector; `None` where the window is off.
    #[serde(default)]
    pub detector: Option<Detector>,
    /// Hung runs.
    pub hung: u64,
    /// Of those, killed before they hung.
    #[serde(default)]
    pub hung_killed_early: u64,
    /// Of those, never killed within the record.
    pub hung_missed: u64,
    /// How soon hangs are noticed.
    pub detection: Noticed,
    /// Share of hangs that settle inside the wait in which they begin, closed form.
    pub settle_share: Option<f64>,
    /// Simulated settlement by name, where it was asked for.
    #[serde(default)]
    pub settlement: BTreeMap<String, Figure>,
    /// Slot time lost to hangs, ms.
    pub slot_lost_ms: u64,
    /// Work lost to false kills, ms.
    pub work_lost_ms: u64,
    /// No other cell beats it.
    pub pareto: bool,
    /// Its strata.
    pub strata: Vec<Stratum>,
}

impl Cell {
    /// Runs that the record cannot judge.
    pub const fn unresolved(&self) -> u64 {
        self.unresolved_kills + self.unresolved_survivals
    }

    /// Whether no count is larger than what it counts in, and all are within what JSON numbers hold exactly.
    fn fits(&self) -> bool {
        let within = |counts: &[u64], all: u128| {
            counts.iter().map(|count| u128::from(*count)).sum::<u128>() <= all
        };
        let (runs, hung) = (u128::from(self.runs), u128::from(self.hung));
        let kills: Vec<u64> = self.kills.values().copied().collect();
        let against = &self.against_base;
        runs + hung <= EXACT_IN_JSON
            && within(
                &[
                    self.false_kills,
                    self.unresolved_kills,
                    self.unresolved_survivals,
                ],
                runs,
            )
            && within(&[self.true_kills], runs)
            && within(&[self.ties], runs)
            && within(&[against.newly_killed], runs)
            && within(&[against.newly_spared], runs)
            && within(&kills, runs + hung)
            && within(&[self.killed], runs + hung)
            && within(&[self.hung_killed_early, self.hung_missed], hung)
            && within(&[self.detection.n], hung)
            && self.strata.iter().all(|stratum| {
                within(&[stratum.runs], runs)
                    && within(
                        &[stratum.false_kills, stratum.unresolved],
                        u128::from(stratum.runs),
                    )
            })
    }

    /// One setting, for people: the value of `key`, or `-` where it is not swept.
    pub fn setting(&self, key: &str) -> &str {
        self.settings.get(key).map_or("-", String::as_str)
    }
}

/// A sweep.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Sweep {
    /// The version of the JSON.
    pub schema_version: u32,
    /// What it is about.
    pub data: DataHeader,
    /// The policy that candidates start from.
    pub base: String,
    /// The same as a document; sweeps of before did not tell it.
    #[serde(default)]
    pub base_policy: Option<String>,
    /// What is taken as independent: `day` unless told.
    #[serde(default)]
    pub cluster: Option<String>,
    /// The keys of the swept axes.
    pub axes: Vec<String>,
    /// The parent's TaskWait, ms.
    pub task_wait_ms: u64,
    /// What was asked.
    pub constraints: Asked,
    /// The recommended cell, from 1.
    pub recommendation: Option<usize>,
    /// How many cells qualify.
    pub qualifying_cells: usize,
    /// The nearest cell where none is recommended.
    pub nearest: Option<Nearest>,
    /// The answer in words.
    pub reason: String,
    /// What belongs beside the figures.
    pub notes: Vec<String>,
    /// What protects the choice.
    pub protection: Protected,
    /// What windows cost.
    pub cost: Cost,
    /// The intervals of the cell that the sweep is about.
    #[serde(default)]
    pub focus: Option<FocusCell>,
    /// What the recording hides.
    pub recorded: RecordedUnder,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// Why a sweep cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// Not the JSON of a sweep.
    #[error("not a sweep as `policysim sweep --format json` prints it: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version.
    #[error("schema_version {found}, expected {SCHEMA_VERSION}: sweep again with this version")]
    Version {
        /// The version found.
        found: u32,
    },
    /// Without a cell there is nothing to tell.
    #[error("it holds no cell")]
    Empty,
    /// Cells are numbered from 1 in their order, and what names a cell names one of them.
    #[error("it names cell {0}, which it does not hold")]
    NoSuchCell(usize),
    /// A part is larger than its whole.
    #[error("the counts of cell {0} do not fit its runs")]
    Counts(usize),
}

/// A sweep with the text it was read from.
#[derive(Clone, Debug)]
pub struct SweepFacts {
    /// What the text says.
    pub sweep: Sweep,
    /// The text, so that no figure changes by being passed on.
    pub raw: Box<RawValue>,
}

impl SweepFacts {
    /// Reads the JSON of a sweep.
    ///
    /// # Errors
    /// When it is none, of another version, names cells that it does not hold, or has counts that do not fit.
    pub fn parse(text: &str) -> Result<Self, FactsError> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        let sweep: Sweep = serde_json::from_str(raw.get())?;
        if sweep.schema_version != SCHEMA_VERSION {
            return Err(FactsError::Version {
                found: sweep.schema_version,
            });
        }
        if sweep.cells.is_empty() {
            return Err(FactsError::Empty);
        }
        let named = sweep
            .recommendation
            .into_iter()
            .chain(sweep.nearest.as_ref().map(|nearest| nearest.cell))
            .chain(sweep.cost.cheapest_cell)
            .chain(sweep.cost.best_for.iter().map(|range| range.cell));
        let numbered = sweep.cells.iter().map(|cell| cell.cell);
        if let Some(cell) = named
            .filter(|cell| !(1..=sweep.cells.len()).contains(cell))
            .chain(
                numbered
                    .enumerate()
                    .filter(|(n, cell)| n + 1 != *cell)
                    .map(|(_, cell)| cell),
            )
            .next()
        {
            return Err(FactsError::NoSuchCell(cell));
        }
        if let Some(cell) = sweep.cells.iter().find(|cell| !cell.fits()) {
            return Err(FactsError::Counts(cell.cell));
        }
        Ok(Self { sweep, raw })
    }
}

impl Sweep {
    /// The cell of that number, from 1.
    pub fn cell(&self, number: usize) -> &Cell {
        &self.cells[number - 1]
    }

    /// What costs are compared among, where cells differ in more than their windows: words behind "is best".
    pub(crate) fn among_its_windows(&self) -> &'static str {
        if self.axes.iter().any(|key| key != "idle.window") {
            " of the windows with its other settings"
        } else {
            ""
        }
    }

    /// The cell that remarks are about: the recommended or else the nearest one.
    pub fn focus(&self) -> Option<&Cell> {
        let number = self
            .recommendation
            .or(self.nearest.as_ref().map(|nearest| nearest.cell))?;
        Some(self.cell(number))
    }

    /// Runs that rates are about.
    pub fn runs(&self) -> u64 {
        self.cells.first().map_or(0, |cell| cell.runs)
    }

    /// What sets a cell apart, for people: `idle 300s, total 6h`; the base where nothing is swept.
    pub fn settings(&self, cell: &Cell) -> String {
        if self.axes.is_empty() {
            return self.base.clone();
        }
        self.axes
            .iter()
            .map(|key| format!("{} {}", short_key(key), cell.setting(key)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The values of one axis, ascending, then those without an order (`off`, sets of kinds) as the grid has them.
    pub fn values(&self, key: &str) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let value = cell.setting(key);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.sort_by_key(|value| amount(value).unwrap_or(u64::MAX));
        values
    }
}

/// A duration in ms, or a number.
fn amount(value: &str) -> Option<u64> {
    match policysim_policy::duration::parse(value) {
        Ok(span) => Some(span.as_u64()),
        Err(_) => value.parse().ok(),
    }
}

/// A policy key as the options name it.
pub(crate) fn short_key(key: &str) -> &str {
    match key {
        "idle.window" => "idle",
        "total.budget" => "total",
        "turns.cap" => "turns",
        "idle.rearm" => "rearm",
        other => other,
    }
}
