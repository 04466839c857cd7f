//! Ten plausible bad edits of a policy file, each told by the gate that the demo ships; and the presets' gates.

use std::fs;

use serde_json::Value;

use super::gate;
use crate::{Place, name, repository};

/// What an edit replaces, with what, and why it is bad.
const EDITS: [(&str, &str, &str); 10] = [
    (
        "idle above the TaskWait",
        "window = \"300s\"",
        "window = \"700s\"",
    ),
    ("window cut to p99", "window = \"300s\"", "window = \"60s\""),
    ("total below idle", "budget = \"6h\"", "budget = \"200s\""),
    (
        "seconds written as milliseconds",
        "window = \"300s\"",
        "window = \"300ms\"",
    ),
    ("tool pause removed", "tool = \"idle\"", "tool = \"none\""),
    (
        "re-arm set narrowed to tokens",
        "rearm = \"all\"",
        "rearm = \"message_update\"",
    ),
    (
        "heartbeat throttle above the window",
        "rearm = \"all\"",
        "rearm = \"all\"\nthrottle = \"400s\"",
    ),
    (
        "retry budget raised",
        "era = \"0129\"",
        "rate_limit = { retries = 12 }",
    ),
    ("turn cap of 5", "explorer = 60", "explorer = 5"),
    (
        "watchdog switched off",
        "window = \"300s\"",
        "window = \"off\"",
    ),
];

fn data(file: &str) -> String {
    fs::read_to_string(repository().join("data").join(file)).unwrap()
}

#[test]
fn every_bad_edit_is_told() {
    let place = Place::new();
    let policy = data("gates/demo-policy.toml");
    let rules = data("gates/demo.toml");
    place.write("policy.toml", &policy);
    let (result, code) = gate(&place, "--policy policy.toml", &rules);
    assert_eq!(
        (code, &result["verdict"]),
        (0, &"pass".into()),
        "{result:#}"
    );
    // equality with the preset would tell every edit; without it the others must
    let rules = rules
        .split("[[rule]]")
        .filter(|rule| !rule.contains("same_as"))
        .collect::<Vec<_>>()
        .join("[[rule]]");
    assert!(!rules.contains("same_as"));
    for (edit, from, to) in EDITS {
        assert_eq!(policy.matches(from).count(), 1, "{edit}");
        place.write("policy.toml", policy.replace(from, to));
        let (result, code) = gate(&place, "--policy policy.toml", &rules);
        assert_eq!((code, &result["verdict"]), (1, &"fail".into()), "{edit}");
        // a failure that is about the policy points into its file
        let failed = result["checks"].as_array().unwrap().iter();
        let places = failed
            .filter(|check| check["verdict"] == "fail")
            .map(|check| &check["place"]["file"]);
        assert!(
            places.into_iter().any(|file| file == "policy.toml"),
            "{edit}"
        );
    }
}

/// The line of the key that was edited, as an annotation names it.
#[test]
fn an_annotation_names_the_line_of_the_offending_key() {
    let place = Place::new();
    let policy = data("gates/demo-policy.toml");
    place.write("rules.toml", data("gates/demo.toml"));
    for (edit, from, to) in EDITS {
        let edited = policy.replace(from, to);
        let line = 1 + edited
            .lines()
            .position(|line| line == to.lines().last().unwrap() || line.contains(to))
            .unwrap();
        place.write("policy.toml", &edited);
        let done =
            place.run("gate --policy policy.toml --rules rules.toml --format github --quiet");
        let out = done.exits(1).stdout;
        assert!(
            out.contains(&format!("::error file=policy.toml,line={line},")),
            "{edit}\n{out}"
        );
    }
}

/// One id, two keys: the one at fault is named, and one that the file does not set is told to be inherited.
#[test]
fn an_annotation_names_the_key_at_fault_or_where_it_comes_from() {
    let place = Place::new();
    place.write("rules.toml", "[[rule]]\ncheck = \"idle-not-below-wait\"\n");
    for (policy, line, more) in [
        (
            "preset = \"pi-desktop-0129\"\n[idle]\nwindow = \"700s\"\n",
            3,
            "",
        ),
        (
            "preset = \"pi-desktop-0129\"\n[idle]\nwindow = \"300s\"\nfirst = \"700s\"\n",
            4,
            "",
        ),
        // the wait that was cut is at fault, the window is the preset's
        (
            "preset = \"pi-desktop-0129\"\n\ntask_wait = \"200s\"\n",
            3,
            "",
        ),
        (
            "# ours\npreset = \"pi-desktop-0119\"\n",
            2,
            "; idle.window comes from the preset pi-desktop-0119",
        ),
    ] {
        place.write("policy.toml", policy);
        let done =
            place.run("gate --policy policy.toml --rules rules.toml --format github --quiet");
        let out = done.exits(1).stdout;
        let first = out.lines().next().unwrap();
        assert!(
            first.starts_with(&format!("::error file=policy.toml,line={line},")),
            "{policy}\n{out}"
        );
        assert!(first.ends_with(more), "{policy}\n{out}");
        assert_eq!(first.contains("comes from"), !more.is_empty(), "{out}");
    }
    // a preset by its name has no file: the rule is where to look
    let done = place.run("gate --policy pi-desktop-0119 --rules rules.toml --format github");
    let out = done.exits(1).stdout;
    assert!(out.starts_with("::error file=rules.toml,line=1,"), "{out}");
    // without a preset, a key that is not written has its default
    place.write(
        "rules.toml",
        "[[rule]]\nkey = \"task_wait.timeout\"\nbelow = \"10s\"\n",
    );
    place.write("policy.toml", "# nothing but a window\nidle = \"300s\"\n");
    let done = place.run("gate --policy policy.toml --rules rules.toml --format github");
    let out = done.exits(1).stdout;
    assert!(out.starts_with("::error file=policy.toml,line=1,"), "{out}");
    assert!(out.contains("; task_wait.timeout has its default"), "{out}");
}

