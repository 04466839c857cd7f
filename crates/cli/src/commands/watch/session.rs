//! The session log that the command writes, as a sign of life: found, bound and followed by the fail-closed rules of
//! `policysim_policy::binding`. Only listings and sizes are looked at, never what a log says.

use std::env;
use std::ffi::OsString;

use anyhow::Result;
use policysim_policy::binding::{Binding, POLL, State};

use super::session_place::{Place, list, place};

/// A change of what is bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Change {
    /// Where the watcher stands now.
    pub(super) state: &'static str,
    /// Why.
    pub(super) reason: &'static str,
}

/// What one look found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Look {
    /// Whether the log has grown.
    pub(super) advanced: bool,
    /// What changed about the binding.
    pub(super) change: Option<Change>,
}

/// Follows the command's session log.
#[derive(Debug)]
pub(super) struct SessionWatcher {
    place: Option<Place>,
    resumes: bool,
    binding: Binding,
    every_ms: u64,
    next_ms: u64,
    first: Change,
}

impl SessionWatcher {
    /// Finds out where the command will log, and what is there already. `window_ms` is the shortest silence that
    /// kills: the log is looked at often enough for that.
    ///
    /// # Errors
    /// When `choice` names nothing that is known.
    pub(super) fn new(choice: &str, command: &[OsString], window_ms: Option<u64>) -> Result<Self> {
        let var = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let (place, launch, reason) = place(choice, command, &var)?;
        let baseline = place.as_ref().map_or_else(Vec::new, list);
        let resumes = launch.resume.is_some();
        let every_ms = window_ms.map_or(POLL.as_u64(), |window| {
            (window / 4).clamp(20, POLL.as_u64())
        });
        let binding = Binding::new(launch, baseline);
        let first = Change {
            state: state_name(binding.state()),
            reason,
        };
        Ok(Self {
            place,
            resumes,
            binding,
            every_ms,
            next_ms: every_ms,
            first,
        })
    }

    /// Where the watcher stands at the launch, and why.
    pub(super) const fn first(&self) -> Change {
        self.first
    }

    /// When to look next, ms since the start; none when nothing can come of it.
    pub(super) const fn next_ms(&self) -> Option<u64> {
        match self.binding.state() {
            State::Off | State::Disabled => None,
            State::Unbound | State::Bound(_) => Some(self.next_ms),
        }
    }

    /// Looks at the logs. `header` is the session that the command itself has named.
    pub(super) fn look(&mut self, now_ms: u64, header: Option<&str>) -> Look {
        let Some(place) = self.place.as_ref().filter(|_| self.next_ms().is_some()) else {
            return Look::default();
        };
        // From now on, not from the missed look: looks never come in bursts.
        self.next_ms = now_ms.saturating_add(self.every_ms);
        let files = list(place);
        let header = header.filter(|_| !matches!(place, Place::File(_)));
        let before = state_name(self.binding.state());
        let advanced = self.binding.poll(&files, header);
        let state = state_name(self.binding.state());
        let change = (state != before).then(|| Change {
            state,
            reason: match (before, state, self.resumes) {
                (_, "bound", false) => "one new log",
                (_, "bound", true) => "the log that is resumed",
                ("bound", _, _) => "the command names another session",
                _ if header.is_some() => {
                    "several logs could be meant, or the command names another session"
                }
                _ => "several logs could be meant",
            },
        });
        Look { advanced, change }
    }
}

const fn state_name(state: &State) -> &'static str {
    match state {
        State::Off => "off",
        State::Unbound => "unbound",
        State::Bound(_) => "bound",
        State::Disabled => "disabled",
    }
}
