//! What happens is recorded and fed to the policies, in one order and with one time for both.

use policysim_sim::replay::{KILL_CANCELLED, KILL_WITHHELD};
use serde_json::json;

use super::args::Count;
use super::guard::{Guard, Power};
use super::live::Live;
use super::observation::Observed;
use super::pipes::Pipe;

impl Live {
    pub(super) fn bytes(&mut self, pipe: Pipe, at_ms: u64, n_bytes: u64, bytes: &[u8]) {
        let is_stderr = pipe == Pipe::Stderr;
        self.seen.bytes(is_stderr, n_bytes);
        let counts = match self.count {
            Count::Both => true,
            Count::Stdout => !is_stderr,
            Count::Stderr => is_stderr,
        };
        if counts {
            match &mut self.unfed {
                Some((at, of_stderr, n)) if (*at, *of_stderr) == (at_ms, is_stderr) => {
                    *n = n.saturating_add(n_bytes);
                }
                _ => {
                    self.feed_bytes();
                    self.unfed = Some((at_ms, is_stderr, n_bytes));
                }
            }
        }
        if bytes.is_empty() || is_stderr {
            return;
        }
        let known = self.stream.format();
        let said = self.stream.take(bytes);
        if !self.stream.is_read() {
            self.stdout.only_count();
        }
        self.said(at_ms, known, &said);
    }

    /// No more bytes will come on stdout: what stands there without a line feed was its last line.
    pub(super) fn stream_ended(&mut self, at_ms: u64) {
        let known = self.stream.format();
        let said = self.stream.end();
        self.said(at_ms, known, &said);
    }

    /// Observes what the stream said, whose format was `known` before.
    fn said(&mut self, at_ms: u64, known: Option<&str>, said: &[Observed]) {
        if let Some(format) = self.stream.format().filter(|_| known.is_none()) {
            self.record
                .note("stream", at_ms, json!({ "format": format }));
        }
        for observed in said {
            self.observe(at_ms, observed);
        }
    }

    pub(super) fn feed_bytes(&mut self) {
        if let Some((at_ms, is_stderr, n_bytes)) = self.unfed.take() {
            self.observe_now(at_ms, &Observed::bytes(n_bytes, is_stderr));
        }
    }

    /// Records and feeds what happened at `at_ms`, after what happened before.
    pub(super) fn observe(&mut self, at_ms: u64, observed: &Observed) {
        self.feed_bytes();
        self.observe_now(at_ms, observed);
    }

    fn observe_now(&mut self, at_ms: u64, observed: &Observed) {
        if self.over {
            return;
        }
        // After its end the command has written nothing: what is read then was written before. Nothing was read later
        // than now, whatever the clock showed before it was found to have stood still.
        let latest = self.ended.map_or(u64::MAX, |(_, at_ms)| at_ms);
        let at_ms = at_ms.min(latest).min(self.clock.now_ms());
        let at_ms = at_ms.max(self.fed_ms);
        self.fed_ms = at_ms;
        self.seen.event(at_ms, observed);
        self.pass(at_ms, at_ms);
        let event = observed.event();
        let first = &self.guards[0];
        if first.is_revived_by(&event) {
            let name = match first.power {
                Power::Enforces => KILL_CANCELLED,
                _ => KILL_WITHHELD,
            };
            self.begin_again(at_ms, name, observed);
        } else {
            self.record.event(at_ms, observed);
            self.guards[0].feed(at_ms, &event);
        }
        for guard in &mut self.guards[1..] {
            guard.feed(at_ms, &event);
        }
        self.tell_facts(at_ms);
    }

    /// Activity takes back the first policy's firing: that is marked, and a new watchdog starts from the activity.
    fn begin_again(&mut self, at_ms: u64, name: &str, activity: &Observed) {
        let mark = Observed::other(name);
        self.record.event(at_ms, &mark);
        for guard in &mut self.guards[1..] {
            guard.feed(at_ms, &mark.event());
        }
        self.record.event(at_ms, activity);
        let guard = &mut self.guards[0];
        if let Some(firing) = guard.firing() {
            let details = json!({
                "deadline_ms": firing.verdict.at.as_u64(),
                "decided_ms": firing.decided_ms,
                "activity_ms": at_ms,
                "by": activity.kind.name(),
            });
            self.record.note(name, at_ms, details);
        }
        guard.begin_again(at_ms, &activity.event());
    }

    /// Brings every policy to `until_ms`.
    fn pass(&mut self, until_ms: u64, now_ms: u64) {
        for guard in &mut self.guards {
            guard.pass(until_ms, now_ms);
        }
        self.tell_facts(now_ms);
    }

    fn tell_facts(&mut self, now_ms: u64) {
        for (number, guard) in self.guards.iter_mut().enumerate() {
            while let Some(fact) = guard.fact() {
                self.record.fact(number, &fact, now_ms);
            }
        }
    }

    /// Brings the policies to this instant, if one of them has something due.
    pub(super) fn let_time_pass(&mut self) {
        let now_ms = self.clock.now_ms();
        let due = self.guards.iter().filter_map(Guard::wake_ms).min();
        if due.is_some_and(|due| due <= now_ms) {
            self.fed_ms = self.fed_ms.max(now_ms);
            self.pass(now_ms, now_ms);
        }
    }
}
