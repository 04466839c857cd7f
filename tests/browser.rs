//! The page of a report in a browser: what its controls show is what `sweep` prints, nothing is asked of the network,
//! and everybody can use it. Skipped where there is no Chromium or no node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Place, finish, fleet, hostile, json, repository, wait};

const AXE: &str = "4.10.3";
const IDLE: &str = "60s,300s,360s";

/// The programs that the test needs; none where one is missing.
fn programs() -> Option<(PathBuf, PathBuf)> {
    let find = |names: &[&str]| {
        let paths = std::env::var_os("PATH")?;
        std::env::split_paths(&paths)
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
            .find(|path| path.is_file())
    };
    let found = Some((
        find(&["chromium", "chromium-browser", "google-chrome"])?,
        find(&["node"])?,
    ));
    if found.is_none() {
        eprintln!("skipped: no chromium or no node");
    }
    found
}

/// The script of axe-core, fetched once; none where npm or the network is not there.
fn axe() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("axe-core-{AXE}"));
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder).unwrap();
        // With the environment of the tests: a machine may need its own settings to reach a registry.
        let mut command = Command::new("npm");
        command
            .args([
                "install",
                "--no-save",
                "--no-audit",
                "--no-fund",
                &format!("axe-core@{AXE}"),
            ])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => drop(wait(child, "npm install axe-core")),
            Err(error) => eprintln!("no npm: {error}"),
        }
    }
    if !script.is_file() {
        eprintln!("skipped: no axe-core, the audit is left out");
        return None;
    }
    Some(script)
}

/// What a browser sees of a report in `folder`; none where it cannot be asked.
fn driven(place: &Place, folder: &str) -> Option<Value> {
    let Some((chromium, node)) = programs() else {
        eprintln!("skipped: no chromium or no node");
        return None;
    };
    let axe = axe().unwrap_or_default();
    let mut command = place.command(node);
    command
        .arg(repository().join("tests/browser/drive.mjs"))
        .args([&chromium, &place.path(folder).join("report.html"), &axe]);
    Some(json(&finish(&mut command).ok()))
}

fn sweep(place: &Place, options: &str) -> Value {
    json(&place
        .run(&format!("sweep telemetry --base pi-desktop-0129 --max-false-kill 50% --idle {IDLE} --total 1h,3h,6h,off {options} --format json"))
        .ok())
}

/// What the page shows under `id`, as a number; missing where it shows none.
fn value(shown: &Value, id: &str, which: &str) -> Option<f64> {
    shown[id]
        .get(which)
        .map(|text| text.as_str().unwrap().parse().unwrap())
}

#[test]
fn the_page_shows_what_sweep_prints() {
    let place = fleet::place();
    place.run(&format!("report telemetry --policy pi-desktop-0129 --current pi-desktop-0119 --max-false-kill 50% --idle {IDLE} --out adr")).ok();
    let Some(seen) = driven(&place, "adr") else {
        return;
    };
    assert_eq!(seen["errors"], json("[]"));
    assert_eq!(seen["requests"], json("[]"));
    assert_eq!(seen["sort_faults"], json("[]"));
    assert_eq!(seen["dead_links"], json("[]"));
    assert_eq!(seen["images"], 0);
    assert_eq!(seen["overflow"], 0);
    assert!(seen["tables"].as_u64().unwrap() >= 9);
    // The arrow key moves from the smallest window to the next.
    assert_eq!(seen["keyboard"], json("[\"60s\", \"300s\"]"));
    for (scheme, findings) in seen["audits"].as_object().unwrap() {
        assert!(
            findings.is_null() || findings == &json("[]"),
            "{scheme}: {findings:#}"
        );
    }

    let swept = sweep(&place, "");
    let cells = swept["cells"].as_array().unwrap();
    let walked = seen["walk"]["cells"].as_array().unwrap();
    assert_eq!(walked.len(), cells.len());
    // Both vary the last axis fastest.
    for (shown, cell) in walked.iter().zip(cells) {
        let settings = cell["settings"].as_object().unwrap();
        assert_eq!(
            shown["controls"]["axis-0"], settings["idle.window"],
            "{cell}"
        );
        assert_eq!(
            shown["controls"]["axis-1"], settings["total.budget"],
            "{cell}"
        );
        let rate = &cell["false_kill_rate"];
        assert_eq!(value(shown, "shown-rate", "value"), rate["point"].as_f64());
        assert_eq!(
            value(shown, "shown-rate", "lo"),
            rate["interval"]["lo"].as_f64()
        );
        assert_eq!(
            value(shown, "shown-rate", "up"),
            rate["interval"]["up"].as_f64()
        );
        assert_eq!(
            value(shown, "shown-limit", "value"),
            cell["false_kill_rate_up_one_sided"].as_f64()
        );
        assert_eq!(value(shown, "shown-runs", "value"), cell["runs"].as_f64());
        assert_eq!(
            value(shown, "shown-detection", "lo"),
            cell["detection"]["p50_ms"].as_f64()
        );
        assert_eq!(
            value(shown, "shown-detection", "up"),
            cell["detection"]["p99_ms"].as_f64()
        );
        assert_eq!(
            value(shown, "shown-slots", "value"),
            cell["slot_lost_ms"].as_f64()
        );
        assert_eq!(
            value(shown, "shown-work", "value"),
            cell["work_lost_ms"].as_f64()
        );
        let text = shown["shown-rate"]["text"].as_str().unwrap();
        assert!(text.contains('[') || text == "not estimable", "{text}");
        marked(shown, "chart-heat");
        marked(shown, "chart-survival");
    }
    // A cell has its own place on the map, a window its own on the curve; what decides is about the policy's own budget.
    assert_eq!(places(walked, "chart-heat"), cells.len());
    assert_eq!(places(walked, "chart-survival"), 3);
    let own: Vec<Value> = walked
        .iter()
        .filter(|shown| shown["controls"]["axis-1"] == "6h")
        .cloned()
        .collect();
    assert_eq!((own.len(), places(&own, "chart-front")), (3, 3));
    waits(&place, &seen["walk"]["waits"]);
    costs(&place, &seen["walk"]["costs"]);
    strata(&seen["walk"]["strata"], cells);
}

