//! Names taken from logs (tools, models, roles, record types), bounded.
//!
//! A name is kept as it is, but cut after [`LONGEST_NAME`] bytes (at a character), with control characters
//! and direction marks replaced: names are short words chosen by programs, and a log must not smuggle text through them.

use std::borrow::Cow;

/// The longest name that is kept whole, in bytes.
pub(super) const LONGEST_NAME: usize = 128;

/// The name as it is kept: of an absolute path (a local model's file) the last part alone.
pub(crate) fn bounded(name: &str) -> Cow<'_, str> {
    let name = without_folders(name);
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let name = &name[..end];
    if name.chars().any(steers) {
        Cow::Owned(unsteered(name))
    } else {
        Cow::Borrowed(name)
    }
}

/// `secret.gguf` of `/home/alice/models/secret.gguf`; a name with a provider in front (`a/b`) is none.
fn without_folders(name: &str) -> &str {
    let drive =
        matches!(name.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if drive || name.starts_with(['/', '\\']) || name.starts_with("~/") || name.starts_with("file:")
    {
        name.rsplit(['/', '\\'])
            .find(|part| !part.is_empty())
            .unwrap_or_default()
    } else {
        name
    }
}

/// The text on one line, without characters that change how what stands around them is shown.
pub(crate) fn unsteered(text: &str) -> String {
    text.replace(steers, "\u{fffd}")
}

/// Control characters, and those that turn the direction of writing.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{61c}')
}

/// The opaque key of a text (a session id, a path): its hash in hex; empty for an empty text.
pub(crate) fn opaque(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_at_a_character() {
        assert_eq!(bounded("Bash"), "Bash");
        assert_eq!(bounded(&"é".repeat(100)).len(), 128);
        assert_eq!(bounded(&format!("x{}", "é".repeat(100))).len(), 127);
        assert_eq!(bounded("a\nb"), "a\u{fffd}b");
        assert_eq!(bounded("\u{202e}txt.exe"), "\u{fffd}txt.exe");
    }

    #[test]
    fn of_an_absolute_path_the_last_part_is_kept() {
        assert_eq!(bounded("/home/alice/models/secret.gguf"), "secret.gguf");
        assert_eq!(bounded("C:\\Users\\alice\\tool.exe"), "tool.exe");
        assert_eq!(bounded("~/bin/tool/"), "tool");
        assert_eq!(bounded("anthropic/claude"), "anthropic/claude");
        assert_eq!(bounded("/"), "");
    }
}
