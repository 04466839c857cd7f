//! `policysim replay`: what one policy does to one run, and why.

use anyhow::{Context, Result, bail};
use policysim_policy::nearest;
use policysim_report::table::one_line;
use policysim_report::transcript::Transcript;
use policysim_sim::grid;
use policysim_sim::replay;
use policysim_sim::run::{Fleet, Run};
use policysim_sim::sweep::sized_runs;

use crate::args::{GlobalArgs, ReplayArgs, ReplayFormat};
use crate::exit::ExitStatus;
use crate::output;
use crate::{data, policy_file};

/// Replays the run with the full transcript.
pub(super) fn run(args: &ReplayArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let mut policy = policy_file::load_and_tell(&args.policy, global)?;
    for setting in &args.set {
        let (key, value) = setting.split_once('=').with_context(|| {
            format!("--set {setting}: expected KEY=VALUE, for example idle.window=300s")
        })?;
        policy.policy.set(key, &grid::single(value))?;
    }
    let loaded = data::load(&args.data, global)?;
    if loaded.samples_only {
        bail!(
            "{} holds samples without their order: there is no run to replay",
            loaded.header.name
        );
    }
    let run = find(&loaded.fleet, &args.run)?;
    let mut outputs = Vec::new();
    let replayed = replay::transcript(&policy.policy, run, &loaded.fleet.symbols, |index, out| {
        outputs.push((index, out));
    });
    let transcript = Transcript {
        policy_name: &policy.name,
        policy: &policy.policy,
        run,
        symbols: &loaded.fleet.symbols,
        replayed: &replayed,
        outputs: &outputs,
    };
    output::print(&match args.format {
        ReplayFormat::Json => format!("{}\n", transcript.to_json()?),
        ReplayFormat::Table => transcript.to_text(),
    })?;
    Ok(ExitStatus::Success)
}

/// The run of that name, or the only one whose name holds it.
fn find<'f>(fleet: &'f Fleet, name: &str) -> Result<&'f Run> {
    if let Some(run) = sized_runs(fleet).find(|run| &*run.name == name) {
        return Ok(run);
    }
    // A number at the end is whole: `#2` is not `#20`.
    let mut ending = sized_runs(fleet).filter(|run| run.name.ends_with(name));
    if let (Some(one), None) = (ending.next(), ending.next()) {
        return Ok(one);
    }
    let holding: Vec<&Run> = sized_runs(fleet)
        .filter(|run| run.name.contains(name))
        .collect();
    match holding[..] {
        [one] => Ok(one),
        [] => {
            let near = nearest(name, sized_runs(fleet).map(|run| &*run.name))
                .map_or_else(String::new, |near| {
                    format!(", did you mean {}?", one_line(near))
                });
            bail!(
                "no run is named {name}: expected SOURCE#N as `sweep --list-kills` prints it{near}"
            )
        }
        [first, second, ..] => bail!(
            "{} runs have {name} in their name ({}, {}, …): give more of it",
            holding.len(),
            one_line(&first.name),
            one_line(&second.name),
        ),
    }
}
