//! The fields of one rule, and what their values may be.

use super::keys::{RULE_KEYS, hint};
#[allow(clippy::wildcard_imports)] // one module in two files
use super::*;

/// One key with its value.
pub(super) struct Field {
    pub(super) key: String,
    pub(super) value: Value,
    /// The byte at which the key stands.
    pub(super) at: usize,
}

/// The fields of a rule that are not read yet.
pub(super) struct Fields {
    fields: Vec<Field>,
}

impl Fields {
    pub(super) fn new(table: &DeTable<'_>) -> Self {
        let fields = table.iter().map(|(name, value)| Field {
            key: name.get_ref().to_string(),
            value: convert(value.get_ref()),
            at: name.span().start,
        });
        Self {
            fields: fields.collect(),
        }
    }

    /// Where the first key stands.
    pub(super) fn first_at(&self) -> Option<usize> {
        self.fields.iter().map(|field| field.at).min()
    }

    fn find(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// What the rule is about.
    pub(super) fn kind(&self) -> Result<Kind, Wrong> {
        let found: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| self.find(kind.key()).is_some())
            .collect();
        match found[..] {
            [kind] => Ok(kind),
            [first, second, ..] => Err((
                self.find(second.key()).map(|field| field.at),
                format!(
                    "{} and {} in one rule: write two",
                    first.key(),
                    second.key()
                ),
            )),
            [] => {
                // a mistyped subject is the likeliest reason
                self.refuse_unknown()?;
                let names = Kind::ALL.map(Kind::key).join(", ");
                Err((
                    None,
                    format!("a rule is about one of {names}: none of them is set"),
                ))
            }
        }
    }

    fn refuse_unknown(&self) -> Result<(), Wrong> {
        let unknown = |field: &&Field| !RULE_KEYS.iter().any(|key| key.name == field.key);
        match self.fields.iter().find(unknown) {
            None => Ok(()),
            Some(field) => {
                let near = nearest(&field.key, RULE_KEYS.iter().map(|key| key.name));
                let message = format!("unknown key {} of a rule{}", field.key, hint(near));
                Err((Some(field.at), message))
            }
        }
    }

    /// Refuses keys that do not exist, or not on a rule of that kind.
    pub(super) fn refuse_strangers(&self, kind: Kind) -> Result<(), Wrong> {
        self.refuse_unknown()?;
        let stranger = self.fields.iter().find(|field| {
            RULE_KEYS
                .iter()
                .any(|key| key.name == field.key && !key.on.contains(&kind))
        });
        match stranger {
            None => Ok(()),
            Some(field) => {
                let known: Vec<&str> = RULE_KEYS
                    .iter()
                    .filter(|key| key.on.contains(&kind))
                    .map(|key| key.name)
                    .collect();
                let message = format!(
                    "{} has no place in a rule with {}: expected {}",
                    field.key,
                    kind.key(),
                    known.join(", ")
                );
                Err((Some(field.at), message))
            }
        }
    }

    /// The value of a key that may be there.
    pub(super) fn take<T>(
        &self,
        key: &str,
        read: impl Fn(&Field) -> Result<T, String>,
    ) -> Result<Option<T>, Wrong> {
        self.find(key)
            .map(|field| read(field).map_err(|message| (Some(field.at), message)))
            .transpose()
    }

    /// The value of a key that the rule's kind is told by.
    pub(super) fn must<T>(
        &self,
        key: &str,
        read: impl Fn(&Field) -> Result<T, String>,
    ) -> Result<T, Wrong> {
        self.take(key, read)?
            .ok_or_else(|| (None, format!("{key} is missing")))
    }
}

impl Field {
    fn wrong(&self, expected: &str) -> String {
        format!("{}: {} is not {expected}", self.key, self.value)
    }

    /// The value as a person wrote it, without the quotes of a text.
    pub(super) fn written(&self) -> String {
        match &self.value {
            Value::Text(text) => text.trim().to_owned(),
            other => other.to_string(),
        }
    }

