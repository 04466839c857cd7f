//! Where a run's time went: every millisecond of its span in exactly one account.

use std::collections::BTreeMap;

use policysim_policy::{CallId, Kind};

use crate::run::{Fleet, Run, RunEvent, WaitKind};
use crate::scan::RunView;
use crate::strata::StratumKey;
use crate::sweep::sized_runs;

/// What a stretch of a run was spent on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Account {
    /// The model had control.
    Model,
    /// At least one tool call (or a wait for a child) was open.
    Tool,
    /// A human was asked.
    Human,
    /// A provider backoff was open.
    Retry,
    /// The context was being compacted.
    Compaction,
    /// The host was asleep.
    Suspend,
    /// The run had ended and was not resumed yet, or the record does not say.
    Unknown,
}

impl Account {
    /// Every account, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::Model,
        Self::Tool,
        Self::Human,
        Self::Retry,
        Self::Compaction,
        Self::Suspend,
        Self::Unknown,
    ];

    /// The account's name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Human => "human",
            Self::Retry => "retry",
            Self::Compaction => "compaction",
            Self::Suspend => "suspend",
            Self::Unknown => "unknown",
        }
    }
}

/// Milliseconds per account; they sum to the run's span.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ledger {
    /// The model had control.
    pub model_ms: u64,
    /// At least one tool call (or a wait for a child) was open.
    pub tool_ms: u64,
    /// A human was asked.
    pub human_ms: u64,
    /// A provider backoff was open.
    pub retry_ms: u64,
    /// The context was being compacted.
    pub compaction_ms: u64,
    /// The host was asleep.
    pub suspend_ms: u64,
    /// The run had ended and was not resumed yet, or the record does not say.
    pub unknown_ms: u64,
}

impl Ledger {
    /// The span: all accounts together.
    pub const fn span_ms(&self) -> u64 {
        self.model_ms
            + self.tool_ms
            + self.human_ms
            + self.retry_ms
            + self.compaction_ms
            + self.suspend_ms
            + self.unknown_ms
    }

    /// What stands in one account.
    pub const fn of(&self, account: Account) -> u64 {
        match account {
            Account::Model => self.model_ms,
            Account::Tool => self.tool_ms,
            Account::Human => self.human_ms,
            Account::Retry => self.retry_ms,
            Account::Compaction => self.compaction_ms,
            Account::Suspend => self.suspend_ms,
            Account::Unknown => self.unknown_ms,
        }
    }

    const fn slot(&mut self, account: Account) -> &mut u64 {
        match account {
            Account::Model => &mut self.model_ms,
            Account::Tool => &mut self.tool_ms,
            Account::Human => &mut self.human_ms,
            Account::Retry => &mut self.retry_ms,
            Account::Compaction => &mut self.compaction_ms,
            Account::Suspend => &mut self.suspend_ms,
            Account::Unknown => &mut self.unknown_ms,
        }
    }

    /// Active time: the span without what waited for humans, slept, or lay between segments.
    pub const fn active_ms(&self) -> u64 {
        self.model_ms + self.tool_ms + self.retry_ms + self.compaction_ms
    }
}

/// What is open at an instant, as counts by account.
#[derive(Clone, Debug, Default)]
struct Open {
    tools: u32,
    humans: u32,
    retries: u32,
    compactions: u32,
    suspended: bool,
    ended: bool,
    /// Calls that are a question to a human, as the wait that ends them says.
    questions: Vec<CallId>,
}

impl Open {
    /// Nothing is open; calls with these ids are questions to a human.
    const fn new(questions: Vec<CallId>) -> Self {
        Self {
            tools: 0,
            humans: 0,
            retries: 0,
            compactions: 0,
            suspended: false,
            ended: false,
            questions,
        }
    }

