//! A sweep as JSON: what the table says, unrounded, and what has no room there.

use std::collections::BTreeMap;

use policysim_policy::{Cause, document};
use policysim_sim::choose::{Detection, Rejection};
use policysim_sim::focus::{Focus, Rival, Sampled};
use policysim_sim::grid;
use policysim_sim::hang_cost::Refusal;
use policysim_sim::readings::Detector;
use policysim_sim::stats::paired::PairedDifference;
use policysim_sim::stats::verdict::Decision;
use policysim_sim::stats::{
    Estimate, Interval, Level, Prob, QuantileEstimate, Reason, json, rates,
};
use serde::Serialize;

use super::{IDLE_CLOCK, SweepResult, detection_source, ends};
use crate::SCHEMA_VERSION;
use crate::gaps::json::JsonFinding;
use crate::header::DataHeader;

impl SweepResult {
    /// The result as JSON.
    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        let cells = (0..self.cells.len())
            .map(|index| self.json_cell(index))
            .collect();
        serde_json::to_string_pretty(&JsonSweep {
            schema_version: SCHEMA_VERSION,
            data: &self.data,
            base: &self.base,
            base_policy: document::print(&self.base_policy, None),
            axes: self.axes.iter().map(|axis| axis.key.as_str()).collect(),
            task_wait_ms: self.task_wait.as_u64(),
            cluster: self.cluster.name(),
            settlement: "closed form: max(0, 1 - (window + settling lag) / wait), start uniform in the wait",
            constraints: JsonConstraints {
                max_false_kill_rate: self.constraints.max_false_kill.map(Prob::to_f64).map(json),
                settle_within_wait: self.constraints.settle_within_wait,
            },
            recommendation: self.choice.recommended.map(|index| index + 1),
            qualifying_cells: self.choice.qualifying,
            nearest: self.choice.nearest.map(|(index, why)| JsonNearest {
                cell: index + 1,
                reason: self.why(index, why),
                runs_needed: match why {
                    Rejection::RateNotCertified { needed } => needed,
                    _ => None,
                },
            }),
            reason: self.answer(),
            notes: self.remarks(),
            protection: self.json_protection(),
            cost: self.json_cost(),
            focus: self.resampled.as_ref().map(JsonFocus::new),
            recorded: self.json_recorded(),
            findings: self
                .findings
                .iter()
                .map(|finding| JsonFinding::new(IDLE_CLOCK, finding, &self.base))
                .collect(),
            cells,
        })
    }

    fn json_protection(&self) -> JsonProtection {
        let first = self.cells.first();
        let all = first.map_or(0, |cell| cell.all.tally.runs);
        let certify = first.map_or(0, |cell| cell.certify.tally.runs);
        JsonProtection {
            method: self.protection.name(),
            seed: self.seed,
            select_runs: if self.is_split() { all - certify } else { all },
            certify_runs: certify,
            in_sample: !self.is_split() && self.cells.len() > 1,
            sequences: self.choice.tests.claims,
            error_per_sequence: json(self.choice.tests.level.alpha(1)),
            smallest_safe_cells: self
                .choice
                .tests
                .smallest
                .iter()
                .map(|cell| cell.map(|index| index + 1))
                .collect(),
            depends_on_tie_rule: self.choice.other_tie_rule.is_some(),
            recommendation_if_ties_survive: self
                .choice
                .other_tie_rule
                .unwrap_or(self.choice.recommended)
                .map(|index| index + 1),
        }
    }

    fn json_cost(&self) -> JsonCost {
        let cost = &self.cost;
        JsonCost {
            unit: "ms per run: (1 - h) x (work lost + restarts) + h x slot lost to a hang",
            restart_ms: cost.options.restart.as_u64(),
            runs: cost.runs,
            hangs: cost.hangs,
            ranked_runs: cost.ranked_runs,
            hang_rates: cost.rates,
            hang_rates_source: cost.source.name(),
            hang_time: cost.hang_time.name(),
            cheapest_cell: cost.cheapest.ok().map(|found| found.cell + 1),
            criterion: if cost.options.hang_rate.is_some() {
                "cost_at_rate"
            } else {
                "minimax_regret"
            },
            value_ms: cost.cheapest.ok().map(|found| json(found.value_ms)),
            upper_bound: cost.cheapest.ok().map(|found| found.upper_bound),
            refused: cost.cheapest.err().map(Refusal::words),
            bayes_cell: cost.bayes.map(|index| index + 1),
            best_for: cost
                .ranges
                .iter()
                .map(|range| JsonRange {
                    cell: range.cell + 1,
                    hang_rate_from: json(range.from),
                    hang_rate_to: json(range.to),
                })
                .collect(),
            focus: cost.focus.map(|focus| JsonFocusCost {
                cell: focus.cell + 1,
                hang_rate: json(focus.hang_rate),
                ranked_ms: focus.ranked_ms.map(json),
                certify_ms: focus.certify_ms.map(json),
                optimism_ms: focus.optimism_ms().map(json),
            }),
        }
    }

    fn json_recorded(&self) -> JsonRecorded {
        JsonRecorded {
            idle_limit_ms: self.recorded.limit.map(|(ms, _)| ms),
            idle_limit_source: self.recorded.limit.map(|(_, source)| source.name()),
            kills: self.recorded.kills,
            kills_missing: self.recorded.truncation.map(|found| found.to_string()),
            aborts_in_silence: self.aborts.map_or(0, |(aborts, _)| aborts),
            per_gap_rate_over_aborts: self.aborts.map(|(_, envelope)| envelope.rate),
            per_gap_limits_over_aborts: self.aborts.map(|(_, envelope)| envelope.limits),
        }
    }

    fn json_cell(&self, index: usize) -> JsonCell<'_> {
        let (cell, figures) = (&self.cells[index], &self.figures[index]);
        let tally = &cell.all.tally;
        let (p50, p99) = ends(&figures.detection);
        let verdict = &self.choice.verdicts[index];
        JsonCell {
            cell: index + 1,
            label: self.candidates[index].label(),
            settings: self.candidates[index]
                .settings
                .iter()
                .map(|(key, value)| (key.as_str(), grid::plain(value)))
                .collect(),
            runs: tally.runs,
            killed: cell.killed(),
            kills: Cause::ALL
                .into_iter()
                .zip(cell.kills)
                .filter(|(cause, _)| cause.is_firing())
                .map(|(cause, kills)| (cause.name(), kills))
                .collect(),
            false_kills: tally.false_kills,
            true_kills: cell.true_kills,
            unresolved_kills: tally.unresolved_kills,
            unresolved_survivals: tally.unresolved_survivals,
            ties_at_w: tally.ties,
            false_kill_rate: figures.false_kill_rate,
            false_kill_rate_bounds: Interval {
                lo: figures.false_kill_rate.point,
                up: figures.unresolved_rate_up,
            },
            false_kill_rate_up_one_sided: figures.verdict.upper.map(json),
            false_kills_per_hour: figures.false_kills_per_hour.map(json),
            false_kills_per_hour_interval: figures.false_kills_per_hour_limits,
            unit_deff: figures.verdict.unit_deff.map(json),
            limit_by_unit: figures.verdict.by_unit,
            certify: JsonCertify {
                place: self.tested(index),
                runs: verdict.counts.runs,
                false_kills: verdict.counts.kills,
                unresolved: verdict.counts.unresolved,
                false_kill_rate_up_one_sided: verdict.upper.map(json),
                decision: verdict.decision.name(),
                runs_needed: verdict.needed,
                unit_deff: verdict.unit_deff.map(json),
                limit_by_unit: verdict.by_unit,
            },
            against_base: JsonPaired::new(
                cell.against_base.only_second,
                cell.against_base.only_first,
                figures.base_minus_this,
                figures.nested_in_base,
            ),
            detector: self.detectors[index].map(JsonDetector::from),
            hung: cell.all.hung,
            hung_killed_early: cell.hung_killed_early,
            hung_missed: cell.hung_missed,
            detection: JsonDetection {
                source: detection_source(&figures.detection),
                n: cell.detections.total(),
                p50_ms: p50,
                p99_ms: p99,
                p50: match &figures.detection {
                    Detection::Measured { p50, .. } => Some(*p50),
                    _ => None,
                },
                p99: match &figures.detection {
                    Detection::Measured { p99, .. } => Some(*p99),
                    _ => None,
                },
            },
            settle_share: figures.settle_share.map(json),
            settlement: self.settled.get(index).map(crate::settle::sweep_json),
            settles_within_wait: figures.settles_within_wait,
            slot_lost_ms: u64::try_from(cell.all.slot_lost_ms).unwrap_or(u64::MAX),
            work_lost_ms: u64::try_from(cell.all.work_lost_ms).unwrap_or(u64::MAX),
            pareto: self.pareto[index],
            strata: self.json_strata(index),
        }
    }

    /// Counts over all runs, verdicts on those that certify.
    fn json_strata(&self, index: usize) -> Vec<JsonStratum<'_>> {
        let cell = &self.cells[index];
        self.strata
            .iter()
            .zip(cell.all.strata.iter().zip(cell.certify.strata.iter()))
            .enumerate()
            .map(|(index, ((key, name), (all, judged)))| {
                let verdict = self.stratum_verdict(index, judged);
                let up = rates::upper_one_sided(all.worst_kills(), all.runs, Level::P95);
                JsonStratum {
                    key: key.name(),
                    group: name,
                    runs: all.runs,
                    false_kills: all.false_kills,
                    unresolved: all.unresolved(),
                    false_kill_rate_up_one_sided: up.map(json),
                    certify_runs: judged.runs,
                    certify_upper: verdict.upper.map(json),
                    decision: match verdict.decision {
                        _ if judged.runs == 0 => "no_data",
                        decision => Decision::name(decision),
                    },
                    runs_needed: verdict.needed,
                    cannot_certify_below_runs: verdict.cannot_certify,
                }
            })
            .collect()
    }
}

