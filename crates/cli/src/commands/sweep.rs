//! `policysim sweep`: candidates over all runs, and one that can be recommended.

use std::path::Path;

use anyhow::{Context, Result, bail};
use policysim_policy::document::Value;
use policysim_policy::{Millis, Policy, duration};
use policysim_report::charts;
use policysim_report::form::Printed;
use policysim_report::header::DataHeader;
use policysim_report::sizing::facts::SweepFacts;
use policysim_report::sweep::SweepResult;
use policysim_report::table::one_line;
use policysim_report::units::{counted, grouped};
use policysim_sim::certify::Plan;
use policysim_sim::choose::{self, Constraints, Context as ChoiceContext};
use policysim_sim::focus::Found;
use policysim_sim::gaps::counted::Counted;
use policysim_sim::gaps::findings::{heaps_told, of_counted};
use policysim_sim::gaps::{Finding, Setting};
use policysim_sim::grid;
use policysim_sim::hang_cost::{self, Unaware, hang_cost};
use policysim_sim::replay::replay;
use policysim_sim::run::Fleet;
use policysim_sim::scan::{InMemory, Scan};
use policysim_sim::settle::{Cast, Changes, Habits, Settlement, settlement};
use policysim_sim::stats::Prob;
use policysim_sim::stats::traps::Heap;
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::{Axis, Candidate, Question as Asked, candidates, sized_runs};
use policysim_sim::verify::{Difference, VerifyError, verify};
use policysim_telemetry::write_columns;

use super::plot;
use super::settle::changes_beside;
use crate::args::{GlobalArgs, OutputFormat, SweepArgs, SweepBy};
use crate::exit::ExitStatus;
use crate::output;
use crate::progress::Bar;
use crate::{data, policy_file, summary_file};

mod source;

pub(super) use source::{Answers, Events};

/// Windows that are swept when no axis is given.
const DEFAULT_IDLE: &str = "60s..600s/60s";
/// The acceptable share of healthy runs killed when none is given.
const DEFAULT_MAX_FALSE_KILL: &str = "1%";
/// The most cells of one sweep.
const MAX_CELLS: usize = 100_000;

/// What is asked, before any data are read.
pub(super) struct Question<'a> {
    args: &'a SweepArgs,
    base: policy_file::Loaded,
    axes: Vec<Axis>,
    candidates: Vec<Candidate>,
    /// The order of tests, declared by the grid alone.
    plan: Plan,
    max_false_kill: &'a str,
    constraints: Constraints,
    task_wait: Millis,
    recorded_idle: Option<Millis>,
    costs: hang_cost::Options,
}

/// Sweeps and prints the cells, or names the runs that one of them kills.
pub(super) fn run(args: &SweepArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    let mut question = question(args, global)?;
    if let [path] = &args.data.data[..]
        && summary_file::is_one(path)
    {
        return of_summary(question, path, global);
    }
    let opened = data::open_runs(&args.data, global)?;
    let loaded = if opened.samples_only {
        let (runs, cut_at) = super::synth::resampled(&opened.load()?, global)?;
        question.recorded_idle = question.recorded_idle.or(cut_at);
        Some(runs)
    } else if args.settle || args.list_kills.is_some() {
        Some(opened.load()?)
    } else {
        None
    };
    let header = loaded.as_ref().map_or(&opened.header, |all| &all.header);
    if header.runs == 0 {
        bail!("{} holds no run to sweep over", header.name);
    }
    if let Some(path) = &args.plot {
        plot::check(path)?;
    }
    if let Some(cell) = &args.list_kills {
        if args.out.is_some() || args.plot.is_some() || args.format != OutputFormat::Table {
            bail!(
                "--list-kills prints a list for reading: it takes neither --format, --out nor --plot"
            );
        }
        let candidate = cell_named(&question.candidates, cell)?;
        if let Some(loaded) = &loaded {
            output::print(&list_kills(&loaded.fleet, candidate, args))?;
        }
        return Ok(ExitStatus::Success);
    }
    if let Some(folder) = &args.out {
        // Before the work, so that a place that cannot be written costs none of it.
        output::check_folder(folder, &[])?;
    }
    if let Some(loaded) = &loaded {
        return of_events(question, &InMemory::new(&loaded.fleet), loaded, global);
    }
    let (runs, header) = (&opened.dataset, &opened.header);
    if let Some(differs) = verify_pairs(&question, runs, global)? {
        return Ok(output::contradicted(&differs));
    }
    let result = answer(question, &Events(runs), header, None, global)?;
    tell(args, &result)
}

