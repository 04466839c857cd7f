//! What `gaps` says of data that were cut, that come in sessions, that look like an answer and are not, or that moved.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::{Place, json, shared};

/// A scenario of the reference data.
fn scenario(file: &str) -> Option<Value> {
    let folder = shared("scenarios")?;
    let Ok(text) = fs::read_to_string(folder.join(file)) else {
        eprintln!("skipped: no {file}");
        return None;
    };
    Some(json(&text))
}

/// Samples of a scenario: plain values, or values with a count.
fn samples(value: &Value) -> Vec<u64> {
    let mut samples = Vec::new();
    for item in value.as_array().unwrap() {
        if let Some(ms) = item.as_u64() {
            samples.push(ms);
        } else {
            let times = item["count"].as_u64().unwrap() as usize;
            samples.extend(vec![item["value"].as_u64().unwrap(); times]);
        }
    }
    samples
}

/// A table of samples: (length in ms, whether it was cut, run, model).
fn table<'a>(rows: impl IntoIterator<Item = (u64, bool, &'a str, &'a str)>) -> String {
    let mut text = String::from("kind,duration_ms,censored,run,role,model,tool\n");
    for (ms, cut, run, model) in rows {
        writeln!(text, "pre_token,{ms},{cut},{run},,{model},").unwrap();
    }
    text
}

fn of(values: &[u64]) -> String {
    table(values.iter().map(|&ms| (ms, false, "", "")))
}

/// What `gaps` says of `table`, as JSON and as text.
fn gaps(table: &str, options: &str) -> (Value, String) {
    let place = Place::new();
    place.write("waits.csv", table);
    let line = format!("gaps waits.csv {options}");
    let found = json(&place.run(&format!("{line} --format json")).ok());
    (found, one_space(&place.run(&line).ok()))
}

/// Text without its line breaks and columns, so that sentences can be looked for.
fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn waits(found: &Value) -> &Value {
    &found["groups"][""]["waits"]["pre_token"]
}

fn quantile<'v>(of: &'v Value, p: &str) -> &'v Value {
    let quantiles = of["quantiles"].as_array().unwrap();
    quantiles.iter().find(|found| found["p"] == p).unwrap()
}

fn finding<'v>(of: &'v Value, code: &str) -> Option<&'v str> {
    let findings = of["findings"].as_array().unwrap();
    findings.iter().find(|found| found["code"] == code)?["text"].as_str()
}

/// Expected values from `numpy.percentile(range(1000, 10001, 1000), [50, 90, 95, 99, 99.9])`.
#[test]
fn type_7_stands_beside_type_1_where_asked() {
    let values: Vec<u64> = (1..=10).map(|value| value * 1000).collect();
    let (plain, text) = gaps(&of(&values), "");
    assert!(waits(&plain).get("type7_ms").is_none() && !text.contains("type 7"));
    let (found, text) = gaps(&of(&values), "--also-type7");
    let expected = serde_json::json!([5500.0, 9100.0, 9550.0, 9910.0, 9991.0]);
    assert_eq!(waits(&found)["type7_ms"], expected);
    assert!(text.contains("type 7 5.5 s 9.1 s"), "{text}");
    // cut silences: type 7 has no answer
    let cut = table(values.iter().map(|&ms| (ms, ms == 3000, "", "")));
    let (found, _) = gaps(&cut, "--also-type7");
    assert_eq!(
        waits(&found)["type7_ms"],
        serde_json::json!([null, null, null, null, null])
    );
}

/// Numbers in (0, 1) that look random and are the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64 + 0.5) / f64::from(1_u32 << 31)
    }

    /// A wait of a heavy tail: longer than `w` with probability `(1 + w / scale_ms)^-2`, a GPD of shape 1/2.
    fn wait(&mut self, scale_ms: f64) -> u64 {
        (scale_ms * (1.0 / self.unit().sqrt() - 1.0)) as u64 + 1
    }
}

