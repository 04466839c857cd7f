//! What the arguments of a command stand for.

use std::path::PathBuf;

use policysim_telemetry::{Arguments, Dataset, Inputs, TelemetryError};

use crate::support::{fixture, import, request, write};

#[test]
fn local_is_a_word_only_when_it_stands_alone_and_names_no_file() {
    let tell = |words: &[&str]| {
        let paths: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
        Arguments::tell(&paths)
    };
    assert_eq!(tell(&["local"]).unwrap(), Arguments::Logs(Inputs::Local));
    let two = vec![PathBuf::from("local"), PathBuf::from("more")];
    assert_eq!(
        tell(&["local", "more"]).unwrap(),
        Arguments::Logs(Inputs::Paths(two))
    );
    assert!(matches!(tell(&[]).unwrap_err(), TelemetryError::NoInput));
}

#[test]
fn a_dataset_is_told_from_a_folder_of_logs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dataset");
    import(&request(&[&fixture("tables/events.csv")]), &out).unwrap();
    assert_eq!(
        Arguments::tell(std::slice::from_ref(&out)).unwrap(),
        Arguments::Dataset(out)
    );
    let newer = "{\"schema_version\": 9, \"policysim_version\": \"9.0.0\"}";
    let newer = write(folder.path(), "newer/manifest.json", newer)
        .parent()
        .unwrap()
        .to_owned();
    let Arguments::Dataset(path) = Arguments::tell(&[newer]).unwrap() else {
        panic!("taken for logs")
    };
    assert!(matches!(
        Dataset::open(&path).unwrap_err(),
        TelemetryError::NewerSchema { .. }
    ));
    let foreign = write(
        folder.path(),
        "logs/manifest.json",
        "{\"name\": \"an extension\"}",
    );
    let logs = vec![foreign.parent().unwrap().to_owned()];
    assert_eq!(
        Arguments::tell(&logs).unwrap(),
        Arguments::Logs(Inputs::Paths(logs))
    );
}
