//! What a run does under every set of numbers, from one pass under none.
//!
//! The core is fed once with every limit out of reach and tells the stretches that its clocks read and the events that
//! stop a run at some turn cap. From these follows when each clock first crosses a limit, for any limit; the run ends
//! at the earliest crossing. Which stretches there are is the core's business alone: nothing here arms, pauses or
//! resumes a clock.

use policysim_policy::{
    ByName, Cause, ClockClass, First, KindsOrRearm, Millis, Output, Policy, Poll, Setup, Silence,
    ToolLimit, Trace, Watchdog, seen,
};

use crate::replay::{Plain, kill_class};
use crate::run::Symbols;
use crate::scan::RunView;

/// The longest span whose stretches of the idle clock are counted instead of told, ms.
pub(crate) const LONGEST_FLOOR_MS: u64 = 1 << 15;
/// The longest interval between two looks of a driver that looks at every tenth of its window.
const LONGEST_TENTH: Millis = Millis::from_secs(10);

/// `policy` without its numbers: two policies with the same shape read the same stretches.
///
/// `None` where numbers decide which stretches there are (a window that follows the gaps seen so far, a limit of 0).
pub fn shape(policy: &Policy) -> Option<Policy> {
    let (idle, pause) = (&policy.idle, &policy.pause);
    let first = match idle.first {
        First::After(first) => Some(first),
        First::Off | First::SameAsWindow => None,
    };
    let limits = [
        idle.window,
        first,
        idle.ceiling,
        idle.startup,
        pause.tool_limit.default,
        pause.compaction_limit,
        pause.backoff_budget,
        policy.total.budget,
        policy.kill.result_grace,
    ];
    let by_name = pause.tool_limit.by_name.entries();
    let by_name = by_name.iter().map(|(_, limit)| *limit);
    if idle.adaptive.is_some()
        || limits
            .into_iter()
            .chain(by_name)
            .any(|limit| limit == Some(Millis::ZERO))
    {
        return None;
    }
    let mut shape = Policy::default();
    shape.idle.rearm = idle.rearm.clone();
    shape.idle.progress = KindsOrRearm::Kinds(idle.progress.resolve(&idle.rearm).clone());
    shape.idle.phase = idle.phase;
    if idle.throttle.is_some() {
        shape.idle.throttle = idle.throttle;
        shape.idle.throttled = KindsOrRearm::Kinds(idle.throttled.resolve(&idle.rearm).clone());
    }
    shape.pause = policysim_policy::Pause {
        tool_limit: ToolLimit::default(),
        compaction_limit: None,
        backoff_budget: None,
        ..pause.clone()
    };
    shape.total.scope = policy.total.scope;
    shape.total.caller_deadline = policy.total.caller_deadline;
    shape.turns.scope = policy.turns.scope;
    shape.turns.stop = policy.turns.stop;
    Some(shape)
}

/// One shape with every clock that some policy of it uses, all limits out of reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Structure {
    shape: Policy,
    endless: Policy,
    /// Stretches of the idle clock shorter than this cross no window.
    floor: Millis,
    /// The longest interval between two looks.
    slack: Millis,
}

impl Structure {
    /// A structure that answers nothing but gaps yet; `shape` comes from [`shape`].
    pub fn new(shape: Policy) -> Self {
        let mut endless = shape.clone();
        endless.idle.window = Some(Millis::MAX);
        Self {
            shape,
            endless,
            floor: Millis::new(LONGEST_FLOOR_MS),
            slack: Millis::ZERO,
        }
    }

    /// The shape.
    pub const fn shape(&self) -> &Policy {
        &self.shape
    }

    /// Stretches of the idle clock shorter than this are counted, not told.
    pub const fn floor(&self) -> Millis {
        self.floor
    }

    /// The longest interval between two looks that it answers for.
    pub(crate) const fn slack(&self) -> Millis {
        self.slack
    }

