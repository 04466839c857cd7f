//! Reads a harness's own settings file into a policy, with that harness's rules.

use std::path::Path;

use anyhow::{Context, Result, bail};
use policysim_policy::dialect::{Setting, Warning, no_mistakes, pi_desktop, pi_extensions};
use policysim_policy::{ByName, Decimal, Millis, Policy, duration, presets};
use serde_json::Value as Json;

use super::flat_yaml::{self, Scalar};
use super::toml_document::{Fault, KeyLines};
use super::{Loaded, preset_name, read, shown};

/// A harness whose settings can be read.
pub(crate) struct Dialect {
    /// The word before the colon on the command line.
    pub(crate) name: &'static str,
    /// The file it reads.
    pub(crate) file: &'static str,
    /// The presets it can start from; the first unless another is named.
    pub(crate) presets: &'static [&'static str],
    /// The settings it reads; without any of them the preset's values stand.
    keys: &'static [&'static str],
    apply: Apply,
}

type Apply = fn(&str, &mut Policy) -> Result<Vec<Warning>, Fault>;

/// Every dialect.
pub(crate) const DIALECTS: [Dialect; 3] = [
    Dialect {
        name: "pi-desktop",
        file: "subagent definition with front matter (agent.md)",
        presets: &["pi-desktop-0129", "pi-desktop-0119", "pi-desktop-0166"],
        keys: &[
            pi_desktop::IDLE_KEY,
            pi_desktop::DURATION_KEY,
            pi_desktop::TURNS_KEY,
        ],
        apply: pi_desktop_front_matter,
    },
    Dialect {
        name: "pi-extensions",
        file: "settings.json",
        presets: &["pi-ext-adr0010", "pi-ext-inproc"],
        keys: &[pi_extensions::IDLE_KEY, pi_extensions::TOTAL_KEY],
        apply: pi_extensions_settings,
    },
    Dialect {
        name: "no-mistakes",
        file: "config.yaml",
        presets: &[
            "no-mistakes-silence",
            "no-mistakes-fixed",
            "no-mistakes-fixed-shared",
        ],
        keys: &[no_mistakes::BUDGET_KEY],
        apply: no_mistakes_yaml,
    },
];

/// A dialect with the preset to start from.
pub(super) struct Start {
    dialect: &'static Dialect,
    preset: &'static str,
}

/// The dialect of that name, or the one that can start from the preset of that name.
pub(super) fn find(name: &str) -> Option<Start> {
    DIALECTS.iter().find_map(|dialect| {
        let preset = if dialect.name == name {
            dialect.presets.first()
        } else {
            dialect.presets.iter().find(|preset| **preset == name)
        };
        preset.map(|preset| Start { dialect, preset })
    })
}

impl Start {
    /// Reads the file at `path` over the preset.
    pub(super) fn load(&self, path: &str) -> Result<Loaded> {
        let text = read(path)?;
        let Some(mut policy) = presets::find(self.preset) else {
            bail!(
                "preset {} of dialect {} is missing",
                self.preset,
                self.dialect.name
            );
        };
        let warnings = (self.dialect.apply)(&text, &mut policy)
            .map_err(|fault| fault.in_file(path))
            .with_context(|| format!("not a {} of {}", self.dialect.file, self.dialect.name))?;
        let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let keys = self.dialect.keys;
        if !keys.iter().any(|key| text.contains(key)) {
            warnings.push(format!(
                "none of {} is set: the values of {} stand",
                keys.join(", "),
                self.preset
            ));
        }
        let name = shown(Path::new(path));
        Ok(Loaded {
            file: Some(name.clone()),
            name,
            preset: preset_name(self.preset),
            policy,
            warnings,
            lines: lines(&text, keys),
        })
    }
}

