//! Every mistake that was found once, by the input that showed it.

use std::fmt::Write;
use std::fs::{self, File};

use crate::Place;

/// A Claude log of one prompt and its answer, with `middle` between their lines.
fn log_around(middle: &[u8]) -> Vec<u8> {
    let line = |kind: &str, second: u32, message: &str| {
        format!(
            r#"{{"type":"{kind}","timestamp":"2026-03-02T09:00:{second:02}Z","uuid":"{kind}-{second}","sessionId":"s","message":{message}}}"#
        )
    };
    let prompt = line("user", 1, r#"{"role":"user","content":"x"}"#);
    let answer = line(
        "assistant",
        4,
        r#"{"role":"assistant","id":"m1","model":"m","content":[{"type":"text","text":"x"}]}"#,
    );
    [
        prompt.as_bytes(),
        b"\n",
        middle,
        b"\n",
        answer.as_bytes(),
        b"\n",
    ]
    .concat()
}

#[test]
fn sums_beyond_64_bits_stop_at_the_largest_number() {
    let place = Place::new();
    let row = "tool,9223372036854775807\n";
    place.write("sum.csv", format!("kind,duration_ms\n{row}{row}{row}"));
    let json = crate::json(&place.run("gaps sum.csv --format json").ok());
    assert_eq!(json["groups"][""]["waits"]["tool"]["sum_ms"], u64::MAX);
}

#[test]
fn durations_of_a_log_beyond_64_bits_stop_at_the_largest_number() {
    let place = Place::new();
    let mut log = String::new();
    for pair in 0..1_200 {
        for (kind, at) in [
            ("user", "-8640000000000000"),
            ("assistant", "8640000000000000"),
        ] {
            writeln!(
                log,
                r#"{{"type":"{kind}","timestamp":{at},"uuid":"{kind}{pair}","sessionId":"s","message":{{"role":"{kind}","id":"m{pair}","content":[{{"type":"text","text":"x"}}]}}}}"#
            )
            .unwrap();
        }
    }
    place.write("far.jsonl", log);
    place.run("import far.jsonl --out far").ok();
}

#[test]
fn a_run_that_starts_at_the_end_of_time_can_be_observed_before_it() {
    let place = Place::new();
    place.write(
        "late.csv",
        "run,t_ms,kind,started_at_ms\na,0,run_start,9223372036854775807\na,5,tool_start,\n",
    );
    place
        .run("gaps late.csv --observed-until 0001-01-01")
        .exits(0);
}

#[test]
fn zeros_in_the_head_of_a_log_cost_their_line_alone() {
    let place = Place::new();
    place.write("nul.jsonl", log_around(&[0; 50]));
    let printed = place.run("import nul.jsonl --out ds").ok();
    assert!(printed.contains("1 malformed"), "{printed}");
    assert!(printed.contains("claude: 1 source, 1 run"), "{printed}");
}

#[test]
fn a_local_models_path_is_kept_as_its_last_part() {
    let place = Place::new();
    place.write(
        "events.csv",
        "run,t_ms,kind,model\na,0,run_start,/home/alice/models/secret.gguf\na,5,message_end,\na,5,run_end,\n",
    );
    let printed = place.run("gaps events.csv --by model").ok();
    assert!(printed.contains("secret.gguf"), "{printed}");
    assert!(!printed.contains("alice"), "{printed}");
}

#[test]
fn a_repeat_without_end_is_refused() {
    let place = Place::new();
    place.write(
        "endless.json",
        r#"{"scenario":"x","format":"neutral-timeline/1","policy":{"idle_ms":1000},
            "events":[{"t_ms":0,"kind":"run_start","agent":"a"},
                      {"repeat":{"kind":"token","from_ms":0,"to_ms":9223372036854775807,"every_ms":1}}],
            "expect":{"verdict":"none"}}"#,
    );
    let done = place.run("policy conform endless.json").exits(2);
    assert!(done.stdout.contains("at most"), "{}", done.stdout);
}

#[test]
fn more_runs_than_memory_holds_are_refused() {
    let place = Place::new();
    let error = place
        .run("synth run model.toml --runs 4294967295 --out x")
        .error();
    assert!(error.contains("4294967295"), "{error}");
}

#[test]
fn a_percentage_without_its_sign_is_refused() {
    let place = Place::new();
    let error = place.run("sweep --max-false-kill 1").error();
    assert!(error.contains("1%"), "{error}");
}