#[derive(Serialize)]
struct JsonSweep<'a> {
    schema_version: u32,
    data: &'a DataHeader,
    base: &'a str,
    /// The base as a document, so that a cell can be told from its settings alone.
    base_policy: String,
    axes: Vec<&'a str>,
    task_wait_ms: u64,
    cluster: &'static str,
    settlement: &'a str,
    constraints: JsonConstraints,
    recommendation: Option<usize>,
    qualifying_cells: usize,
    nearest: Option<JsonNearest>,
    reason: String,
    notes: Vec<String>,
    protection: JsonProtection,
    cost: JsonCost,
    focus: Option<JsonFocus>,
    recorded: JsonRecorded,
    findings: Vec<JsonFinding>,
    cells: Vec<JsonCell<'a>>,
}

#[derive(Serialize)]
struct JsonConstraints {
    max_false_kill_rate: Option<f64>,
    settle_within_wait: bool,
}

#[derive(Serialize)]
struct JsonNearest {
    cell: usize,
    reason: String,
    runs_needed: Option<u64>,
}

#[derive(Serialize)]
struct JsonProtection {
    method: &'static str,
    seed: u64,
    select_runs: u64,
    certify_runs: u64,
    in_sample: bool,
    sequences: u64,
    error_per_sequence: f64,
    smallest_safe_cells: Vec<Option<usize>>,
    depends_on_tie_rule: bool,
    recommendation_if_ties_survive: Option<usize>,
}

