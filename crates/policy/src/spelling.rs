//! How vectors, scenarios and logs spell the kinds: one table.

use crate::{Event, Kind, Outcome, Word};

/// What a spelling means.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Spelled {
    /// An event.
    Event(Spelling),
    /// No event of the run: the record ends here.
    RecordEnd,
}

/// An event's kind, with what its spelling says beyond the kind.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Spelling {
    /// The kind.
    pub kind: Kind,
    /// How the run ended, where the spelling says so.
    pub outcome: Option<Outcome>,
    /// The harness's words for that end, where they are not those of the outcome.
    pub word: Option<Word>,
}

impl Spelling {
    const fn plain(kind: Kind) -> Self {
        Self {
            kind,
            outcome: None,
            word: None,
        }
    }

    const fn end(outcome: Outcome) -> Self {
        Self {
            kind: Kind::RunEnd,
            outcome: Some(outcome),
            word: None,
        }
    }

    const fn named_end(outcome: Outcome, word: Word) -> Self {
        Self {
            kind: Kind::RunEnd,
            outcome: Some(outcome),
            word: Some(word),
        }
    }

    /// The event of that spelling; `name` is the tool's or other's name.
    pub const fn event(self, name: &str) -> Event<'_> {
        let mut event = Event::new(self.kind).with_name(name);
        event.outcome = self.outcome;
        event
    }
}

/// The spellings that are no kind's own name.
const ALIASES: [(&str, Spelling); 25] = [
    ("abort", Spelling::end(Outcome::Aborted)),
    ("agent_end", Spelling::plain(Kind::Other)),
    ("agent_start", Spelling::plain(Kind::Other)),
    ("complete", Spelling::end(Outcome::Completed)),
    ("delta", Spelling::plain(Kind::MessageUpdate)),
    ("fail", Spelling::end(Outcome::Failed)),
    ("invocation_end", Spelling::plain(Kind::RunEnd)),
    ("invocation_start", Spelling::plain(Kind::RunStart)),
    ("ipc_request", Spelling::plain(Kind::Heartbeat)),
    ("item", Spelling::plain(Kind::ToolUpdate)),
    ("llm_response", Spelling::plain(Kind::MessageEnd)),
    ("pause_for", Spelling::plain(Kind::HumanWaitStart)),
    ("prefill_progress", Spelling::plain(Kind::Progress)),
    ("prompt_accepted", Spelling::plain(Kind::Other)),
    ("session_change_unbound", Spelling::plain(Kind::Other)),
    ("spawn_accepted", Spelling::plain(Kind::Spawn)),
    (
        "stop",
        Spelling::named_end(Outcome::Aborted, Word::plain("stopped")),
    ),
    (
        "stream_end",
        Spelling::named_end(Outcome::Failed, Word::coded("failed", "NO_COMPLETION_ITEM")),
    ),
    ("thinking_delta", Spelling::plain(Kind::ThinkingUpdate)),
    ("token", Spelling::plain(Kind::MessageUpdate)),
    ("toolcall_delta", Spelling::plain(Kind::ToolArgsUpdate)),
    ("toolcall_end", Spelling::plain(Kind::ToolRequested)),
    ("tools_end", Spelling::plain(Kind::ToolEnd)),
    ("tools_start", Spelling::plain(Kind::ToolStart)),
    ("ui", Spelling::plain(Kind::Other)),
];

/// What `name` means; `None` for an unknown spelling.
pub fn spelled(name: &str) -> Option<Spelled> {
    if name == "killed" {
        return Some(Spelled::RecordEnd);
    }
    Kind::from_name(name)
        .map(Spelling::plain)
        .or_else(|| {
            ALIASES
                .iter()
                .find(|(alias, _)| *alias == name)
                .map(|(_, spelling)| *spelling)
        })
        .map(Spelled::Event)
}

/// The outcome that a `run_end` of that status means; `None` for an unknown status.
pub fn status(name: &str) -> Option<Outcome> {
    match name {
        "ok" | "success" | "completed" => Some(Outcome::Completed),
        "error" | "failed" => Some(Outcome::Failed),
        "aborted" | "cancelled" => Some(Outcome::Aborted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_spells_itself_and_aliases_hide_none() {
        for kind in Kind::ALL {
            assert_eq!(
                spelled(kind.name()),
                Some(Spelled::Event(Spelling::plain(kind)))
            );
        }
        for (alias, _) in ALIASES {
            assert_eq!(Kind::from_name(alias), None, "{alias}");
        }
        assert_eq!(spelled("agent_starts"), None);
    }
}
