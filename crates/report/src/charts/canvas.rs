//! What a chart consists of: shapes in pixels, told apart by lightness as well as by hue, before they are drawn.

use plotters::style::RGBColor;

use super::measure::{SMALL, fitted, width};

/// Colours of all charts. The HTML page gives each a second value for its dark theme.
pub(super) mod colour {
    use plotters::style::RGBColor;

    pub(in crate::charts) const PAPER: RGBColor = RGBColor(255, 255, 255);
    pub(in crate::charts) const INK: RGBColor = RGBColor(27, 27, 27);
    pub(in crate::charts) const SOFT: RGBColor = RGBColor(95, 95, 95);
    pub(in crate::charts) const GRID: RGBColor = RGBColor(226, 226, 226);
    /// Dark in grey, so that it stands out from orange in print and for every colour vision.
    pub(in crate::charts) const BLUE: RGBColor = RGBColor(21, 84, 150);
    pub(in crate::charts) const BAND: RGBColor = RGBColor(199, 219, 240);
    /// Light in grey.
    pub(in crate::charts) const ORANGE: RGBColor = RGBColor(222, 125, 0);
    pub(in crate::charts) const PEACH: RGBColor = RGBColor(250, 224, 190);
    pub(in crate::charts) const GREY: RGBColor = RGBColor(150, 150, 150);
}

/// Size of a title in pixels.
const TITLE: f64 = 16.0;

/// Where a text stands to its point, across.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// One shape, in pixels from the upper left corner.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Line {
        points: Vec<(f64, f64)>,
        colour: RGBColor,
        width: f64,
    },
    Area {
        points: Vec<(f64, f64)>,
        colour: RGBColor,
    },
    Box {
        from: (f64, f64),
        to: (f64, f64),
        colour: RGBColor,
    },
    Dot {
        at: (f64, f64),
        radius: f64,
        colour: RGBColor,
        filled: bool,
    },
    Text(Label),
}

/// A text: its middle line stands at `at`.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) at: (f64, f64),
    pub(super) text: String,
    pub(super) size: f64,
    pub(super) colour: RGBColor,
    pub(super) side: Side,
    pub(super) bold: bool,
    pub(super) upright: bool,
}

impl Label {
    /// The rectangle that it covers: left, top, right, bottom.
    fn bounds(&self) -> (f64, f64, f64, f64) {
        let (x, y) = self.at;
        let (length, half) = (width(&self.text, self.size, self.bold), self.size / 2.0);
        if self.upright {
            return (x - half, y - length / 2.0, x + half, y + length / 2.0);
        }
        let left = match self.side {
            Side::Start => x,
            Side::Middle => x - length / 2.0,
            Side::End => x - length,
        };
        (left, y - half, left + length, y + half)
    }
}

/// A named place on a chart, where a page can put a mark.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Mark {
    /// What stands there: `cell 3`, `window 300000`, `wait 600000`.
    pub key: String,
    /// Pixels from the left.
    pub x: f64,
    /// Pixels from the top.
    pub y: f64,
}

/// A chart before it is drawn.
#[derive(Clone, Debug)]
pub struct Canvas {
    pub(super) size: (u32, u32),
    pub(super) title: String,
    pub(super) description: String,
    pub(super) shapes: Vec<Shape>,
    marks: Vec<Mark>,
    /// The plot itself: left, top, right, bottom.
    plot: [f64; 4],
}

