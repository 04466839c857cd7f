//! pi-extensions `settings.json`: `subagents.idleTimeoutMs` and `subagents.maxTotalMs`, whole milliseconds.
//!
//! Source: the settings resolver beside ADR-0010 (`semantics.md` section 5, Validation).

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::{Resolved, Setting, Warning};
use crate::Millis;

const IDLE: RangeInclusive<i64> = 5_000..=1_800_000;
const TOTAL: RangeInclusive<i64> = 60_000..=7_200_000;

/// The key of the idle window, below `subagents`.
pub const IDLE_KEY: &str = "idleTimeoutMs";
/// The key of the total budget, below `subagents`.
pub const TOTAL_KEY: &str = "maxTotalMs";

/// The two limits; they are taken or dropped together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The idle window.
    pub idle: Millis,
    /// The total budget.
    pub total: Millis,
}

/// Resolves the two settings over the preset's own limits.
///
/// Any fault in either (missing, text, fraction, out of range, total below idle) drops both to the defaults.
/// Zero is a fault, not "off". With neither key there is nothing to warn of.
pub fn resolve(idle: Setting<'_>, total: Setting<'_>, defaults: Limits) -> Resolved<Limits> {
    if idle == Setting::Missing && total == Setting::Missing {
        return Resolved {
            limits: defaults,
            warnings: Vec::new(),
        };
    }
    match (in_range(idle, &IDLE), in_range(total, &TOTAL)) {
        (Some(idle_ms), Some(total_ms)) if total_ms >= idle_ms => Resolved {
            limits: Limits {
                idle: Millis::new(idle_ms),
                total: Millis::new(total_ms),
            },
            warnings: Vec::new(),
        },
        (Some(_), Some(_)) => dropped(IDLE_KEY, idle, "above maxTotalMs", defaults),
        (Some(_), None) => dropped(
            TOTAL_KEY,
            total,
            "not a whole number of 60000 to 7200000",
            defaults,
        ),
        (None, _) => dropped(
            IDLE_KEY,
            idle,
            "not a whole number of 5000 to 1800000",
            defaults,
        ),
    }
}

fn in_range(setting: Setting<'_>, range: &RangeInclusive<i64>) -> Option<u64> {
    let whole = setting.whole().filter(|ms| range.contains(ms))?;
    u64::try_from(whole).ok()
}

fn dropped(
    key: &'static str,
    setting: Setting<'_>,
    fault: &str,
    defaults: Limits,
) -> Resolved<Limits> {
    let taken = alloc::format!(
        "{fault}, so both limits fall back to their defaults ({} and {})",
        defaults.idle,
        defaults.total
    );
    Resolved {
        limits: defaults,
        warnings: vec![Warning {
            key,
            found: setting.to_string(),
            taken,
        }],
    }
}
