//! Settlement against closed forms and the scenarios' stated outcomes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use policysim_policy::{Kind, Millis, OnExpiry, OnTimeout, Outcome, Policy, TaskWait, presets};
use policysim_sim::certify::Evidence;
use policysim_sim::cluster::Cluster;
use policysim_sim::hang_cost::{HangTime, Options, Unaware, hang_cost};
use policysim_sim::run::{EventFlags, Fleet, RecordedEnd, Run, RunEvent};
use policysim_sim::settle::{
    Cast, Changes, Course, Habits, Happening, How, Reaction, Session, Settlement, settlement,
};
use policysim_sim::stats::bootstrap::Indices;
use policysim_sim::stats::detector::settled_in_wait;
use policysim_sim::strata::Strata;
use policysim_sim::sweep::{Candidate, Grouping, sized_runs, sweep};
use policysim_sim::tally::{CellCounts, Part, Tally};

#[path = "common/random.rs"]
mod random;

const MINUTE: u64 = 60_000;

fn event(t_ms: u64, kind: Kind) -> RunEvent {
    let mut event = RunEvent::new(t_ms, kind);
    event.flags = EventFlags::ACTIVITY;
    event
}

/// A run that streams every 30 s and then ends, or hangs after its last token.
fn run(last_token_ms: u64, end: RecordedEnd) -> Run {
    let mut events = vec![event(0, Kind::RunStart)];
    let tokens = (1..).map(|token| token * MINUTE / 2);
    events.extend(
        tokens
            .take_while(|t_ms| *t_ms < last_token_ms)
            .map(|t_ms| event(t_ms, Kind::MessageUpdate)),
    );
    if last_token_ms > 0 {
        events.push(event(last_token_ms, Kind::MessageUpdate));
    }
    if end == RecordedEnd::Completed {
        let mut over = event(last_token_ms, Kind::RunEnd);
        over.outcome = Some(Outcome::Completed);
        events.push(over);
    }
    Run {
        name: Arc::from("r"),
        end,
        end_ms: last_token_ms,
        events,
        ..Run::default()
    }
}

fn fleet(runs: Vec<Run>) -> Fleet {
    Fleet {
        runs,
        ..Fleet::default()
    }
}

/// One task per parent and no work beside: the wait begins with the run.
fn alone() -> Habits {
    Habits {
        tasks: 1,
        think: Millis::ZERO,
        ..Habits::default()
    }
}

fn policy(idle_s: u64) -> Policy {
    let mut policy = presets::find("pi-desktop-0129").unwrap();
    policy.idle.window = Some(Millis::from_secs(idle_s));
    policy
}

fn settle(policy: &Policy, fleet: &Fleet, habits: &Habits) -> Settlement {
    let cast = Cast::recorded(fleet, Changes::default(), 0);
    settlement(policy, &cast, habits, 0)
}

/// Issue 6: hangs that start with the wait settle in it, 300 s inside 600 s: 100 %.
#[test]
fn hangs_that_start_with_the_wait_settle_in_it() {
    let runs = (0..200).map(|_| run(0, RecordedEnd::Hung)).collect();
    let settled = settle(&policy(300), &fleet(runs), &alone());
    assert_eq!(settled.settled_in_wait.point, Some(1.0));
    assert_eq!(
        (settled.numbers.hangs_in_wait, settled.numbers.expiries),
        (200, 0)
    );
    assert_eq!(settled.knowledge[0].value, Some(300_000));
}

/// Issue 6: starts uniform in the wait: 50 %, exactly where they are spread evenly, else within the error.
#[test]
fn half_of_the_hangs_that_start_anywhere_in_the_wait_settle_in_it() {
    assert_eq!(settled_in_wait(300_000, 600_000), Some(0.5));
    let even = (0..2000).map(|part| run(part * 300 + 150, RecordedEnd::Hung));
    let settled = settle(&policy(300), &fleet(even.collect()), &alone());
    assert_eq!(settled.settled_in_wait.point, Some(0.5));
    assert_eq!(settled.closed_form, Some(0.5));
    // The other half settles in the next wait.
    assert_eq!(settled.known_within[1].point, Some(1.0));
    assert_eq!(settled.numbers.expiries, 1000);

    let mut starts = Indices::new(7, 0);
    let random = (0..3000).map(|_| run(starts.below(600_000), RecordedEnd::Hung));
    let settled = settle(&policy(300), &fleet(random.collect()), &alone());
    let interval = settled.settled_in_wait.interval;
    assert!(interval.lo.unwrap() < 0.5 && 0.5 < interval.up.unwrap());
}

