//! `policysim gate`: a policy and a closed window of telemetry held to rules.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use policysim_policy::nearest;
use policysim_report::gate::{GateResult, Place};
use policysim_sim::gate::{
    Check, Evidence, Figures, Mapping, Needs, Origin, Rules, Verdict, evaluate, figures_of,
    figures_of_summary,
};

use crate::args::{DataArgs, GlobalArgs};
use crate::exit::ExitStatus;
use crate::{data, output, policy_file, rules_file, summary_file};

mod args;
mod init;
mod swept;

use args::{Counts, GateCommand};
pub(crate) use args::{GateArgs, SummaryArgs};

/// Decides the rules and prints what became of them.
pub(super) fn run(args: &GateArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    match &args.command {
        Some(GateCommand::Init(init)) => init::run(init, global),
        Some(GateCommand::Summarise(summary)) => summary_file::write(summary, global),
        Some(GateCommand::Schema) => {
            let schema = serde_json::to_string_pretty(&rules_file::schema())?;
            output::print(&format!("{schema}\n"))?;
            Ok(ExitStatus::Success)
        }
        None => gate(args, global),
    }
}

fn gate(args: &GateArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let (Some(policy), Some(path)) = (&args.policy, &args.rules) else {
        bail!("--policy and --rules are needed");
    };
    let outputs = outputs(&args.formats)?;
    let mut rules = rules_file::load(path)?;
    if rules.inconclusive == Mapping::Report {
        rules.inconclusive = match args.inconclusive {
            Some(Counts::Pass) => Mapping::Pass,
            Some(Counts::Fail) => Mapping::Fail,
            None => Mapping::Report,
        };
    }
    let policy = policy_file::load_and_tell(policy, global)?;
    let needs = rules.needs();
    let now = Side::load(&args.data, &policy, &rules, &needs, global)?;
    let baseline = match &args.baseline {
        // read even where no rule asks for it, so that a wrong path is told
        Some(path) => {
            let data = DataArgs {
                data: vec![path.clone()],
                ..args.data.clone()
            };
            let needs = Needs {
                data: true,
                ..needs.clone()
            };
            Some(Side::load(&data, &policy, &rules, &needs, global)?)
        }
        None => None,
    };
    let evidence = Evidence {
        policy: &policy.policy,
        now: &now.figures,
        baseline: baseline.as_ref().map(|side| &side.figures),
        seed: global.seed,
    };
    let gate = evaluate(&rules, evidence);
    let status = status(gate.verdict());
    let places = gate
        .checks
        .iter()
        .map(|check| place(check, &policy, path))
        .collect();
    let result = GateResult {
        data: now.header,
        baseline: baseline.and_then(|side| side.header),
        policy: policy.name,
        preset: policy.preset.map(ToOwned::to_owned),
        rules: policy_file::shown(path),
        gate,
        places,
        explain: args.explain,
        seed: global.seed,
        exit_code: status.code(),
    };
    write(&result, &outputs)?;
    Ok(status)
}

/// One side's figures, and what is to be said of its telemetry.
struct Side {
    header: Option<policysim_report::header::DataHeader>,
    figures: Figures,
}

impl Side {
    /// Loads what `needs` names; nothing where the rules are about the policy alone.
    fn load(
        args: &DataArgs,
        policy: &policy_file::Loaded,
        rules: &Rules,
        needs: &Needs,
        global: &GlobalArgs,
    ) -> Result<Self> {
        // telemetry that is named is read, so that a wrong path is told
        if !needs.data && args.data.is_empty() {
            return Ok(Self {
                header: None,
                figures: Figures::default(),
            });
        }
        if let [path] = &args.data[..]
            && summary_file::is_one(path)
        {
            let read = summary_file::read(path)?;
            let origin = Origin {
                lines: read.header.lines,
                malformed: read.header.malformed_lines,
                recorded_idle: rules.recorded_idle,
                ..Origin::default()
            };
            let figures = figures_of_summary(&read.summary, &policy.policy, needs, origin)
                .map_err(|why| read.lacking(&why, &policy.name))?;
            return Ok(Self {
                figures,
                header: Some(read.header),
            });
        }
        if let [folder] = &args.data[..]
            && data::is_result_set(folder)
        {
            let read = swept::read(folder, policy, rules, needs)?;
            return Ok(Self {
                figures: read.figures,
                header: Some(read.header),
            });
        }
        let loaded = data::load(args, global)?;
        let origin = Origin {
            lines: loaded.header.lines,
            malformed: loaded.header.malformed_lines,
            samples_only: loaded.samples_only,
            recorded_idle: rules.recorded_idle,
            seed: global.seed,
        };
        Ok(Self {
            figures: figures_of(&loaded.fleet, &policy.policy, needs, origin),
            header: Some(loaded.header),
        })
    }
}

