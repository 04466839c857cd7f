//! What a cell has to be: durations, ids, names. Reasons never repeat the cell.

use policysim_policy::CallId;

use crate::import::{bounded, opaque};
use crate::store::Cell;

/// The largest float that still counts whole milliseconds exactly.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Whole milliseconds, not negative; none where the cell is missing.
pub(super) fn whole_ms(column: &str, cell: &Cell) -> Result<Option<u64>, String> {
    match signed(column, cell)? {
        None => Ok(None),
        Some(ms) => u64::try_from(ms)
            .map(Some)
            .map_err(|_| format!("{column} is negative")),
    }
}

/// A whole number of milliseconds of either sign.
pub(super) fn signed(column: &str, cell: &Cell) -> Result<Option<i64>, String> {
    let fractional = || format!("{column} is not a whole number of milliseconds");
    let number = match cell {
        Cell::Missing => return Ok(None),
        Cell::Integer(whole) => return Ok(Some(*whole)),
        Cell::Number(number) => *number,
        Cell::Text(text) => {
            let text = text.trim();
            if let Ok(whole) = text.parse::<i64>() {
                return Ok(Some(whole));
            }
            text.parse::<f64>().map_err(|_| {
                format!(
                    "{column} is no number of milliseconds (write a whole number without a unit)"
                )
            })?
        }
        Cell::Bool(_) | Cell::Other => return Err(fractional()),
    };
    // Tools that know no missing integers write whole numbers as 12.0.
    if number.is_finite() && number.fract() == 0.0 && number.abs() <= LARGEST_WHOLE {
        Ok(Some(number as i64))
    } else {
        Err(fractional())
    }
}

/// True or false; a missing cell is false.
pub(super) fn truth(column: &str, cell: &Cell) -> Result<bool, String> {
    let text = match cell {
        Cell::Missing | Cell::Integer(0) => return Ok(false),
        Cell::Bool(yes) => return Ok(*yes),
        Cell::Integer(1) => return Ok(true),
        Cell::Text(text) => text.trim().to_ascii_lowercase(),
        Cell::Integer(_) | Cell::Number(_) | Cell::Other => String::new(),
    };
    match text.as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err(format!("{column} is neither true nor false")),
    }
}

/// A name or label: text, bounded like the names of logs, or a number as its digits.
pub(super) fn name(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => bounded(text.trim()).into_owned(),
        Cell::Integer(number) => number.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Bool(yes) => yes.to_string(),
        Cell::Missing | Cell::Other => String::new(),
    }
}

/// The id of an open thing: a number is taken as it is, a text is folded.
pub(super) fn call_id(cell: &Cell) -> CallId {
    match cell {
        Cell::Integer(number) => CallId::new(*number as u64),
        Cell::Text(text) => {
            let text = text.trim();
            text.parse::<i64>().map_or_else(
                |_| CallId::from_text(text),
                |number| CallId::new(number as u64),
            )
        }
        Cell::Missing | Cell::Number(_) | Cell::Bool(_) | Cell::Other => CallId::NONE,
    }
}

/// A label as it may appear in names: itself where it is a plain word, else its hash.
pub(super) fn opaque_label(label: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    if label.is_empty() || (label.len() <= 64 && label.chars().all(plain)) {
        label.to_owned()
    } else {
        format!("~{}", opaque(label))
    }
}