/// `sessions` runs of `each` heavy-tailed waits.
fn heavy(seed: u64, sessions: usize, each: usize, scale_ms: f64) -> String {
    let mut numbers = Numbers(seed);
    let names: Vec<String> = (0..sessions).map(|session| format!("r{session}")).collect();
    let rows = names
        .iter()
        .flat_map(|name| std::iter::repeat_n(name.as_str(), each));
    let rows: Vec<(u64, bool, &str, &str)> = rows
        .map(|name| (numbers.wait(scale_ms), false, name, ""))
        .collect();
    table(rows)
}

#[test]
fn br_11_the_pool_hides_the_slow_model_and_the_spread_shows_it() {
    let Some(scenario) = scenario("BR-11-two-model-classes.json") else {
        return;
    };
    let [a, b] = ["model-a", "model-b"].map(|model| samples(&scenario["samples_ms"][model]));
    let rows = a.iter().map(|&ms| (ms, false, "", "model-a"));
    let rows = rows.chain(b.iter().map(|&ms| (ms, false, "", "model-b")));
    let rows = table(rows);
    let (found, text) = gaps(&rows, "");
    let pooled = &scenario["expect"]["pooled"];
    assert_eq!(waits(&found)["n"], pooled["n"]);
    assert_eq!(quantile(waits(&found), "0.99")["point_ms"], pooled["p99"]);
    let spread = &found["spreads"][0];
    assert_eq!(
        (&spread["by"], &spread["line"]),
        (&"model".into(), &"pre_token".into())
    );
    assert_eq!(spread["p99"]["model-a"]["point_ms"], 5_000);
    assert_eq!(spread["p99"]["model-b"]["point_ms"], 304_500);
    assert!(text.contains("5 s (model-a) 305 s (model-b)"), "{text}");
    assert!(text.contains("belongs to no stratum"), "{text}");
    let (by_model, _) = gaps(&rows, "--by model");
    let of_model = |model: &str| &by_model["groups"][model]["waits"]["pre_token"];
    assert_eq!(quantile(of_model("model-a"), "0.99")["point_ms"], 5_000);
    assert_eq!(of_model("model-a")["max_ms"], 32_020);
    assert_eq!(quantile(of_model("model-b"), "0.99")["point_ms"], 304_500);
    // grouped by something else, a group still pools the two
    let (_, by_role) = gaps(&rows, "--by role");
    assert!(by_role.contains("more than one model"), "{by_role}");
}

#[test]
fn br_60_equal_gaps_are_a_cluster_and_no_tail() {
    let Some(scenario) = scenario("BR-60-constant-gap.json") else {
        return;
    };
    let before = samples(&scenario["gaps_ms"]["before_2026_08_03"]);
    let since = samples(&scenario["gaps_ms"]["since"]);
    let all = [before.clone(), since].concat();
    let (found, text) = gaps(&of(&all), "--tail");
    let heap = finding(waits(&found), "heaped").unwrap();
    for words in [
        "9 silences of nearly one length (mean 405 s, 398,000 … 412,000 ms)",
        "timeout or retry of a lower layer, not a tail",
        "p99 is 412 s with them, 20 s without",
    ] {
        assert!(
            heap.contains(words) && text.contains(words),
            "{words}\n{heap}\n{text}"
        );
    }
    assert_eq!(waits(&found)["max_ms"], scenario["expect"]["pooled_p99_ms"]);
    let tails = waits(&found)["tails"].as_array().unwrap();
    let kept_out = tails
        .iter()
        .find(|tail| tail["without_heaped_n"] == 9)
        .unwrap();
    assert_eq!(
        (&kept_out["n"], &kept_out["point"]),
        (&22.into(), &Value::Null)
    );
    assert_eq!(finding(waits(&gaps(&of(&before), "").0), "heaped"), None);
}

#[test]
fn br_88_a_percentile_that_the_sample_cannot_carry_says_what_it_needs() {
    let Some(scenario) = scenario("BR-88-p95-of-five.json") else {
        return;
    };
    let (found, text) = gaps(&of(&samples(&scenario["samples_ms"])), "");
    let p95 = quantile(waits(&found), "0.95");
    assert_eq!(
        (&p95["point_ms"], &p95["max_ms"]),
        (&Value::Null, &501.into())
    );
    assert_eq!(p95["status"], "not_estimable");
    // 0.95^72 is the first power below 0.025
    assert_eq!(p95["reason"]["need"], 72);
    assert!(
        text.contains("not estimable") && text.contains("needs 72"),
        "{text}"
    );
}

