//! Probabilities as users write them: decimal strings, kept as exact ratios of integers.
//!
//! `0.07 * 100` is `7.000000000000001` in binary, so a rank computed from an `f64` can be one off. Every rank and
//! every "how many samples are expected above" is therefore integer arithmetic on a [`Prob`].

use std::fmt;
use std::str::FromStr;

use super::error::StatsError;

/// The longest fraction that a [`Prob`] can hold; `10^18` is the largest power of ten below `2^63`.
const MAX_DIGITS: usize = 18;

/// A probability in `[0, 1]`: `num / den` with `den` a power of ten, in lowest such form.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Prob {
    num: u64,
    den: u64,
}

impl Prob {
    /// 0.5, the median.
    pub const P50: Self = Self { num: 5, den: 10 };
    /// 0.9.
    pub const P90: Self = Self { num: 9, den: 10 };
    /// 0.95.
    pub const P95: Self = Self { num: 95, den: 100 };
    /// 0.99.
    pub const P99: Self = Self { num: 99, den: 100 };
    /// 0.999.
    pub const P999: Self = Self {
        num: 999,
        den: 1_000,
    };

    /// The probability `num / den`, for a `den` that is a power of ten.
    ///
    /// # Errors
    /// [`StatsError::Probability`] when `den` is not a power of ten up to `10^18`, or `num > den`.
    pub fn from_ratio(num: u64, den: u64) -> Result<Self, StatsError> {
        let is_power = den.checked_ilog10().is_some_and(|log| {
            log as usize <= MAX_DIGITS && 10u64.checked_pow(log).is_some_and(|power| power == den)
        });
        if !is_power || num > den {
            return Err(StatsError::Probability(format!("{num}/{den}")));
        }
        Ok(Self { num, den }.reduced())
    }

    const fn reduced(mut self) -> Self {
        while self.den > 1 && self.num.is_multiple_of(10) {
            self.num /= 10;
            self.den /= 10;
        }
        self
    }

    /// Numerator and denominator, the latter a power of ten.
    pub const fn parts(self) -> (u64, u64) {
        (self.num, self.den)
    }

    /// The probability nearest to `value` with 15 decimals, for limits that were computed; `None` outside `[0, 1]`.
    pub fn nearest(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then(|| {
            let den = 10u64.pow(15);
            Self {
                num: libm::round(value * den as f64) as u64,
                den,
            }
            .reduced()
        })
    }

