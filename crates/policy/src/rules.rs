//! A policy as a watchdog goes by it: every default filled in, every look-up prepared.

use crate::adaptive::Adaptive;
use crate::open::Classes;
use crate::{
    ByName, CallerDeadline, First, KindSet, Millis, OpenClass, Overlap, PhaseScope, Policy, Poll,
    Scope, Setup, ToolLimit, TurnStop, Waits, Words,
};

/// The axes that decide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Rules {
    pub(crate) window: Option<Millis>,
    pub(crate) first: First,
    pub(crate) rearm: KindSet,
    pub(crate) progress: KindSet,
    pub(crate) phase: PhaseScope,
    pub(crate) throttle: Option<Millis>,
    pub(crate) throttled: KindSet,
    pub(crate) ceiling: Option<Millis>,
    pub(crate) startup: Option<Millis>,
    pub(crate) grace_cycles: u8,
    pub(crate) adaptive: Option<Adaptive>,
    /// The classes that the idle clocks wait for.
    pub(crate) stops_idle: Classes,
    /// The classes that every clock waits for.
    pub(crate) stops_all: Classes,
    pub(crate) overlap: Overlap,
    pub(crate) turn_closes_tools: bool,
    /// Whether what is open moves any clock but idle: its limits, or pauses of every clock.
    pub(crate) moves_hard_clocks: bool,
    pub(crate) tool_limit: ToolLimit,
    pub(crate) compaction_limit: Option<Millis>,
    pub(crate) backoff_budget: Option<Millis>,
    pub(crate) human_tools: ByName<()>,
    pub(crate) budget: Option<Millis>,
    pub(crate) budget_scope: Scope,
    pub(crate) caller_deadline: CallerDeadline,
    pub(crate) deadline: Option<Millis>,
    pub(crate) cap: Option<u32>,
    pub(crate) turns_scope: Scope,
    pub(crate) turn_stop: TurnStop,
    pub(crate) poll: Poll,
    pub(crate) result_grace: Option<Millis>,
    pub(crate) words: &'static Words,
}

impl Rules {
    pub(crate) fn new(policy: &Policy, setup: &Setup<'_>) -> Self {
        let (idle, pause) = (&policy.idle, &policy.pause);
        let waits = [
            (OpenClass::Tool, pause.tool),
            (OpenClass::Human, pause.human),
            (OpenClass::Child, pause.child),
            (OpenClass::Backoff, pause.backoff),
            (OpenClass::Compaction, pause.compaction),
        ];
        let classes = |test: fn(Waits) -> bool| {
            waits
                .into_iter()
                .filter(|(_, waits)| test(*waits))
                .fold(Classes::default(), |set, (class, _)| set.with(class))
        };
        Self {
            window: idle.window,
            first: idle.first,
            rearm: idle.rearm.clone(),
            progress: idle.progress.resolve(&idle.rearm).clone(),
            phase: idle.phase,
            throttle: idle.throttle,
            throttled: idle.throttled.resolve(&idle.rearm).clone(),
            ceiling: idle.ceiling,
            startup: idle.startup,
            grace_cycles: idle.grace_cycles,
            adaptive: idle.adaptive,
            stops_idle: classes(|waits| waits != Waits::None),
            stops_all: classes(|waits| waits == Waits::All),
            overlap: pause.human_overlap,
            turn_closes_tools: pause.turn_closes_tools,
            moves_hard_clocks: waits.into_iter().any(|(_, waits)| waits == Waits::All)
                || pause.tool_limit != ToolLimit::default()
                || pause.compaction_limit.is_some()
                || pause.backoff_budget.is_some()
                || idle.ceiling.is_some(),
            tool_limit: pause.tool_limit.clone(),
            compaction_limit: pause.compaction_limit,
            backoff_budget: pause.backoff_budget,
            human_tools: pause.human_tools.clone(),
            budget: policy.total.budget,
            budget_scope: policy.total.scope,
            caller_deadline: policy.total.caller_deadline,
            deadline: setup.deadline,
            cap: policy.turns.cap_of(setup.role),
            turns_scope: policy.turns.scope,
            turn_stop: policy.turns.stop,
            poll: policy.detect.poll,
            result_grace: policy.kill.result_grace,
            words: policy.words,
        }
    }

    /// Whether first window, ceiling and throttle count per model call, not per segment.
    pub(crate) fn per_call(&self) -> bool {
        self.phase == PhaseScope::ModelCall
    }

    /// Whether a suspend flag stops idle.
    pub(crate) fn heeds_suspend(&self) -> bool {
        self.stops_idle.has(OpenClass::Human)
    }

    /// Whether the total waits between segments: the time there counts as a human wait.
    pub(crate) fn gaps_are_human(&self) -> bool {
        self.stops_all.has(OpenClass::Human)
    }

    /// Whether the total carries on over segments.
    pub(crate) fn budget_spans_run(&self) -> bool {
        self.budget_scope == Scope::Run
    }

    /// Whether a call of the tool `name` is a human wait.
    pub(crate) fn is_human_tool(&self, name: &str) -> bool {
        self.human_tools.find(name).is_some()
    }
}
