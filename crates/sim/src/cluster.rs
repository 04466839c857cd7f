//! Runs that may share their fate: what is taken as independent of each other.

use std::sync::Arc;

use crate::run::Run;
use crate::stats::choice::fnv1a;
use crate::sweep::day;

/// What is taken as independent.
///
/// Verdicts on rates take the run; where kills are seen to come together on days or in sessions (a design effect
/// above [`KEYS_MATTER`](crate::stats::verdict::KEYS_MATTER)), those replace it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Cluster {
    /// Calendar days of runs' starts, where kills are seen to come together on them.
    #[default]
    Day,
    /// The run.
    Run,
    /// The session, likewise.
    Session,
}

impl Cluster {
    /// Every unit.
    pub const ALL: [Self; 3] = [Self::Day, Self::Run, Self::Session];

    /// The unit's name in rules, options and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Run => "run",
            Self::Session => "session",
        }
    }

    /// The key of the unit that `run` is in: its day since 1970, or the hash of its session's key. Where runs are
    /// independent they are not told apart: all have the same key, over which no design effect exists.
    ///
    /// Two sessions of one hash would be taken as one, which widens limits.
    pub fn unit(self, run: &Run) -> i64 {
        match self {
            Self::Day => day(run),
            Self::Run => 0,
            Self::Session => fnv1a(session_key(run).as_bytes()).cast_signed(),
        }
    }
}

/// The key of a run's session, or its own name where it has none.
pub fn session_key(run: &Run) -> &Arc<str> {
    if run.session.is_empty() {
        &run.name
    } else {
        &run.session
    }
}
