//! Axes: scales from values to pixels, their ticks, and labels that give way to each other.

use plotters::style::RGBColor;

use super::canvas::{Canvas, Side, colour};
use super::measure::{SMALL, TEXT, width};

/// How values lie on an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    log: bool,
    pixels: (f64, f64),
}

impl Scale {
    /// A linear axis over `from..to` at these pixels.
    pub(super) fn linear(from: f64, to: f64, pixels: (f64, f64)) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self {
            from,
            to,
            log: false,
            pixels,
        }
    }

    /// A logarithmic axis; both ends are above 0.
    pub(super) fn log(from: f64, to: f64, pixels: (f64, f64)) -> Self {
        let to = if to > from { to } else { from * 10.0 };
        Self {
            from,
            to,
            log: true,
            pixels,
        }
    }

    /// The pixel of a value; values beyond the axis lie at its end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.from, self.to);
        let share = if self.log {
            libm::log(value / self.from) / libm::log(self.to / self.from)
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Round values on the axis: 1, 2, 5 times powers of ten on a logarithmic one that spans few of them.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        if self.log {
            return self.log_ticks();
        }
        let span = self.to - self.from;
        let mut step = power_of_ten(libm::floor(libm::log10(span / most as f64)) as i32);
        for factor in [1.0, 2.0, 5.0, 10.0, 20.0] {
            if span / (step * factor) <= most as f64 {
                step *= factor;
                break;
            }
        }
        let first = libm::ceil(self.from / step - 1e-9) as i64;
        let last = libm::floor(self.to / step + 1e-9) as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = libm::log10(self.to / self.from);
        let factors: &[f64] = if decades <= 4.2 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let first = libm::floor(libm::log10(self.from) + 1e-9) as i32;
        let last = libm::ceil(libm::log10(self.to) - 1e-9) as i32;
        let edge = 1e-9 * self.from;
        (first..=last)
            .flat_map(|exponent| {
                factors
                    .iter()
                    .map(move |factor| factor * power_of_ten(exponent))
            })
            .filter(|&tick| tick >= self.from - edge && tick <= self.to * (1.0 + 1e-9))
            .collect()
    }
}

/// 10 to a whole power, exact where a float can be.
fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(1.0)
}

/// A plot with its two axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// The usual room around a plot; `top` grows with what is written above it.
    pub(super) fn of(canvas: &mut Canvas, left: f64, top: f64) -> Self {
        let (width, height) = canvas.size();
        let frame = Self {
            left,
            top,
            right: f64::from(width) - 24.0,
            bottom: f64::from(height) - 56.0,
        };
        canvas.set_plot([frame.left, frame.top, frame.right, frame.bottom]);
        frame
    }

    pub(super) fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// From the bottom up.
    pub(super) fn up(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Grid, ticks and names of both axes; ticks ascend. Those whose labels would touch the one before are left out.
    pub(super) fn axes(
        &self,
        canvas: &mut Canvas,
        x: (&Scale, &[(f64, String)], &str),
        y: (&Scale, &[(f64, String)], &str),
    ) {
        self.x_axis(canvas, x.0, x.1, x.2);
        self.y_axis(canvas, y.0, y.1, y.2);
        canvas.outline(
            (self.left, self.top),
            (self.right, self.bottom),
            colour::GREY,
            1.0,
        );
    }

    pub(super) fn x_axis(
        &self,
        canvas: &mut Canvas,
        scale: &Scale,
        ticks: &[(f64, String)],
        name: &str,
    ) {
        let mut free = f64::NEG_INFINITY;
        for (value, text) in ticks {
            let (at, half) = (scale.at(*value), width(text, SMALL, false) / 2.0);
            canvas.line(vec![(at, self.top), (at, self.bottom)], colour::GRID, 1.0);
            if at - half < free {
                continue;
            }
            free = at + half + 6.0;
            canvas.text(
                (at, self.bottom + 14.0),
                text,
                Side::Middle,
                SMALL,
                colour::SOFT,
            );
        }
        let middle = f64::midpoint(self.left, self.right);
        canvas.text(
            (middle, self.bottom + 38.0),
            name,
            Side::Middle,
            TEXT,
            colour::INK,
        );
    }

    pub(super) fn y_axis(
        &self,
        canvas: &mut Canvas,
        scale: &Scale,
        ticks: &[(f64, String)],
        name: &str,
    ) {
        let mut free = f64::INFINITY;
        for (value, text) in ticks {
            let at = scale.at(*value);
            canvas.line(vec![(self.left, at), (self.right, at)], colour::GRID, 1.0);
            if at + SMALL / 2.0 > free {
                continue;
            }
            free = at - SMALL / 2.0 - 3.0;
            canvas.text((self.left - 8.0, at), text, Side::End, SMALL, colour::SOFT);
        }
        let middle = f64::midpoint(self.top, self.bottom);
        canvas.upright((16.0, middle), name, TEXT, colour::INK);
    }
}

