//! Bad input: exit code 2 and one line that names what was given and what was expected.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::{Place, fleet, names, wait};

/// Runs every line in `place`; its error must hold each of the words.
#[track_caller]
fn check(place: &Place, lines: &[(&str, &[&str])]) {
    for (line, words) in lines {
        let error = place.run(line).error();
        for word in *words {
            assert!(error.contains(word), "{line}: {word} is not in\n{error}");
        }
    }
}

#[test]
fn inputs_that_are_no_logs() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    for image in ["images/a.png", "images/b.png"] {
        place.write(
            image,
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02",
        );
    }
    place.write("notes.txt", "a shopping list\nmilk\n");
    check(
        &place,
        &[
            ("import missing --out d", &["'missing'", "no such file"]),
            ("gaps missing", &["'missing'", "no such file"]),
            ("sweep missing.jsonl", &["'missing.jsonl'", "no such file"]),
            ("replay missing --run r", &["'missing'", "no such file"]),
            ("import empty --out d", &["'empty'", "no file"]),
            ("gaps empty", &["'empty'", "no file"]),
            ("import images --out d", &["2 file(s)", "a.png", "binary"]),
            ("sweep images", &["2 file(s)", "a.png", "binary"]),
            ("import images/a.png --out d", &["'a.png'", "claude", "pi"]),
            ("gaps notes.txt", &["'notes.txt'", "events", "samples"]),
            (
                "gaps notes.txt --input-format cluade",
                &["cluade", "claude?"],
            ),
            ("synth run missing.toml --runs 1 --out d", &["missing.toml"]),
            ("synth run notes.txt --runs 1 --out d", &["notes.txt"]),
            ("policy conform missing", &["missing"]),
        ],
    );
    assert_eq!(names(place.0.path()), ["empty", "images", "notes.txt"]);
}

#[test]
fn policies_that_do_not_exist() {
    let place = fleet::place();
    place.write("policy.toml", "[idle]\nwindou = \"300s\"\n");
    place.write("unitless.toml", "idle = 300\n");
    check(
        &place,
        &[
            (
                "sweep telemetry --base pi-desktop-0128",
                &["pi-desktop-0128", "mean pi-desktop-0129"],
            ),
            (
                "gaps telemetry --policy pi-dekstop-0119",
                &["pi-dekstop-0119", "mean pi-desktop-0119"],
            ),
            (
                "replay telemetry --run a01 --policy no-mistakes-fixd",
                &["mean no-mistakes-fixed"],
            ),
            ("policy show pi-desktop-0128", &["mean pi-desktop-0129"]),
            ("policy check missing.toml", &["missing.toml"]),
            (
                "policy check policy.toml",
                &["policy.toml", "windou", "window"],
            ),
            ("sweep telemetry --base policy.toml", &["windou", "window"]),
            ("policy check unitless.toml", &["300", "unit"]),
            (
                "sweep telemetry --axis idle.windo=60s",
                &["idle.windo", "mean idle.window"],
            ),
            (
                "sweep telemetry --axis idel.window=60s",
                &["idel.window", "idle.window"],
            ),
            ("sweep telemetry --axis idle.window", &["KEY=GRID"]),
            (
                "replay telemetry --run a01 --set idle.windo=60s",
                &["idle.windo", "idle.window"],
            ),
            (
                "replay telemetry --run a01 --set idle.window",
                &["KEY=VALUE"],
            ),
            (
                "sweep telemetry --rearm everything",
                &["everything", "event kind"],
            ),
        ],
    );
}

