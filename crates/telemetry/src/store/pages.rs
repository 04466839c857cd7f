//! The columns of a row group, decoded page by page into vectors of ours.
//!
//! A data frame of the same rows costs a `String` view per text and a validity bit per number, and twice the time
//! (`benches/store.rs`). Here text columns are codes into their dictionary, and columns that most rows lack are lists
//! of the rows that have a value.

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::ops::Range;

use polars_parquet::parquet::compression::{Compression, DecompressionContext};
use polars_parquet::parquet::encoding::Encoding;
use polars_parquet::parquet::encoding::hybrid_rle::{HybridRleChunk, HybridRleDecoder};
use polars_parquet::parquet::encoding::plain_byte_array::BinaryIter;
use polars_parquet::parquet::encoding::{bitpacked, uleb128, zigzag_leb128};
use polars_parquet::parquet::error::{ParquetError, ParquetResult};
use polars_parquet::parquet::metadata::Descriptor;
use polars_parquet::parquet::page::{CompressedPage, DataPage, Page, split_buffer};
use polars_parquet::parquet::read::{PageMetaData, decompress};
use polars_parquet::read::PageReader;

use super::places::Place;

/// Whatever Parquet bytes are read from.
pub(super) trait Bytes: Read + Seek {}

impl<T: Read + Seek> Bytes for T {}

/// About so many values are decoded at a time: they stay in the fastest cache on their way to where they are kept.
const PIECE: usize = 1 << 12;

/// So many values are passed over at once where none is of interest.
const FEW: usize = 16;

/// Writers use blocks of 128 to 1,024 differences; what claims to be larger than this is damaged.
const LARGEST_BLOCK: usize = 1 << 16;

/// Writers use pages of 1 MB; what claims to be larger than this is damaged.
const LARGEST_PAGE: usize = 1 << 28;

/// Memory that is filled again for every column: what is freed and asked for again costs more than what it is for.
pub(super) struct Scratch {
    /// A column as it is stored.
    stored: Vec<u8>,
    /// A page of it.
    page: Vec<u8>,
    context: DecompressionContext,
    pieces: Pieces,
    defined: Vec<Range<usize>>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            stored: Vec::new(),
            page: Vec::new(),
            context: DecompressionContext::Unset,
            pieces: Pieces::default(),
            defined: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// Pieces of a page.
#[derive(Debug, Default)]
struct Pieces {
    values: Vec<i64>,
    codes: Vec<u32>,
    packed: Vec<u64>,
}

/// The dictionary of a column: its bytes and how many values they are.
type Dictionary = (Vec<u8>, usize);

/// A column of a row group open for reading.
pub(super) struct Chunk {
    pages: PageReader,
    is_compressed: bool,
    n_rows: usize,
    dictionary: Option<Dictionary>,
    /// Whether rows can lack a value.
    optional: bool,
}

impl Chunk {
    /// Reads the bytes at `place`.
    pub(super) fn read(
        source: &mut dyn Bytes,
        place: Place,
        descriptor: &Descriptor,
        scratch: &mut Scratch,
    ) -> ParquetResult<Self> {
        source.seek(SeekFrom::Start(place.start)).map_err(oos)?;
        let mut stored = std::mem::take(&mut scratch.stored);
        stored.clear();
        let n_bytes = u64::from(place.n_bytes);
        source.take(n_bytes).read_to_end(&mut stored).map_err(oos)?;
        let mut pages = PageReader::new_with_page_meta(
            Cursor::new(stored.into()),
            PageMetaData::new(
                place.start,
                i64::from(place.n_values),
                place.compression,
                descriptor.clone(),
            ),
            Vec::new(),
            usize::MAX,
        );
        let mut dictionary = None;
        if let Some(page) = pages.read_dict()? {
            let mut bytes = Vec::new();
            let page = decompress(CompressedPage::Dict(page), &mut bytes, &mut scratch.context)?;
            if let Page::Dict(page) = page {
                dictionary = Some((page.buffer.into_vec(), page.num_values));
            }
        }
        Ok(Self {
            pages,
            is_compressed: place.compression != Compression::Uncompressed,
            n_rows: place.n_values as usize,
            dictionary,
            optional: descriptor.max_def_level > 0,
        })
    }

