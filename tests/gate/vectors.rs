//! The reference vectors of gates and the scenarios about them, through the command. Runs are made of their counts.

use std::fs;

use serde_json::Value;

use super::{Course, Runs, gate, import, runs};
use crate::{Place, shared};

/// The vectors of the statistics whose name starts like this.
fn vectors(method: &str) -> Vec<Value> {
    let Some(folder) = shared("vectors/stats") else {
        return Vec::new();
    };
    let found: Vec<Value> = crate::files(&folder)
        .into_iter()
        .filter(|(name, _)| name.starts_with(&format!("{method}-")))
        .map(|(_, bytes)| serde_json::from_slice(&bytes).unwrap())
        .collect();
    assert!(!found.is_empty(), "{method}");
    found
}

fn scenario(name: &str) -> Option<Value> {
    let path = shared("scenarios")?.join(name);
    Some(serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[track_caller]
fn near(found: &Value, expected: &Value) {
    let (found, expected) = (number(found), number(expected));
    let tolerance = 1e-14 + 1e-8 * expected.abs();
    assert!((found - expected).abs() <= tolerance, "{found} {expected}");
}

/// Runs of one model by their counts, leaked names and all: `kills` of them killed, `unresolved` cut by their log.
fn counted(model: &'static str, counts: &Value) -> [Runs; 3] {
    let of = |key: &str| counts[key].as_u64().unwrap();
    let (kills, unresolved) = (of("kills"), of("unresolved"));
    [
        runs(kills, model, Course::Silent(400_000)),
        runs(unresolved, model, Course::Open),
        runs(of("runs") - kills - unresolved, model, Course::Lives),
    ]
}

fn static_name(name: &Value) -> &'static str {
    Box::leak(name.as_str().unwrap().to_owned().into_boxed_str())
}

#[test]
fn gate_vectors() {
    let place = Place::new();
    for vector in vectors("gate") {
        if vector["method"] != "gate" {
            continue;
        }
        let cases = vector["input"]["cases"].as_array().unwrap();
        let expected = vector["expect"]["cases"].as_array().unwrap();
        for (index, (case, expect)) in cases.iter().zip(expected).enumerate() {
            let data = format!("case-{index}");
            let mut groups: Vec<Runs> = counted("m", case).into();
            if case["runs"] == 0 {
                groups = vec![runs(1, "m", Course::Hung(3_600_000))];
            }
            import(&place, &data, &groups);
            let rule = format!(
                "[[rule]]\nmetric = \"false_kill_rate\"\nmax = {}\ncluster = \"run\"\n",
                case["max_rate"]
            );
            let (result, code) = gate(&place, &format!("{data} --policy pi-desktop-0129"), &rule);
            let check = &result["checks"][0];
            if case["runs"] == 0 {
                // the command shows a check without any sample as a verdict of its own
                assert_eq!((check["verdict"].as_str(), code), (Some("no_data"), 3));
                continue;
            }
            assert_eq!(check["verdict"], expect["verdict"], "{case}");
            near(&check["observed"]["lower_share"], &expect["lower"]);
            near(&check["observed"]["upper_share"], &expect["upper"]);
        }
    }
}

#[test]
fn gate_strata_vectors() {
    let place = Place::new();
    for (index, vector) in vectors("gate_strata").iter().enumerate() {
        let strata = vector["input"]["strata"].as_array().unwrap();
        let groups: Vec<Runs> = strata
            .iter()
            .flat_map(|stratum| counted(static_name(&stratum["name"]), stratum))
            .collect();
        let data = format!("strata-{index}");
        import(&place, &data, &groups);
        let rule = format!(
            "[[rule]]\nmetric = \"false_kill_rate\"\nmax = {}\ncluster = \"run\"\nby = \"model\"\nevery = {}\n",
            vector["input"]["max_rate"], vector["input"]["require_every_stratum"]
        );
        let (result, _) = gate(&place, &format!("{data} --policy pi-desktop-0129"), &rule);
        let (check, expect) = (&result["checks"][0], &vector["expect"]);
        assert_eq!(check["verdict"], expect["verdict"], "{rule}");
        near(
            &check["observed"]["lower_share"],
            &expect["pooled"]["lower"],
        );
        near(
            &check["observed"]["upper_share"],
            &expect["pooled"]["upper"],
        );
        let parts = check["strata"].as_array().unwrap();
        for stratum in expect["strata"].as_array().unwrap() {
            let part = parts
                .iter()
                .find(|part| part["name"] == stratum["name"])
                .unwrap();
            near(&part["observed"]["upper_share"], &stratum["upper"]);
            near(&part["lower_shared_share"], &stratum["lower_bonferroni"]);
        }
        let worst = parts.iter().max_by(|left, right| {
            let upper = |part: &Value| number(&part["observed"]["upper_share"]);
            upper(left).total_cmp(&upper(right))
        });
        assert_eq!(worst.unwrap()["name"], expect["worst_upper"]);
    }
}

#[test]
fn fixed_sequence_vectors() {
    let place = Place::new();
    for (index, vector) in vectors("fixed_sequence").iter().enumerate() {
        let (input, expect) = (&vector["input"], &vector["expect"]);
        let all = input["runs"].as_u64().unwrap();
        // kills are nested: each step adds runs that are silent for longer than its window, and no larger one
        let mut steps: Vec<(u64, u64)> = input["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (step["W"].as_u64().unwrap(), step["kills"].as_u64().unwrap()))
            .collect();
        steps.sort_unstable_by(|left, right| right.cmp(left));
        let mut groups = Vec::new();
        let mut killed = 0;
        for (window, kills) in &steps {
            groups.push(runs(kills - killed, "m", Course::Silent(window + 1_000)));
            killed = *kills;
        }
        groups.push(runs(all - killed, "m", Course::Lives));
        let data = format!("sequence-{index}");
        import(&place, &data, &groups);
        let grid: Vec<String> = steps
            .iter()
            .map(|(window, _)| format!("{window}ms"))
            .collect();
        let rule = format!(
            "[[rule]]\nmetric = \"false_kill_rate\"\nmax = {}\ncluster = \"run\"\nsequence = \"{}\"\n",
            input["max_rate"],
            grid.join(",")
        );
        let (result, _) = gate(&place, &format!("{data} --policy pi-desktop-0129"), &rule);
        let check = &result["checks"][0];
        assert_eq!(
            check["smallest_certified_ms"],
            expect["smallest_certified_W"]
        );
        let windows = check["windows"].as_array().unwrap();
        let uppers = expect["upper"].as_array().unwrap();
        assert_eq!(windows.len(), uppers.len());
        for (window, upper) in windows.iter().zip(uppers) {
            near(&window["observed"]["upper_share"], upper);
        }
        // the policy's 300 s, judged alone
        let alone = windows.iter().find(|window| window["name"] == "300000");
        let verdict = alone.map_or("inconclusive", |window| window["verdict"].as_str().unwrap());
        assert_eq!(check["verdict"], verdict);
    }
}

/// The characteristics that `--explain` tells of a bound.
fn explained(place: &Place, data: &str, max_rate: &Value) -> Value {
    let rule = format!("[[rule]]\nmetric = \"false_kill_rate\"\nmax = {max_rate}\n");
    let line = format!("{data} --policy pi-desktop-0129 --explain");
    let (result, _) = gate(place, &line, &rule);
    result["checks"][0]["characteristics"].clone()
}

/// Unresolved runs count as kills against a pass: what certifies beside two of them is what two kills more would take.
#[test]
fn explanations_count_unresolved_runs_as_verdicts_do() {
    let place = Place::new();
    import(&place, "clear", &[runs(60, "m", Course::Lives)]);
    let doubtful = [runs(58, "m", Course::Lives), runs(2, "m", Course::Open)];
    import(&place, "doubtful", &doubtful);
    let rate = Value::from(0.05);
    let (clear, doubtful) = (
        explained(&place, "clear", &rate),
        explained(&place, "doubtful", &rate),
    );
    assert_eq!(
        (&clear["unresolved"], &doubtful["unresolved"]),
        (&0.into(), &2.into())
    );
    let needed = |told: &Value, hits: usize| told["runs_needed"][hits]["runs"].clone();
    assert_eq!(needed(&doubtful, 0), needed(&clear, 2));
    assert_eq!(needed(&doubtful, 1), needed(&clear, 3));
    // 59 runs without a kill certify 5 %: 60 with two in doubt certify nothing, whatever the policy
    let pass = |told: &Value| number(&told["at_these_runs"][0]["pass"]);
    assert!(pass(&clear) > 0.7, "{clear}");
    assert!(pass(&doubtful) <= 0.0, "{doubtful}");
    let (result, code) = gate(
        &place,
        "doubtful --policy pi-desktop-0129",
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = 0.05\n",
    );
    assert_eq!((&result["verdict"], code), (&"inconclusive".into(), 3));
}

#[test]
fn certify_vectors() {
    let place = Place::new();
    // runs that the record tells everything about
    import(&place, "data", &[runs(10, "m", Course::Lives)]);
    for vector in vectors("certify_n") {
        let cases = vector["input"]["cases"].as_array().unwrap();
        let expected = vector["expect"]["n"].as_array().unwrap();
        for (case, n) in cases.iter().zip(expected) {
            let told = explained(&place, "data", &case["rate"]);
            let needed = told["runs_needed"].as_array().unwrap();
            let found = needed.iter().find(|needed| needed["hits"] == case["kills"]);
            assert_eq!(&found.unwrap()["runs"], n, "{case}");
        }
    }
    for vector in vectors("certify_power") {
        let cases = vector["input"]["cases"].as_array().unwrap();
        let expected = vector["expect"]["cases"].as_array().unwrap();
        for (case, expect) in cases.iter().zip(expected) {
            let told = explained(&place, "data", &case["rate"]);
            let plan = told["plan"].as_array().unwrap();
            let at = plan.iter().find(|plan| plan["runs"] == case["n"]).unwrap();
            let chances = at["chances"].as_array().unwrap();
            let of_rate = |chance: &&Value| {
                (number(&chance["true_rate"]) - number(&case["true_rate"])).abs() < 1e-12
            };
            near(
                &chances.iter().find(of_rate).unwrap()["pass"],
                &expect["p_pass"],
            );
        }
    }
}

#[test]
fn br_88_a_percentile_the_sample_cannot_carry() {
    let Some(scenario) = scenario("BR-88-p95-of-five.json") else {
        return;
    };
    let place = Place::new();
    let mut waits = String::from("kind,duration_ms,censored,run,role,model,tool\n");
    for (index, ms) in scenario["samples_ms"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        waits.push_str(&format!("pre_token,{ms},false,r{index},,,\n"));
    }
    place.write("waits.csv", waits);
    let rule = format!(
        "[[rule]]\nmetric = \"wait.pre_token\"\nquantile = \"p95\"\nmax = \"{}ms\"\n",
        scenario["gate"]["p95_max_ms"]
    );
    let (result, code) = gate(&place, "waits.csv --policy pi-desktop-0129", &rule);
    let check = &result["checks"][0];
    assert_eq!(
        (&check["verdict"], code),
        (&scenario["expect"]["verdict"], 3)
    );
    assert_eq!(check["code"], "n_too_small");
    let needed = &scenario["expect"]["n_for_95pct_confidence_that_max_bounds_the_quantile"]["p95"];
    assert_eq!(&check["observed"]["needed_without_hits"], needed);
    // it is printed as well
    place.write("rules.toml", rule);
    let done = place.run("gate waits.csv --policy pi-desktop-0129 --rules rules.toml --quiet");
    assert!(
        done.exits(3)
            .stdout
            .contains(&format!("{needed} with none"))
    );
}

#[test]
fn br_90_a_threshold_on_a_metric_that_has_no_samples() {
    let Some(scenario) = scenario("BR-90-threshold-without-data.json") else {
        return;
    };
    let place = Place::new();
    let n = scenario["corpus"]["runs"].as_u64().unwrap();
    import(&place, "data", &[runs(n, "m", Course::Lives)]);
    let mut rules = String::new();
    for rule in scenario["gates"].as_array().unwrap() {
        let max = &rule["max"];
        rules.push_str(&match rule["metric"].as_str().unwrap() {
            "false_kill_rate" => format!("[[rule]]\nmetric = \"false_kill_rate\"\nmax = {max}\n"),
            "tool_p99_ms" => {
                format!("[[rule]]\nmetric = \"wait.tool\"\nquantile = \"p99\"\nmax = \"{max}ms\"\n")
            }
            "detection_latency_p90_ms" => {
                format!(
                    "[[rule]]\nmetric = \"detection_time\"\nquantile = \"p90\"\nmax = \"{max}ms\"\n"
                )
            }
            other => panic!("{other}"),
        });
    }
    let (result, code) = gate(&place, "data --policy pi-desktop-0129", &rules);
    let checks = result["checks"].as_array().unwrap();
    let verdicts: Vec<&Value> = checks.iter().map(|check| &check["verdict"]).collect();
    let expected: Vec<&Value> = scenario["expect"]["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(verdicts, expected);
    assert_eq!(code, 3);
    // 22.1 % as the scenario says
    assert!((number(&checks[0]["observed"]["upper_share"]) - 0.221).abs() < 5e-4);
    place.write("rules.toml", rules);
    let done = place.run("gate data --policy pi-desktop-0129 --rules rules.toml --quiet");
    let lines = done.exits(3).stdout;
    assert_eq!(
        lines
            .lines()
            .filter(|line| line.starts_with("no_data"))
            .count(),
        2
    );
}

#[test]
fn br_97_the_limit_that_fired_is_the_one_that_is_named() {
    let Some(scenario) = scenario("BR-97-which-limit-fired.json") else {
        return;
    };
    let place = Place::new();
    let policy = &scenario["policy"];
    place.write(
        "policy.toml",
        format!(
            "total = \"{}ms\"\n[pause]\ntool_limit = \"{}ms\"\n",
            policy["max_total_ms"], policy["per_command_ms"]
        ),
    );
    // the wrapped command goes on for longer than its limit, and for less than the total budget
    let groups = [
        runs(60, "m", Course::Lives),
        runs(40, "m", Course::Tool(900_000)),
    ];
    import(&place, "data", &groups);
    let rule = |cause: &str| {
        format!("[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"5%\"\ncause = \"{cause}\"\n")
    };
    let rules = [rule("tool_timeout"), rule("total_timeout")].concat();
    let (result, code) = gate(&place, "data --policy policy.toml", &rules);
    let (tool, total) = (&result["checks"][0], &result["checks"][1]);
    assert_eq!(scenario["expect"]["attribution"], "per_command_ms");
    assert_eq!(
        (&tool["observed"]["hits"], &total["observed"]["hits"]),
        (&40.into(), &0.into())
    );
    assert_eq!(
        (tool["verdict"].as_str(), total["verdict"].as_str(), code),
        (Some("fail"), Some("pass"), 1)
    );
    // and the annotation points at that limit's line
    assert_eq!(
        tool["place"],
        serde_json::json!({ "file": "policy.toml", "line": 3, "inherited": null })
    );
}
