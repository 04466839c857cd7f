//! Subagents and their parents; records that two files hold.

use std::fs;
use std::path::Path;

use policysim_sim::run::{Run, WaitKind};
use policysim_telemetry::ImportRequest;

use crate::support::{in_memory, request, shared, write};

/// Name, parent and role of every run.
fn links(rows: &[Run]) -> Vec<(&str, &str, &str)> {
    rows.iter()
        .map(|run| (&*run.name, &*run.parent, &*run.role))
        .collect()
}

fn claude(line: &str) -> String {
    line.replace('\'', "\"") + "\n"
}

/// A parent that runs an agent, by hand: the call from 4 s to 60 s.
fn parent(agent: &str) -> String {
    [
        "{'type':'user','uuid':'u1','sessionId':'s1','timestamp':'2026-03-02T09:00:00Z','message':{'role':'user','content':'go'}}".to_owned(),
        "{'type':'assistant','uuid':'u2','sessionId':'s1','timestamp':'2026-03-02T09:00:04Z','message':{'id':'m1','role':'assistant','model':'m','content':[{'type':'tool_use','id':'t1','name':'Task','input':{'subagent_type':'explorer'}}]}}".to_owned(),
        format!("{{'type':'user','uuid':'u3','sessionId':'s1','timestamp':'2026-03-02T09:01:00Z','toolUseResult':{{'agentId':'{agent}'}},'message':{{'role':'user','content':[{{'type':'tool_result','tool_use_id':'t1','content':'ok'}}]}}}}"),
        "{'type':'assistant','uuid':'u4','sessionId':'s1','timestamp':'2026-03-02T09:01:02Z','message':{'id':'m2','role':'assistant','model':'m','content':[{'type':'text','text':'done'}]}}".to_owned(),
    ]
    .map(|line| claude(&line))
    .concat()
}

/// The agent's own records, in a file of their own or beside the parent's.
fn child(agent: &str, session: &str) -> String {
    let agent = if agent.is_empty() {
        String::new()
    } else {
        format!("'agentId':'{agent}',")
    };
    [
        format!("{{'type':'user','uuid':'v1','isSidechain':true,{agent}'sessionId':'{session}','timestamp':'2026-03-02T09:00:05Z','message':{{'role':'user','content':'scan'}}}}"),
        format!("{{'type':'assistant','uuid':'v2','isSidechain':true,{agent}'sessionId':'{session}','timestamp':'2026-03-02T09:00:55Z','message':{{'id':'k1','role':'assistant','model':'m','content':[{{'type':'text','text':'x'}}]}}}}"),
    ]
    .map(|line| claude(&line))
    .concat()
}

