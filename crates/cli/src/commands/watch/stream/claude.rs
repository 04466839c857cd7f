//! Claude Code's event stream (`claude -p --output-format stream-json`), with or without partial messages.

use policysim_policy::Kind;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Translate, asks_a_human};
use crate::commands::watch::observation::Observed;

/// What is read of a line; everything else is passed over.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    request: Option<Request>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    retry_delay_ms: Option<f64>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    event: Option<Partial>,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    tool_name: String,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    content: Content,
}

/// A message's content: text alone, or blocks.
#[derive(Default, Deserialize)]
#[serde(from = "serde_json::Value")]
struct Content(Vec<Block>);

impl From<serde_json::Value> for Content {
    fn from(value: serde_json::Value) -> Self {
        let serde_json::Value::Array(blocks) = value else {
            return Self::default();
        };
        let blocks = blocks
            .into_iter()
            .filter_map(|block| serde_json::from_value(block).ok());
        Self(blocks.collect())
    }
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    tool_use_id: String,
    #[serde(default, rename = "content")]
    _content: IgnoredAny,
}

#[derive(Deserialize)]
struct Partial {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(rename = "type", default)]
    kind: String,
}

/// Translates Claude Code's events.
#[derive(Debug, Default)]
pub(super) struct Claude {
    session: Option<String>,
    /// The message under way: another one is another turn.
    message: Option<String>,
    /// The result was told; further events go on with the run.
    ended: bool,
    backs_off: bool,
    compacts: bool,
    /// Requests for permission that are not answered yet.
    approvals: Vec<String>,
}

