//! The numbers of text and charts are those of `report.json`.

use serde_json::Value;

use super::{markdown_cells, report, text, unescaped};
use crate::{Place, fleet, json};

/// A report on the demo, whose sweep has a window for every point of a line.
pub(super) fn demo() -> Place {
    let place = Place::new();
    place
        .run("report --policy pi-desktop-0129 --current pi-desktop-0119 -o adr")
        .ok();
    place
}

/// A report on too few runs to be split, whose sequences of windows share the error.
pub(super) fn shared() -> Place {
    let place = fleet::place();
    place
        .run("report telemetry --policy pi-desktop-0119 --current pi-desktop-0129 --idle 60s,300s,360s --total 1h,off --max-false-kill 10% --out adr")
        .ok();
    place
}

/// Whether a number as it is written is this value, rounded to the figures that it has.
pub(super) fn shows(written: &str, value: f64) -> bool {
    let plain = written.trim().replace(',', "");
    let Ok(number) = plain.parse::<f64>() else {
        return false;
    };
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let scale = exponent.parse::<i32>().unwrap() - i32::try_from(decimals).unwrap();
    let half = 0.5 * 10_f64.powi(scale);
    (number - value).abs() <= half * (1.0 + 1e-6)
}

/// The numbers of a text, as they are written: `1,234`, `0.5`, `3.8147e-6`.
fn numbers(text: &str) -> Vec<String> {
    let part_of_a_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(part_of_a_number) {
        rest = &rest[start..];
        let whole = rest.find(|c| !part_of_a_number(c)).unwrap_or(rest.len());
        let end = match rest[whole..].strip_prefix("e-") {
            Some(after) if after.starts_with(|c: char| c.is_ascii_digit()) => {
                let digits = after.find(|c: char| !c.is_ascii_digit());
                whole + 2 + digits.unwrap_or(after.len())
            }
            _ => whole,
        };
        let word = rest[..end].trim_matches([',', '.']);
        if word.contains(|c: char| c.is_ascii_digit()) {
            found.push(word.to_owned());
        }
        rest = &rest[end..];
    }
    found
}

