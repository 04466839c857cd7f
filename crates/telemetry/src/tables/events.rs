//! Events tables: one event per row, the rows of a run in order of time, runs in any mixture.
//!
//! The table is read twice: once for the last row of each run, once for the events, so that no more runs are held
//! than are under way at one place of the table.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use policysim_policy::{Kind, Outcome};
use policysim_sim::run::{
    EventFlags, RecordedEnd, Run, RunEvent, RunStatus, Symbols, Wait, WaitKind,
};

use super::cells;
use super::rows::{self, Row};
use super::waits;
use super::{Reading, TableError, TableReport};
use crate::content::{Content, Fingerprint, Silent};
use crate::import::WaitTable;
use crate::store::{Cell, outcome_from_name};
use crate::walk::Found;

/// The column of times, and names it must not have.
pub(super) const TIME: &str = "t_ms";
pub(super) const UNITLESS: [&str; 3] = ["t", "time", "timestamp"];

/// Columns asked for, in the order of [`Column`].
const COLUMNS: [&str; 19] = [
    "run",
    "run_id",
    TIME,
    "kind",
    "call_id",
    "name",
    "announced_ms",
    "outcome",
    "wait_kind",
    "wait_ms",
    "flags",
    "started_at_ms",
    "role",
    "model",
    "harness",
    "parent",
    "t",
    "time",
    "timestamp",
];

/// Places in a row's cells; the two labels stand in front of them.
#[derive(Clone, Copy)]
enum Column {
    Time = 2,
    Kind,
    CallId,
    Name,
    Announced,
    Outcome,
    WaitKind,
    Wait,
    Flags,
    StartedAt,
    Role,
    Model,
    Harness,
    Parent,
    Unitless,
}

/// Reads an events table into the dataset.
pub(super) fn read(
    reading: &mut Reading<'_>,
    file: &Found,
    name: &str,
    content: Content<'_>,
) -> Result<(TableReport, Fingerprint), TableError> {
    if !file.path.is_file() {
        let error =
            io::Error::other("a table of events is read twice, so it has to be a regular file");
        return Err(TableError::Read(error));
    }
    let mut table = EventsTable {
        source: Arc::from(name),
        last_rows: last_rows(reading, file)?,
        open: HashMap::new(),
        symbols: Symbols::default(),
        waits: WaitTable::default(),
        closed: Closed::default(),
    };
    let mut report = TableReport::default();
    let cancel = reading.cancel;
    let mut each = |row: Row, report: &mut TableReport| table.take(row, report, reading);
    let fingerprint = rows::for_each(file, content, cancel, &COLUMNS, &mut report, &mut each)?;
    report.add_waits(&table.waits);
    table.closed.add_to(&mut report);
    Ok((report.finish(), fingerprint))
}

/// The last row of every run, by its label.
fn last_rows(reading: &Reading<'_>, file: &Found) -> Result<HashMap<String, u64>, TableError> {
    let content = Content::open(&file.path, &Silent, reading.cancel)?;
    let mut last = HashMap::new();
    let mut each = |row: Row, _: &mut TableReport| {
        if let Ok(cells) = &row.cells
            && let Some(label) = label(cells)
        {
            last.insert(label, row.line);
        }
        Ok(())
    };
    let labels = &COLUMNS[..2];
    rows::for_each(
        file,
        content,
        reading.cancel,
        labels,
        &mut TableReport::default(),
        &mut each,
    )?;
    Ok(last)
}

/// The run's label: the first of `run` and `run_id` that is there.
fn label(cells: &[Cell]) -> Option<String> {
    let cell = cells.iter().take(2).find(|cell| **cell != Cell::Missing)?;
    let label = cells::opaque_label(&cells::name(cell));
    (!label.is_empty()).then_some(label)
}

/// What is known of the table so far.
struct EventsTable {
    source: Arc<str>,
    last_rows: HashMap<String, u64>,
    open: HashMap<String, OpenRun>,
    symbols: Symbols,
    waits: WaitTable,
    closed: Closed,
}

/// A run whose last row is still to come.
#[derive(Default)]
struct OpenRun {
    events: Vec<RunEvent>,
    started_at_ms: i64,
    role: String,
    model: String,
    harness: String,
    parent: String,
    /// The table itself says which waits ended where; nothing is derived.
    waits_given: bool,
    /// How the record says it ended, where that is no outcome of the run's own.
    end: Option<RecordedEnd>,
}

