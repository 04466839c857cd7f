//! Every law of the committed models, held against what 100,000 runs draw from it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use policysim_policy::Kind;
use policysim_sim::run::{RecordedEnd, Run, Symbols, WaitKind};
use policysim_sim::stats::{Counts, Level, Prob, quantile_of_counts};
use policysim_sim::synth::{
    Generator, Model, Options, Population, Quantiles, RunFigure, Sampling, SourceResolution,
};

const RUNS: u64 = 100_000;

/// Laws by name, and what was drawn from each.
#[derive(Default)]
struct Drawn(BTreeMap<String, Counts>);

impl Drawn {
    fn add(&mut self, law: &str, value: u64) {
        match self.0.get_mut(law) {
            Some(counts) => counts.add(value, 1),
            None => {
                self.0.insert(law.to_owned(), [value].into_iter().collect());
            }
        }
    }

    /// Takes apart one run into the draws that it was made of.
    fn take(&mut self, population: &Population, run: &Run, symbols: &Symbols) {
        let streams = population.resolution() == SourceResolution::Stream;
        // without a law of pieces an output has none, and takes no time
        let in_pieces = population.streaming().is_some();
        let mut asked = BTreeSet::new();
        let mut failed = false;
        // since the answer's last piece, and its pieces so far
        let mut answer: Option<(u64, u64)> = None;
        let last = run.events.len() - 1;
        for event in &run.events {
            match event.kind {
                Kind::TurnStart => failed = false,
                Kind::RetryStart => failed = true,
                Kind::ApprovalStart => {
                    asked.insert(event.id);
                }
                Kind::MessageStart if in_pieces => answer = Some((event.t_ms, 0)),
                Kind::MessageUpdate | Kind::MessageEnd if streams => {
                    if let Some((since, pieces)) = answer {
                        self.add("inter_token", event.t_ms - since);
                        answer = Some((event.t_ms, pieces + 1));
                    }
                    // the last gap leads to the end of the output and is no piece
                    if event.kind == Kind::MessageEnd
                        && let Some((_, pieces)) = answer.take()
                    {
                        self.add("pieces", pieces - 1);
                    }
                }
                Kind::MessageEnd if in_pieces => {
                    answer = Some((0, answer.map_or(0, |(_, blocks)| blocks + 1)));
                }
                Kind::TurnEnd if !streams => {
                    if let Some((_, blocks)) = answer.take() {
                        self.add("pieces", blocks);
                    }
                }
                _ => {}
            }
            let Some(wait) = event.wait else { continue };
            match wait.kind {
                // a wait that an approval lengthens, or that follows failed calls, is drawn from more than one law
                _ if event.kind == Kind::ToolEnd && asked.contains(&event.id) => {}
                WaitKind::Censored if failed => {}
                // the schedule's
                WaitKind::Retry | WaitKind::PreTokenErr => {}
                kind if event.kind == Kind::ToolEnd || kind == WaitKind::Human => {
                    let name = symbols.name(event.name);
                    let tools = population.tools().unwrap();
                    let tool = tools.list.iter().find(|tool| tool.name == name).unwrap();
                    if tool.duration.is_some() {
                        self.add(&format!("tool {name}"), wait.ms);
                    } else {
                        self.add(kind.name(), wait.ms);
                    }
                }
                kind => self.add(kind.name(), wait.ms),
            }
        }
        if run.end == RecordedEnd::Hung {
            let silent_ms = run.end_ms - run.events[last].t_ms;
            self.add("record_after_hang", silent_ms);
        }
        let turns = u64::from(run.measured.turns);
        let exhausted = run.events[last].wait.is_some() || failed;
        let role = population.roles().list.iter();
        let own = role
            .clone()
            .find(|role| role.name == *run.role)
            .is_some_and(|role| role.turns.is_some());
        match run.end {
            RecordedEnd::Completed if own => self.add(&format!("turns {}", run.role), turns),
            RecordedEnd::Completed => self.add("turns", turns),
            RecordedEnd::Failed if !exhausted => self.add("looped_turns", turns),
            _ => {}
        }
    }
}

/// The law of that name.
fn law<'p>(population: &'p Population, name: &str) -> Option<&'p Quantiles> {
    if let Some(tool) = name.strip_prefix("tool ") {
        let tools = &population.tools()?.list;
        let tool = tools.iter().find(|one| one.name == tool)?;
        return tool.duration.as_ref();
    }
    if let Some(role) = name.strip_prefix("turns ") {
        let roles = &population.roles().list;
        return roles.iter().find(|one| one.name == role)?.turns.as_ref();
    }
    match name {
        "pieces" => Some(&population.streaming()?.pieces),
        "turns" => population.figures().get(&RunFigure::Turns),
        "looped_turns" => population.ends().looped_turns.as_ref(),
        "record_after_hang" => population.ends().record_after_hang.as_ref(),
        _ => population.waits().get(&WaitKind::from_name(name)?),
    }
}

/// Where a law misses its bound: within 2 % at p50, p90 and p99, p99.9 within its 99 % order-statistic interval.
/// A quantile of n draws in n strata is within one stratum of the law's. Some laws rise by more than 2 % in one (claude's
/// `censored` by 4.6 % above p99), so that another seed than 0 may miss by one draw; a miss by chance alone is far larger.
fn misses(what: &str, law: &Quantiles, drawn: &Counts) -> Vec<String> {
    let at = |p: Prob| quantile_of_counts(drawn, p, Level::P99);
    let mut missed = Vec::new();
    for p in [Prob::P50, Prob::P90, Prob::P99] {
        let (expected, found) = (law.value(p.to_f64()), at(p).value.unwrap());
        if found.abs_diff(expected) * 50 > expected {
            missed.push(format!(
                "{what} {}: {found} drawn, {expected} in the model, n {}",
                p.percentile_label(),
                drawn.total(),
            ));
        }
    }
    let (expected, interval) = (law.value(0.999), at(Prob::P999).interval);
    let inside =
        interval.lo.is_none_or(|lo| lo <= expected) && interval.up.is_none_or(|up| expected <= up);
    if !inside {
        missed.push(format!(
            "{what} p99.9: {interval} drawn, {expected} in the model"
        ));
    }
    missed
}

#[test]
fn every_law_of_the_committed_models_is_drawn() {
    let mut missed = Vec::new();
    let mut compared = 0;
    for name in ["adr-0129.toml", "public-2026.toml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/models");
        let text = std::fs::read_to_string(path.join(name)).unwrap();
        let model: Model = toml::from_str(&text).unwrap();
        for (name, population) in model.populations() {
            let options = Options {
                seed: 0,
                runs: RUNS,
                sampling: Sampling::Stratified,
            };
            let generator = Generator::new(&model, Some(name), options).unwrap();
            let mut drawn = Drawn::default();
            for from in (0..RUNS).step_by(5_000) {
                for run in generator.runs(from..from + 5_000) {
                    drawn.take(population, &run, generator.symbols());
                }
            }
            for (of, counts) in &drawn.0 {
                let law = law(population, of).unwrap_or_else(|| panic!("{name} has no {of}"));
                println!("{name} {of}: n {}", counts.total());
                compared += 1;
                missed.extend(misses(&format!("{name} {of}"), law, counts));
            }
        }
    }
    println!("{compared} laws compared");
    assert_eq!(compared, 56);
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
