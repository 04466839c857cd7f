//! The rules of the reference once more, as plainly as possible: one millisecond at a time, every clock a
//! counter that goes up. Written from the text, not from the core; it reads policies and events and nothing else.

use policysim_policy::{
    CallerDeadline, Cause, Event, First, Kind, Outcome, Overlap, PhaseScope, Policy, Poll, Scope,
    TurnStop, Waits,
};

/// What a thing is, as far as pauses go.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Sort {
    Tool,
    Human,
    Child,
    Backoff,
    Compaction,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Thing {
    start: Kind,
    id: u64,
    sort: Sort,
    limit: Option<u64>,
    /// How long it has been open, as far as its limit counts.
    read: u64,
    /// Milliseconds until it closes itself.
    left: Option<u64>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Silence {
    read: u64,
    limit: u64,
    first: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Life {
    Alive,
    Ended,
    Dead,
}

/// A run under a policy, millisecond by millisecond.
#[allow(
    clippy::struct_excessive_bools,
    reason = "a plain model: one flag per fact of the text"
)]
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Naive {
    pub(crate) t: u64,
    life: Life,
    pub(crate) verdict: Option<(Cause, u64)>,
    in_segment: bool,
    segment_start: u64,
    depth: u32,
    own_window: Option<u64>,
    limits_hold: bool,
    deadline: Option<u64>,
    things: Vec<Thing>,
    silence: Option<Silence>,
    ceiling: Option<u64>,
    startup: Option<u64>,
    total: Option<u64>,
    backoff: u64,
    since_result: Option<u64>,
    in_call: bool,
    nothing_yet: bool,
    spare: u8,
    throttle_age: u64,
    throttle_free: bool,
    turns: u32,
    calls: u32,
    asking: u32,
    marked: bool,
}

fn waits(p: &Policy, sort: Sort) -> Waits {
    match sort {
        Sort::Tool => p.pause.tool,
        Sort::Human => p.pause.human,
        Sort::Child => p.pause.child,
        Sort::Backoff => p.pause.backoff,
        Sort::Compaction => p.pause.compaction,
    }
}

fn opened_by(end: Kind) -> Option<Kind> {
    Some(match end {
        Kind::ToolEnd => Kind::ToolStart,
        Kind::ApprovalEnd => Kind::ApprovalStart,
        Kind::HumanWaitEnd => Kind::HumanWaitStart,
        Kind::WaitEnd => Kind::WaitStart,
        Kind::RetryEnd => Kind::RetryStart,
        Kind::CompactionEnd => Kind::CompactionStart,
        _ => return None,
    })
}

fn sort_of(start: Kind) -> Option<Sort> {
    Some(match start {
        Kind::ToolStart => Sort::Tool,
        Kind::ApprovalStart | Kind::HumanWaitStart => Sort::Human,
        Kind::WaitStart => Sort::Child,
        Kind::RetryStart => Sort::Backoff,
        Kind::CompactionStart => Sort::Compaction,
        _ => return None,
    })
}

fn ms(limit: Option<policysim_policy::Millis>) -> Option<u64> {
    limit.map(policysim_policy::Millis::as_u64)
}

impl Naive {
    pub(crate) fn new(p: &Policy, start: u64) -> Self {
        let mut run = Self {
            t: start,
            life: Life::Alive,
            verdict: None,
            in_segment: true,
            segment_start: start,
            depth: 0,
            own_window: None,
            limits_hold: true,
            deadline: None,
            things: Vec::new(),
            silence: None,
            ceiling: None,
            startup: None,
            total: None,
            backoff: 0,
            since_result: None,
            in_call: false,
            nothing_yet: false,
            spare: 0,
            throttle_age: 0,
            throttle_free: false,
            turns: 0,
            calls: 0,
            asking: 0,
            marked: false,
        };
        run.begin_segment(p, 0, None, None);
        run.total = p.total.budget.map(|_| 0);
        run.startup = p.idle.startup.map(|_| 0);
        run
    }

