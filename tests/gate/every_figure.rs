//! Every figure that `sweep` and `settle` print of a cell is one that a rule can bound, or the table says why none is
//! needed.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::{gate, table};
use crate::{Place, json};

/// What a key of a sweep's cell is to a gate: a metric that bounds it, or (behind a dash) why no metric is about it.
#[rustfmt::skip]
const SWEPT: &[(&str, &str)] = &[
    ("against_base.base_minus_this", "- newly_spared_rate less newly_killed_rate, each with its limits"),
    ("against_base.interval", "- the limits of that difference"),
    ("against_base.mcnemar_p", "- tells whether that difference is chance, which the limits of both rates decide"),
    ("against_base.nested", "- a property of the two policies"),
    ("against_base.newly_killed", "newly_killed"),
    ("against_base.newly_spared", "newly_spared"),
    ("cell", "- names the cell"),
    ("certify.decision", "- a verdict: the gate has its own"),
    ("certify.false_kill_rate_up_one_sided", "false_kill_rate"),
    ("certify.false_kills", "false_kill_rate"),
    ("certify.limit_by_unit", "- how a limit was worked out"),
    ("certify.place", "- names the cell's place in a sequence"),
    ("certify.runs", "runs"),
    ("certify.runs_needed", "- what would decide: the gate says its own"),
    ("certify.unit_deff", "- how a limit was worked out"),
    ("certify.unresolved", "unresolved_share"),
    ("detection.n", "detected_share"),
    ("detection.p50", "detection_time"),
    ("detection.p50_ms", "detection_time"),
    ("detection.p99", "detection_time"),
    ("detection.p99_ms", "detection_time"),
    ("detection.source", "- how a time is known"),
    ("detector.compounded_run_rate", "compounded_run_rate"),
    ("detector.compounded_to_observed", "- compounded_run_rate over observed_run_rate, each with its limits"),
    ("detector.detection_bound_ms", "detection_bound"),
    ("detector.gaps", "- what per_gap_rate is counted over"),
    ("detector.mistake_recurrence_ms", "mistake_recurrence"),
    ("detector.mistakes", "mistakes"),
    ("detector.mistakes_per_active_hour", "mistakes_per_active_hour"),
    ("detector.observed_run_rate", "observed_run_rate"),
    ("detector.per_gap_rate", "per_gap_rate"),
    ("detector.query_accuracy", "query_accuracy"),
    ("false_kill_rate", "false_kill_rate"),
    ("false_kill_rate_bounds", "false_kill_rate"),
    ("false_kill_rate_up_one_sided", "false_kill_rate"),
    ("false_kills", "false_kill_rate"),
    ("false_kills_per_hour", "false_kills_per_hour"),
    ("false_kills_per_hour_interval", "false_kills_per_hour"),
    ("hung", "hung_runs"),
    ("hung_killed_early", "killed_early_share"),
    ("hung_missed", "missed_share"),
    ("killed", "kill_rate"),
    ("kills", "kill_rate"),
    ("label", "- names the cell"),
    ("limit_by_unit", "- how a limit was worked out"),
    ("pareto", "- compares cells of a sweep"),
    ("runs", "runs"),
    ("settings", "- names the cell"),
    ("settle_share", "settles_in_wait"),
    ("settlement.blocked_share", "blocked_share"),
    ("settlement.closed_rate", "closed_rate"),
    ("settlement.duplicates_per_run", "duplicates_per_run"),
    ("settlement.expiries_per_run", "expiries_per_run"),
    ("settlement.false_kill_rate", "simulated_false_kill_rate"),
    ("settlement.hang_to_knowledge_mean_ms", "mean_hang_to_knowledge"),
    ("settlement.known_within_1_wait", "known_in_wait"),
    ("settlement.known_within_2_waits", "known_within_2_waits"),
    ("settlement.known_within_3_waits", "known_within_3_waits"),
    ("settlement.misread_rate", "misread_rate"),
    ("settlement.settled_in_wait", "settled_in_wait"),
    ("settlement.slot_time_held_by_hung_share", "slots_held_share"),
    ("settlement.stopped_rate", "stopped_rate"),
    ("settlement.waits_per_run", "waits_per_run"),
    ("settles_within_wait", "settles_in_wait"),
    ("slot_lost_ms", "slot_time_lost"),
    ("strata", "false_kill_rate"),
    ("ties_at_W", "ties"),
    ("true_kills", "true_kill_rate"),
    ("unit_deff", "- how a limit was worked out"),
    ("unresolved_kills", "unresolved_share"),
    ("unresolved_survivals", "unresolved_share"),
    ("work_lost_ms", "work_lost"),
];

/// The keys of a cell, those of groups of figures one below the other.
fn keys(cell: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (key, value) in cell.as_object().unwrap() {
        let group = [
            "against_base",
            "certify",
            "detection",
            "detector",
            "settlement",
        ];
        match value.as_object().filter(|_| group.contains(&key.as_str())) {
            Some(below) => found.extend(below.keys().map(|below| format!("{key}.{below}"))),
            None => {
                found.insert(key.clone());
            }
        }
    }
    found
}

