//! `policysim synth run`: runs from a model.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use policysim_report::units::grouped;
use policysim_sim::synth::{Generator, Model, Options, Sampling};
use policysim_telemetry::{DatasetWriter, Manifest};

use crate::args::{GlobalArgs, SynthArgs, SynthCommand, SynthRunArgs};
use crate::exit::ExitStatus;
use crate::output;

/// Runs are made and written this many at a time, so that memory does not grow with their number.
const CHUNK: u64 = 1_000;

/// Draws runs and writes them as a dataset.
pub(super) fn run(args: &SynthArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    match &args.command {
        SynthCommand::Run(args) => draw(args, global.seed),
    }
}

/// The model in a file.
///
/// # Errors
/// One line that names the file, and the place where it does not read.
pub(super) fn load_model(path: &Path) -> Result<Model> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read model {shown}"))?;
    toml::from_str(&text).with_context(|| format!("model {shown}"))
}

fn draw(args: &SynthRunArgs, seed: u64) -> Result<ExitStatus> {
    let model = load_model(&args.model)?;
    let runs = u64::from(args.runs);
    let options = Options {
        seed,
        runs,
        sampling: Sampling::Stratified,
    };
    let generator = Generator::new(&model, args.population.as_deref(), options)?;
    let mut writer = DatasetWriter::in_folder(&args.out)?;
    let mut next = 0;
    while next < runs {
        let end = runs.min(next + CHUNK);
        for run in generator.runs(next..end) {
            writer.push(&run, generator.symbols())?;
        }
        next = end;
    }
    let mut caveats = vec![format!(
        "Synthetic runs of the model {}: {}",
        model.name(),
        model.about()
    )];
    caveats.extend(generator.population().caveats().iter().cloned());
    let origin = [
        ("command", format!("synth run --runs {runs} --seed {seed}")),
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
        "{} runs, {} events of {} with seed {seed}: dataset {}\n",
        grouped(totals.n_runs_selected),
        grouped(totals.n_events),
        model.name(),
        dataset.manifest().digest,
    ))?;
    Ok(ExitStatus::Success)
}
