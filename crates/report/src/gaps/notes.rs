//! What must be known to read a table of gaps, one sentence each.

use std::collections::BTreeMap;

use policysim_sim::gaps::figures::Spread;
use policysim_sim::gaps::findings::{LimitSource, Reach};
use policysim_sim::gaps::{Cut, Finding, LEFT_OUT, Line, Method, WaitSamples};
use policysim_sim::run::WaitKind;
use policysim_sim::stats::kaplan_meier::CensoredQuantile;
use policysim_sim::stats::tail::{TailEstimate, ThresholdFit};
use policysim_sim::stats::traps::{Heap, Truncation};
use policysim_sim::stats::{Estimate, Interval, Prob, text};

use super::{GapsResult, WITH};
use crate::table::one_line;
use crate::units::{are, counted, day, duration, grouped, percent, percent_figures, verb};

/// Findings of one kind that text tells; JSON has them all.
const TOLD: usize = 3;

/// The notes of `result`, in the order in which they are read.
pub(super) fn notes(result: &GapsResult) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(upper_bounds(result));
    notes.extend(left_out(result));
    notes.extend(cuts(result));
    notes.extend(findings(result));
    notes.extend(tails(result));
    notes.extend(idle_clock(result));
    if result.data.hung > 0 && !result.sizes.is_empty() {
        notes.push(format!(
            "{} labelled as hung {} left out of the run sizes.",
            counted(result.data.hung, "run"),
            are(result.data.hung)
        ));
    }
    notes.extend(mixtures(result));
    if result.also_type7 {
        notes.push(
            "Type 7 (linear interpolation, as in spreadsheets and numpy) is there to compare tools, and knows nothing of cut silences."
                .to_owned(),
        );
    }
    notes.push(intervals(result));
    notes
}

fn sum(result: &GapsResult, pick: impl Fn(&WaitSamples) -> u64) -> u64 {
    result.waits.values().map(pick).sum()
}

fn upper_bounds(result: &GapsResult) -> Option<String> {
    let n = sum(result, |samples| samples.upper_bounds);
    let mixed = result
        .waits
        .iter()
        .filter(|(_, samples)| {
            samples.upper_bounds > 0 && samples.upper_bounds < samples.sized_ms.len() as u64
        })
        .map(|((group, kind), samples)| {
            let of = samples.sized_ms.len() as u64;
            format!(
                "{} ({} of {})",
                label(group, Line::Wait(*kind)),
                grouped(samples.upper_bounds),
                grouped(of)
            )
        });
    let mixed = listed(mixed);
    (n > 0).then(|| {
        let mut note = "¹ upper bound: these logs stamp an output when it is finished, so the wait holds its streaming.".to_owned();
        if !mixed.is_empty() {
            note.push_str(&format!(
                " Pooled with waits stamped where output begins: {mixed}."
            ));
        }
        note
    })
}

fn left_out(result: &GapsResult) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, (_, reason)) in LEFT_OUT.iter().enumerate() {
        let left_out = sum(result, |samples| samples.left_out[index]);
        if left_out > 0 {
            notes.push(format!(
                "{} {reason}; left out of sizing, `--with {}` puts them back.",
                counted(left_out, "wait"),
                WITH[index],
            ));
        }
    }
    notes
}

/// How many silences were cut, by what.
fn cuts(result: &GapsResult) -> Option<String> {
    let mut by: BTreeMap<Cut, u64> = BTreeMap::new();
    // the idle clock reads the same aborts as the hand-offs that they cut
    let waits = result
        .waits
        .iter()
        .filter(|((_, kind), _)| *kind != WaitKind::Censored || result.idle.is_empty());
    let silences = waits
        .map(|(_, samples)| &samples.silences)
        .chain(result.idle.values().map(|readings| &readings.silences));
    for silences in silences {
        for cut in Cut::ALL {
            let n = silences.cut_by(cut).len() as u64;
            if n > 0 {
                *by.entry(cut).or_default() += n;
            }
        }
    }
    let words: Vec<String> = by
        .iter()
        .map(|(cut, n)| {
            let by = match cut {
                Cut::Abort => "an abort",
                Cut::Hang => "a hang",
                Cut::Kill => "a kill",
                Cut::LogEnd => "the end of the record",
                Cut::Unknown => "what the table does not say",
            };
            format!("{} by {by}", grouped(*n))
        })
        .collect();
    (!words.is_empty()).then(|| {
        format!(
            "cut: silences whose end was not seen ({}); they count as longer than they were seen to be.",
            words.join(", ")
        )
    })
}

pub(super) fn label(group: &str, line: Line) -> String {
    if group.is_empty() {
        line.name().to_owned()
    } else {
        format!("{} · {}", one_line(group), line.name())
    }
}

