//! One run under all candidates: the core reads it once per structure, and every cell is counted from that.

use std::ops::Range;

use policysim_policy::{Cause, Millis, Policy, Poll};

use crate::board::{Board, Linear, Slots, Step, Sum, Whole};
use crate::detections::After;
use crate::judgement::Judgement;
use crate::ledger::ActiveTime;
use crate::life::Life;
use crate::partial::SweepPartial;
use crate::plan::{Line, Lines, Plan};
use crate::replay::{kill_class, replay};
use crate::run::{RecordedEnd, Run, Symbols};
use crate::scan::RunView;
use crate::staircase::{Answer, Crossing, Crossings, Piece};
use crate::stretches::{OfRun, Stretches};

/// Memory that one run after the other is read in.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) found: Vec<Crossings>,
    pub(crate) active: ActiveTime,
    pub(crate) of_run: OfRun,
    slots: Slots,
    tied: Vec<Tied>,
}

/// A place where an event came at the very instant of the firing.
#[derive(Clone, Copy, Debug)]
struct Tied {
    place: usize,
    counted: bool,
}

/// How one run ends under one candidate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) cause: Cause,
    pub(crate) at_ms: u64,
    /// The index of the first event that was not seen, where that is not simply the first from `at_ms` on.
    pub(crate) unseen: Option<usize>,
}

impl Outcome {
    const fn of(crossing: &Crossing) -> Self {
        Self {
            cause: crossing.cause,
            at_ms: crossing.at_ms,
            unseen: crossing.unseen,
        }
    }
}

impl Plan {
    /// Reads `run` and counts it in `partial`; `part` is its half.
    pub(crate) fn count(
        &self,
        run: &RunView<'_>,
        symbols: &Symbols,
        part: usize,
        partial: &mut SweepPartial,
        scratch: &mut Scratch,
    ) {
        partial.work.events += run.len() as u64;
        partial.work.passes += self.structures.len() as u64;
        let readings = &mut partial.readings;
        let (life, _) = self.read(run, symbols, scratch, &mut partial.stretches, |of_run| {
            readings.add(run.head, of_run, run.suspected_suspends())
        });
        let once = Once::of(run, symbols);
        self.tally(run.head, &life, once, part, partial, scratch);
    }

    /// Reads `run` under every structure, into the memory of the run read before; `of_base` gets what it reads under
    /// the structure of the base, and its answer is handed on.
    pub(crate) fn read<T: Default>(
        &self,
        run: &RunView<'_>,
        symbols: &Symbols,
        scratch: &mut Scratch,
        stretches: &mut [Stretches],
        of_base: impl FnOnce(&OfRun) -> T,
    ) -> (Life, T) {
        let (mut of_base, mut told) = (Some(of_base), T::default());
        scratch.active.read(run);
        scratch
            .found
            .resize_with(self.structures.len(), Crossings::default);
        let found = scratch.found.iter_mut();
        for (index, ((lines, found), stretches)) in
            self.structures.iter().zip(found).zip(stretches).enumerate()
        {
            let (of_run, structure) = (&mut scratch.of_run, &lines.structure);
            stretches.add(of_run, structure, (run, symbols), found);
            if index == self.base_gaps
                && let Some(of_base) = of_base.take()
            {
                told = of_base(&scratch.of_run);
            }
        }
        (Life::of(run), told)
    }

    /// Counts a run that has been read; whether that could be done.
    pub(crate) fn tally(
        &self,
        head: &Run,
        life: &Life,
        mut once: Once<'_>,
        part: usize,
        partial: &mut SweepPartial,
        scratch: &mut Scratch,
    ) -> bool {
        partial.note(head, part, &mut scratch.slots);
        partial.active_ms += u128::from(scratch.active.until(head.end_ms));
        partial.work.runs += 1;
        let base = match self.base_lines {
            Some(lines) => {
                let (lines, found) = (&self.structures[lines].structure, &scratch.found[lines]);
                let window = self.base.idle.window;
                let answer = lines.answer(found, &self.base, window, once.role);
                once.settle(answer, &self.base, window)
            }
            None => Some(once.replay(&self.base, self.base.idle.window)),
        };
        let base_kills = base.is_some_and(|base| is_wrong(life, &base));
        for ((lines, found), board) in self
            .structures
            .iter()
            .zip(&scratch.found)
            .zip(&mut partial.boards)
        {
            let mut meeting = Meeting {
                lines,
                found,
                life,
                active: &scratch.active,
                slots: &scratch.slots,
                base_kills,
                once: &mut once,
                board,
            };
            meeting.count(&mut scratch.tied);
        }
        for (number, direct) in self.direct.iter().enumerate() {
            let window = direct.policy.idle.window;
            let outcome = once.replay(&direct.policy, window);
            let mut noted = Noted {
                life,
                active: &scratch.active,
                slots: &scratch.slots,
                base_kills,
                lag_ms: direct.lag_ms,
                board: &mut partial.direct,
            };
            let worst = noted.fixed(number, &(0..1), &outcome, 1);
            if worst && once.is_tied(&outcome) {
                let later = once.replay(&direct.later, direct.later.idle.window);
                if !is_worst(life, Some(&later)) {
                    noted.tie(number, 0, 1);
                }
            }
        }
        partial.work.replays += once.replays;
        !once.is_stuck
    }
}

