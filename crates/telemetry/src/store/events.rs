//! `events.parquet`: written run by run, read as columns, one row group at a time.

use std::io::Write;

use polars_parquet::parquet::error::ParquetResult;
use polars_parquet::write::Encoding;
use policysim_policy::{CallId, Kind, Outcome};
use policysim_sim::run::{EventFlags, RunEvent, Symbol, Symbols, Wait, WaitKind};
use policysim_sim::scan::EventColumns;

use super::frames::{events_frame, unsigned};
use super::groups::{Groups, guarded};
use super::pages::{Bytes, Chunk, Scratch};
use super::write::TableWriter;
use super::{EVENTS, Table};
use crate::error::TelemetryError;

/// A row group is closed at the first run that reaches this many events.
const GROUP_EVENTS: usize = 250_000;

/// Columns that have a value in every row.
const REQUIRED: [&str; 6] = ["run_id", "t_ms", "kind", "call_id", "name", "flags"];

/// Ids up to here count something, and lie close to each other: their differences are small. Others are hashes, whose
/// differences are no smaller than themselves, so that a dictionary serves them better.
const LARGEST_COUNTED_ID: u64 = u32::MAX as u64;

/// Writes `events.parquet`, run by run.
pub(crate) struct EventsWriter<W: Write> {
    out: TableWriter<W>,
    runs: Vec<i64>,
    events: Vec<RunEvent>,
    symbols: Symbols,
    n_runs: usize,
    /// How many runs were there when each row group was closed.
    ends: Vec<usize>,
}

impl<W: Write> EventsWriter<W> {
    pub(crate) fn new(out: W) -> Result<Self, TelemetryError> {
        let empty = events_frame(&[], &[], &Symbols::default())?;
        Ok(Self {
            out: TableWriter::new(EVENTS, out, &empty, &REQUIRED)?,
            runs: Vec::new(),
            events: Vec::new(),
            symbols: Symbols::default(),
            n_runs: 0,
            ends: Vec::new(),
        })
    }

    /// Appends the events of run number `run_id`; `symbols` names what they refer to.
    pub(crate) fn push(
        &mut self,
        run_id: i64,
        events: &[RunEvent],
        symbols: &Symbols,
    ) -> Result<(), TelemetryError> {
        for event in events {
            let mut event = *event;
            event.name = self.symbols.intern(symbols.name(event.name));
            self.runs.push(run_id);
            self.events.push(event);
        }
        self.n_runs += 1;
        if self.events.len() >= GROUP_EVENTS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TelemetryError> {
        if self.events.is_empty() {
            return Ok(());
        }
        let frame = events_frame(&self.runs, &self.events, &self.symbols)?;
        let small_ids = self
            .events
            .iter()
            .all(|event| event.id.as_u64() <= LARGEST_COUNTED_ID);
        self.runs.clear();
        self.events.clear();
        self.ends.push(self.n_runs);
        self.out.write(&frame, |column| match column {
            "run_id" | "t_ms" => Some(Encoding::DeltaBinaryPacked),
            "call_id" if small_ids => Some(Encoding::DeltaBinaryPacked),
            _ => None,
        })
    }

    /// Completes the file, and says how many runs there were when each row group was closed.
    pub(crate) fn finish(mut self) -> Result<Vec<usize>, TelemetryError> {
        self.flush()?;
        self.out.finish()?;
        Ok(self.ends)
    }
}

/// Reads `events.parquet`.
#[derive(Debug)]
pub(crate) struct EventsReader {
    groups: Groups,
}

impl EventsReader {
    pub(crate) fn open(table: &Table) -> Result<Self, TelemetryError> {
        Ok(Self {
            groups: Groups::open(EVENTS, table)?,
        })
    }

    /// How many row groups there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// How many events there are.
    pub(crate) fn n_rows(&self) -> usize {
        self.groups.n_rows()
    }

    /// How many events the row group has.
    pub(crate) fn n_rows_of(&self, group: usize) -> usize {
        self.groups.n_rows_of(group)
    }

    /// The names that events refer to, in order of first use: of most row groups only the dictionary is looked at.
    pub(crate) fn names(&self) -> Result<Symbols, TelemetryError> {
        let mut symbols = Symbols::default();
        self.decode(|source, scratch| {
            for group in 0..self.len() {
                let chunk = self.groups.chunk(source, group, "name")?;
                if chunk.has_dictionary() {
                    for name in chunk.texts()? {
                        symbols.intern(&name);
                    }
                } else {
                    chunk.plain_texts(scratch, |name| {
                        symbols.intern(name);
                    })?;
                }
            }
            Ok(())
        })?;
        Ok(symbols)
    }

