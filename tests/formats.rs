//! Every format says the same; the figures of a fleet that can be worked out by hand.

use std::fmt::Write;

use serde_json::Value;

use crate::{Place, fleet, json};

/// The records of a CSV text, header first.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let records = reader.records();
    records
        .map(|record| record.unwrap().iter().map(ToOwned::to_owned).collect())
        .collect()
}

/// The cells of the first Markdown table of a text; every row must have as many as the header.
fn markdown(text: &str) -> Vec<Vec<String>> {
    let rows: Vec<Vec<String>> = text
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(rows.len() > 2, "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    assert!(
        rows[1]
            .iter()
            .all(|cell| cell.trim_matches(':').chars().all(|c| c == '-'))
    );
    rows
}

/// The first place in a result at which `key` stands.
fn find<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(object) => object
            .get(key)
            .or_else(|| object.values().find_map(|value| find(value, key))),
        Value::Array(array) => array.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

#[test]
fn a_sweep_counts_what_can_be_counted_by_hand() {
    let place = fleet::place();
    let windows = [20, 60, 100, 105, 300, 400, 401];
    let list: Vec<String> = windows.iter().map(|window| format!("{window}s")).collect();
    let line = format!("sweep telemetry --idle {}", list.join(","));
    let sweep = json(&place.run(&format!("{line} --format json")).ok());
    assert_eq!(sweep["schema_version"], 1);
    let cells = sweep["cells"].as_array().unwrap();
    assert_eq!(cells.len(), windows.len());
    let csv = records(&place.run(&format!("{line} --format csv")).ok());
    assert_eq!(csv.len(), windows.len() + 1);
    let column = |name: &str| {
        let at = csv[0].iter().position(|header| header == name);
        at.unwrap_or_else(|| panic!("no column {name} in {:?}", csv[0]))
    };
    let table = place.run(&line).ok();
    let rows = markdown(&place.run(&format!("{line} --format markdown")).ok());
    assert_eq!(rows.len(), windows.len() + 2);
    for (index, window) in windows.into_iter().enumerate() {
        let alive = fleet::killed_alive(window);
        let cell = &cells[index];
        assert_eq!(cell["runs"], fleet::ALIVE, "{cell}");
        assert_eq!(cell["false_kills"], alive, "{window} s: {cell}");
        assert_eq!(cell["killed"], alive + fleet::HUNG, "{window} s: {cell}");
        assert_eq!(cell["hung"], fleet::HUNG);
        assert_eq!(cell["hung_missed"], 0);
        // Nothing pauses the clock of a hung run: it is noticed one window after its last output.
        assert_eq!(cell["detection"]["p50_ms"], window * 1_000, "{cell}");
        assert_eq!(cell["slot_lost_ms"], fleet::HUNG * window * 1_000, "{cell}");
        assert_eq!(csv[index + 1][column("false_kills")], alive.to_string());
        let killed = (alive + fleet::HUNG).to_string();
        assert!(
            rows[index + 2].iter().any(|cell| cell.starts_with(&killed)),
            "{:?}",
            rows[index + 2]
        );
        assert!(table.contains(&format!("{window}s")), "{table}");
    }
    let keys_with_times: Vec<&String> = cells[0].as_object().unwrap().keys().collect();
    assert!(
        keys_with_times.iter().any(|key| key.ends_with("_ms")),
        "{keys_with_times:?}"
    );
}

