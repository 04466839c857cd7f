//! Counts of many candidates at once, as differences between neighbouring windows.
//!
//! Candidates of one structure that differ in nothing but the idle window are a line, its windows the places on it, by
//! length. What a run does is the same over whole ranges of places, so that it is noted at the two ends of each.

use std::ops::Range;
use std::sync::Arc;

use policysim_policy::Cause;

use crate::detections::{After, Changes, Running};
use crate::tally::{CellCounts, Part, Tally, Units};
use crate::unit_steps::{UnitStep, UnitSteps, UnitWalk};

/// The two halves of the runs; a run counts in one.
pub(crate) const PARTS: usize = 2;

/// What is counted of every group of runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Step {
    pub(crate) false_kills: i64,
    pub(crate) unresolved_kills: i64,
    pub(crate) unresolved_survivals: i64,
    pub(crate) ties: i64,
}

impl Step {
    pub(crate) fn add(&mut self, other: &Self, sign: i64) {
        self.false_kills += sign * other.false_kills;
        self.unresolved_kills += sign * other.unresolved_kills;
        self.unresolved_survivals += sign * other.unresolved_survivals;
        self.ties += sign * other.ties;
    }

    pub(crate) const fn tally(&self, runs: u64) -> Tally {
        Tally {
            runs,
            false_kills: self.false_kills as u64,
            unresolved_kills: self.unresolved_kills as u64,
            unresolved_survivals: self.unresolved_survivals as u64,
            ties: self.ties as u64,
        }
    }
}

/// What is counted of all runs together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Whole {
    pub(crate) true_kills: i64,
    /// Killed falsely or in doubt by the base only, and by the candidate only.
    pub(crate) base_only: i64,
    pub(crate) candidate_only: i64,
    pub(crate) hung_killed_early: i64,
    pub(crate) hung_missed: i64,
}

impl Whole {
    fn add(&mut self, other: &Self, sign: i64) {
        self.true_kills += sign * other.true_kills;
        self.base_only += sign * other.base_only;
        self.candidate_only += sign * other.candidate_only;
        self.hung_killed_early += sign * other.hung_killed_early;
        self.hung_missed += sign * other.hung_missed;
    }
}

/// A sum over runs that grows with the window: `fixed + per_window * window`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Linear {
    pub(crate) fixed: i128,
    pub(crate) per_window: i64,
}

impl Linear {
    pub(crate) const fn new(fixed: i128, per_window: bool) -> Self {
        Self {
            fixed,
            per_window: per_window as i64,
        }
    }

    fn add(&mut self, other: &Self, sign: i64) {
        self.fixed += i128::from(sign) * other.fixed;
        self.per_window += sign * other.per_window;
    }

    fn at(&self, window_ms: u64) -> u128 {
        (self.fixed + i128::from(self.per_window) * i128::from(window_ms)) as u128
    }
}

/// Spans of time that are summed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sum {
    WorkLost,
    DoubtfulWork,
    SlotLost,
}

/// Where a run counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// Its groups; all runs are group 0.
    pub(crate) groups: Vec<usize>,
    pub(crate) part: usize,
    /// Its [independent unit](crate::cluster::Cluster::unit).
    pub(crate) unit: i64,
}

/// The lines of one structure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    /// Places on a line, and one more for the ends of ranges.
    stride: usize,
    lines: usize,
    /// By group, part, line and place.
    groups: Vec<Vec<Step>>,
    whole: Vec<Whole>,
    /// By part and sum.
    sums: Vec<[Linear; 3]>,
    /// By cause; empty where nothing was killed by it.
    kills: Vec<Vec<i64>>,
    detections: Changes,
    units: UnitSteps,
}

fn note<T: Copy>(column: &mut [T], range: &Range<usize>, add: impl Fn(&mut T, i64)) {
    add(&mut column[range.start], 1);
    add(&mut column[range.end], -1);
}

impl Board {
    pub(crate) fn new(lines: usize, places: usize) -> Self {
        let (stride, cells) = (places + 1, lines * (places + 1));
        Self {
            stride,
            lines,
            groups: Vec::new(),
            whole: vec![Whole::default(); cells],
            sums: vec![[Linear::default(); 3]; PARTS * cells],
            kills: vec![Vec::new(); Cause::ALL.len()],
            detections: Changes::new(cells),
            units: UnitSteps::default(),
        }
    }

    /// What is counted of every independent unit, in the order of the places, and the places of a line.
    pub(crate) fn units(&self) -> (Vec<UnitStep>, usize) {
        (self.units.in_order(), self.stride)
    }

