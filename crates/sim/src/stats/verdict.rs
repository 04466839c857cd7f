//! What a rate check may conclude: pass, fail, or neither, from limits and never from the point.
//!
//! `U = upper(K + unresolved, m)` must be at most the bound to pass, `L = lower(K, m)` must exceed it to fail, both
//! one-sided; everything between is inconclusive. Both decisions are made forward, without inverting a beta function.

use std::fmt;

use serde::Serialize;

use super::clusters::{SessionCounts, one_sided_limits, reliable_deff};
use super::estimate::{Reason, text};
use super::prob::{Level, Prob};
use super::quantile::Counts;
use super::rates::{
    certifies, exceeds, lower_one_sided, lower_one_sided_shared, runs_needed, upper_one_sided,
};

/// The conclusion of a check, by rising precedence.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The bound is shown to hold.
    Pass,
    /// The data decide neither way.
    Inconclusive,
    /// The bound is shown to be broken.
    Fail,
}

impl Decision {
    /// The decision's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Pass => "pass",
        }
    }

    /// The decision over several checks: fail over inconclusive over pass. Without any check: inconclusive.
    pub fn over(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().max().unwrap_or(Self::Inconclusive)
    }

    /// The decision when `timer_first` follows from kills at `gap >= window` and `event_first` from `gap > window`:
    /// inconclusive where the tie rule alone would decide.
    #[must_use]
    pub fn under_both_tie_rules(timer_first: Self, event_first: Self) -> Self {
        if timer_first == event_first {
            timer_first
        } else {
            Self::Inconclusive
        }
    }

    /// The decision once a doubt about the data is known: a pass becomes inconclusive, a fail stays.
    #[must_use]
    pub fn with_doubt(self, doubt: bool) -> Self {
        if doubt && self == Self::Pass {
            Self::Inconclusive
        } else {
            self
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The runs behind a rate: each killed, unresolved or survived. True hangs are left out before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RunCounts {
    /// Runs falsely killed.
    pub kills: u64,
    /// Runs whose fate the record cannot tell.
    pub unresolved: u64,
    /// All runs, these included.
    pub runs: u64,
}

impl RunCounts {
    /// Both parts' runs together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            kills: self.kills + other.kills,
            unresolved: self.unresolved + other.unresolved,
            runs: self.runs + other.runs,
        }
    }

    /// Kills if every unresolved run is one, the count behind upper limits.
    pub fn worst_kills(self) -> u64 {
        self.kills.saturating_add(self.unresolved).min(self.runs)
    }
}

/// A rate held against its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateCheck {
    /// The runs.
    pub counts: RunCounts,
    /// The largest rate allowed.
    pub max_rate: f64,
    /// Confidence of each one-sided limit.
    pub level: Level,
    /// One-sided lower limit, unresolved runs counted as survivors.
    pub lower: Option<f64>,
    /// One-sided upper limit, unresolved runs counted as kills.
    pub upper: Option<f64>,
    /// The conclusion.
    pub decision: Decision,
    /// `no_data` without runs, `n_too_small` where more runs without a kill would pass.
    pub reason: Option<Reason>,
}

/// Holds the rate of kills per run against `max_rate`, each side at one-sided `level`.
pub fn check_rate(counts: RunCounts, max_rate: f64, level: Level) -> RateCheck {
    let worst = counts.worst_kills();
    let decision = if counts.runs == 0 {
        Decision::Inconclusive
    } else if exceeds(counts.kills, counts.runs, max_rate, level, 1) {
        Decision::Fail
    } else if certifies(worst, counts.runs, max_rate, level) {
        Decision::Pass
    } else {
        Decision::Inconclusive
    };
    let reason = match decision {
        Decision::Inconclusive if counts.runs == 0 => Some(Reason::NoData),
        Decision::Inconclusive => {
            runs_needed(worst, max_rate, level).map(|need| Reason::NTooSmall {
                have: counts.runs,
                need,
            })
        }
        Decision::Fail | Decision::Pass => None,
    };
    RateCheck {
        counts,
        max_rate,
        level,
        lower: lower_one_sided(counts.kills, counts.runs, level),
        upper: upper_one_sided(worst, counts.runs, level),
        decision,
        reason,
    }
}

