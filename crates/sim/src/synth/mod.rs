//! Seeded generation of runs from a model: quantile tables in, [`Run`](crate::run::Run)s out.
//!
//! A [`Model`] is data: quantile tables of waits and of turns, shares, schedules, each figure either
//! quoted from its source or marked assumed. A [`Generator`] makes run `r` of one of its
//! populations as a pure function of model, population, seed and `r`; only where draws are
//! stratified does the number of runs matter as well (see [`Sampling`]). Nothing here reads a clock,
//! and no result depends on the number of threads.
//!
//! # What a run looks like
//!
//! `run_start`, then turns, then `run_end` unless the run hung or its record stops. A turn is
//! `turn_start` at the hand-off; failed provider calls as `retry_start` (announced delay) and
//! `retry_end`; the answer; its calls as `tool_start`, `tool_update`, `tool_end`, with an approval or a
//! question inside the call that it holds up; `turn_end` once all of it is over. Where output is
//! streamed an answer is `message_start`, `message_update`, `message_end`, otherwise one
//! `message_end` per block.
//!
//! The event that ends a wait carries it, and activity is marked, as `DEFINITIONS.md` sections 4 and
//! 5 say, with one difference: a `retry` wait ends at the resend, which no recorded log shows. The
//! wait of the answer after it is a `pre_token_err` from the hand-off, as there.
//!
//! ```
//! use policysim_sim::synth::{Generator, Model, Options, Sampling};
//! # let model: Model = serde_json::from_str(r#"{
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
//! let options = Options { seed: 7, runs: 10, sampling: Sampling::Stratified };
//! let generator = Generator::new(&model, None, options)?;
//! let fleet = generator.fleet();
//! assert_eq!(fleet.runs.len(), 10);
//! assert_eq!(generator.run(3).as_ref(), Some(&fleet.runs[3]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod error;
pub mod fit;
mod generate;
mod inversion;
mod mixture;
mod model;
mod outages;
mod pace;
mod plan;
mod quantiles;
mod record;
pub(crate) mod rng;
mod sessions;
mod spread;
mod suspend;
pub mod validate;
mod writer;

pub use error::ModelError;
pub use generate::{Generator, Options, Sampling};
pub use mixture::Component;
pub use model::{
    Backoff, Calendar, Compaction, Ends, Likeness, Model, Outages, Population, Ppm, Retry, Role,
    RoleList, RunFigure, SourceResolution, Streaming, Suspends, Tool, Tools, Weighted,
    WeightedList,
};
pub use quantiles::{Knot, Quantiles, Unit};
