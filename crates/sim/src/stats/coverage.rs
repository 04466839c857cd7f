//! How often the limits hold: seeded data of a known truth, and the share of data sets whose limits contain it.
//!
//! Log-normal gaps with a normal effect per run: `ln gap = sd z + e`. The truth is computed, not sampled. The result is a
//! Markdown table that is the same bytes for the same seed on every machine and at any number of threads.

use std::fmt::Write as _;

use rayon::prelude::*;

use super::bootstrap::Indices;
use super::clusters::clustered_rate;
use super::estimate::Interval;
use super::kaplan_meier::{Gap, KaplanMeier};
use super::normal;
use super::prob::{Level, Prob};
use super::rates::upper_one_sided;

/// How large a study is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Study {
    /// Data sets per row.
    pub data_sets: u64,
    /// Seed of all of them; printed with the table.
    pub seed: u64,
}

/// The study of `reports/coverage.md`.
pub const FULL: Study = Study {
    data_sets: 2_000,
    seed: 0,
};
/// The part of it that a test remakes.
pub const REDUCED: Study = Study {
    data_sets: 40,
    seed: 0,
};

/// One design whose limits are put to the test.
#[derive(Clone, Copy, Debug)]
struct Design {
    runs: usize,
    gaps: u64,
    /// Standard deviation of the effect that the gaps of a run share.
    sd: f64,
    /// True rate of kills per gap.
    per_gap: f64,
}

const DESIGNS: [Design; 4] = [
    Design {
        runs: 400,
        gaps: 21,
        sd: 0.0,
        per_gap: 0.005,
    },
    Design {
        runs: 200,
        gaps: 21,
        sd: 0.7,
        per_gap: 0.01,
    },
    Design {
        runs: 400,
        gaps: 21,
        sd: 0.7,
        per_gap: 0.005,
    },
    Design {
        runs: 60,
        gaps: 41,
        sd: 1.0,
        per_gap: 0.01,
    },
];

/// (gaps, quantile, quantile at which the watchdog cuts), the censored part of the study.
const CENSORED: [(usize, &str, &str); 3] = [
    (200, "0.9", "0.97"),
    (400, "0.95", "0.98"),
    (1_000, "0.99", "0.995"),
];

/// Median gap, in ms; large enough that whole milliseconds do not matter.
const MEDIAN_MS: f64 = 5_000_000.0;

/// Points of the normal quadrature behind the true rate per run.
const QUADRATURE: u32 = 4_000;

/// What the study found for one design.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateCoverage {
    /// Runs and gaps of each.
    pub size: (usize, u64),
    /// Standard deviation of the run's effect.
    pub sd: f64,
    /// True rates per gap and per run.
    pub truth: (f64, f64),
    /// Share of data sets whose upper limit, treating gaps as independent, held.
    pub independent: f64,
    /// The same with the design effect of runs.
    pub clustered: f64,
    /// The same per run.
    pub per_run: f64,
}

/// What the study found for quantiles of censored gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileCoverage {
    /// Gaps per data set.
    pub gaps: usize,
    /// The quantile.
    pub p: Prob,
    /// The quantile at which gaps were cut.
    pub cut: Prob,
    /// Share of data sets whose two-sided interval held.
    pub held: f64,
    /// Share of data sets without an upper limit.
    pub open: f64,
}

/// True rate per run: `1 - (1-q(z))^n` averaged over the effect `z`.
fn run_rate(design: Design) -> f64 {
    let z_window = z_window(design);
    let at = |point: u32| {
        let z = normal::quantile((f64::from(point) + 0.5) / f64::from(QUADRATURE));
        let per_gap = normal::survival(z_window - design.sd * z);
        -libm::expm1(design.gaps as f64 * libm::log1p(-per_gap))
    };
    (0..QUADRATURE).map(at).sum::<f64>() / f64::from(QUADRATURE)
}

/// `ln (window / median)`, which a gap exceeds with the design's rate.
fn z_window(design: Design) -> f64 {
    -normal::quantile(design.per_gap) * (1.0 + design.sd * design.sd).sqrt()
}

fn length(ln: f64) -> u64 {
    libm::round(MEDIAN_MS * libm::exp(ln)) as u64
}

