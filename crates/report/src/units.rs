//! How numbers are written for people: durations, shares, counts.

/// A duration in the unit that keeps two to four figures, rounded half up: `850 ms`, `3.6 s`, `429 s`, `12.7 h`.
///
/// Seconds go up to 9,999 so that the values of one table share a unit where they can.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..99_950 => {
            let tenths = (ms + 50) / 100;
            match tenths % 10 {
                0 => format!("{} s", tenths / 10),
                tenth => format!("{}.{tenth} s", tenths / 10),
            }
        }
        99_950..9_999_500 => format!("{} s", grouped((ms + 500) / 1_000)),
        _ => hours(u128::from(ms)),
    }
}

/// A long total in hours, one decimal below 100 h, rounded half up.
pub fn hours(ms: u128) -> String {
    let tenths = (ms + 180_000) / 360_000;
    if tenths < 1_000 {
        format!("{}.{} h", tenths / 10, tenths % 10)
    } else {
        let hours = (ms + 1_800_000) / 3_600_000;
        format!("{} h", grouped(u64::try_from(hours).unwrap_or(u64::MAX)))
    }
}

/// A size in bytes with a binary unit: `512 B`, `1.2 GiB`.
pub fn bytes(n: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    // Tenths of the unit, so that no float is needed.
    let mut tenths = u128::from(n) * 10 / 1024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < units.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

/// The UTC day of an instant in ms since the Unix epoch: `2026-08-03`.
///
/// Days are counted in eras of 400 years that begin on 1 March, so that the leap day is the last of a year.
pub fn day(ms: i64) -> String {
    let days = ms.div_euclid(86_400_000) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A whole number with its thousands separated: `42,322`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with what it counts, whose plural ends in an s: `1 run`, `42,322 runs`.
pub fn counted(n: u64, one: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(n))
}

/// A verb in the third person: `ends` after one, `end` after any other number.
pub fn verb(n: u64, plural: &str) -> String {
    let s = if n == 1 { "s" } else { "" };
    format!("{plural}{s}")
}

/// `is` after one, `are` after any other number.
pub const fn are(n: u64) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// `was` after one, `were` after any other number.
pub const fn were(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// A share as a percentage with two significant figures: `0.037 %`, `1.1 %`, `50 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", percent_figures(share))
}

/// A percentage without its sign, for intervals that write it once.
pub fn percent_figures(share: f64) -> String {
    let percent = share * 100.0;
    let mut decimals = 0;
    // Two figures: as many decimals as it takes to reach 10, at most six.
    let mut scaled = percent;
    while scaled > 0.0 && scaled < 9.95 && decimals < 6 {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{percent:.decimals$}")
}

/// The most characters of a line of prose for a terminal.
const LINE: usize = 108;

/// Prose broken at spaces so that no line is longer than a terminal's; continued lines are indented.
pub fn wrapped(text: &str) -> String {
    wrapped_at(text, LINE)
}

/// Prose broken at spaces so that no line is longer than `width` characters, where words allow.
pub fn wrapped_at(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut current, mut length) = (String::new(), 0);
        for word in line.split(' ') {
            let word_length = word.chars().count();
            if length > 0 && length + 1 + word_length > width {
                lines.push(std::mem::take(&mut current));
                current.push_str("  ");
                length = 2;
            } else if length > 0 {
                current.push(' ');
                length += 1;
            }
            current.push_str(word);
            length += word_length;
        }
        lines.push(current);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_at_spaces_and_loses_no_word() {
        let long = "word ".repeat(60);
        let shown = wrapped(long.trim_end());
        assert!(shown.lines().count() == 3 && shown.lines().all(|line| line.len() <= LINE));
        assert_eq!(shown.split_whitespace().count(), 60);
        assert_eq!(wrapped("a\n\nb  c"), "a\n\nb  c");
        let unbreakable = "x".repeat(200);
        assert_eq!(wrapped(&unbreakable), unbreakable);
    }

    #[test]
    fn durations_keep_three_figures() {
        let check = |ms, expected: &str| assert_eq!(duration(ms), expected);
        check(0, "0 ms");
        check(850, "850 ms");
        check(3_614, "3.6 s");
        check(60_000, "60 s");
        check(99_949, "99.9 s");
        check(99_950, "100 s");
        check(429_461, "429 s");
        check(1_145_829, "1,146 s");
        check(45_646_740, "12.7 h");
    }

    #[test]
    fn hours_are_rounded_half_up() {
        let check = |ms, expected: &str| assert_eq!(hours(ms), expected);
        check(179_999, "0.0 h");
        check(180_000, "0.1 h");
        check(359_820_000, "100 h");
        check(1_562_399_999, "434 h");
        check(1_558_799_999, "433 h");
    }

    #[test]
    fn instants_have_a_day() {
        let check = |ms, expected: &str| assert_eq!(day(ms), expected);
        check(0, "1970-01-01");
        check(-1, "1969-12-31");
        check(951_782_400_000, "2000-02-29");
        check(951_868_800_000, "2000-03-01");
        check(1_785_715_200_000, "2026-08-03");
        check(4_107_542_399_999, "2100-02-28");
    }

    #[test]
    fn counts_are_grouped() {
        let check = |n, expected: &str| assert_eq!(grouped(n), expected);
        check(7, "7");
        check(999, "999");
        check(1_000, "1,000");
        check(42_322_000, "42,322,000");
        let check = |n, expected: &str| assert_eq!(counted(n, "run"), expected);
        check(0, "0 runs");
        check(1, "1 run");
        check(42_322, "42,322 runs");
    }

    #[test]
    fn shares_keep_two_figures() {
        let check = |share, expected: &str| assert_eq!(percent(share), expected);
        check(0.0, "0 %");
        check(0.000_374, "0.037 %");
        check(0.003_74, "0.37 %");
        check(0.0108, "1.1 %");
        check(0.5, "50 %");
        check(0.000_004_2, "0.00042 %");
        check(0.0993, "9.9 %");
        check(0.0997, "10 %");
        check(1.0, "100 %");
    }
}
