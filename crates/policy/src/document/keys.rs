//! The one table of a policy document's keys.

use alloc::string::ToString;

use super::entry::{Entry, read_count};
use super::{KeyInfo, Shape, Value};
use crate::adaptive::{Adaptive, Estimator};
use crate::policy::{Policy, RetrySchedule};
use crate::{Millis, PolicyError, duration, retry};

/// One key: what is known of it, how it is read from `T` and written into `T`.
pub struct Key<T: 'static> {
    /// Path, shape and documentation.
    pub info: KeyInfo,
    /// The value in force; `None` for a key that only writes others, or that does not apply.
    pub(super) get: fn(&T) -> Option<Value>,
    /// Sets the value; the second argument is the key as written, for errors.
    pub(super) set: fn(&mut T, &str, &Value) -> Result<(), PolicyError>,
}

const fn shape_of<T, E: Entry>(_: fn(&T) -> &E) -> Shape {
    E::SHAPE
}

macro_rules! key {
    ($owner:ty, $head:ident $(. $field:ident)*, $doc:literal) => {
        Key::<$owner> {
            info: KeyInfo {
                path: concat!(stringify!($head) $(, ".", stringify!($field))*),
                shape: shape_of(|from: &$owner| &from.$head $(.$field)*),
                doc: $doc,
            },
            get: |from| Entry::write(&from.$head $(.$field)*),
            set: |to, key, value| {
                to.$head $(.$field)* = to.$head $(.$field)*.read_over(key, value)?;
                Ok(())
            },
        }
    };
}

