//! From the arguments of `watch` to a watched run, and from its outcome to the exit status.

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use policysim_policy::{KillAction, Millis, Policy, Trace, duration};
use rustix::process::{Signal, kill_process_group};
use serde_json::{Value, json};

use super::args::WatchArgs;
use super::clock::{Clock, wall_ms};
use super::guard::{Caller, Guard, Power};
use super::live::{Channel, Live, Setup};
use super::outcome::{NOT_FOUND, NOT_RUNNABLE, Outcome};
use super::record::{FORMAT, Recorder, SCHEMA_VERSION};
use super::record_file::RecordFile;
use super::session::SessionWatcher;
use super::stream::Stream;
use super::tree::{Tree, outer_watch};
use super::{child, terminal};
use crate::args::GlobalArgs;
use crate::output::say;
use crate::policy_file;

/// Runs the command under the policy; the exit status.
pub(super) fn watched(args: &WatchArgs, global: &GlobalArgs) -> Result<u8> {
    if let Some(group) = args.hand_terminal {
        terminal::hand_over(group).context("cannot hand the terminal over")?;
        return Ok(0);
    }
    let deadline_ms = match &args.deadline {
        Some(text) => Some(
            duration::parse(text)
                .with_context(|| format!("--deadline {text}"))?
                .as_u64(),
        ),
        None => None,
    };
    let policies = policies(args, global)?;
    let window_ms = policies
        .iter()
        .filter_map(|(_, policy)| policy.idle.window)
        .min()
        .map(Millis::as_u64);
    let session = SessionWatcher::new(&args.session, &args.command, window_ms)?;
    let mut record = Recorder::new(match &args.record {
        Some(path) => Some(RecordFile::open(path, args.record_force)?),
        None => None,
    });
    let caller = Caller {
        role: args.role.clone(),
        deadline_ms,
        // Whoever keeps no record needs no transcript.
        trace: if record.is_on() {
            Trace::Full
        } else {
            Trace::Verdict
        },
    };
    let outer = outer_watch().filter(|_| !args.own_clock);
    if let Some(outer) = &outer {
        say(
            global.quiet,
            &format!(
                "policysim watch: inside another watch (process {}), whose clock is shared: this one does not kill; \
                 --own-clock makes it",
                outer.pid
            ),
        );
    }
    let guards = guards(args, outer.is_some(), policies, &caller);
    let tree = Tree::root_here();
    let channel = Channel::open()?;
    let clock = Clock::start();
    record.line(&head(args, &guards));
    record.flush();
    let started = match child::start(&args.command, args.pty) {
        Ok(started) => started,
        Err(error) => return Ok(not_started(args, &mut record, &error)),
    };
    let setup = Setup {
        channel,
        clock,
        guards,
        record,
        session,
        outer,
        stream: Stream::new(args.stream),
        tree,
        count: args.count,
        deadline_ms,
        status_ms: args.status.map(|seconds| seconds.saturating_mul(1_000)),
        pty: args.pty,
        quiet: global.quiet,
    };
    let group = started.pid;
    let mut live = Live::begin(setup, started).inspect_err(|_| {
        // Nobody would watch it.
        let _ = kill_process_group(group, Signal::KILL);
    })?;
    let outcome = live.watch();
    let status = outcome.status(args.preserve_status);
    live.conclude(outcome, status);
    if let Some(error) = live.record.failure() {
        let path = args.record.as_deref().unwrap_or(Path::new(""));
        say(
            global.quiet,
            &format!(
                "warning: the record {} is not whole: {error}",
                path.display()
            ),
        );
    }
    Ok(status)
}

/// The policies with their names, the one that may kill first.
fn policies(args: &WatchArgs, global: &GlobalArgs) -> Result<Vec<(String, Policy)>> {
    let name = args.policy.as_deref().context("--policy is missing")?;
    let mut first = policy_file::load_and_tell(name, global)?;
    first.change(&args.set)?;
    let mut policies = vec![(first.name, first.policy)];
    for name in &args.shadow {
        let shadow = policy_file::load_and_tell(name, global)?;
        policies.push((shadow.name, shadow.policy));
    }
    Ok(policies)
}

fn guards(
    args: &WatchArgs,
    shares: bool,
    policies: Vec<(String, Policy)>,
    caller: &Caller,
) -> Vec<Guard> {
    policies
        .into_iter()
        .enumerate()
        .map(|(number, (name, policy))| {
            let notifies = args.observe || policy.kill.action == KillAction::Notify;
            let power = match number {
                0 if shares => Power::Shares,
                0 if notifies => Power::Observes,
                0 => Power::Enforces,
                _ => Power::Shadows,
            };
            Guard::arm(name, policy, power, caller.clone())
        })
        .collect()
}

/// The first line of a record.
fn head(args: &WatchArgs, guards: &[Guard]) -> Value {
    let policies: Vec<Value> = guards
        .iter()
        .map(|guard| json!({ "name": guard.name, "power": guard.power.name() }))
        .collect();
    let program = args.command.first().map(Path::new);
    let program = program.and_then(Path::file_name).unwrap_or_default();
    json!({
        "record": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "started_at_ms": wall_ms(),
        "policies": policies,
        "role": args.role,
        "program": program.to_string_lossy(),
    })
}

/// Tells that the command could not be started, and gives the status for it.
fn not_started(args: &WatchArgs, record: &mut Recorder, error: &io::Error) -> u8 {
    let status = if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_RUNNABLE
    };
    let outcome = Outcome::NotStarted { status };
    record.note(
        "outcome",
        0,
        json!({ "outcome": outcome.name(), "status": status, "child": null }),
    );
    record.flush();
    let program = args.command.first().map(Path::new);
    let program = program.unwrap_or(Path::new("")).display();
    let reason = match status {
        NOT_FOUND => "not found".to_owned(),
        _ => error.to_string(),
    };
    crate::output::failed(&anyhow::anyhow!("cannot run {program}: {reason}"));
    status
}
