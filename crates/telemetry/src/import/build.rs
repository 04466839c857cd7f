//! From events and waits to the runs that are replayed.
//!
//! | event of `DEFINITIONS.md` | replayed as (`*` carries `ACTIVITY`) |
//! |---|---|
//! | P that starts a run; M, K or R that opens one | `run_start` at 0; M, K, R follow as themselves |
//! | P or J while a run goes on | `other:steer`* |
//! | H | `other:hand_off` |
//! | M | `turn_start`* when a turn begins, then `message_end`* (message resolution) or `message_start`* (stream resolution) |
//! | call inside M, K | `tool_start`* |
//! | R | `tool_end`*; refused by a human: not executed |
//! | before the next turn, and where the last one is over | `turn_end`, at the turn's last output, call or result |
//! | E | `retry_start`*, with the announced delay |
//! | the next M or E after an E | `retry_end` in front of it, with the `retry` wait |
//! | C that counts | `compaction_end`* |
//! | any other C | `other:compaction` |
//! | A | `run_end` (aborted) |
//! | T | `run_end` (completed) |
//! | activity after A or T in the same run | `resume` in front of it |
//! | Q | `approval_start` and `approval_end` at their own records; both at the second where the file has them reversed |
//! | X | `status` with the `reported_ttft` wait, in front of the T that reports it |
//! | G | `other:gap_mark` at the time of the event before it |
//! | other dated records | `status`; `progress` where they report it; `other:NAME` when nobody knows the type |
//!
//! Each wait sits on the event in its row, once. Waits seen before any run is open go to a row of their own
//! ([`RunStatus::Outside`]).
//!
//! **Time.** File order is kept. An activity is placed at its stamp, or at the latest activity before it when its
//! stamp is earlier. Bookkeeping gives way: it is moved into the span between the activities around it, so that it
//! never shifts an activity. What was moved because its record steps back carries `CLOCK_STEP`.
//!
//! **End.** When control went back to the human, `run_end` follows the last activity and later bookkeeping belongs to
//! no run. When it did not (the log ends, or a new prompt came), there is no `run_end` and the bookkeeping stays.

use policysim_policy::{CallId, Kind, Outcome};
use policysim_sim::run::{
    EventFlags, Measured, RecordedEnd, Resolution, RunEvent, RunStatus, Symbol, Symbols, Wait,
    WaitKind,
};

use super::event::{Ev, What};
use super::waits::{Closed, Effect, Step};

/// The shortest part of a tool's wait in which a human may have answered a question, ms.
const SHORTEST_ANSWER_MS: u64 = 1_000;

/// How much longer than its stated execution an unasked tool's wait must be before a suspend is suspected, ms.
/// Calls that queue behind each other have been seen to wait for a minute and a half.
const SUSPEND_MS: u64 = 900_000;

/// A finished row of events, still without the names of its source.
#[derive(Debug)]
pub(super) struct Finished {
    /// Start, ms since the Unix epoch.
    pub(super) started_at_ms: i64,
    pub(super) status: RunStatus,
    pub(super) end: RecordedEnd,
    pub(super) end_ms: u64,
    pub(super) measured: Measured,
    /// The model of most turns.
    pub(super) model: Symbol,
    pub(super) events: Vec<RunEvent>,
}

/// The names of the `other` events that importers make themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherNames {
    steer: Symbol,
    hand_off: Symbol,
    compaction: Symbol,
    gap_mark: Symbol,
}

impl OtherNames {
    /// Interns them.
    pub(super) fn new(symbols: &mut Symbols) -> Self {
        Self {
            steer: symbols.intern("steer"),
            hand_off: symbols.intern("hand_off"),
            compaction: symbols.intern("compaction"),
            gap_mark: symbols.intern("gap_mark"),
        }
    }
}

/// When the log ends, and when its observation ended if somebody knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogEnd {
    pub(super) observed_until_ms: Option<i64>,
}

/// Builds the runs of one stream, one after the other.
#[derive(Debug)]
pub(super) struct Builder {
    resolution: Resolution,
    names: OtherNames,
    run: Option<Building>,
    outside: Vec<(i64, RunEvent)>,
}

