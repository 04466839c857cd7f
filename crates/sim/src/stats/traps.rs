//! Data that look like an answer and are not: heaps, missing kills, aborts that came because it was silent.

use std::fmt;

use super::estimate::{Interval, text};
use super::kaplan_meier::{Gap, KaplanMeier};
use super::prob::Level;
use super::quantile::Counts;
use super::verdict::Decision;

/// A heap spans at most 2 % on either side of its centre, so at most this ratio from end to end, as a fraction.
const HEAP_SPAN: (u128, u128) = (102, 98);
/// Neighbourhood in which the usual density is measured: this many spans on either side.
const NEIGHBOUR_SPANS: u32 = 5;
/// Chance, under the neighbours' density, below which a window is a heap and not an accident.
const HEAP_CHANCE: f64 = 1e-6;
/// A heap holds at least this many times the usual count: steep is not heaped.
const HEAP_FACTOR: f64 = 3.0;
/// Added to the usual count, so that an empty neighbourhood does not make two equal gaps a heap.
const HEAP_BACKGROUND: f64 = 0.5;

/// Many gaps of nearly one length: a timeout or a retry of a lower layer, not the tail of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heap {
    /// Gaps in it.
    pub n: u64,
    /// Smallest, in ms.
    pub min_ms: u64,
    /// Largest, in ms.
    pub max_ms: u64,
    /// Their mean, in ms.
    pub mean_ms: f64,
    /// Gaps that the density around it would lead one to expect.
    pub expected: f64,
}

impl fmt::Display for Heap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            n,
            min_ms,
            max_ms,
            mean_ms,
            ..
        } = self;
        write!(
            out,
            "{n} gaps of nearly one length (mean {} ms, {min_ms}..{max_ms} ms): ",
            text(*mean_ms)
        )?;
        write!(
            out,
            "a timeout or retry of a lower layer, not the tail of a distribution"
        )
    }
}

/// The heaps of `gaps`, by rising length, never overlapping.
///
/// A heap is a span of +-2 % that holds at least three times as many gaps as the density of its neighbourhood (ten spans
/// around it) leads to expect, and so many that a Poisson count would reach them with a chance below 1e-6. Densities are
/// per tick of the clock, the greatest common divisor of all gaps, so that a coarse clock is no heap.
pub fn heaps(gaps: &Counts) -> Vec<Heap> {
    let tick = gaps
        .iter()
        .fold(0, |divisor, (ms, _)| gcd(divisor, ms))
        .max(1);
    let values: Vec<(u64, u64)> = gaps.iter().collect();
    let before: Vec<u64> = values
        .iter()
        .scan(0, |sum, &(_, times)| {
            *sum += times;
            Some(*sum)
        })
        .collect();
    let count = |from: usize, to: usize| {
        let upto = |end: usize| end.checked_sub(1).map_or(0, |last| before[last]);
        upto(to) - upto(from)
    };
    let mut found: Vec<(Heap, f64)> = Vec::new();
    for (from, &(min_ms, _)) in values.iter().enumerate() {
        if min_ms == 0 {
            continue;
        }
        let last_ms =
            (u128::from(min_ms) * HEAP_SPAN.0 / HEAP_SPAN.1).min(u128::from(u64::MAX)) as u64;
        let to = values.partition_point(|&(ms, _)| ms <= last_ms);
        let n = count(from, to);
        let wide = neighbourhood(min_ms, last_ms, tick);
        let wide_from = values.partition_point(|&(ms, _)| u128::from(ms) < wide.0);
        let wide_to = values.partition_point(|&(ms, _)| u128::from(ms) <= wide.1);
        let around = count(wide_from, wide_to) - n;
        let ticks = ticks((u128::from(min_ms), u128::from(last_ms)), tick);
        let ticks_around = self::ticks(wide, tick) - ticks;
        let expected = around as f64 * ticks as f64 / ticks_around as f64 + HEAP_BACKGROUND;
        let chance = poisson_at_least(n, expected);
        if chance < HEAP_CHANCE && n as f64 >= HEAP_FACTOR * expected {
            let sum: u128 = values[from..to]
                .iter()
                .map(|&(ms, times)| u128::from(ms) * u128::from(times))
                .sum();
            let max_ms = values[to - 1].0;
            found.push((
                Heap {
                    n,
                    min_ms,
                    max_ms,
                    mean_ms: sum as f64 / n as f64,
                    expected,
                },
                chance,
            ));
        }
    }
    // of overlapping spans keep the fullest, the narrower of equals
    found.sort_by(|(left, _), (right, _)| {
        right
            .n
            .cmp(&left.n)
            .then((left.max_ms - left.min_ms).cmp(&(right.max_ms - right.min_ms)))
            .then(left.min_ms.cmp(&right.min_ms))
    });
    let mut kept: Vec<Heap> = Vec::new();
    for (heap, _) in found {
        if kept
            .iter()
            .all(|other| heap.max_ms < other.min_ms || other.max_ms < heap.min_ms)
        {
            kept.push(heap);
        }
    }
    kept.sort_unstable_by_key(|heap| heap.min_ms);
    kept
}

