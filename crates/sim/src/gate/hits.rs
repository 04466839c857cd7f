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

/// Whether a run counts in the rate of `rule`; `None` when the rate is not about it.
fn hit(rule: &FigureRule, run: &Outcome, ties: TieRule) -> Option<Hit> {
    let by_cause = |cause| rule.cause.is_none_or(|asked| asked == cause);
    let spared = run.tied && ties == TieRule::EventFirst;
    match rule.metric {
        Metric::FalseKillRate | Metric::FalseKillsPerHour => match run.fate {
            fate if fate.is_hung() => None,
            Fate::FalseKill(cause) => Some(Hit::when(by_cause(cause) && !spared)),
            Fate::UnresolvedKill(cause) if by_cause(cause) && !spared => Some(Hit::Unclear),
            Fate::UnresolvedSurvival => Some(Hit::Unclear),
            _ => Some(Hit::No),
        },
        Metric::KillRate => Some(match run.fate {
            Fate::UnresolvedSurvival => Hit::Unclear,
            fate => Hit::when(fate.cause().is_some_and(by_cause) && !spared),
        }),
        Metric::DetectedShare => match run.fate {
            Fate::HangDetected { .. } => Some(Hit::Yes),
            Fate::HangMissed { .. } => Some(Hit::No),
            _ => None,
        },
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

/// The counts of `rule` by independent unit: days or sessions, or one of all runs.
pub(super) fn by_unit(rule: &FigureRule, outcomes: &Outcomes, ties: TieRule) -> Vec<RunCounts> {
    let mut units: BTreeMap<i64, RunCounts> = BTreeMap::new();
    for run in &outcomes.runs {
        if let Scope::One(key, name) = &rule.scope {
            let at = place(*key);
            let group = outcomes.groups[at].get(run.strata[at] as usize);
            if group != Some(name) {
                continue;
            }
        }
        let Some(hit) = hit(rule, run, ties) else {
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
    ties: TieRule,
) -> Vec<(String, RunCounts)> {
    let at = place(key);
    let mut groups: BTreeMap<&str, RunCounts> = BTreeMap::new();
    for run in &outcomes.runs {
        let Some(hit) = hit(rule, run, ties) else {
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
