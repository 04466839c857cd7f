//! From runs to everything that a report says.

use anyhow::Result;
use policysim_policy::Millis;
use policysim_report::gaps::GapsResult;
use policysim_report::sizing::facts::SweepFacts;
use policysim_report::sizing::settled::{SettledByWait, SettledLine};
use policysim_report::sizing::{LENGTHS_MS, Named, Report, RunFacts, Shown, measured};
use policysim_sim::choose::share_settled;
use policysim_sim::compare::{compare, most_expensive_false_kill};
use policysim_sim::gaps::curve::{Curve, curve, log_lengths};
use policysim_sim::gaps::{Silences, waits};
use policysim_sim::ledger;
use policysim_sim::run::{EventFlags, Fleet, WaitKind};
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::settling_lag;
use policysim_sim::timeline::Timeline;
use policysim_sim::window_split::WindowSplit;

use super::args::ReportArgs;
use super::question;
use crate::args::{GlobalArgs, SweepArgs};
use crate::commands::sweep::shell_word;
use crate::commands::{gaps, sweep};

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
    let result = sweep::answer(question, &loaded, global);
    let facts = SweepFacts::parse(&result.to_json()?)?;
    let fleet = &loaded.fleet;
    let recorded_idle_ms = match &args.recorded_idle {
        Some(text) => Some(sweep::span("--recorded-idle", text)?.as_u64()),
        None => None,
    };
    let gaps = gaps::described(&loaded, &candidate.name, &candidate.policy, recorded_idle_ms, global.seed);
    let split = WindowSplit::new(
        &candidate.policy,
        measured(&gaps).and_then(|quantile| quantile.point()),
    );
    let mut report = Report {
        title: super::title(args, &candidate.name, facts.sweep.task_wait_ms),
        adr: args.adr.clone(),
        origin: question::origin(args, global, Some(asked)),
        candidate_cell: question::cell_of(&facts.sweep, &candidate.policy),
        candidate,
        current,
        facts,
        runs: None,
    };
    let (idle_curve, wait_curve) = curves(fleet, &gaps, &report.swept_ms());
    report.runs = Some(RunFacts {
        idle_curve,
        wait_curve,
        spent: ledger::totals(fleet, None).remove("").unwrap_or_default(),
        spent_by_role: ledger::totals(fleet, Some(StratumKey::Role)).into_iter().collect(),
        comparison: report
            .current
            .as_ref()
            .map(|current| compare(fleet, &current.policy, &report.candidate.policy)),
        split,
        settled: settled(&report),
        shown: shown(args, &report, fleet),
        gaps,
    });
    Ok(report)
}

fn curves(fleet: &Fleet, gaps: &GapsResult, swept_ms: &[u64]) -> (Curve, Curve) {
    let mut hand_offs = Silences::default();
    for ((_, kind), samples) in waits(fleet, None, EventFlags::default()) {
        if matches!(kind, WaitKind::PreToken | WaitKind::Censored) {
            hand_offs.merge(&samples.silences);
        }
    }
    let idle = gaps.idle.get("").map(|readings| readings.silences.clone()).unwrap_or_default();
    let longest_ms = idle.gaps().chain(hand_offs.gaps()).map(|gap| gap.ms).max().unwrap_or(0);
    let mut lengths = log_lengths(100, longest_ms);
    lengths.extend(LENGTHS_MS);
    lengths.extend(swept_ms);
    (curve(&idle, &lengths), curve(&hand_offs, &lengths))
}

fn settled(report: &Report) -> SettledByWait {
    let task_wait_ms = report.facts.sweep.task_wait_ms;
    let mut waits_ms: Vec<u64> = WAITS_MS.into_iter().chain([task_wait_ms]).collect();
    waits_ms.sort_unstable();
    waits_ms.dedup();
    let recommended = report.facts.sweep.recommendation.and_then(|number| {
        let setting = report.facts.sweep.cell(number).setting("idle.window");
        policysim_policy::duration::parse(setting).ok()
    });
    let lag = settling_lag(&report.candidate.policy);
    let mut policies: Vec<(String, Option<Millis>, Millis)> =
        vec![("candidate".to_owned(), report.candidate.policy.idle.window, lag)];
    if let Some(current) = &report.current {
        policies.push(("current".to_owned(), current.policy.idle.window, settling_lag(&current.policy)));
    }
    policies.push(("recommended".to_owned(), recommended, lag));
    let mut lines: Vec<SettledLine> = Vec::new();
    for (name, window, lag) in policies {
        let Some(window) = window else { continue };
        let same = |line: &&mut SettledLine| {
            line.window_ms == window.as_u64() && line.settling_lag_ms == lag.as_u64()
        };
        if let Some(line) = lines.iter_mut().find(same) {
            line.name.push_str(&format!(" and {name}"));
            continue;
        }
        lines.push(SettledLine {
            name,
            window_ms: window.as_u64(),
            settling_lag_ms: lag.as_u64(),
            shares: waits_ms
                .iter()
                .map(|&wait_ms| share_settled(window.plus(lag), Millis::new(wait_ms)))
                .collect(),
        });
    }
    SettledByWait {
        task_wait_ms,
        waits_ms,
        lines,
    }
}

fn shown(args: &ReportArgs, report: &Report, fleet: &Fleet) -> Option<Shown> {
    let policy = &report.candidate.policy;
    let (index, _) = most_expensive_false_kill(fleet, policy)?;
    let run = &fleet.runs[index];
    let mut replay_command = "policysim replay".to_owned();
    for path in &args.data.data {
        let last = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        replay_command.push_str(&format!(" {}", shell_word(&last)));
    }
    replay_command.push_str(&format!(
        " --run {} --policy {}",
        shell_word(&run.name),
        shell_word(&args.policy)
    ));
    Some(Shown {
        run: run.name.to_string(),
        end_ms: run.end_ms,
        line: Timeline::new(policy, run, &fleet.symbols),
        replay_command,
    })
}
