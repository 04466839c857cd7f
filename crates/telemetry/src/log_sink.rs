//! Where the runs of one log go: through the window into the dataset, stream after stream.
//!
//! An importer gives runs as they close, those of several agents in one log in any mixture; `DEFINITIONS.md` lists
//! them stream after stream. So the runs of all streams but the first wait for the end of the log, up to a bound.

use policysim_sim::run::{Run, Symbols};

use crate::error::TelemetryError;
use crate::import::{Sink, SinkError};
use crate::pipeline::ImportRequest;
use crate::repeats::Records;
use crate::writer::DatasetWriter;

/// How many events may wait. A log whose subagents have more of them is stored in closing order from there on.
const WAITING_EVENTS: usize = 1_000_000;

/// The sink of one log.
pub(crate) struct LogSink<'a> {
    request: &'a ImportRequest,
    writer: &'a mut DatasetWriter,
    records: Option<&'a mut Records>,
    waiting: Vec<(u64, Run)>,
    waiting_events: usize,
}

impl<'a> LogSink<'a> {
    pub(crate) fn new(
        request: &'a ImportRequest,
        writer: &'a mut DatasetWriter,
        records: Option<&'a mut Records>,
    ) -> Self {
        Self {
            request,
            writer,
            records,
            waiting: Vec::new(),
            waiting_events: 0,
        }
    }

    /// Writes what waited.
    pub(crate) fn finish(&mut self, symbols: &Symbols) -> Result<(), TelemetryError> {
        self.waiting.sort_by_key(|(stream, _)| *stream);
        self.waiting_events = 0;
        self.waiting
            .drain(..)
            .try_for_each(|(_, run)| self.writer.push(&run, symbols))
    }
}

impl Sink for LogSink<'_> {
    fn run(&mut self, run: Run, symbols: &Symbols) -> Result<(), SinkError> {
        if !self.request.selects(run.started_at_ms) {
            return Ok(());
        }
        match stream_of(&run) {
            1 => self.writer.push(&run, symbols)?,
            stream => {
                self.waiting_events += run.events.len();
                self.waiting.push((stream, run));
                if self.waiting_events > WAITING_EVENTS {
                    self.finish(symbols)?;
                }
            }
        }
        Ok(())
    }

    fn is_elsewhere(&mut self, record: u64, stamp_ms: i64) -> bool {
        self.records
            .as_mut()
            .is_some_and(|records| records.is_elsewhere(record, stamp_ms))
    }
}

/// The number of the stream that a run is of, from its name: `SOURCE#N` in the first, `SOURCE#STREAM.N` in others.
fn stream_of(run: &Run) -> u64 {
    let number = run
        .name
        .strip_prefix(&*run.source)
        .and_then(|rest| rest.strip_prefix('#'));
    number
        .and_then(|number| number.split_once('.'))
        .and_then(|(stream, _)| stream.parse().ok())
        .unwrap_or(1)
}
