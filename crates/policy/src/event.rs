//! What a watchdog is fed: the closed alphabet of event kinds, and one event.

use core::fmt;

use crate::Millis;

/// What kind of thing was observed.
///
/// The list is closed; anything else is [`Kind::Other`] with its name kept in [`Event::name`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Kind {
    /// A run, a resumed segment's first attempt or an invocation begins. Frame, never evidence.
    RunStart,
    /// The run, or an invocation, ended; with an outcome it ends the run. Frame.
    RunEnd,
    /// An ended or interrupted run goes on: a new segment. Frame.
    Resume,
    /// A model turn begins.
    TurnStart,
    /// A model turn ended.
    TurnEnd,
    /// The model began an answer.
    MessageStart,
    /// A streamed piece of visible output.
    MessageUpdate,
    /// A streamed piece of reasoning.
    ThinkingUpdate,
    /// A streamed piece of a tool call's arguments.
    ToolArgsUpdate,
    /// An answer, or one finished block of it, is complete.
    MessageEnd,
    /// The model asked for a tool call; nothing runs yet.
    ToolRequested,
    /// A tool call was dispatched. Opens the call.
    ToolStart,
    /// A running tool reported something.
    ToolUpdate,
    /// A tool call returned. Closes the call.
    ToolEnd,
    /// A human is asked to allow a call. Opens a human wait.
    ApprovalStart,
    /// The human answered. Closes it.
    ApprovalEnd,
    /// A human is asked a question. Opens a human wait; may announce its length.
    HumanWaitStart,
    /// The human answered. Closes it.
    HumanWaitEnd,
    /// The provider call failed and a backoff begins; may announce its delay. Opens a backoff.
    RetryStart,
    /// The backoff is over. Closes it.
    RetryEnd,
    /// The context is being compacted. Opens a compaction.
    CompactionStart,
    /// Compaction is done. Closes it.
    CompactionEnd,
    /// The provider or a hook reports progress without content.
    Progress,
    /// A content-free beat on the model stream.
    Keepalive,
    /// Bookkeeping that carries no content.
    Status,
    /// Bytes arrived on the child's output.
    Stdout,
    /// A process was launched.
    ProcessStart,
    /// A process exited.
    ProcessExit,
    /// The bound session log grew.
    SessionAdvance,
    /// An authenticated request or beat from the child.
    Heartbeat,
    /// The host went to sleep. Frame.
    HostSuspend,
    /// The host woke up. Frame.
    HostResume,
    /// The parent accepted the delegation; nothing has started. Frame.
    Spawn,
    /// A parent starts waiting for children. Opens a wait for a child.
    WaitStart,
    /// That wait returned. Closes it.
    WaitEnd,
    /// The final result was seen; the run has not ended.
    Result,
    /// Anything else, with its name kept.
    Other,
}

impl Kind {
    /// Every kind, in declaration order: `ALL[k as usize] == k`.
    pub const ALL: [Self; 37] = [
        Self::RunStart,
        Self::RunEnd,
        Self::Resume,
        Self::TurnStart,
        Self::TurnEnd,
        Self::MessageStart,
        Self::MessageUpdate,
        Self::ThinkingUpdate,
        Self::ToolArgsUpdate,
        Self::MessageEnd,
        Self::ToolRequested,
        Self::ToolStart,
        Self::ToolUpdate,
        Self::ToolEnd,
        Self::ApprovalStart,
        Self::ApprovalEnd,
        Self::HumanWaitStart,
        Self::HumanWaitEnd,
        Self::RetryStart,
        Self::RetryEnd,
        Self::CompactionStart,
        Self::CompactionEnd,
        Self::Progress,
        Self::Keepalive,
        Self::Status,
        Self::Stdout,
        Self::ProcessStart,
        Self::ProcessExit,
        Self::SessionAdvance,
        Self::Heartbeat,
        Self::HostSuspend,
        Self::HostResume,
        Self::Spawn,
        Self::WaitStart,
        Self::WaitEnd,
        Self::Result,
        Self::Other,
    ];