    pub(super) fn text(&self) -> Result<String, String> {
        match self.value.as_text() {
            Some(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(self.wrong("a text in quotes")),
        }
    }

    /// One text, or a list of them.
    pub(super) fn texts(&self) -> Result<Vec<String>, String> {
        let expected = || self.wrong("a text or a list of texts");
        match &self.value {
            Value::Text(text) => Ok(vec![text.clone()]),
            Value::List(items) => items
                .iter()
                .map(|item| item.as_text().map(ToOwned::to_owned).ok_or_else(expected))
                .collect(),
            _ => Err(expected()),
        }
    }

    /// One of these words.
    pub(super) fn word<'w>(&self, words: &[&'w str]) -> Result<&'w str, String> {
        let text = self.value.as_text().unwrap_or_default();
        words
            .iter()
            .find(|word| **word == text)
            .copied()
            .ok_or_else(|| {
                let near = hint(nearest(text, words.iter().copied()));
                format!(
                    "{}{near}",
                    self.wrong(&format!("one of {}", words.join(", ")))
                )
            })
    }

    pub(super) fn mapping(&self) -> Result<Mapping, String> {
        let word = self.word(&Mapping::ALL.map(Mapping::name))?;
        Ok(Mapping::ALL
            .into_iter()
            .find(|mapping| mapping.name() == word)
            .unwrap_or_default())
    }

    pub(super) fn cluster(&self) -> Result<Cluster, String> {
        let word = self.word(&Cluster::ALL.map(Cluster::name))?;
        Ok(Cluster::ALL
            .into_iter()
            .find(|cluster| cluster.name() == word)
            .unwrap_or_default())
    }

    pub(super) fn level(&self) -> Result<Level, String> {
        let text = self.written();
        let level = match text.strip_suffix('%') {
            Some(percent) => Prob::from_percentile(percent.trim())
                .and_then(Level::new)
                .ok(),
            None => text.parse().ok(),
        };
        // below a half, a one-sided limit would lie on the wrong side of the figure
        level
            .filter(|level| level.confidence().to_f64() >= 0.5)
            .ok_or_else(|| self.wrong("a confidence from 0.5 to below 1, such as 0.95"))
    }

    pub(super) fn span(&self) -> Result<Millis, String> {
        let text = self.written();
        match duration::parse(&text) {
            Ok(Millis::ZERO) => Err(self.wrong("a duration above 0, such as \"600s\"")),
            Ok(span) => Ok(span),
            Err(error) => Err(format!("{}: {} {error}", self.key, self.value)),
        }
    }

    pub(super) fn metric(&self) -> Result<Metric, String> {
        let text = self.text()?;
        Metric::find(&text)
            .map_err(|near| format!("unknown metric {text}{}", hint(near.as_deref())))
    }

    pub(super) fn quantile(&self) -> Result<Prob, String> {
        let text = self.written();
        let read = match text.strip_prefix('p') {
            Some(_) => Prob::from_percentile(&text),
            None => text.parse(),
        };
        read.ok()
            .filter(|p| p.to_f64() > 0.0 && p.to_f64() < 1.0)
            .ok_or_else(|| self.wrong("a quantile such as \"p99\" or 0.99"))
    }

    pub(super) fn flag(&self) -> Result<bool, String> {
        match self.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    pub(super) fn cause(&self) -> Result<Cause, String> {
        let names: Vec<&str> = Cause::ALL
            .iter()
            .filter(|cause| cause.is_firing())
            .map(|cause| cause.name())
            .collect();
        let word = self.word(&names)?;
        Cause::from_name(word).ok_or_else(|| self.wrong("a cause"))
    }

    pub(super) fn stratum_key(&self) -> Result<StratumKey, String> {
        stratum_key(self.word(&StratumKey::ALL.map(StratumKey::name))?)
    }

    /// `{ model = "NAME" }`.
    pub(super) fn stratum(&self) -> Result<(StratumKey, String), String> {
        let expected = || self.wrong("a table such as { model = \"NAME\" }");
        let Value::Table(entries) = &self.value else {
            return Err(expected());
        };
        let [(key, Value::Text(name))] = &entries[..] else {
            return Err(expected());
        };
        let names = StratumKey::ALL.map(StratumKey::name);
        if !names.contains(&key.as_str()) {
            let near = hint(nearest(key, names));
            return Err(format!(
                "{}: {key} is not one of {}{near}",
                self.key,
                names.join(", ")
            ));
        }
        Ok((stratum_key(key)?, name.clone()))
    }

    /// The windows of a grid, ms.
    pub(super) fn windows(&self) -> Result<Vec<u64>, String> {
        let text = self.text()?;
        let values = grid::parse(&text).map_err(|error| format!("sequence: {error}"))?;
        values
            .iter()
            .map(|value| {
                let window = duration::parse(&grid::plain(value)).ok();
                window
                    .filter(|window| *window > Millis::ZERO)
                    .map(Millis::as_u64)
                    .ok_or_else(|| format!("sequence: {value} is not a duration such as 300s"))
            })
            .collect()
    }

    /// A bound in the unit of a figure.
    pub(super) fn amount(&self, unit: Unit) -> Result<f64, String> {
        let text = self.written();
        let number = |text: &str| {
            let digits = |c: char| c.is_ascii_digit() || c == '.';
            let number: Option<f64> = text.parse().ok();
            number.filter(|_| text.chars().all(digits))
        };
        match unit {
            Unit::Share => rate(&self.key, &text)
                .map(Prob::to_f64)
                .map_err(|error| format!("{error:#}")),
            Unit::Span => match duration::parse(&text) {
                Ok(span) => Ok(span.as_u64() as f64),
                Err(error) => Err(format!("{}: {} {error}", self.key, self.value)),
            },
            Unit::Count => text
                .parse::<u32>()
                .map(f64::from)
                .map_err(|_| self.wrong(unit.expected())),
            Unit::PerHour | Unit::PerRun => number(&text)
                .filter(|number| *number > 0.0)
                .ok_or_else(|| self.wrong(unit.expected())),
        }
    }

    pub(super) fn finding_ids(&self) -> Result<Vec<&'static str>, String> {
        let written = self.texts()?;
        written
            .iter()
            .map(|id| {
                let known = check::RULES.into_iter().find(|known| known == id);
                known.ok_or_else(|| {
                    let near = hint(nearest(id, check::RULES));
                    format!("{}: unknown finding {id}{near}", self.key)
                })
            })
            .collect()
    }

    pub(super) fn policy_key(&self) -> Result<String, String> {
        known_key(&self.text()?)
    }

    /// What a key of the policy is compared with: another key, or a value.
    pub(super) fn operand(&self) -> Result<Operand, String> {
        match &self.value {
            Value::Integer(_) | Value::Bool(_) | Value::List(_) => {
                Ok(Operand::Value(self.value.clone()))
            }
            Value::Text(text) if text.contains('.') && duration::parse(text).is_err() => {
                known_key(text).map(Operand::Key)
            }
            Value::Text(text) if self.key == "is" || text == "off" => {
                Ok(Operand::Value(self.value.clone()))
            }
            Value::Text(_) => self.span().map(|_| Operand::Value(self.value.clone())),
            _ => Err(self.wrong("a value of the policy, or the name of another key")),
        }
    }
}

fn stratum_key(word: &str) -> Result<StratumKey, String> {
    StratumKey::ALL
        .into_iter()
        .find(|key| key.name() == word)
        .ok_or_else(|| format!("{word} is no stratum"))
}
