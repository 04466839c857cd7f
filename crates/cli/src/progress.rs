//! Progress on stderr, only where somebody looks: a terminal, and not with `--quiet`.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use policysim_telemetry::Progress;

/// A bar that counts bytes read or runs replayed.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar over `total` things, hidden where nobody looks.
    pub(crate) fn new(quiet: bool, total: u64, what: &'static str) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {percent} % {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        Self(bar)
    }

    /// `count` more are done.
    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Takes the bar away.
    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn start(&self, _files: usize, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn source(&self, name: &str) {
        self.0.set_message(policysim_report::table::one_line(name));
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}
