//! The choice of a sweep: what certifies it, what it depends on, and when there is none.

use std::fmt::Write;

use serde_json::Value;

use crate::{Place, fleet, json};

const DAY_MS: u64 = 86_400_000;
/// 2026-03-02, as the other fleets.
const START_MS: u64 = 1_772_442_000_000;

/// Runs as an events table: each is silent once within its answer.
#[derive(Default)]
struct Table {
    rows: String,
    runs: u64,
}

impl Table {
    fn add(&mut self, day: u64, model: &str, silence_ms: u64, end: &str) {
        self.runs += 1;
        let run = format!("r{:05}", self.runs);
        let started_at_ms = START_MS + day * DAY_MS;
        let after_ms = 2_000 + silence_ms;
        let mut row = |row: String| writeln!(self.rows, "{run},{row}").unwrap();
        row(format!("0,run_start,,,{started_at_ms},{model}"));
        row("1000,message_start,,,,".to_owned());
        row("2000,message_update,,,,".to_owned());
        if end == "completed" {
            row(format!("{after_ms},message_end,,,,"));
        }
        row(format!("{after_ms},run_end,,{end},,"));
    }

    fn live(&mut self, runs: u64, silence_ms: u64) {
        for _ in 0..runs {
            self.add(0, "m", silence_ms, "completed");
        }
    }

    fn place(&self) -> Place {
        let place = Place::new();
        let header = "run,t_ms,kind,call_id,outcome,started_at_ms,model\n";
        place.write("runs.csv", format!("{header}{}", self.rows));
        place
    }
}

fn sweep(place: &Place, options: &str) -> Value {
    json(
        &place
            .run(&format!("sweep runs.csv {options} --format json"))
            .ok(),
    )
}

fn near(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("{value}"));
    assert!((found - expected).abs() < 5e-4, "{found} is not {expected}");
}

/// BR-96: 970 waits of up to 58 s and 30 cut at 60 s.
fn recorded_under_60_s() -> Place {
    let mut table = Table::default();
    table.live(900, 5_000);
    table.live(60, 30_000);
    table.live(10, 58_000);
    for _ in 0..30 {
        table.add(0, "m", 60_000, "killed");
    }
    table.place()
}

/// BR-96 as samples: cut ones are in no distribution, so that the limit at which they were cut is named and held.
#[test]
fn br_96_samples_that_were_cut_at_a_limit_certify_nothing() {
    let place = Place::new();
    let mut table = "kind,duration_ms,censored,run\n".to_owned();
    for (times, ms, censored) in [
        (900, 5_000, false),
        (60, 30_000, false),
        (10, 58_000, false),
        (30, 60_000, true),
    ] {
        for n in 0..times {
            table.push_str(&format!("pre_token,{ms},{censored},r{ms}-{n}\n"));
        }
    }
    place.write("waits.csv", table);
    let found = json(
        &place
            .run("sweep waits.csv --idle 30s,60s,90s,300s --format json")
            .ok(),
    );
    assert_eq!(found["recorded"]["idle_limit_ms"], 60_000, "{found:#}");
    assert_eq!(found["recommendation"], Value::Null);
    let text = place.run("sweep waits.csv --idle 60s,300s").ok();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("30 samples were cut, and stand in no distribution: most of them at 60 s"),
        "{flat}"
    );
    assert!(flat.contains("No recommendation"), "{flat}");
}

