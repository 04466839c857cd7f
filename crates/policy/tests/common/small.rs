//! The presets with windows of a few milliseconds, and the events that each tells apart.

use policysim_policy::{
    CallId, Event, First, Kind, Millis, Outcome, PhaseScope, Policy, Poll, TurnStop, Waits, presets,
};

/// A preset whose limits are scaled to single digits, in the order of the real ones.
pub(crate) fn scaled(name: &str) -> Policy {
    let mut p = presets::find(name).unwrap();
    let set = |limit: &mut Option<Millis>, ms: u64| {
        if limit.is_some() {
            *limit = Some(Millis::new(ms));
        }
    };
    // the sub-agent's order is window < ceiling < first, elsewhere window < total
    set(&mut p.idle.window, 3);
    set(&mut p.idle.ceiling, 5);
    set(&mut p.idle.throttle, 2);
    set(&mut p.total.budget, 7);
    if let First::After(first) = &mut p.idle.first {
        *first = Millis::new(if p.idle.ceiling.is_some() { 7 } else { 3 });
    }
    if let Poll::Every(period) = &mut p.detect.poll {
        *period = Millis::new(2);
    }
    p
}

/// What a kind does under a policy: two kinds with the same signature are alike.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Signature {
    sets: (bool, bool, bool),
    does: Option<Kind>,
}

/// The signature of `kind` under `p`.
pub(crate) fn signature(p: &Policy, kind: Kind) -> Signature {
    let rearm = p.idle.rearm.has(kind);
    let sets = (
        rearm,
        rearm && p.idle.progress.resolve(&p.idle.rearm).has(kind),
        rearm && p.idle.throttle.is_some() && p.idle.throttled.resolve(&p.idle.rearm).has(kind),
    );
    let per_call = p.idle.phase == PhaseScope::ModelCall
        && (p.idle.first != First::SameAsWindow
            || p.idle.ceiling.is_some()
            || p.idle.throttle.is_some()
            || p.idle.window.is_some());
    let opens = |waits: Waits, limited: bool| waits != Waits::None || limited || per_call;
    let human = opens(p.pause.human, p.idle.grace_cycles > 0);
    let tool = opens(
        p.pause.tool,
        p.pause.tool_limit.default.is_some() || p.idle.grace_cycles > 0,
    );
    let counts = p.turns.cap.is_some();
    let after_tools = counts && p.turns.stop == TurnStop::AfterTools;
    let matters = match kind {
        Kind::RunStart | Kind::RunEnd | Kind::Resume => true,
        Kind::Spawn | Kind::HostSuspend | Kind::HostResume => {
            // frame, never evidence: alike among themselves unless startup tells the spawn apart
            let does = if kind == Kind::Spawn && p.idle.startup.is_some() {
                Kind::Spawn
            } else {
                Kind::HostResume
            };
            return Signature {
                sets: (false, false, false),
                does: Some(does),
            };
        }
        Kind::TurnStart => counts || (p.pause.turn_closes_tools && tool),
        Kind::TurnEnd => after_tools,
        Kind::ToolStart => tool,
        Kind::ToolEnd => tool || after_tools,
        Kind::ApprovalStart | Kind::ApprovalEnd | Kind::HumanWaitStart | Kind::HumanWaitEnd => {
            human
        }
        Kind::WaitStart | Kind::WaitEnd => opens(p.pause.child, false),
        Kind::RetryStart | Kind::RetryEnd => {
            opens(p.pause.backoff, p.pause.backoff_budget.is_some())
        }
        Kind::CompactionStart | Kind::CompactionEnd => {
            opens(p.pause.compaction, p.pause.compaction_limit.is_some())
        }
        Kind::MessageEnd => per_call,
        Kind::Result => p.kill.result_grace.is_some(),
        _ => false,
    };
    // An approval is a human wait of another id, see `event_of`; so is a backoff or a compaction a wait for a
    // child, where the same clocks wait for it and nothing limits it.
    let as_child = |waits: Waits, limit: Option<Millis>| waits == p.pause.child && limit.is_none();
    let backoff = as_child(p.pause.backoff, p.pause.backoff_budget);
    let compaction = as_child(p.pause.compaction, p.pause.compaction_limit);
    let does = matters.then_some(match kind {
        Kind::ApprovalStart => Kind::HumanWaitStart,
        Kind::ApprovalEnd => Kind::HumanWaitEnd,
        Kind::RetryStart if backoff => Kind::WaitStart,
        Kind::RetryEnd if backoff => Kind::WaitEnd,
        Kind::CompactionStart if compaction => Kind::WaitStart,
        Kind::CompactionEnd if compaction => Kind::WaitEnd,
        kind => kind,
    });
    Signature { sets, does }
}

