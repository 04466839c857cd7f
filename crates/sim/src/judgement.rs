//! What the record says about a kill that it did not know of.
//!
//! Design section 2: a kill is false when the run is seen alive afterwards, true when the record says
//! that it hung or failed, and unresolved otherwise. A survival past the record is unresolved as well,
//! so that counterfactual rates are intervals.

use policysim_policy::{Kind, Outcome};

use crate::run::{RecordedEnd, Run, RunEvent};

/// The record's word on what a policy did to a run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Judgement {
    /// The run was alive: activity resumed after an idle kill, or it completed after a total or turn kill.
    FalseKill,
    /// It never did, and the record says that it hung or failed.
    TrueKill,
    /// The record cannot tell.
    Unresolved,
    /// No kill, and the run ended by itself.
    Ended,
    /// No kill, though the record says that the run hung.
    MissedHang,
}

impl Judgement {
    /// The judgement's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FalseKill => "false_kill",
            Self::TrueKill => "true_kill",
            Self::Unresolved => "unresolved",
            Self::Ended => "ended",
            Self::MissedHang => "missed_hang",
        }
    }
}

/// Which evidence makes a kill false.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KillClass {
    /// Silence was punished: any later sign of life refutes the kill.
    Silence,
    /// Length was punished: only the run's completion refutes it.
    Length,
}

/// Judges a kill of `run` that left the events from index `unseen` on unseen.
pub fn judge_kill(run: &Run, unseen: usize, class: KillClass) -> Judgement {
    let later = run.events.get(unseen..).unwrap_or_default();
    let refuted = match class {
        KillClass::Silence => later.iter().any(shows_life),
        KillClass::Length => later.iter().any(completes),
    };
    word_on_kill(run.end, refuted)
}

/// The word on a kill that the rest of the record refutes, or not.
pub(crate) const fn word_on_kill(end: RecordedEnd, refuted: bool) -> Judgement {
    if refuted {
        return Judgement::FalseKill;
    }
    match end {
        RecordedEnd::Hung | RecordedEnd::Failed => Judgement::TrueKill,
        // A recorded kill may have hit a slow run, an abort may have been a person's impatience:
        // neither says what would have come (statistics section 2).
        RecordedEnd::Aborted
        | RecordedEnd::Completed
        | RecordedEnd::Killed
        | RecordedEnd::OpenInModel
        | RecordedEnd::OpenInTool
        | RecordedEnd::Unknown => Judgement::Unresolved,
    }
}

/// Judges a run that the policy let live to the end of its record.
pub const fn judge_survival(run: &Run) -> Judgement {
    word_on_survival(run.end)
}

/// The word on a run that is not killed within a record that ends so.
pub(crate) const fn word_on_survival(end: RecordedEnd) -> Judgement {
    match end {
        // An abort pre-empts every later kill: the run counts as not killed (statistics section 2).
        RecordedEnd::Completed | RecordedEnd::Failed | RecordedEnd::Aborted => Judgement::Ended,
        RecordedEnd::Hung => Judgement::MissedHang,
        RecordedEnd::Killed
        | RecordedEnd::OpenInModel
        | RecordedEnd::OpenInTool
        | RecordedEnd::Unknown => Judgement::Unresolved,
    }
}

/// Whether an event proves that the run was alive and going on.
///
/// A failed call, an abort, a beat without content and bookkeeping prove nothing of the kind.
pub(crate) fn shows_life(event: &RunEvent) -> bool {
    match event.kind {
        Kind::RunEnd => completes(event),
        kind => is_life(kind),
    }
}

/// Whether events of that kind prove it by themselves; a run's end does only with its outcome.
pub(crate) const fn is_life(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::TurnStart
            | Kind::TurnEnd
            | Kind::MessageStart
            | Kind::MessageUpdate
            | Kind::ThinkingUpdate
            | Kind::ToolArgsUpdate
            | Kind::MessageEnd
            | Kind::ToolRequested
            | Kind::ToolStart
            | Kind::ToolUpdate
            | Kind::ToolEnd
            | Kind::ApprovalStart
            | Kind::ApprovalEnd
            | Kind::HumanWaitStart
            | Kind::HumanWaitEnd
            | Kind::CompactionStart
            | Kind::CompactionEnd
            | Kind::Progress
            | Kind::Stdout
            | Kind::SessionAdvance
            | Kind::WaitEnd
            | Kind::Result
    )
}

pub(crate) fn completes(event: &RunEvent) -> bool {
    event.kind == Kind::RunEnd && event.outcome == Some(Outcome::Completed)
        || event.kind == Kind::Result
}
