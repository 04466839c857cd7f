//! Rates held against their bound: pooled, in every stratum, and as one of a sequence of windows.

use policysim_policy::{Millis, duration};

use crate::certify::TieRule;
use crate::cluster::Cluster;
use crate::stats::verdict::{
    Decision, KEYS_MATTER, KeyedCheck, RateCheck, RunCounts, check_rate, check_rate_by_key,
    check_strata,
};
use crate::stats::{Level, Reason, runs_needed};

use super::bound::by_limits_of;
use super::check::{Code, Figure, Part, Verdict};
use super::counted::{Counted, Pool, counted};
use super::figures::Figures;
use super::metric::{Metric, Unit};
use super::rules::{FigureRule, Scope};

/// Seconds of an hour: a number per hour is a rate per second of active time.
const SECONDS: f64 = 3_600.0;

/// What is known of a figure against its bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judged {
    pub(super) figure: Figure,
    pub(super) verdict: Option<Verdict>,
    pub(super) code: Option<Code>,
    pub(super) reason: Option<String>,
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

    /// The source does not hold what is asked, for this reason.
    pub(super) fn lacking(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::without(Code::NotInSource)
        }
    }
}

/// Why a source does not answer a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lacking(Option<String>);

impl Lacking {
    /// It holds nothing of the kind.
    pub(super) const fn all() -> Self {
        Self(None)
    }

    pub(super) fn because(reason: impl Into<String>) -> Self {
        Self(Some(reason.into()))
    }
}

impl From<Lacking> for Judged {
    fn from(lacking: Lacking) -> Self {
        Self {
            reason: lacking.0,
            ..Self::without(Code::NotInSource)
        }
    }
}

/// There is nothing to count.
pub(super) fn nothing() -> Judged {
    Judged {
        figure: Figure {
            n: Some(0),
            ..Figure::default()
        },
        ..Judged::without(Code::NoData)
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

    /// The counts with hits as what must be few.
    pub(super) fn turned(self, counts: RunCounts) -> RunCounts {
        if self.flipped {
            RunCounts {
                kills: counts.runs - counts.worst_kills(),
                ..counts
            }
        } else {
            counts
        }
    }

    /// A limit of the (turned) rate in the figure's unit.
    fn back(self, limit: f64) -> f64 {
        if self.flipped {
            (1.0 - limit) * self.scale
        } else {
            limit * self.scale
        }
    }

    fn figure(self, counts: RunCounts, found: &KeyedCheck) -> Figure {
        let RateCheck { lower, upper, .. } = found.check;
        let back = |limit: Option<f64>| limit.map(|limit| self.back(limit));
        let (lower, upper) = if self.flipped {
            (back(upper), back(lower))
        } else {
            (back(lower), back(upper))
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
            ..Judged::default()
        }
    }

    /// The same of all that a rule is about.
    pub(super) fn judge_pool(self, pool: &Pool, cluster: Cluster) -> Judged {
        let (counts, upper) = match pool {
            Pool::Units(units) => return self.judge(units, cluster),
            Pool::Limited(counts, upper) => (*counts, *upper),
        };
        let holds = upper.is_some_and(|upper| upper <= self.max_rate);
        let check = RateCheck {
            // the lower limit by unit is not known: nothing is shown to be broken
            lower: None,
            upper,
            decision: if holds {
                Decision::Pass
            } else {
                Decision::Inconclusive
            },
            reason: None,
            ..check_rate(counts, self.max_rate, self.level)
        };
        let found = KeyedCheck {
            check,
            deff: None,
            adjusted: true,
        };
        Judged {
            figure: self.figure(counts, &found),
            // It may be a failure: what cannot tell is never mapped to a pass.
            verdict: Some(if holds { Verdict::Pass } else { Verdict::NoData }),
            code: (!holds).then_some(Code::NotInSource),
            reason: (!holds).then(|| {
                format!(
                    "kills come together on {}s, and the sweep has no lower limit of that: gate the dataset",
                    cluster.name()
                )
            }),
            ..Judged::default()
        }
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
    if let (Metric::FalseKillsPerHour, Some(swept)) = (rule.metric, &figures.swept) {
        return doubted(
            rule,
            figures,
            by_limits_of(rule, swept.per_hour(rule, level)),
        );
    }
    let counted = match counted(rule, figures) {
        Ok(counted) => counted,
        Err(lacking) => return lacking.into(),
    };
    let mut judged = under(rule, counted, TieRule::TimerFirst, level);
    if counted.has_ties() {
        let other = under(rule, counted, TieRule::EventFirst, level);
        if other.verdict != judged.verdict {
            (judged.verdict, judged.code) = (Some(Verdict::Inconclusive), Some(Code::TieRule));
        }
    }
    if !rule.sequence.is_empty() {
        sequence(rule, figures, window_ms, level, &mut judged);
    }
    doubted(rule, figures, judged)
}

/// A pass on the false kills of telemetry in which killed gaps seem to be missing is none.
fn doubted(rule: &FigureRule, figures: &Figures, mut judged: Judged) -> Judged {
    let doubted = matches!(
        rule.metric,
        Metric::FalseKillRate | Metric::FalseKillsPerHour
    );
    if doubted && judged.verdict == Some(Verdict::Pass) && figures.kills_missing.is_some() {
        (judged.verdict, judged.code) = (Some(Verdict::Inconclusive), Some(Code::KillsMissing));
    }
    judged
}

fn under(rule: &FigureRule, counted: Counted<'_>, ties: TieRule, level: Level) -> Judged {
    let bound = RateBound::new(rule, level);
    let mut pooled = match counted.pool(rule, bound, ties) {
        Ok(pool) => bound.judge_pool(&pool, rule.cluster),
        Err(lacking) => return lacking.into(),
    };
    let Scope::Every(key) = rule.scope else {
        return pooled;
    };
    let groups = match counted.groups(rule, key, ties) {
        Ok(groups) => groups,
        Err(lacking) => return lacking.into(),
    };
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
            accuses: stratum.lower_shared.map(|limit| bound.back(limit)),
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
        let counted = match (&figures.swept, figures.by_window.get(&window)) {
            (None, Some(outcomes)) => Counted::Runs(outcomes, None),
            (Some(swept), _) if swept.by_window.contains_key(&window) => {
                Counted::Swept(swept, &swept.by_window[&window])
            }
            // what was not swept cannot be stepped over
            (Some(_), _) => {
                *judged = Judged::lacking(format!(
                    "the sweep holds no cell that differs from the policy in a window of {} alone",
                    duration::show(Millis::new(window))
                ));
                return;
            }
            (None, None) if figures.outcomes.is_some() => {
                *judged = Judged::lacking(format!(
                    "the summary does not answer the policy with a window of {}",
                    duration::show(Millis::new(window))
                ));
                return;
            }
            (None, None) => continue,
        };
        let step = under(rule, counted, TieRule::TimerFirst, level);
        if step.reason.is_some() {
            *judged = step;
            return;
        }
        let verdict = step.verdict.unwrap_or(Verdict::NoData);
        judged.parts.push(Part {
            name: window.to_string(),
            figure: step.figure,
            verdict,
            accuses: None,
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
