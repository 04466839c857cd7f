//! Rates over gaps that are correlated within sessions.
//!
//! Ratio estimator with linearised variance (Cochran 1977); interval of Korn & Graubard (1998): Clopper-Pearson with
//! the effective number of gaps. The unit of a gate is the run, not the gap; this is for figures per gap, and for runs
//! with a coarser session key (calendar day).

use super::estimate::{Estimate, Interval, Reason};
use super::normal::t_upper;
use super::prob::Level;
use super::quantile::Counts;
use super::rates::clopper_pearson_effective;

/// Fewest kills, and fewest sessions holding them, from which a design effect is taken as it is.
const ENOUGH_KILLS: u64 = 5;
const ENOUGH_SESSIONS_WITH_KILLS: usize = 3;
/// With fewer kills: the exceedance counts at which the design effect is read instead, and the sessions they must span.
const PROXY_EXCEEDANCES: [usize; 3] = [20, 50, 100];
const PROXY_SESSIONS: usize = 5;
/// Below this many sessions an interval is printed with a warning.
const FEW_SESSIONS: usize = 20;

/// One session's gaps and how many of them are kills.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SessionCounts {
    /// Gaps (or runs) of the session.
    pub gaps: u64,
    /// Kills among them.
    pub kills: u64,
}

/// The ratio estimator as published, without any fallback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proportion {
    /// Kills per gap; `None` without gaps.
    pub rate: Option<f64>,
    /// Gaps.
    pub gaps: u64,
    /// Kills.
    pub kills: u64,
    /// Sessions.
    pub sessions: usize,
    /// Linearised variance; `None` below two sessions, or when no gap or every gap is a kill.
    pub variance: Option<f64>,
    /// Design effect: the variance over that of independent gaps, not cut at 1.
    pub deff: Option<f64>,
    /// Effective number of independent gaps, with the correction of degrees of freedom.
    pub effective: Option<f64>,
    /// Korn-Graubard interval.
    pub interval: Interval,
}

/// The rate of kills per gap over `sessions`, with the Korn-Graubard interval at `level`.
pub fn proportion(sessions: &[SessionCounts], level: Level) -> Proportion {
    let Spread {
        gaps,
        kills,
        rate,
        variance,
        deff,
    } = Spread::of(sessions);
    let effective = deff
        .filter(|&deff| deff > 0.0)
        .and_then(|deff| effective(gaps as f64 / deff, gaps, sessions.len(), level));
    let interval = match (rate, effective) {
        (Some(rate), Some(effective)) => {
            clopper_pearson_effective(rate * effective, effective, level)
        }
        _ => Interval::none(),
    };
    Proportion {
        rate,
        gaps,
        kills,
        sessions: sessions.len(),
        variance,
        deff,
        effective,
        interval,
    }
}

/// What is known of a ratio without inverting any function.
struct Spread {
    gaps: u64,
    kills: u64,
    rate: Option<f64>,
    variance: Option<f64>,
    deff: Option<f64>,
}

impl Spread {
    fn of(sessions: &[SessionCounts]) -> Self {
        let gaps = sessions.iter().map(|session| session.gaps).sum::<u64>();
        let kills = sessions.iter().map(|session| session.kills).sum::<u64>();
        let rate = (gaps > 0).then(|| kills as f64 / gaps as f64);
        let variance = rate.and_then(|rate| variance(sessions, rate, gaps as f64));
        let deff = rate
            .zip(variance)
            .map(|(rate, variance)| variance * gaps as f64 / (rate * (1.0 - rate)));
        Self {
            gaps,
            kills,
            rate,
            variance,
            deff,
        }
    }
}