#[test]
fn br_96_a_window_above_the_recorded_limit_is_not_identifiable() {
    let place = recorded_under_60_s();
    let found = sweep(&place, "--idle 30s,60s,90s");
    assert_eq!(found["recorded"]["idle_limit_ms"], 60_000, "{found:#}");
    assert_eq!(found["recorded"]["idle_limit_source"], "recorded_kills");
    assert_eq!(found["recorded"]["kills_missing"], Value::Null);
    assert_eq!(found["recommendation"], Value::Null);
    // The rate of the limit itself lies between 0 and 3 %, and a longer window is known no better.
    for cell in [1, 2] {
        let bounds = &found["cells"][cell]["false_kill_rate_bounds"];
        near(&bounds["lo"], 0.0);
        near(&bounds["up"], 0.03);
    }
    assert_eq!(found["cells"][0]["false_kills"], 70);
    assert_eq!(found["cells"][0]["ties_at_W"], 60);
    // Even where the bound would do, these logs do not speak for a longer window.
    let found = sweep(&place, "--idle 60s,90s --max-false-kill 10%");
    assert_eq!(found["recommendation"], 1, "{}", found["reason"]);
    let found = sweep(&place, "--idle 90s,120s --max-false-kill 10%");
    assert_eq!(found["recommendation"], Value::Null);
    let reason = found["reason"].as_str().unwrap();
    assert!(
        reason.contains("above the recorded limit of 60 s"),
        "{reason}"
    );
    let text = place.run("sweep runs.csv --idle 30s,60s,90s").ok();
    for words in ["idle limit of 60 s", "not identifiable", "observe mode"] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{words}\n{text}");
    }
}

/// Thirty equal runs, each killed after 2 s of work and 60 s of silence: every draw of sessions costs the same.
#[test]
fn the_cost_of_the_focus_has_its_interval_and_is_paired_with_the_base() {
    let mut table = Table::default();
    table.live(30, 100_000);
    let place = table.place();
    let options = "--idle 60s --hang-rate 0.000001% --max-false-kill 1%";
    let found = sweep(&place, options);
    let focus = &found["focus"];
    let close = |value: &Value, expected: f64| {
        let found = value.as_f64().unwrap_or_else(|| panic!("{focus:#}"));
        assert!((found - expected).abs() < 1.0, "{found} is not {expected}");
    };
    let cost = &focus["cost_ranked"];
    assert_eq!(cost["sessions"], 30);
    close(&cost["point_ms"], 62_000.0);
    close(&cost["interval_ms"]["lo"], 62_000.0);
    close(&cost["interval_ms"]["up"], 62_000.0);
    // the base's 300 s kill none of them
    let rival = &focus["costs_more_than"][0];
    assert_eq!(rival["cell"], Value::Null);
    close(&rival["interval_ms"]["lo"], 62_000.0);
    close(&rival["interval_ms"]["up"], 62_000.0);
    // One mistake in three gaps of 1, 1 and 100 s: 30 in 3,060 s of activity.
    let detector = &focus["detector"];
    for side in ["lo", "up"] {
        near(&detector["query_accuracy_interval"][side], 62.0 / 102.0);
    }
    let hours = &detector["mistakes_per_active_hour_interval"];
    let within = 30.0 * 3600.0 / 3060.0;
    assert!(hours["lo"].as_f64().unwrap() < within && within < hours["up"].as_f64().unwrap());
    near(&detector["per_gap_rate"]["point"], 1.0 / 3.0);
    let flat = place.run(&format!("sweep runs.csv {options}")).ok();
    let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Cell 1 costs 62.0 s [62.0 … 62.0 s] per run",
        "Cell 1 costs 62.0 s [62.0 … 62.0 s] more than pi-desktop-0129",
    ] {
        assert!(flat.contains(words), "{words}\n{flat}");
    }
    // A single session has no interval, and the reason stands in its place.
    let mut table = Table::default();
    table.live(1, 100_000);
    let found = sweep(&table.place(), options);
    let cost = &found["focus"]["cost_ranked"];
    assert_eq!(cost["interval_ms"]["lo"], Value::Null);
    assert_eq!(cost["reason"]["code"], "few_sessions");
    // Too few kills for a spread: no interval rather than one without width.
    let mut table = Table::default();
    table.live(40, 5_000);
    let cost = sweep(&table.place(), options)["focus"]["cost_ranked"].clone();
    assert_eq!(cost["interval_ms"]["up"], Value::Null);
    assert_eq!(cost["reason"]["need"], 5);
}

