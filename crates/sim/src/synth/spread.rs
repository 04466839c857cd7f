//! Stratified draws: which stratum of its law each draw of a fleet falls in.
//!
//! Before any value is drawn, the draws of every law are counted run by run: they follow from streams that no
//! time depends on. Three passes, because numbers of turns are drawn before answers are counted, and numbers of pieces
//! before the gaps between them. What is kept are the sums up to each block of runs; within one they are counted again.

use rayon::prelude::*;

use super::calls::Calls;
use super::inversion::Permutation;
use super::model::{Population, SourceResolution};
use super::plan::{Fate, Plan, Shape};
use super::quantiles::Quantiles;
use super::rng::{Purpose, Stream};
use crate::run::WaitKind;

/// What a law is drawn for. Each is stratified by itself, so that what is recorded of a law fills its strata: the
/// same law may be drawn elsewhere for what no record tells apart, and is drawn there by chance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    /// A wait that ends in a first output, no call having failed.
    PreToken,
    /// Turns of a run that does not loop.
    Turns,
    /// Turns of a run that loops.
    LoopedTurns,
    /// How long the record of a hung run goes on.
    AfterHang,
    /// A wait that an abort cut, no call having failed.
    Cut,
    /// The first failed call of a turn.
    ErrorWait,
    /// A compaction.
    Compact,
    /// A wait for an approval.
    Approval,
    /// Pieces of an answer.
    Pieces,
    /// The time between two pieces.
    PieceGap,
    /// How long the host sleeps.
    Asleep,
    /// A call, no approval coming before it, of the tool with that index.
    Call(usize),
}

impl Use {
    const FIXED: [Self; 11] = [
        Self::PreToken,
        Self::Turns,
        Self::LoopedTurns,
        Self::AfterHang,
        Self::Cut,
        Self::ErrorWait,
        Self::Compact,
        Self::Approval,
        Self::Pieces,
        Self::PieceGap,
        Self::Asleep,
    ];

    /// Its place among the uses of one run.
    fn column(self) -> usize {
        match self {
            Self::PreToken => 0,
            Self::Turns => 1,
            Self::LoopedTurns => 2,
            Self::AfterHang => 3,
            Self::Cut => 4,
            Self::ErrorWait => 5,
            Self::Compact => 6,
            Self::Approval => 7,
            Self::Pieces => 8,
            Self::PieceGap => 9,
            Self::Asleep => 10,
            Self::Call(tool) => Self::FIXED.len() + tool,
        }
    }
}

/// The laws of one population that have strata of their own, by what they are drawn for.
#[derive(Clone, Debug)]
pub(super) struct Laws {
    /// Of each role and model, and each use there, the number of the law.
    rows: Vec<Vec<usize>>,
    models: usize,
    columns: usize,
    len: usize,
}

impl Laws {
    pub(super) fn new(population: &Population) -> Self {
        let tools = population.tools().map_or(&[][..], |tools| &tools.list);
        let uses: Vec<Use> = Use::FIXED
            .into_iter()
            .chain((0..tools.len()).map(Use::Call))
            .collect();
        let mut known: Vec<(bool, usize, Option<&Quantiles>)> = Vec::new();
        let mut rows = Vec::new();
        let models = &population.models().list;
        for role in &population.roles().list {
            for model in models {
                let laws = population.laws(&role.name, &model.name);
                let row = uses.iter().map(|&what| {
                    let ends = population.ends();
                    let law = match what {
                        Use::PreToken => laws[WaitKind::PreToken as usize],
                        Use::Turns => population.turns_of(role),
                        Use::LoopedTurns => ends.looped_turns.as_ref(),
                        Use::AfterHang => ends.record_after_hang.as_ref(),
                        Use::Cut => laws[WaitKind::Censored as usize],
                        Use::ErrorWait => laws[WaitKind::ErrorWait as usize],
                        Use::Compact => laws[WaitKind::Compact as usize],
                        Use::Approval => laws[WaitKind::Approval as usize],
                        Use::Pieces => population.streaming().map(|streaming| &streaming.pieces),
                        Use::PieceGap => laws[population.piece_gap() as usize],
                        Use::Asleep => population.suspends().map(|suspends| &suspends.length),
                        Use::Call(tool) => {
                            let tool = &tools[tool];
                            let shared = laws[tool.wait_kind() as usize];
                            tool.duration.as_ref().or(shared)
                        }
                    };
                    // tools that share a law share its strata
                    let call = matches!(what, Use::Call(_));
                    let column = if call { 0 } else { what.column() };
                    let found = known.iter().position(|&(is_call, of, other)| {
                        is_call == call
                            && of == column
                            && match (law, other) {
                                (Some(law), Some(other)) => std::ptr::eq(law, other),
                                (law, other) => law.is_none() && other.is_none(),
                            }
                    });
                    found.unwrap_or_else(|| {
                        known.push((call, column, law));
                        known.len() - 1
                    })
                });
                rows.push(row.collect());
            }
        }
        Self {
            rows,
            models: models.len(),
            columns: uses.len(),
            len: known.len(),
        }
    }

