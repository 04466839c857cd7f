//! `policysim gate`: a table of gates, the reference vectors and scenarios, and what bad edits of a policy come to.

mod action;
mod edits;
mod every_figure;
mod formats;
mod result_sets;
mod summaries;
mod table;
mod vectors;

use std::fmt::Write;

use serde_json::Value;

use crate::{Place, json};

/// What becomes of a run, after a first message at 1 s.
#[derive(Clone, Copy)]
enum Course {
    /// It ends a second later.
    Lives,
    /// It is silent for so long, ms, then goes on and completes.
    Silent(u64),
    /// Its log ends here.
    Open,
    /// It hangs, and is ended so many ms later.
    Hung(u64),
    /// A tool call of so many ms, then it completes.
    Tool(u64),
    /// It is silent for so long, ms, and then fails, or is aborted.
    Fails(u64),
    Aborted(u64),
}

/// So many runs of one model.
struct Runs {
    n: u64,
    model: &'static str,
    course: Course,
}

const fn runs(n: u64, model: &'static str, course: Course) -> Runs {
    Runs { n, model, course }
}

/// An events table of runs that start a minute apart.
fn events(groups: &[Runs]) -> String {
    let mut rows = String::from("run,t_ms,kind,call_id,name,outcome,started_at_ms,role,model\n");
    let mut number = 0_u64;
    for group in groups {
        for _ in 0..group.n {
            let started_at_ms = 1_772_442_000_000 + number * 60_000;
            let run = format!("r{number:06}");
            number += 1;
            let mut row = |t_ms: u64, kind: &str, rest: &str| {
                writeln!(rows, "{run},{t_ms},{kind},{rest}").unwrap();
            };
            let first = format!(",,,{started_at_ms},worker,{}", group.model);
            row(0, "run_start", &first);
            row(0, "turn_start", ",,,,,");
            row(1_000, "message_end", ",,,,,");
            match group.course {
                Course::Lives => {
                    row(1_000, "turn_end", ",,,,,");
                    row(2_000, "run_end", ",,completed,,,");
                }
                Course::Silent(ms) => {
                    row(1_000 + ms, "message_end", ",,,,,");
                    row(1_000 + ms, "turn_end", ",,,,,");
                    row(2_000 + ms, "run_end", ",,completed,,,");
                }
                Course::Open => {}
                Course::Hung(ms) => row(1_000 + ms, "run_end", ",,hung,,,"),
                Course::Fails(ms) => row(1_000 + ms, "run_end", ",,failed,,,"),
                Course::Aborted(ms) => row(1_000 + ms, "run_end", ",,aborted,,,"),
                Course::Tool(ms) => {
                    row(1_000, "tool_start", "c1,agent_wrapper,,,,");
                    row(1_000 + ms, "tool_end", "c1,agent_wrapper,,,,");
                    row(1_000 + ms, "turn_end", ",,,,,");
                    row(2_000 + ms, "run_end", ",,completed,,,");
                }
            }
        }
    }
    rows
}

/// Imports an events table as a dataset of that name.
fn import(place: &Place, name: &str, groups: &[Runs]) {
    place.write(&format!("{name}.csv"), events(groups));
    place
        .run(&format!("import {name}.csv --out {name} --quiet"))
        .ok();
}

/// The result of a gate as JSON, with its exit code.
fn gate(place: &Place, arguments: &str, rules: &str) -> (Value, i32) {
    place.write("rules.toml", rules);
    let line = format!("gate {arguments} --rules rules.toml --format json --quiet");
    let done = place.run(&line);
    let code = done.code.unwrap();
    assert!(
        code == 0 || code == 1 || code == 3,
        "{line}\n{rules}\n{}",
        done.stderr
    );
    let result = json(&done.stdout);
    assert_eq!(result["exit_code"], code, "{line}");
    (result, code)
}
