//! What has to be known of a run to judge any firing without its events.

use policysim_policy::{Cause, Kind, Outcome};

use crate::judgement::{self, Judgement, KillClass};
use crate::replay::kill_class;
use crate::run::RecordedEnd;
use crate::scan::RunView;

/// An event's place in its run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mark {
    /// Its index.
    pub index: usize,
    /// Its time, ms.
    pub t_ms: u64,
}

/// The last signs of life of one run, and how its record ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Life {
    /// How the record says that it ended.
    pub end: RecordedEnd,
    /// When the record ends, ms.
    pub end_ms: u64,
    /// The last event that shows life.
    pub alive: Option<Mark>,
    /// The last event that completes the run.
    pub completed: Option<Mark>,
    /// From when a hung run showed no more life, ms.
    pub onset_ms: u64,
}

impl Life {
    /// Reads the marks of `run`.
    pub fn of(run: &RunView<'_>) -> Self {
        let columns = run.events;
        let completes = |row: usize| match columns.kinds()[row] {
            Kind::Result => true,
            Kind::RunEnd => columns.outcome.get(row) == Some(Outcome::Completed),
            _ => false,
        };
        let last = |test: &dyn Fn(usize) -> bool| {
            let row = (run.first..run.end).rev().find(|&row| test(row))?;
            Some(Mark {
                index: row - run.first,
                t_ms: columns.t_ms[row],
            })
        };
        let shows_life = |row: usize| judgement::is_life(columns.kinds()[row]) || completes(row);
        let onset = last(&|row| shows_life(row) || columns.kinds()[row] == Kind::RetryStart);
        Self {
            end: run.head.end,
            end_ms: run.head.end_ms,
            alive: last(&shows_life),
            completed: last(&completes),
            onset_ms: onset.map_or(0, |mark| mark.t_ms),
        }
    }

    /// The word on a firing by `cause` at `at_ms`. `unseen` is the index of the event after it, where it is not simply
    /// the first from that instant on.
    pub fn judge(&self, cause: Cause, at_ms: u64, unseen: Option<usize>) -> Judgement {
        let mark = match kill_class(cause) {
            None => return self.survival(),
            Some(KillClass::Silence) => self.alive,
            Some(KillClass::Length) => self.completed,
        };
        let refuted = mark.is_some_and(|mark| match unseen {
            Some(unseen) => mark.index >= unseen,
            None => mark.t_ms >= at_ms,
        });
        judgement::word_on_kill(self.end, refuted)
    }

    /// The word on a run that is not killed within its record.
    pub const fn survival(&self) -> Judgement {
        judgement::word_on_survival(self.end)
    }
}
