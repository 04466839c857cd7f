//! `report.json`: every number that the texts and charts use.

use std::collections::BTreeMap;

use policysim_policy::{Millis, Policy};
use policysim_sim::compare::Pairs;
use policysim_sim::gaps::Line;
use policysim_sim::gaps::curve::Curve;
use policysim_sim::ledger::{Account, Totals};
use policysim_sim::stats::{Estimate, Interval, Level, json as rounded, rates};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::explorer::Explorer;
use super::facts::Stratum;
use super::{Report, RunFacts, Shown};
use crate::SCHEMA_VERSION;
use crate::charts::by_limit;
use crate::form::Printed;

#[derive(Serialize)]
struct JsonReport<'a> {
    schema_version: u32,
    title: &'a str,
    adr: Option<&'a str>,
    policy: &'a str,
    current: Option<&'a str>,
    version: &'a str,
    seed: u64,
    command: &'a str,
    sweep_command: &'a str,
    gaps_command: Option<&'a str>,
    candidate_cell: Option<usize>,
    focus_cell: usize,
    limits: Value,
    /// Of the focus cell, the worst first.
    strata: Vec<Value>,
    rules: Value,
    /// Limits of the candidate that contradict each other.
    contradictions: Value,
    /// As `policysim sweep --format json` prints it.
    sweep: &'a RawValue,
    /// The same of the wider sweep behind map and controls; null where the first holds them all.
    map: Option<&'a RawValue>,
    map_command: Option<&'a str>,
    /// As `policysim gaps --format json` prints it.
    gaps: Option<Box<RawValue>>,
    explorer: &'a Explorer,
    runs: Option<Value>,
}

impl Report {
    /// The report as JSON.
    ///
    /// # Errors
    /// Never for memory; the serializer's errors are passed on.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let gaps = match &self.runs {
            Some(runs) => Some(RawValue::from_string(runs.gaps.json()?)?),
            None => None,
        };
        serde_json::to_string_pretty(&JsonReport {
            schema_version: SCHEMA_VERSION,
            title: &self.title,
            adr: self.adr.as_deref(),
            policy: &self.candidate.name,
            current: self.current.as_ref().map(|named| named.name.as_str()),
            version: &self.origin.version,
            seed: self.origin.seed,
            command: &self.origin.command,
            sweep_command: &self.origin.sweep_command,
            gaps_command: self.origin.gaps_command.as_deref(),
            candidate_cell: self.candidate_cell,
            focus_cell: self.focus().cell,
            limits: json!({
                "candidate": limits_of(&self.candidate.policy),
                "current": self.current.as_ref().map(|named| limits_of(&named.policy)),
            }),
            strata: by_limit(self.focus()).into_iter().map(stratum).collect(),
            rules: json!({
                "max_false_kill_rate": self.facts.sweep.constraints.max_false_kill_rate,
                "least_runs": self.least_runs(),
                "idle_window_ms": self.candidate.policy.idle.window.map(Millis::as_u64),
            }),
            contradictions: policysim_policy::check::check(&self.candidate.policy)
                .iter()
                .map(|finding| {
                    json!({ "id": finding.id, "limits": finding.limits.each_ref().map(ToString::to_string), "advice": finding.advice })
                })
                .collect(),
            sweep: &self.facts.raw,
            map: self.wider.as_ref().map(|facts| &*facts.raw),
            map_command: self.origin.map_command.as_deref(),
            gaps,
            explorer: &self.explorer,
            runs: self.runs.as_ref().map(runs),
        })
    }
}

/// The limits that the text compares.
fn limits_of(policy: &Policy) -> Value {
    let by_role: BTreeMap<&str, Option<u32>> = policy
        .turns
        .by_role
        .entries()
        .iter()
        .map(|(role, cap)| (&**role, *cap))
        .collect();
    json!({
        "idle_window_ms": policy.idle.window.map(Millis::as_u64),
        "total_budget_ms": policy.total.budget.map(Millis::as_u64),
        "turn_cap": policy.turns.cap,
        "turn_cap_by_role": by_role,
        "task_wait_ms": policy.task_wait.timeout.as_u64(),
        "kill_delay_and_grace_ms": policy.kill.delay.plus(policy.kill.grace).as_u64(),
    })
}

fn stratum(of: &Stratum) -> Value {
    json!({
        "key": of.key,
        "group": of.group,
        "false_kill_rate": estimate(&rates::rate(of.false_kills, of.runs, Level::P95)),
    })
}