/// One event per class of kinds that the policy treats alike, the first kind of each class.
pub(crate) fn representatives(p: &Policy) -> Vec<Kind> {
    let mut seen = std::collections::BTreeSet::new();
    Kind::ALL
        .into_iter()
        .filter(|&kind| seen.insert(signature(p, kind)))
        .collect()
}

/// The representative of `kind`'s class.
pub(crate) fn representative(p: &Policy, kind: Kind) -> Kind {
    let wanted = signature(p, kind);
    Kind::ALL
        .into_iter()
        .find(|&kind| signature(p, kind) == wanted)
        .unwrap()
}

/// An event of that kind, with an id by what it `was`: kinds whose things differ only by name are one class.
pub(crate) fn event_of(kind: Kind, was: Kind) -> Event<'static> {
    let id = match was {
        Kind::ApprovalStart | Kind::ApprovalEnd => 9,
        Kind::RetryStart | Kind::RetryEnd => 8,
        Kind::CompactionStart | Kind::CompactionEnd => 7,
        _ => 1,
    };
    Event::new(kind).with_id(CallId::new(id))
}

/// The events that a sequence is made of: a representative per class, and for kinds that carry more than
/// their kind one event per value that the policy tells apart. The function gives the event at an instant.
pub(crate) fn alphabet(p: &Policy) -> Vec<(String, Event<'static>, Option<u64>)> {
    let mut symbols = Vec::new();
    let mut add = |what: &str, event: Event<'static>| {
        symbols.push((format!("{}{what}", event.kind), event, None));
    };
    let after_tools = p.turns.cap.is_some() && p.turns.stop == TurnStop::AfterTools;
    let invocations = p.total.caller_deadline == policysim_policy::CallerDeadline::Replaces;
    for kind in representatives(p) {
        let plain = event_of(kind, kind);
        match kind {
            Kind::RunEnd => {
                if p.turns.cap.is_some() {
                    // a marked run that fails is no turn limit
                    add(":failed", Event::new(kind).with_outcome(Outcome::Failed));
                }
                add("", Event::new(kind));
                add(
                    ":completed",
                    Event::new(kind).with_outcome(Outcome::Completed),
                );
            }
            Kind::RunStart => {
                add("", Event::new(kind));
                if invocations && p.idle.window.is_some() {
                    let mut own = Event::new(kind);
                    own.budget = Some(Millis::new(5));
                    add(":budget", own);
                }
            }
            Kind::ToolStart => {
                add("", plain);
                if p.pause.tool != Waits::None {
                    add(":2", plain.with_id(CallId::new(2)));
                }
                if p.idle.grace_cycles > 0 {
                    let mut asks = plain;
                    asks.may_ask = true;
                    add(":may_ask", asks);
                }
            }
            Kind::ToolEnd => {
                add("", plain);
                if p.pause.tool != Waits::None {
                    add(":2", plain.with_id(CallId::new(2)));
                }
                if after_tools {
                    let mut blocked = plain;
                    blocked.executed = false;
                    add(":not_executed", blocked);
                }
            }
            Kind::HumanWaitStart | Kind::HumanWaitEnd if p.pause.human != Waits::None => {
                add("", plain);
                add(":2", plain.with_id(CallId::new(2)));
            }
            _ => add("", plain),
        }
    }
    if p.pause.human != Waits::None && p.detect.poll != Poll::Exact {
        let mut flag = Event::new(Kind::ToolUpdate);
        flag.suspends = true;
        add(":suspends", flag);
    }
    if invocations {
        symbols.push((
            "run_start:deadline".to_owned(),
            Event::new(Kind::RunStart),
            Some(4),
        ));
    }
    symbols
}
