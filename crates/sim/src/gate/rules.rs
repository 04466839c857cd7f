//! A rules document, read: what a gate holds a policy and its telemetry to.

use policysim_policy::document::Value;
use policysim_policy::{Cause, Millis, Policy};

use crate::cluster::Cluster;
use crate::gaps::Line;
use crate::settle::{Changes, Habits};
use crate::stats::{Level, Prob};
use crate::strata::StratumKey;

use super::metric::{Metric, Source};

/// What an inconclusive check counts as.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mapping {
    /// A failure; so does a check without data.
    Fail,
    /// A pass. A check without data stays what it is.
    Pass,
    /// Itself.
    #[default]
    Report,
}

impl Mapping {
    /// Every mapping.
    pub const ALL: [Self; 3] = [Self::Fail, Self::Pass, Self::Report];

    /// The mapping's name in rules and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Pass => "pass",
            Self::Report => "report",
        }
    }
}

/// A rules document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Confidence of one-sided limits where a rule names none.
    pub level: Level,
    /// What inconclusive checks count as where a rule does not say.
    pub inconclusive: Mapping,
    /// The idle limit under which the telemetry was recorded, where its kills do not show it.
    pub recorded_idle: Option<Millis>,
    /// The rules, in the order written.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What the reader calls it; without one it is named after what it says.
    pub name: Option<String>,
    /// Line of the document on which it begins, from 1.
    pub line: usize,
    /// Confidence of its one-sided limits.
    pub level: Option<Level>,
    /// What it counts as when it is inconclusive.
    pub inconclusive: Option<Mapping>,
    /// What it is about.
    pub subject: Subject,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // a handful per document
pub enum Subject {
    /// Whether silences have moved since the baseline.
    Drift(DriftRule),
    /// A bound on a figure.
    Figure(FigureRule),
    /// Contradictions between limits.
    Findings(FindingsRule),
    /// A bound on one key of the policy.
    Key(KeyRule),
    /// Equality with another policy.
    Same(SameRule),
}

/// Which way a bound goes, and whether it is on the figure itself or on its change since the baseline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bound {
    /// The figure is at most this.
    Max,
    /// It fell by at most this since the baseline.
    MaxDecrease,
    /// It rose by at most this.
    MaxIncrease,
    /// It is at most this many times the baseline's.
    MaxRatio,
    /// The figure is at least this.
    Min,
    /// It is at least this many times the baseline's.
    MinRatio,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Self; 6] = [
        Self::Max,
        Self::Min,
        Self::MaxIncrease,
        Self::MaxDecrease,
        Self::MaxRatio,
        Self::MinRatio,
    ];

    /// The key that writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::MaxDecrease => "max_decrease",
            Self::MaxIncrease => "max_increase",
            Self::MaxRatio => "max_ratio",
            Self::Min => "min",
            Self::MinRatio => "min_ratio",
        }
    }

    /// Whether it compares with the baseline.
    pub const fn needs_baseline(self) -> bool {
        !matches!(self, Self::Max | Self::Min)
    }

    /// Whether it is a number of times, whatever the figure's unit.
    pub const fn is_ratio(self) -> bool {
        matches!(self, Self::MaxRatio | Self::MinRatio)
    }

    /// Whether larger figures break it.
    pub const fn is_upper(self) -> bool {
        matches!(self, Self::Max | Self::MaxIncrease | Self::MaxRatio)
    }
}

/// The runs that a rule is about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// All of them, and each group of a key for itself.
    Every(StratumKey),
    /// One group.
    One(StratumKey, String),
}

/// Parents that wait, as a rule on simulated settlement describes them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Parents {
    /// How they behave.
    pub habits: Habits,
    /// What is changed of the recorded runs.
    pub changes: Changes,
}

impl Parents {
    /// The same with everything spelled out that is left to the policy.
    #[must_use]
    pub fn under(self, policy: &Policy) -> Self {
        let habits = Habits {
            wait: Some(self.habits.window(policy)),
            mode: Some(self.habits.mode(policy)),
            on_expiry: Some(self.habits.reaction(policy)),
            ..self.habits
        };
        Self { habits, ..self }
    }
}

/// Another policy over the same runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// What it is called.
    pub name: String,
    /// The policy.
    pub policy: Policy,
}

