//! Nothing that somebody wrote leaves a log: no prompt, no output, no argument, no path.

use std::io::Read;

use crate::{Place, files, repository};

/// Every free-text field of the fixtures holds this and a number.
const MARKER: &str = "PRIVATE";
/// A tool of the fixtures; a search that finds it would find a marker as well.
const CONTROL: &str = "bash";

/// The bytes of a file with everything packed inside it (the pages of a table) unpacked behind them.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            let mut page = Vec::new();
            if let Ok(frame) = zstd::Decoder::with_buffer(&bytes[at..]) {
                let _ = frame.single_frame().take(64 << 20).read_to_end(&mut page);
            }
            all.extend(page);
        }
    }
    let table = bytes.starts_with(b"PAR1");
    assert!(!table || all.len() > bytes.len(), "nothing in it is packed");
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// A place with the fixtures in a folder, and a bad line and a stray file full of markers.
fn place() -> Place {
    let place = Place::new();
    for (log, bytes) in files(&repository().join("tests/fixtures/logs")) {
        assert!(holds(&bytes, MARKER), "{log} has no marker");
        place.write(&format!("logs/{log}"), bytes);
    }
    place.write(
        "logs/torn.jsonl",
        [
            &place.read("logs/codex.jsonl")[..],
            b"{\"type\": \"PRIVATE-900\", \"PRIVATE-901\n\"PRIVATE-902\"\nPRIVATE-903 {}\n",
        ]
        .concat(),
    );
    place.write("logs/stray.txt", "PRIVATE-904\n");
    place
}

/// Everything that every command prints and writes about the logs, each with what it is called.
fn everything(place: &Place, options: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let logs = place.path("logs");
    // By their absolute path, which must not appear either.
    let logs = logs.to_str().unwrap();
    let mut lines = vec![format!("import {logs} {options} --out dataset")];
    for data in ["dataset".to_owned(), format!("{logs} {options}")] {
        for by in ["source", "harness", "model", "role", "tool"] {
            lines.push(format!("gaps {data} --by {by} --format json"));
        }
        lines.push(format!("gaps {data} --by source"));
        lines.push(format!(
            "sweep {data} --idle 1s,60s --by source --format json --out set"
        ));
        lines.push(format!("sweep {data} --idle 1s,60s --by source"));
        lines.push(format!("sweep {data} --idle 1s --list-kills 1"));
    }
    for line in lines {
        let done = place.run(&line).exits(0);
        // The command that list-kills prints names the logs as they were given.
        let stdout = done.stdout.replace(&format!("policysim replay {logs}"), "");
        all.push((format!("stdout of {line}"), stdout.into_bytes()));
        all.push((format!("stderr of {line}"), done.stderr.into_bytes()));
    }
    let kills = place.run("sweep dataset --idle 1s --list-kills 1").ok();
    for command in kills
        .lines()
        .filter_map(|line| line.trim().strip_prefix("policysim "))
    {
        let script = format!("'{}' {command} --format json", crate::POLICYSIM);
        let done = crate::finish(place.command("sh").args(["-c", &script])).exits(0);
        all.push((command.to_owned(), done.stdout.into_bytes()));
    }
    for folder in ["dataset", "set"] {
        for (file, bytes) in files(&place.path(folder)) {
            all.push((format!("{folder}/{file}"), unpacked(&bytes)));
        }
    }
    all
}

#[test]
fn no_free_text_and_no_path_leaves_a_log() {
    let place = place();
    let root = place.0.path().to_string_lossy().into_owned();
    let all = everything(&place, "");
    for (what, bytes) in &all {
        let shown = String::from_utf8_lossy(bytes);
        let marked = shown.find(MARKER).map(|at| &shown[at..][..12]);
        assert_eq!(marked, None, "{what}");
        assert!(!holds(bytes, &root), "{what} holds an absolute path");
        assert!(!holds(bytes, "/home/"), "{what} holds a path of the log");
    }
    for file in ["dataset/events.parquet", "dataset/runs.parquet"] {
        let (_, bytes) = all.iter().find(|(what, _)| what == file).unwrap();
        let known = if file.ends_with("runs.parquet") {
            "claude.jsonl"
        } else {
            CONTROL
        };
        assert!(holds(bytes, known), "the search finds nothing in {file}");
    }
    let (_, quarantine) = all
        .iter()
        .find(|(what, _)| what == "dataset/quarantine.csv")
        .unwrap();
    assert!(holds(quarantine, "torn.jsonl"), "bad lines are listed");
}

