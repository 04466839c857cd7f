//! What killing healthy runs buys: every cell of a sweep by the rate it may have and by how soon it notices a hang.

use super::Canvas;
use super::canvas::colour;
use super::frame::{Frame, Sample, Scale, legend};
use crate::sizing::facts::{Cell, Sweep};
use crate::units::{counted, duration, percent};

/// Across, the median time until a hang is noticed; up, the one-sided upper limit of the false-kill rate that verdicts
/// take: the number of the table's column, on the same runs and at the same error.
///
/// Cells in which a hang is never noticed have no place on it; `None` when no cell has one. `candidate` is the number of
/// the cell that a report proposes.
#[expect(
    clippy::too_many_lines,
    reason = "one picture, told from top to bottom"
)]
pub fn front(sweep: &Sweep, candidate: Option<usize>) -> Option<Canvas> {
    let point = |cell: &Cell| {
        Some((
            cell.detection.p50_ms? as f64 / 1_000.0,
            cell.certify.false_kill_rate_up_one_sided? * 100.0,
        ))
    };
    let points: Vec<(&Cell, (f64, f64))> = sweep
        .cells
        .iter()
        .filter_map(|cell| Some((cell, point(cell)?)))
        .collect();
    let x_max = points.iter().map(|(_, (x, _))| *x).reduce(f64::max)?;
    let y_max = points.iter().map(|(_, (_, y))| *y).reduce(f64::max)?;
    let measured = points
        .iter()
        .any(|(cell, _)| cell.detection.source == "measured");
    let hung = points.iter().map(|(cell, _)| cell.hung).max().unwrap_or(0);
    let mut canvas = Canvas::new(
        (900, 560),
        "False kills against the time until a hang is noticed",
        &format!(
            "{} on n = {}; {}; limits {}",
            counted(sweep.cells.len() as u64, "cell"),
            counted(sweep.runs(), "run"),
            if measured {
                format!("detection measured on {}", counted(hung, "hung run"))
            } else {
                "no run is known to have hung: detection is the window itself".to_owned()
            },
            sweep.protection.limits_words()
        ),
    );
    let mut entries = vec![
        (Sample::Hollow(colour::SOFT), "other cell".to_owned()),
        (
            Sample::Dot(colour::BLUE),
            "Pareto front: kills and slots lost".to_owned(),
        ),
    ];
    let chosen = sweep.recommendation.map(|number| sweep.cell(number));
    if let Some(cell) = chosen {
        let text = format!("recommended: {}", sweep.settings(cell));
        entries.push((Sample::Triangle(colour::ORANGE), text));
    }
    let proposed = candidate.map(|number| sweep.cell(number));
    if let Some(cell) = proposed {
        let text = format!("candidate: {}", sweep.settings(cell));
        entries.push((Sample::Ring(colour::INK), text));
    }
    let limit = sweep.constraints.max_false_kill_rate;
    if let Some(limit) = limit {
        entries.push((
            Sample::Dashes(colour::INK),
            format!("acceptable: {}", percent(limit)),
        ));
    }
    let height = legend(&mut canvas, &entries, (84.0, 68.0, 876.0));
    let frame = Frame::of(&mut canvas, 84.0, 64.0 + height);
    let x = Scale::linear(0.0, x_max * 1.06, frame.across());
    let y = Scale::linear(0.0, y_max * 1.08, frame.up());
    let x_ticks: Vec<(f64, String)> = x.ticks(10).into_iter().map(|s| (s, seconds(s))).collect();
    let y_ticks: Vec<(f64, String)> = y
        .ticks(8)
        .into_iter()
        .map(|share| (share, format!("{} %", trimmed(share))))
        .collect();
    frame.axes(
        &mut canvas,
        (
            &x,
            &x_ticks,
            "median time from the last sign of life to the firing",
        ),
        (
            &y,
            &y_ticks,
            "false kills per run, 1-sided limit to certify",
        ),
    );
    if let Some(limit) = limit
        .map(|limit| limit * 100.0)
        .filter(|&limit| limit < y_max * 1.08)
    {
        let at = y.at(limit);
        canvas.dashed(
            (frame.left, at),
            (frame.right, at),
            colour::INK,
            1.5,
            (6.0, 4.0),
        );
    }
    let place = |(px, py): (f64, f64)| (x.at(px), y.at(py));
    for (cell, point) in points.iter().filter(|(cell, _)| !cell.pareto) {
        canvas.dot(place(*point), 3.5, colour::SOFT, false);
        let (px, py) = place(*point);
        canvas.mark(format!("cell {}", cell.label), px, py);
    }
    // Points, no line: nothing lies between two cells.
    for (cell, point) in points.iter().filter(|(cell, _)| cell.pareto) {
        canvas.dot(place(*point), 5.0, colour::BLUE, true);
        let (px, py) = place(*point);
        canvas.mark(format!("cell {}", cell.label), px, py);
    }
    if let Some(point) = chosen.and_then(point) {
        canvas.triangle(place(point), 9.0, colour::ORANGE);
    }
    if let Some(point) = proposed.and_then(point) {
        canvas.dot(place(point), 10.0, colour::INK, false);
    }
    Some(canvas)
}

/// A tick of a linear axis of time.
pub(super) fn seconds(s: f64) -> String {
    if s <= 0.0 {
        "0 s".to_owned()
    } else {
        duration(libm::round(s * 1_000.0) as u64)
    }
}

/// A tick without the noise of its last bits.
pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
