//! Intervals of what has no formula, by resampling whole sessions: costs, their differences, and the watchdog's
//! quality as a failure detector (statistics sections 3, 7, 10 and 11).
//!
//! Sessions are drawn, not runs: runs of one session resemble each other. Two candidates are compared on the same
//! draws, so that what both share cancels. The hang rate is held: its range is told beside the cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use policysim_policy::{Millis, Policy};
use rayon::prelude::*;

use crate::judgement::Judgement;
use crate::ledger::ledger;
use crate::readings::observed;
use crate::replay::{hang_onset_ms, replay};
use crate::run::{Fleet, RecordedEnd, Run, Symbols};
use crate::silence::without_limits;
use crate::stats::bootstrap::{Bootstrap, Resampling, bootstrap};
use crate::stats::clusters::{ClusteredRate, clustered_rate};
use crate::sweep::{settling_lag, sized_runs};

/// Milliseconds of an hour, the unit of a mistake rate.
const MS_PER_HOUR: f64 = 3_600_000.0;

/// What one candidate costs the runs of one session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SessionCost {
    /// Runs that are not labelled as hung.
    pub runs: u64,
    /// Work lost to false and unresolved kills, restarts included, ms.
    pub false_kill_cost_ms: u128,
    /// Runs labelled as hung.
    pub hung: u64,
    /// Last activity to settling over those, ms.
    pub slot_lost_ms: u128,
}

/// What one candidate costs each session, sessions in the order of their keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionCosts {
    sessions: Vec<SessionCost>,
    /// What a hang costs where no run is labelled as one: the window and its settling lag.
    unseen_hang_ms: u64,
}

impl SessionCosts {
    /// Costs already summed by session; `unseen_hang_ms` prices a hang where a draw holds none.
    pub const fn new(sessions: Vec<SessionCost>, unseen_hang_ms: u64) -> Self {
        Self {
            sessions,
            unseen_hang_ms,
        }
    }

    /// How many sessions there are.
    pub const fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Cost per run of the sessions at those indices at a hang rate, ms; `None` without a run.
    fn of_draw(&self, draw: &[usize], hang_rate: f64) -> Option<f64> {
        let mut sum = SessionCost::default();
        for session in draw.iter().map(|&index| self.sessions[index]) {
            sum.runs += session.runs;
            sum.false_kill_cost_ms += session.false_kill_cost_ms;
            sum.hung += session.hung;
            sum.slot_lost_ms += session.slot_lost_ms;
        }
        let hang_ms = match sum.hung {
            0 => self.unseen_hang_ms as f64,
            hung => sum.slot_lost_ms as f64 / hung as f64,
        };
        (sum.runs > 0).then(|| {
            (1.0 - hang_rate) * sum.false_kill_cost_ms as f64 / sum.runs as f64
                + hang_rate * hang_ms
        })
    }

    /// Cost per run at a hang rate, ms; `None` without a run.
    pub fn per_run_ms(&self, hang_rate: f64) -> Option<f64> {
        let all: Vec<usize> = (0..self.len()).collect();
        self.of_draw(&all, hang_rate)
    }

    /// The interval of the cost per run at a hang rate, ms.
    pub fn interval(&self, hang_rate: f64, how: Resampling) -> Bootstrap {
        bootstrap(self.len(), how, |draw| self.of_draw(draw, hang_rate))
    }

    /// The interval of how much more this costs per run than `other` on the same sessions, ms.
    ///
    /// # Panics
    /// When `other` is about other sessions.
    pub fn difference(&self, other: &Self, hang_rate: f64, how: Resampling) -> Bootstrap {
        assert_eq!(self.len(), other.len(), "costs of other sessions");
        bootstrap(self.len(), how, |draw| {
            Some(self.of_draw(draw, hang_rate)? - other.of_draw(draw, hang_rate)?)
        })
    }
}

/// The sized runs of `fleet` that `keep` picks (by their number among the sized ones) by session: the session's key,
/// else the run's own name.
fn by_session<'a>(fleet: &'a Fleet, keep: &(dyn Fn(usize) -> bool + Sync)) -> Vec<Vec<&'a Run>> {
    let mut found: BTreeMap<&Arc<str>, Vec<&Run>> = BTreeMap::new();
    for (_, run) in sized_runs(fleet)
        .enumerate()
        .filter(|(index, _)| keep(*index))
    {
        let key = if run.session.is_empty() {
            &run.name
        } else {
            &run.session
        };
        found.entry(key).or_default().push(run);
    }
    found.into_values().collect()
}

