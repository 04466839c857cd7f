//! Grids and lists of candidate values: `60s..900s/30s`, `5m,10m,off`, `20..80/20`, `[all,-status]`.

use policysim_policy::Millis;
use policysim_policy::document::Value;
use policysim_policy::duration::{self, DurationError};
use thiserror::Error;

/// The most values that one axis may have.
pub const MAX_VALUES: usize = 100_000;

/// Why a grid cannot be read.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum GridError {
    /// Nothing between two commas, or no text at all.
    #[error("empty value in \"{0}\", expected for example 60s..900s/30s or 5m,10m,off")]
    Empty(String),
    /// A range without a step.
    #[error("range \"{0}\" has no step, expected FIRST..LAST/STEP, for example 60s..900s/30s")]
    NoStep(String),
    /// The range runs backwards.
    #[error("range \"{0}\" is reversed, expected its first value to be at most its last")]
    Reversed(String),
    /// The step is zero.
    #[error("range \"{0}\" has a step of zero, expected a positive step")]
    ZeroStep(String),
    /// Both ends and the step are not all durations or all whole numbers.
    #[error("range \"{range}\": {error}")]
    Bound {
        /// The range as written.
        range: String,
        /// What is wrong with one of its values: `"600" has no unit: 600s? 600ms?`.
        error: String,
    },
    /// More values than one axis may have.
    #[error("grid \"{0}\" has more than {MAX_VALUES} values")]
    TooMany(String),
}

/// The values of a grid: ranges (both ends included where the step meets them) and single values,
/// separated by commas, in the order written, repeated values once.
///
/// A list of event kinds is one value in square brackets. Whole numbers and durations do not mix
/// within a range; whether a value fits its key is the policy document's to say.
///
/// ```
/// use policysim_sim::grid;
/// let values = grid::parse("60s..180s/60s,off").unwrap();
/// let texts: Vec<String> = values.iter().map(grid::plain).collect();
/// assert_eq!(texts, ["60s", "120s", "180s", "off"]);
/// ```
///
/// # Errors
/// One variant per cause, each naming the text and what was expected.
pub fn parse(text: &str) -> Result<Vec<Value>, GridError> {
    let mut values = Vec::new();
    for part in parts(text) {
        let part = part.trim();
        if part.is_empty() {
            return Err(GridError::Empty(text.to_owned()));
        }
        match part.split_once("..") {
            None => push(&mut values, single(part)),
            Some((first, rest)) => {
                let (last, step) = rest
                    .split_once('/')
                    .ok_or_else(|| GridError::NoStep(part.to_owned()))?;
                let before = values.len();
                range(&mut values, part, [first.trim(), last.trim(), step.trim()])?;
                // the values of one range differ, so that only those before it can be repeated
                let (known, new) = values.split_at(before);
                let repeated: Vec<bool> = new.iter().map(|value| known.contains(value)).collect();
                let mut repeated = repeated.into_iter();
                let mut place = 0;
                values.retain(|_| {
                    place += 1;
                    place <= before || repeated.next() != Some(true)
                });
            }
        }
        if values.len() > MAX_VALUES {
            return Err(GridError::TooMany(text.to_owned()));
        }
    }
    Ok(values)
}

/// A value as a person writes it in a grid, which [`single`] reads back: text without its quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// The text between commas that are not inside square brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found
}

/// A written value: a whole number, a word of truth, a list in brackets, or text for the key to read.
pub fn single(text: &str) -> Value {
    let listed = text
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'));
    if let Some(items) = listed {
        return Value::texts(
            items
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty()),
        );
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => {
            if let Ok(number) = text.parse::<i64>() {
                return Value::Integer(number);
            }
            // Equal durations print equally, so that 60s and 1m are one value.
            match duration::parse(text) {
                Ok(span) => Value::Text(duration::show(span)),
                Err(_) => Value::text(text),
            }
        }
    }
}

fn push(values: &mut Vec<Value>, value: Value) {
    if !values.contains(&value) {
        values.push(value);
    }
}

fn range(values: &mut Vec<Value>, written: &str, ends: [&str; 3]) -> Result<(), GridError> {
    let whole = ends.map(|text| text.parse::<u64>().ok());
    let (bounds, make): ([u64; 3], fn(u64) -> Value) =
        if let [Some(first), Some(last), Some(step)] = whole {
            ([first, last, step], |number| {
                Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
            })
        } else {
            let mut bounds = [0; 3];
            for (bound, text) in bounds.iter_mut().zip(ends) {
                let span =
                    duration::parse(text).map_err(|error: DurationError| GridError::Bound {
                        range: written.to_owned(),
                        error: format!("\"{text}\" {error}"),
                    })?;
                *bound = span.as_u64();
            }
            (bounds, |ms| Value::Text(duration::show(Millis::new(ms))))
        };
    let [first, last, step] = bounds;
    if first > last {
        return Err(GridError::Reversed(written.to_owned()));
    }
    if step == 0 {
        return Err(GridError::ZeroStep(written.to_owned()));
    }
    if (last - first) / step >= MAX_VALUES as u64 {
        return Err(GridError::TooMany(written.to_owned()));
    }
    let mut value = first;
    loop {
        values.push(make(value));
        match value.checked_add(step) {
            Some(next) if next <= last => value = next,
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = parse(text).unwrap().iter().map(plain).collect();
        assert_eq!(found, expected, "{text}");
    }

    fn refuse(text: &str, words: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }

    #[test]
    fn ranges_include_both_ends_where_the_step_meets_them() {
        check("10s..30s/10s", &["10s", "20s", "30s"]);
        check("10s..35s/10s", &["10s", "20s", "30s"]);
        check("20..80/20", &["20", "40", "60", "80"]);
        check("10s..10s/1s", &["10s"]);
    }

    #[test]
    fn lists_keep_their_order_and_say_each_value_once() {
        check("off,5m,300s,all", &["off", "300s", "all"]);
        assert_eq!(
            parse("[all,-status],deltas").unwrap(),
            [Value::texts(["all", "-status"]), Value::text("deltas")]
        );
        check("[all, -status],deltas", &["[all,-status]", "deltas"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        refuse("", "empty value");
        refuse("1s,,2s", "empty value");
        refuse("60s..900s", "no step");
        refuse("900s..60s/30s", "reversed");
        refuse("60s..900s/0s", "step of zero");
        refuse("60..900s/30s", "\"60\" has no unit");
        refuse("1ms..1d/1ms", "more than 100000 values");
    }
}