    /// What it reads beside the idle clock: clocks, turn caps, and the tools whose limits are told apart.
    pub(crate) fn reads(&self) -> (Vec<ClockClass>, bool, Vec<String>) {
        let all = &self.endless;
        let limited = all.pause.tool_limit != ToolLimit::default();
        let clocks = [
            (ClockClass::First, all.idle.first != First::SameAsWindow),
            (ClockClass::Ceiling, all.idle.ceiling.is_some()),
            (ClockClass::Startup, all.idle.startup.is_some()),
            (ClockClass::Tool, limited),
            (ClockClass::Compaction, all.pause.compaction_limit.is_some()),
            (ClockClass::Backoff, all.pause.backoff_budget.is_some()),
            (ClockClass::Total, all.total.budget.is_some()),
            (ClockClass::ResultGrace, all.kill.result_grace.is_some()),
        ];
        let tools = all.pause.tool_limit.by_name.entries();
        (
            clocks
                .into_iter()
                .filter(|(_, reads)| *reads)
                .map(|(clock, _)| clock)
                .collect(),
            all.turns.cap.is_some(),
            tools.iter().map(|(name, _)| name.to_string()).collect(),
        )
    }

    /// Answers from what was read with these tools told apart.
    pub(crate) fn tell_apart(&mut self, tools: &[String]) {
        let names = tools.iter().map(|name| (name.as_str(), Some(Millis::MAX)));
        self.endless.pause.tool_limit.by_name = ByName::new(names);
    }

    /// Takes in what `policy`, which has this shape, can ask.
    pub fn admit(&mut self, policy: &Policy) {
        let all = &mut self.endless;
        let reach = |limit: &mut Option<Millis>, asked: Option<Millis>| {
            if asked.is_some() {
                *limit = Some(Millis::MAX);
            }
        };
        reach(&mut all.idle.ceiling, policy.idle.ceiling);
        reach(&mut all.idle.startup, policy.idle.startup);
        reach(
            &mut all.pause.compaction_limit,
            policy.pause.compaction_limit,
        );
        reach(&mut all.pause.backoff_budget, policy.pause.backoff_budget);
        reach(&mut all.total.budget, policy.total.budget);
        reach(&mut all.kill.result_grace, policy.kill.result_grace);
        if policy.idle.first != First::SameAsWindow {
            all.idle.first = First::After(Millis::MAX);
        }
        all.idle.grace_cycles = all.idle.grace_cycles.max(policy.idle.grace_cycles);
        let tools = &policy.pause.tool_limit;
        if *tools != ToolLimit::default() {
            let names = |limit: &ToolLimit| -> Vec<Box<str>> {
                limit
                    .by_name
                    .entries()
                    .iter()
                    .map(|(name, _)| name.clone())
                    .collect()
            };
            let named = names(&all.pause.tool_limit).into_iter().chain(names(tools));
            all.pause.tool_limit = ToolLimit {
                default: Some(Millis::MAX),
                by_name: ByName::new(named.map(|name| (name, Some(Millis::MAX)))),
            };
        }
        if policy.turns.cap.is_some() || !policy.turns.by_role.is_empty() {
            all.turns.cap = Some(u32::MAX);
        }
        let period = match policy.detect.poll {
            Poll::Exact => Millis::ZERO,
            Poll::Every(period) => period,
            Poll::Tenth => LONGEST_TENTH,
        };
        self.slack = self.slack.max(period);
        if let Some(window) = policy.idle.window {
            self.floor = self.floor.min(window);
        }
    }

