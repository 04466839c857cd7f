//! `settle` end to end: the demo, its options, and the same bytes for any number of threads.

use crate::{Place, fleet, json};

#[test]
fn the_demo_settles_and_says_the_answer_last() {
    let place = Place::new();
    let printed = place.run("settle --parents 300").ok();
    let last = printed.trim_end().rsplit("\n\n").next().unwrap();
    assert!(
        last.starts_with("Idle 300s (pi-desktop-0129) under waits of 600s"),
        "{last}"
    );
    assert!(
        printed.contains("300 parents with 4 tasks each, 1,200 runs"),
        "{printed}"
    );
}

#[test]
fn more_threads_print_the_same_bytes() {
    let place = fleet::place();
    let line = "settle telemetry --hang-rate 10% --nested 20% --wait 60s..900s/120s --format json";
    let one = place.run(&format!("{line} --threads 1")).ok();
    assert_eq!(one, place.run(&format!("{line} --threads 2")).ok());
    assert_eq!(one, place.run(&format!("{line} --threads 2")).ok());
    assert_ne!(one, place.run(&format!("{line} --threads 2 --seed 1")).ok());
}

/// Issue 6: 300 s against 600 s has the closed form 50 %, 600 s against 600 s settles in no wait it began in.
#[test]
fn a_window_as_long_as_the_wait_settles_outside_it() {
    let place = Place::new();
    let printed = place
        .run("settle --policy pi-desktop-0119,pi-desktop-0129 --on-expiry read-as-failure --parents 500 --hang-rate 3% --format json")
        .ok();
    let cells = json(&printed)["cells"].as_array().unwrap().clone();
    let of = |cell: usize, key: &str| cells[cell]["counts"][key].as_u64().unwrap();
    assert_eq!(cells[0]["settled_in_wait_closed_form"], 0.0);
    assert_eq!(cells[1]["settled_in_wait_closed_form"], 0.5);
    // Under 0119 hangs are read as failures at the expiry; under 0129 most settle before.
    assert!(of(0, "hangs") > 50 && of(0, "hangs_settled_in_wait") * 10 < of(0, "hangs_in_wait"));
    assert!(of(1, "hangs_settled_in_wait") * 2 > of(1, "hangs_in_wait"));
    assert!(of(0, "hangs_given_up") > of(1, "hangs_given_up"));
}

#[test]
fn waits_are_held_to_the_contract_and_said_so() {
    let place = Place::new();
    let printed = place.run("settle --wait 500ms,2h --parents 50").ok();
    for held in [
        "A wait of 500ms is held to 1s",
        "A wait of 2h is held to 900s",
    ] {
        assert!(printed.contains(held), "{printed}");
    }
}

