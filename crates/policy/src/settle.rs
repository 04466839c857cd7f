//! What the parent is told once the run has unwound: the core itself never takes a firing back.

use crate::{LateSuccess, Millis, Outcome, Verdict, Word};

/// The outcome as it reaches the parent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Settlement {
    /// When it is known: a late completion that counts moves it.
    pub at: Millis,
    /// The harness's words for it.
    pub word: Word,
    /// Whether a completion after the firing stands as a success.
    pub late_success: bool,
}

/// Settles a verdict, given how a run that ignored its cancellation ended after the firing, if it did.
pub fn settle(verdict: &Verdict, late: Option<(Millis, Outcome)>, rule: LateSuccess) -> Settlement {
    match (late, rule) {
        (Some((at, Outcome::Completed)), LateSuccess::Accept) if verdict.cause.is_firing() => {
            Settlement {
                at,
                word: Word::plain(Outcome::Completed.name()),
                late_success: true,
            }
        }
        _ => Settlement {
            at: verdict.at,
            word: Word {
                outcome: verdict.outcome,
                code: verdict.code,
            },
            late_success: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Phase};

    #[test]
    fn a_late_completion_counts_only_where_the_policy_says_so() {
        let verdict = Verdict {
            cause: Cause::IdleTimeout,
            at: Millis::new(90),
            due: Millis::new(90),
            phase: Phase::InTool,
            evidence: alloc::vec::Vec::new(),
            outcome: "timed_out",
            code: Some("X"),
        };
        for (late, rule, expected) in [
            (Outcome::Completed, LateSuccess::Accept, (120, "completed")),
            (Outcome::Completed, LateSuccess::Reject, (90, "timed_out")),
            (Outcome::Failed, LateSuccess::Accept, (90, "timed_out")),
        ] {
            let settled = settle(&verdict, Some((Millis::new(120), late)), rule);
            assert_eq!((settled.at.as_u64(), settled.word.outcome), expected);
        }
    }
}
