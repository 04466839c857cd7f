//! A result of `policysim gaps` as JSON: keys are only ever added.

use std::collections::BTreeMap;

use policysim_sim::gaps::figures::{Spread, Tail};
use policysim_sim::gaps::findings::{LimitSource, Reach};
use policysim_sim::gaps::{
    self, Cut, Finding, GapQuantile, IdleReadings, Line, LineFigures, RunSizes, Silences,
    WaitSamples,
};
use policysim_sim::run::{Measured, WaitKind};
use policysim_sim::stats::tail::TailEstimate;
use policysim_sim::stats::{Estimate, Interval, QuantileEstimate, json as rounded};
use serde::Serialize;
use serde_json::{Value, json};

use super::{DriftResult, GapsResult, WITH, notes};
use crate::SCHEMA_VERSION;
use crate::header::DataHeader;

impl GapsResult {
    /// The result as JSON.
    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut groups: BTreeMap<&str, JsonGroup<'_>> = BTreeMap::new();
        for (group, _) in self.waits.keys() {
            groups.entry(group).or_default();
        }
        for group in self
            .rows
            .keys()
            .chain(self.idle.keys())
            .chain(self.sizes.keys())
        {
            groups.entry(group).or_default();
        }
        for (name, group) in &mut groups {
            group.waits = WaitKind::ALL
                .into_iter()
                .map(|kind| {
                    let samples = self.waits.get(&((*name).to_owned(), kind));
                    let figures = self.figures.get(&((*name).to_owned(), Line::Wait(kind)));
                    let line = JsonLine::new(name, Line::Wait(kind), figures, &self.policy);
                    (kind.name(), JsonWaits::new(samples, line))
                })
                .collect();
            let hand_offs = self.figures.get(&((*name).to_owned(), Line::HandOff));
            group.pre_token_or_cut = hand_offs
                .map(|figures| JsonLine::new(name, Line::HandOff, Some(figures), &self.policy));
            group.idle_clock = self.idle.get(*name).map(|readings| {
                let figures = |line| self.figures.get(&((*name).to_owned(), line));
                JsonIdle::new(
                    readings,
                    JsonLine::new(name, Line::Idle, figures(Line::Idle), &self.policy),
                    figures(Line::Longest),
                )
            });
            group.run_sizes = self
                .sizes
                .get(*name)
                .map(|sizes| JsonSizes::new(sizes, self.also_type7));
            group.runs = self
                .rows
                .get(*name)
                .map(|rows| rows.iter().map(row).collect());
        }
        let json = JsonGaps {
            schema_version: SCHEMA_VERSION,
            data: &self.data,
            by: self.by,
            policy: &self.policy,
            seed: self.seed,
            confidence: 0.95,
            groups,
            spreads: self.spreads.iter().map(JsonSpread::new).collect(),
            notes: notes::notes(self),
            drift: self.drift.as_ref().map(DriftResult::json),
        };
        serde_json::to_string_pretty(&json)
    }
}

/// A run's duration, turns, finished tool calls, silence, gap, and whether it was aborted.
type Row = (u64, u32, u32, u64, u64, u8);

fn row(measured: &Measured) -> Row {
    (
        measured.duration_ms,
        measured.turns,
        measured.tools,
        measured.silence_ms,
        measured.gap_ms,
        u8::from(measured.aborted),
    )
}

#[derive(Serialize)]
struct JsonGaps<'a> {
    schema_version: u32,
    data: &'a DataHeader,
    by: &'a str,
    policy: &'a str,
    seed: u64,
    confidence: f64,
    groups: BTreeMap<&'a str, JsonGroup<'a>>,
    spreads: Vec<JsonSpread<'a>>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Value>,
}

/// What both waits and the idle clock say of their silences.
#[derive(Default, Serialize)]
struct JsonLine {
    gaps_n: u64,
    cut_n: u64,
    sessions: Option<u64>,
    quantiles: Vec<GapQuantile>,
    /// Type 7, for people who compare tools; only where asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    type7_ms: Vec<Option<f64>>,
    findings: Vec<JsonFinding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tails: Vec<JsonTail>,
}

impl JsonLine {
    fn new(group: &str, line: Line, figures: Option<&LineFigures>, policy: &str) -> Self {
        let Some(figures) = figures else {
            return Self {
                quantiles: gaps::latent_quantiles(&Silences::default()),
                ..Self::default()
            };
        };
        let label = notes::label(group, line);
        Self {
            gaps_n: figures.n,
            cut_n: figures.cut,
            sessions: figures.sessions,
            quantiles: figures.quantiles.clone(),
            type7_ms: rounded_each(&figures.type7_ms),
            findings: figures
                .findings
                .iter()
                .map(|finding| JsonFinding::new(&label, finding, policy))
                .collect(),
            tails: figures.tails.iter().flat_map(JsonTail::of).collect(),
        }
    }
}