#[track_caller]
fn all_show(text: &str, values: &[f64]) {
    let written = numbers(text);
    assert_eq!(written.len(), values.len(), "{text}: {values:?}");
    for (written, value) in written.iter().zip(values) {
        assert!(shows(written, *value), "{text}: {written} is not {value}");
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// A rate and its limits, as percentages.
fn percents(rate: &Value) -> [f64; 3] {
    let interval = &rate["interval"];
    [&rate["point"], &interval["lo"], &interval["up"]].map(|share| number(share) * 100.0)
}

/// The table of a Markdown text that has this column, as rows of cells; its head is the first.
fn table(markdown: &str, column: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_start_matches("| ").trim_end_matches(" |");
        inner
            .split(" | ")
            .map(|cell| cell.replace('\\', ""))
            .collect()
    };
    let mut lines = markdown.lines().skip_while(|line| {
        !line.starts_with("| ") || !cells(line).iter().any(|cell| cell == column)
    });
    let head = cells(lines.next().unwrap());
    let rows = lines
        .skip(1)
        .take_while(|line| line.starts_with("| "))
        .map(cells);
    std::iter::once(head).chain(rows).collect()
}

/// The tables that decide, figure by figure.
#[test]
fn texts_show_the_numbers_of_the_json() {
    let place = report();
    let (found, markdown) = (place.json("adr/report.json"), text(&place, "adr/report.md"));
    let rows = table(&markdown, "false kills per run [95 %]");
    let of = |row: &[String], column: &str| {
        let at = rows[0].iter().position(|name| name == column).unwrap();
        row[at].clone()
    };
    let cells = found["sweep"]["cells"].as_array().unwrap();
    assert_eq!(rows.len() - 1, cells.len());
    for (row, cell) in rows[1..].iter().zip(cells) {
        let upper = number(&cell["certify"]["false_kill_rate_up_one_sided"]) * 100.0;
        let unresolved = number(&cell["unresolved_kills"]) + number(&cell["unresolved_survivals"]);
        let hours = |key: &str| number(&cell[key]) / 3_600_000.0;
        let seconds = |key: &str| number(&cell["detection"][key]) / 1_000.0;
        let missed = number(&cell["hung_missed"]);
        let limits = |key: &str| {
            let interval = &cell["detection"][key]["interval_ms"];
            let sides = [&interval["lo"], &interval["up"]];
            sides
                .map(|side| Some(side.as_f64()? / 1_000.0))
                .into_iter()
                .flatten()
        };
        let mut seen = vec![seconds("p50_ms")];
        seen.extend(limits("p50"));
        seen.push(seconds("p99_ms"));
        seen.extend(limits("p99"));
        seen.push(number(&cell["detection"]["n"]));
        seen.extend((missed > 0.0).then_some(missed));
        all_show(&of(row, "killed"), &[number(&cell["killed"])]);
        all_show(
            &of(row, "false kills per run [95 %]"),
            &percents(&cell["false_kill_rate"]),
        );
        all_show(&of(row, "unresolved"), &[unresolved]);
        all_show(&of(row, "1-sided limit to certify"), &[upper]);
        all_show(
            &of(row, "settles in wait"),
            &[number(&cell["settle_share"]) * 100.0],
        );
        all_show(&of(row, "slots lost"), &[hours("slot_lost_ms")]);
        all_show(&of(row, "work lost"), &[hours("work_lost_ms")]);
        all_show(&of(row, "hang seen p50 … p99 [95 %]"), &seen);
    }
    let rows = table(&markdown, "newly killed falsely or in doubt");
    let compared = &found["runs"]["comparison"];
    let phases = compared["by_phase"].as_array().unwrap();
    let all = std::iter::once(&compared["all"]).chain(phases);
    for (row, of) in rows[1..].iter().zip(all) {
        all_show(&row[1], &[number(&of["newly_killed"])]);
        all_show(&row[2], &[number(&of["newly_spared"])]);
    }
    assert_eq!(rows.len(), 2 + phases.len());
    let rows = table(&markdown, "stratum");
    let strata = found["strata"].as_array().unwrap();
    assert_eq!(rows.len() - 1, strata.len());
    for (row, of) in rows[1..].iter().zip(strata) {
        let (key, group) = (of["key"].as_str().unwrap(), of["group"].as_str().unwrap());
        assert_eq!(row[0], format!("{key} {group}"));
        all_show(&row[1], &[number(&of["false_kill_rate"]["n"])]);
        all_show(&row[4], &percents(&of["false_kill_rate"]));
    }
}

/// Every number below a value, those in words included: `60s` of a grid.
fn leaves(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| leaves(item, found)),
        Value::String(text) => {
            let numbers = numbers(text);
            found.extend(
                numbers
                    .iter()
                    .filter_map(|number| number.parse::<f64>().ok()),
            );
        }
        _ => {}
    }
}

/// Nothing is written that the JSON does not hold: as it is, as a percentage, or as seconds or hours.
#[test]
fn every_number_of_the_tables_is_in_the_json() {
    for place in [report(), demo()] {
        let found = place.json("adr/report.json");
        let mut held = Vec::new();
        leaves(&found, &mut held);
        let scaled: Vec<f64> = held
            .iter()
            .flat_map(|value| [1.0, 100.0, 1e-3, 1.0 / 3.6e6].map(|scale| value.abs() * scale))
            .collect();
        let mut checked = 0;
        for cell in markdown_cells(&text(&place, "adr/report.md")) {
            // A cell that begins with a letter names a row.
            if cell.starts_with(char::is_alphabetic) {
                continue;
            }
            for written in numbers(&cell) {
                let held = scaled.iter().any(|value| shows(&written, *value));
                assert!(held, "{written} of {cell}");
                checked += 1;
            }
        }
        assert!(checked > 200, "{checked}");
    }
}

/// The texts of an SVG.
pub(super) fn labels(svg: &str) -> Vec<String> {
    svg.split("<text ")
        .skip(1)
        .map(|of| {
            let inner = of.split_once('>').unwrap().1;
            unescaped(inner.split("</text>").next().unwrap().trim())
        })
        .collect()
}

