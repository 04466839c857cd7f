//! What `policysim gaps` prints: waits per kind, the idle clock, and the sizes of runs.

mod drift;
mod grid;
pub(crate) mod json;
pub(crate) mod notes;

use std::collections::BTreeMap;

use policysim_sim::gaps::figures::Spread;
use policysim_sim::gaps::{
    self, Figures, GapQuantile, IdleReadings, LEFT_OUT, Line, LineFigures, QUANTILES, RunSizes,
    WaitSamples,
};
use policysim_sim::run::{Measured, WaitKind};
use policysim_sim::stats::{self, Interval, QuantileEstimate, Reason, Status};

use crate::form::{Layout, Printed};
use crate::header::DataHeader;
use crate::table::{Align, Table};
use crate::units::{duration, grouped};

pub use drift::DriftResult;
pub use grid::Part;

/// Everything that one call of `gaps` found, by group where it was asked to group.
#[derive(Clone, Debug)]
pub struct GapsResult {
    /// What the figures are about.
    pub data: DataHeader,
    /// What the groups are: `source`, `harness`, `model`, `role`, `tool`; empty for one group.
    pub by: &'static str,
    /// The policy whose idle clock was read.
    pub policy: String,
    /// Waits by group and kind.
    pub waits: BTreeMap<(String, WaitKind), WaitSamples>,
    /// Idle-clock readings by group; none when grouped by tool.
    pub idle: BTreeMap<String, IdleReadings>,
    /// Run sizes by group; by role when not grouped.
    pub sizes: BTreeMap<String, RunSizes>,
    /// The rows of `DEFINITIONS.md` section 5 by source; only when grouped by source.
    pub rows: BTreeMap<String, Vec<Measured>>,
    /// The figures of waits and idle clock.
    pub figures: Figures,
    /// The p99 over strata of what is pooled; only when not grouped.
    pub spreads: Vec<Spread>,
    /// The keys (`harness`, `model`) of which the data hold more than one value.
    pub mixed: Vec<&'static str>,
    /// The seed of whatever is drawn.
    pub seed: u64,
    /// Whether text shows every interval.
    pub verbose: bool,
    /// Whether quantiles are given by type 7 as well, where nothing is cut.
    pub also_type7: bool,
    /// The comparison with a baseline, where one was asked for.
    pub drift: Option<DriftResult>,
}

/// One line of a table of run sizes.
struct SizeLine<'a> {
    group: &'a str,
    label: &'static str,
    sorted: &'a [u64],
    unit: Unit,
}

/// One line of the table of waits.
struct WaitLine<'a> {
    group: &'a str,
    line: Line,
    upper_bounds: bool,
    figures: &'a LineFigures,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Unit {
    Ms,
    Count,
}

impl Unit {
    fn text(self, value: u64) -> String {
        match self {
            Self::Ms => duration(value),
            Self::Count => grouped(value),
        }
    }
}

impl Printed for GapsResult {
    fn laid_out(&self, layout: Layout) -> String {
        let mut text = self.data.line();
        text.push_str("\n\n");
        if let Some(drift) = &self.drift {
            text.push_str(&drift.laid_out(layout));
            return text;
        }
        text.push_str(&layout.table(&self.wait_table()));
        let spreads = self.spread_table();
        if !spreads.is_empty() {
            text.push('\n');
            text.push_str(&layout.table(&spreads));
        }
        if !self.sizes.is_empty() {
            text.push('\n');
            text.push_str(&layout.table(&self.size_table()));
        }
        text.push('\n');
        for note in notes::notes(self) {
            text.push_str(&layout.prose(&note));
            text.push('\n');
        }
        text
    }

    fn csv(&self) -> Result<String, csv::Error> {
        self.to_csv()
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        self.to_json()
    }
}

