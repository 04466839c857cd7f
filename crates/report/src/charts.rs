//! Charts, as SVG text and PNG bytes; each stands beside a table with the same numbers.
//!
//! A chart is a list of shapes in pixels ([`Canvas`]), drawn by plotters to either format, so that both show the same and
//! a test can see whether a label is cut off or lies on another.

mod canvas;
mod frame;
mod front;
mod hang_rate;
mod heat;
mod measure;
mod render;
mod settlement;
mod spent;
mod strata;
mod survival;
pub mod text;
mod timeline;
#[cfg(test)]
mod vision;

pub use canvas::{Canvas, Mark};
pub use front::front;
pub use hang_rate::hang_rate;
pub use heat::heat;
pub use settlement::settlement;
pub use spent::spent;
pub(crate) use strata::by_limit;
pub use strata::strata;
pub use survival::{SurvivalChart, survival};
pub use timeline::timeline;

use thiserror::Error;

/// A chart could not be drawn.
#[derive(Debug, Error)]
#[error("cannot draw the chart: {0}")]
pub struct ChartError(String);

impl ChartError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}
