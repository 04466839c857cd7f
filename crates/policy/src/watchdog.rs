//! The watchdog: routes events and timeouts to the small types that hold the rules.

use alloc::boxed::Box;
use core::hash::{Hash, Hasher};

use crate::adaptive::History;
use crate::clock::Clock;
use crate::open::Open;
use crate::phase::PhaseState;
use crate::quick::{Quick, bit, plain_kinds};
use crate::record::Record;
use crate::role::{Role, role};
use crate::rules::Rules;
use crate::segment::Segment;
use crate::throttle::Throttle;
use crate::turns::TurnCount;
use crate::{Cause, ClockClass, Event, Kind, Millis, Output, Policy, SilenceEnd, Trace, Verdict};

mod clocks;
mod evidence;
mod frame;
mod marks;
mod opening;
mod timers;

/// What a caller knows about one run beside its policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// The agent's role, for `turns.by_role`; empty when it has none.
    pub role: &'a str,
    /// A hard deadline, an instant, for every segment that brings none of its own.
    pub deadline: Option<Millis>,
    /// How much is told.
    pub trace: Trace,
}

/// One run under one policy.
///
/// Two watchdogs are equal when they will do the same on the same future; what they have told, and remember
/// only in order to tell it, is left out.
#[derive(Clone, Debug)]
pub struct Watchdog {
    rules: Rules,
    state: State,
    /// No hard clock is due before this; exact after every slow step, early in between.
    hard_due: Millis,
    /// The short way, and the kinds that the rules let go it.
    quick: Quick,
    plain_kinds: u64,
    record: Record,
    verdict: Option<Verdict>,
}

/// All that decides.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct State {
    now: Millis,
    over: Over,
    segment: Segment,
    phase: PhaseState,
    throttle: Throttle,
    turns: TurnCount,
    open: Open,
    idle: Clock,
    /// Whether the idle clock runs for the first window.
    idle_is_first: bool,
    ceiling: Clock,
    startup: Clock,
    total: Clock,
    backoff: Clock,
    deadline: Clock,
    result_grace: Clock,
    gaps: Option<Box<History>>,
}

/// Whether the run is over.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Over {
    /// It goes on.
    No,
    /// It ended by itself; a resume reopens it.
    Ended,
    /// A firing, or the end of the record: nothing changes that.
    Final,
}

impl PartialEq for Watchdog {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state && self.rules == other.rules
    }
}

impl Eq for Watchdog {}

impl Hash for Watchdog {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

// The interface.
impl Watchdog {
    /// A watchdog over a run that starts at `start`, of no role and without a caller's deadline, that tells verdicts only.
    pub fn new(policy: &Policy, start: Millis) -> Self {
        Self::with(policy, start, &Setup::default())
    }

    /// The same with what only the caller knows.
    pub fn with(policy: &Policy, start: Millis, setup: &Setup<'_>) -> Self {
        let rules = Rules::new(policy, setup);
        let mut dog = Self {
            state: State {
                now: start,
                over: Over::No,
                segment: Segment::begin(start, rules.window, 0, true),
                phase: PhaseState::default(),
                throttle: Throttle::default(),
                turns: TurnCount::default(),
                open: Open::default(),
                idle: Clock::Off,
                idle_is_first: false,
                ceiling: Clock::Off,
                startup: Clock::Off,
                total: Clock::Off,
                backoff: Clock::Off,
                deadline: Clock::Off,
                result_grace: Clock::Off,
                gaps: rules.adaptive.map(|_| Box::default()),
            },
            hard_due: Millis::ZERO,
            quick: Quick::default(),
            plain_kinds: plain_kinds(&rules),
            record: Record::new(setup.trace),
            verdict: None,
            rules,
        };
        dog.begin_segment(0, None, None, false);
        if dog.rules.budget_spans_run() {
            dog.start(ClockClass::Total, dog.rules.budget);
            dog.record.hide(ClockClass::Total, !dog.state.segment.armed);
        }
        if dog.state.segment.armed {
            dog.start(ClockClass::Startup, dog.rules.startup);
        }
        dog.settle_bound();
        dog.open_short_way();
        dog
    }