#[test]
fn the_demo_refuses_options_about_reading_logs() {
    let place = Place::new();
    let error = place.run("gaps --since 2030-01-01").error();
    assert!(error.contains("--since"), "{error}");
}

#[test]
fn a_run_number_at_the_end_is_whole() {
    let place = Place::new();
    // The demo has runs #2, #20, #21, …
    let printed = place.run("replay --run delegates#2 --quiet").ok();
    assert!(printed.starts_with("adr-0129/delegates#2 "), "{printed}");
}

#[test]
fn nobody_to_read_stderr_is_no_panic() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let place = Place::new();
    let mut command = place.command(crate::POLICYSIM);
    command
        .args(["gaps", "nope"])
        .stderr(File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(command.status().unwrap().code(), Some(2));
}

/// Scenario BR-29: a spawn that nothing follows is no success for ever, once the record is known to go on.
#[test]
fn a_spawn_without_a_run_is_seen_when_the_record_goes_on() {
    let place = Place::new();
    place.write(
        "spawned.csv",
        "run,t_ms,kind,started_at_ms\nc,0,spawn,1767225600000\n",
    );
    place.write("own.toml", "[idle]\nwindow = \"300s\"\nstartup = \"60s\"\n");
    let replay = "replay spawned.csv --run c --policy own.toml";
    let open = place.run(replay).ok();
    assert!(open.contains("Not killed"), "{open}");
    let until = format!("{replay} --observed-until 2026-01-01T02:00:00Z");
    let killed = place.run(&until).ok();
    assert!(killed.contains("startup_timeout"), "{killed}");
}

/// A rename over a link or a pipe would have put a plain file in its place.
#[cfg(unix)]
#[test]
fn what_is_no_plain_file_is_written_to_and_not_replaced() {
    let place = Place::new();
    place.write("target.svg", "");
    for (link, target) in [("link.svg", "target.svg"), ("null.svg", "/dev/null")] {
        std::os::unix::fs::symlink(target, place.path(link)).unwrap();
        place.run(&format!("gaps --quiet --plot {link}")).ok();
        assert!(place.path(link).is_symlink(), "{link}");
    }
    assert!(place.read("target.svg").starts_with(b"<svg"));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// Between the rows of a JSON table a line of something else is no header of a CSV one.
#[test]
fn a_foreign_line_in_a_table_is_unreadable() {
    let place = Place::new();
    place.write(
        "table.jsonl",
        "{\"run\":\"1\",\"t_ms\":0,\"kind\":\"run_start\"}\ngarbage, with words\n[[[\n{\"run\":\"1\",\"t_ms\":9,\"kind\":\"run_end\"}\n",
    );
    let printed = place.run("import table.jsonl --out ds").ok();
    assert!(printed.contains("2 imported + 0 ignored"), "{printed}");
    assert!(printed.contains("2 malformed"), "{printed}");
    let listed = place.read("ds/quarantine.csv");
    let listed = String::from_utf8(listed).unwrap();
    assert_eq!(listed.matches("no JSON object").count(), 2, "{listed}");
}

/// A result set that somebody edited is told to be wrong, before anything is added up.
#[test]
fn counts_of_a_result_set_that_do_not_fit_are_refused() {
    let place = Place::new();
    place
        .run("sweep --idle 60s,300s --out set --quiet")
        .exits(0);
    place.write(
        "rules.toml",
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"5%\"\n",
    );
    let whole = String::from_utf8(place.read("set/sweep.json")).unwrap();
    let mut sweep: serde_json::Value = serde_json::from_str(&whole).unwrap();
    for (key, value) in [
        ("unresolved_kills", u64::MAX),
        ("unresolved_kills", 8_000),
        ("true_kills", u64::MAX),
        ("hung_missed", 1 << 54),
    ] {
        let kept = sweep["cells"][1][key].take();
        sweep["cells"][1][key] = value.into();
        place.write("set/sweep.json", sweep.to_string());
        sweep["cells"][1][key] = kept;
        for line in [
            "gate set --policy pi-desktop-0129 --rules rules.toml",
            "report set --policy pi-desktop-0129 -o out",
        ] {
            let error = place.run(line).error();
            assert!(error.contains("counts of cell 2"), "{line}\n{error}");
        }
    }
}
