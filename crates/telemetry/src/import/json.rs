//! A lenient view of JSON text: find the wanted fields, skip the rest, never fail on what nobody asked for.
//!
//! [`values`] checks the text and notes where its values stand, in one pass ([`index`]); [`Json`] then finds fields
//! without looking at the text between them. A field of an unexpected type reads as absent, the last of two equal keys
//! wins, lone surrogates become U+FFFD, nesting costs no stack.
//!
//! Why not a crate: import reads few fields of every record, at several depths. On session logs, one core, MB/s of a
//! first pass over claude / codex / pi logs of the corpus: `serde_json` skipping a raw value 1,070 / 990 / 970 (and
//! each deeper level is a pass of its own: the whole import made 216 / 179 / 171), `simd-json` building its tape
//! 860 / 710 / 690 (it refuses lone surrogates and large numbers, which must not cost a line), `sonic-rs` lazily over
//! one object 760 / 730 / 780 (its vector code is chosen when compiling, not when running). `benches/import.rs` has
//! the tape beside the import.

mod index;

use std::borrow::Cow;

use index::Entry;
pub(super) use index::Index;

/// The text of one valid JSON value, without white space around it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Json<'a> {
    text: &'a str,
    /// Where `text` begins in what the entries speak of.
    base: u32,
    /// The values inside it, where they are noted.
    inside: Option<&'a [Entry]>,
    /// Whether it is known to hold no escape.
    unescaped: bool,
}

/// A text read as JSON values written one after the other.
pub(super) struct Values<'t> {
    text: &'t str,
    index: Index,
    /// Whether something unreadable follows them.
    pub(super) unreadable_rest: bool,
}

/// The JSON values at the beginning of `text`, with optional white space around them.
pub(super) fn values(text: &str) -> Values<'_> {
    Values::read(text, Index::default())
}

impl<'t> Values<'t> {
    /// As [`values`], in the memory of texts read before.
    pub(super) fn read(text: &'t str, mut index: Index) -> Self {
        let unreadable_rest = index.read(text);
        Self {
            text,
            index,
            unreadable_rest,
        }
    }

    /// The memory, for the next text.
    pub(super) fn into_index(self) -> Index {
        self.index
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.index.roots.len()
    }

    /// The values, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Json<'_>> {
        self.index.roots.iter().map(|root| Json {
            text: &self.text[root.start..root.end],
            base: root.start as u32,
            inside: root
                .entry
                .and_then(|at| self.index.entries[at].inside(&self.index.entries[at + 1..])),
            unescaped: false,
        })
    }

    /// The only value, if there is one and nothing else.
    pub(super) fn only(&self) -> Option<Json<'_>> {
        self.iter()
            .next()
            .filter(|_| self.len() == 1 && !self.unreadable_rest)
    }
}

impl<'a> Json<'a> {
    /// A value of which nothing inside is noted.
    const fn unnoted(text: &'a str) -> Self {
        Self {
            text,
            base: 0,
            inside: None,
            unescaped: false,
        }
    }

