//! Claude Code sessions: one line per finished content block, prompt, tool result or piece of bookkeeping.

use std::borrow::Cow;

use policysim_policy::{CallId, Kind};
use policysim_sim::run::{EventFlags, Symbol, WaitKind};

use super::ImportError;
use super::event::{Call, Key, What};
use super::json::Json;
use super::read::Translate;
use super::report::Fate;
use super::source::{Agent, Place, Source};
use super::timestamp::stamp;

/// Record types that are known and are no events of the waits.
const BOOKKEEPING: [&str; 23] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "attachment",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "queue-operation",
    "relocated",
    "speculation-accept",
    "summary",
    "tag",
    "task-summary",
    "turn-end",
    "worktree-state",
];

/// How a result begins when a human refused the call.
const REFUSALS: [&str; 4] = [
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action right now.",
    "Tool use was rejected",
    "User rejected",
];

/// How a user record begins that a local command wrote.
const LOCAL_COMMANDS: [&str; 7] = [
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "Caveat: The messages below",
];

/// Tools that run unasked in every permission mode.
const UNASKED: [&str; 16] = [
    "BashOutput",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "ListMcpResourcesTool",
    "NotebookRead",
    "Read",
    "ReadMcpResourceTool",
    "TaskCreate",
    "TaskList",
    "TaskOutput",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
];

/// Tools that run unasked in the mode `acceptEdits`.
const EDITS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Enough of a text for every rule that looks at its beginning.
const TEXT_HEAD: usize = 256;

/// Translates Claude Code records.
#[derive(Debug, Default)]
pub(super) struct Claude {
    mode: PermissionMode,
}

/// Who is asked before a tool runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum PermissionMode {
    /// Everything but reading is asked for; also assumed where the log names no mode.
    #[default]
    Asks,
    /// Edits are not asked for.
    AcceptEdits,
    /// Nothing is asked for.
    Silent,
}

impl PermissionMode {
    fn of(name: &str) -> Self {
        match name {
            "acceptEdits" => Self::AcceptEdits,
            "bypassPermissions" | "dontAsk" => Self::Silent,
            _ => Self::Asks,
        }
    }

    /// Whether a human may be asked before the tool runs.
    fn may_ask(self, tool: &str) -> bool {
        match self {
            Self::Silent => false,
            Self::AcceptEdits => !UNASKED.contains(&tool) && !EDITS.contains(&tool),
            Self::Asks => !UNASKED.contains(&tool),
        }
    }
}