impl GapsResult {
    fn wait_lines(&self) -> Vec<WaitLine<'_>> {
        self.figures
            .iter()
            .filter(|(_, figures)| figures.n > 0)
            .map(|((group, line), figures)| WaitLine {
                group,
                line: *line,
                upper_bounds: match line {
                    Line::Wait(kind) => self
                        .waits
                        .get(&(group.clone(), *kind))
                        .is_some_and(|samples| samples.upper_bounds > 0),
                    Line::HandOff | Line::Idle | Line::Longest => false,
                },
                figures,
            })
            .collect()
    }

    fn size_lines(&self) -> Vec<SizeLine<'_>> {
        let mut lines = Vec::new();
        for (group, sizes) in &self.sizes {
            let columns: [(&str, &[u64], Unit); 4] = [
                ("wall", &sizes.wall_ms, Unit::Ms),
                ("active", &sizes.active_ms, Unit::Ms),
                ("turns", &sizes.turns, Unit::Count),
                ("tool calls", &sizes.tools, Unit::Count),
            ];
            for (label, sorted, unit) in columns {
                lines.push(SizeLine {
                    group,
                    label,
                    sorted,
                    unit,
                });
            }
        }
        lines
    }

    /// Two rows a line: the figures, and under them their intervals or what is missing.
    fn wait_table(&self) -> Table {
        let lines = self.wait_lines();
        let with_cut = lines.iter().any(|line| line.figures.cut > 0);
        let mut columns = Vec::new();
        if with_cut {
            columns.push(("cut".to_owned(), Align::Right));
        }
        let mut table = FigureTable::new(self.by, "wait", &columns);
        for WaitLine {
            group,
            line,
            upper_bounds,
            figures,
        } in lines
        {
            let mark = if upper_bounds { " ¹" } else { "" };
            let cut = if with_cut {
                vec![grouped(figures.cut)]
            } else {
                Vec::new()
            };
            let row =
                |of: &dyn Fn(&GapQuantile) -> String| figures.quantiles.iter().map(of).collect();
            let max = figures
                .quantiles
                .first()
                .and_then(|quantile| quantile.max_ms);
            table.row(
                group,
                format!("{}{mark}", line.name()),
                figures.n,
                cut,
                row(&latent_point),
                max.map_or_else(|| "-".to_owned(), duration),
            );
            if self.also_type7 {
                let type7 = figures.type7_ms.iter();
                table.below(
                    TYPE7,
                    type7.map(|&value| type7_text(value, Unit::Ms)).collect(),
                );
            }
            if figures.n < 2 {
                continue;
            }
            table.below("", row(&latent_limits));
            if self.verbose {
                let limits = |limits: Interval<u64>| match limits {
                    Interval { lo: None, up: None } => String::new(),
                    limits => bracketed(limits, Unit::Ms),
                };
                if figures
                    .quantiles
                    .iter()
                    .any(|quantile| quantile.by_session.is_some())
                {
                    table.below(
                        "  independent",
                        row(&|quantile| limits(quantile.curve.limits)),
                    );
                }
                table.below("  log-log", row(&|quantile| limits(quantile.curve.loglog)));
            }
        }
        table.table
    }

    fn size_table(&self) -> Table {
        let by = if self.by.is_empty() { "role" } else { self.by };
        let mut table = FigureTable::new(by, "run size", &[]);
        for SizeLine {
            group,
            label,
            sorted,
            unit,
        } in self.size_lines()
        {
            let estimates = gaps::quantiles(sorted);
            let row = |of: fn(&QuantileEstimate, Unit) -> String| {
                estimates
                    .iter()
                    .map(|estimate| of(estimate, unit))
                    .collect()
            };
            table.row(
                group,
                label.to_owned(),
                sorted.len() as u64,
                Vec::new(),
                row(point),
                sorted
                    .last()
                    .map_or_else(|| "-".to_owned(), |&max| unit.text(max)),
            );
            if self.also_type7 {
                let type7 = gaps::type7(sorted);
                table.below(
                    TYPE7,
                    type7.iter().map(|&value| type7_text(value, unit)).collect(),
                );
            }
            if sorted.len() > 1 {
                table.below("", row(interval));
            }
        }
        table.table
    }

    /// The p99 of every line over the strata that it pools, where at least two of them have one.
    fn spread_table(&self) -> Table {
        let mut table = Table::new([
            ("p99 over strata", Align::Left),
            ("by", Align::Left),
            ("strata", Align::Right),
            ("lowest", Align::Right),
            ("highest", Align::Right),
            ("none (needs 368)", Align::Right),
        ]);
        for spread in &self.spreads {
            let (lowest, highest, missing) = notes::extremes(spread);
            if spread.p99.len() < missing + 2 {
                continue;
            }
            table.push(vec![
                spread.line.name().to_owned(),
                spread.key.name().to_owned(),
                grouped(spread.p99.len() as u64),
                lowest.unwrap_or_else(|| "-".to_owned()),
                highest.unwrap_or_else(|| "-".to_owned()),
                grouped(missing as u64),
            ]);
        }
        table
    }

    /// One row per group, line and quantile.
    fn to_csv(&self) -> Result<String, csv::Error> {
        if let Some(drift) = &self.drift {
            return drift.to_csv();
        }
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut header = vec![
            "group",
            "line",
            "unit",
            "n",
            "p",
            "value",
            "lower",
            "upper",
            "status",
            "needs_n",
            "cut",
            "exceeds_ms",
            "interval_method",
        ];
        if self.also_type7 {
            header.push("type7");
        }
        writer.write_record(&header)?;
        let type7_side =
            |value: Option<f64>| value.map_or_else(String::new, |v| stats::json(v).to_string());
        let side = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
        for line in self.wait_lines() {
            for (index, quantile) in line.figures.quantiles.iter().enumerate() {
                let limits = quantile.interval();
                let mut row = vec![
                    crate::csv_safe(line.group),
                    line.line.name().to_owned(),
                    "ms".to_owned(),
                    line.figures.n.to_string(),
                    quantile.curve.p.to_string(),
                    side(quantile.point()),
                    side(limits.lo),
                    side(limits.up),
                    quantile.status.name().to_owned(),
                    side(quantile.needed()),
                    line.figures.cut.to_string(),
                    side(quantile.curve.exceeds_ms()),
                    quantile.method().name().to_owned(),
                ];
                if self.also_type7 {
                    row.push(type7_side(
                        line.figures.type7_ms.get(index).copied().flatten(),
                    ));
                }
                writer.write_record(&row)?;
            }
        }
        for line in self.size_lines() {
            let unit = match line.unit {
                Unit::Ms => "ms",
                Unit::Count => "count",
            };
            let type7 = gaps::type7(line.sorted);
            for (estimate, type7) in gaps::quantiles(line.sorted).iter().zip(type7) {
                let mut row = vec![
                    crate::csv_safe(line.group),
                    line.label.to_owned(),
                    unit.to_owned(),
                    line.sorted.len().to_string(),
                    estimate.p.to_string(),
                    side(estimate.point()),
                    side(estimate.interval.lo),
                    side(estimate.interval.up),
                    estimate.status.name().to_owned(),
                    side(needed(estimate)),
                    String::new(),
                    String::new(),
                    "independent".to_owned(),
                ];
                if self.also_type7 {
                    row.push(type7_side(type7));
                }
                writer.write_record(&row)?;
            }
        }
        crate::csv_text(writer)
    }
}

