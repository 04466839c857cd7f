//! Settlement as JSON: every figure with its interval, unrounded.

use std::collections::BTreeMap;

use policysim_policy::Millis;
use policysim_sim::stats::{Estimate, QuantileEstimate, json};
use serde::Serialize;

use super::{SettleCell, SettleResult, counts, estimates, mode};
use crate::SCHEMA_VERSION;
use crate::header::DataHeader;

impl SettleResult {
    /// The result as JSON.
    pub(super) fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&Json {
            schema_version: SCHEMA_VERSION,
            data: &self.data,
            seed: self.seed,
            tasks_per_parent: self.habits.tasks,
            cap: self.habits.cap,
            spawn_every_ms: self.habits.spawn_every.as_u64(),
            think_mean_ms: self.habits.think.as_u64(),
            unwinding_ms: self.habits.unwinding.as_u64(),
            horizon_ms: self.habits.horizon.as_u64(),
            hang_ppm: self.hang_ppm,
            nested_ppm: self.nested_ppm,
            runs_left_out: self.left_out,
            cells: self
                .cells
                .iter()
                .enumerate()
                .map(|(index, cell)| JsonCell::new(index, cell))
                .collect(),
            notes: self.remarks(),
            reason: self.answer(),
        })
    }
}

#[derive(Serialize)]
struct Json<'a> {
    schema_version: u32,
    data: &'a DataHeader,
    seed: u64,
    tasks_per_parent: u32,
    cap: u32,
    spawn_every_ms: u64,
    think_mean_ms: u64,
    unwinding_ms: u64,
    horizon_ms: u64,
    hang_ppm: u64,
    nested_ppm: u64,
    runs_left_out: u64,
    cells: Vec<JsonCell<'a>>,
    notes: Vec<String>,
    reason: String,
}

#[derive(Serialize)]
struct JsonCell<'a> {
    cell: usize,
    policy: &'a str,
    idle_ms: Option<u64>,
    wait_ms: u64,
    mode: &'static str,
    on_expiry: &'static str,
    settled_in_wait_closed_form: Option<f64>,
    figures: BTreeMap<&'static str, &'a Estimate>,
    hang_to_knowledge: &'a [QuantileEstimate; 2],
    hang_to_knowledge_is_rounded: bool,
    hangs_known_after_waits: &'a [u64],
    counts: BTreeMap<&'static str, u128>,
}

impl<'a> JsonCell<'a> {
    fn new(index: usize, cell: &'a SettleCell) -> Self {
        let settled = &cell.settled;
        Self {
            cell: index + 1,
            policy: &cell.policy,
            idle_ms: cell.idle.map(Millis::as_u64),
            wait_ms: settled.wait.as_u64(),
            mode: mode(settled.mode),
            on_expiry: settled.on_expiry.name(),
            settled_in_wait_closed_form: settled.closed_form.map(json),
            figures: estimates(settled).into_iter().collect(),
            hang_to_knowledge: &settled.knowledge,
            hang_to_knowledge_is_rounded: settled.knowledge_is_rounded,
            hangs_known_after_waits: &settled.numbers.known_after,
            counts: counts(settled).into_iter().collect(),
        }
    }
}