/// The exit code of a gate: a failure outranks what could not be decided.
const fn status(verdict: Verdict) -> ExitStatus {
    match verdict {
        Verdict::Pass => ExitStatus::Success,
        Verdict::Fail => ExitStatus::Finding,
        Verdict::Inconclusive | Verdict::NoData => ExitStatus::Inconclusive,
    }
}

/// Where to look when a check does not pass: the first of its keys that the policy's file sets, else the preset that
/// sets them, else the rule.
fn place(check: &Check, policy: &policy_file::Loaded, rules: &Path) -> Place {
    let line_of = |key: &str| {
        let sets = |(set, _): &&(String, usize)| {
            let below = |long: &str, short: &str| {
                long.strip_prefix(short)
                    .is_some_and(|rest| rest.starts_with('.'))
            };
            set == key || below(set, key) || below(key, set)
        };
        policy.lines.iter().find(sets).map(|(_, line)| *line)
    };
    let in_policy = check.keys.iter().find_map(|key| line_of(key));
    let (Some(file), Some(key)) = (&policy.file, check.keys.first()) else {
        return Place {
            file: policy_file::shown(rules),
            line: Some(check.line),
            inherited: None,
        };
    };
    let inherited = match policy.preset {
        _ if in_policy.is_some() => None,
        Some(preset) => Some(format!("{key} comes from the preset {preset}")),
        None => Some(format!("{key} has its default")),
    };
    Place {
        file: file.clone(),
        line: in_policy.or_else(|| line_of("preset")).or(Some(1)),
        inherited,
    }
}

/// A way to print a gate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Format {
    Github,
    Json,
    Junit,
    Summary,
    Text,
}

impl Format {
    const ALL: [(&'static str, Self); 5] = [
        ("text", Self::Text),
        ("json", Self::Json),
        ("junit", Self::Junit),
        ("github", Self::Github),
        ("summary", Self::Summary),
    ];

    fn print(self, result: &GateResult) -> Result<String> {
        Ok(match self {
            Self::Github => result.to_annotations(),
            Self::Json => format!("{}\n", result.to_json()?),
            Self::Junit => result.to_junit()?,
            Self::Summary => result.to_summary(),
            Self::Text => result.to_text(),
        })
    }
}

/// The formats asked for, each with its file; at most one is for stdout, text where none is.
fn outputs(written: &[String]) -> Result<Vec<(Format, Option<PathBuf>)>> {
    let mut outputs: Vec<(Format, Option<PathBuf>)> = Vec::new();
    for text in written {
        let (name, file) = match text.split_once('=') {
            Some((_, "")) => bail!("--format {text}: expected a file after ="),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (text.as_str(), None),
        };
        let names = Format::ALL.map(|(name, _)| name);
        let Some((_, format)) = Format::ALL.into_iter().find(|(known, _)| *known == name) else {
            let hint = nearest(name, names)
                .map_or_else(String::new, |near| format!(", did you mean {near}?"));
            bail!(
                "--format {name}: expected one of {}{hint}",
                names.join(", ")
            );
        };
        if file.is_none() && outputs.iter().any(|(_, file)| file.is_none()) {
            bail!("--format {text}: stdout has its format already; write {name}=FILE");
        }
        if file.is_some() && outputs.iter().any(|(_, other)| *other == file) {
            bail!("--format {text}: the file has its format already");
        }
        outputs.push((format, file));
    }
    if !outputs.iter().any(|(_, file)| file.is_none()) {
        outputs.push((Format::Text, None));
    }
    Ok(outputs)
}

fn write(result: &GateResult, outputs: &[(Format, Option<PathBuf>)]) -> Result<()> {
    // files first: a reader of stdout that goes away must not cost them
    for (format, file) in outputs {
        if let Some(file) = file {
            let text = format.print(result).context("cannot print the gate")?;
            output::write_file(file, text.as_bytes())?;
        }
    }
    for (format, file) in outputs {
        if file.is_none() {
            output::print(&format.print(result)?)?;
        }
    }
    Ok(())
}
