//! Every sequence of events up to a depth, for every preset, against a naive millisecond model.
//!
//! Sequences are walked layer by layer; states that are equal, in the core and in the model, are walked on
//! once and counted as often as they were reached.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "common/naive.rs"]
mod naive;
#[path = "common/small.rs"]
mod small;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use naive::Naive;
use policysim_policy::{Cause, Event, First, Kind, Millis, Policy, Waits, Watchdog, presets};

/// How far ahead a pending instant is looked for: beyond every scaled limit.
const HORIZON: u64 = 64;

/// A run as the core and as the model see it, and one way to get there.
struct Node {
    dog: Watchdog,
    naive: Naive,
    /// How many sequences lead here.
    ways: u64,
    path: Path,
}

/// One way to a state, its last step first.
type Path = Option<Arc<Step>>;

struct Step {
    t: u64,
    symbol: usize,
    before: Path,
}

/// States are hashed by the million, by nobody hostile: multiply and rotate will do.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// States, each with the number of ways to it and the first of them.
type Layer = HashMap<(Watchdog, Naive), (u64, Path), BuildHasherDefault<Mix>>;

/// The outcome of a walk.
#[derive(Default)]
struct Walk {
    sequences: u64,
    states: u64,
    steps: u64,
}

fn verdict(dog: &Watchdog) -> Option<(Cause, u64)> {
    dog.verdict().map(|v| (v.cause, v.at.as_u64()))
}

/// Just before, at and after each instant at which a clock is due or seen, and now.
fn times(p: &Policy, naive: &Naive) -> Vec<u64> {
    let seen = naive.next_instant(p, naive.t + HORIZON);
    let last = seen.map_or(naive.t + 1, |seen| seen + 1);
    let mut times: Vec<u64> = naive
        .dues(p)
        .into_iter()
        .chain(seen)
        .flat_map(|due| [due.saturating_sub(1), due, due + 1])
        .chain([naive.t])
        .filter(|t| (naive.t..=last).contains(t))
        .collect();
    times.sort_unstable();
    times.dedup();
    times
}

fn walk(p: &Policy, depth: usize) -> Walk {
    let alphabet = small::alphabet(p);
    let mut done = Walk::default();
    let mut layer = vec![Node {
        dog: Watchdog::new(p, Millis::ZERO),
        naive: Naive::new(p, 0),
        ways: 1,
        path: None,
    }];
    for _ in 0..depth {
        let mut next = Layer::default();
        for node in &layer {
            for t in times(p, &node.naive) {
                // all events at one instant share the way up to it
                let mut naive_there = node.naive.clone();
                naive_there.wait(p, t);
                for (i, (_, event, deadline)) in alphabet.iter().enumerate() {
                    let mut event = *event;
                    event.deadline = deadline.map(|span| Millis::new(t + span));
                    let path = || {
                        Some(Arc::new(Step {
                            t,
                            symbol: i,
                            before: node.path.clone(),
                        }))
                    };
                    let told = || told(p, &path());
                    done.steps += 1;
                    let dog = step(p, &node.dog, t, &event, told);
                    let mut naive = naive_there.clone();
                    naive.feed(p, t, &event);
                    assert_eq!(verdict(&dog), naive.verdict, "{}", told());
                    if dog.verdict().is_some_and(|v| v.cause.is_firing()) {
                        done.sequences += node.ways;
                        assert_nothing_changes(&dog, t, &alphabet, told);
                        assert_silence(p, &dog, &alphabet, &node.path, told);
                        continue;
                    }
                    next.entry((dog, naive))
                        .and_modify(|(ways, _)| *ways += node.ways)
                        .or_insert_with(|| (node.ways, path()));
                }
            }
        }
        layer = next
            .into_iter()
            .map(|((dog, naive), (ways, path))| {
                assert_eq!(
                    dog.poll_timeout().map(Millis::as_u64),
                    naive.next_instant(p, naive.t + HORIZON),
                    "wake-up after {}",
                    told(p, &path)
                );
                assert_human_stops_time(p, &dog, naive.t, || told(p, &path));
                Node {
                    dog,
                    naive,
                    ways,
                    path,
                }
            })
            .collect();
        done.states += layer.len() as u64;
    }
    done.sequences += layer.iter().map(|node| node.ways).sum::<u64>();
    done
}

