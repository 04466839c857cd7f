//! Events per second through `handle_event`, beside the least that answers the same question.
//!
//! The goal (performance goal G8) is a ratio: the core, one policy, verdicts only, against the hand-written loop.
#![allow(clippy::unwrap_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use policysim_policy::{CallId, Event, Kind, Millis, Policy, Setup, Trace, Watchdog, presets};

fn main() {
    divan::main();
}

/// One recorded event: time, kind, id.
type Row = (u64, Kind, u64);

/// Runs of about 500 events by a fixed recipe: bursts of some 40 tokens, tool calls of which some overlap,
/// now and then a human wait; waits for the model of 2 to 20 s.
fn runs() -> Vec<Vec<Row>> {
    let mut state = 42_u64;
    let mut below = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    (0..200)
        .map(|_| {
            let mut at = 0;
            let mut id = 0;
            let mut run = vec![(0, Kind::RunStart, 0)];
            for _ in 0..10 {
                run.push((at, Kind::TurnStart, 0));
                at += 2000 + below(18_000);
                run.push((at, Kind::MessageStart, 0));
                for _ in 0..20 + below(40) {
                    at += 20 + below(80);
                    run.push((at, Kind::MessageUpdate, 0));
                }
                run.push((at, Kind::MessageEnd, 0));
                let calls = 1 + below(3);
                for call in 0..calls {
                    run.push((at, Kind::ToolStart, id + call));
                }
                for call in 0..calls {
                    at += 100 + below(5000);
                    run.push((at, Kind::ToolEnd, id + call));
                }
                id += calls;
                if below(20) == 0 {
                    run.push((at, Kind::HumanWaitStart, 0));
                    at += below(3_600_000);
                    run.push((at, Kind::HumanWaitEnd, 0));
                }
                run.push((at, Kind::TurnEnd, 0));
            }
            run
        })
        .collect()
}

fn count(runs: &[Vec<Row>]) -> ItemsCount {
    ItemsCount::new(runs.iter().map(Vec::len).sum::<usize>())
}

/// Idle window and total budget, tools and human waits pause: no policy, no verdict, no other rule.
#[divan::bench]
fn hand_written_loop(bencher: Bencher<'_, '_>) {
    let runs = runs();
    bencher.counter(count(&runs)).bench(|| {
        let mut kills = 0_u64;
        for run in black_box(&runs) {
            let (mut last, mut open) = (0, Vec::with_capacity(4));
            for &(at, kind, id) in run {
                if at >= 21_600_000 || (open.is_empty() && at - last >= 300_000) {
                    kills += 1;
                    break;
                }
                match kind {
                    Kind::ToolStart | Kind::HumanWaitStart if !open.contains(&(kind, id)) => {
                        open.push((kind, id));
                    }
                    Kind::ToolEnd => open.retain(|thing| *thing != (Kind::ToolStart, id)),
                    Kind::HumanWaitEnd => {
                        open.retain(|thing| *thing != (Kind::HumanWaitStart, id));
                    }
                    _ => {}
                }
                last = at;
            }
        }
        kills
    });
}

fn replay(bencher: Bencher<'_, '_>, policy: &Policy, trace: Trace) {
    let runs = runs();
    let setup = Setup {
        trace,
        ..Setup::default()
    };
    bencher.counter(count(&runs)).bench(|| {
        let mut kills = 0_u64;
        for run in black_box(&runs) {
            let mut dog = Watchdog::with(policy, Millis::ZERO, &setup);
            for &(at, kind, id) in run {
                let event = Event::new(kind).with_id(CallId::new(id));
                dog.handle_event(Millis::new(at), &event);
            }
            kills += u64::from(dog.verdict().is_some());
            while let Some(output) = dog.poll_output() {
                black_box(output);
            }
        }
        kills
    });
}

#[divan::bench(args = presets::PRESETS.map(|preset| preset.name))]
fn handle_event(bencher: Bencher<'_, '_>, preset: &str) {
    replay(bencher, &presets::find(preset).unwrap(), Trace::Verdict);
}

#[divan::bench(args = ["pi-desktop-0129"])]
fn with_silences(bencher: Bencher<'_, '_>, preset: &str) {
    replay(bencher, &presets::find(preset).unwrap(), Trace::Silences);
}

#[divan::bench(args = ["pi-desktop-0129"])]
fn with_full_transcript(bencher: Bencher<'_, '_>, preset: &str) {
    replay(bencher, &presets::find(preset).unwrap(), Trace::Full);
}

#[divan::bench]
fn new_watchdog(bencher: Bencher<'_, '_>) {
    let policy = presets::find("pi-desktop-0129").unwrap();
    bencher.bench(|| Watchdog::new(black_box(&policy), Millis::ZERO));
}
