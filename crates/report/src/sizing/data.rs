//! What was asked, on which data, and how: the sections that stand before any option.

use policysim_policy::{Millis, Policy, duration as span};
use policysim_sim::gaps::curve::Curve;
use policysim_sim::ledger::{Account, Totals};

use super::document::{Block, Datum, Grid, Prose, Section};
use super::words::{WAITS, count, estimate, length, total};
use super::{Report, RunFacts};
use crate::gaps::Part;
use crate::table::Align;
use crate::units::{counted, grouped, percent};

/// The lengths that the table of a survival curve has beside the windows, ms.
pub const LENGTHS_MS: [u64; 7] = [1_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];

impl Report {
    /// Question, data, answer, and what would change it, in a few sentences.
    pub(super) fn context(&self) -> Section {
        let sweep = &self.facts.sweep;
        let mut section = Section::new("context", "Context");
        section.say(
            Prose::titled("Question.", "Which ")
                .term("idle-window", "idle window")
                .text(format!(" for {}, given a ", self.candidate.name))
                .term("taskwait", "TaskWait")
                .text(format!(
                    " of {}?{}",
                    span::show(Millis::new(sweep.task_wait_ms)),
                    match sweep.constraints.max_false_kill_rate {
                        Some(rate) => format!(
                            " At most {} of runs that live may be killed, at 95 % confidence.",
                            percent(rate)
                        ),
                        None => String::new(),
                    }
                )),
        );
        section.say(Prose::titled("Data.", self.data_line()));
        section.say(Prose::titled("Answer.", sweep.reason.replace('\n', " ")));
        section.say(self.verdict_on_the_candidate());
        if let Some(words) = self.what_would_change_it() {
            section.say(Prose::titled("What would change it.", words));
        }
        let mut grid = Grid::new(
            "Limits of the policies that this is about",
            &[
                ("limit", Align::Left, None),
                ("candidate", Align::Right, Some("candidate")),
                ("current", Align::Right, Some("policy-in-force")),
            ],
        );
        let current = self.current.as_ref().map(|named| &named.policy);
        for (name, of) in LIMITS {
            grid.push(vec![
                Datum::text(name),
                Datum::text(of(&self.candidate.policy)),
                Datum::text(current.map_or_else(|| "not given".to_owned(), of)),
            ]);
        }
        section.say(
            Prose::new("The candidate is ")
                .code(self.candidate.name.clone())
                .text(match &self.current {
                    Some(_) => ", the policy in force ",
                    None => "; no policy in force was named (",
                })
                .code(
                    self.current
                        .as_ref()
                        .map_or_else(|| "--current".to_owned(), |named| named.name.clone()),
                )
                .text(if self.current.is_some() { "." } else { ")." }),
        );
        section.add(Block::Grid(grid));
        section
    }

    fn data_line(&self) -> String {
        let data = &self.facts.sweep.data;
        let mut text = data.subject();
        text.push_str(&format!(
            "; {} labelled as hung, {} cut by the end of their log, {} aborted in a silence{}.",
            grouped(data.hung),
            grouped(data.open_runs),
            grouped(self.facts.sweep.recorded.aborts_in_silence),
            if data.lines == 0 {
                String::new()
            } else {
                format!("; {}", data.unreadable())
            },
        ));
        text
    }

    /// What the data can carry, the gap table, the survival curve, and where time went.
    pub(super) fn data(&self) -> Section {
        let mut section = Section::new("data", "Data and its limits");
        section.say(Prose::new(self.data_line()));
        let caveats = &self.facts.sweep.data.caveats;
        if !caveats.is_empty() {
            section.add(Block::List(
                caveats.iter().map(|words| Prose::noted(words)).collect(),
            ));
        }
        let Some(runs) = &self.runs else {
            section.say(
                Prose::new("This report was made from a result set of a sweep, which holds no gaps and no runs: gap table, survival curve, run sizes, ledger of time, comparison with a policy in force, the parts of the window, simulated settlement, costs at other hang rates and the timeline of a run need the dataset itself."),
            );
            return section;
        };
        section.add(Block::Title("Gaps".to_owned()));
        let title = format!(
            "Silences by kind of wait, and the idle clock of {} whatever its window; each figure with its 95 % interval",
            runs.gaps.policy
        );
        section.add(Block::Grid(runs.gaps.grid(Part::Waits, title)));
        section.add(Block::List(
            runs.gaps
                .notes()
                .iter()
                .map(|words| Prose::noted(words))
                .collect(),
        ));
        section.add(Block::Title("How long silences last".to_owned()));
        section.add(Block::Chart("survival"));
        section.add(Block::Grid(self.survival_grid(runs)));
        section.add(Block::Title("Run sizes".to_owned()));
        section.add(Block::Grid(runs.gaps.grid(
            Part::Sizes,
            "What budgets and caps are sized on; runs labelled as hung are left out".to_owned(),
        )));
        section.add(Block::Title("Where the time went".to_owned()));
        section.add(Block::Chart("ledger"));
        section.add(Block::Grid(ledger_grid(runs)));
        section
    }

