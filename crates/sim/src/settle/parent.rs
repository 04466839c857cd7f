//! One parent: it spawns its tasks, waits for them, and reacts to what it is told.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Index, IndexMut};

use policysim_policy::{Millis, Policy};

use super::course::Course;
use super::delegate::{Heartbeat, How, Standing};
use super::habits::{Habits, Reaction};
use super::session::{Happening, Returned, Session, call};
use super::tally::{Moments, Numbers, Tally, WAITS_TOLD};
use crate::judgement::Judgement;
use crate::synth::rng::{Purpose, Stream};

/// Notes with which a parent wakes itself.
const SPAWN: u32 = 0;
const WAIT: u32 = 1;

/// The least time after which a refused spawn is tried again.
const TRY_AGAIN: Millis = Millis::from_secs(1);

/// What a parent has to have done: a course, and another one in case the first hangs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'r> {
    pub(super) course: Course<'r>,
    pub(super) spare: Option<Course<'r>>,
}

/// What is known of one delegate beside what the session knows.
struct Known<'r> {
    task: usize,
    course: Course<'r>,
    /// A second run of a task whose first one was healthy.
    duplicate: bool,
    /// The first run of its task.
    first: bool,
    /// The parent has stopped believing that it works, or has its report.
    at: Option<Millis>,
    /// It was told to end while it hung.
    hung: bool,
    /// Its last heartbeat, and for how many expiries it has not changed.
    beat: Option<(Heartbeat, u32)>,
}

/// The delegates that the parent spawned itself, by the session's number; those that they spawn have numbers between.
#[derive(Default)]
struct Own<'r>(BTreeMap<usize, Known<'r>>);

impl<'r> Index<usize> for Own<'r> {
    type Output = Known<'r>;

    fn index(&self, delegate: usize) -> &Known<'r> {
        &self.0[&delegate]
    }
}

impl<'r> IndexMut<usize> for Own<'r> {
    fn index_mut(&mut self, delegate: usize) -> &mut Known<'r> {
        self.0.get_mut(&delegate).expect("a delegate of its own")
    }
}

impl Own<'_> {
    fn numbers(&self) -> Vec<usize> {
        self.0.keys().copied().collect()
    }
}

/// What is to be spawned.
struct Order<'r> {
    task: usize,
    course: Course<'r>,
    duplicate: bool,
    first: bool,
}

/// First runs that were healthy and were ended, or taken for ended, all the same: what rates are made of.
#[derive(Default)]
struct Wronged {
    false_kills: u64,
    misread: u64,
    stopped: u64,
    closed: u64,
}

/// Per task: how often it may still be started again.
struct Allowance {
    retries: u32,
    misreading: u32,
    /// How long the attempt before had run when it was killed.
    killed_after: Option<Millis>,
}

pub(super) struct Parent<'r, 'p> {
    policy: &'r Policy,
    habits: &'p Habits,
    session: Session<'r>,
    tasks: Vec<Task<'r>>,
    left: Vec<Allowance>,
    orders: VecDeque<Order<'r>>,
    known: Own<'r>,
    /// Delegates that it waits for.
    awaited: Vec<usize>,
    /// Starts and ends of the waits that are over.
    waits: Vec<(Millis, Millis)>,
    /// The wait that it is in: number and start.
    wait: Option<(usize, Millis)>,
    think: Stream,
    /// When its last task was closed.
    done: Option<Millis>,
    numbers: Numbers,
    wronged: Wronged,
    knowledge: Vec<Millis>,
}

impl<'r, 'p> Parent<'r, 'p> {
    pub(super) fn new(
        policy: &'r Policy,
        habits: &'p Habits,
        tasks: Vec<Task<'r>>,
        seed: u64,
        number: u64,
    ) -> Self {
        let order = |(task, of): (usize, &Task<'r>)| Order {
            task,
            course: of.course,
            duplicate: false,
            first: true,
        };
        let cap = usize::try_from(habits.cap.max(1)).unwrap_or(usize::MAX);
        Self {
            policy,
            habits,
            session: Session::new(policy, cap, habits.unwinding),
            left: tasks
                .iter()
                .map(|_| Allowance {
                    retries: policy.on_timeout.retry,
                    misreading: 1,
                    killed_after: None,
                })
                .collect(),
            orders: tasks.iter().enumerate().map(order).collect(),
            tasks,
            known: Own::default(),
            awaited: Vec::new(),
            waits: Vec::new(),
            wait: None,
            think: Stream::new(seed, number, Purpose::Think),
            done: None,
            numbers: Numbers {
                parents: 1,
                ..Numbers::default()
            },
            wronged: Wronged::default(),
            knowledge: Vec::new(),
        }
    }

