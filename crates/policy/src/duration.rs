//! Durations as text: one way to read them, one way to print them, for the whole product.
//!
//! A duration is one or more numbers, each with its unit, from the largest unit down: `300s`, `10m`, `1h30m`,
//! `0.25s`, `30d`, `2592010000ms`. A bare number is refused, because `600` has been read as seconds and as
//! milliseconds often enough. What is finer than a millisecond is refused, never rounded to 0.
//!
//! The usual duration libraries also read calendar spans, signs, words and ISO 8601, and cut nanoseconds
//! off silently; each of these would have to be filtered out again, so the grammar is read here.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::{Decimal, Millis};

/// The units, from the largest down, in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// The longest duration that can be written: what a signed 64-bit count of milliseconds in a file can hold.
pub const LONGEST: Millis = Millis::new(i64::MAX as u64);

/// Why a text is not a duration. Displayed it is a fragment that follows the offending text.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DurationError {
    /// Nothing was written.
    Empty,
    /// A unit below a millisecond, or a fraction of one.
    Finer,
    /// `inf`, `never`, `none`: a limit that is off has a word of its own.
    Infinite,
    /// Not numbers with units at all.
    Malformed,
    /// Below zero.
    Negative,
    /// Larger units come first, each at most once, and only the last number may have a fraction.
    Order,
    /// Longer than [`LONGEST`].
    TooLong,
    /// A number without its unit.
    UnitRequired(String),
    /// A unit that is none of `d`, `h`, `m`, `s`, `ms`.
    UnknownUnit(String),
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty: expected a duration such as \"300s\", or \"off\""),
            Self::Finer => f.write_str("is finer than a millisecond: expected whole milliseconds, such as \"1ms\""),
            Self::Infinite => f.write_str("is not a duration: a limit is switched off with \"off\""),
            Self::Malformed => f.write_str("is not a duration: expected numbers with units, such as \"300s\" or \"1h30m\""),
            Self::Negative => f.write_str("is negative: expected a duration such as \"300s\", or \"off\""),
            Self::Order => f.write_str("is out of order: larger units come first, each once, and only the last number may have a fraction"),
            Self::TooLong => write!(f, "is longer than {}ms: a limit is switched off with \"off\"", LONGEST.as_u64()),
            Self::UnitRequired(number) => write!(f, "has no unit: {number}s? {number}ms?"),
            Self::UnknownUnit(unit) => write!(f, "has the unknown unit \"{unit}\": expected d, h, m, s or ms"),
        }
    }
}

impl core::error::Error for DurationError {}

/// Reads a duration such as `300s` or `1h30m`.
///
/// ```
/// use policysim_policy::{Millis, duration};
/// assert_eq!(duration::parse("1h30m"), Ok(Millis::new(5_400_000)));
/// assert_eq!(duration::parse("600").unwrap_err().to_string(), "has no unit: 600s? 600ms?");
/// ```
///
/// # Errors
///
/// One variant of [`DurationError`] per way to miss the grammar of this module.
pub fn parse(text: &str) -> Result<Millis, DurationError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if is_infinite(text) {
        return Err(DurationError::Infinite);
    }
    if let Some(rest) = text.strip_prefix('-')
        && rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return Err(DurationError::Negative);
    }
    let mut total = Millis::ZERO;
    let mut rest = text;
    let mut larger = 0;
    while !rest.is_empty() {
        let (number, unit, tail) = split(rest)?;
        let at = unit_index(number, unit)?;
        let fraction = number.contains('.');
        if at < larger || fraction && !tail.is_empty() {
            return Err(DurationError::Order);
        }
        larger = at + 1;
        total = total.plus(amount(number, UNITS[at].1)?);
        if total > LONGEST {
            return Err(DurationError::TooLong);
        }
        rest = tail;
    }
    Ok(total)
}

/// Splits the first number with its unit off.
fn split(text: &str) -> Result<(&str, &str, &str), DurationError> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let letters = rest
        .find(|c: char| !c.is_alphabetic())
        .unwrap_or(rest.len());
    let (unit, tail) = rest.split_at(letters);
    if number.is_empty() || unit.is_empty() && !tail.is_empty() {
        return Err(DurationError::Malformed);
    }
    Ok((number, unit, tail))
}

