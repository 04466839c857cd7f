//! What is going to happen, in the order in which it will.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use policysim_policy::Millis;

/// What goes first at one instant; within a rank, what was inserted first.
///
/// A settling goes before the expiry of a wait for it (`semantics.md` 3.10), and an expiry before anything else that
/// is stamped with its instant, because deadlines are inclusive.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Rank {
    /// A delegate ends, is killed, or has unwound.
    Settling,
    /// A wait's window is over.
    Expiry,
    /// Anything else: a step of a delegate, an act of a parent.
    Act,
}

#[derive(Debug)]
struct Entry<T> {
    at: Millis,
    rank: Rank,
    /// How many entries were inserted before this one.
    inserted: u64,
    what: T,
}

impl<T> Entry<T> {
    const fn key(&self) -> (Millis, Rank, u64) {
        (self.at, self.rank, self.inserted)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Future happenings by time, then [`Rank`], then order of insertion: nothing about them is left to chance.
#[derive(Debug)]
pub struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    inserted: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            inserted: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Adds what happens at `at`.
    pub fn push(&mut self, at: Millis, rank: Rank, what: T) {
        let inserted = self.inserted;
        self.inserted += 1;
        self.heap.push(Reverse(Entry {
            at,
            rank,
            inserted,
            what,
        }));
    }

    /// Takes what happens next, unless that is after `until`.
    pub fn pop(&mut self, until: Millis) -> Option<(Millis, T)> {
        let Reverse(next) = self.heap.peek()?;
        if next.at > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_rank_then_insertion() {
        let mut queue = Queue::default();
        let at = Millis::new;
        queue.push(at(5), Rank::Act, "act");
        queue.push(at(5), Rank::Expiry, "expiry");
        queue.push(at(7), Rank::Settling, "later");
        queue.push(at(5), Rank::Settling, "first settling");
        queue.push(at(5), Rank::Settling, "second settling");
        queue.push(at(4), Rank::Act, "earlier");
        let mut order = Vec::new();
        while let Some((_, what)) = queue.pop(at(6)) {
            order.push(what);
        }
        assert_eq!(
            order,
            [
                "earlier",
                "first settling",
                "second settling",
                "expiry",
                "act"
            ]
        );
        assert_eq!(queue.pop(at(7)).map(|(at, _)| at), Some(at(7)));
        assert_eq!(queue.pop(Millis::MAX), None);
    }
}
