//! What `policysim gaps --against` prints: whether silences have moved since a baseline.

use policysim_sim::gaps::drift::Compared;
use policysim_sim::stats::drift::{Drift, DriftVerdict, Permutation};
use policysim_sim::stats::{Interval, json, round_to, text};
use serde_json::{Value, json};

use crate::form::Layout;
use crate::header::DataHeader;
use crate::table::{Align, Table};
use crate::units::{counted, duration, grouped, were};

/// Every line of a dataset compared with a baseline.
#[derive(Clone, Debug)]
pub struct DriftResult {
    /// The baseline.
    pub baseline: DataHeader,
    /// The seed of permutations and resampling.
    pub seed: u64,
    /// The lines.
    pub lines: Vec<Compared>,
}

const fn name(verdict: DriftVerdict) -> &'static str {
    match verdict {
        DriftVerdict::Inconclusive => "inconclusive",
        DriftVerdict::Moved => "moved",
        DriftVerdict::Stable => "stable",
    }
}

fn verdict(compared: &Compared) -> &'static str {
    compared
        .drift
        .map_or("no_data", |drift| name(drift.verdict))
}

fn three(value: f64) -> String {
    text(round_to(value, 3))
}

fn ratio(drift: &Drift) -> String {
    let side = |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), three);
    let Interval { lo, up } = drift.effect.interval;
    format!("{} [{} … {}]", side(drift.effect.ratio), side(lo), side(up))
}

fn p_value(permutation: Option<Permutation>) -> String {
    permutation.map_or_else(|| "-".to_owned(), |found| three(found.p_value()))
}

/// Why there is no ratio, or no limits of it.
fn ratio_reason(compared: &Compared) -> Option<&'static str> {
    let effect = compared.drift?.effect;
    if effect.ratio.is_none() {
        Some("none_beyond_level")
    } else if effect.interval == Interval::none() {
        Some("few_sessions")
    } else if effect.interval.up.is_none() {
        Some("too_few_beyond_level")
    } else {
        None
    }
}

