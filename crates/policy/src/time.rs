//! Milliseconds, the only unit of time in a run.

use core::fmt;

/// A count of whole milliseconds: an instant since the run's start, or a span.
///
/// Arithmetic saturates, so a budget of "forever" added to any instant stays "forever" and never wraps.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Millis(u64);

impl Millis {
    /// The run's start, or an empty span.
    pub const ZERO: Self = Self(0);
    /// Later than anything that can be recorded.
    pub const MAX: Self = Self(u64::MAX);

    /// `ms` milliseconds.
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1000))
    }

    /// The number of milliseconds.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// This instant moved later by `span`, at most [`Millis::MAX`].
    #[must_use]
    pub const fn plus(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to this instant; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Millis {
    /// Plain milliseconds with their unit: `1500ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}
