//! The watchdog core: idle, total and turn limits over the run of an LLM agent, as a state machine without
//! clock, I/O, threads or randomness.
//!
//! A harness embeds it, `policysim watch` arms it over a live process, and replay feeds it recorded runs: one
//! implementation, so what is simulated is what happens. The crate is `no_std` with `alloc` and depends on nothing;
//! it refuses to read a clock, to sleep, to kill, to log. Those are the caller's.
//!
//! # Driving it
//!
//! Time is an argument: milliseconds since the run's start, on one monotonic clock. Feed an event or let time
//! pass, drain the facts, wait until the next wake-up, feed again.
//!
//! ```
//! use policysim_policy::{Cause, CallId, Event, Kind, Millis, Output, Setup, Trace, Watchdog, presets};
//!
//! // What comes when: here a list, in a harness a channel with a timeout.
//! let tool = CallId::from_text("call-1");
//! let mut events = vec![
//!     (1_000, Event::new(Kind::MessageUpdate)),
//!     (2_000, Event::new(Kind::ToolStart).with_id(tool)),
//!     (900_000, Event::new(Kind::ToolEnd).with_id(tool)),
//! ]
//! .into_iter()
//! .peekable();
//!
//! let policy = presets::find("pi-desktop-0129").unwrap();
//! let setup = Setup { role: "explorer", trace: Trace::Full, ..Setup::default() };
//! let mut dog = Watchdog::with(&policy, Millis::ZERO, &setup);
//! let mut transcript = Vec::new();
//! while dog.verdict().is_none() {
//!     // an event that comes before the wake-up is fed, else the wake-up is
//!     let wake = dog.poll_timeout();
//!     match events.next_if(|(at, _)| wake.is_none_or(|wake| Millis::new(*at) < wake)) {
//!         Some((at, event)) => dog.handle_event(Millis::new(at), &event),
//!         None => match wake {
//!             Some(wake) => dog.handle_timeout(wake),
//!             // nothing comes any more and nothing is due
//!             None => dog.finish(Millis::new(900_000)),
//!         },
//!     }
//!     while let Some(fact) = dog.poll_output() {
//!         transcript.push(fact);
//!     }
//! }
//! // the tool paused the idle clock for a quarter of an hour, the silence after it did not
//! let verdict = dog.verdict().unwrap();
//! assert_eq!((verdict.cause, verdict.at), (Cause::IdleTimeout, Millis::new(1_200_000)));
//! assert_eq!(verdict.code, Some("SUBAGENT_IDLE_TIMEOUT"));
//! assert!(transcript.iter().any(|fact| matches!(fact, Output::Paused { .. })));
//! assert!(matches!(transcript.last(), Some(Output::Fired(_))));
//! ```
//!
//! `examples/real_time.rs` does the same over real time and a child process.
//!
//! # What it promises
//!
//! - **A deadline is inclusive.** Silence of exactly the window fires. A timer due at `t` is handled before an event
//!   stamped `t`, so an event, a pause or a completion exactly at the deadline loses.
//! - **Timers due together** go by rank: the caller's deadline, the result's grace, the total, the ceiling, limits
//!   of open things (oldest first), the backoff budget, startup, idle; then announced ends.
//! - **Events of one instant** are applied in the order in which they are fed. A time that steps back counts as the
//!   latest time fed.
//! - **It fires at most once.** After [`Output::Fired`] nothing changes anything. A run that ended by itself can be
//!   reopened by a `resume`, and then ends once more.
//! - **Early, late and repeated timeouts are harmless**: [`Watchdog::handle_timeout`] does what is due by then, each
//!   at its own time, and nothing else. A verdict's `at` is when its clock was seen to be due, however late the call.
//! - **Polled policies** (`detect.poll`) see a due time at the next tick from the segment's start.
//! - **The next step is a function of the past events alone.** No float, no hash order, no address decides.
//!
//! # Memory and cost
//!
//! A [`Watchdog`] is about 1.3 kB and holds up to four open things in place; each further one takes 40 bytes, and
//! at most 1024 are followed (a start beyond them opens nothing and is told as
//! [`Warning::TooManyOpen`]). An adaptive window keeps at most 1000 gaps of 8 bytes. Facts queue until they are
//! polled: under [`Trace::Verdict`] that is one per run. An event costs O(1) amortised in the usual case and at
//! most a scan of the open things; pieces of a stream only restart a clock (`cargo bench -p policysim-policy`).
//!
//! # Presets
//!
//! The reference systems as rows of axis values ([`presets::PRESETS`]); no code asks for a preset's name.
//!
//! | preset | source |
//! |---|---|
//! | `pi-desktop-0119`, `-0129`, `-0166` | PI-Desktop ADR 0119, ADR 0129, ADR 0166 |
//! | `pi-ext-inproc` | petergabriel pi-extensions ADR-0010 (July 2026), in-process child |
//! | `pi-ext-adr0010` | the same ADR (August 2026), child process with heartbeats and parking |
//! | `netclaw-tool-reset-on-item`, `-first-item-only`, `-wall-clock` | Netclaw's streaming tool watchdog at 0.24.1 (issues #1453, #1467) |
//! | `netclaw-tool-wall-clock-1473` | the same after PR 1473 |
//! | `netclaw-subagent` | Netclaw's `ProcessingWatchdog` |
//! | `netclaw-target` | Netclaw issue #1472 |
//! | `no-mistakes-silence` | no-mistakes PR 842 |
//! | `no-mistakes-fixed`, `-fixed-shared` | no-mistakes before it: one deadline per invocation, or per review round |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adaptive;
pub mod binding;
mod by_name;
pub mod check;
mod clock;
mod decimal;
mod detect;
pub mod dialect;
pub mod document;
pub mod duration;
mod error;
mod event;
mod inline_list;
mod kind_set;
mod nearest;
mod open;
mod output;
mod phase;
mod policy;
pub mod presets;
mod quick;
mod record;
pub mod retry;
mod role;
mod rules;
mod segment;
mod settle;
pub mod spelling;
pub mod task_wait;
mod throttle;
mod time;
mod turns;
mod verdict;
mod watchdog;
mod words;

pub use adaptive::{Adaptive, Estimator};
pub use by_name::ByName;
pub use decimal::Decimal;
pub use detect::seen;
pub use error::PolicyError;
pub use event::{CallId, Event, Kind, Outcome};
pub use kind_set::{KindSet, UnknownKind};
pub use nearest::nearest;
pub use output::{
    ClockClass, OpenClass, Output, Reason, Silence, SilenceEnd, Stopped, Trace, Warning,
};
pub use policy::{
    CallerDeadline, Detect, First, Idle, Kill, KillAction, KillScope, KindsOrRearm, LateSuccess,
    OnExpiry, OnTimeout, Overlap, Pause, PhaseScope, Policy, Poll, Retry, RetrySchedule, Scope,
    TaskWait, ToolLimit, Total, TurnStop, Turns, WaitMode, Waits,
};
pub use settle::{Settlement, settle};
pub use time::Millis;
pub use verdict::{Activity, Cause, Phase, Verdict};
pub use watchdog::{Setup, Watchdog};
pub use words::{Word, Words};
