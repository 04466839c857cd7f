//! Pi's event stream (`pi --mode json`, and the events of `--mode rpc`).

use policysim_policy::Kind;
use serde::Deserialize;

use super::{Translate, asks_a_human};
use crate::commands::watch::observation::Observed;

/// What is read of a line; everything else is passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    tool_call_id: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    delay_ms: Option<u64>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    will_retry: Option<bool>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    assistant_message_event: Option<Piece>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    role: String,
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(rename = "type", default)]
    kind: String,
}

/// Translates Pi's events.
#[derive(Debug, Default)]
pub(super) struct Pi {
    session: Option<String>,
    /// The agent has ended; another start goes on with the run.
    ended: bool,
    /// A retry was announced and has not been tried yet.
    backs_off: bool,
    /// Questions that a human has not answered yet.
    questions: Vec<String>,
}

impl Translate for Pi {
    fn line(&mut self, line: &str, out: &mut Vec<Observed>) -> bool {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            return false;
        };
        self.goes_on(&line.kind, out);
        self.event(line, out);
        true
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl Pi {
    /// What an event of this type ends that has no reliable end of its own: an answered question, a backoff.
    fn goes_on(&mut self, kind: &str, out: &mut Vec<Observed>) {
        let works = matches!(
            kind,
            "agent_start"
                | "turn_start"
                | "turn_end"
                | "message_start"
                | "message_update"
                | "message_end"
                | "tool_execution_start"
                | "tool_execution_end"
                | "agent_end"
        );
        if works {
            for id in self.questions.drain(..) {
                out.push(Observed::new(Kind::HumanWaitEnd).about(&id));
            }
        }
        if works && std::mem::take(&mut self.backs_off) {
            out.push(Observed::new(Kind::RetryEnd).about("retry"));
        }
        let begins = works && kind != "agent_end"
            || matches!(
                kind,
                "auto_retry_start" | "compaction_start" | "auto_compaction_start"
            );
        if begins && std::mem::take(&mut self.ended) {
            out.push(Observed::new(Kind::Resume));
        }
    }

    fn event(&mut self, line: Line, out: &mut Vec<Observed>) {
        let is_assistant = line
            .message
            .as_ref()
            .is_some_and(|message| message.role == "assistant");
        let of_assistant = |kind| if is_assistant { kind } else { Kind::Status };
        let tool = |kind| {
            let mut tool = Observed::new(kind)
                .about(&line.tool_call_id)
                .named(&line.tool_name);
            tool.may_ask = kind != Kind::ToolEnd && asks_a_human(&line.tool_name);
            tool
        };
        out.push(match line.kind.as_str() {
            "session" => {
                self.session = line.id.or(self.session.take());
                Observed::new(Kind::Status)
            }
            "agent_end" => {
                let failed = line
                    .messages
                    .last()
                    .and_then(|last| last.stop_reason.as_deref());
                let goes_on = line.will_retry == Some(true) || failed == Some("error");
                if goes_on {
                    Observed::other("agent_end")
                } else {
                    self.ended = true;
                    let name = if failed == Some("aborted") {
                        "error"
                    } else {
                        "success"
                    };
                    Observed::new(Kind::Result).named(name)
                }
            }
            "turn_start" => Observed::new(Kind::TurnStart),
            "turn_end" => Observed::new(Kind::TurnEnd),
            "message_start" => Observed::new(of_assistant(Kind::MessageStart)),
            "message_end" => Observed::new(of_assistant(Kind::MessageEnd)),
            "message_update" => Observed::new(piece(line.assistant_message_event.as_ref())),
            "tool_execution_start" => tool(Kind::ToolStart),
            "tool_execution_update" => tool(Kind::ToolUpdate),
            "tool_execution_end" => tool(Kind::ToolEnd),
            "auto_retry_start" => {
                self.backs_off = true;
                Observed::new(Kind::RetryStart)
                    .about("retry")
                    .announced(line.delay_ms)
            }
            "compaction_start" | "auto_compaction_start" => {
                Observed::new(Kind::CompactionStart).about("compaction")
            }
            "compaction_end" | "auto_compaction_end" => {
                Observed::new(Kind::CompactionEnd).about("compaction")
            }
            "extension_ui_request"
                if matches!(
                    line.method.as_str(),
                    "select" | "confirm" | "input" | "editor"
                ) =>
            {
                let id = line.id.unwrap_or_default();
                let question = Observed::new(Kind::HumanWaitStart)
                    .about(&id)
                    .announced(line.timeout);
                self.questions.push(id);
                question
            }
            "extension_ui_request"
            | "response"
            | "queue_update"
            | "auto_retry_end"
            | "session_info_changed"
            | "thinking_level_changed" => Observed::new(Kind::Status),
            other => Observed::other(other),
        });
    }
}

/// What a streamed piece is of.
fn piece(piece: Option<&Piece>) -> Kind {
    let kind = piece.map_or("", |piece| piece.kind.as_str());
    match kind.split_once('_') {
        Some(("thinking", _)) => Kind::ThinkingUpdate,
        Some(("toolcall", "end")) => Kind::ToolRequested,
        Some(("toolcall", _)) => Kind::ToolArgsUpdate,
        _ => Kind::MessageUpdate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(lines: &[&str]) -> Vec<String> {
        let mut pi = Pi::default();
        let mut out = Vec::new();
        for line in lines {
            assert!(pi.line(line, &mut out), "{line}");
        }
        out.iter()
            .map(|observed| match observed.id.as_str() {
                "" => observed.kind.name().to_owned(),
                id => format!("{} {id}", observed.kind),
            })
            .collect()
    }

    #[test]
    fn a_turn_with_a_tool_reads() {
        let found = kinds(&[
            r#"{"type":"agent_start"}"#,
            r#"{"type":"turn_start"}"#,
            r#"{"type":"message_start","message":{"role":"user"}}"#,
            r#"{"type":"message_start","message":{"role":"assistant"}}"#,
            r#"{"type":"message_update","message":{},"assistantMessageEvent":{"type":"thinking_delta"}}"#,
            r#"{"type":"message_update","message":{},"assistantMessageEvent":{"type":"text_delta"}}"#,
            r#"{"type":"message_update","message":{},"assistantMessageEvent":{"type":"toolcall_end"}}"#,
            r#"{"type":"message_end","message":{"role":"assistant","stopReason":"toolUse"}}"#,
            r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{}}"#,
            r#"{"type":"tool_execution_update","toolCallId":"c1","toolName":"bash"}"#,
            r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","isError":false}"#,
            r#"{"type":"turn_end","message":{},"toolResults":[]}"#,
            r#"{"type":"agent_end","messages":[{"role":"assistant","stopReason":"stop"}]}"#,
        ]);
        assert_eq!(
            found,
            [
                "other",
                "turn_start",
                "status",
                "message_start",
                "thinking_update",
                "message_update",
                "tool_requested",
                "message_end",
                "tool_start c1",
                "tool_update c1",
                "tool_end c1",
                "turn_end",
                "result"
            ]
        );
    }

    /// A failed answer is no result: a retry follows. Its end is where work goes on, not where success is told.
    #[test]
    fn a_retry_ends_with_the_next_attempt() {
        let found = kinds(&[
            r#"{"type":"agent_end","messages":[{"role":"assistant","stopReason":"error"}]}"#,
            r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"x"}"#,
            r#"{"type":"agent_start"}"#,
            r#"{"type":"auto_retry_end","success":true,"attempt":1}"#,
        ]);
        assert_eq!(
            found,
            [
                "other",
                "retry_start retry",
                "retry_end retry",
                "other",
                "status"
            ]
        );
    }

    #[test]
    fn a_question_is_answered_when_work_goes_on() {
        let found = kinds(&[
            r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"ask"}"#,
            r#"{"type":"extension_ui_request","id":"q1","method":"confirm","title":"?"}"#,
            r#"{"type":"extension_ui_request","id":"n1","method":"notify"}"#,
            r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"ask"}"#,
        ]);
        assert_eq!(
            found,
            [
                "tool_start c1",
                "human_wait_start q1",
                "status",
                "human_wait_end q1",
                "tool_end c1"
            ]
        );
    }

    #[test]
    fn a_run_that_goes_on_after_its_end_resumes() {
        let found = kinds(&[
            r#"{"type":"agent_end","messages":[]}"#,
            r#"{"type":"queue_update"}"#,
            r#"{"type":"agent_start"}"#,
        ]);
        assert_eq!(found, ["result", "status", "resume", "other"]);
    }
}
