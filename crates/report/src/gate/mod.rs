//! What `policysim gate` prints, from one result: text, JSON, `JUnit`, `GitHub` annotations, a job summary.

use policysim_sim::gate::{Check, Gate, Verdict};

use crate::header::DataHeader;
use crate::table::one_line;
use crate::units::counted;

mod explain;
mod gate_json;
mod github;
mod junit;
mod text;
mod words;

pub use words::observed;

/// A place in a file of the repository.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Place {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1, where one is known.
    pub line: Option<usize>,
    /// Where the offending key comes from when the file does not set it itself.
    pub inherited: Option<String>,
}

/// Everything that one gate found, and what it looked at.
#[derive(Clone, Debug, Default)]
pub struct GateResult {
    /// The telemetry; none where no rule needs any.
    pub data: Option<DataHeader>,
    /// The baseline.
    pub baseline: Option<DataHeader>,
    /// The policy, as the user named it.
    pub policy: String,
    /// The preset it is or was made from.
    pub preset: Option<String>,
    /// The rules document.
    pub rules: String,
    /// The checks.
    pub gate: Gate,
    /// Where to look when a check does not pass, in the order of the checks.
    pub places: Vec<Place>,
    /// Tell how often each check is wrong.
    pub explain: bool,
    /// Seed of resampling and permutations.
    pub seed: u64,
    /// The process's exit code that follows.
    pub exit_code: u8,
}

impl GateResult {
    /// Every check with where to look.
    fn checks(&self) -> impl Iterator<Item = (&Check, Place)> {
        let places = self
            .places
            .iter()
            .cloned()
            .map(Some)
            .chain(std::iter::repeat(None));
        self.gate
            .checks
            .iter()
            .zip(places)
            .map(|(check, place)| (check, place.unwrap_or_default()))
    }

    /// The verdict in one sentence, with the window it is about.
    pub fn answer(&self) -> String {
        let all = self.gate.checks.len();
        let of = |verdict| self.gate.count(verdict);
        let (broken, open, missing) = (
            of(Verdict::Fail),
            of(Verdict::Inconclusive),
            of(Verdict::NoData),
        );
        let checks = |n: usize| counted(n as u64, "check");
        let of_all = |first: bool| {
            if first {
                format!(" of {}", checks(all))
            } else {
                String::new()
            }
        };
        let mut parts: Vec<String> = Vec::new();
        if broken > 0 {
            parts.push(format!("{broken} of {} broken", checks(all)));
        }
        if open > 0 {
            parts.push(format!(
                "{open}{} cannot be decided",
                of_all(parts.is_empty())
            ));
        }
        if missing > 0 {
            parts.push(format!(
                "{missing}{} had nothing to look at",
                of_all(parts.is_empty())
            ));
        }
        if parts.is_empty() {
            let mapped = self
                .gate
                .checks
                .iter()
                .filter(|check| check.verdict != check.counts_as);
            parts.push(match mapped.count() {
                0 if all == 1 => format!("1 check holds for {}", one_line(&self.policy)),
                0 => format!("{} hold for {}", checks(all), one_line(&self.policy)),
                n => format!(
                    "{} hold for {}, {n} of them by inconclusive = \"pass\"",
                    checks(all),
                    one_line(&self.policy)
                ),
            });
        }
        format!(
            "{}: {} ({})",
            self.gate.verdict(),
            parts.join(", "),
            self.window()
        )
    }

    /// The closed window of telemetry: its name, size, days and hash.
    fn window(&self) -> String {
        let Some(data) = &self.data else {
            return "no telemetry needed".to_owned();
        };
        let mut text = format!("{}, {}", one_line(&data.name), counted(data.runs, "run"));
        if !data.first_day.is_empty() {
            text.push_str(&format!(", {} to {}", data.first_day, data.last_day));
        }
        if !data.digest.is_empty() {
            text.push_str(&format!(", closed window {}", data.digest));
        }
        text
    }
}
