//! The numbers of a simulation by the names that they have wherever they are told.

use super::tally::{Numbers, WAITS_TOLD};

/// The names of [`Numbers::known_after`].
const KNOWN_AFTER: [&str; WAITS_TOLD] = [
    "known_after_1_waits",
    "known_after_2_waits",
    "known_after_3_waits",
    "known_after_4_waits",
    "known_after_5_waits",
    "known_after_6_waits",
    "known_after_7_waits",
    "known_after_8_waits",
    "known_after_9_waits",
    "known_after_10_waits",
    "known_after_11_waits",
    "known_after_12_waits",
    "known_after_13_waits",
    "known_after_14_waits",
    "known_after_15_waits",
    "known_after_16_waits",
];

impl Numbers {
    /// Every number with its name, always in the same order; the hangs by the number of waits stand last. Names of times
    /// end in `_ms`.
    pub fn named(&self) -> Vec<(&'static str, u128)> {
        let n = |count: u64| u128::from(count);
        let mut named = vec![
            ("parents", n(self.parents)),
            ("runs", n(self.runs)),
            ("healthy_runs", n(self.healthy)),
            ("delivered", n(self.delivered)),
            ("waits", n(self.waits)),
            ("expiries", n(self.expiries)),
            ("hangs", n(self.hangs)),
            ("hangs_in_wait", n(self.hangs_in_wait)),
            ("hangs_settled_in_wait", n(self.settled_in_wait)),
            ("hangs_unsettled", n(self.hangs_unsettled)),
            ("hangs_never_known", n(self.never_known)),
            ("hangs_given_up_before", n(self.hangs_given_up_before)),
            ("hangs_given_up", n(self.given_up)),
            ("hang_unaware_ms", self.unaware_ms),
            ("false_kills", n(self.false_kills)),
            ("true_kills", n(self.true_kills)),
            ("unresolved_kills", n(self.unresolved_kills)),
            ("hung_killed_early", n(self.hung_killed_early)),
            ("healthy_misread", n(self.misread)),
            ("healthy_stopped", n(self.stopped)),
            ("healthy_closed", n(self.closed)),
            ("duplicates", n(self.duplicates)),
            ("duplicate_ms", self.duplicate_ms),
            ("retries", n(self.retries)),
            ("retries_alike", n(self.retries_alike)),
            ("refused_spawns", n(self.refused)),
            ("blocked_ms", self.blocked_ms),
            ("parent_ms", self.parent_ms),
            ("slot_ms", self.slot_ms),
            ("slot_hung_ms", self.slot_hung_ms),
        ];
        let known_after = self.known_after.iter().map(|&hangs| n(hangs));
        named.extend(KNOWN_AFTER.into_iter().zip(known_after));
        named
    }
}
