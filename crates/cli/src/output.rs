//! Where results and messages go: data to stdout, the rest to stderr.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use policysim_report::table::one_line;

use crate::exit::ExitStatus;
use crate::given;

mod set;

pub(crate) use set::{FileSet, check_folder};

/// Writes a result to stdout. A reader that has gone away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// A line for the person in front of the terminal, unless he asked for silence.
pub(crate) fn say(quiet: bool, line: &str) {
    if !quiet {
        tell(line);
    }
}

/// Writes a line to stderr; where nobody can read it, nothing is lost.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", one_line(line));
}

/// Tells why a command failed, in one line.
pub(crate) fn failed(error: &anyhow::Error) -> ExitStatus {
    if error.chain().any(is_broken_pipe) {
        return ExitStatus::Success;
    }
    tell(&format!("error: {error:#}").replace(['\n', '\r'], " "));
    ExitStatus::Error
}

/// Tells that the program contradicts itself.
pub(crate) fn contradicted(error: &dyn std::fmt::Display) -> ExitStatus {
    tell(&format!("error: bug: {error}"));
    ExitStatus::Bug
}

/// Whether a reader has gone away, told by the system itself or through a serializer.
fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let kind = cause
        .downcast_ref::<io::Error>()
        .map(io::Error::kind)
        .or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind());
    kind == Some(ErrorKind::BrokenPipe)
}

/// Tells that a command line does not read, in one line; what was asked to be shown goes where it belongs.
pub(crate) fn unreadable(error: &clap::Error) -> ExitStatus {
    use clap::error::ErrorKind as Kind;
    if matches!(
        error.kind(),
        Kind::DisplayHelp | Kind::DisplayVersion | Kind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // Nobody is left to tell that help cannot be printed.
        let _ = error.print();
        return if error.use_stderr() {
            ExitStatus::Error
        } else {
            ExitStatus::Success
        };
    }
    let text = error.render().to_string();
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .filter(|paragraph| !paragraph.starts_with("Usage:"))
        .map(|paragraph| {
            let words: Vec<&str> = paragraph.split_whitespace().collect();
            words.join(" ")
        })
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    tell(&paragraphs.join("; "));
    ExitStatus::Error
}

/// Writes a file beside its final place and renames it, so that a reader sees the whole of it or nothing.
///
/// A link is followed to what it stands for. A pipe or a device is written to as it is: a rename would replace it.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    refuse_given(path)?;
    let write = || -> io::Result<()> {
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return File::options().write(true).open(path)?.write_all(bytes);
        }
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let mut file = builder().tempfile_in(folder.unwrap_or_else(|| Path::new(".")))?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses to write over what the command reads.
pub(crate) fn refuse_given(path: &Path) -> Result<()> {
    if given::is_kept(path) {
        bail!(
            "cannot write {}: the command reads that file, expected another place",
            path.display()
        );
    }
    Ok(())
}

/// A temporary file that ends up with the permissions of any new file.
fn builder() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(
        not(unix),
        expect(unused_mut, reason = "only Unix has permissions to set")
    )]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}
