//! The plan of a run: everything about it that is counted, nothing that takes time.
//!
//! Plans are drawn from streams of their own, so that the draws of every run are counted before any time is drawn.

use super::model::{Population, Ppm};
use super::pace::Pace;
use super::rng::{Purpose, Stream};
use super::spread::{Draws, Use};

/// How a run ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    Completed,
    Failed,
    HungBeforeOutput,
    HungMidStream,
    HungInTool,
    Aborted,
    OpenInModel,
    OpenInTool,
    Looped,
}

impl Fate {
    /// In the order of [`super::Ends`].
    const BAD: [Self; 7] = [
        Self::HungBeforeOutput,
        Self::HungMidStream,
        Self::HungInTool,
        Self::Aborted,
        Self::OpenInModel,
        Self::OpenInTool,
        Self::Looped,
    ];

    /// The last turn is cut before it has any output.
    const fn before_output(self) -> bool {
        matches!(
            self,
            Self::HungBeforeOutput | Self::Aborted | Self::OpenInModel | Self::Failed
        )
    }
}

/// What is counted of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Plan {
    /// Index into the population's roles.
    pub(super) role: usize,
    /// Index into the population's models.
    pub(super) model: usize,
    /// How it ends, in its last turn.
    pub(super) fate: Fate,
    /// Of each turn, the provider calls that fail in it.
    pub(super) failures: Vec<u32>,
}

/// What is known of a run before its turns are.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) role: usize,
    pub(super) model: usize,
    /// How it ends, unless its provider calls fail too often.
    pub(super) fate: Fate,
    /// Where its number of turns stands within its stratum.
    turns_u: f64,
    stream: Stream,
}

impl Shape {
    /// The shape of run number `run`.
    pub(super) fn new(population: &Population, seed: u64, run: u64, session: u64) -> Self {
        let mut stream = Stream::new(seed, run, Purpose::Shape);
        let roles = &population.roles().list;
        let role = stream.pick(roles.iter().map(|role| u64::from(role.weight)));
        let models = &population.models().list;
        let weights = models.iter().map(|model| u64::from(model.weight));
        // Where sessions have a size of their own, they have a model of their own too.
        let model = if population.runs_per_session().is_some() {
            Stream::new(seed, session, Purpose::SessionModel).pick(weights)
        } else {
            stream.pick(weights)
        };
        // drawn where there is a law, because the draws after it are part of what a seed means
        let turns_u = match population.turns_of(&roles[role]) {
            Some(_) => stream.unit(),
            None => 0.0,
        };
        let fate = drawn_fate(population, &mut stream);
        Self {
            role,
            model,
            fate,
            turns_u,
            stream,
        }
    }

    /// Its number of turns is the one that is drawn, whole.
    pub(super) fn keeps_turns(&self, population: &Population) -> bool {
        match self.fate {
            Fate::Completed => true,
            Fate::Looped => false,
            _ => population.ends().turns_as_recorded,
        }
    }

    /// The number of turns that it is to have.
    fn turns(&mut self, population: &Population, pace: &Pace, draws: &mut Draws<'_>) -> u64 {
        let turns = population.turns_of(&population.roles().list[self.role]);
        let u = if self.keeps_turns(population) {
            draws.place(Use::Turns, self.turns_u)
        } else {
            self.turns_u
        };
        let turns = turns
            .map_or(1, |turns| turns.value(pace.of_turns(u)))
            .max(1);
        match self.fate {
            Fate::Completed => turns,
            Fate::Looped => population
                .ends()
                .looped_turns
                .as_ref()
                .map_or(turns, |law| {
                    let p = draws.place(Use::LoopedTurns, self.stream.unit());
                    law.value(p).max(1)
                }),
            _ if population.ends().turns_as_recorded => {
                turns + u64::from(self.fate.before_output())
            }
            // An ending that comes before the output of its turn needs a turn before it.
            _ if self.fate.before_output() => 2 + self.stream.below(turns.max(2) - 1),
            _ => 1 + self.stream.below(turns),
        }
    }
}

impl Plan {
    /// The plan of run number `run`, of that shape.
    pub(super) fn new(
        population: &Population,
        pace: &Pace,
        mut shape: Shape,
        seed: u64,
        run: u64,
        draws: &mut Draws<'_>,
    ) -> Self {
        let turns = shape.turns(population, pace, draws);
        let mut fate = shape.fate;
        let mut stream = Stream::new(seed, run, Purpose::Failures);
        let mut failures = Vec::with_capacity(turns as usize);
        for turn in 0..turns {
            let failed = failed_calls(population, turn, &mut stream);
            failures.push(failed);
            if turn > 0
                && population
                    .retry()
                    .is_some_and(|retry| failed == retry.failures_max)
            {
                fate = Fate::Failed;
                break;
            }
        }
        Self {
            role: shape.role,
            model: shape.model,
            fate,
            failures,
        }
    }

    /// The waits recorded as `pre_token`: of turns that reach an output without a failed call.
    pub(super) fn pre_token_waits(&self) -> u64 {
        let reached = &self.failures[..self.answers() as usize];
        reached.iter().filter(|&&failed| failed == 0).count() as u64
    }

    /// The turns that reach an output.
    pub(super) fn answers(&self) -> u64 {
        self.failures.len() as u64 - u64::from(self.fate.before_output())
    }
}

fn drawn_fate(population: &Population, shape: &mut Stream) -> Fate {
    let mut rest = shape.below(Ppm::WHOLE);
    for (fate, share) in Fate::BAD.into_iter().zip(population.ends().shares()) {
        if rest < share {
            return fate;
        }
        rest -= share;
    }
    Fate::Completed
}

/// The provider calls that fail in a turn. The first turn always reaches its output: without one
/// the run would be none.
fn failed_calls(population: &Population, turn: u64, stream: &mut Stream) -> u32 {
    let Some(retry) = population.retry() else {
        return 0;
    };
    let max = if turn == 0 {
        retry.failures_max - 1
    } else {
        retry.failures_max
    };
    let mut failed = 0;
    while failed < max {
        let share = if failed == 0 {
            retry.turn_share_ppm
        } else {
            retry.again_ppm
        };
        if !stream.chance(share) {
            break;
        }
        failed += 1;
    }
    failed
}
