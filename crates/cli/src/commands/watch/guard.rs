//! One policy over the live run: a watchdog, its firing, and its successor.

use policysim_policy::{Cause, Event, Millis, Output, Policy, Setup, Trace, Verdict, Watchdog};

/// What a firing leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Power {
    /// The command is killed.
    Enforces,
    /// It is told; the command goes on.
    Observes,
    /// The same, beside another policy.
    Shadows,
    /// Another `watch` above holds the clock.
    Shares,
}

impl Power {
    /// The power's name in the record.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Enforces => "enforces",
            Self::Observes => "observes",
            Self::Shadows => "shadows",
            Self::Shares => "shares",
        }
    }
}

/// A firing that stands.
#[derive(Clone, Debug)]
pub(super) struct Firing {
    /// The core's verdict.
    pub(super) verdict: Verdict,
    /// When `watch` came to know of it, ms since the start.
    pub(super) decided_ms: u64,
}

impl Firing {
    /// How long after its own instant `watch` came to know of it.
    pub(super) fn lateness_ms(&self) -> u64 {
        self.decided_ms.saturating_sub(self.verdict.at.as_u64())
    }
}

/// What the caller of a run knows beside its policy, and how much is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// The agent's role.
    pub(super) role: String,
    /// A hard deadline, ms since the start.
    pub(super) deadline_ms: Option<u64>,
    /// How much the core tells.
    pub(super) trace: Trace,
}

/// One policy over the live run.
#[derive(Debug)]
pub(super) struct Guard {
    /// The policy's name as it was given.
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) power: Power,
    caller: Caller,
    dog: Watchdog,
    firing: Option<Firing>,
    /// Whether the firing that stands was told.
    told: bool,
}

impl Guard {
    /// Arms the policy over a run that starts now.
    pub(super) fn arm(name: String, policy: Policy, power: Power, caller: Caller) -> Self {
        let dog = watchdog(&policy, Millis::ZERO, &caller);
        Self {
            name,
            policy,
            power,
            caller,
            dog,
            firing: None,
            told: false,
        }
    }

    /// Feeds what happened at `at_ms`; what is due by then happens first. Whether a watchdog began with it.
    pub(super) fn feed(&mut self, at_ms: u64, event: &Event<'_>) -> bool {
        self.pass(at_ms, at_ms);
        if self.firing.is_none() {
            self.dog.handle_event(Millis::new(at_ms), event);
            self.notice(at_ms);
            return false;
        }
        if self.power == Power::Enforces || !self.is_revived_by(event) {
            return false;
        }
        self.begin_again(at_ms, event);
        true
    }

    /// Lets time pass up to `until_ms`, of which `watch` comes to know at `now_ms`.
    pub(super) fn pass(&mut self, until_ms: u64, now_ms: u64) {
        if self.firing.is_none() {
            self.dog.handle_timeout(Millis::new(until_ms));
            self.notice(now_ms);
        }
    }

    fn notice(&mut self, now_ms: u64) {
        if let Some(verdict) = self.dog.verdict()
            && verdict.cause.is_firing()
        {
            self.firing = Some(Firing {
                verdict: verdict.clone(),
                decided_ms: now_ms,
            });
        }
    }

    /// The firing that stands, if one does.
    pub(super) const fn firing(&self) -> Option<&Firing> {
        self.firing.as_ref()
    }

    /// Whether `event` takes back the firing that stands: it is what the fired clock had waited for.
    pub(super) fn is_revived_by(&self, event: &Event<'_>) -> bool {
        let rearm = &self.policy.idle.rearm;
        let kinds = match self.firing.as_ref().map(|firing| firing.verdict.cause) {
            Some(Cause::IdleTimeout | Cause::FirstTimeout | Cause::StartupTimeout) => rearm,
            Some(Cause::CeilingTimeout) => self.policy.idle.progress.resolve(rearm),
            _ => return false,
        };
        kinds.holds(event.kind, event.name)
    }

