//! What `watch` says on standard error: that it killed, why, and how to allow more.

use policysim_policy::{Cause, Kind, Millis, Policy, Verdict, duration};
use policysim_report::units::duration as human;

use super::guard::{Firing, Guard, Power};
use super::live::Live;
use super::stop::{Scope, Stopped};
use crate::output::say;

/// How many kinds of activity a line names.
const KINDS_SHOWN: usize = 4;

fn line(live: &Live, text: &str) {
    say(live.quiet, &format!("policysim watch: {text}"));
}

/// The limit behind a verdict: its key, and its value where it is one.
fn limit(policy: &Policy, cause: Cause) -> (&'static str, Option<Millis>) {
    match cause {
        Cause::IdleTimeout => ("idle.window", policy.idle.window),
        Cause::FirstTimeout => ("idle.first", None),
        Cause::CeilingTimeout => ("idle.ceiling", policy.idle.ceiling),
        Cause::StartupTimeout => ("idle.startup", policy.idle.startup),
        Cause::ToolTimeout => ("pause.tool_limit", policy.pause.tool_limit.default),
        Cause::CompactionTimeout => ("pause.compaction_limit", policy.pause.compaction_limit),
        Cause::BackoffTimeout => ("pause.backoff_budget", policy.pause.backoff_budget),
        Cause::TotalTimeout => ("total.budget", policy.total.budget),
        Cause::TurnLimit => ("turns.cap", None),
        Cause::CleanupForced => ("kill.result_grace", policy.kill.result_grace),
        Cause::CallerDeadline | Cause::Ended | Cause::Running => ("--deadline", None),
    }
}

/// Why a policy fired, in one line.
fn why(guard: &Guard, verdict: &Verdict) -> String {
    let (key, value) = limit(&guard.policy, verdict.cause);
    let value = value.map_or_else(String::new, |value| format!(" {}", duration::show(value)));
    format!(
        "{} at {} ({key}{value}, phase {}) under {}",
        verdict.cause,
        human(verdict.at.as_u64()),
        verdict.phase,
        guard.name
    )
}

/// The ages of the most recent activity, most recent first; those that re-arm no clock are in brackets.
fn ages(verdict: &Verdict) -> String {
    let seen: Vec<String> = verdict
        .evidence
        .iter()
        .filter(|activity| activity.kind != Kind::RunStart)
        .take(KINDS_SHOWN)
        .map(|activity| {
            let age = format!("{} {} ago", activity.kind, human(activity.age.as_u64()));
            if activity.rearms {
                age
            } else {
                format!("({age}, does not count)")
            }
        })
        .collect();
    if seen.is_empty() {
        "none observed".to_owned()
    } else {
        seen.join(", ")
    }
}

/// The command was killed.
pub(super) fn killed(live: &Live, firing: &Firing, used_ms: u64, stopped: &Stopped) {
    let guard = &live.guards[0];
    let verdict = &firing.verdict;
    let at_ms = verdict.at.as_u64();
    if verdict.cause == Cause::CleanupForced {
        line(
            live,
            &format!(
                "its result was told and it did not end: {}",
                why(guard, verdict)
            ),
        );
        survivors(live, stopped);
        return;
    }
    line(live, &format!("killed: {}", why(guard, verdict)));
    line(live, &format!("last activity: {}", ages(verdict)));
    if let Some((tool, seen_ms, open)) = live.seen.tool() {
        let state = if open {
            "still running, heard of"
        } else {
            "ended"
        };
        let age = human(at_ms.saturating_sub(seen_ms));
        line(live, &format!("last tool: {tool}, {state} {age} ago"));
    }
    if firing.lateness_ms() >= 250 {
        let late = human(firing.lateness_ms());
        line(
            live,
            &format!("watch itself did not run for {late}: the limit is not what was late"),
        );
    }
    if live.seen.stdout_bytes() == 0 && !live.pty {
        let used = human(used_ms);
        line(
            live,
            &format!(
                "stdout was a pipe and gave 0 bytes while the command used {used} of processor time: it may hold its \
                 lines back; have it flush them (stdbuf -oL, PYTHONUNBUFFERED=1) or give it a terminal with --pty"
            ),
        );
    }
    if live.stdout.is_blocked() {
        line(
            live,
            "whoever reads watch's output does not take it: the command may wait for that",
        );
    }
    line(live, &advice(guard, verdict));
    survivors(live, stopped);
}

/// The command ended by itself after the firing, before the signal.
pub(super) fn ended_first(live: &Live, firing: &Firing) {
    let guard = &live.guards[0];
    let why = why(guard, &firing.verdict);
    line(
        live,
        &format!("timed out, and it ended before the signal: {why}"),
    );
    line(live, &advice(guard, &firing.verdict));
}

/// How to allow more.
fn advice(guard: &Guard, verdict: &Verdict) -> String {
    match limit(&guard.policy, verdict.cause) {
        ("--deadline", _) => "to allow more, give a later --deadline".to_owned(),
        (key, Some(value)) => format!(
            "to allow more: --set {key}={} (or a multiple; now {})",
            duration::show(Millis::new(value.as_u64().saturating_mul(2))),
            duration::show(value)
        ),
        (key, None) => format!("to allow more: --set {key}=VALUE"),
    }
}

/// Processes that live on.
pub(super) fn survivors(live: &Live, stopped: &Stopped) {
    if stopped.survivors.is_empty() {
        return;
    }
    let named: Vec<String> = stopped
        .survivors
        .iter()
        .map(|process| format!("{} ({})", process.pid, process.name))
        .collect();
    line(live, &format!("still alive: {}", named.join(", ")));
    if stopped.scope == Some(Scope::Child) {
        line(
            live,
            "the policy ends the command alone; to end them too: --set kill.scope=tree",
        );
    }
}

/// A policy that only tells would have killed.
pub(super) fn would_have_killed(live: &mut Live, number: usize, now_ms: u64) {
    let guard = &live.guards[number];
    let Some(firing) = guard.firing() else {
        return;
    };
    let mut details = super::record::verdict_fields(&firing.verdict);
    details["deadline_ms"] = serde_json::json!(firing.verdict.at.as_u64());
    details["policy"] = serde_json::json!(number);
    details["power"] = serde_json::json!(guard.power.name());
    let text = format!("would have killed: {}", why(guard, &firing.verdict));
    let tells = guard.power != Power::Shares;
    live.record.note("would_kill", now_ms, details);
    if tells {
        line(live, &text);
    }
}

/// The line of `--status`.
pub(super) fn status(live: &Live, now_ms: u64) {
    let last = live.seen.recent().next();
    let last = last.map_or_else(
        || "no activity yet".to_owned(),
        |(kind, at_ms)| {
            let age_s = now_ms.saturating_sub(at_ms) / 1_000;
            format!("last activity {age_s} s ago ({kind})")
        },
    );
    let next = live.guards[0].wake_ms().map_or_else(String::new, |at_ms| {
        format!(", next limit in {}", human(at_ms.saturating_sub(now_ms)))
    });
    line(live, &format!("{last}{next}"));
}
