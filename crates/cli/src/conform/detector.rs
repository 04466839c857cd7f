//! Scenarios in the format `detector/1`: an adaptive window over regular beats.

use anyhow::{Context, Result, bail};
use policysim_policy::document::Value;
use policysim_policy::{Event, Kind, Millis, Policy, Watchdog};
use serde_json::{Map, Value as Json, json};

use super::fields::Fields;
use super::judge::{Judged, judge};

/// Feeds the beats to a policy whose idle window is the detector, once per acceptable pause that `expect` names
/// (`fire_after_last_beat_ms.pause_3000`).
pub(super) fn run(scenario: &Json) -> Result<Judged> {
    let keys = [
        "scenario",
        "format",
        "title",
        "heartbeats_ms",
        "detector",
        "expect",
    ];
    let scenario = Fields::new(scenario, &keys)?;
    let beats = Fields::new(scenario.need("heartbeats_ms")?, &["from", "to", "every"])?;
    let detector = Fields::new(
        scenario.need("detector")?,
        &["kind", "threshold", "min_std_ms", "window"],
    )?;
    let expect = scenario.need("expect")?;
    let pauses = expect
        .get("fire_after_last_beat_ms")
        .and_then(Json::as_object)
        .context("expect.fire_after_last_beat_ms is missing")?;
    let mut fired = Map::new();
    for name in pauses.keys() {
        let pause: u64 = name
            .strip_prefix("pause_")
            .and_then(|ms| ms.parse().ok())
            .with_context(|| format!("unknown key {name}"))?;
        let after = after_last_beat(&policy(detector, pause)?, beats)?;
        fired.insert(name.clone(), json!(after.map(Millis::as_u64)));
    }
    let mut got = Map::new();
    got.insert("fire_after_last_beat_ms".to_owned(), Json::Object(fired));
    judge(expect, &got)
}

/// The detector as a policy document would give it.
fn policy(detector: Fields<'_>, pause_ms: u64) -> Result<Policy> {
    let number = |key| -> Result<Value> {
        let number = detector
            .count(key)?
            .with_context(|| format!("{key} is missing"))?;
        Ok(Value::Integer(i64::try_from(number)?))
    };
    let kind = detector.need_text("kind")?;
    if kind != "phi" {
        bail!("unknown detector {kind}");
    }
    let min_std = detector.need_millis("min_std_ms")?;
    let entries = [
        ("estimator", Value::text(kind)),
        ("threshold", number("threshold")?),
        ("min_std", Value::text(min_std.to_string())),
        ("pause", Value::text(Millis::new(pause_ms).to_string())),
        ("samples", number("window")?),
        ("floor", Value::text("0s")),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let mut policy = Policy::default();
    policy.set("idle.adaptive", &Value::Table(entries.into()))?;
    Ok(policy)
}

/// From the last beat to the firing, if there is one within a day.
fn after_last_beat(policy: &Policy, beats: Fields<'_>) -> Result<Option<Millis>> {
    let to = beats.need_millis("to")?;
    let every = beats.need_millis("every")?;
    let mut last = beats.need_millis("from")?;
    if every == Millis::ZERO || last > to {
        bail!("beats need from not above to and every above 0");
    }
    // The first beat begins the history: there is no interval before it.
    let mut dog = Watchdog::new(policy, last);
    while last.plus(every) <= to {
        last = last.plus(every);
        dog.handle_event(last, &Event::new(Kind::MessageUpdate));
    }
    dog.finish(last.plus(Millis::from_secs(86_400)));
    Ok(dog
        .verdict()
        .filter(|verdict| verdict.cause.is_firing())
        .map(|verdict| verdict.at.since(last)))
}
