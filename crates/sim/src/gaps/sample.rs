//! Silences of one kind with what cut them short and the sessions they come from, and the quantiles of those.
//!
//! Two intervals stand behind every quantile: one that takes gaps as independent (beta product; without a cut gap it
//! is the order-statistic interval, rank by rank), and one with whole sessions as units (infinitesimal jackknife,
//! inverted after Woodruff 1952). The second is the one to print wherever there are two sessions to compare.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::run::Run;
use crate::stats::kaplan_meier::{CensoredQuantile, ClusteredCurve, Gap, KaplanMeier};
use crate::stats::quantile::samples_needed;
use crate::stats::{self, Counts, Interval, Level, Prob, QuantileEstimate, Reason, Status, json};

/// What ended the observation of a silence that had not ended itself.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Cut {
    /// A human or the parent aborted the run.
    Abort,
    /// The record says that the run hung: what was cut is no silence of a living run.
    Hang,
    /// A watchdog killed the run.
    Kill,
    /// The record stops.
    LogEnd,
    /// The table says that the wait was cut, not by what.
    Unknown,
}

impl Cut {
    /// Every way to be cut.
    pub const ALL: [Self; 5] = [
        Self::Abort,
        Self::Hang,
        Self::Kill,
        Self::LogEnd,
        Self::Unknown,
    ];

    /// The name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Hang => "hang",
            Self::Kill => "kill",
            Self::LogEnd => "log_end",
            Self::Unknown => "unknown",
        }
    }
}

/// The independent unit that a gap belongs to: a session, else the run of a source.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct SessionKey(Arc<str>, Arc<str>);

impl SessionKey {
    /// The session of `run`; `None` when the record names neither session nor run.
    pub fn of(run: &Run) -> Option<Self> {
        if !run.session.is_empty() {
            Some(Self(Arc::from(""), Arc::clone(&run.session)))
        } else if !run.name.is_empty() {
            Some(Self(Arc::clone(&run.source), Arc::clone(&run.name)))
        } else {
            None
        }
    }
}

/// Silences of one kind in one group.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Silences {
    by_session: BTreeMap<SessionKey, Vec<Gap>>,
    /// Gaps of which no session is known; each is taken as one of its own.
    unkeyed: Vec<Gap>,
    cut_ms: [Vec<u64>; Cut::ALL.len()],
}

impl Silences {
    /// Adds a silence of `ms`, `cut` short or seen to its end.
    pub fn add(&mut self, session: Option<&SessionKey>, ms: u64, cut: Option<Cut>) {
        let gap = Gap {
            ms,
            observed: cut.is_none(),
        };
        match session {
            None => self.unkeyed.push(gap),
            Some(key) => match self.by_session.get_mut(key) {
                Some(gaps) => gaps.push(gap),
                None => {
                    self.by_session.insert(key.clone(), vec![gap]);
                }
            },
        }
        if let Some(cut) = cut {
            self.cut_ms[cut as usize].push(ms);
        }
    }

