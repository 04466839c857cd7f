//! The processes that the command has started, wherever they went.
//!
//! `watch` makes itself the reaper of orphans below it, so whatever the command starts stays a descendant of `watch`,
//! also when it leaves the group, starts a session of its own or loses its parent. A process is meant by its id and
//! its start time together, and is signalled through a descriptor that belongs to it alone: an id that was given to
//! another process meanwhile hits nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitid,
};

/// What the kernel counts processor time in, as it tells it to programs: a hundredth of a second on every machine.
const MS_PER_TICK: u64 = 10;

/// A process as `/proc` shows it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Process {
    /// Its id.
    pub(super) pid: i32,
    /// When it started, in ticks since boot: with the id it names one process for good.
    pub(super) started: u64,
    /// Its parent.
    parent: i32,
    /// Its group.
    pub(super) group: i32,
    /// Its session.
    pub(super) session: i32,
    /// Its program's short name.
    pub(super) name: String,
    /// How much processor time it has used, in ticks.
    pub(super) used_ticks: u64,
    /// Whether it has ended and only waits to be reaped.
    ended: bool,
}

impl Process {
    /// The process of that id.
    pub(super) fn of(pid: i32) -> Option<Self> {
        parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Whether it is that process.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// Sends it a signal, if it still is the process that it was; whether it was sent.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return false;
        };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        let is_same = Self::of(self.pid).is_some_and(|now| now.started == self.started);
        is_same && pidfd_send_signal(process, signal).is_ok()
    }
}

/// Reads a line of `/proc/PID/stat`. The name stands in brackets and may hold anything, brackets as well.
fn parse(stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Counted from the state, which is field 3 of proc(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let id = |field: usize| i32::try_from(number(field)?).ok();
    Some(Process {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        ended: matches!(*fields.first()?, "Z" | "X"),
        parent: id(4)?,
        group: id(5)?,
        session: id(6)?,
        used_ticks: number(14)?.saturating_add(number(15)?),
        started: number(22)?,
    })
}

/// How much processor time these processes have used, ms.
pub(super) fn used_ms(processes: &[Process]) -> u64 {
    let ticks = processes
        .iter()
        .fold(0_u64, |sum, process| sum.saturating_add(process.used_ticks));
    ticks.saturating_mul(MS_PER_TICK)
}

/// The processes below `watch`.
#[derive(Debug)]
pub(super) struct Tree {
    root: i32,
    /// Processes that were below us before the command was started; they and theirs are none of our business.
    strangers: BTreeSet<(i32, u64)>,
}

impl Tree {
    /// Takes over orphans from now on, and notes who is there already.
    pub(super) fn root_here() -> Self {
        let me = getpid();
        // Where the kernel refuses, orphans are found only while their parents live.
        let _ = set_child_subreaper(Some(me));
        let mut tree = Self {
            root: me.as_raw_pid(),
            strangers: BTreeSet::new(),
        };
        tree.strangers = tree
            .scan()
            .into_iter()
            .map(|process| (process.pid, process.started))
            .collect();
        tree
    }

    /// The command's processes that live, in the order of their ids.
    pub(super) fn living(&self) -> Vec<Process> {
        let mut found = self.scan();
        found.retain(|process| !process.ended);
        found
    }

    /// Takes the status of orphans that have ended; the command itself stays.
    pub(super) fn reap_orphans(&self, command: Pid) {
        for process in self.scan() {
            let Some(pid) = Pid::from_raw(process.pid).filter(|pid| *pid != command) else {
                continue;
            };
            if process.ended && process.parent == self.root {
                let _ = waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                );
            }
        }
    }

    fn scan(&self) -> Vec<Process> {
        let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
        for process in processes() {
            children.entry(process.parent).or_default().push(process);
        }
        let mut found = Vec::new();
        let mut parents = vec![self.root];
        while let Some(parent) = parents.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                if !self.strangers.contains(&(child.pid, child.started)) {
                    parents.push(child.pid);
                    found.push(child);
                }
            }
        }
        found.sort();
        found
    }
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::of)
}

/// The nearest `policysim watch` above us that holds the command we are part of.
pub(super) fn outer_watch() -> Option<Process> {
    let me = fs::read_link("/proc/self/exe").ok()?;
    let mut pid = Process::of(getpid().as_raw_pid())?.parent;
    // A chain of parents is short; the bound only guards against a table that changes under us.
    for _ in 0..1_000 {
        if pid <= 1 {
            return None;
        }
        let is_ours = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == me);
        if is_ours {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = line.split(|byte| *byte == 0).skip(1);
            let mut ours = words.take_while(|word| *word != b"--");
            if ours.any(|word| word == b"watch") {
                return Process::of(pid);
            }
        }
        pid = Process::of(pid)?.parent;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A name may hold spaces and brackets; fields are those of proc(5).
    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let line = "7 (a) (b c) S 1 7 3 34816 7 4194304 1 2 3 4 50 6 7 8 20 0 1 0 999 1 2";
        let process = parse(line).unwrap();
        assert_eq!((process.pid, process.name.as_str()), (7, "a) (b c"));
        assert_eq!((process.parent, process.group, process.session), (1, 7, 3));
        assert_eq!((process.used_ticks, process.started), (56, 999));
        assert!(!process.ended);
    }

    /// Another start time under the same id is another process, and gets no signal.
    #[test]
    fn a_process_that_took_over_the_id_is_not_signalled() {
        let me = Process::of(getpid().as_raw_pid()).unwrap();
        let earlier = Process {
            started: me.started - 1,
            ..me
        };
        // A delivered TERM would end this test run.
        assert!(!earlier.signal(Signal::TERM));
    }
}
