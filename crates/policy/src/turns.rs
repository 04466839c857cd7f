//! The turn count and its cap.

use crate::{Kind, TurnStop};

/// Turns so far, and the calls of the current one. Which caps they meet is asked afterwards.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct TurnCount {
    /// Turns begun.
    pub(crate) turns: u32,
    calls: u32,
    executed: u32,
    /// The most turns begun when a call was executed: every cap up to it is met.
    pub(crate) reached: Option<u32>,
}

impl TurnCount {
    /// Counts an event; `executed` is about ends of calls. Answers the largest cap that stops the run here.
    pub(crate) const fn count(
        &mut self,
        kind: Kind,
        executed: bool,
        stop: TurnStop,
    ) -> Option<u32> {
        match (kind, stop) {
            (Kind::TurnStart, _) => {
                self.turns = self.turns.saturating_add(1);
                self.calls = 0;
                self.executed = 0;
                if matches!(stop, TurnStop::NextStart) {
                    return Some(self.turns - 1);
                }
            }
            (Kind::ToolEnd, TurnStop::AfterTools) => {
                self.calls = self.calls.saturating_add(1);
                if executed {
                    self.executed = self.executed.saturating_add(1);
                    // turns only grow
                    self.reached = Some(self.turns);
                }
            }
            (Kind::TurnEnd, TurnStop::AfterTools)
                if self.calls > 0 && self.executed == self.calls =>
            {
                return Some(self.turns);
            }
            _ => {}
        }
        None
    }

    /// Whether an executed call met the cap: the run ends after this turn if every call of it asks for that.
    pub(crate) fn meets(&self, cap: u32) -> bool {
        self.reached.is_some_and(|reached| reached >= cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stop: TurnStop, events: &[(Kind, bool)], expected: &[(Option<u32>, Option<u32>)]) {
        let mut count = TurnCount::default();
        let seen: alloc::vec::Vec<(Option<u32>, Option<u32>)> = events
            .iter()
            .map(|&(kind, executed)| (count.count(kind, executed, stop), count.reached))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn next_start_stops_turn_n_plus_1() {
        let turn = (Kind::TurnStart, true);
        check(
            TurnStop::NextStart,
            &[turn, turn, turn],
            &[(Some(0), None), (Some(1), None), (Some(2), None)],
        );
    }

    #[test]
    fn after_tools_needs_every_call_of_the_turn() {
        check(
            TurnStop::AfterTools,
            &[
                (Kind::TurnStart, true),
                (Kind::ToolEnd, true),
                (Kind::ToolEnd, false),
                (Kind::TurnEnd, true),
                (Kind::TurnStart, true),
                (Kind::TurnEnd, true),
                (Kind::TurnStart, true),
                (Kind::ToolEnd, true),
                (Kind::TurnEnd, true),
            ],
            &[
                (None, None),
                (None, Some(1)),
                (None, Some(1)),
                (None, Some(1)),
                (None, Some(1)),
                (None, Some(1)),
                (None, Some(1)),
                (None, Some(3)),
                (Some(3), Some(3)),
            ],
        );
    }
}
