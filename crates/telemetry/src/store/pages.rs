//! The columns of a row group, decoded page by page into vectors of ours.
//!
//! A data frame of the same rows costs a `String` view per text and a validity bit per number, and twice the time
//! (`benches/store.rs`). Here text columns are codes into their dictionary, and columns that most rows lack are lists
//! of the rows that have a value.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use polars_parquet::parquet::encoding::Encoding;
use polars_parquet::parquet::encoding::hybrid_rle::{HybridRleChunk, HybridRleDecoder};
use polars_parquet::parquet::encoding::plain_byte_array::BinaryIter;
use polars_parquet::parquet::encoding::{bitpacked, uleb128, zigzag_leb128};
use polars_parquet::parquet::error::{ParquetError, ParquetResult};
use polars_parquet::parquet::page::{DataPage, DictPage, split_buffer};
use polars_parquet::read::{BasicDecompressor, ColumnChunkMetadata, PageReader};

/// Whatever Parquet bytes are read from.
pub(super) trait Bytes: Read + Seek {}

impl<T: Read + Seek> Bytes for T {}

/// Vectors that are filled again for every column.
#[derive(Default)]
pub(super) struct Scratch {
    /// The values of a page that are there.
    values: Vec<i64>,
    codes: Vec<u32>,
    packed: Vec<u64>,
    defined: Vec<Range<usize>>,
}

/// A column chunk open for reading.
pub(super) struct Chunk {
    pages: BasicDecompressor,
    dictionary: Option<DictPage>,
    /// Whether rows can lack a value.
    optional: bool,
}

impl Chunk {
    /// Reads the chunk's bytes.
    pub(super) fn read(source: &mut dyn Bytes, meta: &ColumnChunkMetadata) -> ParquetResult<Self> {
        let range = meta.byte_range();
        let n_bytes = range.end.saturating_sub(range.start);
        source.seek(SeekFrom::Start(range.start)).map_err(oos)?;
        let mut bytes = Vec::with_capacity(usize::try_from(n_bytes).unwrap_or(0).min(1 << 26));
        source.take(n_bytes).read_to_end(&mut bytes).map_err(oos)?;
        let reader = PageReader::new(
            std::io::Cursor::new(bytes.into()),
            meta,
            Vec::new(),
            usize::MAX,
        );
        let mut pages = BasicDecompressor::new(reader, Vec::new());
        let dictionary = pages.read_dict_page()?;
        Ok(Self {
            pages,
            dictionary,
            optional: meta.descriptor().descriptor.max_def_level > 0,
        })
    }

    /// The texts of the dictionary, by code; none where the column has no dictionary.
    pub(super) fn texts(&self) -> ParquetResult<Vec<String>> {
        let Some(page) = &self.dictionary else {
            return Ok(Vec::new());
        };
        BinaryIter::new(&page.buffer, Some(page.num_values))
            .map(|text| text.map(|text| String::from_utf8_lossy(text).into_owned()))
            .collect()
    }

    /// The numbers of the dictionary, by code.
    fn numbers(&self) -> Vec<i64> {
        self.dictionary
            .as_ref()
            .map_or_else(Vec::new, |page| plain(&page.buffer).collect())
    }

