//! The harnesses' own settings, read the way each harness reads them: with its clamping and fallback rules.
//!
//! Nothing here parses a file. A reader of front matter, JSON or YAML hands over neutral [`Setting`]s and gets the
//! resolved limits back, with a [`Warning`] for every value that was not taken as written.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::Decimal;

pub mod netclaw;
pub mod no_mistakes;
pub mod pi_desktop;
pub mod pi_extensions;

/// One value of a settings file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Setting<'s> {
    /// The key is not there.
    #[default]
    Missing,
    /// The key is there without a value.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Decimal),
    /// Text, also when it looks like a number.
    Text(&'s str),
    /// A list or a table.
    Other,
}

impl Setting<'_> {
    /// The whole number it is, if it is a number and whole.
    fn whole(self) -> Option<i64> {
        match self {
            Self::Number(number) => number.as_whole(),
            _ => None,
        }
    }
}

impl fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("nothing"),
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Other => f.write_str("a list or table"),
        }
    }
}

/// A setting that the harness does not take as it is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The key, as the harness spells it.
    pub key: &'static str,
    /// What was written.
    pub found: String,
    /// What the harness takes instead, and by which rule.
    pub taken: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: {}", self.key, self.found, self.taken)
    }
}

/// The limits a harness makes of its settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolved<T> {
    /// The limits in force.
    pub limits: T,
    /// What was clamped or replaced, in the order of the settings.
    pub warnings: Vec<Warning>,
}