    /// Starts a new watchdog from the activity at `at_ms`, and feeds it that.
    pub(super) fn begin_again(&mut self, at_ms: u64, event: &Event<'_>) {
        let at = Millis::new(at_ms);
        self.dog = watchdog(&self.policy, at, &self.caller);
        self.firing = None;
        self.told = false;
        self.dog.handle_event(at, event);
        self.notice(at_ms);
    }

    /// Whether a firing stands that was not told yet; from now on it was.
    pub(super) fn tell_once(&mut self) -> bool {
        self.firing.is_some() && !std::mem::replace(&mut self.told, true)
    }

    /// When time matters next, ms since the start.
    pub(super) fn wake_ms(&self) -> Option<u64> {
        if self.firing.is_some() {
            return None;
        }
        self.dog.poll_timeout().map(Millis::as_u64)
    }

    /// The next fact that the core told.
    pub(super) fn fact(&mut self) -> Option<Output> {
        self.dog.poll_output()
    }
}

fn watchdog(policy: &Policy, start: Millis, caller: &Caller) -> Watchdog {
    let setup = Setup {
        role: &caller.role,
        deadline: caller.deadline_ms.map(Millis::new),
        trace: caller.trace,
    };
    Watchdog::with(policy, start, &setup)
}

#[cfg(test)]
mod tests {
    use policysim_policy::Kind;

    use super::*;

    fn guard(power: Power) -> Guard {
        let mut policy = Policy::default();
        policy.idle.window = Some(Millis::new(100));
        policy.total.budget = Some(Millis::new(1_000));
        Guard::arm("p".to_owned(), policy, power, Caller::default())
    }

    fn at(guard: &Guard) -> Option<(Cause, u64)> {
        let firing = guard.firing()?;
        Some((firing.verdict.cause, firing.verdict.at.as_u64()))
    }

    #[test]
    fn an_observed_policy_tells_every_firing() {
        let mut guard = guard(Power::Observes);
        let bytes = Event::new(Kind::Stdout);
        assert!(!guard.feed(50, &bytes));
        guard.pass(400, 400);
        assert_eq!(at(&guard), Some((Cause::IdleTimeout, 150)));
        assert!(guard.feed(420, &bytes));
        assert_eq!(at(&guard), None);
        guard.pass(600, 600);
        assert_eq!(at(&guard), Some((Cause::IdleTimeout, 520)));
    }

    #[test]
    fn an_enforced_firing_stands_until_it_is_taken_back() {
        let mut guard = guard(Power::Enforces);
        let bytes = Event::new(Kind::Stdout);
        guard.pass(130, 130);
        assert_eq!(guard.firing().map(Firing::lateness_ms), Some(30));
        assert!(!guard.feed(131, &bytes));
        assert!(guard.is_revived_by(&bytes));
        guard.begin_again(131, &bytes);
        assert_eq!(guard.wake_ms(), Some(231));
    }

    /// A host that slept has neither been silent nor shown a sign of life: the monotonic clock stood still meanwhile.
    #[test]
    fn a_suspend_neither_fires_nor_rearms() {
        let mut guard = guard(Power::Enforces);
        guard.feed(10, &Event::new(Kind::Stdout));
        let mut slept = Event::new(Kind::HostSuspend);
        slept.announced = Some(Millis::new(2_700_000));
        guard.feed(60, &slept);
        guard.feed(60, &Event::new(Kind::HostResume));
        assert_eq!((at(&guard), guard.wake_ms()), (None, Some(110)));
        guard.pass(120, 120);
        assert_eq!(at(&guard), Some((Cause::IdleTimeout, 110)));
    }

    /// Activity takes back what waited for it, never a budget.
    #[test]
    fn a_used_up_budget_is_not_taken_back() {
        let mut guard = guard(Power::Enforces);
        let bytes = Event::new(Kind::Stdout);
        for at_ms in (50..1_000).step_by(50) {
            guard.feed(at_ms, &bytes);
        }
        guard.feed(1_000, &bytes);
        assert_eq!(at(&guard), Some((Cause::TotalTimeout, 1_000)));
        assert!(!guard.is_revived_by(&bytes));
    }
}