/// The words of `--with`, in the order of [`LEFT_OUT`].
pub const WITH: [&str; LEFT_OUT.len()] = ["approvals", "suspends", "rate-limits", "undated"];

/// A table of figures, two rows a line.
struct FigureTable {
    table: Table,
    grouped: bool,
    extra: usize,
    last_group: Option<String>,
}

impl FigureTable {
    fn new(by: &str, title: &str, extra: &[(String, Align)]) -> Self {
        let mut columns = Vec::new();
        if !by.is_empty() {
            columns.push((by.to_owned(), Align::Left));
        }
        columns.push((title.to_owned(), Align::Left));
        columns.push(("n".to_owned(), Align::Right));
        columns.extend(extra.iter().cloned());
        for p in QUANTILES {
            columns.push((notes::percentile(p), Align::Right));
        }
        columns.push(("max".to_owned(), Align::Right));
        Self {
            table: Table::new(columns.iter().map(|(name, align)| (name.as_str(), *align))),
            grouped: !by.is_empty(),
            extra: extra.len(),
            last_group: None,
        }
    }

    fn row(
        &mut self,
        group: &str,
        label: String,
        n: u64,
        extra: Vec<String>,
        figures: Vec<String>,
        max: String,
    ) {
        let mut row = Vec::new();
        if self.grouped {
            let again = self.last_group.as_deref() == Some(group);
            row.push(if again {
                String::new()
            } else {
                group.to_owned()
            });
            self.last_group = Some(group.to_owned());
        }
        row.push(label);
        row.push(grouped(n));
        row.extend(extra);
        row.extend(figures);
        row.push(max);
        self.table.push(row);
    }

