//! Data that look like an answer and are not: what must be said beside the quantiles of silences, found in the data.

use std::collections::BTreeMap;

use crate::run::WaitKind;
use crate::stats::kaplan_meier::{ClusteredCurve, Gap, KaplanMeier};
use crate::stats::traps::{self, AbortEnvelope, Heap, Truncation};
use crate::stats::{Counts, Estimate, Interval, Level, Prob};

use super::counted::Counted;
use super::sample::{Cut, Silences};
use super::{IdleReadings, Line, WaitSamples};

/// What findings are judged against.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Setting {
    /// The idle window of the policy in question, ms; none when it is off.
    pub window_ms: Option<u64>,
    /// The idle limit under which the data were recorded, ms, where the user says so.
    pub recorded_idle_ms: Option<u64>,
    /// The period of the policy's throttle, ms, where it has one.
    pub throttle_ms: Option<u64>,
}

/// Where a recorded limit is known from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LimitSource {
    /// So many recorded kills at nearly one length, and no longer silence.
    Cuts(u64),
    /// The user.
    Given,
}

/// How many true silences may have reached a window where what is recorded is up to a period too long: both ends of
/// `(g - period, g]` ([`traps::throttled`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reach {
    /// The window, ms.
    pub window_ms: u64,
    /// Silences that reached it even if each was a period shorter.
    pub least_n: u64,
    /// Silences that are recorded as reaching it.
    pub most_n: u64,
}

impl Reach {
    fn new(lengths: Lengths<'_>, period_ms: u64, window_ms: Option<u64>) -> Option<Self> {
        let window_ms = window_ms?;
        let reach = |side: fn(Interval<u64>) -> Option<u64>| {
            let reaches =
                |&(ms, _): &(u64, u64)| side(traps::throttled(ms, period_ms)) >= Some(window_ms);
            let all = lengths.ended.iter().chain(lengths.censored.iter());
            all.filter(reaches).map(|(_, times)| times).sum()
        };
        Some(Self {
            window_ms,
            least_n: reach(|range| range.lo),
            most_n: reach(|range| range.up),
        })
    }
}

/// One thing found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// Silences cut by an abort, and the kill rate of the window over what they might have become.
    Aborts {
        /// How many.
        n: u64,
        /// The window, ms.
        window_ms: u64,
        /// Rate if all had ended at once, and if none ever had.
        envelope: AbortEnvelope,
    },
    /// Every length is a multiple of this.
    CoarseClock {
        /// The tick, ms.
        tick_ms: u64,
        /// What that leaves open about the window.
        reach: Option<Reach>,
    },
    /// One session holds more than a fifth of the silences.
    Dominated {
        /// Its share.
        share: f64,
    },
    /// Fewer than 20 sessions.
    FewSessions {
        /// How many.
        sessions: u64,
    },
    /// Many silences of nearly one length.
    Heaped {
        /// They.
        heap: Heap,
        /// When the first of them was recorded, ms since the epoch, where it is dated.
        first_seen_ms: Option<i64>,
        /// p99 with them, ms.
        p99_ms: Option<u64>,
        /// p99 without them, ms.
        p99_without_ms: Option<u64>,
    },
    /// Killed silences appear to be missing.
    KillsMissing {
        /// The recorded limit, ms, where it is known.
        limit_ms: Option<u64>,
        /// The sign.
        sign: Truncation,
    },
    /// Silences are longer than the limit that the data are said to be recorded under.
    LimitExceeded {
        /// The limit, ms.
        limit_ms: u64,
        /// Silences seen to end beyond it.
        n: u64,
    },
    /// The record names neither sessions nor runs.
    NoSessions,
    /// The policy's idle clock itself is throttled.
    PolicyThrottle {
        /// The period, ms.
        period_ms: u64,
        /// What that leaves open about the window.
        reach: Option<Reach>,
    },
    /// Silences that may hold a host suspend.
    Suspends {
        /// How many.
        n: u64,
    },
    /// Silences pile up at the shortest one, as events do that are let through once a period.
    Throttled {
        /// The shortest silence, ms.
        period_ms: u64,
        /// Silences within a tenth above it.
        n: u64,
        /// What that leaves open about the window.
        reach: Option<Reach>,
    },
    /// Lengths are upper bounds of a silence, as far as outputs are stamped when they are finished.
    UpperBounds {
        /// How many.
        n: u64,
        /// Of how many.
        of: u64,
    },
    /// The window in question is longer than the recorded limit.
    WindowAboveLimit {
        /// The window, ms.
        window_ms: u64,
        /// The limit, ms.
        limit_ms: u64,
        /// Where the limit is known from.
        source: LimitSource,
        /// The share of silences that reach the limit: the window's kill rate is at most its upper limit.
        reached: Estimate,
    },
}

