//! Runs and events in memory, and everything that is computed from them.
#![forbid(unsafe_code)]

mod board;
pub mod certify;
pub mod choose;
pub mod cluster;
pub mod columns;
pub mod compare;
pub mod focus;
pub mod gaps;
pub mod gate;
pub mod grid;
pub mod hang_cost;
pub mod judgement;
pub mod ledger;
pub mod life;
pub mod partial;
mod pass;
mod plan;
pub mod readings;
pub mod replay;
pub mod resampled;
pub mod run;
pub mod scan;
pub mod settle;
pub mod silence;
pub mod staircase;
pub mod stats;
pub mod strata;
pub mod stretches;
pub mod summary;
pub mod sweep;
pub mod synth;
pub mod tally;
pub mod timeline;
pub mod verify;
pub mod window_split;
