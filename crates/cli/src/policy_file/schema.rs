//! The JSON schema of policy documents, made from the table of keys.

use policysim_policy::document::{self, KEYS, KeyInfo, SHORT, Shape};
use policysim_policy::presets::PRESETS;
use policysim_policy::{Kind, KindSet};
use serde_json::{Map, Value as Json, json};

/// What a duration looks like, as far as a pattern can say it: units from the largest down.
const SPAN: &str =
    r"^(\d+(\.\d+)?d)?(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?(\d+(\.\d+)?ms)?$";

/// The schema as a JSON value.
pub(crate) fn schema() -> Json {
    let mut properties = Map::new();
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    properties.insert(
        "preset".to_owned(),
        json!({ "description": "The preset whose values hold where the document says nothing.", "enum": presets }),
    );
    for table in document::tables() {
        let fields: Vec<KeyInfo> = KEYS
            .iter()
            .map(|key| key.info)
            .filter(|info| document::table_of(info.path) == table)
            .collect();
        let object = object(&fields);
        let schema = match fields.first() {
            Some(first) if SHORT.contains(&table) => {
                json!({ "anyOf": [shape(first.shape), object] })
            }
            _ => object,
        };
        properties.insert(table.to_owned(), schema);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "policysim policy document",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "$defs": {
            "kinds": kinds(),
            "span": { "type": "string", "minLength": 1, "pattern": SPAN },
            "limit": {
                "anyOf": [{ "const": "off" }, { "$ref": "#/$defs/span", "pattern": "[1-9]" }],
            },
        },
    })
}

fn object(fields: &[KeyInfo]) -> Json {
    let properties: Map<String, Json> = fields
        .iter()
        .map(|info| {
            let name = info.path.rsplit('.').next().unwrap_or(info.path);
            let mut schema = shape(info.shape);
            if let Json::Object(schema) = &mut schema {
                schema.insert("description".to_owned(), json!(info.doc));
            }
            (name.to_owned(), schema)
        })
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn shape(shape: Shape) -> Json {
    let limit = json!({ "$ref": "#/$defs/limit" });
    let span = json!({ "$ref": "#/$defs/span" });
    let kinds = json!({ "$ref": "#/$defs/kinds" });
    match shape {
        Shape::Cap => json!({ "anyOf": [{ "const": "off" }, { "type": "integer", "minimum": 1 }] }),
        Shape::CapByName => {
            json!({ "type": "object", "additionalProperties": self::shape(Shape::Cap) })
        }
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::Count { max } => json!({ "type": "integer", "minimum": 0, "maximum": max }),
        Shape::Fields(fields) => json!({ "anyOf": [{ "const": "off" }, object(&fields())] }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Kinds => kinds,
        Shape::KindsOr(words) => json!({ "anyOf": [{ "enum": words }, kinds] }),
        Shape::Limit => limit,
        Shape::LimitByName => {
            json!({ "anyOf": [limit, { "type": "object", "additionalProperties": limit }] })
        }
        Shape::LimitOr(words) => json!({ "anyOf": [{ "enum": words }, limit] }),
        Shape::Names => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
        Shape::Span => span,
        Shape::SpanOr(words) => json!({ "anyOf": [{ "enum": words }, span] }),
    }
}

fn kinds() -> Json {
    let names: Vec<&str> = KindSet::NAMED
        .into_iter()
        .map(|(name, _)| name)
        .chain(Kind::ALL.iter().map(|kind| kind.name()))
        .collect();
    let item = json!({
        "type": "string",
        "pattern": format!("^-?({}|other:.*)$", names.join("|")),
    });
    json!({ "anyOf": [item, { "type": "array", "items": item }] })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The committed schema is what the table of keys says today; remade with
    /// `policysim policy schema > data/schema/policy.schema.json`.
    #[test]
    fn the_committed_schema_is_up_to_date() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../data/schema/policy.schema.json"
        );
        let committed: Json =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(committed, schema());
    }
}
