//! Passes the command's output through, byte for byte and as it comes, and tells of every piece.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use rustix::termios::{Winsize, tcsetwinsize};

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

/// What a reader lets the main loop see.
#[derive(Debug)]
struct Gauge {
    /// Whether the reader waits for whoever reads from `watch`.
    is_blocked: AtomicBool,
    /// Whether bytes may have left the pipe that are not told yet.
    is_taking: AtomicBool,
    /// How many bytes have left the pipe.
    taken: AtomicU64,
    /// Whether the reader looks into the bytes or only counts them.
    parses: AtomicBool,
}

/// What the main loop can ask of a pipe that another thread reads.
#[derive(Debug)]
pub(super) struct Intake {
    /// The reading end while it is read; nobody else keeps it open.
    source: Weak<OwnedFd>,
    gauge: Arc<Gauge>,
    /// Whether the end was seen.
    pub(super) closed: bool,
}

impl Intake {
    /// How many bytes wait that nobody has read yet.
    pub(super) fn waiting(&self) -> u64 {
        let waiting = |source: Arc<OwnedFd>| rustix::io::ioctl_fionread(source.as_fd()).ok();
        self.source.upgrade().and_then(waiting).unwrap_or(0)
    }

    /// Whether there are bytes that were not told yet. Once there are none, the news of all wait to be taken.
    pub(super) fn holds_untold(&self) -> bool {
        // In this order: what leaves the pipe in between was being taken before.
        self.waiting() > 0 || self.gauge.is_taking.load(Ordering::SeqCst)
    }

    /// Whether the reader waits for whoever reads from `watch`.
    pub(super) fn is_blocked(&self) -> bool {
        self.gauge.is_blocked.load(Ordering::SeqCst)
    }

    /// How many bytes the reader has taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.gauge.taken.load(Ordering::SeqCst)
    }

    /// Whether everything was passed on that had been written when so many bytes were taken and so many waited.
    pub(super) fn has_passed(&self, due: u64) -> bool {
        let taken = self.taken();
        let is_between = self.gauge.is_taking.load(Ordering::SeqCst) || self.is_blocked();
        // Whoever has taken a later piece has written the earlier one.
        self.closed || taken >= due && !is_between || taken >= due.saturating_add(PIECE as u64)
    }

    /// From now on the bytes are only counted.
    pub(super) fn only_count(&self) {
        self.gauge.parses.store(false, Ordering::Relaxed);
    }

    /// Gives the terminal that stands in for the pipe this size.
    pub(super) fn resize(&self, size: Winsize) {
        if let Some(terminal) = self.source.upgrade() {
            let _ = tcsetwinsize(terminal.as_fd(), size);
        }
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
    let gauge = Arc::new(Gauge {
        is_blocked: AtomicBool::new(false),
        is_taking: AtomicBool::new(false),
        taken: AtomicU64::new(0),
        parses: AtomicBool::new(parse),
    });
    let intake = Intake {
        source: Arc::downgrade(&source),
        gauge: Arc::clone(&gauge),
        closed: false,
    };
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let sink = Sink { pipe, gauge };
            let untold_bytes = copy(&source, &sink, clock, &send);
            // Closed before it is told, so that a command that goes on writing learns of it at once.
            drop(source);
            let _ = send.send(Message::Closed { pipe, untold_bytes });
        })?;
    Ok(intake)
}

/// Passes everything on, to the end; gives the bytes that were not told yet.
fn copy(source: &OwnedFd, sink: &Sink, clock: Clock, send: &SyncSender<Message>) -> u64 {
    let gauge = &*sink.gauge;
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
        match poll(&mut [PollFd::new(source, PollFlags::IN)], None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return teller.untold_bytes(),
        }
        // Bytes that nobody looks into need not be copied, if both ends are such that the kernel can move them.
        if moves && !gauge.parses.load(Ordering::Relaxed) {
            match sink.move_from(source, &mut teller) {
                Moved::Some => {}
                Moved::Nothing => return teller.untold_bytes(),
                Moved::Cannot => moves = false,
            }
            continue;
        }
        gauge.is_taking.store(true, Ordering::SeqCst);
        let n = loop {
            match rustix::io::read(source, &mut buffer[..]) {
                Ok(n) => break n,
                Err(Errno::INTR) => {}
                // A terminal whose other side is closed answers with EIO.
                Err(_) => break 0,
            }
        };
        let bytes = if gauge.parses.load(Ordering::Relaxed) {
            buffer[..n].to_vec()
        } else {
            Vec::new()
        };
        if n > 0 {
            teller.tell(n as u64, bytes);
            gauge.taken.fetch_add(n as u64, Ordering::SeqCst);
        }
        // At no instant does it look as if they were told and passed on.
        gauge.is_blocked.store(n > 0, Ordering::SeqCst);
        gauge.is_taking.store(false, Ordering::SeqCst);
        if n == 0 {
            return teller.untold_bytes();
        }
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
    gauge: Arc<Gauge>,
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
    /// Moves what is there.
    fn move_from(&self, source: &OwnedFd, teller: &mut Teller<'_>) -> Moved {
        // At the end of the source nothing is there, and nothing is told.
        match rustix::io::ioctl_fionread(source) {
            Ok(0) => {}
            Ok(waiting) => teller.tell(waiting, Vec::new()),
            Err(_) => return Moved::Cannot,
        }
        self.gauge.is_blocked.store(true, Ordering::SeqCst);
        let flags = SpliceFlags::empty();
        let moved = match self.pipe {
            Pipe::Stdout => splice(source, None, io::stdout(), None, PIECE, flags),
            Pipe::Stderr => splice(source, None, io::stderr(), None, PIECE, flags),
        };
        self.gauge.is_blocked.store(false, Ordering::SeqCst);
        match moved {
            Ok(0) | Err(Errno::PIPE) => Moved::Nothing,
            Ok(n) => {
                teller.passed_bytes += n as u64;
                self.gauge.taken.fetch_add(n as u64, Ordering::SeqCst);
                // While the other side was full more may have come than was told of.
                if teller.untold_bytes() > 0 {
                    teller.tell(0, Vec::new());
                }
                Moved::Some
            }
            Err(Errno::INTR) => Moved::Some,
            Err(_) => Moved::Cannot,
        }
    }

    fn write(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.gauge.is_blocked.store(true, Ordering::SeqCst);
        let written = match self.pipe {
            Pipe::Stdout => write_all(io::stdout().as_fd(), bytes),
            Pipe::Stderr => write_all(io::stderr().as_fd(), bytes),
        };
        self.gauge.is_blocked.store(false, Ordering::SeqCst);
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