/// `m/(m-1) sum (x_i - q n_i)^2 / N^2`.
fn variance(sessions: &[SessionCounts], rate: f64, gaps: f64) -> Option<f64> {
    let m = sessions.len() as f64;
    if sessions.len() < 2 || rate <= 0.0 || rate >= 1.0 {
        return None;
    }
    let squares: f64 = sessions
        .iter()
        .map(|session| session.kills as f64 - rate * session.gaps as f64)
        .map(|residual| residual * residual)
        .sum();
    Some(m / (m - 1.0) * squares / (gaps * gaps))
}

/// `n (t_{a/2, N-1} / t_{a/2, m-1})^2`.
fn effective(n: f64, gaps: u64, sessions: usize, level: Level) -> Option<f64> {
    if gaps < 2 || sessions < 2 {
        return None;
    }
    let t = |df: f64| t_upper(df, level.alpha(2)).ok();
    let ratio = t(gaps as f64 - 1.0)? / t(sessions as f64 - 1.0)?;
    Some(n * ratio * ratio)
}

/// The design effect of `sessions` where they hold enough kills to tell: at least 5, in at least 3 sessions.
pub fn reliable_deff(sessions: &[SessionCounts]) -> Option<f64> {
    let raw = Spread::of(sessions);
    let with_kills = sessions.iter().filter(|session| session.kills > 0).count();
    let enough = raw.kills >= ENOUGH_KILLS && with_kills >= ENOUGH_SESSIONS_WITH_KILLS;
    raw.deff.filter(|_| enough)
}

/// Lower and upper limit, each one-sided at `level`, of the rate over `sessions`, with a design effect of at least 1.
///
/// Missing where the design effect is (see [`proportion`]).
pub fn one_sided_limits(sessions: &[SessionCounts], level: Level) -> Interval {
    // a one-sided limit at error a is a side of the two-sided interval at 2a
    let Ok(two_sided) = level.doubled() else {
        return Interval::none();
    };
    let raw = proportion(sessions, two_sided);
    let Some((rate, deff)) = raw.rate.zip(raw.deff) else {
        return Interval::none();
    };
    let independent = raw.gaps as f64 / deff.max(1.0);
    effective(independent, raw.gaps, sessions.len(), two_sided)
        .map_or(Interval::none(), |effective| {
            clopper_pearson_effective(rate * effective, effective, two_sided)
        })
}

/// Where a design effect was taken from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeffSource {
    /// Complete dependence within sessions is assumed (Kish 1965).
    CompleteDependence,
    /// The gaps and kills themselves.
    Own,
    /// Levels exceeded by 20, 50 or 100 gaps: the largest design effect found there.
    Proxy,
}

impl DeffSource {
    /// The source as words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CompleteDependence => "complete dependence within sessions",
            Self::Own => "own kills",
            Self::Proxy => "levels exceeded by 20, 50 and 100 gaps",
        }
    }
}

/// What a reader of a clustered figure must know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClusterWarning {
    /// Fewer than 20 sessions.
    FewSessions {
        /// Sessions there are.
        sessions: usize,
    },
    /// One session holds more than a fifth of the gaps.
    Dominated {
        /// Its share.
        share: f64,
    },
}

/// A rate per gap as reports and gates use it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteredRate {
    /// Rate and interval; `n` counts gaps.
    pub estimate: Estimate,
    /// Sessions.
    pub sessions: usize,
    /// Design effect used, at least 1; `None` where there is no interval.
    pub deff: Option<f64>,
    /// Effective number of gaps.
    pub effective: Option<f64>,
    /// Where the design effect was taken from.
    pub source: DeffSource,
    /// What to print beside it.
    pub warnings: Vec<ClusterWarning>,
}

/// The rate of gaps of at least `window_ms`, with the rules that keep its design effect honest when kills are few.
///
/// `sessions` hold gaps in ms, in any order. Design effects below 1 count as 1. With fewer than 5 kills, or kills in
/// fewer than 3 sessions, the largest design effect at the levels exceeded by 20, 50 and 100 gaps is used, and without
/// such levels complete dependence.
pub fn clustered_rate<S: AsRef<[u64]>>(
    sessions: &[S],
    window_ms: u64,
    level: Level,
) -> ClusteredRate {
    let counts = count(sessions, window_ms);
    rate_with(&counts, level, || proxy_deff(sessions))
}

