//! A gate on a summary file says what a gate on its events says, under every policy that a summary can be of.

use std::fmt::Write;

use serde_json::Value;

use super::{gate, table};
use crate::Place;

/// What the runs of a summary answer, and nothing that hangs on waits or simulated parents.
const RULES: [&str; 20] = [
    "metric = \"false_kill_rate\"\nmax = \"1%\"",
    "metric = \"false_kill_rate\"\nmax = \"20%\"\ncluster = \"session\"",
    "metric = \"false_kill_rate\"\nmax = \"1%\"\nby = \"model\"",
    "metric = \"false_kills_per_hour\"\nmax = 1",
    "metric = \"kill_rate\"\nmax = \"10%\"\ncause = \"idle_timeout\"",
    "metric = \"true_kill_rate\"\nmax = \"1%\"",
    "metric = \"detected_share\"\nmin = \"80%\"",
    "metric = \"missed_share\"\nmax = \"20%\"",
    "metric = \"killed_early_share\"\nmax = \"20%\"",
    "metric = \"detection_time\"\nquantile = \"p50\"\nmax = \"5m\"",
    "metric = \"mean_detection_time\"\nmax = \"5m\"",
    "metric = \"work_lost\"\nmax = \"10m\"",
    "metric = \"slot_time_lost\"\nmax = \"10m\"",
    "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nrestart = \"1m\"\nmax = \"2m\"",
    "metric = \"ties\"\nmax = 0",
    "metric = \"runs\"\nmin = 300",
    "metric = \"sessions\"\nmin = 10",
    "metric = \"unresolved_share\"\nmax = \"1%\"",
    "metric = \"flagged_share\"\nmax = \"1%\"",
    "metric = \"malformed_share\"\nmax = \"1%\"",
];

fn rules(recorded_idle: &str) -> String {
    let mut rules = recorded_idle.to_owned();
    for rule in RULES {
        write!(rules, "\n[[rule]]\n{rule}\n").unwrap();
    }
    rules
}

/// The whole result of the gate, and how many of its checks found data.
fn ran(place: &Place, data: &str, policy: &str, rules: &str) -> (Value, usize) {
    let (result, _) = gate(place, &format!("{data} --policy {policy}"), rules);
    let checks = result["checks"].as_array().unwrap();
    assert_eq!(checks.len(), RULES.len());
    let ran = checks.iter().filter(|check| check["ran"] == true).count();
    (result, ran)
}

fn answers_alike(place: &Place, data: &str, policies: &[&str]) {
    for policy in policies {
        place
            .run(&format!(
                "gate summarise {data} --policy {policy} --out {data}.summary --quiet"
            ))
            .ok();
        for recorded_idle in ["", "recorded_idle = \"600s\"\n"] {
            let rules = rules(recorded_idle);
            let of_events = ran(place, data, policy, &rules);
            let of_summary = ran(place, &format!("{data}.summary"), policy, &rules);
            assert_eq!(of_summary, of_events, "{data} {policy}");
            assert!(of_summary.1 > 10, "{data} {policy}: {:#}", of_summary.0);
        }
    }
}

