//! Rules about the policy alone: contradictions, bounds on its keys, equality with another policy.

use std::cmp::Ordering;

use policysim_policy::check::Finding;
use policysim_policy::document::{KEYS, Value};
use policysim_policy::{Policy, check, duration};

use super::check::{Code, Detail, Difference, Verdict};
use super::rules::{Compare, FindingsRule, KeyRule, Operand, SameRule};

/// What one claim came to.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) verdict: Verdict,
    pub(super) code: Option<Code>,
    pub(super) reason: Option<String>,
    pub(super) detail: Detail,
    pub(super) keys: Vec<String>,
}

/// The policy keys behind a contradiction, the one to look at first first.
pub fn finding_keys(id: &str) -> &'static [&'static str] {
    match id {
        "idle-not-below-wait" => &["idle.window", "idle.first", "task_wait.timeout"],
        "patience-below-window" => &["idle.window", "idle.first", "task_wait.max"],
        "silent-retry-envelope" => &[
            "retry.rate_limit",
            "retry.transient",
            "retry.era",
            "idle.window",
        ],
        "backoff-cap-not-below-idle" => &[
            "idle.window",
            "retry.rate_limit",
            "retry.transient",
            "retry.era",
        ],
        "first-window-never-fires" => &["idle.first", "idle.ceiling", "total.budget"],
        "total-not-above-idle" => &["total.budget", "idle.window"],
        "poll-comparable-to-window" => &["detect.poll", "idle.window"],
        "paused-without-limit" => &[
            "total.budget",
            "pause.tool",
            "pause.human",
            "pause.child",
            "pause.compaction",
            "pause.backoff",
        ],
        _ => &[],
    }
}

/// The keys behind contradictions of one id: those that set the limits found first, in the order of [`finding_keys`].
fn keys_of(id: &str, found: &[Finding]) -> Vec<String> {
    let involved = |key: &str| {
        let mut sets = found.iter().flat_map(Finding::keys);
        // an era sets the schedules of all classes
        sets.any(|set| set == key || key == "retry.era" && set.starts_with("retry."))
    };
    let known = finding_keys(id).iter().copied();
    let others = found.iter().flat_map(Finding::keys);
    let first = known.clone().chain(others).filter(|key| involved(key));
    let mut keys: Vec<String> = Vec::new();
    for key in first.chain(known.clone()) {
        if !keys.iter().any(|known| known == key) {
            keys.push(key.to_owned());
        }
    }
    keys
}

/// A claim per id: what is found under it is what is known to be.
pub(super) fn findings(rule: &FindingsRule, policy: &Policy) -> Vec<Found> {
    let all = check::check(policy);
    rule.ids
        .iter()
        .map(|&id| {
            let found: Vec<_> = all
                .iter()
                .filter(|finding| finding.id == id)
                .cloned()
                .collect();
            let known = rule.known.contains(&id);
            let (verdict, code) = match (found.is_empty(), known) {
                (true, false) | (false, true) => (Verdict::Pass, None),
                (false, false) => (Verdict::Fail, Some(Code::FindingNew)),
                (true, true) => (Verdict::Fail, Some(Code::FindingVanished)),
            };
            Found {
                name: if known {
                    format!("{id}, known")
                } else {
                    format!("no {id}")
                },
                subject: id.to_owned(),
                verdict,
                code,
                reason: None,
                keys: keys_of(id, &found),
                detail: Detail::Finding { found, known },
            }
        })
        .collect()
}

/// The size of a value that can be ordered: a duration, a number, or `off`, which is more than any.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Size {
    Number(u64),
    Off,
}

fn size(value: &Value) -> Option<Size> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok().map(Size::Number),
        Value::Text(text) if text == "off" => Some(Size::Off),
        Value::Text(text) => duration::parse(text)
            .ok()
            .map(|span| Size::Number(span.as_u64())),
        _ => None,
    }
}

/// How two values are ordered; `None` where they cannot be.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    Some(size(left)?.cmp(&size(right)?))
}

/// A value as a person writes it, without quotes around words.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn key(rule: &KeyRule, policy: &Policy) -> Found {
    let unset = || Value::text("not set");
    let value = policy.get(&rule.key).unwrap_or_else(unset);
    let (other, shown, mut keys) = match &rule.operand {
        Operand::Value(value) => (value.clone(), plain(value), Vec::new()),
        Operand::Key(key) => {
            let value = policy.get(key).unwrap_or_else(unset);
            let shown = format!("{key} {}", plain(&value));
            (value, shown, vec![key.clone()])
        }
    };
    keys.insert(0, rule.key.clone());
    let ordered = order(&value, &other);
    let holds = match rule.compare {
        Compare::Is => match ordered {
            Some(order) => order == Ordering::Equal,
            None => value == other,
        },
        Compare::Above => ordered == Some(Ordering::Greater),
        Compare::Below => ordered == Some(Ordering::Less),
        Compare::Max => matches!(ordered, Some(Ordering::Less | Ordering::Equal)),
        Compare::Min => matches!(ordered, Some(Ordering::Greater | Ordering::Equal)),
    };
    let sign = rule.compare.sign();
    let than = match &rule.operand {
        Operand::Key(key) => key.clone(),
        Operand::Value(_) => shown.clone(),
    };
    Found {
        name: format!("{} {sign} {than}", rule.key),
        subject: rule.key.clone(),
        verdict: if holds { Verdict::Pass } else { Verdict::Fail },
        code: (!holds).then_some(Code::BoundBroken),
        reason: None,
        detail: Detail::Key {
            value: plain(&value),
            other: shown,
            sign,
        },
        keys,
    }
}