#[test]
fn br_90_what_has_no_sample_has_no_figure() {
    let (found, _) = gaps(&of(&[1_000]), "");
    let tool = &found["groups"][""]["waits"]["tool"];
    assert_eq!(tool["n"], 0);
    for quantile in tool["quantiles"].as_array().unwrap() {
        assert_eq!(quantile["point_ms"], Value::Null);
        assert_eq!(quantile["status"], "not_estimable");
        assert_eq!(quantile["reason"]["code"], "no_data");
    }
    let place = Place::new();
    place.write("some.csv", of(&[1_000, 2_000]));
    let other = table([(1, false, "", "")]).replace("pre_token", "tool");
    place.write("other.csv", other);
    let drift = json(
        &place
            .run("gaps some.csv --against other.csv --format json")
            .ok(),
    );
    for line in ["pre_token", "tool"] {
        assert_eq!(
            drift["drift"]["lines"][line]["verdict"], "no_data",
            "{drift}"
        );
    }
}

#[test]
fn br_93_parts_are_merged_before_the_quantile() {
    let Some(scenario) = scenario("BR-93-merge-not-average.json") else {
        return;
    };
    let [fast, slow] = ["fast", "slow"].map(|series| samples(&scenario["series_ms"][series]));
    let place = Place::new();
    place.write("both/fast.csv", of(&fast));
    place.write("both/slow.csv", of(&slow));
    let found = json(&place.run("gaps both --format json").ok());
    let expect = &scenario["expect"];
    assert_eq!(waits(&found)["n"], expect["n"]);
    assert_eq!(quantile(waits(&found), "0.95")["point_ms"], expect["p95"]);
    assert_eq!(quantile(waits(&found), "0.99")["point_ms"], expect["p99"]);
}

#[test]
fn br_95_the_definition_is_stated_and_the_same_everywhere() {
    let Some(scenario) = scenario("BR-95-which-percentile.json") else {
        return;
    };
    let expect = &scenario["expect"];
    let (found, text) = gaps(&of(&samples(&scenario["samples_ms"])), "");
    assert_eq!(
        quantile(waits(&found), "0.9")["point_ms"],
        expect["nearest_rank"]["p90"]
    );
    assert!(text.contains("type 1 (nearest rank)"), "{text}");
    let mut second = vec![1; 1_000];
    second.push(10_000_000);
    let place = Place::new();
    place.write("waits.csv", of(&second));
    let (found, _) = gaps(&of(&second), "");
    let p99 = quantile(waits(&found), "0.99");
    assert_eq!(p99["n"], expect["second"]["n"]);
    assert_eq!(p99["point_ms"], expect["second"]["p99"]);
    assert_eq!(p99["max_ms"], expect["second"]["max"]);
    let csv = place.run("gaps waits.csv --format csv").ok();
    assert!(csv.contains(",pre_token,ms,1001,0.99,1,"), "{csv}");
}

