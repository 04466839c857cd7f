//! One source while it is read: its streams, its accounting, and where its runs go.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use policysim_policy::{CallId, Kind};
use policysim_sim::run::{EventFlags, Resolution, Run, RunStatus, Symbol, Symbols, WaitKind};

use xxhash_rust::xxh3::Xxh3;

use crate::hashed::HashedSet;

use super::build::{Builder, Finished, LogEnd, OtherNames};
use super::event::{Call, Ev, What};
use super::json::Json;
use super::names::{bounded, opaque};
use super::report::{AgentSeen, Delegation, Fate, RunRow, SourceReport};
use super::timestamp::Stamp;
use super::waits::{Machine, Totals};
use super::{Format, ImportError, ImportOptions, Sink};

/// How many different unknown record types keep their names; the rest is counted as one.
const NAMED_UNKNOWN_TYPES: usize = 64;

/// The name under which further unknown types are counted.
const MORE_UNKNOWN_TYPES: &str = "(more)";

/// How many record ids a report keeps, to recognise copies of a session.
const FIRST_IDS: usize = 16;

/// Where and when a record's events go.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) stream: usize,
    pub(super) t: i64,
}

/// A source while it is read.
pub(super) struct Source<'a> {
    /// What has been counted so far.
    pub(super) report: SourceReport,
    /// The names that events refer to.
    pub(super) symbols: &'a mut Symbols,
    /// The role of the source's own agent, where it is named (formats with a source per agent).
    pub(super) role: String,
    totals: Totals,
    streams: Vec<Stream>,
    names: OtherNames,
    log_end: LogEnd,
    record_ids: HashedSet,
    sink: &'a mut dyn Sink,
}

/// Whose events a stream holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Agent {
    /// The agent that the log is about.
    Main,
    /// A subagent in the same log, by its id (empty when it has none).
    Sub(String),
}

/// The events of one agent.
struct Stream {
    agent: Agent,
    machine: Machine,
    builder: Builder,
    /// Events behind a prompt that is not yet understood: it joins the run under way if an open call still returns, and
    /// replaces it if none does. All that comes meanwhile may belong to that one run, and is held as small events.
    queue: VecDeque<Ev>,
    /// How many results of which call are in the queue.
    queued_results: HashMap<u64, u32>,
    /// Stamps of the previous record and of the latest.
    clock: Option<(i64, i64)>,
    undated: bool,
    rows: u64,
    runs: Vec<RunRow>,
    /// What is known of the calls that run other agents.
    links: BTreeMap<u64, Link>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    agent: String,
    role: String,
}

impl<'a> Source<'a> {
    /// A source of which nothing has been read.
    pub(super) fn new(
        name: &str,
        format: Format,
        options: &ImportOptions,
        symbols: &'a mut Symbols,
        sink: &'a mut dyn Sink,
    ) -> Self {
        Self {
            report: SourceReport::new(Arc::from(name), format),
            names: OtherNames::new(symbols),
            symbols,
            role: String::new(),
            totals: Totals::default(),
            streams: Vec::new(),
            log_end: LogEnd {
                observed_until_ms: options.observed_until_ms,
            },
            record_ids: HashedSet::default(),
            sink,
        }
    }

    /// The stream of that agent, which appears now if it has not yet.
    pub(super) fn stream(&mut self, agent: &Agent) -> usize {
        if let Some(at) = self.find_stream(agent) {
            return at;
        }
        let resolution = self.report.format.resolution();
        self.streams.push(Stream {
            agent: agent.clone(),
            machine: Machine::default(),
            builder: Builder::new(resolution, self.names),
            queue: VecDeque::new(),
            queued_results: HashMap::new(),
            clock: None,
            undated: false,
            rows: 0,
            runs: Vec::new(),
            links: BTreeMap::new(),
        });
        self.streams.len() - 1
    }

    /// The stream of that agent, if it has appeared.
    pub(super) fn find_stream(&self, agent: &Agent) -> Option<usize> {
        self.streams
            .iter()
            .position(|stream| stream.agent == *agent)
    }

