//! What was observed, in a few words per check; every format says the same ones.

use policysim_sim::gate::{Bound, Check, Code, Detail, Figure, Part, Parts, Unit, Verdict};
use policysim_sim::stats::{round_to, text};

use crate::table::one_line;
use crate::units::{counted, duration, grouped, percent};

/// A value in its unit: `0.36 %`, `300 s`, `7,887`.
pub(super) fn value(unit: Unit, amount: f64) -> String {
    match unit {
        Unit::Count => grouped(amount.round() as u64),
        Unit::PerHour | Unit::PerRun => text(round_to(amount, 3)),
        Unit::Share => percent(amount),
        // a duration is a whole number of ms; a mean of them rounds up, against the policy
        Unit::Span => duration(amount.ceil() as u64),
    }
}

fn or_dash(unit: Unit, amount: Option<f64>) -> String {
    amount.map_or_else(|| "-".to_owned(), |amount| value(unit, amount))
}

/// What a check observed.
pub fn observed(check: &Check) -> String {
    let words = match &check.detail {
        Detail::Figure {
            now,
            baseline: Some(baseline),
            change: Some(change),
            unit,
            bound,
            ..
        } => changed(check, now, baseline, change, *unit, *bound),
        Detail::Figure {
            now,
            unit,
            noun,
            bound,
            amount,
            parts_are,
            parts,
            ..
        } => {
            let bounded = Bounded {
                unit: *unit,
                noun,
                bound: *bound,
                amount: *amount,
            };
            figure(check, now, bounded, *parts_are, parts)
        }
        Detail::Finding { found, known } => finding(found, *known),
        Detail::Key { value, other, sign } => match check.verdict {
            Verdict::Pass => format!("{value} {sign} {other}"),
            _ => format!("{value} is not {sign} {other}"),
        },
        Detail::Same { name, differs } => same(name, differs),
        Detail::Drift(compared) => drift(compared.as_ref()),
    };
    if let Some(reason) = &check.reason {
        return format!("not run: {}", one_line(reason));
    }
    match why(check) {
        Some(why) if words.is_empty() => why.to_owned(),
        Some(why) => format!("{words}; {why}"),
        None => words,
    }
}

/// What is to be said of a code beside the figures.
const fn why(check: &Check) -> Option<&'static str> {
    let Some(code) = check.code else { return None };
    Some(match code {
        Code::FewKills => {
            "too few losses to tell how they are spread, and no total budget bounds them"
        }
        Code::FewUnits => "kills come together, so that days or sessions count and not runs",
        Code::KillsMissing => "silences cut by the recorded limit seem to be missing",
        Code::LevelTooHigh => {
            "its limits are those of a two-sided 95 % interval: one side holds at 0.975 at most"
        }
        Code::Moved => "moved since the baseline",
        Code::MoveUndecided => "neither moved nor stable",
        Code::NoBaseline => "not run: no --baseline was given",
        Code::NoData => "not run: nothing to count",
        Code::NoSpread => {
            "the simulated parents do not differ in it, so that no limit can be worked out"
        }
        Code::NotInSequence => "the policy's window is none of the sequence's",
        Code::NotInSource => "not run: the data do not hold what this is made of",
        Code::SequenceStopped => "a larger window of the sequence is not shown to hold",
        Code::StratumUndecided => "not shown for every group",
        Code::Unended => {
            "parents never come to know of some hangs, which count as long as they were observed"
        }
        Code::TieRule => "hangs on whether an event at the deadline comes before its timer",
        Code::BoundBroken
        | Code::FindingNew
        | Code::FindingVanished
        | Code::PolicyDiffers
        | Code::TooFew => return None,
    })
}

#[derive(Clone, Copy)]
struct Bounded<'a> {
    unit: Unit,
    noun: &'a str,
    bound: Bound,
    amount: f64,
}

