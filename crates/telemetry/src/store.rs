//! The tables on disk. The only file that says `polars`: its types go no further.
//!
//! Rows are written batch by batch, so that memory is bounded by a row group (whole runs, closed once
//! [`GROUP_EVENTS`] events are reached) and read back group by group. All integers are signed.

use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use polars::io::parquet::write::BatchedWriter;
use polars::prelude::*;
use policysim_policy::{CallId, Kind, Outcome};
use policysim_sim::run::{
    EventFlags, Measured, RecordedEnd, Resolution, Run, RunEvent, RunStatus, Symbols, Wait,
    WaitKind,
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::TelemetryError;
use crate::samples::Sample;

/// A row group of events is closed at the first run that reaches this many.
const GROUP_EVENTS: usize = 100_000;

/// Rows per group of the other tables.
const GROUP_ROWS: usize = 100_000;

/// A stored table: a file, or its bytes in memory.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Table {
    /// The digest of the stored bytes.
    pub(crate) fn digest(&self) -> io::Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(xxh3_64(bytes)),
            Self::File(path) => {
                let mut file = File::open(path)?;
                let mut hash = Xxh3::new();
                let mut buffer = vec![0; 1 << 18];
                loop {
                    match file.read(&mut buffer)? {
                        0 => return Ok(hash.digest()),
                        n => hash.update(&buffer[..n]),
                    }
                }
            }
        }
    }
}

/// A run without its events, and how many it has.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RunRow {
    pub(crate) run: Run,
    pub(crate) n_events: u64,
}

/// Writes `events.parquet`, run by run.
pub(crate) struct EventsWriter<W: Write> {
    out: TableWriter<W>,
    runs: Vec<i64>,
    events: Vec<RunEvent>,
    symbols: Symbols,
}

