//! A fleet small enough to work its figures out by hand.

use std::fmt::Write;

use crate::Place;

/// Runs that live: run `k` (1 to 20) is silent for `20 k` seconds within an answer, then goes on
/// and completes after a tool call and a second turn.
pub(crate) const ALIVE: u64 = 20;
/// Runs that hang after 20 s and are ended an hour later.
pub(crate) const HUNG: u64 = 3;

/// The fleet as an events table; `alive` and `hung` run names are `a01` … and `h01` ….
pub(crate) fn events() -> String {
    let mut rows = String::from("run,t_ms,kind,call_id,name,outcome,started_at_ms,role,model\n");
    for k in 1..=ALIVE {
        let model = if k % 2 == 0 {
            "model-even"
        } else {
            "model-odd"
        };
        let started_at_ms = 1_772_442_000_000_u64 + k * 3_600_000;
        let after_ms = 7_000 + 20_000 * k;
        let run = format!("a{k:02}");
        let rest = [
            format!("0,run_start,,,,{started_at_ms},explorer,{model}"),
            "0,turn_start,,,,,,".to_owned(),
            "5000,message_start,,,,,,".to_owned(),
            "7000,message_update,,,,,,".to_owned(),
            format!("{after_ms},message_update,,,,,,"),
            format!("{},message_end,,,,,,", after_ms + 1_000),
            format!("{},tool_start,c1,Grep,,,,", after_ms + 1_000),
            format!("{},tool_end,c1,Grep,,,,", after_ms + 2_000),
            format!("{},turn_end,,,,,,", after_ms + 2_000),
            format!("{},turn_start,,,,,,", after_ms + 2_000),
            format!("{},message_end,,,,,,", after_ms + 9_000),
            format!("{},turn_end,,,,,,", after_ms + 9_000),
            format!("{},run_end,,,completed,,,", after_ms + 9_000),
        ];
        for row in rest {
            writeln!(rows, "{run},{row}").unwrap();
        }
    }
    for k in 1..=HUNG {
        let started_at_ms = 1_772_542_000_000_u64 + k * 3_600_000;
        for row in [
            format!("0,run_start,,,,{started_at_ms},reviewer,model-odd"),
            "10000,message_start,,,,,,".to_owned(),
            "20000,message_update,,,,,,".to_owned(),
            "3620000,run_end,,,hung,,,".to_owned(),
        ] {
            writeln!(rows, "h{k:02},{row}").unwrap();
        }
    }
    rows
}

/// How many of the living runs an idle window of `window_s` seconds kills: those whose silence reaches it.
pub(crate) fn killed_alive(window_s: u64) -> u64 {
    (1..=ALIVE).filter(|k| 20 * k >= window_s).count() as u64
}

/// A place that holds the fleet as `fleet.csv` and as the dataset `telemetry`.
pub(crate) fn place() -> Place {
    let place = Place::new();
    place.write("fleet.csv", events());
    place.run("import fleet.csv --out telemetry").ok();
    place
}
