//! A policy's figures as the result of a sweep holds them: totals over its runs, no run, day or wait by itself.
//!
//! A rule is answered where its answer from the runs would be the same, or where a limit that the sweep worked out from
//! them serves. Everything else has no data, with the reason.

use std::collections::BTreeMap;

use policysim_policy::{Cause, Policy, document};

use crate::certify::TieRule;
use crate::cluster::Cluster;
use crate::stats::verdict::RunCounts;
use crate::stats::{Estimate, Interval, Level, Prob};
use crate::strata::StratumKey;

use super::amount::{Context, between, exact, share};
use super::check::{Code, Figure};
use super::cost::{LEAST_LOSSES, few_losses};
use super::counted::Pool;
use super::metric::Metric;
use super::rate::{Judged, Lacking, RateBound, nothing};
use super::rules::{Bound, FigureRule, Parents, Scope};
use super::settled::within;

/// Fewer hits than this have no design effect over units: their limits are those of independent runs (statistics
/// section 3).
const LEAST_HITS: u64 = 5;

/// One window as a failure detector, as a sweep tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweptDetector {
    /// Ended silences.
    pub gaps: u64,
    /// Of at least the window.
    pub mistakes: u64,
    /// Figures with their two-sided 95 % limits, which only the cell that the sweep is about has.
    pub figures: BTreeMap<Metric, (Option<f64>, Interval)>,
}

/// One cell of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweptCell {
    /// False kills, unresolved runs, and runs not labelled as hung.
    pub counts: RunCounts,
    /// Of the unresolved runs, the killed ones.
    pub unresolved_kills: u64,
    /// False and unresolved kills that are none if an event at the deadline comes first.
    pub ties: u64,
    /// Kills that the record confirms.
    pub true_kills: u64,
    /// All kills, hung runs included, by cause.
    pub kills: BTreeMap<Cause, u64>,
    /// Runs labelled as hung: all, killed after they hung, killed before, never killed.
    pub hung: [u64; 4],
    /// Counts by group.
    pub strata: Vec<(StratumKey, String, RunCounts)>,
    /// Independent units, not runs, gave the limit.
    pub by_unit: bool,
    /// One-sided 95 % upper limit of the false-kill rate, unresolved runs counted as kills.
    pub upper: Option<f64>,
    /// False kills per active hour with two-sided 95 % limits, unresolved runs not counted.
    pub per_hour: (Option<f64>, Interval),
    /// p99 of the detection time over the detected hangs, ms, with two-sided 95 % limits.
    pub detection_p99_ms: (Option<f64>, Interval),
    /// Runs killed falsely or in doubt by this cell and not by the base.
    pub newly_killed: u64,
    /// The other way round.
    pub newly_spared: u64,
    /// Active time lost to false kills, ms.
    pub work_lost_ms: u64,
    /// Simulated settlement by its name in `settle`.
    pub settlement: BTreeMap<String, Estimate>,
    /// The watchdog as a failure detector; `None` where the window is off.
    pub detector: Option<SweptDetector>,
}

/// What a sweep's result says of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The cell that equals it.
    pub cell: SweptCell,
    /// Cells that equal it but for the window, ms.
    pub by_window: BTreeMap<u64, SweptCell>,
    /// The policy that the cells are compared with.
    pub base: Policy,
    /// What the sweep took as independent.
    pub cluster: Cluster,
    /// The parents that it simulated, spelled out under the policy.
    pub parents: Option<Parents>,
}

/// Whether two policies say the same in every key: one of them was read back from what was written.
fn is_same(left: &Policy, right: &Policy) -> bool {
    left == right || document::print(left, None) == document::print(right, None)
}

fn lacking(reason: impl Into<String>) -> Judged {
    Judged::lacking(reason)
}

/// Limits of a two-sided 95 % interval, where one of its sides is enough at `level`.
fn side(
    point: Option<f64>,
    limits: Interval,
    (n, hits): (Option<u64>, Option<u64>),
    level: Level,
) -> Judged {
    if !within(level) {
        return lacking("a sweep's limits are two-sided at 95 %: one side holds at 0.975 at most");
    }
    Judged {
        figure: Figure {
            point,
            lower: limits.lo,
            upper: limits.up,
            n,
            hits,
            ..Figure::default()
        },
        ..Judged::default()
    }
}

