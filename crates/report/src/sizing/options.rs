//! What was compared: the cells of the sweep.

use super::Report;
use super::document::{Block, Datum, Grid, Prose, Section};
use super::facts::Cell;
use super::words::{count, figure, limit, noticed, slots, total};
use crate::table::Align;
use crate::units::{are, counted, grouped, percent};

/// A table longer than this shows only the cells that matter.
const MOST: usize = 40;

impl Report {
    pub(super) fn options(&self) -> Section {
        let sweep = &self.facts.sweep;
        let cells = sweep.cells.len() as u64;
        let mut section = Section::new("options", "Options considered");
        section.add(Block::Grid(self.cells_grid()));
        section.say(
            Prose::new("Cells of the ")
                .term("front", "front")
                .text(" are marked; no other cell beats them in both false kills and what hangs cost. ")
                .text(format!("All {} {} in ", counted(cells, "cell"), are(cells)))
                .code("report.json")
                .text("."),
        );
        section.add(Block::Chart("front"));
        section.add(Block::Chart("heat"));
        section.add(Block::List(
            sweep
                .notes
                .iter()
                .map(|words| Prose::noted(words))
                .collect(),
        ));
        section
    }

    /// The cells to show: all, or the candidate, the recommended one, its reasons and the front.
    fn shown_cells(&self) -> Vec<&Cell> {
        let sweep = &self.facts.sweep;
        if sweep.cells.len() <= MOST {
            return sweep.cells.iter().collect();
        }
        let mut numbers: Vec<usize> = sweep
            .recommendation
            .into_iter()
            .chain(sweep.nearest.as_ref().map(|nearest| nearest.cell))
            .chain(self.candidate_cell)
            .collect();
        let front = sweep.cells.iter().filter(|cell| cell.pareto);
        let room = MOST - numbers.len();
        numbers.extend(front.map(|cell| cell.cell).take(room));
        numbers.sort_unstable();
        numbers.dedup();
        numbers
            .into_iter()
            .map(|number| sweep.cell(number))
            .collect()
    }

    fn cells_grid(&self) -> Grid {
        let sweep = &self.facts.sweep;
        let shown = self.shown_cells();
        let mut title = format!(
            "{} over {}, n = {}",
            counted(sweep.cells.len() as u64, "cell"),
            sweep.base,
            counted(sweep.runs(), "run")
        );
        if shown.len() < sweep.cells.len() {
            title.push_str(&format!(
                "; {} shown: the front, the candidate and the recommended one",
                grouped(shown.len() as u64)
            ));
        }
        let mut columns = vec![("cell", Align::Right, Some("cell"))];
        columns.extend(sweep.axes.iter().map(|key| match key.as_str() {
            "idle.window" => ("idle", Align::Right, Some("idle-window")),
            "total.budget" => ("total", Align::Right, Some("budget")),
            "turns.cap" => ("turns", Align::Right, Some("turn-cap")),
            other => (other, Align::Right, Some("cell")),
        }));
        columns.extend([
            ("killed", Align::Right, Some("killed")),
            (
                "false kills per run\n[95 %]",
                Align::Left,
                Some("false-kill-rate"),
            ),
            ("unresolved", Align::Right, Some("unresolved")),
            ("1-sided limit\nto certify", Align::Right, Some("certified")),
            ("verdict", Align::Left, Some("certified")),
            (
                "hang seen\np50 … p99 [95 %]",
                Align::Right,
                Some("detection-time"),
            ),
            ("settles\nin wait", Align::Right, Some("settles-in-wait")),
            ("slots lost", Align::Right, Some("slots-lost")),
            ("work lost", Align::Right, Some("work-lost")),
            ("mark", Align::Left, Some("front")),
        ]);
        let mut grid = Grid::new(title, &columns);
        for cell in shown {
            grid.push(self.cell_row(cell));
        }
        grid
    }

    fn cell_row(&self, cell: &Cell) -> Vec<Datum> {
        let sweep = &self.facts.sweep;
        let mut row = vec![count(cell.cell as u64)];
        row.extend(sweep.axes.iter().map(|key| {
            let value = cell.setting(key);
            match policysim_policy::duration::parse(value) {
                Ok(span) => Datum::of(value, span.as_u64() as f64),
                Err(_) => Datum::text(value),
            }
        }));
        let mut marks = Vec::new();
        if sweep.recommendation == Some(cell.cell) {
            marks.push("recommended");
        }
        if self.candidate_cell == Some(cell.cell) {
            marks.push("candidate");
        }
        if cell.pareto {
            marks.push("front");
        }
        row.extend([
            count(cell.killed),
            figure(&cell.false_kill_rate),
            count(cell.unresolved()),
            limit(cell.certify.false_kill_rate_up_one_sided),
            Datum::text(verdict(cell)),
            noticed(cell),
            cell.settle_share.map_or_else(
                || Datum::text("never"),
                |share| Datum::of(percent(share), share),
            ),
            slots(cell),
            total(u128::from(cell.work_lost_ms)),
            Datum::text(marks.join(", ")),
        ]);
        row
    }
}

/// Where the tests of a cell ended, in a word or two, and the runs they were on.
pub(super) fn verdict(cell: &Cell) -> String {
    let certify = &cell.certify;
    let runs = grouped(certify.runs);
    match certify.place.as_str() {
        "not_asked" => "no rate was asked for".to_owned(),
        "certified" => format!("certified on {runs}"),
        "not_reached" => "not tested: a larger window did not pass".to_owned(),
        "not_selected" => "not tested: other settings were preferred".to_owned(),
        _ => match certify.runs_needed {
            Some(needed) => format!("{} on {runs}, needs {}", certify.decision, grouped(needed)),
            None => format!("{} on {runs}", certify.decision),
        },
    }
}
