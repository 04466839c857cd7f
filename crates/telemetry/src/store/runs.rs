//! `runs.parquet`: its row groups are those of `events.parquet`, so that a batch of runs is read without the others.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use polars::prelude::*;
use policysim_sim::run::{Measured, RecordedEnd, Resolution, Run, RunStatus, Symbols};
use policysim_sim::scan::Batch;

use super::frames::{runs_frame, unsigned};
use super::groups::{Groups, Names, bools, integers, known, texts};
use super::write::TableWriter;
use super::{EVENTS, EventsReader, GROUP_ROWS, RUNS, RunRow, Table};
use crate::error::TelemetryError;

/// Writes `runs.parquet`; a row's number is its `run_id`. Row groups end where those of the events do.
pub(crate) fn write_runs(
    out: impl Write,
    rows: &[RunRow],
    ends: &[usize],
) -> Result<(), TelemetryError> {
    let mut writer = TableWriter::new(RUNS, out, &runs_frame(0, &[])?, &[])?;
    let mut first = 0;
    let mut group = |end| {
        let frame = runs_frame(first, &rows[first..end])?;
        first = end;
        writer.write(&frame, |_| None)
    };
    ends.iter().try_for_each(|&end| group(end))?;
    // Runs without events behind the last group of events make groups of their own.
    let last = ends.last().map_or(0, |&end| end);
    let rest = (last..rows.len()).step_by(GROUP_ROWS).skip(1);
    rest.chain((last < rows.len()).then_some(rows.len()))
        .try_for_each(group)?;
    writer.finish()
}

/// Runs of one batch: their rows, and the row group that holds their events if they have any.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Stretch {
    rows: Range<usize>,
    events: Option<usize>,
}

/// Reads `runs.parquet` batch by batch.
#[derive(Debug)]
pub(crate) struct RunsReader {
    batches: Vec<Stretch>,
    heads: Heads,
}

/// Where runs are when a batch is read.
#[derive(Debug)]
enum Heads {
    /// In a row group of their own per batch.
    Stored(Groups),
    /// In memory: the file's row groups are not those of the events.
    Read(Vec<RunRow>),
}

impl RunsReader {
    pub(crate) fn open(table: &Table, events: &EventsReader) -> Result<Self, TelemetryError> {
        let groups = Groups::open(RUNS, table)?;
        let batches = batches(&groups, events)?;
        let aligned = batches.len() == groups.len()
            && (0..groups.len()).all(|group| groups.n_rows_of(group) == batches[group].rows.len());
        let heads = if aligned {
            Heads::Stored(groups)
        } else {
            let mut rows = Vec::with_capacity(groups.n_rows());
            let mut names = Names::default();
            for group in 0..groups.len() {
                read_run_rows(&groups.read(group, None)?, &mut names, &mut rows)?;
            }
            Heads::Read(rows)
        };
        Ok(Self { batches, heads })
    }

    /// How many batches there are.
    pub(crate) fn len(&self) -> usize {
        self.batches.len()
    }

    /// How many runs there are.
    pub(crate) fn n_rows(&self) -> usize {
        self.batches.last().map_or(0, |batch| batch.rows.end)
    }

    /// The runs of a batch without their events.
    pub(crate) fn heads(&self, batch: usize) -> Result<Vec<RunRow>, TelemetryError> {
        match &self.heads {
            Heads::Read(rows) => Ok(rows[self.batches[batch].rows.clone()].to_vec()),
            Heads::Stored(groups) => {
                let mut rows = Vec::with_capacity(groups.n_rows_of(batch));
                let frame = groups.read(batch, None)?;
                read_run_rows(&frame, &mut Names::default(), &mut rows)?;
                Ok(rows)
            }
        }
    }

    /// Fills `into`, which is emptied first, with the runs of a batch and their events.
    pub(crate) fn read(
        &self,
        batch: usize,
        events: &EventsReader,
        symbols: &Symbols,
        into: &mut Batch,
    ) -> Result<(), TelemetryError> {
        into.clear();
        if let Some(group) = self.batches[batch].events {
            events.read(group, symbols, into.events_mut())?;
        }
        for row in self.heads(batch)? {
            into.close_first(row.run, row.n_events as usize);
        }
        Ok(())
    }
}

/// Which runs have their events in which row group.
fn batches(runs: &Groups, events: &EventsReader) -> Result<Vec<Stretch>, TelemetryError> {
    let mut batches = Vec::with_capacity(events.len());
    let (mut first, mut row) = (0, 0);
    let (mut held, mut stated) = (0_u64, 0_u64);
    for group in 0..runs.len() {
        let frame = runs.read(group, Some(vec!["n_events".to_owned()]))?;
        for n_events in integers(RUNS, &frame, "n_events")?.iter() {
            row += 1;
            let n_events = unsigned(n_events.unwrap_or(0));
            held = held.saturating_add(n_events);
            stated = stated.saturating_add(n_events);
            let open = batches.len();
            if open < events.len() && held == events.n_rows_of(open) as u64 {
                batches.push(Stretch {
                    rows: first..row,
                    events: Some(open),
                });
                first = row;
                held = 0;
            }
        }
    }
    let found = events.n_rows() as u64;
    if stated != found {
        return Err(TelemetryError::Store {
            table: EVENTS,
            reason: format!("holds {found} events, {RUNS} speaks of {stated}"),
        });
    }
    if batches.len() != events.len() {
        return Err(TelemetryError::Store {
            table: EVENTS,
            reason: "the events of a run stand in two row groups".to_owned(),
        });
    }
    // Runs without events make batches of their own.
    while first < row {
        let end = row.min(first + GROUP_ROWS);
        batches.push(Stretch {
            rows: first..end,
            events: None,
        });
        first = end;
    }
    Ok(batches)
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