#[test]
fn kills_that_seem_to_be_missing_leave_nothing_certified() {
    let mut table = Table::default();
    table.live(990, 5_000);
    table.live(10, 58_000);
    let place = table.place();
    let found = sweep(&place, "--idle 30s,60s --max-false-kill 5%");
    assert_eq!(found["recorded"]["idle_limit_ms"], Value::Null);
    assert_eq!(found["recommendation"], 1);
    // Told of a limit of 60 s: nothing stands at it, although the longest gap comes near.
    let options = "--idle 30s,60s --max-false-kill 5% --recorded-idle 60s";
    let found = sweep(&place, options);
    let missing = found["recorded"]["kills_missing"].as_str().unwrap();
    assert!(missing.contains("58000 ms"), "{missing}");
    assert_eq!(found["recommendation"], Value::Null);
    let reason = found["nearest"]["reason"].as_str().unwrap();
    assert!(reason.contains("missing"), "{reason}");
}

#[test]
fn br_90_no_kill_in_twelve_runs_is_no_rate_of_zero() {
    let mut table = Table::default();
    table.live(12, 5_000);
    let found = sweep(&table.place(), "--idle 60s,300s --max-false-kill 1%");
    let cell = &found["cells"][0];
    near(&cell["false_kill_rate"]["point"], 0.0);
    near(&cell["false_kill_rate_up_one_sided"], 0.221);
    assert_eq!(cell["certify"]["decision"], "inconclusive");
    assert_eq!(found["recommendation"], Value::Null);
    assert_eq!(found["nearest"]["runs_needed"], 299);
    // No hung run: the detection is the closed form, of no sample.
    assert_eq!(cell["detection"]["n"], 0);
    assert_eq!(cell["detection"]["source"], "closed_form");
}

#[test]
fn br_88_five_detections_carry_no_p99() {
    let mut table = Table::default();
    for _ in 0..5 {
        table.add(0, "m", 3_600_000, "hung");
    }
    table.live(5, 1_000);
    let found = sweep(&table.place(), "--idle 60s");
    let detection = &found["cells"][0]["detection"];
    assert_eq!(detection["n"], 5, "{detection}");
    assert_eq!(detection["p99"]["status"], "not_estimable");
    assert_eq!(detection["p99"]["reason"]["need"], 368);
}

#[test]
fn br_93_strata_are_merged_and_the_worst_stands_beside() {
    let mut table = Table::default();
    for _ in 0..1_000 {
        table.add(0, "fast", 1_000, "completed");
    }
    for _ in 0..10 {
        table.add(0, "slow", 2_000_000, "completed");
    }
    for _ in 0..20 {
        table.add(0, "young", 1_000, "completed");
    }
    let place = table.place();
    let found = sweep(&place, "--idle 300s --max-false-kill 5%");
    let cell = &found["cells"][0];
    near(&cell["false_kill_rate"]["point"], 10.0 / 1_030.0);
    assert_eq!(found["recommendation"], 1, "{}", found["reason"]);
    assert_eq!(found["protection"]["method"], "one_candidate");
    let stratum = |group: &str| {
        let strata = cell["strata"].as_array().unwrap();
        let found = strata.iter().find(|stratum| stratum["group"] == group);
        found.unwrap().clone()
    };
    assert_eq!(stratum("fast")["decision"], "pass");
    assert_eq!(stratum("slow")["decision"], "fail");
    assert_eq!(stratum("slow")["cannot_certify_below_runs"], 59);
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("Worst stratum of cell 1: model slow"),
        "{notes}"
    );
}

