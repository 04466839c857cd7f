//! A Parquet file being written, one row group per frame.
//!
//! `ParquetWriter` of polars has no setting for encodings, and `BatchedWriter::new`, which takes them, forgets the
//! schema (in 0.55.2 it writes row groups without columns). The writer underneath does what both do, and takes both.

use std::io::Write;

use polars::prelude::*;
use polars_parquet::read::ParquetError;
use polars_parquet::write::{
    CompressionOptions, Compressor, DynIter, DynStreamingIterator, Encoding,
    FallibleStreamingIterator, FileWriter, StatisticsOptions, Version, WriteOptions,
    array_to_columns, get_dtype_encoding,
};

use super::frames::Made;
use crate::error::TelemetryError;

const OPTIONS: WriteOptions = WriteOptions {
    statistics: StatisticsOptions {
        min_value: true,
        max_value: true,
        distinct_count: false,
        null_count: true,
        binary_statistics_truncate_length: None,
    },
    version: Version::V1,
    compression: CompressionOptions::Zstd(None),
    data_page_size: None,
};

pub(super) struct TableWriter<W: Write> {
    table: &'static str,
    writer: FileWriter<W>,
}

impl<W: Write> TableWriter<W> {
    /// Begins a file with the columns of `like`; those named in `required` have a value in every row.
    pub(super) fn new(
        table: &'static str,
        out: W,
        like: &[Column],
        required: &[&str],
    ) -> Result<Self, TelemetryError> {
        let schema: ArrowSchema = like
            .iter()
            .map(|column| {
                let name = column.name().clone();
                let mut arrow = column
                    .dtype()
                    .to_arrow_field(name.clone(), CompatLevel::newest());
                arrow.is_nullable = !required.contains(&name.as_str());
                (name, arrow)
            })
            .collect();
        let writer = FileWriter::try_new(out, schema, OPTIONS)
            .map_err(|error| TelemetryError::store(table, error))?;
        Ok(Self { table, writer })
    }

    /// Appends the frame as a row group; `encoding` names the encoding of a column, where it is not a dictionary.
    pub(super) fn write(
        &mut self,
        frame: &DataFrame,
        encoding: impl Fn(&str) -> Option<Encoding> + Send + Sync,
    ) -> Result<(), TelemetryError> {
        let columns = frame.columns().iter();
        let columns = columns.map(|column| Box::new(|| column.clone()) as Made<'_>);
        self.write_columns(frame.height(), columns.collect(), encoding)
    }

    /// The same with columns of `height` rows that are made one after the other.
    pub(super) fn write_columns(
        &mut self,
        height: usize,
        columns: Vec<Made<'_>>,
        encoding: impl Fn(&str) -> Option<Encoding> + Send + Sync,
    ) -> Result<(), TelemetryError> {
        let kinds = self.writer.parquet_schema().fields().to_vec();
        let schema = self.writer.schema().clone();
        let chunks = columns.into_iter().zip(kinds).zip(schema.iter());
        let chunks = chunks.map(|((column, kind), (name, field))| {
            let series = column().take_materialized_series().rechunk();
            polars_ensure!(
                series.len() == height,
                ShapeMismatch: "column {name} has {} of {height} rows", series.len()
            );
            let array = series.to_arrow(0, CompatLevel::newest());
            let encodings = match encoding(name.as_str()) {
                Some(encoding) => vec![encoding],
                None => get_dtype_encoding(field.dtype()),
            };
            // a column that is no list or structure is one column of the file
            let pages = array_to_columns(&*array, kind, OPTIONS, &encodings)?;
            let pages = pages.into_iter().flatten().map(|page| {
                page.map_err(|error| ParquetError::FeatureNotSupported(error.to_string()))
            });
            let compressed = Compressor::new(pages, OPTIONS.compression, Vec::new());
            Ok(DynStreamingIterator::new(
                compressed.map_err(PolarsError::from),
            ))
        });
        self.writer
            .write(height as u64, DynIter::new(chunks))
            .map_err(|error| TelemetryError::store(self.table, error))
    }

    pub(super) fn finish(mut self) -> Result<(), TelemetryError> {
        self.writer
            .end(None)
            .map(drop)
            .map_err(|error| TelemetryError::store(self.table, error))
    }
}
