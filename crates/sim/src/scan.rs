//! Runs in batches of columns: what a sweep reads, whether they lie in memory or are decoded from a file as it goes.

use std::convert::Infallible;
use std::ops::Range;

use policysim_policy::{CallId, Event, Kind, Millis, Outcome};

use crate::run::{EventFlags, Fleet, Run, RunEvent, Symbol, Symbols, Wait};

/// Runs that can be read batch by batch, any number of times, from several threads at once.
///
/// Every run lies whole in one batch. The order of batches, and of runs within one, is the dataset's.
pub trait Scan: Sync {
    /// Why a batch cannot be read.
    type Error: Send;

    /// The names that events refer to.
    fn symbols(&self) -> &Symbols;

    /// How many batches there are.
    fn batches(&self) -> usize;

    /// Batch `index`, counted from 0. Where it has to be decoded it is decoded into `scratch`, whose former contents
    /// are cleared and whose memory is used again; where it lies in memory, `scratch` is left alone.
    ///
    /// # Errors
    /// What the source says when it cannot be read.
    fn read<'a>(&'a self, index: usize, scratch: &'a mut Batch) -> Result<&'a Batch, Self::Error>;
}

/// Values that most rows of a column do not have, by rising row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sparse<T> {
    rows: Vec<u32>,
    values: Vec<T>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy> Sparse<T> {
    /// Gives `row` a value. Rows are given in rising order; a batch has fewer than 2^32.
    pub fn push(&mut self, row: usize, value: T) {
        debug_assert!(self.rows.last().is_none_or(|&last| (last as usize) < row));
        self.rows.push(row as u32);
        self.values.push(value);
    }

    /// The value of `row`, if it has one.
    pub fn get(&self, row: usize) -> Option<T> {
        let place = self.rows.binary_search(&(row as u32)).ok()?;
        Some(self.values[place])
    }

    /// Looks values up row after row, none before `first`.
    pub(crate) fn rising(&self, first: usize) -> Rising<'_, T> {
        let before = self.rows.partition_point(|&row| (row as usize) < first);
        Rising {
            rows: &self.rows[before..],
            values: &self.values[before..],
        }
    }

    /// The rows in `range` that have a value, with it.
    pub fn within(&self, range: Range<usize>) -> impl Iterator<Item = (usize, T)> + '_ {
        let first = self
            .rows
            .partition_point(|&row| (row as usize) < range.start);
        self.rows[first..]
            .iter()
            .zip(&self.values[first..])
            .map(|(&row, &value)| (row as usize, value))
            .take_while(move |&(row, _)| row < range.end)
    }

    /// Forgets every value and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
    }
}

impl<T: Copy + Default + PartialEq> Sparse<T> {
    /// Gives `row` a value unless it is that of rows without one.
    fn push_other(&mut self, row: usize, value: T) {
        if value != T::default() {
            self.push(row, value);
        }
    }

    /// The value of `row`; without one, that of most rows.
    pub fn of(&self, row: usize) -> T {
        self.get(row).unwrap_or_default()
    }
}

/// Values of a column looked up by rising row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rising<'a, T> {
    rows: &'a [u32],
    values: &'a [T],
}

impl<T: Copy + Default> Rising<'_, T> {
    /// The value of `row`; without one, that of most rows. Rows never fall.
    #[inline]
    pub(crate) fn of(&mut self, row: usize) -> T {
        while let [next, rest @ ..] = self.rows
            && (*next as usize) < row
        {
            (self.rows, self.values) = (rest, &self.values[1..]);
        }
        match (self.rows, self.values) {
            ([next, ..], [value, ..]) if *next as usize == row => *value,
            _ => T::default(),
        }
    }
}

impl<T> Rising<'_, T> {
    /// The next row from `row` on whose value is wanted; rows never fall.
    pub(crate) fn find(&mut self, row: usize, wanted: impl Fn(&T) -> bool) -> Option<usize> {
        while let ([next, rows @ ..], [value, values @ ..]) = (self.rows, self.values) {
            if *next as usize >= row && wanted(value) {
                return Some(*next as usize);
            }
            (self.rows, self.values) = (rows, values);
        }
        None
    }
}

/// So many events are passed over at once where all are pieces of a stream.
const BLOCK: usize = 16;

