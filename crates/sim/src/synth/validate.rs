//! Does a fitted model predict what a policy does to runs that it has not seen?
//!
//! Runs are split by session. A model is fitted to one half; runs drawn from it predict the false-kill rate of fixed
//! policies on the other half, with an interval that holds both the chance of the other half (draws from the model) and
//! the error of the fit (a bootstrap of the own half's sessions, whose slow spells come together).

use std::collections::BTreeMap;

use policysim_policy::document::Value;
use policysim_policy::{Policy, PolicyError, presets};
use rayon::prelude::*;
use thiserror::Error;

use super::fit::fit;
use super::{Generator, Model, ModelError, Options, Sampling};
use crate::judgement::Judgement;
use crate::replay::replay;
use crate::run::{Fleet, RecordedEnd, Run, Symbols};
use crate::stats::bootstrap::Indices;
use crate::stats::choice::{Half, half};
use crate::stats::{Level, Prob, quantile, upper_one_sided};
use crate::sweep::sized_runs;

/// The windows, in seconds; each with tools pausing the idle clock and with tools running under it.
pub const WINDOWS_S: [u64; 6] = [15, 30, 60, 90, 180, 300];

/// Number of policies.
pub const POLICIES: usize = 2 * WINDOWS_S.len();

/// What counts as evidence: bookkeeping does not, because a model of waits draws none.
const REARM: [&str; 6] = [
    "all",
    "-status",
    "-keepalive",
    "-heartbeat",
    "-progress",
    "-other",
];

/// Why a validation cannot be made.
#[derive(Debug, Error)]
pub enum ValidationError {
    /// A model cannot be fitted to a half.
    #[error("no model of one half: {0}")]
    Model(#[from] ModelError),
    /// The fixed policies do not read; a bug.
    #[error("a fixed policy does not read: {0}")]
    Policy(#[from] PolicyError),
}

/// How much is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Study {
    /// Splits, seeded by their number from 1.
    pub splits: u64,
    /// Halves drawn for one prediction.
    pub replicates: u64,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl Study {
    /// What the report is made of.
    pub const FULL: Self = Self {
        splits: 20,
        // The 10th and the 190th of 199 draws hold one more with 90 %.
        replicates: 199,
        seed: 0,
    };
    /// What a test makes again.
    pub const REDUCED: Self = Self {
        splits: 2,
        replicates: 19,
        seed: 0,
    };
}

/// One policy on one split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// False kills per run of the other half.
    pub observed: f64,
    /// What the model expects.
    pub expected: f64,
    /// The 90 % prediction interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Prediction {
    /// Whether the interval holds what was observed.
    pub fn covers(&self) -> bool {
        self.low <= self.observed && self.observed <= self.high
    }
}

/// One split.
#[derive(Clone, Debug)]
pub struct Split {
    /// Its number, the seed.
    pub number: u64,
    /// Runs that the model was fitted to, and those it predicts.
    pub runs: [u64; 2],
    /// Sessions of both.
    pub sessions: [u64; 2],
    /// Harnesses with their share of the runs of both halves.
    pub shares: Vec<(String, [f64; 2])>,
    /// The policies in order: all windows with tools pausing, then with tools running.
    pub predictions: Vec<Prediction>,
}

/// All splits.
#[derive(Clone, Debug)]
pub struct Validation {
    /// What was done.
    pub study: Study,
    /// The splits.
    pub splits: Vec<Split>,
}

/// The fixed policies by structure, windows rising.
fn policies() -> Result<[Vec<Policy>; 2], PolicyError> {
    let mut base = presets::find("pi-desktop-0129").unwrap_or_default();
    let rearm = REARM.map(|item| Value::Text(item.to_owned()));
    base.set("idle.rearm", &Value::List(rearm.to_vec()))?;
    base.set("total.budget", &Value::Text("off".to_owned()))?;
    base.set("turns.cap", &Value::Text("off".to_owned()))?;
    base.turns.by_role = policysim_policy::ByName::default();
    let of = |pause: &str| {
        let policy = |seconds: u64| {
            let mut policy = base.clone();
            policy.set("pause.tool", &Value::Text(pause.to_owned()))?;
            policy.set("idle.window", &Value::Text(format!("{seconds}s")))?;
            Ok(policy)
        };
        WINDOWS_S
            .into_iter()
            .map(policy)
            .collect::<Result<Vec<_>, PolicyError>>()
    };
    Ok([of("idle")?, of("none")?])
}

/// False kills of each policy among runs, and the runs.
#[derive(Clone, Copy, Debug, Default)]
struct Kills {
    kills: [u64; POLICIES],
    runs: u64,
}

impl Kills {
    fn add(&mut self, run: &Run, symbols: &Symbols, policies: &[Vec<Policy>; 2]) {
        if run.end == RecordedEnd::Hung {
            return;
        }
        self.runs += 1;
        for (structure, windows) in policies.iter().enumerate() {
            for (index, policy) in windows.iter().enumerate() {
                let replayed = replay(policy, run, symbols);
                if !replayed.is_kill() {
                    // A longer window kills no run that a shorter one spares.
                    break;
                }
                let wrong = replayed.judgement == Judgement::FalseKill;
                self.kills[structure * windows.len() + index] += u64::from(wrong);
            }
        }
    }