    /// The texts of the dictionary, by code; none where the column has no dictionary.
    pub(super) fn texts(&self) -> ParquetResult<Vec<String>> {
        let Some((bytes, n_values)) = &self.dictionary else {
            return Ok(Vec::new());
        };
        BinaryIter::new(bytes, Some(*n_values))
            .map(|text| text.map(|text| String::from_utf8_lossy(text).into_owned()))
            .collect()
    }

    /// What the texts of the dictionary stand for, by code; `column` is what an error calls the column.
    pub(super) fn known<T>(
        &self,
        column: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> ParquetResult<Vec<T>> {
        let parse = |name: String| {
            parse(&name).ok_or_else(|| {
                oos(format!(
                    "column {column} holds '{name}', which is no known name"
                ))
            })
        };
        self.texts()?.into_iter().map(parse).collect()
    }

    /// The numbers of the dictionary, by code.
    fn numbers(&self) -> Vec<i64> {
        self.dictionary
            .as_ref()
            .map_or_else(Vec::new, |(bytes, _)| plain(bytes).collect())
    }

    /// Whether the column has a dictionary.
    pub(super) const fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    /// The numbers of the column, one per row, piece by piece through `take`.
    pub(super) fn dense_numbers(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&[i64]),
    ) -> ParquetResult<()> {
        let dictionary = self.numbers();
        self.each_page(scratch, |page, rows, pieces| {
            rows.all()?;
            page_numbers(page, rows.len(), &dictionary, pieces, &mut take)
        })
    }

    /// The numbers of the column other than 0, each with its row, by rising row.
    pub(super) fn other_numbers(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, i64),
    ) -> ParquetResult<()> {
        if self.has_dictionary() {
            let numbers = self.numbers();
            return self.other_codes(&numbers, scratch, take);
        }
        self.each_page(scratch, |page, rows, pieces| {
            rows.all()?;
            let mut row = rows.first;
            page_numbers(page, rows.len(), &[], pieces, &mut |values| {
                for values in values.chunks(FEW) {
                    if values.iter().fold(0, |any, value| any | value) != 0 {
                        let others = (row..).zip(values).filter(|(_, value)| **value != 0);
                        others.for_each(|(row, value)| take(row, *value));
                    }
                    row += values.len();
                }
            })
        })
    }

