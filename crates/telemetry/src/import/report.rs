//! What one source held: the accounting of `DEFINITIONS.md` and of its lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use policysim_policy::CallId;
use policysim_sim::run::{Measured, Wait, WaitKind};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Format;

/// How many malformed lines a report lists one by one; the rest is only counted.
pub const LISTED_BAD_LINES: usize = 100_000;

/// Everything the import of one source says besides its runs.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// The source's name as given, relative to what was imported.
    pub source: Arc<str>,
    /// The format it was read as.
    pub format: Format,
    /// The accounting fields of `expected.json` that are plain counters.
    pub counts: Counts,
    /// `n_KIND`, `sum_KIND_ms`, `max_KIND_ms` per wait kind.
    pub waits: WaitTable,
    /// One row per run, in the order of `DEFINITIONS.md` section 5: closing order, stream after stream.
    pub runs: Vec<RunRow>,
    /// What became of each line; adds up to `counts.n_lines`.
    pub lines: Tally,
    /// What became of each record (a joined line holds several, a document one per message).
    pub records: Tally,
    /// Lines that were read although they hold bytes that are not UTF-8.
    pub invalid_utf8_lines: u64,
    /// Records stamped before the dated record in front of them (same stream, bookkeeping not counted).
    pub clock_steps: u64,
    /// The largest such step back, ms.
    pub largest_clock_step_ms: u64,
    /// Records whose stamp was a small number, read as seconds.
    pub epoch_second_stamps: u64,
    /// Record types that nobody knows, with how often each was met; at most 64 names, the rest under `(more)`.
    pub unknown_types: BTreeMap<String, u64>,
    /// Version of the client that wrote the log, the last one named.
    pub client_version: Option<String>,
    /// Opaque key of the source's session; empty when it names none. A child's file may repeat its parent's.
    pub session: Arc<str>,
    /// Opaque key of the session that delegated this one, where the log names it.
    pub parent_session: Arc<str>,
    /// Agents whose own runs were found here.
    pub agents: Vec<AgentSeen>,
    /// Calls that ran another agent.
    pub delegations: Vec<Delegation>,
    /// Malformed lines, at most [`LISTED_BAD_LINES`] of them.
    pub bad_lines: Vec<BadLine>,
    /// Hashes of the first record ids, to recognise a forked or copied session.
    pub first_ids: Vec<u64>,
    /// Records that another source had already brought (only with a dedupe index).
    pub duplicates_elsewhere: u64,
}

/// The counters of `expected.json`, by the same names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs)]
pub struct Counts {
    pub n_runs: u64,
    pub n_lines: u64,
    pub n_bad_lines: u64,
    pub n_joined_lines: u64,
    pub n_turns: u64,
    pub n_prompts: u64,
    pub n_unanswered: u64,
    pub n_steer: u64,
    pub n_errors: u64,
    pub n_aborted: u64,
    pub n_compactions: u64,
    pub n_negative: u64,
    pub n_no_handoff: u64,
    pub n_orphan_results: u64,
    pub n_orphan_calls: u64,
    pub n_open_at_end: u64,
    pub n_progress: u64,
    pub n_streams: u64,
    pub announced_retry_ms: u64,
}

impl Counts {
    /// The counters in the order of `expected.json`.
    pub fn fields(&self) -> [(&'static str, u64); 19] {
        [
            ("n_runs", self.n_runs),
            ("n_lines", self.n_lines),
            ("n_bad_lines", self.n_bad_lines),
            ("n_joined_lines", self.n_joined_lines),
            ("n_turns", self.n_turns),
            ("n_prompts", self.n_prompts),
            ("n_unanswered", self.n_unanswered),
            ("n_steer", self.n_steer),
            ("n_errors", self.n_errors),
            ("n_aborted", self.n_aborted),
            ("n_compactions", self.n_compactions),
            ("n_negative", self.n_negative),
            ("n_no_handoff", self.n_no_handoff),
            ("n_orphan_results", self.n_orphan_results),
            ("n_orphan_calls", self.n_orphan_calls),
            ("n_open_at_end", self.n_open_at_end),
            ("n_progress", self.n_progress),
            ("n_streams", self.n_streams),
            ("announced_retry_ms", self.announced_retry_ms),
        ]
    }
}

/// The wait kinds that a log can hold, in the order of `expected.json`.
pub const LOG_WAITS: [WaitKind; 14] = [
    WaitKind::PreToken,
    WaitKind::PreTokenErr,
    WaitKind::StreamGap,
    WaitKind::Continuation,
    WaitKind::Tool,
    WaitKind::ToolEscalated,
    WaitKind::Subagent,
    WaitKind::Human,
    WaitKind::Approval,
    WaitKind::ErrorWait,
    WaitKind::Retry,
    WaitKind::Compact,
    WaitKind::Censored,
    WaitKind::ReportedTtft,
];

/// Number, sum and longest of the waits of one kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WaitTotals {
    /// How many.
    pub n: u64,
    /// Their sum, ms.
    pub sum_ms: u64,
    /// The longest, ms; 0 if there is none.
    pub max_ms: u64,
}

