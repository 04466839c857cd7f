//! A second look at the runs, session by session, under the few policies that intervals are wanted for.
//!
//! The first scan of a sweep sums over all runs for every candidate. Which candidates are worth totals by session is
//! known only after it: this scan reads the runs again for those alone, in bounded memory.

use policysim_policy::{Millis, Policy, Silence};
use rayon::prelude::*;

use crate::cluster::session_key;
use crate::judgement::Judgement;
use crate::ledger::ActiveTime;
use crate::life::Life;
use crate::pass::{Once, Outcome, Scratch};
use crate::plan::Plan;
use crate::pool::Pool;
use crate::replay::kill_class;
use crate::run::{RecordedEnd, Run, RunStatus, Symbols};
use crate::scan::{Batch, RunView, Scan};
use crate::sessions::BySession;
use crate::staircase::Crossings;
use crate::stretches::OfRun;
use crate::summary::{NeedsEvents, Summary};
use crate::sweep::{Candidate, settling_lag};

/// So many policies can be looked at together.
pub(crate) const POLICIES: usize = 3;
/// So many levels of gaps can be counted beside the window.
pub(crate) const LEVELS: usize = 3;

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    /// The policy under whose structure lengths are looked for.
    pub(crate) base: &'a Policy,
    /// The policies that are priced, at most [`POLICIES`]; gaps are those of the first.
    pub(crate) policies: Vec<&'a Policy>,
    /// What a restart costs beyond the work lost.
    pub(crate) restart: Millis,
    /// By which sessions are halved.
    pub(crate) seed: u64,
    /// Levels at which the gaps of every session are counted, ms.
    pub(crate) levels: [Option<u64>; LEVELS],
    /// Ranges of lengths, ms, of which the first reading is looked for.
    pub(crate) ranges: Vec<(u64, u64)>,
}

/// What one policy costs the runs of a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cost {
    /// Work lost to false and unresolved kills, restarts included, ms.
    pub(crate) false_kill_ms: u128,
    /// Last activity to settling over the hung runs, ms.
    pub(crate) slot_lost_ms: u128,
}

/// The gaps of a session's runs that are not labelled as hung, against a window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Gaps {
    pub(crate) n: u64,
    pub(crate) active_ms: u128,
    /// Gaps of at least the window, and their time beyond it.
    pub(crate) mistakes: u64,
    pub(crate) suspected_ms: u128,
    /// Gaps of at least each level.
    pub(crate) above: [u64; LEVELS],
}

/// The totals of one session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Totals {
    /// Runs that are not labelled as hung, and that are.
    pub(crate) runs: u64,
    pub(crate) hung: u64,
    /// By policy.
    pub(crate) costs: [Cost; POLICIES],
    pub(crate) gaps: Gaps,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.hung += other.hung;
        for (mine, theirs) in self.costs.iter_mut().zip(other.costs) {
            mine.false_kill_ms += theirs.false_kill_ms;
            mine.slot_lost_ms += theirs.slot_lost_ms;
        }
        let (mine, theirs) = (&mut self.gaps, other.gaps);
        mine.n += theirs.n;
        mine.active_ms += theirs.active_ms;
        mine.mistakes += theirs.mistakes;
        mine.suspected_ms += theirs.suspected_ms;
        for (mine, theirs) in mine.above.iter_mut().zip(theirs.above) {
            *mine += theirs;
        }
    }
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) sessions: BySession<Totals>,
    /// By range: when the first run that has a reading in it started, ms since the epoch, of dated runs.
    pub(crate) first_ms: Vec<Option<i64>>,
}

impl Seen {
    fn new(asked: &Asked<'_>) -> Self {
        Self {
            sessions: BySession::new(asked.seed),
            first_ms: vec![None; asked.ranges.len()],
        }
    }

    fn merge(mut self, other: Self) -> Self {
        self.sessions.merge(other.sessions);
        for (mine, theirs) in self.first_ms.iter_mut().zip(other.first_ms) {
            *mine = earliest(*mine, theirs);
        }
        self
    }
}