    /// Lives until nothing happens any more, or to the horizon, and is counted.
    pub(super) fn live(mut self, tally: &mut Tally) {
        self.session.wake_at(Millis::ZERO, SPAWN);
        while let Some(happening) = self.session.next(self.habits.horizon) {
            match happening {
                Happening::Woken(SPAWN) => self.spawns(),
                Happening::Woken(_) => self.waits(),
                Happening::Settled { delegate, how } => self.settled(delegate, how),
                Happening::Told { delegate } => self.knows(delegate, false),
                Happening::Returned(returned) => self.returned(returned),
            }
        }
        self.close(tally);
    }

    /// Spawns the next of its orders, then goes on spawning or to its wait.
    fn spawns(&mut self) {
        if self.done.is_some() {
            return;
        }
        let Some(order) = self.orders.pop_front() else {
            return self.works_then_waits();
        };
        let Some(delegate) = self.session.spawn(order.course) else {
            self.numbers.refused += 1;
            self.orders.push_front(order);
            return self.works_then_waits();
        };
        self.numbers.runs += u64::from(order.first);
        self.numbers.healthy += u64::from(order.first && !order.course.hangs());
        self.numbers.duplicates += u64::from(order.duplicate);
        let known = Known {
            task: order.task,
            course: order.course,
            duplicate: order.duplicate,
            first: order.first,
            at: None,
            hung: false,
            beat: None,
        };
        self.known.0.insert(delegate, known);
        self.awaited.push(delegate);
        if self.orders.is_empty() {
            self.works_then_waits();
        } else if self.habits.spawn_every == Millis::ZERO {
            self.spawns();
        } else {
            let at = self.session.now().plus(self.habits.spawn_every);
            self.session.wake_at(at, SPAWN);
        }
    }

    fn works_then_waits(&mut self) {
        let longest = self.habits.think.as_u64().saturating_mul(2);
        let mut thinks = Millis::new(self.think.below(longest.saturating_add(1)));
        let note = if self.awaited.is_empty() {
            // Every slot is held by runs that it has given up: it tries to spawn again.
            thinks = thinks.max(TRY_AGAIN);
            SPAWN
        } else {
            WAIT
        };
        self.session.wake_at(self.session.now().plus(thinks), note);
    }

    fn waits(&mut self) {
        if self.done.is_some() || self.wait.is_some() {
            return;
        }
        let mode = self.habits.mode(self.policy);
        let call = call(mode, self.habits.min_completed);
        let now = self.session.now();
        let window = self.habits.window(self.policy);
        // The wait may return at once; it is open for the parent until it hears so.
        let wait = self.session.wait_for(self.awaited.clone(), &call, window);
        self.wait = Some((wait, now));
    }

    /// A delegate came to rest; the parent may not know yet.
    fn settled(&mut self, delegate: usize, how: How) {
        let now = self.session.now();
        if matches!(self.habits.reaction(self.policy), Reaction::Judge { .. }) {
            // Reports are pushed to a parent that judges, whether or not it waits.
            self.knows(delegate, false);
        }
        let Some(onset) = self.hung_since(delegate) else {
            if let How::Fired(_) = how {
                self.killed(delegate);
            }
            return;
        };
        if let Some((_, start)) = self.wait
            && start <= onset
            && matches!(how, How::Fired(_))
            && !self.had_given_up(delegate)
        {
            self.numbers.settled_in_wait += 1;
        }
        self.numbers.slot_hung_ms += u128::from(now.since(onset).as_u64());
    }

    /// A delegate that does not hang was killed by its watchdog.
    fn killed(&mut self, delegate: usize) {
        let Known { course, first, .. } = self.known[delegate];
        if course.hangs() {
            self.numbers.hung_killed_early += 1;
            return;
        }
        match self.session.judgement(delegate) {
            Some(Judgement::FalseKill) => {
                self.numbers.false_kills += 1;
                self.wronged.false_kills += u64::from(first);
            }
            Some(Judgement::TrueKill) => self.numbers.true_kills += 1,
            _ => self.numbers.unresolved_kills += 1,
        }
    }

    /// Whether it had taken a delegate for failed before that hung: it does not wait to learn of the hang.
    fn had_given_up(&self, delegate: usize) -> bool {
        self.known[delegate].at.is_some() && !self.known[delegate].hung
    }

