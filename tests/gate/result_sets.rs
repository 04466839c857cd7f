//! A gate on the result set of a sweep: what it answers is what the runs answer, and what it cannot it says.

use std::fmt::Write;

use serde_json::Value;

use super::{gate, table};
use crate::Place;

/// Rules, and whether a result set answers them on the telemetry named.
#[rustfmt::skip]
const RULES: &[(&str, &[&str])] = &[
    ("metric = \"false_kill_rate\"\nmax = \"1%\"", &["good", "small", "bad", "open", "tied", "none"]),
    ("metric = \"false_kill_rate\"\nmax = \"20%\"\ncluster = \"run\"", &["good", "small", "bad", "open", "tied", "none"]),
    ("metric = \"false_kill_rate\"\nmax = \"1%\"\nby = \"model\"", &["good", "small", "bad", "open", "tied", "none"]),
    ("metric = \"false_kill_rate\"\nmax = \"20%\"\nstratum = { model = \"model-b\" }\ncluster = \"run\"", &["good", "bad"]),
    ("metric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"60s,300s,600s\"", &["good", "small", "bad", "none"]),
    ("metric = \"false_kill_rate\"\nmax = \"1%\"\nconfidence = 0.99", &["good", "small", "open"]),
    ("metric = \"kill_rate\"\nmax = \"30%\"\ncluster = \"run\"", &["good", "small", "bad", "open", "none"]),
    ("metric = \"kill_rate\"\nmax = \"30%\"\ncause = \"idle_timeout\"\ncluster = \"run\"", &["good", "small", "bad"]),
    ("metric = \"true_kill_rate\"\nmax = \"1%\"\ncluster = \"run\"", &["good", "small", "none"]),
    ("metric = \"detected_share\"\nmin = \"80%\"", &["good", "small"]),
    ("metric = \"missed_share\"\nmax = \"20%\"", &["good", "small"]),
    ("metric = \"killed_early_share\"\nmax = \"20%\"", &["good", "small"]),
    ("metric = \"newly_killed_rate\"\nagainst = \"w700.toml\"\nmax = \"1%\"", &["good", "small"]),
    ("metric = \"newly_killed\"\nagainst = \"w700.toml\"\nmax = 0", &["good", "small", "none"]),
    ("metric = \"newly_spared\"\nagainst = \"w700.toml\"\nmax = 0", &["good", "small", "bad", "none"]),
    ("metric = \"work_lost\"\nmax = \"20m\"", &["good", "small", "none"]),
    ("metric = \"settles_in_wait\"\nmin = \"50%\"", &["good"]),
    ("metric = \"detection_bound\"\nmax = \"300s\"", &["good"]),
    ("metric = \"known_in_wait\"\nmin = \"80%\"", &["good"]),
    ("metric = \"misread_rate\"\nmax = \"1%\"", &["good"]),
    ("metric = \"waits_per_run\"\nmax = 2", &["good"]),
    ("metric = \"runs\"\nmin = 300", &["good", "small", "none"]),
    ("metric = \"hung_runs\"\nmin = 20", &["good", "small", "none"]),
    ("metric = \"ties\"\nmax = 0", &["good", "tied", "none"]),
    ("metric = \"unresolved_share\"\nmax = \"1%\"", &["good", "open"]),
    ("metric = \"malformed_share\"\nmax = \"1%\"", &["good"]),
    ("metric = \"mistakes\"\nmax = 0", &["good", "bad"]),
    // what it does not hold
    ("metric = \"false_kill_rate\"\nmax = \"1%\"\ncause = \"idle_timeout\"", &[]),
    ("metric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"60s,300s,500s\"", &[]),
    ("metric = \"false_kill_rate\"\nmax = \"20%\"\ncluster = \"session\"", &["good", "small", "none"]),
    ("metric = \"newly_killed\"\nagainst = \"wait200.toml\"\nmax = 0", &[]),
    ("metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"1m\"", &[]),
    ("metric = \"slot_time_lost\"\nmax = \"10m\"", &[]),
    ("metric = \"sessions\"\nmin = 1", &[]),
    ("metric = \"flagged_share\"\nmax = \"1%\"", &[]),
    ("metric = \"detection_time\"\nquantile = \"p50\"\nmax = \"5m\"", &[]),
    ("metric = \"wait.pre_token\"\nquantile = \"p99\"\nmax = \"10m\"", &[]),
    ("metric = \"idle_gap\"\nquantile = \"p99\"\nmax = \"10m\"", &[]),
    ("metric = \"known_in_wait\"\nmin = \"80%\"\nparents = { wait = \"100s\" }", &[]),
];

