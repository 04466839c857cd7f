//! What is recommended, what it does to the runs that the policy in force treats otherwise, and what its window holds.

use policysim_policy::Millis;
use policysim_sim::compare::{Comparison, Pairs};
use policysim_sim::gaps::{GapQuantile, Line};
use policysim_sim::run::WaitKind;
use policysim_sim::stats;

use super::document::{Block, Datum, Grid, Prose, Section};
use super::options::verdict;
use super::words::{count, left, length, share};
use super::{Report, RunFacts};
use crate::gaps::latent_point;
use crate::table::Align;
use crate::units::{are, counted, duration, grouped, percent, percent_figures};

impl Report {
    pub(super) fn recommendation(&self) -> Section {
        let mut section = Section::new("recommendation", "Recommendation");
        for line in self.facts.sweep.reason.lines() {
            section.say(Prose::new(line));
        }
        section.say(self.verdict_on_the_candidate());
        let Some(runs) = &self.runs else {
            return section;
        };
        section.add(Block::Title("Against the policy in force".to_owned()));
        match (&runs.comparison, &self.current) {
            (Some(comparison), Some(current)) => {
                self.compared(&mut section, comparison, &current.name);
            }
            _ => section.say(
                Prose::new("No policy in force was named with ")
                    .code("--current")
                    .text(", so that runs newly killed and newly spared are not told."),
            ),
        }
        section.add(Block::Title("What the window has to hold".to_owned()));
        split(&mut section, runs, self.candidate.policy.idle.window);
        section
    }

    /// Whether the proposed policy is the recommended one, and what is known of it.
    pub(super) fn verdict_on_the_candidate(&self) -> Prose {
        let sweep = &self.facts.sweep;
        let Some(number) = self.candidate_cell else {
            return Prose::titled(
                "The candidate",
                format!(
                    "{} is not among the cells swept: it was compared through its neighbours only.",
                    self.candidate.name
                ),
            );
        };
        let cell = sweep.cell(number);
        let rate = share(cell.false_kill_rate.point, cell.false_kill_rate.interval);
        let what = if sweep.recommendation == Some(number) {
            "is the recommended cell".to_owned()
        } else {
            match sweep.recommendation {
                Some(recommended) => format!(
                    "is cell {number} ({}), not the recommended one ({})",
                    sweep.settings(cell),
                    sweep.settings(sweep.cell(recommended))
                ),
                None => format!(
                    "is cell {number} ({}); none is recommended",
                    sweep.settings(cell)
                ),
            }
        };
        Prose::titled("The candidate", format!("{} {what}: ", self.candidate.name))
            .term("false-kill-rate", "false kills per run")
            .text(format!(
                " {rate} (n = {}, {} of them unresolved), ",
                grouped(cell.runs),
                grouped(cell.unresolved()),
            ))
            .term("certified", "1-sided limit to certify")
            .text(format!(
                " {} {}; {}.",
                cell.certify.false_kill_rate_up_one_sided.map_or_else(
                    || "not estimable".to_owned(),
                    |up| format!("≤ {}", percent(up))
                ),
                sweep.protection.limits_words(),
                verdict(cell)
            ))
    }

    fn compared(&self, section: &mut Section, found: &Comparison, current: &str) {
        section.say(Prose::new(format!(
            "Of {}, {} {} newly killed falsely or in doubt by {} and {} newly spared; {} {} killed so by both. Kills that the record confirms, because the run failed anyway, are no part of this{}. {}",
            counted(found.all.counts.runs, "run"),
            grouped(found.all.counts.only_second),
            are(found.all.counts.only_second),
            self.candidate.name,
            grouped(found.all.counts.only_first),
            grouped(found.killed_by_both),
            are(found.killed_by_both),
            self.candidate_cell.map(|number| self.facts.sweep.cell(number).true_kills).filter(|&kills| kills > 0).map_or_else(String::new, |kills| format!(" ({} by the candidate)", grouped(kills))),
            if found.nested {
                format!("It differs from {current} in nothing but the idle window, so that the sign of the difference is known and its size alone is estimated.")
            } else {
                "The p-values are exact (McNemar), one per row and not adjusted for their number.".to_owned()
            }
        )));
        let mut grid = Grid::new(
            format!(
                "Runs that {} and {current} treat otherwise, by what was open at the firing; n = {}",
                self.candidate.name,
                counted(found.all.counts.runs, "run")
            ),
            &[
                ("open at the firing", Align::Left, None),
                (
                    "newly killed\nfalsely or in doubt",
                    Align::Right,
                    Some("false-kill"),
                ),
                ("newly spared", Align::Right, Some("false-kill")),
                (
                    "current minus candidate\n[95 %]",
                    Align::Left,
                    Some("interval"),
                ),
                ("McNemar p", Align::Right, Some("mcnemar")),
            ],
        );
        let mut push = |name: &str, pairs: &Pairs| {
            grid.push(vec![
                Datum::text(name),
                count(pairs.counts.only_second),
                count(pairs.counts.only_first),
                difference(pairs),
                match pairs.difference.p_value {
                    Some(p) => Datum::of(stats::text(p), p),
                    None => Datum::text("nested"),
                },
            ]);
        };
        push("all", &found.all);
        for (phase, pairs) in &found.by_phase {
            push(&phase.name().replace('_', " "), pairs);
        }
        section.add(Block::Grid(grid));
        let hung = &found.hung;
        section.say(Prose::new(format!(
            "Of {} labelled as hung, {} {} killed by both, {} only by {current}, {} only by {}, and {} by neither within their record.",
            counted(hung.both + hung.current_only + hung.candidate_only + hung.neither, "run"),
            grouped(hung.both),
            are(hung.both),
            grouped(hung.current_only),
            grouped(hung.candidate_only),
            self.candidate.name,
            grouped(hung.neither),
        )));
    }
}

