//! A model from durations alone: which run they came from may be known, their order is not.

use std::collections::BTreeMap;

use super::material::{Material, RunWaits, Scored};
use super::{Fitted, document};
use crate::readings::one_limit;
use crate::run::{EventFlags, Fleet, WaitKind};
use crate::stats::Counts;
use crate::synth::ModelError;

/// Turns of a run where samples do not say which run they came from: (value, how common).
const ASSUMED_TURNS: [(u64, u64); 7] = [(1, 2), (2, 2), (4, 2), (6, 2), (10, 1), (20, 1), (40, 1)];

/// What a model fitted to samples rests on.
#[derive(Clone, Debug)]
pub struct FittedSamples {
    /// The model.
    pub fitted: Fitted,
    /// Runs that the samples are worth: those that they name, or as many as their waits make.
    pub runs: u64,
    /// Numbers of turns were assumed, because no run is named.
    pub assumed_turns: bool,
    /// Cut samples, which are in no distribution.
    pub censored: u64,
    /// The one length at which most waits for the model were cut, ms, where none was seen to end later: a limit that was
    /// in force at recording.
    pub limit_ms: Option<u64>,
}

/// Fits a model called `name` to samples, one row outside any run each, named by the run that they came from.
///
/// # Errors
/// [`ModelError::MissingTable`] without samples of the kind `pre_token`.
pub fn fit_samples(fleet: &Fleet, name: &str, source: &str) -> Result<FittedSamples, ModelError> {
    let mut material = Material::default();
    let mut by_run: BTreeMap<&str, RunWaits> = BTreeMap::new();
    let (mut censored, mut cut_ms, mut longest_ms) = (0, Counts::default(), 0);
    for row in &fleet.runs {
        for event in &row.events {
            let Some(wait) = event.wait else { continue };
            if event.flags.has(EventFlags::CENSORED) {
                censored += 1;
                if !pauses(wait.kind) {
                    cut_ms.add(wait.ms, 1);
                }
                continue;
            }
            if !pauses(wait.kind) {
                longest_ms = longest_ms.max(wait.ms);
            }
            material.waits.entry(wait.kind).or_default().add(wait.ms, 1);
            let run = by_run.entry(&row.name).or_insert_with(|| RunWaits {
                session: row.name.to_string(),
                model: row.model.to_string(),
                ..RunWaits::default()
            });
            let (kind, ms) = (wait.kind, wait.ms);
            match kind {
                WaitKind::PreToken | WaitKind::StreamGap | WaitKind::InterToken => {
                    run.turns += u64::from(kind == WaitKind::PreToken);
                    run.of_model.push(Scored { kind, ms });
                }
                WaitKind::Tool | WaitKind::ToolEscalated | WaitKind::Subagent | WaitKind::Human => {
                    let tool = fleet.symbols.name(event.name).to_owned();
                    run.of_tools.push((tool.clone(), ms));
                    let tools = &mut material.tools;
                    tools.entry((kind, tool)).or_default().add(ms, 1);
                }
                _ => {}
            }
            *material.models.entry(row.model.to_string()).or_default() += 1;
            let role = material.role_turns.entry(row.role.to_string());
            role.or_default().add(1, 1);
        }
    }
    let turns = of_kind(&material, &[WaitKind::PreToken]);
    if turns == 0 {
        return Err(ModelError::MissingTable {
            part: "a model of samples".to_owned(),
            table: "samples of the kind pre_token".to_owned(),
        });
    }
    let named = by_run.keys().any(|name| !name.is_empty());
    if named {
        by_run.retain(|_, run| run.turns > 0);
        material.turns = by_run.values().map(|run| run.turns).collect();
        material.sessions = by_run.keys().map(|name| ((*name).to_owned(), 1)).collect();
        material.by_run = by_run.into_values().collect();
        material.runs = material.by_run.len() as u64;
    } else {
        material.turns = ASSUMED_TURNS.into_iter().collect();
        let (sum, n) = ASSUMED_TURNS
            .iter()
            .fold((0, 0), |(sum, n), (value, count)| {
                (sum + value * count, n + count)
            });
        material.runs = (turns * n / sum).max(1);
        material.sessions.insert(String::new(), 1);
    }
    let gaps = of_kind(&material, &[WaitKind::StreamGap, WaitKind::InterToken]);
    material.pieces = spread(gaps, turns);
    let calls: u64 = material.tools.values().map(Counts::total).sum();
    material.calls = spread(calls, turns.saturating_sub(material.runs).max(1));
    if material.waits.contains_key(&WaitKind::InterToken) {
        material.streamed = material.runs;
    }
    let runs = material.runs;
    let mut about = format!(
        "Fitted to {} samples without their order, worth {runs} runs.",
        material.waits.values().map(Counts::total).sum::<u64>()
    );
    if censored > 0 {
        about.push_str(&format!(
            " {censored} cut samples are in no distribution, so that long waits are missing."
        ));
    }
    let mut by_harness = BTreeMap::from([("samples".to_owned(), material)]);
    let fitted = document(name, source, about, &mut by_harness, 0)?;
    Ok(FittedSamples {
        fitted,
        runs,
        assumed_turns: !named,
        censored,
        limit_ms: one_limit(&cut_ms).filter(|&limit_ms| longest_ms <= limit_ms),
    })
}

/// Whether a wait of that kind is one that idle clocks commonly pause for.
const fn pauses(kind: WaitKind) -> bool {
    matches!(
        kind,
        WaitKind::Tool
            | WaitKind::ToolEscalated
            | WaitKind::Subagent
            | WaitKind::Human
            | WaitKind::Approval
    )
}

fn of_kind(material: &Material, kinds: &[WaitKind]) -> u64 {
    let counts = kinds.iter().filter_map(|kind| material.waits.get(kind));
    counts.map(Counts::total).sum()
}

/// `things` spread over `turns` as evenly as whole numbers can be.
fn spread(things: u64, turns: u64) -> Counts {
    let (least, more) = (things / turns, things % turns);
    Counts::from_iter([(least, turns - more), (least + 1, more)])
}
