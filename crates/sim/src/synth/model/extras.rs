//! What a population may have beside its distributions: waits of some runs, likeness within sessions and runs,
//! compactions, outages, host suspends.

use serde::{Deserialize, Serialize};

use super::Ppm;
use crate::synth::quantiles::Quantiles;

/// How alike the waits of one session, and of one run, are.
///
/// Each is the correlation of normal scores: waits keep their distribution, and slow ones come together. A session's
/// and a run's share together stay below the whole.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Likeness {
    /// Whether the shares were assumed.
    pub assumed: bool,
    /// Waits for the model and between pieces, within a session.
    #[serde(default)]
    pub model_session_ppm: Ppm,
    /// The same within a run, beyond its session.
    #[serde(default)]
    pub model_run_ppm: Ppm,
    /// Durations of calls within a session.
    #[serde(default)]
    pub tool_session_ppm: Ppm,
    /// The same within a run, beyond its session.
    #[serde(default)]
    pub tool_run_ppm: Ppm,
    /// Numbers of turns within a session.
    #[serde(default)]
    pub turns_session_ppm: Ppm,
}

/// Compaction of the context at the beginning of a turn (wait `compact`).
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Compaction {
    /// Whether the share was assumed.
    pub assumed: bool,
    /// Turns that begin with one, the first excepted.
    pub turn_share_ppm: Ppm,
    /// Its start is recorded; otherwise only its end is.
    #[serde(default)]
    pub start_seen: bool,
}

/// The host sleeps in the middle of a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Suspends {
    /// Whether the share was assumed.
    pub assumed: bool,
    /// Runs in which it does, once, at a uniform moment.
    pub run_share_ppm: Ppm,
    /// For how long.
    pub length: Quantiles,
}

/// Outages of the provider: every run that makes a call meanwhile meets the same one.
///
/// The calendar is cut into stretches of `every_ms`; each holds one outage, which begins at a uniform moment of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outages {
    /// Whether the figures were assumed.
    pub assumed: bool,
    /// One outage in each stretch of this length.
    pub every_ms: u64,
    /// How long one lasts.
    pub length: Quantiles,
    /// Calls that fail during one.
    pub fail_ppm: Ppm,
}

/// A backoff schedule as the policy document has it: the wait before each retry is the core's rule.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The first wait, ms.
    pub first_delay_ms: u64,
    /// What each further wait is multiplied by.
    pub factor: u32,
    /// The most that jitter adds, in percent.
    #[serde(default)]
    pub jitter_up_percent: u32,
    /// The most that jitter takes away, in percent.
    #[serde(default)]
    pub jitter_down_percent: u32,
    /// The longest wait, ms.
    pub cap_ms: u64,
}
