//! `policysim import`: logs and tables into a dataset.

use anyhow::Result;
use policysim_report::units::{counted, grouped};
use policysim_telemetry::{Arguments, Dataset, Inputs, SourceStatus, import_to_dataset};

use crate::args::{GlobalArgs, ImportArgs};
use crate::data;
use crate::exit::ExitStatus;
use crate::output::{self, say};
use crate::progress::Bar;

/// Imports and prints what became of every line.
pub(super) fn run(args: &ImportArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    data::refuse_results(&args.paths)?;
    let cancel = data::on_interrupt()?;
    let bar = Bar::new(global.quiet, 0, "reading");
    let inputs = match Arguments::tell(&args.paths)? {
        Arguments::Logs(inputs) => inputs,
        Arguments::Dataset(path) => Inputs::Paths(vec![path]),
    };
    data::say_local(&inputs, global);
    let request = data::request(args.format.as_deref(), &args.read, inputs)?;
    let dataset = import_to_dataset(&request, &args.out, &bar, &cancel);
    bar.done();
    let dataset = dataset?;
    data::say_warnings(dataset.manifest(), usize::MAX, global);
    let malformed = dataset.manifest().totals.lines.malformed;
    if malformed > 0 {
        say(
            global.quiet,
            &format!(
                "warning: lines that could not be read: {}, listed in quarantine.csv",
                grouped(malformed)
            ),
        );
    }
    output::print(&summary(&dataset))?;
    Ok(ExitStatus::Success)
}

/// One line per format, and the sums.
fn summary(dataset: &Dataset) -> String {
    let manifest = dataset.manifest();
    let mut formats: Vec<&str> = manifest
        .sources
        .iter()
        .map(|source| source.format.as_deref().unwrap_or("unrecognised"))
        .collect();
    formats.sort_unstable();
    formats.dedup();
    let mut text = String::new();
    for format in formats {
        let of_format = || {
            manifest
                .sources
                .iter()
                .filter(move |source| source.format.as_deref().unwrap_or("unrecognised") == format)
        };
        let lines = |pick: fn(&policysim_telemetry::Lines) -> u64| {
            grouped(of_format().map(|source| pick(&source.lines)).sum())
        };
        text.push_str(&format!(
            "{format}: {}, {}; {} lines = {} imported + {} ignored + {} duplicate + {} unrecognised + {} malformed + {} undated\n",
            counted(of_format().count() as u64, "source"),
            counted(of_format().map(|source| source.count("n_runs")).sum(), "run"),
            lines(policysim_telemetry::Lines::total),
            lines(|lines| lines.imported),
            lines(|lines| lines.ignored),
            lines(|lines| lines.duplicate),
            lines(|lines| lines.unrecognised),
            lines(|lines| lines.malformed),
            lines(|lines| lines.undated),
        ));
    }
    for source in &manifest.sources {
        if matches!(
            source.status,
            SourceStatus::Unrecognised | SourceStatus::Unreadable
        ) {
            text.push_str(&format!(
                "{}: {}, {}\n",
                policysim_report::table::one_line(&source.source),
                counted(source.lines.total(), "line"),
                source.found.as_deref().unwrap_or("nothing recognised"),
            ));
        }
    }
    let totals = &manifest.totals;
    if totals.n_runs_selected != totals.n_runs {
        text.push_str(&format!(
            "{} of {} start in the span asked for\n",
            grouped(totals.n_runs_selected),
            counted(totals.n_runs, "run")
        ));
    }
    text.push_str(&format!(
        "dataset {}: {}, {}, {}; {} linked to the run that delegated them\n",
        manifest.digest,
        counted(totals.n_runs_selected, "run"),
        counted(totals.n_events, "event"),
        counted(totals.n_samples, "sample"),
        counted(totals.n_linked, "run"),
    ));
    text
}