/// Counts over the closed runs.
#[derive(Default)]
pub(super) struct Closed {
    n_runs: u64,
    n_turns: u64,
    n_aborted: u64,
    n_clock_steps: u64,
    sum_run_ms: u64,
    max_run_ms: u64,
    max_silence_ms: u64,
    max_model_gap_ms: u64,
}

impl Closed {
    pub(super) fn add(&mut self, run: &Run) {
        let measured = &run.measured;
        self.n_runs += 1;
        self.n_turns += u64::from(measured.turns);
        self.n_aborted += u64::from(measured.aborted);
        self.sum_run_ms = self.sum_run_ms.saturating_add(measured.duration_ms);
        self.max_run_ms = self.max_run_ms.max(measured.duration_ms);
        self.max_silence_ms = self.max_silence_ms.max(measured.silence_ms);
        self.max_model_gap_ms = self.max_model_gap_ms.max(measured.gap_ms);
    }

    pub(super) fn add_to(&self, report: &mut TableReport) {
        for (name, value) in [
            ("n_runs", self.n_runs),
            ("n_turns", self.n_turns),
            ("n_aborted", self.n_aborted),
            ("n_runs_aborted", self.n_aborted),
            ("n_clock_steps", self.n_clock_steps),
            ("sum_run_ms", self.sum_run_ms),
            ("max_run_ms", self.max_run_ms),
            ("max_silence_ms", self.max_silence_ms),
            ("max_model_gap_ms", self.max_model_gap_ms),
        ] {
            report.counts.insert(name.to_owned(), value);
        }
    }
}

impl EventsTable {
    fn take(
        &mut self,
        row: Row,
        report: &mut TableReport,
        reading: &mut Reading<'_>,
    ) -> Result<(), TableError> {
        let label = row.cells.as_ref().ok().and_then(|cells| label(cells));
        let outcome = row.cells.and_then(|cells| {
            let label = label.as_deref().ok_or("run is missing")?;
            self.add(label, &cells)
        });
        match outcome {
            Ok(()) => report.lines.imported += 1,
            Err(reason) => report.malformed(row.line, row.offset, reason),
        }
        match label {
            Some(label) if self.last_rows.get(&label) == Some(&row.line) => {
                self.close(&label, reading)
            }
            _ => Ok(()),
        }
    }

    /// Adds an event to its run, or says what is wrong with it.
    fn add(&mut self, label: &str, cells: &[Cell]) -> Result<(), String> {
        let at = |column: Column| &cells[column as usize];
        let (mut event, killed) = event(cells, &mut self.symbols)?;
        let started_at_ms = cells::signed("started_at_ms", at(Column::StartedAt))?;
        let run = self.open.entry(label.to_owned()).or_default();
        if let Some(last) = run.events.last()
            && event.t_ms < last.t_ms
        {
            event.t_ms = last.t_ms;
            event.flags = event.flags.with(EventFlags::CLOCK_STEP);
            self.closed.n_clock_steps += 1;
        }
        run.waits_given |=
            *at(Column::Flags) != Cell::Missing || *at(Column::WaitKind) != Cell::Missing;
        run.end = killed.or(run.end);
        if let Some(started_at_ms) = started_at_ms
            && run.started_at_ms == 0
        {
            run.started_at_ms = started_at_ms;
        }
        for (text, column) in [
            (&mut run.role, Column::Role),
            (&mut run.model, Column::Model),
            (&mut run.harness, Column::Harness),
        ] {
            if text.is_empty() {
                *text = cells::name(at(column));
            }
        }
        if run.parent.is_empty() {
            run.parent = cells::opaque_label(&cells::name(at(Column::Parent)));
        }
        run.events.push(event);
        Ok(())
    }

    fn close(&mut self, label: &str, reading: &mut Reading<'_>) -> Result<(), TableError> {
        let Some(open) = self.open.remove(label) else {
            return Ok(());
        };
        let run = self.run(label, open, reading.request.observed_until_ms);
        for wait in run.events.iter().filter_map(|event| event.wait) {
            self.waits.add(wait);
        }
        self.closed.add(&run);
        if reading.request.selects(run.started_at_ms) {
            reading.writer.push(&run, &self.symbols)?;
        }
        Ok(())
    }

