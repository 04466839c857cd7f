//! What a watchdog remembers only in order to tell it: the transcript and the ages of evidence.
//!
//! No decision reads any of this.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::quick::bit;
use crate::{
    Activity, CallId, ClockClass, Kind, KindSet, Millis, Output, Silence, SilenceEnd, Trace,
};

/// A clock's reading in progress.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    clock: ClockClass,
    id: CallId,
    from: Millis,
    /// Read before it was last frozen.
    before: Millis,
    running: bool,
    /// Read on, but unable to fire for now: not told.
    hidden: bool,
    nth: u32,
    entry: Option<u32>,
}

impl Stretch {
    const fn fresh(clock: ClockClass, id: CallId, from: Millis) -> Self {
        Self {
            clock,
            id,
            from,
            before: Millis::ZERO,
            running: true,
            hidden: false,
            nth: 0,
            entry: None,
        }
    }
}

/// The memory of a transcript.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    trace: Trace,
    /// When each kind was last seen; [`Millis::MAX`] for never.
    last: [Millis; Kind::ALL.len()],
    /// Whether anything but the spawn was seen.
    pub(crate) started: bool,
    /// Whether the model has put out anything since control went to it.
    pub(crate) streaming: bool,
    spare_since: Option<Millis>,
    /// Limits of open things so far.
    limits: u32,
    stretches: Vec<Stretch>,
    queue: VecDeque<Output>,
}

/// Kinds that show that output has begun: the model's own, and bytes on the child's output.
const fn is_model_output(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MessageStart
            | Kind::MessageUpdate
            | Kind::ThinkingUpdate
            | Kind::ToolArgsUpdate
            | Kind::MessageEnd
            | Kind::ToolRequested
            | Kind::Stdout
    )
}

/// These kinds as bits.
const MODEL_OUTPUT: u64 = {
    let mut bits = 0;
    let mut i = 0;
    while i < Kind::ALL.len() {
        if is_model_output(Kind::ALL[i]) {
            bits |= bit(Kind::ALL[i]);
        }
        i += 1;
    }
    bits
};