    /// The rows that have a number, with it, by rising row.
    pub(super) fn sparse_numbers(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, i64),
    ) -> ParquetResult<()> {
        let dictionary = self.numbers();
        self.each_page(scratch, |page, rows, pieces| {
            let mut row = rows.defined();
            page_numbers(page, rows.n_defined(), &dictionary, pieces, &mut |values| {
                for (value, row) in values.iter().zip(row.by_ref()) {
                    take(row, *value);
                }
            })
        })
    }

    /// The texts of the column as codes, each below `n_known`, one per row, piece by piece through `take`.
    pub(super) fn each_code(
        self,
        n_known: usize,
        scratch: &mut Scratch,
        mut take: impl FnMut(Codes<'_>),
    ) -> ParquetResult<()> {
        self.each_page(scratch, |page, rows, pieces| {
            rows.all()?;
            page_codes(page, rows.len(), n_known, &mut pieces.codes, &mut take)
        })
    }

    /// Appends the texts of the column as what `known` holds per text of the dictionary, one per row.
    pub(super) fn dense_codes<T: Clone>(
        self,
        known: &[T],
        scratch: &mut Scratch,
        into: &mut Vec<T>,
    ) -> ParquetResult<()> {
        self.each_code(known.len(), scratch, |codes| match codes {
            Codes::Same(code, n) => into.resize(into.len() + n, known[code as usize].clone()),
            Codes::Each(codes) => {
                into.extend(codes.iter().map(|&code| known[code as usize].clone()));
            }
        })
    }

    /// The rows for which `known` holds something else than the default, with it, by rising row.
    pub(super) fn other_codes<T: Copy + Default + PartialEq>(
        self,
        known: &[T],
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, T),
    ) -> ParquetResult<()> {
        let most = known.iter().position(|known| *known == T::default());
        let most = most.map_or(u32::MAX, |code| code as u32);
        let mut row = 0;
        self.each_code(known.len(), scratch, |codes| match codes {
            Codes::Same(code, n) => {
                if code != most {
                    (row..row + n).for_each(|row| take(row, known[code as usize]));
                }
                row += n;
            }
            Codes::Each(codes) => {
                for codes in codes.chunks(FEW) {
                    if codes.iter().fold(0, |any, code| any | (code ^ most)) != 0 {
                        let others = (row..).zip(codes).filter(|(_, code)| **code != most);
                        others.for_each(|(row, &code)| take(row, known[code as usize]));
                    }
                    row += codes.len();
                }
            }
        })
    }

    /// The rows that have a text, with what `known` holds for it, by rising row.
    pub(super) fn sparse_codes<T: Copy>(
        self,
        known: &[T],
        scratch: &mut Scratch,
        mut take: impl FnMut(usize, T),
    ) -> ParquetResult<()> {
        self.each_page(scratch, |page, rows, pieces| {
            let mut row = rows.defined();
            let (n, codes) = (rows.n_defined(), &mut pieces.codes);
            page_codes(page, n, known.len(), codes, &mut |codes| match codes {
                Codes::Same(code, n) => {
                    let rows = row.by_ref().take(n);
                    rows.for_each(|row| take(row, known[code as usize]));
                }
                Codes::Each(codes) => {
                    for (&code, row) in codes.iter().zip(row.by_ref()) {
                        take(row, known[code as usize]);
                    }
                }
            })
        })
    }

    /// The texts of a column without a dictionary, one per row.
    pub(super) fn plain_texts(
        self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&str),
    ) -> ParquetResult<()> {
        self.each_page(scratch, |page, rows, _| {
            rows.all()?;
            if page.encoding() != Encoding::Plain {
                return Err(oos(format!("a text column in {:?}", page.encoding())));
            }
            let mut texts = BinaryIter::new(split_buffer(page)?.values, Some(rows.len()));
            for _ in 0..rows.len() {
                let text = texts.next().ok_or_else(|| oos("too few texts"))??;
                take(&String::from_utf8_lossy(text));
            }
            Ok(())
        })
    }

    /// The truth values of the column, one per row.
    pub(super) fn dense_bools(
        self,
        scratch: &mut Scratch,
        into: &mut Vec<bool>,
    ) -> ParquetResult<()> {
        self.each_page(scratch, |page, rows, _| {
            rows.all()?;
            let bits = split_buffer(page)?.values;
            if page.encoding() != Encoding::Plain || bits.len() < rows.len().div_ceil(8) {
                return Err(oos("a column of truth values that is not one bit each"));
            }
            into.extend((0..rows.len()).map(|at| is_set(bits, at)));
            Ok(())
        })
    }

    /// Gives the memory back unread.
    pub(super) fn close(self, scratch: &mut Scratch) {
        let stored = self.pages.into_inner().0.into_inner();
        // a page that is still held elsewhere keeps the memory
        if let Some(stored) = stored.into_mut().right() {
            scratch.stored = stored;
        }
    }

    /// Every page, decompressed, with its rows.
    fn each_page(
        mut self,
        scratch: &mut Scratch,
        mut take: impl FnMut(&DataPage, &Rows<'_>, &mut Pieces) -> ParquetResult<()>,
    ) -> ParquetResult<()> {
        let mut first = 0;
        for page in self.pages.by_ref() {
            let page = page?;
            if let CompressedPage::Data(page) = &page
                && page.uncompressed_size() > LARGEST_PAGE
            {
                return Err(oos(format!("a page of {} bytes", page.uncompressed_size())));
            }
            let page = decompress(page, &mut scratch.page, &mut scratch.context)?;
            let Page::Data(mut page) = page else {
                return Err(oos("a second dictionary"));
            };
            let end = first + page.num_values();
            if end > self.n_rows {
                return Err(oos(format!("{end} or more of {} rows", self.n_rows)));
            }
            scratch.defined.clear();
            if self.optional {
                let levels = split_buffer(&page)?.def;
                defined_rows(levels, first..end, &mut scratch.defined)?;
            } else {
                scratch.defined.push(first..end);
            }
            let defined = &scratch.defined;
            let rows = Rows {
                first,
                end,
                defined,
            };
            take(&page, &rows, &mut scratch.pieces)?;
            first = end;
            if self.is_compressed {
                scratch.page = std::mem::take(page.buffer_mut());
            }
        }
        if first != self.n_rows {
            return Err(oos(format!("{first} of {} rows", self.n_rows)));
        }
        self.close(scratch);
        Ok(())
    }
}