impl<W: Write> EventsWriter<W> {
    pub(crate) fn new(out: W) -> Result<Self, TelemetryError> {
        let empty = events_frame(&[], &[], &Symbols::default())?;
        Ok(Self {
            out: TableWriter::new(EVENTS, out, &empty)?,
            runs: Vec::new(),
            events: Vec::new(),
            symbols: Symbols::default(),
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
        self.runs.clear();
        self.events.clear();
        self.out.write(&frame)
    }

    pub(crate) fn finish(mut self) -> Result<(), TelemetryError> {
        self.flush()?;
        self.out.finish()
    }
}

/// Writes `runs.parquet`; a row's number is its `run_id`.
pub(crate) fn write_runs(out: impl Write, rows: &[RunRow]) -> Result<(), TelemetryError> {
    let mut writer = TableWriter::new(RUNS, out, &runs_frame(0, &[])?)?;
    for (group, rows) in rows.chunks(GROUP_ROWS).enumerate() {
        writer.write(&runs_frame(group * GROUP_ROWS, rows)?)?;
    }
    writer.finish()
}

/// Reads `runs.parquet` whole; the rows carry no events.
pub(crate) fn read_runs(table: &Table) -> Result<Vec<RunRow>, TelemetryError> {
    let groups = Groups::open(RUNS, table)?;
    let mut rows = Vec::with_capacity(groups.n_rows());
    let mut names = Names::default();
    for group in 0..groups.len() {
        read_run_rows(&groups.read(group, None)?, &mut names, &mut rows)?;
    }
    Ok(rows)
}

/// Reads `events.parquet` group by group.
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

    /// The names that events refer to, in order of first use, read without the other columns.
    pub(crate) fn names(&self) -> Result<Symbols, TelemetryError> {
        let mut symbols = Symbols::default();
        for group in 0..self.len() {
            let frame = self.groups.read(group, Some(vec!["name".to_owned()]))?;
            for name in texts(EVENTS, &frame, "name")?.iter().flatten() {
                symbols.intern(name);
            }
        }
        Ok(symbols)
    }

    /// The events of one row group with the run each belongs to, in stored order.
    pub(crate) fn read(
        &self,
        group: usize,
        symbols: &mut Symbols,
    ) -> Result<Vec<(i64, RunEvent)>, TelemetryError> {
        read_events(&self.groups.read(group, None)?, symbols)
    }
}

/// Writes `samples.parquet`.
pub(crate) struct SamplesWriter<W: Write> {
    out: TableWriter<W>,
    rows: Vec<Sample>,
}

impl<W: Write> SamplesWriter<W> {
    pub(crate) fn new(out: W) -> Result<Self, TelemetryError> {
        Ok(Self {
            out: TableWriter::new(SAMPLES, out, &samples_frame(&[])?)?,
            rows: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, sample: Sample) -> Result<(), TelemetryError> {
        self.rows.push(sample);
        if self.rows.len() >= GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TelemetryError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let frame = samples_frame(&self.rows)?;
        self.rows.clear();
        self.out.write(&frame)
    }

    pub(crate) fn finish(mut self) -> Result<(), TelemetryError> {
        self.flush()?;
        self.out.finish()
    }
}

/// Reads `samples.parquet` whole.
pub(crate) fn read_samples(table: &Table) -> Result<Vec<Sample>, TelemetryError> {
    let groups = Groups::open(SAMPLES, table)?;
    let mut samples = Vec::with_capacity(groups.n_rows());
    let mut names = Names::default();
    for group in 0..groups.len() {
        read_sample_rows(&groups.read(group, None)?, &mut names, &mut samples)?;
    }
    Ok(samples)
}

/// One cell of a table of unknown columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Missing,
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
    /// A type that no column of ours has.
    Other,
}

/// A Parquet file of unknown origin: its columns by name, its rows as cells.
pub(crate) struct ForeignTable {
    groups: Groups,
    columns: Vec<String>,
}

impl ForeignTable {
    /// Opens the table and reads its column names.
    pub(crate) fn open(table: &Table) -> Result<Self, TelemetryError> {
        let groups = Groups::open(FOREIGN, table)?;
        Ok(Self {
            columns: groups.columns.clone(),
            groups,
        })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many row groups there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The rows of one row group, restricted to `columns`, in that order.
    pub(crate) fn read(
        &self,
        group: usize,
        columns: &[String],
    ) -> Result<Vec<Vec<Cell>>, TelemetryError> {
        let frame = self.groups.read(group, Some(columns.to_vec()))?;
        let columns = columns
            .iter()
            .map(|name| frame.column(name))
            .collect::<PolarsResult<Vec<_>>>()
            .map_err(|error| TelemetryError::store(FOREIGN, error))?;
        (0..frame.height())
            .map(|row| {
                columns
                    .iter()
                    .map(|column| column.get(row).map(|value| cell(&value)))
                    .collect::<PolarsResult<Vec<_>>>()
                    .map_err(|error| TelemetryError::store(FOREIGN, error))
            })
            .collect()
    }
}

fn cell(value: &AnyValue<'_>) -> Cell {
    match value {
        AnyValue::Null => Cell::Missing,
        AnyValue::Boolean(yes) => Cell::Bool(*yes),
        AnyValue::String(text) => Cell::Text((*text).to_owned()),
        AnyValue::StringOwned(text) => Cell::Text(text.to_string()),
        AnyValue::Float32(number) => Cell::Number(f64::from(*number)),
        AnyValue::Float64(number) => Cell::Number(*number),
        AnyValue::Int8(_)
        | AnyValue::Int16(_)
        | AnyValue::Int32(_)
        | AnyValue::Int64(_)
        | AnyValue::UInt8(_)
        | AnyValue::UInt16(_)
        | AnyValue::UInt32(_)
        | AnyValue::UInt64(_) => value.extract::<i64>().map_or(Cell::Other, Cell::Integer),
        _ => Cell::Other,
    }
}

const RUNS: &str = "runs.parquet";
const EVENTS: &str = "events.parquet";
const SAMPLES: &str = "samples.parquet";
const FOREIGN: &str = "the Parquet table";

/// A Parquet file being written, one row group per frame.
struct TableWriter<W: Write> {
    table: &'static str,
    writer: BatchedWriter<W>,
}

impl<W: Write> TableWriter<W> {
    fn new(table: &'static str, out: W, like: &DataFrame) -> Result<Self, TelemetryError> {
        let writer = ParquetWriter::new(out)
            .with_compression(ParquetCompression::Zstd(None))
            .batched(like.schema())
            .map_err(|error| TelemetryError::store(table, error))?;
        Ok(Self { table, writer })
    }

