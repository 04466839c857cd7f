//! `policysim watch`: the watchdog core over a live process, recorded so that it can be replayed.

pub(crate) mod args;

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod enforce;
#[cfg(target_os = "linux")]
mod feed;
#[cfg(target_os = "linux")]
mod finish;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod nested;
#[cfg(target_os = "linux")]
mod observation;
#[cfg(target_os = "linux")]
mod outcome;
#[cfg(target_os = "linux")]
mod pipes;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod record_file;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod seen;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod session_place;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
mod tell;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod tree;

use args::WatchArgs;

use crate::args::GlobalArgs;
use crate::exit::ExitStatus;
use crate::output;

/// The exit status when `watch` itself fails, wrong usage included.
pub(crate) const WATCH_FAILED: u8 = 125;

/// Runs the command under the policy. Its status, or one of those that the help lists, becomes ours.
pub(super) fn run(args: &WatchArgs, global: &GlobalArgs) -> ExitStatus {
    match watched(args, global) {
        Ok(status) => ExitStatus::OfCommand(status),
        Err(error) => {
            output::failed(&error);
            ExitStatus::OfCommand(WATCH_FAILED)
        }
    }
}

#[cfg(target_os = "linux")]
fn watched(args: &WatchArgs, global: &GlobalArgs) -> anyhow::Result<u8> {
    run::watched(args, global)
}

#[cfg(not(target_os = "linux"))]
fn watched(_: &WatchArgs, _: &GlobalArgs) -> anyhow::Result<u8> {
    Err(not_on(std::env::consts::OS))
}

/// The error on a system other than Linux.
#[cfg(any(test, not(target_os = "linux")))]
fn not_on(os: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "watch runs on Linux only in this version: on {os} it cannot find and end every process of a command"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_system_is_named_in_one_line() {
        let error = format!("{:#}", not_on("macos"));
        assert!(
            error.contains("Linux only") && error.contains("on macos"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}