/// ADR 0119: 600 s of silence against a wait of 600 s, whose expiry is read as a failure.
#[test]
fn the_wait_of_0119_expires_before_its_watchdog() {
    let mut adr = presets::find("pi-desktop-0119").unwrap();
    adr.task_wait.on_expiry = OnExpiry::Failed;
    let later = fleet(
        (1..=50)
            .map(|start| run(start * 7919, RecordedEnd::Hung))
            .collect(),
    );
    let settled = settle(&adr, &later, &alone());
    assert_eq!(settled.settled_in_wait.point, Some(0.0));
    assert_eq!(settled.closed_form, Some(0.0));
    // Every expiry starts the task again, and there is no run that does not hang: 50 hangs, then 50 more.
    assert_eq!(
        (settled.numbers.given_up, settled.numbers.hangs),
        (100, 100)
    );
    assert_eq!(settled.numbers.expiries, 100);

    // At equal times the settling wins …
    let at_once = fleet(vec![run(0, RecordedEnd::Hung)]);
    let settled = settle(&adr, &at_once, &alone());
    assert_eq!(
        (settled.numbers.settled_in_wait, settled.numbers.expiries),
        (1, 0)
    );
    // … and any settling delay lets the wait expire first.
    let habits = Habits {
        unwinding: Millis::new(1),
        ..alone()
    };
    let settled = settle(&adr, &at_once, &habits);
    assert_eq!(
        (settled.numbers.settled_in_wait, settled.numbers.given_up),
        (0, 2)
    );
    assert_eq!(settled.numbers.expiries, 2);
}

/// BR-28: an expiry is control flow: the healthy run goes on and is delivered once, at 1,800,000.
#[test]
fn an_expired_wait_stops_nothing() {
    let healthy = fleet(vec![run(1_800_000, RecordedEnd::Completed)]);
    let settled = settle(&policy(300), &healthy, &alone());
    let numbers = settled.numbers;
    assert_eq!((numbers.waits, numbers.expiries), (3, 2));
    assert_eq!(
        (numbers.delivered, numbers.false_kills, numbers.misread),
        (1, 0, 0)
    );
    assert_eq!(
        (numbers.parent_ms, numbers.blocked_ms),
        (1_800_000, 1_800_000)
    );

    // What the first wait returns with: the token stamped 600,000 is not seen yet.
    let policy = policy(300);
    let mut session = Session::new(&policy, 10, Millis::ZERO);
    let course = Course::of(&healthy.runs[0], &healthy.symbols);
    let delegate = session.spawn(course).unwrap();
    let wait = session.call(
        &policysim_policy::task_wait::Call::default(),
        &TaskWait::default(),
        &["c"],
    );
    let happening = session.next(Millis::MAX).unwrap();
    let Happening::Returned(returned) = happening else {
        panic!("{happening:?}")
    };
    assert_eq!(
        (returned.wait, returned.expired, returned.finished),
        (wait, true, 0)
    );
    assert_eq!(session.now(), Millis::new(600_000));
    assert_eq!(session.heartbeat(delegate).silent_ms, 30_000);
    assert!(!session.is_settled(delegate));
    let how = How::Ended(Outcome::Completed);
    assert_eq!(
        session.next(Millis::MAX),
        Some(Happening::Settled { delegate, how })
    );
    assert_eq!(session.now(), Millis::new(1_800_000));
    assert_eq!(session.next(Millis::MAX), None);
}