    /// Appends the events of a row group to `columns`, which are empty; `symbols` are [`EventsReader::names`].
    pub(crate) fn read(
        &self,
        group: usize,
        symbols: &Symbols,
        columns: &mut EventColumns,
    ) -> Result<(), TelemetryError> {
        self.decode(|source, scratch| {
            let mut chunk = |column| self.groups.chunk(source, group, column);
            columns.t_ms.reserve(self.n_rows_of(group));
            chunk("t_ms")?.dense_numbers(scratch, |values| {
                columns.t_ms.extend(values.iter().copied().map(unsigned));
            })?;
            let kinds = chunk("kind")?;
            let known = known(&kinds, "kind", Kind::from_name)?;
            kinds.dense_codes(&known, scratch, |values| columns.kind.extend(values))?;
            chunk("call_id")?.dense_numbers(scratch, |values| {
                let ids = values.iter().map(|&id| CallId::new(id as u64));
                columns.id.extend(ids);
            })?;
            let names = chunk("name")?;
            let symbol = |name: &str| symbols.get(name);
            if names.has_dictionary() {
                let known = known_names(&names, symbol)?;
                names.dense_codes(&known, scratch, |values| columns.name.extend(values))?;
            } else {
                names.plain_texts(scratch, |name| {
                    columns.name.push(symbol(name).unwrap_or_default());
                })?;
            }
            chunk("flags")?.dense_numbers(scratch, |values| {
                let flags = values.iter().map(|&flags| EventFlags(flags as u16));
                columns.flags.extend(flags);
            })?;
            chunk("announced_ms")?.sparse_numbers(scratch, |row, ms| {
                columns.announced_ms.push(row, unsigned(ms));
            })?;
            let outcomes = chunk("outcome")?;
            let known = self::known(&outcomes, "outcome", outcome_from_name)?;
            outcomes.sparse_codes(&known, scratch, |row, outcome| {
                columns.outcome.push(row, outcome);
            })?;
            let mut waits = Vec::new();
            chunk("wait_ms")?.sparse_numbers(scratch, |row, ms| waits.push((row, unsigned(ms))))?;
            let mut waits = waits.into_iter().peekable();
            let kinds = chunk("wait_kind")?;
            let known = self::known(&kinds, "wait_kind", WaitKind::from_name)?;
            kinds.sparse_codes(&known, scratch, |row, kind| {
                while waits.next_if(|&(at, _)| at < row).is_some() {}
                let ms = waits.next_if(|&(at, _)| at == row).map_or(0, |(_, ms)| ms);
                columns.wait.push(row, Wait { kind, ms });
            })
        })?;
        let lengths = [
            columns.t_ms.len(),
            columns.kind.len(),
            columns.id.len(),
            columns.name.len(),
            columns.flags.len(),
        ];
        if lengths == [self.n_rows_of(group); 5] {
            Ok(())
        } else {
            Err(TelemetryError::store(EVENTS, "columns of unequal length"))
        }
    }

    fn decode(
        &self,
        read: impl FnOnce(&mut dyn Bytes, &mut Scratch) -> ParquetResult<()>,
    ) -> Result<(), TelemetryError> {
        guarded(EVENTS, || {
            let mut source = self.groups.bytes()?;
            read(&mut *source, &mut Scratch::default())
                .map_err(|error| TelemetryError::store(EVENTS, error))
        })
    }
}

/// What the names in a column's dictionary stand for.
fn known<T>(
    chunk: &Chunk,
    column: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> ParquetResult<Vec<T>> {
    let parse = |name: String| {
        parse(&name).ok_or_else(|| {
            super::pages::oos(format!(
                "column {column} holds '{name}', which is no known name"
            ))
        })
    };
    chunk.texts()?.into_iter().map(parse).collect()
}

fn known_names(
    chunk: &Chunk,
    symbol: impl Fn(&str) -> Option<Symbol>,
) -> ParquetResult<Vec<Symbol>> {
    known(chunk, "name", symbol)
}

/// The outcome of that name.
pub(crate) fn outcome_from_name(name: &str) -> Option<Outcome> {
    [Outcome::Aborted, Outcome::Completed, Outcome::Failed]
        .into_iter()
        .find(|outcome| outcome.name() == name)
}
