//! Every number that a reader meets stands in `report.json`: in prose, tables and code, on the page and on the charts.

use std::collections::BTreeSet;

use serde_json::Value;

use super::numbers::{demo, labels, shared, shows};
use super::{report, text, unescaped};
use crate::{Place, ends_in, files, fleet};

/// What a number counts, as it is written behind it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Unit {
    Bare,
    Percent,
    Ms,
    S,
    H,
}

/// What stands in texts and is no result: the level of intervals, as a share and as an error; the sides of a limit; the
/// caps of an example.
const CONSTANTS: [(&str, Unit); 5] = [
    ("95", Unit::Percent),
    ("0.95", Unit::Bare),
    ("5", Unit::Percent),
    ("1-sided", Unit::Bare),
    ("40,60,off", Unit::Bare),
];

/// The unit at the start of `text`, which is no part of a longer word.
fn unit_of(text: &str) -> Option<Unit> {
    let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    [
        ("%", Unit::Percent),
        ("ms", Unit::Ms),
        ("s", Unit::S),
        ("h", Unit::H),
    ]
    .into_iter()
    .find(|(name, _)| text.strip_prefix(name).is_some_and(ends))
    .map(|(_, unit)| unit)
}

/// The numbers of a text with their units, and the words that are names with figures in them: `pi-desktop-0129`.
fn figures(text: &str) -> (Vec<(String, Unit)>, Vec<String>) {
    let (mut numbers, mut names) = (Vec::new(), Vec::new());
    let of_a_word = |c: char| c.is_alphanumeric() || "_-.,/#:".contains(c);
    for (at, word) in text
        .split(|c| !of_a_word(c))
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
    {
        let word = word.trim_matches(['.', ',', ':', '-', '/', '#']);
        let plain = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.');
        let figures: String = word.chars().take_while(|&c| plain(c)).collect();
        let glued = &word[figures.len()..];
        let behind = &text[at + text[at..].find(word).unwrap() + word.len()..];
        let is_number = figures.replace(',', "").parse::<f64>().is_ok();
        if is_number && glued.is_empty() {
            // The unit stands once, behind the last of the figures that share it.
            let next = behind
                .split(", ")
                .next()
                .unwrap()
                .trim_start_matches(|c: char| " …[]≤−-".contains(c) || plain(c));
            let unit = unit_of(next).unwrap_or(Unit::Bare);
            numbers.push((figures, unit));
        } else if is_number && let Some(unit) = unit_of(glued).filter(|_| glued.len() <= 2) {
            numbers.push((figures, unit));
        } else {
            names.push(word.to_owned());
        }
    }
    (numbers, names)
}

/// What a report's JSON holds.
#[derive(Default)]
struct Held {
    shares: Vec<f64>,
    ms: Vec<f64>,
    bare: Vec<f64>,
    written: BTreeSet<(String, Unit)>,
    names: BTreeSet<String>,
}

impl Held {
    fn of(json: &Value) -> Self {
        let mut held = Self::default();
        held.add("", json);
        held
    }

