//! Where a command keeps its session log, as far as its name, its words and its environment tell, and the logs there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use policysim_policy::binding::{Launch, SessionFile};
use policysim_policy::nearest;

/// What `--session` can name beside a file.
const NAMES: [&str; 5] = ["auto", "none", "pi", "claude-code", "codex"];

/// The id in the names of Claude Code's and Codex' logs is a UUID of this length.
const UUID_LENGTH: usize = 36;

/// How many of Codex' folders, one per day, are looked at.
const RECENT_DAYS: usize = 2;

/// Whose log it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Harness {
    Pi,
    ClaudeCode,
    Codex,
}

/// Where logs are looked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// The logs of a harness, directly in this folder.
    Folder(Harness, PathBuf),
    /// Codex' folders by year, month and day below this one.
    Days(PathBuf),
    /// This file alone.
    File(PathBuf),
}

/// Where the command logs, how it was launched as far as that matters, and in words why.
pub(super) fn place(
    choice: &str,
    command: &[OsString],
    var: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(Option<Place>, Launch, &'static str)> {
    let off = |reason| Ok((None, Launch::default(), reason));
    let program = command
        .first()
        .and_then(|program| Path::new(program).file_name());
    let harness = match choice {
        "none" => return off("not asked for"),
        "pi" => Harness::Pi,
        "claude-code" => Harness::ClaudeCode,
        "codex" => Harness::Codex,
        "auto" => match program.and_then(OsStr::to_str) {
            Some("pi") => Harness::Pi,
            Some("claude") => Harness::ClaudeCode,
            Some("codex") => Harness::Codex,
            _ => return off("the command's name is no known agent's"),
        },
        file => {
            let path = PathBuf::from(file);
            let is_path = file.contains('/') || path.extension().is_some() || path.exists();
            if !is_path {
                let hint = nearest(file, NAMES)
                    .map_or_else(String::new, |name| format!(", did you mean {name}?"));
                bail!(
                    "--session {file}: expected one of {} or a file{hint}",
                    NAMES.join(", ")
                );
            }
            let launch = Launch {
                session: true,
                relocated: false,
                resume: Some(file.to_owned()),
            };
            return Ok((Some(Place::File(path)), launch, "this file was named"));
        }
    };
    let words: Vec<&str> = command
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    let launch = launch(harness, &words, var);
    if !launch.session {
        return Ok((None, launch, "the command keeps no session"));
    }
    if launch.relocated {
        return Ok((None, launch, "the command keeps its sessions elsewhere"));
    }
    match folder(harness, var) {
        Some(place) => Ok((Some(place), launch, "looking for the command's log")),
        None => Ok((
            None,
            Launch {
                relocated: true,
                ..launch
            },
            "the agent's folder is not known",
        )),
    }
}

/// What the words of the command line say about its session.
fn launch(harness: Harness, words: &[&str], var: &dyn Fn(&str) -> Option<OsString>) -> Launch {
    let has = |flag: &str| {
        words.iter().any(|word| {
            *word == flag
                || word
                    .strip_prefix(flag)
                    .is_some_and(|rest| rest.starts_with('='))
        })
    };
    let value = |flags: &[&str]| {
        words.iter().enumerate().find_map(|(at, word)| {
            flags
                .iter()
                .find_map(|flag| match word.strip_prefix(flag)? {
                    "" => words
                        .get(at + 1)
                        .filter(|next| !next.starts_with('-'))
                        .map(|next| (*next).to_owned()),
                    rest => rest.strip_prefix('=').map(ToOwned::to_owned),
                })
        })
    };
    match harness {
        Harness::Pi => Launch {
            session: !has("--no-session"),
            relocated: has("--session-dir") || var("PI_CODING_AGENT_SESSION_DIR").is_some(),
            resume: value(&["--session"])
                .map(|session| id_of(harness, &session).unwrap_or(session)),
        },
        Harness::ClaudeCode => Launch {
            session: !has("--no-session-persistence"),
            relocated: false,
            resume: value(&["--resume", "-r"]),
        },
        Harness::Codex => Launch {
            session: !has("--ephemeral"),
            relocated: false,
            resume: words
                .iter()
                .position(|word| *word == "resume")
                .and_then(|at| words.get(at + 1))
                .filter(|id| !id.starts_with('-'))
                .map(|id| (*id).to_owned()),
        },
    }
}

/// Where the harness keeps the logs of the working directory.
fn folder(harness: Harness, var: &dyn Fn(&str) -> Option<OsString>) -> Option<Place> {
    let home = |below: &str| Some(PathBuf::from(var("HOME")?).join(below));
    let configured = |name: &str, below: &str| var(name).map(PathBuf::from).or_else(|| home(below));
    let directory = fs::canonicalize(env::current_dir().ok()?).ok()?;
    let directory = directory.to_str()?;
    Some(match harness {
        Harness::Pi => {
            let name = directory.strip_prefix('/').unwrap_or(directory);
            let name = name.replace(['/', '\\', ':'], "-");
            let agent = configured("PI_CODING_AGENT_DIR", ".pi/agent")?;
            Place::Folder(harness, agent.join("sessions").join(format!("--{name}--")))
        }
        Harness::ClaudeCode => {
            let name = directory.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            let agent = configured("CLAUDE_CONFIG_DIR", ".claude")?;
            Place::Folder(harness, agent.join("projects").join(name))
        }
        Harness::Codex => Place::Days(configured("CODEX_HOME", ".codex")?.join("sessions")),
    })
}

/// The logs at that place. A folder that is not there yet is empty.
pub(super) fn list(place: &Place) -> Vec<SessionFile> {
    match place {
        Place::Folder(harness, folder) => logs_in(*harness, folder),
        Place::Days(root) => recent_days(root)
            .iter()
            .flat_map(|day| logs_in(Harness::Codex, day))
            .collect(),
        Place::File(path) => session_file(path.to_string_lossy().into_owned(), path)
            .into_iter()
            .collect(),
    }
}

fn logs_in(harness: Harness, folder: &Path) -> Vec<SessionFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut logs: Vec<SessionFile> = entries
        .filter_map(|entry| {
            let id = id_of(harness, entry.file_name().to_str()?)?;
            session_file(id, &entry.path())
        })
        .collect();
    logs.sort_by(|a, b| a.id.cmp(&b.id));
    logs
}

