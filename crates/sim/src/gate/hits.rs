//! Which runs, hangs and waits count in a rate, as counts by independent unit.

use std::collections::BTreeMap;

use crate::certify::TieRule;
use crate::cluster::Cluster;
use crate::gaps::Silences;
use crate::stats::verdict::RunCounts;
use crate::strata::StratumKey;

use super::metric::Metric;
use super::outcome::{Fate, Outcome, Outcomes};
use super::rules::{Bound, FigureRule, Scope};

/// Whether something counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hit {
    No,
    Unclear,
    Yes,
}

impl Hit {
    const fn counts(self, weight: u64) -> RunCounts {
        RunCounts {
            kills: matches!(self, Self::Yes) as u64,
            unresolved: matches!(self, Self::Unclear) as u64,
            runs: weight,
        }
    }

    const fn when(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A run under the policy, and under the one that it is compared with.
#[derive(Clone, Copy)]
struct Seen<'a> {
    ours: &'a Outcome,
    theirs: Option<&'a Outcome>,
    ties: TieRule,
}

impl Seen<'_> {
    /// Whether it is killed, falsely or in doubt, where the order at one instant does not spare it.
    fn killed(self, run: &Outcome) -> Hit {
        match run.fate {
            _ if run.tied && self.ties == TieRule::EventFirst => Hit::No,
            Fate::FalseKill(_) => Hit::Yes,
            Fate::UnresolvedKill(_) => Hit::Unclear,
            _ => Hit::No,
        }
    }

    /// Of a run that one policy kills and the other does not, within its record.
    fn newly(self, killed: &Outcome, spared: &Outcome) -> Hit {
        if self.killed(spared) != Hit::No {
            return Hit::No;
        }
        match self.killed(killed) {
            // it lives on beyond its record, where it may be killed after all
            Hit::Yes if spared.fate == Fate::UnresolvedSurvival => Hit::Unclear,
            hit => hit,
        }
    }
}

/// Whether a run counts in the rate of `rule`; `None` when the rate is not about it.
fn hit(rule: &FigureRule, seen: Seen<'_>) -> Option<Hit> {
    let run = seen.ours;
    let by_cause = |cause| rule.cause.is_none_or(|asked| asked == cause);
    let spared = run.tied && seen.ties == TieRule::EventFirst;
    match rule.metric {
        Metric::FalseKillRate | Metric::FalseKillsPerHour => match run.fate {
            fate if fate.is_hung() => None,
            Fate::FalseKill(cause) => Some(Hit::when(by_cause(cause) && !spared)),
            Fate::UnresolvedKill(cause) if by_cause(cause) && !spared => Some(Hit::Unclear),
            Fate::UnresolvedSurvival => Some(Hit::Unclear),
            _ => Some(Hit::No),
        },
        Metric::TrueKillRate => match run.fate {
            fate if fate.is_hung() => None,
            Fate::TrueKill(_) => Some(Hit::Yes),
            Fate::UnresolvedKill(_) => Some(Hit::Unclear),
            _ => Some(Hit::No),
        },
        Metric::NewlyKilled | Metric::NewlyKilledRate => {
            (!run.fate.is_hung()).then(|| seen.theirs.map(|theirs| seen.newly(run, theirs)))?
        }
        Metric::NewlySpared | Metric::NewlySparedRate => {
            (!run.fate.is_hung()).then(|| seen.theirs.map(|theirs| seen.newly(theirs, run)))?
        }
        Metric::KillRate => Some(match run.fate {
            Fate::UnresolvedSurvival => Hit::Unclear,
            fate => Hit::when(fate.cause().is_some_and(by_cause) && !spared),
        }),
        Metric::DetectedShare | Metric::KilledEarlyShare | Metric::MissedShare => {
            let is = |fate: Fate| match rule.metric {
                Metric::DetectedShare => matches!(fate, Fate::HangDetected { .. }),
                Metric::MissedShare => matches!(fate, Fate::HangMissed { .. }),
                _ => matches!(fate, Fate::HangKilledEarly(_)),
            };
            match (rule.metric, run.fate) {
                // one that was killed before it hung was not there to be detected
                (Metric::DetectedShare, Fate::HangKilledEarly(_)) => None,
                (_, fate) => fate.is_hung().then(|| Hit::when(is(fate))),
            }
        }
        Metric::DetectionTime => {
            let bound_ms = rule.amount as u64;
            match (run.fate, rule.bound.is_upper()) {
                (Fate::HangDetected { after_ms, .. }, true) => Some(Hit::when(after_ms > bound_ms)),
                (Fate::HangDetected { after_ms, .. }, false) => {
                    Some(Hit::when(after_ms < bound_ms))
                }
                // not told by the end of its record: surely longer than that, how much is not known
                (Fate::HangMissed { silent_ms }, true) if silent_ms >= bound_ms => Some(Hit::Yes),
                (Fate::HangMissed { silent_ms }, false) if silent_ms >= bound_ms => Some(Hit::No),
                (Fate::HangMissed { .. }, _) => Some(Hit::Unclear),
                _ => None,
            }
        }
        _ => None,
    }
}

