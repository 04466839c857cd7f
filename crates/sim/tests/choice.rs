//! The choice among candidates: halves that stay, sequences without holes, verdicts that do not move with order.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use policysim_policy::document::Value;
use policysim_policy::{Millis, Policy, presets};
use policysim_sim::certify::{Evidence, Judge, Plan, Protection, Tested, TieRule, Verdict, test};
use policysim_sim::cluster::Cluster;
use policysim_sim::run::{Fleet, Run};
use policysim_sim::stats::choice::Half;
use policysim_sim::stats::verdict::Decision;
use policysim_sim::stats::{Level, rates};
use policysim_sim::sweep::{Axis, Candidate, candidates, event_first, halves};
use policysim_sim::tally::{Part, Tally};
use proptest::prelude::*;

fn fleet(sessions: impl IntoIterator<Item = (String, u32)>) -> Fleet {
    let mut fleet = Fleet::default();
    for (session, runs) in sessions {
        for number in 0..runs {
            fleet.runs.push(Run {
                name: Arc::from(format!("{session}#{number}")),
                session: Arc::from(session.as_str()),
                ..Run::default()
            });
        }
    }
    fleet
}

fn grid(windows: &[&str], totals: &[&str]) -> Vec<Candidate> {
    let axis = |key: &str, values: &[&str]| Axis {
        key: key.to_owned(),
        values: values.iter().map(|text| Value::text(*text)).collect(),
    };
    let base = presets::find("pi-desktop-0129").unwrap();
    let axes = [axis("idle.window", windows), axis("total.budget", totals)];
    candidates(&base, &axes).unwrap()
}

proptest! {
    #[test]
    fn adding_a_session_never_moves_another(
        names in prop::collection::btree_set("[a-z]{1,6}", 2..30),
        added in "[A-Z]{1,6}",
        at in 0_usize..30,
        seed in any::<u64>(),
    ) {
        let sessions: Vec<(String, u32)> = names.into_iter().map(|name| (name, 2)).collect();
        let of = |sessions: &[(String, u32)]| -> BTreeMap<Arc<str>, Half> {
            let fleet = fleet(sessions.to_vec());
            let halves = halves(&fleet, seed);
            let names = fleet.runs.iter().map(|run| Arc::clone(&run.name));
            names.zip(halves).collect()
        };
        let before = of(&sessions);
        let mut more = sessions.clone();
        more.insert(at.min(more.len()), (added, 3));
        let after = of(&more);
        for (name, half) in &before {
            prop_assert_eq!(after[name], *half);
        }
        // Runs of one session share its half.
        for (session, _) in &sessions {
            let key = |number: u32| Arc::<str>::from(format!("{session}#{number}"));
            prop_assert_eq!(before[&key(0)], before[&key(1)]);
        }
    }

    #[test]
    fn certified_windows_are_the_largest_without_a_hole(
        certified in prop::collection::vec(any::<bool>(), 12),
        selected in prop::option::of(0_usize..3),
    ) {
        let cells = grid(&["60s", "off", "300s", "120s"], &["1h", "6h", "off"]);
        let plan = Plan::new(&cells);
        let mut asked = vec![0; cells.len()];
        let tests = test(&plan, cells.len(), selected, |index, level| {
            asked[index] += 1;
            // all sequences share the error, a selected one has it alone
            assert_eq!(level, Level::P95.shared(if selected.is_some() { 1 } else { 3 }).unwrap());
            certified[index]
        });
        prop_assert!(asked.iter().all(|&times| times <= 1));
        for (number, sequence) in plan.sequences().iter().enumerate() {
            let tested = selected.is_none_or(|selected| selected == number);
            let shown = sequence.iter().take_while(|&&index| certified[index]).count();
            for (place, &index) in sequence.iter().enumerate() {
                let expected = match place {
                    _ if !tested => Tested::NotSelected,
                    _ if place < shown => Tested::Certified,
                    _ if place == shown => Tested::Failed,
                    _ => Tested::NotReached { stopped_at: sequence[shown] },
                };
                prop_assert_eq!(tests.cells[index], expected);
            }
            let smallest = (tested && shown > 0).then(|| sequence[shown - 1]);
            prop_assert_eq!(tests.smallest[number], smallest);
        }
    }

    #[test]
    fn more_kills_never_pass_where_fewer_do_not(runs in 1_u64..5_000, kills in 0_u64..40, more in 0_u64..10) {
        let days = BTreeMap::from([(0, runs)]);
        let mut judge = Judge::new(&days, 0.01, Level::P95);
        let mut verdict = |kills: u64| {
            let tally = Tally { runs, false_kills: kills.min(runs), ..Tally::default() };
            judge.verdict(&Part { tally, ..Part::default() }, TieRule::TimerFirst)
        };
        let (few, many) = (verdict(kills), verdict(kills + more));
        prop_assert!(few.decision == Decision::Pass || many.decision != Decision::Pass);
        prop_assert!(few.upper <= many.upper);
        prop_assert_eq!(few.decision == Decision::Pass, rates::certifies(kills.min(runs), runs, 0.01, Level::P95));
    }
}