    /// Since when a delegate hangs or hung, unless it was told to end before.
    fn hung_since(&self, delegate: usize) -> Option<Millis> {
        let onset = self.session.onset(delegate)?;
        let until = match self.session.standing(delegate) {
            Standing::Running => self.session.now(),
            Standing::Unwinding(_) | Standing::Settled(_) => self.told_to_end(delegate),
        };
        (onset <= until).then_some(onset)
    }

    /// When it was told to end, or did.
    fn told_to_end(&self, delegate: usize) -> Millis {
        self.session.ended_at(delegate)
    }

    /// The parent stops believing that a delegate works: it has a report, or gives it up.
    fn knows(&mut self, delegate: usize, gives_up: bool) {
        if self.known[delegate].at.is_some() {
            return;
        }
        let now = self.session.now();
        self.known[delegate].at = Some(now);
        let Some(onset) = self.hung_since(delegate) else {
            return;
        };
        self.known[delegate].hung = true;
        self.numbers.given_up += u64::from(gives_up);
        self.knowledge.push(now.since(onset));
        let over = self.waits.iter().filter(|(_, end)| *end > onset).count();
        let in_one = usize::from(self.wait.is_some());
        let waits = (over + in_one).clamp(1, WAITS_TOLD);
        self.numbers.known_after[waits - 1] += 1;
    }

    fn returned(&mut self, returned: Returned) {
        let Some((_, start)) = self.wait.filter(|(wait, _)| *wait == returned.wait) else {
            return;
        };
        let now = self.session.now();
        self.numbers.waits += 1;
        self.numbers.expiries += u64::from(returned.expired);
        self.numbers.blocked_ms += u128::from(now.since(start).as_u64());
        for delegate in std::mem::take(&mut self.awaited) {
            if self.session.is_settled(delegate) {
                self.knows(delegate, false);
                self.hears(delegate);
            } else if returned.expired {
                self.reacts(delegate);
            } else {
                self.awaited.push(delegate);
            }
        }
        self.waits.push((start, now));
        self.wait = None;
        if returned.expired && self.habits.reaction(self.policy) == Reaction::CloseTurn {
            self.closes_turn();
        } else if !self.orders.is_empty() {
            self.works_then_spawns();
        } else if self.awaited.is_empty() {
            self.done = Some(now);
        } else {
            self.works_then_waits();
        }
    }

    fn works_then_spawns(&mut self) {
        self.session.wake_at(self.session.now(), SPAWN);
    }

    /// It has the report of a delegate that is at rest.
    fn hears(&mut self, delegate: usize) {
        let how = self.session.how(delegate);
        if how.is_some_and(How::is_success) {
            self.numbers.delivered += u64::from(!self.known[delegate].duplicate);
        }
        let task = self.known[delegate].task;
        if !matches!(how, Some(How::Fired(_))) {
            return;
        }
        let ran = self
            .told_to_end(delegate)
            .since(self.session.born(delegate));
        let before = self.left[task].killed_after.replace(ran);
        self.numbers.retries_alike += u64::from(before == Some(ran));
        if self.left[task].retries == 0 {
            return;
        }
        self.left[task].retries -= 1;
        self.numbers.retries += 1;
        let hung = self.hung_since(delegate).is_some();
        let course = match self.tasks[task].spare {
            // The work that was too silent for its window is too silent again; a hang is not.
            Some(spare) if hung => spare,
            _ if self.policy.on_timeout.resume => {
                self.session.rest(delegate, self.told_to_end(delegate))
            }
            _ => self.known[delegate].course,
        };
        self.orders.push_back(Order {
            task,
            course,
            duplicate: false,
            first: false,
        });
    }

    /// What it does about a delegate that an expired wait leaves unsettled.
    fn reacts(&mut self, delegate: usize) {
        let now = self.session.now();
        let running = self.session.standing(delegate) == Standing::Running;
        let healthy = u64::from(running && self.session.is_healthy(delegate, now));
        let first = healthy * u64::from(self.known[delegate].first);
        match self.habits.reaction(self.policy) {
            Reaction::WaitAgain => self.awaited.push(delegate),
            Reaction::ReadAsFailure => {
                self.numbers.misread += healthy;
                self.wronged.misread += first;
                self.knows(delegate, true);
                self.starts_again(delegate, healthy > 0);
            }
            Reaction::CloseTurn => {
                self.numbers.closed += healthy;
                self.wronged.closed += first;
                self.knows(delegate, true);
            }
            Reaction::Stop => self.stops(delegate, healthy),
            Reaction::Judge { unchanged } => {
                let beat = self.session.heartbeat(delegate);
                let known = &mut self.known[delegate];
                let same = match known.beat {
                    Some((earlier, same)) if beat.same_progress(&earlier) => same + 1,
                    _ => 0,
                };
                known.beat = Some((beat, same));
                if same >= unchanged.max(1) {
                    self.stops(delegate, healthy);
                } else {
                    self.awaited.push(delegate);
                }
            }
        }
    }

