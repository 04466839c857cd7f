//! Settlement by the length of the TaskWait, in closed form.

use serde::Serialize;

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
}

/// Settlement over some lengths of the wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettledByWait {
    /// The wait of the report's policy, ms.
    pub task_wait_ms: u64,
    /// The lengths, ms, ascending.
    pub waits_ms: Vec<u64>,
    /// A line per policy: the candidate, the current one, the recommended one.
    pub lines: Vec<SettledLine>,
}
