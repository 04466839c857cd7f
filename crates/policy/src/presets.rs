//! The reference systems as rows of axis values (`semantics.md` section 8), each with its source.

use crate::policy::{
    CallerDeadline, First, Idle, Kill, KillScope, KindsOrRearm, LateSuccess, OnExpiry, Overlap,
    Pause, PhaseScope, Poll, Scope, TaskWait, Total, TurnStop, Turns, Waits,
};
use crate::retry::Era;
use crate::{ByName, Detect, Kind, KindSet, Millis, OnTimeout, Policy, Word, Words};

/// A named policy.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name in documents and on the command line.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// How the harness treats an unusable setting.
    pub config_fault: ConfigFault,
    row: fn() -> Policy,
}

impl Preset {
    /// Its axis values.
    pub fn policy(&self) -> Policy {
        (self.row)()
    }
}

/// What a harness does with a setting it cannot use. The readers of harness files apply it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ConfigFault {
    /// Any fault puts all values back to their defaults.
    AllDefaults,
    /// Out-of-range values move to the nearest bound.
    Clamp,
    /// Values below a second become one second.
    FloorOneSecond,
    /// The setting does not exist.
    None,
    /// A value that is not positive becomes the default.
    NotPositiveIsDefault,
}

/// Every preset, in the order of the reference.
pub const PRESETS: [Preset; 14] = [
    Preset {
        name: "pi-desktop-0119",
        source: "PI-Desktop ADR 0119",
        config_fault: ConfigFault::Clamp,
        row: pi_desktop_0119,
    },
    Preset {
        name: "pi-desktop-0129",
        source: "PI-Desktop ADR 0129",
        config_fault: ConfigFault::Clamp,
        row: pi_desktop_0129,
    },
    Preset {
        name: "pi-desktop-0166",
        source: "PI-Desktop ADR 0166",
        config_fault: ConfigFault::Clamp,
        row: pi_desktop_0166,
    },
    Preset {
        name: "pi-ext-inproc",
        source: "petergabriel pi-extensions ADR-0010, July 2026 in-process runner",
        config_fault: ConfigFault::AllDefaults,
        row: pi_ext_inproc,
    },
    Preset {
        name: "pi-ext-adr0010",
        source: "petergabriel pi-extensions ADR-0010, August 2026 child process",
        config_fault: ConfigFault::AllDefaults,
        row: pi_ext_adr0010,
    },
    Preset {
        name: "netclaw-tool-reset-on-item",
        source: "Netclaw streaming tool watchdog, mode ResetOnItem (issue #1453 and before)",
        config_fault: ConfigFault::FloorOneSecond,
        row: netclaw_tool_reset_on_item,
    },
    Preset {
        name: "netclaw-tool-first-item-only",
        source: "Netclaw streaming tool watchdog, mode FirstItemOnly (issues #1453, #1467)",
        config_fault: ConfigFault::FloorOneSecond,
        row: netclaw_tool_first_item_only,
    },
    Preset {
        name: "netclaw-tool-wall-clock",
        source: "Netclaw streaming tool watchdog, mode WallClock as of 0.24.1, approval flag ignored",
        config_fault: ConfigFault::FloorOneSecond,
        row: netclaw_tool_wall_clock,
    },
    Preset {
        name: "netclaw-tool-wall-clock-1473",
        source: "Netclaw streaming tool watchdog, mode WallClock after PR 1473",
        config_fault: ConfigFault::FloorOneSecond,
        row: netclaw_tool_wall_clock_1473,
    },
    Preset {
        name: "netclaw-subagent",
        source: "Netclaw ProcessingWatchdog of the sub-agent",
        config_fault: ConfigFault::NotPositiveIsDefault,
        row: netclaw_subagent,
    },
    Preset {
        name: "netclaw-target",
        source: "Netclaw issue #1472, the target rule; the window is ours",
        config_fault: ConfigFault::None,
        row: netclaw_target,
    },
    Preset {
        name: "no-mistakes-silence",
        source: "no-mistakes PR 842, silence budget",
        config_fault: ConfigFault::NotPositiveIsDefault,
        row: no_mistakes_silence,
    },
    Preset {
        name: "no-mistakes-fixed",
        source: "no-mistakes, fixed deadline per invocation",
        config_fault: ConfigFault::NotPositiveIsDefault,
        row: no_mistakes_fixed,
    },
    Preset {
        name: "no-mistakes-fixed-shared",
        source: "no-mistakes, one fixed deadline per review round",
        config_fault: ConfigFault::NotPositiveIsDefault,
        row: no_mistakes_fixed_shared,
    },
];

/// The preset of that name as a policy.
pub fn find(name: &str) -> Option<Policy> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .map(Preset::policy)
}

