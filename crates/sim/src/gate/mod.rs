//! A gate: rules that a policy and a closed window of telemetry are held to, each decided as pass, fail, inconclusive
//! or no data (design section 10, statistics section 13).
//!
//! A rate is judged on its one-sided limits, never on the point: what the record cannot tell counts against a pass and
//! not against the policy. Nothing that could not run is a pass.

mod amount;
mod bound;
mod check;
mod cost;
mod counted;
mod detector;
mod evaluate;
mod explain;
mod figures;
mod hits;
mod metric;
mod outcome;
mod policy_rules;
mod rate;
mod rules;
mod settled;
mod swept;

pub use check::{Check, Code, Detail, Difference, Figure, Gate, Part, Parts, Verdict};
pub use detector::Suspicions;
pub use evaluate::{Evidence, evaluate};
pub use explain::{Chances, Characteristics, Claim, GOOD, Plan};
pub use figures::{
    Figures, Origin, Simulated, Telemetry, figures_of, figures_of_summary, summary_of,
};
pub use metric::{Metric, Source, Unit};
pub use outcome::{Fate, Outcome, Outcomes, outcomes, outcomes_of_summary};
pub use policy_rules::finding_keys;
pub use rules::{
    Against, Bound, Compare, DriftRule, FigureRule, FindingsRule, KeyRule, Mapping, Needs, Operand,
    Parents, Rule, Rules, SameRule, Scope, Subject,
};
pub use swept::{Swept, SweptCell, SweptDetector};