    /// `1 - p`, exact.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self {
            num: self.den - self.num,
            den: self.den,
        }
        .reduced()
    }

    /// `p / 2`, exact unless that would need a nineteenth digit, which is then cut.
    #[must_use]
    pub const fn half(self) -> Self {
        if self.num.is_multiple_of(2) {
            Self {
                num: self.num / 2,
                den: self.den,
            }
            .reduced()
        } else if self.den < 10u64.pow(MAX_DIGITS as u32) {
            Self {
                num: self.num * 5,
                den: self.den * 10,
            }
            .reduced()
        } else {
            Self {
                num: self.num / 2,
                den: self.den,
            }
            .reduced()
        }
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        // Both parts are below 2^63; the division of two correctly rounded operands is within one unit in the last
        // place, and exact ratios such as 5/100 round to the literal 0.05.
        self.num as f64 / self.den as f64
    }

    /// The nearest rank of the quantile among `n` sorted values: `max(1, ceil(n p))`, or 0 when `n` is 0.
    pub fn rank(self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let product = u128::from(n) * u128::from(self.num);
        let rank = product.div_ceil(u128::from(self.den));
        // ceil(n p) <= n because p <= 1
        (rank as u64).max(1)
    }

    /// `n (1 - p)`: how many of `n` samples are expected above the quantile.
    pub fn expected_above(self, n: u64) -> f64 {
        let above = u128::from(n) * u128::from(self.den - self.num);
        // split off the whole part so that integers come out as integers
        let (whole, part) = (above / u128::from(self.den), above % u128::from(self.den));
        whole as f64 + part as f64 / self.den as f64
    }

    /// Whether at least one of `n` samples is expected above the quantile, decided exactly: `n (1 - p) >= 1`.
    pub fn reaches_above(self, n: u64) -> bool {
        u128::from(n) * u128::from(self.den - self.num) >= u128::from(self.den)
    }

    /// Reads the label of a percentile: `p99.9` or `99.9` for 0.999.
    ///
    /// # Errors
    /// [`StatsError::Probability`] when the text is not a percentile in `[0, 100]`.
    pub fn from_percentile(text: &str) -> Result<Self, StatsError> {
        let wrong = || StatsError::Probability(text.to_owned());
        let digits = text.strip_prefix('p').unwrap_or(text);
        let (num, den) = parse_decimal(digits).ok_or_else(wrong)?;
        let den = den
            .checked_mul(100)
            .filter(|&den| den <= 10u64.pow(MAX_DIGITS as u32));
        Self::from_ratio(num, den.ok_or_else(wrong)?).map_err(|_| wrong())
    }

    /// The label of the quantile as a percentile: `p99.9` for 0.999.
    pub fn percentile_label(self) -> String {
        let scaled = u128::from(self.num) * 100;
        let den = u128::from(self.den);
        let (whole, part) = (scaled / den, scaled % den);
        if part == 0 {
            return format!("p{whole}");
        }
        let width = self.den.ilog10() as usize;
        let digits = format!("{part:0width$}");
        format!("p{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// `12.5` as `(125, 10)`; `None` for anything but digits with at most one point.
fn parse_decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !all_digits(whole) || !all_digits(part) {
        return None;
    }
    let part = part.trim_end_matches('0');
    if part.len() > MAX_DIGITS {
        return None;
    }
    let den = 10u64.pow(part.len() as u32);
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let part: u64 = if part.is_empty() {
        0
    } else {
        part.parse().ok()?
    };
    Some((whole.checked_mul(den)?.checked_add(part)?, den))
}

impl FromStr for Prob {
    type Err = StatsError;

    /// Reads a decimal such as `0.999`, `.5` or `1`.
    fn from_str(text: &str) -> Result<Self, StatsError> {
        parse_decimal(text)
            .and_then(|(num, den)| Self::from_ratio(num, den).ok())
            .ok_or_else(|| StatsError::Probability(text.to_owned()))
    }
}

impl fmt::Display for Prob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            return write!(out, "{}", self.num);
        }
        let width = self.den.ilog10() as usize;
        write!(out, "0.{:0width$}", self.num)
    }
}

/// A confidence level: a [`Prob`] strictly between 0 and 1.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Level(Prob);

impl Level {
    /// 95 %, the level of every figure that does not say otherwise.
    pub const P95: Self = Self(Prob::P95);
    /// 99 %.
    pub const P99: Self = Self(Prob::P99);

    /// The level `confidence`.
    ///
    /// # Errors
    /// [`StatsError::Level`] for 0 and 1, at which no limit exists.
    pub fn new(confidence: Prob) -> Result<Self, StatsError> {
        if confidence.num == 0 || confidence.num == confidence.den {
            return Err(StatsError::Level(confidence.to_string()));
        }
        Ok(Self(confidence))
    }

    /// The confidence, `1 - a`.
    pub const fn confidence(self) -> Prob {
        self.0
    }

    /// The level with twice the error, whose two-sided limits are one-sided ones at this level.
    ///
    /// # Errors
    /// [`StatsError::Level`] when twice the error is 1 or more.
    pub fn doubled(self) -> Result<Self, StatsError> {
        let error = self.0.complement();
        let twice = error.num.checked_mul(2).filter(|&twice| twice < error.den);
        let wrong = || StatsError::Level(self.0.to_string());
        Self::new(
            Prob {
                num: twice.ok_or_else(wrong)?,
                den: error.den,
            }
            .complement(),
        )
    }

