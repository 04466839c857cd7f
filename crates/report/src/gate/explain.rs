//! How often the rate checks of a gate are wrong, as tables.

use policysim_sim::gate::{Characteristics, Check};

use super::GateResult;
use crate::table::{Align, Table, one_line};
use crate::units::{counted, grouped, percent, wrapped};

impl GateResult {
    /// The characteristics of every rate check, for a terminal.
    pub(super) fn explained(&self) -> String {
        let mut out = String::new();
        let mut shown: Vec<&Characteristics> = Vec::new();
        for (check, found) in self.characteristics() {
            out.push_str(&format!("\n{}\n", one_line(&check.name)));
            if shown.contains(&found) {
                out.push_str("as above\n");
                continue;
            }
            shown.push(found);
            out.push_str(&one(found));
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }

    pub(super) fn characteristics(&self) -> impl Iterator<Item = (&Check, &Characteristics)> {
        let checks = self.gate.checks.iter();
        checks.filter_map(|check| Some((check, check.characteristics.as_ref()?)))
    }
}

fn one(found: &Characteristics) -> String {
    let mut table = Table::new([
        ("true rate", Align::Right),
        ("passes", Align::Right),
        ("inconclusive", Align::Right),
        ("fails", Align::Right),
        ("", Align::Left),
    ]);
    for chances in &found.chances {
        table.push(vec![
            percent(chances.true_rate),
            percent(chances.pass),
            percent(chances.inconclusive()),
            percent(chances.fail),
            if chances.true_rate < found.claim.max_rate {
                format!("false alarm {}", percent(1.0 - chances.pass))
            } else {
                format!("miss {}", percent(chances.pass))
            },
        ]);
    }
    let needed: Vec<String> = found
        .needed
        .iter()
        .map(|(kills, runs)| format!("{} with {kills}", grouped(*runs)))
        .collect();
    let plan: Vec<String> = found
        .plan
        .iter()
        .map(|plan| {
            let pass = plan.pass.map(percent).join(", ");
            format!("{pass} with {}", grouped(plan.runs))
        })
        .collect();
    let claim = &found.claim;
    let about = claim
        .stratum
        .as_deref()
        .map_or_else(String::new, |stratum| {
            format!(
                "{}, which has the fewest runs of {} groups: ",
                one_line(stratum),
                grouped(claim.accusers)
            )
        });
    let (doubt, beside) = match claim.unresolved {
        0 => (String::new(), String::new()),
        n => (
            format!(
                ", {} of them unresolved, which count as kills against a pass and as none against a fail",
                grouped(n)
            ),
            format!(" beside {} unresolved", grouped(n)),
        ),
    };
    let head = format!(
        "{about}with {}{doubt}, one-sided {} limits and a bound of {}, runs independent and future ones like these:",
        counted(claim.runs, "run"),
        found.level,
        percent(claim.max_rate)
    );
    let needed = format!(
        "Runs that certify the bound, by kills among them{beside}: {}.",
        needed.join(", ")
    );
    let plan = format!(
        "Chance that a policy whose true rate is a tenth, a quarter, a half of the bound passes{beside}: {} runs.",
        plan.join("; ")
    );
    format!(
        "{}\n{}{}\n{}\n",
        wrapped(&capital(&head)),
        table.to_text(),
        wrapped(&needed),
        wrapped(&plan)
    )
}

/// A sentence's beginning.
fn capital(text: &str) -> String {
    match text.strip_prefix("with ") {
        Some(rest) => format!("With {rest}"),
        None => text.to_owned(),
    }
}
