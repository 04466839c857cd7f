//! The one table of a rules document's keys: what reads them, the schema and the hints go by it.

use policysim_policy::nearest;

/// What a rule is about, told by the one key that only it has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A bound on a figure.
    Metric,
    /// Contradictions between limits.
    Check,
    /// A bound on a key of the policy.
    Key,
    /// Equality with another policy.
    Same,
    /// Silences against the baseline.
    Drift,
}

impl Kind {
    /// Every kind.
    pub(super) const ALL: [Self; 5] = [
        Self::Metric,
        Self::Check,
        Self::Key,
        Self::Same,
        Self::Drift,
    ];

    /// The key that tells it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Metric => "metric",
            Self::Check => "check",
            Self::Key => "key",
            Self::Same => "same_as",
            Self::Drift => "drift",
        }
    }
}

/// One key of a rule.
pub(super) struct RuleKey {
    /// Its name.
    pub(super) name: &'static str,
    /// The kinds of rule that have it.
    pub(super) on: &'static [Kind],
    /// What it means.
    pub(super) doc: &'static str,
}

const fn key(name: &'static str, on: &'static [Kind], doc: &'static str) -> RuleKey {
    RuleKey { name, on, doc }
}

const METRIC: &[Kind] = &[Kind::Metric];

/// Every key of a rule.
pub(super) const RULE_KEYS: [RuleKey; 31] = [
    key("name", &Kind::ALL, "What the rule is called in output."),
    key(
        "confidence",
        &Kind::ALL,
        "Confidence of its one-sided limits, 0.95 unless set.",
    ),
    key(
        "inconclusive",
        &Kind::ALL,
        "What it counts as when it is inconclusive.",
    ),
    key("metric", METRIC, "The figure that is bounded."),
    key("quantile", METRIC, "Which quantile of it, p99 for example."),
    key("cause", METRIC, "Only kills of this cause."),
    key(
        "by",
        METRIC,
        "Every group of this key must hold for itself as well.",
    ),
    key(
        "every",
        METRIC,
        "With by: false lets groups accuse only, and the pool alone pass.",
    ),
    key(
        "stratum",
        METRIC,
        "Only the runs of this group: { model = \"NAME\" }.",
    ),
    key(
        "cluster",
        METRIC,
        "What is independent: day, session or run.",
    ),
    key(
        "sequence",
        METRIC,
        "Windows declared before the data were read, 60s..600s/60s: the policy's is judged in a fixed sequence from the largest down.",
    ),
    key(
        "against",
        METRIC,
        "The policy whose kills newly_… are told from: a preset, a file beside the rules, DIALECT:FILE.",
    ),
    key(
        "hang_rate",
        METRIC,
        "The share of runs that hang, at which a cost is taken.",
    ),
    key(
        "restart",
        METRIC,
        "What a restart costs beyond the work lost, for a cost.",
    ),
    key(
        "parents",
        METRIC,
        "The parents of simulated settlement, as the options of settle describe them; what is left out is the policy's or settle's default.",
    ),
    key("max", &[Kind::Metric, Kind::Key], "At most this."),
    key("min", &[Kind::Metric, Kind::Key], "At least this."),
    key(
        "max_increase",
        METRIC,
        "It rose by at most this since the baseline.",
    ),
    key(
        "max_decrease",
        METRIC,
        "It fell by at most this since the baseline.",
    ),
    key("max_ratio", METRIC, "At most so many times the baseline's."),
    key(
        "min_ratio",
        METRIC,
        "At least so many times the baseline's.",
    ),
    key(
        "check",
        &[Kind::Check],
        "Contradictions that must not be found: an id, several, or all.",
    ),
    key(
        "known",
        &[Kind::Check],
        "Those that must be found, because they are known to be there.",
    ),
    key(
        "key",
        &[Kind::Key],
        "The key of the policy that is compared.",
    ),
    key("is", &[Kind::Key], "Equal to this."),
    key(
        "below",
        &[Kind::Key],
        "Less than this value, or than this other key.",
    ),
    key(
        "above",
        &[Kind::Key],
        "More than this value, or than this other key.",
    ),
    key(
        "same_as",
        &[Kind::Same],
        "The policy that it must equal: a preset, a file beside the rules, DIALECT:FILE.",
    ),
    key("except", &[Kind::Same], "Keys in which it may differ."),
    key(
        "drift",
        &[Kind::Drift],
        "Silences that must not have moved: all, idle_gap, wait.KIND.",
    ),
    key(
        "moved",
        &[Kind::Drift],
        "What a move is: inconclusive unless it says fail.",
    ),
];

/// The keys of `parents`, which are the options of `settle`, with what they mean.
pub(super) const PARENT_KEYS: [(&str, &str); 13] = [
    (
        "wait",
        "Length of a wait, held to the contract; the policy's unless set.",
    ),
    (
        "mode",
        "Whether a wait is for all delegates or any; the policy's unless set.",
    ),
    (
        "min_completed",
        "With mode any: how many delegates must settle, 1 unless set.",
    ),
    (
        "on_expiry",
        "What an expiry makes a parent do; as the policy reads it unless set.",
    ),
    (
        "unchanged",
        "With on_expiry judge: expiries without a change until a delegate is stopped, 2 unless set.",
    ),
    ("tasks", "Tasks of one parent, 4 unless set."),
    (
        "cap",
        "Delegates of one parent that may run at once, 10 unless set.",
    ),
    (
        "spawn_every",
        "Time from one spawn to the next, 0s unless set.",
    ),
    (
        "think",
        "Mean time a parent works before it waits and between waits, 30s unless set.",
    ),
    (
        "unwinding",
        "What a killed delegate takes to unwind, 0s unless set.",
    ),
    (
        "hang_rate",
        "Share of the runs that do not hang which are made to, none unless set.",
    ),
    (
        "nested",
        "Share of the runs that delegate in turn and wait for their own child, none unless set.",
    ),
    (
        "horizon",
        "How long each parent is observed, 48h unless set.",
    ),
];

/// The keys of the document itself, with what they mean.
pub(super) const TOP_KEYS: [(&str, &str); 4] = [
    (
        "confidence",
        "Confidence of one-sided limits where a rule names none, 0.95 unless set.",
    ),
    (
        "inconclusive",
        "What inconclusive checks count as where a rule does not say: report, pass or fail.",
    ),
    (
        "recorded_idle",
        "The idle limit under which the telemetry was recorded, where its kills do not show it.",
    ),
    ("rule", "The rules."),
];

/// What is wrong with an unknown key of the document.
pub(super) fn top_key(unknown: &str) -> String {
    let known = TOP_KEYS.iter().map(|(name, _)| *name);
    let hint = if RULE_KEYS.iter().any(|key| key.name == unknown) {
        "; it is a key of a rule: put it below [[rule]]".to_owned()
    } else {
        hint(nearest(unknown, known))
    };
    format!("unknown key {unknown}{hint}")
}

/// `, did you mean …?` where there is something near.
pub(super) fn hint(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(", did you mean {near}?"))
}
