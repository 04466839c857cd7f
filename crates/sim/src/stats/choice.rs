//! Choosing one candidate of many without fooling oneself: split-and-certify, and testing in a fixed order.

use std::collections::BTreeSet;

use super::prob::Level;
use super::rates::{certifies, runs_needed, upper_one_sided};

/// Which half of the data a session belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Half {
    /// Candidates are ranked on this half.
    Select,
    /// The chosen one is judged on this half only.
    Certify,
}

/// FNV-1a, 64 bits.
pub(crate) fn fnv1a(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The half of the session `key`: FNV-1a of the key, xor `seed`, through the finaliser of `SplitMix64`; even selects.
///
/// It depends on the key alone, so that a session keeps its half when data are added.
pub fn half(key: &[u8], seed: u64) -> Half {
    if mixed(key, seed).is_multiple_of(2) {
        Half::Select
    } else {
        Half::Certify
    }
}

/// FNV-1a of the key, xor `seed`, through the finaliser of `SplitMix64`.
pub(crate) fn mixed(key: &[u8], seed: u64) -> u64 {
    let mut mixed = fnv1a(key) ^ seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether `runs` are enough to be split: each half must be able to certify `max_rate` without a kill.
pub fn can_split(runs: u64, max_rate: f64, level: Level) -> bool {
    runs_needed(0, max_rate, level).is_some_and(|need| runs >= need.saturating_mul(2))
}

/// One tested window of a fixed sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceStep {
    /// The window, in ms.
    pub window_ms: u64,
    /// Runs that it kills, unresolved ones included.
    pub kills: u64,
    /// One-sided upper limit of its rate.
    pub upper: Option<f64>,
    /// Whether the limit is at most the bound.
    pub certified: bool,
}

/// The outcome of a fixed sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedSequence {
    /// The windows tested, from the largest down to the first that failed.
    pub tested: Vec<SequenceStep>,
    /// The smallest window shown to be safe, in ms.
    pub smallest_certified_ms: Option<u64>,
}

/// Tests `rate(W) > max_rate` from the largest window down, each at full `level`, and stops at the first that is not
/// rejected (Maurer, Hothorn & Lehmacher 1995; Westfall & Krishen 2001): no correction is needed because the kills of
/// nested windows are nested. `kills_at` holds (window in ms, kills) in any order; the windows must have been declared
/// before the data were read. Over several (total, turns) pairs pass a level with its error divided among them.
pub fn fixed_sequence(
    kills_at: &[(u64, u64)],
    runs: u64,
    max_rate: f64,
    level: Level,
) -> FixedSequence {
    let mut windows = kills_at.to_vec();
    windows.sort_unstable_by(|left, right| right.cmp(left));
    let mut tested = Vec::new();
    for (window_ms, kills) in windows {
        let certified = certifies(kills, runs, max_rate, level);
        tested.push(SequenceStep {
            window_ms,
            kills,
            upper: upper_one_sided(kills, runs, level),
            certified,
        });
        if !certified {
            break;
        }
    }
    let smallest_certified_ms = tested
        .iter()
        .rev()
        .find(|step| step.certified)
        .map(|step| step.window_ms);
    FixedSequence {
        tested,
        smallest_certified_ms,
    }
}

/// How many different claims a set of cells makes: cells that kill the same runs are one (the divisor of Bonferroni).
pub fn distinct_claims<K: Ord>(kill_sets: impl IntoIterator<Item = K>) -> u64 {
    kill_sets.into_iter().collect::<BTreeSet<K>>().len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_stable_and_about_even() {
        let certify = (0..10_000_u32)
            .filter(|key| half(&key.to_le_bytes(), 7) == Half::Certify)
            .count();
        assert!((4_800..5_200).contains(&certify), "{certify}");
        let moved = (0..1_000_u32)
            .filter(|key| half(&key.to_le_bytes(), 7) != half(&key.to_le_bytes(), 8))
            .count();
        assert!((400..600).contains(&moved), "{moved}");
    }

    #[test]
    fn too_few_runs_are_not_split() {
        // n0(1 %) is 299
        assert!(!can_split(597, 0.01, Level::P95));
        assert!(can_split(598, 0.01, Level::P95));
        assert!(!can_split(u64::MAX, 0.0, Level::P95));
    }

    #[test]
    fn nothing_to_test() {
        assert_eq!(
            fixed_sequence(&[], 100, 0.01, Level::P95).smallest_certified_ms,
            None
        );
        let empty = fixed_sequence(&[(60_000, 0)], 0, 0.01, Level::P95);
        assert_eq!((empty.tested.len(), empty.smallest_certified_ms), (1, None));
        assert_eq!(distinct_claims([vec![1, 2], vec![1, 2], vec![]]), 2);
    }

    #[test]
    fn the_order_of_the_grid_does_not_matter() {
        let up = [(1, 9), (2, 1), (3, 0)];
        let down = [(3, 0), (2, 1), (1, 9)];
        assert_eq!(
            fixed_sequence(&up, 600, 0.01, Level::P95),
            fixed_sequence(&down, 600, 0.01, Level::P95)
        );
    }
}
