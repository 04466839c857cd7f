//! Names from a log are text and nothing else: no markup, no terminal control, no formula.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::{Place, names};

/// What somebody may write where a name is expected.
const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>&amp;<b>",
    "\u{1b}[31mred\u{1b}[0m\u{7}\u{9b}2J",
    "\u{202e}gnp.exe\u{2066}\u{200f}",
    "one\ntwo\r\nthree\u{2028}four\tfive",
    "=HYPERLINK(\"http://x\",\"y\")",
    "@SUM(A1:A9)|'`*_[x](y)\\",
    "+1,2;3\"4'",
    "../../etc/passwd\0",
    "-- $(touch owned) `touch owned` ; touch owned",
];

/// A run per name, which is the name of the run, the tool, the model and the role at once.
fn events(names: &[String]) -> String {
    let mut rows = String::new();
    for (index, name) in names.iter().enumerate() {
        let started_at_ms = 1_772_442_000_000_u64 + 3_600_000 * index as u64;
        for (t_ms, kind, outcome) in [
            (0, "run_start", None),
            (4_000, "message_end", None),
            (4_000, "tool_start", None),
            (90_000, "tool_end", None),
            (400_000, "message_end", None),
            (400_000, "run_end", Some("completed")),
        ] {
            let row = json!({
                "run": name, "t_ms": t_ms, "kind": kind, "call_id": "c", "name": name,
                "outcome": outcome, "started_at_ms": started_at_ms, "role": name, "model": name,
                "harness": name,
            });
            writeln!(rows, "{row}").unwrap();
        }
    }
    rows
}

/// The hostile names and a very long one.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = HOSTILE.iter().map(ToString::to_string).collect();
    names.push("long ".repeat(2_000));
    names
}

/// Characters that change how a terminal shows what stands around them.
pub(crate) fn steers_a_terminal(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A result with every text and every key replaced, so that only its figures and its shape are left.
pub(crate) fn figures(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::Null,
        Value::Array(values) => values.iter().map(figures).collect(),
        Value::Object(object) => {
            let mut fields: Vec<String> = object
                .values()
                .map(|value| figures(value).to_string())
                .collect();
            fields.sort();
            json!(fields)
        }
        other => other.clone(),
    }
}

const COMMANDS: [&str; 9] = [
    "gaps DATA",
    "gaps DATA --by model",
    "gaps DATA --by role",
    "gaps DATA --by tool",
    "gaps DATA --by harness",
    "gaps DATA --by source",
    "sweep DATA --idle 60s,300s,400s",
    "sweep DATA --idle 60s,300s,400s --by model",
    "sweep DATA --idle 60s,300s,400s --by role",
];

/// A dataset of hostile names, and one like it of tame ones.
pub(crate) fn place() -> Place {
    let place = Place::new();
    place.write("hostile.jsonl", events(&hostile()));
    let tame: Vec<String> = (0..hostile().len()).map(|n| format!("name{n}")).collect();
    place.write("tame.jsonl", events(&tame));
    for data in ["hostile", "tame"] {
        place.run(&format!("import {data}.jsonl --out {data}")).ok();
    }
    place
}

#[test]
fn hostile_names_change_nothing_but_text() {
    let place = place();
    for command in COMMANDS {
        let of = |data: &str| {
            let line = command.replace("DATA", data) + " --format json";
            let mut result = crate::json(&place.run(&line).ok());
            result["data"] = Value::Null;
            figures(&result)
        };
        assert_eq!(of("hostile"), of("tame"), "{command}");
    }
}

#[test]
fn no_hostile_name_steers_the_terminal() {
    let place = place();
    for data in ["hostile", "hostile.jsonl"] {
        for command in COMMANDS {
            for format in ["table", "json", "csv", "markdown"] {
                let line = command.replace("DATA", data) + " --format " + format;
                let done = place.run(&line).exits(0);
                for text in [&done.stdout, &done.stderr] {
                    let found = text
                        .lines()
                        .find(|line| line.chars().any(steers_a_terminal));
                    assert_eq!(found, None, "{line}");
                }
            }
        }
    }
    let import = place.run("import hostile.jsonl --out again").ok();
    assert!(!import.chars().any(steers_a_terminal), "{import:?}");
}

