//! What every figure carries: a point, an interval whose sides may be missing, a status and the reason for it.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// A closed interval `[lo, up]`; a side that cannot be estimated is `None` and prints as `-`, never as 0 or infinity.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Interval<T = f64> {
    /// Lower limit.
    pub lo: Option<T>,
    /// Upper limit.
    pub up: Option<T>,
}

impl<T> Interval<T> {
    /// `[lo, up]`.
    pub const fn new(lo: T, up: T) -> Self {
        Self {
            lo: Some(lo),
            up: Some(up),
        }
    }

    /// Neither side.
    pub const fn none() -> Self {
        Self { lo: None, up: None }
    }

    /// `Ok` with both sides, `OneSided` with one, `NotEstimable` with none.
    pub const fn status(&self) -> Status {
        match (&self.lo, &self.up) {
            (Some(_), Some(_)) => Status::Ok,
            (None, None) => Status::NotEstimable,
            _ => Status::OneSided,
        }
    }
}

impl fmt::Display for Interval<f64> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |limit: Option<f64>| limit.map_or_else(|| "-".to_owned(), text);
        write!(out, "[{}, {}]", side(self.lo), side(self.up))
    }
}

impl fmt::Display for Interval<u64> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side =
            |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        write!(out, "[{}, {}]", side(self.lo), side(self.up))
    }
}

impl Serialize for Interval<f64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Interval", 2)?;
        fields.serialize_field("lo", &self.lo.map(json))?;
        fields.serialize_field("up", &self.up.map(json))?;
        fields.end()
    }
}

impl Serialize for Interval<u64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Interval", 2)?;
        fields.serialize_field("lo", &self.lo)?;
        fields.serialize_field("up", &self.up)?;
        fields.end()
    }
}

/// How far a figure can be trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The interval treats correlated samples as independent.
    AssumesIid,
    /// Beyond the data, by a fitted tail.
    Extrapolated,
    /// No figure: the data cannot carry one.
    NotEstimable,
    /// Point and both limits.
    Ok,
    /// One limit is missing.
    OneSided,
}

impl Status {
    /// The status's name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AssumesIid => "assumes_iid",
            Self::Extrapolated => "extrapolated",
            Self::NotEstimable => "not_estimable",
            Self::Ok => "ok",
            Self::OneSided => "one_sided",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Why a figure or one of its limits is missing, or must be read with care.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "code")]
pub enum Reason {
    /// Every sample is censored.
    AllCensored,
    /// The survival curve ends above the level asked for.
    BeyondLastEvent {
        /// The largest recorded time.
        at_ms: u64,
    },
    /// Too few independent sessions.
    FewSessions {
        /// Sessions there are.
        have: u64,
        /// Sessions needed.
        need: u64,
    },
    /// One value holds too large a share of the samples.
    Heaped,
    /// Too few samples.
    NTooSmall {
        /// Samples there are.
        have: u64,
        /// Samples needed.
        need: u64,
    },
    /// No sample at all.
    NoData,
    /// A tail that may not be extrapolated.
    RefusedExtrapolation,
    /// All sessions agree, so that their spread says nothing.
    ZeroVariance,
}

impl Reason {
    /// The reason's code in output.
    pub const fn code(self) -> &'static str {
        match self {
            Self::AllCensored => "all_censored",
            Self::BeyondLastEvent { .. } => "beyond_last_event",
            Self::FewSessions { .. } => "few_sessions",
            Self::Heaped => "heaped",
            Self::NTooSmall { .. } => "n_too_small",
            Self::NoData => "no_data",
            Self::RefusedExtrapolation => "refused_extrapolation",
            Self::ZeroVariance => "zero_variance",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BeyondLastEvent { at_ms } => write!(out, "beyond_last_event(at={at_ms})"),
            Self::FewSessions { have, need } => {
                write!(
                    out,
                    "few_sessions(need={need}, {} more)",
                    need.saturating_sub(have)
                )
            }
            Self::NTooSmall { have, need } => {
                write!(
                    out,
                    "n_too_small(need={need}, {} more)",
                    need.saturating_sub(have)
                )
            }
            other => out.write_str(other.code()),
        }
    }
}

