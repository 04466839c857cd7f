//! The policy document: keys, values, and what is said of a value that does not fit.
//!
//! One table ([`KEYS`]) serves everything that deals with keys: [`Policy::set`], [`Policy::get`], the printed document,
//! the JSON schema and the hint at the nearest key.
//!
//! ```
//! use policysim_policy::{Policy, document::Value};
//! let mut policy = Policy::default();
//! policy.set("idle", &"5m".into())?;
//! assert_eq!(policy.get("idle.window"), Some(Value::text("300s")));
//! let error = policy.set("idle", &Value::Integer(600)).unwrap_err();
//! assert_eq!(error.to_string(), "idle.window: 600 has no unit: 600s? 600ms?");
//! # Ok::<(), policysim_policy::PolicyError>(())
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::policy::Policy;
use crate::{PolicyError, nearest};

mod entry;
mod keys;
mod value;

pub use keys::{KEYS, Key, SHORT};
pub use value::Value;

/// What is known of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// Its path: `idle.window`.
    pub path: &'static str,
    /// What may be written.
    pub shape: Shape,
    /// One sentence on what it means.
    pub doc: &'static str,
}

/// What may be written for a key. Displayed it completes "expected …".
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A whole number above 0, or `off`.
    Cap,
    /// A table of names with a [`Shape::Cap`] each.
    CapByName,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number from 0.
    Count {
        /// The largest.
        max: u32,
    },
    /// A table with these keys, or `off`.
    Fields(fn() -> Vec<KeyInfo>),
    /// True or false.
    Flag,
    /// A kind, a named set, or a list of both in which `-` takes away.
    Kinds,
    /// [`Shape::Kinds`] or one of these words.
    KindsOr(&'static [&'static str]),
    /// A duration above 0, or `off`.
    Limit,
    /// A [`Shape::Limit`], or a table of them by name with `default` for the others.
    LimitByName,
    /// A [`Shape::Limit`] or one of these words.
    LimitOr(&'static [&'static str]),
    /// A list of names.
    Names,
    /// A duration; `0s` is one.
    Span,
    /// A duration above 0, or one of these words.
    SpanOr(&'static [&'static str]),
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cap => f.write_str("a whole number above 0 or \"off\""),
            Self::CapByName => f.write_str("a table such as { explorer = 60 }"),
            Self::Choice(words) => one_of(f, words),
            Self::Count { max } => write!(f, "a whole number from 0 to {max}"),
            Self::Fields(fields) => {
                f.write_str("\"off\" or a table of ")?;
                for (i, field) in fields().iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, field.path)?;
                }
                Ok(())
            }
            Self::Flag => f.write_str("true or false"),
            Self::Kinds => f.write_str("an event kind, a named set or a list of them"),
            Self::KindsOr(words) => {
                f.write_str("an event kind, a named set, a list of them or ")?;
                one_of(f, words)
            }
            Self::Limit => f.write_str("a duration such as \"300s\" or \"off\""),
            Self::LimitByName => f.write_str(
                "a duration such as \"300s\", \"off\" or a table such as { default = \"10m\", bash = \"30m\" }",
            ),
            Self::LimitOr(words) => {
                f.write_str("a duration such as \"300s\", \"off\" or ")?;
                one_of(f, words)
            }
            Self::Names => f.write_str("a list of names"),
            Self::Span => f.write_str("a duration such as \"3s\""),
            Self::SpanOr(words) => {
                f.write_str("a duration such as \"10s\" or ")?;
                one_of(f, words)
            }
        }
    }
}

fn one_of(f: &mut fmt::Formatter<'_>, words: &[&str]) -> fmt::Result {
    for (i, word) in words.iter().enumerate() {
        let between = match i {
            0 => "",
            _ if i + 1 == words.len() => " or ",
            _ => ", ",
        };
        write!(f, "{between}\"{word}\"")?;
    }
    Ok(())
}

