//! Instants as logs write them, as milliseconds since the Unix epoch.

use super::json::Json;

/// A readable stamp.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stamp {
    /// Milliseconds since the Unix epoch; digits below are cut.
    pub(super) ms: i64,
    /// Whether a small number was taken for seconds.
    pub(super) from_seconds: bool,
}

/// Numbers below this are seconds (in ms they would lie before March 1973), from it on ms.
const SECONDS_BELOW: f64 = 1e11;

/// Stamps beyond ±275,000 years are not readable; this keeps differences far from overflow.
const FARTHEST_MS: f64 = 8.64e15;

/// Reads a stamp: ISO text that ends in `Z` or an offset, epoch milliseconds or seconds as a number or as digits.
pub(super) fn stamp(value: Json<'_>) -> Option<Stamp> {
    if let Some(number) = value.float() {
        return from_number(number);
    }
    let text = value.text_up_to(64)?;
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return from_number(text.parse().ok()?);
    }
    let ms = from_iso(text)?;
    Some(Stamp {
        ms,
        from_seconds: false,
    })
}

/// The stamp's milliseconds.
pub(super) fn millis(value: Option<Json<'_>>) -> Option<i64> {
    stamp(value?).map(|stamp| stamp.ms)
}

fn from_number(number: f64) -> Option<Stamp> {
    let from_seconds = number.abs() < SECONDS_BELOW;
    let ms = if from_seconds {
        number * 1000.0
    } else {
        number
    };
    (ms.abs() <= FARTHEST_MS).then_some(Stamp {
        ms: ms.floor() as i64,
        from_seconds,
    })
}

/// `2026-03-02T09:00:00.123456Z` and its variants (blank for `T`, `+02:00`, `+0200`, `+02`, comma for the point).
fn from_iso(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0_i64, |sum, b| {
            b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0'))
        })
    };
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|b| any.contains(b));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 60 || !(1..=12).contains(&month) {
        return None;
    }
    if day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let mut at = 19;
    let mut ms = 0;
    if is(at, b".,") {
        at += 1;
        let first = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let kept = number(first, at.min(first + 3))?;
        ms = match at - first {
            0 => return None,
            1 => kept * 100,
            2 => kept * 10,
            _ => kept,
        };
    }
    let offset_min = match (bytes.get(at)?, bytes.len() - at) {
        (b'Z' | b'z', 1) => 0,
        (sign @ (b'+' | b'-'), 3 | 5 | 6) => {
            let minutes = match bytes.len() - at {
                3 => 0,
                5 => number(at + 3, at + 5)?,
                _ if is(at + 3, b":") => number(at + 4, at + 6)?,
                _ => return None,
            };
            let hours = number(at + 1, at + 3)?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            let size = hours * 60 + minutes;
            if *sign == b'-' { -size } else { size }
        }
        _ => return None,
    };
    let days = days_from_epoch(year, month, day);
    Some((((days * 24 + hour) * 60 + minute - offset_min) * 60 + second.min(59)) * 1000 + ms)
}

/// Days of that month in the proleptic Gregorian calendar.
fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01, counting years from March so that the leap day comes last.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::json::values;
    use super::*;

    fn read(text: &str) -> Option<i64> {
        millis(values(text).only())
    }

    #[test]
    fn agrees_with_jiff() {
        for text in [
            "2026-03-02T09:00:00.000Z",
            "2026-03-02T09:00:00Z",
            "2024-02-29T23:59:59.999999+02:00",
            "1969-12-31T23:59:59.5Z",
            "2000-12-31T00:00:00.1-11:30",
            "2026-03-02 09:00:00.12Z",
            "2026-03-02T10:00:16+01:00",
        ] {
            let expected: jiff::Timestamp = text.parse().unwrap();
            assert_eq!(
                read(&format!("\"{text}\"")),
                Some(expected.as_millisecond()),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_and_digits() {
        assert_eq!(read("1772442010000"), Some(1_772_442_010_000));
        assert_eq!(read("1772442010000.9"), Some(1_772_442_010_000));
        assert_eq!(read("\"1772442012000\""), Some(1_772_442_012_000));
        assert_eq!(read("1772442014"), Some(1_772_442_014_000));
        assert!(
            stamp(values("1772442014").only().unwrap())
                .unwrap()
                .from_seconds
        );
    }

    #[test]
    fn unreadable() {
        for text in [
            "null",
            "true",
            "\"\"",
            "\"not-a-date\"",
            "\"2026-03-02\"",
            "\"2026-03-02T09:00:00\"",
            "\"2026-02-30T09:00:00Z\"",
            "\"2026-13-02T09:00:00Z\"",
            "\"2026-03-02T09:00:00.Z\"",
            "\"2026-03-02T09:00:00+1\"",
            "1e999",
            "1e18",
            "{}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