fn session_file(id: String, path: &Path) -> Option<SessionFile> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let ns = meta.mtime().saturating_mul(1_000_000_000);
    Some(SessionFile {
        id,
        size: meta.len(),
        mtime: ns.saturating_add(meta.mtime_nsec()),
    })
}

/// The session's id in the name of a log.
fn id_of(harness: Harness, name: &str) -> Option<String> {
    let stem = name.rsplit('/').next()?.strip_suffix(".jsonl")?;
    let id = match harness {
        Harness::Pi => stem.rsplit_once('_')?.1,
        Harness::ClaudeCode => stem,
        Harness::Codex => {
            let dated = stem.strip_prefix("rollout-")?;
            dated.get(dated.len().checked_sub(UUID_LENGTH)?..)?
        }
    };
    let is_id = harness == Harness::Pi || id.len() == UUID_LENGTH && id.matches('-').count() == 4;
    (is_id && !id.is_empty()).then(|| id.to_owned())
}

/// The last folders of days below `root`, whose names sort by date.
fn recent_days(root: &Path) -> Vec<PathBuf> {
    let mut days = vec![root.to_owned()];
    for _level in ["year", "month", "day"] {
        let mut next: Vec<PathBuf> = days
            .iter()
            .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        next.sort();
        let skipped = next.len().saturating_sub(RECENT_DAYS);
        days = next.split_off(skipped);
    }
    days
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn found(choice: &str, line: &str) -> (Option<Place>, Launch) {
        let var = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
        let (place, launch, _) = place(choice, &words(line), &var).unwrap();
        (place, launch)
    }

    #[test]
    fn the_command_line_says_whether_and_where_it_logs() {
        assert_eq!(found("auto", "make all").0, None);
        assert_eq!(found("none", "pi -p x").0, None);
        assert_eq!(found("auto", "pi --no-session -p x").0, None);
        assert_eq!(found("auto", "/usr/bin/pi --session-dir=/x").0, None);
        let (place, launch) = found("auto", "/usr/bin/pi --session u7 -p x");
        assert_eq!(launch.resume.as_deref(), Some("u7"));
        let Some(Place::Folder(Harness::Pi, folder)) = place else {
            panic!("{place:?}")
        };
        assert!(folder.starts_with("/h/.pi/agent/sessions"), "{folder:?}");
        let (_, launch) = found("auto", "claude -p x --resume=abc");
        assert_eq!(launch.resume.as_deref(), Some("abc"));
        let (place, launch) = found("auto", "codex exec resume abc go");
        assert_eq!(launch.resume.as_deref(), Some("abc"));
        assert_eq!(place, Some(Place::Days("/h/.codex/sessions".into())));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest() {
        let var = |_: &str| None;
        let error = place("claud-code", &words("x"), &var)
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("did you mean claude-code?"), "{error}");
    }

    #[test]
    fn ids_stand_in_the_names_of_logs() {
        let uuid = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000";
        for (harness, name, id) in [
            (
                Harness::Pi,
                format!("2026-01-02T03-04-05Z_{uuid}.jsonl"),
                Some(uuid),
            ),
            (Harness::Pi, "notes.jsonl".to_owned(), None),
            (Harness::ClaudeCode, format!("{uuid}.jsonl"), Some(uuid)),
            (Harness::ClaudeCode, "agent-1a2b.jsonl".to_owned(), None),
            (
                Harness::Codex,
                format!("rollout-2026-01-02T03-04-05-{uuid}.jsonl"),
                Some(uuid),
            ),
            (Harness::Codex, "rollout-x.jsonl".to_owned(), None),
        ] {
            assert_eq!(id_of(harness, &name).as_deref(), id, "{name}");
        }
    }
}