/// A run under construction.
#[derive(Debug)]
struct Building {
    start: i64,
    events: Vec<RunEvent>,
    /// Time of the latest activity.
    active_ms: u64,
    /// Where the events after the last activity begin.
    tail: usize,
    /// How many events remain when the run ends in silence: up to the last activity, wait or explicit end.
    kept: usize,
    /// Where the turn under way would end: behind its last output, call or result.
    turn_end: Option<usize>,
    /// Set by an explicit end, until activity follows.
    ended: Option<RecordedEnd>,
    /// The last activity, if it is a failed call.
    last_failure: Option<Failure>,
    /// The failed call after which nothing has been tried yet.
    backoff: Option<Failure>,
    /// Whether a gap mark cut a stretch in which control was with the model, and no activity followed.
    cut: bool,
    models: Vec<(Symbol, u32)>,
}

/// A failed call.
#[derive(Clone, Copy, Debug)]
struct Failure {
    gave_up: bool,
    rate_limited: bool,
}

impl Builder {
    /// A builder for a stream whose output is stamped like that.
    pub(super) fn new(resolution: Resolution, names: OtherNames) -> Self {
        Self {
            resolution,
            names,
            run: None,
            outside: Vec::new(),
        }
    }

    /// Takes one event with what the state machine made of it; gives the rows that it finished.
    pub(super) fn take(&mut self, ev: &Ev, step: &Step) -> [Option<Finished>; 2] {
        let mut finished = [None, None];
        if let Some(closed) = &step.closes {
            finished[0] = self.finish(closed, None);
        }
        if step.opens {
            finished[1] = self.finish_outside();
            self.run = Some(Building::new(ev.t));
        }
        match &mut self.run {
            None => self.take_outside(ev, step),
            Some(run) => run.take(ev, step, self.resolution, self.names),
        }
        finished
    }

    /// The stream ends; gives the rows that are left.
    pub(super) fn end(
        &mut self,
        closed: Option<&Closed>,
        log_end: LogEnd,
    ) -> [Option<Finished>; 2] {
        [
            self.finish_outside(),
            closed.and_then(|closed| self.finish(closed, Some(log_end))),
        ]
    }

    fn finish(&mut self, closed: &Closed, log_end: Option<LogEnd>) -> Option<Finished> {
        self.run.take().map(|run| run.finish(closed, log_end))
    }

    /// Keeps the waits of an event that no run holds.
    fn take_outside(&mut self, ev: &Ev, step: &Step) {
        if let Some(wait) = step.retry {
            let mut event = RunEvent::new(0, Kind::RetryEnd);
            event.wait = Some(wait);
            event.flags = ev.flags;
            self.outside.push((ev.t, event));
        }
        if let Some(wait) = step.wait {
            let (kind, id) = match ev.what {
                What::Approval { id, .. } => (Kind::ApprovalEnd, id),
                What::Failed { .. } => (Kind::RetryStart, CallId::NONE),
                _ => (Kind::Status, CallId::NONE),
            };
            let mut event = RunEvent::new(0, kind);
            event.id = id;
            event.wait = Some(wait);
            event.flags = ev.flags;
            self.outside.push((ev.t, event));
        }
    }

    fn finish_outside(&mut self) -> Option<Finished> {
        let start = self.outside.first()?.0;
        let mut end_ms = 0;
        let events = self
            .outside
            .drain(..)
            .map(|(t, mut event)| {
                end_ms = since(start, t).max(end_ms);
                event.t_ms = end_ms;
                event
            })
            .collect();
        Some(Finished {
            started_at_ms: start,
            status: RunStatus::Outside,
            end: RecordedEnd::Unknown,
            end_ms,
            measured: Measured::default(),
            model: Symbol(0),
            events,
        })
    }
}

impl Building {
    fn new(start: i64) -> Self {
        let mut run = Self {
            start,
            events: Vec::new(),
            active_ms: 0,
            tail: 0,
            kept: 0,
            turn_end: None,
            ended: None,
            last_failure: None,
            backoff: None,
            cut: false,
            models: Vec::new(),
        };
        run.activity(start, RunEvent::new(0, Kind::RunStart));
        run
    }

