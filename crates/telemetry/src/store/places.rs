//! A Parquet file open for reading column by column: of what the file says of itself, only where each column lies.
//!
//! The library keeps about a kilobyte for each column of each row group, which at 1e8 events is more than the columns
//! of the row group that is being read. What is needed of it is 24 bytes.

use std::collections::HashSet;
use std::sync::Arc;

use polars_parquet::parquet::compression::Compression;
use polars_parquet::parquet::error::ParquetResult;
use polars_parquet::parquet::metadata::{ColumnChunkMetadata, Descriptor, FileMetadata};
use polars_parquet::parquet::read::read_metadata;
use polars_parquet::parquet::schema::types::{
    PhysicalType, PrimitiveConvertedType, PrimitiveLogicalType,
};
use polars_parquet::read::RowGroupMetadata;
use policysim_sim::pool::Pool;

use super::Table;
use super::groups::guarded;
use super::pages::{Bytes, Chunk, Scratch, oos};
use crate::error::TelemetryError;

/// Where one column of one row group lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) n_bytes: u32,
    pub(super) n_values: u32,
    pub(super) compression: Compression,
}

/// A column of the file, in every row group.
#[derive(Debug)]
struct Column {
    name: String,
    descriptor: Descriptor,
}

/// A Parquet file open for reading, by row group and column.
#[derive(Debug)]
pub(super) struct Places {
    table: &'static str,
    source: Table,
    columns: Vec<Column>,
    /// The columns of the first row group, then those of the next.
    places: Vec<Place>,
    /// Rows by row group.
    n_rows: Vec<usize>,
    /// Memory to decode in, as often as threads decode.
    scratch: Pool<Scratch, fn() -> Scratch>,
}

impl Places {
    pub(super) fn open(table: &'static str, source: &Table) -> Result<Self, TelemetryError> {
        guarded(table, || {
            let mut bytes = source.open(table)?;
            read_metadata(&mut bytes)
                .and_then(|metadata| Self::of(table, source, &metadata))
                .map_err(|error| TelemetryError::store(table, error))
        })
    }

    fn of(table: &'static str, source: &Table, metadata: &FileMetadata) -> ParquetResult<Self> {
        let columns: Vec<Column> = metadata
            .schema_descr
            .columns()
            .iter()
            .map(|column| Column {
                name: column.path_in_schema.join("."),
                descriptor: column.descriptor.clone(),
            })
            .collect();
        let mut places = Vec::with_capacity(columns.len() * metadata.row_groups.len());
        for group in &metadata.row_groups {
            if group.n_columns() != columns.len() {
                return Err(oos("a row group that lacks columns"));
            }
            for chunk in group.parquet_columns() {
                if usize::try_from(chunk.num_values()) != Ok(group.num_rows()) {
                    return Err(oos("columns of unequal length"));
                }
                places.push(place(chunk)?);
            }
        }
        let n_rows = metadata.row_groups.iter().map(RowGroupMetadata::num_rows);
        Ok(Self {
            table,
            source: source.clone(),
            columns,
            places,
            n_rows: n_rows.collect(),
            scratch: Pool::new(Scratch::default),
        })
    }

    /// How many row groups there are.
    pub(super) const fn len(&self) -> usize {
        self.n_rows.len()
    }

    /// How many rows there are.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows.iter().sum()
    }

    /// How many rows the row group has.
    pub(super) fn n_rows_of(&self, group: usize) -> usize {
        self.n_rows[group]
    }

    /// Reads columns with what `read` gets to do so.
    pub(super) fn decode<T>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> ParquetResult<T>,
    ) -> Result<T, TelemetryError> {
        guarded(self.table, || {
            let mut bytes = self.source.open(self.table)?;
            self.scratch
                .with(|scratch| {
                    read(&mut Reader {
                        places: self,
                        bytes: &mut *bytes,
                        scratch,
                    })
                })
                .map_err(|error| TelemetryError::store(self.table, error))
        })
    }
}

fn place(chunk: &ColumnChunkMetadata) -> ParquetResult<Place> {
    let range = chunk.byte_range();
    let n_bytes = range.end.saturating_sub(range.start);
    Ok(Place {
        start: range.start,
        n_bytes: u32::try_from(n_bytes).map_err(oos)?,
        n_values: u32::try_from(chunk.num_values()).map_err(oos)?,
        compression: chunk.compression(),
    })
}

/// What a column holds. Other types may be stored in the same bytes, and would read as other numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Values {
    Integers,
    Texts,
    Bools,
}