/// A figure with its sample size, interval, status and reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Samples (or runs, where the unit is the run) behind the figure.
    pub n: u64,
    /// The figure itself, `None` when not estimable.
    pub point: Option<f64>,
    /// Its limits.
    pub interval: Interval,
    /// How far it can be trusted.
    pub status: Status,
    /// Why it, or a limit, is missing.
    pub reason: Option<Reason>,
}

impl Estimate {
    /// A figure that the data cannot carry.
    pub const fn missing(n: u64, reason: Reason) -> Self {
        Self {
            n,
            point: None,
            interval: Interval::none(),
            status: Status::NotEstimable,
            reason: Some(reason),
        }
    }

    /// A figure whose status follows from the sides of its interval.
    pub const fn with_interval(n: u64, point: f64, interval: Interval) -> Self {
        Self {
            n,
            point: Some(point),
            interval,
            status: interval.status(),
            reason: None,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.point.map_or_else(|| "-".to_owned(), text);
        write!(
            out,
            "{point} {} n={} {}",
            self.interval, self.n, self.status
        )?;
        self.reason
            .map_or(Ok(()), |reason| write!(out, " ({reason})"))
    }
}

impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Estimate", 5)?;
        fields.serialize_field("n", &self.n)?;
        fields.serialize_field("point", &self.point.map(json))?;
        fields.serialize_field("interval", &self.interval)?;
        fields.serialize_field("status", &self.status)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.end()
    }
}

/// `value` rounded to `digits` significant decimal digits. Twelve absorb the noise of the last bits.
pub fn round_to(value: f64, digits: usize) -> f64 {
    if !value.is_finite() {
        return value;
    }
    let precision = digits.max(1) - 1;
    // The round trip through text is correctly rounded; scaling by powers of ten would not be.
    format!("{value:.precision$e}").parse().unwrap_or(value)
}

/// `value` as JSON carries it: 12 significant digits.
pub fn json(value: f64) -> f64 {
    round_to(value, 12)
}

/// `value` as text carries it: 6 significant digits, without an exponent between 1e-5 and 1e12.
pub fn text(value: f64) -> String {
    let rounded = round_to(value, 6);
    let size = rounded.abs();
    if size == 0.0 || (1e-5..1e12).contains(&size) || !size.is_finite() {
        format!("{rounded}")
    } else {
        format!("{rounded:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_side_is_a_dash_and_a_null() {
        let interval = Interval {
            lo: Some(0.001_234_567_89),
            up: None,
        };
        assert_eq!(interval.to_string(), "[0.00123457, -]");
        assert_eq!(interval.status(), Status::OneSided);
        let as_json = serde_json::to_string(&interval).unwrap_or_default();
        assert_eq!(as_json, r#"{"lo":0.00123456789,"up":null}"#);
    }

    #[test]
    fn text_has_six_digits_and_json_twelve() {
        for (value, shown, kept) in [
            (1.0 / 3.0, "0.333333", 0.333_333_333_333),
            (0.1 + 0.2, "0.3", 0.3),
            (2_995.0, "2995", 2_995.0),
            (1.234_567_8e-7, "1.23457e-7", 1.234_567_8e-7),
            (0.0, "0", 0.0),
        ] {
            assert_eq!(text(value), shown);
            assert!(json(value).to_bits() == f64::to_bits(kept), "{value}");
        }
    }

    #[test]
    fn a_reason_says_what_is_needed() {
        let reason = Reason::NTooSmall {
            have: 800,
            need: 3_688,
        };
        assert_eq!(reason.to_string(), "n_too_small(need=3688, 2888 more)");
        let missing = Estimate::missing(0, Reason::NoData);
        assert_eq!(missing.to_string(), "- [-, -] n=0 not_estimable (no_data)");
    }
}