    /// `concludes` is about a run's end: whether it has an outcome.
    fn apply(&mut self, kind: Kind, id: CallId, concludes: bool) {
        let question = || self.questions.contains(&id);
        match kind {
            Kind::ToolStart if question() => self.humans += 1,
            Kind::ToolEnd if question() => self.humans = self.humans.saturating_sub(1),
            Kind::ToolStart | Kind::WaitStart => self.tools += 1,
            Kind::ToolEnd | Kind::WaitEnd => self.tools = self.tools.saturating_sub(1),
            Kind::HumanWaitStart | Kind::ApprovalStart => self.humans += 1,
            Kind::HumanWaitEnd | Kind::ApprovalEnd => self.humans = self.humans.saturating_sub(1),
            Kind::RetryStart => self.retries = 1,
            Kind::RetryEnd => self.retries = 0,
            Kind::CompactionStart => self.compactions = 1,
            Kind::CompactionEnd => self.compactions = 0,
            Kind::HostSuspend => self.suspended = true,
            Kind::HostResume => self.suspended = false,
            Kind::RunEnd | Kind::RunStart | Kind::Resume => {
                *self = Self {
                    ended: kind == Kind::RunEnd && concludes,
                    ..Self::new(std::mem::take(&mut self.questions))
                };
            }
            _ => {}
        }
    }

    /// Whether time in this state is active.
    fn is_active(&self) -> bool {
        let mut one = Ledger::default();
        *one.slot(self.account()) = 1;
        one.active_ms() > 0
    }

    /// The account of this state. A wait inside another belongs to the rarer, outer cause: a
    /// sleeping host before a human, a human before the tool that asks him.
    const fn account(&self) -> Account {
        if self.suspended {
            Account::Suspend
        } else if self.ended {
            Account::Unknown
        } else if self.humans > 0 {
            Account::Human
        } else if self.tools > 0 {
            Account::Tool
        } else if self.compactions > 0 {
            Account::Compaction
        } else if self.retries > 0 {
            Account::Retry
        } else {
            Account::Model
        }
    }
}

/// The ledger of `run` from its start to `until_ms` (its whole record with `run.end_ms`).
///
/// ```
/// use policysim_policy::Kind;
/// use policysim_sim::{ledger::ledger, run::{Run, RunEvent}};
/// let events = [(0, Kind::RunStart), (5, Kind::ToolStart), (25, Kind::ToolEnd), (30, Kind::RunEnd)];
/// let run = Run {
///     events: events.into_iter().map(|(t, kind)| RunEvent::new(t, kind)).collect(),
///     end_ms: 30,
///     ..Run::default()
/// };
/// let spent = ledger(&run, run.end_ms);
/// assert_eq!((spent.model_ms, spent.tool_ms, spent.span_ms()), (10, 20, 30));
/// ```
pub fn ledger(run: &Run, until_ms: u64) -> Ledger {
    let mut spent = Ledger::default();
    spans(run, until_ms, |account, from_ms, to_ms| {
        *spent.slot(account) += to_ms - from_ms;
    });
    spent
}

/// Tells `each` stretch of `run` up to `until_ms`, in time order and without a hole: account, from, to, ms since its start.
///
/// Neighbouring stretches may be of one account; some are empty.
pub fn spans(run: &Run, until_ms: u64, mut each: impl FnMut(Account, u64, u64)) {
    let questions = run.events.iter().filter(|event| asks(event));
    let questions = questions.map(|event| event.id);
    let mut open = Open::new(questions.collect());
    let mut compactions = compactions_told_by_their_end(run).peekable();
    let mut now_ms = 0;
    for event in &run.events {
        let by_ms = event.t_ms.min(until_ms);
        while let Some(begun_ms) = compactions.next_if(|&begun_ms| begun_ms < by_ms) {
            // After the events of its instant; one that began before the last event is the state of what follows.
            let begun_ms = begun_ms.max(now_ms);
            each(open.account(), now_ms, begun_ms);
            now_ms = begun_ms;
            open.apply(Kind::CompactionStart, event.id, false);
        }
        if event.t_ms >= until_ms {
            break;
        }
        each(open.account(), now_ms, event.t_ms);
        now_ms = event.t_ms;
        open.apply(event.kind, event.id, event.outcome.is_some());
    }
    each(open.account(), now_ms, until_ms.max(now_ms));
}

/// When the compactions began whose record holds their end alone, ms since the run's start, in order of their ends:
/// a session log tells only that one finished, and how long it was waited for.
fn compactions_told_by_their_end(run: &Run) -> impl Iterator<Item = u64> + '_ {
    let started = run
        .events
        .iter()
        .any(|event| event.kind == Kind::CompactionStart);
    let ends = run
        .events
        .iter()
        .filter(move |event| !started && event.kind == Kind::CompactionEnd);
    ends.filter_map(|event| {
        let wait = event
            .wait
            .filter(|wait| wait.kind == WaitKind::Compact && wait.ms > 0)?;
        Some(event.t_ms.saturating_sub(wait.ms))
    })
}