#[derive(Serialize)]
struct JsonCost {
    unit: &'static str,
    restart_ms: u64,
    runs: u64,
    hangs: u64,
    hang_rates: Interval,
    ranked_runs: u64,
    hang_rates_source: &'static str,
    hang_time: &'static str,
    criterion: &'static str,
    cheapest_cell: Option<usize>,
    value_ms: Option<f64>,
    upper_bound: Option<bool>,
    refused: Option<&'static str>,
    bayes_cell: Option<usize>,
    best_for: Vec<JsonRange>,
    focus: Option<JsonFocusCost>,
}

#[derive(Serialize)]
struct JsonRange {
    cell: usize,
    hang_rate_from: f64,
    hang_rate_to: f64,
}

#[derive(Serialize)]
struct JsonFocusCost {
    cell: usize,
    hang_rate: f64,
    ranked_ms: Option<f64>,
    certify_ms: Option<f64>,
    optimism_ms: Option<f64>,
}

/// The focus cell's intervals, by resampling sessions.
#[derive(Serialize)]
struct JsonFocus {
    cell: usize,
    method: &'static str,
    hang_rate: f64,
    cost_ranked: Option<JsonSampled>,
    cost_certify: Option<JsonSampled>,
    costs_more_than: Vec<JsonRival>,
    detector: Option<JsonDetectorLimits>,
}