fn percents_of(svg: &str) -> Vec<String> {
    let labels = labels(svg).into_iter();
    labels
        .filter_map(|label| Some(label.strip_suffix(" %")?.to_owned()))
        .collect()
}

#[test]
fn charts_show_the_numbers_of_the_json() {
    let place = demo();
    let found = place.json("adr/report.json");
    let chart = |name: &str| text(&place, &format!("adr/charts/{name}.svg"));
    // The map: a figure per cell in the order of the sweep, after the legend's three.
    let cells = found["map"]["cells"].as_array().unwrap();
    let written = percents_of(&chart("heat"));
    assert_eq!(written.len(), 3 + cells.len());
    for (written, cell) in written[3..].iter().zip(cells) {
        let rate = number(&cell["false_kill_rate"]["point"]) * 100.0;
        assert!(shows(written, rate), "{written}: {cell}");
    }
    let strata = found["strata"].as_array().unwrap();
    let counts: Vec<String> = labels(&chart("strata"))
        .into_iter()
        .filter_map(|label| Some(label.strip_prefix("n = ")?.to_owned()))
        .filter(|label| !label.contains(' '))
        .collect();
    assert_eq!(counts.len(), strata.len());
    for (written, of) in counts.iter().zip(strata) {
        let n = number(&of["false_kill_rate"]["n"]);
        assert!(shows(written, n), "{written}");
    }
    let switches = found["sweep"]["cost"]["best_for"].as_array().unwrap();
    let written = percents_of(&chart("hang-rate"));
    assert!(switches.len() > 2);
    for range in &switches[..switches.len() - 1] {
        let rate = number(&range["hang_rate_to"]) * 100.0;
        let drawn = written.iter().any(|written| shows(written, rate));
        assert!(drawn, "{rate}: {written:?}");
    }
    let ledger = &found["runs"]["ledger"]["all"];
    let mut written = labels(&chart("ledger"));
    written.retain(|label| label.contains(" · "));
    let accounts = "model tool human retry compaction suspend unknown".split(' ');
    assert_eq!(written.len(), accounts.clone().count());
    for (label, account) in written.iter().zip(accounts) {
        let ms = number(&ledger[format!("{account}_ms")]);
        let share = ms / number(&ledger["span_ms"]);
        all_show(label, &[share * 100.0, ms / 3_600_000.0]);
    }
}

/// Pixels grow evenly with the values that they stand for.
#[track_caller]
fn linear(points: &[(f64, f64)]) {
    assert!(points.len() > 2, "{points:?}");
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    let (least, most) = (
        points.iter().min_by(by_value).unwrap(),
        points.iter().max_by(by_value).unwrap(),
    );
    assert!((most.1 - least.1).abs() > 50.0, "{points:?}");
    for (value, pixel) in points {
        let share = (value - least.0) / (most.0 - least.0);
        let expected = least.1 + share * (most.1 - least.1);
        let off = (pixel - expected).abs();
        assert!(off < 0.2, "{value} at {pixel}, not {expected}");
    }
}

