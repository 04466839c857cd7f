//! Whose run a subagent's run is: linked after all sources are read, from what each said about its agents.
//!
//! In this order: by the agent's id, in the same source, then in a source of the same session, then in the only
//! other source that delegated to an agent of that id; by the session that a log names as its parent's; by the
//! folder (`SESSION/subagents/CHILD` belongs to `SESSION` beside the folder, or to the only log next to
//! `subagents`). Of the candidate runs the last one that had started when the child did is taken.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::import::{AgentSeen, Delegation, SourceReport};
use crate::store::RunRow;
use crate::walk::Found;

/// What linking has to know of one source.
#[derive(Debug)]
pub(crate) struct SourceLinks {
    source: Arc<str>,
    path: PathBuf,
    session: Arc<str>,
    parent_session: Arc<str>,
    agents: Vec<AgentSeen>,
    delegations: Vec<Delegation>,
}

impl SourceLinks {
    pub(crate) fn new(file: &Found, report: SourceReport) -> Self {
        Self {
            source: report.source,
            path: file.path.clone(),
            session: report.session,
            parent_session: report.parent_session,
            agents: report.agents,
            delegations: report.delegations,
        }
    }
}

/// A run that may have delegated, with the role it gave.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    run: &'a Arc<str>,
    role: &'a str,
}

/// Sets [`policysim_sim::run::Run::parent`] (and the role, where the child does not know it); gives what should be
/// said about children that are not there.
pub(crate) fn link(rows: &mut [RunRow], sources: &[SourceLinks]) -> Vec<String> {
    let index: HashMap<Arc<str>, usize> = rows
        .iter()
        .enumerate()
        .map(|(row, of)| (Arc::clone(&of.run.name), row))
        .collect();
    let mut of_source: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (row, of) in rows.iter().enumerate() {
        of_source
            .entry(Arc::clone(&of.run.source))
            .or_default()
            .push(row);
    }
    let book = Book::new(sources);
    let mut found = BTreeMap::new();
    for (number, source) in sources.iter().enumerate() {
        for agent in &source.agents {
            for child in &agent.runs {
                let Some(&row) = index.get(child) else {
                    continue;
                };
                let candidates = book.candidates(number, &agent.agent);
                if let Some(parent) = latest_before(rows, &index, &candidates, row) {
                    found.insert(row, parent);
                }
            }
        }
        book.link_whole_source(number, rows, &index, &of_source, &mut found);
    }
    for row in &mut *rows {
        // A table names parents by itself; one that the window left out is no run of this dataset.
        if !row.run.parent.is_empty() && !index.contains_key(&row.run.parent) {
            row.run.parent = Arc::from("");
        }
    }
    for (row, (parent, role)) in found {
        let run = &mut rows[row].run;
        run.parent = parent;
        if run.role.is_empty() && !role.is_empty() {
            run.role = Arc::from(role);
        }
    }
    book.absent_children()
}

type Parent = (Arc<str>, String);

/// The candidate that started last, but not after the child; else the first one. Never the child itself.
fn latest_before(
    rows: &[RunRow],
    index: &HashMap<Arc<str>, usize>,
    candidates: &[Candidate<'_>],
    child: usize,
) -> Option<Parent> {
    let started = rows[child].run.started_at_ms;
    let known = candidates.iter().filter_map(|candidate| {
        let &row = index.get(candidate.run)?;
        (row != child).then_some((rows[row].run.started_at_ms, candidate))
    });
    let best = known
        .clone()
        .filter(|(at, _)| *at <= started)
        .max_by_key(|(at, _)| *at);
    let (_, candidate) = best.or_else(|| known.min_by_key(|(at, _)| *at))?;
    Some((Arc::clone(candidate.run), candidate.role.to_owned()))
}

/// The sources by what they can be looked up by.
struct Book<'a> {
    sources: &'a [SourceLinks],
    /// Sources that delegated to an agent of that id.
    by_agent: HashMap<&'a str, BTreeSet<usize>>,
    /// Sources of that session that are not wholly a delegated agent's.
    by_session: HashMap<&'a str, BTreeSet<usize>>,
    by_path: HashMap<&'a Path, usize>,
}

impl<'a> Book<'a> {
    fn new(sources: &'a [SourceLinks]) -> Self {
        let mut book = Self {
            sources,
            by_agent: HashMap::new(),
            by_session: HashMap::new(),
            by_path: HashMap::new(),
        };
        for (number, source) in sources.iter().enumerate() {
            for delegation in source.delegations.iter().filter(|d| !d.agent.is_empty()) {
                book.by_agent
                    .entry(&delegation.agent)
                    .or_default()
                    .insert(number);
            }
            if !source.session.is_empty() {
                book.by_session
                    .entry(&source.session)
                    .or_default()
                    .insert(number);
            }
            book.by_path.insert(&source.path, number);
        }
        book
    }