#[derive(Serialize)]
struct JsonRival {
    /// The cell; none for the base policy.
    cell: Option<usize>,
    #[serde(flatten)]
    difference: JsonSampled,
}

#[derive(Serialize)]
struct JsonSampled {
    point_ms: f64,
    interval_ms: Interval,
    sessions: usize,
    replicates: u64,
    reason: Option<Reason>,
}

impl JsonSampled {
    fn new(sampled: &Sampled) -> Self {
        Self {
            point_ms: json(sampled.point_ms),
            interval_ms: sampled.spread.interval,
            sessions: sampled.sessions,
            replicates: sampled.spread.replicates,
            reason: sampled.spread.reason,
        }
    }
}

#[derive(Serialize)]
struct JsonDetectorLimits {
    sessions: usize,
    per_gap_rate: Estimate,
    per_gap_deff: Option<f64>,
    per_gap_deff_source: &'static str,
    mistakes_per_active_hour_interval: Interval,
    mistake_recurrence_interval_ms: Interval,
    query_accuracy_interval: Interval,
}

impl JsonFocus {
    fn new(focus: &Focus) -> Self {
        Self {
            cell: focus.cell + 1,
            method: "session bootstrap, percentile interval; per-gap rate: Korn-Graubard",
            hang_rate: json(focus.hang_rate),
            cost_ranked: focus.ranked.as_ref().map(JsonSampled::new),
            cost_certify: focus.certify.as_ref().map(JsonSampled::new),
            costs_more_than: focus
                .against
                .iter()
                .map(|(rival, sampled)| JsonRival {
                    cell: match rival {
                        Rival::Base => None,
                        Rival::Cell(cell) => Some(cell + 1),
                    },
                    difference: JsonSampled::new(sampled),
                })
                .collect(),
            detector: focus.detector.as_ref().map(|limits| JsonDetectorLimits {
                sessions: limits.per_gap_rate.sessions,
                per_gap_rate: limits.per_gap_rate.estimate,
                per_gap_deff: limits.per_gap_rate.deff.map(json),
                per_gap_deff_source: limits.per_gap_rate.source.name(),
                mistakes_per_active_hour_interval: limits.mistakes_per_hour,
                mistake_recurrence_interval_ms: limits.recurrence_ms,
                query_accuracy_interval: limits.query_accuracy.interval,
            }),
        }
    }
}

#[derive(Serialize)]
struct JsonRecorded {
    idle_limit_ms: Option<u64>,
    idle_limit_source: Option<&'static str>,
    kills: u64,
    kills_missing: Option<String>,
    aborts_in_silence: u64,
    per_gap_rate_over_aborts: Option<Interval>,
    per_gap_limits_over_aborts: Option<Interval>,
}

