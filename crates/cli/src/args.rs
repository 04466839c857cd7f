//! The command line: argument structures and value parsers, nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use policysim_report::form::{Form, Layout};
use policysim_sim::cluster::Cluster;

use crate::commands::gate::GateArgs;
use crate::commands::policy::PolicyArgs;
use crate::commands::report::ReportArgs;
use crate::commands::settle::args::SettleArgs;
use crate::commands::synth::args::SynthArgs;
use crate::commands::watch::args::WatchArgs;

/// Size the timeouts that decide whether an LLM agent lives or dies.
///
/// policysim replays recorded telemetry against the watchdog core that a harness embeds, and tells what
/// candidate idle windows, total budgets and turn caps would have done: healthy runs killed, hangs
/// detected, time lost.
#[derive(Debug, Parser)]
#[command(
    name = "policysim",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = "\
Examples:
  policysim sweep                       what the embedded demo says about idle windows
  policysim gaps local                  how long the agents on this machine are silent
  policysim sweep local --idle 60s..900s/60s --max-false-kill 1%

Exit codes: 0 done, 1 a finding, 2 usage, input or I/O error, 3 inconclusive, 101 bug.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct GlobalArgs {
    /// Say nothing on stderr but errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Threads to use; the output is the same for any number [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of everything that is drawn
    #[arg(long, global = true, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read session logs or tables and write a dataset
    Import(ImportArgs),
    /// How long agents are silent: gap percentiles per wait kind and for the idle clock
    Gaps(GapsArgs),
    /// Hold a policy and a window of telemetry to rules, for CI
    Gate(Box<GateArgs>),
    /// Explain what one policy does to one run
    Replay(ReplayArgs),
    /// Compare candidate windows, budgets and caps over all runs
    Sweep(Box<SweepArgs>),
    /// Write the sizing section of an ADR: text, page, charts and numbers
    Report(Box<ReportArgs>),
    /// Simulate parents that wait for delegates: when does a hang settle?
    Settle(Box<SettleArgs>),
    /// List, show, check and prove policies
    Policy(PolicyArgs),
    /// Draw synthetic runs from a model
    Synth(SynthArgs),
    /// Run a command under a policy, and record what is seen of it
    Watch(Box<WatchArgs>),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  policysim completions bash > ~/.local/share/bash-completion/completions/policysim"
    )]
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(after_help = "Example:\n  policysim man | man -l -")]
    Man,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table for reading
    #[default]
    Table,
    /// JSON with a `schema_version`
    Json,
    /// Comma-separated values
    Csv,
    /// A Markdown table
    Markdown,
}

impl From<OutputFormat> for Form {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Table => Self::Text(Layout::Terminal),
            OutputFormat::Markdown => Self::Text(Layout::Markdown),
            OutputFormat::Csv => Self::Csv,
            OutputFormat::Json => Self::Json,
        }
    }
}

/// How a replay is printed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// The transcript for reading
    #[default]
    Table,
    /// JSON with a `schema_version`
    Json,
}

/// Where runs come from, and how they are read when they are logs.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataArgs {
    /// A dataset, log files, folders of logs, tables, or the word `local` [default: the embedded demo]
    #[arg(value_name = "DATASET")]
    pub(crate) data: Vec<PathBuf>,
    /// Read every file as this format instead of recognising it
    /// (claude, codex, copilot, gemini, opencode, pi, events, samples, policysim)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_format: Option<String>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// How logs and tables are read.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReadArgs {
    /// Take only runs that start at or after this day or instant
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Take only runs that start before this day or instant
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
    /// Instant up to which the logs are known to be complete: open waits are censored there
    #[arg(long, value_name = "INSTANT")]
    pub(crate) observed_until: Option<String>,
    /// Replace the names of sources by hashes
    #[arg(long)]
    pub(crate) hash_sources: bool,
    /// Count a record that stands in several files once, in the file first in path order
    #[arg(long)]
    pub(crate) dedupe: bool,
    /// Fail on the first file in which nothing is recognised, and on malformed lines
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim import ~/.claude/projects --out telemetry
  policysim import logs/ extra.jsonl.zst --out telemetry --since 2026-06-01 --until 2026-07-01

