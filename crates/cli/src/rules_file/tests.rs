#![allow(clippy::unwrap_used)]

use policysim_policy::WaitMode;
use policysim_sim::settle::Reaction;

use super::*;

#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(
        parse(text, Path::new("")).unwrap_err().to_string(),
        expected
    );
}

fn one(text: &str) -> Rule {
    parse(&format!("[[rule]]\n{text}"), Path::new(""))
        .unwrap()
        .rules
        .remove(0)
}

#[test]
fn faults_name_line_key_and_the_nearest() {
    refused(
        "",
        "1: no rule: expected [[rule]] tables; a gate without rules decides nothing",
    );
    refused(
        "[[rule]]\nmetrc = \"runs\"",
        "2: unknown key metrc of a rule, did you mean metric?",
    );
    refused(
        "\n[[rule]]\nmetric = \"false_kil_rate\"\nmax = \"1%\"",
        "3: unknown metric false_kil_rate, did you mean false_kill_rate?",
    );
    refused(
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"300s\"",
        "3: max 300s: expected a share such as 0.1% or 0.001: `300s` is not a probability, expected a decimal between 0 and 1 with at most 18 digits, for example 0.999",
    );
    refused(
        "[[rule]]\nmetric = \"detection_time\"\nquantile = \"p99\"\nmax = 600",
        "4: max: 600 has no unit: 600s? 600ms?",
    );
    refused(
        "[[rule]]\nmetric = \"detection_time\"\nmax = \"600s\"",
        "2: metric detection_time has quantiles: expected quantile = \"p99\" as well",
    );
    refused(
        "[[rule]]\nmetric = \"runs\"\nmin = \"many\"",
        "3: min: \"many\" is not a whole number such as 300",
    );
    refused(
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = 0",
        "3: max of false_kill_rate cannot be shown by any number of runs: leave some room",
    );
    refused(
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\nmax_ratio = 2",
        "2: max and max_ratio in one rule: bounds on a figure and on its change are rules of their own",
    );
    refused(
        "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\nby = \"modell\"",
        "4: by: \"modell\" is not one of harness, model, role, source, did you mean model?",
    );
    refused(
        "[[rule]]\nmetric = \"runs\"\nmin = 3\nby = \"model\"",
        "2: metric runs is not told apart by strata",
    );
    refused(
        "[[rule]]\ncheck = \"idle-not-below-wiat\"",
        "2: check: unknown finding idle-not-below-wiat, did you mean idle-not-below-wait?",
    );
    refused(
        "[[rule]]\ncheck = \"all\"\nmax = 3",
        "3: max has no place in a rule with check: expected name, confidence, inconclusive, check, known",
    );
    refused(
        "[[rule]]\nkey = \"idle.windwo\"\nmax = \"5m\"",
        "2: unknown key idle.windwo, did you mean idle.window?",
    );
    refused(
        "[[rule]]\nkey = \"idle.window\"\nbelow = \"task_wait.timeuot\"",
        "3: unknown key task_wait.timeuot, did you mean task_wait.timeout?",
    );
    refused(
        "[[rule]]\nkey = \"idle.window\"\nmax = 300",
        "3: max: 300 has no unit: 300s? 300ms?",
    );
    refused("rul = 1", "1: unknown key rul, did you mean rule?");
    refused(
        "metric = \"runs\"",
        "1: unknown key metric; it is a key of a rule: put it below [[rule]]",
    );
    refused(
        "[rule]\nmetric = \"runs\"",
        "1: rule: expected [[rule]] tables, with two brackets",
    );
    refused(
        "confidence = 0.3\n[[rule]]\ncheck = \"all\"",
        "1: confidence: 0.3 is not a confidence from 0.5 to below 1, such as 0.95",
    );
    refused(
        "[[rule]]\nsame_as = \"pi-desktop-0192\"",
        "2: same_as: unknown preset pi-desktop-0192, did you mean pi-desktop-0129?; `policysim policy list` shows all, and a policy file is named with its extension",
    );
    refused(
        "[[rule]]\nname = \"x\"",
        "2: a rule is about one of metric, check, key, same_as, drift: none of them is set",
    );
}