/// The key that `written` means: a path, or the short form of a table's first key.
///
/// # Errors
///
/// [`PolicyError::UnknownKey`] with the nearest known key or table.
pub fn find(written: &str) -> Result<&'static Key<Policy>, PolicyError> {
    let path = if SHORT.contains(&written) {
        KEYS.iter().find(|key| table_of(key.info.path) == written)
    } else {
        KEYS.iter().find(|key| key.info.path == written)
    };
    path.ok_or_else(|| PolicyError::UnknownKey {
        key: written.to_string(),
        nearest: nearest_key(written),
    })
}

/// The position of the key that `written` means (see [`find`]) in [`KEYS`].
pub fn position(written: &str) -> Option<usize> {
    let key = find(written).ok()?;
    KEYS.iter()
        .position(|known| known.info.path == key.info.path)
}

/// The names of the document's tables, in order.
pub fn tables() -> Vec<&'static str> {
    let mut tables: Vec<&str> = KEYS.iter().map(|key| table_of(key.info.path)).collect();
    tables.dedup();
    tables
}

/// The table a key is in.
pub fn table_of(path: &str) -> &str {
    path.split_once('.').map_or(path, |(table, _)| table)
}

fn nearest_key(written: &str) -> Option<String> {
    let top_level = || tables().into_iter().chain(["preset"]);
    let Some((table, field)) = written.split_once('.') else {
        // A field without its table is as likely a slip as a misspelt table.
        let field = KEYS.iter().map(|key| key.info.path).find(|path| {
            path.split_once('.')
                .is_some_and(|(_, field)| field == written)
        });
        return nearest(written, top_level())
            .or(field)
            .map(ToString::to_string);
    };
    let table = nearest(table, tables())?;
    let fields = KEYS
        .iter()
        .filter_map(|key| key.info.path.split_once('.'))
        .filter(|(owner, _)| *owner == table)
        .map(|(_, field)| field);
    nearest(field, fields)
        .map(|field| format!("{table}.{field}"))
        .or_else(|| nearest(written, KEYS.iter().map(|key| key.info.path)).map(ToString::to_string))
}

