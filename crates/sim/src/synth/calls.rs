//! The calls of a turn: which tools, how many, and how; how long they take is drawn elsewhere.

use super::model::Tools;
use super::rng::Stream;
use crate::run::WaitKind;

/// One call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Call {
    /// Index of its tool.
    pub(super) tool: usize,
    /// It waits for an approval first.
    pub(super) asks_first: bool,
}

/// The calls of a turn that is not the last of its run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Calls {
    /// They run at once.
    pub(super) parallel: bool,
    /// The calls; a turn may go on without one.
    pub(super) list: Vec<Call>,
}

impl Calls {
    /// The calls of the next turn.
    pub(super) fn of_turn(tools: &Tools, stream: &mut Stream) -> Self {
        if !stream.chance(tools.turn_share_ppm) {
            return Self::default();
        }
        let weights = tools.calls_weights.iter().map(|&weight| u64::from(weight));
        let calls = 1 + stream.pick(weights);
        let parallel = calls > 1 && stream.chance(tools.parallel_ppm);
        let list = (0..calls).map(|_| {
            let tool = stream.pick(tools.list.iter().map(|tool| u64::from(tool.weight)));
            let asks_first =
                tools.list[tool].wait_kind() == WaitKind::Tool && stream.chance(tools.approval_ppm);
            Call { tool, asks_first }
        });
        Self {
            parallel,
            list: list.collect(),
        }
    }
}
