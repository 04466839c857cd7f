//! `synth fit` and `synth run` end to end.

use crate::{Place, fleet};

#[test]
fn samples_are_swept_and_fitted() {
    let place = Place::new();
    let rows: Vec<String> = (0..600_u64)
        .map(|n| format!("pre_token,{},run-{}", 500 + n * n % 9_973, n / 5))
        .collect();
    place.write(
        "waits.csv",
        format!("kind,duration_ms,run\n{}\n", rows.join("\n")),
    );
    let swept = place.run("sweep waits.csv --idle 5s,10s");
    assert!(
        swept.stderr.contains("120 runs are resampled"),
        "{}",
        swept.stderr
    );
    let printed = swept.ok();
    assert!(
        printed.contains("600 samples without their order: 120 runs are resampled"),
        "{printed}"
    );
    assert_eq!(
        printed,
        place.run("sweep waits.csv --idle 5s,10s --threads 1").ok()
    );
    let fitted = place.run("synth fit waits.csv -o model.toml").ok();
    assert!(
        fitted.contains("pre_token  n 600  fewer than 1,000 samples"),
        "{fitted}"
    );
    place
        .run("synth run model.toml --runs 500 --out drawn")
        .ok();
    place.run("settle --model model.toml --parents 20").ok();
    place.write("tools.csv", "kind,duration_ms\ntool,100\n");
    let error = place.run("sweep tools.csv").error();
    assert!(
        error.contains("tools.csv") && error.contains("pre_token"),
        "{error}"
    );
}

#[test]
fn a_model_is_fitted_to_runs_and_is_the_same_again() {
    let place = fleet::place();
    let fitted = place.run("synth fit telemetry -o a.toml --name fleet").ok();
    assert!(fitted.contains("runs in"), "{fitted}");
    place
        .run("synth fit telemetry -o b.toml --name fleet --threads 1")
        .ok();
    assert_eq!(place.read("a.toml"), place.read("b.toml"));
    place
        .run("synth run a.toml --runs 200 --out one --threads 1")
        .ok();
    place
        .run("synth run a.toml --runs 200 --out two --threads 2")
        .ok();
    assert_eq!(
        place.read("one/events.parquet"),
        place.read("two/events.parquet")
    );
}

/// The first runs of a larger fleet are those of a smaller one, unless draws are spread over all of it.
#[test]
fn adding_runs_changes_no_earlier_one() {
    let place = Place::new();
    let model = crate::repository().join("data/models/adr-0129.toml");
    place.write("model.toml", std::fs::read(model).unwrap());
    let replayed = |options: &str, run: u64| {
        let line = format!("synth run model.toml {options} --out drawn");
        place.run(&line).ok();
        place
            .run(&format!("replay drawn --run adr-0129/delegates#{run}"))
            .ok()
    };
    for run in [1, 20] {
        assert_eq!(replayed("--runs 20", run), replayed("--runs 40", run));
    }
    assert_ne!(
        replayed("--runs 20 --strata", 20),
        replayed("--runs 40 --strata", 20)
    );
    let command = place.json("drawn/manifest.json")["origin"]["command"].clone();
    assert_eq!(command, "synth run --runs 40 --seed 0 --strata");
}
