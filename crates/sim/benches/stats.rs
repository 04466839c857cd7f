//! What limits cost: the cells of a large sweep, first computed one by one, then remembered by (kills, runs).

use policysim_sim::stats::{Level, RateTable, clopper_pearson};

const CELLS: u64 = 10_000;

fn main() {
    divan::main();
}

/// Kills of the cells of a sweep over 5,000 runs: many cells, few different counts.
fn kills(cell: u64) -> u64 {
    (cell * 7_919) % 400
}

#[divan::bench]
fn remembered() -> f64 {
    let mut table = RateTable::new(Level::P95);
    (0..CELLS)
        .filter_map(|cell| table.limits(kills(cell), 5_000).upper)
        .sum()
}

#[divan::bench(sample_count = 10)]
fn one_by_one() -> f64 {
    (0..CELLS)
        .filter_map(|cell| clopper_pearson(kills(cell), 5_000, Level::P95).up)
        .sum()
}