/// The values that most reference systems share; none of them knows retries, compactions or children.
fn common() -> Policy {
    Policy {
        idle: Idle {
            phase: PhaseScope::Run,
            ..Idle::default()
        },
        pause: Pause {
            tool: Waits::None,
            human: Waits::None,
            child: Waits::None,
            compaction: Waits::None,
            backoff: Waits::None,
            turn_closes_tools: false,
            ..Pause::default()
        },
        kill: Kill {
            grace: Millis::ZERO,
            scope: KillScope::Child,
            ..Kill::default()
        },
        on_timeout: OnTimeout::default(),
        detect: Detect::default(),
        ..Policy::default()
    }
}

const PI_DESKTOP: Words = Words {
    idle: Word::coded("timed_out", "SUBAGENT_IDLE_TIMEOUT"),
    total: Word::coded("timed_out", "SUBAGENT_DURATION_TIMEOUT"),
    turns: Word::plain("truncated"),
    ..Words::OWN
};

fn pi_desktop_0119() -> Policy {
    let common = common();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(600)),
            rearm: KindSet::of_kinds(&[
                Kind::TurnStart,
                Kind::TurnEnd,
                Kind::MessageStart,
                Kind::MessageUpdate,
                Kind::MessageEnd,
                Kind::ToolStart,
                Kind::ToolEnd,
            ]),
            ..common.idle
        },
        pause: Pause {
            tool: Waits::Idle,
            ..common.pause
        },
        total: Total {
            budget: Some(Millis::from_secs(21_600)),
            ..common.total
        },
        turns: Turns {
            stop: TurnStop::AfterTools,
            ..common.turns
        },
        task_wait: TaskWait {
            on_expiry: OnExpiry::Failed,
            ..common.task_wait
        },
        retry: Era::Aug22.schedules(),
        words: &PI_DESKTOP,
        ..common
    }
}

fn pi_desktop_0129() -> Policy {
    let earlier = pi_desktop_0119();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(300)),
            rearm: KindSet::ALL,
            ..earlier.idle
        },
        turns: Turns {
            by_role: ByName::new([
                ("explorer", Some(60)),
                ("code-reviewer", Some(50)),
                ("test-runner", Some(40)),
                ("fixer", Some(80)),
            ]),
            ..earlier.turns
        },
        task_wait: TaskWait::default(),
        retry: Era::Adr0129.schedules(),
        ..earlier
    }
}

fn pi_desktop_0166() -> Policy {
    let earlier = pi_desktop_0129();
    Policy {
        idle: Idle {
            window: None,
            ..earlier.idle
        },
        total: Total::default(),
        turns: Turns {
            by_role: ByName::EMPTY,
            ..earlier.turns
        },
        ..earlier
    }
}

const PI_EXTENSIONS: Words = Words {
    idle: Word::coded("failed", "idle"),
    total: Word::coded("failed", "max_total"),
    ..Words::OWN
};

fn pi_ext_inproc() -> Policy {
    let common = common();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(600)),
            ..common.idle
        },
        total: Total {
            budget: Some(Millis::from_secs(1200)),
            ..common.total
        },
        words: &PI_EXTENSIONS,
        ..common
    }
}

fn pi_ext_adr0010() -> Policy {
    let earlier = pi_ext_inproc();
    let beats = [Kind::ToolStart, Kind::ToolUpdate, Kind::MessageUpdate];
    Policy {
        idle: Idle {
            rearm: KindSet::of_kinds(&[
                Kind::Heartbeat,
                Kind::ToolStart,
                Kind::ToolUpdate,
                Kind::MessageUpdate,
            ]),
            throttle: Some(Millis::from_secs(30)),
            throttled: KindsOrRearm::Kinds(KindSet::of_kinds(&beats)),
            ..earlier.idle
        },
        pause: Pause {
            human: Waits::All,
            human_overlap: Overlap::Refuse,
            ..earlier.pause
        },
        kill: Kill {
            grace: Millis::new(500),
            ..earlier.kill
        },
        ..earlier
    }
}

const NETCLAW_TOOL: Words = Words {
    idle: Word::coded("timed_out", "TOOL_NO_ACTIVITY"),
    first: Word::coded("timed_out", "TOOL_NO_ACTIVITY"),
    ..Words::OWN
};

const NETCLAW_TOOL_STARTUP: Words = Words {
    idle: Word::coded("timed_out", "TOOL_NO_STARTUP"),
    first: Word::coded("timed_out", "TOOL_NO_STARTUP"),
    ..Words::OWN
};

const NETCLAW_TOOL_BUDGET: Words = Words {
    idle: Word::coded("timed_out", "TOOL_BUDGET_EXCEEDED"),
    first: Word::coded("timed_out", "TOOL_BUDGET_EXCEEDED"),
    ..Words::OWN
};