    /// The law of that use in the runs of a role and model.
    fn number(&self, role: usize, model: usize, column: usize) -> usize {
        self.rows[role * self.models + model][column]
    }
}

/// How often a run draws for each use.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    population: usize,
    role: usize,
    model: usize,
    draws: Vec<u64>,
}

impl Counted {
    /// Nothing yet, in a run of that population, role and model.
    pub(super) fn new(spread: &Spread, population: usize, (role, model): (usize, usize)) -> Self {
        Self {
            population,
            role,
            model,
            draws: vec![0; spread.laws[population].columns],
        }
    }

    fn add(&mut self, what: Use, times: u64) {
        self.draws[what.column()] += times;
    }

    /// Counts what is drawn for before a run's turns are known.
    pub(super) fn add_shape(&mut self, population: &Population, shape: &Shape) {
        if shape.fate == Fate::Looped {
            self.add(Use::LoopedTurns, 1);
        } else if shape.keeps_turns(population) {
            self.add(Use::Turns, 1);
        }
    }

    /// Counts what is drawn for in a run whose turns are known, gaps between pieces excepted.
    pub(super) fn add_plan(&mut self, population: &Population, plan: &Plan, seed: u64, run: u64) {
        let failed = plan.failures.iter().filter(|&&failed| failed > 0).count() as u64;
        self.add(Use::PreToken, plan.pre_token_waits());
        self.add(Use::ErrorWait, failed);
        self.add(Use::Pieces, plan.answers());
        match plan.fate {
            Fate::HungBeforeOutput | Fate::HungMidStream | Fate::HungInTool => {
                self.add(Use::AfterHang, 1);
            }
            Fate::Aborted if plan.failures.last() == Some(&0) => self.add(Use::Cut, 1),
            _ => {}
        }
        let stream = |purpose| Stream::new(seed, run, purpose);
        if let Some(compaction) = population.compaction() {
            let mut stream = stream(Purpose::Compaction);
            for _ in 1..plan.failures.len() {
                if stream.chance(compaction.turn_share_ppm) {
                    stream.unit();
                    self.add(Use::Compact, 1);
                }
            }
        }
        if let Some(suspends) = population.suspends()
            && stream(Purpose::Suspend).chance(suspends.run_share_ppm)
        {
            self.add(Use::Asleep, 1);
        }
        if let Some(tools) = population.tools() {
            let mut stream = stream(Purpose::Calls);
            for _ in 1..plan.failures.len() {
                for call in Calls::of_turn(tools, &mut stream).list {
                    self.add(
                        if call.asks_first {
                            Use::Approval
                        } else {
                            Use::Call(call.tool)
                        },
                        1,
                    );
                }
            }
        }
    }

    /// Counts the gaps between the pieces of a run whose numbers of pieces are known; takes these from its draws.
    pub(super) fn add_gaps(
        &mut self,
        population: &Population,
        plan: &Plan,
        draws: &mut Draws<'_>,
        seed: u64,
        run: u64,
    ) {
        let Some(streaming) = population.streaming() else {
            return;
        };
        let mut stream = Stream::new(seed, run, Purpose::Streaming);
        let answers = plan.answers();
        for answer in 1..=answers {
            let cut = answer == answers && plan.fate == Fate::HungMidStream;
            let mut gaps = streaming
                .pieces
                .value(draws.place(Use::Pieces, stream.unit()));
            if cut {
                gaps = Stream::new(seed, run, Purpose::End).below(gaps + 1);
            } else if population.resolution() == SourceResolution::Stream {
                // one more leads to the end of the answer
                gaps += 1;
            }
            self.add(Use::PieceGap, gaps);
            for _ in 0..gaps {
                stream.unit();
            }
        }
    }
}

/// How far the counting is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Stage {
    /// Numbers of turns.
    Shapes,
    /// All but gaps between pieces.
    Plans,
    /// Everything.
    Gaps,
}