    fn take(&mut self, ev: &Ev, step: &Step, resolution: Resolution, names: OtherNames) {
        if step.activity && self.ended.take().is_some() {
            self.note(ev.t, RunEvent::new(0, Kind::Resume));
        }
        let mut event = RunEvent::new(0, Kind::Other);
        event.flags = ev.flags;
        event.wait = step.wait;
        if step.activity {
            event.flags = event.flags.with(EventFlags::ACTIVITY);
            self.last_failure = None;
            self.cut = false;
        }
        match ev.what {
            What::Output { model, .. } => {
                if step.effect == Effect::Turn {
                    self.end_turn();
                }
                self.end_retry(ev, step.retry, resolution);
                self.output(ev.t, event, step.effect == Effect::Turn, model, resolution);
            }
            What::Failed { .. } => {
                self.end_retry(ev, step.retry, resolution);
                self.failed(ev, event);
            }
            What::Result { .. } => {
                self.result(ev, event, step);
                self.turn_goes_on();
            }
            What::Call(call) => {
                event.kind = Kind::ToolStart;
                event.id = call.id;
                event.name = call.name;
                if call.may_ask {
                    event.flags = event.flags.with(EventFlags::MAY_ASK);
                }
                self.activity(ev.t, event);
                self.turn_goes_on();
            }
            What::Prompt | What::Joined => {
                if step.effect == Effect::Steers {
                    event.name = names.steer;
                    self.activity(ev.t, event);
                }
            }
            What::Compacted if step.effect == Effect::Compacts => {
                event.kind = Kind::CompactionEnd;
                self.activity(ev.t, event);
            }
            What::Compacted => {
                event.name = names.compaction;
                self.note(ev.t, event);
            }
            What::HandOff => {
                event.name = names.hand_off;
                self.note(ev.t, event);
            }
            What::Aborted => self.aborted(ev.t, event),
            What::TaskEnded => self.task_ended(ev.t, event),
            What::Approval { id, whole, .. } => self.approval(ev.t, event, id, whole),
            What::FirstToken { .. } => {
                event.kind = Kind::Status;
                self.note(ev.t, event);
            }
            What::Gap => {
                self.cut |= step.effect == Effect::CutsHandOff;
                event.name = names.gap_mark;
                event.t_ms = self.last_ms();
                self.events.push(event);
            }
            What::Note { kind, id, name } => {
                event.kind = kind;
                event.id = id;
                event.name = name;
                self.note(ev.t, event);
            }
        }
    }

    fn output(
        &mut self,
        t: i64,
        mut event: RunEvent,
        turn: bool,
        model: Symbol,
        resolution: Resolution,
    ) {
        if turn {
            self.count_model(model);
            let mut start = event;
            start.kind = Kind::TurnStart;
            start.wait = None;
            self.activity(t, start);
        }
        event.kind = match resolution {
            Resolution::Message => Kind::MessageEnd,
            Resolution::Stream => Kind::MessageStart,
        };
        event.flags = event.flags.with(model_wait_flags(event.wait, resolution));
        self.activity(t, event);
        self.turn_end = Some(self.events.len());
    }

    fn result(&mut self, ev: &Ev, mut event: RunEvent, step: &Step) {
        let What::Result {
            id,
            name,
            rejected,
            native_ms,
        } = ev.what
        else {
            return;
        };
        event.kind = Kind::ToolEnd;
        event.id = id;
        event.name = step.call.map_or(name, |call| call.name);
        event.flags = event.flags.with(tool_wait_flags(step, native_ms));
        if event.flags.has(EventFlags::NATIVE_DURATION) {
            event.announced_ms = native_ms;
        }
        if rejected {
            event.flags = event.flags.with(EventFlags::NOT_EXECUTED);
        }
        self.activity(ev.t, event);
    }

    fn failed(&mut self, ev: &Ev, mut event: RunEvent) {
        let What::Failed {
            announced_ms,
            last,
            rate_limited,
        } = ev.what
        else {
            return;
        };
        event.kind = Kind::RetryStart;
        event.announced_ms = announced_ms;
        self.activity(ev.t, event);
        let failure = Failure {
            gave_up: last,
            rate_limited,
        };
        self.last_failure = Some(failure);
        self.backoff = Some(failure);
    }

