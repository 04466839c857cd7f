//! What `policysim sweep` prints: a row per cell, the Pareto front, one recommendation and its reasons.

use policysim_policy::{Cause, Millis, Policy, duration};
use policysim_sim::certify::{Plan, Protection};
use policysim_sim::choose::{CellFigures, Choice, Constraints, Detection};
use policysim_sim::cluster::Cluster;
use policysim_sim::columns::Column;
use policysim_sim::focus::Focus;
use policysim_sim::gaps::Finding;
use policysim_sim::grid;
use policysim_sim::hang_cost::HangCost;
use policysim_sim::readings::{Detector, Recorded};
use policysim_sim::settle::Settlement;
use policysim_sim::stats::traps::AbortEnvelope;
use policysim_sim::stats::{Estimate, Status, json};
use policysim_sim::strata::StratumKey;
use policysim_sim::sweep::{Axis, Candidate};
use policysim_sim::tally::{CellCounts, Part};

use crate::form::{Layout, Printed};
use crate::header::DataHeader;
use crate::sizing::facts::short_key;
use crate::table::{Align, Table};
use crate::units::{counted, duration as human, grouped, hours, percent, percent_figures};

mod answer;
mod sweep_json;

/// What findings of a sweep are about.
const IDLE_CLOCK: &str = "Idle clock";

/// A table longer than this shows only the cells that matter.
const ROWS_SHOWN: usize = 40;

/// Everything that one sweep found.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// What the figures are about.
    pub data: DataHeader,
    /// The policy that every candidate starts from.
    pub base: String,
    /// The same, as a policy.
    pub base_policy: Policy,
    /// The swept axes.
    pub axes: Vec<Axis>,
    /// Length of the parent's TaskWait.
    pub task_wait: Millis,
    /// The candidates, a cell each.
    pub candidates: Vec<Candidate>,
    /// What each does, as counts.
    pub cells: Vec<CellCounts>,
    /// What can be said of each.
    pub figures: Vec<CellFigures>,
    /// Which cells no other beats.
    pub pareto: Vec<bool>,
    /// What a recommended cell must meet.
    pub constraints: Constraints,
    /// The constraint on the rate as written, `1%`.
    pub max_false_kill: String,
    /// The declared order of tests.
    pub plan: Plan,
    /// What protects the choice from luck.
    pub protection: Protection,
    /// What is taken as independent.
    pub cluster: Cluster,
    /// Seed of the split.
    pub seed: u64,
    /// The choice.
    pub choice: Choice,
    /// Every cell as a failure detector; `None` where its window is off.
    pub detectors: Vec<Option<Detector>>,
    /// What windows cost, and for which hang rates each is the cheapest.
    pub cost: HangCost,
    /// The focus cell's intervals that only resampling gives; `None` without a focus.
    pub resampled: Option<Focus>,
    /// What is found in the idle clock's readings beside that: heaps, clocks, suspends, few sessions.
    pub findings: Vec<Finding>,
    /// What the limits in force at recording may hide.
    pub recorded: Recorded,
    /// Aborts during silence and what they leave open about the focus cell's kills per gap.
    pub aborts: Option<(u64, AbortEnvelope)>,
    /// The groups that `CellCounts::strata` counts.
    pub strata: Vec<(StratumKey, String)>,
    /// Show the strata of this key for the recommended cell.
    pub by: Option<StratumKey>,
    /// Settlement of each cell by simulation; empty when it was not asked for.
    pub settled: Vec<Settlement>,
    /// Sentences about this sweep that belong beside its figures.
    pub notes: Vec<String>,
}

