//! PI-Desktop subagent front matter: `idle-timeout`, `max-duration` (seconds) and `maxTurns`, all text.
//!
//! Source: the definition parser of the ADR 0129 generation (`semantics.md` 1.17 and 1.18).

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Resolved, Warning};
use crate::{Decimal, Millis};

/// A key of the front matter that holds seconds, with its bounds.
struct Seconds {
    key: &'static str,
    min: i64,
    max: i64,
}

const IDLE: Seconds = Seconds {
    key: IDLE_KEY,
    min: 10,
    max: 21_600,
};
const DURATION: Seconds = Seconds {
    key: DURATION_KEY,
    min: 60,
    max: 21_600,
};
const MAX_TURNS: i64 = 80;

/// The key of the idle window.
pub const IDLE_KEY: &str = "idle-timeout";
/// The key of the total duration.
pub const DURATION_KEY: &str = "max-duration";
/// The key of the turn cap.
pub const TURNS_KEY: &str = "maxTurns";

/// The values of a definition's front matter; `None` where the key is missing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrontMatter<'s> {
    /// `idle-timeout`.
    pub idle_timeout: Option<&'s str>,
    /// `max-duration`.
    pub max_duration: Option<&'s str>,
    /// `maxTurns`.
    pub max_turns: Option<&'s str>,
}

/// The limits of one delegate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The idle window.
    pub idle: Millis,
    /// The total duration.
    pub duration: Millis,
    /// The turn cap; `None` is unlimited.
    pub max_turns: Option<u32>,
}

/// Resolves a definition over the defaults of a generation (`defaults.max_turns` is not one: a definition
/// without a cap is unlimited).
///
/// Seconds: missing or empty text is the default; a whole number is clamped, zero and negatives to the minimum; all
/// else is the default. There is no check of one against the other. Turns: `0`, `none` and missing are unlimited; above
/// 80 is 80; all else is unlimited. Whatever was not taken as written is a warning.
pub fn resolve(front_matter: FrontMatter<'_>, defaults: Limits) -> Resolved<Limits> {
    let mut warnings = Vec::new();
    let limits = Limits {
        idle: seconds(
            front_matter.idle_timeout,
            &IDLE,
            defaults.idle,
            &mut warnings,
        ),
        duration: seconds(
            front_matter.max_duration,
            &DURATION,
            defaults.duration,
            &mut warnings,
        ),
        max_turns: turns(front_matter.max_turns, &mut warnings),
    };
    Resolved { limits, warnings }
}

fn seconds(
    text: Option<&str>,
    bounds: &Seconds,
    default: Millis,
    warnings: &mut Vec<Warning>,
) -> Millis {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return default;
    };
    let Some(written) = Decimal::parse(text).and_then(Decimal::as_whole) else {
        warnings.push(Warning {
            key: bounds.key,
            found: format!("{text:?}"),
            taken: format!(
                "not a whole number of seconds, the default {}s is used",
                default.as_u64() / 1000
            ),
        });
        return default;
    };
    let taken = written.clamp(bounds.min, bounds.max);
    if taken != written {
        let bound = if written < taken {
            "minimum"
        } else {
            "maximum"
        };
        warnings.push(Warning {
            key: bounds.key,
            found: text.to_string(),
            taken: format!("clamped to the {bound} {taken}s"),
        });
    }
    Millis::from_secs(taken.unsigned_abs())
}

fn turns(text: Option<&str>, warnings: &mut Vec<Warning>) -> Option<u32> {
    let text = text
        .map(str::trim)
        .filter(|text| !text.is_empty() && !text.eq_ignore_ascii_case("none"))?;
    let written = Decimal::parse(text).and_then(Decimal::as_whole);
    let (cap, taken) = match written {
        Some(0) => return None,
        Some(turns @ 1..=MAX_TURNS) => return u32::try_from(turns).ok(),
        Some(turns) if turns > MAX_TURNS => (
            u32::try_from(MAX_TURNS).ok(),
            format!("clamped to the maximum {MAX_TURNS}"),
        ),
        _ => (
            None,
            "not a positive whole number, taken as unlimited".to_string(),
        ),
    };
    warnings.push(Warning {
        key: TURNS_KEY,
        found: text.to_string(),
        taken,
    });
    cap
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Limits = Limits {
        idle: Millis::from_secs(300),
        duration: Millis::from_secs(21_600),
        max_turns: None,
    };

    #[track_caller]
    fn check(idle: &str, turns: &str, expected: (u64, Option<u32>, usize)) {
        let front_matter = FrontMatter {
            idle_timeout: Some(idle),
            max_duration: None,
            max_turns: Some(turns),
        };
        let resolved = resolve(front_matter, DEFAULTS);
        let Limits {
            idle, max_turns, ..
        } = resolved.limits;
        assert_eq!(
            (idle.as_u64() / 1000, max_turns, resolved.warnings.len()),
            expected
        );
    }

    /// `semantics.md` 1.17 and 1.18, and what they say of `1e3`.
    #[test]
    fn the_rules_of_the_definition_parser() {
        check("1e3", "", (1000, None, 0));
        check("-5", "12.5", (10, None, 2));
        check("99999", "many", (21_600, None, 2));
        check("  ", "None", (300, None, 0));
        check("10", "80", (10, Some(80), 0));
        check("9", "81", (10, Some(80), 2));
    }

    #[test]
    fn a_warning_names_the_key_what_stood_there_and_what_is_taken() {
        let front_matter = FrontMatter {
            idle_timeout: Some("5"),
            ..FrontMatter::default()
        };
        let resolved = resolve(front_matter, DEFAULTS);
        assert_eq!(
            resolved.warnings[0].to_string(),
            "idle-timeout = 5: clamped to the minimum 10s"
        );
    }
}
