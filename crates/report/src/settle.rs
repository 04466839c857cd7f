//! What `policysim settle` prints: a row per policy and wait, and what parents make of it.

use policysim_policy::{Millis, WaitMode, duration};
use policysim_sim::settle::{Habits, Numbers, Settlement};
use policysim_sim::stats::{Estimate, QuantileEstimate, Status, json};

use crate::form::{Layout, Printed};
use crate::header::DataHeader;
use crate::table::{Align, Table};
use crate::units::{
    are, counted, duration as human, grouped, hours, percent, percent_figures, were,
};

mod in_sweep;
mod intervals;
mod settle_json;

pub(crate) use in_sweep::{SWEEP_COLUMNS, sweep_columns, sweep_json, sweep_row, sweep_words};
pub(crate) use intervals::time;

/// One simulated policy.
#[derive(Clone, Debug)]
pub struct SettleCell {
    /// The policy as it was named.
    pub policy: String,
    /// Its idle window; `None` is off.
    pub idle: Option<Millis>,
    /// What was found.
    pub settled: Settlement,
}

/// Everything that one simulation of settlement found.
#[derive(Clone, Debug)]
pub struct SettleResult {
    /// What the figures are about.
    pub data: DataHeader,
    /// How parents behaved.
    pub habits: Habits,
    /// Seed of what was drawn.
    pub seed: u64,
    /// Runs left out because their own end is not known.
    pub left_out: u64,
    /// Share of the runs that were made to hang, and of those that delegate in turn, in parts per million.
    pub hang_ppm: u64,
    /// The latter.
    pub nested_ppm: u64,
    /// The cells, in the order of policies, windows, waits and reactions.
    pub cells: Vec<SettleCell>,
    /// Sentences that belong beside the figures.
    pub notes: Vec<String>,
}

impl Printed for SettleResult {
    fn laid_out(&self, layout: Layout) -> String {
        let mut text = layout.prose(&format!("{}\n{}", self.data.line(), self.set_up()));
        text.push_str("\n\n");
        text.push_str(&layout.table(&self.hangs_table()));
        text.push('\n');
        text.push_str(&layout.table(&self.parents_table()));
        text.push('\n');
        if !self.cells.is_empty() {
            text.push_str("The intervals of what stands above without one:\n\n");
            text.push_str(&layout.table(&self.hang_intervals()));
            text.push('\n');
            text.push_str(&layout.table(&self.parent_intervals()));
            text.push('\n');
        }
        text.push_str(&layout.remarks(&self.remarks(), &self.answer()));
        text
    }

    fn csv(&self) -> Result<String, csv::Error> {
        self.to_csv()
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        self.to_json()
    }
}

impl SettleResult {
    /// Who was simulated.
    fn set_up(&self) -> String {
        let Some(first) = self.cells.first() else {
            return "nothing was simulated".to_owned();
        };
        let numbers = &first.settled.numbers;
        format!(
            "{} with {} each, {} · spawned {}, up to {} at once · {} of work around each wait · seed {}",
            counted(numbers.parents, "parent"),
            counted(u64::from(self.habits.tasks), "task"),
            counted(numbers.runs, "run"),
            match self.habits.spawn_every {
                Millis::ZERO => "together".to_owned(),
                every => format!("{} apart", duration::show(every)),
            },
            self.habits.cap,
            match self.habits.think {
                Millis::ZERO => "no time".to_owned(),
                think => format!("0 to {}", duration::show(Millis::new(think.as_u64() * 2))),
            },
            self.seed,
        )
    }

    /// The columns that name a cell: those in which cells differ, or the first.
    fn named(&self) -> Vec<(&'static str, Vec<String>)> {
        let column = |name, value: &dyn Fn(&SettleCell) -> String| {
            (name, self.cells.iter().map(value).collect::<Vec<String>>())
        };
        let all = [
            column("policy", &|cell| cell.policy.clone()),
            column("idle", &|cell| {
                cell.idle.map_or_else(|| "off".to_owned(), duration::show)
            }),
            column("wait", &|cell| duration::show(cell.settled.wait)),
            column("on expiry", &|cell| {
                cell.settled.on_expiry.name().to_owned()
            }),
        ];
        let varies = |values: &[String]| values.windows(2).any(|pair| pair[0] != pair[1]);
        all.into_iter()
            .enumerate()
            .filter(|(index, (_, values))| *index == 1 || *index == 2 || varies(values))
            .map(|(_, column)| column)
            .collect()
    }

