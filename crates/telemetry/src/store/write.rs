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
        like: &DataFrame,
        required: &[&str],
    ) -> Result<Self, TelemetryError> {
        let schema: ArrowSchema = like
            .schema()
            .iter_fields()
            .map(|field| {
                let name = field.name().clone();
                let mut arrow = field
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
        encoding: impl Fn(&str) -> Option<Encoding>,
    ) -> Result<(), TelemetryError> {
        self.write_group(frame, encoding)
            .map_err(|error| TelemetryError::store(self.table, error))
    }

    fn write_group(
        &mut self,
        frame: &DataFrame,
        encoding: impl Fn(&str) -> Option<Encoding>,
    ) -> PolarsResult<()> {
        for batch in frame.iter_chunks(CompatLevel::newest(), false) {
            let mut columns = Vec::new();
            let fields = self.writer.parquet_schema().fields();
            for ((array, kind), (name, field)) in batch
                .columns()
                .iter()
                .zip(fields)
                .zip(self.writer.schema().iter())
            {
                let encodings = match encoding(name.as_str()) {
                    Some(encoding) => vec![encoding],
                    None => get_dtype_encoding(field.dtype()),
                };
                for pages in array_to_columns(array, kind.clone(), OPTIONS, &encodings)? {
                    let pages = pages.map(|page| {
                        page.map_err(|error| ParquetError::FeatureNotSupported(error.to_string()))
                    });
                    let compressed = Compressor::new(pages, OPTIONS.compression, Vec::new());
                    columns.push(Ok(DynStreamingIterator::new(
                        compressed.map_err(PolarsError::from),
                    )));
                }
            }
            self.writer
                .write(batch.len() as u64, DynIter::new(columns.into_iter()))?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), TelemetryError> {
        self.writer
            .end(None)
            .map(drop)
            .map_err(|error| TelemetryError::store(self.table, error))
    }
}
