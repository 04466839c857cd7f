//! Writes the events of one run, from its plan and from the streams that its times are drawn from.

use policysim_policy::retry::Draw;
use policysim_policy::{CallId, Kind, Millis, Outcome, RetrySchedule};

use super::calls::{Call, Calls};
use super::model::{Laws, Population, Retry, SourceResolution, Tool, Tools};
use super::outages::is_out;
use super::pace::Pace;
use super::plan::{Fate, Plan};
use super::quantiles::Quantiles;
use super::record::Record;
use super::rng::{Purpose, Stream};
use super::spread::{Draws, Use};
use crate::run::{EventFlags, Measured, RunEvent, Symbol, Wait, WaitKind};

/// A running call reports at most so often, however long it takes.
const UPDATES_MAX: u64 = 1000;

/// What is written of a run.
pub(super) struct Written {
    pub(super) events: Vec<RunEvent>,
    pub(super) measured: Measured,
    /// When the record of the run ends.
    pub(super) end_ms: u64,
}

/// What a run is made of beside its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'g> {
    pub(super) population: &'g Population,
    /// Of each tool of the population, its name.
    pub(super) tool_names: &'g [Symbol],
    pub(super) pace: Pace,
    pub(super) seed: u64,
    pub(super) number: u64,
    /// Start of the run, ms since the Unix epoch: when outages meet it.
    pub(super) started_at_ms: i64,
}

/// Writes one run.
pub(super) struct Writer<'g, 's> {
    setting: Setting<'g>,
    population: &'g Population,
    laws: Laws<'g>,
    tool_names: &'g [Symbol],
    record: Record,
    draws: &'g mut Draws<'s>,
    pre_token: Stream,
    failure_times: Stream,
    retries: Stream,
    compaction: Stream,
    streaming: Stream,
    calls: Stream,
    call_times: Stream,
    end: Stream,
    last_call: u64,
}

impl<'g, 's> Writer<'g, 's> {
    /// A writer of the run of that plan.
    pub(super) fn new(setting: &Setting<'g>, plan: &Plan, draws: &'g mut Draws<'s>) -> Self {
        let population = setting.population;
        let stream = |purpose| Stream::new(setting.seed, setting.number, purpose);
        let role = &population.roles().list[plan.role].name;
        let model = &population.models().list[plan.model].name;
        Self {
            setting: *setting,
            population,
            laws: population.laws(role, model),
            tool_names: setting.tool_names,
            record: Record::default(),
            draws,
            pre_token: stream(Purpose::PreToken),
            failure_times: stream(Purpose::FailureTimes),
            retries: stream(Purpose::Retries),
            compaction: stream(Purpose::Compaction),
            streaming: stream(Purpose::Streaming),
            calls: stream(Purpose::Calls),
            call_times: stream(Purpose::CallTimes),
            end: stream(Purpose::End),
            last_call: 0,
        }
    }

    /// The run of that plan.
    pub(super) fn write(mut self, plan: &Plan) -> Written {
        self.record.push(activity(0, Kind::RunStart));
        let last = plan.failures.len() - 1;
        let mut end_ms = 0;
        for (turn, &failed) in plan.failures.iter().enumerate() {
            let fate = (turn == last).then_some(plan.fate);
            let handed_off_ms = self.record.now_ms();
            self.record
                .push(RunEvent::new(handed_off_ms, Kind::TurnStart));
            let handed_off_ms = self.compacted(handed_off_ms, turn);
            let (sent_ms, failed) = self.failed_calls(handed_off_ms, failed, fate);
            end_ms = match fate {
                Some(Fate::Failed) => sent_ms,
                Some(Fate::HungBeforeOutput) => self.hung(sent_ms),
                Some(Fate::Aborted) => self.aborted(handed_off_ms, sent_ms, failed),
                Some(Fate::OpenInModel) => sent_ms + self.cut_wait_ms(),
                _ => {
                    let wait = self.wait_for_output(handed_off_ms, sent_ms, failed);
                    let said_ms = self.answer(handed_off_ms + wait.ms, wait, fate);
                    self.after_answer(said_ms, fate)
                }
            };
        }
        let (events, measured) = self.record.finish();
        Written {
            events,
            measured,
            end_ms,
        }
    }