#[test]
fn br_11_the_pool_hides_the_slow_model() {
    let mut table = Table::default();
    for (model, runs, silence_ms) in [
        ("model-a", 199, 5_000),
        ("model-a", 1, 32_020),
        ("model-b", 195, 8_000),
        ("model-b", 5, 304_500),
    ] {
        for _ in 0..runs {
            table.add(0, model, silence_ms, "completed");
        }
    }
    let found = sweep(&table.place(), "--idle 35s,90s,360s --max-false-kill 3%");
    for (cell, expected) in [(0, [0, 5]), (1, [0, 5]), (2, [0, 0])] {
        let strata = found["cells"][cell]["strata"].as_array().unwrap();
        for (group, kills) in ["model-a", "model-b"].into_iter().zip(expected) {
            let stratum = strata.iter().find(|stratum| stratum["group"] == group);
            assert_eq!(
                stratum.unwrap()["false_kills"],
                kills,
                "{group} in cell {cell}"
            );
        }
    }
    // 5 of 400 are 1.25 %, 5 of 200 are 2.5 %.
    near(&found["cells"][0]["false_kill_rate"]["point"], 0.0125);
}

#[test]
fn a_choice_that_rests_on_the_tie_rule_says_so() {
    let mut table = Table::default();
    table.live(395, 1_000);
    table.live(5, 60_000);
    let place = table.place();
    let found = sweep(&place, "--idle 60s,120s");
    assert_eq!(found["recommendation"], 2, "{}", found["reason"]);
    assert_eq!(found["cells"][0]["ties_at_W"], 5);
    assert_eq!(found["cells"][1]["ties_at_W"], 0);
    assert_eq!(found["protection"]["depends_on_tie_rule"], true);
    assert_eq!(found["protection"]["recommendation_if_ties_survive"], 1);
    let text = place.run("sweep runs.csv --idle 60s,120s").ok();
    assert!(
        text.contains("The choice depends on the tie rule"),
        "{text}"
    );
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.contains("depends on the tie rule"), "{reason}");
    // 400 runs are fewer than twice 299.
    assert_eq!(found["protection"]["method"], "fixed_sequence");
    assert_eq!(found["protection"]["in_sample"], true);
    assert!(text.contains("in-sample, optimistic"), "{text}");
    // One millisecond more, and nothing hangs on it.
    let found = sweep(&place, "--idle 60001ms,120s");
    assert_eq!(found["recommendation"], 1);
    assert_eq!(found["cells"][0]["ties_at_W"], 0);
    assert_eq!(found["protection"]["depends_on_tie_rule"], false);
}

#[test]
fn what_was_chosen_on_one_half_is_judged_on_the_other() {
    let mut table = Table::default();
    table.live(980, 1_000);
    for k in 0..20 {
        table.live(1, 20_000 * (k + 1));
    }
    let place = table.place();
    let mut halves = Vec::new();
    for seed in [0, 1, 2] {
        let found = sweep(&place, &format!("--idle 60s..420s/60s --seed {seed}"));
        let protection = &found["protection"];
        assert_eq!(protection["method"], "split_and_fixed_sequence");
        assert_eq!(protection["seed"], seed);
        let of = |key: &str| protection[key].as_u64().unwrap();
        let (select, certify) = (of("select_runs"), of("certify_runs"));
        assert_eq!(select + certify, 1_000);
        assert!(select >= 299 && certify >= 299, "{protection}");
        halves.push(certify);
        let cells = found["cells"].as_array().unwrap();
        // Certified windows are the largest ones, without a hole.
        let places: Vec<&str> = cells
            .iter()
            .map(|cell| cell["certify"]["place"].as_str().unwrap())
            .collect();
        let first = places.iter().position(|place| *place == "certified");
        let first = first.unwrap_or(places.len());
        assert!(
            places[first..].iter().all(|place| *place == "certified"),
            "{places:?}"
        );
        if let Some(before) = first.checked_sub(1) {
            assert_eq!(places[before], "not_certified", "{places:?}");
            assert!(places[..before].iter().all(|place| *place == "not_reached"));
        }
        for cell in cells {
            assert!(
                cell["certify"]["runs"] == certify && cell["runs"] == 1_000,
                "{cell}"
            );
        }
        let recommended = found["recommendation"].as_u64();
        assert_eq!(
            recommended,
            (first < cells.len()).then_some(first as u64 + 1)
        );
        if recommended.is_some() {
            let cell = &cells[first]["certify"];
            assert_eq!(cell["decision"], "pass");
            assert!(cell["false_kill_rate_up_one_sided"].as_f64().unwrap() <= 0.01);
            let reason = found["reason"].as_str().unwrap();
            assert!(
                reason.contains(&format!("in {certify} runs held back")),
                "{reason}"
            );
            assert!(reason.contains(&format!("seed {seed}")), "{reason}");
        }
        assert!(
            found["cost"]["focus"]["optimism_ms"].is_f64(),
            "{}",
            found["cost"]
        );
    }
    halves.dedup();
    assert!(halves.len() > 1, "the seed changes the halves");
}

