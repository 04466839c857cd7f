//! From results to bytes: tables for a terminal, JSON, CSV and Markdown.
//!
//! Everything here is a pure function of a result: nothing is read, written or computed anew, so that
//! every format says the same.
//!
//! ```
//! use policysim_report::table::{Align, Table};
//! let mut table = Table::new([("idle", Align::Left), ("killed", Align::Right)]);
//! table.push(vec!["300s".to_owned(), "9".to_owned()]);
//! assert!(table.to_markdown().contains("| 300s | 9 |"));
//! ```
#![forbid(unsafe_code)]

pub mod charts;
pub mod form;
pub mod gaps;
pub mod gate;
pub mod header;
pub mod html;
pub mod settle;
pub mod sizing;
pub mod sweep;
pub mod table;
pub mod transcript;
pub mod units;

/// The version of the JSON that this crate writes.
pub const SCHEMA_VERSION: u32 = 1;

/// A cell that a spreadsheet does not read as a formula: what starts with `= + - @` or a tab gets a quote.
pub fn csv_safe(cell: &str) -> String {
    match cell.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r')
            if cell.parse::<f64>().is_err() && cell != "-" =>
        {
            format!("'{cell}")
        }
        _ => cell.to_owned(),
    }
}

fn csv_text(writer: csv::Writer<Vec<u8>>) -> Result<String, csv::Error> {
    let bytes = writer
        .into_inner()
        .map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
