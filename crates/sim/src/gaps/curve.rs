//! The survival curve of silences at chosen lengths: what share reaches each, with sessions as the units.

use super::Silences;
use crate::stats::kaplan_meier::{ClusteredCurve, KaplanMeier};
use crate::stats::{Estimate, Level};

/// The share of silences that reach one length: what a window of that length would cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// The length, ms.
    pub ms: u64,
    /// `P(silence >= ms)`; no point beyond the longest silence where part of them are cut short.
    pub share: Estimate,
    /// Silences seen to last at least that long, cut ones included.
    pub seen: u64,
}

/// A survival curve as a chart and its table take it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Silences, cut ones included.
    pub n: u64,
    /// Those cut short.
    pub cut: u64,
    /// Sessions; `None` where the record names none.
    pub sessions: Option<u64>,
    /// The longest silence, ms.
    pub max_ms: u64,
    /// The curve at the lengths asked for, ascending.
    pub reaches: Vec<Reach>,
    /// Lengths at which silences were cut, ms, with the number cut there, ascending.
    pub cuts: Vec<(u64, u64)>,
}

/// How many cut lengths a curve keeps; more would be a blot.
const MAX_CUTS: usize = 200;

/// The survival curve of `silences` at the lengths `at_ms`.
pub fn curve(silences: &Silences, at_ms: &[u64]) -> Curve {
    let (ended, censored) = (silences.ended(), silences.censored());
    let curve = KaplanMeier::new(&ended, &censored);
    let sessions = match silences.units() {
        Some(units) if units >= 2 => silences.sessions(),
        _ => Vec::new(),
    };
    let clustered = ClusteredCurve::new(&curve, &sessions);
    let mut at_ms: Vec<u64> = at_ms.iter().copied().filter(|&ms| ms > 0).collect();
    at_ms.sort_unstable();
    at_ms.dedup();
    let kill_rate = |ms| {
        if sessions.is_empty() {
            curve.kill_rate(ms, Level::P95)
        } else {
            clustered.kill_rate(ms, Level::P95)
        }
    };
    Curve {
        n: silences.len(),
        cut: silences.cut(),
        sessions: silences.units().map(|units| units as u64),
        max_ms: curve.max_ms().unwrap_or(0),
        reaches: at_ms
            .into_iter()
            .map(|ms| Reach {
                ms,
                share: kill_rate(ms),
                seen: ended.at_least(ms) + censored.at_least(ms),
            })
            .collect(),
        cuts: censored.iter().take(MAX_CUTS).collect(),
    }
}

/// Lengths for a curve on a logarithmic axis: 16 a decade from the first power of ten at or below `from_ms` to `to_ms`.
pub fn log_lengths(from_ms: u64, to_ms: u64) -> Vec<u64> {
    /// 10^(k/16), in thousandths, rounded.
    const STEPS: [u64; 16] = [
        1_000, 1_155, 1_334, 1_540, 1_778, 2_054, 2_371, 2_738, 3_162, 3_652, 4_217, 4_870, 5_623,
        6_494, 7_499, 8_660,
    ];
    let mut decade = 1_u64;
    while decade.saturating_mul(10) <= from_ms.max(1) {
        decade *= 10;
    }
    let mut found = Vec::new();
    loop {
        for step in STEPS {
            let ms = decade.saturating_mul(step) / 1_000;
            if ms > to_ms || ms == u64::MAX / 1_000 {
                return found;
            }
            if found.last() != Some(&ms) {
                found.push(ms);
            }
        }
        match decade.checked_mul(10) {
            Some(next) if next < u64::MAX / 10_000 => decade = next,
            _ => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_counts_silences_that_reach_a_length() {
        let mut silences = Silences::default();
        for ms in 1..=10 {
            silences.add(None, ms * 100, None);
        }
        let found = curve(&silences, &[1_000, 500, 500, 1_001]);
        let shares: Vec<_> = found
            .reaches
            .iter()
            .map(|reach| (reach.ms, reach.share.point, reach.seen))
            .collect();
        // six of ten last 500 ms or longer, one 1,000 ms, none longer
        assert_eq!(
            shares,
            [
                (500, Some(0.6), 6),
                (1_000, Some(0.1), 1),
                (1_001, Some(0.0), 0)
            ]
        );
        assert_eq!((found.n, found.cut, found.max_ms), (10, 0, 1_000));
    }

    #[test]
    fn lengths_are_spread_over_every_decade() {
        let found = log_lengths(150, 9_000);
        assert_eq!((found.first(), found.last()), (Some(&100), Some(&8_660)));
        assert_eq!(found.len(), 32);
        assert_eq!(log_lengths(5, 0), Vec::<u64>::new());
    }
}
