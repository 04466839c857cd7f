//! What one policy does to every run, run by run: what all figures of a gate are counted from.

use std::collections::BTreeMap;

use policysim_policy::{Cause, Policy};
use rayon::prelude::*;

use crate::cluster::{Cluster, session_key};
use crate::judgement::Judgement;
use crate::ledger::ledger;
use crate::replay::{hang_onset_ms, replay};
use crate::run::{Fleet, RecordedEnd, Run, Symbols};
use crate::strata::StratumKey;
use crate::summary::{NeedsEvents, Summary};
use crate::sweep::{Candidate, Question, day, event_first, settling_lag, sized_runs};
use crate::tally::CellCounts;

/// What the policy did to a run, as far as the record tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// A kill of a run that was alive.
    FalseKill(Cause),
    /// Of a run labelled as hung: killed after it went silent for good.
    HangDetected {
        /// What fired.
        cause: Cause,
        /// Last activity to firing, ms.
        after_ms: u64,
    },
    /// Of a run labelled as hung: killed before it hung.
    HangKilledEarly(Cause),
    /// Of a run labelled as hung: not killed within its record.
    HangMissed {
        /// Last activity to the record's end, ms.
        silent_ms: u64,
    },
    /// It lived and ended by itself.
    Lived,
    /// A kill that the record confirms: the run failed anyway.
    TrueKill(Cause),
    /// A kill of which the record cannot tell whether it was right.
    UnresolvedKill(Cause),
    /// Not killed within a record that ends before the run does.
    UnresolvedSurvival,
}

impl Fate {
    /// Whether the record labels the run as hung.
    pub const fn is_hung(self) -> bool {
        matches!(
            self,
            Self::HangDetected { .. } | Self::HangKilledEarly(_) | Self::HangMissed { .. }
        )
    }

    /// What killed it, if anything did.
    pub const fn cause(self) -> Option<Cause> {
        match self {
            Self::FalseKill(cause)
            | Self::HangDetected { cause, .. }
            | Self::HangKilledEarly(cause)
            | Self::TrueKill(cause)
            | Self::UnresolvedKill(cause) => Some(cause),
            Self::HangMissed { .. } | Self::Lived | Self::UnresolvedSurvival => None,
        }
    }
}

/// One run under one policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// What became of it.
    pub fate: Fate,
    /// A false or unresolved kill that is none if an event at the deadline comes before its timer.
    pub tied: bool,
    /// Active time up to the firing, or to the record's end of a run in doubt, ms; 0 where nothing is lost.
    pub work_ms: u64,
    /// Of a hung run, last activity to settling, ms; a missed one counts to the end of its record.
    pub slot_ms: u64,
    /// Active time over its whole record, ms.
    pub active_ms: u64,
    /// Calendar day of its start.
    pub day: i64,
    /// Number of its session.
    pub session: u32,
    /// Number of its group under each of [`StratumKey::ALL`].
    pub strata: [u32; StratumKey::ALL.len()],
}

/// Every run under one policy, in the order of the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// The runs.
    pub runs: Vec<Outcome>,
    /// Names of the groups under each of [`StratumKey::ALL`], by number.
    pub groups: [Vec<String>; StratumKey::ALL.len()],
    /// How many sessions there are.
    pub sessions: u32,
}

/// Replays every sized run of `fleet` under `policy`.
pub fn outcomes(fleet: &Fleet, policy: &Policy) -> Outcomes {
    let later = event_first(policy);
    let lag_ms = settling_lag(policy).as_u64();
    let runs: Vec<&Run> = sized_runs(fleet).collect();
    let replayed: Vec<Outcome> = runs
        .par_iter()
        .map(|run| outcome(run, policy, &later, lag_ms, &fleet.symbols))
        .collect();
    numbered(runs.into_iter().zip(replayed))
}

/// Outcomes in the order of their runs, with sessions and groups told apart by numbers.
///
/// Sessions are numbered in the order of their keys, so that resampling them does not depend on the order of runs.
fn numbered<'r>(runs: impl Iterator<Item = (&'r Run, Outcome)>) -> Outcomes {
    let runs: Vec<(&Run, Outcome)> = runs.collect();
    let mut found = Outcomes::default();
    let mut sessions: BTreeMap<&str, u32> = runs
        .iter()
        .map(|(run, _)| (&**session_key(run), 0))
        .collect();
    for (number, slot) in sessions.values_mut().enumerate() {
        *slot = number as u32;
    }
    let mut numbers: [BTreeMap<&str, u32>; StratumKey::ALL.len()] = Default::default();
    for (run, mut outcome) in runs {
        outcome.session = sessions
            .get(&**session_key(run))
            .copied()
            .unwrap_or_default();
        for ((key, numbers), number) in StratumKey::ALL
            .into_iter()
            .zip(&mut numbers)
            .zip(&mut outcome.strata)
        {
            let next = numbers.len() as u32;
            *number = *numbers.entry(key.group(run)).or_insert(next);
        }
        found.runs.push(outcome);
    }
    found.sessions = sessions.len() as u32;
    for (numbers, names) in numbers.iter().zip(&mut found.groups) {
        *names = vec![String::new(); numbers.len()];
        for (name, &number) in numbers {
            (*name).clone_into(&mut names[number as usize]);
        }
    }
    found
}

