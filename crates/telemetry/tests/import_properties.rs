//! What holds for every input, however broken.
#![allow(clippy::unwrap_used)]

mod import_support;

use std::io::BufReader;

use import_support::{check_run, fixtures, import, waits_on_events};
use policysim_policy::Kind;
use policysim_sim::run::{EventFlags, Run, Symbols};
use policysim_telemetry::import::{Format, ImportOptions, SourceInput, import_source, sniff};
use proptest::prelude::*;

const LINE_FORMATS: [Format; 4] = [Format::Claude, Format::Codex, Format::Copilot, Format::Pi];

fn fixture(format: Format) -> Vec<u8> {
    let ending = if format.is_document() {
        "json"
    } else {
        "jsonl"
    };
    std::fs::read(fixtures().join(format!("{}.{ending}", format.name()))).unwrap()
}

fn formats() -> impl Strategy<Value = Format> {
    prop::sample::select(&Format::ALL[..])
}

fn line_formats() -> impl Strategy<Value = Format> {
    prop::sample::select(&LINE_FORMATS[..])
}

/// What must hold whatever was imported.
fn check(format: Format, bytes: &[u8]) {
    let imported = import("log", format, bytes);
    let report = &imported.report;
    let n_lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
    assert_eq!(report.counts.n_lines, n_lines);
    assert_eq!(report.lines.total(), n_lines);
    assert_eq!(waits_on_events(&imported.runs), report.waits);
    for run in &imported.runs {
        check_run(run, &imported.symbols);
    }
    let _ = sniff(bytes);
}

/// The activity of all runs, on the wall clock, in order.
fn activity(runs: &[Run]) -> Vec<(i64, Kind, u64)> {
    let of_run = |run: &Run| {
        let start = run.started_at_ms;
        let active = run
            .events
            .iter()
            .filter(|event| event.flags.has(EventFlags::ACTIVITY));
        active
            .map(move |event| (start + event.t_ms as i64, event.kind, event.id.as_u64()))
            .collect::<Vec<_>>()
    };
    let mut all: Vec<_> = runs.iter().flat_map(of_run).collect();
    all.sort_by_key(|(t, _, _)| *t);
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn arbitrary_bytes(format in formats(), bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(format, &bytes);
    }

    #[test]
    fn arbitrary_json_text(format in formats(), text in "[\\[\\]{}:,\"\\\\a-u0-9.eE+\\- \n\r\u{2028}\u{feff}]{0,200}") {
        check(format, text.as_bytes());
    }

    #[test]
    fn shuffled_and_damaged_lines(
        format in line_formats(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<Option<(prop::sample::Index, u8)>>()), 0..60),
    ) {
        let text = fixture(format);
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let mut bytes = Vec::new();
        for (pick, damage) in picks {
            let mut line = pick.get(&lines).to_vec();
            if let Some((at, byte)) = damage {
                let at = at.index(line.len());
                line[at] = byte;
            }
            bytes.extend(line);
        }
        check(format, &bytes);
    }

    #[test]
    fn damaged_documents(
        format in prop::sample::select(&[Format::Gemini, Format::Opencode][..]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = fixture(format);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(format, &bytes);
    }

    #[test]
    fn a_cut_line_changes_nothing_before_it(
        format in line_formats(),
        line in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        ended in any::<bool>(),
    ) {
        let text = fixture(format);
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let line = line.index(lines.len());
        let before: Vec<u8> = lines[..line].concat();
        let cut = &lines[line][..=cut.index(lines[line].len() - 2)];
        // A joined line cut between its two values is sound.
        prop_assume!(cut[0] == b'{' && serde_json::from_slice::<serde_json::Value>(cut).is_err());
        let mut after = before.clone();
        after.extend(cut);
        if ended {
            after.push(b'\n');
        }
        let (before, after) = (import("log", format, &before), import("log", format, &after));
        prop_assert_eq!(activity(&before.runs), activity(&after.runs));
        prop_assert_eq!(&before.report.waits, &after.report.waits);
        prop_assert_eq!(before.report.lines.imported, after.report.lines.imported);
        prop_assert_eq!(before.report.counts.n_bad_lines + 1, after.report.counts.n_bad_lines);
        prop_assert_eq!(after.report.bad_lines.last().unwrap().line, line as u64 + 1);
    }

    #[test]
    fn how_the_bytes_arrive_does_not_matter(format in formats(), capacity in 1_usize..200) {
        let bytes = fixture(format);
        let whole = import("log", format, &bytes);
        let mut symbols = Symbols::default();
        let mut runs = Vec::new();
        let mut reader = BufReader::with_capacity(capacity, bytes.as_slice());
        let input = SourceInput { name: "log", reader: &mut reader };
        let report = import_source(input, format, &ImportOptions::default(), &mut symbols, &mut |run, _: &Symbols| {
            runs.push(run);
            Ok(())
        })
        .unwrap();
        prop_assert_eq!(&runs, &whole.runs);
        prop_assert_eq!(format!("{report:?}"), format!("{:?}", whole.report));
    }
}
