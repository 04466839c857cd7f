//! How many hangs settle inside the TaskWait in which they begin, by the length of that wait.

use plotters::style::RGBColor;

use super::Canvas;
use super::canvas::colour;
use super::frame::{Frame, Sample, Scale, legend};
use super::front::seconds;
use crate::sizing::settled::SettledByWait;
use crate::units::{duration, grouped};

/// The fewest and most hangs behind a simulated point.
fn hangs(found: &SettledByWait) -> String {
    let n = || {
        found
            .lines
            .iter()
            .flat_map(|line| &line.simulated)
            .map(|of| of.settled_in_wait.n)
    };
    match (n().min(), n().max()) {
        (Some(least), Some(most)) if least < most => {
            format!("{} … {}", grouped(least), grouped(most))
        }
        (Some(n), _) => grouped(n),
        _ => "0".to_owned(),
    }
}

/// The mark of a policy, which its shape tells from the others without colour.
fn shape(canvas: &mut Canvas, index: usize, at: (f64, f64), size: f64, stroke: RGBColor) {
    match index {
        0 => canvas.triangle(at, 6.0 * size, stroke),
        1 => canvas.dot(at, 4.0 * size, stroke, true),
        _ => canvas.diamond(at, 5.0 * size, stroke),
    }
}

/// A line per policy over the lengths of the wait, each point as the table has it; `None` without one.
pub fn settlement(found: &SettledByWait) -> Option<Canvas> {
    if found.lines.is_empty() || found.waits_ms.is_empty() {
        return None;
    }
    let mut canvas = Canvas::new(
        (900, 480),
        "Hangs that settle inside the TaskWait in which they begin",
        &format!(
            "lines: closed form for a uniform start, no sample behind it; bars: simulated share with its 95 % interval, n = {} hangs in waits",
            hangs(found)
        ),
    );
    let strokes = [colour::ORANGE, colour::BLUE, colour::INK];
    let mut entries: Vec<(Sample, String)> = found
        .lines
        .iter()
        .zip(strokes)
        .enumerate()
        .map(|(index, (line, stroke))| {
            let text = format!("{}: idle {}", line.name, duration(line.window_ms));
            let sample = match index {
                0 => Sample::Triangle(stroke),
                1 => Sample::Dot(stroke),
                _ => Sample::Diamond(stroke),
            };
            (sample, text)
        })
        .collect();
    entries.push((Sample::Bar(colour::SOFT), "simulated".to_owned()));
    entries.push((
        Sample::Dashes(colour::INK),
        format!("TaskWait of the policy: {}", duration(found.task_wait_ms)),
    ));
    let height = legend(&mut canvas, &entries, (84.0, 68.0, 876.0));
    let frame = Frame::of(&mut canvas, 84.0, 64.0 + height);
    let most = found.waits_ms.iter().copied().max()? as f64 / 1_000.0;
    let x = Scale::linear(0.0, most * 1.05, frame.across());
    // A little room below 0, where most marks of short waits lie.
    let y = Scale::linear(-0.03, 1.0, frame.up());
    let x_ticks: Vec<(f64, String)> = x.ticks(10).into_iter().map(|s| (s, seconds(s))).collect();
    let y_ticks: Vec<(f64, String)> = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        .into_iter()
        .map(|share| (share, format!("{:.0} %", share * 100.0)))
        .collect();
    frame.axes(
        &mut canvas,
        (&x, &x_ticks, "length of the TaskWait"),
        (&y, &y_ticks, "share of hangs that settle inside it"),
    );
    let at = x.at(found.task_wait_ms as f64 / 1_000.0);
    canvas.dashed(
        (at, frame.top),
        (at, frame.bottom),
        colour::INK,
        2.0,
        (6.0, 4.0),
    );
    for (index, (line, stroke)) in found.lines.iter().zip(strokes).enumerate().rev() {
        let points: Vec<(f64, f64)> = found
            .waits_ms
            .iter()
            .zip(&line.shares)
            .map(|(&wait_ms, &share)| (x.at(wait_ms as f64 / 1_000.0), y.at(share)))
            .collect();
        canvas.line(points.clone(), stroke, 1.0);
        for point in points {
            shape(&mut canvas, index, point, 1.0, stroke);
        }
    }
    for (index, (line, stroke)) in found.lines.iter().zip(strokes).enumerate() {
        for of in &line.simulated {
            // Side by side, so that no bar hides another.
            let at = x.at(of.wait_ms as f64 / 1_000.0) + 9.0 * (index as f64 - 1.0);
            if let Some(point) = of.settled_in_wait.point {
                shape(&mut canvas, index, (at, y.at(point)), 0.8, stroke);
            }
            if let (Some(lo), Some(up)) = (
                of.settled_in_wait.interval.lo,
                of.settled_in_wait.interval.up,
            ) {
                canvas.line(vec![(at, y.at(lo)), (at, y.at(up))], stroke, 1.5);
            }
        }
    }
    for &wait_ms in &found.waits_ms {
        canvas.mark(
            format!("wait {wait_ms}"),
            x.at(wait_ms as f64 / 1_000.0),
            frame.top,
        );
    }
    Some(canvas)
}
