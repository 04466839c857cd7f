//! Runs the coverage study of the limits and prints its report.
//!
//! `cargo run -p policysim-sim --example coverage > reports/coverage.md`

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let report = policysim_sim::stats::coverage::report();
    std::io::stdout().write_all(report.as_bytes())
}
