//! What people wrote stays out of every output file, of warnings and of error messages.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use policysim_telemetry::{Dataset, ImportRequest};
use serde_json::Value;

use crate::support::{failure, files, fixture, import, request, shared, write};

/// Stands in every free-text field of the fixture logs.
const MARKER: &str = "PRIVATE";

/// Everything that an import left behind, as text: files as they are, tables cell by cell.
fn left_behind(out: &Path, dataset: &Dataset) -> String {
    let mut text = String::new();
    for (name, bytes) in files(out) {
        text += &name;
        text += &String::from_utf8_lossy(&bytes);
    }
    for run in dataset.runs() {
        let run = run.unwrap();
        for event in &run.events {
            text += dataset.symbols().name(event.name);
            text.push('\n');
        }
        writeln!(text, "{run:?}").unwrap();
    }
    for sample in dataset.samples().unwrap() {
        writeln!(text, "{sample:?}").unwrap();
    }
    text
}

#[test]
fn no_text_of_the_fixture_logs_is_kept() {
    let logs = fixture("logs");
    let folder = tempfile::tempdir().unwrap();
    let mut n_planted = 0;
    for (name, bytes) in files(&logs) {
        let text = String::from_utf8(bytes).unwrap();
        n_planted += text.matches(MARKER).count();
        write(folder.path(), &format!("in/{name}"), &text);
        // The same with a line of text, a joined line and a cut one.
        let damaged = format!(
            "{text}{MARKER} is no JSON\n[\"{MARKER}\"]\n{{\"type\":\"user\",\"{MARKER}\":\"{MARKER}"
        );
        write(folder.path(), &format!("in/damaged-{name}"), damaged);
    }
    assert!(n_planted > 100, "only {n_planted} markers planted");
    write(folder.path(), "in/notes.txt", format!("{MARKER} notes\n"));
    write(
        folder.path(),
        "in/other.json",
        format!("{{\"{MARKER}\": \"{MARKER}\"}}"),
    );
    write(
        folder.path(),
        "in/events.csv",
        format!(
            "run,t_ms,kind,{MARKER}\na,0,run_start,{MARKER}\na,{MARKER},run_end,\na,1,{MARKER},\n{MARKER} {MARKER},1,run_end,\n"
        ),
    );
    let out = folder.path().join("out");
    let whole = request(&[&folder.path().join("in")]);
    for hash_sources in [false, true] {
        let request = ImportRequest {
            hash_sources,
            ..whole.clone()
        };
        let dataset = import(&request, &out).unwrap();
        assert!(dataset.manifest().totals.n_runs > 0);
        let left = left_behind(&out, &dataset);
        let place = left
            .find(MARKER)
            .map(|at| left[at.saturating_sub(200)..(at + 20)].to_owned());
        assert_eq!(place, None);
    }
    for by_name in ["in/notes.txt", "in/other.json", "in/damaged-claude.jsonl"] {
        let strict = ImportRequest {
            strict: true,
            ..request(&[&folder.path().join(by_name)])
        };
        let message = failure(&strict);
        assert!(!message.contains(MARKER), "{message}");
    }
}

/// Puts the marker in place of every text that the corpus has blanked out (`xxxxxxxx`).
fn plant(value: &mut Value, n_planted: &mut usize) {
    match value {
        Value::String(text) if !text.is_empty() && text.chars().all(|c| c == 'x') => {
            MARKER.clone_into(text);
            *n_planted += 1;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| plant(item, n_planted)),
        // The names of a few tools are blanked out as well; names of tools are kept.
        Value::Object(fields) => {
            let texts = fields.iter_mut().filter(|(key, _)| *key != "name");
            texts.for_each(|(_, item)| plant(item, n_planted));
        }
        _ => {}
    }
}

#[test]
fn no_text_that_the_corpus_has_blanked_out_would_be_kept() {
    let Some(shared) = shared() else { return };
    let corpus = shared.join("corpus");
    let expected: serde_json::Map<String, Value> =
        serde_json::from_slice(&fs::read(corpus.join("expected.json")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut n_planted = 0;
    for source in expected.keys() {
        let text = fs::read_to_string(corpus.join(source)).unwrap();
        let planted = if let Ok(mut document) = serde_json::from_str::<Value>(&text) {
            plant(&mut document, &mut n_planted);
            document.to_string()
        } else {
            let mut lines = String::new();
            for line in text.lines() {
                for value in serde_json::Deserializer::from_str(line).into_iter::<Value>() {
                    let mut value = value.unwrap();
                    plant(&mut value, &mut n_planted);
                    lines += &value.to_string();
                }
                lines.push('\n');
            }
            lines
        };
        write(folder.path(), &format!("in/{source}"), planted);
    }
    let out = folder.path().join("out");
    let dataset = import(&request(&[&folder.path().join("in")]), &out).unwrap();
    let left = left_behind(&out, &dataset);
    let place = left
        .find(MARKER)
        .map(|at| left[at.saturating_sub(200)..(at + 20)].to_owned());
    assert_eq!(place, None, "of {n_planted} markers");
    assert!(n_planted > 10_000, "only {n_planted} markers planted");
}
