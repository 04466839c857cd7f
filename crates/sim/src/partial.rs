//! The counts of a sweep over a part of the runs. Everything is an integer: merging any split of the runs in any order
//! gives the same cells.

use std::collections::BTreeMap;

use crate::board::{Board, Frame, PARTS, Slots, Walk};
use crate::cluster::Cluster;
use crate::gaps::counted::Readings;
use crate::plan::Plan;
use crate::run::{RecordedEnd, Run};
use crate::strata::StratumKey;
use crate::stretches::Stretches;
use crate::tally::CellCounts;
use crate::unit_steps::UnitWalk;

/// How a sweep was answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Work {
    /// Runs swept over.
    pub runs: u64,
    /// Their events.
    pub events: u64,
    /// Passes through the core for all candidates of one structure together.
    pub passes: u64,
    /// Replays of one run under one candidate, where the pass could not answer.
    pub replays: u64,
}

/// Counts of a sweep over some of its runs.
#[derive(Clone, Debug)]
pub struct SweepPartial {
    keys: Vec<StratumKey>,
    cluster: Cluster,
    /// The number of each group; 0 is all runs.
    numbers: BTreeMap<(StratumKey, String), usize>,
    /// Runs not labelled as hung, by group and half.
    runs: Vec<[u64; PARTS]>,
    hung: [u64; PARTS],
    pub(crate) boards: Vec<Board>,
    pub(crate) direct: Board,
    /// What the idle clock reads under each structure.
    pub(crate) stretches: Vec<Stretches>,
    /// What findings need beside, under the structure of the base.
    pub(crate) readings: Readings,
    /// Active time of all runs, ms.
    pub(crate) active_ms: u128,
    /// Runs not labelled as hung, by independent unit and half.
    units: BTreeMap<i64, [u64; PARTS]>,
    pub(crate) work: Work,
}

impl SweepPartial {
    /// Counts of no run.
    pub(crate) fn new(plan: &Plan, keys: &[StratumKey], cluster: Cluster) -> Self {
        Self {
            keys: keys.to_vec(),
            cluster,
            numbers: BTreeMap::new(),
            runs: vec![[0; PARTS]],
            hung: [0; PARTS],
            boards: plan
                .structures
                .iter()
                .map(|lines| Board::new(lines.count(), lines.places()))
                .collect(),
            direct: Board::new(plan.direct.len(), 1),
            stretches: vec![Stretches::default(); plan.structures.len()],
            readings: Readings::default(),
            active_ms: 0,
            units: BTreeMap::new(),
            work: Work::default(),
        }
    }

    /// How it was answered.
    pub const fn work(&self) -> Work {
        self.work
    }

    /// Notes a run and says where it counts.
    pub(crate) fn note(&mut self, run: &Run, part: usize, slots: &mut Slots) {
        slots.part = part;
        slots.unit = self.cluster.unit(run);
        slots.groups.clear();
        slots.groups.push(0);
        for key in 0..self.keys.len() {
            let key = self.keys[key];
            let group = self.number(key, key.group(run));
            slots.groups.push(group);
        }
        if run.end == RecordedEnd::Hung {
            self.hung[part] += 1;
        } else {
            for &group in &slots.groups {
                self.runs[group][part] += 1;
            }
            self.units.entry(slots.unit).or_default()[part] += 1;
        }
    }

    fn number(&mut self, key: StratumKey, name: &str) -> usize {
        // most groups are known: look before a name is copied
        if let Some((_, &number)) = self
            .numbers
            .range((key, name.to_owned())..)
            .next()
            .filter(|((known, known_name), _)| (*known, known_name.as_str()) == (key, name))
        {
            return number;
        }
        let number = self.runs.len();
        self.runs.push([0; PARTS]);
        self.numbers.insert((key, name.to_owned()), number);
        number
    }

    /// Takes in the counts of other runs of the same sweep.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        let mut groups = vec![0; other.runs.len()];
        for ((key, name), &number) in &other.numbers {
            groups[number] = self.number(*key, name);
        }
        for (theirs, &group) in other.runs.iter().zip(&groups) {
            for (mine, theirs) in self.runs[group].iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        for (mine, theirs) in self.hung.iter_mut().zip(other.hung) {
            *mine += theirs;
        }
        for (mine, theirs) in self.boards.iter_mut().zip(other.boards) {
            mine.merge(theirs, &groups);
        }
        self.direct.merge(other.direct, &groups);
        for (mine, theirs) in self.stretches.iter_mut().zip(&other.stretches) {
            mine.merge(theirs);
        }
        self.readings.merge(other.readings);
        self.active_ms += other.active_ms;
        for (unit, theirs) in other.units {
            let mine = self.units.entry(unit).or_default();
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        self.work.runs += other.work.runs;
        self.work.events += other.work.events;
        self.work.passes += other.work.passes;
        self.work.replays += other.work.replays;
        self
    }

    /// Active time of all runs, ms.
    pub const fn active_ms(&self) -> u128 {
        self.active_ms
    }

    /// Runs not labelled as hung by independent unit: of both halves, and of the certifying one.
    pub fn units(&self) -> [BTreeMap<i64, u64>; 2] {
        let units = |count: fn(&[u64; PARTS]) -> u64| -> BTreeMap<i64, u64> {
            self.units
                .iter()
                .map(|(&unit, runs)| (unit, count(runs)))
                .collect()
        };
        [units(|runs| runs.iter().sum()), units(|runs| runs[1])]
    }

    /// The groups that cells are counted by, in the order of [`Part::strata`](crate::tally::Part::strata).
    pub fn groups(&self) -> Vec<(StratumKey, String)> {
        self.numbers.keys().cloned().collect()
    }

    /// A cell per candidate. With `split`, verdicts are given on the certifying half alone.
    pub(crate) fn cells(&self, plan: &Plan, split: bool) -> Vec<CellCounts> {
        let groups: Vec<usize> = std::iter::once(0)
            .chain(self.numbers.values().copied())
            .collect();
        let frame = Frame {
            groups: &groups,
            runs: &self.runs,
            hung: self.hung,
            split,
        };
        let mut cells = vec![CellCounts::default(); plan.candidates];
        for (lines, board) in plan.structures.iter().zip(&self.boards) {
            let (of_units, stride) = board.units();
            for (number, line) in lines.lines.iter().enumerate() {
                let shared = line.family.map(|family| lines.shared(family));
                let mut asked = vec![Vec::new(); lines.places()];
                for &(place, candidate) in &line.asked {
                    asked[place].push(candidate);
                }
                let mut walk = Walk::new(board, number, shared);
                let mut units = UnitWalk::new(&of_units, stride, number, shared);
                for (place, candidates) in asked.iter().enumerate() {
                    walk.step();
                    units.step();
                    for &candidate in candidates {
                        let window_ms = lines.windows.get(place).copied().unwrap_or(0);
                        cells[candidate] = walk.cell(window_ms, &frame, &mut units);
                    }
                }
            }
        }
        let (of_units, stride) = self.direct.units();
        for (number, direct) in plan.direct.iter().enumerate() {
            let mut walk = Walk::new(&self.direct, number, None);
            let mut units = UnitWalk::new(&of_units, stride, number, None);
            walk.step();
            units.step();
            cells[direct.candidate] = walk.cell(0, &frame, &mut units);
        }
        cells
    }
}