/// Every run of a summary under `policy`.
///
/// # Errors
/// When the summary does not hold what the policy is answered from.
pub fn outcomes_of_summary(summary: &Summary, policy: &Policy) -> Result<Outcomes, NeedsEvents> {
    let candidate = Candidate {
        policy: policy.clone(),
        settings: Vec::new(),
    };
    let question = Question {
        base: policy,
        candidates: std::slice::from_ref(&candidate),
        keys: &[],
        seed: 0,
        cluster: Cluster::Run,
    };
    let each = summary.each(&question)?;
    let outcomes = each
        .into_iter()
        .map(|(run, active_ms, cell)| (run, of_cell(run, active_ms, &cell)));
    Ok(numbered(outcomes))
}

/// The outcome of the one run that a cell counts.
fn of_cell(run: &Run, active_ms: u64, cell: &CellCounts) -> Outcome {
    let fired = cell.kills.iter().position(|kills| *kills > 0);
    let cause = fired.map_or(Cause::Running, |index| Cause::ALL[index]);
    let all = &cell.all;
    let lost = |ms: u128| u64::try_from(ms).unwrap_or(u64::MAX);
    let tally = &all.tally;
    let fate = if all.hung > 0 {
        let after_ms = cell.detections.counts().iter().next();
        match after_ms {
            Some((after_ms, _)) => Fate::HangDetected { cause, after_ms },
            None if cell.hung_missed > 0 => Fate::HangMissed {
                silent_ms: lost(all.slot_lost_ms),
            },
            None => Fate::HangKilledEarly(cause),
        }
    } else if tally.false_kills > 0 {
        Fate::FalseKill(cause)
    } else if tally.unresolved_kills > 0 {
        Fate::UnresolvedKill(cause)
    } else if tally.unresolved_survivals > 0 {
        Fate::UnresolvedSurvival
    } else if cell.true_kills > 0 {
        Fate::TrueKill(cause)
    } else {
        Fate::Lived
    };
    Outcome {
        fate,
        tied: tally.ties > 0,
        work_ms: lost(all.work_lost_ms + all.doubtful_work_ms),
        slot_ms: lost(all.slot_lost_ms),
        active_ms,
        day: day(run),
        session: 0,
        strata: [0; StratumKey::ALL.len()],
    }
}

