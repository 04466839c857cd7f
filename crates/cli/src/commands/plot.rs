//! Charts that `gaps` and `sweep` write on request.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Result, bail};
use policysim_policy::{Millis, Policy};
use policysim_report::charts::{self, Canvas, SurvivalChart};
use policysim_report::units::duration;
use policysim_sim::gaps::curve::{curve, log_lengths};
use policysim_sim::gaps::{IdleReadings, Silences};

use crate::output;

/// Whether a path stands for standard output.
pub(super) fn is_text(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a path is one that a chart can be written to, told before the work.
///
/// # Errors
/// When its ending is neither `.svg` nor `.png`.
pub(super) fn check(path: &Path) -> Result<()> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg" | "png") => Ok(()),
        _ => bail!(
            "--plot {}: expected a file that ends in .svg or .png",
            path.display()
        ),
    }
}

/// Writes a chart in the format that the path's ending names.
pub(super) fn write(canvas: &Canvas, path: &Path) -> Result<()> {
    let png = path.extension().is_some_and(|ending| ending == "png");
    let bytes = if png {
        canvas.to_png()?
    } else {
        canvas.to_svg()?.into_bytes()
    };
    output::write_file(path, &bytes)
}

/// The survival curve of the idle clock's readings and of the pre-token waits, with the policy's own window and others.
pub(super) fn survival(
    idle: Option<&IdleReadings>,
    waits: &Silences,
    (name, policy): (&str, &Policy),
    candidates_ms: &[u64],
) -> Option<Canvas> {
    let none = Silences::default();
    let idle = idle.map_or(&none, |readings| &readings.silences);
    let longest_ms = idle.gaps().chain(waits.gaps()).map(|gap| gap.ms).max()?;
    let named = named(name, policy);
    let mut lengths = log_lengths(100, longest_ms);
    lengths.push(longest_ms);
    lengths.extend(named.iter().map(|(ms, _)| *ms));
    lengths.extend(candidates_ms);
    charts::survival(SurvivalChart {
        curves: &[
            ("idle clock", &curve(idle, &lengths)),
            (
                "pre-token waits, those cut by an abort included",
                &curve(waits, &lengths),
            ),
        ],
        named: &named,
        swept_ms: candidates_ms,
    })
}

fn named(name: &str, policy: &Policy) -> Vec<(u64, String)> {
    let window = policy.idle.window.map(Millis::as_u64);
    window
        .map(|ms| (ms, format!("{} {name}", duration(ms))))
        .into_iter()
        .collect()
}

/// The same curve in letters, for a terminal; `None` without a silence.
pub(super) fn letters(
    idle: Option<&IdleReadings>,
    waits: &Silences,
    (name, policy): (&str, &Policy),
    candidates_ms: &[u64],
) -> Option<String> {
    let (title, silences) = match idle {
        Some(readings) if !readings.silences.is_empty() => ("idle clock", &readings.silences),
        _ => ("pre-token waits", waits),
    };
    if silences.is_empty() {
        return None;
    }
    let mut named = named(name, policy);
    for &ms in candidates_ms {
        if named.iter().all(|(of, _)| *of != ms) {
            named.push((ms, "candidate".to_owned()));
        }
    }
    let found = curve(silences, &charts::text::lengths(&named));
    Some(charts::text::survival(title, &found, &named))
}

/// Whether the reader sees what is printed.
pub(super) fn on_a_terminal() -> bool {
    std::io::stdout().is_terminal()
}
