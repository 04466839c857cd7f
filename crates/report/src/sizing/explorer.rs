//! What the page's controls choose among: every swept cell with its figures already made, as text and as value.

use std::collections::BTreeMap;

use policysim_sim::stats::{Level, json as rounded, rates};
use serde::Serialize;
use serde_json::{Value, json};

use super::Report;
use super::document::Datum;
use super::facts::{Cell, Stratum, Sweep, short_key};
use super::words::{count, estimate, figure, limit, noticed, slots, total};
use crate::charts::by_limit;
use crate::table::one_line;
use crate::units::{duration, percent};

/// A page with more cells than this would be too large to be sent around; its controls are left out.
pub const MOST_CELLS: usize = 3_000;
/// The same for strata of cells.
const MOST_STRATA: usize = 20_000;

/// What a cell costs, by restart, hang rate and cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Costs {
    /// Hang rates as they are written for `--hang-rate`, and as shares.
    pub hang_rates: Vec<(String, f64)>,
    /// Costs of a restart, ms.
    pub restarts_ms: Vec<u64>,
    /// Per restart, hang rate and cell, ms per run on the runs that rank cells; `None` for a window that is off.
    pub per_run_ms: Vec<Vec<Vec<Option<f64>>>>,
    /// Per restart, hang rate and sequence: the cheapest cell, from 1, and its cost.
    pub cheapest: Vec<Vec<Vec<Cheapest>>>,
    /// The sequence (the cells that differ in their idle window alone) that each cell is in.
    pub sequence_of: Vec<usize>,
}

/// The cheapest cell, from 1, and its cost, ms per run; `None` where there is none.
pub type Cheapest = Option<(usize, f64)>;

/// What the sweep does not tell of its cells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explorer {
    /// The idle window of every cell, ms.
    pub windows_ms: Vec<Option<u64>>,
    /// Lengths of the TaskWait, ms.
    pub waits_ms: Vec<u64>,
    /// Per cell and wait: the share of hangs that settle in the wait they begin in, closed form.
    pub settles: Vec<Vec<Option<f64>>>,
    /// Costs.
    pub costs: Costs,
}

impl Explorer {
    /// What a sweep alone can tell: its own TaskWait, and no costs, which take the runs.
    pub fn of_sweep(sweep: &Sweep) -> Self {
        let window = |cell: &Cell| {
            let span = policysim_policy::duration::parse(cell.setting("idle.window"));
            span.ok().map(policysim_policy::Millis::as_u64)
        };
        Self {
            windows_ms: sweep.cells.iter().map(window).collect(),
            waits_ms: vec![sweep.task_wait_ms],
            settles: sweep
                .cells
                .iter()
                .map(|cell| vec![cell.settle_share])
                .collect(),
            costs: Costs::default(),
        }
    }
}

impl Report {
    /// The data of the page, safe to stand inside a `script` element.
    pub(crate) fn page_data(&self, charts: &Value) -> String {
        let map = self.map();
        let mut data = if map.cells.len() <= MOST_CELLS {
            self.explored(map, &self.explorer)
        } else {
            json!({})
        };
        data["charts"] = charts.clone();
        // `</script>` and `<!--` end a script's text whatever the JSON around them.
        data.to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029")
    }

    fn explored(&self, map: &Sweep, explorer: &Explorer) -> Value {
        let values: Vec<Vec<&str>> = map.axes.iter().map(|key| map.values(key)).collect();
        let groups = self.page_strata();
        let fixed: BTreeMap<&str, &str> = map
            .axes
            .iter()
            .filter(|key| !self.facts.sweep.axes.contains(key))
            .filter_map(|key| Some((key.as_str(), self.own_setting(key)?)))
            .collect();
        let costs = &explorer.costs;
        let drawn = by_limit(self.focus());
        let drawn_at: Vec<Option<usize>> = groups
            .iter()
            .map(|(key, group)| {
                let same = |of: &&Stratum| of.key == *key && of.group == *group;
                drawn.iter().position(same)
            })
            .collect();
        json!({
            "axes": map.axes.iter().zip(&values).map(|(key, values)| json!({
                "key": key, "name": short_key(key), "values": values,
            })).collect::<Vec<_>>(),
            // Where each stratum stands in the chart, which shows those of one cell.
            "strata": drawn_at,
            "decision": { "axes": self.facts.sweep.axes, "fixed": fixed },
            "waits": explorer.waits_ms.iter().map(|&ms| json!([duration(ms), ms])).collect::<Vec<_>>(),
            "hang_rates": costs.hang_rates.iter().map(|(text, share)| json!([text, share])).collect::<Vec<_>>(),
            "restarts": costs.restarts_ms.iter().map(|&ms| json!([
                if ms == 0 { "nothing".to_owned() } else { duration(ms) }, ms,
            ])).collect::<Vec<_>>(),
            "cheapest": costs.cheapest.iter().map(|rates| rates.iter().map(|sequences| {
                sequences.iter().map(|found| match found {
                    Some((number, ms)) => json!([
                        format!("{} at {} per run", map.settings(map.cell(*number)), duration(libm::round(*ms) as u64)),
                        number, rounded(*ms),
                    ]),
                    None => Value::Null,
                }).collect::<Vec<_>>()
            }).collect::<Vec<_>>()).collect::<Vec<_>>(),
            "cells": map.cells.iter().enumerate().map(|(index, cell)| {
                let at: Vec<usize> = map.axes.iter().zip(&values).map(|(key, values)| {
                    values.iter().position(|value| *value == cell.setting(key)).unwrap_or(0)
                }).collect();
                self.page_cell(map, index, cell, &at, &groups)
            }).collect::<Vec<_>>(),
        })
    }

