//! A host that sleeps in the middle of a run.

use policysim_policy::Kind;

use super::model::Suspends;
use super::record::Record;
use super::rng::{Purpose, Stream};
use super::spread::{Draws, Use};
use super::writer::Written;
use crate::run::{EventFlags, RunEvent, Wait};

/// The run with a host that sleeps once at a uniform moment, where the draw says so: what comes later comes later by
/// the length of the sleep, and waits that hold it grow.
pub(super) fn suspended(
    written: Written,
    suspends: Option<&Suspends>,
    seed: u64,
    run: u64,
    draws: &mut Draws<'_>,
) -> Written {
    let Some(suspends) = suspends else {
        return written;
    };
    let mut stream = Stream::new(seed, run, Purpose::Suspend);
    if !stream.chance(suspends.run_share_ppm) {
        return written;
    }
    let asleep_ms = stream.below(written.end_ms);
    let p = draws.place(Use::Asleep, stream.unit());
    let length_ms = suspends.length.value(p);
    let mut record = Record::default();
    let mut slept = false;
    for event in written.events {
        if event.t_ms > asleep_ms && !slept {
            slept = true;
            record.push(RunEvent::new(asleep_ms, Kind::HostSuspend));
            record.push(RunEvent::new(asleep_ms + length_ms, Kind::HostResume));
        }
        record.push(if slept {
            later(event, asleep_ms, length_ms)
        } else {
            event
        });
    }
    if !slept {
        record.push(RunEvent::new(asleep_ms, Kind::HostSuspend));
        record.push(RunEvent::new(asleep_ms + length_ms, Kind::HostResume));
    }
    let (events, spans) = record.finish();
    Written {
        events,
        measured: crate::run::Measured {
            duration_ms: spans.duration_ms,
            silence_ms: spans.silence_ms,
            gap_ms: spans.gap_ms,
            ..written.measured
        },
        end_ms: written.end_ms + length_ms,
    }
}

fn later(mut event: RunEvent, asleep_ms: u64, length_ms: u64) -> RunEvent {
    if let Some(Wait { ms, .. }) = &mut event.wait
        && event.t_ms.saturating_sub(*ms) <= asleep_ms
    {
        *ms += length_ms;
        event.flags = event.flags.with(EventFlags::SUSPECTED_SUSPEND);
    }
    event.t_ms += length_ms;
    event
}
