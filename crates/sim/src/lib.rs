//! Runs and events in memory, and everything that is computed from them.
#![forbid(unsafe_code)]

pub mod certify;
pub mod choose;
pub mod columns;
pub mod compare;
pub mod focus;
pub mod gaps;
pub mod grid;
pub mod hang_cost;
pub mod judgement;
pub mod ledger;
pub mod readings;
pub mod replay;
pub mod resampled;
pub mod run;
pub mod settle;
pub mod silence;
pub mod stats;
pub mod strata;
pub mod sweep;
pub mod synth;
pub mod tally;
pub mod timeline;
pub mod window_split;
