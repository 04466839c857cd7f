//! The sessions of the reference corpus under a thousand random policies: what follows from one pass per structure is
//! what a replay under the numbers says, in verdict, cause and millisecond.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod import_support;
#[path = "../../sim/tests/common/random.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod random;

use import_support::{import, shared};
use policysim_policy::{ByName, First, Millis, Policy};
use policysim_sim::replay::replay;
use policysim_sim::run::{Fleet, RunEvent};
use policysim_sim::scan::{Batch, InMemory, RunView, Scan};
use policysim_sim::staircase::{Answer, Crossings, Structure, shape};
use policysim_telemetry::import::Format;
use random::Draw;

const SHAPES: u64 = 100;
const NUMBERS: u64 = 10;

/// The runs of each session; names of events are numbered session by session.
fn fleets() -> Option<Vec<Fleet>> {
    let corpus = shared()?.join("corpus");
    let mut fleets = Vec::new();
    for format in Format::ALL {
        let Ok(files) = std::fs::read_dir(corpus.join(format.name())) else {
            continue;
        };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let imported = import("session", format, &std::fs::read(&file).unwrap());
            fleets.push(Fleet {
                runs: imported.runs,
                symbols: imported.symbols,
            });
        }
    }
    Some(fleets)
}

/// `policy` with its milliseconds made seconds or minutes, its window at times the length of a recorded gap.
fn lengthened(draw: &mut Draw, policy: &Policy, gaps: &[u64]) -> Policy {
    let factor = draw.of(&[100, 1000, 7000, 60_000]);
    let scale = |limit: Millis| Millis::new(limit.as_u64() * factor);
    let mut p = policy.clone();
    let optional = [
        &mut p.idle.window,
        &mut p.idle.ceiling,
        &mut p.idle.startup,
        &mut p.pause.tool_limit.default,
        &mut p.pause.compaction_limit,
        &mut p.pause.backoff_budget,
        &mut p.total.budget,
        &mut p.kill.result_grace,
    ];
    for limit in optional {
        *limit = limit.map(scale);
    }
    if let First::After(first) = &mut p.idle.first {
        *first = scale(*first);
    }
    let named = p.pause.tool_limit.by_name.entries().iter();
    p.pause.tool_limit.by_name = ByName::new(
        named
            .map(|(_, limit)| ("Bash", limit.map(scale)))
            .collect::<Vec<_>>(),
    );
    if let policysim_policy::Poll::Every(period) = &mut p.detect.poll {
        *period = scale(*period);
    }
    if draw.one_in(2) && p.idle.window.is_some() {
        p.idle.window = Some(Millis::new(draw.of(gaps)));
    }
    p
}

fn gap(pair: &[RunEvent]) -> u64 {
    pair[1].t_ms - pair[0].t_ms
}

#[test]
fn real_sessions_are_answered_as_replays_do() {
    let Some(fleets) = fleets() else {
        println!("skipped: no corpus");
        return;
    };
    let runs = fleets.iter().flat_map(|fleet| &fleet.runs);
    let gaps: Vec<u64> = runs
        .flat_map(|run| run.events.windows(2).map(gap))
        .filter(|&ms| ms > 1000)
        .collect();
    let (mut answered, mut all) = (0_u64, 0_u64);
    let mut draw = Draw::new(1);
    for _ in 0..SHAPES {
        let mut shaped = random::shaped(&mut draw);
        shaped.idle.adaptive = None;
        if let Some(throttle) = &mut shaped.idle.throttle {
            *throttle = Millis::new(throttle.as_u64() * 5000);
        }
        let mut structure = Structure::new(shape(&shaped).unwrap());
        let policies: Vec<Policy> = (0..NUMBERS)
            .map(|_| {
                let numbered = random::numbered(&mut draw, &shaped);
                let policy = lengthened(&mut draw, &numbered, &gaps);
                structure.admit(&policy);
                policy
            })
            .collect();
        for fleet in &fleets {
            let source = InMemory::new(fleet);
            for index in 0..source.batches() {
                let mut scratch = Batch::default();
                for run in source.read(index, &mut scratch).unwrap().runs() {
                    answered += compare(&structure, &policies, &run, fleet);
                    all += NUMBERS;
                }
            }
        }
    }
    println!("{answered} of {all} pairs answered without a replay, all as the replay");
    assert!(
        all >= 400_000 && answered * 100 > all * 95,
        "{answered} of {all}"
    );
}

/// How many of `policies` are answered without a replay, each as a replay answers it.
fn compare(structure: &Structure, policies: &[Policy], run: &RunView<'_>, fleet: &Fleet) -> u64 {
    let mut found = Crossings::default();
    structure.read(run, &fleet.symbols, &mut found, |_| {}, |_| {});
    let whole = run.to_run();
    let mut answered = 0;
    for policy in policies {
        let told = match structure.answer(&found, policy, policy.idle.window, &whole.role) {
            Answer::NeedsReplay => continue,
            Answer::Survives => found.end(),
            Answer::Ends(crossing) => (crossing.cause, crossing.at_ms),
        };
        let replayed = replay(policy, &whole, &fleet.symbols).verdict;
        let direct = (replayed.cause, replayed.at.as_u64());
        assert_eq!(told, direct, "{}: {policy:#?}", whole.name);
        answered += 1;
    }
    answered
}
