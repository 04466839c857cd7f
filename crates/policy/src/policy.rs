//! A policy: every axis value that the watchdog, its driver and its parent go by.
//!
//! Fields bear the names of the document's keys. [`Policy::default`] is a document without a preset:
//! the first value of every axis, so nothing fires.

use crate::adaptive::Adaptive;
use crate::{ByName, KindSet, Millis, Words};

/// What a run is held to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Policy {
    /// The clocks that read silence.
    pub idle: Idle,
    /// What the clocks wait for, and the limits of what is waited for.
    pub pause: Pause,
    /// The budget of the whole run or segment.
    pub total: Total,
    /// The turn cap.
    pub turns: Turns,
    /// When a due time is seen.
    pub detect: Detect,
    /// The parent's wait for its delegates.
    pub task_wait: TaskWait,
    /// The provider backoff the run is subject to.
    pub retry: Retry,
    /// What the driver does after a firing.
    pub kill: Kill,
    /// What the parent does after a firing.
    pub on_timeout: OnTimeout,
    /// How the outcome is called.
    pub words: &'static Words,
}

/// `[idle]`: the clocks that read silence. A limit of `None` is off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Idle {
    /// Silence that fires.
    pub window: Option<Millis>,
    /// The window in force until the phase's first progress.
    pub first: First,
    /// Evidence: restarts the window in force.
    pub rearm: KindSet,
    /// The re-arms that also end `first`, restart the ceiling and pass the throttle once per phase.
    pub progress: KindsOrRearm,
    /// The stretch over which `first`, `ceiling` and the throttle count.
    pub phase: PhaseScope,
    /// The period of the leading-edge throttle.
    pub throttle: Option<Millis>,
    /// The kinds that the throttle holds back.
    pub throttled: KindsOrRearm,
    /// The second idle clock, restarted by progress only.
    pub ceiling: Option<Millis>,
    /// From the watchdog's start to the first event but `spawn`.
    pub startup: Option<Millis>,
    /// How many spare windows a grant gives: 0 or 1.
    pub grace_cycles: u8,
    /// A window that follows the gaps seen so far.
    pub adaptive: Option<Adaptive>,
}

impl Default for Idle {
    fn default() -> Self {
        Self {
            window: None,
            first: First::SameAsWindow,
            rearm: KindSet::ALL,
            progress: KindsOrRearm::Rearm,
            phase: PhaseScope::ModelCall,
            throttle: None,
            throttled: KindsOrRearm::Rearm,
            ceiling: None,
            startup: None,
            grace_cycles: 0,
            adaptive: None,
        }
    }
}

/// `idle.first`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum First {
    /// Not given: the idle window.
    #[default]
    SameAsWindow,
    /// No window until the first progress.
    Off,
    /// A window of its own, which fires as `first_timeout`.
    After(Millis),
}

/// A kind set that is the re-arm set unless given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum KindsOrRearm {
    /// Not given: the kinds of `idle.rearm`.
    #[default]
    Rearm,
    /// These kinds.
    Kinds(KindSet),
}

impl KindsOrRearm {
    /// The kinds meant, under that re-arm set.
    pub const fn resolve<'a>(&'a self, rearm: &'a KindSet) -> &'a KindSet {
        match self {
            Self::Rearm => rearm,
            Self::Kinds(kinds) => kinds,
        }
    }
}

/// `idle.phase`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PhaseScope {
    /// From the segment's start, or the last close of something open, to `message_end` or the next opening.
    #[default]
    ModelCall,
    /// The segment.
    Run,
}

/// `[pause]`: what the clocks wait for while it is open.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pause {
    /// Which clocks wait for a tool call.
    pub tool: Waits,
    /// Which clocks wait for a human.
    pub human: Waits,
    /// Which clocks wait for a child.
    pub child: Waits,
    /// Which clocks wait for a compaction.
    pub compaction: Waits,
    /// Which clocks wait for an announced provider backoff.
    pub backoff: Waits,
    /// What a second human wait does while one is open.
    pub human_overlap: Overlap,
    /// Whether a new turn closes calls that are still open.
    pub turn_closes_tools: bool,
    /// The limit of one tool call.
    pub tool_limit: ToolLimit,
    /// The limit of one compaction.
    pub compaction_limit: Option<Millis>,
    /// The open time of all backoffs of a segment together.
    pub backoff_budget: Option<Millis>,
    /// Names of tools whose calls are human waits.
    pub human_tools: ByName<()>,
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            tool: Waits::Idle,
            human: Waits::Idle,
            child: Waits::Idle,
            compaction: Waits::Idle,
            backoff: Waits::None,
            human_overlap: Overlap::Set,
            turn_closes_tools: true,
            tool_limit: ToolLimit::default(),
            compaction_limit: None,
            backoff_budget: None,
            human_tools: ByName::EMPTY,
        }
    }
}

/// Which clocks wait while something is open.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Waits {
    /// The idle clocks, the total and the limits of the other open things.
    All,
    /// The idle clocks.
    Idle,
    /// None.
    None,
}

/// `pause.human_overlap`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Overlap {
    /// Each wait is counted by its id.
    #[default]
    Set,
    /// A second wait opens nothing.
    Refuse,
}

/// `pause.tool_limit`: a limit for every call, and others by tool name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ToolLimit {
    /// The limit of a tool that is not named.
    pub default: Option<Millis>,
    /// The limits of named tools; `None` is off for that tool.
    pub by_name: ByName<Option<Millis>>,
}

