//! Every chart, from the smallest sweep to the most crowded one: no label cut off, none on another, and both formats.
#![allow(clippy::unwrap_used)]

use policysim_policy::presets;
use policysim_report::charts::{self, Canvas, SurvivalChart};
use policysim_report::sizing::facts::SweepFacts;
use policysim_report::sizing::settled::{SettledByWait, SettledLine, Simulated};
use policysim_sim::gaps::Silences;
use policysim_sim::gaps::curve::{curve, log_lengths};
use policysim_sim::ledger::Totals;
use policysim_sim::run::{RecordedEnd, Run, RunEvent, Symbols};
use policysim_sim::stats::{Level, rates};
use policysim_sim::timeline::Timeline;
use serde_json::{Value, json};

/// A name as long and as wide as a log may hold.
fn long(index: usize) -> String {
    format!("{index} {}", "WWW model of a very long name ".repeat(300))
}

/// A sweep over `windows` times `totals` cells with `strata` groups of each key.
fn sweep(windows: usize, totals: usize, strata: usize, unresolved: u64) -> SweepFacts {
    let mut cells = Vec::new();
    for window in 0..windows {
        for total in 0..totals {
            let number = cells.len() + 1;
            let kills = 200_u64.saturating_sub(40 * window as u64);
            let seconds = 60 * (window as u64 + 1);
            cells.push(json!({
                "cell": number,
                "label": format!("idle.window={seconds}s,total.budget={}h", total + 1),
                "settings": { "idle.window": format!("{seconds}s"), "total.budget": format!("{}h", total + 1) },
                "runs": 1_234_567, "killed": kills + 50, "kills": { "idle_timeout": kills + 50 },
                "false_kills": kills, "unresolved_kills": unresolved, "unresolved_survivals": 0,
                "false_kill_rate": { "n": 9_000, "point": kills as f64 / 9_000.0, "interval": { "lo": 0.0, "up": 0.03 }, "status": "ok" },
                "false_kill_rate_bounds": { "lo": 0.0, "up": 0.03 },
                "false_kill_rate_up_one_sided": (kills + 3) as f64 / 9_000.0,
                "certify": { "place": "certified", "runs": 4_500, "false_kills": kills / 2, "unresolved": 0,
                    "false_kill_rate_up_one_sided": 0.01, "decision": "pass", "runs_needed": null },
                "against_base": { "newly_killed": 0, "newly_spared": 0 },
                "hung": 90, "hung_missed": 0,
                "detection": { "source": "measured", "n": 90, "p50_ms": seconds * 1_000, "p99_ms": seconds * 2_000 },
                "settle_share": 0.5, "slot_lost_ms": 1_000_000, "work_lost_ms": 1_000_000,
                "pareto": total == 0,
                "strata": groups(strata),
            }));
        }
    }
    let ranges: Vec<Value> = (0..windows)
        .rev()
        .map(|window| {
            let rate = |step: usize| {
                if step == windows {
                    1.0
                } else {
                    0.000_2 * 1.3_f64.powi(i32::try_from(step).unwrap())
                }
            };
            let step = windows - 1 - window;
            json!({
                "cell": window * totals + 1,
                "hang_rate_from": if step == 0 { 0.0 } else { rate(step) },
                "hang_rate_to": rate(step + 1),
            })
        })
        .collect();
    let facts = json!({
        "schema_version": 1,
        "data": { "name": "d", "digest": "x", "runs": 9_090, "sources": 1, "unanswered": 0, "open_runs": 0, "hung": 90,
            "first_day": "", "last_day": "", "malformed_lines": 0, "lines": 0, "caveats": [] },
        "base": "pi-desktop-0129", "axes": ["idle.window", "total.budget"], "task_wait_ms": 600_000,
        "constraints": { "max_false_kill_rate": 0.01, "settle_within_wait": false },
        "recommendation": 1, "qualifying_cells": 1, "nearest": null, "reason": "r", "notes": [],
        "protection": { "method": "fixed_sequence", "seed": 0, "select_runs": 0, "certify_runs": 9_000, "in_sample": true },
        "cost": { "restart_ms": 300_000, "runs": 9_090, "hangs": 90, "hang_rates": { "lo": 0.008, "up": 0.012 },
            "hang_rates_source": "labelled_hangs", "cheapest_cell": 1, "value_ms": 1.0, "refused": null, "best_for": ranges },
        "recorded": { "idle_limit_ms": null, "kills_missing": null, "aborts_in_silence": 0 },
        "cells": cells,
    });
    SweepFacts::parse(&facts.to_string()).unwrap()
}