    /// Whether something open makes every clock wait, things of `but` aside.
    fn all_wait(&self, p: &Policy, but: Option<Sort>) -> bool {
        self.things
            .iter()
            .any(|thing| Some(thing.sort) != but && waits(p, thing.sort) == Waits::All)
    }

    fn idle_waits(&self, p: &Policy) -> bool {
        self.things
            .iter()
            .any(|thing| waits(p, thing.sort) != Waits::None)
    }

    fn total_counts(&self, p: &Policy) -> bool {
        if self.in_segment {
            !self.all_wait(p, None)
        } else {
            p.total.scope == Scope::Run && p.pause.human != Waits::All
        }
    }

    fn backoff_counts(&self, p: &Policy) -> bool {
        self.things.iter().any(|thing| thing.sort == Sort::Backoff)
            && !self.all_wait(p, Some(Sort::Backoff))
    }

    /// How often the driver looks, if not always.
    fn period(&self, p: &Policy) -> Option<u64> {
        match p.detect.poll {
            Poll::Exact => None,
            Poll::Every(period) => Some(period.as_u64()),
            Poll::Tenth => self.own_window.map(|window| match window / 10 {
                0..=1 => 2,
                10_001.. => 10_000,
                tenth => tenth,
            }),
        }
    }

    /// One millisecond passes, then whatever is due happens.
    fn tick(&mut self, p: &Policy) {
        self.t += 1;
        if self.life == Life::Dead {
            return;
        }
        let total_counts = self.total_counts(p);
        if let (Some(read), true) = (&mut self.total, total_counts) {
            *read += 1;
        }
        if self.in_segment {
            let backoff_counts = self.backoff_counts(p);
            let waiting: Vec<bool> = self
                .things
                .iter()
                .map(|thing| self.all_wait(p, Some(thing.sort)))
                .collect();
            if let Some(silence) = &mut self.silence {
                silence.read += 1;
            }
            for read in [&mut self.ceiling, &mut self.startup, &mut self.since_result]
                .into_iter()
                .flatten()
            {
                *read += 1;
            }
            if backoff_counts && p.pause.backoff_budget.is_some() {
                self.backoff += 1;
            }
            for (thing, waiting) in self.things.iter_mut().zip(waiting) {
                if thing.limit.is_some() && !waiting {
                    thing.read += 1;
                }
                if let Some(left) = &mut thing.left {
                    *left -= 1;
                }
            }
            if let Some(period) = p.idle.throttle {
                self.throttle_age = (self.throttle_age + 1).min(period.as_u64());
            }
        }
        self.due_now(p);
    }

    /// Everything that is due at this instant, in order.
    fn due_now(&mut self, p: &Policy) {
        while self.life == Life::Alive {
            let over = |read: Option<u64>, limit: Option<u64>| matches!((read, limit), (Some(read), Some(limit)) if read >= limit);
            let looks = self
                .period(p)
                .is_none_or(|period| (self.t - self.segment_start).is_multiple_of(period));
            let held = self.in_segment && self.limits_hold && looks;
            let total_over = self.total_counts(p) && over(self.total, ms(p.total.budget));
            if self.in_segment && self.deadline.is_some_and(|deadline| self.t >= deadline) {
                return self.die(Cause::CallerDeadline);
            }
            if held && over(self.since_result, ms(p.kill.result_grace)) {
                return self.die(Cause::CleanupForced);
            }
            if total_over && (held || (!self.in_segment && looks)) {
                return self.die(Cause::TotalTimeout);
            }
            if held && over(self.ceiling, ms(p.idle.ceiling)) {
                return self.die(Cause::CeilingTimeout);
            }
            if held
                && let Some(thing) = self.things.iter().find(|thing| {
                    over(Some(thing.read), thing.limit) && !self.all_wait(p, Some(thing.sort))
                })
            {
                return self.die(match thing.sort {
                    Sort::Compaction => Cause::CompactionTimeout,
                    _ => Cause::ToolTimeout,
                });
            }
            if held
                && self.backoff_counts(p)
                && over(Some(self.backoff), ms(p.pause.backoff_budget))
            {
                return self.die(Cause::BackoffTimeout);
            }
            if held && over(self.startup, ms(p.idle.startup)) {
                return self.die(Cause::StartupTimeout);
            }
            if held
                && let Some(silence) = self.silence
                && silence.read >= silence.limit
            {
                if self.spare == 0 {
                    return self.die(if silence.first {
                        Cause::FirstTimeout
                    } else {
                        Cause::IdleTimeout
                    });
                }
                self.spare -= 1;
                self.restart_silence(p);
                continue;
            }
            match self.things.iter().position(|thing| thing.left == Some(0)) {
                Some(i) => self.close(p, i),
                None => return,
            }
        }
    }

