//! Which cells of a sweep are shown to be safe, although the best of many was looked for.
//!
//! Two protections (statistics section 8). Runs are split by session: candidates are ranked on one half, verdicts
//! are given on the other. And windows are tested from the largest down, at fixed other settings, each at the
//! full error, up to the first that fails: the order is fixed by the grid, before the data are read.

use std::collections::{BTreeMap, HashMap};

use policysim_policy::Millis;

use crate::cluster::Cluster;
use crate::run::{Fleet, RecordedEnd};
use crate::stats::choice::{Half, can_split};
use crate::stats::clusters::{SessionCounts, reliable_deff};
use crate::stats::verdict::{Decision, KEYS_MATTER, RunCounts, check_rate, check_rate_by_key};
use crate::stats::{Estimate, Level, RateTable, rates};
use crate::sweep::{Candidate, halves, sized_runs};
use crate::tally::{Part, Tally};

/// The axis along which windows are tested.
const WINDOW: &str = "idle.window";

/// The declared order of tests: cells that differ in nothing but the idle window, from the largest down.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    sequences: Vec<Vec<usize>>,
}

impl Plan {
    /// The plan of a grid; it knows nothing of the data.
    pub fn new(candidates: &[Candidate]) -> Self {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut sequences: Vec<Vec<usize>> = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let mut others = candidate.clone();
            others.settings.retain(|(key, _)| key != WINDOW);
            let number = *numbers.entry(others.label()).or_insert_with(|| {
                sequences.push(Vec::new());
                sequences.len() - 1
            });
            sequences[number].push(index);
        }
        let window = |&index: &usize| candidates[index].policy.idle.window.unwrap_or(Millis::MAX);
        for sequence in &mut sequences {
            sequence.sort_by_key(|index| std::cmp::Reverse(window(index)));
        }
        Self { sequences }
    }

    /// The sequences, each a list of cells.
    pub fn sequences(&self) -> &[Vec<usize>] {
        &self.sequences
    }

    /// The sequence that cell `index` is in.
    pub fn sequence_of(&self, index: usize) -> usize {
        self.sequences
            .iter()
            .position(|sequence| sequence.contains(&index))
            .unwrap_or(0)
    }
}

/// What keeps a choice among many from being luck.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protection {
    /// One candidate: nothing was chosen.
    OneCandidate,
    /// Too few runs to be split: the fixed sequence alone, on all of them.
    FixedSequence,
    /// Ranked on one half; the fixed sequence on the other.
    SplitAndSequence,
}

impl Protection {
    /// The protection's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneCandidate => "one_candidate",
            Self::FixedSequence => "fixed_sequence",
            Self::SplitAndSequence => "split_and_fixed_sequence",
        }
    }
}

/// The runs that verdicts are given on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evidence {
    /// What protects the choice.
    pub protection: Protection,
    /// The half of every sized run; empty where they are not split.
    pub halves: Vec<Half>,
    /// Runs not labelled as hung by independent unit, of all runs.
    pub units: BTreeMap<i64, u64>,
    /// The same of the runs that verdicts are given on.
    pub certify_units: BTreeMap<i64, u64>,
}

impl Evidence {
    /// Splits the runs of `fleet` where each half can certify `max_rate`.
    ///
    /// Whether they are split depends on numbers of runs only, never on what candidates do to them.
    pub fn new(
        fleet: &Fleet,
        cluster: Cluster,
        candidates: usize,
        max_rate: Option<f64>,
        seed: u64,
    ) -> Self {
        let halves = halves(fleet, seed);
        let mut units: BTreeMap<i64, u64> = BTreeMap::new();
        let mut certify_units: BTreeMap<i64, u64> = BTreeMap::new();
        for (run, half) in sized_runs(fleet).zip(&halves) {
            if run.end != RecordedEnd::Hung {
                let unit = cluster.unit(run);
                *units.entry(unit).or_default() += 1;
                *certify_units.entry(unit).or_default() += u64::from(*half == Half::Certify);
            }
        }
        let mut found = Self::of_units(units, certify_units, candidates, max_rate);
        if found.is_split() {
            found.halves = halves;
        }
        found
    }

