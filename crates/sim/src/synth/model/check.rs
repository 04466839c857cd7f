//! From a population as it stands in a file to one that the generator can rely on.

use std::collections::BTreeMap;

use super::{Likeness, Population, PopulationDocument, Ppm, Special, SpecialDocument};
use crate::run::WaitKind;
use crate::synth::ModelError;
use crate::synth::quantiles::{Quantiles, Unit};

/// Most failed calls in one turn.
const FAILURES_LIMIT: u64 = 1000;

/// The largest likeness: something stays by chance.
const LIKENESS_LIMIT: u64 = 990_000;

/// Most calls in one turn.
const CALLS_LIMIT: u64 = 64;

impl TryFrom<PopulationDocument> for Population {
    type Error = ModelError;

    fn try_from(document: PopulationDocument) -> Result<Self, ModelError> {
        let waits = read_waits(document.wait, "")?;
        let by = document.by.into_iter().map(Special::try_from);
        let by = by.collect::<Result<Vec<_>, _>>()?;
        for (figure, table) in &document.run {
            check_unit(table, figure.unit(), || format!("run.{figure:?}"))?;
        }
        let pre_token = waits.get(&WaitKind::PreToken).cloned();
        let population = Self {
            pre_token: pre_token.ok_or_else(|| missing("a population", "wait.pre_token"))?,
            about: document.about,
            resolution: document.resolution,
            approvals_in_tools: document.approvals_in_tools,
            caveats: document.caveats,
            waits,
            figures: document.run,
            roles: document.roles,
            models: document.models,
            tools: document.tools,
            streaming: document.streaming,
            retry: document.retry,
            ends: document.ends,
            weight: document.weight,
            runs_per_session: document.runs_per_session,
            by,
            likeness: document.likeness,
            compaction: document.compaction,
            suspends: document.suspends,
        };
        population.check_names()?;
        population.check_tools()?;
        population.check_streaming_and_retry()?;
        population.check_ends()?;
        population.check_extras()?;
        Ok(population)
    }
}

impl TryFrom<SpecialDocument> for Special {
    type Error = ModelError;

    fn try_from(document: SpecialDocument) -> Result<Self, ModelError> {
        if document.model.is_none() && document.role.is_none() {
            return Err(missing("an entry of by", "model or role"));
        }
        Ok(Self {
            waits: read_waits(document.wait, "by.")?,
            model: document.model,
            role: document.role,
        })
    }
}

/// Waits by kind, in ms.
fn read_waits(
    tables: BTreeMap<String, Quantiles>,
    place: &str,
) -> Result<BTreeMap<WaitKind, Quantiles>, ModelError> {
    let mut waits = BTreeMap::new();
    for (name, table) in tables {
        let kind = WaitKind::from_name(&name).ok_or(ModelError::WaitKind(name))?;
        check_unit(&table, Unit::Ms, || format!("{place}wait.{}", kind.name()))?;
        waits.insert(kind, table);
    }
    Ok(waits)
}

impl Population {
    fn check_names(&self) -> Result<(), ModelError> {
        something_to_pick("roles", self.roles.list.iter().map(|role| role.weight))?;
        something_to_pick("models", self.models.list.iter().map(|model| model.weight))?;
        for role in &self.roles.list {
            let part = || format!("role {:?}", role.name);
            let turns = self
                .turns_of(role)
                .ok_or_else(|| missing(&part(), "run.turns"))?;
            check_unit(turns, Unit::Turns, || format!("turns of {}", part()))?;
        }
        Ok(())
    }

    fn check_tools(&self) -> Result<(), ModelError> {
        let Some(tools) = &self.tools else {
            return Ok(());
        };
        something_to_pick("tools.list", tools.list.iter().map(|tool| tool.weight))?;
        something_to_pick("tools.calls_weights", tools.calls_weights.iter().copied())?;
        at_most(
            "the length of tools.calls_weights",
            tools.calls_weights.len() as u64,
            CALLS_LIMIT,
        )?;
        for tool in &tools.list {
            if let Some(name) = &tool.wait {
                let kind = WaitKind::from_name(name);
                let kind = kind.ok_or_else(|| ModelError::WaitKind(name.clone()))?;
                let allowed = matches!(
                    kind,
                    WaitKind::Tool | WaitKind::ToolEscalated | WaitKind::Subagent | WaitKind::Human
                );
                if !allowed {
                    return Err(ModelError::ToolWait {
                        tool: tool.name.clone(),
                        given: kind.name(),
                    });
                }
            }
            let part = || format!("tool {:?}", tool.name);
            let wait = || format!("wait.{} or its own duration", tool.wait_kind().name());
            let duration = self
                .duration_of(tool)
                .ok_or_else(|| missing(&part(), &wait()))?;
            check_unit(duration, Unit::Ms, || format!("duration of {}", part()))?;
            if tool.update_every_ms == Some(0) {
                return Err(ModelError::Zero("update_every_ms"));
            }
        }
        if tools.approval_ppm > Ppm(0) {
            self.needs("tools.approval_ppm", WaitKind::Approval)?;
        }
        Ok(())
    }

