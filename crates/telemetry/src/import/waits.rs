//! From events to waits: the state machine of `DEFINITIONS.md` sections 4 and 5, rule by rule.

use std::collections::BTreeMap;

use policysim_sim::run::{Measured, Wait, WaitKind};

use super::event::{Call, Ev, Key, What};
use super::report::{Counts, WaitTable};

/// Counters and waits over all streams of a source.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// The plain counters.
    pub(super) counts: Counts,
    /// The waits.
    pub(super) waits: WaitTable,
}

impl Totals {
    /// Records the wait from `from` to `to`; below zero it is only counted.
    fn wait(&mut self, kind: WaitKind, from: i64, to: i64) -> Option<Wait> {
        self.length(kind, to - from)
    }

    fn length(&mut self, kind: WaitKind, ms: i64) -> Option<Wait> {
        let Ok(ms) = u64::try_from(ms) else {
            self.counts.n_negative += 1;
            return None;
        };
        let wait = Wait { kind, ms };
        self.waits.add(wait);
        Some(wait)
    }
}

/// The state of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    run: Option<OpenRun>,
    pending: BTreeMap<u64, Pending>,
    hand_off: Option<i64>,
    last_error: Option<i64>,
    key: Key,
    last_output: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    call: Call,
    start: i64,
    /// The turn that asked for it: a later turn shows that its end was lost.
    turn: u32,
}

#[derive(Clone, Copy, Debug)]
struct OpenRun {
    start: i64,
    latest: i64,
    /// Where the silence under way began; none until the next activity after an abort, a task's end or a gap mark.
    silent_since: Option<i64>,
    measured: Measured,
}

/// What `DEFINITIONS.md` makes of one event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// A run was open and ends in front of this event.
    pub(super) closes: Option<Closed>,
    /// A run starts with this event.
    pub(super) opens: bool,
    /// The event counts as activity of the open run.
    pub(super) activity: bool,
    /// What else the event did.
    pub(super) effect: Effect,
    /// The wait that the event ended.
    pub(super) wait: Option<Wait>,
    /// The wait since the last failed call that the event ended as well.
    pub(super) retry: Option<Wait>,
    /// The call that the result belongs to.
    pub(super) call: Option<Call>,
}

/// What an event did besides ending a wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Effect {
    /// Nothing.
    #[default]
    None,
    /// The prompt came while the run went on.
    Steers,
    /// The output began a turn.
    Turn,
    /// The compaction counts as a wait for the model.
    Compacts,
    /// The gap mark fell into a stretch in which control was with the model.
    CutsHandOff,
}

/// A run as it was closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    /// Its measures; without a turn it is no run.
    pub(super) measured: Measured,
    /// Whether control was still with the model.
    pub(super) in_model: bool,
    /// Whether a tool call of its last turn was still open.
    pub(super) in_tool: bool,
}

impl Machine {
    /// Whether a prompt now can only be understood from what comes later: calls are open that may still return.
    pub(super) fn hinges_on_results(&self) -> bool {
        self.run.is_some() && !self.pending.is_empty()
    }

    /// Whether the call `id` is open.
    pub(super) fn is_pending(&self, id: u64) -> bool {
        self.pending.contains_key(&id)
    }

    /// The ids of the open calls.
    pub(super) fn pending(&self) -> impl Iterator<Item = u64> {
        self.pending.keys().copied()
    }

    /// Takes one event. `returns` says of a prompt whether an open call gets its result later in the stream.
    pub(super) fn step(&mut self, ev: &Ev, returns: bool, totals: &mut Totals) -> Step {
        let t = ev.t;
        let mut step = Step::default();
        match ev.what {
            What::Prompt => self.prompt(t, returns, &mut step, totals),
            What::Joined => {
                totals.counts.n_prompts += 1;
                totals.counts.n_steer += 1;
                step.effect = Effect::Steers;
                self.active(t, &mut step);
            }
            What::HandOff => {
                if self.run.is_some() {
                    self.hand_over(t);
                }
            }
            What::Output { key, .. } => self.output(t, key, &mut step, totals),
            What::Call(call) => {
                self.open_if_none(t, &mut step);
                let turn = self.run.map_or(0, |run| run.measured.turns);
                self.pending.insert(
                    call.id.as_u64(),
                    Pending {
                        call,
                        start: t,
                        turn,
                    },
                );
                self.active(t, &mut step);
            }
            What::Result { id, rejected, .. } => {
                self.open_if_none(t, &mut step);
                match self.pending.remove(&id.as_u64()) {
                    Some(Pending { call, start, .. }) => {
                        let kind = if rejected { WaitKind::Human } else { call.wait };
                        step.wait = totals.wait(kind, start, t);
                        step.call = Some(call);
                        if let Some(run) = &mut self.run {
                            run.measured.tools += 1;
                        }
                    }
                    None => totals.counts.n_orphan_results += 1,
                }
                self.hand_over(t);
                self.active(t, &mut step);
            }
            What::Failed { announced_ms, .. } => {
                totals.counts.n_errors += 1;
                totals.counts.announced_retry_ms += announced_ms.unwrap_or(0);
                if let Some(error) = self.last_error {
                    step.retry = totals.wait(WaitKind::Retry, error, t);
                } else if let Some(hand_off) = self.hand_off {
                    step.wait = totals.wait(WaitKind::ErrorWait, hand_off, t);
                }
                self.last_error = Some(t);
                self.active(t, &mut step);
            }
            What::Aborted => self.abort(t, &mut step, totals),
            What::Compacted => {
                totals.counts.n_compactions += 1;
                if let (Some(_), Some(hand_off)) = (self.run, self.hand_off) {
                    step.wait = totals.wait(WaitKind::Compact, hand_off, t);
                    step.effect = Effect::Compacts;
                    self.widen_gap(step.wait);
                    self.hand_off = Some(t);
                    self.active(t, &mut step);
                }
            }
            What::TaskEnded | What::Gap => {
                if self.hand_off.is_some() {
                    step.effect = Effect::CutsHandOff;
                }
                self.hand_off = None;
                self.last_error = None;
                self.last_output = None;
                self.measure_silence_anew();
            }
            What::Approval { start, .. } => step.wait = totals.wait(WaitKind::Approval, start, t),
            What::FirstToken { ms } => step.wait = totals.length(WaitKind::ReportedTtft, ms),
            What::Note { .. } => {}
        }
        step
    }