/// Texts over points of a line, each in the lowest row in which it touches none: `(left edge, row)` per text.
pub(super) fn rows(texts: &[(f64, String)], (left, right): (f64, f64)) -> Vec<(f64, usize)> {
    let mut ends: Vec<f64> = Vec::new();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by(|&a, &b| texts[a].0.total_cmp(&texts[b].0));
    let mut found = vec![(0.0, 0); texts.len()];
    for index in order {
        let (at, text) = &texts[index];
        let length = width(text, SMALL, false);
        let start = (at - length / 2.0).min(right - length).max(left);
        let row = ends
            .iter()
            .position(|&end| end + 8.0 <= start)
            .unwrap_or(ends.len());
        if row == ends.len() {
            ends.push(0.0);
        }
        ends[row] = start + length;
        found[index] = (start, row);
    }
    found
}

/// What a legend entry is drawn with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    Line(RGBColor),
    Strokes(RGBColor),
    Dashes(RGBColor),
    Band(RGBColor),
    Dot(RGBColor),
    Hollow(RGBColor),
    Ring(RGBColor),
    Frame(RGBColor),
    Diamond(RGBColor),
    Triangle(RGBColor),
    Hatch(RGBColor),
    Tick(RGBColor),
    Bar(RGBColor),
}

/// A legend in one line above a plot, broken where it must; returns the height that it takes.
pub(super) fn legend(
    canvas: &mut Canvas,
    entries: &[(Sample, String)],
    (left, top, right): (f64, f64, f64),
) -> f64 {
    let (mut x, mut y) = (left, top);
    for (sample, text) in entries {
        let text = super::measure::fitted(text, SMALL, false, right - left - 30.0);
        let length = 30.0 + width(&text, SMALL, false);
        if x > left && x + length > right {
            x = left;
            y += 19.0;
        }
        let (from, to) = ((x, y), (x + 22.0, y));
        let middle = (x + 11.0, y);
        match *sample {
            Sample::Line(colour) => canvas.line(vec![from, to], colour, 2.0),
            Sample::Strokes(colour) => canvas.broken(&[from, to], colour, 2.5),
            Sample::Dashes(colour) => canvas.dashed(from, to, colour, 2.0, (6.0, 4.0)),
            Sample::Band(fill) => {
                canvas.filled((x, y - 5.0), (x + 22.0, y + 5.0), fill);
                canvas.outline((x, y - 5.0), (x + 22.0, y + 5.0), colour::GREY, 1.0);
            }
            Sample::Dot(colour) => canvas.dot(middle, 4.0, colour, true),
            Sample::Hollow(colour) => canvas.dot(middle, 3.5, colour, false),
            Sample::Ring(colour) => canvas.dot(middle, 6.0, colour, false),
            Sample::Frame(colour) => {
                canvas.outline((x + 1.0, y - 6.0), (x + 21.0, y + 6.0), colour, 3.0);
            }
            Sample::Diamond(colour) => canvas.diamond(middle, 6.0, colour),
            Sample::Triangle(colour) => canvas.triangle(middle, 6.0, colour),
            Sample::Hatch(colour) => {
                canvas.hatched((x, y - 6.0), (x + 22.0, y + 6.0), colour, 5.0);
                canvas.outline((x, y - 6.0), (x + 22.0, y + 6.0), colour, 1.0);
            }
            Sample::Bar(colour) => {
                canvas.line(vec![(x + 11.0, y - 7.0), (x + 11.0, y + 7.0)], colour, 1.5);
                canvas.line(vec![(x + 8.0, y), (x + 14.0, y)], colour, 3.0);
            }
            Sample::Tick(colour) => {
                canvas.line(vec![(x + 11.0, y - 5.0), (x + 11.0, y + 5.0)], colour, 1.0);
            }
        }
        canvas.text((x + 28.0, y), &text, Side::Start, SMALL, colour::INK);
        x += length + 16.0;
    }
    y + 19.0 - top
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let linear = Scale::linear(0.0, 7.1, (0.0, 100.0));
        assert_eq!(linear.ticks(8), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let log = Scale::log(0.1, 100.0, (0.0, 300.0));
        assert_eq!(
            log.ticks(0),
            [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
        );
        assert!((log.at(1.0) - 100.0).abs() < 1e-9 && (log.at(1e9) - 300.0).abs() < 1e-9);
    }

    #[test]
    fn texts_over_neighbouring_points_take_rows_of_their_own() {
        let texts: Vec<(f64, String)> = [100.0, 104.0, 400.0, 5.0]
            .into_iter()
            .map(|at| (at, "300 s candidate".to_owned()))
            .collect();
        let found = rows(&texts, (0.0, 500.0));
        assert_eq!(
            found.iter().map(|(_, row)| *row).collect::<Vec<_>>(),
            [1, 2, 0, 0]
        );
        assert!(found.iter().all(|(start, _)| *start >= 0.0));
    }
}