    /// The kind's name in files, policies and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunStart => "run_start",
            Self::RunEnd => "run_end",
            Self::Resume => "resume",
            Self::TurnStart => "turn_start",
            Self::TurnEnd => "turn_end",
            Self::MessageStart => "message_start",
            Self::MessageUpdate => "message_update",
            Self::ThinkingUpdate => "thinking_update",
            Self::ToolArgsUpdate => "tool_args_update",
            Self::MessageEnd => "message_end",
            Self::ToolRequested => "tool_requested",
            Self::ToolStart => "tool_start",
            Self::ToolUpdate => "tool_update",
            Self::ToolEnd => "tool_end",
            Self::ApprovalStart => "approval_start",
            Self::ApprovalEnd => "approval_end",
            Self::HumanWaitStart => "human_wait_start",
            Self::HumanWaitEnd => "human_wait_end",
            Self::RetryStart => "retry_start",
            Self::RetryEnd => "retry_end",
            Self::CompactionStart => "compaction_start",
            Self::CompactionEnd => "compaction_end",
            Self::Progress => "progress",
            Self::Keepalive => "keepalive",
            Self::Status => "status",
            Self::Stdout => "stdout",
            Self::ProcessStart => "process_start",
            Self::ProcessExit => "process_exit",
            Self::SessionAdvance => "session_advance",
            Self::Heartbeat => "heartbeat",
            Self::HostSuspend => "host_suspend",
            Self::HostResume => "host_resume",
            Self::Spawn => "spawn",
            Self::WaitStart => "wait_start",
            Self::WaitEnd => "wait_end",
            Self::Result => "result",
            Self::Other => "other",
        }
    }

    /// The kind of that name, if it is one of the closed list.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Identifies one open thing (a tool call, a question, a wait) within a run.
///
/// Text ids are folded to 64 bits so that an event is small and copies nothing; a driver that
/// interns its ids can pass its own numbers instead.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId(u64);

impl CallId {
    /// The id of something that carries none.
    pub const NONE: Self = Self(0);

    /// An id the driver has numbered itself.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The id of that text: FNV-1a, 64 bits; empty text is [`CallId::NONE`].
    pub const fn from_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Self::NONE;
        }
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash ^= bytes[i] as u64;
            hash = hash.wrapping_mul(0x0100_0000_01b3);
            i += 1;
        }
        Self(if hash == 0 { 1 } else { hash })
    }

    /// The number behind the id.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// How a run ended by itself.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Outcome {
    /// A human or the parent ended it.
    Aborted,
    /// It delivered its final reply.
    Completed,
    /// It gave up on an error.
    Failed,
}

impl Outcome {
    /// The outcome's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aborted => "aborted",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// One timed observation of a run, without its time: the watchdog takes that beside it.
///
/// ```
/// use policysim_policy::{CallId, Event, Kind};
/// let start = Event::new(Kind::ToolStart).with_id(CallId::from_text("t1")).with_name("bash");
/// assert_eq!(start.name, "bash");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event<'a> {
    /// What was observed.
    pub kind: Kind,
    /// Which open thing it is about; [`CallId::NONE`] when it has no id.
    pub id: CallId,
    /// The tool's name, or the name of an [`Kind::Other`]; empty when there is none.
    pub name: &'a str,
    /// An announced length: of a backoff (`retry_start`) or of a timed pause (`human_wait_start`).
    pub announced: Option<Millis>,
    /// Of a `run_start`: the invocation's own idle window, if it brings one.
    pub budget: Option<Millis>,
    /// Of a `run_start`: the caller's hard deadline, an instant.
    pub deadline: Option<Millis>,
    /// Of a `run_end`: how the run ended; `None` closes one nested invocation only.
    pub outcome: Option<Outcome>,
    /// Of a `tool_end`: false when the call never ran (unknown tool, invalid arguments, blocked).
    pub executed: bool,
    /// Of a tool's start or update: the tool can ask a human.
    pub may_ask: bool,
    /// Of a tool's start or update: the tool is waiting for an approval and asks the idle clock to stop.
    pub suspends: bool,
}

impl<'a> Event<'a> {
    /// An event of that kind with nothing else said.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            id: CallId::NONE,
            name: "",
            announced: None,
            budget: None,
            deadline: None,
            outcome: None,
            executed: true,
            may_ask: false,
            suspends: false,
        }
    }

    /// The same event about the open thing `id`.
    #[must_use]
    pub const fn with_id(mut self, id: CallId) -> Self {
        self.id = id;
        self
    }

    /// The same event with a tool's or other's name.
    #[must_use]
    pub const fn with_name(mut self, name: &'a str) -> Self {
        self.name = name;
        self
    }

    /// The same event with an announced length.
    #[must_use]
    pub const fn with_announced(mut self, announced: Millis) -> Self {
        self.announced = Some(announced);
        self
    }

    /// The same event with the way the run ended.
    #[must_use]
    pub const fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }
}