    fn table(&self, columns: &[(&str, Align)], row: impl Fn(&Settlement) -> Vec<String>) -> Table {
        let named = self.named();
        let names = named.iter().map(|(name, _)| (*name, Align::Right));
        let mut table = Table::new(names.chain(columns.iter().copied()));
        for (index, cell) in self.cells.iter().enumerate() {
            let mut cells: Vec<String> = named
                .iter()
                .map(|(_, values)| values[index].clone())
                .collect();
            cells.extend(row(&cell.settled));
            table.push(cells);
        }
        table
    }

    /// What becomes of hangs.
    fn hangs_table(&self) -> Table {
        let columns = [
            ("hangs", Align::Right),
            ("settled in the wait\nthey began in [95 %]", Align::Left),
            ("closed\nform", Align::Right),
            ("known within 1, 2, 3 waits", Align::Left),
            ("hang to knowledge\np50 … p99", Align::Right),
            ("never\nknown", Align::Right),
            ("slot time held\nby hung runs", Align::Left),
        ];
        self.table(&columns, |settled| {
            vec![
                grouped(settled.numbers.hangs),
                in_wait(settled),
                settled.closed_form.map_or_else(dash, percent),
                no_hang(settled).unwrap_or_else(|| {
                    settled
                        .known_within
                        .iter()
                        .map(|within| within.point.map_or_else(dash, percent))
                        .collect::<Vec<_>>()
                        .join(", ")
                }),
                format!(
                    "{} … {}",
                    quantile(&settled.knowledge[0]),
                    quantile(&settled.knowledge[1])
                ),
                grouped(settled.numbers.never_known),
                format!(
                    "{}, {}",
                    hours(settled.numbers.slot_hung_ms),
                    settled.slots_held.point.map_or_else(dash, percent)
                ),
            ]
        })
    }

    /// What parents and healthy runs pay.
    fn parents_table(&self) -> Table {
        let columns = [
            ("runs", Align::Right),
            ("expiries\nper run", Align::Left),
            ("waits\nper run", Align::Left),
            ("parents\nblocked", Align::Left),
            ("healthy\nruns", Align::Right),
            ("killed\n[95 %]", Align::Left),
            ("misread", Align::Left),
            ("stopped\nor closed", Align::Left),
            ("done twice", Align::Right),
        ];
        self.table(&columns, |settled| {
            let numbers = &settled.numbers;
            let ended = if numbers.closed > 0 {
                &settled.closed
            } else {
                &settled.stopped
            };
            vec![
                grouped(settled.expiries_per_run.n),
                mean(&settled.expiries_per_run),
                mean(&settled.waits_per_run),
                settled.blocked.point.map_or_else(dash, percent),
                grouped(settled.false_kills.n),
                share(&settled.false_kills),
                share(&settled.misread),
                share(ended),
                format!(
                    "{}, {}",
                    counted(numbers.duplicates, "run"),
                    hours(numbers.duplicate_ms)
                ),
            ]
        })
    }