#[test]
fn br_96_the_recorded_limit_hides_the_tail() {
    let Some(scenario) = scenario("BR-96-censored-by-the-current-limit.json") else {
        return;
    };
    let ended = samples(&scenario["samples_ms"]);
    let cut = samples(&scenario["censored_ms"]);
    let rows = ended.iter().map(|&ms| (ms, false, "", ""));
    let rows = table(rows.chain(cut.iter().map(|&ms| (ms, true, "", ""))));
    for (options, source) in [
        ("", "found from 30 cut silences"),
        ("--recorded-idle 60s", "as given"),
    ] {
        let (found, text) = gaps(&rows, options);
        let waits = waits(&found);
        assert_eq!(
            (&waits["gaps_n"], &waits["cut_n"]),
            (&1_000.into(), &30.into())
        );
        let p99 = quantile(waits, "0.99");
        assert_eq!(
            (&p99["point_ms"], &p99["exceeds_ms"]),
            (&Value::Null, &60_000.into())
        );
        assert_eq!(p99["reason"]["code"], "beyond_last_event");
        assert!(text.contains("> 60 s"), "{text}");
        let note = finding(waits, "window_above_limit").unwrap();
        for words in [
            source,
            "300 s",
            "recorded limit 60 s",
            "not identified",
            // Clopper-Pearson of 30 in 1,000: 4.26 %
            "at most 4.3 % of 1,000 silences reach it",
            "record with a longer limit or in observe mode",
        ] {
            assert!(
                note.contains(words) && text.contains(words),
                "{words}\n{note}\n{text}"
            );
        }
    }
    // a window within the limit is answered by these data
    let place = Place::new();
    place.write(
        "policy.toml",
        "preset = \"pi-desktop-0129\"\nidle = \"50s\"\n",
    );
    place.write("waits.csv", &rows);
    let found = json(
        &place
            .run("gaps waits.csv --policy policy.toml --format json")
            .ok(),
    );
    assert_eq!(finding(waits(&found), "window_above_limit"), None);
    // with the cut waits dropped the longest one gives it away
    let (found, text) = gaps(&of(&ended), "--recorded-idle 60s");
    assert!(finding(waits(&found), "kills_missing").is_some());
    assert!(
        text.contains("killed silences appear to be missing"),
        "{text}"
    );
}

#[test]
fn without_a_cut_wait_the_curve_is_the_ranks() {
    let mut numbers = Numbers(3);
    let values: Vec<u64> = (0..4_000).map(|_| numbers.wait(5_000.0)).collect();
    let names: Vec<String> = (0..4_000).map(|run| format!("r{run}")).collect();
    let rows = values
        .iter()
        .zip(&names)
        .map(|(&ms, name)| (ms, false, name.as_str(), ""));
    let (found, _) = gaps(&table(rows), "--verbose");
    let mut sorted = values;
    sorted.sort_unstable();
    for (p, rank) in [
        ("0.5", 2_000),
        ("0.9", 3_600),
        ("0.95", 3_800),
        ("0.99", 3_960),
        ("0.999", 3_996),
    ] {
        let found = quantile(waits(&found), p);
        assert_eq!(found["rank"], rank);
        assert_eq!(found["point_ms"], sorted[rank - 1]);
        for side in ["lo", "up"] {
            let rank = found["interval_ranks"][side].as_u64().unwrap() as usize;
            assert_eq!(
                found["independent_interval_ms"][side],
                sorted[rank - 1],
                "{p} {side}"
            );
            // one wait per session: sessions cost next to nothing
            let by_session = found["interval_ms"][side].as_u64().unwrap();
            let near = sorted[rank - 1 - 40.min(rank - 1)]..=sorted[(rank + 39).min(3_999)];
            assert!(near.contains(&by_session), "{p} {side}: {by_session}");
        }
        assert_eq!(found["interval_method"], "sessions");
        // a lower limit of the median by the normal approximation of the rank: 2000 - 1.96 sqrt(1000) = 1938
        if p == "0.5" {
            let lo = found["interval_ranks"]["lo"].as_u64().unwrap();
            assert!(lo.abs_diff(1_938) <= 1, "{lo}");
        }
    }
}

