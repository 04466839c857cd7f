//! `policysim`: size the timeouts that decide whether an LLM agent lives or dies.

mod args;
mod commands;
mod conform;
mod data;
mod exit;
mod given;
mod output;
mod policy_file;
mod progress;
mod rules_file;
mod summary_file;

use std::ffi::OsString;

use clap::Parser;

use crate::args::Cli;
use crate::commands::watch::WATCH_FAILED;
use crate::exit::ExitStatus;

fn main() -> ExitStatus {
    // What a library panics of in a damaged file is told as the error that it becomes.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !policysim_telemetry::is_guarded() {
            told(info);
        }
    }));
    match Cli::try_parse() {
        Ok(cli) => commands::run(cli).unwrap_or_else(|error| output::failed(&error)),
        Err(error) => match output::unreadable(&error) {
            // A wrapper's own faults must not look like statuses of what it wraps.
            ExitStatus::Error if asks_for_watch(std::env::args_os().skip(1)) => {
                ExitStatus::OfCommand(WATCH_FAILED)
            }
            status => status,
        },
    }
}

/// Whether the command line, which does not read, is one of `watch`.
fn asks_for_watch(mut words: impl Iterator<Item = OsString>) -> bool {
    while let Some(word) = words.next() {
        if word == "--threads" || word == "--seed" {
            words.next();
        } else if !word.to_string_lossy().starts_with('-') {
            return word == "watch";
        }
    }
    false
}
