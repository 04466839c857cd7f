//! The sizing section of an ADR: everything that one report says, and the forms it takes.
//!
//! A report is built once as [`Section`]s and rendered to Markdown and HTML; its charts take the same results, and
//! `report.json` holds them all. Figures of the sweep are those of its JSON ([`facts`]).

pub mod definitions;
pub mod document;
pub mod explorer;
pub mod facts;
pub mod settled;
pub mod template;

mod consequences;
mod data;
mod json;
mod options;
mod recommendation;
mod words;

use policysim_policy::Policy;
use policysim_sim::compare::Comparison;
use policysim_sim::gaps::curve::Curve;
use policysim_sim::ledger::Totals;
use policysim_sim::timeline::Timeline;
use policysim_sim::window_split::WindowSplit;

use crate::charts::{self, Canvas, SurvivalChart};
use crate::gaps::GapsResult;
pub use data::LENGTHS_MS;
pub use recommendation::measured;

use document::Section;
use explorer::Explorer;
use facts::{Cell, Sweep, SweepFacts};
use settled::SettledByWait;

/// A policy of the report, under the name that the user gave it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The policy.
    pub policy: Policy,
}

/// The command that made the report, and what it takes to make it again.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The command.
    pub command: String,
    /// The command whose JSON every figure of the sweep comes from.
    pub sweep_command: String,
    /// The command whose JSON the gap tables come from.
    pub gaps_command: Option<String>,
    /// The same for the wider sweep behind the map.
    pub map_command: Option<String>,
    /// The version of policysim.
    pub version: String,
    /// The seed.
    pub seed: u64,
}

/// One run under the candidate, as a picture.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The run's name.
    pub run: String,
    /// When its record ends, ms since its start.
    pub end_ms: u64,
    /// What became of it.
    pub line: Timeline,
    /// The command that prints the same in words.
    pub replay_command: String,
}

/// What only the runs themselves can tell; a result set of a sweep does not hold it.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// The gap tables, those of `policysim gaps`.
    pub gaps: GapsResult,
    /// The survival curves: the idle clock's readings, and the pre-token waits.
    pub idle_curve: Curve,
    /// Pre-token waits and hand-offs that were cut before they led to output.
    pub wait_curve: Curve,
    /// Where the runs' time went.
    pub spent: Totals,
    /// The same by role.
    pub spent_by_role: Vec<(String, Totals)>,
    /// Candidate against the current policy.
    pub comparison: Option<Comparison>,
    /// The candidate's window taken apart.
    pub split: WindowSplit,
    /// Settlement by the length of the wait.
    pub settled: SettledByWait,
    /// The most expensive false kill of the candidate; `None` when it kills no run falsely.
    pub shown: Option<Shown>,
}

/// Everything that a report says.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its title.
    pub title: String,
    /// Number of the ADR.
    pub adr: Option<String>,
    /// The proposed policy.
    pub candidate: Named,
    /// The policy in force.
    pub current: Option<Named>,
    /// How it was made.
    pub origin: Origin,
    /// The sweep that decides.
    pub facts: SweepFacts,
    /// A wider sweep that decides nothing: window, budget and cap at once. `None` where the first one holds them all.
    pub wider: Option<SweepFacts>,
    /// The cell of the map that is the candidate itself, from 1.
    pub candidate_in_map: Option<usize>,
    /// The cell that is the candidate itself, from 1; `None` when it is not among those swept.
    pub candidate_cell: Option<usize>,
    /// What the page's controls choose among, beside the cells of the map.
    pub explorer: Explorer,
    /// What only runs can tell.
    pub runs: Option<RunFacts>,
}

/// The names that charts of a report may have, in the order of the text.
pub const CHARTS: [&str; 8] = [
    "survival",
    "ledger",
    "front",
    "heat",
    "strata",
    "settlement",
    "hang-rate",
    "timeline",
];

/// A chart under the name of its files.
#[derive(Clone, Debug)]
pub struct NamedChart {
    /// The name, without an ending.
    pub name: &'static str,
    /// The chart.
    pub canvas: Canvas,
}

