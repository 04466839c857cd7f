//! Stratified inversion: where each wait of a fleet reads the quantile function.
//!
//! With W waits, wait number g gets stratum s(g), a permutation of 0..W, and the quantile function
//! is read at (s(g) + u) / W. Every stratum is hit exactly once, so the fleet's quantiles are the
//! model's up to one stratum, while the order of waits is random. The permutation is computed, not
//! stored: a Feistel network over the next power of four, walked until it falls inside.

use super::rng::{Purpose, Stream, WHOLE_FLEET};

/// More rounds than the four that make a Feistel network of random functions hard to tell from a
/// random permutation, because the halves are small.
const ROUNDS: usize = 8;

/// A seeded permutation of the numbers below its size.
#[derive(Clone, Debug)]
struct Permutation {
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    fn new(seed: u64, size: u64) -> Self {
        let bits = 64 - size.saturating_sub(1).leading_zeros();
        let mut stream = Stream::new(seed, WHOLE_FLEET, Purpose::Strata);
        Self {
            size,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| stream.bits()),
        }
    }

    /// Where `index`, which is below the size, goes.
    fn at(&self, index: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let mut place = index;
        loop {
            let (mut left, mut right) = (place >> self.half_bits, place & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mixed(right ^ key) & mask));
            }
            place = (left << self.half_bits) | right;
            // At most 3 of 4 places lie outside, and a cycle that starts inside comes back.
            if place < self.size {
                return place;
            }
        }
    }
}

/// Every bit of the result depends on every bit of `x`.
const fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The strata of all waits of a fleet, one each.
#[derive(Clone, Debug)]
pub(super) struct Inversion {
    /// Of each run, the number of waits in the runs before it; one more entry for the total.
    before: Vec<u64>,
    permutation: Permutation,
}

impl Inversion {
    /// As many strata as there are waits in runs that hold so many each, in run order.
    pub(super) fn new(seed: u64, waits_per_run: &[u64]) -> Self {
        let mut before = Vec::with_capacity(waits_per_run.len() + 1);
        let mut total = 0;
        before.push(0);
        for waits in waits_per_run {
            total += waits;
            before.push(total);
        }
        Self {
            before,
            permutation: Permutation::new(seed, total),
        }
    }

    /// The probability at which wait number `wait` of run number `run` reads the quantile function,
    /// with `u` in (0, 1) placing it within its stratum. The run holds such a wait.
    pub(super) fn probability(&self, run: usize, wait: u64, u: f64) -> f64 {
        let stratum = self.permutation.at(self.before[run] + wait);
        (stratum as f64 + u) / self.permutation.size as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_hit_once() {
        for size in (1..300).chain([4096, 10_007]) {
            let permutation = Permutation::new(size, size);
            let mut seen: Vec<u64> = (0..size).map(|i| permutation.at(i)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_looks_shuffled() {
        let size = 10_000_u64;
        let permutation = Permutation::new(3, size);
        // Mean displacement of a random permutation is n / 3, mean step between neighbours too.
        let steps: u64 = (1..size)
            .map(|i| permutation.at(i).abs_diff(permutation.at(i - 1)))
            .sum();
        let mean = steps / (size - 1);
        assert!((3200..3467).contains(&mean), "{mean}");
        let fixed = (0..size).filter(|&i| permutation.at(i) == i).count();
        assert!(fixed < 10, "{fixed}");
    }

    #[test]
    fn strata_of_a_fleet_fill_the_unit_interval_evenly() {
        let inversion = Inversion::new(1, &[2, 0, 3]);
        let mut all: Vec<f64> = [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]
            .map(|(run, wait)| inversion.probability(run, wait, 0.5))
            .to_vec();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, [0.1, 0.3, 0.5, 0.7, 0.9]);
    }
}
