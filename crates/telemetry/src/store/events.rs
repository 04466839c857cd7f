//! `events.parquet`: written run by run, read as columns, one row group at a time.

use std::io::Write;
use std::mem::take;

use polars_parquet::write::Encoding;
use policysim_policy::{CallId, Kind, Outcome};
use policysim_sim::run::{EventFlags, RunEvent, Symbol, Symbols, Wait, WaitKind};
use policysim_sim::scan::EventColumns;

use super::frames::{events_columns, unsigned};
use super::pages::Codes;
use super::places::{Places, Values};
use super::write::TableWriter;
use super::{EVENTS, Table};
use crate::error::TelemetryError;

/// A row group is closed at the first run that reaches this many events.
const GROUP_EVENTS: usize = 250_000;

/// Room is made at once for so many events at most; a longer group, of one very long run, makes it as it goes.
const MOST_ROOM: usize = 1 << 22;

/// Columns that have a value in every row.
const REQUIRED: [&str; 6] = ["run_id", "t_ms", "kind", "call_id", "name", "flags"];

/// Ids up to here count something, and lie close to each other: their differences are small. Others are hashes, whose
/// differences are no smaller than themselves, so that a dictionary serves them better.
const LARGEST_COUNTED_ID: u64 = u32::MAX as u64;

/// Writes `events.parquet`, run by run.
pub(crate) struct EventsWriter<W: Write> {
    out: TableWriter<W>,
    runs: Vec<i64>,
    events: Vec<RunEvent>,
    symbols: Symbols,
    n_runs: usize,
    /// How many runs were there when each row group was closed.
    ends: Vec<usize>,
}

impl<W: Write> EventsWriter<W> {
    pub(crate) fn new(out: W) -> Result<Self, TelemetryError> {
        let symbols = Symbols::default();
        let empty = events_columns(|_| 0, &[], &symbols);
        let empty: Vec<_> = empty.into_iter().map(|column| column()).collect();
        Ok(Self {
            out: TableWriter::new(EVENTS, out, &empty, &REQUIRED)?,
            runs: Vec::new(),
            events: Vec::new(),
            symbols: Symbols::default(),
            n_runs: 0,
            ends: Vec::new(),
        })
    }

    /// Appends the events of run number `run_id`; `symbols` names what they refer to.
    pub(crate) fn push(
        &mut self,
        run_id: i64,
        events: &[RunEvent],
        symbols: &Symbols,
    ) -> Result<(), TelemetryError> {
        if events.len() >= GROUP_EVENTS {
            // Long enough for a group by itself: written from where it lies, because a copy would be what costs most.
            self.flush()?;
            self.n_runs += 1;
            return self.write(|_| run_id, events, symbols);
        }
        for event in events {
            let mut event = *event;
            event.name = self.symbols.intern(symbols.name(event.name));
            self.runs.push(run_id);
            self.events.push(event);
        }
        self.n_runs += 1;
        if self.events.len() >= GROUP_EVENTS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TelemetryError> {
        if self.events.is_empty() {
            return Ok(());
        }
        let (mut runs, mut events) = (take(&mut self.runs), take(&mut self.events));
        let symbols = take(&mut self.symbols);
        self.write(|place| runs[place], &events, &symbols)?;
        // the memory is used again
        runs.clear();
        events.clear();
        (self.runs, self.events, self.symbols) = (runs, events, symbols);
        Ok(())
    }

    /// Writes a row group; `run_of` says whose the event at a place is.
    fn write(
        &mut self,
        run_of: impl Fn(usize) -> i64 + Send + Sync,
        events: &[RunEvent],
        symbols: &Symbols,
    ) -> Result<(), TelemetryError> {
        let columns = events_columns(run_of, events, symbols);
        let small_ids = events
            .iter()
            .all(|event| event.id.as_u64() <= LARGEST_COUNTED_ID);
        self.ends.push(self.n_runs);
        let n_events = events.len();
        self.out
            .write_columns(n_events, columns, |column| match column {
                "run_id" | "t_ms" => Some(Encoding::DeltaBinaryPacked),
                "call_id" if small_ids => Some(Encoding::DeltaBinaryPacked),
                _ => None,
            })
    }

    /// Completes the file, and says how many runs there were when each row group was closed.
    pub(crate) fn finish(mut self) -> Result<Vec<usize>, TelemetryError> {
        self.flush()?;
        self.out.finish()?;
        Ok(self.ends)
    }
}

/// Reads `events.parquet`.
#[derive(Debug)]
pub(crate) struct EventsReader {
    places: Places,
}

impl EventsReader {
    pub(crate) fn open(table: &Table) -> Result<Self, TelemetryError> {
        Ok(Self {
            places: Places::open(EVENTS, table)?,
        })
    }