    fn rate(&self, policy: usize) -> f64 {
        self.kills[policy] as f64 / self.runs.max(1) as f64
    }
}

/// Splits, fits and predicts.
///
/// # Errors
/// When a half is no data for a model.
pub fn validate(fleet: &Fleet, study: Study) -> Result<Validation, ValidationError> {
    let policies = policies()?;
    let splits = (1..=study.splits).map(|number| split(fleet, study, number, &policies));
    Ok(Validation {
        study,
        splits: splits.collect::<Result<_, ValidationError>>()?,
    })
}

fn split(
    fleet: &Fleet,
    study: Study,
    number: u64,
    policies: &[Vec<Policy>; 2],
) -> Result<Split, ValidationError> {
    let mut halves = [Half::Select, Half::Certify].map(|_| Fleet {
        runs: Vec::new(),
        symbols: fleet.symbols.clone(),
    });
    for run in sized_runs(fleet) {
        let key = session(run);
        let side = usize::from(half(key.as_bytes(), number) == Half::Certify);
        halves[side].runs.push(run.clone());
    }
    let model = fit(&halves[0], "half", "validation")?.to_model()?;
    let mut observed = Kills::default();
    for run in &halves[1].runs {
        observed.add(run, &fleet.symbols, policies);
    }
    let sizes = [0, 1].map(|side| halves[side].runs.len() as u64);
    let drawn: Vec<Kills> = (0..study.replicates)
        .into_par_iter()
        .map(|replicate| {
            let seed = study.seed + number * 100_000 + replicate;
            kills(&model, sizes[1], seed, policies)
        })
        .collect::<Result<_, ModelError>>()?;
    let mut own: BTreeMap<&str, Kills> = BTreeMap::new();
    for run in &halves[0].runs {
        let kills = own.entry(session(run)).or_default();
        kills.add(run, &fleet.symbols, policies);
    }
    let own: Vec<Kills> = own.into_values().collect();
    let predictions = (0..POLICIES).map(|policy| {
        let error = fit_error(policy, &own, study.seed + number);
        predict(policy, &observed, &drawn, error)
    });
    Ok(Split {
        number,
        runs: sizes,
        sessions: [0, 1].map(|side| {
            let mut keys: Vec<&str> = halves[side].runs.iter().map(session).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.len() as u64
        }),
        shares: shares(&halves),
        predictions: predictions.collect(),
    })
}

fn session(run: &Run) -> &str {
    if run.session.is_empty() {
        &run.name
    } else {
        &run.session
    }
}

fn kills(
    model: &Model,
    runs: u64,
    seed: u64,
    policies: &[Vec<Policy>; 2],
) -> Result<Kills, ModelError> {
    let options = Options {
        seed,
        runs,
        sampling: Sampling::Independent,
    };
    let generator = Generator::new(model, None, options)?;
    let mut kills = Kills::default();
    for number in 0..runs {
        kills.add(&generator.make(number), generator.symbols(), policies);
    }
    Ok(kills)
}

/// Rates in whole billionths, so that their quantiles are order statistics.
const BILLION: f64 = 1e9;

/// Resamples of the sessions of a half.
const RESAMPLES: u64 = 999;

/// Sessions with a kill, and kills, below which a bootstrap of sessions knows too little of a rate (statistics section 3).
const FEW: u64 = 3;
/// The latter.
const FEW_KILLS: u64 = 5;

/// The 5 % and 95 % quantiles of rates.
fn spread(rates: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut rates: Vec<u64> = rates
        .map(|rate| libm::round(rate * BILLION) as u64)
        .collect();
    rates.sort_unstable();
    let at = |p: Prob| {
        quantile(&rates, p)
            .value
            .map_or(0.0, |rate| rate as f64 / BILLION)
    };
    (at(Prob::P95.complement()), at(Prob::P95))
}

/// How far below and above the rate of a half the rate of its fleet may lie: sessions drawn again, and where fewer
/// than [`FEW`] of them have a kill or there are fewer than [`FEW_KILLS`], the one-sided limit of the share of sessions that have one.
fn fit_error(policy: usize, sessions: &[Kills], seed: u64) -> (f64, f64) {
    let rate = |runs: u64, kills: u64| kills as f64 / runs.max(1) as f64;
    let sum = |picked: &mut dyn Iterator<Item = &Kills>| {
        picked.fold((0, 0), |(runs, kills), one| {
            (runs + one.runs, kills + one.kills[policy])
        })
    };
    let (runs, kills) = sum(&mut sessions.iter());
    let own = rate(runs, kills);
    let mut indices = Indices::new(seed, policy as u64);
    let (low, high) = spread((0..RESAMPLES).map(|_| {
        let mut picked = sessions
            .iter()
            .map(|_| &sessions[indices.below(sessions.len() as u64) as usize]);
        let (runs, kills) = sum(&mut picked);
        rate(runs, kills)
    }));
    let hit = sessions.iter().filter(|one| one.kills[policy] > 0).count() as u64;
    let mut above = high - own;
    if (hit < FEW || kills < FEW_KILLS)
        && let Some(limit) = upper_one_sided(hit, sessions.len() as u64, Level::P95)
    {
        above = above.max(limit - own);
    }
    ((own - low).max(0.0), above.max(0.0))
}

fn predict(
    policy: usize,
    observed: &Kills,
    drawn: &[Kills],
    (below, above): (f64, f64),
) -> Prediction {
    let rates = || drawn.iter().map(|other| other.rate(policy));
    let expected = rates().sum::<f64>() / drawn.len().max(1) as f64;
    let (low, high) = spread(rates());
    Prediction {
        observed: observed.rate(policy),
        expected,
        low: (expected - libm::hypot(expected - low, below)).max(0.0),
        high: (expected + libm::hypot(high - expected, above)).min(1.0),
    }
}

/// Each harness with its share of the runs of both halves.
fn shares(halves: &[Fleet; 2]) -> Vec<(String, [f64; 2])> {
    let mut names: Vec<&str> = halves
        .iter()
        .flat_map(|fleet| fleet.runs.iter().map(|run| &*run.harness))
        .collect();
    names.sort_unstable();
    names.dedup();
    let share = |fleet: &Fleet, name: &str| {
        let runs = fleet
            .runs
            .iter()
            .filter(|run| &*run.harness == name)
            .count();
        runs as f64 / fleet.runs.len().max(1) as f64
    };
    names
        .into_iter()
        .map(|name| {
            (
                name.to_owned(),
                [share(&halves[0], name), share(&halves[1], name)],
            )
        })
        .collect()
}

impl Validation {
    /// Pairs of split and policy whose interval holds the observed rate, and all pairs.
    pub fn covered(&self) -> (u64, u64) {
        let all = || self.splits.iter().flat_map(|split| &split.predictions);
        (
            all().filter(|prediction| prediction.covers()).count() as u64,
            all().count() as u64,
        )
    }

