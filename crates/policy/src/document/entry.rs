//! How each type of a policy's fields reads and writes a [`Value`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::keys::{self, Key};
use super::{KeyInfo, Shape, Value};
use crate::adaptive::Adaptive;
use crate::policy::{
    CallerDeadline, First, KillAction, KillScope, KindsOrRearm, LateSuccess, OnExpiry, Overlap,
    PhaseScope, Poll, RetrySchedule, Scope, ToolLimit, TurnStop, WaitMode, Waits,
};
use crate::{ByName, Kind, KindSet, Millis, PolicyError, duration, nearest};

/// The word for a limit that does not exist.
pub(super) const OFF: &str = "off";

/// A type of field that a document can hold.
pub(super) trait Entry: Sized {
    /// What may be written.
    const SHAPE: Shape;

    /// Reads it.
    fn read(key: &str, value: &Value) -> Result<Self, PolicyError>;

    /// Reads it where `self` stands: a table of fields keeps the fields that it does not name.
    fn read_over(&self, key: &str, value: &Value) -> Result<Self, PolicyError> {
        Self::read(key, value)
    }

    /// Writes it so that it reads back equal; `None` where nothing can be written.
    fn write(&self) -> Option<Value>;
}

fn mismatch(key: &str, value: &Value, shape: Shape) -> PolicyError {
    PolicyError::Mismatch {
        key: key.to_string(),
        found: value.to_string(),
        expected: shape.to_string(),
    }
}

/// Reads text or a mistaken bare number as a duration.
fn read_duration(key: &str, value: &Value, shape: Shape) -> Result<Millis, PolicyError> {
    let text = match value {
        Value::Text(text) => text.clone(),
        Value::Integer(_) | Value::Fraction(_) => value.to_string(),
        _ => return Err(mismatch(key, value, shape)),
    };
    duration::parse(&text).map_err(|error| PolicyError::Duration {
        key: key.to_string(),
        found: value.to_string(),
        error,
    })
}

/// Zero in any spelling: `0`, `"0"`, `"0s"`, `"0ms"`.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Integer(number) => *number == 0,
        Value::Text(text) => {
            text.trim() == "0" || duration::parse(text).is_ok_and(|span| span == Millis::ZERO)
        }
        _ => false,
    }
}

fn refuse_zero(key: &str, value: &Value) -> Result<(), PolicyError> {
    if is_zero(value) {
        return Err(PolicyError::Zero {
            key: key.to_string(),
            found: value.to_string(),
        });
    }
    Ok(())
}

impl Entry for Option<Millis> {
    const SHAPE: Shape = Shape::Limit;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        if value.as_text() == Some(OFF) {
            return Ok(None);
        }
        refuse_zero(key, value)?;
        read_duration(key, value, Self::SHAPE).map(Some)
    }

    fn write(&self) -> Option<Value> {
        Some(self.map_or(OFF.into(), |limit| Value::text(duration::show(limit))))
    }
}

impl Entry for Millis {
    const SHAPE: Shape = Shape::Span;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        read_duration(key, value, Self::SHAPE)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::text(duration::show(*self)))
    }
}

impl Entry for bool {
    const SHAPE: Shape = Shape::Flag;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(mismatch(key, value, Self::SHAPE)),
        }
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Bool(*self))
    }
}

/// A whole number from 0 to `max`.
pub(super) fn read_count(key: &str, value: &Value, max: u32) -> Result<u32, PolicyError> {
    match value {
        Value::Integer(number) if (0..=i64::from(max)).contains(number) => Ok(*number as u32),
        _ => Err(mismatch(key, value, Shape::Count { max })),
    }
}

macro_rules! counts {
    ($($type:ty: $max:expr;)*) => {$(
        impl Entry for $type {
            const SHAPE: Shape = Shape::Count { max: $max };

            fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
                read_count(key, value, $max).map(|count| count as Self)
            }

            fn write(&self) -> Option<Value> {
                Some(Value::Integer(i64::from(*self)))
            }
        }
    )*};
}

counts! {
    u8: 16;
    u16: 1000;
    u32: 1_000_000;
}

impl Entry for Option<u32> {
    const SHAPE: Shape = Shape::Cap;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        if value.as_text() == Some(OFF) {
            return Ok(None);
        }
        refuse_zero(key, value)?;
        match value {
            Value::Integer(number) => u32::try_from(*number)
                .map(Some)
                .map_err(|_| mismatch(key, value, Self::SHAPE)),
            _ => Err(mismatch(key, value, Self::SHAPE)),
        }
    }

    fn write(&self) -> Option<Value> {
        Some(self.map_or(OFF.into(), |cap| Value::Integer(i64::from(cap))))
    }
}

