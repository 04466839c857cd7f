//! `policysim gaps`: how long agents are silent.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use policysim_policy::{Millis, Policy, duration};
use policysim_report::form::Printed;
use policysim_report::gaps::{DriftResult, GapsResult};
use policysim_report::units::grouped;
use policysim_sim::gaps::{
    self, GapKey, IdleReadings, Line, Questions, Setting, Silences, WaitSamples, drift, figures,
};
use policysim_sim::grid;
use policysim_sim::run::{EventFlags, Fleet, Measured, WaitKind};
use policysim_sim::stats::bootstrap::Resampling;
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::sized_runs;

use super::plot;
use crate::args::{By, DataArgs, GapsArgs, GlobalArgs, OutputFormat, With};
use crate::data::Loaded;
use crate::exit::ExitStatus;
use crate::output;
use crate::{data, policy_file};

/// Collects the samples and prints them.
#[expect(clippy::too_many_lines, reason = "one result, field after field")]
pub(super) fn run(args: &GapsArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    if let Some(path) = args.plot.as_ref().filter(|path| !plot::is_text(path)) {
        plot::check(path)?;
    }
    if args.idle.is_some() && args.plot.is_none() && args.format != OutputFormat::Table {
        bail!("--idle marks windows on a curve: give --plot FILE as well");
    }
    let candidates = args
        .idle
        .as_deref()
        .map_or_else(|| Ok(Vec::new()), windows)?;
    let policy = policy_file::load_and_tell(&args.policy, global)?;
    let setting = Setting {
        window_ms: policy.policy.idle.window.map(Millis::as_u64),
        recorded_idle_ms: args.recorded_idle.as_deref().map(limit).transpose()?,
        throttle_ms: policy.policy.idle.throttle.map(Millis::as_u64),
    };
    let loaded = data::load(&args.data, global)?;
    let key = args.by.map(key);
    let stratum = match key {
        Some(GapKey::Stratum(key)) => Some(key),
        Some(GapKey::Tool) | None => None,
    };
    let put_back = put_back(&args.with);
    let by_runs = key != Some(GapKey::Tool) && !loaded.samples_only;
    let collected = Collected::new(&loaded, &policy.policy, key, put_back);
    let drift = match &args.against {
        None => None,
        Some(path) => {
            let baseline = DataArgs {
                data: vec![path.clone()],
                ..args.data.clone()
            };
            let baseline = data::load(&baseline, global)?;
            let before = Collected::new(&baseline, &policy.policy, None, put_back);
            let how = Resampling {
                seed: global.seed,
                ..Resampling::default()
            };
            Some(DriftResult {
                lines: drift::compare(&before.lines(), &collected.lines(), setting.window_ms, how),
                baseline: baseline.header,
                seed: global.seed,
            })
        }
    };
    let ask = Questions {
        setting,
        tail_seed: args.tail.then_some(global.seed),
        type7: args.also_type7,
    };
    let result = GapsResult {
        figures: gaps::figures(&collected.waits, &collected.idle, ask),
        spreads: if key.is_none() {
            let policy = by_runs.then_some(&policy.policy);
            figures::spreads(&loaded.fleet, policy, put_back)
        } else {
            Vec::new()
        },
        mixed: figures::mixed(&loaded.fleet)
            .into_iter()
            .map(StratumKey::name)
            .collect(),
        waits: collected.waits,
        idle: collected.idle,
        sizes: if by_runs {
            gaps::run_sizes(&loaded.fleet, Some(stratum.unwrap_or(StratumKey::Role)))
        } else {
            BTreeMap::new()
        },
        rows: if stratum == Some(StratumKey::Source) {
            rows(&loaded.fleet)
        } else {
            BTreeMap::new()
        },
        data: loaded.header,
        by: key.map_or("", GapKey::name),
        policy: policy.name,
        seed: global.seed,
        verbose: args.verbose,
        also_type7: args.also_type7,
        drift,
    };
    if let Some(path) = args.plot.as_ref().filter(|path| !plot::is_text(path)) {
        let canvas = plot::survival(
            result.idle.get(""),
            &hand_offs(&result),
            (&result.policy, &policy.policy),
            &candidates,
        )
        .context("--plot: there is no silence to draw")?;
        plot::write(&canvas, path)?;
    }
    let mut text = result.in_form(args.format.into())?;
    if args.format == OutputFormat::Table && wants_letters(args) {
        let letters = plot::letters(
            result.idle.get(""),
            &hand_offs(&result),
            (&result.policy, &policy.policy),
            &candidates,
        );
        if let Some(letters) = letters {
            text.push('\n');
            text.push_str(&letters);
        }
    }
    output::print(&text)?;
    Ok(ExitStatus::Success)
}

/// Whether the survival curve is printed in letters: on request, or where somebody reads the whole table.
fn wants_letters(args: &GapsArgs) -> bool {
    if let Some(path) = &args.plot {
        return plot::is_text(path);
    }
    let asked = args.idle.is_some() || plot::on_a_terminal();
    asked && args.by.is_none() && args.against.is_none()
}