pub(super) fn same(rule: &SameRule, policy: &Policy) -> Found {
    let shown = |value: Option<Value>| value.as_ref().map_or_else(|| "not set".to_owned(), plain);
    let differs: Vec<Difference> = KEYS
        .iter()
        .map(|key| key.info.path)
        .filter(|path| !rule.except.iter().any(|except| except == path))
        .filter_map(|path| {
            let (ours, theirs) = (policy.get(path), rule.policy.get(path));
            (ours != theirs).then(|| Difference {
                key: path.to_owned(),
                ours: shown(ours),
                theirs: shown(theirs),
            })
        })
        .collect();
    let holds = differs.is_empty();
    let mut name = format!("same as {}", rule.name);
    if !rule.except.is_empty() {
        name.push_str(&format!(" but for {}", rule.except.join(", ")));
    }
    Found {
        name,
        subject: rule.name.clone(),
        verdict: if holds { Verdict::Pass } else { Verdict::Fail },
        code: (!holds).then_some(Code::PolicyDiffers),
        reason: None,
        keys: differs.iter().map(|differs| differs.key.clone()).collect(),
        detail: Detail::Same {
            name: rule.name.clone(),
            differs,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use policysim_policy::presets;

    use super::*;

    #[test]
    fn every_finding_points_at_keys_of_the_document() {
        for id in check::RULES {
            assert!(!finding_keys(id).is_empty(), "{id}");
            for key in finding_keys(id) {
                assert!(policysim_policy::document::find(key).is_ok(), "{id}: {key}");
            }
        }
        for preset in presets::PRESETS {
            for finding in check::check(&presets::find(preset.name).unwrap()) {
                for key in finding.keys() {
                    assert!(policysim_policy::document::find(key).is_ok(), "{key}");
                }
            }
        }
    }

    /// Two contradictions of one id lie in different keys: the one that is there is pointed at.
    #[test]
    fn a_finding_points_at_the_keys_that_set_its_limits() {
        let first_key = |keys: &[(&str, &str)], id: &'static str| {
            let mut policy = presets::find("pi-desktop-0129").unwrap();
            for (key, value) in keys {
                policy.set(key, &Value::text(*value)).unwrap();
            }
            let rule = FindingsRule {
                ids: vec![id],
                known: Vec::new(),
            };
            let found = findings(&rule, &policy).remove(0);
            assert_eq!(found.verdict, Verdict::Fail, "{keys:?}");
            found.keys[0].clone()
        };
        let wait = "idle-not-below-wait";
        assert_eq!(first_key(&[("idle", "700s")], wait), "idle.window");
        assert_eq!(first_key(&[("idle.first", "700s")], wait), "idle.first");
        let never = "first-window-never-fires";
        let ceiling = [("idle.first", "200s"), ("idle.ceiling", "100s")];
        assert_eq!(first_key(&ceiling, never), "idle.first");
        let endless = "paused-without-limit";
        let human = [
            ("total", "off"),
            ("pause.tool", "none"),
            ("pause.human", "idle"),
        ];
        assert_eq!(first_key(&human, endless), "total.budget");
        let all = [("pause.human", "all")];
        assert_eq!(first_key(&all, endless), "total.budget");
    }

    #[test]
    fn keys_are_compared_by_size_and_off_is_the_largest() {
        let check = |key: &str, compare, operand: Operand, expected| {
            let policy = presets::find("pi-desktop-0129").unwrap();
            let rule = KeyRule {
                key: key.to_owned(),
                compare,
                operand,
            };
            assert_eq!(self::key(&rule, &policy).verdict, expected, "{rule:?}");
        };
        let value = |text: &str| Operand::Value(Value::text(text));
        let other = |key: &str| Operand::Key(key.to_owned());
        check(
            "idle.window",
            Compare::Below,
            other("task_wait.timeout"),
            Verdict::Pass,
        );
        check(
            "idle.window",
            Compare::Above,
            other("task_wait.timeout"),
            Verdict::Fail,
        );
        check("idle.window", Compare::Is, value("5m"), Verdict::Pass);
        check("idle.window", Compare::Max, value("300s"), Verdict::Pass);
        check("idle.window", Compare::Max, value("299s"), Verdict::Fail);
        check("idle.window", Compare::Min, value("301s"), Verdict::Fail);
        check("idle.throttle", Compare::Max, value("1d"), Verdict::Fail);
        check("pause.tool", Compare::Is, value("idle"), Verdict::Pass);
        check("pause.tool", Compare::Is, value("none"), Verdict::Fail);
        check(
            "turns.by_role.explorer",
            Compare::Min,
            Operand::Value(Value::Integer(60)),
            Verdict::Pass,
        );
        check(
            "turns.by_role.nobody",
            Compare::Min,
            Operand::Value(Value::Integer(1)),
            Verdict::Fail,
        );
    }
}
