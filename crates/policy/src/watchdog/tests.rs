use super::*;
use crate::open::Item;
use crate::{CallId, CallerDeadline, ClockClass, Phase, Scope, Warning, presets};

/// What the crate's documentation states.
#[test]
fn a_watchdog_is_small() {
    assert!(size_of::<Watchdog>() <= 1344, "{}", size_of::<Watchdog>());
    assert!(size_of::<Item>() <= 40, "{}", size_of::<Item>());
}

#[test]
fn ends_that_never_come_do_not_fill_memory() {
    let policy = presets::find("pi-desktop-0129").unwrap_or_default();
    let setup = Setup {
        trace: Trace::Full,
        ..Setup::default()
    };
    let mut dog = Watchdog::with(&policy, Millis::ZERO, &setup);
    let start = |id| Event::new(Kind::ToolStart).with_id(CallId::new(id));
    for id in 0..5000 {
        dog.handle_event(Millis::new(id), &start(id));
    }
    assert_eq!(dog.state.open.items().count(), Open::MAX);
    let refused = core::iter::from_fn(|| dog.poll_output())
        .filter(|output| {
            matches!(
                output,
                Output::Warned {
                    warning: Warning::TooManyOpen { .. },
                    ..
                }
            )
        })
        .count();
    assert_eq!(refused, 5000 - Open::MAX);
}

#[test]
fn a_verdict_says_where_the_run_was_and_what_was_seen_last() {
    let mut policy = Policy::default();
    policy.idle.window = Some(Millis::new(100));
    policy.idle.rearm = crate::KindSet::OUTPUT;
    let mut dog = Watchdog::new(&policy, Millis::ZERO);
    for (at, kind) in [
        (10, Kind::MessageUpdate),
        (60, Kind::Keepalive),
        (90, Kind::Keepalive),
    ] {
        dog.handle_event(Millis::new(at), &Event::new(kind));
    }
    dog.handle_timeout(Millis::new(5000));
    let verdict = dog.verdict().map(|v| {
        let seen: alloc::vec::Vec<_> = v
            .evidence
            .iter()
            .map(|a| (a.kind, a.age.as_u64(), a.rearms))
            .collect();
        (v.cause, v.at.as_u64(), v.phase, seen)
    });
    let seen = alloc::vec![
        (Kind::Keepalive, 20, false),
        (Kind::MessageUpdate, 100, true)
    ];
    assert_eq!(
        verdict,
        Some((Cause::IdleTimeout, 110, Phase::Streaming, seen))
    );
}

#[test]
fn an_adaptive_window_follows_the_gaps() {
    use crate::{Adaptive, Estimator};
    let mut policy = Policy::default();
    policy.idle.window = Some(Millis::from_secs(60));
    policy.idle.adaptive = Some(Adaptive {
        estimator: Estimator::Phi {
            threshold: 8,
            min_std: Millis::new(100),
            pause: Millis::ZERO,
            samples: 200,
        },
        min_samples: 10,
        floor: Millis::ZERO,
        cap: None,
    });
    // scenario BR-99: a beat every second, the last at 60 s
    let mut dog = Watchdog::new(&policy, Millis::ZERO);
    for second in 1..=60 {
        let at = Millis::from_secs(second);
        dog.handle_event(at, &Event::new(Kind::MessageUpdate));
        if second == 5 {
            assert_eq!(dog.poll_timeout(), Some(Millis::from_secs(65)), "warm-up");
        }
    }
    assert_eq!(dog.poll_timeout(), Some(Millis::new(61_562)));
}
/// The built-in caps of ADR 0129 by role: sixty turns with a tool for the explorer.
#[test]
fn a_role_brings_its_own_cap() {
    let policy = presets::find("pi-desktop-0129").unwrap_or_default();
    let turns_of = |role| {
        let setup = Setup {
            role,
            ..Setup::default()
        };
        let mut dog = Watchdog::with(&policy, Millis::ZERO, &setup);
        let turns = (1..=100_u64).find(|turn| {
            for kind in [
                Kind::TurnStart,
                Kind::ToolStart,
                Kind::ToolEnd,
                Kind::TurnEnd,
            ] {
                dog.handle_event(Millis::new(*turn), &Event::new(kind));
            }
            dog.verdict().is_some()
        });
        turns.map(|turns| (turns, dog.verdict().map(|v| v.cause)))
    };
    assert_eq!(turns_of("explorer"), Some((60, Some(Cause::TurnLimit))));
    assert_eq!(turns_of("fixer"), Some((80, Some(Cause::TurnLimit))));
    assert_eq!(turns_of("translator"), None);
}