#[test]
fn numbers_that_make_no_sense() {
    let place = fleet::place();
    check(
        &place,
        &[
            (
                "sweep telemetry --idle 900s..60s/30s",
                &["900s..60s/30s", "reversed"],
            ),
            (
                "sweep telemetry --turns 40..20/5",
                &["40..20/5", "reversed"],
            ),
            ("sweep telemetry --idle 60s..900s/0s", &["step"]),
            ("sweep telemetry --idle 0s", &["0s", "off"]),
            ("sweep telemetry --total 1h,0s", &["0s", "off"]),
            ("sweep telemetry --turns 0", &["0", "off"]),
            ("sweep telemetry --idle 300", &["300", "unit"]),
            ("sweep telemetry --total 1h,7200", &["7200", "unit"]),
            ("sweep telemetry --idle 60..900/30", &["60", "unit"]),
            ("sweep telemetry --idle 5x", &["5x"]),
            ("sweep telemetry --idle 60s,,90s", &["60s,,90s"]),
            (
                "sweep telemetry --idle 1s..900s/1s --total 1m..200m/1m",
                &["cells"],
            ),
            (
                "gaps telemetry --plot - --idle 1s..1000s/1s",
                &["--idle 1s..1000s/1s", "1,000 windows", "at most 200"],
            ),
            (
                "sweep telemetry --idle 60s --axis idle.window=90s",
                &["idle.window", "already"],
            ),
            ("sweep telemetry --task-wait 0s", &["--task-wait", "0s"]),
            (
                "sweep telemetry --task-wait 600",
                &["--task-wait", "600", "unit"],
            ),
            ("sweep telemetry --max-false-kill 101%", &["101%", "0.1%"]),
            ("sweep telemetry --max-false-kill often", &["often", "0.1%"]),
            ("sweep telemetry --list-kills 0", &["0", "from 1 to 10"]),
            ("sweep telemetry --list-kills 11", &["11", "from 1 to 10"]),
            (
                "sweep telemetry --list-kills first",
                &["first", "from 1 to 10"],
            ),
            ("replay telemetry --run a99", &["a99", "SOURCE#N"]),
            ("replay telemetry --run a", &["20 runs", "more of it"]),
            (
                "replay telemetry --run a01 --format csv",
                &["csv", "table, json"],
            ),
            (
                "gaps fleet.csv --since 2026-13-01",
                &["--since", "2026-13-01", "day"],
            ),
            (
                "import fleet.csv --out d --until yesterday",
                &["--until", "yesterday"],
            ),
            (
                "import fleet.csv --out d --observed-until 12:00",
                &["--observed-until", "12:00"],
            ),
            ("gaps telemetry --since 2026-01-01", &["--since", "dataset"]),
            (
                "sweep telemetry --threads 0",
                &["0", "--threads", "1..=1024"],
            ),
            ("sweep telemetry --threads many", &["many", "--threads"]),
            ("sweep telemetry --format xml", &["xml", "json"]),
            ("sweep telemetry --by tool", &["tool", "model"]),
            ("sweep telemetry --idel 60s", &["--idel", "--idle"]),
            ("replay telemetry", &["--run"]),
            ("sweeep telemetry", &["sweeep", "sweep"]),
            ("import fleet.csv", &["--out"]),
            ("completions tcsh", &["tcsh", "bash"]),
        ],
    );
}

#[test]
fn outputs_that_cannot_be_written() {
    let place = fleet::place();
    place.write("file", "kept");
    place.write("folder/kept.txt", "kept");
    place.run("import fleet.csv --out dataset").ok();
    place.run("sweep telemetry --idle 60s --out dataset").ok();
    place.write(
        "model.toml",
        fs::read(crate::repository().join("data/models/adr-0129.toml")).unwrap(),
    );
    check(
        &place,
        &[
            ("import fleet.csv --out file/d", &["'file/d'"]),
            ("import fleet.csv --out file", &["'file'", "not a dataset"]),
            (
                "import fleet.csv --out folder",
                &["'folder'", "not a dataset"],
            ),
            ("synth run model.toml --runs 5 --out file/d", &["'file/d'"]),
            (
                "import fleet.csv --out dataset",
                &["'dataset'", "other files"],
            ),
            (
                "synth run model.toml --runs 5 --out folder",
                &["'folder'", "not a dataset"],
            ),
            ("sweep telemetry --idle 60s --out file/d", &["file/d"]),
            ("sweep telemetry --idle 60s --out file", &["file"]),
        ],
    );
    assert_eq!(place.read("file"), b"kept");
    assert_eq!(names(&place.path("folder")), ["kept.txt"]);
    assert!(
        place.path("dataset/sweep.json").exists(),
        "results are no part of the dataset"
    );
    assert_eq!(
        names(place.0.path()),
        [
            "dataset",
            "file",
            "fleet.csv",
            "folder",
            "model.toml",
            "telemetry"
        ],
        "nothing half-written is left"
    );
}

