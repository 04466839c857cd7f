//! From what a command line names to runs in memory: a dataset, logs, the word `local`, or the demo.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use policysim_policy::nearest;
use policysim_report::header::DataHeader;
use policysim_report::units::{bytes, counted, grouped};
use policysim_sim::run::{
    EventFlags, Fleet, RecordedEnd, Resolution, Run, RunEvent, RunStatus, Symbols, Wait,
};
use policysim_telemetry::{
    Arguments, Contents, Dataset, ImportRequest, InputFormat, Inputs, Manifest, Sample,
};

use crate::args::{DataArgs, GlobalArgs, ReadArgs};
use crate::given;
use crate::output::say;
use crate::progress::Bar;
use crate::summary_file::is_one as is_summary;

/// The demo: runs drawn from `data/models/adr-0129.toml` by the command that its manifest names.
mod demo {
    pub(super) const MANIFEST: &[u8] = include_bytes!("../../../data/demo/manifest.json");
    pub(super) const RUNS: &[u8] = include_bytes!("../../../data/demo/runs.parquet");
    pub(super) const EVENTS: &[u8] = include_bytes!("../../../data/demo/events.parquet");
}

/// What a folder holds that a sweep wrote its results into.
pub(crate) const SWEEP_FILE: &str = "sweep.json";

/// Runs in memory and what must be said of them.
pub(crate) struct Loaded {
    /// The runs; for samples, one row outside any run per sample.
    pub(crate) fleet: Fleet,
    /// What results say first.
    pub(crate) header: DataHeader,
    /// Durations without an order: waits can be described, runs cannot be replayed.
    pub(crate) samples_only: bool,
}

/// Loads what `args` names; without a name, the embedded demo.
///
/// # Errors
/// One line that names the file or option and what was expected.
pub(crate) fn load(args: &DataArgs, global: &GlobalArgs) -> Result<Loaded> {
    open_runs(args, global)?.load()
}

/// A dataset, its runs to be read as they are needed, and what must be said of it.
pub(crate) struct Opened {
    /// The dataset.
    pub(crate) dataset: Dataset,
    /// What results say first.
    pub(crate) header: DataHeader,
    /// Durations without an order: waits can be described, runs cannot be replayed.
    pub(crate) samples_only: bool,
}

/// Opens what `args` names without its events in memory; without a name, the embedded demo.
///
/// # Errors
/// As [`load`].
pub(crate) fn open_runs(args: &DataArgs, global: &GlobalArgs) -> Result<Opened> {
    refuse_results(&args.data)?;
    let (dataset, name) = open(args, global)?;
    // A dataset's warnings were said when it was imported, and stand in its manifest.
    if !matches!(Arguments::tell(&args.data), Ok(Arguments::Dataset(_))) {
        say_warnings(dataset.manifest(), WARNINGS_SHOWN, global);
    }
    let samples_only = dataset.manifest().contents == Contents::Samples;
    let mut heads = Heads::default();
    dataset.each_head(|run| heads.add(run))?;
    let header = header(dataset.manifest(), name, &heads);
    let windowed = args.read.since.is_some() || args.read.until.is_some();
    if windowed && header.runs == 0 {
        bail!(
            "no run of {} starts between --since and --until; without them there are {}",
            header.name,
            grouped(dataset.manifest().totals.n_runs)
        );
    }
    Ok(Opened {
        dataset,
        header,
        samples_only,
    })
}

impl Opened {
    /// Reads all of it into memory.
    ///
    /// # Errors
    /// When the dataset does not read.
    pub(crate) fn load(&self) -> Result<Loaded> {
        let mut header = self.header.clone();
        let fleet = if self.samples_only {
            let samples = self.dataset.samples()?;
            let caveat = format!(
                "{} samples without their order: waits can be described, runs cannot be replayed.",
                samples.len()
            );
            header.caveats.insert(0, caveat);
            of_samples(&samples)
        } else {
            Fleet {
                runs: self.dataset.fleet()?,
                symbols: self.dataset.symbols().clone(),
            }
        };
        Ok(Loaded {
            fleet,
            header,
            samples_only: self.samples_only,
        })
    }
}

/// Whether `path` is a folder into which a sweep wrote its results.
pub(crate) fn is_result_set(path: &Path) -> bool {
    path.join(SWEEP_FILE).is_file() && !path.join("manifest.json").exists()
}

/// Refuses what other commands wrote and that holds no events.
///
/// # Errors
/// One line that names the file, what it is, and what reads it.
pub(crate) fn refuse_results(paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        let shown = path.display();
        if is_summary(path) {
            bail!(
                "{shown} is a summary of `policysim gate summarise`, which holds no events: `policysim gate {shown} --policy POLICY --rules FILE` and `policysim sweep {shown}` read it, alone, and `policysim sweep {shown} --out DIR` makes what `policysim report DIR` reads; here the dataset or the logs are needed"
            );
        }
        if is_result_set(path) {
            bail!(
                "{shown} is a result set of `policysim sweep --out`, which holds no events: `policysim report {shown}` and `policysim gate {shown} --policy POLICY --rules FILE` read it, alone; here the dataset or the logs are needed"
            );
        }
    }
    Ok(())
}

