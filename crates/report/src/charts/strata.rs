//! The strata of a cell, the worst on top: a pooled rate may hide one that is far above it.

use policysim_sim::stats::{Level, rates};

use super::Canvas;
use super::canvas::{Side, colour};
use super::frame::{Frame, Sample, Scale, legend};
use super::front::trimmed;
use super::measure::{SMALL, fitted};
use crate::sizing::facts::{Cell, Stratum, Sweep};
use crate::units::{counted, grouped, percent};

/// More strata than this are left to the table.
const MOST: usize = 24;

/// The strata of `cell` by their upper limit over all runs, the worst first; those of a key with a single group are the
/// whole and left out.
pub(crate) fn by_limit(cell: &Cell) -> Vec<&Stratum> {
    let several = |key: &str| cell.strata.iter().filter(|of| of.key == key).count() > 1;
    let mut found: Vec<&Stratum> = cell
        .strata
        .iter()
        .filter(|stratum| stratum.runs > 0 && several(&stratum.key))
        .collect();
    let limit = |stratum: &Stratum| stratum.false_kill_rate_up_one_sided.unwrap_or(1.0);
    found.sort_by(|a, b| limit(b).total_cmp(&limit(a)));
    found
}

/// A line per stratum: the rate, its two-sided interval, and the one-sided limit that verdicts take.
/// `None` where there is only one stratum.
#[expect(
    clippy::too_many_lines,
    reason = "one picture, told from top to bottom"
)]
pub fn strata(sweep: &Sweep, cell: &Cell) -> Option<Canvas> {
    let all = by_limit(cell);
    if all.is_empty() {
        return None;
    }
    let shown = &all[..all.len().min(MOST)];
    let height = 178 + 26 * shown.len().max(3);
    let more = if all.len() > shown.len() {
        format!("; {} more in the table", all.len() - shown.len())
    } else {
        String::new()
    };
    let mut canvas = Canvas::new(
        (900, height as u32),
        &format!("False kills by stratum at {}", sweep.settings(cell)),
        &format!(
            "n = {}; the worst on top; limits count unresolved runs as kills{more}",
            counted(cell.runs, "run")
        ),
    );
    let mut entries = vec![
        (Sample::Dot(colour::BLUE), "rate".to_owned()),
        (Sample::Line(colour::BLUE), "95 % interval".to_owned()),
        (
            Sample::Diamond(colour::ORANGE),
            "1-sided 95 % limit, all its runs".to_owned(),
        ),
    ];
    let accepted = sweep.constraints.max_false_kill_rate;
    if let Some(limit) = accepted {
        entries.push((
            Sample::Dashes(colour::INK),
            format!("acceptable: {}", percent(limit)),
        ));
    }
    let legend_height = legend(&mut canvas, &entries, (24.0, 68.0, 876.0));
    let mut frame = Frame::of(&mut canvas, 250.0, 62.0 + legend_height);
    frame.right -= 86.0;
    canvas.set_plot([frame.left, frame.top, frame.right, frame.bottom]);
    let estimates: Vec<_> = shown
        .iter()
        .map(|stratum| rates::rate(stratum.false_kills, stratum.runs, Level::P95))
        .collect();
    let most = shown
        .iter()
        .zip(&estimates)
        .map(|(stratum, estimate)| {
            let one_sided = stratum.false_kill_rate_up_one_sided.unwrap_or(0.0);
            one_sided.max(estimate.interval.up.unwrap_or(0.0))
        })
        .chain(accepted)
        .fold(0.0, f64::max);
    let x = Scale::linear(0.0, most * 1.08, frame.across());
    let ticks: Vec<(f64, String)> = x
        .ticks(7)
        .into_iter()
        .map(|tick| (tick, format!("{} %", trimmed(tick * 100.0))))
        .collect();
    frame.x_axis(&mut canvas, &x, &ticks, "false kills per run");
    canvas.outline(
        (frame.left, frame.top),
        (frame.right, frame.bottom),
        colour::GREY,
        1.0,
    );
    if let Some(limit) = accepted {
        let at = x.at(limit);
        canvas.dashed(
            (at, frame.top),
            (at, frame.bottom),
            colour::INK,
            1.5,
            (6.0, 4.0),
        );
    }
    let high = (frame.bottom - frame.top) / shown.len() as f64;
    for (line_at, (stratum, estimate)) in shown.iter().zip(&estimates).enumerate() {
        let y = frame.top + high * (line_at as f64 + 0.5);
        let name = fitted(
            &format!("{} {}", stratum.key, stratum.group),
            SMALL,
            false,
            222.0,
        );
        canvas.text((frame.left - 8.0, y), &name, Side::End, SMALL, colour::INK);
        let n = format!("n = {}", grouped(stratum.runs));
        canvas.text((frame.right + 8.0, y), &n, Side::Start, SMALL, colour::SOFT);
        if let (Some(lo), Some(up)) = (estimate.interval.lo, estimate.interval.up) {
            canvas.line(vec![(x.at(lo), y), (x.at(up), y)], colour::BLUE, 2.0);
        }
        if let Some(point) = estimate.point {
            canvas.dot((x.at(point), y), 4.0, colour::BLUE, true);
        }
        canvas.mark(
            format!("stratum {line_at}"),
            x.at(estimate.point.unwrap_or(0.0)),
            y,
        );
        if let Some(limit) = stratum.false_kill_rate_up_one_sided {
            canvas.diamond((x.at(limit), y), 5.0, colour::ORANGE);
        }
    }
    Some(canvas)
}
