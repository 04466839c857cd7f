//! Rates held against their bound: pooled, in every stratum, and as one of a sequence of windows.

use crate::certify::TieRule;
use crate::cluster::Cluster;
use crate::stats::verdict::{
    Decision, KEYS_MATTER, KeyedCheck, RateCheck, RunCounts, check_rate, check_rate_by_key,
    check_strata,
};
use crate::stats::{Level, Reason, runs_needed};

use super::check::{Code, Figure, Part, Verdict};
use super::figures::Figures;
use super::hits::{by_group, by_unit};
use super::metric::{Metric, Unit};
use super::outcome::Outcomes;
use super::rules::{FigureRule, Scope};

/// Seconds of an hour: a number per hour is a rate per second of active time.
const SECONDS: f64 = 3_600.0;

/// What is known of a figure against its bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judged {
    pub(super) figure: Figure,
    pub(super) verdict: Option<Verdict>,
    pub(super) code: Option<Code>,
    pub(super) parts: Vec<Part>,
}

impl Judged {
    /// Nothing was judged, for this reason.
    pub(super) fn without(code: Code) -> Self {
        Self {
            verdict: Some(Verdict::NoData),
            code: Some(code),
            ..Self::default()
        }
    }
}

/// A bound on a rate, turned so that hits are what must be few.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateBound {
    /// The largest rate of (turned) hits allowed.
    pub(super) max_rate: f64,
    /// Hits are what must be many, so that misses are counted.
    pub(super) flipped: bool,
    /// From a rate to the figure's unit.
    pub(super) scale: f64,
    pub(super) level: Level,
}

impl RateBound {
    /// The bound of `rule`, whose figure is a share or a number per hour.
    pub(super) fn new(rule: &FigureRule, level: Level) -> Self {
        let scale = match rule.metric.unit() {
            Unit::PerHour => SECONDS,
            _ => 1.0,
        };
        let rate = rule.amount / scale;
        let flipped = !rule.bound.is_upper();
        Self {
            max_rate: if flipped { 1.0 - rate } else { rate },
            flipped,
            scale,
            level,
        }
    }

    fn turned(self, counts: RunCounts) -> RunCounts {
        if self.flipped {
            RunCounts {
                kills: counts.runs - counts.worst_kills(),
                ..counts
            }
        } else {
            counts
        }
    }

    fn figure(self, counts: RunCounts, found: &KeyedCheck) -> Figure {
        let RateCheck { lower, upper, .. } = found.check;
        let back = |limit: Option<f64>| limit.map(|limit| (1.0 - limit) * self.scale);
        let up = |limit: Option<f64>| limit.map(|limit| limit * self.scale);
        let (lower, upper) = if self.flipped {
            (back(upper), back(lower))
        } else {
            (up(lower), up(upper))
        };
        let needed = match found.check.reason {
            Some(Reason::NTooSmall { need, .. }) => Some(need),
            _ => None,
        };
        Figure {
            point: (counts.runs > 0).then(|| counts.kills as f64 / counts.runs as f64 * self.scale),
            lower: lower.filter(|_| counts.runs > 0),
            upper: upper.filter(|_| counts.runs > 0),
            n: Some(counts.runs),
            hits: Some(counts.kills),
            unresolved: counts.unresolved,
            needed,
            needed_at_best: runs_needed(0, self.max_rate, self.level),
            by_unit: found.adjusted,
            deff: found.deff,
        }
    }

    /// Holds counts by unit against the bound.
    pub(super) fn judge(self, units: &[RunCounts], cluster: Cluster) -> Judged {
        let turned: Vec<RunCounts> = units.iter().map(|&counts| self.turned(counts)).collect();
        let sum = |counts: &[RunCounts]| {
            counts
                .iter()
                .fold(RunCounts::default(), |sum, counts| sum.plus(*counts))
        };
        let found = if cluster == Cluster::Run {
            KeyedCheck {
                check: check_rate(sum(&turned), self.max_rate, self.level),
                deff: None,
                adjusted: false,
            }
        } else {
            check_rate_by_key(&turned, self.max_rate, self.level)
        };
        let counts = sum(units);
        let (verdict, code) = concluded(found.check.decision, counts.runs);
        let few_units = found.adjusted && found.deff.is_some_and(|deff| deff > KEYS_MATTER);
        Judged {
            figure: self.figure(counts, &found),
            verdict: Some(verdict),
            code: match code {
                Some(Code::TooFew) if few_units => Some(Code::FewUnits),
                code => code,
            },
            parts: Vec::new(),
        }
    }

    /// One-sided limits of counts by unit, at this bound's level.
    pub(super) fn limits(self, units: &[RunCounts], cluster: Cluster) -> Figure {
        self.judge(units, cluster).figure
    }
}

