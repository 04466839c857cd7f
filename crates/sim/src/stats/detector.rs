//! The idle watchdog read as a failure detector.
//!
//! Chen, Toueg & Aguilera (2002): a mistake is a suspicion of a run that is alive, here a gap `>= W`. Phi accrual
//! (Hayashibara et al. 2004) with the empirical distribution instead of a normal one. Retransmission timeout of
//! RFC 6298 (Jacobson 1988) as an adaptive baseline.

use super::quantile::{Counts, Exceedances};

/// Milliseconds of an hour, the unit of rates of mistakes.
pub(crate) const MS_PER_HOUR: f64 = 3_600_000.0;

/// Quality of service of one window over gaps whose ends were all observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Qos {
    /// Gaps.
    pub gaps: u64,
    /// Gaps of at least the window.
    pub mistakes: u64,
    /// Mistakes per gap; `None` without gaps.
    pub per_gap_rate: Option<f64>,
    /// Mistakes per hour of active time; `None` without any.
    pub mistakes_per_hour: Option<f64>,
    /// Mean active time between mistakes, in ms; `None` without a mistake.
    pub recurrence_ms: Option<f64>,
    /// Mean time from suspicion to the activity that ends it, in ms, for detectors that only suspect; a killed run has
    /// none.
    pub duration_ms: Option<f64>,
    /// Share of time at which a query finds the run not suspected.
    pub query_accuracy: Option<f64>,
    /// Longest time from the last activity to the detection of a hang, in ms.
    pub detection_bound_ms: u64,
}

/// Quality of service of `window_ms` over `gaps`.
pub fn qos(gaps: &Counts, window_ms: u64) -> Qos {
    QosTable::new(gaps).qos(window_ms)
}

/// Gaps added up once, for many windows.
#[derive(Clone, Debug, Default)]
pub struct QosTable {
    gaps: u64,
    active_ms: u128,
    /// By rising length: the length, gaps at least as long, and their time.
    steps: Vec<(u64, u64, u128)>,
}

impl QosTable {
    /// Adds up `gaps`.
    pub fn new(gaps: &Counts) -> Self {
        let mut steps: Vec<(u64, u64, u128)> = gaps
            .iter()
            .map(|(ms, times)| (ms, times, u128::from(ms) * u128::from(times)))
            .collect();
        let (mut longer, mut longer_ms) = (0, 0);
        for (_, times, ms) in steps.iter_mut().rev() {
            longer += *times;
            longer_ms += *ms;
            (*times, *ms) = (longer, longer_ms);
        }
        Self {
            gaps: gaps.total(),
            active_ms: longer_ms,
            steps,
        }
    }

    /// Quality of service of `window_ms`.
    pub fn qos(&self, window_ms: u64) -> Qos {
        let first = self.steps.partition_point(|step| step.0 < window_ms);
        let (mistakes, time_ms) = self
            .steps
            .get(first)
            .map_or((0, 0), |&(_, gaps, ms)| (gaps, ms));
        let suspected = time_ms - u128::from(window_ms) * u128::from(mistakes);
        let (gaps, active) = (self.gaps, self.active_ms);
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Qos {
            gaps,
            mistakes,
            per_gap_rate: ratio(mistakes as f64, gaps as f64),
            mistakes_per_hour: ratio(mistakes as f64 * MS_PER_HOUR, active as f64),
            recurrence_ms: ratio(active as f64, mistakes as f64),
            duration_ms: ratio(suspected as f64, mistakes as f64),
            query_accuracy: ratio((active - suspected) as f64, active as f64),
            detection_bound_ms: window_ms,
        }
    }
}

/// `-log10 S(t)` of the empirical distribution: 3 is p99.9. `None` once no gap exceeds the silence, or without gaps.
pub fn phi(gaps: &Counts, silence_ms: u64) -> Option<f64> {
    let longer = gaps.at_least(silence_ms.checked_add(1)?);
    // as a difference of logarithms an exact power of ten would lose a bit
    (longer > 0).then(|| libm::log10(gaps.total() as f64 / longer as f64))
}

/// The retransmission timer of RFC 6298: smoothed time, its deviation, and the timeout, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rto {
    /// Smoothed sample.
    pub smoothed_ms: f64,
    /// Smoothed deviation.
    pub deviation_ms: f64,
    /// `smoothed + 4 deviation`, at least the minimum.
    pub timeout_ms: f64,
}

impl Rto {
    /// The state after the first sample.
    pub fn first(sample_ms: u64, min_ms: u64) -> Self {
        let sample = sample_ms as f64;
        Self::with(sample, sample / 2.0, min_ms)
    }

