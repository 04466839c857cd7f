//! One file per command; here they are told apart.

mod gaps;
pub(crate) mod gate;
mod generate;
mod import;
mod plot;
pub(crate) mod policy;
mod replay;
pub(crate) mod report;
pub(crate) mod settle;
pub(crate) mod sweep;
pub(crate) mod synth;
pub(crate) mod watch;

use anyhow::{Context, Result};

use crate::args::{Cli, Command, GlobalArgs};
use crate::exit::ExitStatus;

/// Runs the command that was asked for.
///
/// # Errors
/// Whatever the command failed on; one line when printed.
pub(crate) fn run(cli: Cli) -> Result<ExitStatus> {
    let global = &cli.global;
    set_threads(global)?;
    match cli.command {
        Command::Import(args) => import::run(&args, global),
        Command::Gaps(args) => gaps::run(&args, global),
        Command::Gate(args) => gate::run(&args, global),
        Command::Replay(args) => replay::run(&args, global),
        Command::Report(args) => report::run(&args, global),
        Command::Settle(args) => settle::run(&args, global),
        Command::Sweep(args) => sweep::run(&args, global),
        Command::Policy(args) => policy::run(&args, global),
        Command::Synth(args) => synth::run(&args, global),
        Command::Watch(args) => Ok(watch::run(&args, global)),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man => generate::man(),
    }
}

fn set_threads(global: &GlobalArgs) -> Result<()> {
    let threads = global.threads.map_or(0, usize::from);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .context("cannot start the threads asked for with --threads")
}
