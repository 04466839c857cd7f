//! `policysim replay`: what one policy does to one run, and why.

use anyhow::{Result, bail};
use policysim_policy::{Millis, nearest};
use policysim_report::table::one_line;
use policysim_report::transcript::Transcript;
use policysim_report::units::duration as human;
use policysim_sim::replay;
use policysim_sim::run::{Fleet, Run, Symbols};
use policysim_sim::sweep::sized_runs;
use serde_json::Value;

use crate::args::{GlobalArgs, ReplayArgs, ReplayFormat};
use crate::exit::ExitStatus;
use crate::output;
use crate::policy_file::Loaded;
use crate::{data, policy_file};

/// Replays the run with the full transcript.
pub(super) fn run(args: &ReplayArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let mut policy = policy_file::load_and_tell(&args.policy, global)?;
    policy.change(&args.set)?;
    let loaded = data::load(&args.data, global)?;
    if loaded.samples_only {
        bail!(
            "{} holds samples without their order: there is no run to replay",
            loaded.header.name
        );
    }
    let run = find(&loaded.fleet, &args.run)?;
    let symbols = &loaded.fleet.symbols;
    let deadline = replay::recorded_deadline(run);
    let (mut text, mut rest) = one(&policy, run, symbols, deadline, args.format)?;
    let mut successors = Vec::new();
    while let Some(run_on) = rest {
        let from_ms = run_on.started_at_ms.abs_diff(run.started_at_ms);
        let deadline = deadline.map(|deadline| deadline.since(Millis::new(from_ms)));
        let (told, next) = one(&policy, &run_on, symbols, deadline, args.format)?;
        successors.push((from_ms, told));
        rest = next;
    }
    if !successors.is_empty() {
        text = with_successors(&text, successors, args.format)?;
    }
    output::print(&text)?;
    Ok(ExitStatus::Success)
}

/// The transcript of one watchdog, and what the next one saw where activity took its firing back.
fn one(
    policy: &Loaded,
    run: &Run,
    symbols: &Symbols,
    deadline: Option<Millis>,
    format: ReplayFormat,
) -> Result<(String, Option<Run>)> {
    let mut outputs = Vec::new();
    let replayed =
        replay::transcript_until(&policy.policy, run, symbols, deadline, |index, out| {
            outputs.push((index, out));
        });
    let transcript = Transcript {
        policy_name: &policy.name,
        policy: &policy.policy,
        run,
        symbols,
        replayed: &replayed,
        outputs: &outputs,
    };
    let text = match format {
        ReplayFormat::Json => format!("{}\n", transcript.to_json()?),
        ReplayFormat::Table => transcript.to_text(),
    };
    let rest = replayed
        .is_kill()
        .then(|| replay::successor(&policy.policy, run, symbols, replayed.unseen))
        .flatten();
    Ok((text, rest))
}

/// The first watchdog's transcript with those of the watchdogs that took over, each with when it did.
fn with_successors(
    first: &str,
    successors: Vec<(u64, String)>,
    format: ReplayFormat,
) -> Result<String> {
    match format {
        ReplayFormat::Table => {
            let mut text = first.to_owned();
            for (from_ms, told) in successors {
                text.push_str(&format!(
                    "\nActivity at {} took the kill back; the watchdog that began there (times count from it):\n\n{told}",
                    human(from_ms)
                ));
            }
            Ok(text)
        }
        ReplayFormat::Json => {
            let mut document: Value = serde_json::from_str(first)?;
            let successors = successors
                .into_iter()
                .map(|(from_ms, told)| {
                    let mut told: Value = serde_json::from_str(&told)?;
                    told["from_ms"] = from_ms.into();
                    Ok(told)
                })
                .collect::<Result<Vec<Value>>>()?;
            document["successors"] = successors.into();
            Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
        }
    }
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
