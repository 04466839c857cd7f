//! Reads a policy document from TOML, keeping the line of every value.

use std::fmt;

use policysim_policy::document::{self, KEYS, Shape, Value};
use policysim_policy::{Decimal, Policy, PolicyError, presets};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{preset_name, unknown_preset};

/// A document as read.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The preset it starts from.
    pub(crate) preset: Option<&'static str>,
    /// The policy it means.
    pub(crate) policy: Policy,
    /// The line of every key that is written, short forms under their full path; `preset` among them.
    pub(crate) lines: KeyLines,
}

/// Lines of a file on which keys of the policy are set, counted from 1.
pub(crate) type KeyLines = Vec<(String, usize)>;

/// What is wrong with a document, and on which line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    /// Counted from 1.
    pub(crate) line: usize,
    /// A fragment that names the key and what was expected.
    pub(crate) message: String,
}

impl Fault {
    /// The error for the user: file, line, message.
    pub(crate) fn in_file(self, file: &str) -> anyhow::Error {
        anyhow::anyhow!("{file}:{self}")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

/// One value to set, found while walking the tables.
struct Leaf {
    key: String,
    value: Value,
    at: usize,
}

/// Reads a document: `preset`, tables of keys, and the short forms of tables.
///
/// Keys are set in the order of the table of keys, not of the file, so that a key that sets others comes before them.
pub(crate) fn parse(text: &str) -> Result<Document, Fault> {
    let fault = |at: usize, message: String| Fault {
        line: line_of(text, at),
        message,
    };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        fault(at, error.message().replace('\n', ", "))
    })?;
    let mut preset = None;
    let mut lines = KeyLines::new();
    let mut leaves = Vec::new();
    for (name, value) in root.get_ref() {
        let at = name.span().start;
        match (&**name.get_ref(), value.get_ref()) {
            ("preset", DeValue::String(asked)) => {
                let name = preset_name(asked)
                    .ok_or_else(|| fault(value.span().start, unknown_preset(asked).to_string()))?;
                preset = Some(name);
                lines.push(("preset".to_owned(), line_of(text, at)));
            }
            ("preset", _) => {
                let message = "preset: expected the name of a preset in quotes".to_owned();
                return Err(fault(value.span().start, message));
            }
            (table, DeValue::Table(fields)) if document::tables().contains(&table) => {
                walk(table, fields, &mut leaves);
            }
            (key, _) => leaves.push(leaf(key.to_owned(), value, at)),
        }
    }
    let mut policy = preset.and_then(presets::find).unwrap_or_default();
    leaves.sort_by_key(|leaf| document::position(&leaf.key).unwrap_or(KEYS.len()));
    for Leaf { key, value, at } in leaves {
        policy
            .set(&key, &value)
            .map_err(|error| fault(at, error.to_string()))?;
        let path = document::find(&key).map_or(key.as_str(), |known| known.info.path);
        lines.push((path.to_owned(), line_of(text, at)));
    }
    Ok(Document {
        preset,
        policy,
        lines,
    })
}

/// The keys of one table. A table below it is the value of a key that takes one; any other is an unknown key.
fn walk(table: &str, fields: &DeTable<'_>, leaves: &mut Vec<Leaf>) {
    for (name, value) in fields {
        let key = format!("{table}.{}", name.get_ref());
        let takes_table = document::find(&key).is_ok_and(|known| {
            matches!(
                known.info.shape,
                Shape::CapByName | Shape::LimitByName | Shape::Fields(_)
            )
        });
        let at = name.span().start;
        match value.get_ref() {
            DeValue::Table(inner) if !takes_table && document::find(&key).is_err() => {
                // An unknown table is named by its first key, which is what the hint can help with.
                match inner.iter().next() {
                    Some((inner, value)) => {
                        let key = format!("{key}.{}", inner.get_ref());
                        leaves.push(leaf(key, value, at));
                    }
                    None => leaves.push(leaf(key, value, at)),
                }
            }
            _ => leaves.push(leaf(key, value, at)),
        }
    }
}

fn leaf(key: String, value: &Spanned<DeValue<'_>>, at: usize) -> Leaf {
    Leaf {
        key,
        value: convert(value.get_ref()),
        at,
    }
}

/// A value of TOML as one of a document.
pub(crate) fn convert(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::text(&**text),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            i64::from_str_radix(&digits, number.radix())
                .map_or_else(|_| Value::text(number.to_string()), Value::Integer)
        }
        DeValue::Float(number) => {
            let digits = number.as_str().replace('_', "");
            // `inf` and `nan` go on as words, which no key takes.
            Decimal::parse(&digits).map_or_else(|| Value::text(digits), Value::Fraction)
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(date) => Value::text(date.to_string()),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| convert(item.get_ref())).collect())
        }
        DeValue::Table(entries) => Value::Table(
            entries
                .iter()
                .map(|(name, value)| (name.get_ref().to_string(), convert(value.get_ref())))
                .collect(),
        ),
    }
}

/// The line, from 1, of the byte `at`.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.get(..at).unwrap_or(text).matches('\n').count()
}

