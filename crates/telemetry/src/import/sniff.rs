//! Which format a source has, told from its content, never from its name.

use super::Format;
use super::json::{self, Cursor, Json};
use super::lines::{lossy, without_mark};

/// What the first bytes of a source look like.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sniffed {
    /// A format that is read.
    Format(Format),
    /// None of them; what was found instead, in words, without any of its content.
    Unknown(String),
}

impl Sniffed {
    /// The format, if it is one.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Format(format) => Some(*format),
            Self::Unknown(_) => None,
        }
    }
}

/// How many names a description of an unknown source gives.
const NAMES_SHOWN: usize = 5;

/// The format of a source that begins with `head`.
///
/// Give at least the first 50 lines, or the whole source when it is shorter: bookkeeping may stand in front of the
/// first telling record. A head cut in the middle of a line, or of a document, is fine.
pub fn sniff(head: &[u8]) -> Sniffed {
    let head = without_mark(head);
    let text = lossy(head);
    if text.trim().is_empty() {
        return Sniffed::Unknown(
            if text.is_empty() {
                "empty"
            } else {
                "only white space"
            }
            .to_owned(),
        );
    }
    if let Some(format) = document(&text) {
        return Sniffed::Format(format);
    }
    match lines(&text) {
        // Zeros that a crash left in a log cost their line alone; without any record they are no log at all.
        Sniffed::Unknown(_) if head.contains(&0) => Sniffed::Unknown("binary data".to_owned()),
        sniffed => sniffed,
    }
}

/// The first telling record decides; without one, bookkeeping that only one format writes.
fn lines(text: &str) -> Sniffed {
    let mut hint = None;
    let mut types = Vec::new();
    let mut n_objects = 0;
    for line in text.split('\n') {
        let found = json::values(line);
        for value in found.iter().filter(|value| value.is_object()) {
            if let Some(format) = telling(value).or_else(|| document_of(value)) {
                return Sniffed::Format(format);
            }
            hint = hint.or_else(|| bookkeeping(value));
            n_objects += 1;
            if let Some(kind) = value.field("type").and_then(Json::text) {
                note_name(&mut types, &kind);
            }
        }
    }
    if let Some(format) = hint {
        return Sniffed::Format(format);
    }
    match (n_objects, types.is_empty()) {
        (0, _) => unknown(text),
        (_, true) => Sniffed::Unknown("JSON objects without a type".to_owned()),
        (_, false) => Sniffed::Unknown(format!("JSON lines of type {}", types.join(", "))),
    }
}

/// What a text is in which no complete JSON object was found.
fn unknown(text: &str) -> Sniffed {
    let mut keys = Vec::new();
    let mut cursor = Cursor::inside(text.trim_start(), b'{');
    while let Some(key) = cursor.value() {
        if let Some(key) = key.text() {
            note_name(&mut keys, &key);
        }
        if cursor.value().is_none() {
            break;
        }
    }
    Sniffed::Unknown(if keys.is_empty() {
        "text that is no JSON object".to_owned()
    } else {
        format!("a JSON document with the keys {}", keys.join(", "))
    })
}

/// Adds a name to a list for people, if it looks like a name and not like text.
fn note_name(names: &mut Vec<String>, name: &str) {
    let is_name = (1..=40).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte));
    let name = if is_name { name } else { "(unnamed)" };
    if names.len() < NAMES_SHOWN && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// The format of a document that `text` is, or begins with.
fn document(text: &str) -> Option<Format> {
    let mut cursor = Cursor::inside(text.trim_start(), b'{');
    let mut keys = DocumentKeys::default();
    while let Some(key) = cursor.value() {
        let key = key.text()?;
        let value = cursor.value();
        keys.see(&key, value, cursor.rest());
        if let Some(format) = keys.format() {
            return Some(format);
        }
        value?;
    }
    None
}

/// The same of a complete object.
fn document_of(object: Json<'_>) -> Option<Format> {
    let mut keys = DocumentKeys::default();
    for (key, value) in object.entries() {
        keys.see(&key, Some(value), "");
    }
    keys.format()
}

/// What the keys of a document say.
#[derive(Debug, Default)]
struct DocumentKeys {
    messages: bool,
    gemini: bool,
    opencode: bool,
}

