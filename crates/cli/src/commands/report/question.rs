//! The sweep behind a report: its grid, and the commands that reproduce it.

use std::path::Path;

use anyhow::Result;
use policysim_policy::{Millis, Policy, duration};
use policysim_report::sizing::Origin;
use policysim_report::sizing::facts::Sweep;
use policysim_sim::cluster::Cluster;

use super::args::ReportArgs;
use crate::args::{ClusterBy, DataArgs, GlobalArgs, OutputFormat, SweepArgs};
use crate::commands::sweep::shell_word;
use crate::policy_file;

const IDLE: &str = "60s..600s/60s";
const TOTAL: &str = "1h,3h,6h,off";
const TURNS: &str = "40,60,80,off";

/// The sweep that decides: the candidate is its base, and one of its cells. Without other axes it is about windows alone.
pub(super) fn sweep_args(args: &ReportArgs, candidate: &Policy) -> Result<SweepArgs> {
    let idle = args.idle.as_deref().unwrap_or(IDLE);
    Ok(SweepArgs {
        data: args.data.clone(),
        base: args.policy.clone(),
        idle: Some(with(idle, &shown(candidate.idle.window))?),
        total: match &args.total {
            Some(total) => Some(with(total, &shown(candidate.total.budget))?),
            None => None,
        },
        turns: match &args.turns {
            Some(turns) if candidate.turns.by_role.is_empty() => {
                Some(with(turns, &cap(candidate))?)
            }
            other => other.clone(),
        },
        rearm: None,
        axis: Vec::new(),
        terms: args.terms.clone(),
        by: None,
        settle: false,
        list_kills: None,
        out: None,
        plot: None,
        verify: None,
        format: OutputFormat::Json,
    })
}

/// The wider sweep behind the map and the page's controls; `None` where the first one has all their axes already.
///
/// A swept cap holds for every role: a policy with caps by role would be none of the cells, so that its caps stay.
pub(super) fn map_args(args: &ReportArgs, candidate: &Policy) -> Result<Option<SweepArgs>> {
    let mut wider = sweep_args(args, candidate)?;
    if args.total.is_none() {
        wider.total = Some(with(TOTAL, &shown(candidate.total.budget))?);
    }
    if args.turns.is_none() && candidate.turns.by_role.is_empty() {
        wider.turns = Some(with(TURNS, &cap(candidate))?);
    }
    let wants = args.total.is_none() || wider.turns != args.turns;
    Ok(wants.then_some(wider))
}

fn shown(limit: Option<Millis>) -> String {
    limit.map_or_else(|| "off".to_owned(), duration::show)
}

fn cap(policy: &Policy) -> String {
    let cap = policy.turns.cap;
    cap.map_or_else(|| "off".to_owned(), |cap| cap.to_string())
}

/// A grid with one more value in its place, unless it is there already.
fn with(grid: &str, own: &str) -> Result<String> {
    /// A longer list is not written out: the value stands at its end.
    const MOST: usize = 40;
    // Without a limit is beyond every limit.
    let amount = |text: &str| match duration::parse(text) {
        Ok(span) => span.as_u64(),
        Err(_) => text.parse().unwrap_or(u64::MAX),
    };
    let own_amount = amount(own);
    let values = policysim_sim::grid::parse(grid)?;
    let mut values: Vec<String> = values.iter().map(policysim_sim::grid::plain).collect();
    if values.iter().any(|value| amount(value) == own_amount) {
        return Ok(grid.to_owned());
    }
    if values.len() > MOST {
        return Ok(format!("{grid},{own}"));
    }
    let place = values.iter().position(|value| amount(value) > own_amount);
    values.insert(place.unwrap_or(values.len()), own.to_owned());
    Ok(values.join(","))
}

/// The cell whose swept settings are the policy's own; `None` where another axis than those a report sweeps decides.
pub(super) fn cell_of(sweep: &Sweep, policy: &Policy) -> Option<usize> {
    let own = |key: &str| match key {
        "idle.window" => Some(shown(policy.idle.window)),
        "total.budget" => Some(shown(policy.total.budget)),
        // A swept cap holds for every role and sets caps by role aside.
        "turns.cap" if policy.turns.by_role.is_empty() => Some(cap(policy)),
        _ => None,
    };
    sweep
        .cells
        .iter()
        .find(|cell| {
            sweep.axes.iter().all(|key| {
                let value = cell.setting(key);
                own(key).is_some_and(|own| {
                    own == value
                        || duration::parse(&own).is_ok()
                            && duration::parse(&own) == duration::parse(value)
                })
            })
        })
        .map(|cell| cell.cell)
}

