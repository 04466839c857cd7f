//! Reads a source from its first byte to its last: JSON lines one by one, or one JSON document.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::sync::Arc;

use super::ImportError;
use super::json::{self, Json, Values};
use super::lines::{Line, Lines, lossy, without_mark};
use super::report::{BadLine, BadReason, Fate};
use super::source::Source;

/// Turns the records of one format into events.
pub(super) trait Translate {
    /// Takes one record (of a document: its whole object) and says what became of it.
    fn record(&mut self, record: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError>;
}

/// Reads JSON lines; memory is bounded by the longest line.
pub(super) fn read_lines(
    reader: &mut dyn BufRead,
    translator: &mut dyn Translate,
    source: &mut Source<'_>,
) -> Result<(), ImportError> {
    let mut lines = Lines::new(reader);
    let mut index = json::Index::default();
    loop {
        let offset = lines.bytes_read();
        let Some(line) = lines
            .next_line()
            .map_err(|error| unreadable(source, offset, error))?
        else {
            return Ok(());
        };
        index = read_line(&line, index, translator, source)?;
    }
}

fn read_line(
    line: &Line<'_>,
    index: json::Index,
    translator: &mut dyn Translate,
    source: &mut Source<'_>,
) -> Result<json::Index, ImportError> {
    source.report.counts.n_lines += 1;
    if line.is_blank() {
        source.report.lines.add(Fate::Ignored, 1);
        return Ok(index);
    }
    let found = Values::read(&line.text, index);
    let mut line_fate = Fate::Ignored;
    for value in found.iter() {
        if value.is_object() {
            let fate = translator.record(value, source)?;
            source.report.records.add(fate, 1);
            line_fate = line_fate.max(fate);
        }
    }
    if found.len() >= 2 {
        source.report.counts.n_joined_lines += 1;
    }
    let lone_scalar = found.len() == 1 && found.iter().any(|value| !value.is_object());
    if found.unreadable_rest || lone_scalar {
        let reason = match (found.unreadable_rest, line.ended) {
            (true, false) => BadReason::TruncatedTail,
            (true, true) => BadReason::InvalidJson,
            (false, _) => BadReason::NotAnObject,
        };
        source.report.counts.n_bad_lines += 1;
        source.report.records.add(Fate::Malformed, 1);
        source.report.quarantine(BadLine {
            line: line.number,
            offset: line.offset,
            reason,
        });
        line_fate = Fate::Malformed;
        source.gap()?;
    } else {
        source.report.invalid_utf8_lines += u64::from(line.invalid_utf8());
    }
    source.report.lines.add(line_fate, 1);
    Ok(found.into_index())
}

/// Reads a document; memory is bounded by its size.
pub(super) fn read_document(
    reader: &mut dyn BufRead,
    translator: &mut dyn Translate,
    source: &mut Source<'_>,
) -> Result<(), ImportError> {
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(source, bytes.len() as u64, error))?;
    let lines = || bytes.split_inclusive(|&byte| byte == b'\n');
    let n_lines = lines().count() as u64;
    source.report.counts.n_lines = n_lines;
    let text: Cow<'_, str> = lossy(without_mark(&bytes));
    let found = json::values(&text);
    let fate = match found.only() {
        Some(document) if document.is_object() => translator.record(document, source)?,
        _ => {
            source.report.counts.n_bad_lines = 1;
            source.report.quarantine(BadLine {
                line: 1,
                offset: 0,
                reason: BadReason::InvalidDocument,
            });
            Fate::Malformed
        }
    };
    source.report.lines.add(fate, n_lines);
    Ok(())
}

fn unreadable(source: &Source<'_>, offset: u64, error: io::Error) -> ImportError {
    ImportError::Read {
        source_name: Arc::clone(&source.report.source),
        offset,
        source: error,
    }
}
