//! From files to a dataset: recognise, read, account, link, write.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use policysim_sim::run::Symbols;
use xxhash_rust::xxh3::xxh3_64;

use crate::ahead::{self, Ahead};
use crate::content::{Content, Fingerprint, Progress};
use crate::dataset::Dataset;
use crate::error::TelemetryError;
use crate::import::{
    self, Format, ImportError, ImportOptions, Sink, SinkError, Sniffed, SourceInput, SourceReport,
};
use crate::link::{self, SourceLinks};
use crate::local;
use crate::log_sink::LogSink;
use crate::manifest::{Lines, Manifest, Options, SourceEntry, SourceStatus};
use crate::repeats::Records;
use crate::tables::{self, TableKind, TableReport};
use crate::walk::{self, Found, Origin};
use crate::writer::{DatasetWriter, hex};

/// What a source can be read as.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum InputFormat {
    /// A harness' log.
    Log(Format),
    /// One of our own tables.
    Table(TableKind),
}

impl InputFormat {
    /// Every format, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        let tables = [TableKind::Events, TableKind::Samples, TableKind::Record].map(Self::Table);
        Format::ALL.into_iter().map(Self::Log).chain(tables)
    }

    /// The format's name on the command line and in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log(format) => format.name(),
            Self::Table(kind) => kind.name(),
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }
}

/// Where the logs of an import are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Inputs {
    /// The agents' own folders on this machine ([`crate::locate_local`]).
    Local,
    /// Files and folders.
    Paths(Vec<PathBuf>),
}

impl Default for Inputs {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

/// What to import, and how.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Where the logs are.
    pub inputs: Inputs,
    /// Read every source as this, instead of recognising each by its content.
    pub format: Option<InputFormat>,
    /// Replace source names by hashes, everywhere.
    pub hash_sources: bool,
    /// An unrecognised or unreadable file, or a malformed line, is an error.
    pub strict: bool,
    /// A record found in several sources counts in the first, by name.
    pub dedupe: bool,
    /// Only runs started at or after this instant, ms since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Only runs started before this instant, ms since the Unix epoch.
    pub until_ms: Option<i64>,
    /// When the observation of the logs ended, ms since the Unix epoch.
    pub observed_until_ms: Option<i64>,
}

impl ImportRequest {
    /// Whether the window lets in a run that started then.
    pub(crate) fn selects(&self, started_at_ms: i64) -> bool {
        self.since_ms.is_none_or(|since| started_at_ms >= since)
            && self.until_ms.is_none_or(|until| started_at_ms < until)
    }
}

/// Imports into a dataset at `out`, which appears only when it is complete.
///
/// The result is a function of the sources' content, their names, the request and the version: the same bytes again.
///
/// # Errors
/// Every variant of [`TelemetryError`] but those of reading a dataset; [`TelemetryError::Cancelled`] once `cancel`
/// is set. After an error nothing is left of the output.
pub fn import_to_dataset(
    request: &ImportRequest,
    out: &Path,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<Dataset, TelemetryError> {
    let found = find(request)?;
    import(
        request,
        &found,
        DatasetWriter::in_folder(out)?,
        progress,
        cancel,
    )
}

impl Dataset {
    /// Imports into memory, writing nothing: what a command does that is given logs instead of a dataset.
    ///
    /// # Errors
    /// As [`import_to_dataset`].
    pub fn from_logs(
        request: &ImportRequest,
        progress: &dyn Progress,
        cancel: &AtomicBool,
    ) -> Result<Self, TelemetryError> {
        let found = find(request)?;
        import(
            request,
            &found,
            DatasetWriter::in_memory()?,
            progress,
            cancel,
        )
    }
}

/// The files that the request names.
fn find(request: &ImportRequest) -> Result<Vec<Found>, TelemetryError> {
    match &request.inputs {
        Inputs::Local => local::files(&|name| std::env::var_os(name)),
        Inputs::Paths(paths) => walk::walk(paths),
    }
}

/// Imports the files of `found`, which have their names already.
pub(crate) fn import(
    request: &ImportRequest,
    found: &[Found],
    writer: DatasetWriter,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<Dataset, TelemetryError> {
    progress.start(found.len(), found.iter().map(|file| file.n_bytes).sum());
    let mut importing = Importing {
        request,
        progress,
        cancel,
        writer,
        symbols: Symbols::default(),
        records: Records::new(request.dedupe),
        n_files: found.len(),
        entries: Vec::with_capacity(found.len()),
        links: Vec::new(),
        warnings: Warnings::default(),
        strays: 0,
        first_stray: None,
    };
    let mut files = found;
    while !files.is_empty() {
        let (window, rest) = files.split_at(ahead::window(request, files).max(1));
        files = rest;
        let names = window.iter().map(|file| importing.shown_name(&file.name));
        let named: Vec<(&Found, String)> = window.iter().zip(names).collect();
        let read = match named.as_slice() {
            [_] => vec![None],
            several => ahead::read(request, several, progress, cancel),
        };
        for ((file, name), read) in named.iter().zip(read) {
            if cancel.load(Ordering::Relaxed) {
                return Err(TelemetryError::Cancelled);
            }
            match read {
                Some(ahead) => importing.take_ahead(file, name, ahead)?,
                None => importing.read_source(file)?,
            }
        }
    }
    importing.finish()
}

/// What the content is to be read as, or what it holds instead.
pub(crate) fn format_of(
    request: &ImportRequest,
    content: &Content<'_>,
    file: &Found,
) -> Result<InputFormat, String> {
    request
        .format
        .map_or_else(|| recognise(content.head(), file), Ok)
}

pub(crate) fn open<'a>(
    file: &Found,
    progress: &'a dyn Progress,
    cancel: &'a AtomicBool,
) -> io::Result<Content<'a>> {
    match file.origin {
        Origin::File => Content::open(&file.path, progress, cancel),
        Origin::OpencodeSession => {
            Content::from_bytes(local::opencode_document(&file.path)?, progress, cancel)
        }
    }
}

