//! The readings of the idle clock, counted as a sweep reads its runs.

use policysim_policy::{Silence, SilenceEnd};

use crate::gaps::Cut;
use crate::lengths::Lengths;
use crate::run::{RecordedEnd, Run, Symbols};
use crate::scan::RunView;
use crate::staircase::{Crossings, LONGEST_FLOOR_MS, Structure};
use crate::stats::Counts;

/// Counts by length, most of them of short gaps.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// By ms; empty until there is one.
    short: Vec<u64>,
    long: Lengths,
}

impl PartialEq for Gaps {
    fn eq(&self, other: &Self) -> bool {
        // memory that was made room in and holds nothing is no difference
        self.short() == other.short() && self.long == other.long
    }
}

impl Eq for Gaps {}

impl Gaps {
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

    /// The short ones.
    fn short(&self) -> Lengths {
        let lengths = self.short.iter().zip(0..);
        let counts = lengths.map(|(&times, ms)| (ms, times)).collect();
        Lengths::restore(counts, true)
    }

    /// Gaps that were told as the short ones and the others.
    fn of(short: &Lengths, long: Lengths) -> Self {
        let mut gaps = Self {
            long,
            ..Self::default()
        };
        for (ms, times) in short.counts().iter() {
            gaps.short.resize(LONGEST_FLOOR_MS as usize, 0);
            match gaps.short.get_mut(ms as usize) {
                Some(slot) => *slot += times,
                None => gaps.long.add(ms, times),
            }
        }
        gaps
    }

    /// Gaps of 0 ms are none.
    fn counts(&self) -> Counts {
        let short = (0..).zip(self.short.iter().copied()).skip(1);
        self.long.pairs(|long| short.chain(long).collect())
    }
}

/// The readings of all runs under one structure.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stretches {
    healthy: Gaps,
    hung: Gaps,
    /// Runs not labelled as hung by their number of gaps, and by the longest of those that have one.
    gaps_per_run: Lengths,
    longest: Lengths,
    /// The silences in which records end, of runs recorded as killed, as aborted, and of all but those and the hung; where there
    /// is none, killed runs count 0.
    killed_ms: Lengths,
    aborted_ms: Lengths,
    open_ms: Lengths,
}

/// What one run adds.
#[derive(Debug, Default)]
pub(crate) struct OfRun {
    /// The gaps that were told and whose end was observed, ms.
    told: Vec<u64>,
    /// All whose end was observed.
    count: u64,
    last: Option<Reading>,
    open_ms: u64,
    end: RecordedEnd,
    end_ms: u64,
    /// The same by the words of [`crate::gaps`], which look at what ended each gap and not at which is the last:
    /// what was cut, what of the above was, and what else was not.
    pub(crate) cut: Vec<(Cut, u64)>,
    pub(crate) less: Vec<u64>,
    pub(crate) more: Vec<u64>,
}

/// What becomes of the gaps that are not told one by one: most of a run's. Not behind a pointer to a function, because
/// there is one per piece of a stream.
pub(crate) struct Short<E> {
    each: E,
    count: u64,
}

impl<E: FnMut(u64)> Short<E> {
    #[inline]
    pub(crate) fn take(&mut self, ms: u64) {
        (self.each)(ms);
        self.count += u64::from(ms > 0);
    }
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    ms: u64,
    to_ms: u64,
    end: SilenceEnd,
}

impl OfRun {
    /// A run begins.
    fn begin(&mut self, head: &Run) {
        self.told.clear();
        self.cut.clear();
        self.less.clear();
        self.more.clear();
        (self.count, self.last, self.open_ms) = (0, None, 0);
        (self.end, self.end_ms) = (head.end, head.end_ms);
    }

    /// The run is over: the gap before a recorded kill or abort was ended by that, not by the run.
    fn finish(&mut self) {
        if let Some(last) = self.last.take() {
            let stopped = matches!(
                self.end,
                RecordedEnd::Aborted | RecordedEnd::Hung | RecordedEnd::Killed
            );
            self.settle(last, stopped && last.to_ms >= self.end_ms);
        }
    }

    /// How many gaps had their end observed, those among them that were not told included.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Reads one run: `read` tells its gaps; `each` gets, in no order, those whose end was observed.
    pub(crate) fn read<E: FnMut(u64)>(
        &mut self,
        head: &Run,
        read: impl FnOnce(&mut Self, &mut Short<E>),
        each: E,
    ) {
        self.begin(head);
        let mut short = Short { each, count: 0 };
        read(self, &mut short);
        self.finish();
        self.told.iter().for_each(|&ms| (short.each)(ms));
        self.count = short.count + self.told.len() as u64;
    }

