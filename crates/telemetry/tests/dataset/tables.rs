//! Our own tables as inputs.

use std::fmt::Write as _;
use std::fs;

use policysim_policy::Kind;
use policysim_sim::run::{EventFlags, Measured, RecordedEnd, Run, RunEvent, Symbol, WaitKind};
use policysim_telemetry::{Contents, Dataset, ImportRequest, Sample};

use crate::support::{failure, files, fixture, import, in_memory, request, write};

#[test]
fn an_events_table_gives_runs_waits_and_measures() {
    let dataset = in_memory(&request(&[&fixture("tables/events.csv")])).unwrap();
    let runs = dataset.fleet().unwrap();
    let [child, main] = runs.as_slice() else {
        panic!("{} runs", runs.len())
    };
    assert_eq!(
        (&*child.name, &*main.name),
        ("events.csv#child", "events.csv#main")
    );
    assert_eq!((&*child.parent, &*main.parent), ("events.csv#main", ""));
    assert_eq!(
        (&*child.role, &*child.model, &*child.harness),
        ("explorer", "model-b", "own")
    );
    assert_eq!(child.started_at_ms, 1_772_442_009_400);
    assert_eq!((child.end, child.end_ms), (RecordedEnd::Completed, 30_000));
    let waits = |run: &policysim_sim::run::Run| -> Vec<(Kind, WaitKind, u64)> {
        run.events
            .iter()
            .filter_map(|e| e.wait.map(|w| (e.kind, w.kind, w.ms)))
            .collect()
    };
    // By hand from the rows of the fixture.
    assert_eq!(
        waits(main),
        [
            (Kind::MessageStart, WaitKind::PreToken, 4_000),
            (Kind::MessageUpdate, WaitKind::InterToken, 200),
            (Kind::MessageUpdate, WaitKind::InterToken, 5_000),
            (Kind::ToolEnd, WaitKind::Subagent, 30_700),
            (Kind::MessageEnd, WaitKind::PreToken, 6_000),
        ]
    );
    assert_eq!(
        waits(child),
        [
            (Kind::MessageEnd, WaitKind::PreToken, 15_800),
            (Kind::ToolEnd, WaitKind::Tool, 1_000),
            (Kind::RetryStart, WaitKind::ErrorWait, 3_200),
            (Kind::RetryEnd, WaitKind::Retry, 2_000),
            (Kind::MessageEnd, WaitKind::PreToken, 8_000),
        ]
    );
    let expected = Measured {
        duration_ms: 46_000,
        turns: 2,
        tools: 1,
        silence_ms: 30_700,
        gap_ms: 6_000,
        aborted: false,
    };
    assert_eq!(main.measured, expected);
}

/// The rows of a CSV table as JSON lines, numbers as numbers.
fn as_json_lines(csv: &str) -> String {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut json = String::new();
    for line in lines {
        let mut object = serde_json::Map::new();
        for (key, value) in header
            .iter()
            .zip(line.split(','))
            .filter(|(_, value)| !value.is_empty())
        {
            let number = value.parse::<i64>().ok().map(serde_json::Value::from);
            object.insert((*key).to_owned(), number.unwrap_or_else(|| (*value).into()));
        }
        json += &serde_json::Value::Object(object).to_string();
        json.push('\n');
    }
    json
}

/// Runs by label, without what differs from file to file.
fn comparable(dataset: &Dataset) -> Vec<(String, Run, Vec<String>)> {
    dataset
        .fleet()
        .unwrap()
        .into_iter()
        .map(|mut run| {
            let label = run.name.rsplit('#').next().unwrap().to_owned();
            let names = run
                .events
                .iter()
                .map(|event| dataset.symbols().name(event.name).to_owned())
                .collect();
            let parent = run.parent.rsplit('#').next().unwrap().to_owned();
            run.parent = parent.into();
            (run.name, run.source) = ("".into(), "".into());
            run.events
                .iter_mut()
                .for_each(|event| event.name = Symbol(0));
            (label, run, names)
        })
        .collect()
}

