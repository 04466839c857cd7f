//! Where the runs' time went.

use policysim_sim::ledger::{Account, Totals};

use super::Canvas;
use super::canvas::{Side, colour};
use super::frame::{Frame, Scale};
use super::front::trimmed;
use super::measure::{SMALL, TEXT, width};
use crate::units::{counted, hours, percent};

/// A bar per account, as long as its share of all time; `None` for runs without any.
pub fn spent(totals: &Totals) -> Option<Canvas> {
    let span_ms = totals.span_ms();
    if span_ms == 0 {
        return None;
    }
    let mut canvas = Canvas::new(
        (900, 420),
        "Where the time of the runs went",
        &format!(
            "n = {}, hung ones included, {} in all; every millisecond is in one account",
            counted(totals.runs, "run"),
            hours(span_ms)
        ),
    );
    let frame = Frame::of(&mut canvas, 110.0, 66.0);
    let share = |ms: u128| ms as f64 / span_ms as f64;
    let most = totals.ms.iter().copied().map(share).fold(0.0, f64::max);
    let x = Scale::linear(0.0, (most * 1.2).min(1.15), frame.across());
    let ticks: Vec<(f64, String)> = x
        .ticks(8)
        .into_iter()
        .filter(|&tick| tick <= 1.0)
        .map(|tick| (tick, format!("{} %", trimmed(tick * 100.0))))
        .collect();
    frame.x_axis(&mut canvas, &x, &ticks, "share of the runs' time");
    let high = (frame.bottom - frame.top) / Account::ALL.len() as f64;
    for (line, (account, &ms)) in Account::ALL.iter().zip(&totals.ms).enumerate() {
        let top = frame.top + high * line as f64;
        let middle = top + high / 2.0;
        let end = x.at(share(ms));
        canvas.text(
            (frame.left - 8.0, middle),
            account.name(),
            Side::End,
            TEXT,
            colour::INK,
        );
        canvas.filled(
            (frame.left, top + 7.0),
            (end, top + high - 7.0),
            colour::BLUE,
        );
        let text = format!("{} · {}", percent(share(ms)), hours(ms));
        let length = width(&text, SMALL, false);
        let at = (end + 8.0).min(frame.right - length);
        canvas.text((at, middle), &text, Side::Start, SMALL, colour::INK);
    }
    canvas.line(
        vec![(frame.left, frame.top), (frame.left, frame.bottom)],
        colour::SOFT,
        1.0,
    );
    Some(canvas)
}