    /// The same from the runs not labelled as hung by independent unit, of all runs and of the certifying half; without
    /// the half of each run.
    pub fn of_units(
        units: BTreeMap<i64, u64>,
        certify_units: BTreeMap<i64, u64>,
        candidates: usize,
        max_rate: Option<f64>,
    ) -> Self {
        let sum = |units: &BTreeMap<i64, u64>| units.values().sum::<u64>();
        let (all, certify) = (sum(&units), sum(&certify_units));
        let enough = max_rate.is_some_and(|max| {
            // Sessions are of different sizes, so that each half is looked at as well.
            let half_enough = |runs: u64| can_split(runs.saturating_mul(2), max, Level::P95);
            can_split(all, max, Level::P95) && half_enough(certify) && half_enough(all - certify)
        });
        let protection = match (candidates > 1, enough) {
            (false, _) => Protection::OneCandidate,
            (true, false) => Protection::FixedSequence,
            (true, true) => Protection::SplitAndSequence,
        };
        if protection == Protection::SplitAndSequence {
            Self {
                protection,
                halves: Vec::new(),
                units,
                certify_units,
            }
        } else {
            Self {
                protection,
                halves: Vec::new(),
                certify_units: units.clone(),
                units,
            }
        }
    }

    /// Whether the runs are split.
    pub fn is_split(&self) -> bool {
        self.protection == Protection::SplitAndSequence
    }
}

/// Whether a gap that equals the window counts as a kill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TieRule {
    /// It does: deadlines are inclusive, as in the core.
    TimerFirst,
    /// It does not: what would hold if the event came first.
    EventFirst,
}

impl TieRule {
    fn apply(self, mut tally: Tally) -> Tally {
        if self == Self::EventFirst {
            let of_false = tally.ties.min(tally.false_kills);
            tally.false_kills -= of_false;
            tally.unresolved_kills -= (tally.ties - of_false).min(tally.unresolved_kills);
        }
        tally
    }
}

/// What the runs say of one cell's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The runs and kills it is about.
    pub counts: RunCounts,
    /// One-sided upper limit, unresolved runs counted as kills.
    pub upper: Option<f64>,
    /// Whether the limit is at most the acceptable rate, fails it, or neither.
    pub decision: Decision,
    /// Design effect of kills over independent units; `None` with too few kills to tell, or where runs are the units.
    pub unit_deff: Option<f64>,
    /// Whether units that share their fate replaced the run.
    pub by_unit: bool,
    /// Runs that would be needed with as many kills; `None` where other units are, or no number is enough.
    pub needed: Option<u64>,
}

/// Gives verdicts, remembering limits that cells share.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    units: &'a BTreeMap<i64, u64>,
    max_rate: f64,
    level: Level,
    table: RateTable,
    /// By kills, worst kills and runs.
    rulings: HashMap<(u64, u64, u64), Ruling>,
}

/// What counts alone decide.
#[derive(Clone, Copy, Debug)]
struct Ruling {
    decision: Decision,
    needed: Option<u64>,
}

impl<'a> Judge<'a> {
    /// A judge of rates against `max_rate`, at one-sided `level`; `units` holds the runs of each independent unit.
    pub fn new(units: &'a BTreeMap<i64, u64>, max_rate: f64, level: Level) -> Self {
        Self {
            units,
            max_rate,
            level,
            table: RateTable::new(level),
            rulings: HashMap::new(),
        }
    }

    /// The rate of those kills with its two-sided interval.
    pub fn rate(&mut self, kills: u64, runs: u64) -> Estimate {
        self.table.rate(kills, runs)
    }

    fn ruling(&mut self, counts: RunCounts) -> Ruling {
        let (worst, max, level) = (counts.worst_kills(), self.max_rate, self.level);
        let key = (counts.kills, worst, counts.runs);
        *self.rulings.entry(key).or_insert_with(|| {
            let decision = if counts.runs == 0 {
                Decision::Inconclusive
            } else if rates::exceeds(counts.kills, counts.runs, max, level, 1) {
                Decision::Fail
            } else if rates::certifies(worst, counts.runs, max, level) {
                Decision::Pass
            } else {
                Decision::Inconclusive
            };
            Ruling {
                decision,
                needed: (decision != Decision::Pass)
                    .then(|| rates::runs_needed(worst, max, level))
                    .flatten(),
            }
        })
    }

    /// The verdict on a part of the runs.
    pub fn verdict(&mut self, part: &Part, rule: TieRule) -> Verdict {
        let counts = rule.apply(part.tally).counts();
        let worst = counts.worst_kills();
        let deff = self.unit_deff(part);
        if deff.is_some_and(|deff| deff > KEYS_MATTER) {
            let found = check_rate_by_key(&self.by_unit(part, rule), self.max_rate, self.level);
            if found.adjusted {
                return Verdict {
                    counts,
                    upper: found.check.upper,
                    decision: found.check.decision,
                    unit_deff: found.deff,
                    by_unit: true,
                    needed: None,
                };
            }
        }
        let Ruling { decision, needed } = self.ruling(counts);
        Verdict {
            counts,
            upper: self.table.limits(worst, counts.runs).upper,
            decision,
            unit_deff: deff,
            by_unit: false,
            needed,
        }
    }

