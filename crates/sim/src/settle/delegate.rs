//! One delegate: a course, the watchdog over it, and how far both have come.

use policysim_policy::{CallId, Cause, Event, Kind, Millis, Outcome, Policy, Watchdog};

use super::course::{Course, End};
use crate::judgement::{Judgement, judge_kill};
use crate::replay::{arm, kill_class};
use crate::run::{EventFlags, RunEvent};

/// How a delegate came to rest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    /// By itself.
    Ended(Outcome),
    /// Its watchdog fired.
    Fired(Cause),
    /// The parent stopped it.
    Stopped,
    /// The parent's turn ended, and with it everything that ran.
    Closed,
}

impl How {
    /// Whether the parent gets a report of finished work.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Ended(Outcome::Completed))
    }
}

/// Where a delegate stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It runs, or hangs.
    Running,
    /// It was told to end and will have unwound at this instant.
    Unwinding(Millis),
    /// It is at rest.
    Settled(Millis),
}

/// What a parent can see of a running delegate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Heartbeat {
    /// Since its spawn, ms.
    pub elapsed_ms: u64,
    /// Since its last event, ms.
    pub silent_ms: u64,
    /// Turns begun.
    pub turns: u32,
    /// Tool calls begun.
    pub tool_calls: u32,
    /// The tool called last, as a symbol of its run.
    pub last_tool: crate::run::Symbol,
}

impl Heartbeat {
    /// Whether nothing that the parent is shown has changed since `earlier`: silence itself is not shown to it.
    pub fn same_progress(&self, earlier: &Self) -> bool {
        (self.turns, self.tool_calls, self.last_tool)
            == (earlier.turns, earlier.tool_calls, earlier.last_tool)
    }
}

/// The next thing that happens to a delegate by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    Fires(Millis),
    Ends(Millis),
    /// It spawns its own child and waits for it.
    Asks(Millis),
    /// It waits for its child; its watchdog has to be looked after then.
    Looks(Millis),
    Never,
}

/// Id of a delegate's wait for its own child.
const CHILD: CallId = CallId::new(u64::MAX);

pub(super) struct Delegate<'r> {
    pub(super) course: Course<'r>,
    pub(super) born: Millis,
    pub(super) standing: Standing,
    pub(super) how: Option<How>,
    /// When it was told to end, or ended.
    pub(super) ended: Option<Millis>,
    /// The delegate that spawned it.
    pub(super) outer: Option<usize>,
    /// Its own child and the wait for it, while it waits.
    pub(super) child: Option<(usize, usize)>,
    /// Entries of the queue about an earlier plan are void.
    pub(super) plan: u32,
    dog: Watchdog,
    /// Events fed.
    fed: usize,
    /// How much later than in the record its events come, because of its child.
    late_ms: u64,
    asked: bool,
    /// The watchdog has told, and the policy lets the run go on.
    told: bool,
}

impl<'r> Delegate<'r> {
    pub(super) fn new(
        policy: &Policy,
        course: Course<'r>,
        born: Millis,
        outer: Option<usize>,
    ) -> Self {
        Self {
            dog: arm(policy, course.run, policysim_policy::Trace::Verdict),
            fed: course.first,
            course,
            born,
            standing: Standing::Running,
            how: None,
            ended: None,
            outer,
            child: None,
            plan: 0,
            late_ms: 0,
            asked: false,
            told: false,
        }
    }

    fn global(&self, local_ms: u64) -> Millis {
        self.born.plus(Millis::new(local_ms))
    }

    /// When an instant of the run comes, counted from the spawn.
    fn local_ms(&self, run_ms: u64) -> u64 {
        run_ms.saturating_sub(self.course.origin_ms) + self.late_ms
    }

    /// Runs ahead to the next thing that matters to anybody else. Nothing but a kill changes what is found.
    pub(super) fn next(&mut self) -> Next {
        if self.told {
            return self.ends();
        }
        if self.child.is_some() {
            let wake = self.dog.poll_timeout();
            return wake.map_or(Next::Never, |wake| Next::Looks(self.global(wake.as_u64())));
        }
        while self.fed < self.course.last {
            let event = &self.course.run.events[self.fed];
            let at = Millis::new(self.local_ms(event.t_ms));
            self.dog.handle_timeout(at);
            if let Some(fires) = self.fired() {
                return fires;
            }
            if !self.asked && self.course.asks.is_some_and(|asks| asks.before == self.fed) {
                return Next::Asks(self.global(at.as_u64()));
            }
            self.dog
                .handle_event(at, &event.as_event(self.course.symbols));
            self.fed += 1;
            if let Some(fires) = self.fired() {
                return fires;
            }
        }
        match self.course.end {
            End::At(ms) => {
                self.dog.finish(Millis::new(self.local_ms(ms)));
                self.fired().unwrap_or_else(|| self.ends())
            }
            End::HangsFrom(_) => self.silent(),
        }
    }