    fn below(&mut self, label: &str, cells: Vec<String>) {
        let mut row = vec![String::new(); usize::from(self.grouped)];
        row.push(label.to_owned());
        row.resize(row.len() + 1 + self.extra, String::new());
        row.extend(cells);
        row.push(String::new());
        self.table.push(row);
    }
}

/// The label of a row of type-7 quantiles.
const TYPE7: &str = "  type 7";

fn type7_text(value: Option<f64>, unit: Unit) -> String {
    match (value, unit) {
        (None, _) => "-".to_owned(),
        // Interpolated between two milliseconds: the nearer one will do.
        (Some(ms), Unit::Ms) => duration(ms.round() as u64),
        (Some(count), Unit::Count) => stats::text(count),
    }
}

/// The point of a quantile of silences in words, of one beyond everything that was seen to end as well.
pub(crate) fn latent_point(quantile: &GapQuantile) -> String {
    let curve = &quantile.curve;
    match (quantile.point(), notes::exceeds(curve), curve.reason) {
        (Some(ms), _, _) => duration(ms),
        (None, Some(exceeds), _) => exceeds,
        (None, None, Some(Reason::NoData)) => "-".to_owned(),
        (None, None, Some(Reason::AllCensored)) => "all cut".to_owned(),
        (None, None, _) => "not estimable".to_owned(),
    }
}

fn latent_limits(quantile: &GapQuantile) -> String {
    if quantile.status == Status::NotEstimable {
        return match quantile.needed() {
            Some(n) => format!("needs {}", grouped(n)),
            None if quantile.interval() == Interval::none() => String::new(),
            None => bracketed(quantile.interval(), Unit::Ms),
        };
    }
    bracketed(quantile.interval(), Unit::Ms)
}

/// `[5.4 … 5.6 s]`: a unit that both sides share is written once.
fn bracketed(limits: Interval<u64>, unit: Unit) -> String {
    let side = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |v| unit.text(v));
    let (lo, up) = (side(limits.lo), side(limits.up));
    let unit_of = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
    let lo = match lo.rsplit_once(' ') {
        Some((figure, unit)) if unit_of(&up).as_deref() == Some(unit) => figure.to_owned(),
        _ => lo,
    };
    format!("[{lo} … {up}]")
}

fn point(estimate: &QuantileEstimate, unit: Unit) -> String {
    match estimate.point() {
        Some(value) => unit.text(value),
        None if estimate.n == 0 => "-".to_owned(),
        None => "not estimable".to_owned(),
    }
}

fn interval(estimate: &QuantileEstimate, unit: Unit) -> String {
    if estimate.status == Status::NotEstimable {
        return needed(estimate).map_or_else(String::new, |n| format!("needs {}", grouped(n)));
    }
    bracketed(estimate.interval, unit)
}

fn needed(estimate: &QuantileEstimate) -> Option<u64> {
    match estimate.reason {
        Some(Reason::NTooSmall { need, .. }) => Some(need),
        _ => None,
    }
}
