//! What a sweep is answered from: events, in memory or read as it goes, or a summary of them.

use anyhow::Result;
use policysim_policy::Policy;
use policysim_report::units::grouped;
use policysim_sim::focus::{Found, SecondLook, second_look, second_look_at_summary};
use policysim_sim::lengths::EXACT_LENGTHS;
use policysim_sim::scan::Scan;
use policysim_sim::sessions::EXACT_SESSIONS;
use policysim_sim::stats::bootstrap::Resampling;
use policysim_sim::stats::traps::Heap;
use policysim_sim::sweep::{Question, Swept, sweep_scan};

use crate::summary_file::SummaryFile;

/// Runs that answer a sweep.
pub(crate) trait Answers {
    /// Every cell; `progress` is told each number of finished runs as it grows.
    fn sweep(&self, question: &Question<'_>, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept>;

    /// What is said by session of the focus cell, and when `heaps` began.
    fn look(
        &self,
        question: &Question<'_>,
        swept: &Swept,
        found: Found<'_>,
        heaps: &[Heap],
    ) -> Result<SecondLook>;

    /// Whether the readings of the idle clock under `base` are known.
    fn reads(&self, base: &Policy) -> bool;

    /// What it cannot say, in words.
    fn unsaid(&self, base: &Policy) -> Vec<String>;
}

/// Sessions are resampled with the seed that halves them.
fn how(question: &Question<'_>) -> Resampling {
    Resampling {
        seed: question.seed,
        ..Resampling::default()
    }
}

/// Runs with their events.
pub(crate) struct Events<'a, S>(pub(crate) &'a S);

impl<S: Scan> Answers for Events<'_, S>
where
    S::Error: Into<anyhow::Error>,
{
    fn sweep(&self, question: &Question<'_>, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept> {
        sweep_scan(self.0, question, progress).map_err(Into::into)
    }

    fn look(
        &self,
        question: &Question<'_>,
        swept: &Swept,
        found: Found<'_>,
        heaps: &[Heap],
    ) -> Result<SecondLook> {
        second_look(self.0, question, swept, found, heaps, how(question)).map_err(Into::into)
    }

    fn reads(&self, _: &Policy) -> bool {
        true
    }

    fn unsaid(&self, _: &Policy) -> Vec<String> {
        Vec::new()
    }
}

impl Answers for SummaryFile {
    fn sweep(&self, question: &Question<'_>, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept> {
        let swept = self.summary.sweep(question);
        let swept = swept.map_err(|why| self.lacking(&why, "POLICY"))?;
        progress(self.header.runs);
        Ok(swept)
    }

    fn look(
        &self,
        question: &Question<'_>,
        swept: &Swept,
        found: Found<'_>,
        _: &[Heap],
    ) -> Result<SecondLook> {
        let summary = &self.summary;
        Ok(second_look_at_summary(
            summary,
            question,
            swept,
            found,
            how(question),
        )?)
    }

    fn reads(&self, base: &Policy) -> bool {
        self.summary.has_readings_of(base)
    }

    fn unsaid(&self, base: &Policy) -> Vec<String> {
        let mut notes = vec![
            "Swept from a summary, without events: it does not hold the gaps of each session, so that limits of the cell as a failure detector are not told, nor when heaps of silences began."
                .to_owned(),
        ];
        if !self.reads(base) {
            notes.push(format!(
                "The summary was made under {}, whose idle clock reads other silences than that of this base: what is found in them is not told.",
                self.policy
            ));
        }
        notes
    }
}

/// What is told less exactly because there was too much of it.
pub(super) fn inexact(swept: &Swept, look: &SecondLook, counted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !swept.is_exact() || !counted {
        notes.push(format!(
            "There are more than {} different lengths of gaps, or too many detection times: what is beyond is counted in buckets, which tell a length at most 0.1 % too long. Kills, rates and costs are exact.",
            grouped(EXACT_LENGTHS as u64)
        ));
    }
    if !look.exact {
        notes.push(format!(
            "There are more than {} sessions: intervals by session take groups of whole sessions, put together by the hash of their keys, as units.",
            grouped(EXACT_SESSIONS as u64)
        ));
    }
    notes
}