    fn survival_grid(&self, runs: &RunFacts) -> Grid {
        let cut =
            |curve: &Curve| format!("n = {}, {} cut short", grouped(curve.n), grouped(curve.cut));
        let mut grid = Grid::new(
            format!(
                "Share of silences that reach a length. Idle clock: {}; {WAITS}: {}",
                cut(&runs.idle_curve),
                cut(&runs.wait_curve)
            ),
            &[
                ("length", Align::Right, None),
                ("idle clock\n[95 %]", Align::Left, Some("interval")),
                ("seen", Align::Right, Some("seen")),
                (
                    "pre-token waits\n[95 %]",
                    Align::Left,
                    Some("pre-token-wait"),
                ),
                ("seen", Align::Right, Some("seen")),
            ],
        );
        let swept = self.swept_ms();
        for reach in &runs.idle_curve.reaches {
            if !swept.contains(&reach.ms) && !LENGTHS_MS.contains(&reach.ms) {
                continue;
            }
            let waits = runs.wait_curve.reaches.iter().find(|of| of.ms == reach.ms);
            let mut row = vec![
                length(Some(reach.ms)),
                estimate(&reach.share),
                count(reach.seen),
            ];
            row.extend(waits.map_or_else(
                || vec![Datum::text("not estimable"), count(0)],
                |waits| vec![estimate(&waits.share), count(waits.seen)],
            ));
            grid.push(row);
        }
        grid
    }

    /// How figures came about.
    pub(super) fn method(&self) -> Section {
        let protection = &self.facts.sweep.protection;
        let mut section = Section::new("method", "Method");
        section.say(
            Prose::new("Every run was replayed under every candidate by the watchdog core that a harness embeds. A deadline is inclusive: a silence of exactly the window is a kill. A kill is a ")
                .term("false-kill", "false kill")
                .text(" when the record shows the run alive afterwards, and ")
                .term("unresolved", "unresolved")
                .text(" where the record cannot tell; rates are per run, and runs labelled as hung are in no false-kill rate."),
        );
        let words = match protection.method.as_str() {
            "split_and_fixed_sequence" => format!(
                "Runs were split by session (seed {}): {} ranked the cells, the other {} alone gave verdicts, and windows were tested from the largest down to the first that is not shown to be safe.",
                protection.seed,
                grouped(protection.select_runs),
                grouped(protection.certify_runs)
            ),
            "fixed_sequence" => format!(
                "There are too few runs to be split: windows were tested on all {} from the largest down to the first that is not shown to be safe, and costs are in-sample.",
                grouped(protection.certify_runs)
            ),
            _ => format!(
                "One cell was tested, on {}: nothing was chosen.",
                counted(protection.certify_runs, "run")
            ),
        };
        section.say(Prose::titled("Protection from luck.", words));
        section.say(
            Prose::new("Intervals are 95 %; ")
                .term("interval", "how they are made")
                .text(", and every other word in a table's head, is defined at the end."),
        );
        section
    }
}

type LimitOf = fn(&Policy) -> String;

/// The limits of a policy that a reader compares.
const LIMITS: [(&str, LimitOf); 5] = [
    ("idle window", |policy| limit(policy.idle.window)),
    ("total budget", |policy| limit(policy.total.budget)),
    ("turn cap", |policy| {
        let cap = |cap: Option<u32>| cap.map_or_else(|| "off".to_owned(), |cap| cap.to_string());
        let roles: Vec<String> = policy
            .turns
            .by_role
            .entries()
            .iter()
            .map(|(role, of)| format!("{role} {}", cap(*of)))
            .collect();
        if roles.is_empty() {
            cap(policy.turns.cap)
        } else {
            format!("{}; {}", cap(policy.turns.cap), roles.join(", "))
        }
    }),
    ("TaskWait", |policy| span::show(policy.task_wait.timeout)),
    ("kill delay and grace", |policy| {
        span::show(policy.kill.delay.plus(policy.kill.grace))
    }),
];

fn limit(limit: Option<Millis>) -> String {
    limit.map_or_else(|| "off".to_owned(), span::show)
}

/// What part of all time stands in an account; none of no time.
pub(super) fn share_of(ms: u128, totals: &Totals) -> f64 {
    match totals.span_ms() {
        0 => 0.0,
        span_ms => ms as f64 / span_ms as f64,
    }
}

fn ledger_grid(runs: &RunFacts) -> Grid {
    let mut columns = vec![
        ("runs", Align::Left, None),
        ("n", Align::Right, Some("n")),
        ("in all", Align::Right, Some("time-account")),
    ];
    columns
        .extend(Account::ALL.map(|account| (account.name(), Align::Right, Some("time-account"))));
    let mut grid = Grid::new(
        "Time by account, hung runs included; every millisecond of a record is in one",
        &columns,
    );
    let row = |name: &str, totals: &Totals| {
        let span_ms = totals.span_ms();
        let mut row = vec![Datum::text(name), count(totals.runs), total(span_ms)];
        row.extend(totals.ms.iter().map(|&ms| {
            Datum::of(
                format!(
                    "{} · {}",
                    crate::units::hours(ms),
                    percent(share_of(ms, totals))
                ),
                ms as f64,
            )
        }));
        row
    };
    grid.push(row("all", &runs.spent));
    for (role, totals) in &runs.spent_by_role {
        grid.push(row(&format!("role {role}"), totals));
    }
    grid
}
