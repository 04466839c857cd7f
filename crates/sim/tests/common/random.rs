//! Random policies over every axis and random runs over every kind, from a seed.

use policysim_policy::{
    Adaptive, ByName, CallId, Estimator, First, Kind, KindSet, KindsOrRearm, Millis, Outcome,
    Overlap, PhaseScope, Policy, Poll, Scope, ToolLimit, TurnStop, Waits, presets,
};
use policysim_sim::run::{
    EventFlags, Fleet, RecordedEnd, Run, RunEvent, RunStatus, Symbols, Wait, WaitKind,
};

/// A multiplicative congruential generator: the same numbers for ever.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draw = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
        for _ in 0..4 {
            draw.below(2);
        }
        draw
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }

    /// Off once in three times, else up to `most`.
    pub(crate) fn limit(&mut self, most: u64) -> Option<Millis> {
        (!self.one_in(3)).then(|| Millis::new(1 + self.below(most)))
    }
}

fn kinds(draw: &mut Draw) -> KindSet {
    match draw.below(6) {
        0..=2 => KindSet::ALL,
        3 => {
            let kinds: Vec<Kind> = (0..draw.below(12)).map(|_| draw.of(&Kind::ALL)).collect();
            KindSet::of_kinds(&kinds)
        }
        4 => draw.of(&[KindSet::NONE, KindSet::OUTPUT, KindSet::SUBSTANTIVE]),
        _ => KindSet::from_items(["all", "-other:x", "-status"]).unwrap(),
    }
}

fn some_kinds(draw: &mut Draw) -> KindsOrRearm {
    if draw.one_in(2) {
        KindsOrRearm::Rearm
    } else {
        KindsOrRearm::Kinds(kinds(draw))
    }
}

/// Everything but numbers.
pub(crate) fn shaped(draw: &mut Draw) -> Policy {
    let mut p = if draw.one_in(4) {
        draw.of(&presets::PRESETS).policy()
    } else {
        let mut p = Policy::default();
        p.idle.rearm = kinds(draw);
        p.idle.progress = some_kinds(draw);
        p.idle.throttled = some_kinds(draw);
        p.idle.phase = draw.of(&[PhaseScope::ModelCall, PhaseScope::Run]);
        for waits in [
            &mut p.pause.tool,
            &mut p.pause.human,
            &mut p.pause.child,
            &mut p.pause.backoff,
            &mut p.pause.compaction,
        ] {
            *waits = draw.of(&[Waits::All, Waits::Idle, Waits::None]);
        }
        p.pause.human_overlap = draw.of(&[Overlap::Set, Overlap::Refuse]);
        p.pause.turn_closes_tools = draw.one_in(2);
        if draw.one_in(2) {
            p.pause.human_tools = ByName::new([("ask", ())]);
        }
        p.total.scope = draw.of(&[Scope::Run, Scope::Segment]);
        p.turns.scope = draw.of(&[Scope::Run, Scope::Segment]);
        p.turns.stop = draw.of(&[TurnStop::AfterTools, TurnStop::NextStart]);
        p
    };
    p.idle.throttle = if draw.one_in(3) {
        Some(Millis::new(1 + draw.below(6)))
    } else {
        None
    };
    if draw.one_in(40) {
        p.idle.adaptive = Some(Adaptive {
            estimator: Estimator::Rto {
                k: 2,
                granularity: Millis::new(1),
            },
            min_samples: 2,
            floor: Millis::new(2),
            cap: None,
        });
    }
    p
}

