//! The goals of speed and scale, each as a ratio of two things measured in this one run.
//!
//! ```sh
//! cargo run --release --example scale -- --events 1e7
//! ```
//!
//! It makes a dataset of that many events by fixed laws, then runs itself again and again, a part of the work per
//! process and the two sides of a ratio in turn, and prints the medians. CPU time is that of the whole process, from
//! its start to its result. `--pairs 5` says how often, `--keep DIR` where the data stay for the next time.
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)] // it measures time

#[path = "../../tests/big_log/mod.rs"]
mod big_log;
mod memory;
mod parts;
#[allow(dead_code)]
#[path = "../../../sim/benches/common/workload.rs"]
mod workload;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use parts::Cost;

/// Events of the dataset that memory at the large size is held against.
const SMALL: u64 = 100_000;

struct Options {
    events: u64,
    pairs: usize,
    keep: Option<PathBuf>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["part", name, data, threads] = words[..] {
        parts::run(name, Path::new(data), threads.parse().unwrap());
        return;
    }
    let mut options = Options {
        events: 1_000_000,
        pairs: 5,
        keep: None,
    };
    for pair in words.chunks(2) {
        match *pair {
            ["--events", n] => options.events = n.parse::<f64>().unwrap() as u64,
            ["--pairs", n] => options.pairs = n.parse().unwrap(),
            ["--keep", folder] => options.keep = Some(folder.into()),
            _ => panic!("expected --events N, --pairs N, --keep DIR, found {pair:?}"),
        }
    }
    let temporary = tempfile::tempdir().unwrap();
    let folder = options
        .keep
        .clone()
        .unwrap_or_else(|| temporary.path().to_owned());
    let (small, large) = (data(&folder, SMALL), data(&folder, options.events));
    let log = folder.join("log.jsonl");
    if !log.exists() {
        let mut file = std::io::BufWriter::new(std::fs::File::create(&log).unwrap());
        // Lines of 1.6 kB on average, 200 MB of them.
        big_log::write_log(&mut file, 125_000, 2_250).unwrap();
    }
    println!("| goal | ratio | bound | measured |\n|---|---|---|---|");
    whole_processes(&options, &small, &large);
    threads(&options, &large);
    import(&options, &log);
    memory::goals(options.pairs);
}

/// The dataset of that many events below `folder`, made now if it is not there yet.
fn data(folder: &Path, events: u64) -> PathBuf {
    let path = folder.join(format!("events-{events}"));
    if !path.exists() {
        let begun = Instant::now();
        let n_runs = parts::generate(&path, events);
        let size = std::fs::metadata(path.join("events.parquet"))
            .unwrap()
            .len();
        eprintln!(
            "{n_runs} runs of {events} events written in {:.1} s, {:.2} bytes per event",
            begun.elapsed().as_secs_f64(),
            size as f64 / events as f64
        );
    }
    path
}

/// Runs one part in a process of its own.
fn part(name: &str, data: &Path, threads: usize) -> Cost {
    let output = child(name, data, threads).output().unwrap();
    assert!(output.status.success(), "{name}: {output:?}");
    Cost::read(&String::from_utf8(output.stdout).unwrap())
}

fn child(name: &str, data: &Path, threads: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["part", name])
        .arg(data)
        .arg(threads.to_string())
        .env("POLARS_MAX_THREADS", "1");
    command
}

/// The medians of both sides, run in turn.
fn in_turn(pairs: usize, one: (&str, &Path), other: (&str, &Path)) -> (Cost, Cost) {
    let mut costs = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        costs.0.push(part(one.0, one.1, 1));
        costs.1.push(part(other.0, other.1, 1));
    }
    (Cost::median(&costs.0), Cost::median(&costs.1))
}

fn row(goal: &str, ratio: f64, bound: &str, measured: &str) {
    println!("| {goal} | {ratio:.2} | {bound} | {measured} |");
}

