//! Codex rollouts: one line per finished item, with the events of the client between them.
//!
//! Two vocabularies are read. The usual one tells prompts in `event_msg` and output in `response_item`. Another one
//! tells everything in `item_started` and `item_completed`; it is read only in a file that has not shown the usual
//! one, because a file with both says the same thing twice.

use std::borrow::Cow;

use policysim_policy::{CallId, Kind};
use policysim_sim::run::Symbol;

use super::ImportError;
use super::event::{Call, Key, What};
use super::json::{self, Json};
use super::names::opaque;
use super::read::Translate;
use super::report::Fate;
use super::source::{Agent, Place, Source};
use super::timestamp::stamp;

/// Payload types of `event_msg` that are known and are no events of the waits.
const BOOKKEEPING_EVENTS: [&str; 38] = [
    "agent_message",
    "agent_message_delta",
    "agent_reasoning",
    "agent_reasoning_delta",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "apply_patch_approval_request",
    "background_event",
    "context_compacted",
    "deprecation_notice",
    "entered_review_mode",
    "exec_approval_request",
    "exec_command_begin",
    "exec_command_end",
    "exec_command_output_delta",
    "exited_review_mode",
    "hook_completed",
    "hook_started",
    "image_generation_end",
    "item_completed",
    "item_started",
    "mcp_startup_complete",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "model_reroute",
    "patch_apply_begin",
    "patch_apply_end",
    "plan_update",
    "session_configured",
    "thread_name_updated",
    "thread_rolled_back",
    "token_count",
    "turn_diff",
    "undo_completed",
    "view_image_tool_call",
    "warning",
    "web_search_begin",
    "web_search_end",
];

/// Payload types of `response_item` that are known and are no events of the waits.
const BOOKKEEPING_ITEMS: [&str; 6] = [
    "compaction",
    "compaction_summary",
    "ghost_snapshot",
    "image_generation_call",
    "message",
    "other",
];

/// Translates Codex records.
#[derive(Debug, Default)]
pub(super) struct Codex {
    model: Symbol,
    asks: Asks,
    task: Task,
    usual_vocabulary: bool,
    named_session: bool,
}

/// Whether a task is open.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Task {
    #[default]
    None,
    /// Opened, without a user message yet.
    Started,
    /// Opened, with its first user message.
    Prompted,
}

/// When a command may be put before a human without a record of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Asks {
    /// Always possible: untrusted commands or failed ones are asked for; also assumed where no policy is named.
    #[default]
    Maybe,
    /// Only a call that asks for escalated permissions.
    Escalated,
    /// Never.
    Never,
}

impl Translate for Codex {
    fn record(&mut self, json: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        let [kind, timestamp, payload] = json.fields(["type", "timestamp", "payload"]);
        let kind = kind.and_then(Json::text).unwrap_or_default();
        let t = source.stamp(timestamp.and_then(stamp));
        let stream = source.stream(&Agent::Main);
        let payload_kind = payload.and_then(|payload| payload.field("type")?.text());
        let payload_kind = payload_kind.unwrap_or_default();
        match kind.as_ref() {
            "session_meta" => self.session_meta(payload, source),
            "turn_context" => self.turn_context(payload, source),
            "compacted" | "event_msg" | "response_item" => {
                let Some(t) = t else {
                    let counts =
                        kind != "event_msg" || !BOOKKEEPING_EVENTS.contains(&payload_kind.as_ref());
                    if !counts {
                        return Ok(Fate::Ignored);
                    }
                    source.undated(Some(stream));
                    return Ok(Fate::Undated);
                };
                let place = Place { stream, t };
                return match (kind.as_ref(), payload) {
                    ("compacted", _) => source.count(place, What::Compacted),
                    ("event_msg", Some(payload)) => {
                        self.event(&payload_kind, payload, place, source)
                    }
                    (_, Some(payload)) => self.item(&payload_kind, payload, place, source),
                    (_, None) => source.ignore(place),
                };
            }
            _ => {
                let name = source.unknown_type(&kind);
                if let Some(t) = t {
                    source.note(stream, t, Kind::Other, name)?;
                }
                return Ok(Fate::Unrecognised);
            }
        }
        match t {
            Some(t) => source.ignore(Place { stream, t }),
            None => Ok(Fate::Ignored),
        }
    }
}

