//! Files and folders: what is found, how it is named, what is refused.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use policysim_telemetry::{
    Dataset, ImportRequest, InputFormat, SourceStatus, TableKind, TelemetryError,
};

use crate::support::{failure, files, fixture, import, in_memory, request, write};

const ROW: &str = "run,t_ms,kind\na,0,run_start\na,5,message_end\n";
/// The beginning of any PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn names(dataset: &Dataset) -> Vec<&str> {
    dataset
        .manifest()
        .sources
        .iter()
        .map(|source| source.source.as_str())
        .collect()
}

#[test]
fn sources_are_named_below_their_argument_and_never_by_an_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "logs/deep/er/b.csv", ROW);
    write(folder.path(), "logs/a.csv", ROW);
    write(folder.path(), "logs/.hidden/c.csv", ROW);
    let logs = folder.path().join("logs");
    let dataset = in_memory(&request(&[&logs])).unwrap();
    assert_eq!(names(&dataset), [".hidden/c.csv", "a.csv", "deep/er/b.csv"]);
    let roundabout = logs.join("deep/../deep");
    assert_eq!(
        names(&in_memory(&request(&[&roundabout])).unwrap()),
        ["er/b.csv"]
    );
    assert_eq!(
        names(&in_memory(&request(&[&logs.join("a.csv")])).unwrap()),
        ["a.csv"]
    );
    let out = folder.path().join("out");
    import(&request(&[&logs]), &out).unwrap();
    let place = folder.path().to_string_lossy().into_owned();
    for (name, bytes) in files(&out) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(&place), "{name} holds an absolute path");
    }
}

#[test]
fn equal_names_are_told_apart_by_their_argument() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(folder.path(), "a/x.csv", ROW);
    let b = write(folder.path(), "b/x.csv", ROW);
    let other_a = write(folder.path(), "c/a/x.csv", ROW);
    let both = in_memory(&request(&[&b, &a])).unwrap();
    assert_eq!(names(&both), ["a/x.csv", "b/x.csv"]);
    let dataset = in_memory(&request(&[&a, &other_a])).unwrap();
    assert_eq!(names(&dataset), ["a/x.csv", "a~2/x.csv"]);
    let dataset = in_memory(&request(&[&a, &a, a.parent().unwrap()])).unwrap();
    assert_eq!(
        names(&dataset),
        ["x.csv"],
        "one file, however often it is reached"
    );
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_and_odd_file_names_do_no_harm() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    write(&logs, "in/a.csv", ROW);
    std::os::unix::fs::symlink(&logs, logs.join("in/again")).unwrap();
    std::os::unix::fs::symlink(logs.join("nowhere"), logs.join("dangling")).unwrap();
    fs::write(logs.join(std::ffi::OsStr::from_bytes(b"x\n\xff.csv")), ROW).unwrap();
    fs::write(logs.join(std::ffi::OsStr::from_bytes(b"x\r\xfe.csv")), ROW).unwrap();
    let dataset = in_memory(&request(&[&logs])).unwrap();
    assert_eq!(
        names(&dataset),
        [
            "in/a.csv",
            "x\u{fffd}\u{fffd}.csv",
            "x\u{fffd}\u{fffd}.csv~2"
        ]
    );
}

#[test]
fn compressed_files_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let plain = fs::read(fixture("tables/events.csv")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&plain[..100]).unwrap();
    let mut bytes = gzip.finish().unwrap();
    // Archives may be joined, as `cat a.gz b.gz` does.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&plain[100..]).unwrap();
    bytes.extend(gzip.finish().unwrap());
    let gz = write(folder.path(), "events.csv.gz", &bytes);
    let zst = write(
        folder.path(),
        "events.csv.zst",
        zstd::encode_all(&plain[..], 3).unwrap(),
    );
    let original = in_memory(&request(&[&fixture("tables/events.csv")])).unwrap();
    for path in [gz, zst] {
        let dataset = in_memory(&request(&[&path])).unwrap();
        let (source, expected) = (
            &dataset.manifest().sources[0],
            &original.manifest().sources[0],
        );
        assert_eq!(
            (&source.digest, source.n_bytes),
            (&expected.digest, expected.n_bytes)
        );
        assert_eq!(source.counts, expected.counts);
        assert_eq!(dataset.n_runs(), original.n_runs());
    }
    let torn = write(
        folder.path(),
        "torn/events.csv.gz",
        &bytes[..bytes.len() - 20],
    );
    assert!(matches!(
        in_memory(&request(&[&torn])).unwrap_err(),
        TelemetryError::Io { .. }
    ));
    write(folder.path(), "torn/good.csv", ROW);
    let dataset = in_memory(&request(&[torn.parent().unwrap()])).unwrap();
    let statuses: Vec<SourceStatus> = dataset
        .manifest()
        .sources
        .iter()
        .map(|source| source.status)
        .collect();
    assert_eq!(statuses, [SourceStatus::Unreadable, SourceStatus::Imported]);
}

