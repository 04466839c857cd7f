//! A gate for a terminal: one line when all is well, else every check, and the answer last.

use policysim_sim::gate::Verdict;

use super::{GateResult, words};
use crate::table::one_line;
use crate::units::wrapped_at;

/// The longest name that others are aligned to.
const NAME: usize = 44;
/// The width of a verdict.
const VERDICT: usize = 12;

impl GateResult {
    /// For a terminal.
    pub fn to_text(&self) -> String {
        let quiet = self.gate.verdict() == Verdict::Pass && !self.explain;
        let mut out = String::new();
        if !quiet {
            let width = |name: &str| name.chars().count();
            let names = self.gate.checks.iter().map(|check| width(&check.name));
            let wide = names.filter(|&name| name <= NAME).max().unwrap_or(0);
            for (check, _) in self.checks() {
                let mut line = format!(
                    "{:VERDICT$}  {:wide$}  {}",
                    check.verdict.name(),
                    one_line(&check.name),
                    words::observed(check)
                );
                if check.counts_as != check.verdict {
                    line.push_str(&format!("; counts as {}", check.counts_as));
                }
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        if self.explain {
            out.push_str(&self.explained());
        }
        out.push_str(&wrapped_at(&self.answer(), 108));
        out.push('\n');
        out
    }
}