impl SweptCell {
    /// The counts as they stand if events at a deadline come first: at most so few.
    fn spared(counts: RunCounts, ties: u64) -> RunCounts {
        let kills = counts.kills.saturating_sub(ties);
        RunCounts {
            kills,
            unresolved: counts
                .worst_kills()
                .saturating_sub(ties)
                .saturating_sub(kills),
            ..counts
        }
    }

    const fn tied(&self, ties: TieRule) -> u64 {
        match ties {
            TieRule::EventFirst => self.ties,
            TieRule::TimerFirst => 0,
        }
    }

    /// The counts of each group of `key`.
    pub(super) fn groups(
        &self,
        rule: &FigureRule,
        key: StratumKey,
        ties: TieRule,
    ) -> Result<Vec<(String, RunCounts)>, Lacking> {
        if rule.metric != Metric::FalseKillRate || rule.cause.is_some() {
            return Err(Lacking::because(
                "a sweep tells the false-kill rate by group, no other rate",
            ));
        }
        let found: Vec<(String, RunCounts)> = self
            .strata
            .iter()
            .filter(|(known, _, counts)| *known == key && counts.runs > 0)
            .map(|(_, name, counts)| (name.clone(), Self::spared(*counts, self.tied(ties))))
            .collect();
        if found.is_empty() && self.counts.runs > 0 {
            return Err(Lacking::because(format!(
                "the sweep tells no {0} apart: sweep --by {0}",
                key.name()
            )));
        }
        Ok(found)
    }

    /// The counts that a rule is about, without their units.
    fn total(&self, base: &Policy, rule: &FigureRule, ties: TieRule) -> Result<RunCounts, Lacking> {
        let hung = |hits: u64| RunCounts {
            kills: hits,
            unresolved: 0,
            runs: self.hung[0],
        };
        let alive = |hits: u64| RunCounts {
            kills: hits,
            unresolved: self.unresolved_kills,
            runs: self.counts.runs,
        };
        // the sweep does not say how many of them are in doubt: as many as may be
        let paired = |hits: u64, doubtful: u64| RunCounts {
            kills: hits - hits.min(doubtful),
            unresolved: hits.min(doubtful),
            runs: self.counts.runs,
        };
        if let Scope::One(key, name) = &rule.scope {
            let groups = self.groups(rule, *key, ties)?;
            let group = groups.into_iter().find(|(group, _)| group == name);
            return Ok(group.map(|(_, counts)| counts).unwrap_or_default());
        }
        match (rule.metric, rule.cause) {
            (Metric::FalseKillRate, None) => Ok(Self::spared(self.counts, self.tied(ties))),
            (Metric::FalseKillRate, Some(_)) => Err(Lacking::because(
                "a sweep does not tell which cause its false kills have",
            )),
            (Metric::KillRate, cause) => {
                let kills = match cause {
                    Some(cause) => self.kills.get(&cause).copied().unwrap_or_default(),
                    None => self.kills.values().sum(),
                };
                let counts = RunCounts {
                    kills,
                    unresolved: self.counts.unresolved - self.unresolved_kills,
                    runs: self.counts.runs + self.hung[0],
                };
                Ok(Self::spared(counts, self.tied(ties)))
            }
            (Metric::TrueKillRate, _) => Ok(alive(self.true_kills)),
            (Metric::DetectedShare, _) => Ok(RunCounts {
                runs: self.hung[0] - self.hung[2],
                ..hung(self.hung[1])
            }),
            (Metric::KilledEarlyShare, _) => Ok(hung(self.hung[2])),
            (Metric::MissedShare, _) => Ok(hung(self.hung[3])),
            (
                Metric::NewlyKilled
                | Metric::NewlyKilledRate
                | Metric::NewlySpared
                | Metric::NewlySparedRate,
                _,
            ) => {
                if let Some(other) = rule
                    .against
                    .as_ref()
                    .filter(|other| !is_same(&other.policy, base))
                {
                    return Err(Lacking::because(format!(
                        "a sweep is compared with its base policy alone, and {} is another",
                        other.name
                    )));
                }
                match rule.metric {
                    Metric::NewlyKilled | Metric::NewlyKilledRate => Ok(Self::spared(
                        paired(self.newly_killed, self.unresolved_kills),
                        self.tied(ties),
                    )),
                    // those in doubt are the base's, and so are the ties, which are not told
                    Metric::NewlySpared => Ok(paired(self.newly_spared, self.newly_spared)),
                    _ => Err(Lacking::because(
                        "a sweep does not tell which kills of its base hang on the order at one instant",
                    )),
                }
            }
            _ => Err(Lacking::because(
                "a sweep's result does not hold what this is made of",
            )),
        }
    }
}