    /// The report in Markdown; `digest` names the dataset.
    pub fn report(&self, reduced: &Self, fleet: &Fleet, digest: &str) -> String {
        let (covered, pairs) = self.covered();
        let mut harnesses: Vec<(&str, u64, Vec<&str>)> = Vec::new();
        for run in sized_runs(fleet) {
            let found = harnesses
                .iter_mut()
                .find(|(name, ..)| *name == &*run.harness);
            match found {
                Some((_, runs, sessions)) => {
                    *runs += 1;
                    sessions.push(session(run));
                }
                None => harnesses.push((&run.harness, 1, vec![session(run)])),
            }
        }
        harnesses.sort_unstable();
        let mut of = String::new();
        for (name, runs, sessions) in &mut harnesses {
            sessions.sort_unstable();
            sessions.dedup();
            of.push_str(&format!("| {name} | {runs} | {} |\n", sessions.len()));
        }
        let all: u64 = harnesses.iter().map(|(_, runs, _)| runs).sum();
        let largest = harnesses
            .iter()
            .max_by_key(|(_, runs, sessions)| runs * 1_000 / sessions.len().max(1) as u64)
            .map_or_else(String::new, |(name, runs, sessions)| {
                format!(
                    "{} sessions of `{name}` hold {runs} of the {all} runs",
                    sessions.len()
                )
            });
        let uncovered = self.uncovered();
        format!(
            "# Does a fitted model predict what a policy does to runs it has not seen?\n\n\
Made by `cargo run -p policysim-telemetry --example validation`, policysim {}, seed {}, on the dataset `{digest}`: the recorded sessions of six coding agents that the project measures its importers on (they are not part of the repository). A test makes a reduced part of it again.\n\n\
| harness | runs | sessions |\n| :--- | ---: | ---: |\n{of}\n\
## Method\n\n\
The 12 policies were fixed before any result was seen: idle windows of 15, 30, 60, 90, 180 and 300 s, each with tools pausing the idle clock and with tools running under it, everything else as in `pi-desktop-0129` without its budget and caps. Bookkeeping records are no evidence, because a model of waits draws none.\n\n\
Each of {} splits halves the sessions by a hash of their keys and the split's number. A model is fitted to one half (`synth fit`) and nothing else of it is used. It predicts the rate of false kills per run of the other half, given only how many runs that has. The 90 % prediction interval holds the chance of the other half (the 5 % and 95 % quantiles of the rate over {} halves of its size drawn from the model) and the error of the fit (those of the own half's rate over {RESAMPLES} resamples of its sessions, because slow spells come together in few of them; where fewer than {FEW} sessions have a kill or there are fewer than {FEW_KILLS}, the one-sided 95 % limit of the share of sessions that have one), added as independent errors are.\n\n\
## Result\n\n\
Covered: {covered} of {pairs} pairs of split and policy ({}).\n\n{}\n\
Means over the splits.\n\n\
## What it does not cover\n\n{}\n\
Each line names the split, the two harnesses whose shares differ most between its halves, and the policies missed. \
The common reason: {largest}, so that a split that puts them on one side compares two different fleets; a model of one half knows nothing of a harness, a model or a habit that it has never seen, and its interval only holds what its own sessions differ by. \
Runs of one fleet are predicted; another fleet is not.\n\n\
## Reduced remake\n\n{} splits, {} draws:\n\n{}",
            env!("CARGO_PKG_VERSION"),
            self.study.seed,
            self.study.splits,
            self.study.replicates,
            percent(covered as f64 / pairs.max(1) as f64),
            self.table(),
            if uncovered.is_empty() {
                "Nothing.\n".to_owned()
            } else {
                uncovered
            },
            reduced.study.splits,
            reduced.study.replicates,
            reduced.table(),
        )
    }