/// Replays the runs that `keep` picks, by their number among the sized ones, and sums by session what `policy` costs
/// them; `restart` is what a false kill costs beyond the work lost.
pub fn session_costs(
    fleet: &Fleet,
    policy: &Policy,
    restart: Millis,
    keep: &(dyn Fn(usize) -> bool + Sync),
) -> SessionCosts {
    let sessions = by_session(fleet, keep)
        .par_iter()
        .map(|runs| {
            let mut sum = SessionCost::default();
            for run in runs {
                add_cost(&mut sum, policy, restart, run, &fleet.symbols);
            }
            sum
        })
        .collect();
    let window = policy.idle.window.unwrap_or(Millis::MAX);
    SessionCosts::new(sessions, window.plus(settling_lag(policy)).as_u64())
}

fn add_cost(sum: &mut SessionCost, policy: &Policy, restart: Millis, run: &Run, symbols: &Symbols) {
    let replayed = replay(policy, run, symbols);
    let killed = replayed.is_kill();
    let at_ms = replayed.verdict.at.as_u64();
    if run.end == RecordedEnd::Hung {
        let onset_ms = hang_onset_ms(run);
        let settled_ms = if killed {
            at_ms.saturating_add(settling_lag(policy).as_u64())
        } else {
            run.end_ms
        };
        sum.hung += 1;
        // Killed before it hung: no slot was lost to the hang.
        if !(killed && at_ms < onset_ms) {
            sum.slot_lost_ms += u128::from(settled_ms.saturating_sub(onset_ms));
        }
        return;
    }
    sum.runs += 1;
    if matches!(
        replayed.judgement,
        Judgement::FalseKill | Judgement::Unresolved
    ) {
        let until_ms = if killed { at_ms } else { run.end_ms };
        sum.false_kill_cost_ms += u128::from(ledger(run, until_ms).active_ms());
        sum.false_kill_cost_ms += u128::from(restart.as_u64());
    }
}

/// Intervals of a window's figures as a failure detector, with sessions as units.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectorLimits {
    /// Mistakes per gap, with the rules for few of them.
    pub per_gap_rate: ClusteredRate,
    /// Of mistakes per hour of active time.
    pub mistakes_per_hour: Bootstrap,
    /// Of the mean active time between mistakes, ms; no upper side where enough draws hold no mistake.
    pub recurrence_ms: Bootstrap,
    /// Of the share of time at which a query finds the run not suspected.
    pub query_accuracy: Bootstrap,
}

/// The silences of each session whose end was observed, ms, as the structure of `policy` reads them. Runs labelled as
/// hung are left out.
pub fn session_silences(fleet: &Fleet, policy: &Policy) -> Vec<Vec<u64>> {
    let structure = without_limits(policy);
    by_session(fleet, &|_| true)
        .par_iter()
        .map(|runs| {
            runs.iter()
                .filter(|run| run.end != RecordedEnd::Hung)
                .flat_map(|run| observed(&structure, run, &fleet.symbols).0)
                .collect::<Vec<u64>>()
        })
        .filter(|silences| !silences.is_empty())
        .collect()
}

/// One session's silences against a window, as sums.
#[derive(Clone, Copy, Default)]
struct Mistakes {
    n: u64,
    active_ms: u128,
    suspected_ms: u128,
}

