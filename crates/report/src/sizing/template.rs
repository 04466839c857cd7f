//! The Markdown of a report, and how a team's own template replaces it.
//!
//! A template is rendered by minijinja with these variables:
//!
//! | variable | holds |
//! |---|---|
//! | `title` | the title |
//! | `adr` | the number given with `--adr`; empty without one |
//! | `sections.ID` | a section in Markdown, without its title: `context`, `data`, `method`, `options`, `recommendation`, `consequences`, `rules`, `reproduction` |
//! | `titles.ID` | the title of that section |
//! | `definitions` | a list of `id`, `title` and `text`, which is Markdown |
//! | `charts` | a list of `name`, `title` and `description`; files are `charts/NAME.svg` and `charts/NAME.png` |
//! | `report` | everything in `report.json`, `report.sweep.cells[0].false_kills` for example |
//!
//! Sections are Markdown already and are not escaped again; values of `report` come from logs and should pass through
//! the filter `md`. A template that takes more than [`FUEL`] steps is stopped.

use minijinja::value::{Kwargs, Rest, Serde};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, context};
use serde::Serialize;

use super::Report;
use super::definitions::DEFINITIONS;
use super::document::{Prose, Section, marked_down};
use crate::units::grouped;

/// The template that is used where none is given.
pub const BUILT_IN: &str = include_str!("template.md.j2");

/// Steps that a template may take: its instructions, and one for every 64 bytes that it makes. The built-in one takes
/// some thousands; a loop can write tens of thousands of cells, and no template makes a text of more than 64 MB.
pub const FUEL: u64 = 1_000_000;

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

#[derive(Serialize)]
struct ChartEntry {
    name: &'static str,
    title: String,
    description: String,
}

/// Renders `source` with the variables of `report`.
///
/// # Errors
/// When the template does not parse, names a variable that does not exist, or a result cannot be written as JSON.
pub fn render(source: &str, report: &Report) -> Result<String, TemplateError> {
    let charts: Vec<ChartEntry> = report
        .charts()
        .into_iter()
        .map(|chart| ChartEntry {
            name: chart.name,
            title: chart.canvas.title().to_owned(),
            description: chart.canvas.description().to_owned(),
        })
        .collect();
    let described = |name: &str| {
        charts
            .iter()
            .find(|chart| chart.name == name)
            .map(|chart| (chart.title.clone(), chart.description.clone()))
    };
    let sections = report.sections();
    let text = |of: &Section| of.to_markdown(&described).trim_end().to_owned();
    let by_id = |of: &dyn Fn(&Section) -> String| {
        sections
            .iter()
            .map(|section| (section.id.to_owned(), of(section)))
            .collect::<std::collections::BTreeMap<String, String>>()
    };
    let json = report.to_json().map_err(|error| told(&error))?;
    let everything: serde_json::Value =
        serde_json::from_str(&json).map_err(|error| told(&error))?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    // What it makes is the one value that can hold itself: showing or comparing that would never end.
    environment.add_function(
        "namespace",
        |_: Rest<Value>, _: Kwargs| -> Result<Value, Error> {
            Err(Error::new(
                ErrorKind::InvalidOperation,
                "namespace() is not offered here, expected `set`",
            ))
        },
    );
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_filter("md", |words: String| marked_down(&words));
    environment
        .add_template("template", source)
        .map_err(|error| told(&error))?;
    let template = environment
        .get_template("template")
        .map_err(|error| told(&error))?;
    template
        .render(context! {
            title => report.title.clone(),
            adr => report.adr.clone().unwrap_or_default(),
            sections => by_id(&text),
            titles => by_id(&|section| section.title.to_owned()),
            definitions => DEFINITIONS
                .map(|(id, title, text)| {
                    context! { id, title, text => Prose::written(text).to_markdown() }
                })
                .to_vec(),
            charts => Value::from(Serde(&charts)),
            report => Value::from(Serde(&everything)),
        })
        .map_err(|error| match error.kind() {
            ErrorKind::OutOfFuel => TemplateError(format!(
                "it goes on for more than {} steps, expected an end: does a loop repeat itself, or make gigabytes?",
                grouped(FUEL)
            )),
            _ => told(&error),
        })
}

/// The error with its place, on one line.
fn told(error: &dyn std::error::Error) -> TemplateError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    TemplateError(text)
}