/// The option that a result set cannot answer, where one is given.
pub(super) fn asks_for_runs(args: &ReportArgs) -> Option<&'static str> {
    let given = [
        (args.current.is_some(), "--current"),
        (args.idle.is_some(), "--idle"),
        (args.total.is_some(), "--total"),
        (args.turns.is_some(), "--turns"),
        (args.terms.task_wait.is_some(), "--task-wait"),
        (args.terms.max_false_kill.is_some(), "--max-false-kill"),
        (args.terms.cluster != ClusterBy::default(), "--cluster"),
        (args.terms.settle_within_wait, "--settle-within-wait"),
        (args.terms.recorded_idle.is_some(), "--recorded-idle"),
        (args.terms.hang_rate.is_some(), "--hang-rate"),
        (args.terms.restart_cost.is_some(), "--restart-cost"),
    ];
    given
        .iter()
        .find(|(given, _)| *given)
        .map(|(_, option)| *option)
}

/// The data and how they are read, as words of a command. Folders are named by their last part.
pub(super) fn data_words(data: &DataArgs) -> String {
    let mut words = String::new();
    for path in &data.data {
        words.push_str(&format!(" {}", shell_word(&last_part(path))));
    }
    let read = &data.read;
    for (option, value) in [
        ("--input-format", &data.input_format),
        ("--since", &read.since),
        ("--until", &read.until),
        ("--observed-until", &read.observed_until),
    ] {
        if let Some(value) = value {
            words.push_str(&format!(" {option} {}", shell_word(value)));
        }
    }
    for (option, given) in [
        ("--hash-sources", read.hash_sources),
        ("--dedupe", read.dedupe),
        ("--strict", read.strict),
    ] {
        if given {
            words.push_str(&format!(" {option}"));
        }
    }
    words
}

fn last_part(path: &Path) -> String {
    let last = path.file_name();
    last.map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// How the report was made. Folders are named by their last part: a report travels.
pub(super) fn origin(
    args: &ReportArgs,
    global: &GlobalArgs,
    sweep: Option<&SweepArgs>,
    map: Option<&SweepArgs>,
) -> Origin {
    let data = data_words(&args.data);
    let options = |pairs: &[(&str, Option<&str>)]| {
        let mut text = String::new();
        for (option, value) in pairs {
            if let Some(value) = value {
                text.push_str(&format!(" {option} {}", shell_word(value)));
            }
        }
        text
    };
    let cluster = Cluster::from(args.terms.cluster);
    let cluster = (cluster != Cluster::default()).then(|| cluster.name());
    let common = options(&[
        ("--task-wait", args.terms.task_wait.as_deref()),
        ("--max-false-kill", args.terms.max_false_kill.as_deref()),
        ("--cluster", cluster),
        ("--recorded-idle", args.terms.recorded_idle.as_deref()),
        ("--hang-rate", args.terms.hang_rate.as_deref()),
        ("--restart-cost", args.terms.restart_cost.as_deref()),
    ]);
    let template = args.template.as_deref().map(last_part);
    let policy = policy_file::shown_spec(&args.policy);
    let current = args.current.as_deref().map(policy_file::shown_spec);
    let settle = if args.terms.settle_within_wait {
        " --settle-within-wait"
    } else {
        ""
    };
    let seed = if global.seed == 0 {
        String::new()
    } else {
        format!(" --seed {}", global.seed)
    };
    let command = format!(
        "policysim report{data}{}{common}{settle}{seed} -o DIR",
        options(&[
            ("--policy", Some(&policy)),
            ("--current", current.as_deref()),
            ("--title", args.title.as_deref()),
            ("--adr", args.adr.as_deref()),
            ("--idle", args.idle.as_deref()),
            ("--total", args.total.as_deref()),
            ("--turns", args.turns.as_deref()),
            ("--template", template.as_deref()),
        ])
    );
    let swept = |sweep: &SweepArgs| {
        format!(
            "policysim sweep{data}{}{common}{settle}{seed} --format json",
            options(&[
                ("--base", Some(&policy_file::shown_spec(&sweep.base))),
                ("--idle", sweep.idle.as_deref()),
                ("--total", sweep.total.as_deref()),
                ("--turns", sweep.turns.as_deref()),
            ])
        )
    };
    let sweep_command = sweep.map_or_else(|| format!("cat{data}/sweep.json"), swept);
    Origin {
        command,
        sweep_command,
        gaps_command: sweep.map(|_| {
            format!(
                "policysim gaps{data}{}{seed} --format json",
                options(&[
                    ("--policy", Some(&policy)),
                    ("--recorded-idle", args.terms.recorded_idle.as_deref()),
                ])
            )
        }),
        map_command: map.map(swept),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: global.seed,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_own_value_stands_in_its_place_among_the_others() {
        let check = |grid: &str, own: &str, expected: &str| {
            assert_eq!(with(grid, own).unwrap(), expected);
        };
        check("60s..300s/60s", "300s", "60s..300s/60s");
        check("60s..240s/60s", "150s", "60s,120s,150s,180s,240s");
        check("1h,off", "2h", "1h,2h,off");
        check("1h,3h", "off", "1h,3h,off");
        check("60m,off", "1h", "60m,off");
        check("40,60,off", "50", "40,50,60,off");
        check("1s..100s/1s", "300s", "1s..100s/1s,300s");
    }
}
