//! Scenarios in the format `neutral-timeline/1`: timed events of one or more agents, each under a watchdog of its own.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use policysim_policy::task_wait::{self, Call, Delegate};
use policysim_policy::{
    Cause, ClockClass, Kind, Millis, Output, Policy, Setup, Trace, Verdict, Warning, Watchdog,
};
use serde_json::{Map, Value as Json, json};

use super::fields::Fields;
use super::judge::{Judged, judge};
use super::scenario_policy;
use super::trace::{self, Spoken};

/// The keys of a scenario.
const KEYS: [&str; 9] = [
    "scenario",
    "format",
    "title",
    "policy",
    "policy_recorded",
    "observe_until_ms",
    "events",
    "attempt_events",
    "expect",
];
/// Which of two recorded clocks drives the replay.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Clock {
    /// The monotonic one where there is one.
    #[default]
    Monotonic,
    /// The wall clock.
    Wall,
}

/// One moment of a scenario.
#[derive(Clone, Debug)]
struct Moment<'j> {
    wall: Millis,
    mono: Option<Millis>,
    agent: &'j str,
    fields: Fields<'j>,
}

/// A scenario's events, in file order, repeats spelled out and merged in by time.
#[derive(Clone, Debug)]
pub(super) struct Timeline<'j> {
    moments: Vec<Moment<'j>>,
    observe_until: Option<Millis>,
    /// Keys of the scenario and its events that nothing here reads.
    unread: BTreeSet<String>,
    /// The clock that drives the replay.
    pub(super) clock: Clock,
}

/// How one agent's run ended under a policy, and what was seen on the way.
#[derive(Clone, Debug)]
pub(super) struct AgentRun {
    /// The verdict.
    pub(super) verdict: Verdict,
    /// The longest reading of the idle clock.
    longest_gap: Millis,
    /// Calls whose end was lost.
    lost_ends: usize,
}

/// The runs of a scenario by agent.
pub(super) type Runs<'j> = BTreeMap<&'j str, AgentRun>;

/// Runs a scenario under the policy it brings, its rows and its variants.
pub(super) fn run(scenario: &Json) -> Result<Judged> {
    let timeline = Timeline::read(scenario)?;
    let base = scenario
        .get("policy")
        .or_else(|| scenario.get("policy_recorded"))
        .context("policy is missing")?;
    let expect = scenario.get("expect").context("expect is missing")?;
    let policy = policy(base)?;
    let runs = timeline.replay(&policy)?;
    let mut got = told(&runs);
    let waits = timeline.waits(&policy, &runs)?;
    got.insert("wait".to_owned(), json!(waits));
    got.insert("attribution".to_owned(), attribution(expect, &runs));
    got.extend(attempts(&policy, &runs));
    for rows in ["sweep", "results"] {
        let told = expect.get(rows).and_then(Json::as_array).map(|rows| {
            rows.iter()
                .map(|row| self::row(&timeline, base, row))
                .collect()
        });
        if let Some(told) = told {
            got.insert(
                rows.to_owned(),
                Json::Array(Result::from_iter::<Vec<_>>(told)?),
            );
        }
    }
    for (name, _) in expect.as_object().into_iter().flatten() {
        if let Some(variant) = Variant::find(name) {
            let mut policy = policy.clone();
            let mut timeline = timeline.clone();
            (variant.policy)(&mut policy);
            (variant.timeline)(&mut timeline);
            let row = expect[name].as_object().into_iter().flatten();
            let keys = row.filter(|(key, _)| scenario_policy::is_policy_key(key));
            let keys = keys
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            scenario_policy::apply(&mut policy, &keys)?;
            let mut told = told(&timeline.replay(&policy)?);
            if let Some(at) = told.get("fire_at_ms").cloned() {
                told.insert("would_fire_at_ms".to_owned(), at);
            }
            told.extend(keys);
            got.insert(name.clone(), Json::Object(told));
        }
    }
    let judged = judge(expect, &got)?;
    Ok(judged.with_unread(timeline.unread))
}

