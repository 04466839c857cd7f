//! A dataset being written: a new folder that takes its place only when it is complete, or bytes in memory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use policysim_sim::run::{Run, RunStatus, Symbols};
use xxhash_rust::xxh3::Xxh3;

use crate::dataset::{Dataset, Stored};
use crate::error::TelemetryError;
use crate::flags::FlagCounts;
use crate::manifest::{
    Contents, EVENTS_FILE, MANIFEST_FILE, Manifest, QUARANTINE_FILE, RUNS_FILE, SAMPLES_FILE,
    SCHEMA_VERSION, is_dataset,
};
use crate::samples::Sample;
use crate::store::{self, EventsWriter, RunRow, SamplesWriter, Table};

/// Writes a dataset run by run (or sample by sample); memory holds one row group and a line per run.
///
/// Nothing is visible before [`DatasetWriter::finish`]: a folder is filled beside its final place and renamed then,
/// and removed when the writer is dropped before.
pub struct DatasetWriter {
    place: Place,
    tables: Option<Tables>,
    rows: Vec<RunRow>,
    flags: FlagCounts,
    n_events: u64,
    n_samples: u64,
    quarantine: Output,
}

enum Tables {
    Runs(EventsWriter<Output>, Output),
    Samples(SamplesWriter<Output>, Output),
}

enum Place {
    Memory,
    Folder {
        out: PathBuf,
        temporary: tempfile::TempDir,
    },
}

/// The folder inside the temporary one that becomes the dataset; it has the permissions of any new folder.
const INNER: &str = "dataset";

impl DatasetWriter {
    /// Begins a dataset that will stand at `out`: a new folder, an empty one, or a dataset, which is then replaced.
    ///
    /// # Errors
    /// [`TelemetryError::OutputExists`] when something else stands there, [`TelemetryError::Io`] when its parent
    /// cannot be written to.
    pub fn in_folder(out: &Path) -> Result<Self, TelemetryError> {
        check_replaceable(out)?;
        let fail = |error| TelemetryError::io(out.display().to_string(), "writing", error);
        // Folders above the output are made last as well.
        let above = out
            .ancestors()
            .skip(1)
            .find(|folder| folder.symlink_metadata().is_ok());
        let parent = above.unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new()
            .prefix(".policysim-")
            .tempdir_in(parent)
            .map_err(|error| fail(io::Error::from(error.kind())))?;
        fs::create_dir(temporary.path().join(INNER)).map_err(fail)?;
        Self::new(Place::Folder {
            out: out.to_owned(),
            temporary,
        })
    }

    /// Begins a dataset that stays in memory, compressed as on disk.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] when the tables cannot be begun.
    pub fn in_memory() -> Result<Self, TelemetryError> {
        Self::new(Place::Memory)
    }

    fn new(place: Place) -> Result<Self, TelemetryError> {
        let quarantine = place.create(QUARANTINE_FILE)?;
        let mut writer = Self {
            place,
            tables: None,
            rows: Vec::new(),
            flags: FlagCounts::default(),
            n_events: 0,
            n_samples: 0,
            quarantine,
        };
        writeln!(writer.quarantine, "file,line,byte_offset,reason")
            .map_err(|error| TelemetryError::io(QUARANTINE_FILE, "writing", error))?;
        Ok(writer)
    }

    /// Appends a run; `symbols` names what its events refer to.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] or [`TelemetryError::Io`] when it cannot be written.
    ///
    /// # Panics
    /// When samples were written before: a dataset holds one of the two.
    pub fn push(&mut self, run: &Run, symbols: &Symbols) -> Result<(), TelemetryError> {
        if self.tables.is_none() {
            let output = self.place.create(EVENTS_FILE)?;
            self.tables = Some(Tables::Runs(EventsWriter::new(output.clone())?, output));
        }
        let Some(Tables::Runs(events, _)) = &mut self.tables else {
            panic!("a dataset holds runs or samples, not both");
        };
        events.push(self.rows.len() as i64, &run.events, symbols)?;
        self.flags.add(&run.events);
        self.n_events += run.events.len() as u64;
        self.rows.push(RunRow {
            n_events: run.events.len() as u64,
            run: without_events(run),
        });
        Ok(())
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] or [`TelemetryError::Io`] when it cannot be written.
    ///
    /// # Panics
    /// When runs were written before: a dataset holds one of the two.
    pub fn push_sample(&mut self, sample: Sample) -> Result<(), TelemetryError> {
        if self.tables.is_none() {
            let output = self.place.create(SAMPLES_FILE)?;
            self.tables = Some(Tables::Samples(SamplesWriter::new(output.clone())?, output));
        }
        let Some(Tables::Samples(samples, _)) = &mut self.tables else {
            panic!("a dataset holds runs or samples, not both");
        };
        self.n_samples += 1;
        samples.push(sample)
    }

