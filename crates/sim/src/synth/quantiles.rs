//! A distribution: a table of quantiles, a parametric mixture, or samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::mixture::{Component, mixture_value, sample_value};

/// The whole of a probability, in the millionths that quantiles are written in.
const ONE: u32 = 1_000_000;

/// What the values of a table count.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Pieces of one answer after the first.
    Pieces,
    /// Runs of one session.
    Runs,
    /// Model turns.
    Turns,
}

impl Unit {
    /// The unit's name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ms => "ms",
            Self::Pieces => "pieces",
            Self::Runs => "runs",
            Self::Turns => "turns",
        }
    }

    /// Largest value of a table: 3 years, 1,000 pieces or runs, or 10,000 turns. The longest run that such
    /// tables make stays below the end of `u64` milliseconds.
    pub const fn limit(self) -> u64 {
        match self {
            Self::Ms => 100_000_000_000,
            Self::Pieces | Self::Runs => 1000,
            Self::Turns => 10_000,
        }
    }
}

/// One point of a quantile function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Knot {
    /// Probability in millionths: 0 is the minimum, 1,000,000 the maximum.
    pub p_ppm: u32,
    /// The quantile there, in the table's unit.
    pub value: u64,
    /// Nobody published it; it was chosen to complete the table.
    pub assumed: bool,
}

impl Knot {
    /// The knot's name in files: `min`, `max`, or as `p99.9`.
    pub fn label(&self) -> String {
        label(self.p_ppm)
    }
}

/// A quantile function: exact at its knots, and between two of them the logarithm of (value + 1)
/// is linear in the probability.
///
/// The 1 makes a value of 0 possible and moves nothing that matters from a few ms up. Below the
/// lowest and above the highest knot there is nothing: the knots of probability 0 and 1, `min` and
/// `max`, are always there. Values are rounded to whole units.
///
/// In its place may stand a mixture of [`Component`]s, whose values end at the unit's limit or at `max`, or samples as
/// (value, count), whose quantiles are nearest ranks.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "QuantileTable", into = "QuantileTable")]
pub struct Quantiles {
    unit: Unit,
    n: Option<u64>,
    source: Option<String>,
    knots: Vec<Knot>,
    other: Option<Other>,
}

/// What stands in the place of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Other {
    Mixture {
        components: Vec<Component>,
        max: u64,
        assumed: bool,
    },
    Samples(Vec<(u64, u64)>),
}

/// The table as it stands in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuantileTable {
    pub(super) unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) n: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) quantiles: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) assumed_quantiles: BTreeMap<String, u64>,
    /// A mixture in place of quantiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) mixture: Vec<Component>,
    /// Whether the mixture was assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) assumed: bool,
    /// The largest value of the mixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max: Option<u64>,
    /// Samples (value, count) in place of quantiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) samples: Vec<(u64, u64)>,
}

impl QuantileTable {
    /// Quantiles of samples and nothing else.
    pub(super) const fn of(unit: Unit, n: u64, quantiles: BTreeMap<String, u64>) -> Self {
        Self {
            unit,
            n: Some(n),
            source: None,
            quantiles,
            assumed_quantiles: BTreeMap::new(),
            mixture: Vec::new(),
            assumed: false,
            max: None,
            samples: Vec::new(),
        }
    }

    /// The mixture or the samples, where they stand in place of quantiles.
    fn other(&mut self) -> Result<Option<Other>, ModelError> {
        let tabled = !self.quantiles.is_empty() || !self.assumed_quantiles.is_empty();
        let forms = [tabled, !self.mixture.is_empty(), !self.samples.is_empty()];
        if forms.into_iter().filter(|given| *given).count() > 1 {
            return Err(ModelError::TwoForms);
        }
        if self.mixture.is_empty() && (self.assumed || self.max.is_some()) {
            return Err(ModelError::MissingTable {
                part: "a distribution with assumed or max".to_owned(),
                table: "its mixture".to_owned(),
            });
        }
        let limit = self.unit.limit();
        let within = |name: &str, value: u64| {
            if value <= limit {
                return Ok(());
            }
            Err(ModelError::Limit {
                name: name.to_owned(),
                value,
                limit,
            })
        };
        if !self.mixture.is_empty() {
            let max = self.max.unwrap_or(limit);
            within("max", max)?;
            let heavy = self.mixture.iter().map(|one| one.weight());
            if heavy
                .clone()
                .any(|weight| weight > ModelError::WEIGHT_LIMIT)
            {
                let value = heavy.max().unwrap_or(0);
                let (name, limit) = ("weight".to_owned(), ModelError::WEIGHT_LIMIT);
                return Err(ModelError::Limit { name, value, limit });
            }
            if heavy.sum::<u64>() == 0 {
                return Err(ModelError::NothingToPick("mixture".to_owned()));
            }
            if let Some(bad) = self.mixture.iter().find(|one| !one.is_proper()) {
                return Err(ModelError::Component(format!("{bad:?}")));
            }
            return Ok(Some(Other::Mixture {
                components: std::mem::take(&mut self.mixture),
                max,
                assumed: self.assumed,
            }));
        }
        if self.samples.is_empty() {
            return Ok(None);
        }
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_unstable();
        for &(value, count) in &samples {
            within("sample", value)?;
            if count == 0 || count > ModelError::WEIGHT_LIMIT {
                let (name, limit) = ("count of a sample".to_owned(), ModelError::WEIGHT_LIMIT);
                return Err(if count == 0 {
                    ModelError::Zero("count of a sample")
                } else {
                    ModelError::Limit {
                        name,
                        value: count,
                        limit,
                    }
                });
            }
        }
        Ok(Some(Other::Samples(samples)))
    }
}

