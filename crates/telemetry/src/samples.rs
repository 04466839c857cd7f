//! Durations without an order: what people have who keep no logs.

use std::sync::Arc;

use policysim_sim::run::WaitKind;

/// One measured duration of a samples table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sample {
    /// The table it stood in.
    pub source: Arc<str>,
    /// What was waited for.
    pub kind: WaitKind,
    /// Its length in ms.
    pub duration_ms: u64,
    /// The true end was not observed: the duration is a lower bound.
    pub censored: bool,
    /// The run it belongs to, if the table says; else empty. Clusters samples, orders nothing.
    pub run: Arc<str>,
    /// The agent's role, or empty.
    pub role: Arc<str>,
    /// The model, or empty.
    pub model: Arc<str>,
    /// The tool, or empty.
    pub tool: Arc<str>,
}
