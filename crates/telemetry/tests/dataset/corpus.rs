//! The reference corpus through the dataset: every number of `expected.json` again from the manifest, from the stored
//! events and from the stored runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policysim_sim::run::{Run, RunStatus, WaitKind};
use policysim_telemetry::import::Format;
use policysim_telemetry::{Dataset, ImportRequest, InputFormat, SourceStatus};
use serde_json::Value;

use crate::support::{files, import, in_memory, request, shared};

type Expected = BTreeMap<String, Value>;

fn expected(folder: &Path) -> Expected {
    serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap()
}

/// Holds what a dataset says of a source against its entry.
fn compare(dataset: &Dataset, runs: &[Run], source: &str, wanted: &Value) {
    let entry = dataset
        .manifest()
        .sources
        .iter()
        .find(|entry| entry.source == source)
        .unwrap_or_else(|| panic!("{source} is not in the manifest"));
    for (field, value) in wanted.as_object().unwrap() {
        match value {
            Value::Number(number) => {
                assert_eq!(
                    Some(entry.count(field)),
                    number.as_u64(),
                    "{source}: {field} in the manifest"
                );
            }
            Value::String(format) => assert_eq!(entry.format.as_ref(), Some(format), "{source}"),
            _ => {}
        }
    }
    assert_eq!(
        entry.lines.total(),
        entry.count("n_lines"),
        "{source}: {:?}",
        entry.lines
    );
    let own = || runs.iter().filter(|run| &*run.source == source);
    let rows: Vec<[u64; 6]> = own()
        .filter(|run| run.status == RunStatus::Run)
        .map(|run| {
            let m = &run.measured;
            let (turns, tools) = (u64::from(m.turns), u64::from(m.tools));
            [
                m.duration_ms,
                turns,
                tools,
                m.silence_ms,
                m.gap_ms,
                u64::from(m.aborted),
            ]
        })
        .collect();
    assert_eq!(
        serde_json::to_value(rows).unwrap(),
        wanted["runs"],
        "{source}: runs"
    );
    for kind in WaitKind::ALL
        .into_iter()
        .filter(|kind| *kind != WaitKind::InterToken)
    {
        let waits = || {
            own()
                .flat_map(|run| &run.events)
                .filter_map(|event| event.wait)
                .filter(|wait| wait.kind == kind)
        };
        let stored = [
            waits().count() as u64,
            waits().map(|w| w.ms).sum(),
            waits().map(|w| w.ms).max().unwrap_or(0),
        ];
        let name = kind.name();
        let told = [
            format!("n_{name}"),
            format!("sum_{name}_ms"),
            format!("max_{name}_ms"),
        ]
        .map(|field| wanted[&field].as_u64().unwrap());
        assert_eq!(stored, told, "{source}: {name} in the stored events");
    }
}

#[test]
fn the_dataset_of_the_corpus_holds_every_number_of_its_sessions() {
    let Some(shared) = shared() else { return };
    let corpus = shared.join("corpus");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dataset");
    let dataset = import(&request(&[&corpus]), &out).unwrap();
    let runs = dataset.fleet().unwrap();
    let expected = expected(&corpus);
    for (source, wanted) in &expected {
        compare(&dataset, &runs, source, wanted);
    }
    let mut strays: Vec<&str> = Vec::new();
    for entry in &dataset.manifest().sources {
        assert_eq!(
            entry.lines.total(),
            entry.count("n_lines"),
            "{}",
            entry.source
        );
        if entry.status == SourceStatus::Unrecognised {
            strays.push(&entry.source);
        }
    }
    assert!(
        strays.iter().all(|stray| !expected.contains_key(*stray)),
        "{strays:?}"
    );
    println!(
        "{} sources, {} runs; strays: {strays:?}",
        expected.len(),
        runs.len()
    );
    let first = files(&out);
    import(&request(&[&corpus]), &out).unwrap();
    assert!(first == files(&out), "a second import gives other bytes");
    let folders: Vec<PathBuf> = ["pi", "claude", "codex"]
        .into_iter()
        .map(|name| corpus.join(name))
        .filter(|path| path.is_dir())
        .collect();
    let forth: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let back: Vec<&Path> = forth.iter().rev().copied().collect();
    let bytes = |paths: &[&Path]| {
        import(&request(paths), &out).unwrap();
        files(&out)
    };
    assert!(
        bytes(&forth) == bytes(&back),
        "the order of the folders shows"
    );
}

#[test]
fn damaged_variants_keep_their_numbers_when_their_format_is_named() {
    let Some(shared) = shared() else { return };
    let derived = shared.join("corpus/derived");
    if !derived.is_dir() {
        return;
    }
    for (source, wanted) in expected(&derived) {
        let format = Format::from_name(wanted["format"].as_str().unwrap()).unwrap();
        let path = derived.join(&source);
        let forced = ImportRequest {
            format: Some(InputFormat::Log(format)),
            ..request(&[&path])
        };
        let dataset = in_memory(&forced).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        compare(&dataset, &dataset.fleet().unwrap(), name, &wanted);
    }
}