    /// The failed provider calls of a turn with the backoff after each; gives the time of the last
    /// resend, or the run's end where the last one ended it.
    ///
    /// A recorded log shows a failed call and then the next output, so a `retry` wait measured there
    /// holds the latency of the resent call. Here the resend itself is known and ends the wait.
    /// Gives also how many calls failed, those of an outage included.
    fn failed_calls(&mut self, handed_off_ms: u64, planned: u32, fate: Option<Fate>) -> (u64, u32) {
        let mut t_ms = handed_off_ms;
        let Some(retry) = self.population.retry() else {
            return (t_ms, 0);
        };
        let mut attempt = 0;
        while attempt < planned || self.fails_in_outage(retry, attempt, t_ms, fate) {
            let u = self.failure_times.unit();
            // only the first failed call of a turn is recorded as such a wait
            let p = match attempt {
                0 if planned > 0 => self.draws.place(Use::ErrorWait, u),
                _ => u,
            };
            t_ms += value(self.law(WaitKind::ErrorWait), p);
            let first = (attempt == 0).then_some(Wait {
                kind: WaitKind::ErrorWait,
                ms: t_ms - handed_off_ms,
            });
            if fate == Some(Fate::Failed) && attempt + 1 == planned {
                let outcome = Some(Outcome::Failed);
                self.record.push(RunEvent {
                    outcome,
                    wait: first.filter(|_| !retry.silent),
                    ..activity(t_ms, Kind::RunEnd)
                });
                return (t_ms, planned);
            }
            let delay_ms = self.delay_ms(retry, attempt);
            attempt += 1;
            if retry.silent {
                t_ms += delay_ms;
                continue;
            }
            self.record.push(RunEvent {
                announced_ms: Some(delay_ms),
                wait: first,
                ..activity(t_ms, Kind::RetryStart)
            });
            t_ms += delay_ms;
            let wait = Some(Wait {
                kind: WaitKind::Retry,
                ms: delay_ms,
            });
            self.record.push(RunEvent {
                wait,
                ..RunEvent::new(t_ms, Kind::RetryEnd)
            });
        }
        (t_ms, attempt)
    }

    /// Whether the call sent at `t_ms` fails because the provider is out. An outage delays a run, it ends none.
    fn fails_in_outage(
        &mut self,
        retry: &Retry,
        attempt: u32,
        t_ms: u64,
        fate: Option<Fate>,
    ) -> bool {
        let Some(outages) = &retry.outages else {
            return false;
        };
        let at_ms = self.setting.started_at_ms.saturating_add_unsigned(t_ms);
        fate != Some(Fate::Failed)
            && attempt + 1 < retry.failures_max
            && is_out(outages, self.setting.seed, at_ms)
            && self.retries.chance(outages.fail_ppm)
    }

    /// The wait before the next attempt, when so many have failed before.
    fn delay_ms(&mut self, retry: &Retry, before: u32) -> u64 {
        let Some(backoff) = &retry.backoff else {
            let step = (before as usize).min(retry.schedule_ms.len() - 1);
            return retry.schedule_ms[step];
        };
        let schedule = RetrySchedule {
            retries: retry.failures_max,
            first_delay: Millis::new(backoff.first_delay_ms),
            factor: backoff.factor,
            jitter_up_percent: backoff.jitter_up_percent,
            jitter_down_percent: backoff.jitter_down_percent,
            cap: Millis::new(backoff.cap_ms),
        };
        let parts = u32::try_from(self.retries.below(1_000_001)).unwrap_or(0);
        let draw = Draw::from_parts_per_million(parts);
        schedule.scheduled(before + 1, draw).as_u64()
    }

