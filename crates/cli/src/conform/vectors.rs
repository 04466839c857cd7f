//! Vectors by kind: each is worked out by the pure function it is about.

use anyhow::{Context, Result, bail};
use policysim_policy::binding::{Binding, Launch, SessionFile, State};
use policysim_policy::dialect::{Setting, netclaw, no_mistakes, pi_desktop, pi_extensions};
use policysim_policy::retry::{self, Class, Draw, Envelope, Era};
use policysim_policy::task_wait::{self, Call, Delegate};
use policysim_policy::{Millis, Policy, TaskWait, WaitMode, presets};
use serde_json::{Map, Value as Json, json};

use super::fields::Fields;
use super::judge::{Judged, judge};
use super::trace;
use crate::policy_file;

/// Keys of any vector that say where it comes from.
const ORIGIN: [&str; 8] = [
    "name",
    "kind",
    "preset",
    "expect",
    "source",
    "verified_by",
    "ran_scope",
    "note",
];

/// Runs one vector.
pub(super) fn run(vector: &Json) -> Result<Judged> {
    let expect = vector.get("expect").context("expect is missing")?;
    let kind = match vector.get("kind") {
        None => return judge(expect, &trace::run(fields(vector, &trace::KEYS)?)?),
        Some(kind) => kind.as_str().context("kind is not text")?,
    };
    let got = match kind {
        "config" => config(fields(vector, &["input"])?)?,
        "backoff" => backoff(fields(
            vector,
            &[
                "era", "class", "attempt", "jitter", "headers", "status", "now_ms",
            ],
        )?)?,
        "backoff_envelope" => backoff_envelope(fields(vector, &["era", "class", "retries"])?)?,
        "taskwait" => taskwait(fields(
            vector,
            &["wait_at_ms", "delegations", "params", "abort_ms"],
        )?)?,
        "task_start" => task_start(fields(vector, &["running"])?)?,
        "binding" => binding(fields(
            vector,
            &["session", "resume_id", "relocated", "baseline", "polls"],
        )?)?,
        kind => bail!("unknown kind {kind}"),
    };
    judge(expect, &got)
}

fn fields<'j>(vector: &'j Json, keys: &[&str]) -> Result<Fields<'j>> {
    Fields::new(vector, &[&ORIGIN, keys].concat())
}

/// What was worked out, by key of `expect`.
type Got = Map<String, Json>;

fn got<const N: usize>(pairs: [(&str, Json); N]) -> Got {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn ms(span: Millis) -> Json {
    json!(span.as_u64())
}

fn secs(span: Millis) -> Json {
    json!(span.as_u64() / 1000)
}

/// The policy of a vector's preset, with its name.
pub(super) fn preset(vector: Fields<'_>) -> Result<(&str, Policy)> {
    let name = vector.need_text("preset")?;
    let policy = presets::find(name).with_context(|| format!("unknown preset {name}"))?;
    Ok((name, policy))
}

/// A harness's own settings, resolved by its dialect.
fn config(vector: Fields<'_>) -> Result<Got> {
    let (name, policy) = preset(vector)?;
    let none = json!({});
    let input = vector.get("input").unwrap_or(&none);
    let dialect = policy_file::DIALECTS
        .iter()
        .find(|dialect| dialect.presets.contains(&name))
        .map(|dialect| dialect.name);
    match dialect {
        Some("pi-desktop") => pi_desktop_config(input, &policy),
        Some("pi-extensions") => pi_extensions_config(input, &policy),
        Some("no-mistakes") => no_mistakes_config(input, &policy),
        _ if name.starts_with("netclaw-") => netclaw_config(input),
        _ => bail!("no configuration dialect belongs to preset {name}"),
    }
}

fn pi_desktop_config(input: &Json, policy: &Policy) -> Result<Got> {
    let keys = [
        pi_desktop::IDLE_KEY,
        pi_desktop::DURATION_KEY,
        pi_desktop::TURNS_KEY,
    ];
    let input = Fields::new(input, &keys)?;
    let front_matter = pi_desktop::FrontMatter {
        idle_timeout: input.text(keys[0])?,
        max_duration: input.text(keys[1])?,
        max_turns: input.text(keys[2])?,
    };
    let resolved = pi_desktop::resolve(front_matter, policy_file::pi_desktop_defaults(policy));
    Ok(got([
        ("idle_s", secs(resolved.limits.idle)),
        ("duration_s", secs(resolved.limits.duration)),
        ("max_turns", json!(resolved.limits.max_turns)),
        ("warnings", json!(resolved.warnings.len())),
    ]))
}

fn setting<'j>(input: Fields<'j>, key: &str) -> Setting<'j> {
    policy_file::json_setting(input.get(key))
}

