//! Arguments of `policysim gate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::DataArgs;

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  policysim gate telemetry --policy policy.toml --rules gate.toml
  policysim gate telemetry --policy policy.toml --rules gate.toml --format junit=gate.xml
  policysim gate telemetry --policy policy.toml --rules gate.toml --baseline before --explain
  policysim gate sweep-results --policy policy.toml --rules gate.toml
  policysim gate init telemetry --policy policy.toml > rules.toml

DATASET may be the folder that `sweep --out` wrote, whose cell that equals the policy is held to the rules, or a file
of `gate summarise`; a rule that they cannot answer has no data.
Verdicts: pass, fail, inconclusive (the data decide neither way), no_data (nothing to look at).
Exit codes: 0 every check passes, 1 one fails, 3 none fails and one is inconclusive or has no data,
2 usage, input or I/O error. Nothing that could not run is a pass."
)]
pub(crate) struct GateArgs {
    #[command(subcommand)]
    pub(super) command: Option<GateCommand>,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// The policy: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY", required = true)]
    pub(super) policy: Option<String>,
    /// The rules document; `gate init` writes one, `gate schema` prints what may stand in it
    #[arg(long, value_name = "FILE", required = true)]
    pub(super) rules: Option<PathBuf>,
    /// Telemetry of before, for rules on drift and on changes; a result set or a summary as well
    #[arg(long, value_name = "DATASET")]
    pub(super) baseline: Option<PathBuf>,
    /// What inconclusive checks count as, where neither rule nor document says
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub(super) inconclusive: Option<Counts>,
    /// Tell how often each rate check is wrong at this number of runs, and what it would take
    #[arg(long)]
    pub(super) explain: bool,
    /// How to print: text, json, junit, github (annotations) or summary (Markdown); FORMAT=FILE writes to a
    /// file instead of stdout; repeatable [default: text]
    #[arg(long = "format", value_name = "FORMAT[=FILE]")]
    pub(super) formats: Vec<String>,
}

/// What an inconclusive check may count as.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Counts {
    /// A pass; a check without data stays what it is
    Pass,
    /// A failure; so does a check without data
    Fail,
}

#[derive(Debug, Subcommand)]
pub(super) enum GateCommand {
    /// Write a commented rules document for a policy and its telemetry
    #[command(after_help = "\
Examples:
  policysim gate init telemetry --policy policy.toml
  policysim gate init telemetry --policy policy.toml > rules.toml

Rules that the telemetry decides stand as rules, those that it cannot decide yet as comments.")]
    Init(Box<InitArgs>),
    /// Write what a gate is decided on without events, for places that must not hold logs
    #[command(after_help = "\
Example:
  policysim gate summarise telemetry --policy policy.toml --out telemetry.summary

It answers the policy with windows from 30 s up, and any budgets and caps, without logs or events; a policy with an
adaptive or a spare window, which only replays answer, as it is. Runs are read one after the other. Waits, readings of
the idle clock and simulated parents are not in it: rules on those have no data.")]
    Summarise(Box<SummaryArgs>),
    /// Print the JSON schema of rules documents
    #[command(after_help = "Example: policysim gate schema > gate-rules.schema.json")]
    Schema,
}

#[derive(Args, Debug)]
pub(super) struct InitArgs {
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// The policy: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY")]
    pub(super) policy: String,
    /// Write into this file instead of stdout; it must not exist
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct SummaryArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The policy: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: String,
    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
}
