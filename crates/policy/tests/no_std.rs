//! The core stays what it says: `no_std`, without dependencies, without clock, I/O, thread or randomness.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn without_features_it_depends_on_nothing() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix", "none", "-e", "normal"])
        .args(["-p", "policysim-policy", "--no-default-features"])
        .current_dir(manifest())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 1, "{tree}");
    assert!(lines[0].starts_with("policysim-policy "), "{tree}");
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file: comments and the tests at its bottom left out.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap_or_default();
    body.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .fold(String::new(), |code, line| code + line + "\n")
}

#[test]
fn no_clock_io_thread_or_randomness_enters() {
    const FORBIDDEN: [&str; 13] = [
        "std::",
        "extern crate std",
        "Instant",
        "SystemTime",
        "thread",
        "rand::",
        "getrandom",
        "println",
        "fs::",
        "HashMap",
        "unsafe ",
        "f32",
        "asm!",
    ];
    let mut files = Vec::new();
    sources(&manifest().join("src"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = code(&text);
        for word in FORBIDDEN {
            assert!(!code.contains(word), "{word} in {}", file.display());
        }
        if file.ends_with("src/lib.rs") {
            assert!(code.contains("#![no_std]") && code.contains("#![forbid(unsafe_code)]"));
        }
    }
}

/// The files of the core itself hold no float at all.
#[test]
fn no_float_decides() {
    let src = manifest().join("src");
    let mut files = Vec::new();
    sources(&src.join("watchdog"), &mut files);
    assert!(files.len() > 5, "{files:?}");
    for file in [
        "adaptive", "clock", "detect", "open", "phase", "quick", "record", "rules", "segment",
        "throttle", "time", "turns", "watchdog",
    ] {
        files.push(src.join(file).with_extension("rs"));
    }
    for file in files {
        let code = code(&std::fs::read_to_string(&file).unwrap());
        assert!(
            !code.contains("f64") && !code.contains("powi"),
            "{}",
            file.display()
        );
    }
}