    /// Feeds `run` to the core and keeps in `found` what can cross a limit. `gap` gets every stretch that the idle clock
    /// read and that was told, `short` those below the floor, in ms.
    pub fn read(
        &self,
        run: &RunView<'_>,
        symbols: &Symbols,
        found: &mut Crossings,
        mut gap: impl FnMut(&Silence),
        mut short: impl FnMut(u64),
    ) {
        let setup = Setup {
            role: &run.head.role,
            trace: Trace::Crossings(self.floor),
            ..Setup::default()
        };
        let mut dog = Watchdog::with(&self.endless, Millis::ZERO, &setup);
        found.clear(self.slack.as_u64());
        let mut take = |dog: &mut Watchdog, next: usize| {
            while let Some(output) = dog.poll_output() {
                if let Output::Silence(silence) = &output
                    && matches!(silence.clock, ClockClass::Idle | ClockClass::First)
                {
                    gap(silence);
                }
                found.take(&output, next);
            }
        };
        let (times, kinds) = (run.t_ms(), run.kinds());
        let (mut plain, mut feed) = (Plain::of(run), run.feed(symbols));
        let mut next = 0;
        take(&mut dog, 0);
        while next < times.len() {
            let until = plain.until(next);
            next += dog.handle_plain(&times[next..until], &kinds[next..until], &mut short);
            if next < times.len() {
                dog.handle_event(Millis::new(times[next]), &feed.event(next));
                next += 1;
                take(&mut dog, next);
            }
        }
        dog.finish(Millis::new(run.head.end_ms));
        take(&mut dog, next);
        if let Some(verdict) = dog.verdict() {
            found.end = Some((verdict.cause, verdict.at.as_u64()));
        }
        (found.origin_ms, found.slack_ms) = (0, 0);
    }

    /// How a run ends under `policy`, which this structure has admitted, with that idle window in place of its own.
    pub fn answer(
        &self,
        found: &Crossings,
        policy: &Policy,
        window: Option<Millis>,
        role: &str,
    ) -> Answer {
        let others = self.others(found, policy, window, role);
        let idle = self.idle(found, policy, window);
        match idle {
            Some(idle) if others.is_none_or(|others| idle.goes_before(&others)) => Answer::of(idle),
            _ => others.map_or(Answer::Survives, Answer::of),
        }
    }

    /// The first crossing of `window` by the idle clock, all other clocks aside.
    pub fn idle(
        &self,
        found: &Crossings,
        policy: &Policy,
        window: Option<Millis>,
    ) -> Option<Crossing> {
        let window = window?;
        let pieces = found.idle(policy);
        let period = policy
            .detect
            .poll
            .period(Some(window))
            .map_or(0, Millis::as_u64);
        let at = first_crossing(pieces, window.as_u64(), period)?;
        Some(at.of(Cause::IdleTimeout, IDLE_RANK, policy))
    }

    /// The earliest crossing of anything but the idle window.
    pub fn others(
        &self,
        found: &Crossings,
        policy: &Policy,
        window: Option<Millis>,
        role: &str,
    ) -> Option<Crossing> {
        let period = policy.detect.poll.period(window).map_or(0, Millis::as_u64);
        let mut first: Option<Crossing> = None;
        let mut consider = |crossing: Option<Crossing>| {
            if let Some(crossing) = crossing
                && first.is_none_or(|first| crossing.goes_before(&first))
            {
                first = Some(crossing);
            }
        };
        let mut clock = |pieces: &[Piece], limit: Option<Millis>, rank: u8, cause: Cause| {
            if let Some(limit) = limit
                && !pieces.is_empty()
            {
                let crossing = first_crossing(pieces, limit.as_u64(), period);
                consider(crossing.map(|found| found.of(cause, rank, policy)));
            }
        };
        let (idle, pause) = (&policy.idle, &policy.pause);
        clock(
            &found.result_grace,
            policy.kill.result_grace,
            1,
            Cause::CleanupForced,
        );
        clock(&found.total, policy.total.budget, 2, Cause::TotalTimeout);
        clock(&found.ceiling, idle.ceiling, 3, Cause::CeilingTimeout);
        clock(
            &found.compaction,
            pause.compaction_limit,
            LIMIT_RANK,
            Cause::CompactionTimeout,
        );
        clock(
            &found.backoff,
            pause.backoff_budget,
            5,
            Cause::BackoffTimeout,
        );
        clock(&found.startup, idle.startup, 6, Cause::StartupTimeout);
        if let First::After(limit) = idle.first {
            clock(&found.first, Some(limit), IDLE_RANK, Cause::FirstTimeout);
        }
        if pause.tool_limit != ToolLimit::default() {
            let names = self.endless.pause.tool_limit.by_name.entries();
            for (entry, pieces) in &found.tools {
                let limit = match entry.and_then(|entry| names.get(entry as usize)) {
                    Some((name, _)) => pause.tool_limit.of(name),
                    None => pause.tool_limit.default,
                };
                clock(pieces, limit, LIMIT_RANK, Cause::ToolTimeout);
            }
        }
        if let Some(cap) = policy.turns.cap_of(role) {
            let stop = found.stops.iter().find(|stop| stop.cap >= cap);
            consider(stop.map(|stop| Crossing {
                at_ms: stop.at_ms,
                rank: STOP_RANK,
                nth: 0,
                cause: Cause::TurnLimit,
                unseen: Some(stop.unseen),
                needs_replay: false,
            }));
        }
        first
    }
}