fn open(args: &DataArgs, global: &GlobalArgs) -> Result<(Dataset, String)> {
    if args.data.is_empty() {
        refuse_reading_options(args, "the embedded demo is used without a DATASET")?;
        say(
            global.quiet,
            "no DATASET given: using the embedded demo (synthetic; only its pre-token waits are published figures)",
        );
        let dataset = Dataset::from_bytes(demo::MANIFEST, demo::RUNS, demo::EVENTS)
            .context("the embedded demo does not read")?;
        return Ok((dataset, "demo".to_owned()));
    }
    args.data.iter().for_each(|path| given::keep(path));
    let cancel = on_interrupt()?;
    let name = shown_name(&args.data);
    let dataset = match Arguments::tell(&args.data)? {
        Arguments::Dataset(path) => {
            refuse_reading_options(
                args,
                "the argument is a dataset: import the logs again with it",
            )?;
            Dataset::open(&path)?
        }
        Arguments::Logs(inputs) => {
            say_local(&inputs, global);
            let bar = Bar::new(global.quiet, 0, "reading");
            let dataset = Dataset::from_logs(
                &request(args.input_format.as_deref(), &args.read, inputs)?,
                &bar,
                &cancel,
            );
            bar.done();
            dataset?
        }
    };
    interrupts_end(&cancel)?;
    Ok((dataset, name))
}

/// How many warnings a command shows that is not about them.
const WARNINGS_SHOWN: usize = 3;

/// Says the first `most` warnings of an import, and how many more there are.
pub(crate) fn say_warnings(manifest: &Manifest, most: usize, global: &GlobalArgs) {
    for warning in manifest.warnings.iter().take(most) {
        say(global.quiet, &format!("warning: {warning}"));
    }
    let more = manifest.warnings.len().saturating_sub(most);
    if more > 0 {
        say(
            global.quiet,
            &format!("… and {more} more warnings; `policysim import` lists them all"),
        );
    }
}

/// For the word `local`: what was found where.
pub(crate) fn say_local(inputs: &Inputs, global: &GlobalArgs) {
    if *inputs != Inputs::Local {
        return;
    }
    let home = std::env::home_dir();
    for folder in policysim_telemetry::locate_local() {
        let shown = match home
            .as_deref()
            .and_then(|home| folder.path.strip_prefix(home).ok())
        {
            Some(below) => format!("~/{}", below.display()),
            None => folder.path.display().to_string(),
        };
        let found = match folder.n_logs {
            0 => "no logs".to_owned(),
            1 => format!("1 log, {}", bytes(folder.n_bytes)),
            n => format!("{} logs, {}", grouped(n as u64), bytes(folder.n_bytes)),
        };
        let note = folder
            .note
            .map_or_else(String::new, |note| format!("; {note}"));
        say(
            global.quiet,
            &format!("{}: {found} in {shown}{note}", folder.agent),
        );
    }
}

/// The flag of [`on_interrupt`], of which there is one: whoever listened first is not to swallow the interrupt of whoever
/// does later.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that an interrupt from the keyboard raises, until [`interrupts_end`].
pub(crate) fn on_interrupt() -> Result<Arc<AtomicBool>> {
    if let Some(cancel) = INTERRUPTED.get() {
        cancel.store(false, Ordering::Relaxed);
        return Ok(Arc::clone(cancel));
    }
    let cancel = Arc::clone(INTERRUPTED.get_or_init(Arc::default));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second one ends the process at once, whatever it is doing.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&cancel))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&cancel)))
            .context("cannot listen to interrupts")?;
    }
    Ok(cancel)
}

/// Nobody looks at the flag from here on, so that the next interrupt ends the process at once.
///
/// # Errors
/// When one has come and was not heeded.
pub(crate) fn interrupts_end(cancel: &AtomicBool) -> Result<()> {
    if cancel.swap(true, Ordering::Relaxed) {
        bail!("interrupted; nothing was written");
    }
    Ok(())
}

/// The import that the reading options ask for.
///
/// # Errors
/// When a format, day or instant does not read.
pub(crate) fn request(
    input_format: Option<&str>,
    read: &ReadArgs,
    inputs: Inputs,
) -> Result<ImportRequest> {
    Ok(ImportRequest {
        inputs,
        format: input_format.map(format).transpose()?,
        hash_sources: read.hash_sources,
        strict: read.strict,
        dedupe: read.dedupe,
        since_ms: instant("--since", read.since.as_deref())?,
        until_ms: instant("--until", read.until.as_deref())?,
        observed_until_ms: instant("--observed-until", read.observed_until.as_deref())?,
    })
}

fn format(name: &str) -> Result<InputFormat> {
    if let Some(format) = InputFormat::from_name(name) {
        return Ok(format);
    }
    let known: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
    let hint = nearest(name, known.iter().copied())
        .map_or_else(String::new, |near| format!(", did you mean {near}?"));
    bail!(
        "unknown format {name}: expected one of {}{hint}",
        known.join(", ")
    )
}

