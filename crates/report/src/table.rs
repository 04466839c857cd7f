//! One table, four ways to print it.

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};

/// How a column is aligned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Align {
    /// Text.
    #[default]
    Left,
    /// Numbers.
    Right,
}

/// A table of text: a header, whose names may span lines, and rows of as many cells.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(name, align)| (name.to_owned(), align))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not one cell per column.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "one cell per column");
        self.rows.push(row);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns set by spaces, for a terminal; legible without colour.
    pub fn to_text(&self) -> String {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(self.columns.iter().map(|(name, _)| name));
        for row in &self.rows {
            grid.add_row(row.iter().map(|cell| one_line(cell)));
        }
        for (index, (_, align)) in self.columns.iter().enumerate() {
            if let Some(column) = grid.column_mut(index) {
                column.set_padding((0, 1));
                if *align == Align::Right {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        let mut text = String::new();
        for line in grid.to_string().lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// A Markdown table.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        let line = |cells: &mut dyn Iterator<Item = String>, text: &mut String| {
            text.push('|');
            for cell in cells {
                text.push(' ');
                text.push_str(&cell);
                text.push_str(" |");
            }
            text.push('\n');
        };
        line(
            &mut self
                .columns
                .iter()
                .map(|(name, _)| escaped(&name.replace('\n', " "))),
            &mut text,
        );
        line(
            &mut self.columns.iter().map(|(_, align)| match align {
                Align::Left => ":---".to_owned(),
                Align::Right => "---:".to_owned(),
            }),
            &mut text,
        );
        for row in &self.rows {
            line(&mut row.iter().map(|cell| escaped(cell)), &mut text);
        }
        text
    }
}

/// Control characters out, so that a name from a log can neither break a line nor drive a terminal.
pub fn one_line(cell: &str) -> String {
    cell.chars()
        .map(|c| {
            if c.is_control() || is_bidi_control(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text in Markdown: what would be markup is escaped.
pub fn escaped(cell: &str) -> String {
    escaped_with(cell, "")
}

/// The same, with more that is escaped.
pub(crate) fn escaped_with(cell: &str, more: &str) -> String {
    let mut text = String::new();
    for c in one_line(cell).chars() {
        match c {
            c if "|\\`*_[]".contains(c) || more.contains(c) => {
                text.push('\\');
                text.push(c);
            }
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new([("wait", Align::Left), ("n", Align::Right)]);
        table.push(vec!["tool".to_owned(), "42,322".to_owned()]);
        table.push(vec!["a|b\n\u{202e}<i>".to_owned(), "1".to_owned()]);
        table
    }

    #[test]
    fn text_aligns_numbers_right_and_keeps_rows_on_lines() {
        let text = sample().to_text();
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|line| line.ends_with("42,322"))
        );
    }

    #[test]
    fn markdown_escapes_what_names_from_logs_may_hold() {
        let text = sample().to_markdown();
        assert!(text.contains("a\\|b\u{fffd}\u{fffd}&lt;i&gt;"), "{text}");
        assert_eq!(text.lines().count(), 4);
    }
}
