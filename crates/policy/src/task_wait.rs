//! The parent's side of a delegation: what `TaskWait` waits for, how long, and what it returns with.
//!
//! Source: PI-Desktop's delegation registry and ADR 0129 (`semantics.md` section 3). Everything is a pure function of
//! the call and of the times at which the delegates settle.

use alloc::vec::Vec;

use crate::{Decimal, Millis, TaskWait, WaitMode};

/// Delegates that may run at once in a session; a further one is refused, nothing queues.
pub const MAX_RUNNING: usize = 10;

/// The shortest wait a call can have.
pub const MIN_WAIT: Millis = Millis::from_secs(1);

/// One call, as the model wrote it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'c> {
    /// Delegates waited for; `None` means those running at the call. A repeated id counts repeatedly.
    pub ids: Option<&'c [&'c str]>,
    /// All or a minimum.
    pub mode: WaitMode,
    /// Of [`WaitMode::Any`]: how many must settle; floored, held within 1 and the number of targets.
    pub min_completed: Option<Decimal>,
    /// The wait in seconds; floored, held within the contract.
    pub timeout_seconds: Option<Decimal>,
}

/// A delegate as the registry knows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delegate<'d> {
    /// Its id.
    pub id: &'d str,
    /// When it settles, in any status but running; `None` means never.
    pub settles_at: Option<Millis>,
}

impl Delegate<'_> {
    /// Settling goes before anything else that happens at the same instant.
    fn settled_by(&self, at: Millis) -> bool {
        self.settles_at.is_some_and(|settles| settles <= at)
    }
}

/// What a wait returned with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Returned {
    /// When it returned.
    pub at: Millis,
    /// Whether its window (or the parent) ended it before enough targets had settled. Not a failure of any delegate.
    pub expired: bool,
    /// Targets settled by then.
    pub finished: usize,
    /// Targets waited for.
    pub total: usize,
}

/// Whether one more delegate may start beside `running` others.
pub const fn accepts(running: usize) -> bool {
    running < MAX_RUNNING
}

/// The window of a call: floored to whole seconds, at least one, at most `contract.max`; absent means the default.
pub fn window(timeout_seconds: Option<Decimal>, contract: &TaskWait) -> Millis {
    timeout_seconds.map_or(contract.timeout, |seconds| {
        let seconds = u64::try_from(seconds.floor()).unwrap_or(0);
        Millis::from_secs(seconds).clamp(MIN_WAIT, contract.max.max(MIN_WAIT))
    })
}

/// The delegates a call waits for: the known ones among its ids, or those still running at `at`.
pub fn targets<'d>(call: &Call<'_>, delegates: &[Delegate<'d>], at: Millis) -> Vec<Delegate<'d>> {
    match call.ids {
        Some(ids) => ids
            .iter()
            .filter_map(|id| delegates.iter().find(|delegate| delegate.id == *id))
            .copied()
            .collect(),
        None => delegates
            .iter()
            .filter(|delegate| !delegate.settled_by(at))
            .copied()
            .collect(),
    }
}

/// How many of `total` targets must have settled.
pub fn needed(call: &Call<'_>, total: usize) -> usize {
    match call.mode {
        WaitMode::All => total,
        WaitMode::Any => {
            let least = call.min_completed.map_or(1, Decimal::floor);
            usize::try_from(least).unwrap_or(0).max(1).min(total)
        }
    }
}

/// Runs one wait that starts at `at` and that the parent aborts at `aborted_at`, if it does.
///
/// A wait without targets returns at once and has not expired. Delegates that had settled before count at once.
/// At one instant a settling goes before the expiry and before an abort.
///
/// ```
/// use policysim_policy::{Millis, TaskWait, task_wait::{self, Call, Delegate}};
/// let hung = Delegate { id: "a", settles_at: Some(Millis::from_secs(300)) };
/// let wait = task_wait::wait(&Call::default(), &TaskWait::default(), &[hung], Millis::ZERO, None);
/// assert_eq!((wait.at, wait.expired), (Millis::from_secs(300), false));
/// ```
pub fn wait(
    call: &Call<'_>,
    contract: &TaskWait,
    delegates: &[Delegate<'_>],
    at: Millis,
    aborted_at: Option<Millis>,
) -> Returned {
    let targets = targets(call, delegates, at);
    let needed = needed(call, targets.len());
    let deadline = at.plus(window(call.timeout_seconds, contract));
    let last = aborted_at.map_or(deadline, |abort| abort.max(at).min(deadline));
    let mut settled: Vec<Millis> = targets
        .iter()
        .filter_map(|delegate| delegate.settles_at)
        .map(|settles| settles.max(at))
        .collect();
    settled.sort_unstable();
    let enough = match needed {
        0 => Some(at),
        _ => settled
            .get(needed - 1)
            .copied()
            .filter(|&when| when <= last),
    };
    let returns_at = enough.unwrap_or(last);
    Returned {
        at: returns_at,
        expired: enough.is_none(),
        finished: settled.iter().filter(|&&when| when <= returns_at).count(),
        total: targets.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Delegate<'_> = Delegate {
        id: "a",
        settles_at: Some(Millis::new(10_000)),
    };
    const B: Delegate<'_> = Delegate {
        id: "b",
        settles_at: None,
    };

    fn seconds(text: &str) -> u64 {
        window(Decimal::parse(text), &TaskWait::default()).as_u64()
    }

    /// `semantics.md` 3.2: floor, then 1 to 900, absent 600.
    #[test]
    fn windows_are_floored_and_held_within_the_bounds() {
        assert_eq!(seconds("5000"), 900_000);
        assert_eq!(seconds("0"), 1000);
        assert_eq!(seconds("-7"), 1000);
        assert_eq!(seconds("12.9"), 12_000);
        assert_eq!(window(None, &TaskWait::default()), Millis::from_secs(600));
    }

    /// 3.3 and 3.4: unknown ids are skipped, repeated ids count repeatedly.
    #[test]
    fn targets_by_id() {
        let call = Call {
            ids: Some(&["a", "zz", "a"]),
            ..Call::default()
        };
        let wait = wait(&call, &TaskWait::default(), &[A, B], Millis::ZERO, None);
        assert_eq!((wait.finished, wait.total), (2, 2));
        assert_eq!(wait.at, Millis::new(10_000));
    }

    /// 3.4: a minimum below one is one, a fraction is floored.
    #[test]
    fn minimum() {
        for (min, expected) in [("0", 1), ("-2", 1), ("2.9", 2), ("9", 3)] {
            let call = Call {
                mode: WaitMode::Any,
                min_completed: Decimal::parse(min),
                ..Call::default()
            };
            assert_eq!(needed(&call, 3), expected, "{min}");
        }
    }

    /// 3.10: a settling at the instant of the expiry is inside the wait.
    #[test]
    fn settling_at_the_expiry_counts() {
        let delegate = Delegate {
            id: "a",
            settles_at: Some(Millis::from_secs(600)),
        };
        let call = Call::default();
        let wait = wait(&call, &TaskWait::default(), &[delegate], Millis::ZERO, None);
        assert!(!wait.expired);
    }
}