/// The policy of a document without a preset, with the keys of a scenario set.
fn policy(keys: &Json) -> Result<Policy> {
    let mut policy = Policy::default();
    let keys = keys.as_object().context("the policy is not an object")?;
    scenario_policy::apply(&mut policy, keys)?;
    Ok(policy)
}

/// One row of a sweep: its policy keys over the scenario's own, and what came of it.
fn row(timeline: &Timeline<'_>, base: &Json, row: &Json) -> Result<Json> {
    let row = row.as_object().context("a row is not an object")?;
    let keys: Map<String, Json> = row
        .iter()
        .filter(|(key, _)| scenario_policy::is_policy_key(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut policy = policy(base)?;
    scenario_policy::apply(&mut policy, &keys)?;
    let mut told = told(&timeline.replay(&policy)?);
    told.extend(keys);
    Ok(Json::Object(told))
}

/// What is told of a scenario's runs: the earliest firing, or none.
fn told(runs: &Runs<'_>) -> Map<String, Json> {
    let mut told = Map::new();
    let fired = earliest_firing(runs);
    let verdict = fired.or_else(|| runs.values().map(|run| &run.verdict).next());
    let at = fired.map(|verdict| verdict.at.as_u64());
    if let Some(verdict) = verdict {
        told.insert("verdict".to_owned(), json!(verdict.cause.name()));
        told.insert("elapsed_ms".to_owned(), json!(verdict.at.as_u64()));
    }
    told.insert("fire_at_ms".to_owned(), json!(at));
    let kills = runs
        .values()
        .filter(|run| run.verdict.cause.is_firing())
        .count();
    told.insert("kills".to_owned(), json!(kills));
    let lost: usize = runs.values().map(|run| run.lost_ends).sum();
    told.insert("unmatched_tool_starts".to_owned(), json!(lost));
    let gaps: Vec<(&str, u64)> = runs
        .iter()
        .map(|(agent, run)| (*agent, run.longest_gap.as_u64()))
        .collect();
    let gap = match gaps.as_slice() {
        [(_, gap)] => json!(gap),
        gaps => gaps
            .iter()
            .map(|(agent, gap)| ((*agent).to_owned(), json!(gap)))
            .collect::<Map<_, _>>()
            .into(),
    };
    told.insert("max_unpaused_gap_ms".to_owned(), gap);
    told
}

fn earliest_firing<'r>(runs: &'r Runs<'_>) -> Option<&'r Verdict> {
    runs.values()
        .map(|run| &run.verdict)
        .filter(|verdict| verdict.cause.is_firing())
        .min_by_key(|verdict| verdict.at)
}

/// The policy key whose limit fired; the expected spelling where it means that limit.
fn attribution(expect: &Json, runs: &Runs<'_>) -> Json {
    let cause = earliest_firing(runs).map(|verdict| verdict.cause);
    let expected = expect.get("attribution").and_then(Json::as_str);
    match (expected, cause) {
        (Some(key), Some(cause)) if scenario_policy::cause_of(key) == Some(cause) => json!(key),
        (_, cause) => json!(cause.map(Cause::name)),
    }
}

/// What a parent that tries again after each firing gets, when every attempt goes the same way.
fn attempts(policy: &Policy, runs: &Runs<'_>) -> Map<String, Json> {
    let mut told = Map::new();
    if policy.on_timeout.retry > 0
        && let Some(verdict) = earliest_firing(runs)
    {
        let attempts = u64::from(policy.on_timeout.retry) + 1;
        let at = verdict.at.as_u64();
        told.insert("attempts".to_owned(), json!(attempts));
        told.insert("fire_at_ms_per_attempt".to_owned(), json!(at));
        told.insert("elapsed_ms".to_owned(), json!(attempts * at));
        told.insert("outcome".to_owned(), json!("failed"));
    }
    told
}

impl<'j> Timeline<'j> {
    /// Reads the events of a scenario.
    pub(super) fn read(scenario: &'j Json) -> Result<Self> {
        let mut unread = BTreeSet::new();
        let scenario = Fields::with_remarks(scenario, &KEYS, &mut unread)?;
        let events = match scenario.list("events")? {
            [] => scenario.list("attempt_events")?,
            events => events,
        };
        let mut agents = events.iter().filter_map(|event| {
            let event = event.get("repeat").unwrap_or(event);
            event.get("agent").and_then(Json::as_str)
        });
        let first_agent = agents.next().unwrap_or("");
        let mut moments: Vec<Moment<'j>> = Vec::new();
        let mut latest = [Millis::ZERO; 2];
        let mut repeats = 0;
        for (at, event) in events.iter().enumerate() {
            let read = if let Some(repeat) = event.get("repeat") {
                repeats += 1;
                repeated(repeat, &mut unread)
            } else {
                once(event, &mut latest, &mut unread)
            };
            let read = read.with_context(|| format!("event {at}"))?;
            moments.extend(read.into_iter().map(|(wall, mono, fields)| {
                let agent = fields.text("agent").ok().flatten().unwrap_or(first_agent);
                Moment {
                    wall,
                    mono,
                    agent,
                    fields,
                }
            }));
        }
        if repeats > 0 {
            moments.sort_by_key(|moment| moment.wall);
        }
        Ok(Self {
            moments,
            observe_until: scenario.millis("observe_until_ms")?,
            clock: Clock::default(),
            unread,
        })
    }

    /// Keeps the events of one kind, as a log that records nothing else would, with the frame of the run.
    pub(super) fn keep_only(&mut self, kind: Kind) {
        let frame = [Kind::RunStart, Kind::RunEnd, Kind::Resume];
        self.moments.retain(|moment| {
            moment_kind(moment).is_some_and(|known| known == kind || frame.contains(&known))
        });
    }

    /// Moves the end of the run.
    pub(super) fn end_at(&mut self, end: Millis) {
        for moment in &mut self.moments {
            if moment_kind(moment) == Some(Kind::RunEnd) {
                moment.wall = end;
                moment.mono = None;
            }
        }
    }

    /// Drops everything after the first event of a kind and looks on until `until`.
    pub(super) fn hangs_after(&mut self, kind: Kind, until: Millis) {
        if let Some(at) = self
            .moments
            .iter()
            .position(|moment| moment_kind(moment) == Some(kind))
        {
            self.moments.truncate(at + 1);
        }
        self.observe_until = Some(until);
    }

    fn time(&self, moment: &Moment<'_>) -> Millis {
        match self.clock {
            Clock::Monotonic => moment.mono.unwrap_or(moment.wall),
            Clock::Wall => moment.wall,
        }
    }

    /// Replays every agent that has a run of its own.
    pub(super) fn replay(&self, policy: &Policy) -> Result<Runs<'j>> {
        let mut agents: Vec<&str> = self.moments.iter().map(|moment| moment.agent).collect();
        agents.sort_unstable();
        agents.dedup();
        let mut runs = Runs::new();
        for agent in agents {
            if let Some(run) = self.replay_agent(policy, agent)? {
                runs.insert(agent, run);
            }
        }
        if runs.is_empty() {
            bail!("no agent has a run_start or spawn_accepted");
        }
        Ok(runs)
    }

    fn replay_agent(&self, policy: &Policy, agent: &str) -> Result<Option<AgentRun>> {
        let own = || self.moments.iter().filter(|moment| moment.agent == agent);
        let Some(start) =
            own().find(|moment| matches!(moment_kind(moment), Some(Kind::RunStart | Kind::Spawn)))
        else {
            return Ok(None);
        };
        let setup = Setup {
            trace: Trace::Full,
            ..Setup::default()
        };
        let mut dog = Watchdog::with(policy, self.time(start), &setup);
        let mut horizon = self.observe_until;
        let mut last = Millis::ZERO;
        for moment in own() {
            let at = self.time(moment);
            let Some(Spoken { event, .. }) = trace::event(moment.fields)? else {
                horizon = Some(at);
                break;
            };
            dog.handle_event(at, &event);
            last = last.max(at);
        }
        let latest = self.moments.iter().map(|moment| self.time(moment)).max();
        dog.finish(horizon.unwrap_or_else(|| latest.unwrap_or(last)).max(last));
        Ok(Some(AgentRun::of(dog)?))
    }

    /// What each wait of a parent returns with: when, and how the child stood.
    fn waits(&self, policy: &Policy, runs: &Runs<'_>) -> Result<Vec<Json>> {
        let mut waits = Vec::new();
        let started = self
            .moments
            .iter()
            .filter(|moment| moment_kind(moment) == Some(Kind::WaitStart));
        for moment in started {
            let targets: Vec<&str> = moment
                .fields
                .list("targets")?
                .iter()
                .filter_map(Json::as_str)
                .collect();
            let delegates: Vec<Delegate<'_>> = targets
                .iter()
                .filter_map(|target| {
                    let verdict = &runs.get(target)?.verdict;
                    let settles = verdict.cause != Cause::Running;
                    Some(Delegate {
                        id: target,
                        settles_at: settles.then_some(verdict.at),
                    })
                })
                .collect();
            let at = self.time(moment);
            let over = |delegate: &Delegate<'_>| delegate.settles_at.is_some_and(|end| end < at);
            if !delegates.is_empty() && delegates.iter().all(over) {
                // The parent was told already; a scenario speaks of the wait in which it was.
                continue;
            }
            let call = Call {
                ids: Some(&targets),
                ..Call::default()
            };
            let mut contract = policy.task_wait;
            if let Some(window) = moment.fields.millis("window_ms")? {
                contract.timeout = window;
            }
            let returned = task_wait::wait(&call, &contract, &delegates, at, None);
            let failed = targets
                .iter()
                .filter_map(|target| runs.get(target))
                .any(|run| run.verdict.cause.is_firing());
            waits.push(json!({
                "id": moment.fields.text("id")?,
                "settles_at_ms": returned.at.as_u64(),
                "status": match (returned.expired, failed) {
                    (true, _) => "still_running",
                    (false, true) => "failed",
                    (false, false) => "completed",
                },
            }));
        }
        Ok(waits)
    }
}

impl AgentRun {
    fn of(mut dog: Watchdog) -> Result<Self> {
        let verdict = dog.verdict().cloned();
        let mut longest_gap = Millis::ZERO;
        let mut lost_ends = 0;
        while let Some(output) = dog.poll_output() {
            match output {
                Output::Silence(silence) if silence.clock == ClockClass::Idle => {
                    longest_gap = longest_gap.max(silence.reading);
                }
                Output::Warned {
                    warning: Warning::LostEnd { .. },
                    ..
                } => lost_ends += 1,
                _ => {}
            }
        }
        Ok(Self {
            verdict: verdict.context("the watchdog gave no verdict")?,
            longest_gap,
            lost_ends,
        })
    }
}

/// The kind of a moment; `None` where the record ends or the word is unknown (which the replay reports).
fn moment_kind(moment: &Moment<'_>) -> Option<Kind> {
    let spoken = trace::event(moment.fields).ok()??;
    Some(spoken.event.kind)
}

type Timed<'j> = (Millis, Option<Millis>, Fields<'j>);

