//! Every reference vector of the statistics, dispatched on its method.
//!
//! The vectors are `{method, input, expect, tolerance}` files in `vectors/stats` of the folder that
//! `POLICYSIM_SHARED` names (default: `shared` beside the workspace). They were made with other software; nothing here
//! computes its own expectation.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use policysim_sim::stats::clusters::{self, SessionCounts};
use policysim_sim::stats::cost::{self, CostModel};
use policysim_sim::stats::kaplan_meier::{Gap, KaplanMeier};
use policysim_sim::stats::tail::{self, Excesses, LevelQuestion};
use policysim_sim::stats::verdict::{RunCounts, check_rate, check_strata};
use policysim_sim::stats::{
    self, Counts, Level, Prob, bootstrap, choice, compounding, detector, drift, paired,
    quantile as quantiles, rates,
};
use serde_json::{Map, Value, json};

/// Methods whose vectors are context only: the design keeps them out of version 1.
const NOT_YET: [&str; 2] = ["chen_configuration", "chen_nfds_qos"];

fn vectors() -> PathBuf {
    let shared = std::env::var_os("POLICYSIM_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    shared.join("vectors/stats")
}

/// The answers to one file's `input`, as JSON of the shape of its `expect`; `None` for an unknown method.
fn answer(method: &str, input: &Value) -> Option<Value> {
    Some(match method {
        "certify_n" => certify_n(input),
        "certify_power" => certify_power(input),
        "clopper_pearson" => clopper_pearson(input),
        "quantile_ci_ranks" => quantile_ci_ranks(input),
        "quantile_min_n" => quantile_min_n(input),
        "quantile_type1" => quantile_type1(input),
        "rule_of_three" => rule_of_three(input),
        "cluster_bootstrap" => cluster_bootstrap(input),
        "cluster_proportion" => cluster_proportion(input),
        "cost_grid" | "cost_optimal_w" => cost(input),
        "fisher_exact" => fisher_exact(input),
        "fixed_sequence" => fixed_sequence(input),
        "gate" => gate(input),
        "gate_strata" => gate_strata(input),
        "gpd_fit" | "gpd_fit_censored" => gpd_fit(input),
        "hang_rate_posterior" => hang_rate_posterior(input),
        "hdr_bucket" => hdr_bucket(input),
        "idle_watchdog_qos" => idle_watchdog_qos(input),
        "kaplan_meier" => kaplan_meier(input),
        "km_cluster_variance" => km_cluster_variance(input),
        "ks_two_sample" => ks_two_sample(input),
        "mcnemar_exact" => mcnemar_exact(input),
        "paired_difference" => paired_difference(input),
        "phi_accrual" => phi_accrual(input),
        "rto" => rto(input),
        "run_compounding" => run_compounding(input),
        "run_vs_gap" => run_vs_gap(input),
        "session_permutation_ks" => session_permutation_ks(input),
        _ => return None,
    })
}

#[test]
fn every_vector_is_met() {
    let folder = vectors();
    if !folder.is_dir() {
        println!("skipped: no vectors at {}", folder.display());
        return;
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());

    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut problems = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy();
        let vector: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let method = vector["method"].as_str().unwrap();
        if NOT_YET.contains(&method) {
            continue;
        }
        let Some(found) = answer(method, &vector["input"]) else {
            problems.push(format!("{name}: unknown method {method}"));
            continue;
        };
        let mut compare = Comparison::new(&vector["tolerance"]);
        compare.values(&name, &vector["expect"], &found);
        let count = counts.entry(method.to_owned()).or_default();
        count.0 += 1;
        count.1 += compare.compared;
        problems.extend(compare.problems);
    }
    for (method, (files, values)) in &counts {
        println!("{method}: {files} files, {values} values");
    }
    println!("not yet: {}", NOT_YET.join(", "));
    assert!(
        problems.is_empty(),
        "{} problems\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Compares answers with expectations under a file's tolerance, leaf by leaf.
struct Comparison {
    abs: f64,
    rel: f64,
    compared: usize,
    problems: Vec<String>,
}

impl Comparison {
    fn new(tolerance: &Value) -> Self {
        let part = |name: &str| tolerance[name].as_f64().unwrap();
        Self {
            abs: part("abs"),
            rel: part("rel"),
            compared: 0,
            problems: Vec::new(),
        }
    }

    fn values(&mut self, at: &str, expected: &Value, found: &Value) {
        match (expected, found) {
            (Value::Object(expected), Value::Object(found)) => {
                for (key, value) in expected {
                    let at = format!("{at}.{key}");
                    match found.get(key) {
                        Some(found) => self.values(&at, value, found),
                        None => self.problems.push(format!("{at}: no answer")),
                    }
                }
            }
            (Value::Array(expected), Value::Array(found)) => {
                if expected.len() != found.len() {
                    self.problems.push(format!(
                        "{at}: {} entries, expected {}",
                        found.len(),
                        expected.len()
                    ));
                }
                for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                    self.values(&format!("{at}[{index}]"), expected, found);
                }
            }
            (expected, found) => {
                self.compared += 1;
                if !self.same(expected, found) {
                    self.problems
                        .push(format!("{at}: {found}, expected {expected}"));
                }
            }
        }
    }

    /// Integers, texts and nulls exactly, other numbers within the tolerance.
    fn same(&self, expected: &Value, found: &Value) -> bool {
        if expected == found {
            return true;
        }
        if expected.is_u64() && found.is_u64() {
            return false;
        }
        match (expected.as_f64(), found.as_f64()) {
            (Some(expected), Some(found)) => {
                (expected - found).abs() <= self.abs.max(self.rel * expected.abs())
            }
            _ => false,
        }
    }
}

fn level(input: &Value) -> Level {
    input["conf"].as_str().unwrap().parse().unwrap()
}

fn prob(value: &Value) -> Prob {
    value.as_str().unwrap().parse().unwrap()
}

fn integers(value: &Value) -> Vec<u64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_u64().unwrap())
        .collect()
}