/// Totals per wait kind.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WaitTable([WaitTotals; WaitKind::ALL.len()]);

impl WaitTable {
    /// Adds one wait.
    pub fn add(&mut self, wait: Wait) {
        let totals = &mut self.0[wait.kind as usize];
        totals.n += 1;
        totals.sum_ms = totals.sum_ms.saturating_add(wait.ms);
        totals.max_ms = totals.max_ms.max(wait.ms);
    }

    /// The totals of `kind`.
    pub fn of(&self, kind: WaitKind) -> WaitTotals {
        self.0[kind as usize]
    }
}

/// A run's row, with the name of the run it belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunRow {
    /// [`policysim_sim::run::Run::name`].
    pub run: Arc<str>,
    /// Its measures.
    pub measured: Measured,
}

impl RunRow {
    /// The row as `expected.json` writes it: duration, turns, tools, silence, gap, aborted.
    pub fn values(&self) -> [u64; 6] {
        let m = &self.measured;
        [
            m.duration_ms,
            u64::from(m.turns),
            u64::from(m.tools),
            m.silence_ms,
            m.gap_ms,
            u64::from(m.aborted),
        ]
    }
}

/// What became of a line or a record.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Fate {
    /// Known bookkeeping, or blank.
    Ignored,
    /// A type that nobody knows.
    Unrecognised,
    /// A record that the same source (or, with a dedupe index, another) already held.
    Duplicate,
    /// Would have counted, but has no readable stamp.
    Undated,
    /// Read.
    Imported,
    /// Could not be read.
    Malformed,
}

/// How many met which [`Fate`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs)]
pub struct Tally {
    pub imported: u64,
    pub ignored: u64,
    pub duplicate: u64,
    pub unrecognised: u64,
    pub malformed: u64,
    pub undated: u64,
}

impl Tally {
    /// Adds `n` of that fate.
    pub fn add(&mut self, fate: Fate, n: u64) {
        *match fate {
            Fate::Imported => &mut self.imported,
            Fate::Ignored => &mut self.ignored,
            Fate::Duplicate => &mut self.duplicate,
            Fate::Unrecognised => &mut self.unrecognised,
            Fate::Malformed => &mut self.malformed,
            Fate::Undated => &mut self.undated,
        } += n;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.imported
            + self.ignored
            + self.duplicate
            + self.unrecognised
            + self.malformed
            + self.undated
    }

    /// The fates by name, for output.
    pub fn fields(&self) -> [(&'static str, u64); 6] {
        [
            ("imported", self.imported),
            ("ignored", self.ignored),
            ("duplicate", self.duplicate),
            ("unrecognised", self.unrecognised),
            ("malformed", self.malformed),
            ("undated", self.undated),
        ]
    }
}

/// Why a line is malformed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadReason {
    /// It is no JSON, or only its beginning is.
    InvalidJson,
    /// It is one JSON value, but no object.
    NotAnObject,
    /// The last line, unreadable and without a line feed: cut while being written.
    TruncatedTail,
    /// The document as a whole is not one JSON object.
    InvalidDocument,
}

impl BadReason {
    /// The reason's name in `quarantine.csv`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid_json",
            Self::NotAnObject => "not_an_object",
            Self::TruncatedTail => "truncated_tail",
            Self::InvalidDocument => "invalid_document",
        }
    }
}

/// A malformed line: where it is and why, never what it says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// Offset of its first byte in the (decompressed) source.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: BadReason,
}

