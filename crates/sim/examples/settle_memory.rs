//! Settles synthetic runs and says how much memory that took: `settle_memory RUNS`.
#![allow(clippy::print_stdout)]

use std::path::Path;

use policysim_policy::presets;
use policysim_sim::settle::{Cast, Changes, Habits, settlement};
use policysim_sim::synth::{Generator, Model, Options, Sampling};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(100_000), |text| text.parse())?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/models/adr-0129.toml");
    let model: Model = toml::from_str(&std::fs::read_to_string(path)?)?;
    let options = Options {
        seed: 0,
        runs,
        sampling: Sampling::Independent,
    };
    let generator = Generator::new(&model, None, options)?;
    let policy = presets::find("pi-desktop-0129").ok_or("no preset pi-desktop-0129")?;
    let cast = Cast::model(&generator, runs, Changes::default(), 0);
    let settled = settlement(&policy, &cast, &Habits::default(), 0);
    println!(
        "{} runs, {} hangs, {} settled in the wait they began in",
        settled.numbers.runs, settled.numbers.hangs, settled.numbers.settled_in_wait
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak memory {}", peak.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}