    /// Adds every silence of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (key, gaps) in &other.by_session {
            self.by_session.entry(key.clone()).or_default().extend(gaps);
        }
        self.unkeyed.extend(&other.unkeyed);
        for (own, others) in self.cut_ms.iter_mut().zip(&other.cut_ms) {
            own.extend(others);
        }
    }

    /// All silences.
    pub fn len(&self) -> u64 {
        (self.unkeyed.len() + self.by_session.values().map(Vec::len).sum::<usize>()) as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.unkeyed.is_empty() && self.by_session.is_empty()
    }

    /// The lengths, in ms, at which silences were cut that way, in the order in which they were added.
    pub fn cut_by(&self, cut: Cut) -> &[u64] {
        &self.cut_ms[cut as usize]
    }

    /// Silences cut short.
    pub fn cut(&self) -> u64 {
        self.cut_ms.iter().map(|lengths| lengths.len() as u64).sum()
    }

    /// Every silence.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.by_session
            .values()
            .flatten()
            .chain(&self.unkeyed)
            .copied()
    }

    /// How often each length was seen to its end.
    pub fn ended(&self) -> Counts {
        self.gaps()
            .filter(|gap| gap.observed)
            .map(|gap| gap.ms)
            .collect()
    }

    /// How often each length was cut.
    pub fn censored(&self) -> Counts {
        self.cut_ms.iter().flatten().copied().collect()
    }

    /// The gaps of each session; those without a session are one each.
    pub fn sessions(&self) -> Vec<Vec<Gap>> {
        self.by_session
            .values()
            .cloned()
            .chain(self.unkeyed.iter().map(|&gap| vec![gap]))
            .collect()
    }

    /// The recorded lengths of each session in ms, cut ones as far as they were seen.
    pub fn lengths(&self) -> Vec<Vec<u64>> {
        self.sessions()
            .iter()
            .map(|gaps| gaps.iter().map(|gap| gap.ms).collect())
            .collect()
    }

    /// Independent units, as far as the record tells; `None` when it names no session at all.
    pub fn units(&self) -> Option<usize> {
        (!self.by_session.is_empty()).then(|| self.by_session.len() + self.unkeyed.len())
    }

    /// The silences of the session that has the most.
    pub fn largest(&self) -> u64 {
        let largest = self.by_session.values().map(Vec::len).max();
        largest.unwrap_or(0) as u64
    }

    /// The quantiles of the latent length: what was cut counts as longer than it was seen to be.
    pub fn quantiles(&self, asked: &[Prob], level: Level) -> Vec<GapQuantile> {
        let (ended, censored) = (self.ended(), self.censored());
        let curve = KaplanMeier::new(&ended, &censored);
        let sessions = match self.units() {
            Some(units) if units >= 2 => self.sessions(),
            _ => Vec::new(),
        };
        let clustered = ClusteredCurve::new(&curve, &sessions);
        asked
            .iter()
            .map(|&p| {
                let ranks =
                    (censored.total() == 0).then(|| stats::quantile_of_counts(&ended, p, level));
                let by_session =
                    (!sessions.is_empty()).then(|| clustered.quantile_limits(p, level));
                GapQuantile::new(&curve, curve.quantile(p, level), ranks, by_session, level)
                    .needing(|need| match curve.max_ms() {
                        Some(max_ms) if !sessions.is_empty() => {
                            libm::ceil(need as f64 * clustered.deff(max_ms)) as u64
                        }
                        _ => need,
                    })
            })
            .collect()
    }
}

/// Which interval is printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// Beta product; without a cut gap, order statistics. Gaps are taken as independent.
    Independent,
    /// The same with every count divided by the design effect of sessions.
    Sessions,
}

impl Method {
    /// The name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Sessions => "sessions",
        }
    }
}

/// A quantile of silences, some of which may be cut short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GapQuantile {
    /// Point, and the two intervals that take gaps as independent.
    pub curve: CensoredQuantile,
    /// The same by ranks; only where nothing is cut.
    pub ranks: Option<QuantileEstimate>,
    /// The interval with sessions as units, where there are two.
    pub by_session: Option<Interval<u64>>,
    /// The longest silence, cut or not, in ms.
    pub max_ms: Option<u64>,
    /// How far the printed interval can be trusted.
    pub status: Status,
    /// What is missing.
    pub reason: Option<Reason>,
}

impl GapQuantile {
    fn new(
        km: &KaplanMeier,
        curve: CensoredQuantile,
        ranks: Option<QuantileEstimate>,
        by_session: Option<Interval<u64>>,
        level: Level,
    ) -> Self {
        let mut status = curve.status;
        let mut reason = curve.reason;
        match by_session {
            // one session, or none known: the interval is right only if gaps are independent
            None if status == Status::Ok => status = Status::AssumesIid,
            Some(limits) if matches!(status, Status::Ok | Status::OneSided) => {
                status = limits.status();
                if status == Status::NotEstimable {
                    // the point stands; it is the limits that sessions cannot give
                    status = Status::OneSided;
                }
                if limits.up.is_none() || limits.lo.is_none() {
                    let p = if limits.up.is_none() {
                        curve.p
                    } else {
                        curve.p.complement()
                    };
                    reason = samples_needed(p, level)
                        .two_sided
                        .map(|need| Reason::NTooSmall {
                            have: curve.n,
                            need,
                        });
                }
            }
            _ => {}
        }
        Self {
            curve,
            ranks,
            by_session,
            max_ms: km.max_ms(),
            status,
            reason,
        }
    }

    /// The number of gaps needed, counted in gaps as correlated as these.
    fn needing(mut self, scale: impl Fn(u64) -> u64) -> Self {
        if let Some(Reason::NTooSmall { have, need }) = self.reason
            && self.point().is_some()
        {
            // limits of independent gaps may exist already, those of sessions do not
            self.reason = Some(Reason::NTooSmall {
                have,
                need: scale(need).max(need),
            });
        }
        self
    }

    /// The quantile in ms, unless the data cannot carry it.
    pub fn point(&self) -> Option<u64> {
        self.curve.point()
    }

    /// The interval to print.
    pub fn interval(&self) -> Interval<u64> {
        self.by_session.unwrap_or(self.curve.limits)
    }

    /// Which one that is.
    pub const fn method(&self) -> Method {
        match self.by_session {
            Some(_) => Method::Sessions,
            None => Method::Independent,
        }
    }

