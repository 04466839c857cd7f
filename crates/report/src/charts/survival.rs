//! How long silences last: the share that reaches each length, with its interval, and the windows that would cut it.

use plotters::style::RGBColor;
use policysim_policy::Millis;
use policysim_sim::gaps::curve::Curve;

use super::Canvas;
use super::canvas::{Side, colour};
use super::frame::{Frame, Sample, Scale, legend, rows};
use super::measure::SMALL;
use crate::units::{duration, grouped};

/// Of each curve, its line and its interval.
const INKS: [(RGBColor, RGBColor); 2] = [
    (colour::BLUE, colour::BAND),
    (colour::ORANGE, colour::PEACH),
];

/// Curves over one axis, and windows across it.
#[derive(Clone, Copy, Debug)]
pub struct SurvivalChart<'a> {
    /// The curves, at most two, with their names.
    pub curves: &'a [(&'a str, &'a Curve)],
    /// Windows with a label: the candidate first, then the current one.
    pub named: &'a [(u64, String)],
    /// Every swept window, ms.
    pub swept_ms: &'a [u64],
}

/// The survival curves on logarithmic axes; `None` without a silence.
#[expect(
    clippy::too_many_lines,
    reason = "one picture, told from top to bottom"
)]
pub fn survival(chart: SurvivalChart<'_>) -> Option<Canvas> {
    let curves: Vec<_> = chart
        .curves
        .iter()
        .filter(|(_, curve)| curve.n > 0)
        .collect();
    let most = curves.iter().map(|(_, curve)| curve.n).max()?;
    let under = curves
        .iter()
        .map(|(name, curve)| {
            format!(
                "{name}: n = {}, {} cut short",
                grouped(curve.n),
                grouped(curve.cut)
            )
        })
        .collect::<Vec<_>>()
        .join(" · ");
    let mut canvas = Canvas::new(
        (900, 560),
        "Share of silences that last at least so long",
        &format!("{under}; bands are 95 % intervals"),
    );
    let mut entries = Vec::new();
    for (index, ((name, _), (stroke, band))) in curves.iter().zip(INKS).enumerate() {
        let sample = if index == 0 {
            Sample::Line(stroke)
        } else {
            Sample::Strokes(stroke)
        };
        entries.push((sample, (*name).to_owned()));
        entries.push((Sample::Band(band), "95 % interval".to_owned()));
    }
    if curves.iter().any(|(_, curve)| curve.cut > 0) {
        entries.push((Sample::Tick(colour::INK), "silences cut short".to_owned()));
    }
    if !chart.named.is_empty() {
        entries.push((Sample::Dashes(colour::INK), "named windows".to_owned()));
    }
    if !chart.swept_ms.is_empty() {
        entries.push((Sample::Line(colour::GREY), "candidate windows".to_owned()));
    }
    let legend_height = legend(&mut canvas, &entries, (84.0, 68.0, 876.0));

    let longest_ms = curves
        .iter()
        .map(|(_, curve)| curve.max_ms)
        .max()
        .unwrap_or(1);
    let windows = chart
        .swept_ms
        .iter()
        .chain(chart.named.iter().map(|(ms, _)| ms));
    let to_s = windows
        .copied()
        .chain([longest_ms])
        .filter(|&ms| ms < Millis::MAX.as_u64())
        .max()? as f64
        / 1_000.0
        * 1.2;
    let x = Scale::log(0.1, to_s.max(1.0), (84.0, 876.0));
    let texts: Vec<(f64, String)> = chart
        .named
        .iter()
        .map(|(ms, label)| (x.at(*ms as f64 / 1_000.0), label.clone()))
        .collect();
    let placed = rows(&texts, (84.0, 876.0));
    let rows_high = placed.iter().map(|(_, row)| row + 1).max().unwrap_or(0) as f64 * 16.0;
    let frame = Frame::of(&mut canvas, 84.0, 64.0 + legend_height + rows_high);
    let mut least = 1.0;
    while least > 0.9 / most as f64 {
        least /= 10.0;
    }
    let y = Scale::log(least, 1.0, frame.up());
    let x_ticks: Vec<(f64, String)> = x
        .ticks(0)
        .into_iter()
        .map(|s| (s, duration(libm::round(s * 1_000.0) as u64)))
        .collect();
    let y_ticks: Vec<(f64, String)> = decades(least)
        .into_iter()
        .rev()
        .map(|share| (share, crate::units::percent(share)))
        .collect();
    frame.axes(
        &mut canvas,
        (&x, &x_ticks, "length of the silence (logarithmic)"),
        (
            &y,
            &y_ticks,
            "share of silences that reach it (logarithmic)",
        ),
    );
    // What is laid over another stays visible: fills first, then their edges, then lines.
    let drawn: Vec<Drawn> = curves
        .iter()
        .map(|(_, curve)| Drawn::new(curve, (&x, &y), least))
        .collect();
    for (of, (_, band)) in drawn.iter().zip(INKS).rev() {
        canvas.area(of.band(), band);
    }
    for &ms in chart.swept_ms {
        let at = x.at(ms as f64 / 1_000.0);
        canvas.line(vec![(at, frame.top), (at, frame.bottom)], colour::GREY, 1.0);
        canvas.mark(format!("window {ms}"), at, frame.top);
    }
    for (of, (stroke, _)) in drawn.iter().zip(INKS).rev() {
        canvas.line(of.upper.clone(), stroke, 0.5);
        canvas.line(of.lower.clone(), stroke, 0.5);
    }
    for (index, (of, (stroke, _))) in drawn.iter().zip(INKS).enumerate().rev() {
        // Told apart without colour: the second is broken.
        if index == 0 {
            canvas.line(of.line.clone(), stroke, 2.0);
        } else {
            canvas.broken(&of.line, stroke, 2.5);
        }
        for &(at, on) in &of.cuts {
            canvas.line(vec![(at, on - 3.5), (at, on + 3.5)], colour::INK, 0.5);
        }
    }
    for ((ms, label), (start, row)) in chart.named.iter().zip(placed) {
        let at = x.at(*ms as f64 / 1_000.0);
        let text_y = frame.top - 10.0 - 16.0 * row as f64;
        canvas.dashed(
            (at, frame.top),
            (at, frame.bottom),
            colour::INK,
            2.0,
            (6.0, 4.0),
        );
        canvas.text((start, text_y), label, Side::Start, SMALL, colour::INK);
        canvas.mark(format!("window {ms}"), at, frame.top);
    }
    Some(canvas)
}