fn figure(
    check: &Check,
    now: &Figure,
    of: Bounded<'_>,
    parts_are: Parts,
    parts: &[Part],
) -> String {
    if check.verdict == Verdict::NoData {
        return String::new();
    }
    // a window that is not shown to hold speaks against the policy's only where the sequence stopped above that
    let speak = parts_are == Parts::Strata || check.code == Some(Code::SequenceStopped);
    // what decided goes first: a part, unless it is better off than the whole
    let worst = parts
        .iter()
        .filter(|part| speak && part.verdict != Verdict::Pass && part.verdict >= check.verdict)
        .max_by(|left, right| {
            let key = |part: &Part| part.figure.upper.unwrap_or(1.0);
            left.verdict
                .cmp(&right.verdict)
                .then(key(left).total_cmp(&key(right)))
        });
    let Some(worst) = worst.filter(|_| check.verdict != Verdict::Pass) else {
        return one(check.verdict, now, of, None);
    };
    let name = one_line(&worst.name);
    let name = match parts_are {
        Parts::Strata => name,
        Parts::Windows => name.parse().map_or(name, duration),
    };
    let shared = worst.accuses.map(|limit| Shared {
        limit,
        groups: parts.len(),
    });
    let alone = one(worst.verdict, &worst.figure, of, shared);
    let limit = |limit: Option<f64>| or_dash(of.unit, limit);
    format!(
        "{name}: {alone}; all: {} [{} … {}]",
        limit(now.point),
        limit(now.lower),
        limit(now.upper)
    )
}

/// The limit with which one of several groups accuses.
#[derive(Clone, Copy)]
struct Shared {
    limit: f64,
    groups: usize,
}

/// A figure against its bound: what it is, which limit decides, and what it would take.
fn one(verdict: Verdict, now: &Figure, of: Bounded<'_>, shared: Option<Shared>) -> String {
    if now.lower.is_some_and(f64::is_infinite) {
        return "never: the idle window is off".to_owned();
    }
    let known = now.lower == now.point && now.upper == now.point;
    if now.n.is_none() && known {
        return or_dash(of.unit, now.point);
    }
    let n = now.n.unwrap_or(1);
    if n == 0 {
        return String::new();
    }
    if now.point.is_some() && known && now.hits.is_none() {
        return match of.unit {
            Unit::Count => or_dash(of.unit, now.point),
            _ => format!(
                "{} of {} {}",
                or_dash(of.unit, now.point),
                grouped(n),
                of.noun
            ),
        };
    }
    let upper = of.bound.is_upper();
    let sign = |holds: bool| match (upper, holds) {
        (true, true) => "≤",
        (true, false) => ">",
        (false, true) => "≥",
        (false, false) => "<",
    };
    let limit = |is_upper: bool| {
        let (name, limit) = if is_upper {
            ("upper", now.upper)
        } else {
            ("lower", now.lower)
        };
        match shared.filter(|_| is_upper != upper) {
            Some(Shared { limit, groups }) if groups > 1 => format!(
                "{name} limit {} at the error that {groups} groups share",
                value(of.unit, limit)
            ),
            _ => format!("{name} limit {}", or_dash(of.unit, limit)),
        }
    };
    let decides = match verdict {
        Verdict::Pass => format!(
            "{} {} {}",
            limit(upper),
            sign(true),
            value(of.unit, of.amount)
        ),
        Verdict::Fail => format!(
            "{} {} {}",
            limit(!upper),
            sign(false),
            value(of.unit, of.amount)
        ),
        Verdict::Inconclusive | Verdict::NoData => format!("{}, {}", limit(upper), limit(!upper)),
    };
    let counted = match now.hits {
        Some(hits) if of.noun == "silences" => {
            format!("{} mistakes in {} silences", grouped(hits), grouped(n))
        }
        Some(hits) if of.unit == Unit::Share => {
            format!("{} of {} {}", grouped(hits), grouped(n), of.noun)
        }
        Some(hits) if of.unit == Unit::Span => {
            let beyond = if upper { "longer" } else { "shorter" };
            let what = if now.needed_at_best.is_some() {
                beyond
            } else {
                "with a loss"
            };
            format!("{} of {} {} {what}", grouped(hits), grouped(n), of.noun)
        }
        Some(hits) => format!("{} in {} {}", grouped(hits), grouped(n), of.noun),
        None => format!("{} {}", grouped(n), of.noun),
    };
    let mut words = format!("{}, {decides}", or_dash(of.unit, now.point));
    if now.n.is_none() {
        return words;
    }
    words.push_str(&format!(" ({counted}"));
    if now.unresolved > 0 {
        words.push_str(&format!(", {} unresolved", grouped(now.unresolved)));
    }
    words.push(')');
    if verdict == Verdict::Inconclusive {
        words.push_str(&needs(now, n));
    }
    words
}

