//! `report`: its numbers are those of `sweep` and `gaps`, in every form, and the committed reports are what it writes.

mod estimates;
mod numbers;
mod prose;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Place, files, fleet, hostile, json, name, names, repository};

/// A report on the small fleet.
const LINE: &str = "report telemetry --policy pi-desktop-0129 --current pi-desktop-0119 --max-false-kill 50% \
                    --idle 60s,300s,360s --adr 0131 --out adr";

fn report() -> Place {
    let place = fleet::place();
    place.run(LINE).ok();
    place
}

fn text(place: &Place, file: &str) -> String {
    String::from_utf8(place.read(file)).unwrap()
}

/// The command as the report prints it, run in the same place.
fn rerun(place: &Place, command: &str) -> String {
    let line = command.strip_prefix("policysim ").unwrap();
    place
        .run_args(line.split(' ').map(|word| word.trim_matches('\'')))
        .ok()
}

#[test]
fn every_number_of_the_sweep_and_the_gaps_is_theirs() {
    let place = report();
    let found = place.json("adr/report.json");
    let commands = ["sweep_command", "map_command", "gaps_command"];
    for (part, command) in ["sweep", "map", "gaps"].into_iter().zip(commands) {
        assert!(
            text(&place, "adr/report.md").contains(found[command].as_str().unwrap()),
            "{command}"
        );
        let printed = json(&rerun(&place, found[command].as_str().unwrap()));
        assert_eq!(found[part], printed, "{part}");
    }
    // How the data are read is part of every command.
    place
        .run("report fleet.csv --since 2026-03-03 --dedupe --policy pi-desktop-0129 --max-false-kill 50% --out since")
        .ok();
    let since = place.json("since/report.json");
    for (part, command) in ["sweep", "map", "gaps"].into_iter().zip(commands) {
        let printed = json(&rerun(&place, since[command].as_str().unwrap()));
        assert_eq!(since[part], printed, "{part}");
    }
    assert!(since["sweep"]["data"]["runs"].as_u64() < found["sweep"]["data"]["runs"].as_u64());
}

#[test]
fn the_comparison_is_what_a_sweep_over_the_current_policy_finds() {
    let place = report();
    let found = &place.json("adr/report.json")["runs"]["comparison"];
    // The presets differ in more than the window, so that a sweep can pair them only through a policy file.
    place.write(
        "current.toml",
        "preset = \"pi-desktop-0129\"\nidle = \"600s\"\n",
    );
    place.run("report telemetry --policy pi-desktop-0129 --current current.toml --max-false-kill 50% --out nested").ok();
    let nested = place.json("nested/report.json");
    let paired = json(&place.run("sweep telemetry --base current.toml --idle 300s --max-false-kill 50% --format json").ok());
    let cell = &paired["cells"][0]["against_base"];
    let all = &nested["runs"]["comparison"]["all"];
    assert_eq!(all["newly_killed"], cell["newly_killed"]);
    assert_eq!(all["newly_spared"], cell["newly_spared"]);
    assert_eq!(all["current_minus_candidate"], cell["base_minus_this"]);
    assert_eq!(all["interval"], cell["interval"]);
    // Worked by hand: silences of 300 s and more are those of runs 15 to 20.
    assert_eq!(all["newly_killed"], fleet::killed_alive(300));
    // Kinds of wait add up to the whole.
    for of in [found, &nested["runs"]["comparison"]] {
        for side in ["newly_killed", "newly_spared"] {
            let sum: u64 = of["by_phase"]
                .as_array()
                .unwrap()
                .iter()
                .map(|phase| phase[side].as_u64().unwrap())
                .sum();
            assert_eq!(sum, of["all"][side].as_u64().unwrap(), "{side}");
        }
    }
}

/// The cells of the tables of a Markdown text, without what Markdown needs to show them.
fn markdown_cells(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let head = lines
            .peek()
            .is_some_and(|next| next.starts_with("| :--") || next.starts_with("| --"));
        if !line.starts_with("| ") || line.starts_with("| :--") || line.starts_with("| --") || head
        {
            continue;
        }
        let inner = line.trim_start_matches("| ").trim_end_matches(" |");
        found.extend(
            inner
                .split(" | ")
                .map(|cell| unescaped(&cell.replace('\\', ""))),
        );
    }
    found
}

