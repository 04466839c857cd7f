//! `--help` of every command shows an example that works; completions and the manual page are whole.

use std::fs;

use crate::{Done, Place, finish, fleet, repository};

/// Every command and subcommand.
const COMMANDS: [&str; 24] = [
    "",
    "import",
    "gaps",
    "gate",
    "gate init",
    "gate schema",
    "gate summarise",
    "replay",
    "sweep",
    "report",
    "settle",
    "policy",
    "policy list",
    "policy show",
    "policy check",
    "policy conform",
    "policy schema",
    "synth",
    "synth fit",
    "synth run",
    "watch",
    "completions",
    "man",
    "help",
];

/// The lines of a help text that start with `policysim`, after `Example:` as well.
fn examples(help: &str) -> Vec<String> {
    let after = help.split("Example").skip(1).collect::<String>();
    after
        .lines()
        .filter_map(|line| line.find("policysim ").map(|at| &line[at..]))
        .map(|line| line.split("   ").next().unwrap().trim_end().to_owned())
        .collect()
}

/// A folder with everything that the examples name: logs, a dataset, a policy, a home with an agent's logs.
fn place() -> Place {
    let place = fleet::place();
    for (log, bytes) in crate::files(&repository().join("tests/fixtures/logs")) {
        place.write(&format!("logs/{log}"), &bytes);
        if log == "claude.jsonl" {
            place.write("home/.claude/projects/-w/session.jsonl", &bytes);
            place.write("project/session.jsonl", &bytes);
            let packed = zstd::encode_all(&*bytes, 1).unwrap();
            place.write("extra.jsonl.zst", packed);
        }
    }
    let models = repository().join("data/models");
    for (model, bytes) in crate::files(&models) {
        place.write(&format!("data/models/{model}"), bytes);
    }
    for (vectors, bytes) in crate::files(&repository().join("tests/vectors")) {
        place.write(&format!("vectors/{vectors}"), &bytes);
        place.write(&format!("scenarios/{vectors}"), bytes);
    }
    place.write(
        "policy.toml",
        "preset = \"pi-desktop-0129\"\nidle = \"360s\"\n",
    );
    let samples: Vec<String> = (0..400_u64)
        .map(|n| format!("pre_token,{},run-{}", 1_000 + n * 37, n / 4))
        .collect();
    place.write(
        "waits.csv",
        format!("kind,duration_ms,run\n{}\n", samples.join("\n")),
    );
    place.write("gate.toml", "[[rule]]\ncheck = \"all\"\n");
    place.run("import fleet.csv --out before").ok();
    place
        .run("sweep telemetry --base policy.toml --idle 360s --out sweep-results")
        .ok();
    fs::create_dir_all(place.path("home/.local/share/bash-completion/completions")).unwrap();
    place
}

/// Runs a line as a shell does, with the program under its name.
fn shell(place: &Place, line: &str) -> Done {
    let program = format!("policysim() {{ '{}' \"$@\"; }}\n", crate::POLICYSIM);
    finish(place.command("sh").args(["-e", "-c", &(program + line)]))
}

#[test]
fn every_command_shows_an_example_that_works() {
    let place = place();
    // What an example names that only its reader has, and what stands for it here.
    let stand_ins = [
        (
            "telemetry --run project/session.jsonl#3",
            "project --run session.jsonl#1",
        ),
        (
            "import logs/ extra.jsonl.zst --out telemetry",
            "import logs/ extra.jsonl.zst --out new",
        ),
        (
            "import ~/.claude/projects --out telemetry",
            "import ~/.claude/projects --out mine",
        ),
        (" | man -l -", " | cat"),
    ];
    for command in COMMANDS {
        let help = match command {
            "help" => place.run("help").ok(),
            command => place.run(&format!("{command} --help")).ok(),
        };
        assert!(help.contains("Usage: policysim"), "{command}\n{help}");
        let examples = examples(&help);
        assert!(!examples.is_empty(), "{command} shows no example");
        for example in examples {
            let mut line = example.clone();
            for (theirs, ours) in stand_ins {
                line = line.replace(theirs, ours);
            }
            let done = shell(&place, &line);
            let finding = example.contains("policy check");
            assert!(
                done.code == Some(0) || finding && done.code == Some(1),
                "{example}\n(run as {line})\n{}",
                done.stderr
            );
            let silent = example.contains(" > ");
            assert_eq!(done.stdout.is_empty(), silent, "{example}");
        }
    }
}

#[test]
fn nothing_asked_is_answered_with_help() {
    for line in ["", "policy", "synth"] {
        let done = Place::new().run(line).exits(2);
        assert!(done.stderr.contains("Usage: policysim"), "{line}");
        assert_eq!(done.stdout, "", "{line}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let version = Place::new().run("--version").ok();
    assert_eq!(
        version,
        format!("policysim {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn every_shell_has_completions() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&format!("completions {shell}")).ok();
        for word in ["import", "gaps", "replay", "sweep", "conform", "list-kills"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    // The one shell that is there wherever these tests run reads its script.
    let script = place.run("completions bash").ok();
    place.write("completions.bash", script);
    if let Ok(child) = place
        .command("bash")
        .args(["-n", "completions.bash"])
        .spawn()
    {
        crate::wait(child, "bash -n").ok();
    }
}

#[test]
fn the_manual_page_describes_every_command() {
    let place = Place::new();
    let page = place.run("man").ok();
    assert!(
        page.starts_with(".ie") || page.contains(".TH policysim 1"),
        "{page:.200}"
    );
    for command in COMMANDS.into_iter().filter(|command| *command != "help") {
        let title = format!("policysim {command}").trim_end().replace(' ', "-");
        assert!(page.contains(&format!(".TH {title} 1")), "{title}");
    }
    for option in [
        "\\-\\-idle",
        "\\-\\-hash\\-sources",
        "\\-\\-list\\-kills",
        "\\-\\-dialect",
    ] {
        assert!(page.contains(option), "{option}");
    }
    place.write("policysim.1", &page);
    if let Ok(child) = place.command("man").args(["-l", "policysim.1"]).spawn() {
        let shown = crate::wait(child, "man -l");
        // A system may have the name without the pages' formatter behind it.
        if shown.code == Some(0) && !shown.stdout.is_empty() {
            assert!(shown.stdout.to_lowercase().contains("sweep"));
        }
    }
}