/// A type whose values are words.
trait Words: Copy + PartialEq + 'static {
    const ALL: &'static [Self];
    const NAMES: &'static [&'static str];
}

impl<T: Words> Entry for T {
    const SHAPE: Shape = Shape::Choice(T::NAMES);

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        T::NAMES
            .iter()
            .position(|name| value.as_text() == Some(name))
            .map(|at| T::ALL[at])
            .ok_or_else(|| mismatch(key, value, Self::SHAPE))
    }

    fn write(&self) -> Option<Value> {
        let at = T::ALL.iter().position(|value| value == self)?;
        Some(T::NAMES[at].into())
    }
}

macro_rules! words {
    ($($type:ident { $($name:literal = $value:ident),+ })*) => {$(
        impl Words for $type {
            const ALL: &'static [Self] = &[$(Self::$value),+];
            const NAMES: &'static [&'static str] = &[$($name),+];
        }
    )*};
}

words! {
    CallerDeadline { "adds" = Adds, "replaces" = Replaces }
    KillAction { "kill" = Kill, "notify" = Notify }
    KillScope { "tree" = Tree, "child" = Child }
    LateSuccess { "reject" = Reject, "accept" = Accept }
    OnExpiry { "still_running" = StillRunning, "failed" = Failed }
    Overlap { "set" = Set, "refuse" = Refuse }
    PhaseScope { "model_call" = ModelCall, "run" = Run }
    Scope { "segment" = Segment, "run" = Run }
    TurnStop { "next_start" = NextStart, "after_tools" = AfterTools }
    WaitMode { "all" = All, "any" = Any }
    Waits { "none" = None, "idle" = Idle, "all" = All }
}

/// A type that is one word or else another type.
fn word_or<T>(
    key: &str,
    value: &Value,
    word: &str,
    alone: T,
    other: impl FnOnce(&str, &Value) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    if value.as_text() == Some(word) {
        Ok(alone)
    } else {
        other(key, value)
    }
}

impl Entry for First {
    const SHAPE: Shape = Shape::LimitOr(&["window"]);

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        word_or(key, value, "window", Self::SameAsWindow, |key, value| {
            let limit = Option::<Millis>::read(key, value)?;
            Ok(limit.map_or(Self::Off, Self::After))
        })
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::SameAsWindow => Some("window".into()),
            Self::Off => None::<Millis>.write(),
            Self::After(window) => Some(*window).write(),
        }
    }
}

impl Entry for Poll {
    const SHAPE: Shape = Shape::SpanOr(&["exact", "tenth"]);

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        match value.as_text() {
            Some("exact") => Ok(Self::Exact),
            Some("tenth") => Ok(Self::Tenth),
            _ if is_zero(value) => Err(mismatch(key, value, Self::SHAPE)),
            _ => read_duration(key, value, Self::SHAPE).map(Self::Every),
        }
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Exact => Some("exact".into()),
            Self::Tenth => Some("tenth".into()),
            Self::Every(period) => period.write(),
        }
    }
}

impl Entry for KindSet {
    const SHAPE: Shape = Shape::Kinds;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        let items: Vec<&str> = match value {
            Value::Text(text) => [text.as_str()].into(),
            Value::List(items) => items
                .iter()
                .map(|item| {
                    item.as_text()
                        .ok_or_else(|| mismatch(key, item, Self::SHAPE))
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(mismatch(key, value, Self::SHAPE)),
        };
        Self::from_items(items).map_err(|unknown| {
            let known = Self::NAMED
                .into_iter()
                .map(|(name, _)| name)
                .chain(Kind::ALL.iter().map(|kind| kind.name()));
            PolicyError::UnknownKind {
                key: key.to_string(),
                nearest: nearest(&unknown.item, known),
                found: unknown.item,
            }
        })
    }

    fn write(&self) -> Option<Value> {
        let mut items = self.to_items();
        if items.len() == 1 {
            return items.pop().map(Value::Text);
        }
        Some(Value::texts(items))
    }
}

impl Entry for KindsOrRearm {
    const SHAPE: Shape = Shape::KindsOr(&["rearm"]);

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        word_or(key, value, "rearm", Self::Rearm, |key, value| {
            KindSet::read(key, value).map(Self::Kinds)
        })
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Rearm => Some("rearm".into()),
            Self::Kinds(kinds) => kinds.write(),
        }
    }
}

impl Entry for ByName<()> {
    const SHAPE: Shape = Shape::Names;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        let Value::List(items) = value else {
            return Err(mismatch(key, value, Self::SHAPE));
        };
        let mut names = Self::default();
        for item in items {
            match item.as_text().filter(|name| !name.is_empty()) {
                Some(name) => names.insert(name, ()),
                None => return Err(mismatch(key, item, Self::SHAPE)),
            }
        }
        Ok(names)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::texts(
            self.entries().iter().map(|(name, ())| &**name),
        ))
    }
}

