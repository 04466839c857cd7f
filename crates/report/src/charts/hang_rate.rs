//! Which window is the cheapest at which hang rate, and where the choice switches.

use policysim_sim::hang_cost::HangTime;

use super::Canvas;
use super::canvas::{Side, colour};
use super::frame::{Frame, Sample, Scale, legend};
use super::front::trimmed;
use super::measure::{SMALL, TEXT, width};
use crate::sizing::facts::Sweep;
use crate::units::{counted, duration, grouped, percent};

/// The axis' ends, shares of runs.
const ENDS: (f64, f64) = (0.000_1, 1.0);

/// A step per window that is ever the cheapest; `None` when nothing could be compared on cost. `rates` are places where
/// a page can put a mark.
#[expect(
    clippy::too_many_lines,
    reason = "one picture, told from top to bottom"
)]
pub fn hang_rate(sweep: &Sweep, rates: &[f64]) -> Option<Canvas> {
    let cost = &sweep.cost;
    if cost.best_for.is_empty() {
        return None;
    }
    let restart = match cost.restart_ms {
        0 => "a restart costs nothing".to_owned(),
        ms => format!("a restart costs {}", duration(ms)),
    };
    // The largest window last is the uppermost step.
    let steps: Vec<_> = cost.best_for.iter().rev().collect();
    let height = 210 + 34 * steps.len().clamp(2, 16);
    let mut canvas = Canvas::new(
        (900, height as u32),
        "The cheapest window at each hang rate",
        &format!(
            "n = {}, {} hung; cost{} is work lost to false kills plus {}, {restart}",
            counted(cost.runs, "run"),
            grouped(cost.hangs),
            cost.ranked().map_or_else(String::new, |ranked| format!(
                " (of {} that ranked)",
                counted(ranked, "run")
            )),
            if cost.hang_time == HangTime::Knowledge.name() {
                "the time until parents know of hangs (simulated)"
            } else {
                "slots lost to hangs"
            }
        ),
    );
    let (lo, up) = (cost.hang_rates.lo, cost.hang_rates.up);
    let band = match (lo, up) {
        (Some(lo), Some(up)) if lo < up => Some((lo.max(ENDS.0), up)),
        (None, Some(up)) => Some((ENDS.0, up)),
        _ => None,
    };
    let mut entries = vec![(Sample::Line(colour::BLUE), "cheapest".to_owned())];
    if let Some((_, up)) = band {
        let text = match lo.filter(|&lo| lo > 0.0) {
            Some(lo) => format!(
                "hang rates of this record [{} … {}]",
                percent(lo),
                percent(up)
            ),
            None => format!("hang rates of this record, at most {}", percent(up)),
        };
        entries.push((Sample::Band(colour::BAND), text));
    } else if let Some(rate) = lo {
        entries.push((
            Sample::Dashes(colour::INK),
            format!("given: {}", percent(rate)),
        ));
    }
    if steps.len() > 1 {
        entries.push((Sample::Dot(colour::BLUE), "switch point".to_owned()));
    }
    let legend_height = legend(&mut canvas, &entries, (124.0, 68.0, 876.0));
    let frame = Frame::of(&mut canvas, 124.0, 64.0 + legend_height);
    let x = Scale::log(ENDS.0, ENDS.1, frame.across());
    if let Some((lo, up)) = band {
        canvas.filled(
            (x.at(lo), frame.top),
            (x.at(up), frame.bottom),
            colour::BAND,
        );
    }
    let ticks: Vec<(f64, String)> = [0.0001, 0.001, 0.01, 0.1, 1.0]
        .into_iter()
        .map(|share| (share, format!("{} %", trimmed(share * 100.0))))
        .collect();
    frame.x_axis(
        &mut canvas,
        &x,
        &ticks,
        "share of runs that hang (logarithmic)",
    );
    canvas.outline(
        (frame.left, frame.top),
        (frame.right, frame.bottom),
        colour::GREY,
        1.0,
    );
    canvas.upright(
        (16.0, f64::midpoint(frame.top, frame.bottom)),
        "cheapest window",
        TEXT,
        colour::INK,
    );
    let high = (frame.bottom - frame.top) / steps.len() as f64;
    // Smaller windows pay at higher rates: they stand at the bottom, on the right.
    for (line, range) in steps.iter().enumerate() {
        let y = frame.bottom - high * (line as f64 + 0.5);
        let cell = sweep.cell(range.cell);
        let label = super::measure::fitted(&sweep.settings(cell), SMALL, false, 94.0);
        canvas.text((frame.left - 8.0, y), &label, Side::End, SMALL, colour::INK);
        let (from, to) = (
            x.at(range.hang_rate_from.max(ENDS.0)),
            x.at(range.hang_rate_to.max(ENDS.0)),
        );
        canvas.line(vec![(from, y), (to.max(from + 1.0), y)], colour::BLUE, 4.0);
        if range.hang_rate_to < 1.0 {
            canvas.line(vec![(to, y), (to, y + high)], colour::BLUE, 1.0);
            canvas.dot((to, y), 4.0, colour::BLUE, true);
            let text = percent(range.hang_rate_to);
            let room = frame.right - to;
            let side = if room > width(&text, SMALL, false) + 12.0 {
                (to + 8.0, Side::Start)
            } else {
                (to - 8.0, Side::End)
            };
            canvas.text((side.0, y - 9.0), &text, side.1, SMALL, colour::INK);
        }
    }
    if let (None, Some(rate)) = (band, lo) {
        let at = x.at(rate.max(ENDS.0));
        canvas.dashed(
            (at, frame.top),
            (at, frame.bottom),
            colour::INK,
            2.0,
            (6.0, 4.0),
        );
    }
    for &rate in rates {
        canvas.mark(format!("rate {rate}"), x.at(rate.max(ENDS.0)), frame.top);
    }
    Some(canvas)
}