fn html_cells(text: &str) -> Vec<String> {
    let body = |table: &str| table.split("<tbody>").nth(1).unwrap().to_owned();
    text.split("</table>")
        .filter(|table| table.contains("<tbody>"))
        .flat_map(|table| {
            body(table)
                .split("<td")
                .skip(1)
                .map(|cell| unescaped(cell.split('>').nth(1).unwrap().split('<').next().unwrap()))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[test]
fn text_and_page_hold_the_same_tables() {
    let place = report();
    let markdown: Vec<String> = markdown_cells(&text(&place, "adr/report.md"))
        .iter()
        .map(|cell| cell.trim().to_owned())
        .collect();
    let html: Vec<String> = html_cells(&text(&place, "adr/report.html"))
        .iter()
        .map(|cell| cell.trim().to_owned())
        .collect();
    assert!(markdown.len() > 200, "{}", markdown.len());
    assert_eq!(markdown, html);
}

#[test]
fn charts_say_their_n_and_stand_in_text_and_page() {
    let place = report();
    let (markdown, html) = (
        text(&place, "adr/report.md"),
        text(&place, "adr/report.html"),
    );
    let mut drawn = BTreeSet::new();
    for (file, bytes) in files(&place.path("adr/charts")) {
        let stem = Path::new(&file)
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if crate::ends_in(&file, "svg") {
            let svg = String::from_utf8(bytes).unwrap();
            let described = svg
                .split("<desc>")
                .nth(1)
                .unwrap()
                .split("</desc>")
                .next()
                .unwrap();
            assert!(
                described.contains("n = ") || described.contains("one run"),
                "{file}: {described}"
            );
            assert!(
                markdown.contains(&format!("](charts/{stem}.svg)")),
                "{file}"
            );
            assert!(
                html.contains(&format!("<figure id=\"chart-{stem}\" tabindex=\"0\">")),
                "{file}"
            );
            assert!(html.contains(&svg), "{file}");
        } else {
            assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{file}");
        }
        drawn.insert(stem);
    }
    let all = [
        "front",
        "hang-rate",
        "heat",
        "ledger",
        "settlement",
        "strata",
        "survival",
        "timeline",
    ];
    assert_eq!(drawn, all.map(str::to_owned).into());
}

#[test]
fn the_window_split_is_arithmetic_on_its_parts() {
    let place = Place::new();
    place.run("report --policy pi-desktop-0129 -o adr").ok();
    let found = &place.json("adr/report.json")["runs"]["window"];
    let gaps = json(&place.run("gaps --format json").ok());
    let measured = &gaps["groups"][""]["pre_token_or_cut"]["quantiles"];
    let p999 = measured.as_array().unwrap().last().unwrap()["point_ms"]
        .as_u64()
        .unwrap();
    assert_eq!(found["measured_p99_9_ms"], p999);
    // semantics section 4.4: nominal, full jitter, every header at its cap
    for (part, envelope_ms) in [
        ("nominal", 75_000),
        ("full_jitter", 82_500),
        ("headers_at_cap", 182_000),
    ] {
        assert_eq!(found["retry_envelope_ms"][part], envelope_ms);
        let left = 300_000 - i64::try_from(p999).unwrap() - envelope_ms;
        assert_eq!(found["left_ms"][part], left, "{part}");
    }
}

/// Where no run is labelled as hung, some are made to hang as `settle` makes them, and the text says so.
#[test]
fn settlement_is_what_settle_finds() {
    let place = fleet::place();
    place.run(LINE).ok();
    let quiet = fleet::events();
    let quiet: Vec<&str> = quiet
        .lines()
        .filter(|line| !line.starts_with('h'))
        .collect();
    // Many copies, so that a hundredth of them is more than one.
    let mut rows = vec![quiet[0].to_owned()];
    for copy in 0..10 {
        rows.extend(quiet[1..].iter().map(|line| format!("{copy}{line}")));
    }
    place.write("quiet.csv", rows.join("\n"));
    place
        .run("report quiet.csv --policy pi-desktop-0129 --max-false-kill 50% --idle 60s,300s --out quiet")
        .ok();
    for (data, folder, assumed) in [("telemetry", "adr", 0), ("quiet.csv", "quiet", 10_000)] {
        let found = &place.json(&format!("{folder}/report.json"))["runs"]["settlement"];
        assert_eq!(found["hang_ppm"], assumed, "{data}");
        let line = &found["lines"][0];
        for of in line["simulated"].as_array().unwrap() {
            let wait_ms = of["wait_ms"].as_u64().unwrap();
            let settled = json(
                &place
                    .run(&format!(
                        "settle {data} --policy pi-desktop-0129 --wait {wait_ms}ms --format json"
                    ))
                    .ok(),
            );
            let figure = &settled["cells"][0]["figures"]["settled_in_wait"];
            assert_eq!(of["settled_in_wait"]["n"], figure["n"], "{data} {wait_ms}");
            assert!(figure["n"].as_u64().unwrap() > 0, "{data} {wait_ms}");
            let (a, b) = (&of["settled_in_wait"]["point"], &figure["point"]);
            assert!(
                (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-9,
                "{data} {wait_ms}"
            );
        }
        let says = text(&place, &format!("{folder}/report.md")).contains("are made to hang");
        assert_eq!(says, assumed > 0, "{data}");
    }
}

#[test]
fn a_report_replaces_the_one_before_as_a_whole() {
    let place = fleet::place();
    place.run(LINE).ok();
    place.write("adr/charts/mine.svg", "mine");
    place.write("adr/notes.md", "mine");
    // This policy kills no run falsely: there is no run to draw.
    place
        .run("report telemetry --policy pi-desktop-0119 --max-false-kill 50% --out adr")
        .ok();
    let charts = names(&place.path("adr/charts"));
    assert!(
        !charts.iter().any(|of| of.starts_with("timeline")),
        "{charts:?}"
    );
    assert!(charts.contains(&"mine.svg".to_owned()));
    assert_eq!(
        names(&place.path("adr")),
        [
            "charts",
            "notes.md",
            "report.html",
            "report.json",
            "report.md"
        ]
    );
    // What cannot be written leaves all of it as it was.
    let before = (files(&place.path("adr")), files(&place.path("adr/charts")));
    fs::rename(place.path("adr/charts/front.png"), place.path("front.png")).unwrap();
    fs::create_dir(place.path("adr/charts/front.png")).unwrap();
    let error = place.run(LINE).error();
    assert!(error.contains("front.png: it is not a file"), "{error}");
    fs::remove_dir(place.path("adr/charts/front.png")).unwrap();
    fs::rename(place.path("front.png"), place.path("adr/charts/front.png")).unwrap();
    assert!(before == (files(&place.path("adr")), files(&place.path("adr/charts"))));
    let error = place
        .run("report telemetry --policy pi-desktop-0129 --out fleet.csv")
        .error();
    assert!(error.contains("fleet.csv is not a directory"), "{error}");
    place.write("taken/charts", "mine");
    let error = place
        .run("report telemetry --policy pi-desktop-0129 --out taken")
        .error();
    assert!(
        error.contains("taken/charts: it is a file; expected a folder or nothing"),
        "{error}"
    );
    // So does a result set.
    place
        .run("sweep telemetry --idle 60s,300s --out swept")
        .ok();
    let before = files(&place.path("swept"));
    fs::remove_file(place.path("swept/front.svg")).unwrap();
    fs::create_dir(place.path("swept/front.svg")).unwrap();
    let error = place.run("sweep telemetry --idle 60s --out swept").error();
    assert!(error.contains("front.svg: it is not a file"), "{error}");
    for (file, bytes) in before.iter().filter(|(file, _)| *file != "front.svg") {
        assert!(place.read(&format!("swept/{file}")) == *bytes, "{file}");
    }
}

#[test]
fn a_template_without_an_end_is_one_error() {
    let place = fleet::place();
    for (name, source) in [
        (
            "loops.md",
            "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}",
        ),
        (
            "doubles.md",
            "{% macro of(x, n) %}{% if n > 0 %}{{ of(x ~ x, n - 1) }}{% else %}{{ x }}{% endif %}{% endmacro %}{{ of(title, 64) }}",
        ),
        (
            "repeats.md",
            "{% for a in range(9999) %}{{ sections.data * 90 }}{% endfor %}",
        ),
        (
            "calls.md",
            "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        ),
        ("includes.md", "{% include 'template' %}"),
    ] {
        place.write(name, source);
        let error = place.run(&format!("{LINE} --template {name}")).error();
        assert!(error.contains(&format!("template {name}: ")), "{error}");
        if !matches!(name, "calls.md" | "includes.md") {
            assert!(error.contains("more than 1,000,000 steps"), "{error}");
        }
        assert!(!place.path("adr").exists(), "{name}");
    }
}

/// What is no template, and one that nests as deep as its length allows, ends in one error or in a report.
#[test]
fn a_template_of_any_shape_is_read_within_bounds() {
    let place = fleet::place();
    place.write("long.md", "x".repeat((128 << 10) + 1));
    place.write("bytes.md", [0xff_u8, 0xfe]);
    let mut refused = vec![
        ("long.md", "is longer than 128.0 KiB"),
        ("bytes.md", "is not text in UTF-8"),
        ("telemetry", "cannot read the template telemetry"),
    ];
    if cfg!(target_os = "linux") {
        refused.push(("/dev/zero", "is longer than 128.0 KiB"));
    }
    for (name, words) in refused {
        let error = place.run(&format!("{LINE} --template {name}")).error();
        assert!(error.contains(words), "{error}");
    }
    for (name, start, operator, end) in [
        ("calls.md", "{{ title", "()", " }}"),
        ("attributes.md", "{{ title", ".a", " }}"),
        ("filters.md", "{{ title", "|e", " }}"),
        ("branches.md", "{% if 0 %}", "{%elif 0%}", "{% endif %}"),
    ] {
        let most = ((128 << 10) - start.len() - end.len()) / operator.len();
        let source = format!("{start}{}{end}", operator.repeat(most.min(30_000)));
        place.write(name, source);
        let code = place.run(&format!("{LINE} --template {name}")).code;
        assert!(matches!(code, Some(0 | 2)), "{name}: {code:?}");
    }
}

/// Lists within lists take no steps to make, and as many as there are atoms to write.
#[test]
fn a_template_that_doubles_a_list_ends() {
    let place = fleet::place();
    place.write(
        "lists.md",
        "{% macro of(x, n) %}{% if n > 0 %}{{ of(x + x, n - 1) }}{% else %}{{ x|length }}{% endif %}{% endmacro %}{{ of([1], 64) }}",
    );
    let error = place.run(&format!("{LINE} --template lists.md")).error();
    assert!(
        error.contains("template lists.md: it takes more than "),
        "{error}"
    );
    assert!(error.contains("does it double a list?"), "{error}");
    assert!(!place.path("adr").exists());
}

/// Where parents were simulated a hang costs what they do not know of, and chart and text say the same.
#[test]
fn costs_of_simulated_parents_are_said_to_be_those() {
    let place = fleet::place();
    place
        .run("sweep telemetry --idle 60s..420s/60s --settle --out swept --quiet")
        .ok();
    place
        .run("report swept --policy pi-desktop-0129 --out adr --quiet")
        .ok();
    let chart = text(&place, "adr/charts/hang-rate.svg");
    assert!(chart.contains("parents know of hangs"), "{chart}");
    assert!(!chart.contains("slots lost"), "{chart}");
}

/// What holds itself can be neither shown nor compared in any stack, so that nothing can be made to.
#[test]
fn a_template_cannot_hold_a_value_within_itself() {
    let place = fleet::place();
    place.write(
        "self.md",
        "{% set of = namespace() %}{% set of.a = of %}{{ of }}",
    );
    let error = place.run(&format!("{LINE} --template self.md")).error();
    assert!(error.contains("namespace() is not offered"), "{error}");
    assert!(!place.path("adr").exists());
}

/// Every column of figures and every answer of the page leads to what it means.
#[test]
fn every_figure_links_to_how_it_is_defined() {
    let place = report();
    let html = text(&place, "adr/report.html");
    let mut columns = 0;
    for head in html.split("<thead>").skip(1) {
        let head = head.split("</thead>").next().unwrap();
        for column in head.split("<th ").skip(2) {
            assert!(column.contains("<a href=\"#def-"), "{column}");
            columns += 1;
        }
    }
    assert!(columns > 60, "{columns}");
    let answers = html.split("<dl class=\"answers\">").skip(1);
    for answer in answers.flat_map(|list| list.split("</dl>").next().unwrap().split("<dt>").skip(1))
    {
        assert!(answer.starts_with("<a href=\"#def-"), "{answer}");
    }
}

#[test]
fn a_result_set_is_reported_without_its_runs() {
    let place = fleet::place();
    place
        .run("sweep telemetry --idle 60s,300s --total 1h,off --max-false-kill 50% --out swept")
        .ok();
    place
        .run("report swept --policy pi-desktop-0129 --out adr")
        .ok();
    let found = place.json("adr/report.json");
    assert_eq!(found["sweep"], place.json("swept/sweep.json"));
    assert_eq!(found["gaps"], Value::Null);
    // What is left out is said, and nothing stands for it.
    for file in ["adr/report.md", "adr/report.html"] {
        let text = text(&place, file);
        assert!(text.contains("need the dataset itself"), "{file}");
        for part in [
            "One run in full</h3>",
            "#### One run in full",
            "Where the time went",
        ] {
            assert!(!text.contains(part), "{file}: {part}");
        }
    }
    let charts = names(&place.path("adr/charts"));
    assert!(charts.contains(&"front.svg".to_owned()) && charts.contains(&"heat.png".to_owned()));
    assert!(!charts.contains(&"survival.svg".to_owned()));
    let error = place
        .run("report swept --policy pi-desktop-0129 --current pi-desktop-0119 --out other")
        .error();
    assert!(error.contains("--current needs the runs"), "{error}");
    place.write("broken/sweep.json", "{\"schema_version\": 99}");
    let error = place
        .run("report broken --policy pi-desktop-0129 --out other")
        .error();
    assert!(error.contains("not a sweep"), "{error}");
}

#[test]
fn a_template_of_ones_own_replaces_the_text() {
    let place = fleet::place();
    place.write(
        "own.md",
        "# {{ adr }} {{ title | md }}\n{{ report.sweep.cells[0].false_kills }} of {{ report.sweep.cells[0].runs }}\n\
         {% for chart in charts %}{{ chart.name }} {% endfor %}\n{{ sections.recommendation }}\n",
    );
    place.run(&format!("{LINE} --template own.md")).ok();
    let (own, found) = (text(&place, "adr/report.md"), place.json("adr/report.json"));
    let cell = &found["sweep"]["cells"][0];
    assert!(own.starts_with("# 0131 which idle window"), "{own}");
    assert!(
        own.contains(&format!("{} of {}", cell["false_kills"], cell["runs"])),
        "{own}"
    );
    assert!(own.contains("survival ledger front heat"), "{own}");
    place.write("wrong.md", "{{ no_such_variable }}");
    let error = place.run(&format!("{LINE} --template wrong.md")).error();
    assert!(error.contains("wrong.md"), "{error}");
    place.write("broken.md", "{% if %}");
    let error = place.run(&format!("{LINE} --template broken.md")).error();
    assert!(error.contains("broken.md"), "{error}");
}

#[test]
fn a_report_is_the_same_for_any_number_of_threads() {
    let place = fleet::place();
    for threads in [1, 4] {
        place
            .run(&format!("{LINE}{threads} --threads {threads}"))
            .ok();
    }
    let of = |folder: &str| {
        (
            files(&place.path(folder)),
            files(&place.path(&format!("{folder}/charts"))),
        )
    };
    assert_eq!(of("adr1"), of("adr4"));
    assert_eq!(
        names(&place.path("adr1")),
        ["charts", "report.html", "report.json", "report.md"]
    );
}

/// The committed reports, each with the commands that make it.
const COMMITTED: [(&str, &[&str]); 2] = [
    (
        "adr-0129",
        &["report --policy pi-desktop-0129 --current pi-desktop-0119 --adr 0129 --out adr-0129"],
    ),
    (
        "public-2026",
        &[
            "synth run data/models/public-2026.toml --population claude --runs 4000 --seed 0 --strata --out public-2026-claude",
            "report public-2026-claude --policy pi-desktop-0129 --current pi-desktop-0119 --adr 0129 --out public-2026",
        ],
    ),
];

#[test]
fn the_committed_reports_are_remade_byte_for_byte() {
    let reports = repository().join("reports");
    let overwrite = std::env::var_os("POLICYSIM_SNAPSHOTS").is_some_and(|word| word == "overwrite");
    for (folder, lines) in COMMITTED {
        let place = Place::new();
        let model = repository().join("data/models/public-2026.toml");
        place.write("data/models/public-2026.toml", fs::read(model).unwrap());
        for line in lines {
            place.run(line).ok();
        }
        for below in ["", "charts"] {
            let (kept, made) = (
                reports.join(folder).join(below),
                files(&place.path(folder).join(below)),
            );
            if overwrite {
                fs::create_dir_all(&kept).unwrap();
                for (file, bytes) in &made {
                    fs::write(kept.join(file), bytes).unwrap();
                }
            }
            let committed = files(&kept);
            assert!(made.keys().eq(committed.keys()), "{folder}/{below}");
            let changed: Vec<&String> = made
                .iter()
                .filter(|(file, bytes)| committed[*file] != **bytes)
                .map(|(file, _)| file)
                .collect();
            assert!(
                changed.is_empty(),
                "{folder}/{below}: {changed:?}; POLICYSIM_SNAPSHOTS=overwrite remakes them"
            );
        }
    }
}

#[test]
fn no_request_can_leave_the_page() {
    let place = report();
    let html = text(&place, "adr/report.html");
    let policy = html
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(
        !html.contains(" style=\"") && !html.contains(" onclick"),
        "an inline style or handler"
    );
    for (at, _) in html.match_indices("://") {
        let start = html[..at].rfind(['"', '\'', ' ', '\n']).unwrap();
        assert!(
            html[start..].starts_with("\"http://www.w3.org/2000/svg"),
            "{}",
            &html[start..at + 20]
        );
    }
}

#[test]
fn the_rules_of_a_report_are_rules_of_the_gate() {
    let place = report();
    let markdown = text(&place, "adr/report.md");
    let rules = markdown
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    place.write("rules.toml", rules);
    let done =
        place.run("gate telemetry --policy pi-desktop-0129 --rules rules.toml --format json");
    assert!(matches!(done.code, Some(0 | 1 | 3)), "{}", done.stderr);
    let found = json(&done.stdout);
    for name in [
        "no contradiction between limits",
        "runs that live are not killed",
        "the idle window is the one decided on",
    ] {
        assert!(done.stdout.contains(name), "{name}: {found:#}");
    }
}

/// Names from logs, as hostile as they come, change the text of a report and nothing else.
#[test]
fn hostile_names_stay_words() {
    let place = hostile::place();
    for data in ["hostile", "tame"] {
        place.run(&format!("report {data} --policy pi-desktop-0129 --current pi-desktop-0119 --idle 60s,300s,400s --out adr-{data}")).ok();
    }
    let of = |data: &str| {
        let mut found = place.json(&format!("adr-{data}/report.json"));
        for part in ["sweep", "map", "gaps"] {
            found[part]["data"] = Value::Null;
        }
        hostile::figures(&found)
    };
    assert_eq!(of("hostile"), of("tame"));
    let (markdown, html) = (
        text(&place, "adr-hostile/report.md"),
        text(&place, "adr-hostile/report.html"),
    );
    for (form, text) in [("md", &markdown), ("html", &html)] {
        let found = text.chars().find(|&c| hostile::steers_a_terminal(c));
        assert_eq!(found, None, "{form}");
        assert!(!text.contains("<script>alert"), "{form}");
    }
    assert!(!markdown.contains("[x](y)"));
    // Backticks of a name make no code.
    assert!(markdown.contains("\\`touch owned\\`"));
    let codes: Vec<&str> = html
        .split("<code>")
        .skip(1)
        .map(|code| code.split("</code>").next().unwrap())
        .collect();
    assert!(codes.contains(&"--by harness"), "{codes:?}");
    let owned: Vec<&&str> = codes
        .iter()
        .filter(|code| code.contains("touch owned") && !code.starts_with("policysim replay"))
        .collect();
    assert!(owned.is_empty(), "{owned:?}");
    // Two scripts, the page's own: its data and its code.
    assert_eq!(html.matches("<script").count(), 2);
    let charts = files(&place.path("adr-hostile/charts"));
    assert_eq!(charts.len(), 16, "{:?}", charts.keys());
    for (file, bytes) in charts {
        if crate::ends_in(&file, "svg") {
            let svg = String::from_utf8(bytes).unwrap();
            assert!(
                !svg.contains("<script") && !svg.chars().any(hostile::steers_a_terminal),
                "{file}"
            );
            assert!(
                svg.len() < 400_000,
                "{file}: a name of 10,000 characters is not cut"
            );
        }
    }
    assert!(html.len() < 3_000_000, "{}", html.len());
    assert_eq!(name(&place.path("adr-hostile")), "adr-hostile");
}

#[test]
fn gaps_and_sweep_draw_into_files_and_letters() {
    let place = fleet::place();
    place.run("gaps telemetry --plot gaps.svg").ok();
    place.run("gaps telemetry --plot gaps.png").ok();
    place
        .run("sweep telemetry --idle 60s,300s --plot front.svg --format json")
        .ok();
    place
        .run("sweep telemetry --idle 60s,300s --plot front.png")
        .ok();
    for picture in ["gaps.svg", "front.svg"] {
        assert!(text(&place, picture).contains("<title>"), "{picture}");
    }
    for picture in ["gaps.png", "front.png"] {
        assert!(place.read(picture).starts_with(b"\x89PNG"), "{picture}");
    }
    let marked = place.run("gaps telemetry --idle 60s,240s,off").ok();
    for line in ["60 s |=", "240 s |=", "300 s |="] {
        assert!(
            marked.lines().any(|of| of.trim_start().starts_with(line)),
            "{marked}"
        );
    }
    assert_eq!(marked.matches("< candidate").count(), 2, "{marked}");
    place
        .run("gaps telemetry --plot marked.svg --idle 60s,240s")
        .ok();
    assert!(text(&place, "marked.svg").contains("candidate windows"));
    let error = place.run("gaps telemetry --idle 60s --format json").error();
    assert!(error.contains("give --plot FILE as well"), "{error}");
    let letters = place.run("gaps telemetry --plot -").ok();
    let line = letters
        .lines()
        .find(|line| line.contains("< 300 s pi-desktop-0129"))
        .unwrap();
    assert!(line.trim_start().starts_with("300 s |="), "{line}");
    assert!(
        !place.run("gaps telemetry").ok().contains("300 s |"),
        "nobody reads a pipe"
    );
    for line in [
        "gaps telemetry --plot gaps.pdf",
        "sweep telemetry --plot front",
    ] {
        let error = place.run(line).error();
        assert!(
            error.contains("expected a file that ends in .svg or .png"),
            "{error}"
        );
    }
}

/// Somebody who reads the table gets the curve below it without asking.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_the_curve_in_letters() {
    let place = fleet::place();
    let script = Path::new("/usr/bin/script");
    if !script.is_file() {
        eprintln!("skipped: no script to make a terminal");
        return;
    }
    let mut command = place.command(script);
    let line = format!("{} gaps telemetry --quiet", crate::POLICYSIM);
    command.args(["-qec", &line, "/dev/null"]);
    let shown = crate::finish(&mut command).ok();
    let plot = shown
        .split("Share of silences that last at least so long: idle clock")
        .nth(1)
        .unwrap();
    assert!(plot.contains("< 300 s pi-desktop-0129"), "{shown}");
}