fn silences(dog: &mut Watchdog, clock: ClockClass) -> alloc::vec::Vec<(u64, u64, u64)> {
    core::iter::from_fn(|| dog.poll_output())
        .filter_map(|output| match output {
            Output::Silence(s) if s.clock == clock => {
                Some((s.from.as_u64(), s.to.as_u64(), s.reading.as_u64()))
            }
            _ => None,
        })
        .collect()
}

fn told(policy: &Policy, events: &[(u64, Kind)], end: u64) -> Watchdog {
    let setup = Setup {
        trace: Trace::Silences,
        ..Setup::default()
    };
    let mut dog = Watchdog::with(policy, Millis::ZERO, &setup);
    for (at, kind) in events {
        dog.handle_event(Millis::new(*at), &Event::new(*kind));
    }
    dog.finish(Millis::new(end));
    dog
}

/// Found by random traces: the budget starts frozen, and what it read was never told.
#[test]
fn a_backoff_budget_tells_what_it_reads() {
    let mut policy = Policy::default();
    policy.pause.backoff_budget = Some(Millis::MAX);
    let events = [
        (10, Kind::RetryStart),
        (15, Kind::RetryEnd),
        (40, Kind::RetryStart),
    ];
    let mut dog = told(&policy, &events, 47);
    assert_eq!(
        silences(&mut dog, ClockClass::Backoff),
        [(10, 15, 5), (40, 47, 12)]
    );
}

/// A total that waits for a human is read in pieces that add up.
#[test]
fn a_frozen_clock_goes_on_from_its_reading() {
    let mut policy = Policy::default();
    policy.total.budget = Some(Millis::MAX);
    policy.idle.window = Some(Millis::MAX);
    policy.pause.human = crate::Waits::All;
    let events = [
        (30, Kind::HumanWaitStart),
        (90, Kind::HumanWaitEnd),
        (95, Kind::MessageUpdate),
    ];
    let mut dog = told(&policy, &events, 100);
    assert_eq!(
        silences(&mut dog, ClockClass::Total),
        [(0, 30, 30), (90, 100, 40)]
    );
    let mut dog = told(&policy, &events, 100);
    assert_eq!(
        silences(&mut dog, ClockClass::Idle),
        [(0, 30, 30), (30, 30, 0), (90, 95, 5), (95, 100, 5)]
    );
}

