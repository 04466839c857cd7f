//! A lenient view of JSON text: find the wanted fields, skip the rest, never fail on what nobody asked for.
//!
//! [`values`] checks the text once (with `serde_json`'s raw values, which look into no number and no escape).
//! [`Json`] then walks text that is known to be valid. A field of an unexpected type reads as absent, the last of two
//! equal keys wins, lone surrogates become U+FFFD, nesting costs no stack.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The text of one valid JSON value, without white space around it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Json<'a>(&'a str);

/// A text read as JSON values written one after the other.
pub(super) struct Values<'a> {
    /// The values, in order.
    pub(super) values: Vec<Json<'a>>,
    /// Whether something unreadable follows them.
    pub(super) unreadable_rest: bool,
}

/// The JSON values at the beginning of `text`, with optional white space around them.
pub(super) fn values(text: &str) -> Values<'_> {
    let mut found = Values {
        values: Vec::with_capacity(1),
        unreadable_rest: false,
    };
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut reader = serde_json::Deserializer::from_str(rest);
        let Ok(raw) = <&RawValue>::deserialize(&mut reader) else {
            found.unreadable_rest = true;
            break;
        };
        found.values.push(Json(raw.get()));
        rest = rest[raw.get().len()..].trim_start();
    }
    found
}

impl<'a> Json<'a> {
    /// Whether it is an object.
    pub(super) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether it is a list.
    pub(super) fn is_list(self) -> bool {
        self.0.starts_with('[')
    }

    /// Its text as written.
    pub(super) fn raw(self) -> &'a str {
        self.0
    }

    /// Whether it is `true`.
    pub(super) fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// The fields of those names; all absent when it is no object.
    pub(super) fn fields<const N: usize>(self, names: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        for (key, value) in self.entries() {
            if let Some(at) = names.iter().position(|name| key == *name) {
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
        let mut cursor = Cursor::inside(self.0, b'{');
        std::iter::from_fn(move || {
            let key = cursor.value()?;
            let value = cursor.value()?;
            Some((key.text()?, value))
        })
    }

    /// The items of a list, in order; none when it is no list.
    pub(super) fn items(self) -> impl Iterator<Item = Json<'a>> {
        let mut cursor = Cursor::inside(self.0, b'[');
        std::iter::from_fn(move || cursor.value())
    }

    /// The string, if it is one.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        self.text_up_to(usize::MAX)
    }

    /// The beginning of the string, if it is one: decoding stops after `limit` bytes.
    pub(super) fn text_up_to(self, limit: usize) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        let head = &inner[..floor_boundary(inner, limit)];
        match head.find('\\') {
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
        if let Ok(number) = self.0.parse::<i64>() {
            return Some(number);
        }
        self.float().map(|number| number.trunc() as i64)
    }

    /// The number, if it is one within ±9.2e18.
    pub(super) fn float(self) -> Option<f64> {
        let first = *self.0.as_bytes().first()?;
        if first != b'-' && !first.is_ascii_digit() {
            return None;
        }
        let number = self.0.parse::<f64>().ok()?;
        (number.abs() < 9.2e18).then_some(number)
    }

    /// The number, if it is written as an integer that fits.
    pub(super) fn integer(self) -> Option<i64> {
        self.0.parse::<i64>().ok()
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
        self.text.get(start..end).map(Json)
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

    use super::*;

    fn one(text: &str) -> Json<'_> {
        let found = values(text);
        assert!(!found.unreadable_rest, "{text}");
        assert_eq!(found.values.len(), 1, "{text}");
        found.values[0]
    }

    #[test]
    fn fields_are_found_whatever_stands_between() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(
            r#" {{"n":1e999,"d":{deep},"s":"\ud800","a":"x","k\u0065y":{{"q":"}}"}},"a":"y\n"}} "#
        );
        let json = one(&text);
        let [a, key, missing] = json.fields(["a", "key", "missing"]);
        assert_eq!(a.unwrap().text().unwrap(), "y\n");
        assert_eq!(key.unwrap().field("q").unwrap().text().unwrap(), "}");
        assert!(missing.is_none());
        assert_eq!(json.field("s").unwrap().text().unwrap(), "\u{fffd}");
        assert_eq!(json.field("n").unwrap().number(), None);
    }

    #[test]
    fn values_in_a_row() {
        let check = |text: &str, n: usize, rest: bool| {
            let found = values(text);
            assert_eq!(
                (found.values.len(), found.unreadable_rest),
                (n, rest),
                "{text}"
            );
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
        let check = |text: &str, expected: &str| assert_eq!(one(text).text().unwrap(), expected);
        check(r#""😀""#, "\u{1f600}");
        check(r#""\ud83dx""#, "\u{fffd}x");
        check(r#""\"\\\/\b\f\n\r\té""#, "\"\\/\u{8}\u{c}\n\r\t\u{e9}");
        assert_eq!(one(r#""abc\ndef""#).text_up_to(5).unwrap(), "abc\nd");
        assert_eq!(one(r#""aéé""#).text_up_to(2).unwrap(), "a");
    }

    #[test]
    fn strings_end_at_their_quote_wherever_it_stands() {
        for before in 0..20 {
            for between in 0..20 {
                let text = format!(r#"["{}\"{}","z"]"#, "a".repeat(before), "é".repeat(between));
                let items: Vec<_> = one(&text).items().filter_map(Json::text).collect();
                assert_eq!(
                    items,
                    [
                        format!("{}\"{}", "a".repeat(before), "é".repeat(between)),
                        "z".to_owned()
                    ]
                );
            }
        }
    }

    #[test]
    fn numbers_are_cut() {
        let check =
            |text: &str, expected: Option<i64>| assert_eq!(one(text).number(), expected, "{text}");
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