    /// The values right inside, keys among them; none when it is no container that begins with `open`.
    fn children(self, open: u8) -> impl Iterator<Item = Json<'a>> {
        let is_one = self.text.as_bytes().first() == Some(&open);
        let mut noted = self.inside.filter(|_| is_one).unwrap_or_default();
        let unnoted = if self.inside.is_some() || !is_one {
            ""
        } else {
            self.text
        };
        let mut cursor = Cursor::inside(unnoted, open);
        std::iter::from_fn(move || {
            let Some((entry, following)) = noted.split_first() else {
                return cursor.value();
            };
            noted = &noted[entry.after()..];
            let range = (entry.start - self.base) as usize..(entry.end - self.base) as usize;
            Some(Json {
                text: &self.text[range],
                base: entry.start,
                inside: entry.inside(following),
                unescaped: !entry.escaped,
            })
        })
    }

    /// Whether it is an object.
    pub(super) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    /// Whether it is a list.
    pub(super) fn is_list(self) -> bool {
        self.text.starts_with('[')
    }

    /// Its text as written.
    pub(super) fn raw(self) -> &'a str {
        self.text
    }

    /// Whether it is `true`.
    pub(super) fn is_true(self) -> bool {
        self.text == "true"
    }

    /// The fields of those names; all absent when it is no object.
    pub(super) fn fields<const N: usize>(self, names: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        let mut children = self.children(b'{');
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            let Some(written) = key.inner() else { break };
            let first = written.as_bytes().first();
            // The first letter tells most keys apart, without comparing the rest.
            let place = names
                .iter()
                .position(|name| name.as_bytes().first() == first && written == *name)
                .or_else(|| {
                    let key = key.text().filter(|_| !key.unescaped)?;
                    names.iter().position(|name| key == *name)
                });
            if let Some(at) = place {
                found[at] = Some(value);
            }
        }
        found
    }

    /// The field of that name.
    pub(super) fn field(self, name: &str) -> Option<Json<'a>> {
        let [value] = self.fields([name]);
        value
    }

    /// The entries of an object, in order; none when it is no object.
    pub(super) fn entries(self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        let mut children = self.children(b'{');
        std::iter::from_fn(move || {
            let key = children.next()?;
            let value = children.next()?;
            Some((key.text()?, value))
        })
    }

    /// The items of a list, in order; none when it is no list.
    pub(super) fn items(self) -> impl Iterator<Item = Json<'a>> {
        self.children(b'[')
    }

    /// What stands between the quotes of a string.
    fn inner(self) -> Option<&'a str> {
        self.text.strip_prefix('"')?.strip_suffix('"')
    }

    /// The string, if it is one.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        self.text_up_to(usize::MAX)
    }

    /// The beginning of the string, if it is one: decoding stops after `limit` bytes.
    pub(super) fn text_up_to(self, limit: usize) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        let head = &inner[..floor_boundary(inner, limit)];
        let escape = || memchr::memchr(b'\\', head.as_bytes());
        match (!self.unescaped).then(escape).flatten() {
            None => Some(Cow::Borrowed(head)),
            Some(first) => Some(Cow::Owned(unescape(inner, first, limit))),
        }
    }

    /// The string, if it is one and not empty.
    pub(super) fn some_text(self) -> Option<Cow<'a, str>> {
        self.text().filter(|text| !text.is_empty())
    }

    /// The number with its fraction cut off, if it is a number that fits.
    pub(super) fn number(self) -> Option<i64> {
        if let Ok(number) = self.text.parse::<i64>() {
            return Some(number);
        }
        self.float().map(|number| number.trunc() as i64)
    }

    /// The number, if it is one within ±9.2e18.
    pub(super) fn float(self) -> Option<f64> {
        let first = *self.text.as_bytes().first()?;
        if first != b'-' && !first.is_ascii_digit() {
            return None;
        }
        let number = self.text.parse::<f64>().ok()?;
        (number.abs() < 9.2e18).then_some(number)
    }

    /// The number, if it is written as an integer that fits.
    pub(super) fn integer(self) -> Option<i64> {
        self.text.parse::<i64>().ok()
    }
}

/// The largest char boundary of `text` not above `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Decodes the escapes of a string's inside, whose first backslash is at `first`, up to `limit` bytes.
fn unescape(inner: &str, first: usize, limit: usize) -> String {
    let mut out = String::with_capacity(inner.len().min(limit));
    out.push_str(&inner[..first]);
    let mut rest = &inner[first..];
    while out.len() < limit {
        let mut chars = rest.chars();
        match chars.next() {
            None => break,
            Some('\\') => {
                let (decoded, taken) = escape(rest);
                out.push(decoded);
                rest = &rest[taken..];
            }
            Some(plain) => {
                out.push(plain);
                rest = chars.as_str();
            }
        }
    }
    out
}

/// The character that the escape at the beginning of `rest` stands for, and the escape's length.
fn escape(rest: &str) -> (char, usize) {
    let letter = rest[1..]
        .chars()
        .next()
        .unwrap_or(char::REPLACEMENT_CHARACTER);
    let plain = match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode_escape(rest),
        other => other,
    };
    (plain, (1 + letter.len_utf8()).min(rest.len()))
}

/// The same for `\uXXXX`, with its second half where it is a pair.
fn unicode_escape(rest: &str) -> (char, usize) {
    let unit = |at: usize| {
        let text = rest.get(at..at + 6)?;
        u32::from_str_radix(text.strip_prefix("\\u")?, 16).ok()
    };
    let Some(high) = unit(0) else {
        return (char::REPLACEMENT_CHARACTER, 2.min(rest.len()));
    };
    if (0xd800..0xdc00).contains(&high)
        && let Some(low) = unit(6).filter(|low| (0xdc00..0xe000).contains(low))
    {
        let scalar = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (
            char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER),
            12,
        );
    }
    (
        char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER),
        6,
    )
}

