//! From the arguments of a command to the files to read, each with the name it goes by.
//!
//! A source is named by its path below the argument that it was found under, with `/` between the parts; a file
//! given by name goes by its file name. Where two arguments hold the same name, the sources of both get the last
//! part of their argument in front (`a/log.jsonl`, `b/log.jsonl`), and where these are equal too, `~2`, `~3`, … in
//! the order of the arguments. The files are read in the order of their names, so that the order of arguments
//! matters in that last case only. A file that is reached twice is read once. A dataset met on the way is left out.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use walkdir::WalkDir;

use crate::error::TelemetryError;
use crate::import::unsteered;
use crate::manifest::is_dataset;

/// One file to read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Found {
    /// Its name in the dataset.
    pub(crate) name: String,
    /// Where it lies; never stored.
    pub(crate) path: PathBuf,
    /// Whether the file itself was an argument.
    pub(crate) by_name: bool,
    /// Its size on disk.
    pub(crate) n_bytes: u64,
    /// What of it is read.
    pub(crate) origin: Origin,
}

/// What is read of a file that was found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Origin {
    /// Its content.
    #[default]
    File,
    /// The session that it heads in `OpenCode`'s storage.
    OpencodeSession,
}

/// Finds the files behind `paths`, in the order of their names.
pub(crate) fn walk(paths: &[PathBuf]) -> Result<Vec<Found>, TelemetryError> {
    if paths.is_empty() {
        return Err(TelemetryError::NoInput);
    }
    let mut seen = HashSet::new();
    let mut arguments = Vec::new();
    for path in paths {
        let mut files = walk_argument(path)?;
        if files.is_empty() {
            return Err(TelemetryError::EmptyFolder { path: path.clone() });
        }
        files.retain(|file| {
            seen.insert(fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone()))
        });
        arguments.push(Argument {
            label: label(path),
            files,
        });
    }
    disambiguate(&mut arguments);
    let mut found: Vec<Found> = arguments
        .into_iter()
        .flat_map(|argument| argument.files)
        .collect();
    order(&mut found);
    Ok(found)
}

/// Sorts by name and makes the names unique.
pub(crate) fn order(found: &mut [Found]) {
    found.sort_by(|a, b| a.name.cmp(&b.name));
    number_equals(found);
}

/// Names that are still equal (they differed in bytes that a name cannot show) are numbered.
fn number_equals(found: &mut [Found]) {
    let mut taken: HashSet<String> = found.iter().map(|file| file.name.clone()).collect();
    let most = found.len() + 1;
    let mut plain = String::new();
    for file in found {
        if file.name != plain {
            plain.clone_from(&file.name);
            continue;
        }
        let free = (2..=most)
            .map(|n| format!("{plain}~{n}"))
            .find(|name| !taken.contains(name));
        if let Some(name) = free {
            taken.insert(name.clone());
            file.name = name;
        }
    }
}

/// Finds the files below one folder or the one file, named relative to it.
pub(crate) fn walk_argument(path: &Path) -> Result<Vec<Found>, TelemetryError> {
    let meta = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => TelemetryError::NotFound {
            path: path.to_owned(),
        },
        _ => TelemetryError::io(path.display().to_string(), "opening", error),
    })?;
    if !meta.is_dir() {
        let name = path.file_name().map_or_else(
            || "file".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        return Ok(vec![Found {
            name: unsteered(&name),
            path: path.to_owned(),
            by_name: true,
            n_bytes: meta.len(),
            origin: Origin::File,
        }]);
    }
    if is_dataset(path) {
        return Err(TelemetryError::AlreadyDataset {
            path: path.to_owned(),
        });
    }
    let mut files = Vec::new();
    // Links are followed; walkdir reports a loop as an error at the link, which is then no file to read.
    let walk = WalkDir::new(path)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter();
    for entry in walk.filter_entry(|entry| entry.depth() == 0 || !is_dataset(entry.path())) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.loop_ancestor().is_some() => continue,
            Err(error) if error.depth() == 0 => {
                let reason = error
                    .into_io_error()
                    .unwrap_or_else(|| std::io::Error::other("unreadable"));
                return Err(TelemetryError::io(
                    path.display().to_string(),
                    "reading",
                    reason,
                ));
            }
            // A dangling link or a folder without permission costs itself only.
            Err(_) => continue,
        };
        if !entry.file_type().is_file() {
            continue;
        }
        files.push(Found {
            name: relative_name(path, entry.path()),
            path: entry.path().to_owned(),
            by_name: false,
            n_bytes: entry.metadata().map_or(0, |meta| meta.len()),
            origin: Origin::File,
        });
    }
    Ok(files)
}

struct Argument {
    label: String,
    files: Vec<Found>,
}

/// Prefixes the sources of all arguments that share a name with another one.
fn disambiguate(arguments: &mut [Argument]) {
    let mut owners: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (index, argument) in arguments.iter().enumerate() {
        for file in &argument.files {
            owners.entry(&file.name).or_default().insert(index);
        }
    }
    let clashing: BTreeSet<usize> = owners
        .into_values()
        .filter(|owners| owners.len() > 1)
        .flatten()
        .collect();
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    for index in clashing {
        let argument = &mut arguments[index];
        let times = used.entry(argument.label.clone()).or_insert(0);
        *times += 1;
        let prefix = match *times {
            1 => argument.label.clone(),
            n => format!("{}~{n}", argument.label),
        };
        for file in &mut argument.files {
            file.name = format!("{prefix}/{}", file.name);
        }
    }
}

/// The last part of an argument: a folder's own name, the folder's name of a file.
fn label(path: &Path) -> String {
    let folder = if path.is_dir() {
        Some(path)
    } else {
        path.parent()
    };
    let resolved = folder.and_then(|folder| fs::canonicalize(folder).ok());
    resolved
        .as_deref()
        .or(folder)
        .and_then(Path::file_name)
        .map_or_else(
            || "input".to_owned(),
            |name| unsteered(&name.to_string_lossy()),
        )
}

/// The path of `file` below `root` with `/` between its parts; no part is `..` or absolute.
fn relative_name(root: &Path, file: &Path) -> String {
    let below = file.strip_prefix(root).unwrap_or(file);
    let parts: Vec<String> = below
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(unsteered(&part.to_string_lossy())),
            _ => None,
        })
        .collect();
    parts.join("/")
}