/// The ledgers of many runs, added up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Milliseconds per account, in the order of [`Account::ALL`].
    pub ms: [u128; Account::ALL.len()],
}

impl Totals {
    /// All accounts together, ms.
    pub fn span_ms(&self) -> u128 {
        self.ms.iter().sum()
    }
}

/// The ledgers of the sized runs of `fleet` over their whole records, by group of `key`; one group without a key.
///
/// Hung runs are among them: what they waited for is where their time went.
pub fn totals(fleet: &Fleet, key: Option<StratumKey>) -> BTreeMap<String, Totals> {
    let mut found: BTreeMap<String, Totals> = BTreeMap::new();
    for run in sized_runs(fleet) {
        let group = key.map_or("", |key| key.group(run));
        let totals = found.entry(group.to_owned()).or_default();
        totals.runs += 1;
        let spent = ledger(run, run.end_ms);
        for (sum, account) in totals.ms.iter_mut().zip(Account::ALL) {
            *sum += u128::from(spent.of(account));
        }
    }
    found
}

fn asks(event: &RunEvent) -> bool {
    event.kind == Kind::ToolEnd && event.wait.is_some_and(|wait| wait.kind == WaitKind::Human)
}

/// The active time of one run up to any instant.
#[derive(Clone, Debug, Default)]
pub struct ActiveTime {
    /// From when, ms; active time until then, ms; whether time from then on is active.
    spans: Vec<(u64, u64, bool)>,
}

/// Kinds that change what is open, as bits.
const CHANGES: u64 = {
    let kinds = [
        Kind::ToolStart,
        Kind::ToolEnd,
        Kind::WaitStart,
        Kind::WaitEnd,
        Kind::HumanWaitStart,
        Kind::HumanWaitEnd,
        Kind::ApprovalStart,
        Kind::ApprovalEnd,
        Kind::RetryStart,
        Kind::RetryEnd,
        Kind::CompactionStart,
        Kind::CompactionEnd,
        Kind::HostSuspend,
        Kind::HostResume,
        Kind::RunEnd,
        Kind::RunStart,
        Kind::Resume,
    ];
    let (mut bits, mut i) = (0, 0);
    while i < kinds.len() {
        bits |= 1 << kinds[i] as u64;
        i += 1;
    }
    bits
};

impl ActiveTime {
    /// Reads `run` anew, in the memory of the run read before: what [`ledger`] says of it at every instant.
    pub fn read(&mut self, run: &RunView<'_>) {
        self.spans.clear();
        let columns = run.events;
        let questions = columns
            .wait
            .within(run.first..run.end)
            .filter(|(row, wait)| {
                wait.kind == WaitKind::Human && columns.kinds()[*row] == Kind::ToolEnd
            })
            .map(|(row, _)| columns.id.of(row));
        let questions: Vec<CallId> = questions.collect();
        let asks = !questions.is_empty();
        let mut open = Open::new(questions);
        let mut active = open.is_active();
        let (mut from_ms, mut before_ms) = (0, 0);
        self.spans.push((0, 0, active));
        for &row in columns.rare(run.first..run.end) {
            let row = row as usize;
            let kind = columns.kinds()[row];
            if CHANGES & (1 << kind as u64) == 0 {
                continue;
            }
            let concludes = kind == Kind::RunEnd && columns.outcome.get(row).is_some();
            let id = if asks {
                columns.id.of(row)
            } else {
                CallId::NONE
            };
            open.apply(kind, id, concludes);
            if open.is_active() != active {
                let t_ms = columns.t_ms[row];
                if active {
                    before_ms += t_ms - from_ms;
                }
                (from_ms, active) = (t_ms, !active);
                self.spans.push((from_ms, before_ms, active));
            }
        }
    }