/// The first few, and how many more.
fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let mut text = items
        .iter()
        .take(TOLD)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if items.len() > TOLD {
        text.push_str(&format!(" and {} more", items.len() - TOLD));
    }
    text
}

fn findings(result: &GapsResult) -> Vec<String> {
    let mut by_code: BTreeMap<&str, Vec<(String, &Finding)>> = BTreeMap::new();
    for ((group, line), figures) in &result.figures {
        for finding in &figures.findings {
            by_code
                .entry(finding.code())
                .or_default()
                .push((label(group, *line), finding));
        }
    }
    let mut notes = Vec::new();
    for (code, found) in by_code {
        let of = |figure: &dyn Fn(&Finding) -> String| {
            listed(found.iter().map(|(label, finding)| match figure(finding) {
                figure if figure.is_empty() => label.clone(),
                figure => format!("{label} ({figure})"),
            }))
        };
        match code {
            // these differ in a number only
            "few_sessions" => notes.push(format!(
                "Fewer than 20 sessions, so rough intervals: {}.",
                of(&|finding| match finding {
                    Finding::FewSessions { sessions } => sessions.to_string(),
                    _ => String::new(),
                })
            )),
            "dominated" => notes.push(format!(
                "One session holds more than 20 % of the silences: {}.",
                of(&|finding| match finding {
                    Finding::Dominated { share } => percent(*share),
                    _ => String::new(),
                })
            )),
            "coarse_clock" => notes.push(format!(
                "Coarse clock, every length a multiple of its tick; the true silence may be up to a tick shorter or longer: {}.",
                of(&|finding| match finding {
                    Finding::CoarseClock { tick_ms, reach } => {
                        format!("{}{}", duration(*tick_ms), reach_words(*reach))
                    }
                    _ => String::new(),
                })
            )),
            "no_sessions" | "upper_bounds" => {}
            _ => {
                for (label, finding) in found.iter().take(TOLD) {
                    notes.push(sentence(label, finding, &result.policy));
                }
                if found.len() > TOLD {
                    notes.push(format!(
                        "{} more like the last; `--format json` has them all.",
                        grouped((found.len() - TOLD) as u64)
                    ));
                }
            }
        }
    }
    notes
}

/// How many silences reach the window at both ends of what a coarse record leaves open; nothing where they agree.
fn reach_words(reach: Option<Reach>) -> String {
    match reach {
        Some(reach) if reach.least_n < reach.most_n => format!(
            ", so that {} to {} of them reach {}",
            grouped(reach.least_n),
            grouped(reach.most_n),
            duration(reach.window_ms)
        ),
        _ => String::new(),
    }
}

/// One finding in words.
pub(crate) fn sentence(label: &str, finding: &Finding, policy: &str) -> String {
    let policy = one_line(policy);
    let range = |rate: Interval| {
        let side = |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), percent_figures);
        format!("{} … {} %", side(rate.lo), side(rate.up))
    };
    match finding {
        Finding::Aborts {
            n,
            window_ms,
            envelope,
        } => format!(
            "{label}: {} {} in an abort; if people abort because it is silent, {} reach {}, 95 % limits {}.",
            counted(*n, "silence"),
            verb(*n, "end"),
            range(envelope.rate),
            duration(*window_ms),
            range(envelope.limits),
        ),
        Finding::CoarseClock { tick_ms, reach } => format!(
            "{label}: every length is a multiple of {}, a coarse clock{}.",
            duration(*tick_ms),
            reach_words(*reach)
        ),
        Finding::Dominated { share } => {
            format!(
                "{label}: one session holds {} of the silences.",
                percent(*share)
            )
        }
        Finding::FewSessions { sessions } => {
            format!(
                "{label}: {}, fewer than 20, so the intervals are rough.",
                counted(*sessions, "session")
            )
        }
        Finding::Heaped {
            heap,
            first_seen_ms,
            p99_ms,
            p99_without_ms,
        } => heaped(label, heap, *first_seen_ms, (*p99_ms, *p99_without_ms)),
        Finding::KillsMissing { limit_ms, sign } => format!(
            "{label}: killed silences appear to be missing{}: {}.",
            limit_ms.map_or_else(String::new, |ms| format!(
                " at the recorded limit of {}",
                duration(ms)
            )),
            missing(*sign)
        ),
        Finding::LimitExceeded { limit_ms, n } => format!(
            "{label}: {} went on beyond the recorded limit of {}; it did not hold for them.",
            counted(*n, "silence"),
            duration(*limit_ms)
        ),
        Finding::NoSessions => format!(
            "{label}: the record names no sessions; intervals take silences as independent."
        ),
        Finding::PolicyThrottle { period_ms, reach } => format!(
            "{label}: {policy} lets events through once in {0}; a reading g stands for a silence in (g - {0}, g]{1}.",
            duration(*period_ms),
            reach_words(*reach)
        ),
        Finding::Suspends { n } => format!(
            "{label}: {} may hold a host suspend and {} read as silence all the same.",
            counted(*n, "silence"),
            are(*n)
        ),
        Finding::Throttled {
            period_ms,
            n,
            reach,
        } => format!(
            "{label}: {} {} at the shortest one, {}, as if events were let through once a period; true silences may be shorter by as much{}.",
            counted(*n, "silence"),
            verb(*n, "lie"),
            duration(*period_ms),
            reach_words(*reach)
        ),
        Finding::UpperBounds { n, of } => format!(
            "{label}: {} of {} are upper bounds, stamped when an output is finished.",
            grouped(*n),
            grouped(*of)
        ),
        Finding::WindowAboveLimit {
            window_ms,
            limit_ms,
            source,
            reached,
        } => {
            let (window, limit) = (duration(*window_ms), duration(*limit_ms));
            format!(
                "{label}: the window {window} of {policy} lies above the recorded limit {limit} ({}): not identified, {}; record with a longer limit or in observe mode.",
                limit_source(*source),
                bound(reached)
            )
        }
    }
}

