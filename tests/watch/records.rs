//! Records: what was fed live, fed again, meets the same verdict at the same millisecond.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use serde_json::Value;

use super::{begin_as, lines, ms, watch};
use crate::{Place, json};

/// Runs of the comparison, and how many run at once.
const RUNS: u64 = 200;
const AT_ONCE: u64 = 16;

/// Small, repeatable randomness.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The policies that the runs are watched under, in turn.
const POLICIES: [(&str, &str); 5] = [
    (
        "idle.toml",
        "idle = \"150ms\"\n[kill]\ngrace = \"1s\"\nresult_grace = \"80ms\"\n",
    ),
    (
        "total.toml",
        "idle = \"400ms\"\ntotal = \"500ms\"\n[kill]\ngrace = \"1s\"\nresult_grace = \"100ms\"\n",
    ),
    (
        "polled.toml",
        "idle = \"200ms\"\n[detect]\npoll = \"tenth\"\n",
    ),
    (
        "phases.toml",
        "[idle]\nwindow = \"150ms\"\nfirst = \"300ms\"\nceiling = \"400ms\"\nprogress = \"output\"\nthrottle = \"50ms\"\n\
         [pause]\ntool_limit = \"250ms\"\nbackoff = \"idle\"\n",
    ),
    (
        "turns.toml",
        "idle = \"300ms\"\nturns = 2\n[kill]\ndelay = \"60ms\"\n",
    ),
];