/// Whether a run that ends so counts as a kill, if every unresolved run does.
fn is_worst(life: &Life, outcome: Option<&Outcome>) -> bool {
    let judgement = outcome.map_or(life.survival(), |end| {
        life.judge(end.cause, end.at_ms, end.unseen)
    });
    matches!(judgement, Judgement::FalseKill | Judgement::Unresolved)
}

/// Killed, and the record does not say that this was right.
fn is_wrong(life: &Life, outcome: &Outcome) -> bool {
    kill_class(outcome.cause).is_some()
        && life.judge(outcome.cause, outcome.at_ms, outcome.unseen) != Judgement::TrueKill
}

/// What is still asked of a run that has been read.
pub(crate) struct Once<'r> {
    pub(crate) role: &'r str,
    /// The times of its events.
    pub(crate) times: &'r [u64],
    /// The run, where its events are at hand.
    pub(crate) events: Option<(&'r RunView<'r>, &'r Symbols)>,
    /// Where they are not: policies under which it was replayed, and how it ended, by the number of each.
    pub(crate) replayed: (&'r [(Policy, usize)], &'r [Outcome]),
    /// The same, put together when it is first replayed.
    pub(crate) whole: Option<Run>,
    pub(crate) replays: u64,
    /// A replay was needed without events.
    pub(crate) is_stuck: bool,
}

impl<'r> Once<'r> {
    /// A run whose events are at hand.
    pub(crate) fn of(run: &'r RunView<'r>, symbols: &'r Symbols) -> Self {
        Self {
            role: &run.head.role,
            times: run.t_ms(),
            events: Some((run, symbols)),
            replayed: (&[], &[]),
            whole: None,
            replays: 0,
            is_stuck: false,
        }
    }

    /// A run of a summary.
    pub(crate) const fn without_events(
        role: &'r str,
        times: &'r [u64],
        replayed: (&'r [(Policy, usize)], &'r [Outcome]),
    ) -> Self {
        Self {
            role,
            times,
            events: None,
            replayed,
            whole: None,
            replays: 0,
            is_stuck: false,
        }
    }

    pub(crate) fn replay(&mut self, policy: &Policy, window: Option<Millis>) -> Outcome {
        let mut policy = policy.clone();
        policy.idle.window = window;
        let Some((run, symbols)) = self.events else {
            let (policies, outcomes) = self.replayed;
            let known = policies.iter().find(|(known, _)| *known == policy);
            if let Some(outcome) = known.and_then(|(_, place)| outcomes.get(*place)) {
                return *outcome;
            }
            self.is_stuck = true;
            return Outcome {
                cause: Cause::Running,
                at_ms: 0,
                unseen: None,
            };
        };
        let run = self.whole.get_or_insert_with(|| run.to_run());
        let replayed = replay(&policy, run, symbols);
        self.replays += 1;
        Outcome {
            cause: replayed.verdict.cause,
            at_ms: replayed.verdict.at.as_u64(),
            unseen: Some(replayed.unseen),
        }
    }

    /// The outcome of an answer; `None` when nothing ends the run but itself or its record.
    pub(crate) fn settle(
        &mut self,
        answer: Answer,
        policy: &Policy,
        window: Option<Millis>,
    ) -> Option<Outcome> {
        match answer {
            Answer::Ends(crossing) => Some(Outcome::of(&crossing)),
            Answer::Survives => None,
            Answer::NeedsReplay => Some(self.replay(policy, window)),
        }
    }

    /// Whether the first unseen event came at the instant of the firing.
    fn is_tied(&self, outcome: &Outcome) -> bool {
        let times = self.times;
        let unseen = outcome
            .unseen
            .unwrap_or_else(|| times.partition_point(|&t_ms| t_ms < outcome.at_ms));
        times.get(unseen) == Some(&outcome.at_ms)
    }
}