#[test]
fn bad_input_is_one_line_that_says_what_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let missing = failure(&request(&[&folder.path().join("missing")]));
    assert!(
        missing.contains("missing") && missing.contains("no such file"),
        "{missing}"
    );
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(failure(&request(&[&empty])).contains("holds no file"));
    assert!(failure(&ImportRequest::default()).contains("nothing to import"));
    write(folder.path(), "pictures/a.png", PNG);
    write(folder.path(), "pictures/b.png", PNG);
    let pictures = failure(&request(&[&folder.path().join("pictures")]));
    assert!(
        pictures.contains("2 file(s)") && pictures.contains("a.png"),
        "{pictures}"
    );
    assert!(
        pictures.contains("claude") && pictures.contains("samples"),
        "the formats tried: {pictures}"
    );
    let by_name = failure(&request(&[&folder.path().join("pictures/a.png")]));
    assert!(by_name.contains("'a.png'"), "{by_name}");
    let nothing = write(folder.path(), "empty.jsonl", "");
    assert!(failure(&request(&[&nothing])).contains("empty"));
    let dataset = folder.path().join("dataset");
    import(&request(&[&fixture("tables/events.csv")]), &dataset).unwrap();
    assert!(failure(&request(&[&dataset])).contains("is a dataset already"));
}

#[test]
fn a_stray_file_in_a_folder_costs_a_warning_and_stands_in_the_accounting() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.csv", ROW);
    write(folder.path(), "empty.jsonl", "");
    write(folder.path(), "picture.png", PNG);
    write(folder.path(), "notes/readme.md", "one\ntwo\nthree");
    import(
        &request(&[&folder.path().join("a.csv")]),
        &folder.path().join("dataset"),
    )
    .unwrap();
    let whole = request(&[folder.path()]);
    let manifest = in_memory(&whole).unwrap().manifest().clone();
    let rows: Vec<(&str, SourceStatus, u64, u64)> = manifest
        .sources
        .iter()
        .map(|s| {
            (
                s.source.as_str(),
                s.status,
                s.count("n_lines"),
                s.lines.unrecognised,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("a.csv", SourceStatus::Imported, 3, 0),
            ("empty.jsonl", SourceStatus::Empty, 0, 0),
            ("notes/readme.md", SourceStatus::Unrecognised, 3, 3),
            ("picture.png", SourceStatus::Unrecognised, 3, 3),
        ]
    );
    assert_eq!(manifest.totals.lines.total(), manifest.totals.n_lines);
    assert!(
        manifest
            .warnings
            .iter()
            .any(|warning| warning.contains("picture.png")),
        "{:?}",
        manifest.warnings
    );
    let strict = ImportRequest {
        strict: true,
        ..whole
    };
    assert!(matches!(
        in_memory(&strict).unwrap_err(),
        TelemetryError::Unrecognised { .. }
    ));
}

#[test]
fn a_named_format_keeps_the_lines_of_empty_files() {
    let folder = tempfile::tempdir().unwrap();
    let empty = write(folder.path(), "empty.csv", "");
    let mut forced = request(&[&empty]);
    forced.format = Some(InputFormat::Table(TableKind::Events));
    let dataset = in_memory(&forced).unwrap();
    let source = &dataset.manifest().sources[0];
    assert_eq!(
        (source.status, source.count("n_lines")),
        (SourceStatus::Empty, 0)
    );
    assert_eq!(source.format.as_deref(), Some("events"));
}

#[test]
fn hashed_names_stand_everywhere_instead_of_the_names() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "logs/secret-project/a.csv",
        "run,t_ms,kind\na,0,run_start\na,-5,message_end\n",
    );
    write(folder.path(), "logs/secret-project/b.txt", "nothing to see");
    let mut hashed = request(&[&folder.path().join("logs")]);
    hashed.hash_sources = true;
    let out = folder.path().join("out");
    let dataset = import(&hashed, &out).unwrap();
    for name in names(&dataset) {
        let digits = name.strip_prefix("src-").unwrap();
        assert!(
            digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()),
            "{name}"
        );
    }
    let run = &dataset.run_rows().unwrap()[0];
    assert!(
        run.name.starts_with("src-") && run.source.starts_with("src-"),
        "{}",
        run.name
    );
    for (name, bytes) in files(&out) {
        assert!(
            !String::from_utf8_lossy(&bytes).contains("secret"),
            "{name}"
        );
    }
}

#[test]
fn a_window_selects_runs_by_their_start() {
    let mut windowed = request(&[&fixture("tables/events.csv")]);
    windowed.since_ms = Some(1_772_442_009_400);
    let dataset = in_memory(&windowed).unwrap();
    let rows = dataset.run_rows().unwrap();
    let runs: Vec<(&str, &str)> = rows.iter().map(|run| (&*run.name, &*run.parent)).collect();
    assert_eq!(runs, [("events.csv#child", "")], "its parent is outside");
    assert_eq!(dataset.manifest().options.since_ms, windowed.since_ms);
    let totals = &dataset.manifest().totals;
    assert_eq!(
        (totals.n_runs, totals.n_runs_selected, totals.n_rows),
        (2, 1, 1)
    );
    windowed.since_ms = None;
    windowed.until_ms = Some(1_772_442_009_400);
    let names: Vec<String> = in_memory(&windowed)
        .unwrap()
        .run_rows()
        .unwrap()
        .iter()
        .map(|run| run.name.to_string())
        .collect();
    assert_eq!(names, ["events.csv#main"]);
}

#[test]
fn a_dataset_in_the_way_is_not_read_as_logs() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.csv", ROW);
    let out: PathBuf = folder.path().join("dataset");
    import(&request(&[folder.path()]), &out).unwrap();
    let again = import(&request(&[folder.path()]), &out).unwrap();
    assert_eq!(names(&again), ["a.csv"]);
}