/// The intervals of the figures of `window_ms` as a detector over silences by session, ms.
pub fn detector_limits(sessions: &[Vec<u64>], window_ms: u64, how: Resampling) -> DetectorLimits {
    let sums: Vec<Mistakes> = sessions
        .iter()
        .map(|silences| {
            let mut sum = Mistakes::default();
            for &ms in silences {
                sum.active_ms += u128::from(ms);
                if ms >= window_ms {
                    sum.n += 1;
                    sum.suspected_ms += u128::from(ms - window_ms);
                }
            }
            sum
        })
        .collect();
    let figure = |of: fn(&Mistakes) -> f64| {
        bootstrap(sums.len(), how, |draw| {
            let mut all = Mistakes::default();
            for sum in draw.iter().map(|&index| sums[index]) {
                all.n += sum.n;
                all.active_ms += sum.active_ms;
                all.suspected_ms += sum.suspected_ms;
            }
            (all.active_ms > 0).then(|| of(&all))
        })
    };
    DetectorLimits {
        per_gap_rate: clustered_rate(sessions, window_ms, how.level),
        mistakes_per_hour: figure(|sum| sum.n as f64 * MS_PER_HOUR / sum.active_ms as f64),
        // A draw without a mistake never errs: an infinite time, which takes the upper side with it.
        recurrence_ms: figure(|sum| sum.active_ms as f64 / sum.n as f64),
        query_accuracy: figure(|sum| {
            (sum.active_ms - sum.suspected_ms) as f64 / sum.active_ms as f64
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::stats::{Interval, Level};

    const HOW: Resampling = Resampling {
        replicates: 400,
        seed: 7,
        level: Level::P95,
    };

    fn session(runs: u64, lost_ms: u128, hung: u64, slot_ms: u128) -> SessionCost {
        SessionCost {
            runs,
            false_kill_cost_ms: lost_ms,
            hung,
            slot_lost_ms: slot_ms,
        }
    }

    #[test]
    fn a_cost_is_a_mean_over_runs_and_one_over_hangs() {
        let costs = SessionCosts::new(vec![session(3, 600, 1, 50), session(1, 0, 1, 150)], 9);
        // 0.75 x 600 / 4 + 0.25 x 200 / 2
        assert_eq!(costs.per_run_ms(0.25), Some(137.5));
        let calm = SessionCosts::new(vec![session(4, 600, 0, 0)], 300);
        // no labelled hang: the window prices one
        assert_eq!(calm.per_run_ms(0.5), Some(225.0));
        assert_eq!(SessionCosts::new(Vec::new(), 9).per_run_ms(0.5), None);
    }

    #[test]
    fn what_two_candidates_share_cancels() {
        let sessions: Vec<SessionCost> = (0..40_u128)
            .map(|i| session(2, i * i * 1000, 1, 300))
            .collect();
        let dearer: Vec<SessionCost> = sessions
            .iter()
            .map(|cost| session(2, cost.false_kill_cost_ms + 20, 1, 300))
            .collect();
        let (cheap, dear) = (SessionCosts::new(sessions, 0), SessionCosts::new(dearer, 0));
        // 20 ms more per two runs in every session: 10 ms per run in every draw, and half of that at a rate of 1/2
        let found = dear.difference(&cheap, 0.5, HOW).interval;
        assert!((found.lo.unwrap() - 5.0).abs() < 1e-6 && (found.up.unwrap() - 5.0).abs() < 1e-6);
        let own = dear.interval(0.5, HOW).interval;
        assert!(own.up.unwrap() - own.lo.unwrap() > 1000.0);
    }

    #[test]
    fn one_session_has_no_interval() {
        let costs = SessionCosts::new(vec![session(3, 600, 1, 50)], 9);
        assert_eq!(costs.interval(0.1, HOW).interval, Interval::none());
        let found = detector_limits(&[vec![20, 30, 50]], 50, HOW);
        assert_eq!(found.per_gap_rate.estimate.interval, Interval::none());
        assert_eq!(found.mistakes_per_hour.interval, Interval::none());
    }

    #[test]
    fn a_session_without_mistakes_leaves_no_longest_recurrence() {
        let (calm, slow) = (
            vec![100; 10],
            vec![100, 100, 100, 100, 100, 100, 100, 100, 90, 110],
        );
        let found = detector_limits(&[slow.clone(), calm.clone(), calm], 105, HOW);
        assert_eq!(found.recurrence_ms.interval.up, None);
        assert!(found.recurrence_ms.interval.lo.is_some());
        // equal sessions: every draw is the same, 5 ms of suspicion and one mistake in 1,000 ms
        let equal = detector_limits(&vec![slow; 30], 105, HOW);
        assert_eq!(equal.query_accuracy.interval, Interval::new(0.995, 0.995));
        assert_eq!(equal.recurrence_ms.interval, Interval::new(1000.0, 1000.0));
        assert_eq!(
            equal.mistakes_per_hour.interval,
            Interval::new(3600.0, 3600.0)
        );
    }
}
