//! Rows of a table, whatever it is stored as: each a list of cells in the order of the columns asked for.

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::content::{Content, Fingerprint};
use crate::store::{Cell, ForeignTable, Table};
use crate::walk::Found;

use super::{TableError, TableReport};

/// A row and where it stands.
pub(super) struct Row {
    /// Its line, from 1; in a Parquet table its row.
    pub(super) line: u64,
    /// Offset of its first byte; 0 in a Parquet table.
    pub(super) offset: u64,
    /// Its cells, or why it has none.
    pub(super) cells: Result<Vec<Cell>, String>,
}

/// Whether a content that begins so is a Parquet file.
pub(super) fn is_parquet(head: &[u8]) -> bool {
    head.starts_with(b"PAR1")
}

/// The columns of a Parquet file.
pub(super) fn parquet_columns(file: &Found) -> Result<Vec<String>, String> {
    let table =
        ForeignTable::open(&Table::File(file.path.clone())).map_err(|error| error.to_string())?;
    Ok(table.columns().to_vec())
}

/// The columns of a CSV header, or the keys of the first JSON line; none when it is neither.
pub(super) fn text_columns(head: &[u8]) -> Option<Vec<String>> {
    let first = std::str::from_utf8(first_line(head)?).ok()?.trim();
    if first.starts_with('{') {
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(first).ok()?;
        return Some(object.keys().cloned().collect());
    }
    csv_cells(first)
        .ok()
        .map(|cells| cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

/// The first line that is not blank, without what surrounds it.
fn first_line(head: &[u8]) -> Option<&[u8]> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty())
}

/// Gives every row of the content to `each`, restricted to `columns` (a column that is not there is missing in
/// every row), and counts header and blank lines as ignored.
pub(super) fn for_each(
    file: &Found,
    mut content: Content<'_>,
    cancel: &AtomicBool,
    columns: &[&str],
    report: &mut TableReport,
    each: &mut dyn FnMut(Row, &mut TableReport) -> Result<(), TableError>,
) -> Result<Fingerprint, TableError> {
    if is_parquet(content.head()) {
        let fingerprint = content.finish()?;
        for_each_parquet(file, cancel, columns, report, each)?;
        return Ok(fingerprint);
    }
    let is_json = first_line(content.head()).is_some_and(|line| line.starts_with(b"{"));
    if let Some(there) = text_columns(content.head()) {
        report.warnings.extend(unread(&there, columns));
    }
    let mut places: Option<Vec<Option<usize>>> = None;
    let mut buffer = Vec::new();
    let (mut line, mut offset) = (0, 0);
    loop {
        buffer.clear();
        let n = content.read_until(b'\n', &mut buffer)?;
        if n == 0 {
            return Ok(content.finish()?);
        }
        line += 1;
        let start = offset;
        offset += n as u64;
        let bytes = if line == 1 {
            buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&buffer)
        } else {
            &buffer
        };
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            report.lines.ignored += 1;
            continue;
        }
        let cells = if is_json || text.trim_start().starts_with('{') {
            json_cells(text, columns)
        } else if let Some(places) = &places {
            csv_cells(text).map(|cells| pick(cells, places))
        } else {
            let header = csv_cells(text).unwrap_or_default();
            if let Some(twice) = named_twice(&header, columns) {
                let reason = format!("line {line} names the column {twice} twice");
                return Err(TableError::Read(io::Error::other(reason)));
            }
            places = Some(places_of(&header, columns));
            report.lines.ignored += 1;
            continue;
        };
        each(
            Row {
                line,
                offset: start,
                cells,
            },
            report,
        )?;
    }
}

fn for_each_parquet(
    file: &Found,
    cancel: &AtomicBool,
    columns: &[&str],
    report: &mut TableReport,
    each: &mut dyn FnMut(Row, &mut TableReport) -> Result<(), TableError>,
) -> Result<(), TableError> {
    // A table that does not read is that file's loss alone.
    let damaged = |error: crate::error::TelemetryError| TableError::Read(io::Error::other(error));
    let table = ForeignTable::open(&Table::File(file.path.clone())).map_err(damaged)?;
    report.warnings.extend(unread(table.columns(), columns));
    let there: Vec<String> = columns
        .iter()
        .filter(|name| table.columns().iter().any(|column| column == *name))
        .map(|name| (*name).to_owned())
        .collect();
    let places: Vec<Option<usize>> = columns
        .iter()
        .map(|name| there.iter().position(|column| column == name))
        .collect();
    let mut line = 0;
    for group in 0..table.len() {
        if cancel.load(Ordering::Relaxed) {
            return Err(TableError::Other(crate::error::TelemetryError::Cancelled));
        }
        for cells in table.read(group, &there).map_err(damaged)? {
            line += 1;
            let cells = places
                .iter()
                .map(|place| {
                    place
                        .and_then(|at| cells.get(at).cloned())
                        .unwrap_or(Cell::Missing)
                })
                .collect();
            each(
                Row {
                    line,
                    offset: 0,
                    cells: Ok(cells),
                },
                report,
            )?;
        }
    }
    Ok(())
}