    /// What must be said beside the figures.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes.clone();
        if self.left_out > 0 {
            remarks.push(format!(
                "{} {} left out: their record stops before they ended, so what they would have done is not known.",
                counted(self.left_out, "run"),
                are(self.left_out)
            ));
        }
        if self.nested_ppm > 0 {
            remarks.push(format!(
                "{} of the runs delegate in turn and wait for their own child (assumed).",
                percent(self.nested_ppm as f64 / 1e6)
            ));
        }
        let numbers = || self.cells.iter().map(|cell| &cell.settled.numbers);
        remarks.extend(without_hangs(self.cells.iter().map(|cell| &cell.settled)));
        if let Some(words) = spared_words(&numbers) {
            remarks.push(words);
        }
        let alike: u64 = numbers().map(|numbers| numbers.retries_alike).sum();
        if alike > 0 {
            remarks.push(format!(
                "{} of {} retries were killed after the very time that the attempt before was: deterministic, retry cannot help.",
                grouped(alike),
                grouped(numbers().map(|numbers| numbers.retries).sum())
            ));
        }
        let refused = numbers().map(|numbers| numbers.refused).max().unwrap_or(0);
        if refused > 0 {
            remarks.push(format!(
                "Up to {} {} refused because every slot was held; each was tried again.",
                counted(refused, "spawn"),
                were(refused)
            ));
        }
        if self
            .cells
            .iter()
            .any(|cell| cell.settled.knowledge_is_rounded)
        {
            remarks
                .push("Times from hang to knowledge are rounded up by less than 0.1 %.".to_owned());
        }
        if numbers().any(|numbers| numbers.never_known > 0) {
            remarks.push(format!(
                "A parent is observed for {}; hangs that it had not learned of by then are in no time to knowledge.",
                duration::show(self.habits.horizon)
            ));
        }
        remarks.push("The closed form takes a hang to start at a uniform moment of the wait; a simulated one starts where its run hangs.".to_owned());
        remarks
    }

    /// One or two sentences.
    fn answer(&self) -> String {
        if self
            .cells
            .iter()
            .all(|cell| cell.settled.numbers.hangs == 0)
        {
            return "No run hangs here, so nothing can be said of settlement; --hang-rate makes runs hang.".to_owned();
        }
        let lower = |cell: &&SettleCell| cell.settled.settled_in_wait.interval.lo.unwrap_or(0.0);
        let mut best: Option<&SettleCell> = None;
        for cell in &self.cells {
            if best.is_none_or(|best| lower(&cell) > lower(&best)) {
                best = Some(cell);
            }
        }
        let Some(best) = best else {
            return String::new();
        };
        let settled = &best.settled;
        if settled.numbers.hangs_in_wait == 0 {
            return "No hang begins inside a wait here, so no share of them settles in one; see how many waits pass until the parent knows.".to_owned();
        }
        let mut text = format!(
            "{} under waits of {}{}: {} of the hangs that begin in a wait (n = {}) settle in it; the parent knows of a hang after {} (p50).",
            best.idle.map_or_else(
                || format!("{} without an idle window", best.policy),
                |idle| format!("Idle {} ({})", duration::show(idle), best.policy)
            ),
            duration::show(settled.wait),
            if self.cells.len() > 1 {
                ", the best of these cells"
            } else {
                ""
            },
            share(&settled.settled_in_wait),
            grouped(settled.numbers.hangs_in_wait),
            quantile(&settled.knowledge[0]),
        );
        let wronged = settled.numbers.misread + settled.numbers.stopped + settled.numbers.closed;
        if wronged > 0 {
            text.push_str(&format!(
                " Parents that {} on an expiry end or misread a healthy run {} times, second runs of a task among them.",
                match settled.on_expiry.name() {
                    "read_as_failure" => "read failure",
                    "close_turn" => "close their turn",
                    "judge" => "judge by heartbeats",
                    _ => "stop delegates",
                },
                grouped(wronged)
            ));
        }
        text
    }

    /// One row per cell, durations in ms, rates as shares.
    fn to_csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for (index, cell) in self.cells.iter().enumerate() {
            let fields = fields(index, cell);
            if index == 0 {
                writer.write_record(fields.iter().map(|(name, _)| name))?;
            }
            writer.write_record(fields.iter().map(|(_, value)| crate::csv_safe(value)))?;
        }
        crate::csv_text(writer)
    }
}

/// The names of the modes of a wait.
const fn mode(mode: WaitMode) -> &'static str {
    match mode {
        WaitMode::All => "all",
        WaitMode::Any => "any",
    }
}

/// Everything of a cell by name.
fn fields(index: usize, cell: &SettleCell) -> Vec<(String, String)> {
    let settled = &cell.settled;
    let numbers = &settled.numbers;
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| fields.push((name.to_owned(), value));
    put("cell", (index + 1).to_string());
    put("policy", cell.policy.clone());
    let ms = |span: Millis| span.as_u64().to_string();
    put("idle_ms", cell.idle.map_or_else(String::new, ms));
    put("wait_ms", ms(settled.wait));
    put("mode", mode(settled.mode).to_owned());
    put("on_expiry", settled.on_expiry.name().to_owned());
    for (name, count) in counts(settled) {
        put(name, count.to_string());
    }
    put(
        "settled_in_wait_closed_form",
        settled
            .closed_form
            .map_or_else(String::new, |share| json(share).to_string()),
    );
    for (name, estimate) in estimates(settled) {
        let side = |value: Option<f64>| value.map_or_else(String::new, |v| json(v).to_string());
        put(name, side(estimate.point));
        put(&format!("{name}_lo"), side(estimate.interval.lo));
        put(&format!("{name}_up"), side(estimate.interval.up));
    }
    for (label, estimate) in ["p50", "p99"].into_iter().zip(&settled.knowledge) {
        let side = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
        put(
            &format!("hang_to_knowledge_{label}_ms"),
            side(estimate.point()),
        );
        put(
            &format!("hang_to_knowledge_{label}_lo_ms"),
            side(estimate.interval.lo),
        );
        put(
            &format!("hang_to_knowledge_{label}_up_ms"),
            side(estimate.interval.up),
        );
    }
    for (name, known) in numbers.named().into_iter().skip(counts(settled).len()) {
        put(name, known.to_string());
    }
    fields
}

