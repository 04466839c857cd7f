//! The engine: a virtual clock, delegates under their watchdogs, and the waits for them.
//!
//! A [`Session`] is sans-IO like the core. The caller spawns delegates, opens waits and asks to be woken; [`Session::next`]
//! jumps to the next instant at which something happens and tells what. Nothing reads a clock, nothing is random.

use std::collections::VecDeque;

use policysim_policy::task_wait::{self, Call};
use policysim_policy::{
    Decimal, KillAction, KillScope, LateSuccess, Millis, Policy, TaskWait, WaitMode,
};

use super::course::Course;
use super::delegate::{Delegate, Heartbeat, How, Next, Standing};
use super::queue::{Queue, Rank};
use crate::judgement::Judgement;

/// What the engine tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Happening {
    /// A delegate came to rest.
    Settled {
        /// Its number.
        delegate: usize,
        /// How.
        how: How,
    },
    /// A watchdog fired under a policy that only tells.
    Told {
        /// The delegate's number.
        delegate: usize,
    },
    /// A wait returned.
    Returned(Returned),
    /// The caller asked to be woken now, with this note.
    Woken(u32),
}

/// A wait that returned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Returned {
    /// Its number.
    pub wait: usize,
    /// Before enough targets had settled: its window was over, or it was aborted. No failure of any delegate.
    pub expired: bool,
    /// Targets settled by now; a repeated target counts repeatedly.
    pub finished: usize,
    /// Targets.
    pub total: usize,
}

/// What the queue holds.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// What a delegate planned.
    Planned {
        delegate: usize,
        plan: u32,
        next: Next,
    },
    /// A delegate has unwound.
    Unwound {
        delegate: usize,
        how: How,
    },
    Expires {
        wait: usize,
    },
    Wakes {
        note: u32,
    },
    Tells {
        delegate: usize,
    },
}

struct Wait {
    /// The delegate that waits; none for the parent.
    owner: Option<usize>,
    targets: Vec<usize>,
    needed: usize,
    open: bool,
}

/// One parent's session: its delegates, its waits, its clock.
pub struct Session<'r> {
    policy: &'r Policy,
    /// How long a delegate that was told to end takes, beyond the policy's kill delay.
    unwinding: Millis,
    cap: usize,
    now: Millis,
    queue: Queue<Due>,
    told: VecDeque<Happening>,
    delegates: Vec<Delegate<'r>>,
    waits: Vec<Wait>,
    /// Delegates of the parent itself that hold a slot.
    running: usize,
}

impl<'r> Session<'r> {
    /// An empty session at time 0. `cap` delegates may run at once; `unwinding` is what a killed one takes on top of
    /// the policy's delay (and, where it hangs, of the policy's grace).
    pub fn new(policy: &'r Policy, cap: usize, unwinding: Millis) -> Self {
        Self {
            policy,
            unwinding,
            cap,
            now: Millis::ZERO,
            queue: Queue::default(),
            told: VecDeque::new(),
            delegates: Vec::new(),
            waits: Vec::new(),
            running: 0,
        }
    }

    /// The virtual clock.
    pub const fn now(&self) -> Millis {
        self.now
    }

    /// Delegates of the parent that hold a slot.
    pub const fn running(&self) -> usize {
        self.running
    }

    /// Where a delegate stands.
    ///
    /// # Panics
    /// When there is none of that number; so do the other questions about one.
    pub fn standing(&self, delegate: usize) -> Standing {
        self.delegates[delegate].standing
    }

    /// Whether a delegate is at rest.
    pub fn is_settled(&self, delegate: usize) -> bool {
        matches!(self.standing(delegate), Standing::Settled(_))
    }

    /// When it was spawned.
    pub fn born(&self, delegate: usize) -> Millis {
        self.delegates[delegate].born
    }

    /// When it was told to end, or did; now for one that runs.
    pub fn ended_at(&self, delegate: usize) -> Millis {
        self.delegates[delegate].ended.unwrap_or(self.now)
    }

    /// How it came to rest, once it was told to or did.
    pub fn how(&self, delegate: usize) -> Option<How> {
        self.delegates[delegate].how
    }

    /// What the record of its run says of its watchdog's kill, as a replay judges it; `None` where none fired.
    pub fn judgement(&self, delegate: usize) -> Option<Judgement> {
        self.delegates[delegate].judgement()
    }

    /// Since when it hangs, if its course does.
    pub fn onset(&self, delegate: usize) -> Option<Millis> {
        self.delegates[delegate].onset()
    }

    /// Whether it shows, or would have shown, another sign of life after `at`.
    pub fn is_healthy(&self, delegate: usize, at: Millis) -> bool {
        self.delegates[delegate].is_healthy(at)
    }

