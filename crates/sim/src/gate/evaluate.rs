//! Rules held against a policy and its figures.

use policysim_policy::{Millis, Policy, duration};

use crate::cluster::Cluster;
use crate::gaps::{Line, drift};
use crate::stats::Level;
use crate::stats::bootstrap::Resampling;
use crate::stats::drift::DriftVerdict;

use super::amount::Context;
use super::bound::{absolute, relative};
use super::check::{Check, Code, Detail, Gate, Parts, Verdict};
use super::explain::{Characteristics, Claim};
use super::figures::Figures;
use super::metric::Source;
use super::policy_rules::{self, Found};
use super::rules::{Bound, DriftRule, FigureRule, Rule, Rules, Scope, Subject};

/// What rules are held against.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Figures of now.
    pub now: &'a Figures,
    /// Figures of the baseline, where there is one.
    pub baseline: Option<&'a Figures>,
    /// Seed of resampling and permutations.
    pub seed: u64,
}

/// Decides every rule.
pub fn evaluate(rules: &Rules, evidence: Evidence<'_>) -> Gate {
    let mut checks = Vec::new();
    for (index, rule) in rules.rules.iter().enumerate() {
        let level = rule.level.unwrap_or(rules.level);
        let found = match &rule.subject {
            Subject::Drift(drift) => drifts(drift, evidence),
            Subject::Figure(figure) => vec![self::figure(figure, evidence, level)],
            Subject::Findings(findings) => policy_rules::findings(findings, evidence.policy),
            Subject::Key(key) => vec![policy_rules::key(key, evidence.policy)],
            Subject::Same(same) => vec![policy_rules::same(same, evidence.policy)],
        };
        let several = found.len() > 1;
        checks.extend(found.into_iter().map(|found| {
            let mut check = check(index, rule, rules, found, several);
            check.characteristics =
                Claim::least(&rule.subject, &check).map(|claim| Characteristics::new(claim, level));
            check
        }));
    }
    Gate { checks }
}

fn check(index: usize, rule: &Rule, rules: &Rules, found: Found, several: bool) -> Check {
    let mapping = rule.inconclusive.unwrap_or(rules.inconclusive);
    Check {
        rule: index,
        line: rule.line,
        name: match &rule.name {
            Some(name) if several => format!("{name}: {}", found.name),
            Some(name) => name.clone(),
            None => found.name,
        },
        subject: found.subject,
        kind: match rule.subject {
            Subject::Drift(_) => "drift",
            Subject::Figure(_) => "metric",
            Subject::Findings(_) => "check",
            Subject::Key(_) => "key",
            Subject::Same(_) => "same_as",
        },
        verdict: found.verdict,
        counts_as: found.verdict.mapped(mapping),
        code: found.code,
        reason: found.reason,
        ran: found.verdict != Verdict::NoData,
        detail: found.detail,
        keys: found.keys,
        characteristics: None,
    }
}

impl Claim {
    /// The claim of a rate rule that has the fewest runs: of the pool, or of one of its strata.
    fn least(subject: &Subject, check: &Check) -> Option<Self> {
        let (Subject::Figure(rule), Detail::Figure { now, parts, .. }) = (subject, &check.detail)
        else {
            return None;
        };
        if !rule.metric.takes_strata() || rule.bound.needs_baseline() {
            return None;
        }
        let strata = match rule.scope {
            Scope::Every(_) => &parts[..],
            Scope::All | Scope::One(..) => &[],
        };
        let named = strata.iter().map(|part| (Some(&part.name), &part.figure));
        let (name, figure) = std::iter::once((None, now))
            .chain(named)
            .min_by_key(|(_, figure)| figure.n.unwrap_or(u64::MAX))?;
        Some(Self {
            stratum: name.cloned(),
            accusers: name.map_or(1, |_| strata.len() as u64),
            runs: figure.n?,
            unresolved: figure.unresolved,
            max_rate: if rule.bound.is_upper() {
                rule.amount
            } else {
                1.0 - rule.amount
            },
        })
    }
}

fn figure(rule: &FigureRule, evidence: Evidence<'_>, level: Level) -> Found {
    let context = |figures| Context {
        policy: evidence.policy,
        figures,
        level,
        seed: evidence.seed,
    };
    let now = context(evidence.now);
    let (judged, baseline, change) = if !rule.bound.needs_baseline() {
        (absolute(rule, now), None, None)
    } else if let Some(base) = evidence.baseline {
        let bounded = relative(rule, now, context(base));
        (bounded.now, bounded.baseline, bounded.change)
    } else {
        (super::rate::Judged::without(Code::NoBaseline), None, None)
    };
    let verdict = judged.verdict.unwrap_or(Verdict::NoData);
    Found {
        name: figure_name(rule),
        subject: rule.metric.name().into_owned(),
        verdict,
        code: judged.code,
        reason: judged.reason,
        detail: Detail::Figure {
            now: judged.figure,
            baseline,
            change,
            unit: rule.metric.unit(),
            noun: rule.metric.noun(),
            bound: rule.bound,
            amount: rule.amount,
            parts_are: if rule.sequence.is_empty() {
                Parts::Strata
            } else {
                Parts::Windows
            },
            parts: judged.parts,
        },
        keys: keys(rule),
    }
}

