//! The composite action, the example workflow and the pre-commit hook: their shell steps are run here as they stand.

use std::fs;
use std::os::unix::fs::symlink;

use crate::{Done, POLICYSIM, Place, finish, fleet, repository};

fn text(file: &str) -> String {
    fs::read_to_string(repository().join(file)).unwrap()
}

/// The shell scripts of `run: |` blocks, in order.
fn scripts(yaml: &str) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = |line: &str| line.len() - line.trim_start().len();
        if line.trim() != "run: |" {
            continue;
        }
        let mut script = String::new();
        while let Some(next) =
            lines.next_if(|next| next.trim().is_empty() || indent(next) > indent(line))
        {
            script.push_str(next.trim_start());
            script.push('\n');
        }
        scripts.push(script);
    }
    scripts
}

/// A folder with telemetry, a policy, rules, and `policysim` on its own path.
fn place(max: &str) -> Place {
    let place = fleet::place();
    fs::create_dir_all(place.path("bin")).unwrap();
    symlink(POLICYSIM, place.path("bin/policysim")).unwrap();
    place.write(
        "policy.toml",
        "preset = \"pi-desktop-0129\"\nidle = \"200s\"\n",
    );
    place.write(
        "gate.toml",
        format!("[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"{max}\"\n"),
    );
    place
}

/// Runs the steps of `action.yml` in order, as the runner does: each in a shell of its own, up to the first that fails.
fn run_action(place: &Place, more: &[(&str, &str)]) -> Done {
    let yaml = text("action.yml");
    let scripts = scripts(&yaml);
    assert_eq!(scripts.len(), 2);
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut last = None;
    for script in scripts {
        // nothing that a pull request can write is pasted into a script
        assert!(!script.contains("${{"), "{script}");
        let mut command = place.command("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script])
            .env("PATH", &path)
            .env("ACTION", repository())
            .env("GITHUB_STEP_SUMMARY", place.path("summary.md"))
            .env("GITHUB_OUTPUT", place.path("output.txt"))
            .env("RUNNER_TEMP", place.path("runner"))
            .env("DATASET", "telemetry")
            .env("POLICY", "policy.toml")
            .env("RULES", "gate.toml")
            .env("BASELINE", "")
            .env("INCONCLUSIVE", "")
            .env("RESULTS", "results")
            .envs(more.iter().copied());
        let done = finish(&mut command);
        let stop = done.code != Some(0);
        last = Some(done);
        if stop {
            break;
        }
    }
    last.unwrap()
}

#[test]
fn the_action_runs_and_says_what_it_found() {
    // 20 living runs silent for 20 to 400 s: 11 of them for 200 s or more
    for (max, code, verdict) in [
        ("90%", 0, "pass"),
        ("60%", 3, "inconclusive"),
        ("5%", 1, "fail"),
    ] {
        let place = place(max);
        let done = run_action(&place, &[]);
        let done = done.exits(code);
        assert!(
            done.stdout.lines().all(|line| line.starts_with("::")),
            "{}",
            done.stdout
        );
        let read = |name: &str| String::from_utf8(place.read(name)).unwrap();
        assert!(read("output.txt").contains(&format!("verdict={verdict}\n")));
        assert!(read("summary.md").starts_with("### policysim gate"));
        assert_eq!(place.json("results/gate.json")["verdict"], verdict);
        assert!(read("results/gate.xml").starts_with("<?xml"));
    }
}

#[test]
fn the_action_passes_its_inputs_on() {
    let place = place("60%");
    run_action(&place, &[("INCONCLUSIVE", "pass")]).exits(0);
    run_action(&place, &[("BASELINE", "telemetry")]).exits(3);
    let done = run_action(&place, &[("RULES", "gone.toml")]).exits(2);
    assert!(done.stderr.contains("cannot read rules file gone.toml"));
    assert!(
        String::from_utf8(place.read("output.txt"))
            .unwrap()
            .contains("verdict=error\n")
    );
    // what holds no logs stands for the telemetry as well
    place
        .run("gate summarise telemetry --policy policy.toml --out telemetry.summary --quiet")
        .exits(0);
    place
        .run("sweep telemetry --base policy.toml --idle 200s --out swept --quiet")
        .exits(0);
    for dataset in ["telemetry.summary", "swept"] {
        run_action(&place, &[("DATASET", dataset)]).exits(3);
        run_action(&place, &[("DATASET", dataset), ("INCONCLUSIVE", "fail")]).exits(1);
    }
    // rules on the policy alone need no telemetry
    place.write("gate.toml", "[[rule]]\ncheck = \"all\"\n");
    run_action(&place, &[("DATASET", ""), ("POLICY", "pi-desktop-0129")]).exits(0);
    // words with spaces stay one word
    place.write("my policy.toml", "preset = \"pi-desktop-0129\"\n");
    run_action(&place, &[("DATASET", ""), ("POLICY", "my policy.toml")]).exits(0);
}

#[test]
fn every_input_of_the_action_reaches_its_step() {
    let yaml = text("action.yml");
    let inputs = yaml
        .split("inputs:\n")
        .nth(1)
        .unwrap()
        .split("outputs:\n")
        .next()
        .unwrap();
    let mut names = 0;
    for line in inputs.lines() {
        if let Some(name) = line
            .strip_prefix("  ")
            .filter(|line| !line.starts_with(' ') && line.ends_with(':'))
        {
            let name = name.trim_end_matches(':');
            let passed = format!("{}: ${{{{ inputs.{name} }}}}", name.to_uppercase());
            assert!(yaml.contains(&passed), "{passed}");
            names += 1;
        }
    }
    assert_eq!(names, 6);
    let workflow = text("data/examples/gate-workflow.yml");
    for line in workflow
        .lines()
        .filter(|line| line.starts_with("          ") && line.contains(": "))
    {
        let name = line.trim().split(':').next().unwrap();
        assert!(
            inputs.contains(&format!("  {name}:\n"))
                || name == "path"
                || name == "name"
                || name == "fetch-depth",
            "{name}"
        );
    }
}

#[test]
fn the_hook_is_a_command_that_works() {
    let yaml = text(".pre-commit-hooks.yaml");
    let field = |name: &str| {
        let line = yaml.lines().find_map(|line| {
            line.trim_start_matches(['-', ' '])
                .strip_prefix(&format!("{name}: "))
        });
        line.unwrap().to_owned()
    };
    assert_eq!(field("pass_filenames"), "false");
    let arguments = field("args").replace(['[', ']', ',', '"'], " ");
    let place = place("90%");
    place.write("gate.toml", "[[rule]]\ncheck = \"all\"\n");
    place.write(
        "policy.toml",
        "preset = \"pi-desktop-0129\"\nidle = \"700s\"\n",
    );
    let line = format!("{} {arguments}", field("entry"));
    let mut words = line.split_whitespace();
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = place.command(words.next().unwrap());
    finish(command.args(words).env("PATH", path)).exits(1);
    place.write("policy.toml", "preset = \"pi-desktop-0129\"\n");
    place.run_args(line.split_whitespace().skip(1)).exits(0);
}