#[test]
fn waits_of_one_session_count_as_what_they_are() {
    // 40 sessions of 25 equal waits say no more than 40 waits
    let names: Vec<String> = (0..40).map(|run| format!("r{run}")).collect();
    let rows = (0..1_000).map(|k| {
        (
            1_000 + k / 25 * 100,
            false,
            names[k as usize / 25].as_str(),
            "",
        )
    });
    let (found, text) = gaps(&table(rows), "--verbose");
    let median = quantile(waits(&found), "0.5");
    let width =
        |interval: &Value| interval["up"].as_u64().unwrap() - interval["lo"].as_u64().unwrap();
    assert!(
        width(&median["interval_ms"]) >= 3 * width(&median["independent_interval_ms"]),
        "{median}"
    );
    assert!(text.contains("with sessions as the units"), "{text}");
    assert!(
        text.contains("independent [") && text.contains("log-log ["),
        "{text}"
    );
    // the same waits of three sessions, one of which holds most
    let rows = (0..1_000).map(|k| {
        (
            1_000 + k,
            false,
            ["a", "b", "c"][(k as usize / 600).min(2)],
            "",
        )
    });
    let (found, text) = gaps(&table(rows), "");
    assert_eq!(waits(&found)["sessions"], 2);
    for (code, words) in [
        (
            "few_sessions",
            "Fewer than 20 sessions, so rough intervals: pre_token (2).",
        ),
        (
            "dominated",
            "One session holds more than 20 % of the silences: pre_token (60 %).",
        ),
    ] {
        assert!(
            finding(waits(&found), code).is_some() && text.contains(words),
            "{text}"
        );
    }
    // without a name of any session independence is an assumption, and said to be one
    let (found, text) = gaps(&of(&(1..=1_000).collect::<Vec<_>>()), "");
    assert_eq!(quantile(waits(&found), "0.5")["status"], "assumes_iid");
    assert!(finding(waits(&found), "no_sessions").is_some());
    assert!(text.contains("taken as independent"), "{text}");
}

#[test]
fn a_tail_is_extrapolated_or_refused_in_words() {
    // the p99.99 is 99 scales, and the shape is 1/2
    let rows = heavy(11, 300, 10, 5_000.0);
    let (found, text) = gaps(&rows, "--tail");
    let tails = waits(&found)["tails"].as_array().unwrap();
    let far = tails.iter().find(|tail| tail["p"] == "0.9999").unwrap();
    assert_eq!(far["status"], "extrapolated", "{far}");
    let side = |of: &Value, side: &str| of[side].as_f64().unwrap();
    let (lo, up) = (side(&far["interval"], "lo"), side(&far["interval"], "up"));
    assert!(lo < 495_000.0 && 495_000.0 < up, "{far}");
    let shape = &far["shape_interval"];
    assert!(side(shape, "lo") < 0.5 && 0.5 < side(shape, "up"), "{far}");
    assert!(far["thresholds"].as_array().unwrap().len() > 3);
    for words in ["extrapolated (GPD, u=", ", k=", ", xi=", "By threshold: "] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let (_, text) = gaps(&heavy(11, 20, 10, 5_000.0), "--tail");
    assert!(
        text.contains("not extrapolated, n=200:") && text.contains("at least 50 must"),
        "{text}"
    );
    let (found, text) = gaps(&rows, "");
    assert!(
        waits(&found).get("tails").is_none() && !text.contains("extrapolated"),
        "{text}"
    );
}

#[test]
fn a_coarse_clock_is_noticed() {
    let mut numbers = Numbers(9);
    let whole: Vec<u64> = (0..300)
        .map(|_| numbers.wait(20_000.0) / 1_000 * 1_000)
        .collect();
    let (found, text) = gaps(&of(&whole), "");
    assert!(finding(waits(&found), "coarse_clock").is_some());
    assert!(
        text.contains("Coarse clock") && text.contains("pre_token (1 s)"),
        "{text}"
    );
    let fine: Vec<u64> = whole
        .iter()
        .enumerate()
        .map(|(k, ms)| ms + k as u64 % 7)
        .collect();
    assert_eq!(
        finding(waits(&gaps(&of(&fine), "").0), "coarse_clock"),
        None
    );
}

#[test]
fn throttled_pieces_are_noticed() {
    let mut numbers = Numbers(4);
    let values = (0..400).map(|k| {
        1_000
            + if k % 3 == 0 {
                numbers.wait(9_000.0)
            } else {
                k % 40
            }
    });
    let rows: Vec<u64> = values.collect();
    let (found, text) = gaps(&of(&rows).replace("pre_token", "inter_token"), "");
    let found = &found["groups"][""]["waits"]["inter_token"];
    assert!(finding(found, "throttled").is_some(), "{found}");
    assert!(text.contains("let through once a period"), "{text}");
}

