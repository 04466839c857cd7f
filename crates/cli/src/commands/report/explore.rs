//! What the page's controls choose among, beside the cells themselves: settlement by wait, and costs.

use anyhow::Result;
use policysim_policy::Millis;
use policysim_report::sizing::explorer::{Costs, Explorer};
use policysim_report::sweep::SweepResult;
use policysim_sim::certify::Evidence;
use policysim_sim::choose::share_settled;
use policysim_sim::hang_cost::{self, Unaware, hang_cost};
use policysim_sim::run::Fleet;
use policysim_sim::stats::Prob;
use policysim_sim::sweep::settling_lag;

/// Hang rates that the page offers, as `--hang-rate` takes them.
const HANG_RATES: [&str; 9] = [
    "0.05%", "0.1%", "0.2%", "0.5%", "1%", "2%", "5%", "10%", "20%",
];
/// Costs of a restart that the page offers, ms.
const RESTARTS_MS: [u64; 5] = [0, 30_000, 300_000, 1_800_000, 3_600_000];

/// Everything for the cells of `map`; its own wait and restart cost are among what is offered.
pub(super) fn explorer(
    map: &SweepResult,
    fleet: &Fleet,
    seed: u64,
    waits_ms: &[u64],
) -> Result<Explorer> {
    let mut waits_ms: Vec<u64> = waits_ms
        .iter()
        .copied()
        .chain([map.task_wait.as_u64()])
        .collect();
    waits_ms.sort_unstable();
    waits_ms.dedup();
    let settled = map.candidates.iter().map(|candidate| {
        let window = candidate.policy.idle.window?;
        Some(window.plus(settling_lag(&candidate.policy)))
    });
    Ok(Explorer {
        windows_ms: map
            .candidates
            .iter()
            .map(|candidate| candidate.policy.idle.window.map(Millis::as_u64))
            .collect(),
        settles: settled
            .map(|settled| {
                waits_ms
                    .iter()
                    .map(|&wait_ms| Some(share_settled(settled?, Millis::new(wait_ms))))
                    .collect()
            })
            .collect(),
        waits_ms,
        costs: costs(map, fleet, seed)?,
    })
}

fn costs(map: &SweepResult, fleet: &Fleet, seed: u64) -> Result<Costs> {
    let max_rate = map.constraints.max_false_kill.map(Prob::to_f64);
    let evidence = Evidence::new(fleet, map.cluster, map.candidates.len(), max_rate, seed);
    let mut restarts_ms: Vec<u64> = RESTARTS_MS
        .into_iter()
        .chain([map.cost.options.restart.as_u64()])
        .collect();
    restarts_ms.sort_unstable();
    restarts_ms.dedup();
    let mut rates: Vec<(String, Prob)> = Vec::new();
    for text in HANG_RATES {
        rates.push((
            text.to_owned(),
            Prob::from_percentile(text.trim_end_matches('%'))?,
        ));
    }
    if let Some(own) = map.cost.options.hang_rate
        && rates.iter().all(|(_, rate)| *rate != own)
    {
        rates.push((format!("{}%", own.to_f64() * 100.0), own));
        rates.sort_by(|(_, a), (_, b)| a.to_f64().total_cmp(&b.to_f64()));
    }
    let sequences = map.plan.sequences();
    let price = |restart_ms: u64, rate: Prob, sequence: &[usize], focus: Option<usize>| {
        let options = hang_cost::Options {
            hang_rate: Some(rate),
            restart: Millis::new(restart_ms),
        };
        hang_cost(
            &map.candidates,
            (&map.cells, &Unaware::default()),
            sequence,
            focus,
            &evidence,
            options,
        )
    };
    let mut found = Costs {
        hang_rates: rates
            .iter()
            .map(|(text, rate)| (text.clone(), rate.to_f64()))
            .collect(),
        sequence_of: (0..map.cells.len())
            .map(|index| map.plan.sequence_of(index))
            .collect(),
        ..Costs::default()
    };
    for &restart_ms in &restarts_ms {
        let (mut per_run, mut cheapest) = (Vec::new(), Vec::new());
        for (_, rate) in &rates {
            per_run.push(
                (0..map.cells.len())
                    .map(|index| price(restart_ms, *rate, &[], Some(index)).focus?.ranked_ms)
                    .collect(),
            );
            cheapest.push(
                sequences
                    .iter()
                    .map(|sequence| {
                        let best = price(restart_ms, *rate, sequence, None).cheapest.ok()?;
                        Some((best.cell + 1, best.value_ms))
                    })
                    .collect(),
            );
        }
        found.per_run_ms.push(per_run);
        found.cheapest.push(cheapest);
    }
    found.restarts_ms = restarts_ms;
    Ok(found)
}
