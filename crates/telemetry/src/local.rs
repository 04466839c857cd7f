//! The word `local`: where the six agents keep their logs on this machine by default.
//!
//! | agent | folder | moved by |
//! |---|---|---|
//! | `claude` | `~/.claude/projects` | `CLAUDE_CONFIG_DIR` (comma-separated) |
//! | `codex` | `~/.codex/sessions`, `archived_sessions` | `CODEX_HOME` |
//! | `copilot` | `~/.copilot/session-state`, `history-session-state` | `COPILOT_HOME` |
//! | `gemini` | `~/.gemini/tmp/*/chats` | `GEMINI_CLI_HOME` (stands for `~`) |
//! | `opencode` | `~/.local/share/opencode/storage` | `XDG_DATA_HOME` |
//! | `pi` | `~/.pi/agent/sessions` | `PI_CODING_AGENT_DIR`, `PI_CODING_AGENT_SESSION_DIR` |
//!
//! Only files that look like logs by their names are taken, so that an agent's other files cause no warnings. Sources
//! are named by the agent and their path below its folder. `OpenCode` spreads a session over one file per message and
//! part; they are put together as its own export does. Sessions that newer versions keep in `opencode.db` have to be
//! exported by it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::TelemetryError;
use crate::walk::{self, Found, Origin};

/// What was found of one agent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LocalFolder {
    /// The agent: `claude`, `codex`, `copilot`, `gemini`, `opencode`, `pi`.
    pub agent: &'static str,
    /// The folder looked at; it may be missing.
    pub path: PathBuf,
    /// How many logs lie there.
    pub n_logs: usize,
    /// Their size on disk.
    pub n_bytes: u64,
    /// What should be said about it, in one sentence.
    pub note: Option<String>,
}

/// Looks for the agents' logs, in the order of their names.
pub fn locate_local() -> Vec<LocalFolder> {
    find(&|name| std::env::var_os(name)).folders
}

/// What was found, for the user and for the import.
pub(crate) struct Local {
    pub(crate) folders: Vec<LocalFolder>,
    pub(crate) files: Vec<Found>,
}

/// The files of `local`, or an error that says where was looked.
pub(crate) fn files(
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Found>, TelemetryError> {
    let local = find(environment);
    if local.files.is_empty() {
        let looked: Vec<String> = local
            .folders
            .iter()
            .map(|folder| {
                let note = folder
                    .note
                    .as_deref()
                    .map_or_else(String::new, |note| format!(" ({note})"));
                format!("{} in '{}'{note}", folder.agent, folder.path.display())
            })
            .collect();
        return Err(TelemetryError::NothingLocal {
            looked: looked.join(", "),
        });
    }
    Ok(local.files)
}

/// Looks in every agent's folders; `environment` gives a variable.
pub(crate) fn find(environment: &dyn Fn(&str) -> Option<OsString>) -> Local {
    let mut local = Local {
        folders: Vec::new(),
        files: Vec::new(),
    };
    for (agent, root, logs) in roots(environment) {
        let mut files = match logs {
            Logs::Below(is_log) => below(&root, is_log),
            Logs::Opencode => opencode_sessions(&root),
        };
        let note = (agent == "opencode")
            .then(|| opencode_note(&root))
            .flatten();
        for file in &mut files {
            file.name = format!("{agent}/{}", file.name);
        }
        local.folders.push(LocalFolder {
            agent,
            path: root,
            n_logs: files.len(),
            n_bytes: files.iter().map(|file| file.n_bytes).sum(),
            note,
        });
        local.files.append(&mut files);
    }
    walk::order(&mut local.files);
    local
}

/// How an agent's logs are told from its other files.
#[derive(Clone, Copy)]
enum Logs {
    /// Files below the folder whose relative name passes.
    Below(fn(&str) -> bool),
    /// `OpenCode`'s storage.
    Opencode,
}

fn roots(environment: &dyn Fn(&str) -> Option<OsString>) -> Vec<(&'static str, PathBuf, Logs)> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let home = PathBuf::from(
        set("HOME")
            .or_else(|| set("USERPROFILE"))
            .unwrap_or_default(),
    );
    let or_home =
        |name: &str, below: &str| set(name).map_or_else(|| home.join(below), PathBuf::from);
    let mut roots = Vec::new();
    let claude = set("CLAUDE_CONFIG_DIR").map(|value| value.to_string_lossy().into_owned());
    match &claude {
        Some(folders) => {
            for folder in folders
                .split(',')
                .map(str::trim)
                .filter(|folder| !folder.is_empty())
            {
                roots.push((
                    "claude",
                    Path::new(folder).join("projects"),
                    Logs::Below(is_json_lines),
                ));
            }
        }
        None => roots.push((
            "claude",
            home.join(".claude/projects"),
            Logs::Below(is_json_lines),
        )),
    }
    let codex = or_home("CODEX_HOME", ".codex");
    for folder in ["sessions", "archived_sessions"] {
        roots.push(("codex", codex.join(folder), Logs::Below(is_json_lines)));
    }
    let copilot = or_home("COPILOT_HOME", ".copilot");
    for folder in ["session-state", "history-session-state"] {
        roots.push(("copilot", copilot.join(folder), Logs::Below(is_json_lines)));
    }
    let gemini = set("GEMINI_CLI_HOME").map_or_else(|| home.clone(), PathBuf::from);
    roots.push(("gemini", gemini.join(".gemini/tmp"), Logs::Below(is_chat)));
    let data = or_home("XDG_DATA_HOME", ".local/share");
    roots.push(("opencode", data.join("opencode/storage"), Logs::Opencode));
    let pi = set("PI_CODING_AGENT_SESSION_DIR").map_or_else(
        || or_home("PI_CODING_AGENT_DIR", ".pi/agent").join("sessions"),
        PathBuf::from,
    );
    roots.push(("pi", pi, Logs::Below(is_json_lines)));
    roots
}