struct Importing<'a> {
    request: &'a ImportRequest,
    progress: &'a dyn Progress,
    cancel: &'a AtomicBool,
    writer: DatasetWriter,
    symbols: Symbols,
    records: Records,
    n_files: usize,
    entries: Vec<SourceEntry>,
    links: Vec<SourceLinks>,
    warnings: Warnings,
    /// Files that gave nothing, and the first of them with what it holds.
    strays: usize,
    first_stray: Option<(String, String)>,
}

impl Importing<'_> {
    fn read_source(&mut self, file: &Found) -> Result<(), TelemetryError> {
        let name = self.shown_name(&file.name);
        self.progress.source(&name);
        let content = match open(file, self.progress, self.cancel) {
            Ok(content) => content,
            Err(error) => return self.unreadable(file, &name, Fingerprint::default(), None, error),
        };
        match format_of(self.request, &content, file) {
            Ok(InputFormat::Log(format)) => self.read_log(file, &name, content, format),
            Ok(InputFormat::Table(kind)) => self.read_table(file, &name, content, kind),
            Err(what) => self.unrecognised(file, &name, content, &what),
        }
    }

    fn read_log(
        &mut self,
        file: &Found,
        name: &str,
        mut content: Content<'_>,
        format: Format,
    ) -> Result<(), TelemetryError> {
        self.refuse_mixture(name, false)?;
        let options = ImportOptions {
            observed_until_ms: self.request.observed_until_ms,
        };
        self.records.begin_source(self.entries.len());
        // One source repeats nobody.
        let records = Some(&mut self.records).filter(|_| self.n_files > 1);
        let mut sink = LogSink::new(self.request, &mut self.writer, records);
        let input = SourceInput {
            name,
            reader: &mut content,
        };
        let result = import::import_source(input, format, &options, &mut self.symbols, &mut sink);
        sink.finish(&self.symbols)?;
        let report = match result {
            Ok(report) => report,
            Err(ImportError::Read { source, .. }) => {
                let so_far = content.so_far();
                return self.unreadable(file, name, so_far, Some(format.name()), source);
            }
            Err(ImportError::Sink { source, .. }) => {
                return Err(sink_error(source));
            }
        };
        let fingerprint = match content.finish() {
            Ok(fingerprint) => fingerprint,
            Err(error) => {
                return self.unreadable(
                    file,
                    name,
                    Fingerprint::default(),
                    Some(format.name()),
                    error,
                );
            }
        };
        self.take_log_report(file, name, fingerprint, report)
    }

    /// Takes in what a log brought that was read ahead.
    fn take_ahead(&mut self, file: &Found, name: &str, ahead: Ahead) -> Result<(), TelemetryError> {
        self.refuse_mixture(name, false)?;
        self.records.begin_source(self.entries.len());
        if self.n_files > 1 {
            for (record, stamp_ms) in ahead.records {
                self.records.is_elsewhere(record, stamp_ms);
            }
        }
        let mut sink = LogSink::new(self.request, &mut self.writer, None);
        let taken = ahead
            .runs
            .into_iter()
            .try_for_each(|run| sink.run(run, &ahead.symbols));
        sink.finish(&ahead.symbols)?;
        taken.map_err(sink_error)?;
        self.take_log_report(file, name, ahead.fingerprint, ahead.report)
    }

    fn take_log_report(
        &mut self,
        file: &Found,
        name: &str,
        fingerprint: Fingerprint,
        report: SourceReport,
    ) -> Result<(), TelemetryError> {
        for bad in &report.bad_lines {
            self.malformed(name, bad.line, bad.offset, bad.reason.name())?;
        }
        let listed = report.bad_lines.len();
        // A document that does not read is one entry, however many lines it has.
        if listed >= import::LISTED_BAD_LINES && report.lines.malformed > listed as u64 {
            self.warnings.add(format!(
                "'{name}': {} malformed lines, of which the first {listed} are listed in quarantine.csv",
                report.lines.malformed
            ));
        }
        let nothing = report.lines.imported == 0
            || (report.counts.n_turns == 0 && !report.unknown_types.is_empty());
        if nothing {
            let (what, format) = (describe_report(&report), report.format.name());
            self.gave_nothing(file, (name, format), fingerprint.n_bytes, &what)?;
        }
        let mut counts: BTreeMap<String, u64> = report.fields().into_iter().collect();
        counts.insert(
            "n_duplicates_elsewhere".to_owned(),
            report.duplicates_elsewhere,
        );
        counts.insert("n_invalid_utf8_lines".to_owned(), report.invalid_utf8_lines);
        counts.insert("n_clock_steps".to_owned(), report.clock_steps);
        counts.insert("max_clock_step_ms".to_owned(), report.largest_clock_step_ms);
        counts.insert(
            "n_epoch_second_stamps".to_owned(),
            report.epoch_second_stamps,
        );
        self.entries.push(SourceEntry {
            source: name.to_owned(),
            format: Some(report.format.name().to_owned()),
            status: if fingerprint.n_bytes == 0 {
                SourceStatus::Empty
            } else {
                SourceStatus::Imported
            },
            found: None,
            digest: hex(fingerprint.digest),
            n_bytes: fingerprint.n_bytes,
            lines: lines_of(&report),
            client_version: report.client_version.clone(),
            unknown_types: report.unknown_types.clone(),
            counts,
        });
        self.links.push(SourceLinks::new(file, report));
        Ok(())
    }

    fn read_table(
        &mut self,
        file: &Found,
        name: &str,
        content: Content<'_>,
        kind: TableKind,
    ) -> Result<(), TelemetryError> {
        self.refuse_mixture(name, kind == TableKind::Samples)?;
        let mut reading = tables::Reading {
            request: self.request,
            cancel: self.cancel,
            writer: &mut self.writer,
        };
        let (report, fingerprint) = match tables::read(&mut reading, file, name, content, kind) {
            Ok(done) => done,
            Err(tables::TableError::Read(error)) => {
                return self.unreadable(
                    file,
                    name,
                    Fingerprint::default(),
                    Some(kind.name()),
                    error,
                );
            }
            Err(tables::TableError::Other(error)) => return Err(error),
        };
        self.take_table_report(file, name, fingerprint, report, kind)
    }

    fn take_table_report(
        &mut self,
        file: &Found,
        name: &str,
        fingerprint: Fingerprint,
        report: TableReport,
        kind: TableKind,
    ) -> Result<(), TelemetryError> {
        for bad in &report.bad_rows {
            self.malformed(name, bad.line, bad.offset, &bad.reason)?;
        }
        if report.lines.imported == 0 {
            let what = report.bad_rows.first().map_or_else(
                || format!("a table of {} without rows", kind.name()),
                |bad| {
                    format!(
                        "a table of {} without a readable row (line {}: {})",
                        kind.name(),
                        bad.line,
                        bad.reason
                    )
                },
            );
            self.gave_nothing(file, (name, kind.name()), fingerprint.n_bytes, &what)?;
        }
        for warning in report.warnings {
            self.warnings.add(format!("'{name}': {warning}"));
        }
        self.entries.push(SourceEntry {
            source: name.to_owned(),
            format: Some(kind.name().to_owned()),
            status: if fingerprint.n_bytes == 0 {
                SourceStatus::Empty
            } else {
                SourceStatus::Imported
            },
            digest: hex(fingerprint.digest),
            n_bytes: fingerprint.n_bytes,
            lines: report.lines,
            counts: report.counts,
            ..SourceEntry::default()
        });
        Ok(())
    }

    fn unrecognised(
        &mut self,
        file: &Found,
        name: &str,
        mut content: Content<'_>,
        what: &str,
    ) -> Result<(), TelemetryError> {
        let empty = content.head().is_empty();
        if file.by_name || self.request.strict {
            return Err(TelemetryError::Unrecognised {
                source_name: name.to_owned(),
                found: what.to_owned(),
                tried: tried(),
            });
        }
        let counted = count_lines(&mut content).and_then(|n| Ok((n, content.finish()?)));
        let (n_lines, fingerprint) = match counted {
            Ok(counted) => counted,
            Err(error) => return self.unreadable(file, name, Fingerprint::default(), None, error),
        };
        self.nothing_in(file, name, what)?;
        self.entries.push(SourceEntry {
            source: name.to_owned(),
            status: if empty {
                SourceStatus::Empty
            } else {
                SourceStatus::Unrecognised
            },
            found: Some(what.to_owned()),
            digest: hex(fingerprint.digest),
            n_bytes: fingerprint.n_bytes,
            lines: Lines {
                unrecognised: n_lines,
                ..Lines::default()
            },
            counts: nothing_but_lines(n_lines),
            ..SourceEntry::default()
        });
        Ok(())
    }

    /// A source that was read and gave nothing. Read as what the user says it is, it is a warning, unless all must fit;
    /// an empty one is what it is.
    fn gave_nothing(
        &mut self,
        file: &Found,
        (name, format): (&str, &str),
        n_bytes: u64,
        what: &str,
    ) -> Result<(), TelemetryError> {
        if self.request.format.is_none() || (self.request.strict && n_bytes > 0) {
            return self.nothing_in(file, name, what);
        }
        if n_bytes > 0 {
            self.warnings.add(format!(
                "'{name}': nothing recognised as {format}, found {what}"
            ));
        }
        Ok(())
    }

    /// A source that gave nothing: an error when it was asked for by name or all must fit, else a warning.
    fn nothing_in(&mut self, file: &Found, name: &str, what: &str) -> Result<(), TelemetryError> {
        if file.by_name || self.request.strict {
            return Err(TelemetryError::Unrecognised {
                source_name: name.to_owned(),
                found: what.to_owned(),
                tried: tried(),
            });
        }
        self.strays += 1;
        self.warnings
            .add(format!("'{name}': nothing recognised, found {what}"));
        if self.first_stray.is_none() {
            self.first_stray = Some((name.to_owned(), what.to_owned()));
        }
        Ok(())
    }

    fn unreadable(
        &mut self,
        file: &Found,
        name: &str,
        so_far: Fingerprint,
        format: Option<&str>,
        error: io::Error,
    ) -> Result<(), TelemetryError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(TelemetryError::Cancelled);
        }
        if file.by_name || self.request.strict {
            return Err(TelemetryError::io(name, "reading", error));
        }
        let reason = format!("cannot be read after {} bytes: {error}", so_far.n_bytes);
        self.warnings.add(format!("'{name}': {reason}"));
        self.strays += 1;
        if self.first_stray.is_none() {
            self.first_stray = Some((name.to_owned(), reason.clone()));
        }
        self.entries.push(SourceEntry {
            source: name.to_owned(),
            format: format.map(ToOwned::to_owned),
            status: SourceStatus::Unreadable,
            found: Some(reason),
            digest: hex(so_far.digest),
            n_bytes: so_far.n_bytes,
            counts: BTreeMap::from([("n_lines".to_owned(), 0)]),
            ..SourceEntry::default()
        });
        Ok(())
    }

    fn malformed(
        &mut self,
        name: &str,
        line: u64,
        offset: u64,
        reason: &str,
    ) -> Result<(), TelemetryError> {
        if self.request.strict {
            return Err(TelemetryError::Malformed {
                source_name: name.to_owned(),
                line,
                reason: reason.to_owned(),
            });
        }
        self.writer.quarantine(name, line, offset, reason)
    }

    fn refuse_mixture(&self, name: &str, samples: bool) -> Result<(), TelemetryError> {
        let clash = if samples {
            self.writer.holds_runs()
        } else {
            self.writer.holds_samples()
        };
        if !clash {
            return Ok(());
        }
        let other = self
            .entries
            .last()
            .map_or_else(String::new, |entry| entry.source.clone());
        let (source_name, other) = if samples {
            (name.to_owned(), other)
        } else {
            (other, name.to_owned())
        };
        Err(TelemetryError::MixedInput { source_name, other })
    }

    fn shown_name(&self, name: &str) -> String {
        if self.request.hash_sources {
            format!("src-{}", hex(xxh3_64(name.as_bytes())))
        } else {
            name.to_owned()
        }
    }

    fn finish(mut self) -> Result<Dataset, TelemetryError> {
        if let Some((source_name, what)) = self.first_stray.take()
            && self.strays == self.entries.len()
        {
            return Err(TelemetryError::NothingRecognised {
                files: self.strays,
                source_name,
                found: what,
                tried: tried(),
            });
        }
        let mut notes = self.records.notes(|source| &self.entries[source].source);
        notes.append(&mut link::link(self.writer.rows_mut(), &self.links));
        for note in notes {
            self.warnings.add(note);
        }
        if self.request.hash_sources {
            // The order of the names would tell more than the hashes do.
            self.entries.sort_by(|a, b| a.source.cmp(&b.source));
        }
        let mut manifest = Manifest {
            options: self.options(),
            warnings: self.warnings.finish(),
            ..Manifest::default()
        };
        let totals = &mut manifest.totals;
        totals.n_sources = self.entries.len() as u64;
        for entry in &self.entries {
            totals.n_bytes += entry.n_bytes;
            totals.n_lines += entry.count("n_lines");
            totals.n_runs += entry.count("n_runs");
            totals.lines.add(&entry.lines);
        }
        manifest.sources = self.entries;
        self.writer.finish(manifest)
    }

    fn options(&self) -> Options {
        Options {
            format: self.request.format.map(|format| format.name().to_owned()),
            hash_sources: self.request.hash_sources,
            dedupe: self.request.dedupe,
            since_ms: self.request.since_ms,
            until_ms: self.request.until_ms,
            observed_until_ms: self.request.observed_until_ms,
        }
    }
}