fn whole_processes(options: &Options, small: &Path, large: &Path) {
    let n = options.events as f64;
    let ratio = |goal: &str, bound: &str, one: &str, other: &str| {
        let (one_cost, other_cost) = in_turn(options.pairs, (one, large), (other, large));
        row(
            goal,
            one_cost.cpu_s / other_cost.cpu_s,
            bound,
            &format!(
                "{one} {:.3} s CPU, {:.0} M events/s, {:.0} MiB; {other} {:.3} s, {:.0} M events/s, {:.0} MiB",
                one_cost.cpu_s,
                n / one_cost.cpu_s / 1e6,
                one_cost.peak_mib,
                other_cost.cpu_s,
                n / other_cost.cpu_s / 1e6,
                other_cost.peak_mib
            ),
        );
    };
    ratio(
        "G1 sweep of 10,000 windows / one replay",
        "<= 1.3",
        "sweep-10000",
        "replay",
    );
    ratio(
        "G1 sweep of 100,000 windows / one replay",
        "<= 2",
        "sweep-100000",
        "replay",
    );
    // a sweep of one window tells of it all that a sweep of many does: gaps, active time, halves
    ratio(
        "the same / a sweep of one window",
        "<= 1.3",
        "sweep-10000",
        "sweep-1",
    );
    ratio(
        "100,000 windows / a sweep of one window",
        "<= 2",
        "sweep-100000",
        "sweep-1",
    );
    ratio(
        "G4 sweep of 1,000 windows / decoding",
        "<= 1.6",
        "sweep-1000",
        "decode",
    );
    ratio("decoding columns / data frames", "-", "decode", "frames");
    let (at_large, at_small) = in_turn(options.pairs, ("sweep-1000", large), ("sweep-1000", small));
    row(
        "G9 peak memory of a sweep, large / small",
        at_large.peak_mib / at_small.peak_mib,
        "<= 64 MiB, equal",
        &format!(
            "{:.1} MiB at {:e} events ({:.2} s, {:.2} s CPU), {:.1} MiB at {SMALL}",
            at_large.peak_mib, n, at_large.wall_s, at_large.cpu_s, at_small.peak_mib
        ),
    );
}

/// Two threads against two processes of one thread each, and the bytes of both.
fn threads(options: &Options, data: &Path) {
    let (mut together, mut apart) = (Vec::new(), Vec::new());
    let mut answers = Vec::new();
    for _ in 0..options.pairs {
        let begun = Instant::now();
        answers.push(part("sweep-1000", data, 2).answer);
        together.push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let children = [(); 2].map(|()| {
            let mut child = child("sweep-1000", data, 1);
            child.stdout(std::process::Stdio::piped()).spawn().unwrap()
        });
        for child in children {
            let output = child.wait_with_output().unwrap();
            answers.push(Cost::read(&String::from_utf8(output.stdout).unwrap()).answer);
        }
        apart.push(begun.elapsed().as_secs_f64());
    }
    answers.push(part("sweep-1000", data, 4).answer);
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    let (together, apart) = (median(together), median(apart));
    row(
        "G10 throughput of two threads / two processes",
        apart / 2.0 / together,
        ">= 0.9",
        &format!(
            "{together:.2} s against {apart:.2} s for twice the work; the same answer for 1, 2 and 4 threads"
        ),
    );
}

/// Import against looking at every token with `serde_json`. The goal is told against a `simd-json` tape of the same
/// lines, which took 1.2 to 1.4 times as long as that on session logs; it is no dependency here, because it would
/// change the features under which polars is built.
fn import(options: &Options, log: &Path) {
    let (import, _) = in_turn(options.pairs, ("import", log), ("tokens", log));
    let (events, tokens) = in_turn(options.pairs, ("read-log", log), ("tokens", log));
    let megabytes = std::fs::metadata(log).unwrap().len() as f64 / 1e6;
    let rate = |cost: &Cost| megabytes / cost.cpu_s;
    row(
        "G5 log to events / lines and every token",
        rate(&events) / rate(&tokens),
        ">= 0.5",
        &format!(
            "{:.0} MB/s against {:.0} MB/s; to a dataset {:.0} MB/s, {:.0} MiB",
            rate(&events),
            rate(&tokens),
            rate(&import),
            import.peak_mib
        ),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
