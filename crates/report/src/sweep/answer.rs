//! The prose of a sweep: what belongs beside the table, and the answer.

use policysim_policy::duration;
use policysim_sim::certify::{Protection, StratumVerdict, Tested};
use policysim_sim::choose::{Detection, Rejection};
use policysim_sim::cluster::Cluster;
use policysim_sim::focus::{Focus, Rival, Sampled};
use policysim_sim::grid;
use policysim_sim::hang_cost::{HangCost, HangTime, RateSource};
use policysim_sim::readings::LimitSource;
use policysim_sim::stats::bootstrap::Bootstrap;
use policysim_sim::stats::verdict::{Decision, KEYS_MATTER};
use policysim_sim::stats::{Interval, Level, Prob, Reason, rates, round_to};
use policysim_sim::tally::Tally;

use super::{IDLE_CLOCK, ROWS_SHOWN, SweepResult, dash, ends, rate};
use crate::gaps::notes::sentence;
use crate::settle::time;
use crate::sizing::facts::short_key;
use crate::table::{Align, Table, one_line};
use crate::units::{
    are, counted, duration as human, grouped, hours, percent, percent_figures, were,
};

/// A ratio of compounded to observed run rate from which gaps are said to go together.
const COMPOUNDING_TOLD: f64 = 1.5;

fn seconds(ms: f64) -> String {
    format!("{:.1} s", ms / 1_000.0)
}

/// ` [38.2 … 46.9 s]`; nothing where there is no interval.
fn spread(sampled: Option<&Sampled>) -> String {
    sampled.map_or_else(String::new, |sampled| spread_of(sampled, false))
}

/// The same of the negated figure where `negate` says so.
fn spread_of(sampled: &Sampled, negate: bool) -> String {
    let Interval { lo, up } = sampled.spread.interval;
    let (lo, up) = if negate {
        (up.map(|ms| -ms), lo.map(|ms| -ms))
    } else {
        (lo, up)
    };
    match (lo, up) {
        (None, None) => match sampled.spread.reason {
            Some(Reason::FewSessions { need, .. }) => {
                format!(" (interval not estimable, needs {need} sessions that differ)")
            }
            _ => String::new(),
        },
        (lo, up) => {
            let lo = lo.map_or_else(dash, |ms| format!("{:.1}", ms / 1_000.0));
            format!(" [{lo} … {}]", up.map_or_else(dash, seconds))
        }
    }
}

fn shares(interval: Interval) -> String {
    let side = |limit: Option<f64>| limit.map_or_else(dash, percent_figures);
    format!("{} … {} %", side(interval.lo), side(interval.up))
}

/// A share near 1, as nines.
/// Where a hang rate comes from that nobody gave: what is expected after so many hangs, under Jeffreys' prior.
fn rate_words(cost: &HangCost) -> String {
    match cost.source {
        RateSource::Given => String::new(),
        RateSource::Labelled | RateSource::NoneLabelled => format!(
            ", estimated from {} in {} as (hangs + 1/2) / (runs + 1)",
            counted(cost.hangs, "hang"),
            counted(cost.runs, "run")
        ),
    }
}

fn accuracy(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}

fn accuracies(found: &Bootstrap) -> String {
    match found.interval {
        Interval {
            lo: Some(lo),
            up: Some(up),
        } => format!(" [{:.3} … {:.3} %]", lo * 100.0, up * 100.0),
        _ => " (interval not estimable: too few sessions with a mistake)".to_owned(),
    }
}

impl SweepResult {
    fn max_rate(&self) -> f64 {
        self.constraints.max_false_kill.map_or(1.0, Prob::to_f64)
    }

    /// Stratum `index` by itself.
    pub(super) fn stratum_verdict(&self, index: usize, tally: &Tally) -> StratumVerdict {
        let key = self.strata[index].0;
        let groups = self.strata.iter().filter(|(of, _)| *of == key).count();
        StratumVerdict::new(tally, groups as u64, self.max_rate())
    }

