//! Codex' event stream (`codex exec --json`).

use std::collections::BTreeSet;

use policysim_policy::Kind;
use serde::Deserialize;

use super::Translate;
use crate::commands::watch::observation::Observed;

/// What is read of a line; everything else is passed over.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    item: Option<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    tool: Option<String>,
}

/// Translates Codex' events.
#[derive(Debug, Default)]
pub(super) struct Codex {
    session: Option<String>,
    ended: bool,
    backs_off: bool,
    /// Calls that run.
    open: BTreeSet<String>,
}

impl Translate for Codex {
    fn line(&mut self, line: &str, out: &mut Vec<Observed>) -> bool {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            return false;
        };
        let works = line.kind == "turn.started" || line.kind.starts_with("item.");
        if works && std::mem::take(&mut self.ended) {
            out.push(Observed::new(Kind::Resume));
        }
        if line.kind != "error" && std::mem::take(&mut self.backs_off) {
            out.push(Observed::new(Kind::RetryEnd).about("retry"));
        }
        match line.kind.as_str() {
            "thread.started" => {
                self.session = line.thread_id.or(self.session.take());
                out.push(Observed::new(Kind::Status));
            }
            "turn.started" => out.push(Observed::new(Kind::TurnStart)),
            "turn.completed" | "turn.failed" => {
                self.ended = true;
                self.open.clear();
                let failed = line.kind == "turn.failed";
                let name = if failed { "error" } else { "success" };
                out.push(Observed::new(Kind::TurnEnd));
                out.push(Observed::new(Kind::Result).named(name));
            }
            "error" => out.push(self.error(line.message.as_deref())),
            kind => match (kind.strip_prefix("item."), line.item) {
                (Some(step), Some(item)) => out.push(self.item(step, &item)),
                _ => out.push(Observed::other(kind)),
            },
        }
        true
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl Codex {
    /// A failed call is tried again, as its message says; any other error only is one.
    fn error(&mut self, message: Option<&str>) -> Observed {
        if !message.is_some_and(|message| message.starts_with("Reconnecting")) {
            return Observed::other("error");
        }
        if std::mem::replace(&mut self.backs_off, true) {
            return Observed::new(Kind::Status);
        }
        Observed::new(Kind::RetryStart).about("retry")
    }

    fn item(&mut self, step: &str, item: &Item) -> Observed {
        let is_call = matches!(
            item.kind.as_str(),
            "command_execution"
                | "mcp_tool_call"
                | "web_search"
                | "file_change"
                | "collab_tool_call"
        );
        let name = item.tool.as_deref().unwrap_or(&item.kind);
        let call = |kind| Observed::new(kind).about(&item.id).named(name);
        match (step, is_call) {
            ("started", true) => {
                self.open.insert(item.id.clone());
                call(Kind::ToolStart)
            }
            ("completed", true) if self.open.remove(&item.id) => call(Kind::ToolEnd),
            // Told as finished only.
            ("completed", true) => Observed::new(Kind::Progress),
            (_, true) => call(Kind::ToolUpdate),
            (_, false) => Observed::new(match (item.kind.as_str(), step) {
                ("agent_message" | "reasoning", "completed") => Kind::MessageEnd,
                ("agent_message", _) => Kind::MessageUpdate,
                ("reasoning", _) => Kind::ThinkingUpdate,
                ("todo_list", _) => Kind::Progress,
                _ => Kind::Status,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reads() {
        let mut codex = Codex::default();
        let mut out = Vec::new();
        for line in [
            r#"{"type":"thread.started","thread_id":"u1"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls"}}"#,
            r#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","exit_code":0}}"#,
            r#"{"type":"item.completed","item":{"id":"i2","type":"file_change"}}"#,
            r#"{"type":"error","message":"Reconnecting... 1/5"}"#,
            r#"{"type":"item.completed","item":{"id":"i3","type":"agent_message","text":"x"}}"#,
            r#"{"type":"turn.completed","usage":{}}"#,
        ] {
            assert!(codex.line(line, &mut out), "{line}");
        }
        let found: Vec<String> = out
            .iter()
            .map(|o| format!("{} {}", o.kind, o.id).trim().to_owned())
            .collect();
        assert_eq!(
            found,
            [
                "status",
                "turn_start",
                "tool_start i1",
                "tool_end i1",
                "progress",
                "retry_start retry",
                "retry_end retry",
                "message_end",
                "turn_end",
                "result"
            ]
        );
    }
}
