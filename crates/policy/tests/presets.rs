//! The presets in code against the tables of the reference, cell by cell.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use policysim_policy::presets::{self, ConfigFault};
use policysim_policy::{
    CallerDeadline, First, Kind, KindSet, KindsOrRearm, LateSuccess, Millis, Overlap, PhaseScope,
    Policy, Poll, Scope, TurnStop, Waits, Word, spelling,
};

/// A table: the presets of its columns, and its rows.
struct Table {
    columns: Vec<&'static str>,
    rows: Vec<(String, Vec<String>)>,
}

fn cells(line: &str) -> Vec<String> {
    line.trim()
        .trim_matches('|')
        .split('|')
        .map(|cell| {
            // footnote marks and quotes carry no value
            cell.trim()
                .trim_matches('`')
                .chars()
                .filter(|c| !"¹²³⁴".contains(*c))
                .collect()
        })
        .collect()
}

/// The two tables of section 8 whose rows are axes.
fn tables(text: &str) -> Vec<Table> {
    let names = |head: &[String]| -> Vec<&'static str> {
        let mut before = String::new();
        head[1..]
            .iter()
            .map(|head| {
                let suffix = head.strip_prefix('…');
                let full = match (suffix, head.as_str()) {
                    (Some(suffix), _) => format!("netclaw-tool{suffix}"),
                    (_, "sub-agent") => "netclaw-subagent".to_owned(),
                    (_, "target") => "netclaw-target".to_owned(),
                    (_, "silence (e)") => "no-mistakes-silence".to_owned(),
                    (_, "fixed (e)") => "no-mistakes-fixed".to_owned(),
                    (_, "fixed-shared (e)") => "no-mistakes-fixed-shared".to_owned(),
                    (_, "inproc (c)") => "pi-ext-inproc".to_owned(),
                    (_, "ADR-0010 (c)") => "pi-ext-adr0010".to_owned(),
                    (_, name) if name.starts_with("netclaw") => name.to_owned(),
                    (_, number) => format!("pi-desktop-{number}"),
                };
                before.clone_from(&full);
                presets::PRESETS
                    .iter()
                    .map(|preset| preset.name)
                    .find(|name| *name == full)
                    .unwrap_or_else(|| panic!("column {head}: no preset {full}"))
            })
            .collect()
    };
    let section = text.split("## 8. Axes").nth(1).unwrap();
    let section = section.split("### 8.1").next().unwrap();
    let mut tables: Vec<Table> = Vec::new();
    let mut inside = false;
    for line in section.lines() {
        if !line.starts_with('|') {
            inside = false;
            continue;
        }
        let mut row = cells(line);
        if row[0] == "key" {
            inside = row[1] != "values";
            if inside {
                tables.push(Table {
                    columns: names(&row),
                    rows: Vec::new(),
                });
            }
        } else if inside && !row[0].starts_with("---") {
            let key = row.remove(0);
            tables.last_mut().unwrap().rows.push((key, row));
        }
    }
    tables
}

/// A length as the tables write it: `21,600 s`, `500 ms`, `0`.
fn length(cell: &str) -> Millis {
    let digits: String = cell
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    let number: u64 = digits.parse().unwrap_or_else(|_| panic!("length {cell}"));
    if cell.contains("ms") || number == 0 {
        Millis::new(number)
    } else {
        assert!(cell.contains(" s"), "unit of {cell}");
        Millis::from_secs(number)
    }
}

fn limit(cell: &str) -> Option<Millis> {
    let off = cell.starts_with("off") || cell == "–";
    (!off).then(|| length(cell))
}

fn kinds(cell: &str) -> KindSet {
    KindSet::from_items(
        cell.split(", ")
            .map(|kind| kind.split(" (").next().unwrap()),
    )
    .unwrap()
}

fn kinds_or_rearm(cell: &str) -> KindsOrRearm {
    if cell == "=" || cell == "–" {
        KindsOrRearm::Rearm
    } else {
        KindsOrRearm::Kinds(kinds(cell))
    }
}

fn waits(cell: &str) -> Waits {
    match cell.split([' ', ',']).next().unwrap() {
        "all" => Waits::All,
        "idle" => Waits::Idle,
        "none" => Waits::None,
        other => panic!("pause {other}"),
    }
}

