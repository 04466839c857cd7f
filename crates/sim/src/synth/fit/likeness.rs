//! How alike the waits of a session, and of a run, are: correlations of normal scores.

use std::collections::BTreeMap;

use super::material::Material;
use crate::run::WaitKind;
use crate::stats::{Counts, normal};
use crate::synth::model::{Likeness, Ppm};

/// The score of each value of a law: the normal quantile of its mid-rank.
struct Scores(BTreeMap<u64, f64>);

impl Scores {
    fn new(counts: &Counts) -> Self {
        let n = counts.total() as f64;
        let mut before = 0;
        let score = |(ms, times): (u64, u64)| {
            let p = (before as f64 + times as f64 / 2.0) / n;
            before += times;
            (ms, normal::quantile(p.clamp(1e-6, 1.0 - 1e-6)))
        };
        Self(counts.iter().map(score).collect())
    }

    fn of(&self, ms: u64) -> f64 {
        self.0.get(&ms).copied().unwrap_or(0.0)
    }
}

/// Sum and number of the scores of one run, with its session.
#[derive(Clone, Copy, Debug)]
struct RunScores<'m> {
    session: &'m str,
    sum: f64,
    squares: f64,
    n: f64,
}

/// The likeness of the waits in `material`; `laws` are the special laws of models.
pub(super) fn likeness(
    material: &Material,
    laws: &BTreeMap<(String, WaitKind), Counts>,
    base: &BTreeMap<WaitKind, Counts>,
) -> Likeness {
    let special: BTreeMap<&(String, WaitKind), Scores> = laws
        .iter()
        .map(|(key, law)| (key, Scores::new(law)))
        .collect();
    let common: BTreeMap<WaitKind, Scores> = base
        .iter()
        .map(|(kind, law)| (*kind, Scores::new(law)))
        .collect();
    let of_model = material.by_run.iter().map(|run| {
        let scores = run.of_model.iter().filter_map(|wait| {
            let key = (run.model.clone(), wait.kind);
            let law = special.get(&key).or_else(|| common.get(&wait.kind))?;
            Some(law.of(wait.ms))
        });
        collected(&run.session, scores)
    });
    let (model_session_ppm, model_run_ppm) = shares(&of_model.collect::<Vec<_>>());
    let mut by_tool: BTreeMap<&str, Counts> = BTreeMap::new();
    for ((_, name), counts) in &material.tools {
        by_tool.entry(name).or_default().merge(counts);
    }
    let by_tool: BTreeMap<&str, Scores> = by_tool
        .iter()
        .map(|(name, counts)| (*name, Scores::new(counts)))
        .collect();
    let of_tools = material.by_run.iter().map(|run| {
        let scores = run
            .of_tools
            .iter()
            .map(|(name, ms)| by_tool[name.as_str()].of(*ms));
        collected(&run.session, scores)
    });
    let (tool_session_ppm, tool_run_ppm) = shares(&of_tools.collect::<Vec<_>>());
    let turns = Scores::new(&material.turns);
    let of_turns = material
        .by_run
        .iter()
        .map(|run| collected(&run.session, std::iter::once(turns.of(run.turns))));
    let (turns_session_ppm, _) = shares(&of_turns.collect::<Vec<_>>());
    Likeness {
        assumed: false,
        model_session_ppm,
        model_run_ppm,
        tool_session_ppm,
        tool_run_ppm,
        turns_session_ppm,
    }
}

fn collected(session: &str, scores: impl Iterator<Item = f64>) -> RunScores<'_> {
    let mut run = RunScores {
        session,
        sum: 0.0,
        squares: 0.0,
        n: 0.0,
    };
    for score in scores {
        run.sum += score;
        run.squares += score * score;
        run.n += 1.0;
    }
    run
}

/// The correlation of two waits of one session in different runs, and what is added within a run.
///
/// Mean products of pairs, each run (or session) weighted by its number of waits, so that a few long ones do not
/// decide.
fn shares(runs: &[RunScores<'_>]) -> (Ppm, Ppm) {
    let mut within = (0.0, 0.0);
    let mut sessions: BTreeMap<&str, (f64, f64, f64, f64)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.n > 0.0) {
        if run.n > 1.0 {
            within.0 += (run.sum * run.sum - run.squares) / (run.n - 1.0);
            within.1 += run.n;
        }
        let (sum, n, run_sums, run_ns) = sessions.entry(run.session).or_default();
        *sum += run.sum;
        *n += run.n;
        *run_sums += run.sum * run.sum;
        *run_ns += run.n * run.n;
    }
    let mut between = (0.0, 0.0);
    for (sum, n, run_sums, run_ns) in sessions.values() {
        let pairs = n * n - run_ns;
        if pairs > 0.0 {
            between.0 += (sum * sum - run_sums) / pairs * n;
            between.1 += n;
        }
    }
    let mean = |(sum, weight): (f64, f64)| if weight > 0.0 { sum / weight } else { 0.0 };
    let session = mean(between).clamp(0.0, 0.9);
    // Without a pair of runs in one session, what runs have in common may be the session's: either way it is shared.
    let run = (mean(within) - session).clamp(0.0, 0.95 - session);
    (ppm(session), ppm(run))
}

pub(super) fn ppm(share: f64) -> Ppm {
    let parts = libm::round(share.clamp(0.0, 1.0) * Ppm::WHOLE as f64);
    Ppm::try_from(parts as u64).unwrap_or_default()
}