#[test]
fn the_same_table_as_json_lines_gives_the_same_runs() {
    let folder = tempfile::tempdir().unwrap();
    let csv = fs::read_to_string(fixture("tables/events.csv")).unwrap();
    let json = write(folder.path(), "events.jsonl", as_json_lines(&csv));
    let from_csv = in_memory(&request(&[&fixture("tables/events.csv")])).unwrap();
    let from_json = in_memory(&request(&[&json])).unwrap();
    assert_eq!(comparable(&from_csv), comparable(&from_json));
    // A table of another order of columns, with quotes, CRLF, a byte order mark and a column nobody knows.
    let dressed = "\u{feff}kind,\"t_ms\",run,extra\r\n\"run_start\",0,a,\"x, y\"\r\n\r\nmessage_end,7.0,a,\r\n";
    let dressed = in_memory(&request(&[&write(folder.path(), "dressed.csv", dressed)])).unwrap();
    let runs = dressed.fleet().unwrap();
    let events: Vec<(u64, Kind)> = runs[0]
        .events
        .iter()
        .map(|event| (event.t_ms, event.kind))
        .collect();
    assert_eq!(events, [(0, Kind::RunStart), (7, Kind::MessageEnd)]);
    let source = &dressed.manifest().sources[0];
    assert_eq!(
        (
            source.lines.imported,
            source.lines.ignored,
            source.count("n_lines")
        ),
        (2, 2, 4)
    );
}

#[test]
fn a_datasets_own_events_are_a_table_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("dataset");
    let dataset = import(&request(&[&fixture("tables/events.csv")]), &out).unwrap();
    let again = in_memory(&request(&[&out.join("events.parquet")])).unwrap();
    let events = |dataset: &Dataset| -> Vec<Vec<RunEvent>> {
        comparable(dataset)
            .into_iter()
            .map(|(_, run, _)| run.events)
            .collect()
    };
    assert_eq!(events(&dataset), events(&again), "waits and marks included");
    let names: Vec<String> = again
        .run_rows()
        .unwrap()
        .iter()
        .map(|run| run.name.to_string())
        .collect();
    assert_eq!(names, ["events.parquet#0", "events.parquet#1"]);
    let measured = |dataset: &Dataset| {
        dataset
            .run_rows()
            .unwrap()
            .iter()
            .map(|run| run.measured)
            .collect::<Vec<_>>()
    };
    assert_eq!(measured(&dataset), measured(&again));
}

#[test]
fn a_bad_row_costs_itself_and_is_listed_with_its_line_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        ("run,t_ms,kind,call_id,name,outcome", None),
        ("a,0,run_start,,,", None),
        (
            "a,10,tool_strat,c,bash,",
            Some("kind is no known name; the nearest is tool_start"),
        ),
        ("a,10,tool_start,c,bash,", None),
        ("a,-5,progress,,,", Some("t_ms is negative")),
        (
            "a,12.5,progress,,,",
            Some("t_ms is not a whole number of milliseconds"),
        ),
        (
            "a,20s,progress,,,",
            Some("t_ms is no number of milliseconds (write a whole number without a unit)"),
        ),
        ("a,,progress,,,", Some("t_ms is missing")),
        (",30,progress,,,", Some("run is missing")),
        (
            "a,99999999999999999999,progress,,,",
            Some("t_ms is not a whole number of milliseconds"),
        ),
        (
            "a,30,\"progress,,,",
            Some("a quote is not closed on its line"),
        ),
        ("a,30,run_end,,,great", Some("outcome is no known name")),
        ("a,40,tool_end,c,bash,", None),
        ("a,50,xyzzy-secret,,,", Some("kind is no known name")),
    ];
    let table: Vec<&str> = rows.iter().map(|(row, _)| *row).collect();
    let path = write(folder.path(), "events.csv", table.join("\n"));
    let out = folder.path().join("out");
    let dataset = import(&request(&[&path]), &out).unwrap();
    let source = &dataset.manifest().sources[0];
    let bad = rows.iter().filter(|(_, reason)| reason.is_some()).count() as u64;
    assert_eq!(
        (source.lines.malformed, source.count("n_bad_lines")),
        (bad, bad)
    );
    assert_eq!(
        (source.lines.imported, source.lines.total()),
        (3, rows.len() as u64)
    );
    let mut expected = "file,line,byte_offset,reason\n".to_owned();
    let mut offset = 0;
    for (line, (row, reason)) in (1..).zip(&rows) {
        if let Some(reason) = reason {
            writeln!(expected, "events.csv,{line},{offset},{reason}").unwrap();
        }
        offset += row.len() + 1;
    }
    assert_eq!(
        fs::read_to_string(out.join("quarantine.csv")).unwrap(),
        expected
    );
    let run = &dataset.fleet().unwrap()[0];
    assert_eq!((run.measured.tools, run.measured.duration_ms), (1, 40));
    let strict = ImportRequest {
        strict: true,
        ..request(&[&path])
    };
    assert_eq!(
        failure(&strict),
        "'events.csv', line 3: kind is no known name; the nearest is tool_start"
    );
}