#[test]
fn sequences_share_the_error() {
    let mut table = Table::default();
    // 320 runs without a kill: 299 are enough for one sequence, 4 sequences need ln(0.0125)/ln(0.99) = 437.
    table.live(320, 1_000);
    let place = table.place();
    let found = sweep(&place, "--idle 60s,300s");
    assert_eq!(found["recommendation"], 1);
    assert_eq!(
        found["protection"]["smallest_safe_cells"],
        serde_json::json!([1])
    );
    let found = sweep(&place, "--idle 60s,300s --total 1h,off --turns 40,off");
    assert_eq!(found["protection"]["sequences"], 4);
    near(&found["protection"]["error_per_sequence"], 0.0125);
    assert_eq!(found["recommendation"], Value::Null);
    assert_eq!(found["nearest"]["runs_needed"], 437);
}

#[test]
fn the_selecting_half_names_the_one_sequence_that_is_tested() {
    let mut table = Table::default();
    table.live(1_000, 1_000);
    let options = "--idle 60s,300s --total 10s,off";
    let found = sweep(&table.place(), options);
    assert_eq!(found["protection"]["method"], "split_and_fixed_sequence");
    assert_eq!(found["protection"]["sequences"], 1);
    near(&found["protection"]["error_per_sequence"], 0.05);
    // Nobody is killed and no hang is known, so that costs tie but for the window: the smaller budget is named.
    let place = |cell: usize| found["cells"][cell]["certify"]["place"].clone();
    assert_eq!([place(0), place(2)], ["certified", "certified"]);
    assert_eq!([place(1), place(3)], ["not_selected", "not_selected"]);
    assert_eq!(found["recommendation"], 1);
    assert_eq!(
        found["protection"]["smallest_safe_cells"],
        serde_json::json!([1, null])
    );
}

#[test]
fn bad_days_count_as_days() {
    let mut table = Table::default();
    for day in 0..40 {
        for run in 0..20 {
            let silent = day % 10 == 0 && run < 5;
            table.add(day, "m", if silent { 90_000 } else { 1_000 }, "completed");
        }
    }
    let found = sweep(&table.place(), "--idle 60s --max-false-kill 5%");
    let cell = &found["cells"][0]["certify"];
    assert_eq!(cell["false_kills"], 20);
    assert!(cell["unit_deff"].as_f64().unwrap() > 3.0, "{cell}");
    assert_eq!(cell["limit_by_unit"], true);
    // 20 of 800 independent runs would bound the rate at 3.6 %.
    assert!(
        cell["false_kill_rate_up_one_sided"].as_f64().unwrap() > 0.05,
        "{cell}"
    );
    assert_eq!(found["recommendation"], Value::Null);
    assert_eq!(found["cluster"], "day");
    let text = found["notes"].to_string();
    assert!(text.contains("bad days"), "{text}");
    // Taken as independent, which the table's runs are as sessions of their own as well.
    for unit in ["run", "session"] {
        let options = format!("--idle 60s --max-false-kill 5% --cluster {unit}");
        let found = sweep(&table.place(), &options);
        let cell = &found["cells"][0]["certify"];
        assert_eq!(found["cluster"], unit);
        assert_eq!(cell["limit_by_unit"], false);
        near(&cell["false_kill_rate_up_one_sided"], 0.0361);
        assert_eq!(found["recommendation"], 1, "{}", found["reason"]);
        let text = found["notes"].to_string();
        assert_eq!(text.contains("taken as independent"), unit == "run");
        assert!(!text.contains("bad days"), "{text}");
    }
}

