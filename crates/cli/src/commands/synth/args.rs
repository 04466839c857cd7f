//! The arguments of `policysim synth`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::DataArgs;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim synth fit telemetry -o model.toml
  policysim synth run data/models/adr-0129.toml --runs 8000 --seed 0 --strata --out demo")]
pub(crate) struct SynthArgs {
    #[command(subcommand)]
    pub(crate) command: SynthCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SynthCommand {
    /// Fit a model to recorded runs, or to samples
    #[command(after_help = "\
Examples:
  policysim synth fit telemetry -o model.toml
  policysim synth fit waits.csv -o model.toml --name waits

A model holds distributions: quantiles of waits, counts of turns, shares. No run's sequence is in it.")]
    Fit(SynthFitArgs),
    /// Draw runs from a model and write a dataset
    #[command(after_help = "\
Examples:
  policysim synth run data/models/adr-0129.toml --runs 8000 --seed 0 --strata --out demo
  policysim synth run model.toml --runs 500 --out drawn

Same model, runs, seed and version: same bytes, whatever --threads.")]
    Run(SynthRunArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SynthFitArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// File of the model to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Name of the model; its runs are called NAME/POPULATION#N [default: the dataset's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SynthRunArgs {
    /// The model file
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// How many runs to draw, at most 20 million
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000_000))]
    pub(crate) runs: u32,
    /// Which of the model's populations to draw from, where it holds several and does not mix them
    #[arg(long, value_name = "NAME")]
    pub(crate) population: Option<String>,
    /// Spread the draws of each distribution evenly over the fleet, so that its quantiles are the
    /// model's; the number of runs then decides what each of them is. Without it adding runs changes
    /// none of those before
    #[arg(long)]
    pub(crate) strata: bool,
    /// Directory of the dataset to write
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
