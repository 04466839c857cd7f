//! `policysim completions` and `policysim man`: made from the argument structures.

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::ExitStatus;
use crate::output;

/// Prints the completion script of `shell`.
pub(super) fn completions(shell: clap_complete::Shell) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "policysim", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Success)
}

/// Prints the manual page: the program, then every command and its subcommands with their options.
pub(super) fn man() -> Result<ExitStatus> {
    let mut page = Vec::new();
    let mut program = Cli::command();
    program.build();
    render(&program, &mut page)?;
    output::print(&String::from_utf8_lossy(&page))?;
    Ok(ExitStatus::Success)
}

/// A command's page, then those of its subcommands; `help` needs none.
fn render(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    clap_mangen::Man::new(command.clone())
        .render(page)
        .context("cannot render the manual page")?;
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() && subcommand.get_name() != "help" {
            render(subcommand, page)?;
        }
    }
    Ok(())
}