/// A seeded child: it prints, speaks Pi's events, sleeps, ends or hangs.
fn child(draw: &mut Draw) -> String {
    let mut script = String::new();
    let speaks = draw.below(2) == 0;
    if speaks {
        script.push_str("echo '{\"type\":\"session\",\"id\":\"u\",\"cwd\":\"/\"}'\n");
    }
    let mut calls = 0;
    for _ in 0..draw.below(7) {
        let line = match draw.below(if speaks { 9 } else { 2 }) {
            0 => "plain text".to_owned(),
            1 => "more".to_owned(),
            2 => r#"{"type":"turn_start"}"#.to_owned(),
            3 => {
                calls += 1;
                format!(r#"{{"type":"tool_execution_start","toolCallId":"c{calls}","toolName":"bash"}}"#)
            }
            4 => format!(r#"{{"type":"tool_execution_end","toolCallId":"c{calls}","toolName":"bash"}}"#),
            5 => r#"{"type":"message_update","message":{},"assistantMessageEvent":{"type":"text_delta"}}"#.to_owned(),
            6 => r#"{"type":"auto_retry_start","delayMs":90}"#.to_owned(),
            7 => r#"{"type":"extension_ui_request","id":"q","method":"input"}"#.to_owned(),
            _ => r#"{"type":"agent_end","messages":[]}"#.to_owned(),
        };
        let pipe = if draw.below(8) == 0 { " >&2" } else { "" };
        script.push_str(&format!("echo '{line}'{pipe}\n"));
        script.push_str(&format!("sleep 0.{:02}\n", draw.below(26)));
    }
    script.push_str(match draw.below(5) {
        0 => "exec sleep 3",
        1 => "exit 3",
        2 if speaks => "echo '{\"type\":\"agent_end\",\"messages\":[]}'; exec sleep 3",
        _ => "exit 0",
    });
    script
}

/// What a run came to: verdict, and the millisecond.
type Verdict = (String, u64);

/// The last verdict that a live record tells, and that of the watchdog before, if activity took its firing back.
fn told(record: &[Value]) -> Vec<Verdict> {
    record
        .iter()
        .filter(|line| line["policy"] == 0 && (line["fact"] == "fired" || line["fact"] == "ended"))
        .map(|line| {
            (
                line["verdict"].as_str().unwrap().to_owned(),
                ms(line, "t_ms"),
            )
        })
        .collect()
}

/// The same as a replay of the observations alone tells it.
fn replayed(place: &Place, name: &str, policy: &str) -> Vec<Verdict> {
    let text = fs::read_to_string(place.path(name)).unwrap();
    let mut stripped: Vec<&str> = text.split_inclusive('\n').collect();
    stripped.retain(|line| {
        let line = json(line);
        line["fact"].is_null() && line["note"].is_null()
    });
    let stripped = stripped.concat();
    assert!(!stripped.contains("verdict"), "{stripped}");
    let observations = format!("observed-{name}");
    place.write(&observations, stripped);
    let line = format!("replay {observations} --run #1 --policy {policy} --format json");
    let replay = json(&place.run(&line).ok());
    let verdict = |replay: &Value, from_ms: u64| {
        let at_ms = from_ms + ms(replay, "at_ms");
        (replay["verdict"].as_str().unwrap().to_owned(), at_ms)
    };
    let mut verdicts = vec![verdict(&replay, 0)];
    for next in replay["successors"].as_array().into_iter().flatten() {
        verdicts.push(verdict(next, ms(next, "from_ms")));
    }
    verdicts
}

/// Two hundred seeded runs: what was decided live is what a replay of the observations decides.
#[test]
fn live_equals_replay() {
    let seen = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|thread| {
                scope.spawn(move || {
                    let place = Place::new();
                    for (name, text) in POLICIES {
                        place.write(name, text);
                    }
                    let mut seen = BTreeMap::<String, u32>::new();
                    for run in (thread..RUNS).step_by(AT_ONCE as usize) {
                        let script = child(&mut Draw(run));
                        let (policy, _) = POLICIES[run as usize % POLICIES.len()];
                        let name = format!("run-{run}.jsonl");
                        let options = format!("--quiet --policy {policy}");
                        let live = begin_as(&place, &options, &["sh", "-c", &script], &name).end();
                        let told = told(&live.record);
                        assert!(!told.is_empty(), "seed {run}: {:#?}", live.record);
                        let replayed = replayed(&place, &name, policy);
                        assert_eq!(told, replayed, "seed {run} under {policy}\n{script}");
                        for (verdict, _) in told {
                            *seen.entry(verdict).or_default() += 1;
                        }
                    }
                    seen
                })
            })
            .collect();
        let mut all = BTreeMap::<String, u32>::new();
        for thread in threads {
            for (verdict, n) in thread.join().unwrap() {
                *all.entry(verdict).or_default() += n;
            }
        }
        all
    });
    // The comparison is worth something only if many things happened.
    for verdict in ["ended", "idle_timeout", "total_timeout", "cleanup_forced"] {
        assert!(
            seen.get(verdict).is_some_and(|n| *n >= 3),
            "{verdict}: {seen:?}"
        );
    }
}

/// A record is a log like any other: it is imported, accounted for, and answers for other policies.
#[test]
fn a_record_imports_and_answers_for_other_policies() {
    let place = Place::new();
    place.write("p.toml", "idle = \"500ms\"\n");
    place.write("longer.toml", "idle = \"5s\"\n");
    let child = "echo a; sleep 0.3; echo b; exit 4";
    let watched = watch(
        &place,
        "--policy p.toml --role explorer",
        &["sh", "-c", child],
    );
    assert_eq!(watched.ended(), (Some(4), "exited"));
    place.run("import record.jsonl --out dataset --strict").ok();
    let manifest = place.json("dataset/manifest.json");
    let source = &manifest["sources"][0];
    assert_eq!(source["format"], "policysim");
    let n_lines = watched.record.len() as u64;
    assert_eq!(ms(source, "n_lines"), n_lines);
    for (policy, verdict) in [("p.toml", "ended"), ("longer.toml", "ended")] {
        let line = format!("replay dataset --run record.jsonl#1 --policy {policy} --format json");
        assert_eq!(json(&place.run(&line).ok())["verdict"], verdict, "{policy}");
    }
    let line = "replay dataset --run #1 --policy p.toml --set idle.window=100ms --format json";
    let shorter = json(&place.run(line).ok());
    assert_eq!(
        (&shorter["verdict"], &shorter["judgement"]),
        (&"idle_timeout".into(), &"false_kill".into())
    );
    let by = place.run("gaps dataset --by harness").ok();
    assert!(by.contains("policysim"), "{by}");
}