fn groups(strata: usize) -> Vec<Value> {
    ["model", "role"]
        .iter()
        .flat_map(|key| {
            (0..strata).map(move |index| {
                json!({ "key": key, "group": long(index), "runs": 1_234_567, "false_kills": index, "unresolved": 0,
                    "false_kill_rate_up_one_sided": 0.001 * (index + 1) as f64, "certify_runs": 600, "certify_upper": 0.01,
                    "decision": "inconclusive", "runs_needed": 12_345 })
            })
        })
        .collect()
}

#[track_caller]
fn readable(canvas: Option<Canvas>) {
    let canvas = canvas.unwrap();
    assert_eq!(canvas.faults(), Vec::<String>::new(), "{}", canvas.title());
    let svg = canvas.to_svg().unwrap();
    assert!(svg.starts_with("<svg role=\"img\"") && svg.trim_end().ends_with("</svg>"));
    assert!(canvas.to_png().unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn sweeps_of_any_size_are_drawn_so_that_they_can_be_read() {
    for (windows, totals, strata) in [(1, 1, 2), (4, 2, 3), (10, 4, 12), (16, 6, 40)] {
        let facts = sweep(windows, totals, strata, 3);
        let sweep = &facts.sweep;
        readable(charts::front(sweep, Some(1)));
        readable(charts::heat(sweep, Some(1)));
        readable(charts::hang_rate(sweep, &[0.001, 0.01]));
        readable(charts::strata(sweep, &sweep.cells[0]));
    }
    let one = sweep(1, 1, 1, 0);
    assert!(charts::strata(&one.sweep, &one.sweep.cells[0]).is_none());
    let crowded = sweep(40, 2, 1, 0);
    assert!(
        charts::heat(&crowded.sweep, None).is_none(),
        "40 columns cannot be read"
    );
}

#[test]
fn survival_settlement_ledger_and_timeline_can_be_read() {
    let mut silences = Silences::default();
    for k in 1..5_000_u64 {
        silences.add(None, k * k % 400_000 + 1, None);
    }
    silences.add(None, 60_000, Some(policysim_sim::gaps::Cut::Abort));
    let mut lengths = log_lengths(100, 400_000);
    lengths.extend([240_000, 250_000, 300_000]);
    let found = curve(&silences, &lengths);
    let named = [
        (240_000, "240 s candidate".to_owned()),
        (250_000, "250 s recommended".to_owned()),
        (300_000, "300 s current".to_owned()),
    ];
    readable(charts::survival(SurvivalChart {
        curves: &[
            ("idle clock", &found),
            ("pre-token waits, those cut by an abort included", &found),
        ],
        named: &named,
        swept_ms: &[60_000, 120_000, 240_000],
    }));
    let line = |name: &str, window_ms: u64| SettledLine {
        name: name.to_owned(),
        window_ms,
        settling_lag_ms: 0,
        shares: vec![0.0, 0.5, 0.8],
        simulated: vec![Simulated {
            wait_ms: 600_000,
            settled_in_wait: rates::rate(40, 90, Level::P95),
        }],
    };
    readable(charts::settlement(&SettledByWait {
        task_wait_ms: 600_000,
        waits_ms: vec![60_000, 600_000, 1_800_000],
        hang_ppm: 0,
        notes: Vec::new(),
        lines: vec![
            line("candidate", 300_000),
            line("current", 600_000),
            line("recommended", 240_000),
        ],
    }));
    readable(charts::spent(&Totals {
        runs: 3,
        ms: [80_000_000, 10_000_000, 1, 0, 5_000, 0, 9],
    }));
    let events = [0, 5_000, 20_000, 700_000, 705_000]
        .map(|t_ms| RunEvent::new(t_ms, policysim_policy::Kind::MessageUpdate));
    let run = Run {
        name: long(1).into(),
        events: events.to_vec(),
        end: RecordedEnd::Completed,
        end_ms: 710_000,
        ..Run::default()
    };
    let policy = presets::find("pi-desktop-0129").unwrap();
    let line = Timeline::new(&policy, &run, &Symbols::default());
    assert!(line.is_false_kill());
    assert_eq!(line.replayed.verdict.at.as_u64(), 320_000);
    readable(Some(charts::timeline(
        &run.name,
        policy.idle.window,
        &line,
        run.end_ms,
    )));
    let patient = Timeline::new(
        &presets::find("pi-desktop-0119").unwrap(),
        &run,
        &Symbols::default(),
    );
    readable(Some(charts::timeline(
        &run.name, None, &patient, run.end_ms,
    )));
}