fn event_keys() -> Vec<&'static str> {
    [trace::EVENT_KEYS.as_slice(), &trace::TIME_KEYS].concat()
}

/// One event. Where a clock steps back, the running maximum goes on, so that file order and time order agree.
fn once<'j>(
    event: &'j Json,
    latest: &mut [Millis; 2],
    unread: &mut BTreeSet<String>,
) -> Result<Vec<Timed<'j>>> {
    let fields = Fields::with_remarks(event, &event_keys(), unread)?;
    latest[0] = latest[0].max(fields.need_millis("t_ms")?);
    let mono = fields.millis("mono_ms")?;
    if let Some(mono) = mono {
        latest[1] = latest[1].max(mono);
    }
    Ok(vec![(latest[0], mono.map(|_| latest[1]), fields)])
}

/// Events of one kind at a fixed distance, both ends included.
/// The most events that one `repeat` may stand for.
const MOST_REPEATS: u64 = 1_000_000;

fn repeated<'j>(repeat: &'j Json, unread: &mut BTreeSet<String>) -> Result<Vec<Timed<'j>>> {
    let keys = [event_keys().as_slice(), &["from_ms", "to_ms", "every_ms"]].concat();
    let fields = Fields::with_remarks(repeat, &keys, unread)?;
    let every = fields.need_millis("every_ms")?.as_u64();
    if every == 0 {
        bail!("every_ms is 0");
    }
    let to = fields.need_millis("to_ms")?;
    let mut at = fields.need_millis("from_ms")?;
    let count = to.since(at).as_u64() / every;
    if count > MOST_REPEATS {
        bail!("repeats {count} times, expected at most {MOST_REPEATS}");
    }
    let mut moments = Vec::new();
    while at <= to {
        moments.push((at, None, fields));
        at = at.plus(Millis::new(every));
    }
    Ok(moments)
}

