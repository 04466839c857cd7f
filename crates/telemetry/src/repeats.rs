//! Records that several sources hold: a session that was forked or copied brings its past along.

use std::collections::BTreeMap;

use crate::hashed::HashedMap;

/// How many records are remembered. Further ones are not looked for, so that memory stays bounded.
const REMEMBERED: usize = 2_000_000;

/// The records of the sources read so far.
#[derive(Debug)]
pub(crate) struct Records {
    /// The source that brought a record first, and its stamp there.
    first: HashedMap<(u32, i64)>,
    repeats: BTreeMap<(u32, u32), Repeat>,
    source: u32,
    count_once: bool,
    remembered: usize,
    forgotten: u64,
}

/// What one source repeats of another.
#[derive(Clone, Copy, Debug, Default)]
struct Repeat {
    n_records: u64,
    n_later: u64,
}

impl Records {
    /// No record yet. With `count_once` a record counts in the first source that brings it only.
    pub(crate) fn new(count_once: bool) -> Self {
        Self::remembering(count_once, REMEMBERED)
    }

    fn remembering(count_once: bool, remembered: usize) -> Self {
        Self {
            first: HashedMap::default(),
            repeats: BTreeMap::new(),
            source: 0,
            count_once,
            remembered,
            forgotten: 0,
        }
    }

    /// The records that follow are those of source number `source`.
    pub(crate) fn begin_source(&mut self, source: usize) {
        self.source = u32::try_from(source).unwrap_or(u32::MAX);
    }

    /// Notes a record; whether it counts elsewhere.
    pub(crate) fn is_elsewhere(&mut self, record: u64, stamp_ms: i64) -> bool {
        let Some(&(source, stamp)) = self.first.get(&record) else {
            if self.first.len() < self.remembered {
                self.first.insert(record, (self.source, stamp_ms));
            } else {
                self.forgotten += 1;
            }
            return false;
        };
        if source == self.source {
            return false;
        }
        let repeat = self.repeats.entry((source, self.source)).or_default();
        repeat.n_records += 1;
        repeat.n_later += u64::from(stamp_ms > stamp);
        self.count_once
    }

    /// One sentence per pair of sources, by the names that `name` gives to their numbers.
    pub(crate) fn notes<'n>(&self, name: impl Fn(usize) -> &'n str) -> Vec<String> {
        let counted = if self.count_once {
            "counted once"
        } else {
            "counted twice; --dedupe counts them once"
        };
        let mut notes: Vec<String> = self
            .repeats
            .iter()
            .map(|(&(first, other), repeat)| {
                let later = match repeat.n_later {
                    0 => String::new(),
                    n => format!(", {n} of them with a later stamp"),
                };
                format!(
                    "'{}' repeats {} record(s) of '{}'{later}: {counted}",
                    name(other as usize),
                    repeat.n_records,
                    name(first as usize),
                )
            })
            .collect();
        if self.forgotten > 0 {
            notes.push(format!(
                "only the first {} records were looked for in other sources; {} more were not",
                self.remembered, self.forgotten
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_said() {
        let mut records = Records::remembering(true, 2);
        for record in 0..5 {
            assert!(!records.is_elsewhere(record, 0));
        }
        records.begin_source(1);
        assert!(records.is_elsewhere(1, 7));
        assert!(!records.is_elsewhere(4, 7));
        let notes = records.notes(|source| ["a", "b"][source]);
        assert_eq!(
            notes,
            [
                "'b' repeats 1 record(s) of 'a', 1 of them with a later stamp: counted once",
                "only the first 2 records were looked for in other sources; 4 more were not",
            ]
        );
    }
}