fn expect(column: &str, descriptor: &Descriptor, values: Values) -> ParquetResult<()> {
    let of = &descriptor.primitive_type;
    let plain_integers = matches!(
        (&of.logical_type, &of.converted_type),
        (
            None | Some(PrimitiveLogicalType::Integer(_)),
            None | Some(PrimitiveConvertedType::Int64 | PrimitiveConvertedType::Uint64)
        )
    );
    let (fits, expected) = match values {
        Values::Integers => (
            of.physical_type == PhysicalType::Int64 && plain_integers,
            "64-bit integers",
        ),
        Values::Texts => (of.physical_type == PhysicalType::ByteArray, "texts"),
        Values::Bools => (of.physical_type == PhysicalType::Boolean, "truth values"),
    };
    if fits {
        return Ok(());
    }
    let found = match &of.logical_type {
        Some(logical) => format!("{:?} ({logical:?})", of.physical_type),
        None => format!("{:?}", of.physical_type),
    };
    Err(oos(format!(
        "column {column} is of {found}, expected {expected}"
    )))
}

/// The bytes of a file, and the memory to decode them in.
pub(super) struct Reader<'a> {
    places: &'a Places,
    bytes: &'a mut dyn Bytes,
    pub(super) scratch: &'a mut Scratch,
}

impl Reader<'_> {
    /// A column of a row group, which must hold such values.
    pub(super) fn chunk(
        &mut self,
        group: usize,
        column: &str,
        values: Values,
    ) -> ParquetResult<Chunk> {
        let columns = &self.places.columns;
        let index = columns
            .iter()
            .position(|of_file| of_file.name == column)
            .ok_or_else(|| oos(format!("no column {column}")))?;
        let place = self.places.places[group * columns.len() + index];
        let descriptor = &columns[index].descriptor;
        expect(column, descriptor, values)?;
        Chunk::read(self.bytes, place, descriptor, self.scratch)
    }

    /// Whole numbers, one per row.
    pub(super) fn numbers(&mut self, group: usize, column: &str) -> ParquetResult<Vec<i64>> {
        let mut numbers = Vec::new();
        let chunk = self.chunk(group, column, Values::Integers)?;
        chunk.dense_numbers(self.scratch, |values| numbers.extend_from_slice(values))?;
        Ok(numbers)
    }

    /// Truth values, one per row.
    pub(super) fn bools(&mut self, group: usize, column: &str) -> ParquetResult<Vec<bool>> {
        let mut bools = Vec::new();
        let chunk = self.chunk(group, column, Values::Bools)?;
        chunk.dense_bools(self.scratch, &mut bools)?;
        Ok(bools)
    }

    /// Texts, one per row, of which equal ones share one allocation.
    pub(super) fn texts(
        &mut self,
        group: usize,
        column: &str,
        names: &mut Names,
    ) -> ParquetResult<Vec<Arc<str>>> {
        let mut texts = Vec::new();
        let chunk = self.chunk(group, column, Values::Texts)?;
        if chunk.has_dictionary() {
            let known = chunk.texts()?;
            let known: Vec<Arc<str>> = known.iter().map(|text| names.share(text)).collect();
            chunk.dense_codes(&known, self.scratch, &mut texts)?;
        } else {
            chunk.plain_texts(self.scratch, |text| texts.push(names.share(text)))?;
        }
        Ok(texts)
    }

    /// What the texts of a column of closed names stand for, one per row.
    pub(super) fn closed<T: Clone>(
        &mut self,
        group: usize,
        column: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> ParquetResult<Vec<T>> {
        let mut values = Vec::new();
        let chunk = self.chunk(group, column, Values::Texts)?;
        let known = chunk.known(column, parse)?;
        chunk.dense_codes(&known, self.scratch, &mut values)?;
        Ok(values)
    }
}

/// Sets something of every row.
pub(super) fn fill<R, T>(
    rows: &mut [R],
    values: Vec<T>,
    set: impl Fn(&mut R, T),
) -> ParquetResult<()> {
    if values.len() != rows.len() {
        return Err(oos("columns of unequal length"));
    }
    for (row, value) in rows.iter_mut().zip(values) {
        set(row, value);
    }
    Ok(())
}

/// Equal texts share one allocation.
#[derive(Default)]
pub(super) struct Names(HashSet<Arc<str>>);

impl Names {
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use polars::prelude::{Column as Series, DataFrame, ParquetWriter};

    use super::*;

    fn numbers(column: Series) -> Result<Vec<i64>, String> {
        let mut frame = DataFrame::new(column.len(), vec![column]).unwrap();
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
        let places = Places::open("the table", &Table::Bytes(bytes.into())).unwrap();
        places
            .decode(|reader| reader.numbers(0, "t_ms"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn other_types_are_refused_and_not_read_as_other_numbers() {
        let name = || "t_ms".into();
        assert_eq!(numbers(Series::new(name(), [3_i64, 5])), Ok(vec![3, 5]));
        for (column, found) in [
            (Series::new(name(), [3.0_f64, 5.0]), "Double"),
            (Series::new(name(), [3_i32, 5]), "Int32"),
            (Series::new(name(), ["3", "5"]), "ByteArray"),
            (Series::new(name(), [true, false]), "Boolean"),
        ] {
            let error = numbers(column).unwrap_err();
            assert!(
                error.contains(&format!("column t_ms is of {found}"))
                    && error.contains("expected 64-bit integers"),
                "{error}"
            );
        }
    }
}
