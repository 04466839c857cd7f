//! What killing healthy runs buys: every cell of a sweep by the rate it may have and by what hangs cost in it.

use plotters::prelude::*;

use super::ChartError;
use crate::sweep::SweepResult;
use crate::units::grouped;

const SIZE: (u32, u32) = (900, 560);
const GREY: RGBColor = RGBColor(140, 140, 140);
/// Blue and orange are told apart by most colour-blind readers, and by their lightness in print.
const FRONT: RGBColor = RGBColor(0, 90, 160);
const CHOSEN: RGBColor = RGBColor(225, 120, 0);

/// The chart as SVG: across, what hangs cost; up, the one-sided 95 % upper limit of the false-kill rate.
/// Cells in which a hang is never noticed have no place on it; `None` when no cell has one.
///
/// # Errors
/// When the drawing backend refuses.
pub fn front(result: &SweepResult) -> Result<Option<String>, ChartError> {
    let measured = result.cells.iter().any(|cell| cell.all.hung > 0);
    let points: Vec<Point> = (0..result.cells.len())
        .filter_map(|index| Point::of(result, index, measured))
        .collect();
    let (Some(x_max), Some(y_max)) = (
        points.iter().map(|point| point.x).reduce(f64::max),
        points.iter().map(|point| point.y).reduce(f64::max),
    ) else {
        return Ok(None);
    };
    let mut svg = String::new();
    draw(result, &points, measured, (x_max, y_max), &mut svg).map_err(ChartError::new)?;
    Ok(Some(svg))
}

struct Point {
    index: usize,
    x: f64,
    y: f64,
}

impl Point {
    fn of(result: &SweepResult, index: usize, measured: bool) -> Option<Self> {
        let figures = &result.figures[index];
        let cost_ms = figures.hang_cost_ms? as f64;
        Some(Self {
            index,
            x: if measured {
                cost_ms / 3_600_000.0
            } else {
                cost_ms / 1000.0
            },
            y: figures.verdict.upper? * 100.0,
        })
    }
}

fn draw(
    result: &SweepResult,
    points: &[Point],
    measured: bool,
    (x_max, y_max): (f64, f64),
    svg: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!(
        "False kills against the cost of hangs, {} cells, n = {} runs",
        grouped(result.cells.len() as u64),
        grouped(result.cells.first().map_or(0, |cell| cell.all.tally.runs))
    );
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(52)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..x_max * 1.08, 0.0..y_max * 1.08)?;
    chart
        .configure_mesh()
        .x_desc(if measured {
            "time that hung runs hold their slots, hours in all"
        } else {
            "idle window: time until a hang is noticed, seconds"
        })
        .y_desc("false kills per run, one-sided 95 % upper limit, %")
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(WHITE)
        .draw()?;
    let on_front = |point: &&Point| result.pareto[point.index];
    let chosen = |point: &&Point| result.choice.recommended == Some(point.index);
    chart
        .draw_series(
            points
                .iter()
                .map(|point| Circle::new((point.x, point.y), 3, GREY.filled())),
        )?
        .label("cell")
        .legend(|(x, y)| Circle::new((x + 9, y), 3, GREY.filled()));
    // Points, no line: nothing lies between two cells.
    chart
        .draw_series(
            points
                .iter()
                .filter(on_front)
                .map(|point| Circle::new((point.x, point.y), 5, FRONT.filled())),
        )?
        .label("Pareto front")
        .legend(|(x, y)| Circle::new((x + 9, y), 5, FRONT.filled()));
    if let Some(point) = points.iter().find(chosen) {
        chart
            .draw_series([TriangleMarker::new((point.x, point.y), 9, CHOSEN.filled())])?
            .label(format!("recommended: {}", result.settings(point.index)))
            .legend(|(x, y)| TriangleMarker::new((x + 9, y), 7, CHOSEN.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(GREY)
        .label_font(("sans-serif", 14))
        .draw()?;
    root.present()?;
    Ok(())
}
