//! A gate as JSON: what the text says, unrounded, with a stable code per check.

use policysim_sim::gate::{
    Characteristics, Check, Code, Detail, Figure, GOOD, Part, Parts, Unit, Verdict,
};
use policysim_sim::stats::json;
use serde_json::{Map, Value as Json, json};

use super::{GateResult, Place, words};
use crate::SCHEMA_VERSION;
use crate::header::DataHeader;

impl GateResult {
    /// The result as JSON.
    ///
    /// # Errors
    /// Never for memory; the serializer's errors are passed on.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let checks: Vec<Json> = self
            .checks()
            .map(|(check, place)| self.one(check, &place))
            .collect();
        serde_json::to_string_pretty(&json!({
            "schema_version": SCHEMA_VERSION,
            "verdict": self.gate.verdict().name(),
            "exit_code": self.exit_code,
            "answer": self.answer(),
            "policy": self.policy,
            "preset": self.preset,
            "rules": self.rules,
            "seed": self.seed,
            "data": self.data.as_ref().map(window),
            "baseline": self.baseline.as_ref().map(window),
            "checks": checks,
        }))
    }

    fn one(&self, check: &Check, place: &Place) -> Json {
        let mut object = Map::new();
        let mut put = |key: &str, value: Json| object.insert(key.to_owned(), value);
        put("name", json!(check.name));
        put("kind", json!(check.kind));
        put("subject", json!(check.subject));
        put("verdict", json!(check.verdict.name()));
        put("counts_as", json!(check.counts_as.name()));
        put("code", json!(check.code.map(Code::name)));
        put("reason", json!(check.reason));
        put("ran", json!(check.ran));
        put("message", json!(words::observed(check)));
        put("rule_line", json!(check.line));
        put(
            "place",
            json!({ "file": place.file, "line": place.line, "inherited": place.inherited }),
        );
        put("policy_keys", json!(check.keys));
        detail(&check.detail, &mut put);
        if self.explain {
            put(
                "characteristics",
                check
                    .characteristics
                    .as_ref()
                    .map_or(Json::Null, characteristics),
            );
        }
        Json::Object(object)
    }
}

fn window(data: &DataHeader) -> Json {
    let mut json = serde_json::to_value(data).unwrap_or(Json::Null);
    json["closed_window"] = json!(data.digest);
    json
}

/// A figure with its unit at the end of every name.
fn figure(figure: &Figure, unit: Unit) -> Json {
    let suffix = unit.suffix();
    let mut object = Map::new();
    for (name, value) in [
        ("point", figure.point),
        ("lower", figure.lower),
        ("upper", figure.upper),
    ] {
        // what never ends has no number
        let value = value.filter(|value| value.is_finite()).map(json);
        object.insert(format!("{name}_{suffix}"), json!(value));
    }
    for (name, value) in [
        ("n", figure.n),
        ("hits", figure.hits),
        ("needed", figure.needed),
        ("needed_without_hits", figure.needed_at_best),
    ] {
        object.insert(name.to_owned(), json!(value));
    }
    object.insert("unresolved".to_owned(), json!(figure.unresolved));
    object.insert("limits_by_unit".to_owned(), json!(figure.by_unit));
    object.insert("unit_deff".to_owned(), json!(figure.deff.map(json)));
    Json::Object(object)
}