fn word(cell: &str) -> Word {
    let (outcome, code) = cell.split_once(' ').unwrap_or((cell, ""));
    let code = code.trim_matches('`');
    let word = Word {
        outcome: Box::leak(outcome.to_owned().into_boxed_str()),
        code: (!code.is_empty()).then(|| &*Box::leak(code.to_owned().into_boxed_str())),
    };
    assert!(spelling::spelled(outcome).is_none(), "{cell} is no outcome");
    word
}

/// Compares one cell; the value to its left stands in for `same`.
fn check(key: &str, cell: &str, p: &Policy, fault: ConfigFault, at: &str) {
    let dash = cell == "–";
    match key {
        "idle.window" => assert_eq!(p.idle.window, limit(cell), "{at}"),
        "idle.first" if cell == "=" || dash => {
            assert_eq!(p.idle.first, First::SameAsWindow, "{at}");
        }
        "idle.first" => assert_eq!(p.idle.first, First::After(length(cell)), "{at}"),
        // where nothing fires on silence, what restarts it is no matter
        "idle.rearm" if dash => assert_eq!(p.idle.window, None, "{at}"),
        "idle.rearm" => assert_eq!(p.idle.rearm, kinds(cell), "{at}"),
        "idle.progress" => assert_eq!(p.idle.progress, kinds_or_rearm(cell), "{at}"),
        "idle.throttle" => {
            let (period, throttled) = cell.split_once(" on ").unwrap_or((cell, "="));
            assert_eq!(p.idle.throttle, limit(period), "{at}");
            assert_eq!(p.idle.throttled, kinds_or_rearm(throttled), "{at}");
        }
        "idle.ceiling" => assert_eq!(p.idle.ceiling, limit(cell), "{at}"),
        "idle.grace_cycles" => {
            let cycles = if dash { 0 } else { cell.parse().unwrap() };
            assert_eq!(p.idle.grace_cycles, cycles, "{at}");
        }
        "pause.tool" => assert_eq!(p.pause.tool, waits(cell), "{at}"),
        "pause.human" => {
            assert_eq!(p.pause.human, waits(cell), "{at}");
            let refuses = cell.contains("overlap refuse");
            assert_eq!(p.pause.human_overlap == Overlap::Refuse, refuses, "{at}");
        }
        "total.budget" | "total.budget, scope" => {
            assert_eq!(p.total.budget, limit(cell), "{at}");
            let run = cell.contains("run");
            assert_eq!(p.total.scope == Scope::Run, run, "{at}");
        }
        "total.caller_deadline" => {
            let replaces = cell == "replaces";
            let expected = if replaces {
                CallerDeadline::Replaces
            } else {
                CallerDeadline::Adds
            };
            assert_eq!(p.total.caller_deadline, expected, "{at}");
        }
        "turns.cap" => {
            assert_eq!(p.turns.cap, None, "{at}");
            let caps: Vec<u32> = p
                .turns
                .by_role
                .entries()
                .iter()
                .filter_map(|(_, cap)| *cap)
                .collect();
            let mut written: Vec<u32> =
                cell.split('/').filter_map(|cap| cap.parse().ok()).collect();
            let mut caps = caps;
            caps.sort_unstable();
            written.sort_unstable();
            assert_eq!(caps, written, "{at}");
        }
        "turns.stop" => {
            let after = cell == "after_tools";
            assert_eq!(p.turns.stop == TurnStop::AfterTools, after, "{at}");
        }
        _ => check_rest(key, cell, p, fault, at),
    }
}

