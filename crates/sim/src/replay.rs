//! One policy over one run: the verdict of the real watchdog core, and what the record says of it.

use policysim_policy::{Cause, Kind, Millis, Output, Policy, Setup, Trace, Verdict, Watchdog};

use crate::judgement::{self, Judgement, KillClass};
use crate::run::{EventFlags, Run, RunEvent, Symbols};
use crate::scan::{Rising, RunView};

/// What one policy did to one run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replayed {
    /// The core's verdict; `running` when neither it nor the policy ended the run within the record.
    pub verdict: Verdict,
    /// What the record says of that verdict.
    pub judgement: Judgement,
    /// Index of the first event that the watchdog did not see; all were seen when it equals their number.
    pub unseen: usize,
}

impl Replayed {
    /// Whether the policy killed the run.
    pub fn is_kill(&self) -> bool {
        kill_class(self.verdict.cause).is_some()
    }
}

/// How a kill by `cause` is refuted; `None` when it is no kill.
pub const fn kill_class(cause: Cause) -> Option<KillClass> {
    match cause {
        Cause::Ended | Cause::Running | Cause::CleanupForced => None,
        Cause::IdleTimeout
        | Cause::FirstTimeout
        | Cause::CeilingTimeout
        | Cause::StartupTimeout
        | Cause::ToolTimeout
        | Cause::CompactionTimeout
        | Cause::BackoffTimeout => Some(KillClass::Silence),
        Cause::TotalTimeout | Cause::TurnLimit | Cause::CallerDeadline => Some(KillClass::Length),
    }
}

/// A watchdog armed for `run` (its role decides the turn cap), telling as much as `trace`.
pub fn arm(policy: &Policy, run: &Run, trace: Trace) -> Watchdog {
    arm_until(policy, run, trace, None)
}

fn arm_until(policy: &Policy, run: &Run, trace: Trace, deadline: Option<Millis>) -> Watchdog {
    let setup = Setup {
        role: &run.role,
        deadline,
        trace,
    };
    Watchdog::with(policy, Millis::ZERO, &setup)
}

/// The hard deadline that the caller of a recorded run had set. It belongs to that invocation and to no policy, so
/// only [`transcript_until`] heeds it.
pub fn recorded_deadline(run: &Run) -> Option<Millis> {
    let start = run
        .events
        .iter()
        .find(|event| event.kind == Kind::RunStart)?;
    start.announced_ms.map(Millis::new)
}

/// Feeds `run` to `dog` up to the end of its record, or to the firing.
///
/// Returns the index of the first event that was not fed. `after` sees the watchdog after every step,
/// with the index of the event just fed (the number of events at the record's end).
pub fn drive(
    dog: &mut Watchdog,
    run: &Run,
    symbols: &Symbols,
    mut after: impl FnMut(&mut Watchdog, usize),
) -> usize {
    for (index, event) in run.events.iter().enumerate() {
        let at = Millis::new(event.t_ms);
        // A timer due at this instant goes first, so a firing leaves the event unseen.
        dog.handle_timeout(at);
        if has_fired(dog) {
            after(dog, index);
            return index;
        }
        dog.handle_event(at, &event.as_event(symbols));
        after(dog, index);
        if has_fired(dog) {
            return index + 1;
        }
    }
    dog.finish(Millis::new(run.end_ms));
    after(dog, run.events.len());
    run.events.len()
}

fn has_fired(dog: &Watchdog) -> bool {
    dog.verdict()
        .is_some_and(|verdict| verdict.cause.is_firing())
}

/// The `other` event that marks where activity took a live kill back before the signal: a new watchdog starts there.
pub const KILL_CANCELLED: &str = "kill_cancelled";

/// The same where the policy was only observed, so that no kill was under way.
pub const KILL_WITHHELD: &str = "kill_withheld";

/// What the watchdog saw that took over from one which `policy` fired in `run`: the events behind the mark, with times
/// that count from there. `None` where the firing was not taken back, or another policy's was: then something that
/// is activity under `policy` lies between the firing (which left the events from `unseen` on unseen) and the mark.
pub fn successor(policy: &Policy, run: &Run, symbols: &Symbols, unseen: usize) -> Option<Run> {
    let later = run.events.get(unseen..)?;
    let is_mark = |event: &RunEvent| {
        event.kind == Kind::Other
            && matches!(symbols.name(event.name), KILL_CANCELLED | KILL_WITHHELD)
    };
    let mark = later.iter().position(is_mark)?;
    let revives = |event: &RunEvent| {
        policy
            .idle
            .rearm
            .holds(event.kind, symbols.name(event.name))
    };
    if later[..mark].iter().any(revives) {
        return None;
    }
    let from_ms = later[mark].t_ms;
    let mut rest = Run {
        end_ms: run.end_ms.saturating_sub(from_ms),
        started_at_ms: run.started_at_ms.saturating_add_unsigned(from_ms),
        events: later[mark + 1..].to_vec(),
        ..run.clone()
    };
    for event in &mut rest.events {
        event.t_ms = event.t_ms.saturating_sub(from_ms);
    }
    Some(rest)
}