/// Whether each upper limit of one data set held: independent gaps, clustered gaps, runs.
fn one_data_set(design: Design, truth: f64, random: &mut Indices) -> [bool; 3] {
    let window_ms = length(z_window(design));
    let runs: Vec<Vec<u64>> = (0..design.runs)
        .map(|_| {
            let effect = design.sd * normal::quantile(random.unit());
            (0..design.gaps)
                .map(|_| length(effect + normal::quantile(random.unit())))
                .collect()
        })
        .collect();
    let killed = |gap: &&u64| **gap >= window_ms;
    let gap_kills = runs.iter().flatten().filter(killed).count() as u64;
    let run_kills = runs
        .iter()
        .filter(|gaps| gaps.iter().any(|gap| killed(&gap)))
        .count() as u64;
    let gaps = design.runs as u64 * design.gaps;
    let holds = |upper: Option<f64>, truth: f64| upper.is_none_or(|upper| upper >= truth);
    // a side of the two-sided 90 % interval is the one-sided 95 % limit
    let clustered = Level::P95
        .doubled()
        .ok()
        .and_then(|level| clustered_rate(&runs, window_ms, level).estimate.interval.up);
    [
        holds(upper_one_sided(gap_kills, gaps, Level::P95), design.per_gap),
        holds(clustered, design.per_gap),
        holds(
            upper_one_sided(run_kills, design.runs as u64, Level::P95),
            truth,
        ),
    ]
}

/// Coverage of the one-sided 95 % upper limits of kill rates, a row per design.
pub fn rates(study: Study) -> Vec<RateCoverage> {
    let one = |(row, design): (usize, &Design)| {
        let truth = run_rate(*design);
        let held: Vec<[bool; 3]> = (0..study.data_sets)
            .into_par_iter()
            .map(|set| one_data_set(*design, truth, &mut stream(study, row, set)))
            .collect();
        let share = |method: usize| share(held.iter().map(|held| held[method]));
        RateCoverage {
            size: (design.runs, design.gaps),
            sd: design.sd,
            truth: (design.per_gap, truth),
            independent: share(0),
            clustered: share(1),
            per_run: share(2),
        }
    };
    DESIGNS.iter().enumerate().map(one).collect()
}

/// Coverage of the two-sided 95 % interval of a quantile when a watchdog cuts the longest gaps, a row per design.
pub fn quantiles(study: Study) -> Vec<QuantileCoverage> {
    let one = |(row, &(gaps, p, cut)): (usize, &(usize, &str, &str))| {
        let (p, cut) = (p.parse::<Prob>().ok()?, cut.parse::<Prob>().ok()?);
        let at = |p: Prob| length(normal::quantile(p.to_f64()));
        let (truth, limit_ms) = (at(p), at(cut));
        let intervals: Vec<Interval<u64>> = (0..study.data_sets)
            .into_par_iter()
            .map(|set| {
                let mut random = stream(study, DESIGNS.len() + row, set);
                let sample: Vec<Gap> = (0..gaps)
                    .map(|_| length(normal::quantile(random.unit())))
                    .map(|ms| Gap {
                        ms: ms.min(limit_ms),
                        observed: ms < limit_ms,
                    })
                    .collect();
                KaplanMeier::of_gaps(&sample).quantile(p, Level::P95).limits
            })
            .collect();
        let holds = |interval: &Interval<u64>| {
            interval.lo.is_none_or(|lo| lo <= truth) && interval.up.is_none_or(|up| up >= truth)
        };
        Some(QuantileCoverage {
            gaps,
            p,
            cut,
            held: share(intervals.iter().map(holds)),
            open: share(intervals.iter().map(|interval| interval.up.is_none())),
        })
    };
    CENSORED.iter().enumerate().filter_map(one).collect()
}

/// The random numbers of one data set: its own stream, whatever the others draw.
fn stream(study: Study, row: usize, set: u64) -> Indices {
    Indices::new(study.seed, ((row as u64) << 32) | set)
}

fn share(held: impl ExactSizeIterator<Item = bool>) -> f64 {
    let all = held.len().max(1);
    held.filter(|&held| held).count() as f64 / all as f64
}

