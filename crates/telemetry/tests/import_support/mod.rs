//! What the importer's tests share: finding the reference data, importing bytes, measuring what was imported.
#![allow(clippy::unwrap_used, dead_code)]

use std::path::{Path, PathBuf};

use policysim_policy::Kind;
use policysim_sim::run::{EventFlags, Run, RunEvent, Symbols};
use policysim_telemetry::import::{
    Format, ImportOptions, SourceInput, SourceReport, WaitTable, import_source,
};

/// A source as imported.
pub(crate) struct Imported {
    pub(crate) report: SourceReport,
    pub(crate) runs: Vec<Run>,
    pub(crate) symbols: Symbols,
}

/// The folder of reference data, if it is there.
pub(crate) fn shared() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared =
        std::env::var_os("POLICYSIM_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    shared.join("corpus").is_dir().then_some(shared)
}

/// The folder of our own fixture logs.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/logs")
}

/// Imports bytes.
pub(crate) fn import(name: &str, format: Format, bytes: &[u8]) -> Imported {
    import_with(name, format, bytes, &ImportOptions::default())
}

/// Imports bytes under options.
pub(crate) fn import_with(
    name: &str,
    format: Format,
    bytes: &[u8],
    options: &ImportOptions,
) -> Imported {
    let mut symbols = Symbols::default();
    let mut runs = Vec::new();
    let mut reader = bytes;
    let input = SourceInput {
        name,
        reader: &mut reader,
    };
    let report = import_source(
        input,
        format,
        options,
        &mut symbols,
        &mut |run: Run, _: &Symbols| {
            runs.push(run);
            Ok(())
        },
    )
    .unwrap();
    Imported {
        report,
        runs,
        symbols,
    }
}

/// The waits that sit on the events of all rows.
pub(crate) fn waits_on_events(runs: &[Run]) -> WaitTable {
    let mut table = WaitTable::default();
    for wait in runs
        .iter()
        .flat_map(|run| &run.events)
        .filter_map(|event| event.wait)
    {
        table.add(wait);
    }
    table
}

/// Whether a policy could tell the event by its kind (and other-name) alone.
pub(crate) fn kind_of(event: &RunEvent) -> (Kind, u32) {
    let name = if event.kind == Kind::Other {
        event.name.0
    } else {
        0
    };
    (event.kind, name)
}

/// Longest idle-clock reading with nothing paused and exactly the activity re-arming, and the activity's span.
pub(crate) fn longest_silence(run: &Run) -> (u64, u64) {
    let mut armed_at = 0;
    let mut longest = 0;
    for event in &run.events {
        if event.flags.has(EventFlags::ACTIVITY) {
            longest = longest.max(event.t_ms - armed_at);
            armed_at = event.t_ms;
        }
    }
    (longest, armed_at)
}

/// Whether silence is measured anew inside the run: an abort, a task's end in front of more activity, or a gap mark.
pub(crate) fn is_interrupted(run: &Run, symbols: &Symbols) -> bool {
    run.measured.aborted
        || run.events.iter().any(|event| {
            event.kind == Kind::Resume
                || (event.kind == Kind::Other && symbols.name(event.name) == "gap_mark")
        })
}

/// What holds for the events of every run.
pub(crate) fn check_run(run: &Run, symbols: &Symbols) {
    let name = &run.name;
    assert!(
        run.events
            .windows(2)
            .all(|pair| pair[0].t_ms <= pair[1].t_ms),
        "{name}: time steps back"
    );
    let last = run.events.last().map_or(0, |event| event.t_ms);
    assert!(
        last <= run.end_ms,
        "{name}: events after the end of the record"
    );
    let activity: Vec<_> = run
        .events
        .iter()
        .filter(|event| event.flags.has(EventFlags::ACTIVITY))
        .map(kind_of)
        .collect();
    for event in &run.events {
        if !event.flags.has(EventFlags::ACTIVITY) && event.kind != Kind::RunEnd {
            assert!(
                !activity.contains(&kind_of(event)),
                "{name}: {:?} is activity and is not",
                event.kind
            );
        }
    }
    if !is_interrupted(run, symbols) && run.status != policysim_sim::run::RunStatus::Outside {
        let (silence, span) = longest_silence(run);
        assert_eq!(silence, run.measured.silence_ms, "{name}: silence");
        assert_eq!(span, run.measured.duration_ms, "{name}: duration");
    }
}