impl Finding {
    /// The code in files and output.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Aborts { .. } => "informative_aborts",
            Self::CoarseClock { .. } => "coarse_clock",
            Self::Dominated { .. } => "dominated",
            Self::FewSessions { .. } => "few_sessions",
            Self::Heaped { .. } => "heaped",
            Self::KillsMissing { .. } => "kills_missing",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::NoSessions => "no_sessions",
            Self::PolicyThrottle { .. } => "policy_throttle",
            Self::Suspends { .. } => "host_suspends",
            Self::Throttled { .. } => "throttled",
            Self::UpperBounds { .. } => "upper_bounds",
            Self::WindowAboveLimit { .. } => "window_above_limit",
        }
    }
}

/// Below this many sessions an interval is printed with a warning.
const FEW_SESSIONS: usize = 20;
/// One session may hold this share of the silences.
const DOMINANT_SHARE: f64 = 0.2;
/// Shorter heaps are the pace of output, not a limit of a lower layer.
const HEAP_FROM_MS: u64 = 1_000;
/// Heaps told of one line, the fullest.
const HEAPS_TOLD: usize = 3;
/// A clock is coarse if so many different lengths share a tick of at least so many ms.
const COARSE: (usize, u64) = (10, 10);
/// Throttling shows in so many silences, this share of them at the shortest length, which is at least so long.
const THROTTLED: (u64, u64, u64) = (50, 5, 50);
/// Cuts whose cause is unknown show a limit from this many on.
const CUTS_SHOW_LIMIT: usize = 3;

/// Lines on which an idle limit acts, whatever pauses its clock.
const fn idles(line: Line) -> bool {
    match line {
        Line::Idle => true,
        Line::HandOff | Line::Longest => false,
        Line::Wait(kind) => matches!(
            kind,
            WaitKind::PreToken
                | WaitKind::PreTokenErr
                | WaitKind::StreamGap
                | WaitKind::Continuation
                | WaitKind::InterToken
        ),
    }
}

/// What is found about the waits of one kind. `samples_only`: there is no idle clock on which limits could be judged.
pub fn of_waits(
    kind: WaitKind,
    samples: &WaitSamples,
    setting: Setting,
    samples_only: bool,
) -> Vec<Finding> {
    let line = Line::Wait(kind);
    let (ended, censored) = (samples.silences.ended(), samples.silences.censored());
    let lengths = Lengths {
        ended: &ended,
        censored: &censored,
    };
    let mut found = of_sessions(Sessions::of(&samples.silences));
    if idles(line) && samples_only {
        found.extend(of_limit(&samples.silences, 0, setting));
    }
    let always = matches!(kind, WaitKind::Retry | WaitKind::ErrorWait);
    let first_seen = |from: u64, to: u64| {
        samples
            .first_seen_ms
            .range(from..=to)
            .map(|(_, &ms)| ms)
            .min()
    };
    found.extend(of_heaps(lengths, always, first_seen));
    let window_ms = setting.window_ms.filter(|_| idles(line));
    found.extend(of_clock(line, lengths, window_ms));
    if samples.upper_bounds > 0 {
        found.push(Finding::UpperBounds {
            n: samples.upper_bounds,
            of: samples.sized_ms.len() as u64,
        });
    }
    found
}

