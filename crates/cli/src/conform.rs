//! `policysim policy conform`: runs vector files and scenarios against this implementation.
//!
//! A file is a JSON array of vectors (`vectors.rs` lists the kinds) or one scenario (`timeline.rs`, `documents.rs`). Every
//! vector gets one line. What is expected is compared key by key: a key that this program does not work out is
//! named as not asserted, and a kind, key or format that it does not know is an error, never a skip.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value as Json, json};

use crate::exit::ExitStatus;
use judge::Judged;

mod detector;
mod documents;
mod fields;
mod judge;
mod scenario_policy;
#[cfg(test)]
mod tests;
mod timeline;
mod trace;
mod vectors;

/// Formats of scenarios whose capability is not part of this command yet.
const NOT_YET: [&str; 2] = ["gap-samples/1", "gate/1"];

/// The kind of vectors whose capability is not part of this command yet: checks of the statistics.
const STATISTICS: &str = "statistics";

/// The result of one vector or scenario.
#[derive(Debug)]
struct Line {
    file: String,
    name: String,
    judged: Result<Judged, String>,
}

/// The results of a whole call.
#[derive(Debug)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

/// Runs every vector and scenario in the files and folders named.
///
/// # Errors
///
/// A path that cannot be read, or nothing to run.
pub(crate) fn run(paths: &[PathBuf]) -> Result<Report> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    if files.is_empty() {
        bail!("no vector or scenario file in {}", paths_text(paths));
    }
    let mut lines = Vec::new();
    for file in &files {
        lines.extend(run_file(file)?);
    }
    Ok(Report { lines })
}

fn paths_text(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// The files below a path, sorted by name, so that the output does not depend on the file system.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut inside = fs::read_dir(path)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<io::Result<Vec<_>>>()
        })
        .with_context(|| format!("cannot read {}", path.display()))?;
    inside.sort();
    for path in inside {
        collect(&path, files)?;
    }
    Ok(())
}

fn run_file(path: &Path) -> Result<Vec<Line>> {
    let file = path.display().to_string();
    let stem = path
        .file_stem()
        .map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
    let line = |name: &str, judged| Line {
        file: file.clone(),
        name: name.to_owned(),
        judged,
    };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") if ["README", "POLICIES"].contains(&stem.as_str()) => return Ok(Vec::new()),
        Some("md") => {
            return Ok(vec![line(
                &stem,
                Ok(Judged::Elsewhere("a check described in words")),
            )]);
        }
        Some("jsonl") => {
            return Ok(vec![line(
                &stem,
                Ok(Judged::Elsewhere("a session log, for `policysim import`")),
            )]);
        }
        Some("json") => {}
        _ => {
            return Ok(vec![line(
                &stem,
                Err("unknown kind of file: expected .json".to_owned()),
            )]);
        }
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    let json: Json = match serde_json::from_str(&text) {
        Ok(json) => json,
        Err(error) => return Ok(vec![line(&stem, Err(format!("not JSON: {error}")))]),
    };
    Ok(match &json {
        Json::Array(vectors) => vectors
            .iter()
            .enumerate()
            .map(|(at, vector)| {
                let name = vector.get("name").and_then(Json::as_str);
                let name = name.map_or_else(|| format!("{stem}[{at}]"), str::to_owned);
                line(
                    &name,
                    vectors::run(vector).map_err(|error| format!("{error:#}")),
                )
            })
            .collect(),
        scenario => vec![line(
            &stem,
            run_scenario(scenario).map_err(|error| format!("{error:#}")),
        )],
    })
}

/// Runs a file that is not a list of vectors.
fn run_scenario(json: &Json) -> Result<Judged> {
    let Some(format) = json.get("format").and_then(Json::as_str) else {
        // The statistics' vectors are one object each, with the method they check.
        return match (json.get("method"), json.get("tolerance")) {
            (Some(_), Some(_)) => Ok(Judged::NotYet(STATISTICS)),
            _ => bail!("neither a list of vectors nor a scenario with a format"),
        };
    };
    match format {
        "neutral-timeline/1" => timeline::run(json),
        "policy/1" => documents::run(json),
        "detector/1" => detector::run(json),
        format => match NOT_YET.into_iter().find(|known| *known == format) {
            Some(known) => Ok(Judged::NotYet(known)),
            None => bail!("unknown format {format}"),
        },
    }
}

