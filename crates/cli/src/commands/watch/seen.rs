//! What was seen of the command so far, for people: ages, the last tool, bytes.

use policysim_policy::Kind;

use super::observation::Observed;

/// What was seen of the command so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// When each kind was last seen, and under which name.
    last: Vec<(Kind, u64)>,
    tool: Option<(String, u64, bool)>,
    /// Whether the last result told was a success.
    result: Option<bool>,
    stdout_bytes: u64,
    stderr_bytes: u64,
}

impl Seen {
    /// Counts bytes.
    pub(super) fn bytes(&mut self, is_stderr: bool, n_bytes: u64) {
        let total = if is_stderr {
            &mut self.stderr_bytes
        } else {
            &mut self.stdout_bytes
        };
        *total = total.saturating_add(n_bytes);
    }

    /// Notes an observation.
    pub(super) fn event(&mut self, at_ms: u64, observed: &Observed) {
        if observed.kind != Kind::RunStart {
            self.last.retain(|(kind, _)| *kind != observed.kind);
            self.last.push((observed.kind, at_ms));
        }
        match observed.kind {
            Kind::ToolStart | Kind::ToolUpdate if !observed.name.is_empty() => {
                self.tool = Some((observed.name.clone(), at_ms, true));
            }
            Kind::ToolEnd => {
                if let Some((_, at, open)) = &mut self.tool {
                    (*at, *open) = (at_ms, false);
                }
            }
            Kind::Result => self.result = Some(observed.name != "error"),
            _ => {}
        }
    }

    /// How many bytes came on standard output.
    pub(super) const fn stdout_bytes(&self) -> u64 {
        self.stdout_bytes
    }

    /// How many bytes came on standard error.
    pub(super) const fn stderr_bytes(&self) -> u64 {
        self.stderr_bytes
    }

    /// Whether the last result that the command told was a success.
    pub(super) fn succeeded(&self) -> bool {
        self.result == Some(true)
    }

    /// The kinds seen with when, the most recent first.
    pub(super) fn recent(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.last.iter().rev().copied()
    }

    /// The last tool, when it was last heard of, and whether it still runs.
    pub(super) fn tool(&self) -> Option<(&str, u64, bool)> {
        self.tool
            .as_ref()
            .map(|(name, at_ms, open)| (name.as_str(), *at_ms, *open))
    }
}