/// Runs as an events table: outputs every 2 s for 20 s, then `silent_ms` of silence, and the end `outcome`.
fn runs(of: &[(&str, u64, &str)]) -> String {
    let mut rows = String::from("run,t_ms,kind,call_id,name,outcome,started_at_ms\n");
    for (index, (prefix, silent_ms, outcome)) in of.iter().enumerate() {
        let run = format!("{prefix}{index:03}");
        let started_at_ms = 1_772_442_000_000_u64 + index as u64 * 3_600_000;
        writeln!(rows, "{run},0,run_start,,,,{started_at_ms}").unwrap();
        writeln!(rows, "{run},2000,message_start,,,,").unwrap();
        for tick in 2..=10 {
            // no two runs beat alike, so that neither a clock nor a cluster is found
            let t_ms = tick * 2_000 + (index as u64 * 37 + tick * 101) % 1_900;
            writeln!(rows, "{run},{t_ms},message_update,,,,").unwrap();
        }
        let last_ms = 20_000 + (index as u64 * 37 + 1_010) % 1_900;
        writeln!(rows, "{run},{},run_end,,,{outcome},", last_ms + silent_ms).unwrap();
    }
    rows
}

fn idle(place: &Place, options: &str) -> (Value, String) {
    let line = format!("gaps runs.csv {options}");
    let found = json(&place.run(&format!("{line} --format json")).ok());
    let text = one_space(&place.run(&line).ok());
    (found["groups"][""]["idle_clock"].clone(), text)
}

#[test]
fn recorded_kills_and_aborts_cut_the_idle_clock() {
    let place = Place::new();
    let mut of = vec![("ok", 500, "completed"); 60];
    of.extend([("k", 120_000, "killed"); 6]);
    of.extend([("a", 40_000, "aborted"); 4]);
    of.extend([("h", 900_000, "hung"); 2]);
    place.write("runs.csv", runs(&of));
    let (found, text) = idle(&place, "");
    assert_eq!(found["cut_by"]["kill"], 6, "{found:#}");
    assert_eq!(found["cut_by"]["abort"], 4);
    assert_eq!(found["hangs_left_out"], 2);
    let p999 = quantile(&found, "0.999");
    assert_eq!(
        (&p999["point_ms"], &p999["exceeds_ms"]),
        (&Value::Null, &120_000.into())
    );
    let note = finding(&found, "window_above_limit").unwrap();
    assert!(
        note.contains("recorded limit 120 s (found from 6 cut silences)"),
        "{note}"
    );
    let note = finding(&found, "informative_aborts").unwrap();
    assert!(note.contains("4 silences end in an abort"), "{note}");
    // all aborted gaps ended at once: only the killed ones could reach 300 s; none ever had: the aborted ones as well
    assert!(note.contains("reach 300 s"), "{note}");
    assert!(
        text.contains("6 by a kill") && text.contains("4 by an abort"),
        "{text}"
    );
    assert!(
        text.contains("2 silences labelled as hangs are left out"),
        "{text}"
    );
}

#[test]
fn suspends_and_throttles_are_said() {
    let place = Place::new();
    let of = vec![("ok", 500, "completed"); 30];
    // the seventh update of every tenth run ends a suspected host suspend
    let rows = runs(&of).replace("started_at_ms\n", "started_at_ms,flags\n");
    let rows: Vec<String> = rows
        .lines()
        .enumerate()
        .map(|(row, line)| match row {
            0 => line.to_owned(),
            _ if row % 120 == 9 => format!("{line},8"),
            _ => format!("{line},"),
        })
        .collect();
    place.write("runs.csv", rows.join("\n"));
    place.write(
        "throttled.toml",
        "preset = \"pi-desktop-0129\"\n[idle]\nthrottle = \"5s\"\n",
    );
    let (found, text) = idle(&place, "--policy throttled.toml");
    let note = finding(&found, "host_suspends").unwrap();
    assert!(
        note.contains("3 silences may hold a host suspend"),
        "{note}"
    );
    let note = finding(&found, "policy_throttle").unwrap();
    assert!(note.contains("in (g - 5 s, g]"), "{note}");
    assert!(text.contains("in (g - 5 s, g]"), "{text}");
    let (found, _) = idle(&place, "");
    assert_eq!(finding(&found, "policy_throttle"), None);
    // a sweep says it beside its answer
    let line = "sweep runs.csv --base throttled.toml --idle 60s,300s";
    let found = json(&place.run(&format!("{line} --format json")).ok());
    assert!(finding(&found, "host_suspends").is_some(), "{found:#}");
    assert!(finding(&found, "policy_throttle").is_some(), "{found:#}");
    let text = one_space(&place.run(line).ok());
    assert!(text.contains("may hold a host suspend"), "{text}");
}