impl From<Quantiles> for QuantileTable {
    fn from(quantiles: Quantiles) -> Self {
        let mut table = Self::of(quantiles.unit, 0, BTreeMap::new());
        table.n = quantiles.n;
        table.source = quantiles.source;
        for knot in &quantiles.knots {
            let place = if knot.assumed {
                &mut table.assumed_quantiles
            } else {
                &mut table.quantiles
            };
            place.insert(knot.label(), knot.value);
        }
        match quantiles.other {
            None => {}
            Some(Other::Samples(samples)) => table.samples = samples,
            Some(Other::Mixture {
                components,
                max,
                assumed,
            }) => {
                table.mixture = components;
                table.max = Some(max);
                table.assumed = assumed;
            }
        }
        table
    }
}

impl TryFrom<QuantileTable> for Quantiles {
    type Error = ModelError;

    fn try_from(mut table: QuantileTable) -> Result<Self, ModelError> {
        if let Some(other) = table.other()? {
            return Ok(Self {
                unit: table.unit,
                n: table.n,
                source: table.source,
                knots: Vec::new(),
                other: Some(other),
            });
        }
        let published = table.quantiles.iter().map(|entry| (entry, false));
        let assumed = table.assumed_quantiles.iter().map(|entry| (entry, true));
        let mut knots: Vec<Knot> = Vec::new();
        for ((text, &value), assumed) in published.chain(assumed) {
            let p_ppm = p_ppm(text).ok_or_else(|| ModelError::QuantileLabel(text.clone()))?;
            let limit = table.unit.limit();
            if value > limit {
                return Err(ModelError::Limit {
                    name: text.clone(),
                    value,
                    limit,
                });
            }
            knots.push(Knot {
                p_ppm,
                value,
                assumed,
            });
        }
        knots.sort_by_key(|knot| knot.p_ppm);
        for pair in knots.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            if low.p_ppm == high.p_ppm {
                return Err(ModelError::QuantileTwice(low.label()));
            }
            if low.value > high.value {
                return Err(ModelError::QuantileOrder {
                    lower: low.label(),
                    lower_value: low.value,
                    higher: high.label(),
                    higher_value: high.value,
                });
            }
        }
        if knots.first().is_none_or(|knot| knot.p_ppm != 0) {
            return Err(ModelError::QuantileEnd("min"));
        }
        if knots.last().is_none_or(|knot| knot.p_ppm != ONE) {
            return Err(ModelError::QuantileEnd("max"));
        }
        Ok(Self {
            unit: table.unit,
            n: table.n,
            source: table.source,
            knots,
            other: None,
        })
    }
}

impl Quantiles {
    /// What the values count.
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// The number of samples behind the published quantiles, where it is known.
    pub const fn n(&self) -> Option<u64> {
        self.n
    }

    /// Where the published quantiles come from, when not from the model's own source.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The points of the table, by rising probability, `min` first and `max` last; none of a mixture or of samples.
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// Whether all of it was assumed.
    pub fn is_assumed(&self) -> bool {
        match &self.other {
            None => self.knots.iter().all(|knot| knot.assumed),
            Some(Other::Mixture { assumed, .. }) => *assumed,
            Some(Other::Samples(_)) => false,
        }
    }