#[test]
fn datasets_that_do_not_read() {
    let place = fleet::place();
    let copy = |to: &str, change: &dyn Fn(&str, Vec<u8>) -> Vec<u8>| {
        for (file, bytes) in crate::files(&place.path("telemetry")) {
            place.write(&format!("{to}/{file}"), change(&file, bytes));
        }
    };
    copy("newer", &|file, bytes| match file {
        "manifest.json" => String::from_utf8(bytes)
            .unwrap()
            .replace("\"schema_version\": 1", "\"schema_version\": 7")
            .into_bytes(),
        _ => bytes,
    });
    copy("no-manifest-json", &|file, bytes| match file {
        "manifest.json" => b"not json".to_vec(),
        _ => bytes,
    });
    copy("garbage-runs", &|file, bytes| match file {
        "runs.parquet" => b"PAR1 and then nothing that a table holds PAR1".to_vec(),
        _ => bytes,
    });
    copy("cut-events", &|file, bytes| match file {
        "events.parquet" => bytes[..bytes.len() / 2].to_vec(),
        _ => bytes,
    });
    copy("flipped-events", &|file, mut bytes| {
        if file == "events.parquet" {
            let middle = bytes.len() / 2;
            for byte in &mut bytes[8..middle] {
                *byte = !*byte;
            }
        }
        bytes
    });
    copy("no-events", &|_, bytes| bytes);
    fs::remove_file(place.path("no-events/events.parquet")).unwrap();
    place.write(
        "table.parquet",
        b"PAR1 and then nothing that a table holds PAR1",
    );
    check(
        &place,
        &[
            ("gaps newer", &["'newer'", "7", "1"]),
            ("sweep newer", &["'newer'", "newer than 1"]),
            ("replay newer --run a01", &["'newer'"]),
            (
                "gaps no-manifest-json",
                &["no-manifest-json", "manifest.json"],
            ),
            ("sweep garbage-runs", &["'garbage-runs'", "damaged"]),
            ("gaps cut-events", &["'cut-events'", "damaged"]),
            ("sweep flipped-events", &["'flipped-events'", "damaged"]),
            ("sweep no-events", &["no-events/events.parquet"]),
            ("gaps table.parquet", &["table.parquet"]),
            (
                "import telemetry --out d",
                &["'telemetry'", "dataset already"],
            ),
            ("sweep telemetry telemetry", &["telemetry"]),
        ],
    );
    place.run("gaps telemetry").ok();
}

