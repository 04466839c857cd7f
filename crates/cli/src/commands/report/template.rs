//! A team's own template: a program that somebody gave, run within bounds.
//!
//! Its steps and what it writes are bounded where it is rendered. What is left, the engine does not count: how deep an
//! expression nests, and lists within lists that are doubled. The first has a stack that no template of the largest size
//! can use up, the second is watched from beside it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use policysim_report::sizing::{Report, template};
use policysim_report::units::bytes;

use crate::{data, given};

/// The longest template, in bytes.
const LONGEST: u64 = 128 << 10;

/// Stack of the renderer, of which only what is used takes memory. An operator of one byte takes up to 1.7 kB of it
/// without optimisation, so that the longest template takes 215 MiB.
const STACK: usize = 512 << 20;

/// The most memory that rendering may add to what the report takes, in bytes. The text itself, its copies, and what a
/// template keeps within its steps stay below a tenth of it.
const MOST_MEMORY: u64 = 1 << 30;

/// How often it is looked at. A list that doubles grows by some tens of MB in the meantime.
const PAUSE: Duration = Duration::from_millis(10);

/// How often it is looked at before it takes too long, which is 30 s: all the steps that are counted are done in a tenth
/// of that, even where nothing is optimised.
const MOST_PAUSES: u32 = 3_000;

/// Reads a template: of a device or a pipe, no more than the longest one has.
pub(super) fn read(path: &Path) -> Result<String> {
    given::keep(path);
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .with_context(|| format!("cannot read the template {}", path.display()))?;
    if text.len() as u64 > LONGEST {
        bail!(
            "the template {} is longer than {}, expected a text with variables",
            path.display(),
            bytes(LONGEST)
        );
    }
    String::from_utf8(text)
        .map_err(|_| anyhow!("the template {} is not text in UTF-8", path.display()))
}

/// Renders `source`, which may be any program; an error is returned while it is still running where it cannot be stopped,
/// and the end of the command ends it.
pub(super) fn render(source: String, report: &Arc<Report>) -> Result<String> {
    let interrupted = data::on_interrupt()?;
    let (send, receive) = mpsc::channel();
    let of = Arc::clone(report);
    let before = resident();
    thread::Builder::new()
        .name("template".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Nobody listens any more where it took too long.
            let _ = send.send(template::render(&source, &of));
        })
        .with_context(|| format!("cannot set up {} of stack", bytes(STACK as u64)))?;
    for _ in 0..MOST_PAUSES {
        match receive.recv_timeout(PAUSE) {
            Ok(rendered) => {
                data::interrupts_end(&interrupted)?;
                return Ok(rendered?);
            }
            Err(RecvTimeoutError::Disconnected) => bail!("it could not be rendered"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if let (Some(before), Some(now)) = (before, resident())
            && now.saturating_sub(before) > MOST_MEMORY
        {
            bail!(
                "it takes more than {} of memory, expected less: does it double a list?",
                bytes(MOST_MEMORY)
            );
        }
    }
    bail!(
        "it takes more than {} s, expected less: does it double a list?",
        (PAUSE * MOST_PAUSES).as_secs()
    )
}

/// Memory of this process that is in use, in bytes; `None` where the system does not tell.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = kib.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
