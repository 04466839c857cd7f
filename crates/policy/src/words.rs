//! How a harness calls the ways a run can end: an outcome word and a code, a column of the preset.

use crate::{Cause, Outcome};

/// An outcome word, and the code that goes with it if a clock or a named failure ended the run.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Word {
    /// The outcome: `timed_out`, `failed`, `truncated`, ….
    pub outcome: &'static str,
    /// The code, where there is one.
    pub code: Option<&'static str>,
}

impl Word {
    /// That outcome with that code.
    pub const fn coded(outcome: &'static str, code: &'static str) -> Self {
        Self {
            outcome,
            code: Some(code),
        }
    }

    /// That outcome without a code.
    pub const fn plain(outcome: &'static str) -> Self {
        Self {
            outcome,
            code: None,
        }
    }
}

/// The words of one harness.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Words {
    /// Of `idle_timeout`.
    pub idle: Word,
    /// Of `first_timeout`.
    pub first: Word,
    /// Of `ceiling_timeout`.
    pub ceiling: Word,
    /// Of `startup_timeout`.
    pub startup: Word,
    /// Of `tool_timeout`.
    pub tool: Word,
    /// Of `compaction_timeout`.
    pub compaction: Word,
    /// Of `backoff_timeout`.
    pub backoff: Word,
    /// Of `total_timeout`.
    pub total: Word,
    /// Of `turn_limit`.
    pub turns: Word,
    /// Of `caller_deadline`.
    pub deadline: Word,
    /// Of `cleanup_forced`: the result had been seen.
    pub cleanup: Word,
    /// Of a run that was aborted.
    pub aborted: Word,
}

impl Words {
    /// The product's own words: the causes are the codes.
    pub const OWN: Self = Self {
        idle: Word::coded("timed_out", Cause::IdleTimeout.name()),
        first: Word::coded("timed_out", Cause::FirstTimeout.name()),
        ceiling: Word::coded("timed_out", Cause::CeilingTimeout.name()),
        startup: Word::coded("timed_out", Cause::StartupTimeout.name()),
        tool: Word::coded("timed_out", Cause::ToolTimeout.name()),
        compaction: Word::coded("timed_out", Cause::CompactionTimeout.name()),
        backoff: Word::coded("timed_out", Cause::BackoffTimeout.name()),
        total: Word::coded("timed_out", Cause::TotalTimeout.name()),
        turns: Word::plain("truncated"),
        deadline: Word::coded("timed_out", Cause::CallerDeadline.name()),
        cleanup: Word::coded("completed", Cause::CleanupForced.name()),
        aborted: Word::plain("aborted"),
    };

    /// The word of a firing for that cause, or of a run that ended by itself in that way.
    pub const fn of(&self, cause: Cause, outcome: Option<Outcome>) -> Word {
        match cause {
            Cause::BackoffTimeout => self.backoff,
            Cause::CallerDeadline => self.deadline,
            Cause::CeilingTimeout => self.ceiling,
            Cause::CleanupForced => self.cleanup,
            Cause::CompactionTimeout => self.compaction,
            Cause::Ended => match outcome {
                Some(Outcome::Aborted) => self.aborted,
                Some(Outcome::Failed) => Word::plain("failed"),
                Some(Outcome::Completed) | None => Word::plain("completed"),
            },
            Cause::FirstTimeout => self.first,
            Cause::IdleTimeout => self.idle,
            Cause::Running => Word::plain("running"),
            Cause::StartupTimeout => self.startup,
            Cause::ToolTimeout => self.tool,
            Cause::TotalTimeout => self.total,
            Cause::TurnLimit => self.turns,
        }
    }
}

impl Default for &'static Words {
    fn default() -> Self {
        &Words::OWN
    }
}
