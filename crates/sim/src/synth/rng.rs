//! Random streams: one for each (seed, run, purpose), so that no draw depends on another run,
//! another purpose or the thread it is made on.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::model::Ppm;

/// What a stream of random numbers is for. The numbers are part of what a seed means: never reuse one.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// Role, model, number of turns, how the run ends.
    Shape = 1,
    /// How many provider calls fail in each turn.
    Failures = 2,
    /// Length of failed calls and of the answer after them.
    FailureTimes = 3,
    /// Pre-token waits. Here and in every value below, a number is the place within its stratum, or the whole draw.
    PreToken = 4,
    /// Pieces of an answer and their spacing.
    Streaming = 5,
    /// Which tools are called, how many, how.
    Calls = 6,
    /// How long tools and humans take.
    CallTimes = 7,
    /// Where an ending cuts the run and how long the record goes on.
    End = 8,
    /// Order of the strata of one law over the whole fleet; the law stands in the place of the run.
    Strata = 9,
    /// Which population a block of runs belongs to, session by session.
    Sessions = 14,
    /// What the waits of one session have in common.
    SessionPace = 15,
    /// What the waits of one run have in common.
    RunPace = 16,
    /// When the provider is out, and for how long.
    Outage = 17,
    /// Which calls an outage fails, and the jitter of backoffs.
    Retries = 18,
    /// Where the context is compacted, and for how long.
    Compaction = 19,
    /// Whether, where and how long the host sleeps.
    Suspend = 20,
    /// The model that the runs of one session use.
    SessionModel = 22,
    /// How long a parent thinks between its waits.
    Think = 10,
    /// Where a run stands in the order in which parents take them.
    Order = 11,
    /// Whether and where a recorded run is made to hang.
    Hang = 12,
    /// Whether and where a delegate delegates in turn.
    Nesting = 13,
}

/// Stands for "the whole fleet" where a stream names a run; law number n of a fleet is n below.
pub(crate) const WHOLE_FLEET: u64 = u64::MAX;

/// One stream of random numbers: `ChaCha8` under a key that spells seed and run.
#[derive(Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of `purpose` in run number `run` under `seed`.
    pub(crate) fn new(seed: u64, run: u64, purpose: Purpose) -> Self {
        let mut key = *b"________________policysim synth1";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&run.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(purpose as u64);
        Self(generator)
    }

    /// The next 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in the open interval (0, 1), a multiple of 2^-54.
    pub(crate) fn unit(&mut self) -> f64 {
        const TWO_TO_MINUS_53: f64 = 1.0 / 9_007_199_254_740_992.0;
        ((self.bits() >> 11) as f64 + 0.5) * TWO_TO_MINUS_53
    }

    /// A uniform integer below `n` (0 when `n` is 0), off by less than n / 2^64 in probability.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True with that probability.
    pub(crate) fn chance(&mut self, share: Ppm) -> bool {
        self.below(Ppm::WHOLE) < share.as_u64()
    }

    /// The index of one of `weights`, each as likely as its weight; 0 when all are 0.
    pub(crate) fn pick(&mut self, weights: impl Iterator<Item = u64> + Clone) -> usize {
        let mut rest = self.below(weights.clone().sum());
        for (index, weight) in weights.enumerate() {
            if rest < weight {
                return index;
            }
            rest -= weight;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_each_part_of_their_key() {
        let first = |seed, run, purpose| Stream::new(seed, run, purpose).bits();
        let base = first(1, 2, Purpose::Shape);
        assert_eq!(base, first(1, 2, Purpose::Shape));
        assert_ne!(base, first(2, 2, Purpose::Shape));
        assert_ne!(base, first(1, 3, Purpose::Shape));
        assert_ne!(base, first(1, 2, Purpose::Calls));
    }

    #[test]
    fn uniforms_stay_inside_and_fill_the_range() {
        let mut stream = Stream::new(0, 0, Purpose::End);
        let mut counts = [0_u32; 10];
        for _ in 0..10_000 {
            let u = stream.unit();
            assert!(u > 0.0 && u < 1.0);
            counts[stream.below(10) as usize] += 1;
        }
        // 1,000 expected each, standard deviation 30.
        assert!(
            counts.iter().all(|&n| (850..1150).contains(&n)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_weight_of_zero_is_never_picked() {
        let mut stream = Stream::new(0, 0, Purpose::Calls);
        let mut counts = [0_u32; 3];
        for _ in 0..3000 {
            counts[stream.pick([1, 0, 2].into_iter())] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((900..1100).contains(&counts[0]), "{counts:?}");
    }
}
