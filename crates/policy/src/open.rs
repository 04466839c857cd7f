//! What the run waits for: the open calls, waits, backoffs and compactions.

use crate::clock::Clock;
use crate::inline_list::InlineList;
use crate::role::OpenKey;
use crate::{CallId, Millis, OpenClass};

/// One open thing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Item {
    pub(crate) key: OpenKey,
    pub(crate) class: OpenClass,
    pub(crate) id: CallId,
    /// Its own limit.
    pub(crate) limit: Clock,
    /// When it closes itself; [`Millis::MAX`] for never.
    pub(crate) closes_at: Millis,
}

impl Default for Item {
    fn default() -> Self {
        Self {
            key: OpenKey::Tool,
            class: OpenClass::Tool,
            id: CallId::NONE,
            limit: Clock::Off,
            closes_at: Millis::MAX,
        }
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Classes(u8);

impl Classes {
    pub(crate) const fn with(self, class: OpenClass) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    pub(crate) const fn without(self, class: OpenClass) -> Self {
        Self(self.0 & !(1 << class as u8))
    }

    pub(crate) const fn has(self, class: OpenClass) -> bool {
        self.0 & (1 << class as u8) != 0
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The open things, oldest first: a set by key and id.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Open {
    items: InlineList<Item, 4>,
    classes: Classes,
}

impl Open {
    /// More than this many are not followed, so that ends lost for ever cannot fill memory.
    pub(crate) const MAX: usize = 1024;

    /// The classes of which something is open.
    pub(crate) const fn classes(&self) -> Classes {
        self.classes
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= Self::MAX
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    pub(crate) fn items_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.items.iter_mut()
    }

    /// The thing at that place.
    pub(crate) fn item(&self, i: usize) -> Option<Item> {
        self.items.iter().nth(i).copied()
    }

    /// The place of the thing with that key and id.
    pub(crate) fn position(&self, key: OpenKey, id: CallId) -> Option<usize> {
        if !self.classes.has(key.class()) && !self.classes.has(OpenClass::Human) {
            return None;
        }
        self.items
            .iter()
            .position(|item| item.key == key && item.id == id)
    }

    /// The place of the oldest call.
    pub(crate) fn first_call(&self) -> Option<usize> {
        self.items.iter().position(|item| item.key == OpenKey::Tool)
    }

    /// Opens a thing; the caller has made sure that its key and id are not open.
    pub(crate) fn push(&mut self, item: Item) {
        self.classes = self.classes.with(item.class);
        self.items.push(item);
    }

    /// Closes the thing at that place.
    pub(crate) fn remove(&mut self, i: usize) -> Item {
        let item = self.items.remove(i);
        self.classes = self
            .items
            .iter()
            .fold(Classes::default(), |classes, item| classes.with(item.class));
        item
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.classes = Classes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: OpenKey, id: u64) -> Item {
        Item {
            key,
            class: key.class(),
            id: CallId::new(id),
            ..Item::default()
        }
    }

    #[test]
    fn one_id_can_name_a_call_and_its_approval() {
        let mut open = Open::default();
        open.push(item(OpenKey::Tool, 1));
        open.push(item(OpenKey::Approval, 1));
        assert_eq!(open.position(OpenKey::Approval, CallId::new(1)), Some(1));
        assert_eq!(open.position(OpenKey::HumanWait, CallId::new(1)), None);
        open.remove(0);
        assert!(!open.classes().has(OpenClass::Tool));
        assert!(open.classes().has(OpenClass::Human));
        open.remove(0);
        assert!(open.classes().is_empty());
        assert_eq!(open, Open::default());
    }

    #[test]
    fn a_class_is_open_until_its_last_thing_closes() {
        let mut open = Open::default();
        for id in 0..7 {
            open.push(item(OpenKey::Tool, id));
        }
        for left in (0..7).rev() {
            open.remove(open.first_call().unwrap_or_default());
            assert_eq!(open.classes().has(OpenClass::Tool), left > 0);
        }
    }
}
