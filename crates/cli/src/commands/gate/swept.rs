//! The result set of a sweep as what a gate is decided on: the cell that equals the policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use policysim_policy::document::{KEYS, Value};
use policysim_policy::{Cause, Millis, Policy};
use policysim_report::header::DataHeader;
use policysim_report::sizing::facts::{Cell, DetectorLimits, Figure, Limits, Sweep, SweepFacts};
use policysim_sim::cluster::Cluster;
use policysim_sim::gate::{
    Figures, Metric, Needs, Parents, Rules, Swept, SweptCell, SweptDetector, Telemetry,
};
use policysim_sim::grid;
use policysim_sim::settle::Habits;
use policysim_sim::stats::verdict::RunCounts;
use policysim_sim::stats::{Estimate, Interval, Prob, Reason};
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::{Axis, candidates};

use crate::commands::settle::changes_beside;
use crate::data::SWEEP_FILE;
use crate::policy_file;

/// How many differing keys an error names.
const KEYS_NAMED: usize = 4;

/// A result set, read for one policy.
pub(super) struct ResultSet {
    pub(super) header: DataHeader,
    pub(super) figures: Figures,
}

/// Reads the result set in `folder` for what `needs` names of `policy`.
///
/// # Errors
/// When it does not read, or no cell of it equals the policy.
pub(super) fn read(
    folder: &Path,
    policy: &policy_file::Loaded,
    rules: &Rules,
    needs: &Needs,
) -> Result<ResultSet> {
    let path = folder.join(SWEEP_FILE);
    let shown = path.display().to_string();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
    let sweep = SweepFacts::parse(&text)
        .with_context(|| shown.clone())?
        .sweep;
    if let Some(said) = rules.recorded_idle
        && sweep.recorded.idle_limit_ms != Some(said.as_u64())
    {
        bail!(
            "{shown}: the rules say recorded_idle = \"{}\" and the sweep took {}: sweep with --recorded-idle, or gate the dataset",
            policysim_policy::duration::show(said),
            sweep.recorded.idle_limit_ms.map_or_else(
                || "no limit".to_owned(),
                |ms| policysim_policy::duration::show(Millis::new(ms))
            ),
        );
    }
    let document = sweep.base_policy.as_deref().with_context(|| {
        format!("{shown}: it does not say what its base policy was: sweep again with this version")
    })?;
    let base = policy_file::parse_document(document)
        .map_err(|fault| fault.in_file(&format!("{shown}: base_policy")))?;
    let policies = policies(&sweep, &base).with_context(|| shown.clone())?;
    let place = equal(&sweep, &policies, policy, folder)?;
    let cell = &sweep.cells[place];
    let by_window = needs
        .windows
        .iter()
        .filter_map(|&window_ms| {
            let mut other = policy.policy.clone();
            other.idle.window = Some(Millis::new(window_ms));
            let place = policies
                .iter()
                .position(|known| differing(known, &other).is_empty())?;
            Some((window_ms, of_cell(&sweep, &sweep.cells[place])))
        })
        .collect();
    let swept = Swept {
        cell: of_cell(&sweep, cell),
        by_window,
        base,
        cluster: cluster(&sweep).with_context(|| shown.clone())?,
        parents: parents(&sweep, cell, &policy.policy),
    };
    let data = &sweep.data;
    Ok(ResultSet {
        figures: Figures {
            swept: Some(swept),
            telemetry: Some(Telemetry {
                lines: data.lines,
                malformed: data.malformed_lines,
                ..Telemetry::default()
            }),
            kills_missing: sweep.recorded.kills_missing.clone(),
            ..Figures::default()
        },
        header: header(&sweep),
    })
}

fn header(sweep: &Sweep) -> DataHeader {
    let data = &sweep.data;
    DataHeader {
        name: data.name.clone(),
        digest: data.digest.clone(),
        runs: data.runs,
        sources: data.sources,
        unanswered: data.unanswered,
        open_runs: data.open_runs,
        hung: data.hung,
        first_day: data.first_day.clone(),
        last_day: data.last_day.clone(),
        malformed_lines: data.malformed_lines,
        lines: data.lines,
        caveats: data.caveats.clone(),
    }
}

