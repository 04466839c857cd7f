//! A sweep put in order: which candidates are answered from one pass, and where each is counted.

use policysim_policy::{First, Millis, Policy, Poll};

use crate::silence::without_limits;
use crate::staircase::{Structure, shape};
use crate::sweep::{Candidate, event_first, settling_lag};

/// Candidates that differ in nothing but the idle window.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The first of them.
    pub(crate) policy: Policy,
    /// The same as if an event at a deadline came before its timer.
    pub(crate) later: Policy,
    /// From a firing to its outcome, ms.
    pub(crate) lag_ms: u64,
    /// The line whose counts those of like lines share as long as the idle window decides; `None` where every window
    /// is looked at by itself.
    pub(crate) family: Option<usize>,
    /// The places that are asked for, with their candidates.
    pub(crate) asked: Vec<(usize, usize)>,
    /// The places that are asked for, each once.
    pub(crate) places: Vec<usize>,
}

/// The lines of one structure.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// What is read of every run.
    pub(crate) structure: Structure,
    /// The windows, ms, from the shortest; the place after the last is that of no window.
    pub(crate) windows: Vec<u64>,
    pub(crate) lines: Vec<Line>,
    /// One line of each family.
    pub(crate) families: Vec<usize>,
}

impl Lines {
    /// Lines and families together.
    pub(crate) const fn count(&self) -> usize {
        self.lines.len() + self.families.len()
    }

    /// Windows, and the place of none.
    pub(crate) const fn places(&self) -> usize {
        self.windows.len() + 1
    }

    pub(crate) fn window(&self, place: usize) -> Option<Millis> {
        self.windows.get(place).copied().map(Millis::new)
    }

    /// The line that shared counts of `family` are kept in.
    pub(crate) const fn shared(&self, family: usize) -> usize {
        self.lines.len() + family
    }
}

/// A candidate whose numbers decide what is read: every run is replayed under it.
#[derive(Clone, Debug)]
pub(crate) struct Direct {
    pub(crate) candidate: usize,
    pub(crate) policy: Policy,
    pub(crate) later: Policy,
    pub(crate) lag_ms: u64,
}

/// The order of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) base: Policy,
    /// Whose pass answers for the base; `None` where it has to be replayed.
    pub(crate) base_lines: Option<usize>,
    pub(crate) structures: Vec<Lines>,
    pub(crate) direct: Vec<Direct>,
    pub(crate) candidates: usize,
    /// Whose pass reads the gaps of the base, and of each candidate.
    pub(crate) base_gaps: usize,
    pub(crate) gaps: Vec<usize>,
}

impl Plan {
    pub(crate) fn new(base: &Policy, candidates: &[Candidate]) -> Self {
        let mut plan = Self {
            base: base.clone(),
            base_lines: None,
            structures: Vec::new(),
            direct: Vec::new(),
            candidates: candidates.len(),
            base_gaps: 0,
            gaps: Vec::with_capacity(candidates.len()),
        };
        plan.base_lines = shape(base).map(|shape| plan.lines_of(shape));
        if let Some(lines) = plan.base_lines {
            plan.structures[lines].structure.admit(base);
        }
        let mut of_candidate = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let lines = shape(&candidate.policy).map(|shape| plan.lines_of(shape));
            of_candidate.push(lines);
            if let Some(lines) = lines {
                let lines = &mut plan.structures[lines];
                lines.structure.admit(&candidate.policy);
                lines
                    .windows
                    .extend(candidate.policy.idle.window.map(Millis::as_u64));
            }
        }
        // gaps hang on the shape alone, whatever decides what is read under the numbers
        plan.base_gaps = plan.gaps_of(base);
        for (candidate, lines) in candidates.iter().zip(&of_candidate) {
            let lines = lines.unwrap_or_else(|| plan.gaps_of(&candidate.policy));
            plan.gaps.push(lines);
        }
        for lines in &mut plan.structures {
            lines.windows.sort_unstable();
            lines.windows.dedup();
        }
        for (index, (candidate, lines)) in candidates.iter().zip(of_candidate).enumerate() {
            match lines {
                Some(lines) => plan.structures[lines].place(index, &candidate.policy),
                None => plan.direct.push(Direct {
                    candidate: index,
                    policy: candidate.policy.clone(),
                    later: event_first(&candidate.policy),
                    lag_ms: settling_lag(&candidate.policy).as_u64(),
                }),
            }
        }
        for line in plan
            .structures
            .iter_mut()
            .flat_map(|lines| &mut lines.lines)
        {
            line.places = line.asked.iter().map(|&(place, _)| place).collect();
            line.places.sort_unstable();
            line.places.dedup();
        }
        plan
    }

    fn gaps_of(&mut self, policy: &Policy) -> usize {
        let shape = shape(&without_limits(policy));
        self.lines_of(shape.unwrap_or_default())
    }

    /// The structure that answers for `policy`, one of the candidates; `None` where it is replayed.
    pub(crate) fn structure_of(&self, policy: &Policy) -> Option<&Structure> {
        let place = self.place_of(policy)?;
        Some(&self.structures[place].structure)
    }

    /// Which of the structures that is.
    pub(crate) fn place_of(&self, policy: &Policy) -> Option<usize> {
        let shape = shape(policy)?;
        let is_it = |lines: &Lines| *lines.structure.shape() == shape;
        self.structures.iter().position(is_it)
    }

    fn lines_of(&mut self, shape: Policy) -> usize {
        let known = self
            .structures
            .iter()
            .position(|lines| *lines.structure.shape() == shape);
        known.unwrap_or_else(|| {
            self.structures.push(Lines {
                structure: Structure::new(shape),
                windows: Vec::new(),
                lines: Vec::new(),
                families: Vec::new(),
            });
            self.structures.len() - 1
        })
    }
}

impl Lines {
    fn place(&mut self, candidate: usize, policy: &Policy) {
        let place = match policy.idle.window {
            None => self.windows.len(),
            Some(window) => self.windows.partition_point(|&ms| ms < window.as_u64()),
        };
        let mut others = policy.clone();
        others.idle.window = None;
        // grids run through their lines in turn
        let last = self.lines.iter().position(|line| {
            line.asked
                .last()
                .is_some_and(|asked| asked.1 + 1 == candidate)
        });
        let next = last.map_or(0, |last| (last + 1) % self.lines.len());
        let known = (next..self.lines.len())
            .chain(0..next)
            .find(|&line| self.lines[line].policy == others);
        let line = known.unwrap_or_else(|| {
            let family = self.family_of(&others);
            self.lines.push(Line {
                later: event_first(&others),
                lag_ms: settling_lag(&others).as_u64(),
                family,
                asked: Vec::new(),
                places: Vec::new(),
                policy: others,
            });
            self.lines.len() - 1
        });
        self.lines[line].asked.push((place, candidate));
    }

    /// The family of a new line: those that read the idle clock alike.
    fn family_of(&mut self, policy: &Policy) -> Option<usize> {
        let same_first = |policy: &Policy| policy.idle.first == First::SameAsWindow;
        let by_itself = policy.detect.poll != Poll::Exact || policy.idle.grace_cycles > 0;
        if by_itself {
            return None;
        }
        let known = self.families.iter().position(|&line| {
            self.lines
                .get(line)
                .is_some_and(|line| same_first(&line.policy) == same_first(policy))
        });
        Some(known.unwrap_or_else(|| {
            self.families.push(self.lines.len());
            self.families.len() - 1
        }))
    }
}
