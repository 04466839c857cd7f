//! What is counted of every independent unit of runs, as differences between neighbouring windows.
//!
//! Most units differ in few places of a board: a list in the order of the places, into which new entries are sorted from
//! time to time, costs less than a map and gives each line its own part.

use std::collections::BTreeMap;

use crate::board::{PARTS, Step};
use crate::tally::Units;

/// So many entries are sorted in at least.
const AT_LEAST: usize = 4096;

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitStep {
    cell: u32,
    part: u32,
    unit: i64,
    step: Step,
}

impl UnitStep {
    const fn key(&self) -> (u32, i64, u32) {
        (self.cell, self.unit, self.part)
    }
}

/// Changes by place, unit and part.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitSteps {
    log: Vec<UnitStep>,
    /// So many of the first are in order, each place, unit and part once.
    sorted: usize,
}

impl UnitSteps {
    pub(crate) fn add(&mut self, cell: usize, unit: i64, part: usize, step: &Step, sign: i64) {
        let mut change = Step::default();
        change.add(step, sign);
        self.log.push(UnitStep {
            cell: cell as u32,
            part: part as u32,
            unit,
            step: change,
        });
        if self.log.len() >= 2 * self.sorted + AT_LEAST {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.log.sort_unstable_by_key(UnitStep::key);
        self.log.dedup_by(|next, kept| {
            let same = next.key() == kept.key();
            if same {
                kept.step.add(&next.step, 1);
            }
            same
        });
        self.log.retain(|entry| entry.step != Step::default());
        self.sorted = self.log.len();
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.log.extend(other.log);
        self.sort();
    }

    /// The changes in the order of the places.
    pub(crate) fn in_order(&self) -> Vec<UnitStep> {
        let mut all = self.clone();
        all.sort();
        all.log
    }
}

/// The independent units of the cells along a line.
pub(crate) struct UnitWalk<'a> {
    /// The changes of the line, and of the one whose counts all lines of its family share, with their first cells.
    changes: [(&'a [UnitStep], usize); 2],
    place: usize,
    now: BTreeMap<i64, [Step; PARTS]>,
    /// Those of the last cell, of all runs and of the second half, as long as nothing changes in them.
    told: [Option<Units>; 2],
}

impl<'a> UnitWalk<'a> {
    /// Walks a line of `stride` places among changes in order.
    pub(crate) fn new(
        changes: &'a [UnitStep],
        stride: usize,
        line: usize,
        shared: Option<usize>,
    ) -> Self {
        let of_line = |line: usize| {
            let first = line * stride;
            let at = |cell: usize| changes.partition_point(|entry| (entry.cell as usize) < cell);
            (&changes[at(first)..at(first + stride)], first)
        };
        Self {
            changes: [of_line(line), shared.map_or((&[], 0), of_line)],
            place: 0,
            now: BTreeMap::new(),
            told: [None, None],
        }
    }

    /// Takes in the next place.
    pub(crate) fn step(&mut self) {
        for (changes, first) in &mut self.changes {
            while let [entry, rest @ ..] = changes
                && entry.cell as usize == *first + self.place
            {
                let steps = self.now.entry(entry.unit).or_default();
                steps[entry.part as usize].add(&entry.step, 1);
                if *steps == [Step::default(); PARTS] {
                    self.now.remove(&entry.unit);
                }
                self.told = [None, None];
                *changes = rest;
            }
        }
        self.place += 1;
    }

    /// The units of the place taken in last, of all runs or of the second half alone.
    pub(crate) fn units(&mut self, certify: bool) -> Units {
        let units = &self.now;
        let told = self.told[usize::from(certify)].get_or_insert_with(|| {
            units
                .iter()
                .filter_map(|(&unit, [select, second])| {
                    let mut step = *second;
                    if !certify {
                        step.add(select, 1);
                    }
                    (step != Step::default()).then(|| (unit, step.tally(0)))
                })
                .collect()
        });
        told.clone()
    }
}