/// The next state, which timeouts in between must not change.
fn step(
    p: &Policy,
    dog: &Watchdog,
    t: u64,
    event: &Event<'_>,
    path: impl Fn() -> String,
) -> Watchdog {
    let mut fed = dog.clone();
    fed.handle_event(Millis::new(t), event);
    let mut woken = dog.clone();
    for early in [0, t.saturating_sub(1), t, t] {
        woken.handle_timeout(Millis::new(early));
    }
    woken.handle_event(Millis::new(t), event);
    assert_eq!(
        verdict(&fed),
        verdict(&woken),
        "woken on the way: {}",
        path()
    );
    // after a firing the state is not looked at any more
    if fed.verdict().is_none() {
        assert!(fed == woken, "woken on the way: {} under {p:?}", path());
    }
    fed
}

/// A run that keeps producing activity is never killed for silence: whatever the clocks say, the last
/// unthrottled evidence before such a kill is at least a window old.
fn assert_silence(
    p: &Policy,
    dog: &Watchdog,
    alphabet: &[(String, Event<'static>, Option<u64>)],
    path: &Path,
    told: impl Fn() -> String,
) {
    let Some((cause, at)) = verdict(dog) else {
        return;
    };
    let progress = p.idle.progress.resolve(&p.idle.rearm);
    let throttled = p.idle.throttled.resolve(&p.idle.rearm);
    let first = match p.idle.first {
        First::After(first) => Some(first),
        _ => None,
    };
    let window = match cause {
        Cause::IdleTimeout | Cause::FirstTimeout => p.idle.window.into_iter().chain(first).min(),
        Cause::CeilingTimeout => p.idle.ceiling,
        _ => return,
    };
    let mut last = path;
    while let Some(step) = last {
        let kind = alphabet[step.symbol].1.kind;
        let counts = p.idle.rearm.has(kind)
            && (progress.has(kind) || cause != Cause::CeilingTimeout)
            && (p.idle.throttle.is_none() || !throttled.has(kind));
        let quiet = Millis::new(at - step.t);
        // frame events are never evidence, whatever the set holds
        let frame = matches!(
            kind,
            Kind::Spawn
                | Kind::RunStart
                | Kind::Resume
                | Kind::RunEnd
                | Kind::HostResume
                | Kind::HostSuspend
        );
        assert!(frame || !counts || Some(quiet) >= window, "{}", told());
        last = &step.before;
    }
}

/// A human wait moves no clock that the policy pauses for humans: under the presets that pause at all,
/// nothing is due while one is open, a caller's deadline apart.
fn assert_human_stops_time(p: &Policy, dog: &Watchdog, t: u64, told: impl Fn() -> String) {
    if p.pause.human == Waits::None || dog.verdict().is_some() {
        return;
    }
    let mut asked = dog.clone();
    let wait = Event::new(Kind::HumanWaitStart).with_id(policysim_policy::CallId::new(77));
    asked.handle_event(Millis::new(t), &wait);
    assert_eq!(asked.poll_timeout(), None, "asked after {}", told());
    asked.handle_timeout(Millis::new(t + 1_000_000));
    assert_eq!(verdict(&asked), None, "waited after {}", told());
}

/// A firing is final, whatever comes.
fn assert_nothing_changes(
    dog: &Watchdog,
    t: u64,
    alphabet: &[(String, Event<'static>, Option<u64>)],
    path: impl Fn() -> String,
) {
    let mut after = dog.clone();
    let fired = verdict(dog);
    for (_, event, _) in alphabet {
        after.handle_event(Millis::new(t), event);
    }
    after.handle_timeout(Millis::new(t + HORIZON));
    after.finish(Millis::new(t + HORIZON));
    assert_eq!(verdict(&after), fired, "after a firing: {}", path());
    assert_eq!(after.poll_timeout(), None);
}

fn told(p: &Policy, path: &Path) -> String {
    let alphabet = small::alphabet(p);
    let mut steps = Vec::new();
    let mut last = path;
    while let Some(step) = last {
        steps.push(format!("{} {}", step.t, alphabet[step.symbol].0));
        last = &step.before;
    }
    steps.reverse();
    steps.join(", ")
}

fn check(name: &str, cap: Option<u32>, depth: usize) {
    let mut p = small::scaled(name);
    p.turns.cap = cap.or(p.turns.cap);
    #[allow(
        clippy::disallowed_methods,
        reason = "how long the walk took is printed, nothing hangs on it"
    )]
    let begun = std::time::Instant::now();
    let walk = walk(&p, depth);
    println!(
        "{name}{}: {} sequences of {depth} events from {} kinds of event, {} states, {} steps, {:.1?}",
        cap.map_or(String::new(), |cap| format!(" capped at {cap}")),
        walk.sequences,
        small::alphabet(&p).len(),
        walk.states,
        walk.steps,
        begun.elapsed()
    );
    assert!(walk.sequences >= 1_000_000, "{name}: {}", walk.sequences);
}

macro_rules! presets {
    ($($test:ident $name:literal $cap:expr, $depth:literal;)*) => {
        $(#[test] fn $test() { check($name, $cap, $depth); })*

        #[test]
        fn no_preset_is_left_out() {
            let walked = [$($name),*];
            for preset in presets::PRESETS {
                assert!(walked.contains(&preset.name), "{}", preset.name);
            }
        }
    };
}

presets! {
    pi_desktop_0119 "pi-desktop-0119" None, 7;
    pi_desktop_0119_capped "pi-desktop-0119" Some(1), 6;
    pi_desktop_0129 "pi-desktop-0129" None, 7;
    pi_desktop_0129_capped "pi-desktop-0129" Some(2), 6;
    pi_desktop_0166 "pi-desktop-0166" None, 8;
    pi_desktop_0166_capped "pi-desktop-0166" Some(2), 8;
    pi_ext_inproc "pi-ext-inproc" None, 8;
    pi_ext_adr0010 "pi-ext-adr0010" None, 6;
    netclaw_tool_reset_on_item "netclaw-tool-reset-on-item" None, 6;
    netclaw_tool_first_item_only "netclaw-tool-first-item-only" None, 7;
    netclaw_tool_wall_clock "netclaw-tool-wall-clock" None, 8;
    netclaw_tool_wall_clock_1473 "netclaw-tool-wall-clock-1473" None, 7;
    netclaw_subagent "netclaw-subagent" None, 6;
    netclaw_target "netclaw-target" None, 7;
    no_mistakes_silence "no-mistakes-silence" None, 6;
    no_mistakes_fixed "no-mistakes-fixed" None, 8;
    no_mistakes_fixed_shared "no-mistakes-fixed-shared" None, 8;
}

/// Replacing kinds by their class's representative changes no outcome: the whole alphabet at depth two.
#[test]
fn kinds_of_one_class_are_alike() {
    let mut compared = 0;
    for preset in presets::PRESETS {
        for cap in [None, Some(1)] {
            let mut p = small::scaled(preset.name);
            p.turns.cap = cap;
            for first in Kind::ALL {
                for second in Kind::ALL {
                    for times in [(0, 0), (0, 2), (1, 3), (2, 4), (2, 5)] {
                        let outcome = |map: fn(&Policy, Kind) -> Kind| {
                            let mut dog = Watchdog::new(&p, Millis::ZERO);
                            for (t, kind) in [(times.0, first), (times.1, second)] {
                                let event = small::event_of(map(&p, kind), kind);
                                dog.handle_event(Millis::new(t), &event);
                            }
                            dog.finish(Millis::new(HORIZON));
                            (verdict(&dog), dog.verdict().map(|v| v.due))
                        };
                        compared += 1;
                        assert_eq!(
                            outcome(|_, kind| kind),
                            outcome(small::representative),
                            "{}: {first} at {}, {second} at {}",
                            preset.name,
                            times.0,
                            times.1
                        );
                    }
                }
            }
        }
    }
    println!("{compared} pairs of kinds compared with their representatives");
}