/// Walks the inside of a container of valid JSON, value by value; commas and colons are passed over.
///
/// It also serves text that was cut off: the values before the cut are found.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Stands after the bracket `open` at the beginning of `text`; finds nothing when another thing is there.
    pub(super) fn inside(text: &'a str, open: u8) -> Self {
        let at = if text.as_bytes().first() == Some(&open) {
            1
        } else {
            text.len()
        };
        Self { text, at }
    }

    /// The next value; none at the container's end, or where the text was cut inside the value.
    pub(super) fn value(&mut self) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        while matches!(
            bytes.get(self.at),
            Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')
        ) {
            self.at += 1;
        }
        let start = self.at;
        let end = match bytes.get(start)? {
            b'}' | b']' => return None,
            b'"' => string_end(bytes, start)?,
            b'{' | b'[' => container_end(bytes, start)?,
            _ => scalar_end(bytes, start),
        };
        self.at = end;
        self.text.get(start..end).map(Json::unnoted)
    }

    /// The text from the next value on, whether or not that value is complete.
    pub(super) fn rest(&mut self) -> &'a str {
        let bytes = self.text.as_bytes();
        while matches!(
            bytes.get(self.at),
            Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')
        ) {
            self.at += 1;
        }
        self.text.get(self.at..).unwrap_or("")
    }
}

/// Where the string that begins at `start` ends (after its quote).
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        // Most of a log is long strings: eight bytes at a time until one of them matters.
        while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            if has_byte(*chunk, b'"') || has_byte(*chunk, b'\\') {
                break;
            }
            at += 8;
        }
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Whether one of eight bytes is `byte`: it is when subtracting one from the difference borrows.
fn has_byte(chunk: [u8; 8], byte: u8) -> bool {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let difference = u64::from_ne_bytes(chunk) ^ u64::from_ne_bytes([byte; 8]);
    difference.wrapping_sub(ONES) & !difference & HIGHS != 0
}

