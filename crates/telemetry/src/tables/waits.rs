//! Which waits the events of a table end, and what they measure: the rules of `DEFINITIONS.md` in the words of the
//! event kinds, as the crate's documentation lists them.

use std::collections::HashMap;

use policysim_policy::{CallId, Kind, Outcome};
use policysim_sim::run::{
    EventFlags, Measured, RecordedEnd, Resolution, RunEvent, Symbols, Wait, WaitKind,
};

use crate::import::tool_wait;

/// What a run's events say of it as a whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Summary {
    pub(crate) measured: Measured,
    pub(crate) end: RecordedEnd,
    pub(crate) resolution: Resolution,
}

/// Sets wait and activity of each event, and sums up.
pub(crate) fn derive(events: &mut [RunEvent], symbols: &Symbols) -> Summary {
    let mut state = State::default();
    for event in events.iter_mut() {
        state.step(event, symbols);
    }
    let open = state.open_end();
    Summary {
        end: recorded_end(events).unwrap_or(open),
        ..measure(events)
    }
}

/// Sums up events whose waits and activity are set already.
pub(super) fn measure(events: &[RunEvent]) -> Summary {
    let mut measured = Measured::default();
    let mut resolution = Resolution::Message;
    let mut latest: Option<u64> = None;
    let (mut turn_starts, mut answers) = (0, 0);
    for event in events {
        if event.kind == Kind::Resume {
            latest = None;
        }
        if event.flags.has(EventFlags::ACTIVITY) {
            if let Some(latest) = latest {
                measured.silence_ms = measured.silence_ms.max(event.t_ms - latest);
            }
            latest = Some(event.t_ms);
            measured.duration_ms = event.t_ms;
        }
        if event.kind == Kind::RunEnd {
            measured.duration_ms = event.t_ms;
            measured.aborted |= event.outcome == Some(Outcome::Aborted);
            if event.outcome.is_some() {
                latest = None;
            }
        }
        turn_starts += u32::from(event.kind == Kind::TurnStart);
        if is_piece(event.kind) || event.kind == Kind::MessageStart {
            resolution = Resolution::Stream;
        }
        if let Some(wait) = event.wait {
            match wait.kind {
                WaitKind::PreToken | WaitKind::PreTokenErr => {
                    answers += 1;
                    measured.gap_ms = measured.gap_ms.max(wait.ms);
                }
                WaitKind::Compact | WaitKind::Censored => {
                    measured.gap_ms = measured.gap_ms.max(wait.ms);
                }
                WaitKind::Tool | WaitKind::ToolEscalated | WaitKind::Subagent => {
                    measured.tools += 1;
                }
                WaitKind::Human => measured.tools += u32::from(event.kind == Kind::ToolEnd),
                _ => {}
            }
        }
    }
    measured.turns = if turn_starts > 0 {
        turn_starts
    } else {
        answers
    };
    let start = events.first().map_or(0, |event| event.t_ms);
    measured.duration_ms = measured.duration_ms.saturating_sub(start);
    Summary {
        measured,
        end: recorded_end(events).unwrap_or_default(),
        resolution,
    }
}

fn recorded_end(events: &[RunEvent]) -> Option<RecordedEnd> {
    let outcome = events
        .iter()
        .rev()
        .find_map(|event| event.outcome.filter(|_| event.kind == Kind::RunEnd))?;
    Some(match outcome {
        Outcome::Aborted => RecordedEnd::Aborted,
        Outcome::Completed => RecordedEnd::Completed,
        Outcome::Failed => RecordedEnd::Failed,
    })
}

/// A streamed piece of output.
const fn is_piece(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MessageUpdate | Kind::ThinkingUpdate | Kind::ToolArgsUpdate
    )
}

#[derive(Default)]
struct State {
    /// Since when control is with the model.
    hand_over: Option<u64>,
    /// The last failed call since then.
    last_error: Option<u64>,
    /// The last output of the answer under way.
    last_output: Option<u64>,
    tools: HashMap<CallId, (u64, WaitKind)>,
    humans: HashMap<CallId, u64>,
    compaction: Option<u64>,
    ended: bool,
}