/// Events as columns, one row per event: the fields of [`RunEvent`], in its meaning.
///
/// Most of a run are pieces of a stream, which have neither id nor name nor marks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct EventColumns {
    /// Milliseconds since the run's start; never decreases within a run.
    pub t_ms: Vec<u64>,
    kinds: Vec<Kind>,
    /// Rows that are no piece of a stream.
    rare: Vec<u32>,
    /// Which open thing it is about, where that is something.
    pub id: Sparse<CallId>,
    /// Tool name, or the name of an `other`, where it has one.
    pub name: Sparse<Symbol>,
    /// Quality marks, where there are some.
    pub flags: Sparse<EventFlags>,
    /// A length in ms that the record states.
    pub announced_ms: Sparse<u64>,
    /// Of a `run_end`: how the run ended.
    pub outcome: Sparse<Outcome>,
    /// The wait that the event ended.
    pub wait: Sparse<Wait>,
}

impl EventColumns {
    /// How many events there are.
    pub fn len(&self) -> usize {
        self.t_ms.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.t_ms.is_empty()
    }

    /// What was observed.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Makes room for so many events, and no more than that.
    pub fn reserve(&mut self, n_events: usize) {
        self.t_ms.reserve_exact(n_events);
        self.kinds.reserve_exact(n_events);
    }

    /// What was observed `times` times in a row, of events that are filled in column by column.
    pub fn push_kinds(&mut self, kind: Kind, times: usize) {
        let first = self.kinds.len();
        self.kinds.resize(first + times, kind);
        if !is_piece(kind) {
            self.rare
                .extend((first..first + times).map(|row| row as u32));
        }
    }

    /// What was observed one after the other, of events that are filled in column by column.
    pub fn extend_kinds(&mut self, kinds: impl IntoIterator<Item = Kind>) {
        let mut first = self.kinds.len();
        self.kinds.extend(kinds);
        for kinds in self.kinds[first..].chunks(BLOCK) {
            // without a way out, so that a block is looked at in one step
            if !kinds.iter().fold(true, |all, &kind| all & is_piece(kind)) {
                let rows = (first..).zip(kinds).filter(|(_, kind)| !is_piece(**kind));
                self.rare.extend(rows.map(|(row, _)| row as u32));
            }
            first += kinds.len();
        }
    }

    /// The rows in `range` that are more than pieces of a stream: of most runs a small part.
    pub(crate) fn rare(&self, range: Range<usize>) -> &[u32] {
        let before = |end: usize| self.rare.partition_point(|&row| (row as usize) < end);
        &self.rare[before(range.start)..before(range.end)]
    }

    /// Adds an event.
    pub fn push(&mut self, event: &RunEvent) {
        let row = self.len();
        self.t_ms.push(event.t_ms);
        self.push_kinds(event.kind, 1);
        self.id.push_other(row, event.id);
        self.name.push_other(row, event.name);
        self.flags.push_other(row, event.flags);
        if let Some(announced_ms) = event.announced_ms {
            self.announced_ms.push(row, announced_ms);
        }
        if let Some(outcome) = event.outcome {
            self.outcome.push(row, outcome);
        }
        if let Some(wait) = event.wait {
            self.wait.push(row, wait);
        }
    }

    /// The event of that row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn event(&self, row: usize) -> RunEvent {
        RunEvent {
            t_ms: self.t_ms[row],
            kind: self.kinds[row],
            id: self.id.of(row),
            name: self.name.of(row),
            announced_ms: self.announced_ms.get(row),
            outcome: self.outcome.get(row),
            wait: self.wait.get(row),
            flags: self.flags.of(row),
        }
    }

    /// Forgets every event and keeps the memory.
    pub fn clear(&mut self) {
        self.t_ms.clear();
        self.kinds.clear();
        self.rare.clear();
        self.id.clear();
        self.name.clear();
        self.flags.clear();
        self.announced_ms.clear();
        self.outcome.clear();
        self.wait.clear();
    }
}

/// Whole runs with their events as columns.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    runs: Vec<Run>,
    /// The end of each run's rows.
    ends: Vec<usize>,
    /// All flags of each run's events.
    flags: Vec<EventFlags>,
    events: EventColumns,
}

/// Whether it is a piece of a stream: of these most runs consist, and to the core they have neither id nor name.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without a branch, so that many are looked at in one step"
)]
pub(crate) const fn is_piece(kind: Kind) -> bool {
    (kind as u8 == Kind::MessageUpdate as u8)
        | (kind as u8 == Kind::ThinkingUpdate as u8)
        | (kind as u8 == Kind::ToolArgsUpdate as u8)
        | (kind as u8 == Kind::Keepalive as u8)
        | (kind as u8 == Kind::Stdout as u8)
}

/// One run of a batch: what is said of it as a whole (its own list of events is empty), and its rows.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// The run without its events.
    pub head: &'a Run,
    /// The events of the whole batch.
    pub events: &'a EventColumns,
    /// The first of its rows.
    pub first: usize,
    /// The row after its last.
    pub end: usize,
    /// Whether one of its events asks the idle clock to stop.
    pub suspends: bool,
    /// Whether one of its events is flagged as a suspected host suspend.
    suspected: bool,
}