#[test]
fn archives_that_are_cut_short() {
    let place = Place::new();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packer.write_all(fleet::events().as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    place.write("whole.csv.gz", &packed);
    place.run("gaps whole.csv.gz").ok();
    place.write("cut.csv.gz", &packed[..packed.len() / 2]);
    place.write("head.csv.gz", &packed[..5]);
    check(
        &place,
        &[
            ("gaps cut.csv.gz", &["cut.csv.gz"]),
            ("import cut.csv.gz --out d", &["cut.csv.gz"]),
            ("import head.csv.gz --out d", &["head.csv.gz"]),
        ],
    );
    assert!(!place.path("d").exists());
}

#[test]
fn samples_have_no_runs_to_replay() {
    let place = Place::new();
    place.write(
        "waits.csv",
        "kind,duration_ms\npre_token,4000\npre_token,9000\n",
    );
    place.run("gaps waits.csv").ok();
    check(
        &place,
        &[
            ("settle waits.csv", &["waits.csv", "samples", "synth fit"]),
            ("replay waits.csv --run 1", &["waits.csv", "samples"]),
        ],
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = fleet::place();
    for line in [
        "sweep telemetry --format json",
        "gaps telemetry --format json --by model",
        "policy list",
        "policy schema",
        "completions zsh",
        "man",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(crate::POLICYSIM);
        command
            .args(line.split_whitespace())
            .stdout(Stdio::from(writer));
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        let done = wait(child, line);
        assert_eq!(done.code, Some(0), "{line}\n{}", done.stderr);
        assert_eq!(done.stderr, "", "{line}");
    }
}

#[test]
fn quiet_silences_all_but_errors() {
    let place = Place::new();
    let done = place.run("gaps --quiet").exits(0);
    assert_eq!(done.stderr, "");
    let done = place.run("gaps").exits(0);
    assert!(done.stderr.contains("embedded demo"), "{}", done.stderr);
    place.run("gaps --quiet missing").error();
}

/// A column that nothing reads may be one of ours misspelt: its values would be lost without a word.
#[test]
fn columns_that_are_not_read_are_told_of() {
    let place = Place::new();
    place.write(
        "waits.csv",
        "kind,duration_ms,models,secret plan\npre_token,1200,m,x\n",
    );
    place.write(
        "events.jsonl",
        "{\"run\":\"r\",\"t_ms\":0,\"kind\":\"run_start\",\"anounced_ms\":5}\n{\"run\":\"r\",\"t_ms\":9,\"kind\":\"run_end\"}\n",
    );
    place.write("plain.csv", "kind,duration_ms\npre_token,1200\n");
    let told = |file: &str| place.run(&format!("gaps {file}")).exits(0).stderr;
    let waits = told("waits.csv");
    assert!(
        waits.contains(
            "'waits.csv': 2 columns have names that are not read; perhaps model was meant"
        ),
        "{waits}"
    );
    assert!(!waits.contains("secret"), "{waits}");
    let events = told("events.jsonl");
    assert!(
        events.contains("one column has a name that is not read; perhaps announced_ms was meant"),
        "{events}"
    );
    assert!(!told("plain.csv").contains("not read"));
}

/// The windows of one option are refused in one wording, whatever the command does with them.
#[test]
fn a_wrong_window_is_told_alike_by_every_command() {
    let place = fleet::place();
    for value in ["5", "0s", "soon", "60s..900s/0s", "60s,,90s"] {
        let told = |command: &str| place.run(&format!("{command} --idle {value}")).error();
        let sweep = told("sweep telemetry");
        assert!(sweep.contains(&format!("--idle {value}")), "{sweep}");
        assert_eq!(told("gaps telemetry --plot -"), sweep);
        assert_eq!(told("settle telemetry"), sweep);
    }
}

#[test]
fn a_column_that_is_named_twice() {
    let place = Place::new();
    let rows = "r1,0,run_start,\nr1,10,message_end,\nr1,20,run_end,completed\n";
    place.write("logs/whole.csv", format!("run,t_ms,kind,outcome\n{rows}"));
    place.write("logs/twice.csv", format!("run,t_ms,kind, kind\n{rows}"));
    place.write("waits.csv", "kind,duration_ms,duration_ms\ntool,1,2\n");
    check(
        &place,
        &[
            (
                "gaps logs/twice.csv",
                &["'twice.csv'", "line 1 names the column kind twice"],
            ),
            (
                "import waits.csv --out d",
                &["'waits.csv'", "line 1 names the column duration_ms twice"],
            ),
        ],
    );
    // met in a folder it is left aside with a warning
    let done = place.run("gaps logs").exits(0);
    assert!(
        done.stderr.contains("names the column kind twice"),
        "{}",
        done.stderr
    );
    // of columns that nothing reads there may be any number
    place.write("other.csv", format!("run,t_ms,kind,outcome,x,x\n{rows}"));
    place.run("gaps other.csv").exits(0);
}