/// Twelve readings of 60 s and more on a clock of 10 s: those of exactly 60 s may have been 50.001 s.
#[test]
fn a_coarse_clock_leaves_a_window_open_at_both_ends() {
    let lengths: Vec<u64> = (1..=12).map(|tens| tens * 10_000).collect();
    let place = Place::new();
    place.write("waits.csv", of(&lengths));
    place.write(
        "minute.toml",
        "preset = \"pi-desktop-0129\"\n[idle]\nwindow = \"60s\"\n",
    );
    let line = "gaps waits.csv --policy minute.toml";
    let found = json(&place.run(&format!("{line} --format json")).ok());
    let findings = waits(&found)["findings"].as_array().unwrap();
    let coarse = findings
        .iter()
        .find(|found| found["code"] == "coarse_clock");
    let reach = &coarse.unwrap()["figures"]["reach_window"];
    let expected = serde_json::json!({ "window_ms": 60_000, "least_n": 6, "most_n": 7 });
    assert_eq!(*reach, expected);
    let text = one_space(&place.run(line).ok());
    assert!(text.contains("so that 6 to 7 of them reach 60 s"), "{text}");
}

#[test]
fn kills_of_which_no_silence_is_seen_are_missed_without_a_limit() {
    let place = Place::new();
    let mut of = vec![("ok", 500, "completed"); 400];
    of.extend([("k", 0, "killed"); 5]);
    place.write("runs.csv", runs(&of));
    let (found, text) = idle(&place, "");
    let note = finding(&found, "kills_missing").unwrap();
    assert!(note.contains("5 kills"), "{note}");
    assert!(text.contains("no silence before any of them"), "{text}");
    // and a sweep certifies nothing on them
    let line = "sweep runs.csv --idle 60s --max-false-kill 5% --format json";
    let found = json(&place.run(line).ok());
    let missing = found["recorded"]["kills_missing"].as_str().unwrap();
    assert!(missing.contains("5 kills"), "{missing}");
    assert_eq!(found["recommendation"], Value::Null);

    // found from the kills that are seen: the limit, and that others of it are not
    of.extend([("s", 60_000, "killed"); 7]);
    place.write("runs.csv", runs(&of));
    let (found, _) = idle(&place, "");
    let note = finding(&found, "kills_missing").unwrap();
    assert!(
        note.contains("12 kills") && note.contains("7 silences"),
        "{note}"
    );
    let found = json(&place.run(line).ok());
    let missing = found["recorded"]["kills_missing"].as_str().unwrap();
    assert!(missing.contains("12 kills"), "{missing}");

    // all of them seen: nothing is missing
    of.retain(|(prefix, ..)| *prefix != "k");
    place.write("runs.csv", runs(&of));
    assert_eq!(finding(&idle(&place, "").0, "kills_missing"), None);
    let found = json(&place.run(line).ok());
    assert_eq!(found["recorded"]["kills_missing"], Value::Null);
    assert_eq!(found["recommendation"], 1, "{}", found["reason"]);
}

#[test]
fn kills_without_their_silence_are_missed() {
    let place = Place::new();
    let mut of = vec![("ok", 500, "completed"); 30];
    // the record of a kill, its silence cut out of the log
    of.extend([("k", 1_000, "killed"); 5]);
    place.write("runs.csv", runs(&of));
    let (found, text) = idle(&place, "--recorded-idle 120s");
    let note = finding(&found, "kills_missing").unwrap();
    assert!(note.contains("5 kills") && note.contains("120 s"), "{note}");
    assert!(
        text.contains("killed silences appear to be missing"),
        "{text}"
    );
    let error = place.run("gaps runs.csv --recorded-idle soon").error();
    assert!(
        error.contains("--recorded-idle") && error.contains("soon"),
        "{error}"
    );
    let error = place.run("gaps runs.csv --recorded-idle 0s").error();
    assert!(error.contains("above 0"), "{error}");
}

