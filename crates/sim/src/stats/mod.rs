//! Statistics that say what they do not know.
//!
//! Every figure carries its sample size, an interval whose sides may be missing, and a [`Status`] with a [`Reason`].
//! One file per family of methods; each names its source and which of several definitions is meant. Time is integer
//! milliseconds; no float decides a rank or a count. Elementary functions come from `libm`, and sums run in a fixed
//! order, so that the same input gives the same bits on every machine and at any number of threads.
//!
//! Conventions: a gap is a kill iff `gap >= window` (deadlines are inclusive). Intervals are closed. Limits that
//! people read are two-sided 95 %; gates use one side.

pub mod beta;
pub mod bootstrap;
pub mod choice;
pub mod clusters;
pub mod compounding;
pub mod cost;
pub mod coverage;
pub mod detector;
pub mod drift;
mod error;
mod estimate;
pub mod histogram;
pub mod kaplan_meier;
pub mod normal;
pub mod paired;
mod prob;
pub mod quantile;
pub mod rates;
pub mod tail;
pub mod traps;
pub mod verdict;

pub use error::StatsError;
pub use estimate::{Estimate, Interval, Reason, Status, json, round_to, text};
pub use prob::{Level, Prob};
pub use quantile::{
    Counts, Exceedances, QuantileEstimate, RankTable, quantile, quantile_at, quantile_of_counts,
};
pub use rates::{
    RateLimits, RateTable, certifies, clopper_pearson, lower_one_sided, rate, runs_needed,
    upper_one_sided,
};