impl Entry for ByName<Option<u32>> {
    const SHAPE: Shape = Shape::CapByName;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        let Value::Table(entries) = value else {
            return Err(mismatch(key, value, Self::SHAPE));
        };
        let mut caps = Self::default();
        for (name, cap) in entries {
            caps.insert(name, Entry::read(&format!("{key}.{name}"), cap)?);
        }
        Ok(caps)
    }

    fn write(&self) -> Option<Value> {
        write_by_name(self).map(Value::Table)
    }
}

fn write_by_name<T: Entry + Clone>(entries: &ByName<T>) -> Option<Vec<(String, Value)>> {
    entries
        .entries()
        .iter()
        .map(|(name, value)| Some((name.to_string(), value.write()?)))
        .collect()
}

/// The entry of a table of tool limits that every other tool has.
const DEFAULT: &str = "default";

impl Entry for ToolLimit {
    const SHAPE: Shape = Shape::LimitByName;

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        let Value::Table(entries) = value else {
            let default = Entry::read(key, value)?;
            return Ok(Self {
                default,
                by_name: ByName::EMPTY,
            });
        };
        let mut limits = Self::default();
        for (name, limit) in entries {
            let limit = Entry::read(&format!("{key}.{name}"), limit)?;
            if name == DEFAULT {
                limits.default = limit;
            } else {
                limits.by_name.insert(name, limit);
            }
        }
        Ok(limits)
    }

    fn write(&self) -> Option<Value> {
        if self.by_name.is_empty() {
            return self.default.write();
        }
        let mut entries = write_by_name(&self.by_name)?;
        entries.insert(0, (DEFAULT.to_string(), self.default.write()?));
        Some(Value::Table(entries))
    }
}

/// A table with keys of its own, over `start`.
fn read_fields<T>(
    key: &str,
    value: &Value,
    shape: Shape,
    fields: &[Key<T>],
    mut start: T,
) -> Result<T, PolicyError> {
    let Value::Table(entries) = value else {
        return Err(mismatch(key, value, shape));
    };
    for (name, _) in entries {
        if !fields.iter().any(|field| field.info.path == name) {
            let near = nearest(name, fields.iter().map(|field| field.info.path));
            return Err(PolicyError::UnknownKey {
                key: format!("{key}.{name}"),
                nearest: near.map(|near| format!("{key}.{near}")),
            });
        }
    }
    // In the order of the table of fields, so that what a field depends on is read before it.
    for field in fields {
        if let Some((name, value)) = entries.iter().find(|(name, _)| name == field.info.path) {
            (field.set)(&mut start, &format!("{key}.{name}"), value)?;
        }
    }
    Ok(start)
}

fn write_fields<T>(fields: &[Key<T>], from: &T) -> Value {
    Value::Table(
        fields
            .iter()
            .filter_map(|field| Some((field.info.path.to_string(), (field.get)(from)?)))
            .collect(),
    )
}

fn infos<T>(fields: &[Key<T>]) -> Vec<KeyInfo> {
    fields.iter().map(|field| field.info).collect()
}

impl Entry for Option<RetrySchedule> {
    const SHAPE: Shape = Shape::Fields(|| infos(keys::SCHEDULE));

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        None.read_over(key, value)
    }

    fn read_over(&self, key: &str, value: &Value) -> Result<Self, PolicyError> {
        word_or(key, value, OFF, None, |key, value| {
            let start = self.unwrap_or(keys::EMPTY_SCHEDULE);
            read_fields(key, value, Self::SHAPE, keys::SCHEDULE, start).map(Some)
        })
    }

    fn write(&self) -> Option<Value> {
        let fields = |schedule| write_fields(keys::SCHEDULE, schedule);
        Some(self.as_ref().map_or(OFF.into(), fields))
    }
}

impl Entry for Option<Adaptive> {
    const SHAPE: Shape = Shape::Fields(|| infos(keys::ADAPTIVE));

    fn read(key: &str, value: &Value) -> Result<Self, PolicyError> {
        None.read_over(key, value)
    }

    fn read_over(&self, key: &str, value: &Value) -> Result<Self, PolicyError> {
        word_or(key, value, OFF, None, |key, value| {
            let start = self.unwrap_or(keys::ADAPTIVE_START);
            read_fields(key, value, Self::SHAPE, keys::ADAPTIVE, start).map(Some)
        })
    }

    fn write(&self) -> Option<Value> {
        let fields = |adaptive| write_fields(keys::ADAPTIVE, adaptive);
        Some(self.as_ref().map_or(OFF.into(), fields))
    }
}