impl Swept {
    /// The counts of a rate by unit, where they are those of the sum; else the limit that the sweep has.
    pub(super) fn pool(
        &self,
        cell: &SweptCell,
        rule: &FigureRule,
        bound: RateBound,
        ties: TieRule,
    ) -> Result<Pool, Lacking> {
        let counts = cell.total(&self.base, rule, ties)?;
        let few = bound.turned(counts).worst_kills() < LEAST_HITS;
        if rule.cluster == Cluster::Run || few {
            return Ok(Pool::Units(vec![counts]));
        }
        let is_whole =
            rule.metric == Metric::FalseKillRate && !matches!(rule.scope, Scope::One(..));
        if !is_whole || rule.cluster != self.cluster {
            return Err(Lacking::because(format!(
                "a sweep's result does not tell on which {}s these {} fall: gate the dataset, or write cluster = \"run\"",
                rule.cluster.name(),
                rule.metric.noun()
            )));
        }
        if !cell.by_unit {
            return Ok(Pool::Units(vec![counts]));
        }
        if bound.level != Level::P95 || rule.bound != Bound::Max {
            return Err(Lacking::because(format!(
                "kills come together on {}s, and the sweep has their upper limit at 95 % alone: gate the dataset",
                self.cluster.name()
            )));
        }
        Ok(Pool::Limited(counts, cell.upper))
    }

    /// A figure that is no rate.
    pub(super) fn amount(&self, rule: &FigureRule, context: Context<'_>) -> Judged {
        let cell = &self.cell;
        let (healthy, all) = (cell.counts.runs, cell.counts.runs + cell.hung[0]);
        let some = |count: u64| (all > 0).then_some(count as f64);
        match rule.metric {
            Metric::Runs => exact(some(healthy), Some(healthy)),
            Metric::HungRuns => exact(some(cell.hung[0]), Some(all)),
            Metric::Ties => exact(some(cell.ties), Some(healthy)),
            Metric::UnresolvedShare => exact(share(cell.counts.unresolved, healthy), Some(healthy)),
            Metric::NewlyKilled | Metric::NewlySpared => {
                match cell.total(&self.base, rule, TieRule::TimerFirst) {
                    Err(lacking) => lacking.into(),
                    Ok(found) => {
                        let known = |count: u64| (found.runs > 0).then_some(count as f64);
                        let count = known(found.worst_kills());
                        let mut judged = between(known(found.kills), count, Some(found.runs));
                        judged.figure.point = count;
                        judged
                    }
                }
            }
            Metric::WorkLost => self.work_lost(context),
            Metric::CostPerHang
            | Metric::CostPerRun
            | Metric::MeanDetectionTime
            | Metric::SlotTimeLost => lacking(
                "a sweep's result holds no session by itself, and the spread of this is over sessions",
            ),
            Metric::Sessions => lacking("a sweep's result does not count sessions"),
            Metric::FlaggedShare => lacking("a sweep's result holds no waits"),
            _ => lacking("a sweep's result does not hold what this is made of"),
        }
    }