    fn write(&mut self, frame: &DataFrame) -> Result<(), TelemetryError> {
        self.writer
            .write_batch(frame)
            .map_err(|error| TelemetryError::store(self.table, error))
    }

    fn finish(self) -> Result<(), TelemetryError> {
        self.writer
            .finish()
            .map(drop)
            .map_err(|error| TelemetryError::store(self.table, error))
    }
}

/// A Parquet file open for reading, by row group.
#[derive(Debug)]
struct Groups {
    table: &'static str,
    source: Table,
    metadata: FileMetadataRef,
    columns: Vec<String>,
    /// First row and number of rows of each group.
    slices: Vec<(usize, usize)>,
}

impl Groups {
    fn open(table: &'static str, source: &Table) -> Result<Self, TelemetryError> {
        guarded(table, || Self::open_unguarded(table, source))
    }

    fn open_unguarded(table: &'static str, source: &Table) -> Result<Self, TelemetryError> {
        let fail = |error: PolarsError| TelemetryError::store(table, error);
        let mut reader = reader(table, source)?;
        let metadata = Arc::clone(reader.get_metadata().map_err(fail)?);
        let columns = reader
            .schema()
            .map_err(fail)?
            .iter_names()
            .map(ToString::to_string)
            .collect();
        let mut slices = Vec::with_capacity(metadata.row_groups.len());
        let mut first = 0;
        for group in &metadata.row_groups {
            slices.push((first, group.num_rows()));
            first += group.num_rows();
        }
        Ok(Self {
            table,
            source: source.clone(),
            metadata,
            columns,
            slices,
        })
    }

    fn len(&self) -> usize {
        self.slices.len()
    }

    fn n_rows(&self) -> usize {
        self.slices.iter().map(|slice| slice.1).sum()
    }

