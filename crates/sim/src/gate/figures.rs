//! What rules are decided on, collected from a dataset once.

use std::collections::BTreeMap;

use policysim_policy::{Millis, Policy};

use crate::cluster::Cluster;
use crate::gaps::{self, Line, Silences};
use crate::readings;
use crate::run::{EventFlags, Fleet};
use crate::scan::Scan;
use crate::settle::{Cast, Settlement, settlement_at};
use crate::stats::QuantileEstimate;
use crate::summary::{NeedsEvents, Summary, is_replayed, summarise};
use crate::sweep::{Candidate, Question};

use super::detector::Suspicions;
use super::outcome::{Outcomes, outcomes, outcomes_of_summary};
use super::rules::{Needs, Parents};
use super::swept::Swept;

/// Counts of a dataset itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Telemetry {
    /// Lines of the input.
    pub lines: u64,
    /// Of those, unreadable ones.
    pub malformed: u64,
    /// Waits.
    pub waits: u64,
    /// Of those, left out of sizing.
    pub flagged: u64,
}

/// What simulated parents made of the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// The figures of `settle`.
    pub settled: Settlement,
    /// From the hang to the parent's knowledge, of the hangs it comes to know of, at the quantiles asked for, ms.
    pub knowledge: Vec<QuantileEstimate>,
}

/// What rules are decided on. What a source does not hold is `None`, and no figure is made of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The policy over every run.
    pub outcomes: Option<Outcomes>,
    /// The policy with other windows, ms, over every run.
    pub by_window: BTreeMap<u64, Outcomes>,
    /// Other policies over every run.
    pub against: Vec<(Policy, Outcomes)>,
    /// Parents that wait for every run.
    pub settlements: Vec<(Parents, Simulated)>,
    /// Ended silences of every run.
    pub detector: Option<Suspicions>,
    /// Waits and readings of the policy's idle clock.
    pub silences: Option<BTreeMap<Line, Silences>>,
    /// Counts of the dataset itself.
    pub telemetry: Option<Telemetry>,
    /// What a sweep's result says of the policy, where that is the source.
    pub swept: Option<Swept>,
    /// A sign that gaps which the recorded limit cut are missing.
    pub kills_missing: Option<String>,
}

impl Figures {
    /// The outcomes under another policy.
    pub(super) fn under(&self, other: &Policy) -> Option<&Outcomes> {
        let found = self.against.iter().find(|(policy, _)| policy == other);
        found.map(|(_, outcomes)| outcomes)
    }

    /// The simulation of those parents.
    pub(super) fn settled(&self, parents: &Parents) -> Option<&Simulated> {
        let found = self.settlements.iter().find(|(known, _)| known == parents);
        found.map(|(_, settled)| settled)
    }
}

/// What is said of a dataset beside its runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Origin {
    /// Lines of the input.
    pub lines: u64,
    /// Of those, unreadable ones.
    pub malformed: u64,
    /// Durations without an order: nothing can be replayed.
    pub samples_only: bool,
    /// The idle limit under which the runs were recorded, where the user says so.
    pub recorded_idle: Option<Millis>,
    /// Seed of simulated parents.
    pub seed: u64,
}

/// Collects what `needs` names of `fleet` under `policy`.
pub fn figures_of(fleet: &Fleet, policy: &Policy, needs: &Needs, origin: Origin) -> Figures {
    let mut found = Figures::default();
    if needs.replay && !origin.samples_only {
        let recorded = readings::recorded(fleet, policy, origin.recorded_idle);
        found.kills_missing = recorded.truncation.map(|sign| sign.to_string());
        found.outcomes = Some(outcomes(fleet, policy));
        for &window_ms in &needs.windows {
            let mut other = policy.clone();
            other.idle.window = Some(Millis::new(window_ms));
            found.by_window.insert(window_ms, outcomes(fleet, &other));
        }
        for other in &needs.against {
            found.against.push((other.clone(), outcomes(fleet, other)));
        }
    }
    if !origin.samples_only {
        for parents in &needs.parents {
            let cast = Cast::recorded(fleet, parents.changes, origin.seed);
            let (habits, seed, at) = (&parents.habits, origin.seed, &needs.knowledge);
            let (settled, knowledge) = settlement_at(policy, &cast, habits, seed, at);
            let simulated = Simulated { settled, knowledge };
            found.settlements.push((*parents, simulated));
        }
    }
    if needs.detector && !origin.samples_only {
        found.detector = Some(Suspicions::of(fleet, policy));
    }
    if needs.data {
        let waits = gaps::waits(fleet, None, EventFlags::default());
        let mut telemetry = Telemetry {
            lines: origin.lines,
            malformed: origin.malformed,
            ..Telemetry::default()
        };
        for samples in waits.values() {
            telemetry.waits += samples.n;
            telemetry.flagged += samples.left_out.iter().sum::<u64>();
        }
        found.telemetry = Some(telemetry);
        if needs.silences {
            found.silences = Some(silences(fleet, policy, &waits, origin.samples_only));
        }
    }
    found
}