    /// Whether detection times are told from buckets.
    pub(crate) const fn is_coarse(&self) -> bool {
        self.detections.is_coarse()
    }

    const fn cells(&self) -> usize {
        self.lines * self.stride
    }

    /// `places` of `line` among all cells.
    fn range(&self, line: usize, places: &Range<usize>) -> Range<usize> {
        line * self.stride + places.start..line * self.stride + places.end
    }

    pub(crate) fn add_step(
        &mut self,
        slots: &Slots,
        line: usize,
        places: &Range<usize>,
        step: &Step,
        sign: i64,
    ) {
        if *step == Step::default() || places.is_empty() {
            return;
        }
        let (range, cells) = (self.range(line, places), self.cells());
        for &group in &slots.groups {
            if self.groups.len() <= group {
                self.groups.resize_with(group + 1, Vec::new);
            }
            let steps = &mut self.groups[group];
            if steps.is_empty() {
                steps.resize(PARTS * cells, Step::default());
            }
            let steps = &mut steps[slots.part * cells..][..cells];
            note(steps, &range, |slot, end| slot.add(step, sign * end));
        }
        for (cell, sign) in [(range.start, sign), (range.end, -sign)] {
            self.units.add(cell, slots.unit, slots.part, step, sign);
        }
    }

    pub(crate) fn add_whole(
        &mut self,
        line: usize,
        places: &Range<usize>,
        whole: &Whole,
        sign: i64,
    ) {
        if *whole != Whole::default() && !places.is_empty() {
            let range = self.range(line, places);
            note(&mut self.whole, &range, |slot, end| {
                slot.add(whole, sign * end);
            });
        }
    }

    pub(crate) fn add_kill(&mut self, line: usize, places: &Range<usize>, cause: Cause, sign: i64) {
        if places.is_empty() {
            return;
        }
        let (range, cells) = (self.range(line, places), self.cells());
        let kills = &mut self.kills[cause as usize];
        if kills.is_empty() {
            kills.resize(cells, 0);
        }
        note(kills, &range, |slot, end| *slot += sign * end);
    }

    pub(crate) fn add_sum(
        &mut self,
        slots: &Slots,
        line: usize,
        places: &Range<usize>,
        sum: Sum,
        linear: Linear,
        sign: i64,
    ) {
        if linear != Linear::default() && !places.is_empty() {
            let range = self.range(line, places);
            let cells = self.cells();
            let sums = &mut self.sums[slots.part * cells..][..cells];
            note(sums, &range, |slot, end| {
                slot[sum as usize].add(&linear, sign * end);
            });
        }
    }

    /// A hung run is detected at all `places`.
    pub(crate) fn add_detection(&mut self, line: usize, places: &Range<usize>, after: After) {
        if !places.is_empty() {
            let range = self.range(line, places);
            self.detections.add(&range, after);
        }
    }

    /// Takes in `other`, whose group `i` is `groups[i]` here.
    pub(crate) fn merge(&mut self, other: Self, groups: &[usize]) {
        for (group, steps) in other.groups.into_iter().enumerate() {
            let group = groups[group];
            if self.groups.len() <= group {
                self.groups.resize_with(group + 1, Vec::new);
            }
            if self.groups[group].is_empty() {
                self.groups[group] = steps;
            } else {
                for (mine, theirs) in self.groups[group].iter_mut().zip(&steps) {
                    mine.add(theirs, 1);
                }
            }
        }
        for (mine, theirs) in self.whole.iter_mut().zip(&other.whole) {
            mine.add(theirs, 1);
        }
        for (mine, theirs) in self.sums.iter_mut().zip(&other.sums) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.add(theirs, 1);
            }
        }
        for (mine, theirs) in self.kills.iter_mut().zip(other.kills) {
            if mine.is_empty() {
                *mine = theirs;
            } else {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine += theirs;
                }
            }
        }
        self.detections.merge(other.detections);
        self.units.merge(other.units);
    }
}

/// What a cell is made of beside its board: numbers that are the same for every cell.
pub(crate) struct Frame<'a> {
    /// Groups in the order of the strata; the first is all runs.
    pub(crate) groups: &'a [usize],
    /// Runs not labelled as hung, by group and part.
    pub(crate) runs: &'a [[u64; PARTS]],
    /// Runs labelled as hung, by part.
    pub(crate) hung: [u64; PARTS],
    /// Verdicts are given on the second part alone.
    pub(crate) split: bool,
}

