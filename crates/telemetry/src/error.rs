//! What can go wrong between an argument on the command line and a dataset.

use std::io;
use std::path::PathBuf;

/// Why an import or a dataset failed. Every message is one line, fit for the user.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// No path was given.
    #[error("nothing to import: give a log file, a folder of logs, or the word `local`")]
    NoInput,
    /// A path does not exist.
    #[error("'{}': no such file or folder", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// A folder holds no file at all.
    #[error("'{}': the folder holds no file", path.display())]
    EmptyFolder {
        /// The folder as given.
        path: PathBuf,
    },
    /// No agent keeps logs on this machine.
    #[error("local: no logs found; looked for {looked}")]
    NothingLocal {
        /// Agents and folders.
        looked: String,
    },
    /// A file in which no format was recognised, given by name or under `strict`.
    #[error(
        "'{source_name}': not a log that policysim reads: found {found}; tried {tried} (a format can be forced: --format of import, --input-format elsewhere)"
    )]
    Unrecognised {
        /// The source's name.
        source_name: String,
        /// What the file looks like.
        found: String,
        /// The formats tried.
        tried: String,
    },
    /// Of all files walked none was recognised.
    #[error(
        "nothing to import: {files} file(s) read, none recognised; the first, '{source_name}', holds {found}; tried {tried}"
    )]
    NothingRecognised {
        /// How many files were looked at.
        files: usize,
        /// The first of them.
        source_name: String,
        /// What it looks like.
        found: String,
        /// The formats tried.
        tried: String,
    },
    /// Reading or writing failed.
    #[error("'{path}': {action} failed: {error}")]
    Io {
        /// What was being read or written: a source's name or a path as given.
        path: String,
        /// What was tried, as a verb.
        action: &'static str,
        /// The system's reason; part of the message, hence no source.
        error: io::Error,
    },
    /// The output exists and is no dataset, or not only one, so it is not replaced.
    #[error("'{}': exists and is not a dataset, or holds other files beside it; give a new folder or an existing dataset", path.display())]
    OutputExists {
        /// The output as given.
        path: PathBuf,
    },
    /// A dataset stands where logs are expected.
    #[error("'{}': is a dataset already; give the logs it was made from, or use it as it is", path.display())]
    AlreadyDataset {
        /// The folder as given.
        path: PathBuf,
    },
    /// A folder that should be a dataset is none.
    #[error("'{path}': not a dataset: {reason}")]
    NotADataset {
        /// The folder as given, or what stands for it.
        path: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// The dataset was written by a later version.
    #[error(
        "'{path}': dataset schema version {found} is newer than {supported}, the newest that this version reads; update policysim or import the logs again"
    )]
    NewerSchema {
        /// The dataset as given.
        path: String,
        /// Its schema version.
        found: u64,
        /// The newest version understood here.
        supported: u64,
    },
    /// Samples and logs (or event tables) were given together.
    #[error("'{source_name}' holds samples, '{other}' holds runs: import them into two datasets")]
    MixedInput {
        /// The samples.
        source_name: String,
        /// The other source.
        other: String,
    },
    /// A source that holds something that cannot be read on, under `strict` or by name.
    #[error("'{source_name}', line {line}: {reason}")]
    Malformed {
        /// The source's name.
        source_name: String,
        /// Counted from 1.
        line: u64,
        /// What is wrong, without content.
        reason: String,
    },
    /// The cancel flag was raised.
    #[error("interrupted; nothing was written")]
    Cancelled,
    /// A stored table does not read or write.
    #[error("{table}: {reason}")]
    Store {
        /// Which table.
        table: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl TelemetryError {
    /// An I/O error on `path` while doing `action` (a verb such as "reading").
    pub(crate) fn io(path: impl Into<String>, action: &'static str, error: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            action,
            error,
        }
    }

    /// A failure of a stored table.
    pub(crate) fn store(table: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Store {
            table,
            reason: format!("{reason}").replace('\n', " "),
        }
    }
}
