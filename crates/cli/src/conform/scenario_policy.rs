//! The policy of a scenario: its short keys as keys of the policy document.

use anyhow::{Context, Result, bail};
use policysim_policy::document::Value;
use policysim_policy::spelling::{self, Spelled};
use policysim_policy::{Cause, Kind, Policy};
use serde_json::{Map, Value as Json};

/// How a scenario's value is written in a document.
#[derive(Clone, Copy)]
enum Form {
    /// Named sets of activity.
    Activity,
    /// Kinds that must be in the re-arm set.
    ActivityIncludes,
    /// The clock that drives the replay; no key of a document.
    Clock,
    /// A whole number; `null` is off.
    Count,
    /// Budgets count active time only: the list of what they exclude must be human waits.
    Excludes,
    /// Milliseconds; `null` is off.
    Millis,
    /// A list of names.
    Names,
    /// Milliseconds; `null` is no window of its own.
    Window,
    /// Kinds taken out of the re-arm set.
    NonActivity,
    /// What the parent does after a firing.
    OnTimeout,
    /// True means that announced backoff pauses the idle clock.
    PausesIdle,
    /// A word of the document.
    Word,
}

/// The one table of spellings (`scenarios/README.md`): key of a scenario, key of the document, form, and the verdict
/// when that limit fires.
const SPELLINGS: [(&str, &str, Form, Option<Cause>); 22] = [
    (
        "idle_ms",
        "idle.window",
        Form::Millis,
        Some(Cause::IdleTimeout),
    ),
    (
        "first_token_ms",
        "idle.first",
        Form::Window,
        Some(Cause::FirstTimeout),
    ),
    (
        "startup_ms",
        "idle.startup",
        Form::Millis,
        Some(Cause::StartupTimeout),
    ),
    ("activity", "idle.rearm", Form::Activity, None),
    ("non_activity", "idle.rearm", Form::NonActivity, None),
    (
        "activity_includes",
        "idle.rearm",
        Form::ActivityIncludes,
        None,
    ),
    (
        "max_tool_ms",
        "pause.tool_limit",
        Form::Millis,
        Some(Cause::ToolTimeout),
    ),
    (
        "per_command_ms",
        "pause.tool_limit",
        Form::Millis,
        Some(Cause::ToolTimeout),
    ),
    ("human_tools", "pause.human_tools", Form::Names, None),
    (
        "compaction_cap_ms",
        "pause.compaction_limit",
        Form::Millis,
        Some(Cause::CompactionTimeout),
    ),
    ("retry_pauses_idle", "pause.backoff", Form::PausesIdle, None),
    (
        "retry_budget_ms",
        "pause.backoff_budget",
        Form::Millis,
        Some(Cause::BackoffTimeout),
    ),
    (
        "max_total_ms",
        "total.budget",
        Form::Millis,
        Some(Cause::TotalTimeout),
    ),
    ("max_total_scope", "total.scope", Form::Word, None),
    ("max_total_excludes", "pause.human", Form::Excludes, None),
    (
        "max_turns",
        "turns.cap",
        Form::Count,
        Some(Cause::TurnLimit),
    ),
    ("max_turns_scope", "turns.scope", Form::Word, None),
    ("tick_ms", "detect.poll", Form::Millis, None),
    ("task_wait_ms", "task_wait.timeout", Form::Millis, None),
    (
        "post_result_grace_ms",
        "kill.result_grace",
        Form::Millis,
        Some(Cause::CleanupForced),
    ),
    ("on_timeout", "on_timeout.retry", Form::OnTimeout, None),
    ("clock", "", Form::Clock, None),
];

/// Whether a key of a row changes the policy, rather than expecting something.
pub(super) fn is_policy_key(key: &str) -> bool {
    SPELLINGS.iter().any(|(known, ..)| *known == key)
}

