//! The two renderings of a chart.

use plotters::prelude::*;
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ChartError;
use super::canvas::{Canvas, Label, Shape, Side, colour};
use super::measure::{LINE, fonts};

/// A PNG has this many pixels for one of the chart.
const PNG_SCALE: f64 = 2.0;
/// The bitmap's letters stand that much of their size above the middle that an SVG gives them.
const PNG_SINK: f64 = 0.17;

impl Canvas {
    /// The chart as SVG, with its title and description for those who do not see it.
    ///
    /// # Errors
    /// When the drawing backend refuses.
    pub fn to_svg(&self) -> Result<String, ChartError> {
        fonts();
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            self.draw(&root, 1.0, 0.0)?;
            root.present().map_err(ChartError::new)?;
        }
        let head = format!(
            "<svg role=\"img\" aria-label=\"{}\" ",
            crate::html::escaped(&format!("{}. {}", self.title, self.description))
        );
        let body = format!(
            "xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n<desc>{}</desc>",
            crate::html::escaped(&self.title),
            crate::html::escaped(&self.description)
        );
        Ok(svg.replacen("<svg ", &head, 1).replacen(
            "xmlns=\"http://www.w3.org/2000/svg\">",
            &body,
            1,
        ))
    }

    /// The chart as PNG, two pixels for one.
    ///
    /// # Errors
    /// When the drawing backend or the encoder refuses.
    pub fn to_png(&self) -> Result<Vec<u8>, ChartError> {
        fonts();
        let whole = |side: u32| (f64::from(side) * PNG_SCALE) as u32;
        let (width, height) = (whole(self.size.0), whole(self.size.1));
        let mut pixels = vec![255; width as usize * height as usize * 3];
        {
            let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
            self.draw(&root, PNG_SCALE, PNG_SINK)?;
            root.present().map_err(ChartError::new)?;
        }
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder.set_filter(png::FilterType::Up);
        let mut writer = encoder.write_header().map_err(ChartError::new)?;
        writer.write_image_data(&pixels).map_err(ChartError::new)?;
        writer.finish().map_err(ChartError::new)?;
        Ok(png)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        root: &DrawingArea<DB, plotters::coord::Shift>,
        scale: f64,
        sink: f64,
    ) -> Result<(), ChartError> {
        let pixel = |v: f64| libm::round(v * scale) as i32;
        let point = |(x, y): (f64, f64)| (pixel(x), pixel(y));
        let all = |points: &[(f64, f64)]| points.iter().map(|&p| point(p)).collect::<Vec<_>>();
        root.fill(&colour::PAPER).map_err(ChartError::new)?;
        for shape in &self.shapes {
            match shape {
                Shape::Line {
                    points,
                    colour,
                    width,
                } => {
                    let style = colour.stroke_width(pixel(*width).max(1).unsigned_abs());
                    root.draw(&PathElement::new(all(points), style))
                }
                Shape::Area { points, colour } => {
                    root.draw(&Polygon::new(all(points), colour.filled()))
                }
                Shape::Box { from, to, colour } => {
                    root.draw(&Rectangle::new([point(*from), point(*to)], colour.filled()))
                }
                Shape::Dot {
                    at,
                    radius,
                    colour,
                    filled,
                } => {
                    let style = if *filled {
                        colour.filled()
                    } else {
                        colour.stroke_width(pixel(1.5).unsigned_abs())
                    };
                    root.draw(&Circle::new(point(*at), pixel(*radius), style))
                }
                Shape::Text(label) => {
                    let (x, y) = label.at;
                    let y = if label.upright {
                        y
                    } else {
                        y + sink * label.size
                    };
                    root.draw(&Text::new(
                        label.text.as_str(),
                        point((x, y)),
                        style(label, scale),
                    ))
                }
            }
            .map_err(ChartError::new)?;
        }
        Ok(())
    }
}

fn style(label: &Label, scale: f64) -> TextStyle<'_> {
    let weight = if label.bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let mut font = FontDesc::new(FontFamily::SansSerif, label.size * LINE * scale, weight);
    if label.upright {
        font = font.transform(FontTransform::Rotate270);
    }
    let across = match label.side {
        Side::Start => HPos::Left,
        Side::Middle => HPos::Center,
        Side::End => HPos::Right,
    };
    TextStyle::from(font)
        .color(&label.colour)
        .pos(Pos::new(across, VPos::Center))
}
