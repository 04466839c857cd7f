//! The demo dataset is what its command makes, and its waits are those that were published.

use std::fs;

use serde_json::Value;

use crate::{Place, files, json, repository};

/// Published quantiles of the pre-token wait, in ms (PI-Desktop ADR 0129).
const PUBLISHED: [(&str, u64); 4] = [
    ("0.5", 5_600),
    ("0.9", 13_400),
    ("0.99", 55_000),
    ("0.999", 174_000),
];

#[test]
fn the_committed_demo_is_made_again_byte_for_byte() {
    let place = Place::new();
    let model = repository().join("data/models/adr-0129.toml");
    place.write("data/models/adr-0129.toml", fs::read(model).unwrap());
    place
        .run("synth run data/models/adr-0129.toml --runs 8000 --seed 0 --strata --out demo")
        .ok();
    let (committed, made) = (
        files(&repository().join("data/demo")),
        files(&place.path("demo")),
    );
    assert!(committed.keys().eq(made.keys()));
    for (file, bytes) in &committed {
        assert!(
            made[file] == *bytes,
            "{file} differs from the committed one"
        );
    }
    let size: usize = committed.values().map(Vec::len).sum();
    assert!(size <= 3 << 20, "{size} bytes");
}

#[test]
fn the_embedded_demo_has_the_published_waits() {
    let place = Place::new();
    let done = place.run("gaps --format json").exits(0);
    assert!(done.stderr.contains("embedded demo"), "{}", done.stderr);
    let gaps = json(&done.stdout);
    assert!(gaps["data"]["runs"].as_u64().unwrap() >= 6_000);
    let quantiles = gaps["groups"][""]["waits"]["pre_token"]["quantiles"]
        .as_array()
        .unwrap();
    for (p, published_ms) in PUBLISHED {
        let found = quantiles.iter().find(|quantile| quantile["p"] == p);
        let point_ms = found.unwrap()["point_ms"].as_u64().unwrap();
        let off_ms = point_ms.abs_diff(published_ms);
        assert!(off_ms * 50 <= published_ms, "p{p}: {point_ms} ms");
    }
    // The committed files are the embedded ones.
    let demo = repository().join("data/demo");
    let args = ["gaps".as_ref(), demo.as_os_str(), "--format=json".as_ref()];
    let committed = json(&place.run_args(args).ok());
    assert_eq!(committed["groups"], gaps["groups"]);
}

#[test]
fn what_is_assumed_is_said_wherever_the_demo_is_shown() {
    let place = Place::new();
    for line in [
        "gaps",
        "sweep --idle 300s",
        "gaps --format markdown",
        "sweep --idle 300s --format markdown",
        "gaps --format json",
        "sweep --idle 300s --format json",
    ] {
        let shown = place.run(line).ok();
        assert!(shown.contains("every other figure is assumed"), "{line}");
    }
    let done = place.run("replay --run adr-0129/delegates#37").exits(0);
    assert!(
        done.stderr
            .contains("only its pre-token waits are published")
    );
}

#[test]
fn a_seed_is_used_and_told() {
    let place = Place::new();
    let model = repository().join("data/models/adr-0129.toml");
    place.write("model.toml", fs::read(model).unwrap());
    let mut digests = Vec::new();
    for seed in [0, 1] {
        let line = format!("synth run model.toml --runs 20 --seed {seed} --out seed-{seed}");
        let said = place.run(&line).ok();
        assert!(said.contains(&format!("seed {seed}")), "{said}");
        let manifest = place.json(&format!("seed-{seed}/manifest.json"));
        let command = manifest["origin"]["command"].as_str().unwrap().to_owned();
        assert!(command.contains(&format!("--seed {seed}")), "{command}");
        digests.push(manifest["digest"].clone());
    }
    assert!(digests[0] != digests[1] && digests[0] != Value::Null);
}

/// `gaps` and `sweep` tell the same share of silences that reach a window, whatever aborted ones might have become.
#[test]
fn aborts_leave_the_same_open_to_both() {
    let place = Place::new();
    let between = |text: &str, from: &str, to: &str| {
        let rest = text.split_once(from).unwrap().1;
        rest.split_once(to).unwrap().0.replace(['[', ']'], "")
    };
    let gaps = place
        .run("gaps --policy pi-desktop-0129 --format markdown")
        .ok();
    let idle = gaps
        .split_once("idle clock: 154 silences end in an abort")
        .unwrap()
        .1;
    let sweep = place.run("sweep --idle 300s --format markdown").ok();
    assert_eq!(
        between(idle, "because it is silent, ", " reach 300"),
        between(&sweep, "cell 1 kills ", " of gaps"),
    );
}

/// A window that is off lets hangs go on for ever: no number stands for that.
#[test]
fn a_window_that_is_off_has_no_price() {
    let place = Place::new();
    let model = repository().join("data/models/public-2026.toml");
    place.write("model.toml", fs::read(model).unwrap());
    place
        .run("synth run model.toml --population codex --runs 60 --out calm")
        .ok();
    let sweep = json(
        &place
            .run("sweep calm --base pi-desktop-0166 --idle 60s,300s,off --format json")
            .ok(),
    );
    let focus = &sweep["focus"];
    assert_eq!(focus["cell"], 3);
    assert_eq!(focus["cost_ranked"], Value::Null);
    assert_eq!(focus["costs_more_than"], json("[]"));
}
