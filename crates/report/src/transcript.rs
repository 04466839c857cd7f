//! What `policysim replay` prints: the watchdog's transcript beside the record, and what became of the run.

use policysim_policy::{
    Cause, ClockClass, Kind, Millis, OpenClass, Output, Policy, Reason, Stopped, Verdict, Warning,
    duration,
};
use policysim_sim::judgement::Judgement;
use policysim_sim::ledger::{Ledger, ledger};
use policysim_sim::replay::Replayed;
use policysim_sim::run::{RecordedEnd, Run, Symbols};
use serde::Serialize;

use crate::SCHEMA_VERSION;
use crate::table::one_line;
use crate::units::duration as human;

/// One run under one policy, with every fact that the core told.
#[derive(Clone, Debug)]
pub struct Transcript<'a> {
    /// The policy's name as the user gave it.
    pub policy_name: &'a str,
    /// The policy.
    pub policy: &'a Policy,
    /// The run.
    pub run: &'a Run,
    /// The names of its events.
    pub symbols: &'a Symbols,
    /// What became of it.
    pub replayed: &'a Replayed,
    /// The facts, each with the index of the event that caused it (the number of events for the record's end).
    pub outputs: &'a [(usize, Output)],
}

/// A line: when, what was recorded, what it did.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
struct Line {
    t_ms: u64,
    event: String,
    effect: String,
}

