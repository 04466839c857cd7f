//! Files that a command is given: read within bounds, and never written over by what the command makes of them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use policysim_report::units::bytes;

/// The longest policy, rules or model, in bytes: a model of measured samples is the largest of them.
const LONGEST: u64 = 64 << 20;

static GIVEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers that the command reads `path`, so that nothing is written there.
pub(crate) fn keep(path: &Path) {
    if let (Ok(path), Ok(mut given)) = (fs::canonicalize(path), GIVEN.lock())
        && path.is_file()
    {
        given.push(path);
    }
}

/// Whether the command reads `path`, under whatever name.
pub(crate) fn is_kept(path: &Path) -> bool {
    match (fs::canonicalize(path), GIVEN.lock()) {
        (Ok(path), Ok(given)) => given.contains(&path),
        _ => false,
    }
}

/// Reads a text, of a device or a pipe no more than the longest one has, and keeps it from being written over.
///
/// # Errors
/// When it cannot be read, is no UTF-8 or is too long.
pub(crate) fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    keep(path);
    let mut text = String::new();
    File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        let reason = format!("longer than {}, expected a text", bytes(LONGEST));
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(text)
}