    /// Notes the stamp of a record that counts, and gives the marks of its events.
    pub(super) fn record_stamp(&mut self, stream: usize, t: i64) -> EventFlags {
        let stream = &mut self.streams[stream];
        let mut flags = EventFlags::default();
        let latest = match stream.clock {
            None => t,
            Some((previous, latest)) => {
                if t < previous {
                    self.report.clock_steps += 1;
                    let step = previous.abs_diff(t);
                    self.report.largest_clock_step_ms = self.report.largest_clock_step_ms.max(step);
                }
                if t < latest {
                    flags = EventFlags::CLOCK_STEP;
                }
                latest.max(t)
            }
        };
        stream.clock = Some((t, latest));
        if std::mem::take(&mut stream.undated) {
            flags = flags.with(EventFlags::SPANS_UNDATED);
        }
        flags
    }

    /// Notes that a record which would have counted has no readable stamp.
    pub(super) fn undated(&mut self, stream: Option<usize>) {
        if let Some(stream) = stream {
            self.streams[stream].undated = true;
        }
    }

    /// Whether another source already brought the record of that id and content, whatever its stamp there; counts it
    /// if so.
    pub(super) fn is_elsewhere(&mut self, id: &str, content: Option<Json<'_>>, t: i64) -> bool {
        let mut hasher = Xxh3::new();
        hasher.update(id.as_bytes());
        hasher.update(b"\n");
        hasher.update(content.map_or("", Json::raw).as_bytes());
        let elsewhere = self.sink.is_elsewhere(hasher.digest(), t);
        self.report.duplicates_elsewhere += u64::from(elsewhere);
        elsewhere
    }

