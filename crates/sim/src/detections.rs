//! How soon hung runs are noticed, for all windows of a line at once.
//!
//! The idle clock of a hung run is mostly started by its last sign of life, so that a window notices it after exactly
//! its own length; where something else started the clock, so much later or earlier. Over a range of windows a run
//! is told apart by that difference alone: a line holds few different ones, whatever the number of windows and runs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::lengths::rounded;
use crate::stats::Counts;

/// From a sign of life to a firing: a length, or a difference from the window.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum After {
    Always(i64),
    Window(i64),
}

impl After {
    /// The same in buckets of an HDR histogram.
    fn coarse(self) -> Self {
        let round = |ms: i64| {
            let length = i64::try_from(rounded(ms.unsigned_abs())).unwrap_or(i64::MAX);
            length * ms.signum()
        };
        match self {
            Self::Always(ms) => Self::Always(round(ms)),
            Self::Window(ms) => Self::Window(round(ms)),
        }
    }
}

/// So many different changes per cell of a board are kept exactly, and so many at least.
const EXACT_PER_CELL: usize = 8;
const EXACT_AT_LEAST: usize = 1 << 15;

/// Where on a board's lines how many runs begin and cease to be noticed after what.
///
/// What is held is a function of all that was added: no entry is taken out again, so that a part with too many makes
/// the whole have too many.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Changes {
    /// By cell.
    at: BTreeMap<(u32, After), i64>,
    exact: usize,
    coarse: bool,
}

impl Changes {
    pub(crate) fn new(cells: usize) -> Self {
        Self {
            exact: EXACT_AT_LEAST.max(EXACT_PER_CELL * cells),
            ..Self::default()
        }
    }

    /// A hung run is noticed so by every cell of `range`.
    pub(crate) fn add(&mut self, range: &Range<usize>, after: After) {
        self.change(range.start as u32, after, 1);
        self.change(range.end as u32, after, -1);
    }

    fn change(&mut self, cell: u32, after: After, runs: i64) {
        let after = if self.coarse { after.coarse() } else { after };
        *self.at.entry((cell, after)).or_default() += runs;
        if !self.coarse && self.at.len() > self.exact {
            self.coarse = true;
            for ((cell, after), runs) in std::mem::take(&mut self.at) {
                self.change(cell, after, runs);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if other.coarse && !self.coarse {
            let exact = std::mem::replace(self, other);
            return self.merge(exact);
        }
        for ((cell, after), runs) in other.at {
            self.change(cell, after, runs);
        }
    }

    /// Whether differences are told from buckets.
    pub(crate) const fn is_coarse(&self) -> bool {
        self.coarse
    }

    /// The changes at `cell`.
    fn of(&self, cell: usize) -> impl Iterator<Item = (After, i64)> + '_ {
        let first = (cell as u32, After::Always(i64::MIN));
        self.at
            .range(first..)
            .take_while(move |((at, _), _)| *at as usize == cell)
            .map(|(&(_, after), &runs)| (after, runs))
    }
}

/// The changes along a line, added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    now: BTreeMap<After, i64>,
    told: Option<Arc<Told>>,
}

impl Running {
    /// Takes in the changes at `cell`.
    pub(crate) fn step(&mut self, changes: &Changes, cell: usize) {
        for (after, runs) in changes.of(cell) {
            let sum = self.now.entry(after).or_default();
            *sum += runs;
            if *sum == 0 {
                self.now.remove(&after);
            }
            self.told = None;
        }
    }

    /// What the cell taken in last notices, with its window.
    pub(crate) fn told(&mut self, window_ms: u64, coarse: bool) -> Detections {
        let told = self.told.get_or_insert_with(|| {
            let mut told = Told::default();
            for (&after, &runs) in &self.now {
                match after {
                    After::Always(ms) => told.always.push((ms, runs as u64)),
                    After::Window(ms) => told.window.push((ms, runs as u64)),
                }
            }
            Arc::new(told)
        });
        Detections {
            told: Arc::clone(told),
            window_ms,
            coarse,
        }
    }
}

/// By rising length.
#[derive(Debug, Default)]
struct Told {
    always: Vec<(i64, u64)>,
    window: Vec<(i64, u64)>,
}

/// Last sign of life to firing of each hung run that one candidate detects, ms. Cells that differ in the window alone
/// share what they hold.
#[derive(Clone, Debug, Default)]
pub struct Detections {
    told: Arc<Told>,
    window_ms: u64,
    coarse: bool,
}

