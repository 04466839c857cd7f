//! What a window costs per run, and for which hang rates it is the cheapest (statistics section 11).
//!
//! The unit is the run: a false kill costs the active time thrown away plus a restart, a hang the slot time
//! until it settles, or what it holds until the parent knows of it, where parents were simulated. Runs that the
//! record cannot tell count as false kills, which makes the cost a bound.

use policysim_policy::Millis;

use crate::certify::Evidence;
use crate::settle::Settlement;
use crate::stats::cost::{self, CostModel, hang_interval};
use crate::stats::{Interval, Level, Prob};
use crate::sweep::{Candidate, settling_lag};
use crate::tally::{CellCounts, Part};

/// What the user knows about costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Share of runs that hang, where it is known.
    pub hang_rate: Option<Prob>,
    /// Time that a restart costs beyond the work lost.
    pub restart: Millis,
}

/// Where the range of hang rates comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RateSource {
    /// The user.
    Given,
    /// Runs that the record labels as hung.
    Labelled,
    /// No run is labelled: only an upper limit is known.
    NoneLabelled,
}

impl RateSource {
    /// The source's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Labelled => "labelled_hangs",
            Self::NoneLabelled => "no_labelled_hang",
        }
    }
}

/// What a hang is charged for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HangTime {
    /// The time until a simulated parent knows of it.
    Knowledge,
    /// The slot time that hung runs of the record lose.
    Slot,
    /// The window and its lags: no run of the record is known to have hung.
    Window,
}

impl HangTime {
    /// The source's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Knowledge => "parents_knowledge_simulated",
            Self::Slot => "slot_measured",
            Self::Window => "window_and_lag",
        }
    }
}

/// How long a hang goes on on average until the parent knows of it, whole ms, by simulation over all runs: the two halves
/// of a split share it. Empty where parents were not simulated, or some cell's met no hang.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Unaware {
    cells: Vec<u64>,
    base: u64,
}

impl Unaware {
    /// That of every cell, and of the policy that they are compared with.
    pub fn new(cells: &[Settlement], base: &Settlement) -> Self {
        let mean = |settled: &Settlement| {
            let numbers = &settled.numbers;
            let mean = numbers.unaware_ms.checked_div(u128::from(numbers.hangs))?;
            u64::try_from(mean).ok()
        };
        let all: Option<Vec<u64>> = cells.iter().map(mean).collect();
        match (all, mean(base)) {
            (Some(cells), Some(base)) => Self { cells, base },
            _ => Self::default(),
        }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// That of a cell.
    pub fn of_cell(&self, cell: usize) -> Option<u64> {
        self.cells.get(cell).copied()
    }

    /// That of the policy that cells are compared with.
    pub fn of_base(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.base)
    }
}

/// Why nothing is recommended on cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Without hangs the largest window always costs least.
    NoHangs,
    /// No cell has a finite window, or there is no run.
    NothingToCompare,
    /// Costs too large to be compared exactly.
    TooLarge,
}

impl Refusal {
    /// The refusal in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoHangs => "a hang rate of 0 makes the largest window cheapest whatever it kills",
            Self::NothingToCompare => "no finite window, or no run, to compare",
            Self::TooLarge => "the costs are too large to be compared exactly",
        }
    }
}

/// A window and the hang rates for which no other costs less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestRange {
    /// The cell.
    pub cell: usize,
    /// Lowest hang rate.
    pub from: f64,
    /// Highest hang rate.
    pub to: f64,
}

/// The cheapest window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cheapest {
    /// The cell.
    pub cell: usize,
    /// Largest regret over the hang rates, or the cost where one rate is given; ms per run.
    pub value_ms: f64,
    /// Some of its kills are unresolved, so that the cost is an upper bound.
    pub upper_bound: bool,
}

/// The cost of one cell on the runs that it was ranked by and on those that certify it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellCost {
    /// The cell.
    pub cell: usize,
    /// Hang rate at which it is priced: the given one, or the posterior mean under Jeffreys' prior.
    pub hang_rate: f64,
    /// Cost on the runs it was ranked by, ms per run; in-sample and optimistic.
    pub ranked_ms: Option<f64>,
    /// Cost on the certifying half, ms per run; `None` without a split.
    pub certify_ms: Option<f64>,
}

impl CellCost {
    /// How much better the ranking looked than the certifying half: `certify - select`.
    pub fn optimism_ms(&self) -> Option<f64> {
        Some(self.certify_ms? - self.ranked_ms?)
    }
}

/// What the windows of one sequence cost.
#[derive(Clone, Debug, PartialEq)]
pub struct HangCost {
    /// What was assumed.
    pub options: Options,
    /// Runs, hung ones included.
    pub runs: u64,
    /// Of those, labelled as hung.
    pub hangs: u64,
    /// Runs whose costs are compared: those that ranked the cells, hung ones left out.
    pub ranked_runs: u64,
    /// Hang rates considered.
    pub rates: Interval,
    /// Where they come from.
    pub source: RateSource,
    /// What a hang is charged for.
    pub hang_time: HangTime,
    /// The window with the least largest regret over the rates, or the cheapest at the given one.
    pub cheapest: Result<Cheapest, Refusal>,
    /// The cheapest at the posterior mean of the hang rate, where none is given.
    pub bayes: Option<usize>,
    /// Each window that is ever the cheapest, from the largest down, with its hang rates.
    pub ranges: Vec<BestRange>,
    /// The cost of the recommended (or nearest) cell.
    pub focus: Option<CellCost>,
}