/// The verdict of the limit that a scenario's key sets.
pub(super) fn cause_of(key: &str) -> Option<Cause> {
    SPELLINGS
        .iter()
        .find(|(known, ..)| *known == key)
        .and_then(|(.., cause)| *cause)
}

/// Sets a scenario's keys in a policy.
pub(super) fn apply(policy: &mut Policy, keys: &Map<String, Json>) -> Result<()> {
    for (key, value) in keys {
        let Some((_, document_key, form, _)) = SPELLINGS.iter().find(|(known, ..)| known == key)
        else {
            bail!("unknown policy key {key}");
        };
        set(policy, document_key, *form, value)
            .with_context(|| format!("policy key {key} = {value}"))?;
    }
    Ok(())
}

fn set(policy: &mut Policy, key: &str, form: Form, json: &Json) -> Result<()> {
    let value = match (form, json) {
        (Form::Millis | Form::Count, Json::Null) => Value::text("off"),
        (Form::Window, Json::Null) => Value::text("window"),
        (Form::Millis | Form::Window, Json::Number(ms)) => Value::text(format!("{ms}ms")),
        (Form::Count, Json::Number(count)) => {
            Value::Integer(count.as_i64().context("not a whole number")?)
        }
        (Form::Word, Json::String(word)) => Value::text(word),
        (Form::Activity, Json::String(set)) => Value::text(match set.as_str() {
            "any_frame" => "all",
            "deltas_not_keepalive" => "deltas",
            "usable_output" => "output",
            set => set,
        }),
        (Form::NonActivity, Json::Array(kinds)) => {
            let mut items = vec!["all".to_owned()];
            for kind in kinds {
                items.push(format!("-{}", kind_item(kind)?));
            }
            Value::texts(items)
        }
        (Form::ActivityIncludes, Json::Array(kinds)) => {
            for kind in kinds {
                let (kind, name) = spelled_kind(kind)?;
                if !policy.idle.rearm.holds(kind, name) {
                    bail!("{kind} is not in the re-arm set");
                }
            }
            return Ok(());
        }
        (Form::Names, Json::Array(names)) => Value::texts(
            names
                .iter()
                .map(|name| name.as_str().context("not a list of names"))
                .collect::<Result<Vec<_>>>()?,
        ),
        (Form::PausesIdle, Json::Bool(pauses)) => {
            Value::text(if *pauses { "idle" } else { "none" })
        }
        (Form::Excludes, Json::Array(what)) if what.iter().all(is_human) => Value::text("all"),
        (Form::Excludes, what) if is_human(what) => Value::text("all"),
        (Form::Clock, Json::String(clock)) if ["monotonic", "wall"].contains(&clock.as_str()) => {
            return Ok(());
        }
        (Form::OnTimeout, Json::Object(keys)) => {
            for (field, value) in keys {
                let value = match value {
                    Json::Bool(flag) => Value::Bool(*flag),
                    Json::Number(n) => Value::Integer(n.as_i64().context("not a whole number")?),
                    _ => bail!("{field} is neither a number nor a flag"),
                };
                policy.set(&format!("on_timeout.{field}"), &value)?;
            }
            return Ok(());
        }
        _ => bail!("not of the form that this key takes"),
    };
    Ok(policy.set(key, &value)?)
}

fn is_human(what: &Json) -> bool {
    what.as_str()
        .is_some_and(|what| what.starts_with("human") || what.starts_with("approval"))
}

/// The kind and, of another kind, the name that a scenario's word means.
fn spelled_kind(word: &Json) -> Result<(Kind, &str)> {
    let word = word.as_str().context("a kind is not text")?;
    match spelling::spelled(word) {
        Some(Spelled::Event(spelling)) => Ok((spelling.kind, word)),
        _ => bail!("unknown event kind {word}"),
    }
}

/// The same as an item of a kind list.
fn kind_item(word: &Json) -> Result<String> {
    Ok(match spelled_kind(word)? {
        (Kind::Other, name) => format!("other:{name}"),
        (kind, _) => kind.name().to_owned(),
    })
}