    fn aborted(&mut self, t: i64, mut event: RunEvent) {
        if event.wait.is_some() {
            event.flags = event.flags.with(EventFlags::CENSORED);
        }
        event.kind = Kind::RunEnd;
        event.outcome = Some(Outcome::Aborted);
        self.activity(t, event);
        // The abort may have cut the turn; nothing says that it was over.
        self.turn_end = None;
        self.explicit_end(RecordedEnd::Aborted);
    }

    fn task_ended(&mut self, t: i64, mut event: RunEvent) {
        if self.ended.is_none() {
            self.end_turn();
            event.kind = Kind::RunEnd;
            event.outcome = Some(Outcome::Completed);
            self.note(t, event);
            self.explicit_end(RecordedEnd::Completed);
        }
    }

    fn approval(&mut self, t: i64, mut event: RunEvent, id: CallId, whole: bool) {
        event.id = id;
        if whole {
            let mut start = event;
            start.kind = Kind::ApprovalStart;
            start.wait = None;
            self.note(t, start);
        }
        event.kind = Kind::ApprovalEnd;
        self.note(t, event);
    }

    /// The turn under way, if there is one, reaches to here.
    fn turn_goes_on(&mut self) {
        if self.turn_end.is_some() {
            self.turn_end = Some(self.events.len());
        }
    }

    /// Ends the turn under way where it was last seen.
    fn end_turn(&mut self) {
        let Some(at) = self.turn_end.take() else {
            return;
        };
        let t_ms = self.events[at - 1].t_ms;
        self.events.insert(at, RunEvent::new(t_ms, Kind::TurnEnd));
        // It stands behind an activity, so in front of the tail.
        self.tail += 1;
        self.kept += 1;
    }

    /// Closes the backoff under way, with the wait since the failed call.
    fn end_retry(&mut self, ev: &Ev, retry: Option<Wait>, resolution: Resolution) {
        let backoff = self.backoff.take();
        if backoff.is_none() && retry.is_none() {
            return;
        }
        let mut event = RunEvent::new(0, Kind::RetryEnd);
        event.wait = retry;
        event.flags = ev.flags;
        if matches!(ev.what, What::Output { .. }) {
            event.flags = event.flags.with(model_wait_flags(retry, resolution));
        }
        if backoff.is_some_and(|failure| failure.rate_limited) {
            event.flags = event.flags.with(EventFlags::RATE_LIMITED);
        }
        self.note(ev.t, event);
    }

    /// Adds an activity at its own stamp, never before the latest one.
    fn activity(&mut self, t: i64, mut event: RunEvent) {
        let t_ms = since(self.start, t).max(self.active_ms);
        for earlier in &mut self.events[self.tail..] {
            if earlier.t_ms > t_ms {
                earlier.t_ms = t_ms;
                earlier.flags = earlier.flags.with(EventFlags::CLOCK_STEP);
            }
        }
        event.t_ms = t_ms;
        self.events.push(event);
        self.active_ms = t_ms;
        self.tail = self.events.len();
        self.kept = self.events.len();
    }

    /// Adds an event that is no activity: never before the event in front of it.
    fn note(&mut self, t: i64, mut event: RunEvent) {
        event.t_ms = since(self.start, t).max(self.last_ms());
        let holds_wait = event.wait.is_some();
        self.events.push(event);
        if holds_wait {
            self.kept = self.events.len();
        }
    }

    /// Time of the last event so far.
    fn last_ms(&self) -> u64 {
        self.events.last().map_or(0, |event| event.t_ms)
    }

    fn explicit_end(&mut self, end: RecordedEnd) {
        self.ended = Some(end);
        self.kept = self.events.len();
        self.backoff = None;
    }

    fn count_model(&mut self, model: Symbol) {
        match self.models.iter_mut().find(|(name, _)| *name == model) {
            Some((_, n)) => *n += 1,
            None => self.models.push((model, 1)),
        }
    }

    /// The model of most turns, the earliest of several; unnamed turns count only when there are no others.
    fn model(&self) -> Symbol {
        let mut best = (Symbol(0), 0);
        for &(model, n) in &self.models {
            if model != Symbol(0) && n > best.1 {
                best = (model, n);
            }
        }
        best.0
    }