impl Printed for SweepResult {
    fn laid_out(&self, layout: Layout) -> String {
        let mut text = layout.prose(&format!(
            "{}\n{} over {} · TaskWait {} (settlement is the closed form for a start uniform in the wait)",
            self.data.line(),
            counted(self.cells.len() as u64, "cell"),
            self.base,
            duration::show(self.task_wait),
        ));
        text.push_str("\n\n");
        text.push_str(&layout.table(&self.table()));
        text.push('\n');
        if let Some(hangs) = self.hangs_table() {
            text.push_str(&layout.table(&hangs));
            text.push('\n');
        }
        if let Some(strata) = self.strata_table() {
            text.push_str(&layout.table(&strata));
            text.push('\n');
        }
        text.push_str(&layout.remarks(&self.remarks(), &self.answer()));
        text
    }

    fn csv(&self) -> Result<String, csv::Error> {
        self.to_csv()
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        self.to_json()
    }
}

impl SweepResult {
    fn shown(&self) -> Vec<usize> {
        let all = 0..self.cells.len();
        if self.cells.len() <= ROWS_SHOWN {
            return all.collect();
        }
        let mut shown: Vec<usize> = self.choice.recommended.into_iter().collect();
        shown.extend(self.choice.neighbours.iter().map(|(index, _)| *index));
        shown.extend(self.choice.nearest.map(|(index, _)| index));
        let front: Vec<usize> = all.filter(|&index| self.pareto[index]).collect();
        shown.extend(front.into_iter().take(ROWS_SHOWN - shown.len()));
        shown.sort_unstable();
        shown.dedup();
        shown
    }

    fn table(&self) -> Table {
        let mut columns = vec![("cell".to_owned(), Align::Right)];
        for axis in &self.axes {
            columns.push((short_key(&axis.key).to_owned(), Align::Right));
        }
        let causes: Vec<&str> = self.causes().iter().map(|(_, name)| *name).collect();
        columns.push((format!("killed\n{}", causes.join("/")), Align::Right));
        for (name, align) in [
            ("false kills per run\n[95 %]", Align::Left),
            (
                if self.is_split() {
                    "≤\n1-sided\ncertify"
                } else {
                    "≤\n1-sided"
                },
                Align::Right,
            ),
            ("unre-\nsolved", Align::Right),
            ("hang seen\np50 … p99", Align::Right),
            ("settles\nin wait", Align::Right),
            ("slots\nlost", Align::Right),
            ("work\nlost", Align::Right),
            ("front", Align::Left),
        ] {
            columns.push((name.to_owned(), align));
        }
        if !self.settled.is_empty() {
            for (name, align) in crate::settle::SWEEP_COLUMNS {
                columns.push((name.to_owned(), align));
            }
        }
        let mut table = Table::new(columns.iter().map(|(name, align)| (name.as_str(), *align)));
        for index in self.shown() {
            table.push(self.row(index));
        }
        table
    }

    fn row(&self, index: usize) -> Vec<String> {
        let (cell, figures) = (&self.cells[index], &self.figures[index]);
        let mark = if self.choice.recommended == Some(index) {
            "▸"
        } else {
            ""
        };
        let mut row = vec![format!("{mark}{}", index + 1)];
        row.extend(
            self.candidates[index]
                .settings
                .iter()
                .map(|(_, value)| grid::plain(value)),
        );
        let by_cause: Vec<String> = self
            .causes()
            .iter()
            .map(|(cause, _)| grouped(cell.kills[*cause as usize]))
            .collect();
        row.push(match by_cause.len() {
            0 | 1 => grouped(cell.killed()),
            _ => format!("{} = {}", grouped(cell.killed()), by_cause.join("/")),
        });
        row.push(rate(&figures.false_kill_rate));
        row.push(self.choice.verdicts[index].upper.map_or_else(dash, percent));
        row.push(grouped(cell.all.tally.unresolved()));
        row.push(detected(&figures.detection));
        row.push(figures.settle_share.map_or_else(dash, percent));
        row.push(if cell.all.hung == 0 {
            dash()
        } else {
            hours(cell.all.slot_lost_ms)
        });
        row.push(hours(cell.all.work_lost_ms));
        row.push(if self.pareto[index] {
            "·".to_owned()
        } else {
            String::new()
        });
        row.extend(
            self.settled
                .get(index)
                .into_iter()
                .flat_map(crate::settle::sweep_row),
        );
        row
    }