#[derive(Serialize)]
struct JsonCell<'a> {
    cell: usize,
    label: String,
    settings: BTreeMap<&'a str, String>,
    runs: u64,
    killed: u64,
    kills: BTreeMap<&'a str, u64>,
    false_kills: u64,
    true_kills: u64,
    unresolved_kills: u64,
    unresolved_survivals: u64,
    #[serde(rename = "ties_at_W")]
    ties_at_w: u64,
    false_kill_rate: Estimate,
    false_kill_rate_bounds: Interval,
    false_kill_rate_up_one_sided: Option<f64>,
    false_kills_per_hour: Option<f64>,
    false_kills_per_hour_interval: Interval,
    unit_deff: Option<f64>,
    limit_by_unit: bool,
    certify: JsonCertify,
    against_base: JsonPaired,
    detector: Option<JsonDetector>,
    hung: u64,
    hung_killed_early: u64,
    hung_missed: u64,
    detection: JsonDetection,
    settle_share: Option<f64>,
    /// By simulation, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    settlement: Option<BTreeMap<&'static str, &'a Estimate>>,
    settles_within_wait: bool,
    slot_lost_ms: u64,
    work_lost_ms: u64,
    pareto: bool,
    strata: Vec<JsonStratum<'a>>,
}

#[derive(Serialize)]
struct JsonCertify {
    place: &'static str,
    runs: u64,
    false_kills: u64,
    unresolved: u64,
    false_kill_rate_up_one_sided: Option<f64>,
    decision: &'static str,
    runs_needed: Option<u64>,
    unit_deff: Option<f64>,
    limit_by_unit: bool,
}

#[derive(Serialize)]
struct JsonPaired {
    newly_killed: u64,
    newly_spared: u64,
    base_minus_this: Option<f64>,
    interval: Interval,
    mcnemar_p: Option<f64>,
    nested: bool,
}

impl JsonPaired {
    fn new(newly_killed: u64, newly_spared: u64, found: PairedDifference, nested: bool) -> Self {
        Self {
            newly_killed,
            newly_spared,
            base_minus_this: found.difference.map(json),
            interval: found.interval,
            mcnemar_p: found.p_value.map(json),
            nested,
        }
    }
}

#[derive(Serialize)]
struct JsonDetector {
    gaps: u64,
    mistakes: u64,
    mistakes_per_active_hour: Option<f64>,
    mistake_recurrence_ms: Option<f64>,
    query_accuracy: Option<f64>,
    detection_bound_ms: u64,
    per_gap_rate: Option<f64>,
    compounded_run_rate: Option<f64>,
    observed_run_rate: Option<f64>,
    compounded_to_observed: Option<f64>,
}

impl From<Detector> for JsonDetector {
    fn from(detector: Detector) -> Self {
        let (qos, compounding) = (detector.qos, detector.compounding);
        Self {
            gaps: qos.gaps,
            mistakes: qos.mistakes,
            mistakes_per_active_hour: qos.mistakes_per_hour.map(json),
            mistake_recurrence_ms: qos.recurrence_ms.map(json),
            query_accuracy: qos.query_accuracy.map(json),
            detection_bound_ms: qos.detection_bound_ms,
            per_gap_rate: qos.per_gap_rate.map(json),
            compounded_run_rate: compounding.map(|found| json(found.compounded)),
            observed_run_rate: compounding.map(|found| json(found.observed)),
            compounded_to_observed: compounding.and_then(|found| found.ratio).map(json),
        }
    }
}

#[derive(Serialize)]
struct JsonDetection {
    source: &'static str,
    n: u64,
    p50_ms: Option<u64>,
    p99_ms: Option<u64>,
    p50: Option<QuantileEstimate>,
    p99: Option<QuantileEstimate>,
}

#[derive(Serialize)]
struct JsonStratum<'a> {
    key: &'static str,
    group: &'a str,
    runs: u64,
    false_kills: u64,
    unresolved: u64,
    false_kill_rate_up_one_sided: Option<f64>,
    certify_runs: u64,
    certify_upper: Option<f64>,
    decision: &'static str,
    runs_needed: Option<u64>,
    cannot_certify_below_runs: Option<u64>,
}
