//! `idle.adaptive`: a window that follows the gaps seen so far. Integers only, rounded up.

use alloc::collections::VecDeque;

use crate::Millis;

/// An adaptive idle window: an estimator with its bounds.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Adaptive {
    /// How the window is estimated.
    pub estimator: Estimator,
    /// With fewer gaps than this seen, the plain window is in force; at least one is needed.
    pub min_samples: u16,
    /// The shortest window.
    pub floor: Millis,
    /// The longest window.
    pub cap: Option<Millis>,
}

/// The estimators.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Estimator {
    /// Phi accrual with a normal tail, as deployed (Hayashibara et al. 2004; population deviation with a floor):
    /// mean + deviation · z + pause, where z is the normal quantile at 1 − 10^−threshold.
    Phi {
        /// The suspicion level that fires, 1 to 16: the tail probability is 10 to the minus this. Other values count as the nearest.
        threshold: u8,
        /// The floor of the standard deviation.
        min_std: Millis,
        /// Silence that is acceptable on top.
        pause: Millis,
        /// How many latest gaps are kept, 1 to [`Estimator::MAX_SAMPLES`]. Other values count as the nearest.
        samples: u16,
    },
    /// Smoothed gap plus `k` smoothed deviations (Jacobson 1988; RFC 6298 section 2, gains 1/8 and 1/4).
    Rto {
        /// The multiple of the deviation; 4 in the RFC.
        k: u8,
        /// The least that the deviation term adds (the clock granularity G of the RFC).
        granularity: Millis,
    },
}

impl Estimator {
    /// The most gaps that a phi estimator keeps.
    pub const MAX_SAMPLES: u16 = 1000;
}

/// The quantile of the standard normal distribution at 1 − 10^−phi, in millionths, rounded up, for phi 1 to 16.
const Z_MILLIONTHS: [u64; 16] = [
    1_281_552, 2_326_348, 3_090_233, 3_719_017, 4_264_891, 4_753_425, 5_199_338, 5_612_002,
    5_997_808, 6_361_341, 6_706_024, 7_034_484, 7_348_797, 7_650_629, 7_941_346, 8_222_083,
];

/// A gap longer than this (about 35 years) counts as this, which keeps every intermediate in range.
const LONGEST_GAP_MS: u64 = 1 << 40;

/// Fixed point of the smoothed estimates: 16 binary places.
const PLACES: u32 = 16;

/// The gaps seen so far, as far as the estimator needs them. At most [`Estimator::MAX_SAMPLES`] numbers.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct History {
    /// Since when the idle clock reads the current gap; `None` when the gap will not be a sample.
    since: Option<Millis>,
    count: u64,
    latest: VecDeque<u64>,
    sum: u128,
    sum_of_squares: u128,
    mean: u64,
    deviation: u64,
}

impl History {
    /// The idle clock begins a new reading.
    pub(crate) const fn begin(&mut self, now: Millis) {
        self.since = Some(now);
    }

    /// The current reading is cut by a pause or a host suspend: it is no gap.
    pub(crate) const fn forget(&mut self) {
        self.since = None;
    }

    /// Evidence ended the current reading.
    pub(crate) fn sample(&mut self, now: Millis, estimator: Estimator) {
        let Some(since) = self.since else {
            return;
        };
        let gap = now.since(since).as_u64().min(LONGEST_GAP_MS);
        match estimator {
            Estimator::Phi { samples, .. } => self.keep(gap, samples),
            Estimator::Rto { .. } => self.smooth(gap),
        }
        self.count = self.count.saturating_add(1);
    }

    fn keep(&mut self, gap: u64, samples: u16) {
        if self.latest.len() >= usize::from(samples.clamp(1, Estimator::MAX_SAMPLES))
            && let Some(oldest) = self.latest.pop_front()
        {
            self.sum -= u128::from(oldest);
            self.sum_of_squares -= u128::from(oldest).pow(2);
        }
        self.latest.push_back(gap);
        self.sum += u128::from(gap);
        self.sum_of_squares += u128::from(gap).pow(2);
    }

    /// RFC 6298 (2.2) and (2.3), the deviation first.
    const fn smooth(&mut self, gap: u64) {
        let gap = gap << PLACES;
        if self.count == 0 {
            self.mean = gap;
            self.deviation = gap.div_ceil(2);
        } else {
            let error = self.mean.abs_diff(gap);
            self.deviation = (self.deviation * 3 + error).div_ceil(4);
            self.mean = (self.mean * 7 + gap).div_ceil(8);
        }
    }

    /// The window in force, or `None` while too few gaps were seen.
    pub(crate) fn window(&self, adaptive: &Adaptive) -> Option<Millis> {
        if self.count < u64::from(adaptive.min_samples.max(1)) {
            return None;
        }
        let window = match adaptive.estimator {
            Estimator::Phi {
                threshold,
                min_std,
                pause,
                ..
            } => self.phi(threshold, min_std).plus(pause),
            Estimator::Rto { k, granularity } => {
                let one = 1_u64 << PLACES;
                let spread = self.deviation.saturating_mul(u64::from(k));
                let spread = spread.max(granularity.as_u64().saturating_mul(one));
                Millis::new(self.mean.saturating_add(spread).div_ceil(one))
            }
        };
        let window = window.max(adaptive.floor);
        Some(adaptive.cap.map_or(window, |cap| window.min(cap)))
    }

