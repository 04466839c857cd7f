//! Reads a rules document from TOML, keeping the line of every rule.

use std::path::Path;

use anyhow::{Context, Result};
use policysim_policy::document::{self, Value};
use policysim_policy::{Cause, Millis, Policy, check, duration, nearest};
use policysim_sim::cluster::Cluster;
use policysim_sim::gate::{
    Against, Bound, Compare, DriftRule, FigureRule, FindingsRule, KeyRule, Mapping, Metric,
    Operand, Rule, Rules, SameRule, Scope, Source, Subject, Unit,
};
use policysim_sim::grid;
use policysim_sim::stats::{Level, Prob};
use policysim_sim::strata::StratumKey;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::commands::sweep::rate;
use crate::given;
use crate::policy_file::{self, Fault, convert, line_of};

mod fields;
mod keys;
mod parents;
mod schema;

use fields::{Field, Fields};
use keys::{Kind, top_key};
pub(crate) use schema::schema;

/// Reads the rules document at `path`. Policies that it names are looked for beside it.
///
/// # Errors
///
/// One line with the file, the line, the key, what was found and what was expected.
pub(crate) fn load(path: &Path) -> Result<Rules> {
    let shown = path.display().to_string();
    let text = given::read_text(path).with_context(|| format!("cannot read rules file {shown}"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).map_err(|fault| fault.in_file(&shown))
}

/// Reads the text of a rules document.
///
/// # Errors
///
/// As [`load`], without a file.
pub(crate) fn read(text: &str) -> Result<Rules> {
    parse(text, Path::new("")).map_err(|fault| anyhow::anyhow!("{fault}"))
}

/// Reads a rules document; `folder` is where it stands.
fn parse(text: &str, folder: &Path) -> Result<Rules, Fault> {
    let fault = |at: usize, message: String| Fault {
        line: line_of(text, at),
        message,
    };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        fault(at, error.message().replace('\n', ", "))
    })?;
    let mut rules = Rules::default();
    for (name, value) in root.get_ref() {
        let key = name.get_ref();
        let field = Field {
            key: key.to_string(),
            value: convert(value.get_ref()),
            at: name.span().start,
        };
        let read = match &**key {
            "confidence" => field.level().map(|level| rules.level = level),
            "inconclusive" => field.mapping().map(|mapping| rules.inconclusive = mapping),
            "recorded_idle" => field.span().map(|span| rules.recorded_idle = Some(span)),
            "rule" => {
                rules.rules = list(text, value, folder)?;
                Ok(())
            }
            unknown => Err(top_key(unknown)),
        };
        read.map_err(|message| fault(field.at, message))?;
    }
    if rules.rules.is_empty() {
        return Err(fault(
            0,
            "no rule: expected [[rule]] tables; a gate without rules decides nothing".to_owned(),
        ));
    }
    Ok(rules)
}

fn list(text: &str, value: &Spanned<DeValue<'_>>, folder: &Path) -> Result<Vec<Rule>, Fault> {
    let wrong = |at: usize| Fault {
        line: line_of(text, at),
        message: "rule: expected [[rule]] tables, with two brackets".to_owned(),
    };
    let DeValue::Array(items) = value.get_ref() else {
        return Err(wrong(value.span().start));
    };
    let mut rules = Vec::new();
    for item in items {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(wrong(item.span().start));
        };
        let mut fields = Fields::new(table);
        let first = fields.first_at().unwrap_or(item.span().start);
        let fault = |(at, message): (Option<usize>, String)| Fault {
            line: line_of(text, at.unwrap_or(first)),
            message,
        };
        let line = line_of(text, item.span().start);
        rules.push(rule(&mut fields, line, folder).map_err(fault)?);
    }
    Ok(rules)
}

/// What is wrong with a rule, and at which byte where it is a key's fault.
type Wrong = (Option<usize>, String);