    /// `key` is that of the nearest object that says what the numbers below are.
    fn add(&mut self, key: &str, value: &Value) {
        match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap();
                if key.ends_with("_ms") || key == "ms" {
                    self.ms.push(number.abs());
                } else {
                    self.bare.push(number.abs());
                    if number.abs() <= 1.0 {
                        self.shares.push(number.abs());
                    }
                }
            }
            Value::String(text) => {
                let (numbers, names) = figures(text);
                self.written.extend(numbers);
                self.names.extend(names);
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(key, item)),
            Value::Object(fields) => {
                for (name, item) in fields {
                    // Limits and parts of a time are times; sizes that are counts are under the keys of times.
                    let of_a_time = key.ends_with("_ms") && !name.ends_with("_share");
                    let of_a_count = matches!(key, "turns" | "tool_calls");
                    self.add(if of_a_time || of_a_count { key } else { name }, item);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn holds(&self, written: &str, unit: Unit) -> bool {
        let key = (written.to_owned(), unit);
        let among =
            |values: &[f64], scale: f64| values.iter().any(|value| shows(written, value * scale));
        CONSTANTS.contains(&(written, unit))
            || self.written.contains(&key)
            || match unit {
                Unit::Percent => among(&self.shares, 100.0),
                Unit::Ms => among(&self.ms, 1.0),
                Unit::S => among(&self.ms, 1e-3),
                Unit::H => among(&self.ms, 1.0 / 3.6e6),
                Unit::Bare => among(&self.bare, 1.0),
            }
    }

    /// What of a text it does not hold.
    fn missing(&self, text: &str) -> (usize, Vec<String>) {
        let (mut seen, mut missing) = (0, Vec::new());
        for line in text.lines() {
            let (numbers, names) = figures(line);
            seen += numbers.len();
            let lost = numbers
                .iter()
                .filter(|(written, unit)| !self.holds(written, *unit))
                .map(|(written, unit)| format!("{written} ({unit:?})"));
            let unknown = names
                .iter()
                .filter(|name| {
                    !self.names.contains(*name) && !CONSTANTS.contains(&(name, Unit::Bare))
                })
                // `p99.9` and its kind name a figure.
                .filter(|name| name.trim_start_matches('p').parse::<f64>().is_err())
                .cloned();
            missing.extend(lost.chain(unknown).map(|what| format!("{what}: {line}")));
        }
        (seen, missing)
    }
}

/// Markdown as it reads, without its definitions: no targets of links, no escapes.
fn read_markdown(text: &str) -> String {
    let text = text.split("### Definitions").next().unwrap();
    let mut read = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        read.push_str(before);
        read.push(']');
        rest = after.split_once(')').unwrap().1;
    }
    read.push_str(rest);
    unescaped(&read.replace('\\', ""))
}

/// A page as it reads, without its definitions, its charts and what its controls choose among.
fn read_page(html: &str) -> String {
    let body = html.split("<body>").nth(1).unwrap();
    let body = body.split("<section id=\"definitions\"").next().unwrap();
    let mut read = String::new();
    for piece in body.split("<svg ") {
        let piece = piece.split_once("</svg>").map_or(piece, |(_, after)| after);
        for tag in piece.split('<') {
            let (name, words) = tag.split_once('>').unwrap_or(("", tag));
            let name = name.trim_start_matches('/');
            let inline = ["a ", "a", "strong", "code", "button", "span"]
                .iter()
                .any(|of| name == *of || name.starts_with(&format!("{of} ")));
            read.push_str(if inline { " " } else { "\n" });
            read.push_str(words);
        }
    }
    unescaped(&read)
}

/// A chart's texts that say more than where an axis is.
fn told_by(svg: &str) -> String {
    let part = |tag: &str| {
        let inner = svg.split(&format!("<{tag}>")).nth(1).unwrap();
        unescaped(inner.split("</").next().unwrap())
    };
    let words = |label: &String| {
        let letters = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count() > 2;
        label.split(' ').any(letters)
    };
    let told = labels(svg).into_iter().filter(words);
    [part("title"), part("desc")]
        .into_iter()
        .chain(told)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A report of a sweep's result set.
fn of_a_result_set() -> Place {
    let place = fleet::place();
    place
        .run("sweep telemetry --idle 60s,300s,600s --max-false-kill 50% --out swept")
        .ok();
    place
        .run("report swept --policy pi-desktop-0129 --adr 7 --out adr")
        .ok();
    place
}

#[test]
fn every_number_that_is_read_is_in_the_json() {
    for (name, place, least) in [
        ("fleet", report(), 500),
        ("demo", demo(), 500),
        ("shared", shared(), 300),
        ("result set", of_a_result_set(), 50),
    ] {
        let held = Held::of(&place.json("adr/report.json"));
        let mut texts = vec![
            (
                "report.md".to_owned(),
                read_markdown(&text(&place, "adr/report.md")),
            ),
            (
                "report.html".to_owned(),
                read_page(&text(&place, "adr/report.html")),
            ),
        ];
        for (file, bytes) in files(&place.path("adr/charts")) {
            if ends_in(&file, "svg") {
                texts.push((file, told_by(&String::from_utf8(bytes).unwrap())));
            }
        }
        for (file, text) in texts {
            let (seen, missing) = held.missing(&text);
            assert!(
                missing.is_empty(),
                "{name}: {file}: {} of {seen}\n{}",
                missing.len(),
                missing.join("\n")
            );
            if file.starts_with("report") {
                assert!(seen > least, "{name}: {file}: {seen}");
            }
        }
    }
}

#[test]
fn a_number_that_is_not_there_is_found() {
    let held = Held::of(&serde_json::json!({
        "rate": 0.002_155, "window_ms": 300_000, "n": 7_887, "interval_ms": { "lo": 162_293, "up": null },
        "policy": "pi-desktop-0129", "grid": "60s..600s/60s",
    }));
    let found = |text: &str| held.missing(text).1;
    for text in [
        "0.22 % of 7,887 runs after 300 s, pi-desktop-0129, idle 300s",
        "[162 … -] s, 0.0022, 95 % and p99.9; 60s..600s/60s",
        "300,000 ms; 0.083 h",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
    for text in [
        "0.23 %",
        "7,888 runs",
        "301 s",
        "300 ms",
        "300",
        "0.3 h",
        "pi-desktop-0119",
        "[163 … -] s",
        "60s..600s/30s",
    ] {
        assert_eq!(found(text).len(), 1, "{text}");
    }
}
