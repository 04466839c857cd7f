//! Cuts a source into lines: at the byte LF only, however long they are.

use std::borrow::Cow;
use std::io::{self, BufRead};

/// Reads lines and knows where it is.
pub(super) struct Lines<'a> {
    reader: &'a mut dyn BufRead,
    /// A line that the reader does not hold in one piece.
    buffer: Vec<u8>,
    /// How many bytes of the reader the latest line is, if it lies there in one piece.
    held: usize,
    number: u64,
    offset: u64,
    next_offset: u64,
}

/// One line, without its line feed.
pub(super) struct Line<'b> {
    /// Its text; bytes that are no UTF-8 are replaced.
    pub(super) text: Cow<'b, str>,
    /// Its number, from 1.
    pub(super) number: u64,
    /// Offset of its first byte.
    pub(super) offset: u64,
    /// Whether a line feed ended it: only the last line can lack one.
    pub(super) ended: bool,
}

impl Line<'_> {
    /// Whether bytes had to be replaced.
    pub(super) fn invalid_utf8(&self) -> bool {
        matches!(self.text, Cow::Owned(_))
    }

    /// Whether it holds white space only.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

impl<'a> Lines<'a> {
    /// Reads from the beginning of a source.
    pub(super) fn new(reader: &'a mut dyn BufRead) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            held: 0,
            number: 0,
            offset: 0,
            next_offset: 0,
        }
    }

    /// How many bytes have been read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.next_offset
    }

    /// The next line; none at the end. A byte order mark in front of the first is dropped.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.reader.consume(std::mem::take(&mut self.held));
        self.buffer.clear();
        let n = self.read_line()?;
        if n == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.offset = self.next_offset;
        self.next_offset += n as u64;
        let mut bytes = match self.held {
            0 => self.buffer.as_slice(),
            held => &self.reader.fill_buf()?[..held],
        };
        let ended = bytes.last() == Some(&b'\n');
        if ended {
            bytes = &bytes[..bytes.len() - 1];
        }
        if self.number == 1 {
            bytes = without_mark(bytes);
        }
        Ok(Some(Line {
            text: lossy(bytes),
            number: self.number,
            offset: self.offset,
            ended,
        }))
    }
}

impl Lines<'_> {
    /// Finds the next line, with its line feed, in the reader or in the buffer; the number of bytes.
    fn read_line(&mut self) -> io::Result<usize> {
        loop {
            let found = match self.reader.fill_buf() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr::memchr(b'\n', found);
            if let (Some(at), true) = (end, self.buffer.is_empty()) {
                self.held = at + 1;
                return Ok(self.held);
            }
            let taken = end.map_or(found.len(), |at| at + 1);
            self.buffer.extend_from_slice(&found[..taken]);
            self.reader.consume(taken);
            if end.is_some() || taken == 0 {
                return Ok(self.buffer.len());
            }
        }
    }
}

/// The text of the bytes, those that are no UTF-8 replaced. Valid text is checked many times faster than it is repaired.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The bytes after a UTF-8 byte order mark, if there is one.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}
