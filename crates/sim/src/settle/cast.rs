//! Where the runs of delegates come from, and which parent takes which.

use std::borrow::Cow;

use super::course::Course;
use super::parent::Task;
use crate::judgement::shows_life;
use crate::run::{Fleet, RecordedEnd, Run, Symbols};
use crate::sweep::sized_runs;
use crate::synth::rng::{Purpose, Stream};
use crate::synth::{Generator, Ppm};

/// What is added to the runs as they are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Changes {
    /// Share of the runs that do not hang which are made to, at a uniform moment.
    pub hang_ppm: Ppm,
    /// Share of the runs that delegate in turn, before a uniform one of their events, and wait for their child.
    pub nested_ppm: Ppm,
}

enum Source<'a> {
    /// Runs with their place in the fleet, in the order in which parents take them.
    Recorded(Vec<(u64, &'a Run)>, &'a Symbols),
    /// So many runs of a model, made when they are needed.
    Model(&'a Generator<'a>, u64),
}

/// The runs that delegates take their courses from.
///
/// Which run a parent takes, where a run is made to hang and where it delegates are functions of the seed and the
/// run alone, so that all policies meet the same.
pub struct Cast<'a> {
    source: Source<'a>,
    changes: Changes,
    seed: u64,
    left_out: u64,
}

impl<'a> Cast<'a> {
    /// The runs of `fleet`, each taken once, in an order shuffled by the seed. Runs whose record stops before they
    /// ended, or that a recorded watchdog killed, are left out: what they would have done is not known.
    pub fn recorded(fleet: &'a Fleet, changes: Changes, seed: u64) -> Self {
        let mut left_out = 0;
        let mut runs: Vec<(u64, u64, &Run)> = Vec::new();
        for (index, run) in (0_u64..).zip(sized_runs(fleet)) {
            if is_known(run.end) {
                let key = Stream::new(seed, index, Purpose::Order).bits();
                runs.push((key, index, run));
            } else {
                left_out += 1;
            }
        }
        runs.sort_unstable_by_key(|(key, index, _)| (*key, *index));
        let runs = runs.into_iter().map(|(_, index, run)| (index, run));
        Self {
            source: Source::Recorded(runs.collect(), &fleet.symbols),
            changes,
            seed,
            left_out,
        }
    }

    /// `runs` runs of a model, which has to sample waits independently; memory does not grow with their number.
    pub const fn model(
        generator: &'a Generator<'a>,
        runs: u64,
        changes: Changes,
        seed: u64,
    ) -> Self {
        Self {
            source: Source::Model(generator, runs),
            changes,
            seed,
            left_out: 0,
        }
    }

    /// Keeps the first `runs` in the order in which parents take them.
    pub fn keep(&mut self, runs: u64) {
        match &mut self.source {
            Source::Recorded(all, _) => {
                all.truncate(usize::try_from(runs).unwrap_or(usize::MAX));
            }
            Source::Model(_, all) => *all = runs.min(*all),
        }
    }

    /// How many runs parents take.
    pub const fn runs(&self) -> u64 {
        match &self.source {
            Source::Recorded(runs, _) => runs.len() as u64,
            Source::Model(_, runs) => *runs,
        }
    }

    /// Runs whose own end is not known.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What is added to them.
    pub const fn changes(&self) -> Changes {
        self.changes
    }

    fn symbols(&self) -> &'a Symbols {
        match &self.source {
            Source::Recorded(_, symbols) => symbols,
            Source::Model(generator, _) => generator.symbols(),
        }
    }

    /// The run in place `place` with its number.
    fn run(&self, place: u64) -> (u64, Cow<'a, Run>) {
        match &self.source {
            Source::Recorded(runs, _) => {
                let (index, run) = runs[place as usize];
                (index, Cow::Borrowed(run))
            }
            Source::Model(generator, _) => (place, Cow::Owned(generator.make(place))),
        }
    }

    /// Another run for the task in `place`, that does not hang if one is near: `part` tells the uses apart.
    fn other(&self, place: u64, part: u64) -> Cow<'a, Run> {
        match &self.source {
            Source::Recorded(runs, _) => {
                let n = runs.len() as u64;
                let from = place + n * part / 3;
                let near = (0..n).map(|step| runs[((from + step) % n) as usize].1);
                let sound = near.into_iter().find(|run| run.end != RecordedEnd::Hung);
                Cow::Borrowed(sound.unwrap_or(runs[place as usize].1))
            }
            Source::Model(generator, runs) => Cow::Owned(generator.make(runs * part + place)),
        }
    }

    /// The runs of the tasks in `places`.
    pub(super) fn family(&self, places: std::ops::Range<u64>) -> Family<'a> {
        let member = |place| {
            let (number, run) = self.run(place);
            let mut hang = Stream::new(self.seed, number, Purpose::Hang);
            let hung_from = (run.end != RecordedEnd::Hung && hang.chance(self.changes.hang_ppm))
                .then(|| last_life_ms(&run, hang.below(run.end_ms + 1)));
            let mut nesting = Stream::new(self.seed, number, Purpose::Nesting);
            let events = run.events.len() as u64;
            let child = (events > 1 && nesting.chance(self.changes.nested_ppm))
                .then(|| (1 + nesting.below(events - 1)) as usize)
                .map(|before| (before, self.other(place, 1)));
            let hangs = hung_from.is_some() || run.end == RecordedEnd::Hung;
            Member {
                hung_from,
                spare: hangs.then(|| self.other(place, 2)),
                run,
                child,
            }
        };
        Family {
            members: places.map(member).collect(),
            symbols: self.symbols(),
        }
    }
}

/// Whether the record tells how the run would have gone on.
const fn is_known(end: RecordedEnd) -> bool {
    matches!(
        end,
        RecordedEnd::Completed | RecordedEnd::Failed | RecordedEnd::Aborted | RecordedEnd::Hung
    )
}

/// The latest sign of life of `run` up to `until_ms`; its start without one.
fn last_life_ms(run: &Run, until_ms: u64) -> u64 {
    let seen = run.events.partition_point(|event| event.t_ms <= until_ms);
    let lives = run.events[..seen]
        .iter()
        .rev()
        .find(|event| shows_life(event));
    lives.map_or(0, |event| event.t_ms)
}

struct Member<'a> {
    run: Cow<'a, Run>,
    hung_from: Option<u64>,
    spare: Option<Cow<'a, Run>>,
    child: Option<(usize, Cow<'a, Run>)>,
}

/// The runs of one parent.
pub(super) struct Family<'a> {
    members: Vec<Member<'a>>,
    symbols: &'a Symbols,
}

impl Family<'_> {
    /// The courses of the children that its runs delegate to.
    pub(super) fn children(&self) -> Vec<Option<Course<'_>>> {
        self.members
            .iter()
            .map(|member| {
                let (_, run) = member.child.as_ref()?;
                Some(Course::of(run, self.symbols))
            })
            .collect()
    }

    /// The tasks of the parent.
    pub(super) fn tasks<'r>(&'r self, children: &'r [Option<Course<'r>>]) -> Vec<Task<'r>> {
        self.members
            .iter()
            .zip(children)
            .map(|(member, child)| {
                let mut course = Course::of(&member.run, self.symbols);
                if let Some(onset_ms) = member.hung_from {
                    course = course.hung_from(onset_ms);
                }
                if let (Some((before, _)), Some(child)) = (&member.child, child) {
                    course = course.asking(*before, child);
                }
                Task {
                    course,
                    spare: member
                        .spare
                        .as_ref()
                        .map(|run| Course::of(run, self.symbols)),
                }
            })
            .collect()
    }
}