fn outcome(run: &Run, policy: &Policy, later: &Policy, lag_ms: u64, symbols: &Symbols) -> Outcome {
    let replayed = replay(policy, run, symbols);
    let killed = replayed.is_kill();
    let (at_ms, cause) = (replayed.verdict.at.as_u64(), replayed.verdict.cause);
    let mut found = Outcome {
        fate: Fate::Lived,
        tied: false,
        work_ms: 0,
        slot_ms: 0,
        active_ms: ledger(run, run.end_ms).active_ms(),
        day: day(run),
        session: 0,
        strata: [0; StratumKey::ALL.len()],
    };
    if run.end == RecordedEnd::Hung {
        let onset_ms = hang_onset_ms(run);
        let silent_ms = run.end_ms.saturating_sub(onset_ms);
        (found.fate, found.slot_ms) = if !killed {
            (Fate::HangMissed { silent_ms }, silent_ms)
        } else if at_ms < onset_ms {
            (Fate::HangKilledEarly(cause), 0)
        } else {
            let after_ms = at_ms - onset_ms;
            (
                Fate::HangDetected { cause, after_ms },
                after_ms.saturating_add(lag_ms),
            )
        };
        return found;
    }
    let of = |replayed: &crate::replay::Replayed| {
        let cause = replayed.verdict.cause;
        match (replayed.is_kill(), replayed.judgement) {
            (true, Judgement::FalseKill) => Fate::FalseKill(cause),
            (true, Judgement::TrueKill) => Fate::TrueKill(cause),
            (true, _) => Fate::UnresolvedKill(cause),
            (false, Judgement::Unresolved) => Fate::UnresolvedSurvival,
            (false, _) => Fate::Lived,
        }
    };
    let in_doubt = |fate: Fate| {
        matches!(
            fate,
            Fate::FalseKill(_) | Fate::UnresolvedKill(_) | Fate::UnresolvedSurvival
        )
    };
    found.fate = of(&replayed);
    if in_doubt(found.fate) {
        let until_ms = if killed { at_ms } else { run.end_ms };
        found.work_ms = ledger(run, until_ms).active_ms();
        // Only an event at the very instant of the firing can have lost to the timer.
        let at_deadline = run.events.get(replayed.unseen).map(|event| event.t_ms) == Some(at_ms);
        found.tied = killed && at_deadline && !in_doubt(of(&replay(later, run, symbols)));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use policysim_policy::document::Value;
    use policysim_policy::presets;

    use super::*;
    use crate::scan::InMemory;
    use crate::strata::Strata;
    use crate::summary::summarise;
    use crate::sweep::{Grouping, sweep};
    use crate::synth::{Generator, Model, Options, Sampling};
    use crate::tally::Tally;

    fn summary_of(fleet: &Fleet, policy: &Policy) -> Summary {
        let candidate = Candidate {
            policy: policy.clone(),
            settings: Vec::new(),
        };
        let question = Question {
            base: policy,
            candidates: &[candidate],
            keys: &[],
            seed: 0,
            cluster: Cluster::Run,
        };
        let summary = summarise(&InMemory::new(fleet), &question).unwrap();
        Summary::from_bytes(b"", &summary.to_bytes(b"")).unwrap()
    }

    fn runs_by_group_agree(found: &Outcomes, strata: &Strata, tallies: &[Tally]) {
        for (group, (key, name)) in strata.groups().iter().enumerate() {
            let at = StratumKey::ALL
                .iter()
                .position(|known| known == key)
                .unwrap();
            let number = found.groups[at]
                .iter()
                .position(|known| known == name)
                .unwrap();
            let runs = found
                .runs
                .iter()
                .filter(|run| run.strata[at] as usize == number && !run.fate.is_hung());
            assert_eq!(runs.count() as u64, tallies[group].runs, "{name}");
        }
    }

    /// The sweep counts the same runs in another way: every total must agree.
    #[test]
    fn totals_are_those_of_a_sweep() {
        let text = include_str!("../../../../data/models/adr-0129.toml");
        let model: Model = toml::from_str(text).unwrap();
        let options = Options {
            seed: 3,
            runs: 400,
            sampling: Sampling::Stratified,
        };
        let fleet = Generator::new(&model, None, options).unwrap().fleet();
        for (idle, turns) in [
            ("60s", Value::text("off")),
            ("300s", Value::Integer(20)),
            ("off", Value::text("off")),
        ] {
            let mut policy = presets::find("pi-desktop-0129").unwrap();
            policy.set("idle", &idle.into()).unwrap();
            policy.set("turns", &turns).unwrap();
            let candidate = Candidate {
                policy: policy.clone(),
                settings: Vec::new(),
            };
            let strata = Strata::new(&fleet, &StratumKey::ALL);
            let grouping = Grouping {
                base: &policy,
                strata: &strata,
                halves: &[],
                cluster: Cluster::Run,
            };
            let cell = &sweep(&fleet, &[candidate], grouping, &|_| {})[0];
            let found = outcomes(&fleet, &policy);
            // a summary tells the same of every run, in the order of names
            let told = outcomes_of_summary(&summary_of(&fleet, &policy), &policy).unwrap();
            let mut order: Vec<(&str, &Outcome)> = sized_runs(&fleet)
                .map(|run| &*run.name)
                .zip(&found.runs)
                .collect();
            order.sort_by_key(|(name, _)| *name);
            assert_eq!(order.len(), told.runs.len());
            for ((name, replayed), told) in order.into_iter().zip(&told.runs) {
                let numbers = Outcome {
                    session: told.session,
                    strata: told.strata,
                    ..*replayed
                };
                assert_eq!(*told, numbers, "{name} under idle {idle}");
            }
            let count =
                |is: fn(&Outcome) -> bool| found.runs.iter().filter(|run| is(run)).count() as u64;
            let tally = cell.all.tally;
            assert_eq!(count(|run| !run.fate.is_hung()), tally.runs);
            assert_eq!(
                count(|run| matches!(run.fate, Fate::FalseKill(_))),
                tally.false_kills
            );
            assert_eq!(
                count(|run| matches!(run.fate, Fate::UnresolvedKill(_))),
                tally.unresolved_kills
            );
            assert_eq!(
                count(|run| run.fate == Fate::UnresolvedSurvival),
                tally.unresolved_survivals
            );
            assert_eq!(count(|run| run.tied), tally.ties);
            assert_eq!(
                count(|run| matches!(run.fate, Fate::TrueKill(_))),
                cell.true_kills
            );
            assert_eq!(
                count(|run| matches!(run.fate, Fate::HangKilledEarly(_))),
                cell.hung_killed_early
            );
            assert_eq!(
                count(|run| matches!(run.fate, Fate::HangMissed { .. })),
                cell.hung_missed
            );
            assert_eq!(count(|run| run.fate.cause().is_some()), cell.killed());
            let sum = |of: fn(&Outcome) -> u64| {
                found
                    .runs
                    .iter()
                    .map(|run| u128::from(of(run)))
                    .sum::<u128>()
            };
            assert_eq!(sum(|run| run.slot_ms), cell.all.slot_lost_ms);
            assert_eq!(
                sum(|run| run.work_ms),
                cell.all.work_lost_ms + cell.all.doubtful_work_ms
            );
            runs_by_group_agree(&found, &strata, &cell.all.strata);
        }
    }
}
