//! Scenarios in the format `policy/1`: what a policy document accepts and refuses.

use anyhow::{Context, Result, bail};
use policysim_policy::document::Value;
use policysim_policy::{Decimal, Millis, Policy, PolicyError, Watchdog};
use serde_json::{Map, Value as Json, json};

use super::fields::Fields;
use super::judge::{Judged, judge};
use super::trace;

/// Runs the cases of a scenario, or its policies over its events.
pub(super) fn run(scenario: &Json) -> Result<Judged> {
    let scenario = Fields::new(
        scenario,
        &[
            "scenario", "format", "title", "cases", "policies", "events", "expect",
        ],
    )?;
    let cases = scenario.list("cases")?;
    if cases.is_empty() {
        return run_policies(scenario);
    }
    // Each case carries its own expectation beside its input.
    let mut expected = Map::new();
    let mut got = Map::new();
    let mut before = None;
    for (at, case) in cases.iter().enumerate() {
        let case = Fields::new(case, &["in", "out", "ms"])?;
        let document = case.need("in")?;
        let key = format!("case {at}: {document}");
        let result = read(document);
        match (case.text("out")?, case.millis("ms")?) {
            (None, Some(ms)) => {
                expected.insert(key.clone(), json!(ms.as_u64()));
                got.insert(key, told(&result));
            }
            (Some(words), None) => {
                let wanted = Wanted::of(words, before)?;
                expected.insert(key.clone(), json!(words));
                let told = if wanted.is_met_by(&result) {
                    json!(words)
                } else {
                    told(&result)
                };
                got.insert(key, told);
                before = Some(wanted);
            }
            _ => bail!("case {at} needs out or ms"),
        }
    }
    if let Some(Json::Object(expect)) = scenario.get("expect") {
        expected.extend(expect.clone());
    }
    judge(&Json::Object(expected), &got)
}

/// What a case's words ask for.
#[derive(Clone, Copy)]
struct Wanted<'w> {
    error: bool,
    /// What an error must say.
    hint: Option<&'w str>,
}

impl<'w> Wanted<'w> {
    fn of(words: &'w str, before: Option<Self>) -> Result<Self> {
        if words.starts_with("disabled") {
            return Ok(Self {
                error: false,
                hint: None,
            });
        }
        if !words.starts_with("error") {
            bail!("unknown outcome of a case: {words}");
        }
        let hint = match words.strip_prefix("error").unwrap_or("") {
            ", same" => before.and_then(|before| before.hint),
            rest => rest
                .split_once('(')
                .map(|(_, hint)| hint.trim_end_matches(')'))
                .or_else(|| rest.strip_prefix(": 0 is ambiguous, "))
                .or_else(|| rest.strip_prefix(": "))
                .or_else(|| rest.strip_prefix(", hint ")),
        };
        Ok(Self { error: true, hint })
    }

    fn is_met_by(self, result: &Result<Policy, PolicyError>) -> bool {
        match result {
            Ok(policy) => !self.error && policy.idle.window.is_none(),
            Err(error) => {
                let text = error.to_string();
                self.error && self.hint.is_none_or(|hint| text.contains(hint))
            }
        }
    }
}

fn told(result: &Result<Policy, PolicyError>) -> Json {
    match result {
        Ok(policy) => json!(policy.idle.window.map(Millis::as_u64)),
        Err(error) => json!(error.to_string()),
    }
}

/// Reads a document of short forms.
fn read(document: &Json) -> Result<Policy, PolicyError> {
    let mut policy = Policy::default();
    for (key, value) in document.as_object().into_iter().flatten() {
        // The one key that the product spells differently.
        let key = if key == "max_total" { "total" } else { key };
        policy.set(key, &convert(value))?;
    }
    Ok(policy)
}

fn convert(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match (number.as_i64(), Decimal::parse(&number.to_string())) {
            (Some(whole), _) => Value::Integer(whole),
            (None, Some(decimal)) => Value::Fraction(decimal),
            (None, None) => Value::text(number.to_string()),
        },
        Json::String(text) => Value::text(text),
        Json::Array(items) => Value::List(items.iter().map(convert).collect()),
        Json::Object(fields) => Value::Table(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), convert(value)))
                .collect(),
        ),
    }
}

/// Runs each policy over the scenario's events.
fn run_policies(scenario: Fields<'_>) -> Result<Judged> {
    let mut parsed = Vec::new();
    let mut verdicts = Vec::new();
    for document in scenario.list("policies")? {
        let policy = read(document).with_context(|| document.to_string())?;
        parsed.push(json!(policy.total.budget.map(Millis::as_u64)));
        let mut dog = Watchdog::new(&policy, Millis::ZERO);
        let mut last = Millis::ZERO;
        for event in scenario.list("events")? {
            let fields = Fields::new(event, &trace::EVENT_KEYS)?;
            last = fields.need_millis("t_ms")?;
            if let Some(spoken) = trace::event(fields)? {
                dog.handle_event(last, &spoken.event);
            }
        }
        dog.finish(last);
        let verdict = dog.verdict().context("the watchdog gave no verdict")?;
        verdicts.push(json!(verdict.cause.name()));
    }
    let got = [
        ("parsed_ms".to_owned(), Json::Array(parsed)),
        ("verdicts".to_owned(), Json::Array(verdicts)),
    ];
    judge(scenario.need("expect")?, &got.into_iter().collect())
}