/// The rows about detection, killing, settings and words.
fn check_rest(key: &str, cell: &str, p: &Policy, fault: ConfigFault, at: &str) {
    let dash = cell == "–";
    match key {
        "detect.poll" => {
            let poll = match cell {
                "exact" => Poll::Exact,
                "tenth" => Poll::Tenth,
                period => Poll::Every(length(period)),
            };
            assert_eq!(p.detect.poll, poll, "{at}");
        }
        "kill.late_success" => {
            let accepts = p.kill.late_success == LateSuccess::Accept;
            assert_eq!(accepts, cell == "accept", "{at}");
        }
        "kill.grace" => {
            let grace = if dash { Millis::ZERO } else { length(cell) };
            assert_eq!(p.kill.grace, grace, "{at}");
            let tree = p.kill.scope == policysim_policy::KillScope::Tree;
            assert_eq!(tree, cell.contains("tree"), "{at}");
        }
        "config_fault" => {
            let expected = match cell {
                "all-defaults" => ConfigFault::AllDefaults,
                "clamp" => ConfigFault::Clamp,
                "floor 1 s" => ConfigFault::FloorOneSecond,
                "≤ 0 → default" => ConfigFault::NotPositiveIsDefault,
                "–" => ConfigFault::None,
                other => panic!("config_fault {other}"),
            };
            assert_eq!(fault, expected, "{at}");
        }
        // a limit that is off has no word
        _ if key.starts_with("words") && dash => {}
        "words: idle" => assert_eq!(p.words.idle, word(cell), "{at}"),
        "words: idle, first" => {
            assert_eq!(p.words.idle, word(cell), "{at}");
            assert_eq!(p.words.first, word(cell), "{at}");
        }
        "words: total" => assert_eq!(p.words.total, word(cell), "{at}"),
        "words: turns" => assert_eq!(p.words.turns, word(cell), "{at}"),
        "words: total; deadline" => {
            let (total, deadline) = cell.split_once("; ").unwrap();
            if total != "–" {
                assert_eq!(p.words.total.code, Some(total), "{at}");
            }
            assert_eq!(p.words.deadline.code, Some(deadline), "{at}");
        }
        other => panic!("row {other} is not compared"),
    }
}

#[test]
fn presets_are_the_rows_of_the_reference() {
    let Some(semantics) = common::part("design/semantics.md") else {
        return;
    };
    let text = std::fs::read_to_string(semantics).unwrap();
    let tables = tables(&text);
    assert_eq!(tables.len(), 2);
    let mut compared = 0;
    let mut seen: Vec<&str> = Vec::new();
    for table in &tables {
        seen.extend(&table.columns);
        for (key, row) in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{key}");
            let mut left = "–".to_owned();
            for (name, cell) in table.columns.iter().zip(row) {
                if cell != "same" {
                    left.clone_from(cell);
                }
                let preset = presets::PRESETS.iter().find(|p| p.name == *name).unwrap();
                let at = format!("{name}, {key}: {left}");
                check(key, &left, &preset.policy(), preset.config_fault, &at);
                compared += 1;
            }
        }
    }
    seen.sort_unstable();
    let mut all = presets::PRESETS.map(|preset| preset.name);
    all.sort_unstable();
    assert_eq!(seen, all);
    println!("{compared} cells compared");
}

/// What the reference says of all presets above the tables, and the defaults of axes that the tables leave out.
#[test]
fn what_all_presets_share() {
    for preset in presets::PRESETS {
        let p = preset.policy();
        assert_eq!(p.pause.backoff, Waits::None, "{}", preset.name);
        assert_eq!(p.pause.compaction, Waits::None, "{}", preset.name);
        let child = if preset.name == "netclaw-target" {
            Waits::Idle
        } else {
            Waits::None
        };
        assert_eq!(p.pause.child, child, "{}", preset.name);
        assert!(!p.pause.turn_closes_tools, "{}", preset.name);
        let phase = if preset.name == "netclaw-subagent" {
            PhaseScope::ModelCall
        } else {
            PhaseScope::Run
        };
        assert_eq!(p.idle.phase, phase, "{}", preset.name);
        let own = Policy::default();
        assert_eq!(p.idle.startup, own.idle.startup);
        assert_eq!(p.idle.adaptive, own.idle.adaptive);
        assert_eq!(p.pause.tool_limit, own.pause.tool_limit);
        assert_eq!(p.pause.compaction_limit, own.pause.compaction_limit);
        assert_eq!(p.pause.backoff_budget, own.pause.backoff_budget);
        assert_eq!(p.pause.human_tools, own.pause.human_tools);
        assert_eq!(p.kill.result_grace, own.kill.result_grace);
        assert_eq!(p.turns.scope, own.turns.scope);
    }
}

/// The default is the first value of every axis.
#[test]
fn without_a_preset_nothing_fires() {
    let mut dog = policysim_policy::Watchdog::new(&Policy::default(), Millis::ZERO);
    for kind in Kind::ALL {
        if kind != Kind::RunEnd {
            dog.handle_event(Millis::ZERO, &policysim_policy::Event::new(kind));
        }
    }
    assert_eq!(dog.poll_timeout(), None);
    assert_eq!(presets::find("pi-desktop-0128"), None);
}