const DATA: [&str; 6] = ["good", "small", "bad", "open", "tied", "none"];

fn swept() -> Place {
    let place = table::place();
    for data in DATA {
        place
            .run(&format!(
                "sweep {data} --base w700.toml --idle 60s,299s,300s,310s,600s --settle --out {data}.sweep --quiet"
            ))
            .exits(0);
    }
    place
}

/// The verdict of every check, in order, and the result.
fn checks(place: &Place, source: &str) -> Vec<Value> {
    let mut rules = String::new();
    for (rule, _) in RULES {
        writeln!(rules, "[[rule]]\n{rule}").unwrap();
    }
    let (mut result, _) = gate(place, &format!("{source} --policy plain.toml"), &rules);
    let checks = result["checks"].take();
    checks.as_array().unwrap().clone()
}

#[test]
fn a_result_set_answers_what_its_runs_answer_or_says_why_not() {
    let place = swept();
    let mut answered = 0;
    for data in DATA {
        let (runs, sweep) = (
            checks(&place, data),
            checks(&place, &format!("{data}.sweep")),
        );
        assert_eq!(runs.len(), RULES.len());
        for ((run, sweep), (rule, holds)) in runs.iter().zip(&sweep).zip(RULES) {
            let told = sweep["reason"].is_null();
            if holds.contains(&data) {
                assert!(told, "{data} {rule}\n{sweep:#}");
            }
            if !told {
                assert_eq!(sweep["code"], "not_in_source", "{data} {rule}");
                assert_eq!(sweep["verdict"], "no_data", "{data} {rule}");
                let message = sweep["message"].as_str().unwrap();
                assert!(message.starts_with("not run: "), "{message}");
                continue;
            }
            answered += 1;
            assert_eq!(
                sweep["verdict"], run["verdict"],
                "{data} {rule}\n{sweep:#}\n{run:#}"
            );
            assert_eq!(sweep["code"], run["code"], "{data} {rule}");
            for figure in ["lower_share", "upper_share", "upper_ms", "n", "point_count"] {
                let (ours, theirs) = (&sweep["observed"][figure], &run["observed"][figure]);
                let near = ours == theirs
                    || ours
                        .as_f64()
                        .zip(theirs.as_f64())
                        .is_some_and(|(a, b)| (a - b).abs() <= 1e-9 * b.abs());
                // in doubt a sweep cannot say which of them are sure
                let doubtful = rule.contains("newly");
                assert!(
                    near || doubtful,
                    "{data} {rule} {figure}\n{sweep:#}\n{run:#}"
                );
            }
            assert_eq!(sweep["strata"], run["strata"], "{data} {rule}");
        }
    }
    assert!(answered >= 90, "{answered}");
}

/// Nothing that the rules of a result set ask for is answered by silence: the window it is about is named as well.
#[test]
fn the_closed_window_is_the_sweeps() {
    let place = swept();
    let rules = "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\n";
    let of = |source: &str| gate(&place, &format!("{source} --policy plain.toml"), rules).0;
    let (runs, sweep) = (of("good"), of("good.sweep"));
    assert_eq!(
        runs["data"]["closed_window"],
        sweep["data"]["closed_window"]
    );
    assert_eq!(runs["data"]["first_day"], sweep["data"]["first_day"]);
    assert_eq!(runs["answer"], sweep["answer"]);
    // drift needs silences, on either side
    let (result, code) = gate(
        &place,
        "good.sweep --baseline good --policy plain.toml",
        "[[rule]]\ndrift = \"all\"\n",
    );
    assert_eq!(code, 3);
    assert_eq!(
        result["checks"][0]["reason"],
        "a sweep's result holds no silences"
    );
    // a change of a figure can be told from two sweeps, and from a sweep and a dataset
    for baseline in ["good", "good.sweep"] {
        let (result, code) = gate(
            &place,
            &format!("bad.sweep --baseline {baseline} --policy plain.toml"),
            "[[rule]]\nmetric = \"false_kill_rate\"\nmax_increase = \"1%\"\ncluster = \"run\"\n",
        );
        assert_eq!(
            (result["verdict"].as_str(), code),
            (Some("fail"), 1),
            "{baseline}"
        );
    }
}

