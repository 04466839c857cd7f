//! Telemetry: importers of agent session logs and the dataset on disk.
//!
//! From files and folders to runs in memory: what lies where is found, each file's format is told from its content,
//! its runs are measured, linked to the runs that delegated them and written to a dataset, which reads back run by
//! run. Kept are timing, kinds of events, names of tools, models and roles, classes of outcomes and opaque ids. No
//! prompt, no output, no argument and no path from inside a log is kept anywhere, quarantine and messages included.
//! Memory is bounded by the largest run, the longest line and a few kilobytes per source, not by the input. Small logs
//! are read several at once; what they bring is taken in the order of their names.
//!
//! This crate does not judge: gaps, kills and rates are `policysim-sim`'s. It never sorts a log by time, never
//! repairs a line, never takes a time from a file's modification date, and writes nothing but the dataset.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use policysim_telemetry::{Dataset, ImportRequest, Inputs, Silent, import_to_dataset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let table = folder.path().join("delegate.csv");
//! std::fs::write(&table, "run,t_ms,kind\na,0,run_start\na,5600,message_end\na,5600,run_end\n")?;
//! let request = ImportRequest {
//!     inputs: Inputs::Paths(vec![table]),
//!     ..ImportRequest::default()
//! };
//! let out = folder.path().join("dataset");
//! import_to_dataset(&request, &out, &Silent, &AtomicBool::new(false))?;
//! for run in Dataset::open(&out)?.runs() {
//!     let run = run?;
//!     assert_eq!(&*run.name, "delegate.csv#a");
//!     assert_eq!(run.measured.gap_ms, 5_600);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # A dataset
//!
//! A folder of the files below. It is a value: the same sources under the same names, with the same options and
//! version, give the same bytes. It appears complete or not at all. All integers are signed 64-bit, times are
//! milliseconds, texts UTF-8; row groups hold whole runs, and those of `runs.parquet` are those of `events.parquet`, so
//! that a reader holds one batch of runs at a time. Files whose row groups differ are read too, with all runs (without
//! their events) in memory.
//!
//! ## `runs.parquet`
//!
//! One row per run, in the order of the sources' names and of closing within a source.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `run_id` | integer | the row's number, from 0 |
//! | `name` | text | `SOURCE#N`, unique in the dataset (`SOURCE#LABEL` for a table with plain labels) |
//! | `source` | text | path below what was imported, or its hash |
//! | `session` | text | opaque key of the session; empty when there is none |
//! | `parent` | text | `name` of the run that delegated this one; empty when there is none here |
//! | `harness` `model` `role` | text | who wrote the log, the model of most turns, the subagent's type; empty when unknown |
//! | `started_at_ms` | integer | wall-clock start since the Unix epoch |
//! | `resolution` | text | `message` or `stream` |
//! | `status` | text | `run`, `unanswered` (a prompt without a turn) or `outside` (waits outside any run) |
//! | `end` | text | `completed failed aborted killed hung open_in_model open_in_tool unknown` |
//! | `end_ms` | integer | where the record of the run ends |
//! | `duration_ms` `turns` `tools` `silence_ms` `gap_ms` `aborted` | integer, `aborted` boolean | its row of `DEFINITIONS.md` section 5 |
//! | `n_events` | integer | how many rows of `events.parquet` are its own |
//!
//! ## `events.parquet`
//!
//! One row per event, sorted by run, time, and order in the source. `run_id`, `t_ms` and, where it counts something,
//! `call_id` are stored as differences (`DELTA_BINARY_PACKED`), the other columns through dictionaries, all with zstd.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `run_id` | integer | the run's row |
//! | `t_ms` | integer | since the run's start; never decreases within a run |
//! | `kind` | text | one of [`policysim_policy::Kind`]'s names |
//! | `call_id` | integer | which open thing it is about: 64 opaque bits, so it may be negative; 0 for none |
//! | `name` | text | tool, or name of an `other` |
//! | `announced_ms` | integer or null | announced length, or the stated execution time where flag 1024 is set |
//! | `outcome` | text or null | of a `run_end`: `aborted completed failed` |
//! | `wait_kind` `wait_ms` | text and integer, or null | the wait that the event ended |
//! | `flags` | integer | bits of [`policysim_sim::run::EventFlags`] |
//!
//! Flags: 1 activity, 2 `clock_step`, 4 `upper_bound`, 8 `suspected_suspend`, 16 `ambiguous_approval`,
//! 32 `spans_undated`, 64 not executed, 128 may ask a human, 256 suspends the idle clock, 512 `censored`,
//! 1024 native duration, 2048 rate limited, 4096 `collapsed_stamps`.
//!
//! ## `samples.parquet`
//!
//! Instead of the two above when the input was samples: `source`, `kind` (a wait kind), `duration_ms`, `censored`,
//! `run`, `role`, `model`, `tool`.
//!
//! ## `manifest.json` and `quarantine.csv`
//!
//! The manifest ([`Manifest`]) holds the schema version, the digest of the tables, the options, the window, sums and,
//! per source, digest and accounting under the names of `DEFINITIONS.md`; `lines` says what became of each line and
//! adds up to `n_lines`. A table whose bytes do not fit the digest is not read. `quarantine.csv` lists what could not
//! be read as `file,line,byte_offset,reason`.
//!
//! # Tables as input
//!
//! CSV with a header, JSON lines, or Parquet, recognised by their columns; other columns are left out. In CSV a field
//! does not span lines. Whole milliseconds without a unit; `12.0` is taken for 12. In Parquet a line number is a row
//! number.
//!
//! Events: `run` (or `run_id`), `t_ms`, `kind` (or `other:NAME`), and if there are any `call_id`, `name`,
//! `announced_ms`, `outcome` (`aborted completed failed`, or `killed hung` for what the record knows of the end),
//! `started_at_ms`, `role`, `model`, `harness`, `parent` (another row's `run`). The rows of a run stand in order of
//! time, runs in any mixture; a step back in time is clamped and marked. Waits and measures follow from the kinds:
//!
//! | event | what it does |
//! |---|---|
//! | `run_start resume` | control goes to the model |
//! | `turn_start` | the same, unless it is there already or a tool is open |
//! | `message_start message_update thinking_update tool_args_update message_end tool_requested` | output: after a hand-over it ends a `pre_token` wait (`pre_token_err` after failed calls without a `retry_end`); a streamed piece behind another output of the same answer ends an `inter_token` wait |
//! | `tool_start tool_end` | by the call's id; the end gives `human` or `subagent` for the tools that `DEFINITIONS.md` names, else `tool`, and control goes back to the model |
//! | `approval_start/_end`, `human_wait_start/_end` | `approval`, `human`; then control is with the model unless a tool is open |
//! | `retry_start` | a failed call: after a hand-over an `error_wait`, behind another failed call a `retry` |
//! | `retry_end` | `retry` since the failed call; the request is sent again: control goes to the model |
//! | `compaction_start/_end` | `compact`, from the start or, without one, from the hand-over, which moves to the end |
//! | `turn_end result` | control is with nobody |
//! | `run_end` | `aborted` while control is with the model: a `censored` wait |
//!
//! Activity are output, `run_start`, `resume`, `tool_start`, `tool_end`, `retry_start`, a compaction that counts and
//! an abort. A run lasts to its latest activity or its `run_end`; its turns are its `turn_start`s or, where there are
//! none, its answers after a hand-over; after a `run_end` and before a `resume` silence is measured anew. A table that has `wait_kind` or `flags` filled in is taken at its word.
//!
//! Samples: `kind`, `duration_ms`, and if there are any `censored`, `run`, `role`, `model`, `tool`.

pub mod import;

mod ahead;
mod content;
mod dataset;
mod error;
mod flags;
mod hashed;
mod link;
mod local;
mod log_sink;
mod manifest;
mod pipeline;
mod repeats;
mod samples;
mod store;
mod tables;
mod walk;
mod writer;

pub use content::{Progress, Silent};
pub use dataset::{Arguments, Dataset, Runs};
pub use error::TelemetryError;
pub use local::{LocalFolder, locate_local};
pub use manifest::{
    Contents, Lines, Manifest, Options, SCHEMA_VERSION, SourceEntry, SourceStatus, Totals,
    is_dataset,
};
pub use pipeline::{ImportRequest, InputFormat, Inputs, import_to_dataset};
pub use samples::Sample;
pub use store::{is_guarded, write_columns};
pub use tables::TableKind;
pub use writer::DatasetWriter;
