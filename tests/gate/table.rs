//! One gate per line: data, policy, rule, and what it must come to.

use super::{Course, gate, import, runs};
use crate::Place;

const A: &str = "model-a";
const B: &str = "model-b";
/// Longer than the window of 300 s.
const KILLED: Course = Course::Silent(400_000);
/// Ten minutes of silence under every policy here.
const HUNG: Course = Course::Hung(3_600_000);

/// A place with the telemetry that the table names.
pub(super) fn place() -> Place {
    let place = Place::new();
    let good = [
        runs(400, A, Course::Lives),
        runs(300, B, Course::Lives),
        runs(20, A, HUNG),
    ];
    import(&place, "good", &good);
    import(&place, "small", &[runs(100, A, Course::Lives)]);
    let bad = [
        runs(300, A, Course::Lives),
        runs(100, B, Course::Lives),
        runs(40, B, KILLED),
    ];
    import(&place, "bad", &bad);
    let tied = [
        runs(300, A, Course::Lives),
        runs(1, A, Course::Silent(300_000)),
    ];
    import(&place, "tied", &tied);
    import(
        &place,
        "open",
        &[runs(300, A, Course::Lives), runs(20, A, Course::Open)],
    );
    import(
        &place,
        "tools",
        &[
            runs(300, A, Course::Lives),
            runs(30, A, Course::Tool(900_000)),
        ],
    );
    for (name, course) in [
        ("failing", Course::Fails(400_000)),
        ("aborted", Course::Aborted(400_000)),
    ] {
        import(
            &place,
            name,
            &[runs(300, A, Course::Lives), runs(40, A, course)],
        );
    }
    for (name, factor) in [("steady", 1), ("slower", 6)] {
        let spread: Vec<_> = (1..=100)
            .map(|k| runs(20, A, Course::Silent(k * 1_000 * factor)))
            .collect();
        import(&place, name, &spread);
    }
    // a run labelled as hung is in no rate of false kills
    import(&place, "none", &[runs(1, A, HUNG)]);
    place.write(
        "waits.csv",
        "kind,duration_ms,censored,run,role,model,tool\ntool,4000,false,r1,,,\ntool,5000,false,r2,,,\n",
    );
    place.run("import waits.csv --out waits --quiet").ok();
    // two waits, one of which may hold a host suspend, and a line that is none; and a run without any wait
    place.write(
        "marked.csv",
        "run,t_ms,kind,outcome,flags,wait_kind,wait_ms\nr1,0,run_start,,,,\nr1,1000,message_end,,8,pre_token,1000\n\
         r1,2000,message_end,,,pre_token,1000\nr1,3000,run_end,completed,,,\nr1,soon,status,,,,\n",
    );
    place.run("import marked.csv --out marked --quiet").ok();
    place.write(
        "bare.csv",
        "run,t_ms,kind,outcome\nr1,0,run_start,\nr1,5,status,\nr1,9,run_end,completed\n",
    );
    place.run("import bare.csv --out bare --quiet").ok();
    let policy = |name: &str, text: &str| {
        place.write(
            &format!("{name}.toml"),
            format!("preset = \"pi-desktop-0129\"\n{text}\n"),
        );
    };
    policy("plain", "");
    policy("w299", "idle = \"299s\"");
    policy("w310", "idle = \"310s\"");
    policy("w700", "idle = \"700s\"");
    policy("hasty", "idle = \"500ms\"");
    policy("off", "idle = \"off\"\ntotal = \"off\"");
    policy("wait200", "task_wait = \"200s\"");
    policy("endless", "total = \"off\"\n[pause]\ntool_limit = \"1h\"");
    policy("limited", "[pause]\ntool_limit = \"180s\"");
    place
}

/// Data, policy, rule, verdict and code of its (worst) check, exit code.
type Gate = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    i32,
);

const RATE: &str = "metric = \"false_kill_rate\"\nmax = \"1%\"";

