//! Sets of event kinds, as policies name them: what re-arms, what is progress, what is throttled.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::{ByName, Kind};

/// A set of kinds: one bit per kind, plus named exceptions among [`Kind::Other`].
///
/// ```
/// use policysim_policy::{Kind, KindSet};
/// let set = KindSet::from_items(["all", "-status", "-other:ui"]).unwrap();
/// assert!(set.holds(Kind::MessageUpdate, ""));
/// assert!(!set.holds(Kind::Status, ""));
/// assert!(set.holds(Kind::Other, "prompt") && !set.holds(Kind::Other, "ui"));
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct KindSet {
    bits: u64,
    others: ByName<bool>,
}

/// An item of a kind list that names neither a kind nor a set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownKind {
    /// The item as written, without its `-`.
    pub item: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown event kind `{}`, expected a kind, all, deltas, output, substantive, none or other:NAME",
            self.item
        )
    }
}

impl core::error::Error for UnknownKind {}

const fn bits_of(kinds: &[Kind]) -> u64 {
    let mut bits = 0;
    let mut i = 0;
    while i < kinds.len() {
        bits |= 1 << kinds[i] as u64;
        i += 1;
    }
    bits
}

const ALL: u64 = (1 << Kind::ALL.len()) - 1;
const DELTAS: u64 = ALL & !bits_of(&[Kind::Keepalive, Kind::Status, Kind::Heartbeat, Kind::Other]);
const OUTPUT: u64 =
    DELTAS & !bits_of(&[Kind::ThinkingUpdate, Kind::ToolArgsUpdate, Kind::Progress]);
const SUBSTANTIVE: u64 = bits_of(&[
    Kind::MessageUpdate,
    Kind::ThinkingUpdate,
    Kind::ToolArgsUpdate,
    Kind::MessageEnd,
    Kind::ToolStart,
    Kind::ToolUpdate,
    Kind::ToolEnd,
    Kind::Progress,
]);

impl KindSet {
    /// No kind.
    pub const NONE: Self = Self::of(0);
    /// Every kind.
    pub const ALL: Self = Self::of(ALL);
    /// All but content-free beats and bookkeeping (`keepalive status heartbeat other`).
    pub const DELTAS: Self = Self::of(DELTAS);
    /// The deltas but hidden ones (`thinking_update tool_args_update progress`).
    pub const OUTPUT: Self = Self::of(OUTPUT);
    /// What carries content: pieces and ends of messages, a tool's lifecycle, progress.
    pub const SUBSTANTIVE: Self = Self::of(SUBSTANTIVE);

