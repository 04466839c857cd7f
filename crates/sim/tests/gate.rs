//! Properties of gates over made-up runs.
#![allow(clippy::unwrap_used)]

use policysim_policy::{Cause, Millis, presets};
use policysim_sim::cluster::Cluster;
use policysim_sim::gate::{
    Bound, Evidence, Fate, FigureRule, Figures, Metric, Outcome, Outcomes, Parents, Rule, Rules,
    Scope, Subject, Verdict, evaluate,
};
use policysim_sim::stats::Prob;
use policysim_sim::strata::StratumKey;
use proptest::prelude::*;

/// A run of one of two models.
fn run(fate: Fate, model: u32) -> Outcome {
    Outcome {
        fate,
        tied: false,
        work_ms: 0,
        slot_ms: 0,
        active_ms: 60_000,
        day: 0,
        session: 0,
        // harness, model, role, source
        strata: [0, model, 0, 0],
    }
}

fn outcomes(runs: Vec<Outcome>) -> Figures {
    let one = || vec!["-".to_owned()];
    Figures {
        outcomes: Some(Outcomes {
            runs,
            groups: [one(), vec!["a".to_owned(), "b".to_owned()], one(), one()],
            sessions: 1,
        }),
        ..Figures::default()
    }
}

fn rule(metric: Metric, bound: Bound, amount: f64, scope: Scope) -> FigureRule {
    FigureRule {
        metric,
        quantile: metric.takes_quantile().then_some(Prob::P90),
        cause: None,
        scope,
        every: true,
        cluster: Cluster::Run,
        sequence: Vec::new(),
        against: None,
        hang_rate: None,
        restart: Millis::ZERO,
        parents: Parents::default(),
        habits: String::new(),
        bound,
        amount,
        written: String::new(),
    }
}

fn verdict(rule: &FigureRule, figures: &Figures) -> Verdict {
    let rules = Rules {
        rules: vec![Rule {
            name: None,
            line: 1,
            level: None,
            inconclusive: None,
            subject: Subject::Figure(rule.clone()),
        }],
        ..Rules::default()
    };
    let policy = presets::find("pi-desktop-0129").unwrap();
    let evidence = Evidence {
        policy: &policy,
        now: figures,
        baseline: None,
        seed: 0,
    };
    evaluate(&rules, evidence).verdict()
}

const FATES: [Fate; 5] = [
    Fate::Lived,
    Fate::FalseKill(Cause::IdleTimeout),
    Fate::UnresolvedKill(Cause::IdleTimeout),
    Fate::UnresolvedSurvival,
    Fate::TrueKill(Cause::TotalTimeout),
];

/// So many runs of each fate, in each model at least one.
fn runs() -> impl Strategy<Value = Vec<Outcome>> {
    let counts = prop::collection::vec((0_usize..5, 0_u32..2, 1_usize..8), 0..6);
    (counts, 1_usize..900, 1_usize..500).prop_map(|(others, of_a, of_b)| {
        let mut runs = vec![run(Fate::Lived, 0); of_a];
        runs.extend(vec![run(Fate::Lived, 1); of_b]);
        for (fate, model, times) in others {
            runs.extend(vec![run(FATES[fate], model); times]);
        }
        runs
    })
}

proptest! {
    #[test]
    fn a_survivor_never_fails_a_gate_and_a_kill_never_passes_one(
        runs in runs(), model in 0_u32..2, rate in prop::sample::select(vec![0.003, 0.01, 0.02, 0.1]),
        by in any::<bool>(), every in any::<bool>(),
        metric in prop::sample::select(vec![Metric::FalseKillRate, Metric::KillRate, Metric::FalseKillsPerHour]),
    ) {
        let scope = if by && metric != Metric::FalseKillsPerHour {
            Scope::Every(StratumKey::Model)
        } else {
            Scope::All
        };
        let amount = if metric == Metric::FalseKillsPerHour { rate * 60.0 } else { rate };
        let rule = FigureRule { every, ..rule(metric, Bound::Max, amount, scope) };
        let with = |fate: Option<Fate>| {
            let mut runs = runs.clone();
            runs.extend(fate.map(|fate| run(fate, model)));
            verdict(&rule, &outcomes(runs))
        };
        let now = with(None);
        let survivor = with(Some(Fate::Lived));
        prop_assert!(!(now == Verdict::Pass && survivor == Verdict::Fail));
        // stronger: a survivor makes nothing worse than undecided
        prop_assert!(survivor <= now.max(Verdict::Inconclusive));
        let kill = with(Some(Fate::FalseKill(Cause::IdleTimeout)));
        prop_assert!(!(now == Verdict::Fail && kill == Verdict::Pass));
        prop_assert!(kill >= now || now == Verdict::Inconclusive && kill == Verdict::Fail);
    }

    #[test]
    fn a_hang_detected_in_time_never_fails_a_gate(
        told in 1_usize..300, late in 0_usize..20, missed in 0_usize..20,
    ) {
        let detected = |after_ms| Fate::HangDetected { cause: Cause::IdleTimeout, after_ms };
        let of = |told: usize, late: usize| {
            let mut runs = vec![run(detected(300_000), 0); told];
            runs.extend(vec![run(detected(900_000), 0); late]);
            runs.extend(vec![run(Fate::HangMissed { silent_ms: 3_600_000 }, 0); missed]);
            outcomes(runs)
        };
        for rule in [
            rule(Metric::DetectedShare, Bound::Min, 0.9, Scope::All),
            rule(Metric::DetectionTime, Bound::Max, 600_000.0, Scope::All),
        ] {
            let now = verdict(&rule, &of(told, late));
            let more = verdict(&rule, &of(told + 1, late));
            prop_assert!(!(now == Verdict::Pass && more == Verdict::Fail));
            if rule.metric == Metric::DetectionTime {
                let worse = verdict(&rule, &of(told, late + 1));
                prop_assert!(!(now == Verdict::Fail && worse == Verdict::Pass));
            }
        }
    }
}

/// Whatever the telemetry lacks, a rule on it is no pass.
#[test]
fn nothing_to_look_at_is_never_a_pass() {
    let amount = |metric: Metric| match metric.unit() {
        policysim_sim::gate::Unit::Share => 0.5,
        _ => 1.0,
    };
    for metric in Metric::all() {
        if metric.source() == policysim_sim::gate::Source::Policy {
            continue;
        }
        for bound in [Bound::Max, Bound::Min] {
            let rule = rule(metric, bound, amount(metric), Scope::All);
            assert_eq!(
                verdict(&rule, &Figures::default()),
                Verdict::NoData,
                "{}",
                metric.name()
            );
            let empty = outcomes(Vec::new());
            assert_eq!(verdict(&rule, &empty), Verdict::NoData, "{}", metric.name());
        }
    }
}