/// Carries out one `KEY=VALUE` of a command line.
pub(crate) fn assign(policy: &mut Policy, assignment: &str) -> Result<(), PolicyError> {
    let Some((key, text)) = assignment.split_once('=') else {
        return Err(PolicyError::Mismatch {
            key: "--set".to_owned(),
            found: assignment.to_owned(),
            expected: "KEY=VALUE, such as idle.window=300s".to_owned(),
        });
    };
    policy.set(key.trim(), &loose_value(text.trim()))
}

/// A value from the command line: TOML where it is TOML, else the text itself, so that `idle=300s` needs no quotes.
fn loose_value(text: &str) -> Value {
    DeValue::parse(text).map_or_else(|_| Value::text(text), |value| convert(value.get_ref()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use policysim_policy::presets::PRESETS;
    use policysim_policy::{KindSet, Millis};

    use super::*;

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn short_forms_tables_and_dotted_keys_mean_the_same() {
        let texts = [
            "idle = \"5m\"\ntotal = \"6h\"\nturns = 60",
            "[idle]\nwindow = \"300s\"\n[total]\nbudget = \"6h\"\n[turns]\ncap = 60",
            "idle.window = \"300000ms\"\ntotal.budget = \"360m\"\nturns.cap = 60",
        ];
        let policies = texts.map(|text| parse(text).unwrap().policy);
        assert_eq!(policies[0], policies[1]);
        assert_eq!(policies[1], policies[2]);
        assert_eq!(policies[0].idle.window, Some(Millis::from_secs(300)));
    }

    #[test]
    fn a_preset_is_the_start_wherever_it_stands() {
        let document = parse("idle = \"off\"\npreset = \"pi-desktop-0129\"").unwrap();
        assert_eq!(document.preset, Some("pi-desktop-0129"));
        assert_eq!(document.policy.idle.window, None);
        assert_eq!(
            document.policy.total.budget,
            Some(Millis::from_secs(21_600))
        );
        assert_eq!(document.policy.idle.rearm, KindSet::ALL);
    }

    #[test]
    fn a_key_that_sets_others_comes_before_them() {
        let text = "[retry]\nrate_limit = { retries = 3, cap = \"9s\" }\nera = \"later\"";
        let policy = parse(text).unwrap().policy;
        assert_eq!(policy.retry.rate_limit.unwrap().retries, 3);
        assert_eq!(policy.retry.transient.unwrap().retries, 10);
    }

    #[test]
    fn faults_name_line_key_and_what_was_expected() {
        refused(
            "preset = \"pi-desktop-0129\"\n[idle]\nwindwo = \"5m\"",
            "3: unknown key idle.windwo, did you mean idle.window?",
        );
        refused("\nidel = \"5m\"", "2: unknown key idel, did you mean idle?");
        refused(
            "[idel]\nwindow = \"5m\"",
            "1: unknown key idel, did you mean idle?",
        );
        refused(
            "idle = 600",
            "1: idle.window: 600 has no unit: 600s? 600ms?",
        );
        refused(
            "total.budget = \"9223372036854775808ms\"",
            "1: total.budget: \"9223372036854775808ms\" is longer than 9223372036854775807ms: a limit is switched off with \"off\"",
        );
        refused(
            "preset = \"pi-desktop-0192\"",
            "1: unknown preset pi-desktop-0192, did you mean pi-desktop-0129?",
        );
        refused(
            "preset = 3",
            "1: preset: expected the name of a preset in quotes",
        );
        refused(
            "[pause]\ntool = { default = \"5m\" }",
            "2: pause.tool: { default = \"5m\" } is not \"none\", \"idle\" or \"all\"",
        );
    }

    #[test]
    fn broken_toml_names_its_line() {
        let fault = parse("idle = \"5m\"\ntotal = ").unwrap_err();
        assert_eq!(fault.line, 2);
        let fault = parse("idle = \"5m\"\nidle = \"6m\"").unwrap_err();
        assert_eq!(fault.line, 2, "{fault}");
    }

    #[test]
    fn printed_documents_read_back_equal() {
        for preset in &PRESETS {
            let policy = preset.policy();
            let text = document::print(&policy, Some(preset.name));
            let again = parse(&text).unwrap();
            assert_eq!(again.policy, policy, "{}", preset.name);
            assert_eq!(again.preset, Some(preset.name));
            assert_eq!(document::print(&again.policy, again.preset), text);
        }
        let own =
            parse("idle = \"5m\"\npause.tool_limit = { default = \"off\", \"a b\" = \"5m\" }")
                .unwrap();
        let again = parse(&document::print(&own.policy, None)).unwrap();
        assert_eq!(again.policy, own.policy);
    }

    #[test]
    fn assignments_need_no_quotes() {
        let mut policy = Policy::default();
        assign(&mut policy, "idle=300s").unwrap();
        assign(&mut policy, "idle.rearm = [\"all\", \"-status\"]").unwrap();
        assign(&mut policy, "turns=off").unwrap();
        assign(&mut policy, "pause.turn_closes_tools=false").unwrap();
        assert_eq!(policy.idle.window, Some(Millis::from_secs(300)));
        assert!(!policy.pause.turn_closes_tools);
        assert!(assign(&mut policy, "idle").is_err());
        assert_eq!(
            assign(&mut policy, "idle=600").unwrap_err().to_string(),
            "idle.window: 600 has no unit: 600s? 600ms?"
        );
    }

    mod random {
        use policysim_policy::document::{KeyInfo, print};
        use policysim_policy::{Kind, KindSet, duration};
        use proptest::prelude::*;
        use proptest::sample::select;

        use super::*;

        fn span(least: u64) -> BoxedStrategy<Value> {
            let any = prop_oneof![least..1000, least..10_000_000, Just(i64::MAX as u64)];
            any.prop_map(|ms| Value::text(duration::show(Millis::new(ms))))
                .boxed()
        }

        fn words(words: &'static [&'static str]) -> BoxedStrategy<Value> {
            select(words).prop_map(Value::text).boxed()
        }

        fn limit() -> BoxedStrategy<Value> {
            prop_oneof![words(&["off"]), span(1)].boxed()
        }

        fn cap() -> BoxedStrategy<Value> {
            prop_oneof![words(&["off"]), (1..5000_i64).prop_map(Value::Integer)].boxed()
        }

        fn name() -> BoxedStrategy<String> {
            "[a-z\"\\\\ é.]{1,6}".boxed()
        }

        fn table(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
            prop::collection::btree_map(name(), value, 0..4)
                .prop_map(|entries| Value::Table(entries.into_iter().collect()))
                .boxed()
        }

        fn kinds() -> BoxedStrategy<Value> {
            let known: Vec<String> = KindSet::NAMED
                .iter()
                .map(|(name, _)| *name)
                .chain(Kind::ALL.iter().map(|kind| kind.name()))
                .map(str::to_owned)
                .collect();
            let item = prop_oneof![
                select(known),
                name().prop_map(|name| format!("other:{name}"))
            ];
            let item = (any::<bool>(), item)
                .prop_map(|(takes, item)| format!("{}{item}", if takes { "-" } else { "" }));
            prop::collection::vec(item, 1..6)
                .prop_map(Value::texts)
                .boxed()
        }

        /// Values that a shape takes.
        fn values(shape: Shape) -> BoxedStrategy<Value> {
            match shape {
                Shape::Cap => cap(),
                Shape::CapByName => table(cap()),
                Shape::Choice(choices) => words(choices),
                Shape::Count { max } => (0..=i64::from(max)).prop_map(Value::Integer).boxed(),
                Shape::Fields(fields) => fields_of(fields()),
                Shape::Flag => any::<bool>().prop_map(Value::Bool).boxed(),
                Shape::Kinds => kinds(),
                Shape::KindsOr(choices) => prop_oneof![words(choices), kinds()].boxed(),
                Shape::Limit => limit(),
                Shape::LimitByName => prop_oneof![limit(), table(limit())].boxed(),
                Shape::LimitOr(choices) => prop_oneof![words(choices), limit()].boxed(),
                Shape::Names => prop::collection::vec(name().prop_map(Value::text), 0..4)
                    .prop_map(Value::List)
                    .boxed(),
                Shape::Span => span(0),
                Shape::SpanOr(choices) => prop_oneof![words(choices), span(1)].boxed(),
            }
        }

        /// One field of a table of fields, so that none belongs to another's choice, or `off`.
        fn fields_of(fields: Vec<KeyInfo>) -> BoxedStrategy<Value> {
            let one = select(fields).prop_flat_map(|info| {
                values(info.shape)
                    .prop_map(move |value| Value::Table(vec![(info.path.to_owned(), value)]))
            });
            prop_oneof![words(&["off"]), one].boxed()
        }

        fn settings() -> BoxedStrategy<Vec<(&'static str, Value)>> {
            let one = (0..KEYS.len()).prop_flat_map(|at| {
                let info = KEYS[at].info;
                values(info.shape).prop_map(move |value| (info.path, value))
            });
            prop::collection::vec(one, 0..12).boxed()
        }

        proptest! {
            #[test]
            fn whatever_can_be_set_prints_and_reads_back(settings in settings()) {
                let mut policy = Policy::default();
                for (key, value) in &settings {
                    // A field of the estimator that was not chosen is refused, and changes nothing.
                    let before = policy.clone();
                    if policy.set(key, value).is_err() {
                        prop_assert_eq!(*key, "idle.adaptive");
                        prop_assert_eq!(&policy, &before);
                    }
                }
                let text = print(&policy, None);
                let again = parse(&text).unwrap();
                prop_assert_eq!(&again.policy, &policy, "{}", text);
                prop_assert_eq!(print(&again.policy, None), text);
            }

            #[test]
            fn any_text_is_read_or_refused_with_a_line(text in ".{0,80}") {
                if let Err(fault) = parse(&text) {
                    prop_assert!(fault.line <= 1 + text.matches('\n').count());
                }
            }
        }
    }
}