/// Sweeps runs in memory.
fn of_events(
    question: Question<'_>,
    runs: &InMemory<'_>,
    loaded: &data::Loaded,
    global: &GlobalArgs,
) -> Result<ExitStatus> {
    let args = question.args;
    if let Some(differs) = verify_pairs(&question, runs, global)? {
        return Ok(output::contradicted(&differs));
    }
    let fleet = Some(&loaded.fleet);
    let result = answer(question, &Events(runs), &loaded.header, fleet, global)?;
    tell(args, &result)
}

/// Sweeps the runs of a summary file.
fn of_summary(question: Question<'_>, path: &Path, global: &GlobalArgs) -> Result<ExitStatus> {
    let args = question.args;
    let needs_events = [
        (args.list_kills.is_some(), "--list-kills"),
        (args.settle, "--settle"),
        (args.verify.is_some(), "--verify"),
    ];
    if let Some((_, option)) = needs_events.iter().find(|(given, _)| *given) {
        bail!(
            "{option} needs events, and {} is a summary: give the dataset or the logs it was made of",
            path.display()
        );
    }
    data::refuse_reading_options(&args.data, "the argument is a summary")?;
    if let Some(path) = &args.plot {
        plot::check(path)?;
    }
    if let Some(folder) = &args.out {
        output::check_folder(folder, &[])?;
    }
    let summary = summary_file::read(path)?;
    if summary.header.runs == 0 {
        bail!("{} holds no run to sweep over", path.display());
    }
    let result = answer(question, &summary, &summary.header, None, global)?;
    tell(args, &result)
}

/// Writes and prints what was found.
fn tell(args: &SweepArgs, result: &SweepResult) -> Result<ExitStatus> {
    if let Some(folder) = &args.out {
        write_results(result, folder)?;
    }
    if let Some(path) = &args.plot {
        let facts = SweepFacts::parse(&result.json()?)?;
        let canvas = charts::front(&facts.sweep, None)
            .context("--plot: no cell ever notices a hang, so that there is nothing to draw")?;
        plot::write(&canvas, path)?;
    }
    output::print(&result.in_form(args.format.into())?)?;
    Ok(ExitStatus::Success)
}

/// Reads what is asked.
///
/// # Errors
/// When an option, a grid or the base policy does not read.
pub(super) fn question<'a>(args: &'a SweepArgs, global: &GlobalArgs) -> Result<Question<'a>> {
    let base = policy_file::load_and_tell(&args.base, global)?;
    let axes = axes(args)?;
    let cells: usize = axes.iter().map(|axis| axis.values.len()).product();
    if cells > MAX_CELLS {
        bail!("the axes make {cells} cells, expected at most {MAX_CELLS}");
    }
    let candidates = candidates(&base.policy, &axes)?;
    let max_false_kill = args
        .terms
        .max_false_kill
        .as_deref()
        .unwrap_or(DEFAULT_MAX_FALSE_KILL);
    let task_wait = match &args.terms.task_wait {
        Some(text) => span("--task-wait", text)?,
        None => base.policy.task_wait.timeout,
    };
    let recorded_idle = match &args.terms.recorded_idle {
        Some(text) => Some(span("--recorded-idle", text)?),
        None => None,
    };
    Ok(Question {
        plan: Plan::new(&candidates),
        constraints: Constraints {
            max_false_kill: Some(rate("--max-false-kill", max_false_kill)?),
            settle_within_wait: args.terms.settle_within_wait,
        },
        costs: costs(args)?,
        args,
        base,
        axes,
        candidates,
        max_false_kill,
        task_wait,
        recorded_idle,
    })
}

