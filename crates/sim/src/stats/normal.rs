//! The normal and Student t distributions, and the limit of the Kolmogorov statistic.

use super::beta;
use super::error::StatsError;

/// `P(Z <= z)` of the standard normal distribution.
pub fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// `P(Z > z)`.
pub fn survival(z: f64) -> f64 {
    cdf(-z)
}

// Numerator and denominator of the three rational approximations of Wichura (1988), AS 241, PPND16; highest power last.
const CENTRE: ([f64; 8], [f64; 8]) = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
);
const SHOULDER: ([f64; 8], [f64; 8]) = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);
const TAIL: ([f64; 8], [f64; 8]) = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_7e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

/// The `p` quantile of the standard normal distribution (Wichura 1988, AS 241); infinite at 0 and 1.
pub fn quantile(p: f64) -> f64 {
    let ratio = |(above, below): &([f64; 8], [f64; 8]), at: f64| {
        let polynomial =
            |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * at + term);
        polynomial(above) / polynomial(below)
    };
    let centred = p - 0.5;
    if centred.abs() <= 0.425 {
        return centred * ratio(&CENTRE, 0.180_625 - centred * centred);
    }
    let tail = if centred < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return if centred < 0.0 {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    let root = (-libm::log(tail)).sqrt();
    let size = if root <= 5.0 {
        ratio(&SHOULDER, root - 1.6)
    } else {
        ratio(&TAIL, root - 5.0)
    };
    if centred < 0.0 { -size } else { size }
}

/// The value that a Student t variable with `df` degrees of freedom exceeds with probability `tail < 1/2`.
///
/// # Errors
/// [`StatsError::Range`] for `df` or `tail` out of range, and as [`beta::quantile`].
pub fn t_upper(df: f64, tail: f64) -> Result<f64, StatsError> {
    if !(tail > 0.0 && tail < 0.5) {
        return Err(StatsError::Range {
            what: "tail probability",
            value: tail.to_string(),
            expected: "between 0 and 1/2",
        });
    }
    // P(T > t) = I_x(df/2, 1/2) / 2 with x = df / (df + t^2)
    let at = beta::quantile(df / 2.0, 0.5, 2.0 * tail)?;
    Ok((df * at.y / at.x).sqrt())
}

/// The `p` quantile of chi-squared with one degree of freedom: the square of a normal quantile.
pub fn chi2_1_quantile(p: f64) -> f64 {
    let z = quantile(0.5 + p / 2.0);
    z * z
}

/// `Q(lambda) = 2 sum (-1)^(k-1) exp(-2 k^2 lambda^2)`: the chance that a Kolmogorov statistic exceeds `lambda`.
pub fn kolmogorov_upper(lambda: f64) -> f64 {
    if lambda <= 0.0 {
        return 1.0;
    }
    if lambda < 1.0 {
        // the same function by its theta transformation, which converges fast here
        let base = -std::f64::consts::PI * std::f64::consts::PI / (8.0 * lambda * lambda);
        let sum: f64 = (0..20)
            .map(|k| f64::from(2 * k + 1))
            .map(|odd| libm::exp(base * odd * odd))
            .sum();
        return (1.0 - std::f64::consts::TAU.sqrt() / lambda * sum).clamp(0.0, 1.0);
    }
    let term = |k: i32| {
        let k = f64::from(k);
        libm::exp(-2.0 * k * k * lambda * lambda)
    };
    let sum: f64 = (1..=20)
        .map(|k| if k % 2 == 1 { term(k) } else { -term(k) })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

    #[test]
    fn the_quantile_undoes_the_cdf_of_statrs() {
        let normal = Normal::new(0.0, 1.0).unwrap();
        for p in [
            1e-12, 1e-5, 0.01, 0.025, 0.074, 0.076, 0.3, 0.5, 0.6, 0.924, 0.95, 0.975, 0.9999,
        ] {
            let found = normal.cdf(quantile(p));
            assert!((found - p).abs() <= 1e-10 * p, "{p}: {found}");
            assert!((cdf(quantile(p)) - p).abs() <= 1e-14 * p.max(1e-2), "{p}");
        }
        assert!(quantile(0.0).is_infinite());
        assert!(quantile(1.0).is_infinite());
        // Wichura's own test values
        for (p, z) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_813_6),
            (1e-20, -9.262_340_089_798_408),
        ] {
            assert!((quantile(p) - z).abs() < 1e-14 * z.abs(), "{p}");
        }
    }

    #[test]
    fn t_agrees_with_the_cdf_of_statrs() {
        for df in [1.0, 2.0, 5.0, 59.0, 1_296.0, 1e6] {
            let t = StudentsT::new(0.0, 1.0, df).unwrap();
            for tail in [0.4, 0.05, 0.025, 0.001] {
                let found = t.sf(t_upper(df, tail).unwrap());
                assert!((found - tail).abs() < 1e-9, "{df} {tail}: {found}");
            }
        }
        assert!(t_upper(5.0, 0.5).is_err());
        assert!(t_upper(0.0, 0.1).is_err());
    }

    #[test]
    fn the_two_kolmogorov_series_meet() {
        // both series are exact; the published 5 % point is 1.3581
        assert!((kolmogorov_upper(1.0) - kolmogorov_upper(1.0 - 1e-13)).abs() < 1e-12);
        assert!((kolmogorov_upper(1.358_1) - 0.05).abs() < 1e-5);
        assert!((kolmogorov_upper(0.0) - 1.0).abs() < 1e-15);
        assert!((kolmogorov_upper(0.05) - 1.0).abs() < 1e-15);
    }
}
