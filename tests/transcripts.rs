//! Transcripts of whole sessions at the prompt, and the commands that README.md shows.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::{Place, files, fleet, repository};

#[test]
fn transcripts() {
    let place = fleet::place();
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("policysim", std::path::Path::new(crate::POLICYSIM))
        .env("NO_COLOR", "1");
    cases.case(repository().join("tests/transcripts/*.trycmd"));
    cases.run();
    drop(place);
}

/// The `policysim` lines of README.md's shell blocks.
fn readme_lines() -> Vec<String> {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let mut lines = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && line.starts_with("policysim ") {
            lines.push(line.to_owned());
        }
    }
    assert!(lines.len() > 8, "{lines:?}");
    lines
}

/// A home with logs of two agents, and the files that the README's reader is thought to have.
fn place() -> Place {
    let place = fleet::place();
    let logs = files(&repository().join("tests/fixtures/logs"));
    for (log, path) in [
        (
            "claude.jsonl",
            "home/.claude/projects/my-project/session.jsonl",
        ),
        (
            "codex.jsonl",
            "home/.codex/sessions/2026/06/02/rollout-1.jsonl",
        ),
    ] {
        // From days that the README's reader selects.
        let log = String::from_utf8(logs[log].clone()).unwrap();
        place.write(path, log.replace("2026-03-02", "2026-06-02"));
    }
    for (model, bytes) in files(&repository().join("data/models")) {
        place.write(&format!("data/models/{model}"), bytes);
    }
    for (example, bytes) in files(&repository().join("data/examples")) {
        place.write(&format!("data/examples/{example}"), bytes);
    }
    for (vectors, bytes) in files(&repository().join("tests/vectors")) {
        place.write(&format!("path/to/vectors/{vectors}"), bytes);
    }
    for name in ["my-policy.toml", "policy.toml"] {
        place.write(name, "preset = \"pi-desktop-0129\"\nidle = \"360s\"\n");
    }
    // stands for the agent that the README watches
    let pi = place.write("bin/pi", "#!/bin/sh\necho working\n");
    fs::set_permissions(pi, fs::Permissions::from_mode(0o755)).unwrap();
    place.write("gate.toml", "[[rule]]\ncheck = \"all\"\n");
    place.write(
        "waits.csv",
        "kind,duration_ms,censored,run,role,model,tool\npre_token,4000,false,r1,fixer,m,\n",
    );
    place
}

#[test]
fn every_command_that_the_readme_shows_works() {
    let place = place();
    let lines = readme_lines();
    for line in &lines {
        let script = format!(
            "PATH=\"$PWD/bin:$PATH\"\npolicysim() {{ '{}' \"$@\"; }}\n{line}",
            crate::POLICYSIM
        );
        let done = crate::finish(place.command("sh").args(["-e", "-c", &script]));
        // the stand-in that hangs at its end is killed, as the README says
        let expected = if line.ends_with(" hang") { 124 } else { 0 };
        assert_eq!(done.code, Some(expected), "{line}\n{}", done.stderr);
        assert!(!done.stdout.is_empty(), "{line}");
    }
}

#[test]
fn the_policy_document_that_the_readme_shows_is_sound() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let document = readme.split("```toml\n").nth(1).unwrap();
    let document = document.split("```").next().unwrap();
    let place = Place::new();
    place.write("policy.toml", document);
    place.run("policy check policy.toml").ok();
    let shown = place.run("policy show policy.toml").ok();
    assert!(shown.contains("360s") && shown.contains("2h"), "{shown}");
}

#[test]
fn the_rules_that_the_readme_shows_read() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let document = readme.split("```toml\n").nth(2).unwrap();
    let document = document.split("```").next().unwrap();
    let place = place();
    place.write("gate.toml", document);
    let line =
        "gate telemetry --baseline telemetry --policy my-policy.toml --rules gate.toml --quiet";
    // 23 runs decide little
    let shown = place.run(line).exits(1).stdout;
    assert_eq!(shown.matches("\nno_data").count(), 0, "{shown}");
    assert!(
        shown.contains("idle clock: not moved since the baseline"),
        "{shown}"
    );
}
