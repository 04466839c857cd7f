//! What a statistical function refuses.

/// Why a statistical function gave no answer. An estimate that the data cannot carry is not an error: it is a
/// [`Status`](super::Status) with a [`Reason`](super::Reason).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Two sequences that must be parallel are not.
    #[error("{what} have {left} and {right} entries, expected the same number")]
    Lengths {
        /// The sequences.
        what: &'static str,
        /// Entries of the first.
        left: usize,
        /// Entries of the second.
        right: usize,
    },
    /// A confidence level of 0 or 1.
    #[error("confidence level `{0}` must lie strictly between 0 and 1, for example 0.95")]
    Level(String),
    /// An iteration that did not settle within its cap.
    #[error("{function}({arguments}) did not converge within {iterations} iterations")]
    NotConverged {
        /// The function.
        function: &'static str,
        /// Its arguments as text.
        arguments: String,
        /// The cap that was reached.
        iterations: usize,
    },
    /// A text or ratio that is no probability.
    #[error(
        "`{0}` is not a probability, expected a decimal between 0 and 1 with at most 18 digits, for example 0.999"
    )]
    Probability(String),
    /// An argument outside a function's domain.
    #[error("{what} is {value}, expected {expected}")]
    Range {
        /// The argument.
        what: &'static str,
        /// Its value as text.
        value: String,
        /// The domain.
        expected: &'static str,
    },
}
