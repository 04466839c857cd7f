//! Our own files as inputs: the tables `events` and `samples`, each as CSV, JSON lines or Parquet, and the records of
//! `policysim watch`.
//!
//! They are recognised by their columns. A row that cannot be used costs itself: it is quarantined with its line and
//! the reason, and counted as malformed. Columns of other names are left out, with a warning.

mod cells;
mod events;
mod record;
mod rows;
mod samples;
mod waits;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;

pub(crate) use waits::derive;

use crate::content::{Content, Fingerprint};
use crate::error::TelemetryError;
use crate::import::{LOG_WAITS, WaitTable};
use crate::manifest::Lines;
use crate::pipeline::ImportRequest;
use crate::walk::Found;
use crate::writer::DatasetWriter;
use policysim_sim::run::WaitKind;

/// Which of our tables.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TableKind {
    /// One event per row.
    Events,
    /// One duration per row.
    Samples,
    /// What `policysim watch` recorded, one observation per line.
    Record,
}

impl TableKind {
    /// The table's name on the command line and in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Samples => "samples",
            Self::Record => "policysim",
        }
    }
}

/// What is read into, and under which request.
pub(crate) struct Reading<'a> {
    pub(crate) request: &'a ImportRequest,
    pub(crate) cancel: &'a AtomicBool,
    pub(crate) writer: &'a mut DatasetWriter,
}

/// A row that could not be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct BadRow {
    /// Its line, from 1; in a Parquet table its row, from 1.
    pub(crate) line: u64,
    /// Offset of the line's first byte; 0 in a Parquet table.
    pub(crate) offset: u64,
    /// What is wrong, without the row's content.
    pub(crate) reason: String,
}

/// What a table held.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableReport {
    pub(crate) lines: Lines,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) bad_rows: Vec<BadRow>,
    pub(crate) warnings: Vec<String>,
}

impl TableReport {
    /// Counts a row that cannot be used, and lists it unless too many are listed.
    fn malformed(&mut self, line: u64, offset: u64, reason: String) {
        self.lines.malformed += 1;
        if self.bad_rows.len() < crate::import::LISTED_BAD_LINES {
            self.bad_rows.push(BadRow {
                line,
                offset,
                reason,
            });
        }
    }

    /// Adds the fields of the wait kinds by their names, those of a log always, `inter_token` where it occurs.
    fn add_waits(&mut self, waits: &WaitTable) {
        let inter_token = [WaitKind::InterToken];
        for kind in LOG_WAITS.iter().chain(&inter_token) {
            let totals = waits.of(*kind);
            if *kind == WaitKind::InterToken && totals.n == 0 {
                continue;
            }
            let name = kind.name();
            self.counts.insert(format!("n_{name}"), totals.n);
            self.counts.insert(format!("sum_{name}_ms"), totals.sum_ms);
            self.counts.insert(format!("max_{name}_ms"), totals.max_ms);
        }
    }

    fn finish(mut self) -> Self {
        self.counts.insert("n_lines".to_owned(), self.lines.total());
        self.counts
            .insert("n_bad_lines".to_owned(), self.lines.malformed);
        self
    }
}

/// Why a table could not be read to its end.
#[derive(Debug)]
pub(crate) enum TableError {
    /// The file itself cannot be read.
    Read(io::Error),
    /// Anything else: the import ends.
    Other(TelemetryError),
}

impl From<io::Error> for TableError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<TelemetryError> for TableError {
    fn from(error: TelemetryError) -> Self {
        Self::Other(error)
    }
}

/// Reads the table in `file` into the dataset.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    file: &Found,
    name: &str,
    content: Content<'_>,
    kind: TableKind,
) -> Result<(TableReport, Fingerprint), TableError> {
    match kind {
        TableKind::Events => events::read(reading, file, name, content),
        TableKind::Samples => samples::read(reading, file, name, content),
        TableKind::Record => record::read(reading, name, content),
    }
}

/// Which of our tables the file is, if it is one; an error says what a table of other columns is instead.
pub(crate) fn sniff(head: &[u8], file: &Found) -> Result<Option<TableKind>, String> {
    if rows::is_parquet(head) {
        let columns = rows::parquet_columns(file)
            .map_err(|reason| format!("a Parquet file that does not read: {reason}"))?;
        return match kind_of(&columns) {
            Some(kind) => Ok(Some(kind)),
            None => Err("a Parquet table of other columns".to_owned()),
        };
    }
    Ok(rows::text_columns(head).and_then(|columns| kind_of(&columns)))
}

/// The table that has these columns. A time without its unit is recognised too, so that it can be complained about.
fn kind_of(columns: &[String]) -> Option<TableKind> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    let timed = has(events::TIME) || events::UNITLESS.iter().any(|name| has(name));
    if crate::import::record::is_record(columns) {
        Some(TableKind::Record)
    } else if has("kind") && timed && (has("run") || has("run_id")) {
        Some(TableKind::Events)
    } else if has("kind") && (has(samples::DURATION) || has(samples::UNITLESS)) {
        Some(TableKind::Samples)
    } else {
        None
    }
}

/// The reason for a name that is none of the known ones: it says the nearest, not what was written.
fn unknown_name<'a>(column: &str, written: &str, known: impl Iterator<Item = &'a str>) -> String {
    match policysim_policy::nearest(written, known) {
        Some(nearest) => format!("{column} is no known name; the nearest is {nearest}"),
        None => format!("{column} is no known name"),
    }
}
