//! The importer scenarios, where they speak of what the commands say and how they exit.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Place, ends_in, json, shared};

/// The files of a scenario, by its number.
fn scenario(folder: &Path, number: &str) -> Vec<PathBuf> {
    let prefix = format!("BR-{number}-");
    let mut logs: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| crate::name(path).starts_with(&prefix) && ends_in(path, "jsonl"))
        .collect();
    logs.sort();
    if logs.is_empty() {
        eprintln!("skipped: no {prefix}");
    }
    logs
}

/// A place into which a scenario's logs were copied as they are and imported as `dataset`.
struct Imported {
    place: Place,
    log: String,
}

impl Imported {
    fn new(number: &str) -> Option<Self> {
        let folder = shared("scenarios")?;
        let place = Place::new();
        let path = scenario(&folder, number).into_iter().next()?;
        let log = crate::name(&path);
        place.write(&log, fs::read(path).unwrap());
        place.run(&format!("import {log} --out dataset")).ok();
        Some(Self { place, log })
    }

    fn source(&self) -> Value {
        self.place.json("dataset/manifest.json")["sources"][0].clone()
    }

    fn waits(&self, kind: &str) -> Value {
        let gaps = self.place.run("gaps dataset --format json").ok();
        json(&gaps)["groups"][""]["waits"][kind].clone()
    }
}

#[test]
fn every_log_of_every_scenario_is_imported() {
    let Some(folder) = shared("scenarios") else {
        return;
    };
    let place = Place::new();
    let mut logs: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    logs.sort();
    for log in &logs {
        let args = [
            "import".as_ref(),
            log.as_os_str(),
            "--out".as_ref(),
            "d".as_ref(),
        ];
        let done = place.run_args(args);
        if done.code == Some(2) {
            // Refused: then it is said what was refused.
            let error = done.error();
            assert!(error.contains(&crate::name(log)), "{error}");
            continue;
        }
        done.exits(0);
        let source = place.json("d/manifest.json")["sources"][0].clone();
        assert_eq!(source["source"], crate::name(log));
        let lines = source["lines"].as_object().unwrap().values();
        let sum: u64 = lines.map(|value| value.as_u64().unwrap()).sum();
        assert_eq!(source["n_lines"], sum, "{source}");
        assert!(sum > 0, "{source}");
    }
}

#[test]
fn br_19_a_usage_limit_wait_kills_nothing() {
    let Some(imported) = Imported::new("19") else {
        return;
    };
    let sweep = imported
        .place
        .run("sweep dataset --base pi-desktop-0129 --idle 300s --format json")
        .ok();
    let cell = &json(&sweep)["cells"][0];
    assert_eq!(cell["false_kills"], 0, "{cell}");
    assert_eq!(cell["true_kills"], 0, "{cell}");
}

#[test]
fn br_53_and_54_a_bad_line_is_a_warning_and_an_error_under_strict() {
    for number in ["53", "54"] {
        let Some(imported) = Imported::new(number) else {
            return;
        };
        let source = imported.source();
        assert_eq!(source["lines"]["malformed"], 1, "BR-{number}: {source}");
        let quarantine = imported.place.read("dataset/quarantine.csv");
        let quarantine = String::from_utf8(quarantine).unwrap();
        let row = quarantine.lines().nth(1).unwrap();
        assert!(row.starts_with(&format!("{},3,", imported.log)), "{row}");
        let strict = format!("import {} --strict --out strict", imported.log);
        let error = imported.place.run(&strict).error();
        assert!(
            error.contains(&imported.log) && error.contains('3'),
            "{error}"
        );
        assert!(!imported.place.path("strict").exists());
    }
    let Some(imported) = Imported::new("54") else {
        return;
    };
    let gaps = imported
        .place
        .run("gaps dataset --by source --format json")
        .ok();
    let runs = &json(&gaps)["groups"][&imported.log]["runs"];
    assert!(
        runs.as_array().unwrap().len() >= 2,
        "the runs after the bad line: {runs}"
    );
}

