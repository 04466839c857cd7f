//! The policy scenarios of the reference: each document of POLICIES.md over its scenario's events.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use policysim_policy::document::Value;
use policysim_policy::{Cause, Kind, Millis, Policy, Watchdog};
use serde_json::Value as Json;

/// A row of the table.
struct Row {
    scenario: String,
    variant: String,
    document: Vec<String>,
    verdict: String,
}

fn rows(text: &str) -> Vec<Row> {
    text.lines()
        .filter(|line| line.starts_with("| BR-"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            Row {
                scenario: cells[0].to_owned(),
                variant: cells[1].to_owned(),
                document: cells[2]
                    .split("<br>")
                    .map(|line| line.trim_matches('`').to_owned())
                    .collect(),
                verdict: cells[3].to_owned(),
            }
        })
        .collect()
}

fn value(toml: &toml::Value) -> Value {
    match toml {
        toml::Value::String(text) => Value::text(text.as_str()),
        toml::Value::Integer(number) => Value::Integer(*number),
        toml::Value::Boolean(flag) => Value::Bool(*flag),
        toml::Value::Array(items) => Value::List(items.iter().map(value).collect()),
        other => panic!("no scenario's document holds {other}"),
    }
}

/// The document: its lines are dotted keys with TOML values.
fn policy(document: &[String]) -> Policy {
    let mut policy = Policy::default();
    for line in document {
        let (key, text) = line.split_once(" = ").unwrap();
        let table: toml::Table = format!("value = {text}").parse().unwrap();
        policy
            .set(key, &value(&table["value"]))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    policy
}

fn scenario(dir: &Path, id: &str) -> Json {
    let file = common::json_files(dir)
        .into_iter()
        .find(|file| {
            let name = file.file_name().unwrap().to_str().unwrap();
            name.starts_with(&format!("{id}-"))
        })
        .unwrap_or_else(|| panic!("no file of {id}"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The events of a scenario, repeats written out, by time; events of one time in the order of the file.
fn events(scenario: &Json) -> Vec<Json> {
    let listed = scenario.get("events").or(scenario.get("attempt_events"));
    let mut events = Vec::new();
    let mut latest = 0;
    for entry in listed.unwrap().as_array().unwrap() {
        let Some(repeat) = entry.get("repeat").and_then(Json::as_object) else {
            // a stamp that steps back keeps its place in the file
            let mut event = entry.clone();
            latest = latest.max(line_time(&event));
            event["t_ms"] = latest.into();
            events.push(event);
            continue;
        };
        let number = |key: &str| repeat[key].as_u64().unwrap();
        let mut event = repeat.clone();
        event.retain(|key, _| !["from_ms", "to_ms", "every_ms"].contains(&key.as_str()));
        let mut at = number("from_ms");
        while at <= number("to_ms") {
            event.insert("t_ms".to_owned(), at.into());
            events.push(Json::Object(event.clone()));
            at += number("every_ms");
        }
    }
    events.sort_by_key(|event| event["t_ms"].as_u64().unwrap());
    events
}

/// What the row's variant says about the record; the others differ by their document alone.
fn vary(events: &mut Vec<Json>, row: &Row) {
    let is = |event: &Json, kinds: &[&str]| kinds.contains(&event["kind"].as_str().unwrap());
    let variant = row.variant.as_str();
    if variant.starts_with("log_view") {
        events.retain(|event| is(event, &["run_start", "message_end", "run_end"]));
    } else if variant == "variant_hung" {
        let cut = events
            .iter()
            .position(|event| is(event, &["compaction_end"]));
        events.truncate(cut.unwrap());
    } else if let Some(at) = variant.strip_prefix("variant_end_at_") {
        let at: u64 = at.parse().unwrap();
        for event in events.iter_mut().filter(|event| is(event, &["run_end"])) {
            event["t_ms"] = at.into();
        }
    } else if row.scenario == "BR-44" && variant.is_empty() {
        for event in events {
            event["t_ms"] = event["mono_ms"].clone();
        }
    }
}

/// The verdict of every agent, under one policy each with a watchdog of its own.
fn verdicts(policy: &Policy, events: &[Json], horizon: u64) -> BTreeMap<String, (Cause, u64)> {
    let mut dogs: BTreeMap<String, Watchdog> = BTreeMap::new();
    let mut end = horizon;
    let mut only = String::new();
    for event in events {
        let Some(line) = common::line(event) else {
            end = line_time(event);
            break;
        };
        let agent = event["agent"].as_str().unwrap_or(&only).to_owned();
        if matches!(line.event.kind, Kind::RunStart | Kind::Spawn) {
            only.clone_from(&agent);
            dogs.entry(agent.clone())
                .or_insert_with(|| Watchdog::new(policy, line.at));
        }
        if let Some(dog) = dogs.get_mut(&agent) {
            dog.handle_event(line.at, &line.event);
        } else {
            // a parent that has no run of its own in the record
            assert_eq!(line.event.kind, Kind::WaitStart, "{event}");
        }
    }
    dogs.into_iter()
        .map(|(agent, mut dog)| {
            dog.finish(Millis::new(end));
            let verdict = dog.verdict().unwrap();
            (agent, (verdict.cause, verdict.at.as_u64()))
        })
        .collect()
}

fn line_time(event: &Json) -> u64 {
    event["t_ms"].as_u64().unwrap()
}

#[test]
fn every_document_gives_its_verdict() {
    let Some(table) = common::part("scenarios/POLICIES.md") else {
        return;
    };
    let dir = table.parent().unwrap().to_owned();
    let table = std::fs::read_to_string(table).unwrap();
    let rows = rows(&table);
    assert!(!rows.is_empty());
    let mut wrong = Vec::new();
    for row in &rows {
        let scenario = scenario(&dir, &row.scenario);
        let mut events = events(&scenario);
        vary(&mut events, row);
        let expected_at = row.verdict.split(' ').nth(1).and_then(|at| at.parse().ok());
        let last = events.iter().map(line_time).max().unwrap();
        let horizon = scenario["observe_until_ms"].as_u64().unwrap_or(last);
        let horizon = match (row.variant.as_str(), expected_at) {
            ("variant_hung", Some(at)) => horizon.max(at),
            _ => horizon,
        };
        let verdicts = verdicts(&policy(&row.document), &events, horizon);
        let told = |(cause, at): &(Cause, u64)| {
            if cause.is_firing() {
                format!("{cause} {at}")
            } else {
                cause.to_string()
            }
        };
        let all: Vec<String> = verdicts
            .iter()
            .map(|(agent, v)| format!("{agent}: {}", told(v)))
            .collect();
        let told_all = match &all[..] {
            [_] => verdicts.values().map(told).collect::<String>(),
            // the table names the parent first
            _ => all.iter().rev().cloned().collect::<Vec<_>>().join(", "),
        };
        if told_all != row.verdict {
            wrong.push(format!(
                "{} {}: {told_all}, expected {}",
                row.scenario, row.variant, row.verdict
            ));
        }
    }
    println!("{} documents, {} differ", rows.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