fn metrics(place: &Place) -> Vec<String> {
    let schema = json(&place.run("gate schema").ok());
    let metrics = schema["$defs"]["rule"]["oneOf"][0]["properties"]["metric"]["oneOf"].clone();
    let names = metrics.as_array().unwrap().iter();
    names
        .map(|metric| metric["const"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_figure_of_a_sweep_has_its_metric_or_a_reason() {
    let place = table::place();
    let line = "sweep good --base plain.toml --idle 60s,300s,off --by model --settle --format json --quiet";
    let sweep = json(&place.run(line).ok());
    let mut found = BTreeSet::new();
    for cell in sweep["cells"].as_array().unwrap() {
        found.extend(keys(cell));
    }
    // a window that is off has no detector
    found.remove("detector");
    let told: BTreeSet<String> = SWEPT.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(told, found);
    let known = metrics(&place);
    for (key, metric) in SWEPT {
        assert!(
            metric.starts_with("- ") || known.iter().any(|name| name == metric),
            "{key}: {metric}"
        );
    }
    // what a sweep says of costs is bounded as well, at any hang rate and restart
    for metric in ["cost_per_run", "cost_per_hang"] {
        assert!(known.iter().any(|name| name == metric));
    }
}

/// The metric of a figure of `settle`.
fn metric_of(figure: &str) -> &str {
    let key = format!("settlement.{figure}");
    let row = SWEPT.iter().find(|(known, _)| *known == key);
    row.unwrap_or_else(|| panic!("{figure}")).1
}

/// A bound in the unit of a figure of `settle`.
fn bound(figure: &str) -> &'static str {
    match figure {
        _ if figure.ends_with("_ms") => "\"1m\"",
        _ if figure.ends_with("per_run") => "1",
        _ => "\"50%\"",
    }
}

/// A gate's figures of simulated parents are those that `settle` prints for the same parents, whatever their habits.
#[test]
fn a_gate_on_simulated_parents_sees_what_settle_prints() {
    let place = table::place();
    for (options, parents) in [
        ("", ""),
        (
            "--nested 50% --horizon 30m --think 2m --hang-rate 10%",
            "nested = \"50%\", horizon = \"30m\", think = \"2m\", hang_rate = \"10%\"",
        ),
        (
            "--wait 90s --on-expiry read-as-failure --tasks 3 --cap 2 --unwinding 5s --spawn-every 1s",
            "wait = \"90s\", on_expiry = \"read_as_failure\", tasks = 3, cap = 2, unwinding = \"5s\", spawn_every = \"1s\"",
        ),
    ] {
        let line = format!("settle good --policy plain.toml {options} --format json --quiet");
        let settle = json(&place.run(&line).ok());
        let cell = &settle["cells"][0];
        let mut rules = String::new();
        let mut expected: Vec<(String, Option<f64>)> = Vec::new();
        let mut ask = |metric: &str, bound: &str, more: &str, point: Option<f64>| {
            let parents = format!("parents = {{ {parents} }}");
            writeln!(
                rules,
                "[[rule]]\nmetric = \"{metric}\"\nmax = {bound}\n{more}\n{parents}"
            )
            .unwrap();
            expected.push((metric.to_owned(), point));
        };
        for (name, figure) in cell["figures"].as_object().unwrap() {
            ask(metric_of(name), bound(name), "", figure["point"].as_f64());
        }
        for (name, count) in cell["counts"].as_object().unwrap() {
            let bound = if name.ends_with("_ms") { "\"1m\"" } else { "1" };
            ask(&format!("simulated.{name}"), bound, "", count.as_f64());
        }
        for (waits, count) in cell["hangs_known_after_waits"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let name = format!("simulated.known_after_{}_waits", waits + 1);
            ask(&name, "1", "", count.as_f64());
        }
        for quantile in cell["hang_to_knowledge"].as_array().unwrap() {
            let more = format!("quantile = {}", quantile["p"].as_str().unwrap());
            ask(
                "hang_to_knowledge",
                "\"1m\"",
                &more,
                quantile["point_ms"].as_f64(),
            );
        }
        let (result, _) = gate(&place, "good --policy plain.toml", &rules);
        let checks = result["checks"].as_array().unwrap();
        assert_eq!(checks.len(), expected.len());
        assert!(checks.len() > 60);
        for (check, (metric, point)) in checks.iter().zip(expected) {
            let observed = check["observed"].as_object().unwrap();
            let (_, found) = observed
                .iter()
                .find(|(key, _)| key.starts_with("point_"))
                .unwrap();
            let found = found.as_f64();
            let alike = match (found, point) {
                (Some(found), Some(point)) => (found - point).abs() <= 1e-9 * point.abs(),
                (found, point) => found == point,
            };
            assert!(
                alike,
                "{options} {metric}: {found:?}, settle prints {point:?}"
            );
        }
    }
}

/// Other quantiles than the two that `settle` prints: all hangs of this telemetry are known of after the same time but
/// for the parents' own work, so that they rise with the quantile.
#[test]
fn the_time_to_knowledge_has_any_quantile() {
    let place = table::place();
    let at = |quantile: &str| {
        let rule = format!(
            "[[rule]]\nmetric = \"hang_to_knowledge\"\nquantile = \"{quantile}\"\nmax = \"1h\"\nparents = {{ hang_rate = \"30%\" }}\n"
        );
        let (result, _) = gate(&place, "good --policy plain.toml", &rule);
        let check = &result["checks"][0];
        check["observed"]["point_ms"]
            .as_f64()
            .unwrap_or_else(|| panic!("{check:#}"))
    };
    let found = ["p10", "p25", "p50", "p75", "p90"].map(at);
    assert!(found.is_sorted(), "{found:?}");
    assert!(found[0] >= 300_000.0 && found[0] < found[4], "{found:?}");
}