fn difference(pairs: &Pairs) -> Datum {
    let found = &pairs.difference;
    let signed = |share: f64| {
        let sign = if share < 0.0 { "−" } else { "" };
        format!("{sign}{}", percent_figures(share.abs()))
    };
    let side = |limit: Option<f64>| limit.map_or_else(super::words::dash, signed);
    match found.difference {
        Some(point) => Datum::of(
            format!(
                "{} [{} … {}] %",
                signed(point),
                side(found.interval.lo),
                side(found.interval.up)
            ),
            point,
        ),
        None => Datum::text("not estimable"),
    }
}

/// The measured quantile of the model's waits that a window is built on.
pub fn measured(runs: &crate::gaps::GapsResult) -> Option<&GapQuantile> {
    let line = |line| runs.figures.get(&(String::new(), line));
    line(Line::HandOff)
        .or_else(|| line(Line::Wait(WaitKind::PreToken)))
        .and_then(|figures| figures.quantiles.last())
}

fn split(section: &mut Section, runs: &RunFacts, window: Option<Millis>) {
    let split = &runs.split;
    let n = measured(&runs.gaps).map_or(0, |quantile| quantile.curve.n);
    let mut grid = Grid::new(
        format!(
            "The idle window of {} taken apart",
            window.map_or_else(|| "off".to_owned(), |window| duration(window.as_u64()))
        ),
        &[
            ("part", Align::Left, None),
            ("nominal", Align::Right, Some("retry-envelope")),
            ("full jitter", Align::Right, Some("retry-envelope")),
            ("headers at cap", Align::Right, Some("retry-envelope")),
        ],
    );
    let envelopes = split.envelopes_ms();
    let quantile = length_of(measured(&runs.gaps));
    grid.push(
        std::iter::once(Datum::text(format!(
            "p99.9 of the pre-token wait (n = {})",
            grouped(n)
        )))
        .chain(std::iter::repeat_with(|| quantile.clone()).take(3))
        .collect(),
    );
    grid.push(
        std::iter::once(Datum::text("retry envelope, waits alone"))
            .chain(envelopes.map(|ms| length(Some(ms))))
            .collect(),
    );
    grid.push(
        std::iter::once(Datum::text("left of the window"))
            .chain(split.left_ms().map(|ms| match ms {
                Some(value) => Datum::of(left(ms), value as f64),
                None => Datum::text(left(ms)),
            }))
            .collect(),
    );
    for (line, what) in [
        (Line::Idle, "every reading of the idle clock"),
        (Line::Longest, "the longest reading of each run"),
    ] {
        let (quantile, n) = composite(runs, line);
        let text = length_of(quantile);
        grid.push(
            std::iter::once(Datum::text(format!(
                "measured composite silence, p99.9 of {what} (n = {})",
                grouped(n)
            )))
            .chain(std::iter::repeat_with(|| text.clone()).take(3))
            .collect(),
        );
    }
    section.add(Block::Grid(grid));
    section.say(
        Prose::new("Quantiles do not add up, so that quantile, envelope and what is left are an allowance; the composite silences are what the idle clock really read. ")
            .term("retry-envelope", "The envelope")
            .text(if split.backoff_counts {
                " runs against the idle clock wherever the harness does not announce its retries; each of the requests in the chain takes its own time on top."
            } else {
                " does not run against this clock where backoffs are announced: the policy pauses for them."
            }),
    );
}

/// The largest quantile of what the idle clock read, and how many readings there are.
pub(super) fn composite(runs: &RunFacts, line: Line) -> (Option<&GapQuantile>, u64) {
    runs.gaps
        .figures
        .get(&(String::new(), line))
        .map_or((None, 0), |figures| (figures.quantiles.last(), figures.n))
}

/// A quantile with its interval.
fn length_of(quantile: Option<&GapQuantile>) -> Datum {
    quantile.and_then(|of| Some((of, of.point()?))).map_or_else(
        || Datum::text(quantile.map_or_else(|| "not estimable".to_owned(), latent_point)),
        |(of, ms)| Datum::of(format!("{} {}", duration(ms), bracket(of)), ms as f64),
    )
}

pub(super) fn bracket(quantile: &GapQuantile) -> String {
    let limits = quantile.interval();
    let side = |ms: Option<u64>| ms.map_or_else(super::words::dash, duration);
    format!("[{} … {}]", side(limits.lo), side(limits.up))
}
