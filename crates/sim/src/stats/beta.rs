//! The regularised incomplete beta function and its inverse, the one engine behind the limits of a rate.
//!
//! Forward: continued fraction (modified Lentz) with the prefactor in Loader's (2000) saddle-point form, which keeps
//! full precision for shapes up to 1e7, where differences of `lgamma` lose half the digits. Inverse: Newton steps on
//! the logarithm of the tail, in `ln x`, inside a bracket.

use super::error::StatsError;

/// Largest number of terms of the continued fraction; it needs a few times the root of the larger shape.
const MAX_TERMS: usize = 200_000;
/// Largest number of steps of the inverse.
const MAX_STEPS: usize = 200;
/// Relative size, in `ln x`, of a step that no longer matters.
const SETTLED: f64 = 1e-15;
/// `ln sqrt(2 pi)`.
const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;

/// Both tails of a beta distribution at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// `I_x(a, b) = P(X <= x)`.
    pub lower: f64,
    /// `1 - I_x(a, b) = P(X > x)`, computed directly when it is the smaller one.
    pub upper: f64,
    /// `x^a (1-x)^b / B(a, b)`.
    weight: f64,
}

/// A point of the unit interval with its complement; each is precise when it is the small one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The point.
    pub x: f64,
    /// `1 - x`.
    pub y: f64,
}

impl Point {
    /// The point `x` with the nearest complement.
    pub fn new(x: f64) -> Self {
        Self { x, y: 1.0 - x }
    }

    fn from_ln(ln_x: f64) -> Self {
        Self {
            x: libm::exp(ln_x),
            y: -libm::expm1(ln_x),
        }
    }
}

/// Coefficients of the asymptotic series of [`stirling_error`]; at 15 the first term left out is below 1e-17.
const STIRLING_TERMS: [f64; 6] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1_260.0,
    -1.0 / 1_680.0,
    1.0 / 1_188.0,
    -691.0 / 360_360.0,
];

/// Error of Stirling's formula, `ln n! - ln(sqrt(2 pi n) (n/e)^n)`, for real `n > 0`.
fn stirling_error(n: f64) -> f64 {
    if n < 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * libm::log(n) + n - LN_SQRT_2PI;
    }
    let square = n * n;
    STIRLING_TERMS
        .iter()
        .rev()
        .fold(0.0, |sum, term| sum / square + term)
        / n
}

/// Loader's deviance `x ln(x / mean) + mean - x`, without cancellation where `x` is near `mean`.
fn deviance(x: f64, mean: f64) -> f64 {
    let distance = x - mean;
    if distance.abs() >= 0.1 * (x + mean) {
        return x * libm::log(x / mean) - distance;
    }
    let ratio = distance / (x + mean);
    let mut sum = distance * ratio;
    let mut power = 2.0 * x * ratio;
    for odd in (3..2_000).step_by(2) {
        power *= ratio * ratio;
        let next = sum + power / f64::from(odd);
        if next.to_bits() == sum.to_bits() {
            break;
        }
        sum = next;
    }
    sum
}

/// `x^a y^b / B(a, b)` in saddle-point form.
fn weight(a: f64, b: f64, at: Point) -> f64 {
    let n = a + b;
    let exponent = stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * at.x)
        - deviance(b, n * at.y);
    libm::exp(exponent) * (a / n * b / std::f64::consts::TAU).sqrt()
}

/// The continued fraction of `I_x(a, b)`, for `x` below the mean.
fn continued_fraction(a: f64, b: f64, x: f64) -> Result<f64, StatsError> {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..=MAX_TERMS {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let change = d * c;
        value *= change;
        if (change - 1.0).abs() < 3e-16 {
            return Ok(value);
        }
    }
    Err(StatsError::NotConverged {
        function: "incomplete beta",
        arguments: format!("{a}, {b}, {x}"),
        iterations: MAX_TERMS,
    })
}

/// Whether `value` is zero, negative or not a number.
pub(super) fn not_positive(value: f64) -> bool {
    value.is_nan() || value <= 0.0
}