    /// The sets that have a name, with it.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("all", Self::ALL),
        ("deltas", Self::DELTAS),
        ("output", Self::OUTPUT),
        ("substantive", Self::SUBSTANTIVE),
        ("none", Self::NONE),
    ];

    const fn of(bits: u64) -> Self {
        Self {
            bits,
            others: ByName::EMPTY,
        }
    }

    /// The set of exactly these kinds.
    pub const fn of_kinds(kinds: &[Kind]) -> Self {
        Self::of(bits_of(kinds))
    }

    /// The set that a list means: each item a kind, a named set or `other:NAME`, a leading `-` takes away,
    /// and for every kind the last item that matches decides.
    ///
    /// # Errors
    /// [`UnknownKind`] for an item that is none of these.
    pub fn from_items<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownKind> {
        let mut set = Self::NONE;
        for item in items {
            let (name, adds) = match item.strip_prefix('-') {
                Some(name) => (name, false),
                None => (item, true),
            };
            if let Some(other) = name.strip_prefix("other:") {
                set.others.insert(other, adds);
                continue;
            }
            let bits = Self::bits_named(name).ok_or_else(|| UnknownKind {
                item: name.to_string(),
            })?;
            if bits & bits_of(&[Kind::Other]) != 0 {
                set.others = ByName::EMPTY;
            }
            set.bits = if adds {
                set.bits | bits
            } else {
                set.bits & !bits
            };
        }
        Ok(set.without_idle_exceptions())
    }

    fn bits_named(name: &str) -> Option<u64> {
        Self::NAMED
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, set)| set.bits)
            .or_else(|| Kind::from_name(name).map(|kind| bits_of(&[kind])))
    }

    /// Drops exceptions that say what the bit of `other` says already, so that equal sets compare equal.
    fn without_idle_exceptions(self) -> Self {
        let base = self.has(Kind::Other);
        let told: Vec<(Box<str>, bool)> = self
            .others
            .entries()
            .iter()
            .filter(|(_, holds)| *holds != base)
            .cloned()
            .collect();
        Self {
            bits: self.bits,
            others: ByName::new(told),
        }
    }

    /// A list that means this set, as short as naming allows: the base set closest to it, then what differs.
    pub fn to_items(&self) -> Vec<String> {
        // "none" comes last in NAMED, so a set far from every name is a plain list of kinds.
        let (base_name, base) = Self::NAMED
            .iter()
            .rev()
            .min_by_key(|(_, named)| (named.bits ^ self.bits).count_ones())
            .map_or(("none", 0), |(name, set)| (*name, set.bits));
        let mut items = Vec::new();
        if base_name != "none" || (self.bits == 0 && self.others.is_empty()) {
            items.push(base_name.to_string());
        }
        for kind in Kind::ALL {
            let bit = bits_of(&[kind]);
            if self.bits & bit != 0 && base & bit == 0 {
                items.push(kind.name().to_string());
            } else if self.bits & bit == 0 && base & bit != 0 {
                items.push(format!("-{kind}"));
            }
        }
        for (name, holds) in self.others.entries() {
            items.push(format!("{}other:{name}", if *holds { "" } else { "-" }));
        }
        items
    }

    /// The kinds as bits, named exceptions aside.
    pub(crate) const fn bits(&self) -> u64 {
        self.bits
    }

    /// Whether the kind itself is in the set, named exceptions aside.
    pub const fn has(&self, kind: Kind) -> bool {
        self.bits & (1 << kind as u64) != 0
    }

    /// Whether an event of that kind and name is in the set.
    pub fn holds(&self, kind: Kind, name: &str) -> bool {
        if matches!(kind, Kind::Other)
            && let Some(&holds) = self.others.find(name)
        {
            return holds;
        }
        self.has(kind)
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.bits == 0 && self.others.entries().iter().all(|(_, holds)| !holds)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn set(items: &[&str]) -> KindSet {
        KindSet::from_items(items.iter().copied()).unwrap()
    }

    #[test]
    fn the_last_matching_item_decides() {
        let set = set(&[
            "all", "-status", "status", "-other", "other:a", "other:b", "-other:b",
        ]);
        assert!(set.has(Kind::Status));
        assert!(set.holds(Kind::Other, "a"));
        assert!(!set.holds(Kind::Other, "b") && !set.holds(Kind::Other, "c"));
        assert!(!self::set(&["other:a", "-other"]).holds(Kind::Other, "a"));
        assert!(self::set(&["-other:a", "all"]).holds(Kind::Other, "a"));
    }

    #[test]
    fn named_sets_hold_what_the_contract_lists() {
        for (name, expected) in [
            (
                "deltas",
                ["keepalive", "status", "heartbeat", "other"].as_slice(),
            ),
            (
                "output",
                &[
                    "keepalive",
                    "status",
                    "heartbeat",
                    "other",
                    "thinking_update",
                    "tool_args_update",
                    "progress",
                ],
            ),
        ] {
            let set = set(&[name]);
            let missing: Vec<&str> = Kind::ALL
                .iter()
                .filter(|k| !set.has(**k))
                .map(|k| k.name())
                .collect();
            let mut expected = expected.to_vec();
            expected.sort_by_key(|name| Kind::from_name(name).unwrap());
            assert_eq!(missing, expected, "{name}");
        }
    }

    #[test]
    fn a_written_list_reads_back() {
        for items in [
            &["all", "-status", "-other:ui"][..],
            &["none"],
            &["tool_update"],
            &["output", "other:x"],
            &["stdout", "process_start", "session_advance"],
            &["other:x"],
        ] {
            let set = set(items);
            let written = set.to_items();
            assert_eq!(
                KindSet::from_items(written.iter().map(String::as_str)).unwrap(),
                set,
                "{written:?}"
            );
        }
        assert_eq!(set(&["all", "-status"]).to_items(), ["all", "-status"]);
        assert_eq!(set(&["tool_update"]).to_items(), ["tool_update"]);
        assert_eq!(set(&[]).to_items(), ["none"]);
    }

    #[test]
    fn an_unknown_item_is_named() {
        assert_eq!(
            KindSet::from_items(["all", "-statuss"]).unwrap_err().item,
            "statuss"
        );
    }
}