fn runs(facts: &RunFacts) -> Value {
    let mut by_role: BTreeMap<&str, Value> = BTreeMap::new();
    for (role, totals) in &facts.spent_by_role {
        by_role.insert(role, ledger(totals));
    }
    json!({
        "survival": {
            "idle_clock": curve(&facts.idle_curve),
            "pre_token_or_cut": curve(&facts.wait_curve),
        },
        "ledger": { "all": ledger(&facts.spent), "by_role": by_role },
        "comparison": facts.comparison.as_ref().map(|found| json!({
            "runs": found.all.counts.runs,
            "killed_by_both": found.killed_by_both,
            "nested": found.nested,
            "all": pairs(&found.all),
            "by_phase": found.by_phase.iter().map(|(phase, of)| {
                let mut value = pairs(of);
                value["phase"] = json!(phase.name());
                value
            }).collect::<Vec<_>>(),
            "hung": {
                "killed_by_both": found.hung.both,
                "killed_by_current_only": found.hung.current_only,
                "killed_by_candidate_only": found.hung.candidate_only,
                "killed_by_neither": found.hung.neither,
            },
        })),
        "window": {
            "window_ms": facts.split.window_ms,
            "measured_p99_9_ms": facts.split.measured_ms,
            "measured": super::recommendation::measured(&facts.gaps),
            "composite_silence": {
                "every_reading": super::recommendation::composite(facts, Line::Idle).0,
                "longest_of_each_run": super::recommendation::composite(facts, Line::Longest).0,
            },
            "retry_envelope_ms": named(facts.split.envelopes_ms()),
            "left_ms": named(facts.split.left_ms()),
            "backoff_runs_against_the_idle_clock": facts.split.backoff_counts,
        },
        "settlement": facts.settled,
        "timeline": facts.shown.as_ref().map(shown),
    })
}

fn named<T: Serialize>([nominal, jitter, header]: [T; 3]) -> Value {
    json!({ "nominal": nominal, "full_jitter": jitter, "headers_at_cap": header })
}

fn curve(curve: &Curve) -> Value {
    json!({
        "n": curve.n,
        "cut": curve.cut,
        "sessions": curve.sessions,
        "max_ms": curve.max_ms,
        "reaches": curve.reaches.iter().map(|reach| json!({
            "ms": reach.ms,
            "seen": reach.seen,
            "share": estimate(&reach.share),
        })).collect::<Vec<_>>(),
        "cut_at_ms": curve.cuts,
    })
}

fn estimate(of: &Estimate) -> Value {
    json!({
        "n": of.n,
        "point": of.point.map(rounded),
        "interval": limits(of.interval),
        "status": of.status.name(),
    })
}

fn limits(of: Interval) -> Value {
    json!({ "lo": of.lo.map(rounded), "up": of.up.map(rounded) })
}

fn ledger(totals: &Totals) -> Value {
    let mut value = json!({
        "runs": totals.runs,
        "span_ms": whole(totals.span_ms()),
    });
    for (account, &ms) in Account::ALL.iter().zip(&totals.ms) {
        value[format!("{}_ms", account.name())] = json!(whole(ms));
        value[format!("{}_share", account.name())] =
            json!(rounded(super::data::share_of(ms, totals)));
    }
    value
}

fn whole(ms: u128) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX)
}

fn pairs(of: &Pairs) -> Value {
    json!({
        "newly_killed": of.counts.only_second,
        "newly_spared": of.counts.only_first,
        "current_minus_candidate": of.difference.difference.map(rounded),
        "interval": limits(of.difference.interval),
        "mcnemar_p": of.difference.p_value.map(rounded),
    })
}

fn shown(of: &Shown) -> Value {
    let verdict = &of.line.replayed.verdict;
    json!({
        "run": of.run,
        "command": of.replay_command,
        "fired_at_ms": verdict.at.as_u64(),
        "cause": verdict.cause.name(),
        "phase": verdict.phase.name(),
        "judgement": of.line.replayed.judgement.name(),
        "work_lost_ms": of.line.lost_ms,
        "next_at_ms": of.line.next.map(|(ms, _)| ms),
        "next_after_ms": of.line.next.map(|(ms, _)| ms.saturating_sub(verdict.at.as_u64())),
        "next_kind": of.line.next.map(|(_, kind)| kind.name()),
        "record_end_ms": of.end_ms,
        "idle_clock": of.line.clock.iter().map(|stretch| json!([stretch.from_ms, stretch.to_ms, stretch.reading_ms])).collect::<Vec<_>>(),
        "total_clock": of.line.total.iter().map(|stretch| json!([stretch.from_ms, stretch.to_ms, stretch.reading_ms])).collect::<Vec<_>>(),
        "pauses_ms": of.line.pauses,
        "waits_ms": of.line.waits.iter().map(|(account, from, to)| json!([account.name(), from, to])).collect::<Vec<_>>(),
    })
}
