//! A Parquet file open for reading as data frames, one row group at a time.

use std::cell::Cell;
use std::fs::File;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use polars::prelude::*;
use polars_parquet::parquet::metadata::FileMetadata;

use super::Table;
use crate::error::TelemetryError;

/// A Parquet file open for reading, by row group.
#[derive(Debug)]
pub(super) struct Groups {
    table: &'static str,
    source: Table,
    metadata: FileMetadataRef,
    pub(super) columns: Vec<String>,
    /// What is read at once: a group, the first of its rows and how many.
    slices: Vec<(usize, usize, usize)>,
}

impl Groups {
    pub(super) fn open(table: &'static str, source: &Table) -> Result<Self, TelemetryError> {
        guarded(table, || Self::open_unguarded(table, source))
    }

    fn open_unguarded(table: &'static str, source: &Table) -> Result<Self, TelemetryError> {
        let fail = |error: PolarsError| TelemetryError::store(table, error);
        let mut reader = reader(table, source)?;
        let metadata = Arc::clone(reader.get_metadata().map_err(fail)?);
        let columns = reader
            .schema()
            .map_err(fail)?
            .iter_names()
            .map(ToString::to_string)
            .collect();
        let groups = metadata.row_groups.iter().enumerate();
        let slices = groups
            .map(|(group, meta)| (group, 0, meta.num_rows()))
            .collect();
        Ok(Self {
            table,
            source: source.clone(),
            metadata,
            columns,
            slices,
        })
    }

    /// Cuts groups into pieces of at most so many rows, which are then read one at a time.
    pub(super) fn cut(&mut self, most: usize) {
        let pieces = |&(group, first, n_rows): &(usize, usize, usize)| {
            (0..n_rows)
                .step_by(most)
                .map(move |at| (group, first + at, most.min(n_rows - at)))
        };
        self.slices = self.slices.iter().flat_map(pieces).collect();
    }

    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }

    pub(super) fn read(
        &self,
        group: usize,
        columns: Option<Vec<String>>,
    ) -> Result<DataFrame, TelemetryError> {
        guarded(self.table, || {
            let (group, first, n_rows) = self.slices[group];
            // As a file of this one group it is read by the thread that asks. A pool of its own would keep that thread
            // free for other batches in the meantime, and more and more of them would lie in memory half read.
            let mut metadata = FileMetadata::clone(&self.metadata);
            metadata.row_groups = vec![self.metadata.row_groups[group].clone()];
            metadata.num_rows = metadata.row_groups[0].num_rows();
            let mut reader = reader(self.table, &self.source)?;
            reader.set_metadata(Arc::new(metadata));
            reader
                .with_slice(Some((first, n_rows)))
                .with_columns(columns)
                .read_parallel(ParallelStrategy::None)
                .finish()
                .map_err(|error| TelemetryError::store(self.table, error))
        })
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a reading whose panics become errors: a hook need not tell them.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs a reading of Parquet bytes. The library panics on some damaged files where it should return an error.
pub(super) fn guarded<T>(
    table: &'static str,
    read: impl FnOnce() -> Result<T, TelemetryError>,
) -> Result<T, TelemetryError> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    result.unwrap_or_else(|_| Err(TelemetryError::store(table, "the file is damaged")))
}

fn reader(
    table: &'static str,
    source: &Table,
) -> Result<ParquetReader<Box<dyn polars::io::mmap::MmapBytesReader>>, TelemetryError> {
    let input: Box<dyn polars::io::mmap::MmapBytesReader> = match source {
        Table::File(path) => {
            Box::new(File::open(path).map_err(|error| TelemetryError::io(table, "opening", error))?)
        }
        Table::Bytes(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
    };
    Ok(ParquetReader::new(input))
}
