//! `policysim report`: the sizing section of an ADR.

mod args;
mod explore;
mod gather;
mod question;
mod template;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use policysim_report::html;
use policysim_report::sizing::explorer::Explorer;
use policysim_report::sizing::facts::SweepFacts;
use policysim_report::sizing::{CHARTS, Named, Report};

use crate::args::GlobalArgs;
use crate::exit::ExitStatus;
use crate::output::{self, FileSet, say};
use crate::{data, policy_file};

pub(crate) use args::ReportArgs;

/// Makes the report and writes its files, each whole or not at all.
pub(super) fn run(args: &ReportArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let candidate = policy_file::load_and_tell(&args.policy, global)?;
    let current = match &args.current {
        Some(name) => Some(policy_file::load_and_tell(name, global)?),
        None => None,
    };
    let template = match &args.template {
        Some(path) => Some((path, template::read(path)?)),
        None => None,
    };
    // Before the work, so that a place that cannot be written costs none of it.
    output::check_folder(&args.out, &["charts"])?;
    let named = |loaded: policy_file::Loaded| Named {
        name: loaded.name,
        policy: loaded.policy,
    };
    let report = if let Some(folder) = result_set(args) {
        of_result_set(args, global, folder, named(candidate))?
    } else {
        let question = question::sweep_args(args, &candidate.policy)?;
        gather::report(
            args,
            global,
            &question,
            named(candidate),
            current.map(named),
        )?
    };
    let report = Arc::new(report);
    let markdown = match template {
        Some((path, source)) => template::render(source, &report)
            .with_context(|| format!("template {}", path.display()))?,
        None => report.to_markdown()?,
    };
    write(&report, markdown, &args.out)?;
    say(
        global.quiet,
        &format!(
            "wrote report.md, report.html, report.json and charts into {}",
            args.out.display()
        ),
    );
    output::print(&format!("{}\n", report.facts.sweep.reason))?;
    Ok(ExitStatus::Success)
}

/// The folder of a result set, where that is what the arguments name.
fn result_set(args: &ReportArgs) -> Option<&Path> {
    match args.data.data.as_slice() {
        [one] if one.join("sweep.json").is_file() && !one.join("manifest.json").exists() => {
            Some(one)
        }
        _ => None,
    }
}

fn of_result_set(
    args: &ReportArgs,
    global: &GlobalArgs,
    folder: &Path,
    candidate: Named,
) -> Result<Report> {
    if let Some(option) = question::asks_for_runs(args) {
        bail!(
            "{option} needs the runs: {} is the result of a sweep; give the dataset it was made of",
            folder.display()
        );
    }
    let path = folder.join("sweep.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let facts = SweepFacts::parse(&text).with_context(|| path.display().to_string())?;
    let candidate_cell = question::cell_of(&facts.sweep, &candidate.policy);
    Ok(Report {
        explorer: Explorer::of_sweep(&facts.sweep),
        title: title(args, &candidate.name, facts.sweep.task_wait_ms),
        adr: args.adr.clone(),
        origin: question::origin(args, global, None, None),
        candidate,
        current: None,
        facts,
        wider: None,
        candidate_in_map: candidate_cell,
        candidate_cell,
        runs: None,
    })
}

fn title(args: &ReportArgs, candidate: &str, task_wait_ms: u64) -> String {
    args.title.clone().unwrap_or_else(|| {
        format!(
            "which idle window for {candidate}, given a TaskWait of {}?",
            policysim_policy::duration::show(policysim_policy::Millis::new(task_wait_ms))
        )
    })
}

/// Writes the report into a folder, all of it or nothing; charts of an earlier one that this one has not go.
fn write(report: &Report, markdown: String, folder: &Path) -> Result<()> {
    let mut set = FileSet::default();
    let charts = report.charts();
    for chart in &charts {
        set.add(format!("charts/{}.svg", chart.name), chart.canvas.to_svg()?);
        set.add(format!("charts/{}.png", chart.name), chart.canvas.to_png()?);
    }
    for name in CHARTS {
        if charts.iter().all(|chart| chart.name != name) {
            set.outdate(format!("charts/{name}.svg"));
            set.outdate(format!("charts/{name}.png"));
        }
    }
    set.add("report.md", markdown);
    set.add("report.html", html::page(report)?);
    set.add("report.json", format!("{}\n", report.to_json()?));
    set.write(folder)
}

/// Loads what the arguments name, which must be runs.
fn runs(args: &ReportArgs, global: &GlobalArgs) -> Result<data::Loaded> {
    let loaded = data::load(&args.data, global)?;
    if loaded.samples_only {
        bail!(
            "{} holds samples without their order, and a report replays runs: give logs or events, or describe the samples with `policysim gaps`",
            loaded.header.name
        );
    }
    if loaded.header.runs == 0 {
        bail!("{} holds no run to report on", loaded.header.name);
    }
    Ok(loaded)
}
