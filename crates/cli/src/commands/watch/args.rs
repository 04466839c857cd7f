//! The arguments of `policysim watch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  policysim watch --policy no-mistakes-silence -- echo done
  policysim watch --policy policy.toml --record run.jsonl -- sh -c 'echo working'
  policysim watch --policy policy.toml --observe --shadow pi-desktop-0119 -- echo done

Exit: the command's own status (128+n when signal n ended it); 124 killed by the policy;
123 killed and some process of the command lives on (as those of a policy with
kill.scope = child may); 125 watch itself failed, wrong usage included; 126 the command
cannot be run; 127 it is not found. A command can exit 124 by itself: the record, not the
code, is authoritative.")]
pub(crate) struct WatchArgs {
    /// The policy: a preset, a TOML file, or DIALECT:FILE
    #[arg(long, value_name = "POLICY", required_unless_present = "hand_terminal")]
    pub(crate) policy: Option<String>,
    /// Settings on top of the policy, KEY=VALUE
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Never kill; tell what would have been killed
    #[arg(long)]
    pub(crate) observe: bool,
    /// Another policy to run beside the enforced one; it only tells
    #[arg(long, value_name = "POLICY")]
    pub(crate) shadow: Vec<String>,
    /// Write what is observed and decided into this new file, or to the reader of this pipe, as it happens;
    /// `policysim import` reads it
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replace a record that is there already
    #[arg(long, requires = "record")]
    pub(crate) record_force: bool,
    /// Whose session log counts as a sign of life: auto (by the command's name), none, pi, claude-code, codex, or a file
    #[arg(long, value_name = "SESSION", default_value = "auto")]
    pub(crate) session: String,
    /// Which JSON event stream to expect on stdout; bytes count in any case
    #[arg(long, value_enum, value_name = "STREAM", default_value_t)]
    pub(crate) stream: StreamChoice,
    /// Whose bytes are a sign of life
    #[arg(long, value_enum, value_name = "PIPE", default_value_t)]
    pub(crate) count: Count,
    /// Give the command a terminal as stdout, in the size of yours, so that it does not hold lines back
    #[arg(long)]
    pub(crate) pty: bool,
    /// Say on stderr every so many seconds how long ago the last activity was
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) status: Option<u64>,
    /// A hard deadline of the caller, from the start of the command; the policy says whether it adds to its limits
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// The agent's role, for turn caps by role
    #[arg(long, value_name = "ROLE", default_value = "")]
    pub(crate) role: String,
    /// Exit with the command's own status even after a kill
    #[arg(long)]
    pub(crate) preserve_status: bool,
    /// Enforce the policy even inside another `policysim watch`, instead of sharing its clock
    #[arg(long)]
    pub(crate) own_clock: bool,
    /// Makes this process group the terminal's foreground group and ends; watch starts it where it may not do so itself
    #[arg(long, hide = true, value_name = "GROUP")]
    pub(crate) hand_terminal: Option<i32>,
    /// The command and its arguments
    #[arg(
        last = true,
        value_name = "CMD",
        required_unless_present = "hand_terminal"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Which JSON event stream stdout carries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum StreamChoice {
    /// The one that the first telling line among the first 64 names, if one does
    #[default]
    Auto,
    /// Pi in JSON or RPC mode
    Pi,
    /// Claude Code with --output-format stream-json
    ClaudeCode,
    /// Codex exec with --json
    Codex,
    /// None: bytes alone
    None,
}

/// Whose bytes are evidence.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Count {
    /// Those on standard output
    Stdout,
    /// Those on standard error
    Stderr,
    /// Both
    #[default]
    Both,
}
