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
use crate::look::{Gaps, LEVELS};
use crate::readings::observed;
use crate::replay::{hang_onset_ms, replay};
use crate::run::{Fleet, RecordedEnd, Run, Symbols};
use crate::silence::without_limits;
use crate::stats::bootstrap::{Bootstrap, Resampling, bootstrap};
use crate::stats::clusters::{ClusteredRate, SessionCounts, clustered_rate_of, proxy_levels};
use crate::stats::detector::MS_PER_HOUR;
use crate::stats::{Counts, Interval, Reason};
use crate::sweep::{settling_lag, sized_runs};

/// Fewer sessions with a false kill (or with a hang) than this leave the spread of a cost to chance: draws repeat the
/// few that there are, and none at all would read as a cost of exactly zero. The number of kills below which a design
/// effect is not trusted either (statistics section 3).
const ENOUGH_SESSIONS: u64 = 5;

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
    /// What a hang costs where no run is labelled as one: the window and its settling lag; `None` without a window, as
    /// nothing tells then when it ends.
    unseen_hang_ms: Option<u64>,
    /// What a hang costs whatever the record's hung runs lost.
    known_hang_ms: Option<u64>,
}

impl SessionCosts {
    /// Costs already summed by session; `unseen_hang_ms` prices a hang where a draw holds none. Without it such a draw
    /// has no cost.
    pub const fn new(sessions: Vec<SessionCost>, unseen_hang_ms: Option<u64>) -> Self {
        Self {
            sessions,
            unseen_hang_ms,
            known_hang_ms: None,
        }
    }

    /// The same with hangs that cost so much each, where that is known from elsewhere; the record's are then not looked at.
    #[must_use]
    pub fn with_hangs_of(self, ms: Option<u64>) -> Self {
        Self {
            known_hang_ms: ms,
            ..self
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

    /// Cost per run of the sessions at those indices at a hang rate, ms; `None` without a run, or without a price for
    /// hangs.
    fn of_draw(&self, draw: &[usize], hang_rate: f64) -> Option<f64> {
        let mut sum = SessionCost::default();
        for session in draw.iter().map(|&index| self.sessions[index]) {
            sum.runs += session.runs;
            sum.false_kill_cost_ms += session.false_kill_cost_ms;
            sum.hung += session.hung;
            sum.slot_lost_ms += session.slot_lost_ms;
        }
        let hang_ms = match (self.known_hang_ms, sum.hung) {
            (Some(ms), _) => ms as f64,
            (None, 0) => self.unseen_hang_ms? as f64,
            // whole milliseconds, as `hang_cost` compares them
            (None, hung) => (sum.slot_lost_ms / u128::from(hung)) as f64,
        };
        (sum.runs > 0).then(|| {
            (1.0 - hang_rate) * sum.false_kill_cost_ms as f64 / sum.runs as f64
                + hang_rate * hang_ms
        })
    }

    /// Cost per run at a hang rate, ms; `None` without a run, or where nothing tells when a hang ends.
    pub fn per_run_ms(&self, hang_rate: f64) -> Option<f64> {
        let all: Vec<usize> = (0..self.len()).collect();
        self.of_draw(&all, hang_rate)
    }

    /// The interval of the cost per run at a hang rate, ms; none where too few sessions hold a false kill or a hang.
    pub fn interval(&self, hang_rate: f64, how: Resampling) -> Bootstrap {
        let with = |what: fn(&SessionCost) -> bool| {
            self.sessions.iter().filter(|session| what(session)).count() as u64
        };
        let (kills, hangs) = (
            with(|session| session.false_kill_cost_ms > 0),
            match self.known_hang_ms {
                Some(_) => 0,
                None => with(|session| session.hung > 0),
            },
        );
        if let Some(reason) = too_few(kills).or_else(|| (hangs > 0).then(|| too_few(hangs))?) {
            return Bootstrap::missing(reason);
        }
        bootstrap(self.len(), how, |draw| self.of_draw(draw, hang_rate))
    }

    /// The interval of how much more this costs per run than `other` on the same sessions, ms; none where the two
    /// differ in too few of them.
    ///
    /// # Panics
    /// When `other` is about other sessions.
    pub fn difference(&self, other: &Self, hang_rate: f64, how: Resampling) -> Bootstrap {
        assert_eq!(self.len(), other.len(), "costs of other sessions");
        let pairs = self.sessions.iter().zip(&other.sessions);
        let differing = pairs.filter(|(own, others)| own != others).count() as u64;
        if let Some(reason) = too_few(differing) {
            return Bootstrap::missing(reason);
        }
        bootstrap(self.len(), how, |draw| {
            Some(self.of_draw(draw, hang_rate)? - other.of_draw(draw, hang_rate)?)
        })
    }
}

fn too_few(sessions: u64) -> Option<Reason> {
    (sessions < ENOUGH_SESSIONS).then_some(Reason::FewSessions {
        have: sessions,
        need: ENOUGH_SESSIONS,
    })
}

/// The sized runs of `fleet` that `keep` picks, by session: the session's key, else the run's own name.
fn by_session<'a>(fleet: &'a Fleet, keep: &(dyn Fn(&Run) -> bool + Sync)) -> Vec<Vec<&'a Run>> {
    let mut found: BTreeMap<&Arc<str>, Vec<&Run>> = BTreeMap::new();
    for run in sized_runs(fleet).filter(|run| keep(run)) {
        let key = if run.session.is_empty() {
            &run.name
        } else {
            &run.session
        };
        found.entry(key).or_default().push(run);
    }
    found.into_values().collect()
}

