//! Outages of the provider, which all runs share.

use super::model::Outages;
use super::rng::{Purpose, Stream};

/// Whether the provider is out at an instant of the calendar, ms since the Unix epoch.
pub(super) fn is_out(outages: &Outages, seed: u64, at_ms: i64) -> bool {
    let every_ms = i64::try_from(outages.every_ms).unwrap_or(i64::MAX);
    let stretch = at_ms.div_euclid(every_ms);
    // An outage that began in an earlier stretch may still last; longer ones than two stretches are cut.
    (0..=2).any(|back| {
        let Some(stretch) = stretch.checked_sub(back) else {
            return false;
        };
        let mut stream = Stream::new(seed, stretch.cast_unsigned(), Purpose::Outage);
        let offset_ms = stream.below(outages.every_ms).cast_signed();
        let from_ms = stretch.saturating_mul(every_ms).saturating_add(offset_ms);
        let length_ms = outages.length.value(stream.unit()).cast_signed();
        from_ms <= at_ms && at_ms < from_ms.saturating_add(length_ms)
    })
}
