//! The committed coverage report is what the study writes today, for the part that is quick to remake.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use policysim_sim::stats::coverage::{REDUCED, markdown};

#[test]
fn the_reduced_tables_are_remade_byte_for_byte() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports/coverage.md");
    let committed = std::fs::read_to_string(path).unwrap();
    let (_, reduced) = committed.split_once("## Reduced study\n\n").unwrap();
    assert_eq!(reduced, markdown(REDUCED));
}