    fn check_streaming_and_retry(&self) -> Result<(), ModelError> {
        if let Some(streaming) = &self.streaming {
            check_unit(&streaming.pieces, Unit::Pieces, || {
                "streaming.pieces".to_owned()
            })?;
            self.needs("streaming", self.piece_gap())?;
        }
        if let Some(retry) = &self.retry {
            self.needs("retry", WaitKind::ErrorWait)?;
            if retry.failures_max == 0 {
                return Err(ModelError::Zero("retry.failures_max"));
            }
            if retry.schedule_ms.is_empty() && retry.backoff.is_none() {
                return Err(missing("retry", "retry.schedule_ms or retry.backoff"));
            }
            if let Some(backoff) = &retry.backoff {
                let limit = Unit::Ms.limit();
                at_most("retry.backoff.cap_ms", backoff.cap_ms, limit)?;
                at_most(
                    "retry.backoff.first_delay_ms",
                    backoff.first_delay_ms,
                    limit,
                )?;
                let jitter = u64::from(backoff.jitter_down_percent);
                at_most("retry.backoff.jitter_down_percent", jitter, 100)?;
            }
            if let Some(outages) = &retry.outages {
                check_unit(&outages.length, Unit::Ms, || {
                    "retry.outages.length".to_owned()
                })?;
                if outages.every_ms == 0 {
                    return Err(ModelError::Zero("retry.outages.every_ms"));
                }
            }
            at_most(
                "retry.failures_max",
                u64::from(retry.failures_max),
                FAILURES_LIMIT,
            )?;
            for &delay_ms in &retry.schedule_ms {
                at_most("retry.schedule_ms", delay_ms, Unit::Ms.limit())?;
            }
        }
        Ok(())
    }

    fn check_ends(&self) -> Result<(), ModelError> {
        let ends = &self.ends;
        let total: u64 = ends.shares().iter().sum();
        if total > Ppm::WHOLE {
            return Err(ModelError::EndShares(total));
        }
        let hung = [
            ends.hung_before_output_ppm,
            ends.hung_mid_stream_ppm,
            ends.hung_in_tool_ppm,
        ];
        if let Some(after) = &ends.record_after_hang {
            check_unit(after, Unit::Ms, || "ends.record_after_hang".to_owned())?;
        } else if hung.iter().any(|share| share.0 > 0) {
            return Err(missing("ends", "ends.record_after_hang"));
        }
        if let Some(turns) = &ends.looped_turns {
            check_unit(turns, Unit::Turns, || "ends.looped_turns".to_owned())?;
        } else if ends.looped_ppm > Ppm::default() {
            return Err(missing("ends", "ends.looped_turns"));
        }
        let cut = [
            ends.aborted_ppm,
            ends.open_in_model_ppm,
            ends.open_in_tool_ppm,
        ];
        if cut.iter().any(|share| share.0 > 0) {
            self.needs("ends", WaitKind::Censored)?;
        }
        let in_tool = [ends.hung_in_tool_ppm, ends.open_in_tool_ppm];
        let has_tool = self.tools.iter().flat_map(|tools| &tools.list);
        let has_tool = has_tool
            .into_iter()
            .any(|tool| tool.wait_kind() == WaitKind::Tool && tool.weight > 0);
        if in_tool.iter().any(|share| share.0 > 0) && !has_tool {
            return Err(missing("ends", "a tool that waits as tool"));
        }
        Ok(())
    }

    fn check_extras(&self) -> Result<(), ModelError> {
        if let Some(runs) = &self.runs_per_session {
            check_unit(runs, Unit::Runs, || "runs_per_session".to_owned())?;
        }
        if let Some(likeness) = &self.likeness {
            let Likeness {
                model_session_ppm,
                model_run_ppm,
                tool_session_ppm,
                tool_run_ppm,
                ..
            } = likeness;
            for (session, run) in [
                (model_session_ppm, model_run_ppm),
                (tool_session_ppm, tool_run_ppm),
            ] {
                let both = session.as_u64() + run.as_u64();
                at_most("the sum of two shares of likeness", both, LIKENESS_LIMIT)?;
            }
            let turns = likeness.turns_session_ppm.as_u64();
            at_most("likeness.turns_session_ppm", turns, LIKENESS_LIMIT)?;
        }
        if self.compaction.is_some() {
            self.needs("compaction", WaitKind::Compact)?;
        }
        if let Some(suspends) = &self.suspends {
            check_unit(&suspends.length, Unit::Ms, || "suspends.length".to_owned())?;
        }
        Ok(())
    }

    fn needs(&self, part: &str, kind: WaitKind) -> Result<(), ModelError> {
        if self.waits.contains_key(&kind) {
            Ok(())
        } else {
            Err(missing(part, &format!("wait.{}", kind.name())))
        }
    }
}

fn at_most(name: &str, value: u64, limit: u64) -> Result<(), ModelError> {
    if value <= limit {
        return Ok(());
    }
    Err(ModelError::Limit {
        name: name.to_owned(),
        value,
        limit,
    })
}

fn missing(part: &str, table: &str) -> ModelError {
    ModelError::MissingTable {
        part: part.to_owned(),
        table: table.to_owned(),
    }
}

fn check_unit(
    table: &Quantiles,
    expected: Unit,
    place: impl FnOnce() -> String,
) -> Result<(), ModelError> {
    if table.unit() == expected {
        return Ok(());
    }
    Err(ModelError::UnitMismatch {
        place: place(),
        given: table.unit().name(),
        expected: expected.name(),
    })
}

fn something_to_pick(
    place: &str,
    mut weights: impl Iterator<Item = u32>,
) -> Result<(), ModelError> {
    if weights.any(|weight| weight > 0) {
        Ok(())
    } else {
        Err(ModelError::NothingToPick(place.to_owned()))
    }
}