    /// The numbers of the column, one per row through `take`; a row without a value gives 0.
    pub(super) fn dense_numbers(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&[i64]),
    ) -> ParquetResult<()> {
        let dictionary = self.numbers();
        self.each_page(scratch, |page, n_rows, scratch| {
            scratch.values.clear();
            let n_values = rows(&scratch.defined);
            page_numbers(page, n_values, &dictionary, scratch)?;
            if n_values == n_rows {
                take(&scratch.values);
                return Ok(());
            }
            let mut next = scratch.values.iter();
            let mut all = vec![0; n_rows];
            for range in &scratch.defined {
                for (row, value) in all[range.clone()].iter_mut().zip(next.by_ref()) {
                    *row = *value;
                }
            }
            take(&all);
            Ok(())
        })
    }

    /// The rows that have a number, with it, by rising row.
    pub(super) fn sparse_numbers(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, i64),
    ) -> ParquetResult<()> {
        let dictionary = self.numbers();
        let mut first = 0;
        self.each_page(scratch, |page, n_rows, scratch| {
            scratch.values.clear();
            page_numbers(page, rows(&scratch.defined), &dictionary, scratch)?;
            let row = scratch.defined.iter().flat_map(Clone::clone);
            for (row, value) in row.zip(&scratch.values) {
                take(first + row, *value);
            }
            first += n_rows;
            Ok(())
        })
    }

    /// The texts of the column as what `known` holds per text of the dictionary, one per row through `take`.
    pub(super) fn dense_codes<T: Copy>(
        self,
        known: &[T],
        scratch: &mut Scratch,
        mut take: impl FnMut(&mut dyn Iterator<Item = T>),
    ) -> ParquetResult<()> {
        self.each_page(scratch, |page, n_rows, scratch| {
            scratch.codes.clear();
            let n_values = rows(&scratch.defined);
            page_codes(page, n_values, known.len(), &mut scratch.codes)?;
            if n_values < n_rows {
                return Err(oos("a row without a text"));
            }
            take(&mut scratch.codes.iter().map(|&code| known[code as usize]));
            Ok(())
        })
    }

    /// The rows that have a text, with what `known` holds for it, by rising row.
    pub(super) fn sparse_codes<T: Copy>(
        self,
        known: &[T],
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, T),
    ) -> ParquetResult<()> {
        let mut first = 0;
        self.each_page(scratch, |page, n_rows, scratch| {
            scratch.codes.clear();
            page_codes(
                page,
                rows(&scratch.defined),
                known.len(),
                &mut scratch.codes,
            )?;
            let row = scratch.defined.iter().flat_map(Clone::clone);
            for (row, &code) in row.zip(&scratch.codes) {
                take(first + row, known[code as usize]);
            }
            first += n_rows;
            Ok(())
        })
    }

    /// The texts of a column without a dictionary, one per row; a row without a value gives an empty text.
    pub(super) fn plain_texts(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&str),
    ) -> ParquetResult<()> {
        self.each_page(scratch, |page, n_rows, scratch| {
            if page.encoding() != Encoding::Plain {
                return Err(oos(format!("a text column in {:?}", page.encoding())));
            }
            let n_values = rows(&scratch.defined);
            let mut texts = BinaryIter::new(split_buffer(page)?.values, Some(n_values));
            let mut row = 0;
            for range in &scratch.defined {
                (row..range.start).for_each(|_| take(""));
                for _ in range.clone() {
                    let text = texts.next().ok_or_else(|| oos("too few texts"))??;
                    take(&String::from_utf8_lossy(text));
                }
                row = range.end;
            }
            (row..n_rows).for_each(|_| take(""));
            Ok(())
        })
    }

    /// Whether the column has a dictionary.
    pub(super) const fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    /// Every page, decompressed, with its number of rows and the rows that have a value in `scratch.defined`.
    fn each_page(
        mut self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&DataPage, usize, &mut Scratch) -> ParquetResult<()>,
    ) -> ParquetResult<()> {
        while let Some(page) = self.pages.next() {
            let page = page?.decompress(&mut self.pages)?;
            let n_rows = page.num_values();
            scratch.defined.clear();
            if self.optional {
                defined_rows(split_buffer(&page)?.def, n_rows, &mut scratch.defined)?;
            } else {
                scratch.defined.push(0..n_rows);
            }
            take(&page, n_rows, scratch)?;
            self.pages.reuse_page_buffer(page);
        }
        Ok(())
    }
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` hands it over
pub(super) fn oos(what: impl ToString) -> ParquetError {
    ParquetError::OutOfSpec(what.to_string())
}

fn rows(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

fn plain(bytes: &[u8]) -> impl Iterator<Item = i64> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|bytes| i64::from_le_bytes(*bytes))
}

/// The ranges of rows whose definition level says that there is a value.
fn defined_rows(levels: &[u8], n_rows: usize, ranges: &mut Vec<Range<usize>>) -> ParquetResult<()> {
    let mut row = 0;
    let mut add = |row: usize, n: usize| match ranges.last_mut() {
        Some(last) if last.end == row => last.end += n,
        _ => ranges.push(row..row + n),
    };
    for chunk in HybridRleDecoder::new(levels, 1, n_rows).into_chunk_iter() {
        match chunk? {
            HybridRleChunk::Rle(level, n) => {
                if level == 1 {
                    add(row, n);
                }
                row += n;
            }
            HybridRleChunk::Bitpacked(packed) => {
                let (bits, n) = (packed.as_slice(), packed.len());
                for at in 0..n {
                    if bits[at / 8] >> (at % 8) & 1 == 1 {
                        add(row + at, 1);
                    }
                }
                row += n;
            }
        }
    }
    if row == n_rows {
        Ok(())
    } else {
        Err(oos(format!("definition levels of {row} of {n_rows} rows")))
    }
}

/// The `n` codes of a page, each below `n_known`.
fn page_codes(
    page: &DataPage,
    n: usize,
    n_known: usize,
    codes: &mut Vec<u32>,
) -> ParquetResult<()> {
    if !matches!(
        page.encoding(),
        Encoding::RleDictionary | Encoding::PlainDictionary
    ) {
        return Err(oos(format!("a text column in {:?}", page.encoding())));
    }
    let Some((&n_bits, packed)) = split_buffer(page)?.values.split_first() else {
        return if n == 0 { Ok(()) } else { Err(oos("no codes")) };
    };
    for chunk in HybridRleDecoder::new(packed, u32::from(n_bits), n).into_chunk_iter() {
        match chunk? {
            HybridRleChunk::Rle(code, n) => codes.resize(codes.len() + n, code),
            HybridRleChunk::Bitpacked(packed) => packed.collect_into(codes),
        }
    }
    if codes.len() != n || codes.iter().any(|&code| code as usize >= n_known) {
        return Err(oos("a code without a meaning"));
    }
    Ok(())
}

/// The `n` numbers of a page.
fn page_numbers(
    page: &DataPage,
    n: usize,
    dictionary: &[i64],
    scratch: &mut Scratch,
) -> ParquetResult<()> {
    let bytes = split_buffer(page)?.values;
    let values = &mut scratch.values;
    match page.encoding() {
        Encoding::DeltaBinaryPacked => {
            values.reserve(n);
            differences(bytes, n, values, &mut scratch.packed)?;
        }
        Encoding::Plain => values.extend(plain(bytes)),
        Encoding::RleDictionary | Encoding::PlainDictionary => {
            scratch.codes.clear();
            page_codes(page, n, dictionary.len(), &mut scratch.codes)?;
            values.extend(scratch.codes.iter().map(|&code| dictionary[code as usize]));
        }
        other => return Err(oos(format!("a column of integers in {other:?}"))),
    }
    if values.len() == n {
        Ok(())
    } else {
        Err(oos(format!("{} of {n} numbers", values.len())))
    }
}

/// Decodes `DELTA_BINARY_PACKED`: blocks of differences to the number before, less the block's smallest difference.
///
/// The library's decoder is private to it; its bit unpacking, which is the hard part, is not.
fn differences(
    bytes: &[u8],
    n: usize,
    values: &mut Vec<i64>,
    packed: &mut Vec<u64>,
) -> ParquetResult<()> {
    let short = || oos("differences are cut short");
    let mut rest = bytes;
    let mut header = || {
        let (number, used) = uleb128::decode(rest);
        rest = rest.get(used..).ok_or_else(short)?;
        usize::try_from(number).map_err(oos)
    };
    let (block, n_minis, total) = (header()?, header()?, header()?);
    if n_minis == 0 || block % n_minis != 0 || !(block / n_minis).is_multiple_of(32) {
        return Err(oos(format!("{n_minis} parts of a block of {block}")));
    }
    let mini = block / n_minis;
    let (mut last, used) = zigzag_leb128::decode(rest);
    rest = rest.get(used..).ok_or_else(short)?;
    if total != n {
        return Err(oos(format!("{total} of {n} differences")));
    }
    if total == 0 {
        return Ok(());
    }
    values.push(last);
    let mut left = total - 1;
    while left > 0 {
        let (smallest, used) = zigzag_leb128::decode(rest);
        let (widths, mut body) = rest
            .get(used..)
            .and_then(|rest| rest.split_at_checked(n_minis))
            .ok_or_else(short)?;
        for &width in widths {
            let n = mini.min(left);
            if n == 0 {
                break;
            }
            let width = usize::from(width);
            packed.clear();
            if width > 0 {
                let (bits, after) = body.split_at_checked(width * mini / 8).ok_or_else(short)?;
                bitpacked::Decoder::<u64>::try_new(bits, width, mini)?.collect_into(packed);
                body = after;
            } else {
                packed.resize(n, 0);
            }
            values.extend(packed[..n].iter().map(|&difference| {
                last = last.wrapping_add(difference as i64).wrapping_add(smallest);
                last
            }));
            left -= n;
        }
        rest = body;
    }
    Ok(())
}