    /// How many gaps would be needed for what is missing.
    pub const fn needed(&self) -> Option<u64> {
        match self.reason {
            Some(Reason::NTooSmall { need, .. }) => Some(need),
            _ => None,
        }
    }
}

impl Serialize for GapQuantile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { curve, ranks, .. } = self;
        let mut fields = serializer.serialize_struct("GapQuantile", 16)?;
        fields.serialize_field("p", &curve.p.to_string())?;
        fields.serialize_field("n", &curve.n)?;
        fields.serialize_field("rank", &ranks.map(|ranks| ranks.rank))?;
        fields.serialize_field("point_ms", &self.point())?;
        fields.serialize_field("exceeds_ms", &curve.exceeds_ms())?;
        fields.serialize_field("max_ms", &self.max_ms)?;
        fields.serialize_field("interval_ms", &self.interval())?;
        fields.serialize_field("interval_method", self.method().name())?;
        fields.serialize_field("independent_interval_ms", &curve.limits)?;
        fields.serialize_field("loglog_interval_ms", &curve.loglog)?;
        let independent_ranks = ranks.map_or(Interval::none(), |ranks| Interval {
            lo: ranks.ranks.lower,
            up: ranks.ranks.upper,
        });
        fields.serialize_field("interval_ranks", &independent_ranks)?;
        fields.serialize_field("coverage", &ranks.map(|ranks| json(ranks.ranks.coverage)))?;
        fields.serialize_field("expected_above", &json(curve.p.expected_above(curve.n)))?;
        fields.serialize_field("status", &self.status)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn silences(values: &[u64], per_session: usize) -> Silences {
        let mut found = Silences::default();
        for (index, &ms) in values.iter().enumerate() {
            let key = SessionKey(Arc::from("s"), Arc::from((index / per_session).to_string()));
            found.add(Some(&key), ms, None);
        }
        found
    }

    #[test]
    fn without_a_cut_gap_the_curve_is_the_ranks() {
        // lengths with ties, in no order
        let values: Vec<u64> = (0..500_u64).map(|k| k * k % 977 + 1).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        for p in ["0.5", "0.9", "0.99", "0.999"] {
            let p: Prob = p.parse().unwrap();
            let found = silences(&values, 5).quantiles(&[p], Level::P95)[0];
            let by_rank = stats::quantile(&sorted, p);
            assert_eq!(found.curve.value, by_rank.value);
            assert_eq!(found.curve.limits, by_rank.interval);
            assert_eq!(found.ranks, Some(by_rank));
            assert_eq!(found.method(), Method::Sessions);
        }
    }

    #[test]
    fn copies_within_a_session_widen_the_interval() {
        let values: Vec<u64> = (0..600_u64).map(|k| 1_000 + k / 10).collect();
        let found = silences(&values, 10).quantiles(&[Prob::P50], Level::P95)[0];
        let (wide, narrow) = (found.interval(), found.curve.limits);
        // ten copies of each of 60 lengths say as much as 60 gaps: ranks 22 and 39 of 60
        assert!(wide.lo < narrow.lo && wide.up > narrow.up, "{found:?}");
        let once: Vec<u64> = (0..60).map(|k| 1_000 + k).collect();
        let single = stats::quantile(&once, Prob::P50).interval;
        assert!(
            wide.lo.unwrap().abs_diff(single.lo.unwrap()) <= 1,
            "{wide} {single}"
        );
        assert!(
            wide.up.unwrap().abs_diff(single.up.unwrap()) <= 1,
            "{wide} {single}"
        );
    }

    #[test]
    fn without_a_session_independence_is_an_assumption() {
        let mut found = Silences::default();
        for ms in 1..=100 {
            found.add(None, ms, None);
        }
        let median = found.quantiles(&[Prob::P50], Level::P95)[0];
        assert_eq!(
            (median.status, median.method()),
            (Status::AssumesIid, Method::Independent)
        );
        assert_eq!(found.units(), None);
    }

    #[test]
    fn what_is_cut_is_longer() {
        let mut found = Silences::default();
        for ms in 1..=90 {
            found.add(None, ms, None);
        }
        for _ in 0..10 {
            found.add(None, 100, Some(Cut::Kill));
        }
        let [half, most] = found.quantiles(&[Prob::P50, Prob::P95], Level::P95)[..] else {
            panic!("two quantiles")
        };
        assert_eq!((half.point(), half.ranks), (Some(50), None));
        assert_eq!((most.point(), most.curve.exceeds_ms()), (None, Some(100)));
        assert_eq!(
            (found.len(), found.cut(), found.cut_by(Cut::Kill).len()),
            (100, 10, 10)
        );
    }
}