/// 1 and its tenth parts down to `least`.
fn decades(least: f64) -> Vec<f64> {
    let mut found = vec![1.0];
    let mut exponent = -1;
    loop {
        let share: f64 = format!("1e{exponent}").parse().unwrap_or(0.0);
        if share < least * 0.99 {
            return found;
        }
        found.push(share);
        exponent -= 1;
    }
}

/// A curve in pixels.
struct Drawn {
    line: Vec<(f64, f64)>,
    upper: Vec<(f64, f64)>,
    lower: Vec<(f64, f64)>,
    /// Where silences were cut.
    cuts: Vec<(f64, f64)>,
}

impl Drawn {
    fn new(curve: &Curve, (x, y): (&Scale, &Scale), least: f64) -> Self {
        let (mut line, mut upper, mut lower) = (Vec::new(), Vec::new(), Vec::new());
        for reach in &curve.reaches {
            let at = x.at(reach.ms as f64 / 1_000.0);
            if let Some(up) = reach.share.interval.up {
                upper.push((at, y.at(up.max(least))));
                let lo = reach.share.interval.lo.unwrap_or(least);
                lower.push((at, y.at(lo.max(least))));
            }
            if let Some(point) = reach.share.point.filter(|&point| point > 0.0) {
                line.push((at, y.at(point)));
            }
        }
        let cuts = curve
            .cuts
            .iter()
            .filter_map(|&(ms, _)| {
                let at = x.at(ms as f64 / 1_000.0);
                Some((at, height(&line, at)?))
            })
            .collect();
        Self {
            line,
            upper,
            lower,
            cuts,
        }
    }

    /// The outline of the interval.
    fn band(&self) -> Vec<(f64, f64)> {
        let back = self.lower.iter().rev();
        self.upper.iter().chain(back).copied().collect()
    }
}

/// How high a line runs at `x`; its first height before it, its last one after it.
fn height(line: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = line.partition_point(|(at, _)| *at <= x);
    match (after.checked_sub(1), line.get(after)) {
        (Some(before), Some((to_x, to_y))) => {
            let (from_x, from_y) = line[before];
            Some(from_y + (to_y - from_y) * (x - from_x) / (to_x - from_x))
        }
        (Some(last), None) => Some(line[last].1),
        (None, first) => Some(first?.1),
    }
}
