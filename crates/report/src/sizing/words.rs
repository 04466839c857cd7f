//! How figures of a report are written: one way for Markdown, HTML and charts.

use policysim_sim::stats::Estimate;

use super::document::Datum;
use super::facts::{Cell, Figure, Limits, NoticedAt};
use crate::units::{duration, grouped, hours, percent, percent_figures};

/// What the waits of the second survival curve are called.
pub(super) const WAITS: &str = "pre-token waits, those cut by an abort included";

pub(super) fn dash() -> String {
    "-".to_owned()
}

/// `0.22 [0.13 … 0.34] %`, or the words.
pub(super) fn share(point: Option<f64>, limits: Limits) -> String {
    let side = |limit: Option<f64>| limit.map_or_else(dash, percent_figures);
    match (point, limits.lo, limits.up) {
        (Some(point), lo, up) => {
            format!("{} [{} … {}] %", percent_figures(point), side(lo), side(up))
        }
        (None, None, None) => "not estimable".to_owned(),
        (None, None, Some(up)) => format!("not estimable, ≤ {}", percent(up)),
        (None, lo, up) => format!("not estimable [{} … {}] %", side(lo), side(up)),
    }
}

pub(super) fn figure(of: &Figure) -> Datum {
    Datum {
        text: share(of.point, of.interval),
        sort: of.point,
    }
}

pub(super) fn estimate(of: &Estimate) -> Datum {
    let limits = Limits {
        lo: of.interval.lo,
        up: of.interval.up,
    };
    Datum {
        text: share(of.point, limits),
        sort: of.point.or(limits.up),
    }
}

pub(super) fn limit(up: Option<f64>) -> Datum {
    match up {
        Some(up) => Datum::of(format!("≤ {}", percent(up)), up),
        None => Datum::text("not estimable"),
    }
}

pub(super) fn count(n: u64) -> Datum {
    Datum::of(grouped(n), n as f64)
}

pub(super) fn length(ms: Option<u64>) -> Datum {
    ms.map_or_else(
        || Datum::text("not estimable"),
        |ms| Datum::of(duration(ms), ms as f64),
    )
}

pub(super) fn total(ms: u128) -> Datum {
    Datum::of(hours(ms), ms as f64)
}

/// `240 s [240 s … 241 s] … 6.0 h [5.9 h … -] (n = 113)`, with what is missed.
pub(super) fn noticed(cell: &Cell) -> Datum {
    let detection = &cell.detection;
    let (Some(p50), Some(p99)) = (detection.p50_ms, detection.p99_ms) else {
        return Datum::text("never");
    };
    let mut text = format!("{} … {}", duration(p50), duration(p99));
    if detection.source == "measured" {
        text = format!(
            "{}{} … {}{} (n = {}",
            duration(p50),
            limits(detection.p50),
            duration(p99),
            limits(detection.p99),
            grouped(detection.n)
        );
        if cell.hung_missed > 0 {
            text.push_str(&format!(", {} missed", grouped(cell.hung_missed)));
        }
        text.push(')');
    } else {
        text.push_str(" (the window)");
    }
    Datum::of(text, p50 as f64)
}

/// The limits of a time, in brackets; nothing where a sweep of before does not tell them.
fn limits(of: Option<NoticedAt>) -> String {
    let side = |ms: Option<f64>| ms.map_or_else(dash, |ms| duration(libm::round(ms) as u64));
    of.map_or_else(String::new, |of| {
        format!(
            " [{} … {}]",
            side(of.interval_ms.lo),
            side(of.interval_ms.up)
        )
    })
}

pub(super) fn slots(cell: &Cell) -> Datum {
    if cell.hung == 0 {
        Datum::text("no hung run")
    } else {
        total(u128::from(cell.slot_lost_ms))
    }
}

/// `51 s`, or `56 s short`.
pub(super) fn left(ms: Option<i64>) -> String {
    match ms {
        None => "not estimable".to_owned(),
        Some(ms) if ms < 0 => format!("{} short", duration(ms.unsigned_abs())),
        Some(ms) => duration(ms.unsigned_abs()),
    }
}