/// Holds the `p` quantile of samples against `max_ms`: at most a share `1 - p` may be longer, which is a rate check on
/// the samples above the bound. It treats samples as independent.
pub fn check_quantile(samples: &Counts, p: Prob, max_ms: u64, level: Level) -> RateCheck {
    let longer = max_ms
        .checked_add(1)
        .map_or(0, |least_ms| samples.at_least(least_ms));
    let counts = RunCounts {
        kills: longer,
        unresolved: 0,
        runs: samples.total(),
    };
    check_rate(counts, p.complement().to_f64(), level)
}

/// A rate check whose runs fall on keys (calendar days) that may share their fate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyedCheck {
    /// The check, on effective counts where the keys demand it.
    pub check: RateCheck,
    /// Design effect of kills over keys; `None` with too few kills to tell.
    pub deff: Option<f64>,
    /// Whether the limits are those of effective counts.
    pub adjusted: bool,
}

/// [`check_rate`] for runs grouped by key. A design effect above 1.5 replaces the limits by those of Korn & Graubard at
/// one-sided `level`; with fewer than 5 kills, or kills on fewer than 3 keys, none can be told.
pub fn check_rate_by_key(keys: &[RunCounts], max_rate: f64, level: Level) -> KeyedCheck {
    let total = keys
        .iter()
        .fold(RunCounts::default(), |total, counts| total.plus(*counts));
    let plain = check_rate(total, max_rate, level);
    let sessions = |kills: fn(RunCounts) -> u64| -> Vec<SessionCounts> {
        keys.iter()
            .map(|&counts| SessionCounts {
                gaps: counts.runs,
                kills: kills(counts),
            })
            .collect()
    };
    let worst = sessions(RunCounts::worst_kills);
    let deff = reliable_deff(&worst);
    if deff.is_none_or(|deff| deff <= KEYS_MATTER) {
        return KeyedCheck {
            check: plain,
            deff,
            adjusted: false,
        };
    }
    let upper = one_sided_limits(&worst, level).up;
    let lower = one_sided_limits(&sessions(|counts| counts.kills), level).lo;
    let decision = if lower.is_some_and(|lower| lower > max_rate) {
        Decision::Fail
    } else if upper.is_some_and(|upper| upper <= max_rate) {
        Decision::Pass
    } else {
        Decision::Inconclusive
    };
    // the runs needed would be those of independent runs, which these are not
    KeyedCheck {
        check: RateCheck {
            lower,
            upper,
            decision,
            reason: None,
            ..plain
        },
        deff,
        adjusted: true,
    }
}

/// Design effect of run indicators above which their key replaces the run as the unit.
pub const KEYS_MATTER: f64 = 1.5;

impl fmt::Display for RateCheck {
    /// The sentence of a gate: counts, limit, bound, and the runs that would be needed.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunCounts {
            kills,
            unresolved,
            runs,
        } = self.counts;
        write!(out, "{}: {kills} kills", self.decision)?;
        if unresolved > 0 {
            write!(out, " and {unresolved} unresolved")?;
        }
        let limit = |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), text);
        write!(out, " in {runs} runs; {} ", self.level)?;
        match self.decision {
            Decision::Fail => write!(
                out,
                "lower limit {} > {}",
                limit(self.lower),
                text(self.max_rate)
            )?,
            Decision::Inconclusive => {
                write!(
                    out,
                    "upper limit {}, lower {}, bound {}",
                    limit(self.upper),
                    limit(self.lower),
                    text(self.max_rate)
                )?;
            }
            Decision::Pass => write!(
                out,
                "upper limit {} <= {}",
                limit(self.upper),
                text(self.max_rate)
            )?,
        }
        if self.decision == Decision::Inconclusive {
            let worst = self.counts.worst_kills();
            for (nth, kills) in (worst..worst.saturating_add(3)).enumerate() {
                let Some(need) = runs_needed(kills, self.max_rate, self.level) else {
                    break;
                };
                if nth == 0 {
                    let more = need.saturating_sub(runs);
                    write!(out, "; needs {need} runs with {kills} kills ({more} more)")?;
                } else {
                    write!(out, ", {need} with {kills}")?;
                }
            }
        }
        Ok(())
    }
}

