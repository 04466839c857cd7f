//! Drives the core over real time: a watchdog of one second of silence over a child's output.
//!
//! `cargo run --example real_time -- sh -c 'for i in 1 2 3; do echo $i; sleep 0.5; done; sleep 9'`
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example over real time that shows what it does"
)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use policysim_policy::{Event, Kind, Millis, Outcome, Policy, Setup, Trace, Watchdog};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let program = args
        .next()
        .ok_or("usage: real_time PROGRAM [ARGUMENT]...")?;
    let mut child = Command::new(program)
        .args(args)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().ok_or("no output to read")?);
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || output.lines().try_for_each(|line| send.send(line)));

    let mut policy = Policy::default();
    policy.idle.window = Some(Millis::from_secs(1));
    let trace = Trace::Full;
    let mut dog = Watchdog::with(
        &policy,
        Millis::ZERO,
        &Setup {
            trace,
            ..Setup::default()
        },
    );
    let begun = Instant::now();
    let now = || Millis::new(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    while dog.verdict().is_none() {
        let wake = dog.poll_timeout().unwrap_or(Millis::MAX).since(now());
        match lines.recv_timeout(Duration::from_millis(wake.as_u64())) {
            Ok(_line) => dog.handle_event(now(), &Event::new(Kind::Stdout)),
            Err(RecvTimeoutError::Timeout) => dog.handle_timeout(now()),
            Err(RecvTimeoutError::Disconnected) => {
                let end = Event::new(Kind::RunEnd).with_outcome(Outcome::Completed);
                dog.handle_event(now(), &end);
            }
        }
        while let Some(fact) = dog.poll_output() {
            println!("{fact:?}");
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}