/// Every key of a policy document, table by table, the first of a table being the one that its short form means.
pub const KEYS: &[Key<Policy>] = &[
    key!(Policy, idle.window, "Silence that fires."),
    key!(
        Policy,
        idle.first,
        "Window until the first progress of a phase; \"window\" is the idle window itself."
    ),
    key!(
        Policy,
        idle.rearm,
        "Event kinds that restart the idle clock."
    ),
    key!(
        Policy,
        idle.progress,
        "Re-arming kinds that also end the first window and restart the ceiling; \"rearm\" is all of them."
    ),
    key!(
        Policy,
        idle.phase,
        "Stretch over which the first window, the ceiling and the throttle count."
    ),
    key!(
        Policy,
        idle.throttle,
        "Of the throttled kinds, at most one counts per this period."
    ),
    key!(
        Policy,
        idle.throttled,
        "Event kinds that the throttle holds back; \"rearm\" is all that re-arm."
    ),
    key!(
        Policy,
        idle.ceiling,
        "Second idle clock, restarted by progress only."
    ),
    key!(
        Policy,
        idle.startup,
        "From the accepted spawn to the first event of the run."
    ),
    Key {
        info: KeyInfo {
            path: "idle.grace_cycles",
            shape: Shape::Count { max: 1 },
            doc: "Spare windows granted around human waits.",
        },
        get: |from| from.idle.grace_cycles.write(),
        set: |to, key, value| {
            to.idle.grace_cycles = read_count(key, value, 1)? as u8;
            Ok(())
        },
    },
    key!(
        Policy,
        idle.adaptive,
        "Idle window that follows the gaps seen so far."
    ),
    key!(
        Policy,
        pause.tool,
        "Clocks that wait while a tool call is open."
    ),
    key!(
        Policy,
        pause.human,
        "Clocks that wait while a human is asked; \"all\" makes budgets count active time."
    ),
    key!(
        Policy,
        pause.child,
        "Clocks that wait while a child is waited for."
    ),
    key!(
        Policy,
        pause.compaction,
        "Clocks that wait during a compaction."
    ),
    key!(
        Policy,
        pause.backoff,
        "Clocks that wait during an announced provider backoff."
    ),
    key!(
        Policy,
        pause.human_overlap,
        "A second human wait is counted by its id, or opens nothing."
    ),
    key!(
        Policy,
        pause.turn_closes_tools,
        "A new turn closes calls whose end was lost."
    ),
    key!(
        Policy,
        pause.tool_limit,
        "Limit of one tool call: for all, or by tool name with a default."
    ),
    key!(Policy, pause.compaction_limit, "Limit of one compaction."),
    key!(
        Policy,
        pause.backoff_budget,
        "Limit of all announced backoffs of a segment together."
    ),
    key!(
        Policy,
        pause.human_tools,
        "Tools whose calls are waits for a human."
    ),
    key!(Policy, total.budget, "Hard limit of a segment or run."),
    key!(
        Policy,
        total.scope,
        "The budget starts afresh at each segment, or spans resumes."
    ),
    key!(
        Policy,
        total.caller_deadline,
        "A caller's hard deadline is one more limit, or the only one."
    ),
    key!(Policy, turns.cap, "The most turns."),
    key!(
        Policy,
        turns.by_role,
        "Turn caps of roles; a role without an entry has the general cap."
    ),
    key!(
        Policy,
        turns.scope,
        "Turns are counted afresh at each segment, or over resumes."
    ),
    key!(
        Policy,
        turns.stop,
        "The turn past the cap fires as it starts, or the run ends after executed tool calls at the cap."
    ),
    key!(
        Policy,
        detect.poll,
        "A due time is seen at the next tick of this period; \"tenth\" is a tenth of the idle window."
    ),
    key!(
        Policy,
        task_wait.timeout,
        "Length of a parent's wait that names none."
    ),
    key!(Policy, task_wait.max, "Longest wait a parent may name."),
    key!(
        Policy,
        task_wait.mode,
        "Delegates that must settle to end a wait."
    ),
    key!(
        Policy,
        task_wait.on_expiry,
        "How a parent reads an expired wait."
    ),
    Key {
        info: KeyInfo {
            path: "retry.era",
            shape: Shape::Choice(&["aug22", "0129", "later"]),
            doc: "Sets both classes to a generation of PI-Desktop's provider backoff.",
        },
        get: |_| None,
        set: |to, key, value| {
            let era = value.as_text().and_then(retry::Era::from_name);
            to.retry = era
                .map(retry::Era::schedules)
                .ok_or_else(|| PolicyError::Mismatch {
                    key: key.to_string(),
                    found: value.to_string(),
                    expected: Shape::Choice(&["aug22", "0129", "later"]).to_string(),
                })?;
            Ok(())
        },
    },
    key!(
        Policy,
        retry.rate_limit,
        "Provider backoff after a rate limit, emitting no event unless announced."
    ),
    key!(
        Policy,
        retry.transient,
        "Provider backoff after another transient failure."
    ),
    key!(
        Policy,
        kill.action,
        "A firing ends the run, or is only told."
    ),
    key!(Policy, kill.delay, "From the decision to the first signal."),
    key!(
        Policy,
        kill.grace,
        "From the first signal to the forced end."
    ),
    key!(
        Policy,
        kill.result_grace,
        "From a result to the forced end of a run that does not end."
    ),
    key!(
        Policy,
        kill.late_success,
        "A completion after the firing stands, or does not."
    ),
    key!(
        Policy,
        kill.scope,
        "What is signalled: the child and all it started, or the child alone."
    ),
    key!(
        Policy,
        on_timeout.retry,
        "How many times the parent tries again after a firing."
    ),
    key!(
        Policy,
        on_timeout.resume,
        "A further try resumes the run instead of starting it anew."
    ),
];

/// The tables whose name alone stands for their first key: `idle = "300s"`.
pub const SHORT: &[&str] = &["idle", "total", "turns", "detect", "task_wait"];

/// A schedule before its fields are read: no retries, and no cap but the longest duration that can be written.
pub(super) const EMPTY_SCHEDULE: RetrySchedule = RetrySchedule {
    retries: 0,
    first_delay: Millis::ZERO,
    factor: 2,
    jitter_up_percent: 0,
    jitter_down_percent: 0,
    cap: duration::LONGEST,
};