    /// The state after one more sample; gains 1/8 and 1/4.
    #[must_use]
    pub fn next(self, sample_ms: u64, min_ms: u64) -> Self {
        let sample = sample_ms as f64;
        let deviation = 0.75 * self.deviation_ms + 0.25 * (self.smoothed_ms - sample).abs();
        Self::with(0.875 * self.smoothed_ms + 0.125 * sample, deviation, min_ms)
    }

    fn with(smoothed_ms: f64, deviation_ms: f64, min_ms: u64) -> Self {
        let timeout_ms = (smoothed_ms + 4.0 * deviation_ms).max(min_ms as f64);
        Self {
            smoothed_ms,
            deviation_ms,
            timeout_ms,
        }
    }
}

/// How many waits of `wait_ms` pass before a hang that starts `into_ms` into a wait is settled by `window_ms`:
/// `ceil((x + W) / TW)`. `None` for a wait of length 0.
pub fn waits_until_settled(into_ms: u64, window_ms: u64, wait_ms: u64) -> Option<u64> {
    (wait_ms > 0).then(|| {
        let waits = (u128::from(into_ms) + u128::from(window_ms)).div_ceil(u128::from(wait_ms));
        u64::try_from(waits.max(1)).unwrap_or(u64::MAX)
    })
}

/// Share of hangs, starting at a uniform moment of a wait, that settle inside it: `max(0, 1 - W/TW)`.
pub fn settled_in_wait(window_ms: u64, wait_ms: u64) -> Option<f64> {
    (wait_ms > 0).then(|| (wait_ms.saturating_sub(window_ms)) as f64 / wait_ms as f64)
}

/// Upper bound of `P(gap + backoff > window)` for an added backoff: the least `P(G > w) + P(B > W - w)` over `w`.
/// Quantiles of the parts do not add; this does. `None` without gaps or backoffs.
pub fn exceedance_of_sum(gaps: &Counts, backoffs: &Counts, window_ms: u64) -> Option<f64> {
    if gaps.total() == 0 || backoffs.total() == 0 {
        return None;
    }
    let share = |longer: &Exceedances, all: u64, above: u64| {
        let more = above
            .checked_add(1)
            .map_or(0, |least| longer.at_least(least));
        more as f64 / all as f64
    };
    let (gap, backoff) = (Exceedances::new(gaps), Exceedances::new(backoffs));
    // The bound falls only where w or W - w passes a recorded value.
    let splits = gaps
        .iter()
        .map(|(ms, _)| ms)
        .chain(
            backoffs
                .iter()
                .filter_map(|(ms, _)| window_ms.checked_sub(ms)),
        )
        .chain([0, window_ms])
        .filter(|&split| split <= window_ms);
    splits
        .map(|split| {
            share(&gap, gaps.total(), split) + share(&backoff, backoffs.total(), window_ms - split)
        })
        .min_by(f64::total_cmp)
        .map(|bound| bound.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_observed() {
        let none = qos(&Counts::default(), 1_000);
        assert_eq!(
            (none.mistakes, none.per_gap_rate, none.query_accuracy),
            (0, None, None)
        );
        assert_eq!(phi(&Counts::default(), 5), None);
        assert_eq!(phi(&[1_u64].into_iter().collect(), u64::MAX), None);
        assert_eq!(
            exceedance_of_sum(&Counts::default(), &Counts::default(), 5),
            None
        );
        assert_eq!(settled_in_wait(5, 0), None);
    }

    #[test]
    fn half_of_the_hangs_do_not_settle_in_their_wait() {
        // 300 s in a wait of 600 s, the method's worked reading
        assert_eq!(settled_in_wait(300_000, 600_000), Some(0.5));
        assert_eq!(settled_in_wait(700_000, 600_000), Some(0.0));
        assert_eq!(waits_until_settled(0, 600_000, 600_000), Some(1));
        assert_eq!(waits_until_settled(1, 600_000, 600_000), Some(2));
        assert_eq!(waits_until_settled(0, 0, 600_000), Some(1));
    }

    #[test]
    fn the_union_bound_holds_for_every_pairing() {
        let gaps: Counts = [1_u64, 2, 3, 4, 50].into_iter().collect();
        let backoffs: Counts = [0_u64, 0, 0, 10, 20].into_iter().collect();
        for window in 0..80 {
            let bound = exceedance_of_sum(&gaps, &backoffs, window).unwrap_or_default();
            let mut pairs = 0;
            for (gap, _) in gaps.iter() {
                for (backoff, times) in backoffs.iter() {
                    pairs += if gap + backoff > window { times } else { 0 };
                }
            }
            assert!(
                bound >= f64::from(u32::try_from(pairs).unwrap_or(u32::MAX)) / 25.0 - 1e-12,
                "{window}"
            );
        }
    }
}
