//! Settlement by the length of the TaskWait: in closed form, and as simulated.

use policysim_sim::stats::Estimate;
use serde::Serialize;

/// What the simulation of parents and delegates found for one length of the wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The wait, ms.
    pub wait_ms: u64,
    /// Of the hangs that begin inside a wait, the share that settles before it is over.
    pub settled_in_wait: Estimate,
}

/// One policy over the lengths of the wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettledLine {
    /// What the policy is called here.
    pub name: String,
    /// Its idle window, ms.
    pub window_ms: u64,
    /// From a firing to the outcome reaching the parent, ms.
    pub settling_lag_ms: u64,
    /// The share of hangs that settle inside the wait in which they begin, in the order of the waits.
    pub shares: Vec<f64>,
    /// The same by simulation, for the waits that the contract allows, ascending.
    pub simulated: Vec<Simulated>,
}

/// Settlement over some lengths of the wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettledByWait {
    /// The wait of the report's policy, ms.
    pub task_wait_ms: u64,
    /// The lengths, ms, ascending.
    pub waits_ms: Vec<u64>,
    /// Of the simulated runs, those made to hang at a uniform moment, in parts per million; 0 where some are labelled.
    pub hang_ppm: u64,
    /// What the simulation assumes because the record does not tell it.
    pub notes: Vec<String>,
    /// A line per policy: the candidate, the current one, the recommended one.
    pub lines: Vec<SettledLine>,
}
