//! `policysim settle`: parents that wait for delegates under candidate policies.

use anyhow::{Context, Result, bail};
use policysim_policy::document::Value;
use policysim_policy::{Millis, Policy, WaitMode, duration, task_wait};
use policysim_report::form::Printed;
use policysim_report::header::DataHeader;
use policysim_report::settle::{SettleCell, SettleResult};
use policysim_sim::grid;
use policysim_sim::settle::{Cast, Changes, Habits, Reaction, settlement};
use policysim_sim::stats::Prob;
use policysim_sim::synth::{Generator, Options, Ppm, Sampling};

use crate::args::GlobalArgs;
use crate::exit::ExitStatus;
use crate::output;
use crate::progress::Bar;
use crate::{data, policy_file};

use super::sweep::{rate, with_value};
use super::synth::load_model;

pub(crate) mod args;

use args::{ModeArg, ReactionArg, SettleArgs};

/// Parents that are drawn from a model when no number is given.
const PARENTS_OF_A_MODEL: u32 = 1000;
/// Share of the runs that are made to hang where none is known to, in parts per million.
const ASSUMED_HANGS: u64 = 10_000;
/// The most cells of one simulation.
const MAX_CELLS: usize = 10_000;

/// What one cell simulates.
struct Cell {
    name: String,
    policy: Policy,
    wait: Option<Millis>,
    reaction: Option<Reaction>,
}

/// Simulates and prints.
#[expect(
    clippy::single_match_else,
    reason = "two sources of runs, side by side"
)]
pub(super) fn run(args: &SettleArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let habits = habits(args)?;
    let mut notes = Vec::new();
    let cells = cells(args, global, &mut notes)?;
    let asked = asked_changes(args)?;
    let result = match &args.model {
        Some(path) => {
            let model = load_model(path)?;
            let parents = args.parents.unwrap_or(PARENTS_OF_A_MODEL);
            let options = Options {
                seed: global.seed,
                runs: u64::from(parents) * u64::from(args.tasks),
                sampling: Sampling::Independent,
            };
            let generator = Generator::new(&model, args.population.as_deref(), options)?;
            let mut caveats = vec![format!(
                "Synthetic runs of the model {}: {}",
                model.name(),
                model.about()
            )];
            caveats.extend(
                generator
                    .populations()
                    .flat_map(|one| one.caveats().iter().cloned()),
            );
            let header = DataHeader {
                name: model.name().to_owned(),
                runs: options.runs,
                caveats,
                ..DataHeader::default()
            };
            let hangs = generator
                .populations()
                .map(|one| one.ends().hang_ppm())
                .sum::<u64>();
            let changes = changes(asked, hangs > 0, &mut notes);
            let cast = Cast::model(&generator, options.runs, changes, global.seed);
            simulate(cells, &cast, habits, header, notes, global)
        }
        None => {
            let loaded = data::load(&args.data, global)?;
            if loaded.samples_only {
                bail!(
                    "{} holds samples without their order, and a simulation runs delegates: fit a model with `policysim synth fit` and give it as --model",
                    loaded.header.name
                );
            }
            let changes = changes(asked, loaded.header.hung > 0, &mut notes);
            let mut cast = Cast::recorded(&loaded.fleet, changes, global.seed);
            if let Some(parents) = args.parents {
                cast.keep(u64::from(parents) * u64::from(args.tasks));
            }
            if cast.runs() == 0 {
                bail!("{} holds no run whose end is known", loaded.header.name);
            }
            simulate(cells, &cast, habits, loaded.header, notes, global)
        }
    };
    output::print(&result.in_form(args.format.into())?)?;
    Ok(ExitStatus::Success)
}

fn simulate(
    cells: Vec<Cell>,
    cast: &Cast<'_>,
    habits: Habits,
    data: DataHeader,
    notes: Vec<String>,
    global: &GlobalArgs,
) -> SettleResult {
    let bar = Bar::new(global.quiet, cells.len() as u64, "simulating");
    let settled = |cell: Cell| {
        let habits = Habits {
            wait: cell.wait.or(habits.wait),
            on_expiry: cell.reaction.or(habits.on_expiry),
            ..habits
        };
        let settled = settlement(&cell.policy, cast, &habits, global.seed);
        bar.add(1);
        SettleCell {
            policy: cell.name,
            idle: cell.policy.idle.window,
            settled,
        }
    };
    let cells = cells.into_iter().map(settled).collect();
    bar.done();
    SettleResult {
        data,
        habits,
        seed: global.seed,
        left_out: cast.left_out(),
        hang_ppm: cast.changes().hang_ppm.as_u64(),
        nested_ppm: cast.changes().nested_ppm.as_u64(),
        cells,
        notes,
    }
}

/// Every policy with every window, wait and reaction, the last varying fastest.
fn cells(args: &SettleArgs, global: &GlobalArgs, notes: &mut Vec<String>) -> Result<Vec<Cell>> {
    let windows = match &args.idle {
        None => vec![None],
        Some(text) => {
            let values = grid::parse(text).with_context(|| format!("--idle {text}"))?;
            values.into_iter().map(Some).collect()
        }
    };
    let waits = waits(args)?;
    let reactions: Vec<Option<Reaction>> = if args.on_expiry.is_empty() {
        vec![None]
    } else {
        let known = |arg: &ReactionArg| Some(reaction(*arg, args.unchanged));
        args.on_expiry.iter().map(known).collect()
    };
    let count = [
        args.policy.len(),
        windows.len(),
        waits.len(),
        reactions.len(),
    ]
    .iter()
    .product::<usize>();
    if count > MAX_CELLS {
        bail!(
            "policies, windows, waits and reactions make {count} cells, expected at most {MAX_CELLS}"
        );
    }
    let mut cells = Vec::with_capacity(count);
    for spec in &args.policy {
        let loaded = policy_file::load_and_tell(spec, global)?;
        for window in &windows {
            let policy = match window {
                None => loaded.policy.clone(),
                Some(window) => with_value(&loaded.policy, "--idle", "idle.window", window)?,
            };
            for &wait in &waits {
                held(wait, &policy, notes);
                for &reaction in &reactions {
                    cells.push(Cell {
                        name: loaded.name.clone(),
                        policy: policy.clone(),
                        wait,
                        reaction,
                    });
                }
            }
        }
    }
    Ok(cells)
}

