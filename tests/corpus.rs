//! The reference corpus through the command line: every number of every session.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::{Done, Place, files, json, shared};

/// The kinds of waits that have numbers.
const WAITS: [&str; 14] = [
    "pre_token",
    "pre_token_err",
    "stream_gap",
    "continuation",
    "tool",
    "tool_escalated",
    "subagent",
    "human",
    "approval",
    "error_wait",
    "retry",
    "compact",
    "censored",
    "reported_ttft",
];

/// The sessions that `expected.json` of a folder speaks of, by their folders, which name the format.
fn expected(corpus: &Path) -> BTreeMap<String, BTreeMap<String, Map<String, Value>>> {
    let Ok(text) = fs::read_to_string(corpus.join("expected.json")) else {
        eprintln!("skipped: no expected.json in {}", crate::name(corpus));
        return BTreeMap::new();
    };
    let sessions: BTreeMap<String, Map<String, Value>> = serde_json::from_str(&text).unwrap();
    let mut formats: BTreeMap<String, BTreeMap<String, Map<String, Value>>> = BTreeMap::new();
    for (session, fields) in sessions {
        let (format, file) = session.split_once('/').unwrap();
        formats
            .entry(format.to_owned())
            .or_default()
            .insert(file.to_owned(), fields);
    }
    assert!(!formats.is_empty());
    formats
}

fn import(place: &Place, input: &Path, options: &str, out: &str) -> Done {
    let mut args = vec![OsStr::new("import"), input.as_os_str()];
    let options = format!("{options} --out {out}");
    args.extend(options.split_whitespace().map(OsStr::new));
    place.run_args(args).exits(0)
}

/// Imports each format's folder and compares the accounting, the waits and the runs of every source.
fn compare(corpus: &Path, force_format: bool) {
    let place = Place::new();
    for (format, sessions) in expected(corpus) {
        let options = if force_format {
            format!("--format {format}")
        } else {
            String::new()
        };
        let folder = corpus.join(&format);
        import(&place, &folder, &options, &format);
        let there: Vec<String> = files(&folder).into_keys().collect();
        assert!(
            there.iter().eq(sessions.keys()),
            "{format}: files without expected numbers"
        );
        let manifest = place.json(&format!("{format}/manifest.json"));
        let gaps = place.run(&format!("gaps {format} --by source --format json"));
        let gaps = json(&gaps.ok());
        let sources = manifest["sources"].as_array().unwrap();
        assert_eq!(sources.len(), sessions.len(), "{format}");
        for (file, fields) in &sessions {
            let source = sources.iter().find(|source| source["source"] == **file);
            let source =
                source.unwrap_or_else(|| panic!("{format}: {file} is not in the manifest"));
            for (field, value) in fields.iter().filter(|(field, _)| *field != "runs") {
                let found = source.get(field).unwrap_or(&Value::Null);
                assert_eq!(found, value, "{format}/{file}: {field} in the manifest");
            }
            let lines = source["lines"].as_object().unwrap().values();
            let lines: u64 = lines.map(|value| value.as_u64().unwrap()).sum();
            assert_eq!(
                lines,
                fields["n_lines"].as_u64().unwrap(),
                "{format}/{file}"
            );
            let group = &gaps["groups"][file];
            for kind in WAITS {
                let waits = &group["waits"][kind];
                let number = |name: &str| waits[name].as_u64().unwrap_or(0);
                for (ours, theirs) in [
                    ("n", format!("n_{kind}")),
                    ("sum_ms", format!("sum_{kind}_ms")),
                    ("max_ms", format!("max_{kind}_ms")),
                ] {
                    assert_eq!(
                        number(ours),
                        fields[&theirs].as_u64().unwrap(),
                        "{format}/{file}: {theirs}"
                    );
                }
            }
            let none = Value::Array(Vec::new());
            let rows = group.get("runs").unwrap_or(&none);
            assert_eq!(*rows, fields["runs"], "{format}/{file}: runs");
        }
    }
}

#[test]
fn every_number_of_every_session_is_met() {
    let Some(corpus) = shared("corpus") else {
        return;
    };
    compare(&corpus, false);
}

#[test]
fn every_number_of_the_damaged_sessions_is_met() {
    let Some(corpus) = shared("corpus") else {
        return;
    };
    compare(&corpus.join("derived"), true);
}

#[test]
fn the_whole_corpus_is_one_import_and_stray_files_are_told() {
    let Some(corpus) = shared("corpus") else {
        return;
    };
    let place = Place::new();
    let done = import(&place, &corpus, "", "whole");
    let manifest = place.json("whole/manifest.json");
    let sources = manifest["sources"].as_array().unwrap();
    let mut n_runs = 0;
    for (folder, root) in [("", corpus.clone()), ("derived/", corpus.join("derived"))] {
        for (format, sessions) in expected(&root) {
            for (file, fields) in sessions {
                let name = format!("{folder}{format}/{file}");
                let source = sources.iter().find(|source| source["source"] == *name);
                let source = source.unwrap_or_else(|| panic!("{name}"));
                // Nothing can be recognised in an empty or torn document; with its format named it has numbers.
                if source["format"] == *format {
                    assert_eq!(source["n_runs"], fields["n_runs"], "{name}");
                    n_runs += fields["n_runs"].as_u64().unwrap();
                } else {
                    assert_eq!(fields["n_runs"], 0, "{name}");
                }
                assert_eq!(source["n_lines"], fields["n_lines"], "{name}");
            }
        }
    }
    assert_eq!(manifest["totals"]["n_runs"], n_runs);
    for stray in files(&corpus).into_keys() {
        assert!(
            sources.iter().any(|source| source["source"] == stray),
            "{stray}"
        );
        assert!(
            done.stderr.contains(&stray),
            "{stray} is not in\n{}",
            done.stderr
        );
    }
    let again = import(&place, &corpus, "--threads 1", "again");
    assert!(files(&place.path("whole")) == files(&place.path("again")));
    drop(again);
    let root = &*corpus.to_string_lossy();
    for (file, bytes) in files(&place.path("whole")) {
        assert!(!String::from_utf8_lossy(&bytes).contains(root), "{file}");
    }
}

#[test]
fn a_large_sweep_over_the_corpus_is_the_same_with_one_thread_and_two() {
    let Some(corpus) = shared("corpus") else {
        return;
    };
    let place = Place::new();
    import(&place, &corpus, "", "whole");
    let sweep = |threads: u8| {
        let line = format!(
            "sweep whole --idle 30s..900s/30s --total 10m,1h,2h,6h,off --turns 20,40,60,off \
             --format json --out set-{threads} --threads {threads}"
        );
        let printed = place.run(&line).ok();
        (printed, files(&place.path(&format!("set-{threads}"))))
    };
    let (one, one_files) = sweep(1);
    let (two, two_files) = sweep(2);
    assert_eq!(json(&one)["cells"].as_array().unwrap().len(), 30 * 5 * 4);
    assert!(one == two);
    assert!(one_files == two_files);
}