/// Replays the runs that `keep` picks and sums by session what `policy` costs them; `restart` is what a false kill costs beyond the work lost.
pub fn session_costs(
    fleet: &Fleet,
    policy: &Policy,
    restart: Millis,
    keep: &(dyn Fn(&Run) -> bool + Sync),
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
    SessionCosts::new(sessions, unseen_hang_ms(policy))
}

/// When a hang outside an open tool is noticed and settled at the latest; `None` without an idle window.
pub(crate) fn unseen_hang_ms(policy: &Policy) -> Option<u64> {
    let window = policy.idle.window?;
    Some(window.plus(settling_lag(policy)).as_u64())
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
    /// Of mistakes per hour of active time: that of the rate per gap, at the gaps per hour there are.
    pub mistakes_per_hour: Interval,
    /// Of the mean active time between mistakes, ms: the same, inverted; no upper side where there may be none.
    pub recurrence_ms: Interval,
    /// Of the share of time at which a query finds the run not suspected; none where too few sessions hold a mistake.
    pub query_accuracy: Bootstrap,
}

/// The silences of each session whose end was observed, ms, as the structure of `policy` reads them. Runs labelled as
/// hung are left out, and so are sessions without a silence.
pub fn session_silences(fleet: &Fleet, policy: &Policy) -> Vec<Vec<u64>> {
    let mut sessions: Vec<Vec<u64>> = session_run_silences(fleet, policy)
        .into_iter()
        .map(|runs| runs.concat())
        .collect();
    sessions.retain(|silences| !silences.is_empty());
    sessions
}

/// The same run by run, with the runs that have none.
pub fn session_run_silences(fleet: &Fleet, policy: &Policy) -> Vec<Vec<Vec<u64>>> {
    let structure = without_limits(policy);
    by_session(fleet, &|_| true)
        .par_iter()
        .map(|runs| {
            runs.iter()
                .filter(|run| run.end != RecordedEnd::Hung)
                .map(|run| observed(&structure, run, &fleet.symbols).0)
                .collect()
        })
        .collect()
}

/// The intervals of the figures of `window_ms` as a detector over silences by session, ms.
pub fn detector_limits(sessions: &[Vec<u64>], window_ms: u64, how: Resampling) -> DetectorLimits {
    let all: Counts = sessions.iter().flatten().copied().collect();
    let levels = proxy_levels(&all);
    let gaps: Vec<Gaps> = sessions
        .iter()
        .map(|session| {
            let at_least = |level: u64| session.iter().filter(|&&ms| ms >= level).count() as u64;
            let sum = |ms: &mut dyn Iterator<Item = u64>| ms.map(u128::from).sum();
            Gaps {
                n: session.len() as u64,
                active_ms: sum(&mut session.iter().copied()),
                mistakes: at_least(window_ms),
                suspected_ms: sum(&mut session.iter().map(|ms| ms.saturating_sub(window_ms))),
                above: levels.map(|level| level.map_or(0, at_least)),
            }
        })
        .collect();
    detector_limits_of(&gaps, levels.map(|level| level.is_some()), how)
}

