//! From runs to everything that a report says.

use anyhow::Result;
use policysim_policy::{Millis, Policy};
use policysim_report::form::Printed;
use policysim_report::gaps::GapsResult;
use policysim_report::sizing::facts::SweepFacts;
use policysim_report::sizing::settled::{SettledByWait, SettledLine, Simulated};
use policysim_report::sizing::{LENGTHS_MS, Named, Report, RunFacts, Shown, measured};
use policysim_sim::choose::share_settled;
use policysim_sim::compare::{compare, most_expensive_false_kill};
use policysim_sim::gaps::GapQuantile;
use policysim_sim::gaps::curve::{Curve, curve, log_lengths};
use policysim_sim::ledger;
use policysim_sim::run::Fleet;
use policysim_sim::scan::InMemory;
use policysim_sim::settle::{Cast, Habits, settlement};
use policysim_sim::stats::Prob;
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::settling_lag;
use policysim_sim::timeline::Timeline;
use policysim_sim::window_split::WindowSplit;

use super::args::ReportArgs;
use super::{explore, question};
use crate::args::{GlobalArgs, SweepArgs};
use crate::commands::settle::changes_beside;
use crate::commands::sweep::shell_word;
use crate::commands::{gaps, sweep};
use crate::data::Loaded;
use crate::policy_file;

/// Lengths of the TaskWait that settlement is shown for, ms; the policy's own is added.
const WAITS_MS: [u64; 10] = [
    60_000, 120_000, 180_000, 240_000, 300_000, 420_000, 600_000, 900_000, 1_200_000, 1_800_000,
];

/// Sweeps, compares and describes.
pub(super) fn report(
    args: &ReportArgs,
    global: &GlobalArgs,
    asked: &SweepArgs,
    candidate: Named,
    current: Option<Named>,
) -> Result<Report> {
    let question = sweep::question(asked, global)?;
    let loaded = super::runs(args, global)?;
    let runs = InMemory::new(&loaded.fleet);
    let (runs, header) = (sweep::Events(&runs), &loaded.header);
    let result = sweep::answer(question, &runs, header, Some(&loaded.fleet), global)?;
    let facts = SweepFacts::parse(&result.json()?)?;
    let wider_asked = question::map_args(args, &candidate.policy)?;
    let wider = match &wider_asked {
        Some(asked) => Some(sweep::answer(
            sweep::question(asked, &quiet(global))?,
            &runs,
            header,
            Some(&loaded.fleet),
            global,
        )?),
        None => None,
    };
    let wider_facts = match &wider {
        Some(wider) => Some(SweepFacts::parse(&wider.json()?)?),
        None => None,
    };
    let map = wider.as_ref().unwrap_or(&result);
    let fleet = &loaded.fleet;
    let recorded_idle_ms = match &args.terms.recorded_idle {
        Some(text) => Some(sweep::span("--recorded-idle", text)?.as_u64()),
        None => None,
    };
    let gaps = gaps::described(
        &loaded,
        &candidate.name,
        &candidate.policy,
        recorded_idle_ms,
        global.seed,
    );
    let split = WindowSplit::new(
        &candidate.policy,
        measured(&gaps).and_then(GapQuantile::point),
    );
    let mut report = Report {
        title: super::title(args, &candidate.name, facts.sweep.task_wait_ms),
        adr: args.adr.clone(),
        origin: question::origin(args, global, Some(asked), wider_asked.as_ref()),
        candidate_cell: question::cell_of(&facts.sweep, &candidate.policy),
        candidate_in_map: None,
        candidate,
        current,
        facts,
        wider: wider_facts,
        explorer: explore::explorer(map, fleet, global.seed, &WAITS_MS)?,
        runs: None,
    };
    report.candidate_in_map = question::cell_of(report.map(), &report.candidate.policy);
    let (idle_curve, wait_curve) = curves(&gaps, &report.swept_ms());
    report.runs = Some(RunFacts {
        idle_curve,
        wait_curve,
        spent: ledger::totals(fleet, None).remove("").unwrap_or_default(),
        spent_by_role: ledger::totals(fleet, Some(StratumKey::Role))
            .into_iter()
            .collect(),
        comparison: report
            .current
            .as_ref()
            .map(|current| compare(fleet, &current.policy, &report.candidate.policy)),
        split,
        settled: settled(&report, &loaded, map.cost.options.hang_rate, global.seed),
        shown: shown(args, &report, fleet),
        gaps,
    });
    Ok(report)
}