#[test]
fn a_plan_walks_from_the_largest_window_down() {
    let cells = grid(&["60s", "off", "300s"], &["1h", "off"]);
    let windows: Vec<Vec<Option<Millis>>> = Plan::new(&cells)
        .sequences()
        .iter()
        .map(|sequence| {
            let window = |&index: &usize| cells[index].policy.idle.window;
            sequence.iter().map(window).collect()
        })
        .collect();
    let down = vec![
        None,
        Some(Millis::from_secs(300)),
        Some(Millis::from_secs(60)),
    ];
    assert_eq!(windows, [down.clone(), down]);
}

#[test]
fn runs_are_split_only_where_each_half_can_certify() {
    let of = |sessions: u32, candidates: usize| {
        let fleet = fleet((0..sessions).map(|n| (format!("s{n}"), 1)));
        Evidence::new(&fleet, Cluster::Day, candidates, Some(0.01), 0).protection
    };
    // twice 299 runs at least, and the halves are not exactly even
    assert_eq!(of(597, 10), Protection::FixedSequence);
    assert_eq!(of(1_000, 10), Protection::SplitAndSequence);
    assert_eq!(of(1_000, 1), Protection::OneCandidate);
    // one session of all runs cannot be split
    let fleet = fleet([("one".to_owned(), 2_000)]);
    let found = Evidence::new(&fleet, Cluster::Day, 10, Some(0.01), 0);
    assert_eq!(found.protection, Protection::FixedSequence);
    assert!(found.halves.is_empty() && found.units == found.certify_units);
}

/// Twelve kills among 60 runs, ten to a session and twenty to a day: 5, 4 and 3 in three sessions, 4 on each day.
fn bunched(cluster: Cluster) -> Verdict {
    let sessions = (0..6).map(|session| (format!("s{session}"), 10));
    let mut fleet = fleet(sessions);
    let kills = [5, 4, 3, 0, 0, 0];
    let mut units: BTreeMap<i64, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for (number, run) in fleet.runs.iter_mut().enumerate() {
        let (session, place) = (number / 10, number % 10);
        let killed = place < kills[session];
        let day = if killed {
            all.false_kills as usize / 4
        } else {
            // the days' other runs, sixteen each
            (number - all.false_kills as usize) / 16
        };
        run.started_at_ms = 86_400_000 * day as i64;
        all.runs += 1;
        all.false_kills += u64::from(killed);
        units.entry(cluster.unit(run)).or_default().false_kills += u64::from(killed);
    }
    let evidence = Evidence::new(&fleet, cluster, 1, None, 0);
    assert_eq!(evidence.units.values().sum::<u64>(), 60);
    let killing = units.into_iter().filter(|(_, tally)| tally.false_kills > 0);
    let part = Part {
        tally: all,
        units: killing.collect(),
        ..Part::default()
    };
    Judge::new(&evidence.units, 0.5, Level::P95).verdict(&part, TieRule::TimerFirst)
}

#[test]
fn the_unit_is_what_the_cluster_names() {
    let limit = |verdict: &Verdict| verdict.upper.unwrap();
    let by_run = bunched(Cluster::Run);
    assert_eq!((by_run.unit_deff, by_run.by_unit), (None, false));
    // three days of 20 runs with 4 kills each do not differ at all
    let by_day = bunched(Cluster::Day);
    assert!(by_day.unit_deff.unwrap().abs() < 1e-12 && !by_day.by_unit);
    assert!((limit(&by_day) - limit(&by_run)).abs() < 1e-12);
    // q = 0.2: residuals 3, 2, 1, -2, -2, -2, squares 26; 6/5 * 26 / 3600 over 0.2 * 0.8 / 60
    let by_session = bunched(Cluster::Session);
    assert!((by_session.unit_deff.unwrap() - 3.25).abs() < 1e-9);
    assert!(by_session.by_unit && limit(&by_session) > limit(&by_run) + 0.05);
    assert_eq!(by_session.needed, None);
}

#[test]
fn runs_without_a_session_are_sessions_of_their_own() {
    let mut fleet = fleet([("one".to_owned(), 2), (String::new(), 2)]);
    for (number, run) in fleet.runs.iter_mut().enumerate() {
        run.started_at_ms = -1 + number as i64;
    }
    let units =
        |cluster: Cluster| -> Vec<i64> { fleet.runs.iter().map(|run| cluster.unit(run)).collect() };
    let sessions = units(Cluster::Session);
    assert_eq!(sessions[0], sessions[1]);
    assert!(sessions[1] != sessions[2] && sessions[2] != sessions[3]);
    // FNV-1a (64 bits) of "one" by its published definition
    assert_eq!(sessions[0].cast_unsigned(), 0x1a08_aa19_21ca_5caf);
    assert_eq!(units(Cluster::Day), [-1, 0, 0, 0]);
    assert_eq!(units(Cluster::Run), [0; 4]);
}

#[test]
fn the_other_tie_rule_moves_windows_and_budgets_by_a_millisecond() {
    let mut policy = Policy::default();
    policy.idle.window = Some(Millis::from_secs(60));
    policy.total.budget = Some(Millis::from_secs(600));
    let later = event_first(&policy);
    assert_eq!(later.idle.window, Some(Millis::new(60_001)));
    assert_eq!(later.total.budget, Some(Millis::new(600_001)));
    let mut off = Policy::default();
    off.idle.window = None;
    assert_eq!(event_first(&off).idle.window, None);
}
