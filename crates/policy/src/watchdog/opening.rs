//! Step 5: things open and close, and every clock follows what is open.

use super::Watchdog;
use crate::clock::Clock;
use crate::open::{Classes, Item};
use crate::role::OpenKey;
use crate::{
    ClockClass, Event, Millis, OpenClass, Output, Overlap, Reason, SilenceEnd, Stopped, Warning,
};

impl Watchdog {
    pub(super) fn open(&mut self, key: OpenKey, event: &Event<'_>) {
        let (id, now) = (event.id, self.state.now);
        let class = if key == OpenKey::Tool && self.rules.is_human_tool(event.name) {
            OpenClass::Human
        } else {
            key.class()
        };
        let before = self.state.open.classes();
        let refused = class == OpenClass::Human && self.rules.overlap == Overlap::Refuse;
        if self.state.open.position(key, id).is_some() {
            self.note(Warning::RepeatedStart { class, id });
            return;
        }
        if refused && before.has(OpenClass::Human) {
            self.note(Warning::RefusedOverlap { id });
            return;
        }
        if self.state.open.is_full() {
            self.note(Warning::TooManyOpen { id });
            return;
        }
        let mut item = Item {
            key,
            class,
            id,
            limit: Clock::Off,
            closes_at: match (key, event.announced) {
                (OpenKey::Backoff | OpenKey::HumanWait, Some(length)) => now.plus(length),
                _ => Millis::MAX,
            },
        };
        if self.state.segment.armed {
            let limit = match class {
                OpenClass::Tool => self.rules.tool_limit.of(event.name),
                OpenClass::Compaction => self.rules.compaction_limit,
                OpenClass::Human | OpenClass::Child | OpenClass::Backoff => None,
            };
            item.limit.start(now, limit);
            if let Some(clock) = limit.and(limit_clock(class)) {
                let entry = match class {
                    OpenClass::Tool => self.rules.tool_limit.by_name.position(event.name),
                    _ => None,
                };
                self.record.start_limit(clock, id, now, entry);
            }
        }
        self.hard_due = self.hard_due.min(item.closes_at);
        self.state.open.push(item);
        if self.rules.per_call() && self.state.phase.active {
            self.end_call();
        }
        self.follow(before, Reason::Open { class, id });
        if key == OpenKey::Tool && event.may_ask {
            self.grant_spare();
        }
    }

    pub(super) fn close(&mut self, key: OpenKey, event: &Event<'_>) {
        match self.state.open.position(key, event.id) {
            Some(i) => self.remove(i),
            None => self.note(Warning::UnmatchedEnd {
                kind: event.kind,
                id: event.id,
            }),
        }
    }

    /// A new turn: calls that are still open have lost their ends.
    pub(super) fn turn_started(&mut self) {
        self.record.streaming = false;
        if self.rules.turn_closes_tools {
            while let Some(i) = self.state.open.first_call() {
                if let Some(Item { id, .. }) = self.state.open.item(i) {
                    self.note(Warning::LostEnd { id });
                }
                self.remove(i);
            }
        }
    }

    pub(super) fn announced_end(&mut self, i: usize) {
        if let Some(Item { class, id, .. }) = self.state.open.item(i) {
            self.note(Warning::AnnouncedEnd { class, id });
        }
        self.remove(i);
    }

    pub(super) fn remove(&mut self, i: usize) {
        let before = self.state.open.classes();
        let item = self.state.open.remove(i);
        let at = self.state.now;
        if let Some(clock) = limit_clock(item.class) {
            self.record.stop(clock, item.id, at, SilenceEnd::Switched);
        }
        self.follow(
            before,
            Reason::Open {
                class: item.class,
                id: item.id,
            },
        );
    }

    /// Every clock follows what is open now; `before` was open until now.
    pub(super) fn follow(&mut self, before: Classes, reason: Reason) {
        let after = self.state.open.classes();
        let stops = |by: Classes| (before.meets(by), after.meets(by));
        let idle = stops(self.rules.stops_idle);
        let hard = stops(self.rules.stops_all);
        if self.rules.moves_hard_clocks {
            self.hold_hard_clocks(after);
        }
        match idle {
            (false, true) => {
                self.stop_idle(SilenceEnd::Paused);
                if !self.rules.per_call() {
                    self.stop(ClockClass::Ceiling, SilenceEnd::Paused);
                }
            }
            (true, false) if !(after.is_empty() && self.rules.per_call()) => {
                self.restart_idle(SilenceEnd::Switched);
                if !self.rules.per_call() {
                    self.start_ceiling();
                }
            }
            _ => {}
        }
        if before.has(OpenClass::Human) && !after.has(OpenClass::Human) {
            self.grant_spare();
        }
        if after.is_empty() {
            self.record.streaming = false;
            if self.rules.per_call() {
                self.begin_phase();
            }
        }
        if self.record.tells_all() {
            self.tell_pause(idle, hard, reason);
        }
        if self.rules.moves_hard_clocks {
            self.settle_bound();
        }
    }

    /// The total, the limits of open things and the backoff budget wait, or go on. A thing does not stop the
    /// clock that limits its own class: such a limit could never fire.
    pub(super) fn hold_hard_clocks(&mut self, open: Classes) {
        let now = self.state.now;
        let stops_all = self.rules.stops_all;
        self.hold_total(open.meets(stops_all));
        for item in self.state.open.items_mut() {
            let held = open.without(item.class).meets(stops_all);
            item.limit.hold(held, now);
            if let Some(clock) = limit_clock(item.class) {
                if held {
                    self.record.freeze(clock, item.id, now);
                } else {
                    self.record.thaw(clock, item.id, now);
                }
            }
        }
        let runs =
            open.has(OpenClass::Backoff) && !open.without(OpenClass::Backoff).meets(stops_all);
        self.hold_backoff(!runs);
    }

    pub(super) fn tell_pause(&mut self, idle: (bool, bool), hard: (bool, bool), reason: Reason) {
        let at = self.state.now;
        let clocks = |change: (bool, bool)| match (idle == change, hard == change) {
            (true, true) => Some(Stopped::All),
            (true, false) => Some(Stopped::Idle),
            (false, true) => Some(Stopped::Hard),
            (false, false) => None,
        };
        if let Some(clocks) = clocks((false, true)) {
            self.record.note(|| Output::Paused { at, clocks, reason });
        }
        if let Some(clocks) = clocks((true, false)) {
            self.record.note(|| Output::Resumed { at, clocks, reason });
        }
    }
}

/// The clock that limits one open thing of that class, where there is such a limit.
const fn limit_clock(class: OpenClass) -> Option<ClockClass> {
    match class {
        OpenClass::Tool => Some(ClockClass::Tool),
        OpenClass::Compaction => Some(ClockClass::Compaction),
        OpenClass::Human | OpenClass::Child | OpenClass::Backoff => None,
    }
}
