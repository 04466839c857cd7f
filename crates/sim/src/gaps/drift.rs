//! Two datasets compared, line by line.

use std::collections::BTreeMap;

use crate::run::WaitKind;
use crate::stats::bootstrap::Resampling;
use crate::stats::drift::{self, Drift};
use crate::stats::{Level, Prob};

use super::sample::Silences;
use super::{IdleReadings, Line, WaitSamples};

/// One side of a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Side {
    /// Silences.
    pub n: u64,
    /// Those cut short.
    pub cut: u64,
    /// Sessions.
    pub sessions: u64,
    /// Sessions with a silence of at least the reference window.
    pub over: u64,
}

/// One line of two datasets.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Which line.
    pub line: Line,
    /// The baseline.
    pub before: Side,
    /// What is compared with it.
    pub after: Side,
    /// The window whose exceedance is compared, ms.
    pub window_ms: u64,
    /// The comparison; none when a side has no silence.
    pub drift: Option<Drift>,
}

/// The silences of the lines of one dataset that can be compared.
pub fn lines<'a>(
    waits: &'a BTreeMap<(String, WaitKind), WaitSamples>,
    idle: &'a BTreeMap<String, IdleReadings>,
) -> BTreeMap<Line, &'a Silences> {
    let waits = waits
        .iter()
        .filter(|((group, _), _)| group.is_empty())
        .map(|((_, kind), samples)| (Line::Wait(*kind), &samples.silences));
    let idle = idle
        .get("")
        .map(|readings| (Line::Idle, &readings.silences));
    waits
        .chain(idle)
        .filter(|(_, silences)| !silences.is_empty())
        .collect()
}

/// Compares every line of `after` or `before` with the other, sessions as units, silences by their recorded lengths.
///
/// The window is that of the policy; without one, the baseline's p99 takes its place.
pub fn compare(
    before: &BTreeMap<Line, &Silences>,
    after: &BTreeMap<Line, &Silences>,
    window_ms: Option<u64>,
    how: Resampling,
) -> Vec<Compared> {
    let none = Silences::default();
    let mut all: Vec<Line> = before.keys().chain(after.keys()).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
        .map(|line| {
            let of = |side: &BTreeMap<Line, &Silences>| {
                side.get(&line).copied().unwrap_or(&none).clone()
            };
            let (before, after) = (of(before), of(after));
            let window_ms = window_ms.or_else(|| {
                before
                    .quantiles(&[Prob::P99], Level::P95)
                    .first()?
                    .curve
                    .value
            });
            let window_ms = window_ms.unwrap_or(u64::MAX);
            let (base, now) = (before.lengths(), after.lengths());
            let drift = (!before.is_empty() && !after.is_empty())
                .then(|| drift::drift(&base, &now, window_ms, how));
            Compared {
                line,
                before: side(&before, &base, window_ms),
                after: side(&after, &now, window_ms),
                window_ms,
                drift,
            }
        })
        .collect()
}

fn side(silences: &Silences, lengths: &[Vec<u64>], window_ms: u64) -> Side {
    let over = |gaps: &&Vec<u64>| gaps.iter().any(|&gap| gap >= window_ms);
    Side {
        n: silences.len(),
        cut: silences.cut(),
        sessions: lengths.len() as u64,
        over: lengths.iter().filter(over).count() as u64,
    }
}