fn pi_extensions_config(input: &Json, policy: &Policy) -> Result<Got> {
    let input = Fields::new(input, &["idle_ms", "total_ms"])?;
    let resolved = pi_extensions::resolve(
        setting(input, "idle_ms"),
        setting(input, "total_ms"),
        policy_file::pi_extensions_defaults(policy),
    );
    Ok(got([
        ("idle_ms", ms(resolved.limits.idle)),
        ("total_ms", ms(resolved.limits.total)),
        ("warnings", json!(resolved.warnings.len())),
    ]))
}

fn no_mistakes_config(input: &Json, policy: &Policy) -> Result<Got> {
    let input = Fields::new(input, &["budget_ms", "agent_timeout_ms"])?;
    let positive = |key| -> Result<Option<Millis>> {
        let whole = input.decimal(key)?.map(|number| number.floor().max(0));
        Ok(whole.map(|ms| Millis::new(ms.unsigned_abs())))
    };
    let budget = no_mistakes::budget(positive("budget_ms")?, positive("agent_timeout_ms")?);
    let poll = policy.detect.poll.period(Some(budget));
    Ok(got([
        ("budget_ms", ms(budget)),
        ("poll_ms", json!(poll.map(Millis::as_u64))),
    ]))
}

fn netclaw_config(input: &Json) -> Result<Got> {
    let keys = [
        "prefill_s",
        "inter_delta_s",
        "no_progress_s",
        "tool_timeout_s",
    ];
    let input = Fields::new(input, &keys)?;
    let limits = netclaw::resolve(&netclaw::Settings {
        prefill: setting(input, keys[0]),
        inter_delta: setting(input, keys[1]),
        no_progress: setting(input, keys[2]),
        tool_timeout: setting(input, keys[3]),
    })
    .limits;
    Ok(got([
        (keys[0], secs(limits.prefill)),
        (keys[1], secs(limits.inter_delta)),
        (keys[2], secs(limits.no_progress)),
        (keys[3], secs(limits.tool_timeout)),
    ]))
}

fn era(vector: Fields<'_>) -> Result<Era> {
    let name = vector.text("era")?.unwrap_or(Era::Adr0129.name());
    Era::from_name(name).with_context(|| format!("unknown era {name}"))
}

fn class(name: &str) -> Result<Class> {
    Class::from_name(name).with_context(|| format!("unknown class {name}"))
}

fn count32(vector: Fields<'_>, key: &str) -> Result<u32> {
    let count = vector
        .count(key)?
        .with_context(|| format!("{key} is missing"))?;
    u32::try_from(count).with_context(|| format!("{key}: {count} is too large"))
}

fn backoff(vector: Fields<'_>) -> Result<Got> {
    let schedules = era(vector)?.schedules();
    let class = class(vector.need_text("class")?)?;
    let schedule = schedules.of(class).context("this class is not retried")?;
    let parts = vector
        .decimal("jitter")?
        .map_or(0, |jitter| jitter.times(1_000_000).floor());
    let draw = Draw::from_parts_per_million(u32::try_from(parts.max(0)).unwrap_or(u32::MAX));
    let status = vector.count("status")?.map(u16::try_from).transpose()?;
    let none = json!({});
    let headers: Vec<(&str, &str)> = match vector.get("headers").unwrap_or(&none) {
        Json::Object(headers) => headers
            .iter()
            .map(|(name, value)| {
                let value = value
                    .as_str()
                    .with_context(|| format!("header {name} is not text"))?;
                Ok((name.as_str(), value))
            })
            .collect::<Result<_>>()?,
        other => bail!("headers: {other} is not an object"),
    };
    let now = vector.count("now_ms")?.map(i64::try_from).transpose()?;
    let asked = if status.is_none_or(retry::reads_headers) {
        retry::asked_by_headers(headers, now)
    } else {
        None
    };
    let attempt = count32(vector, "attempt")?;
    Ok(got([(
        "delay_ms",
        ms(schedule.delay(attempt, draw, asked)),
    )]))
}

