//! One snapshot per command and format over one fleet. `POLICYSIM_SNAPSHOTS=overwrite` takes what is printed now;
//! the difference is then there to be read in a diff.

use std::fs;

use crate::{filtered, fleet, repository};

#[test]
fn every_format_prints_what_it_did() {
    let place = fleet::place();
    let folder = repository().join("tests/snapshots");
    let mut changed = Vec::new();
    for (name, line, formats) in [
        ("gaps", "gaps telemetry", &["table", "csv", "markdown"][..]),
        (
            "sweep",
            "sweep telemetry --idle 60s,300s --turns 1,off --max-false-kill 50%",
            &["table", "json", "csv", "markdown"],
        ),
        (
            "replay",
            "replay telemetry --run fleet.csv#a20",
            &["table", "json"],
        ),
        (
            "settle",
            "settle telemetry --hang-rate 20% --wait 300s,600s --on-expiry wait-again,read-as-failure",
            &["table", "json", "csv", "markdown"],
        ),
        (
            "kills",
            "sweep telemetry --idle 360s --list-kills 1",
            &["table"],
        ),
    ] {
        for format in formats {
            let path = folder.join(format!("{name}.{format}.txt"));
            let printed = place.run(&format!("{line} --format {format}")).ok();
            let printed = filtered(&printed, &place);
            if std::env::var_os("POLICYSIM_SNAPSHOTS").is_some_and(|word| word == "overwrite") {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &printed).unwrap();
            }
            let before = fs::read_to_string(&path).unwrap_or_default();
            if printed != before {
                let differs = before
                    .lines()
                    .zip(printed.lines())
                    .find(|(old, new)| old != new);
                changed.push(format!("{}: {differs:?}", path.display()));
            }
        }
    }
    assert!(changed.is_empty(), "{changed:#?}");
}