fn waits(args: &SettleArgs) -> Result<Vec<Option<Millis>>> {
    let Some(text) = &args.wait else {
        return Ok(vec![None]);
    };
    grid::parse(text)
        .with_context(|| format!("--wait {text}"))?
        .iter()
        .map(|value| {
            let plain = grid::plain(value);
            match (value, duration::parse(&plain)) {
                (Value::Text(_), Ok(wait)) => Ok(Some(wait)),
                (_, Err(error)) => bail!("--wait: \"{plain}\" {error}"),
                (_, Ok(_)) => bail!("--wait: \"{plain}\" has no unit: {plain}s? {plain}ms?"),
            }
        })
        .collect()
}

/// Notes a wait that the contract does not take as written.
fn held(wait: Option<Millis>, policy: &Policy, notes: &mut Vec<String>) {
    let Some(wait) = wait else { return };
    let habits = Habits {
        wait: Some(wait),
        ..Habits::default()
    };
    let window = habits.window(policy);
    if window != wait {
        let note = format!(
            "A wait of {} is held to {}: whole seconds from {} to {}.",
            duration::show(wait),
            duration::show(window),
            duration::show(task_wait::MIN_WAIT),
            duration::show(policy.task_wait.max),
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

const fn reaction(arg: ReactionArg, unchanged: u32) -> Reaction {
    match arg {
        ReactionArg::WaitAgain => Reaction::WaitAgain,
        ReactionArg::ReadAsFailure => Reaction::ReadAsFailure,
        ReactionArg::CloseTurn => Reaction::CloseTurn,
        ReactionArg::Stop => Reaction::Stop,
        ReactionArg::Judge => Reaction::Judge { unchanged },
    }
}

fn habits(args: &SettleArgs) -> Result<Habits> {
    let span = |option: &str, text: &str| match duration::parse(text) {
        Ok(span) => Ok(span),
        Err(error) => bail!("{option}: \"{text}\" {error}"),
    };
    let horizon = span("--horizon", &args.horizon)?;
    if horizon == Millis::ZERO || horizon > MAX_HORIZON {
        bail!(
            "--horizon {}: expected a duration above 0 and up to 1000d",
            args.horizon
        );
    }
    Ok(Habits {
        tasks: args.tasks,
        spawn_every: span("--spawn-every", &args.spawn_every)?,
        think: span("--think", &args.think)?,
        cap: args.cap,
        wait: None,
        mode: args.mode.map(|mode| match mode {
            ModeArg::All => WaitMode::All,
            ModeArg::Any => WaitMode::Any,
        }),
        min_completed: args.min_completed,
        on_expiry: None,
        unwinding: span("--unwinding", &args.unwinding)?,
        horizon,
    })
}

/// The longest observation of one parent: sums of squares stay exact far beyond.
pub(crate) const MAX_HORIZON: Millis = Millis::from_secs(1000 * 86_400);

/// What the options add to the runs; a hang rate that is not given is decided by the runs.
fn asked_changes(args: &SettleArgs) -> Result<(Option<Ppm>, Ppm)> {
    let hangs = match &args.hang_rate {
        Some(text) => Some(ppm("--hang-rate", text)?),
        None => None,
    };
    let nested = match &args.nested {
        Some(text) => ppm("--nested", text)?,
        None => Ppm::default(),
    };
    Ok((hangs, nested))
}

/// A share in parts per million, rounded to the nearest.
pub(crate) fn ppm(option: &str, text: &str) -> Result<Ppm> {
    let share = rate(option, text)?.to_f64();
    ppm_of(share).with_context(|| format!("{option} {text}: expected a share of at most 100%"))
}

/// The same of a share.
fn ppm_of(share: f64) -> Option<Ppm> {
    Ppm::try_from((share * 1e6).round() as u64).ok()
}

/// What is changed of recorded runs beside a sweep: labelled hangs are there already, and a rate that costs assume adds
/// none to them.
pub(crate) fn changes_beside(
    hang_rate: Option<Prob>,
    some_hang: bool,
    notes: &mut Vec<String>,
) -> Changes {
    let given = hang_rate.map(Prob::to_f64).and_then(ppm_of);
    let given = given.filter(|_| !some_hang);
    changes((given, Ppm::default()), some_hang, notes)
}

/// What is changed of recorded runs: where none is labelled as hung, some are made to hang, and `notes` says so.
fn changes(
    (hangs, nested): (Option<Ppm>, Ppm),
    some_hang: bool,
    notes: &mut Vec<String>,
) -> Changes {
    let hang_ppm = match hangs {
        Some(given) => given,
        None if some_hang => Ppm::default(),
        None => {
            notes.push(
                "No run is labelled as hung: 1 % of the runs are made to hang at a uniform moment (assumed; --hang-rate says otherwise)."
                    .to_owned(),
            );
            Ppm::try_from(ASSUMED_HANGS).unwrap_or_default()
        }
    };
    Changes {
        hang_ppm,
        nested_ppm: nested,
    }
}
