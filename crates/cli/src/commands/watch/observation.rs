//! What `watch` sees of the command: an event with its time, as the core is fed it and the record keeps it.

use policysim_policy::{CallId, Event, Kind, Millis, Outcome};

/// The longest name that is kept, in characters.
const LONGEST_NAME: usize = 100;

/// Something observed, without its time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Observed {
    /// What.
    pub(super) kind: Kind,
    /// Which call, question or wait it is about; empty when it has no id.
    pub(super) id: String,
    /// The tool's name, the name of an `other`, or `stderr`.
    pub(super) name: String,
    /// An announced length; of a `run_start` the caller's deadline.
    pub(super) announced_ms: Option<u64>,
    /// Of a `run_end`: how.
    pub(super) outcome: Option<Outcome>,
    /// How many bytes arrived.
    pub(super) n_bytes: u64,
    /// Whether the tool can ask a human.
    pub(super) may_ask: bool,
}

impl Observed {
    /// Something of that kind with nothing else said.
    pub(super) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            id: String::new(),
            name: String::new(),
            announced_ms: None,
            outcome: None,
            n_bytes: 0,
            may_ask: false,
        }
    }

    /// An `other` of that name.
    pub(super) fn other(name: &str) -> Self {
        Self::new(Kind::Other).named(name)
    }

    /// Bytes on one of the pipes; those on stderr say so.
    pub(super) fn bytes(n_bytes: u64, stderr: bool) -> Self {
        let mut bytes = Self::new(Kind::Stdout);
        bytes.n_bytes = n_bytes;
        if stderr {
            bytes.name.push_str("stderr");
        }
        bytes
    }

    /// The same about the thing of that id.
    pub(super) fn about(mut self, id: &str) -> Self {
        self.id = short(id);
        self
    }

    /// The same with a name.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = short(name);
        self
    }

    /// The same with an announced length.
    pub(super) const fn announced(mut self, ms: Option<u64>) -> Self {
        self.announced_ms = ms;
        self
    }

    /// The same with an end.
    pub(super) const fn ending(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// The event as the core takes it; a replay makes the same one of the record.
    pub(super) fn event(&self) -> Event<'_> {
        let mut event = Event::new(self.kind)
            .with_id(CallId::from_text(&self.id))
            .with_name(&self.name);
        event.announced = self.announced_ms.map(Millis::new);
        event.outcome = self.outcome;
        event.may_ask = self.may_ask;
        event
    }
}

/// A name without control characters, cut: names are short words that programs choose.
fn short(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(LONGEST_NAME)
        .collect()
}