fn cluster(sweep: &Sweep) -> Result<Cluster> {
    let Some(name) = &sweep.cluster else {
        return Ok(Cluster::Day);
    };
    let known = Cluster::ALL
        .into_iter()
        .find(|cluster| cluster.name() == name);
    known.with_context(|| format!("cluster: {name} is not one of day, run, session"))
}

/// The policy of every cell.
fn policies(sweep: &Sweep, base: &Policy) -> Result<Vec<Policy>> {
    let of = |cell: &Cell| -> Result<Policy> {
        let axes = sweep.axes.iter().map(|key| Axis {
            key: key.clone(),
            values: vec![grid::single(cell.setting(key))],
        });
        let axes: Vec<Axis> = axes.collect();
        let mut found = candidates(base, &axes)?;
        found
            .pop()
            .map(|candidate| candidate.policy)
            .context("no candidate")
    };
    sweep
        .cells
        .iter()
        .map(|cell| of(cell).with_context(|| format!("cell {}", cell.cell)))
        .collect()
}

/// The keys in which two policies differ.
fn differing(left: &Policy, right: &Policy) -> Vec<&'static str> {
    if left == right {
        return Vec::new();
    }
    KEYS.iter()
        .map(|key| key.info.path)
        .filter(|path| left.get(path) != right.get(path))
        .collect()
}

/// The cell that equals the policy.
///
/// # Errors
/// When none does: the nearest one and where it differs.
fn equal(
    sweep: &Sweep,
    policies: &[Policy],
    policy: &policy_file::Loaded,
    folder: &Path,
) -> Result<usize> {
    let window_ms = |policy: &Policy| policy.idle.window.map_or(u64::MAX, Millis::as_u64);
    let wanted = window_ms(&policy.policy);
    let nearest = policies
        .iter()
        .enumerate()
        .map(|(place, known)| {
            let keys = differing(known, &policy.policy);
            ((keys.len(), window_ms(known).abs_diff(wanted)), place, keys)
        })
        .min_by_key(|(distance, place, _)| (*distance, *place));
    let Some((_, place, keys)) = nearest else {
        bail!("{}: the sweep holds no cell", folder.display());
    };
    if keys.is_empty() {
        return Ok(place);
    }
    let plain = |value: Option<Value>| {
        value
            .as_ref()
            .map_or_else(|| "not set".to_owned(), grid::plain)
    };
    let mut told: Vec<String> = keys
        .iter()
        .take(KEYS_NAMED)
        .map(|key| {
            format!(
                "{key} ({} there, {} in the policy)",
                plain(policies[place].get(key)),
                plain(policy.policy.get(key))
            )
        })
        .collect();
    if keys.len() > KEYS_NAMED {
        told.push(format!("{} keys more", keys.len() - KEYS_NAMED));
    }
    bail!(
        "{}: no cell of the sweep equals {}: the nearest is cell {}, {}, which differs in {}; sweep with --base {} and that cell among its axes, or gate the dataset",
        folder.display(),
        policy.name,
        sweep.cells[place].cell,
        sweep.settings(&sweep.cells[place]),
        told.join(", "),
        policy.name,
    );
}

/// The parents that the sweep simulated, spelled out under the policy.
fn parents(sweep: &Sweep, cell: &Cell, policy: &Policy) -> Option<Parents> {
    if cell.settlement.is_empty() {
        return None;
    }
    let given = (sweep.cost.hang_rates_source == "given").then_some(sweep.cost.hang_rates.lo);
    let hang_rate = given.flatten().and_then(Prob::nearest);
    let parents = Parents {
        habits: Habits {
            wait: Some(Millis::new(sweep.task_wait_ms)),
            ..Habits::default()
        },
        changes: changes_beside(hang_rate, sweep.data.hung > 0, &mut Vec::new()),
    };
    Some(parents.under(policy))
}

