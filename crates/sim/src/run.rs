//! A run in memory: the form that replay, gaps, sweep and synthesis work on.

use std::collections::HashMap;
use std::sync::Arc;

use policysim_policy::{CallId, Event, Kind, Millis, Outcome};

/// A name (tool, `other` kind) as a number into a [`Symbols`] table; 0 is the empty name.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Symbol(pub u32);

/// The names that the events of a fleet refer to, numbered in order of first use.
#[derive(Clone, Debug)]
pub struct Symbols {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Symbol>,
}

impl Default for Symbols {
    fn default() -> Self {
        let empty: Arc<str> = Arc::from("");
        Self {
            names: vec![Arc::clone(&empty)],
            numbers: HashMap::from([(empty, Symbol(0))]),
        }
    }
}

impl Symbols {
    /// The number of `name`, given now if it has none yet.
    ///
    /// # Panics
    /// When more than `u32::MAX` different names are added.
    pub fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&symbol) = self.numbers.get(name) {
            return symbol;
        }
        let symbol = Symbol(u32::try_from(self.names.len()).expect("fewer than 2^32 names"));
        let name: Arc<str> = Arc::from(name);
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, symbol);
        symbol
    }

    /// The number of `name`, if it has one.
    pub fn get(&self, name: &str) -> Option<Symbol> {
        self.numbers.get(name).copied()
    }

    /// The name behind `symbol`; empty for one of another table.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names.get(symbol.0 as usize).map_or("", |name| name)
    }
}

/// Which wait of `DEFINITIONS.md` section 4 an event ended.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum WaitKind {
    /// Hand-off to first output.
    PreToken,
    /// The same, with failed calls in between.
    PreTokenErr,
    /// Between two blocks of one answer.
    StreamGap,
    /// Output after output without a hand-off.
    Continuation,
    /// A tool call.
    Tool,
    /// A tool call that asked for escalated permissions.
    ToolEscalated,
    /// A call that runs a subagent.
    Subagent,
    /// A call that is, or was rejected by, a human.
    Human,
    /// A recorded approval dialog.
    Approval,
    /// Hand-off to a failed call.
    ErrorWait,
    /// Failed call to the next failed call or output.
    Retry,
    /// Hand-off to the end of a compaction.
    Compact,
    /// Hand-off to a human abort.
    Censored,
    /// A time to first token that the client reported.
    ReportedTtft,
    /// Between two streamed pieces (samples only).
    InterToken,
}

impl WaitKind {
    /// Every kind, in the order in which tables list them.
    pub const ALL: [Self; 15] = [
        Self::PreToken,
        Self::PreTokenErr,
        Self::StreamGap,
        Self::Continuation,
        Self::Tool,
        Self::ToolEscalated,
        Self::Subagent,
        Self::Human,
        Self::Approval,
        Self::ErrorWait,
        Self::Retry,
        Self::Compact,
        Self::Censored,
        Self::ReportedTtft,
        Self::InterToken,
    ];

    /// The kind's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreToken => "pre_token",
            Self::PreTokenErr => "pre_token_err",
            Self::StreamGap => "stream_gap",
            Self::Continuation => "continuation",
            Self::Tool => "tool",
            Self::ToolEscalated => "tool_escalated",
            Self::Subagent => "subagent",
            Self::Human => "human",
            Self::Approval => "approval",
            Self::ErrorWait => "error_wait",
            Self::Retry => "retry",
            Self::Compact => "compact",
            Self::Censored => "censored",
            Self::ReportedTtft => "reported_ttft",
            Self::InterToken => "inter_token",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A measured wait: raw difference of two stamps, never negative, attached to the event that ended it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wait {
    /// What was waited for.
    pub kind: WaitKind,
    /// Its length in ms.
    pub ms: u64,
}

/// Quality marks and small facts of one event, as bits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct EventFlags(pub u16);

impl EventFlags {
    /// The event is activity by `DEFINITIONS.md` section 5 (P, J, M, K, R, E, A, and C where it counts).
    pub const ACTIVITY: Self = Self(1);
    /// The stamp stepped back and was clamped to the running maximum.
    pub const CLOCK_STEP: Self = Self(1 << 1);
    /// The wait is an upper bound of the silence (message resolution).
    pub const UPPER_BOUND: Self = Self(1 << 2);
    /// The wait holds a suspected host suspend.
    pub const SUSPECTED_SUSPEND: Self = Self(1 << 3);
    /// The wait may hold an approval that no record tells apart.
    pub const AMBIGUOUS_APPROVAL: Self = Self(1 << 4);
    /// Undated records lie inside the wait.
    pub const SPANS_UNDATED: Self = Self(1 << 5);
    /// The call never ran (unknown tool, invalid arguments, blocked): `Event::executed` is false.
    pub const NOT_EXECUTED: Self = Self(1 << 6);
    /// The tool can ask a human: `Event::may_ask`.
    pub const MAY_ASK: Self = Self(1 << 7);
    /// The tool asks the idle clock to stop: `Event::suspends`.
    pub const SUSPENDS: Self = Self(1 << 8);
    /// The wait was cut: its true end was not observed.
    pub const CENSORED: Self = Self(1 << 9);
    /// The record itself states the execution time: it is in [`RunEvent::announced_ms`]; the wait stays the gap
    /// between the stamps.
    pub const NATIVE_DURATION: Self = Self(1 << 10);
    /// A usage limit holds the run here: waiting for quota, then for a human; not a stall.
    pub const RATE_LIMITED: Self = Self(1 << 11);
    /// Several records carry one stamp where the source cannot have written them at once.
    pub const COLLAPSED_STAMPS: Self = Self(1 << 12);

