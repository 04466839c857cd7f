//! Answers held against replays: random runs under random candidates of a sweep, each fed to the core directly.

use std::fmt;

use policysim_policy::Cause;

use crate::judgement::Judgement;
use crate::life::Life;
use crate::plan::Plan;
use crate::replay::replay;
use crate::run::{RunStatus, Symbols};
use crate::scan::{Batch, RunView, Scan};
use crate::staircase::{Answer, Crossings};
use crate::sweep::{Candidate, Question};

/// What was held against replays.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Verified {
    /// Pairs of a run and a candidate.
    pub pairs: u64,
    /// Of these, answered from the pass; the others were replays to begin with.
    pub answered: u64,
}

/// An answer that no replay gives: a fault of this program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Difference {
    /// The run's name.
    pub run: String,
    /// The candidate's settings.
    pub candidate: String,
    /// What the sweep was told.
    pub told: Ending,
    /// What the replay says.
    pub replayed: Ending,
}

/// How a run ends under a policy, and the record's word on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ending {
    /// What ends it.
    pub cause: Cause,
    /// When, ms.
    pub at_ms: u64,
    /// The word on it.
    pub judgement: Judgement,
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.judgement.name();
        write!(out, "{} at {} ms, {word}", self.cause, self.at_ms)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the sweep and a replay differ on run {} under {}: the sweep has {}, the replay {}",
            self.run, self.candidate, self.told, self.replayed
        )
    }
}

impl std::error::Error for Difference {}

/// Why a sweep cannot be verified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VerifyError<E> {
    /// The runs cannot be read.
    Source(E),
    /// An answer is wrong.
    Differs(Box<Difference>),
}

/// Replays `pairs` pairs of a sized run and a candidate, drawn by `seed`, and compares cause, millisecond and judgement
/// with what a sweep is told.
///
/// # Errors
/// The first difference, in the order of the runs; or what the source says.
pub fn verify<S: Scan>(
    source: &S,
    question: &Question<'_>,
    pairs: u64,
    seed: u64,
) -> Result<Verified, VerifyError<S::Error>> {
    let mut verified = Verified::default();
    let (batches, candidates) = (source.batches() as u64, question.candidates);
    if batches == 0 || candidates.is_empty() {
        return Ok(verified);
    }
    let plan = Plan::new(question.base, candidates);
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut drawn: Vec<[u64; 3]> = (0..pairs)
        .map(|_| [draw() % batches, draw(), draw() % candidates.len() as u64])
        .collect();
    drawn.sort_unstable();
    let mut scratch = Batch::default();
    let mut rest = drawn.as_slice();
    while let Some(&[number, ..]) = rest.first() {
        let same = rest.partition_point(|pair| pair[0] == number);
        let (here, later) = rest.split_at(same);
        rest = later;
        let batch = source.read(number as usize, &mut scratch);
        let batch = batch.map_err(VerifyError::Source)?;
        let sized = |run: &RunView<'_>| run.head.status == RunStatus::Run;
        let runs: Vec<RunView<'_>> = batch.runs().filter(sized).collect();
        for &[_, run, candidate] in here.iter().filter(|_| !runs.is_empty()) {
            let run = &runs[(run % runs.len() as u64) as usize];
            let candidate = &candidates[candidate as usize];
            verified.pairs += 1;
            verified.answered += u64::from(
                compare(&plan, run, source.symbols(), candidate)
                    .map_err(|differs| VerifyError::Differs(Box::new(differs)))?,
            );
        }
    }
    Ok(verified)
}

/// Whether the pass answers, and then as a replay does.
fn compare(
    plan: &Plan,
    run: &RunView<'_>,
    symbols: &Symbols,
    candidate: &Candidate,
) -> Result<bool, Difference> {
    let policy = &candidate.policy;
    let Some(structure) = plan.structure_of(policy) else {
        return Ok(false);
    };
    let mut found = Crossings::default();
    structure.read(run, symbols, &mut found, |_| {}, |_| {});
    let life = Life::of(run);
    let told = match structure.answer(&found, policy, policy.idle.window, &run.head.role) {
        Answer::NeedsReplay => return Ok(false),
        Answer::Survives => {
            let (cause, at_ms) = found.end();
            Ending {
                cause,
                at_ms,
                judgement: life.survival(),
            }
        }
        Answer::Ends(crossing) => Ending {
            cause: crossing.cause,
            at_ms: crossing.at_ms,
            judgement: life.judge(crossing.cause, crossing.at_ms, crossing.unseen),
        },
    };
    let replayed = replay(policy, &run.to_run(), symbols);
    let replayed = Ending {
        cause: replayed.verdict.cause,
        at_ms: replayed.verdict.at.as_u64(),
        judgement: replayed.judgement,
    };
    if told == replayed {
        return Ok(true);
    }
    Err(Difference {
        run: run.head.name.to_string(),
        candidate: candidate.label(),
        told,
        replayed,
    })
}
