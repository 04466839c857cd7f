//! Where a record goes: into a new file, or to somebody who reads it from a pipe.
//!
//! A record cannot be made again, so a file that holds something is not replaced unasked. A pipe neither holds up the
//! start, when nobody reads it, nor the watching, when its reader stalls.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How often is looked whether a pipe's reader has opened it: for three seconds.
const LOOKS: u32 = 150;
const LOOK: Duration = Duration::from_millis(20);
/// How long a pipe's reader may take nothing before the rest of the record is given up, in seconds.
const STALL_S: i64 = 1;

/// A file that is written without ever being waited for long.
#[derive(Debug)]
pub(super) struct RecordFile(File);

impl RecordFile {
    /// Opens it. `replaces` allows to replace what is there already.
    ///
    /// # Errors
    /// When it cannot be written, holds something already, or is a pipe that nobody reads.
    pub(super) fn open(path: &Path, replaces: bool) -> Result<Self> {
        let shown = path.display();
        let file = match open_to_write(path) {
            Err(error) if is_unread(&error) && is_pipe(path) => {
                bail!("cannot write {shown}: nobody reads this pipe; start its reader first")
            }
            opened => opened.with_context(|| format!("cannot write {shown}"))?,
        };
        let meta = file
            .metadata()
            .with_context(|| format!("cannot write {shown}"))?;
        if meta.is_file() && meta.len() > 0 {
            if !replaces {
                bail!(
                    "--record {shown}: holds {} bytes already, perhaps an earlier record; give another name, or replace \
                     it with --record-force",
                    meta.len()
                );
            }
            file.set_len(0)
                .with_context(|| format!("cannot write {shown}"))?;
        }
        Ok(Self(file))
    }
}

/// Opens it, waiting a moment for the reader of a pipe.
fn open_to_write(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut looks = if is_pipe(path) { LOOKS } else { 0 };
    loop {
        match options.open(path) {
            Err(error) if looks > 0 && is_unread(&error) => {
                looks -= 1;
                thread::sleep(LOOK);
            }
            opened => return opened,
        }
    }
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.file_type().is_fifo())
}

/// What opening a pipe answers that nobody reads.
fn is_unread(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

impl Write for RecordFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let patience = Timespec {
                        tv_sec: STALL_S,
                        tv_nsec: 0,
                    };
                    let mut waits = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::OUT)];
                    match poll(&mut waits, Some(&patience)) {
                        Ok(0) => {
                            let why = format!("its reader took nothing for {STALL_S} s");
                            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                        }
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
