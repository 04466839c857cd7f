//! Trace vectors: timed events through the watchdog core.

use anyhow::{Context, Result, bail};
use policysim_policy::spelling::{self, Spelled};
use policysim_policy::{
    CallId, Event, First, Kind, Millis, Outcome, Policy, Settlement, Watchdog, Word, settle,
};
use serde_json::{Map, Value as Json, json};

use super::fields::Fields;
use super::vectors::preset;

/// The keys of a trace vector beside those of any vector.
pub(super) const KEYS: [&str; 3] = ["axes", "events", "horizon_ms"];

/// The keys of an event that are read, of vectors and of scenarios, and those of vectors that only tell.
pub(super) const EVENT_KEYS: [&str; 19] = [
    "t_ms",
    "mono_ms",
    "kind",
    "agent",
    "parent",
    "id",
    "name",
    "type",
    "error",
    "executed",
    "suspends",
    "approval_capable",
    "ignores_cancel",
    "budget_ms",
    "deadline_ms",
    "delay_ms",
    "duration_ms",
    "status",
    "targets",
];
/// Keys of scenarios' events that are times and read elsewhere, or that say again what the file says.
pub(super) const TIME_KEYS: [&str; 2] = ["window_ms", "limit_ms"];

/// One event as a file spells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spoken<'j> {
    /// The event.
    pub(super) event: Event<'j>,
    /// The words of an end that has words of its own.
    pub(super) word: Option<Word>,
    /// A completion by a child that ignored its cancellation.
    pub(super) ignores_cancel: bool,
}

/// Reads one event; `None` where the record ends.
pub(super) fn event(fields: Fields<'_>) -> Result<Option<Spoken<'_>>> {
    let kind = fields.need_text("kind")?;
    let spelling = match spelling::spelled(kind) {
        Some(Spelled::Event(spelling)) => spelling,
        Some(Spelled::RecordEnd) => return Ok(None),
        None => bail!("unknown event kind {kind}"),
    };
    let name = if spelling.kind == Kind::Other {
        fields.text("type")?.unwrap_or(kind)
    } else {
        fields.text("name")?.unwrap_or("")
    };
    let mut event = spelling.event(name);
    event.id = CallId::from_text(fields.text("id")?.unwrap_or(""));
    event.announced = match fields.millis("delay_ms")? {
        Some(delay) => Some(delay),
        None => fields.millis("duration_ms")?,
    };
    if kind == "pause_for" && event.announced.is_none() {
        bail!("pause_for without its length: duration_ms is missing");
    }
    event.budget = fields.millis("budget_ms")?;
    event.deadline = fields.millis("deadline_ms")?;
    event.executed = fields.flag("executed", true)?;
    event.may_ask = fields.flag("approval_capable", false)?;
    event.suspends = fields.flag("suspends", false)?;
    if kind == Kind::RunEnd.name() {
        event.outcome = fields
            .text("status")?
            .map(|name| spelling::status(name).with_context(|| format!("unknown status {name}")))
            .transpose()?;
    }
    Ok(Some(Spoken {
        event,
        word: spelling.word,
        ignores_cancel: fields.flag("ignores_cancel", false)?,
    }))
}

/// Runs a trace vector: outcome, time and code of the first terminal thing.
pub(super) fn run(vector: Fields<'_>) -> Result<Map<String, Json>> {
    let (_, mut policy) = preset(vector)?;
    if let Some(axes) = vector.get("axes") {
        set_axes(&mut policy, axes)?;
    }
    let horizon = vector.need_millis("horizon_ms")?;
    let mut dog = Watchdog::new(&policy, Millis::ZERO);
    let mut late = None;
    let mut word = None;
    for fields in vector.list("events")? {
        let fields = Fields::new(fields, &EVENT_KEYS)?;
        let at = fields.need_millis("t_ms")?;
        let Some(spoken) = event(fields)? else {
            break;
        };
        let was_over = dog.verdict().is_some();
        dog.handle_event(at, &spoken.event);
        if spoken.ignores_cancel && late.is_none() {
            late = spoken.event.outcome.map(|outcome: Outcome| (at, outcome));
        }
        if !was_over
            && dog
                .verdict()
                .is_some_and(|verdict| !verdict.cause.is_firing())
        {
            word = spoken.word;
        }
    }
    dog.finish(horizon);
    let verdict = dog.verdict().context("the watchdog gave no verdict")?;
    let Settlement { at, word: told, .. } = settle(verdict, late, policy.kill.late_success);
    let Word { outcome, code } = word.unwrap_or(told);
    Ok([
        ("outcome", json!(outcome)),
        ("at_ms", json!(at.as_u64())),
        ("code", json!(code)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into_iter()
    .collect())
}

/// Sets the axes of a vector; `null` and 0 are off.
fn set_axes(policy: &mut Policy, axes: &Json) -> Result<()> {
    let keys = [
        "idle_ms",
        "first_ms",
        "total_ms",
        "no_progress_ms",
        "max_turns",
    ];
    let fields = Fields::new(axes, &keys)?;
    for key in keys.into_iter().filter(|key| axes.get(key).is_some()) {
        let limit = fields.millis(key)?.filter(|limit| *limit > Millis::ZERO);
        match key {
            "idle_ms" => policy.idle.window = limit,
            "first_ms" => policy.idle.first = limit.map_or(First::Off, First::After),
            "total_ms" => policy.total.budget = limit,
            "no_progress_ms" => policy.idle.ceiling = limit,
            _ => {
                let turns = fields.count(key)?.filter(|turns| *turns > 0);
                policy.turns.cap = turns.map(u32::try_from).transpose()?;
            }
        }
    }
    Ok(())
}