/// A total that ran out while a caller's deadline was the only limit is seen at the next tick, not at once.
#[test]
fn what_ran_out_of_sight_is_seen_at_a_tick() {
    let mut policy = Policy::default();
    policy.total.budget = Some(Millis::new(5));
    policy.total.scope = Scope::Run;
    policy.total.caller_deadline = CallerDeadline::Replaces;
    policy.detect.poll = crate::Poll::Every(Millis::new(10));
    let mut dog = Watchdog::new(&policy, Millis::ZERO);
    let mut start = Event::new(Kind::RunStart);
    start.deadline = Some(Millis::new(1000));
    dog.handle_event(Millis::ZERO, &start);
    dog.handle_event(Millis::new(33), &Event::new(Kind::RunEnd));
    dog.handle_timeout(Millis::new(100));
    let verdict = dog.verdict().map(|v| (v.cause, v.at.as_u64()));
    assert_eq!(verdict, Some((Cause::TotalTimeout, 40)));
}
/// The transcript of a small delegation, fact by fact.
#[test]
fn the_transcript_tells_the_whole_life() {
    let mut policy = presets::find("netclaw-subagent").unwrap_or_default();
    policy.idle.ceiling = None;
    let setup = Setup {
        trace: Trace::Full,
        ..Setup::default()
    };
    let mut dog = Watchdog::with(&policy, Millis::ZERO, &setup);
    let mut asks = Event::new(Kind::ToolStart).with_id(CallId::new(7));
    asks.may_ask = true;
    for (at, event) in [
        (0, Event::new(Kind::Spawn)),
        (5000, Event::new(Kind::MessageUpdate)),
        (6000, asks),
        (
            7000,
            Event::new(Kind::ApprovalStart).with_id(CallId::new(8)),
        ),
        (
            900_000,
            Event::new(Kind::ApprovalEnd).with_id(CallId::new(8)),
        ),
        (
            900_500,
            Event::new(Kind::ApprovalEnd).with_id(CallId::new(8)),
        ),
    ] {
        dog.handle_event(Millis::new(at), &event);
    }
    dog.handle_timeout(Millis::new(2_000_000));
    let told: alloc::vec::Vec<alloc::string::String> = core::iter::from_fn(|| dog.poll_output())
        .filter_map(|output| {
            Some(match output {
                Output::Silence(s) => {
                    alloc::format!("{} {} {}", s.clock, s.reading, s.end.name())
                }
                Output::SegmentStarted { at, .. } => alloc::format!("{at} segment"),
                Output::Spawned { at } => alloc::format!("{at} spawned"),
                Output::Rearmed { at, by, .. } => alloc::format!("{at} rearmed by {by}"),
                Output::Paused { at, clocks, .. } => {
                    alloc::format!("{at} paused {clocks:?}")
                }
                Output::Resumed { at, clocks, .. } => {
                    alloc::format!("{at} resumed {clocks:?}")
                }
                Output::Warned { at, warning } => alloc::format!("{at} {warning:?}"),
                Output::Fired(v) => {
                    alloc::format!("{} fired {} {}", v.at, v.cause, v.phase)
                }
                Output::SegmentEnded { .. } | Output::TurnStop { .. } | Output::Ended(_) => {
                    return None;
                }
            })
        })
        .collect();
    let expected = [
        "0ms segment",
        "0ms spawned",
        "first 5000ms rearmed",
        "5000ms rearmed by message_update",
        "idle 1000ms rearmed",
        "6000ms rearmed by tool_start",
        "idle 1000ms paused",
        "7000ms paused All",
        "900000ms resumed All",
        "900500ms UnmatchedEnd { kind: ApprovalEnd, id: CallId(8) }",
        "960000ms SpareWindowUsed",
        "idle 60000ms spared",
        "idle 60000ms fired",
        "1020000ms fired idle_timeout in_tool",
    ];
    assert_eq!(told, expected);
}
/// Found by random traces: a total that is no limit for now read on and told of it as if it could fire.
#[test]
fn a_replaced_total_tells_nothing_until_it_holds_again() {
    let mut policy = Policy::default();
    policy.total.budget = Some(Millis::MAX);
    policy.total.scope = Scope::Run;
    policy.total.caller_deadline = CallerDeadline::Replaces;
    let setup = Setup {
        trace: Trace::Silences,
        ..Setup::default()
    };
    let mut dog = Watchdog::with(&policy, Millis::ZERO, &setup);
    let mut start = Event::new(Kind::RunStart);
    start.deadline = Some(Millis::new(1000));
    dog.handle_event(Millis::new(10), &start);
    dog.handle_event(Millis::new(30), &Event::new(Kind::RunEnd));
    dog.finish(Millis::new(100));
    assert_eq!(
        silences(&mut dog, ClockClass::Total),
        [(0, 10, 10), (30, 100, 100)]
    );
}
