//! How a watched run ended, and the exit status of `watch` for it.

use policysim_policy::Cause;

use super::child::Exit;

/// The policy killed the command and every process is gone.
pub(super) const KILLED: u8 = 124;
/// The policy killed the command and some process survived.
pub(super) const SURVIVED: u8 = 123;
/// `watch` itself failed.
pub(super) const WATCH_FAILED: u8 = super::WATCH_FAILED;
/// The command exists and cannot be run.
pub(super) const NOT_RUNNABLE: u8 = 126;
/// The command is not found.
pub(super) const NOT_FOUND: u8 = 127;

/// How a watched run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// The command ended by itself, or by somebody else's signal.
    Ended(Exit),
    /// The policy ended it.
    Killed {
        /// By which limit.
        cause: Cause,
        /// How it ended then; none when it survived.
        exit: Option<Exit>,
        /// Whether its result, seen before the clean-up was forced, was a success.
        succeeded: bool,
        /// Whether some process survived.
        survived: bool,
    },
    /// A signal to `watch` ended it.
    Interrupted {
        /// The signal.
        signal: u8,
        /// How it ended then; none when it survived.
        exit: Option<Exit>,
    },
    /// It could not be started.
    NotStarted {
        /// 126 or 127.
        status: u8,
    },
}

impl Outcome {
    /// The outcome's name in the record.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ended(Exit::Code(_)) => "exited",
            Self::Ended(Exit::Signal(_)) => "signalled",
            Self::Ended(Exit::Unknown) => "unknown",
            Self::Killed { cause, .. } => cause.name(),
            Self::Interrupted { .. } => "interrupted",
            Self::NotStarted { .. } => "not_started",
        }
    }

    /// How the command ended, as far as it did.
    pub(super) const fn exit(self) -> Option<Exit> {
        match self {
            Self::Ended(exit) => Some(exit),
            Self::Killed { exit, .. } | Self::Interrupted { exit, .. } => exit,
            Self::NotStarted { .. } => None,
        }
    }

    /// The exit status of `watch`.
    pub(super) const fn status(self, preserve: bool) -> u8 {
        match self {
            Self::Ended(exit) => exit.status(),
            Self::NotStarted { status } => status,
            Self::Interrupted { signal, .. } => 128_u8.saturating_add(signal),
            Self::Killed {
                exit: Some(exit), ..
            } if preserve => exit.status(),
            Self::Killed { survived: true, .. } => SURVIVED,
            Self::Killed {
                cause: Cause::CleanupForced,
                succeeded,
                ..
            } => !succeeded as u8,
            Self::Killed { .. } => KILLED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the README.
    #[test]
    fn every_outcome_has_its_status() {
        let killed = |cause, succeeded, survived| Outcome::Killed {
            cause,
            exit: Some(Exit::Signal(15)),
            succeeded,
            survived,
        };
        for (outcome, status, preserved) in [
            (Outcome::Ended(Exit::Code(0)), 0, 0),
            (Outcome::Ended(Exit::Code(124)), 124, 124),
            (Outcome::Ended(Exit::Signal(9)), 137, 137),
            (killed(Cause::IdleTimeout, false, false), 124, 143),
            (killed(Cause::TotalTimeout, false, true), 123, 143),
            (killed(Cause::CleanupForced, true, false), 0, 143),
            (killed(Cause::CleanupForced, false, false), 1, 143),
            (
                Outcome::Interrupted {
                    signal: 2,
                    exit: None,
                },
                130,
                130,
            ),
            (Outcome::NotStarted { status: 127 }, 127, 127),
        ] {
            assert_eq!(outcome.status(false), status, "{outcome:?}");
            assert_eq!(outcome.status(true), preserved, "{outcome:?}");
        }
    }
}
