//! How fast delegates are simulated: `cargo bench -p policysim-sim --bench settle`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use divan::counter::ItemsCount;
use policysim_policy::presets;
use policysim_sim::settle::{Cast, Changes, Habits, settlement};
use policysim_sim::synth::{Generator, Model, Options, Sampling};

fn main() {
    divan::main();
}

fn model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/models/adr-0129.toml");
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const RUNS: u64 = 4_000;

fn options() -> Options {
    Options {
        seed: 0,
        runs: RUNS,
        sampling: Sampling::Independent,
    }
}

/// Delegates of recorded runs.
#[divan::bench]
fn recorded(bencher: divan::Bencher<'_, '_>) {
    let model = model();
    let fleet = Generator::new(&model, None, options()).unwrap().fleet();
    let policy = presets::find("pi-desktop-0129").unwrap();
    let cast = Cast::recorded(&fleet, Changes::default(), 0);
    bencher
        .counter(ItemsCount::new(RUNS))
        .bench(|| settlement(&policy, &cast, &Habits::default(), 0));
}

/// Delegates whose runs are drawn when they are needed.
#[divan::bench]
fn synthetic(bencher: divan::Bencher<'_, '_>) {
    let model = model();
    let generator = Generator::new(&model, None, options()).unwrap();
    let policy = presets::find("pi-desktop-0129").unwrap();
    let cast = Cast::model(&generator, RUNS, Changes::default(), 0);
    bencher
        .counter(ItemsCount::new(RUNS))
        .bench(|| settlement(&policy, &cast, &Habits::default(), 0));
}