/// What is found about hand-offs, some of them cut by an abort.
pub fn of_hand_offs(silences: &Silences, setting: Setting) -> Vec<Finding> {
    of_aborts(silences, setting.window_ms).into_iter().collect()
}

/// What is found about the idle clock's readings.
pub fn of_idle(readings: &IdleReadings, setting: Setting) -> Vec<Finding> {
    let silences = &readings.silences;
    let (ended, censored) = (silences.ended(), silences.censored());
    let lengths = Lengths {
        ended: &ended,
        censored: &censored,
    };
    let mut found = of_sessions(Sessions::of(silences));
    found.extend(of_limit(silences, readings.killed_runs, setting));
    found.extend(of_aborts(silences, setting.window_ms));
    let first_seen = |from: u64, to: u64| {
        readings
            .first_seen_ms
            .range(from..=to)
            .map(|(_, &ms)| ms)
            .min()
    };
    found.extend(of_heaps(lengths, false, first_seen));
    found.extend(of_the_clock(lengths, readings.suspends, setting));
    found
}

/// What is found about the idle clock's readings, counted: all of [`of_idle`] but what aborts and limits at recording
/// hide, which a sweep says in its own words. `first_seen` tells when the first reading of a range of lengths was
/// recorded, ms since the epoch.
pub fn of_counted(
    counted: &Counted,
    setting: Setting,
    first_seen: impl Fn(u64, u64) -> Option<i64>,
) -> Vec<Finding> {
    let censored = counted.censored();
    let lengths = Lengths {
        ended: &counted.ended,
        censored: &censored,
    };
    let mut found = of_sessions(Sessions {
        silences: counted.total(),
        units: counted.units.map(|units| units as usize),
        largest: counted.largest.unwrap_or(0),
    });
    let given = setting.recorded_idle_ms.filter(|_| counted.total() > 0);
    found.extend(given.and_then(|limit_ms| exceeds(&counted.ended, limit_ms)));
    found.extend(of_heaps(lengths, false, first_seen));
    found.extend(of_the_clock(lengths, counted.suspends, setting));
    found
}

/// The heaps that [`of_counted`] tells of.
pub fn heaps_told(counted: &Counted) -> Vec<Heap> {
    let censored = counted.censored();
    let lengths = Lengths {
        ended: &counted.ended,
        censored: &censored,
    };
    heaps(lengths, false)
}

/// Silences by length, in ms.
#[derive(Clone, Copy)]
struct Lengths<'a> {
    ended: &'a Counts,
    censored: &'a Counts,
}

/// What is known of the sessions of silences.
#[derive(Clone, Copy)]
struct Sessions {
    silences: u64,
    units: Option<usize>,
    largest: u64,
}

impl Sessions {
    fn of(silences: &Silences) -> Self {
        Self {
            silences: silences.len(),
            units: silences.units(),
            largest: silences.largest(),
        }
    }
}

/// What the idle clock itself, the policy's throttle and the host do to its readings.
fn of_the_clock(lengths: Lengths<'_>, suspends: u64, setting: Setting) -> Vec<Finding> {
    let mut found = of_clock(Line::Idle, lengths, setting.window_ms);
    if let Some(period_ms) = setting.throttle_ms {
        found.push(Finding::PolicyThrottle {
            period_ms,
            reach: Reach::new(lengths, period_ms, setting.window_ms),
        });
    }
    if suspends > 0 {
        found.push(Finding::Suspends { n: suspends });
    }
    found
}

fn of_sessions(sessions: Sessions) -> Vec<Finding> {
    let mut found = Vec::new();
    if sessions.silences < 2 {
        return found;
    }
    match sessions.units {
        None => found.push(Finding::NoSessions),
        Some(units) => {
            if units < FEW_SESSIONS {
                found.push(Finding::FewSessions {
                    sessions: units as u64,
                });
            }
            let share = sessions.largest as f64 / sessions.silences.max(1) as f64;
            if units > 1 && share > DOMINANT_SHARE {
                found.push(Finding::Dominated { share });
            }
        }
    }
    found
}