fn earliest(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// Looks at every sized run of `source`.
///
/// # Errors
/// When a batch cannot be read.
pub(crate) fn look<S: Scan>(source: &S, asked: &Asked<'_>) -> Result<Seen, S::Error> {
    struct Worker {
        seen: Seen,
        scratch: Scratch,
        batch: Batch,
    }
    let looking = Looking {
        asked,
        plan: Plan::new(asked.base, &candidates_of(asked)),
    };
    let pool = Pool::new(|| Worker {
        seen: Seen::new(asked),
        scratch: Scratch::default(),
        batch: Batch::default(),
    });
    (0..source.batches())
        .into_par_iter()
        .try_for_each(|index| {
            pool.with(|worker| {
                let batch = source.read(index, &mut worker.batch)?;
                for run in batch.runs().filter(|run| run.head.status == RunStatus::Run) {
                    let (seen, scratch) = (&mut worker.seen, &mut worker.scratch);
                    looking.at(&run, source.symbols(), seen, scratch);
                }
                Ok(())
            })
        })?;
    let seen = pool.into_all().map(|worker| worker.seen);
    Ok(seen.reduce(Seen::merge).unwrap_or_else(|| Seen::new(asked)))
}

struct Looking<'a> {
    asked: &'a Asked<'a>,
    plan: Plan,
}

/// Looks at every run of a summary, whose structures answer for the policies: gaps, and when they began, are not in it.
///
/// # Errors
/// When something asked for was not read, or is answered by replays.
pub(crate) fn look_at_summary(summary: &Summary, asked: &Asked<'_>) -> Result<Seen, NeedsEvents> {
    let candidates = candidates_of(asked);
    let planned = summary.plan(asked.base, &candidates)?;
    let looking = Looking {
        asked,
        plan: planned.plan.clone(),
    };
    let mut seen = Seen::new(asked);
    let mut scratch = Scratch::default();
    for run in summary.each_run() {
        scratch.active.restore(&run.active);
        scratch.found = planned.found(run);
        let mut once = planned.once(run);
        looking.price(
            &run.head,
            &run.life,
            &mut once,
            &mut seen,
            &scratch,
            Totals::default(),
        );
        if once.is_stuck {
            return Err(NeedsEvents::Replayed(run.head.name.to_string()));
        }
    }
    Ok(seen)
}

fn candidates_of(asked: &Asked<'_>) -> Vec<Candidate> {
    let candidate = |&policy: &&Policy| Candidate {
        policy: policy.clone(),
        settings: Vec::new(),
    };
    asked.policies.iter().map(candidate).collect()
}

