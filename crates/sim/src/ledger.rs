//! Where a run's time went: every millisecond of its span in exactly one account.

use policysim_policy::{CallId, Kind};

use crate::run::{Run, RunEvent, WaitKind};

/// Milliseconds per account; they sum to the run's span.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ledger {
    /// The model had control.
    pub model_ms: u64,
    /// At least one tool call (or a wait for a child) was open.
    pub tool_ms: u64,
    /// A human was asked.
    pub human_ms: u64,
    /// A provider backoff was open.
    pub retry_ms: u64,
    /// The context was being compacted.
    pub compaction_ms: u64,
    /// The host was asleep.
    pub suspend_ms: u64,
    /// The run had ended and was not resumed yet, or the record does not say.
    pub unknown_ms: u64,
}

impl Ledger {
    /// The span: all accounts together.
    pub const fn span_ms(&self) -> u64 {
        self.model_ms
            + self.tool_ms
            + self.human_ms
            + self.retry_ms
            + self.compaction_ms
            + self.suspend_ms
            + self.unknown_ms
    }

    /// Active time: the span without what waited for humans, slept, or lay between segments.
    pub const fn active_ms(&self) -> u64 {
        self.model_ms + self.tool_ms + self.retry_ms + self.compaction_ms
    }
}

/// What is open at an instant, as counts by account.
#[derive(Clone, Debug, Default)]
struct Open {
    tools: u32,
    humans: u32,
    retries: u32,
    compactions: u32,
    suspended: bool,
    ended: bool,
    /// Calls that are a question to a human, as the wait that ends them says.
    questions: Vec<CallId>,
}

impl Open {
    fn new(run: &Run) -> Self {
        let asks = |event: &&RunEvent| {
            event.kind == Kind::ToolEnd
                && event.wait.is_some_and(|wait| wait.kind == WaitKind::Human)
        };
        Self {
            questions: run
                .events
                .iter()
                .filter(asks)
                .map(|event| event.id)
                .collect(),
            ..Self::default()
        }
    }

    fn apply(&mut self, event: &RunEvent) {
        let question = || self.questions.contains(&event.id);
        match event.kind {
            Kind::ToolStart if question() => self.humans += 1,
            Kind::ToolEnd if question() => self.humans = self.humans.saturating_sub(1),
            Kind::ToolStart | Kind::WaitStart => self.tools += 1,
            Kind::ToolEnd | Kind::WaitEnd => self.tools = self.tools.saturating_sub(1),
            Kind::HumanWaitStart | Kind::ApprovalStart => self.humans += 1,
            Kind::HumanWaitEnd | Kind::ApprovalEnd => self.humans = self.humans.saturating_sub(1),
            Kind::RetryStart => self.retries = 1,
            Kind::RetryEnd => self.retries = 0,
            Kind::CompactionStart => self.compactions = 1,
            Kind::CompactionEnd => self.compactions = 0,
            Kind::HostSuspend => self.suspended = true,
            Kind::HostResume => self.suspended = false,
            Kind::RunEnd | Kind::RunStart | Kind::Resume => {
                *self = Self {
                    ended: event.kind == Kind::RunEnd && event.outcome.is_some(),
                    questions: std::mem::take(&mut self.questions),
                    ..Self::default()
                };
            }
            _ => {}
        }
    }

    /// The account of this state. A wait inside another belongs to the rarer, outer cause: a
    /// sleeping host before a human, a human before the tool that asks him.
    fn account<'a>(&self, ledger: &'a mut Ledger) -> &'a mut u64 {
        if self.suspended {
            &mut ledger.suspend_ms
        } else if self.ended {
            &mut ledger.unknown_ms
        } else if self.humans > 0 {
            &mut ledger.human_ms
        } else if self.tools > 0 {
            &mut ledger.tool_ms
        } else if self.compactions > 0 {
            &mut ledger.compaction_ms
        } else if self.retries > 0 {
            &mut ledger.retry_ms
        } else {
            &mut ledger.model_ms
        }
    }
}

/// The ledger of `run` from its start to `until_ms` (its whole record with `run.end_ms`).
///
/// ```
/// use policysim_policy::Kind;
/// use policysim_sim::{ledger::ledger, run::{Run, RunEvent}};
/// let events = [(0, Kind::RunStart), (5, Kind::ToolStart), (25, Kind::ToolEnd), (30, Kind::RunEnd)];
/// let run = Run {
///     events: events.into_iter().map(|(t, kind)| RunEvent::new(t, kind)).collect(),
///     end_ms: 30,
///     ..Run::default()
/// };
/// let spent = ledger(&run, run.end_ms);
/// assert_eq!((spent.model_ms, spent.tool_ms, spent.span_ms()), (10, 20, 30));
/// ```
pub fn ledger(run: &Run, until_ms: u64) -> Ledger {
    let mut spent = Ledger::default();
    let mut open = Open::new(run);
    let mut now_ms = 0;
    for event in &run.events {
        if event.t_ms >= until_ms {
            break;
        }
        *open.account(&mut spent) += event.t_ms - now_ms;
        now_ms = event.t_ms;
        open.apply(event);
    }
    *open.account(&mut spent) += until_ms.saturating_sub(now_ms);
    spent
}
