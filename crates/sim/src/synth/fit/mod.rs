//! A model from recorded runs: what they are made of as distributions, none of their sequences.
//!
//! One population per harness, mixed session by session as often as they were recorded. Waits become quantile
//! tables (nearest ranks), numbers of turns and of runs per session counts of values; shares are those of the record.
//! Waits of one session and run resemble each other as much as their normal scores do (the model's `likeness`).

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::ModelError;
use super::model::{
    Calendar, Compaction, Ends, Model, ModelDocument, Population, PopulationDocument, Ppm, Retry,
    Role, RoleList, RunFigure, SourceResolution, SpecialDocument, Streaming, Suspends, Tool, Tools,
    Weighted, WeightedList,
};
use super::quantiles::{QuantileTable, Quantiles, Unit, label};
use crate::run::{Fleet, WaitKind};
use crate::stats::{Counts, Level, Prob, quantile_of_counts};
use crate::sweep::sized_runs;

mod likeness;
mod material;
mod samples;

pub use samples::{FittedSamples, fit_samples};

use likeness::{likeness, ppm};
use material::Material;

/// Quantiles of a wait, in millionths; a table has those that lie between its samples.
const KNOTS: [u32; 40] = [
    1_000, 5_000, 10_000, 20_000, 30_000, 50_000, 75_000, 100_000, 150_000, 200_000, 250_000,
    300_000, 350_000, 400_000, 450_000, 500_000, 550_000, 600_000, 650_000, 700_000, 750_000,
    800_000, 850_000, 875_000, 900_000, 920_000, 940_000, 950_000, 960_000, 970_000, 980_000,
    985_000, 990_000, 993_000, 995_000, 997_000, 998_000, 999_000, 999_500, 999_900,
];

/// A tool has a duration of its own from so many calls up; rarer ones share one.
const CALLS_OF_ITS_OWN: u64 = 100;
/// A model has waits of its own from so many of a kind up.
const WAITS_OF_ITS_OWN: u64 = 300;
/// A role has turns of its own from so many runs up.
const RUNS_OF_ITS_OWN: u64 = 50;
/// Kinds with fewer samples are listed as small.
pub const SMALL: u64 = 1_000;
/// The most calls of one turn that a model tells apart.
const CALLS_MAX: u64 = 64;

/// A kind of wait as it was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FittedWait {
    /// The population.
    pub population: String,
    /// The kind.
    pub kind: WaitKind,
    /// Samples behind it.
    pub n: u64,
}

/// A fitted model, as the document that it is written as.
#[derive(Clone, Debug)]
pub struct Fitted {
    document: ModelDocument<PopulationDocument>,
    waits: Vec<FittedWait>,
    runs: u64,
    sessions: u64,
}

impl Fitted {
    /// The model.
    ///
    /// # Errors
    /// When the runs make no model, for instance because nothing waits for its model.
    pub fn to_model(&self) -> Result<Model, ModelError> {
        let document = self.document.clone();
        let mut population: BTreeMap<String, Population> = BTreeMap::new();
        for (name, one) in document.population {
            population.insert(name, one.try_into()?);
        }
        Model::try_from(ModelDocument {
            schema_version: document.schema_version,
            name: document.name,
            about: document.about,
            source: document.source,
            mixed: document.mixed,
            calendar: document.calendar,
            population,
        })
    }

    /// The kinds of waits by population, with their samples.
    pub fn waits(&self) -> &[FittedWait] {
        &self.waits
    }

    /// Runs behind it.
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// Their sessions.
    pub const fn sessions(&self) -> u64 {
        self.sessions
    }
}

impl Serialize for Fitted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

/// Fits a model called `name` to the runs of `fleet`; `source` says where they come from.
///
/// # Errors
/// [`ModelError::NoPopulation`] without a run; as [`Fitted::to_model`] else.
pub fn fit(fleet: &Fleet, name: &str, source: &str) -> Result<Fitted, ModelError> {
    let mut by_harness: BTreeMap<String, Material> = BTreeMap::new();
    for run in sized_runs(fleet) {
        let harness = if run.harness.is_empty() {
            "runs"
        } else {
            &run.harness
        };
        let material = by_harness.entry(harness.to_owned()).or_default();
        material.add(run, &fleet.symbols);
    }
    let runs: u64 = by_harness.values().map(|material| material.runs).sum();
    let sessions: usize = by_harness
        .values()
        .map(|material| material.sessions.len())
        .sum();
    let about = format!(
        "Fitted to {runs} runs of {sessions} sessions: distributions of what they are made of, none of their sequences."
    );
    let first_ms = sized_runs(fleet).map(|run| run.started_at_ms).min();
    document(name, source, about, &mut by_harness, first_ms.unwrap_or(0))
}

