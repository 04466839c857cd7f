//! A survival curve in letters, for a terminal.

use std::fmt::Write as _;

use policysim_sim::gaps::curve::Curve;

use crate::units::{duration, grouped, percent};

/// Columns of the plot itself.
const WIDE: usize = 64;
/// The lengths that lines are drawn for, ms.
const LENGTHS_MS: [u64; 9] = [
    1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
];

/// A line per length with a bar as long as the logarithm of its share; windows among them are named.
///
/// Its figures are those of the curve at the same lengths, which must be among its lengths.
pub fn survival(name: &str, curve: &Curve, windows: &[(u64, String)]) -> String {
    let mut text = format!(
        "Share of silences that last at least so long: {name}, n = {}, {} cut short; bars are logarithmic\n",
        grouped(curve.n),
        grouped(curve.cut)
    );
    let mut decades = 0_u32;
    while 10_u64.saturating_pow(decades) < curve.n {
        decades += 1;
    }
    for reach in &curve.reaches {
        let label = windows.iter().find(|(ms, _)| *ms == reach.ms);
        if label.is_none() && !LENGTHS_MS.contains(&reach.ms) {
            continue;
        }
        let length = match reach.share.point.filter(|&point| point > 0.0) {
            Some(point) if decades > 0 => {
                let share = 1.0 + libm::log10(point) / f64::from(decades);
                libm::round(share * WIDE as f64).clamp(1.0, WIDE as f64) as usize
            }
            _ => 0,
        };
        let figure = match (reach.share.point, reach.share.interval.up) {
            (Some(point), Some(up)) => format!(
                "{} [{} … {}]",
                percent(point),
                reach
                    .share
                    .interval
                    .lo
                    .map_or_else(|| "-".to_owned(), percent),
                percent(up)
            ),
            (None, Some(up)) => format!("≤ {}", percent(up)),
            _ => "not estimable".to_owned(),
        };
        let bar = if label.is_some() { '=' } else { '-' };
        let bar: String = std::iter::repeat_n(bar, length).collect();
        let _ = writeln!(
            text,
            "{:>8} |{bar:<WIDE$} {figure}{}",
            duration(reach.ms),
            label.map_or_else(String::new, |(_, name)| format!("  < {name}")),
        );
    }
    text
}

/// The lengths that a text plot needs its curve at.
pub fn lengths(windows: &[(u64, String)]) -> Vec<u64> {
    LENGTHS_MS
        .into_iter()
        .chain(windows.iter().map(|(ms, _)| *ms))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use policysim_sim::gaps::{Silences, curve::curve};

    #[test]
    fn bars_shorten_by_decades_and_windows_are_named() {
        let mut silences = Silences::default();
        for k in 0..1_000_u64 {
            // one in a hundred lasts 60 s
            silences.add(None, if k % 100 == 0 { 60_000 } else { 2_000 }, None);
        }
        let windows = [(60_000, "candidate".to_owned())];
        let found = curve(&silences, &lengths(&windows));
        let text = survival("idle clock", &found, &windows);
        let bar = |start: &str| {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(start));
            line.map_or(0, |line| line.chars().filter(|c| "-=".contains(*c)).count())
        };
        // three decades over 64 columns: everything lasts 1 s, a hundredth 60 s
        assert_eq!((bar("1 s"), bar("60 s")), (64, 21));
        assert!(
            text.contains("< candidate") && text.contains("1.0 % ["),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() < 120),
            "{text}"
        );
    }
}