impl Transcript<'_> {
    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{} under {}: {}\n\n",
            one_line(&self.run.name),
            one_line(self.policy_name),
            limits(self.policy, &self.run.role)
        );
        let mut repeated = 0_u64;
        let lines = self.lines();
        for (index, line) in lines.iter().enumerate() {
            let same = |other: Option<&Line>| {
                other.is_some_and(|o| o.event == line.event && o.effect == line.effect)
            };
            // The middle of a stretch of equal lines says nothing new.
            if index > 0 && same(lines.get(index - 1)) && same(lines.get(index + 1)) {
                repeated += 1;
                continue;
            }
            if repeated > 0 {
                text.push_str(&format!("            … {repeated} more\n"));
                repeated = 0;
            }
            text.push_str(&text_line(line));
        }
        text.push('\n');
        text.push_str(&self.conclusion());
        text.push('\n');
        text
    }

    /// The result as JSON.
    ///
    /// # Errors
    /// Never for memory; the serializer's errors are passed on.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let verdict = &self.replayed.verdict;
        serde_json::to_string_pretty(&JsonTranscript {
            schema_version: SCHEMA_VERSION,
            run: &self.run.name,
            policy: self.policy_name,
            verdict: verdict.cause.name(),
            at_ms: verdict.at.as_u64(),
            due_ms: verdict.due.as_u64(),
            phase: verdict.phase.name(),
            outcome: verdict.outcome,
            code: verdict.code,
            judgement: self.replayed.judgement.name(),
            recorded_end: self.run.end.name(),
            record_end_ms: self.run.end_ms,
            evidence: verdict
                .evidence
                .iter()
                .map(|activity| JsonActivity {
                    kind: activity.kind.name(),
                    age_ms: activity.age.as_u64(),
                    rearms: activity.rearms,
                })
                .collect(),
            longest_idle_ms: self.longest_idle().map(|(ms, _)| ms),
            ledger: self.spent(),
            lines: self.lines(),
        })
    }

    fn spent(&self) -> JsonLedger {
        JsonLedger::from(ledger(self.run, self.run.end_ms))
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut outputs = self.outputs.iter().peekable();
        for index in 0..=self.run.events.len() {
            let mut effects = Vec::new();
            let mut fired = Vec::new();
            while let Some((_, output)) = outputs.next_if(|(at, _)| *at == index) {
                match output {
                    Output::Fired(verdict) => fired.push(verdict),
                    output => {
                        let told = effect(output);
                        // A run's start arms what the watchdog's own start armed already.
                        if told.as_ref() != effects.last() {
                            effects.extend(told);
                        }
                    }
                }
            }
            let event = self.run.events.get(index);
            let seen = index < self.replayed.unseen;
            if let (Some(event), true) = (event, seen) {
                lines.push(Line {
                    t_ms: event.t_ms,
                    event: self.describe(index),
                    effect: effects.join("; "),
                });
            } else if !effects.is_empty() {
                lines.push(Line {
                    t_ms: self.replayed.verdict.at.as_u64(),
                    event: "(end of record)".to_owned(),
                    effect: effects.join("; "),
                });
            }
            for verdict in fired {
                lines.push(firing(verdict));
            }
        }
        if self.replayed.is_kill() {
            lines.extend(self.after_the_firing());
        }
        lines
    }

    /// What the record shows next, which decides whether the kill was false.
    fn after_the_firing(&self) -> Option<Line> {
        let event = self.run.events.get(self.replayed.unseen)?;
        let at_ms = self.replayed.verdict.at.as_u64();
        Some(Line {
            t_ms: event.t_ms,
            event: format!("(record) {}", self.describe(self.replayed.unseen)),
            effect: format!(
                "{} after the firing",
                human(event.t_ms.saturating_sub(at_ms))
            ),
        })
    }

    fn describe(&self, index: usize) -> String {
        let event = &self.run.events[index];
        let mut text = event.kind.name().to_owned();
        let name = self.symbols.name(event.name);
        if !name.is_empty() {
            text.push(if event.kind == Kind::Other { ':' } else { ' ' });
            text.push_str(&one_line(name));
        }
        if let Some(ms) = event.announced_ms {
            // Of a finished call it is the execution time that the record itself reports.
            let what = if event.kind == Kind::ToolEnd {
                "ran"
            } else {
                "announced"
            };
            text.push_str(&format!(" ({what} {})", human(ms)));
        }
        if let Some(outcome) = event.outcome {
            text.push(' ');
            text.push_str(outcome.name());
        }
        text
    }

    /// The longest silence that the idle clock read, and when it ended.
    fn longest_idle(&self) -> Option<(u64, u64)> {
        self.outputs
            .iter()
            .filter_map(|(_, output)| match output {
                Output::Silence(silence) if silence.clock == ClockClass::Idle => {
                    Some((silence.reading.as_u64(), silence.to.as_u64()))
                }
                _ => None,
            })
            .max_by_key(|&(ms, to)| (ms, std::cmp::Reverse(to)))
    }

    fn conclusion(&self) -> String {
        let verdict = &self.replayed.verdict;
        let spent = ledger(self.run, self.run.end_ms);
        let mut text = if self.replayed.is_kill() {
            self.kill_sentence(verdict)
        } else {
            let mut text = match self.replayed.judgement {
                Judgement::MissedHang => format!(
                    "Not killed within the record ({}), though the run hung.",
                    human(self.run.end_ms)
                ),
                Judgement::Unresolved => format!(
                    "Not killed within the record, which ends before the run does ({}): unresolved.",
                    self.run.end.name()
                ),
                _ => format!(
                    "Not killed: the run {} at {}.",
                    self.run.end.name(),
                    clock(verdict.at.as_u64())
                ),
            };
            if let (Some((ms, to)), Some(window)) = (self.longest_idle(), self.policy.idle.window) {
                text.push_str(&format!(
                    " The idle clock came nearest at {}: {} of {}, missed by {}.",
                    clock(to),
                    human(ms),
                    duration::show(window),
                    human(window.as_u64().saturating_sub(ms)),
                ));
            }
            text
        };
        text.push_str("\nTime: ");
        text.push_str(&accounts(&spent));
        text.push('.');
        text
    }

    fn kill_sentence(&self, verdict: &Verdict) -> String {
        let lost = ledger(self.run, verdict.at.as_u64()).active_ms();
        match self.replayed.judgement {
            Judgement::FalseKill => format!(
                "A false kill: the record shows the run going on afterwards; {} of work lost.",
                human(lost)
            ),
            Judgement::TrueKill if self.run.end == RecordedEnd::Hung => {
                "A true kill: the run never showed life again and the record says that it hung."
                    .to_owned()
            }
            Judgement::TrueKill => format!(
                "A true kill: the run did not deliver; its record goes on for {} and ends in failure.",
                human(self.run.end_ms.saturating_sub(verdict.at.as_u64()))
            ),
            _ => format!(
                "Unresolved: the record ({}) cannot tell whether the run would have gone on.",
                self.run.end.name()
            ),
        }
    }
}

fn limits(policy: &Policy, role: &str) -> String {
    let text = |limit: Option<Millis>| limit.map_or_else(|| "off".to_owned(), duration::show);
    format!(
        "idle {}, total {}, turns {}",
        text(policy.idle.window),
        text(policy.total.budget),
        policy
            .turns
            .cap_of(role)
            .map_or_else(|| "off".to_owned(), |cap| cap.to_string())
    )
}

/// `mm:ss.mmm`, with hours in front where there are any.
fn clock(ms: u64) -> String {
    let (hours, minutes, seconds, millis) =
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}.{millis:03}")
    } else {
        format!("{minutes:02}:{seconds:02}.{millis:03}")
    }
}

fn text_line(line: &Line) -> String {
    let text = format!(
        "{:>12}  {:<38}  {}",
        clock(line.t_ms),
        line.event,
        line.effect
    );
    format!("{}\n", text.trim_end())
}