/// Replays `run` under `policy`.
pub fn replay(policy: &Policy, run: &Run, symbols: &Symbols) -> Replayed {
    let mut dog = arm(policy, run, Trace::Verdict);
    let unseen = drive(&mut dog, run, symbols, |_, _| {});
    conclude(&dog, run, unseen)
}

/// The verdict of the core on `run` under `policy`, from columns.
///
/// # Panics
/// Never: a watchdog at the end of a record has a verdict.
pub fn verdict(policy: &Policy, run: &RunView<'_>, symbols: &Symbols) -> Verdict {
    let mut dog = arm(policy, run.head, Trace::Verdict);
    let (mut plain, mut feed) = (Plain::of(run), run.feed(symbols));
    let (times, kinds) = (run.t_ms(), run.kinds());
    let mut next = 0;
    while next < times.len() && !has_fired(&dog) {
        let until = plain.until(next);
        next += dog.handle_plain(&times[next..until], &kinds[next..until], |_| {});
        if next < times.len() {
            dog.handle_event(Millis::new(times[next]), &feed.event(next));
            next += 1;
        }
    }
    dog.finish(Millis::new(run.head.end_ms));
    dog.verdict()
        .cloned()
        .expect("a finished watchdog has a verdict")
}

/// Which events of a run are nothing but a time and a kind to the core: all that do not ask the clock to stop.
pub(crate) struct Plain<'a> {
    marks: Rising<'a, EventFlags>,
    first: usize,
    n_events: usize,
}

impl<'a> Plain<'a> {
    pub(crate) fn of(run: &RunView<'a>) -> Self {
        let marks = &run.events.flags;
        Self {
            // where none asks, none is looked at
            marks: marks.rising(if run.suspends { run.first } else { usize::MAX }),
            first: run.first,
            n_events: run.len(),
        }
    }

    /// The first event from `next` on that is more; `next` never falls.
    pub(crate) fn until(&mut self, next: usize) -> usize {
        let asks = |flags: &EventFlags| flags.has(EventFlags::SUSPENDS);
        let row = self.marks.find(self.first + next, asks);
        row.map_or(self.n_events, |row| (row - self.first).min(self.n_events))
    }
}

/// Replays `run` with the core's full transcript; `output` gets each fact with the index of the event
/// that caused it (the number of events for the record's end).
pub fn transcript(
    policy: &Policy,
    run: &Run,
    symbols: &Symbols,
    output: impl FnMut(usize, Output),
) -> Replayed {
    transcript_until(policy, run, symbols, None, output)
}

/// The same with a hard deadline of the caller, an instant.
pub fn transcript_until(
    policy: &Policy,
    run: &Run,
    symbols: &Symbols,
    deadline: Option<Millis>,
    mut output: impl FnMut(usize, Output),
) -> Replayed {
    let mut dog = arm_until(policy, run, Trace::Full, deadline);
    let unseen = drive(&mut dog, run, symbols, |dog, index| {
        while let Some(out) = dog.poll_output() {
            output(index, out);
        }
    });
    conclude(&dog, run, unseen)
}

fn conclude(dog: &Watchdog, run: &Run, unseen: usize) -> Replayed {
    let verdict = dog
        .verdict()
        .cloned()
        .expect("a finished or fired watchdog has a verdict");
    let judgement = match kill_class(verdict.cause) {
        Some(class) => judgement::judge_kill(run, unseen, class),
        None => judgement::judge_survival(run),
    };
    Replayed {
        verdict,
        judgement,
        unseen,
    }
}

/// The instant from which a hung run showed no more life, ms since its start.
pub fn hang_onset_ms(run: &Run) -> u64 {
    run.events
        .iter()
        .rev()
        .find(|event| judgement::shows_life(event) || event.kind == Kind::RetryStart)
        .map_or(0, |event| event.t_ms)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Activity at 131 took back the firing of 100; the watchdog that began there fires 100 later.
    #[test]
    fn a_firing_that_was_taken_back_has_a_successor() {
        let mut symbols = Symbols::default();
        let mut mark = RunEvent::new(131, Kind::Other);
        mark.name = symbols.intern(KILL_CANCELLED);
        let run = Run {
            events: vec![
                RunEvent::new(0, Kind::RunStart),
                mark,
                RunEvent::new(131, Kind::Stdout),
            ],
            end_ms: 400,
            ..Run::default()
        };
        let mut policy = Policy::default();
        policy.idle.window = Some(Millis::new(100));
        let first = replay(&policy, &run, &symbols);
        assert_eq!((first.verdict.at, first.unseen), (Millis::new(100), 1));
        let rest = successor(&policy, &run, &symbols, first.unseen).unwrap();
        let second = replay(&policy, &rest, &symbols);
        assert_eq!(second.verdict.cause, Cause::IdleTimeout);
        assert_eq!(second.verdict.at, Millis::new(100));
        assert_eq!(successor(&policy, &rest, &symbols, second.unseen), None);
        // What another policy had fired earlier was not what was taken back.
        let early = Run {
            events: [vec![RunEvent::new(110, Kind::Stdout)], run.events.clone()].concat(),
            ..run
        };
        assert_eq!(successor(&policy, &early, &symbols, 0), None);
    }
}