impl Report {
    /// The cell that the report is about: the candidate, else the recommended or nearest one, else the first.
    pub fn focus(&self) -> &Cell {
        let sweep = &self.facts.sweep;
        self.candidate_cell
            .map(|number| sweep.cell(number))
            .or_else(|| sweep.focus())
            .unwrap_or(&sweep.cells[0])
    }

    /// The sweep behind the map and the page's controls.
    pub fn map(&self) -> &Sweep {
        &self.wider.as_ref().unwrap_or(&self.facts).sweep
    }

    /// Every chart that these results carry, in the order of the text.
    pub fn charts(&self) -> Vec<NamedChart> {
        let sweep = &self.facts.sweep;
        let mut found = Vec::new();
        let mut add = |name, canvas: Option<Canvas>| {
            found.extend(canvas.map(|canvas| NamedChart { name, canvas }));
        };
        if let Some(runs) = &self.runs {
            let curves = [
                ("idle clock", &runs.idle_curve),
                (words::WAITS, &runs.wait_curve),
            ];
            add(
                "survival",
                charts::survival(SurvivalChart {
                    curves: &curves,
                    named: &self.named_windows(),
                    swept_ms: &self.swept_ms(),
                }),
            );
            add("ledger", charts::spent(&runs.spent));
        }
        add("front", charts::front(sweep, self.candidate_cell));
        add("heat", charts::heat(self.map(), self.candidate_in_map));
        add("strata", charts::strata(sweep, self.focus()));
        if let Some(runs) = &self.runs {
            add("settlement", charts::settlement(&runs.settled));
        }
        let offered = &self.explorer.costs.hang_rates;
        let rates: Vec<f64> = offered.iter().map(|(_, rate)| *rate).collect();
        add("hang-rate", charts::hang_rate(sweep, &rates));
        if let Some(shown) = self.runs.as_ref().and_then(|runs| runs.shown.as_ref()) {
            let window = self.candidate.policy.idle.window;
            add(
                "timeline",
                Some(charts::timeline(
                    &shown.run,
                    window,
                    &shown.line,
                    shown.end_ms,
                )),
            );
        }
        found
    }

    /// The swept idle windows, ms, ascending; none in a result set, which names them only.
    pub fn swept_ms(&self) -> Vec<u64> {
        let mut found: Vec<u64> = self
            .facts
            .sweep
            .cells
            .iter()
            .filter_map(|cell| policysim_policy::duration::parse(cell.setting("idle.window")).ok())
            .map(policysim_policy::Millis::as_u64)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The windows that charts name: the candidate's, the current and the recommended one.
    fn named_windows(&self) -> Vec<(u64, String)> {
        let mut found: Vec<(u64, String)> = Vec::new();
        let mut add = |ms: Option<u64>, name: &str| {
            let Some(ms) = ms else { return };
            match found.iter_mut().find(|(of, _)| *of == ms) {
                Some((_, label)) => label.push_str(&format!(", {name}")),
                None => found.push((ms, format!("{} {name}", crate::units::duration(ms)))),
            }
        };
        let window = |policy: &Policy| policy.idle.window.map(policysim_policy::Millis::as_u64);
        add(window(&self.candidate.policy), "candidate");
        add(
            self.current.as_ref().and_then(|of| window(&of.policy)),
            "current",
        );
        let recommended = self.facts.sweep.recommendation.and_then(|number| {
            let setting = self.facts.sweep.cell(number).setting("idle.window");
            policysim_policy::duration::parse(setting).ok()
        });
        add(
            recommended.map(policysim_policy::Millis::as_u64),
            "recommended",
        );
        found
    }

    /// The report, section by section.
    pub fn sections(&self) -> Vec<Section> {
        vec![
            self.context(),
            self.data(),
            self.method(),
            self.options(),
            self.recommendation(),
            self.consequences(),
            self.rules(),
            self.reproduction(),
        ]
    }

    /// The report in Markdown, by the built-in template.
    ///
    /// # Errors
    /// When the template does not render; the built-in one does.
    pub fn to_markdown(&self) -> Result<String, template::TemplateError> {
        template::render(template::BUILT_IN, self)
    }
}
