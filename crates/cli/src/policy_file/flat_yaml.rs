//! The few top-level `key: value` lines that matter in a YAML file.
//!
//! The harness files read here are YAML, but only one to three plain scalars in each bear on a policy. Everything else is
//! passed over; a line that could change what those keys mean, and is not understood, is refused with its number.

use super::toml_document::Fault;

/// One scalar of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Scalar<'t> {
    /// The key.
    pub(crate) key: &'t str,
    /// The value without quotes and comment; empty when there is none.
    pub(crate) value: &'t str,
    /// Its line, counted from 1.
    pub(crate) line: usize,
}

/// The lines of Markdown front matter with their numbers; `None` when the text does not begin with `---`.
pub(crate) fn front_matter(text: &str) -> Option<Result<Vec<(usize, &str)>, Fault>> {
    let mut lines = numbered(text);
    let (_, first) = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut inside = Vec::new();
    for (number, line) in lines {
        if line.trim_end() == "---" {
            return Some(Ok(inside));
        }
        inside.push((number, line));
    }
    Some(Err(Fault {
        line: 1,
        message: "front matter has no closing ---".to_owned(),
    }))
}

/// Lines with their numbers from 1, without a byte order mark.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// The scalars of the wanted keys, in the order of the file.
///
/// # Errors
///
/// A wanted key that stands twice or whose value is not a plain or quoted scalar; a top-level line that is neither a
/// key, a list item, a comment nor a document mark.
pub(crate) fn scalars<'t>(
    lines: impl IntoIterator<Item = (usize, &'t str)>,
    wanted: &[&str],
) -> Result<Vec<Scalar<'t>>, Fault> {
    let mut found: Vec<Scalar<'t>> = Vec::new();
    // The key whose value goes on in indented lines, if it is one that matters.
    let mut open: Option<Scalar<'t>> = None;
    for (line, text) in lines {
        let fault = |message: String| Fault { line, message };
        let is_blank = text.trim().is_empty() || text.trim_start().starts_with('#');
        if is_blank || ["---", "..."].contains(&text.trim_end()) {
            continue;
        }
        if text.starts_with([' ', '\t']) || text.starts_with("- ") || text == "-" {
            if let Some(scalar) = open {
                return Err(fault(format!("{}: expected one plain value", scalar.key)));
            }
            continue;
        }
        let Some((key, value)) = split_key(text) else {
            return Err(fault(format!("expected `key: value`, found {text:?}")));
        };
        open = None;
        if !wanted.contains(&key) {
            continue;
        }
        if found.iter().any(|earlier| earlier.key == key) {
            return Err(fault(format!("{key} stands twice")));
        }
        let value = scalar(value)
            .ok_or_else(|| fault(format!("{key}: {} is not one plain value", value.trim())))?;
        let scalar = Scalar { key, value, line };
        open = Some(scalar);
        found.push(scalar);
    }
    Ok(found)
}

/// Splits `key: value`; quotes around the key are dropped.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let at = text.find(": ").or_else(|| {
        text.trim_end()
            .ends_with(':')
            .then(|| text.trim_end().len() - 1)
    })?;
    let key = unquote(text[..at].trim())?;
    Some((key, text.get(at + 1..).unwrap_or("")))
}

/// A plain or quoted value without its comment; `None` for every other kind of YAML value.
fn scalar(text: &str) -> Option<&str> {
    let text = text.trim();
    if let Some(quote @ ('"' | '\'')) = text.chars().next() {
        let end = text[1..].find(quote)? + 1;
        let rest = text[end + 1..].trim();
        let inner = &text[1..end];
        let plain = !inner.contains('\\') && (rest.is_empty() || rest.starts_with('#'));
        return plain.then_some(inner);
    }
    let value = match text.find(" #") {
        Some(comment) => text[..comment].trim_end(),
        None if text.starts_with('#') => "",
        None => text,
    };
    let special = ['{', '[', '&', '*', '!', '|', '>', '@', '%', '`', '?'];
    (!value.starts_with(special)).then_some(value)
}

fn unquote(text: &str) -> Option<&str> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].strip_suffix(quote),
        _ => Some(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> Result<Vec<(&str, &str, usize)>, String> {
        scalars(numbered(text), &["a", "b"])
            .map(|found| found.iter().map(|s| (s.key, s.value, s.line)).collect())
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn plain_and_quoted_scalars() {
        let text = "# head\na: 30m # note\nother:\n  a: 1\n  - x\nlist:\n- y\n'b': \"x # y\"\n";
        assert_eq!(read(text), Ok(vec![("a", "30m", 2), ("b", "x # y", 8)]));
        assert_eq!(read("a:\n"), Ok(vec![("a", "", 1)]));
        assert_eq!(read("\u{feff}a: 1\r\n"), Ok(vec![("a", "1", 1)]));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        assert_eq!(
            read("x: 1\na: {b: 1}").unwrap_err(),
            "2: a: {b: 1} is not one plain value"
        );
        assert_eq!(
            read("a: |\n  text").unwrap_err(),
            "1: a: | is not one plain value"
        );
        assert_eq!(
            read("a:\n  text").unwrap_err(),
            "2: a: expected one plain value"
        );
        assert_eq!(read("a: 1\na: 2").unwrap_err(), "2: a stands twice");
        assert_eq!(
            read("free text").unwrap_err(),
            "1: expected `key: value`, found \"free text\""
        );
        assert_eq!(
            read("a: \"x\\n\"").unwrap_err(),
            "1: a: \"x\\n\" is not one plain value"
        );
    }

    #[test]
    fn front_matter_ends_at_its_mark() {
        let lines = front_matter("---\na: 1\n---\n# Body\n").unwrap().unwrap();
        assert_eq!(lines, [(2, "a: 1")]);
        assert!(front_matter("# Body\n").is_none());
        assert!(front_matter("---\na: 1\n").unwrap().is_err());
    }
}
