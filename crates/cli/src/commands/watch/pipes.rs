//! Passes the command's output through, byte for byte and as it comes, and tells of every piece.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

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
            let untold_bytes = copy(&source, &sink, &parses, clock, &send);
            // Closed before it is told, so that a command that goes on writing learns of it at once.
            drop(source);
            let _ = send.send(Message::Closed { pipe, untold_bytes });
        })?;
    Ok(intake)
}

/// Passes everything on, to the end; gives the bytes that were not told yet.
fn copy(
    source: &OwnedFd,
    sink: &Sink,
    parses: &AtomicBool,
    clock: Clock,
    send: &SyncSender<Message>,
) -> u64 {
    let mut buffer = vec![0; PIECE];
    let mut teller = Teller {
        pipe: sink.pipe,
        clock,
        send,
        told_ms: None,
        told_bytes: 0,
        passed_bytes: 0,
    };
    let mut moves = true;
    loop {
        // Bytes that nobody looks into need not be copied, if both ends are such that the kernel can move them.
        if moves && !parses.load(Ordering::Relaxed) {
            match sink.move_from(source, &mut teller) {
                Moved::Some => {}
                Moved::Nothing => return teller.untold_bytes(),
                Moved::Cannot => moves = false,
            }
            continue;
        }
        let n = match rustix::io::read(source, &mut buffer[..]) {
            // A terminal whose other side is closed answers with EIO.
            Ok(0) | Err(Errno::IO) => return teller.untold_bytes(),
            Ok(n) => n,
            Err(Errno::INTR) => continue,
            Err(_) => return teller.untold_bytes(),
        };
        let bytes = if parses.load(Ordering::Relaxed) {
            buffer[..n].to_vec()
        } else {
            Vec::new()
        };
        teller.tell(n as u64, bytes);
        teller.passed_bytes += n as u64;
        if sink.write(&buffer[..n]).is_err() {
            return teller.untold_bytes();
        }
    }
}

/// Tells of bytes before they are passed on: whoever reads from `watch` may be slow, the command was not.
///
/// Of the pieces of one millisecond the first alone is told, as all are one sign of life; their bytes are told with
/// the next.
struct Teller<'a> {
    pipe: Pipe,
    clock: Clock,
    send: &'a SyncSender<Message>,
    told_ms: Option<u64>,
    told_bytes: u64,
    passed_bytes: u64,
}

impl Teller<'_> {
    /// Tells that `waiting` bytes are there beyond those passed on.
    fn tell(&mut self, waiting: u64, bytes: Vec<u8>) {
        let at_ms = self.clock.now_ms();
        if bytes.is_empty() && self.told_ms == Some(at_ms) {
            return;
        }
        self.told_ms = Some(at_ms);
        let there = self.passed_bytes.saturating_add(waiting);
        let _ = self.send.send(Message::Bytes {
            pipe: self.pipe,
            at_ms,
            n_bytes: there.saturating_sub(self.told_bytes),
            bytes,
        });
        self.told_bytes = self.told_bytes.max(there);
    }

    fn untold_bytes(&self) -> u64 {
        self.passed_bytes.saturating_sub(self.told_bytes)
    }
}

/// Where a pipe's bytes go.
struct Sink {
    pipe: Pipe,
    blocked: Arc<AtomicBool>,
}

/// What came of moving bytes inside the kernel.
enum Moved {
    /// Some were moved, perhaps.
    Some,
    /// The source is at its end, or nobody reads any more.
    Nothing,
    /// It cannot be done between these two.
    Cannot,
}

impl Sink {
    /// Waits for bytes and moves what is there.
    fn move_from(&self, source: &OwnedFd, teller: &mut Teller<'_>) -> Moved {
        match poll(&mut [PollFd::new(source, PollFlags::IN)], None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Moved::Some,
            Err(_) => return Moved::Cannot,
        }
        // At the end of the source nothing is there, and nothing is told.
        match rustix::io::ioctl_fionread(source) {
            Ok(0) => {}
            Ok(waiting) => teller.tell(waiting, Vec::new()),
            Err(_) => return Moved::Cannot,
        }
        self.blocked.store(true, Ordering::Relaxed);
        let flags = SpliceFlags::empty();
        let moved = match self.pipe {
            Pipe::Stdout => splice(source, None, io::stdout(), None, PIECE, flags),
            Pipe::Stderr => splice(source, None, io::stderr(), None, PIECE, flags),
        };
        self.blocked.store(false, Ordering::Relaxed);
        match moved {
            Ok(0) | Err(Errno::PIPE) => Moved::Nothing,
            Ok(n) => {
                teller.passed_bytes += n as u64;
                Moved::Some
            }
            Err(Errno::INTR) => Moved::Some,
            Err(_) => Moved::Cannot,
        }
    }

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
