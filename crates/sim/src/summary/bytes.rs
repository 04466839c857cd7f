//! A summary as bytes: a header, a table of texts, structures and runs as variable-length integers, and a checksum.

use std::collections::BTreeMap;
use std::sync::Arc;

use policysim_policy::{Cause, ClockClass};
use thiserror::Error;

use super::{Known, Summarised, Summary, WaitCounts};
use crate::gaps::counted::Readings;
use crate::lengths::Lengths;
use crate::life::{Life, Mark};
use crate::pass::Outcome;
use crate::run::{RecordedEnd, Run};
use crate::staircase::{Crossings, Piece, Stop};
use crate::stats::Counts;
use crate::stretches::Stretches;

/// What the bytes begin with; the last two are the version of the format, little-endian.
const MAGIC: [u8; 8] = *b"psimsm\x03\x00";

/// More waits, gaps or readings than this are in no telemetry; their sums stay far below what a number can hold.
const MOST_COUNTED: u64 = 1 << 53;
/// The last instant of a dataset, whose columns are signed, ms.
const LAST_MS: u64 = i64::MAX as u64;

/// Bytes that are no summary, or not one as it was written.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum DamagedSummary {
    /// They begin differently.
    #[error("no summary of this version, expected it to begin with psimsm and version 3")]
    OtherFormat,
    /// Something is missing or was changed.
    #[error(
        "the summary is cut or was changed since it was written: write it again from the events"
    )]
    Changed,
    /// A number, or two that do not fit each other, that no telemetry has: whoever wrote it wrote the checksum as well.
    #[error("the summary holds numbers that no telemetry has: write it again from the events")]
    Impossible,
}

type Read<T> = Result<T, DamagedSummary>;

impl Summary {
    /// The summary as bytes; the same summary gives the same bytes. `head` is what stands before them in a file: it is
    /// not among them, and their checksum covers it.
    pub fn to_bytes(&self, head: &[u8]) -> Vec<u8> {
        let mut texts = BTreeMap::new();
        for run in &self.runs {
            for text in texts_of(&run.head) {
                texts.insert(text, 0);
            }
        }
        for (number, slot) in texts.values_mut().enumerate() {
            *slot = number as u64;
        }
        let mut out = Writer(MAGIC.to_vec());
        out.list(&self.structures, Writer::known);
        for stretches in &self.stretches {
            for part in &stretches.parts() {
                out.lengths(part);
            }
        }
        let (lengths, suspends) = self.readings.parts();
        for part in lengths {
            out.lengths(part);
        }
        out.number(suspends);
        out.number(self.base as u64);
        out.list(&self.replayed, |out, policy| out.text(policy));
        out.number(self.waits.n);
        out.number(self.waits.left_out);
        out.number(texts.len() as u64);
        for text in texts.keys() {
            out.text(text);
        }
        out.list(&self.runs, |out, run| out.run(run, &texts));
        let sum = checksum([head, &out.0]);
        out.0.extend(sum.to_le_bytes());
        out.0
    }

    /// The summary that was written as these bytes below `head`.
    ///
    /// # Errors
    /// When the two are not exactly what was written.
    pub fn from_bytes(head: &[u8], bytes: &[u8]) -> Read<Self> {
        let body = bytes
            .strip_prefix(&MAGIC)
            .ok_or(DamagedSummary::OtherFormat)?;
        let (body, sum) = body
            .split_last_chunk::<8>()
            .ok_or(DamagedSummary::Changed)?;
        let whole = &bytes[..bytes.len() - 8];
        if checksum([head, whole]) != u64::from_le_bytes(*sum) {
            return Err(DamagedSummary::Changed);
        }
        let mut reader = Reader {
            bytes: body,
            counted: 0,
        };
        let structures = reader.list(Reader::known)?;
        let of_structure = |reader: &mut Reader<'_>| Ok(Stretches::of_parts(reader.all_lengths()?));
        let stretches: Vec<Stretches> = (0..structures.len())
            .map(|_| of_structure(&mut reader))
            .collect::<Read<_>>()?;
        let lengths = reader.all_lengths()?;
        let mut readings = Readings::of_parts(lengths, reader.count()?);
        let base: usize = reader.small()?;
        if base >= structures.len().max(1) {
            return Err(DamagedSummary::Changed);
        }
        let replayed = reader.list(Reader::text)?;
        let waits = WaitCounts {
            n: reader.count()?,
            left_out: reader.count()?,
        };
        let texts: Vec<Arc<str>> = reader.list(|reader| Ok(reader.text()?.into()))?;
        let counts = (structures.len(), replayed.len());
        let runs = reader.list(|reader| reader.run(&texts, counts))?;
        for run in &runs {
            readings.add_to_session(&run.head, run.readings);
        }
        if reader.bytes.is_empty() {
            Ok(Self {
                structures,
                stretches,
                readings,
                base,
                replayed,
                waits,
                runs,
            })
        } else {
            Err(DamagedSummary::Changed)
        }
    }
}

