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
/// The stream is recognised by the first line that only one known format has, if it is one of so many first lines and
/// ends within so many first bytes. Only whole lines count: how a pipe cuts the bytes changes nothing.
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
    /// Until the format is known: how many lines have ended, and how many bytes have come.
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
        let mut rest = bytes;
        while self.is_read() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            self.keep(&rest[..end.unwrap_or(rest.len())]);
            self.count(end.map_or(rest.len(), |end| end + 1));
            let Some(end) = end else {
                break;
            };
            rest = &rest[end + 1..];
            self.line_ended(&mut out);
        }
        out
    }

    /// What the last line says, if no line feed ended it.
    pub(super) fn end(&mut self) -> Vec<Observed> {
        let mut out = Vec::new();
        if self.is_read() && !self.line.is_empty() {
            self.line_ended(&mut out);
        }
        out
    }

    /// Gives up when so many bytes have come and nothing is recognised.
    fn count(&mut self, n_bytes: usize) {
        if matches!(self.state, State::Unknown) {
            self.bytes = self.bytes.saturating_add(n_bytes);
            if self.bytes > BYTES_TO_RECOGNISE {
                self.give_up();
            }
        }
    }

    fn give_up(&mut self) {
        self.state = State::Bytes;
        self.line = Vec::new();
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

    fn line_ended(&mut self, out: &mut Vec<Observed>) {
        let line = std::mem::take(&mut self.line);
        let overlong = std::mem::take(&mut self.overlong);
        let line = std::str::from_utf8(&line).unwrap_or_default().trim();
        if !overlong && line.starts_with('{') {
            if matches!(self.state, State::Unknown)
                && let Some(choice) = recognise(line)
            {
                self.state = Self::new(choice).state;
            }
            if let State::Events(_, translator) = &mut self.state {
                translator.line(line, out);
            }
        }
        if matches!(self.state, State::Unknown) {
            self.lines += 1;
            if self.lines >= LINES_TO_RECOGNISE {
                self.give_up();
            }
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
    use proptest::prelude::*;

    use super::*;

    fn kinds(choice: StreamChoice, text: &str, piece: usize) -> Vec<String> {
        let mut stream = Stream::new(choice);
        text.as_bytes()
            .chunks(piece)
            .flat_map(|bytes| stream.take(bytes))
            .map(|observed| observed.kind.name().to_owned())
            .collect()
    }

    /// Everything that can be told of a stream: its format, whether it is still read, its session, and what it said.
    fn read(pieces: &[&[u8]]) -> (Option<&'static str>, bool, Option<String>, Vec<Observed>) {
        let mut stream = Stream::new(StreamChoice::Auto);
        let mut said: Vec<_> = pieces.iter().flat_map(|piece| stream.take(piece)).collect();
        let is_read = stream.is_read();
        said.extend(stream.end());
        let session = stream.session().map(ToOwned::to_owned);
        (stream.format(), is_read, session, said)
    }

    const HEAD: &str = r#"{"type":"session","id":"u1","cwd":"/"}"#;
    const TURN: &str = r#"{"type":"turn_start"}"#;

    /// Lines that a stream may begin with, telling or not.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("npm warn old".to_owned()),
            Just(String::new()),
            Just("{\"type\":\"banner\"}".to_owned()),
            Just("{ no JSON".to_owned()),
            Just("{\"type\":\"session\",\"id\":\"\u{e9}\u{20ac}\",\"cwd\":\"/\"}\r".to_owned()),
            Just(TURN.to_owned()),
            Just(r#"{"type":"thread.started","thread_id":"u2"}"#.to_owned()),
            Just(r#"{"type":"system","subtype":"init","session_id":"u3"}"#.to_owned()),
            (0..40_000_usize).prop_map(|n| "x".repeat(n)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// However the same bytes are cut, the same stream is recognised and the same events are read.
        #[test]
        fn the_cuts_of_the_bytes_change_nothing(
            lines in prop::collection::vec(line(), 0..80),
            ends_in_a_line_feed: bool,
            mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            step in 1..70_000_usize,
        ) {
            let mut text = lines.join("\n");
            if ends_in_a_line_feed {
                text.push('\n');
            }
            let bytes = text.as_bytes();
            let whole = read(&[bytes]);
            let steps: Vec<&[u8]> = bytes.chunks(step).collect();
            prop_assert_eq!(&read(&steps), &whole);
            cuts.sort_by_key(|cut| cut.index(bytes.len() + 1));
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                let to = cut.index(bytes.len() + 1);
                pieces.push(&bytes[from..to]);
                from = to;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(&read(&pieces), &whole);
        }
    }

    /// Every way to cut a short text in three.
    #[test]
    fn every_cut_of_a_short_text_reads_the_same() {
        let text = format!("warn \u{e9}\n{{\"type\":\"x\"}}\n{HEAD}\r\n\n{TURN}");
        let bytes = text.as_bytes();
        let whole = read(&[bytes]);
        assert_eq!((whole.0, whole.2.as_deref()), (Some("pi"), Some("u1")));
        assert_eq!(whole.3.len(), 2);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(read(&pieces), whole, "{first} {second}");
            }
        }
    }

    /// The first telling line counts if it is the sixty-fourth, and if its line feed is the last of the first bytes.
    #[test]
    fn recognition_ends_at_the_same_line_and_byte_for_every_cut() {
        for (n_lines, format) in [(63, Some("pi")), (64, None)] {
            let text = format!("{}{HEAD}\n", "-\n".repeat(n_lines));
            for piece in [1, 3, 64, 4_096] {
                let pieces: Vec<&[u8]> = text.as_bytes().chunks(piece).collect();
                assert_eq!(read(&pieces).0, format, "{n_lines} {piece}");
            }
        }
        let foreign = BYTES_TO_RECOGNISE - HEAD.len() - 2;
        for (n_bytes, format) in [(foreign, Some("pi")), (foreign + 1, None)] {
            let text = format!("{}\n{HEAD}\n", "x".repeat(n_bytes));
            for piece in [1, 999, 65_536, 1 << 20] {
                let pieces: Vec<&[u8]> = text.as_bytes().chunks(piece).collect();
                assert_eq!(read(&pieces).0, format, "{n_bytes} {piece}");
            }
        }
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