/// The walk over the cells ended at the last one.
fn waits(place: &Place, shown: &Value) {
    let shown = shown.as_array().unwrap();
    assert!(shown.len() > 5);
    for of in shown {
        let wait = of["controls"]["wait"]
            .as_str()
            .unwrap()
            .replace([' ', ','], "");
        let swept = sweep(place, &format!("--task-wait {wait}"));
        let cell = swept["cells"].as_array().unwrap().last().unwrap();
        assert_eq!(
            value(of, "shown-settle", "value"),
            cell["settle_share"].as_f64(),
            "{wait}"
        );
        marked(of, "chart-settlement");
    }
    assert_eq!(places(shown, "chart-settlement"), shown.len());
}

fn costs(place: &Place, shown: &Value) {
    let shown = shown.as_array().unwrap();
    assert!(shown.len() > 20);
    let rates: BTreeSet<String> = shown
        .iter()
        .map(|of| of["controls"]["hang-rate-control"].to_string())
        .collect();
    assert_eq!(places(shown, "chart-hang-rate"), rates.len());
    let mut cheapest_itself = 0;
    // Every restart cost at one rate, and every rate at one restart cost.
    for (index, of) in shown.iter().enumerate().filter(|(index, _)| index % 7 == 0) {
        let restart = match of["controls"]["restart-control"].as_str().unwrap() {
            "nothing" => "0s".to_owned(),
            ms => ms.replace([' ', ','], ""),
        };
        let rate = of["controls"]["hang-rate-control"].as_str().unwrap();
        // Budgets that are off alone, so that cost is about the sequence that the shown cell is in.
        let swept = json(&place
            .run(&format!("sweep telemetry --base pi-desktop-0129 --max-false-kill 50% --idle {IDLE} --total off --hang-rate {rate} --restart-cost {restart} --format json"))
            .ok());
        let cost = &swept["cost"];
        assert_eq!(
            value(of, "shown-cheapest", "lo"),
            cost["value_ms"].as_f64(),
            "{rate} {restart}"
        );
        let cheapest = cost["cheapest_cell"].as_u64().unwrap();
        let label =
            swept["cells"][usize::try_from(cheapest).unwrap() - 1]["settings"]["idle.window"]
                .as_str()
                .unwrap();
        let text = of["shown-cheapest"]["text"].as_str().unwrap();
        assert!(
            text.starts_with(&format!("idle {label}, total off at ")),
            "{index}: {text}, {label}"
        );
        // The shown cell, 300 s, costs what the cheapest one costs where it is that one, and more elsewhere.
        assert_eq!(of["cell"], "idle 300s, total off (decides nothing)");
        let own = value(of, "shown-cost", "value").unwrap();
        let least = cost["value_ms"].as_f64().unwrap();
        if label == "300s" {
            assert!((own - least).abs() < 1e-9, "{rate} {restart}");
            cheapest_itself += 1;
        } else {
            assert!(own > least, "{rate} {restart}");
        }
    }
    assert!(cheapest_itself > 0);
}