/// The model of the populations in `by_harness`; those without a wait for their model are left out, since nothing can be
/// drawn of them.
fn document(
    name: &str,
    source: &str,
    about: String,
    by_harness: &mut BTreeMap<String, Material>,
    epoch_ms: i64,
) -> Result<Fitted, ModelError> {
    by_harness.retain(|_, material| material.waits.contains_key(&WaitKind::PreToken));
    if by_harness.is_empty() {
        return Err(ModelError::NoPopulation);
    }
    let runs: u64 = by_harness.values().map(|material| material.runs).sum();
    let sessions: u64 = by_harness
        .values()
        .map(|material| material.sessions.len() as u64)
        .sum();
    let waits = by_harness.iter().flat_map(|(population, material)| {
        material.waits.iter().map(|(kind, counts)| FittedWait {
            population: population.clone(),
            kind: *kind,
            n: counts.total(),
        })
    });
    let waits: Vec<FittedWait> = waits.collect();
    let mut population = BTreeMap::new();
    for (name, material) in &*by_harness {
        population.insert(name.clone(), fitted_population(name, material)?);
    }
    let fitted = Fitted {
        document: ModelDocument {
            schema_version: 1,
            name: name.to_owned(),
            about,
            source: source.to_owned(),
            mixed: true,
            calendar: Calendar {
                assumed: true,
                epoch_ms,
                start_every_ms: 90_000,
                runs_per_session: 1,
            },
            population,
        },
        waits,
        runs,
        sessions,
    };
    fitted.to_model()?;
    Ok(fitted)
}

fn fitted_population(name: &str, material: &Material) -> Result<PopulationDocument, ModelError> {
    let resolution = if material.streamed * 2 > material.runs {
        SourceResolution::Stream
    } else {
        SourceResolution::Message
    };
    let piece_gap = match resolution {
        SourceResolution::Stream => WaitKind::InterToken,
        SourceResolution::Message => WaitKind::StreamGap,
    };
    let (special, base) = by_model(material);
    let mut wait = BTreeMap::new();
    for (kind, counts) in &base {
        wait.insert(kind.name().to_owned(), table(Unit::Ms, counts)?);
    }
    let mut by: BTreeMap<&str, BTreeMap<String, Quantiles>> = BTreeMap::new();
    for ((model, kind), counts) in &special {
        let waits = by.entry(model).or_default();
        waits.insert(kind.name().to_owned(), table(Unit::Ms, counts)?);
    }
    let small: Vec<String> = material
        .waits
        .iter()
        .filter(|(_, counts)| counts.total() < SMALL)
        .map(|(kind, counts)| format!("{} {}", kind.name(), counts.total()))
        .collect();
    let mut caveats = Vec::new();
    if !small.is_empty() {
        caveats.push(format!(
            "Fewer than {SMALL} samples ({name}): {}.",
            small.join(", ")
        ));
    }
    let streaming = if material.waits.contains_key(&piece_gap) {
        Some(Streaming {
            assumed: false,
            pieces: values(Unit::Pieces, &material.pieces)?,
        })
    } else {
        None
    };
    Ok(PopulationDocument {
        about: format!(
            "{} runs of {} sessions.",
            material.runs,
            material.sessions.len()
        ),
        resolution,
        approvals_in_tools: false,
        caveats,
        weight: u32::try_from(material.sessions.len()).unwrap_or(u32::MAX),
        runs_per_session: Some(values(
            Unit::Runs,
            &material.sessions.values().copied().collect(),
        )?),
        run: BTreeMap::from([(RunFigure::Turns, values(Unit::Turns, &material.turns)?)]),
        roles: roles(material)?,
        models: models(material),
        tools: tools(material)?,
        streaming,
        retry: retry(material, &mut wait)?,
        likeness: Some(likeness(material, &special, &base)),
        compaction: compaction(material),
        suspends: suspends(material)?,
        ends: ends(material, &mut wait)?,
        by: by
            .into_iter()
            .map(|(model, wait)| SpecialDocument {
                model: Some(model.to_owned()),
                role: None,
                wait,
            })
            .collect(),
        wait,
    })
}

type ByModel = BTreeMap<(String, WaitKind), Counts>;

/// Waits of the models that have enough of their own, and those of all the others; all of them where none is left.
fn by_model(material: &Material) -> (ByModel, BTreeMap<WaitKind, Counts>) {
    let mut all: ByModel = BTreeMap::new();
    for run in &material.by_run {
        for wait in &run.of_model {
            let law = all.entry((run.model.clone(), wait.kind)).or_default();
            law.add(wait.ms, 1);
        }
    }
    let mut base = material.waits.clone();
    if material.models.len() < 2 {
        return (BTreeMap::new(), base);
    }
    let enough: ByModel = all
        .iter()
        .filter(|(_, law)| law.total() >= WAITS_OF_ITS_OWN)
        .map(|(key, law)| (key.clone(), law.clone()))
        .collect();
    for kind in [
        WaitKind::PreToken,
        WaitKind::StreamGap,
        WaitKind::InterToken,
    ] {
        let mut rest = Counts::default();
        for ((model, of), law) in &all {
            if *of == kind && !enough.contains_key(&(model.clone(), kind)) {
                rest.merge(law);
            }
        }
        if rest.total() > 0 {
            base.insert(kind, rest);
        }
    }
    (enough, base)
}