    fn die(&mut self, cause: Cause) {
        self.life = Life::Dead;
        self.verdict = Some((cause, self.t));
        self.forget();
    }

    /// A dead run is only its verdict, so that equal ends compare equal.
    fn forget(&mut self) {
        self.things.clear();
        self.silence = None;
    }

    fn begin_segment(
        &mut self,
        p: &Policy,
        depth: u32,
        budget: Option<u64>,
        deadline: Option<u64>,
    ) {
        self.in_segment = true;
        self.segment_start = self.t;
        self.depth = depth;
        self.own_window = budget.filter(|budget| *budget > 0).or(ms(p.idle.window));
        self.deadline = deadline;
        self.limits_hold = deadline.is_none() || p.total.caller_deadline == CallerDeadline::Adds;
        self.things.clear();
        self.startup = None;
        self.since_result = None;
        self.backoff = 0;
        if p.turns.scope == Scope::Segment {
            self.turns = 0;
            self.calls = 0;
            self.asking = 0;
            self.marked = false;
        }
        if p.total.scope == Scope::Segment {
            self.total = p.total.budget.filter(|_| self.limits_hold).map(|_| 0);
        }
        self.begin_phase(p);
    }

    fn leave_segment(&mut self, p: &Policy) {
        self.in_segment = false;
        self.things.clear();
        self.silence = None;
        self.ceiling = None;
        self.startup = None;
        self.since_result = None;
        self.deadline = None;
        self.backoff = 0;
        self.in_call = false;
        self.nothing_yet = false;
        if p.total.scope == Scope::Segment {
            self.total = None;
        }
    }

    fn begin_phase(&mut self, p: &Policy) {
        self.in_call = true;
        self.nothing_yet = true;
        self.spare = 0;
        if p.idle.throttle.is_some() {
            self.throttle_age = 0;
            self.throttle_free = true;
        }
        self.restart_silence(p);
        self.restart_ceiling(p);
    }

    fn restart_silence(&mut self, p: &Policy) {
        let (limit, first) = match p.idle.first {
            First::After(first) if self.nothing_yet => (Some(first.as_u64()), true),
            First::Off if self.nothing_yet => (None, false),
            _ => (self.own_window, false),
        };
        self.silence = limit.filter(|_| self.limits_hold).map(|limit| Silence {
            read: 0,
            limit,
            first,
        });
    }

    fn restart_ceiling(&mut self, p: &Policy) {
        self.ceiling = p.idle.ceiling.filter(|_| self.limits_hold).map(|_| 0);
    }

    /// Feeds an event after letting time pass up to it.
    pub(crate) fn feed(&mut self, p: &Policy, t: u64, event: &Event<'_>) {
        self.wait(p, t);
        self.due_now(p);
        match self.life {
            Life::Alive => self.apply(p, event),
            Life::Ended if event.kind == Kind::Resume => {
                self.life = Life::Alive;
                self.verdict = None;
                self.resume(p, event);
            }
            Life::Ended | Life::Dead => {}
        }
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, p: &Policy, t: u64) {
        while self.t < t {
            self.due_now(p);
            self.tick(p);
        }
    }

    fn resume(&mut self, p: &Policy, event: &Event<'_>) {
        self.begin_segment(p, 0, ms(event.budget), ms(event.deadline));
        self.due_now(p);
    }