/// Why the dataset did not take a run.
fn sink_error(error: SinkError) -> TelemetryError {
    match error.downcast::<TelemetryError>() {
        Ok(error) => *error,
        Err(other) => TelemetryError::store("events.parquet", other),
    }
}

/// The fields of a source of which only the lines were counted.
fn nothing_but_lines(n_lines: u64) -> BTreeMap<String, u64> {
    let none = SourceReport::new(Arc::from(""), Format::Claude);
    let mut counts: BTreeMap<String, u64> = none.fields().into_iter().collect();
    counts.insert("n_lines".to_owned(), n_lines);
    counts
}

/// Warnings, of which a great many are only counted.
#[derive(Default)]
struct Warnings {
    listed: Vec<String>,
    more: usize,
}

/// How many warnings are listed one by one.
const LISTED_WARNINGS: usize = 200;

impl Warnings {
    fn add(&mut self, warning: String) {
        if self.listed.len() < LISTED_WARNINGS {
            self.listed.push(warning);
        } else {
            self.more += 1;
        }
    }

    fn finish(self) -> Vec<String> {
        let mut listed = self.listed;
        if self.more > 0 {
            listed.push(format!("{} more warnings of these kinds", self.more));
        }
        listed
    }
}

/// What a content that begins with `head` is, or what was found instead.
fn recognise(head: &[u8], file: &Found) -> Result<InputFormat, String> {
    if let Some(kind) = tables::sniff(head, file)? {
        return Ok(InputFormat::Table(kind));
    }
    match import::sniff(head) {
        Sniffed::Format(format) => Ok(InputFormat::Log(format)),
        Sniffed::Unknown(what) => Err(what),
    }
}