/// The range within five spans, and at least two ticks, of `[min_ms, last_ms]`.
fn neighbourhood(min_ms: u64, last_ms: u64, tick: u64) -> (u128, u128) {
    let (min, last, tick) = (u128::from(min_ms), u128::from(last_ms), u128::from(tick));
    let (mut low, mut high) = (min, last);
    for _ in 0..NEIGHBOUR_SPANS {
        low = low * HEAP_SPAN.1 / HEAP_SPAN.0;
        high = high * HEAP_SPAN.0 / HEAP_SPAN.1;
    }
    (
        low.min(min.saturating_sub(2 * tick)),
        high.max(last + 2 * tick),
    )
}

/// How many ticks of the clock lie in a closed range; 0 ms is none.
fn ticks((low, high): (u128, u128), tick: u64) -> u128 {
    let tick = u128::from(tick);
    high / tick - (low.max(1) - 1) / tick
}

const fn gcd(mut left: u64, mut right: u64) -> u64 {
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// `P(Poisson(mean) >= n)`, summed from the largest term down.
fn poisson_at_least(n: u64, mean: f64) -> f64 {
    if n as f64 <= mean {
        return 1.0;
    }
    let k = n as f64;
    let mut term = libm::exp(k * libm::log(mean) - mean - libm::lgamma(k + 1.0));
    let mut sum = 0.0;
    let mut next = k;
    while term > sum * 1e-17 && next < k + 10_000.0 {
        sum += term;
        next += 1.0;
        term *= mean / next;
    }
    sum
}

/// Signs that gaps which the old limit cut are missing from the data instead of standing there as censored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Truncation {
    /// No gap is censored at the limit, yet the longest comes within a tenth of it.
    LongestNearLimit {
        /// The longest gap, in ms.
        max_ms: u64,
    },
    /// The log tells of kills, and before none of them is a gap: not even their limit is known.
    KillsUnseen {
        /// Kills in the log.
        kills: u64,
    },
    /// The log tells of more kills at the limit than there are gaps censored at it.
    KillsWithoutGaps {
        /// Kills in the log.
        kills: u64,
        /// Gaps censored at the limit.
        censored: u64,
    },
}

impl fmt::Display for Truncation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "killed gaps appear to be missing: ")?;
        match self {
            Self::KillsUnseen { kills } => {
                write!(
                    out,
                    "the log tells of {kills} kills, and there is no gap before any of them"
                )
            }
            Self::KillsWithoutGaps { kills, censored } => {
                write!(
                    out,
                    "the log tells of {kills} kills, but {censored} gaps are censored at the limit"
                )
            }
            Self::LongestNearLimit { max_ms } => {
                write!(
                    out,
                    "the longest gap, {max_ms} ms, comes within a tenth of the limit and none is censored at it"
                )
            }
        }
    }
}

/// Whether gaps cut at `limit_ms` seem to be missing, given how many kills the log tells of.
pub fn truncation(
    ended: &Counts,
    censored: &Counts,
    limit_ms: u64,
    logged_kills: u64,
) -> Option<Truncation> {
    let at_limit = censored.at_least(limit_ms);
    if logged_kills > at_limit {
        return Some(Truncation::KillsWithoutGaps {
            kills: logged_kills,
            censored: at_limit,
        });
    }
    let max_ms = ended.iter().last().map(|(ms, _)| ms)?;
    let near = u128::from(max_ms) * 10 >= u128::from(limit_ms) * 9 && max_ms <= limit_ms;
    (at_limit == 0 && near).then_some(Truncation::LongestNearLimit { max_ms })
}

/// Kills whose gaps lie within this share of each other were one limit's.
const ONE_LIMIT_PERCENT: u64 = 2;

/// Whether a kill after `ms` of silence may have been that of an idle limit of `limit_ms`.
pub fn is_near(ms: u64, limit_ms: u64) -> bool {
    u128::from(ms.abs_diff(limit_ms)) * 100 <= u128::from(limit_ms) * u128::from(ONE_LIMIT_PERCENT)
}