fn curves(found: &GapsResult, swept_ms: &[u64]) -> (Curve, Curve) {
    let hand_offs = gaps::hand_offs(found);
    let idle = found
        .idle
        .get("")
        .map(|readings| readings.silences.clone())
        .unwrap_or_default();
    let longest_ms = idle
        .gaps()
        .chain(hand_offs.gaps())
        .map(|gap| gap.ms)
        .max()
        .unwrap_or(0);
    let mut lengths = log_lengths(100, longest_ms);
    lengths.push(longest_ms);
    lengths.extend(LENGTHS_MS);
    lengths.extend(swept_ms);
    (curve(&idle, &lengths), curve(&hand_offs, &lengths))
}

fn settled(report: &Report, loaded: &Loaded, hang_rate: Option<Prob>, seed: u64) -> SettledByWait {
    let task_wait_ms = report.facts.sweep.task_wait_ms;
    let mut waits_ms: Vec<u64> = WAITS_MS.into_iter().chain([task_wait_ms]).collect();
    waits_ms.sort_unstable();
    waits_ms.dedup();
    let recommended = report.facts.sweep.recommendation.and_then(|number| {
        let setting = report.facts.sweep.cell(number).setting("idle.window");
        policysim_policy::duration::parse(setting).ok()
    });
    let mut policies: Vec<(&str, Policy)> = vec![("candidate", report.candidate.policy.clone())];
    if let Some(current) = &report.current {
        policies.push(("current", current.policy.clone()));
    }
    if let Some(window) = recommended {
        // Of the recommended cell, its window: what decides settlement.
        let mut policy = report.candidate.policy.clone();
        policy.idle.window = Some(window);
        policies.push(("recommended", policy));
    }
    let mut notes = Vec::new();
    let changes = changes_beside(hang_rate, loaded.header.hung > 0, &mut notes);
    let cast = Cast::recorded(&loaded.fleet, changes, seed);
    let mut lines: Vec<SettledLine> = Vec::new();
    let mut drawn: Vec<Policy> = Vec::new();
    for (name, policy) in policies {
        let Some(window) = policy.idle.window else {
            continue;
        };
        if let Some(same) = drawn.iter().position(|of| *of == policy) {
            lines[same].name.push_str(&format!(" and {name}"));
            continue;
        }
        let lag = settling_lag(&policy);
        lines.push(SettledLine {
            name: name.to_owned(),
            window_ms: window.as_u64(),
            settling_lag_ms: lag.as_u64(),
            shares: waits_ms
                .iter()
                .map(|&wait_ms| share_settled(window.plus(lag), Millis::new(wait_ms)))
                .collect(),
            simulated: waits_ms
                .iter()
                .filter_map(|&wait_ms| simulated(&policy, &cast, wait_ms, seed))
                .collect(),
        });
        drawn.push(policy);
    }
    SettledByWait {
        task_wait_ms,
        waits_ms,
        hang_ppm: changes.hang_ppm.as_u64(),
        notes,
        lines,
    }
}

/// What parents of these runs meet with waits of that length; `None` where the contract shortens them.
fn simulated(policy: &Policy, cast: &Cast<'_>, wait_ms: u64, seed: u64) -> Option<Simulated> {
    let habits = Habits {
        wait: Some(Millis::new(wait_ms)),
        ..Habits::default()
    };
    if habits.window(policy).as_u64() != wait_ms {
        return None;
    }
    Some(Simulated {
        wait_ms,
        settled_in_wait: settlement(policy, cast, &habits, seed).settled_in_wait,
    })
}

/// The second sweep repeats what the first has said.
fn quiet(global: &GlobalArgs) -> GlobalArgs {
    GlobalArgs {
        quiet: true,
        ..global.clone()
    }
}

fn shown(args: &ReportArgs, report: &Report, fleet: &Fleet) -> Option<Shown> {
    let policy = &report.candidate.policy;
    let (index, _) = most_expensive_false_kill(fleet, policy)?;
    let run = &fleet.runs[index];
    let replay_command = format!(
        "policysim replay{} --run {} --policy {}",
        question::data_words(&args.data),
        shell_word(&run.name),
        shell_word(&policy_file::shown_spec(&args.policy))
    );
    Some(Shown {
        run: run.name.to_string(),
        end_ms: run.end_ms,
        line: Timeline::new(policy, run, &fleet.symbols),
        replay_command,
    })
}
