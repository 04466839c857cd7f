//! The cells of 10,000 windows over some runs, and every interval and verdict of them.

use policysim_policy::{Millis, Policy, presets};
use policysim_sim::certify::{Evidence, Plan};
use policysim_sim::choose::{Choice, Constraints, Context, choose, figures};
use policysim_sim::cluster::Cluster;
use policysim_sim::grid;
use policysim_sim::scan::Scan;
use policysim_sim::sweep::{Axis, Candidate, Question, candidates, sweep_scan};
use policysim_sim::tally::CellCounts;

const MAX_RATE: &str = "0.01";

pub(crate) struct Cells {
    pub(crate) base: Policy,
    candidates: Vec<Candidate>,
    pub(crate) cells: Vec<CellCounts>,
    evidence: Evidence,
    plan: Plan,
    active_ms: u128,
}

impl Cells {
    /// Sweeps `source` over windows from 5 s to an hour.
    pub(crate) fn of<S: Scan>(source: &S) -> Self
    where
        S::Error: std::fmt::Debug,
    {
        let base = presets::find("pi-desktop-0129").unwrap();
        let axis = Axis {
            key: "idle.window".to_owned(),
            values: grid::parse("5000ms..3594641ms/359ms").unwrap(),
        };
        let candidates = candidates(&base, &[axis]).unwrap();
        let question = Question {
            base: &base,
            candidates: &candidates,
            keys: &[],
            seed: 0,
            cluster: Cluster::Day,
        };
        let swept = sweep_scan(source, &question, &|_| {}).unwrap();
        let evidence = swept.evidence(Some(MAX_RATE.parse::<f64>().unwrap()));
        let cells = swept.cells(evidence.is_split());
        assert_eq!(cells.len(), 10_000);
        Self {
            cells,
            evidence,
            plan: Plan::new(&candidates),
            active_ms: swept.partial().active_ms(),
            base,
            candidates,
        }
    }

    /// Rates, verdicts, paired differences and detection times of all cells, and the choice among them.
    pub(crate) fn intervals(&self) -> Choice {
        let context = Context {
            base: &self.base,
            active_ms: self.active_ms,
            task_wait: Millis::from_secs(600),
            constraints: Constraints {
                max_false_kill: Some(MAX_RATE.parse().unwrap()),
                settle_within_wait: true,
            },
            plan: &self.plan,
            evidence: &self.evidence,
            recorded_idle_ms: None,
            kills_missing: false,
        };
        let figures = figures(&self.candidates, &self.cells, &context);
        choose(&self.candidates, &self.cells, &figures, &context)
    }
}
