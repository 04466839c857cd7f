//! `policysim synth`: a model from runs or samples, and runs from a model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use policysim_policy::Millis;
use policysim_report::units::{are, counted, duration, grouped, were};
use policysim_sim::synth::fit::{Fitted, SMALL, fit, fit_samples};
use policysim_sim::synth::{Generator, Model, Options, Sampling};
use policysim_telemetry::{DatasetWriter, Manifest};

use crate::args::GlobalArgs;
use crate::exit::ExitStatus;
use crate::{data, given, output};

pub(crate) mod args;

use args::{SynthArgs, SynthCommand, SynthFitArgs, SynthRunArgs};

/// Runs are made and written this many at a time, so that memory does not grow with their number.
const CHUNK: u64 = 1_000;

/// Draws runs and writes them as a dataset.
pub(super) fn run(args: &SynthArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    match &args.command {
        SynthCommand::Fit(args) => fitted(args, global),
        SynthCommand::Run(args) => draw(args, global.seed),
    }
}

/// The model in a file.
///
/// # Errors
/// One line that names the file, and the place where it does not read.
pub(super) fn load_model(path: &Path) -> Result<Model> {
    let shown = path.display();
    let text = given::read_text(path).with_context(|| format!("cannot read model {shown}"))?;
    toml::from_str(&text).with_context(|| format!("model {shown}"))
}

/// Fits a model and writes it as TOML.
fn fitted(args: &SynthFitArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let loaded = data::load(&args.data, global)?;
    let shown = &loaded.header.name;
    let stem = || shown.split('.').next().unwrap_or_default().to_owned();
    let name = args.name.clone().unwrap_or_else(stem);
    let source = format!(
        "policysim synth fit, dataset {} ({shown})",
        loaded.header.digest
    );
    let context = || format!("cannot fit a model to {shown}");
    let mut notes = Vec::new();
    let model = if loaded.samples_only {
        let samples = fit_samples(&loaded.fleet, &name, &source).with_context(context)?;
        if samples.assumed_turns {
            notes.push("No sample names its run: the numbers of turns are assumed.".to_owned());
        }
        if samples.censored > 0 {
            notes.push(format!(
                "{} cut samples are in no distribution.",
                grouped(samples.censored)
            ));
        }
        samples.fitted
    } else {
        fit(&loaded.fleet, &name, &source).with_context(context)?
    };
    let text = model_text(&model)?;
    output::write_file(&args.out, text.as_bytes())?;
    output::print(&summary(&model, &args.out, text.len(), &notes))?;
    Ok(ExitStatus::Success)
}

/// Whole runs drawn from a model of samples, as many as the samples are worth, and the words that say so; with the limit
/// at which the samples seem to have been cut.
pub(super) fn resampled(
    samples: &data::Loaded,
    global: &GlobalArgs,
) -> Result<(data::Loaded, Option<Millis>)> {
    let shown = &samples.header.name;
    let found = fit_samples(&samples.fleet, "samples", shown)
        .with_context(|| format!("cannot resample runs from {shown}"))?;
    let model = found.fitted.to_model()?;
    let options = Options {
        seed: global.seed,
        runs: found.runs,
        sampling: Sampling::Stratified,
    };
    let fleet = Generator::new(&model, None, options)?.fleet();
    let mut header = samples.header.clone();
    header.runs = found.runs;
    header.caveats = vec![format!(
        "{} without their order: {} {} resampled from their distributions (seed {}), {}. What comes together in real runs, and hangs, are not in them.",
        counted(samples.fleet.runs.len() as u64, "sample"),
        counted(found.runs, "run"),
        are(found.runs),
        global.seed,
        if found.assumed_turns {
            "as many as the waits make with assumed numbers of turns"
        } else {
            "as many as the samples name"
        },
    )];
    if found.censored > 0 {
        header.caveats.push(format!(
            "{} {} cut, and stand in no distribution: {}.",
            counted(found.censored, "sample"),
            were(found.censored),
            match found.limit_ms {
                Some(ms) => format!("most of them at {}, which is taken as the limit in force at recording, beyond which nothing is known", duration(ms)),
                None => "long waits are missing, so that rates of false kills are too low".to_owned(),
            }
        ));
    }
    output::say(
        global.quiet,
        &format!(
            "{shown} holds samples: {} {} resampled from them",
            counted(found.runs, "run"),
            are(found.runs)
        ),
    );
    let loaded = data::Loaded {
        fleet,
        header,
        samples_only: false,
    };
    Ok((loaded, found.limit_ms.map(Millis::new)))
}

/// A fitted model as TOML, with where it comes from on its first lines.
fn model_text(model: &Fitted) -> Result<String> {
    let body = toml::to_string(model).context("cannot write the model as TOML")?;
    Ok(format!(
        "# Fitted by policysim {}: quantiles of waits, counts of turns, shares; no run's sequence.\n{body}",
        env!("CARGO_PKG_VERSION")
    ))
}

/// What was fitted, kind by kind.
fn summary(model: &Fitted, out: &Path, bytes: usize, notes: &[String]) -> String {
    let mut text = format!(
        "model {} ({} bytes) of {} in {}\n",
        out.display(),
        grouped(bytes as u64),
        counted(model.runs(), "run"),
        counted(model.sessions(), "session"),
    );
    for wait in model.waits() {
        let small = if wait.n < SMALL {
            format!("  fewer than {}", counted(SMALL, "sample"))
        } else {
            String::new()
        };
        text.push_str(&format!(
            "{}  {}  n {}{small}\n",
            wait.population,
            wait.kind.name(),
            grouped(wait.n)
        ));
    }
    for note in notes {
        text.push_str(note);
        text.push('\n');
    }
    text
}

fn draw(args: &SynthRunArgs, seed: u64) -> Result<ExitStatus> {
    let model = load_model(&args.model)?;
    let runs = u64::from(args.runs);
    let options = Options {
        seed,
        runs,
        sampling: if args.strata {
            Sampling::Stratified
        } else {
            Sampling::Independent
        },
    };
    let generator = Generator::new(&model, args.population.as_deref(), options)?;
    // what is written until then goes with the writer
    let cancel = data::on_interrupt()?;
    let mut writer = DatasetWriter::in_folder(&args.out)?;
    let mut next = 0;
    while next < runs {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let end = runs.min(next + CHUNK);
        for run in generator.runs(next..end) {
            writer.push(&run, generator.symbols())?;
        }
        next = end;
    }
    data::interrupts_end(&cancel)?;
    let mut caveats = vec![format!(
        "Synthetic runs of the model {}: {}",
        model.name(),
        model.about()
    )];
    caveats.extend(
        generator
            .populations()
            .flat_map(|one| one.caveats().iter().cloned()),
    );
    let population = args.population.as_deref();
    let population = population.map_or_else(String::new, |name| format!(" --population {name}"));
    let strata = if args.strata { " --strata" } else { "" };
    let origin = [
        (
            "command",
            format!("synth run{population} --runs {runs} --seed {seed}{strata}"),
        ),
        ("model", model.name().to_owned()),
        ("model_source", model.source().to_owned()),
        ("caveats", caveats.join("\n")),
    ];
    let manifest = Manifest {
        origin: origin
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<BTreeMap<_, _>>(),
        ..Manifest::default()
    };
    let dataset = writer.finish(manifest)?;
    let totals = &dataset.manifest().totals;
    output::print(&format!(
        "{}, {} of {} with seed {seed}: dataset {}\n",
        counted(totals.n_runs_selected, "run"),
        counted(totals.n_events, "event"),
        model.name(),
        dataset.manifest().digest,
    ))?;
    Ok(ExitStatus::Success)
}