/// The fields of a record that are looked at.
struct Record<'a> {
    kind: Cow<'a, str>,
    message: Option<Json<'a>>,
    subtype: Option<Json<'a>>,
    uuid: Option<Json<'a>>,
    flags: [Option<Json<'a>>; 4],
    error: [Option<Json<'a>>; 4],
    compaction: Option<Json<'a>>,
    tool_result: Option<Json<'a>>,
}

impl Translate for Claude {
    fn record(&mut self, json: Json<'_>, source: &mut Source<'_>) -> Result<Fate, ImportError> {
        let [
            kind,
            uuid,
            timestamp,
            sidechain,
            agent,
            session,
            version,
            message,
            subtype,
            meta,
            summary,
            transcript_only,
            api_error,
            error,
            retry_in,
            attempt,
            attempts,
            compaction,
            tool_result,
            mode,
        ] = json.fields([
            "type",
            "uuid",
            "timestamp",
            "isSidechain",
            "agentId",
            "sessionId",
            "version",
            "message",
            "subtype",
            "isMeta",
            "isCompactSummary",
            "isVisibleInTranscriptOnly",
            "isApiErrorMessage",
            "error",
            "retryInMs",
            "retryAttempt",
            "maxRetries",
            "compactMetadata",
            "toolUseResult",
            "permissionMode",
        ]);
        let kind = kind.and_then(Json::text).unwrap_or_default();
        let counts = matches!(kind.as_ref(), "user" | "assistant" | "system");
        if let Some(id) = uuid.filter(|_| counts).and_then(Json::some_text)
            && source.is_replayed(&id, &[timestamp, message])
        {
            return Ok(Fate::Duplicate);
        }
        if let Some(id) = session.and_then(Json::some_text) {
            source.session(&id);
        }
        if let Some(version) = version.and_then(Json::some_text) {
            source.client_version(&version);
        }
        if let Some(mode) = mode.and_then(Json::text) {
            self.mode = PermissionMode::of(&mode);
        }
        let record = Record {
            kind,
            message,
            subtype,
            uuid,
            flags: [meta, summary, transcript_only, api_error],
            error: [error, retry_in, attempt, attempts],
            compaction,
            tool_result,
        };
        let agent = if sidechain.is_some_and(Json::is_true) {
            Agent::Sub(agent.and_then(Json::text).unwrap_or_default().into_owned())
        } else {
            Agent::Main
        };
        let t = source.stamp(timestamp.and_then(stamp));
        if !counts {
            return other_record(&record.kind, t, &agent, source);
        }
        let Some(t) = t else {
            let stream = source.find_stream(&agent);
            source.undated(stream);
            return Ok(Fate::Undated);
        };
        if let Some(id) = uuid.and_then(Json::some_text)
            && source.is_elsewhere(&id, message, t)
        {
            return Ok(Fate::Duplicate);
        }
        let place = Place {
            stream: source.stream(&agent),
            t,
        };
        match record.kind.as_ref() {
            "user" => user(&record, place, source),
            "assistant" => self.assistant(&record, place, source),
            _ => system(&record, place, source),
        }
    }
}

/// A record that is no event of the waits.
fn other_record(
    kind: &str,
    t: Option<i64>,
    agent: &Agent,
    source: &mut Source<'_>,
) -> Result<Fate, ImportError> {
    let (replayed_as, name, fate) = if kind == "progress" {
        source.report.counts.n_progress += u64::from(t.is_some());
        (Kind::Progress, Symbol(0), Fate::Ignored)
    } else if BOOKKEEPING.contains(&kind) {
        (Kind::Status, Symbol(0), Fate::Ignored)
    } else {
        (Kind::Other, source.unknown_type(kind), Fate::Unrecognised)
    };
    if let (Some(t), Some(stream)) = (t, source.find_stream(agent)) {
        source.note(stream, t, replayed_as, name)?;
    }
    Ok(fate)
}

fn system(record: &Record<'_>, place: Place, source: &mut Source<'_>) -> Result<Fate, ImportError> {
    let subtype = record.subtype.and_then(Json::text).unwrap_or_default();
    let automatic = || {
        let trigger = record.compaction.and_then(|meta| meta.field("trigger"));
        trigger
            .and_then(Json::text)
            .is_some_and(|trigger| trigger == "auto")
    };
    match subtype.as_ref() {
        "api_error" => {
            let [_, retry_in, attempt, attempts] =
                record.error.map(|value| value.and_then(Json::number));
            source.count(
                place,
                What::Failed {
                    announced_ms: retry_in.and_then(|ms| u64::try_from(ms).ok()),
                    last: attempt.is_some() && attempt >= attempts,
                    rate_limited: false,
                },
            )
        }
        "compact_boundary" if automatic() => source.count(place, What::Compacted),
        _ => source.ignore(place),
    }
}

impl Claude {
    fn assistant(
        &self,
        record: &Record<'_>,
        place: Place,
        source: &mut Source<'_>,
    ) -> Result<Fate, ImportError> {
        let [.., api_error] = record.flags;
        if api_error.is_some_and(Json::is_true) {
            let [error, ..] = record.error;
            return source.count(
                place,
                What::Failed {
                    announced_ms: None,
                    last: true,
                    rate_limited: error
                        .and_then(Json::text)
                        .is_some_and(|error| error == "rate_limit"),
                },
            );
        }
        let [id, model, content] = match record.message {
            Some(message) => message.fields(["id", "model", "content"]),
            None => [None; 3],
        };
        let model = model.and_then(Json::some_text).unwrap_or_default();
        if model == "<synthetic>" {
            return source.ignore(place);
        }
        let key = id
            .and_then(Json::some_text)
            .or_else(|| record.uuid.and_then(Json::some_text));
        let what = What::Output {
            key: Key::of(key.as_deref().unwrap_or("?")),
            model: source.name(&model),
        };
        let flags = source.record_stamp(place.stream, place.t);
        source.count_marked(place, what, flags)?;
        for block in content.into_iter().flat_map(Json::items) {
            let [kind, id, name, input] = block.fields(["type", "id", "name", "input"]);
            if kind
                .and_then(Json::text)
                .is_some_and(|kind| kind == "tool_use")
            {
                let id = CallId::from_text(&id.and_then(Json::text).unwrap_or_default());
                let name = name.and_then(Json::text).unwrap_or_default();
                let mut call = Call::new(id, &name, source.name(&name));
                call.may_ask |= self.mode.may_ask(&name);
                if call.wait == WaitKind::Subagent {
                    let role = input.and_then(|input| input.field("subagent_type"));
                    source.link(place.stream, id, None, role.and_then(Json::text).as_deref());
                }
                source.count_marked(place, What::Call(call), flags)?;
            }
        }
        Ok(Fate::Imported)
    }
}

fn user(record: &Record<'_>, place: Place, source: &mut Source<'_>) -> Result<Fate, ImportError> {
    let content = record.message.and_then(|message| message.field("content"));
    let results: Vec<Json<'_>> = content
        .into_iter()
        .flat_map(Json::items)
        .filter(|block| {
            let kind = block.field("type").and_then(Json::text);
            kind.is_some_and(|kind| kind == "tool_result")
        })
        .collect();
    if !results.is_empty() {
        let flags = source.record_stamp(place.stream, place.t);
        // The record's own facts about the execution belong to its only result.
        let facts = record.tool_result.filter(|_| results.len() == 1);
        for block in results {
            result(block, facts, place, flags, source)?;
        }
        return Ok(Fate::Imported);
    }
    let text = content.and_then(first_text).unwrap_or_default();
    let [meta, summary, transcript_only, _] =
        record.flags.map(|flag| flag.is_some_and(Json::is_true));
    let what = if summary || transcript_only {
        What::HandOff
    } else if text.starts_with("[Request interrupted by user") {
        What::Aborted
    } else if LOCAL_COMMANDS.iter().any(|start| text.starts_with(start)) {
        return source.ignore(place);
    } else if meta {
        What::HandOff
    } else {
        What::Prompt
    };
    source.count(place, what)
}

fn result(
    block: Json<'_>,
    facts: Option<Json<'_>>,
    place: Place,
    flags: EventFlags,
    source: &mut Source<'_>,
) -> Result<(), ImportError> {
    let [id, is_error, content] = block.fields(["tool_use_id", "is_error", "content"]);
    let id = CallId::from_text(&id.and_then(Json::text).unwrap_or_default());
    let rejected = is_error.is_some_and(Json::is_true) && {
        let text = content.and_then(first_text).unwrap_or_default();
        REFUSALS.iter().any(|start| text.starts_with(start))
    };
    let [duration, total_duration, agent] = match facts {
        Some(facts) => facts.fields(["durationMs", "totalDurationMs", "agentId"]),
        None => [None; 3],
    };
    if source.is_link(place.stream, id) {
        let agent = agent
            .and_then(Json::some_text)
            .map(Cow::into_owned)
            .or_else(|| content.and_then(agent_in_text));
        source.link(place.stream, id, agent.as_deref(), None);
    }
    let native_ms = duration
        .or(total_duration)
        .and_then(Json::number)
        .and_then(|ms| u64::try_from(ms).ok());
    let what = What::Result {
        id,
        name: Symbol(0),
        rejected,
        native_ms,
    };
    source.count_marked(place, what, flags)
}

/// The beginning of "its text": the content string, or the text of the first block that has one.
fn first_text(content: Json<'_>) -> Option<Cow<'_, str>> {
    if content.is_list() {
        let text = content.items().find_map(|block| block.field("text"))?;
        return text.text_up_to(TEXT_HEAD);
    }
    content.text_up_to(TEXT_HEAD)
}

/// The agent's id that a subagent's result names in words. Only what looks like an id is taken: short, lower case, with
/// a digit; the text around it was written by a model.
fn agent_in_text(content: Json<'_>) -> Option<String> {
    let id_in = |text: &str| {
        let (_, after) = text.rsplit_once("agentId: ")?;
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .unwrap_or(after.len());
        let id = &after[..end];
        let is_id = id.len() <= 32
            && id.bytes().any(|byte| byte.is_ascii_digit())
            && !id.bytes().any(|byte| byte.is_ascii_uppercase());
        is_id.then(|| id.to_owned())
    };
    if content.is_list() {
        return content
            .items()
            .filter_map(|block| block.field("text")?.text())
            .find_map(|text| id_in(&text));
    }
    id_in(&content.text()?)
}