/// The same of gaps counted by session: those of at least the window, and as often again with those of at least each
/// of [`proxy_levels`].
pub fn clustered_rate_of(
    sessions: &[SessionCounts],
    at_levels: &[Vec<SessionCounts>],
    level: Level,
) -> ClusteredRate {
    rate_with(sessions, level, || {
        largest_deff(at_levels.iter().map(Vec::as_slice))
    })
}

/// The lengths that 20, 50 and 100 gaps reach, in ms, where there are so many.
pub fn proxy_levels(gaps: &Counts) -> [Option<u64>; PROXY_EXCEEDANCES.len()] {
    PROXY_EXCEEDANCES.map(|exceedances| gaps.longest(exceedances as u64))
}

fn rate_with(
    counts: &[SessionCounts],
    level: Level,
    proxy_deff: impl FnOnce() -> Option<f64>,
) -> ClusteredRate {
    let raw = proportion(counts, level);
    let warnings = warnings(counts, raw.gaps);
    let missing = |reason| ClusteredRate {
        estimate: Estimate {
            point: raw.rate,
            ..Estimate::missing(raw.gaps, reason)
        },
        sessions: counts.len(),
        deff: None,
        effective: None,
        source: DeffSource::Own,
        warnings: warnings.clone(),
    };
    let Some(rate) = raw.rate else {
        return missing(Reason::NoData);
    };
    if counts.len() < 2 {
        return missing(Reason::FewSessions {
            have: counts.len() as u64,
            need: 2,
        });
    }
    let (source, deff) = match reliable_deff(counts) {
        Some(deff) => (DeffSource::Own, deff.max(1.0)),
        None => proxy_deff().map_or_else(
            || {
                (
                    DeffSource::CompleteDependence,
                    raw.gaps as f64 / kish(counts),
                )
            },
            |deff| (DeffSource::Proxy, deff.max(1.0)),
        ),
    };
    let independent = raw.gaps as f64 / deff;
    let effective = if source == DeffSource::CompleteDependence {
        // nothing was estimated from the spread of sessions, so no degrees of freedom are lost
        Some(independent)
    } else {
        effective(independent, raw.gaps, counts.len(), level)
    };
    let Some(effective) = effective else {
        return missing(Reason::NTooSmall {
            have: raw.gaps,
            need: 2,
        });
    };
    let interval = clopper_pearson_effective(rate * effective, effective, level);
    ClusteredRate {
        estimate: Estimate::with_interval(raw.gaps, rate, interval),
        sessions: counts.len(),
        deff: Some(deff),
        effective: Some(effective),
        source,
        warnings,
    }
}

fn count<S: AsRef<[u64]>>(sessions: &[S], least_ms: u64) -> Vec<SessionCounts> {
    let one = |gaps: &S| SessionCounts {
        gaps: gaps.as_ref().len() as u64,
        kills: gaps.as_ref().iter().filter(|&&gap| gap >= least_ms).count() as u64,
    };
    sessions.iter().map(one).collect()
}

/// The largest design effect at the levels exceeded by 20, 50 and 100 gaps that span enough sessions.
fn proxy_deff<S: AsRef<[u64]>>(sessions: &[S]) -> Option<f64> {
    let mut pooled: Vec<u64> = sessions
        .iter()
        .flat_map(std::convert::AsRef::as_ref)
        .copied()
        .collect();
    pooled.sort_unstable_by(|left, right| right.cmp(left));
    let levels = PROXY_EXCEEDANCES
        .iter()
        .filter_map(|&exceedances| pooled.get(exceedances - 1));
    let at_levels: Vec<Vec<SessionCounts>> = levels.map(|&ms| count(sessions, ms)).collect();
    largest_deff(at_levels.iter().map(Vec::as_slice))
}