/// Sweeps and chooses.
///
/// `fleet` holds the same runs where parents are to be simulated as well.
///
/// # Errors
/// When the runs cannot be read, or do not hold what is asked.
pub(super) fn answer(
    question: Question<'_>,
    runs: &impl Answers,
    header: &DataHeader,
    fleet: Option<&Fleet>,
    global: &GlobalArgs,
) -> Result<SweepResult> {
    let candidates = &question.candidates;
    let (base, plan) = (&question.base.policy, &question.plan);
    let by = question.args.by;
    let cluster = question.args.terms.cluster.into();
    let asked = Asked {
        base,
        candidates,
        keys: &strata_keys(by),
        seed: global.seed,
        cluster,
    };
    let bar = Bar::new(global.quiet, header.runs, "replaying");
    let swept = runs.sweep(&asked, &|runs| bar.add(runs));
    bar.done();
    let swept = swept?;
    let max_rate = question.constraints.max_false_kill.map(Prob::to_f64);
    let evidence = swept.evidence(max_rate);
    let cells = swept.cells(evidence.is_split());
    let recorded = swept.recorded(question.recorded_idle);
    let context = ChoiceContext {
        base,
        active_ms: swept.partial().active_ms(),
        task_wait: question.task_wait,
        constraints: question.constraints,
        plan,
        evidence: &evidence,
        recorded_idle_ms: recorded.limit.map(|(ms, _)| ms),
        kills_missing: recorded.truncation.is_some(),
    };
    let figures = choose::figures(candidates, &cells, &context);
    let choice = choose::choose(candidates, &cells, &figures, &context);
    let focused = choice.focus();
    let sequence = &plan.sequences()[plan.sequence_of(focused.unwrap_or(0))];
    let window = focused.and_then(|index| candidates[index].policy.idle.window);
    let mut notes = notes(&question);
    let (settled, unaware) = match fleet.filter(|_| question.args.settle) {
        Some(fleet) => {
            let some_hang = header.hung > 0;
            let changes = changes_beside(question.costs.hang_rate, some_hang, &mut notes);
            settled(&question, fleet, changes, global)
        }
        None => (Vec::new(), Unaware::default()),
    };
    let cost = hang_cost(
        candidates,
        (&cells, &unaware),
        sequence,
        focused,
        &evidence,
        question.costs,
    );
    let counted = swept.counted();
    let reads = runs.reads(base);
    let heaps = if reads {
        heaps_told(&counted)
    } else {
        Vec::new()
    };
    let found = Found {
        cost: &cost,
        unaware: &unaware,
        evidence: &evidence,
    };
    let look = runs.look(&asked, &swept, found, &heaps)?;
    notes.extend(runs.unsaid(base));
    notes.extend(source::inexact(&swept, &look, counted.exact));
    let findings = reads.then(|| {
        let first_seen = heaps.iter().zip(look.first_seen_ms.iter().copied());
        let first_seen: Vec<(&Heap, Option<i64>)> = first_seen.collect();
        findings(&counted, base, window, question.recorded_idle, &first_seen)
    });
    Ok(SweepResult {
        settled,
        resampled: look.focus,
        notes,
        pareto: choose::pareto(&cells, &figures),
        detectors: swept.detectors(candidates),
        cost,
        findings: findings.unwrap_or_default(),
        aborts: window.and_then(|window| recorded.abort_envelope(window)),
        data: header.clone(),
        base: question.base.name,
        base_policy: question.base.policy,
        axes: question.axes,
        task_wait: question.task_wait,
        candidates: question.candidates,
        cells,
        figures,
        constraints: question.constraints,
        max_false_kill: question.max_false_kill.to_owned(),
        plan: question.plan,
        protection: evidence.protection,
        cluster,
        seed: global.seed,
        choice,
        recorded,
        strata: swept.partial().groups(),
        by: by.map(stratum_key),
    })
}

/// What parents that wait make of every candidate, by simulation, and how long they do not know of a hang.
fn settled(
    question: &Question<'_>,
    fleet: &Fleet,
    changes: Changes,
    global: &GlobalArgs,
) -> (Vec<Settlement>, Unaware) {
    let cast = Cast::recorded(fleet, changes, global.seed);
    let habits = Habits {
        wait: Some(question.task_wait),
        ..Habits::default()
    };
    let bar = Bar::new(
        global.quiet,
        question.candidates.len() as u64 + 1,
        "simulating",
    );
    let of = |policy: &Policy| {
        let settled = settlement(policy, &cast, &habits, global.seed);
        bar.add(1);
        settled
    };
    let candidates = question.candidates.iter();
    let settled: Vec<Settlement> = candidates.map(|one| of(&one.policy)).collect();
    let unaware = Unaware::new(&settled, &of(&question.base.policy));
    bar.done();
    (settled, unaware)
}

/// What must be said of the idle clock's readings that limits and aborts do not say already.
///
/// `first_seen` holds when the first run with a reading in each heap started, ms since the epoch.
fn findings(
    counted: &Counted,
    base: &Policy,
    window: Option<Millis>,
    recorded_idle: Option<Millis>,
    first_seen: &[(&Heap, Option<i64>)],
) -> Vec<Finding> {
    let first_seen = |from: u64, to: u64| {
        let mut known = first_seen.iter();
        known
            .find(|(heap, _)| (heap.min_ms, heap.max_ms) == (from, to))
            .and_then(|(_, first)| *first)
    };
    let setting = Setting {
        window_ms: window.map(Millis::as_u64),
        recorded_idle_ms: recorded_idle.map(Millis::as_u64),
        throttle_ms: base.idle.throttle.map(Millis::as_u64),
    };
    let mut found = of_counted(counted, setting, first_seen);
    found.retain(|finding| *finding != Finding::NoSessions);
    found
}