/// BR-29: accepted and never started: the startup window settles it inside the first wait, else the idle window does.
#[test]
fn a_spawn_that_never_starts_is_settled() {
    let never = Run {
        end: RecordedEnd::Hung,
        events: vec![RunEvent::new(0, Kind::Spawn)],
        ..Run::default()
    };
    let fleet = fleet(vec![never]);
    let mut policy = policy(300);
    for (startup, at_ms) in [(Some(60), 60_000), (None, 300_000)] {
        policy.idle.startup = startup.map(Millis::from_secs);
        let settled = settle(&policy, &fleet, &alone());
        assert_eq!(settled.knowledge[0].value, Some(at_ms));
        assert_eq!((settled.numbers.waits, settled.numbers.expiries), (1, 0));
        assert_eq!(settled.numbers.parent_ms, u128::from(at_ms));
    }
}

/// BR-31: a kill is final; a completion 1 ms before the deadline is none.
#[test]
fn a_late_completion_changes_nothing() {
    for (end_ms, killed) in [(300_001, 1), (300_000, 1), (299_999, 0)] {
        let mut late = run(0, RecordedEnd::Completed);
        late.events.truncate(1);
        late.events.push(event(0, Kind::MessageUpdate));
        let mut over = event(end_ms, Kind::RunEnd);
        over.outcome = Some(Outcome::Completed);
        late.events.push(over);
        late.end_ms = end_ms;
        let settled = settle(&policy(300), &fleet(vec![late]), &alone());
        assert_eq!(settled.numbers.false_kills, killed, "{end_ms}");
        assert_eq!(settled.numbers.delivered, 1 - killed, "{end_ms}");
        assert_eq!(settled.numbers.parent_ms, u128::from(end_ms.min(300_000)));
    }
}

/// BR-35: a window below the work's own silence, retried five times: six kills at the same point, 1,440,000 ms.
#[test]
fn retries_multiply_a_false_kill() {
    let mut attempt = run(60_000, RecordedEnd::Completed);
    attempt.events.retain(|event| event.kind != Kind::RunEnd);
    attempt.events.push(event(310_000, Kind::MessageUpdate));
    let mut over = event(320_000, Kind::RunEnd);
    over.outcome = Some(Outcome::Completed);
    attempt.events.push(over);
    attempt.end_ms = 320_000;
    attempt.events.retain(|event| event.t_ms != 30_000);
    let fleet = fleet(vec![attempt]);
    let mut policy = Policy::default();
    policy.idle.window = Some(Millis::from_secs(180));
    policy.on_timeout = OnTimeout {
        retry: 5,
        resume: false,
    };
    let settled = settle(&policy, &fleet, &alone());
    let numbers = settled.numbers;
    assert_eq!(
        (numbers.false_kills, numbers.retries, numbers.retries_alike),
        (6, 5, 5)
    );
    assert_eq!(
        (numbers.parent_ms, numbers.slot_ms, numbers.delivered),
        (1_440_000, 1_440_000, 0)
    );

    // Resumed instead of restarted, the run comes to its end.
    policy.on_timeout.resume = true;
    let resumed = settle(&policy, &fleet, &alone()).numbers;
    assert_eq!(
        (resumed.false_kills, resumed.delivered, resumed.parent_ms),
        (1, 1, 320_000)
    );

    policy.idle.window = Some(Millis::from_secs(300));
    let settled = settle(&policy, &fleet, &alone());
    assert_eq!(
        (settled.numbers.false_kills, settled.numbers.delivered),
        (0, 1)
    );
    assert_eq!(settled.numbers.parent_ms, 320_000);
}