#[test]
fn wrong_options_are_one_line() {
    let place = Place::new();
    for (line, parts) in [
        ("settle --wait 60", &["--wait", "has no unit"][..]),
        ("settle --wait off", &["--wait", "off"]),
        ("settle --hang-rate 200%", &["--hang-rate"]),
        ("settle --horizon 0s", &["--horizon"]),
        ("settle --policy nothing", &["unknown preset nothing"]),
        ("settle --model missing.toml", &["missing.toml"]),
        ("settle demo.csv --model m.toml", &["cannot be used with"]),
        ("settle --think soon", &["--think", "soon"]),
    ] {
        let error = place.run(line).error();
        for part in parts {
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

/// `sweep --settle` puts the simulation beside the closed form.
#[test]
fn a_sweep_shows_settlement_where_asked() {
    let place = fleet::place();
    let plain = place
        .run("sweep telemetry --idle 60s,300s --format json")
        .ok();
    assert!(json(&plain)["cells"][0].get("settlement").is_none());
    let printed = place
        .run("sweep telemetry --idle 60s,300s --settle --format json")
        .ok();
    let cell = &json(&printed)["cells"][0];
    assert!(
        cell["settlement"]["waits_per_run"]["point"]
            .as_f64()
            .unwrap()
            > 0.0,
        "{cell}"
    );
    let csv = place
        .run("sweep telemetry --idle 60s,300s --settle --format csv")
        .ok();
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .contains("simulated_settled_in_wait"),
        "{csv}"
    );
    let table = place.run("sweep telemetry --idle 60s,300s --settle").ok();
    assert!(table.contains("hang to knowledge"), "{table}");
}

/// Two hundred runs of half a minute, none of which hangs.
fn without_hangs() -> Place {
    let mut rows = String::from("run,t_ms,kind,outcome\n");
    for run in 0..200 {
        rows.push_str(&format!(
            "r{run:03},0,run_start,\nr{run:03},15000,message_update,\nr{run:03},{},run_end,completed\n",
            20_000 + run * 50
        ));
    }
    let place = Place::new();
    place.write("runs.csv", rows);
    place
}

/// Figures stand with their intervals in the text, too; where nothing hangs, it says so.
#[test]
fn the_text_gives_intervals_and_says_where_nothing_hangs() {
    let place = Place::new();
    let text = place.run("settle --parents 300 --quiet").ok();
    let (_, intervals) = text
        .split_once("The intervals of what stands above")
        .unwrap();
    let rows: Vec<&str> = intervals
        .lines()
        .filter(|line| line.starts_with("300s"))
        .collect();
    assert_eq!(rows.len(), 2, "{text}");
    // known within 1, 2, 3 waits, p50, p99, mean; slots, blocked, stopped, closed, done twice
    assert_eq!(rows[0].matches('…').count(), 6, "{text}");
    assert_eq!(rows[1].matches('…').count(), 5, "{text}");

    let place = without_hangs();
    let text = place.run("settle runs.csv --hang-rate 0% --quiet").ok();
    assert!(text.contains("no hang"), "{text}");
    assert!(text.contains("No run hangs here"), "{text}");
    let line = "sweep runs.csv --idle 60s,300s --settle --hang-rate 0% --quiet";
    let text = place.run(line).ok();
    assert!(text.contains("no hang"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("No run comes to hang in the simulation"),
        "{text}"
    );
}

/// With parents simulated, a hang costs what it holds until they know of it.
#[test]
fn a_sweep_with_settlement_prices_hangs_by_the_parents_knowledge() {
    let place = without_hangs();
    let line = "sweep runs.csv --idle 60s,300s --hang-rate 5% --quiet";
    for (options, source, words) in [
        ("", "window_and_lag", "its slot for the window"),
        (
            "--settle",
            "parents_knowledge_simulated",
            "until the parent knows",
        ),
    ] {
        let found = json(&place.run(&format!("{line} {options} --format json")).ok());
        assert_eq!(found["cost"]["hang_time"], source);
        let text = place.run(&format!("{line} {options}")).ok();
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{text}");
    }
}

/// Every hang is known after some wait, or never: those of runs that the parent had taken for failed before stand apart.
#[test]
fn hangs_are_accounted_for_whatever_the_parent_had_made_of_the_run() {
    let place = Place::new();
    let line = "settle --quiet --policy pi-desktop-0119 --wait 60s,600s --on-expiry read-as-failure --parents 400 --hang-rate 5% --format json";
    let found = json(&place.run(line).ok());
    let cells = found["cells"].as_array().unwrap();
    for cell in cells {
        let text = cell.to_string();
        let number = |name: &str| -> u64 {
            let after = text.split(&format!("\"{name}\":")).nth(1).unwrap();
            let digits = after.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            digits.parse().unwrap()
        };
        let list = text.split("\"hangs_known_after_waits\":[").nth(1).unwrap();
        let known = list.split(']').next().unwrap().split(',');
        let known: u64 = known.map(|n| n.parse::<u64>().unwrap()).sum();
        assert!(number("hangs") > 0, "{text}");
        assert_eq!(
            known + number("hangs_never_known"),
            number("hangs"),
            "{text}"
        );
    }
    assert_eq!(cells.len(), 2);
}

/// Delegates of delegates are numbered between those of a parent that goes on spawning.
#[test]
fn nested_delegates_of_parents_that_go_on_spawning() {
    let place = fleet::place();
    for habit in ["--cap 2", "--spawn-every 10s", "--tasks 12"] {
        let line = format!("settle telemetry --nested 20% --parents 50 {habit} --format json");
        let nested = json(&place.run(&line).ok());
        let plain = json(&place.run(&line.replace("--nested 20% ", "")).ok());
        let runs = |of: &serde_json::Value| of["cells"][0]["counts"]["runs"].clone();
        assert!(runs(&nested).is_u64(), "{nested}");
        assert_eq!(runs(&nested), runs(&plain), "{habit}");
    }
}
