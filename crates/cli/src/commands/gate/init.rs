//! `policysim gate init`: a commented rules document for a policy and its telemetry.

use anyhow::{Result, bail};
use policysim_policy::{check, duration};
use policysim_report::gate::observed;
use policysim_report::table::one_line;
use policysim_report::units::wrapped_at;
use policysim_sim::gate::{
    Check, Evidence, Needs, Origin, Parents, Rules, Verdict, evaluate, figures_of,
};
use policysim_sim::stats::{Level, runs_needed};
use policysim_sim::strata::StratumKey;

use super::args::InitArgs;
use crate::args::GlobalArgs;
use crate::exit::ExitStatus;
use crate::{data, output, policy_file, rules_file};

/// Bounds on the false-kill rate, from the strictest; what they certify needs so many runs.
const RATES: [(&str, f64); 5] = [
    ("0.1%", 0.001),
    ("0.5%", 0.005),
    ("1%", 0.01),
    ("2%", 0.02),
    ("5%", 0.05),
];
/// The width of comments.
const WIDTH: usize = 100;

/// Writes the document.
pub(super) fn run(args: &InitArgs, global: &GlobalArgs) -> Result<ExitStatus> {
    if let Some(out) = &args.out
        && out.exists()
    {
        bail!(
            "{} exists already: name another file, or move it away",
            out.display()
        );
    }
    let policy = policy_file::load_and_tell(&args.policy, global)?;
    let loaded = data::load(&args.data, global)?;
    let needs = Needs {
        data: true,
        replay: true,
        parents: vec![Parents::default()],
        silences: true,
        ..Needs::default()
    };
    let origin = Origin {
        lines: loaded.header.lines,
        malformed: loaded.header.malformed_lines,
        samples_only: loaded.samples_only,
        recorded_idle: None,
        seed: global.seed,
    };
    let figures = figures_of(&loaded.fleet, &policy.policy, &needs, origin);
    let evidence = Evidence {
        policy: &policy.policy,
        now: &figures,
        baseline: None,
        seed: global.seed,
    };
    let (text, unguarded) = document(&policy, evidence, &loaded.header.name);
    match &args.out {
        Some(out) => {
            output::write_file(out, text.as_bytes())?;
            output::say(global.quiet, &format!("wrote {}", out.display()));
        }
        None => output::print(&text)?,
    }
    if let Some(why) = unguarded {
        output::say(global.quiet, &format!("warning: {why}"));
    }
    Ok(ExitStatus::Success)
}

/// A claim in its versions from the strictest to the loosest, and what it is for.
struct Claim {
    about: String,
    versions: Vec<String>,
    /// It bounds the false kills of all runs.
    on_false_kills: bool,
}

impl Claim {
    fn new(about: impl Into<String>, versions: impl IntoIterator<Item = String>) -> Self {
        Self {
            about: about.into(),
            versions: versions.into_iter().collect(),
            on_false_kills: false,
        }
    }
}

/// `metric = …` with each bound.
fn bounded(head: &str, bound: &str, amounts: &[&str]) -> Vec<String> {
    let version = |amount: &&str| format!("{head}\n{bound} = \"{amount}\"");
    amounts.iter().map(version).collect()
}

/// The document, and what is to be said where none of its rules is on false kills.
fn document(
    policy: &policy_file::Loaded,
    evidence: Evidence<'_>,
    data: &str,
) -> (String, Option<String>) {
    let mut out = format!(
        "# Rules of `policysim gate` for {} on {}.\n#\n{}\n\n",
        one_line(&policy.name),
        one_line(data),
        comment(
            "Every rule below holds now. Commented ones do not, or these telemetry cannot decide them yet; what was \
             observed stands beside them. A limit is one-sided at the confidence; what the record cannot tell counts \
             against a pass. `policysim gate schema` describes every key."
        )
    );
    out.push_str("confidence = 0.95\n# What inconclusive checks count as: report (exit 3), pass or fail.\ninconclusive = \"report\"\n");
    let mut rules = String::new();
    let mut guarded = false;
    for claim in claims(policy, evidence) {
        let (text, holds) = decided(&claim, evidence);
        guarded |= holds && claim.on_false_kills;
        rules.push_str(&format!("\n{}\n{text}", comment(&claim.about)));
    }
    let unguarded = (!guarded).then(|| {
        let (loosest, _) = RATES[RATES.len() - 1];
        format!(
            "no rule on false kills could be written: these telemetry do not show that at most {loosest} of runs are killed though they live, so that this gate lets any window pass that the other rules allow"
        )
    });
    if let Some(why) = &unguarded {
        out.push_str(&format!("\n{}\n", comment(&format!("WARNING: {why}."))));
    }
    out.push_str(&rules);
    out.push('\n');
    out.push_str(&comment(
        "With --baseline DATASET, telemetry and figures can be held to what they were. Absolute and relative \
         limits are rules of their own.",
    ));
    out.push_str(BASELINE);
    (out, unguarded)
}

/// Rules that need a baseline.
const BASELINE: &str = "
# [[rule]]
# drift = \"all\"
#
# [[rule]]
# metric = \"false_kill_rate\"
# max_increase = \"0.5%\"
#
# [[rule]]
# metric = \"work_lost\"
# max_ratio = 1.5
";

fn comment(text: &str) -> String {
    let lines = wrapped_at(text, WIDTH);
    let lines: Vec<String> = lines
        .lines()
        .map(|line| format!("# {}", line.trim()))
        .collect();
    lines.join("\n")
}

