//! Long random traces under random policies over every axis: against the naive model, with and without
//! spurious timeouts, told at once or piece by piece, and answered from the silences alone.
#![allow(clippy::unwrap_used)]

#[path = "common/naive.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod naive;
#[path = "common/small.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod small;

use naive::Naive;
use policysim_policy::{
    Adaptive, ByName, CallId, CallerDeadline, Cause, ClockClass, Estimator, Event, First, Kind,
    KindSet, KindsOrRearm, Millis, Outcome, Output, Overlap, PhaseScope, Policy, Poll, Scope,
    Setup, Silence, SilenceEnd, ToolLimit, Trace, TurnStop, Waits, Watchdog, presets, seen,
};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

const HORIZON: u64 = 40;

/// The same cases every time; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` draw more, or others.
fn config() -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: number("PROPTEST_CASES").map_or(3000, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(number("PROPTEST_RNG_SEED").unwrap_or(0)),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn limit() -> impl Strategy<Value = Option<Millis>> {
    prop_oneof![Just(None), (1..9_u64).prop_map(|ms| Some(Millis::new(ms)))]
}

fn long_limit() -> impl Strategy<Value = Option<Millis>> {
    prop_oneof![
        2 => Just(None),
        3 => (5..40_u64).prop_map(|ms| Some(Millis::new(ms)))
    ]
}

fn waits() -> impl Strategy<Value = Waits> {
    select(vec![Waits::All, Waits::Idle, Waits::None])
}

fn scope() -> impl Strategy<Value = Scope> {
    select(vec![Scope::Run, Scope::Segment])
}

fn kinds() -> impl Strategy<Value = KindSet> {
    prop_oneof![
        3 => Just(KindSet::ALL),
        2 => prop::collection::vec(select(Kind::ALL.to_vec()), 0..12)
            .prop_map(|kinds| KindSet::of_kinds(&kinds)),
        1 => select(vec![KindSet::NONE, KindSet::OUTPUT, KindSet::SUBSTANTIVE]),
        1 => Just(KindSet::from_items(["all", "-other:x", "-status"]).unwrap()),
    ]
}

fn some_kinds() -> impl Strategy<Value = KindsOrRearm> {
    prop_oneof![
        Just(KindsOrRearm::Rearm),
        kinds().prop_map(KindsOrRearm::Kinds)
    ]
}

/// A policy with small limits on every axis that the model knows.
fn policy() -> impl Strategy<Value = Policy> {
    let idle = (
        (limit(), kinds(), some_kinds(), some_kinds()),
        (limit(), long_limit(), long_limit(), 0..2_u8),
        prop_oneof![
            Just(First::SameAsWindow),
            Just(First::Off),
            (1..12_u64).prop_map(|ms| First::After(Millis::new(ms)))
        ],
        select(vec![PhaseScope::ModelCall, PhaseScope::Run]),
    );
    let pause = (
        prop::array::uniform5(waits()),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        (long_limit(), limit(), long_limit(), long_limit()),
    );
    let rest = (
        (long_limit(), scope(), any::<bool>()),
        (
            prop::option::of(1..4_u32),
            scope(),
            any::<bool>(),
            long_limit(),
        ),
        prop_oneof![
            3 => Just(Poll::Exact),
            1 => (1..5_u64).prop_map(|ms| Poll::Every(Millis::new(ms))),
            1 => Just(Poll::Tenth)
        ],
    );
    (idle, pause, rest).prop_map(|(idle, pause, rest)| {
        let mut p = Policy::default();
        let ((window, rearm, progress, throttled), limits, first, phase) = idle;
        p.idle.window = window;
        p.idle.rearm = rearm;
        p.idle.progress = progress;
        p.idle.throttled = throttled;
        (
            p.idle.throttle,
            p.idle.ceiling,
            p.idle.startup,
            p.idle.grace_cycles,
        ) = limits;
        p.idle.first = first;
        p.idle.phase = phase;
        let (waits, (refuse, closes, human_tool), limits) = pause;
        [
            p.pause.tool,
            p.pause.human,
            p.pause.child,
            p.pause.backoff,
            p.pause.compaction,
        ] = waits;
        if refuse {
            p.pause.human_overlap = Overlap::Refuse;
        }
        p.pause.turn_closes_tools = closes;
        if human_tool {
            p.pause.human_tools = ByName::new([("ask", ())]);
        }
        let (tool, named_tool, compaction, backoff) = limits;
        p.pause.tool_limit = ToolLimit {
            default: tool,
            by_name: ByName::new([("bash", named_tool)]),
        };
        p.pause.compaction_limit = compaction;
        p.pause.backoff_budget = backoff;
        let ((budget, total_scope, replaces), (cap, turn_scope, after, grace), poll) = rest;
        p.total.budget = budget;
        p.total.scope = total_scope;
        if replaces {
            p.total.caller_deadline = CallerDeadline::Replaces;
        }
        p.turns.cap = cap;
        p.turns.scope = turn_scope;
        if after {
            p.turns.stop = TurnStop::AfterTools;
        }
        p.kill.result_grace = grace;
        p.detect.poll = poll;
        p
    })
}

/// A policy of the reference with its limits scaled down.
fn preset() -> impl Strategy<Value = Policy> {
    (
        select(presets::PRESETS.to_vec()),
        prop::option::of(1..4_u32),
    )
        .prop_map(|(preset, cap)| {
            let mut p = small::scaled(preset.name);
            p.turns.cap = cap;
            p
        })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    prop_oneof![3 => policy(), 1 => preset()]
}

/// What of an event varies beside its kind.
#[derive(Clone, Debug)]
struct Drawn {
    wait: u64,
    kind: Kind,
    id: u64,
    name: &'static str,
    span: Option<u64>,
    flags: (bool, bool, bool),
    outcome: Option<Outcome>,
}

impl Drawn {
    fn event(&self, at: u64) -> Event<'static> {
        let mut event = Event::new(self.kind)
            .with_id(CallId::new(self.id))
            .with_name(self.name);
        let span = self.span.map(Millis::new);
        match self.kind {
            Kind::RunStart | Kind::Resume if self.flags.0 => event.budget = span,
            Kind::RunStart | Kind::Resume => {
                event.deadline = self
                    .span
                    .map(|span| Millis::new((at + span).saturating_sub(2)));
            }
            Kind::RunEnd => event.outcome = self.outcome,
            _ => event.announced = span,
        }
        event.executed = self.flags.0;
        event.may_ask = self.flags.1;
        event.suspends = self.flags.2 && self.flags.1;
        event
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let kind = prop_oneof![
        8 => select(Kind::ALL.to_vec()),
        6 => select(vec![
            Kind::ToolStart, Kind::ToolEnd, Kind::HumanWaitStart, Kind::HumanWaitEnd,
            Kind::TurnStart, Kind::TurnEnd, Kind::MessageUpdate, Kind::MessageEnd,
            Kind::RetryStart, Kind::RetryEnd, Kind::Keepalive,
        ]),
        2 => Just(Kind::MessageUpdate),
    ];
    (
        prop_oneof![3 => 0..2_u64, 3 => 1..5_u64, 1 => 3..15_u64],
        kind,
        0..3_u64,
        select(vec!["", "bash", "ask", "x"]),
        prop::option::of(0..8_u64),
        any::<(bool, bool, bool)>(),
        prop_oneof![
            3 => Just(None),
            1 => select(vec![Outcome::Aborted, Outcome::Completed, Outcome::Failed]).prop_map(Some)
        ],
    )
        .prop_map(|(wait, kind, id, name, span, flags, outcome)| Drawn {
            wait,
            kind,
            id,
            name,
            span,
            flags,
            outcome,
        })
}

/// A trace: waits and events as times and events.
fn trace(events: &[Drawn]) -> Vec<(u64, Event<'static>)> {
    let mut at = 0;
    events
        .iter()
        .map(|drawn| {
            at += drawn.wait;
            (at, drawn.event(at))
        })
        .collect()
}

fn full(p: &Policy) -> Watchdog {
    let setup = Setup {
        trace: Trace::Full,
        ..Setup::default()
    };
    Watchdog::with(p, Millis::ZERO, &setup)
}

fn drain(dog: &mut Watchdog) -> Vec<Output> {
    std::iter::from_fn(|| dog.poll_output()).collect()
}

fn end_of(trace: &[(u64, Event<'_>)]) -> Millis {
    Millis::new(trace.last().map_or(0, |(at, _)| *at) + HORIZON)
}

fn told_in_one_go(p: &Policy, trace: &[(u64, Event<'_>)]) -> Vec<Output> {
    let mut dog = full(p);
    for (at, event) in trace {
        dog.handle_event(Millis::new(*at), event);
    }
    dog.finish(end_of(trace));
    drain(&mut dog)
}

fn verdict(dog: &Watchdog) -> Option<(Cause, u64)> {
    dog.verdict().map(|v| (v.cause, v.at.as_u64()))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn agrees_with_the_naive_model(p in any_policy(), events in prop::collection::vec(drawn(), 0..60)) {
        let mut dog = Watchdog::new(&p, Millis::ZERO);
        let mut naive = Naive::new(&p, 0);
        for (at, event) in trace(&events) {
            prop_assert_eq!(
                dog.poll_timeout().map(Millis::as_u64).filter(|wake| *wake <= naive.t + HORIZON),
                naive.next_instant(&p, naive.t + HORIZON)
            );
            dog.handle_event(Millis::new(at), &event);
            naive.feed(&p, at, &event);
            prop_assert_eq!(verdict(&dog), naive.verdict, "{:?} at {}", event, at);
        }
    }

    #[test]
    fn timeouts_and_batches_change_no_output(
        p in any_policy(),
        adaptive in any::<bool>(),
        events in prop::collection::vec(drawn(), 0..60),
        early in prop::collection::vec(0..20_u64, 60),
    ) {
        let mut p = p;
        if adaptive {
            p.idle.adaptive = Some(Adaptive {
                estimator: Estimator::Phi {
                    threshold: 3,
                    min_std: Millis::new(1),
                    pause: Millis::ZERO,
                    samples: 3,
                },
                min_samples: 2,
                floor: Millis::new(2),
                cap: None,
            });
        }
        let trace = trace(&events);
        let whole = told_in_one_go(&p, &trace);

        let mut dog = full(&p);
        let mut pieces = drain(&mut dog);
        let mut now = 0;
        for ((at, event), early) in trace.iter().zip(&early) {
            // at every wake-up, then at some time that may be early, late or past
            while let Some(wake) = dog.poll_timeout().filter(|wake| wake.as_u64() <= *at) {
                dog.handle_timeout(wake);
                pieces.extend(drain(&mut dog));
            }
            dog.handle_timeout(Millis::new((now + early).min(*at)));
            pieces.extend(drain(&mut dog));
            dog.handle_event(Millis::new(*at), event);
            pieces.extend(drain(&mut dog));
            now = *at;
        }
        dog.finish(end_of(&trace));
        pieces.extend(drain(&mut dog));
        prop_assert_eq!(&whole, &pieces);

        // one outcome: a terminal output, none after it unless the run was reopened
        let mut open = true;
        for output in &whole {
            if output.verdict().is_some() {
                prop_assert!(open, "a second outcome in {:?}", whole);
                open = false;
            } else if let Output::SegmentStarted { reopens: true, .. } = output {
                prop_assert!(!open);
                open = true;
            }
        }
        prop_assert!(!open);
        prop_assert_eq!(dog.verdict(), whole.iter().rev().find_map(Output::verdict));
    }

    #[test]
    fn less_detail_tells_a_part_of_more(p in any_policy(), events in prop::collection::vec(drawn(), 0..40)) {
        let trace = trace(&events);
        let whole = told_in_one_go(&p, &trace);
        for detail in [Trace::Verdict, Trace::Silences] {
            let mut dog = Watchdog::with(&p, Millis::ZERO, &Setup { trace: detail, ..Setup::default() });
            for (at, event) in &trace {
                dog.handle_event(Millis::new(*at), event);
            }
            dog.finish(end_of(&trace));
            let part: Vec<&Output> = whole.iter().filter(|output| match output {
                Output::Fired(_) | Output::Ended(_) => true,
                Output::Silence(_) | Output::SegmentStarted { .. } | Output::SegmentEnded { .. } =>
                    detail == Trace::Silences,
                _ => false,
            }).collect();
            let told = drain(&mut dog);
            prop_assert_eq!(told.iter().collect::<Vec<_>>(), part);
        }
    }

    #[test]
    fn columns_lead_to_the_states_of_single_events(
        p in any_policy(),
        floor in prop_oneof![Just(None), (0..12_u64).prop_map(Some)],
        events in prop::collection::vec(drawn(), 0..60),
    ) {
        let trace = trace(&events);
        let told_as = |trace| Watchdog::with(&p, Millis::ZERO, &Setup { trace, ..Setup::default() });
        let mut dog = told_as(floor.map_or(Trace::Verdict, |floor| Trace::Crossings(Millis::new(floor))));
        let mut single = told_as(if floor.is_some() { Trace::Silences } else { Trace::Verdict });
        let times: Vec<u64> = trace.iter().map(|(at, _)| *at).collect();
        let kinds: Vec<Kind> = trace.iter().map(|(_, event)| event.kind).collect();
        let mut short = Vec::new();
        let mut from = 0;
        while from < trace.len() {
            let plain = trace[from..].iter().take_while(|(_, event)| !event.suspends).count();
            let until = from + plain;
            let fed = dog.handle_plain(&times[from..until], &kinds[from..until], |ms| short.push(ms));
            for (at, event) in &trace[from..from + fed] {
                single.handle_event(Millis::new(*at), event);
            }
            prop_assert_eq!(&dog, &single);
            prop_assert_eq!(dog.poll_timeout(), single.poll_timeout());
            from += fed;
            if let Some((at, event)) = trace.get(from) {
                dog.handle_event(Millis::new(*at), event);
                single.handle_event(Millis::new(*at), event);
                prop_assert_eq!(&dog, &single);
                from += 1;
            }
        }
        dog.finish(end_of(&trace));
        single.finish(end_of(&trace));
        prop_assert_eq!(dog.verdict(), single.verdict());
        let idle = |output: &Output| match output {
            Output::Silence(silence) if silence.clock == ClockClass::Idle => Some(silence.reading.as_u64()),
            _ => None,
        };
        let (told, all) = (drain(&mut dog), drain(&mut single));
        let mut read: Vec<u64> = told.iter().filter_map(idle).chain(short.iter().copied()).collect();
        let mut read_singly: Vec<u64> = all.iter().filter_map(idle).collect();
        read.sort_unstable();
        read_singly.sort_unstable();
        prop_assert!(short.iter().all(|ms| Some(*ms) < floor || floor.is_none()));
        if floor.is_some() {
            prop_assert_eq!(read, read_singly);
        }
        let rest = |outputs: Vec<Output>| -> Vec<Output> {
            outputs.into_iter().filter(|output| idle(output).is_none() && !matches!(output, Output::TurnStop { .. })).collect()
        };
        prop_assert_eq!(rest(told), rest(all));
    }

    #[test]
    fn silences_alone_answer_every_limit(p in any_policy(), events in prop::collection::vec(drawn(), 0..40)) {
        // a spare window, and a window that sets its own poll interval, change which silences exist
        let mut p = p;
        p.idle.grace_cycles = 0;
        if p.detect.poll == Poll::Tenth {
            p.detect.poll = Poll::Exact;
        }
        p.pause.tool_limit.by_name = ByName::EMPTY;
        let trace: Vec<_> = trace(&events)
            .into_iter()
            .map(|(at, mut event)| { event.budget = None; (at, event) })
            .collect();
        let told = told_in_one_go(&p, &trace);
        let direct = told.iter().find_map(Output::verdict).unwrap();
        let endless = told_in_one_go(&without_numbers(&p), &trace);
        let (cause, at) = first_crossing(&p, &endless);
        prop_assert_eq!((direct.cause, direct.at), (cause, at), "{:?}", endless);
    }

    #[test]
    fn activity_within_the_window_is_never_silence(
        p in policy(),
        waits in prop::collection::vec(0..100_u64, 1..80),
    ) {
        let mut p = p;
        p.idle.rearm = KindSet::ALL;
        p.idle.progress = KindsOrRearm::Rearm;
        p.idle.throttle = None;
        p.idle.startup = None;
        let mut dog = Watchdog::new(&p, Millis::ZERO);
        let first = match p.idle.first {
            First::After(first) => Some(first),
            _ => p.idle.window,
        };
        let shortest = [p.idle.window, first, p.idle.ceiling].into_iter().flatten().min();
        let mut at = 0;
        for wait in waits {
            at += shortest.map_or(wait, |window| wait % window.as_u64());
            dog.handle_event(Millis::new(at), &Event::new(Kind::MessageUpdate));
            if let Some((cause, _)) = verdict(&dog) {
                prop_assert_eq!(cause, Cause::TotalTimeout);
            }
        }
    }

    #[test]
    fn a_human_wait_moves_no_clock_that_waits_for_it(
        p in policy(),
        events in prop::collection::vec(drawn(), 0..20),
        length in 0..200_u64,
    ) {
        let mut p = p;
        p.detect.poll = Poll::Exact;
        p.pause.human_overlap = Overlap::Set;
        // announced ends and the result's grace are no business of a human
        p.kill.result_grace = None;
        let mut asked = Watchdog::new(&p, Millis::ZERO);
        let mut now = 0;
        for (at, mut event) in trace(&events) {
            event.deadline = None;
            event.announced = None;
            let mut further = asked.clone();
            further.handle_event(Millis::new(at), &event);
            // the last moment at which the run is alive is looked at
            if further.verdict().is_some() {
                break;
            }
            (asked, now) = (further, at);
        }
        let wait = |kind| Event::new(kind).with_id(CallId::new(77));
        asked.handle_event(Millis::new(now), &wait(Kind::HumanWaitStart));
        prop_assume!(asked.verdict().is_none());
        let mut answered_at_once = asked.clone();
        asked.handle_timeout(Millis::new(now + length));
        match p.pause.human {
            Waits::None => {}
            Waits::Idle => {
                // the idle clocks stand; what fires is something else
                if let Some((cause, _)) = verdict(&asked) {
                    prop_assert!(!matches!(cause, Cause::IdleTimeout | Cause::FirstTimeout | Cause::CeilingTimeout));
                }
            }
            Waits::All => {
                prop_assert_eq!(verdict(&asked), None);
                asked.handle_event(Millis::new(now + length), &wait(Kind::HumanWaitEnd));
                answered_at_once.handle_event(Millis::new(now), &wait(Kind::HumanWaitEnd));
                prop_assert_eq!(
                    asked.poll_timeout().map(|wake| wake.since(Millis::new(now + length))),
                    answered_at_once.poll_timeout().map(|wake| wake.since(Millis::new(now)))
                );
            }
        }
    }
}

/// The same structure, every limit beyond any reading.
fn without_numbers(p: &Policy) -> Policy {
    let mut p = p.clone();
    let never = |limit: &mut Option<Millis>| *limit = limit.map(|_| Millis::MAX);
    never(&mut p.idle.window);
    never(&mut p.idle.ceiling);
    never(&mut p.idle.startup);
    never(&mut p.pause.compaction_limit);
    never(&mut p.pause.backoff_budget);
    never(&mut p.total.budget);
    never(&mut p.kill.result_grace);
    if let First::After(first) = &mut p.idle.first {
        *first = Millis::MAX;
    }
    never(&mut p.pause.tool_limit.default);
    p
}

/// The earliest limit that a silence of the endless run crosses, or how that run first ended.
fn first_crossing(p: &Policy, endless: &[Output]) -> (Cause, Millis) {
    let period = match p.detect.poll {
        Poll::Every(period) => Some(period),
        Poll::Exact | Poll::Tenth => None,
    };
    let mut origin = Millis::ZERO;
    let mut first: Option<(Millis, u8, Cause, bool)> = None;
    let mut ended = None;
    let mut consider = |found: (Millis, u8, Cause, bool)| {
        if first.is_none_or(|first| (found.0, found.1) < (first.0, first.1)) {
            first = Some(found);
        }
    };
    for output in endless {
        match output {
            Output::SegmentStarted { at, .. } => origin = *at,
            Output::Silence(silence) => {
                if let Some((limit, rank, cause)) = limit_of(p, silence)
                    && silence.reading >= limit
                {
                    // what it had read before this stretch is not read again
                    let before = silence.reading.since(silence.to.since(silence.from));
                    let due = silence.from.plus(limit.since(before));
                    let at = seen(due, origin, period.filter(|_| rank > 0));
                    if at <= silence.to {
                        consider((at, rank, cause, silence.end != SilenceEnd::Fired));
                    }
                }
            }
            terminal if ended.is_none() => {
                if let Some(verdict) = terminal.verdict() {
                    ended = Some((verdict.cause, verdict.at));
                }
            }
            _ => {}
        }
    }
    let ended = ended.unwrap();
    match first {
        // timers go before the event that ended the run; the caller's deadline goes before timers seen with it
        Some((at, _, cause, was_over))
            if at < ended.1
                || (at == ended.1 && (ended.0 != Cause::CallerDeadline || was_over)) =>
        {
            (cause, at)
        }
        _ => ended,
    }
}

/// The limit of that silence's clock, its rank among clocks seen together, and what it fires as.
fn limit_of(p: &Policy, silence: &Silence) -> Option<(Millis, u8, Cause)> {
    let first = match p.idle.first {
        First::After(first) => Some(first),
        _ => None,
    };
    let (limit, rank, cause) = match silence.clock {
        ClockClass::Deadline => return None,
        ClockClass::ResultGrace => (p.kill.result_grace, 1, Cause::CleanupForced),
        ClockClass::Total => (p.total.budget, 2, Cause::TotalTimeout),
        ClockClass::Ceiling => (p.idle.ceiling, 3, Cause::CeilingTimeout),
        // which tool it was is not told here, so this test gives all tools one limit
        ClockClass::Tool => (p.pause.tool_limit.default, 4, Cause::ToolTimeout),
        ClockClass::Compaction => (p.pause.compaction_limit, 4, Cause::CompactionTimeout),
        ClockClass::Backoff => (p.pause.backoff_budget, 5, Cause::BackoffTimeout),
        ClockClass::Startup => (p.idle.startup, 6, Cause::StartupTimeout),
        ClockClass::First => (first, 7, Cause::FirstTimeout),
        ClockClass::Idle => (p.idle.window, 7, Cause::IdleTimeout),
    };
    limit.map(|limit| (limit, rank, cause))
}
