//! Runs by fixed laws, for measuring: the same run for the same seed and number, whatever comes before it.
//!
//! Waits for the model are 92.44 % lognormal and 7.56 % Pareto (p50 5.6 s, p99 55 s), tokens come in bursts of 40 on
//! average 20 to 100 ms apart, tools take 1.2 s at p50 and 180 s at p99, now and then a backoff or a human is waited
//! for. Runs have some 520 events on average; one in a hundred hangs, one in twenty is cut by the end of its record.

use policysim_policy::{CallId, Kind, Outcome};
use policysim_sim::run::{RecordedEnd, Run, RunEvent};
use policysim_sim::scan::Batch;

/// `SplitMix64`, seeded by seed and run.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn chance(&mut self, share: f64) -> bool {
        self.unit() <= share
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a load for benches may differ between machines"
    )]
    fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let normal = (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }

    /// In ms.
    #[expect(
        clippy::disallowed_methods,
        reason = "a load for benches may differ between machines"
    )]
    fn pre_token(&mut self) -> u64 {
        let seconds = if self.chance(0.0756) {
            20.0 / self.unit().sqrt()
        } else {
            self.lognormal(1.6738_f64.exp(), 0.4757)
        };
        (seconds * 1000.0) as u64
    }
}

/// Adds run `number` to `batch`.
pub(crate) fn run(seed: u64, number: u64, batch: &mut Batch) {
    let mut draw = Draw(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
    let wanted = draw.lognormal(315.0, 1.0) as usize;
    let fate = draw.unit();
    let first = batch.events().len();
    let mut at = 0;
    let mut calls = 0;
    let push = |batch: &mut Batch, at: u64, kind: Kind, id: u64| {
        let mut event = RunEvent::new(at, kind);
        event.id = CallId::new(id);
        batch.events_mut().push(&event);
    };
    push(batch, 0, Kind::RunStart, 0);
    while batch.events().len() - first < wanted {
        push(batch, at, Kind::TurnStart, 0);
        if draw.chance(0.04) {
            let mut delay = 2000;
            loop {
                at += draw.pre_token();
                push(batch, at, Kind::RetryStart, 0);
                at += delay;
                push(batch, at, Kind::RetryEnd, 0);
                delay *= 2;
                if draw.chance(0.5) {
                    break;
                }
            }
        }
        at += draw.pre_token();
        for _ in 0..=draw.lognormal(29.0, 0.8) as u64 {
            push(batch, at, Kind::MessageUpdate, 0);
            at += 20 + draw.below(81);
        }
        if draw.chance(0.7) {
            tools(&mut draw, &mut at, &mut calls, |at, kind, id| {
                push(batch, at, kind, id);
            });
        }
        if draw.chance(0.01) {
            push(batch, at, Kind::HumanWaitStart, 0);
            at += draw.lognormal(60_000.0, 1.76) as u64;
            push(batch, at, Kind::HumanWaitEnd, 0);
        }
    }
    let mut end_ms = at;
    let end = if fate < 0.01 {
        end_ms += 3_600_000 + draw.below(23 * 3_600_000);
        RecordedEnd::Hung
    } else if fate < 0.06 {
        end_ms += draw.below(5000);
        RecordedEnd::OpenInModel
    } else {
        let mut event = RunEvent::new(at, Kind::RunEnd);
        event.outcome = Some(Outcome::Completed);
        batch.events_mut().push(&event);
        RecordedEnd::Completed
    };
    batch.close(Run {
        name: format!("w#{number}").into(),
        session: format!("s{}", number / 3).into(),
        harness: ["a", "b", "c"][(number % 3) as usize].into(),
        model: ["m", "n"][(number % 2) as usize].into(),
        started_at_ms: (number % 30) as i64 * 86_400_000,
        end,
        end_ms,
        ..Run::default()
    });
}

/// One to three calls, at times together.
fn tools(draw: &mut Draw, at: &mut u64, calls: &mut u64, mut push: impl FnMut(u64, Kind, u64)) {
    let count = 1 + draw.below(3);
    let lengths: Vec<u64> = (0..count)
        .map(|_| draw.lognormal(1200.0, 2.154) as u64)
        .collect();
    if draw.chance(0.3) {
        let mut ends: Vec<(u64, u64)> = Vec::new();
        for (call, &length) in (*calls..).zip(&lengths) {
            push(*at, Kind::ToolStart, call);
            ends.push((*at + length, call));
        }
        ends.sort_unstable();
        for (end, call) in ends {
            push(end, Kind::ToolEnd, call);
            *at = end;
        }
    } else {
        for (call, &length) in (*calls..).zip(&lengths) {
            push(*at, Kind::ToolStart, call);
            let end = *at + length;
            if length > 30_000 && draw.chance(0.5) {
                let mut beat = *at + 9500 + draw.below(1000);
                while beat < end {
                    push(beat, Kind::ToolUpdate, call);
                    beat += 9500 + draw.below(1000);
                }
            }
            push(end, Kind::ToolEnd, call);
            *at = end;
        }
    }
    *calls += count;
}

/// Batches of about `per_batch` events with at least `events` in all.
pub(crate) fn batches(seed: u64, events: usize, per_batch: usize) -> Vec<Batch> {
    let (mut found, mut batch) = (Vec::new(), Batch::default());
    let (mut total, mut number) = (0, 0);
    while total + batch.events().len() < events {
        run(seed, number, &mut batch);
        number += 1;
        if batch.events().len() >= per_batch {
            total += batch.events().len();
            found.push(std::mem::take(&mut batch));
        }
    }
    found.push(batch);
    found
}
