//! The same inputs give the same bytes: again, with any number of threads, in any order of the arguments.

use std::fs;

use crate::{Place, files, fleet, repository};

/// A place with the fleet and a folder of logs of every format.
fn place() -> Place {
    let place = fleet::place();
    for (log, bytes) in files(&repository().join("tests/fixtures/logs")) {
        place.write(&format!("logs/{log}"), bytes);
    }
    place
}

#[test]
fn an_import_writes_the_same_bytes_again() {
    let place = place();
    for (input, threads) in [("logs", 1), ("logs", 2), ("logs", 2), ("logs/", 1)] {
        // A dataset is replaced, so that the later imports also show that nothing of the earlier one is left.
        place
            .run(&format!("import {input} --out again --threads {threads}"))
            .ok();
        let made = files(&place.path("again"));
        if !place.path("first").exists() {
            fs::rename(place.path("again"), place.path("first")).unwrap();
        }
        let first = files(&place.path("first"));
        assert!(made == first, "{input} with {threads} threads");
        assert!(made.contains_key("manifest.json") && made.contains_key("events.parquet"));
    }
    place
        .run("import logs/pi.jsonl logs/claude.jsonl --out a")
        .ok();
    place
        .run("import logs/claude.jsonl logs/pi.jsonl --out b")
        .ok();
    assert!(files(&place.path("a")) == files(&place.path("b")));
}

#[test]
fn a_sweep_prints_and_writes_the_same_bytes_with_any_number_of_threads() {
    let place = place();
    let grid = "--idle 60s..420s/60s --total 5m,1h,off --turns 1,2,off --by model";
    for format in ["table", "json", "csv", "markdown"] {
        let print = |threads: u8| {
            let out = format!("{format}-{threads}");
            let line =
                format!("sweep telemetry {grid} --format {format} --threads {threads} --out {out}");
            (place.run(&line).ok(), files(&place.path(&out)))
        };
        let (one, one_files) = print(1);
        assert!(!one.is_empty());
        assert!(
            one_files
                .keys()
                .eq(["cells.csv", "cells.parquet", "front.svg", "sweep.json"])
        );
        for threads in [2, 3, 2] {
            let (more, more_files) = print(threads);
            assert!(more == one, "{format} with {threads} threads");
            assert!(more_files == one_files, "{format} with {threads} threads");
        }
        match format {
            "json" => assert_eq!(one.as_bytes(), one_files["sweep.json"]),
            "csv" => assert_eq!(one.as_bytes(), one_files["cells.csv"]),
            _ => {}
        }
    }
}

#[test]
fn the_demo_sweep_does_not_depend_on_threads() {
    let place = Place::new();
    let sweep = |threads: u8| {
        let line = format!(
            "sweep --quiet --idle 60s,300s --total 1h,off --format json --out t{threads} --threads {threads}"
        );
        (
            place.run(&line).ok(),
            files(&place.path(&format!("t{threads}"))),
        )
    };
    assert!(sweep(1) == sweep(2));
}

#[test]
fn logs_and_the_dataset_made_of_them_give_the_same_figures() {
    let place = place();
    place.run("import logs --out dataset").ok();
    for line in [
        "gaps DATA --by source --format csv",
        "gaps DATA --format csv",
        "sweep DATA --idle 5s,60s --format csv",
    ] {
        let of = |data: &str| place.run(&line.replace("DATA", data)).ok();
        assert_eq!(of("logs"), of("dataset"), "{line}");
    }
}

#[test]
fn packed_logs_are_read_as_they_are() {
    let place = place();
    let plain = place.read("logs/codex.jsonl");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, &plain).unwrap();
    place.write("gz/codex.jsonl", packer.finish().unwrap());
    place.write("zst/codex.jsonl", zstd::encode_all(&*plain, 3).unwrap());
    place.write("plain/codex.jsonl", plain);
    let import = |folder: &str| {
        place
            .run(&format!("import {folder} --out of-{folder}"))
            .ok();
        files(&place.path(&format!("of-{folder}")))
    };
    let plain = import("plain");
    assert!(import("gz") == plain);
    assert!(import("zst") == plain);
}

#[test]
fn a_sweep_says_how_many_pairs_it_held_against_replays() {
    let place = place();
    for base in [
        "pi-desktop-0129",
        "pi-ext-adr0010",
        "netclaw-subagent",
        "no-mistakes-silence",
    ] {
        let command = format!("sweep logs --base {base} --idle 1s..60s/1s --verify 300");
        let done = place.run(&command).exits(0);
        assert!(
            done.stderr
                .contains("verified 300 pairs of a run and a cell"),
            "{base}: {}",
            done.stderr
        );
        let plain = place.run(&command.replace(" --verify 300", "")).ok();
        assert_eq!(done.stdout, plain, "{base}");
    }
}
