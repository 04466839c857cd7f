//! `policysim policy`: list, show, check and conform.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use policysim_policy::check::{self, Finding};
use policysim_policy::document::{self, Value};
use policysim_policy::presets::PRESETS;
use policysim_policy::retry::Era;
use policysim_policy::{First, Policy, duration};
use serde_json::{Map, Value as Json, json};

use crate::args::GlobalArgs;
use crate::conform;
use crate::exit::ExitStatus;
use crate::output;
use crate::policy_file::{self, DIALECTS, Loaded};

/// Presets, policy files and conformance
#[derive(Args, Debug)]
#[command(after_help = "Example: policysim policy show pi-desktop-0129")]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Find contradictions between limits, without data; exit 1 on a finding
    #[command(after_help = "Example: policysim policy check pi-desktop-0119 --task-wait 900s")]
    Check(CheckArgs),
    /// Run conformance vectors and scenarios; exit 1 on a mismatch
    #[command(
        after_help = "Example: policysim policy conform vectors/ (--help explains the format)",
        after_long_help = CONFORM_HELP
    )]
    Conform(ConformArgs),
    /// List the presets with their sources
    #[command(after_help = "Example: policysim policy list --format json")]
    List(ListArgs),
    /// Print the JSON schema of policy documents
    #[command(after_help = "Example: policysim policy schema > policy.schema.json")]
    Schema,
    /// Print a policy as a document in which every key is resolved
    #[command(
        after_help = "Example: policysim policy show pi-desktop-0129 --set idle=360s > policy.toml"
    )]
    Show(ShowArgs),
}

/// What `conform --help` says of the format of vectors.
const CONFORM_HELP: &str = include_str!("../conform/format.txt");

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// A policy and what is changed in it.
#[derive(Args, Debug)]
struct PolicyChoice {
    /// A preset, a policy file (TOML), or DIALECT:PATH for a harness's own settings
    #[arg(value_name = "POLICY")]
    policy: String,
    /// Read the file in a harness's dialect: pi-desktop, pi-extensions or no-mistakes, or a preset of it
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// Set a key, as in a policy file; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl PolicyChoice {
    /// The policy with its changes; what a harness does not take as written goes to stderr.
    fn load(&self, quiet: bool) -> Result<Loaded> {
        let mut loaded = match &self.dialect {
            Some(dialect) => policy_file::load_dialect(&self.policy, dialect)?,
            None => policy_file::load(&self.policy)?,
        };
        for assignment in &self.set {
            policy_file::assign(&mut loaded.policy, assignment)?;
        }
        for warning in &loaded.warnings {
            output::say(quiet, &format!("warning: {}: {warning}", loaded.name));
        }
        Ok(loaded)
    }
}

#[derive(Args, Debug)]
struct CheckArgs {
    #[command(flatten)]
    choice: PolicyChoice,
    /// The parent's wait for a delegate, where it is not the policy's own
    #[arg(long, value_name = "DURATION")]
    task_wait: Option<String>,
    /// The generation of provider backoff the delegate is subject to: aug22, 0129 or later
    #[arg(long, value_name = "ERA")]
    retry: Option<String>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args, Debug)]