impl Record {
    pub(crate) const fn new(trace: Trace) -> Self {
        Self {
            trace,
            last: [Millis::MAX; Kind::ALL.len()],
            started: false,
            streaming: false,
            spare_since: None,
            limits: 0,
            stretches: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    /// Whether stretches of clocks are told.
    pub(crate) const fn tells_silences(&self) -> bool {
        !matches!(self.trace, Trace::Verdict)
    }

    /// Whether everything is told.
    pub(crate) const fn tells_all(&self) -> bool {
        matches!(self.trace, Trace::Full)
    }

    /// Under [`Trace::Crossings`], the span within which stretches are not told one by one.
    pub(crate) const fn floor(&self) -> Option<Millis> {
        match self.trace {
            Trace::Crossings(floor) => Some(floor),
            _ => None,
        }
    }

    /// An event of that kind came.
    pub(crate) const fn saw(&mut self, kind: Kind, at: Millis) {
        self.last[kind as usize] = at;
        self.streaming |= is_model_output(kind);
    }

    /// The kinds seen, the most recent first; of equal ages in the order of the alphabet.
    pub(crate) fn evidence(&self, at: Millis, rearm: &KindSet) -> Vec<Activity> {
        let mut seen: Vec<Activity> = Kind::ALL
            .into_iter()
            .filter(|&kind| self.last[kind as usize] != Millis::MAX)
            .map(|kind| Activity {
                kind,
                age: at.since(self.last[kind as usize]),
                rearms: rearm.has(kind),
            })
            .collect();
        seen.sort_by_key(|activity| activity.age);
        seen
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// Tells how the run ended, whatever the detail.
    pub(crate) fn terminal(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    /// Tells a segment's start or end.
    pub(crate) fn segment(&mut self, output: Output) {
        if self.tells_silences() {
            self.queue.push_back(output);
        }
    }

    /// Tells a fact of the full transcript.
    pub(crate) fn note(&mut self, output: impl FnOnce() -> Output) {
        if self.tells_all() {
            self.queue.push_back(output());
        }
    }

    /// A spare window was granted, or none is held any more.
    pub(crate) const fn spare(&mut self, since: Option<Millis>) {
        self.spare_since = since;
    }

    /// A clock starts afresh; what it read before is told with `end`.
    pub(crate) fn start(&mut self, clock: ClockClass, id: CallId, at: Millis, end: SilenceEnd) {
        if !self.tells_silences() {
            return;
        }
        let fresh = Stretch::fresh(clock, id, at);
        match self.place(clock, id) {
            Some(i) => {
                let stretch = core::mem::replace(&mut self.stretches[i], fresh);
                self.tell(stretch, at, end);
            }
            None => self.stretches.push(fresh),
        }
    }

    /// A clock is armed frozen: it will go on from nothing.
    pub(crate) fn arm_frozen(&mut self, clock: ClockClass, at: Millis) {
        if self.tells_silences() {
            self.stretches.push(Stretch {
                running: false,
                ..Stretch::fresh(clock, CallId::NONE, at)
            });
        }
    }

    /// The limit of an open thing starts; `entry` is the place of a tool's name where it is named.
    pub(crate) fn start_limit(
        &mut self,
        clock: ClockClass,
        id: CallId,
        at: Millis,
        entry: Option<usize>,
    ) {
        self.start(clock, id, at, SilenceEnd::Switched);
        self.limits = self.limits.saturating_add(1);
        if let Some(i) = self.place(clock, id) {
            self.stretches[i].nth = self.limits;
            self.stretches[i].entry = entry.map(|entry| entry as u32);
        }
    }

    /// When the idle clock began what it reads now, if it reads.
    pub(crate) fn idle_since(&self) -> Option<Millis> {
        self.place(ClockClass::Idle, CallId::NONE)
            .map(|i| self.stretches[i].from)
    }

    /// The idle clock has been restarted by events that were not told, last at `since`.
    pub(crate) fn catch_up(&mut self, since: Millis) {
        let fresh = Stretch::fresh(ClockClass::Idle, CallId::NONE, since);
        match self.place(ClockClass::Idle, CallId::NONE) {
            Some(i) => self.stretches[i] = fresh,
            None => self.stretches.push(fresh),
        }
    }

    /// An event that stops every run whose cap is at most `cap`.
    pub(crate) fn turn_stop(&mut self, at: Millis, cap: u32) {
        if self.floor().is_some() {
            self.queue.push_back(Output::TurnStop { at, cap });
        }
    }

    /// Kinds of events were seen, each last at that time.
    pub(crate) const fn saw_output(&mut self, kinds: u64) {
        self.streaming |= kinds & MODEL_OUTPUT != 0;
    }

    /// When each kind was last seen.
    pub(crate) const fn last_mut(&mut self) -> &mut [Millis; Kind::ALL.len()] {
        &mut self.last
    }

    /// A clock stops and forgets.
    pub(crate) fn stop(&mut self, clock: ClockClass, id: CallId, at: Millis, end: SilenceEnd) {
        if let Some(i) = self.place(clock, id) {
            let stretch = self.stretches.remove(i);
            self.tell(stretch, at, end);
        }
    }

    /// A clock stops and keeps its reading.
    pub(crate) fn freeze(&mut self, clock: ClockClass, id: CallId, at: Millis) {
        if let Some(i) = self.place(clock, id)
            && self.stretches[i].running
        {
            let stretch = self.stretches[i];
            self.stretches[i].before = stretch.before.plus(at.since(stretch.from));
            self.stretches[i].running = false;
            self.tell(stretch, at, SilenceEnd::Paused);
        }
    }

    /// A clock goes on from its reading.
    pub(crate) fn thaw(&mut self, clock: ClockClass, id: CallId, at: Millis) {
        if let Some(i) = self.place(clock, id)
            && !self.stretches[i].running
        {
            self.stretches[i].from = at;
            self.stretches[i].running = true;
        }
    }

    /// A clock reads on and cannot fire while `hidden`.
    pub(crate) fn hide(&mut self, clock: ClockClass, hidden: bool) {
        if let Some(i) = self.place(clock, CallId::NONE) {
            self.stretches[i].hidden = hidden;
        }
    }

    /// Every clock stops; of those that are `kept` the reading stays.
    pub(crate) fn stop_all(&mut self, at: Millis, end: SilenceEnd, kept: Option<ClockClass>) {
        for i in 0..self.stretches.len() {
            let stretch = self.stretches[i];
            self.tell(stretch, at, end);
        }
        self.stretches.retain_mut(|stretch| {
            stretch.before = stretch.before.plus(if stretch.running {
                at.since(stretch.from)
            } else {
                Millis::ZERO
            });
            stretch.from = at;
            Some(stretch.clock) == kept
        });
    }

    fn place(&self, clock: ClockClass, id: CallId) -> Option<usize> {
        self.stretches
            .iter()
            .position(|stretch| stretch.clock == clock && stretch.id == id)
    }

    fn tell(&mut self, stretch: Stretch, at: Millis, end: SilenceEnd) {
        if stretch.running && !stretch.hidden {
            let idle = matches!(stretch.clock, ClockClass::Idle | ClockClass::First);
            self.queue.push_back(Output::Silence(Silence {
                clock: stretch.clock,
                id: stretch.id,
                from: stretch.from,
                to: at,
                reading: stretch.before.plus(at.since(stretch.from)),
                end,
                spare_since: self.spare_since.filter(|_| idle),
                nth: stretch.nth,
                entry: stretch.entry,
            }));
        }
    }
}