fn unit_index(number: &str, unit: &str) -> Result<usize, DurationError> {
    match unit {
        "" => Err(DurationError::UnitRequired(number.to_string())),
        "us" | "µs" | "μs" | "ns" | "ps" => Err(DurationError::Finer),
        _ => UNITS
            .iter()
            .position(|(name, _)| *name == unit)
            .ok_or_else(|| DurationError::UnknownUnit(unit.to_string())),
    }
}

fn amount(number: &str, unit_ms: u64) -> Result<Millis, DurationError> {
    let decimal = Decimal::parse(number).ok_or(DurationError::Malformed)?;
    let factor = u32::try_from(unit_ms).map_err(|_| DurationError::TooLong)?;
    let ms = decimal
        .times(factor)
        .as_whole_wide()
        .ok_or(DurationError::Finer)?;
    u64::try_from(ms)
        .map(Millis::new)
        .map_err(|_| DurationError::TooLong)
}

fn is_infinite(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']);
    [
        "inf",
        "infinite",
        "infinity",
        "never",
        "none",
        "unlimited",
        "forever",
        "∞",
    ]
    .iter()
    .any(|word| text.eq_ignore_ascii_case(word))
}

/// Prints a duration, equal ones equally: whole days as `30d`, whole hours as `6h`, otherwise whole seconds as
/// `300s`, otherwise milliseconds as `1500ms`. Minutes are not used, so that the windows of a
/// sweep (60s, 90s, 330s) read in one unit.
///
/// ```
/// use policysim_policy::{Millis, duration};
/// assert_eq!(duration::show(Millis::from_secs(21_600)), "6h");
/// assert_eq!(duration::show(Millis::from_secs(600)), "600s");
/// ```
pub fn show(span: Millis) -> String {
    let ms = span.as_u64();
    if ms == 0 {
        return "0s".to_string();
    }
    for (unit, unit_ms) in UNITS {
        if unit != "m" && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, ms: u64) {
        assert_eq!(parse(text), Ok(Millis::new(ms)), "{text}");
    }

    #[track_caller]
    fn refuse(text: &str, error: &DurationError) {
        assert_eq!(parse(text).as_ref(), Err(error), "{text}");
    }

    /// The durations of BR-36 and BR-38.
    #[test]
    fn durations_that_the_reports_write() {
        check("600s", 600_000);
        check("10m", 600_000);
        check("600000ms", 600_000);
        check("1h30m", 5_400_000);
        check("0.25s", 250);
        check("30d", 2_592_000_000);
        check("2592010000ms", 2_592_010_000);
        check("1.5h", 5_400_000);
        check("1m0.5s", 60_500);
        check("0s", 0);
    }

    #[test]
    fn what_is_no_duration_says_why() {
        refuse("600", &DurationError::UnitRequired("600".into()));
        refuse("0", &DurationError::UnitRequired("0".into()));
        refuse("1h30", &DurationError::UnitRequired("30".into()));
        refuse("", &DurationError::Empty);
        refuse("250us", &DurationError::Finer);
        refuse("0.5ms", &DurationError::Finer);
        refuse("0.0001s", &DurationError::Finer);
        refuse("inf", &DurationError::Infinite);
        refuse("-1s", &DurationError::Negative);
        refuse("fast", &DurationError::Malformed);
        refuse("5 m", &DurationError::Malformed);
        refuse("1..5s", &DurationError::Malformed);
        refuse("5min", &DurationError::UnknownUnit("min".into()));
        refuse("30m1h", &DurationError::Order);
        refuse("1m1m", &DurationError::Order);
        refuse("1.5h30m", &DurationError::Order);
        refuse("9223372036854775807ms1s", &DurationError::Order);
        refuse("9223372036854775808ms", &DurationError::TooLong);
        refuse("9223372036854775807d", &DurationError::TooLong);
    }

    #[test]
    fn equal_durations_print_equally_and_read_back() {
        for (text, shown) in [
            ("600s", "600s"),
            ("10m", "600s"),
            ("90m", "5400s"),
            ("120m", "2h"),
            ("48h", "2d"),
            ("1500ms", "1500ms"),
            ("0s", "0s"),
            ("9223372036854775807ms", "9223372036854775807ms"),
        ] {
            let span = parse(text).ok();
            assert_eq!(span.map(show).as_deref(), Some(shown));
            assert_eq!(parse(shown).ok(), span);
        }
    }
}
