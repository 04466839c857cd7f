//! How often a rate check is wrong: its chances at the number of runs there is, and what it would take.

use crate::stats::rates::{binomial_upper, exceeds, pass_chance_beside};
use crate::stats::{Level, Prob, runs_needed};

/// The chances of the three verdicts for one true rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chances {
    /// The true rate.
    pub true_rate: f64,
    /// Chance of a pass.
    pub pass: f64,
    /// Chance of a fail.
    pub fail: f64,
}

impl Chances {
    /// Chance of neither.
    pub fn inconclusive(&self) -> f64 {
        (1.0 - self.pass - self.fail).max(0.0)
    }
}

/// The chance that good policies pass with so many runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Runs.
    pub runs: u64,
    /// For a true rate of a tenth, a quarter and a half of the bound.
    pub pass: [f64; GOOD.len()],
}

/// What is claimed of some runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// The stratum; `None` is all runs.
    pub stratum: Option<String>,
    /// How many strata share the error of an accusation; 1 for all runs.
    pub accusers: u64,
    /// Runs there are.
    pub runs: u64,
    /// Of those, the ones about which the record cannot tell: against a pass they count as kills.
    pub unresolved: u64,
    /// The bound.
    pub max_rate: f64,
}

/// The operating characteristics of one rate check.
#[derive(Clone, Debug, PartialEq)]
pub struct Characteristics {
    /// The claim, that of the fewest runs where there are several.
    pub claim: Claim,
    /// Confidence of its one-sided limits.
    pub level: Level,
    /// Chances at that number of runs, by rising true rate.
    pub chances: Vec<Chances>,
    /// Runs with which 0, 1, 2, 3 and 5 kills would still certify the bound, beside the unresolved ones.
    pub needed: Vec<(u64, u64)>,
    /// Chances of good policies at one, two and four times the least number of runs, with as many unresolved.
    pub plan: Vec<Plan>,
}

/// True rates of good policies, as shares of the bound: not passing one of them is a false alarm.
pub const GOOD: [f64; 3] = [0.1, 0.25, 0.5];
/// True rates on the bound and above it: passing one of them is a miss.
const BAD: [f64; 3] = [1.0, 2.0, 4.0];
/// Kills for which the runs needed are told.
const KILLS: [u64; 5] = [0, 1, 2, 3, 5];
/// Times the least number of runs at which one should plan.
const TIMES: [u64; 3] = [1, 2, 4];

impl Characteristics {
    /// The characteristics of a claim.
    pub fn new(claim: Claim, level: Level) -> Self {
        let (max_rate, unresolved) = (claim.max_rate, claim.unresolved);
        let pass = |true_rate: f64, runs: u64| {
            pass_chance_beside(unresolved, true_rate, max_rate, runs, level).unwrap_or(0.0)
        };
        let rates = GOOD.iter().chain(&BAD).map(|times| times * max_rate);
        let chances = rates
            .filter(|rate| *rate < 1.0)
            .map(|true_rate| Chances {
                true_rate,
                pass: pass(true_rate, claim.runs),
                fail: fail_chance(true_rate, &claim, level),
            })
            .collect();
        let least = runs_needed(unresolved, max_rate, level);
        let plan = TIMES.iter().filter_map(|times| {
            let runs = least?.checked_mul(*times)?;
            Some(Plan {
                runs,
                pass: GOOD.map(|times| pass(times * max_rate, runs)),
            })
        });
        Self {
            level,
            chances,
            needed: KILLS
                .into_iter()
                .filter_map(|kills| {
                    Some((kills, runs_needed(kills + unresolved, max_rate, level)?))
                })
                .collect(),
            plan: plan.collect(),
            claim,
        }
    }
}