    /// Feeds one event. An `at` before the latest time fed counts as that time.
    ///
    /// Whatever is due by `at`, inclusively, happens first.
    #[inline]
    pub fn handle_event(&mut self, at: Millis, event: &Event<'_>) {
        let kind = bit(event.kind);
        let quick = &mut self.quick;
        let drops = quick.drops & kind != 0 && at < quick.drop_until;
        if at < quick.until
            && at >= self.state.now
            && (drops || quick.kinds & kind != 0)
            && !event.suspends
        {
            self.state.now = at;
            self.record.saw(event.kind, at);
            if quick.rearms & kind != 0 {
                let due = at.plus(quick.window);
                self.state.idle = Clock::Running(due);
                quick.until = self.hard_due.min(due);
            }
        } else {
            self.catch_up();
            self.handle_any_event(at, event);
            self.open_short_way();
        }
    }

    /// Feeds events that are nothing but a time and a kind, as many from the first as may go the short way together:
    /// no event that opens, closes or ends something, and nothing due before. Answers how many were fed; the next one
    /// is for [`Watchdog::handle_event`]. Events that suspend the idle clock are not for this.
    ///
    /// The state afterwards is that of feeding them one by one. Under [`Trace::Crossings`] each stretch of the idle
    /// clock that is ended here, all within the span given there, is passed to `short` in place of being told, in ms.
    pub fn handle_plain(
        &mut self,
        at: &[u64],
        kinds: &[Kind],
        mut short: impl FnMut(u64),
    ) -> usize {
        let quick = self.quick;
        let floor = self.record.floor();
        let mut until = match floor {
            Some(_) => quick.stream_until.as_u64(),
            None => quick.until.as_u64(),
        };
        let hard = self.hard_due.as_u64();
        let reach = floor.map_or(quick.window, |floor| floor.min(quick.window));
        let reach = reach.as_u64();
        let drop_until = quick.drop_until.as_u64();
        let mut now = self.state.now.as_u64();
        let mut since = quick.since.as_u64();
        let (mut seen, mut restarted) = (0, false);
        let last = self.record.last_mut();
        let n_events = at.len().min(kinds.len());
        let (at, kinds) = (&at[..n_events], &kinds[..n_events]);
        let mut fed = 0;
        while fed < n_events {
            let (t, kind) = (at[fed], kinds[fed]);
            let kind_bit = bit(kind);
            let passes =
                quick.kinds & kind_bit != 0 || (quick.drops & kind_bit != 0 && t < drop_until);
            if t >= until || t < now || !passes {
                break;
            }
            now = t;
            seen |= kind_bit;
            fed += 1;
            if quick.rearms & kind_bit != 0 {
                short(t.saturating_sub(since));
                // Most of a run: pieces of one kind, each of which restarts the clock. Going back in time wraps to a gap
                // of at least half of all time, which no streak takes.
                let reach = reach.min(1 << 63);
                while fed < n_events && kinds[fed] == kind {
                    let gap = at[fed].wrapping_sub(now);
                    if gap >= reach || at[fed] >= hard {
                        break;
                    }
                    short(gap);
                    now = at[fed];
                    fed += 1;
                }
                since = now;
                restarted = true;
                until = hard.min(now.saturating_add(reach));
            }
            last[kind as usize] = Millis::new(now);
        }
        self.record.saw_output(seen);
        self.state.now = Millis::new(now);
        if restarted {
            self.quick.since = Millis::new(since);
            self.state.idle = Clock::Running(Millis::new(since).plus(quick.window));
            if floor.is_some() {
                self.quick.stream_until = Millis::new(until);
            } else {
                self.quick.until = Millis::new(until);
            }
        }
        fed
    }

    /// Lets time pass: whatever is due by `now`, inclusively, happens. Early or repeated calls change nothing.
    pub fn handle_timeout(&mut self, now: Millis) {
        self.catch_up();
        let now = now.max(self.state.now);
        if self.state.over == Over::No {
            self.run_timers(now);
        }
        if self.state.over == Over::No {
            self.state.now = now;
        }
        self.open_short_way();
    }

    /// The record stops at `at`: whatever is due by then happens, then a run that is still open ends as
    /// `running`. Nothing changes that any more.
    pub fn finish(&mut self, at: Millis) {
        self.handle_timeout(at);
        if self.state.over == Over::No {
            self.end(Cause::Running, None, SilenceEnd::Cut);
        }
        self.state.over = Over::Final;
        self.open_short_way();
    }

