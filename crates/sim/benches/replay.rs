//! How fast runs are replayed (events/s) and policies compared (cells/s), on a synthetic fleet.
#![allow(clippy::unwrap_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use policysim_policy::{Policy, presets};
use policysim_sim::cluster::Cluster;
use policysim_sim::grid;
use policysim_sim::replay::replay;
use policysim_sim::run::Fleet;
use policysim_sim::strata::Strata;
use policysim_sim::sweep::{Axis, Grouping, candidates, sized_runs, sweep};
use policysim_sim::synth::{Generator, Model, Options, Sampling};

const MODEL: &str = include_str!("../../../data/models/adr-0129.toml");
const RUNS: u64 = 300;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 20)]
fn events(bencher: Bencher<'_, '_>) {
    let (fleet, policy) = (fleet(), policy());
    let events: usize = sized_runs(&fleet)
        .map(|run| {
            replay(&policy, run, &fleet.symbols)
                .unseen
                .min(run.events.len())
        })
        .sum();
    bencher.counter(ItemsCount::new(events)).bench_local(|| {
        sized_runs(black_box(&fleet))
            .filter(|run| replay(&policy, run, &fleet.symbols).is_kill())
            .count()
    });
}

#[divan::bench(args = [10, 60], sample_count = 10)]
fn cells(bencher: Bencher<'_, '_>, cells: u64) {
    let fleet = fleet();
    let axis = Axis {
        key: "idle.window".to_owned(),
        values: grid::parse(&format!("10s..{}s/10s", 10 * cells)).unwrap(),
    };
    let candidates = candidates(&policy(), &[axis]).unwrap();
    let (base, strata) = (policy(), Strata::new(&fleet, &[]));
    let grouping = Grouping {
        base: &base,
        strata: &strata,
        halves: &[],
        cluster: Cluster::Day,
    };
    bencher
        .counter(ItemsCount::new(candidates.len()))
        .bench_local(|| sweep(black_box(&fleet), &candidates, grouping, &|_| {}));
}

fn policy() -> Policy {
    presets::find("pi-desktop-0129").unwrap()
}

fn fleet() -> Fleet {
    let model: Model = toml::from_str(MODEL).unwrap();
    let options = Options {
        seed: 0,
        runs: RUNS,
        sampling: Sampling::Stratified,
    };
    Generator::new(&model, None, options).unwrap().fleet()
}
