//! Compares what a vector expects with what was worked out, key by key.

use anyhow::{Result, bail};
use policysim_policy::Cause;
use serde_json::{Map, Value as Json};

/// What became of one vector.
#[derive(Debug)]
pub(super) enum Judged {
    /// It was run.
    Compared(Compared),
    /// It is material for another command.
    Elsewhere(&'static str),
    /// It needs a capability that does not exist.
    NotYet(&'static str),
}

impl Judged {
    /// Names keys of the input that were not read beside those of `expect` that were not asserted.
    pub(super) fn with_unread(mut self, unread: impl IntoIterator<Item = String>) -> Self {
        if let Self::Compared(compared) = &mut self {
            let unread = unread.into_iter().map(|key| format!("input {key}"));
            compared.unasserted.extend(unread);
        }
        self
    }
}

/// The comparison of one vector.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Keys whose value differs.
    pub(super) differences: Vec<Difference>,
    /// Keys that were not worked out.
    pub(super) unasserted: Vec<String>,
    /// All that was worked out, by key of `expect`.
    pub(super) got: Map<String, Json>,
    /// How many values were compared.
    pub(super) asserted: usize,
}

/// One key that differs.
#[derive(Debug)]
pub(super) struct Difference {
    /// The key, with the row of a list: `sweep[1].verdict`.
    pub(super) key: String,
    /// What the vector expects.
    pub(super) expected: Json,
    /// What was worked out.
    pub(super) got: Json,
}

/// Compares every key of `expect` that is in `got`. An expectation of which nothing can be compared is an error, so
/// that no vector passes without being run.
pub(super) fn judge(expect: &Json, got: &Map<String, Json>) -> Result<Judged> {
    let Json::Object(expect) = expect else {
        bail!("expect is not an object");
    };
    let mut compared = Compared {
        got: got.clone(),
        ..Compared::default()
    };
    compare_tables("", expect, got, &mut compared);
    if compared.asserted == 0 {
        let keys: Vec<&str> = expect.keys().map(String::as_str).collect();
        bail!("nothing of expect can be compared: {}", keys.join(", "));
    }
    Ok(Judged::Compared(compared))
}

fn compare_tables(
    path: &str,
    expect: &Map<String, Json>,
    got: &Map<String, Json>,
    compared: &mut Compared,
) {
    for (key, expected) in expect {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match got.get(key) {
            Some(got) => compare(&path, key, expected, got, compared),
            None => compared.unasserted.push(without_rows(&path)),
        }
    }
}

fn compare(path: &str, key: &str, expected: &Json, got: &Json, compared: &mut Compared) {
    match (expected, got) {
        (Json::Object(expected), Json::Object(got)) => {
            compare_tables(path, expected, got, compared);
        }
        (Json::Array(expected), Json::Array(got))
            if expected.len() == got.len() && expected.iter().any(Json::is_object) =>
        {
            for (at, (expected, got)) in expected.iter().zip(got).enumerate() {
                compare(&format!("{path}[{at}]"), key, expected, got, compared);
            }
        }
        _ => {
            compared.asserted += 1;
            let same = if key == "verdict" || key == "verdicts" {
                same_verdict(expected, got)
            } else {
                expected == got
            };
            if !same {
                compared.differences.push(Difference {
                    key: path.to_owned(),
                    expected: expected.clone(),
                    got: got.clone(),
                });
            }
        }
    }
}

/// Whether a verdict of a scenario, or a list of them, means the product's.
///
/// `none` is a run that the policy did not end, `unknown` one whose record stops first.
fn same_verdict(expected: &Json, got: &Json) -> bool {
    if let (Json::Array(expected), Json::Array(got)) = (expected, got) {
        return expected.len() == got.len()
            && expected.iter().zip(got).all(|(e, g)| same_verdict(e, g));
    }
    let (Some(expected), Some(got)) = (expected.as_str(), got.as_str()) else {
        return false;
    };
    match expected {
        "none" => [Cause::Ended, Cause::Running]
            .map(Cause::name)
            .contains(&got),
        "unknown" => got == Cause::Running.name(),
        "max_total" => got == Cause::TotalTimeout.name(),
        "first_token_timeout" => got == Cause::FirstTimeout.name(),
        name => name == got,
    }
}

/// The key without the numbers of rows, so that rows count together.
fn without_rows(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut inside = false;
    for letter in path.chars() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => {}
            letter => text.push(letter),
        }
    }
    text
}