fn rounded_each(values: &[Option<f64>]) -> Vec<Option<f64>> {
    values.iter().map(|value| value.map(rounded)).collect()
}

/// One finding: its code, its sentence, its numbers.
#[derive(Serialize)]
pub(crate) struct JsonFinding {
    code: &'static str,
    text: String,
    figures: Value,
}

impl JsonFinding {
    pub(crate) fn new(label: &str, finding: &Finding, policy: &str) -> Self {
        Self {
            code: finding.code(),
            text: notes::sentence(label, finding, policy),
            figures: finding_figures(finding),
        }
    }
}

fn reach_figures(reach: Reach) -> Value {
    json!({ "window_ms": reach.window_ms, "least_n": reach.least_n, "most_n": reach.most_n })
}

/// The numbers of a finding.
fn finding_figures(finding: &Finding) -> Value {
    match *finding {
        Finding::Aborts {
            n,
            window_ms,
            envelope,
        } => json!({
            "n": n,
            "window_ms": window_ms,
            "reach_window_rate": envelope.rate,
            "limits": envelope.limits,
        }),
        Finding::CoarseClock { tick_ms, reach } => {
            json!({ "tick_ms": tick_ms, "reach_window": reach.map(reach_figures) })
        }
        Finding::Dominated { share } => json!({ "share": rounded(share) }),
        Finding::FewSessions { sessions } => json!({ "sessions": sessions, "need": 20 }),
        Finding::Heaped {
            heap,
            first_seen_ms,
            p99_ms,
            p99_without_ms,
        } => json!({
            "n": heap.n,
            "mean_ms": rounded(heap.mean_ms),
            "min_ms": heap.min_ms,
            "max_ms": heap.max_ms,
            "expected_n": rounded(heap.expected),
            "first_seen_unix_ms": first_seen_ms,
            "p99_ms": p99_ms,
            "p99_without_ms": p99_without_ms,
        }),
        Finding::KillsMissing { limit_ms, .. } => json!({ "limit_ms": limit_ms }),
        Finding::LimitExceeded { limit_ms, n } => json!({ "limit_ms": limit_ms, "n": n }),
        Finding::NoSessions => json!({}),
        Finding::PolicyThrottle { period_ms, reach } => {
            json!({ "period_ms": period_ms, "reach_window": reach.map(reach_figures) })
        }
        Finding::Suspends { n } => json!({ "n": n }),
        Finding::Throttled {
            period_ms,
            n,
            reach,
        } => json!({
            "period_ms": period_ms,
            "n": n,
            "reach_window": reach.map(reach_figures),
        }),
        Finding::UpperBounds { n, of } => json!({ "n": n, "of": of }),
        Finding::WindowAboveLimit {
            window_ms,
            limit_ms,
            source,
            reached,
        } => json!({
            "window_ms": window_ms,
            "limit_ms": limit_ms,
            "found_from_n": match source {
                LimitSource::Cuts(n) => Some(n),
                LimitSource::Given => None,
            },
            "reach_limit_rate": reached,
        }),
    }
}

#[derive(Serialize)]
struct JsonTail {
    p: String,
    /// Silences of nearly one length that were kept out.
    without_heaped_n: u64,
    #[serde(flatten)]
    level_ms: Estimate,
    threshold_ms: Option<u64>,
    excesses_n: Option<usize>,
    shape: Option<f64>,
    shape_interval: Interval,
    infinite_mean_possible: bool,
    deff: f64,
    refusal: Option<String>,
    thresholds: Vec<JsonThreshold>,
}

#[derive(Serialize)]
struct JsonThreshold {
    threshold_ms: u64,
    excesses_n: usize,
    shape: f64,
    scale_ms: f64,
    level_ms: Option<f64>,
    fit_p_value: Option<f64>,
}

impl JsonTail {
    fn of(tail: &Tail) -> Vec<Self> {
        let all = Self::new(tail, 0, &tail.all);
        let rest = tail
            .without_heaps
            .as_ref()
            .map(|(n, rest)| Self::new(tail, *n, rest));
        std::iter::once(all).chain(rest).collect()
    }

