//! Imports and folders for the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use policysim_telemetry::{
    Dataset, ImportRequest, Inputs, Silent, TelemetryError, import_to_dataset,
};

pub(crate) static GO: AtomicBool = AtomicBool::new(false);

pub(crate) fn request(paths: &[&Path]) -> ImportRequest {
    ImportRequest {
        inputs: Inputs::Paths(paths.iter().map(|path| path.to_path_buf()).collect()),
        ..ImportRequest::default()
    }
}

pub(crate) fn import(request: &ImportRequest, out: &Path) -> Result<Dataset, TelemetryError> {
    import_to_dataset(request, out, &Silent, &GO)
}

pub(crate) fn in_memory(request: &ImportRequest) -> Result<Dataset, TelemetryError> {
    Dataset::from_logs(request, &Silent, &GO)
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(name)
}

/// The folder of reference data; without it a test says so and passes.
pub(crate) fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("POLICYSIM_SHARED").map_or(beside, PathBuf::from);
    if shared.join("corpus/expected.json").is_file() {
        return Some(shared);
    }
    println!("skipped: no corpus");
    None
}

pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// Every file below a folder with its bytes, by name.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = walkdir::WalkDir::new(folder)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let name = entry
                .path()
                .strip_prefix(folder)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// The message of an import that must fail; one line.
pub(crate) fn failure(request: &ImportRequest) -> String {
    let message = in_memory(request).unwrap_err().to_string();
    assert!(!message.contains('\n'), "more than one line: {message}");
    message
}
