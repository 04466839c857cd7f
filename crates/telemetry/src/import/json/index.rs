//! Checks a JSON text and notes where its values stand, in one pass.
//!
//! What is accepted is what `serde_json` accepts of a raw value: the grammar of RFC 8259, numbers of any size, escapes
//! of lone surrogates, any depth. A test holds both against each other on damaged texts.

/// How many values of a text are noted, so that a text made of tiny values does not cost many times its size. Of a
/// container whose values are not all noted, none is.
const NOTED: usize = 1 << 20;

/// The number of values inside a container of which none is noted.
const UNNOTED: u32 = u32::MAX;

/// Where one value stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) start: u32,
    pub(super) end: u32,
    /// How many of the entries that follow are inside this value.
    inside: u32,
    /// Whether it is a string with an escape in it.
    pub(super) escaped: bool,
}

impl Entry {
    /// The entries inside this value, which stand in front of `following`; none where they are not noted.
    pub(super) fn inside(self, following: &[Entry]) -> Option<&[Entry]> {
        (self.inside != UNNOTED).then(|| &following[..self.inside as usize])
    }

    /// How many entries to pass over to come to the next value beside this one.
    pub(super) const fn after(self) -> usize {
        if self.inside == UNNOTED {
            1
        } else {
            1 + self.inside as usize
        }
    }
}

/// A value that is in no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its entry, where it is noted.
    pub(super) entry: Option<usize>,
}

/// The values of one text.
#[derive(Debug, Default)]
pub(in super::super) struct Index {
    pub(super) entries: Vec<Entry>,
    pub(super) roots: Vec<Root>,
    /// The closing brackets of the containers that are open.
    closing: Vec<u8>,
    /// The entries of the outermost of them: all, until no more is noted.
    open: Vec<u32>,
    full: bool,
}

impl Index {
    /// Reads values written one after the other; whether something unreadable follows them.
    pub(super) fn read(&mut self, text: &str) -> bool {
        self.entries.clear();
        self.roots.clear();
        self.full = u32::try_from(text.len()).is_err();
        let text = text.trim_end();
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            at = text.len() - text[at..].trim_start().len();
            if at == text.len() {
                return false;
            }
            let first = self.entries.len();
            let Some(end) = self.value(bytes, at) else {
                self.entries.truncate(first);
                return true;
            };
            self.roots.push(Root {
                start: at,
                end,
                entry: (self.entries.len() > first).then_some(first),
            });
            at = end;
        }
    }

    /// Where the value that begins at `start` ends.
    fn value(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        self.closing.clear();
        self.open.clear();
        let mut at = start;
        loop {
            at = self.begin(bytes, at)?;
            // A container that holds something: its first value comes next.
            if matches!(bytes[at - 1], b'{' | b'[') {
                at = self.up_to_value(bytes, at)?;
                continue;
            }
            loop {
                let Some(&closing) = self.closing.last() else {
                    return Some(at);
                };
                at = after_space(bytes, at);
                let byte = *bytes.get(at)?;
                at += 1;
                if byte == b',' {
                    at = self.up_to_value(bytes, at)?;
                    break;
                }
                if byte != closing {
                    return None;
                }
                self.close(at);
            }
        }
    }

    /// Reads a scalar, an empty container, or the bracket that opens another, and gives where that ends.
    fn begin(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        let end = match *bytes.get(start)? {
            b'"' => {
                let (end, escaped) = string_end(bytes, start)?;
                self.note(start, end, escaped);
                return Some(end);
            }
            open @ (b'{' | b'[') => {
                // In ASCII the closing brackets stand two after the opening ones.
                self.open(start, open + 2);
                let first = after_space(bytes, start + 1);
                if bytes.get(first) != Some(&(open + 2)) {
                    return Some(start + 1);
                }
                self.close(first + 1);
                return Some(first + 1);
            }
            b'-' | b'0'..=b'9' => number_end(bytes, start)?,
            b't' => word_end(bytes, start, b"true")?,
            b'f' => word_end(bytes, start, b"false")?,
            b'n' => word_end(bytes, start, b"null")?,
            _ => return None,
        };
        self.note(start, end, false);
        Some(end)
    }

    /// Passes over what stands in front of a value: white space, and in an object the key and its colon.
    fn up_to_value(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        let mut at = after_space(bytes, start);
        if self.closing.last() == Some(&b'}') {
            if bytes.get(at) != Some(&b'"') {
                return None;
            }
            let (end, escaped) = string_end(bytes, at)?;
            self.note(at, end, escaped);
            at = after_space(bytes, end);
            if bytes.get(at) != Some(&b':') {
                return None;
            }
            at = after_space(bytes, at + 1);
        }
        Some(at)
    }

    #[inline]
    fn note(&mut self, start: usize, end: usize, escaped: bool) {
        self.full |= self.entries.len() >= NOTED;
        if !self.full {
            self.entries.push(Entry {
                start: start as u32,
                end: end as u32,
                inside: 0,
                escaped,
            });
        }
    }

    fn open(&mut self, start: usize, closing: u8) {
        self.note(start, start, false);
        if !self.full {
            self.open.push(self.entries.len() as u32 - 1);
        }
        self.closing.push(closing);
    }

    fn close(&mut self, end: usize) {
        // Containers that are not noted lie inside those that are.
        if self.open.len() == self.closing.len()
            && let Some(at) = self.open.pop()
        {
            let n_entries = self.entries.len() as u32;
            let entry = &mut self.entries[at as usize];
            entry.end = end as u32;
            entry.inside = if self.full {
                UNNOTED
            } else {
                n_entries - at - 1
            };
        }
        self.closing.pop();
    }
}

