//! Logs of any size, made of the records of one fixture.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub)]

use std::io::{self, Write};
use std::path::Path;

/// The prompt, a tool call and its result, as the fixture has them.
struct Records {
    prompt: String,
    call: String,
    result: String,
}

/// When the log begins, seconds since midnight.
const START_S: u64 = 9 * 3600;

/// The gap in the middle.
pub const GAP_MS: u64 = 700_000;

fn records() -> Records {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/logs/claude.jsonl");
    let fixture = std::fs::read_to_string(path).unwrap();
    let with = |mark: &str| {
        let line = fixture.lines().find(|line| line.contains(mark)).unwrap();
        assert!(line.contains("\"timestamp\":\"2026-03-02T"), "{line}");
        line.to_owned()
    };
    Records {
        prompt: with("\"content\":\"Fix it."),
        call: with("\"id\":\"toolu_1\",\"name\":\"Bash\""),
        result: with("\"tool_use_id\":\"toolu_1\""),
    }
}

/// Writes one run of `n_records` records, every second a tool's output that makes it `result_bytes` long: a gap of
/// [`GAP_MS`] in the middle, a tool that is open at the end. Returns how many lines that is.
pub fn write_log(out: &mut dyn Write, n_records: u64, result_bytes: usize) -> io::Result<u64> {
    let records = records();
    let output = text(result_bytes);
    let mut ms = 0;
    writeln!(out, "{}", dated(&records.prompt, 0, ms))?;
    let n_calls = n_records / 2;
    for call in 1..=n_calls {
        ms += if call == n_calls / 2 { GAP_MS } else { 200 };
        let id = format!("toolu_{call}");
        let line = dated(&records.call, 2 * call, ms)
            .replace("toolu_1", &id)
            .replace("\"id\":\"m1\"", &format!("\"id\":\"m{call}\""));
        writeln!(out, "{line}")?;
        if call == n_calls {
            break;
        }
        ms += 100;
        let line = dated(&records.result, 2 * call + 1, ms)
            .replace("toolu_1", &id)
            .replace("PRIVATE-11", &output);
        writeln!(out, "{line}")?;
    }
    Ok(2 * n_calls)
}

/// A tool's output as a JSON string's inside: lines of code with quotes.
pub fn text(n_bytes: usize) -> String {
    const LINE: &str =
        "    let answer = look(\\\"here\\\").await?; // and nowhere else, as it was said before\\n";
    let mut text = LINE.repeat(n_bytes / LINE.len());
    text.push_str(&"x".repeat(n_bytes - text.len()));
    text
}

/// The record with that number in its id and at that time.
fn dated(record: &str, number: u64, ms: u64) -> String {
    let s = START_S + ms / 1000;
    let (day, s) = (2 + s / 86_400, s % 86_400);
    let stamp = format!(
        "2026-03-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        s / 3600,
        s / 60 % 60,
        s % 60,
        ms % 1000
    );
    let at = record.find("\"timestamp\":\"").unwrap() + 13;
    let end = at + record[at..].find('"').unwrap();
    let uuid = record.find("\"uuid\":\"").unwrap() + 8;
    format!(
        "{}{number:012}{}{stamp}{}",
        &record[..uuid],
        &record[uuid + 9..at],
        &record[end..]
    )
}
