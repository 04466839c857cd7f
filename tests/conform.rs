//! `policy conform` and `policy check`: what passes, what is not yet, what is a finding.

use std::fs;

use crate::{Place, ends_in, files, json, repository, shared};

/// What vectors and scenarios may need that is no matter of a policy (logs are imported, see
/// `scenarios.rs`; texts are read by people) or that later work brings.
const LATER: [&str; 5] = [
    "statistics",
    "gap-samples/1",
    "gate/1",
    "a session log",
    "a check described in text",
];

#[test]
fn our_own_vectors_pass_and_a_changed_one_is_named() {
    let place = Place::new();
    let vectors = fs::read_to_string(repository().join("tests/vectors/silences.json")).unwrap();
    place.write("vectors/silences.json", &vectors);
    let passed = place.run("policy conform vectors").ok();
    for name in [
        "own-silent-from-the-start",
        "own-completes",
        "own-wait-for-all",
    ] {
        let line = passed.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.starts_with("ok"), "{line}");
    }
    assert!(!passed.contains("MISMATCH"));
    place.write(
        "changed/silences.json",
        vectors.replace("\"at_ms\": 9000", "\"at_ms\": 9001"),
    );
    let failed = place.run("policy conform changed").exits(1).stdout;
    let line = failed
        .lines()
        .find(|line| line.starts_with("MISMATCH"))
        .unwrap();
    assert!(line.contains("own-completes"), "{line}");
    assert!(
        failed.contains("9001") && failed.contains("9000"),
        "{failed}"
    );
    assert_eq!(failed.matches("MISMATCH").count(), 1, "{failed}");
}

#[test]
fn what_nobody_knows_is_an_error_and_never_skipped() {
    let place = Place::new();
    for (file, content) in [
        (
            "preset.json",
            r#"[{"name": "v1", "preset": "pi-desktop-9999", "events": [], "horizon_ms": 1, "expect": {"outcome": "running"}}]"#,
        ),
        (
            "kind.json",
            r#"[{"name": "v1", "kind": "tarot", "input": {}, "expect": {"card": "fool"}}]"#,
        ),
        (
            "event.json",
            r#"[{"name": "v1", "preset": "pi-desktop-0129", "events": [{"t_ms": 1, "kind": "sneeze"}], "horizon_ms": 9, "expect": {"outcome": "running", "at_ms": 9, "code": null}}]"#,
        ),
        (
            "format.json",
            r#"{"scenario": "S", "format": "neutral-timeline/9", "events": [], "expect": {}}"#,
        ),
        ("cut.json", r#"[{"name": "v1""#),
    ] {
        place.write(file, content);
        let done = place.run(&format!("policy conform {file}"));
        assert_ne!(done.code, Some(0), "{file}\n{}", done.stdout);
        let said = done.stdout + &done.stderr;
        assert!(
            !said.lines().any(|line| line.starts_with("not yet")),
            "{file}\n{said}"
        );
        assert!(said.contains("v1") || said.contains(file), "{file}\n{said}");
    }
}

#[test]
fn every_reference_vector_and_scenario_conforms() {
    for folder in ["vectors", "scenarios"] {
        let Some(path) = shared(folder) else { return };
        let place = Place::new();
        let args = ["policy".as_ref(), "conform".as_ref(), path.as_os_str()];
        let printed = place.run_args(args).ok();
        for line in printed.lines().filter(|line| line.starts_with("not yet")) {
            assert!(LATER.iter().any(|later| line.ends_with(later)), "{line}");
        }
        assert!(
            printed.lines().any(|line| line.starts_with("ok")),
            "{printed}"
        );
        assert!(!printed.contains("MISMATCH"), "{printed}");
        // Every file appears, whatever its name: by its vectors, or by itself.
        for (file, bytes) in files(&path) {
            if !ends_in(&file, "json") {
                continue;
            }
            let content: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            let vectors = content.as_array().cloned().unwrap_or_default();
            for vector in vectors {
                let name = vector["name"].as_str().unwrap();
                assert!(printed.contains(name), "{file}: {name}");
            }
            if content.is_object() {
                let stem = file.trim_end_matches(".json");
                assert!(printed.contains(stem), "{file}");
            }
        }
    }
}

#[test]
fn a_changed_reference_vector_fails_by_its_name() {
    let Some(path) = shared("vectors") else {
        return;
    };
    let mut changed = 0;
    for (file, bytes) in files(&path) {
        let Ok(serde_json::Value::Array(mut vectors)) = serde_json::from_slice(&bytes) else {
            continue;
        };
        let with_number = |vector: &&mut serde_json::Value| {
            vector["expect"]["at_ms"].is_u64() && vector["kind"].is_null()
        };
        let Some(vector) = vectors.iter_mut().find(with_number) else {
            continue;
        };
        let name = vector["name"].as_str().unwrap().to_owned();
        let at_ms = vector["expect"]["at_ms"].as_u64().unwrap();
        vector["expect"]["at_ms"] = (at_ms + 1).into();
        let place = Place::new();
        place.write(&file, serde_json::Value::Array(vectors).to_string());
        let failed = place.run(&format!("policy conform {file}")).exits(1).stdout;
        let mismatches: Vec<&str> = failed
            .lines()
            .filter(|line| line.starts_with("MISMATCH"))
            .collect();
        assert_eq!(mismatches.len(), 1, "{file}\n{failed}");
        assert!(
            mismatches[0].contains(&name),
            "{file}: {name}\n{}",
            mismatches[0]
        );
        changed += 1;
    }
    assert!(changed > 0);
}

#[test]
fn check_reports_the_known_traps_of_the_presets() {
    let place = Place::new();
    for (line, words) in [
        ("policy check pi-desktop-0119", &["600s", "TaskWait"][..]),
        ("policy check netclaw-subagent", &["prefill", "first"][..]),
        (
            "policy check pi-desktop-0129 --retry later",
            &["300s", "envelope"][..],
        ),
    ] {
        let found = place.run(line).exits(1).stdout;
        assert!(
            found.lines().any(|line| line.starts_with("finding")),
            "{line}\n{found}"
        );
        assert!(
            words.iter().any(|word| found.contains(word)),
            "{line}\n{found}"
        );
        let machine = place.run(&format!("{line} --format json")).exits(1).stdout;
        assert!(json(&machine).to_string().contains("\"id\""), "{machine}");
    }
    place.run("policy check pi-desktop-0129 --retry 0129").ok();
}

#[test]
fn a_shown_policy_is_the_policy() {
    let place = Place::new();
    let list = json(&place.run("policy list --format json").ok()).to_string();
    for preset in [
        "pi-desktop-0119",
        "pi-desktop-0129",
        "pi-desktop-0166",
        "pi-ext-inproc",
        "pi-ext-adr0010",
        "no-mistakes-fixed",
    ] {
        assert!(list.contains(&format!("\"{preset}\"")), "{preset}");
        let shown = place.run(&format!("policy show {preset}")).ok();
        place.write("shown.toml", &shown);
        assert_eq!(place.run("policy show shown.toml").ok(), shown, "{preset}");
    }
    let changed = place
        .run("policy show pi-desktop-0129 --set idle=360s")
        .ok();
    place.write("changed.toml", &changed);
    assert!(place.run("policy show changed.toml").ok().contains("360s"));
}