/// A bound on a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRule {
    /// Which figure.
    pub metric: Metric,
    /// Which quantile of it, where it has quantiles.
    pub quantile: Option<Prob>,
    /// Kills of this cause only.
    pub cause: Option<Cause>,
    /// Which runs.
    pub scope: Scope,
    /// With [`Scope::Every`]: every group must be shown to hold. Otherwise groups accuse, and the pool alone passes.
    pub every: bool,
    /// What is taken as independent.
    pub cluster: Cluster,
    /// Windows declared before the data were read, ms: the policy's is judged as one of a fixed sequence from the
    /// largest down.
    pub sequence: Vec<u64>,
    /// The policy that it is compared with, for figures of that kind.
    pub against: Option<Against>,
    /// The share of runs that hang, for costs.
    pub hang_rate: Option<Prob>,
    /// What a restart costs beyond the work lost, for costs.
    pub restart: Millis,
    /// The parents, for simulated settlement.
    pub parents: Parents,
    /// What the rule says of them, as written; empty where it says nothing.
    pub habits: String,
    /// Which way the bound goes.
    pub bound: Bound,
    /// The bound, in the figure's base unit (share, ms, number) or as a number of times.
    pub amount: f64,
    /// The bound as written.
    pub written: String,
}

/// Contradictions between limits.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FindingsRule {
    /// The ids looked for; each is a check of its own.
    pub ids: Vec<&'static str>,
    /// Those that are known to be found: a vanished one fails as a new one does.
    pub known: Vec<&'static str>,
}

/// How a key's value is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Compare {
    /// More than.
    Above,
    /// Less than.
    Below,
    /// The same as.
    Is,
    /// At most.
    Max,
    /// At least.
    Min,
}

impl Compare {
    /// Every comparison.
    pub const ALL: [Self; 5] = [Self::Is, Self::Min, Self::Max, Self::Below, Self::Above];

    /// The key that writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
            Self::Is => "is",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// The sign that says it.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::Below => "<",
            Self::Is => "=",
            Self::Max => "≤",
            Self::Min => "≥",
        }
    }
}

/// What a key is compared with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Operand {
    /// Another key of the same policy.
    Key(String),
    /// A value.
    Value(Value),
}

/// A bound on one key of the policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRule {
    /// The key, `idle.window`.
    pub key: String,
    /// How it is compared.
    pub compare: Compare,
    /// With what.
    pub operand: Operand,
}

/// Equality with another policy.
#[derive(Clone, Debug, PartialEq)]
pub struct SameRule {
    /// What it is called.
    pub name: String,
    /// The other policy.
    pub policy: Policy,
    /// Keys that may differ.
    pub except: Vec<String>,
}

/// Whether silences have moved since the baseline.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DriftRule {
    /// One line; without one, every line is a check of its own.
    pub line: Option<Line>,
    /// Whether a move is a failure. By default it leaves open what the figures are worth: inconclusive.
    pub moved_fails: bool,
}

/// What must be at hand to decide rules.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // a list of things to collect, each or not
pub struct Needs {
    /// Runs or a dataset's counts.
    pub data: bool,
    /// The policy over every run.
    pub replay: bool,
    /// Simulated parents over every run.
    pub parents: Vec<Parents>,
    /// Quantiles of the time until simulated parents know of a hang.
    pub knowledge: Vec<Prob>,
    /// Silences against the policy's window.
    pub detector: bool,
    /// Waits and readings of the idle clock.
    pub silences: bool,
    /// A baseline.
    pub baseline: bool,
    /// The policy with each of these windows, ms, over every run.
    pub windows: Vec<u64>,
    /// These policies over every run.
    pub against: Vec<Policy>,
}

impl Rules {
    /// What must be at hand to decide them.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        for rule in &self.rules {
            match &rule.subject {
                Subject::Drift(_) => {
                    (needs.data, needs.silences, needs.baseline) = (true, true, true);
                }
                Subject::Figure(figure) => {
                    match figure.metric.source() {
                        Source::Policy => {}
                        Source::Replay => needs.replay = true,
                        Source::Detector => needs.detector = true,
                        Source::Settlement => {
                            if figure.metric == Metric::HangToKnowledge {
                                needs.knowledge.extend(figure.quantile);
                            }
                            if !needs.parents.contains(&figure.parents) {
                                needs.parents.push(figure.parents);
                            }
                        }
                        Source::Silences => needs.silences = true,
                        Source::Telemetry => needs.data = true,
                    }
                    needs.baseline |= figure.bound.needs_baseline();
                    needs.windows.extend(&figure.sequence);
                    if let Some(against) = &figure.against
                        && !needs.against.contains(&against.policy)
                    {
                        needs.against.push(against.policy.clone());
                    }
                }
                Subject::Findings(_) | Subject::Key(_) | Subject::Same(_) => {}
            }
        }
        needs.data |= needs.replay || needs.silences || needs.detector || !needs.parents.is_empty();
        needs.windows.sort_unstable();
        needs.windows.dedup();
        needs
    }
}
