//! The events of `DEFINITIONS.md` section 3: what every format is translated to.

use policysim_policy::{CallId, Kind};
use policysim_sim::run::{EventFlags, Symbol, WaitKind};

/// One event of a stream, small and without text: it may have to wait in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ev {
    /// When, ms since the Unix epoch. A gap mark has none; its value is not looked at.
    pub(super) t: i64,
    /// What happened.
    pub(super) what: What,
    /// Marks of the record: `CLOCK_STEP`, `SPANS_UNDATED`.
    pub(super) flags: EventFlags,
}

/// What an event means, with its letter in `DEFINITIONS.md`.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// P: a prompt.
    Prompt,
    /// J: a prompt inside a running task.
    Joined,
    /// H: an automatic hand-off.
    HandOff,
    /// M: model output; the calls in it follow as [`What::Call`] of the same instant.
    Output {
        /// Tells which outputs are pieces of one message.
        key: Key,
        /// The model, 0 when unknown.
        model: Symbol,
    },
    /// K, or a call inside an M: a tool call starts.
    Call(Call),
    /// R: a tool result.
    Result {
        /// Whose.
        id: CallId,
        /// The tool's name where the result repeats it.
        name: Symbol,
        /// Whether a human refused the call.
        rejected: bool,
        /// The execution time that the record itself states.
        native_ms: Option<u64>,
    },
    /// E: a failed model call.
    Failed {
        /// The delay announced for the next attempt.
        announced_ms: Option<u64>,
        /// Whether no attempt follows by itself.
        last: bool,
        /// Whether a usage limit was the cause.
        rate_limited: bool,
    },
    /// A: a human abort.
    Aborted,
    /// C: a compaction finished.
    Compacted,
    /// T: the task ended.
    TaskEnded,
    /// Q: an approval dialog, told at its end.
    Approval {
        /// Whose.
        id: CallId,
        /// When it began.
        start: i64,
        /// Whether its beginning stands later in the file than its end: both are told here.
        whole: bool,
    },
    /// X: a time to first token that the client reports.
    FirstToken {
        /// The value, ms.
        ms: i64,
    },
    /// G: something between here and the previous event could not be read.
    Gap,
    /// A dated record that is none of the above.
    Note {
        /// What it is replayed as.
        kind: Kind,
        /// What it is about.
        id: CallId,
        /// The name of an `other`.
        name: Symbol,
    },
}

/// The message key of an output.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Key {
    /// No key.
    #[default]
    None,
    /// A key that no other output has.
    Own,
    /// The hash of the key's text.
    Text(u64),
}

impl Key {
    /// The key of that text.
    pub(super) fn of(text: &str) -> Self {
        Self::Text(xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }

    /// Whether an output with this key continues the message with key `current`.
    pub(super) fn continues(self, current: Self) -> bool {
        matches!(self, Self::Text(_)) && self == current
    }
}

/// The kind of wait that a call of that tool is (`DEFINITIONS.md` section 4, rule R), unless a human refuses it.
pub fn tool_wait(name: &str) -> WaitKind {
    match name {
        "AskUserQuestion" | "ExitPlanMode" | "EnterPlanMode" | "request_user_input"
        | "question" | "ask_user" | "exit_plan_mode" => WaitKind::Human,
        "Task" | "Agent" | "task" => WaitKind::Subagent,
        _ => WaitKind::Tool,
    }
}

/// A tool call that starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Its id within the stream.
    pub(super) id: CallId,
    /// The tool.
    pub(super) name: Symbol,
    /// Which kind of wait it is, unless a human refuses it: `Human`, `Subagent`, `ToolEscalated` or `Tool`.
    pub(super) wait: WaitKind,
    /// Whether a human may be asked about it although no record will say so.
    pub(super) may_ask: bool,
}

impl Call {
    /// A call of the tool `name`; the kind follows from the name.
    pub(super) fn new(id: CallId, name: &str, symbol: Symbol) -> Self {
        let wait = tool_wait(name);
        Self {
            id,
            name: symbol,
            wait,
            may_ask: wait == WaitKind::Human,
        }
    }

    /// The same call with escalated permissions, which a human has to grant.
    pub(super) fn escalated(mut self) -> Self {
        if self.wait == WaitKind::Tool {
            self.wait = WaitKind::ToolEscalated;
        }
        self.may_ask = true;
        self
    }
}