#[rustfmt::skip]
const TABLE: &[Gate] = &[
    // a rate: 299 runs without a kill certify 1 %, 100 do not, 40 in 440 refute it
    ("good", "plain", RATE, "pass", None, 0),
    ("small", "plain", RATE, "inconclusive", Some("n_too_small"), 3),
    ("bad", "plain", RATE, "fail", Some("bound_broken"), 1),
    ("none", "plain", RATE, "no_data", Some("no_data"), 3),
    ("waits", "plain", RATE, "no_data", Some("not_in_source"), 3),
    ("open", "plain", RATE, "inconclusive", Some("n_too_small"), 3),
    ("tied", "plain", RATE, "inconclusive", Some("tie_rule"), 3),
    ("tied", "w299", RATE, "inconclusive", Some("n_too_small"), 3),
    ("tied", "w310", RATE, "pass", None, 0),
    // units: what is independent
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"20%\"\ncluster = \"run\"", "pass", None, 0),
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"20%\"\ncluster = \"session\"", "pass", None, 0),
    // a confidence of its own: 0.99^100 = 0.37
    ("small", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nconfidence = 0.6", "pass", None, 0),
    ("small", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nconfidence = 0.7", "inconclusive", Some("n_too_small"), 3),
    // strata: 332 runs certify 0.9 %, model-b has 300
    ("good", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nby = \"model\"", "pass", None, 0),
    ("good", "plain", "metric = \"false_kill_rate\"\nmax = \"0.9%\"\nby = \"model\"", "inconclusive", Some("stratum_undecided"), 3),
    ("good", "plain", "metric = \"false_kill_rate\"\nmax = \"0.9%\"\nby = \"model\"\nevery = false", "pass", None, 0),
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"20%\"\nby = \"model\"\nevery = false", "fail", Some("bound_broken"), 1),
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nstratum = { model = \"model-a\" }", "pass", None, 0),
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nstratum = { model = \"nobody\" }", "no_data", Some("no_data"), 3),
    // causes
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ncause = \"total_timeout\"", "pass", None, 0),
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ncause = \"idle_timeout\"", "fail", Some("bound_broken"), 1),
    ("tools", "limited", "metric = \"false_kill_rate\"\nmax = \"1%\"\ncause = \"tool_timeout\"", "fail", Some("bound_broken"), 1),
    ("tools", "plain", RATE, "pass", None, 0),
    // a sequence of windows
    ("good", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"60s..600s/60s\"", "pass", None, 0),
    ("good", "w310", "metric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"60s..600s/60s\"", "fail", Some("not_in_sequence"), 1),
    ("bad", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"60s..600s/60s\"", "fail", Some("bound_broken"), 1),
    // other rates
    ("good", "plain", "metric = \"kill_rate\"\nmax = \"10%\"", "pass", None, 0),
    ("good", "plain", "metric = \"kill_rate\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("bad", "plain", "metric = \"false_kills_per_hour\"\nmax = 100", "pass", None, 0),
    ("bad", "plain", "metric = \"false_kills_per_hour\"\nmax = 0.01", "fail", Some("bound_broken"), 1),
    // hangs: 20 of 20 show 86 % at least
    ("good", "plain", "metric = \"detected_share\"\nmin = \"80%\"", "pass", None, 0),
    ("good", "plain", "metric = \"detected_share\"\nmin = \"90%\"", "inconclusive", Some("n_too_small"), 3),
    ("good", "off", "metric = \"detected_share\"\nmin = \"80%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"detected_share\"\nmin = \"80%\"", "no_data", Some("no_data"), 3),
    // quantiles of the time to notice one: all of them 300 s
    ("good", "plain", "metric = \"detection_time\"\nquantile = \"p50\"\nmax = \"300s\"", "pass", None, 0),
    ("good", "plain", "metric = \"detection_time\"\nquantile = \"p50\"\nmax = \"299s\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"detection_time\"\nquantile = \"p50\"\nmin = \"300s\"", "pass", None, 0),
    ("good", "plain", "metric = \"detection_time\"\nquantile = \"p99\"\nmax = \"300s\"", "inconclusive", Some("n_too_small"), 3),
    ("small", "plain", "metric = \"detection_time\"\nquantile = \"p99\"\nmax = \"300s\"", "no_data", Some("no_data"), 3),
    // quantiles of waits, and of the idle clock
    ("good", "plain", "metric = \"wait.pre_token\"\nquantile = \"p50\"\nmax = \"60s\"", "pass", None, 0),
    ("good", "plain", "metric = \"wait.pre_token\"\nquantile = \"p50\"\nmax = \"500ms\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"wait.pre_token\"\nquantile = \"p99.9\"\nmax = \"60s\"", "inconclusive", Some("n_too_small"), 3),
    ("good", "plain", "metric = \"wait.human\"\nquantile = \"p50\"\nmax = \"60s\"", "no_data", Some("no_data"), 3),
    ("waits", "plain", "metric = \"wait.tool\"\nquantile = \"p50\"\nmax = \"60s\"", "inconclusive", Some("n_too_small"), 3),
    ("waits", "plain", "metric = \"idle_gap\"\nquantile = \"p50\"\nmax = \"60s\"", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"longest_idle_gap\"\nquantile = \"p50\"\nmax = \"300s\"", "pass", None, 0),
    ("bad", "plain", "metric = \"longest_idle_gap\"\nquantile = \"p90\"\nmax = \"300s\"", "inconclusive", Some("n_too_small"), 3),
    // losses: 40 of 440 runs lose 301 s; none of 100 bounds them by the rate and the budget of 6 h
    ("bad", "plain", "metric = \"work_lost\"\nmax = \"10m\"", "pass", None, 0),
    ("bad", "plain", "metric = \"work_lost\"\nmax = \"1s\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"work_lost\"\nmax = \"10m\"", "inconclusive", Some("n_too_small"), 3),
    ("small", "plain", "metric = \"work_lost\"\nmax = \"20m\"", "pass", None, 0),
    ("small", "endless", "metric = \"work_lost\"\nmax = \"20m\"", "inconclusive", Some("few_kills"), 3),
    ("none", "plain", "metric = \"work_lost\"\nmax = \"20m\"", "no_data", Some("no_data"), 3),
    ("good", "plain", "metric = \"slot_time_lost\"\nmax = \"10m\"", "pass", None, 0),
    ("good", "plain", "metric = \"slot_time_lost\"\nmax = \"1m\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"slot_time_lost\"\nmax = \"10m\"", "no_data", Some("no_data"), 3),
    // settlement, from the policy alone: 300 s of 600 s
    ("", "plain", "metric = \"settles_in_wait\"\nmin = \"50%\"", "pass", None, 0),
    ("", "plain", "metric = \"settles_in_wait\"\nmin = \"51%\"", "fail", Some("bound_broken"), 1),
    ("", "off", "metric = \"settles_in_wait\"\nmin = \"1%\"", "fail", Some("bound_broken"), 1),
    // settlement, by simulated parents: hangs of 300 s are known of in a wait of 600 s, not in one of 200 s
    ("good", "plain", "metric = \"known_in_wait\"\nmin = \"80%\"", "pass", None, 0),
    ("good", "wait200", "metric = \"known_in_wait\"\nmin = \"90%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"settled_in_wait\"\nmin = \"50%\"", "no_data", Some("no_data"), 3),
    ("waits", "plain", "metric = \"settled_in_wait\"\nmin = \"50%\"", "no_data", Some("not_in_source"), 3),
    // hangs: 20 of them, all told after 300 s; one side of 0 or 20 of 20 is 13.9 %
    ("good", "plain", "metric = \"missed_share\"\nmax = \"20%\"", "pass", None, 0),
    ("good", "plain", "metric = \"missed_share\"\nmax = \"10%\"", "inconclusive", Some("n_too_small"), 3),
    ("good", "off", "metric = \"missed_share\"\nmax = \"20%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"missed_share\"\nmax = \"20%\"", "no_data", Some("no_data"), 3),
    ("good", "plain", "metric = \"killed_early_share\"\nmax = \"20%\"", "pass", None, 0),
    ("good", "plain", "metric = \"killed_early_share\"\nmax = \"10%\"", "inconclusive", Some("n_too_small"), 3),
    ("good", "hasty", "metric = \"killed_early_share\"\nmax = \"20%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"killed_early_share\"\nmax = \"20%\"", "no_data", Some("no_data"), 3),
    ("good", "plain", "metric = \"mean_detection_time\"\nmax = \"300s\"", "pass", None, 0),
    ("good", "plain", "metric = \"mean_detection_time\"\nmax = \"299s\"", "fail", Some("bound_broken"), 1),
    ("good", "off", "metric = \"mean_detection_time\"\nmax = \"2h\"", "inconclusive", Some("few_kills"), 3),
    ("small", "plain", "metric = \"mean_detection_time\"\nmax = \"2h\"", "no_data", Some("no_data"), 3),
    // the policy alone: never undecided, never without data
    ("", "plain", "metric = \"detection_bound\"\nmax = \"300s\"", "pass", None, 0),
    ("", "plain", "metric = \"detection_bound\"\nmax = \"299s\"", "fail", Some("bound_broken"), 1),
    ("", "off", "metric = \"detection_bound\"\nmax = \"1d\"", "fail", Some("bound_broken"), 1),
    // kills that the record confirms
    ("good", "plain", "metric = \"true_kill_rate\"\nmax = \"1%\"", "pass", None, 0),
    ("small", "plain", "metric = \"true_kill_rate\"\nmax = \"1%\"", "inconclusive", Some("n_too_small"), 3),
    ("failing", "plain", "metric = \"true_kill_rate\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("failing", "plain", RATE, "pass", None, 0),
    ("none", "plain", "metric = \"true_kill_rate\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    // against another policy: 40 silences of 400 s lie between windows of 300 s and 700 s
    ("good", "plain", "metric = \"newly_killed_rate\"\nagainst = \"w700.toml\"\nmax = \"1%\"", "pass", None, 0),
    ("small", "plain", "metric = \"newly_killed_rate\"\nagainst = \"w700.toml\"\nmax = \"1%\"", "inconclusive", Some("n_too_small"), 3),
    ("bad", "plain", "metric = \"newly_killed_rate\"\nagainst = \"w700.toml\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("bad", "plain", "metric = \"newly_killed_rate\"\nagainst = \"w310.toml\"\nmax = \"1%\"", "pass", None, 0),
    ("bad", "plain", "metric = \"newly_killed_rate\"\nagainst = \"w700.toml\"\nmax = \"20%\"\nby = \"model\"", "fail", Some("bound_broken"), 1),
    ("none", "plain", "metric = \"newly_killed_rate\"\nagainst = \"w700.toml\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    ("bad", "w700", "metric = \"newly_spared_rate\"\nagainst = \"plain.toml\"\nmin = \"1%\"", "pass", None, 0),
    ("small", "w700", "metric = \"newly_spared_rate\"\nagainst = \"plain.toml\"\nmin = \"1%\"", "inconclusive", Some("n_too_small"), 3),
    ("bad", "w700", "metric = \"newly_spared_rate\"\nagainst = \"pi-desktop-0129\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("none", "w700", "metric = \"newly_spared_rate\"\nagainst = \"plain.toml\"\nmin = \"1%\"", "no_data", Some("no_data"), 3),
    ("good", "plain", "metric = \"newly_killed\"\nagainst = \"w700.toml\"\nmax = 0", "pass", None, 0),
    ("bad", "plain", "metric = \"newly_killed\"\nagainst = \"w700.toml\"\nmax = 39", "fail", Some("bound_broken"), 1),
    ("bad", "plain", "metric = \"newly_killed\"\nagainst = \"w700.toml\"\nmax = 40", "pass", None, 0),
    ("aborted", "plain", "metric = \"newly_killed\"\nagainst = \"w700.toml\"\nmax = 0", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"newly_killed\"\nagainst = \"w700.toml\"\nmax = 0", "no_data", Some("no_data"), 3),
    ("bad", "w700", "metric = \"newly_spared\"\nagainst = \"plain.toml\"\nmin = 40", "pass", None, 0),
    ("good", "w700", "metric = \"newly_spared\"\nagainst = \"plain.toml\"\nmin = 1", "fail", Some("bound_broken"), 1),
    ("aborted", "w700", "metric = \"newly_spared\"\nagainst = \"plain.toml\"\nmin = 1", "inconclusive", Some("n_too_small"), 3),
    ("none", "w700", "metric = \"newly_spared\"\nagainst = \"plain.toml\"\nmin = 1", "no_data", Some("no_data"), 3),
    // the watchdog as a failure detector: 40 mistakes in 440 runs of a silence or two
    ("bad", "plain", "metric = \"per_gap_rate\"\nmax = \"20%\"", "pass", None, 0),
    ("bad", "plain", "metric = \"per_gap_rate\"\nmax = \"0.5%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"per_gap_rate\"\nmax = \"0.1%\"", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"per_gap_rate\"\nmax = \"0.1%\"", "no_data", Some("no_data"), 3),
    ("good", "off", "metric = \"per_gap_rate\"\nmax = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"mistakes\"\nmax = 0", "pass", None, 0),
    ("bad", "plain", "metric = \"mistakes\"\nmax = 39", "fail", Some("bound_broken"), 1),
    ("none", "plain", "metric = \"mistakes\"\nmax = 0", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"mistakes_per_active_hour\"\nmax = 100", "pass", None, 0),
    ("bad", "plain", "metric = \"mistakes_per_active_hour\"\nmax = 1", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"mistakes_per_active_hour\"\nmax = 1", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"mistakes_per_active_hour\"\nmax = 1", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"mistake_recurrence\"\nmin = \"1m\"", "pass", None, 0),
    ("bad", "plain", "metric = \"mistake_recurrence\"\nmin = \"1h\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"mistake_recurrence\"\nmin = \"1h\"", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"mistake_recurrence\"\nmin = \"1h\"", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"query_accuracy\"\nmin = \"50%\"", "pass", None, 0),
    ("bad", "plain", "metric = \"query_accuracy\"\nmin = \"90%\"", "fail", Some("bound_broken"), 1),
    ("tied", "plain", "metric = \"query_accuracy\"\nmin = \"50%\"", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"query_accuracy\"\nmin = \"50%\"", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"observed_run_rate\"\nmax = \"20%\"", "pass", None, 0),
    ("bad", "plain", "metric = \"observed_run_rate\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"observed_run_rate\"\nmax = \"1%\"", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"observed_run_rate\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"compounded_run_rate\"\nmax = \"50%\"", "pass", None, 0),
    ("bad", "plain", "metric = \"compounded_run_rate\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("small", "plain", "metric = \"compounded_run_rate\"\nmax = \"1%\"", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"compounded_run_rate\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    // what it costs at a hang rate: 27 s of work and 3 s of slots in bad; in good what 700 runs without a kill leave open
    ("bad", "plain", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"1m\"", "pass", None, 0),
    ("bad", "plain", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"15s\"", "fail", Some("bound_broken"), 1),
    ("bad", "plain", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nrestart = \"10m\"\nmax = \"50s\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"30s\"", "inconclusive", Some("n_too_small"), 3),
    ("good", "endless", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"1h\"", "inconclusive", Some("few_kills"), 3),
    ("none", "plain", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"1h\"", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"cost_per_hang\"\nhang_rate = \"1%\"\nmax = \"2h\"", "pass", None, 0),
    ("bad", "plain", "metric = \"cost_per_hang\"\nhang_rate = \"1%\"\nmax = \"20m\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"cost_per_hang\"\nhang_rate = \"1%\"\nmax = \"1h\"", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"cost_per_hang\"\nhang_rate = \"1%\"\nmax = \"1h\"", "no_data", Some("no_data"), 3),
    ("bad", "off", "metric = \"cost_per_run\"\nhang_rate = \"1%\"\nmax = \"1d\"", "fail", Some("bound_broken"), 1),
    // simulated parents: what they do is the rule's; runs of 2 s against waits of 1 s
    ("good", "plain", "metric = \"stopped_rate\"\nmax = \"1%\"", "pass", None, 0),
    ("good", "plain", "metric = \"stopped_rate\"\nmax = \"1%\"\nparents = { wait = \"1s\", think = \"0s\", on_expiry = \"stop\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"stopped_rate\"\nmax = \"1%\"\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"stopped_rate\"\nmax = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"closed_rate\"\nmax = \"1%\"", "pass", None, 0),
    ("good", "plain", "metric = \"closed_rate\"\nmax = \"1%\"\nparents = { wait = \"1s\", think = \"0s\", on_expiry = \"close_turn\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"closed_rate\"\nmax = \"1%\"\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"closed_rate\"\nmax = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"misread_rate\"\nmax = \"1%\"", "pass", None, 0),
    ("good", "plain", "metric = \"misread_rate\"\nmax = \"1%\"\nparents = { wait = \"1s\", think = \"0s\", on_expiry = \"read_as_failure\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"misread_rate\"\nmax = \"1%\"\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"misread_rate\"\nmax = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"duplicates_per_run\"\nmax = 5\nparents = { wait = \"1s\", think = \"0s\", on_expiry = \"read_as_failure\" }", "pass", None, 0),
    ("good", "plain", "metric = \"duplicates_per_run\"\nmax = 0.1\nparents = { wait = \"1s\", think = \"0s\", on_expiry = \"read_as_failure\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"duplicates_per_run\"\nmax = 5\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"duplicates_per_run\"\nmax = 5", "no_data", Some("not_in_source"), 3),
    ("tools", "plain", "metric = \"waits_per_run\"\nmax = 2", "pass", None, 0),
    ("good", "plain", "metric = \"waits_per_run\"\nmax = 2\nparents = { wait = \"1s\", think = \"0s\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"waits_per_run\"\nmax = 2\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"waits_per_run\"\nmax = 2", "no_data", Some("not_in_source"), 3),
    ("tools", "plain", "metric = \"expiries_per_run\"\nmax = 2", "pass", None, 0),
    ("good", "plain", "metric = \"expiries_per_run\"\nmax = 0.5\nparents = { wait = \"1s\", think = \"0s\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"expiries_per_run\"\nmax = 2\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"expiries_per_run\"\nmax = 2", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"blocked_share\"\nmax = \"99%\"", "pass", None, 0),
    ("good", "plain", "metric = \"blocked_share\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"blocked_share\"\nmax = \"99%\"\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"blocked_share\"\nmax = \"99%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"slots_held_share\"\nmin = \"1%\"", "pass", None, 0),
    ("good", "plain", "metric = \"slots_held_share\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"slots_held_share\"\nmin = \"1%\"\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"slots_held_share\"\nmin = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"simulated_false_kill_rate\"\nmax = \"1%\"", "pass", None, 0),
    ("bad", "plain", "metric = \"simulated_false_kill_rate\"\nmax = \"1%\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"simulated_false_kill_rate\"\nmax = \"1%\"\nconfidence = 0.99", "inconclusive", Some("level_too_high"), 3),
    ("waits", "plain", "metric = \"simulated_false_kill_rate\"\nmax = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"known_within_2_waits\"\nmin = \"80%\"", "pass", None, 0),
    ("good", "plain", "metric = \"known_within_2_waits\"\nmin = \"80%\"\nparents = { wait = \"100s\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"known_within_2_waits\"\nmin = \"95%\"", "inconclusive", Some("n_too_small"), 3),
    ("small", "plain", "metric = \"known_within_2_waits\"\nmin = \"80%\"", "no_data", Some("no_data"), 3),
    ("good", "plain", "metric = \"known_within_3_waits\"\nmin = \"80%\"", "pass", None, 0),
    ("good", "plain", "metric = \"known_within_3_waits\"\nmin = \"80%\"\nparents = { wait = \"50s\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"known_within_3_waits\"\nmin = \"95%\"", "inconclusive", Some("n_too_small"), 3),
    ("small", "plain", "metric = \"known_within_3_waits\"\nmin = \"80%\"", "no_data", Some("no_data"), 3),
    // where no run is labelled as hung, the rule says how many are made to
    ("bad", "plain", "metric = \"known_in_wait\"\nmin = \"50%\"", "no_data", Some("no_data"), 3),
    ("bad", "plain", "metric = \"known_in_wait\"\nmin = \"50%\"\nparents = { hang_rate = \"20%\", think = \"0s\", mode = \"all\", tasks = 1 }", "pass", None, 0),
    ("good", "plain", "metric = \"hang_to_knowledge\"\nquantile = \"p50\"\nmax = \"500s\"", "pass", None, 0),
    ("good", "plain", "metric = \"hang_to_knowledge\"\nquantile = \"p50\"\nmax = \"200s\"", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"hang_to_knowledge\"\nquantile = \"p99\"\nmax = \"500s\"", "inconclusive", Some("n_too_small"), 3),
    ("small", "plain", "metric = \"hang_to_knowledge\"\nquantile = \"p50\"\nmax = \"500s\"", "no_data", Some("no_data"), 3),
    ("good", "plain", "metric = \"mean_hang_to_knowledge\"\nmax = \"1h\"\nparents = { wait = \"100s\", think = \"2m\" }", "pass", None, 0),
    // the labelled hangs are all known of after 300 s: nothing tells how such times are spread
    ("good", "plain", "metric = \"mean_hang_to_knowledge\"\nmax = \"500s\"", "inconclusive", Some("no_spread"), 3),
    ("good", "plain", "metric = \"mean_hang_to_knowledge\"\nmax = \"200s\"\nparents = { wait = \"100s\", think = \"2m\" }", "fail", Some("bound_broken"), 1),
    // without a watchdog a parent never knows: at least until the end of the observation
    ("good", "off", "metric = \"mean_hang_to_knowledge\"\nmax = \"30d\"", "inconclusive", Some("unended"), 3),
    ("small", "plain", "metric = \"mean_hang_to_knowledge\"\nmax = \"500s\"", "no_data", Some("no_data"), 3),
    // the simulation's own numbers, and how long and with whom it is observed
    ("good", "plain", "metric = \"simulated.hangs_never_known\"\nmax = 0", "pass", None, 0),
    ("good", "plain", "metric = \"simulated.hangs_never_known\"\nmax = 0\nparents = { horizon = \"200s\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"simulated.slot_hung_ms\"\nmax = \"20h\"", "pass", None, 0),
    ("good", "plain", "metric = \"simulated.refused_spawns\"\nmax = 0\nparents = { cap = 2 }", "fail", Some("bound_broken"), 1),
    ("waits", "plain", "metric = \"simulated.retries\"\nmax = 0", "no_data", Some("not_in_source"), 3),
    // what the telemetry is worth
    ("good", "plain", "metric = \"runs\"\nmin = 300", "pass", None, 0),
    ("small", "plain", "metric = \"runs\"\nmin = 300", "inconclusive", Some("bound_broken"), 3),
    ("none", "plain", "metric = \"runs\"\nmin = 300", "inconclusive", Some("bound_broken"), 3),
    ("waits", "plain", "metric = \"runs\"\nmin = 300", "no_data", Some("not_in_source"), 3),
    ("good", "plain", "metric = \"hung_runs\"\nmin = 20", "pass", None, 0),
    ("small", "plain", "metric = \"hung_runs\"\nmin = 1", "inconclusive", Some("bound_broken"), 3),
    ("good", "plain", "metric = \"sessions\"\nmin = 500", "pass", None, 0),
    ("tied", "plain", "metric = \"ties\"\nmax = 0", "inconclusive", Some("bound_broken"), 3),
    ("good", "plain", "metric = \"unresolved_share\"\nmax = \"1%\"", "pass", None, 0),
    ("open", "plain", "metric = \"unresolved_share\"\nmax = \"1%\"", "inconclusive", Some("bound_broken"), 3),
    ("good", "plain", "metric = \"flagged_share\"\nmax = \"1%\"", "pass", None, 0),
    ("good", "plain", "metric = \"malformed_share\"\nmax = \"1%\"", "pass", None, 0),
    // what of these the rows above leave out
    ("small", "plain", "metric = \"false_kills_per_hour\"\nmax = 1", "inconclusive", Some("n_too_small"), 3),
    ("none", "plain", "metric = \"false_kills_per_hour\"\nmax = 1", "no_data", Some("no_data"), 3),
    ("small", "plain", "metric = \"kill_rate\"\nmax = \"1%\"", "inconclusive", Some("n_too_small"), 3),
    ("waits", "plain", "metric = \"kill_rate\"\nmax = \"1%\"", "no_data", Some("not_in_source"), 3),
    ("good", "off", "metric = \"slot_time_lost\"\nmax = \"2h\"", "inconclusive", Some("few_kills"), 3),
    ("good", "plain", "metric = \"known_in_wait\"\nmin = \"95%\"", "inconclusive", Some("n_too_small"), 3),
    // hangs at 1 s lie inside the first wait of parents that wait at once
    ("good", "plain", "metric = \"settled_in_wait\"\nmin = \"80%\"\nparents = { think = \"0s\" }", "pass", None, 0),
    ("good", "plain", "metric = \"settled_in_wait\"\nmin = \"95%\"\nparents = { think = \"0s\" }", "inconclusive", Some("n_too_small"), 3),
    ("good", "plain", "metric = \"settled_in_wait\"\nmin = \"80%\"\nparents = { think = \"0s\", wait = \"100s\" }", "fail", Some("bound_broken"), 1),
    ("good", "plain", "metric = \"ties\"\nmax = 0", "pass", None, 0),
    ("waits", "plain", "metric = \"ties\"\nmax = 0", "no_data", Some("not_in_source"), 3),
    ("waits", "plain", "metric = \"hung_runs\"\nmin = 1", "no_data", Some("not_in_source"), 3),
    ("small", "plain", "metric = \"sessions\"\nmin = 500", "inconclusive", Some("bound_broken"), 3),
    ("waits", "plain", "metric = \"sessions\"\nmin = 500", "no_data", Some("not_in_source"), 3),
    ("none", "plain", "metric = \"unresolved_share\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    ("marked", "plain", "metric = \"flagged_share\"\nmax = \"1%\"", "inconclusive", Some("bound_broken"), 3),
    ("bare", "plain", "metric = \"flagged_share\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    ("marked", "plain", "metric = \"malformed_share\"\nmax = \"1%\"", "inconclusive", Some("bound_broken"), 3),
    ("", "plain", "metric = \"malformed_share\"\nmax = \"1%\"", "no_data", Some("no_data"), 3),
    // the policy alone
    ("", "plain", "check = \"all\"", "pass", None, 0),
    ("", "w700", "check = \"idle-not-below-wait\"", "fail", Some("finding_new"), 1),
    ("", "w700", "check = \"idle-not-below-wait\"\nknown = \"idle-not-below-wait\"", "pass", None, 0),
    ("", "plain", "check = \"all\"\nknown = [\"idle-not-below-wait\"]", "fail", Some("finding_vanished"), 1),
    ("", "plain", "key = \"idle.window\"\nbelow = \"task_wait.timeout\"", "pass", None, 0),
    ("", "w700", "key = \"idle.window\"\nbelow = \"task_wait.timeout\"", "fail", Some("bound_broken"), 1),
    ("", "off", "key = \"idle.window\"\nmax = \"599s\"", "fail", Some("bound_broken"), 1),
    ("", "plain", "same_as = \"pi-desktop-0129\"", "pass", None, 0),
    ("", "w310", "same_as = \"pi-desktop-0129\"", "fail", Some("policy_differs"), 1),
    ("", "w310", "same_as = \"plain.toml\"\nexcept = \"idle\"", "pass", None, 0),
    // a baseline that is not given
    ("good", "plain", "drift = \"all\"", "no_data", Some("no_baseline"), 3),
    ("good", "plain", "metric = \"false_kill_rate\"\nmax_increase = \"1%\"", "no_data", Some("no_baseline"), 3),
    // against a baseline
    ("steady --baseline steady", "plain", "drift = \"idle_gap\"", "pass", None, 0),
    ("slower --baseline steady", "plain", "drift = \"idle_gap\"", "inconclusive", Some("moved"), 3),
    ("slower --baseline steady", "plain", "drift = \"idle_gap\"\nmoved = \"fail\"", "fail", Some("moved"), 1),
    // what the longest gaps of the baseline reached, none does any more
    ("small --baseline bad", "plain", "drift = \"idle_gap\"\nmoved = \"fail\"", "fail", Some("moved"), 1),
    // one long gap in 301 runs
    ("tied --baseline tied", "plain", "drift = \"idle_gap\"\nmoved = \"fail\"", "inconclusive", Some("move_undecided"), 3),
    ("small --baseline small", "plain", "drift = \"wait.human\"", "no_data", Some("no_data"), 3),
    ("good --baseline good", "plain", "metric = \"false_kill_rate\"\nmax_increase = \"1%\"", "pass", None, 0),
    ("good --baseline good", "plain", "metric = \"false_kill_rate\"\nmax_increase = \"0.1%\"", "inconclusive", Some("n_too_small"), 3),
    ("bad --baseline good", "plain", "metric = \"false_kill_rate\"\nmax_increase = \"1%\"", "fail", Some("bound_broken"), 1),
    ("good --baseline bad", "plain", "metric = \"false_kill_rate\"\nmax_decrease = \"1%\"", "fail", Some("bound_broken"), 1),
    ("good --baseline none", "plain", "metric = \"false_kill_rate\"\nmax_increase = \"1%\"", "no_data", Some("no_data"), 3),
    ("bad --baseline bad", "plain", "metric = \"false_kill_rate\"\nmax_ratio = 2", "pass", None, 0),
    ("bad --baseline bad", "plain", "metric = \"false_kill_rate\"\nmax_ratio = 1.5", "inconclusive", Some("n_too_small"), 3),
    ("bad --baseline tied", "plain", "metric = \"false_kill_rate\"\nmax_ratio = 2", "fail", Some("bound_broken"), 1),
    ("bad --baseline bad", "plain", "metric = \"work_lost\"\nmax_ratio = 3", "pass", None, 0),
    ("slower --baseline steady", "plain", "metric = \"idle_gap\"\nquantile = \"p90\"\nmax_increase = \"1s\"", "fail", Some("bound_broken"), 1),
    ("good --baseline good", "plain", "metric = \"settles_in_wait\"\nmin_ratio = 1", "pass", None, 0),
    ("good --baseline good", "plain", "metric = \"runs\"\nmin_ratio = 0.5", "pass", None, 0),
    // what inconclusive counts as; nothing turns missing data into a pass
    ("small", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ninconclusive = \"pass\"", "inconclusive", Some("n_too_small"), 0),
    ("small", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ninconclusive = \"fail\"", "inconclusive", Some("n_too_small"), 1),
    ("none", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ninconclusive = \"pass\"", "no_data", Some("no_data"), 3),
    ("none", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ninconclusive = \"fail\"", "no_data", Some("no_data"), 1),
    ("small --inconclusive pass", "plain", RATE, "inconclusive", Some("n_too_small"), 0),
    ("small --inconclusive fail", "plain", RATE, "inconclusive", Some("n_too_small"), 1),
    ("small --inconclusive pass", "plain", "metric = \"false_kill_rate\"\nmax = \"1%\"\ninconclusive = \"report\"", "inconclusive", Some("n_too_small"), 3),
    ("bad --inconclusive pass", "plain", RATE, "fail", Some("bound_broken"), 1),
];

#[test]
fn every_gate_of_the_table() {
    let place = place();
    let mut wrong = Vec::new();
    for (data, policy, rule, verdict, code, exit) in TABLE {
        let (result, found_exit) = gate(
            &place,
            &format!("{data} --policy {policy}.toml"),
            &format!("[[rule]]\n{rule}\n"),
        );
        let checks = result["checks"].as_array().unwrap();
        let rank = |check: &&serde_json::Value| {
            let order = ["pass", "no_data", "inconclusive", "fail"];
            order.iter().position(|known| check["verdict"] == *known)
        };
        let worst = checks.iter().max_by_key(rank).unwrap();
        let found = (
            worst["verdict"].as_str().unwrap(),
            worst["code"].as_str(),
            found_exit,
        );
        if found != (verdict, *code, *exit) {
            wrong.push(format!(
                "{data} {policy}: {rule:?}\n  expected {:?}, found {found:?}: {}",
                (verdict, code, exit),
                worst["message"]
            ));
        }
        for check in checks {
            let ran = check["verdict"] != "no_data";
            assert_eq!(check["ran"], ran, "{rule}");
            assert_eq!(
                check["code"].is_null(),
                check["verdict"] == "pass",
                "{rule}"
            );
        }
    }
    assert!(TABLE.len() >= 40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every metric that a rule may name, with every verdict that it can come to.
#[test]
fn the_table_holds_every_verdict_of_every_metric() {
    let place = Place::new();
    let schema = crate::json(&place.run("gate schema").ok());
    let metrics = schema["$defs"]["rule"]["oneOf"][0]["properties"]["metric"]["oneOf"]
        .as_array()
        .unwrap();
    let mut lines_of_silences = 0;
    let mut missing = Vec::new();
    let found = |wanted: &dyn Fn(&str) -> bool, verdict: &str| {
        TABLE.iter().any(|(_, _, rule, found, ..)| {
            let subject = rule.split('"').nth(1).unwrap();
            *found == verdict && rule.starts_with("metric") && wanted(subject)
        })
    };
    for metric in metrics {
        let name = metric["const"].as_str().unwrap();
        let is_line = name.starts_with("wait.") || name.contains("idle_gap");
        let is_number = name.starts_with("simulated.");
        lines_of_silences += usize::from(is_line || is_number);
        let verdicts: &[&str] = match name {
            // from the policy alone
            "detection_bound" | "settles_in_wait" => &["pass", "fail"],
            // telemetry that is too thin accuses no policy
            "flagged_share" | "hung_runs" | "malformed_share" | "runs" | "sessions" | "ties"
            | "unresolved_share" => &["pass", "inconclusive", "no_data"],
            // counted, not estimated, and nothing is in doubt
            "mistakes" => &["pass", "fail", "no_data"],
            _ if is_number => &["pass", "fail", "no_data"],
            _ => &["pass", "fail", "inconclusive", "no_data"],
        };
        for verdict in verdicts {
            let of_name = |subject: &str| {
                let line = subject.starts_with("wait.") || subject.contains("idle_gap");
                let number = subject.starts_with("simulated.");
                subject == name || is_line && line || is_number && number
            };
            if !found(&of_name, verdict) {
                missing.push(format!("{name}: {verdict}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(metrics.len() - lines_of_silences, 48);
    let of_kind = |kind: &str, verdict: &str| {
        TABLE
            .iter()
            .any(|(_, _, rule, found, ..)| rule.starts_with(kind) && *found == verdict)
    };
    for kind in ["check", "key", "same_as"] {
        assert!(of_kind(kind, "pass") && of_kind(kind, "fail"), "{kind}");
    }
    for verdict in ["pass", "fail", "inconclusive", "no_data"] {
        assert!(of_kind("drift", verdict), "{verdict}");
    }
}

/// A rule's own word goes before the document's, and that before the option.
#[test]
fn who_says_what_inconclusive_counts_as() {
    let place = place();
    for (document, rule, option, code) in [
        ("", "", "", 3),
        ("pass", "", "", 0),
        ("fail", "", "", 1),
        ("fail", "pass", "", 0),
        ("pass", "report", "", 3),
        ("pass", "", " --inconclusive fail", 0),
        ("fail", "", " --inconclusive pass", 1),
        ("", "fail", " --inconclusive pass", 1),
        ("", "", " --inconclusive pass", 0),
        ("report", "", " --inconclusive fail", 1),
    ] {
        let says = |word: &str| match word {
            "" => String::new(),
            word => format!("inconclusive = \"{word}\"\n"),
        };
        let rules = format!("{}[[rule]]\n{RATE}\n{}", says(document), says(rule));
        let (result, found) = gate(
            &place,
            &format!("small --policy plain.toml{option}"),
            &rules,
        );
        assert_eq!(found, code, "{document} {rule}{option}");
        assert_eq!(result["checks"][0]["verdict"], "inconclusive");
    }
}

#[test]
fn the_worst_verdict_decides() {
    let place = place();
    let rule =
        |amount: &str| format!("[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"{amount}\"\n");
    let missing = "[[rule]]\nmetric = \"detected_share\"\nmin = \"90%\"\n";
    // 40 in 440: fails at 1 %, undecided at 9 %, passes at 20 %
    for (rules, verdict, exit) in [
        (vec![rule("20%")], "pass", 0),
        (vec![rule("20%"), missing.to_owned()], "no_data", 3),
        (
            vec![rule("20%"), missing.to_owned(), rule("9%")],
            "inconclusive",
            3,
        ),
        (
            vec![missing.to_owned(), rule("9%"), rule("1%"), rule("20%")],
            "fail",
            1,
        ),
    ] {
        let (result, code) = gate(&place, "bad --policy plain.toml", &rules.concat());
        assert_eq!((result["verdict"].as_str().unwrap(), code), (verdict, exit));
        assert_eq!(result["checks"].as_array().unwrap().len(), rules.len());
    }
}

#[test]
fn what_does_not_read_is_an_error_even_beside_a_failure() {
    let place = place();
    let rules = format!("[[rule]]\n{RATE}\n");
    place.write("rules.toml", &rules);
    place.write(
        "broken.toml",
        format!("{rules}[[rule]]\nmetric = \"false_kil_rate\"\nmax = \"1%\"\n"),
    );
    for (line, expected) in [
        (
            "bad --policy plain.toml --rules broken.toml",
            "broken.toml:5: unknown metric false_kil_rate, did you mean false_kill_rate?",
        ),
        (
            "bad --policy plain.toml --rules gone.toml",
            "cannot read rules file gone.toml",
        ),
        (
            "bad --policy gone.toml --rules rules.toml",
            "cannot read policy file gone.toml",
        ),
        ("gone --policy plain.toml --rules rules.toml", "gone"),
        (
            "bad --policy plain.toml --rules rules.toml --baseline gone",
            "gone",
        ),
        (
            "bad --policy plain.toml --rules rules.toml --format junti",
            "--format junti: expected one of text, json, junit, github, summary, did you mean junit?",
        ),
        (
            "bad --policy plain.toml --rules rules.toml --format json --format text",
            "stdout has its format already",
        ),
        (
            "bad --policy plain.toml --rules rules.toml --format json=no/such/folder.json",
            "cannot write no/such/folder.json",
        ),
        ("bad --policy plain.toml", "--rules"),
        (
            "bad --policy plain.toml --rules rules.toml --inconclusive maybe",
            "maybe",
        ),
    ] {
        let error = place.run(&format!("gate {line} --quiet")).error();
        assert!(error.contains(expected), "{line}\n{error}");
    }
}

/// A rules document written by `gate init` passes at once, and is about the policy and data it was written for.
#[test]
fn what_init_writes_holds() {
    let place = place();
    for (data, policy) in [
        ("good", "plain"),
        ("bad", "w700"),
        ("small", "plain"),
        ("none", "plain"),
        ("waits", "plain"),
    ] {
        let out = format!("init-{data}.toml");
        place
            .run(&format!(
                "gate init {data} --policy {policy}.toml --out {out} --quiet"
            ))
            .ok();
        let done = place.run(&format!(
            "gate {data} --policy {policy}.toml --rules {out} --quiet"
        ));
        let written = String::from_utf8(place.read(&out)).unwrap();
        assert_eq!(done.code, Some(0), "{data}\n{}\n{written}", done.stdout);
        let again = place.run(&format!(
            "gate init {data} --policy {policy}.toml --out {out}"
        ));
        assert!(again.error().contains("exists already"));
    }
    let text = |name: &str| String::from_utf8(place.read(name)).unwrap();
    // prose is broken into lines of comments
    let prose = |name: &str| {
        let words: Vec<String> = text(name).split_whitespace().map(str::to_owned).collect();
        words.join(" ").replace(" # ", " ")
    };
    assert!(
        text("init-good.toml").contains("[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"0.5%\"")
    );
    assert!(text("init-small.toml").contains("# metric = \"false_kill_rate\"\n# max = \"2%\""));
    assert!(prose("init-small.toml").contains("needs 149 with as many (49 more)"));
    assert!(text("init-bad.toml").contains("known = [\"idle-not-below-wait\"]"));
    // without a rule on false kills the document says so, and so does the command
    let why = "no rule on false kills could be written";
    for (data, policy, guarded) in [
        ("good", "plain", true),
        ("small", "plain", true),
        ("bad", "plain", false),
        ("none", "plain", false),
        ("waits", "plain", false),
    ] {
        let done = place.run(&format!("gate init {data} --policy {policy}.toml"));
        let done = done.exits(0);
        assert_eq!(
            !done.stderr.contains(&format!("warning: {why}")),
            guarded,
            "{data}\n{}",
            done.stderr
        );
        let words: Vec<&str> = done.stdout.split_whitespace().collect();
        let warned = words
            .join(" ")
            .replace(" # ", " ")
            .contains(&format!("WARNING: {why}"));
        assert_eq!(!warned, guarded, "{data}\n{}", done.stdout);
    }
}

/// Without logs or events: the same verdicts, figures and window from a summary alone.
#[test]
fn a_summary_says_what_its_events_say() {
    let place = place();
    let rules = |window: &str| {
        format!(
            "[[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\nby = \"model\"\n\
             [[rule]]\nmetric = \"false_kill_rate\"\nmax = \"1%\"\nsequence = \"60s,{window},600s\"\n\
             [[rule]]\nmetric = \"detected_share\"\nmin = \"80%\"\n\
             [[rule]]\nmetric = \"detection_time\"\nquantile = \"p50\"\nmax = \"{window}\"\n\
             [[rule]]\nmetric = \"work_lost\"\nmax = \"10s\"\n\
             [[rule]]\nmetric = \"flagged_share\"\nmax = \"1%\"\n\
             [[rule]]\nmetric = \"unresolved_share\"\nmax = \"1%\"\n"
        )
    };
    for data in ["good", "bad", "tied", "open", "tools"] {
        let line =
            format!("gate summarise {data} --policy plain.toml --out {data}.summary --quiet");
        place.run(&line).ok();
        for (policy, window) in [("plain", "300s"), ("w310", "310s"), ("w299", "299s")] {
            let of = |source: &str| {
                let (mut result, code) = gate(
                    &place,
                    &format!("{source} --policy {policy}.toml"),
                    &rules(window),
                );
                let checks = result["checks"].take();
                (checks, result["answer"].take(), code)
            };
            assert_eq!(of(data), of(&format!("{data}.summary")), "{data} {policy}");
        }
    }
    // what is not in a summary is not made up
    let (result, code) = gate(
        &place,
        "good.summary --policy plain.toml",
        "[[rule]]\nmetric = \"wait.tool\"\nquantile = \"p50\"\nmax = \"1m\"\n",
    );
    assert_eq!(
        (result["checks"][0]["code"].as_str(), code),
        (Some("not_in_source"), 3)
    );
    // another structure needs the events
    place.write(
        "other.toml",
        "preset = \"pi-desktop-0129\"\n[pause]\ntool = \"none\"\n",
    );
    place.write("rules.toml", format!("[[rule]]\n{RATE}\n"));
    let error = place
        .run("gate good.summary --policy other.toml --rules rules.toml --quiet")
        .error();
    assert!(
        error.contains(
            "good.summary, made of good under plain.toml, does not answer other.toml: it does not hold what the policy is answered from"
        ),
        "{error}"
    );
    let bytes = place.read("good.summary");
    place.write("cut.summary", &bytes[..bytes.len() - 9]);
    let error = place
        .run("gate cut.summary --policy plain.toml --rules rules.toml --quiet")
        .error();
    assert!(error.contains("cut.summary"), "{error}");
}
