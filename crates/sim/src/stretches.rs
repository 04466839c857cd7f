//! The readings of the idle clock, counted as a sweep reads its runs.

use policysim_policy::{Silence, SilenceEnd};

use crate::run::{RecordedEnd, Run};
use crate::staircase::LONGEST_FLOOR_MS;
use crate::stats::Counts;

/// Counts by length, most of them of short gaps.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Gaps {
    /// By ms; empty until there is one.
    short: Vec<u64>,
    long: Counts,
}

impl Gaps {
    fn short(&mut self) -> &mut [u64] {
        if self.short.is_empty() {
            self.short.resize(LONGEST_FLOOR_MS as usize, 0);
        }
        &mut self.short
    }

    fn add(&mut self, ms: u64) {
        match self.short().get_mut(ms as usize) {
            Some(slot) => *slot += 1,
            None => self.long.add(ms, 1),
        }
    }

    fn merge(&mut self, other: &Self) {
        if self.short.is_empty() {
            self.short.clone_from(&other.short);
        } else {
            for (mine, theirs) in self.short.iter_mut().zip(&other.short) {
                *mine += theirs;
            }
        }
        self.long.merge(&other.long);
    }

    /// Gaps of 0 ms are none.
    fn counts(&self) -> Counts {
        let mut counts = self.long.clone();
        for (ms, &times) in self.short.iter().enumerate().skip(1) {
            counts.add(ms as u64, times);
        }
        counts
    }
}

/// The readings of all runs under one structure.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stretches {
    healthy: Gaps,
    hung: Gaps,
    /// Runs not labelled as hung by their number of gaps, and by the longest of those that have one.
    gaps_per_run: Counts,
    longest: Counts,
    /// The silences in which records end, of runs recorded as killed, as aborted, and of all but the aborted; where there
    /// is none, killed runs count 0.
    killed_ms: Counts,
    aborted_ms: Counts,
    open_ms: Counts,
}

/// What one run adds.
#[derive(Debug, Default)]
pub(crate) struct OfRun {
    told: Vec<u64>,
    last: Option<Reading>,
    open_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    ms: u64,
    to_ms: u64,
    censored: bool,
}

impl OfRun {
    /// A stretch that was told.
    pub(crate) fn take(&mut self, silence: &Silence) {
        let reading = Reading {
            ms: silence.reading.as_u64(),
            to_ms: silence.to.as_u64(),
            censored: silence.end == SilenceEnd::Cut,
        };
        if let Some(last) = self.last.replace(reading) {
            self.settle(last, false);
        }
    }

    /// The gap before a recorded kill or abort was ended by that, not by the run.
    fn settle(&mut self, reading: Reading, cut: bool) {
        if reading.censored || cut {
            self.open_ms = reading.ms;
        } else if reading.ms > 0 {
            self.told.push(reading.ms);
        }
    }
}

impl Stretches {
    /// Reads one run: `read` gets the counts of its short gaps by ms, and keeps the others in what it is given.
    pub(crate) fn add(
        &mut self,
        head: &Run,
        of_run: &mut OfRun,
        read: impl FnOnce(&mut OfRun, &mut dyn FnMut(u64)),
    ) {
        let hung = head.end == RecordedEnd::Hung;
        let gaps = if hung {
            &mut self.hung
        } else {
            &mut self.healthy
        };
        let (mut count, mut longest) = (0, 0);
        of_run.told.clear();
        (of_run.last, of_run.open_ms) = (None, 0);
        let short = gaps.short();
        read(of_run, &mut |ms| {
            if let Some(slot) = short.get_mut(ms as usize) {
                *slot += 1;
            }
            count += u64::from(ms > 0);
            longest = longest.max(ms);
        });
        if let Some(last) = of_run.last.take() {
            let cut = matches!(
                head.end,
                RecordedEnd::Aborted | RecordedEnd::Hung | RecordedEnd::Killed
            );
            of_run.settle(last, cut && last.to_ms >= head.end_ms);
        }
        for &ms in &of_run.told {
            gaps.add(ms);
            count += 1;
            longest = longest.max(ms);
        }
        if !hung {
            self.gaps_per_run.add(count, 1);
            if longest > 0 {
                self.longest.add(longest, 1);
            }
        }
        let open_ms = of_run.open_ms;
        match head.end {
            RecordedEnd::Killed => self.killed_ms.add(open_ms, 1),
            RecordedEnd::Aborted if open_ms > 0 => self.aborted_ms.add(open_ms, 1),
            _ => {}
        }
        if open_ms > 0 && head.end != RecordedEnd::Aborted {
            self.open_ms.add(open_ms, 1);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.healthy.merge(&other.healthy);
        self.hung.merge(&other.hung);
        self.gaps_per_run.merge(&other.gaps_per_run);
        self.longest.merge(&other.longest);
        self.killed_ms.merge(&other.killed_ms);
        self.aborted_ms.merge(&other.aborted_ms);
        self.open_ms.merge(&other.open_ms);
    }

    /// Gaps whose end was observed, of runs not labelled as hung.
    pub fn healthy(&self) -> Counts {
        self.healthy.counts()
    }

    /// The same of all runs.
    pub fn all(&self) -> Counts {
        let mut counts = self.healthy();
        counts.merge(&self.hung.counts());
        counts
    }

    /// Runs not labelled as hung by their number of gaps.
    pub const fn gaps_per_run(&self) -> &Counts {
        &self.gaps_per_run
    }

    /// Runs not labelled as hung that have a gap, by the longest.
    pub const fn longest(&self) -> &Counts {
        &self.longest
    }

    /// Runs that the record says were killed, by the silence before, 0 where there is none.
    pub const fn killed_ms(&self) -> &Counts {
        &self.killed_ms
    }

    /// Aborted runs by the silence in which they were.
    pub const fn aborted_ms(&self) -> &Counts {
        &self.aborted_ms
    }

    /// Runs not aborted by the silence in which their record ends.
    pub const fn open_ms(&self) -> &Counts {
        &self.open_ms
    }
}