/// The line of each of a dialect's keys, under the limits of the policy that such a key sets.
fn lines(text: &str, keys: &[&str]) -> KeyLines {
    let limits = ["idle.window", "total.budget", "turns.cap"];
    let line_of = |key: &str| {
        text.lines()
            .position(|line| line.contains(key))
            .map(|at| at + 1)
    };
    limits
        .iter()
        .zip(keys)
        .filter_map(|(limit, key)| Some(((*limit).to_owned(), line_of(key)?)))
        .collect()
}

/// `idle-timeout`, `max-duration` and `maxTurns` of a definition's front matter. A clock that the preset
/// does not have stays off, though its setting is still read, with its warnings.
fn pi_desktop_front_matter(text: &str, policy: &mut Policy) -> Result<Vec<Warning>, Fault> {
    let wanted = [
        pi_desktop::IDLE_KEY,
        pi_desktop::DURATION_KEY,
        pi_desktop::TURNS_KEY,
    ];
    let lines = flat_yaml::front_matter(text).unwrap_or(Ok(Vec::new()))?;
    let scalars = flat_yaml::scalars(lines, &wanted)?;
    let value = |key: &str| find_scalar(&scalars, key).map(|scalar| scalar.value);
    let resolved = pi_desktop::resolve(
        pi_desktop::FrontMatter {
            idle_timeout: value(pi_desktop::IDLE_KEY),
            max_duration: value(pi_desktop::DURATION_KEY),
            max_turns: value(pi_desktop::TURNS_KEY),
        },
        pi_desktop_defaults(policy),
    );
    let limits = resolved.limits;
    policy.idle.window = policy.idle.window.and(Some(limits.idle));
    policy.total.budget = policy.total.budget.and(Some(limits.duration));
    // The definition is of one agent, so its own cap stands for every role.
    policy.turns.cap = limits.max_turns;
    policy.turns.by_role = ByName::EMPTY;
    Ok(resolved.warnings)
}

/// The defaults of a definition's limits under a preset; where it has no such clock, those of ADR 0129.
pub(crate) fn pi_desktop_defaults(policy: &Policy) -> pi_desktop::Limits {
    pi_desktop::Limits {
        idle: policy.idle.window.unwrap_or(Millis::from_secs(300)),
        duration: policy.total.budget.unwrap_or(Millis::from_secs(21_600)),
        max_turns: None,
    }
}

/// `subagents.idleTimeoutMs` and `subagents.maxTotalMs` of a `settings.json`.
fn pi_extensions_settings(text: &str, policy: &mut Policy) -> Result<Vec<Warning>, Fault> {
    let json: Json = serde_json::from_str(text).map_err(|error| Fault {
        line: error.line(),
        message: error.to_string(),
    })?;
    let subagents = json.get("subagents");
    let setting = |key| json_setting(subagents.and_then(|table| table.get(key)));
    let resolved = pi_extensions::resolve(
        setting(pi_extensions::IDLE_KEY),
        setting(pi_extensions::TOTAL_KEY),
        pi_extensions_defaults(policy),
    );
    policy.idle.window = Some(resolved.limits.idle);
    policy.total.budget = Some(resolved.limits.total);
    Ok(resolved.warnings)
}

/// The defaults of the two settings under a preset.
pub(crate) fn pi_extensions_defaults(policy: &Policy) -> pi_extensions::Limits {
    pi_extensions::Limits {
        idle: policy.idle.window.unwrap_or(Millis::from_secs(600)),
        total: policy.total.budget.unwrap_or(Millis::from_secs(1200)),
    }
}