/// So many runs share one entry of the sums.
pub(super) const BLOCK: u64 = 64;

/// The strata of all draws of a fleet.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    seed: u64,
    laws: Vec<Laws>,
    /// Of each population, where its laws begin among all.
    offsets: Vec<usize>,
    /// Of each block of runs, the draws of each law before it.
    sums: Vec<Sums>,
    orders: Vec<Option<Permutation>>,
}

/// Of each law of each population, a number of draws.
pub(super) type Sums = Vec<u64>;

impl Spread {
    /// Nothing counted yet.
    pub(super) fn new(seed: u64, runs: u64, laws: Vec<Laws>) -> Self {
        let mut all = 0;
        let mut offsets = Vec::new();
        for laws in &laws {
            offsets.push(all);
            all += laws.len;
        }
        Self {
            seed,
            laws,
            offsets,
            sums: vec![vec![0; all]; runs.div_ceil(BLOCK) as usize],
            orders: vec![None; all],
        }
    }

    /// Counts the runs of all blocks up to a stage, each after those before it: `count` is given the draws before a
    /// run, as far as earlier calls know them. Lays out the strata of what is counted.
    pub(super) fn add(&mut self, runs: u64, count: impl Fn(&Self, &Sums, u64) -> Counted + Sync) {
        let blocks: Vec<Sums> = (0..self.sums.len())
            .into_par_iter()
            .map(|block| {
                let first = block as u64 * BLOCK;
                let mut before = self.sums[block].clone();
                for run in first..runs.min(first + BLOCK) {
                    let counted = count(self, &before, run);
                    self.count(&mut before, &counted);
                }
                let start = &self.sums[block];
                before
                    .iter()
                    .zip(start)
                    .map(|(end, start)| end - start)
                    .collect()
            })
            .collect();
        let mut totals = vec![0; self.orders.len()];
        for (before, block) in self.sums.iter_mut().zip(blocks) {
            before.clone_from(&totals);
            for (total, draws) in totals.iter_mut().zip(block) {
                *total += draws;
            }
        }
        for (population, laws) in self.laws.iter().enumerate() {
            for law in 0..laws.len {
                let place = self.offsets[population] + law;
                let (total, order) = (totals[place], &mut self.orders[place]);
                if total > 0 && order.is_none() {
                    let number = ((population as u64) << 32) | law as u64;
                    *order = Some(Permutation::new(self.seed, number, total));
                }
            }
        }
    }

    /// The draws before the block of a run, and the block's first run.
    pub(super) fn block_of(&self, run: u64) -> (&Sums, u64) {
        let block = run / BLOCK;
        (&self.sums[block as usize], block * BLOCK)
    }

    /// Adds the draws of a run.
    pub(super) fn count(&self, sums: &mut Sums, counted: &Counted) {
        for (column, &draws) in counted.draws.iter().enumerate() {
            let of = (counted.role, counted.model);
            sums[self.place(counted.population, of, column)] += draws;
        }
    }

    /// Where the law of a use stands among all.
    fn place(&self, population: usize, (role, model): (usize, usize), column: usize) -> usize {
        self.offsets[population] + self.laws[population].number(role, model, column)
    }
}

/// The draws of one run, in order.
#[derive(Clone, Debug)]
pub(super) struct Draws<'g> {
    /// The strata, and the draws before the run.
    spread: Option<(&'g Spread, &'g Sums)>,
    population: usize,
    of: (usize, usize),
    /// Of each law of the population, the draws so far.
    used: Vec<u64>,
}

impl<'g> Draws<'g> {
    /// The draws of a run of that population, role and model; each stands by itself where nothing is spread.
    pub(super) fn new(
        spread: Option<(&'g Spread, &'g Sums)>,
        population: usize,
        of: (usize, usize),
    ) -> Self {
        let laws = spread.map_or(0, |(spread, _)| spread.laws[population].len);
        Self {
            spread,
            population,
            of,
            used: vec![0; laws],
        }
    }

    /// The probability at which the next draw for that use reads its law; `u` in (0, 1) is its place within the
    /// stratum, and the whole probability where it has none.
    pub(super) fn place(&mut self, what: Use, u: f64) -> f64 {
        let Some((spread, before)) = self.spread else {
            return u;
        };
        let place = spread.place(self.population, self.of, what.column());
        let Some(order) = &spread.orders[place] else {
            return u;
        };
        let used = &mut self.used[place - spread.offsets[self.population]];
        let draw = before[place] + *used;
        *used += 1;
        order.place(draw, u)
    }
}