/// The largest design effect at levels whose gaps span enough sessions.
fn largest_deff<'a>(at_levels: impl Iterator<Item = &'a [SessionCounts]>) -> Option<f64> {
    at_levels
        .filter_map(|counts| {
            let spanned = counts.iter().filter(|session| session.kills > 0).count();
            (spanned >= PROXY_SESSIONS).then(|| Spread::of(counts).deff)?
        })
        .max_by(f64::total_cmp)
}

/// `(sum n_i)^2 / sum n_i^2`: independent units if a session's gaps were all copies of one (Kish 1965).
fn kish(counts: &[SessionCounts]) -> f64 {
    let sum: f64 = counts.iter().map(|session| session.gaps as f64).sum();
    let squares: f64 = counts
        .iter()
        .map(|session| (session.gaps as f64) * (session.gaps as f64))
        .sum();
    sum * sum / squares
}

fn warnings(counts: &[SessionCounts], gaps: u64) -> Vec<ClusterWarning> {
    let mut warnings = Vec::new();
    if counts.len() < FEW_SESSIONS {
        warnings.push(ClusterWarning::FewSessions {
            sessions: counts.len(),
        });
    }
    let largest = counts.iter().map(|session| session.gaps).max().unwrap_or(0);
    if u128::from(largest) * 5 > u128::from(gaps) {
        warnings.push(ClusterWarning::Dominated {
            share: largest as f64 / gaps as f64,
        });
    }
    warnings
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn too_few_sessions_have_no_interval() {
        let none = clustered_rate::<Vec<u64>>(&[], 5, Level::P95);
        assert_eq!(none.estimate.reason, Some(Reason::NoData));
        let one = clustered_rate(&[vec![1, 9]], 5, Level::P95);
        assert_eq!(
            one.estimate.reason,
            Some(Reason::FewSessions { have: 1, need: 2 })
        );
        assert_eq!(
            (one.estimate.point, one.estimate.interval),
            (Some(0.5), Interval::none())
        );
        let empty = clustered_rate(&[vec![], vec![]], 5, Level::P95);
        assert_eq!(empty.estimate.reason, Some(Reason::NoData));
        assert!(proportion(&[], Level::P95).rate.is_none());
    }

    #[test]
    fn copies_of_one_gap_count_once() {
        // 30 sessions of 10 equal gaps: the design effect is the session size
        let sessions: Vec<Vec<u64>> = (0..30).map(|session| vec![session; 10]).collect();
        let found = clustered_rate(&sessions, 20, Level::P95);
        assert_eq!(found.source, DeffSource::Own);
        let deff = found.deff.unwrap();
        assert!((deff - 10.0 * 30.0 / 29.0).abs() < 1e-9, "{deff}");
    }

    #[test]
    fn few_kills_borrow_a_design_effect() {
        let sessions: Vec<Vec<u64>> = (0..30_u64).map(|session| vec![session; 10]).collect();
        let rare = clustered_rate(&sessions, 29, Level::P95);
        assert_eq!(rare.source, DeffSource::Proxy);
        let tiny: Vec<Vec<u64>> = (0..4_u64).map(|session| vec![session; 2]).collect();
        let rare = clustered_rate(&tiny, 100, Level::P95);
        assert_eq!(rare.source, DeffSource::CompleteDependence);
        assert!((rare.deff.unwrap() - 2.0).abs() < 1e-12);
        assert!(rare.estimate.interval.up.unwrap() > 0.5);
        assert_eq!(rare.warnings.len(), 2);
    }

    #[test]
    fn sessions_that_agree_exactly_do_not_gain() {
        let sessions: Vec<Vec<u64>> = (0..40).map(|_| vec![1, 9]).collect();
        let found = clustered_rate(&sessions, 5, Level::P95);
        assert!((found.deff.unwrap() - 1.0).abs() < 1e-12);
    }
}
