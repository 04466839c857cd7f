//! Records of `policysim watch`, read by `import/record.rs` and accounted for like our own tables.

use policysim_sim::run::{Run, Symbols};

use super::events::Closed;
use super::{Reading, TableError, TableReport};
use crate::content::{Content, Fingerprint};
use crate::import::WaitTable;
use crate::import::record::{self, LineAt, LineFate, Take};

/// Reads records into the dataset.
pub(super) fn read(
    reading: &mut Reading<'_>,
    name: &str,
    mut content: Content<'_>,
) -> Result<(TableReport, Fingerprint), TableError> {
    let mut records = Records {
        reading,
        report: TableReport::default(),
        waits: WaitTable::default(),
        closed: Closed::default(),
    };
    record::read(name, &mut content, &mut Symbols::default(), &mut records)?;
    let mut report = records.report;
    report.add_waits(&records.waits);
    records.closed.add_to(&mut report);
    Ok((report.finish(), content.finish()?))
}

/// What the records of a file held.
struct Records<'r, 'd> {
    reading: &'r mut Reading<'d>,
    report: TableReport,
    waits: WaitTable,
    closed: Closed,
}

impl Take for Records<'_, '_> {
    type Error = TableError;

    fn line(&mut self, line: LineAt) {
        let lines = &mut self.report.lines;
        match line.fate {
            LineFate::Imported => lines.imported += 1,
            LineFate::Ignored => lines.ignored += 1,
            LineFate::Unrecognised => lines.unrecognised += 1,
            LineFate::Malformed(reason) => {
                self.report
                    .malformed(line.number, line.offset, reason.to_owned());
            }
        }
    }

    fn run(
        &mut self,
        run: &Run,
        symbols: &Symbols,
        late_ms: Option<u64>,
    ) -> Result<(), TableError> {
        for wait in run.events.iter().filter_map(|event| event.wait) {
            self.waits.add(wait);
        }
        self.closed.add(run);
        if let Some(late_ms) = late_ms {
            self.report.warnings.push(format!(
                "{}: the recorded kill came {late_ms} ms after its own deadline, because watch did not run; the record \
                 is cut at the deadline",
                run.name
            ));
        }
        if self.reading.request.selects(run.started_at_ms) {
            self.reading.writer.push(run, symbols)?;
        }
        Ok(())
    }
}