/// Prints a policy as a document in which every key stands, resolved; it reads back equal.
///
/// `preset` is the one it was made from, if any: it stands first, for the harness's words of its outcomes.
pub fn print(policy: &Policy, preset: Option<&str>) -> String {
    let mut blocks: Vec<String> = preset
        .map(|name| format!("preset = {}", Value::text(name)))
        .into_iter()
        .collect();
    for table in tables() {
        let fields = KEYS.iter().filter_map(|key| {
            let (owner, field) = key.info.path.split_once('.')?;
            (owner == table).then_some((field, (key.get)(policy)?))
        });
        let mut lines = [format!("[{table}]")].to_vec();
        lines.extend(fields.map(|(field, value)| format!("{field} = {value}")));
        blocks.push(lines.join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

impl Policy {
    /// Sets the value of a key: a path (`idle.window`), the short form of a table's first key (`idle`), or one entry
    /// of a table by name (`turns.by_role.explorer`, `pause.tool_limit.bash`, `retry.rate_limit.cap`).
    /// A table of names replaces what was there as a whole; a table of fields (`retry.rate_limit`) keeps the fields it
    /// does not name. [`Value::Null`] leaves everything as it is.
    ///
    /// # Errors
    ///
    /// A [`PolicyError`] that names the key, the value and what was expected; the policy is then unchanged.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), PolicyError> {
        match find(key) {
            Ok(known) if *value != Value::Null => (known.set)(self, known.info.path, value),
            Ok(_) => Ok(()),
            Err(unknown) => {
                let Some((parent, name)) = parent_of(key) else {
                    return Err(unknown);
                };
                let table = match parent.info.shape {
                    Shape::Fields(_) => Value::Table([(name.to_string(), value.clone())].into()),
                    _ => with_entry((parent.get)(self), name, value),
                };
                (parent.set)(self, parent.info.path, &table)
            }
        }
    }

    /// The value in force of a key, as [`Policy::set`] takes it; `None` for an unknown key and for one that only
    /// sets others.
    pub fn get(&self, key: &str) -> Option<Value> {
        if let Ok(known) = find(key) {
            return (known.get)(self);
        }
        let (parent, name) = parent_of(key)?;
        match (parent.get)(self)? {
            Value::Table(entries) => entries
                .into_iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }
}

/// The key whose value is a table of names, and the name, of a path such as `turns.by_role.explorer`.
fn parent_of(written: &str) -> Option<(&'static Key<Policy>, &str)> {
    KEYS.iter().find_map(|key| {
        let name = written.strip_prefix(key.info.path)?.strip_prefix('.')?;
        let by_name = matches!(
            key.info.shape,
            Shape::CapByName | Shape::LimitByName | Shape::Fields(_)
        );
        (by_name && !name.is_empty()).then_some((key, name))
    })
}

/// The table with one entry set; a limit for all becomes the table's default.
fn with_entry(table: Option<Value>, name: &str, value: &Value) -> Value {
    let mut entries = match table {
        Some(Value::Table(entries)) => entries,
        Some(default @ Value::Text(_)) if default.as_text() != Some(entry::OFF) => {
            [("default".to_string(), default)].into()
        }
        _ => Vec::new(),
    };
    match entries.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value.clone(),
        None => entries.push((name.to_string(), value.clone())),
    }
    Value::Table(entries)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::presets::PRESETS;
    use crate::{Adaptive, Estimator, First, KindSet, Millis, Poll};

    #[track_caller]
    fn refused(key: &str, value: impl Into<Value>, expected: &str) {
        let mut policy = Policy::default();
        let error = policy.set(key, &value.into()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(
            policy,
            Policy::default(),
            "a refused value changed the policy"
        );
    }

    /// The cases of BR-37 and BR-38, and what stands where a duration should.
    #[test]
    fn refusals_say_what_was_expected() {
        refused(
            "idle",
            0,
            "idle.window: 0 is ambiguous: write \"off\" to switch it off",
        );
        refused(
            "idle",
            "0s",
            "idle.window: \"0s\" is ambiguous: write \"off\" to switch it off",
        );
        refused(
            "turns",
            0,
            "turns.cap: 0 is ambiguous: write \"off\" to switch it off",
        );
        refused("idle", 600, "idle.window: 600 has no unit: 600s? 600ms?");
        refused(
            "idle",
            "600",
            "idle.window: \"600\" has no unit: 600s? 600ms?",
        );
        refused(
            "idle",
            -1,
            "idle.window: -1 is negative: expected a duration such as \"300s\", or \"off\"",
        );
        refused(
            "idle",
            "inf",
            "idle.window: \"inf\" is not a duration: a limit is switched off with \"off\"",
        );
        refused(
            "idle",
            "",
            "idle.window: \"\" is empty: expected a duration such as \"300s\", or \"off\"",
        );
        refused(
            "idle",
            "250us",
            "idle.window: \"250us\" is finer than a millisecond: expected whole milliseconds, such as \"1ms\"",
        );
        refused("idl", "5m", "unknown key idl, did you mean idle?");
        refused(
            "idle.windwo",
            "5m",
            "unknown key idle.windwo, did you mean idle.window?",
        );
        refused(
            "window",
            "5m",
            "unknown key window, did you mean idle.window?",
        );
        refused("pause.zebra", "5m", "unknown key pause.zebra");
        refused(
            "idle.rearm",
            "statuss",
            "idle.rearm: statuss is neither an event kind nor a named set (write other:statuss for an unlisted kind), did you mean status?",
        );
        refused(
            "pause.tool",
            "some",
            "pause.tool: \"some\" is not \"none\", \"idle\" or \"all\"",
        );
        refused(
            "turns",
            fraction(),
            "turns.cap: 0.5 is not a whole number above 0 or \"off\"",
        );
        refused(
            "retry.rate_limit.capp",
            "3s",
            "unknown key retry.rate_limit.capp, did you mean retry.rate_limit.cap?",
        );
        refused(
            "turns.by_role.explorer",
            0,
            "turns.by_role.explorer: 0 is ambiguous: write \"off\" to switch it off",
        );
    }

    fn fraction() -> Value {
        Value::Fraction(crate::Decimal::parse("0.5").unwrap())
    }

    #[track_caller]
    fn reads_back(policy: &Policy) {
        let mut again = Policy {
            words: policy.words,
            ..Policy::default()
        };
        for key in KEYS {
            if let Some(value) = policy.get(key.info.path) {
                again.set(key.info.path, &value).unwrap();
            }
        }
        assert_eq!(&again, policy);
    }

    #[test]
    fn every_preset_reads_back_from_its_values() {
        reads_back(&Policy::default());
        for preset in &PRESETS {
            reads_back(&preset.policy());
        }
    }

    #[test]
    fn every_kind_of_value_reads_back() {
        let mut policy = Policy::default();
        for (key, value) in [
            ("idle", "5m"),
            ("idle.first", "off"),
            ("idle.progress", "substantive"),
            ("pause.tool_limit.bash", "30m"),
            ("pause.tool_limit.read", "off"),
            ("pause.tool_limit.default", "10m"),
            ("detect", "10s"),
            ("retry.era", "later"),
            ("retry.rate_limit.cap", "20s"),
            ("retry.transient", "off"),
            ("idle.adaptive.estimator", "rto"),
            ("idle.adaptive.granularity", "250ms"),
            ("kill.grace", "0s"),
        ] {
            policy.set(key, &value.into()).unwrap();
            assert!(policy.get(key).is_some() || key == "retry.era", "{key}");
        }
        policy.set("turns.by_role.explorer", &60.into()).unwrap();
        policy
            .set("idle.rearm", &Value::texts(["all", "-status", "-other:ui"]))
            .unwrap();
        policy
            .set("pause.human_tools", &Value::texts(["ask"]))
            .unwrap();
        assert_eq!(policy.idle.window, Some(Millis::from_secs(300)));
        assert_eq!(policy.idle.first, First::Off);
        assert_eq!(
            policy.pause.tool_limit.of("bash"),
            Some(Millis::from_secs(1800))
        );
        assert_eq!(policy.pause.tool_limit.of("read"), None);
        assert_eq!(
            policy.pause.tool_limit.of("edit"),
            Some(Millis::from_secs(600))
        );
        assert_eq!(policy.detect.poll, Poll::Every(Millis::from_secs(10)));
        assert_eq!(policy.turns.cap_of("explorer"), Some(60));
        assert_eq!(
            policy
                .retry
                .rate_limit
                .map(|schedule| (schedule.retries, schedule.cap)),
            Some((10, Millis::from_secs(20)))
        );
        assert!(matches!(
            policy.idle.adaptive,
            Some(Adaptive {
                estimator: Estimator::Rto { k: 4, .. },
                ..
            })
        ));
        assert_ne!(policy.idle.rearm, KindSet::ALL);
        reads_back(&policy);
    }

    #[test]
    fn a_table_of_fields_keeps_what_it_does_not_name() {
        let mut policy = crate::presets::find("pi-desktop-0129").unwrap();
        let cap = Value::Table([("cap".to_string(), "20s".into())].into());
        policy.set("retry.rate_limit", &cap).unwrap();
        let schedule = policy.retry.rate_limit.unwrap();
        assert_eq!((schedule.retries, schedule.cap), (5, Millis::from_secs(20)));
        let caps = Value::Table([("fixer".to_string(), 9.into())].into());
        policy.set("turns.by_role", &caps).unwrap();
        assert_eq!(policy.turns.cap_of("explorer"), None);
        for estimator in ["rto", "phi", "rto"] {
            policy
                .set("idle.adaptive.estimator", &estimator.into())
                .unwrap();
            assert_eq!(
                policy.get("idle.adaptive.estimator"),
                Some(estimator.into())
            );
        }
    }

    #[test]
    fn keys_are_grouped_by_table_and_short_forms_mean_the_first_of_one() {
        let mut seen = tables();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "a table appears twice");
        for short in SHORT {
            assert!(find(short).is_ok_and(|key| table_of(key.info.path) == *short));
        }
    }

    #[test]
    fn null_leaves_a_key_alone() {
        let mut policy = Policy::default();
        policy.set("idle", &"5m".into()).unwrap();
        policy.set("idle", &Value::Null).unwrap();
        assert_eq!(policy.idle.window, Some(Millis::from_secs(300)));
    }
}
