//! A summary file: what a gate is decided on and sweeps are answered from without events, for places that must not hold
//! logs.
//!
//! One line of JSON that says what it is of, then the bytes of the simulator's summary, which carry a checksum of both.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use policysim_report::header::DataHeader;
use policysim_sim::gate::summary_of;
use policysim_sim::summary::{NeedsEvents, Summary};
use serde::{Deserialize, Serialize};

use crate::args::GlobalArgs;
use crate::commands::gate::SummaryArgs;
use crate::exit::ExitStatus;
use crate::{data, given, output, policy_file};

/// How such a file begins, whatever its version.
const START: &[u8] = b"{\"policysim_summary\":";
/// The version of the file.
const VERSION: u32 = 3;

/// The part of the first line that every version has.
#[derive(Debug, Deserialize)]
struct Version {
    policysim_summary: u32,
}

/// What the first line says.
#[derive(Debug, Deserialize, Serialize)]
struct Head {
    policysim_summary: u32,
    policy: String,
    name: String,
    digest: String,
    runs: u64,
    sources: u64,
    unanswered: u64,
    open_runs: u64,
    hung: u64,
    first_day: String,
    last_day: String,
    malformed_lines: u64,
    lines: u64,
    caveats: Vec<String>,
}

/// A summary file, read.
pub(crate) struct SummaryFile {
    /// The file, as it was named.
    shown: String,
    /// What it is of.
    pub(crate) header: DataHeader,
    /// The policy that it was made under.
    pub(crate) policy: String,
    pub(crate) summary: Summary,
}

/// Whether the file at `path` is a summary, of whatever version.
pub(crate) fn is_one(path: &Path) -> bool {
    use std::io::Read;
    // What is read of a pipe is lost to whoever reads it next.
    if !path.is_file() {
        return false;
    }
    let mut start = vec![0; START.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == START
}

/// Reads the summary file at `path`.
///
/// # Errors
/// When it does not read, or was cut or changed.
pub(crate) fn read(path: &Path) -> Result<SummaryFile> {
    let shown = path.display();
    given::keep(path);
    let bytes = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        bail!("{shown}: the summary is cut: write it again from the events");
    };
    let (line, body) = bytes.split_at(end + 1);
    let no_head = || format!("{shown}: the first line is no head of a summary");
    let Version { policysim_summary } = serde_json::from_slice(line).with_context(no_head)?;
    if policysim_summary != VERSION {
        bail!(
            "{shown}: a summary of version {policysim_summary}, expected {VERSION}: write it again from the events"
        );
    }
    let head: Head = serde_json::from_slice(line).with_context(no_head)?;
    let summary =
        Summary::from_bytes(line, body).with_context(|| format!("cannot read {shown}"))?;
    if summary.runs() as u64 != head.runs {
        bail!(
            "{shown}: holds {} runs and says {}: write it again from the events",
            summary.runs(),
            head.runs
        );
    }
    Ok(SummaryFile {
        shown: shown.to_string(),
        policy: head.policy,
        summary,
        header: DataHeader {
            name: head.name,
            digest: head.digest,
            runs: head.runs,
            sources: head.sources,
            unanswered: head.unanswered,
            open_runs: head.open_runs,
            hung: head.hung,
            first_day: head.first_day,
            last_day: head.last_day,
            malformed_lines: head.malformed_lines,
            lines: head.lines,
            caveats: head.caveats,
        },
    })
}

impl SummaryFile {
    /// Why it does not answer for the policy of that name, and what would.
    pub(crate) fn lacking(&self, why: &NeedsEvents, policy: &str) -> anyhow::Error {
        anyhow!(
            "{0}, made of {1} under {2}, does not answer {policy}: {why}; write one for it with `policysim gate summarise DATASET --policy {policy} --out {0}`, or give the events",
            self.shown,
            self.header.name,
            self.policy
        )
    }
}

/// Writes the summary of telemetry under a policy.
pub(crate) fn write(args: &SummaryArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let policy = policy_file::load_and_tell(&args.policy, global)?;
    let opened = data::open_runs(&args.data, global)?;
    if opened.samples_only {
        bail!(
            "{} holds samples without their order, and a summary is of runs",
            opened.header.name
        );
    }
    let summary = summary_of(&opened.dataset, &policy.policy)?;
    let header = opened.header;
    let head = Head {
        policysim_summary: VERSION,
        policy: policy.name,
        name: header.name,
        digest: header.digest,
        runs: header.runs,
        sources: header.sources,
        unanswered: header.unanswered,
        open_runs: header.open_runs,
        hung: header.hung,
        first_day: header.first_day,
        last_day: header.last_day,
        malformed_lines: header.malformed_lines,
        lines: header.lines,
        caveats: header.caveats,
    };
    let mut bytes = serde_json::to_vec(&head)?;
    bytes.push(b'\n');
    bytes.extend(summary.to_bytes(&bytes));
    output::write_file(&args.out, &bytes)?;
    output::print(&format!(
        "{} runs of {}, closed window {}\n",
        head.runs, head.name, head.digest
    ))?;
    Ok(ExitStatus::Success)
}
