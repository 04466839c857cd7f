//! How a command's result becomes the process's exit code.

use std::process::{ExitCode, Termination};

/// What a command found.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ExitStatus {
    /// Done, nothing to object to.
    Success = 0,
    /// A finding: a gate or a check failed, a vector mismatched.
    Finding = 1,
    /// Wrong usage, unreadable input, failed output.
    Error = 2,
    /// The data cannot decide.
    Inconclusive = 3,
    /// The program contradicts itself: a bug.
    Bug = 101,
}

impl Termination for ExitStatus {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}
