//! Distributions that are not a table of quantiles: parametric mixtures and empirical samples.

use serde::{Deserialize, Serialize};

use crate::stats::normal;

/// One component of a mixture; its weight is relative to the others'.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Component {
    /// One value.
    Constant {
        /// How common it is.
        weight: u64,
        /// The value.
        value: u64,
    },
    /// Memoryless beyond its start.
    Exponential {
        /// How common it is.
        weight: u64,
        /// Nothing lies below.
        from: u64,
        /// Mean beyond that.
        mean: u64,
    },
    /// The logarithm is normal.
    LogNormal {
        /// How common it is.
        weight: u64,
        /// The median.
        median: u64,
        /// Standard deviation of the natural logarithm, in millionths.
        sigma_ppm: u64,
    },
    /// A power tail.
    Pareto {
        /// How common it is.
        weight: u64,
        /// The smallest value.
        from: u64,
        /// The exponent, in millionths.
        alpha_ppm: u64,
    },
    /// Every value in between alike.
    Uniform {
        /// How common it is.
        weight: u64,
        /// The smallest.
        from: u64,
        /// The largest.
        to: u64,
    },
}

impl Component {
    pub(super) const fn weight(self) -> u64 {
        match self {
            Self::Constant { weight, .. }
            | Self::Exponential { weight, .. }
            | Self::LogNormal { weight, .. }
            | Self::Pareto { weight, .. }
            | Self::Uniform { weight, .. } => weight,
        }
    }

    /// Whether its parameters make a distribution.
    pub(super) const fn is_proper(self) -> bool {
        match self {
            Self::Constant { .. } => true,
            Self::Exponential { mean, .. } => mean > 0,
            Self::LogNormal {
                median, sigma_ppm, ..
            } => median > 0 && sigma_ppm > 0,
            Self::Pareto {
                from, alpha_ppm, ..
            } => from > 0 && alpha_ppm > 0,
            Self::Uniform { from, to, .. } => from < to,
        }
    }

    /// Probability of at most `x`.
    fn cdf(self, x: f64) -> f64 {
        match self {
            Self::Constant { value, .. } => f64::from(u8::from(x >= value as f64)),
            Self::Exponential { from, mean, .. } => {
                -libm::expm1(-(x - from as f64).max(0.0) / mean as f64)
            }
            Self::LogNormal {
                median, sigma_ppm, ..
            } if x > 0.0 => normal::cdf(libm::log(x / median as f64) / (sigma_ppm as f64 * 1e-6)),
            Self::Pareto {
                from, alpha_ppm, ..
            } if x > from as f64 => {
                let alpha = alpha_ppm as f64 * 1e-6;
                -libm::expm1(-alpha * libm::log(x / from as f64))
            }
            Self::LogNormal { .. } | Self::Pareto { .. } => 0.0,
            Self::Uniform { from, to, .. } => {
                ((x - from as f64) / (to - from) as f64).clamp(0.0, 1.0)
            }
        }
    }
}

/// The smallest whole number up to `limit` at which the mixture's distribution reaches `p`; what lies beyond the limit
/// is the limit.
pub(super) fn mixture_value(components: &[Component], p: f64, limit: u64) -> u64 {
    let total: u64 = components.iter().map(|one| one.weight()).sum();
    let reached = |value: u64| {
        let mass: f64 = components
            .iter()
            .map(|one| one.weight() as f64 * one.cdf(value as f64))
            .sum();
        mass >= p * total as f64
    };
    let (mut low, mut high) = (0, limit);
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The nearest-rank quantile of (value, count) pairs by rising value.
pub(super) fn sample_value(samples: &[(u64, u64)], p: f64) -> u64 {
    let total: u64 = samples.iter().map(|(_, count)| count).sum();
    let rank = (libm::ceil(p * total as f64) as u64).clamp(1, total.max(1));
    let mut seen = 0;
    for (value, count) in samples {
        seen += count;
        if seen >= rank {
            return *value;
        }
    }
    samples.last().map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the closed forms of the quantiles.
    #[test]
    fn components_have_their_quantiles() {
        let limit = 100_000_000_000;
        let of = |component: Component, p| mixture_value(&[component], p, limit);
        let log_normal = Component::LogNormal {
            weight: 1,
            median: 5_000,
            sigma_ppm: 500_000,
        };
        assert_eq!(of(log_normal, 0.5), 5_000);
        // 5,000 exp(0.5 x 2.3263479) = 16,000.4: the first whole millisecond that reaches it
        assert_eq!(of(log_normal, 0.99), 16_001);
        let pareto = Component::Pareto {
            weight: 1,
            from: 20_000,
            alpha_ppm: 2_000_000,
        };
        // 20,000 / sqrt(0.01)
        assert_eq!(of(pareto, 0.99), 200_000);
        let exponential = Component::Exponential {
            weight: 1,
            from: 100,
            mean: 1_000,
        };
        // 100 + 1000 ln 2
        assert_eq!(of(exponential, 0.5), 794);
        let uniform = Component::Uniform {
            weight: 1,
            from: 10,
            to: 20,
        };
        assert_eq!(of(uniform, 0.5), 15);
        // Half at 7, half above 20,000.
        let constant = Component::Constant {
            weight: 1,
            value: 7,
        };
        let both = [constant, pareto];
        assert_eq!(mixture_value(&both, 0.3, limit), 7);
        assert_eq!(mixture_value(&both, 0.995, limit), 200_000);
        assert_eq!(mixture_value(&both, 0.999_999, 300_000), 300_000);
    }

    #[test]
    fn samples_have_nearest_ranks() {
        let samples = [(5, 1), (7, 2), (100, 1)];
        let values = [0.0, 0.25, 0.26, 0.75, 0.76, 1.0].map(|p| sample_value(&samples, p));
        assert_eq!(values, [5, 5, 7, 7, 100, 100]);
    }
}
