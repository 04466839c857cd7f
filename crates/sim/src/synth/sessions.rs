//! Which population and which session a run belongs to.

use super::model::{Model, Population};
use super::rng::{Purpose, Stream};

/// Where populations are mixed, sessions are laid out block by block, so that any run's session is found without the
/// runs of other blocks; the last session of a block is cut short at its end.
const BLOCK: u64 = 2048;

/// Where a run belongs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Place {
    /// Index of its population.
    pub(super) population: usize,
    /// Number of its session, unique in the fleet.
    pub(super) session: u64,
}

/// The layout of sessions.
#[derive(Clone, Debug)]
pub(super) struct Sessions<'m> {
    populations: Vec<&'m Population>,
    runs_per_session: u64,
}

impl<'m> Sessions<'m> {
    pub(super) fn new(model: &Model, populations: Vec<&'m Population>) -> Self {
        Self {
            populations,
            runs_per_session: model.calendar().runs_per_session.max(1),
        }
    }

    /// The place of run number `run`.
    pub(super) fn place(&self, seed: u64, run: u64) -> Place {
        if self.populations.len() == 1 && self.populations[0].runs_per_session().is_none() {
            return Place {
                population: 0,
                session: run / self.runs_per_session,
            };
        }
        let block = run / BLOCK;
        let mut stream = Stream::new(seed, block, Purpose::Sessions);
        let mut first = block * BLOCK;
        loop {
            let weights = self.populations.iter();
            let population = stream.pick(weights.map(|one| u64::from(one.weight())));
            let size = match self.populations[population].runs_per_session() {
                Some(law) => law.value(stream.unit()).max(1),
                None => self.runs_per_session,
            };
            if run < first + size {
                return Place {
                    population,
                    session: first,
                };
            }
            first += size;
        }
    }
}