    /// When it ends by itself.
    fn ends(&self) -> Next {
        match self.course.end {
            End::At(ms) => Next::Ends(self.global(self.local_ms(ms))),
            End::HangsFrom(_) => Next::Never,
        }
    }

    /// Nothing comes any more: what the watchdog does about it.
    fn silent(&mut self) -> Next {
        let mut last = None;
        while let Some(wake) = self.dog.poll_timeout() {
            // An announced end or a spare window moves the wake-up; the same one twice would be for ever.
            if last == Some(wake) {
                break;
            }
            last = Some(wake);
            self.dog.handle_timeout(wake);
            if let Some(fires) = self.fired() {
                return fires;
            }
        }
        Next::Never
    }

    fn fired(&self) -> Option<Next> {
        let verdict = self.dog.verdict()?;
        let firing = verdict.cause.is_firing();
        firing.then(|| Next::Fires(self.global(verdict.at.as_u64())))
    }

    /// Lets the watchdog of a delegate that waits for its child look at the clock; the firing, if it fires.
    pub(super) fn looks(&mut self, now: Millis) -> Option<Millis> {
        self.dog.handle_timeout(now.since(self.born));
        match self.fired() {
            Some(Next::Fires(at)) => Some(at),
            _ => None,
        }
    }

    /// It begins to wait for its child.
    pub(super) fn asks(&mut self, now: Millis, child: usize, wait: usize) {
        self.asked = true;
        self.child = Some((child, wait));
        let event = Event::new(Kind::WaitStart).with_id(CHILD);
        self.dog.handle_event(now.since(self.born), &event);
    }

    /// A wait for its child has returned; `again` when it waits once more.
    pub(super) fn answered(&mut self, now: Millis, again: Option<usize>) {
        let local = now.since(self.born);
        let end = Event::new(Kind::WaitEnd).with_id(CHILD);
        self.dog.handle_event(local, &end);
        if let (Some(wait), Some((child, _))) = (again, self.child) {
            return self.asks(now, child, wait);
        }
        self.child = None;
        if let Some(event) = self.course.run.events.get(self.fed) {
            let late_ms = local.as_u64().saturating_sub(self.local_ms(event.t_ms));
            self.late_ms += late_ms;
        }
    }

    /// The watchdog has fired and the policy only tells: it goes on unwatched.
    pub(super) const fn goes_on(&mut self) {
        self.told = true;
    }

    /// Why the watchdog fired.
    pub(super) fn cause(&self) -> Cause {
        self.dog
            .verdict()
            .map_or(Cause::Running, |verdict| verdict.cause)
    }

    /// What the record says of a kill by its watchdog: the judgement of a replay; `None` where nothing fired.
    pub(super) fn judgement(&self) -> Option<Judgement> {
        let class = kill_class(self.cause())?;
        Some(judge_kill(self.course.run, self.fed, class))
    }

    /// When the hang began, of one that hangs: an instant of the session.
    pub(super) fn onset(&self) -> Option<Millis> {
        let onset_ms = self.course.onset_ms()?;
        Some(self.global(onset_ms + self.late_ms))
    }

    /// Whether it would still show a sign of life, had it not been stopped at `at`.
    pub(super) fn is_healthy(&self, at: Millis) -> bool {
        self.onset().is_none_or(|onset| at < onset)
    }

    /// When the course would end by itself.
    pub(super) fn own_end(&self) -> Option<Millis> {
        match self.ends() {
            Next::Ends(at) => Some(at),
            _ => None,
        }
    }

    /// What is left of its course after a firing at `at`.
    pub(super) fn rest(&self, at: Millis) -> Course<'r> {
        self.course.resumed(
            self.fed,
            at.since(self.born).as_u64().saturating_sub(self.late_ms),
        )
    }

    /// What the parent can see of it at `now`. An event stamped `now` is not seen yet: expiries go first.
    pub(super) fn heartbeat(&self, now: Millis) -> Heartbeat {
        let local_ms = now.since(self.born).as_u64();
        let mut beat = Heartbeat {
            elapsed_ms: local_ms,
            ..Heartbeat::default()
        };
        let mut latest_ms = 0;
        for event in &self.course.run.events[self.course.first..self.course.last] {
            let at_ms = self.local_ms(event.t_ms);
            if at_ms >= local_ms {
                break;
            }
            latest_ms = at_ms;
            match event.kind {
                Kind::TurnStart => beat.turns += 1,
                Kind::ToolStart if executed(event) => {
                    beat.tool_calls += 1;
                    beat.last_tool = event.name;
                }
                _ => {}
            }
        }
        beat.silent_ms = local_ms - latest_ms;
        beat
    }
}

fn executed(event: &RunEvent) -> bool {
    !event.flags.has(EventFlags::NOT_EXECUTED)
}