#[test]
fn each_preset_has_its_document_and_its_known_findings() {
    let place = Place::new();
    let listed = crate::json(&place.run("policy list --format json").ok());
    let presets: Vec<&str> = listed["presets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|preset| preset["name"].as_str().unwrap())
        .collect();
    let mut documents = crate::names(&repository().join("data/presets"));
    documents.retain(|file| crate::ends_in(file, "toml"));
    assert_eq!(documents.len(), presets.len());
    let mut with_findings = 0;
    for preset in presets {
        let file = format!("{preset}.toml");
        assert!(documents.contains(&file), "{preset}");
        place.write(&file, data(&format!("presets/{file}")));
        let rules = data(&format!("gates/presets/{file}"));
        let arguments = format!("--policy {file}");
        let (result, code) = gate(&place, &arguments, &rules);
        assert_eq!(code, 0, "{preset}: {result:#}");
        // each finding that the rules do not know is a new one
        let known: Vec<&str> = rules
            .lines()
            .find_map(|line| line.strip_prefix("known = "))
            .map(|ids| ids.split('"').skip(1).step_by(2).collect())
            .unwrap_or_default();
        for id in &known {
            let others: Vec<&&str> = known.iter().filter(|other| *other != id).collect();
            let list = rules
                .lines()
                .find(|line| line.starts_with("known = "))
                .unwrap();
            let shorter = rules.replace(list, &format!("known = {others:?}"));
            let (result, code) = gate(&place, &arguments, &shorter);
            assert_eq!(
                (code, told(&result, "finding_new")),
                (1, vec![(*id).to_owned()]),
                "{preset}"
            );
        }
        // and so is one that an edit of the policy brings, whatever the preset has
        let edited = data(&format!("presets/{file}"));
        let edited = with_value(&edited, "idle", "window", "7200s");
        let edited = with_value(&edited, "total", "budget", "1s");
        place.write("edited.toml", edited);
        let (result, code) = gate(&place, "--policy edited.toml", &rules);
        let new = told(&result, "finding_new");
        assert_eq!(code, 1, "{preset}: {result:#}");
        assert!(
            new.contains(&"total-not-above-idle".to_owned()),
            "{preset}: {new:?}"
        );
        // a vanished finding fails as a new one does
        let ids: Vec<String> = known.iter().map(|id| format!("\"{id}\", ")).collect();
        let without = rules.lines().filter(|line| !line.starts_with("known = "));
        let without: Vec<&str> = without.collect();
        let added = format!(
            "{}\nknown = [{}\"poll-comparable-to-window\"]\n",
            without.join("\n"),
            ids.concat()
        );
        let (result, code) = gate(&place, &arguments, &added);
        assert_eq!(
            (code, told(&result, "finding_vanished")),
            (1, vec!["poll-comparable-to-window".to_owned()]),
            "{preset}"
        );
        with_findings += usize::from(!known.is_empty());
    }
    assert!(with_findings >= 5);
}

/// The ids of the findings whose checks have that code.
fn told(result: &Value, code: &str) -> Vec<String> {
    let checks = result["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["code"] == code)
        .map(|check| check["subject"].as_str().unwrap().to_owned())
        .collect()
}

/// A policy document with another value of one key.
fn with_value(document: &str, table: &str, key: &str, value: &str) -> String {
    let mut inside = false;
    let mut lines = document.lines().map(|line| {
        if line.starts_with('[') {
            inside = line == format!("[{table}]");
        }
        if inside && line.starts_with(&format!("{key} = ")) {
            format!("{key} = \"{value}\"\n")
        } else {
            format!("{line}\n")
        }
    });
    let edited: String = lines.by_ref().collect();
    assert_ne!(edited, document);
    edited
}

/// What the project's own check runs is what is tested here.
#[test]
fn the_projects_own_gate_is_run_on_every_change() {
    let script = fs::read_to_string(repository().join(".ci/run")).unwrap();
    for words in [
        "gate --policy data/gates/demo-policy.toml --rules data/gates/demo.toml",
        "for policy in data/presets/*.toml",
        "data/gates/presets/",
    ] {
        assert!(script.contains(words), "{words}");
    }
    assert_eq!(
        name(&repository().join("data/gates/demo.toml")),
        "demo.toml"
    );
}