#[expect(clippy::too_many_lines, reason = "one document, part after part")]
fn detail(detail: &Detail, put: &mut impl FnMut(&str, Json) -> Option<Json>) {
    match detail {
        Detail::Figure {
            now,
            baseline,
            change,
            unit,
            noun,
            bound,
            amount,
            parts_are,
            parts,
        } => {
            let changed = if bound.is_ratio() {
                "times"
            } else {
                unit.suffix()
            };
            put(
                "bound",
                json!({ "is": bound.name(), format!("bound_{changed}"): json(*amount) }),
            );
            put("counted_over", json!(noun));
            put("observed", figure(now, *unit));
            put(
                "baseline",
                json!(baseline.as_ref().map(|base| figure(base, *unit))),
            );
            put(
                "change",
                json!(change.as_ref().map(|change| json!({
                    format!("point_{changed}"): change.point.map(json),
                    format!("lower_{changed}"): change.lower.map(json),
                    format!("upper_{changed}"): change.upper.map(json),
                }))),
            );
            let side = if bound.is_upper() { "lower" } else { "upper" };
            let told = parts
                .iter()
                .map(|part| self::part(part, *unit, side))
                .collect();
            match parts_are {
                Parts::Strata => put("strata", told),
                Parts::Windows => {
                    let held = parts
                        .iter()
                        .rev()
                        .find(|part| part.verdict == Verdict::Pass);
                    let smallest = held.and_then(|part| part.name.parse::<u64>().ok());
                    put("smallest_certified_ms", json!(smallest));
                    put("windows", told)
                }
            };
        }
        Detail::Finding { found, known } => {
            put("known", json!(known));
            put(
                "found",
                found
                    .iter()
                    .map(|finding| {
                        let limits: Vec<Json> = finding
                            .limits
                            .iter()
                            .map(|limit| {
                                let ms = limit.span.map(policysim_policy::Millis::as_u64);
                                json!({ "name": limit.name, "limit_ms": ms })
                            })
                            .collect();
                        json!({ "id": finding.id, "limits": limits, "advice": finding.advice })
                    })
                    .collect(),
            );
        }
        Detail::Key { value, other, sign } => {
            put(
                "compared",
                json!({ "value": value, "sign": sign, "with": other }),
            );
        }
        Detail::Same { name, differs } => {
            put("same_as", json!(name));
            put(
                "differs",
                differs
                    .iter()
                    .map(|differs| json!({ "key": differs.key, "policy": differs.ours, "other": differs.theirs }))
                    .collect(),
            );
        }
        Detail::Drift(compared) => {
            let drift = compared.as_ref().and_then(|compared| compared.drift);
            put(
                "tail_ratio",
                json!(drift.and_then(|drift| drift.effect.ratio).map(json)),
            );
            put(
                "tail_ratio_interval",
                json!(drift.map(|drift| drift.effect.interval)),
            );
            put("tail_p", json!(drift.map(|drift| json(drift.tail_p))));
            put(
                "silences",
                json!(compared.as_ref().map(|compared| json!({
                    "now": compared.after.n,
                    "baseline": compared.before.n,
                    "sessions_now": compared.after.sessions,
                    "sessions_baseline": compared.before.sessions,
                }))),
            );
        }
    }
}

/// One part; `side` is the side of its figure on which it accuses.
fn part(part: &Part, unit: Unit, side: &str) -> Json {
    json!({
        "name": part.name,
        "verdict": part.verdict.name(),
        "observed": figure(&part.figure, unit),
        format!("{side}_shared_{}", unit.suffix()): part.accuses.map(json),
    })
}

fn characteristics(found: &Characteristics) -> Json {
    let chances: Vec<Json> = found
        .chances
        .iter()
        .map(|chances| {
            json!({
                "true_rate": json(chances.true_rate),
                "pass": json(chances.pass),
                "inconclusive": json(chances.inconclusive()),
                "fail": json(chances.fail),
            })
        })
        .collect();
    let plan: Vec<Json> = found
        .plan
        .iter()
        .map(|plan| {
            let pass: Vec<Json> = GOOD
                .iter()
                .zip(plan.pass)
                .map(|(times, pass)| json!({ "true_rate": json(times * found.claim.max_rate), "pass": json(pass) }))
                .collect();
            json!({ "runs": plan.runs, "chances": pass })
        })
        .collect();
    let needed: Vec<Json> = found
        .needed
        .iter()
        .map(|(kills, runs)| json!({ "hits": kills, "runs": runs }))
        .collect();
    json!({
        "confidence": found.level.confidence().to_string(),
        "stratum": found.claim.stratum,
        "accusers": found.claim.accusers,
        "max_rate": json(found.claim.max_rate),
        "runs": found.claim.runs,
        "unresolved": found.claim.unresolved,
        "at_these_runs": chances,
        "runs_needed": needed,
        "plan": plan,
    })
}
