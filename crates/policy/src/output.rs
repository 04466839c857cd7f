//! The lifecycle transcript: what a watchdog tells, as facts for the caller to carry out or record.

use core::fmt;

use crate::{CallId, Kind, Millis, Verdict};

/// How much a watchdog tells. Behaviour never depends on it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Trace {
    /// Only how the run ended.
    #[default]
    Verdict,
    /// Also segments, and every stretch that a clock read: what gaps are measured from.
    Silences,
    /// The same, and the events that would stop a run at some turn cap: all that decides under any numbers. Stretches of
    /// the idle clock that end within this span are told by [`Watchdog::handle_plain`](crate::Watchdog::handle_plain)
    /// in its own way, so that most of a run costs no more than without telling.
    Crossings(Millis),
    /// Everything.
    Full,
}

/// One fact about the run under its policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// The parent accepted the delegation.
    Spawned {
        /// When.
        at: Millis,
    },
    /// A segment begins: the watchdog itself, an outermost start, or a resume.
    SegmentStarted {
        /// When; ticks of a polled policy count from here.
        at: Millis,
        /// Whether an ended run goes on: its earlier terminal output no longer stands.
        reopens: bool,
    },
    /// The outermost end of a segment, without the run's outcome.
    SegmentEnded {
        /// When.
        at: Millis,
    },
    /// An event counted as evidence and restarted the window in force.
    Rearmed {
        /// When.
        at: Millis,
        /// By what.
        by: Kind,
        /// When the idle clock is due now, if its window is on.
        due: Option<Millis>,
    },
    /// Clocks stop for something that opened, or for a suspend flag.
    Paused {
        /// When.
        at: Millis,
        /// Which clocks.
        clocks: Stopped,
        /// For what.
        reason: Reason,
    },
    /// What they stopped for is over: idle starts afresh, the others go on with what they had left.
    Resumed {
        /// When.
        at: Millis,
        /// Which clocks.
        clocks: Stopped,
        /// What closed last.
        reason: Reason,
    },
    /// Something worth a line in a log; no clock ended the run.
    Warned {
        /// When.
        at: Millis,
        /// What.
        warning: Warning,
    },
    /// A clock read this stretch.
    Silence(Silence),
    /// An event at which every run is stopped whose turn cap is at most `cap`. Told under [`Trace::Crossings`].
    TurnStop {
        /// When.
        at: Millis,
        /// The largest cap that stops the run here.
        cap: u32,
    },
    /// The policy ends the run. Terminal.
    Fired(Verdict),
    /// The run ended by itself, or the record did. Terminal.
    Ended(Verdict),
}

impl Output {
    /// The verdict of a terminal output.
    pub const fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Fired(verdict) | Self::Ended(verdict) => Some(verdict),
            _ => None,
        }
    }
}

/// Which clocks a pause concerns.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stopped {
    /// The idle clocks.
    Idle,
    /// The total, and the limits of other open things.
    Hard,
    /// Both.
    All,
}

/// What clocks wait for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// Something open.
    Open {
        /// Its class.
        class: OpenClass,
        /// Its id.
        id: CallId,
    },
    /// A tool said that it is waiting for an approval.
    SuspendFlag,
}

/// The classes of things that a run can wait for.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum OpenClass {
    /// A tool call.
    Tool,
    /// A human: a question, an approval, a call of a human tool.
    Human,
    /// A delegate.
    Child,
    /// A provider backoff.
    Backoff,
    /// A compaction of the context.
    Compaction,
}

impl OpenClass {
    /// Every class, in declaration order: `ALL[c as usize] == c`.
    pub const ALL: [Self; 5] = [
        Self::Tool,
        Self::Human,
        Self::Child,
        Self::Backoff,
        Self::Compaction,
    ];

    /// The class's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Human => "human",
            Self::Child => "child",
            Self::Backoff => "backoff",
            Self::Compaction => "compaction",
        }
    }
}