/// Whether gaps that an idle limit cut seem to be missing. `killed_ms` are the gaps before recorded kills, 0 where there
/// is none; `cut` are gaps of which it is not known what cut them. Without a known limit only kills tell.
///
/// A kill with nothing before it is one whose gap is not in the record. One after a shorter gap than the limit was
/// another limit's, unless none at all stands at the limit.
pub fn missing_kills(
    ended: &Counts,
    killed_ms: &Counts,
    cut: &Counts,
    limit_ms: Option<u64>,
) -> Option<Truncation> {
    let Some(limit_ms) = limit_ms else {
        let kills = killed_ms.total();
        return (kills > 0 && killed_ms.at_least(1) == 0)
            .then_some(Truncation::KillsUnseen { kills });
    };
    let of_limit = |&(ms, _): &(u64, u64)| ms == 0 || is_near(ms, limit_ms) || ms >= limit_ms;
    let kills: Counts = killed_ms.iter().filter(of_limit).collect();
    let seen: Counts = kills
        .iter()
        .filter(|&(ms, _)| ms > 0)
        .map(|(ms, runs)| (ms.max(limit_ms), runs))
        .collect();
    if seen.total() == 0 && killed_ms.total() > 0 {
        return truncation(ended, &seen, limit_ms, killed_ms.total());
    }
    if kills.total() > seen.total() {
        return truncation(ended, &seen, limit_ms, kills.total());
    }
    let mut all = seen;
    all.merge(cut);
    truncation(ended, &all, limit_ms, 0)
}

/// Bounds of a kill rate over what aborted gaps might have become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbortEnvelope {
    /// `S(window - 1)` if every aborted gap had ended at once, and if none ever had.
    pub rate: Interval,
    /// The limits of the two extremes: the lower one's lower and the upper one's upper.
    pub limits: Interval,
}

/// The kill rate of `window_ms` when people may have aborted *because* it was silent.
///
/// `gaps` are all but the aborted ones; `aborted_ms` are the lengths at the abort.
pub fn abort_envelope(
    gaps: &[Gap],
    aborted_ms: &[u64],
    window_ms: u64,
    level: Level,
) -> AbortEnvelope {
    let counts = |observed: bool| {
        let gaps = gaps.iter().filter(|gap| gap.observed == observed);
        gaps.map(|gap| gap.ms).collect::<Counts>()
    };
    let aborted = aborted_ms.iter().copied().collect();
    abort_envelope_of(&counts(true), &counts(false), &aborted, window_ms, level)
}

/// The same from counts: gaps whose end was observed, those that were cut but not by an abort, and the aborted ones.
pub fn abort_envelope_of(
    ended: &Counts,
    cut: &Counts,
    aborted: &Counts,
    window_ms: u64,
    level: Level,
) -> AbortEnvelope {
    let longest = [ended, cut, aborted]
        .into_iter()
        .filter_map(|counts| counts.iter().last())
        .map(|(ms, _)| ms)
        .max();
    let top = longest.unwrap_or(0).max(window_ms);
    let mut all_ended = ended.clone();
    all_ended.merge(aborted);
    let mut all_cut = cut.clone();
    all_cut.add(top, aborted.total());
    let never = KaplanMeier::new(ended, &all_cut).kill_rate(window_ms, level);
    let ended = KaplanMeier::new(&all_ended, cut).kill_rate(window_ms, level);
    AbortEnvelope {
        rate: Interval {
            lo: ended.point,
            up: never.point,
        },
        limits: Interval {
            lo: ended.interval.lo,
            up: never.interval.up,
        },
    }
}

/// The range of true silence behind a recorded gap when activity is reported at most once per `throttle_ms`:
/// `(gap - throttle, gap]`; the same widening holds for a clock of that resolution.
pub const fn throttled(gap_ms: u64, throttle_ms: u64) -> Interval<u64> {
    let lowest = gap_ms.saturating_sub(throttle_ms.saturating_sub(1));
    Interval::new(lowest, gap_ms)
}