/// Limits of open things rank by their age.
const LIMIT_RANK: u8 = 4;
const IDLE_RANK: u8 = 7;
/// A stop is an event, and every timer goes before an event of its instant.
const STOP_RANK: u8 = 9;

/// One stretch of one clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// When the clock began to run, ms.
    pub from_ms: u64,
    /// When it stopped.
    pub to_ms: u64,
    /// What it had read before.
    pub before_ms: u64,
    /// Where the driver counts its looks from.
    pub origin_ms: u64,
    /// Of limits of open things: which of them it is.
    pub nth: u32,
    /// A spare window was held at its end.
    pub spare: bool,
}

impl Piece {
    /// What the clock read at its end.
    pub const fn reading_ms(&self) -> u64 {
        self.before_ms.saturating_add(self.to_ms - self.from_ms)
    }
}

/// An event that stops every run whose cap is at most `cap`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stop {
    /// The largest cap that it stops.
    pub cap: u32,
    /// When.
    pub at_ms: u64,
    /// The index of the event after it.
    pub unseen: usize,
}

/// What of one run can cross a limit, under one structure: of every clock the stretches that no earlier one makes
/// irrelevant.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Crossings {
    idle: Vec<Piece>,
    first: Vec<Piece>,
    /// Both of the above, as one clock.
    either: Vec<Piece>,
    ceiling: Vec<Piece>,
    startup: Vec<Piece>,
    compaction: Vec<Piece>,
    backoff: Vec<Piece>,
    total: Vec<Piece>,
    result_grace: Vec<Piece>,
    /// By the place of the tool's name in the structure; `None` for tools that are not named.
    tools: Vec<(Option<u32>, Vec<Piece>)>,
    stops: Vec<Stop>,
    /// How the run ends when nothing is crossed.
    end: Option<(Cause, u64)>,
    origin_ms: u64,
    slack_ms: u64,
}

impl Crossings {
    /// The clocks whose stretches are kept in lists of their own, and the idle clock's two together.
    pub(crate) const LISTS: usize = 9;

    pub(crate) fn lists(&self) -> [&[Piece]; Self::LISTS] {
        // without a first window the idle clock's list is both
        let either = if self.first.is_empty() {
            &[]
        } else {
            self.either.as_slice()
        };
        [
            &self.idle,
            &self.first,
            either,
            &self.ceiling,
            &self.startup,
            &self.compaction,
            &self.backoff,
            &self.total,
            &self.result_grace,
        ]
    }

    pub(crate) fn tools(&self) -> &[(Option<u32>, Vec<Piece>)] {
        &self.tools
    }

    pub(crate) fn stops(&self) -> &[Stop] {
        &self.stops
    }

    /// What was kept, from its parts; `None` when they are not [`Crossings::LISTS`] lists.
    pub(crate) fn restore(
        lists: Vec<Vec<Piece>>,
        tools: Vec<(Option<u32>, Vec<Piece>)>,
        stops: Vec<Stop>,
        end: (Cause, u64),
    ) -> Option<Self> {
        let [
            idle,
            first,
            either,
            ceiling,
            startup,
            compaction,
            backoff,
            total,
            result_grace,
        ] = <[Vec<Piece>; Self::LISTS]>::try_from(lists).ok()?;
        Some(Self {
            either: if first.is_empty() {
                idle.clone()
            } else {
                either
            },
            idle,
            first,
            ceiling,
            startup,
            compaction,
            backoff,
            total,
            result_grace,
            tools,
            stops,
            end: Some(end),
            origin_ms: 0,
            slack_ms: 0,
        })
    }