fn after_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

fn word_end(bytes: &[u8], start: usize, word: &[u8]) -> Option<usize> {
    bytes[start..].starts_with(word).then(|| start + word.len())
}

/// Where the number that begins at `start` ends.
fn number_end(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        let first = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > first).then_some(at)
    };
    let mut at = start + usize::from(bytes[start] == b'-');
    at = if bytes.get(at) == Some(&b'0') {
        if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        at + 1
    } else {
        digits(at)?
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = digits(at)?;
    }
    Some(at)
}

/// Where the string that begins at `start` ends, after its quote, and whether an escape is in it.
fn string_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut at = start + 1;
    let mut escaped = false;
    loop {
        at = next_mark(bytes, at)?;
        match bytes[at] {
            b'"' => return Some((at + 1, escaped)),
            b'\\' => at = escape_end(bytes, at)?,
            _ => return None,
        }
        escaped = true;
    }
}

/// Where the escape that begins at `start` ends.
fn escape_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(start + 2),
        b'u' => {
            let digits = bytes.get(start + 2..start + 6)?;
            digits
                .iter()
                .all(u8::is_ascii_hexdigit)
                .then_some(start + 6)
        }
        _ => None,
    }
}

/// Where the next quote, backslash or control character stands.
fn next_mark(bytes: &[u8], start: usize) -> Option<usize> {
    let mut rest = bytes.get(start..)?;
    // Names, ids and stamps end soon; what does not is mostly long.
    let mut soon = 2;
    while let Some(chunk) = rest.first_chunk::<16>() {
        let [first, second] = [0, 8].map(|at| marks(&chunk[at..at + 8]));
        if first | second != 0 {
            let before = bytes.len() - rest.len();
            let (half, marks) = if first == 0 { (8, second) } else { (0, first) };
            return Some(before + half + marks.trailing_zeros() as usize / 8);
        }
        rest = &rest[16..];
        if soon > 0 {
            soon -= 1;
            continue;
        }
        while let Some(chunk) = rest.first_chunk::<32>() {
            if chunk.iter().fold(false, |any, &byte| any | is_mark(byte)) {
                break;
            }
            rest = &rest[32..];
        }
    }
    let found = rest.iter().position(|&byte| is_mark(byte))?;
    Some(bytes.len() - rest.len() + found)
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..b' ')
}

/// The highest bit of each of eight bytes that is a mark, up to the first one exactly: a byte is zero, or less than
/// another, when subtracting borrows.
#[inline]
fn marks(eight: &[u8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let bytes = eight
        .first_chunk()
        .map_or(0, |eight| u64::from_le_bytes(*eight));
    let (quote, slash) = (bytes ^ (ONES * 0x22), bytes ^ (ONES * 0x5c));
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let slashes = slash.wrapping_sub(ONES) & !slash;
    let controls = bytes.wrapping_sub(ONES * 0x20) & !bytes;
    (quotes | slashes | controls) & HIGHS
}
