//! A report before it is Markdown or HTML: sections of prose, tables and charts, so that both say the same.

use crate::table::{Align, Table, escaped_with, one_line};

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Words.
    Text(String),
    /// Words that carry the sentence.
    Strong(String),
    /// What is typed or read by a machine.
    Code(String),
    /// A word that is defined: the definition's id, and the word.
    Term(&'static str, String),
}

/// A paragraph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prose(pub Vec<Span>);

impl Prose {
    /// A paragraph that begins with these words.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Vec::new()).text(text)
    }

    /// A paragraph with a title of its own.
    pub fn titled(title: &str, text: impl Into<String>) -> Self {
        Self(vec![Span::Strong(title.to_owned())]).text(format!(" {}", text.into()))
    }

    /// A paragraph of our own words, in which backticks hold what is typed.
    pub fn written(text: &str) -> Self {
        let span = |(index, part): (usize, &str)| match index % 2 {
            0 => Span::Text(part.to_owned()),
            _ => Span::Code(part.to_owned()),
        };
        Self(text.split('`').enumerate().map(span).collect())
    }

    /// A remark of another command, in which our own options stand between backticks and names from logs may hold
    /// backticks of their own: only what reads as one of these options becomes code.
    pub fn noted(text: &str) -> Self {
        let mut spans = Vec::new();
        let (mut words, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('`') {
            words.push_str(before);
            match after.split_once('`') {
                Some((code, behind)) if is_option(code) => {
                    spans.push(Span::Text(std::mem::take(&mut words)));
                    spans.push(Span::Code(code.to_owned()));
                    rest = behind;
                }
                _ => {
                    words.push('`');
                    rest = after;
                }
            }
        }
        words.push_str(rest);
        spans.push(Span::Text(words));
        Self(spans)
    }

    /// Adds words.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Text(text.into()));
        self
    }

    /// Adds what is typed.
    #[must_use]
    pub fn code(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Code(text.into()));
        self
    }

    /// Adds a word that is defined.
    #[must_use]
    pub fn term(mut self, id: &'static str, word: &str) -> Self {
        self.0.push(Span::Term(id, word.to_owned()));
        self
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with the unit where the cells do not carry it.
    pub name: String,
    /// How it is aligned.
    pub align: Align,
    /// Where what it shows is defined.
    pub term: Option<&'static str>,
}

/// A cell: what is read, and what it sorts by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datum {
    /// The text.
    pub text: String,
    /// The value behind it.
    pub sort: Option<f64>,
}

impl Datum {
    /// A text that sorts as text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            sort: None,
        }
    }

    /// A text that sorts by a value.
    pub fn of(text: impl Into<String>, value: f64) -> Self {
        Self {
            text: text.into(),
            sort: Some(value),
        }
    }
}

/// A table with its title.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// What it shows, and on how many samples.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Vec<Datum>>,
}

impl Grid {
    /// A table without rows. A column is its name, its alignment, and the definition of what it shows.
    pub fn new(title: impl Into<String>, columns: &[(&str, Align, Option<&'static str>)]) -> Self {
        Self {
            title: title.into(),
            columns: columns
                .iter()
                .map(|(name, align, term)| Column {
                    name: (*name).to_owned(),
                    align: *align,
                    term: *term,
                })
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of as many cells as there are columns.
    pub fn push(&mut self, row: Vec<Datum>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }
}

/// What a section consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Prose(Prose),
    /// Points.
    List(Vec<Prose>),
    /// A table.
    Grid(Grid),
    /// A chart by its name; its numbers stand in the next table.
    Chart(&'static str),
    /// Lines to be copied: the language, and the text.
    Code(&'static str, String),
    /// A title within the section.
    Title(String),
}

/// A section.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its name in templates and links.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it says.
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty section.
    pub fn new(id: &'static str, title: &'static str) -> Self {
        Self {
            id,
            title,
            blocks: Vec::new(),
        }
    }

    pub(crate) fn say(&mut self, prose: Prose) {
        self.blocks.push(Block::Prose(prose));
    }

    pub(crate) fn add(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The section in Markdown, without its title. `chart` gives a chart's title and description; `None` for one that
    /// could not be drawn.
    pub fn to_markdown(&self, chart: &dyn Fn(&str) -> Option<(String, String)>) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            match block {
                Block::Prose(prose) => text.push_str(&format!("{}\n\n", prose.to_markdown())),
                Block::List(items) => {
                    for item in items {
                        text.push_str(&format!("- {}\n", item.to_markdown()));
                    }
                    text.push('\n');
                }
                Block::Grid(grid) => text.push_str(&grid.to_markdown()),
                Block::Chart(name) => {
                    if let Some((title, description)) = chart(name) {
                        text.push_str(&format!(
                            "![{}]({}.svg)\n\n",
                            marked_down(&format!("{title}. {description}")),
                            format_args!("charts/{name}")
                        ));
                    }
                }
                Block::Code(language, code) => {
                    text.push_str(&format!("```{language}\n{}\n```\n\n", fenced(code)));
                }
                Block::Title(title) => text.push_str(&format!("#### {}\n\n", marked_down(title))),
            }
        }
        text
    }
}

impl Prose {
    /// One line of Markdown; words from logs stay words.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        for span in &self.0 {
            match span {
                Span::Text(words) => text.push_str(&marked_down(words)),
                Span::Strong(words) => text.push_str(&format!("**{}**", marked_down(words))),
                Span::Code(code) => text.push_str(&code_span(code)),
                Span::Term(id, word) => {
                    text.push_str(&format!("[{}](#{id})", marked_down(word)));
                }
            }
        }
        text
    }

    /// The words alone.
    pub fn to_text(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Text(words) | Span::Strong(words) | Span::Code(words) => words.as_str(),
                Span::Term(_, word) => word.as_str(),
            })
            .collect()
    }
}

