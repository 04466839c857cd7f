//! Why a summary does not answer a question: what it lacks, and what it has instead.

use std::collections::BTreeMap;

use policysim_policy::{ClockClass, Millis, duration};
use thiserror::Error;

use super::Known;

/// Why a summary does not answer a question.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NeedsEvents {
    /// A candidate, or the base, has a structure, a limit or a shorter window that was not read.
    #[error("it does not hold what {of} is answered from: {}", .missing.join("; "))]
    NotRead {
        /// The policy, in words.
        of: String,
        /// What is missing, beside what is there.
        missing: Vec<String>,
    },
    /// A candidate is answered by replays, and was replayed under none or another policy.
    #[error(
        "{0} can only be replayed (an adaptive window, spare windows, or a limit of 0), and the summary was made with \
         no replays under this very policy"
    )]
    Replayed(String),
}

/// What a plan asks for `of` beyond what is `known`.
pub(super) fn not_read(of: String, known: &[Known], asked: &Known) -> NeedsEvents {
    let nearest = known
        .iter()
        .map(|known| {
            let keys = differing(known, asked);
            let limits = asked.limits();
            let limits = limits
                .iter()
                .filter(|limit| !known.limits().contains(limit));
            ((keys.len(), limits.count()), keys, known)
        })
        .min_by_key(|(distance, ..)| *distance);
    let missing = match nearest {
        Some((_, keys, known)) => lacking(known, asked, keys),
        None => vec!["it holds no structure".to_owned()],
    };
    NeedsEvents::NotRead { of, missing }
}

fn lacking(known: &Known, asked: &Known, keys: Vec<String>) -> Vec<String> {
    let mut missing = keys;
    let (has, wants) = (known.limits(), asked.limits());
    let without: Vec<&str> = wants
        .iter()
        .filter(|limit| !has.contains(limit))
        .map(String::as_str)
        .collect();
    if !without.is_empty() {
        missing.push(format!(
            "it was made without {} and has {}",
            without.join(", "),
            has.join(", ")
        ));
    }
    let show = |ms: u64| duration::show(Millis::new(ms));
    if known.floor_ms > asked.floor_ms {
        missing.push(format!(
            "its idle windows begin at {}, and {} is asked for",
            show(known.floor_ms),
            show(asked.floor_ms)
        ));
    }
    if known.slack_ms < asked.slack_ms {
        missing.push(format!(
            "it was made for {}, and looks every {} are asked for",
            match known.slack_ms {
                0 => "exact detection".to_owned(),
                ms => format!("looks every {}", show(ms)),
            },
            show(asked.slack_ms)
        ));
    }
    missing
}

impl Known {
    /// The keys of the limits that it reads.
    fn limits(&self) -> Vec<String> {
        let mut limits = vec!["idle.window".to_owned()];
        for clock in &self.clocks {
            let key = match clock {
                ClockClass::Idle => continue,
                ClockClass::First => "idle.first",
                ClockClass::Ceiling => "idle.ceiling",
                ClockClass::Startup => "idle.startup",
                ClockClass::Tool => "pause.tool_limit",
                ClockClass::Compaction => "pause.compaction_limit",
                ClockClass::Backoff => "pause.backoff_budget",
                ClockClass::Total => "total.budget",
                ClockClass::Deadline => "a caller's deadline",
                ClockClass::ResultGrace => "kill.result_grace",
            };
            limits.push(key.to_owned());
        }
        if self.caps {
            limits.push("turns.cap".to_owned());
        }
        let tools = self.tools.iter();
        limits.extend(tools.map(|tool| format!("pause.tool_limit.{tool}")));
        limits
    }
}

/// The keys in which two structures differ, each with both values.
fn differing(known: &Known, asked: &Known) -> Vec<String> {
    let (there, here) = (Keys(&known.shape).read(), Keys(&asked.shape).read());
    let value = |of: &BTreeMap<String, &str>, key: &str| {
        of.get(key)
            .map_or_else(|| "off".to_owned(), |value| (*value).to_owned())
    };
    let mut keys: Vec<&String> = there.keys().chain(here.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .map(|key| (key, value(&there, key), value(&here, key)))
        .filter(|(_, there, here)| there != here)
        .map(|(key, there, here)| format!("{key} is {there} there and {here} here"))
        .collect()
}

/// A printed policy document, a key a line below the line of its table.
struct Keys<'a>(&'a str);

impl<'a> Keys<'a> {
    fn read(&self) -> BTreeMap<String, &'a str> {
        let mut table = "";
        let mut found = BTreeMap::new();
        for line in self.0.lines() {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'))
            {
                table = name;
            } else if let Some((key, value)) = line.split_once(" = ") {
                found.insert(format!("{table}.{key}"), value);
            }
        }
        found
    }
}
