//! Netclaw session settings: whole seconds.
//!
//! Source: the session configuration binding (`semantics.md` 6.1.1, 6.2.1, 6.2.3).

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Resolved, Setting, Warning};
use crate::Millis;

/// The four settings, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'s> {
    /// From a model call's start to its first substantive output.
    pub prefill: Setting<'s>,
    /// Between substantive outputs.
    pub inter_delta: Setting<'s>,
    /// Without any substantive output.
    pub no_progress: Setting<'s>,
    /// One tool call.
    pub tool_timeout: Setting<'s>,
}

/// The limits in force.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// First-output window.
    pub prefill: Millis,
    /// Idle window.
    pub inter_delta: Millis,
    /// Ceiling.
    pub no_progress: Millis,
    /// Tool budget.
    pub tool_timeout: Millis,
}

impl Limits {
    /// The sub-agent's defaults (6.2.1) and the tool budget's (6.1.1).
    pub const DEFAULT: Self = Self {
        prefill: Millis::from_secs(1800),
        inter_delta: Millis::from_secs(60),
        no_progress: Millis::from_secs(1200),
        tool_timeout: Millis::from_secs(90),
    };
}

/// Resolves the settings: a window of zero or less is its default, so none can be switched off here; the tool
/// budget is at least one second.
pub fn resolve(settings: &Settings<'_>) -> Resolved<Limits> {
    let mut warnings = Vec::new();
    let defaults = Limits::DEFAULT;
    let limits = Limits {
        prefill: window("prefill", settings.prefill, defaults.prefill, &mut warnings),
        inter_delta: window(
            "inter-delta",
            settings.inter_delta,
            defaults.inter_delta,
            &mut warnings,
        ),
        no_progress: window(
            "no-progress",
            settings.no_progress,
            defaults.no_progress,
            &mut warnings,
        ),
        tool_timeout: tool(settings.tool_timeout, defaults.tool_timeout, &mut warnings),
    };
    Resolved { limits, warnings }
}

fn window(
    key: &'static str,
    setting: Setting<'_>,
    default: Millis,
    warnings: &mut Vec<Warning>,
) -> Millis {
    match setting {
        Setting::Missing | Setting::Null => return default,
        _ => {}
    }
    let seconds = setting.whole().and_then(|s| u64::try_from(s).ok());
    if let Some(seconds @ 1..) = seconds {
        return Millis::from_secs(seconds);
    }
    warnings.push(Warning {
        key,
        found: setting.to_string(),
        taken: format!(
            "not above zero, the default {}s is used",
            default.as_u64() / 1000
        ),
    });
    default
}

fn tool(setting: Setting<'_>, default: Millis, warnings: &mut Vec<Warning>) -> Millis {
    let Some(written) = setting.whole() else {
        if !matches!(setting, Setting::Missing | Setting::Null) {
            warnings.push(Warning {
                key: "tool timeout",
                found: setting.to_string(),
                taken: format!(
                    "not a whole number of seconds, the default {}s is used",
                    default.as_u64() / 1000
                ),
            });
        }
        return default;
    };
    let seconds = written.max(1);
    if seconds != written {
        warnings.push(Warning {
            key: "tool timeout",
            found: written.to_string(),
            taken: "raised to the minimum 1s".to_string(),
        });
    }
    Millis::from_secs(seconds.unsigned_abs())
}
