//! What each kind does to a watchdog: one table.

use crate::{Kind, OpenClass};

/// The role of a kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// Frames the run; never evidence.
    Frame(Frame),
    /// Opens something of that key.
    Opens(OpenKey),
    /// Closes something of that key.
    Closes(OpenKey),
    /// Evidence or nothing.
    Plain,
}

/// The frame events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Frame {
    Spawn,
    Start,
    Resume,
    End,
    Suspend,
}

/// What an open thing is found by, beside its id: a start closes only with an end of its own kind.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) enum OpenKey {
    #[default]
    Tool,
    Approval,
    HumanWait,
    Child,
    Backoff,
    Compaction,
}

impl OpenKey {
    /// The class that a thing of that key belongs to; a call of a human tool is a human wait instead.
    pub(crate) const fn class(self) -> OpenClass {
        match self {
            Self::Tool => OpenClass::Tool,
            Self::Approval | Self::HumanWait => OpenClass::Human,
            Self::Child => OpenClass::Child,
            Self::Backoff => OpenClass::Backoff,
            Self::Compaction => OpenClass::Compaction,
        }
    }
}

/// The role of `kind`.
pub(crate) const fn role(kind: Kind) -> Role {
    match kind {
        Kind::Spawn => Role::Frame(Frame::Spawn),
        Kind::RunStart => Role::Frame(Frame::Start),
        Kind::Resume => Role::Frame(Frame::Resume),
        Kind::RunEnd => Role::Frame(Frame::End),
        Kind::HostSuspend | Kind::HostResume => Role::Frame(Frame::Suspend),
        Kind::ToolStart => Role::Opens(OpenKey::Tool),
        Kind::ApprovalStart => Role::Opens(OpenKey::Approval),
        Kind::HumanWaitStart => Role::Opens(OpenKey::HumanWait),
        Kind::WaitStart => Role::Opens(OpenKey::Child),
        Kind::RetryStart => Role::Opens(OpenKey::Backoff),
        Kind::CompactionStart => Role::Opens(OpenKey::Compaction),
        Kind::ToolEnd => Role::Closes(OpenKey::Tool),
        Kind::ApprovalEnd => Role::Closes(OpenKey::Approval),
        Kind::HumanWaitEnd => Role::Closes(OpenKey::HumanWait),
        Kind::WaitEnd => Role::Closes(OpenKey::Child),
        Kind::RetryEnd => Role::Closes(OpenKey::Backoff),
        Kind::CompactionEnd => Role::Closes(OpenKey::Compaction),
        Kind::TurnStart
        | Kind::TurnEnd
        | Kind::MessageStart
        | Kind::MessageUpdate
        | Kind::ThinkingUpdate
        | Kind::ToolArgsUpdate
        | Kind::MessageEnd
        | Kind::ToolRequested
        | Kind::ToolUpdate
        | Kind::Progress
        | Kind::Keepalive
        | Kind::Status
        | Kind::Stdout
        | Kind::ProcessStart
        | Kind::ProcessExit
        | Kind::SessionAdvance
        | Kind::Heartbeat
        | Kind::Result
        | Kind::Other => Role::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opens_is_closed_by_its_namesake() {
        for kind in Kind::ALL {
            let Role::Opens(key) = role(kind) else {
                continue;
            };
            let end = kind.name().replace("_start", "_end");
            let end = Kind::from_name(&end).map(role);
            assert_eq!(end, Some(Role::Closes(key)), "{kind}");
        }
    }
}