impl Canvas {
    /// An empty chart with its title and, under it, what it shows and on how many samples.
    pub(super) fn new(size: (u32, u32), title: &str, under: &str) -> Self {
        let mut canvas = Self {
            size,
            title: title.to_owned(),
            description: under.to_owned(),
            shapes: Vec::new(),
            marks: Vec::new(),
            plot: [0.0, 0.0, f64::from(size.0), f64::from(size.1)],
        };
        let left = 18.0;
        let room = f64::from(size.0) - 2.0 * left;
        canvas.shapes.push(Shape::Text(Label {
            at: (left, 22.0),
            text: fitted(title, TITLE, true, room),
            size: TITLE,
            colour: colour::INK,
            side: Side::Start,
            bold: true,
            upright: false,
        }));
        canvas.text(
            (left, 44.0),
            &fitted(under, SMALL, false, room),
            Side::Start,
            SMALL,
            colour::SOFT,
        );
        canvas
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        self.size
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it shows, on how many samples.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its named places.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The plot itself: left, top, right, bottom, in pixels.
    pub fn plot(&self) -> [f64; 4] {
        self.plot
    }

    pub(super) fn set_plot(&mut self, plot: [f64; 4]) {
        self.plot = plot;
    }

    pub(super) fn mark(&mut self, key: String, x: f64, y: f64) {
        let whole = |v: f64| libm::round(v * 10.0) / 10.0;
        self.marks.push(Mark {
            key,
            x: whole(x),
            y: whole(y),
        });
    }

    pub(super) fn line(&mut self, points: Vec<(f64, f64)>, colour: RGBColor, width: f64) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line {
                points,
                colour,
                width,
            });
        }
    }

    /// A line of long strokes, along whatever way it takes.
    pub(super) fn broken(&mut self, points: &[(f64, f64)], colour: RGBColor, width: f64) {
        const STROKE: f64 = 9.0;
        const GAP: f64 = 4.0;
        let Some(&first) = points.first() else {
            return;
        };
        let (mut stroke, mut left) = (vec![first], STROKE);
        let mut drawn = true;
        for pair in points.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            loop {
                let (dx, dy) = (to.0 - from.0, to.1 - from.1);
                let length = libm::sqrt(dx * dx + dy * dy);
                if length < left {
                    left -= length;
                    stroke.push(to);
                    break;
                }
                let share = left / length;
                from = (from.0 + dx * share, from.1 + dy * share);
                stroke.push(from);
                let done = std::mem::replace(&mut stroke, vec![from]);
                if drawn {
                    self.line(done, colour, width);
                }
                drawn = !drawn;
                left = if drawn { STROKE } else { GAP };
            }
        }
        if drawn && left < STROKE {
            self.line(stroke, colour, width);
        }
    }

    /// A straight line of dashes: `on` pixels drawn, `off` left out.
    pub(super) fn dashed(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        colour: RGBColor,
        width: f64,
        (on, off): (f64, f64),
    ) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = libm::sqrt(dx * dx + dy * dy);
        let at = |d: f64| {
            let share = (d / length).min(1.0);
            (from.0 + dx * share, from.1 + dy * share)
        };
        let mut done = 0.0;
        while done < length {
            self.line(vec![at(done), at(done + on)], colour, width);
            done += on + off;
        }
    }

    pub(super) fn area(&mut self, points: Vec<(f64, f64)>, colour: RGBColor) {
        if points.len() > 2 {
            self.shapes.push(Shape::Area { points, colour });
        }
    }

    pub(super) fn filled(&mut self, from: (f64, f64), to: (f64, f64), colour: RGBColor) {
        self.shapes.push(Shape::Box { from, to, colour });
    }

    pub(super) fn outline(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        colour: RGBColor,
        width: f64,
    ) {
        self.line(
            vec![from, (to.0, from.1), to, (from.0, to.1), from],
            colour,
            width,
        );
    }

    /// Slanted lines over a rectangle, `step` pixels apart.
    pub(super) fn hatched(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        colour: RGBColor,
        step: f64,
    ) {
        let (width, height) = (to.0 - from.0, to.1 - from.1);
        let mut offset = step;
        while offset < width + height {
            // From the left or bottom edge to the top or right edge, at 45 degrees.
            let start = if offset <= height {
                (from.0, from.1 + offset)
            } else {
                (from.0 + offset - height, to.1)
            };
            let end = if offset <= width {
                (from.0 + offset, from.1)
            } else {
                (to.0, from.1 + offset - width)
            };
            self.line(vec![start, end], colour, 1.0);
            offset += step;
        }
    }

    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, colour: RGBColor, filled: bool) {
        self.shapes.push(Shape::Dot {
            at,
            radius,
            colour,
            filled,
        });
    }

    /// A diamond, told from a dot by its shape.
    pub(super) fn diamond(&mut self, (x, y): (f64, f64), radius: f64, colour: RGBColor) {
        self.area(
            vec![
                (x, y - radius),
                (x + radius, y),
                (x, y + radius),
                (x - radius, y),
            ],
            colour,
        );
    }

    pub(super) fn triangle(&mut self, (x, y): (f64, f64), radius: f64, colour: RGBColor) {
        self.area(
            vec![
                (x, y - radius),
                (x + radius, y + radius * 0.8),
                (x - radius, y + radius * 0.8),
            ],
            colour,
        );
    }

    pub(super) fn text(
        &mut self,
        at: (f64, f64),
        text: &str,
        side: Side,
        size: f64,
        colour: RGBColor,
    ) {
        self.shapes.push(Shape::Text(Label {
            at,
            text: text.to_owned(),
            size,
            colour,
            side,
            bold: false,
            upright: false,
        }));
    }

    /// Text that reads upwards, centred at its point.
    pub(super) fn upright(&mut self, at: (f64, f64), text: &str, size: f64, colour: RGBColor) {
        self.shapes.push(Shape::Text(Label {
            at,
            text: text.to_owned(),
            size,
            colour,
            side: Side::Middle,
            bold: false,
            upright: true,
        }));
    }

    fn labels(&self) -> impl Iterator<Item = &Label> {
        self.shapes.iter().filter_map(|shape| match shape {
            Shape::Text(label) => Some(label),
            _ => None,
        })
    }

    /// What is wrong with its labels: cut off by the edge, or one on another. Empty for a chart that can be read.
    pub fn faults(&self) -> Vec<String> {
        let (width, height) = (f64::from(self.size.0), f64::from(self.size.1));
        let labels: Vec<_> = self.labels().map(|label| (label, label.bounds())).collect();
        let mut faults = Vec::new();
        for (index, (label, (left, top, right, bottom))) in labels.iter().enumerate() {
            if *left < 0.0 || *top < 0.0 || *right > width || *bottom > height {
                faults.push(format!("cut off: {}", label.text));
            }
            for (other, (l, t, r, b)) in &labels[..index] {
                if left < r && l < right && top < b && t < bottom {
                    faults.push(format!("{} lies on {}", label.text, other.text));
                }
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::TEXT;
    use super::*;

    #[test]
    fn labels_that_cannot_be_read_are_found() {
        let mut canvas = Canvas::new((300, 200), "title", "n = 3 runs");
        assert_eq!(canvas.faults(), Vec::<String>::new());
        canvas.text(
            (290.0, 100.0),
            "beyond the edge",
            Side::Start,
            TEXT,
            colour::INK,
        );
        canvas.text((20.0, 120.0), "one", Side::Start, TEXT, colour::INK);
        canvas.text((22.0, 124.0), "another", Side::Start, TEXT, colour::INK);
        assert_eq!(
            canvas.faults(),
            ["cut off: beyond the edge", "another lies on one"]
        );
    }

    /// Strokes and gaps go on around a corner, and end where the line ends.
    #[test]
    fn a_broken_line_follows_its_way() {
        let mut canvas = Canvas::new((100, 100), "title", "n = 3 runs");
        let before = canvas.shapes.len();
        canvas.broken(&[(0.0, 0.0), (6.0, 0.0), (6.0, 20.0)], colour::INK, 1.0);
        let strokes: Vec<&[(f64, f64)]> = canvas.shapes[before..]
            .iter()
            .map(|shape| match shape {
                Shape::Line { points, .. } => points.as_slice(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            strokes,
            [
                &[(0.0, 0.0), (6.0, 0.0), (6.0, 3.0)][..],
                &[(6.0, 7.0), (6.0, 16.0)],
            ]
        );
    }

    #[test]
    fn long_names_are_cut_to_the_room_there_is() {
        let cut = fitted(&"x".repeat(10_000), TEXT, false, 100.0);
        assert!(cut.ends_with('…') && width(&cut, TEXT, false) <= 100.0);
        assert_eq!(fitted("short", TEXT, false, 100.0), "short");
    }

    #[test]
    fn both_formats_draw_the_same_chart() {
        let mut canvas = Canvas::new((200, 100), "a < b & c", "n = 3 \"runs\"");
        canvas.hatched((20.0, 60.0), (80.0, 90.0), colour::GREY, 6.0);
        let svg = canvas.to_svg().unwrap_or_default();
        assert!(svg.contains("<title>a &lt; b &amp; c</title>"), "{svg}");
        let png = canvas.to_png().unwrap_or_default();
        assert_eq!(png.get(..8), Some(&b"\x89PNG\r\n\x1a\n"[..]));
    }
}