#[test]
fn a_sweep_of_budgets_and_caps_counts_what_can_be_counted_by_hand() {
    let place = fleet::place();
    let line = "sweep telemetry --idle off --total 100s,off --turns 1,off --format json";
    let sweep = json(&place.run(line).ok());
    let cells = sweep["cells"].as_array().unwrap();
    // Run k takes 16 + 20 k seconds, and its first turn ends 7 s before it; all complete, so every kill is a false one.
    let longer = (1..=fleet::ALIVE).filter(|k| 16 + 20 * k >= 100).count() as u64;
    let kills = |cell: usize, cause: &str| cells[cell]["kills"][cause].as_u64().unwrap();
    for (cell, total, turn) in [
        (0, longer, fleet::ALIVE - longer),
        (1, longer, 0),
        (2, 0, fleet::ALIVE),
        (3, 0, 0),
    ] {
        let hung = if total > 0 { fleet::HUNG } else { 0 };
        assert_eq!(kills(cell, "turn_limit"), turn, "{}", cells[cell]);
        assert_eq!(
            kills(cell, "total_timeout"),
            total + hung,
            "{}",
            cells[cell]
        );
        assert_eq!(kills(cell, "idle_timeout"), 0);
        assert_eq!(cells[cell]["false_kills"], total + turn);
        assert_eq!(cells[cell]["hung_missed"], fleet::HUNG - hung);
    }
}

#[test]
fn gaps_in_every_format() {
    let place = fleet::place();
    for by in [
        "",
        "--by source",
        "--by harness",
        "--by model",
        "--by role",
        "--by tool",
    ] {
        let gaps = |format: &str| {
            place
                .run(&format!("gaps telemetry {by} --format {format}"))
                .ok()
        };
        let found = json(&gaps("json"));
        assert_eq!(found["schema_version"], 1);
        let groups = found["groups"].as_object().unwrap();
        let tool: u64 = groups
            .values()
            .map(|group| group["waits"]["tool"]["n"].as_u64().unwrap())
            .sum();
        assert_eq!(tool, fleet::ALIVE, "{by}");
        let csv = records(&gaps("csv"));
        assert_eq!(csv[0][..4], ["group", "line", "unit", "n"], "{by}");
        let n_of_tool = csv.iter().filter(|row| row[1] == "tool" && row[4] == "0.5");
        let sum: u64 = n_of_tool.map(|row| row[3].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, fleet::ALIVE, "{by}");
        markdown(&gaps("markdown"));
        assert!(gaps("table").contains("tool"), "{by}");
    }
    let found = json(&place.run("gaps telemetry --format json").ok());
    let tool = &found["groups"][""]["waits"]["tool"];
    assert_eq!(tool["sum_ms"], fleet::ALIVE * 1_000);
    assert_eq!(tool["max_ms"], 1_000);
    // A living run waits 5 s for its first output, 7 s for the one after its tool; a hung one 10 s for its first.
    let waits = &found["groups"][""]["waits"]["pre_token"];
    assert_eq!(waits["n"], 2 * fleet::ALIVE + fleet::HUNG);
    assert_eq!(
        waits["sum_ms"],
        fleet::ALIVE * 12_000 + fleet::HUNG * 10_000
    );
    assert_eq!(waits["max_ms"], 10_000);
}

#[test]
fn quantiles_are_nearest_rank_or_not_estimable() {
    let place = Place::new();
    let mut rows = String::from("kind,duration_ms\n");
    for n in 1..=100_u32 {
        writeln!(rows, "pre_token,{}", n * 1_000).unwrap();
    }
    place.write("waits.csv", rows);
    let gaps = json(&place.run("gaps waits.csv --format json").ok());
    let quantiles = gaps["groups"][""]["waits"]["pre_token"]["quantiles"]
        .as_array()
        .unwrap();
    let of = |p: &str| {
        quantiles
            .iter()
            .find(|quantile| quantile["p"] == p)
            .unwrap()
    };
    // Type 1: the ceil(p n)-th smallest.
    assert_eq!(of("0.5")["point_ms"], 50_000);
    assert_eq!(of("0.9")["point_ms"], 90_000);
    assert_eq!(of("0.95")["point_ms"], 95_000);
    assert_eq!(of("0.999")["status"], "not_estimable");
    let table = place.run("gaps waits.csv").ok();
    assert!(
        table.contains("not estimable") && table.contains("needs "),
        "{table}"
    );
}