fn rule(fields: &mut Fields, line: usize, folder: &Path) -> Result<Rule, Wrong> {
    let kind = fields.kind()?;
    fields.refuse_strangers(kind)?;
    let rule = Rule {
        line,
        name: fields.take("name", Field::text)?,
        level: fields.take("confidence", Field::level)?,
        inconclusive: fields.take("inconclusive", Field::mapping)?,
        subject: match kind {
            Kind::Metric => Subject::Figure(figure(fields, folder)?),
            Kind::Check => Subject::Findings(findings(fields)?),
            Kind::Key => Subject::Key(key(fields)?),
            Kind::Same => Subject::Same(same(fields, folder)?),
            Kind::Drift => Subject::Drift(drift(fields)?),
        },
    };
    Ok(rule)
}

fn figure(fields: &mut Fields, folder: &Path) -> Result<FigureRule, Wrong> {
    let metric = fields.must("metric", Field::metric)?;
    let name = metric.name();
    let quantile = fields.take("quantile", Field::quantile)?;
    let missing = |message: String| (None, message);
    match (metric.takes_quantile(), quantile) {
        (true, None) => {
            return Err(missing(format!(
                "metric {name} has quantiles: expected quantile = \"p99\" as well"
            )));
        }
        (false, Some(_)) => {
            return Err(missing(format!(
                "metric {name} has no quantiles: take quantile away"
            )));
        }
        _ => {}
    }
    let cause = fields.take("cause", Field::cause)?;
    if cause.is_some() && !metric.takes_cause() {
        return Err(missing(format!("metric {name} is not told apart by cause")));
    }
    let scope = scope(fields)?;
    if scope != Scope::All && !metric.takes_strata() {
        return Err(missing(format!(
            "metric {name} is not told apart by strata"
        )));
    }
    let every = fields.take("every", Field::flag)?;
    if every.is_some() && !matches!(scope, Scope::Every(_)) {
        return Err(missing(
            "every says what by means: set by as well".to_owned(),
        ));
    }
    let cluster = fields.take("cluster", Field::cluster)?;
    let sequence = fields.take("sequence", Field::windows)?;
    if sequence.is_some() && metric != Metric::FalseKillRate {
        return Err(missing(format!(
            "sequence belongs to false_kill_rate, not to {name}"
        )));
    }
    if sequence.is_some() && scope != Scope::All {
        return Err(missing(
            "sequence is judged over all runs: write strata as a rule of their own".to_owned(),
        ));
    }
    let against = against(fields, metric, folder)?;
    let (hang_rate, restart) = cost(fields, metric)?;
    let parents = fields.take("parents", parents::parents)?;
    if parents.is_some() && metric.source() != Source::Settlement {
        return Err(missing(format!(
            "parents belong to figures of simulated settlement, not to {name}"
        )));
    }
    let (parents, habits) = parents.unwrap_or_default();
    let (bound, amount, written) = bound(fields, metric)?;
    if sequence.is_some() && bound != Bound::Max {
        return Err(missing(
            "a sequence of windows is tested against max".to_owned(),
        ));
    }
    Ok(FigureRule {
        metric,
        quantile,
        cause,
        scope,
        every: every.unwrap_or(true),
        cluster: cluster.unwrap_or_default(),
        sequence: sequence.unwrap_or_default(),
        against,
        hang_rate,
        restart,
        parents,
        habits,
        bound,
        amount,
        written,
    })
}

/// The policy that a figure is compared with.
fn against(fields: &mut Fields, metric: Metric, folder: &Path) -> Result<Option<Against>, Wrong> {
    let against = fields.take("against", |field| {
        let (name, policy) = other_policy(field, folder)?;
        Ok(Against { name, policy })
    })?;
    let name = metric.name();
    match (metric.takes_against(), &against) {
        (true, None) => Err((
            None,
            format!("metric {name} compares two policies: expected against = \"PRESET\" as well"),
        )),
        (false, Some(_)) => Err((
            None,
            format!("against belongs to newly_killed and newly_spared, not to {name}"),
        )),
        _ => Ok(against),
    }
}