/// How many samples would decide.
fn needs(now: &Figure, n: u64) -> String {
    let more = |need: u64| grouped(need.saturating_sub(n));
    match (now.needed, now.needed_at_best) {
        (Some(need), Some(best)) if best > n && best != need => format!(
            "; needs {} with as many ({} more), {} with none",
            grouped(need),
            more(need),
            grouped(best)
        ),
        (Some(need), _) if need > n => {
            format!(
                "; needs {} with as many ({} more)",
                grouped(need),
                more(need)
            )
        }
        _ => String::new(),
    }
}

fn changed(
    check: &Check,
    now: &Figure,
    baseline: &Figure,
    change: &Figure,
    unit: Unit,
    bound: Bound,
) -> String {
    if check.verdict == Verdict::NoData {
        return String::new();
    }
    let amount = |amount: Option<f64>| {
        if bound.is_ratio() {
            amount.map_or_else(|| "-".to_owned(), |ratio| text(round_to(ratio, 3)))
        } else {
            let fell = amount.is_some_and(|amount| amount < 0.0);
            let sign = if fell { "-" } else { "" };
            format!("{sign}{}", or_dash(unit, amount.map(f64::abs)))
        }
    };
    let word = match bound {
        Bound::MaxRatio | Bound::MinRatio => "ratio",
        Bound::MaxDecrease => "fall",
        _ => "rise",
    };
    format!(
        "{} against {}: {word} {} [{} … {}]",
        or_dash(unit, now.point),
        or_dash(unit, baseline.point),
        amount(change.point),
        amount(change.lower),
        amount(change.upper),
    )
}

fn finding(found: &[policysim_policy::check::Finding], known: bool) -> String {
    match (found.first(), known) {
        (None, false) => "none".to_owned(),
        (None, true) => "known, but not found any more: take it off the list".to_owned(),
        (Some(first), known) => {
            let [left, right] = &first.limits;
            let more = match found.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            let advice = if known {
                String::new()
            } else {
                format!("; {}", first.advice)
            };
            format!("{left}, {right}{more}{advice}")
        }
    }
}

fn same(name: &str, differs: &[policysim_sim::gate::Difference]) -> String {
    let Some(first) = differs.first() else {
        return "every key equal".to_owned();
    };
    let more = match differs.len() {
        1 => String::new(),
        n => format!(" (and {} more keys)", n - 1),
    };
    format!(
        "{} is {}, in {} it is {}{more}",
        first.key,
        one_line(&first.ours),
        one_line(name),
        one_line(&first.theirs)
    )
}

fn drift(compared: Option<&policysim_sim::gaps::drift::Compared>) -> String {
    let Some((compared, drift)) = compared.and_then(|compared| Some((compared, compared.drift?)))
    else {
        return String::new();
    };
    let side =
        |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), |limit| text(round_to(limit, 3)));
    let effect = drift.effect;
    format!(
        "tail ratio {} [{} … {}] ({} against {})",
        side(effect.ratio),
        side(effect.interval.lo),
        side(effect.interval.up),
        grouped(compared.after.n),
        counted(compared.before.n, "silence"),
    )
}