    fn read(
        &self,
        group: usize,
        columns: Option<Vec<String>>,
    ) -> Result<DataFrame, TelemetryError> {
        guarded(self.table, || {
            let mut reader = reader(self.table, &self.source)?;
            reader.set_metadata(Arc::clone(&self.metadata));
            reader
                .with_slice(self.slices.get(group).copied())
                .with_columns(columns)
                .read_parallel(ParallelStrategy::RowGroups)
                .finish()
                .map_err(|error| TelemetryError::store(self.table, error))
        })
    }
}

/// Runs a reading of Parquet bytes. The library panics on some damaged files where it should return an error.
fn guarded<T>(
    table: &'static str,
    read: impl FnOnce() -> Result<T, TelemetryError>,
) -> Result<T, TelemetryError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(TelemetryError::store(table, "the file is damaged")))
}

fn reader(
    table: &'static str,
    source: &Table,
) -> Result<ParquetReader<Box<dyn polars::io::mmap::MmapBytesReader>>, TelemetryError> {
    let input: Box<dyn polars::io::mmap::MmapBytesReader> = match source {
        Table::File(path) => {
            Box::new(File::open(path).map_err(|error| TelemetryError::io(table, "opening", error))?)
        }
        Table::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
    };
    Ok(ParquetReader::new(input))
}

/// Equal texts share one allocation.
#[derive(Default)]
struct Names(std::collections::HashSet<Arc<str>>);

impl Names {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

/// `u64` as a column's signed 64 bits: larger values saturate (no real duration comes near).
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn integer_column(name: &'static str, values: impl Iterator<Item = i64>) -> Column {
    Int64Chunked::from_vec(name.into(), values.collect()).into_column()
}

fn optional_column(name: &'static str, values: impl Iterator<Item = Option<i64>>) -> Column {
    Int64Chunked::from_iter_options(name.into(), values).into_column()
}

fn text_column<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Column {
    StringChunked::from_iter_values(name.into(), values).into_column()
}

fn optional_text<'a>(name: &'static str, values: impl Iterator<Item = Option<&'a str>>) -> Column {
    StringChunked::from_iter_options(name.into(), values).into_column()
}

fn bool_column(name: &'static str, values: impl Iterator<Item = bool>) -> Column {
    BooleanChunked::from_iter_values(name.into(), values).into_column()
}

fn frame(
    table: &'static str,
    height: usize,
    columns: Vec<Column>,
) -> Result<DataFrame, TelemetryError> {
    DataFrame::new(height, columns).map_err(|error| TelemetryError::store(table, error))
}

fn events_frame(
    runs: &[i64],
    events: &[RunEvent],
    symbols: &Symbols,
) -> Result<DataFrame, TelemetryError> {
    let columns = vec![
        integer_column("run_id", runs.iter().copied()),
        integer_column("t_ms", events.iter().map(|event| signed(event.t_ms))),
        text_column("kind", events.iter().map(|event| event.kind.name())),
        // The id is 64 opaque bits: kept bit for bit, so it may read as negative.
        integer_column(
            "call_id",
            events.iter().map(|event| event.id.as_u64() as i64),
        ),
        text_column("name", events.iter().map(|event| symbols.name(event.name))),
        optional_column(
            "announced_ms",
            events.iter().map(|event| event.announced_ms.map(signed)),
        ),
        optional_text(
            "outcome",
            events.iter().map(|event| event.outcome.map(Outcome::name)),
        ),
        optional_text(
            "wait_kind",
            events
                .iter()
                .map(|event| event.wait.map(|wait| wait.kind.name())),
        ),
        optional_column(
            "wait_ms",
            events
                .iter()
                .map(|event| event.wait.map(|wait| signed(wait.ms))),
        ),
        integer_column("flags", events.iter().map(|event| i64::from(event.flags.0))),
    ];
    frame(EVENTS, events.len(), columns)
}

fn runs_frame(first: usize, rows: &[RunRow]) -> Result<DataFrame, TelemetryError> {
    let runs = || rows.iter().map(|row| &row.run);
    let columns = vec![
        integer_column(
            "run_id",
            (first..first + rows.len()).map(|row| signed(row as u64)),
        ),
        text_column("name", runs().map(|run| &*run.name)),
        text_column("source", runs().map(|run| &*run.source)),
        text_column("session", runs().map(|run| &*run.session)),
        text_column("parent", runs().map(|run| &*run.parent)),
        text_column("harness", runs().map(|run| &*run.harness)),
        text_column("model", runs().map(|run| &*run.model)),
        text_column("role", runs().map(|run| &*run.role)),
        integer_column("started_at_ms", runs().map(|run| run.started_at_ms)),
        text_column("resolution", runs().map(|run| run.resolution.name())),
        text_column("status", runs().map(|run| run.status.name())),
        text_column("end", runs().map(|run| run.end.name())),
        integer_column("end_ms", runs().map(|run| signed(run.end_ms))),
        integer_column(
            "duration_ms",
            runs().map(|run| signed(run.measured.duration_ms)),
        ),
        integer_column("turns", runs().map(|run| i64::from(run.measured.turns))),
        integer_column("tools", runs().map(|run| i64::from(run.measured.tools))),
        integer_column(
            "silence_ms",
            runs().map(|run| signed(run.measured.silence_ms)),
        ),
        integer_column("gap_ms", runs().map(|run| signed(run.measured.gap_ms))),
        bool_column("aborted", runs().map(|run| run.measured.aborted)),
        integer_column("n_events", rows.iter().map(|row| signed(row.n_events))),
    ];
    frame(RUNS, rows.len(), columns)
}

fn samples_frame(samples: &[Sample]) -> Result<DataFrame, TelemetryError> {
    let columns = vec![
        text_column("source", samples.iter().map(|sample| &*sample.source)),
        text_column("kind", samples.iter().map(|sample| sample.kind.name())),
        integer_column(
            "duration_ms",
            samples.iter().map(|sample| signed(sample.duration_ms)),
        ),
        bool_column("censored", samples.iter().map(|sample| sample.censored)),
        text_column("run", samples.iter().map(|sample| &*sample.run)),
        text_column("role", samples.iter().map(|sample| &*sample.role)),
        text_column("model", samples.iter().map(|sample| &*sample.model)),
        text_column("tool", samples.iter().map(|sample| &*sample.tool)),
    ];
    frame(SAMPLES, samples.len(), columns)
}

fn integers<'a>(
    table: &'static str,
    frame: &'a DataFrame,
    name: &str,
) -> Result<&'a Int64Chunked, TelemetryError> {
    frame
        .column(name)
        .and_then(|column| column.i64())
        .map_err(|error| TelemetryError::store(table, error))
}