    /// The level whose error is this one's divided by `claims`, cut to a decimal so that it is never larger.
    ///
    /// # Errors
    /// [`StatsError::Level`] when nothing of the error is left.
    pub fn shared(self, claims: u64) -> Result<Self, StatsError> {
        if claims <= 1 {
            return Ok(self);
        }
        let error = self.0.complement();
        // as many digits as keep both parts below 2^53, so that they convert to floating point exactly
        let den = error.den.max(10u64.pow(15));
        let num = error.num * (den / error.den) / claims;
        Self::new(Prob { num, den }.reduced().complement())
    }

    /// The error probability `a`, split evenly over `claims` simultaneous claims (at least one).
    pub fn alpha(self, claims: u64) -> f64 {
        self.0.complement().to_f64() / claims.max(1) as f64
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::P95
    }
}

impl FromStr for Level {
    type Err = StatsError;

    fn from_str(text: &str) -> Result<Self, StatsError> {
        Self::new(text.parse()?)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.0.percentile_label();
        write!(out, "{} %", label.trim_start_matches('p'))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn p(text: &str) -> Prob {
        text.parse().unwrap()
    }

    #[test]
    fn an_error_is_divided_without_growing() {
        let alpha = |claims| Level::P95.shared(claims).unwrap().alpha(1);
        assert!((alpha(2) - 0.025).abs() < 1e-18);
        assert!(alpha(3) * 3.0 <= 0.05 && alpha(3) * 3.0 > 0.05 - 1e-12);
        assert_eq!(Level::P95.shared(1).unwrap(), Level::P95);
        assert!(Level::P95.shared(u64::MAX).is_err());
    }

    #[test]
    fn ranks_are_exact_where_binary_is_not() {
        assert_eq!(p("0.07").rank(100), 7);
        assert_eq!(p("0.999").rank(1000), 999);
        assert_eq!(p("0.95").rank(20), 19);
        assert_eq!(p("0").rank(5), 1);
        assert_eq!(p("1").rank(5), 5);
        assert_eq!(p("0.5").rank(0), 0);
        assert_eq!(p("0.5").rank(u64::MAX), 1 << 63);
    }

    #[test]
    fn text_is_read_and_written_back() {
        for (text, shown, label) in [
            ("0.999", "0.999", "p99.9"),
            (".5", "0.5", "p50"),
            ("0.9500", "0.95", "p95"),
            ("1.0", "1", "p100"),
            ("0", "0", "p0"),
            ("0.0001", "0.0001", "p0.01"),
            ("0.99995", "0.99995", "p99.995"),
        ] {
            assert_eq!(p(text).to_string(), shown, "{text}");
            assert_eq!(p(text).percentile_label(), label, "{text}");
            assert_eq!(Prob::from_percentile(label).unwrap(), p(text), "{label}");
        }
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for text in [
            "",
            ".",
            "1.1",
            "-0.5",
            "0.5e-1",
            "NaN",
            "0,5",
            "2",
            "0.1234567890123456789",
            "+1",
            " 0.5",
        ] {
            assert!(text.parse::<Prob>().is_err(), "{text:?}");
        }
        assert!("1".parse::<Level>().is_err());
        assert!("0".parse::<Level>().is_err());
    }

    #[test]
    fn whether_a_sample_reaches_above_is_exact() {
        assert!(p("0.95").reaches_above(20));
        assert!(!p("0.95").reaches_above(19));
        assert!(p("0.9").reaches_above(10));
        assert!(!p("1").reaches_above(u64::MAX));
        assert!((p("0.9").expected_above(12) - 1.2).abs() < 1e-15);
    }

    #[test]
    fn a_level_says_its_error_and_its_name() {
        assert!((Level::P95.alpha(1) - 0.05).abs() < 1e-18);
        assert!((Level::P95.alpha(2) - 0.025).abs() < 1e-18);
        assert_eq!(Level::P95.to_string(), "95 %");
        assert_eq!("0.999".parse::<Level>().unwrap().to_string(), "99.9 %");
    }
}
