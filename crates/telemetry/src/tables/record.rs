//! Records of `policysim watch`, read by `import/record.rs` and accounted for like our own tables.

use policysim_sim::run::Symbols;

use super::events::Closed;
use super::{Reading, TableError, TableReport};
use crate::content::{Content, Fingerprint};
use crate::import::WaitTable;
use crate::import::record::{self, LineAt, LineFate};

/// Reads records into the dataset.
pub(super) fn read(
    reading: &mut Reading<'_>,
    name: &str,
    mut content: Content<'_>,
) -> Result<(TableReport, Fingerprint), TableError> {
    let mut report = TableReport::default();
    let mut waits = WaitTable::default();
    let mut closed = Closed::default();
    let mut warnings = Vec::new();
    record::read::<TableError>(
        name,
        &mut content,
        &mut Symbols::default(),
        &mut |line| count(&mut report, line),
        &mut |run, symbols, late_ms| {
            for wait in run.events.iter().filter_map(|event| event.wait) {
                waits.add(wait);
            }
            closed.add(&run);
            if let Some(late_ms) = late_ms {
                warnings.push(format!(
                    "{}: the recorded kill came {late_ms} ms after its own deadline, because watch did not run; the \
                     record is cut at the deadline",
                    run.name
                ));
            }
            if reading.request.selects(run.started_at_ms) {
                reading.writer.push(&run, symbols)?;
            }
            Ok(())
        },
    )?;
    report.warnings = warnings;
    report.add_waits(&waits);
    closed.add_to(&mut report);
    Ok((report.finish(), content.finish()?))
}

fn count(report: &mut TableReport, line: LineAt) {
    match line.fate {
        LineFate::Imported => report.lines.imported += 1,
        LineFate::Ignored => report.lines.ignored += 1,
        LineFate::Unrecognised => report.lines.unrecognised += 1,
        LineFate::Malformed(reason) => {
            report.malformed(line.number, line.offset, reason.to_owned());
        }
    }
}