/// The fields of a retry schedule.
pub(super) const SCHEDULE: &[Key<RetrySchedule>] = &[
    key!(RetrySchedule, retries, "Retries after the first attempt."),
    key!(RetrySchedule, first_delay, "Wait before the first retry."),
    key!(
        RetrySchedule,
        factor,
        "What each further wait is multiplied by."
    ),
    key!(
        RetrySchedule,
        jitter_up_percent,
        "The most that jitter adds, in percent."
    ),
    key!(
        RetrySchedule,
        jitter_down_percent,
        "The most that jitter takes away, in percent."
    ),
    key!(
        RetrySchedule,
        cap,
        "The longest wait, scheduled or asked for by a header."
    ),
];

/// An adaptive window before its fields are read.
pub(super) const ADAPTIVE_START: Adaptive = Adaptive {
    estimator: PHI_START,
    min_samples: 10,
    floor: Millis::from_secs(1),
    cap: None,
};
const PHI_START: Estimator = Estimator::Phi {
    threshold: 8,
    min_std: Millis::new(100),
    pause: Millis::ZERO,
    samples: 200,
};
const RTO_START: Estimator = Estimator::Rto {
    k: 4,
    granularity: Millis::new(100),
};

const ESTIMATORS: Shape = Shape::Choice(&["phi", "rto"]);

macro_rules! estimator_key {
    ($variant:ident . $field:ident, $type:ty, $doc:literal) => {
        Key::<Adaptive> {
            info: KeyInfo {
                path: stringify!($field),
                shape: <$type as Entry>::SHAPE,
                doc: $doc,
            },
            get: |from| match &from.estimator {
                Estimator::$variant { $field, .. } => Entry::write($field),
                _ => None,
            },
            set: |to, key, value| match &mut to.estimator {
                Estimator::$variant { $field, .. } => {
                    *$field = Entry::read(key, value)?;
                    Ok(())
                }
                _ => Err(PolicyError::Mismatch {
                    key: key.to_string(),
                    found: value.to_string(),
                    expected: concat!(
                        "a setting of this estimator, only of ",
                        stringify!($variant)
                    )
                    .to_string(),
                }),
            },
        }
    };
}

/// The fields of an adaptive window; the estimator comes first, because the others depend on it.
pub(super) const ADAPTIVE: &[Key<Adaptive>] = &[
    Key {
        info: KeyInfo {
            path: "estimator",
            shape: ESTIMATORS,
            doc: "Phi accrual, or smoothed mean and deviation (RFC 6298).",
        },
        get: |from| {
            Some(match from.estimator {
                Estimator::Phi { .. } => "phi".into(),
                Estimator::Rto { .. } => "rto".into(),
            })
        },
        set: |to, key, value| {
            to.estimator = match (value.as_text(), to.estimator) {
                // The one already chosen keeps its settings.
                (Some("phi"), chosen @ Estimator::Phi { .. })
                | (Some("rto"), chosen @ Estimator::Rto { .. }) => chosen,
                (Some("phi"), _) => PHI_START,
                (Some("rto"), _) => RTO_START,
                _ => {
                    return Err(PolicyError::Mismatch {
                        key: key.to_string(),
                        found: value.to_string(),
                        expected: ESTIMATORS.to_string(),
                    });
                }
            };
            Ok(())
        },
    },
    estimator_key!(Phi.threshold, u8, "Suspicion level that fires."),
    estimator_key!(Phi.min_std, Millis, "Floor of the standard deviation."),
    estimator_key!(Phi.pause, Millis, "Silence that is acceptable on top."),
    estimator_key!(Phi.samples, u16, "How many latest gaps are kept."),
    estimator_key!(Rto.k, u8, "Multiple of the deviation."),
    estimator_key!(
        Rto.granularity,
        Millis,
        "The least that the deviation adds."
    ),
    key!(
        Adaptive,
        min_samples,
        "With fewer gaps seen the plain window is in force."
    ),
    key!(Adaptive, floor, "The shortest window."),
    key!(Adaptive, cap, "The longest window."),
];