    /// From when, and whether, time is active: all that decides.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.spans
            .iter()
            .map(|&(from_ms, _, active)| (from_ms, active))
    }

    /// The active time with those changes, in rising order.
    pub(crate) fn restore(&mut self, changes: &[(u64, bool)]) {
        self.spans.clear();
        let (mut last_ms, mut before_ms, mut was_active) = (0, 0, false);
        for &(from_ms, active) in changes {
            if was_active {
                before_ms += from_ms - last_ms;
            }
            self.spans.push((from_ms, before_ms, active));
            (last_ms, was_active) = (from_ms, active);
        }
    }

    /// The active time up to `until_ms`.
    pub fn until(&self, until_ms: u64) -> u64 {
        let place = self.spans.partition_point(|span| span.0 < until_ms);
        let (from_ms, before_ms, active) = self.spans[place.saturating_sub(1)];
        before_ms
            + if active {
                until_ms.saturating_sub(from_ms)
            } else {
                0
            }
    }

    /// The stretches that meet `from_ms..=to_ms`: the last instant of each, ms, active time at its start and its start
    /// where time in it is active, or the active time alone.
    pub fn stretches(&self, from_ms: u64, to_ms: u64) -> impl Iterator<Item = Stretch> + '_ {
        let first = self
            .spans
            .partition_point(|span| span.0 < from_ms)
            .saturating_sub(1);
        let ends = self.spans[first + 1..]
            .iter()
            .map(|span| span.0)
            .chain([u64::MAX]);
        self.spans[first..]
            .iter()
            .zip(ends)
            .take_while(move |(span, _)| span.0 <= to_ms)
            .map(|(&(from_ms, before_ms, active), last_ms)| Stretch {
                from_ms,
                last_ms,
                before_ms,
                active,
            })
    }
}

/// A stretch of a run in which all time is active, or none is.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Its start, ms.
    pub from_ms: u64,
    /// Its last instant, ms.
    pub last_ms: u64,
    /// Active time until its start, ms.
    pub before_ms: u64,
    /// Whether its time is active.
    pub active: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use policysim_policy::Kind;

    use super::{Account, Ledger, ledger, spans};
    use crate::run::{Run, RunEvent, Wait, WaitKind};

    fn run(events: &[(u64, Kind, Option<Wait>)]) -> Run {
        let events = events.iter().map(|&(t_ms, kind, wait)| RunEvent {
            wait,
            ..RunEvent::new(t_ms, kind)
        });
        let events: Vec<RunEvent> = events.collect();
        Run {
            end_ms: events.last().unwrap().t_ms,
            events,
            ..Run::default()
        }
    }

    /// Hand-off at 10, a status at 40, compacted at 100 after a wait of 90; a second one whose wait is told longer
    /// than the run was old, and that a tool covers until 130.
    fn compacted() -> Run {
        let compact = |ms| {
            Some(Wait {
                kind: WaitKind::Compact,
                ms,
            })
        };
        run(&[
            (0, Kind::RunStart, None),
            (10, Kind::TurnEnd, None),
            (40, Kind::Status, None),
            (100, Kind::CompactionEnd, compact(90)),
            (120, Kind::ToolStart, None),
            (130, Kind::ToolEnd, None),
            (150, Kind::CompactionEnd, compact(25)),
            (170, Kind::RunEnd, None),
        ])
    }

    #[test]
    fn a_compaction_told_by_its_end_has_its_account() {
        let spent = Ledger {
            model_ms: 10 + 20 + 20,
            tool_ms: 10,
            compaction_ms: 90 + 20,
            ..Ledger::default()
        };
        assert_eq!(ledger(&compacted(), 170), spent);
        // A wait that began before the run counts from its start.
        let early = run(&[
            (0, Kind::RunStart, None),
            (
                7,
                Kind::CompactionEnd,
                Some(Wait {
                    kind: WaitKind::Compact,
                    ms: 50,
                }),
            ),
            (9, Kind::RunEnd, None),
        ]);
        assert_eq!(ledger(&early, 9).compaction_ms, 7);
    }

    #[test]
    fn any_prefix_is_whole() {
        let run = compacted();
        for until_ms in 0..=170 {
            let mut end_ms = 0;
            spans(&run, until_ms, |_, from_ms, to_ms| {
                assert!(from_ms == end_ms && to_ms >= from_ms);
                end_ms = to_ms;
            });
            assert_eq!(end_ms, until_ms);
            let compacting = ledger(&run, until_ms).of(Account::Compaction);
            let first = until_ms.clamp(10, 100) - 10;
            let second = until_ms.clamp(130, 150) - 130;
            assert_eq!(compacting, first + second, "{until_ms}");
        }
    }
}
