//! `manifest.json`: what a dataset holds, what it was made from, and what became of every line.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::TelemetryError;

/// The version of the dataset's layout that is written here, and the newest that is read.
pub const SCHEMA_VERSION: u64 = 1;

/// File names of a dataset.
pub(crate) const MANIFEST_FILE: &str = "manifest.json";
pub(crate) const RUNS_FILE: &str = "runs.parquet";
pub(crate) const EVENTS_FILE: &str = "events.parquet";
pub(crate) const SAMPLES_FILE: &str = "samples.parquet";
pub(crate) const QUARANTINE_FILE: &str = "quarantine.csv";

/// Whether `path` is a folder that holds a dataset.
pub fn is_dataset(path: &Path) -> bool {
    path.join(MANIFEST_FILE).is_file()
        && (path.join(RUNS_FILE).is_file() || path.join(SAMPLES_FILE).is_file())
}

/// What the rows of a dataset are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Runs with their events.
    #[default]
    Runs,
    /// Durations without an order.
    Samples,
}

/// The content of `manifest.json`. Keys are only ever added within a schema version.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u64,
    /// Version of the policysim that wrote it.
    pub policysim_version: String,
    /// What the rows are.
    pub contents: Contents,
    /// Digest of the tables' bytes: equal digests, equal data. 16 hex digits (XXH3, 64 bits).
    pub digest: String,
    /// Options of the import that change what the tables hold.
    #[serde(default)]
    pub options: Options,
    /// Sums over the sources, and what of it the tables hold.
    #[serde(default)]
    pub totals: Totals,
    /// How many events carry which quality mark; marks that none carries are left out.
    #[serde(default)]
    pub flags: BTreeMap<String, u64>,
    /// Things a reader should know, one sentence each, without any content of the logs.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Every source, by name.
    #[serde(default)]
    pub sources: Vec<SourceEntry>,
    /// Where it comes from when nothing was imported: the generator, its seed and model (synthetic runs).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origin: BTreeMap<String, String>,
}

/// Options of an import that change its result.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Options {
    /// The format that every source was read as, if it was forced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Source names were replaced by hashes.
    pub hash_sources: bool,
    /// Records found in several sources were counted once.
    pub dedupe: bool,
    /// Only runs started at or after this instant, ms since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// Only runs started before this instant, ms since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// When the observation of the logs ended, ms since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_until_ms: Option<i64>,
}

/// Sums over the sources of a dataset.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Totals {
    /// Sources, of which some may hold nothing.
    pub n_sources: u64,
    /// Bytes of their content, decompressed.
    pub n_bytes: u64,
    /// Lines of their content.
    pub n_lines: u64,
    /// Runs measured in the sources (rows of `DEFINITIONS.md` section 5).
    pub n_runs: u64,
    /// Rows of `runs.parquet`, unanswered prompts and waits outside any run included.
    pub n_rows: u64,
    /// Rows of `runs.parquet` that are runs: less than `n_runs` when a window selects.
    pub n_runs_selected: u64,
    /// Rows of `events.parquet`.
    pub n_events: u64,
    /// Rows of `samples.parquet`.
    pub n_samples: u64,
    /// Runs linked to the run that delegated them.
    pub n_linked: u64,
    /// What became of each line; adds up to `n_lines`.
    pub lines: Lines,
}

/// What became of the lines of a source.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Lines {
    /// Read.
    pub imported: u64,
    /// Known bookkeeping, or blank.
    pub ignored: u64,
    /// Records that were there before.
    pub duplicate: u64,
    /// Types that nobody knows, and lines of files in which nothing is recognised.
    pub unrecognised: u64,
    /// Not readable: listed in `quarantine.csv`.
    pub malformed: u64,
    /// Would have counted, but without a readable stamp.
    pub undated: u64,
}

impl Lines {
    /// All lines.
    pub const fn total(&self) -> u64 {
        self.imported
            + self.ignored
            + self.duplicate
            + self.unrecognised
            + self.malformed
            + self.undated
    }

    /// Adds those of another source.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.imported += other.imported;
        self.ignored += other.ignored;
        self.duplicate += other.duplicate;
        self.unrecognised += other.unrecognised;
        self.malformed += other.malformed;
        self.undated += other.undated;
    }
}

/// What became of a source.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// Read to its end.
    #[default]
    Imported,
    /// It has no content.
    Empty,
    /// No format was recognised; nothing was read from it.
    Unrecognised,
    /// It could not be read on (a damaged archive, a failing disk); what came before counts.
    Unreadable,
}

/// One source of a dataset.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SourceEntry {
    /// Its name: the path below what was imported, or the hash of that.
    pub source: String,
    /// The format it was read as; absent when none was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// What became of it.
    pub status: SourceStatus,
    /// What was found instead of a log, or why it could not be read on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Digest of its decompressed content: 16 hex digits (XXH3, 64 bits).
    pub digest: String,
    /// Size of its decompressed content.
    pub n_bytes: u64,
    /// What became of each line; adds up to `n_lines`.
    #[serde(default)]
    pub lines: Lines,
    /// Version of the client that wrote it, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Types of records that nobody knows, with their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_types: BTreeMap<String, u64>,
    /// The accounting of `DEFINITIONS.md` by its names (`n_lines`, `n_bad_lines`, `n_runs`, `sum_tool_ms`, …).
    #[serde(flatten)]
    pub counts: BTreeMap<String, u64>,
}

impl SourceEntry {
    /// The field of `DEFINITIONS.md` of that name; 0 where the source has none.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

impl Manifest {
    /// Reads a manifest; `path` stands in the error messages.
    ///
    /// # Errors
    /// [`TelemetryError::NewerSchema`] when a later version wrote it, [`TelemetryError::NotADataset`] when it is
    /// no manifest.
    pub fn parse(bytes: &[u8], path: &str) -> Result<Self, TelemetryError> {
        let not_a_dataset = |reason: String| TelemetryError::NotADataset {
            path: path.to_owned(),
            reason,
        };
        let value: serde_json::Value = serde_json::from_slice(bytes)
            .map_err(|error| not_a_dataset(format!("{MANIFEST_FILE} is no JSON: {error}")))?;
        let found = value
            .get("schema_version")
            .and_then(serde_json::Value::as_u64)
            .ok_or_else(|| not_a_dataset(format!("{MANIFEST_FILE} has no schema_version")))?;
        if found > SCHEMA_VERSION {
            return Err(TelemetryError::NewerSchema {
                path: path.to_owned(),
                found,
                supported: SCHEMA_VERSION,
            });
        }
        serde_json::from_value(value)
            .map_err(|error| not_a_dataset(format!("{MANIFEST_FILE} does not read: {error}")))
    }

    /// The bytes of `manifest.json`: indented JSON with a final line feed.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, TelemetryError> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| TelemetryError::store(MANIFEST_FILE, error))?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