    /// A stretch that was told.
    pub(crate) fn take(&mut self, silence: &Silence) {
        let reading = Reading {
            ms: silence.reading.as_u64(),
            to_ms: silence.to.as_u64(),
            end: silence.end,
        };
        if let Some(last) = self.last.replace(reading) {
            self.settle(last, false);
        }
    }

    fn settle(&mut self, reading: Reading, cut: bool) {
        let ms = reading.ms;
        let open = reading.end == SilenceEnd::Cut || cut;
        if open {
            self.open_ms = ms;
        } else if ms > 0 {
            self.told.push(ms);
        }
        let cut = Cut::of(self.end, self.end_ms, reading.to_ms, reading.end);
        if ms == 0 || (cut.is_some() == open && !open) {
            return;
        }
        match cut {
            Some(cut) => self.cut.push((cut, ms)),
            None => self.more.push(ms),
        }
        if cut.is_some() && !open {
            self.less.push(ms);
        }
    }
}

impl Stretches {
    /// Reads one run under `structure`; what can cross a limit goes to `found`, the rest stays in `of_run`.
    pub(crate) fn add(
        &mut self,
        of_run: &mut OfRun,
        structure: &Structure,
        (run, symbols): (&RunView<'_>, &Symbols),
        found: &mut Crossings,
    ) {
        let head = run.head;
        let hung = head.end == RecordedEnd::Hung;
        let gaps = if hung {
            &mut self.hung
        } else {
            &mut self.healthy
        };
        let mut longest = 0;
        let Gaps { short, long } = gaps;
        if short.is_empty() {
            short.resize(LONGEST_FLOOR_MS as usize, 0);
        }
        of_run.read(
            head,
            |of_run, counted| {
                let told = |silence: &Silence| of_run.take(silence);
                structure.read(run, symbols, found, told, |ms| counted.take(ms));
            },
            |ms| {
                match short.get_mut(ms as usize) {
                    Some(slot) => *slot += 1,
                    None => long.add(ms, 1),
                }
                longest = longest.max(ms);
            },
        );
        let count = of_run.count();
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
        if open_ms > 0 && !matches!(head.end, RecordedEnd::Aborted | RecordedEnd::Hung) {
            self.open_ms.add(open_ms, 1);
        }
    }

    /// What is kept: short and other gaps of runs not labelled as hung, the same of hung ones, then the rest in the
    /// order of the fields.
    pub(crate) fn parts(&self) -> [Lengths; 9] {
        [
            self.healthy.short(),
            self.healthy.long.clone(),
            self.hung.short(),
            self.hung.long.clone(),
            self.gaps_per_run.clone(),
            self.longest.clone(),
            self.killed_ms.clone(),
            self.aborted_ms.clone(),
            self.open_ms.clone(),
        ]
    }

    /// The same from its parts.
    pub(crate) fn of_parts(parts: [Lengths; 9]) -> Self {
        let [
            healthy,
            long,
            hung,
            hung_long,
            gaps_per_run,
            longest,
            killed_ms,
            aborted_ms,
            open_ms,
        ] = parts;
        Self {
            healthy: Gaps::of(&healthy, long),
            hung: Gaps::of(&hung, hung_long),
            gaps_per_run,
            longest,
            killed_ms,
            aborted_ms,
            open_ms,
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
    pub fn gaps_per_run(&self) -> Counts {
        self.gaps_per_run.counts()
    }

    /// Runs not labelled as hung that have a gap, by the longest.
    pub fn longest(&self) -> Counts {
        self.longest.counts()
    }

    /// Runs that the record says were killed, by the silence before, 0 where there is none.
    pub fn killed_ms(&self) -> Counts {
        self.killed_ms.counts()
    }

    /// Aborted runs by the silence in which they were.
    pub fn aborted_ms(&self) -> Counts {
        self.aborted_ms.counts()
    }

    /// Runs neither aborted nor hung by the silence in which their record ends.
    pub fn open_ms(&self) -> Counts {
        self.open_ms.counts()
    }

    /// Whether every length is counted as it was ([`Lengths::is_exact`]).
    pub const fn is_exact(&self) -> bool {
        self.healthy.long.is_exact()
            && self.hung.long.is_exact()
            && self.gaps_per_run.is_exact()
            && self.longest.is_exact()
            && self.killed_ms.is_exact()
            && self.aborted_ms.is_exact()
            && self.open_ms.is_exact()
    }
}