#[test]
fn a_candidate_is_paired_with_the_base() {
    let place = fleet::place();
    let line = "sweep telemetry --base pi-desktop-0129 --idle 60s,300s,400s --format json";
    let found = json(&place.run(line).ok());
    for (cell, window) in [(0, 60), (1, 300), (2, 400)] {
        let pair = &found["cells"][cell]["against_base"];
        let (ours, base) = (fleet::killed_alive(window), fleet::killed_alive(300));
        assert_eq!(pair["newly_killed"], ours.saturating_sub(base), "{pair}");
        assert_eq!(pair["newly_spared"], base.saturating_sub(ours), "{pair}");
        assert_eq!(pair["nested"], true);
        assert_eq!(pair["mcnemar_p"], Value::Null);
    }
    // A budget instead of a window kills other runs: the pair is tested.
    let line = "sweep telemetry --base pi-desktop-0129 --idle off --total 200s --format json";
    let found = json(&place.run(line).ok());
    let pair = &found["cells"][0]["against_base"];
    let longer = (1..=fleet::ALIVE).filter(|k| 16 + 20 * k >= 200).count() as u64;
    assert_eq!(pair["newly_killed"], longer - fleet::killed_alive(300));
    assert_eq!(pair["newly_spared"], 0);
    // All 5 of 5 on one side: twice 1/32.
    assert_eq!(longer - fleet::killed_alive(300), 5);
    near(&pair["mcnemar_p"], 0.0625);
}