/// The tables of a study as Markdown, without a heading.
pub fn markdown(study: Study) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut out = String::new();
    // writing to a string cannot fail
    let _ = writeln!(
        out,
        "{} data sets per row, seed {}, policysim {}.\n",
        study.data_sets,
        study.seed,
        env!("CARGO_PKG_VERSION")
    );
    out.push_str("| runs x gaps | effect sd | true per gap | true per run | iid per gap | clustered per gap | per run |\n");
    out.push_str("|---|---|---|---|---|---|---|\n");
    for row in rates(study) {
        let _ = writeln!(
            out,
            "| {} x {} | {} | {} | {:.4} | {} | {} | {} |",
            row.size.0,
            row.size.1,
            row.sd,
            row.truth.0,
            row.truth.1,
            percent(row.independent),
            percent(row.clustered),
            percent(row.per_run)
        );
    }
    out.push_str("\n| gaps | quantile | cut at | interval held | without upper limit |\n|---|---|---|---|---|\n");
    for row in quantiles(study) {
        let (p, cut) = (row.p.percentile_label(), row.cut.percentile_label());
        let _ = writeln!(
            out,
            "| {} | {p} | {cut} | {} | {} |",
            row.gaps,
            percent(row.held),
            percent(row.open)
        );
    }
    out
}

/// The text of `reports/coverage.md`: the full tables, then the reduced ones that a test remakes.
pub fn report() -> String {
    format!(
        "# Coverage of the limits\n\n\
         Share of seeded data sets whose limits contain the truth, against a nominal 95 %.\n\
         Log-normal gaps; the gaps of a run share a normal effect of the given standard deviation on the logarithm.\n\
         Kill rates: one-sided upper limits; per gap treating gaps as independent, per gap with the design effect of runs, \
         and per run, which is the unit of every gate.\n\
         Quantiles: two-sided beta-product limits when a watchdog cuts the longest gaps.\n\n\
         Targets: per run and independent gaps at least 93.5 %; clustered per gap at least 93 % with 200 runs or more and \
         an effect of at most 0.7.\n\
         With few, strongly correlated runs the limits per gap fall short, and those of independent gaps fail: a gate \
         counts runs.\n\n\
         Remake with `cargo run -p policysim-sim --example coverage > reports/coverage.md`.\n\n\
         ## Full study\n\n{}\n## Reduced study\n\n{}",
        markdown(FULL),
        markdown(REDUCED)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Study = Study {
        data_sets: 60,
        seed: 1,
    };

    #[test]
    fn the_true_run_rates_are_those_of_samples() {
        // closed form without an effect, and a plain simulation with one
        assert!((run_rate(DESIGNS[0]) - (1.0 - 0.995_f64.powi(21))).abs() < 1e-9);
        let design = DESIGNS[1];
        let window = z_window(design);
        let mut random = Indices::new(9, 0);
        let runs = 20_000_u32;
        let killed = (0..runs).filter(|_| {
            let effect = design.sd * normal::quantile(random.unit());
            let longest = (0..design.gaps)
                .map(|_| effect + normal::quantile(random.unit()))
                .fold(f64::NEG_INFINITY, f64::max);
            longest >= window
        });
        let (found, truth) = (killed.count() as f64 / f64::from(runs), run_rate(design));
        let error = (truth * (1.0 - truth) / f64::from(runs)).sqrt();
        assert!((found - truth).abs() < 4.0 * error, "{found} {truth}");
    }

    #[test]
    fn threads_change_no_byte() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.map(|pool| {
                pool.install(|| {
                    markdown(Study {
                        data_sets: 6,
                        seed: 1,
                    })
                })
            })
            .ok()
        };
        assert!(
            on(1).is_some_and(|table| table.lines().count() == 7 + DESIGNS.len() + CENSORED.len())
        );
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn limits_hold_where_they_must() {
        // 60 data sets at a true 93.5 % stay at or above 83 % with probability above 0.999
        let rows = rates(SMALL);
        assert!(rows.iter().all(|row| row.per_run >= 0.83), "{rows:?}");
        assert!(
            rows[0].independent >= 0.83 && rows[1].clustered >= 0.83,
            "{rows:?}"
        );
        assert!(quantiles(SMALL).iter().all(|row| row.held >= 0.83));
    }
}
