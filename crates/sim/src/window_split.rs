//! What an idle window has to hold: the model's own wait, a silent chain of retries, and what is left.

use policysim_policy::{Millis, Policy, Waits, retry::Envelope};

/// An idle window taken apart. Quantiles do not add up: the sum is an allowance, the measured composite silence
/// beside it is the fact.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowSplit {
    /// The idle window, ms; `None` when it is off.
    pub window_ms: Option<u64>,
    /// The quantile of the model's wait that the window must hold, ms; `None` when the data cannot carry it.
    pub measured_ms: Option<u64>,
    /// What the retry schedule may add in silence.
    pub envelope: Envelope,
    /// Whether a backoff runs against the idle clock at all, where the harness does not announce it.
    pub backoff_counts: bool,
}

/// What is left of a window, ms, below 0 where it does not suffice; in the order nominal, full jitter, headers at cap.
pub type Left = [Option<i64>; 3];

impl WindowSplit {
    /// Takes the window of `policy` apart around a measured quantile.
    pub fn new(policy: &Policy, measured_ms: Option<u64>) -> Self {
        Self {
            window_ms: policy.idle.window.map(Millis::as_u64),
            measured_ms,
            envelope: policy.retry.envelope(),
            backoff_counts: policy.pause.backoff == Waits::None,
        }
    }

    /// The envelope's three lengths, ms: nominal, full jitter, every header at the cap.
    pub fn envelopes_ms(&self) -> [u64; 3] {
        let Envelope {
            nominal,
            max_jitter,
            max_header,
        } = self.envelope;
        [nominal, max_jitter, max_header].map(Millis::as_u64)
    }

    /// Quantile and envelope together, ms.
    pub fn sums_ms(&self) -> [Option<u64>; 3] {
        self.envelopes_ms()
            .map(|envelope_ms| Some(self.measured_ms?.saturating_add(envelope_ms)))
    }

    /// What is left of the window.
    pub fn left_ms(&self) -> Left {
        self.sums_ms().map(|sum| {
            let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
            Some(signed(self.window_ms?).saturating_sub(signed(sum?)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policysim_policy::presets::PRESETS;

    /// The worked example of semantics section 4.5: 174 s of latency and the envelopes of 4.4 against 300 s.
    #[test]
    fn adr_0129_leaves_less_than_nothing_with_headers_at_their_cap() {
        let preset = PRESETS
            .iter()
            .find(|preset| preset.name == "pi-desktop-0129");
        let split = preset.map(|preset| WindowSplit::new(&preset.policy(), Some(174_000)));
        let found = split.map(|split| (split.envelopes_ms(), split.left_ms()));
        assert_eq!(
            found,
            Some((
                [75_000, 82_500, 182_000],
                [Some(51_000), Some(43_500), Some(-56_000)]
            ))
        );
    }
}