/// What is in a record: nothing that the command said, and no path.
#[test]
fn a_record_keeps_no_content() {
    let place = Place::new();
    place.write("p.toml", "idle = \"5s\"\n");
    let child = r#"echo 'SECRET words'; echo '{"type":"session","id":"u","cwd":"/SECRET"}'; echo '{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{"command":"SECRET"}}'"#;
    watch(&place, "--policy p.toml --stream pi", &["sh", "-c", child]);
    let text = fs::read_to_string(place.path("record.jsonl")).unwrap();
    assert!(!text.contains("SECRET"), "{text}");
    assert!(text.contains("bash"), "{text}");
}

/// A line that was cut when watch was killed costs itself alone.
#[test]
fn a_torn_record_is_read_up_to_the_tear() {
    let place = Place::new();
    place.write("p.toml", "idle = \"5s\"\n");
    watch(&place, "--policy p.toml", &["sh", "-c", "echo a"]);
    let text = fs::read_to_string(place.path("record.jsonl")).unwrap();
    let cut = text.find("\"process_exit\"").unwrap();
    place.write("torn.jsonl", &text[..cut]);
    place.run("import torn.jsonl --out torn").ok();
    let quarantine = String::from_utf8(place.read("torn/quarantine.csv")).unwrap();
    assert!(quarantine.contains("truncated_tail"), "{quarantine}");
    assert_eq!(lines(&text[..cut]).len(), text[..cut].lines().count() - 1);
}

/// A record cannot be made again: one that is there is replaced only when that is asked for.
#[test]
fn a_record_is_not_replaced_unasked() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    place.write("empty.jsonl", "");
    let run = |record: &str, options: &str| {
        let line = format!("watch --policy p.toml {options} --record {record} -- touch ran");
        let done = place.run(&line);
        let ran = fs::remove_file(place.path("ran")).is_ok();
        (done, ran)
    };
    for new in ["new.jsonl", "empty.jsonl"] {
        let (done, ran) = run(new, "");
        done.exits(0);
        assert!(ran, "{new}");
        let first = place.read(new);
        let (done, ran) = run(new, "");
        let told = done.exits(125).stderr;
        assert!(
            told.starts_with(&format!("error: --record {new}: holds "))
                && told.contains("--record-force"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(!ran && place.read(new) == first, "{new}");
        let (done, ran) = run(new, "--record-force");
        done.exits(0);
        assert!(ran && place.read(new) != first, "{new}");
        let text = String::from_utf8(place.read(new)).unwrap();
        assert_eq!(text.matches("\"record\":").count(), 1, "{text}");
        // A shorter one leaves nothing of a longer one.
        place.write(new, "x".repeat(1 << 20));
        run(new, "--record-force").0.exits(0);
        assert!(place.read(new).len() < 1 << 20);
    }
    run("/dev/null", "").0.exits(0);
}

/// A pipe that nobody reads holds nothing up; one that is read gets the record; one whose reader stalls loses the rest
/// of it, and the command goes on.
#[test]
fn a_record_into_a_pipe_never_holds_the_command_up() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let nobody = place
        .run("watch --policy p.toml --record pipe -- touch ran")
        .exits(125);
    assert_eq!(
        nobody.stderr,
        "error: cannot write pipe: nobody reads this pipe; start its reader first\n"
    );
    assert!(!place.path("ran").exists());

    let line = format!(
        "cat pipe > copy & '{}' watch --policy p.toml --record pipe -- sh -c 'echo a; exit 7'; status=$?; wait; \
         exit $status",
        crate::POLICYSIM
    );
    let read = crate::finish(place.command("sh").args(["-c", &line]));
    assert_eq!((read.code, read.stdout.as_str()), (Some(7), "a\n"));
    let copy = lines(&String::from_utf8(place.read("copy")).unwrap());
    assert_eq!(copy.first().unwrap()["record"], "policysim-watch");
    assert_eq!(copy.last().unwrap()["outcome"], "exited");

    place.write(
        "agent.sh",
        "yes '{\"type\":\"turn_start\"}' | head -n 3000; exit 7",
    );
    let line = format!(
        "sleep 300 < pipe & '{}' watch --policy p.toml --stream pi --record pipe -- sh agent.sh; status=$?; \
         kill $!; exit $status",
        crate::POLICYSIM
    );
    let stalled = crate::finish(place.command("sh").args(["-c", &line]));
    assert_eq!(
        (stalled.code, stalled.stdout.lines().count()),
        (Some(7), 3_000)
    );
    let told = &stalled.stderr;
    assert!(
        told.contains("the record pipe is not whole: its reader took nothing"),
        "{told}"
    );
}

