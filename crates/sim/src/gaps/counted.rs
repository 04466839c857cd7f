//! The idle clock's readings of all runs as counts in bounded memory: enough for what is found in them
//! ([`findings`](super::findings)), not for intervals by session.

use std::sync::Arc;

use crate::lengths::Lengths;
use crate::run::Run;
use crate::sessions::BySession;
use crate::stats::Counts;
use crate::stretches::{OfRun, Stretches};

use super::Cut;

/// What is counted beside [`Stretches`] of the same structure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Readings {
    /// What stretches take for ended and was cut, and the other way round.
    less: Lengths,
    more: Lengths,
    /// By [`Cut`]; hangs are no silences of a living run and not among them.
    cut: [Lengths; Cut::ALL.len()],
    /// Readings by session; those that have neither session nor run are units of their own.
    by_session: BySession<u64>,
    unkeyed: u64,
    suspends: u64,
}

impl Default for Readings {
    fn default() -> Self {
        Self {
            less: Lengths::default(),
            more: Lengths::default(),
            cut: Default::default(),
            // of no account here is the half that a session is in
            by_session: BySession::new(0),
            unkeyed: 0,
            suspends: 0,
        }
    }
}

impl Readings {
    /// Adds a run that was read, and says how many readings it has; `suspends` of its events are flagged as a suspected
    /// host suspend.
    pub(crate) fn add(&mut self, head: &Run, of_run: &OfRun, suspends: u64) -> u64 {
        self.suspends += suspends;
        let mut count = of_run.count();
        for &ms in &of_run.less {
            self.less.add(ms, 1);
            count -= 1;
        }
        for &ms in &of_run.more {
            self.more.add(ms, 1);
            count += 1;
        }
        for &(cut, ms) in &of_run.cut {
            if cut != Cut::Hang {
                self.cut[cut as usize].add(ms, 1);
                count += 1;
            }
        }
        self.add_to_session(head, count);
        count
    }

    /// Adds the number of a run's readings to its session.
    pub(crate) fn add_to_session(&mut self, head: &Run, count: u64) {
        if count == 0 {
            return;
        }
        if !head.session.is_empty() {
            self.by_session.add(&head.session, count);
        } else if head.name.is_empty() {
            self.unkeyed += count;
        } else {
            // names are told apart by their source, and from sessions
            let key = format!("{}\0{}", head.source, head.name);
            self.by_session.add(&Arc::from(key), count);
        }
    }

    /// What is kept of all runs together: less, more, and what was cut in the order of [`Cut::ALL`]; and suspends.
    pub(crate) fn parts(&self) -> ([&Lengths; 2 + Cut::ALL.len()], u64) {
        let [abort, hang, kill, log_end, unknown] = &self.cut;
        let lengths = [&self.less, &self.more, abort, hang, kill, log_end, unknown];
        (lengths, self.suspends)
    }

    /// The same from its parts, without sessions.
    pub(crate) fn of_parts(lengths: [Lengths; 2 + Cut::ALL.len()], suspends: u64) -> Self {
        let [less, more, abort, hang, kill, log_end, unknown] = lengths;
        Self {
            less,
            more,
            cut: [abort, hang, kill, log_end, unknown],
            suspends,
            ..Self::default()
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.less.merge(&other.less);
        self.more.merge(&other.more);
        for (mine, theirs) in self.cut.iter_mut().zip(&other.cut) {
            mine.merge(theirs);
        }
        self.by_session.merge(other.by_session);
        self.unkeyed += other.unkeyed;
        self.suspends += other.suspends;
    }

    /// The readings, with `stretches` of the same runs and structure.
    pub(crate) fn counted(&self, stretches: &Stretches) -> Counted {
        let left = self.less.counts();
        let mut ended: Counts = stretches
            .all()
            .iter()
            .map(|(ms, times)| (ms, times.saturating_sub(left.at(ms))))
            .collect();
        ended.merge(&self.more.counts());
        let cut = |cut: Cut| self.cut[cut as usize].counts();
        let units = self.by_session.len() as u64 + self.unkeyed;
        Counted {
            ended,
            cut: Cut::ALL.map(cut),
            units: (!self.by_session.is_empty()).then_some(units),
            largest: self.by_session.iter().map(|(_, &count)| count).max(),
            suspends: self.suspends,
            exact: stretches.is_exact()
                && self.by_session.is_exact()
                && self.cut.iter().all(Lengths::is_exact)
                && self.less.is_exact()
                && self.more.is_exact(),
        }
    }
}

/// Readings of the idle clock as counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counted {
    /// Readings whose end was observed, by length.
    pub ended: Counts,
    /// Those that were cut, in the order of [`Cut::ALL`]; hangs are not among them.
    pub cut: [Counts; Cut::ALL.len()],
    /// Sessions, as far as the record tells them apart; `None` when it names none at all.
    pub units: Option<u64>,
    /// The readings of the session that has the most.
    pub largest: Option<u64>,
    /// Events that are flagged as a suspected host suspend.
    pub suspends: u64,
    /// Whether every length and session is counted by itself.
    pub exact: bool,
}

impl Counted {
    /// Those that were cut, by length.
    pub fn censored(&self) -> Counts {
        let mut all = Counts::default();
        for cut in &self.cut {
            all.merge(cut);
        }
        all
    }

    /// How many readings there are.
    pub fn total(&self) -> u64 {
        self.ended.total() + self.cut.iter().map(Counts::total).sum::<u64>()
    }
}