fn firing(verdict: &Verdict) -> Line {
    let mut effect = verdict.code.unwrap_or_default().to_owned();
    if !effect.is_empty() {
        effect.push_str(", ");
    }
    effect.push_str(&format!(
        "due {}, phase {}",
        clock(verdict.due.as_u64()),
        verdict.phase
    ));
    let ages: Vec<String> = verdict
        .evidence
        .iter()
        .take(3)
        .map(|activity| format!("{} {} ago", activity.kind, human(activity.age.as_u64())))
        .collect();
    if !ages.is_empty() {
        effect.push_str(&format!("; last activity: {}", ages.join(", ")));
    }
    Line {
        t_ms: verdict.at.as_u64(),
        event: format!("FIRED {}", verdict.cause),
        effect,
    }
}

fn effect(output: &Output) -> Option<String> {
    Some(match output {
        Output::Spawned { .. } => "spawned".to_owned(),
        Output::SegmentStarted { reopens: true, .. } => {
            "a new segment: the ended run goes on".to_owned()
        }
        Output::SegmentStarted { .. } => "clocks armed".to_owned(),
        Output::SegmentEnded { .. } => "segment over".to_owned(),
        Output::Rearmed { due: Some(due), .. } => format!("re-armed, due {}", clock(due.as_u64())),
        Output::Rearmed { due: None, .. } => "counts as activity".to_owned(),
        Output::Paused { clocks, reason, .. } => {
            format!("{} paused ({})", stopped(*clocks), because(*reason))
        }
        Output::Resumed { clocks, reason, .. } => {
            format!("{} resumed ({} over)", stopped(*clocks), because(*reason))
        }
        Output::Warned { warning, .. } => warned(warning),
        Output::Silence(_) | Output::TurnStop { .. } | Output::Fired(_) => return None,
        Output::Ended(verdict) => match verdict.cause {
            Cause::Running => "the record ends here".to_owned(),
            _ => format!("ended: {}", verdict.outcome),
        },
    })
}

const fn stopped(clocks: Stopped) -> &'static str {
    match clocks {
        Stopped::Idle => "idle",
        Stopped::Hard => "total",
        Stopped::All => "all clocks",
    }
}

const fn because(reason: Reason) -> &'static str {
    match reason {
        Reason::Open {
            class: OpenClass::Tool,
            ..
        } => "tool",
        Reason::Open { class, .. } => class.name(),
        Reason::SuspendFlag => "approval asked by a tool",
    }
}

fn warned(warning: &Warning) -> String {
    match warning {
        Warning::SpareWindowUsed => "spare window used".to_owned(),
        Warning::TurnCapReached { turns } => format!("turn cap reached ({turns} turns)"),
        Warning::RepeatedStart { class, .. } => format!("repeated {} start, ignored", class.name()),
        Warning::RefusedOverlap { .. } => "a second human wait, refused".to_owned(),
        Warning::UnmatchedEnd { .. } => "closes nothing that is open".to_owned(),
        Warning::LostEnd { .. } => "closes a call whose end was lost".to_owned(),
        Warning::AnnouncedEnd { class, .. } => format!("announced {} over", class.name()),
        Warning::TooManyOpen { .. } => "too many open things, not followed".to_owned(),
    }
}

fn accounts(spent: &Ledger) -> String {
    let named = [
        ("model", spent.model_ms),
        ("tool", spent.tool_ms),
        ("human", spent.human_ms),
        ("retry", spent.retry_ms),
        ("compaction", spent.compaction_ms),
        ("suspend", spent.suspend_ms),
        ("unknown", spent.unknown_ms),
    ];
    let spent_on: Vec<String> = named
        .into_iter()
        .filter(|(_, ms)| *ms > 0)
        .map(|(name, ms)| format!("{name} {}", human(ms)))
        .collect();
    format!("{}, {} in all", spent_on.join(", "), human(spent.span_ms()))
}

#[derive(Serialize)]
struct JsonTranscript<'a> {
    schema_version: u32,
    run: &'a str,
    policy: &'a str,
    verdict: &'static str,
    at_ms: u64,
    due_ms: u64,
    phase: &'static str,
    outcome: &'static str,
    code: Option<&'static str>,
    judgement: &'static str,
    recorded_end: &'static str,
    record_end_ms: u64,
    evidence: Vec<JsonActivity>,
    longest_idle_ms: Option<u64>,
    ledger: JsonLedger,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct JsonActivity {
    kind: &'static str,
    age_ms: u64,
    rearms: bool,
}

#[derive(Serialize)]
struct JsonLedger {
    model_ms: u64,
    tool_ms: u64,
    human_ms: u64,
    retry_ms: u64,
    compaction_ms: u64,
    suspend_ms: u64,
    unknown_ms: u64,
    span_ms: u64,
}

impl From<Ledger> for JsonLedger {
    fn from(spent: Ledger) -> Self {
        Self {
            model_ms: spent.model_ms,
            tool_ms: spent.tool_ms,
            human_ms: spent.human_ms,
            retry_ms: spent.retry_ms,
            compaction_ms: spent.compaction_ms,
            suspend_ms: spent.suspend_ms,
            unknown_ms: spent.unknown_ms,
            span_ms: spent.span_ms(),
        }
    }
}