#[test]
fn a_time_without_its_unit_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "events.csv",
        "run,time,kind\na,0,run_start\n",
    );
    let message = failure(&request(&[&path]));
    assert!(
        message.contains("line 2: column time has no unit: name it t_ms"),
        "{message}"
    );
    let path = write(folder.path(), "samples.csv", "kind,duration\ntool,5\n");
    let message = failure(&request(&[&path]));
    assert!(
        message.contains("line 2: column duration has no unit: name it duration_ms"),
        "{message}"
    );
}

#[test]
fn samples_give_a_dataset_of_samples_from_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let csv = "kind,duration_ms,censored,run,role,model,tool\n\
               pre_token,4000,,r1,,m,\n\
               tool,30000,true,r1,explorer,,bash\n\
               inter_token,20,false,,,,\n\
               tea,5,,,,,\n\
               tool,5 s,,,,,\n\
               human,1,perhaps,,,,\n";
    let path = write(folder.path(), "samples.csv", csv);
    let out = folder.path().join("out");
    let dataset = import(&request(&[&path]), &out).unwrap();
    assert_eq!(dataset.manifest().contents, Contents::Samples);
    let samples = dataset.samples().unwrap();
    let plain: Vec<_> = samples
        .iter()
        .map(|s| {
            (
                s.kind,
                s.duration_ms,
                s.censored,
                &*s.run,
                &*s.role,
                &*s.model,
                &*s.tool,
            )
        })
        .collect();
    assert_eq!(
        plain,
        [
            (WaitKind::PreToken, 4_000, false, "r1", "", "m", ""),
            (WaitKind::Tool, 30_000, true, "r1", "explorer", "", "bash"),
            (WaitKind::InterToken, 20, false, "", "", "", ""),
        ]
    );
    let source = &dataset.manifest().sources[0];
    assert_eq!(
        (
            source.lines.imported,
            source.lines.malformed,
            source.lines.ignored
        ),
        (3, 3, 1)
    );
    assert_eq!(
        (source.count("n_tool"), source.count("max_tool_ms")),
        (1, 30_000)
    );
    assert_eq!(dataset.fleet().unwrap(), []);
    let json = write(folder.path(), "samples.jsonl", as_json_lines(csv));
    for other in [json, out.join("samples.parquet")] {
        let read = in_memory(&request(&[&other])).unwrap().samples().unwrap();
        let without_source = |samples: &[Sample]| -> Vec<Sample> {
            samples
                .iter()
                .cloned()
                .map(|s| Sample {
                    source: "".into(),
                    ..s
                })
                .collect()
        };
        assert_eq!(
            without_source(&read),
            without_source(&samples),
            "{}",
            other.display()
        );
    }
    let mixed = failure(&request(&[&path, &fixture("tables/events.csv")]));
    assert!(
        mixed.contains("'samples.csv' holds samples, 'events.csv' holds runs"),
        "{mixed}"
    );
}

