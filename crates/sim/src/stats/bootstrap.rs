//! Resampling whole sessions, for figures that have no formula: cost, cost differences, detection time.
//!
//! Davison & Hinkley (1997); Field & Welsh (2007). Replicate `r` draws from its own stream of the seed, so that the
//! result depends neither on threads nor on how many replicates came before.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::estimate::{Interval, Reason};
use super::prob::{Level, Prob};

/// Replicates where nothing else is asked for.
pub const REPLICATES: u64 = 2_000;

/// Numbers below a bound, without the bias of a remainder.
pub struct Indices {
    rng: ChaCha8Rng,
}

impl Indices {
    /// The numbers of stream `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self { rng }
    }

    /// A number below `bound`; 0 for a bound of 0. Multiply and shift, redrawing the few that would be uneven.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let uneven = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.rng.next_u64()) * u128::from(bound);
            if product as u64 >= uneven {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number strictly between 0 and 1, from 53 bits.
    pub fn unit(&mut self) -> f64 {
        ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Puts `items` in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampling {
    /// Replicates.
    pub replicates: u64,
    /// Seed; printed with the result.
    pub seed: u64,
    /// Confidence of the interval.
    pub level: Level,
}

impl Default for Resampling {
    fn default() -> Self {
        Self {
            replicates: REPLICATES,
            seed: 0,
            level: Level::P95,
        }
    }
}

/// The spread of a figure over resampled sessions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Standard error.
    pub standard_error: Option<f64>,
    /// Percentile interval, by type-1 quantiles of the replicates.
    pub interval: Interval,
    /// Replicates in which the figure existed.
    pub replicates: u64,
    /// Why there is no interval.
    pub reason: Option<Reason>,
}

impl Bootstrap {
    /// No result, and why.
    pub const fn missing(reason: Reason) -> Self {
        Self {
            standard_error: None,
            interval: Interval::none(),
            replicates: 0,
            reason: Some(reason),
        }
    }
}

/// Resamples `sessions` indices with replacement and computes `figure` of each draw.
///
/// `figure` gets the indices drawn, `sessions` of them in the order drawn, and may have no value for a draw. An upper
/// limit that falls among infinite values is missing. For differences of two candidates compute both from one draw.
pub fn bootstrap(
    sessions: usize,
    how: Resampling,
    figure: impl Fn(&[usize]) -> Option<f64> + Sync,
) -> Bootstrap {
    if sessions < 2 {
        return Bootstrap::missing(Reason::FewSessions {
            have: sessions as u64,
            need: 2,
        });
    }
    resample(how, |indices| {
        let draw: Vec<usize> = (0..sessions)
            .map(|_| indices.below(sessions as u64) as usize)
            .collect();
        figure(&draw)
    })
}

/// The spread of `figure` over replicates that draw for themselves, each from its own stream.
pub fn resample(how: Resampling, figure: impl Fn(&mut Indices) -> Option<f64> + Sync) -> Bootstrap {
    let replicates: Vec<Option<f64>> = (0..how.replicates)
        .into_par_iter()
        .map(|replicate| figure(&mut Indices::new(how.seed, replicate)))
        .collect();
    let mut values: Vec<f64> = replicates
        .into_iter()
        .flatten()
        .filter(|value| !value.is_nan())
        .collect();
    if values.len() < 2 {
        return Bootstrap::missing(Reason::ZeroVariance);
    }
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as u64;
    let at = |p: Prob| {
        values
            .get(p.rank(n) as usize - 1)
            .copied()
            .filter(|value| value.is_finite())
    };
    let tail = how.level.confidence().complement().half();
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    let standard_error = (squares / (n as f64 - 1.0)).sqrt();
    Bootstrap {
        standard_error: standard_error.is_finite().then_some(standard_error),
        interval: Interval {
            lo: at(tail),
            up: at(tail.complement()),
        },
        replicates: n,
        reason: None,
    }
}

/// Whether resampling can say anything about the `p` quantile of `n` samples: it cannot see beyond the maximum, so at
/// least ten samples must be expected above.
pub fn can_resample_quantile(p: Prob, n: u64) -> bool {
    p.expected_above(n) >= 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_even_and_repeatable() {
        let mut counts = [0_u64; 7];
        let mut indices = Indices::new(3, 1);
        for _ in 0..70_000 {
            counts[indices.below(7) as usize] += 1;
        }
        // chi-squared with 6 degrees of freedom stays below 22.46 with probability 0.999
        let chi2: f64 = counts
            .iter()
            .map(|&count| (count as f64 - 1e4) * (count as f64 - 1e4) / 1e4)
            .sum();
        assert!(chi2 < 22.46, "{counts:?}");
        let draw = |seed, stream| Indices::new(seed, stream).below(u64::MAX);
        assert_eq!(draw(3, 1), draw(3, 1));
        assert_ne!(draw(3, 1), draw(3, 2));
        assert_ne!(draw(3, 1), draw(4, 1));
        assert_eq!(Indices::new(0, 0).below(0), 0);
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let values: Vec<f64> = (0..50).map(|value| f64::from(value * value)).collect();
        let mean = |draw: &[usize]| {
            Some(draw.iter().map(|&index| values[index]).sum::<f64>() / draw.len() as f64)
        };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.map(|pool| pool.install(|| bootstrap(values.len(), Resampling::default(), mean)))
                .ok()
        };
        assert_eq!(on(1), on(4));
        let found = on(1)
            .and_then(|found| found.standard_error)
            .unwrap_or_default();
        // the standard error of a mean in closed form
        let centre = values.iter().sum::<f64>() / 50.0;
        let expected = (values
            .iter()
            .map(|value| (value - centre).powi(2))
            .sum::<f64>()
            / 50.0
            / 50.0)
            .sqrt();
        assert!((found / expected - 1.0).abs() < 0.06, "{found} {expected}");
    }

    #[test]
    fn too_little_to_resample() {
        let found = bootstrap(1, Resampling::default(), |_| Some(1.0));
        assert_eq!(found.reason, Some(Reason::FewSessions { have: 1, need: 2 }));
        let found = bootstrap(5, Resampling::default(), |_| None);
        assert_eq!(found.interval, Interval::none());
        let p999 = "0.999".parse().unwrap_or_else(|_| Level::P95.confidence());
        assert!(!can_resample_quantile(p999, 9_999));
        assert!(can_resample_quantile(p999, 10_000));
    }
}
