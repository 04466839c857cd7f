//! JSON event streams on the command's standard output: real events instead of bytes alone, so that pauses work.
//!
//! The bytes of a stream still count as bytes (`stdout`); what its lines say comes after them at the same instant. A
//! line that does not read, or that nobody knows, costs nothing but itself.

mod claude;
mod codex;
mod pi;

use policysim_sim::run::WaitKind;
use policysim_telemetry::import::tool_wait;
use serde::Deserialize;

use super::args::StreamChoice;
use super::observation::Observed;

/// Longer lines are passed through and not looked into.
const LONGEST_LINE: usize = 16 << 20;
/// How many lines, or bytes, may come before the first telling one.
const LINES_TO_RECOGNISE: usize = 64;
const BYTES_TO_RECOGNISE: usize = 256 << 10;

/// Turns the lines of one format into events.
trait Translate {
    /// Adds what the line says; false when it is no line of this format.
    fn line(&mut self, line: &str, out: &mut Vec<Observed>) -> bool;

    /// The session that the stream has named.
    fn session(&self) -> Option<&str>;
}

/// What stdout carries, as far as is known.
pub(super) struct Stream {
    state: State,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Whether that line is too long to be looked into.
    overlong: bool,
    lines: usize,
    bytes: usize,
}

enum State {
    /// Bytes alone.
    Bytes,
    /// The first telling line will decide.
    Unknown,
    /// Events of this format.
    Events(&'static str, Box<dyn Translate>),
}

impl Stream {
    /// What was asked for.
    pub(super) fn new(choice: StreamChoice) -> Self {
        let state = match choice {
            StreamChoice::None => State::Bytes,
            StreamChoice::Auto => State::Unknown,
            StreamChoice::Pi => State::Events("pi", Box::new(pi::Pi::default())),
            StreamChoice::ClaudeCode => {
                State::Events("claude-code", Box::new(claude::Claude::default()))
            }
            StreamChoice::Codex => State::Events("codex", Box::new(codex::Codex::default())),
        };
        Self {
            state,
            line: Vec::new(),
            overlong: false,
            lines: 0,
            bytes: 0,
        }
    }

    /// Whether the bytes have to be looked into.
    pub(super) const fn is_read(&self) -> bool {
        !matches!(self.state, State::Bytes)
    }

    /// The format, once it is known.
    pub(super) const fn format(&self) -> Option<&'static str> {
        match self.state {
            State::Events(name, _) => Some(name),
            State::Bytes | State::Unknown => None,
        }
    }

    /// The session that the stream has named.
    pub(super) fn session(&self) -> Option<&str> {
        match &self.state {
            State::Events(_, translator) => translator.session(),
            State::Bytes | State::Unknown => None,
        }
    }

    /// What the lines say that these bytes complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Observed> {
        let mut out = Vec::new();
        self.bytes = self.bytes.saturating_add(bytes.len());
        let mut rest = bytes;
        while self.is_read() {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.keep(rest);
                break;
            };
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            if !std::mem::take(&mut self.overlong) {
                self.line_ended(&line, &mut out);
            }
        }
        if matches!(self.state, State::Unknown)
            && (self.lines >= LINES_TO_RECOGNISE || self.bytes >= BYTES_TO_RECOGNISE)
        {
            self.state = State::Bytes;
            self.line = Vec::new();
        }
        out
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.line.len() + piece.len() > LONGEST_LINE {
            self.overlong = true;
            self.line = Vec::new();
        }
        if !self.overlong {
            self.line.extend_from_slice(piece);
        }
    }

    fn line_ended(&mut self, line: &[u8], out: &mut Vec<Observed>) {
        self.lines += 1;
        let Ok(line) = std::str::from_utf8(line) else {
            return;
        };
        let line = line.trim();
        if !line.starts_with('{') {
            return;
        }
        if matches!(self.state, State::Unknown)
            && let Some(choice) = recognise(line)
        {
            self.state = Self::new(choice).state;
        }
        if let State::Events(_, translator) = &mut self.state {
            translator.line(line, out);
        }
    }
}

/// The fields that tell whose stream a line is of.
#[derive(Deserialize)]
struct Telling {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    cwd: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    message: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    session_id: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    thread_id: Option<serde::de::IgnoredAny>,
}

fn recognise(line: &str) -> Option<StreamChoice> {
    let telling: Telling = serde_json::from_str(line).ok()?;
    match telling.kind.as_str() {
        "session" if telling.id.and(telling.cwd).is_some() => Some(StreamChoice::Pi),
        "agent_start" | "turn_start" => Some(StreamChoice::Pi),
        "message_start" | "message_update" if telling.message.is_some() => Some(StreamChoice::Pi),
        "system" | "assistant" | "user" | "stream_event" if telling.session_id.is_some() => {
            Some(StreamChoice::ClaudeCode)
        }
        "thread.started" if telling.thread_id.is_some() => Some(StreamChoice::Codex),
        "turn.started" | "item.started" => Some(StreamChoice::Codex),
        _ => None,
    }
}

/// Whether a call of that tool is a question to a human.
fn asks_a_human(tool: &str) -> bool {
    tool_wait(tool) == WaitKind::Human
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(choice: StreamChoice, text: &str, piece: usize) -> Vec<String> {
        let mut stream = Stream::new(choice);
        text.as_bytes()
            .chunks(piece)
            .flat_map(|bytes| stream.take(bytes))
            .map(|observed| observed.kind.name().to_owned())
            .collect()
    }

    #[test]
    fn lines_may_come_in_pieces() {
        let text = "{\"type\":\"session\",\"id\":\"u1\",\"cwd\":\"/\"}\n{\"type\":\"turn_start\"}\nhello\n";
        for piece in [1, 7, 1_000] {
            assert_eq!(
                kinds(StreamChoice::Auto, text, piece),
                ["status", "turn_start"],
                "{piece}"
            );
        }
    }

    #[test]
    fn plain_text_is_bytes_after_some_lines() {
        let mut stream = Stream::new(StreamChoice::Auto);
        assert!(stream.take("progress\n".repeat(63).as_bytes()).is_empty());
        assert!(stream.is_read());
        assert!(stream.take(b"{\"type\":\"other\"}\n").is_empty());
        assert!(!stream.is_read());
        assert!(stream.take(b"{\"type\":\"turn_start\"}\n").is_empty());
    }

    #[test]
    fn every_format_is_recognised_by_its_first_line() {
        for (line, format) in [
            (
                r#"{"type":"session","version":3,"id":"u","timestamp":"t","cwd":"/"}"#,
                "pi",
            ),
            (
                r#"{"type":"system","subtype":"init","session_id":"u"}"#,
                "claude-code",
            ),
            (r#"{"type":"thread.started","thread_id":"u"}"#, "codex"),
        ] {
            let mut stream = Stream::new(StreamChoice::Auto);
            stream.take(format!("{line}\n").as_bytes());
            assert_eq!(stream.format(), Some(format), "{line}");
            assert_eq!(stream.session(), Some("u"), "{line}");
        }
    }
}