/// Chart and table say the same number in the same words where several sequences share the error, which makes it another
/// than the limit of the cell alone.
#[test]
fn the_front_shows_the_limits_of_the_table() {
    let place = shared();
    let found = place.json("adr/report.json");
    let cells = found["sweep"]["cells"].as_array().unwrap();
    let limit = |cell: &Value| number(&cell["certify"]["false_kill_rate_up_one_sided"]);
    let wider = cells
        .iter()
        .filter(|cell| limit(cell) > number(&cell["false_kill_rate_up_one_sided"]));
    assert!(wider.count() > 2);
    let rows = table(&text(&place, "adr/report.md"), "1-sided limit to certify");
    let column = rows[0]
        .iter()
        .position(|name| name == "1-sided limit to certify")
        .unwrap();
    for (row, cell) in rows[1..].iter().zip(cells) {
        all_show(&row[column], &[limit(cell) * 100.0]);
    }
    let html = text(&place, "adr/report.html");
    let data = html.split("id=\"page-data\">").nth(1).unwrap();
    let marks = &json(data.split("</script>").next().unwrap())["charts"]["front"]["marks"];
    let points: Vec<(f64, f64)> = cells
        .iter()
        .filter(|cell| !cell["detection"]["p50_ms"].is_null())
        .map(|cell| {
            let key = format!("cell {}", cell["label"].as_str().unwrap());
            (limit(cell), number(&marks[key][1]))
        })
        .collect();
    linear(&points);
    let svg = text(&place, "adr/charts/front.svg");
    assert!(labels(&svg).contains(&"false kills per run, 1-sided limit to certify".to_owned()));
    // The policy's own budget is a third beside the two.
    assert_eq!(found["sweep"]["protection"]["sequences"], 3);
    assert!(svg.contains("3 sequences sharing the error of 5 %"));
    // The chart of the sweep alone is the same one.
    place
        .run("sweep telemetry --base pi-desktop-0119 --idle 60s,300s,360s --total 1h,off --max-false-kill 10% --plot front.svg")
        .ok();
    let told = text(&place, "front.svg");
    assert!(
        told.contains("1-sided limit to certify")
            && told.contains("2 sequences sharing the error of 5 %")
    );
}

/// Where the page puts its marks is where the charts have the values, which the axes place evenly.
#[test]
fn charts_have_their_points_where_the_numbers_are() {
    let place = demo();
    let found = place.json("adr/report.json");
    let html = text(&place, "adr/report.html");
    let data = html.split("id=\"page-data\">").nth(1).unwrap();
    let charts = &json(data.split("</script>").next().unwrap())["charts"];
    let at = |chart: &str, key: &str, axis: usize| number(&charts[chart]["marks"][key][axis]);
    let swept = found["sweep"]["cells"].as_array().unwrap();
    let front = |value: &dyn Fn(&Value) -> f64, axis: usize| -> Vec<(f64, f64)> {
        let key = |cell: &Value| format!("cell {}", cell["label"].as_str().unwrap());
        swept
            .iter()
            .map(|cell| (value(cell), at("front", &key(cell), axis)))
            .collect()
    };
    linear(&front(&|cell| number(&cell["detection"]["p50_ms"]), 0));
    linear(&front(
        &|cell| number(&cell["certify"]["false_kill_rate_up_one_sided"]),
        1,
    ));
    let svg = text(&place, "adr/charts/front.svg");
    let dots: Vec<Vec<String>> = svg.split("<circle ").skip(1).map(numbers).collect();
    for cell in swept {
        let key = format!("cell {}", cell["label"].as_str().unwrap());
        let near = |dot: &Vec<String>, axis: usize| {
            let pixel: f64 = dot[axis].parse().unwrap();
            (pixel - at("front", &key, axis)).abs() <= 0.6
        };
        assert!(dots.iter().any(|dot| near(dot, 0) && near(dot, 1)), "{key}");
    }
    // Logarithmic axes: a step for every doubling, and for every decade.
    let steps = |chart: &str, keys: &[&str]| -> Vec<(f64, f64)> {
        let place = |(step, key): (u32, &&str)| (f64::from(step), at(chart, key, 0));
        (0..).zip(keys).map(place).collect()
    };
    let doubled = ["60000", "120000", "240000", "480000"].map(|ms| format!("window {ms}"));
    linear(&steps("survival", &doubled.each_ref().map(String::as_str)));
    linear(&steps(
        "hang-rate",
        &["rate 0.001", "rate 0.01", "rate 0.1"],
    ));
    let waits = found["runs"]["settlement"]["waits_ms"].as_array().unwrap();
    let waits: Vec<(f64, f64)> = waits
        .iter()
        .map(|ms| (number(ms), at("settlement", &format!("wait {ms}"), 0)))
        .collect();
    linear(&waits);
    let strata = found["strata"].as_array().unwrap();
    let strata: Vec<(f64, f64)> = strata
        .iter()
        .enumerate()
        .map(|(line, of)| {
            let rate = number(&of["false_kill_rate"]["point"]);
            (rate, at("strata", &format!("stratum {line}"), 0))
        })
        .collect();
    linear(&strata);
}
