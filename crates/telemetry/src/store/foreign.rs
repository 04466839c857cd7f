//! A Parquet file of unknown origin: its columns by name, its rows as cells.

use polars::prelude::*;

use super::groups::Groups;
use super::{FOREIGN, GROUP_ROWS, Table};
use crate::error::TelemetryError;

/// One cell of a table of unknown columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Missing,
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
    /// A type that no column of ours has.
    Other,
}

/// A Parquet file of unknown origin: its columns by name, its rows as cells.
pub(crate) struct ForeignTable {
    groups: Groups,
    columns: Vec<String>,
}

impl ForeignTable {
    /// Opens the table and reads its column names.
    pub(crate) fn open(table: &Table) -> Result<Self, TelemetryError> {
        let mut groups = Groups::open(FOREIGN, table)?;
        groups.cut(GROUP_ROWS);
        Ok(Self {
            columns: groups.columns.clone(),
            groups,
        })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many pieces there are: row groups, large ones cut.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The rows of one piece, restricted to `columns`, in that order.
    pub(crate) fn read(
        &self,
        group: usize,
        columns: &[String],
    ) -> Result<Vec<Vec<Cell>>, TelemetryError> {
        let frame = self.groups.read(group, Some(columns.to_vec()))?;
        let columns = columns
            .iter()
            .map(|name| {
                let column = frame.column(name)?;
                // texts that a writer has numbered are texts
                match column.dtype() {
                    DataType::Categorical(..) | DataType::Enum(..) => {
                        column.cast(&DataType::String)
                    }
                    _ => Ok(column.clone()),
                }
            })
            .collect::<PolarsResult<Vec<_>>>()
            .map_err(|error| TelemetryError::store(FOREIGN, error))?;
        (0..frame.height())
            .map(|row| {
                columns
                    .iter()
                    .map(|column| column.get(row).map(|value| cell(&value)))
                    .collect::<PolarsResult<Vec<_>>>()
                    .map_err(|error| TelemetryError::store(FOREIGN, error))
            })
            .collect()
    }
}

fn cell(value: &AnyValue<'_>) -> Cell {
    match value {
        AnyValue::Null => Cell::Missing,
        AnyValue::Boolean(yes) => Cell::Bool(*yes),
        AnyValue::String(text) => Cell::Text((*text).to_owned()),
        AnyValue::StringOwned(text) => Cell::Text(text.to_string()),
        AnyValue::Float32(number) => Cell::Number(f64::from(*number)),
        AnyValue::Float64(number) => Cell::Number(*number),
        AnyValue::Int8(_)
        | AnyValue::Int16(_)
        | AnyValue::Int32(_)
        | AnyValue::Int64(_)
        | AnyValue::UInt8(_)
        | AnyValue::UInt16(_)
        | AnyValue::UInt32(_)
        | AnyValue::UInt64(_) => value.extract::<i64>().map_or(Cell::Other, Cell::Integer),
        _ => Cell::Other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn texts_that_a_writer_has_numbered_are_texts() {
        let plain = Column::new("outcome".into(), ["failed", "completed", "failed"]);
        let mapping = Categories::global();
        let numbered = plain
            .cast(&DataType::from_categories(mapping))
            .unwrap()
            .with_name("numbered".into());
        let mut frame = DataFrame::new(3, vec![plain, numbered]).unwrap();
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
        let table = ForeignTable::open(&Table::Bytes(bytes.into())).unwrap();
        let names = ["outcome", "numbered"].map(str::to_owned);
        let rows = table.read(0, &names).unwrap();
        let texts = |text: &str| vec![Cell::Text(text.to_owned()); 2];
        assert_eq!(rows, ["failed", "completed", "failed"].map(texts));
    }
}
