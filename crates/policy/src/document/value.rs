//! One value of a policy document, whatever the file format it came from.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::Decimal;

/// One value of a policy document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A number that is not whole; no key takes one, so that none is rounded unseen.
    Fraction(Decimal),
    /// A whole number.
    Integer(i64),
    /// Values in order.
    List(Vec<Value>),
    /// No value (JSON only): the key counts as not written.
    Null,
    /// Named values in order.
    Table(Vec<(String, Value)>),
    /// Text: durations, words, names.
    Text(String),
}

impl Value {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list of texts.
    pub fn texts(items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::List(items.into_iter().map(Self::text).collect())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl fmt::Display for Value {
    /// The value as TOML writes it in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Fraction(number) => write!(f, "{number}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Self::Null => f.write_str("null"),
            Self::Table(entries) if entries.is_empty() => f.write_str("{}"),
            Self::Table(entries) => {
                for (i, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if i == 0 { "{ " } else { ", " })?;
                    write_key(f, key)?;
                    write!(f, " = {value}")?;
                }
                f.write_str(" }")
            }
            Self::Text(text) => write_text(f, text),
        }
    }
}

fn write_key(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !key.is_empty() && key.bytes().all(bare) {
        f.write_str(key)
    } else {
        write_text(f, key)
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for letter in text.chars() {
        match letter {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            letter if (letter as u32) < 0x20 || letter == '\u{7f}' => {
                write!(f, "\\u{:04X}", letter as u32)?;
            }
            letter => write!(f, "{letter}")?,
        }
    }
    f.write_str("\"")
}
