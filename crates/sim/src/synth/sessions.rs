//! Which population and which session a run belongs to.

use super::model::{Model, Population};
use super::rng::{Purpose, Stream};

/// Where populations are mixed, sessions are laid out block by block, so that any run's session is found without the
/// runs of other blocks; the last session of a block is cut short at its end.
const BLOCK: u64 = 4096;

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
    /// Every population has its share in each round of as many sessions as all weights are, and in every round its
    /// sessions have the sizes of their law; otherwise each session is drawn by itself.
    even: bool,
}

/// The most sessions of a round; beyond, sessions are drawn by themselves.
const ROUND_MAX: u64 = 4096;

impl<'m> Sessions<'m> {
    pub(super) fn new(model: &Model, populations: Vec<&'m Population>, even: bool) -> Self {
        let round: u64 = populations.iter().map(|one| u64::from(one.weight())).sum();
        Self {
            even: even && round <= ROUND_MAX,
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
        let mut round = Vec::new();
        loop {
            let (population, p) = if self.even {
                if round.is_empty() {
                    round = self.round(&mut stream);
                }
                round.pop().unwrap_or_default()
            } else {
                let weights = self.populations.iter();
                let population = stream.pick(weights.map(|one| u64::from(one.weight())));
                (population, stream.unit())
            };
            let size = match self.populations[population].runs_per_session() {
                Some(law) => law.value(p).max(1),
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

    /// The sessions of one round in random order: population, and the probability at which its size is read.
    fn round(&self, stream: &mut Stream) -> Vec<(usize, f64)> {
        let mut round = Vec::new();
        for (index, population) in self.populations.iter().enumerate() {
            let weight = population.weight();
            for part in 0..weight {
                let p = (f64::from(part) + stream.unit()) / f64::from(weight);
                round.push((index, p));
            }
        }
        for last in (1..round.len()).rev() {
            let other = stream.below(last as u64 + 1) as usize;
            round.swap(last, other);
        }
        round
    }
}