/// The whole numbers of a cell by name, but for the hangs by the number of waits.
fn counts(settled: &Settlement) -> Vec<(&'static str, u128)> {
    let mut named = settled.numbers.named();
    named.truncate(named.len() - settled.numbers.known_after.len());
    named
}

/// The figures of a cell by name.
fn estimates(settled: &Settlement) -> Vec<(&'static str, &Estimate)> {
    vec![
        ("settled_in_wait", &settled.settled_in_wait),
        ("known_within_1_wait", &settled.known_within[0]),
        ("known_within_2_waits", &settled.known_within[1]),
        ("known_within_3_waits", &settled.known_within[2]),
        ("hang_to_knowledge_mean_ms", &settled.mean_knowledge),
        ("expiries_per_run", &settled.expiries_per_run),
        ("waits_per_run", &settled.waits_per_run),
        ("false_kill_rate", &settled.false_kills),
        ("misread_rate", &settled.misread),
        ("stopped_rate", &settled.stopped),
        ("closed_rate", &settled.closed),
        ("duplicates_per_run", &settled.duplicates),
        ("blocked_share", &settled.blocked),
        ("slot_time_held_by_hung_share", &settled.slots_held),
    ]
}

/// Where nothing hangs, the words for it.
fn no_hang(settled: &Settlement) -> Option<String> {
    (settled.numbers.hangs == 0).then(|| "no hang".to_owned())
}

/// The share of hangs settled in the wait that they began in, or why there is none.
fn in_wait(settled: &Settlement) -> String {
    match no_hang(settled) {
        Some(words) => words,
        None if settled.numbers.hangs_in_wait == 0 => "none begins in a wait".to_owned(),
        None => share(&settled.settled_in_wait) + &on(settled.settled_in_wait.n),
    }
}

/// In how many cells nothing is said of settling, because nothing hangs; `None` where that is no cell or every one.
fn without_hangs<'s>(cells: impl ExactSizeIterator<Item = &'s Settlement>) -> Option<String> {
    let all = cells.len();
    let without = cells.filter(|cell| cell.numbers.hangs == 0).count();
    (without > 0 && without < all).then(|| {
        format!("In {without} of {all} cells no run comes to hang (n = 0): nothing is said of settling there.")
    })
}

/// Kills that are no false ones, as the cells with the most of them have it.
fn spared_words<'n, I>(cells: &dyn Fn() -> I) -> Option<String>
where
    I: Iterator<Item = &'n Numbers>,
{
    let most = |of: fn(&Numbers) -> u64| cells().map(of).max().unwrap_or(0);
    let failed = most(|numbers| numbers.true_kills);
    let unresolved = most(|numbers| numbers.unresolved_kills);
    (failed + unresolved > 0).then(|| {
        format!(
            "No false kill is that of a run which failed anyway (up to {} in a cell), nor one of which the record cannot tell (up to {}).",
            grouped(failed),
            grouped(unresolved)
        )
    })
}

fn dash() -> String {
    "-".to_owned()
}

/// How many samples a figure before it stands on.
fn on(n: u64) -> String {
    format!(" (n = {})", grouped(n))
}

/// A share with its interval.
fn share(estimate: &Estimate) -> String {
    let Some(point) = estimate.point else {
        return dash();
    };
    let side = |side: Option<f64>| side.map_or_else(dash, percent_figures);
    format!(
        "{} [{} … {}]",
        percent(point),
        side(estimate.interval.lo),
        side(estimate.interval.up)
    )
}

/// A mean with its interval; dashes where there is none, as without any variance.
fn mean(estimate: &Estimate) -> String {
    let Some(point) = estimate.point else {
        return dash();
    };
    match (estimate.interval.lo, estimate.interval.up) {
        (Some(lo), Some(up)) => format!("{point:.3} [{lo:.3} … {up:.3}]"),
        _ => format!("{point:.3} [- … -]"),
    }
}

/// A time, or the largest one where the data cannot carry the quantile.
fn quantile(estimate: &QuantileEstimate) -> String {
    match (estimate.value, estimate.status) {
        (None, _) => dash(),
        (Some(ms), Status::NotEstimable) => format!("max {}", human(ms)),
        (Some(ms), _) => human(ms),
    }
}
