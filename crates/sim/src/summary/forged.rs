//! Summaries that somebody wrote numbers into, checksum and all, end in an answer or in an error.

#![allow(clippy::unwrap_used)]

use policysim_policy::{Millis, Policy, presets};

use super::bytes::sealed;
use super::*;
use crate::cluster::Cluster;
use crate::gaps::findings::{self, Setting};
use crate::run::Fleet;
use crate::scan::InMemory;
use crate::strata::StratumKey;
use crate::synth::{Generator, Model, Options, Sampling};

fn fleet(runs: u64) -> Fleet {
    let text = include_str!("../../../../data/models/adr-0129.toml");
    let model: Model = toml::from_str(text).unwrap();
    let options = Options {
        seed: 8,
        runs,
        sampling: Sampling::Stratified,
    };
    Generator::new(&model, None, options).unwrap().fleet()
}

fn candidates(base: &Policy) -> Vec<Candidate> {
    let with = |window: Option<Millis>| {
        let mut policy = base.clone();
        policy.idle.window = window;
        Candidate {
            policy,
            settings: Vec::new(),
        }
    };
    let mut all = vec![with(base.idle.window)];
    if !is_replayed(base) {
        all.extend([30, 90, 900].map(|s| with(Some(Millis::from_secs(s)))));
        all.push(with(None));
    }
    all
}

/// Everything that is asked of a summary anywhere.
fn ask(summary: &Summary, base: &Policy) {
    let candidates = candidates(base);
    let question = Question {
        base,
        candidates: &candidates,
        keys: &StratumKey::ALL,
        seed: 0,
        cluster: Cluster::Day,
    };
    if let Ok(swept) = summary.sweep(&question) {
        let evidence = swept.evidence(Some(0.01));
        assert_eq!(swept.cells(evidence.is_split()).len(), candidates.len());
        swept.detectors(&candidates);
        let recorded = swept.recorded(None);
        recorded.abort_envelope(Millis::from_secs(300));
        findings::of_counted(&swept.counted(), Setting::default(), |_, _| None);
    }
    if let Ok(each) = summary.each(&question) {
        assert_eq!(each.len(), summary.runs());
    }
    let _ = crate::gate::outcomes_of_summary(summary, base);
}

/// `number` as the file writes it.
fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// Every `stride`th byte of a summary replaced by numbers of all sizes, and the checksum made right again.
fn forge(base: &Policy, runs: u64, stride: usize) -> (usize, usize) {
    let fleet = fleet(runs);
    let candidates = candidates(base);
    let question = Question {
        base,
        candidates: &candidates,
        keys: &[],
        seed: 0,
        cluster: Cluster::Day,
    };
    let Ok(summary) = summarise(&InMemory::new(&fleet), &question);
    let bytes = summary.to_bytes(b"");
    let (body, _) = bytes.split_last_chunk::<8>().unwrap();
    let (mut read, mut refused) = (0, 0);
    for place in (8..body.len()).step_by(stride) {
        for number in [0, 1 << 20, 1 << 40, i64::MAX as u64, u64::MAX] {
            let mut forged = body[..place].to_vec();
            forged.extend(varint(number));
            forged.extend(&body[place + 1..]);
            match Summary::from_bytes(b"", &sealed(forged)) {
                Ok(summary) => {
                    read += 1;
                    ask(&summary, base);
                }
                Err(_) => refused += 1,
            }
        }
    }
    (read, refused)
}

#[test]
fn forged_numbers_are_refused_or_answered() {
    for (preset, stride) in [("pi-desktop-0129", 7), ("netclaw-subagent", 31)] {
        let base = presets::find(preset).unwrap();
        let (read, refused) = forge(&base, 4, stride);
        assert!(read > 50 && refused > 50, "{preset}: {read}, {refused}");
    }
}

/// Two counts that together are more than a number holds.
#[test]
fn counts_that_do_not_add_up_are_impossible() {
    let mut summary = Summary::default();
    summary.waits.n = 1 << 53;
    let bytes = summary.to_bytes(b"");
    assert!(Summary::from_bytes(b"", &bytes).is_ok());
    summary.waits.left_out = 1;
    let error = Summary::from_bytes(b"", &summary.to_bytes(b"")).unwrap_err();
    assert_eq!(error, DamagedSummary::Impossible);
}
