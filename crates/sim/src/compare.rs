//! A candidate against the policy in force, run by run: who is newly killed, who is spared, and what was open.

use std::collections::BTreeMap;

use policysim_policy::{Phase, Policy};
use rayon::prelude::*;

use crate::choose::{compare as paired_difference, differs_in_window_only};
use crate::judgement::{Judgement, KillClass};
use crate::ledger::ledger;
use crate::replay::{Replayed, kill_class, replay};
use crate::run::{Fleet, RecordedEnd, Run};
use crate::stats::paired::{Discordant, PairedDifference};
use crate::sweep::sized_runs;

/// Killed, and the record does not say that this was right.
fn wrongly_killed(replayed: &Replayed) -> bool {
    replayed.is_kill() && replayed.judgement != Judgement::TrueKill
}

/// Runs on which two policies disagree, with the exact figures of the pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// Runs, those killed falsely or in doubt by the current policy only (newly spared) and by the candidate only
    /// (newly killed).
    pub counts: Discordant,
    /// Current minus candidate, per run.
    pub difference: PairedDifference,
}

impl Pairs {
    fn new(counts: Discordant, nested: bool) -> Self {
        let one_sided = counts.only_first == 0 || counts.only_second == 0;
        Self {
            counts,
            difference: paired_difference(counts, nested && one_sided),
        }
    }
}

/// What two policies make of the runs that the record labels as hung.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HungPairs {
    /// Killed by both.
    pub both: u64,
    /// Killed by the current policy only.
    pub current_only: u64,
    /// Killed by the candidate only.
    pub candidate_only: u64,
    /// Killed by neither within the record.
    pub neither: u64,
}

/// Two policies over the same runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Over all runs not labelled as hung.
    pub all: Pairs,
    /// Killed falsely or in doubt by both.
    pub killed_by_both: u64,
    /// By what the run was in at the firing of the policy that kills it: a run counts in one phase.
    pub by_phase: Vec<(Phase, Pairs)>,
    /// The policies differ in nothing but the idle window: the sign of the difference is known beforehand.
    pub nested: bool,
    /// The runs labelled as hung.
    pub hung: HungPairs,
}

/// Replays every sized run of `fleet` under both policies.
pub fn compare(fleet: &Fleet, current: &Policy, candidate: &Policy) -> Comparison {
    let runs: Vec<&Run> = sized_runs(fleet).collect();
    let replayed: Vec<(Replayed, Replayed)> = runs
        .par_iter()
        .map(|run| {
            (
                replay(current, run, &fleet.symbols),
                replay(candidate, run, &fleet.symbols),
            )
        })
        .collect();
    let nested = differs_in_window_only(candidate, current);
    let mut all = Discordant::default();
    let mut by_phase: BTreeMap<Phase, Discordant> = BTreeMap::new();
    let (mut killed_by_both, mut hung) = (0, HungPairs::default());
    for (run, (before, after)) in runs.iter().zip(&replayed) {
        if run.end == RecordedEnd::Hung {
            match (before.is_kill(), after.is_kill()) {
                (true, true) => hung.both += 1,
                (true, false) => hung.current_only += 1,
                (false, true) => hung.candidate_only += 1,
                (false, false) => hung.neither += 1,
            }
            continue;
        }
        all.runs += 1;
        match (wrongly_killed(before), wrongly_killed(after)) {
            (true, true) => killed_by_both += 1,
            (true, false) => {
                all.only_first += 1;
                by_phase.entry(before.verdict.phase).or_default().only_first += 1;
            }
            (false, true) => {
                all.only_second += 1;
                by_phase.entry(after.verdict.phase).or_default().only_second += 1;
            }
            (false, false) => {}
        }
    }
    Comparison {
        all: Pairs::new(all, nested),
        killed_by_both,
        by_phase: by_phase
            .into_iter()
            .map(|(phase, counts)| {
                let counts = Discordant {
                    runs: all.runs,
                    ..counts
                };
                (phase, Pairs::new(counts, nested))
            })
            .collect(),
        nested,
        hung,
    }
}

/// The false kill of `policy` that throws most work away, as the index of its run and the active time lost, ms;
/// `None` when it kills no run falsely. Kills for silence go before kills for length, of equal ones the first.
pub fn most_expensive_false_kill(fleet: &Fleet, policy: &Policy) -> Option<(usize, u64)> {
    let lost: Vec<Option<(bool, u64)>> = fleet
        .runs
        .par_iter()
        .map(|run| {
            if run.status != crate::run::RunStatus::Run || run.end == RecordedEnd::Hung {
                return None;
            }
            let replayed = replay(policy, run, &fleet.symbols);
            (replayed.is_kill() && replayed.judgement == Judgement::FalseKill).then(|| {
                let silence = kill_class(replayed.verdict.cause) == Some(KillClass::Silence);
                (
                    silence,
                    ledger(run, replayed.verdict.at.as_u64()).active_ms(),
                )
            })
        })
        .collect();
    lost.into_iter()
        .enumerate()
        .filter_map(|(index, lost)| Some((index, lost?)))
        .max_by_key(|&(index, lost)| (lost, std::cmp::Reverse(index)))
        .map(|(index, (_, lost_ms))| (index, lost_ms))
}
