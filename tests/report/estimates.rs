//! Every estimate stands with its n and interval, and what is none is known to be none.

use serde_json::Value;

use super::numbers::demo;
use super::{report, text, unescaped};

/// What a column holds, by the definition that it links to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holds {
    /// Counts, sums and extremes of the record, settings, and figures that follow from settings alone.
    Facts,
    /// Figures of the record that stand for more than the record.
    Estimates,
}

/// A new definition has to be put into one of the two.
fn holds(term: &str) -> Holds {
    match term {
        "budget" | "candidate" | "cell" | "cut-short" | "false-kill" | "front" | "idle-window"
        | "killed" | "max" | "mcnemar" | "n" | "policy-in-force" | "run-size" | "seen"
        | "settles-in-wait" | "slots-lost" | "taskwait" | "time-account" | "timeline"
        | "turn-cap" | "unresolved" | "work-lost" => Holds::Facts,
        "certified"
        | "cost"
        | "detection-time"
        | "false-kill-rate"
        | "interval"
        | "pre-token-wait"
        | "retry-envelope"
        | "settlement-simulation" => Holds::Estimates,
        other => panic!("a column is defined by {other}: is it a fact or an estimate?"),
    }
}

struct Table {
    caption: String,
    /// The definition and the name of every column.
    columns: Vec<(String, String)>,
    rows: Vec<Vec<String>>,
}

/// What stands between two marks, for each time that they occur.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open)
        .skip(1)
        .map(|after| after.split(close).next().unwrap())
        .collect()
}

fn tables(html: &str) -> Vec<Table> {
    between(html, "<table class=\"sortable\">", "</table>")
        .into_iter()
        .map(|table| {
            let (head, body) = table.split_once("<tbody>").unwrap();
            let column = |of: &str| {
                let term = between(of, "href=\"#def-", "\"");
                let name = between(of, "<button type=\"button\">", "</button>");
                let first =
                    |found: Vec<&str>| found.first().map_or_else(String::new, |of| unescaped(of));
                (first(term), first(name))
            };
            Table {
                caption: unescaped(between(table, "<caption><span>", "</span>")[0]),
                columns: between(head, "<th ", "</th>")
                    .into_iter()
                    .map(column)
                    .collect(),
                rows: between(body, "<tr>", "</tr>")
                    .into_iter()
                    .map(|row| {
                        between(row, "<td", "</td>")
                            .into_iter()
                            .map(|cell| unescaped(cell.split_once('>').unwrap().1))
                            .collect()
                    })
                    .collect(),
            }
        })
        .collect()
}

/// Whether a cell gives an interval, is a limit itself, or says why there is neither.
fn is_bounded(cell: &str) -> bool {
    let bracket = cell
        .split_once('[')
        .and_then(|(_, after)| after.split_once(']'))
        .is_some_and(|(inside, _)| inside.contains(" … "));
    bracket
        || cell.starts_with("≤ ")
        || !cell.contains(|c: char| c.is_ascii_digit())
        || ["not estimable", "(the window)"]
            .iter()
            .any(|words| cell.contains(words))
}

#[test]
fn every_estimate_of_the_tables_has_its_n_and_interval() {
    let mut checked = 0;
    for place in [report(), demo()] {
        for table in tables(&text(&place, "adr/report.html")) {
            let counted = table
                .columns
                .iter()
                .any(|(term, _)| matches!(term.as_str(), "n" | "seen"));
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}", table.caption);
                for ((term, name), cell) in table.columns.iter().zip(row) {
                    if term.is_empty() || holds(term) == Holds::Facts {
                        continue;
                    }
                    let what = format!("{}: {name}: {cell}", table.caption);
                    let n = ["n = ", " runs"].iter().any(|sign| {
                        table.caption.contains(sign) || cell.contains(sign) || row[0].contains(sign)
                    });
                    match term.as_str() {
                        // A verdict is a word with the runs that it is on.
                        "certified" if name == "verdict" => {
                            let on = cell.contains(|c: char| c.is_ascii_digit());
                            assert!(
                                on || cell.starts_with("not tested") || cell.starts_with("no "),
                                "{what}"
                            );
                        }
                        "cost" => assert!(table.caption.contains("no interval"), "{what}"),
                        // An allowance follows from the policy and from the quantile in the row above.
                        "retry-envelope" if !row[0].contains("p99.9") => {
                            let of = ["retry envelope", "left of the window"];
                            assert!(of.iter().any(|start| row[0].starts_with(start)), "{what}");
                            continue;
                        }
                        _ => assert!(is_bounded(cell), "{what}"),
                    }
                    let figures = cell.contains(|c: char| c.is_ascii_digit());
                    assert!(n || counted || !figures, "no n: {what}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

/// Every figure of the JSON that has a point has what it stands on, limits, and a reason where it has no point.
fn stands(value: &Value, at: &str, seen: &mut usize) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| stands(item, at, seen)),
        Value::Object(fields) => {
            for (point, interval) in [("point", "interval"), ("point_ms", "interval_ms")] {
                let Some(found) = fields.get(point) else {
                    continue;
                };
                *seen += 1;
                let n = fields.get("n").or_else(|| fields.get("sessions"));
                assert!(n.is_some_and(Value::is_u64), "{at}: {value}");
                assert!(fields[interval].is_object(), "{at}: {value}");
                let words = ["status", "reason"].map(|key| fields.get(key));
                let ok = words[0].is_some_and(|status| status == "ok");
                assert!(!(found.is_null() && ok), "{at}: {value}");
            }
            for (key, item) in fields {
                stands(item, &format!("{at}.{key}"), seen);
            }
        }
        _ => {}
    }
}

#[test]
fn every_estimate_of_the_json_has_its_n_and_interval() {
    let mut seen = 0;
    for place in [report(), demo()] {
        stands(&place.json("adr/report.json"), "", &mut seen);
    }
    assert!(seen > 200, "{seen}");
}

/// What a sweep simulates of settlement is printed with the number of hangs, or of runs, that it stands on.
#[test]
fn what_is_simulated_of_settlement_has_its_n() {
    let place = crate::fleet::place();
    let line = "sweep telemetry --idle 60s,300s --settle --max-false-kill 50% --format";
    let printed = place.run(&format!("{line} markdown")).ok();
    let found = crate::json(&place.run(&format!("{line} json")).ok());
    let head = printed
        .lines()
        .find(|line| line.contains("simulated: settled in"))
        .unwrap();
    let rows: Vec<Vec<&str>> = printed
        .lines()
        .skip_while(|line| *line != head)
        .skip(2)
        .take_while(|line| line.starts_with("| "))
        .map(|line| line.split(" | ").collect())
        .collect();
    let at = |name: &str| head.split(" | ").position(|of| of.contains(name)).unwrap();
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(rows.len(), cells.len());
    for (row, cell) in rows.iter().zip(cells) {
        for (column, figure) in [
            ("settled in its wait", "settled_in_wait"),
            ("expiries per run", "expiries_per_run"),
            ("hang to knowledge", "hang_to_knowledge_mean_ms"),
        ] {
            let n = cell["settlement"][figure]["n"].as_u64().unwrap();
            let told = row[at(column)];
            assert!(told.contains(&format!("(n = {n})")), "{column}: {told}");
        }
    }
}