struct ConformArgs {
    /// Vector files, scenario files and folders of them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args, Debug)]
struct ListArgs {
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Args, Debug)]
struct ShowArgs {
    #[command(flatten)]
    choice: PolicyChoice,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command; its results go to stdout.
///
/// # Errors
///
/// Anything that is not a result: unknown names, unreadable files, failed output.
pub(crate) fn run(args: &PolicyArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let mut out = io::stdout().lock();
    let status = match &args.command {
        PolicyCommand::Check(args) => run_check(args, global.quiet, &mut out)?,
        PolicyCommand::Conform(args) => run_conform(args, &mut out)?,
        PolicyCommand::List(args) => list(args, &mut out)?,
        PolicyCommand::Schema => schema(&mut out)?,
        PolicyCommand::Show(args) => show(args, global.quiet, &mut out)?,
    };
    out.flush()?;
    Ok(status)
}

fn list(args: &ListArgs, out: &mut impl Write) -> Result<ExitStatus> {
    match args.format {
        Format::Text => {
            let width = PRESETS.iter().map(|preset| preset.name.len()).max();
            let width = width.unwrap_or(0);
            for preset in &PRESETS {
                writeln!(out, "{:width$}  {}", preset.name, summary(&preset.policy()))?;
                writeln!(out, "{:width$}  {}", "", preset.source)?;
            }
            writeln!(out)?;
            for dialect in &DIALECTS {
                writeln!(
                    out,
                    "{}:PATH reads a {} over {}",
                    dialect.name,
                    dialect.file,
                    dialect.presets.join(", ")
                )?;
            }
        }
        Format::Json => {
            let presets: Vec<Json> = PRESETS
                .iter()
                .map(|preset| {
                    json!({
                        "name": preset.name,
                        "source": preset.source,
                        "policy": document_json(&preset.policy()),
                    })
                })
                .collect();
            write_json(out, &json!({ "schema_version": 1, "presets": presets }))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// The three limits a policy is known by.
fn summary(policy: &Policy) -> String {
    let limit = |key: &str| match policy.get(key) {
        Some(Value::Text(text)) => text,
        Some(value) => value.to_string(),
        None => "off".to_owned(),
    };
    let first = match policy.idle.first {
        First::After(first) => format!(" (first {})", duration::show(first)),
        First::SameAsWindow | First::Off => String::new(),
    };
    format!(
        "idle {}{first}, total {}, turns {}",
        limit("idle.window"),
        limit("total.budget"),
        match policy.turns.by_role.entries() {
            [] => limit("turns.cap"),
            roles => roles
                .iter()
                .map(|(role, cap)| match cap {
                    Some(cap) => format!("{role} {cap}"),
                    None => format!("{role} off"),
                })
                .collect::<Vec<_>>()
                .join(", "),
        }
    )
}

fn show(args: &ShowArgs, quiet: bool, out: &mut impl Write) -> Result<ExitStatus> {
    let loaded = args.choice.load(quiet)?;
    match args.format {
        Format::Text => out.write_all(document::print(&loaded.policy, loaded.preset).as_bytes())?,
        Format::Json => {
            let mut json = Map::new();
            json.insert("schema_version".to_owned(), json!(1));
            if let Some(preset) = loaded.preset {
                json.insert("preset".to_owned(), json!(preset));
            }
            json.insert("policy".to_owned(), document_json(&loaded.policy));
            json.insert("warnings".to_owned(), json!(loaded.warnings));
            write_json(out, &Json::Object(json))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// The document as JSON: the same keys and values; a limit that is off is `"off"`, never a number.
fn document_json(policy: &Policy) -> Json {
    let mut tables = Map::new();
    for key in document::KEYS {
        let Some((table, field)) = key.info.path.split_once('.') else {
            continue;
        };
        if let Some(value) = policy.get(key.info.path)
            && let Json::Object(fields) = tables.entry(table).or_insert_with(|| json!({}))
        {
            fields.insert(field.to_owned(), value_json(&value));
        }
    }
    Json::Object(tables)
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Bool(flag) => json!(flag),
        Value::Fraction(number) => json!(number.to_string()),
        Value::Integer(number) => json!(number),
        Value::List(items) => items.iter().map(value_json).collect(),
        Value::Null => Json::Null,
        Value::Table(entries) => entries
            .iter()
            .map(|(name, value)| (name.clone(), value_json(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Text(text) => json!(text),
    }
}

fn schema(out: &mut impl Write) -> Result<ExitStatus> {
    write_json(out, &policy_file::schema())?;
    Ok(ExitStatus::Success)
}

fn run_check(args: &CheckArgs, quiet: bool, out: &mut impl Write) -> Result<ExitStatus> {
    let mut loaded = args.choice.load(quiet)?;
    if let Some(wait) = &args.task_wait {
        loaded.policy.set("task_wait.timeout", &Value::text(wait))?;
    }
    if let Some(era) = &args.retry {
        match Era::from_name(era) {
            Some(era) => loaded.policy.retry = era.schedules(),
            None => bail!(
                "--retry: {era} is not one of {}",
                Era::ALL.map(Era::name).join(", ")
            ),
        }
    }
    let findings = check::check(&loaded.policy);
    match args.format {
        Format::Text => write_findings(out, &findings)?,
        Format::Json => write_json(out, &findings_json(&loaded.name, &findings))?,
    }
    Ok(if findings.is_empty() {
        ExitStatus::Success
    } else {
        ExitStatus::Finding
    })
}

fn write_findings(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
    let width = check::RULES.iter().map(|id| id.len()).max().unwrap_or(0);
    for finding in findings {
        let [left, right] = &finding.limits;
        writeln!(out, "finding  {:width$}  {left}, {right}", finding.id)?;
        writeln!(out, "         {}", finding.advice)?;
    }
    match findings.len() {
        0 => writeln!(out, "no findings"),
        1 => writeln!(out, "1 finding"),
        n => writeln!(out, "{n} findings"),
    }
}

fn findings_json(policy: &str, findings: &[Finding]) -> Json {
    let findings: Vec<Json> = findings
        .iter()
        .map(|finding| {
            let limits: Vec<Json> = finding
                .limits
                .iter()
                .map(|limit| {
                    json!({
                        "name": limit.name,
                        "limit_ms": limit.span.map(policysim_policy::Millis::as_u64),
                        "limit": limit.span.map_or_else(|| "off".to_owned(), duration::show),
                    })
                })
                .collect();
            json!({ "id": finding.id, "limits": limits, "advice": finding.advice })
        })
        .collect();
    json!({ "schema_version": 1, "policy": policy, "findings": findings })
}

fn run_conform(args: &ConformArgs, out: &mut impl Write) -> Result<ExitStatus> {
    let report = conform::run(&args.paths)?;
    match args.format {
        Format::Text => report.write_text(out)?,
        Format::Json => write_json(out, &report.to_json())?,
    }
    let status = report.status();
    if status == ExitStatus::Error {
        crate::output::say(
            false,
            "error: not everything could be run: see the lines that begin with ERROR",
        );
    }
    Ok(status)
}

fn write_json(out: &mut impl Write, json: &Json) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, json)?;
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::path::Path;

    use super::*;

    fn choice(policy: &str, dialect: Option<&str>) -> PolicyChoice {
        PolicyChoice {
            policy: policy.to_owned(),
            dialect: dialect.map(str::to_owned),
            set: Vec::new(),
        }
    }

    fn checked(args: &CheckArgs) -> (ExitStatus, String) {
        let mut out = Vec::new();
        let status = run_check(args, true, &mut out).unwrap();
        (status, String::from_utf8(out).unwrap())
    }

    fn examples() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/examples")
    }

    /// The layout of findings: id, the two limits, then what to change.
    #[test]
    fn findings_of_a_definition_in_its_dialect() {
        let path = examples().join("agent-explorer.md");
        let args = CheckArgs {
            choice: choice(path.to_str().unwrap(), Some("pi-desktop")),
            task_wait: Some("600s".to_owned()),
            retry: Some("later".to_owned()),
            format: Format::Text,
        };
        let (status, text) = checked(&args);
        assert_eq!(status, ExitStatus::Finding);
        assert_eq!(
            text,
            "finding  idle-not-below-wait         idle 600s, TaskWait 600s\n\
             \x20        a hung delegate cannot settle inside one wait; make idle at most 599s, better by the settling delay\n\
             1 finding\n"
        );
        let args = CheckArgs {
            task_wait: Some("601s".to_owned()),
            ..args
        };
        assert_eq!(
            checked(&args),
            (ExitStatus::Success, "no findings\n".to_owned())
        );
    }

    #[test]
    fn findings_as_data_keep_off_apart_from_numbers() {
        let args = CheckArgs {
            choice: PolicyChoice {
                set: vec!["total=off".to_owned()],
                ..choice("pi-desktop-0129", None)
            },
            task_wait: None,
            retry: None,
            format: Format::Json,
        };
        let (_, text) = checked(&args);
        let json: Json = serde_json::from_str(&text).unwrap();
        let limits = &json["findings"][0]["limits"];
        assert_eq!(json["findings"][0]["id"], "paused-without-limit");
        assert_eq!(limits[0]["limit_ms"], 300_000);
        assert_eq!(
            (&limits[1]["limit_ms"], &limits[1]["limit"]),
            (&Json::Null, &json!("off"))
        );
    }

    #[test]
    fn every_example_loads_and_the_policies_have_no_finding() {
        let mut policies = 0;
        for entry in fs::read_dir(examples()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with("policy-") {
                continue;
            }
            let loaded = policy_file::load(path.to_str().unwrap()).unwrap();
            assert_eq!(check::check(&loaded.policy), [], "{name}");
            let printed = document::print(&loaded.policy, loaded.preset);
            let again = policy_file::parse_document(&printed).unwrap();
            assert_eq!(again, loaded.policy, "{name}");
            policies += 1;
        }
        assert!(policies > 0);
        for (dialect, file) in [
            ("pi-desktop", "agent-explorer.md"),
            ("pi-extensions", "pi-extensions-settings.json"),
            ("no-mistakes", "no-mistakes-config.yaml"),
        ] {
            let path = examples().join(file);
            let loaded = policy_file::load(&format!("{dialect}:{}", path.display())).unwrap();
            assert_eq!(loaded.warnings, [""; 0], "{file}");
        }
    }

    #[test]
    fn off_is_a_word_of_its_own_in_json() {
        let mut out = Vec::new();
        let args = ShowArgs {
            choice: PolicyChoice {
                set: vec!["total=30d".to_owned()],
                ..choice("pi-desktop-0166", None)
            },
            format: Format::Json,
        };
        show(&args, true, &mut out).unwrap();
        let json: Json = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["policy"]["idle"]["window"], "off");
        assert_eq!(json["policy"]["total"]["budget"], "30d");
    }
}