    /// What is left of a delegate's course that was stopped at `at`.
    pub fn rest(&self, delegate: usize, at: Millis) -> Course<'r> {
        self.delegates[delegate].rest(at)
    }

    /// What the parent can see of it now.
    pub fn heartbeat(&self, delegate: usize) -> Heartbeat {
        self.delegates[delegate].heartbeat(self.now)
    }

    /// Starts a delegate now; `None` when as many as may run do: it is refused, nothing queues.
    pub fn spawn(&mut self, course: Course<'r>) -> Option<usize> {
        if self.running >= self.cap {
            return None;
        }
        self.running += 1;
        Some(self.start(course, None))
    }

    fn start(&mut self, course: Course<'r>, outer: Option<usize>) -> usize {
        let delegate = self.delegates.len();
        self.delegates
            .push(Delegate::new(self.policy, course, self.now, outer));
        self.plan(delegate);
        delegate
    }

    /// Queues what a delegate does next; what it had planned before is void.
    fn plan(&mut self, delegate: usize) {
        let planner = &mut self.delegates[delegate];
        planner.plan += 1;
        let (plan, next) = (planner.plan, planner.next());
        let (at, rank) = match next {
            Next::Fires(at) | Next::Ends(at) | Next::Looks(at) => (at, Rank::Settling),
            Next::Asks(at) => (at, Rank::Act),
            Next::Never => return,
        };
        let due = Due::Planned {
            delegate,
            plan,
            next,
        };
        self.queue.push(at.max(self.now), rank, due);
    }

    /// Asks to be woken at `at` with `note`.
    pub fn wake_at(&mut self, at: Millis, note: u32) {
        self.queue
            .push(at.max(self.now), Rank::Act, Due::Wakes { note });
    }

    /// Opens a wait now for `targets`; its window is held to nothing, see [`task_wait::window`].
    pub fn wait_for(&mut self, targets: Vec<usize>, call: &Call<'_>, window: Millis) -> usize {
        self.open_wait(None, targets, call, window)
    }

    /// Opens a wait now as a model calls for one: by ids, with what the contract makes of it. `ids` are the ids of the
    /// delegates in the order in which they were spawned.
    pub fn call(&mut self, call: &Call<'_>, contract: &TaskWait, ids: &[&str]) -> usize {
        let known: Vec<task_wait::Delegate<'_>> = ids
            .iter()
            .zip(&self.delegates)
            .map(|(id, delegate)| task_wait::Delegate {
                id,
                settles_at: match delegate.standing {
                    Standing::Settled(at) => Some(at),
                    _ => None,
                },
            })
            .collect();
        let targets = task_wait::targets(call, &known, self.now)
            .iter()
            .filter_map(|target| ids.iter().position(|id| *id == target.id))
            .collect();
        let window = task_wait::window(call.timeout_seconds, contract);
        self.open_wait(None, targets, call, window)
    }

    fn open_wait(
        &mut self,
        owner: Option<usize>,
        targets: Vec<usize>,
        call: &Call<'_>,
        window: Millis,
    ) -> usize {
        let wait = self.waits.len();
        let needed = task_wait::needed(call, targets.len());
        self.waits.push(Wait {
            owner,
            targets,
            needed,
            open: true,
        });
        if !self.try_return(wait) {
            let at = self.now.plus(window);
            self.queue.push(at, Rank::Expiry, Due::Expires { wait });
        }
        wait
    }

    /// Ends a wait now, as if it had expired.
    pub fn abort_wait(&mut self, wait: usize) {
        if self.waits[wait].open {
            self.give_back(wait, true);
        }
    }

    /// Returns a wait whose targets are done; whether it did.
    fn try_return(&mut self, wait: usize) -> bool {
        let enough = self.finished(wait) >= self.waits[wait].needed;
        if enough {
            self.give_back(wait, false);
        }
        enough
    }

    fn finished(&self, wait: usize) -> usize {
        let targets = &self.waits[wait].targets;
        targets
            .iter()
            .filter(|&&target| self.is_settled(target))
            .count()
    }

    fn give_back(&mut self, wait: usize, expired: bool) {
        self.waits[wait].open = false;
        let Some(owner) = self.waits[wait].owner else {
            self.told.push_back(Happening::Returned(Returned {
                wait,
                expired,
                finished: self.finished(wait),
                total: self.waits[wait].targets.len(),
            }));
            return;
        };
        if self.delegates[owner].standing != Standing::Running {
            return;
        }
        // A delegate whose wait expires asks for the same child again: nobody told it that the child failed.
        let again = expired.then(|| {
            let targets = self.waits[wait].targets.clone();
            self.open_wait(
                Some(owner),
                targets,
                &Call::default(),
                self.policy.task_wait.timeout,
            )
        });
        self.delegates[owner].answered(self.now, again);
        self.plan(owner);
    }

    /// Requests that a delegate ends; it settles once it has unwound. `how` is what it then counts as.
    pub fn stop(&mut self, delegate: usize, how: How) {
        self.end(delegate, how, Millis::ZERO);
    }

    /// Tells a running delegate to end now: it does after `delay` and what unwinding takes.
    fn end(&mut self, delegate: usize, how: How, delay: Millis) {
        let target = &mut self.delegates[delegate];
        if target.standing != Standing::Running {
            return;
        }
        let hangs = !target.is_healthy(self.now);
        // A run that hangs does not answer the signal: it takes the whole grace.
        let grace = if hangs {
            self.policy.kill.grace
        } else {
            Millis::ZERO
        };
        let mut at = self.now.plus(delay).plus(grace).plus(self.unwinding);
        let mut how = how;
        if self.policy.kill.late_success == LateSuccess::Accept
            && matches!(how, How::Fired(_))
            && let Some(end) = target.own_end().filter(|&end| end <= at)
        {
            // It ignored its cancellation and was done first.
            at = end.max(self.now);
            how = How::Ended(target.course.outcome());
        }
        target.standing = Standing::Unwinding(at);
        target.ended = Some(self.now);
        target.how = Some(how);
        target.plan += 1;
        if let Some((child, wait)) = target.child.take() {
            self.waits[wait].open = false;
            if self.policy.kill.scope == KillScope::Tree {
                self.end(child, How::Stopped, delay);
            }
        }
        if at == self.now {
            self.settle(delegate, how);
        } else {
            self.queue
                .push(at, Rank::Settling, Due::Unwound { delegate, how });
        }
    }

    fn settle(&mut self, delegate: usize, how: How) {
        let target = &mut self.delegates[delegate];
        target.standing = Standing::Settled(self.now);
        target.ended.get_or_insert(self.now);
        target.how = Some(how);
        if target.outer.is_none() {
            self.running -= 1;
            self.told.push_back(Happening::Settled { delegate, how });
        }
        for wait in 0..self.waits.len() {
            if self.waits[wait].open && self.waits[wait].targets.contains(&delegate) {
                self.try_return(wait);
            }
        }
    }

    /// Jumps to the next instant at which something happens and tells what; `None` when nothing happens any more
    /// up to `until`.
    pub fn next(&mut self, until: Millis) -> Option<Happening> {
        loop {
            if let Some(happening) = self.told.pop_front() {
                return Some(happening);
            }
            let (at, due) = self.queue.pop(until)?;
            self.now = at;
            match due {
                Due::Wakes { note } => return Some(Happening::Woken(note)),
                Due::Tells { delegate } => return Some(Happening::Told { delegate }),
                Due::Expires { wait } => self.abort_wait(wait),
                Due::Unwound { delegate, how } => self.settle(delegate, how),
                Due::Planned {
                    delegate,
                    plan,
                    next,
                } if self.delegates[delegate].plan == plan => self.happens(delegate, next),
                Due::Planned { .. } => {}
            }
        }
    }

    /// What a delegate had planned for now.
    fn happens(&mut self, delegate: usize, next: Next) {
        match next {
            Next::Fires(_) => self.fires(delegate),
            Next::Ends(_) => {
                let how = How::Ended(self.delegates[delegate].course.outcome());
                self.settle(delegate, how);
            }
            Next::Asks(_) => {
                if let Some(asks) = self.delegates[delegate].course.asks {
                    let child = self.start(*asks.child, Some(delegate));
                    let wait = self.waits.len();
                    self.delegates[delegate].asks(self.now, child, wait);
                    self.open_wait(
                        Some(delegate),
                        vec![child],
                        &Call::default(),
                        self.policy.task_wait.timeout,
                    );
                    if self.delegates[delegate].child.is_some() {
                        self.plan(delegate);
                    }
                }
            }
            Next::Looks(_) => match self.delegates[delegate].looks(self.now) {
                Some(_) => self.fires(delegate),
                None => self.plan(delegate),
            },
            Next::Never => {}
        }
    }

    fn fires(&mut self, delegate: usize) {
        let kill = self.policy.kill;
        match kill.action {
            KillAction::Kill => {
                let cause = self.delegates[delegate].cause();
                self.end(delegate, How::Fired(cause), kill.delay);
            }
            KillAction::Notify => {
                let at = self.now.plus(kill.delay);
                self.queue.push(at, Rank::Settling, Due::Tells { delegate });
                self.delegates[delegate].goes_on();
                self.plan(delegate);
            }
        }
    }
}

/// A call for `mode` and, in [`WaitMode::Any`], so many of the targets.
pub(super) fn call(mode: WaitMode, least: u32) -> Call<'static> {
    Call {
        mode,
        min_completed: Some(Decimal::whole(i64::from(least))),
        ..Call::default()
    }
}