/// The hang rate and the restart of a cost.
fn cost(fields: &mut Fields, metric: Metric) -> Result<(Option<Prob>, Millis), Wrong> {
    let hang_rate = fields.take("hang_rate", |field| {
        let rate = rate(&field.key, &field.written()).map_err(|error| format!("{error:#}"))?;
        if rate.to_f64() > 0.0 {
            Ok(rate)
        } else {
            Err("hang_rate: without hangs the longest window costs least, whatever it kills: expected a share above 0".to_owned())
        }
    })?;
    let restart = fields.take("restart", Field::span)?;
    let name = metric.name();
    let stranger = match (hang_rate, restart) {
        (Some(_), _) => "hang_rate",
        _ => "restart",
    };
    match (metric.takes_hang_rate(), hang_rate) {
        (true, None) => Err((
            None,
            format!(
                "metric {name} is a cost at some share of hangs: expected hang_rate = \"1%\" as well"
            ),
        )),
        (false, None) if restart.is_none() => Ok((None, Millis::ZERO)),
        (false, _) => Err((
            None,
            format!("{stranger} belongs to cost_per_run and cost_per_hang, not to {name}"),
        )),
        (true, Some(rate)) => Ok((Some(rate), restart.unwrap_or_default())),
    }
}

fn scope(fields: &mut Fields) -> Result<Scope, Wrong> {
    let by = fields.take("by", Field::stratum_key)?;
    let one = fields.take("stratum", Field::stratum)?;
    match (by, one) {
        (None, None) => Ok(Scope::All),
        (Some(key), None) => Ok(Scope::Every(key)),
        (None, Some((key, name))) => Ok(Scope::One(key, name)),
        (Some(_), Some(_)) => Err((
            None,
            "by and stratum exclude each other: every group, or one of them".to_owned(),
        )),
    }
}

/// The one bound of a rule on a figure.
fn bound(fields: &mut Fields, metric: Metric) -> Result<(Bound, f64, String), Wrong> {
    let mut found: Option<(Bound, f64, String)> = None;
    for bound in Bound::ALL {
        let read = |field: &Field| {
            let unit = if bound.is_ratio() {
                Unit::PerHour
            } else {
                metric.unit()
            };
            let amount = field.amount(unit)?;
            refuse_unprovable(metric, bound, amount)?;
            Ok((amount, field.written()))
        };
        let Some((amount, written)) = fields.take(bound.name(), read)? else {
            continue;
        };
        if let Some((other, ..)) = found {
            return Err((
                None,
                format!(
                    "{} and {} in one rule: bounds on a figure and on its change are rules of their own",
                    other.name(),
                    bound.name()
                ),
            ));
        }
        found = Some((bound, amount, written));
    }
    found.ok_or_else(|| {
        let names = Bound::ALL.map(Bound::name).join(", ");
        (
            None,
            format!(
                "metric {} without a bound: expected one of {names}",
                metric.name()
            ),
        )
    })
}

/// No number of runs shows that a rate is 0, or that everything is detected.
fn refuse_unprovable(metric: Metric, bound: Bound, amount: f64) -> Result<(), String> {
    let never = match bound {
        Bound::Max => amount <= 0.0,
        Bound::Min => metric.unit() == Unit::Share && amount >= 1.0,
        _ => false,
    };
    if metric.is_estimated() && never {
        return Err(format!(
            "{} of {} cannot be shown by any number of runs: leave some room",
            bound.name(),
            metric.name()
        ));
    }
    Ok(())
}

