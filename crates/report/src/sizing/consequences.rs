//! What follows: settlement, what windows cost, whom a pooled rate hides, one run in full, rules, and how to do it again.

use policysim_sim::stats::{Level, rates};

use super::Report;
use super::document::{Block, Datum, Grid, Prose, Section};
use super::words::{count, dash, estimate, length, limit};
use crate::charts::by_limit;
use crate::table::Align;
use crate::units::{are, counted, duration, grouped, percent};

impl Report {
    pub(super) fn consequences(&self) -> Section {
        let mut section = Section::new("consequences", "Consequences");
        self.settlement(&mut section);
        self.cost(&mut section);
        self.strata(&mut section);
        self.one_run(&mut section);
        section
    }

    fn settlement(&self, section: &mut Section) {
        let Some(found) = self.runs.as_ref().map(|runs| &runs.settled) else {
            return;
        };
        section.add(Block::Title("Settlement".to_owned()));
        section.add(Block::Chart("settlement"));
        let mut columns = vec![("TaskWait".to_owned(), Align::Right, Some("taskwait"))];
        for line in &found.lines {
            let name = format!("{}, idle {}", line.name, duration(line.window_ms));
            columns.push((name.clone(), Align::Right, Some("settles-in-wait")));
            columns.push((
                format!("{name}: simulated\n[95 %]"),
                Align::Left,
                Some("settlement-simulation"),
            ));
        }
        let columns: Vec<(&str, Align, Option<&'static str>)> = columns
            .iter()
            .map(|(name, align, term)| (name.as_str(), *align, *term))
            .collect();
        let mut grid = Grid::new(
            "Share of hangs that settle inside the wait in which they begin: in closed form, without a sample behind it, and as simulated",
            &columns,
        );
        for (index, &wait_ms) in found.waits_ms.iter().enumerate() {
            let mut row = vec![length(Some(wait_ms))];
            for line in &found.lines {
                row.push(Datum::of(percent(line.shares[index]), line.shares[index]));
                let simulated = line.simulated.iter().find(|of| of.wait_ms == wait_ms);
                row.push(simulated.map_or_else(
                    || Datum::text("longer than the contract allows"),
                    |of| {
                        let mut datum = estimate(&of.settled_in_wait);
                        datum
                            .text
                            .push_str(&format!(" (n = {})", grouped(of.settled_in_wait.n)));
                        datum
                    },
                ));
            }
            grid.push(row);
        }
        section.add(Block::Grid(grid));
        section.say(
            Prose::new("The closed form lets a hang begin at any moment of the wait alike; ")
                .term("settlement-simulation", "the simulation")
                .text(if found.hang_ppm == 0 {
                    " lets it begin where the runs of this record hang, counted from the moment at which their parent waits.".to_owned()
                } else {
                    format!(
                        " makes {} of the runs hang, at a uniform moment of each, counted from the moment at which their parent waits: none of this record is labelled as hung.",
                        percent(found.hang_ppm as f64 / 1e6)
                    )
                }),
        );
        if !found.notes.is_empty() {
            section.add(Block::List(
                found
                    .notes
                    .iter()
                    .map(|words| Prose::noted(words))
                    .collect(),
            ));
        }
    }

    fn cost(&self, section: &mut Section) {
        let sweep = &self.facts.sweep;
        let cost = &sweep.cost;
        section.add(Block::Title("Hang rate and cost".to_owned()));
        if cost.best_for.is_empty() {
            section.say(Prose::new(format!(
                "Nothing is said on cost: {}.",
                cost.refused
                    .as_deref()
                    .unwrap_or("there is nothing to compare")
            )));
            return;
        }
        let side = |limit: Option<f64>| limit.map_or_else(|| "0 %".to_owned(), percent);
        section.say(
            Prose::new(format!(
                "{} of {} {} labelled as hung; the ",
                grouped(cost.hangs),
                counted(cost.runs, "run"),
                are(cost.hangs)
            ))
            .term("hang-rate", "hang rate")
            .text(format!(
                " lies in [{} … {}]. A restart costs {} beyond the work lost. ",
                side(cost.hang_rates.lo),
                side(cost.hang_rates.up),
                if cost.restart_ms == 0 {
                    "nothing".to_owned()
                } else {
                    duration(cost.restart_ms)
                }
            ))
            .term("cost", "On cost")
            .text(match (cost.cheapest_cell, &cost.refused) {
                (Some(number), _) => format!(
                    " alone the best over that range{} is {}.",
                    sweep.among_its_windows(),
                    sweep.settings(sweep.cell(number))
                ),
                (None, Some(words)) => format!(" nothing is said: {words}."),
                (None, None) => " nothing is said.".to_owned(),
            }),
        );
        section.add(Block::Chart("hang-rate"));
        let mut grid = Grid::new(
            format!(
                "The cheapest window by hang rate, n = {}{}; the choice switches where one range ends, which is a point figure: no interval is worked out for it",
                counted(cost.runs, "run"),
                cost.ranked_words()
            ),
            &[
                ("window", Align::Left, Some("cell")),
                ("cheapest from a hang rate of", Align::Right, Some("cost")),
                ("up to", Align::Right, Some("cost")),
            ],
        );
        for range in &cost.best_for {
            grid.push(vec![
                Datum::text(sweep.settings(sweep.cell(range.cell))),
                Datum::of(percent(range.hang_rate_from), range.hang_rate_from),
                Datum::of(percent(range.hang_rate_to), range.hang_rate_to),
            ]);
        }
        section.add(Block::Grid(grid));
    }

    /// The hang rates at which another window becomes the cheapest than is so over the record's range.
    pub(super) fn what_would_change_it(&self) -> Option<String> {
        let sweep = &self.facts.sweep;
        let cheapest = sweep.cost.cheapest_cell?;
        let at = sweep
            .cost
            .best_for
            .iter()
            .position(|range| range.cell == cheapest)?;
        let range = sweep.cost.best_for[at];
        let name = |number: usize| sweep.settings(sweep.cell(number));
        let mut words = Vec::new();
        if let Some(next) = sweep.cost.best_for.get(at + 1) {
            words.push(format!(
                "a hang rate above {} makes {} cheaper",
                percent(range.hang_rate_to),
                name(next.cell)
            ));
        }
        if let Some(before) = at
            .checked_sub(1)
            .and_then(|before| sweep.cost.best_for.get(before))
        {
            words.push(format!(
                "below {} {} is cheaper",
                percent(range.hang_rate_from),
                name(before.cell)
            ));
        }
        if words.is_empty() {
            return None;
        }
        Some(format!(
            "On cost alone {} is best{} over the hang rates of this record (n = {}, {} hung){}; {}.",
            name(cheapest),
            sweep.among_its_windows(),
            counted(sweep.cost.runs, "run"),
            grouped(sweep.cost.hangs),
            sweep.cost.ranked_words(),
            words.join("; ")
        ))
    }

    fn strata(&self, section: &mut Section) {
        let cell = self.focus();
        let sweep = &self.facts.sweep;
        section.add(Block::Title("Strata".to_owned()));
        let found = by_limit(cell);
        if found.is_empty() {
            section.say(Prose::new(
                "The record holds one harness, model and role: there is nothing to tell apart.",
            ));
            return;
        }
        section.add(Block::Chart("strata"));
        let mut grid = Grid::new(
            format!(
                "False kills by stratum at {}, the worst on top; n = {}",
                sweep.settings(cell),
                counted(cell.runs, "run")
            ),
            &[
                ("stratum", Align::Left, None),
                ("n", Align::Right, Some("n")),
                ("false kills", Align::Right, Some("false-kill")),
                ("unresolved", Align::Right, Some("unresolved")),
                (
                    "false kills per run\n[95 %]",
                    Align::Left,
                    Some("false-kill-rate"),
                ),
                ("1-sided limit", Align::Right, Some("false-kill-rate")),
                ("verdict", Align::Left, Some("certified")),
            ],
        );
        for stratum in found {
            let mut words = stratum.decision.clone();
            if let Some(needed) = stratum
                .runs_needed
                .filter(|_| stratum.decision == "inconclusive")
            {
                words.push_str(&format!(", needs {}", grouped(needed)));
            }
            grid.push(vec![
                Datum::text(format!("{} {}", stratum.key, stratum.group)),
                count(stratum.runs),
                count(stratum.false_kills),
                count(stratum.unresolved),
                estimate(&rates::rate(stratum.false_kills, stratum.runs, Level::P95)),
                limit(stratum.false_kill_rate_up_one_sided),
                Datum::text(format!(
                    "{words} ({})",
                    counted(stratum.certify_runs, "run")
                )),
            ]);
        }
        section.add(Block::Grid(grid));
    }

    fn one_run(&self, section: &mut Section) {
        let Some(runs) = &self.runs else { return };
        section.add(Block::Title("One run in full".to_owned()));
        let Some(shown) = &runs.shown else {
            section.say(Prose::new(format!(
                "{} kills no run of this record falsely: there is no instructive one to show.",
                self.candidate.name
            )));
            return;
        };
        section.say(
            Prose::new(
                "The most expensive false kill by silence of the candidate: it throws away ",
            )
            .text(duration(shown.line.lost_ms))
            .text(" of work. ")
            .code(shown.replay_command.clone())
            .text(" prints it line by line."),
        );
        section.add(Block::Chart("timeline"));
        let verdict = &shown.line.replayed.verdict;
        let mut grid = Grid::new(
            format!(
                "Run {}, one run: no rate",
                crate::table::one_line(&shown.run)
            ),
            &[
                ("what", Align::Left, None),
                ("value", Align::Right, Some("timeline")),
            ],
        );
        let mut push = |what: &str, datum: Datum| grid.push(vec![Datum::text(what), datum]);
        push("fired at", length(Some(verdict.at.as_u64())));
        push("by", Datum::text(verdict.cause.name().replace('_', " ")));
        push(
            "open at the firing",
            Datum::text(verdict.phase.name().replace('_', " ")),
        );
        push(
            "total clock at the firing",
            shown.line.total.last().map_or_else(
                || Datum::text("no budget"),
                |stretch| length(Some(stretch.reading_ms)),
            ),
        );
        push("work lost", length(Some(shown.line.lost_ms)));
        push(
            "next in the record",
            Datum::text(shown.line.next.map_or_else(dash, |(ms, kind)| {
                format!(
                    "{}, {} later",
                    kind.name(),
                    duration(ms.saturating_sub(verdict.at.as_u64()))
                )
            })),
        );
        push("record ends at", length(Some(shown.end_ms)));
        section.add(Block::Grid(grid));
    }

    pub(super) fn rules(&self) -> Section {
        let sweep = &self.facts.sweep;
        let mut section = Section::new("rules", "Rules that would hold it");
        section.say(Prose::new(
            "What this decision rests on, as conditions that the next record can be held against:",
        ));
        let mut items = Vec::new();
        if let Some(rate) = sweep.constraints.max_false_kill_rate {
            items.push(
                Prose::new("the one-sided 95 % limit of the ")
                    .term("false-kill-rate", "false-kill rate")
                    .text(format!(
                        " stays at or below {}, on at least {}",
                        percent(rate),
                        counted(self.least_runs().unwrap_or(u64::MAX), "run")
                    )),
            );
        }
        if let Some(window) = self.candidate.policy.idle.window {
            items.push(Prose::new(format!(
                "the idle window stays at {}{}",
                policysim_policy::duration::show(window),
                if window.as_u64() < sweep.task_wait_ms {
                    format!(", below the TaskWait of {}", duration(sweep.task_wait_ms))
                } else {
                    String::new()
                }
            )));
        }
        if let Some(runs) = &self.runs
            && let Some(quantile) = super::recommendation::measured(&runs.gaps)
            && let Some(ms) = quantile.point()
        {
            items.push(Prose::new(format!(
                "the p99.9 of the pre-token wait has not moved from {} {} (n = {})",
                duration(ms),
                super::recommendation::bracket(quantile),
                grouped(quantile.curve.n)
            )));
        }
        section.add(Block::List(items));
        section.say(
            Prose::new("The rate, the window and the absence of contradictions as a file that ")
                .code("policysim gate --rules FILE")
                .text(" holds the policy and the next record against:"),
        );
        section.add(Block::Code("toml", self.gate_rules()));
        let findings = policysim_policy::check::check(&self.candidate.policy);
        if findings.is_empty() {
            section.say(
                Prose::new("The candidate's limits do not contradict each other (")
                    .code("policysim policy check")
                    .text(")."),
            );
        } else {
            section.say(Prose::new("The candidate's limits contradict each other:"));
            section.add(Block::List(
                findings
                    .iter()
                    .map(|finding| {
                        let [left, right] = &finding.limits;
                        Prose::default()
                            .code(finding.id)
                            .text(format!(": {left}, {right}; {}", finding.advice))
                    })
                    .collect(),
            ));
        }
        section
    }

    /// Runs without a false kill that certify the acceptable rate; fewer never do.
    pub(super) fn least_runs(&self) -> Option<u64> {
        let rate = self.facts.sweep.constraints.max_false_kill_rate?;
        rates::runs_needed(0, rate, Level::P95)
    }

    /// The same as rules that `policysim gate` reads. Every line is a number or a word of our own, never a name from a log.
    pub fn gate_rules(&self) -> String {
        let sweep = &self.facts.sweep;
        let mut text = String::from(
            "confidence = 0.95\n\n[[rule]]\nname = \"no contradiction between limits\"\ncheck = \"all\"\n",
        );
        if let Some(rate) = sweep.constraints.max_false_kill_rate {
            // A percentage: a bare share of a tenth or more would be refused as one whose sign was forgotten.
            let percent = policysim_sim::stats::json(rate * 100.0);
            text.push_str(&format!(
                "\n[[rule]]\nname = \"runs that live are not killed\"\nmetric = \"false_kill_rate\"\nmax = \"{percent}%\"\n"
            ));
        }
        let window = self.candidate.policy.idle.window;
        text.push_str(&format!(
            "\n[[rule]]\nname = \"the idle window is the one decided on\"\nkey = \"idle.window\"\nis = \"{}\"\n",
            window.map_or_else(|| "off".to_owned(), policysim_policy::duration::show)
        ));
        text
    }

    pub(super) fn reproduction(&self) -> Section {
        let sweep = &self.facts.sweep;
        let mut section = Section::new("reproduction", "Reproduction");
        let origin = &self.origin;
        let mut lines = vec![origin.command.as_str(), &origin.sweep_command];
        lines.extend(origin.map_command.as_deref());
        lines.extend(origin.gaps_command.as_deref());
        section.add(Block::Code("sh", lines.join("\n")));
        let mut words =
            "The first command makes this report, the second prints every figure of the sweep"
                .to_owned();
        if origin.map_command.is_some() {
            words.push_str(", the third those of the map and of the page's controls");
        }
        if origin.gaps_command.is_some() {
            words.push_str(", the last the gap tables");
        }
        section.say(
            Prose::new(format!("{words}. Made by policysim "))
                .text(self.origin.version.clone())
                .text(format!(", seed {}, from the data with digest ", self.origin.seed))
                .code(sweep.data.digest.clone())
                .text("; the same inputs, seed and version give the same bytes. Every number of this text is in ")
                .code("report.json")
                .text("."),
        );
        section
    }
}
