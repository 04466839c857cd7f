//! A gate for GitHub: annotations as workflow commands, and a job summary in Markdown.

use policysim_sim::gate::{Code, Verdict};

use super::{GateResult, words};
use crate::table::{Align, Table, escaped, one_line};

impl GateResult {
    /// Workflow commands, one per check that does not pass, and a notice with the answer.
    pub fn to_annotations(&self) -> String {
        let mut out = String::new();
        for (check, place) in self.checks() {
            let level = match check.counts_as {
                Verdict::Pass => continue,
                Verdict::Fail => "error",
                Verdict::Inconclusive | Verdict::NoData => "warning",
            };
            let mut properties = Vec::new();
            if !place.file.is_empty() {
                properties.push(format!("file={}", property(&place.file)));
            }
            if let Some(line) = place.line {
                properties.push(format!("line={line}"));
            }
            let code = check.code.map_or("", Code::name);
            let title = format!("policysim gate: {} {code}", check.verdict);
            properties.push(format!("title={}", property(title.trim_end())));
            let mut message = format!("{}: {}", one_line(&check.name), words::observed(check));
            if let Some(inherited) = &place.inherited {
                message.push_str(&format!("; {inherited}"));
            }
            out.push_str(&format!(
                "::{level} {}::{}\n",
                properties.join(","),
                data(&message)
            ));
        }
        out.push_str(&format!(
            "::notice title=policysim gate::{}\n",
            data(&self.answer())
        ));
        out
    }

    /// A job summary in Markdown.
    pub fn to_summary(&self) -> String {
        let mut table = Table::new([
            ("verdict", Align::Left),
            ("check", Align::Left),
            ("observed", Align::Left),
            ("look at", Align::Left),
        ]);
        for (check, place) in self.checks() {
            let place = match (check.counts_as, place.line) {
                (Verdict::Pass, _) => String::new(),
                (_, Some(line)) => format!("{}:{line}", place.file),
                (_, None) => place.file,
            };
            let verdict = if check.counts_as == check.verdict {
                check.verdict.name().to_owned()
            } else {
                format!("{}, counts as {}", check.verdict, check.counts_as)
            };
            table.push(vec![
                verdict,
                check.name.clone(),
                words::observed(check),
                place,
            ]);
        }
        let answer = escaped(&self.answer());
        let mut out = format!("### policysim gate\n\n{answer}\n\n{}", table.to_markdown());
        if self.explain {
            out.push_str(&format!(
                "\n```text\n{}```\n",
                self.explained().trim_start_matches('\n')
            ));
        }
        out
    }
}

/// The message of a workflow command.
fn data(text: &str) -> String {
    one_line(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
