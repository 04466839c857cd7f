//! The nearest known name to a mistyped one.

use alloc::vec::Vec;

/// The known name that needs the fewest single-letter edits to become `name`, if few enough.
///
/// An edit inserts, removes, replaces or swaps adjacent letters (optimal string alignment).
/// A hint is given up to one edit per three letters and at least two; a known name that `name`
/// begins or that begins with `name` counts as near. Of equally near names the first in `known` is taken.
///
/// ```
/// use policysim_policy::nearest;
/// assert_eq!(nearest("idl", ["idle", "total"]), Some("idle"));
/// assert_eq!(nearest("pi-desktop-0192", ["pi-desktop-0119", "pi-desktop-0129"]), Some("pi-desktop-0129"));
/// assert_eq!(nearest("zebra", ["idle", "total"]), None);
/// ```
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let reach = (letters.len() / 3).max(2);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let other: Vec<char> = candidate.chars().collect();
        let begins = letters.len() >= 3 && other.starts_with(&letters);
        let distance = edits(&letters, &other);
        // A hint that shares no letter with what was written helps nobody.
        let near = distance <= reach && distance < letters.len().max(other.len());
        if (near || begins) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edits between two words, keeping three rows of the table.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, &letter) in from.iter().enumerate() {
        let mut row = Vec::with_capacity(to.len() + 1);
        row.push(i + 1);
        for (j, &other) in to.iter().enumerate() {
            let mut least = (above[j + 1] + 1)
                .min(row[j] + 1)
                .min(above[j] + usize::from(letter != other));
            if i > 0 && j > 0 && letter == to[j - 1] && from[i - 1] == other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, to: &str, expected: usize) {
        let from: Vec<char> = from.chars().collect();
        let to: Vec<char> = to.chars().collect();
        assert_eq!(edits(&from, &to), expected);
    }

    #[test]
    fn distances() {
        check("", "", 0);
        check("", "abc", 3);
        check("kitten", "sitting", 3);
        check("idle", "idel", 1);
        check("ca", "abc", 3);
        check("rearm", "rearm", 0);
    }

    #[test]
    fn a_hint_only_where_it_is_near() {
        assert_eq!(nearest("windwo", ["window", "first"]), Some("window"));
        assert_eq!(nearest("WINDOW", ["window", "first"]), Some("window"));
        assert_eq!(nearest("thr", ["first", "throttle"]), Some("throttle"));
        assert_eq!(nearest("x", ["window", "first"]), None);
        assert_eq!(nearest("", ["window"]), None);
    }
}