#[test]
fn faults_of_pairs_costs_and_parents_are_named() {
    refused(
        "[[rule]]\nmetric = \"newly_killed\"\nmax = 0",
        "2: metric newly_killed compares two policies: expected against = \"PRESET\" as well",
    );
    refused(
        "[[rule]]\nmetric = \"newly_killed\"\nmax = \"1%\"\nagainst = \"pi-desktop-0119\"",
        "3: max: \"1%\" is not a whole number such as 300",
    );
    refused(
        "[[rule]]\nmetric = \"newly_killed\"\nmax = 0\nagainst = \"pi-desktop-0192\"",
        "4: against: unknown preset pi-desktop-0192, did you mean pi-desktop-0129?; `policysim policy list` shows all, and a policy file is named with its extension",
    );
    refused(
        "[[rule]]\nmetric = \"runs\"\nmin = 1\nagainst = \"pi-desktop-0119\"",
        "2: against belongs to newly_killed and newly_spared, not to runs",
    );
    refused(
        "[[rule]]\nmetric = \"cost_per_run\"\nmax = \"1m\"",
        "2: metric cost_per_run is a cost at some share of hangs: expected hang_rate = \"1%\" as well",
    );
    refused(
        "[[rule]]\nmetric = \"cost_per_run\"\nmax = \"1m\"\nhang_rate = 0",
        "4: hang_rate: without hangs the longest window costs least, whatever it kills: expected a share above 0",
    );
    refused(
        "[[rule]]\nmetric = \"cost_per_run\"\nmax = 60\nhang_rate = \"1%\"",
        "3: max: 60 has no unit: 60s? 60ms?",
    );
    refused(
        "[[rule]]\nmetric = \"cost_per_run\"\nmax = \"1m\"\nhang_rate = \"1%\"\nrestart = 5",
        "5: restart: 5 has no unit: 5s? 5ms?",
    );
    refused(
        "[[rule]]\nmetric = \"work_lost\"\nmax = \"1m\"\nrestart = \"5s\"",
        "2: restart belongs to cost_per_run and cost_per_hang, not to work_lost",
    );
    refused(
        "[[rule]]\nmetric = \"per_gap_rat\"\nmax = \"1%\"",
        "2: unknown metric per_gap_rat, did you mean per_gap_rate?",
    );
    refused(
        "[[rule]]\nmetric = \"query_accuracy\"\nmin = \"100%\"",
        "3: min of query_accuracy cannot be shown by any number of runs: leave some room",
    );
    let parents = |entries: &str| {
        format!("[[rule]]\nmetric = \"misread_rate\"\nmax = \"1%\"\nparents = {{ {entries} }}")
    };
    refused(
        &parents("thnk = \"30s\""),
        "4: parents: unknown key thnk, did you mean think?",
    );
    refused(
        &parents("wait = 600"),
        "4: parents.wait: 600 has no unit: 600s? 600ms?",
    );
    refused(
        &parents("think = 30"),
        "4: parents.think: 30 has no unit: 30s? 30ms?",
    );
    refused(
        &parents("mode = \"alll\""),
        "4: parents.mode: \"alll\" is not one of all, any, did you mean all?",
    );
    refused(
        &parents("on_expiry = \"wait-again\""),
        "4: parents.on_expiry: \"wait-again\" is not one of wait_again, read_as_failure, close_turn, stop, judge, did you mean wait_again?",
    );
    refused(
        &parents("nested = \"200%\""),
        "4: parents.nested 200%: expected a share such as 0.1% or 0.001: `200` is not a probability, expected a decimal between 0 and 1 with at most 18 digits, for example 0.999",
    );
    refused(
        &parents("horizon = \"2000d\""),
        "4: parents.horizon: 2000d is longer than 1000d",
    );
    refused(
        "[[rule]]\nmetric = \"simulated.retrys\"\nmax = 1",
        "2: unknown metric simulated.retrys, did you mean simulated.retries?",
    );
    refused(
        &parents("tasks = 0"),
        "4: parents.tasks: 0 is not a whole number from 1 to 1000",
    );
    refused(
        &parents("unchanged = 3"),
        "4: parents: unchanged says when judge stops a delegate: set on_expiry = \"judge\" as well",
    );
    refused(
        "[[rule]]\nmetric = \"misread_rate\"\nmax = \"1%\"\nparents = \"600s\"",
        "4: parents: \"600s\" is not a table such as { wait = \"600s\", mode = \"any\" }",
    );
    refused(
        "[[rule]]\nmetric = \"runs\"\nmin = 1\nparents = { wait = \"600s\" }",
        "2: parents belong to figures of simulated settlement, not to runs",
    );
}