fn is_json_lines(name: &str) -> bool {
    [".jsonl", ".jsonl.gz", ".jsonl.zst"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn is_chat(name: &str) -> bool {
    name.split('/').rev().nth(1) == Some("chats")
        && [".json", ".jsonl"].iter().any(|end| name.ends_with(end))
}

/// The logs below a folder; none when it is missing.
fn below(root: &Path, is_log: fn(&str) -> bool) -> Vec<Found> {
    let mut files = walk::walk_argument(root).unwrap_or_default();
    files.retain(|file| is_log(&file.name));
    files
}

/// One source per session of `OpenCode`'s storage (`session/PROJECT/SESSION.json`).
fn opencode_sessions(storage: &Path) -> Vec<Found> {
    let mut files = walk::walk_argument(&storage.join("session")).unwrap_or_default();
    files.retain(|file| {
        file.path
            .extension()
            .is_some_and(|extension| extension == "json")
    });
    for file in &mut files {
        file.origin = Origin::OpencodeSession;
    }
    files
}

fn opencode_note(storage: &Path) -> Option<String> {
    let database = storage.parent()?.join("opencode.db");
    database.is_file().then(|| {
        "sessions in opencode.db are not read: write them out with `opencode export`".to_owned()
    })
}

/// The export document of the session whose file in `OpenCode`'s storage is `session`:
/// `{"info": …, "messages": [{"info": …, "parts": […]}]}`, messages and parts in the order of their ids, which is
/// the order in which they came to be.
pub(crate) fn opencode_document(session: &Path) -> io::Result<Vec<u8>> {
    let id = session.file_stem().unwrap_or_default();
    let storage = session.ancestors().nth(3).unwrap_or(session);
    let mut document = b"{\"info\":\n".to_vec();
    document.append(&mut fs::read(session)?);
    document.extend_from_slice(b",\n\"messages\":[");
    for (number, (message, bytes)) in json_files(&storage.join("message").join(id))?
        .into_iter()
        .enumerate()
    {
        document.extend_from_slice(if number == 0 {
            b"\n{\"info\":"
        } else {
            b",\n{\"info\":"
        });
        document.extend_from_slice(&bytes);
        document.extend_from_slice(b",\"parts\":[");
        let parts = json_files(&storage.join("part").join(message))?;
        let parts: Vec<Vec<u8>> = parts.into_values().collect();
        document.extend_from_slice(&parts.join(&b",\n"[..]));
        document.extend_from_slice(b"]}");
    }
    document.extend_from_slice(b"\n]}\n");
    Ok(document)
}

/// The contents of the `.json` files in a folder, by their names without the ending; none when it is missing.
fn json_files(folder: &Path) -> io::Result<BTreeMap<OsString, Vec<u8>>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
            && let Some(stem) = path.file_stem()
        {
            files.insert(stem.to_owned(), fs::read(&path)?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn write(home: &Path, name: &str, content: &str) {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn names(variables: &[(&str, &Path)]) -> Vec<String> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name)?;
            Some(found.1.as_os_str().to_owned())
        };
        find(&environment)
            .files
            .into_iter()
            .map(|file| file.name)
            .collect()
    }

    #[test]
    fn every_agent_is_found_where_it_keeps_its_logs() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for name in [
            ".claude/projects/-w/s1.jsonl",
            ".claude/projects/-w/s1/subagents/agent-a1.jsonl",
            ".claude/projects/-w/memory/notes.md",
            ".claude/history.jsonl",
            ".codex/sessions/2026/03/02/rollout-1.jsonl",
            ".codex/archived_sessions/rollout-0.jsonl.zst",
            ".copilot/session-state/c1/events.jsonl",
            ".copilot/session-state/c1/workspace.yaml",
            ".gemini/tmp/0a/chats/session-1.json",
            ".gemini/tmp/0a/logs.json",
            ".local/share/opencode/storage/session/p/ses_1.json",
            ".pi/agent/sessions/--w--/p1.jsonl",
            ".pi/agent/auth.json",
        ] {
            write(home, name, "{}");
        }
        let found = [
            "claude/-w/s1.jsonl",
            "claude/-w/s1/subagents/agent-a1.jsonl",
            "codex/2026/03/02/rollout-1.jsonl",
            "codex/rollout-0.jsonl.zst",
            "copilot/c1/events.jsonl",
            "gemini/0a/chats/session-1.json",
            "opencode/p/ses_1.json",
            "pi/--w--/p1.jsonl",
        ];
        assert_eq!(names(&[("HOME", home)]), found);
    }

    #[test]
    fn the_agents_own_variables_are_honoured() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        write(place, "c/projects/-w/s.jsonl", "{}");
        write(place, "x/sessions/r.jsonl", "{}");
        write(place, "o/session-state/e.jsonl", "{}");
        write(place, "g/.gemini/tmp/0a/chats/s.json", "{}");
        write(place, "d/opencode/storage/session/p/ses_1.json", "{}");
        write(place, "p/s.jsonl", "{}");
        write(place, "q/sessions/s.jsonl", "{}");
        let variable = |name, below: &str| (name, place.join(below));
        let moved = [
            variable("HOME", "nobody"),
            variable("CLAUDE_CONFIG_DIR", "c"),
            variable("CODEX_HOME", "x"),
            variable("COPILOT_HOME", "o"),
            variable("GEMINI_CLI_HOME", "g"),
            variable("XDG_DATA_HOME", "d"),
            variable("PI_CODING_AGENT_DIR", "q"),
            variable("PI_CODING_AGENT_SESSION_DIR", "p"),
        ];
        let mut moved: Vec<(&str, &Path)> = moved
            .iter()
            .map(|(name, path)| (*name, path.as_path()))
            .collect();
        let found = [
            "claude/-w/s.jsonl",
            "codex/r.jsonl",
            "copilot/e.jsonl",
            "gemini/0a/chats/s.json",
            "opencode/p/ses_1.json",
            "pi/s.jsonl",
        ];
        assert_eq!(names(&moved), found);
        moved.pop();
        assert_eq!(names(&moved), found, "the agent folder's sessions");
    }

    #[test]
    fn without_any_log_it_says_where_it_looked() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), ".local/share/opencode/opencode.db", "");
        let error = files(&|name| (name == "HOME").then(|| home.path().as_os_str().to_owned()))
            .unwrap_err();
        let message = error.to_string();
        for part in [
            ".claude",
            ".codex",
            ".copilot",
            ".gemini",
            "opencode export",
            ".pi",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!(!message.contains('\n'));
    }

    #[test]
    fn a_stored_opencode_session_imports_as_its_export_does() {
        let home = tempfile::tempdir().unwrap();
        let export =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/logs/opencode.json");
        let export: serde_json::Value = serde_json::from_slice(&fs::read(export).unwrap()).unwrap();
        let storage = home.path().join(".local/share/opencode/storage");
        let text = |value: &serde_json::Value| value.to_string();
        write(&storage, "session/p/ses_1.json", &text(&export["info"]));
        for message in export["messages"].as_array().unwrap() {
            let id = message["info"]["id"].as_str().unwrap();
            write(
                &storage,
                &format!("message/ses_1/{id}.json"),
                &text(&message["info"]),
            );
            for (number, part) in message["parts"].as_array().unwrap().iter().enumerate() {
                write(
                    &storage,
                    &format!("part/{id}/prt_{number:03}.json"),
                    &text(part),
                );
            }
        }
        let whole = home.path().join("ses_1.json");
        fs::write(&whole, text(&export)).unwrap();
        let import = |found: Vec<Found>| {
            let writer = crate::DatasetWriter::in_memory().unwrap();
            let go = std::sync::atomic::AtomicBool::new(false);
            let request = crate::ImportRequest::default();
            let dataset =
                crate::pipeline::import(&request, &found, writer, &crate::Silent, &go).unwrap();
            let runs = dataset.fleet().unwrap();
            runs.into_iter()
                .map(|run| (run.events, run.measured, run.started_at_ms))
                .collect::<Vec<_>>()
        };
        let home = home.path().as_os_str().to_owned();
        let stored = import(files(&|name| (name == "HOME").then(|| home.clone())).unwrap());
        assert!(!stored.is_empty());
        assert_eq!(stored, import(walk::walk(&[whole]).unwrap()));
    }

    #[test]
    fn a_stored_opencode_session_reads_as_its_export() {
        let storage = tempfile::tempdir().unwrap();
        let storage = storage.path();
        write(storage, "session/p/ses_1.json", "{\"id\":\"ses_1\"}");
        write(storage, "message/ses_1/msg_2.json", "{\"id\":\"msg_2\"}");
        write(storage, "message/ses_1/msg_1.json", "{\"id\":\"msg_1\"}");
        write(storage, "part/msg_1/prt_b.json", "{\"id\":\"b\"}");
        write(storage, "part/msg_1/prt_a.json", "{\"id\":\"a\"}");
        let document = opencode_document(&storage.join("session/p/ses_1.json")).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
        let expected = serde_json::json!({
            "info": {"id": "ses_1"},
            "messages": [
                {"info": {"id": "msg_1"}, "parts": [{"id": "a"}, {"id": "b"}]},
                {"info": {"id": "msg_2"}, "parts": []},
            ],
        });
        assert_eq!(document, expected);
    }
}
