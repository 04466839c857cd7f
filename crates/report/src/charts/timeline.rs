//! One run under the candidate: what it waited for, what the idle clock read, and the firing.

use policysim_policy::Millis;
use policysim_sim::ledger::Account;
use policysim_sim::timeline::Timeline;

use super::Canvas;
use super::canvas::{Side, colour};
use super::frame::{Frame, Sample, Scale, legend};
use super::front::seconds;
use super::measure::SMALL;
use crate::table::one_line;
use crate::units::duration;

/// The lanes below the clock, from the top down.
const LANES: [Account; 6] = [
    Account::Model,
    Account::Tool,
    Account::Human,
    Account::Retry,
    Account::Compaction,
    Account::Suspend,
];
const LANE: f64 = 18.0;
/// So many windows are shown before the firing.
const BEFORE: u64 = 3;

/// The stretch of the run around its firing; the whole run where there is none.
#[expect(
    clippy::too_many_lines,
    reason = "one picture, told from top to bottom"
)]
pub fn timeline(run: &str, window: Option<Millis>, line: &Timeline, end_ms: u64) -> Canvas {
    let fired = line.replayed.is_kill();
    let at_ms = line.replayed.verdict.at.as_u64();
    let window_ms = window.map_or(60_000, Millis::as_u64);
    let resumed_ms = line.next.map(|(ms, _)| ms);
    let (from_ms, to_ms) = if fired {
        let after = resumed_ms.unwrap_or(at_ms).max(at_ms) + window_ms / 2;
        (at_ms.saturating_sub(BEFORE * window_ms), after)
    } else {
        (0, end_ms.max(1))
    };
    let under = if fired {
        format!(
            "fired at {} ({}); {}; {} of work lost; one run, no rate",
            duration(at_ms),
            line.replayed.verdict.cause.name(),
            match line.next {
                Some((ms, kind)) => format!(
                    "the record goes on with {} {} later",
                    kind.name(),
                    duration(ms.saturating_sub(at_ms))
                ),
                None => "nothing is recorded afterwards".to_owned(),
            },
            duration(line.lost_ms)
        )
    } else {
        "not killed; one run, no rate".to_owned()
    };
    let mut canvas = Canvas::new((900, 520), &format!("Run {}", one_line(run)), &under);
    let entries = [
        (Sample::Line(colour::BLUE), "idle clock".to_owned()),
        (
            Sample::Dashes(colour::INK),
            format!(
                "window {}",
                window.map_or_else(|| "off".to_owned(), |window| duration(window.as_u64()))
            ),
        ),
        (Sample::Hatch(colour::GREY), "idle clock paused".to_owned()),
        (Sample::Triangle(colour::ORANGE), "firing".to_owned()),
        (
            Sample::Diamond(colour::BLUE),
            "next sign in the record".to_owned(),
        ),
    ];
    let legend_height = legend(&mut canvas, &entries, (104.0, 68.0, 876.0));
    let mut frame = Frame::of(&mut canvas, 104.0, 70.0 + legend_height);
    let lanes_top = frame.bottom - LANE * (LANES.len() + 1) as f64;
    let clock_bottom = lanes_top - 14.0;
    let x = Scale::linear(from_ms as f64, to_ms as f64, frame.across());
    let highest = line
        .clock
        .iter()
        .filter(|stretch| stretch.to_ms >= from_ms)
        .map(|stretch| stretch.reading_ms)
        .chain([window_ms])
        .max()
        .unwrap_or(window_ms);
    let y = Scale::linear(0.0, highest as f64 * 1.12, (clock_bottom, frame.top));
    let x_ticks: Vec<(f64, String)> = x
        .ticks(9)
        .into_iter()
        .map(|ms| (ms, seconds(ms / 1_000.0)))
        .collect();
    let y_ticks: Vec<(f64, String)> = y
        .ticks(5)
        .into_iter()
        .map(|ms| (ms, seconds(ms / 1_000.0)))
        .collect();
    frame.x_axis(
        &mut canvas,
        &x,
        &x_ticks,
        "time since the run's start, one run",
    );
    let whole = frame;
    frame.bottom = clock_bottom;
    frame.y_axis(&mut canvas, &y, &y_ticks, "reading of the idle clock");
    for &(from, to) in &line.pauses {
        if to > from_ms && from < to_ms && to > from {
            let (left, right) = (x.at(from as f64), x.at(to as f64));
            if right - left >= 1.0 {
                canvas.hatched((left, frame.top), (right, clock_bottom), colour::GREY, 6.0);
            }
        }
    }
    if window.is_some() {
        let at = y.at(window_ms as f64);
        canvas.dashed(
            (frame.left, at),
            (frame.right, at),
            colour::INK,
            2.0,
            (6.0, 4.0),
        );
    }
    for stretch in line
        .clock
        .iter()
        .filter(|stretch| stretch.to_ms >= from_ms && stretch.from_ms <= to_ms)
    {
        let started = stretch
            .reading_ms
            .saturating_sub(stretch.to_ms - stretch.from_ms);
        canvas.line(
            vec![
                (x.at(stretch.from_ms as f64), y.at(started as f64)),
                (x.at(stretch.to_ms as f64), y.at(stretch.reading_ms as f64)),
                (x.at(stretch.to_ms as f64), y.at(0.0)),
            ],
            colour::BLUE,
            2.0,
        );
    }
    let named = if line.total.is_empty() {
        "no budget"
    } else {
        "total clock"
    };
    canvas.text(
        (frame.left - 8.0, lanes_top + LANE / 2.0),
        named,
        Side::End,
        SMALL,
        colour::SOFT,
    );
    canvas.line(
        vec![
            (frame.left, lanes_top + LANE),
            (frame.right, lanes_top + LANE),
        ],
        colour::GREY,
        1.0,
    );
    for stretch in line
        .total
        .iter()
        .filter(|stretch| stretch.to_ms > from_ms && stretch.from_ms < to_ms)
    {
        let (left, right) = (x.at(stretch.from_ms as f64), x.at(stretch.to_ms as f64));
        canvas.filled(
            (left, lanes_top + 6.0),
            (right.max(left + 1.0), lanes_top + LANE - 6.0),
            colour::BLUE,
        );
    }
    for (lane, account) in LANES.iter().enumerate() {
        let top = lanes_top + LANE * (lane + 1) as f64;
        canvas.text(
            (frame.left - 8.0, top + LANE / 2.0),
            account.name(),
            Side::End,
            SMALL,
            colour::SOFT,
        );
        canvas.line(
            vec![(frame.left, top + LANE), (frame.right, top + LANE)],
            colour::GRID,
            1.0,
        );
        for &(of, from, to) in &line.waits {
            if of == *account && to > from_ms && from < to_ms {
                let (left, right) = (x.at(from as f64), x.at(to as f64));
                let stroke = if *account == Account::Model {
                    colour::BLUE
                } else {
                    colour::SOFT
                };
                canvas.filled(
                    (left, top + 4.0),
                    (right.max(left + 1.0), top + LANE - 4.0),
                    stroke,
                );
            }
        }
    }
    if fired {
        let at = x.at(at_ms as f64);
        canvas.line(
            vec![(at, frame.top), (at, whole.bottom)],
            colour::ORANGE,
            2.0,
        );
        let top = y.at(line
            .clock
            .last()
            .map_or(window_ms, |stretch| stretch.reading_ms) as f64);
        canvas.triangle((at, top), 8.0, colour::ORANGE);
    }
    if let Some(ms) = resumed_ms.filter(|&ms| fired && ms <= to_ms) {
        let at = x.at(ms as f64);
        canvas.dashed(
            (at, frame.top),
            (at, whole.bottom),
            colour::BLUE,
            1.0,
            (3.0, 3.0),
        );
        canvas.diamond((at, clock_bottom - 8.0), 7.0, colour::BLUE);
    }
    canvas.outline(
        (whole.left, whole.top),
        (whole.right, whole.bottom),
        colour::GREY,
        1.0,
    );
    canvas
}
