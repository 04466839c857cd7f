//! When a parent learns that a delegate has hung: a discrete-event simulation of parents, delegates and waits.
//!
//! Each parent is a [`Session`] of its own with a virtual clock in ms. It spawns its tasks up to the cap, works, waits for
//! them (`TaskWait`), and reacts to a wait that expires; every delegate runs under the real watchdog core. Parents share
//! nothing, so they are simulated in any order and on any number of threads with the same result, and in memory that
//! does not grow with their number.
//!
//! What is drawn (which runs a parent takes, how long it works between waits, where a run is made to hang) is a function
//! of the seed and of the run or parent alone: all policies meet the same ([`Cast`]).
//!
//! ```
//! use policysim_policy::presets;
//! use policysim_sim::run::Fleet;
//! use policysim_sim::settle::{Cast, Changes, Habits, settlement};
//! # let model: policysim_sim::synth::Model = serde_json::from_str(r#"{
//! #   "schema_version": 1, "name": "tiny", "about": "two points", "source": "none",
//! #   "calendar": {"assumed": true, "epoch_ms": 0, "start_every_ms": 1000, "runs_per_session": 1},
//! #   "population": {"only": {
//! #     "about": "two points", "resolution": "stream", "approvals_in_tools": false,
//! #     "wait": {"pre_token": {"unit": "ms", "quantiles": {"min": 100, "max": 900}}},
//! #     "run": {"turns": {"unit": "turns", "quantiles": {"min": 1, "max": 3}}},
//! #     "roles": {"assumed": true, "list": [{"name": "worker", "weight": 1}]},
//! #     "models": {"assumed": true, "list": [{"name": "large", "weight": 1}]},
//! #     "ends": {"assumed": true}
//! #   }}}"#)?;
//! # let options = policysim_sim::synth::Options { seed: 7, runs: 40, sampling: policysim_sim::synth::Sampling::Independent };
//! # let fleet: Fleet = policysim_sim::synth::Generator::new(&model, None, options)?.fleet();
//! let policy = presets::find("pi-desktop-0129").unwrap();
//! let cast = Cast::recorded(&fleet, Changes { hang_ppm: 100_000.try_into()?, ..Changes::default() }, 0);
//! let settled = settlement(&policy, &cast, &Habits::default(), 0);
//! assert_eq!(settled.numbers.runs, 40);
//! // 300 s of silence fit into a wait of 600 s, but not from any moment of it.
//! assert_eq!(settled.closed_form, Some(0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cast;
mod course;
mod delegate;
mod figures;
mod habits;
mod named;
mod parent;
mod queue;
mod session;
mod tally;

pub use cast::{Cast, Changes};
pub use course::Course;
pub use delegate::{Heartbeat, How, Standing};
pub use figures::{Settlement, WITHIN};
pub use habits::{Habits, Reaction};
pub use queue::{Queue, Rank};
pub use session::{Happening, Returned, Session};
pub use tally::{Numbers, WAITS_TOLD};

use policysim_policy::Policy;
use rayon::prelude::*;

use crate::stats::{Level, Prob, QuantileEstimate, quantile_of_counts};
use parent::Parent;
use tally::Tally;

/// Simulates every parent of `cast` under one policy. The seed decides how long parents work between their waits.
///
/// The result does not depend on the number of threads.
pub fn settlement(policy: &Policy, cast: &Cast<'_>, habits: &Habits, seed: u64) -> Settlement {
    Settlement::new(policy, habits, &simulated(policy, cast, habits, seed))
}

/// The same, and from the hang to the parent's knowledge at each quantile of `at`, of the hangs it comes to know of, ms.
pub fn settlement_at(
    policy: &Policy,
    cast: &Cast<'_>,
    habits: &Habits,
    seed: u64,
    at: &[Prob],
) -> (Settlement, Vec<QuantileEstimate>) {
    let tally = simulated(policy, cast, habits, seed);
    let knowledge = tally.knowledge.counts();
    let quantiles = at
        .iter()
        .map(|&p| quantile_of_counts(knowledge, p, Level::P95));
    let quantiles = quantiles.collect();
    (Settlement::new(policy, habits, &tally), quantiles)
}

fn simulated(policy: &Policy, cast: &Cast<'_>, habits: &Habits, seed: u64) -> Tally {
    let per_parent = u64::from(habits.tasks.max(1));
    let parents = cast.runs().div_ceil(per_parent);
    (0..parents)
        .into_par_iter()
        .fold(Tally::default, |mut tally, parent| {
            let first = parent * per_parent;
            let last = cast.runs().min(first + per_parent);
            let family = cast.family(first..last);
            let children = family.children();
            let tasks = family.tasks(&children);
            Parent::new(policy, habits, tasks, seed, parent).live(&mut tally);
            tally
        })
        .reduce(Tally::default, |left, right| left.merge(&right))
}
