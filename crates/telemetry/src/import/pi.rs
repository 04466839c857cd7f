//! Pi sessions: one line per finished message.
//!
//! Pi runs its tools unasked, and no record says when an extension asked, so no wait is marked as a possible
//! approval. The entry's stamp is when the message was finished; `message.timestamp` is kept beside it as
//! `other:message_began` when it lies between the previous entry and this one.

use policysim_policy::{CallId, Kind};
use policysim_sim::run::{EventFlags, Symbol};

use super::ImportError;
use super::event::{Call, Ev, Key, What};
use super::json::Json;
use super::read::Translate;
use super::report::Fate;
use super::source::{Agent, Source};
use super::timestamp::{millis, stamp};

/// Entry types that are known and are no events of the waits.
const BOOKKEEPING: [&str; 9] = [
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "leaf",
    "model_change",
    "session",
    "session_info",
    "thinking_level_change",
];

/// Translates Pi entries.
#[derive(Debug, Default)]
pub(super) struct Pi;

impl Translate for Pi {
    fn record(&mut self, json: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        let [kind, timestamp, message, id, version] =
            json.fields(["type", "timestamp", "message", "id", "version"]);
        let kind = kind.and_then(Json::text).unwrap_or_default();
        let t = source.stamp(timestamp.and_then(stamp));
        let stream = source.stream(&Agent::Main);
        match kind.as_ref() {
            "message" | "compaction" => {
                let Some(t) = t else {
                    source.undated(Some(stream));
                    return Ok(Fate::Undated);
                };
                if kind == "compaction" {
                    let flags = source.record_stamp(stream, t);
                    let what = What::Compacted;
                    source.push(stream, Ev { t, what, flags })?;
                    return Ok(Fate::Imported);
                }
                return match message {
                    Some(message) => message_entry(message, stream, t, source),
                    None => bookkeeping(stream, Some(t), source),
                };
            }
            "session" => {
                if let Some(id) = id.and_then(Json::some_text) {
                    source.session(&id);
                }
                if let Some(version) = version.and_then(Json::number) {
                    source.client_version(&format!("session format {version}"));
                }
            }
            _ => {}
        }
        if BOOKKEEPING.contains(&kind.as_ref()) {
            return bookkeeping(stream, t, source);
        }
        let name = source.unknown_type(&kind);
        if let Some(t) = t {
            source.note(stream, t, Kind::Other, name)?;
        }
        Ok(Fate::Unrecognised)
    }
}

fn message_entry(
    message: Json<'_>,
    stream: usize,
    t: i64,
    source: &mut Source<'_>,
) -> Result<Fate, ImportError> {
    let [
        role,
        content,
        provider,
        model,
        stop_reason,
        call_id,
        tool,
        began,
    ] = message.fields([
        "role",
        "content",
        "provider",
        "model",
        "stopReason",
        "toolCallId",
        "toolName",
        "timestamp",
    ]);
    let text =
        |value: Option<Json<'_>>| value.and_then(Json::text).unwrap_or_default().into_owned();
    match text(role).as_str() {
        "user" => push(source, stream, t, What::Prompt),
        "toolResult" => {
            let tool = text(tool);
            let what = What::Result {
                id: CallId::from_text(&text(call_id)),
                name: source.name(&tool),
                rejected: false,
                native_ms: None,
            };
            push(source, stream, t, what)
        }
        "assistant" if text(provider) != "openclaw" => {
            let model = source.name(&text(model));
            let began = millis(began);
            let previous = source.previous_stamp(stream);
            let flags = source.record_stamp(stream, t);
            let add = |source: &mut Source<'_>, what| source.push(stream, Ev { t, what, flags });
            let stop_reason = text(stop_reason);
            if stop_reason == "error" {
                let what = What::Failed {
                    announced_ms: None,
                    last: true,
                    rate_limited: false,
                };
                add(source, what)?;
                return Ok(Fate::Imported);
            }
            let aborted = stop_reason == "aborted";
            if !aborted || content.is_some_and(|list| list.items().next().is_some()) {
                if let (Some(began), Some(previous)) = (began, previous)
                    && previous < began
                    && began < t
                {
                    let name = source.symbols.intern("message_began");
                    source.note(stream, began, Kind::Other, name)?;
                }
                let what = What::Output {
                    key: Key::Own,
                    model,
                };
                add(source, what)?;
                for block in content.into_iter().flat_map(Json::items) {
                    if let Some(call) = tool_call(block, source) {
                        add(source, What::Call(call))?;
                    }
                }
            }
            if aborted {
                add(source, What::Aborted)?;
            }
            Ok(Fate::Imported)
        }
        _ => bookkeeping(stream, Some(t), source),
    }
}

fn tool_call(block: Json<'_>, source: &mut Source<'_>) -> Option<Call> {
    let [kind, id, name] = block.fields(["type", "id", "name"]);
    if kind?.text()? != "toolCall" {
        return None;
    }
    let id = CallId::from_text(&id.and_then(Json::text).unwrap_or_default());
    let name = name.and_then(Json::text).unwrap_or_default();
    Some(Call::new(id, &name, source.name(&name)))
}

fn push(source: &mut Source<'_>, stream: usize, t: i64, what: What) -> Result<Fate, ImportError> {
    let flags: EventFlags = source.record_stamp(stream, t);
    source.push(stream, Ev { t, what, flags })?;
    Ok(Fate::Imported)
}

fn bookkeeping(
    stream: usize,
    t: Option<i64>,
    source: &mut Source<'_>,
) -> Result<Fate, ImportError> {
    if let Some(t) = t {
        source.note(stream, t, Kind::Status, Symbol(0))?;
    }
    Ok(Fate::Ignored)
}