/// Models by the waits that they make rather than by their runs, so that the waits of all of them together are those of
/// the record though their runs differ in length.
fn models(material: &Material) -> WeightedList {
    let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
    for run in &material.by_run {
        *weights.entry(&run.model).or_default() += run.of_model.len() as u64;
    }
    if weights.values().all(|waits| *waits == 0) {
        weights = material
            .models
            .iter()
            .map(|(name, n)| (name.as_str(), *n))
            .collect();
    }
    let weighted = |(name, waits): (&str, u64)| Weighted {
        name: name.to_owned(),
        weight: u32::try_from(waits).unwrap_or(u32::MAX),
    };
    WeightedList {
        assumed: false,
        list: weights.into_iter().map(weighted).collect(),
    }
}

fn roles(material: &Material) -> Result<RoleList, ModelError> {
    let own = |turns: &Counts| {
        let enough = material.role_turns.len() > 1 && turns.total() >= RUNS_OF_ITS_OWN;
        enough.then(|| values(Unit::Turns, turns)).transpose()
    };
    let list = material.role_turns.iter().map(|(name, turns)| {
        Ok(Role {
            name: name.clone(),
            weight: u32::try_from(turns.total()).unwrap_or(u32::MAX),
            turns: own(turns)?,
        })
    });
    Ok(RoleList {
        assumed: false,
        list: list.collect::<Result<_, ModelError>>()?,
    })
}

fn tools(material: &Material) -> Result<Option<Tools>, ModelError> {
    let turns = material.calls.total();
    let with_calls = turns - material.calls.at(0);
    if material.tools.is_empty() || with_calls == 0 {
        return Ok(None);
    }
    let mut list = Vec::new();
    let mut rest: BTreeMap<WaitKind, Counts> = BTreeMap::new();
    for ((kind, name), counts) in &material.tools {
        if counts.total() < CALLS_OF_ITS_OWN {
            rest.entry(*kind).or_default().merge(counts);
            continue;
        }
        list.push(tool(name, *kind, counts)?);
    }
    for (kind, counts) in &rest {
        list.push(tool(&format!("other {}", kind.name()), *kind, counts)?);
    }
    let plain = material
        .tools
        .iter()
        .filter(|((kind, _), _)| *kind == WaitKind::Tool);
    let plain: u64 = plain.map(|(_, counts)| counts.total()).sum();
    let most = material
        .calls
        .iter()
        .map(|(calls, _)| calls)
        .max()
        .unwrap_or(1);
    let calls_weights = (1..=most.min(CALLS_MAX))
        .map(|calls| u32::try_from(material.calls.at(calls)).unwrap_or(u32::MAX));
    Ok(Some(Tools {
        assumed: false,
        turn_share_ppm: share(with_calls, turns),
        calls_weights: calls_weights.collect(),
        parallel_ppm: share(material.at_once, material.several),
        approval_ppm: share(material.approvals, plain),
        list,
    }))
}

fn tool(name: &str, kind: WaitKind, counts: &Counts) -> Result<Tool, ModelError> {
    Ok(Tool {
        name: name.to_owned(),
        weight: u32::try_from(counts.total()).unwrap_or(u32::MAX),
        wait: (kind != WaitKind::Tool).then(|| kind.name().to_owned()),
        duration: Some(table(Unit::Ms, counts)?),
        update_every_ms: None,
    })
}

/// The retry process; puts in the wait that it needs where the record has none of its own.
fn retry(
    material: &Material,
    wait: &mut BTreeMap<String, Quantiles>,
) -> Result<Option<Retry>, ModelError> {
    if material.turns_failed == 0 {
        return Ok(None);
    }
    if !wait.contains_key(WaitKind::ErrorWait.name()) {
        let known = material.waits.get(&WaitKind::PreToken);
        let law = table(Unit::Ms, known.unwrap_or(&Counts::default()))?;
        wait.insert(WaitKind::ErrorWait.name().to_owned(), law);
    }
    let median = |counts: &Counts| quantile_of_counts(counts, Prob::P50, Level::P95).value;
    let measured = material.waits.get(&WaitKind::Retry).and_then(&median);
    let mut schedule_ms = Vec::new();
    for delays in &material.delays {
        let before = schedule_ms.last().copied();
        schedule_ms.push(median(delays).or(before).or(measured).unwrap_or(0));
    }
    let turns: u64 = material.by_run.iter().map(|run| run.turns).sum();
    Ok(Some(Retry {
        assumed: false,
        turn_share_ppm: share(material.turns_failed, turns.max(material.turns_failed)),
        again_ppm: share(material.failed_again, material.failed_calls),
        failures_max: u32::try_from(material.most_failures + 1)
            .unwrap_or(u32::MAX)
            .min(1000),
        schedule_ms,
        backoff: None,
        silent: false,
        outages: None,
    }))
}