/// Holds the sweep against replays of some pairs, where that is asked for, and says how many; a difference is the answer.
fn verify_pairs<S: Scan>(
    question: &Question<'_>,
    runs: &S,
    global: &GlobalArgs,
) -> Result<Option<Box<Difference>>>
where
    S::Error: Into<anyhow::Error>,
{
    let Some(pairs) = question.args.verify else {
        return Ok(None);
    };
    let asked = Asked {
        base: &question.base.policy,
        candidates: &question.candidates,
        keys: &[],
        seed: global.seed,
        cluster: question.args.terms.cluster.into(),
    };
    match verify(runs, &asked, u64::from(pairs), global.seed) {
        Ok(verified) => {
            output::say(
                global.quiet,
                &format!(
                    "verified {} of a run and a cell: {} answered as a replay answers them, {} by a replay",
                    counted(verified.pairs, "pair"),
                    grouped(verified.answered),
                    grouped(verified.pairs - verified.answered)
                ),
            );
            Ok(None)
        }
        Err(VerifyError::Differs(differs)) => Ok(Some(differs)),
        Err(VerifyError::Source(error)) => Err(error.into()),
    }
}

fn notes(question: &Question<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if question.args.terms.max_false_kill.is_none() {
        notes.push(format!(
            "Acceptable false kills: {DEFAULT_MAX_FALSE_KILL} of runs unless --max-false-kill says otherwise."
        ));
    }
    let caps_swept = question.axes.iter().any(|axis| axis.key == "turns.cap");
    if caps_swept && !question.base.policy.turns.by_role.is_empty() {
        notes.push(format!(
            "A swept turn cap holds for every role; the caps by role of {} are set aside.",
            question.base.name
        ));
    }
    notes
}

/// The axes in a fixed order: idle, total, turns, rearm, then the others as written.
fn axes(args: &SweepArgs) -> Result<Vec<Axis>> {
    let mut axes: Vec<Axis> = Vec::new();
    let short = [
        ("--idle", "idle.window", &args.idle),
        ("--total", "total.budget", &args.total),
        ("--turns", "turns.cap", &args.turns),
        ("--rearm", "idle.rearm", &args.rearm),
    ];
    for (option, key, text) in short {
        if let Some(text) = text {
            push_axis(&mut axes, option, key, text)?;
        }
    }
    for written in &args.axis {
        let (key, text) = written.split_once('=').with_context(|| {
            format!("--axis {written}: expected KEY=GRID, for example idle.first=60s,180s")
        })?;
        push_axis(&mut axes, "--axis", key.trim(), text)?;
    }
    if axes.is_empty() {
        push_axis(&mut axes, "--idle", "idle.window", DEFAULT_IDLE)?;
    }
    Ok(axes)
}

fn push_axis(axes: &mut Vec<Axis>, option: &str, key: &str, text: &str) -> Result<()> {
    let values: Vec<Value> = grid::parse(text).with_context(|| format!("{option} {text}"))?;
    if axes.iter().any(|axis| axis.key == key) {
        bail!("{option} {text}: {key} is swept already");
    }
    for value in &values {
        with_value(&Policy::default(), option, key, value)?;
    }
    axes.push(Axis {
        key: key.to_owned(),
        values,
    });
    Ok(())
}

/// `policy` with a value that an option gives for a key.
///
/// # Errors
/// When the key does not take it: the option, the value, and what was expected.
pub(super) fn with_value(
    policy: &Policy,
    option: &str,
    key: &str,
    value: &Value,
) -> Result<Policy> {
    let mut policy = policy.clone();
    policy.set(key, value).with_context(|| match option {
        "--axis" => format!("--axis {key}={}", grid::plain(value)),
        _ => format!("{option} {}", grid::plain(value)),
    })?;
    Ok(policy)
}

/// What the options say of costs.
fn costs(args: &SweepArgs) -> Result<hang_cost::Options> {
    let hang_rate = match &args.terms.hang_rate {
        Some(text) => Some(rate("--hang-rate", text)?),
        None => None,
    };
    let restart = match &args.terms.restart_cost {
        Some(text) => match duration::parse(text) {
            Ok(restart) => restart,
            Err(error) => bail!("--restart-cost: \"{text}\" {error}"),
        },
        None => Millis::ZERO,
    };
    Ok(hang_cost::Options { hang_rate, restart })
}