/// What an expiry does to a healthy run of 20 min under each reaction, by the rules of section 9.
#[test]
fn reactions_to_an_expiry() {
    let healthy = fleet(vec![run(20 * MINUTE, RecordedEnd::Completed)]);
    let of = |on_expiry| {
        let habits = Habits {
            on_expiry: Some(on_expiry),
            ..alone()
        };
        settle(&policy(300), &healthy, &habits).numbers
    };
    let again = of(Reaction::WaitAgain);
    assert_eq!(
        (again.expiries, again.delivered, again.duplicates),
        (1, 1, 0)
    );
    // The second run is read as failed in its turn; the first works on for nobody.
    let misread = of(Reaction::ReadAsFailure);
    assert_eq!(
        (misread.misread, misread.duplicates, misread.delivered),
        (2, 1, 0)
    );
    assert_eq!(misread.duplicate_ms, 1_200_000);
    let stopped = of(Reaction::Stop);
    assert_eq!(
        (stopped.stopped, stopped.delivered, stopped.slot_ms),
        (1, 0, 600_000)
    );
    let closed = of(Reaction::CloseTurn);
    assert_eq!(
        (closed.closed, closed.delivered, closed.slot_ms),
        (1, 0, 600_000)
    );
    // No turn, no tool: what the parent is shown does not change, and a judging parent stops it at the second expiry …
    let wait = Some(Millis::from_secs(300));
    let judged = Habits {
        on_expiry: Some(Reaction::Judge { unchanged: 1 }),
        wait,
        ..alone()
    };
    let adr = presets::find("pi-desktop-0166").unwrap();
    assert_eq!(settle(&adr, &healthy, &judged).numbers.stopped, 1);
    // … unless it sees turns go by.
    let mut turns = run(20 * MINUTE, RecordedEnd::Completed);
    for event in &mut turns.events {
        if event.kind == Kind::MessageUpdate {
            event.kind = Kind::TurnStart;
        }
    }
    let numbers = settle(&adr, &fleet(vec![turns]), &judged).numbers;
    assert_eq!((numbers.stopped, numbers.delivered), (0, 1));
}

/// ADR 0166 kills nothing: a hang is known by the heartbeat that stands still, or never.
#[test]
fn nothing_is_killed_where_the_parent_judges() {
    let adr = presets::find("pi-desktop-0166").unwrap();
    let hung = fleet(vec![run(0, RecordedEnd::Hung)]);
    let patient = settle(&adr, &hung, &alone()).numbers;
    assert_eq!((patient.never_known, patient.hangs_unsettled), (1, 1));
    assert_eq!(patient.slot_hung_ms, 48 * 3_600_000);
    let judging = Habits {
        on_expiry: Some(Reaction::Judge { unchanged: 2 }),
        ..alone()
    };
    let settled = settle(&adr, &hung, &judging);
    // Expiries at 600, 1200 and 1800 s: the third is the second without a change.
    assert_eq!(settled.knowledge[0].value, Some(1_800_000));
    assert_eq!(settled.numbers.given_up, 1);
}

/// 3.1: the eleventh delegate is refused and starts once a slot is free.
#[test]
fn the_eleventh_waits_for_a_slot() {
    let runs = (0..11).map(|_| run(MINUTE, RecordedEnd::Completed));
    let habits = Habits {
        tasks: 11,
        ..alone()
    };
    let numbers = settle(&policy(300), &fleet(runs.collect()), &habits).numbers;
    assert_eq!(
        (numbers.refused, numbers.delivered, numbers.waits),
        (1, 11, 2)
    );
    assert_eq!(numbers.parent_ms, 120_000);
}

/// 5.8: under a window that runs while a child is awaited, the outer run dies though the inner one works.
#[test]
fn a_delegate_that_waits_for_its_own_child() {
    let outer = fleet(vec![run(2 * MINUTE, RecordedEnd::Completed)]);
    let inner = fleet(vec![run(20 * MINUTE, RecordedEnd::Completed)]);
    let child = Course::of(&inner.runs[0], &inner.symbols);
    // Before the token at 60 s.
    let course = Course::of(&outer.runs[0], &outer.symbols).asking(2, &child);
    let mut policy = policy(300);
    let ends = |policy: &Policy| {
        let mut session = Session::new(policy, 10, Millis::ZERO);
        let delegate = session.spawn(course).unwrap();
        let happening = session.next(Millis::MAX);
        let Some(Happening::Settled { how, .. }) = happening else {
            panic!("{happening:?}")
        };
        assert!(session.is_settled(delegate));
        (session.now().as_u64(), how)
    };
    let (at_ms, how) = ends(&policy);
    assert_eq!(at_ms, 360_000);
    assert!(matches!(how, How::Fired(_)));
    // Paused for its child, it goes on 20 min later where it was.
    policy.pause.child = policysim_policy::Waits::Idle;
    let expected = (22 * MINUTE, How::Ended(Outcome::Completed));
    assert_eq!(ends(&policy), expected);
}

