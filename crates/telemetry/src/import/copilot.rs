//! Copilot CLI event logs: prompts, finished messages, tool executions and permission dialogs, each with its stamp.

use std::collections::HashMap;

use policysim_policy::{CallId, Kind};
use policysim_sim::run::{EventFlags, Symbol};

use super::ImportError;
use super::event::{Call, Ev, Key, What};
use super::json::Json;
use super::read::Translate;
use super::report::Fate;
use super::source::{Agent, Source};
use super::timestamp::stamp;

/// Families of event types that are known and are no events of the waits, besides those that are.
const BOOKKEEPING: [&str; 12] = [
    "assistant.",
    "command.",
    "hook.",
    "mcp.",
    "pending_messages.",
    "permission.",
    "session.",
    "skill.",
    "subagent.",
    "system.",
    "tool.",
    "user_input.",
];

/// Translates Copilot events.
#[derive(Debug, Default)]
pub(super) struct Copilot {
    /// Dialogs of which one half has been read.
    dialogs: HashMap<u64, HalfDialog>,
}

#[derive(Clone, Copy, Debug)]
struct HalfDialog {
    t: i64,
    is_start: bool,
}

impl Translate for Copilot {
    fn record(&mut self, json: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        let [kind, timestamp, data, id] = json.fields(["type", "timestamp", "data", "id"]);
        let kind = kind.and_then(Json::text).unwrap_or_default();
        let t = source.stamp(timestamp.and_then(stamp));
        let stream = source.stream(&Agent::Main);
        let [session, version] = match data {
            Some(data) if kind == "session.start" => data.fields(["sessionId", "copilotVersion"]),
            _ => [None; 2],
        };
        if let Some(session) = session.and_then(Json::some_text) {
            source.session(&session);
        }
        if let Some(version) = version.and_then(Json::some_text) {
            source.client_version(&version);
        }
        let is_event = matches!(
            kind.as_ref(),
            "user.message"
                | "assistant.message"
                | "tool.execution_start"
                | "tool.execution_complete"
                | "permission.requested"
                | "permission.completed"
                | "abort"
                | "session.error"
        );
        let Some(t) = t else {
            if is_event {
                source.undated(Some(stream));
                return Ok(Fate::Undated);
            }
            return other_record(&kind, stream, None, source);
        };
        if !is_event {
            return other_record(&kind, stream, Some(t), source);
        }
        let [message, call, tool, request, model] = match data {
            Some(data) => {
                data.fields(["messageId", "toolCallId", "toolName", "requestId", "model"])
            }
            None => [None; 5],
        };
        let text =
            |value: Option<Json<'_>>| value.and_then(Json::text).unwrap_or_default().into_owned();
        let what = match kind.as_ref() {
            "user.message" => What::Prompt,
            "assistant.message" => {
                let key = message
                    .and_then(Json::some_text)
                    .or_else(|| id.and_then(Json::some_text));
                What::Output {
                    key: key.map_or(Key::None, |key| Key::of(&key)),
                    model: source.name(&text(model)),
                }
            }
            "tool.execution_start" => {
                let tool = text(tool);
                let symbol = source.name(&tool);
                What::Call(Call::new(CallId::from_text(&text(call)), &tool, symbol))
            }
            "tool.execution_complete" => {
                let tool = text(tool);
                What::Result {
                    id: CallId::from_text(&text(call)),
                    name: source.name(&tool),
                    rejected: false,
                    native_ms: None,
                }
            }
            "abort" => What::Aborted,
            "session.error" => What::Failed {
                announced_ms: None,
                last: true,
                rate_limited: false,
            },
            dialog => {
                let is_start = dialog == "permission.requested";
                return self.dialog(&text(request), HalfDialog { t, is_start }, stream, source);
            }
        };
        let flags = source.record_stamp(stream, t);
        source.push(stream, Ev { t, what, flags })?;
        Ok(Fate::Imported)
    }
}

impl Copilot {
    /// One half of an approval dialog; the wait is told with the second half.
    fn dialog(
        &mut self,
        request: &str,
        half: HalfDialog,
        stream: usize,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        let id = CallId::from_text(request);
        let flags: EventFlags = source.record_stamp(stream, half.t);
        let other = self.dialogs.remove(&id.as_u64());
        let what = match other {
            Some(other) if other.is_start != half.is_start => {
                let (start, end) = if half.is_start {
                    (half, other)
                } else {
                    (other, half)
                };
                // The wait is the difference of the two stamps, whichever stands first.
                What::Approval {
                    id,
                    start: half.t - (end.t - start.t),
                    whole: half.is_start,
                }
            }
            _ => {
                self.dialogs.insert(id.as_u64(), half);
                if !half.is_start {
                    source.note(stream, half.t, Kind::Status, Symbol(0))?;
                    return Ok(Fate::Imported);
                }
                let name = Symbol(0);
                let kind = Kind::ApprovalStart;
                What::Note { kind, id, name }
            }
        };
        source.push(
            stream,
            Ev {
                t: half.t,
                what,
                flags,
            },
        )?;
        Ok(Fate::Imported)
    }
}

fn other_record(
    kind: &str,
    stream: usize,
    t: Option<i64>,
    source: &mut Source<'_>,
) -> Result<Fate, ImportError> {
    let known = BOOKKEEPING.iter().any(|family| kind.starts_with(family));
    let (replayed_as, name, fate) = if known {
        (Kind::Status, Symbol(0), Fate::Ignored)
    } else {
        (Kind::Other, source.unknown_type(kind), Fate::Unrecognised)
    };
    if let Some(t) = t {
        source.note(stream, t, replayed_as, name)?;
    }
    Ok(fate)
}