fn check_shapes(a: f64, b: f64) -> Result<(), StatsError> {
    for (what, shape) in [("first beta shape", a), ("second beta shape", b)] {
        if not_positive(shape) || shape.is_infinite() {
            return Err(StatsError::Range {
                what,
                value: shape.to_string(),
                expected: "a finite number above 0",
            });
        }
    }
    Ok(())
}

/// Both tails of the beta distribution with shapes `a`, `b` at a point given with its complement.
///
/// # Errors
/// [`StatsError::Range`] for a shape that is not finite and positive, [`StatsError::NotConverged`] when the continued
/// fraction does not settle (not seen for shapes up to 1e9).
pub fn tails(a: f64, b: f64, at: Point) -> Result<Tails, StatsError> {
    check_shapes(a, b)?;
    if not_positive(at.x) {
        return Ok(Tails {
            lower: 0.0,
            upper: 1.0,
            weight: 0.0,
        });
    }
    if not_positive(at.y) {
        return Ok(Tails {
            lower: 1.0,
            upper: 0.0,
            weight: 0.0,
        });
    }
    let weight = weight(a, b, at);
    if at.x <= (a + 1.0) / (a + b + 2.0) {
        let lower = (weight * continued_fraction(a, b, at.x)? / a).min(1.0);
        Ok(Tails {
            lower,
            upper: 1.0 - lower,
            weight,
        })
    } else {
        let upper = (weight * continued_fraction(b, a, at.y)? / b).min(1.0);
        Ok(Tails {
            lower: 1.0 - upper,
            upper,
            weight,
        })
    }
}

/// Which tail a probability belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Lower,
    Upper,
}

/// The point below which the beta distribution has probability `p`.
///
/// # Errors
/// As [`tails`], and [`StatsError::NotConverged`] when 200 steps do not settle.
pub fn quantile(a: f64, b: f64, p: f64) -> Result<Point, StatsError> {
    if p > 0.5 {
        solve(a, b, 1.0 - p, Side::Upper)
    } else {
        solve(a, b, p, Side::Lower)
    }
}

/// The point above which the beta distribution has probability `q`; precise for small `q`, where `1 - q` is not.
///
/// # Errors
/// As [`quantile`].
pub fn quantile_upper(a: f64, b: f64, q: f64) -> Result<Point, StatsError> {
    if q > 0.5 {
        solve(a, b, 1.0 - q, Side::Lower)
    } else {
        solve(a, b, q, Side::Upper)
    }
}