    /// Whether the record with that id and that content has been read from this source before; notes it if not.
    ///
    /// A resumed session appends old records again as they were. The id alone does not tell: clients have been seen
    /// to write two different messages under one.
    pub(super) fn is_replayed(&mut self, id: &str, content: &[Option<Json<'_>>]) -> bool {
        let mut hasher = Xxh3::new();
        hasher.update(id.as_bytes());
        for part in content {
            hasher.update(b"\n");
            hasher.update(part.map_or("", Json::raw).as_bytes());
        }
        let record = hasher.digest();
        if !self.record_ids.insert(record) {
            return true;
        }
        if self.report.first_ids.len() < FIRST_IDS {
            self.report.first_ids.push(record);
        }
        false
    }

    /// Interns a name as it is kept.
    pub(super) fn name(&mut self, name: &str) -> Symbol {
        self.symbols.intern(&bounded(name))
    }

    /// Counts a record of an unknown type, and gives the name of its event.
    pub(super) fn unknown_type(&mut self, name: &str) -> Symbol {
        let mut name = bounded(name);
        let types = &mut self.report.unknown_types;
        if types.len() >= NAMED_UNKNOWN_TYPES && !types.contains_key(name.as_ref()) {
            name = MORE_UNKNOWN_TYPES.into();
        }
        *types.entry(name.to_string()).or_default() += 1;
        self.symbols.intern(&name)
    }

    /// Notes the session's id, the first one that is named.
    pub(super) fn session(&mut self, id: &str) {
        if self.report.session.is_empty() {
            self.report.session = Arc::from(opaque(id));
        }
    }

    /// Notes the version of the client.
    pub(super) fn client_version(&mut self, version: &str) {
        if self.report.client_version.as_deref() != Some(version) {
            self.report.client_version = Some(bounded(version).into_owned());
        }
    }

    /// The instant of a stamp; counts stamps that were taken for seconds.
    pub(super) fn stamp(&mut self, stamp: Option<Stamp>) -> Option<i64> {
        let stamp = stamp?;
        self.report.epoch_second_stamps += u64::from(stamp.from_seconds);
        Some(stamp.ms)
    }

    /// The stamp of the stream's previous record that counted.
    pub(super) fn previous_stamp(&self, stream: usize) -> Option<i64> {
        self.streams[stream].clock.map(|(previous, _)| previous)
    }

    /// Whether the call is known to run another agent.
    pub(super) fn is_link(&self, stream: usize, call: CallId) -> bool {
        self.streams[stream].links.contains_key(&call.as_u64())
    }

    /// Notes what is known of a call that runs another agent.
    pub(super) fn link(
        &mut self,
        stream: usize,
        call: CallId,
        agent: Option<&str>,
        role: Option<&str>,
    ) {
        let link = self.streams[stream].links.entry(call.as_u64()).or_default();
        if let Some(agent) = agent {
            link.agent = bounded(agent).into_owned();
        }
        if let Some(role) = role {
            link.role = bounded(role).into_owned();
        }
    }

    /// Adds a dated record that is no event of the waits.
    pub(super) fn note(
        &mut self,
        stream: usize,
        t: i64,
        kind: Kind,
        name: Symbol,
    ) -> Result<(), ImportError> {
        let id = CallId::NONE;
        self.push(
            stream,
            Ev {
                t,
                what: What::Note { kind, id, name },
                flags: EventFlags::default(),
            },
        )
    }

    /// Adds the event of a record that counts.
    pub(super) fn count(&mut self, place: Place, what: What) -> Result<Fate, ImportError> {
        let flags = self.record_stamp(place.stream, place.t);
        self.count_marked(place, what, flags)?;
        Ok(Fate::Imported)
    }

    /// Adds one of several events of a record whose stamp was noted already.
    pub(super) fn count_marked(
        &mut self,
        Place { stream, t }: Place,
        what: What,
        flags: EventFlags,
    ) -> Result<(), ImportError> {
        self.push(stream, Ev { t, what, flags })
    }

    /// Keeps a record without meaning for the waits as bookkeeping.
    pub(super) fn ignore(&mut self, place: Place) -> Result<Fate, ImportError> {
        self.note(place.stream, place.t, Kind::Status, Symbol(0))?;
        Ok(Fate::Ignored)
    }

    /// Adds a call that the log records with both its ends.
    pub(super) fn finished_call(
        &mut self,
        stream: usize,
        call: Call,
        (start, end): (i64, i64),
        flags: EventFlags,
    ) -> Result<(), ImportError> {
        let result = What::Result {
            id: call.id,
            name: call.name,
            rejected: false,
            native_ms: None,
        };
        let begun = Place { stream, t: start };
        self.count_marked(begun, What::Call(call), flags)?;
        self.count_marked(Place { stream, t: end }, result, flags)
    }

    /// Adds an event.
    pub(super) fn push(&mut self, at: usize, ev: Ev) -> Result<(), ImportError> {
        let stream = &mut self.streams[at];
        if stream.queue.is_empty() && !stream.hinges(&ev) {
            return self.apply(at, &ev, false);
        }
        stream.queue.push_back(ev);
        if let What::Result { id, .. } = ev.what {
            let id = id.as_u64();
            *stream.queued_results.entry(id).or_default() += 1;
            if stream.machine.is_pending(id) {
                return self.drain(at, false);
            }
        }
        Ok(())
    }

    /// Adds a gap mark to every stream that has appeared.
    pub(super) fn gap(&mut self) -> Result<(), ImportError> {
        for at in 0..self.streams.len() {
            let ev = Ev {
                t: 0,
                what: What::Gap,
                flags: EventFlags::default(),
            };
            self.push(at, ev)?;
        }
        Ok(())
    }

    /// Takes queued events as far as they can be understood; all of them at the end of the stream.
    fn drain(&mut self, at: usize, ended: bool) -> Result<(), ImportError> {
        while let Some(&ev) = self.streams[at].queue.front() {
            let stream = &mut self.streams[at];
            let mut returns = false;
            if stream.hinges(&ev) {
                returns = stream
                    .machine
                    .pending()
                    .any(|id| stream.queued_results.contains_key(&id));
                if !returns && !ended {
                    return Ok(());
                }
            }
            stream.queue.pop_front();
            if let What::Result { id, .. } = ev.what
                && let Some(n) = stream.queued_results.get_mut(&id.as_u64())
            {
                *n -= 1;
                if *n == 0 {
                    stream.queued_results.remove(&id.as_u64());
                }
            }
            self.apply(at, &ev, returns)?;
        }
        Ok(())
    }

    fn apply(&mut self, at: usize, ev: &Ev, returns: bool) -> Result<(), ImportError> {
        let stream = &mut self.streams[at];
        let step = stream.machine.step(ev, returns, &mut self.totals);
        let finished = stream.builder.take(ev, &step);
        for row in finished.into_iter().flatten() {
            self.emit(at, row)?;
        }
        if let (What::Result { id, .. }, Some(call)) = (ev.what, step.call)
            && call.wait == WaitKind::Subagent
        {
            let stream = &mut self.streams[at];
            let link = stream.links.remove(&id.as_u64()).unwrap_or_default();
            let run = self.row_name(at, self.streams[at].rows + 1);
            self.report.delegations.push(Delegation {
                run,
                call: id,
                agent: link.agent,
                role: link.role,
            });
        }
        Ok(())
    }

    /// The name of a row: `SOURCE#N` in the first stream, `SOURCE#S.N` in stream S of a source with several.
    fn row_name(&self, at: usize, row: u64) -> Arc<str> {
        let source = &self.report.source;
        Arc::from(match at {
            0 => format!("{source}#{row}"),
            _ => format!("{source}#{}.{row}", at + 1),
        })
    }

    fn emit(&mut self, at: usize, row: Finished) -> Result<(), ImportError> {
        let stream = &mut self.streams[at];
        stream.rows += 1;
        let number = stream.rows;
        let name = self.row_name(at, number);
        if row.status == RunStatus::Run {
            self.streams[at].runs.push(RunRow {
                run: Arc::clone(&name),
                measured: row.measured,
            });
        }
        let model = Arc::from(self.symbols.name(row.model));
        let role = if at == 0 { self.role.as_str() } else { "" };
        let run = Run {
            name,
            source: Arc::clone(&self.report.source),
            session: Arc::clone(&self.report.session),
            parent: Arc::from(""),
            harness: Arc::from(self.report.format.name()),
            model,
            role: Arc::from(role),
            started_at_ms: row.started_at_ms,
            resolution: self.report.format.resolution(),
            status: row.status,
            end: row.end,
            end_ms: row.end_ms,
            measured: row.measured,
            events: row.events,
        };
        let taken = self.sink.run(run, self.symbols);
        taken.map_err(|source| ImportError::Sink {
            source_name: Arc::clone(&self.report.source),
            source,
        })
    }

    /// The source has been read to its end.
    pub(super) fn finish(mut self) -> Result<SourceReport, ImportError> {
        for at in 0..self.streams.len() {
            self.drain(at, true)?;
            let stream = &mut self.streams[at];
            let closed = stream.machine.end(&mut self.totals);
            let finished = stream.builder.end(closed.as_ref(), self.log_end);
            for row in finished.into_iter().flatten() {
                self.emit(at, row)?;
            }
        }
        let mut report = self.report;
        // What the reader counted (lines, progress records) stands in the report, the rest in the totals.
        let read = std::mem::replace(&mut report.counts, self.totals.counts);
        report.counts.n_lines = read.n_lines;
        report.counts.n_bad_lines = read.n_bad_lines;
        report.counts.n_joined_lines = read.n_joined_lines;
        report.counts.n_progress = read.n_progress;
        report.counts.n_streams = self.streams.len() as u64;
        report.waits = self.totals.waits;
        for stream in self.streams {
            let agent = match stream.agent {
                Agent::Sub(id) => Some(id),
                // Formats with a source per agent know their agent by the session's key.
                Agent::Main if report.format != Format::Claude => Some(report.session.to_string()),
                Agent::Main => None,
            };
            if let Some(agent) = agent {
                let runs = stream.runs.iter().map(|row| Arc::clone(&row.run)).collect();
                report.agents.push(AgentSeen { agent, runs });
            }
            report.runs.extend(stream.runs);
        }
        Ok(report)
    }
}

impl Stream {
    /// Whether `ev` is a prompt that only later events explain.
    fn hinges(&self, ev: &Ev) -> bool {
        matches!(ev.what, What::Prompt) && self.machine.hinges_on_results()
    }
}

impl Format {
    /// How finely the format stamps output.
    pub const fn resolution(self) -> Resolution {
        match self {
            Self::Claude | Self::Codex | Self::Copilot | Self::Pi => Resolution::Message,
            Self::Gemini | Self::Opencode => Resolution::Stream,
        }
    }
}