impl Looking<'_> {
    fn at(&self, run: &RunView<'_>, symbols: &Symbols, seen: &mut Seen, scratch: &mut Scratch) {
        let mut totals = Totals::default();
        self.read(run, symbols, seen, scratch, &mut totals);
        scratch.active.read(run);
        let (life, mut once) = (Life::of(run), Once::of(run, symbols));
        self.price(run.head, &life, &mut once, seen, scratch, totals);
    }

    /// Adds what the policies cost a run that has been read to its session; `totals` holds its gaps.
    fn price(
        &self,
        head: &Run,
        life: &Life,
        once: &mut Once<'_>,
        seen: &mut Seen,
        scratch: &Scratch,
        mut totals: Totals,
    ) {
        if head.end == RecordedEnd::Hung {
            totals.hung = 1;
            totals.gaps = Gaps::default();
        } else {
            totals.runs = 1;
        }
        for (policy, cost) in self.asked.policies.iter().zip(&mut totals.costs) {
            let ending = self.ending(policy, &scratch.found, once);
            let paid = Paid {
                life,
                active: &scratch.active,
                head,
                restart: self.asked.restart,
            };
            *cost = paid.cost(policy, ending.as_ref());
        }
        seen.sessions.add(session_key(head), totals);
    }

    /// Reads the run under every structure, and sums what its gaps are.
    fn read(
        &self,
        run: &RunView<'_>,
        symbols: &Symbols,
        seen: &mut Seen,
        scratch: &mut Scratch,
        totals: &mut Totals,
    ) {
        let (asked, plan) = (self.asked, &self.plan);
        let window = asked.policies.first().and_then(|first| first.idle.window);
        let window_ms = window.map_or(u64::MAX, Millis::as_u64);
        scratch
            .found
            .resize_with(plan.structures.len(), Crossings::default);
        let mut hits = vec![0_i64; asked.ranges.len()];
        let mut hit = |ms: u64, change: i64| {
            for (hits, (from_ms, to_ms)) in hits.iter_mut().zip(&asked.ranges) {
                if (*from_ms..=*to_ms).contains(&ms) {
                    *hits += change;
                }
            }
        };
        let of_run: &mut OfRun = &mut scratch.of_run;
        for (index, (lines, found)) in plan.structures.iter().zip(&mut scratch.found).enumerate() {
            let (priced, of_base) = (plan.gaps.first() == Some(&index), index == plan.base_gaps);
            let gaps = &mut totals.gaps;
            of_run.read(
                run.head,
                |of_run, short| {
                    let told = |silence: &Silence| of_run.take(silence);
                    lines
                        .structure
                        .read(run, symbols, found, told, |ms| short.take(ms));
                },
                |ms| {
                    if priced && ms > 0 {
                        gaps.n += 1;
                        gaps.active_ms += u128::from(ms);
                        if ms >= window_ms {
                            gaps.mistakes += 1;
                            gaps.suspected_ms += u128::from(ms - window_ms);
                        }
                        for (above, level) in gaps.above.iter_mut().zip(asked.levels) {
                            *above += u64::from(level.is_some_and(|level| ms >= level));
                        }
                    }
                    if of_base {
                        hit(ms, 1);
                    }
                },
            );
            if of_base {
                of_run.less.iter().for_each(|&ms| hit(ms, -1));
                of_run.more.iter().for_each(|&ms| hit(ms, 1));
            }
        }
        let started = run.head.started_at_ms;
        for (first, hits) in seen.first_ms.iter_mut().zip(hits) {
            if hits > 0 && started != 0 {
                *first = earliest(*first, Some(started));
            }
        }
    }

    /// How the run ends under `policy`; `None` when by itself or with its record.
    fn ending(&self, policy: &Policy, found: &[Crossings], once: &mut Once<'_>) -> Option<Outcome> {
        let window = policy.idle.window;
        match self.plan.place_of(policy) {
            None => Some(once.replay(policy, window)),
            Some(index) => {
                let structure = &self.plan.structures[index].structure;
                let answer = structure.answer(&found[index], policy, window, once.role);
                once.settle(answer, policy, window)
            }
        }
    }
}

/// What a run is priced by.
struct Paid<'a> {
    life: &'a Life,
    active: &'a ActiveTime,
    head: &'a Run,
    restart: Millis,
}

