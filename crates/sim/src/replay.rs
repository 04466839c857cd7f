//! One policy over one run: the verdict of the real watchdog core, and what the record says of it.

use policysim_policy::{Cause, Kind, Millis, Output, Policy, Setup, Trace, Verdict, Watchdog};

use crate::judgement::{self, Judgement, KillClass};
use crate::run::{EventFlags, Run, Symbols};
use crate::scan::RunView;

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
    let setup = Setup {
        role: &run.role,
        trace,
        ..Setup::default()
    };
    Watchdog::with(policy, Millis::ZERO, &setup)
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
    let mut plain = Plain::of(run);
    let (times, kinds) = (run.t_ms(), run.kinds());
    let mut next = 0;
    while next < times.len() && !has_fired(&dog) {
        let until = plain.until(next);
        next += dog.handle_plain(&times[next..until], &kinds[next..until], |_| {});
        if next < times.len() {
            dog.handle_event(Millis::new(times[next]), &run.core_event(next, symbols));
            next += 1;
        }
    }
    dog.finish(Millis::new(run.head.end_ms));
    dog.verdict()
        .cloned()
        .expect("a finished watchdog has a verdict")
}

/// Which events of a run are nothing but a time and a kind to the core.
pub(crate) struct Plain<'a> {
    flags: &'a [EventFlags],
    /// The first event, of those not passed yet, that is more.
    more: usize,
}

impl<'a> Plain<'a> {
    pub(crate) fn of(run: &RunView<'a>) -> Self {
        let flags = &run.events.flags[run.first..run.end];
        let any = flags.iter().fold(0, |any, flags| any | flags.0);
        let some = EventFlags(any).has(EventFlags::SUSPENDS);
        Self {
            flags,
            more: if some { 0 } else { flags.len() },
        }
    }

    /// The first event from `next` on that is more; `next` never falls.
    pub(crate) fn until(&mut self, next: usize) -> usize {
        let is_more = |flags: &EventFlags| flags.has(EventFlags::SUSPENDS);
        if self.more < self.flags.len() && (self.more < next || !is_more(&self.flags[self.more])) {
            let rest = self.flags[next..].iter().position(is_more);
            self.more = rest.map_or(self.flags.len(), |rest| next + rest);
        }
        self.more
    }
}

/// Replays `run` with the core's full transcript; `output` gets each fact with the index of the event
/// that caused it (the number of events for the record's end).
pub fn transcript(
    policy: &Policy,
    run: &Run,
    symbols: &Symbols,
    mut output: impl FnMut(usize, Output),
) -> Replayed {
    let mut dog = arm(policy, run, Trace::Full);
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