impl<'a> RunView<'a> {
    /// How many events it has.
    pub const fn len(&self) -> usize {
        self.end - self.first
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Its times.
    pub fn t_ms(&self) -> &[u64] {
        &self.events.t_ms[self.first..self.end]
    }

    /// Its kinds.
    pub fn kinds(&self) -> &[Kind] {
        &self.events.kinds[self.first..self.end]
    }

    /// How many of its events are flagged as a suspected host suspend.
    pub(crate) fn suspected_suspends(&self) -> u64 {
        if !self.suspected {
            return 0;
        }
        let flags = self.events.flags.within(self.first..self.end);
        let suspected = flags.filter(|(_, flags)| flags.has(EventFlags::SUSPECTED_SUSPEND));
        suspected.count() as u64
    }

    /// Its event `index`, counted from 0.
    ///
    /// # Panics
    /// When it has no such event.
    pub fn event(&self, index: usize) -> RunEvent {
        self.events.event(self.first + index)
    }

    /// Its events as the core takes them, one after the other.
    pub(crate) fn feed<'s>(&self, symbols: &'s Symbols) -> Feed<'a, 's> {
        let events = self.events;
        Feed {
            events,
            first: self.first,
            ids: events.id.rising(self.first),
            names: events.name.rising(self.first),
            flags: events.flags.rising(self.first),
            symbols,
        }
    }

    /// The run with its own list of events.
    pub fn to_run(&self) -> Run {
        Run {
            events: (0..self.len()).map(|index| self.event(index)).collect(),
            ..self.head.clone()
        }
    }
}

/// The events of one run as the core takes them.
pub(crate) struct Feed<'a, 's> {
    events: &'a EventColumns,
    first: usize,
    ids: Rising<'a, CallId>,
    names: Rising<'a, Symbol>,
    flags: Rising<'a, EventFlags>,
    symbols: &'s Symbols,
}

impl<'s> Feed<'_, 's> {
    /// Event `index` of the run; indices never fall.
    pub(crate) fn event(&mut self, index: usize) -> Event<'s> {
        let (row, columns) = (self.first + index, self.events);
        let (id, name, flags) = (self.ids.of(row), self.names.of(row), self.flags.of(row));
        let kind = columns.kinds[row];
        // the rare columns are looked up only for the kinds to which they mean something
        let announced = match kind {
            Kind::RetryStart | Kind::HumanWaitStart => columns.announced_ms.get(row),
            _ => None,
        };
        Event {
            id,
            name: self.symbols.name(name),
            announced: announced
                .filter(|_| !flags.has(EventFlags::NATIVE_DURATION))
                .map(Millis::new),
            outcome: match kind {
                Kind::RunEnd => columns.outcome.get(row),
                _ => None,
            },
            executed: !flags.has(EventFlags::NOT_EXECUTED),
            may_ask: flags.has(EventFlags::MAY_ASK),
            suspends: flags.has(EventFlags::SUSPENDS),
            ..Event::new(kind)
        }
    }
}

impl Batch {
    /// The columns, to be filled with the events of the run that [`Batch::close`] is called with next.
    pub fn events_mut(&mut self) -> &mut EventColumns {
        &mut self.events
    }

    /// Ends a run: its rows are those added since the run before. Events of its own in `head` are dropped.
    pub fn close(&mut self, head: Run) {
        self.close_at(head, self.events.len());
    }

    fn close_at(&mut self, mut head: Run, end: usize) {
        head.events = Vec::new();
        let first = self.ends.last().copied().unwrap_or(0);
        let flags = self.events.flags.within(first..end);
        let any = flags.fold(0, |any, (_, flags)| any | flags.0);
        self.flags.push(EventFlags(any));
        self.runs.push(head);
        self.ends.push(end);
    }

    /// Ends a run whose rows are the first `n_events` that no run has yet: for columns that are filled before their
    /// runs are known. Events of its own in `head` are dropped.
    ///
    /// # Panics
    /// When fewer rows are left.
    pub fn close_first(&mut self, head: Run, n_events: usize) {
        let end = self.ends.last().map_or(0, |&end| end) + n_events;
        assert!(end <= self.events.len(), "{n_events} rows are not there");
        self.close_at(head, end);
    }

    /// Forgets every run and keeps the memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.ends.clear();
        self.flags.clear();
        self.events.clear();
    }

    /// Its runs, in their order.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = RunView<'_>> {
        self.runs.iter().enumerate().map(|(index, head)| RunView {
            head,
            events: &self.events,
            first: index.checked_sub(1).map_or(0, |before| self.ends[before]),
            end: self.ends[index],
            suspends: self.flags[index].has(EventFlags::SUSPENDS),
            suspected: self.flags[index].has(EventFlags::SUSPECTED_SUSPEND),
        })
    }

    /// The events of all its runs.
    pub const fn events(&self) -> &EventColumns {
        &self.events
    }
}

