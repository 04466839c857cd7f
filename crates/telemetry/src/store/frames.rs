//! Rows of ours as data frames. All integers are signed.

use polars::prelude::*;
use policysim_policy::Outcome;
use policysim_sim::run::{RunEvent, Symbols};

use super::{RUNS, RunRow, SAMPLES};
use crate::error::TelemetryError;
use crate::samples::Sample;

/// `u64` as a column's signed 64 bits: larger values saturate (no real duration comes near).
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn integer_column(name: &'static str, values: impl Iterator<Item = i64>) -> Column {
    Int64Chunked::from_vec(name.into(), values.collect()).into_column()
}

pub(super) fn optional_column(
    name: &'static str,
    values: impl Iterator<Item = Option<i64>>,
) -> Column {
    Int64Chunked::from_iter_options(name.into(), values).into_column()
}

pub(super) fn text_column<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Column {
    StringChunked::from_iter_values(name.into(), values).into_column()
}

pub(super) fn optional_text<'a>(
    name: &'static str,
    values: impl Iterator<Item = Option<&'a str>>,
) -> Column {
    StringChunked::from_iter_options(name.into(), values).into_column()
}

pub(super) fn bool_column(name: &'static str, values: impl Iterator<Item = bool>) -> Column {
    BooleanChunked::from_iter_values(name.into(), values).into_column()
}

pub(super) fn frame(
    table: &'static str,
    height: usize,
    columns: Vec<Column>,
) -> Result<DataFrame, TelemetryError> {
    DataFrame::new(height, columns).map_err(|error| TelemetryError::store(table, error))
}

/// A column that is made when it is written: of a long run all columns together are many times its events.
pub(super) type Made<'a> = Box<dyn FnOnce() -> Column + Send + Sync + 'a>;

/// The columns of `events.parquet`; `run_of` says whose the event at a place is.
pub(super) fn events_columns<'a>(
    run_of: impl Fn(usize) -> i64 + Send + Sync + 'a,
    events: &'a [RunEvent],
    symbols: &'a Symbols,
) -> Vec<Made<'a>> {
    let all = || events.iter();
    vec![
        Box::new(move || integer_column("run_id", (0..events.len()).map(run_of))),
        Box::new(move || integer_column("t_ms", all().map(|event| signed(event.t_ms)))),
        Box::new(move || text_column("kind", all().map(|event| event.kind.name()))),
        // The id is 64 opaque bits: kept bit for bit, so it may read as negative.
        Box::new(move || integer_column("call_id", all().map(|event| event.id.as_u64() as i64))),
        Box::new(move || text_column("name", all().map(|event| symbols.name(event.name)))),
        Box::new(move || {
            let announced = all().map(|event| event.announced_ms.map(signed));
            optional_column("announced_ms", announced)
        }),
        Box::new(move || {
            optional_text(
                "outcome",
                all().map(|event| event.outcome.map(Outcome::name)),
            )
        }),
        Box::new(move || {
            let kinds = all().map(|event| event.wait.map(|wait| wait.kind.name()));
            optional_text("wait_kind", kinds)
        }),
        Box::new(move || {
            let lengths = all().map(|event| event.wait.map(|wait| signed(wait.ms)));
            optional_column("wait_ms", lengths)
        }),
        Box::new(move || integer_column("flags", all().map(|event| i64::from(event.flags.0)))),
    ]
}

pub(super) fn runs_frame(first: usize, rows: &[RunRow]) -> Result<DataFrame, TelemetryError> {
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

pub(super) fn samples_frame(samples: &[Sample]) -> Result<DataFrame, TelemetryError> {
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