fn silences(
    fleet: &Fleet,
    policy: &Policy,
    waits: &BTreeMap<(String, crate::run::WaitKind), gaps::WaitSamples>,
    samples_only: bool,
) -> BTreeMap<Line, Silences> {
    let mut idle = BTreeMap::new();
    if !samples_only {
        idle = gaps::idle_readings(fleet, policy, None);
    }
    let mut found: BTreeMap<Line, Silences> = gaps::drift::lines(waits, &idle)
        .into_iter()
        .map(|(line, silences)| (line, silences.clone()))
        .collect();
    if let Some(readings) = idle.remove("") {
        found.insert(Line::Longest, readings.longest);
    }
    found
}

/// The shortest window that a summary answers beside the policy's own.
const LEAST_WINDOW: Millis = Millis::from_secs(30);

/// What a gate on `policy`, and on it with other windows from 30 s up, budgets and caps, is decided on
/// without events; of a policy that only replays answer, what became of every run under it as it is.
///
/// # Errors
/// When a batch of `source` cannot be read.
pub fn summary_of<S: Scan>(source: &S, policy: &Policy) -> Result<Summary, S::Error> {
    let mut candidates = vec![policy.clone()];
    let longer = |window: Millis| window > LEAST_WINDOW;
    if !is_replayed(policy) && policy.idle.window.is_some_and(longer) {
        let mut shorter = policy.clone();
        shorter.idle.window = Some(LEAST_WINDOW);
        candidates.push(shorter);
    }
    let candidates: Vec<Candidate> = candidates
        .into_iter()
        .map(|policy| Candidate {
            policy,
            settings: Vec::new(),
        })
        .collect();
    let question = Question {
        base: policy,
        candidates: &candidates,
        keys: &[],
        seed: 0,
        cluster: Cluster::Run,
    };
    summarise(source, &question)
}

/// Collects what `needs` names of a summary; of `origin` its counts of lines and its recorded idle limit. Waits and
/// readings of the idle clock are not in one, nor are parents simulated without events.
///
/// # Errors
/// When the summary does not hold what the policy is answered from.
pub fn figures_of_summary(
    summary: &Summary,
    policy: &Policy,
    needs: &Needs,
    origin: Origin,
) -> Result<Figures, NeedsEvents> {
    let waits = summary.waits();
    let mut found = Figures {
        telemetry: Some(Telemetry {
            lines: origin.lines,
            malformed: origin.malformed,
            waits: waits.n,
            flagged: waits.left_out,
        }),
        ..Figures::default()
    };
    if needs.replay {
        let recorded = summary.recorded(policy, origin.recorded_idle)?;
        found.kills_missing = recorded.truncation.map(|sign| sign.to_string());
        found.outcomes = Some(outcomes_of_summary(summary, policy)?);
        for &window_ms in &needs.windows {
            let mut other = policy.clone();
            other.idle.window = Some(Millis::new(window_ms));
            // a window that the summary does not answer leaves its rule without data
            if let Ok(outcomes) = outcomes_of_summary(summary, &other) {
                found.by_window.insert(window_ms, outcomes);
            }
        }
        for other in &needs.against {
            // a policy of another structure is not in the summary: its rules have no data
            if let Ok(outcomes) = outcomes_of_summary(summary, other) {
                found.against.push((other.clone(), outcomes));
            }
        }
    }
    Ok(found)
}