#[test]
fn br_59_records_of_other_files_are_counted_once_with_dedupe() {
    let Some(imported) = Imported::new("59") else {
        return;
    };
    let source = imported.source();
    assert_eq!(source["lines"]["duplicate"], 3, "{source}");
    assert_eq!(source["n_turns"], 4, "{source}");
    assert_eq!(source["n_tool"], 1, "{source}");
    let place = &imported.place;
    let log = place.read(&imported.log);
    place.write("both/a.jsonl", &log);
    place.write("both/b.jsonl", &log);
    let twice = place.run("import both --out twice").exits(0);
    assert!(
        twice.stderr.contains("a.jsonl") && twice.stderr.contains("b.jsonl"),
        "{}",
        twice.stderr
    );
    place.run("import both --dedupe --out once").ok();
    let turns = |dataset: &str| -> Vec<u64> {
        let manifest = place.json(&format!("{dataset}/manifest.json"));
        let sources = manifest["sources"].as_array().unwrap();
        sources
            .iter()
            .map(|source| source["n_turns"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(turns("twice"), [4, 4]);
    assert_eq!(turns("once"), [4, 0]);
}

#[test]
fn br_63_a_session_without_a_turn_is_no_empty_success() {
    let Some(imported) = Imported::new("63") else {
        return;
    };
    let source = imported.source();
    assert_eq!(source["n_prompts"], 1, "{source}");
    assert_eq!(imported.waits("tool")["max_ms"], 60_000);
    assert_eq!(source["unknown_types"]["world_state"], 1, "{source}");
    // The head of the log, and then nothing that anybody knows.
    let place = &imported.place;
    let log = String::from_utf8(place.read(&imported.log)).unwrap();
    let mut strange: Vec<String> = log.lines().take(1).map(ToOwned::to_owned).collect();
    strange.extend(log.lines().skip(2).map(|line| {
        let mut record: Value = json(line);
        record["type"] = "quantum_event".into();
        record.to_string()
    }));
    place.write("strange.jsonl", strange.join("\n"));
    let error = place.run("import strange.jsonl --out strange").error();
    for word in ["strange.jsonl", "0.153.4", "quantum_event"] {
        assert!(error.contains(word), "{word} is not in\n{error}");
    }
}

#[test]
fn br_68_a_call_that_the_log_leaves_open_is_neither_hung_nor_a_kill() {
    let Some(imported) = Imported::new("68") else {
        return;
    };
    assert_eq!(imported.waits("tool")["n"], 1);
    let sweep = imported
        .place
        .run("sweep dataset --idle 60s --format json")
        .ok();
    let sweep = json(&sweep);
    assert_eq!(sweep["data"]["open_runs"], 1);
    let cell = &sweep["cells"][0];
    for count in ["false_kills", "hung"] {
        assert_eq!(cell[count], 0, "{cell}");
    }
    let table = imported.place.run("sweep dataset --idle 60s").ok();
    assert!(table.contains("1 ends with its log"), "{table}");
    let until = format!(
        "import {} --observed-until 2026-03-02T09:10:00Z --out observed",
        imported.log
    );
    imported.place.run(&until).ok();
    // With an observation end the open wait is 591 s long and more: the kill is then seen, and still unresolved.
    let sweep = imported
        .place
        .run("sweep observed --idle 60s --format json")
        .ok();
    assert_eq!(json(&sweep)["cells"][0]["false_kills"], 0);
}

#[test]
fn br_70_one_bad_stamp_spoils_one_record() {
    let Some(imported) = Imported::new("70") else {
        return;
    };
    let source = imported.source();
    assert_eq!(source["lines"]["undated"], 3, "{source}");
    assert_eq!(source["lines"]["imported"], 6, "{source}");
}

#[test]
fn br_71_an_unknown_file_is_refused_with_the_formats_tried() {
    let Some(imported) = Imported::new("71") else {
        return;
    };
    let source = imported.source();
    assert_eq!(source["format"], "claude");
    assert_eq!(source["lines"]["ignored"], 5, "{source}");
    assert_eq!(source["lines"]["malformed"], 0, "{source}");
    assert_eq!(source["n_turns"], 1);
    let place = &imported.place;
    place.write("unknown.jsonl", "{\"kind\":\"tea\"}\n{\"kind\":\"milk\"}\n");
    let error = place.run("import unknown.jsonl --out d").error();
    for word in [
        "unknown.jsonl",
        "claude",
        "codex",
        "copilot",
        "gemini",
        "opencode",
        "pi",
    ] {
        assert!(error.contains(word), "{word} is not in\n{error}");
    }
}

#[test]
fn br_74_parent_and_child_are_two_linked_runs() {
    let Some(folder) = shared("scenarios") else {
        return;
    };
    let place = Place::new();
    let logs = scenario(&folder, "74");
    if logs.is_empty() {
        return;
    }
    let (parent, child) = (
        logs.iter()
            .find(|log| crate::name(log).contains("parent"))
            .unwrap(),
        logs.iter()
            .find(|log| crate::name(log).contains("child"))
            .unwrap(),
    );
    let child_name = crate::name(child);
    let agent = child_name.strip_prefix("BR-74-child-").unwrap();
    place.write("alone/session.jsonl", fs::read(parent).unwrap());
    place.write("both/session.jsonl", fs::read(parent).unwrap());
    place.write(
        &format!("both/session/subagents/{agent}"),
        fs::read(child).unwrap(),
    );
    let done = place.run("import both --out linked").exits(0);
    assert!(done.stdout.contains("1 run linked"), "{}", done.stdout);
    let killed = json(
        &place
            .run(&format!(
                "replay linked --run subagents/{agent}#1 --set idle=120s --format json"
            ))
            .ok(),
    );
    assert!(killed.to_string().contains("136800"), "{killed:#}");
    assert!(killed.to_string().contains("\"false_kill\""), "{killed:#}");
    let sweep = json(&place.run("sweep linked --idle 300s --format json").ok());
    assert_eq!(sweep["cells"][0]["false_kills"], 0);
    for line in [
        "import alone --out alone-set",
        "import alone/session.jsonl --out alone-set",
    ] {
        let done = place.run(line).exits(0);
        let told = done.stderr.contains("ab12cd34") || done.stderr.contains("missing");
        assert!(told, "{line}\n{}", done.stderr);
    }
}
