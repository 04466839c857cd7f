//! Runs and events in memory, and everything that is computed from them.
#![forbid(unsafe_code)]

pub mod run;
pub mod stats;
pub mod synth;
