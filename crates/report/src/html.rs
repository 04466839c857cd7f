//! The report as one HTML file: no request leaves it, and nothing from a log is more than text in it.

mod page;

pub use page::page;

/// Text as HTML shows it, in an element or a quoted attribute.
pub fn escaped(text: &str) -> String {
    let mut found = String::new();
    for c in crate::table::one_line(text).chars() {
        match c {
            '<' => found.push_str("&lt;"),
            '>' => found.push_str("&gt;"),
            '&' => found.push_str("&amp;"),
            '"' => found.push_str("&quot;"),
            '\'' => found.push_str("&#39;"),
            _ => found.push(c),
        }
    }
    found
}