/// The limit at which silences were cut: at least half of the cuts within 2 % of their median, nothing longer.
fn limit_in_data(silences: &Silences, ended: &Counts) -> Option<(u64, u64)> {
    let (cuts, fewest) = match silences.cut_by(Cut::Kill) {
        [] => (silences.cut_by(Cut::Unknown), CUTS_SHOW_LIMIT),
        kills => (kills, 1),
    };
    let mut cuts = cuts.to_vec();
    cuts.sort_unstable();
    let median = *cuts.get(cuts.len().checked_sub(1)? / 2)?;
    let near = |ms: u64| traps::is_near(ms, median);
    let at: Vec<u64> = cuts.iter().copied().filter(|&ms| near(ms)).collect();
    let limit_ms = *at.first()?;
    let longer = ended
        .iter()
        .last()
        .is_some_and(|(ms, _)| ms > limit_ms && !near(ms));
    (at.len() >= fewest && at.len() * 2 >= cuts.len() && !longer)
        .then_some((limit_ms, at.len() as u64))
}

/// Silences that are longer than the limit under which they are said to be recorded.
fn exceeds(ended: &Counts, limit_ms: u64) -> Option<Finding> {
    // a kill is read a little after the limit, so what is known to be cut there is no contradiction
    let n = ended.at_least(limit_ms.saturating_add(1));
    (n > 0).then_some(Finding::LimitExceeded { limit_ms, n })
}

fn of_limit(silences: &Silences, killed_runs: u64, setting: Setting) -> Vec<Finding> {
    let (ended, censored) = (silences.ended(), silences.censored());
    let limit = match setting.recorded_idle_ms {
        Some(limit_ms) => Some((limit_ms, LimitSource::Given)),
        None => {
            limit_in_data(silences, &ended).map(|(limit_ms, n)| (limit_ms, LimitSource::Cuts(n)))
        }
    };
    let mut found = Vec::new();
    let known_ms = limit.map(|(limit_ms, _)| limit_ms);
    if let Some(sign) = missing_kills(silences, &ended, killed_runs, known_ms) {
        let limit_ms = known_ms;
        found.push(Finding::KillsMissing { limit_ms, sign });
    }
    let Some((limit_ms, source)) = limit.filter(|_| !silences.is_empty()) else {
        return found;
    };
    if source == LimitSource::Given {
        found.extend(exceeds(&ended, limit_ms));
    }
    if let Some(window_ms) = setting.window_ms.filter(|&window_ms| window_ms > limit_ms) {
        let curve = KaplanMeier::new(&ended, &censored);
        let sessions = silences.sessions();
        let reached = if silences.units().is_some_and(|units| units > 1) {
            ClusteredCurve::new(&curve, &sessions).kill_rate(limit_ms, Level::P95)
        } else {
            curve.kill_rate(limit_ms, Level::P95)
        };
        found.push(Finding::WindowAboveLimit {
            window_ms,
            limit_ms,
            source,
            reached,
        });
    }
    found
}

/// Whether silences that an idle limit cut seem to be missing, by the runs recorded as killed and what was seen of them.
fn missing_kills(
    silences: &Silences,
    ended: &Counts,
    killed_runs: u64,
    limit_ms: Option<u64>,
) -> Option<Truncation> {
    let seen = silences.cut_by(Cut::Kill);
    let mut killed_ms: Counts = seen.iter().copied().collect();
    killed_ms.add(0, killed_runs.saturating_sub(seen.len() as u64));
    let others = Cut::ALL.into_iter().filter(|cut| *cut != Cut::Kill);
    let others = others.flat_map(|cut| silences.cut_by(cut)).copied();
    traps::missing_kills(ended, &killed_ms, &others.collect(), limit_ms)
}