fn check(files: &[(&str, String)], expected: &[(&str, &str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        write(folder.path(), name, content);
    }
    let dataset = in_memory(&request(&[folder.path()])).unwrap();
    assert_eq!(links(&dataset.run_rows().unwrap()), expected);
    let linked = expected
        .iter()
        .filter(|(_, parent, _)| !parent.is_empty())
        .count() as u64;
    assert_eq!(dataset.manifest().totals.n_linked, linked);
}

#[test]
fn a_child_is_linked_by_its_agents_id_wherever_its_records_lie() {
    let linked = |child: &'static str| [(child, "s1.jsonl#1", "explorer"), ("s1.jsonl#1", "", "")];
    let file = |name| [("s1.jsonl", parent("ab12")), (name, child("ab12", "s1"))];
    check(
        &file("elsewhere/agent-x.jsonl"),
        &linked("elsewhere/agent-x.jsonl#1"),
    );
    check(&file("a.jsonl"), &linked("a.jsonl#1"));
    // Beside the parent's records, as older versions wrote them.
    check(
        &[("s1.jsonl", parent("ab12") + &child("ab12", "s1"))],
        &[
            ("s1.jsonl#1", "", ""),
            ("s1.jsonl#2.1", "s1.jsonl#1", "explorer"),
        ],
    );
}

#[test]
fn the_runs_of_several_agents_in_one_log_stand_stream_after_stream() {
    let again = child("ab12", "s1")
        .replace("09:00:", "09:30:")
        .replace("'v", "'w")
        .replace("\"v", "\"w");
    let (main, side) = (parent("ab12"), child("ab12", "s1"));
    let (first, rest) = main.split_once('\n').unwrap();
    // The agent's first run closes while the parent's is open.
    let log = format!("{first}\n{side}{again}{rest}");
    let names = ["s1.jsonl#1", "s1.jsonl#2.1", "s1.jsonl#2.2"];
    let folder = tempfile::tempdir().unwrap();
    let dataset = in_memory(&request(&[&write(folder.path(), "s1.jsonl", log)])).unwrap();
    let rows = dataset.run_rows().unwrap();
    let stored: Vec<&str> = rows.iter().map(|run| &*run.name).collect();
    assert_eq!(stored, names);
    let read: Vec<String> = dataset
        .fleet()
        .unwrap()
        .iter()
        .map(|run| run.name.to_string())
        .collect();
    assert_eq!(read, names);
}

#[test]
fn a_child_without_a_usable_id_is_linked_by_its_folder() {
    let below_the_session = "s1/subagents/agent-q.jsonl";
    check(
        &[
            ("s1.jsonl", parent("")),
            (below_the_session, child("", "s1")),
            ("s2.jsonl", parent("")),
        ],
        &[
            ("s1.jsonl#1", "", ""),
            ("s1/subagents/agent-q.jsonl#1", "s1.jsonl#1", ""),
            ("s2.jsonl#1", "", ""),
        ],
    );
    check(
        &[
            ("p.jsonl", parent("")),
            ("subagents/agent-q.jsonl", child("", "s1")),
        ],
        &[
            ("p.jsonl#1", "", ""),
            ("subagents/agent-q.jsonl#1", "p.jsonl#1", ""),
        ],
    );
}

/// A session of one question and one answer that begins and ends at those seconds, with parts in between.
fn opencode(id: &str, parent: &str, start: u64, parts: &str, end: u64) -> String {
    let at = |second: u64| 1_772_442_000_000 + second * 1000;
    let parent = if parent.is_empty() {
        String::new()
    } else {
        format!("'parentID':'{parent}',")
    };
    claude(&format!(
        "{{'info':{{'id':'{id}',{parent}'version':'1'}},'messages':[\
         {{'info':{{'role':'user','time':{{'created':{}}}}},'parts':[]}},\
         {{'info':{{'role':'assistant','time':{{'created':{},'completed':{}}}}},'parts':[{parts}\
         {{'type':'text','text':'x','time':{{'start':{},'end':{}}}}}]}}]}}",
        at(start),
        at(start),
        at(end),
        at(end - 1),
        at(end),
    ))
}

#[test]
fn a_session_that_names_its_parent_is_linked_to_it() {
    let task = "{'type':'tool','callID':'c','tool':'task','state':{'status':'completed','input':{'subagent_type':'explore'},\
                'metadata':{'sessionId':'ses_b'},'time':{'start':1772442004000,'end':1772442009000}}},";
    check(
        &[
            ("a.json", opencode("ses_a", "", 0, task, 12)),
            ("b.json", opencode("ses_b", "ses_a", 5, "", 8)),
        ],
        &[("a.json#1", "", ""), ("b.json#1", "a.json#1", "explore")],
    );
    // The parent's call does not name the session.
    check(
        &[
            ("a.json", opencode("ses_a", "", 0, "", 12)),
            ("b.json", opencode("ses_b", "ses_a", 5, "", 8)),
            ("c.json", opencode("ses_c", "ses_gone", 5, "", 8)),
        ],
        &[
            ("a.json#1", "", ""),
            ("b.json#1", "a.json#1", ""),
            ("c.json#1", "", ""),
        ],
    );
}

#[test]
fn a_child_of_nobody_stays_alone() {
    check(
        &[
            ("a.jsonl", parent("ab12")),
            ("b.jsonl", child("cd34", "s9")),
        ],
        &[("a.jsonl#1", "", ""), ("b.jsonl#1", "", "")],
    );
}

#[test]
fn hashed_sources_are_linked_as_well() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "s1.jsonl", parent(""));
    write(folder.path(), "s1/subagents/agent-q.jsonl", child("", "s1"));
    let hashed = ImportRequest {
        hash_sources: true,
        ..request(&[folder.path()])
    };
    let dataset = in_memory(&hashed).unwrap();
    let rows = dataset.run_rows().unwrap();
    let names: Vec<&str> = rows.iter().map(|run| &*run.name).collect();
    let parents: Vec<&str> = rows
        .iter()
        .map(|run| &*run.parent)
        .filter(|parent| !parent.is_empty())
        .collect();
    assert!(
        parents.len() == 1 && names.contains(&parents[0]),
        "{names:?} {parents:?}"
    );
}