/// The keys to look at when a figure breaks its bound: those of the cause it is about, else the metric's.
fn keys(rule: &FigureRule) -> Vec<String> {
    use policysim_policy::Cause;
    let of_cause = rule.cause.map(|cause| match cause {
        Cause::BackoffTimeout => "pause.backoff_budget",
        Cause::CallerDeadline => "total.caller_deadline",
        Cause::CeilingTimeout => "idle.ceiling",
        Cause::CleanupForced => "kill.result_grace",
        Cause::CompactionTimeout => "pause.compaction_limit",
        Cause::FirstTimeout => "idle.first",
        Cause::StartupTimeout => "idle.startup",
        Cause::ToolTimeout => "pause.tool_limit",
        Cause::TotalTimeout => "total.budget",
        Cause::TurnLimit => "turns.cap",
        Cause::Ended | Cause::IdleTimeout | Cause::Running => "idle.window",
    });
    match of_cause {
        Some(key) => vec![key.to_owned()],
        None => rule
            .metric
            .keys()
            .iter()
            .map(|key| (*key).to_owned())
            .collect(),
    }
}

/// What a rule says, in the words of the document.
fn figure_name(rule: &FigureRule) -> String {
    let mut name = rule.metric.name().into_owned();
    if let Some(quantile) = rule.quantile {
        name.push_str(&format!(" {}", quantile.percentile_label()));
    }
    if let Some(cause) = rule.cause {
        name.push_str(&format!(" by {cause}"));
    }
    if let Some(against) = &rule.against {
        name.push_str(&format!(" against {}", against.name));
    }
    if let Some(hang_rate) = rule.hang_rate {
        name.push_str(&format!(" at hang rate {hang_rate}"));
        if rule.restart > Millis::ZERO {
            name.push_str(&format!(", restart {}", duration::show(rule.restart)));
        }
    }
    let written = &rule.written;
    name.push_str(&match rule.bound {
        Bound::Max => format!(" ≤ {written}"),
        Bound::Min => format!(" ≥ {written}"),
        Bound::MaxIncrease => format!(" rises by ≤ {written}"),
        Bound::MaxDecrease => format!(" falls by ≤ {written}"),
        Bound::MaxRatio => format!(" ≤ {written} times the baseline's"),
        Bound::MinRatio => format!(" ≥ {written} times the baseline's"),
    });
    match &rule.scope {
        Scope::All => {}
        Scope::Every(key) if rule.every => name.push_str(&format!(", every {}", key.name())),
        Scope::Every(key) => name.push_str(&format!(", no {} above", key.name())),
        Scope::One(key, group) => name.push_str(&format!(", {} {group}", key.name())),
    }
    if !rule.sequence.is_empty() {
        name.push_str(", in sequence");
    }
    if !rule.habits.is_empty() {
        name.push_str(&format!(", parents {}", rule.habits));
    }
    if rule.metric.source() == Source::Replay && rule.cluster != Cluster::default() {
        name.push_str(&format!(" ({}s as units)", rule.cluster.name()));
    }
    name
}

/// A claim per line of silences that the rule is about.
fn drifts(rule: &DriftRule, evidence: Evidence<'_>) -> Vec<Found> {
    let claim = |line: Option<Line>| {
        let subject = line.map_or("silences", Line::name);
        Found {
            name: format!("{subject}: not moved since the baseline"),
            subject: subject.to_owned(),
            verdict: Verdict::NoData,
            code: Some(Code::NoBaseline),
            reason: None,
            detail: Detail::Drift(None),
            keys: Vec::new(),
        }
    };
    let Some(baseline) = evidence.baseline else {
        return vec![claim(rule.line)];
    };
    let (Some(now), Some(before)) = (&evidence.now.silences, &baseline.silences) else {
        let swept = evidence.now.swept.is_some() || baseline.swept.is_some();
        return vec![Found {
            code: Some(Code::NotInSource),
            reason: swept.then(|| "a sweep's result holds no silences".to_owned()),
            ..claim(rule.line)
        }];
    };
    let asked = |line: &Line| match rule.line {
        Some(asked) => *line == asked,
        // the longest readings are those of the idle clock again
        None => *line != Line::Longest,
    };
    let pick = |all: &'_ std::collections::BTreeMap<Line, crate::gaps::Silences>| {
        all.iter()
            .filter(|(line, _)| asked(line))
            .map(|(line, silences)| (*line, silences.clone()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let (before, now) = (pick(before), pick(now));
    let how = Resampling {
        seed: evidence.seed,
        ..Resampling::default()
    };
    let window_ms = evidence
        .policy
        .idle
        .window
        .map(policysim_policy::Millis::as_u64);
    let compared = drift::compare(
        &before
            .iter()
            .map(|(line, silences)| (*line, silences))
            .collect(),
        &now.iter()
            .map(|(line, silences)| (*line, silences))
            .collect(),
        window_ms,
        how,
    );
    if compared.is_empty() {
        return vec![Found {
            code: Some(Code::NoData),
            ..claim(rule.line)
        }];
    }
    compared
        .into_iter()
        .map(|compared| {
            let line = compared.line;
            let (verdict, code) = match compared.drift.map(|drift| drift.verdict) {
                None => (Verdict::NoData, Some(Code::NoData)),
                Some(DriftVerdict::Stable) => (Verdict::Pass, None),
                Some(DriftVerdict::Inconclusive) => {
                    (Verdict::Inconclusive, Some(Code::MoveUndecided))
                }
                Some(DriftVerdict::Moved) if rule.moved_fails => (Verdict::Fail, Some(Code::Moved)),
                Some(DriftVerdict::Moved) => (Verdict::Inconclusive, Some(Code::Moved)),
            };
            Found {
                verdict,
                code,
                detail: Detail::Drift(Some(compared)),
                ..claim(Some(line))
            }
        })
        .collect()
}