fn netclaw_tool_reset_on_item() -> Policy {
    let common = common();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(90)),
            rearm: KindSet::of_kinds(&[Kind::ToolUpdate]),
            ..common.idle
        },
        pause: Pause {
            human: Waits::Idle,
            ..common.pause
        },
        detect: Detect {
            poll: Poll::Every(Millis::from_secs(1)),
        },
        kill: Kill {
            late_success: LateSuccess::Accept,
            ..common.kill
        },
        words: &NETCLAW_TOOL,
        ..common
    }
}

fn netclaw_tool_first_item_only() -> Policy {
    let other = netclaw_tool_reset_on_item();
    Policy {
        idle: Idle {
            window: None,
            first: First::After(Millis::from_secs(90)),
            ..other.idle
        },
        words: &NETCLAW_TOOL_STARTUP,
        ..other
    }
}

fn netclaw_tool_wall_clock() -> Policy {
    let later = netclaw_tool_wall_clock_1473();
    Policy {
        pause: Pause {
            human: Waits::None,
            ..later.pause
        },
        ..later
    }
}

fn netclaw_tool_wall_clock_1473() -> Policy {
    let other = netclaw_tool_reset_on_item();
    Policy {
        idle: Idle {
            rearm: KindSet::NONE,
            ..other.idle
        },
        words: &NETCLAW_TOOL_BUDGET,
        ..other
    }
}

const NETCLAW_SUBAGENT: Words = Words {
    idle: Word::coded("failed", "NoActivityTimeout"),
    first: Word::coded("failed", "NoActivityTimeout"),
    ceiling: Word::coded("failed", "NoSubstantiveOutputTimeout"),
    aborted: Word::coded("failed", "CancelledByParent"),
    ..Words::OWN
};

fn netclaw_subagent() -> Policy {
    let common = common();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(60)),
            first: First::After(Millis::from_secs(1800)),
            rearm: KindSet::of_kinds(&[
                Kind::Keepalive,
                Kind::MessageUpdate,
                Kind::MessageEnd,
                Kind::ToolStart,
            ]),
            progress: KindsOrRearm::Kinds(KindSet::of_kinds(&[
                Kind::MessageUpdate,
                Kind::MessageEnd,
                Kind::ToolStart,
            ])),
            phase: PhaseScope::ModelCall,
            throttle: Some(Millis::from_secs(2)),
            throttled: KindsOrRearm::Kinds(KindSet::of_kinds(&[
                Kind::Keepalive,
                Kind::MessageUpdate,
            ])),
            ceiling: Some(Millis::from_secs(1200)),
            grace_cycles: 1,
            ..common.idle
        },
        pause: Pause {
            human: Waits::All,
            ..common.pause
        },
        words: &NETCLAW_SUBAGENT,
        ..common
    }
}

const NETCLAW_TARGET: Words = Words {
    idle: Word::coded("failed", "NoProgressTimeout"),
    first: Word::coded("failed", "NoProgressTimeout"),
    ..Words::OWN
};

fn netclaw_target() -> Policy {
    let common = common();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(1200)),
            rearm: KindSet::SUBSTANTIVE,
            ..common.idle
        },
        pause: Pause {
            human: Waits::All,
            child: Waits::Idle,
            ..common.pause
        },
        words: &NETCLAW_TARGET,
        ..common
    }
}

const NO_MISTAKES: Words = Words {
    idle: Word::coded("timed_out", "AGENT_TIMEOUT_SILENT"),
    first: Word::coded("timed_out", "AGENT_TIMEOUT_SILENT"),
    total: Word::coded("timed_out", "AGENT_TIMEOUT_FIXED"),
    deadline: Word::coded("timed_out", "CALLER_DEADLINE"),
    ..Words::OWN
};

fn no_mistakes_silence() -> Policy {
    let common = common();
    Policy {
        idle: Idle {
            window: Some(Millis::from_secs(1800)),
            rearm: KindSet::of_kinds(&[Kind::Stdout, Kind::ProcessStart, Kind::SessionAdvance]),
            ..common.idle
        },
        total: Total {
            caller_deadline: CallerDeadline::Replaces,
            ..common.total
        },
        detect: Detect { poll: Poll::Tenth },
        kill: Kill {
            grace: Millis::from_secs(3),
            scope: KillScope::Tree,
            ..common.kill
        },
        words: &NO_MISTAKES,
        ..common
    }
}

fn no_mistakes_fixed() -> Policy {
    let later = no_mistakes_silence();
    Policy {
        idle: Idle {
            window: None,
            ..later.idle
        },
        total: Total {
            budget: Some(Millis::from_secs(1800)),
            ..later.total
        },
        detect: Detect::default(),
        ..later
    }
}

fn no_mistakes_fixed_shared() -> Policy {
    let single = no_mistakes_fixed();
    Policy {
        total: Total {
            scope: Scope::Run,
            ..single.total
        },
        ..single
    }
}
