//! `OpenCode` session exports: one document whose message parts stamp their start and end.
//!
//! Tool parts run one after the other in the document's order and are paired by position: the call ids in the source
//! are not unique.

use policysim_policy::{CallId, Kind};
use policysim_sim::run::{EventFlags, Symbol, WaitKind};

use super::ImportError;
use super::event::{Call, Ev, Key, What};
use super::json::Json;
use super::names::{bounded, opaque};
use super::read::Translate;
use super::report::Fate;
use super::source::{Agent, Source};
use super::timestamp::{millis, stamp};

/// Translates an `OpenCode` document.
#[derive(Debug, Default)]
pub(super) struct Opencode {
    calls: u64,
}

impl Translate for Opencode {
    fn record(&mut self, document: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        let [info, messages] = document.fields(["info", "messages"]);
        let [id, parent, version] = match info {
            Some(info) => info.fields(["id", "parentID", "version"]),
            None => [None; 3],
        };
        if let Some(id) = id.and_then(Json::some_text) {
            source.session(&id);
        }
        if let Some(version) = version.and_then(Json::some_text) {
            source.client_version(&version);
        }
        let parent = parent.and_then(Json::some_text);
        if let Some(parent) = &parent {
            source.report.parent_session = opaque(parent).into();
        }
        let stream = source.stream(&Agent::Main);
        let mut best = Fate::Ignored;
        for message in messages.into_iter().flat_map(Json::items) {
            let fate = self.message(message, parent.is_some(), stream, source)?;
            source.report.records.add(fate, 1);
            best = best.max(fate);
        }
        Ok(best)
    }
}

/// What a part says about time.
struct Part {
    what: PartKind,
    start: Option<i64>,
    end: Option<i64>,
}

enum PartKind {
    Reasoning,
    Text,
    Tool(Call),
}

impl Opencode {
    fn message(
        &mut self,
        message: Json<'_>,
        is_child: bool,
        stream: usize,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        let [info, parts] = message.fields(["info", "parts"]);
        let [role, time, error, model, agent] = match info {
            Some(info) => info.fields(["role", "time", "error", "modelID", "agent"]),
            None => [None; 5],
        };
        let role = role.and_then(Json::text).unwrap_or_default();
        let [created, completed] = match time {
            Some(time) => time.fields(["created", "completed"]),
            None => [None; 2],
        };
        let created = source.stamp(created.and_then(stamp));
        if !matches!(role.as_ref(), "user" | "assistant") {
            let name = source.unknown_type(&role);
            if let Some(t) = created {
                source.note(stream, t, Kind::Other, name)?;
            }
            return Ok(Fate::Unrecognised);
        }
        let Some(created) = created else {
            source.undated(Some(stream));
            return Ok(Fate::Undated);
        };
        if is_child
            && source.role.is_empty()
            && let Some(agent) = agent.and_then(Json::some_text)
        {
            source.role = bounded(&agent).into_owned();
        }
        let flags = source.record_stamp(stream, created);
        if role == "user" {
            let what = What::Prompt;
            source.push(
                stream,
                Ev {
                    t: created,
                    what,
                    flags,
                },
            )?;
            return Ok(Fate::Imported);
        }
        let error = error.filter(|error| error.is_object());
        let completed = millis(completed);
        let parts: Vec<Part> = parts
            .into_iter()
            .flat_map(Json::items)
            .filter_map(|part| self.part(part, stream, source))
            .collect();
        let first = parts.iter().filter_map(|part| part.start).min();
        let first = first.or(completed.filter(|_| error.is_none()));
        if let Some(t) = first {
            let model = model.and_then(Json::text).unwrap_or_default();
            let model = source.name(&model);
            let what = What::Output {
                key: Key::Own,
                model,
            };
            source.push(stream, Ev { t, what, flags })?;
        }
        for part in &parts {
            push_part(part, first, stream, flags, source)?;
        }
        if let Some(error) = error {
            let name = error.field("name").and_then(Json::text);
            let what = if name.is_some_and(|name| name == "MessageAbortedError") {
                What::Aborted
            } else {
                What::Failed {
                    announced_ms: None,
                    last: true,
                    rate_limited: false,
                }
            };
            let t = completed.unwrap_or(created);
            source.push(stream, Ev { t, what, flags })?;
        } else if let Some(t) = completed {
            source.note(stream, t, Kind::Status, Symbol(0))?;
        }
        Ok(Fate::Imported)
    }

    fn part(&mut self, part: Json<'_>, stream: usize, source: &mut Source<'_>) -> Option<Part> {
        let [kind, time, tool, state] = part.fields(["type", "time", "tool", "state"]);
        let kind = kind.and_then(Json::text)?;
        let (what, time) = match kind.as_ref() {
            "reasoning" => (PartKind::Reasoning, time),
            "text" => (PartKind::Text, time),
            "tool" => {
                self.calls += 1;
                let id = CallId::new(self.calls);
                let tool = tool.and_then(Json::text).unwrap_or_default();
                let call = Call::new(id, &tool, source.name(&tool));
                let [time, metadata, input] = match state {
                    Some(state) => state.fields(["time", "metadata", "input"]),
                    None => [None; 3],
                };
                if call.wait == WaitKind::Subagent {
                    let child = metadata.and_then(|metadata| metadata.field("sessionId"));
                    let child = child.and_then(Json::some_text).map(|id| opaque(&id));
                    let role = input.and_then(|input| input.field("subagent_type"));
                    source.link(
                        stream,
                        id,
                        child.as_deref(),
                        role.and_then(Json::text).as_deref(),
                    );
                }
                (PartKind::Tool(call), time)
            }
            _ => return None,
        };
        let [start, end] = match time {
            Some(time) => time.fields(["start", "end"]).map(millis),
            None => [None; 2],
        };
        Some(Part { what, start, end })
    }
}

/// The events of one part: of a tool its call and result, of a text what is known of its course.
fn push_part(
    part: &Part,
    first: Option<i64>,
    stream: usize,
    flags: EventFlags,
    source: &mut Source<'_>,
) -> Result<(), ImportError> {
    match part.what {
        PartKind::Tool(call) => {
            if let (Some(start), Some(end)) = (part.start, part.end) {
                source.finished_call(stream, call, (start, end), flags)?;
            }
        }
        PartKind::Reasoning | PartKind::Text => {
            let kind = match part.what {
                PartKind::Reasoning => Kind::ThinkingUpdate,
                _ => Kind::MessageUpdate,
            };
            // The first start is the output itself.
            let start = part.start.filter(|start| Some(*start) != first);
            for t in start.into_iter().chain(part.end) {
                source.note(stream, t, kind, Symbol(0))?;
            }
        }
    }
    Ok(())
}
