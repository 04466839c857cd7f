//! A small table from names to values, shared by every watchdog that is made from one policy.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Values by name: sorted, looked up by bisection, cheap to clone; an empty one holds no memory.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ByName<T>(Option<Arc<[Entry<T>]>>);

/// A name and its value.
type Entry<T> = (Box<str>, T);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> ByName<T> {
    /// No entry.
    pub const EMPTY: Self = Self(None);
}

impl<T: Clone> ByName<T> {
    /// The table of those entries; of entries with one name the last counts.
    pub fn new(entries: impl IntoIterator<Item = (impl Into<Box<str>>, T)>) -> Self {
        let mut table = Self::default();
        for (name, value) in entries {
            table.insert(&name.into(), value);
        }
        table
    }

    /// Sets the value of `name`, replacing an earlier one. Copies the table: for building, not for use per event.
    pub fn insert(&mut self, name: &str, value: T) {
        let mut entries: Vec<(Box<str>, T)> = self.entries().to_vec();
        match entries.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(i) => entries[i].1 = value,
            Err(i) => entries.insert(i, (name.into(), value)),
        }
        self.0 = Some(entries.into());
    }

    /// The entries in the order of their names.
    pub fn entries(&self) -> &[(Box<str>, T)] {
        self.0.as_deref().unwrap_or(&[])
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of `name`. Without entries no text is compared.
    pub fn find(&self, name: &str) -> Option<&T> {
        let place = self.position(name)?;
        Some(&self.entries()[place].1)
    }

    /// The place of `name` among the entries.
    pub fn position(&self, name: &str) -> Option<usize> {
        let entries = self.0.as_deref()?;
        entries
            .binary_search_by(|(known, _)| (**known).cmp(name))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_a_name_counts_and_order_is_by_name() {
        let table = ByName::new([("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(table.entries(), [("a".into(), 2), ("b".into(), 3)]);
        assert_eq!(table.find("b"), Some(&3));
        assert_eq!(table.find("c"), None);
    }

    #[test]
    fn empty_tables_are_equal_however_made() {
        assert_eq!(ByName::<u8>::new([] as [(&str, u8); 0]), ByName::default());
        assert!(ByName::<u8>::default().is_empty());
    }
}