/// FNV-1a, 64 bits, over the parts in a row: against damage, not against malice.
fn checksum(parts: [&[u8]; 2]) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Bytes with the checksum that they have below no head.
#[cfg(test)]
pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum([&[], &bytes]);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn texts_of(head: &Run) -> [Arc<str>; 7] {
    [
        &head.name,
        &head.source,
        &head.session,
        &head.parent,
        &head.harness,
        &head.model,
        &head.role,
    ]
    .map(Arc::clone)
}

struct Writer(Vec<u8>);

impl Writer {
    /// Seven bits a byte, the lowest first.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }

    fn known(&mut self, known: &Known) {
        self.text(&known.shape);
        self.list(&known.clocks, |out, clock| out.number(*clock as u64));
        self.number(u64::from(known.caps));
        self.list(&known.tools, |out, tool| out.text(tool));
        self.number(known.floor_ms);
        self.number(known.slack_ms);
    }

    fn run(&mut self, run: &Summarised, texts: &BTreeMap<Arc<str>, u64>) {
        let head = &run.head;
        for text in texts_of(head) {
            self.number(texts[&text]);
        }
        self.0.extend(head.started_at_ms.to_le_bytes());
        let end = RecordedEnd::ALL.iter().position(|end| *end == head.end);
        self.number(end.unwrap_or(0) as u64);
        self.number(head.end_ms);
        self.mark(run.life.alive);
        self.mark(run.life.completed);
        self.number(run.life.onset_ms);
        self.number(run.readings);
        let mut last = 0;
        self.list(&run.active, |out, &(from_ms, active)| {
            out.number((from_ms - last) << 1 | u64::from(active));
            last = from_ms;
        });
        let mut last = 0;
        self.list(&run.times, |out, &t_ms| {
            out.number(t_ms - last);
            last = t_ms;
        });
        for found in &run.found {
            for pieces in found.lists() {
                self.list(pieces, Self::piece);
            }
            self.list(found.tools(), |out, (entry, pieces)| {
                out.number(entry.map_or(0, |entry| u64::from(entry) + 1));
                out.list(pieces, Self::piece);
            });
            self.list(found.stops(), |out, stop| {
                out.number(u64::from(stop.cap));
                out.number(stop.at_ms);
                out.number(stop.unseen as u64);
            });
            let (cause, at_ms) = found.end();
            self.number(cause as u64);
            self.number(at_ms);
        }
        for end in &run.replayed {
            self.number(end.cause as u64);
            self.number(end.at_ms);
            self.number(end.unseen.map_or(0, |unseen| unseen as u64 + 1));
        }
    }

    fn lengths(&mut self, lengths: &Lengths) {
        let counts = lengths.counts();
        self.number((counts.distinct() as u64) << 1 | u64::from(lengths.is_exact()));
        let mut last = 0;
        for (ms, times) in counts.iter() {
            self.number(ms - last);
            self.number(times);
            last = ms;
        }
    }

    fn mark(&mut self, mark: Option<Mark>) {
        self.number(mark.map_or(0, |mark| mark.index as u64 + 1));
        self.number(mark.map_or(0, |mark| mark.t_ms));
    }