/// The intervals of the figures of a window as a detector over the gaps of sessions that have one. `has_level` tells
/// which levels they are counted at.
pub(crate) fn detector_limits_of(
    sessions: &[Gaps],
    has_level: [bool; LEVELS],
    how: Resampling,
) -> DetectorLimits {
    let sums = sessions;
    let counts = |kills: &dyn Fn(&Gaps) -> u64| -> Vec<SessionCounts> {
        let of = |session: &Gaps| SessionCounts {
            gaps: session.n,
            kills: kills(session),
        };
        sessions.iter().map(of).collect()
    };
    let levels = (0..LEVELS).filter(|&level| has_level[level]);
    let at_levels: Vec<Vec<SessionCounts>> = levels
        .map(|level| counts(&|session| session.above[level]))
        .collect();
    let at_window = counts(&|session| session.mistakes);
    let per_gap_rate = clustered_rate_of(&at_window, &at_levels, how.level);
    let active_ms: u128 = sums.iter().map(|sum| sum.active_ms).sum();
    let gap_ms = active_ms as f64 / per_gap_rate.estimate.n as f64;
    let limits = per_gap_rate.estimate.interval;
    let per_hour = |limit: f64| limit * MS_PER_HOUR / gap_ms;
    let recurrence = |limit: Option<f64>| {
        limit
            .filter(|&limit| limit > 0.0)
            .map(|limit| gap_ms / limit)
    };
    let with_mistakes = sums.iter().filter(|sum| sum.mistakes > 0).count() as u64;
    DetectorLimits {
        mistakes_per_hour: Interval {
            lo: limits.lo.map(per_hour),
            up: limits.up.map(per_hour),
        },
        recurrence_ms: Interval {
            lo: recurrence(limits.up),
            up: recurrence(limits.lo),
        },
        query_accuracy: match too_few(with_mistakes) {
            Some(reason) => Bootstrap::missing(reason),
            None => bootstrap(sums.len(), how, |draw| {
                let mut all = Gaps::default();
                for sum in draw.iter().map(|&index| sums[index]) {
                    all.active_ms += sum.active_ms;
                    all.suspected_ms += sum.suspected_ms;
                }
                (all.active_ms > 0)
                    .then(|| (all.active_ms - all.suspected_ms) as f64 / all.active_ms as f64)
            }),
        },
        per_gap_rate,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::stats::Level;

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
        let costs = SessionCosts::new(vec![session(3, 600, 1, 50), session(1, 0, 1, 150)], Some(9));
        // 0.75 x 600 / 4 + 0.25 x 200 / 2
        assert_eq!(costs.per_run_ms(0.25), Some(137.5));
        let calm = SessionCosts::new(vec![session(4, 600, 0, 0)], Some(300));
        // no labelled hang: the window prices one
        assert_eq!(calm.per_run_ms(0.5), Some(225.0));
        // nor a window: nothing prices it
        let endless = SessionCosts::new(vec![session(4, 600, 0, 0)], None);
        assert_eq!(endless.per_run_ms(0.5), None);
        assert_eq!(SessionCosts::new(Vec::new(), Some(9)).per_run_ms(0.5), None);
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
        let (cheap, dear) = (
            SessionCosts::new(sessions, Some(0)),
            SessionCosts::new(dearer, Some(0)),
        );
        // 20 ms more per two runs in every session: 10 ms per run in every draw, and half of that at a rate of 1/2
        let found = dear.difference(&cheap, 0.5, HOW).interval;
        assert!((found.lo.unwrap() - 5.0).abs() < 1e-6 && (found.up.unwrap() - 5.0).abs() < 1e-6);
        let own = dear.interval(0.5, HOW).interval;
        assert!(own.up.unwrap() - own.lo.unwrap() > 1000.0);
    }

    #[test]
    fn one_session_has_no_interval() {
        let costs = SessionCosts::new(vec![session(3, 600, 1, 50)], Some(9));
        assert_eq!(costs.interval(0.1, HOW).interval, Interval::none());
        let found = detector_limits(&[vec![20, 30, 50]], 50, HOW);
        assert_eq!(found.per_gap_rate.estimate.interval, Interval::none());
        assert_eq!(found.mistakes_per_hour, Interval::none());
    }

    #[test]
    fn a_few_kills_have_no_spread() {
        let costs = |kills: usize| {
            let sessions = (0..40).map(|index| session(2, u128::from(index < kills) * 900, 0, 0));
            SessionCosts::new(sessions.collect(), Some(300))
        };
        let reason = |have| Some(Reason::FewSessions { have, need: 5 });
        assert_eq!(costs(0).interval(0.1, HOW).reason, reason(0));
        assert_eq!(costs(4).interval(0.1, HOW).reason, reason(4));
        assert_eq!(costs(5).interval(0.1, HOW).reason, None);
        assert_eq!(costs(9).difference(&costs(6), 0.1, HOW).reason, reason(3));
    }

    #[test]
    fn no_mistake_is_no_rate_of_zero() {
        let calm = vec![vec![100; 10]; 30];
        let found = detector_limits(&calm, 105, HOW);
        assert_eq!(found.mistakes_per_hour.lo, Some(0.0));
        assert!(found.mistakes_per_hour.up.unwrap() > 0.0);
        assert_eq!(found.recurrence_ms.up, None);
        assert!(found.recurrence_ms.lo.is_some());
        assert_eq!(found.query_accuracy.interval, Interval::none());
    }

    #[test]
    fn equal_sessions_agree_in_every_draw() {
        let slow = vec![100, 100, 100, 100, 100, 100, 100, 100, 90, 110];
        // 5 ms of suspicion in 1,000 ms
        let equal = detector_limits(&vec![slow; 30], 105, HOW);
        assert_eq!(equal.query_accuracy.interval, Interval::new(0.995, 0.995));
        // one mistake in 1,000 ms lies within the limits
        let hours = equal.mistakes_per_hour;
        assert!(hours.lo.unwrap() < 3600.0 && hours.up.unwrap() > 3600.0);
    }
}
