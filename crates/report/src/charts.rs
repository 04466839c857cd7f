//! Charts, as SVG text; each stands beside a table with the same numbers.

mod front;

pub use front::front;

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
