//! The JSON schema of rules documents, made from the tables of keys and metrics.

use policysim_policy::{Cause, check};
use policysim_sim::cluster::Cluster;
use policysim_sim::gate::{Mapping, Metric};
use policysim_sim::settle::Reaction;
use policysim_sim::strata::StratumKey;
use serde_json::{Map, Value as Json, json};

use super::keys::{Kind, PARENT_KEYS, RULE_KEYS, TOP_KEYS};
use super::parents::{MODES, REACTIONS};

/// The schema as a JSON value.
pub(crate) fn schema() -> Json {
    let mut properties = Map::new();
    for (name, doc) in TOP_KEYS {
        let mut schema = match name {
            "rule" => {
                json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/rule" } })
            }
            other => value(other),
        };
        describe(&mut schema, doc);
        properties.insert(name.to_owned(), schema);
    }
    let kinds: Vec<Json> = Kind::ALL.map(rule).into();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "policysim gate rules",
        "type": "object",
        "additionalProperties": false,
        "required": ["rule"],
        "properties": properties,
        "$defs": {
            "rule": { "oneOf": kinds },
            "amount": { "type": ["string", "number"] },
            "finding": { "enum": check::RULES },
        },
    })
}

/// The schema of one kind of rule.
fn rule(kind: Kind) -> Json {
    let mut properties = Map::new();
    for key in RULE_KEYS.iter().filter(|key| key.on.contains(&kind)) {
        let mut schema = match (kind, key.name) {
            (Kind::Key, "max" | "min") => value("below"),
            _ => value(key.name),
        };
        describe(&mut schema, key.doc);
        properties.insert(key.name.to_owned(), schema);
    }
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": [kind.key()],
        "properties": properties,
    });
    let one_of = |names: &[&str]| -> Json {
        names
            .iter()
            .map(|name| json!({ "required": [name] }))
            .collect()
    };
    match kind {
        Kind::Metric => {
            schema["oneOf"] =
                one_of(&policysim_sim::gate::Bound::ALL.map(policysim_sim::gate::Bound::name));
        }
        Kind::Key => {
            schema["oneOf"] =
                one_of(&policysim_sim::gate::Compare::ALL.map(policysim_sim::gate::Compare::name));
        }
        Kind::Check | Kind::Same | Kind::Drift => {}
    }
    schema
}

/// The parents of simulated settlement.
fn parents() -> Json {
    let mut properties = Map::new();
    for (name, doc) in PARENT_KEYS {
        let mut schema = match name {
            "mode" => json!({ "enum": MODES.map(|(name, _)| name) }),
            "on_expiry" => json!({ "enum": REACTIONS.map(Reaction::name) }),
            "min_completed" | "unchanged" | "tasks" | "cap" => {
                json!({ "type": "integer", "minimum": 1, "maximum": 1000 })
            }
            "hang_rate" | "nested" => json!({ "$ref": "#/$defs/amount" }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        describe(&mut schema, doc);
        properties.insert(name.to_owned(), schema);
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn describe(schema: &mut Json, doc: &str) {
    schema["description"] = json!(doc);
}

fn value(key: &str) -> Json {
    let text = json!({ "type": "string", "minLength": 1 });
    let finding = json!({ "$ref": "#/$defs/finding" });
    let silences = || {
        let lines = Metric::all()
            .into_iter()
            .filter(|metric| matches!(metric, Metric::Silence(_)));
        let names = lines.map(|line| line.name().into_owned());
        names.collect::<Vec<String>>()
    };
    match key {
        "inconclusive" => json!({ "enum": Mapping::ALL.map(Mapping::name) }),
        "metric" => {
            let metrics = Metric::all();
            let names: Vec<Json> = metrics
                .iter()
                .map(|metric| json!({ "const": metric.name(), "description": metric.doc() }))
                .collect();
            json!({ "oneOf": names })
        }
        "cause" => {
            let causes = Cause::ALL.iter().filter(|cause| cause.is_firing());
            json!({ "enum": causes.map(|cause| cause.name()).collect::<Vec<_>>() })
        }
        "by" => json!({ "enum": StratumKey::ALL.map(StratumKey::name) }),
        "stratum" => {
            let groups: Map<String, Json> = StratumKey::ALL
                .map(|key| (key.name().to_owned(), json!({ "type": "string" })))
                .into_iter()
                .collect();
            json!({
                "type": "object",
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1,
                "properties": groups,
            })
        }
        "cluster" => json!({ "enum": Cluster::ALL.map(Cluster::name) }),
        "confidence" | "quantile" | "max" | "min" | "max_increase" | "max_decrease"
        | "max_ratio" | "min_ratio" | "hang_rate" => json!({ "$ref": "#/$defs/amount" }),
        "parents" => parents(),
        "check" => {
            json!({ "anyOf": [{ "const": "all" }, finding, { "type": "array", "items": finding }] })
        }
        "known" => json!({ "anyOf": [finding, { "type": "array", "items": finding }] }),
        "is" => json!({ "type": ["string", "integer", "boolean", "array"] }),
        "below" | "above" => json!({ "type": ["string", "integer"] }),
        "except" => json!({ "anyOf": [text, { "type": "array", "items": text }] }),
        "drift" => {
            let mut words = vec!["all".to_owned()];
            words.extend(silences());
            json!({ "enum": words })
        }
        "every" => json!({ "type": "boolean" }),
        "moved" => json!({ "enum": ["fail", "inconclusive"] }),
        _ => text,
    }
}