impl Detections {
    /// How many hung runs are detected.
    pub fn total(&self) -> u64 {
        let runs = self.told.always.iter().chain(&self.told.window);
        runs.map(|(_, runs)| runs).sum()
    }

    /// Detection times with the number of runs.
    pub fn counts(&self) -> Counts {
        let window = i64::try_from(self.window_ms).unwrap_or(i64::MAX);
        let always = self.told.always.iter().copied();
        let moved = self.told.window.iter();
        let moved = moved.map(|&(ms, runs)| (ms.saturating_add(window), runs));
        always
            .chain(moved)
            .map(|(ms, runs)| (u64::try_from(ms).unwrap_or(0), runs))
            .collect()
    }

    /// Whether every time is exact. Where too many different ones were met, each is told from the bucket of an HDR
    /// histogram: what the clock lagged behind the last sign of life is off by at most 0.1 % of itself.
    pub const fn is_exact(&self) -> bool {
        !self.coarse
    }
}

impl FromIterator<u64> for Detections {
    fn from_iter<I: IntoIterator<Item = u64>>(times_ms: I) -> Self {
        let counts: Counts = times_ms.into_iter().collect();
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let always = counts.iter().map(|(ms, runs)| (signed(ms), runs)).collect();
        Self {
            told: Arc::new(Told {
                always,
                window: Vec::new(),
            }),
            ..Self::default()
        }
    }
}

impl PartialEq for Detections {
    fn eq(&self, other: &Self) -> bool {
        self.coarse == other.coarse && self.counts() == other.counts()
    }
}

impl Eq for Detections {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn after() -> impl Strategy<Value = After> {
        prop_oneof![
            (0_i64..400_000_000).prop_map(After::Always),
            (-40_000_i64..400_000_000).prop_map(After::Window),
        ]
    }

    fn of(changes: &[(usize, usize, After)], exact: usize) -> Changes {
        let mut found = Changes {
            exact,
            ..Changes::default()
        };
        for &(from, len, after) in changes {
            found.add(&(from..from + len), after);
        }
        found
    }

    proptest! {
        #[test]
        fn any_split_in_any_order_holds_the_same(
            changes in prop::collection::vec((0_usize..6, 1_usize..6, after()), 1..30),
            cut in any::<prop::sample::Index>(),
            exact in 1_usize..60,
        ) {
            let whole = of(&changes, exact);
            let (head, tail) = changes.split_at(cut.index(changes.len()));
            let (head, tail) = (of(head, exact), of(tail, exact));
            let mut left = head.clone();
            left.merge(tail.clone());
            prop_assert_eq!(&left, &whole);
            let mut right = tail;
            right.merge(head);
            prop_assert_eq!(&right, &whole);
        }

        #[test]
        fn every_cell_is_told_what_was_added_to_it(changes in prop::collection::vec((0_usize..6, 1_usize..6, after()), 1..30)) {
            let board = of(&changes, usize::MAX);
            let mut running = Running::default();
            for cell in 0..12 {
                running.step(&board, cell);
                let window_ms = 50_000 + 1_000 * cell as u64;
                let times = changes.iter().filter(|(from, len, _)| (*from..from + len).contains(&cell));
                let times = times.map(|(_, _, after)| match *after {
                    After::Always(ms) => ms as u64,
                    After::Window(ms) => (window_ms as i64 + ms) as u64,
                });
                let expected: Detections = times.collect();
                let told = running.told(window_ms, false);
                prop_assert_eq!(&told, &expected);
                prop_assert_eq!(told.total(), expected.counts().total());
            }
        }
    }

    #[test]
    fn coarse_changes_stay_within_a_thousandth() {
        let changes: Vec<(usize, usize, After)> = (0..100)
            .map(|index| (0, 1, After::Window(1_000_000 + 7_919 * index)))
            .collect();
        let board = of(&changes, 10);
        let mut running = Running::default();
        running.step(&board, 0);
        let told = running.told(60_000, board.is_coarse()).counts();
        assert!(board.is_coarse() && told.total() == 100);
        for (index, ms) in told
            .iter()
            .flat_map(|(ms, runs)| std::iter::repeat_n(ms, runs as usize))
            .enumerate()
        {
            let exact = 1_060_000 + 7_919 * index as u64;
            assert!(
                ms >= exact && ms - exact <= exact / 1_000,
                "{ms} for {exact}"
            );
        }
    }
}
