//! A `watch` inside another shares the outer clock: what the outer one cannot see by itself, the inner one tells it.
//!
//! Bytes reach the outer one as those of its own command. The start of the inner command and the growth of that one's
//! session log are told by a signal each, which only processes of the same user can send.

use policysim_policy::Kind;
use rustix::process::Signal;

use super::live::Live;

/// What is told, and by which signal.
const TOLD: [(Kind, Signal); 2] = [
    (Kind::ProcessStart, Signal::USR1),
    (Kind::SessionAdvance, Signal::USR2),
];

/// What an inner `watch` tells by that signal.
pub(super) fn told_by(signal: i32) -> Option<Kind> {
    let found = TOLD.iter().find(|(_, told)| told.as_raw() == signal);
    found.map(|(kind, _)| *kind)
}

impl Live {
    /// Tells the outer `watch` of a sign of life, if its clock is shared.
    pub(super) fn tell_outer(&self, kind: Kind) {
        if let Some(outer) = &self.outer
            && let Some((_, signal)) = TOLD.iter().find(|(told, _)| *told == kind)
        {
            outer.signal(*signal);
        }
    }
}