    fn unit_deff(&self, part: &Part) -> Option<f64> {
        let units: Vec<SessionCounts> = self
            .by_unit(part, TieRule::TimerFirst)
            .iter()
            .map(|unit| SessionCounts {
                gaps: unit.runs,
                kills: unit.worst_kills(),
            })
            .collect();
        reliable_deff(&units)
    }

    fn by_unit(&self, part: &Part, rule: TieRule) -> Vec<RunCounts> {
        self.units
            .iter()
            .filter(|(_, runs)| **runs > 0)
            .map(|(unit, &runs)| RunCounts {
                runs,
                ..rule
                    .apply(part.units.get(*unit).copied().unwrap_or_default())
                    .counts()
            })
            .collect()
    }
}

/// What a stratum says by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StratumVerdict {
    /// One-sided upper limit, unresolved runs counted as kills.
    pub upper: Option<f64>,
    /// Whether it holds (at the full error: every stratum must), or does not (at the error shared by the groups:
    /// one is enough), or neither.
    pub decision: Decision,
    /// Runs needed with as many kills to certify, where there are fewer.
    pub needed: Option<u64>,
    /// Runs needed without any kill to certify, where there are fewer: such a stratum cannot pass.
    pub cannot_certify: Option<u64>,
}

impl StratumVerdict {
    /// The verdict on one of `groups` strata of a key (statistics section 9).
    pub fn new(tally: &Tally, groups: u64, max_rate: f64) -> Self {
        let level = Level::P95;
        let check = check_rate(tally.counts(), max_rate, level);
        let exceeds = rates::exceeds(tally.false_kills, tally.runs, max_rate, level, groups);
        let more = |need: Option<u64>| need.filter(|&need| need > tally.runs);
        Self {
            upper: check.upper,
            decision: match check.decision {
                Decision::Fail if !exceeds => Decision::Inconclusive,
                decision => decision,
            },
            needed: more(rates::runs_needed(tally.worst_kills(), max_rate, level)),
            cannot_certify: more(rates::runs_needed(0, max_rate, level)),
        }
    }
}

/// One cell's place in the tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tested {
    /// Shown to be safe.
    Certified,
    /// Tested, and not shown to be safe; the sequence stops here.
    Failed,
    /// Behind the cell at which its sequence stopped.
    NotReached {
        /// That cell.
        stopped_at: usize,
    },
    /// In a sequence that the selecting half did not name.
    NotSelected,
}

impl Tested {
    /// The state's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certified => "certified",
            Self::Failed => "not_certified",
            Self::NotReached { .. } => "not_reached",
            Self::NotSelected => "not_selected",
        }
    }
}

/// The tests of one sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Tests {
    /// How many sequences share the error probability.
    pub claims: u64,
    /// The level of each sequence.
    pub level: Level,
    /// Every cell's place, in the order of the cells.
    pub cells: Vec<Tested>,
    /// The last cell certified in each sequence: its smallest safe window.
    pub smallest: Vec<Option<usize>>,
}

/// Walks the sequences of `plan`: all of them, sharing the error, or the one that was `selected` without them.
///
/// `certified` is asked about a cell at a level at most once.
pub fn test(
    plan: &Plan,
    cells: usize,
    selected: Option<usize>,
    mut certified: impl FnMut(usize, Level) -> bool,
) -> Tests {
    let claims = match selected {
        Some(_) => 1,
        None => plan.sequences.len() as u64,
    };
    let level = shared_level(claims);
    let mut places = vec![Tested::NotSelected; cells];
    let mut smallest = vec![None; plan.sequences.len()];
    for (number, sequence) in plan.sequences.iter().enumerate() {
        if selected.is_some_and(|selected| selected != number) {
            continue;
        }
        let mut stopped = None;
        for &index in sequence {
            places[index] = match stopped {
                Some(stopped_at) => Tested::NotReached { stopped_at },
                None if certified(index, level) => {
                    smallest[number] = Some(index);
                    Tested::Certified
                }
                None => {
                    stopped = Some(index);
                    Tested::Failed
                }
            };
        }
    }
    Tests {
        claims,
        level,
        cells: places,
        smallest,
    }
}

/// The level at which each of `claims` sequences is tested.
///
/// # Panics
/// Never: a sweep has far fewer cells than the error has digits.
pub fn shared_level(claims: u64) -> Level {
    Level::P95
        .shared(claims)
        .expect("fewer sequences than the error has digits")
}
