//! A sweep the long way: every run replayed under every candidate.

use std::collections::BTreeMap;
use std::sync::Arc;

use policysim_sim::judgement::Judgement;
use policysim_sim::ledger::ledger;
use policysim_sim::replay::{Replayed, hang_onset_ms, replay};
use policysim_sim::run::{Fleet, RecordedEnd, Run};
use policysim_sim::stats::choice::Half;
use policysim_sim::sweep::{Candidate, Grouping, event_first, settling_lag, sized_runs};
use policysim_sim::tally::{CellCounts, Part, Tally};

fn wrongly_killed(replayed: &Replayed) -> bool {
    replayed.is_kill() && replayed.judgement != Judgement::TrueKill
}

fn tally(replayed: &Replayed) -> Tally {
    let mut tally = Tally {
        runs: 1,
        ..Tally::default()
    };
    match (replayed.is_kill(), replayed.judgement) {
        (true, Judgement::FalseKill) => tally.false_kills = 1,
        (true, Judgement::TrueKill) => {}
        (true, _) => tally.unresolved_kills = 1,
        (false, Judgement::Unresolved) => tally.unresolved_survivals = 1,
        (false, _) => {}
    }
    tally
}

fn add(sum: &mut Tally, tally: &Tally) {
    sum.runs += tally.runs;
    sum.false_kills += tally.false_kills;
    sum.unresolved_kills += tally.unresolved_kills;
    sum.unresolved_survivals += tally.unresolved_survivals;
    sum.ties += tally.ties;
}

fn parts(cell: &mut CellCounts, certifies: bool) -> impl Iterator<Item = &mut Part> {
    std::iter::once(&mut cell.all).chain(certifies.then_some(&mut cell.certify))
}

/// The cells of a sweep, each by replays of its own.
pub(crate) fn sweep(
    fleet: &Fleet,
    candidates: &[Candidate],
    grouping: Grouping<'_>,
) -> Vec<CellCounts> {
    let groups = grouping.strata.groups().len();
    candidates
        .iter()
        .map(|candidate| {
            let part = || Part {
                strata: vec![Tally::default(); groups].into(),
                ..Part::default()
            };
            let mut cell = CellCounts {
                all: part(),
                certify: part(),
                ..CellCounts::default()
            };
            let mut detections_ms = Vec::new();
            for (index, run) in sized_runs(fleet).enumerate() {
                let of_base = replay(grouping.base, run, &fleet.symbols);
                let certifies = grouping.halves.get(index) != Some(&Half::Select);
                let groups = grouping.strata.of_run(index);
                let base_kills = wrongly_killed(&of_base);
                count(
                    (&mut cell, &mut detections_ms),
                    fleet,
                    candidate,
                    run,
                    groups,
                    (certifies, grouping.cluster.unit(run)),
                    base_kills,
                );
            }
            cell.detections = detections_ms.into_iter().collect();
            cell
        })
        .collect()
}

fn count(
    (cell, detections_ms): (&mut CellCounts, &mut Vec<u64>),
    fleet: &Fleet,
    candidate: &Candidate,
    run: &Run,
    groups: &[usize],
    (certifies, unit): (bool, i64),
    base_kills: bool,
) {
    let policy = &candidate.policy;
    let replayed = replay(policy, run, &fleet.symbols);
    let killed = replayed.is_kill();
    let at_ms = replayed.verdict.at.as_u64();
    if killed {
        cell.kills[replayed.verdict.cause as usize] += 1;
    }
    if run.end == RecordedEnd::Hung {
        let onset_ms = hang_onset_ms(run);
        let lost_ms = if !killed {
            cell.hung_missed += 1;
            run.end_ms.saturating_sub(onset_ms)
        } else if at_ms < onset_ms {
            cell.hung_killed_early += 1;
            0
        } else {
            detections_ms.push(at_ms - onset_ms);
            at_ms + settling_lag(policy).as_u64() - onset_ms
        };
        for part in parts(cell, certifies) {
            part.hung += 1;
            part.slot_lost_ms += u128::from(lost_ms);
        }
        return;
    }
    let mut tally = tally(&replayed);
    let tied = run.events.get(replayed.unseen).map(|event| event.t_ms) == Some(at_ms);
    if killed && tied && tally.worst_kills() > 0 {
        let later = replay(&event_first(policy), run, &fleet.symbols);
        tally.ties = u64::from(self::tally(&later).worst_kills() == 0);
    }
    cell.true_kills += u64::from(killed && replayed.judgement == Judgement::TrueKill);
    let wrongly = wrongly_killed(&replayed);
    cell.against_base.runs += 1;
    cell.against_base.only_first += u64::from(base_kills && !wrongly);
    cell.against_base.only_second += u64::from(wrongly && !base_kills);
    let work_ms = if tally.worst_kills() > 0 {
        let until_ms = if killed { at_ms } else { run.end_ms };
        u128::from(ledger(run, until_ms).active_ms())
    } else {
        0
    };
    let by_unit = Tally { runs: 0, ..tally };
    for part in parts(cell, certifies) {
        add(&mut part.tally, &tally);
        for &group in groups {
            add(&mut Arc::make_mut(&mut part.strata)[group], &tally);
        }
        if tally.false_kills > 0 {
            part.work_lost_ms += work_ms;
        } else {
            part.doubtful_work_ms += work_ms;
        }
        if by_unit != Tally::default() {
            let mut units: BTreeMap<i64, Tally> = part.units.iter().copied().collect();
            add(units.entry(unit).or_default(), &by_unit);
            part.units = units.into_iter().collect();
        }
    }
}
