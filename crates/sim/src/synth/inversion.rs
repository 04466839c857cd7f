//! Stratified inversion: where each draw from a law reads its quantile function.
//!
//! With D draws in a fleet, draw number g gets stratum s(g), a permutation of 0..D, and the quantile function
//! is read at (s(g) + u) / D. Every stratum is hit exactly once, so the fleet's quantiles are the
//! law's up to one stratum, while the order of draws is random. The permutation is computed, not
//! stored: a Feistel network over the next power of four, walked until it falls inside.

use super::rng::{Purpose, Stream, WHOLE_FLEET};

/// More rounds than the four that make a Feistel network of random functions hard to tell from a
/// random permutation, because the halves are small.
const ROUNDS: usize = 8;

/// A seeded permutation of the numbers below its size.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The order of the `size` strata of law number `law`.
    pub(super) fn new(seed: u64, law: u64, size: u64) -> Self {
        let bits = 64 - size.saturating_sub(1).leading_zeros();
        let mut stream = Stream::new(seed, WHOLE_FLEET - law, Purpose::Strata);
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

    /// The probability at which that draw reads the quantile function, with `u` in (0, 1) placing it within its
    /// stratum; `u` itself for a draw that was not counted.
    pub(super) fn place(&self, draw: u64, u: f64) -> f64 {
        if draw >= self.size {
            return u;
        }
        (self.at(draw) as f64 + u) / self.size as f64
    }
}

/// Every bit of the result depends on every bit of `x`.
const fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_hit_once() {
        for size in (1..300).chain([4096, 10_007]) {
            let permutation = Permutation::new(size, 0, size);
            let mut seen: Vec<u64> = (0..size).map(|i| permutation.at(i)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_looks_shuffled() {
        let size = 10_000_u64;
        let permutation = Permutation::new(3, 0, size);
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
    fn strata_fill_the_unit_interval_evenly() {
        let permutation = Permutation::new(1, 0, 5);
        let mut all: Vec<f64> = (0..5).map(|draw| permutation.place(draw, 0.5)).collect();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, [0.1, 0.3, 0.5, 0.7, 0.9]);
        assert_eq!(permutation.place(5, 0.25).to_bits(), 0.25_f64.to_bits());
    }

    /// Draws of two laws that come together are as far from each other as chance would have them.
    #[test]
    fn the_strata_of_two_laws_are_independent() {
        let size = 4096;
        let [one, other] = [1, 2].map(|law| Permutation::new(0, law, size));
        let n = size as f64;
        let place = |permutation: &Permutation, draw| permutation.place(draw, 0.5) - 0.5;
        for lag in [0, 1, 2, 64] {
            let pairs = (0..size).map(|draw| (draw, (draw + lag) % size));
            let product: f64 = pairs.map(|(a, b)| place(&one, a) * place(&other, b)).sum();
            let correlation = 12.0 * product / n;
            // four standard deviations of 1 / sqrt(n)
            assert!(correlation.abs() < 4.0 / n.sqrt(), "{lag}: {correlation}");
            // no lattice: 16 x 16 boxes of 16 points each, chi-squared with 225 degrees of freedom (the margins are even)
            let mut boxes = [0_u32; 256];
            for draw in 0..size {
                let (x, y) = (one.at(draw) / 256, other.at((draw + lag) % size) / 256);
                boxes[(16 * x + y) as usize] += 1;
            }
            let squared = boxes.iter().map(|&count| f64::from(count).powi(2));
            let chi_squared = squared.sum::<f64>() / 16.0 - n;
            // mean 225, standard deviation 21
            assert!(
                (141.0..309.0).contains(&chi_squared),
                "{lag}: {chi_squared}"
            );
        }
    }
}
