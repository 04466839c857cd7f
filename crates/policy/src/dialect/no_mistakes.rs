//! no-mistakes configuration: `agent_timeout`, a duration with its unit.
//!
//! Source: `semantics.md` 7.1.2 and 7.1.3.

use crate::Millis;

/// The key of the budget.
pub const BUDGET_KEY: &str = "agent_timeout";

/// The silence budget of an invocation when nothing sets one.
pub const DEFAULT_BUDGET: Millis = Millis::from_secs(1800);

/// The budget in force: the invocation's own if above zero, else the configured one if above zero, else the
/// default. A zero never switches it off.
pub fn budget(own: Option<Millis>, configured: Option<Millis>) -> Millis {
    [own, configured]
        .into_iter()
        .flatten()
        .find(|&budget| budget > Millis::ZERO)
        .unwrap_or(DEFAULT_BUDGET)
}