    fn apply(&mut self, p: &Policy, event: &Event<'_>) {
        if event.kind != Kind::Spawn {
            self.startup = None;
        }
        match event.kind {
            Kind::Spawn | Kind::HostSuspend | Kind::HostResume => return,
            Kind::RunStart => {
                if self.in_segment && self.depth > 0 {
                    self.depth += 1;
                } else {
                    self.begin_segment(p, 1, ms(event.budget), ms(event.deadline));
                    self.due_now(p);
                }
                return;
            }
            Kind::Resume => return self.resume(p, event),
            Kind::RunEnd => return self.run_end(p, event.outcome),
            _ => {}
        }
        if !self.in_segment {
            return;
        }
        self.evidence(p, event);
        if self.turn_cap(p, event) && self.limits_hold {
            return self.die(Cause::TurnLimit);
        }
        if let Some(sort) = sort_of(event.kind) {
            self.start_thing(p, sort, event);
        }
        if let Some(start) = opened_by(event.kind) {
            let id = event.id.as_u64();
            if let Some(i) = self
                .things
                .iter()
                .position(|thing| thing.start == start && thing.id == id)
            {
                self.close(p, i);
            }
        }
        if event.kind == Kind::TurnStart && p.pause.turn_closes_tools {
            while let Some(i) = self
                .things
                .iter()
                .position(|thing| thing.start == Kind::ToolStart)
            {
                self.close(p, i);
            }
        }
        if event.kind == Kind::MessageEnd && p.idle.phase == PhaseScope::ModelCall {
            self.leave_call();
        }
        if event.kind == Kind::Result && self.since_result.is_none() && self.limits_hold {
            self.since_result = p.kill.result_grace.map(|_| 0);
        }
        if event.suspends && p.pause.human != Waits::None {
            self.silence = None;
        }
    }