/// A hang gets its grace, a run that answers the signal does not.
#[test]
fn unwinding() {
    let mut policy = Policy::default();
    policy.idle.window = Some(Millis::from_secs(300));
    policy.kill.delay = Millis::from_secs(1);
    let hung = settle(&policy, &fleet(vec![run(0, RecordedEnd::Hung)]), &alone());
    assert_eq!(hung.numbers.parent_ms, 304_000);
    assert_eq!(hung.closed_form, Some(296.0 / 600.0));
    let mut slow = run(0, RecordedEnd::Completed);
    slow.end_ms = 400_000;
    slow.events[1].t_ms = 400_000;
    let numbers = settle(&policy, &fleet(vec![slow]), &alone()).numbers;
    assert_eq!((numbers.false_kills, numbers.parent_ms), (1, 301_000));
}

/// The same seed gives the same figures on one thread and on two; another seed another order.
#[test]
fn threads_change_nothing() {
    let runs: Vec<Run> = (0..400)
        .map(|part| {
            let end = if part % 20 == 0 {
                RecordedEnd::Hung
            } else {
                RecordedEnd::Completed
            };
            run(part * 4_321, end)
        })
        .collect();
    let fleet = fleet(runs);
    let changes = Changes {
        hang_ppm: 50_000.try_into().unwrap(),
        nested_ppm: 100_000.try_into().unwrap(),
    };
    let of = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let cast = Cast::recorded(&fleet, changes, seed);
        pool.install(|| settlement(&policy(300), &cast, &Habits::default(), seed))
    };
    let one = of(1, 0);
    assert_eq!(one, of(2, 0));
    assert_eq!(one, of(1, 0));
    assert_ne!(one, of(1, 1));
    // 20 labelled, and about 5 % of the other 380.
    assert!(
        (25..70).contains(&one.numbers.hangs),
        "{}",
        one.numbers.hangs
    );
    assert_eq!(one.numbers.runs, 400);
}

/// A parent that stops what an expired wait leaves unsettled knows of a hang at the kill or at the expiry, whichever
/// comes first: for starts uniform in a wait T, `w - w^2 / 2T` on average.
#[test]
fn a_hang_costs_until_the_parent_knows() {
    let even = (0..2000).map(|part| run(part * 300 + 150, RecordedEnd::Hung));
    let fleet = fleet(even.collect());
    let stopping = Habits {
        on_expiry: Some(Reaction::Stop),
        ..alone()
    };
    // 300 - 300^2 / 1200 = 225 s, 180 - 180^2 / 1200 = 153 s; a parent that waits again knows at the kill
    for (window_s, habits, expected_ms) in [
        (300, &stopping, 225_000),
        (180, &stopping, 153_000),
        (300, &alone(), 300_000),
    ] {
        let policy = policy(window_s);
        let settled = settle(&policy, &fleet, habits);
        assert_eq!(settled.numbers.hangs, 2000);
        let mean = settled.mean_knowledge.point.unwrap();
        assert!((mean - f64::from(expected_ms)).abs() < 1e-6, "{mean}");

        // 1,000 runs, ten false kills of 100 s each, and the record's own hangs, which then do not matter
        let tally = Tally {
            runs: 1000,
            false_kills: 10,
            ..Tally::default()
        };
        let cell = CellCounts {
            all: Part {
                tally,
                work_lost_ms: 1_000_000,
                hung: 2,
                slot_lost_ms: 2 * 300_000,
                ..Part::default()
            },
            ..CellCounts::default()
        };
        let candidate = Candidate {
            policy,
            settings: Vec::new(),
        };
        let evidence = Evidence::of_units([(0, 1000)].into(), [(0, 1000)].into(), 1, None);
        let options = Options {
            hang_rate: Some("0.02".parse().unwrap()),
            ..Options::default()
        };
        let cost = |unaware: &Unaware| {
            let cells = [cell.clone()];
            let found = hang_cost(
                std::slice::from_ref(&candidate),
                (&cells, unaware),
                &[0],
                Some(0),
                &evidence,
                options,
            );
            (found.hang_time, found.focus.unwrap().ranked_ms.unwrap())
        };
        let known = Unaware::new(std::slice::from_ref(&settled), &settled);
        let (source, ms) = cost(&known);
        assert_eq!(source, HangTime::Knowledge);
        let expected = 0.98 * 1000.0 + 0.02 * f64::from(expected_ms);
        assert!((ms - expected).abs() < 1e-6, "{ms} is not {expected}");
        let (source, ms) = cost(&Unaware::default());
        assert_eq!(source, HangTime::Slot);
        assert!((ms - (980.0 + 6000.0)).abs() < 1e-6, "{ms}");
    }
}