/// Adds up the cells along a line.
pub(crate) struct Walk<'a> {
    board: &'a Board,
    /// The line, and the one whose counts all lines of its family share.
    lines: [Option<usize>; 2],
    place: usize,
    groups: Vec<[Step; PARTS]>,
    whole: Whole,
    sums: [[Linear; 3]; PARTS],
    kills: [i64; Cause::ALL.len()],
    detections: Running,
    /// The strata of the last cell, of all runs and of the second part, as long as nothing changes in them.
    strata: [Option<Arc<[Tally]>>; 2],
}

impl<'a> Walk<'a> {
    pub(crate) fn new(board: &'a Board, line: usize, shared: Option<usize>) -> Self {
        Self {
            board,
            lines: [Some(line), shared],
            place: 0,
            groups: vec![[Step::default(); PARTS]; board.groups.len()],
            whole: Whole::default(),
            sums: [[Linear::default(); 3]; PARTS],
            kills: [0; Cause::ALL.len()],
            detections: Running::default(),
            strata: [None, None],
        }
    }

    /// Takes in the next place.
    pub(crate) fn step(&mut self) {
        let board = self.board;
        for line in self.lines.into_iter().flatten() {
            let (cell, cells) = (line * board.stride + self.place, board.cells());
            for (sum, steps) in self.groups.iter_mut().zip(&board.groups) {
                for (part, sum) in sum.iter_mut().enumerate() {
                    if let Some(step) = steps.get(part * cells + cell)
                        && *step != Step::default()
                    {
                        sum.add(step, 1);
                        self.strata = [None, None];
                    }
                }
            }
            self.whole.add(&board.whole[cell], 1);
            for (part, sums) in self.sums.iter_mut().enumerate() {
                for (sum, linear) in sums.iter_mut().zip(&board.sums[part * cells + cell]) {
                    sum.add(linear, 1);
                }
            }
            for (sum, kills) in self.kills.iter_mut().zip(&board.kills) {
                *sum += kills.get(cell).copied().unwrap_or(0);
            }
            self.detections.step(&board.detections, cell);
        }
        self.place += 1;
    }

    /// The cell of the place taken in last; `units` walks the same line.
    pub(crate) fn cell(
        &mut self,
        window_ms: u64,
        frame: &Frame<'_>,
        units: &mut UnitWalk<'_>,
    ) -> CellCounts {
        let coarse = self.board.is_coarse();
        let detections = self.detections.told(window_ms, coarse);
        let groups = &self.groups;
        let group = |parts: &[usize], group: usize| {
            let mut step = Step::default();
            let mut runs = 0;
            for &part in parts {
                if let Some(steps) = groups.get(group) {
                    step.add(&steps[part], 1);
                }
                runs += frame.runs[group][part];
            }
            step.tally(runs)
        };
        let mut strata = std::mem::take(&mut self.strata);
        let mut part = |parts: &[usize]| {
            let known = &mut strata[usize::from(parts.len() == 1)];
            let strata = known.get_or_insert_with(|| {
                let numbers = frame.groups[1..].iter();
                numbers.map(|&number| group(parts, number)).collect()
            });
            let sum = |sum: Sum| {
                let parts = parts
                    .iter()
                    .map(|&part| self.sums[part][sum as usize].at(window_ms));
                parts.sum()
            };
            Part {
                tally: group(parts, frame.groups[0]),
                hung: parts.iter().map(|&part| frame.hung[part]).sum(),
                slot_lost_ms: sum(Sum::SlotLost),
                work_lost_ms: sum(Sum::WorkLost),
                doubtful_work_ms: sum(Sum::DoubtfulWork),
                strata: Arc::clone(strata),
                units: Units::default(),
            }
        };
        let mut all = part(&[0, 1]);
        all.units = units.units(false);
        let certify = if frame.split {
            Part {
                units: units.units(true),
                ..part(&[1])
            }
        } else {
            all.clone()
        };
        self.strata = strata;
        CellCounts {
            certify,
            kills: self.kills.map(|kills| kills as u64),
            true_kills: self.whole.true_kills as u64,
            hung_killed_early: self.whole.hung_killed_early as u64,
            hung_missed: self.whole.hung_missed as u64,
            detections,
            against_base: crate::stats::paired::Discordant {
                runs: all.tally.runs,
                only_first: self.whole.base_only as u64,
                only_second: self.whole.candidate_only as u64,
            },
            all,
        }
    }
}