    /// The ends of all stretches that are kept, and the stops.
    pub(crate) fn ends(&self) -> impl Iterator<Item = u64> + '_ {
        let tools = self.tools.iter().flat_map(|(_, pieces)| pieces);
        let pieces = self.lists().into_iter().flatten().chain(tools);
        pieces
            .map(|piece| piece.to_ms)
            .chain(self.stops.iter().map(|stop| stop.at_ms))
    }

    /// What the idle window is compared with under `policy`.
    pub fn idle(&self, policy: &Policy) -> &[Piece] {
        match policy.idle.first {
            First::SameAsWindow => &self.either,
            First::Off | First::After(_) => &self.idle,
        }
    }

    /// How the run ends when no limit is crossed, and when.
    pub fn end(&self) -> (Cause, u64) {
        self.end.unwrap_or((Cause::Running, 0))
    }

    fn clear(&mut self, slack_ms: u64) {
        for pieces in [
            &mut self.idle,
            &mut self.first,
            &mut self.either,
            &mut self.ceiling,
            &mut self.startup,
            &mut self.compaction,
            &mut self.backoff,
            &mut self.total,
            &mut self.result_grace,
        ] {
            pieces.clear();
        }
        self.tools.clear();
        self.stops.clear();
        self.end = None;
        self.origin_ms = 0;
        self.slack_ms = slack_ms;
    }

    /// Keeps what can matter of `output`; `next` is the index of the event after the one that brought it.
    fn take(&mut self, output: &Output, next: usize) {
        match output {
            Output::SegmentStarted { at, .. } => self.origin_ms = at.as_u64(),
            Output::TurnStop { at, cap }
                if self.stops.last().is_none_or(|last| last.cap < *cap) =>
            {
                self.stops.push(Stop {
                    cap: *cap,
                    at_ms: at.as_u64(),
                    unseen: next,
                });
            }
            Output::Silence(silence) => self.take_silence(silence),
            _ => {}
        }
    }

    fn take_silence(&mut self, silence: &Silence) {
        let (from_ms, to_ms) = (silence.from.as_u64(), silence.to.as_u64());
        let piece = Piece {
            from_ms,
            to_ms,
            before_ms: silence.reading.as_u64() - (to_ms - from_ms),
            origin_ms: self.origin_ms,
            nth: silence.nth,
            spare: silence.spare_since.is_some(),
        };
        let slack_ms = self.slack_ms;
        let keep = |pieces: &mut Vec<Piece>| keep(pieces, piece, slack_ms);
        match silence.clock {
            ClockClass::Idle => {
                keep(&mut self.idle);
                keep(&mut self.either);
            }
            ClockClass::First => {
                keep(&mut self.first);
                keep(&mut self.either);
            }
            ClockClass::Ceiling => keep(&mut self.ceiling),
            ClockClass::Startup => keep(&mut self.startup),
            ClockClass::Compaction => keep(&mut self.compaction),
            ClockClass::Backoff => keep(&mut self.backoff),
            ClockClass::Total => keep(&mut self.total),
            ClockClass::ResultGrace => keep(&mut self.result_grace),
            ClockClass::Tool => {
                let place = self
                    .tools
                    .iter()
                    .position(|(entry, _)| *entry == silence.entry);
                let place = place.unwrap_or_else(|| {
                    self.tools.push((silence.entry, Vec::new()));
                    self.tools.len() - 1
                });
                keep(&mut self.tools[place].1);
            }
            // runs in memory bring no deadline of a caller
            ClockClass::Deadline => {}
        }
    }
}