    fn finish(mut self, closed: &Closed, log_end: Option<LogEnd>) -> Finished {
        let end = self.recorded_end(closed, log_end.is_some());
        let open = matches!(
            end,
            RecordedEnd::OpenInModel | RecordedEnd::OpenInTool | RecordedEnd::Unknown
        );
        if !closed.in_tool {
            self.end_turn();
        }
        if !open {
            self.events.truncate(self.kept);
            if self.ended.is_none() {
                self.say_end(end);
            }
        }
        let mut end_ms = self.last_ms();
        if let Some(LogEnd {
            observed_until_ms: Some(until),
        }) = log_end
            && open
        {
            end_ms = end_ms.max(since(self.start, until));
        }
        Finished {
            started_at_ms: self.start,
            status: if closed.measured.turns > 0 {
                RunStatus::Run
            } else {
                RunStatus::Unanswered
            },
            end,
            end_ms,
            measured: closed.measured,
            model: self.model(),
            events: self.events,
        }
    }

    /// How the record says the run ended.
    fn recorded_end(&self, closed: &Closed, log_ends: bool) -> RecordedEnd {
        if let Some(end) = self.ended {
            return end;
        }
        if self.last_failure.is_some_and(|failure| failure.gave_up) && !closed.in_tool {
            return RecordedEnd::Failed;
        }
        match (log_ends, closed.in_tool, closed.in_model || self.cut) {
            (true, true, _) => RecordedEnd::OpenInTool,
            (true, false, true) if !self.cut => RecordedEnd::OpenInModel,
            (_, false, false) if self.last_failure.is_some() => RecordedEnd::Failed,
            (_, false, false) => RecordedEnd::Completed,
            _ => RecordedEnd::Unknown,
        }
    }

    /// Puts `run_end` after what is kept.
    fn say_end(&mut self, end: RecordedEnd) {
        let mut event = RunEvent::new(self.last_ms(), Kind::RunEnd);
        event.outcome = Some(if end == RecordedEnd::Failed {
            Outcome::Failed
        } else {
            Outcome::Completed
        });
        if self
            .last_failure
            .is_some_and(|failure| failure.rate_limited)
        {
            event.flags = EventFlags::RATE_LIMITED;
        }
        self.events.push(event);
    }
}

/// Marks of a wait for the model.
fn model_wait_flags(wait: Option<Wait>, resolution: Resolution) -> EventFlags {
    let Some(wait) = wait.filter(|_| resolution == Resolution::Message) else {
        return EventFlags::default();
    };
    if wait.kind == WaitKind::PreToken && wait.ms == 0 {
        // A whole answer cannot be written in the very millisecond in which it was asked for.
        return EventFlags::UPPER_BOUND.with(EventFlags::COLLAPSED_STAMPS);
    }
    EventFlags::UPPER_BOUND
}

/// Marks of a tool's wait.
///
/// `AMBIGUOUS_APPROVAL`: the format records no approvals, the call's mode may have asked (the translator says so),
/// and the part of the wait that is not stated execution is long enough for an answer. `SUSPECTED_SUSPEND`: nobody can
/// have been asked, and yet the wait is a quarter of an hour longer than the stated execution.
fn tool_wait_flags(step: &Step, native_ms: Option<u64>) -> EventFlags {
    let mut flags = EventFlags::default();
    let (Some(wait), Some(call)) = (step.wait, step.call) else {
        return flags;
    };
    let native_ms = native_ms.filter(|&native| native <= wait.ms);
    if native_ms.is_some() {
        flags = flags.with(EventFlags::NATIVE_DURATION);
    }
    if wait.kind != WaitKind::Tool {
        return flags;
    }
    let beside_ms = wait.ms - native_ms.unwrap_or(0);
    if call.may_ask {
        if beside_ms >= SHORTEST_ANSWER_MS {
            flags = flags.with(EventFlags::AMBIGUOUS_APPROVAL);
        }
    } else if native_ms.is_some() && beside_ms >= SUSPEND_MS {
        flags = flags.with(EventFlags::SUSPECTED_SUSPEND);
    }
    flags
}

/// From `start` to `t`; 0 when `t` is earlier.
fn since(start: i64, t: i64) -> u64 {
    u64::try_from(t - start).unwrap_or(0)
}