fn solve(a: f64, b: f64, target: f64, side: Side) -> Result<Point, StatsError> {
    check_shapes(a, b)?;
    if not_positive(target) {
        return Ok(if side == Side::Lower {
            Point { x: 0.0, y: 1.0 }
        } else {
            Point { x: 1.0, y: 0.0 }
        });
    }
    let ln_target = libm::log(target);
    // ln x between the smallest positive number and 1
    let (mut left, mut right) = (-745.0_f64, 0.0_f64);
    let mut ln_x = libm::log(a / (a + b));
    let mut step = f64::INFINITY;
    for _ in 0..MAX_STEPS {
        let at = Point::from_ln(ln_x);
        let found = tails(a, b, at)?;
        let (tail, sign) = match side {
            Side::Lower => (found.lower, 1.0),
            Side::Upper => (found.upper, -1.0),
        };
        // positive when the point lies too far right
        let excess = sign * (libm::log(tail) - ln_target);
        if excess > 0.0 {
            right = ln_x;
        } else {
            left = ln_x;
        }
        let newton = ln_x - excess * tail * at.y / found.weight;
        // asked before the bracket, whose nearer end the current point is
        if (newton - ln_x).abs() <= SETTLED * ln_x.abs() {
            return Ok(Point::from_ln(newton));
        }
        let inside = newton > left && newton < right;
        let next = if inside {
            newton
        } else {
            left + (right - left) / 2.0
        };
        step = (next - ln_x).abs();
        ln_x = next;
        if right - left <= SETTLED * ln_x.abs() {
            return Ok(Point::from_ln(ln_x));
        }
    }
    // The last bits of the forward function can keep the steps alive without moving the answer.
    if step <= 1e-11 * ln_x.abs() {
        return Ok(Point::from_ln(ln_x));
    }
    Err(StatsError::NotConverged {
        function: "inverse incomplete beta",
        arguments: format!("{a}, {b}, {target}"),
        iterations: MAX_STEPS,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn close(found: f64, expected: f64, relative: f64) {
        assert!(
            (found - expected).abs() <= relative * expected.abs(),
            "{found} is not {expected}"
        );
    }

    #[test]
    fn closed_forms() {
        for n in [1.0, 2.5, 10.0, 1e3, 1e6, 1e7] {
            for x in [1e-9, 1e-4, 0.03, 0.5, 0.9] {
                let found = tails(1.0, n, Point::new(x)).unwrap();
                close(found.lower, -libm::expm1(n * libm::log1p(-x)), 1e-9);
                let power = libm::exp(n * libm::log(x));
                if power > 1e-290 {
                    close(tails(n, 1.0, Point::new(x)).unwrap().lower, power, 1e-9);
                }
            }
        }
        close(tails(0.5, 0.5, Point::new(0.5)).unwrap().lower, 0.5, 1e-14);
    }

    #[test]
    fn forward_agrees_with_statrs() {
        use statrs::function::beta::beta_reg;
        // statrs takes differences of lgamma, whose rounding is about 1e-16 times their size
        for (a, b, tolerance) in [
            (0.35, 99.9, 1e-11),
            (3.0, 700.0, 1e-11),
            (40.0, 60.0, 1e-11),
            (12.5, 0.7, 1e-11),
            (3_000.0, 5_000.0, 1e-9),
            (5.0, 62_950.0, 1e-9),
        ] {
            let mean: f64 = a / (a + b);
            let sd = (mean * (1.0 - mean) / (a + b + 1.0)).sqrt();
            for offset in [-2.0, -0.5, 0.0, 0.5, 2.0] {
                let x = mean + offset * sd;
                if x > 0.0 && x < 1.0 {
                    close(
                        tails(a, b, Point::new(x)).unwrap().lower,
                        beta_reg(a, b, x),
                        tolerance,
                    );
                }
            }
        }
    }

    #[test]
    fn inverse_returns_for_large_shapes() {
        // forward(inverse(p)) = p is the definition; these shapes make other inverses hang or drift
        for (a, b) in [
            (2.0, 1e7),
            (1.0, 1e6),
            (3.0, 62_950.0),
            (50_001.0, 9_950_000.0),
            (1e7, 1e7),
            (1e7, 2.0),
        ] {
            for q in [1e-6, 0.025, 0.05, 0.4] {
                let at = quantile_upper(a, b, q).unwrap();
                close(tails(a, b, at).unwrap().upper, q, 1e-8);
                let at = quantile(a, b, q).unwrap();
                close(tails(a, b, at).unwrap().lower, q, 1e-8);
            }
        }
    }

    #[test]
    fn ends_and_nonsense() {
        assert_eq!(
            quantile(2.0, 3.0, 0.0).unwrap().x.to_bits(),
            0.0_f64.to_bits()
        );
        assert_eq!(
            quantile(2.0, 3.0, 1.0).unwrap().x.to_bits(),
            1.0_f64.to_bits()
        );
        assert!(tails(0.0, 1.0, Point::new(0.5)).is_err());
        assert!(tails(f64::NAN, 1.0, Point::new(0.5)).is_err());
        assert!(quantile(1.0, f64::INFINITY, 0.5).is_err());
    }

    proptest! {
        #[test]
        fn the_inverse_undoes_the_function(ln_a in -2.0..16.0_f64, ln_b in -2.0..16.0_f64, p in 1e-6..0.999_999_f64) {
            let (a, b) = (libm::exp(ln_a), libm::exp(ln_b));
            let found = tails(a, b, quantile(a, b, p).unwrap()).unwrap();
            prop_assert!((found.lower - p).abs() < 1e-9, "{} {}", found.lower, p);
        }

        #[test]
        fn reflection(a in 0.1..500.0_f64, b in 0.1..500.0_f64, x in 0.001..0.999_f64) {
            let one = tails(a, b, Point::new(x)).unwrap();
            let other = tails(b, a, Point { x: 1.0 - x, y: x }).unwrap();
            prop_assert!((one.lower - other.upper).abs() < 1e-12);
        }
    }
}
