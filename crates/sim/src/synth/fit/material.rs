//! What the runs of one harness are made of, counted.

use std::collections::BTreeMap;

use policysim_policy::{CallId, Kind};

use crate::run::{RecordedEnd, Resolution, Run, RunEvent, Symbols, Wait, WaitKind};
use crate::stats::Counts;

/// A wait with the law it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scored {
    pub(super) kind: WaitKind,
    pub(super) ms: u64,
}

/// What one run adds to the likeness of waits.
#[derive(Clone, Debug, Default)]
pub(super) struct RunWaits {
    pub(super) session: String,
    pub(super) model: String,
    /// Waits for the model and between blocks.
    pub(super) of_model: Vec<Scored>,
    /// Calls, by the name of their tool.
    pub(super) of_tools: Vec<(String, u64)>,
    pub(super) turns: u64,
}

/// Counts over the runs of one harness.
#[derive(Clone, Debug, Default)]
pub(super) struct Material {
    pub(super) runs: u64,
    pub(super) by_run: Vec<RunWaits>,
    pub(super) waits: BTreeMap<WaitKind, Counts>,
    /// By kind and name of the tool.
    pub(super) tools: BTreeMap<(WaitKind, String), Counts>,
    pub(super) turns: Counts,
    pub(super) role_turns: BTreeMap<String, Counts>,
    pub(super) models: BTreeMap<String, u64>,
    pub(super) sessions: BTreeMap<String, u64>,
    /// Pieces after the first, by answered turn.
    pub(super) pieces: Counts,
    /// Turns with so many calls, of those that are not the last of their run.
    pub(super) calls: Counts,
    pub(super) several: u64,
    pub(super) at_once: u64,
    pub(super) approvals: u64,
    pub(super) turns_failed: u64,
    pub(super) failed_calls: u64,
    pub(super) failed_again: u64,
    pub(super) most_failures: u64,
    pub(super) delays: Vec<Counts>,
    pub(super) compactions: u64,
    pub(super) compaction_starts: u64,
    pub(super) suspends: Counts,
    pub(super) ends: BTreeMap<&'static str, u64>,
    /// Runs that hang before output, in the middle of an answer, in a call.
    pub(super) hung: [u64; 3],
    pub(super) streamed: u64,
    pub(super) record_after_hang: Counts,
}

/// One turn while it is read.
#[derive(Debug, Default)]
struct Turn {
    calls: u64,
    overlap: bool,
    pieces: u64,
    answered: bool,
    failures: u64,
    /// Calls with the time that a human took to allow them.
    approvals: Vec<(CallId, u64)>,
}

impl Turn {
    /// How long a call waited for its approval, ms.
    fn approved(&self, id: CallId) -> u64 {
        let found = self.approvals.iter().find(|(call, _)| *call == id);
        found.map_or(0, |(_, ms)| *ms)
    }
}

impl Material {
    /// Adds a run.
    pub(super) fn add(&mut self, run: &Run, symbols: &Symbols) {
        self.runs += 1;
        let role = run.role.to_string();
        let turns = u64::from(run.measured.turns).max(1);
        self.turns.add(turns, 1);
        self.role_turns.entry(role).or_default().add(turns, 1);
        *self.models.entry(run.model.to_string()).or_default() += 1;
        let session = if run.session.is_empty() {
            run.name.to_string()
        } else {
            run.session.to_string()
        };
        *self.sessions.entry(session.clone()).or_default() += 1;
        *self.ends.entry(run.end.name()).or_default() += 1;
        self.streamed += u64::from(run.resolution == Resolution::Stream);
        if run.end == RecordedEnd::Hung {
            let onset_ms = crate::replay::hang_onset_ms(run);
            self.record_after_hang
                .add(run.end_ms.saturating_sub(onset_ms), 1);
        }
        let mut waits = RunWaits {
            session,
            model: run.model.to_string(),
            turns,
            ..RunWaits::default()
        };
        self.events(run, symbols, &mut waits);
        self.by_run.push(waits);
    }

