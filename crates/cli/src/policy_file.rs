//! From what a command line names to a policy: a preset, a policy file, or a harness's own settings.

use std::path::Path;

use anyhow::{Context, Result, bail};
use policysim_policy::presets::{self, PRESETS};
use policysim_policy::{Policy, PolicyError, nearest};
use policysim_sim::grid;

use crate::args::GlobalArgs;
use crate::given;
use crate::output::say;

mod dialect;
mod flat_yaml;
mod schema;
mod toml_document;

pub(crate) use dialect::{DIALECTS, json_setting, pi_desktop_defaults, pi_extensions_defaults};
pub(crate) use schema::schema;
pub(crate) use toml_document::{Fault, KeyLines, assign, convert, line_of};

/// A policy and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// What was asked for, as written; never an absolute path (see [`shown`]).
    pub(crate) name: String,
    /// The preset it is, or was made from.
    pub(crate) preset: Option<&'static str>,
    /// The policy.
    pub(crate) policy: Policy,
    /// Settings that the harness does not take as written.
    pub(crate) warnings: Vec<String>,
    /// The file it was read from, named as [`shown`] names it; a preset has none.
    pub(crate) file: Option<String>,
    /// Where that file sets which key.
    pub(crate) lines: KeyLines,
}

/// Loads what `spec` names: a preset, a policy file in TOML, or `DIALECT:PATH` for a harness's own settings, where
/// the dialect is one of [`DIALECTS`] or a preset of that harness.
///
/// # Errors
///
/// One line that names the file and line where there is one, the key, and what was expected.
pub(crate) fn load(spec: &str) -> Result<Loaded> {
    if let Some(policy) = presets::find(spec) {
        return Ok(Loaded {
            name: spec.to_owned(),
            preset: preset_name(spec),
            policy,
            warnings: Vec::new(),
            file: None,
            lines: KeyLines::new(),
        });
    }
    if let Some((prefix, path)) = spec.split_once(':')
        && let Some(dialect) = dialect::find(prefix)
    {
        return dialect.load(path);
    }
    if Path::new(spec).exists() || looks_like_a_path(spec) {
        let text = read(spec)?;
        let document = toml_document::parse(&text).map_err(|fault| fault.in_file(spec))?;
        let name = shown(Path::new(spec));
        return Ok(Loaded {
            file: Some(name.clone()),
            name,
            preset: document.preset,
            policy: document.policy,
            warnings: Vec::new(),
            lines: document.lines,
        });
    }
    if let Some((prefix, _)) = spec.split_once(':') {
        let known = DIALECTS.iter().map(|dialect| dialect.name);
        let hint = nearest(prefix, known.clone())
            .map(|name| format!(", did you mean {name}?"))
            .unwrap_or_default();
        let known: Vec<&str> = known.collect();
        bail!(
            "unknown dialect {prefix}: expected one of {}{hint}",
            known.join(", ")
        );
    }
    bail!(
        "{}; `policysim policy list` shows all, and a policy file is named with its extension",
        unknown_preset(spec)
    )
}

/// What results call a file that was given as `path`: as written, but an absolute path is cut to what lies below the
/// current directory, or to the file's name. Results are passed on, and where a machine keeps its files is nobody's
/// business.
pub(crate) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let named = match here.as_deref().map(|here| path.strip_prefix(here)) {
        _ if path.is_relative() => path,
        Some(Ok(below)) => below,
        _ => path.file_name().map_or(path, Path::new),
    };
    named.display().to_string()
}

/// A policy as a command line that stands in results names it: its file as [`shown`] names it.
pub(crate) fn shown_spec(spec: &str) -> String {
    match spec.split_once(':') {
        Some((dialect, path)) if dialect::find(dialect).is_some() => {
            format!("{dialect}:{}", shown(Path::new(path)))
        }
        _ => shown(Path::new(spec)),
    }
}

/// Loads what `spec` names and says what its harness does not take as written.
///
/// # Errors
///
/// As [`load`].
pub(crate) fn load_and_tell(spec: &str, global: &GlobalArgs) -> Result<Loaded> {
    let loaded = load(spec)?;
    for warning in &loaded.warnings {
        say(global.quiet, &format!("warning: {spec}: {warning}"));
    }
    Ok(loaded)
}

/// Loads the file at `path` in that dialect.
///
/// # Errors
///
/// As [`load`]; also when the dialect is unknown.
pub(crate) fn load_dialect(path: &str, dialect: &str) -> Result<Loaded> {
    match dialect::find(dialect) {
        Some(dialect) => dialect.load(path),
        None => load(&format!("{dialect}:{path}")),
    }
}

/// The policy of a document's text; faults name the line.
///
/// # Errors
/// When it does not read.
pub(crate) fn parse_document(text: &str) -> Result<Policy, toml_document::Fault> {
    toml_document::parse(text).map(|document| document.policy)
}

impl Loaded {
    /// Sets `KEY=VALUE` on top of the policy, and says so in its name.
    ///
    /// # Errors
    ///
    /// When a setting has no value, or its key or value does not read.
    pub(crate) fn change(&mut self, settings: &[String]) -> Result<()> {
        for (index, setting) in settings.iter().enumerate() {
            let (key, value) = setting.split_once('=').with_context(|| {
                format!("--set {setting}: expected KEY=VALUE, for example idle.window=300s")
            })?;
            self.policy.set(key, &grid::single(value))?;
            self.name.push_str(if index == 0 { " with " } else { ", " });
            self.name.push_str(setting);
        }
        Ok(())
    }
}

fn read(path: &str) -> Result<String> {
    given::read_text(path).with_context(|| format!("cannot read policy file {path}"))
}

fn looks_like_a_path(spec: &str) -> bool {
    spec.contains(['/', '\\'])
        || Path::new(spec)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// The preset's name with the lifetime of the table.
fn preset_name(name: &str) -> Option<&'static str> {
    PRESETS
        .iter()
        .map(|preset| preset.name)
        .find(|known| *known == name)
}

/// The error for a preset that does not exist.
fn unknown_preset(name: &str) -> PolicyError {
    PolicyError::UnknownPreset {
        name: name.to_owned(),
        nearest: nearest(name, PRESETS.iter().map(|preset| preset.name)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_unknown_preset_names_the_nearest() {
        let error = load("pi-desktop-0192").unwrap_err().to_string();
        assert!(
            error.starts_with("unknown preset pi-desktop-0192, did you mean pi-desktop-0129?"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load("no/such.toml").unwrap_err().to_string();
        assert_eq!(error, "cannot read policy file no/such.toml");
    }

    #[test]
    fn an_unknown_dialect_names_the_nearest() {
        let error = load("pi-desk:a.md").unwrap_err().to_string();
        assert!(error.ends_with("did you mean pi-desktop?"), "{error}");
    }
}
