//! What `watch` costs, as ratios: `watch --stream none -- cat FILE` against `cat FILE | cat`, both into the same
//! reader, and processor time while the command is idle.
//!
//! `cargo bench -p policysim-cli --bench watch_overhead`; the two are run in turn, and the median of the ratios counts.
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
/// The kernel tells processor time in hundredths of a second.
const MS_PER_TICK: u64 = 10;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bytes");
    fs::write(&file, vec![b'x'; FILE_BYTES]).unwrap();
    fs::write(folder.path().join("p.toml"), "idle = \"60s\"\n").unwrap();
    throughput(folder.path());
    idle(folder.path(), &[]);
    fs::write(folder.path().join("log.jsonl"), "").unwrap();
    idle(folder.path(), &["--session", "log.jsonl"]);
}

fn throughput(folder: &Path) {
    let watch = format!(
        "exec '{}' watch --policy p.toml --stream none -- cat bytes",
        env!("CARGO_BIN_EXE_policysim")
    );
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let plain = seconds(folder, "cat bytes | cat");
        let watched = seconds(folder, &watch);
        ratios.push(plain / watched);
        rates.push(FILE_BYTES as f64 / watched / 1e6);
    }
    println!(
        "throughput of watch / of cat FILE | cat: {:.0} % (median of {ROUNDS}; {:.0} MB/s)",
        100.0 * median(&mut ratios),
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
fn idle(folder: &Path, options: &[&str]) {
    let mut watch = Command::new(env!("CARGO_BIN_EXE_policysim"))
        .args(["watch", "--policy", "p.toml"])
        .args(options)
        .args(["--", "sleep", "60"])
        .current_dir(folder)
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(1));
    let before = used_ms(watch.id());
    thread::sleep(IDLE);
    let used = used_ms(watch.id()) - before;
    println!(
        "processor time in {} s of silence {}: {used} ms",
        IDLE.as_secs(),
        options.join(" ")
    );
    // TERM, so that watch ends its command.
    let id = watch.id().to_string();
    Command::new("kill").arg(id).status().unwrap();
    watch.wait().unwrap();
}

fn used_ms(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .map(|field| field.parse::<u64>().unwrap() * MS_PER_TICK)
        .sum()
}