/// One run on the lines of one structure.
struct Meeting<'m, 'r> {
    lines: &'m Lines,
    found: &'m Crossings,
    life: &'m Life,
    active: &'m ActiveTime,
    slots: &'m Slots,
    base_kills: bool,
    once: &'m mut Once<'r>,
    board: &'m mut Board,
}

impl Meeting<'_, '_> {
    fn noted(&mut self, lag_ms: u64) -> Noted<'_> {
        Noted {
            life: self.life,
            active: self.active,
            slots: self.slots,
            base_kills: self.base_kills,
            lag_ms,
            board: self.board,
        }
    }

    const fn role(&self) -> &str {
        self.once.role
    }

    fn count(&mut self, tied: &mut Vec<Tied>) {
        let lines = self.lines;
        // what a hang costs depends on the line, and detections are not taken back
        let shares = self.life.end != RecordedEnd::Hung;
        if shares {
            for (family, &line) in lines.families.iter().enumerate() {
                let line = &lines.lines[line];
                tied.clear();
                self.ranges(lines.shared(family), line, None, tied);
                self.patch_family(family, tied);
            }
        }
        for (number, line) in lines.lines.iter().enumerate() {
            if line.family.is_none() {
                self.places(number, line);
            } else if !shares {
                let others = self.others(line);
                tied.clear();
                self.ranges(number, line, others.as_ref(), tied);
            }
        }
    }

    fn others(&self, line: &Line) -> Option<Crossing> {
        let structure = &self.lines.structure;
        structure.others(self.found, &line.policy, None, self.role())
    }

    /// Counts the lines of a family where something else than the idle window ends the run.
    fn patch_family(&mut self, family: usize, tied: &[Tied]) {
        let lines = self.lines;
        for (number, line) in lines.lines.iter().enumerate() {
            if line.family != Some(family) {
                continue;
            }
            if let Some(others) = self.others(line) {
                self.patch(number, line, &others, tied);
            }
        }
    }

    /// The ranges of places at which one stretch of the idle clock, or none, is the first to cross the window.
    fn steps(&self, line: &Line) -> impl Iterator<Item = (Range<usize>, u64)> + use<'_> {
        let pieces = self.found.idle(&line.policy);
        let windows = &self.lines.windows;
        let mut from = 0;
        pieces.iter().filter_map(move |piece| {
            let until = from + windows[from..].partition_point(|&ms| ms <= piece.reading_ms());
            let range = from..until;
            from = until;
            (!range.is_empty()).then_some((range, piece.from_ms))
        })
    }

    /// The first place of `range` where `others` goes before the idle clock started at `from_ms`.
    fn cut(&self, range: &Range<usize>, from_ms: u64, others: &Crossing) -> usize {
        let windows = &self.lines.windows[range.clone()];
        range.start
            + windows.partition_point(|&ms| others.loses_to_idle_at(from_ms.saturating_add(ms)))
    }

    /// Counts every place of a line.
    fn ranges(
        &mut self,
        number: usize,
        line: &Line,
        others: Option<&Crossing>,
        tied: &mut Vec<Tied>,
    ) {
        let windows = &self.lines.windows;
        let mut next = 0;
        let steps: Vec<(Range<usize>, u64)> = self.steps(line).collect();
        for (range, from_ms) in steps {
            let cut = others.map_or(range.end, |others| self.cut(&range, from_ms, others));
            self.noted(line.lag_ms)
                .idle(number, windows, &(range.start..cut), from_ms, 1);
            self.ties(line, &(range.start..cut), from_ms, number, tied);
            next = cut;
            if cut < range.end {
                break;
            }
        }
        self.rest(number, line, next, others);
    }

    /// Counts the places from `next` on, where the idle window comes too late or never.
    fn rest(&mut self, number: usize, line: &Line, next: usize, others: Option<&Crossing>) {
        let places = next..self.lines.places();
        match others {
            Some(others) => {
                let outcome = Outcome::of(others);
                self.noted(line.lag_ms).fixed(number, &places, &outcome, 1);
                if self.can_tie(&outcome) {
                    for place in places {
                        if self.is_tie(line, place) {
                            self.noted(line.lag_ms).tie(number, place, 1);
                        }
                    }
                }
            }
            None => self.noted(line.lag_ms).survival(number, &places, 1),
        }
    }

    /// Makes of the counts that a line shares its own, where `others` ends the run.
    fn patch(&mut self, number: usize, line: &Line, others: &Crossing, tied: &[Tied]) {
        let windows = &self.lines.windows;
        let mut next = None;
        let mut end = 0;
        let steps: Vec<(Range<usize>, u64)> = self.steps(line).collect();
        for (range, from_ms) in steps {
            end = range.end;
            let from = if next.is_some() {
                range.start
            } else {
                let cut = self.cut(&range, from_ms, others);
                if cut == range.end {
                    continue;
                }
                next = Some(cut);
                cut
            };
            self.noted(line.lag_ms)
                .idle(number, windows, &(from..range.end), from_ms, -1);
        }
        let next = next.unwrap_or(end);
        let places = end..self.lines.places();
        self.noted(line.lag_ms).survival(number, &places, -1);
        for tied in tied {
            let counts = tied.place < next && self.is_tie(line, tied.place);
            let change = i64::from(counts) - i64::from(tied.counted);
            if change != 0 {
                self.noted(line.lag_ms).tie(number, tied.place, change);
            }
        }
        self.rest(number, line, next, Some(others));
    }

    /// Looks at each place of a line that is asked for by itself, as far as some stretch of the idle clock reaches.
    fn places(&mut self, number: usize, line: &Line) {
        let alike = self.alike(line);
        let asked = |from: usize, until: usize| {
            let places = line.places.iter().copied();
            places.filter(move |place| (from..until).contains(place))
        };
        for place in asked(0, alike.start) {
            self.place(number, line, place);
        }
        if alike.is_empty() {
            return;
        }
        let structure = &self.lines.structure;
        let answer = structure.answer(self.found, &line.policy, None, self.role());
        let outcome = match answer {
            Answer::NeedsReplay => {
                for place in asked(alike.start, alike.end) {
                    self.place(number, line, place);
                }
                return;
            }
            Answer::Ends(crossing) => Outcome::of(&crossing),
            Answer::Survives => return self.noted(line.lag_ms).survival(number, &alike, 1),
        };
        let worst = self.noted(line.lag_ms).fixed(number, &alike, &outcome, 1);
        if worst && self.once.is_tied(&outcome) {
            for place in asked(alike.start, alike.end) {
                if self.is_tie(line, place) {
                    self.noted(line.lag_ms).tie(number, place, 1);
                }
            }
        }
    }

    /// The places whose windows no stretch of the idle clock reaches: there the same ends the run, unless the window
    /// says how often the driver looks.
    fn alike(&self, line: &Line) -> Range<usize> {
        let end = self.lines.places();
        if matches!(line.policy.detect.poll, Poll::Tenth) {
            return end..end;
        }
        let pieces = self.found.idle(&line.policy).iter();
        let longest_ms = pieces.map(Piece::reading_ms).max().unwrap_or(0);
        let windows = &self.lines.windows;
        windows.partition_point(|&ms| ms <= longest_ms)..end
    }

    fn place(&mut self, number: usize, line: &Line, place: usize) {
        let window = self.lines.window(place);
        let outcome = self.outcome(&line.policy, window);
        let places = place..place + 1;
        match &outcome {
            Some(outcome) => {
                let worst = self.noted(line.lag_ms).fixed(number, &places, outcome, 1);
                if worst && self.once.is_tied(outcome) && self.is_tie(line, place) {
                    self.noted(line.lag_ms).tie(number, place, 1);
                }
            }
            None => self.noted(line.lag_ms).survival(number, &places, 1),
        }
    }

    fn outcome(&mut self, policy: &Policy, window: Option<Millis>) -> Option<Outcome> {
        let role = self.once.role;
        let answer = self
            .lines
            .structure
            .answer(self.found, policy, window, role);
        self.once.settle(answer, policy, window)
    }

    /// Whether a kill at that place would be none if an event at the deadline came first.
    fn is_tie(&mut self, line: &Line, place: usize) -> bool {
        let window = self
            .lines
            .window(place)
            .map(|window| window.plus(Millis::new(1)));
        let later = self.outcome(&line.later, window);
        !is_worst(self.life, later.as_ref())
    }

    /// Whether a firing of something else than the idle clock may have won against an event of its instant.
    fn can_tie(&self, outcome: &Outcome) -> bool {
        let moves = matches!(
            outcome.cause,
            Cause::TotalTimeout
                | Cause::CeilingTimeout
                | Cause::StartupTimeout
                | Cause::FirstTimeout
        );
        // limits of open things keep their length, and a stop is an event itself
        moves
            && self.life.end != RecordedEnd::Hung
            && is_worst(self.life, Some(outcome))
            && self.once.is_tied(outcome)
    }

    /// Notes the places of `range` at which an event came as the idle clock, started at `from_ms`, fired.
    fn ties(
        &mut self,
        line: &Line,
        range: &Range<usize>,
        from_ms: u64,
        number: usize,
        tied: &mut Vec<Tied>,
    ) {
        if range.is_empty() || self.life.end == RecordedEnd::Hung {
            return;
        }
        let windows = &self.lines.windows[range.clone()];
        let times = self.once.times;
        let first = from_ms.saturating_add(windows[0]);
        let last = from_ms.saturating_add(windows[windows.len() - 1]);
        let mut event = times.partition_point(|&t_ms| t_ms < first);
        while let Some(&t_ms) = times.get(event).filter(|&&t_ms| t_ms <= last) {
            if let Ok(place) = windows.binary_search(&(t_ms - from_ms)) {
                let place = range.start + place;
                let outcome = Outcome {
                    cause: Cause::IdleTimeout,
                    at_ms: t_ms,
                    unseen: None,
                };
                if is_worst(self.life, Some(&outcome)) {
                    let counted = self.is_tie_of(line, number, place);
                    tied.push(Tied { place, counted });
                    if counted {
                        self.noted(line.lag_ms).tie(number, place, 1);
                    }
                }
            }
            event += times[event..].partition_point(|&t| t <= t_ms);
        }
    }

    /// Whether it is a tie; on a shared line nothing but the idle window counts.
    fn is_tie_of(&mut self, line: &Line, number: usize, place: usize) -> bool {
        if number < self.lines.lines.len() {
            return self.is_tie(line, place);
        }
        let window = self
            .lines
            .window(place)
            .map(|window| window.plus(Millis::new(1)));
        let later = self.lines.structure.idle(self.found, &line.policy, window);
        let later = later.map(|crossing| Outcome::of(&crossing));
        !is_worst(self.life, later.as_ref())
    }
}

