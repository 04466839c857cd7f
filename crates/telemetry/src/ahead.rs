//! Small logs read ahead, several at once; what they bring is taken in their order.
//!
//! Nothing that a log brings depends on the logs before it, unless records are to count once over all of them: then
//! logs are read one after the other.

use std::sync::atomic::{AtomicBool, Ordering};

use policysim_sim::run::{Run, Symbols};
use rayon::prelude::*;

use crate::content::{Fingerprint, Progress};
use crate::import::{ImportOptions, Sink, SinkError, SourceInput, SourceReport, import_source};
use crate::pipeline::{ImportRequest, InputFormat, format_of, open};
use crate::walk::Found;

/// The largest file that is read ahead, and the most bytes that are at once: what they bring lies in memory.
const FILE_BYTES: u64 = 8 << 20;
const WINDOW_BYTES: u64 = 32 << 20;

/// A file with more events than this (a compressed one may have) is read alone, as large files are.
const FILE_EVENTS: usize = 250_000;

/// What one log brings.
pub(crate) struct Ahead {
    pub(crate) report: SourceReport,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) runs: Vec<Run>,
    /// The names that the events of the runs refer to.
    pub(crate) symbols: Symbols,
    /// Its records, as [`Sink::is_elsewhere`] was asked for them.
    pub(crate) records: Vec<(u64, i64)>,
}

/// How many of the files in front are read ahead together.
pub(crate) fn window(request: &ImportRequest, files: &[Found]) -> usize {
    if request.dedupe {
        return 0;
    }
    let mut bytes = 0;
    let fits = |file: &&Found| {
        bytes += file.n_bytes;
        file.n_bytes <= FILE_BYTES && bytes <= WINDOW_BYTES
    };
    let most = 8 * rayon::current_num_threads();
    files.iter().take(most).take_while(fits).count()
}

/// Reads the files, which are known by these names. None for what is no log, cannot be read, or brings too much:
/// that is for a reader of one file at a time, who knows what to say of it.
pub(crate) fn read(
    request: &ImportRequest,
    files: &[(&Found, String)],
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Vec<Option<Ahead>> {
    files
        .par_iter()
        .map(|(file, name)| read_one(request, file, name, progress, cancel))
        .collect()
}

fn read_one(
    request: &ImportRequest,
    file: &Found,
    name: &str,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Option<Ahead> {
    if cancel.load(Ordering::Relaxed) {
        return None;
    }
    progress.source(name);
    let mut content = open(file, progress, cancel).ok()?;
    let Ok(InputFormat::Log(format)) = format_of(request, &content, file) else {
        return None;
    };
    let options = ImportOptions {
        observed_until_ms: request.observed_until_ms,
    };
    let mut symbols = Symbols::default();
    let mut kept = Kept::default();
    let input = SourceInput {
        name,
        reader: &mut content,
    };
    let report = import_source(input, format, &options, &mut symbols, &mut kept).ok()?;
    Some(Ahead {
        report,
        fingerprint: content.finish().ok()?,
        runs: kept.runs,
        symbols,
        records: kept.records,
    })
}

/// Keeps what a log brings.
#[derive(Default)]
struct Kept {
    runs: Vec<Run>,
    n_events: usize,
    records: Vec<(u64, i64)>,
}

impl Sink for Kept {
    fn run(&mut self, run: Run, _: &Symbols) -> Result<(), SinkError> {
        self.n_events += run.events.len();
        self.runs.push(run);
        if self.n_events > FILE_EVENTS {
            return Err("more events than are kept".into());
        }
        Ok(())
    }

    fn is_elsewhere(&mut self, record: u64, stamp_ms: i64) -> bool {
        self.records.push((record, stamp_ms));
        false
    }
}
