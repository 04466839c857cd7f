//! A dataset open for reading: from a folder, from logs directly, or from bytes built into the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use policysim_sim::run::{Run, RunEvent, Symbols};

use crate::error::TelemetryError;
use crate::manifest::{Contents, EVENTS_FILE, MANIFEST_FILE, Manifest, RUNS_FILE, SAMPLES_FILE};
use crate::pipeline::Inputs;
use crate::samples::Sample;
use crate::store::{self, EventsReader, RunRow, Table};
use crate::writer::combined;

/// Runs (or samples) with the manifest that says where they come from. A value: it never changes.
#[derive(Debug)]
pub struct Dataset {
    manifest: Manifest,
    rows: Vec<RunRow>,
    events: Option<EventsReader>,
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
        let rows = stored
            .runs
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), store::read_runs)?;
        let events = stored.events.as_ref().map(EventsReader::open).transpose()?;
        let stated: u64 = rows
            .iter()
            .map(|row| row.n_events)
            .fold(0, u64::saturating_add);
        let found = events.as_ref().map_or(0, EventsReader::n_rows) as u64;
        if stated != found {
            return Err(TelemetryError::Store {
                table: EVENTS_FILE,
                reason: format!("holds {found} events, {RUNS_FILE} speaks of {stated}"),
            });
        }
        let symbols = events
            .as_ref()
            .map_or_else(|| Ok(Symbols::default()), EventsReader::names)?;
        Ok(Self {
            manifest,
            rows,
            events,
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

    /// The runs without their events, in stored order: enough for counts and tables per run.
    pub fn run_rows(&self) -> impl ExactSizeIterator<Item = &Run> {
        self.rows.iter().map(|row| &row.run)
    }

    /// The runs with their events, in stored order, read one row group at a time.
    ///
    /// An item is an error when the stored events do not read; the iteration ends there.
    pub fn runs(&self) -> Runs<'_> {
        Runs {
            dataset: self,
            next_row: 0,
            next_group: 0,
            symbols: self.symbols.clone(),
            pending: Vec::new().into_iter(),
            failed: false,
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

/// Iterator over the runs of a [`Dataset`].
#[derive(Debug)]
pub struct Runs<'a> {
    dataset: &'a Dataset,
    next_row: usize,
    next_group: usize,
    symbols: Symbols,
    pending: std::vec::IntoIter<(i64, RunEvent)>,
    failed: bool,
}

impl Runs<'_> {
    fn read_run(&mut self, row: usize) -> Result<Run, TelemetryError> {
        let RunRow { run, n_events } = &self.dataset.rows[row];
        let wanted = usize::try_from(*n_events).unwrap_or(usize::MAX);
        let mut events = Vec::with_capacity(wanted);
        while events.len() < wanted {
            match self.pending.next() {
                Some((run_id, event)) if run_id == row as i64 => events.push(event),
                Some((run_id, _)) => {
                    return Err(TelemetryError::Store {
                        table: EVENTS_FILE,
                        reason: format!(
                            "an event of run {run_id} stands where run {row} has its own"
                        ),
                    });
                }
                None => self.read_group()?,
            }
        }
        Ok(Run {
            events,
            ..run.clone()
        })
    }

    fn read_group(&mut self) -> Result<(), TelemetryError> {
        let reader = self
            .dataset
            .events
            .as_ref()
            .filter(|reader| self.next_group < reader.len());
        let Some(reader) = reader else {
            return Err(TelemetryError::Store {
                table: EVENTS_FILE,
                reason: "ends too early".to_owned(),
            });
        };
        self.pending = reader.read(self.next_group, &mut self.symbols)?.into_iter();
        self.next_group += 1;
        Ok(())
    }
}

impl Iterator for Runs<'_> {
    type Item = Result<Run, TelemetryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.next_row >= self.dataset.rows.len() {
            return None;
        }
        let run = self.read_run(self.next_row);
        self.next_row += 1;
        self.failed = run.is_err();
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.dataset.rows.len() - self.next_row;
        (if self.failed { 0 } else { left.min(1) }, Some(left))
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
