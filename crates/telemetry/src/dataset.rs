//! A dataset open for reading: from a folder, from logs directly, or from bytes built into the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use policysim_sim::run::{Run, Symbols};
use policysim_sim::scan::{Batch, Scan};

use crate::error::TelemetryError;
use crate::manifest::{Contents, EVENTS_FILE, MANIFEST_FILE, Manifest, RUNS_FILE, SAMPLES_FILE};
use crate::pipeline::Inputs;
use crate::samples::Sample;
use crate::store::{self, EventsReader, RunsReader, Table};
use crate::writer::combined;

/// Runs (or samples) with the manifest that says where they come from. A value: it never changes.
#[derive(Debug)]
pub struct Dataset {
    manifest: Manifest,
    runs: Option<(RunsReader, EventsReader)>,
    samples: Option<Table>,
    symbols: Symbols,
}

/// The tables behind a dataset.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) runs: Option<Table>,
    pub(crate) events: Option<Table>,
    pub(crate) samples: Option<Table>,
}

impl Stored {
    /// Compares the tables' bytes with the manifest's digest; `shown` is what messages call the dataset.
    fn verify(&self, digest: &str, shown: &str) -> Result<(), TelemetryError> {
        let tables = [
            (SAMPLES_FILE, &self.samples),
            (RUNS_FILE, &self.runs),
            (EVENTS_FILE, &self.events),
        ];
        let mut digests = Vec::new();
        for (file, table) in tables {
            if let Some(table) = table {
                digests.push(table.digest().map_err(|error| {
                    TelemetryError::io(format!("{shown}/{file}"), "reading", error)
                })?);
            }
        }
        if combined(&digests) == digest {
            return Ok(());
        }
        Err(TelemetryError::NotADataset {
            path: shown.to_owned(),
            reason: format!(
                "its tables are not those that {MANIFEST_FILE} speaks of: damaged or changed"
            ),
        })
    }
}

impl Dataset {
    /// Opens the dataset in `folder`, whose tables must be those that the manifest speaks of. Runs without their
    /// events are read at once, events when asked for.
    ///
    /// # Errors
    /// [`TelemetryError::NotADataset`], [`TelemetryError::NewerSchema`], or [`TelemetryError::Store`] when a table
    /// does not read.
    pub fn open(folder: &Path) -> Result<Self, TelemetryError> {
        let shown = folder.display().to_string();
        if folder.symlink_metadata().is_err() {
            return Err(TelemetryError::NotFound {
                path: folder.to_owned(),
            });
        }
        let bytes =
            fs::read(folder.join(MANIFEST_FILE)).map_err(|_| TelemetryError::NotADataset {
                path: shown.clone(),
                reason: format!("it holds no {MANIFEST_FILE}"),
            })?;
        let manifest = Manifest::parse(&bytes, &shown)?;
        let table = |file: &str| Some(Table::File(folder.join(file)));
        let stored = match manifest.contents {
            Contents::Runs => Stored {
                runs: table(RUNS_FILE),
                events: table(EVENTS_FILE),
                samples: None,
            },
            Contents::Samples => Stored {
                samples: table(SAMPLES_FILE),
                ..Stored::default()
            },
        };
        stored.verify(&manifest.digest, &shown)?;
        Self::new(manifest, stored)
    }