    /// These marks and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all marks of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One timed observation of a run, as replayed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RunEvent {
    /// Milliseconds since the run's start; never decreases within a run.
    pub t_ms: u64,
    /// What was observed.
    pub kind: Kind,
    /// Which open thing it is about.
    pub id: CallId,
    /// Tool name, or the name of an `other`.
    pub name: Symbol,
    /// A length in ms that the record states: announced (`retry_start`, `human_wait_start`), with
    /// [`EventFlags::NATIVE_DURATION`] the execution time of a `tool_end`; of a `run_start` the caller's hard deadline.
    pub announced_ms: Option<u64>,
    /// Of a `run_end`: how the run ended.
    pub outcome: Option<Outcome>,
    /// The wait that this event ended, if it ended one.
    pub wait: Option<Wait>,
    /// Quality marks.
    pub flags: EventFlags,
}

impl RunEvent {
    /// An event of that kind and time with nothing else said.
    pub const fn new(t_ms: u64, kind: Kind) -> Self {
        Self {
            t_ms,
            kind,
            id: CallId::NONE,
            name: Symbol(0),
            announced_ms: None,
            outcome: None,
            wait: None,
            flags: EventFlags(0),
        }
    }

    /// The event as the core takes it.
    pub fn as_event<'a>(&self, symbols: &'a Symbols) -> Event<'a> {
        Event {
            kind: self.kind,
            id: self.id,
            name: symbols.name(self.name),
            announced: self
                .announced_ms
                .filter(|_| !self.flags.has(EventFlags::NATIVE_DURATION))
                .map(Millis::new),
            budget: None,
            deadline: None,
            outcome: self.outcome,
            executed: !self.flags.has(EventFlags::NOT_EXECUTED),
            may_ask: self.flags.has(EventFlags::MAY_ASK),
            suspends: self.flags.has(EventFlags::SUSPENDS),
        }
    }
}

/// How finely a log stamps the model's output.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Resolution {
    /// One stamp per finished block or message: gaps are upper bounds of the silence.
    #[default]
    Message,
    /// A stamp where output begins or for every piece.
    Stream,
}

impl Resolution {
    /// The resolution's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Stream => "stream",
        }
    }
}

/// What a row of events is, by `DEFINITIONS.md` section 5.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RunStatus {
    /// A run: at least one turn.
    #[default]
    Run,
    /// A prompt without any turn; its waits count, it is not a run.
    Unanswered,
    /// Waits seen while no run was open; not a run.
    Outside,
}

impl RunStatus {
    /// The status' name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Unanswered => "unanswered",
            Self::Outside => "outside",
        }
    }
}

/// What the record says about how a run ended.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RecordedEnd {
    /// It replied and control went back to the human or parent.
    Completed,
    /// It ended on a failed call.
    Failed,
    /// A human or the parent aborted it.
    Aborted,
    /// A recorded watchdog killed it.
    Killed,
    /// The record (or the generator) says that it hung.
    Hung,
    /// The log ends while control is with the model.
    OpenInModel,
    /// The log ends while a tool call is open.
    OpenInTool,
    /// The record does not say.
    #[default]
    Unknown,
}

impl RecordedEnd {
    /// Every way a record can end.
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::Failed,
        Self::Aborted,
        Self::Killed,
        Self::Hung,
        Self::OpenInModel,
        Self::OpenInTool,
        Self::Unknown,
    ];

    /// The end's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Killed => "killed",
            Self::Hung => "hung",
            Self::OpenInModel => "open_in_model",
            Self::OpenInTool => "open_in_tool",
            Self::Unknown => "unknown",
        }
    }
}

/// The row of a run in `DEFINITIONS.md` section 5, measured on raw stamps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Measured {
    /// Latest activity minus start, ms.
    pub duration_ms: u64,
    /// Model turns.
    pub turns: u32,
    /// Finished tool calls.
    pub tools: u32,
    /// Longest time from the latest activity so far to the next, ms.
    pub silence_ms: u64,
    /// Longest wait for the model to begin an output, ms.
    pub gap_ms: u64,
    /// A human aborted it.
    pub aborted: bool,
}

/// One execution of one agent, with its events.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Run {
    /// Name unique in its dataset: `SOURCE#N`, N counting the source's rows from 1 in closing order.
    pub name: Arc<str>,
    /// The source it was found in, relative to what was imported (or its hash).
    pub source: Arc<str>,
    /// Opaque key of the session (hashed), for clustering; empty when there is none.
    pub session: Arc<str>,
    /// Name of the run that delegated this one, when it is in the dataset; empty otherwise.
    pub parent: Arc<str>,
    /// Harness that wrote the log: `claude`, `codex`, `pi`, `copilot`, `gemini`, `opencode`, `policysim`, …
    pub harness: Arc<str>,
    /// The model of most turns; empty when unknown.
    pub model: Arc<str>,
    /// The agent's role (subagent type); empty for a main agent or when unknown.
    pub role: Arc<str>,
    /// Wall-clock start, ms since the Unix epoch; dates the run, never drives it.
    pub started_at_ms: i64,
    /// How finely output is stamped.
    pub resolution: Resolution,
    /// Run, unanswered prompt, or waits outside any run.
    pub status: RunStatus,
    /// How the record says it ended.
    pub end: RecordedEnd,
    /// When the record of this run ends, ms since its start: nothing is known after it.
    pub end_ms: u64,
    /// Its row in `DEFINITIONS.md` section 5.
    pub measured: Measured,
    /// Its events, by time, equal times in file order.
    pub events: Vec<RunEvent>,
}

/// Runs with the names that their events refer to.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// The runs, in dataset order.
    pub runs: Vec<Run>,
    /// The names of their events.
    pub symbols: Symbols,
}
