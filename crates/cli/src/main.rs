//! `policysim`: size the timeouts that decide whether an LLM agent lives or dies.

mod args;
mod commands;
mod conform;
mod data;
mod exit;
mod output;
mod policy_file;
mod progress;
mod rules_file;

use clap::Parser;

use crate::args::Cli;
use crate::exit::ExitStatus;

fn main() -> ExitStatus {
    match Cli::try_parse() {
        Ok(cli) => commands::run(cli).unwrap_or_else(|error| output::failed(&error)),
        Err(error) => output::unreadable(&error),
    }
}
