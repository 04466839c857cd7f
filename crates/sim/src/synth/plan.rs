//! The plan of a run: everything about it that is counted, nothing that takes time.
//!
//! Plans are drawn from streams of their own, so that the number of pre-token waits of every run is
//! known before any of them is drawn.

use super::model::{Population, Ppm};
use super::pace::Pace;
use super::rng::{Purpose, Stream};

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

impl Plan {
    /// The plan of run number `run`.
    pub(super) fn new(
        population: &Population,
        pace: &Pace,
        seed: u64,
        run: u64,
        session: u64,
    ) -> Self {
        let mut shape = Stream::new(seed, run, Purpose::Shape);
        let roles = &population.roles().list;
        let role = shape.pick(roles.iter().map(|role| u64::from(role.weight)));
        let models = &population.models().list;
        let weights = models.iter().map(|model| u64::from(model.weight));
        // Where sessions have a size of their own, they have a model of their own too.
        let model = if population.runs_per_session().is_some() {
            Stream::new(seed, session, Purpose::SessionModel).pick(weights)
        } else {
            shape.pick(weights)
        };
        let turns = population.turns_of(&roles[role]);
        let turns = turns
            .map_or(1, |turns| turns.value(pace.of_turns(shape.unit())))
            .max(1);
        let mut fate = drawn_fate(population, &mut shape);
        let turns = match fate {
            Fate::Completed => turns,
            Fate::Looped => {
                let law = population.ends().looped_turns.as_ref();
                law.map_or(turns, |law| law.value(shape.unit()).max(1))
            }
            _ if population.ends().turns_as_recorded => turns + u64::from(fate.before_output()),
            // An ending that comes before the output of its turn needs a turn before it.
            _ if fate.before_output() => 2 + shape.below(turns.max(2) - 1),
            _ => 1 + shape.below(turns),
        };
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
            role,
            model,
            fate,
            failures,
        }
    }

    /// The waits recorded as `pre_token`: of turns that reach an output without a failed call.
    pub(super) fn pre_token_waits(&self) -> u64 {
        let cut = usize::from(self.fate.before_output());
        let reached = &self.failures[..self.failures.len() - cut];
        reached.iter().filter(|&&failed| failed == 0).count() as u64
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