/// An adaptive window needs replays, a spare window as well, a polled one every event: all of them are in a summary that
/// was made for them.
#[test]
fn every_preset_is_answered_from_its_summary_as_from_its_events() {
    let place = table::place();
    place.write(
        "synthetic.toml",
        include_str!("../../data/models/adr-0129.toml"),
    );
    place
        .run("synth run synthetic.toml --runs 150 --seed 11 --out drawn --quiet")
        .ok();
    let listed = crate::json(&place.run("policy list --format json").ok());
    let presets = listed["presets"].as_array().unwrap();
    let names: Vec<&str> = presets
        .iter()
        .map(|preset| preset["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"netclaw-subagent"));
    answers_alike(&place, "drawn", &names);
    place.write(
        "spare.toml",
        "preset = \"pi-desktop-0129\"\n[idle]\nwindow = \"20s\"\ngrace_cycles = 1\n",
    );
    place.write(
        "polled.toml",
        "preset = \"pi-desktop-0129\"\n[detect]\npoll = \"10s\"\n",
    );
    answers_alike(&place, "drawn", &["spare.toml", "polled.toml"]);
    for data in ["bad", "tied", "open", "marked"] {
        for policy in ["netclaw-subagent", "spare.toml"] {
            place
                .run(&format!(
                    "gate summarise {data} --policy {policy} --out {data}.summary --quiet"
                ))
                .ok();
            let rules = rules("");
            assert_eq!(
                ran(&place, &format!("{data}.summary"), policy, &rules),
                ran(&place, data, policy, &rules),
                "{data} {policy}"
            );
        }
    }
}

#[test]
fn a_sweep_of_a_replayed_policy_reads_its_summary() {
    let place = table::place();
    place
        .run("gate summarise bad --policy netclaw-subagent --out bad.summary --quiet")
        .ok();
    let cells = |data: &str, window: &str| {
        let line =
            format!("sweep {data} --base netclaw-subagent --idle {window} --format json --quiet");
        crate::json(&place.run(&line).ok())["cells"].take()
    };
    let shown = place.run("policy show netclaw-subagent").ok();
    let window = shown
        .lines()
        .find_map(|line| line.strip_prefix("window = "))
        .unwrap();
    let window = window.trim_matches('"');
    assert_eq!(cells("bad.summary", window), cells("bad", window));
    // another window was not replayed
    let error = place
        .run("sweep bad.summary --base netclaw-subagent --idle 45s --quiet")
        .error();
    assert!(
        error.contains("idle.window=45s can only be replayed"),
        "{error}"
    );
}

/// What is missing, what is there instead, and the command that makes one with it.
#[test]
fn what_a_summary_lacks_for_a_policy_is_said_with_the_remedy() {
    let place = table::place();
    place
        .run("gate summarise good --policy plain.toml --out good.summary --quiet")
        .ok();
    place.write("rules.toml", "[[rule]]\nmetric = \"runs\"\nmin = 1\n");
    for (file, text, words) in [
        (
            "limit.toml",
            "[pause]\ntool_limit = { default = \"10m\", bash = \"1h\" }",
            "it was made without pause.tool_limit, pause.tool_limit.bash and has idle.window, total.budget, turns.cap",
        ),
        (
            "first.toml",
            "[idle]\nfirst = \"90s\"",
            "it was made without idle.first and has idle.window, total.budget, turns.cap",
        ),
        (
            "structure.toml",
            "[pause]\ntool = \"none\"\nhuman = \"all\"",
            "pause.human is \"none\" there and \"all\" here; pause.tool is \"idle\" there and \"none\" here",
        ),
        (
            "short.toml",
            "[idle]\nwindow = \"5s\"",
            "its idle windows begin at 30s, and 5s is asked for",
        ),
        (
            "polled.toml",
            "[detect]\npoll = \"10s\"",
            "it was made for exact detection, and looks every 10s are asked for",
        ),
        (
            "adaptive.toml",
            "[idle]\ngrace_cycles = 1",
            "the policy can only be replayed",
        ),
    ] {
        place.write(file, format!("preset = \"pi-desktop-0129\"\n{text}\n"));
        let error = place
            .run(&format!(
                "gate good.summary --policy {file} --rules rules.toml --quiet"
            ))
            .error();
        let start =
            format!("error: good.summary, made of good under plain.toml, does not answer {file}: ");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains(words), "{error}");
        assert!(
            error.contains(&format!(
                "`policysim gate summarise DATASET --policy {file} --out good.summary`"
            )),
            "{error}"
        );
        // and that command is the remedy
        place
            .run(&format!(
                "gate summarise good --policy {file} --out other.summary --quiet"
            ))
            .ok();
        place
            .run(&format!(
                "gate other.summary --policy {file} --rules rules.toml --quiet"
            ))
            .ok();
    }
}

/// A window of a sequence that the summary does not answer is not stepped over.
#[test]
fn a_sequence_with_a_window_that_is_not_there_has_no_data() {
    let place = table::place();
    place
        .run("gate summarise good --policy plain.toml --out good.summary --quiet")
        .ok();
    let rule = |sequence: &str| {
        let rule = format!(
            "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"{sequence}\"\n"
        );
        let (result, code) = gate(&place, "good.summary --policy plain.toml", &rule);
        (result["checks"][0].clone(), code)
    };
    assert_eq!(rule("60s,300s,600s").1, 0);
    let (check, code) = rule("5s,300s");
    assert_eq!(code, 3, "{check:#}");
    assert_eq!(check["verdict"], "no_data");
    assert!(
        check["message"].as_str().unwrap().contains("window of 5s"),
        "{check:#}"
    );
}
