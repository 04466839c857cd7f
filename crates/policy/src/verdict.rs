//! What a policy does to a run: the verdict, with what led to it.

use alloc::vec::Vec;
use core::fmt;

use crate::{Kind, Millis};

/// What ended a run, or that nothing did.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// All backoffs of a segment together used up their budget.
    BackoffTimeout,
    /// The caller's hard deadline passed.
    CallerDeadline,
    /// No progress for the ceiling.
    CeilingTimeout,
    /// The result was seen and the run did not end.
    CleanupForced,
    /// A compaction reached its limit.
    CompactionTimeout,
    /// The run ended by itself first.
    Ended,
    /// Silence of the first window before the phase's first progress.
    FirstTimeout,
    /// Silence of the idle window.
    IdleTimeout,
    /// Neither the run nor the policy ended it within the record.
    Running,
    /// Accepted, and nothing started.
    StartupTimeout,
    /// A tool call reached its limit.
    ToolTimeout,
    /// The budget of the segment or run is used up.
    TotalTimeout,
    /// The turn cap.
    TurnLimit,
}

impl Cause {
    /// Every cause, in declaration order: `ALL[c as usize] == c`.
    pub const ALL: [Self; 13] = [
        Self::BackoffTimeout,
        Self::CallerDeadline,
        Self::CeilingTimeout,
        Self::CleanupForced,
        Self::CompactionTimeout,
        Self::Ended,
        Self::FirstTimeout,
        Self::IdleTimeout,
        Self::Running,
        Self::StartupTimeout,
        Self::ToolTimeout,
        Self::TotalTimeout,
        Self::TurnLimit,
    ];

    /// The cause's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BackoffTimeout => "backoff_timeout",
            Self::CallerDeadline => "caller_deadline",
            Self::CeilingTimeout => "ceiling_timeout",
            Self::CleanupForced => "cleanup_forced",
            Self::CompactionTimeout => "compaction_timeout",
            Self::Ended => "ended",
            Self::FirstTimeout => "first_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::Running => "running",
            Self::StartupTimeout => "startup_timeout",
            Self::ToolTimeout => "tool_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::TurnLimit => "turn_limit",
        }
    }

    /// The cause of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// Whether the policy ended the run: neither the run itself nor the end of the record.
    pub const fn is_firing(self) -> bool {
        !matches!(self, Self::Ended | Self::Running)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a run was, as far as its events tell.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// No segment is open.
    BetweenSegments,
    /// Nothing but its spawn was seen.
    NotStarted,
    /// Control is with the model and nothing has come yet.
    BeforeOutput,
    /// The model has begun to answer, or has answered.
    Streaming,
    /// A tool call runs.
    InTool,
    /// A child is waited for.
    InChild,
    /// The context is being compacted.
    InCompaction,
    /// A provider backoff is waited out.
    InBackoff,
    /// A human is waited for.
    WaitingForHuman,
}

impl Phase {
    /// The phase's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BetweenSegments => "between_segments",
            Self::NotStarted => "not_started",
            Self::BeforeOutput => "before_output",
            Self::Streaming => "streaming",
            Self::InTool => "in_tool",
            Self::InChild => "in_child",
            Self::InCompaction => "in_compaction",
            Self::InBackoff => "in_backoff",
            Self::WaitingForHuman => "waiting_for_human",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One kind of event that was observed before the verdict.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Activity {
    /// The kind.
    pub kind: Kind,
    /// From its last event to the verdict.
    pub age: Millis,
    /// Whether the policy takes that kind as evidence of life.
    pub rearms: bool,
}

/// How a run ended under a policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// What ended it.
    pub cause: Cause,
    /// When, since the run's own start: the firing, the run's end, or the end of the record.
    pub at: Millis,
    /// When it was due: before `at` where the policy looks only from time to time. `at` for what no clock ended.
    pub due: Millis,
    /// Where the run was.
    pub phase: Phase,
    /// The kinds seen, the most recent first; empty when none was.
    pub evidence: Vec<Activity>,
    /// The harness's word for it.
    pub outcome: &'static str,
    /// The harness's code for it, where a clock ended the run.
    pub code: Option<&'static str>,
}
