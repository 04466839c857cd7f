//! The arguments of `policysim report`.

use std::path::PathBuf;

use clap::Args;

use crate::args::{DataArgs, Terms};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim report --policy pi-desktop-0129 --current pi-desktop-0119 -o adr/0131
  policysim report telemetry --policy policy.toml --adr 0131 --idle 60s..600s/60s -o adr/0131
  policysim report sweep --policy pi-desktop-0129 -o adr/0131    from what `sweep --out sweep` wrote

The directory gets report.md, report.html, report.json and charts/; files of those names are replaced, others left alone.")]
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
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// A minijinja template for report.md instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
}