/// One stratum's part of a [`StrataCheck`].
#[derive(Clone, Debug, PartialEq)]
pub struct StratumCheck {
    /// The stratum.
    pub name: String,
    /// The stratum alone, at full error probability: "every stratum holds" is an intersection-union claim
    /// (Berger 1982).
    pub alone: RateCheck,
    /// One-sided lower limit at `a/G` over the G strata, for the claim that some stratum exceeds the bound.
    pub lower_shared: Option<f64>,
    /// Whether that limit exceeds the bound.
    pub exceeds: bool,
    /// Runs without a kill that this stratum would need to pass, where it has fewer.
    pub cannot_certify: Option<u64>,
}

/// A rate held against its bound, pooled and per stratum.
#[derive(Clone, Debug, PartialEq)]
pub struct StrataCheck {
    /// All strata together.
    pub pooled: RateCheck,
    /// The strata in the order given.
    pub strata: Vec<StratumCheck>,
    /// The conclusion: fails if the pool or any stratum does, passes if the pool does (and, if so required, every
    /// stratum).
    pub decision: Decision,
    /// Index of the stratum with the largest upper limit, the first of several.
    pub worst: Option<usize>,
}

/// Holds the rate against `max_rate`, pooled over `strata` and in each of them.
pub fn check_strata(
    strata: &[(String, RunCounts)],
    max_rate: f64,
    level: Level,
    require_every_stratum: bool,
) -> StrataCheck {
    let claims = strata.len() as u64;
    let least = runs_needed(0, max_rate, level);
    let parts: Vec<StratumCheck> = strata
        .iter()
        .map(|(name, counts)| StratumCheck {
            name: name.clone(),
            alone: check_rate(*counts, max_rate, level),
            lower_shared: lower_one_sided_shared(counts.kills, counts.runs, level, claims),
            exceeds: exceeds(counts.kills, counts.runs, max_rate, level, claims),
            cannot_certify: least.filter(|&need| counts.runs < need),
        })
        .collect();
    let total = strata
        .iter()
        .fold(RunCounts::default(), |total, (_, counts)| {
            total.plus(*counts)
        });
    let pooled = check_rate(total, max_rate, level);
    let decision = if pooled.decision == Decision::Fail || parts.iter().any(|part| part.exceeds) {
        Decision::Fail
    } else {
        let missing = parts
            .iter()
            .any(|part| part.alone.decision != Decision::Pass);
        pooled.decision.with_doubt(require_every_stratum && missing)
    };
    let upper = |part: &StratumCheck| part.alone.upper.unwrap_or(1.0);
    let worst = (0..parts.len())
        .rev()
        .max_by(|&left, &right| upper(&parts[left]).total_cmp(&upper(&parts[right])));
    StrataCheck {
        pooled,
        strata: parts,
        decision,
        worst,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(kills: u64, unresolved: u64, runs: u64) -> RunCounts {
        RunCounts {
            kills,
            unresolved,
            runs,
        }
    }

    #[test]
    fn the_sentence_names_the_runs_needed() {
        // the worked message of the method: 2995, 4742 and 6294 runs
        let check = check_rate(counts(0, 0, 800), 0.001, Level::P95);
        assert_eq!(
            check.to_string(),
            "inconclusive: 0 kills in 800 runs; 95 % upper limit 0.00373766, lower 0, bound 0.001; \
             needs 2995 runs with 0 kills (2195 more), 4742 with 1, 6294 with 2"
        );
        let empty = check_rate(counts(0, 0, 0), 0.001, Level::P95);
        assert_eq!(
            (empty.decision, empty.reason),
            (Decision::Inconclusive, Some(Reason::NoData))
        );
    }

    #[test]
    fn precedence_and_ties() {
        use Decision::{Fail, Inconclusive, Pass};
        assert_eq!(Decision::over([Pass, Fail, Inconclusive]), Fail);
        assert_eq!(Decision::over([Pass, Inconclusive]), Inconclusive);
        assert_eq!(Decision::over([]), Inconclusive);
        assert_eq!(Decision::under_both_tie_rules(Fail, Pass), Inconclusive);
        assert_eq!(Decision::under_both_tie_rules(Fail, Fail), Fail);
        assert_eq!(
            (Pass.with_doubt(true), Fail.with_doubt(true)),
            (Inconclusive, Fail)
        );
        let none = check_strata(&[], 0.01, Level::P95, true);
        assert_eq!((none.decision, none.worst), (Inconclusive, None));
    }

    #[test]
    fn a_bad_day_counts_as_one() {
        // 40 days of 100 runs; all 60 kills fall on one of every ten days
        let days: Vec<RunCounts> = (0..40)
            .map(|day| counts(if day % 10 == 0 { 15 } else { 0 }, 0, 100))
            .collect();
        let found = check_rate_by_key(&days, 0.02, Level::P95);
        assert!(
            found.adjusted && found.deff.is_some_and(|deff| deff > 10.0),
            "{found:?}"
        );
        let plain = check_rate(counts(60, 0, 4_000), 0.02, Level::P95);
        assert_eq!(
            (plain.decision, found.check.decision),
            (Decision::Pass, Decision::Inconclusive)
        );
        let even: Vec<RunCounts> = (0..40).map(|day| counts(1 + day % 2, 0, 100)).collect();
        assert!(!check_rate_by_key(&even, 0.02, Level::P95).adjusted);
        assert_eq!(
            check_rate_by_key(&[], 0.02, Level::P95).check.decision,
            Decision::Inconclusive
        );
    }

    proptest! {
        #[test]
        fn more_survivors_never_fail_and_more_kills_never_pass(
            runs in 1_u64..2_000, share in 0.0..0.1_f64, unresolved in 0_u64..5, rate in 0.001..0.05_f64,
        ) {
            let kills = ((runs as f64 * share) as u64).min(runs);
            let unresolved = unresolved.min(runs - kills);
            let now = check_rate(counts(kills, unresolved, runs), rate, Level::P95).decision;
            let survivor = check_rate(counts(kills, unresolved, runs + 1), rate, Level::P95).decision;
            prop_assert!(survivor <= now, "a survivor turned {} into {}", now, survivor);
            let kill = check_rate(counts(kills + 1, unresolved, runs + 1), rate, Level::P95).decision;
            prop_assert!(kill >= now, "a kill turned {} into {}", now, kill);
        }

        #[test]
        fn the_decision_agrees_with_the_limits(kills in 0_u64..30, extra in 0_u64..3_000, rate in 0.001..0.2_f64) {
            let check = check_rate(counts(kills, 0, kills + extra), rate, Level::P95);
            if let (Some(lower), Some(upper)) = (check.lower, check.upper) && kills + extra > 0 {
                // the limits carry about ten digits; on the edge only the forward decision counts
                if (lower - rate).abs() > 1e-9 && (upper - rate).abs() > 1e-9 {
                    let expected = if lower > rate { Decision::Fail }
                        else if upper <= rate { Decision::Pass } else { Decision::Inconclusive };
                    prop_assert_eq!(check.decision, expected);
                }
            }
        }
    }
}
