//! Exact decimal numbers as settings files and headers write them; no float decides anything.

use core::fmt;

/// A finite decimal number, exact: `digits / 10^scale`.
///
/// Magnitudes beyond 128 bits are held at the bound, which is beyond every limit they are compared with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decimal {
    digits: i128,
    scale: u32,
}

/// The largest power of ten that 128 bits hold.
const MAX_SCALE: u32 = 38;
/// Beyond this power of ten a double is infinite, so the harnesses see no number.
const MAX_EXPONENT: i64 = 308;

impl Decimal {
    /// A whole number.
    pub const fn whole(number: i64) -> Self {
        Self {
            digits: number as i128,
            scale: 0,
        }
    }

    /// Reads `12`, `-3`, `12.5`, `.5` or `1e3`, blanks around it ignored; `None` when it is no finite number.
    ///
    /// ```
    /// use policysim_policy::Decimal;
    /// assert_eq!(Decimal::parse("1e3").and_then(Decimal::as_whole), Some(1000));
    /// assert_eq!(Decimal::parse("12.5").and_then(Decimal::as_whole), None);
    /// assert_eq!(Decimal::parse("fast"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        if whole.is_empty() && fraction.is_empty() || !digits.clone().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let mut value: i128 = 0;
        for digit in digits {
            value = value
                .saturating_mul(10)
                .saturating_add(i128::from(digit - b'0'));
        }
        let power = exponent.saturating_sub(fraction.len() as i64);
        if value != 0 && power > MAX_EXPONENT {
            return None;
        }
        let mut decimal = Self::scaled(value, power);
        if negative {
            decimal.digits = -decimal.digits;
        }
        Some(decimal)
    }

    /// `value * 10^power` for a value that is not negative.
    fn scaled(value: i128, power: i64) -> Self {
        if value == 0 {
            return Self {
                digits: 0,
                scale: 0,
            };
        }
        if power >= 0 {
            let mut digits = value;
            for _ in 0..power {
                digits = digits.saturating_mul(10);
            }
            return Self { digits, scale: 0 };
        }
        let mut digits = value;
        let mut scale = power.unsigned_abs();
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        // Smaller than 128 bits resolve: what stays is that it is not zero and not whole.
        while scale > u64::from(MAX_SCALE) {
            digits = (digits / 10).max(1);
            scale -= 1;
        }
        Self {
            digits,
            scale: scale as u32,
        }
    }

    /// The number itself when it is whole, held within 64 bits.
    pub fn as_whole(self) -> Option<i64> {
        self.as_whole_wide().map(clamp_i64)
    }

    /// The number itself when it is whole, held within 128 bits.
    pub(crate) fn as_whole_wide(self) -> Option<i128> {
        (self.scale == 0).then_some(self.digits)
    }

    /// The largest whole number not above it, held within 64 bits.
    pub fn floor(self) -> i64 {
        clamp_i64(self.digits.div_euclid(power_of_ten(self.scale)))
    }

    /// The smallest whole number not below it, held within 64 bits.
    pub fn ceil(self) -> i64 {
        let unit = power_of_ten(self.scale);
        let floor = self.digits.div_euclid(unit);
        clamp_i64(if self.digits.rem_euclid(unit) == 0 {
            floor
        } else {
            floor.saturating_add(1)
        })
    }

    /// The number `factor` times as large, exact unless it outgrows 128 bits.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        let digits = self.digits.saturating_mul(i128::from(factor));
        let mut product = Self::scaled(digits.saturating_abs(), -i64::from(self.scale));
        if digits < 0 {
            product.digits = -product.digits;
        }
        product
    }
}

impl fmt::Display for Decimal {
    /// The digits without an exponent: `12.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits.unsigned_abs();
        let unit = power_of_ten(self.scale).unsigned_abs();
        let sign = if self.digits < 0 { "-" } else { "" };
        write!(f, "{sign}{}", digits / unit)?;
        if self.scale > 0 {
            let width = self.scale as usize;
            write!(f, ".{:0width$}", digits % unit)?;
        }
        Ok(())
    }
}

fn power_of_ten(scale: u32) -> i128 {
    10_i128.pow(scale.min(MAX_SCALE))
}

fn clamp_i64(number: i128) -> i64 {
    number.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[track_caller]
    fn check(text: &str, floor: i64, ceil: i64, whole: Option<i64>) {
        let Some(decimal) = Decimal::parse(text) else {
            panic!("{text} was not read as a number");
        };
        assert_eq!(
            (decimal.floor(), decimal.ceil(), decimal.as_whole()),
            (floor, ceil, whole),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_exact() {
        check("12", 12, 12, Some(12));
        check(" -3 ", -3, -3, Some(-3));
        check("12.5", 12, 13, None);
        check("-12.5", -13, -12, None);
        check("12.0", 12, 12, Some(12));
        check("1e3", 1000, 1000, Some(1000));
        check("1500E-2", 15, 15, Some(15));
        check(".25", 0, 1, None);
        check("1e30", i64::MAX, i64::MAX, Some(i64::MAX));
        check("1e-60", 0, 1, None);
        check("-1e-60", -1, 0, None);
    }

    #[test]
    fn numbers_print_in_full() {
        for (text, shown) in [
            ("12.50", "12.5"),
            ("-0.05", "-0.05"),
            ("1e3", "1000"),
            ("-7", "-7"),
        ] {
            let shown_again = Decimal::parse(text).map(|decimal| decimal.to_string());
            assert_eq!(shown_again.as_deref(), Some(shown));
        }
    }

    #[test]
    fn other_text_is_no_number() {
        for text in [
            "", " ", "fast", "1.2.3", "0x10", "Infinity", "1e400", "1e", ".", "--1", "1 2",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn seconds_become_milliseconds_rounded_up() {
        assert_eq!(Decimal::parse("1500.2").map(Decimal::ceil), Some(1501));
        assert_eq!(
            Decimal::parse("0.0001").map(|d| d.times(1000).ceil()),
            Some(1)
        );
        assert_eq!(
            Decimal::parse("7").map(|d| d.times(1000).ceil()),
            Some(7000)
        );
    }
}