    fn run_end(&mut self, p: &Policy, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Completed) if self.marked => self.die(Cause::TurnLimit),
            Some(_) => {
                self.leave_segment(p);
                self.life = Life::Ended;
                self.verdict = Some((Cause::Ended, self.t));
            }
            None if self.in_segment => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.leave_segment(p);
                    self.due_now(p);
                }
            }
            None => {}
        }
    }

    fn evidence(&mut self, p: &Policy, event: &Event<'_>) {
        let rearms = p.idle.rearm.holds(event.kind, event.name);
        if !rearms || self.idle_waits(p) {
            return;
        }
        let progress = p
            .idle
            .progress
            .resolve(&p.idle.rearm)
            .holds(event.kind, event.name);
        if let Some(period) = p.idle.throttle
            && p.idle
                .throttled
                .resolve(&p.idle.rearm)
                .holds(event.kind, event.name)
        {
            let free = progress && self.throttle_free;
            if !free && self.throttle_age < period.as_u64() {
                return;
            }
            self.throttle_age = 0;
            if progress {
                self.throttle_free = false;
            }
        }
        if progress {
            self.nothing_yet = false;
            if self.ceiling.is_some() {
                self.ceiling = Some(0);
            }
        }
        self.restart_silence(p);
    }

    /// Counts turns; whether the cap stops the run here.
    fn turn_cap(&mut self, p: &Policy, event: &Event<'_>) -> bool {
        let Some(cap) = p.turns.cap else {
            return false;
        };
        let after_tools = p.turns.stop == TurnStop::AfterTools;
        match event.kind {
            Kind::TurnStart => {
                self.turns += 1;
                self.calls = 0;
                self.asking = 0;
                !after_tools && self.turns > cap
            }
            Kind::ToolEnd if after_tools => {
                self.calls += 1;
                if event.executed && self.turns >= cap {
                    self.asking += 1;
                    self.marked = true;
                }
                false
            }
            Kind::TurnEnd => after_tools && self.calls > 0 && self.calls == self.asking,
            _ => false,
        }
    }

    fn start_thing(&mut self, p: &Policy, mut sort: Sort, event: &Event<'_>) {
        let id = event.id.as_u64();
        let is_call = event.kind == Kind::ToolStart;
        if is_call && p.pause.human_tools.find(event.name).is_some() {
            sort = Sort::Human;
        }
        let known = self
            .things
            .iter()
            .any(|thing| thing.start == event.kind && thing.id == id);
        let refused = sort == Sort::Human
            && p.pause.human_overlap == Overlap::Refuse
            && self.things.iter().any(|thing| thing.sort == Sort::Human);
        if known || refused {
            return;
        }
        let limit = match sort {
            Sort::Tool => p.pause.tool_limit.of(event.name),
            Sort::Compaction => p.pause.compaction_limit,
            _ => None,
        };
        let was_waiting = self.idle_waits(p);
        self.things.push(Thing {
            start: event.kind,
            id,
            sort,
            limit: ms(limit.filter(|_| self.limits_hold)),
            read: 0,
            left: if matches!(event.kind, Kind::RetryStart | Kind::HumanWaitStart) {
                ms(event.announced)
            } else {
                None
            },
        });
        if p.idle.phase == PhaseScope::ModelCall {
            self.leave_call();
        }
        if !was_waiting && self.idle_waits(p) {
            self.silence = None;
            if p.idle.phase == PhaseScope::Run {
                self.ceiling = None;
            }
        }
        if is_call && event.may_ask && p.idle.grace_cycles > 0 {
            self.spare = p.idle.grace_cycles;
        }
    }

    fn leave_call(&mut self) {
        if self.in_call {
            self.in_call = false;
            self.nothing_yet = false;
            self.ceiling = None;
        }
    }

    fn close(&mut self, p: &Policy, i: usize) {
        let was_waiting = self.idle_waits(p);
        let closed = self.things.remove(i);
        if closed.sort == Sort::Human
            && !self.things.iter().any(|thing| thing.sort == Sort::Human)
            && p.idle.grace_cycles > 0
        {
            self.spare = p.idle.grace_cycles;
        }
        if self.things.is_empty() && p.idle.phase == PhaseScope::ModelCall {
            self.begin_phase(p);
        } else if was_waiting && !self.idle_waits(p) {
            self.restart_silence(p);
            if p.idle.phase == PhaseScope::Run {
                self.restart_ceiling(p);
            }
        }
    }

    /// The instants at which a clock that runs now reaches its limit, whether or not anything looks then.
    pub(crate) fn dues(&self, p: &Policy) -> Vec<u64> {
        let mut dues = Vec::new();
        if self.life != Life::Alive {
            return dues;
        }
        let mut add = |read: Option<u64>, limit: Option<u64>| {
            if let (Some(read), Some(limit)) = (read, limit) {
                dues.push(self.t + limit.saturating_sub(read));
            }
        };
        if self.total_counts(p) {
            add(self.total, ms(p.total.budget));
        }
        if self.in_segment && self.limits_hold {
            add(self.ceiling, ms(p.idle.ceiling));
            add(self.startup, ms(p.idle.startup));
            add(self.since_result, ms(p.kill.result_grace));
            add(self.silence.map(|s| s.read), self.silence.map(|s| s.limit));
            if self.backoff_counts(p) {
                add(Some(self.backoff), ms(p.pause.backoff_budget));
            }
        }
        for thing in &self.things {
            add(Some(thing.read), thing.limit);
            add(Some(0), thing.left);
        }
        if let Some(throttle) = p.idle.throttle {
            add(Some(self.throttle_age), Some(throttle.as_u64()));
        }
        dues.extend(self.deadline);
        dues
    }

    /// The next instant, up to `horizon`, at which something happens without any event.
    pub(crate) fn next_instant(&self, p: &Policy, horizon: u64) -> Option<u64> {
        let mut ahead = self.clone();
        let marks = |run: &Self| (run.verdict, run.spare, run.things.len());
        let before = marks(self);
        ahead.due_now(p);
        while marks(&ahead) == before {
            if ahead.t >= horizon {
                return None;
            }
            ahead.tick(p);
        }
        Some(ahead.t)
    }
}