    /// Opens a dataset of runs from the bytes of its files, such as one built into the program.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn from_bytes(manifest: &[u8], runs: &[u8], events: &[u8]) -> Result<Self, TelemetryError> {
        let manifest = Manifest::parse(manifest, "built-in dataset")?;
        let stored = Stored {
            runs: Some(Table::Bytes(Arc::from(runs))),
            events: Some(Table::Bytes(Arc::from(events))),
            samples: None,
        };
        stored.verify(&manifest.digest, "built-in dataset")?;
        Self::new(manifest, stored)
    }

    pub(crate) fn new(manifest: Manifest, stored: Stored) -> Result<Self, TelemetryError> {
        let runs = match (&stored.runs, &stored.events) {
            (Some(runs), Some(events)) => {
                let events = EventsReader::open(events)?;
                Some((RunsReader::open(runs, &events)?, events))
            }
            _ => None,
        };
        let symbols = runs
            .as_ref()
            .map_or_else(|| Ok(Symbols::default()), |(_, events)| events.names())?;
        Ok(Self {
            manifest,
            runs,
            samples: stored.samples,
            symbols,
        })
    }

    /// What the dataset holds and where it comes from.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The names that the events of [`Dataset::runs`] refer to.
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// How many runs there are, unanswered prompts and waits outside any run included.
    pub fn n_runs(&self) -> usize {
        self.runs.as_ref().map_or(0, |(runs, _)| runs.n_rows())
    }

    /// The runs without their events, in stored order: enough for counts and tables per run.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] when the stored runs do not read.
    pub fn run_rows(&self) -> Result<Vec<Run>, TelemetryError> {
        let mut rows = Vec::with_capacity(self.n_runs());
        if let Some((runs, _)) = &self.runs {
            for batch in 0..runs.len() {
                rows.extend(runs.heads(batch)?.into_iter().map(|row| row.run));
            }
        }
        Ok(rows)
    }

    /// Shows `look` every run without its events, in stored order, one row group at a time.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] when the stored runs do not read.
    pub fn each_head(&self, mut look: impl FnMut(&Run)) -> Result<(), TelemetryError> {
        if let Some((runs, _)) = &self.runs {
            for batch in 0..runs.len() {
                runs.heads(batch)?.iter().for_each(|row| look(&row.run));
            }
        }
        Ok(())
    }

    /// The runs with their events, in stored order, read one row group at a time.
    ///
    /// An item is an error when the stored events do not read; the iteration ends there.
    pub fn runs(&self) -> Runs<'_> {
        Runs {
            dataset: self,
            batch: Batch::default(),
            next_run: 0,
            next_batch: 0,
            left: self.n_runs(),
        }
    }

    /// All runs with their events, in stored order; [`Dataset::symbols`] names what they refer to.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] when the stored events do not read.
    pub fn fleet(&self) -> Result<Vec<Run>, TelemetryError> {
        self.runs().collect()
    }

    /// The samples of a dataset of samples; none for one of runs.
    ///
    /// # Errors
    /// [`TelemetryError::Store`] when the stored samples do not read.
    pub fn samples(&self) -> Result<Vec<Sample>, TelemetryError> {
        self.samples
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), store::read_samples)
    }
}

/// A batch is a row group: decoded into the reader's memory, so that what is held depends neither on the number of
/// events nor on that of runs.
impl Scan for Dataset {
    type Error = TelemetryError;

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn batches(&self) -> usize {
        self.runs.as_ref().map_or(0, |(runs, _)| runs.len())
    }

    fn read<'a>(
        &'a self,
        index: usize,
        scratch: &'a mut Batch,
    ) -> Result<&'a Batch, TelemetryError> {
        scratch.clear();
        if let Some((runs, events)) = &self.runs {
            runs.read(index, events, &self.symbols, scratch)?;
        }
        Ok(scratch)
    }
}

/// Iterator over the runs of a [`Dataset`].
#[derive(Debug)]
pub struct Runs<'a> {
    dataset: &'a Dataset,
    batch: Batch,
    next_run: usize,
    next_batch: usize,
    left: usize,
}

impl Iterator for Runs<'_> {
    type Item = Result<Run, TelemetryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(run) = self.batch.runs().nth(self.next_run) {
                self.next_run += 1;
                self.left = self.left.saturating_sub(1);
                return Some(Ok(run.to_run()));
            }
            if self.next_batch >= self.dataset.batches() {
                return None;
            }
            self.next_run = 0;
            let read = self.dataset.read(self.next_batch, &mut self.batch);
            self.next_batch += 1;
            if let Err(error) = read {
                self.next_batch = usize::MAX;
                self.batch.clear();
                return Some(Err(error));
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// What the DATASET arguments of a command stand for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Arguments {
    /// One dataset on disk.
    Dataset(PathBuf),
    /// Logs, to be imported into memory.
    Logs(Inputs),
}

impl Arguments {
    /// Tells which it is: the one word `local` where no such file lies, a single folder that holds a dataset, or logs.
    ///
    /// # Errors
    /// [`TelemetryError::NoInput`] without any argument.
    pub fn tell(paths: &[PathBuf]) -> Result<Self, TelemetryError> {
        match paths {
            [] => Err(TelemetryError::NoInput),
            [one] if one.as_os_str() == "local" && !one.exists() => Ok(Self::Logs(Inputs::Local)),
            [one] if crate::manifest::is_dataset(one) || has_manifest(one) => {
                Ok(Self::Dataset(one.clone()))
            }
            _ => Ok(Self::Logs(Inputs::Paths(paths.to_vec()))),
        }
    }
}

/// Whether the folder's `manifest.json` is that of a dataset, of whatever version: other programs use that name too.
fn has_manifest(folder: &Path) -> bool {
    let Ok(bytes) = fs::read(folder.join(MANIFEST_FILE)) else {
        return false;
    };
    let manifest: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
    manifest.is_some_and(|manifest| {
        manifest.get("schema_version").is_some() && manifest.get("policysim_version").is_some()
    })
}