    /// The next fact, oldest first. Every call that feeds can add some.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.record.pop()
    }

    /// The earliest instant at which [`Watchdog::handle_timeout`] may matter; `None` while nothing is due.
    /// Every call that feeds can change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Millis> {
        if self.state.over != Over::No {
            return None;
        }
        self.next_timer().map(|(seen, ..)| seen)
    }

    /// How the run ended, once it has; not yet, or not any more, while it goes on.
    pub const fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }
}

impl Watchdog {
    /// The record learns of restarts of the idle clock that were not told.
    fn catch_up(&mut self) {
        if self.quick.stream_until > Millis::ZERO && self.quick.rearms != 0 {
            self.record.catch_up(self.quick.since);
        }
    }

    fn handle_any_event(&mut self, at: Millis, event: &Event<'_>) {
        let at = at.max(self.state.now);
        if self.state.over != Over::No {
            if self.state.over == Over::Ended && event.kind == Kind::Resume {
                self.state.now = at;
                self.reopen(event);
            }
            return;
        }
        if at >= self.state.idle.due() || at >= self.hard_due {
            self.run_timers(at);
            if self.state.over != Over::No {
                return;
            }
        }
        self.state.now = at;
        self.record.saw(event.kind, at);
        if !self.record.started && event.kind != Kind::Spawn {
            self.record.started = true;
            self.stop(ClockClass::Startup, SilenceEnd::Switched);
        }
        let role = role(event.kind);
        if let Role::Frame(frame) = role {
            self.frame(frame, event);
            return;
        }
        if !self.state.segment.is_open {
            return;
        }
        self.evidence(event);
        if let Some(cap) = self.rules.cap
            && self.count_turns(event, cap)
        {
            return;
        }
        match role {
            Role::Opens(key) => self.open(key, event),
            Role::Closes(key) => self.close(key, event),
            Role::Plain if event.kind == Kind::TurnStart => self.turn_started(),
            Role::Plain | Role::Frame(_) => {}
        }
        self.marks(event);
    }

    /// Settles for which events, and until when, the short way will do.
    fn open_short_way(&mut self) {
        let (rules, state) = (&self.rules, &self.state);
        self.quick = Quick::default();
        let floor = self.record.floor();
        let closed = floor.is_none() && self.record.tells_silences();
        if state.over != Over::No || !self.record.started || closed {
            return;
        }
        let until = self.hard_due.min(state.idle.due());
        match floor {
            None => self.quick.until = until,
            Some(_) => self.quick.stream_until = until,
        }
        self.quick.kinds = self.plain_kinds;
        let rearm = rules.rearm.bits() & self.plain_kinds;
        if !state.segment.is_open || state.open.classes().meets(rules.stops_idle) {
            return;
        }
        let throttled = rules.throttle.map_or(0, |_| rules.throttled.bits());
        let progress = rules.progress.bits();
        let special = if state.phase.in_first || rules.adaptive.is_some() || !state.segment.armed {
            // the first progress ends the first window, adaptive windows need every gap
            rearm
        } else {
            rearm & (throttled | rules.ceiling.map_or(0, |_| progress))
        };
        self.quick.kinds &= !special;
        match state.segment.window {
            Some(window) => {
                self.quick.rearms = rearm & !special;
                self.quick.window = window;
            }
            None if state.idle.is_running() => self.quick.kinds &= !rearm,
            None => {}
        }
        if state.idle_is_first {
            self.quick.kinds &= !rearm;
        }
        if let Some(period) = rules.throttle {
            let (until, progress_passes) = state.throttle.closed(period);
            self.quick.drop_until = until;
            self.quick.drops = rearm & throttled & if progress_passes { !progress } else { !0 };
        }
        if let Some(floor) = floor
            && self.quick.rearms != 0
        {
            let within = self
                .record
                .idle_since()
                .filter(|_| state.idle.is_running())
                .map(|since| (since, since.plus(floor)))
                .filter(|(_, end)| state.now < *end);
            if let Some((since, end)) = within {
                self.quick.since = since;
                self.quick.stream_until = until.min(end);
            } else {
                // the stretch is to be told, or there is none
                self.quick.kinds &= !self.quick.rearms;
                self.quick.rearms = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
