//! Totals by session in bounded memory: sessions by themselves as long as they are few, then in groups.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use crate::stats::choice::{Half, half, mixed};

/// Up to so many sessions have totals of their own. With more, whole sessions are put together by the hash of their
/// keys: so many groups there are then at most, each within one half of the runs.
///
/// A variance over the 2,048 groups of a half is itself uncertain by 3 % (the square root of 2 over their number), and
/// the width of an interval by half of that; a worker holds no more than 2 MB.
pub const EXACT_SESSIONS: usize = 1 << 12;

/// What tells the group of a session from its half.
const GROUPING: u64 = 0x9e37_79b9_7f4a_7c15;

/// A total for each session.
///
/// What is held is a function of all that was added, whatever the order and however it was split.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BySession<T> {
    seed: u64,
    totals: Totals<T>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Totals<T> {
    /// By key.
    Named(BTreeMap<Arc<str>, T>),
    /// By group; those of the certifying half are odd.
    Grouped(Groups<T>),
}

/// Totals of groups, with room for all of them from the start: what is held does not grow with what is added.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Groups<T> {
    totals: Vec<T>,
    /// Which groups there are.
    met: Vec<bool>,
}

impl<T: AddAssign + Default> Groups<T> {
    fn new(exact: usize) -> Self {
        let n_groups = 2 * pairs(exact);
        let mut totals = Vec::new();
        totals.resize_with(n_groups, T::default);
        Self {
            totals,
            met: vec![false; n_groups],
        }
    }

    fn add(&mut self, group: usize, what: T) {
        self.totals[group] += what;
        self.met[group] = true;
    }
}

impl<T> Groups<T> {
    fn into_iter(self) -> impl Iterator<Item = (usize, T)> {
        let met = self.met.into_iter();
        let all = self.totals.into_iter().enumerate().zip(met);
        all.filter_map(|(total, met)| met.then_some(total))
    }

    fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let all = self.totals.iter().enumerate().zip(&self.met);
        all.filter_map(|(total, met)| met.then_some(total))
    }
}

impl<T: AddAssign + Default> BySession<T> {
    /// No session yet; `seed` is that by which they are halved.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            totals: Totals::Named(BTreeMap::new()),
        }
    }

    /// Adds to the total of the session `key`.
    pub fn add(&mut self, key: &Arc<str>, what: T) {
        self.add_within(key, what, EXACT_SESSIONS);
    }

    fn add_within(&mut self, key: &Arc<str>, what: T, exact: usize) {
        match &mut self.totals {
            Totals::Grouped(groups) => {
                groups.add(group(key, self.seed, exact), what);
            }
            Totals::Named(named) => {
                if let Some(total) = named.get_mut(key) {
                    *total += what;
                } else {
                    named.insert(Arc::clone(key), what);
                }
                if named.len() > exact {
                    let named = std::mem::take(named);
                    self.totals = Totals::Grouped(Groups::new(exact));
                    for (key, total) in named {
                        self.add_within(&key, total, exact);
                    }
                }
            }
        }
    }

    /// Takes in totals of other runs, halved by the same seed.
    pub fn merge(&mut self, other: Self) {
        self.merge_within(other, EXACT_SESSIONS);
    }

    fn merge_within(&mut self, other: Self, exact: usize) {
        match (&mut self.totals, other.totals) {
            (_, Totals::Named(named)) => {
                for (key, total) in named {
                    self.add_within(&key, total, exact);
                }
            }
            (Totals::Grouped(mine), Totals::Grouped(theirs)) => {
                for (group, total) in theirs.into_iter() {
                    mine.add(group, total);
                }
            }
            (Totals::Named(mine), theirs @ Totals::Grouped(_)) => {
                let mine = std::mem::take(mine);
                self.totals = theirs;
                for (key, total) in mine {
                    self.add_within(&key, total, exact);
                }
            }
        }
    }
}

impl<T> BySession<T> {
    /// Whether every session has a total of its own.
    pub const fn is_exact(&self) -> bool {
        matches!(self.totals, Totals::Named(_))
    }

    /// How many sessions, or groups of them, there are.
    pub fn len(&self) -> usize {
        match &self.totals {
            Totals::Named(named) => named.len(),
            Totals::Grouped(groups) => groups.iter().count(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The totals in the order of their keys, each with the half that it is in.
    pub fn iter(&self) -> impl Iterator<Item = (Half, &T)> {
        let (named, groups) = match &self.totals {
            Totals::Named(named) => (Some(named), None),
            Totals::Grouped(groups) => (None, Some(groups)),
        };
        let named = named.into_iter().flatten();
        let named = named.map(|(key, total)| (half(key.as_bytes(), self.seed), total));
        let groups = groups.into_iter().flat_map(Groups::iter);
        let groups = groups.map(|(group, total)| match group % 2 {
            0 => (Half::Select, total),
            _ => (Half::Certify, total),
        });
        named.chain(groups)
    }
}

/// How many groups each half has.
fn pairs(exact: usize) -> usize {
    (exact / 2).max(1)
}

/// The group of a session.
fn group(key: &str, seed: u64, exact: usize) -> usize {
    let among = mixed(key.as_bytes(), GROUPING) % pairs(exact) as u64;
    let odd = usize::from(half(key.as_bytes(), seed) == Half::Certify);
    2 * among as usize + odd
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn totals(runs: &[(u8, u64)], exact: usize) -> BySession<u64> {
        let mut found = BySession::new(7);
        for (session, what) in runs {
            found.add_within(&Arc::from(format!("session {session}")), *what, exact);
        }
        found
    }

    proptest! {
        #[test]
        fn any_split_in_any_order_gives_the_same_totals(
            mut runs in prop::collection::vec((any::<u8>(), 0_u64..1_000), 1..60),
            turn in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
            exact in 1_usize..80,
        ) {
            let whole = totals(&runs, exact);
            let by = turn.index(runs.len());
            runs.rotate_left(by);
            let (head, tail) = runs.split_at(cut.index(runs.len()));
            let (head, tail) = (totals(head, exact), totals(tail, exact));
            let mut left = head.clone();
            left.merge_within(tail.clone(), exact);
            prop_assert_eq!(&left, &whole);
            let mut right = tail;
            right.merge_within(head, exact);
            prop_assert_eq!(&right, &whole);
            let sum: u64 = whole.iter().map(|(_, total)| total).sum();
            prop_assert_eq!(sum, runs.iter().map(|(_, what)| what).sum::<u64>());
            prop_assert!(whole.len() <= exact.max(2));
        }

        #[test]
        fn halves_hold_the_same_sessions_grouped_or_not(runs in prop::collection::vec((any::<u8>(), 0_u64..1_000), 1..60)) {
            let of = |totals: BySession<u64>, half: Half| -> u64 {
                totals.iter().filter(|(of, _)| *of == half).map(|(_, total)| total).sum()
            };
            for half in [Half::Select, Half::Certify] {
                prop_assert_eq!(of(totals(&runs, 1_000), half), of(totals(&runs, 4), half));
            }
        }
    }
}