    /// Whether samples were written.
    pub(crate) const fn holds_samples(&self) -> bool {
        matches!(self.tables, Some(Tables::Samples(..)))
    }

    /// Whether runs were written.
    pub(crate) const fn holds_runs(&self) -> bool {
        matches!(self.tables, Some(Tables::Runs(..)))
    }

    /// The runs written so far, for linking them to each other.
    pub(crate) fn rows_mut(&mut self) -> &mut [RunRow] {
        &mut self.rows
    }

    /// Adds a line to `quarantine.csv`: where something unreadable is and why, never what it says.
    pub(crate) fn quarantine(
        &mut self,
        source: &str,
        line: u64,
        offset: u64,
        reason: &str,
    ) -> Result<(), TelemetryError> {
        writeln!(
            self.quarantine,
            "{},{line},{offset},{}",
            csv_field(source),
            csv_field(reason)
        )
        .map_err(|error| TelemetryError::io(QUARANTINE_FILE, "writing", error))
    }

    /// Completes the dataset. Of `manifest`, the writer fills in version, contents, digest, flags and the totals
    /// that it counts itself (`n_rows`, `n_runs_selected`, `n_events`, `n_samples`, `n_linked`).
    ///
    /// # Errors
    /// [`TelemetryError::Store`] or [`TelemetryError::Io`] when it cannot be written or take its place.
    pub fn finish(mut self, mut manifest: Manifest) -> Result<Dataset, TelemetryError> {
        let mut stored = Stored::default();
        let mut digests = Vec::new();
        match self.tables.take() {
            Some(Tables::Samples(writer, output)) => {
                writer.finish()?;
                digests.push(output.finish(SAMPLES_FILE)?);
                stored.samples = Some(self.place.table(SAMPLES_FILE, &output));
                manifest.contents = Contents::Samples;
            }
            tables => {
                let (writer, events) = if let Some(Tables::Runs(writer, output)) = tables {
                    (writer, output)
                } else {
                    let output = self.place.create(EVENTS_FILE)?;
                    (EventsWriter::new(output.clone())?, output)
                };
                let ends = writer.finish()?;
                let runs = self.place.create(RUNS_FILE)?;
                store::write_runs(runs.clone(), &self.rows, &ends)?;
                digests.push(runs.finish(RUNS_FILE)?);
                digests.push(events.finish(EVENTS_FILE)?);
                stored.runs = Some(self.place.table(RUNS_FILE, &runs));
                stored.events = Some(self.place.table(EVENTS_FILE, &events));
                manifest.contents = Contents::Runs;
            }
        }
        self.quarantine.finish(QUARANTINE_FILE)?;
        manifest.schema_version = SCHEMA_VERSION;
        env!("CARGO_PKG_VERSION").clone_into(&mut manifest.policysim_version);
        manifest.digest = combined(&digests);
        manifest.flags = self.flags.by_name();
        let totals = &mut manifest.totals;
        totals.n_rows = self.rows.len() as u64;
        totals.n_runs_selected = self
            .rows
            .iter()
            .filter(|row| row.run.status == RunStatus::Run)
            .count() as u64;
        totals.n_events = self.n_events;
        totals.n_samples = self.n_samples;
        totals.n_linked = self
            .rows
            .iter()
            .filter(|row| !row.run.parent.is_empty())
            .count() as u64;
        let mut output = self.place.create(MANIFEST_FILE)?;
        output
            .write_all(&manifest.to_bytes()?)
            .map_err(|error| TelemetryError::io(MANIFEST_FILE, "writing", error))?;
        output.finish(MANIFEST_FILE)?;
        match self.place {
            Place::Memory => Dataset::new(manifest, stored),
            Place::Folder { out, temporary } => {
                put_in_place(&out, &temporary)?;
                Dataset::open(&out)
            }
        }
    }
}