/// More marks than this on one curve cannot be told apart, and each is an estimate with its interval.
const MOST_MARKS: usize = 200;

/// The finite windows of a grid, ms.
fn windows(text: &str) -> Result<Vec<u64>> {
    let values = grid::parse(text).with_context(|| format!("--idle {text}"))?;
    if values.len() > MOST_MARKS {
        bail!(
            "--idle {text}: {} windows, expected at most {MOST_MARKS} to mark on one curve",
            grouped(values.len() as u64)
        );
    }
    let mut windows = Vec::with_capacity(values.len());
    for value in values {
        let policy = super::sweep::with_value(&Policy::default(), "--idle", "idle.window", &value)?;
        windows.extend(policy.idle.window.map(Millis::as_u64));
    }
    Ok(windows)
}

/// The waits for the model's first output, those that an abort cut included.
pub(super) fn hand_offs(result: &GapsResult) -> Silences {
    let mut found = Silences::default();
    for kind in [WaitKind::PreToken, WaitKind::Censored] {
        if let Some(samples) = result.waits.get(&(String::new(), kind)) {
            found.merge(&samples.silences);
        }
    }
    found
}

/// What `gaps` prints of runs without any option, on the idle clock of `policy`.
pub(super) fn described(
    loaded: &Loaded,
    name: &str,
    policy: &Policy,
    recorded_idle_ms: Option<u64>,
    seed: u64,
) -> GapsResult {
    let put_back = EventFlags::default();
    let collected = Collected::new(loaded, policy, None, put_back);
    let ask = Questions {
        setting: Setting {
            window_ms: policy.idle.window.map(Millis::as_u64),
            recorded_idle_ms,
            throttle_ms: policy.idle.throttle.map(Millis::as_u64),
        },
        tail_seed: None,
        type7: false,
    };
    GapsResult {
        figures: gaps::figures(&collected.waits, &collected.idle, ask),
        spreads: figures::spreads(&loaded.fleet, Some(policy), put_back),
        mixed: figures::mixed(&loaded.fleet)
            .into_iter()
            .map(StratumKey::name)
            .collect(),
        waits: collected.waits,
        idle: collected.idle,
        sizes: gaps::run_sizes(&loaded.fleet, Some(StratumKey::Role)),
        rows: BTreeMap::new(),
        data: loaded.header.clone(),
        by: "",
        policy: name.to_owned(),
        seed,
        verbose: false,
        also_type7: false,
        drift: None,
    }
}

/// The waits and idle-clock readings of one dataset.
struct Collected {
    waits: BTreeMap<(String, WaitKind), WaitSamples>,
    idle: BTreeMap<String, IdleReadings>,
}

impl Collected {
    fn new(loaded: &Loaded, policy: &Policy, key: Option<GapKey>, put_back: EventFlags) -> Self {
        let idle = match key {
            _ if loaded.samples_only => BTreeMap::new(),
            Some(GapKey::Tool) => BTreeMap::new(),
            Some(GapKey::Stratum(key)) => gaps::idle_readings(&loaded.fleet, policy, Some(key)),
            None => gaps::idle_readings(&loaded.fleet, policy, None),
        };
        Self {
            waits: gaps::waits(&loaded.fleet, key, put_back),
            idle,
        }
    }

    fn lines(&self) -> BTreeMap<Line, &Silences> {
        drift::lines(&self.waits, &self.idle)
    }
}

/// The limit that `--recorded-idle` names, ms.
fn limit(text: &str) -> Result<u64> {
    match duration::parse(text) {
        Ok(Millis::ZERO) => {
            bail!("--recorded-idle {text}: expected a duration above 0, such as 600s")
        }
        Ok(limit) => Ok(limit.as_u64()),
        Err(error) => bail!("--recorded-idle: \"{text}\" {error}"),
    }
}

const fn key(by: By) -> GapKey {
    match by {
        By::Source => GapKey::Stratum(StratumKey::Source),
        By::Harness => GapKey::Stratum(StratumKey::Harness),
        By::Model => GapKey::Stratum(StratumKey::Model),
        By::Role => GapKey::Stratum(StratumKey::Role),
        By::Tool => GapKey::Tool,
    }
}

fn put_back(with: &[With]) -> EventFlags {
    with.iter().fold(EventFlags::default(), |flags, with| {
        flags.with(match with {
            With::Approvals => EventFlags::AMBIGUOUS_APPROVAL,
            With::Suspends => EventFlags::SUSPECTED_SUSPEND,
            With::RateLimits => EventFlags::RATE_LIMITED,
            With::Undated => EventFlags::SPANS_UNDATED,
            With::All => gaps::LEFT_OUT
                .iter()
                .fold(EventFlags::default(), |all, (flag, _)| all.with(*flag)),
        })
    })
}

/// The rows of `DEFINITIONS.md` section 5, in closing order.
fn rows(fleet: &Fleet) -> BTreeMap<String, Vec<Measured>> {
    let mut found: BTreeMap<String, Vec<Measured>> = BTreeMap::new();
    for run in sized_runs(fleet) {
        found
            .entry(run.source.to_string())
            .or_default()
            .push(run.measured);
    }
    found
}