impl Paid<'_> {
    fn cost(&self, policy: &Policy, ending: Option<&Outcome>) -> Cost {
        let mut cost = Cost::default();
        let killed = ending.filter(|ending| kill_class(ending.cause).is_some());
        let end_ms = self.head.end_ms;
        if self.head.end == RecordedEnd::Hung {
            let onset_ms = self.life.onset_ms;
            let lag_ms = settling_lag(policy).as_u64();
            let settled_ms = killed.map_or(end_ms, |kill| kill.at_ms.saturating_add(lag_ms));
            // Killed before it hung: no slot was lost to the hang.
            if killed.is_none_or(|kill| kill.at_ms >= onset_ms) {
                cost.slot_lost_ms = u128::from(settled_ms.saturating_sub(onset_ms));
            }
            return cost;
        }
        let judgement = killed.map_or(self.life.survival(), |kill| {
            self.life.judge(kill.cause, kill.at_ms, kill.unseen)
        });
        if matches!(judgement, Judgement::FalseKill | Judgement::Unresolved) {
            let until_ms = killed.map_or(end_ms, |kill| kill.at_ms);
            cost.false_kill_ms = u128::from(self.active.until(until_ms));
            cost.false_kill_ms += u128::from(self.restart.as_u64());
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use policysim_policy::presets;

    use super::*;
    use crate::gaps::{self, findings};
    use crate::ledger::ledger;
    use crate::readings::observed;
    use crate::replay::{hang_onset_ms, replay};
    use crate::run::Fleet;
    use crate::scan::InMemory;
    use crate::silence::without_limits;
    use crate::stats::choice::half;
    use crate::summary::summarise;
    use crate::sweep::{Question, sized_runs, sweep_scan};
    use crate::synth::{Generator, Model, Options, Sampling};

    fn fleet(runs: u64) -> Fleet {
        let text = include_str!("../../../data/models/adr-0129.toml");
        let model: Model = toml::from_str(text).unwrap();
        let options = Options {
            seed: 5,
            runs,
            sampling: Sampling::Stratified,
        };
        Generator::new(&model, None, options).unwrap().fleet()
    }

    /// Every run replayed by itself.
    fn direct(fleet: &Fleet, asked: &Asked<'_>) -> BTreeMap<String, Totals> {
        let mut found: BTreeMap<String, Totals> = BTreeMap::new();
        for run in sized_runs(fleet) {
            let mut totals = Totals::default();
            let hung = run.end == RecordedEnd::Hung;
            (totals.runs, totals.hung) = (u64::from(!hung), u64::from(hung));
            for (&policy, cost) in asked.policies.iter().zip(&mut totals.costs) {
                let replayed = replay(policy, run, &fleet.symbols);
                let (killed, at_ms) = (replayed.is_kill(), replayed.verdict.at.as_u64());
                let lag_ms = settling_lag(policy).as_u64();
                if hung {
                    let onset_ms = hang_onset_ms(run);
                    let settled_ms = if killed { at_ms + lag_ms } else { run.end_ms };
                    if !killed || at_ms >= onset_ms {
                        cost.slot_lost_ms = u128::from(settled_ms - onset_ms);
                    }
                } else if matches!(
                    replayed.judgement,
                    Judgement::FalseKill | Judgement::Unresolved
                ) {
                    let until_ms = if killed { at_ms } else { run.end_ms };
                    cost.false_kill_ms = u128::from(ledger(run, until_ms).active_ms());
                    cost.false_kill_ms += u128::from(asked.restart.as_u64());
                }
            }
            if !hung {
                let structure = without_limits(asked.policies[0]);
                let window_ms = asked.policies[0].idle.window.unwrap().as_u64();
                let (ended, _) = observed(&structure, run, &fleet.symbols);
                let at_least = |ms: u64| ended.iter().filter(|&&gap| gap >= ms).count() as u64;
                totals.gaps = Gaps {
                    n: ended.len() as u64,
                    active_ms: u128::from(ended.iter().sum::<u64>()),
                    mistakes: at_least(window_ms),
                    suspected_ms: u128::from(
                        ended
                            .iter()
                            .map(|gap| gap.saturating_sub(window_ms))
                            .sum::<u64>(),
                    ),
                    above: asked.levels.map(|level| level.map_or(0, at_least)),
                };
            }
            *found.entry(session_key(run).to_string()).or_default() += totals;
        }
        found
    }

    fn with(base: &Policy, changes: &[(&str, &str)]) -> Policy {
        let mut policy = base.clone();
        for (key, value) in changes {
            policy.set(key, &(*value).into()).unwrap();
        }
        policy
    }

    #[test]
    fn sessions_are_what_their_runs_replayed_one_by_one_are() {
        let fleet = fleet(600);
        let base = presets::find("pi-desktop-0129").unwrap();
        let short = with(&base, &[("idle.window", "20s")]);
        let other = with(&base, &[("idle.first", "90s"), ("total.budget", "10m")]);
        // a spare window is replayed where it is granted, a limit of 0 always
        let mut spared = short.clone();
        spared.idle.grace_cycles = 1;
        let mut hasty = base.clone();
        hasty.pause.backoff_budget = Some(Millis::ZERO);
        for policies in [[&short, &base, &other], [&other, &spared, &hasty]] {
            let asked = Asked {
                base: &base,
                policies: policies.to_vec(),
                restart: Millis::from_secs(7),
                seed: 3,
                levels: [Some(60_000), None, Some(1_000)],
                ranges: Vec::new(),
            };
            let Ok(seen) = look(&InMemory::new(&fleet), &asked);
            let expected = direct(&fleet, &asked);
            let told: Vec<(_, Totals)> = seen
                .sessions
                .iter()
                .map(|(half, totals)| (half, *totals))
                .collect();
            let expected: Vec<(_, Totals)> = expected
                .into_iter()
                .map(|(key, totals)| (half(key.as_bytes(), 3), totals))
                .collect();
            assert!(expected.len() > 50, "{} sessions", expected.len());
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_summary_prices_sessions_like_its_events() {
        let fleet = fleet(300);
        let base = presets::find("pi-desktop-0129").unwrap();
        let short = with(&base, &[("idle.window", "45s")]);
        let candidates = [&short, &base].map(|policy| Candidate {
            policy: policy.clone(),
            settings: Vec::new(),
        });
        let question = Question {
            base: &base,
            candidates: &candidates,
            keys: &[],
            seed: 3,
            cluster: crate::cluster::Cluster::Day,
        };
        let Ok(summary) = summarise(&InMemory::new(&fleet), &question);
        let asked = Asked {
            base: &base,
            policies: vec![&short, &base],
            restart: Millis::ZERO,
            seed: 3,
            levels: [None; LEVELS],
            ranges: Vec::new(),
        };
        let Ok(mut seen) = look(&InMemory::new(&fleet), &asked);
        let kept = look_at_summary(&summary, &asked).unwrap();
        let prices = |seen: &Seen| -> Vec<Totals> {
            let without_gaps = |totals: &Totals| Totals {
                gaps: Gaps::default(),
                ..*totals
            };
            seen.sessions
                .iter()
                .map(|(_, totals)| without_gaps(totals))
                .collect()
        };
        assert_eq!(prices(&kept), prices(&seen));
        seen.first_ms.clear();
        // the readings are those of the events as well
        let of_events = sweep_scan(&InMemory::new(&fleet), &question, &|_| {});
        let Ok(of_events) = of_events;
        let of_summary = summary.sweep(&question).unwrap();
        assert_eq!(of_summary.counted(), of_events.counted());
        assert!(summary.has_readings_of(&base));
    }

    /// Counted readings find what the readings one by one find.
    #[test]
    fn counted_readings_are_the_readings() {
        let fleet = fleet(400);
        for preset in ["pi-desktop-0129", "pi-desktop-0119"] {
            let base = presets::find(preset).unwrap();
            let question = Question {
                base: &base,
                candidates: &[],
                keys: &[],
                seed: 0,
                cluster: crate::cluster::Cluster::Day,
            };
            let Ok(swept) = sweep_scan(&InMemory::new(&fleet), &question, &|_| {});
            let counted = swept.counted();
            let readings = gaps::idle_readings(&fleet, &base, None).remove("").unwrap();
            let silences = &readings.silences;
            assert_eq!(counted.ended, silences.ended());
            assert_eq!(counted.censored(), silences.censored());
            assert_eq!(counted.units, silences.units().map(|units| units as u64));
            assert_eq!(counted.largest, Some(silences.largest()));
            assert_eq!(counted.suspends, readings.suspends);
            let setting = findings::Setting::default();
            let first = |from: u64, to: u64| {
                let seen = readings.first_seen_ms.range(from..=to);
                seen.map(|(_, &ms)| ms).min()
            };
            let told = findings::of_counted(&counted, setting, first);
            assert_eq!(told, findings::of_idle(&readings, setting));
        }
    }

    #[test]
    fn the_first_reading_of_a_range_is_found() {
        let fleet = fleet(300);
        let base = presets::find("pi-desktop-0129").unwrap();
        let readings = gaps::idle_readings(&fleet, &base, None).remove("").unwrap();
        let ranges = vec![
            (1_000, 2_000),
            (30_000, 90_000),
            (8_000_000_000, 8_000_000_001),
        ];
        let asked = Asked {
            base: &base,
            policies: Vec::new(),
            restart: Millis::ZERO,
            seed: 0,
            levels: [None; LEVELS],
            ranges: ranges.clone(),
        };
        let Ok(seen) = look(&InMemory::new(&fleet), &asked);
        let expected: Vec<Option<i64>> = ranges
            .iter()
            .map(|&(from, to)| {
                readings
                    .first_seen_ms
                    .range(from..=to)
                    .map(|(_, &ms)| ms)
                    .min()
            })
            .collect();
        assert_eq!(seen.first_ms, expected);
    }
}