/// The rows of a page.
struct Rows<'a> {
    first: usize,
    end: usize,
    /// Those that have a value.
    defined: &'a [Range<usize>],
}

impl Rows<'_> {
    const fn len(&self) -> usize {
        self.end - self.first
    }

    fn n_defined(&self) -> usize {
        self.defined.iter().map(Range::len).sum()
    }

    fn defined(&self) -> impl Iterator<Item = usize> {
        self.defined.iter().flat_map(Clone::clone)
    }

    /// An error unless all have a value.
    fn all(&self) -> ParquetResult<()> {
        if self.n_defined() == self.len() {
            Ok(())
        } else {
            Err(oos("a row without a value"))
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` hands it over
pub(super) fn oos(what: impl ToString) -> ParquetError {
    ParquetError::OutOfSpec(what.to_string())
}

const fn is_set(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

fn plain(bytes: &[u8]) -> impl Iterator<Item = i64> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|bytes| i64::from_le_bytes(*bytes))
}

/// The ranges of `rows` whose definition level says that there is a value.
fn defined_rows(
    levels: &[u8],
    rows: Range<usize>,
    ranges: &mut Vec<Range<usize>>,
) -> ParquetResult<()> {
    let mut row = rows.start;
    let mut add = |row: usize, n: usize| match ranges.last_mut() {
        Some(last) if last.end == row => last.end += n,
        _ => ranges.push(row..row + n),
    };
    for chunk in HybridRleDecoder::new(levels, 1, rows.len()).into_chunk_iter() {
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
                    if is_set(bits, at) {
                        add(row + at, 1);
                    }
                }
                row += n;
            }
        }
    }
    if row == rows.end {
        Ok(())
    } else {
        let (found, all) = (row - rows.start, rows.len());
        Err(oos(format!("definition levels of {found} of {all} rows")))
    }
}

/// Codes of neighbouring rows.
pub(super) enum Codes<'a> {
    /// One code, so many times.
    Same(u32, usize),
    Each(&'a [u32]),
}

/// The `n` codes of a page, each below `n_known`, piece by piece.
fn page_codes(
    page: &DataPage,
    n: usize,
    n_known: usize,
    piece: &mut Vec<u32>,
    take: &mut impl FnMut(Codes<'_>),
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
    let mut left = n;
    let mut pass_on = |codes: Codes<'_>| {
        let (largest, n) = match codes {
            Codes::Same(code, n) => (code, n),
            Codes::Each(codes) => (codes.iter().copied().max().unwrap_or(0), codes.len()),
        };
        if n == 0 {
            return Ok(());
        }
        if n > left || largest as usize >= n_known {
            return Err(oos("a code without a meaning"));
        }
        left -= n;
        take(codes);
        Ok(())
    };
    if n_bits > 32 {
        return Err(oos(format!("codes of {n_bits} bits")));
    }
    for chunk in HybridRleDecoder::new(packed, u32::from(n_bits), n).into_chunk_iter() {
        match chunk? {
            HybridRleChunk::Rle(code, n) => pass_on(Codes::Same(code, n))?,
            HybridRleChunk::Bitpacked(mut packed) => {
                let mut unpacked = [0; 32];
                let mut blocks = packed.chunked();
                piece.clear();
                while let Some(n) = blocks.next_into(&mut unpacked) {
                    piece.extend_from_slice(&unpacked[..n]);
                    if piece.len() >= PIECE {
                        pass_on(Codes::Each(piece))?;
                        piece.clear();
                    }
                }
                pass_on(Codes::Each(piece))?;
            }
        }
    }
    if left == 0 {
        Ok(())
    } else {
        Err(oos(format!("codes of {} of {n} values", n - left)))
    }
}

/// The `n` numbers of a page, piece by piece.
fn page_numbers(
    page: &DataPage,
    n: usize,
    dictionary: &[i64],
    pieces: &mut Pieces,
    take: &mut impl FnMut(&[i64]),
) -> ParquetResult<()> {
    let bytes = split_buffer(page)?.values;
    let values = &mut pieces.values;
    match page.encoding() {
        Encoding::DeltaBinaryPacked => differences(bytes, n, values, &mut pieces.packed, take),
        Encoding::Plain => {
            let Some(bytes) = bytes.get(..8 * n) else {
                return Err(oos(format!("{} of {n} numbers", bytes.len() / 8)));
            };
            for bytes in bytes.chunks(8 * PIECE) {
                values.clear();
                values.extend(plain(bytes));
                take(values);
            }
            Ok(())
        }
        Encoding::RleDictionary | Encoding::PlainDictionary => {
            let n_known = dictionary.len();
            page_codes(page, n, n_known, &mut pieces.codes, &mut |codes| {
                values.clear();
                match codes {
                    Codes::Same(code, n) => values.resize(n, dictionary[code as usize]),
                    Codes::Each(codes) => {
                        values.extend(codes.iter().map(|&code| dictionary[code as usize]));
                    }
                }
                take(values);
            })
        }
        other => Err(oos(format!("a column of integers in {other:?}"))),
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
    take: &mut impl FnMut(&[i64]),
) -> ParquetResult<()> {
    let short = || oos("differences are cut short");
    let mut rest = bytes;
    let mut header = || {
        let (number, used) = uleb128::decode(rest);
        rest = rest.get(used..).ok_or_else(short)?;
        usize::try_from(number).map_err(oos)
    };
    let (block, n_minis, total) = (header()?, header()?, header()?);
    let whole = n_minis > 0 && block % n_minis == 0 && (block / n_minis).is_multiple_of(32);
    if !whole || block > LARGEST_BLOCK {
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
    values.clear();
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
            if width > 64 {
                return Err(oos(format!("differences of {width} bits")));
            }
            packed.clear();
            if width > 0 {
                let (bits, after) = body.split_at_checked(width * mini / 8).ok_or_else(short)?;
                bitpacked::Decoder::<u64>::try_new(bits, width, mini)?.collect_into(packed);
                body = after;
            } else {
                packed.resize(n, 0);
            }
            values.extend(packed[..n].iter().map(|&difference| {
                last = last.wrapping_add(smallest.wrapping_add(difference as i64));
                last
            }));
            left -= n;
        }
        rest = body;
        if values.len() >= PIECE {
            take(values);
            values.clear();
        }
    }
    take(values);
    Ok(())
}