/// A killed run that failed anyway is no false kill, nor is one of which the record cannot tell: as a replay judges them.
#[test]
fn kills_are_judged_as_a_replay_judges_them() {
    let mut failed = run(60_000, RecordedEnd::Failed);
    failed.end_ms = 500_000;
    let mut aborted = run(60_000, RecordedEnd::Aborted);
    aborted.end_ms = 500_000;
    let mut back = run(60_000, RecordedEnd::Failed);
    back.events.push(event(400_000, Kind::MessageUpdate));
    back.end_ms = 500_000;
    let numbers = settle(&policy(300), &fleet(vec![failed, aborted, back]), &alone()).numbers;
    assert_eq!(
        (
            numbers.false_kills,
            numbers.true_kills,
            numbers.unresolved_kills
        ),
        (1, 1, 1)
    );

    // Alone with its parent, a delegate meets what a replay of its run meets.
    let mut kills = [0_u64; 3];
    for seed in 0..300 {
        let mut draw = random::Draw::new(seed ^ 0x5e77);
        let shape = random::shaped(&mut draw);
        let mut policy = random::numbered(&mut draw, &shape);
        policy.kill = Policy::default().kill;
        policy.on_timeout = OnTimeout::default();
        let fleet = random::fleet(&mut draw, 20);
        let candidates = [Candidate {
            policy: policy.clone(),
            settings: Vec::new(),
        }];
        let known: Vec<Run> = sized_runs(&fleet)
            .filter(|run| {
                use RecordedEnd::{Aborted, Completed, Failed, Hung};
                matches!(run.end, Aborted | Completed | Failed | Hung)
            })
            .cloned()
            .collect();
        let fleet = Fleet {
            runs: known,
            symbols: fleet.symbols,
        };
        let grouping = Grouping {
            base: &policy,
            strata: &Strata::new(&fleet, &[]),
            halves: &[],
            cluster: Cluster::Run,
        };
        let cell = &sweep(&fleet, &candidates, grouping, &|_| {})[0];
        let habits = Habits {
            on_expiry: Some(Reaction::WaitAgain),
            ..alone()
        };
        let numbers = settle(&policy, &fleet, &habits).numbers;
        let tally = cell.all.tally;
        let of_sweep = [
            tally.false_kills,
            cell.true_kills,
            tally.unresolved_kills,
            cell.hung_killed_early,
        ];
        let of_parents = [
            numbers.false_kills,
            numbers.true_kills,
            numbers.unresolved_kills,
            numbers.hung_killed_early,
        ];
        assert_eq!(of_parents, of_sweep, "seed {seed}: {policy:?}");
        for (sum, kills_here) in kills.iter_mut().zip(of_sweep) {
            *sum += kills_here;
        }
    }
    assert!(kills.iter().all(|&kills| kills > 50), "{kills:?}");
}
