//! Reads the fields of a vector strictly: what is not known or not of its type is an error.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use policysim_policy::{Decimal, Millis};
use serde_json::{Map, Value as Json};

/// A JSON object whose keys are all known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'j>(&'j Map<String, Json>);

impl<'j> Fields<'j> {
    /// Takes an object, refusing keys that are not in `known`.
    pub(super) fn new(json: &'j Json, known: &[&str]) -> Result<Self> {
        let Json::Object(fields) = json else {
            bail!("expected an object, found {json}");
        };
        match fields.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => bail!("unknown key {key}, expected one of {}", known.join(", ")),
            None => Ok(Self(fields)),
        }
    }

    /// Takes an object that may carry remarks: keys that are not in `known` are put into `unread`, to be named in the
    /// result. A length of time that is not known is still refused, because it could change what happens.
    pub(super) fn with_remarks(
        json: &'j Json,
        known: &[&str],
        unread: &mut BTreeSet<String>,
    ) -> Result<Self> {
        let Json::Object(fields) = json else {
            bail!("expected an object, found {json}");
        };
        for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
            if key.ends_with("_ms") {
                bail!("unknown key {key}, expected one of {}", known.join(", "));
            }
            unread.insert(key.clone());
        }
        Ok(Self(fields))
    }

    /// The value of a key; `null` counts as missing.
    pub(super) fn get(self, key: &str) -> Option<&'j Json> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// The value of a key that must be there.
    pub(super) fn need(self, key: &str) -> Result<&'j Json> {
        self.get(key).with_context(|| format!("{key} is missing"))
    }

    /// Text, or nothing.
    pub(super) fn text(self, key: &str) -> Result<Option<&'j str>> {
        self.typed(key, "text", Json::as_str)
    }

    /// Text that must be there.
    pub(super) fn need_text(self, key: &str) -> Result<&'j str> {
        self.text(key)?.with_context(|| format!("{key} is missing"))
    }

    /// A flag, false when missing.
    pub(super) fn flag(self, key: &str, default: bool) -> Result<bool> {
        Ok(self
            .typed(key, "true or false", Json::as_bool)?
            .unwrap_or(default))
    }

    /// A whole number from 0, or nothing.
    pub(super) fn count(self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", Json::as_u64)
    }

    /// Milliseconds, or nothing.
    pub(super) fn millis(self, key: &str) -> Result<Option<Millis>> {
        Ok(self.count(key)?.map(Millis::new))
    }

    /// Milliseconds that must be there.
    pub(super) fn need_millis(self, key: &str) -> Result<Millis> {
        self.millis(key)?
            .with_context(|| format!("{key} is missing"))
    }

    /// Any number, exact, or nothing.
    pub(super) fn decimal(self, key: &str) -> Result<Option<Decimal>> {
        self.typed(key, "a number", |value| match value {
            Json::Number(number) => Decimal::parse(&number.to_string()),
            _ => None,
        })
    }

    /// A list, empty when missing.
    pub(super) fn list(self, key: &str) -> Result<&'j [Json]> {
        Ok(self
            .typed(key, "a list", Json::as_array)?
            .map_or(&[], Vec::as_slice))
    }

    fn typed<T>(
        self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'j Json) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => read(value)
                .map(Some)
                .with_context(|| format!("{key}: {value} is not {expected}")),
        }
    }
}