#[test]
fn a_spreadsheet_finds_no_formula_and_a_page_no_markup() {
    let place = place();
    for command in COMMANDS {
        let csv = place
            .run(&(command.replace("DATA", "hostile") + " --format csv"))
            .ok();
        let mut reader = csv::ReaderBuilder::new().from_reader(csv.as_bytes());
        for record in reader.records() {
            for cell in &record.unwrap() {
                let formula = cell.starts_with(['=', '+', '@', '\t']);
                assert!(!formula, "{command}: {cell}");
                assert!(
                    !cell.starts_with('-') || cell.len() < 20,
                    "{command}: {cell}"
                );
            }
        }
        let markdown = place
            .run(&(command.replace("DATA", "hostile") + " --format markdown"))
            .ok();
        assert!(!markdown.contains("<script>"), "{command}\n{markdown}");
        assert!(!markdown.contains("[x](y)"), "{command}\n{markdown}");
    }
}

#[test]
fn the_commands_that_list_kills_prints_run_nothing_else() {
    let place = place();
    let kills = place.run("sweep hostile --idle 60s --list-kills 1").ok();
    assert!(!kills.chars().any(steers_a_terminal), "{kills:?}");
    let before = names(place.0.path());
    let mut replayed = 0;
    for command in kills
        .lines()
        .filter_map(|line| line.trim().strip_prefix("policysim "))
    {
        let script = format!("'{}' {command}", crate::POLICYSIM);
        let done = crate::finish(place.command("sh").args(["-c", &script])).exits(0);
        assert!(!done.stdout.chars().any(steers_a_terminal), "{command}");
        replayed += 1;
    }
    assert_eq!(replayed, hostile().len());
    assert_eq!(names(place.0.path()), before);
}

#[test]
fn hostile_file_names_are_text_as_well() {
    let place = Place::new();
    let log = events(&["run".to_owned()]);
    for (index, name) in HOSTILE.iter().enumerate() {
        let name = name.replace(['/', '\0'], "_");
        place.write(&format!("logs/{index}{name}.jsonl"), &log);
        place.write(&format!("logs/{name}.jsonl"), &log);
    }
    let import = place.run("import logs --out dataset").exits(0);
    for text in [&import.stdout, &import.stderr] {
        assert!(!text.chars().any(steers_a_terminal), "{text:?}");
    }
    for line in [
        "gaps dataset --by source",
        "gaps dataset --by source --format csv",
        "gaps dataset --by source --format json",
        "sweep dataset --idle 60s --by source",
        "sweep dataset --idle 60s --list-kills 1",
    ] {
        let shown = place.run(line).ok();
        assert!(!shown.chars().any(steers_a_terminal), "{line}\n{shown:?}");
    }
}

/// A format that the user names does not make of an unreadable log a success that says nothing.
#[test]
fn a_named_format_is_held_against_what_the_log_says() {
    let place = Place::new();
    let line = r#"{"timestamp":"2026-03-02T09:00:00.000Z","type":"mystery","payload":{}}"#;
    place.write("odd.jsonl", format!("{line}\n{line}\n"));
    place.write("empty.jsonl", "");
    let import = |log: &str, more: &str| {
        place.run(&format!(
            "import {log} --format codex {more} --out {log}.out"
        ))
    };
    let error = import("odd.jsonl", "--strict").error();
    assert!(
        error.contains("odd.jsonl") && error.contains("mystery"),
        "{error}"
    );
    let told = import("odd.jsonl", "").exits(0).stderr;
    assert!(
        told.contains("'odd.jsonl': nothing recognised as codex"),
        "{told}"
    );
    let told = import("empty.jsonl", "--strict").exits(0).stderr;
    assert!(!told.contains("nothing recognised"), "{told}");
}