    /// How many row groups there are.
    pub(crate) const fn len(&self) -> usize {
        self.places.len()
    }

    /// How many events there are.
    pub(crate) fn n_rows(&self) -> usize {
        self.places.n_rows()
    }

    /// How many events the row group has.
    pub(crate) fn n_rows_of(&self, group: usize) -> usize {
        self.places.n_rows_of(group)
    }

    /// The names that events refer to, in order of first use: of most row groups only the dictionary is looked at.
    pub(crate) fn names(&self) -> Result<Symbols, TelemetryError> {
        let mut symbols = Symbols::default();
        self.places.decode(|reader| {
            for group in 0..self.len() {
                let chunk = reader.chunk(group, "name", Values::Texts)?;
                if chunk.has_dictionary() {
                    for name in chunk.texts()? {
                        symbols.intern(&name);
                    }
                    chunk.close(reader.scratch);
                } else {
                    chunk.plain_texts(reader.scratch, |name| {
                        symbols.intern(name);
                    })?;
                }
            }
            Ok(())
        })?;
        Ok(symbols)
    }

    /// Appends the events of a row group to `columns`, which are empty; `symbols` are [`EventsReader::names`].
    pub(crate) fn read(
        &self,
        group: usize,
        symbols: &Symbols,
        columns: &mut EventColumns,
    ) -> Result<(), TelemetryError> {
        let n_rows = self.n_rows_of(group);
        self.places.decode(|reader| {
            // Groups are nearly equally large: making room for twice as much would double what is held. A damaged file
            // may claim any number of rows.
            columns.reserve(n_rows.min(MOST_ROOM));
            let times = reader.chunk(group, "t_ms", Values::Integers)?;
            times.dense_numbers(reader.scratch, |values| {
                if values.iter().fold(0, |any, ms| any | ms) < 0 {
                    columns.t_ms.extend(values.iter().copied().map(unsigned));
                } else {
                    columns.t_ms.extend(values.iter().map(|&ms| ms as u64));
                }
            })?;
            let kinds = reader.chunk(group, "kind", Values::Texts)?;
            let known = kinds.known("kind", Kind::from_name)?;
            kinds.each_code(known.len(), reader.scratch, |codes| match codes {
                Codes::Same(code, n) => columns.push_kinds(known[code as usize], n),
                Codes::Each(codes) => {
                    columns.extend_kinds(codes.iter().map(|&code| known[code as usize]));
                }
            })?;
            let ids = reader.chunk(group, "call_id", Values::Integers)?;
            ids.other_numbers(reader.scratch, |row, id| {
                columns.id.push(row, CallId::new(id as u64));
            })?;
            let names = reader.chunk(group, "name", Values::Texts)?;
            if names.has_dictionary() {
                let known = names.known("name", |name| symbols.get(name))?;
                names.other_codes(&known, reader.scratch, |row, name| {
                    columns.name.push(row, name);
                })?;
            } else {
                let mut rows = 0..;
                names.plain_texts(reader.scratch, |name| {
                    let symbol = symbols.get(name).unwrap_or_default();
                    if let Some(row) = rows.next()
                        && symbol != Symbol::default()
                    {
                        columns.name.push(row, symbol);
                    }
                })?;
            }
            let flags = reader.chunk(group, "flags", Values::Integers)?;
            flags.other_numbers(reader.scratch, |row, flags| {
                columns.flags.push(row, EventFlags(flags as u16));
            })?;
            let announced = reader.chunk(group, "announced_ms", Values::Integers)?;
            announced.sparse_numbers(reader.scratch, |row, ms| {
                columns.announced_ms.push(row, unsigned(ms));
            })?;
            let outcomes = reader.chunk(group, "outcome", Values::Texts)?;
            let known = outcomes.known("outcome", outcome_from_name)?;
            outcomes.sparse_codes(&known, reader.scratch, |row, outcome| {
                columns.outcome.push(row, outcome);
            })?;
            let mut waits = Vec::new();
            let lengths = reader.chunk(group, "wait_ms", Values::Integers)?;
            lengths.sparse_numbers(reader.scratch, |row, ms| waits.push((row, unsigned(ms))))?;
            let mut waits = waits.into_iter().peekable();
            let kinds = reader.chunk(group, "wait_kind", Values::Texts)?;
            let known = kinds.known("wait_kind", WaitKind::from_name)?;
            kinds.sparse_codes(&known, reader.scratch, |row, kind| {
                while waits.next_if(|&(at, _)| at < row).is_some() {}
                let ms = waits.next_if(|&(at, _)| at == row).map_or(0, |(_, ms)| ms);
                columns.wait.push(row, Wait { kind, ms });
            })
        })
    }
}

/// The outcome of that name.
pub(crate) fn outcome_from_name(name: &str) -> Option<Outcome> {
    [Outcome::Aborted, Outcome::Completed, Outcome::Failed]
        .into_iter()
        .find(|outcome| outcome.name() == name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// A run with something in every column.
    fn stored(hashed_ids: bool) -> (Vec<RunEvent>, Symbols, Arc<[u8]>) {
        let mut symbols = Symbols::default();
        let mut events = Vec::new();
        for burst in 0..40_u64 {
            let id = CallId::new(if hashed_ids { u64::MAX - burst } else { burst });
            let tool = RunEvent {
                id,
                name: symbols.intern(if burst % 3 == 0 { "Bash" } else { "Read" }),
                announced_ms: (burst % 5 == 0).then_some(burst * 1_000),
                ..RunEvent::new(burst * 10_000, Kind::ToolStart)
            };
            let end = RunEvent {
                wait: Some(Wait {
                    kind: WaitKind::Tool,
                    ms: burst,
                }),
                flags: EventFlags::MAY_ASK,
                outcome: (burst == 39).then_some(Outcome::Failed),
                announced_ms: None,
                ..tool
            };
            events.push(tool);
            events.push(RunEvent {
                t_ms: burst * 10_000 + 7,
                ..end
            });
            let pieces = (0..burst * 3)
                .map(|piece| RunEvent::new(burst * 10_000 + 20 + piece, Kind::MessageUpdate));
            events.extend(pieces);
        }
        let mut bytes = Vec::new();
        let mut writer = EventsWriter::new(&mut bytes).unwrap();
        writer.push(0, &events, &symbols).unwrap();
        assert_eq!(writer.finish().unwrap(), [1]);
        (events, symbols, bytes.into())
    }

    fn read(bytes: Arc<[u8]>) -> Result<Vec<RunEvent>, TelemetryError> {
        let reader = EventsReader::open(&Table::Bytes(bytes))?;
        let symbols = reader.names()?;
        let mut events = Vec::new();
        let mut columns = EventColumns::default();
        for group in 0..reader.len() {
            columns.clear();
            reader.read(group, &symbols, &mut columns)?;
            events.extend((0..columns.len()).map(|row| columns.event(row)));
        }
        Ok(events)
    }

    #[test]
    fn events_come_back_as_they_were() {
        for hashed_ids in [false, true] {
            let (events, _, bytes) = stored(hashed_ids);
            assert_eq!(read(bytes).unwrap(), events);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn damaged_bytes_are_read_or_refused(
            hashed_ids in any::<bool>(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let (_, _, bytes) = stored(hashed_ids);
            let mut bytes = bytes.to_vec();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = read(bytes.into());
        }

        #[test]
        fn what_is_cut_short_is_refused(cut in any::<prop::sample::Index>()) {
            let (_, _, bytes) = stored(false);
            let cut = cut.index(bytes.len());
            prop_assert!(read(bytes[..cut].into()).is_err());
        }
    }
}