/// A decision in the light of [`truncation`]: nothing passes on data from which kills are missing.
#[must_use]
pub fn doubted(decision: Decision, truncation: Option<Truncation>) -> Decision {
    decision.with_doubt(truncation.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::Indices;
    use super::super::normal;
    use super::*;

    #[test]
    fn a_smooth_sample_has_no_heap() {
        for seed in 0..20 {
            let mut random = Indices::new(seed, 0);
            let gaps: Counts = (0..3_000)
                .map(|_| libm::exp(8.5 + 1.2 * normal::quantile(random.unit())) as u64)
                .collect();
            assert_eq!(heaps(&gaps), []);
        }
        // a clock of whole seconds, and gaps of few milliseconds
        let mut random = Indices::new(1, 0);
        let coarse: Counts = (0..30_000)
            .map(|_| libm::exp(8.5 + 1.2 * normal::quantile(random.unit())) as u64 / 1_000 * 1_000)
            .collect();
        assert_eq!(heaps(&coarse), []);
        let short: Counts = (0..30_000)
            .map(|_| (-20.0 * libm::log(random.unit())) as u64)
            .collect();
        assert_eq!(heaps(&short), []);
        assert_eq!(heaps(&Counts::default()), []);
        assert_eq!(
            heaps(&[(u64::MAX, 9), (u64::MAX - 1, 3)].into_iter().collect()).len(),
            1
        );
        // constant data are one heap
        assert_eq!(heaps(&[(405_000, 9)].into_iter().collect()).len(), 1);
        assert_eq!(heaps(&[(0, 50), (7, 2)].into_iter().collect()), []);
    }

    #[test]
    fn retry_backoffs_are_heaps() {
        let mut random = Indices::new(5, 0);
        let mut gaps: Counts = (0..1_000)
            .map(|_| libm::exp(8.5 + 1.2 * normal::quantile(random.unit())) as u64)
            .collect();
        gaps.add(16_000, 60);
        gaps.add(32_000, 40);
        let found: Vec<u64> = heaps(&gaps)
            .iter()
            .map(|heap| heap.min_ms.max(heap.max_ms))
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn missing_kills_are_noticed() {
        let ended: Counts = [1_000, 57_000].into_iter().collect();
        let none = Counts::default();
        assert_eq!(
            truncation(&ended, &none, 60_000, 0),
            Some(Truncation::LongestNearLimit { max_ms: 57_000 })
        );
        assert_eq!(
            truncation(&ended, &[60_000].into_iter().collect(), 60_000, 1),
            None
        );
        assert_eq!(
            truncation(&ended, &none, 600_000, 3),
            Some(Truncation::KillsWithoutGaps {
                kills: 3,
                censored: 0
            })
        );
        assert_eq!(truncation(&ended, &none, 600_000, 0), None);
        assert_eq!(truncation(&none, &none, 600_000, 0), None);
    }

    #[test]
    fn kills_tell_of_missing_gaps_with_and_without_a_limit() {
        let ended: Counts = [1_000, 20_000].into_iter().collect();
        let none = Counts::default();
        let missing = |killed: &[(u64, u64)], limit| {
            missing_kills(&ended, &killed.iter().copied().collect(), &none, limit)
        };
        let unseen = Truncation::KillsUnseen { kills: 4 };
        assert_eq!(missing(&[(0, 4)], None), Some(unseen));
        // one that can be seen was of another kind, and says nothing of the others
        assert_eq!(missing(&[(0, 4), (500, 1)], None), None);
        assert_eq!(missing(&[], None), None);
        let short = Truncation::KillsWithoutGaps {
            kills: 7,
            censored: 3,
        };
        assert_eq!(missing(&[(0, 4), (60_100, 3)], Some(60_000)), Some(short));
        // killed long before the limit: by a budget, or a cap, where the limit's own kills are seen …
        assert_eq!(missing(&[(500, 4), (59_500, 3)], Some(60_000)), None);
        // … and by who knows what where they are not
        let all = Truncation::KillsWithoutGaps {
            kills: 4,
            censored: 0,
        };
        assert_eq!(missing(&[(500, 4)], Some(60_000)), Some(all));
        let long: Counts = [59_000].into_iter().collect();
        let near = Truncation::LongestNearLimit { max_ms: 59_000 };
        assert_eq!(missing_kills(&long, &none, &none, Some(60_000)), Some(near));
        assert_eq!(
            missing_kills(&long, &none, &[60_000].into_iter().collect(), Some(60_000)),
            None
        );
    }

    #[test]
    fn aborts_open_an_envelope() {
        let gaps = [Gap {
            ms: 5_000,
            observed: true,
        }; 9];
        let found = abort_envelope(&gaps, &[30_000], 60_000, Level::P95);
        assert_eq!(found.rate, Interval::new(0.0, 0.1));
        assert_eq!(throttled(10_000, 5_000), Interval::new(5_001, 10_000));
        assert_eq!(throttled(10_000, 0), Interval::new(10_000, 10_000));
    }
}