fn findings(fields: &mut Fields) -> Result<FindingsRule, Wrong> {
    let ids = fields.must("check", |field| match field.value.as_text() {
        Some("all") => Ok(check::RULES.to_vec()),
        _ => field.finding_ids(),
    })?;
    let known = fields
        .take("known", Field::finding_ids)?
        .unwrap_or_default();
    if let Some(stranger) = known.iter().find(|id| !ids.contains(id)) {
        return Err((
            None,
            format!("known names {stranger}, which this rule does not check"),
        ));
    }
    Ok(FindingsRule { ids, known })
}

fn key(fields: &mut Fields) -> Result<KeyRule, Wrong> {
    let key = fields.must("key", Field::policy_key)?;
    let mut found: Option<KeyRule> = None;
    for compare in Compare::ALL {
        let operand = |field: &Field| {
            let operand = field.operand()?;
            fits(&key, &operand).map_err(|why| format!("{}: {why}", compare.name()))?;
            Ok(operand)
        };
        let Some(operand) = fields.take(compare.name(), operand)? else {
            continue;
        };
        if let Some(other) = found {
            return Err((
                None,
                format!(
                    "{} and {} in one rule: write two",
                    other.compare.name(),
                    compare.name()
                ),
            ));
        }
        found = Some(KeyRule {
            key: key.clone(),
            compare,
            operand,
        });
    }
    found.ok_or_else(|| {
        let names = Compare::ALL.map(Compare::name).join(", ");
        (
            None,
            format!("key {key} without a comparison: expected one of {names}"),
        )
    })
}

/// Whether a policy could have that value: one that it cannot have is a slip of the rule, not of the policy.
fn fits(key: &str, operand: &Operand) -> Result<(), String> {
    let Operand::Value(value) = operand else {
        return Ok(());
    };
    let set = Policy::default().set(key, value);
    set.map_err(|error| {
        let text = error.to_string();
        let why = text
            .strip_prefix(key)
            .and_then(|text| text.strip_prefix(": "));
        why.unwrap_or(&text).to_owned()
    })
}

/// Another policy, which is looked for beside the rules first.
fn other_policy(field: &Field, folder: &Path) -> Result<(String, Policy), String> {
    let spec = field.text()?;
    let beside = folder.join(&spec);
    let spec_beside = if beside.exists() {
        beside.display().to_string()
    } else {
        spec.clone()
    };
    let loaded =
        policy_file::load(&spec_beside).map_err(|error| format!("{}: {error:#}", field.key))?;
    let name = if Path::new(&spec).is_absolute() {
        loaded.name
    } else {
        spec
    };
    Ok((name, loaded.policy))
}

fn same(fields: &mut Fields, folder: &Path) -> Result<SameRule, Wrong> {
    let (name, policy) = fields.must("same_as", |field| other_policy(field, folder))?;
    let except = fields
        .take("except", |field| {
            field.texts()?.iter().map(|key| known_key(key)).collect()
        })?
        .unwrap_or_default();
    Ok(SameRule {
        name,
        policy,
        except,
    })
}

fn drift(fields: &mut Fields) -> Result<DriftRule, Wrong> {
    let line = fields.must("drift", |field| match field.value.as_text() {
        Some("all") => Ok(None),
        _ => match field.metric()? {
            Metric::Silence(line) => Ok(Some(line)),
            other => Err(format!(
                "drift: {} is not a line of silences: expected \"all\", \"idle_gap\" or \"wait.KIND\"",
                other.name()
            )),
        },
    })?;
    let moved_fails = fields.take("moved", |field| {
        field
            .word(&["fail", "inconclusive"])
            .map(|word| word == "fail")
    })?;
    Ok(DriftRule {
        line,
        moved_fails: moved_fails.unwrap_or(false),
    })
}

/// The full path of a policy key.
fn known_key(written: &str) -> Result<String, String> {
    // an entry of a table by name is a key as well
    let by_name = ["turns.by_role.", "pause.tool_limit."];
    if by_name.iter().any(|table| written.starts_with(table)) {
        return Ok(written.to_owned());
    }
    match document::find(written) {
        Ok(known) => Ok(known.info.path.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
