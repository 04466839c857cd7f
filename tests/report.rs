//! `report`: its numbers are those of `sweep` and `gaps`, in every form, and the committed reports are what it writes.

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
    for (part, command) in [("sweep", "sweep_command"), ("map", "map_command")] {
        let printed = json(&rerun(&place, found[command].as_str().unwrap()));
        assert_eq!(found[part], printed, "{part}");
    }
    let gaps = place
        .run("gaps telemetry --policy pi-desktop-0129 --format json")
        .ok();
    assert_eq!(found["gaps"], json(&gaps));
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
    assert!(text(&place, "adr/report.md").contains("need the dataset itself"));
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
            "synth run data/models/public-2026.toml --population claude --runs 4000 --seed 0 --out public-2026-claude",
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
