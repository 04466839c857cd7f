//! The interval of every figure that the tables above name by its point alone.

use policysim_sim::settle::Settlement;
use policysim_sim::stats::{Estimate, Interval, QuantileEstimate};

use super::{SettleResult, dash, no_hang, quantile, share};
use crate::table::{Align, Table};
use crate::units::duration as human;

impl SettleResult {
    /// What becomes of hangs.
    pub(super) fn hang_intervals(&self) -> Table {
        let columns = [
            ("known within\n1 wait [95 %]", Align::Left),
            ("2 waits", Align::Left),
            ("3 waits", Align::Left),
            ("hang to knowledge\np50 [95 %]", Align::Left),
            ("p99 [95 %]", Align::Left),
            ("mean [95 %]", Align::Left),
        ];
        self.table(&columns, |settled| {
            let mut row: Vec<String> = settled
                .known_within
                .iter()
                .map(|within| no_hang(settled).unwrap_or_else(|| share(within)))
                .collect();
            row.extend(settled.knowledge.iter().map(time));
            row.push(mean_time(settled));
            row
        })
    }

    /// What parents and healthy runs pay.
    pub(super) fn parent_intervals(&self) -> Table {
        let columns = [
            ("slot time held\nby hung runs [95 %]", Align::Left),
            ("parents\nblocked [95 %]", Align::Left),
            ("healthy: stopped\n[95 %]", Align::Left),
            ("closed\n[95 %]", Align::Left),
            ("done twice,\nper run [95 %]", Align::Left),
        ];
        self.table(&columns, |settled| {
            [
                &settled.slots_held,
                &settled.blocked,
                &settled.stopped,
                &settled.closed,
                &settled.duplicates,
            ]
            .map(share)
            .to_vec()
        })
    }
}

/// Its sides as times; nothing where there is none.
fn sides(interval: Interval<u64>) -> String {
    match (interval.lo, interval.up) {
        (None, None) => String::new(),
        (lo, up) => {
            let side = |side: Option<u64>| side.map_or_else(dash, human);
            format!(" [{} … {}]", side(lo), side(up))
        }
    }
}

/// A time with its interval.
pub(crate) fn time(estimate: &QuantileEstimate) -> String {
    format!("{}{}", quantile(estimate), sides(estimate.interval))
}

/// At least so long, where some hangs are never known of.
fn mean_time(settled: &Settlement) -> String {
    let Estimate {
        point, interval, ..
    } = settled.mean_knowledge;
    let Some(point) = point else {
        return dash();
    };
    let whole = |ms: f64| ms.round() as u64;
    let least = if settled.numbers.never_known > 0 {
        "≥ "
    } else {
        ""
    };
    let interval = Interval {
        lo: interval.lo.map(whole),
        up: interval.up.map(whole),
    };
    format!("{least}{}{}", human(whole(point)), sides(interval))
}
