//! A file's content: decompressed, hashed and counted while it is read once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::Xxh3;

/// How much of a content is looked at to recognise its format: this many lines …
const HEAD_LINES: usize = 64;
/// … but no more than this many bytes, whatever the lines' length.
const HEAD_BYTES: usize = 4 << 20;

/// Told how an import goes on. Every method may be called from any thread; none may block for long.
pub trait Progress: Sync {
    /// `files` files with `bytes` bytes in all will be read.
    fn start(&self, files: usize, bytes: u64) {
        let _ = (files, bytes);
    }
    /// Reading of the source of that name begins.
    fn source(&self, name: &str) {
        let _ = name;
    }
    /// `bytes` more bytes of the files were read (before decompression).
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }
}

/// Progress that nobody looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// The content of one file, open for one reading.
pub(crate) struct Content<'a> {
    reader: BufReader<Hashing<Decoded<'a>>>,
    head: Cursor<Vec<u8>>,
}

/// What was read of a content: its size and digest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Fingerprint {
    pub(crate) n_bytes: u64,
    pub(crate) digest: u64,
}

impl<'a> Content<'a> {
    /// Opens `path`; `.gz` and `.zst` are told by their first bytes and decompressed while reading.
    pub(crate) fn open(
        path: &Path,
        progress: &'a dyn Progress,
        cancel: &'a AtomicBool,
    ) -> io::Result<Self> {
        Self::read_from(Box::new(File::open(path)?), progress, cancel)
    }

    /// The same for content that is in memory already.
    pub(crate) fn from_bytes(
        bytes: Vec<u8>,
        progress: &'a dyn Progress,
        cancel: &'a AtomicBool,
    ) -> io::Result<Self> {
        Self::read_from(Box::new(Cursor::new(bytes)), progress, cancel)
    }

    fn read_from(
        source: Box<dyn Read>,
        progress: &'a dyn Progress,
        cancel: &'a AtomicBool,
    ) -> io::Result<Self> {
        let raw = Raw {
            source,
            progress,
            cancel,
        };
        let mut raw = BufReader::with_capacity(1 << 16, raw);
        let decoded = match raw.fill_buf()? {
            [0x1f, 0x8b, ..] => Decoded::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(raw))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                Decoded::Zstd(Box::new(zstd::Decoder::with_buffer(raw)?))
            }
            _ => Decoded::Plain(raw),
        };
        let hashing = Hashing {
            inner: decoded,
            hash: Box::new(Xxh3::new()),
            n_bytes: 0,
        };
        let mut content = Self {
            reader: BufReader::with_capacity(1 << 16, hashing),
            head: Cursor::new(Vec::new()),
        };
        content.read_head()?;
        Ok(content)
    }

    fn read_head(&mut self) -> io::Result<()> {
        let head = self.head.get_mut();
        let mut lines = 0;
        while lines < HEAD_LINES && head.len() < HEAD_BYTES {
            let room = (HEAD_BYTES - head.len()) as u64;
            if (&mut self.reader).take(room).read_until(b'\n', head)? == 0 {
                break;
            }
            lines += 1;
        }
        Ok(())
    }

    /// The beginning of the content: at least [`HEAD_LINES`] lines, all of it, or [`HEAD_BYTES`].
    pub(crate) fn head(&self) -> &[u8] {
        self.head.get_ref()
    }

    /// Reads what is left and says what the whole content was.
    pub(crate) fn finish(mut self) -> io::Result<Fingerprint> {
        io::copy(&mut self.reader, &mut io::sink())?;
        Ok(self.reader.get_ref().fingerprint())
    }

    /// What was read so far, where the rest cannot be.
    pub(crate) fn so_far(&self) -> Fingerprint {
        self.reader.get_ref().fingerprint()
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buffer)?;
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Content<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.head.position() < self.head.get_ref().len() as u64 {
            return self.head.fill_buf();
        }
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if self.head.position() < self.head.get_ref().len() as u64 {
            self.head.consume(amount);
        } else {
            self.reader.consume(amount);
        }
    }
}

/// The file itself: says how far it is, and stops when the user does.
struct Raw<'a> {
    source: Box<dyn Read>,
    progress: &'a dyn Progress,
    cancel: &'a AtomicBool,
}

impl Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        let n = self.source.read(buffer)?;
        self.progress.advance(n as u64);
        Ok(n)
    }
}

enum Decoded<'a> {
    Plain(BufReader<Raw<'a>>),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<Raw<'a>>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Raw<'a>>>>),
}

impl Read for Decoded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Gzip(reader) => reader.read(buffer),
            Self::Zstd(reader) => reader.read(buffer),
        }
    }
}

struct Hashing<R> {
    inner: R,
    hash: Box<Xxh3>,
    n_bytes: u64,
}

impl<R> Hashing<R> {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            n_bytes: self.n_bytes,
            digest: self.hash.digest(),
        }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hash.update(&buffer[..n]);
        self.n_bytes += n as u64;
        Ok(n)
    }
}