impl State {
    fn step(&mut self, event: &mut RunEvent, symbols: &Symbols) {
        let t = event.t_ms;
        let wait = match event.kind {
            Kind::RunStart | Kind::Resume => {
                self.hand_to_model(t);
                self.ended = false;
                active(event);
                None
            }
            Kind::TurnStart => {
                if self.hand_over.is_none() && self.tools.is_empty() {
                    self.hand_to_model(t);
                }
                None
            }
            Kind::MessageStart
            | Kind::MessageUpdate
            | Kind::ThinkingUpdate
            | Kind::ToolArgsUpdate
            | Kind::MessageEnd
            | Kind::ToolRequested => self.output(event),
            Kind::ToolStart => {
                let kind = tool_wait(symbols.name(event.name));
                // A repeated start is the same call.
                self.tools.entry(event.id).or_insert((t, kind));
                self.hand_over = None;
                self.last_output = None;
                active(event);
                None
            }
            Kind::ToolEnd => {
                active(event);
                self.hand_to_model(t);
                self.tools
                    .remove(&event.id)
                    .map(|(start, kind)| (kind, t - start))
            }
            Kind::ApprovalStart | Kind::HumanWaitStart => {
                self.humans.entry(event.id).or_insert(t);
                None
            }
            Kind::ApprovalEnd => self.human_answered(event, WaitKind::Approval),
            Kind::HumanWaitEnd => self.human_answered(event, WaitKind::Human),
            Kind::RetryStart => {
                active(event);
                let wait = match (self.last_error, self.hand_over) {
                    (Some(error), _) => Some((WaitKind::Retry, t - error)),
                    (None, Some(hand_over)) => Some((WaitKind::ErrorWait, t - hand_over)),
                    (None, None) => None,
                };
                self.last_error = Some(t);
                wait
            }
            Kind::RetryEnd => {
                let wait = self.last_error.map(|error| (WaitKind::Retry, t - error));
                self.hand_to_model(t);
                wait
            }
            Kind::CompactionStart => {
                self.compaction = Some(t);
                None
            }
            Kind::CompactionEnd => {
                let wait = self
                    .compaction
                    .take()
                    .or(self.hand_over)
                    .map(|from| (WaitKind::Compact, t - from));
                if wait.is_some() {
                    active(event);
                }
                self.hand_over = self.hand_over.map(|_| t);
                wait
            }
            Kind::TurnEnd | Kind::Result => {
                self.hand_over = None;
                self.last_output = None;
                None
            }
            Kind::RunEnd => self.run_end(event),
            _ => None,
        };
        event.wait = wait.map(|(kind, ms)| Wait { kind, ms });
    }

    fn hand_to_model(&mut self, t: u64) {
        self.hand_over = Some(t);
        self.last_error = None;
        self.last_output = None;
    }

    fn output(&mut self, event: &mut RunEvent) -> Option<(WaitKind, u64)> {
        active(event);
        let t = event.t_ms;
        let streams = is_piece(event.kind) || event.kind == Kind::MessageStart;
        let wait = if let Some(hand_over) = self.hand_over.take() {
            let kind = if self.last_error.take().is_some() {
                WaitKind::PreTokenErr
            } else {
                WaitKind::PreToken
            };
            if !streams {
                event.flags = event.flags.with(EventFlags::UPPER_BOUND);
            }
            Some((kind, t - hand_over))
        } else if is_piece(event.kind) {
            self.last_output
                .map(|last| (WaitKind::InterToken, t - last))
        } else {
            None
        };
        self.last_output = streams.then_some(t);
        wait
    }

    fn human_answered(&mut self, event: &RunEvent, kind: WaitKind) -> Option<(WaitKind, u64)> {
        let start = self.humans.remove(&event.id)?;
        if self.tools.is_empty() {
            self.hand_to_model(event.t_ms);
        }
        Some((kind, event.t_ms - start))
    }

    fn run_end(&mut self, event: &mut RunEvent) -> Option<(WaitKind, u64)> {
        let hand_over = self.hand_over.take();
        let outcome = event.outcome?;
        self.ended = true;
        self.tools.clear();
        if outcome != Outcome::Aborted {
            return None;
        }
        active(event);
        let wait = hand_over.map(|from| (WaitKind::Censored, event.t_ms - from));
        if wait.is_some() {
            event.flags = event.flags.with(EventFlags::CENSORED);
        }
        wait
    }

    fn open_end(&self) -> RecordedEnd {
        if self.ended {
            RecordedEnd::Unknown
        } else if !self.tools.is_empty() {
            RecordedEnd::OpenInTool
        } else if self.hand_over.is_some() {
            RecordedEnd::OpenInModel
        } else {
            RecordedEnd::Unknown
        }
    }
}

fn active(event: &mut RunEvent) {
    event.flags = event.flags.with(EventFlags::ACTIVITY);
}

#[cfg(test)]
mod tests {
    use Kind::{
        ApprovalEnd, ApprovalStart, CompactionEnd, CompactionStart, HumanWaitEnd, HumanWaitStart,
        Keepalive, MessageEnd, MessageStart, MessageUpdate, Result, Resume, RetryEnd, RetryStart,
        RunStart, ThinkingUpdate, ToolEnd, ToolStart, TurnEnd, TurnStart,
    };

