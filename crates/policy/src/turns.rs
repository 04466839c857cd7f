//! The turn count and its cap.

use crate::{Kind, TurnStop};

/// Turns so far, and the calls of the current one.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct TurnCount {
    /// Turns begun.
    pub(crate) turns: u32,
    calls: u32,
    asking: u32,
    /// Whether an executed call met the cap.
    pub(crate) marked: bool,
}

/// What a counted event means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Counted {
    /// Nothing.
    Goes,
    /// The run met its cap just now; it ends after this turn if every call asks for it.
    Met,
    /// The run is stopped here.
    Stops,
}

impl TurnCount {
    /// Counts an event under a cap. `executed` is about ends of calls.
    pub(crate) fn count(
        &mut self,
        kind: Kind,
        executed: bool,
        cap: u32,
        stop: TurnStop,
    ) -> Counted {
        match (kind, stop) {
            (Kind::TurnStart, _) => {
                self.turns = self.turns.saturating_add(1);
                self.calls = 0;
                self.asking = 0;
                if stop == TurnStop::NextStart && self.turns > cap {
                    return Counted::Stops;
                }
            }
            (Kind::ToolEnd, TurnStop::AfterTools) => {
                self.calls = self.calls.saturating_add(1);
                if executed && self.turns >= cap {
                    self.asking = self.asking.saturating_add(1);
                    let first = !self.marked;
                    self.marked = true;
                    if first {
                        return Counted::Met;
                    }
                }
            }
            (Kind::TurnEnd, TurnStop::AfterTools)
                if self.calls > 0 && self.asking == self.calls =>
            {
                return Counted::Stops;
            }
            _ => {}
        }
        Counted::Goes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Counted::{Goes, Met, Stops};

    fn check(cap: u32, stop: TurnStop, events: &[(Kind, bool)], expected: &[Counted]) {
        let mut count = TurnCount::default();
        let seen: alloc::vec::Vec<Counted> = events
            .iter()
            .map(|&(kind, executed)| count.count(kind, executed, cap, stop))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn next_start_stops_turn_n_plus_1() {
        let turn = (Kind::TurnStart, true);
        check(
            2,
            TurnStop::NextStart,
            &[turn, turn, turn],
            &[Goes, Goes, Stops],
        );
    }

    #[test]
    fn after_tools_needs_every_call_of_the_turn() {
        check(
            1,
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
            &[Goes, Met, Goes, Goes, Goes, Goes, Goes, Goes, Stops],
        );
    }
}
