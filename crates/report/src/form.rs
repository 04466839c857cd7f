//! A result in every form that a command prints.

use crate::table::Table;
use crate::units::wrapped;

/// Who reads a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layout {
    /// Somebody at a terminal: columns set by spaces, lines that are not too long.
    Terminal,
    /// A renderer of Markdown.
    Markdown,
}

impl Layout {
    pub(crate) fn table(self, table: &Table) -> String {
        match self {
            Self::Terminal => table.to_text(),
            Self::Markdown => table.to_markdown(),
        }
    }

    pub(crate) fn prose(self, text: &str) -> String {
        match self {
            Self::Terminal => wrapped(text),
            Self::Markdown => text.to_owned(),
        }
    }

    /// What must be known, a line or more each, and the answer, which stands last.
    pub(crate) fn remarks(self, remarks: &[String], answer: &str) -> String {
        let mut text = String::new();
        for remark in remarks {
            text.push_str(&self.prose(remark));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.prose(answer));
        text.push('\n');
        text
    }
}

/// The forms.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// For people.
    Text(Layout),
    /// Comma-separated values.
    Csv,
    /// JSON, with a newline at its end.
    Json,
}

/// A form that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// A result that prints in every form.
pub trait Printed {
    /// Tables, what must be known to read them, and the answer last.
    fn laid_out(&self, layout: Layout) -> String;

    /// Rows of values: durations in ms, rates as shares.
    ///
    /// # Errors
    /// Never for memory; the writer's errors are passed on.
    fn csv(&self) -> Result<String, csv::Error>;

    /// Everything that was found.
    ///
    /// # Errors
    /// Never for memory; the serializer's errors are passed on.
    fn json(&self) -> Result<String, serde_json::Error>;

    /// The result in one of the forms.
    ///
    /// # Errors
    /// As its form.
    fn in_form(&self, form: Form) -> Result<String, FormError> {
        Ok(match form {
            Form::Text(layout) => self.laid_out(layout),
            Form::Csv => self.csv()?,
            Form::Json => format!("{}\n", self.json()?),
        })
    }
}
