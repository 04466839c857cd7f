//! Passes the command's output through, byte for byte and as it comes, and tells of every piece.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::clock::Clock;
use super::live::Message;

/// How much is read at once: as much as a pipe holds.
const PIECE: usize = 64 << 10;

/// Which output of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pipe {
    Stdout,
    Stderr,
}

/// What the main loop can ask of a pipe that another thread reads.
#[derive(Debug)]
pub(super) struct Intake {
    /// The reading end while it is read; nobody else keeps it open.
    source: Weak<OwnedFd>,
    /// Whether the reader waits for whoever reads from `watch`.
    blocked: Arc<AtomicBool>,
    /// Whether the reader looks into the bytes or only counts them.
    parses: Arc<AtomicBool>,
    /// Whether the end was seen.
    pub(super) closed: bool,
}

impl Intake {
    /// Whether bytes wait that nobody has read yet.
    pub(super) fn holds_bytes(&self) -> bool {
        let waiting = |source: Arc<OwnedFd>| rustix::io::ioctl_fionread(source.as_fd());
        self.source
            .upgrade()
            .is_some_and(|source| waiting(source).is_ok_and(|n| n > 0))
    }

    /// Whether the reader waits for whoever reads from `watch`.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// From now on the bytes are only counted.
    pub(super) fn only_count(&self) {
        self.parses.store(false, Ordering::Relaxed);
    }
}

/// Starts the reader of one pipe.
pub(super) fn pass_through(
    source: OwnedFd,
    pipe: Pipe,
    parse: bool,
    clock: Clock,
    send: SyncSender<Message>,
) -> io::Result<Intake> {
    let source = Arc::new(source);
    let blocked = Arc::new(AtomicBool::new(false));
    let parses = Arc::new(AtomicBool::new(parse));
    let intake = Intake {
        source: Arc::downgrade(&source),
        blocked: Arc::clone(&blocked),
        parses: Arc::clone(&parses),
        closed: false,
    };
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let sink = Sink { pipe, blocked };
            copy(&source, &sink, &parses, clock, &send);
            // Closed before it is told, so that a command that goes on writing learns of it at once.
            drop(source);
            let _ = send.send(Message::Closed(pipe));
        })?;
    Ok(intake)
}

fn copy(
    source: &OwnedFd,
    sink: &Sink,
    parses: &AtomicBool,
    clock: Clock,
    send: &SyncSender<Message>,
) {
    let mut buffer = vec![0; PIECE];
    loop {
        let n = match rustix::io::read(source, &mut buffer[..]) {
            // A terminal whose other side is closed answers with EIO.
            Ok(0) | Err(Errno::IO) => return,
            Ok(n) => n,
            Err(Errno::INTR) => continue,
            Err(_) => return,
        };
        let bytes = if parses.load(Ordering::Relaxed) {
            buffer[..n].to_vec()
        } else {
            Vec::new()
        };
        // Told before it is written: whoever reads from watch may be slow, the command was not.
        let _ = send.send(Message::Bytes {
            pipe: sink.pipe,
            at_ms: clock.now_ms(),
            n_bytes: n as u64,
            bytes,
        });
        if sink.write(&buffer[..n]).is_err() {
            return;
        }
    }
}

/// Where a pipe's bytes go.
struct Sink {
    pipe: Pipe,
    blocked: Arc<AtomicBool>,
}

impl Sink {
    fn write(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.blocked.store(true, Ordering::Relaxed);
        let written = match self.pipe {
            Pipe::Stdout => write_all(io::stdout().as_fd(), bytes),
            Pipe::Stderr => write_all(io::stderr().as_fd(), bytes),
        };
        self.blocked.store(false, Ordering::Relaxed);
        written
    }
}

fn write_all(sink: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(sink, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            // Somebody made the descriptor that we share non-blocking.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&sink, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