fn interval(limits: Limits) -> Interval {
    Interval {
        lo: limits.lo,
        up: limits.up,
    }
}

fn of_cell(sweep: &Sweep, cell: &Cell) -> SweptCell {
    let cause = |(name, kills): (&String, &u64)| Some((Cause::from_name(name)?, *kills));
    let key = |name: &str| StratumKey::ALL.into_iter().find(|key| key.name() == name);
    let ms = |ms: Option<u64>| ms.map(|ms| ms as f64);
    SweptCell {
        counts: RunCounts {
            kills: cell.false_kills,
            unresolved: cell.unresolved(),
            runs: cell.runs,
        },
        unresolved_kills: cell.unresolved_kills,
        ties: cell.ties,
        true_kills: cell.true_kills,
        kills: cell.kills.iter().filter_map(cause).collect(),
        hung: [
            cell.hung,
            cell.detection.n,
            cell.hung_killed_early,
            cell.hung_missed,
        ],
        strata: cell
            .strata
            .iter()
            .filter_map(|stratum| {
                let counts = RunCounts {
                    kills: stratum.false_kills,
                    unresolved: stratum.unresolved,
                    runs: stratum.runs,
                };
                Some((key(&stratum.key)?, stratum.group.clone(), counts))
            })
            .collect(),
        by_unit: cell.limit_by_unit,
        upper: cell.false_kill_rate_up_one_sided,
        per_hour: (
            cell.false_kills_per_hour,
            interval(cell.false_kills_per_hour_interval),
        ),
        detection_p99_ms: (
            ms(cell.detection.p99_ms),
            cell.detection
                .p99
                .map_or(Interval::none(), |p99| interval(p99.interval_ms)),
        ),
        newly_killed: cell.against_base.newly_killed,
        newly_spared: cell.against_base.newly_spared,
        work_lost_ms: cell.work_lost_ms,
        settlement: cell
            .settlement
            .iter()
            .map(|(name, figure)| (name.clone(), estimate(figure)))
            .collect(),
        detector: cell.detector.map(|detector| SweptDetector {
            gaps: detector.gaps,
            mistakes: detector.mistakes,
            figures: sweep
                .focus
                .as_ref()
                .filter(|focus| focus.cell == cell.cell)
                .and_then(|focus| focus.detector.as_ref())
                .map(|limits| limited(&detector, limits))
                .unwrap_or_default(),
        }),
    }
}

fn estimate(figure: &Figure) -> Estimate {
    match figure.point {
        Some(point) => Estimate {
            // of the reasons why limits are missing this one says that no number of runs brings them
            reason: figure
                .reason
                .as_ref()
                .filter(|reason| reason.code == Reason::ZeroVariance.code())
                .map(|_| Reason::ZeroVariance),
            ..Estimate::with_interval(figure.n, point, interval(figure.interval))
        },
        None => Estimate::missing(figure.n, Reason::NoData),
    }
}

/// Figures of the focus cell as a detector, with their limits.
fn limited(
    detector: &policysim_report::sizing::facts::Detector,
    limits: &DetectorLimits,
) -> BTreeMap<Metric, (Option<f64>, Interval)> {
    [
        (
            Metric::PerGapRate,
            detector.per_gap_rate,
            limits.per_gap_rate.interval,
        ),
        (
            Metric::MistakesPerActiveHour,
            detector.mistakes_per_active_hour,
            limits.mistakes_per_active_hour_interval,
        ),
        (
            Metric::MistakeRecurrence,
            detector.mistake_recurrence_ms,
            limits.mistake_recurrence_interval_ms,
        ),
        (
            Metric::QueryAccuracy,
            detector.query_accuracy,
            limits.query_accuracy_interval,
        ),
    ]
    .into_iter()
    .map(|(metric, point, limits)| (metric, (point, interval(limits))))
    .collect()
}
