//! What a sweep shows of the settlement of its cells.

use std::collections::BTreeMap;

use policysim_sim::columns::Column;
use policysim_sim::settle::Settlement;
use policysim_sim::stats::Estimate;

use super::{counts, dash, estimates, in_wait, mean, on, quantile};
use crate::table::Align;

/// The columns beside a sweep's own.
pub(crate) const SWEEP_COLUMNS: [(&str, Align); 4] = [
    ("simulated: settled in\nits wait [95 %]", Align::Left),
    ("hang to knowledge\np50 … p99", Align::Right),
    ("expiries\nper run", Align::Left),
    (
        "times healthy runs are\nmisread/stopped/closed",
        Align::Right,
    ),
];

/// Their cells.
pub(crate) fn sweep_row(settled: &Settlement) -> Vec<String> {
    let numbers = &settled.numbers;
    let known = numbers.hangs > numbers.never_known;
    vec![
        in_wait(settled),
        if known {
            format!(
                "{} … {}{}",
                quantile(&settled.knowledge[0]),
                quantile(&settled.knowledge[1]),
                on(settled.knowledge[0].n)
            )
        } else {
            dash()
        },
        mean(&settled.expiries_per_run) + &on(settled.expiries_per_run.n),
        format!("{}/{}/{}", numbers.misread, numbers.stopped, numbers.closed),
    ]
}

/// What must be said where nothing hangs.
pub(crate) fn sweep_words(all: &[Settlement]) -> Option<String> {
    if !all.is_empty() && all.iter().all(|one| one.numbers.hangs == 0) {
        return Some("No run comes to hang in the simulation (n = 0): nothing is said of settling in it, and hangs are priced without it.".to_owned());
    }
    super::without_hangs(all.iter())
}

/// The same as named columns, with every figure and its limits.
pub(crate) fn sweep_columns(all: &[Settlement]) -> Vec<(String, Column)> {
    let mut columns = Vec::new();
    let Some(first) = all.first() else {
        return columns;
    };
    for (index, (name, _)) in estimates(first).into_iter().enumerate() {
        let of = |pick: fn(&Estimate) -> Option<f64>| {
            Column::Float(
                all.iter()
                    .map(|one| pick(estimates(one)[index].1))
                    .collect(),
            )
        };
        columns.push((name.to_owned(), of(|estimate| estimate.point)));
        columns.push((format!("{name}_lo"), of(|estimate| estimate.interval.lo)));
        columns.push((format!("{name}_up"), of(|estimate| estimate.interval.up)));
    }
    for (index, (name, _)) in counts(first).into_iter().enumerate() {
        let values = all
            .iter()
            .map(|one| i64::try_from(counts(one)[index].1).ok());
        columns.push((name.to_owned(), Column::Integer(values.collect())));
    }
    for (index, label) in ["p50", "p99"].into_iter().enumerate() {
        let values = all.iter().map(|one| {
            let point = one.knowledge[index].point();
            point.and_then(|ms| i64::try_from(ms).ok())
        });
        let name = format!("hang_to_knowledge_{label}_ms");
        columns.push((name, Column::Integer(values.collect())));
    }
    columns
}

/// The figures of one cell by name.
pub(crate) fn sweep_json(settled: &Settlement) -> BTreeMap<&'static str, &Estimate> {
    estimates(settled).into_iter().collect()
}
