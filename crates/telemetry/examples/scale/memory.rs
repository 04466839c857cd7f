//! The goals of a pass over columns in memory, measured within one process, in turn.

use std::hint::black_box;

use policysim_policy::Kind;
use policysim_sim::cluster::Cluster;
use policysim_sim::replay::verdict;
use policysim_sim::run::Symbols;
use policysim_sim::scan::{Batch, InMemory, RunView};
use policysim_sim::staircase::{Crossings, Structure, shape};
use policysim_sim::sweep::{Axis, Candidate, Question, candidates, sweep_scan};
use policysim_sim::tally::CellCounts;

use crate::parts::{cpu_s, policy};
use crate::{median, row, workload};

const EVENTS: usize = 2_000_000;

/// Measures and prints G2, G3 and G8.
pub(crate) fn goals(pairs: usize) {
    let batches = workload::batches(1, EVENTS, 1 << 16);
    let symbols = Symbols::default();
    let source = InMemory::of_batches(&symbols, batches.clone());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let (one, grid) = (one_policy(), grid_of_10_000());
    let mut bare = || bare_columns(&batches);
    let mut pass = || pass(&batches, &symbols);
    let mut single = || pool.install(|| sweep(&source, &one));
    let mut cells = || pool.install(|| sweep(&source, &grid));
    let mut core = || core(&batches, &symbols);
    let mut minimal = || {
        let kills = batches
            .iter()
            .flat_map(Batch::runs)
            .map(|run| minimal(&run));
        kills.map(u64::from).sum()
    };
    let work: [&mut dyn FnMut() -> u64; 6] = [
        &mut bare,
        &mut pass,
        &mut single,
        &mut cells,
        &mut core,
        &mut minimal,
    ];
    let times = in_turn(pairs.max(5), work);
    let [bare, pass, single, cells, core, minimal] = times;
    let rate = |s: f64| format!("{:.0} M events/s", EVENTS as f64 / s / 1e6);
    row(
        "G2 grid of 100 x 10 x 10 / one policy, in memory",
        cells / single,
        "<= 8",
        &format!("{:.1} ms against {:.1} ms", cells * 1e3, single * 1e3),
    );
    row(
        "G2 10,000 replays / the grid",
        core * 10_000.0 / cells,
        ">= 300",
        &format!("a replay takes {:.1} ms", core * 1e3),
    );
    row(
        "G3 staircase pass / bare loop over the columns",
        bare / pass,
        ">= 0.25",
        &format!("{} against {}", rate(pass), rate(bare)),
    );
    row(
        "G8 core / minimal loop by hand",
        core / minimal,
        "<= 4",
        &format!("{} against {}", rate(core), rate(minimal)),
    );
}

fn in_turn<const N: usize>(pairs: usize, mut work: [&mut dyn FnMut() -> u64; N]) -> [f64; N] {
    let mut times = [(); N].map(|()| Vec::new());
    for _ in 0..pairs {
        for (work, times) in work.iter_mut().zip(&mut times) {
            let begun = cpu_s();
            black_box(work());
            times.push(cpu_s() - begun);
        }
    }
    times.map(median)
}

fn one_policy() -> Vec<Candidate> {
    candidates(&policy(), &[]).unwrap()
}

fn grid_of_10_000() -> Vec<Candidate> {
    let axis = |key: &str, grid: &str| Axis {
        key: key.to_owned(),
        values: policysim_sim::grid::parse(grid).unwrap(),
    };
    let axes = [
        axis("idle.window", "5s..3569s/36s"),
        axis("total.budget", "10m..100m/10m"),
        axis("turns.cap", "10..100/10"),
    ];
    let grid = candidates(&policy(), &axes).unwrap();
    assert_eq!(grid.len(), 10_000);
    grid
}

fn sweep(source: &InMemory<'_>, candidates: &[Candidate]) -> u64 {
    let base = policy();
    let question = Question {
        base: &base,
        candidates,
        keys: &[],
        seed: 0,
        cluster: Cluster::Day,
    };
    let Ok(swept) = sweep_scan(source, &question, &|_| {});
    swept.cells(false).iter().map(CellCounts::killed).sum()
}

fn bare_columns(batches: &[Batch]) -> u64 {
    let mut sum = 0_u64;
    for run in black_box(batches).iter().flat_map(Batch::runs) {
        for (&t_ms, &kind) in run.t_ms().iter().zip(run.kinds()) {
            sum = sum.wrapping_add(t_ms).wrapping_add(kind as u64);
        }
    }
    sum
}

fn pass(batches: &[Batch], symbols: &Symbols) -> u64 {
    let policy = policy();
    let mut structure = Structure::new(shape(&policy).unwrap());
    structure.admit(&policy);
    let mut found = Crossings::default();
    for run in black_box(batches).iter().flat_map(Batch::runs) {
        structure.read(&run, symbols, &mut found, |_| {}, |_| {});
        black_box(&found);
    }
    0
}

fn core(batches: &[Batch], symbols: &Symbols) -> u64 {
    let policy = policy();
    let fires = |run: RunView<'_>| verdict(&policy, &run, symbols).cause.is_firing();
    let runs = black_box(batches).iter().flat_map(Batch::runs);
    runs.map(|run| u64::from(fires(run))).sum()
}

/// One policy as one would write it for this question alone: an idle window that waits while tools or humans are
/// waited for, a budget, a cap on turns.
fn minimal(run: &RunView<'_>) -> bool {
    const WINDOW_MS: u64 = 300_000;
    const BUDGET_MS: u64 = 6 * 3_600_000;
    const TURNS: u32 = 150;
    let (mut last, mut open, mut turns) = (0, 0_u32, 0);
    for (&at, &kind) in run.t_ms().iter().zip(run.kinds()) {
        if (open == 0 && at - last >= WINDOW_MS) || at >= BUDGET_MS {
            return true;
        }
        last = at;
        match kind {
            Kind::ToolStart | Kind::HumanWaitStart => open += 1,
            Kind::ToolEnd | Kind::HumanWaitEnd => open = open.saturating_sub(1),
            Kind::TurnStart => {
                turns += 1;
                if turns > TURNS {
                    return true;
                }
            }
            _ => {}
        }
    }
    open == 0 && run.head.end_ms - last >= WINDOW_MS || run.head.end_ms >= BUDGET_MS
}