impl Report {
    /// An error goes before a mismatch.
    pub(crate) fn status(&self) -> ExitStatus {
        self.lines
            .iter()
            .map(|line| match &line.judged {
                Err(_) => ExitStatus::Error,
                Ok(Judged::Compared(compared)) if !compared.differences.is_empty() => {
                    ExitStatus::Finding
                }
                Ok(_) => ExitStatus::Success,
            })
            .max()
            .unwrap_or(ExitStatus::Success)
    }

    /// One line per vector, then what is not asserted and the counts.
    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let mut unasserted: BTreeMap<&str, usize> = BTreeMap::new();
        let mut counts = [0; 5];
        for line in &self.lines {
            let Line { file, name, judged } = line;
            match judged {
                Err(error) => {
                    counts[3] += 1;
                    writeln!(out, "ERROR     {name}  {file}: {error}")?;
                }
                Ok(Judged::NotYet(what)) => {
                    counts[2] += 1;
                    writeln!(out, "not yet   {name}  {what}")?;
                }
                Ok(Judged::Elsewhere(what)) => {
                    counts[4] += 1;
                    writeln!(out, "elsewhere {name}  {what}")?;
                }
                Ok(Judged::Compared(compared)) => {
                    for key in &compared.unasserted {
                        *unasserted.entry(key).or_default() += 1;
                    }
                    if compared.differences.is_empty() {
                        counts[0] += 1;
                        writeln!(out, "ok        {name}")?;
                        continue;
                    }
                    counts[1] += 1;
                    writeln!(out, "MISMATCH  {name}  {file}")?;
                    for difference in &compared.differences {
                        writeln!(
                            out,
                            "          {}: expected {}, got {}",
                            difference.key, difference.expected, difference.got
                        )?;
                    }
                }
            }
        }
        if !unasserted.is_empty() {
            let keys: Vec<String> = unasserted
                .iter()
                .map(|(key, count)| format!("{key} ({count})"))
                .collect();
            writeln!(out, "not asserted: {}", keys.join(", "))?;
        }
        let [ok, mismatched, not_yet, errors, elsewhere] = counts;
        write!(
            out,
            "{ok} ok, {mismatched} mismatched, {not_yet} not yet, {errors} errors"
        )?;
        if elsewhere > 0 {
            write!(out, ", {elsewhere} for elsewhere")?;
        }
        writeln!(out)
    }

    /// The same as data.
    pub(crate) fn to_json(&self) -> Json {
        let vectors: Vec<Json> = self
            .lines
            .iter()
            .map(|line| {
                let (result, detail) = match &line.judged {
                    Err(error) => ("error", json!({ "error": error })),
                    Ok(Judged::NotYet(what)) => ("not_yet", json!({ "reason": what })),
                    Ok(Judged::Elsewhere(what)) => ("elsewhere", json!({ "reason": what })),
                    Ok(Judged::Compared(compared)) => {
                        let differences: Vec<Json> = compared
                            .differences
                            .iter()
                            .map(|d| json!({ "key": d.key, "expected": d.expected, "got": d.got }))
                            .collect();
                        let result = if differences.is_empty() {
                            "ok"
                        } else {
                            "mismatch"
                        };
                        let detail = json!({
                            "got": compared.got,
                            "differences": differences,
                            "not_asserted": compared.unasserted,
                        });
                        (result, detail)
                    }
                };
                let mut row = json!({ "name": line.name, "file": line.file, "result": result });
                if let (Json::Object(row), Json::Object(detail)) = (&mut row, detail) {
                    row.extend(detail);
                }
                row
            })
            .collect();
        json!({ "schema_version": 1, "vectors": vectors })
    }
}
