//! `runs.parquet`: its row groups are those of `events.parquet`, so that a batch of runs is read without the others.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use policysim_sim::run::{RecordedEnd, Resolution, Run, RunStatus, Symbols};
use policysim_sim::scan::Batch;

use super::frames::{runs_frame, unsigned};
use super::places::{Names, Places, fill};
use super::write::TableWriter;
use super::{EVENTS, EventsReader, GROUP_ROWS, RUNS, RunRow, Table};
use crate::error::TelemetryError;

/// Writes `runs.parquet`; a row's number is its `run_id`. Row groups end where those of the events do.
pub(crate) fn write_runs(
    out: impl Write,
    rows: &[RunRow],
    ends: &[usize],
) -> Result<(), TelemetryError> {
    let mut writer = TableWriter::new(RUNS, out, runs_frame(0, &[])?.columns(), &[])?;
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
    Stored(Places),
    /// In memory: the file's row groups are not those of the events.
    Read(Vec<RunRow>),
}

impl RunsReader {
    pub(crate) fn open(table: &Table, events: &EventsReader) -> Result<Self, TelemetryError> {
        let places = Places::open(RUNS, table)?;
        let batches = batches(&places, events)?;
        let aligned = batches.len() == places.len()
            && (0..places.len()).all(|group| places.n_rows_of(group) == batches[group].rows.len());
        let heads = if aligned {
            Heads::Stored(places)
        } else {
            let mut rows = Vec::new();
            let mut names = Names::default();
            for group in 0..places.len() {
                read_run_rows(&places, group, &mut names, &mut rows)?;
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
            Heads::Stored(places) => {
                let mut rows = Vec::new();
                read_run_rows(places, batch, &mut Names::default(), &mut rows)?;
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
fn batches(runs: &Places, events: &EventsReader) -> Result<Vec<Stretch>, TelemetryError> {
    let mut batches = Vec::with_capacity(events.len());
    let (mut first, mut row) = (0, 0);
    let (mut held, mut stated) = (0_u64, 0_u64);
    for group in 0..runs.len() {
        for n_events in runs.decode(|reader| reader.numbers(group, "n_events"))? {
            row += 1;
            let n_events = unsigned(n_events);
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
            reason: "the events of a run stand in two row groups, or a group is empty: each run has to lie whole in one"
                .to_owned(),
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

/// Appends the runs of a row group.
fn read_run_rows(
    places: &Places,
    group: usize,
    names: &mut Names,
    rows: &mut Vec<RunRow>,
) -> Result<(), TelemetryError> {
    places.decode(|reader| {
        // as many as are read, whatever the file claims
        let first = rows.len();
        let named = reader.texts(group, "name", names)?.into_iter();
        rows.extend(named.map(|name| RunRow {
            run: Run {
                name,
                ..Run::default()
            },
            n_events: 0,
        }));
        let rows = &mut rows[first..];
        let mut text = |column, set: fn(&mut Run) -> &mut Arc<str>| {
            let values = reader.texts(group, column, names)?;
            fill(rows, values, |row, value| *set(&mut row.run) = value)
        };
        text("source", |run| &mut run.source)?;
        text("session", |run| &mut run.session)?;
        text("parent", |run| &mut run.parent)?;
        text("harness", |run| &mut run.harness)?;
        text("model", |run| &mut run.model)?;
        text("role", |run| &mut run.role)?;
        let resolutions = reader.closed(group, "resolution", |name| {
            [Resolution::Message, Resolution::Stream]
                .into_iter()
                .find(|resolution| resolution.name() == name)
        })?;
        fill(rows, resolutions, |row, value| row.run.resolution = value)?;
        let statuses = reader.closed(group, "status", |name| {
            [RunStatus::Run, RunStatus::Unanswered, RunStatus::Outside]
                .into_iter()
                .find(|status| status.name() == name)
        })?;
        fill(rows, statuses, |row, value| row.run.status = value)?;
        let ends = reader.closed(group, "end", |name| {
            RecordedEnd::ALL.into_iter().find(|end| end.name() == name)
        })?;
        fill(rows, ends, |row, value| row.run.end = value)?;
        let mut number = |column, set: fn(&mut RunRow, i64)| {
            let values = reader.numbers(group, column)?;
            fill(rows, values, set)
        };
        number("started_at_ms", |row, n| row.run.started_at_ms = n)?;
        number("end_ms", |row, n| row.run.end_ms = unsigned(n))?;
        number("duration_ms", |row, n| {
            row.run.measured.duration_ms = unsigned(n);
        })?;
        number("turns", |row, n| {
            row.run.measured.turns = unsigned(n) as u32;
        })?;
        number("tools", |row, n| {
            row.run.measured.tools = unsigned(n) as u32;
        })?;
        number("silence_ms", |row, n| {
            row.run.measured.silence_ms = unsigned(n);
        })?;
        number("gap_ms", |row, n| row.run.measured.gap_ms = unsigned(n))?;
        number("n_events", |row, n| row.n_events = unsigned(n))?;
        fill(rows, reader.bools(group, "aborted")?, |row, value| {
            row.run.measured.aborted = value;
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn stored() -> (Vec<RunRow>, Vec<u8>) {
        let row = |number: u64| RunRow {
            run: Run {
                name: format!("log#{number}").into(),
                source: "a/log.jsonl".into(),
                session: format!("s{}", number / 3).into(),
                model: if number.is_multiple_of(2) {
                    "small"
                } else {
                    ""
                }
                .into(),
                started_at_ms: 1_700_000_000_000 + number as i64,
                end: RecordedEnd::ALL[number as usize % RecordedEnd::ALL.len()],
                end_ms: number * number,
                measured: policysim_sim::run::Measured {
                    aborted: number.is_multiple_of(7),
                    turns: number as u32,
                    ..Default::default()
                },
                ..Run::default()
            },
            n_events: number % 11,
        };
        let rows: Vec<RunRow> = (0..200).map(row).collect();
        let mut bytes = Vec::new();
        write_runs(&mut bytes, &rows, &[120, 200]).unwrap();
        (rows, bytes)
    }

    fn read(bytes: &[u8]) -> Result<Vec<RunRow>, TelemetryError> {
        let places = Places::open(RUNS, &Table::Bytes(bytes.into()))?;
        let mut rows = Vec::new();
        for group in 0..places.len() {
            read_run_rows(&places, group, &mut Names::default(), &mut rows)?;
        }
        Ok(rows)
    }

    #[test]
    fn runs_come_back_as_they_were() {
        let (rows, bytes) = stored();
        assert_eq!(read(&bytes).unwrap(), rows);
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_read_or_refused(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let (_, mut bytes) = stored();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = read(&bytes);
        }
    }
}