impl fmt::Display for OpenClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Noteworthy things that end nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Warning {
    /// An idle expiry was absorbed by a spare window.
    SpareWindowUsed,
    /// The turn cap is reached; the run ends after this turn if every call of it asks for that.
    TurnCapReached {
        /// Turns so far.
        turns: u32,
    },
    /// A start whose id is open already; it opens nothing.
    RepeatedStart {
        /// Of what class.
        class: OpenClass,
        /// With what id.
        id: CallId,
    },
    /// A human wait while another is open, refused by the policy.
    RefusedOverlap {
        /// The id of the refused wait.
        id: CallId,
    },
    /// An end without a start; it closes nothing.
    UnmatchedEnd {
        /// Of what kind.
        kind: Kind,
        /// With what id.
        id: CallId,
    },
    /// A call that a new turn closed: its end was lost.
    LostEnd {
        /// The id of the call.
        id: CallId,
    },
    /// A wait of announced length that closed itself.
    AnnouncedEnd {
        /// Of what class.
        class: OpenClass,
        /// With what id.
        id: CallId,
    },
    /// More things are open than a watchdog follows; this start opens nothing.
    TooManyOpen {
        /// The id of the start.
        id: CallId,
    },
}

/// The clocks that can end a run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ClockClass {
    /// The idle window.
    Idle,
    /// The first window, where the policy gives one.
    First,
    /// The no-progress ceiling.
    Ceiling,
    /// Spawn to first event.
    Startup,
    /// The limit of one tool call.
    Tool,
    /// The limit of one compaction.
    Compaction,
    /// The budget of a segment's backoffs.
    Backoff,
    /// The total budget.
    Total,
    /// The caller's hard deadline.
    Deadline,
    /// From the result to the forced end.
    ResultGrace,
}

impl ClockClass {
    /// Every class, in declaration order: `ALL[c as usize] == c`.
    pub const ALL: [Self; 10] = [
        Self::Idle,
        Self::First,
        Self::Ceiling,
        Self::Startup,
        Self::Tool,
        Self::Compaction,
        Self::Backoff,
        Self::Total,
        Self::Deadline,
        Self::ResultGrace,
    ];

    /// The class's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::First => "first",
            Self::Ceiling => "ceiling",
            Self::Startup => "startup",
            Self::Tool => "tool",
            Self::Compaction => "compaction",
            Self::Backoff => "backoff",
            Self::Total => "total",
            Self::Deadline => "deadline",
            Self::ResultGrace => "result_grace",
        }
    }
}

impl fmt::Display for ClockClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One stretch over which a clock ran: from its (re)start or thaw to whatever stopped it.
///
/// A clock that is off reads nothing; for readings independent of a number, give that limit as
/// [`Millis::MAX`], which never fires.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Silence {
    /// Which clock.
    pub clock: ClockClass,
    /// The call or compaction whose limit it is; [`CallId::NONE`] otherwise.
    pub id: CallId,
    /// When the clock began to run.
    pub from: Millis,
    /// When it stopped, or was read and began again.
    pub to: Millis,
    /// What it read at `to`: `to - from`, plus what it had read before it was last frozen.
    pub reading: Millis,
    /// Why it ended.
    pub end: SilenceEnd,
    /// Since when a spare window was held at `to`, if one was: the clock then fires only at twice its window.
    pub spare_since: Option<Millis>,
    /// Of the limit of an open thing: which of the run's limits it is, from 1; of limits seen together the lowest
    /// goes first. 0 for every other clock.
    pub nth: u32,
    /// Of the limit of a call: the place of the tool's name in `pause.tool_limit.by_name`, where it is named there.
    pub entry: Option<u32>,
}

/// Why a clock's stretch ended.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SilenceEnd {
    /// Evidence restarted it.
    Rearmed,
    /// Something opened, or a flag was raised, for which it waits.
    Paused,
    /// It was replaced: its phase or segment ended, its startup or its open thing was over.
    Switched,
    /// A spare window took its expiry.
    Spared,
    /// It, or another clock, ended the run.
    Fired,
    /// The run ended by itself.
    Ended,
    /// The record stops here: the true end was not observed.
    Cut,
}

impl SilenceEnd {
    /// The end's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rearmed => "rearmed",
            Self::Paused => "paused",
            Self::Switched => "switched",
            Self::Spared => "spared",
            Self::Fired => "fired",
            Self::Ended => "ended",
            Self::Cut => "cut",
        }
    }
}