impl Codex {
    fn session_meta(&mut self, payload: Option<Json<'_>>, source: &mut Source<'_>) {
        let Some(payload) = payload else { return };
        let [id, version, origin] = payload.fields(["id", "cli_version", "source"]);
        if let Some(version) = version.and_then(Json::some_text) {
            source.client_version(&version);
        }
        if self.named_session {
            // A forked rollout repeats the header of the session it came from.
            return;
        }
        self.named_session = true;
        if let Some(id) = id.and_then(Json::some_text) {
            source.session(&id);
        }
        let Some(subagent) = origin.and_then(|origin| origin.field("subagent")) else {
            return;
        };
        if let Some(role) = subagent.some_text() {
            source.role = super::names::bounded(&role).into_owned();
        }
        if let Some(spawn) = subagent.field("thread_spawn") {
            let [parent, role] = spawn.fields(["parent_thread_id", "agent_role"]);
            if let Some(parent) = parent.and_then(Json::some_text) {
                source.report.parent_session = opaque(&parent).into();
            }
            if let Some(role) = role.and_then(Json::some_text) {
                source.role = super::names::bounded(&role).into_owned();
            }
        }
    }

    fn turn_context(&mut self, payload: Option<Json<'_>>, source: &mut Source<'_>) {
        let Some(payload) = payload else { return };
        let [model, approval] = payload.fields(["model", "approval_policy"]);
        if let Some(model) = model.and_then(Json::some_text) {
            self.model = source.name(&model);
        }
        if let Some(approval) = approval {
            self.asks = match approval.text().as_deref() {
                Some("never") => Asks::Never,
                Some("on-request") => Asks::Escalated,
                _ => Asks::Maybe,
            };
        }
    }

    fn event(
        &mut self,
        kind: &str,
        payload: Json<'_>,
        place: Place,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        match kind {
            "user_message" => {
                self.usual_vocabulary = true;
                self.prompt(place, source)
            }
            "task_started" => {
                self.task = Task::Started;
                source.ignore(place)
            }
            "turn_aborted" => {
                self.task = Task::None;
                source.count(place, What::Aborted)
            }
            "task_complete" => {
                self.task = Task::None;
                let flags = source.record_stamp(place.stream, place.t);
                // Told in front of the end, so that it still belongs to the run; it depends on nothing else.
                if let Some(ms) = payload
                    .field("time_to_first_token_ms")
                    .and_then(Json::integer)
                {
                    source.count_marked(place, What::FirstToken { ms }, flags)?;
                }
                source.count_marked(place, What::TaskEnded, flags)?;
                Ok(Fate::Imported)
            }
            "error" | "stream_error" => {
                let cause = payload.field("codex_error_info").and_then(Json::text);
                source.count(
                    place,
                    What::Failed {
                        announced_ms: None,
                        last: kind == "error",
                        rate_limited: cause.is_some_and(|cause| cause == "usage_limit_exceeded"),
                    },
                )
            }
            "item_started" | "item_completed" if !self.usual_vocabulary => {
                match payload.field("item") {
                    Some(item) => self.newer_item(item, kind == "item_completed", place, source),
                    None => source.ignore(place),
                }
            }
            _ if BOOKKEEPING_EVENTS.contains(&kind) => source.ignore(place),
            _ => unrecognised(source, place, &format!("event_msg/{kind}")),
        }
    }

    /// A user message: inside an open task all but the first are joined to it.
    fn prompt(&mut self, place: Place, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        if self.task == Task::Prompted {
            return source.count(place, What::Joined);
        }
        if self.task == Task::Started {
            self.task = Task::Prompted;
        }
        source.count(place, What::Prompt)
    }