#[test]
fn a_parent_alone_says_where_its_children_are() {
    let folder = tempfile::tempdir().unwrap();
    let alone = write(folder.path(), "s1.jsonl", parent("ab12"));
    let warnings = |path: &Path| {
        in_memory(&request(&[path]))
            .unwrap()
            .manifest()
            .warnings
            .join("\n")
    };
    let missing = warnings(&alone);
    assert!(
        missing.contains("delegates to agents") && missing.contains("the logs of 1 are missing"),
        "{missing}"
    );
    write(
        folder.path(),
        "s1/subagents/agent-ab12.jsonl",
        child("ab12", "s1"),
    );
    let there = warnings(&alone);
    assert!(
        there.contains("the logs of 1 lie beside it") && there.contains("import the folder"),
        "{there}"
    );
    assert_eq!(warnings(folder.path()), "");
}

#[test]
fn br_74_parent_and_child() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("scenarios");
    let (parent, child) = (
        folder.join("BR-74-parent.jsonl"),
        folder.join("BR-74-child-agent-ab12cd34.jsonl"),
    );
    if !parent.is_file() {
        return;
    }
    let dataset = in_memory(&request(&[&parent, &child])).unwrap();
    assert_eq!(
        links(&dataset.run_rows().unwrap()),
        [
            (
                "BR-74-child-agent-ab12cd34.jsonl#1",
                "BR-74-parent.jsonl#1",
                "explorer"
            ),
            ("BR-74-parent.jsonl#1", "", ""),
        ]
    );
    let runs = dataset.fleet().unwrap();
    let waits = |run: usize, wanted: WaitKind| -> Vec<u64> {
        runs[run]
            .events
            .iter()
            .filter_map(|e| e.wait)
            .filter(|w| w.kind == wanted)
            .map(|w| w.ms)
            .collect()
    };
    assert_eq!(waits(0, WaitKind::PreToken), [15_800, 179_000, 43_000]);
    assert_eq!(waits(0, WaitKind::Tool), [1_000, 420_000]);
    assert_eq!(waits(1, WaitKind::PreToken), [4_000, 6_000]);
    assert_eq!(waits(1, WaitKind::Subagent), [660_000]);
    assert_eq!(waits(1, WaitKind::Tool), [] as [u64; 0]);
    let alone = in_memory(&request(&[&parent])).unwrap();
    let warning = alone.manifest().warnings.join("\n");
    assert!(warning.contains("the logs of 1 lie beside it"), "{warning}");
}

#[test]
fn br_59_records_of_another_file_are_reported_and_counted_once_on_demand() {
    let Some(shared) = shared() else { return };
    let Ok(log) = fs::read_to_string(shared.join("scenarios/BR-59-in-file-replay.jsonl")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.jsonl", &log);
    // A fork: another session, the same records, stamped a day later.
    let fork = log
        .replace("11111111-", "99999999-")
        .replace("2026-03-02T", "2026-03-03T");
    write(folder.path(), "b.jsonl", fork);
    let both = in_memory(&request(&[folder.path()])).unwrap();
    let [a, b] = both.manifest().sources.as_slice() else {
        panic!()
    };
    assert_eq!(
        (a.lines.duplicate, b.lines.duplicate),
        (3, 3),
        "replayed within each file"
    );
    assert_eq!((a.count("n_tool"), b.count("n_tool")), (1, 1));
    let warnings = both.manifest().warnings.join("\n");
    assert!(
        warnings
            .contains("'b.jsonl' repeats 9 record(s) of 'a.jsonl', 9 of them with a later stamp"),
        "{warnings}"
    );
    let once = in_memory(&ImportRequest {
        dedupe: true,
        ..request(&[folder.path()])
    })
    .unwrap();
    let [a, b] = once.manifest().sources.as_slice() else {
        panic!()
    };
    assert_eq!((a.count("n_tool"), b.count("n_tool")), (1, 0));
    assert_eq!((a.count("n_turns"), a.lines.duplicate), (4, 3));
    assert_eq!(
        (b.count("n_turns"), b.count("n_duplicates_elsewhere")),
        (0, 9)
    );
    assert_eq!(b.lines.total(), b.count("n_lines"));
}
