//! Samples tables: one duration per row, in no order.

use std::collections::HashSet;
use std::sync::Arc;

use policysim_sim::run::{Wait, WaitKind};

use super::cells;
use super::rows::{self, Row};
use super::{Reading, TableError, TableReport};
use crate::content::{Content, Fingerprint};
use crate::import::WaitTable;
use crate::samples::Sample;
use crate::store::Cell;
use crate::walk::Found;

/// The column of durations, and the name it must not have.
pub(super) const DURATION: &str = "duration_ms";
pub(super) const UNITLESS: &str = "duration";

const COLUMNS: [&str; 8] = [
    "kind", DURATION, "censored", "run", "role", "model", "tool", UNITLESS,
];

/// Reads a samples table into the dataset.
pub(super) fn read(
    reading: &mut Reading<'_>,
    file: &Found,
    name: &str,
    content: Content<'_>,
) -> Result<(TableReport, Fingerprint), TableError> {
    let source: Arc<str> = Arc::from(name);
    let mut shared = Shared::default();
    let mut waits = WaitTable::default();
    let mut report = TableReport::default();
    let writer = &mut *reading.writer;
    let mut each = |row: Row, report: &mut TableReport| {
        match row
            .cells
            .and_then(|cells| sample(&source, &cells, &mut shared))
        {
            Ok(sample) => {
                waits.add(Wait {
                    kind: sample.kind,
                    ms: sample.duration_ms,
                });
                report.lines.imported += 1;
                writer.push_sample(sample)?;
            }
            Err(reason) => report.malformed(row.line, row.offset, reason),
        }
        Ok(())
    };
    let fingerprint = rows::for_each(
        file,
        content,
        reading.cancel,
        &COLUMNS,
        &mut report,
        &mut each,
    )?;
    report.add_waits(&waits);
    Ok((report.finish(), fingerprint))
}

/// Texts that many samples share.
#[derive(Default)]
struct Shared(HashSet<Arc<str>>);

impl Shared {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&text));
        text
    }
}

fn sample(source: &Arc<str>, cells: &[Cell], shared: &mut Shared) -> Result<Sample, String> {
    let [kind, duration, censored, run, role, model, tool, unitless] = cells else {
        return Err("the row has no cells".to_owned());
    };
    let kind = cells::name(kind);
    let kind = WaitKind::from_name(&kind).ok_or_else(|| {
        super::unknown_name("kind", &kind, WaitKind::ALL.into_iter().map(WaitKind::name))
    })?;
    let duration_ms = cells::whole_ms(DURATION, duration)?.ok_or_else(|| {
        if *unitless == Cell::Missing {
            format!("{DURATION} is missing")
        } else {
            format!("column {UNITLESS} has no unit: name it {DURATION} and give whole milliseconds")
        }
    })?;
    Ok(Sample {
        source: Arc::clone(source),
        kind,
        duration_ms,
        censored: cells::truth("censored", censored)?,
        run: shared.text(&cells::opaque_label(&cells::name(run))),
        role: shared.text(&cells::name(role)),
        model: shared.text(&cells::name(model)),
        tool: shared.text(&cells::name(tool)),
    })
}
