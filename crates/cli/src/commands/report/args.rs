//! The arguments of `policysim report`.

use std::path::PathBuf;

use clap::Args;

use crate::args::{ClusterBy, DataArgs};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim report --policy pi-desktop-0129 --current pi-desktop-0119 -o adr/0131
  policysim report telemetry --policy policy.toml --adr 0131 --idle 60s..600s/60s -o adr/0131
  policysim report sweep --policy pi-desktop-0129 -o adr/0131    from what `sweep --out sweep` wrote

The directory gets report.md, report.html, report.json and charts/; files of those names are replaced.")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The proposed policy: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: String,
    /// The policy in force, to tell which runs are newly killed and newly spared
    #[arg(long, value_name = "POLICY")]
    pub(crate) current: Option<String>,
    /// Title of the section [default: a question about the policy]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Number of the ADR
    #[arg(long, value_name = "NNNN")]
    pub(crate) adr: Option<String>,
    /// Directory to write into
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Idle windows to compare; the policy's own is among them [default: 60s..600s/60s]
    #[arg(long, value_name = "GRID")]
    pub(crate) idle: Option<String>,
    /// Max-total budgets to compare; the policy's own is among them [default: 1h,3h,6h,off]
    #[arg(long, value_name = "GRID")]
    pub(crate) total: Option<String>,
    /// Turn caps to compare, for every role
    #[arg(long, value_name = "GRID")]
    pub(crate) turns: Option<String>,
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
    /// Idle limit under which the runs were recorded, where their kills do not show it
    #[arg(long, value_name = "DURATION")]
    pub(crate) recorded_idle: Option<String>,
    /// Share of runs that hang [default: a range from the runs labelled as hung]
    #[arg(long, value_name = "RATE")]
    pub(crate) hang_rate: Option<String>,
    /// What a restart costs beyond the work lost [default: nothing]
    #[arg(long, value_name = "DURATION")]
    pub(crate) restart_cost: Option<String>,
    /// A minijinja template for report.md instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
}