#[test]
fn a_replay_tells_what_happened() {
    let place = fleet::place();
    let line = "replay telemetry --run fleet.csv#a20 --policy pi-desktop-0129";
    let replay = json(&place.run(&format!("{line} --format json")).ok());
    assert_eq!(replay["schema_version"], 1);
    // The silence begins at 7 s; the window of the preset is 300 s.
    assert_eq!(
        find(&replay, "at_ms").and_then(Value::as_u64),
        Some(307_000),
        "{replay:#}"
    );
    let text = place.run(line).ok();
    for words in ["idle_timeout", "A false kill", "a20"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let survives = place.run(&format!("{line} --set idle=401s")).ok();
    assert!(!survives.contains("idle_timeout"), "{survives}");
}

#[test]
fn every_kill_listed_is_replayed_to_the_same_verdict() {
    let place = fleet::place();
    let list = "sweep telemetry --base pi-desktop-0129 --idle 60s,300s --turns 1,off --list-kills";
    let kills = place.run(&format!("{list} 4")).ok();
    let listed = kills.lines().collect::<Vec<_>>();
    let expected = fleet::killed_alive(300) + fleet::HUNG;
    assert_eq!(listed.len() as u64, 1 + 2 * expected, "{kills}");
    for kill in listed[1..].chunks(2) {
        // `NAME at 307000 ms: idle_timeout, false_kill`, then the command.
        let (name, verdict) = kill[0].split_once(" at ").unwrap();
        let (at_ms, verdict) = verdict.split_once(" ms: ").unwrap();
        let (cause, judgement) = verdict.split_once(", ").unwrap();
        let command = kill[1].trim().strip_prefix("policysim ").unwrap();
        let replay = json(&place.run(&format!("{command} --format json")).ok());
        let shown = replay.to_string();
        assert_eq!(
            find(&replay, "at_ms").unwrap().to_string(),
            at_ms,
            "{command}"
        );
        for word in [name, cause, judgement] {
            assert!(
                shown.contains(&format!("\"{word}\"")),
                "{word} is not in {shown}"
            );
        }
    }
    // A cell goes by the label that the JSON output gives it as well.
    let label = "idle.window=300s turns.cap=off";
    let cells = json(
        &place
            .run(&format!(
                "{} --format json",
                list.replace(" --list-kills", "")
            ))
            .ok(),
    );
    let shown = find(&cells["cells"][3], "label").and_then(Value::as_str);
    let by_label = place.run_args(list.split_whitespace().chain([shown.unwrap_or(label)]));
    assert_eq!(by_label.ok(), kills);
}

#[test]
fn nothing_qualifies_is_an_answer() {
    let place = fleet::place();
    let line = "sweep telemetry --idle 60s,300s --max-false-kill 0.1%";
    let sweep = json(&place.run(&format!("{line} --format json")).ok());
    assert_eq!(sweep["recommendation"], Value::Null);
    let text = place.run(line).ok();
    assert!(text.contains("0.1%"), "{text}");
}

#[test]
fn a_results_folder_holds_what_was_printed() {
    let place = fleet::place();
    let printed = place
        .run("sweep telemetry --idle 60s,300s --format json --out sets/one")
        .ok();
    let set = crate::files(&place.path("sets/one"));
    assert!(
        set.keys()
            .eq(["cells.csv", "cells.parquet", "front.svg", "sweep.json"])
    );
    assert_eq!(set["sweep.json"], printed.as_bytes());
    let svg = String::from_utf8_lossy(&set["front.svg"]).into_owned();
    assert!(
        svg.starts_with("<svg") && svg.contains("Pareto front"),
        "{svg}"
    );
    assert!(set["cells.parquet"].starts_with(b"PAR1") && set["cells.parquet"].ends_with(b"PAR1"));
    assert_eq!(
        records(&String::from_utf8_lossy(&set["cells.csv"])).len(),
        3
    );
}

#[test]
fn colour_never_reaches_a_file_or_pipe() {
    let place = fleet::place();
    for line in [
        "sweep telemetry",
        "gaps telemetry",
        "policy list",
        "--help",
        "gaps missing",
    ] {
        let done = place.run(line);
        assert!(!done.stdout.contains('\x1b'), "{line}");
        assert!(!done.stderr.contains('\x1b'), "{line}");
    }
}
