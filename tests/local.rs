//! The word `local`: an answer for somebody who has nothing but an agent installed.

use std::fs;

use crate::{Place, json, repository};

/// Where each agent keeps its logs, below the home.
const FOLDERS: [(&str, &str); 5] = [
    ("claude", ".claude/projects/-w/session.jsonl"),
    ("codex", ".codex/sessions/2026/03/02/rollout-1.jsonl"),
    ("copilot", ".copilot/session-state/c1/events.jsonl"),
    ("gemini", ".gemini/tmp/0a/chats/session-1.json"),
    ("pi", ".pi/agent/sessions/--w--/session.jsonl"),
];

fn fixture(agent: &str) -> Vec<u8> {
    let ending = if agent == "gemini" { "json" } else { "jsonl" };
    let path = format!("tests/fixtures/logs/{agent}.{ending}");
    fs::read(repository().join(path)).unwrap()
}

#[test]
fn one_agent_is_enough_for_an_answer() {
    for (agent, log) in FOLDERS {
        let place = Place::new();
        place.write(&format!("home/{log}"), fixture(agent));
        for line in [
            "gaps local",
            "gaps local --by source --format json",
            "sweep local --format json",
        ] {
            let done = place.run(line).exits(0);
            let found = done.stderr.lines().find(|line| line.contains("1 log"));
            let found = found.unwrap_or_else(|| panic!("{agent}: {}", done.stderr));
            assert!(found.starts_with(agent), "{found}");
            let folder = log.split('/').next().unwrap();
            assert!(found.contains(&format!("~/{folder}")), "{found}");
            if line.ends_with("json") {
                let runs = json(&done.stdout)["data"]["runs"].as_u64().unwrap();
                assert!(runs > 0, "{agent}: {line}");
            }
            assert!(!done.stdout.contains(&*place.path("home").to_string_lossy()));
        }
        let imported = place.run("import local --out dataset").exits(0);
        assert!(imported.stdout.contains(agent), "{}", imported.stdout);
    }
}

#[test]
fn all_agents_at_once_are_told_apart() {
    let place = Place::new();
    for (agent, log) in FOLDERS {
        place.write(&format!("home/{log}"), fixture(agent));
    }
    let gaps = json(&place.run("gaps local --by harness --format json").ok());
    for (agent, _) in FOLDERS {
        assert!(gaps["groups"][agent].is_object(), "{agent}");
    }
}

#[test]
fn a_home_without_agents_is_an_error_that_says_where_was_looked() {
    let place = Place::new();
    fs::create_dir(place.path("home")).unwrap();
    for line in [
        "gaps local",
        "sweep local",
        "import local --out d",
        "replay local --run x",
    ] {
        let error = place.run(&format!("{line} --quiet")).error();
        for (_, log) in FOLDERS {
            let folder = log.split('/').next().unwrap();
            assert!(
                error.contains(folder),
                "{line}: {folder} is not in\n{error}"
            );
        }
    }
    assert!(!place.path("d").exists());
}

#[test]
fn the_agents_variables_are_honoured() {
    let place = Place::new();
    place.write("moved/sessions/rollout-1.jsonl", fixture("codex"));
    let mut command = place.command(crate::POLICYSIM);
    command
        .args(["gaps", "local"])
        .env("CODEX_HOME", place.path("moved"));
    let done = crate::finish(&mut command).exits(0);
    assert!(done.stderr.contains("codex: 1 log"), "{}", done.stderr);
}
