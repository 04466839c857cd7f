//! Every figure of a table of gaps, computed once: quantiles, findings, tails, spreads over strata.

use std::collections::BTreeMap;

use policysim_policy::Policy;
use rayon::prelude::*;

use crate::run::{EventFlags, Fleet, WaitKind};
use crate::stats::kaplan_meier::Gap;
use crate::stats::tail::{self, TailEstimate};
use crate::stats::{Level, Prob};
use crate::strata::StratumKey;
use crate::sweep::sized_runs;

use super::findings::{self, Finding, Setting};
use super::sample::{GapQuantile, Silences};
use super::{GapKey, IdleReadings, QUANTILES, WaitSamples, idle_readings, latent_quantiles, waits};

/// One line of a table of gaps.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Line {
    /// Waits of one kind.
    Wait(WaitKind),
    /// Hand-offs that led to output, or were cut by an abort before they could: what pre-token waits would be if nobody
    /// had lost patience.
    HandOff,
    /// Readings of the idle clock.
    Idle,
    /// The longest reading of each run.
    Longest,
}

impl Line {
    /// The line's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait(kind) => kind.name(),
            Self::HandOff => "pre_token or cut",
            Self::Idle => "idle clock",
            Self::Longest => "idle max per run",
        }
    }

    /// Whether its tail is extrapolated where that is asked for: what an idle window is compared with.
    const fn has_tail(self) -> bool {
        matches!(
            self,
            Self::HandOff
                | Self::Idle
                | Self::Longest
                | Self::Wait(WaitKind::PreToken | WaitKind::InterToken)
        )
    }
}

/// The quantiles beyond the data that are extrapolated.
pub const TAIL: [&str; 2] = ["0.999", "0.9999"];

/// A tail, with the silences that were kept out of the fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Which quantile.
    pub p: Prob,
    /// Over all silences.
    pub all: TailEstimate,
    /// Without those of nearly one length; only where there are any.
    pub without_heaps: Option<(u64, TailEstimate)>,
}

/// What is known of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineFigures {
    /// Silences, cut ones included.
    pub n: u64,
    /// Those cut short.
    pub cut: u64,
    /// Sessions; none where the record names none.
    pub sessions: Option<u64>,
    /// The quantiles of [`super::QUANTILES`].
    pub quantiles: Vec<GapQuantile>,
    /// The same by Hyndman & Fan's type 7, ms, for people who compare tools; only where asked for, and none where
    /// silences are cut, of which that definition knows nothing.
    pub type7_ms: Vec<Option<f64>>,
    /// What must be said beside them.
    pub findings: Vec<Finding>,
    /// Extrapolated quantiles, where asked for.
    pub tails: Vec<Tail>,
}

/// The figures of every line of every group.
pub type Figures = BTreeMap<(String, Line), LineFigures>;

/// What to compute beside quantiles.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Questions {
    /// What findings are judged against.
    pub setting: Setting,
    /// The seed of tail tests, where tails are asked for.
    pub tail_seed: Option<u64>,
    /// Whether quantiles are given by type 7 as well.
    pub type7: bool,
}