/// Where the list or object that begins at `start` ends.
fn container_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Where the number or word that begins at `start` ends.
fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while !matches!(
        bytes.get(at),
        None | Some(b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\n' | b'\r')
    ) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde::Deserialize;

    use super::*;

    /// Looks at the only value of a text: as it was noted, and as one of which nothing is.
    fn one(text: &str, look: impl Fn(Json<'_>)) {
        let found = values(text);
        let json = found.only().unwrap();
        look(json);
        look(Json::unnoted(json.raw()));
    }

    #[test]
    fn fields_are_found_whatever_stands_between() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(
            r#" {{"n":1e999,"d":{deep},"s":"\ud800","a":"x","k\u0065y":{{"q":"}}"}},"a":"y\n"}} "#
        );
        one(&text, |json| {
            let [a, key, missing] = json.fields(["a", "key", "missing"]);
            assert_eq!(a.unwrap().text().unwrap(), "y\n");
            assert_eq!(key.unwrap().field("q").unwrap().text().unwrap(), "}");
            assert!(missing.is_none());
            assert_eq!(json.field("s").unwrap().text().unwrap(), "\u{fffd}");
            assert_eq!(json.field("n").unwrap().number(), None);
            let keys: Vec<_> = json.entries().map(|(key, _)| key).collect();
            assert_eq!(keys, ["n", "d", "s", "a", "key", "a"]);
        });
    }

    /// What `serde_json` makes of a text, a raw value at a time.
    fn by_serde(text: &str) -> (Vec<&str>, bool) {
        let mut values = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let mut reader = serde_json::Deserializer::from_str(rest);
            let Ok(raw) = <&serde_json::value::RawValue>::deserialize(&mut reader) else {
                return (values, true);
            };
            values.push(raw.get());
            rest = rest[raw.get().len()..].trim_start();
        }
        (values, false)
    }

    fn agrees_with_serde(text: &str) {
        let found = values(text);
        let raw: Vec<&str> = found.iter().map(Json::raw).collect();
        assert_eq!((raw, found.unreadable_rest), by_serde(text), "{text:?}");
        for json in found.iter() {
            same_inside(json, Json::unnoted(json.raw()));
        }
    }

    /// What was noted is what a walk over the text finds, at every depth.
    fn same_inside(noted: Json<'_>, walked: Json<'_>) {
        assert_eq!(noted.raw(), walked.raw());
        for open in [b'{', b'['] {
            let mut walked = walked.children(open);
            for noted in noted.children(open) {
                same_inside(noted, walked.next().unwrap());
            }
            assert!(walked.next().is_none());
        }
    }

    const RECORD: &str = r#"{"type":"user","n":[-0.5e+7,1E2,0,[],{},[[1],[{"":null}]]],"b":[true,false],
        "long":"0123456789012345678901234567890123456789\n0123456789012345678901234\"é\u00e9\ud800","m":{"a":{"b":"c"}}}"#;

    #[test]
    fn every_cut_and_every_changed_byte_reads_as_serde_reads_it() {
        agrees_with_serde(RECORD);
        for at in 0..RECORD.len() {
            if RECORD.is_char_boundary(at) {
                agrees_with_serde(&RECORD[..at]);
                agrees_with_serde(&RECORD[at..]);
            }
            for byte in b"\"\\{}[]:,01-+.eEutfn x\x00\x1f\x7f\n" {
                let mut bytes = RECORD.as_bytes().to_vec();
                bytes[at] = *byte;
                agrees_with_serde(&String::from_utf8_lossy(&bytes));
                bytes.insert(at, *byte);
                agrees_with_serde(&String::from_utf8_lossy(&bytes));
                bytes.drain(at..at + 2);
                agrees_with_serde(&String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn a_text_of_more_values_than_are_noted_reads_the_same() {
        let many = format!("[{}0]", "0,".repeat(1 << 20));
        let text = format!(r#"{{"a":{{"b":[1]}},"many":{many},"c":{{"d":[2]}}}} {{"e":3}}"#);
        let found = values(&text);
        let [first, second] = found.iter().collect::<Vec<_>>()[..] else {
            panic!("two values")
        };
        let b = first.field("a").unwrap().field("b").unwrap();
        assert_eq!(b.items().next().unwrap().number(), Some(1));
        assert_eq!(first.field("many").unwrap().items().count(), (1 << 20) + 1);
        let d = first.field("c").unwrap().field("d").unwrap();
        assert_eq!(d.items().next().unwrap().number(), Some(2));
        assert_eq!(second.field("e").unwrap().number(), Some(3));
    }

    #[test]
    fn values_in_a_row() {
        let check = |text: &str, n: usize, rest: bool| {
            let found = values(text);
            assert_eq!((found.len(), found.unreadable_rest), (n, rest), "{text}");
        };
        check(r#"{"a":1}{"b":2}"#, 2, false);
        check(r#"{"a":1} {"b"#, 1, true);
        check(r#"1{"a":1}null"#, 3, false);
        check(r#"{"a":1}x{"b":2}"#, 1, true);
        check("", 0, false);
        check("x", 0, true);
    }

    #[test]
    fn escapes() {
        let check = |text: &str, expected: &str| {
            one(text, |json| assert_eq!(json.text().unwrap(), expected));
        };
        let up_to = |text: &str, limit: usize, expected: &str| {
            one(text, |json| {
                assert_eq!(json.text_up_to(limit).unwrap(), expected);
            });
        };
        check(r#""😀""#, "\u{1f600}");
        check(r#""\ud83dx""#, "\u{fffd}x");
        check(r#""\"\\\/\b\f\n\r\té""#, "\"\\/\u{8}\u{c}\n\r\t\u{e9}");
        up_to(r#""abc\ndef""#, 5, "abc\nd");
        up_to(r#""aéé""#, 2, "a");
    }

    #[test]
    fn strings_end_at_their_quote_wherever_it_stands() {
        for before in 0..20 {
            for between in 0..20 {
                let text = format!(r#"["{}\"{}","z"]"#, "a".repeat(before), "é".repeat(between));
                one(&text, |json| {
                    let items: Vec<_> = json.items().filter_map(Json::text).collect();
                    assert_eq!(
                        items,
                        [
                            format!("{}\"{}", "a".repeat(before), "é".repeat(between)),
                            "z".to_owned()
                        ]
                    );
                });
            }
        }
    }

    #[test]
    fn numbers_are_cut() {
        let check = |text: &str, expected: Option<i64>| {
            one(text, |json| assert_eq!(json.number(), expected, "{text}"));
        };
        check("547.8936", Some(547));
        check("-1.9", Some(-1));
        check("1e3", Some(1000));
        check("99999999999999999999", None);
        check("true", None);
        check("\"5\"", None);
    }

    #[test]
    fn a_cut_text_gives_what_stands_before_the_cut() {
        let mut cursor = Cursor::inside(r#"{"a":1,"b":{"c":"x"#, b'{');
        assert_eq!(cursor.value().unwrap().text().unwrap(), "a");
        assert_eq!(cursor.value().unwrap().number(), Some(1));
        assert_eq!(cursor.value().unwrap().text().unwrap(), "b");
        assert!(cursor.value().is_none());
        assert_eq!(cursor.rest(), r#"{"c":"x"#);
    }
}
