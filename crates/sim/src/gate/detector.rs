//! The watchdog as a failure detector: what a window makes of silences that ended (statistics section 10).

use policysim_policy::Policy;

use crate::resampled::{detector_limits, session_run_silences};
use crate::run::Fleet;
use crate::stats::bootstrap::Resampling;
use crate::stats::compounding::mean_run_rate;
use crate::stats::detector::qos;
use crate::stats::verdict::RunCounts;
use crate::stats::{Counts, Interval};

use super::amount::{Context, exact, two_sided};
use super::check::{Code, Figure};
use super::metric::Metric;
use super::rate::{Judged, RateBound, nothing};
use super::rules::FigureRule;

/// Ended silences by session and run, ms, as the structure of one policy reads them; runs labelled as hung are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suspicions {
    sessions: Vec<Vec<Vec<u64>>>,
}

impl Suspicions {
    /// Reads the silences of `fleet` as `policy` sees them.
    pub fn of(fleet: &Fleet, policy: &Policy) -> Self {
        Self {
            sessions: session_run_silences(fleet, policy),
        }
    }

    fn runs(&self) -> impl Iterator<Item = &Vec<u64>> {
        self.sessions.iter().flatten()
    }

    /// Runs with a silence of at least the window, by session.
    fn suspected(&self, window_ms: u64) -> Vec<RunCounts> {
        let has = |run: &&Vec<u64>| run.iter().any(|&ms| ms >= window_ms);
        let of = |runs: &Vec<Vec<u64>>| RunCounts {
            kills: runs.iter().filter(has).count() as u64,
            unresolved: 0,
            runs: runs.len() as u64,
        };
        self.sessions.iter().map(of).collect()
    }
}

/// A figure of the detector with one-sided limits, judged where it is a share of runs.
pub(super) fn detector(rule: &FigureRule, context: Context<'_>) -> Judged {
    if let Some(swept) = &context.figures.swept {
        return swept.detector(rule, context.level);
    }
    let Some(found) = &context.figures.detector else {
        return Judged::without(Code::NotInSource);
    };
    let Some(window) = context.policy.idle.window else {
        return Judged::lacking("the idle window is off, so that no run is ever suspected");
    };
    let window_ms = window.as_u64();
    if rule.metric == Metric::ObservedRunRate {
        let bound = RateBound::new(rule, context.level);
        return bound.judge(&found.suspected(window_ms), rule.cluster);
    }
    let silences: Counts = found.runs().flatten().copied().collect();
    let qos = qos(&silences, window_ms);
    if qos.gaps == 0 {
        return nothing();
    }
    if rule.metric == Metric::Mistakes {
        return exact(Some(qos.mistakes as f64), Some(qos.gaps));
    }
    let how = Resampling {
        seed: context.seed,
        level: two_sided(context.level),
        ..Resampling::default()
    };
    let sessions: Vec<Vec<u64>> = found.sessions.iter().map(|runs| runs.concat()).collect();
    let sessions: Vec<Vec<u64>> = sessions
        .into_iter()
        .filter(|gaps| !gaps.is_empty())
        .collect();
    let limits = detector_limits(&sessions, window_ms, how);
    let per_gap = limits.per_gap_rate.estimate.interval;
    let gaps_per_run: Vec<u64> = found.runs().map(|run| run.len() as u64).collect();
    let compounded = |rate: Option<f64>| mean_run_rate(rate?, &gaps_per_run);
    let (point, interval) = match rule.metric {
        Metric::PerGapRate => (qos.per_gap_rate, per_gap),
        Metric::MistakesPerActiveHour => (qos.mistakes_per_hour, limits.mistakes_per_hour),
        Metric::MistakeRecurrence => (qos.recurrence_ms, limits.recurrence_ms),
        Metric::QueryAccuracy => (qos.query_accuracy, limits.query_accuracy.interval),
        // it rises with the rate per silence, and so do its limits
        Metric::CompoundedRunRate => (
            compounded(qos.per_gap_rate),
            Interval {
                lo: compounded(per_gap.lo),
                up: compounded(per_gap.up),
            },
        ),
        _ => return Judged::without(Code::NotInSource),
    };
    Judged {
        figure: Figure {
            point,
            lower: interval.lo,
            upper: interval.up,
            n: Some(qos.gaps),
            hits: Some(qos.mistakes),
            ..Figure::default()
        },
        ..Judged::default()
    }
}
