//! Contradictions between the limits of one policy, found without data.
//!
//! Each rule compares two limits that cannot both do what they are there for. The ids are stable; scripts and gate
//! rules may name them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::duration::show;
use crate::retry::Class;
use crate::{First, Millis, Policy, Poll, RetrySchedule, Waits};

/// One contradiction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Its stable name.
    pub id: &'static str,
    /// The two limits that contradict each other.
    pub limits: [Limit; 2],
    /// What follows from it and what to change.
    pub advice: String,
}

impl Finding {
    /// The keys of the document that set its limits.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.limits.iter().map(|limit| limit.key)
    }
}

/// One side of a contradiction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The key of the document that sets it.
    pub key: &'static str,
    /// What it limits.
    pub name: String,
    /// The limit; `None` is off.
    pub span: Option<Millis>,
}

impl Limit {
    fn new(key: &'static str, name: impl Into<String>, span: impl Into<Option<Millis>>) -> Self {
        Self {
            key,
            name: name.into(),
            span: span.into(),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.span.map_or("off".to_string(), show);
        write!(f, "{} {span}", self.name)
    }
}

/// The ids of every rule, in the order in which [`check`] reports them.
pub const RULES: [&str; 8] = [
    "idle-not-below-wait",
    "patience-below-window",
    "silent-retry-envelope",
    "backoff-cap-not-below-idle",
    "first-window-never-fires",
    "total-not-above-idle",
    "poll-comparable-to-window",
    "paused-without-limit",
];

/// A tick is comparable to the window it serves when it is at least this fraction of it.
const COMPARABLE: u64 = 4;

/// Every contradiction of a policy, in the order of [`RULES`].
///
/// ```
/// use policysim_policy::{check, presets};
/// let policy = presets::find("pi-desktop-0119").unwrap_or_default();
/// let findings = check::check(&policy);
/// assert_eq!(findings[0].id, "idle-not-below-wait");
/// ```
pub fn check(policy: &Policy) -> Vec<Finding> {
    let rules: [fn(&Policy) -> Vec<Finding>; 8] = [
        |policy| idle_not_below_wait(policy).into_iter().collect(),
        |policy| patience_below_window(policy).into_iter().collect(),
        silent_retry_envelope,
        |policy| backoff_cap_not_below_idle(policy).into_iter().collect(),
        first_window_never_fires,
        |policy| total_not_above_idle(policy).into_iter().collect(),
        |policy| poll_comparable_to_window(policy).into_iter().collect(),
        |policy| paused_without_limit(policy).into_iter().collect(),
    ];
    rules.iter().flat_map(|rule| rule(policy)).collect()
}

/// The longest silence after which a hung run is told, before any output or after it.
fn longest_window(policy: &Policy) -> Option<Limit> {
    let idle = policy
        .idle
        .window
        .map(|window| Limit::new("idle.window", "idle", window));
    // An adaptive window can grow up to its cap.
    let adaptive = policy.idle.adaptive.and_then(|adaptive| adaptive.cap);
    let idle = match (idle, adaptive) {
        (idle, Some(cap)) if idle.as_ref().is_none_or(|idle| idle.span < Some(cap)) => {
            Some(Limit::new("idle.adaptive", "adaptive idle cap", cap))
        }
        (idle, _) => idle,
    };
    let first = match policy.idle.first {
        First::After(first) => Some(match policy.idle.ceiling {
            Some(ceiling) if ceiling <= first => {
                Limit::new("idle.ceiling", "no-progress ceiling", ceiling)
            }
            _ => Limit::new("idle.first", "first window", first),
        }),
        First::SameAsWindow | First::Off => None,
    };
    match (idle, first) {
        (Some(idle), Some(first)) if first.span > idle.span => Some(first),
        (Some(idle), _) => Some(idle),
        (None, first) => first,
    }
}

fn idle_not_below_wait(policy: &Policy) -> Option<Finding> {
    let window = longest_window(policy)?;
    let wait = policy.task_wait.timeout;
    (window.span >= Some(wait)).then(|| {
        let most = show(Millis::new(wait.as_u64().saturating_sub(1000)));
        Finding {
            id: "idle-not-below-wait",
            advice: format!(
                "a hung delegate cannot settle inside one wait; make {} at most {most}, better by the settling delay",
                window.name
            ),
            limits: [window, Limit::new("task_wait.timeout", "TaskWait", wait)],
        }
    })
}

/// Worse than the rule before: not even the longest wait that a parent may name reaches the window.
fn patience_below_window(policy: &Policy) -> Option<Finding> {
    let window = longest_window(policy)?;
    let longest = policy.task_wait.max;
    (window.span > Some(longest)).then(|| Finding {
        id: "patience-below-window",
        advice: format!(
            "no single wait of the parent lasts until a hung delegate is told; lower {} below {} or raise task_wait.max",
            window.name,
            show(longest)
        ),
        limits: [window, Limit::new("task_wait.max", "longest TaskWait", longest)],
    })
}

/// Retries whose waits emit nothing add up to silence. A wait that is announced and paused is none.
fn silent_retry_envelope(policy: &Policy) -> Vec<Finding> {
    let Some(window) = policy
        .idle
        .window
        .filter(|_| policy.pause.backoff == Waits::None)
    else {
        return Vec::new();
    };
    let classes = [
        (Class::RateLimit, RATE_LIMIT, "rate limit"),
        (Class::Transient, TRANSIENT, "transient failure"),
    ];
    let chains: Vec<(&'static str, &str, &RetrySchedule)> = classes
        .into_iter()
        .filter_map(|(class, key, name)| Some((key, name, policy.retry.of(class)?)))
        .collect();
    let mut findings: Vec<Finding> = chains
        .iter()
        .filter(|(.., schedule)| schedule.envelope().max_header >= window)
        .map(|(key, class, schedule)| {
            let name = format!("{class} ({} retries)", schedule.retries);
            envelope_finding(window, key, &name, schedule.envelope().max_header)
        })
        .collect();
    let both = policy.retry.envelope().max_header;
    if findings.is_empty() && both >= window {
        let retries: u32 = chains.iter().map(|(.., schedule)| schedule.retries).sum();
        let name = format!("both classes in one run ({retries} retries)");
        findings.push(envelope_finding(window, RATE_LIMIT, &name, both));
    }
    findings
}

/// The keys of the schedules of both classes.
const RATE_LIMIT: &str = "retry.rate_limit";
const TRANSIENT: &str = "retry.transient";

fn envelope_finding(window: Millis, key: &'static str, chain: &str, envelope: Millis) -> Finding {
    Finding {
        id: "silent-retry-envelope",
        limits: [
            Limit::new("idle.window", "idle", window),
            Limit::new(
                key,
                format!("provider backoff with headers at their cap, {chain},"),
                envelope,
            ),
        ],
        advice: format!(
            "a delegate in ordinary backoff is killed; lower the retry budget or raise idle above {}",
            show(envelope)
        ),
    }
}

/// A single wait, announced or not, that the window does not outlast.
fn backoff_cap_not_below_idle(policy: &Policy) -> Option<Finding> {
    let window = policy
        .idle
        .window
        .filter(|_| policy.pause.backoff == Waits::None)?;
    let (cap, key) = [
        (policy.retry.transient, TRANSIENT),
        (policy.retry.rate_limit, RATE_LIMIT),
    ]
    .into_iter()
    .filter_map(|(schedule, key)| Some((schedule?, key)))
    .filter(|(schedule, _)| schedule.retries > 0)
    .map(|(schedule, key)| (schedule.cap, key))
    .max_by_key(|(cap, _)| *cap)?;
    (cap >= window).then(|| Finding {
        id: "backoff-cap-not-below-idle",
        limits: [
            Limit::new("idle.window", "idle", window),
            Limit::new(key, "longest single backoff", cap),
        ],
        advice: format!(
            "one wait that the provider asks for is taken for a hang; raise idle above {}, or set pause.backoff = \"idle\" where waits are announced",
            show(cap)
        ),
    })
}

/// The first window never fires where another limit, which wins a tie, is due no later.
fn first_window_never_fires(policy: &Policy) -> Vec<Finding> {
    let First::After(first) = policy.idle.first else {
        return Vec::new();
    };
    [
        ("idle.ceiling", "no-progress ceiling", policy.idle.ceiling),
        ("total.budget", "total budget", policy.total.budget),
    ]
    .into_iter()
    .filter_map(|(key, name, limit)| Some((key, name, limit?)))
    .filter(|(.., limit)| *limit <= first)
    .map(|(key, name, limit)| Finding {
        id: "first-window-never-fires",
        limits: [Limit::new("idle.first", "first window", first), Limit::new(key, name, limit)],
        advice: format!(
            "the {name} always fires before the first window; lower idle.first below {} or raise the {name}",
            show(limit)
        ),
    })
    .collect()
}

fn total_not_above_idle(policy: &Policy) -> Option<Finding> {
    let window = policy.idle.window?;
    let total = policy.total.budget?;
    (total <= window).then(|| Finding {
        id: "total-not-above-idle",
        limits: [
            Limit::new("total.budget", "total budget", total),
            Limit::new("idle.window", "idle", window),
        ],
        advice: format!(
            "the idle window never fires, because the total budget ends the run first; raise total above {} or switch idle off",
            show(window)
        ),
    })
}

fn poll_comparable_to_window(policy: &Policy) -> Option<Finding> {
    let Poll::Every(period) = policy.detect.poll else {
        return None;
    };
    let window = policy.idle.window?;
    (period.as_u64().saturating_mul(COMPARABLE) >= window.as_u64()).then(|| Finding {
        id: "poll-comparable-to-window",
        limits: [
            Limit::new("detect.poll", "poll interval", period),
            Limit::new("idle.window", "idle", window),
        ],
        advice: format!(
            "a hang is told up to {} late, so the window in force is not the one written; poll at most every {}",
            show(period),
            show(Millis::new((window.as_u64() / 10).max(1)))
        ),
    })
}

/// Things that stop the idle clock while they are open and that no other limit ends.
fn paused_without_limit(policy: &Policy) -> Option<Finding> {
    let window = policy.idle.window?;
    let pause = &policy.pause;
    let total = policy.total.budget;
    let classes = [
        (
            "pause.tool",
            "tool calls",
            pause.tool,
            pause.tool_limit.default,
        ),
        ("pause.human", "human waits", pause.human, None),
        ("pause.child", "children", pause.child, None),
        (
            "pause.compaction",
            "compactions",
            pause.compaction,
            pause.compaction_limit,
        ),
        (
            "pause.backoff",
            "backoffs",
            pause.backoff,
            pause.backoff_budget,
        ),
    ];
    let (keys, endless): (Vec<&'static str>, Vec<&str>) = classes
        .into_iter()
        .filter(|(_, _, waits, limit)| {
            let total_runs = total.is_some() && *waits != Waits::All;
            *waits != Waits::None && limit.is_none() && !total_runs
        })
        .map(|(key, class, ..)| (key, class))
        .unzip();
    let key = *keys.first()?;
    Some(Finding {
        id: "paused-without-limit",
        limits: [
            Limit::new(
                key,
                format!("idle (paused for {})", endless.join(", ")),
                window,
            ),
            Limit::new(
                "total.budget",
                if total.is_some() {
                    "total budget (paused as well)"
                } else {
                    "total budget"
                },
                total,
            ),
        ],
        advice: format!(
            "nothing ends a run in which one of these ({}) never returns; give it a limit of its own or a total budget that keeps running",
            endless.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::document::Value;
    use crate::presets;

    /// A preset with keys set, as a document would.
    fn policy(preset: &str, keys: &[(&str, &str)]) -> Policy {
        let mut policy = presets::find(preset).unwrap_or_default();
        for (key, value) in keys {
            policy.set(key, &Value::text(*value)).unwrap();
        }
        policy
    }

    #[track_caller]
    fn finds(policy: &Policy, expected: &[(&str, &str)]) {
        let findings = check(policy);
        let found: Vec<(&str, String)> = findings
            .iter()
            .map(|finding| {
                let [left, right] = &finding.limits;
                (finding.id, format!("{left}, {right}"))
            })
            .collect();
        let expected: Vec<(&str, String)> = expected
            .iter()
            .map(|(id, limits)| (*id, (*limits).to_string()))
            .collect();
        assert_eq!(found, expected);
    }

    /// The three traps that the reference systems are known for.
    #[test]
    fn known_traps() {
        finds(
            &policy("pi-desktop-0119", &[]),
            &[("idle-not-below-wait", "idle 600s, TaskWait 600s")],
        );
        finds(&policy("pi-desktop-0129", &[]), &[]);
        finds(
            &policy("pi-desktop-0129", &[("retry.era", "later")]),
            &[(
                "silent-retry-envelope",
                "idle 300s, provider backoff with headers at their cap, rate limit (10 retries), 300s",
            )],
        );
        let subagent = check(&policy("netclaw-subagent", &[]));
        let never: Vec<&Finding> = subagent
            .iter()
            .filter(|finding| finding.id == "first-window-never-fires")
            .collect();
        assert_eq!(never.len(), 1);
        assert_eq!(
            never[0].limits.clone().map(|limit| limit.span),
            [Some(Millis::from_secs(1800)), Some(Millis::from_secs(1200))]
        );
    }

    /// Each rule on a policy that breaks it alone, and one step on the right side of the bound.
    #[test]
    fn each_rule_at_its_bound() {
        let base = "pi-desktop-0129";
        let set = |keys: &[(&str, &str)]| policy(base, keys);
        finds(&set(&[("idle", "599999ms")]), &[]);
        finds(
            &set(&[("idle", "901s")]),
            &[
                ("idle-not-below-wait", "idle 901s, TaskWait 600s"),
                ("patience-below-window", "idle 901s, longest TaskWait 900s"),
            ],
        );
        finds(
            &set(&[("idle", "182s"), ("retry.rate_limit.cap", "30s")]),
            &[(
                "silent-retry-envelope",
                "idle 182s, provider backoff with headers at their cap, both classes in one run (9 retries), 182s",
            )],
        );
        finds(&set(&[("idle", "182001ms")]), &[]);
        let no_retries = [
            ("idle", "20s"),
            ("retry.transient", "off"),
            ("retry.rate_limit", "off"),
        ];
        finds(&set(&no_retries), &[]);
        finds(
            &set(&[("total", "300s")]),
            &[("total-not-above-idle", "total budget 300s, idle 300s")],
        );
        finds(&set(&[("total", "300001ms")]), &[]);
        finds(
            &set(&[("detect", "75s")]),
            &[("poll-comparable-to-window", "poll interval 75s, idle 300s")],
        );
        finds(&set(&[("detect", "74s")]), &[]);
        finds(
            &set(&[("total", "off")]),
            &[(
                "paused-without-limit",
                "idle (paused for tool calls) 300s, total budget off",
            )],
        );
        finds(&set(&[("total", "off"), ("pause.tool_limit", "30m")]), &[]);
        finds(
            &set(&[("pause.human", "all")]),
            &[(
                "paused-without-limit",
                "idle (paused for human waits) 300s, total budget (paused as well) 6h",
            )],
        );
        finds(
            &set(&[("idle.first", "6h")]),
            &[
                ("idle-not-below-wait", "first window 6h, TaskWait 600s"),
                (
                    "patience-below-window",
                    "first window 6h, longest TaskWait 900s",
                ),
                (
                    "first-window-never-fires",
                    "first window 6h, total budget 6h",
                ),
            ],
        );
    }

    /// An adaptive window is as long as its cap.
    #[test]
    fn an_adaptive_window_counts_with_its_cap() {
        let keys = [
            ("idle.adaptive.estimator", "phi"),
            ("idle.adaptive.cap", "700s"),
        ];
        finds(
            &policy("pi-desktop-0129", &keys),
            &[(
                "idle-not-below-wait",
                "adaptive idle cap 700s, TaskWait 600s",
            )],
        );
        let keys = [
            ("idle.adaptive.estimator", "phi"),
            ("idle.adaptive.cap", "599s"),
        ];
        finds(&policy("pi-desktop-0129", &keys), &[]);
    }

    /// One wait of the provider's choosing longer than the window.
    #[test]
    fn a_single_announced_wait_above_the_window() {
        let keys = [("idle", "30s"), ("retry.transient", "off")];
        let ids: Vec<&str> = check(&policy("pi-desktop-0129", &keys))
            .iter()
            .map(|finding| finding.id)
            .collect();
        assert_eq!(ids, ["silent-retry-envelope", "backoff-cap-not-below-idle"]);
        let paused = [("idle", "30s"), ("pause.backoff", "idle")];
        finds(&policy("pi-desktop-0129", &paused), &[]);
    }

    #[test]
    fn every_finding_names_a_known_rule() {
        for preset in &presets::PRESETS {
            for finding in check(&preset.policy()) {
                assert!(RULES.contains(&finding.id));
                assert!(!finding.advice.is_empty());
            }
        }
    }
}