#[test]
fn hostile_labels_and_names_stay_data() {
    let folder = tempfile::tempdir().unwrap();
    let long = "n".repeat(10_000);
    let table = format!(
        "run,t_ms,kind,call_id,name,role\n\
         ../../etc/passwd,0,run_start,,,=cmd|' /C calc'!A0\n\
         ../../etc/passwd,1,tool_start,x,{long},\n\
         ../../etc/passwd,2,tool_end,x,{long},\n\
         =1+1,0,run_start,,@SUM(A1),\n"
    );
    let path = write(folder.path(), "=cmd.csv", table);
    let out = folder.path().join("out");
    let dataset = import(&request(&[&path]), &out).unwrap();
    let written: Vec<String> = files(&out).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        written,
        [
            "events.parquet",
            "manifest.json",
            "quarantine.csv",
            "runs.parquet"
        ]
    );
    for run in dataset.fleet().unwrap() {
        let label = run.name.strip_prefix("=cmd.csv#~").unwrap();
        assert!(
            label.len() == 16 && label.chars().all(|c| c.is_ascii_hexdigit()),
            "{label}"
        );
        for event in &run.events {
            let name = dataset.symbols().name(event.name);
            assert!(name.len() <= 128, "a name of {} bytes", name.len());
        }
    }
    let bad = write(
        folder.path(),
        "-1.csv",
        "run,t_ms,kind\nr,0,run_start\nr,-1,run_end\n",
    );
    import(&request(&[&bad]), &out).unwrap();
    let quarantine = fs::read_to_string(out.join("quarantine.csv")).unwrap();
    assert_eq!(
        quarantine,
        "file,line,byte_offset,reason\n\"'-1.csv\",3,28,t_ms is negative\n"
    );
}

#[test]
fn a_step_back_in_time_is_clamped_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let table = "run,t_ms,kind,call_id,name\n\
                 a,0,run_start,,\na,10000,tool_start,t1,bash\na,9400,tool_end,t1,bash\na,12000,message_end,,\n";
    let dataset = in_memory(&request(&[&write(folder.path(), "e.csv", table)])).unwrap();
    let run = &dataset.fleet().unwrap()[0];
    let times: Vec<u64> = run.events.iter().map(|event| event.t_ms).collect();
    assert_eq!(times, [0, 10_000, 10_000, 12_000]);
    assert!(run.events[2].flags.has(EventFlags::CLOCK_STEP));
    assert_eq!(dataset.manifest().sources[0].count("n_clock_steps"), 1);
    assert_eq!(dataset.manifest().flags["clock_step"], 1);
}

#[test]
fn an_open_end_is_told_from_an_ended_run() {
    let folder = tempfile::tempdir().unwrap();
    let table = "run,t_ms,kind,call_id,name,outcome,started_at_ms\n\
                 tool,0,run_start,,,,1000\ntool,5,message_end,,,,\ntool,5,tool_start,x,bash,,\n\
                 model,0,run_start,,,,1000\nmodel,5,progress,,,,\n\
                 gone,0,run_start,,,,1000\ngone,700,run_end,,,aborted,\n\
                 hung,0,run_start,,,,1000\nhung,900,run_end,,,hung,\n";
    let mut observed = request(&[&write(folder.path(), "e.csv", table)]);
    observed.observed_until_ms = Some(61_000);
    let dataset = in_memory(&observed).unwrap();
    let rows = dataset.run_rows().unwrap();
    let ends: Vec<(&str, RecordedEnd, u64)> = rows
        .iter()
        .map(|run| (run.name.rsplit('#').next().unwrap(), run.end, run.end_ms))
        .collect();
    assert_eq!(
        ends,
        [
            ("tool", RecordedEnd::OpenInTool, 60_000),
            ("model", RecordedEnd::OpenInModel, 60_000),
            ("gone", RecordedEnd::Aborted, 700),
            ("hung", RecordedEnd::Hung, 900),
        ]
    );
    let gone = &dataset.fleet().unwrap()[2];
    let censored = gone.events[1].wait.unwrap();
    assert_eq!((censored.kind, censored.ms), (WaitKind::Censored, 700));
    assert!(gone.measured.aborted && gone.events[1].flags.has(EventFlags::CENSORED));
}
