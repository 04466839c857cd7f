//! Two candidates over the same runs.

use serde::Serialize;

use super::beta::{self, Point};
use super::estimate::{Interval, Status};
use super::prob::Level;
use super::rates::{clopper_pearson, clopper_pearson_shared};

/// Runs on which two candidates disagree.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize)]
pub struct Discordant {
    /// Runs replayed under both.
    pub runs: u64,
    /// Killed only by the first.
    pub only_first: u64,
    /// Killed only by the second.
    pub only_second: u64,
}

/// The difference of two kill rates, first minus second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifference {
    /// Runs.
    pub n: u64,
    /// `(b - c) / m`; `None` without runs.
    pub difference: Option<f64>,
    /// Its limits.
    pub interval: Interval,
    /// Exact `McNemar` p-value; `None` for nested windows, whose sign is known.
    pub p_value: Option<f64>,
    /// Which limits there are.
    pub status: Status,
}

/// Exact two-sided test that both candidates kill equally often (`McNemar` 1947): the doubled smaller tail of
/// `Bin(b + c, 1/2)`, at most 1.
pub fn mcnemar(only_first: u64, only_second: u64) -> Option<f64> {
    let (few, many) = (only_first.min(only_second), only_first.max(only_second));
    if few == many {
        return Some(1.0);
    }
    // P(Bin(n, 1/2) <= few) = 1 - I_1/2(few + 1, n - few)
    let tails = beta::tails(few as f64 + 1.0, many as f64, Point::new(0.5)).ok()?;
    Some((2.0 * tails.upper).min(1.0))
}

/// The difference of the kill rates of two arbitrary candidates: two Clopper-Pearson intervals at `1 - a/2`
/// (Bonferroni, conservative).
pub fn difference(counts: Discordant, level: Level) -> PairedDifference {
    let Discordant {
        runs,
        only_first: b,
        only_second: c,
    } = counts;
    if runs == 0 {
        return without_runs();
    }
    let first = clopper_pearson_shared(b, runs, level, 2);
    let second = clopper_pearson_shared(c, runs, level, 2);
    let minus = |left: Option<f64>, right: Option<f64>| Some(left? - right?);
    let interval = Interval {
        lo: minus(first.lo, second.up),
        up: minus(first.up, second.lo),
    };
    PairedDifference {
        n: runs,
        difference: Some((b as f64 - c as f64) / runs as f64),
        interval,
        p_value: mcnemar(b, c),
        status: interval.status(),
    }
}

/// The difference for nested windows, where only the shorter one can kill alone: the size `b / m` and no test.
pub fn nested_difference(runs: u64, only_shorter: u64, level: Level) -> PairedDifference {
    if runs == 0 {
        return without_runs();
    }
    let interval = clopper_pearson(only_shorter, runs, level);
    PairedDifference {
        n: runs,
        difference: Some(only_shorter as f64 / runs as f64),
        interval,
        p_value: None,
        status: interval.status(),
    }
}

const fn without_runs() -> PairedDifference {
    PairedDifference {
        n: 0,
        difference: None,
        interval: Interval::none(),
        p_value: None,
        status: Status::NotEstimable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_runs_no_difference() {
        assert_eq!(
            difference(Discordant::default(), Level::P95).status,
            Status::NotEstimable
        );
        assert_eq!(nested_difference(0, 0, Level::P95).difference, None);
        assert_eq!(mcnemar(0, 0), Some(1.0));
    }

    #[test]
    fn swapping_the_candidates_turns_the_interval_round() {
        let one = difference(
            Discordant {
                runs: 500,
                only_first: 12,
                only_second: 4,
            },
            Level::P95,
        );
        let other = difference(
            Discordant {
                runs: 500,
                only_first: 4,
                only_second: 12,
            },
            Level::P95,
        );
        assert_eq!(one.interval.lo, other.interval.up.map(|limit| -limit));
        assert_eq!(one.p_value, other.p_value);
    }
}