/// A day (its first instant, UTC) or an instant with its offset, as ms since the Unix epoch.
fn instant(option: &str, text: Option<&str>) -> Result<Option<i64>> {
    let Some(text) = text else { return Ok(None) };
    let stamp = match text.parse::<Timestamp>() {
        Ok(stamp) => stamp,
        Err(_) => text
            .parse::<Date>()
            .ok()
            .filter(|_| text.len() == 10)
            .and_then(|day| day.to_zoned_datetime(TimeZone::UTC).ok())
            .map(|day| day.timestamp())
            .with_context(|| {
                format!("{option}: \"{text}\" is neither a day like 2026-06-01 nor an instant like 2026-06-01T12:00:00Z")
            })?,
    };
    Ok(Some(stamp.as_millisecond()))
}

/// Refuses options that say how logs are read where none are.
///
/// # Errors
/// When one is given.
pub(crate) fn refuse_reading_options(args: &DataArgs, because: &str) -> Result<()> {
    let read = &args.read;
    let given = [
        (args.input_format.is_some(), "--input-format"),
        (read.since.is_some(), "--since"),
        (read.until.is_some(), "--until"),
        (read.observed_until.is_some(), "--observed-until"),
        (read.hash_sources, "--hash-sources"),
        (read.dedupe, "--dedupe"),
        (read.strict, "--strict"),
    ];
    match given.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => bail!("{option} says how logs are read, but {because}"),
    }
}

/// What results call the data: the last part of a path, never more of it.
fn shown_name(paths: &[PathBuf]) -> String {
    let last = |path: &PathBuf| {
        path.file_name().map_or_else(
            || "data".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    match paths {
        [one] => last(one),
        [first, rest @ ..] => format!("{} and {} more", last(first), rest.len()),
        [] => "demo".to_owned(),
    }
}

/// A row outside any run per sample, so that one code describes waits wherever they come from.
fn of_samples(samples: &[Sample]) -> Fleet {
    let mut symbols = Symbols::default();
    let runs = samples
        .iter()
        .map(|sample| {
            let mut event = RunEvent::new(0, policysim_policy::Kind::Status);
            event.name = symbols.intern(&sample.tool);
            event.wait = Some(Wait {
                kind: sample.kind,
                ms: sample.duration_ms,
            });
            if sample.censored {
                event.flags = EventFlags::CENSORED;
            }
            Run {
                name: Arc::clone(&sample.run),
                source: Arc::clone(&sample.source),
                model: Arc::clone(&sample.model),
                role: Arc::clone(&sample.role),
                status: RunStatus::Outside,
                events: vec![event],
                ..Run::default()
            }
        })
        .collect();
    Fleet { runs, symbols }
}

/// Counts of runs without their events.
#[derive(Default)]
struct Heads {
    runs: u64,
    unanswered: u64,
    open: u64,
    hung: u64,
    /// Runs whose outputs are stamped when they are finished.
    stamped_late: u64,
    /// The first and the last start of a dated run, ms since the Unix epoch.
    window: Option<(i64, i64)>,
}

impl Heads {
    fn add(&mut self, run: &Run) {
        match run.status {
            RunStatus::Run => self.runs += 1,
            RunStatus::Unanswered => {
                self.unanswered += 1;
                return;
            }
            RunStatus::Outside => return,
        }
        match run.end {
            RecordedEnd::OpenInModel | RecordedEnd::OpenInTool => self.open += 1,
            RecordedEnd::Hung => self.hung += 1,
            _ => {}
        }
        self.stamped_late += u64::from(run.resolution == Resolution::Message);
        let started = run.started_at_ms;
        if started != 0 {
            let (first, last) = self.window.unwrap_or((started, started));
            self.window = Some((first.min(started), last.max(started)));
        }
    }
}

fn header(manifest: &Manifest, name: String, heads: &Heads) -> DataHeader {
    let mut caveats = Vec::new();
    if let Some(origin) = manifest.origin.get("caveats") {
        caveats.extend(origin.lines().map(str::to_owned));
    }
    if heads.stamped_late > 0 {
        caveats.push(format!(
            "Outputs of {} of {} are stamped when they are finished: a silence before one holds its streaming, so that it, and what it says of a kill for idleness, is an upper bound.",
            grouped(heads.stamped_late),
            counted(heads.runs, "run")
        ));
    }
    let (first_day, last_day) = heads.window.map_or_else(
        || (String::new(), String::new()),
        |(first, last)| (day(first), day(last)),
    );
    DataHeader {
        name,
        digest: manifest.digest.clone(),
        runs: heads.runs,
        sources: manifest.sources.len() as u64,
        unanswered: heads.unanswered,
        open_runs: heads.open,
        hung: heads.hung,
        first_day,
        last_day,
        malformed_lines: manifest.totals.lines.malformed,
        lines: manifest.totals.n_lines,
        caveats,
    }
}

fn day(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| String::new(),
        |stamp| stamp.to_zoned_datetime(TimeZone::UTC).date().to_string(),
    )
}
