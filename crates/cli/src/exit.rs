//! How a command's result becomes the process's exit code.

use std::process::{ExitCode, Termination};

/// What a command found.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ExitStatus {
    /// Done, nothing to object to.
    Success,
    /// A finding: a gate or a check failed, a vector mismatched.
    Finding,
    /// Wrong usage, unreadable input, failed output.
    Error,
    /// The data cannot decide.
    Inconclusive,
    /// The program contradicts itself: a bug.
    Bug,
    /// The status of a command that was run for the user, or one of those that stand for what became of it.
    OfCommand(u8),
}

impl ExitStatus {
    /// The process's exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Finding => 1,
            Self::Error => 2,
            Self::Inconclusive => 3,
            Self::Bug => 101,
            Self::OfCommand(status) => status,
        }
    }
}

impl Termination for ExitStatus {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