/// The one mark of a chart.
#[track_caller]
fn marked(shown: &Value, chart: &str) -> String {
    let marks = shown["marks"][chart].as_array().unwrap();
    assert_eq!(marks.len(), 1, "{chart}: {shown}");
    marks[0].as_str().unwrap().to_owned()
}

/// How many places the mark of a chart takes.
#[track_caller]
fn places(shown: &[Value], chart: &str) -> usize {
    let found: BTreeSet<String> = shown.iter().map(|of| marked(of, chart)).collect();
    found.len()
}

fn strata(shown: &Value, cells: &[Value]) {
    let shown = shown.as_array().unwrap();
    assert_eq!(shown[0]["option"], "all runs");
    let cell = &cells[7];
    assert!(shown.len() > 2);
    for of in &shown[1..] {
        let (key, group) = of["option"].as_str().unwrap().split_once(' ').unwrap();
        let stratum = cell["strata"]
            .as_array()
            .unwrap()
            .iter()
            .find(|of| of["key"] == key && of["group"] == group)
            .unwrap();
        assert_eq!(
            value(of, "shown-stratum-runs", "value"),
            stratum["runs"].as_f64()
        );
        assert_eq!(
            value(of, "shown-stratum-limit", "value"),
            stratum["false_kill_rate_up_one_sided"].as_f64()
        );
        let share = stratum["false_kills"].as_f64().unwrap() / stratum["runs"].as_f64().unwrap();
        assert!((value(of, "shown-stratum-rate", "value").unwrap() - share).abs() < 1e-9);
    }
    assert_eq!(places(&shown[1..], "chart-strata"), shown.len() - 1);
}

/// A policy without caps by role has caps to choose among; and a result set has the controls that it can answer.
#[test]
fn caps_and_result_sets_have_their_controls() {
    let place = fleet::place();
    let grid = "--idle 60s,300s --total 6h,off --turns 1,2,off --max-false-kill 50%";
    place
        .run(&format!(
            "sweep telemetry --base pi-desktop-0119 {grid} --out swept"
        ))
        .ok();
    let swept = place.json("swept/sweep.json");
    place
        .run(&format!(
            "report telemetry --policy pi-desktop-0119 --current pi-desktop-0129 {grid} --out adr"
        ))
        .ok();
    place
        .run("report swept --policy pi-desktop-0119 --out small")
        .ok();
    for (folder, controls) in [("adr", 6), ("small", 4)] {
        let Some(seen) = driven(&place, folder) else {
            return;
        };
        for empty in ["errors", "requests", "dead_links"] {
            assert_eq!(seen[empty], json("[]"), "{folder}");
        }
        let cells = if folder == "adr" {
            place.json("adr/report.json")["sweep"]["cells"].clone()
        } else {
            swept["cells"].clone()
        };
        let walked = seen["walk"]["cells"].as_array().unwrap();
        assert_eq!(walked.len(), cells.as_array().unwrap().len(), "{folder}");
        for (shown, cell) in walked.iter().zip(cells.as_array().unwrap()) {
            assert_eq!(shown["controls"].as_object().unwrap().len(), controls);
            for (axis, key) in ["idle.window", "total.budget", "turns.cap"]
                .iter()
                .enumerate()
            {
                assert_eq!(
                    shown["controls"][format!("axis-{axis}")],
                    cell["settings"][key]
                );
            }
            let rate = &cell["false_kill_rate"];
            assert_eq!(value(shown, "shown-rate", "value"), rate["point"].as_f64());
            assert_eq!(
                value(shown, "shown-settle", "value"),
                cell["settle_share"].as_f64()
            );
        }
        for (scheme, findings) in seen["audits"].as_object().unwrap() {
            assert!(
                findings.is_null() || findings == &json("[]"),
                "{scheme}: {findings:#}"
            );
        }
    }
}

#[test]
fn hostile_names_are_text_in_a_browser() {
    let place = hostile::place();
    place.run("report hostile --policy pi-desktop-0129 --current pi-desktop-0119 --idle 60s,300s --out adr").ok();
    let Some(seen) = driven(&place, "adr") else {
        return;
    };
    assert_eq!(seen["errors"], json("[]"));
    assert_eq!(seen["requests"], json("[]"));
    assert_eq!(seen["scripts"], 2);
    assert_eq!(seen["images"], 0);
    assert_eq!(seen["overflow"], 0);
    assert!(
        seen["text"]
            .as_str()
            .unwrap()
            .contains("<script>alert(1)</script>&amp;<b>")
    );
    for (scheme, findings) in seen["audits"].as_object().unwrap() {
        assert!(
            findings.is_null() || findings == &json("[]"),
            "{scheme}: {findings:#}"
        );
    }
}