fn tried() -> String {
    let names: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
    names.join(", ")
}

fn describe_report(report: &SourceReport) -> String {
    let mut what = format!("a {} log", report.format.name());
    if let Some(version) = &report.client_version {
        let _ = write!(what, " of version {version}");
    }
    if report.unknown_types.is_empty() {
        what += " without a readable record";
    } else {
        let types: Vec<String> = report
            .unknown_types
            .iter()
            .take(8)
            .map(|(name, n)| format!("{name} ({n})"))
            .collect();
        let _ = write!(
            what,
            " without a known turn; unknown types: {}",
            types.join(", ")
        );
    }
    what
}

fn lines_of(report: &SourceReport) -> Lines {
    Lines {
        imported: report.lines.imported,
        ignored: report.lines.ignored,
        duplicate: report.lines.duplicate,
        unrecognised: report.lines.unrecognised,
        malformed: report.lines.malformed,
        undated: report.lines.undated,
    }
}

/// Pieces between line feeds; a trailing empty piece is none.
fn count_lines(reader: &mut dyn BufRead) -> io::Result<u64> {
    let mut lines = 0;
    let mut open = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(lines + u64::from(open));
        }
        lines += buffer.split(|&byte| byte == b'\n').count() as u64 - 1;
        open = buffer.last() != Some(&b'\n');
        let n = buffer.len();
        reader.consume(n);
    }
}