    /// The compaction with which a turn may begin; gives when the model has control.
    fn compacted(&mut self, t_ms: u64, turn: usize) -> u64 {
        let Some(compaction) = self.population.compaction() else {
            return t_ms;
        };
        if turn == 0 || !self.compaction.chance(compaction.turn_share_ppm) {
            return t_ms;
        }
        if compaction.start_seen {
            self.record.push(activity(t_ms, Kind::CompactionStart));
        }
        let p = self.draws.place(Use::Compact, self.compaction.unit());
        let ms = value(self.law(WaitKind::Compact), p);
        let wait = Some(Wait {
            kind: WaitKind::Compact,
            ms,
        });
        self.record.push(RunEvent {
            wait,
            ..activity(t_ms + ms, Kind::CompactionEnd)
        });
        t_ms + ms
    }

    /// The law of the waits of that kind.
    const fn law(&self, kind: WaitKind) -> Option<&'g Quantiles> {
        self.laws[kind as usize]
    }

    /// A hang from `t_ms` on: nothing happens until the record ends.
    fn hung(&mut self, t_ms: u64) -> u64 {
        let after = self.population.ends().record_after_hang.as_ref();
        let p = self.draws.place(Use::AfterHang, self.end.unit());
        t_ms + value(after, p)
    }

    fn aborted(&mut self, handed_off_ms: u64, sent_ms: u64, failed: u32) -> u64 {
        let u = self.end.unit();
        // after a failed call the wait that is recorded holds more than this
        let p = match failed {
            0 => self.draws.place(Use::Cut, u),
            _ => u,
        };
        let t_ms = sent_ms + value(self.law(WaitKind::Censored), p);
        let mut event = activity(t_ms, Kind::RunEnd);
        event.outcome = Some(Outcome::Aborted);
        event.wait = Some(Wait {
            kind: WaitKind::Censored,
            ms: t_ms - handed_off_ms,
        });
        event.flags = event.flags.with(EventFlags::CENSORED);
        self.record.push(event);
        self.record.mark_aborted();
        t_ms
    }

    /// How long a wait had lasted when it was cut.
    fn cut_wait_ms(&mut self) -> u64 {
        value(self.law(WaitKind::Censored), self.end.unit())
    }

    /// The wait that the turn's first output ends. Only waits without a failed call are recorded as
    /// `pre_token`, so only they are stratified.
    fn wait_for_output(&mut self, handed_off_ms: u64, sent_ms: u64, failed: u32) -> Wait {
        let law = self.law(WaitKind::PreToken);
        let law = law.unwrap_or_else(|| self.population.pre_token());
        let pace = self.setting.pace;
        if failed > 0 {
            let silent = self.population.retry().is_some_and(|retry| retry.silent);
            let latency_ms = law.value(pace.of_model(self.failure_times.unit()));
            return Wait {
                kind: if silent {
                    WaitKind::PreToken
                } else {
                    WaitKind::PreTokenErr
                },
                ms: sent_ms - handed_off_ms + latency_ms,
            };
        }
        let p = self.draws.place(Use::PreToken, self.pre_token.unit());
        Wait {
            kind: WaitKind::PreToken,
            ms: law.value(pace.of_model(p)),
        }
    }

    /// The answer that begins at `t_ms`; gives the time of its last piece.
    fn answer(&mut self, t_ms: u64, wait: Wait, fate: Option<Fate>) -> u64 {
        self.record.count_turn();
        let population = self.population;
        let mut pieces = population.streaming().map_or(0, |streaming| {
            let p = self.draws.place(Use::Pieces, self.streaming.unit());
            streaming.pieces.value(p)
        });
        let cut = fate == Some(Fate::HungMidStream);
        if cut {
            pieces = self.end.below(pieces + 1);
        }
        match population.resolution() {
            SourceResolution::Message => self.blocks(t_ms, wait, pieces),
            SourceResolution::Stream => self.pieces(t_ms, wait, pieces, cut),
        }
    }

    /// One stamp per finished block.
    fn blocks(&mut self, mut t_ms: u64, wait: Wait, blocks: u64) -> u64 {
        let block = |t_ms, wait| {
            let mut event = activity(t_ms, Kind::MessageEnd);
            event.wait = Some(wait);
            event.flags = event.flags.with(EventFlags::UPPER_BOUND);
            event
        };
        self.record.push(block(t_ms, wait));
        for _ in 0..blocks {
            let ms = self.piece_gap_ms();
            t_ms += ms;
            self.record.push(block(
                t_ms,
                Wait {
                    kind: WaitKind::StreamGap,
                    ms,
                },
            ));
        }
        t_ms
    }

    /// A stamp where output begins, one per piece, and one where it is complete.
    fn pieces(&mut self, mut t_ms: u64, wait: Wait, pieces: u64, cut: bool) -> u64 {
        let wait = Some(wait);
        self.record.push(RunEvent {
            wait,
            ..activity(t_ms, Kind::MessageStart)
        });
        for _ in 0..pieces {
            t_ms += self.piece_gap_ms();
            self.record.push(activity(t_ms, Kind::MessageUpdate));
        }
        if !cut {
            t_ms += self.piece_gap_ms();
            self.record.push(activity(t_ms, Kind::MessageEnd));
        }
        t_ms
    }

    fn piece_gap_ms(&mut self) -> u64 {
        // Without a law of pieces, nothing is known between an output's beginning and its end.
        if self.population.streaming().is_none() {
            return 0;
        }
        let p = self.draws.place(Use::PieceGap, self.streaming.unit());
        let p = self.setting.pace.of_model(p);
        self.law(self.population.piece_gap())
            .map_or(0, |law| law.value(p))
    }

    /// What follows an answer: the run's end, or calls; gives the time at which it is over, and for
    /// the last turn the end of the record.
    fn after_answer(&mut self, t_ms: u64, fate: Option<Fate>) -> u64 {
        let tools = self.population.tools();
        match (fate, tools) {
            (Some(Fate::HungMidStream), _) => self.hung(t_ms),
            (Some(Fate::HungInTool), Some(tools)) => {
                self.open_call(t_ms, tools);
                self.hung(t_ms)
            }
            (Some(Fate::OpenInTool), Some(tools)) => {
                self.open_call(t_ms, tools);
                t_ms + self.cut_wait_ms()
            }
            (Some(fate), _) => {
                let outcome = Some(match fate {
                    Fate::Looped => Outcome::Failed,
                    _ => Outcome::Completed,
                });
                self.turn_end(t_ms);
                self.record.push(RunEvent {
                    outcome,
                    ..RunEvent::new(t_ms, Kind::RunEnd)
                });
                t_ms
            }
            (None, Some(tools)) => {
                let over_ms = self.finished_calls(t_ms, tools);
                self.turn_end(over_ms)
            }
            (None, None) => self.turn_end(t_ms),
        }
    }

    /// The end of a turn that was not cut, its calls included; gives its time. A turn cap that acts
    /// after the calls of a turn acts here.
    fn turn_end(&mut self, t_ms: u64) -> u64 {
        self.record.push(RunEvent::new(t_ms, Kind::TurnEnd));
        t_ms
    }

    /// A call that never returns.
    fn open_call(&mut self, t_ms: u64, tools: &Tools) {
        let weight = |tool: &Tool| match tool.wait_kind() {
            WaitKind::Tool => u64::from(tool.weight),
            _ => 0,
        };
        let index = self.calls.pick(tools.list.iter().map(weight));
        let start = self.call_event(t_ms, Kind::ToolStart, index);
        self.record.push(RunEvent {
            flags: EventFlags::ACTIVITY,
            ..start
        });
    }

    /// The calls of one turn; gives the time of the last result.
    fn finished_calls(&mut self, t_ms: u64, tools: &Tools) -> u64 {
        let Calls { parallel, list } = Calls::of_turn(tools, &mut self.calls);
        let mut events = Vec::new();
        let mut over_ms = t_ms;
        for call in list {
            let start_ms = if parallel { t_ms } else { over_ms };
            over_ms = over_ms.max(self.finished_call(start_ms, tools, call, &mut events));
            self.record.count_tool();
        }
        // Stable, so that a call's own events keep their order where times are equal.
        events.sort_by_key(|event: &RunEvent| event.t_ms);
        for event in events {
            self.record.push(event);
        }
        over_ms
    }

    /// One call from start to result; gives the time of its result.
    fn finished_call(
        &mut self,
        start_ms: u64,
        tools: &Tools,
        call: Call,
        events: &mut Vec<RunEvent>,
    ) -> u64 {
        let Call {
            tool: index,
            asks_first,
        } = call;
        let population = self.population;
        let tool = &tools.list[index];
        let kind = tool.wait_kind();
        let mut start = self.call_event(start_ms, Kind::ToolStart, index);
        start.flags = EventFlags::ACTIVITY;
        if asks_first || kind == WaitKind::Human {
            start.flags = start.flags.with(EventFlags::MAY_ASK);
        }
        events.push(start);
        let mut t_ms = start_ms;
        if asks_first {
            let p = self.draws.place(Use::Approval, self.call_times.unit());
            let ms = value(self.law(WaitKind::Approval), p);
            events.push(RunEvent {
                kind: Kind::ApprovalStart,
                ..plain(start)
            });
            t_ms += ms;
            let wait = Some(Wait {
                kind: WaitKind::Approval,
                ms,
            });
            events.push(RunEvent {
                t_ms,
                kind: Kind::ApprovalEnd,
                wait,
                ..plain(start)
            });
        }
        let law = tool.duration.as_ref().or_else(|| self.law(kind));
        let u = self.call_times.unit();
        // with an approval before it the wait that is recorded holds more than this
        let p = if asks_first {
            u
        } else {
            self.draws.place(Use::Call(index), u)
        };
        let p = self.setting.pace.of_tool(p);
        let taken_ms = law.map_or(0, |law| law.value(p));
        if let Some(every_ms) = tool.update_every_ms {
            let updates = taken_ms.saturating_sub(1) / every_ms;
            for update in 1..=updates.min(UPDATES_MAX) {
                let t_ms = t_ms + update * every_ms;
                events.push(RunEvent {
                    t_ms,
                    kind: Kind::ToolUpdate,
                    ..plain(start)
                });
            }
        }
        t_ms += taken_ms;
        let wait = Some(Wait {
            kind,
            ms: t_ms - start_ms,
        });
        let mut end = RunEvent {
            t_ms,
            kind: Kind::ToolEnd,
            ..plain(start)
        };
        end.flags = EventFlags::ACTIVITY;
        if kind == WaitKind::Human {
            // The question is what the call waits for, so the wait stands where the answer comes.
            events.push(RunEvent {
                kind: Kind::HumanWaitStart,
                ..plain(start)
            });
            events.push(RunEvent {
                t_ms,
                kind: Kind::HumanWaitEnd,
                wait,
                ..plain(start)
            });
        } else {
            end.wait = wait;
            if kind == WaitKind::Tool && population.approvals_in_tools() {
                end.flags = end.flags.with(EventFlags::AMBIGUOUS_APPROVAL);
            }
        }
        events.push(end);
        t_ms
    }

    /// An event of a new call of that tool.
    fn call_event(&mut self, t_ms: u64, kind: Kind, tool: usize) -> RunEvent {
        self.last_call += 1;
        RunEvent {
            id: CallId::new(self.last_call),
            name: self.tool_names[tool],
            ..RunEvent::new(t_ms, kind)
        }
    }
}

/// The event without its marks.
const fn plain(event: RunEvent) -> RunEvent {
    RunEvent {
        flags: EventFlags(0),
        ..event
    }
}

/// An event that counts as activity.
const fn activity(t_ms: u64, kind: Kind) -> RunEvent {
    let mut event = RunEvent::new(t_ms, kind);
    event.flags = EventFlags::ACTIVITY;
    event
}

/// What a law says at a probability; 0 where there is none, which a valid model rules out where it matters.
fn value(law: Option<&Quantiles>, p: f64) -> u64 {
    law.map_or(0, |law| law.value(p))
}