    /// A row per policy: coverage, and means over the splits.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| idle | tools | covered | observed | expected | mean 90 % interval |\n| ---: | :--- | ---: | ---: | ---: | :--- |\n",
        );
        for policy in 0..POLICIES {
            let all = || self.splits.iter().map(|split| &split.predictions[policy]);
            let n = self.splits.len().max(1) as f64;
            let mean = |pick: fn(&Prediction) -> f64| all().map(pick).sum::<f64>() / n;
            text.push_str(&format!(
                "| {} s | {} | {} of {} | {} | {} | {} … {} |\n",
                WINDOWS_S[policy % WINDOWS_S.len()],
                if policy < WINDOWS_S.len() {
                    "pause"
                } else {
                    "run"
                },
                all().filter(|prediction| prediction.covers()).count(),
                self.splits.len(),
                percent(mean(|one| one.observed)),
                percent(mean(|one| one.expected)),
                percent(mean(|one| one.low)),
                percent(mean(|one| one.high)),
            ));
        }
        text
    }

    /// A line per split with an uncovered pair: which, and what sets its halves apart.
    pub fn uncovered(&self) -> String {
        let mut text = String::new();
        for split in &self.splits {
            let missed: Vec<String> = split
                .predictions
                .iter()
                .enumerate()
                .filter(|(_, prediction)| !prediction.covers())
                .map(|(policy, prediction)| {
                    format!(
                        "{} s {}: {} observed, {} … {}",
                        WINDOWS_S[policy % WINDOWS_S.len()],
                        if policy < WINDOWS_S.len() {
                            "pause"
                        } else {
                            "run"
                        },
                        percent(prediction.observed),
                        percent(prediction.low),
                        percent(prediction.high),
                    )
                })
                .collect();
            if missed.is_empty() {
                continue;
            }
            let mut apart: Vec<&(String, [f64; 2])> = split.shares.iter().collect();
            apart.sort_by(|a, b| {
                let gap = |one: &(String, [f64; 2])| (one.1[0] - one.1[1]).abs();
                gap(b).total_cmp(&gap(a))
            });
            let apart: Vec<String> = apart
                .iter()
                .take(2)
                .map(|(name, [own, other])| {
                    format!("{name} {} against {}", percent(*own), percent(*other))
                })
                .collect();
            text.push_str(&format!(
                "- split {} ({} runs of {} sessions predict {} of {}; runs by {}): {}\n",
                split.number,
                split.runs[0],
                split.sessions[0],
                split.runs[1],
                split.sessions[1],
                apart.join(", "),
                missed.join("; "),
            ));
        }
        text
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