fn weight(rule: &FigureRule, run: &Outcome) -> u64 {
    match rule.metric {
        Metric::FalseKillsPerHour => run.active_ms / 1_000,
        _ => 1,
    }
}

/// The place of a key in [`StratumKey::ALL`].
fn place(key: StratumKey) -> usize {
    StratumKey::ALL
        .iter()
        .position(|known| *known == key)
        .unwrap_or_default()
}

/// Every run, beside itself under the other policy.
fn seen<'a>(
    outcomes: &'a Outcomes,
    other: Option<&'a Outcomes>,
    ties: TieRule,
) -> impl Iterator<Item = Seen<'a>> {
    outcomes
        .runs
        .iter()
        .enumerate()
        .map(move |(place, ours)| Seen {
            ours,
            theirs: other.and_then(|other| other.runs.get(place)),
            ties,
        })
}

/// The counts of `rule` by independent unit: days or sessions, or one of all runs.
pub(super) fn by_unit(
    rule: &FigureRule,
    outcomes: &Outcomes,
    other: Option<&Outcomes>,
    ties: TieRule,
) -> Vec<RunCounts> {
    let mut units: BTreeMap<i64, RunCounts> = BTreeMap::new();
    for seen in seen(outcomes, other, ties) {
        let run = seen.ours;
        if let Scope::One(key, name) = &rule.scope {
            let at = place(*key);
            let group = outcomes.groups[at].get(run.strata[at] as usize);
            if group != Some(name) {
                continue;
            }
        }
        let Some(hit) = hit(rule, seen) else {
            continue;
        };
        let unit = match rule.cluster {
            Cluster::Day => run.day,
            Cluster::Run => 0,
            Cluster::Session => i64::from(run.session),
        };
        let counts = units.entry(unit).or_default();
        *counts = counts.plus(hit.counts(weight(rule, run)));
    }
    units.into_values().collect()
}

/// The counts of `rule` in each group of `key`, by name; groups without a run that the rate is about are left out.
pub(super) fn by_group(
    rule: &FigureRule,
    key: StratumKey,
    outcomes: &Outcomes,
    other: Option<&Outcomes>,
    ties: TieRule,
) -> Vec<(String, RunCounts)> {
    let at = place(key);
    let mut groups: BTreeMap<&str, RunCounts> = BTreeMap::new();
    for seen in seen(outcomes, other, ties) {
        let run = seen.ours;
        let Some(hit) = hit(rule, seen) else {
            continue;
        };
        let name = &outcomes.groups[at][run.strata[at] as usize];
        let counts = groups.entry(name).or_default();
        *counts = counts.plus(hit.counts(weight(rule, run)));
    }
    groups
        .into_iter()
        .map(|(name, counts)| (name.to_owned(), counts))
        .collect()
}

/// Silences beyond the bound of `rule`, by session, or one by one where they are taken as independent. A cut one is
/// longer than it was seen to be.
pub(super) fn of_silences(rule: &FigureRule, silences: &Silences) -> Vec<RunCounts> {
    let bound_ms = rule.amount as u64;
    let upper = rule.bound != Bound::Min;
    let sessions = silences.sessions().into_iter().map(|gaps| {
        gaps.iter().fold(RunCounts::default(), |counts, gap| {
            let hit = match (gap.observed, upper) {
                (true, true) => Hit::when(gap.ms > bound_ms),
                (true, false) => Hit::when(gap.ms < bound_ms),
                (false, _) if gap.ms < bound_ms => Hit::Unclear,
                (false, upper) => Hit::when(upper),
            };
            counts.plus(hit.counts(1))
        })
    });
    if rule.cluster == Cluster::Run {
        vec![sessions.fold(RunCounts::default(), RunCounts::plus)]
    } else {
        sessions.collect()
    }
}