    fn stops(&mut self, delegate: usize, healthy: u64) {
        self.numbers.stopped += healthy;
        self.wronged.stopped += healthy * u64::from(self.known[delegate].first);
        self.knows(delegate, true);
        self.session.stop(delegate, How::Stopped);
    }

    /// Starts the task of a delegate that it takes for failed once more.
    fn starts_again(&mut self, delegate: usize, healthy: bool) {
        let Known { task, course, .. } = self.known[delegate];
        if self.left[task].misreading == 0 {
            return;
        }
        self.left[task].misreading -= 1;
        let again = if healthy {
            course
        } else {
            self.tasks[task].spare.unwrap_or(course)
        };
        self.orders.push_back(Order {
            task,
            course: again,
            duplicate: healthy,
            first: false,
        });
    }

    /// Its turn is over: everything that runs is killed, what was not spawned never is.
    fn closes_turn(&mut self) {
        self.orders.clear();
        self.awaited.clear();
        self.done = Some(self.session.now());
        for delegate in self.known.numbers() {
            self.session.stop(delegate, How::Closed);
        }
    }

    /// Counts what is only known at the end.
    fn close(mut self, tally: &mut Tally) {
        let end = self.done.unwrap_or(self.habits.horizon);
        if let Some((_, start)) = self.wait {
            self.numbers.blocked_ms += u128::from(self.habits.horizon.since(start).as_u64());
            self.waits.push((start, Millis::MAX));
        }
        // Tasks that it never came to start.
        for order in self.orders.iter().filter(|order| order.first) {
            self.numbers.runs += 1;
            self.numbers.healthy += u64::from(!order.course.hangs());
        }
        for delegate in self.known.numbers() {
            let born = self.session.born(delegate);
            let settled = match self.session.standing(delegate) {
                Standing::Settled(at) => Some(at),
                _ => None,
            };
            let held = settled.unwrap_or(self.habits.horizon).since(born).as_u64();
            self.numbers.slot_ms += u128::from(held);
            if self.known[delegate].duplicate {
                self.numbers.duplicate_ms += u128::from(held);
            }
            let Some(onset) = self.hung_since(delegate) else {
                continue;
            };
            if settled.is_none() {
                let hung = self.habits.horizon.since(onset).as_u64();
                self.numbers.slot_hung_ms += u128::from(hung);
            }
            if self.had_given_up(delegate) {
                self.numbers.hangs_given_up_before += 1;
                continue;
            }
            self.numbers.hangs += 1;
            let inside = |(start, end): &(Millis, Millis)| *start <= onset && onset < *end;
            self.numbers.hangs_in_wait += u64::from(self.waits.iter().any(inside));
            let known = self.known[delegate].at;
            let unaware = known.unwrap_or(self.habits.horizon).since(onset).as_u64();
            self.numbers.unaware_ms += u128::from(unaware);
            self.numbers.never_known += u64::from(known.is_none());
            self.numbers.hangs_unsettled += u64::from(settled.is_none());
        }
        self.numbers.parent_ms = u128::from(end.as_u64());
        let small = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        let numbers = self.numbers;
        let parent_ms = end.as_u64();
        let mine = Tally {
            numbers,
            unaware: Moments::of(small(numbers.unaware_ms), numbers.hangs),
            expiries: Moments::of(numbers.expiries, numbers.runs),
            waits: Moments::of(numbers.waits, numbers.runs),
            blocked: Moments::of(small(numbers.blocked_ms), parent_ms),
            held: Moments::of(small(numbers.slot_hung_ms), small(numbers.slot_ms)),
            false_kills: Moments::of(self.wronged.false_kills, numbers.healthy),
            misread: Moments::of(self.wronged.misread, numbers.healthy),
            stopped: Moments::of(self.wronged.stopped, numbers.healthy),
            closed: Moments::of(self.wronged.closed, numbers.healthy),
            duplicates: Moments::of(numbers.duplicates, numbers.runs),
            ..Tally::default()
        };
        tally.add(&mine);
        for span in self.knowledge {
            tally.knowledge.add(span);
        }
    }
}
