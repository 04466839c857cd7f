//! What every result says first: which data it is about, and the data's limits.

use serde::{Deserialize, Serialize};

use crate::units::{counted, grouped};

/// The data behind a result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct DataHeader {
    /// What the user named: a dataset, `local`, `demo`, or the first path.
    pub name: String,
    /// Digest of the dataset's content.
    pub digest: String,
    /// Runs that figures are about.
    pub runs: u64,
    /// Different sources they come from.
    pub sources: u64,
    /// Prompts without an answer; not runs.
    pub unanswered: u64,
    /// Runs whose log ends inside them.
    pub open_runs: u64,
    /// Runs that the record labels as hung.
    pub hung: u64,
    /// First day on which a run starts, empty when undated.
    pub first_day: String,
    /// Last day.
    pub last_day: String,
    /// Lines that could not be read.
    pub malformed_lines: u64,
    /// Lines in all.
    pub lines: u64,
    /// Sentences that belong beside every figure: what is assumed, what is synthetic.
    pub caveats: Vec<String>,
}

impl DataHeader {
    /// What the data are: name, runs, sources and days.
    pub(crate) fn subject(&self) -> String {
        let mut text = format!("{}: {}", self.name, counted(self.runs, "run"));
        if self.sources > 1 {
            text.push_str(&format!(" of {}", counted(self.sources, "source")));
        }
        if !self.first_day.is_empty() {
            text.push_str(&format!(", {} to {}", self.first_day, self.last_day));
        }
        text
    }

    /// How many lines could not be read.
    pub(crate) fn unreadable(&self) -> String {
        format!(
            "{} of {} unreadable",
            grouped(self.malformed_lines),
            counted(self.lines, "line")
        )
    }

    /// One line, and a line per caveat.
    pub fn line(&self) -> String {
        let mut text = self.subject();
        if self.open_runs > 0 {
            text.push_str(&format!(
                " · {} {} log",
                grouped(self.open_runs),
                if self.open_runs == 1 {
                    "ends with its"
                } else {
                    "end with their"
                }
            ));
        }
        if self.malformed_lines > 0 {
            text.push_str(&format!(" · {}", self.unreadable()));
        }
        for caveat in &self.caveats {
            text.push('\n');
            text.push_str(caveat);
        }
        text
    }
}