    fn item(
        &mut self,
        kind: &str,
        payload: Json<'_>,
        place: Place,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        self.usual_vocabulary = true;
        let text = |name: &str| payload.field(name).and_then(Json::text).unwrap_or_default();
        match kind {
            "function_call" | "custom_tool_call" | "tool_search_call" | "local_shell_call" => {
                let [id, name, arguments] = payload.fields(["call_id", "name", "arguments"]);
                let id = CallId::from_text(&id.and_then(Json::text).unwrap_or_default());
                let name = name.and_then(Json::text).unwrap_or_default();
                let shown = if name.is_empty() { kind } else { name.as_ref() };
                let mut call = Call::new(id, &name, source.name(shown));
                call.may_ask |= self.asks == Asks::Maybe;
                if arguments
                    .and_then(Json::text)
                    .is_some_and(|text| escalates(&text))
                {
                    call = call.escalated();
                }
                self.output(Some(call), place, source)
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                let [id, output] = payload.fields(["call_id", "output"]);
                let what = What::Result {
                    id: CallId::from_text(&id.and_then(Json::text).unwrap_or_default()),
                    name: Symbol(0),
                    rejected: false,
                    native_ms: output.and_then(execution_time),
                };
                source.count(place, what)
            }
            "reasoning" | "web_search_call" => self.output(None, place, source),
            "message" if text("role") == "assistant" => self.output(None, place, source),
            _ if BOOKKEEPING_ITEMS.contains(&kind) => source.ignore(place),
            _ => unrecognised(source, place, &format!("response_item/{kind}")),
        }
    }

    /// An item of the newer vocabulary.
    fn newer_item(
        &mut self,
        item: Json<'_>,
        completed: bool,
        place: Place,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        let [kind, id, tool] = item.fields(["type", "id", "tool"]);
        let kind = kind.and_then(Json::text).unwrap_or_default();
        let folded: String = kind
            .chars()
            .filter(|c| *c != '_')
            .map(|c| c.to_ascii_lowercase())
            .collect();
        match (folded.as_str(), completed) {
            ("usermessage", true) => self.prompt(place, source),
            ("agentmessage" | "reasoning" | "websearch", true) => self.output(None, place, source),
            ("commandexecution" | "filechange" | "mcptoolcall" | "dynamictoolcall", _) => {
                let id = CallId::from_text(&id.and_then(Json::text).unwrap_or_default());
                let name = tool.and_then(Json::some_text).unwrap_or(kind);
                if completed {
                    let what = What::Result {
                        id,
                        name: source.name(&name),
                        rejected: false,
                        native_ms: None,
                    };
                    return source.count(place, what);
                }
                let mut call = Call::new(id, &name, source.name(&name));
                call.may_ask |= self.asks == Asks::Maybe;
                self.output(Some(call), place, source)
            }
            (
                "usermessage" | "agentmessage" | "reasoning" | "websearch" | "plan" | "todolist"
                | "contextcompaction",
                _,
            ) => source.ignore(place),
            _ => unrecognised(source, place, &format!("item/{kind}")),
        }
    }

    fn output(
        &self,
        call: Option<Call>,
        place: Place,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        let flags = source.record_stamp(place.stream, place.t);
        let what = What::Output {
            key: Key::None,
            model: self.model,
        };
        source.count_marked(place, what, flags)?;
        if let Some(call) = call {
            source.count_marked(place, What::Call(call), flags)?;
        }
        Ok(Fate::Imported)
    }
}

/// Whether the arguments of a call, an object written into a string, ask for more permissions.
fn escalates(arguments: &str) -> bool {
    let found = json::values(arguments);
    let Some(arguments) = found.only() else {
        return false;
    };
    let [permissions, escalated] =
        arguments.fields(["sandbox_permissions", "with_escalated_permissions"]);
    permissions
        .and_then(Json::text)
        .is_some_and(|text| text == "require_escalated")
        || escalated.is_some_and(Json::is_true)
}

/// The execution time that a command's output states: in its first lines, or (older) in the metadata of an object
/// written into a string.
fn execution_time(output: Json<'_>) -> Option<u64> {
    let seconds = if let Some((_, after)) = output.text_up_to(256)?.split_once("Wall time: ") {
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        after[..end].parse::<f64>().ok()?
    } else {
        let text: Cow<'_, str> = output.text().filter(|text| text.starts_with('{'))?;
        let found = json::values(&text);
        let first = found.iter().next()?;
        first
            .field("metadata")?
            .field("duration_seconds")?
            .float()?
    };
    let ms = (seconds * 1000.0).floor();
    (0.0..1e15).contains(&ms).then_some(ms as u64)
}

fn unrecognised(source: &mut Source<'_>, place: Place, kind: &str) -> Result<Fate, ImportError> {
    let name = source.unknown_type(kind);
    source.note(place.stream, place.t, Kind::Other, name)?;
    Ok(Fate::Unrecognised)
}