/// The chance that a policy with `true_rate` is shown to exceed the bound of `claim`: unresolved runs accuse nobody.
fn fail_chance(true_rate: f64, claim: &Claim, level: Level) -> f64 {
    let runs = claim.runs;
    let breaks = |kills| exceeds(kills, runs, claim.max_rate, level, claim.accusers.max(1));
    if !breaks(runs) {
        return 0.0;
    }
    // the least number of kills that accuses: more kills accuse all the more
    let (mut fits, mut accuses) = (0, runs);
    while accuses - fits > 1 {
        let middle = fits + (accuses - fits) / 2;
        if breaks(middle) {
            accuses = middle;
        } else {
            fits = middle;
        }
    }
    let resolved = runs.saturating_sub(claim.unresolved);
    if accuses > resolved {
        return 0.0;
    }
    Prob::nearest(true_rate)
        .and_then(|rate| binomial_upper(accuses, resolved, rate))
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn claim(runs: u64) -> Claim {
        Claim {
            accusers: 1,
            runs,
            max_rate: 0.01,
            ..Claim::default()
        }
    }

    /// The chances by adding up every outcome, each judged as the verdict judges it.
    #[test]
    fn unresolved_runs_count_as_the_verdict_counts_them() {
        use crate::stats::verdict::{Decision, RunCounts, check_rate};
        for (runs, unresolved, max_rate) in [(300, 2, 0.02), (40, 5, 0.2), (100, 30, 0.1)] {
            let found = Characteristics::new(
                Claim {
                    unresolved,
                    max_rate,
                    ..claim(runs)
                },
                Level::P95,
            );
            for chances in &found.chances {
                let (mut pass, mut fail) = (0.0, 0.0);
                let rate = chances.true_rate;
                let resolved = runs - unresolved;
                for kills in 0..=resolved {
                    let ways: f64 = (0..kills)
                        .map(|k| libm::log((resolved - k) as f64 / (kills - k) as f64))
                        .sum();
                    let chance = libm::exp(
                        ways + kills as f64 * libm::log(rate)
                            + (resolved - kills) as f64 * libm::log1p(-rate),
                    );
                    let counts = RunCounts {
                        kills,
                        unresolved,
                        runs,
                    };
                    match check_rate(counts, max_rate, Level::P95).decision {
                        Decision::Pass => pass += chance,
                        Decision::Fail => fail += chance,
                        Decision::Inconclusive => {}
                    }
                }
                assert!((chances.pass - pass).abs() < 1e-9, "{chances:?} {pass}");
                assert!((chances.fail - fail).abs() < 1e-9, "{chances:?} {fail}");
            }
        }
        // so many are unresolved that nothing passes
        let found = Characteristics::new(
            Claim {
                unresolved: 30,
                max_rate: 0.1,
                ..claim(100)
            },
            Level::P95,
        );
        assert!(found.chances.iter().all(|chances| chances.pass == 0.0));
        assert_eq!(found.needed[0].1, runs_needed(30, 0.1, Level::P95).unwrap());
    }

    /// Section 13 of the method: at n0 a truly good policy passes in 74, 47 and 22 % of windows, at twice that in 88,
    /// 56 and 20 %, at four times in more than 99.9, 97 and 61 %.
    #[test]
    fn good_policies_pass_as_often_as_the_method_says() {
        let found = Characteristics::new(claim(299), Level::P95);
        let runs: Vec<u64> = found.plan.iter().map(|plan| plan.runs).collect();
        assert_eq!(runs, [299, 598, 1196]);
        let percent = |share: f64| (share * 100.0).round() as u64;
        assert_eq!(found.plan[0].pass.map(percent), [74, 47, 22]);
        assert_eq!(found.plan[1].pass.map(percent), [88, 56, 20]);
        assert!(found.plan[2].pass[0] > 0.999);
        assert_eq!(percent(found.plan[2].pass[1]), 97);
        assert_eq!(found.needed[..3], [(0, 299), (1, 473), (2, 628)]);
    }

    #[test]
    fn a_policy_on_the_bound_is_missed_in_one_window_of_twenty_at_most() {
        for runs in [10, 299, 1_000, 7_887] {
            let found = Characteristics::new(claim(runs), Level::P95);
            let at = |rate: f64| {
                let is = |chances: &&Chances| (chances.true_rate - rate).abs() < 1e-12;
                *found.chances.iter().find(is).unwrap()
            };
            assert!(at(0.01).pass <= 0.05 && at(0.01).fail <= 0.05, "{runs}");
            assert!(at(0.02).pass <= at(0.01).pass && at(0.02).fail >= at(0.01).fail);
            assert!(at(0.005).inconclusive() >= 0.0);
        }
        let none = Characteristics::new(claim(0), Level::P95);
        assert!(
            none.chances
                .iter()
                .all(|chances| chances.pass == 0.0 && chances.fail == 0.0)
        );
    }
}
