//! `parents = { … }`: the parents of simulated settlement, by the options of `settle`.

use policysim_policy::document::Value;
use policysim_policy::{Millis, WaitMode, nearest};
use policysim_sim::gate::Parents;
use policysim_sim::settle::{Changes, Habits, Reaction};

use super::fields::Field;
use super::keys::{PARENT_KEYS, hint};
use crate::commands::settle::{MAX_HORIZON, ppm};

/// The most of anything that is counted, as `settle` takes it.
const MOST: i64 = 1000;

/// How `judge` is told from the other reactions before its number is known.
const UNCHANGED: u32 = 2;

/// The names of the reactions, and what they are.
pub(super) const REACTIONS: [Reaction; 5] = [
    Reaction::WaitAgain,
    Reaction::ReadAsFailure,
    Reaction::CloseTurn,
    Reaction::Stop,
    Reaction::Judge {
        unchanged: UNCHANGED,
    },
];

/// The modes of a wait by name.
pub(super) const MODES: [(&str, WaitMode); 2] = [("all", WaitMode::All), ("any", WaitMode::Any)];

/// The parents that a rule describes, with its words.
pub(super) fn parents(field: &Field) -> Result<(Parents, String), String> {
    let Value::Table(entries) = &field.value else {
        return Err(format!(
            "parents: {} is not a table such as {{ wait = \"600s\", mode = \"any\" }}",
            field.value
        ));
    };
    let mut habits = Habits::default();
    let mut changes = Changes::default();
    let mut unchanged = None;
    let mut words = Vec::new();
    for (key, value) in entries {
        let entry = Field {
            key: format!("parents.{key}"),
            value: value.clone(),
            at: field.at,
        };
        match key.as_str() {
            "wait" => habits.wait = Some(entry.span()?),
            "mode" => {
                let word = entry.word(&MODES.map(|(name, _)| name))?;
                habits.mode = MODES
                    .iter()
                    .find(|(name, _)| *name == word)
                    .map(|(_, mode)| *mode);
            }
            "min_completed" => habits.min_completed = entry.count(MOST)?,
            "on_expiry" => {
                let word = entry.word(&REACTIONS.map(Reaction::name))?;
                habits.on_expiry = REACTIONS.into_iter().find(|known| known.name() == word);
            }
            "unchanged" => unchanged = Some(entry.count(MOST)?),
            "tasks" => habits.tasks = entry.count(MOST)?,
            "cap" => habits.cap = entry.count(MOST)?,
            "spawn_every" => habits.spawn_every = entry.span_or_none()?,
            "think" => habits.think = entry.span_or_none()?,
            "unwinding" => habits.unwinding = entry.span_or_none()?,
            "hang_rate" => {
                changes.hang_ppm =
                    ppm(&entry.key, &entry.written()).map_err(|error| format!("{error:#}"))?;
            }
            "nested" => {
                changes.nested_ppm =
                    ppm(&entry.key, &entry.written()).map_err(|error| format!("{error:#}"))?;
            }
            "horizon" => {
                let horizon = entry.span()?;
                if horizon > MAX_HORIZON {
                    return Err(format!(
                        "{}: {} is longer than 1000d",
                        entry.key,
                        entry.written()
                    ));
                }
                habits.horizon = horizon;
            }
            unknown => {
                let near = hint(nearest(unknown, PARENT_KEYS.iter().map(|(name, _)| *name)));
                return Err(format!("parents: unknown key {unknown}{near}"));
            }
        }
        words.push(format!("{key} {}", entry.written()));
    }
    match (&mut habits.on_expiry, unchanged) {
        (Some(Reaction::Judge { unchanged: times }), Some(given)) => *times = given,
        (_, Some(_)) => {
            return Err(
                "parents: unchanged says when judge stops a delegate: set on_expiry = \"judge\" as well"
                    .to_owned(),
            );
        }
        (_, None) => {}
    }
    Ok((Parents { habits, changes }, words.join(", ")))
}

impl Field {
    /// A whole number from 1 to `most`.
    fn count(&self, most: i64) -> Result<u32, String> {
        let count = match &self.value {
            Value::Integer(number) if (1..=most).contains(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        count.ok_or_else(|| {
            format!(
                "{}: {} is not a whole number from 1 to {most}",
                self.key, self.value
            )
        })
    }

    /// A duration, or none.
    fn span_or_none(&self) -> Result<Millis, String> {
        match self.written().as_str() {
            "0s" | "0ms" => Ok(Millis::ZERO),
            _ => self.span(),
        }
    }
}