    fn page_cell(
        &self,
        map: &Sweep,
        index: usize,
        cell: &Cell,
        at: &[usize],
        groups: &[(String, String)],
    ) -> Value {
        let explorer = &self.explorer;
        let costs = &explorer.costs;
        let strata: Vec<Value> = groups
            .iter()
            .map(|(key, group)| {
                let found = cell
                    .strata
                    .iter()
                    .find(|of| of.key == *key && of.group == *group);
                found.map_or(Value::Null, |stratum| {
                    let rate = rates::rate(stratum.false_kills, stratum.runs, Level::P95);
                    let mut shown = pair(&estimate(&rate));
                    shown[2] = json!(rate.interval.lo.map(rounded));
                    shown[3] = json!(rate.interval.up.map(rounded));
                    json!({
                        "runs": pair(&count(stratum.runs)),
                        "rate": shown,
                        "limit": pair(&limit(stratum.false_kill_rate_up_one_sided)),
                    })
                })
            })
            .collect();
        let mut rate = pair(&figure(&cell.false_kill_rate));
        rate[2] = json!(cell.false_kill_rate.interval.lo);
        rate[3] = json!(cell.false_kill_rate.interval.up);
        let mut detection = pair(&noticed(cell));
        detection[2] = json!(cell.detection.p50_ms);
        detection[3] = json!(cell.detection.p99_ms);
        json!({
            "at": at,
            "label": cell.label,
            "name": self.page_name(map, cell),
            "window_ms": explorer.windows_ms.get(index),
            "sequence": costs.sequence_of.get(index),
            "runs": pair(&count(cell.runs)),
            "rate": rate,
            "limit": pair(&limit(cell.false_kill_rate_up_one_sided)),
            "unresolved": pair(&count(cell.unresolved())),
            "detection": detection,
            "slots": pair(&slots(cell)),
            "work": pair(&total(u128::from(cell.work_lost_ms))),
            "settle": explorer.settles.get(index).map(|shares| shares.iter().map(|share| match share {
                Some(share) => json!([percent(*share), rounded(*share)]),
                None => json!(["never", null]),
            }).collect::<Vec<_>>()),
            "cost": costs.per_run_ms.iter().map(|rates| rates.iter().map(|cells| {
                match cells.get(index).copied().flatten() {
                    Some(ms) => json!([format!("{} per run", duration(libm::round(ms) as u64)), rounded(ms)]),
                    None => Value::Null,
                }
            }).collect::<Vec<_>>()).collect::<Vec<_>>(),
            "strata": strata,
        })
    }

    /// What the page calls a cell of the map. Numbers are those of the cells that decide, which text and tables name by
    /// them; a cell that the wider sweep alone holds has none.
    fn page_name(&self, map: &Sweep, cell: &Cell) -> String {
        let settings = map.settings(cell);
        let Some(decides) = self.deciding(map, cell) else {
            return format!("{settings} (decides nothing)");
        };
        let number = decides.cell;
        let mut marks = Vec::new();
        if self.candidate_cell == Some(number) {
            marks.push("candidate");
        }
        if self.facts.sweep.recommendation == Some(number) {
            marks.push("recommended");
        }
        let marks = if marks.is_empty() {
            String::new()
        } else {
            format!(" ({})", marks.join(", "))
        };
        format!("cell {number}{marks}: {settings}")
    }

    /// The cell that decides and that a cell of the map is, where it is one: all else is as the candidate has it.
    fn deciding(&self, map: &Sweep, cell: &Cell) -> Option<&Cell> {
        let axes = &self.facts.sweep.axes;
        let others = map.axes.iter().filter(|key| !axes.contains(key));
        let own = others
            .clone()
            .all(|key| self.own_setting(key) == Some(cell.setting(key)));
        let same = |of: &&Cell| axes.iter().all(|key| of.setting(key) == cell.setting(key));
        self.facts.sweep.cells.iter().find(same).filter(|_| own)
    }

    /// The strata that the page offers: those of the focus cell, the worst first.
    pub(crate) fn page_strata(&self) -> Vec<(String, String)> {
        let map = self.map();
        let found = map.cells.first().map(by_limit).unwrap_or_default();
        let most = MOST_STRATA / map.cells.len().max(1);
        found
            .into_iter()
            .take(most)
            .map(|stratum| (stratum.key.clone(), stratum.group.clone()))
            .collect()
    }

    /// The candidate's own value of a swept key, as the cells of the map spell it.
    fn own_setting(&self, key: &str) -> Option<&str> {
        let number = self.candidate_in_map?;
        Some(self.map().cell(number).setting(key))
    }
}

/// A figure for the page: its text, and the value behind it.
fn pair(of: &Datum) -> Value {
    json!([one_line(&of.text), of.sort.map(rounded), null, null])
}