/// A named variant of a scenario: what it changes.
pub(super) struct Variant {
    /// Its name as a key of `expect`.
    pub(super) name: &'static str,
    /// What it changes in the policy.
    pub(super) policy: fn(&mut Policy),
    /// What it changes in the events.
    pub(super) timeline: fn(&mut Timeline<'_>),
}

const VARIANTS: [Variant; 13] = [
    Variant::of_policy("without_max_tool", |policy| {
        policy.pause.tool_limit = policysim_policy::ToolLimit::default();
    }),
    Variant::of_policy("any_event_policy", |policy| {
        policy.idle.rearm = policysim_policy::KindSet::ALL;
    }),
    Variant::of_policy("progress_aware", |_| {}),
    Variant::of_policy("flat", |policy| {
        let kinds = policysim_policy::KindSet::from_items(["all", "-progress"]);
        policy.idle.rearm = kinds.unwrap_or_default();
    }),
    Variant::of_policy("off", |policy| {
        policy.pause.backoff = policysim_policy::Waits::None;
    }),
    Variant::of_policy("startup_off", |policy| policy.idle.startup = None),
    Variant::of_policy("without_grace", |policy| policy.kill.result_grace = None),
    Variant::of_policy("alternative", |_| {}),
    Variant::of_events("log_view", |timeline| timeline.keep_only(Kind::MessageEnd)),
    Variant::of_events("variant_end_at_300000", |timeline| {
        timeline.end_at(Millis::new(300_000));
    }),
    Variant::of_events("variant_end_at_299999", |timeline| {
        timeline.end_at(Millis::new(299_999));
    }),
    Variant::of_events("variant_hung", |timeline| {
        timeline.hangs_after(Kind::CompactionStart, Millis::from_secs(86_400));
    }),
    Variant::of_events("wall_clock", |timeline| timeline.clock = Clock::Wall),
];

impl Variant {
    const fn of_policy(name: &'static str, policy: fn(&mut Policy)) -> Self {
        Self {
            name,
            policy,
            timeline: |_| {},
        }
    }

    const fn of_events(name: &'static str, timeline: fn(&mut Timeline<'_>)) -> Self {
        Self {
            name,
            policy: |_| {},
            timeline,
        }
    }

    /// The variant of that name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        VARIANTS.iter().find(|variant| variant.name == name)
    }
}