    /// The causes that kill in any cell, with their short names.
    fn causes(&self) -> Vec<(Cause, &'static str)> {
        Cause::ALL
            .into_iter()
            .filter(|cause| cause.is_firing())
            .filter(|cause| {
                self.cells
                    .iter()
                    .any(|cell| cell.kills[*cause as usize] > 0)
            })
            .map(|cause| {
                let name = cause.name();
                (
                    cause,
                    name.trim_end_matches("_timeout").trim_end_matches("_limit"),
                )
            })
            .collect()
    }

    /// The cell that remarks and strata are about: the recommended or else the nearest one.
    fn focus(&self) -> Option<usize> {
        self.choice.focus()
    }

    fn is_split(&self) -> bool {
        self.protection == Protection::SplitAndSequence
    }

    /// What candidate `index` does to the runs that verdicts are given on.
    fn judged(&self, index: usize) -> &Part {
        &self.cells[index].certify
    }

    /// One row per cell, durations in ms, rates as shares.
    fn to_csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let columns = self.columns();
        writer.write_record(columns.iter().map(|(name, _)| name.as_str()))?;
        for row in 0..self.cells.len() {
            writer.write_record(columns.iter().map(|(_, column)| match column {
                Column::Text(values) => crate::csv_safe(&values[row]),
                Column::Integer(values) => {
                    values[row].map_or_else(String::new, |value| value.to_string())
                }
                Column::Float(values) => {
                    values[row].map_or_else(String::new, |value| json(value).to_string())
                }
            }))?;
        }
        crate::csv_text(writer)
    }

    /// The cells as named columns of equal length, for CSV and Parquet.
    #[expect(
        clippy::too_many_lines,
        reason = "one row of the file, column after column"
    )]
    pub fn columns(&self) -> Vec<(String, Column)> {
        let cells = || self.cells.iter();
        let figures = || self.figures.iter();
        let count = |pick: fn(&CellCounts) -> u64| {
            Column::Integer(cells().map(|cell| i64::try_from(pick(cell)).ok()).collect())
        };
        let total = |pick: fn(&CellCounts) -> u128| {
            Column::Integer(cells().map(|cell| i64::try_from(pick(cell)).ok()).collect())
        };
        let float =
            |pick: fn(&CellFigures) -> Option<f64>| Column::Float(figures().map(pick).collect());
        let mut columns = vec![(
            "cell".to_owned(),
            Column::Integer(
                (1..=self.cells.len())
                    .map(|n| i64::try_from(n).ok())
                    .collect(),
            ),
        )];
        for (index, axis) in self.axes.iter().enumerate() {
            let values = self
                .candidates
                .iter()
                .map(|candidate| grid::plain(&candidate.settings[index].1));
            columns.push((axis.key.clone(), Column::Text(values.collect())));
        }
        let mut push = |name: &str, column: Column| columns.push((name.to_owned(), column));
        push("runs", count(|cell| cell.all.tally.runs));
        push("killed", count(CellCounts::killed));
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            if cause.is_firing() {
                let values = cells().map(|cell| i64::try_from(cell.kills[index]).ok());
                push(cause.name(), Column::Integer(values.collect()));
            }
        }
        push("false_kills", count(|cell| cell.all.tally.false_kills));
        push("true_kills", count(|cell| cell.true_kills));
        push(
            "unresolved_kills",
            count(|cell| cell.all.tally.unresolved_kills),
        );
        push(
            "unresolved_survivals",
            count(|cell| cell.all.tally.unresolved_survivals),
        );
        push("false_kill_rate", float(|f| f.false_kill_rate.point));
        push(
            "false_kill_rate_lo",
            float(|f| f.false_kill_rate.interval.lo),
        );
        push(
            "false_kill_rate_up",
            float(|f| f.false_kill_rate.interval.up),
        );
        push("false_or_unresolved_rate", float(|f| f.unresolved_rate_up));
        push("false_kill_rate_up_one_sided", float(|f| f.verdict.upper));
        push("false_kills_per_hour", float(|f| f.false_kills_per_hour));
        push("hung", count(|cell| cell.all.hung));
        push("hung_killed_early", count(|cell| cell.hung_killed_early));
        push("hung_missed", count(|cell| cell.hung_missed));
        let detection = |pick: fn(&Detection) -> Option<u64>| {
            let values =
                figures().map(|f| pick(&f.detection).and_then(|ms| i64::try_from(ms).ok()));
            Column::Integer(values.collect())
        };
        push("detection_p50_ms", detection(|d| ends(d).0));
        push("detection_p99_ms", detection(|d| ends(d).1));
        let source = figures().map(|f| detection_source(&f.detection).to_owned());
        push("detection_source", Column::Text(source.collect()));
        push("settle_share_closed_form", float(|f| f.settle_share));
        if !self.settled.is_empty() {
            for (name, values) in crate::settle::sweep_columns(&self.settled) {
                push(&format!("simulated_{name}"), values);
            }
        }
        push("slot_lost_ms", total(|cell| cell.all.slot_lost_ms));
        push("work_lost_ms", total(|cell| cell.all.work_lost_ms));
        push(
            "pareto",
            Column::Integer(self.pareto.iter().map(|&on| Some(i64::from(on))).collect()),
        );
        push("ties_at_W", count(|cell| cell.all.tally.ties));
        push("certify_runs", count(|cell| cell.certify.tally.runs));
        push(
            "certify_false_kills",
            count(|cell| cell.certify.tally.false_kills),
        );
        push(
            "certify_unresolved",
            count(|cell| cell.certify.tally.unresolved()),
        );
        let limits = self.choice.verdicts.iter().map(|verdict| verdict.upper);
        push(
            "certify_false_kill_rate_up_one_sided",
            Column::Float(limits.collect()),
        );
        let places = self.choice.tests.cells.iter();
        push(
            "certified",
            Column::Text(places.map(|place| place.name().to_owned()).collect()),
        );
        push("newly_killed", count(|cell| cell.against_base.only_second));
        push("newly_spared", count(|cell| cell.against_base.only_first));
        columns
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn rate(estimate: &Estimate) -> String {
    match (estimate.point, estimate.status) {
        (None, _) | (_, Status::NotEstimable) => "not estimable (no run)".to_owned(),
        (Some(point), _) => {
            let side = |limit: Option<f64>| limit.map_or_else(dash, percent_figures);
            format!(
                "{} [{} … {}] %",
                percent_figures(point),
                side(estimate.interval.lo),
                side(estimate.interval.up)
            )
        }
    }
}

fn ends(detection: &Detection) -> (Option<u64>, Option<u64>) {
    match detection {
        Detection::Measured { p50, p99, .. } => (p50.value, p99.value),
        Detection::ClosedForm(window) => (Some(window.as_u64()), Some(window.as_u64())),
        Detection::Never => (None, None),
    }
}

const fn detection_source(detection: &Detection) -> &'static str {
    match detection {
        Detection::Measured { .. } => "measured",
        Detection::ClosedForm(_) => "closed_form",
        Detection::Never => "none",
    }
}

fn detected(detection: &Detection) -> String {
    let (p50, p99) = ends(detection);
    let text = match (p50, p99) {
        (Some(p50), Some(p99)) => format!("{} … {}", human(p50), human(p99)),
        _ => return "never".to_owned(),
    };
    match detection {
        Detection::Measured { missed, .. } if *missed > 0 => {
            format!("{text}, {} missed", grouped(*missed))
        }
        _ => text,
    }
}