/// The strictest version that holds as a rule, with whether there is one; the one before it as a comment with what was
/// observed.
fn decided(claim: &Claim, evidence: Evidence<'_>) -> (String, bool) {
    let mut out = String::new();
    let mut refused: Option<(&String, Vec<Check>)> = None;
    let mut held = None;
    for version in &claim.versions {
        let Ok(rules) = read(version) else { continue };
        let gate = evaluate(&rules, evidence);
        if gate.verdict() == Verdict::Pass {
            held = Some(version);
            break;
        }
        refused = Some((version, gate.checks));
    }
    if let Some((version, checks)) = refused {
        for check in checks.iter().filter(|check| check.verdict != Verdict::Pass) {
            out.push_str(&comment(&format!("{}: {}", check.verdict, observed(check))));
            out.push('\n');
        }
        let lines = format!("[[rule]]\n{version}");
        for line in lines.lines() {
            out.push_str(&format!("# {line}\n"));
        }
    }
    if let Some(version) = held {
        out.push_str(&format!("[[rule]]\n{version}\n"));
    }
    (out, held.is_some())
}

fn read(version: &str) -> Result<Rules> {
    rules_file::read(&format!("[[rule]]\n{version}"))
}

fn claims(policy: &policy_file::Loaded, evidence: Evidence<'_>) -> Vec<Claim> {
    let mut claims = vec![contradictions(policy)];
    if let Some(preset) = policy.preset.filter(|preset| policy.name == *preset) {
        claims.push(Claim::new(
            "The shipped default is what it was.",
            [format!("same_as = \"{preset}\"")],
        ));
    }
    let rates = RATES.map(|(text, _)| text);
    claims.push(Claim {
        on_false_kills: true,
        ..Claim::new(
            "Runs that the policy kills though they live.",
            bounded("metric = \"false_kill_rate\"", "max", &rates),
        )
    });
    for (key, groups) in StratumKey::ALL.into_iter().zip(
        evidence
            .now
            .outcomes
            .iter()
            .flat_map(|outcomes| &outcomes.groups),
    ) {
        if key != StratumKey::Source && groups.len() > 1 {
            let name = key.name();
            claims.push(Claim::new(
                format!("The same in every {name}."),
                bounded(
                    &format!("metric = \"false_kill_rate\"\nby = \"{name}\""),
                    "max",
                    &rates,
                ),
            ));
        }
    }
    claims.push(Claim::new(
        "Hangs that it notices, and how soon.",
        bounded("metric = \"detected_share\"", "min", &["99%", "95%", "90%"]),
    ));
    let window = policy.policy.idle.window.map(duration::show);
    let total = policy.policy.total.budget.map(duration::show);
    for quantile in ["p50", "p90"] {
        let limits: Vec<&str> = window.iter().chain(&total).map(String::as_str).collect();
        claims.push(Claim::new(
            format!("The {quantile} of the time from last activity to firing."),
            bounded(
                &format!("metric = \"detection_time\"\nquantile = \"{quantile}\""),
                "max",
                &limits,
            ),
        ));
    }
    claims.push(Claim::new(
        "Hangs whose outcome reaches the parent in the wait in which they begin.",
        bounded(
            "metric = \"settles_in_wait\"",
            "min",
            &[
                "90%", "80%", "70%", "60%", "50%", "40%", "30%", "20%", "10%",
            ],
        ),
    ));
    claims.push(Claim::new(
        "Hangs beginning inside a wait that settle before it is over, as parents are simulated to wait.",
        bounded("metric = \"settled_in_wait\"", "min", &["90%", "70%", "50%", "30%"]),
    ));
    claims.push(Claim::new(
        "Active time thrown away per run.",
        bounded(
            "metric = \"work_lost\"",
            "max",
            &["1s", "5s", "10s", "30s", "1m", "5m", "10m"],
        ),
    ));
    claims.extend(telemetry(evidence));
    claims
}

/// The contradictions that are there now are the known ones: a new one fails, and a vanished one does.
fn contradictions(policy: &policy_file::Loaded) -> Claim {
    let mut known: Vec<String> = check::check(&policy.policy)
        .iter()
        .map(|finding| format!("\"{}\"", finding.id))
        .collect();
    known.dedup();
    let mut rule = "check = \"all\"".to_owned();
    if !known.is_empty() {
        rule.push_str(&format!("\nknown = [{}]", known.join(", ")));
    }
    Claim::new(
        "Contradictions between limits; a known one that vanished fails as a new one does.",
        [rule],
    )
}

/// What the telemetry must be worth.
fn telemetry(evidence: Evidence<'_>) -> Vec<Claim> {
    let runs = evidence.now.outcomes.as_ref().map_or(0, |outcomes| {
        outcomes
            .runs
            .iter()
            .filter(|run| !run.fate.is_hung())
            .count() as u64
    });
    // as many runs as the strictest bound needs that these certify without a kill
    let needs: Vec<String> = RATES
        .iter()
        .filter_map(|(_, rate)| runs_needed(0, *rate, Level::P95))
        .filter(|need| *need <= runs)
        .map(|need| format!("metric = \"runs\"\nmin = {need}"))
        .collect();
    let shares =
        |metric: &str, amounts: &[&str]| bounded(&format!("metric = \"{metric}\""), "max", amounts);
    vec![
        Claim::new("What the telemetry must be worth: enough runs,", needs),
        Claim::new(
            "few of which the record cannot tell what became of,",
            shares("unresolved_share", &["0.1%", "1%", "5%"]),
        ),
        Claim::new(
            "few waits flagged,",
            shares("flagged_share", &["1%", "5%", "20%"]),
        ),
        Claim::new(
            "few lines unreadable.",
            shares("malformed_share", &["0.1%", "1%"]),
        ),
    ]
}