fn backoff_envelope(vector: Fields<'_>) -> Result<Got> {
    let schedules = era(vector)?.schedules();
    let retries = count32(vector, "retries")?;
    let envelope = match vector.need_text("class")? {
        "both" => {
            let of_both = [schedules.rate_limit, schedules.transient];
            let spent: u32 = of_both.into_iter().flatten().map(|s| s.retries).sum();
            if spent != retries {
                bail!("{retries} retries of both classes, but this era has {spent}");
            }
            schedules.envelope()
        }
        name => schedules
            .of(class(name)?)
            .map_or(Envelope::default(), |schedule| {
                schedule.envelope_of(retries)
            }),
    };
    Ok(got([
        ("nominal_ms", ms(envelope.nominal)),
        ("max_jitter_ms", ms(envelope.max_jitter)),
        ("max_header_ms", ms(envelope.max_header)),
    ]))
}

fn taskwait(vector: Fields<'_>) -> Result<Got> {
    let delegates: Vec<Delegate<'_>> = vector
        .list("delegations")?
        .iter()
        .map(|delegation| {
            let delegation = Fields::new(delegation, &["id", "settles_ms"])?;
            Ok(Delegate {
                id: delegation.need_text("id")?,
                settles_at: delegation.millis("settles_ms")?,
            })
        })
        .collect::<Result<_>>()?;
    let params = Fields::new(
        vector.need("params")?,
        &["delegationIds", "mode", "minCompleted", "timeoutSeconds"],
    )?;
    let ids: Option<Vec<&str>> = params
        .get("delegationIds")
        .map(|_| {
            let ids = params.list("delegationIds")?.iter();
            ids.map(|id| id.as_str().context("a delegation id is not text"))
                .collect::<Result<_>>()
        })
        .transpose()?;
    let mode = match params.text("mode")? {
        None | Some("all") => WaitMode::All,
        Some("any") => WaitMode::Any,
        Some(mode) => bail!("unknown mode {mode}"),
    };
    let call = Call {
        ids: ids.as_deref(),
        mode,
        min_completed: params.decimal("minCompleted")?,
        timeout_seconds: params.decimal("timeoutSeconds")?,
    };
    let returned = task_wait::wait(
        &call,
        &TaskWait::default(),
        &delegates,
        vector.need_millis("wait_at_ms")?,
        vector.millis("abort_ms")?,
    );
    Ok(got([
        ("returns_at_ms", ms(returned.at)),
        ("timed_out", json!(returned.expired)),
        ("finished", json!(returned.finished)),
        ("total", json!(returned.total)),
    ]))
}

fn task_start(vector: Fields<'_>) -> Result<Got> {
    let running = usize::try_from(vector.count("running")?.context("running is missing")?)?;
    Ok(got([("accepted", json!(task_wait::accepts(running)))]))
}

fn binding(vector: Fields<'_>) -> Result<Got> {
    let launch = Launch {
        session: vector.flag("session", true)?,
        relocated: vector.flag("relocated", false)?,
        resume: vector.text("resume_id")?.map(str::to_owned),
    };
    let mut binding = Binding::new(launch, session_files(vector.list("baseline")?)?);
    let mut credits = Vec::new();
    for poll in vector.list("polls")? {
        let poll = Fields::new(poll, &["t_ms", "files", "header"])?;
        let header = poll.text("header")?.filter(|id| !id.is_empty());
        if binding.poll(&session_files(poll.list("files")?)?, header) {
            credits.push(ms(poll.need_millis("t_ms")?));
        }
    }
    let state = match binding.state() {
        State::Off => "off".to_owned(),
        State::Unbound => "unbound".to_owned(),
        State::Bound(file) => format!("bound:{}", file.id),
        State::Disabled => "disabled".to_owned(),
    };
    Ok(got([("credits", json!(credits)), ("state", json!(state))]))
}

fn session_files(files: &[Json]) -> Result<Vec<SessionFile>> {
    files
        .iter()
        .map(|file| {
            let file = Fields::new(file, &["id", "size", "mtime"])?;
            Ok(SessionFile {
                id: file.need_text("id")?.to_owned(),
                size: file.count("size")?.context("size is missing")?,
                mtime: file.decimal("mtime")?.context("mtime is missing")?.floor(),
            })
        })
        .collect()
}
