//! One-way groups of runs: by source, harness, model or role.

use std::collections::BTreeMap;

use crate::run::{Fleet, Run};
use crate::sweep::sized_runs;

/// What runs can be grouped by.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum StratumKey {
    /// The log that wrote the run.
    Harness,
    /// The model of most turns.
    Model,
    /// The agent's role.
    Role,
    /// The source the run was found in.
    Source,
}

impl StratumKey {
    /// Every key.
    pub const ALL: [Self; 4] = [Self::Harness, Self::Model, Self::Role, Self::Source];

    /// The key's name in options, files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Harness => "harness",
            Self::Model => "model",
            Self::Role => "role",
            Self::Source => "source",
        }
    }

    /// The group of `run`; a run without that property is of the group `-`.
    pub fn group(self, run: &Run) -> &str {
        let value: &str = match self {
            Self::Harness => &run.harness,
            Self::Model => &run.model,
            Self::Role => &run.role,
            Self::Source => &run.source,
        };
        if value.is_empty() { "-" } else { value }
    }
}

/// The groups of a fleet's runs under some keys, and which groups each run is in.
#[derive(Clone, Debug, Default)]
pub struct Strata {
    groups: Vec<(StratumKey, String)>,
    of_run: Vec<Vec<usize>>,
}

impl Strata {
    /// Groups the sized runs of `fleet` one-way under each key; groups are sorted by key, then name.
    pub fn new(fleet: &Fleet, keys: &[StratumKey]) -> Self {
        let mut numbers: BTreeMap<(StratumKey, &str), usize> = BTreeMap::new();
        for run in sized_runs(fleet) {
            for &key in keys {
                numbers.insert((key, key.group(run)), 0);
            }
        }
        for (number, slot) in numbers.values_mut().enumerate() {
            *slot = number;
        }
        let of_run = sized_runs(fleet)
            .map(|run| {
                keys.iter()
                    .map(|&key| numbers[&(key, key.group(run))])
                    .collect()
            })
            .collect();
        Self {
            groups: numbers
                .keys()
                .map(|&(key, name)| (key, name.to_owned()))
                .collect(),
            of_run,
        }
    }

    /// The groups, by number.
    pub fn groups(&self) -> &[(StratumKey, String)] {
        &self.groups
    }

    /// The numbers of the groups that the sized run `index` is in, one per key.
    pub fn of_run(&self, index: usize) -> &[usize] {
        &self.of_run[index]
    }
}
