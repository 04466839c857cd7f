//! Every output of one gate says the same; snapshots keep what they look like.

use std::fs;

use serde_json::Value;

use crate::{Place, filtered, fleet, json, repository};

/// A check of every verdict, on the fleet that figures can be worked out of by hand.
const RULES: &str = r#"
confidence = 0.9

[[rule]]
name = "few runs are killed | <b>really</b>"
metric = "false_kill_rate"
max = "5%"

[[rule]]
metric = "false_kill_rate"
max = "40%"
by = "model"

[[rule]]
metric = "false_kill_rate"
max = "60%"

[[rule]]
metric = "wait.human"
quantile = "p99"
max = "1h"
inconclusive = "pass"

[[rule]]
metric = "detection_time"
quantile = "p99"
max = "1h"
inconclusive = "pass"

[[rule]]
check = "idle-not-below-wait"

[[rule]]
key = "idle.window"
below = "task_wait.timeout"

[[rule]]
same_as = "pi-desktop-0129"

[[rule]]
drift = "idle_gap"
"#;

const POLICY: &str = "preset = \"pi-desktop-0129\"\n\n[idle]\nwindow = \"200s\"\n";

fn place() -> Place {
    let place = fleet::place();
    place.write("rules.toml", RULES);
    place.write("policy.toml", POLICY);
    place
}

const LINE: &str = "gate telemetry --policy policy.toml --rules rules.toml --quiet";

#[test]
fn every_format_prints_what_it_did() {
    let place = place();
    let folder = repository().join("tests/snapshots");
    let mut changed = Vec::new();
    for (format, more) in [
        ("text", ""),
        ("json", ""),
        ("junit", ""),
        ("github", ""),
        ("summary", ""),
        ("explain", " --explain"),
    ] {
        let name = if more.is_empty() { format } else { "text" };
        let done = place.run(&format!("{LINE} --format {name}{more}")).exits(1);
        assert_eq!(done.stderr, "");
        let printed = filtered(&done.stdout, &place);
        let path = folder.join(format!("gate.{format}.txt"));
        if std::env::var_os("POLICYSIM_SNAPSHOTS").is_some_and(|word| word == "overwrite") {
            fs::write(&path, &printed).unwrap();
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        if printed != before {
            let differs = before
                .lines()
                .zip(printed.lines())
                .find(|(old, new)| old != new);
            changed.push(format!("{}: {differs:?}", path.display()));
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}

/// BR-98: every consumer gets the same verdict and the same code, none has to read prose.
#[test]
fn br_98_every_output_says_the_same() {
    let place = place();
    let done = place.run(&format!(
        "{LINE} --format github --format json=gate.json --format junit=gate.xml --format summary=gate.md --format text=gate.txt"
    ));
    let annotations = done.exits(1).stdout;
    assert!(
        annotations.lines().all(|line| line.starts_with("::")),
        "{annotations}"
    );
    let text = |name: &str| String::from_utf8(place.read(name)).unwrap();
    let result: Value = json(&text("gate.json"));
    let (xml, summary, shown) = (text("gate.xml"), text("gate.md"), text("gate.txt"));
    let cases: Vec<&str> = xml.split("<testcase ").skip(1).collect();
    let rows: Vec<&str> = summary
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(2)
        .collect();
    let checks = result["checks"].as_array().unwrap();
    assert_eq!((cases.len(), rows.len()), (checks.len(), checks.len()));
    for ((check, case), (row, line)) in checks.iter().zip(cases).zip(rows.iter().zip(shown.lines()))
    {
        let verdict = check["verdict"].as_str().unwrap();
        let counts_as = check["counts_as"].as_str().unwrap();
        assert!(
            row.starts_with(&format!("| {}", verdict.replace('_', "\\_"))),
            "{row}"
        );
        assert!(line.starts_with(verdict), "{line}");
        let (failed, skipped) = (case.contains("<failure"), case.contains("<skipped"));
        assert_eq!(
            (failed, skipped),
            (
                counts_as == "fail",
                counts_as == "inconclusive" || counts_as == "no_data"
            ),
            "{case}"
        );
        if counts_as != "pass" {
            let code = check["code"].as_str().unwrap();
            assert!(case.contains(&format!("type=\"{code}\"")), "{case}");
            let title = format!("title=policysim gate%3A {verdict} {code}::");
            let level = if counts_as == "fail" {
                "::error "
            } else {
                "::warning "
            };
            assert!(
                annotations
                    .lines()
                    .any(|line| line.starts_with(level) && line.contains(&title)),
                "{title}\n{annotations}"
            );
        }
    }
    let worst = format!(
        "::notice title=policysim gate::{}",
        result["verdict"].as_str().unwrap()
    );
    assert!(annotations.contains(&worst));
    assert!(
        xml.contains("tests=\"9\"") && xml.contains("failures=\"2\""),
        "{xml}"
    );
}

#[test]
fn one_line_when_all_passes_and_clean_output_for_every_format() {
    let place = place();
    place.write(
        "good.toml",
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"80%\"\n",
    );
    let line = "gate telemetry --policy policy.toml --rules good.toml";
    let done = place.run(line).exits(0);
    let digest = place.json("telemetry/manifest.json")["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(done.stdout.split_whitespace().collect::<Vec<_>>().join(" "), format!(
        "pass: 1 check hold for policy.toml (telemetry, 23 runs, 2026-03-02 to 2026-03-03, closed window {digest})"
    ).replace("1 check hold", "1 check holds"));
    for (format, start) in [
        ("json", "{"),
        ("junit", "<?xml"),
        ("github", "::notice"),
        ("summary", "### policysim gate"),
    ] {
        let done = place.run(&format!("{line} --format {format}")).exits(0);
        assert!(done.stdout.starts_with(start), "{format}\n{}", done.stdout);
    }
    // without any rule on telemetry none is read, and no demo either
    place.write("alone.toml", "[[rule]]\ncheck = \"all\"\n");
    let done = place
        .run("gate --policy pi-desktop-0129 --rules alone.toml")
        .exits(0);
    assert_eq!(
        done.stdout,
        "pass: 8 checks hold for pi-desktop-0129 (no telemetry needed)\n"
    );
    assert_eq!(done.stderr, "");
}

#[test]
fn the_same_gate_gives_the_same_bytes_for_any_number_of_threads() {
    let place = place();
    place.write(
        "lost.toml",
        "[[rule]]\nmetric = \"work_lost\"\nmax = \"1s\"\n[[rule]]\ndrift = \"all\"\n",
    );
    let print = |threads: u8, seed: u8| {
        let line = format!(
            "gate telemetry --baseline telemetry --policy policy.toml --rules lost.toml --format json --threads {threads} --seed {seed}"
        );
        place.run(&line).stdout
    };
    assert_eq!(print(1, 3), print(4, 3));
    assert_ne!(print(1, 3), "");
}