/// `{name: [one(case), ..]}` over the cases of an input.
fn each(name: &str, input: &Value, one: impl Fn(&Value) -> Value) -> Value {
    let answers: Vec<Value> = input["cases"].as_array().unwrap().iter().map(one).collect();
    json!({ name: answers })
}

fn count(case: &Value, name: &str) -> u64 {
    case[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {case}"))
}

fn number(case: &Value, name: &str) -> f64 {
    case[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {case}"))
}

fn certify_n(input: &Value) -> Value {
    each("n", input, |case| {
        json!(stats::runs_needed(
            count(case, "kills"),
            number(case, "rate"),
            level(input)
        ))
    })
}

fn certify_power(input: &Value) -> Value {
    each("cases", input, |case| {
        let (n, rate) = (count(case, "n"), number(case, "rate"));
        json!({
            "max_kills": rates::max_kills(n, rate, level(input)),
            "p_pass": rates::pass_chance(number(case, "true_rate"), rate, n, level(input)),
        })
    })
}

fn clopper_pearson(input: &Value) -> Value {
    each("cases", input, |case| {
        let level = level(input);
        let mut answer = Map::new();
        let two_sided =
            rates::clopper_pearson_effective(number(case, "x"), number(case, "n"), level);
        if let (Some(x), Some(n)) = (case["x"].as_u64(), case["n"].as_u64()) {
            assert_eq!(two_sided, stats::clopper_pearson(x, n, level));
            answer.insert(
                "one_sided_lower".into(),
                json!(stats::lower_one_sided(x, n, level)),
            );
            answer.insert(
                "one_sided_upper".into(),
                json!(stats::upper_one_sided(x, n, level)),
            );
        }
        answer.insert("two_sided_lower".into(), json!(two_sided.lo));
        answer.insert("two_sided_upper".into(), json!(two_sided.up));
        Value::Object(answer)
    })
}

fn rule_of_three(input: &Value) -> Value {
    let answers: Vec<Value> = integers(&input["n"])
        .into_iter()
        .map(|n| {
            json!({
                "three_over_n": rates::rule_of_three(n),
                "exact_upper": stats::upper_one_sided(0, n, level(input)),
            })
        })
        .collect();
    json!({ "cases": answers })
}

fn quantile_ci_ranks(input: &Value) -> Value {
    each("cases", input, |case| {
        let ranks = quantiles::ranks(count(case, "n"), prob(&case["p"]), level(case));
        json!({ "lower_rank": ranks.lower, "upper_rank": ranks.upper, "coverage": ranks.coverage })
    })
}

fn quantile_min_n(input: &Value) -> Value {
    each("cases", input, |case| {
        let needed = quantiles::samples_needed(prob(&case["p"]), level(case));
        json!({ "two_sided": needed.two_sided, "one_sided": needed.one_sided })
    })
}

fn quantile_type1(input: &Value) -> Value {
    let mut values = integers(&input["values"]);
    let counted: stats::Counts = values.iter().copied().collect();
    values.sort_unstable();
    let mut by_p: [Map<String, Value>; 3] = Default::default();
    for text in input["p"].as_array().unwrap() {
        let found = stats::quantile(&values, prob(text));
        assert_eq!(
            found,
            stats::quantile_of_counts(&counted, prob(text), Level::P95)
        );
        let answers = [
            json!(found.rank),
            json!(found.value),
            json!(found.expected_above),
        ];
        for (map, answer) in by_p.iter_mut().zip(answers) {
            map.insert(text.as_str().unwrap().to_owned(), answer);
        }
    }
    let [rank, quantile, expected_above] = by_p;
    json!({
        "rank": rank,
        "quantile": quantile,
        "expected_above": expected_above,
        "min": counted.iter().next().map(|(ms, _)| ms),
        "max": counted.iter().last().map(|(ms, _)| ms),
        "n": counted.total(),
    })
}

fn session_lists(value: &Value) -> Vec<Vec<u64>> {
    value.as_array().unwrap().iter().map(integers).collect()
}

fn session_counts(input: &Value) -> Vec<SessionCounts> {
    let window = count(input, "W");
    session_lists(&input["sessions"])
        .iter()
        .map(|gaps| SessionCounts {
            gaps: gaps.len() as u64,
            kills: gaps.iter().filter(|&&gap| gap >= window).count() as u64,
        })
        .collect()
}

fn cluster_proportion(input: &Value) -> Value {
    let found = clusters::proportion(&session_counts(input), level(input));
    json!({
        "p": found.rate,
        "N": found.gaps,
        "m": found.sessions,
        "var": found.variance,
        "deff": found.deff,
        "n_eff": found.effective,
        "lower": found.interval.lo,
        "upper": found.interval.up,
    })
}

fn cluster_bootstrap(input: &Value) -> Value {
    let counts = session_counts(input);
    let rate = |draw: &[usize]| {
        let gaps: u64 = draw.iter().map(|&session| counts[session].gaps).sum();
        let kills: u64 = draw.iter().map(|&session| counts[session].kills).sum();
        (gaps > 0).then(|| kills as f64 / gaps as f64)
    };
    let how = bootstrap::Resampling {
        replicates: count(input, "replicates"),
        seed: 0,
        level: level(input),
    };
    let found = bootstrap::bootstrap(counts.len(), how, rate);
    let all: Vec<usize> = (0..counts.len()).collect();
    json!({
        "p": rate(&all),
        "se": found.standard_error,
        "lower": found.interval.lo,
        "upper": found.interval.up,
    })
}

/// Costs in the input's own unit of time: milliseconds when its gaps are, with costs per second scaled to match.
fn cost(input: &Value) -> Value {
    let in_ms = input.get("gaps_ms").is_some();
    let unit = if in_ms { 1_000 } else { 1 };
    let gaps: Counts = integers(&input[if in_ms { "gaps_ms" } else { "gaps_s" }])
        .into_iter()
        .collect();
    let windows = input
        .get("grid_ms")
        .map_or_else(|| CostModel::natural_windows(&gaps), integers);
    let model = CostModel::constant(
        &gaps,
        &windows,
        count(input, "cost_false_kill_s") * unit,
        count(input, "cost_per_wasted_s"),
    )
    .unwrap();
    let scale = |cost: f64| cost / unit as f64;
    let best: Vec<Value> = input["h"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| {
            let best = model.best_at(prob(h));
            json!({ "h": h, "W": best.window_ms, "J": scale(best.cost) })
        })
        .collect();
    let mut answer = json!({ "best": best });
    if let Some(interval) = input.get("h_interval") {
        let (low, high) = (prob(&interval[0]), prob(&interval[1]));
        let switch_points: Vec<Value> = model
            .switch_points()
            .iter()
            .map(|point| json!({ "from_W": point.from_ms, "to_W": point.to_ms, "h": point.hang_rate }))
            .collect();
        let (hangs, observed) = (count(input, "hangs"), count(input, "gaps_observed"));
        let bayes = model.bayes(hangs, observed);
        let regret = model.minimax_regret(low, high);
        let minimax = model.minimax_cost(low, high);
        let more = json!({
            "switch_points": switch_points,
            "minimax_regret_W": regret.window_ms,
            "minimax_regret": scale(regret.cost),
            "minimax_W": minimax.window_ms,
            "minimax_cost": scale(minimax.cost),
            "bayes_h_mean": cost::hang_posterior(hangs, observed, prior(input), Level::P95).point,
            "bayes_W": bayes.window_ms,
            "bayes_cost": scale(bayes.cost),
        });
        answer
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
    }
    answer
}

fn prior(input: &Value) -> (f64, f64) {
    (
        input["prior"][0].as_f64().unwrap(),
        input["prior"][1].as_f64().unwrap(),
    )
}

fn hang_rate_posterior(input: &Value) -> Value {
    each("cases", input, |case| {
        let found = cost::hang_posterior(
            count(case, "hangs"),
            count(case, "n"),
            prior(input),
            level(input),
        );
        json!({ "mean": found.point, "lower": found.interval.lo, "upper": found.interval.up })
    })
}

fn fisher_exact(input: &Value) -> Value {
    each("p_two_sided", input, |case| {
        json!(drift::fisher_exact(
            count(case, "k1"),
            count(case, "n1"),
            count(case, "k2"),
            count(case, "n2")
        ))
    })
}

fn fixed_sequence(input: &Value) -> Value {
    let steps: Vec<(u64, u64)> = input["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (count(step, "W"), count(step, "kills")))
        .collect();
    let found = choice::fixed_sequence(
        &steps,
        count(input, "runs"),
        number(input, "max_rate"),
        level(input),
    );
    let upper: Vec<Option<f64>> = found.tested.iter().map(|step| step.upper).collect();
    json!({ "upper": upper, "smallest_certified_W": found.smallest_certified_ms })
}

fn run_counts(case: &Value) -> RunCounts {
    RunCounts {
        kills: count(case, "kills"),
        unresolved: count(case, "unresolved"),
        runs: count(case, "runs"),
    }
}

fn gate(input: &Value) -> Value {
    each("cases", input, |case| {
        let found = check_rate(run_counts(case), number(case, "max_rate"), level(input));
        json!({ "verdict": found.decision.name(), "lower": found.lower, "upper": found.upper })
    })
}

fn gate_strata(input: &Value) -> Value {
    let strata: Vec<(String, RunCounts)> = input["strata"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stratum| {
            (
                stratum["name"].as_str().unwrap().to_owned(),
                run_counts(stratum),
            )
        })
        .collect();
    let every = input["require_every_stratum"].as_bool().unwrap();
    let found = check_strata(&strata, number(input, "max_rate"), level(input), every);
    let parts: Vec<Value> = found
        .strata
        .iter()
        .map(|part| json!({ "name": part.name, "upper": part.alone.upper, "lower_bonferroni": part.lower_shared }))
        .collect();
    json!({
        "pooled": {
            "verdict": found.pooled.decision.name(),
            "lower": found.pooled.lower,
            "upper": found.pooled.upper,
        },
        "strata": parts,
        "verdict": found.decision.name(),
        "worst_upper": found.worst.map(|index| &strata[index].0),
    })
}

fn gpd_fit(input: &Value) -> Value {
    let values: Vec<f64> = input["excess"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect();
    let observed = |index: usize| {
        input
            .get("censored")
            .is_none_or(|censored| !censored[index].as_bool().unwrap())
    };
    let excesses = Excesses::new(
        values
            .iter()
            .enumerate()
            .map(|(index, &excess)| (excess, observed(index))),
    );
    assert_eq!(excesses.len(), values.len());
    let fit = tail::fit(&excesses).unwrap();
    let ask = LevelQuestion {
        threshold_ms: number(input, "threshold"),
        zeta: number(input, "zeta"),
        p: prob(&input["p"]),
    };
    let limits = tail::level_limits(&excesses, fit, ask, 1.0, level(input));
    let moments = tail::fit_moments(&excesses);
    json!({
        "mle_scale": fit.gpd.scale,
        "mle_shape": fit.gpd.shape,
        "loglik": fit.log_likelihood,
        "pwm_scale": moments.map(|gpd| gpd.scale),
        "pwm_shape": moments.map(|gpd| gpd.shape),
        "return_level": fit.gpd.level(ask.threshold_ms, ask.zeta, ask.p),
        "profile_lower": limits.lo,
        "profile_upper": limits.up,
        "anderson_darling": tail::anderson_darling(&excesses, fit.gpd),
    })
}

fn histogram(input: &Value) -> Histogram<u64> {
    let digits = count(input, "significant_digits") as u8;
    Histogram::new_with_bounds(count(input, "lowest"), count(input, "highest"), digits).unwrap()
}

fn hdr_bucket(input: &Value) -> Value {
    let histogram = histogram(input);
    let (lowest, highest): (Vec<u64>, Vec<u64>) = integers(&input["values"])
        .into_iter()
        .map(|value| stats::histogram::equivalent(&histogram, value))
        .unzip();
    json!({ "lowest_equivalent": lowest, "highest_equivalent": highest })
}

fn idle_watchdog_qos(input: &Value) -> Value {
    let gaps: Counts = integers(&input["gaps"]).into_iter().collect();
    let found = detector::qos(&gaps, count(input, "W"));
    json!({
        "mistakes": found.mistakes,
        "per_gap_rate": found.per_gap_rate,
        "lambda_M_per_hour": found.mistakes_per_hour,
        "E_T_MR": found.recurrence_ms,
        "E_T_M": found.duration_ms,
        "P_A": found.query_accuracy,
        "detection_bound": found.detection_bound_ms,
    })
}

fn phi_accrual(input: &Value) -> Value {
    let gaps: Counts = integers(&input["values"]).into_iter().collect();
    let phi: Vec<Option<f64>> = integers(&input["silence"])
        .into_iter()
        .map(|silence| detector::phi(&gaps, silence))
        .collect();
    json!({ "phi": phi })
}

fn rto(input: &Value) -> Value {
    let min = count(input, "min");
    let mut state: Option<detector::Rto> = None;
    let states: Vec<Value> = integers(&input["samples"])
        .into_iter()
        .map(|sample| {
            let next = state.map_or_else(
                || detector::Rto::first(sample, min),
                |state| state.next(sample, min),
            );
            state = Some(next);
            json!({ "srtt": next.smoothed_ms, "rttvar": next.deviation_ms, "rto": next.timeout_ms })
        })
        .collect();
    json!({ "states": states })
}

fn gaps(input: &Value) -> Vec<Gap> {
    let observed = integers(&input["event"]);
    integers(&input["time"])
        .into_iter()
        .zip(observed)
        .map(|(ms, event)| Gap {
            ms,
            observed: event == 1,
        })
        .collect()
}

fn kaplan_meier(input: &Value) -> Value {
    let level = level(input);
    let curve = KaplanMeier::of_gaps(&gaps(input));
    let at: Vec<Value> = integers(&input["at"])
        .into_iter()
        .map(|t| {
            let found = curve.at(t, level);
            json!({
                "t": t,
                "known_to_exceed": found.known_to_exceed,
                "survival": found.survival,
                "greenwood_var": found.greenwood_variance,
                "loglog_lower": found.loglog.lo,
                "loglog_upper": found.loglog.up,
                "bpcp_lower": found.limits.lo,
                "bpcp_upper": found.limits.up,
                "bpcp_upper_one_sided": found.upper_one_sided,
            })
        })
        .collect();
    let quantile: Map<String, Value> = input["p"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| {
            let found = curve.quantile(prob(p), level);
            let answer = json!({
                "point": found.value,
                "loglog_lower": found.loglog.lo,
                "loglog_upper": found.loglog.up,
                "bpcp_lower": found.limits.lo,
                "bpcp_upper": found.limits.up,
            });
            (p.as_str().unwrap().to_owned(), answer)
        })
        .collect();
    json!({
        "at": at,
        "quantile": quantile,
        "n": curve.n(),
        "events": curve.events(),
        "last_event": curve.last_event_ms(),
        "max_time": curve.max_ms(),
    })
}

fn km_cluster_variance(input: &Value) -> Value {
    let mut sessions: BTreeMap<u64, Vec<Gap>> = BTreeMap::new();
    for (gap, session) in gaps(input).into_iter().zip(integers(&input["session"])) {
        sessions.entry(session).or_default().push(gap);
    }
    let sessions: Vec<Vec<Gap>> = sessions.into_values().collect();
    let curve = KaplanMeier::of_gaps(sessions.iter().flatten());
    let at: Vec<Value> = integers(&input["at"])
        .into_iter()
        .map(|t| {
            let found = curve.cluster_variance(&sessions, t).unwrap();
            json!({
                "t": t,
                "survival": found.survival,
                "greenwood_var": found.greenwood_variance,
                "robust_var": found.unadjusted,
                "robust_var_df": found.variance,
                "deff": found.deff,
            })
        })
        .collect();
    json!({ "at": at })
}

fn ks_two_sample(input: &Value) -> Value {
    let found = drift::two_sample(&integers(&input["a"]), &integers(&input["b"]));
    json!({
        "D": found.distance.to_f64(),
        "p_limit": found.p_limit,
        "ad_midrank_standardised": found.anderson_darling,
    })
}

fn session_permutation_ks(input: &Value) -> Value {
    let found = drift::session_test(
        &session_lists(&input["before"]),
        &session_lists(&input["after"]),
        0,
    )
    .unwrap();
    json!({
        "D": found.distance.to_f64(),
        "splits": found.ks.splits,
        "ge": found.ks.at_least_as_extreme,
        "p_value": found.ks.p_value(),
    })
}

fn mcnemar_exact(input: &Value) -> Value {
    each("p_value", input, |case| {
        json!(paired::mcnemar(count(case, "b"), count(case, "c")))
    })
}

fn paired_difference(input: &Value) -> Value {
    each("cases", input, |case| {
        let (runs, only_first, only_second) =
            (count(case, "m"), count(case, "b"), count(case, "c"));
        let found = if input["nested"].as_bool().unwrap_or(false) {
            paired::nested_difference(runs, only_first, level(input))
        } else {
            paired::difference(
                paired::Discordant {
                    runs,
                    only_first,
                    only_second,
                },
                level(input),
            )
        };
        json!({ "diff": found.difference, "lower": found.interval.lo, "upper": found.interval.up })
    })
}

fn run_compounding(input: &Value) -> Value {
    let (per_gap, gaps) = (number(input, "per_gap"), integers(&input["gaps_per_run"]));
    let per_run: Vec<f64> = gaps
        .iter()
        .map(|&gaps| compounding::run_rate(per_gap, gaps))
        .collect();
    json!({
        "per_run": per_run,
        "mean": compounding::mean_run_rate(per_gap, &gaps),
        "gap_rate_for_run_rate":
            compounding::gap_rate_for(number(input, "target_run_rate"), count(input, "planning_gaps")),
    })
}

fn run_vs_gap(input: &Value) -> Value {
    let found = compounding::count_kills(&session_lists(&input["runs"]), count(input, "W"));
    json!({
        "gaps": found.gaps,
        "gap_kills": found.gap_kills,
        "run_kills": found.run_kills,
        "ties_at_W": found.ties_at_window,
        "gap_kills_event_first": found.gap_kills_event_first,
        "run_kills_event_first": found.run_kills_event_first,
    })
}