/// A fleet in memory as columns.
#[derive(Clone, Debug)]
pub struct InMemory<'a> {
    symbols: &'a Symbols,
    batches: Vec<Batch>,
}

/// About so many events make a batch of a fleet in memory.
const BATCH_EVENTS: usize = 1 << 14;

impl<'a> InMemory<'a> {
    /// The runs of `fleet`.
    pub fn new(fleet: &'a Fleet) -> Self {
        let mut batches = Vec::new();
        let mut batch = Batch::default();
        for run in &fleet.runs {
            for event in &run.events {
                batch.events.push(event);
            }
            // cloning the head alone leaves its events where they are
            batch.close(head(run));
            if batch.events.len() >= BATCH_EVENTS {
                batches.push(std::mem::take(&mut batch));
            }
        }
        if !batch.runs.is_empty() {
            batches.push(batch);
        }
        Self::of_batches(&fleet.symbols, batches)
    }

    /// The batches.
    pub fn all(&self) -> &[Batch] {
        &self.batches
    }

    /// Batches that are columns already.
    pub const fn of_batches(symbols: &'a Symbols, batches: Vec<Batch>) -> Self {
        Self { symbols, batches }
    }
}

impl Scan for InMemory<'_> {
    type Error = Infallible;

    fn symbols(&self) -> &Symbols {
        self.symbols
    }

    fn batches(&self) -> usize {
        self.batches.len()
    }

    fn read<'a>(&'a self, index: usize, _: &'a mut Batch) -> Result<&'a Batch, Infallible> {
        Ok(&self.batches[index])
    }
}

/// `run` without its events.
fn head(run: &Run) -> Run {
    let Run {
        name,
        source,
        session,
        parent,
        harness,
        model,
        role,
        started_at_ms,
        resolution,
        status,
        end,
        end_ms,
        measured,
        events: _,
    } = run;
    Run {
        name: name.clone(),
        source: source.clone(),
        session: session.clone(),
        parent: parent.clone(),
        harness: harness.clone(),
        model: model.clone(),
        role: role.clone(),
        started_at_ms: *started_at_ms,
        resolution: *resolution,
        status: *status,
        end: *end,
        end_ms: *end_ms,
        measured: *measured,
        events: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run::WaitKind;

    #[test]
    fn columns_give_back_the_runs_that_they_were_made_of() {
        let event = |t_ms, kind| RunEvent::new(t_ms, kind);
        let first = Run {
            name: "a#1".into(),
            end_ms: 9,
            events: vec![
                event(0, Kind::RunStart),
                RunEvent {
                    id: CallId::new(3),
                    name: Symbol(1),
                    announced_ms: Some(4),
                    flags: EventFlags::MAY_ASK,
                    ..event(2, Kind::ToolStart)
                },
                RunEvent {
                    wait: Some(Wait {
                        kind: WaitKind::Tool,
                        ms: 5,
                    }),
                    ..event(7, Kind::ToolEnd)
                },
            ],
            ..Run::default()
        };
        let empty = Run {
            name: "a#2".into(),
            ..Run::default()
        };
        let last = Run {
            name: "b#1".into(),
            events: vec![RunEvent {
                outcome: Some(Outcome::Completed),
                ..event(1, Kind::RunEnd)
            }],
            ..Run::default()
        };
        let fleet = Fleet {
            runs: vec![first, empty, last],
            ..Fleet::default()
        };
        let scan = InMemory::new(&fleet);
        let mut scratch = Batch::default();
        let batch = scan.read(0, &mut scratch).unwrap();
        let back: Vec<Run> = batch.runs().map(|run| run.to_run()).collect();
        assert_eq!(back, fleet.runs);
        assert_eq!(scan.batches(), 1);
    }

    #[test]
    fn runs_closed_after_their_rows_know_which_of_them_suspends() {
        let mut batch = Batch::default();
        for (t_ms, flags) in [
            (0, EventFlags(0)),
            (1, EventFlags::SUSPENDS),
            (2, EventFlags(0)),
        ] {
            batch.events_mut().push(&RunEvent {
                flags,
                ..RunEvent::new(t_ms, Kind::ToolUpdate)
            });
        }
        batch.close_first(Run::default(), 1);
        batch.close_first(Run::default(), 1);
        batch.close(Run::default());
        let suspends: Vec<bool> = batch.runs().map(|run| run.suspends).collect();
        assert_eq!(suspends, [false, true, false]);
    }
}