#[test]
fn every_kind_reads() {
    let Subject::Figure(figure) =
        one("metric = \"cost_per_hang\"\nhang_rate = \"2%\"\nrestart = \"30s\"\nmax = \"2h\"")
            .subject
    else {
        panic!("no figure")
    };
    assert_eq!(
        (figure.hang_rate.map(Prob::to_f64), figure.restart),
        (Some(0.02), Millis::from_secs(30))
    );
    let Subject::Figure(figure) = one(
        "metric = \"misread_rate\"\nmax = \"1%\"\nparents = { wait = \"100s\", mode = \"any\", min_completed = 2, on_expiry = \"judge\", unchanged = 3, tasks = 8, cap = 3, spawn_every = \"1s\", think = \"2m\", unwinding = \"0s\", hang_rate = \"5%\" }",
    )
    .subject
    else {
        panic!("no figure")
    };
    let habits = figure.parents.habits;
    assert_eq!(
        (
            habits.wait,
            habits.mode,
            habits.min_completed,
            habits.tasks,
            habits.cap
        ),
        (Some(Millis::from_secs(100)), Some(WaitMode::Any), 2, 8, 3)
    );
    assert_eq!(habits.on_expiry, Some(Reaction::Judge { unchanged: 3 }));
    assert_eq!(
        (habits.spawn_every, habits.think, habits.unwinding),
        (Millis::from_secs(1), Millis::from_secs(120), Millis::ZERO)
    );
    assert_eq!(figure.parents.changes.hang_ppm.as_u64(), 50_000);
    let rule = one(
        "metric = \"false_kill_rate\"\nmax = \"1%\"\nby = \"model\"\ncluster = \"run\"\nconfidence = \"99%\"",
    );
    let Subject::Figure(figure) = &rule.subject else {
        panic!("{rule:?}")
    };
    assert_eq!((rule.line, figure.amount), (1, 0.01));
    assert_eq!(
        (&figure.scope, figure.cluster),
        (&Scope::Every(StratumKey::Model), Cluster::Run)
    );
    assert_eq!(rule.level, Some(Level::P99));
    let Subject::Figure(figure) =
        one("metric = \"wait.tool\"\nquantile = \"p99.9\"\nmax = \"10m\"").subject
    else {
        panic!("no figure")
    };
    assert_eq!(
        (figure.quantile, figure.amount),
        (Some(Prob::P999), 600_000.0)
    );
    let Subject::Key(key) = one("key = \"pause.tool\"\nis = \"idle\"").subject else {
        panic!("no key")
    };
    assert_eq!(key.operand, Operand::Value(Value::text("idle")));
    let Subject::Key(key) = one("key = \"idle\"\nbelow = \"task_wait.timeout\"").subject else {
        panic!("no key")
    };
    assert_eq!(
        (key.key.as_str(), key.operand),
        ("idle.window", Operand::Key("task_wait.timeout".to_owned()))
    );
    let Subject::Findings(findings) =
        one("check = \"all\"\nknown = \"paused-without-limit\"").subject
    else {
        panic!("no findings")
    };
    assert_eq!(
        (findings.ids.len(), &findings.known[..]),
        (check::RULES.len(), &["paused-without-limit"][..])
    );
    let Subject::Same(same) = one("same_as = \"pi-desktop-0129\"\nexcept = \"idle\"").subject
    else {
        panic!("no equality")
    };
    assert_eq!(same.except, ["idle.window"]);
    let Subject::Drift(drift) = one("drift = \"all\"\nmoved = \"fail\"").subject else {
        panic!("no drift")
    };
    assert!(drift.moved_fails && drift.line.is_none());
}

/// The README tells every metric with what it says.
#[test]
fn the_readme_tells_every_metric() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    for metric in Metric::all() {
        let name = metric.name();
        let told = match metric {
            Metric::Silence(_) if name.starts_with("wait.") => "`wait.KIND`".to_owned(),
            Metric::Silence(_) => format!("`{name}`"),
            Metric::Simulated(_) => "`simulated.NAME`".to_owned(),
            _ => format!("| `{name}` | "),
        };
        assert!(readme.contains(&told), "{name}");
        let doc = metric.doc();
        assert!(
            matches!(metric, Metric::Silence(_) | Metric::Simulated(_)) || readme.contains(&*doc),
            "{name}: {doc}"
        );
    }
}

/// The committed schema is what the tables say today; remade with
/// `policysim gate schema > data/schema/gate-rules.schema.json`.
#[test]
fn the_committed_schema_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../data/schema/gate-rules.schema.json"
    );
    let committed: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(committed, schema());
}