fn heaped(
    label: &str,
    heap: &Heap,
    first_seen_ms: Option<i64>,
    (with, without): (Option<u64>, Option<u64>),
) -> String {
    let since = first_seen_ms.map_or_else(String::new, |ms| format!(", first on {}", day(ms)));
    let p99 = |ms: Option<u64>| ms.map_or_else(|| "none".to_owned(), duration);
    format!(
        "{label}: {} of nearly one length (mean {}, {} … {} ms{since}): a timeout or retry of a lower layer, not a tail; nearest-rank p99 is {} with them, {} without.",
        counted(heap.n, "silence"),
        duration(heap.mean_ms.round() as u64),
        grouped(heap.min_ms),
        grouped(heap.max_ms),
        p99(with),
        p99(without),
    )
}

fn missing(sign: Truncation) -> String {
    match sign {
        Truncation::KillsUnseen { kills } => format!(
            "the record tells of {}, and there is no silence before any of them",
            counted(kills, "kill")
        ),
        Truncation::KillsWithoutGaps { kills, censored } => format!(
            "the record tells of {}, but {} {} cut there",
            counted(kills, "kill"),
            counted(censored, "silence"),
            are(censored)
        ),
        Truncation::LongestNearLimit { max_ms } => format!(
            "the longest, {}, comes within a tenth of it and none is cut there",
            duration(max_ms)
        ),
    }
}

fn limit_source(source: LimitSource) -> String {
    match source {
        LimitSource::Given => "as given".to_owned(),
        LimitSource::Cuts(n) => format!("found from {} cut silences", grouped(n)),
    }
}

/// How often a window beyond the limit can at most be reached.
fn bound(reached: &Estimate) -> String {
    reached.interval.up.map_or_else(
        || "nothing bounds what reaches the window".to_owned(),
        |up| {
            format!(
                "at most {} of {} reach it (95 %)",
                percent(up),
                counted(reached.n, "silence")
            )
        },
    )
}

fn tails(result: &GapsResult) -> Vec<String> {
    let mut notes = Vec::new();
    for ((group, line), figures) in &result.figures {
        let label = label(group, *line);
        notes.extend(tail_notes(
            figures.tails.iter().map(|tail| (tail.p, &tail.all)),
            &label,
        ));
        if let Some(n) = figures
            .tails
            .iter()
            .find_map(|tail| Some(tail.without_heaps.as_ref()?.0))
        {
            let rest = figures
                .tails
                .iter()
                .filter_map(|tail| Some((tail.p, &tail.without_heaps.as_ref()?.1)));
            let label = format!(
                "{label} without {} of nearly one length",
                counted(n, "silence")
            );
            notes.extend(tail_notes(rest, &label));
        }
    }
    notes
}

/// One sentence per quantile; refusals for one reason together.
fn tail_notes<'a>(
    tails: impl Iterator<Item = (Prob, &'a TailEstimate)>,
    label: &str,
) -> Vec<String> {
    let mut notes = Vec::new();
    let mut refused: Vec<(String, Vec<String>)> = Vec::new();
    for (p, found) in tails {
        let p = p.percentile_label();
        let at = found.chosen.and_then(|index| found.thresholds.get(index));
        if let (None, Some(point), Some(at)) = (found.refusal, found.estimate.point, at) {
            notes.push(extrapolated(&format!("{label} {p}"), found, point, at));
            continue;
        }
        let why = found
            .refusal
            .map_or_else(|| "no data".to_owned(), |refusal| refusal.to_string());
        let why = format!("not extrapolated, n={}: {why}.", grouped(found.estimate.n));
        match refused.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, quantiles)) => quantiles.push(p),
            None => refused.push((why, vec![p])),
        }
    }
    notes.extend(
        refused
            .into_iter()
            .map(|(why, quantiles)| format!("{label} {}: {why}", quantiles.join(", "))),
    );
    notes
}