    /// The value at `probability`, which is held to [0, 1].
    pub fn value(&self, probability: f64) -> u64 {
        let held = probability.clamp(0.0, 1.0);
        match &self.other {
            None => {}
            Some(Other::Mixture {
                components, max, ..
            }) => return mixture_value(components, held, *max),
            Some(Other::Samples(samples)) => return sample_value(samples, held),
        }
        let p = probability.clamp(0.0, 1.0) * f64::from(ONE);
        let above = self
            .knots
            .partition_point(|knot| f64::from(knot.p_ppm) <= p)
            .clamp(1, self.knots.len() - 1);
        let (low, high) = (self.knots[above - 1], self.knots[above]);
        let share = (p - f64::from(low.p_ppm)) / f64::from(high.p_ppm - low.p_ppm);
        let (from, to) = (
            libm::log1p(low.value as f64),
            libm::log1p(high.value as f64),
        );
        let value = libm::round(libm::expm1(from + (to - from) * share)) as u64;
        value.clamp(low.value, high.value)
    }
}

/// The probability in millionths that a label names; at most four digits after the point.
fn p_ppm(label: &str) -> Option<u32> {
    if let Some(end) = [("min", 0), ("max", ONE)]
        .into_iter()
        .find(|end| end.0 == label)
    {
        return Some(end.1);
    }
    let (whole, part) = match label.strip_prefix('p')?.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, part)) => (whole, part),
        None => (label.strip_prefix('p')?, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 4 || !digits(whole) || !digits(part) {
        return None;
    }
    let ppm = format!("{whole}{part:0<4}").parse::<u32>().ok()?;
    (ppm > 0 && ppm < ONE).then_some(ppm)
}

/// The label of a probability in millionths, the shortest that [`p_ppm`] reads back.
pub(super) fn label(p_ppm: u32) -> String {
    match p_ppm {
        0 => "min".to_owned(),
        ONE => "max".to_owned(),
        _ => {
            let text = format!("p{}.{:04}", p_ppm / 10_000, p_ppm % 10_000);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn table(json: &str) -> Result<Quantiles, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn labels_are_read_and_written() {
        for (label_text, ppm) in [
            ("min", 0),
            ("p1", 10_000),
            ("p50", 500_000),
            ("p99.9", 999_000),
            ("p99.9999", 999_999),
            ("max", 1_000_000),
        ] {
            assert_eq!(p_ppm(label_text), Some(ppm));
            assert_eq!(label(ppm), label_text);
        }
        for bad in [
            "",
            "p",
            "50",
            "p100",
            "p0",
            "p99.",
            "p.5",
            "p99.99999",
            "p-1",
            "p+1",
            "q50",
            "p101",
        ] {
            assert_eq!(p_ppm(bad), None, "{bad}");
        }
    }

    #[test]
    fn knots_are_exact_and_the_middle_is_geometric() {
        let q = table(r#"{"unit":"ms","quantiles":{"min":0,"p50":99,"max":9999}}"#).unwrap();
        assert_eq!([0.0, 0.5, 1.0].map(|p| q.value(p)), [0, 99, 9999]);
        // sqrt(1 * 100) - 1 and sqrt(100 * 10000) - 1
        assert_eq!([0.25, 0.75].map(|p| q.value(p)), [9, 999]);
        assert_eq!([-1.0, 2.0].map(|p| q.value(p)), [0, 9999]);
    }

    #[test]
    fn equal_neighbours_make_an_atom() {
        let q = table(r#"{"unit":"ms","quantiles":{"min":5,"p90":5,"max":7}}"#).unwrap();
        assert_eq!([0.1, 0.5, 0.89].map(|p| q.value(p)), [5, 5, 5]);
    }

    #[test]
    fn faults_are_named() {
        for (json, part) in [
            (
                r#"{"unit":"ms","quantiles":{"min":0,"q50":1,"max":2}}"#,
                "\"q50\"",
            ),
            (r#"{"unit":"ms","quantiles":{"min":0}}"#, "no max"),
            (r#"{"unit":"ms","quantiles":{"max":0}}"#, "no min"),
            (r#"{"unit":"ms"}"#, "no min"),
            (
                r#"{"unit":"ms","quantiles":{"min":3,"max":2}}"#,
                "max is 2, below min with 3",
            ),
            (
                r#"{"unit":"ms","quantiles":{"min":0,"max":2},"assumed_quantiles":{"max":2}}"#,
                "max is given twice",
            ),
            (
                r#"{"unit":"ms","quantiles":{"min":0,"max":100000000001}}"#,
                "expected at most 100000000000",
            ),
            (
                r#"{"unit":"s","quantiles":{"min":0,"max":1}}"#,
                "unknown variant",
            ),
            (
                r#"{"unit":"ms","quantiles":{"min":0,"max":1},"mean":3}"#,
                "unknown field `mean`",
            ),
        ] {
            let error = table(json).unwrap_err();
            assert!(error.contains(part), "{error} does not name {part}");
        }
    }
}
