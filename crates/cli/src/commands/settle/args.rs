//! The arguments of `policysim settle`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::{DataArgs, OutputFormat};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim settle
  policysim settle --policy pi-desktop-0119,pi-desktop-0129 --on-expiry wait-again,read-as-failure
  policysim settle telemetry --policy policy.toml --wait 60s..900s/60s
  policysim settle --idle 60s..600s/60s --mode any --think 2m --format markdown
  policysim settle --model data/models/adr-0129.toml --parents 2000 --hang-rate 2%

Parents spawn their tasks, work, call TaskWait, and react when it expires; every delegate runs under
the real watchdog. Waits are held to 1 s … 900 s, as the contract says.")]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Policies of the delegates, separated by commas: presets, TOML files, or DIALECT:FILE
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "pi-desktop-0129"
    )]
    pub(crate) policy: Vec<String>,
    /// Idle windows in place of the policies' own
    #[arg(long, value_name = "GRID")]
    pub(crate) idle: Option<String>,
    /// Lengths of the parents' waits [default: the policy's `task_wait.timeout`]
    #[arg(long, value_name = "GRID")]
    pub(crate) wait: Option<String>,
    /// What an expiry makes a parent do, one or several [default: as the policy's `task_wait.on_expiry` reads it]
    #[arg(long, value_enum, value_name = "REACTION", value_delimiter = ',')]
    pub(crate) on_expiry: Vec<ReactionArg>,
    /// With --on-expiry judge: expiries in a row without a change of the heartbeat until a delegate is stopped
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) unchanged: u32,
    /// Whether a wait is for all delegates or for some [default: the policy's `task_wait.mode`]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// With --mode any: how many delegates must settle
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) min_completed: u32,
    /// Tasks of one parent, each delegated as one run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) tasks: u32,
    /// Parents [default: as many as the runs make; 1000 with --model]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) parents: Option<u32>,
    /// Delegates of one parent that may run at once; a further one is refused and tried again
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) cap: u32,
    /// Time from one spawn to the next
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub(crate) spawn_every: String,
    /// Mean time a parent works before it waits and between waits (uniform from none to twice this)
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub(crate) think: String,
    /// What a killed delegate takes to unwind, beyond the policy's kill delay (and grace, where it hangs)
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub(crate) unwinding: String,
    /// How long each parent is observed
    #[arg(long, value_name = "DURATION", default_value = "48h")]
    pub(crate) horizon: String,
    /// Share of the runs that do not hang which are made to, at a uniform moment
    /// [default: none where runs are labelled as hung, else 1%]
    #[arg(long, value_name = "RATE")]
    pub(crate) hang_rate: Option<String>,
    /// Share of the runs that delegate in turn and wait for their own child
    #[arg(long, value_name = "RATE")]
    pub(crate) nested: Option<String>,
    /// Draw the runs from this model instead of reading a DATASET
    #[arg(long, value_name = "MODEL", conflicts_with = "data")]
    pub(crate) model: Option<PathBuf>,
    /// Which of the model's populations to draw from, where it holds several
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) population: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// What an expiry makes a parent do.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ReactionArg {
    /// Take the delegates as still running and wait again
    WaitAgain,
    /// Take them as failed and start their tasks once more
    ReadAsFailure,
    /// End the turn, which kills everything that runs
    CloseTurn,
    /// Stop them and give their tasks up
    Stop,
    /// Stop those whose heartbeat stands still (ADR 0166)
    Judge,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Every delegate
    All,
    /// As many as --min-completed says
    Any,
}