#[test]
fn a_policy_that_was_not_swept_names_the_nearest_cell() {
    let place = swept();
    place.write("rules.toml", "[[rule]]\ncheck = \"all\"\n");
    place.write(
        "w320.toml",
        "preset = \"pi-desktop-0129\"\nidle = \"320s\"\ntask_wait = \"500s\"\n",
    );
    let line = |policy: &str, more: &str| {
        format!("gate good.sweep --policy {policy} --rules rules.toml --quiet{more}")
    };
    assert_eq!(
        place.run(&line("w320.toml", "")).error().trim_end(),
        "error: good.sweep: no cell of the sweep equals w320.toml: the nearest is cell 4, idle 310s, which differs in idle.window (310s there, 320s in the policy), task_wait.timeout (600s there, 500s in the policy); sweep with --base w320.toml and that cell among its axes, or gate the dataset"
    );
    place.run(&line("plain.toml", "")).exits(0);
    // the base itself is no cell unless it was swept
    assert!(
        place
            .run(&line("w700.toml", ""))
            .error()
            .contains("nearest is cell 5, idle 600s")
    );
    // what the rules say of the recording must be what the sweep took
    place.write(
        "rules.toml",
        "recorded_idle = \"600s\"\n[[rule]]\ncheck = \"all\"\n",
    );
    assert!(
        place
            .run(&line("plain.toml", ""))
            .error()
            .contains("sweep with --recorded-idle")
    );
    // a sweep of before, which does not say what its base was
    let mut sweep = place.json("good.sweep/sweep.json");
    sweep.as_object_mut().unwrap().remove("base_policy");
    place.write("good.sweep/sweep.json", sweep.to_string());
    place.write("rules.toml", "[[rule]]\ncheck = \"all\"\n");
    let error = place.run(&line("plain.toml", "")).error();
    assert!(
        error.contains("good.sweep/sweep.json: it does not say what its base policy was"),
        "{error}"
    );
    place.write("good.sweep/sweep.json", "{}");
    assert!(
        place
            .run(&line("plain.toml", ""))
            .error()
            .contains("not a sweep")
    );
}

/// What holds no events is refused by name where events are needed.
#[test]
fn summaries_and_result_sets_are_told_apart_from_telemetry() {
    let place = swept();
    place
        .run("gate summarise good --policy plain.toml --out good.summary --quiet")
        .exits(0);
    for (what, words) in [
        (
            "good.summary",
            "good.summary is a summary of `policysim gate summarise`, which holds no events",
        ),
        (
            "good.sweep",
            "good.sweep is a result set of `policysim sweep --out`, which holds no events",
        ),
    ] {
        for command in [
            format!("gate init {what} --policy plain.toml"),
            format!("gate summarise {what} --policy plain.toml --out again.summary"),
            format!("gaps {what}"),
            format!("replay {what} --run r000001"),
            format!("sweep {what}"),
            format!("settle {what}"),
            format!("import {what} --out again"),
            format!("gate good {what} --policy plain.toml --rules rules.toml"),
        ] {
            place.write("rules.toml", "[[rule]]\nmetric = \"runs\"\nmin = 1\n");
            if command == "sweep good.summary" {
                // what a summary is for
                place.run(&command).exits(0);
                continue;
            }
            let error = place.run(&command).error();
            assert!(error.contains(words), "{command}\n{error}");
            assert!(error.contains("`policysim gate"), "{command}\n{error}");
        }
    }
}

/// The first line of a summary says what it is of; a change there is noticed as one in the body is.
#[test]
fn the_head_of_a_summary_is_under_its_checksum() {
    let place = table::place();
    place
        .run("gate summarise small --policy plain.toml --out small.summary --quiet")
        .exits(0);
    place.write("rules.toml", "[[rule]]\nmetric = \"runs\"\nmin = 1\n");
    let line = |file: &str| format!("gate {file} --policy plain.toml --rules rules.toml --quiet");
    place.run(&line("small.summary")).exits(0);
    let bytes = place.read("small.summary");
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
    for (from, to) in [
        ("\"malformed_lines\":0", "\"malformed_lines\":1"),
        ("\"hung\":0", "\"hung\":7"),
        ("2026-", "2025-"),
        ("\"policy\":\"plain.toml\"", "\"policy\":\"other.toml\""),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let mut changed = text.replacen(from, to, 1).into_bytes();
        changed.extend(&bytes[end..]);
        place.write("changed.summary", changed);
        let error = place.run(&line("changed.summary")).error();
        assert!(error.contains("is cut or was changed"), "{from}\n{error}");
    }
    let mut older = text
        .replacen("\"policysim_summary\":3", "\"policysim_summary\":1", 1)
        .into_bytes();
    older.extend(&bytes[end..]);
    place.write("older.summary", older);
    let error = place.run(&line("older.summary")).error();
    assert!(
        error.contains("a summary of version 1, expected 3: write it again from the events"),
        "{error}"
    );
}
