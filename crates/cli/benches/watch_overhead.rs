//! What `watch` costs, as ratios: `watch --stream none -- cat FILE` against `cat FILE | cat`, both into the same
//! reader, and processor time while the command is idle.
//!
//! `cargo bench -p policysim-cli --bench watch_overhead [-- PROGRAM]`; PROGRAM is another `policysim` to measure. The
//! two are run in turn, and the median of the ratios counts; the goal is at least 70 %.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement over real time that prints what it found"
)]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How much is passed through at once, and how often.
const FILE_BYTES: usize = 512 << 20;
const ROUNDS: usize = 9;
/// How long the idle command is watched.
const IDLE: Duration = Duration::from_secs(10);

fn main() {
    let program = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_policysim").to_owned());
    let program = &fs::canonicalize(program).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bytes");
    fs::write(&file, vec![b'x'; FILE_BYTES]).unwrap();
    fs::write(folder.path().join("p.toml"), "idle = \"60s\"\n").unwrap();
    throughput(program, folder.path());
    idle(program, folder.path(), &[]);
    fs::write(folder.path().join("log.jsonl"), "").unwrap();
    idle(program, folder.path(), &["--session", "log.jsonl"]);
}

fn throughput(program: &Path, folder: &Path) {
    let watch = format!(
        "exec '{}' watch --policy p.toml --stream none -- cat bytes",
        program.display()
    );
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let plain = seconds(folder, "cat bytes | cat");
        let watched = seconds(folder, &watch);
        ratios.push(plain / watched);
        rates.push(FILE_BYTES as f64 / watched / 1e6);
    }
    let ratio = median(&mut ratios);
    println!(
        "throughput of watch / of cat FILE | cat: {:.0} % (goal: at least 70 %; median of {ROUNDS}, {:.0} to {:.0} %; \
         {:.0} MB/s)",
        100.0 * ratio,
        100.0 * ratios[0],
        100.0 * ratios[ROUNDS - 1],
        median(&mut rates)
    );
}

/// How long it takes to read everything that the line prints.
fn seconds(folder: &Path, line: &str) -> f64 {
    let begun = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    loop {
        match output.read(&mut buffer).unwrap() {
            0 => break,
            n => total += n,
        }
    }
    assert_eq!(total, FILE_BYTES);
    assert!(child.wait().unwrap().success());
    begun.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Processor time that `watch` uses while its command sleeps, the start not counted.
fn idle(program: &Path, folder: &Path, options: &[&str]) {
    let mut watch = Command::new(program)
        .args(["watch", "--policy", "p.toml"])
        .args(options)
        .args(["--", "sleep", "60"])
        .current_dir(folder)
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(1));
    let before = used_ns(watch.id());
    thread::sleep(IDLE);
    let used_us = (used_ns(watch.id()) - before) / 1_000;
    println!(
        "processor time in {} s of silence {}: {used_us} us",
        IDLE.as_secs(),
        options.join(" ")
    );
    // TERM, so that watch ends its command.
    let id = watch.id().to_string();
    Command::new("kill").arg(id).status().unwrap();
    watch.wait().unwrap();
}

/// What all threads of a process have used, as the scheduler counts it.
fn used_ns(id: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let of_task = |task: fs::DirEntry| {
        let line = fs::read_to_string(task.path().join("schedstat")).unwrap();
        line.split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    tasks.map(|task| of_task(task.unwrap())).sum()
}
