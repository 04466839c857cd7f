//! The tables on disk. The only module that says `polars`: its types go no further.
//!
//! Rows are written batch by batch, so that memory is bounded by a row group (whole runs), and read back group by
//! group. All integers are signed. `run_id`, `t_ms` and call ids that count something are stored as differences
//! (delta encoding), everything else through dictionaries.

mod events;
mod foreign;
mod frames;
mod groups;
mod pages;
mod places;
mod runs;
mod write;

use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use polars::prelude::*;
use policysim_sim::run::{Run, WaitKind};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(crate) use events::{EventsReader, EventsWriter, outcome_from_name};
pub(crate) use foreign::{Cell, ForeignTable};
pub use groups::is_guarded;
pub(crate) use runs::{RunsReader, write_runs};

use frames::{samples_frame, unsigned};
use pages::Bytes;
use places::{Names, Places, fill};
use write::TableWriter;

use crate::error::TelemetryError;
use crate::samples::Sample;

/// Rows per group of the other tables.
const GROUP_ROWS: usize = 100_000;

/// A stored table: a file, or its bytes in memory.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Table {
    /// The bytes of the table `named`, to be read from any place.
    fn open(&self, named: &'static str) -> Result<Box<dyn Bytes>, TelemetryError> {
        Ok(match self {
            Self::File(path) => Box::new(
                File::open(path).map_err(|error| TelemetryError::io(named, "opening", error))?,
            ),
            Self::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
        })
    }

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

/// Writes `samples.parquet`.
pub(crate) struct SamplesWriter<W: Write> {
    out: TableWriter<W>,
    rows: Vec<Sample>,
}

impl<W: Write> SamplesWriter<W> {
    pub(crate) fn new(out: W) -> Result<Self, TelemetryError> {
        Ok(Self {
            out: TableWriter::new(SAMPLES, out, samples_frame(&[])?.columns(), &[])?,
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
        self.out.write(&frame, |_| None)
    }

    pub(crate) fn finish(mut self) -> Result<(), TelemetryError> {
        self.flush()?;
        self.out.finish()
    }
}

/// Reads `samples.parquet` whole.
pub(crate) fn read_samples(table: &Table) -> Result<Vec<Sample>, TelemetryError> {
    let places = Places::open(SAMPLES, table)?;
    let mut samples = Vec::new();
    let mut names = Names::default();
    for group in 0..places.len() {
        read_sample_rows(&places, group, &mut names, &mut samples)?;
    }
    Ok(samples)
}

const RUNS: &str = "runs.parquet";
const EVENTS: &str = "events.parquet";
const SAMPLES: &str = "samples.parquet";
const FOREIGN: &str = "the Parquet table";

/// Appends the samples of a row group.
fn read_sample_rows(
    places: &Places,
    group: usize,
    names: &mut Names,
    samples: &mut Vec<Sample>,
) -> Result<(), TelemetryError> {
    places.decode(|reader| {
        let kinds = reader.closed(group, "kind", WaitKind::from_name)?;
        let first = samples.len();
        samples.extend(kinds.into_iter().map(|kind| Sample {
            source: Arc::default(),
            run: Arc::default(),
            role: Arc::default(),
            model: Arc::default(),
            tool: Arc::default(),
            kind,
            duration_ms: 0,
            censored: false,
        }));
        let rows = &mut samples[first..];
        let mut text = |column, set: fn(&mut Sample) -> &mut Arc<str>| {
            let values = reader.texts(group, column, names)?;
            fill(rows, values, |row, value| *set(row) = value)
        };
        text("source", |row| &mut row.source)?;
        text("run", |row| &mut row.run)?;
        text("role", |row| &mut row.role)?;
        text("model", |row| &mut row.model)?;
        text("tool", |row| &mut row.tool)?;
        let lengths = reader.numbers(group, "duration_ms")?;
        fill(rows, lengths, |row, ms| row.duration_ms = unsigned(ms))?;
        let censored = reader.bools(group, "censored")?;
        fill(rows, censored, |row, value| row.censored = value)
    })
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
    let mut writer = TableWriter::new(TABLE, &mut bytes, frame.columns(), &[])?;
    writer.write(&frame, |_| None)?;
    writer.finish()?;
    Ok(bytes)
}
