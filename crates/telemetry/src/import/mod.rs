//! Importers: session logs of six agents in, runs of timed events out.
//!
//! [`sniff`] tells the format from the first bytes, [`import_source`] reads one source in one pass and hands each
//! finished run to a sink. The waits are those of `DEFINITIONS.md`, to the millisecond; the events are every dated
//! record of a run. Nothing but timing, kinds, names of tools, models and roles, outcome classes and opaque ids is
//! kept: no prompt, no output, no argument, no path.
//!
//! Which records of a format are which event (the letters of `DEFINITIONS.md` section 3, listed there);
//! everything else is bookkeeping. What the events become is the table in `build.rs`.
//!
//! | | claude | codex | copilot | gemini | opencode | pi |
//! |---|---|---|---|---|---|---|
//! | P | `user` text | `user_message`, the first of a task | `user.message` | entry `user` | message `user` | role `user` |
//! | J | | further `user_message` of a task | | | | |
//! | H | meta and summary `user` | | | | | |
//! | M | `assistant`, keyed by message | `reasoning`, calls, answers | `assistant.message` | entry `gemini` | first part | role `assistant` |
//! | K, calls | `tool_use` blocks | `function_call` and kin | `tool.execution_start` | start of `toolCalls` | start of a tool part | `toolCall` blocks |
//! | R | `tool_result` blocks | their outputs | `tool.execution_complete` | end of `toolCalls` | end of a tool part | `toolResult` |
//! | E | `api_error`, API-error answers | `error`, `stream_error` | `session.error` | entry `error` | message with `error` | stop reason `error` |
//! | A | interrupt note | `turn_aborted` | `abort` | | `MessageAbortedError` | stop reason `aborted` |
//! | C | automatic `compact_boundary` | `compacted` | | | | `compaction` |
//! | T, X | | `task_complete` | | | | |
//! | Q | | | `permission.requested`, `.completed` | | | |

mod build;
mod claude;
mod codex;
mod copilot;
mod event;
mod gemini;
mod json;
mod lines;
mod names;
mod opencode;
mod pi;
mod read;
pub(crate) mod record;
mod report;
mod sniff;
mod source;
mod timestamp;
mod waits;

use std::io::{self, BufRead};
use std::sync::Arc;

use policysim_sim::run::{Run, Symbols};

use claude::Claude;
use codex::Codex;
use copilot::Copilot;
use gemini::Gemini;
use opencode::Opencode;
use pi::Pi;
use read::{Translate, read_document, read_lines};
use source::{Agent, Source};

pub use event::tool_wait;
pub(crate) use names::{bounded, opaque, unsteered};
pub use report::{
    Accounting, AgentSeen, BadLine, BadReason, Counts, Delegation, Fate, LISTED_BAD_LINES,
    LOG_WAITS, RunRow, SourceReport, Tally, WaitTable, WaitTotals,
};
pub use sniff::{Sniffed, sniff};

/// A log format that an importer reads.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Format {
    /// Claude Code sessions, JSON lines.
    Claude,
    /// Codex rollouts, JSON lines.
    Codex,
    /// Copilot CLI event logs, JSON lines.
    Copilot,
    /// Gemini CLI chats, one JSON document.
    Gemini,
    /// `OpenCode` session exports, one JSON document.
    Opencode,
    /// Pi sessions, JSON lines.
    Pi,
}

impl Format {
    /// Every format, in the order in which they are listed and tried.
    pub const ALL: [Self; 6] = [
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::Gemini,
        Self::Opencode,
        Self::Pi,
    ];

    /// The format's name on the command line, in files and output; also the harness of its runs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether a source is one JSON document rather than JSON lines.
    pub const fn is_document(self) -> bool {
        matches!(self, Self::Gemini | Self::Opencode)
    }
}

/// One source to import.
pub struct SourceInput<'a> {
    /// Its name, relative to what is imported; becomes [`Run::source`].
    pub name: &'a str,
    /// Its bytes, decompressed.
    pub reader: &'a mut dyn BufRead,
}

/// What the caller knows beyond the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions {
    /// When the observation of the sources ended, ms since the Unix epoch: a run still open at the end of its log
    /// was then still open. Never a file's modification time, which copying changes.
    pub observed_until_ms: Option<i64>,
}

/// Takes what a source brings. A closure that takes runs is one.
pub trait Sink {
    /// Takes a finished run; `symbols` holds the names that its events refer to.
    ///
    /// # Errors
    /// Whatever keeps the run from being taken; it ends the import.
    fn run(&mut self, run: Run, symbols: &Symbols) -> Result<(), SinkError>;

    /// Told of every dated record with an id of its own (`record` is the hash of id and content, `stamp_ms` since the
    /// Unix epoch): whether another source already brought it, so that it counts there and not here.
    fn is_elsewhere(&mut self, record: u64, stamp_ms: i64) -> bool {
        let _ = (record, stamp_ms);
        false
    }
}

impl<F: FnMut(Run, &Symbols) -> Result<(), SinkError>> Sink for F {
    fn run(&mut self, run: Run, symbols: &Symbols) -> Result<(), SinkError> {
        self(run, symbols)
    }
}

/// What a sink answers when it cannot take a run.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// Why a source could not be imported to its end. Malformed content is never a reason.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The source could not be read.
    #[error("cannot read {source_name} after byte {offset}")]
    Read {
        /// The source's name.
        source_name: Arc<str>,
        /// How many bytes had been read.
        offset: u64,
        /// What the reader said.
        source: io::Error,
    },
    /// The sink did not take a run.
    #[error("cannot store a run of {source_name}")]
    Sink {
        /// The source's name.
        source_name: Arc<str>,
        /// What the sink said.
        source: SinkError,
    },
}

/// Reads one source in one pass and gives each finished run, with the names so far, to `sink`, in closing order.
///
/// # Errors
/// [`ImportError::Read`] when the reader fails, [`ImportError::Sink`] when the sink does. What the source says is
/// never an error: lines that cannot be read are counted and listed in the report.
pub fn import_source(
    input: SourceInput<'_>,
    format: Format,
    options: &ImportOptions,
    symbols: &mut Symbols,
    sink: &mut dyn Sink,
) -> Result<SourceReport, ImportError> {
    let SourceInput { name, reader } = input;
    let mut source = Source::new(name, format, options, symbols, sink);
    match format {
        Format::Claude => read_lines(reader, &mut Claude::default(), &mut source)?,
        Format::Codex => read_one_agent(reader, &mut Codex::default(), &mut source)?,
        Format::Copilot => read_one_agent(reader, &mut Copilot::default(), &mut source)?,
        Format::Gemini => read_one_agent(reader, &mut Gemini, &mut source)?,
        Format::Opencode => read_one_agent(reader, &mut Opencode::default(), &mut source)?,
        Format::Pi => read_one_agent(reader, &mut Pi, &mut source)?,
    }
    source.finish()
}

/// Reads a source of a format that has exactly one agent, even in an empty source.
fn read_one_agent(
    reader: &mut dyn BufRead,
    translator: &mut dyn Translate,
    source: &mut Source<'_>,
) -> Result<(), ImportError> {
    source.stream(&Agent::Main);
    if source.report.format.is_document() {
        read_document(reader, translator, source)
    } else {
        read_lines(reader, translator, source)
    }
}
