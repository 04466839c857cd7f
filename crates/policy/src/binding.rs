//! Which session log belongs to a launched agent, and when its growth counts as activity.
//!
//! Source: the session watcher of no-mistakes (PR 842; `semantics.md` 7.2). The folder may be shared by several
//! agents, so the rules fail closed: whenever two files could be meant, none is, for good. Losing the binding kills
//! nothing by itself; standard output and process lifecycle still count.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Millis;

/// How often the folder is looked at. A credit is stamped at the look, so it comes at most this much late.
pub const POLL: Millis = Millis::from_secs(2);

/// A session log as a directory listing shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionFile {
    /// The session id in its name.
    pub id: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time, in any unit that does not repeat.
    pub mtime: i64,
}

/// How the agent was launched.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Launch {
    /// It keeps a session at all.
    pub session: bool,
    /// It keeps it somewhere else (by flag or environment), or its folder is not known.
    pub relocated: bool,
    /// The session it resumes, if it was told to.
    pub resume: Option<String>,
}

/// Where the watcher stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// No watcher: the launch rules it out.
    Off,
    /// Still looking.
    Unbound,
    /// That file is the agent's.
    Bound(SessionFile),
    /// More than one file could be meant, or the agent names another session. For good.
    Disabled,
}

/// The watcher of one launch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    state: State,
    resume: Option<String>,
    baseline: Vec<SessionFile>,
}

impl Binding {
    /// Starts from the folder's contents at the launch.
    pub fn new(launch: Launch, baseline: Vec<SessionFile>) -> Self {
        let state = if launch.session && !launch.relocated {
            State::Unbound
        } else {
            State::Off
        };
        Self {
            state,
            resume: launch.resume,
            baseline,
        }
    }

    /// Where the watcher stands.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Takes one look at the folder: `files` is all of it, `header` the session id that the agent has named by
    /// now, if it has. True when this look is credited as activity.
    #[must_use]
    pub fn poll(&mut self, files: &[SessionFile], header: Option<&str>) -> bool {
        match &self.state {
            State::Off | State::Disabled => false,
            State::Unbound => self.look(files, header),
            State::Bound(known) => {
                let (next, advanced) = follow(known, files, header);
                self.state = next;
                advanced
            }
        }
    }

    /// Looks for the one file that can be meant.
    fn look(&mut self, files: &[SessionFile], header: Option<&str>) -> bool {
        let mut candidates = files.iter().filter(|file| match &self.resume {
            Some(id) => file.id == *id,
            None => !self.baseline.iter().any(|old| old.id == file.id),
        });
        let Some(file) = candidates.next() else {
            return false;
        };
        if candidates.next().is_some() || names_another(header, file) {
            self.state = State::Disabled;
            return false;
        }
        let unchanged = self.baseline.contains(file);
        self.state = State::Bound(file.clone());
        !unchanged
    }
}

/// Follows the bound file. Other files are not looked at; a file that is missing for now is waited for.
fn follow(known: &SessionFile, files: &[SessionFile], header: Option<&str>) -> (State, bool) {
    if names_another(header, known) {
        return (State::Disabled, false);
    }
    match files.iter().find(|file| file.id == known.id) {
        Some(file) => (State::Bound(file.clone()), file != known),
        None => (State::Bound(known.clone()), false),
    }
}

fn names_another(header: Option<&str>, file: &SessionFile) -> bool {
    header.is_some_and(|id| id != file.id)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn file(id: &str, size: u64) -> SessionFile {
        SessionFile {
            id: id.to_string(),
            size,
            mtime: 0,
        }
    }

    fn fresh(baseline: Vec<SessionFile>) -> Binding {
        let launch = Launch {
            session: true,
            ..Launch::default()
        };
        Binding::new(launch, baseline)
    }

    /// 7.2.3: the early header naming another session disables.
    #[test]
    fn a_header_that_names_another_session_disables() {
        let mut binding = fresh(vec![]);
        assert!(!binding.poll(&[file("u1", 1)], Some("u2")));
        assert_eq!(binding.state(), &State::Disabled);
        assert!(!binding.poll(&[file("u1", 9)], None));
    }

    /// 7.2.5: a bound file that is missing for a while is skipped, and later new files are not looked at.
    #[test]
    fn a_bound_file_may_be_missing() {
        let mut binding = fresh(vec![file("u0", 3)]);
        assert!(binding.poll(&[file("u0", 3), file("u1", 1)], None));
        assert!(!binding.poll(&[file("u0", 3), file("u2", 1)], None));
        assert!(binding.poll(&[file("u1", 2), file("u2", 1)], Some("u1")));
        assert_eq!(binding.state(), &State::Bound(file("u1", 2)));
    }
}
