//! What the waits of one session and of one run have in common: slow ones come together.
//!
//! A Gaussian copula. The probability at which a wait reads its quantile function is moved by a normal score that its
//! session and run share, so that each wait keeps its distribution and only their togetherness changes.

use super::model::{Likeness, Ppm};
use super::rng::{Purpose, Stream};
use crate::stats::normal;

/// How one run's probabilities are moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    model: Option<Shift>,
    tool: Option<Shift>,
    turns: Option<Shift>,
}

#[derive(Clone, Copy, Debug)]
struct Shift {
    by: f64,
    scale: f64,
}

impl Pace {
    /// The pace of run number `run` of session number `session`.
    pub(super) fn new(likeness: Option<&Likeness>, seed: u64, session: u64, run: u64) -> Self {
        let Some(likeness) = likeness else {
            return Self::default();
        };
        let mut of_session = Stream::new(seed, session, Purpose::SessionPace);
        let mut of_run = Stream::new(seed, run, Purpose::RunPace);
        let mut shift = |session: Ppm, run: Ppm| {
            let (of_session, of_run) = (score(&mut of_session), score(&mut of_run));
            let (session, run) = (share(session), share(run));
            (session + run > 0.0).then(|| Shift {
                by: session.sqrt() * of_session + run.sqrt() * of_run,
                scale: (1.0 - session - run).sqrt(),
            })
        };
        Self {
            model: shift(likeness.model_session_ppm, likeness.model_run_ppm),
            tool: shift(likeness.tool_session_ppm, likeness.tool_run_ppm),
            turns: shift(likeness.turns_session_ppm, Ppm::default()),
        }
    }

    /// The probability of a wait for the model, or between pieces.
    pub(super) fn of_model(&self, p: f64) -> f64 {
        moved(self.model, p)
    }

    /// The probability of a call's duration.
    pub(super) fn of_tool(&self, p: f64) -> f64 {
        moved(self.tool, p)
    }

    /// The probability of a number of turns.
    pub(super) fn of_turns(&self, p: f64) -> f64 {
        moved(self.turns, p)
    }
}

fn moved(shift: Option<Shift>, p: f64) -> f64 {
    shift.map_or(p, |shift| {
        normal::cdf(shift.by + shift.scale * normal::quantile(p))
    })
}

fn share(ppm: Ppm) -> f64 {
    ppm.as_u64() as f64 / Ppm::WHOLE as f64
}

fn score(stream: &mut Stream) -> f64 {
    normal::quantile(stream.unit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Over many sessions a moved uniform is uniform again, and two of one session agree as they should.
    #[test]
    fn the_distribution_stays_and_the_correlation_comes() {
        let likeness = Likeness {
            model_session_ppm: 300_000.try_into().unwrap(),
            ..Likeness::default()
        };
        let mut counts = [0_u32; 10];
        let mut product = 0.0;
        let sessions = 20_000;
        for session in 0..sessions {
            let mut draws = Stream::new(5, session, Purpose::PreToken);
            let mut scores = [0.0; 2];
            for (run, score) in scores.iter_mut().enumerate() {
                let pace = Pace::new(Some(&likeness), 5, session, 2 * session + run as u64);
                let p = pace.of_model(draws.unit());
                counts[(p * 10.0) as usize] += 1;
                *score = normal::quantile(p);
            }
            product += scores[0] * scores[1];
        }
        // 4,000 expected each, standard deviation 60, somewhat more within pairs.
        assert!(
            counts.iter().all(|&n| (3700..4300).contains(&n)),
            "{counts:?}"
        );
        let correlation = product / sessions as f64;
        assert!((0.27..0.33).contains(&correlation), "{correlation}");
    }
}