/// A decision as a verdict, with the code of why it is no pass.
pub(super) fn concluded(decision: Decision, samples: u64) -> (Verdict, Option<Code>) {
    match decision {
        _ if samples == 0 => (Verdict::NoData, Some(Code::NoData)),
        Decision::Pass => (Verdict::Pass, None),
        Decision::Inconclusive => (Verdict::Inconclusive, Some(Code::TooFew)),
        Decision::Fail => (Verdict::Fail, Some(Code::BoundBroken)),
    }
}

/// Judges the rate that `rule` bounds, under both tie rules, and doubts a pass where the data give reason to.
pub(super) fn rate(
    rule: &FigureRule,
    figures: &Figures,
    window_ms: Option<u64>,
    level: Level,
) -> Judged {
    let Some(outcomes) = &figures.outcomes else {
        return Judged::without(Code::NotInSource);
    };
    let mut judged = under(rule, outcomes, TieRule::TimerFirst, level);
    if outcomes.runs.iter().any(|run| run.tied) {
        let other = under(rule, outcomes, TieRule::EventFirst, level);
        if other.verdict != judged.verdict {
            (judged.verdict, judged.code) = (Some(Verdict::Inconclusive), Some(Code::TieRule));
        }
    }
    if !rule.sequence.is_empty() {
        sequence(rule, figures, window_ms, level, &mut judged);
    }
    let doubted = matches!(
        rule.metric,
        Metric::FalseKillRate | Metric::FalseKillsPerHour
    );
    if doubted && judged.verdict == Some(Verdict::Pass) && figures.kills_missing.is_some() {
        (judged.verdict, judged.code) = (Some(Verdict::Inconclusive), Some(Code::KillsMissing));
    }
    judged
}

fn under(rule: &FigureRule, outcomes: &Outcomes, ties: TieRule, level: Level) -> Judged {
    let bound = RateBound::new(rule, level);
    let mut pooled = bound.judge(&by_unit(rule, outcomes, ties), rule.cluster);
    let Scope::Every(key) = rule.scope else {
        return pooled;
    };
    let groups = by_group(rule, key, outcomes, ties);
    let turned: Vec<(String, RunCounts)> = groups
        .iter()
        .map(|(name, counts)| (name.clone(), bound.turned(*counts)))
        .collect();
    let found = check_strata(&turned, bound.max_rate, level, true);
    for ((name, counts), stratum) in groups.iter().zip(&found.strata) {
        let alone = KeyedCheck {
            check: stratum.alone,
            deff: None,
            adjusted: false,
        };
        // a stratum accuses only at the error shared by all of them
        let verdict = match concluded(stratum.alone.decision, counts.runs).0 {
            Verdict::Fail if !stratum.exceeds => Verdict::Inconclusive,
            verdict => verdict,
        };
        pooled.parts.push(Part {
            name: name.clone(),
            figure: bound.figure(*counts, &alone),
            verdict,
            lower_shared: stratum.lower_shared.map(|limit| limit * bound.scale),
        });
    }
    let worst = pooled
        .parts
        .iter()
        .map(|part| part.verdict)
        .filter(|verdict| rule.every || *verdict == Verdict::Fail)
        .max();
    if let Some(worst) = worst.filter(|worst| pooled.verdict < Some(*worst)) {
        let worst = worst.max(Verdict::Inconclusive);
        pooled.verdict = Some(worst);
        pooled.code = Some(match worst {
            Verdict::Fail => Code::BoundBroken,
            _ => Code::StratumUndecided,
        });
    }
    pooled
}

/// Walks the declared windows from the largest down to the policy's, each at full `level`, up to the first that is
/// not shown to be safe (statistics section 8).
fn sequence(
    rule: &FigureRule,
    figures: &Figures,
    window_ms: Option<u64>,
    level: Level,
    judged: &mut Judged,
) {
    let mut windows = rule.sequence.clone();
    windows.sort_unstable_by(|left, right| right.cmp(left));
    let mut stopped = false;
    for &window in &windows {
        let Some(outcomes) = figures.by_window.get(&window) else {
            continue;
        };
        let step = under(rule, outcomes, TieRule::TimerFirst, level);
        let verdict = step.verdict.unwrap_or(Verdict::NoData);
        judged.parts.push(Part {
            name: window.to_string(),
            figure: step.figure,
            verdict,
            lower_shared: None,
        });
        if verdict != Verdict::Pass {
            stopped = window_ms.is_some_and(|shipped| window > shipped);
            break;
        }
    }
    let listed = window_ms.is_some_and(|window| windows.contains(&window));
    if !listed {
        (judged.verdict, judged.code) = (Some(Verdict::Fail), Some(Code::NotInSequence));
    } else if stopped && judged.verdict == Some(Verdict::Pass) {
        (judged.verdict, judged.code) = (Some(Verdict::Inconclusive), Some(Code::SequenceStopped));
    }
}
