//! A summary file stands for its events where it can, and says so where it cannot.

use serde_json::Value;

use crate::{Place, fleet, json};

fn place() -> Place {
    let place = fleet::place();
    place
        .run("gate summarise telemetry --policy pi-desktop-0129 --out t.summary --quiet")
        .ok();
    place
}

fn sweep(place: &Place, data: &str, options: &str) -> Value {
    let line = format!("sweep {data} {options} --format json --quiet");
    json(&place.run(&line).ok())
}

#[test]
fn a_sweep_of_a_summary_is_that_of_its_events() {
    let place = place();
    for options in [
        "--idle 60s..420s/60s --by model",
        "--idle 45s..300s/51s,off --total 5m,1h,off --turns 1,2,off --max-false-kill 20%",
        "--hang-rate 2% --restart-cost 30s --cluster session --recorded-idle 600s --seed 4",
    ] {
        let mut events = sweep(&place, "telemetry", options);
        let mut summary = sweep(&place, "t.summary", options);
        let notes = summary["notes"].take();
        assert!(notes.to_string().contains("from a summary"), "{notes}");
        events["notes"].take();
        for sweep in [&mut events, &mut summary] {
            assert!(sweep["cells"].as_array().unwrap().len() > 1);
            sweep["focus"]["detector"].take();
            for finding in sweep["findings"].as_array_mut().unwrap() {
                // when a heap began is not in a summary
                finding.as_object_mut().unwrap().remove("first_seen_ms");
                finding.as_object_mut().unwrap().remove("first_seen");
                finding.as_object_mut().unwrap().remove("text");
            }
        }
        assert_eq!(summary, events, "{options}");
    }
}

#[test]
fn what_a_summary_does_not_hold_is_named() {
    let place = place();
    for option in ["--list-kills 1", "--settle", "--verify 5"] {
        let error = place
            .run(&format!("sweep t.summary {option} --quiet"))
            .error();
        let name = option.split(' ').next().unwrap();
        assert!(error.contains(&format!("{name} needs events")), "{error}");
        assert!(error.contains("t.summary"), "{error}");
    }
    for axis in [
        "idle.first=60s,90s",
        "pause.tool=none,idle",
        "idle.window=5s,60s",
    ] {
        let error = place
            .run(&format!("sweep t.summary --axis {axis} --quiet"))
            .error();
        assert!(error.contains("it does not hold what"), "{axis}: {error}");
    }
    let error = place
        .run("sweep t.summary --since 2026-01-01 --quiet")
        .error();
    assert!(
        error.contains("--since") && error.contains("summary"),
        "{error}"
    );
}

/// A report needs no events where a sweep of the summary left its result set.
#[test]
fn a_report_is_written_from_a_sweep_of_the_summary() {
    let place = place();
    place.run("sweep t.summary --out from-summary --quiet").ok();
    place.run("sweep telemetry --out from-events --quiet").ok();
    for set in ["from-summary", "from-events"] {
        place
            .run(&format!(
                "report {set} --policy pi-desktop-0129 --out adr-{set} --quiet"
            ))
            .ok();
    }
    let cells = |set: &str| place.json(&format!("adr-{set}/report.json"))["sweep"]["cells"].clone();
    assert!(
        cells("from-events")
            .as_array()
            .is_some_and(|cells| !cells.is_empty())
    );
    assert_eq!(cells("from-summary"), cells("from-events"));
}

#[test]
fn every_other_command_says_what_a_summary_is() {
    let place = place();
    for command in [
        "gaps t.summary",
        "gaps telemetry --against t.summary",
        "gate init t.summary --policy pi-desktop-0129",
        "gate summarise t.summary --policy pi-desktop-0129 --out again.summary",
        "import t.summary --out telemetry-again",
        "replay t.summary --run r --policy pi-desktop-0129",
        "report t.summary --policy pi-desktop-0129 --out adr",
        "settle t.summary --policy pi-desktop-0129",
        "synth fit t.summary --out model.toml",
    ] {
        let error = place.run(&format!("{command} --quiet")).error();
        assert!(
            error.contains(
                "t.summary is a summary of `policysim gate summarise`, which holds no events"
            ),
            "{command}: {error}"
        );
    }
}
