//! From gaps to runs: how a per-gap kill rate adds up over a run, and what a run rate demands of a gap.

use serde::Serialize;

use super::quantile::Counts;

/// Chance that at least one of `gaps` independent gaps is a kill at rate `per_gap`: `1 - (1-q)^n`.
pub fn run_rate(per_gap: f64, gaps: u64) -> f64 {
    if gaps == 0 {
        return 0.0;
    }
    -libm::expm1(gaps as f64 * libm::log1p(-per_gap))
}

/// [`run_rate`] averaged over runs of the given numbers of gaps; `None` without runs.
pub fn mean_run_rate(per_gap: f64, gaps_per_run: &[u64]) -> Option<f64> {
    if gaps_per_run.is_empty() {
        return None;
    }
    let sum: f64 = gaps_per_run
        .iter()
        .map(|&gaps| run_rate(per_gap, gaps))
        .sum();
    Some(sum / gaps_per_run.len() as f64)
}

/// The same over runs counted by their number of gaps.
pub fn mean_run_rate_of(per_gap: f64, gaps_per_run: &Counts) -> Option<f64> {
    let rates = gaps_per_run
        .iter()
        .map(|(gaps, runs)| runs as f64 * run_rate(per_gap, gaps));
    let sum: f64 = rates.sum();
    (gaps_per_run.total() > 0).then(|| sum / gaps_per_run.total() as f64)
}

/// The per-gap rate that gives runs of `gaps` independent gaps the rate `per_run`: `1 - (1-r)^(1/n)`; `None` for none.
pub fn gap_rate_for(per_run: f64, gaps: u64) -> Option<f64> {
    (gaps > 0).then(|| -libm::expm1(libm::log1p(-per_run) / gaps as f64))
}

/// Kills of one idle window counted per gap and per run, under both tie rules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct KillCounts {
    /// All gaps.
    pub gaps: u64,
    /// Runs.
    pub runs: u64,
    /// Gaps `>= window`: kills, as deadlines are inclusive.
    pub gap_kills: u64,
    /// Runs with such a gap.
    pub run_kills: u64,
    /// Gaps of exactly the window.
    pub ties_at_window: u64,
    /// Gaps `> window`: kills if an event at the deadline came first.
    pub gap_kills_event_first: u64,
    /// Runs with such a gap.
    pub run_kills_event_first: u64,
}

/// Counts the kills of `window_ms` over runs of gaps in ms.
pub fn count_kills<R: AsRef<[u64]>>(runs: &[R], window_ms: u64) -> KillCounts {
    let mut counts = KillCounts {
        runs: runs.len() as u64,
        ..KillCounts::default()
    };
    for gaps in runs {
        let gaps = gaps.as_ref();
        let kills = gaps.iter().filter(|&&gap| gap >= window_ms).count() as u64;
        let ties = gaps.iter().filter(|&&gap| gap == window_ms).count() as u64;
        counts.gaps += gaps.len() as u64;
        counts.gap_kills += kills;
        counts.run_kills += u64::from(kills > 0);
        counts.ties_at_window += ties;
        counts.gap_kills_event_first += kills - ties;
        counts.run_kills_event_first += u64::from(kills > ties);
    }
    counts
}

/// The compounded run rate beside the observed one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compounding {
    /// Kills per gap.
    pub per_gap: f64,
    /// The run rate if gaps were independent.
    pub compounded: f64,
    /// The run rate observed.
    pub observed: f64,
    /// `compounded / observed`; well above 1 it is the signature of gaps correlated within runs. `None` without kills.
    pub ratio: Option<f64>,
}

/// Compares what independent gaps would do to runs with what happened; `None` without gaps or runs.
pub fn compounding<R: AsRef<[u64]>>(runs: &[R], window_ms: u64) -> Option<Compounding> {
    let counts = count_kills(runs, window_ms);
    if counts.gaps == 0 {
        return None;
    }
    let per_gap = counts.gap_kills as f64 / counts.gaps as f64;
    let gaps_per_run: Vec<u64> = runs.iter().map(|gaps| gaps.as_ref().len() as u64).collect();
    let compounded = mean_run_rate(per_gap, &gaps_per_run)?;
    let observed = counts.run_kills as f64 / counts.runs as f64;
    let ratio = (observed > 0.0).then(|| compounded / observed);
    Some(Compounding {
        per_gap,
        compounded,
        observed,
        ratio,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn planning_needs_a_far_smaller_gap_rate() {
        // the method's example: 1 % of runs of 200 gaps is 5.0e-5 per gap
        let per_gap = gap_rate_for(0.01, 200).unwrap_or_default();
        assert!((per_gap - 5.025e-5).abs() < 1e-8);
        assert!((run_rate(per_gap, 200) - 0.01).abs() < 1e-15);
        assert_eq!(gap_rate_for(0.01, 0), None);
        assert_eq!(mean_run_rate(0.1, &[]), None);
        assert!(run_rate(1.0, 0).abs() < 1e-18);
    }

    #[test]
    fn kills_bunched_in_one_run_raise_the_ratio() {
        let bunched = [vec![9, 9, 9, 9], vec![1, 1, 1, 1], vec![1, 1, 1, 1]];
        let spread = [vec![9, 1, 1, 1], vec![9, 1, 1, 1], vec![9, 1, 1, 9]];
        let ratio = |runs: &[Vec<u64>]| {
            compounding(runs, 9)
                .and_then(|found| found.ratio)
                .unwrap_or_default()
        };
        assert!(ratio(&bunched) > 1.5);
        assert!(ratio(&spread) < 1.0);
        assert_eq!(compounding::<Vec<u64>>(&[], 9), None);
    }

    proptest! {
        #[test]
        fn kills_never_rise_with_the_window(runs in prop::collection::vec(prop::collection::vec(0_u64..100, 0..20), 0..20), window in 0_u64..100) {
            let (one, other) = (count_kills(&runs, window), count_kills(&runs, window + 1));
            prop_assert!(other.gap_kills <= one.gap_kills && other.run_kills <= one.run_kills);
            prop_assert_eq!(one.gap_kills_event_first, other.gap_kills);
        }
    }
}