Recognised by content: Claude Code, Codex, Copilot CLI, Gemini CLI, OpenCode, Pi, and the tables
events.csv|jsonl|parquet and samples.csv|jsonl|parquet; .gz and .zst are read directly.
Only timing, kinds, tool, model and role names and outcome classes are kept.")]
pub(crate) struct ImportArgs {
    /// Log files, folders of logs, tables, or the word `local`
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Directory of the dataset to write; it must not exist, or hold a dataset to replace
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Read every file as this format instead of recognising it
    /// (claude, codex, copilot, gemini, opencode, pi, events, samples, policysim)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// What figures are grouped by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum By {
    Source,
    Harness,
    Model,
    Role,
    Tool,
}

/// What the runs of a sweep are grouped by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum SweepBy {
    Source,
    Harness,
    Model,
    Role,
}

/// What is taken as independent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum ClusterBy {
    /// Runs, unless kills are seen to come together on calendar days
    #[default]
    Day,
    /// Runs, whatever comes together
    Run,
    /// Runs, unless kills are seen to come together in sessions
    Session,
}

impl From<ClusterBy> for Cluster {
    fn from(by: ClusterBy) -> Self {
        match by {
            ClusterBy::Day => Self::Day,
            ClusterBy::Run => Self::Run,
            ClusterBy::Session => Self::Session,
        }
    }
}

/// Flagged samples that can be put back into sizing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum With {
    /// Tool waits that may hold an approval
    Approvals,
    /// Waits that may hold a host suspend
    Suspends,
    /// Waits for a usage limit
    RateLimits,
    /// Waits that undated records lie in
    Undated,
    /// All of them
    All,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim gaps local
  policysim gaps telemetry --by model
  policysim gaps telemetry --policy pi-desktop-0119 --format json
  policysim gaps telemetry --recorded-idle 600s --tail
  policysim gaps telemetry --plot gaps.svg
  policysim gaps telemetry --plot - --idle 60s..600s/60s
  policysim gaps local --against telemetry")]
pub(crate) struct GapsArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Group the figures
    #[arg(long, value_enum, value_name = "KEY")]
    pub(crate) by: Option<By>,
    /// Policy whose idle clock is read: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY", default_value = "pi-desktop-0129")]
    pub(crate) policy: String,
    /// Put flagged samples back into sizing
    #[arg(long = "with", value_enum, value_name = "FLAG", value_delimiter = ',')]
    pub(crate) with: Vec<With>,
    /// Idle limit under which the data were recorded [default: found from recorded kills]
    #[arg(long, value_name = "DURATION")]
    pub(crate) recorded_idle: Option<String>,
    /// Extrapolate p99.9 and p99.99 beyond the data, or say why not
    #[arg(long)]
    pub(crate) tail: bool,
    /// Compare with this dataset, the baseline: have silences moved?
    #[arg(long, value_name = "DATASET", conflicts_with = "by")]
    pub(crate) against: Option<PathBuf>,
    /// Give quantiles by type 7 as well (spreadsheets, numpy), to compare tools; all else is type 1
    #[arg(long)]
    pub(crate) also_type7: bool,
    /// Show every interval: with sessions as units, independent, log-log Greenwood
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Also draw the survival curve into this .svg or .png file, or as text with -; a terminal gets the text by itself
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "against"])]
    pub(crate) plot: Option<PathBuf>,
    /// Candidate windows to mark on that curve beside the policy's own
    #[arg(long, value_name = "GRID", conflicts_with_all = ["by", "against"])]
    pub(crate) idle: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim replay --run adr-0129/delegates#37 --policy pi-desktop-0119
  policysim replay telemetry --run project/session.jsonl#3 --policy policy.toml")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The run, SOURCE#N as `sweep --list-kills` prints it; a unique part of the name is enough
    #[arg(long, value_name = "RUN")]
    pub(crate) run: String,
    /// The policy: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY", default_value = "pi-desktop-0129")]
    pub(crate) policy: String,
    /// Settings on top of the policy, KEY=VALUE
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReplayFormat,
}