/// Where what happens to a run is noted.
struct Noted<'n> {
    life: &'n Life,
    active: &'n ActiveTime,
    slots: &'n Slots,
    base_kills: bool,
    lag_ms: u64,
    board: &'n mut Board,
}

impl Noted<'_> {
    /// The idle clock, started at `from_ms`, kills at every window of `places`.
    fn idle(
        &mut self,
        line: usize,
        windows: &[u64],
        places: &Range<usize>,
        from_ms: u64,
        sign: i64,
    ) {
        if places.is_empty() {
            return;
        }
        let until = |t_ms: u64| {
            let within = &windows[places.clone()];
            places.start + within.partition_point(|&ms| from_ms.saturating_add(ms) <= t_ms)
        };
        if self.life.end == RecordedEnd::Hung {
            let onset_ms = self.life.onset_ms;
            let split = onset_ms.checked_sub(1).map_or(places.start, until);
            self.board.add_kill(line, places, Cause::IdleTimeout, sign);
            self.early(line, &(places.start..split), sign);
            let lag_ms = i64::try_from(i128::from(from_ms) - i128::from(onset_ms));
            let after = After::Window(lag_ms.unwrap_or(i64::MAX));
            self.board.add_detection(line, &(split..places.end), after);
            let fixed = i128::from(from_ms) + i128::from(self.lag_ms) - i128::from(onset_ms);
            let lost = Linear::new(fixed, true);
            self.sum(line, &(split..places.end), Sum::SlotLost, lost, sign);
            return;
        }
        let alive = self
            .life
            .alive
            .map_or(places.start, |mark| until(mark.t_ms));
        let silent = self.life.judge(Cause::IdleTimeout, u64::MAX, None);
        for (range, judgement) in [
            (places.start..alive, Judgement::FalseKill),
            (alive..places.end, silent),
        ] {
            self.killed(line, &range, Cause::IdleTimeout, judgement, sign);
            let Some(sum) = sum_of(judgement).filter(|_| !range.is_empty()) else {
                continue;
            };
            let instants = [range.start, range.end - 1].map(|place| from_ms + windows[place]);
            let mut next = range.start;
            for stretch in self.active.stretches(instants[0], instants[1]) {
                let within = &windows[next..range.end];
                let last = next
                    + within.partition_point(|&ms| from_ms.saturating_add(ms) <= stretch.last_ms);
                let mut fixed = i128::from(stretch.before_ms);
                if stretch.active {
                    fixed += i128::from(from_ms) - i128::from(stretch.from_ms);
                }
                let linear = Linear::new(fixed, stretch.active);
                self.sum(line, &(next..last), sum, linear, sign);
                next = last;
            }
        }
    }

    /// The run ends in one way at all `places`; whether that counts as a kill at worst.
    fn fixed(&mut self, line: usize, places: &Range<usize>, outcome: &Outcome, sign: i64) -> bool {
        let Outcome {
            cause,
            at_ms,
            unseen,
        } = *outcome;
        if kill_class(cause).is_none() {
            self.survival(line, places, sign);
            return false;
        }
        if self.life.end == RecordedEnd::Hung {
            self.board.add_kill(line, places, cause, sign);
            if at_ms < self.life.onset_ms {
                self.early(line, places, sign);
            } else {
                let lost_ms = at_ms - self.life.onset_ms;
                let after = After::Always(i64::try_from(lost_ms).unwrap_or(i64::MAX));
                self.board.add_detection(line, places, after);
                let lost = Linear::new(i128::from(lost_ms) + i128::from(self.lag_ms), false);
                self.sum(line, places, Sum::SlotLost, lost, sign);
            }
            return false;
        }
        let judgement = self.life.judge(cause, at_ms, unseen);
        self.killed(line, places, cause, judgement, sign);
        let Some(sum) = sum_of(judgement) else {
            return false;
        };
        let work = Linear::new(i128::from(self.active.until(at_ms)), false);
        self.sum(line, places, sum, work, sign);
        true
    }

    /// The run ends by itself, or with its record, at all `places`.
    fn survival(&mut self, line: usize, places: &Range<usize>, sign: i64) {
        if self.life.end == RecordedEnd::Hung {
            let missed = Whole {
                hung_missed: 1,
                ..Whole::default()
            };
            self.board.add_whole(line, places, &missed, sign);
            let lost_ms = self.life.end_ms.saturating_sub(self.life.onset_ms);
            self.sum(
                line,
                places,
                Sum::SlotLost,
                Linear::new(i128::from(lost_ms), false),
                sign,
            );
            return;
        }
        let whole = Whole {
            base_only: i64::from(self.base_kills),
            ..Whole::default()
        };
        self.board.add_whole(line, places, &whole, sign);
        if self.life.survival() == Judgement::Unresolved {
            let step = Step {
                unresolved_survivals: 1,
                ..Step::default()
            };
            self.board.add_step(self.slots, line, places, &step, sign);
            let work = Linear::new(i128::from(self.active.until(self.life.end_ms)), false);
            self.sum(line, places, Sum::DoubtfulWork, work, sign);
        }
    }

    fn killed(
        &mut self,
        line: usize,
        places: &Range<usize>,
        cause: Cause,
        judgement: Judgement,
        sign: i64,
    ) {
        let right = judgement == Judgement::TrueKill;
        let step = Step {
            false_kills: i64::from(judgement == Judgement::FalseKill),
            unresolved_kills: i64::from(judgement == Judgement::Unresolved),
            ..Step::default()
        };
        let whole = Whole {
            true_kills: i64::from(right),
            base_only: i64::from(right && self.base_kills),
            candidate_only: i64::from(!right && !self.base_kills),
            ..Whole::default()
        };
        self.board.add_kill(line, places, cause, sign);
        self.board.add_step(self.slots, line, places, &step, sign);
        self.board.add_whole(line, places, &whole, sign);
    }

    fn early(&mut self, line: usize, places: &Range<usize>, sign: i64) {
        let early = Whole {
            hung_killed_early: 1,
            ..Whole::default()
        };
        self.board.add_whole(line, places, &early, sign);
    }

    fn tie(&mut self, line: usize, place: usize, sign: i64) {
        let step = Step {
            ties: 1,
            ..Step::default()
        };
        self.board
            .add_step(self.slots, line, &(place..place + 1), &step, sign);
    }

    fn sum(&mut self, line: usize, places: &Range<usize>, sum: Sum, linear: Linear, sign: i64) {
        self.board
            .add_sum(self.slots, line, places, sum, linear, sign);
    }
}

/// Where the work of a run that ends with that word is summed.
const fn sum_of(judgement: Judgement) -> Option<Sum> {
    match judgement {
        Judgement::FalseKill => Some(Sum::WorkLost),
        Judgement::Unresolved => Some(Sum::DoubtfulWork),
        Judgement::TrueKill | Judgement::Ended | Judgement::MissedHang => None,
    }
}