/// An agent whose own runs a source holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentSeen {
    /// The agent's id in the log; empty when it has none.
    pub agent: String,
    /// Names of its runs here, in closing order.
    pub runs: Vec<Arc<str>>,
}

/// A call by which one agent ran another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delegation {
    /// The run that holds the call.
    pub run: Arc<str>,
    /// The call, as in its events.
    pub call: CallId,
    /// The other agent's id (or session key, for formats with a session per agent); empty when the log does not name it.
    pub agent: String,
    /// The role it was given; empty when unknown.
    pub role: String,
}

impl SourceReport {
    /// A report in which nothing has been counted yet.
    pub fn new(source: Arc<str>, format: Format) -> Self {
        Self {
            source,
            format,
            counts: Counts::default(),
            waits: WaitTable::default(),
            runs: Vec::new(),
            lines: Tally::default(),
            records: Tally::default(),
            invalid_utf8_lines: 0,
            clock_steps: 0,
            largest_clock_step_ms: 0,
            epoch_second_stamps: 0,
            unknown_types: BTreeMap::new(),
            client_version: None,
            session: Arc::from(""),
            parent_session: Arc::from(""),
            agents: Vec::new(),
            delegations: Vec::new(),
            bad_lines: Vec::new(),
            first_ids: Vec::new(),
            duplicates_elsewhere: 0,
        }
    }

    /// Whether anything of the format was found; a source without it was not read, whatever its line counts say.
    pub fn is_recognised(&self) -> bool {
        self.records.imported > 0
    }

    /// Delegated agents whose own runs are not in this source: their files exist elsewhere or are missing.
    pub fn absent_children(&self) -> impl Iterator<Item = &Delegation> {
        self.delegations.iter().filter(|d| {
            !d.agent.is_empty() && !self.agents.iter().any(|seen| seen.agent == d.agent)
        })
    }

    /// Lists a malformed line unless too many are listed already.
    pub(super) fn quarantine(&mut self, bad: BadLine) {
        if self.bad_lines.len() < LISTED_BAD_LINES {
            self.bad_lines.push(bad);
        }
    }

    /// Sum of the runs' durations, ms.
    pub fn sum_run_ms(&self) -> u64 {
        let durations = self.runs.iter().map(|row| row.measured.duration_ms);
        durations.fold(0, u64::saturating_add)
    }

    /// The accounting fields in the order and under the names of `expected.json`, without `format` and `runs`.
    pub fn fields(&self) -> Vec<(String, u64)> {
        let mut fields: Vec<(String, u64)> = self
            .counts
            .fields()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        for kind in LOG_WAITS {
            let totals = self.waits.of(kind);
            let name = kind.name();
            fields.push((format!("n_{name}"), totals.n));
            fields.push((format!("sum_{name}_ms"), totals.sum_ms));
            fields.push((format!("max_{name}_ms"), totals.max_ms));
        }
        let max = |of: fn(&Measured) -> u64| {
            self.runs
                .iter()
                .map(|row| of(&row.measured))
                .max()
                .unwrap_or(0)
        };
        fields.push(("sum_run_ms".to_owned(), self.sum_run_ms()));
        fields.push(("max_run_ms".to_owned(), max(|m| m.duration_ms)));
        fields.push(("max_silence_ms".to_owned(), max(|m| m.silence_ms)));
        fields.push(("max_model_gap_ms".to_owned(), max(|m| m.gap_ms)));
        let aborted = self.runs.iter().filter(|row| row.measured.aborted).count();
        fields.push(("n_runs_aborted".to_owned(), aborted as u64));
        fields
    }

    /// The accounting in the very shape of an entry of `expected.json`.
    pub fn accounting(&self) -> Accounting<'_> {
        Accounting(self)
    }
}

/// Serializes a report as an entry of `expected.json`: `format`, the flat fields, `runs`.
#[derive(Clone, Copy, Debug)]
pub struct Accounting<'a>(&'a SourceReport);

impl Serialize for Accounting<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<[u64; 6]> = self.0.runs.iter().map(RunRow::values).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format", self.0.format.name())?;
        for (name, value) in self.0.fields() {
            map.serialize_entry(&name, &value)?;
        }
        map.serialize_entry("runs", &rows)?;
        map.end()
    }
}
