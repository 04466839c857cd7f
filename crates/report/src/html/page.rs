//! The page: sections, charts, controls, definitions.

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::escaped;
use crate::charts::ChartError;
use crate::sizing::Report;
use crate::sizing::definitions::{DEFINITIONS, title};
use crate::sizing::document::{Block, Grid, Prose, Section, Span};
use crate::sizing::facts::Sweep;
use crate::table::Align;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("explorer.js");

/// The whole page. No request leaves it, and it needs no folder beside it.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn page(report: &Report) -> Result<String, ChartError> {
    let mut charts: Vec<(&str, String)> = Vec::new();
    let mut places = json!({});
    for chart in report.charts() {
        charts.push((chart.name, chart.canvas.to_svg()?));
        let marks: serde_json::Map<String, Value> = chart
            .canvas
            .marks()
            .iter()
            .map(|mark| (mark.key.clone(), json!([mark.x, mark.y])))
            .collect();
        places[chart.name] = json!({ "plot": chart.canvas.plot(), "marks": marks });
    }
    let sections = report.sections();
    let heading = match &report.adr {
        Some(adr) => format!("ADR {adr}, sizing: {}", report.title),
        None => format!("Sizing: {}", report.title),
    };
    let mut text =
        String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    text.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'\">\n",
        digest(STYLE),
        digest(SCRIPT)
    ));
    text.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    text.push_str(&format!(
        "<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        escaped(&heading)
    ));
    text.push_str("<a class=\"skip\" href=\"#main\">Skip to the report</a>\n");
    text.push_str(&format!(
        "<header>\n<h1>{}</h1>\n</header>\n",
        escaped(&heading)
    ));
    navigation(&mut text, &sections);
    text.push_str("<main id=\"main\" tabindex=\"-1\">\n");
    for section in &sections {
        text.push_str(&format!(
            "<section id=\"{}\" aria-labelledby=\"title-{}\">\n<h2 id=\"title-{}\">{}</h2>\n",
            section.id,
            section.id,
            section.id,
            escaped(section.title)
        ));
        for block in &section.blocks {
            text.push_str(&of_block(block, &charts));
        }
        text.push_str("</section>\n");
        if section.id == "context" {
            what_if(&mut text, report);
        }
    }
    definitions(&mut text);
    text.push_str("</main>\n<script type=\"application/json\" id=\"page-data\">");
    text.push_str(&report.page_data(&places));
    text.push_str(&format!(
        "</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    ));
    Ok(text)
}

/// The digest by which the policy of the page knows its own style and script.
fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    format!(
        "sha256-{}",
        base64::engine::general_purpose::STANDARD.encode(hash)
    )
}

fn navigation(text: &mut String, sections: &[Section]) {
    text.push_str("<nav aria-label=\"Sections\">\n<ul>\n");
    for section in sections {
        text.push_str(&format!(
            "<li><a href=\"#{}\">{}</a></li>\n",
            section.id,
            escaped(section.title)
        ));
    }
    text.push_str("<li><a href=\"#definitions\">Definitions</a></li>\n</ul>\n</nav>\n");
}

fn definitions(text: &mut String) {
    text.push_str("<section id=\"definitions\" aria-labelledby=\"title-definitions\">\n<h2 id=\"title-definitions\">Definitions</h2>\n<dl class=\"definitions\">\n");
    for (id, title, words) in DEFINITIONS {
        text.push_str(&format!(
            "<dt id=\"def-{id}\">{}</dt>\n<dd>{}</dd>\n",
            escaped(title),
            of_prose(&Prose::written(words))
        ));
    }
    text.push_str("</dl>\n</section>\n");
}

fn of_block(block: &Block, charts: &[(&str, String)]) -> String {
    match block {
        Block::Prose(prose) => format!("<p>{}</p>\n", of_prose(prose)),
        Block::List(items) => {
            let mut list = String::from("<ul>\n");
            for item in items {
                list.push_str(&format!("<li>{}</li>\n", of_prose(item)));
            }
            list.push_str("</ul>\n");
            list
        }
        Block::Grid(grid) => of_grid(grid),
        Block::Chart(name) => {
            let chart = charts.iter().find(|(of, _)| of == name);
            chart.map_or_else(String::new, |(_, svg)| {
                format!("<figure id=\"chart-{name}\" tabindex=\"0\">\n{svg}</figure>\n")
            })
        }
        Block::Code(_, code) => {
            let lines: Vec<String> = code.lines().map(escaped).collect();
            format!("<pre><code>{}</code></pre>\n", lines.join("\n"))
        }
        Block::Title(title) => format!("<h3>{}</h3>\n", escaped(title)),
    }
}