    fn work_lost(&self, context: Context<'_>) -> Judged {
        let counts = self.cell.counts;
        if counts.runs == 0 {
            return nothing();
        }
        let losing = counts.worst_kills();
        if losing >= LEAST_LOSSES {
            return lacking(
                "a sweep's result holds no session by itself, and the spread of this is over sessions",
            );
        }
        let upper = few_losses(losing, counts.runs, context.policy, 0, context.level);
        Judged {
            code: upper.is_none().then_some(Code::FewKills),
            figure: Figure {
                point: share(self.cell.work_lost_ms, counts.runs),
                upper,
                n: Some(counts.runs),
                hits: Some(losing),
                ..Figure::default()
            },
            ..Judged::default()
        }
    }

    /// A quantile: the p99 of the detection time is the only one that a sweep tells with its limits.
    pub(super) fn quantile(&self, rule: &FigureRule, p: Prob, level: Level) -> Judged {
        let [hung, detected, _, missed] = self.cell.hung;
        match rule.metric {
            Metric::DetectionTime if p != Prob::P99 => lacking(
                "a sweep tells the p99 of the detection time, no other quantile with its limits",
            ),
            Metric::DetectionTime if hung == 0 => nothing(),
            Metric::DetectionTime if missed > 0 => lacking(
                "some hangs are not told within their record, and the sweep's p99 is of the others",
            ),
            Metric::DetectionTime if rule.cluster != Cluster::Run && detected >= LEAST_HITS => {
                lacking(format!(
                    "a sweep's result does not tell on which {}s hangs fall: gate the dataset, or write cluster = \"run\"",
                    rule.cluster.name()
                ))
            }
            Metric::DetectionTime => {
                let (point, limits) = self.cell.detection_p99_ms;
                side(point, limits, (Some(detected), None), level)
            }
            _ => lacking("a sweep's result holds no waits and no readings of the idle clock"),
        }
    }

    /// False kills per hour: the sweep's limits, where nothing is in doubt.
    pub(super) fn per_hour(&self, rule: &FigureRule, level: Level) -> Judged {
        let counts = self.cell.counts;
        if rule.cause.is_some() {
            return lacking("a sweep does not tell which cause its false kills have");
        }
        if counts.runs == 0 {
            return nothing();
        }
        if counts.unresolved > 0 || self.cell.ties > 0 {
            return lacking("the sweep's limits per hour count neither unresolved runs nor ties");
        }
        if rule.cluster != Cluster::Run && counts.kills >= LEAST_HITS {
            return lacking(format!(
                "the sweep's limits per hour do not count by {}: gate the dataset, or write cluster = \"run\"",
                rule.cluster.name()
            ));
        }
        let (point, limits) = self.cell.per_hour;
        side(point, limits, (None, None), level)
    }

    /// A figure of the window as a failure detector.
    pub(super) fn detector(&self, rule: &FigureRule, level: Level) -> Judged {
        let Some(detector) = &self.cell.detector else {
            return lacking("the idle window is off, so that no run is ever suspected");
        };
        let counted = (Some(detector.gaps), Some(detector.mistakes));
        if detector.gaps == 0 {
            return nothing();
        }
        if rule.metric == Metric::Mistakes {
            return exact(Some(detector.mistakes as f64), Some(detector.gaps));
        }
        match detector.figures.get(&rule.metric) {
            Some((point, limits)) => side(*point, *limits, counted, level),
            None => lacking(
                "a sweep has limits of this for the cell that it is about alone, and this is another",
            ),
        }
    }

    /// A figure of simulated settlement, where the sweep simulated the very parents of the rule.
    pub(super) fn settled(&self, rule: &FigureRule, policy: &Policy) -> Result<Estimate, Lacking> {
        let Some(parents) = self.parents else {
            return Err(Lacking::because(
                "the sweep simulated no parents: sweep --settle",
            ));
        };
        if parents != rule.parents.under(policy) {
            return Err(Lacking::because(
                "the sweep simulated other parents, or another share of hangs, than this rule is about",
            ));
        }
        let figure = rule
            .metric
            .in_settle()
            .and_then(|name| self.cell.settlement.get(name));
        figure.copied().ok_or_else(|| {
            Lacking::because("a sweep's result does not hold this figure of settlement")
        })
    }
}