    fn new(tail: &Tail, without_heaped_n: u64, found: &TailEstimate) -> Self {
        let at = found.chosen.and_then(|index| found.thresholds.get(index));
        Self {
            p: tail.p.to_string(),
            without_heaped_n,
            level_ms: found.estimate,
            threshold_ms: at.map(|at| at.threshold_ms),
            excesses_n: at.map(|at| at.excesses),
            shape: at.map(|at| rounded(at.gpd.shape)),
            shape_interval: found.shape,
            infinite_mean_possible: found.infinite_mean_possible,
            deff: rounded(found.deff),
            refusal: found.refusal.map(|refusal| refusal.to_string()),
            thresholds: found
                .thresholds
                .iter()
                .map(|fit| JsonThreshold {
                    threshold_ms: fit.threshold_ms,
                    excesses_n: fit.excesses,
                    shape: rounded(fit.gpd.shape),
                    scale_ms: rounded(fit.gpd.scale),
                    level_ms: fit.level_ms.map(rounded),
                    fit_p_value: fit.p_value.map(rounded),
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct JsonSpread<'a> {
    line: &'static str,
    by: &'static str,
    p99: BTreeMap<&'a str, GapQuantile>,
}

impl<'a> JsonSpread<'a> {
    fn new(spread: &'a Spread) -> Self {
        Self {
            line: spread.line.name(),
            by: spread.key.name(),
            p99: spread
                .p99
                .iter()
                .map(|(stratum, p99)| (stratum.as_str(), *p99))
                .collect(),
        }
    }
}

#[derive(Default, Serialize)]
struct JsonGroup<'a> {
    waits: BTreeMap<&'static str, JsonWaits>,
    /// Hand-offs to output or to the abort that cut them; only where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_token_or_cut: Option<JsonLine>,
    idle_clock: Option<JsonIdle>,
    run_sizes: Option<JsonSizes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<Row>>,
    #[serde(skip)]
    _group: std::marker::PhantomData<&'a ()>,
}

#[derive(Serialize)]
struct JsonWaits {
    n: u64,
    sum_ms: u64,
    max_ms: u64,
    sized_n: u64,
    left_out: BTreeMap<&'static str, u64>,
    upper_bounds: u64,
    censored: u64,
    #[serde(flatten)]
    line: JsonLine,
}

impl JsonWaits {
    fn new(samples: Option<&WaitSamples>, line: JsonLine) -> Self {
        let none = WaitSamples::default();
        let samples = samples.unwrap_or(&none);
        Self {
            n: samples.n,
            sum_ms: samples.sum_ms,
            max_ms: samples.max_ms,
            sized_n: samples.sized_ms.len() as u64,
            left_out: WITH.into_iter().zip(samples.left_out).collect(),
            upper_bounds: samples.upper_bounds,
            censored: samples.censored,
            line,
        }
    }
}

#[derive(Serialize)]
struct JsonIdle {
    n: u64,
    max_ms: Option<u64>,
    censored: u64,
    longest_censored_ms: Option<u64>,
    hangs_left_out: u64,
    cut_by: BTreeMap<&'static str, usize>,
    #[serde(flatten)]
    line: JsonLine,
    longest_per_run: JsonLongest,
}

#[derive(Serialize)]
struct JsonLongest {
    n: u64,
    max: Option<u64>,
    cut_n: u64,
    quantiles: Vec<GapQuantile>,
}

impl JsonIdle {
    fn new(readings: &IdleReadings, line: JsonLine, longest: Option<&LineFigures>) -> Self {
        Self {
            n: readings.observed_ms.len() as u64,
            max_ms: readings.observed_ms.last().copied(),
            censored: readings.censored_ms.len() as u64,
            longest_censored_ms: readings.censored_ms.last().copied(),
            hangs_left_out: readings.hangs,
            cut_by: Cut::ALL
                .into_iter()
                .map(|cut| (cut.name(), readings.silences.cut_by(cut).len()))
                .collect(),
            line,
            longest_per_run: JsonLongest {
                n: readings.longest_ms.len() as u64,
                max: readings.longest_ms.last().copied(),
                cut_n: readings.longest.cut(),
                quantiles: longest.map_or_else(Vec::new, |figures| figures.quantiles.clone()),
            },
        }
    }
}

#[derive(Serialize)]
struct JsonSample {
    n: u64,
    max: Option<u64>,
    quantiles: Vec<QuantileEstimate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    type7: Vec<Option<f64>>,
}

impl JsonSample {
    fn new(sorted: &[u64], also_type7: bool) -> Self {
        Self {
            n: sorted.len() as u64,
            max: sorted.last().copied(),
            quantiles: gaps::quantiles(sorted).to_vec(),
            type7: if also_type7 {
                rounded_each(&gaps::type7(sorted))
            } else {
                Vec::new()
            },
        }
    }
}

#[derive(Serialize)]
struct JsonSizes {
    wall_ms: JsonSample,
    active_ms: JsonSample,
    turns: JsonSample,
    tool_calls: JsonSample,
}

impl JsonSizes {
    fn new(sizes: &RunSizes, also_type7: bool) -> Self {
        let sample = |sorted: &[u64]| JsonSample::new(sorted, also_type7);
        Self {
            wall_ms: sample(&sizes.wall_ms),
            active_ms: sample(&sizes.active_ms),
            turns: sample(&sizes.turns),
            tool_calls: sample(&sizes.tools),
        }
    }
}