impl DriftResult {
    pub(super) fn laid_out(&self, layout: Layout) -> String {
        let mut out = format!("against the baseline {}\n\n", self.baseline.line());
        let mut table = Table::new([
            ("wait", Align::Left),
            ("n", Align::Right),
            ("sessions", Align::Right),
            ("base p99", Align::Right),
            ("rho", Align::Right),
            ("KS D (p)", Align::Right),
            ("AD p", Align::Right),
            ("over W", Align::Right),
            ("tail p", Align::Right),
            ("verdict", Align::Left),
        ]);
        for compared in &self.lines {
            let Compared {
                line,
                before,
                after,
                drift,
                ..
            } = compared;
            let of = |figure: &dyn Fn(&Drift) -> String| {
                drift.as_ref().map_or_else(|| "-".to_owned(), figure)
            };
            table.push(vec![
                line.name().to_owned(),
                format!("{} / {}", grouped(after.n), grouped(before.n)),
                format!("{} / {}", grouped(after.sessions), grouped(before.sessions)),
                of(&|drift| {
                    drift
                        .effect
                        .level_ms
                        .map_or_else(|| "-".to_owned(), duration)
                }),
                of(&ratio),
                of(&|drift| {
                    drift.test.map_or_else(
                        || "-".to_owned(),
                        |test| {
                            format!(
                                "{} ({})",
                                three(test.distance.to_f64()),
                                p_value(Some(test.ks))
                            )
                        },
                    )
                }),
                of(&|drift| p_value(drift.test.and_then(|test| test.ad))),
                format!("{} / {}", grouped(after.over), grouped(before.over)),
                of(&|drift| three(drift.tail_p)),
                verdict(compared).replace('_', " "),
            ]);
        }
        out.push_str(&layout.table(&table));
        out.push('\n');
        for note in self.notes() {
            out.push_str(&layout.prose(&note));
            out.push('\n');
        }
        out
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "Pairs are these data / the baseline. rho: how much likelier a silence beyond the baseline's p99 is now, with its 95 % session-bootstrap interval; KS and AD by permuting sessions; tail p: Fisher's exact test of the sessions with a silence of at least W.".to_owned(),
        ];
        let mut windows: Vec<u64> = self.lines.iter().map(|line| line.window_ms).collect();
        windows.sort_unstable();
        windows.dedup();
        match windows[..] {
            [window_ms] => notes.push(format!(
                "W = {}, the policy's idle window.",
                duration(window_ms)
            )),
            _ => {
                notes.push("W is the baseline's p99, as the policy has no idle window.".to_owned());
            }
        }
        let cut: u64 = self
            .lines
            .iter()
            .map(|line| line.before.cut + line.after.cut)
            .sum();
        if cut > 0 {
            notes.push(format!(
                "{} {} cut; they are compared as long as they were seen to be.",
                counted(cut, "silence"),
                were(cut)
            ));
        }
        for (reason, words) in [
            (
                "none_beyond_level",
                "No rho, as no silence of the baseline is longer than its p99 (ties, or fewer than 100)",
            ),
            (
                "few_sessions",
                "No interval of rho, as it takes two sessions on either side",
            ),
            (
                "too_few_beyond_level",
                "No upper limit of rho, as resampled baselines have no silence beyond the p99",
            ),
        ] {
            let lines = self.lines_where(|line| ratio_reason(line) == Some(reason));
            if !lines.is_empty() {
                notes.push(format!("{words}: {lines}."));
            }
        }
        notes.push(format!(
            "moved: AD or tail p < 0.01 and rho surely outside 0.8 … 1.25; stable: rho surely within 0.5 … 2. Seed {}.",
            self.seed
        ));
        for (word, verb) in [
            ("moved", "Moved"),
            ("stable", "Stable"),
            ("inconclusive", "Inconclusive, more sessions would decide"),
            ("no_data", "No data on one side"),
        ] {
            let lines = self.lines_where(|line| verdict(line) == word);
            if !lines.is_empty() {
                notes.push(format!("{verb}: {lines}."));
            }
        }
        notes
    }

    /// The names of the lines of which that is true.
    fn lines_where(&self, is: impl Fn(&Compared) -> bool) -> String {
        let names: Vec<&str> = self
            .lines
            .iter()
            .filter(|line| is(line))
            .map(|line| line.line.name())
            .collect();
        names.join(", ")
    }

    /// One row per line.
    pub(super) fn to_csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record([
            "line",
            "n",
            "baseline_n",
            "sessions",
            "baseline_sessions",
            "level_ms",
            "rho",
            "rho_lower",
            "rho_upper",
            "ks",
            "ks_p",
            "ad_p",
            "window_ms",
            "over",
            "baseline_over",
            "tail_p",
            "verdict",
        ])?;
        let cell = |value: Option<f64>| value.map_or_else(String::new, |v| json(v).to_string());
        for compared in &self.lines {
            let (drift, before, after) = (compared.drift, compared.before, compared.after);
            let effect = drift.map(|drift| drift.effect);
            let test = drift.and_then(|drift| drift.test);
            writer.write_record([
                compared.line.name(),
                &after.n.to_string(),
                &before.n.to_string(),
                &after.sessions.to_string(),
                &before.sessions.to_string(),
                &effect
                    .and_then(|effect| effect.level_ms)
                    .map_or_else(String::new, |ms| ms.to_string()),
                &cell(effect.and_then(|effect| effect.ratio)),
                &cell(effect.and_then(|effect| effect.interval.lo)),
                &cell(effect.and_then(|effect| effect.interval.up)),
                &cell(test.map(|test| test.distance.to_f64())),
                &cell(test.map(|test| test.ks.p_value())),
                &cell(test.and_then(|test| test.ad).map(Permutation::p_value)),
                &compared.window_ms.to_string(),
                &after.over.to_string(),
                &before.over.to_string(),
                &cell(drift.map(|drift| drift.tail_p)),
                verdict(compared),
            ])?;
        }
        crate::csv_text(writer)
    }

    pub(super) fn json(&self) -> Value {
        let lines: serde_json::Map<String, Value> = self
            .lines
            .iter()
            .map(|compared| (compared.line.name().to_owned(), line_json(compared)))
            .collect();
        json!({
            "baseline": self.baseline,
            "seed": self.seed,
            "lines": lines,
            "notes": self.notes(),
        })
    }
}

fn line_json(compared: &Compared) -> Value {
    let side = |side: &policysim_sim::gaps::drift::Side| {
        json!({
            "n": side.n,
            "cut_n": side.cut,
            "sessions": side.sessions,
            "sessions_over_window": side.over,
        })
    };
    let permutation = |found: Permutation| {
        json!({
            "p_value": json(found.p_value()),
            "splits": found.splits,
            "exhaustive": found.exhaustive,
        })
    };
    let drift = compared.drift.map(|drift| {
        json!({
            "level_ms": drift.effect.level_ms,
            "rho": drift.effect.ratio.map(json),
            "rho_interval": drift.effect.interval,
            "rho_reason": ratio_reason(compared),
            "ks_distance": drift.test.map(|test| json(test.distance.to_f64())),
            "ks": drift.test.map(|test| permutation(test.ks)),
            "ad_statistic": drift.test.and_then(|test| test.anderson_darling).map(json),
            "ad": drift.test.and_then(|test| test.ad).map(permutation),
            "tail_p": json(drift.tail_p),
        })
    });
    json!({
        "before": side(&compared.before),
        "after": side(&compared.after),
        "window_ms": compared.window_ms,
        "drift": drift,
        "verdict": verdict(compared),
    })
}