/// `shape` with numbers of a few milliseconds on every axis.
pub(crate) fn numbered(draw: &mut Draw, shape: &Policy) -> Policy {
    let mut p = shape.clone();
    p.idle.window = draw.limit(9);
    p.idle.first = match draw.below(4) {
        0 => First::Off,
        1 => First::After(Millis::new(1 + draw.below(12))),
        _ => First::SameAsWindow,
    };
    p.idle.ceiling = draw.limit(20);
    p.idle.startup = draw.limit(30);
    p.idle.grace_cycles = u8::from(draw.one_in(4));
    p.pause.tool_limit = match draw.below(3) {
        0 => ToolLimit::default(),
        _ => ToolLimit {
            default: draw.limit(12),
            by_name: ByName::new([("bash", draw.limit(8))]),
        },
    };
    p.pause.compaction_limit = draw.limit(8);
    p.pause.backoff_budget = draw.limit(10);
    p.total.budget = draw.limit(60);
    p.turns.cap = draw.one_in(2).then(|| 1 + draw.below(4) as u32);
    if draw.one_in(5) {
        p.turns.by_role = ByName::new([("explorer", draw.one_in(2).then_some(2))]);
    }
    p.kill.result_grace = draw.limit(8);
    p.detect.poll = match draw.below(6) {
        0 => Poll::Every(Millis::new(1 + draw.below(5))),
        1 => Poll::Tenth,
        _ => Poll::Exact,
    };
    p
}

fn event(draw: &mut Draw, t_ms: u64, symbols: &mut Symbols) -> RunEvent {
    const OFTEN: [Kind; 12] = [
        Kind::ToolStart,
        Kind::ToolEnd,
        Kind::HumanWaitStart,
        Kind::HumanWaitEnd,
        Kind::TurnStart,
        Kind::TurnEnd,
        Kind::MessageUpdate,
        Kind::MessageEnd,
        Kind::RetryStart,
        Kind::RetryEnd,
        Kind::Keepalive,
        Kind::MessageUpdate,
    ];
    let kind = if draw.one_in(2) {
        draw.of(&Kind::ALL)
    } else {
        draw.of(&OFTEN)
    };
    let mut event = RunEvent::new(t_ms, kind);
    event.id = CallId::new(draw.below(3));
    event.name = symbols.intern(["", "bash", "ask", "x"][draw.below(4) as usize]);
    if matches!(kind, Kind::RetryStart | Kind::HumanWaitStart) && draw.one_in(2) {
        event.announced_ms = Some(draw.below(8));
    }
    if kind == Kind::RunEnd && draw.one_in(3) {
        event.outcome = Some(draw.of(&[Outcome::Aborted, Outcome::Completed, Outcome::Failed]));
    }
    for (flag, rarity) in [
        (EventFlags::NOT_EXECUTED, 4),
        (EventFlags::MAY_ASK, 4),
        (EventFlags::SUSPENDS, 12),
    ] {
        if draw.one_in(rarity) {
            event.flags = event.flags.with(flag);
        }
    }
    if kind == Kind::ToolEnd && draw.one_in(3) {
        event.wait = Some(Wait {
            kind: draw.of(&[WaitKind::Human, WaitKind::Tool]),
            ms: draw.below(9),
        });
    }
    event
}

/// Runs of a few dozen events, milliseconds apart.
pub(crate) fn fleet(draw: &mut Draw, runs: u64) -> Fleet {
    let mut fleet = Fleet::default();
    for number in 0..runs {
        let mut t_ms = 0;
        let events: Vec<RunEvent> = (0..draw.below(50))
            .map(|_| {
                t_ms += match draw.below(7) {
                    0..=2 => draw.below(2),
                    3..=5 => 1 + draw.below(4),
                    _ => 3 + draw.below(12),
                };
                event(draw, t_ms, &mut fleet.symbols)
            })
            .collect();
        let run = Run {
            name: format!("r#{number}").into(),
            session: format!("s{}", draw.below(5)).into(),
            harness: ["a", "b"][draw.below(2) as usize].into(),
            model: ["m", "n", ""][draw.below(3) as usize].into(),
            role: ["", "explorer"][draw.below(2) as usize].into(),
            started_at_ms: draw.below(5) as i64 * 40_000_000,
            status: if draw.one_in(20) {
                RunStatus::Unanswered
            } else {
                RunStatus::Run
            },
            end: draw.of(&RecordedEnd::ALL),
            end_ms: t_ms + draw.below(15),
            events,
            ..Run::default()
        };
        fleet.runs.push(run);
    }
    fleet
}