impl Grid {
    fn to_markdown(&self) -> String {
        let mut table = Table::new(
            self.columns
                .iter()
                .map(|column| (column.name.as_str(), column.align)),
        );
        for row in &self.rows {
            table.push(row.iter().map(|datum| datum.text.clone()).collect());
        }
        let mut text = format!("{}\n\n{}", marked_down(&self.title), table.to_markdown());
        let terms: Vec<String> = self
            .columns
            .iter()
            .filter_map(|column| Some((column.term?, &column.name)))
            .map(|(id, name)| format!("[{}](#{id})", marked_down(&name.replace('\n', " "))))
            .collect();
        if !terms.is_empty() {
            text.push_str(&format!("\nDefined below: {}.\n", terms.join(", ")));
        }
        text.push('\n');
        text
    }
}

/// Words as Markdown shows them, on one line, wherever they stand: no title, no picture.
pub(crate) fn marked_down(words: &str) -> String {
    escaped_with(words, "#!")
}

/// A span of code whose fence is longer than any run of backticks in it.
fn code_span(code: &str) -> String {
    let code = one_line(code);
    let fence = "`".repeat(longest_run(&code) + 1);
    if fence.len() > 1 {
        format!("{fence} {code} {fence}")
    } else {
        format!("`{code}`")
    }
}

/// Lines of code that cannot end their fence.
fn fenced(code: &str) -> String {
    let lines: Vec<String> = code
        .lines()
        .map(|line| one_line(line).replace("```", "` ` `"))
        .collect();
    lines.join("\n")
}

/// Whether this is an option that remarks name, with its value: `--by model`.
fn is_option(code: &str) -> bool {
    const OPTIONS: [&str; 3] = ["--by", "--format", "--with"];
    let plain = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '-');
    code.split_once(' ').is_some_and(|(option, value)| {
        OPTIONS.contains(&option) && !value.is_empty() && value.chars().all(plain)
    })
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_from_a_log_stay_words_in_markdown() {
        let prose = Prose::new("<b>*x* [y](z)\n")
            .code("a`b``c")
            .term("rate", "r|s");
        assert_eq!(
            prose.to_markdown(),
            "&lt;b&gt;\\*x\\* \\[y\\](z)\u{fffd}``` a`b``c ```[r\\|s](#rate)"
        );
        let mut section = Section::new("s", "S");
        section.add(Block::Code("sh", "echo\n```\n# gone".to_owned()));
        let text = section.to_markdown(&|_| None);
        assert_eq!(text.matches("```").count(), 2, "{text}");
    }

    #[test]
    fn only_our_own_options_are_code_in_a_remark() {
        let spans =
            Prose::noted("`touch x` ` `--by model` `--by model; rm` `--with` ``--format json`").0;
        let text = |words: &str| Span::Text(words.to_owned());
        let code = |words: &str| Span::Code(words.to_owned());
        assert_eq!(
            spans,
            [
                text("`touch x` ` "),
                code("--by model"),
                text(" `--by model; rm` `--with` `"),
                code("--format json"),
                text(""),
            ]
        );
        assert_eq!(Prose::noted("no code").to_text(), "no code");
    }

    #[test]
    fn a_table_names_where_its_columns_are_defined() {
        let mut grid = Grid::new(
            "n = 3 runs",
            &[("rate", Align::Right, Some("false-kill-rate"))],
        );
        grid.push(vec![Datum::of("1 %", 0.01)]);
        let text = grid.to_markdown();
        assert!(
            text.contains("| 1 % |") && text.contains("[rate](#false-kill-rate)"),
            "{text}"
        );
    }
}