/// `idle clock p99.99: 612 s [410 s … 1,100 s] extrapolated (GPD, u=18.4 s, k=80, xi=0.31 [0.1 … 0.62]), n=…`, and the
/// level at every threshold.
fn extrapolated(name: &str, found: &TailEstimate, point: f64, at: &ThresholdFit) -> String {
    let ms = |value: f64| duration(value.max(0.0).round() as u64);
    let side = |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), ms);
    let shape = |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), three);
    let interval = found.estimate.interval;
    let levels: Vec<String> = found
        .thresholds
        .iter()
        .filter_map(|fit| {
            let level = ms(fit.level_ms?);
            Some(format!("{level} (u={})", duration(fit.threshold_ms)))
        })
        .collect();
    format!(
        "{name}: {} [{} … {}] extrapolated (GPD, u={}, k={}, xi={} [{} … {}]), n={}{}. By threshold: {}.",
        ms(point),
        side(interval.lo),
        side(interval.up),
        duration(at.threshold_ms),
        grouped(at.excesses as u64),
        three(at.gpd.shape),
        shape(found.shape.lo),
        shape(found.shape.up),
        grouped(found.estimate.n),
        if found.infinite_mean_possible {
            "; infinite mean not excluded"
        } else {
            ""
        },
        levels.join(", ")
    )
}

fn three(value: f64) -> String {
    text(policysim_sim::stats::round_to(value, 3))
}

fn idle_clock(result: &GapsResult) -> Option<String> {
    let hangs: u64 = result.idle.values().map(|readings| readings.hangs).sum();
    let hangs = match hangs {
        0 => String::new(),
        n => format!(
            "; {} labelled as hangs {} left out",
            counted(n, "silence"),
            are(n)
        ),
    };
    (!result.idle.is_empty()).then(|| {
        format!(
            "Idle clock: silence as {} reads it, whatever its window{hangs}.",
            one_line(&result.policy)
        )
    })
}

/// What groups still pool.
fn mixtures(result: &GapsResult) -> Vec<String> {
    if !result.by.is_empty() {
        return result
            .mixed
            .iter()
            .filter(|key| **key != result.by)
            .map(|key| {
                format!(
                    "The data hold more than one {key}; a group that pools them belongs to none, `--by {key}` separates them."
                )
            })
            .collect();
    }
    if result.spreads.is_empty() {
        return Vec::new();
    }
    vec!["A pooled quantile of a mixture belongs to no stratum; `--by harness` or `--by model` separates them.".to_owned()]
}

/// Lowest and highest p99 over strata, and how many strata cannot carry one.
pub(super) fn extremes(spread: &Spread) -> (Option<String>, Option<String>, usize) {
    let mut known: Vec<(u64, &str)> = spread
        .p99
        .iter()
        .filter_map(|(stratum, p99)| Some((p99.point()?, stratum.as_str())))
        .collect();
    known.sort_unstable();
    let shown = |(ms, stratum): &(u64, &str)| format!("{} ({})", duration(*ms), one_line(stratum));
    (
        known.first().map(shown),
        known.last().map(shown),
        spread.p99.len() - known.len(),
    )
}

fn intervals(result: &GapsResult) -> String {
    let quantiles = || {
        result
            .figures
            .values()
            .flat_map(|figures| &figures.quantiles)
    };
    let cut = result.figures.values().any(|figures| figures.cut > 0);
    let by_session = quantiles().any(|quantile| quantile.method() == Method::Sessions);
    let independent = quantiles().any(|quantile| quantile.method() == Method::Independent);
    let curve = if cut {
        ", Kaplan-Meier where silences are cut"
    } else {
        ""
    };
    let kind = match (by_session, independent) {
        (true, false) => "with sessions as the units",
        (true, true) => {
            "with sessions as the units where two are known, else with silences taken as independent"
        }
        (false, _) => {
            "with silences taken as independent (order statistics, beta product), as no two sessions are known"
        }
    };
    let sizes = if result.sizes.is_empty() || !by_session {
        ""
    } else {
        "; run sizes take runs as independent"
    };
    format!("Quantiles are type 1 (nearest rank){curve}; [ … ] are 95 % intervals {kind}{sizes}.")
}

/// Whether a quantile lies beyond what was seen to end.
pub(super) fn exceeds(curve: &CensoredQuantile) -> Option<String> {
    curve.exceeds_ms().map(|ms| format!("> {}", duration(ms)))
}

/// `p` as its percentile.
pub(super) fn percentile(p: &str) -> String {
    p.parse::<Prob>()
        .map_or_else(|_| p.to_owned(), Prob::percentile_label)
}