fn texts<'a>(
    table: &'static str,
    frame: &'a DataFrame,
    name: &str,
) -> Result<&'a StringChunked, TelemetryError> {
    frame
        .column(name)
        .and_then(|column| column.str())
        .map_err(|error| TelemetryError::store(table, error))
}

fn bools<'a>(
    table: &'static str,
    frame: &'a DataFrame,
    name: &str,
) -> Result<&'a BooleanChunked, TelemetryError> {
    frame
        .column(name)
        .and_then(|column| column.bool())
        .map_err(|error| TelemetryError::store(table, error))
}

/// The value of a column of closed names, or an error that names the column.
fn known<T>(
    table: &'static str,
    column: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, TelemetryError> {
    let text = text.unwrap_or("");
    parse(text).ok_or_else(|| {
        TelemetryError::store(
            table,
            format!("column {column} holds '{text}', which is no known name"),
        )
    })
}

fn read_events(
    frame: &DataFrame,
    symbols: &mut Symbols,
) -> Result<Vec<(i64, RunEvent)>, TelemetryError> {
    let mut run_ids = integers(EVENTS, frame, "run_id")?.iter();
    let mut times = integers(EVENTS, frame, "t_ms")?.iter();
    let mut kinds = texts(EVENTS, frame, "kind")?.iter();
    let mut ids = integers(EVENTS, frame, "call_id")?.iter();
    let mut names = texts(EVENTS, frame, "name")?.iter();
    let mut announced = integers(EVENTS, frame, "announced_ms")?.iter();
    let mut outcomes = texts(EVENTS, frame, "outcome")?.iter();
    let mut wait_kinds = texts(EVENTS, frame, "wait_kind")?.iter();
    let mut waits = integers(EVENTS, frame, "wait_ms")?.iter();
    let mut flags = integers(EVENTS, frame, "flags")?.iter();
    let mut events = Vec::with_capacity(frame.height());
    for _ in 0..frame.height() {
        let kind = known(EVENTS, "kind", kinds.next().flatten(), Kind::from_name)?;
        let outcome = match outcomes.next().flatten() {
            None => None,
            text => Some(known(EVENTS, "outcome", text, outcome_from_name)?),
        };
        let wait_ms = waits.next().flatten().map_or(0, unsigned);
        let wait = match wait_kinds.next().flatten() {
            None => None,
            text => Some(Wait {
                kind: known(EVENTS, "wait_kind", text, WaitKind::from_name)?,
                ms: wait_ms,
            }),
        };
        let event = RunEvent {
            t_ms: unsigned(times.next().flatten().unwrap_or(0)),
            kind,
            id: CallId::new(ids.next().flatten().unwrap_or(0) as u64),
            name: symbols.intern(names.next().flatten().unwrap_or("")),
            announced_ms: announced.next().flatten().map(unsigned),
            outcome,
            wait,
            flags: EventFlags(flags.next().flatten().unwrap_or(0) as u16),
        };
        events.push((run_ids.next().flatten().unwrap_or(-1), event));
    }
    Ok(events)
}

/// The outcome of that name.
pub(crate) fn outcome_from_name(name: &str) -> Option<Outcome> {
    [Outcome::Aborted, Outcome::Completed, Outcome::Failed]
        .into_iter()
        .find(|outcome| outcome.name() == name)
}

fn read_run_rows(
    frame: &DataFrame,
    names: &mut Names,
    rows: &mut Vec<RunRow>,
) -> Result<(), TelemetryError> {
    let text = |column: &'static str| texts(RUNS, frame, column);
    let integer = |column: &'static str| integers(RUNS, frame, column);
    let (name, source, session) = (text("name")?, text("source")?, text("session")?);
    let (parent, harness, model, role) = (
        text("parent")?,
        text("harness")?,
        text("model")?,
        text("role")?,
    );
    let (resolution, status, end) = (text("resolution")?, text("status")?, text("end")?);
    let (started, end_ms, duration) = (
        integer("started_at_ms")?,
        integer("end_ms")?,
        integer("duration_ms")?,
    );
    let (turns, tools) = (integer("turns")?, integer("tools")?);
    let (silence, gap, n_events) = (
        integer("silence_ms")?,
        integer("gap_ms")?,
        integer("n_events")?,
    );
    let aborted = bools(RUNS, frame, "aborted")?;
    for row in 0..frame.height() {
        let mut share = |column: &StringChunked| names.share(column.get(row).unwrap_or(""));
        let number = |column: &Int64Chunked| unsigned(column.get(row).unwrap_or(0));
        let run = Run {
            name: Arc::from(name.get(row).unwrap_or("")),
            source: share(source),
            session: share(session),
            parent: share(parent),
            harness: share(harness),
            model: share(model),
            role: share(role),
            started_at_ms: started.get(row).unwrap_or(0),
            resolution: known(RUNS, "resolution", resolution.get(row), |name| {
                [Resolution::Message, Resolution::Stream]
                    .into_iter()
                    .find(|r| r.name() == name)
            })?,
            status: known(RUNS, "status", status.get(row), |name| {
                [RunStatus::Run, RunStatus::Unanswered, RunStatus::Outside]
                    .into_iter()
                    .find(|status| status.name() == name)
            })?,
            end: known(RUNS, "end", end.get(row), |name| {
                RecordedEnd::ALL.into_iter().find(|end| end.name() == name)
            })?,
            end_ms: number(end_ms),
            measured: Measured {
                duration_ms: number(duration),
                turns: number(turns) as u32,
                tools: number(tools) as u32,
                silence_ms: number(silence),
                gap_ms: number(gap),
                aborted: aborted.get(row).unwrap_or(false),
            },
            events: Vec::new(),
        };
        rows.push(RunRow {
            run,
            n_events: number(n_events),
        });
    }
    Ok(())
}

fn read_sample_rows(
    frame: &DataFrame,
    names: &mut Names,
    samples: &mut Vec<Sample>,
) -> Result<(), TelemetryError> {
    let text = |column: &'static str| texts(SAMPLES, frame, column);
    let (source, kind, run) = (text("source")?, text("kind")?, text("run")?);
    let (role, model, tool) = (text("role")?, text("model")?, text("tool")?);
    let duration = integers(SAMPLES, frame, "duration_ms")?;
    let censored = bools(SAMPLES, frame, "censored")?;
    for row in 0..frame.height() {
        let mut share = |column: &StringChunked| names.share(column.get(row).unwrap_or(""));
        samples.push(Sample {
            source: share(source),
            run: share(run),
            role: share(role),
            model: share(model),
            tool: share(tool),
            kind: known(SAMPLES, "kind", kind.get(row), WaitKind::from_name)?,
            duration_ms: unsigned(duration.get(row).unwrap_or(0)),
            censored: censored.get(row).unwrap_or(false),
        });
    }
    Ok(())
}

/// The bytes of a Parquet file with these columns: how results such as the cells of a sweep are kept.
///
/// # Errors
/// [`TelemetryError::Store`] when the columns are not equally long.
pub fn write_columns(
    columns: &[(String, policysim_sim::columns::Column)],
) -> Result<Vec<u8>, TelemetryError> {
    use policysim_sim::columns::Column as Values;
    const TABLE: &str = "cells.parquet";
    let height = columns.first().map_or(0, |(_, values)| match values {
        Values::Text(values) => values.len(),
        Values::Integer(values) => values.len(),
        Values::Float(values) => values.len(),
    });
    let series = columns
        .iter()
        .map(|(name, values)| match values {
            Values::Text(values) => Column::new(name.into(), values),
            Values::Integer(values) => Column::new(name.into(), values),
            Values::Float(values) => Column::new(name.into(), values),
        })
        .collect();
    let frame =
        DataFrame::new(height, series).map_err(|error| TelemetryError::store(TABLE, error))?;
    let mut bytes = Vec::new();
    let mut writer = TableWriter::new(TABLE, &mut bytes, &frame)?;
    writer.write(&frame)?;
    writer.finish()?;
    Ok(bytes)
}