/// A share written as `0.1%` or `0.001`.
pub(crate) fn rate(option: &str, text: &str) -> Result<Prob> {
    let expected = || format!("{option} {text}: expected a share such as 0.1% or 0.001");
    match text.trim().strip_suffix('%') {
        Some(percent) => Prob::from_percentile(percent.trim()).with_context(expected),
        // A bare 1 or 0.5 is rather a percentage whose sign was forgotten.
        None => match text.trim().parse::<Prob>() {
            Ok(rate) if rate.to_f64() < 0.1 => Ok(rate),
            Ok(_) => bail!(
                "{option} {text}: as a share that is a tenth of all runs or more; write {text}% or 0.1%"
            ),
            Err(error) => Err(error).with_context(expected),
        },
    }
}

/// A duration above 0.
pub(super) fn span(option: &str, text: &str) -> Result<Millis> {
    match duration::parse(text) {
        Ok(Millis::ZERO) => bail!("{option} {text}: expected a duration above 0, such as 600s"),
        Ok(span) => Ok(span),
        Err(error) => bail!("{option}: \"{text}\" {error}"),
    }
}

/// The strata that the worst one is looked for in; the one asked for among them.
fn strata_keys(by: Option<SweepBy>) -> Vec<StratumKey> {
    let mut keys = vec![StratumKey::Harness, StratumKey::Model, StratumKey::Role];
    if by == Some(SweepBy::Source) {
        keys.push(StratumKey::Source);
    }
    keys
}

const fn stratum_key(by: SweepBy) -> StratumKey {
    match by {
        SweepBy::Harness => StratumKey::Harness,
        SweepBy::Model => StratumKey::Model,
        SweepBy::Role => StratumKey::Role,
        SweepBy::Source => StratumKey::Source,
    }
}

fn cell_named<'c>(candidates: &'c [Candidate], cell: &str) -> Result<&'c Candidate> {
    let by_number = cell
        .parse::<usize>()
        .ok()
        .and_then(|number| candidates.get(number.checked_sub(1)?));
    by_number
        .or_else(|| {
            candidates
                .iter()
                .find(|candidate| candidate.label() == cell)
        })
        .with_context(|| {
            format!(
                "--list-kills {cell}: expected a cell from 1 to {}, or its settings like {}",
                candidates.len(),
                candidates
                    .first()
                    .map_or_else(String::new, Candidate::label)
            )
        })
}

/// The runs that a candidate kills, each with the command that replays it.
fn list_kills(fleet: &Fleet, candidate: &Candidate, args: &SweepArgs) -> String {
    let mut text = String::new();
    let mut kills = 0_u64;
    for run in sized_runs(fleet) {
        let replayed = replay(&candidate.policy, run, &fleet.symbols);
        if !replayed.is_kill() {
            continue;
        }
        kills += 1;
        text.push_str(&format!(
            "{} at {} ms: {}, {}\n  policysim replay",
            one_line(&run.name),
            replayed.verdict.at.as_u64(),
            replayed.verdict.cause,
            replayed.judgement.name(),
        ));
        for path in &args.data.data {
            text.push_str(&format!(" {}", shell_word(&path.display().to_string())));
        }
        text.push_str(&format!(
            " --run {} --policy {}",
            shell_word(&run.name),
            shell_word(&args.base)
        ));
        for (key, value) in &candidate.settings {
            text.push_str(&format!(
                " --set {}",
                shell_word(&format!("{key}={}", grid::plain(value)))
            ));
        }
        text.push('\n');
    }
    let label = candidate.label();
    format!("{} by {label}\n{text}", counted(kills, "kill"))
}

/// A word as a POSIX shell takes it.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%#".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", one_line(text).replace('\'', r"'\''"))
    }
}

/// Writes the result set into a folder, all of it or nothing.
fn write_results(result: &SweepResult, folder: &Path) -> Result<()> {
    let json = result.json()?;
    let facts = SweepFacts::parse(&json)?;
    let mut set = output::FileSet::default();
    set.add("sweep.json", format!("{json}\n"));
    set.add("cells.csv", result.csv()?);
    set.add("cells.parquet", write_columns(&result.columns())?);
    match charts::front(&facts.sweep, None) {
        Some(chart) => set.add("front.svg", chart.to_svg()?),
        None => set.outdate("front.svg"),
    }
    set.write(folder)
}