    fn piece(&mut self, piece: &Piece) {
        self.number(piece.from_ms);
        self.number(piece.to_ms - piece.from_ms);
        self.number(piece.before_ms << 1 | u64::from(piece.spare));
        self.number(piece.origin_ms);
        self.number(u64::from(piece.nth));
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// All that was counted so far.
    counted: u64,
}

impl Reader<'_> {
    fn byte(&mut self) -> Read<u8> {
        let (&byte, rest) = self.bytes.split_first().ok_or(DamagedSummary::Changed)?;
        self.bytes = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Read<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DamagedSummary::Changed)
    }

    /// A number of something; all of them together are no more than telemetry can hold.
    fn count(&mut self) -> Read<u64> {
        let count = self.number()?;
        let sum = self.counted.checked_add(count);
        self.counted = sum
            .filter(|sum| *sum <= MOST_COUNTED)
            .ok_or(DamagedSummary::Impossible)?;
        Ok(count)
    }

    /// A time or a length, in ms.
    fn ms(&mut self) -> Read<u64> {
        let ms = self.number()?;
        if ms <= LAST_MS {
            Ok(ms)
        } else {
            Err(DamagedSummary::Impossible)
        }
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Read<T> {
        T::try_from(self.number()?).map_err(|_| DamagedSummary::Changed)
    }

    /// A number that is a place in a list of so many.
    fn place(&mut self, len: usize) -> Read<usize> {
        let place: usize = self.small()?;
        if place < len {
            Ok(place)
        } else {
            Err(DamagedSummary::Changed)
        }
    }

    fn text(&mut self) -> Read<String> {
        let len: usize = self.small()?;
        let (text, rest) = self
            .bytes
            .split_at_checked(len)
            .ok_or(DamagedSummary::Changed)?;
        self.bytes = rest;
        String::from_utf8(text.to_vec()).map_err(|_| DamagedSummary::Changed)
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let len: usize = self.small()?;
        // every item takes a byte at least, so that a wrong length cannot ask for more memory than there are bytes
        if len > self.bytes.len() {
            return Err(DamagedSummary::Changed);
        }
        (0..len).map(|_| read(self)).collect()
    }

    fn lengths(&mut self) -> Read<Lengths> {
        let head = self.number()?;
        let (mut counts, mut last) = (Counts::default(), 0);
        for _ in 0..head >> 1 {
            let ms = Self::sum(&mut last, self.number()?)?;
            counts.add(ms, self.count()?);
        }
        Ok(Lengths::restore(counts, head & 1 == 1))
    }

    fn all_lengths<const N: usize>(&mut self) -> Read<[Lengths; N]> {
        let all: Vec<Lengths> = (0..N).map(|_| self.lengths()).collect::<Read<_>>()?;
        <[Lengths; N]>::try_from(all).map_err(|_| DamagedSummary::Changed)
    }

    /// `last` and `change` later.
    fn sum(last: &mut u64, change: u64) -> Read<u64> {
        let sum = last.checked_add(change).filter(|sum| *sum <= LAST_MS);
        *last = sum.ok_or(DamagedSummary::Impossible)?;
        Ok(*last)
    }

    fn known(&mut self) -> Read<Known> {
        Ok(Known {
            shape: self.text()?,
            clocks: self
                .list(|reader| Ok(ClockClass::ALL[reader.place(ClockClass::ALL.len())?]))?,
            caps: self.number()? == 1,
            tools: self.list(Self::text)?,
            floor_ms: self.number()?,
            slack_ms: self.number()?,
        })
    }

    fn run(
        &mut self,
        texts: &[Arc<str>],
        (structures, replayed): (usize, usize),
    ) -> Read<Summarised> {
        let mut text = || Ok(Arc::clone(&texts[self.place(texts.len())?]));
        let (name, source, session, parent) = (text()?, text()?, text()?, text()?);
        let (harness, model, role) = (text()?, text()?, text()?);
        let (start, rest) = self
            .bytes
            .split_first_chunk::<8>()
            .ok_or(DamagedSummary::Changed)?;
        self.bytes = rest;
        let end = RecordedEnd::ALL[self.place(RecordedEnd::ALL.len())?];
        let end_ms = self.ms()?;
        let head = Run {
            name,
            source,
            session,
            parent,
            harness,
            model,
            role,
            started_at_ms: i64::from_le_bytes(*start),
            end,
            end_ms,
            ..Run::default()
        };
        let life = Life {
            end,
            end_ms,
            alive: self.mark()?,
            completed: self.mark()?,
            onset_ms: self.ms()?,
        };
        let readings = self.count()?;
        let mut last = 0;
        let active = self.list(|reader| {
            let number = reader.number()?;
            Ok((Self::sum(&mut last, number >> 1)?, number & 1 == 1))
        })?;
        let mut last = 0;
        let times = self.list(|reader| {
            let change = reader.number()?;
            Self::sum(&mut last, change)
        })?;
        let found = (0..structures).map(|_| self.found()).collect::<Read<_>>()?;
        let replayed = (0..replayed).map(|_| self.end()).collect::<Read<_>>()?;
        if active.is_empty() {
            return Err(DamagedSummary::Changed);
        }
        Ok(Summarised {
            head,
            life,
            active,
            times,
            found,
            readings,
            replayed,
        })
    }

    fn found(&mut self) -> Read<Crossings> {
        let mut lists = Vec::with_capacity(Crossings::LISTS);
        for _ in 0..Crossings::LISTS {
            lists.push(self.list(Self::piece)?);
        }
        let tools = self.list(|reader| {
            let entry: u32 = reader.small()?;
            Ok((entry.checked_sub(1), reader.list(Self::piece)?))
        })?;
        let stops = self.list(|reader| {
            Ok(Stop {
                cap: reader.small()?,
                at_ms: reader.ms()?,
                unseen: reader.small()?,
            })
        })?;
        let cause = Cause::ALL[self.place(Cause::ALL.len())?];
        let end = (cause, self.ms()?);
        Crossings::restore(lists, tools, stops, end).ok_or(DamagedSummary::Changed)
    }

    fn end(&mut self) -> Read<Outcome> {
        let cause = Cause::ALL[self.place(Cause::ALL.len())?];
        let (at_ms, unseen): (u64, usize) = (self.ms()?, self.small()?);
        Ok(Outcome {
            cause,
            at_ms,
            unseen: unseen.checked_sub(1),
        })
    }

    fn mark(&mut self) -> Read<Option<Mark>> {
        let (index, t_ms): (usize, u64) = (self.small()?, self.ms()?);
        Ok(index.checked_sub(1).map(|index| Mark { index, t_ms }))
    }

    fn piece(&mut self) -> Read<Piece> {
        let mut to_ms = self.ms()?;
        let from_ms = to_ms;
        let length_ms = self.number()?;
        Self::sum(&mut to_ms, length_ms)?;
        let before = self.number()?;
        // what was read before is part of the same run
        let mut reading_ms = length_ms;
        Self::sum(&mut reading_ms, before >> 1)?;
        Ok(Piece {
            from_ms,
            to_ms,
            before_ms: before >> 1,
            spare: before & 1 == 1,
            origin_ms: self.ms()?,
            nth: self.small()?,
        })
    }
}