impl ToolLimit {
    /// The limit of a call of the tool `name`.
    pub fn of(&self, name: &str) -> Option<Millis> {
        self.by_name.find(name).copied().unwrap_or(self.default)
    }
}

/// `[total]`: the budget of the whole run or segment.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Total {
    /// The budget.
    pub budget: Option<Millis>,
    /// Whether it starts afresh at each segment.
    pub scope: Scope,
    /// What a caller's hard deadline does to the other limits.
    pub caller_deadline: CallerDeadline,
}

/// What a count or budget spans.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Scope {
    /// From an outermost start or resume to its end.
    #[default]
    Segment,
    /// All segments together.
    Run,
}

/// `total.caller_deadline`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CallerDeadline {
    /// It is one more limit.
    #[default]
    Adds,
    /// It is the only limit of its segment.
    Replaces,
}

/// `[turns]`: the turn cap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Turns {
    /// The most turns.
    pub cap: Option<u32>,
    /// The caps of roles; a role without an entry has `cap`.
    pub by_role: ByName<Option<u32>>,
    /// Whether turns are counted afresh at each segment.
    pub scope: Scope,
    /// Where a run at its cap is stopped.
    pub stop: TurnStop,
}

impl Turns {
    /// The cap of `role`; an empty or unlisted role has the general one.
    pub fn cap_of(&self, role: &str) -> Option<u32> {
        self.by_role.find(role).copied().unwrap_or(self.cap)
    }
}

/// `turns.stop`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TurnStop {
    /// At the end of a turn all of whose calls were executed at the cap.
    AfterTools,
    /// As the turn after the last permitted one starts.
    #[default]
    NextStart,
}

/// `[detect]`: when a due time is seen.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Detect {
    /// How the driver looks.
    pub poll: Poll,
}

/// `detect.poll`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Poll {
    /// At the due time.
    #[default]
    Exact,
    /// At the next multiple of this period from the segment's start.
    Every(Millis),
    /// Like `Every`, a tenth of the idle window, 2 ms to 10 s.
    Tenth,
}

/// `[task_wait]`: the parent's wait for its delegates.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct TaskWait {
    /// The wait's length when the parent names none.
    pub timeout: Millis,
    /// The longest length it may name.
    pub max: Millis,
    /// How many delegates it waits for.
    pub mode: WaitMode,
    /// How the parent reads an expiry.
    pub on_expiry: OnExpiry,
}

impl Default for TaskWait {
    fn default() -> Self {
        Self {
            timeout: Millis::from_secs(600),
            max: Millis::from_secs(900),
            mode: WaitMode::All,
            on_expiry: OnExpiry::StillRunning,
        }
    }
}

/// `task_wait.mode`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum WaitMode {
    /// Every target.
    #[default]
    All,
    /// As many as asked for, one by default.
    Any,
}

/// `task_wait.on_expiry`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum OnExpiry {
    /// As a failure of the delegates (the older wording).
    Failed,
    /// As delegates that are still running.
    #[default]
    StillRunning,
}

/// `[retry]`: the provider backoff the run is subject to. `None` is no retry of that class.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Retry {
    /// After a rate limit (429).
    pub rate_limit: Option<RetrySchedule>,
    /// After another transient failure.
    pub transient: Option<RetrySchedule>,
}

/// The waits between the attempts of one class.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RetrySchedule {
    /// How many retries follow the first attempt.
    pub retries: u32,
    /// The wait before the first retry.
    pub first_delay: Millis,
    /// What each further wait is multiplied by.
    pub factor: u32,
    /// The most that jitter adds, in percent of the wait.
    pub jitter_up_percent: u32,
    /// The most that jitter takes away, in percent of the wait.
    pub jitter_down_percent: u32,
    /// The longest wait, whether scheduled or asked for by a header.
    pub cap: Millis,
}

/// `[kill]`: what the driver does after a firing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Kill {
    /// Whether it ends the run or only tells.
    pub action: KillAction,
    /// From the decision to the first signal.
    pub delay: Millis,
    /// From the first signal to the forced end.
    pub grace: Millis,
    /// From a `result` to the forced end of a run that does not end.
    pub result_grace: Option<Millis>,
    /// What a completion after the firing is worth.
    pub late_success: LateSuccess,
    /// What is signalled.
    pub scope: KillScope,
}

impl Default for Kill {
    fn default() -> Self {
        Self {
            action: KillAction::Kill,
            delay: Millis::ZERO,
            grace: Millis::from_secs(3),
            result_grace: None,
            late_success: LateSuccess::Reject,
            scope: KillScope::Tree,
        }
    }
}

/// `kill.action`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum KillAction {
    /// The run is ended.
    #[default]
    Kill,
    /// The firing is told, the run goes on.
    Notify,
}

/// `kill.late_success`: a completion after the firing, by a child that ignored cancellation.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum LateSuccess {
    /// It stands as a success.
    Accept,
    /// The firing stands.
    #[default]
    Reject,
}

/// `kill.scope`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum KillScope {
    /// The child process, or the in-process run, alone.
    Child,
    /// The child and everything it started.
    #[default]
    Tree,
}

/// `[on_timeout]`: what the parent does after a firing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct OnTimeout {
    /// How many times it tries again.
    pub retry: u32,
    /// Whether a retry resumes the run instead of starting it anew.
    pub resume: bool,
}