    fn run(&self, label: &str, mut open: OpenRun, observed_until_ms: Option<i64>) -> Run {
        let summary = if open.waits_given {
            waits::measure(&open.events)
        } else {
            waits::derive(&mut open.events, &self.symbols)
        };
        let end = open.end.unwrap_or(summary.end);
        let mut end_ms = open.events.last().map_or(0, |event| event.t_ms);
        let still_open = match end {
            RecordedEnd::OpenInModel | RecordedEnd::OpenInTool => true,
            // Nothing tells how it ended, nor that it did: it may never have begun (scenario BR-29).
            RecordedEnd::Unknown => !open.events.iter().any(|event| event.kind == Kind::RunEnd),
            _ => false,
        };
        if let Some(until) = observed_until_ms.filter(|_| still_open) {
            end_ms =
                end_ms.max(u64::try_from(until.saturating_sub(open.started_at_ms)).unwrap_or(0));
        }
        let named = |label: &str| -> Arc<str> { Arc::from(format!("{}#{label}", self.source)) };
        let or_default = |text: &str, default: &str| -> Arc<str> {
            Arc::from(if text.is_empty() { default } else { text })
        };
        Run {
            name: named(label),
            source: Arc::clone(&self.source),
            session: Arc::from(""),
            parent: if self.last_rows.contains_key(&open.parent) {
                named(&open.parent)
            } else {
                Arc::from("")
            },
            harness: or_default(&open.harness, "policysim"),
            model: Arc::from(open.model),
            role: Arc::from(open.role),
            started_at_ms: open.started_at_ms,
            resolution: summary.resolution,
            status: RunStatus::Run,
            end,
            end_ms,
            measured: summary.measured,
            events: open.events,
        }
    }
}

/// The event of a row, and the recorded end it tells of where that is no outcome.
fn event(cells: &[Cell], symbols: &mut Symbols) -> Result<(RunEvent, Option<RecordedEnd>), String> {
    let at = |column: Column| &cells[column as usize];
    let t_ms = cells::whole_ms(TIME, at(Column::Time))?.ok_or_else(|| {
        let first = Column::Unitless as usize;
        match (first..COLUMNS.len()).find(|&place| cells[place] != Cell::Missing) {
            Some(place) => format!(
                "column {} has no unit: name it {TIME} and give whole milliseconds",
                COLUMNS[place]
            ),
            None => format!("{TIME} is missing"),
        }
    })?;
    let written = cells::name(at(Column::Kind));
    let mut name = cells::name(at(Column::Name));
    let kind = match written.strip_prefix("other:") {
        Some(other) => {
            other.clone_into(&mut name);
            Kind::Other
        }
        None => Kind::from_name(&written).ok_or_else(|| {
            super::unknown_name("kind", &written, Kind::ALL.into_iter().map(Kind::name))
        })?,
    };
    let (outcome, end) = outcome(&cells::name(at(Column::Outcome)))?;
    let mut event = RunEvent::new(t_ms, kind);
    event.id = cells::call_id(at(Column::CallId));
    event.name = symbols.intern(&name);
    event.announced_ms = cells::whole_ms("announced_ms", at(Column::Announced))?;
    event.outcome = outcome;
    event.wait = wait(at(Column::WaitKind), at(Column::Wait))?;
    let flags = cells::signed("flags", at(Column::Flags))?.unwrap_or(0);
    event.flags = EventFlags(u16::try_from(flags).map_err(|_| "flags is out of range".to_owned())?);
    Ok((event, end))
}

fn outcome(text: &str) -> Result<(Option<Outcome>, Option<RecordedEnd>), String> {
    match text {
        "" => Ok((None, None)),
        "killed" => Ok((None, Some(RecordedEnd::Killed))),
        "hung" => Ok((None, Some(RecordedEnd::Hung))),
        text => outcome_from_name(text)
            .map(|outcome| (Some(outcome), None))
            .ok_or_else(|| {
                super::unknown_name(
                    "outcome",
                    text,
                    ["aborted", "completed", "failed", "hung", "killed"].into_iter(),
                )
            }),
    }
}

fn wait(kind: &Cell, ms: &Cell) -> Result<Option<Wait>, String> {
    let written = cells::name(kind);
    let Some(ms) = cells::whole_ms("wait_ms", ms)? else {
        return Ok(None);
    };
    let kind = WaitKind::from_name(&written).ok_or_else(|| {
        super::unknown_name(
            "wait_kind",
            &written,
            WaitKind::ALL.into_iter().map(WaitKind::name),
        )
    })?;
    Ok(Some(Wait { kind, ms }))
}
