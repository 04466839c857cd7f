//! Whether the colours of charts can be told apart by everybody: the palette as people with a colour deficiency see it.
//!
//! Simulations are the matrices for a complete deficiency of Machado, Oliveira and Fernandes, "A Physiologically-based
//! Model for Simulation of Color Vision Deficiency" (2009), on linear RGB; differences are distances in CIE Lab (D65).

use plotters::style::RGBColor;

use super::canvas::colour;

type Matrix = [[f64; 3]; 3];

const NORMAL: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
const PROTANOPIA: Matrix = [
    [0.152_286, 1.052_583, -0.204_868],
    [0.114_503, 0.786_281, 0.099_216],
    [-0.003_882, -0.048_116, 1.051_998],
];
const DEUTERANOPIA: Matrix = [
    [0.367_322, 0.860_646, -0.227_968],
    [0.280_085, 0.672_501, 0.047_413],
    [-0.011_820, 0.042_940, 0.968_881],
];
const TRITANOPIA: Matrix = [
    [1.255_528, -0.076_749, -0.178_779],
    [-0.078_411, 0.930_809, 0.147_602],
    [0.004_733, 0.691_367, 0.303_900],
];
/// What a printer without colour, or nobody's cones, make of it.
const GREY: Matrix = [[0.2126, 0.7152, 0.0722]; 3];

/// Every way of seeing.
const VISIONS: [(&str, Matrix); 5] = [
    ("normal", NORMAL),
    ("protanopia", PROTANOPIA),
    ("deuteranopia", DEUTERANOPIA),
    ("tritanopia", TRITANOPIA),
    ("grey", GREY),
];

fn times(matrix: &Matrix, of: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * of[0] + row[1] * of[1] + row[2] * of[2])
}

fn lab(colour: RGBColor, vision: &Matrix) -> [f64; 3] {
    // sRGB (IEC 61966-2-1), D65.
    const XYZ: Matrix = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175],
        [0.019_333_9, 0.119_192, 0.950_304_1],
    ];
    const WHITE: [f64; 3] = [0.950_47, 1.0, 1.088_83];
    let linear = [colour.0, colour.1, colour.2].map(|channel| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.040_45 {
            share / 12.92
        } else {
            libm::pow((share + 0.055) / 1.055, 2.4)
        }
    });
    let seen = times(vision, linear).map(|channel| channel.clamp(0.0, 1.0));
    let xyz = times(&XYZ, seen);
    let f = |axis: usize| {
        let share = xyz[axis] / WHITE[axis];
        if share > 216.0 / 24_389.0 {
            libm::cbrt(share)
        } else {
            (24_389.0 / 27.0 * share + 16.0) / 116.0
        }
    };
    [
        116.0 * f(1) - 16.0,
        500.0 * (f(0) - f(1)),
        200.0 * (f(1) - f(2)),
    ]
}

fn distance(a: RGBColor, b: RGBColor, vision: &Matrix) -> f64 {
    let (a, b) = (lab(a, vision), lab(b, vision));
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    libm::sqrt(squares)
}

#[track_caller]
fn apart(pairs: &[(RGBColor, RGBColor)], least: f64) {
    for (a, b) in pairs {
        for (name, vision) in VISIONS {
            let found = distance(*a, *b, &vision);
            assert!(found >= least, "{name}: {a:?} and {b:?}: {found:.1}");
        }
    }
}

/// The colour of `#RRGGBB`.
fn parsed(text: &str) -> RGBColor {
    let channel = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("a colour");
    RGBColor(channel(1), channel(3), channel(5))
}

/// What the page makes of a colour of the charts in its dark theme.
fn in_the_dark(of: RGBColor, what: &str) -> RGBColor {
    let style = include_str!("../html/style.css");
    let name = format!("[{what}=\"#{:02X}{:02X}{:02X}\"]", of.0, of.1, of.2);
    let rule = style.split(&name).nth(1).expect("a rule for it");
    let at = rule.find('#').expect("a colour");
    parsed(&rule[at..at + 7])
}

/// Lines and marks of one chart, on its paper and in its bands.
#[test]
fn what_is_drawn_together_is_told_apart() {
    let (blue, orange, ink) = (colour::BLUE, colour::ORANGE, colour::INK);
    apart(&[(blue, orange), (blue, ink), (orange, ink)], 20.0);
    let paper = colour::PAPER;
    apart(
        &[
            (blue, paper),
            (orange, paper),
            (ink, paper),
            (colour::SOFT, paper),
        ],
        30.0,
    );
    apart(&[(blue, colour::BAND), (orange, colour::PEACH)], 20.0);
    let dark = |of: RGBColor| in_the_dark(of, "stroke");
    let (blue, orange, ink) = (dark(blue), dark(orange), dark(ink));
    apart(&[(blue, orange), (blue, ink), (orange, ink)], 14.0);
    let paper = in_the_dark(colour::PAPER, "fill");
    apart(&[(blue, paper), (orange, paper), (ink, paper)], 30.0);
    let (band, peach) = (
        in_the_dark(colour::BAND, "fill"),
        in_the_dark(colour::PEACH, "fill"),
    );
    apart(&[(blue, band), (orange, peach)], 20.0);
}

/// Values of the Lab space as its definition gives them, and a pair that a deficiency takes away.
#[test]
fn the_simulation_takes_away_what_it_should() {
    let white = lab(RGBColor(255, 255, 255), &NORMAL);
    assert!((white[0] - 100.0).abs() < 0.01 && white[1].abs() < 0.02 && white[2].abs() < 0.02);
    let red = lab(RGBColor(255, 0, 0), &NORMAL);
    for (found, known) in red.iter().zip([53.24, 80.09, 67.20]) {
        assert!((found - known).abs() < 0.05, "{red:?}");
    }
    let (red, green) = (RGBColor(190, 70, 40), RGBColor(110, 120, 30));
    assert!(distance(red, green, &NORMAL) > 50.0);
    assert!(distance(red, green, &DEUTERANOPIA) < 20.0);
}
