//! The short way for the events that most of a run consists of: pieces of a stream while nothing else changes.
//!
//! An event takes it when it comes before anything is due, opens, closes, counts or marks nothing, and at most
//! restarts the idle clock with the plain window. Everything else goes the long way, which also decides when the
//! short one is open again. Both ways lead to equal states.

use crate::role::{Role, role};
use crate::rules::Rules;
use crate::{Kind, Millis};

/// What the short way may assume until the next event that goes the long one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick {
    /// Nothing is due before this; zero while the short way is closed to single events.
    pub(crate) until: Millis,
    /// The same for columns of events where crossings are told.
    pub(crate) stream_until: Millis,
    /// Where crossings are told and some kinds restart the idle clock: when it began what it reads.
    pub(crate) since: Millis,
    /// The kinds that may go it.
    pub(crate) kinds: u64,
    /// Of these, the kinds that restart the idle clock.
    pub(crate) rearms: u64,
    /// The window they restart it with.
    pub(crate) window: Millis,
    /// Kinds that the throttle drops before `drop_until`.
    pub(crate) drops: u64,
    /// When the throttle's period is over.
    pub(crate) drop_until: Millis,
}

/// Kinds as bits.
pub(crate) const fn bit(kind: Kind) -> u64 {
    1 << kind as u64
}

/// The kinds that change nothing but the idle clock under these rules.
pub(crate) fn plain_kinds(rules: &Rules) -> u64 {
    Kind::ALL
        .into_iter()
        .filter(|&kind| match kind {
            // a new turn may close calls; whether an `other` counts may hang on its name
            Kind::TurnStart | Kind::Other => false,
            Kind::TurnEnd => rules.cap.is_none(),
            Kind::MessageEnd => !rules.per_call(),
            Kind::Result => rules.result_grace.is_none(),
            kind => role(kind) == Role::Plain,
        })
        .fold(0, |bits, kind| bits | bit(kind))
}
