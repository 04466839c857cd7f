//! How many events carry which quality mark.

use std::collections::BTreeMap;

use policysim_sim::run::{EventFlags, RunEvent};

/// The marks that are about the quality of a sample, by the names of the manifest.
const MARKS: [(&str, EventFlags); 9] = [
    ("ambiguous_approval", EventFlags::AMBIGUOUS_APPROVAL),
    ("censored", EventFlags::CENSORED),
    ("clock_step", EventFlags::CLOCK_STEP),
    ("collapsed_stamps", EventFlags::COLLAPSED_STAMPS),
    ("native_duration", EventFlags::NATIVE_DURATION),
    ("rate_limited", EventFlags::RATE_LIMITED),
    ("spans_undated", EventFlags::SPANS_UNDATED),
    ("suspected_suspend", EventFlags::SUSPECTED_SUSPEND),
    ("upper_bound", EventFlags::UPPER_BOUND),
];

/// Counts per mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlagCounts([u64; MARKS.len()]);

impl FlagCounts {
    pub(crate) fn add(&mut self, events: &[RunEvent]) {
        for event in events {
            for (count, (_, mark)) in self.0.iter_mut().zip(MARKS) {
                *count += u64::from(event.flags.has(mark));
            }
        }
    }

    /// The marks that occur.
    pub(crate) fn by_name(self) -> BTreeMap<String, u64> {
        MARKS
            .iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|((name, _), count)| ((*name).to_owned(), count))
            .collect()
    }
}
