//! The folder: complete or not there, the same bytes again, nothing that was not a dataset replaced.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use policysim_telemetry::{Dataset, Silent, TelemetryError, import_to_dataset};

use crate::support::{files, fixture, import, in_memory, request, write};

#[test]
fn what_is_written_reads_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dataset");
    let request = request(&[&fixture("tables/events.csv")]);
    let written = import(&request, &out).unwrap();
    let read = Dataset::open(&out).unwrap();
    assert_eq!(read.manifest(), written.manifest());
    let memory = in_memory(&request).unwrap();
    assert_eq!(memory.manifest(), read.manifest());
    let runs = read.fleet().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs, memory.fleet().unwrap());
    assert_eq!(read.manifest().totals.n_events, 17);
    let names: Vec<&str> = files(&out)
        .iter()
        .map(|(name, _)| name.clone().leak() as &str)
        .collect();
    assert_eq!(
        names,
        [
            "events.parquet",
            "manifest.json",
            "quarantine.csv",
            "runs.parquet"
        ]
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing stays beside the dataset"
    );
}

#[test]
fn the_same_import_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let table = fs::read(fixture("tables/events.csv")).unwrap();
    let a = write(folder.path(), "a/log.csv", &table);
    let b = write(folder.path(), "b/log.csv", &table);
    let bytes = |paths: &[&std::path::Path]| {
        let out = folder.path().join("out");
        import(&request(paths), &out).unwrap();
        files(&out)
    };
    let first = bytes(&[&a, &b]);
    assert_eq!(
        first,
        bytes(&[&a, &b]),
        "again, over the dataset that stands there"
    );
    assert_eq!(first, bytes(&[&b, &a]), "arguments in the other order");
}

#[test]
fn only_a_dataset_or_an_empty_folder_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(&[&fixture("tables/events.csv")]);
    let out = folder.path().join("mine");
    write(&out, "notes.txt", "keep me");
    let error = import(&request, &out).unwrap_err();
    assert!(
        matches!(error, TelemetryError::OutputExists { .. }),
        "{error}"
    );
    assert_eq!(fs::read(out.join("notes.txt")).unwrap(), b"keep me");
    fs::remove_file(out.join("notes.txt")).unwrap();
    import(&request, &out).unwrap();
    import(&request, &out).unwrap();
    let file = write(folder.path(), "file", "x");
    assert!(matches!(
        import(&request, &file).unwrap_err(),
        TelemetryError::OutputExists { .. }
    ));
    let below_a_file = import(&request, &file.join("dataset")).unwrap_err();
    assert!(
        matches!(below_a_file, TelemetryError::Io { .. }),
        "{below_a_file}"
    );
}

#[test]
fn an_interrupted_import_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(&[&fixture("tables/events.csv")]);
    for raised in [0, 1] {
        let cancel = AtomicBool::new(raised == 0);
        let progress = CancelAtRead(&cancel);
        let error = import_to_dataset(&request, &folder.path().join("dataset"), &progress, &cancel)
            .unwrap_err();
        assert!(matches!(error, TelemetryError::Cancelled), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    let cancel = AtomicBool::new(false);
    import_to_dataset(&request, &folder.path().join("dataset"), &Silent, &cancel).unwrap();
}

#[test]
fn an_import_interrupted_between_its_sources_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er/dataset");
    for source in 1..=6 {
        let cancel = AtomicBool::new(false);
        let progress = CancelAtSource(&cancel, AtomicUsize::new(source));
        let request = request(&[&fixture("logs")]);
        let error = import_to_dataset(&request, &out, &progress, &cancel).unwrap_err();
        assert!(
            matches!(error, TelemetryError::Cancelled),
            "source {source}: {error}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    import(&request(&[&fixture("logs")]), &out).unwrap();
}

/// Raises the flag when the so manieth source is begun.
struct CancelAtSource<'a>(&'a AtomicBool, AtomicUsize);

impl policysim_telemetry::Progress for CancelAtSource<'_> {
    fn source(&self, _: &str) {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Raises the flag once the first bytes were read.
struct CancelAtRead<'a>(&'a AtomicBool);

impl policysim_telemetry::Progress for CancelAtRead<'_> {
    fn advance(&self, _: u64) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_is_no_dataset_or_a_newer_one_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Dataset::open(&folder.path().join(name)).unwrap_err();
    assert!(matches!(open("missing"), TelemetryError::NotFound { .. }));
    write(folder.path(), "logs/a.jsonl", "{}");
    assert!(matches!(open("logs"), TelemetryError::NotADataset { .. }));
    write(folder.path(), "odd/manifest.json", "{}");
    assert!(matches!(open("odd"), TelemetryError::NotADataset { .. }));
    let out = folder.path().join("newer");
    import(&request(&[&fixture("tables/events.csv")]), &out).unwrap();
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    let newer = manifest.replace("\"schema_version\": 1", "\"schema_version\": 2");
    fs::write(out.join("manifest.json"), newer).unwrap();
    let error = open("newer");
    assert!(
        matches!(
            error,
            TelemetryError::NewerSchema {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    fs::write(out.join("manifest.json"), manifest).unwrap();
    for table in ["runs.parquet", "events.parquet"] {
        let bytes = fs::read(out.join(table)).unwrap();
        for cut in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            fs::write(out.join(table), &bytes[..cut]).unwrap();
            let error = open("newer").to_string();
            assert!(
                error.contains("damaged or changed") && !error.contains('\n'),
                "{error}"
            );
        }
        fs::remove_file(out.join(table)).unwrap();
        assert!(open("newer").to_string().contains(table));
        fs::write(out.join(table), bytes).unwrap();
    }
    Dataset::open(&out).unwrap();
}

#[test]
fn damaged_tables_are_an_error_and_never_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dataset");
    import(&request(&[&fixture("tables/events.csv")]), &out).unwrap();
    let manifest = fs::read(out.join("manifest.json")).unwrap();
    let runs = fs::read(out.join("runs.parquet")).unwrap();
    let events = fs::read(out.join("events.parquet")).unwrap();
    for step in 0..100 {
        let mut events = events.clone();
        let mut runs = runs.clone();
        let table = if step % 2 == 0 {
            &mut events
        } else {
            &mut runs
        };
        let at = (step * 7_919) % table.len();
        table[at] ^= 1 << (step % 8);
        let error = Dataset::from_bytes(&manifest, &runs, &events)
            .unwrap_err()
            .to_string();
        assert!(error.contains("damaged or changed"), "{error}");
        // A table given by itself has no digest to be held against.
        let path = write(folder.path(), "foreign.parquet", &events);
        let _ = in_memory(&request(&[&path]));
    }
    Dataset::from_bytes(&manifest, &runs, &events).unwrap();
}