    fn events(&mut self, run: &Run, symbols: &Symbols, waits: &mut RunWaits) {
        let mut turn = Turn::default();
        let mut seen_turns = 0_u64;
        let mut open: Vec<(CallId, u64)> = Vec::new();
        // A table of events brings no waits: they are measured here, from hand-off to output and from start to end.
        let bare = run.events.iter().all(|event| event.wait.is_none());
        let mut handed_off_ms = 0;
        let mut said_ms: Option<u64> = None;
        let mut asleep_ms: Option<u64> = None;
        for event in &run.events {
            let mut event = *event;
            match event.kind {
                Kind::TurnStart => {
                    handed_off_ms = event.t_ms;
                    if seen_turns > 0 {
                        self.turn(&turn, false);
                    }
                    // A failed call comes before the turn that it delays begins to be recorded.
                    let failures = if seen_turns == 0 || turn.answered {
                        0
                    } else {
                        turn.failures
                    };
                    turn = Turn {
                        failures,
                        ..Turn::default()
                    };
                    seen_turns += 1;
                    said_ms = None;
                }
                Kind::ToolStart => {
                    turn.calls += 1;
                    turn.overlap |= !open.is_empty();
                    if open.iter().all(|(id, _)| *id != event.id) {
                        open.push((event.id, event.t_ms));
                    }
                    said_ms = None;
                }
                Kind::ToolEnd => {
                    let started = open.iter().find(|(id, _)| *id == event.id);
                    if let Some((_, from_ms)) = started.filter(|_| bare) {
                        let ms = event.t_ms - from_ms;
                        event.wait = Some(Wait {
                            kind: WaitKind::Tool,
                            ms,
                        });
                    }
                    open.retain(|(id, _)| *id != event.id);
                    handed_off_ms = event.t_ms;
                }
                Kind::RetryStart => self.failure(&mut turn, &event),
                Kind::CompactionStart => self.compaction_starts += 1,
                Kind::HostSuspend => asleep_ms = Some(event.t_ms),
                Kind::HostResume => {
                    if let Some(from_ms) = asleep_ms.take() {
                        self.suspends.add(event.t_ms - from_ms, 1);
                    }
                }
                Kind::MessageStart
                | Kind::MessageUpdate
                | Kind::ThinkingUpdate
                | Kind::MessageEnd => {
                    if bare && !turn.answered {
                        event.wait = Some(Wait {
                            kind: WaitKind::PreToken,
                            ms: event.t_ms - handed_off_ms,
                        });
                    }
                    turn.answered = true;
                    let piece = event.wait.is_none() && run.resolution == Resolution::Stream;
                    if let Some(before_ms) = said_ms.filter(|_| piece) {
                        let ms = event.t_ms - before_ms;
                        self.waits
                            .entry(WaitKind::InterToken)
                            .or_default()
                            .add(ms, 1);
                        let kind = WaitKind::InterToken;
                        waits.of_model.push(Scored { kind, ms });
                        turn.pieces += u64::from(event.kind != Kind::MessageEnd);
                    }
                    let goes_on =
                        run.resolution == Resolution::Stream && event.kind != Kind::MessageEnd;
                    said_ms = goes_on.then_some(event.t_ms);
                }
                _ => {}
            }
            self.wait(&event, symbols, &mut turn, waits);
        }
        self.turn(&turn, true);
        if run.end == RecordedEnd::Hung {
            let mid_stream = said_ms.is_some() && turn.answered;
            let phase = match (open.is_empty(), mid_stream) {
                (false, _) => 2,
                (true, true) => 1,
                (true, false) => 0,
            };
            self.hung[phase] += 1;
        }
    }

    fn failure(&mut self, turn: &mut Turn, event: &RunEvent) {
        let step = usize::try_from(turn.failures).unwrap_or(usize::MAX);
        self.failed_calls += 1;
        self.failed_again += u64::from(turn.failures > 0);
        self.turns_failed += u64::from(turn.failures == 0);
        turn.failures += 1;
        self.most_failures = self.most_failures.max(turn.failures);
        if self.delays.len() <= step {
            self.delays.resize_with(step + 1, Counts::default);
        }
        if let Some(ms) = event.announced_ms {
            self.delays[step].add(ms, 1);
        }
    }

    fn wait(&mut self, event: &RunEvent, symbols: &Symbols, turn: &mut Turn, waits: &mut RunWaits) {
        let Some(wait) = event.wait else { return };
        self.waits.entry(wait.kind).or_default().add(wait.ms, 1);
        match wait.kind {
            WaitKind::PreToken | WaitKind::StreamGap => {
                turn.answered = true;
                turn.pieces += u64::from(wait.kind == WaitKind::StreamGap);
                let (kind, ms) = (wait.kind, wait.ms);
                waits.of_model.push(Scored { kind, ms });
            }
            WaitKind::PreTokenErr | WaitKind::Continuation => turn.answered = true,
            WaitKind::Tool | WaitKind::ToolEscalated | WaitKind::Subagent | WaitKind::Human => {
                // A recorded approval is drawn apart from the call that it holds up.
                let own_ms = wait.ms.saturating_sub(turn.approved(event.id));
                let name = symbols.name(event.name).to_owned();
                waits.of_tools.push((name.clone(), own_ms));
                let tools = &mut self.tools;
                tools.entry((wait.kind, name)).or_default().add(own_ms, 1);
            }
            WaitKind::Approval => {
                self.approvals += 1;
                turn.approvals.push((event.id, wait.ms));
            }
            WaitKind::Compact => self.compactions += 1,
            _ => {}
        }
    }

    fn turn(&mut self, turn: &Turn, last: bool) {
        if turn.answered {
            self.pieces.add(turn.pieces, 1);
        }
        if !last {
            self.calls.add(turn.calls, 1);
        }
        self.several += u64::from(turn.calls > 1);
        self.at_once += u64::from(turn.calls > 1 && turn.overlap);
    }
}