impl Place {
    fn create(&self, file: &'static str) -> Result<Output, TelemetryError> {
        let sink = match self {
            Self::Memory => Sink::Memory(Vec::new()),
            Self::Folder { temporary, .. } => {
                let path = temporary.path().join(INNER).join(file);
                let file = File::create(path)
                    .map_err(|error| TelemetryError::io(file, "writing", error))?;
                Sink::File(BufWriter::with_capacity(1 << 16, file))
            }
        };
        Ok(Output(Arc::new(Mutex::new(State {
            sink,
            hash: Box::new(Xxh3::new()),
        }))))
    }

    fn table(&self, file: &str, output: &Output) -> Table {
        match self {
            Self::Memory => Table::Bytes(output.take_bytes()),
            Self::Folder { out, .. } => Table::File(out.join(file)),
        }
    }
}

/// One file being written. The table writers own a handle and never give it back, hence the sharing.
#[derive(Clone)]
struct Output(Arc<Mutex<State>>);

struct State {
    sink: Sink,
    hash: Box<Xxh3>,
}

enum Sink {
    File(BufWriter<File>),
    Memory(Vec<u8>),
}

impl Output {
    /// Writes out what is buffered and gives the digest of all that was written.
    fn finish(&self, file: &'static str) -> Result<u64, TelemetryError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Sink::File(file_writer) = &mut state.sink {
            file_writer
                .flush()
                .map_err(|error| TelemetryError::io(file, "writing", error))?;
        }
        Ok(state.hash.digest())
    }

    fn take_bytes(&self) -> Arc<[u8]> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut state.sink {
            Sink::Memory(bytes) => Arc::from(std::mem::take(bytes)),
            Sink::File(_) => Arc::from(Vec::new()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.hash.update(bytes);
        match &mut state.sink {
            Sink::File(file) => file.write_all(bytes)?,
            Sink::Memory(memory) => memory.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What may be replaced: nothing, an empty folder, a dataset without anything else beside its files.
fn check_replaceable(out: &Path) -> Result<(), TelemetryError> {
    let exists = out.symlink_metadata().is_ok();
    let empty = || fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
    if !exists || (is_dataset(out) && holds_nothing_else(out)) || empty() {
        return Ok(());
    }
    Err(TelemetryError::OutputExists {
        path: out.to_owned(),
    })
}

/// Whether all that lies in a dataset's folder was written with it, so that replacing it costs nobody anything.
fn holds_nothing_else(dataset: &Path) -> bool {
    let own = [
        MANIFEST_FILE,
        RUNS_FILE,
        EVENTS_FILE,
        SAMPLES_FILE,
        QUARANTINE_FILE,
    ];
    fs::read_dir(dataset).is_ok_and(|mut entries| {
        entries
            .all(|entry| entry.is_ok_and(|entry| own.iter().any(|file| entry.file_name() == *file)))
    })
}

/// Renames the finished folder to its place; a dataset that stood there is set aside first and removed last.
fn put_in_place(out: &Path, temporary: &tempfile::TempDir) -> Result<(), TelemetryError> {
    let fail = |error| TelemetryError::io(out.display().to_string(), "writing", error);
    check_replaceable(out)?;
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(fail)?;
    }
    let aside = temporary.path().join("replaced");
    let replaced = out.symlink_metadata().is_ok();
    if replaced {
        fs::rename(out, &aside).map_err(fail)?;
    }
    fs::rename(temporary.path().join(INNER), out).map_err(|error| {
        if replaced {
            // Best effort: the first error is the one to report.
            let _ = fs::rename(&aside, out);
        }
        fail(error)
    })
}

fn without_events(run: &Run) -> Run {
    Run {
        events: Vec::new(),
        name: Arc::clone(&run.name),
        source: Arc::clone(&run.source),
        session: Arc::clone(&run.session),
        parent: Arc::clone(&run.parent),
        harness: Arc::clone(&run.harness),
        model: Arc::clone(&run.model),
        role: Arc::clone(&run.role),
        ..*run
    }
}

/// The digest of several tables together.
pub(crate) fn combined(digests: &[u64]) -> String {
    let mut hash = Xxh3::new();
    for digest in digests {
        hash.update(&digest.to_be_bytes());
    }
    hex(hash.digest())
}

/// 16 hex digits.
pub(crate) fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

/// A CSV field, quoted where it has to be. A name that a spreadsheet would take for a formula gets a `'` in front.
fn csv_field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
