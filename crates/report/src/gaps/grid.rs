//! The tables of gaps as a report shows them: one row a line, each figure with its interval.

use policysim_sim::gaps;

use super::{GapsResult, interval, latent_limits, latent_point, notes, point};
use crate::sizing::document::{Datum, Grid};
use crate::table::Align;
use crate::units::{duration, grouped};

/// Which table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// Run sizes.
    Sizes,
    /// Waits by kind, and the idle clock.
    Waits,
}

impl GapsResult {
    /// What must be known to read the tables.
    pub fn notes(&self) -> Vec<String> {
        notes::notes(self)
    }

    /// One of the tables.
    pub fn grid(&self, part: Part, title: String) -> Grid {
        match part {
            Part::Sizes => self.sizes_grid(title),
            Part::Waits => self.waits_grid(title),
        }
    }

    fn waits_grid(&self, title: String) -> Grid {
        let mut grid = Grid::new(title, &columns(&["wait", "n", "cut"]));
        for line in self.wait_lines() {
            let mark = if line.upper_bounds { " ¹" } else { "" };
            let mut row = vec![
                Datum::text(format!("{}{mark}", line.line.name())),
                whole(line.figures.n),
                whole(line.figures.cut),
            ];
            for quantile in &line.figures.quantiles {
                row.push(Datum {
                    text: joined(&latent_point(quantile), &latent_limits(quantile)),
                    sort: quantile.point().map(|ms| ms as f64),
                });
            }
            let max = line
                .figures
                .quantiles
                .first()
                .and_then(|quantile| quantile.max_ms);
            row.push(max.map_or_else(|| Datum::text("-"), |ms| Datum::of(duration(ms), ms as f64)));
            grid.push(row);
        }
        grid
    }

    fn sizes_grid(&self, title: String) -> Grid {
        let by = if self.by.is_empty() { "role" } else { self.by };
        let mut grid = Grid::new(title, &columns(&[by, "size", "n"]));
        for line in self.size_lines() {
            let mut row = vec![
                Datum::text(line.group),
                Datum::text(line.label),
                whole(line.sorted.len() as u64),
            ];
            for estimate in gaps::quantiles(line.sorted) {
                row.push(Datum {
                    text: joined(
                        &point(&estimate, line.unit),
                        &interval(&estimate, line.unit),
                    ),
                    sort: estimate.point().map(|value| value as f64),
                });
            }
            row.push(line.sorted.last().map_or_else(
                || Datum::text("-"),
                |&max| Datum::of(line.unit.text(max), max as f64),
            ));
            grid.push(row);
        }
        grid
    }
}

fn columns(first: &[&'static str]) -> Vec<(&'static str, Align, Option<&'static str>)> {
    let term = |name: &str| match name {
        "cut" => Some("cut-short"),
        "n" => Some("n"),
        "size" => Some("run-size"),
        _ => None,
    };
    let mut found: Vec<_> = first
        .iter()
        .map(|&name| {
            let align = if matches!(name, "n" | "cut") {
                Align::Right
            } else {
                Align::Left
            };
            (name, align, term(name))
        })
        .collect();
    // The labels of `gaps::QUANTILES`, which a test holds against each other.
    for label in LABELS {
        found.push((label, Align::Right, Some("interval")));
    }
    found.push(("max", Align::Right, Some("max")));
    found
}

const LABELS: [&str; gaps::QUANTILES.len()] = ["p50", "p90", "p95", "p99", "p99.9"];

fn whole(n: u64) -> Datum {
    Datum::of(grouped(n), n as f64)
}

fn joined(figure: &str, limits: &str) -> String {
    match limits {
        "" => figure.to_owned(),
        limits if limits.starts_with('[') => format!("{figure} {limits}"),
        needs => format!("{figure} ({needs})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_are_those_of_the_quantiles() {
        let labels = gaps::QUANTILES.map(notes::percentile);
        assert_eq!(labels, LABELS);
    }
}