/// What to say of the columns that nothing reads: how many, and which of ours one may have been meant to be. Their
/// names are not repeated, because nothing is known of what a foreign table holds.
fn unread(there: &[String], columns: &[&str]) -> Option<String> {
    let there: Vec<&str> = there.iter().map(|name| name.trim()).collect();
    let others: Vec<&str> = there
        .iter()
        .copied()
        .filter(|name| !columns.contains(name))
        .collect();
    // Names without a unit are read to complain about them: nobody is told to write one.
    let unitless =
        |name: &str| name == super::samples::UNITLESS || super::events::UNITLESS.contains(&name);
    let missing = || {
        let names = columns.iter().copied();
        names.filter(|name| !there.contains(name) && !unitless(name))
    };
    let mut meant: Vec<&str> = others
        .iter()
        .filter_map(|name| policysim_policy::nearest(name, missing()))
        .collect();
    meant.sort_unstable();
    meant.dedup();
    let n = match others.len() {
        0 => return None,
        1 => "one column has a name that is not read".to_owned(),
        n => format!("{n} columns have names that are not read"),
    };
    Some(match meant.as_slice() {
        [] => n,
        meant => format!("{n}; perhaps {} was meant", meant.join(", ")),
    })
}

/// The first of `columns` that the header names more than once: which of them is meant nobody can tell.
fn named_twice<'c>(header: &[String], columns: &[&'c str]) -> Option<&'c str> {
    let times = |name: &str| header.iter().filter(|column| column.trim() == name).count();
    columns.iter().copied().find(|name| times(name) > 1)
}

/// Where each of `columns` stands in the header.
fn places_of(header: &[String], columns: &[&str]) -> Vec<Option<usize>> {
    columns
        .iter()
        .map(|name| header.iter().position(|column| column.trim() == *name))
        .collect()
}

fn pick(mut cells: Vec<String>, places: &[Option<usize>]) -> Vec<Cell> {
    places
        .iter()
        .map(|place| match place.and_then(|at| cells.get_mut(at)) {
            Some(text) if !text.is_empty() => Cell::Text(std::mem::take(text)),
            _ => Cell::Missing,
        })
        .collect()
}

/// The fields of one CSV line. A field never spans lines here, so that a lost quote costs its own line only.
fn csv_cells(line: &str) -> Result<Vec<String>, String> {
    if !line.contains('"') {
        return Ok(line.split(',').map(ToOwned::to_owned).collect());
    }
    if !line
        .bytes()
        .filter(|&byte| byte == b'"')
        .count()
        .is_multiple_of(2)
    {
        return Err("a quote is not closed on its line".to_owned());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .buffer_capacity(line.len())
        .from_reader(line.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) => Ok(record.iter().map(ToOwned::to_owned).collect()),
        _ => Err("no CSV record".to_owned()),
    }
}

fn json_cells(line: &str, columns: &[&str]) -> Result<Vec<Cell>, String> {
    let mut object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line.trim()).map_err(|_| "no JSON object".to_owned())?;
    Ok(columns
        .iter()
        .map(|name| object.remove(*name).map_or(Cell::Missing, json_cell))
        .collect())
}

fn json_cell(value: serde_json::Value) -> Cell {
    match value {
        serde_json::Value::Null => Cell::Missing,
        serde_json::Value::Bool(yes) => Cell::Bool(yes),
        serde_json::Value::String(text) if text.is_empty() => Cell::Missing,
        serde_json::Value::String(text) => Cell::Text(text),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cell::Integer(whole),
            (None, Some(number)) => Cell::Number(number),
            (None, None) => Cell::Other,
        },
        serde_json::Value::Array(_) | serde_json::Value::Object(_) => Cell::Other,
    }
}