impl Translate for Claude {
    fn line(&mut self, line: &str, out: &mut Vec<Observed>) -> bool {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            return false;
        };
        if let Some(session) = &line.session_id {
            self.session = Some(session.clone());
        }
        if matches!(line.kind.as_str(), "assistant" | "user" | "stream_event") {
            self.goes_on(out);
        }
        match (&line.parent_tool_use_id, line.kind.as_str()) {
            // A subagent works inside the call that started it.
            (Some(call), "assistant" | "user" | "stream_event") => {
                out.push(Observed::new(Kind::ToolUpdate).about(call));
            }
            _ => self.event(line, out),
        }
        true
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl Claude {
    /// Work goes on: permissions were given, backoffs are over, a finished run was given more to do.
    fn goes_on(&mut self, out: &mut Vec<Observed>) {
        if std::mem::take(&mut self.ended) {
            out.push(Observed::new(Kind::Resume));
        }
        for id in self.approvals.drain(..) {
            out.push(Observed::new(Kind::ApprovalEnd).about(&id));
        }
        if std::mem::take(&mut self.backs_off) {
            out.push(Observed::new(Kind::RetryEnd).about("retry"));
        }
    }

    fn event(&mut self, line: Line, out: &mut Vec<Observed>) {
        match line.kind.as_str() {
            "assistant" => self.answer(line.message, out),
            "user" => {
                let blocks = line.message.map(|message| message.content.0);
                let before = out.len();
                for block in blocks.unwrap_or_default() {
                    if block.kind == "tool_result" {
                        out.push(Observed::new(Kind::ToolEnd).about(&block.tool_use_id));
                    }
                }
                if out.len() == before {
                    out.push(Observed::new(Kind::Status));
                }
            }
            "stream_event" => out.push(Observed::new(partial(line.event.as_ref()))),
            "tool_progress" => {
                let call = line.tool_use_id.unwrap_or_default();
                out.push(Observed::new(Kind::ToolUpdate).about(&call));
            }
            "result" => {
                self.ended = true;
                let failed = line.is_error || line.subtype.starts_with("error");
                let name = if failed { "error" } else { "success" };
                out.push(Observed::new(Kind::Result).named(name));
            }
            "control_request" => self.control(line, out),
            "control_cancel_request" => {
                self.approvals.retain(|id| *id != line.request_id);
                out.push(Observed::new(Kind::ApprovalEnd).about(&line.request_id));
            }
            "system" => self.system(&line, out),
            "keep_alive" => out.push(Observed::new(Kind::Keepalive)),
            "rate_limit_event" | "auth_status" | "control_response" => {
                out.push(Observed::new(Kind::Status));
            }
            other => out.push(Observed::other(other)),
        }
    }

    /// One finished block of an answer; calls in it are dispatched at once.
    fn answer(&mut self, message: Option<Message>, out: &mut Vec<Observed>) {
        let Some(message) = message else {
            out.push(Observed::new(Kind::Status));
            return;
        };
        if message.id.is_none() || message.id != self.message {
            self.message = message.id;
            out.push(Observed::new(Kind::TurnStart));
        }
        out.push(Observed::new(Kind::MessageEnd));
        for block in message.content.0 {
            if block.kind == "tool_use" {
                let mut call = Observed::new(Kind::ToolStart)
                    .about(&block.id)
                    .named(&block.name);
                call.may_ask = asks_a_human(&block.name);
                out.push(call);
            }
        }
    }

    fn control(&mut self, line: Line, out: &mut Vec<Observed>) {
        let request = line
            .request
            .filter(|request| request.subtype == "can_use_tool");
        out.push(match request {
            Some(request) => {
                self.approvals.push(line.request_id.clone());
                Observed::new(Kind::ApprovalStart)
                    .about(&line.request_id)
                    .named(&request.tool_name)
            }
            None => Observed::new(Kind::Status),
        });
    }

    fn system(&mut self, line: &Line, out: &mut Vec<Observed>) {
        let compaction = |kind| Observed::new(kind).about("compaction");
        out.push(match line.subtype.as_str() {
            "api_retry" => {
                self.backs_off = true;
                let delay = line.retry_delay_ms.filter(|ms| (0.0..9e15).contains(ms));
                Observed::new(Kind::RetryStart)
                    .about("retry")
                    .announced(delay.map(|ms| ms as u64))
            }
            "status" if line.status.as_deref() == Some("compacting") => {
                self.compacts = true;
                compaction(Kind::CompactionStart)
            }
            "status" | "compact_boundary" if std::mem::take(&mut self.compacts) => {
                compaction(Kind::CompactionEnd)
            }
            _ => Observed::new(Kind::Status),
        });
    }
}

fn partial(event: Option<&Partial>) -> Kind {
    let Some(event) = event else {
        return Kind::Status;
    };
    let delta = event.delta.as_ref().map_or("", |delta| delta.kind.as_str());
    match (event.kind.as_str(), delta) {
        ("message_start", _) => Kind::MessageStart,
        ("content_block_delta", "thinking_delta" | "signature_delta") => Kind::ThinkingUpdate,
        ("content_block_delta", "input_json_delta") => Kind::ToolArgsUpdate,
        ("content_block_delta", _) => Kind::MessageUpdate,
        ("ping", _) => Kind::Keepalive,
        _ => Kind::Status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reads() {
        let mut claude = Claude::default();
        let mut out = Vec::new();
        for line in [
            r#"{"type":"system","subtype":"init","session_id":"u1"}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"x"}]},"parent_tool_use_id":null}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}"#,
            r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash"}}"#,
            r#"{"type":"assistant","message":{"id":"m7","content":[]},"parent_tool_use_id":"t1"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":"plain"}}"#,
            r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":1500.5}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false}"#,
            r#"{"type":"something_new"}"#,
        ] {
            assert!(claude.line(line, &mut out), "{line}");
        }
        let found: Vec<String> = out
            .iter()
            .map(|o| format!("{} {}{}", o.kind, o.id, o.name).trim().to_owned())
            .collect();
        assert_eq!(
            found,
            [
                "status",
                "message_update",
                "turn_start",
                "message_end",
                "message_end",
                "tool_start t1Bash",
                "approval_start r1Bash",
                "approval_end r1",
                "tool_update t1",
                "tool_end t1",
                "status",
                "retry_start retry",
                "retry_end retry",
                "turn_start",
                "message_end",
                "result success",
                "other something_new",
            ]
        );
        assert_eq!(out[11].announced_ms, Some(1_500));
        assert_eq!(claude.session(), Some("u1"));
    }
}