/// Prices the cells of one sequence; `focus` is the cell whose cost is told.
pub fn hang_cost(
    candidates: &[Candidate],
    (cells, unaware): (&[CellCounts], &Unaware),
    sequence: &[usize],
    focus: Option<usize>,
    evidence: &Evidence,
    options: Options,
) -> HangCost {
    let first = cells.first().map(|cell| &cell.all);
    let hangs = first.map_or(0, |part| part.hung);
    let runs = first.map_or(0, |part| part.tally.runs) + hangs;
    let (source, rates) = match options.hang_rate {
        Some(rate) => (
            RateSource::Given,
            Interval::new(rate.to_f64(), rate.to_f64()),
        ),
        None if hangs > 0 => (RateSource::Labelled, hang_interval(hangs, runs, Level::P95)),
        None => (RateSource::NoneLabelled, hang_interval(0, runs, Level::P95)),
    };
    let ranked = |cell: &CellCounts| {
        if evidence.is_split() {
            cell.all.less(&cell.certify)
        } else {
            cell.all.clone()
        }
    };
    let price = |index: usize, part: &Part| {
        let unaware_ms = unaware.of_cell(index);
        Price::of(&candidates[index], part, options.restart, unaware_ms)
    };
    let priced: Vec<(usize, Price)> = sequence
        .iter()
        .filter_map(|&index| {
            let price = price(index, &ranked(&cells[index]))?;
            Some((index, price))
        })
        .collect();
    let mut answer = HangCost {
        options,
        runs,
        hangs,
        ranked_runs: priced.first().map_or(0, |(_, price)| price.runs),
        rates,
        source,
        hang_time: match hangs {
            _ if !unaware.is_empty() => HangTime::Knowledge,
            0 => HangTime::Window,
            _ => HangTime::Slot,
        },
        cheapest: Err(Refusal::NothingToCompare),
        bayes: None,
        ranges: Vec::new(),
        focus: None,
    };
    if let Some(index) = focus {
        let hang_rate = options
            .hang_rate
            .map_or((hangs as f64 + 0.5) / (runs as f64 + 1.0), Prob::to_f64);
        let price = |part: &Part| price(index, part)?.per_run_ms(hang_rate);
        answer.focus = Some(CellCost {
            cell: index,
            hang_rate,
            ranked_ms: price(&ranked(&cells[index])),
            certify_ms: evidence
                .is_split()
                .then(|| price(&cells[index].certify))
                .flatten(),
        });
    }
    let healthy = priced.first().map_or(0, |(_, price)| price.runs);
    if healthy == 0 {
        return answer;
    }
    let lines = priced.iter().map(|(_, price)| price.line).collect();
    let Ok(model) = CostModel::new(healthy, lines) else {
        answer.cheapest = Err(Refusal::TooLarge);
        return answer;
    };
    let cell_of = |window_ms: u64| {
        let found = priced
            .iter()
            .find(|(_, price)| price.line.window_ms == window_ms);
        found.map_or(0, |(index, _)| *index)
    };
    answer.ranges = ranges(&model, &cell_of);
    let side = |limit: Option<f64>| limit.and_then(Prob::nearest).unwrap_or(Prob::P50);
    let best = if let Some(rate) = options.hang_rate {
        (rate.to_f64() > 0.0).then(|| model.best_at(rate))
    } else {
        answer.bayes = Some(cell_of(model.bayes(hangs, runs).window_ms));
        model.recommend(side(rates.lo), side(rates.up))
    };
    answer.cheapest = best.ok_or(Refusal::NoHangs).map(|best| Cheapest {
        cell: cell_of(best.window_ms),
        value_ms: best.cost,
        upper_bound: best.upper_bound,
    });
    answer
}

/// The windows that are ever the cheapest, between their switch points.
fn ranges(model: &CostModel, cell_of: &impl Fn(u64) -> usize) -> Vec<BestRange> {
    let switches = model.switch_points();
    let one = "1".parse::<Prob>().unwrap_or(Prob::P50);
    let last_ms = switches
        .last()
        .map_or_else(|| model.best_at(one).window_ms, |switch| switch.to_ms);
    let mut from = 0.0;
    let mut found = Vec::with_capacity(switches.len() + 1);
    for switch in switches {
        found.push(BestRange {
            cell: cell_of(switch.from_ms),
            from,
            to: switch.hang_rate,
        });
        from = switch.hang_rate;
    }
    found.push(BestRange {
        cell: cell_of(last_ms),
        from,
        to: 1.0,
    });
    found
}

/// What one window costs a part of the runs.
struct Price {
    runs: u64,
    line: cost::Candidate,
}

impl Price {
    /// `None` for a window that is off, whose hangs have no end.
    fn of(
        candidate: &Candidate,
        part: &Part,
        restart: Millis,
        unaware_ms: Option<u64>,
    ) -> Option<Self> {
        let window = candidate.policy.idle.window?;
        let kills = u128::from(part.tally.worst_kills());
        let false_kill_cost =
            part.work_lost_ms + part.doubtful_work_ms + kills * u128::from(restart.as_u64());
        let hang_cost = match (unaware_ms, u128::from(part.hung)) {
            (Some(ms), _) => u128::from(ms),
            (None, 0) => u128::from(window.plus(settling_lag(&candidate.policy)).as_u64()),
            (None, hung) => part.slot_lost_ms / hung,
        };
        let capped = |cost: u128| u64::try_from(cost).unwrap_or(u64::MAX);
        Some(Self {
            runs: part.tally.runs,
            line: cost::Candidate {
                window_ms: window.as_u64(),
                false_kill_cost: capped(false_kill_cost),
                hang_cost: capped(hang_cost),
                upper_bound: part.tally.unresolved() > 0,
            },
        })
    }

    fn per_run_ms(&self, hang_rate: f64) -> Option<f64> {
        (self.runs > 0).then(|| {
            (1.0 - hang_rate) * self.line.false_kill_cost as f64 / self.runs as f64
                + hang_rate * self.line.hang_cost as f64
        })
    }
}