    /// Mean plus z deviations, in thousandths of a millisecond until the end.
    fn phi(&self, threshold: u8, min_std: Millis) -> Millis {
        const THOUSAND: u128 = 1000;
        let n = self.latest.len() as u128;
        let mean = (self.sum * THOUSAND).div_ceil(n);
        // n²·variance = n·Σx² − (Σx)², at most 2^100 with 1000 gaps of 2^40 ms
        let square = (n * self.sum_of_squares - self.sum.pow(2)) * THOUSAND.pow(2);
        let root = square.isqrt();
        let root = if root * root < square { root + 1 } else { root };
        let deviation = root
            .div_ceil(n)
            .max(u128::from(min_std.as_u64().min(LONGEST_GAP_MS)) * THOUSAND);
        let z = u128::from(Z_MILLIONTHS[usize::from(threshold.clamp(1, 16)) - 1]);
        let total = (mean + (deviation * z).div_ceil(1_000_000)).div_ceil(THOUSAND);
        Millis::new(total as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_after(gaps: &[u64], estimator: Estimator) -> u64 {
        let adaptive = Adaptive {
            estimator,
            min_samples: 1,
            floor: Millis::ZERO,
            cap: None,
        };
        let mut history = History::default();
        let mut now = Millis::ZERO;
        history.begin(now);
        for &gap in gaps {
            now = now.plus(Millis::new(gap));
            history.sample(now, estimator);
            history.begin(now);
        }
        history.window(&adaptive).unwrap_or_default().as_u64()
    }

    fn phi(pause: u64, samples: u16) -> Estimator {
        Estimator::Phi {
            threshold: 8,
            min_std: Millis::new(100),
            pause: Millis::new(pause),
            samples,
        }
    }

    /// Scenario BR-99: sixty equal beats of a second.
    #[test]
    fn phi_accrual_of_equal_beats_is_bounded_by_the_floor() {
        assert_eq!(window_after(&[1000; 60], phi(0, 200)), 1562);
        assert_eq!(window_after(&[1000; 60], phi(3000, 200)), 4562);
    }

    /// Gaps of 1000 and 3000 in turn: mean 2000, population deviation 1000, z 5.612001.
    #[test]
    fn phi_accrual_uses_the_population_deviation_of_the_latest_gaps() {
        let mut gaps = [0; 40];
        for (i, gap) in gaps.iter_mut().enumerate() {
            *gap = if i % 2 == 0 { 1000 } else { 3000 };
        }
        assert_eq!(window_after(&gaps, phi(0, 200)), 7613);
        assert_eq!(window_after(&gaps, phi(0, 10)), 7613);
        let mut later = [3000; 50];
        later[0] = 9_000_000;
        assert_eq!(window_after(&later, phi(0, 20)), 3562);
    }

    /// RFC 6298: R = 8000 gives 8000 + 4·4000; then R = 16000 gives SRTT 9000, RTTVAR 5000.
    #[test]
    fn rto_follows_the_rfc() {
        let rto = Estimator::Rto {
            k: 4,
            granularity: Millis::new(100),
        };
        assert_eq!(window_after(&[8000], rto), 24_000);
        assert_eq!(window_after(&[8000, 16_000], rto), 29_000);
        assert_eq!(window_after(&[1000; 200], rto), 1100);
    }

    #[test]
    fn extreme_gaps_stay_in_range() {
        for estimator in [
            phi(0, 1000),
            Estimator::Rto {
                k: 255,
                granularity: Millis::MAX,
            },
        ] {
            assert!(window_after(&[u64::MAX; 3], estimator) > 1 << 39);
            let mut history = History::default();
            for i in 0..2000_u64 {
                history.begin(Millis::ZERO);
                history.sample(
                    Millis::new(if i % 2 == 0 { 0 } else { u64::MAX }),
                    estimator,
                );
            }
            assert!(history.latest.len() <= 1000);
            let adaptive = Adaptive {
                estimator,
                min_samples: 0,
                floor: Millis::new(5),
                cap: Some(Millis::new(9)),
            };
            assert_eq!(history.window(&adaptive), Some(Millis::new(9)));
        }
    }

    #[test]
    fn too_few_gaps_give_no_window() {
        let adaptive = Adaptive {
            estimator: phi(0, 10),
            min_samples: 2,
            floor: Millis::ZERO,
            cap: None,
        };
        let mut history = History::default();
        history.begin(Millis::ZERO);
        history.sample(Millis::new(10), adaptive.estimator);
        history.forget();
        history.sample(Millis::new(20), adaptive.estimator);
        assert_eq!(history.window(&adaptive), None);
    }
}