/// `agent_timeout` of a `config.yaml`. It is the silence budget or the fixed deadline, whichever the preset has.
fn no_mistakes_yaml(text: &str, policy: &mut Policy) -> Result<Vec<Warning>, Fault> {
    let scalars = flat_yaml::scalars(flat_yaml::numbered(text), &[no_mistakes::BUDGET_KEY])?;
    let configured = match find_scalar(&scalars, no_mistakes::BUDGET_KEY) {
        None => None,
        Some(Scalar { key, value, line }) => {
            let fault = |message: String| Fault {
                line: *line,
                message: format!("{key}: {value:?} {message}"),
            };
            let budget = duration::parse(value).map_err(|error| fault(error.to_string()))?;
            if budget == Millis::ZERO {
                return Err(fault(
                    "is not above zero, which the harness refuses".to_owned(),
                ));
            }
            Some(budget)
        }
    };
    let budget = Some(no_mistakes::budget(None, configured));
    policy.idle.window = policy.idle.window.and(budget);
    policy.total.budget = policy.total.budget.and(budget);
    Ok(Vec::new())
}

fn find_scalar<'s, 't>(scalars: &'s [Scalar<'t>], key: &str) -> Option<&'s Scalar<'t>> {
    scalars.iter().find(|scalar| scalar.key == key)
}

/// A JSON value that may be missing, as a dialect takes it.
pub(crate) fn json_setting(value: Option<&Json>) -> Setting<'_> {
    match value {
        None => Setting::Missing,
        Some(Json::Null) => Setting::Null,
        Some(Json::Bool(flag)) => Setting::Bool(*flag),
        Some(Json::Number(number)) => {
            Decimal::parse(&number.to_string()).map_or(Setting::Other, Setting::Number)
        }
        Some(Json::String(text)) => Setting::Text(text),
        Some(Json::Array(_) | Json::Object(_)) => Setting::Other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn apply(start: &str, text: &str) -> (Policy, Vec<String>) {
        let start = find(start).unwrap();
        let mut policy = presets::find(start.preset).unwrap();
        let warnings = (start.dialect.apply)(text, &mut policy).unwrap();
        (policy, warnings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn front_matter_over_each_generation() {
        let text =
            "---\nname: explorer\nidle-timeout: 5\nmaxTurns: 90\n---\n# Body\nidle-timeout: 7\n";
        let (policy, warnings) = apply("pi-desktop", text);
        assert_eq!(policy.idle.window, Some(Millis::from_secs(10)));
        assert_eq!(policy.turns.cap_of("explorer"), Some(80));
        assert_eq!(warnings.len(), 2);
        let (policy, _) = apply("pi-desktop-0119", "no front matter");
        assert_eq!(policy.idle.window, Some(Millis::from_secs(600)));
        assert_eq!(policy.turns.cap_of("explorer"), None);
        let (policy, warnings) = apply("pi-desktop-0166", text);
        assert_eq!((policy.idle.window, policy.total.budget), (None, None));
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn settings_drop_both_values_on_a_fault() {
        let good = r#"{"subagents": {"idleTimeoutMs": 900000, "maxTotalMs": 1800000}}"#;
        let (policy, warnings) = apply("pi-extensions", good);
        assert_eq!(policy.idle.window, Some(Millis::from_secs(900)));
        assert!(warnings.is_empty());
        let fault = r#"{"subagents": {"idleTimeoutMs": "900000", "maxTotalMs": 1800000}}"#;
        let (policy, warnings) = apply("pi-extensions", fault);
        assert_eq!(policy.total.budget, Some(Millis::from_secs(1200)));
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("idleTimeoutMs = \"900000\": "));
    }

    #[test]
    fn agent_timeout_is_the_clock_that_the_preset_has() {
        let (policy, _) = apply("no-mistakes", "agent: auto\nagent_timeout: \"45m\"\n");
        assert_eq!(policy.idle.window, Some(Millis::from_secs(2700)));
        assert_eq!(policy.total.budget, None);
        let (policy, _) = apply("no-mistakes-fixed", "agent_timeout: 45m\n");
        assert_eq!(policy.idle.window, None);
        assert_eq!(policy.total.budget, Some(Millis::from_secs(2700)));
        let mut policy = Policy::default();
        let fault = no_mistakes_yaml("x: 1\nagent_timeout: 1800", &mut policy).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "2: agent_timeout: \"1800\" has no unit: 1800s? 1800ms?"
        );
    }
}