#[test]
fn cost_names_the_hang_rates_for_which_a_window_is_best() {
    let place = fleet::place();
    let line = "sweep telemetry --idle 60s..420s/60s --format json";
    let found = json(&place.run(line).ok());
    let cost = &found["cost"];
    assert_eq!(cost["hangs"], fleet::HUNG);
    assert_eq!(cost["hang_rates_source"], "labelled_hangs");
    let ranges = cost["best_for"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    near(&ranges[0]["hang_rate_from"], 0.0);
    near(&ranges[ranges.len() - 1]["hang_rate_to"], 1.0);
    for pair in ranges.windows(2) {
        near(&pair[1]["hang_rate_from"], number(&pair[0]["hang_rate_to"]));
        assert!(
            pair[0]["cell"].as_u64() > pair[1]["cell"].as_u64(),
            "{cost}"
        );
    }
    // Only hangs: the smallest window. At a rate inside a range: that range's cell.
    for range in ranges {
        let middle = f64::midpoint(
            number(&range["hang_rate_from"]),
            number(&range["hang_rate_to"]),
        );
        let at = format!("{line} --hang-rate {:.4}%", middle * 100.0);
        let found = json(&place.run(&at).ok());
        assert_eq!(found["cost"]["cheapest_cell"], range["cell"], "{middle}");
    }
    // 401 s and more kill nobody, so without hangs they cost nothing: no recommendation on that.
    let none = json(&place.run(&format!("{line} --hang-rate 0%")).ok());
    assert_eq!(none["cost"]["cheapest_cell"], Value::Null);
    let refused = none["cost"]["refused"].as_str().unwrap();
    assert!(refused.contains("hang rate of 0"), "{refused}");
    // A dear restart makes longer windows the cheapest at the same hang rate.
    let cell = |options: &str| {
        let found = json(&place.run(&format!("{line} --hang-rate 50% {options}")).ok());
        found["cost"]["cheapest_cell"].as_u64().unwrap()
    };
    assert!(cell("--restart-cost 1h") > cell(""));
}

#[test]
fn the_watchdog_is_read_as_a_failure_detector() {
    let mut table = Table::default();
    table.live(3, 90_000);
    table.live(17, 10_000);
    let found = sweep(&table.place(), "--idle 60s,off --max-false-kill 50%");
    let detector = &found["cells"][0]["detector"];
    // Besides its silence each run waits 1 s for its first output and 1 s for the next.
    let active_ms = 3.0 * 92_000.0 + 17.0 * 12_000.0;
    assert_eq!(detector["mistakes"], 3, "{detector}");
    near(
        &detector["mistakes_per_active_hour"],
        3.0 * 3_600_000.0 / active_ms,
    );
    near(
        &detector["query_accuracy"],
        1.0 - 3.0 * 30_000.0 / active_ms,
    );
    near(&detector["observed_run_rate"], 0.15);
    assert_eq!(found["cells"][1]["detector"], Value::Null);
}

#[test]
fn an_abort_in_silence_leaves_an_envelope() {
    let mut table = Table::default();
    table.live(80, 10_000);
    for _ in 0..20 {
        table.add(0, "m", 30_000, "aborted");
    }
    let found = sweep(&table.place(), "--idle 60s --max-false-kill 50%");
    assert_eq!(
        found["recorded"]["aborts_in_silence"], 20,
        "{}",
        found["recorded"]
    );
    let envelope = &found["recorded"]["per_gap_rate_over_aborts"];
    near(&envelope["lo"], 0.0);
    // Each run has three gaps, an aborted one included: 20 of 300 might never have ended.
    near(&envelope["up"], 20.0 / 300.0);
    // An abort pre-empts the kill: the replay rate counts such a run as not killed.
    assert_eq!(found["cells"][0]["false_kills"], 0);
    assert_eq!(found["cells"][0]["unresolved_survivals"], 0);
}

#[test]
fn the_text_fits_a_terminal_and_ends_with_the_answer() {
    let place = Place::new();
    let text = place.run("sweep --quiet").ok();
    for line in text.lines() {
        assert!(
            line.chars().count() <= 110,
            "{}: {line}",
            line.chars().count()
        );
    }
    assert!(
        text.contains("against pi-desktop-0129 as it stands"),
        "{text}"
    );
    let last = text.rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("Recommended for false kills"), "{last}");
    let found = json(&place.run("sweep --quiet --format json").ok());
    let reason = found["reason"].as_str().unwrap();
    assert!(reason.lines().count() <= 3, "{reason}");
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(flat(last), flat(reason));
}

#[test]
fn what_is_no_limit_rate_or_cost_is_refused() {
    let place = fleet::place();
    for (options, words) in [
        ("--recorded-idle 0s", ["--recorded-idle", "0s"]),
        ("--recorded-idle 600", ["--recorded-idle", "unit"]),
        ("--hang-rate often", ["--hang-rate", "0.1%"]),
        ("--hang-rate 101%", ["--hang-rate", "101%"]),
        ("--hang-rate 0.5", ["--hang-rate", "0.5%"]),
        ("--restart-cost 5x", ["--restart-cost", "5x"]),
    ] {
        let error = place.run(&format!("sweep telemetry {options}")).error();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

/// A choice on cost compares windows, never budgets or caps, and an answer that turns on untested cells says so.
#[test]
fn an_answer_over_several_axes_says_what_was_compared_and_what_was_tested() {
    let place = Place::new();
    let found = place
        .run("sweep --quiet --idle 120s,180s,300s --total 30m,6h")
        .ok();
    let words = found.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("On cost alone idle 180s, total 6h is best of the windows with its other settings by minimax"),
        "{found}"
    );
    assert!(
        words.contains("only those were tested, down to idle 300s, total 1800s, which is not shown to be safe (≤ "),
        "{found}"
    );
    let one = place.run("sweep --quiet --idle 120s,180s,300s").ok();
    assert!(!one.contains("with its other settings"), "{one}");
}