#[test]
fn hashed_sources_are_named_nowhere() {
    let place = place();
    for (what, bytes) in everything(&place, "--hash-sources") {
        for source in [
            "claude.jsonl",
            "codex.jsonl",
            "gemini.json",
            "torn",
            "stray",
        ] {
            assert!(!holds(&bytes, source), "{what} names {source}");
        }
        assert!(!holds(&bytes, MARKER), "{what}");
    }
    let manifest = place.json("dataset/manifest.json");
    assert_eq!(manifest["options"]["hash_sources"], true);
    let sources = manifest["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 8, "each source has a name of its own");
}

#[test]
fn a_failure_tells_no_content_either() {
    let place = place();
    place.write("text.jsonl", "PRIVATE-910\nPRIVATE-911\n");
    place.write("waits.csv", "kind,duration_ms\nPRIVATE-912,PRIVATE-913\n");
    place.write(
        "events.csv",
        "run,t_ms,kind\nr,PRIVATE-914,run_start\nr,1,PRIVATE-915\n",
    );
    place.write("other.json", "{\"PRIVATE-916\": [\"PRIVATE-917\"]}");
    for line in [
        "import text.jsonl --out d",
        "import waits.csv --strict --out d",
        "import events.csv --strict --out d",
        "import other.json --out d",
        "import logs --strict --out d",
        "import text.jsonl --format claude --strict --out d",
        "gaps text.jsonl --format json",
    ] {
        let done = place.run(line);
        let said = done.stdout + &done.stderr;
        let prompt = said.contains("PRIVATE-");
        assert!(!prompt, "{line}\n{said}");
    }
}

/// A policy, and rules, that were named by an absolute path stand in no result with it: by their place below the current
/// directory, or by their name.
#[test]
fn a_policy_is_never_named_by_an_absolute_path() {
    let (place, elsewhere) = (crate::fleet::place(), Place::new());
    let text = "preset = \"pi-desktop-0129\"\n[idle]\nwindow = \"60s\"\n";
    let rules = "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\n\
                 [[rule]]\nsame_as = \"POLICY\"\nexcept = [\"idle.window\"]\n\
                 [[rule]]\nmetric = \"newly_killed\"\nagainst = \"POLICY\"\nmax = 0\n";
    let front_matter = "---\nname: explorer\nidle-timeout: 5\n---\n";
    for (at, policy_name) in [(&place, "policies/own.toml"), (&elsewhere, "own.toml")] {
        let policy = at.write("policies/own.toml", text);
        let policy = policy.to_str().unwrap();
        let agent = at.write("policies/own.md", front_matter);
        let agent = format!("pi-desktop:{}", agent.display());
        let gate = at.write("policies/rules.toml", rules.replace("POLICY", policy));
        let gate = format!("--rules {}", gate.display());
        let mut lines = vec![
            format!("gate summarise telemetry --policy {policy} --out t.summary"),
            format!("sweep telemetry --base {policy} --idle 60s,120s --format json --out set"),
            format!("sweep telemetry --base {policy} --idle 60s,120s"),
            format!("gaps telemetry --policy {policy} --format json"),
            format!("settle telemetry --policy {policy},{agent} --format json"),
            format!("replay telemetry --run a07 --policy {policy} --format json"),
            format!("replay telemetry --run a07 --policy {policy} --set idle.window=1m"),
            format!("report telemetry --policy {policy} --current {agent} -o adr"),
            format!("gate init telemetry --policy {policy}"),
        ];
        for format in ["text", "json", "junit", "github", "summary"] {
            for data in ["telemetry", "t.summary"] {
                lines.push(format!(
                    "gate {data} --policy {policy} {gate} --format {format}"
                ));
            }
        }
        for line in lines {
            let done = place.run(&line);
            assert!(
                done.code == Some(0) || line.starts_with("gate"),
                "{line}\n{}",
                done.stderr
            );
            assert!(done.code != Some(2), "{line}\n{}", done.stderr);
            for root in [&place, &elsewhere] {
                let root = root.0.path().to_str().unwrap();
                assert!(!done.stdout.contains(root), "{line}\n{}", done.stdout);
            }
            if line.contains("--format json") {
                assert!(done.stdout.contains(policy_name), "{line}\n{}", done.stdout);
            }
        }
        for folder in ["set", "adr"] {
            for (file, bytes) in files(&place.path(folder)) {
                for root in [&place, &elsewhere] {
                    let root = root.0.path().to_str().unwrap();
                    assert!(
                        !holds(&bytes, root),
                        "{folder}/{file} holds an absolute path"
                    );
                }
            }
        }
        let summary = place.read("t.summary");
        assert!(holds(&summary, &format!("\"policy\":\"{policy_name}\"")));
    }
}
