//! Every trace vector of the reference folder, through the core.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use policysim_policy::{Millis, presets};
use serde_json::Value;

#[test]
fn every_trace_vector_gives_its_outcome_time_and_code() {
    let Some(dir) = common::part("vectors") else {
        return;
    };
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in common::json_files(&dir) {
        let text = std::fs::read_to_string(&file).unwrap();
        let vectors: Vec<Value> = serde_json::from_str(&text).unwrap();
        for vector in vectors.iter().filter(|vector| vector.get("kind").is_none()) {
            checked += 1;
            let name = vector["name"].as_str().unwrap();
            let preset = vector["preset"].as_str().unwrap();
            let mut policy =
                presets::find(preset).unwrap_or_else(|| panic!("{name}: unknown preset {preset}"));
            common::set_axes(&mut policy, &vector["axes"]);
            let lines: Vec<_> = vector["events"]
                .as_array()
                .unwrap()
                .iter()
                .map_while(common::line)
                .collect();
            let horizon = Millis::new(vector["horizon_ms"].as_u64().unwrap());
            let (outcome, at, code) = common::run(&policy, &lines, horizon);
            let expect = &vector["expect"];
            let expected = (
                expect["outcome"].as_str().unwrap().to_owned(),
                expect["at_ms"].as_u64().unwrap(),
                expect["code"].as_str().map(str::to_owned),
            );
            if (&outcome, at, &code) != (&expected.0, expected.1, &expected.2) {
                wrong.push(format!(
                    "{name}: {:?}, expected {expected:?}",
                    (outcome, at, code)
                ));
            }
        }
    }
    println!("{checked} trace vectors, {} differ", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 0, "no trace vector in {}", dir.display());
}