impl DocumentKeys {
    /// Notes a key with its value, or with the text at which the value was cut.
    fn see(&mut self, key: &str, value: Option<Json<'_>>, cut: &str) {
        match key {
            "messages" => self.messages |= value.map_or(cut.starts_with('['), Json::is_list),
            "projectHash" | "lastUpdated" | "startTime" => self.gemini = true,
            "info" => {
                let [id, project, time] = match value {
                    Some(info) => info.fields(["id", "projectID", "time"]),
                    None => [None; 3],
                };
                let id = id.and_then(Json::text);
                self.opencode |=
                    id.is_some_and(|id| id.starts_with("ses")) || project.and(time).is_some();
            }
            _ => {}
        }
    }

    fn format(&self) -> Option<Format> {
        match (self.messages, self.gemini, self.opencode) {
            (true, true, false) => Some(Format::Gemini),
            (true, false, true) => Some(Format::Opencode),
            _ => None,
        }
    }
}

/// The format of a record that only one format writes.
fn telling(record: Json<'_>) -> Option<Format> {
    let [
        kind,
        uuid,
        session,
        message,
        subtype,
        payload,
        data,
        id,
        parent,
        cwd,
    ] = record.fields([
        "type",
        "uuid",
        "sessionId",
        "message",
        "subtype",
        "payload",
        "data",
        "id",
        "parentId",
        "cwd",
    ]);
    let kind = kind?.text()?;
    let role = || message.and_then(|message| message.field("role"));
    match kind.as_ref() {
        "user" | "assistant" | "system"
            if uuid.or(session).is_some() && message.or(subtype).is_some() =>
        {
            Some(Format::Claude)
        }
        "session_meta" | "turn_context" | "event_msg" | "response_item" | "compacted"
            if payload.is_some_and(Json::is_object) =>
        {
            Some(Format::Codex)
        }
        "session" if id.and(cwd).is_some() => Some(Format::Pi),
        "message" if id.or(parent).is_some() && role().is_some() => Some(Format::Pi),
        other if data.is_some_and(Json::is_object) && id.is_some() => {
            let (family, _) = other.split_once('.').unwrap_or((other, ""));
            let known = [
                "abort",
                "assistant",
                "hook",
                "permission",
                "session",
                "system",
                "tool",
                "user",
            ];
            known.contains(&family).then_some(Format::Copilot)
        }
        _ => None,
    }
}

/// The format of bookkeeping that only one format writes, though it says nothing about time.
fn bookkeeping(record: Json<'_>) -> Option<Format> {
    let [kind, leaf, session, snapshot] =
        record.fields(["type", "leafUuid", "sessionId", "snapshot"]);
    match kind?.text()?.as_ref() {
        "summary" if leaf.is_some() => Some(Format::Claude),
        "file-history-snapshot" if snapshot.is_some() => Some(Format::Claude),
        "queue-operation" | "progress" | "pr-link" | "ai-title" | "attachment"
            if session.is_some() =>
        {
            Some(Format::Claude)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: Result<Format, &str>) {
        let found = sniff(head.as_bytes());
        match expected {
            Ok(format) => assert_eq!(found, Sniffed::Format(format), "{head}"),
            Err(words) => assert_eq!(found, Sniffed::Unknown(words.to_owned()), "{head}"),
        }
    }

    #[test]
    fn documents_are_told_by_shape_even_when_cut() {
        check(
            r#"{"sessionId":"a","projectHash":"h","messages":[{"id"#,
            Ok(Format::Gemini),
        );
        check(
            "{\n \"info\": {\"id\": \"ses_1\"},\n \"messages\": [",
            Ok(Format::Opencode),
        );
        check(
            r#"{"messages":[],"info":{"id":"ses_1"}}"#,
            Ok(Format::Opencode),
        );
        check(
            r#"{"a":1,"messages":[]"#,
            Err("a JSON document with the keys a, messages"),
        );
    }

    #[test]
    fn bookkeeping_alone_is_a_hint() {
        check(
            r#"{"type":"summary","summary":"S","leafUuid":"x"}"#,
            Ok(Format::Claude),
        );
    }

    #[test]
    fn unknown_sources_are_described_without_content() {
        check("", Err("empty"));
        check(" \n", Err("only white space"));
        check("\u{89}PNG\0", Err("binary data"));
        check("hello there", Err("text that is no JSON object"));
        check(
            r#"{"type":"secret words in here"}"#,
            Err("JSON lines of type (unnamed)"),
        );
        check(
            "{\"type\":\"a\"}\n{\"type\":\"b\"}\n{\"type\":\"a\"}",
            Err("JSON lines of type a, b"),
        );
        check(r#"{"x":1}"#, Err("JSON objects without a type"));
    }
}