    /// Runs that delegated to `agent`, whose own runs are in source `number`.
    fn candidates(&self, number: usize, agent: &str) -> Vec<Candidate<'a>> {
        let Some(delegating) = self.by_agent.get(agent).filter(|_| !agent.is_empty()) else {
            return Vec::new();
        };
        let session = &self.sources[number].session;
        let source = if delegating.contains(&number) {
            Some(number)
        } else {
            let same =
                |&&other: &&usize| !session.is_empty() && self.sources[other].session == *session;
            match delegating.iter().find(same) {
                Some(&other) => Some(other),
                None if delegating.len() == 1 => delegating.first().copied(),
                None => None,
            }
        };
        let delegations = source.map_or(&[][..], |source| &self.sources[source].delegations);
        delegations
            .iter()
            .filter(|delegation| delegation.agent == agent)
            .map(|delegation| Candidate {
                run: &delegation.run,
                role: &delegation.role,
            })
            .collect()
    }

    /// Links the runs of a source that are a delegated agent's and have no parent yet, by session, then by folder.
    fn link_whole_source(
        &self,
        number: usize,
        rows: &[RunRow],
        index: &HashMap<Arc<str>, usize>,
        of_source: &HashMap<Arc<str>, Vec<usize>>,
        found: &mut BTreeMap<usize, Parent>,
    ) {
        let parent = self
            .parent_by_session(number)
            .or_else(|| self.parent_by_folder(number));
        let Some(parent) = parent else { return };
        let rows_of = |number: usize| {
            of_source
                .get(&self.sources[number].source)
                .into_iter()
                .flatten()
                .copied()
        };
        let candidates: Vec<Candidate<'_>> = rows_of(parent)
            .map(|row| Candidate {
                run: &rows[row].run.name,
                role: "",
            })
            .collect();
        for row in rows_of(number) {
            if !found.contains_key(&row)
                && let Some(parent) = latest_before(rows, index, &candidates, row)
            {
                found.insert(row, parent);
            }
        }
    }

    fn parent_by_session(&self, number: usize) -> Option<usize> {
        let wanted = &self.sources[number].parent_session;
        let of_session = self
            .by_session
            .get(&**wanted)
            .filter(|_| !wanted.is_empty())?;
        of_session.iter().copied().find(|&other| other != number)
    }

    fn parent_by_folder(&self, number: usize) -> Option<usize> {
        let path = &self.sources[number].path;
        let subagents = path
            .ancestors()
            .skip(1)
            .find(|folder| is_subagents(folder))?;
        let session_folder = subagents.parent()?;
        let beside = ["jsonl", "jsonl.gz", "jsonl.zst", "json"]
            .iter()
            .find_map(|extension| {
                let mut name = session_folder.file_name()?.to_os_string();
                name.push(".");
                name.push(extension);
                self.by_path
                    .get(session_folder.with_file_name(name).as_path())
                    .copied()
            });
        beside.or_else(|| {
            let mut next_to = (0..self.sources.len())
                .filter(|&other| self.sources[other].path.parent() == Some(session_folder));
            let only = next_to.next()?;
            next_to.next().is_none().then_some(only)
        })
    }

    /// One sentence per source whose children are not among the sources.
    fn absent_children(&self) -> Vec<String> {
        let seen: BTreeSet<&str> = self
            .sources
            .iter()
            .flat_map(|source| &source.agents)
            .map(|agent| agent.agent.as_str())
            .chain(self.sources.iter().map(|source| &*source.session))
            .collect();
        let mut notes = Vec::new();
        for source in self.sources {
            let absent: BTreeSet<&str> = source
                .delegations
                .iter()
                .map(|delegation| delegation.agent.as_str())
                .filter(|agent| !agent.is_empty() && !seen.contains(agent))
                .collect();
            if absent.is_empty() {
                continue;
            }
            let on_disk = absent
                .iter()
                .filter(|agent| child_file_exists(&source.path, agent))
                .count();
            notes.push(format!(
                "'{}' delegates to agents whose own runs are not in this dataset: {}",
                source.source,
                match (on_disk, absent.len() - on_disk) {
                    (0, missing) => format!("the logs of {missing} are missing"),
                    (beside, 0) => format!("the logs of {beside} lie beside it (import the folder to have them)"),
                    (beside, missing) => format!(
                        "the logs of {beside} lie beside it (import the folder to have them), those of {missing} are missing"
                    ),
                },
            ));
        }
        notes
    }
}

fn is_subagents(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "subagents")
}

/// Whether a child's file lies where a harness would have put it: in `subagents` beside the log, or in the folder
/// named after the log; or beside the log itself.
fn child_file_exists(log: &Path, agent: &str) -> bool {
    let Some(folder) = log.parent() else {
        return false;
    };
    let named_after = log.with_extension("");
    [
        folder.join("subagents"),
        named_after.join("subagents"),
        folder.to_owned(),
    ]
    .iter()
    .any(|folder| {
        std::fs::read_dir(folder).is_ok_and(|mut entries| {
            entries.any(|entry| {
                entry.is_ok_and(|entry| {
                    entry.path() != log && entry.file_name().to_string_lossy().contains(agent)
                })
            })
        })
    })
}