/// Computes the figures of `waits` and `idle`.
pub fn figures(
    waits: &BTreeMap<(String, WaitKind), WaitSamples>,
    idle: &BTreeMap<String, IdleReadings>,
    ask: Questions,
) -> Figures {
    enum Of<'a> {
        Waits(WaitKind, &'a WaitSamples),
        HandOffs(Silences),
        Idle(&'a IdleReadings),
        Longest(&'a IdleReadings),
    }
    let samples_only = idle.is_empty();
    let mut lines: Vec<(String, Line, Of<'_>)> = Vec::new();
    for ((group, kind), samples) in waits {
        lines.push((group.clone(), Line::Wait(*kind), Of::Waits(*kind, samples)));
        if *kind == WaitKind::Censored && !samples.silences.is_empty() {
            let mut silences = samples.silences.clone();
            if let Some(waits) = waits.get(&(group.clone(), WaitKind::PreToken)) {
                silences.merge(&waits.silences);
            }
            lines.push((group.clone(), Line::HandOff, Of::HandOffs(silences)));
        }
    }
    for (group, readings) in idle {
        lines.push((group.clone(), Line::Idle, Of::Idle(readings)));
        lines.push((group.clone(), Line::Longest, Of::Longest(readings)));
    }
    lines
        .into_par_iter()
        .map(|(group, line, of)| {
            let (silences, findings) = match &of {
                Of::Waits(kind, samples) => (
                    &samples.silences,
                    findings::of_waits(*kind, samples, ask.setting, samples_only),
                ),
                Of::HandOffs(silences) => (silences, findings::of_hand_offs(silences, ask.setting)),
                Of::Idle(readings) => {
                    (&readings.silences, findings::of_idle(readings, ask.setting))
                }
                // one reading per run: its findings are those of the idle clock
                Of::Longest(readings) => (&readings.longest, Vec::new()),
            };
            let tails = match ask.tail_seed {
                Some(seed) if line.has_tail() => tails(silences, &findings, seed),
                _ => Vec::new(),
            };
            let figures = LineFigures {
                n: silences.len(),
                cut: silences.cut(),
                sessions: silences.units().map(|units| units as u64),
                quantiles: latent_quantiles(silences),
                type7_ms: if ask.type7 {
                    type7(silences)
                } else {
                    Vec::new()
                },
                findings,
                tails,
            };
            ((group, line), figures)
        })
        .collect::<Vec<_>>()
        .into_iter()
        .collect()
}

/// Type 7 knows nothing of cut silences.
fn type7(silences: &Silences) -> Vec<Option<f64>> {
    if silences.cut() > 0 {
        return vec![None; QUANTILES.len()];
    }
    let mut sorted: Vec<u64> = silences.gaps().map(|gap| gap.ms).collect();
    sorted.sort_unstable();
    super::type7(&sorted).to_vec()
}

fn tails(silences: &Silences, findings: &[Finding], seed: u64) -> Vec<Tail> {
    let sessions = silences.sessions();
    let heaps: Vec<_> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::Heaped { heap, .. } => Some(heap),
            _ => None,
        })
        .collect();
    let of_heap =
        |gap: &Gap| gap.observed && heaps.iter().any(|heap| findings::in_heap(heap, gap.ms));
    let n_heaped = sessions.iter().flatten().filter(|gap| of_heap(gap)).count() as u64;
    let rest: Vec<Vec<Gap>> = sessions
        .iter()
        .map(|gaps| gaps.iter().copied().filter(|gap| !of_heap(gap)).collect())
        .filter(|gaps: &Vec<Gap>| !gaps.is_empty())
        .collect();
    TAIL.iter()
        .filter_map(|p| p.parse::<Prob>().ok())
        .map(|p| Tail {
            p,
            all: tail::extrapolate(&sessions, p, Level::P95, seed),
            without_heaps: (n_heaped > 0)
                .then(|| (n_heaped, tail::extrapolate(&rest, p, Level::P95, seed))),
        })
        .collect()
}

/// The p99 of one line in every stratum of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// What the strata are.
    pub key: StratumKey,
    /// Which line.
    pub line: Line,
    /// The p99 by stratum.
    pub p99: Vec<(String, GapQuantile)>,
}

/// The keys of harness and model of which the fleet has more than one value.
pub fn mixed(fleet: &Fleet) -> Vec<StratumKey> {
    [StratumKey::Harness, StratumKey::Model]
        .into_iter()
        .filter(|key| {
            let mut values = fleet.runs.iter().map(|run| key.group(run));
            let first = values.next();
            values.any(|value| Some(value) != first)
        })
        .collect()
}

/// The spread of p99 over the strata of every key that is mixed, by line; lines of a single stratum are left out.
///
/// `policy` is none for samples, which have no idle clock.
pub fn spreads(fleet: &Fleet, policy: Option<&Policy>, put_back: EventFlags) -> Vec<Spread> {
    let p99 = |silences: &Silences| silences.quantiles(&[Prob::P99], Level::P95).pop();
    let mut found = Vec::new();
    for key in mixed(fleet) {
        let mut by_line: BTreeMap<Line, Vec<(String, GapQuantile)>> = BTreeMap::new();
        for ((group, kind), samples) in waits(fleet, Some(GapKey::Stratum(key)), put_back) {
            if let Some(p99) = p99(&samples.silences).filter(|p99| p99.curve.n > 0) {
                by_line
                    .entry(Line::Wait(kind))
                    .or_default()
                    .push((group, p99));
            }
        }
        let idle = policy.filter(|_| sized_runs(fleet).next().is_some());
        for (group, readings) in idle
            .map(|policy| idle_readings(fleet, policy, Some(key)))
            .unwrap_or_default()
        {
            if let Some(p99) = p99(&readings.silences).filter(|p99| p99.curve.n > 0) {
                by_line.entry(Line::Idle).or_default().push((group, p99));
            }
        }
        found.extend(
            by_line
                .into_iter()
                .filter(|(_, p99)| p99.len() > 1)
                .map(|(line, p99)| Spread { key, line, p99 }),
        );
    }
    found
}
