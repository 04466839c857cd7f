//! Results as named columns of equal length: the form that CSV and Parquet share.

/// One column of a table of results.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Text.
    Text(Vec<String>),
    /// Whole numbers; `None` is a missing value.
    Integer(Vec<Option<i64>>),
    /// Shares and rates; `None` is a missing value.
    Float(Vec<Option<f64>>),
}