fn compaction(material: &Material) -> Option<Compaction> {
    let turns: u64 = material.by_run.iter().map(|run| run.turns).sum();
    let later = turns.saturating_sub(material.runs);
    (material.compactions > 0 && later > 0).then(|| Compaction {
        assumed: false,
        turn_share_ppm: share(material.compactions, later.max(material.compactions)),
        start_seen: material.compaction_starts > 0,
    })
}

fn suspends(material: &Material) -> Result<Option<Suspends>, ModelError> {
    let n = material.suspends.total();
    if n == 0 {
        return Ok(None);
    }
    Ok(Some(Suspends {
        assumed: false,
        run_share_ppm: share(n, material.runs.max(n)),
        length: table(Unit::Ms, &material.suspends)?,
    }))
}

/// How runs end. Runs whose record does not say how count as completed.
fn ends(material: &Material, wait: &mut BTreeMap<String, Quantiles>) -> Result<Ends, ModelError> {
    let of = |name: &str| {
        let runs = material.ends.get(name).copied().unwrap_or(0);
        share(runs, material.runs)
    };
    let has_tool = material
        .tools
        .keys()
        .any(|(kind, _)| *kind == WaitKind::Tool);
    let (mut open_in_model, mut open_in_tool) = (of("open_in_model"), of("open_in_tool"));
    if !has_tool {
        open_in_model = Ppm::try_from(open_in_model.as_u64() + open_in_tool.as_u64())?;
        open_in_tool = Ppm::default();
    }
    let aborted = of("aborted");
    let cut = aborted.as_u64() + open_in_model.as_u64() + open_in_tool.as_u64();
    if cut > 0 && !wait.contains_key(WaitKind::Censored.name()) {
        // Cut while a tool ran: nothing is known of a wait for the model, which then was none.
        let none = Counts::from_iter([0]);
        wait.insert(
            WaitKind::Censored.name().to_owned(),
            table(Unit::Ms, &none)?,
        );
    }
    let hung = |phase: usize| share(material.hung[phase], material.runs);
    let after = &material.record_after_hang;
    Ok(Ends {
        assumed: false,
        hung_before_output_ppm: hung(0),
        hung_mid_stream_ppm: hung(1),
        hung_in_tool_ppm: hung(2),
        aborted_ppm: aborted,
        open_in_model_ppm: open_in_model,
        open_in_tool_ppm: open_in_tool,
        looped_ppm: Ppm::default(),
        looped_turns: None,
        record_after_hang: (after.total() > 0)
            .then(|| table(Unit::Ms, after))
            .transpose()?,
        turns_as_recorded: true,
    })
}

fn share(part: u64, whole: u64) -> Ppm {
    if whole == 0 {
        return Ppm::default();
    }
    ppm(part as f64 / whole as f64)
}

/// A quantile table; one value for no sample at all.
fn table(unit: Unit, counts: &Counts) -> Result<Quantiles, ModelError> {
    let n = counts.total();
    let limit = unit.limit();
    let at = |p: Prob| {
        quantile_of_counts(counts, p, Level::P95)
            .value
            .unwrap_or(0)
            .min(limit)
    };
    let ends = || counts.iter().map(|(value, _)| value.min(limit));
    let mut quantiles = BTreeMap::from([
        ("min".to_owned(), ends().next().unwrap_or(0)),
        ("max".to_owned(), ends().last().unwrap_or(0)),
    ]);
    for p_ppm in KNOTS {
        let rarer = u64::from(p_ppm.min(1_000_000 - p_ppm));
        let Ok(p) = Prob::from_ratio(u64::from(p_ppm), 1_000_000) else {
            continue;
        };
        if n * rarer >= 1_000_000 {
            quantiles.insert(label(p_ppm), at(p));
        }
    }
    QuantileTable::of(unit, n, quantiles).try_into()
}

/// The values themselves with their counts, for numbers that are small and whole.
fn values(unit: Unit, counts: &Counts) -> Result<Quantiles, ModelError> {
    let mut held: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in counts.iter() {
        *held.entry(value.min(unit.limit())).or_default() += count;
    }
    if held.is_empty() {
        held.insert(u64::from(unit != Unit::Pieces), 1);
    }
    let mut table = QuantileTable::of(unit, counts.total(), BTreeMap::new());
    table.samples = held.into_iter().collect();
    table.try_into()
}