/// On what terms cells are judged: what is asked of them, and what is taken for granted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Terms {
    /// Length of the parent's TaskWait [default: the policy's]
    #[arg(long, value_name = "DURATION")]
    pub(crate) task_wait: Option<String>,
    /// Largest acceptable share of healthy runs killed, at 95 % confidence [default: 1%]
    #[arg(long, value_name = "RATE")]
    pub(crate) max_false_kill: Option<String>,
    /// What is taken as independent when a rate is limited
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    pub(crate) cluster: ClusterBy,
    /// Accept only windows below TaskWait, so that a hang can settle inside one wait
    #[arg(long)]
    pub(crate) settle_within_wait: bool,
    /// Idle limit under which the runs were recorded, where their kills do not show it: nothing is known beyond it
    #[arg(long, value_name = "DURATION")]
    pub(crate) recorded_idle: Option<String>,
    /// Share of runs that hang [default: a range from the runs labelled as hung]
    #[arg(long, value_name = "RATE")]
    pub(crate) hang_rate: Option<String>,
    /// What a restart costs beyond the work lost [default: nothing]
    #[arg(long, value_name = "DURATION")]
    pub(crate) restart_cost: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim sweep
  policysim sweep telemetry --base pi-desktop-0129 --idle 60s..900s/30s --max-false-kill 0.1%
  policysim sweep telemetry --idle 300s,600s --total 1h,6h,off --turns 40,60,off --by model
  policysim sweep telemetry --axis idle.first=60s,180s --axis pause.tool=idle,none --out sweep
  policysim sweep telemetry --idle 60s,300s --list-kills 1
  policysim sweep waits.csv --idle 60s..600s/60s --settle
  policysim sweep telemetry --idle 60s..600s/60s --plot front.png
  policysim sweep telemetry --hang-rate 0.5% --restart-cost 30s --recorded-idle 600s

Grids are FIRST..LAST/STEP with both ends, lists are A,B,off.")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Policy that every candidate starts from: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY", default_value = "pi-desktop-0129")]
    pub(crate) base: String,
    /// Idle windows [default without any axis: 60s..600s/60s]
    #[arg(long, value_name = "GRID")]
    pub(crate) idle: Option<String>,
    /// Max-total budgets
    #[arg(long, value_name = "GRID")]
    pub(crate) total: Option<String>,
    /// Turn caps, for every role
    #[arg(long, value_name = "GRID")]
    pub(crate) turns: Option<String>,
    /// Sets of event kinds that re-arm the idle clock, separated by commas
    #[arg(long, value_name = "SETS")]
    pub(crate) rearm: Option<String>,
    /// Any other policy key and its values
    #[arg(long, value_name = "KEY=GRID")]
    pub(crate) axis: Vec<String>,
    /// Show strata of the recommended cell by this key
    #[arg(long, value_enum, value_name = "KEY")]
    pub(crate) by: Option<SweepBy>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Also simulate parents that wait, for every cell: columns beside the closed form (`settle` says more)
    #[arg(long)]
    pub(crate) settle: bool,
    /// Name the runs that a cell kills: its number, or its settings as the JSON output labels them
    #[arg(long, value_name = "CELL")]
    pub(crate) list_kills: Option<String>,
    /// Also replay this many pairs of a run and a cell, drawn by the seed, and stop if one differs from the sweep
    #[arg(long, value_name = "N")]
    pub(crate) verify: Option<u32>,
    /// Also write sweep.json, cells.csv, cells.parquet and the chart front.svg into this directory
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Also draw false kills against detection time into this .svg or .png file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}