    /// The stream ends.
    pub(super) fn end(&mut self, totals: &mut Totals) -> Option<Closed> {
        totals.counts.n_open_at_end += u64::from(self.hand_off.is_some());
        let closed = self.close(totals);
        totals.counts.n_orphan_calls += self.pending.len() as u64;
        self.pending.clear();
        closed
    }

    fn prompt(&mut self, t: i64, returns: bool, step: &mut Step, totals: &mut Totals) {
        totals.counts.n_prompts += 1;
        if self.hinges_on_results() && returns {
            totals.counts.n_steer += 1;
            step.effect = Effect::Steers;
            self.active(t, step);
            return;
        }
        step.closes = self.close(totals);
        totals.counts.n_orphan_calls += self.pending.len() as u64;
        self.pending.clear();
        self.hand_off = Some(t);
        self.last_error = None;
        self.key = Key::None;
        self.last_output = None;
        self.open_if_none(t, step);
        self.active(t, step);
    }

    fn output(&mut self, t: i64, key: Key, step: &mut Step, totals: &mut Totals) {
        if self.run.is_none() {
            self.open_if_none(t, step);
            self.last_output = None;
        }
        let continues = key.continues(self.key)
            || (key == Key::None && self.hand_off.is_none() && self.last_output.is_some());
        if continues {
            if let Some(last) = self.last_output {
                step.wait = totals.wait(WaitKind::StreamGap, last, t);
            }
            if self.hand_off.is_some() {
                self.hand_over(t);
            }
        } else {
            self.turn(t, key, step, totals);
        }
        self.last_output = Some(t);
        self.active(t, step);
    }

    fn turn(&mut self, t: i64, key: Key, step: &mut Step, totals: &mut Totals) {
        step.effect = Effect::Turn;
        totals.counts.n_turns += 1;
        if let Some(run) = &mut self.run {
            run.measured.turns += 1;
        }
        self.key = key;
        match (self.hand_off, self.last_error, self.last_output) {
            (Some(hand_off), None, _) => step.wait = totals.wait(WaitKind::PreToken, hand_off, t),
            (Some(hand_off), Some(error), _) => {
                step.wait = totals.wait(WaitKind::PreTokenErr, hand_off, t);
                step.retry = totals.wait(WaitKind::Retry, error, t);
            }
            (None, _, Some(last)) => step.wait = totals.wait(WaitKind::Continuation, last, t),
            (None, _, None) => totals.counts.n_no_handoff += 1,
        }
        if self.hand_off.is_some() {
            self.widen_gap(step.wait);
        }
        self.hand_off = None;
        self.last_error = None;
    }

    fn abort(&mut self, t: i64, step: &mut Step, totals: &mut Totals) {
        totals.counts.n_aborted += 1;
        if let Some(hand_off) = self.hand_off {
            step.wait = totals.wait(WaitKind::Censored, hand_off, t);
            self.widen_gap(step.wait);
        }
        self.active(t, step);
        if let Some(run) = &mut self.run {
            run.measured.aborted = true;
        }
        self.measure_silence_anew();
        self.hand_off = None;
        self.last_error = None;
        self.last_output = None;
        self.pending.clear();
    }

    /// Control is with the model from `t`, or from later if it already was.
    fn hand_over(&mut self, t: i64) {
        self.hand_off = Some(self.hand_off.map_or(t, |earlier| earlier.max(t)));
    }

    fn open_if_none(&mut self, t: i64, step: &mut Step) {
        if self.run.is_none() {
            step.opens = true;
            self.run = Some(OpenRun {
                start: t,
                latest: t,
                silent_since: None,
                measured: Measured::default(),
            });
        }
    }

    fn active(&mut self, t: i64, step: &mut Step) {
        let Some(run) = &mut self.run else { return };
        step.activity = true;
        run.latest = run.latest.max(t);
        match run.silent_since {
            Some(since) if t > since => {
                run.measured.silence_ms = run.measured.silence_ms.max(t.abs_diff(since));
                run.silent_since = Some(t);
            }
            Some(_) => {}
            None => run.silent_since = Some(t),
        }
    }

    fn measure_silence_anew(&mut self) {
        if let Some(run) = &mut self.run {
            run.silent_since = None;
        }
    }

    fn widen_gap(&mut self, wait: Option<Wait>) {
        if let (Some(run), Some(wait)) = (&mut self.run, wait) {
            run.measured.gap_ms = run.measured.gap_ms.max(wait.ms);
        }
    }

    fn close(&mut self, totals: &mut Totals) -> Option<Closed> {
        let run = self.run.take()?;
        let mut measured = run.measured;
        measured.duration_ms = run.latest.abs_diff(run.start);
        if measured.turns > 0 {
            totals.counts.n_runs += 1;
        } else {
            totals.counts.n_unanswered += 1;
        }
        Some(Closed {
            measured,
            in_model: self.hand_off.is_some(),
            in_tool: self
                .pending
                .values()
                .any(|call| call.turn == measured.turns),
        })
    }
}