fn of_prose(prose: &Prose) -> String {
    prose
        .0
        .iter()
        .map(|span| match span {
            Span::Text(words) => escaped(words),
            Span::Strong(words) => format!("<strong>{}</strong>", escaped(words)),
            Span::Code(code) => format!("<code>{}</code>", escaped(code)),
            Span::Term(id, word) => format!("<a href=\"#def-{id}\">{}</a>", escaped(word)),
        })
        .collect()
}

fn of_grid(grid: &Grid) -> String {
    let caption = escaped(&grid.title);
    let mut text = format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\n<table class=\"sortable\">\n<caption><span>{caption}</span></caption>\n<thead>\n<tr>"
    );
    let side = |align: Align| {
        if align == Align::Right {
            " class=\"end\""
        } else {
            ""
        }
    };
    for column in &grid.columns {
        let name = column.name.replace('\n', " ");
        let link = column.term.map_or_else(String::new, |id| {
            format!(
                "<a href=\"#def-{id}\" aria-label=\"how {} is defined\">?</a>",
                escaped(title(id).unwrap_or(id))
            )
        });
        if name.is_empty() {
            text.push_str("<td></td>");
        } else {
            // On paper a head is repeated on every page, and browsers leave buttons out of it.
            let name = escaped(&name);
            text.push_str(&format!(
                "<th scope=\"col\" aria-sort=\"none\"{}><button type=\"button\">{name}</button><span class=\"printed\">{name}</span>{link}</th>",
                side(column.align),
            ));
        }
    }
    text.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &grid.rows {
        text.push_str("<tr>");
        for (datum, column) in row.iter().zip(&grid.columns) {
            let sort = datum
                .sort
                .map_or_else(String::new, |value| format!(" data-sort=\"{value}\""));
            text.push_str(&format!(
                "<td{}{sort}>{}</td>",
                side(column.align),
                escaped(&datum.text)
            ));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

/// The controls and what they choose; without runs, or with too many cells, nothing.
#[expect(clippy::too_many_lines, reason = "one document, part after part")]
fn what_if(text: &mut String, report: &Report) {
    let map = report.map();
    let explorer = &report.explorer;
    // A result set of a sweep holds no costs at other rates, and one TaskWait.
    let priced = !explorer.costs.hang_rates.is_empty();
    text.push_str("<section id=\"what-if\" aria-labelledby=\"title-what-if\">\n<h2 id=\"title-what-if\">What if?</h2>\n");
    if map.cells.len() > crate::sizing::explorer::MOST_CELLS {
        text.push_str(&format!(
            "<p>The sweep has {} cells, more than a page can hold: they are in <code>report.json</code>.</p>\n</section>\n",
            crate::units::grouped(map.cells.len() as u64)
        ));
        return;
    }
    text.push_str("<p>Every position of a control is a swept cell; nothing between two cells is offered, and no figure is computed here.</p>\n<div class=\"controls\">\n");
    let start = report.candidate_in_map.map_or(0, |number| number - 1);
    for (index, key) in map.axes.iter().enumerate() {
        let values = map.values(key);
        let at = values
            .iter()
            .position(|value| *value == map.cells[start].setting(key))
            .unwrap_or(0);
        let name = match key.as_str() {
            "idle.window" => "Idle window",
            "total.budget" => "Total budget",
            "turns.cap" => "Turn cap",
            other => other,
        };
        slider(text, &format!("axis-{index}"), name, values.len(), at);
    }
    let wait_at = explorer
        .waits_ms
        .iter()
        .position(|&ms| ms == map.task_wait_ms)
        .unwrap_or(0);
    slider(text, "wait", "TaskWait", explorer.waits_ms.len(), wait_at);
    let costs = &explorer.costs;
    if priced {
        let rates = costs.hang_rates.len();
        slider(text, "hang-rate-control", "Hang rate", rates, rates / 2);
        let restarts = costs.restarts_ms.len();
        slider(text, "restart-control", "A restart costs", restarts, 0);
    }
    let strata = report.page_strata();
    if !strata.is_empty() {
        text.push_str("<div><label for=\"stratum\">Stratum</label>\n<select id=\"stratum\">\n<option value=\"\">all runs</option>\n");
        for (index, (key, group)) in strata.iter().enumerate() {
            text.push_str(&format!(
                "<option value=\"{index}\">{} {}</option>\n",
                escaped(key),
                escaped(&shortened(group))
            ));
        }
        text.push_str("</select></div>\n");
    }
    text.push_str("</div>\n");
    let missing = not_offered(map, priced);
    if !missing.is_empty() {
        text.push_str(&format!("<p>{}</p>\n", missing.join(" ")));
    }
    text.push_str(
        "<p aria-live=\"polite\"><strong id=\"shown-cell\"></strong></p>\n<dl class=\"answers\">\n",
    );
    // Costs have no interval here: the notes give that of the cell that they are about.
    let point = format!(
        "a point figure, n = {}",
        crate::units::counted(map.protection.select_runs, "run")
    );
    let cost = format!("cost of this cell ({point})");
    let cheapest = format!("cheapest window, other settings as chosen ({point})");
    for (id, term, words) in [
        ("shown-runs", "false-kill-rate", "runs, n"),
        (
            "shown-rate",
            "false-kill-rate",
            "false kills per run [95 %]",
        ),
        (
            "shown-limit",
            "false-kill-rate",
            "one-sided 95 % limit of this cell alone, all runs",
        ),
        ("shown-unresolved", "unresolved", "unresolved runs"),
        (
            "shown-detection",
            "detection-time",
            "hang seen, p50 … p99 [95 %]",
        ),
        (
            "shown-settle",
            "settles-in-wait",
            "settles in the wait it begins in (closed form)",
        ),
        ("shown-slots", "slots-lost", "slots lost to hangs"),
        ("shown-work", "work-lost", "work lost to false kills"),
        ("shown-cost", "cost", cost.as_str()),
        ("shown-cheapest", "cost", cheapest.as_str()),
    ] {
        if priced || term != "cost" {
            answer(text, id, term, words);
        }
    }
    text.push_str("</dl>\n<div id=\"stratum-answers\" hidden>\n<h3>In this stratum</h3>\n<dl class=\"answers\">\n");
    for (id, term, words) in [
        ("shown-stratum-runs", "false-kill-rate", "runs, n"),
        (
            "shown-stratum-rate",
            "false-kill-rate",
            "false kills per run [95 %]",
        ),
        (
            "shown-stratum-limit",
            "false-kill-rate",
            "one-sided 95 % limit of this stratum alone, all its runs",
        ),
    ] {
        answer(text, id, term, words);
    }
    text.push_str("</dl>\n</div>\n</section>\n");
}

/// What a reader may look for among the controls and not find, and how to get it.
fn not_offered(map: &Sweep, priced: bool) -> Vec<&'static str> {
    let mut words = Vec::new();
    if !map.axes.iter().any(|key| key == "turns.cap") {
        words.push("Turn caps are those of the policy: <code>--turns 40,60,off</code> offers others, for every role.");
    }
    if !priced {
        words.push("Other lengths of the TaskWait, hang rates and costs of a restart take the runs: give <code>policysim report</code> the dataset instead of a result set.");
    }
    words
}

fn slider(text: &mut String, id: &str, name: &str, values: usize, at: usize) {
    let last = values.saturating_sub(1);
    let fixed = if last == 0 { " disabled" } else { "" };
    text.push_str(&format!(
        "<div><label for=\"{id}\">{}: <output id=\"{id}-shown\" for=\"{id}\"></output></label>\n<input id=\"{id}\" type=\"range\" min=\"0\" max=\"{last}\" step=\"1\" value=\"{at}\" autocomplete=\"off\"{fixed}></div>\n",
        escaped(name)
    ));
}

fn answer(text: &mut String, id: &str, term: &str, words: &str) {
    text.push_str(&format!(
        "<div><dt><a href=\"#def-{term}\">{}</a></dt><dd id=\"{id}\"></dd></div>\n",
        escaped(words)
    ));
}

/// A name of any length, as long as a menu bears.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 80 {
        return name.to_owned();
    }
    let start: String = name.chars().take(79).collect();
    format!("{start}…")
}
