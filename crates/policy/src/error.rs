//! Why a policy document is refused: a variant per cause, each naming the key.

use alloc::string::String;
use core::fmt;

use crate::duration::DurationError;

/// Why a policy document, or one value of it, is refused.
///
/// Displayed it is one line: the key, what was written, what was expected, and a hint.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PolicyError {
    /// Text that should be a duration and is none.
    Duration {
        /// The key.
        key: String,
        /// The text.
        found: String,
        /// What is wrong with it.
        error: DurationError,
    },
    /// A value of the wrong type, range or wording.
    Mismatch {
        /// The key.
        key: String,
        /// What was written.
        found: String,
        /// What may stand there.
        expected: String,
    },
    /// A key that does not exist.
    UnknownKey {
        /// The key as written.
        key: String,
        /// The known key nearest to it, if one is near.
        nearest: Option<String>,
    },
    /// A word that is neither an event kind nor a named set.
    UnknownKind {
        /// The key.
        key: String,
        /// The word.
        found: String,
        /// The known word nearest to it, if one is near.
        nearest: Option<&'static str>,
    },
    /// A preset that does not exist.
    UnknownPreset {
        /// The name as written.
        name: String,
        /// The preset nearest to it, if one is near.
        nearest: Option<&'static str>,
    },
    /// Zero, where it could mean "at once" or "never".
    Zero {
        /// The key.
        key: String,
        /// What was written.
        found: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duration { key, found, error } => write!(f, "{key}: {found} {error}"),
            Self::Mismatch {
                key,
                found,
                expected,
            } => write!(f, "{key}: {found} is not {expected}"),
            Self::UnknownKey { key, nearest } => {
                write!(f, "unknown key {key}")?;
                hint(f, nearest.as_deref())
            }
            Self::UnknownKind {
                key,
                found,
                nearest,
            } => {
                write!(
                    f,
                    "{key}: {found} is neither an event kind nor a named set (write other:{found} for an unlisted kind)"
                )?;
                hint(f, *nearest)
            }
            Self::UnknownPreset { name, nearest } => {
                write!(f, "unknown preset {name}")?;
                hint(f, *nearest)
            }
            Self::Zero { key, found } => {
                write!(
                    f,
                    "{key}: {found} is ambiguous: write \"off\" to switch it off"
                )
            }
        }
    }
}

fn hint(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    nearest.map_or(Ok(()), |name| write!(f, ", did you mean {name}?"))
}

impl core::error::Error for PolicyError {}
