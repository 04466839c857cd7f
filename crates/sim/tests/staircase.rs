//! What follows from one pass under no numbers is what a replay under the numbers says: verdict, cause and millisecond
//! of random runs under random policies, and every count of a sweep.
#![allow(clippy::unwrap_used)]

#[path = "common/direct.rs"]
mod direct;
#[path = "common/random.rs"]
mod random;

use policysim_policy::{Cause, Millis, Policy, presets};
use policysim_sim::certify::Evidence;
use policysim_sim::cluster::Cluster;
use policysim_sim::ledger::ledger;
use policysim_sim::readings;
use policysim_sim::replay::replay;
use policysim_sim::run::{Fleet, Symbols};
use policysim_sim::scan::{Batch, InMemory, RunView, Scan};
use policysim_sim::staircase::{Answer, Crossings, Structure, shape};
use policysim_sim::stats::choice::Half;
use policysim_sim::strata::{Strata, StratumKey};
use policysim_sim::summary::{Summary, summarise};
use policysim_sim::sweep::{Candidate, Grouping, Question, halves, sized_runs, sweep, sweep_scan};
use policysim_sim::verify::verify;
use random::Draw;

/// `PROPTEST_CASES` draws more, or fewer.
fn cases(usual: u64) -> u64 {
    let given = std::env::var("PROPTEST_CASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Answers and replays of `policies` over `view`; how many of them were answered without a replay.
fn compare(policies: &[Policy], view: &RunView<'_>, symbols: &Symbols, seed: u64) -> (u64, u64) {
    let mut structure: Option<Structure> = None;
    for policy in policies {
        if let Some(shape) = shape(policy) {
            structure
                .get_or_insert_with(|| Structure::new(shape))
                .admit(policy);
        }
    }
    let Some(structure) = structure else {
        return (0, 0);
    };
    let mut found = Crossings::default();
    structure.read(view, symbols, &mut found, |_| {}, |_| {});
    let run = view.to_run();
    let (mut answered, mut all) = (0, 0);
    for policy in policies.iter().filter(|policy| shape(policy).is_some()) {
        assert_eq!(shape(policy).as_ref(), Some(structure.shape()));
        let replayed = replay(policy, &run, symbols);
        let direct = (replayed.verdict.cause, replayed.verdict.at.as_u64());
        all += 1;
        let answer = structure.answer(&found, policy, policy.idle.window, &run.role);
        let told = match answer {
            Answer::NeedsReplay => continue,
            Answer::Survives => found.end(),
            Answer::Ends(crossing) => {
                let times = view.t_ms();
                let unseen = crossing
                    .unseen
                    .unwrap_or_else(|| times.partition_point(|&t_ms| t_ms < crossing.at_ms));
                assert_eq!(
                    unseen, replayed.unseen,
                    "seed {seed}: {policy:#?}\n{found:#?}\n{run:#?}"
                );
                (crossing.cause, crossing.at_ms)
            }
        };
        answered += 1;
        assert_eq!(
            told, direct,
            "seed {seed}: {policy:#?}\n{found:#?}\n{run:#?}"
        );
    }
    (answered, all)
}

#[test]
fn one_pass_answers_every_number() {
    let (mut answered, mut all) = (0, 0);
    for seed in 0..cases(3000) {
        let mut draw = Draw::new(seed);
        let shape = random::shaped(&mut draw);
        let policies: Vec<Policy> = (0..12)
            .map(|_| random::numbered(&mut draw, &shape))
            .collect();
        let fleet = random::fleet(&mut draw, 3);
        let source = InMemory::new(&fleet);
        let mut scratch = Batch::default();
        for view in source.read(0, &mut scratch).unwrap().runs() {
            let (some, asked) = compare(&policies, &view, &fleet.symbols, seed);
            answered += some;
            all += asked;
        }
    }
    assert!(
        answered * 100 >= all * 95,
        "{answered} of {all} answered without a replay"
    );
}

/// Candidates of a random sweep: a few shapes, each with several numbers, and a row of windows.
fn candidates(draw: &mut Draw) -> Vec<Candidate> {
    let mut policies = Vec::new();
    for _ in 0..=draw.below(3) {
        let shape = random::shaped(draw);
        for _ in 0..=draw.below(4) {
            let policy = random::numbered(draw, &shape);
            for _ in 0..=draw.below(5) {
                let mut policy = policy.clone();
                policy.idle.window = draw.limit(14);
                policies.push(policy);
            }
        }
    }
    let candidate = |policy| Candidate {
        policy,
        settings: Vec::new(),
    };
    policies.into_iter().map(candidate).collect()
}

fn check(fleet: &Fleet, candidates: &[Candidate], base: &Policy, halves: &[Half], about: &str) {
    let strata = Strata::new(fleet, &[StratumKey::Harness, StratumKey::Model]);
    let grouping = Grouping {
        base,
        strata: &strata,
        halves,
        cluster: Cluster::ALL[candidates.len() % 3],
    };
    let told = sweep(fleet, candidates, grouping, &|_| {});
    let direct = direct::sweep(fleet, candidates, grouping);
    for ((told, direct), candidate) in told.iter().zip(&direct).zip(candidates) {
        assert!(
            told == direct,
            "{about}: {:?}\n{told:#?}\n{direct:#?}",
            candidate.policy
        );
    }
}

#[test]
fn cells_are_those_of_replays() {
    for seed in 0..cases(400) {
        let mut draw = Draw::new(seed ^ 0xface);
        let candidates = candidates(&mut draw);
        let fleet = random::fleet(&mut draw, 24);
        let base = draw.of(&candidates).policy;
        let halves = if draw.one_in(2) {
            halves(&fleet, seed)
        } else {
            Vec::new()
        };
        check(&fleet, &candidates, &base, &halves, &format!("seed {seed}"));
    }
}

/// What a scan counts beside the cells is what is read from the runs one after the other.
#[test]
fn readings_are_those_of_single_runs() {
    for seed in 0..cases(200) {
        let mut draw = Draw::new(seed ^ 0x6a95);
        let candidates = candidates(&mut draw);
        let fleet = random::fleet(&mut draw, 30);
        let base = &candidates[0].policy;
        let cluster = draw.of(&Cluster::ALL);
        let question = Question {
            base,
            candidates: &candidates,
            keys: &[],
            seed,
            cluster,
        };
        let swept = sweep_scan(&InMemory::new(&fleet), &question, &|_| {}).unwrap();
        let active: u128 = sized_runs(&fleet)
            .map(|run| u128::from(ledger(run, run.end_ms).active_ms()))
            .sum();
        assert_eq!(swept.partial().active_ms(), active);
        let evidence = Evidence::new(&fleet, cluster, candidates.len(), Some(0.3), seed);
        let counted = swept.evidence(Some(0.3));
        assert_eq!(counted.protection, evidence.protection);
        assert_eq!(
            (counted.units, counted.certify_units),
            (evidence.units, evidence.certify_units)
        );
        let one_by_one = readings::recorded(&fleet, base, None);
        let counted = swept.recorded(None);
        assert_eq!(
            (counted.limit, counted.kills, counted.truncation),
            (one_by_one.limit, one_by_one.kills, one_by_one.truncation)
        );
        let window = Millis::new(1 + draw.below(9));
        assert_eq!(
            counted.abort_envelope(window),
            one_by_one.abort_envelope(window)
        );
        let one_by_one = readings::detectors(&fleet, &candidates);
        for (counted, read) in swept.detectors(&candidates).iter().zip(&one_by_one) {
            assert_eq!(
                counted.map(|found| found.qos),
                read.map(|found| found.qos),
                "seed {seed}"
            );
            let [counted, read] =
                [counted, read].map(|found| found.and_then(|found| found.compounding));
            assert_eq!(
                counted.map(|found| found.observed),
                read.map(|found| found.observed)
            );
            if let (Some(counted), Some(read)) = (counted, read) {
                assert!((counted.compounded - read.compounded).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn cells_of_every_preset_are_those_of_replays() {
    for preset in presets::PRESETS {
        let mut draw = Draw::new(preset.name.len() as u64);
        // some runs of milliseconds, the presets' own limits being minutes: theirs scaled down
        let fleet = random::fleet(&mut draw, 60);
        let base = scaled(&preset.policy());
        let mut candidates = Vec::new();
        for window in [None, Some(1), Some(2), Some(3), Some(5), Some(8), Some(13)] {
            for budget in [None, Some(9), Some(30)] {
                for cap in [None, Some(1), Some(3)] {
                    let mut policy = base.clone();
                    policy.idle.window = window.map(Millis::new);
                    policy.total.budget = budget.map(Millis::new);
                    policy.turns.cap = cap;
                    candidates.push(Candidate {
                        policy,
                        settings: Vec::new(),
                    });
                }
            }
        }
        check(&fleet, &candidates, &base, &[], preset.name);
        assert!(sized_runs(&fleet).count() > 40);
    }
}

/// A preset with its limits a few milliseconds long.
fn scaled(policy: &Policy) -> Policy {
    use policysim_policy::{First, Poll};
    let mut p = policy.clone();
    let set = |limit: &mut Option<Millis>, ms: u64| *limit = limit.map(|_| Millis::new(ms));
    set(&mut p.idle.window, 3);
    set(&mut p.idle.ceiling, 5);
    set(&mut p.idle.throttle, 2);
    set(&mut p.total.budget, 27);
    if let First::After(first) = &mut p.idle.first {
        *first = Millis::new(7);
    }
    if let Poll::Every(period) = &mut p.detect.poll {
        *period = Millis::new(2);
    }
    p
}

/// A summary, written and read again, gives the cells of the events, for the numbers it was made for and others.
#[test]
fn summaries_answer_as_events_do() {
    let (mut answered, mut all) = (0, 0);
    for seed in 0..cases(300) {
        let mut draw = Draw::new(seed ^ 0xbeef);
        let mut read = candidates(&mut draw);
        for candidate in &mut read {
            // spare and adaptive windows need the events
            candidate.policy.idle.grace_cycles = 0;
            candidate.policy.idle.adaptive = None;
        }
        let fleet = random::fleet(&mut draw, 24);
        let source = InMemory::new(&fleet);
        let keys = [StratumKey::Role];
        let question = |candidates| Question {
            base: &read[0].policy,
            candidates,
            keys: &keys,
            seed,
            cluster: Cluster::Session,
        };
        let summary = summarise(&source, &question(&read)).unwrap();
        let again = Summary::from_bytes(b"", &summary.to_bytes(b"")).unwrap();
        assert_eq!(again, summary, "seed {seed}");
        let mut later = read.clone();
        for candidate in &mut later {
            let policy = &mut candidate.policy;
            for limit in [&mut policy.idle.window, &mut policy.total.budget] {
                *limit = limit.map(|limit| limit.plus(Millis::new(draw.below(4))));
            }
        }
        for candidates in [&read, &later] {
            all += 1;
            let Ok(told) = again.sweep(&question(candidates)) else {
                continue;
            };
            answered += 1;
            let direct = sweep_scan(&source, &question(candidates), &|_| {}).unwrap();
            assert!(told.cells(true) == direct.cells(true), "seed {seed}");
        }
    }
    assert!(answered * 3 > all * 2, "{answered} of {all} answered");
}

/// Any byte that is changed or cut off is noticed.
#[test]
fn a_damaged_summary_is_refused() {
    let mut draw = Draw::new(3);
    let fleet = random::fleet(&mut draw, 3);
    let base = presets::find("pi-desktop-0129").unwrap();
    let question = Question {
        base: &base,
        candidates: &[],
        keys: &[],
        seed: 0,
        cluster: Cluster::Day,
    };
    let head = b"runs of three\n";
    let bytes = summarise(&InMemory::new(&fleet), &question)
        .unwrap()
        .to_bytes(head);
    assert!(Summary::from_bytes(head, &bytes).is_ok());
    for at in 0..head.len() {
        let mut changed = *head;
        changed[at] ^= 1;
        assert!(Summary::from_bytes(&changed, &bytes).is_err(), "head {at}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(Summary::from_bytes(head, &changed).is_err(), "byte {at}");
        assert!(
            Summary::from_bytes(head, &bytes[..at]).is_err(),
            "cut at {at}"
        );
    }
}

/// Any split of the runs, merged in any order, gives the same cells and the same summary.
#[test]
fn parts_add_up_in_any_order() {
    for seed in 0..cases(40) {
        let mut draw = Draw::new(seed ^ 0xadd);
        let candidates = candidates(&mut draw);
        let fleet = random::fleet(&mut draw, 40);
        let question = Question {
            base: &candidates[0].policy,
            candidates: &candidates,
            keys: &[StratumKey::Model, StratumKey::Role],
            seed,
            cluster: Cluster::Session,
        };
        let whole = sweep_scan(&InMemory::new(&fleet), &question, &|_| {}).unwrap();
        let summary = summarise(&InMemory::new(&fleet), &question)
            .unwrap()
            .to_bytes(b"");
        let mut parts: Vec<Fleet> = (0..=draw.below(6)).map(|_| Fleet::default()).collect();
        for run in &fleet.runs {
            let part = draw.below(parts.len() as u64) as usize;
            parts[part].runs.push(run.clone());
        }
        for part in &mut parts {
            part.symbols = fleet.symbols.clone();
        }
        let mut swept: Vec<_> = parts
            .iter()
            .map(|part| sweep_scan(&InMemory::new(part), &question, &|_| {}).unwrap())
            .collect();
        let mut read: Vec<_> = parts
            .iter()
            .map(|part| summarise(&InMemory::new(part), &question).unwrap())
            .collect();
        // two at random become one, until one is left
        while swept.len() > 1 {
            let one = draw.below(swept.len() as u64) as usize;
            let (left, read_left) = (swept.swap_remove(one), read.swap_remove(one));
            let other = draw.below(swept.len() as u64) as usize;
            let (right, read_right) = (swept.swap_remove(other), read.swap_remove(other));
            swept.push(left.merge(right));
            read.push(read_left.merge(read_right).unwrap());
        }
        let merged = swept.pop().unwrap();
        assert_eq!(merged.partial().groups(), whole.partial().groups());
        assert!(merged.cells(true) == whole.cells(true), "seed {seed}");
        assert!(read.pop().unwrap().to_bytes(b"") == summary, "seed {seed}");
    }
}

/// The pairs that `sweep --verify` draws, over every preset.
#[test]
fn drawn_pairs_are_answered_as_replays_do() {
    let mut verified = 0;
    for preset in presets::PRESETS {
        let mut draw = Draw::new(preset.name.len() as u64 + 99);
        let fleet = random::fleet(&mut draw, 200);
        let base = scaled(&preset.policy());
        let candidates: Vec<Candidate> = (1..20)
            .map(|ms| {
                let mut policy = base.clone();
                policy.idle.window = Some(Millis::new(ms));
                Candidate {
                    policy,
                    settings: Vec::new(),
                }
            })
            .collect();
        let question = Question {
            base: &base,
            candidates: &candidates,
            keys: &[],
            seed: 0,
            cluster: Cluster::Day,
        };
        let found = verify(&InMemory::new(&fleet), &question, 1000, 0).unwrap();
        assert_eq!(found.pairs, 1000, "{}", preset.name);
        assert!(found.answered > 500, "{}: {found:?}", preset.name);
        verified += found.answered;
    }
    assert!(verified > 10_000);
}

#[test]
fn threads_do_not_change_a_cell() {
    let mut draw = Draw::new(7);
    // several batches
    let fleet = random::fleet(&mut draw, 2500);
    let candidates = candidates(&mut draw);
    let base = candidates[0].policy.clone();
    let strata = Strata::new(&fleet, &[StratumKey::Role]);
    let grouping = Grouping {
        base: &base,
        strata: &strata,
        halves: &[],
        cluster: Cluster::Session,
    };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| sweep(&fleet, &candidates, grouping, &|_| {}))
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(4));
    assert!(
        one.iter()
            .any(|cell| cell.kills[Cause::IdleTimeout as usize] > 0)
    );
}
