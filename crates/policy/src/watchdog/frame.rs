//! Step 2: frame events begin and end segments and runs.

use super::{Over, Watchdog};
use crate::clock::Clock;
use crate::role::Frame;
use crate::segment::Segment;
use crate::turns::TurnCount;
use crate::{
    CallerDeadline, Cause, ClockClass, Event, Millis, OpenClass, Outcome, Output, Phase, Scope,
    SilenceEnd, Verdict,
};

impl Watchdog {
    pub(super) fn frame(&mut self, frame: Frame, event: &Event<'_>) {
        match frame {
            Frame::Spawn => {
                let at = self.state.now;
                self.record.note(|| Output::Spawned { at });
            }
            Frame::Start => {
                if !self.state.segment.nests() {
                    self.begin_segment(1, event.budget, event.deadline, false);
                    self.run_timers(self.state.now);
                }
            }
            Frame::Resume => {
                self.begin_segment(0, event.budget, event.deadline, false);
                self.run_timers(self.state.now);
            }
            Frame::End => match event.outcome {
                Some(Outcome::Completed) if self.is_marked() => {
                    self.fire(Cause::TurnLimit, self.state.now);
                }
                Some(outcome) => self.end(Cause::Ended, Some(outcome), SilenceEnd::Ended),
                None => {
                    if self.state.segment.end_one() {
                        self.close_segment();
                        self.run_timers(self.state.now);
                    }
                }
            },
            Frame::Suspend => {
                if let Some(gaps) = &mut self.state.gaps {
                    gaps.forget();
                }
            }
        }
    }

    /// A segment begins now: nothing is open, a phase begins, the limits hold by their scope.
    pub(super) fn begin_segment(
        &mut self,
        depth: u32,
        budget: Option<Millis>,
        deadline: Option<Millis>,
        reopens: bool,
    ) {
        let at = self.state.now;
        let deadline = deadline.or(self.rules.deadline);
        let armed = deadline.is_none() || self.rules.caller_deadline == CallerDeadline::Adds;
        let window = budget
            .filter(|&budget| budget > Millis::ZERO)
            .or(self.rules.window);
        self.stop_segment_clocks(SilenceEnd::Switched);
        self.state.segment = Segment::begin(at, window, depth, armed);
        self.record.segment(Output::SegmentStarted { at, reopens });
        if self.rules.turns_scope == Scope::Segment {
            self.state.turns = TurnCount::default();
        }
        self.start(
            ClockClass::Deadline,
            deadline.map(|deadline| deadline.since(at)),
        );
        if self.rules.budget_spans_run() {
            self.record.hide(ClockClass::Total, !armed);
            self.hold_total(false);
        }
        if armed {
            if !self.rules.budget_spans_run() {
                self.start(ClockClass::Total, self.rules.budget);
            }
            if let Some(budget) = self.rules.backoff_budget {
                self.state.backoff = Clock::Frozen(budget);
                self.record.arm_frozen(ClockClass::Backoff, at);
            }
        }
        self.begin_phase();
    }

    /// The outermost end without an outcome.
    pub(super) fn close_segment(&mut self) {
        let at = self.state.now;
        self.stop_segment_clocks(SilenceEnd::Switched);
        self.state.segment.armed = false;
        self.state.phase.end();
        if self.rules.budget_spans_run() {
            self.record.hide(ClockClass::Total, false);
            self.hold_total(self.rules.gaps_are_human());
        }
        self.record.segment(Output::SegmentEnded { at });
    }

    /// Everything that belongs to one segment stops.
    pub(super) fn stop_segment_clocks(&mut self, end: SilenceEnd) {
        let state = &mut self.state;
        state.open.clear();
        for clock in [
            &mut state.idle,
            &mut state.ceiling,
            &mut state.startup,
            &mut state.backoff,
            &mut state.deadline,
            &mut state.result_grace,
        ] {
            clock.stop();
        }
        if !self.rules.budget_spans_run() {
            state.total.stop();
        }
        if let Some(gaps) = &mut state.gaps {
            gaps.forget();
        }
        let at = state.now;
        if self.record.tells_silences() {
            let kept = self.rules.budget_spans_run().then_some(ClockClass::Total);
            self.record.stop_all(at, end, kept);
        }
        self.record.streaming = false;
    }

    /// A run that ended by itself goes on.
    pub(super) fn reopen(&mut self, event: &Event<'_>) {
        self.state.over = Over::No;
        self.verdict = None;
        self.record.saw(event.kind, self.state.now);
        self.begin_segment(0, event.budget, event.deadline, true);
        self.run_timers(self.state.now);
    }

    pub(super) fn fire(&mut self, cause: Cause, due: Millis) {
        self.conclude(cause, None, due);
        self.state.over = Over::Final;
        self.record
            .stop_all(self.state.now, SilenceEnd::Fired, None);
        if let Some(verdict) = &self.verdict {
            self.record.terminal(Output::Fired(verdict.clone()));
        }
    }

    pub(super) fn end(&mut self, cause: Cause, outcome: Option<Outcome>, end: SilenceEnd) {
        self.conclude(cause, outcome, self.state.now);
        self.state.over = Over::Ended;
        self.stop_segment_clocks(end);
        self.state.segment.is_open = false;
        if self.rules.budget_spans_run() {
            self.record.hide(ClockClass::Total, true);
            self.hold_total(self.rules.gaps_are_human());
        }
        if let Some(verdict) = &self.verdict {
            self.record.terminal(Output::Ended(verdict.clone()));
        }
    }

    pub(super) fn conclude(&mut self, cause: Cause, outcome: Option<Outcome>, due: Millis) {
        let word = self.rules.words.of(cause, outcome);
        self.verdict = Some(Verdict {
            cause,
            at: self.state.now,
            due,
            phase: self.where_it_is(),
            evidence: self.record.evidence(self.state.now, &self.rules.rearm),
            outcome: word.outcome,
            code: word.code,
        });
    }

    pub(super) fn where_it_is(&self) -> Phase {
        let classes = self.state.open.classes();
        let open = [
            (OpenClass::Human, Phase::WaitingForHuman),
            (OpenClass::Backoff, Phase::InBackoff),
            (OpenClass::Compaction, Phase::InCompaction),
            (OpenClass::Child, Phase::InChild),
            (OpenClass::Tool, Phase::InTool),
        ];
        if !self.state.segment.is_open {
            Phase::BetweenSegments
        } else if !self.record.started {
            Phase::NotStarted
        } else if let Some((_, phase)) = open.into_iter().find(|(class, _)| classes.has(*class)) {
            phase
        } else if self.record.streaming {
            Phase::Streaming
        } else {
            Phase::BeforeOutput
        }
    }
}