/// The verdict on the waits of `now` against those of `base`.
fn verdict(now: &str, base: &str) -> (String, Value) {
    let place = Place::new();
    place.write("now.csv", now);
    place.write("base.csv", base);
    let line = "gaps now.csv --against base.csv";
    let found = json(&place.run(&format!("{line} --format json")).ok());
    let waits = found["drift"]["lines"]["pre_token"].clone();
    let verdict = waits["verdict"].as_str().unwrap().to_owned();
    let text = one_space(&place.run(line).ok());
    let says = match verdict.as_str() {
        "moved" => "Moved: pre_token.",
        "stable" => "Stable: pre_token.",
        _ => "Inconclusive, more sessions would decide: pre_token.",
    };
    assert!(text.ends_with(says), "{verdict}\n{text}");
    for format in ["csv", "markdown"] {
        let printed = place.run(&format!("{line} --format {format}")).ok();
        assert!(printed.contains(&verdict), "{format}\n{printed}");
    }
    (verdict, waits["drift"].clone())
}

#[test]
fn drift_is_moved_stable_or_inconclusive() {
    let base = heavy(1, 200, 40, 5_000.0);
    let (stable, same) = verdict(&heavy(2, 200, 40, 5_000.0), &base);
    assert_eq!(stable, "stable", "{same}");
    // waits twice as long: beyond the old p99, 9 scales, lies 5.5^-2, 3.3 times as much
    let (moved, longer) = verdict(&heavy(3, 200, 40, 10_000.0), &base);
    assert_eq!(moved, "moved", "{longer}");
    let rho = longer["rho"].as_f64().unwrap();
    assert!((2.6..4.2).contains(&rho), "{longer}");
    assert!(longer["rho_interval"]["lo"].as_f64().unwrap() > 1.25);
    assert!(longer["ad"]["p_value"].as_f64().unwrap() < 0.01);
    // six sessions cannot tell: all 20 splits of them leave no p-value below 1 %
    let (unknown, few) = verdict(&heavy(4, 3, 10, 5_000.0), &heavy(5, 3, 10, 5_000.0));
    assert_eq!(unknown, "inconclusive", "{few}");
    assert_eq!(few["ks"]["exhaustive"], true);
    assert_eq!(few["ks"]["splits"], 20);
    // a single long wait per old p99 moves nothing
    let (itself, exact) = verdict(&base, &base);
    assert_eq!((itself.as_str(), &exact["rho"]), ("stable", &1.0.into()));
    assert_eq!(exact["ks_distance"], 0.0);
}

#[test]
fn threads_change_nothing_and_the_seed_is_told() {
    let place = Place::new();
    place.write("now.csv", heavy(6, 120, 20, 5_000.0));
    place.write("base.csv", heavy(7, 120, 20, 5_000.0));
    for options in ["--tail --verbose", "--against base.csv"] {
        for format in ["table", "json", "csv", "markdown"] {
            let print = |threads: u8, seed: u8| {
                let line = format!(
                    "gaps now.csv {options} --format {format} --threads {threads} --seed {seed}"
                );
                place.run(&line).ok()
            };
            let one = print(1, 7);
            for threads in [2, 3] {
                assert!(
                    print(threads, 7) == one,
                    "{options} {format} with {threads} threads"
                );
            }
            if format == "json" {
                assert_eq!(json(&one)["seed"], 7);
                assert!(print(2, 8) != one, "{options}: the seed is not used");
            }
        }
    }
    let error = place
        .run("gaps now.csv --against base.csv --by model")
        .exits(2);
    assert!(error.stderr.contains("--against"), "{}", error.stderr);
    let error = place.run("gaps now.csv --against nowhere").error();
    assert!(error.contains("nowhere"), "{error}");
}