/// What a command says last is in the record also without a line feed, and however soon the command ends then.
#[test]
fn the_last_line_is_read_whatever_ends_it() {
    let place = Place::new();
    place.write("p.toml", "idle = \"60s\"\n");
    let head = r#"{"type":"session","id":"u","cwd":"/"}"#;
    let last = r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"last"}"#;
    for end in ["", "\\n"] {
        let child = format!("printf '%s\\n%s\\n%s{end}' 'warning: old' '{head}' '{last}'");
        let running: Vec<_> = (0..20)
            .map(|n| {
                let record = format!("r{n}{}.jsonl", end.len());
                begin_as(&place, "--policy p.toml", &["sh", "-c", &child], &record)
            })
            .collect();
        for one in running {
            let watched = one.end();
            let kinds: Vec<&str> = watched.events().iter().map(|(kind, _)| *kind).collect();
            let expected = [
                "run_start",
                "process_start",
                "stdout",
                "status",
                "tool_start",
                "process_exit",
                "run_end",
            ];
            assert_eq!(kinds, expected, "{end}");
            let tool = watched
                .record
                .iter()
                .find(|line| line["event"] == "tool_start")
                .unwrap();
            assert_eq!(tool["name"], "last");
        }
    }
}

/// A record in which the host slept for 45 minutes (BR-44): the monotonic clock drives, so the sleep is no silence; it is
/// no sign of life either.
#[test]
fn a_recorded_suspend_neither_fires_nor_keeps_alive() {
    let place = Place::new();
    let record = [
        r#"{"record":"policysim-watch","schema_version":1,"version":"0.1.0","started_at_ms":0,"policies":[],"role":"","program":"a"}"#,
        r#"{"event":"run_start","t_ms":0}"#,
        r#"{"event":"process_start","t_ms":0}"#,
        r#"{"event":"stdout","t_ms":300000,"n_bytes":1}"#,
        r#"{"event":"host_suspend","t_ms":304000,"announced_ms":2700000}"#,
        r#"{"event":"host_resume","t_ms":304000}"#,
        r#"{"event":"process_exit","t_ms":900000}"#,
        r#"{"event":"run_end","t_ms":900000,"outcome":"completed"}"#,
        r#"{"end":"observed","t_ms":900000}"#,
    ];
    place.write("slept.jsonl", record.join("\n") + "\n");
    for (window, verdict, at_ms) in [
        ("700s", "ended", 900_000),
        ("500s", "idle_timeout", 800_000),
    ] {
        place.write("p.toml", format!("idle = \"{window}\"\n"));
        let line = "replay slept.jsonl --run #1 --policy p.toml --format json";
        let replay = json(&place.run(line).ok());
        assert_eq!(
            (replay["verdict"].as_str(), ms(&replay, "at_ms")),
            (Some(verdict), at_ms),
            "{window}"
        );
    }
    let told = place
        .run("replay slept.jsonl --run #1 --policy p.toml")
        .ok();
    assert!(told.contains("host_suspend"), "{told}");
}