/// Adds `piece` unless an earlier stretch fires first whatever the limit.
///
/// An earlier stretch that reads at least `slack` more holds a look of the driver whenever this one could be seen
/// crossing (performance section 3). A stretch that goes on from a frozen reading holds one only if it is long itself.
fn keep(pieces: &mut Vec<Piece>, piece: Piece, slack_ms: u64) {
    let reading_ms = piece.reading_ms();
    let covers = |earlier: &Piece| {
        earlier.reading_ms().saturating_sub(slack_ms) >= reading_ms
            && (earlier.before_ms == 0 || earlier.to_ms - earlier.from_ms >= slack_ms)
    };
    // without slack readings rise, so that the last one decides
    let covered = if slack_ms == 0 {
        pieces.last().is_some_and(covers)
    } else {
        pieces.iter().any(covers)
    };
    if reading_ms > 0 && !covered {
        pieces.push(piece);
    }
}

/// Where a clock is seen crossing its limit.
struct Found {
    at_ms: u64,
    piece: Piece,
}

impl Found {
    fn of(&self, cause: Cause, rank: u8, policy: &Policy) -> Crossing {
        Crossing {
            at_ms: self.at_ms,
            rank,
            nth: self.piece.nth,
            cause,
            unseen: None,
            // A spare window would take the expiry. A clock seen overdue as it starts fires in the middle of an instant.
            needs_replay: (rank == IDLE_RANK && self.piece.spare && policy.idle.grace_cycles > 0)
                || self.at_ms == self.piece.from_ms,
        }
    }
}

/// The first crossing of `limit` by one of `pieces`, looked for every `period` (0: at once).
fn first_crossing(pieces: &[Piece], limit: u64, period: u64) -> Option<Found> {
    let due = |piece: &Piece| {
        piece
            .from_ms
            .saturating_add(limit.saturating_sub(piece.before_ms))
    };
    let start = if period == 0 && pieces.is_sorted_by_key(Piece::reading_ms) {
        pieces.partition_point(|piece| piece.reading_ms() < limit)
    } else {
        0
    };
    let mut best: Option<Found> = None;
    for piece in &pieces[start..] {
        if piece.reading_ms() < limit {
            continue;
        }
        let at = seen(
            Millis::new(due(piece)),
            Millis::new(piece.origin_ms),
            (period > 0).then(|| Millis::new(period)),
        );
        let at_ms = at.as_u64();
        if at_ms <= piece.to_ms
            && best
                .as_ref()
                .is_none_or(|best| (at_ms, piece.nth) < (best.at_ms, best.piece.nth))
        {
            best = Some(Found {
                at_ms,
                piece: *piece,
            });
        }
        if piece.nth == 0 && best.is_some() {
            // one clock's stretches follow each other
            break;
        }
    }
    best
}

/// A limit crossed, or a cap met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Crossing {
    /// When it is seen, ms.
    pub at_ms: u64,
    rank: u8,
    nth: u32,
    /// What it is.
    pub cause: Cause,
    /// Of a stop: the index of the event after it. A timer leaves the events from its instant on unseen.
    pub unseen: Option<usize>,
    /// The stretches do not settle what follows: the run has to be replayed under the numbers.
    pub needs_replay: bool,
}

impl Crossing {
    /// Whether this one ends the run rather than `other`.
    pub fn goes_before(&self, other: &Self) -> bool {
        (self.at_ms, self.rank, self.nth) < (other.at_ms, other.rank, other.nth)
    }

    /// Whether the idle clock, crossing at `at_ms`, goes before this.
    pub const fn loses_to_idle_at(&self, at_ms: u64) -> bool {
        at_ms < self.at_ms || (at_ms == self.at_ms && self.rank > IDLE_RANK)
    }

    /// Whether it is a kill.
    pub const fn is_kill(&self) -> bool {
        kill_class(self.cause).is_some()
    }
}

/// How a run ends under some numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// By this crossing.
    Ends(Crossing),
    /// By itself, or with its record.
    Survives,
    /// Only a replay can tell.
    NeedsReplay,
}

impl Answer {
    const fn of(crossing: Crossing) -> Self {
        if crossing.needs_replay {
            Self::NeedsReplay
        } else {
            Self::Ends(crossing)
        }
    }
}
