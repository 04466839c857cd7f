//! Gemini CLI chats: one document whose entries stamp thoughts, tool calls and answers.
//!
//! Tool calls run one after the other in the document's order, whatever their stamps say.

use policysim_policy::{CallId, Kind};
use policysim_sim::run::Symbol;

use super::ImportError;
use super::event::{Call, Ev, Key, What};
use super::json::Json;
use super::read::Translate;
use super::report::Fate;
use super::source::{Agent, Source};
use super::timestamp::{millis, stamp};

/// Translates a Gemini document.
#[derive(Debug, Default)]
pub(super) struct Gemini;

impl Translate for Gemini {
    fn record(&mut self, document: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        let [session, messages] = document.fields(["sessionId", "messages"]);
        if let Some(session) = session.and_then(Json::some_text) {
            source.session(&session);
        }
        let stream = source.stream(&Agent::Main);
        let mut best = Fate::Ignored;
        for message in messages.into_iter().flat_map(Json::items) {
            let fate = entry(message, stream, source)?;
            source.report.records.add(fate, 1);
            best = best.max(fate);
        }
        Ok(best)
    }
}

fn entry(message: Json<'_>, stream: usize, source: &mut Source<'_>) -> Result<Fate, ImportError> {
    let [kind, timestamp, id, model, thoughts, calls] =
        message.fields(["type", "timestamp", "id", "model", "thoughts", "toolCalls"]);
    let kind = kind.and_then(Json::text).unwrap_or_default();
    let t = source.stamp(timestamp.and_then(stamp));
    if !matches!(kind.as_ref(), "user" | "error" | "gemini") {
        let (replayed_as, name, fate) =
            if matches!(kind.as_ref(), "info" | "warning" | "quit" | "compression") {
                (Kind::Status, Symbol(0), Fate::Ignored)
            } else {
                (Kind::Other, source.unknown_type(&kind), Fate::Unrecognised)
            };
        if let Some(t) = t {
            source.note(stream, t, replayed_as, name)?;
        }
        return Ok(fate);
    }
    let Some(t) = t else {
        source.undated(Some(stream));
        return Ok(Fate::Undated);
    };
    let flags = source.record_stamp(stream, t);
    let what = match kind.as_ref() {
        "user" => What::Prompt,
        "error" => What::Failed {
            announced_ms: None,
            last: true,
            rate_limited: false,
        },
        _ => {
            let thoughts: Vec<i64> = thoughts
                .into_iter()
                .flat_map(Json::items)
                .filter_map(|thought| millis(thought.field("timestamp")))
                .collect();
            let calls: Vec<ToolCall> = calls
                .into_iter()
                .flat_map(Json::items)
                .filter_map(|call| tool_call(call, source))
                .collect();
            let starts = calls.iter().map(|call| call.start);
            let first = thoughts.iter().copied().chain(starts).fold(t, i64::min);
            let key = id.and_then(Json::some_text);
            let model = model.and_then(Json::text).unwrap_or_default();
            let what = What::Output {
                key: key.map_or(Key::None, |key| Key::of(&key)),
                model: source.name(&model),
            };
            source.push(
                stream,
                Ev {
                    t: first,
                    what,
                    flags,
                },
            )?;
            for thought in thoughts.into_iter().filter(|&thought| thought > first) {
                source.note(stream, thought, Kind::ThinkingUpdate, Symbol(0))?;
            }
            for ToolCall { call, start, end } in calls {
                source.finished_call(stream, call, (start, end), flags)?;
            }
            return Ok(Fate::Imported);
        }
    };
    source.push(stream, Ev { t, what, flags })?;
    Ok(Fate::Imported)
}

struct ToolCall {
    call: Call,
    start: i64,
    end: i64,
}

/// A tool call with a stamp; one without is ignored.
fn tool_call(call: Json<'_>, source: &mut Source<'_>) -> Option<ToolCall> {
    let [id, name, timestamp] = call.fields(["id", "name", "timestamp"]);
    let end = millis(timestamp)?;
    let id = id.and_then(Json::text).unwrap_or_default();
    let name = name.and_then(Json::text).unwrap_or_default();
    Some(ToolCall {
        call: Call::new(CallId::from_text(&id), &name, source.name(&name)),
        start: start_in_id(&id).unwrap_or(end),
        end,
    })
}

/// The 13-digit number between hyphens in a call's id: its start in epoch milliseconds.
fn start_in_id(id: &str) -> Option<i64> {
    let mut parts = id.split('-').skip(1).peekable();
    while let Some(part) = parts.next() {
        // The last part has no hyphen behind it.
        parts.peek()?;
        if part.len() == 13 && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return part.parse().ok();
        }
    }
    None
}