    use super::*;

    /// The waits of a run in which one tool call at most is open, worked out by hand from the table of rules.
    fn check(events: &[(u64, Kind, &str)], expected: &[(u64, WaitKind, u64)]) -> Summary {
        let mut symbols = Symbols::default();
        let mut run: Vec<RunEvent> = events
            .iter()
            .map(|(t_ms, kind, name)| {
                let mut event = RunEvent::new(*t_ms, *kind);
                event.name = symbols.intern(name);
                event
            })
            .collect();
        let summary = derive(&mut run, &symbols);
        let waits: Vec<(u64, WaitKind, u64)> = run
            .iter()
            .filter_map(|event| event.wait.map(|wait| (event.t_ms, wait.kind, wait.ms)))
            .collect();
        assert_eq!(waits, expected);
        summary
    }

    #[test]
    fn a_failed_call_without_a_resend_stays_in_the_wait() {
        let events = [
            (0, RunStart, ""),
            (3, RetryStart, ""),
            (8, RetryStart, ""),
            (20, MessageEnd, ""),
        ];
        let waits = [
            (3, WaitKind::ErrorWait, 3),
            (8, WaitKind::Retry, 5),
            (20, WaitKind::PreTokenErr, 20),
        ];
        assert_eq!(check(&events, &waits).measured.gap_ms, 20);
        let resent = [
            (0, RunStart, ""),
            (3, RetryStart, ""),
            (8, RetryEnd, ""),
            (20, MessageEnd, ""),
        ];
        let waits = [
            (3, WaitKind::ErrorWait, 3),
            (8, WaitKind::Retry, 5),
            (20, WaitKind::PreToken, 12),
        ];
        assert_eq!(check(&resent, &waits).measured.gap_ms, 12);
    }

    #[test]
    fn humans_end_their_own_waits() {
        let events = [
            (0, RunStart, ""),
            (2, MessageEnd, ""),
            (2, ToolStart, "bash"),
            (3, ApprovalStart, ""),
            (9, ApprovalEnd, ""),
            (10, ToolEnd, "bash"),
            (11, MessageEnd, ""),
            (11, TurnEnd, ""),
            (12, HumanWaitStart, ""),
            (50, HumanWaitEnd, ""),
            (54, MessageEnd, ""),
            (54, ToolStart, "AskUserQuestion"),
            (70, ToolEnd, "AskUserQuestion"),
        ];
        let waits = [
            (2, WaitKind::PreToken, 2),
            (9, WaitKind::Approval, 6),
            (10, WaitKind::Tool, 8),
            (11, WaitKind::PreToken, 1),
            (50, WaitKind::Human, 38),
            (54, WaitKind::PreToken, 4),
            (70, WaitKind::Human, 16),
        ];
        let summary = check(&events, &waits);
        assert_eq!(
            (summary.measured.tools, summary.end),
            (2, RecordedEnd::OpenInModel)
        );
    }

    #[test]
    fn a_compaction_moves_the_hand_over() {
        let events = [
            (0, RunStart, ""),
            (30, CompactionEnd, ""),
            (34, MessageEnd, ""),
        ];
        let waits = [(30, WaitKind::Compact, 30), (34, WaitKind::PreToken, 4)];
        assert_eq!(check(&events, &waits).measured.gap_ms, 30);
        let between = [
            (0, RunStart, ""),
            (1, MessageEnd, ""),
            (5, CompactionStart, ""),
            (25, CompactionEnd, ""),
            (26, MessageEnd, ""),
        ];
        check(
            &between,
            &[(1, WaitKind::PreToken, 1), (25, WaitKind::Compact, 20)],
        );
    }

    #[test]
    fn streamed_pieces_are_counted_within_one_answer_only() {
        let events = [
            (0, RunStart, ""),
            (0, TurnStart, ""),
            (4, MessageStart, ""),
            (6, ThinkingUpdate, ""),
            (7, Keepalive, ""),
            (9, MessageUpdate, ""),
            (12, MessageEnd, ""),
            (12, Result, ""),
            (40, Resume, ""),
            (45, MessageUpdate, ""),
        ];
        let waits = [
            (4, WaitKind::PreToken, 4),
            (6, WaitKind::InterToken, 2),
            (9, WaitKind::InterToken, 3),
            (45, WaitKind::PreToken, 5),
        ];
        let summary = check(&events, &waits);
        assert_eq!(summary.resolution, Resolution::Stream);
        // One `turn_start` is written, so it is the turn; what lies before a resumption is no silence of the run.
        let measured = summary.measured;
        assert_eq!((measured.turns, measured.silence_ms), (1, 5));
    }
}
