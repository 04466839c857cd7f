//! Two axes of a sweep as a map: how often each pair kills a run that lives.

use plotters::style::RGBColor;

use super::Canvas;
use super::canvas::{Side, colour};
use super::frame::{Frame, Sample, legend};
use super::measure::{SMALL, TEXT, fitted};
use crate::sizing::facts::{Cell, Sweep, short_key};
use crate::units::{counted, grouped, percent};

/// The axis across.
const ACROSS: &str = "idle.window";
/// The axis up.
const UP: &str = "total.budget";
/// More values than this on an axis make cells too small to be read.
const MOST: usize = 24;

/// False-kill rates over idle windows and total budgets; where another axis is swept, at the candidate's value of it.
/// `None` without an idle axis, or when an axis is too long to be read.
#[expect(
    clippy::too_many_lines,
    reason = "one picture, told from top to bottom"
)]
pub fn heat(sweep: &Sweep, candidate: Option<usize>) -> Option<Canvas> {
    if !sweep.axes.iter().any(|key| key == ACROSS) {
        return None;
    }
    let own = candidate.map(|number| sweep.cell(number));
    let focus = own.or_else(|| sweep.focus())?;
    let others: Vec<&String> = sweep
        .axes
        .iter()
        .filter(|key| *key != ACROSS && *key != UP)
        .collect();
    let shown: Vec<&Cell> = sweep
        .cells
        .iter()
        .filter(|cell| {
            others
                .iter()
                .all(|key| cell.setting(key) == focus.setting(key))
        })
        .collect();
    let (columns, lines) = (sweep.values(ACROSS), sweep.values(UP));
    if columns.len() > MOST || lines.len() > MOST {
        return None;
    }
    let height = 190 + 44 * lines.len().clamp(2, 12);
    let under = format!(
        "false kills per run, n = {}; a hatched cell has unresolved runs (+ their number), which limits count as kills{}",
        counted(sweep.runs(), "run"),
        if others.is_empty() {
            String::new()
        } else {
            let at: Vec<String> = others
                .iter()
                .map(|key| format!("{} {}", short_key(key), focus.setting(key)))
                .collect();
            format!("; at {}", at.join(", "))
        }
    );
    let mut canvas = Canvas::new(
        (900, height as u32),
        "False-kill rate over idle window and total budget",
        &under,
    );
    let most = shown
        .iter()
        .filter_map(|cell| cell.false_kill_rate.point)
        .fold(0.0, f64::max);
    let entries = [
        (Sample::Band(shade(0.0)), "0 %".to_owned()),
        (Sample::Band(shade(0.5)), percent(most / 4.0)),
        (Sample::Band(shade(1.0)), percent(most)),
        (
            Sample::Hatch(colour::SOFT),
            "has unresolved runs".to_owned(),
        ),
        (Sample::Frame(colour::INK), "candidate".to_owned()),
    ];
    let legend_height = legend(&mut canvas, &entries, (104.0, 68.0, 876.0));
    let frame = Frame::of(&mut canvas, 104.0, 62.0 + legend_height);
    let (wide, high) = (
        (frame.right - frame.left) / columns.len() as f64,
        (frame.bottom - frame.top) / lines.len() as f64,
    );
    for cell in shown {
        let column = columns
            .iter()
            .position(|value| *value == cell.setting(ACROSS))?;
        let line = lines.iter().position(|value| *value == cell.setting(UP))?;
        let from = (
            frame.left + wide * column as f64,
            frame.top + high * line as f64,
        );
        draw(&mut canvas, cell, from, (wide, high), most);
        if candidate == Some(cell.cell) {
            canvas.outline(
                (from.0 + 2.0, from.1 + 2.0),
                (from.0 + wide - 3.0, from.1 + high - 3.0),
                colour::INK,
                3.0,
            );
        }
        // In the corner, where a mark hides no figure.
        canvas.mark(
            format!("cell {}", cell.label),
            from.0 + wide - 11.0,
            from.1 + 10.0,
        );
    }
    for (column, value) in columns.iter().enumerate() {
        let at = frame.left + wide * (column as f64 + 0.5);
        let text = fitted(value, SMALL, false, wide - 4.0);
        canvas.text(
            (at, frame.bottom + 14.0),
            &text,
            Side::Middle,
            SMALL,
            colour::SOFT,
        );
    }
    for (line, value) in lines.iter().enumerate() {
        let at = frame.top + high * (line as f64 + 0.5);
        let value = if *value == "-" {
            "as in the policy"
        } else {
            value
        };
        let text = fitted(value, SMALL, false, 66.0);
        canvas.text(
            (frame.left - 8.0, at),
            &text,
            Side::End,
            SMALL,
            colour::SOFT,
        );
    }
    let middle = f64::midpoint(frame.left, frame.right);
    canvas.text(
        (middle, frame.bottom + 38.0),
        "idle window",
        Side::Middle,
        TEXT,
        colour::INK,
    );
    canvas.upright(
        (16.0, f64::midpoint(frame.top, frame.bottom)),
        "total budget",
        TEXT,
        colour::INK,
    );
    Some(canvas)
}

/// From paper to blue; the root spreads small rates.
fn shade(share: f64) -> RGBColor {
    let blend = |from: u8, to: u8| {
        let (from, to) = (f64::from(from), f64::from(to));
        libm::round(from + (to - from) * share) as u8
    };
    let (from, to) = (RGBColor(247, 251, 255), colour::BLUE);
    RGBColor(
        blend(from.0, to.0),
        blend(from.1, to.1),
        blend(from.2, to.2),
    )
}

fn draw(canvas: &mut Canvas, cell: &Cell, from: (f64, f64), (wide, high): (f64, f64), most: f64) {
    let to = (from.0 + wide - 1.0, from.1 + high - 1.0);
    let share = match cell.false_kill_rate.point {
        Some(rate) if most > 0.0 => libm::sqrt(rate / most),
        _ => 0.0,
    };
    canvas.filled(from, to, shade(share));
    if cell.unresolved() > 0 {
        canvas.hatched(from, to, colour::GREY, 7.0);
    }
    let rate = cell
        .false_kill_rate
        .point
        .map_or_else(|| "not est.".to_owned(), percent);
    let mut texts = vec![rate];
    if cell.unresolved() > 0 && high > 36.0 {
        texts.push(format!("+ {}", grouped(cell.unresolved())));
    }
    let middle = from.0 + wide / 2.0;
    let count = texts.len() as f64;
    for (line, text) in texts.iter().enumerate() {
        let text = fitted(text, SMALL, false, wide - 10.0);
        let y = from.1 + high / 2.0 + (line as f64 - (count - 1.0) / 2.0) * 15.0;
        let half = super::measure::width(&text, SMALL, false) / 2.0 + 3.0;
        // A plate of paper under the figure, so that neither shade nor hatching takes it away.
        canvas.filled(
            (middle - half, y - 8.0),
            (middle + half, y + 8.0),
            colour::PAPER,
        );
        canvas.text((middle, y), &text, Side::Middle, SMALL, colour::INK);
    }
}
