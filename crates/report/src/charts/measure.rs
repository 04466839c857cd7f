//! How wide a text is, and what of it fits.

use std::sync::Once;

use plotters::prelude::*;
use plotters::style::register_font;

/// Size of text in pixels of the screen.
pub(super) const TEXT: f64 = 13.0;
/// Size of labels beside a plot.
pub(super) const SMALL: f64 = 12.0;
/// Plotters takes the height of a line, which is this much more than the size of its letters.
pub(super) const LINE: f64 = 1.24;
/// An SVG is drawn with the reader's font, which may be wider than the one that texts are measured with.
const WIDER: f64 = 1.15;

/// The one font that text is measured and drawn with; an SVG names `sans-serif` and takes the reader's.
pub(super) fn fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in [
            (FontStyle::Normal, notosans::REGULAR_TTF),
            (FontStyle::Bold, notosans::BOLD_TTF),
        ] {
            // The bytes are part of the program; a font that does not read shows as an error when text is drawn.
            let _ = register_font("sans-serif", style, bytes);
        }
    });
}

/// The width of a text in pixels.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    fonts();
    let weight = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let font = FontDesc::new(FontFamily::SansSerif, size * LINE, weight);
    font.box_size(text).map_or_else(
        |_| text.chars().count() as f64 * size * 0.6,
        |(width, _)| f64::from(width) * WIDER,
    )
}

/// The text, cut with an ellipsis where it is wider than `room` pixels; names from logs may be of any length.
pub(super) fn fitted(text: &str, size: f64, bold: bool, room: f64) -> String {
    let text = crate::table::one_line(text);
    if text.chars().count() < 1_000 && width(&text, size, bold) <= room {
        return text;
    }
    let mut short = String::new();
    for c in text.chars().take(1_000) {
        short.push(c);
        if width(&format!("{short}…"), size, bold) > room {
            short.pop();
            break;
        }
    }
    format!("{short}…")
}