fn of_aborts(silences: &Silences, window_ms: Option<u64>) -> Option<Finding> {
    let window_ms = window_ms?;
    let aborted = silences.cut_by(Cut::Abort);
    if aborted.is_empty() {
        return None;
    }
    // aborted gaps are told apart by their lengths: as many of each length as were aborted
    let mut left: BTreeMap<u64, u64> = BTreeMap::new();
    for &ms in aborted {
        *left.entry(ms).or_default() += 1;
    }
    let gaps: Vec<Gap> = silences
        .gaps()
        .filter(|gap| match left.get_mut(&gap.ms) {
            Some(times) if !gap.observed && *times > 0 => {
                *times -= 1;
                false
            }
            _ => true,
        })
        .collect();
    Some(Finding::Aborts {
        n: aborted.len() as u64,
        window_ms,
        envelope: traps::abort_envelope(&gaps, aborted, window_ms, Level::P95),
    })
}

fn p99(ended: &Counts, censored: &Counts) -> Option<u64> {
    KaplanMeier::new(ended, censored)
        .quantile(Prob::P99, Level::P95)
        .value
}

/// The largest heaps that lie in the tail, or all of them.
fn heaps(Lengths { ended, censored }: Lengths<'_>, always: bool) -> Vec<Heap> {
    let tail_ms = KaplanMeier::new(ended, censored)
        .quantile(Prob::P90, Level::P95)
        .value;
    let mut heaps: Vec<Heap> = traps::heaps(ended)
        .into_iter()
        .filter(|heap| heap.min_ms >= HEAP_FROM_MS)
        .filter(|heap| always || tail_ms.is_none_or(|tail_ms| heap.max_ms >= tail_ms))
        .collect();
    heaps.sort_by(|left, right| right.n.cmp(&left.n).then(left.min_ms.cmp(&right.min_ms)));
    heaps.truncate(HEAPS_TOLD);
    heaps
}

fn of_heaps(
    lengths: Lengths<'_>,
    always: bool,
    first_seen: impl Fn(u64, u64) -> Option<i64>,
) -> Vec<Finding> {
    let Lengths { ended, censored } = lengths;
    heaps(lengths, always)
        .into_iter()
        .map(|heap| {
            let mut without = Counts::default();
            for (ms, times) in ended.iter().filter(|&(ms, _)| !in_heap(&heap, ms)) {
                without.add(ms, times);
            }
            Finding::Heaped {
                heap,
                first_seen_ms: first_seen(heap.min_ms, heap.max_ms),
                p99_ms: p99(ended, censored),
                p99_without_ms: p99(&without, censored),
            }
        })
        .collect()
}

/// Whether a silence of `ms` is of the heap.
pub const fn in_heap(heap: &Heap, ms: u64) -> bool {
    heap.min_ms <= ms && ms <= heap.max_ms
}

fn of_clock(line: Line, all: Lengths<'_>, window_ms: Option<u64>) -> Vec<Finding> {
    let ended = all.ended;
    let lengths: Vec<(u64, u64)> = ended.iter().filter(|&(ms, _)| ms > 0).collect();
    let mut found = Vec::new();
    let tick_ms = lengths.iter().fold(0, |divisor, &(ms, _)| gcd(divisor, ms));
    if lengths.len() >= COARSE.0 && tick_ms >= COARSE.1 {
        found.push(Finding::CoarseClock {
            tick_ms,
            reach: Reach::new(all, tick_ms, window_ms),
        });
    }
    let streams = matches!(
        line,
        Line::Idle | Line::Wait(WaitKind::InterToken | WaitKind::StreamGap)
    );
    if let Some(&(shortest, _)) = lengths.first()
        && streams
        && shortest >= THROTTLED.2
        && ended.total() >= THROTTLED.0
    {
        let n = ended.at_least(shortest) - ended.at_least(shortest + shortest / 10 + 1);
        if n * THROTTLED.1 >= ended.total() {
            found.push(Finding::Throttled {
                period_ms: shortest,
                n,
                reach: Reach::new(all, shortest, window_ms),
            });
        }
    }
    found
}

const fn gcd(mut left: u64, mut right: u64) -> u64 {
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left
}