    /// When each cell notices the hangs that it does, with what the times stand on; `None` where no run is known to hang.
    pub(super) fn hangs_table(&self) -> Option<Table> {
        let mut table = Table::new([
            ("cell", Align::Right),
            ("hangs\nnoticed", Align::Right),
            ("hang seen\np50 [95 %]", Align::Right),
            ("hang seen\np99 [95 %]", Align::Right),
            ("missed", Align::Right),
        ]);
        let mut is_empty = true;
        for index in self.shown() {
            if let Detection::Measured { p50, p99, missed } = &self.figures[index].detection {
                is_empty = false;
                table.push(vec![
                    (index + 1).to_string(),
                    grouped(p50.n),
                    time(p50),
                    time(p99),
                    grouped(*missed),
                ]);
            }
        }
        (!is_empty).then_some(table)
    }

    pub(super) fn strata_table(&self) -> Option<Table> {
        let (key, focus) = (self.by?, self.focus()?);
        let mut table = Table::new([
            (key.name(), Align::Left),
            ("runs", Align::Right),
            ("false-kill rate per run [95 %]", Align::Left),
            ("≤ (1-sided)", Align::Right),
            ("unresolved", Align::Right),
            ("verdict", Align::Left),
        ]);
        let tallies = self.judged(focus).strata.iter();
        for (index, ((of, name), tally)) in self.strata.iter().zip(tallies).enumerate() {
            if *of == key {
                let verdict = self.stratum_verdict(index, tally);
                let words = match (verdict.decision, verdict.cannot_certify, verdict.needed) {
                    (Decision::Inconclusive, Some(need), _) => {
                        format!("cannot certify, needs {}", grouped(need))
                    }
                    (Decision::Inconclusive, None, Some(need)) => {
                        format!("inconclusive, needs {}", grouped(need))
                    }
                    (decision, ..) => decision.name().to_owned(),
                };
                table.push(vec![
                    name.clone(),
                    grouped(tally.runs),
                    rate(&rates::rate(tally.false_kills, tally.runs, Level::P95)),
                    verdict.upper.map_or_else(dash, percent),
                    grouped(tally.unresolved()),
                    words,
                ]);
            }
        }
        Some(table)
    }

    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes.clone();
        if self.cells.len() > ROWS_SHOWN {
            remarks.push(format!(
                "{} of {} shown (the Pareto front and the recommendation's neighbours); `--format csv` has all.",
                self.shown().len(),
                counted(self.cells.len() as u64, "cell")
            ));
        }
        remarks.extend(crate::settle::sweep_words(&self.settled));
        if let Some(focus) = self.focus() {
            self.about_runs(focus, &mut remarks);
            self.about_traps(focus, &mut remarks);
            self.about_cost(&mut remarks);
        }
        remarks
    }

    /// What the record says of the focus cell beyond its row.
    fn about_runs(&self, focus: usize, remarks: &mut Vec<String>) {
        let cell = &self.cells[focus];
        let tally = &cell.all.tally;
        if tally.unresolved() > 0 {
            remarks.push(format!(
                "Cell {}: {} of {} {} unresolved ({} killed where the record cannot tell, {} whose record ends first); the upper limits count them as kills.",
                focus + 1,
                grouped(tally.unresolved()),
                counted(tally.runs, "run"),
                are(tally.unresolved()),
                grouped(tally.unresolved_kills),
                grouped(tally.unresolved_survivals),
            ));
        }
        if cell.all.hung == 0 {
            remarks.push(
                "No run of this record is known to have hung: detection is the window itself, for a hang outside an open tool.".to_owned(),
            );
        } else {
            let are = are(cell.all.hung);
            remarks.push(format!(
                "{} {are} known to have hung and {are} in no false-kill rate; cell {} misses {} of them.",
                counted(cell.all.hung, "run"),
                focus + 1,
                grouped(cell.hung_missed),
            ));
        }
        remarks.extend(self.paired_words(focus));
        if let Some((index, up)) = self.worst_stratum(focus) {
            let (key, name) = &self.strata[index];
            let tally = &self.judged(focus).strata[index];
            remarks.push(format!(
                "Worst stratum of cell {}: {} {}: ≤ {} ({} killed or unresolved of {}{}{}).",
                focus + 1,
                key.name(),
                one_line(name),
                percent(up),
                grouped(tally.worst_kills()),
                counted(tally.runs, "run"),
                if self.is_split() { " held back" } else { "" },
                self.stratum_verdict(index, tally).needed.map_or_else(
                    String::new,
                    |needed| format!(
                        "; {} with as many would certify {}",
                        counted(needed, "run"),
                        self.max_false_kill
                    )
                ),
            ));
        }
    }

    /// What the focus cell does to runs that the base treats otherwise; `None` where there are none.
    fn paired_words(&self, focus: usize) -> Option<String> {
        let pairs = self.cells[focus].against_base;
        if pairs.only_first + pairs.only_second == 0 {
            return None;
        }
        let found = &self.figures[focus].base_minus_this;
        let test = if let Some(p) = found.p_value {
            format!("exact McNemar p = {}", policysim_sim::stats::text(p))
        } else {
            // Of nested windows the sign is known, so that only the size is told.
            let (near, far) = if pairs.only_second > 0 {
                (found.interval.up, found.interval.lo)
            } else {
                (found.interval.lo, found.interval.up)
            };
            let side = |limit: Option<f64>| limit.map_or_else(dash, |x| percent_figures(x.abs()));
            format!("[{} … {}] % of runs, nested windows", side(near), side(far))
        };
        Some(format!(
            "Cell {} against {} as it stands: {} newly killed falsely or in doubt, {} newly spared ({test}).",
            focus + 1,
            self.base,
            counted(pairs.only_second, "run"),
            grouped(pairs.only_first),
        ))
    }

    /// Dependence, ties, and what the limits in force at recording hide.
    fn about_traps(&self, focus: usize, remarks: &mut Vec<String>) {
        let verdict = &self.choice.verdicts[focus];
        if let Some(deff) = verdict.unit_deff.filter(|&deff| deff > KEYS_MATTER) {
            let (come, by, unit) = match self.cluster {
                Cluster::Session => ("bunch in sessions", "session", "session"),
                Cluster::Day | Cluster::Run => ("come in bad days", "calendar day", "day"),
            };
            remarks.push(format!(
                "Kills of cell {} {come} (design effect {deff:.1} by {by}): its limit takes the {unit} as the unit.",
                focus + 1
            ));
        }
        if self.cluster == Cluster::Run {
            remarks.push(
                "Runs are taken as independent (--cluster run): kills that come together widen no limit.".to_owned(),
            );
        }
        let compounding = self.detectors[focus].and_then(|detector| detector.compounding);
        if let Some(found) = compounding
            && found.ratio.is_some_and(|ratio| ratio >= COMPOUNDING_TOLD)
        {
            remarks.push(format!(
                "Long gaps of cell {} bunch in few runs: {} of gaps would reach {} of runs if independent, and reach {}.",
                focus + 1,
                percent(found.per_gap),
                percent(found.compounded),
                percent(found.observed),
            ));
        }
        let ties: u64 = self.cells.iter().map(|cell| cell.all.tally.ties).sum();
        if let Some(other) = self.choice.other_tie_rule {
            let other = other.map_or_else(
                || "no cell would be recommended".to_owned(),
                |other| format!("{} would be recommended", self.settings(other)),
            );
            remarks.push(format!(
                "The choice depends on the tie rule: {} over all cells {} of a gap of exactly the window; if those runs survived, {other}.",
                counted(ties, "kill"),
                are(ties)
            ));
        } else if self.cells[focus].all.tally.ties > 0 {
            remarks.push(format!(
                "Kills of cell {} by a gap of exactly the window (ties_at_W): {}; the recommendation does not depend on them.",
                focus + 1,
                grouped(self.cells[focus].all.tally.ties)
            ));
        }
        if let Some((limit_ms, source)) = self.recorded.limit {
            let how = match source {
                LimitSource::Given => "--recorded-idle".to_owned(),
                LimitSource::RecordedKills => {
                    format!(
                        "the silences before {} recorded kills",
                        grouped(self.recorded.kills)
                    )
                }
            };
            remarks.push(format!(
                "Recorded under an idle limit of {} ({how}): the rate of a larger window is not identifiable. Runs cut there count as its kills, a bound that falls no further; record with a longer limit or in observe mode.",
                human(limit_ms)
            ));
        }
        let found = self.findings.iter();
        remarks.extend(found.map(|finding| sentence(IDLE_CLOCK, finding, &self.base)));
        if let Some(truncation) = self.recorded.truncation {
            remarks.push(format!(
                "In this record {truncation}; nothing is certified on it."
            ));
        }
        if let Some((aborts, envelope)) = self.aborts {
            let side = |limit: Option<f64>| limit.map_or_else(dash, percent_figures);
            remarks.push(format!(
                "{} {} aborted in a silence, perhaps because of it: cell {} kills [{} … {}] % of gaps, from every aborted silence ending at once to none ever ending.",
                counted(aborts, "run"),
                were(aborts),
                focus + 1,
                side(envelope.rate.lo),
                side(envelope.rate.up),
            ));
        }
    }

    /// Which hang rates favour which window, and the price of having chosen.
    fn about_cost(&self, remarks: &mut Vec<String>) {
        let cost = &self.cost;
        remarks.push(format!("On cost {}.", self.cost_words(cost)));
        if let Some(focus) = &cost.focus
            && let Some(ranked) = focus.ranked_ms
        {
            let (on_ranked, on_certify) = self.resampled.as_ref().map_or((None, None), |found| {
                (found.ranked.as_ref(), found.certify.as_ref())
            });
            let rest = match (focus.certify_ms, focus.optimism_ms()) {
                (Some(certify), Some(optimism)) => format!(
                    "{}{} per run on the certifying half, {}{} on the selecting one (optimism {})",
                    seconds(certify),
                    spread(on_certify),
                    seconds(ranked),
                    spread(on_ranked),
                    seconds(optimism)
                ),
                _ if self.protection == Protection::FixedSequence => {
                    format!(
                        "{}{} per run (in-sample, optimistic)",
                        seconds(ranked),
                        spread(on_ranked)
                    )
                }
                _ => format!("{}{} per run", seconds(ranked), spread(on_ranked)),
            };
            remarks.push(format!(
                "Cell {} costs {rest} at a hang rate of {}{}.",
                focus.cell + 1,
                percent(focus.hang_rate),
                rate_words(cost),
            ));
        }
        if let Some(found) = &self.resampled {
            remarks.extend(self.rival_words(found));
            remarks.extend(self.detector_words(found));
        }
        if let Some(&(index, why)) = self.choice.neighbours.get(1) {
            remarks.push(format!(
                "Why not {}: {}.",
                self.settings(index),
                self.why(index, why)
            ));
        }
    }

    /// How much more or less the focus cell costs than its rivals, on the same sessions.
    fn rival_words(&self, found: &Focus) -> Option<String> {
        let words: Vec<String> = found
            .against
            .iter()
            .map(|(rival, sampled)| {
                let name = match rival {
                    Rival::Base => format!("{} as it stands", self.base),
                    Rival::Cell(cell) => format!("cell {}", cell + 1),
                };
                let more = if sampled.point_ms < 0.0 {
                    "less"
                } else {
                    "more"
                };
                format!(
                    "{}{} {more} than {name}",
                    seconds(sampled.point_ms.abs()),
                    spread_of(sampled, sampled.point_ms < 0.0),
                )
            })
            .collect();
        let (last, first) = words.split_last()?;
        let all = if first.is_empty() {
            last.clone()
        } else {
            format!("{} and {last}", first.join(", "))
        };
        Some(format!(
            "Cell {} costs {all} per run, on the same sessions.",
            found.cell + 1
        ))
    }

    /// The focus cell as a failure detector.
    fn detector_words(&self, found: &Focus) -> Option<String> {
        let (detector, limits) = (self.detectors[found.cell]?, found.detector.as_ref()?);
        let per_hour = detector.qos.mistakes_per_hour?;
        let text = policysim_sim::stats::text;
        let side = |limit: Option<f64>| limit.map_or_else(dash, text);
        let hours = limits.mistakes_per_hour;
        Some(format!(
            "As a failure detector cell {} errs {} [{} … {}] times per hour of activity, {} [{}] of gaps, and is right about a live run {}{} of the time.",
            found.cell + 1,
            text(round_to(per_hour, 3)),
            side(hours.lo.map(|x| round_to(x, 3))),
            side(hours.up.map(|x| round_to(x, 3))),
            limits
                .per_gap_rate
                .estimate
                .point
                .map_or_else(dash, percent),
            shares(limits.per_gap_rate.estimate.interval),
            detector.qos.query_accuracy.map_or_else(dash, accuracy),
            accuracies(&limits.query_accuracy),
        ))
    }

    fn cost_words(&self, cost: &HangCost) -> String {
        let cheapest = match cost.cheapest {
            Ok(cheapest) => cheapest,
            Err(refusal) => return format!("nothing is recommended: {}", refusal.words()),
        };
        let side = |limit: Option<f64>| limit.map_or_else(dash, percent_figures);
        let over = match cost.source {
            RateSource::Given => {
                format!(
                    "at a hang rate of {}",
                    cost.rates.lo.map_or_else(dash, percent)
                )
            }
            RateSource::Labelled => format!(
                "by minimax regret over hang rates [{} … {}] %",
                side(cost.rates.lo),
                side(cost.rates.up)
            ),
            RateSource::NoneLabelled => format!(
                "by minimax regret over hang rates [0 … {}] %, none being labelled",
                side(cost.rates.up)
            ),
        };
        let range = cost
            .ranges
            .iter()
            .find(|range| range.cell == cheapest.cell)
            .map_or_else(String::new, |range| {
                format!(
                    "; it is the cheapest for hang rates {} … {} %",
                    percent_figures(range.from),
                    percent_figures(range.to)
                )
            });
        let costs = if cost.ranked_runs < cost.runs.saturating_sub(cost.hangs) {
            format!(
                ", with the costs of the {} that ranked cells",
                counted(cost.ranked_runs, "run")
            )
        } else {
            String::new()
        };
        let among = if self.plan.sequences().len() > 1 {
            "of the windows with its other settings "
        } else {
            ""
        };
        format!(
            "alone {} is best {among}{over}{range}{costs}; a hang costs {}{}{}",
            self.settings(cheapest.cell),
            match cost.hang_time {
                HangTime::Knowledge => "the time until the parent knows of it (simulated)",
                HangTime::Slot => "its slot until it settles (measured)",
                HangTime::Window => "its slot for the window and what settling takes",
            },
            match cost.options.restart.as_u64() {
                0 => "; a restart is taken to cost nothing".to_owned(),
                restart_ms => format!("; a restart costs {}", human(restart_ms)),
            },
            if cheapest.upper_bound {
                "; unresolved runs make its cost an upper bound"
            } else {
                ""
            }
        )
    }

    /// The stratum with the largest one-sided upper limit, where there is more than one.
    fn worst_stratum(&self, focus: usize) -> Option<(usize, f64)> {
        let split = |key| self.strata.iter().filter(|(of, _)| *of == key).count() > 1;
        let mut worst: Option<(usize, f64)> = None;
        for (index, tally) in self.judged(focus).strata.iter().enumerate() {
            if tally.runs == 0 || !split(self.strata[index].0) {
                continue;
            }
            let up = rates::upper_one_sided(tally.worst_kills(), tally.runs, Level::P95);
            if let Some(up) = up
                && worst.is_none_or(|(_, most)| up > most)
            {
                worst = Some((index, up));
            }
        }
        worst
    }

    /// One to three sentences: the recommended cell, what certifies it, why not the cheaper one.
    pub fn answer(&self) -> String {
        let asked = self.constraint_words();
        let Some(chosen) = self.choice.recommended else {
            return self.no_answer(&asked);
        };
        let (verdict, figures) = (&self.choice.verdicts[chosen], &self.figures[chosen]);
        let mut text = format!(
            "Recommended{asked}: {}. At 95 % confidence at most {} of runs are killed while alive ({}, {} unresolved in {}{})",
            self.settings(chosen),
            verdict.upper.map_or_else(dash, percent),
            counted(verdict.counts.kills, "false kill"),
            grouped(verdict.counts.unresolved),
            counted(verdict.counts.runs, "run"),
            if self.is_split() { " held back" } else { "" },
        );
        match &figures.detection {
            Detection::Measured { p50, .. } => {
                text.push_str(&format!(
                    "; half of the hangs are noticed within {} (n = {})",
                    time(p50),
                    grouped(p50.n)
                ));
            }
            Detection::ClosedForm(window) => {
                text.push_str(&format!(
                    "; a hang is noticed after {}",
                    human(window.as_u64())
                ));
            }
            Detection::Never => {}
        }
        if let Some(share) = figures.settle_share {
            text.push_str(&format!(
                " and {} of hangs settle in the wait they begin in (closed form)",
                percent(share)
            ));
        }
        text.push('.');
        if self.constraints.max_false_kill.is_some() {
            let ties = match self.choice.other_tie_rule {
                Some(_) => "; this depends on the tie rule, see above",
                None => "",
            };
            text.push_str(&format!(
                "\nCertified {}{ties}.",
                self.protection_words(chosen)
            ));
        }
        if let Some(&(index, why)) = self.choice.neighbours.first() {
            text.push_str(&format!(
                "\nWhy not {}: {}.",
                self.settings(index),
                self.why(index, why)
            ));
        }
        text
    }

    /// Which protection gave the answer.
    pub(super) fn protection_words(&self, chosen: usize) -> String {
        let sequence = &self.plan.sequences()[self.plan.sequence_of(chosen)];
        let from = sequence.first().map_or_else(String::new, |&largest| {
            let window = self.candidates[largest].policy.idle.window;
            if sequence.len() > 1 {
                format!(
                    "by a fixed sequence from {} down",
                    window.map_or_else(|| "off".to_owned(), duration::show)
                )
            } else {
                "by one test".to_owned()
            }
        });
        match (self.protection, self.choice.tests.claims) {
            (Protection::OneCandidate, _) => {
                "by one test: there was nothing to choose from".to_owned()
            }
            (Protection::SplitAndSequence, _) => format!(
                "{from} on the half of the runs that did not choose it (split by session, seed {})",
                self.seed
            ),
            (Protection::FixedSequence, 1) => format!("{from}; too few runs to be split"),
            (Protection::FixedSequence, claims) => format!(
                "{from}, the error shared by {} sequences; too few runs to be split",
                grouped(claims)
            ),
        }
    }

    fn no_answer(&self, asked: &str) -> String {
        match self.choice.nearest {
            None => format!("No recommendation{asked}: there is nothing to choose from."),
            Some((index, why)) => format!(
                "No recommendation{asked}: no cell qualifies. Nearest is {}: {}.{}",
                self.settings(index),
                self.why(index, why),
                match self.choice.tests.claims {
                    0 | 1 => String::new(),
                    claims => format!(
                        " The error of 5 % is shared by {} sequences of windows, one per setting of the other axes, which widens each limit.",
                        grouped(claims)
                    ),
                }
            ),
        }
    }

    fn constraint_words(&self) -> String {
        let mut words = Vec::new();
        if self.constraints.max_false_kill.is_some() {
            words.push(format!("false kills ≤ {} of runs", self.max_false_kill));
        }
        if self.constraints.settle_within_wait {
            words.push(format!(
                "settling within a TaskWait of {}",
                duration::show(self.task_wait)
            ));
        }
        if words.is_empty() {
            String::new()
        } else {
            format!(" for {}", words.join(" and "))
        }
    }

    /// What sets the cell `index` apart, for people: `idle 300s, total 6h`.
    pub(crate) fn settings(&self, index: usize) -> String {
        let settings = &self.candidates[index].settings;
        if settings.is_empty() {
            return self.base.clone();
        }
        settings
            .iter()
            .map(|(key, value)| format!("{} {}", short_key(key), grid::plain(value)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    pub(super) fn why(&self, index: usize, why: Rejection) -> String {
        let (cell, figures) = (&self.cells[index], &self.figures[index]);
        let verdict = &self.choice.verdicts[index];
        match why {
            Rejection::RateNotCertified { needed } => {
                let mut text = format!(
                    "{} killed or unresolved of {}{} bound the rate at {}",
                    grouped(verdict.counts.worst_kills()),
                    counted(verdict.counts.runs, "run"),
                    if self.is_split() { " held back" } else { "" },
                    verdict.upper.map_or_else(dash, percent),
                );
                if let Some(needed) = needed {
                    text.push_str(&format!(
                        "; {} with as many would certify {}",
                        counted(needed, "run"),
                        self.max_false_kill
                    ));
                }
                text
            }
            Rejection::NotReached { stopped_at } => format!(
                "the sequence from the largest window down stopped at {}",
                self.settings(stopped_at)
            ),
            Rejection::NotSelected => {
                let tests = &self.choice.tests.cells;
                let failed = tests.iter().position(|test| *test == Tested::Failed);
                let failed = failed.map_or_else(String::new, |cell| {
                    format!(
                        ", down to {}, which is not shown to be safe (≤ {})",
                        self.settings(cell),
                        self.choice.verdicts[cell].upper.map_or_else(dash, percent)
                    )
                });
                format!(
                    "the selecting half preferred other settings, and only those were tested{failed}"
                )
            }
            Rejection::BeyondRecorded { limit_ms } => format!(
                "it lies above the recorded limit of {}, so that only a bound of its rate is known, {}",
                human(limit_ms),
                verdict
                    .upper
                    .map_or_else(dash, |up| format!("≤ {}", percent(up)))
            ),
            Rejection::KillsMissing => {
                "it would qualify, but killed gaps appear to be missing from the record".to_owned()
            }
            Rejection::NotBelowWait => format!(
                "a hang cannot settle inside one wait of {}",
                duration::show(self.task_wait)
            ),
            Rejection::CostlierHangs => {
                if cell.all.hung > 0 {
                    format!(
                        "it qualifies, but hangs hold their slots for {} in all",
                        hours(cell.all.slot_lost_ms)
                    )
                } else {
                    match ends(&figures.detection).0 {
                        Some(ms) => format!(
                            "it qualifies, but a hang is noticed only after {}",
                            human(ms)
                        ),
                        None => "it qualifies, but a hang is never noticed".to_owned(),
                    }
                }
            }
        }
    }

    /// Where the tests of a cell ended, as output names it.
    pub(super) fn tested(&self, index: usize) -> &'static str {
        if self.constraints.max_false_kill.is_none() {
            return "not_asked";
        }
        self.choice.tests.cells[index].name()
    }
}
